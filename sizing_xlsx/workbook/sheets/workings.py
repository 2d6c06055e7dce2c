"""Workings: every intermediate term with its value, unit, formula in words and source; constants; live sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.render import in_words
from .. import page

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Workings"
SUBJECTS = {
    "units": "Units", "run": "The run", "card": "The card", "model": "The model", "adapters": "Adapters",
    "published": "Published accounting", "traced": "Traced list", "items": "Line items", "allocator": "The allocator",
    "verdict": "The verdict", "figures": "Figures as they are shown",
}  # fmt: skip


def number_style(unit: str) -> str:
    """The style of a value by its unit: whole bytes and counts, three decimals for GB."""
    if unit in ("GB", "GiB", "MiB"):
        return "r_calc3"
    return "r_share" if unit == "share" else "r_calc0"


def write(book: Book) -> None:
    """Constants, terms by subject in order of evaluation, derived terms, and sentences."""
    ws, styles, job = book.sheet(TITLE), book.styles, book.job
    put = book.putter(ws)
    last = page.set_page(ws, book.look, kind="Workings", file_and_version=book.footer, rows_repeated=(0, 3), freeze=(4, 2))
    page.fill_row(ws, 0, 0, last, styles["strip"], book.look["rows"]["title"])
    page.fill_row(ws, 1, 0, last, styles["strip_edge"], book.look["rows"]["sentence"])
    put(0, 1, "Workings", styles["title"])
    put(0, last - 1, book.stamp, styles["stamp"])
    put(1, 1, "Every term between config.json and the verdict. Names are those that formulas use.", styles["sentence"])
    ws.set_row(2, book.look["rows"]["space"])
    ws.set_row(3, book.look["rows"]["header"])
    for column, (text, style) in enumerate(
        [("Term", "th"), ("Value", "th_r"), ("Unit", "th_i"), ("Name", "th"), ("Formula in words, meaning and source", "th")], 1
    ):
        put(3, column, text, styles[style])
    row = 4
    row = _section(book, row, last, "Constants", "Replaceable ones are on Overrides.")
    for key, constant in job.constants.items():
        words = f"{constant.source} ({constant.evidence})"
        _write(book, row, key, constant.label, constant.value, constant.unit, words)
        row += 1
    for subject, keys in _by_subject(job).items():
        row = _section(book, row, last, subject, None)
        for key in keys:
            facts = job.terms[key]
            meaning = f"{in_words(job.trees[key], book.label_of)}. {facts.help}"
            source = f" Source: {facts.source}." if facts.source else ""
            _write(book, row, key, facts.label, job.trees[key], facts.unit, meaning + source)
            row += 1
    row = _section(book, row, last, "What-if figures", "From the What-if sheet and from it.")
    for symbol, unit, tree in book.derived:
        _write(book, row, symbol, symbol.replace("_", " ").capitalize(), tree, unit, "Derived from the What-if sheet.")
        row += 1
    row = _section(book, row, last, "Sentences", "Live text shown on the other sheets.")
    for key, tree in book.sentences.items():
        _write(book, row, key, key.replace("_", " ").capitalize(), tree, "text", "Text of this workbook's template.")
        row += 1
    page.print_area(ws, row, last)


def _by_subject(job: Any) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key in job.order:
        module = job.modules.get(key, "")
        subject = SUBJECTS.get(module.rpartition(".")[2], "Inverse questions")
        groups.setdefault(subject, []).append(key)
    return groups


def _section(book: Book, row: int, last: int, name: str, note: str | None) -> int:
    ws = book.sheet(TITLE)
    return page.section(
        ws, book.styles, row, last_column=last, name=name, put=book.putter(ws), note=note, note_column=5, space_below=False
    )


def _write(book: Book, row: int, key: str, label: str, content: Any, unit: str, words: str) -> None:
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    defined = book.cell_name(key)
    put(row, 1, label, styles["r_label"])
    guard = book.guards.get(key)
    style = styles["r_text_r"] if unit == "text" else styles[number_style(unit)]
    if isinstance(content, float) and content != int(content):
        style = styles.variant("r_calc0", format="general")
    put(row, 2, guard(content) if guard else content, style)
    put(row, 3, unit, styles["r_unit"])
    put(row, 4, defined, styles["r_help"])
    put(row, 5, words, styles["r_help"])
    book.define(defined, TITLE, row, 2)


"""Workings: every intermediate term with its value, unit, formula in words and source; constants; live sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...formula.render import in_words
from .. import page
from ..words import filled

if TYPE_CHECKING:
    from ..book import Book

TITLE, BOUNDARIES = "Workings", "Boundary workings"
_NAME, _WORDS, _MEANING = 4, 5, 6


def number_style(unit: str) -> str:
    """The style of a value by its unit: whole bytes and counts, three decimals for GB."""
    if unit in ("GB", "GiB", "MiB"):
        return "r_calc3"
    return "r_share" if unit == "share" else "r_calc0"


def write(book: Book) -> None:
    """Workings: constants, terms by subject in order of evaluation, what-if figures, sentences; and any boundaries."""
    job, words = book.job, book.template["workings"]
    last = _head(book, TITLE, words["title"], words["sentence"])
    row = _section(book, TITLE, 4, last, *words["constants"])
    for key, constant in job.constants.items():
        source = filled(words["constant_source"], source=constant.source, evidence=constant.evidence)
        row = _write(book, TITLE, row, key, constant.label, constant.value, constant.unit, "", source)
    for subject, keys in _by_subject(book).items():
        row = _section(book, TITLE, row, last, subject, None)
        for key in keys:
            row = _term(book, TITLE, row, key)
    row = _section(book, TITLE, row, last, *words["what_if"])
    for symbol, unit, tree in book.derived:
        said = in_words(tree, book.label_of)
        row = _write(book, TITLE, row, symbol, symbol.replace("_", " ").capitalize(), tree, unit, said, "")
    row = _section(book, TITLE, row, last, *words["sentences"])
    source = words["sentence_source"]
    for key, tree in book.sentences.items():
        row = _write(book, TITLE, row, key, key.replace("_", " ").capitalize(), tree, "text", "", source)
    page.print_area(book.sheet(TITLE), row, last)
    if BOUNDARIES in book.sheets:
        _boundaries(book, words["boundaries"])


def _boundaries(book: Book, words: Mapping[str, Any]) -> None:
    """The terms that inverse questions add."""
    job = book.job
    last = _head(book, BOUNDARIES, words["title"], words["sentence"])
    row = 4
    for key in job.order:
        if key not in job.plain_terms:
            row = _term(book, BOUNDARIES, row, key)
    page.print_area(book.sheet(BOUNDARIES), row, last)


def _by_subject(book: Book) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key in book.job.plain_terms:
        subject = book.template["workings"]["subjects"][book.job.modules[key].rpartition(".")[2]]
        groups.setdefault(subject, []).append(key)
    return groups


def _head(book: Book, sheet: str, title: str, words: str) -> int:
    ws, styles = book.sheet(sheet), book.styles
    put = book.putter(ws)
    last = page.plain_sheet(
        book, sheet, title=title, kind="Workings", sentence=words, rows_repeated=(0, 3), freeze=(4, 2)
    )
    ws.set_row(2, book.look["rows"]["space"])
    ws.set_row(3, book.look["rows"]["header"])
    for column, text in enumerate(book.template["workings"]["columns"], 1):
        put(3, column, text, styles["th_r" if column == 2 else "th_i" if column > 2 else "th"])
    return last


def _section(book: Book, sheet: str, row: int, last: int, name: str, note: str | None) -> int:
    ws = book.sheet(sheet)
    return page.section(
        ws,
        book.styles,
        row,
        last_column=last,
        name=name,
        put=book.putter(ws),
        note=note,
        note_column=_WORDS,
        space_below=False,
    )


def _term(book: Book, sheet: str, row: int, key: str) -> int:
    facts, tree = book.job.terms[key], book.job.trees[key]
    meaning = facts.help
    if facts.source:
        meaning = filled(book.template["workings"]["term_source"], meaning=facts.help, source=facts.source)
    return _write(
        book,
        sheet,
        row,
        key,
        facts.label,
        tree,
        facts.unit,
        in_words(tree, book.label_of),
        meaning,
    )


def _write(
    book: Book, sheet: str, row: int, key: str, label: str, content: Any, unit: str, words: str, meaning: str
) -> int:
    ws, styles = book.sheet(sheet), book.styles
    put = book.putter(ws)
    defined = book.cell_name(key)
    guard = book.guards.get(key)
    style = styles["r_text_r"] if unit == "text" else styles[number_style(unit)]
    if unit == "FLOP" or (isinstance(content, float) and content != int(content)):  # of a run: too long to write out
        style = styles.variant("r_calc0", format="general")
    if key in book.sentences:
        style = styles.variant("r_text_r", shrink=True)
    wrapped = styles.variant("r_help", indent=1)
    put(row, 1, label, styles["r_label"])
    put(row, 2, guard(content) if guard else content, style)
    put(row, 3, unit, styles["r_unit"])
    put(row, _NAME, defined, wrapped)
    put(row, _WORDS, words, wrapped)
    put(row, _MEANING, meaning, wrapped)
    widths = page.column_widths(book.look, "Workings")
    ws.set_row(row, page.wrapped_height((words, widths[_WORDS]), (meaning, widths[_MEANING])))
    book.define(defined, sheet, row, 2)
    return row + 1

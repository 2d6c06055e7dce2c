"""Overrides: every shape and allowance with its preset, an own value in its place, and what is in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.declare import Number
from ...formula.render import public_name
from .. import page
from ..book import Raw
from ..inputs import write_input
from ..scenarios import NAMED
from ..words import filled
from .scenarios import idle_note

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Overrides"
_FORMS = ("th", "th_r", "th_r", "th_r", "th_i", "th_i")  # of the header


def write(book: Book) -> None:
    """One row an override that has no cell on Sizing: first shapes, then allowances."""
    ws, styles, job = book.sheet(TITLE), book.styles, book.job
    put = book.putter(ws)
    words = book.template["overrides"]
    last = page.plain_sheet(book, TITLE, title=words["title"], sentence=words["sentence"])
    elsewhere = [entry["input"] for step in book.template["steps"] for entry in step["rows"] if "input" in entry]
    entered = {override.input_name for override in job.overrides.values() if override.follows_job}
    counted: list[str] = []
    row = 2
    for (name, note), follows in ((words["job"], True), (words["installation"], False)):
        shown = {
            key: override.input_name
            for key, override in job.overrides.items()
            if override.follows_job is follows and override.input_name not in elsewhere
        }
        if not shown:
            continue
        row = page.section(
            ws, styles, row, last_column=last, name=name, put=put, note=idle_note(book, note) if follows else note,
            note_column=3, space_below=False,
        )  # fmt: skip
        ws.set_row(row, book.look["rows"]["header"])
        for column, (text, form) in enumerate(zip(words["columns"], _FORMS, strict=True), 1):
            put(row, column, text, styles[form])
        row += 1
        first = row
        for key, entered_as in shown.items():
            _row(book, row, key, entered_as)
            row += 1
        counted.append(f"$D${first + 1}:$D${row}")
    of_the_job, *of_all = counted
    of_the_job = ",".join((of_the_job, *(public_name(key) for key in elsewhere if key in entered)))
    put(row, 1, words["count"], styles["t_label"])
    page.fill_row(ws, row, 2, last - 1, styles["t_label"], book.look["rows"]["total"])
    of_row = f"INDEX({NAMED['own_values']},Scenario_Row)"
    total = f"=IF(Scenario_Row>0,{of_row},COUNT({of_the_job}))" + "".join(f"+COUNT({area})" for area in of_all)
    put(row, 3, Raw(total, own_values(book)), styles.variant("t_calc1", format="n0"))
    book.define("Own_Values_Count", TITLE, row, 3)
    page.print_area(ws, row, last)


def own_values(book: Book) -> int:
    """How many presets are replaced on the inputs the workbook opens on."""
    return sum(book.values[override.input_name] is not None for override in book.job.overrides.values())


def _row(book: Book, row: int, key: str, entered: str) -> None:
    ws, styles, job = book.sheet(TITLE), book.styles, book.job
    put = book.putter(ws)
    facts: Any = job.terms[key]
    preset: Any = job.constants.get("preset_" + key) or job.terms["preset_" + key]
    decimals = isinstance(job.inputs[entered].domain, Number) and facts.unit != "bytes"
    number = "r_calc2" if decimals else "r_calc0"
    put(row, 1, facts.label, styles["r_label"])
    put(row, 2, book.displayed(book.sym("preset_" + key)), styles[number])
    write_input(book, ws, TITLE, row, 3, entered, styles["g_dec3" if decimals else "g_num"])
    put(row, 4, book.displayed(book.sym(key)), styles[number])
    put(row, 5, facts.unit, styles["r_unit"])
    words = book.template["overrides"]
    if preset.evidence == "calculated":
        source = filled(words["source"], source=preset.source)
    else:
        source = filled(words["source_evidence"], source=preset.source, evidence=preset.evidence)
    meaning = source if facts.help.rstrip(".") == facts.label else f"{facts.help} {source}"
    put(row, 6, meaning, styles.variant("r_help", indent=1))
    ws.set_row(
        row,
        max(book.look["rows"]["input"], page.wrapped_height((meaning, book.look["sheets"][TITLE]["widths"][6]))),
    )
    page.own_marks(ws, styles, (row, 4, row, 4), f"=ISNUMBER({public_name(entered)}_In_Force)")

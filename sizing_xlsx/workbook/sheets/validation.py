"""Validation: every run beside both predictions, computed by formulas in the row, with room for more runs.

The visible sheet holds the runs and their measured figures; the rows of "Validation workings" have their inputs.
Both move when an allowance on Overrides is changed, and with nothing else on Sizing. A row without an id is spare:
all its formulas show nothing until a run is typed or written into it. Below the charts stand other people's runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import page
from ..book import Raw
from ..inputs import prompt, validation
from ..jobtable import NOT_GIVEN
from ..own_runs import COMPLETED, KEY, LONGEST_ID, LONGEST_SOURCE, OUT_OF_MEMORY, figure_names, input_names
from ..runs import VISIBLE, WRONG, Run, Runs
from ..words import filled, quoted
from . import evidence, public_runs, run_workings
from .run_workings import FIRST, OUTCOMES, TITLE, call_shown, extra_cell, workings_cell

if TYPE_CHECKING:
    from ..book import Book

_GROUPS = ((1, 6), (7, 11), (12, 14), (15, 17), (18, 19), (20, 20))  # first and last column; the last has no name
_FORMS = (  # of the header
    *("th", "th", "th_r", "th_r", "th_r", "th_i", "th_r", "th_r", "th_r", "th_r"),
    *("th_r", "th_r", "th_r", "th_r", "th_i", "th", "th", "th_r", "th_r", "th_i"),
)
# The columns that can be typed in the rows after the sweep: style there, and in the rows of the sweep.
_TYPED = {
    1: ("g_text", "r_no"), 2: ("g_text", "r_label"), 3: ("g_text_r", "r_text_r"), 4: ("g_num", "r_calc0"),
    5: ("g_num", "r_calc0"), 6: ("g_text_i", "r_text_i"), 7: ("g_dec3", "r_calc3"), 12: ("g_dec1", "r_calc1"),
    15: ("g_text_i", "r_text_i"), 18: ("g_dec3", "r_calc3"), 19: ("g_dec1", "r_calc1"), 20: ("g_note", "r_help"),
}  # fmt: skip
_NAMED = dict(zip(figure_names(), (2, 3, 15, 7, 12, 18, 19, 20), strict=True))  # figure -> column
_CHART_ROWS = 21
_LARGEST_GB = 1_000_000
_LONGEST_WORD = 20  # characters of a lever or a setting
_SMALL_TEXT = 1.28  # characters of 10 points to one of the column's width, in a sentence


def write(book: Book) -> None:
    """The visible sheet with its strip and charts, and its workings."""
    runs = Runs(book)
    ws, styles, rows = book.sheet(TITLE), book.styles, book.look["rows"]
    put, words = book.putter(ws), book.template["validation"]
    last = page.set_page(
        ws, book.look, kind=TITLE, file_and_version=book.footer, freeze=(FIRST, 3), rows_repeated=(0, FIRST - 1)
    )
    page.fill_row(ws, FIRST - 2, 0, last, styles["body"], rows["header"])
    for (first, end), text in zip(_GROUPS, (*words["column_groups"], ""), strict=True):
        for column in range(first, end + 1):
            put(FIRST - 2, column, text if column == first else "", styles["th_group"])
    ws.set_row(FIRST - 1, rows["header_two_lines"])
    for column, (text, form) in enumerate(zip(words["columns"], _FORMS, strict=True), 1):
        put(FIRST - 1, column, text, styles[form])
    for at, run in enumerate(runs.all):
        _row(book, runs, at, run)
    end = FIRST + len(runs.all) - 1
    _marks(book, end)
    _names(book, end)
    _validations(book, FIRST + len(runs.sweep), end)
    for offset, note in enumerate((words["note"], words["own_note"]), 1):
        put(end + offset, 1, note, styles["help"])
        ws.set_row(end + offset, rows["table"])
    evidence.write_strip(book, runs, last)
    row = page.section(ws, styles, end + 3, last_column=last, name=words["what_shown"], put=put)
    evidence.write_charts(book, runs, row)
    for at in range(_CHART_ROWS):
        ws.set_row(row + at, rows["chart"])
    below, breaks = row + _CHART_ROWS, [FIRST + len(runs.sweep), end + 3]
    if book.public_runs:
        breaks.append(below)
        below = public_runs.write(book, book.public_runs, below, last)
    page.print_area(ws, below, last, breaks)
    run_workings.write(book, runs)


def _row(book: Book, runs: Runs, at: int, run: Run) -> None:
    ws, styles, typed = book.sheet(TITLE), book.styles, at >= len(runs.sweep)
    put, words = book.putter(ws), book.template["validation"]
    row, number = FIRST + at, FIRST + at + 1
    width, height = book.look["sheets"][TITLE]["widths"][20], book.look["rows"]["table"]
    wraps = len(run.source) > width * _SMALL_TEXT
    ws.set_row(row, max(height, page.wrapped_height((run.source, width))) if wraps else height)
    batch, sequence, checkpointing = (None if run.spare else run.inputs[key] for key in VISIBLE)
    missing = None if typed and run.outcome in ("", COMPLETED) else NOT_GIVEN
    for column, value in (
        (1, run.id), (2, run.words), (3, run.setting), (4, batch), (5, sequence), (6, checkpointing),
        (7, run.peak or missing), (12, run.reserved or missing), (15, run.outcome), (18, run.trace_peak),
        (19, run.trace_reserved), (20, run.source),
    ):  # fmt: skip
        style = styles[_TYPED[column][not typed]]
        if column == 1 and not typed:
            style = styles.variant("r_no", horizontal="left")
        elif column == 3 and not typed and isinstance(value, int):
            style = styles["r_calc0"]
        elif column == 20:
            # A text that comes later runs on to the right, where it can be read; the row would hide its second line.
            style = styles.variant(_TYPED[column][not typed], indent=1, wrap=wraps)
        put(row, column, None if value == "" else value, style)
    faults, code = extra_cell(runs, at, "faults"), workings_cell(runs, at, "verdict_code")

    def live(formula: str, value: Any, otherwise: str = book.words["check_input"]) -> Raw:
        """Nothing in a spare row, a word while an input is wrong."""
        return Raw(f'=IF($B{number}="","",IF({faults}>0,{quoted(otherwise)},{formula}))', "" if run.spare else value)

    for column, result, style in (
        (8, "traced_allocated", "r_calc3"), (10, "published_allocated", "r_calc3"), (13, "traced_reserved", "r_calc1"),
        (14, "published_reserved", "r_calc1"),
    ):  # fmt: skip
        formula = f"{workings_cell(runs, at, result)}/Bytes_Per_GB"
        if result.startswith("traced"):
            formula = f"IF({workings_cell(runs, at, 'traced_available')}>0,{formula},{quoted(words['not_traced'])})"
        predicted = run.predicted(result)
        shown = words["not_traced"] if predicted is None else predicted
        put(row, column, live(formula, shown), styles.variant(style, shrink=True))
        if column < 12:
            cell, value = page.cell(row, column, column_fixed=True), run.error(result)
            error = f'=IF($B{number}="","",IF(N($H{number})*N({cell})>0,ROUND({cell}/$H{number}-1,4),"{NOT_GIVEN}"))'
            shown = "" if run.spare else NOT_GIVEN if value is None else value
            put(row, column + 1, Raw(error, shown), styles["r_err"])
    verdict = live(f"INDEX(Verdicts_Shown_List,{code})", runs.verdict(run))
    put(row, 16, verdict, styles.variant("r_text", shrink=True))
    put(row, 17, live(extra_cell(runs, at, "call"), call_shown(book, runs.calls[at]), NOT_GIVEN), styles["r_help"])


def _marks(book: Book, end: int) -> None:
    """Exceptions: large errors, wrong calls, wrong inputs; and what is missing stays quiet."""
    ws, styles = book.sheet(TITLE), book.styles
    for column in (8, 10, 13, 14, 16):
        wrong = f"={page.cell(FIRST, column)}={quoted(book.words['check_input'])}"
        page.formula_marks(ws, styles, (FIRST, column, end, column), wrong, "check")
    for column in (9, 11):
        here = page.cell(FIRST, column)
        large = f"=AND(ISNUMBER({here}),ABS({here})>Large_Error)"
        page.formula_marks(ws, styles, (FIRST, column, end, column), large, "large")
    missed = f"={page.cell(FIRST, 17)}={quoted(book.template['validation']['calls'][WRONG])}"
    page.formula_marks(ws, styles, (FIRST, 17, end, 17), missed, "wrong")
    for first, last in ((7, 14), (18, 19)):
        page.formula_marks(ws, styles, (FIRST, first, end, last), f'={page.cell(FIRST, first)}="{NOT_GIVEN}"', "quiet")


def _names(book: Book, end: int) -> None:
    """The columns by name, from the first run to the last spare row: what other programs write into."""
    names = figure_names()
    inputs = input_names(book.job)
    columns = {KEY: 1, **{names[key]: column for key, column in _NAMED.items()}}
    columns |= {inputs[key]: column for column, key in enumerate(VISIBLE, 4)}
    for name, column in columns.items():
        book.define(name, TITLE, FIRST, column, end)


def _validations(book: Book, first: int, end: int) -> None:
    """What may be typed into the rows after the sweep."""
    ws = book.sheet(TITLE)
    top = page.cell(first, 1, column_fixed=True)
    words = book.template["validation"]["typed"]

    def allow(column: int, key: str, slots: dict[str, str], **rule: Any) -> None:
        label, what, right = words[key]
        ws.data_validation(first, column, end, column, {**prompt(book, label, what, filled(right, **slots)), **rule})

    def text(column: int, key: str, longest: int) -> None:
        rule = {"validate": "length", "criteria": "between", "minimum": 0, "maximum": longest}
        allow(column, key, {"longest": str(longest)}, **rule)

    unique = f"=(SUMPRODUCT(({KEY}={top})*1)=1)*(LEN({top})<={LONGEST_ID})=1"
    allow(1, "run", {"longest": str(LONGEST_ID)}, validate="custom", value=unique)
    text(2, "lever", _LONGEST_WORD)
    text(3, "setting", _LONGEST_WORD)
    for column, key in enumerate(VISIBLE, 4):
        cell = page.cell(first, column, column_fixed=True)
        ws.data_validation(first, column, end, column, validation(book, key, cell))
    for column, key in ((7, "measured_peak"), (12, "measured_reserved"), (18, "trace_peak"), (19, "trace_reserved")):
        bounds = {"criteria": "between", "minimum": 0.000001, "maximum": _LARGEST_GB}
        allow(column, key, {"largest": f"{_LARGEST_GB:,}"}, validate="decimal", **bounds)
    ended = {"completed": COMPLETED, "out_of_memory": OUT_OF_MEMORY}
    allow(15, "outcome", ended, validate="list", source=f"={OUTCOMES}")
    text(20, "source", LONGEST_SOURCE)

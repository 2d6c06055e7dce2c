"""Validation workings: a job table whose rows have the inputs of the runs, what is made of each row, and its faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import page
from ..book import Raw
from ..inputs import row_fault, validation
from ..jobtable import NOT_GIVEN, write_job_table
from ..own_runs import COMPLETED, OUT_OF_MEMORY, input_names
from ..runs import RIGHT, UNDECIDED, VISIBLE, WRONG, Run, Runs
from ..words import filled, quoted
from . import checks

if TYPE_CHECKING:
    from ..book import Book

TITLE, WORKINGS = "Validation", "Validation workings"
FIRST = 9  # row of the first run, from 0, on both sheets
OUTCOMES = "Validation_Outcomes_List"
INPUT_COLUMNS = dict(zip(VISIBLE, "EFG", strict=True))  # where those inputs stand on Validation
EXTRA = ("traced", "published", "above", "trace", "outcome", "call", "faults")  # columns beside the job table
_FORMS = ("r_err", "r_err", "r_err", "r_err", "r_text_r", "r_text_r", "r_calc0")


def workings_cell(runs: Runs, at: int, result: str) -> str:
    """The workings' cell of a run's result, as a formula of that row refers to it."""
    return f"'{WORKINGS}'!{page.cell(FIRST + at, 2 + runs.table.column(result), column_fixed=True)}"


def extra_cell(runs: Runs, at: int, extra: str) -> str:
    """The cell of a run in a column beside the job table."""
    return f"'{WORKINGS}'!{page.cell(FIRST + at, _extra_column(runs, extra), column_fixed=True)}"


def extra_area(runs: Runs, extra: str) -> str:
    """A column beside the job table, over all rows."""
    column = _extra_column(runs, extra)
    top = page.cell(FIRST, column, row_fixed=True, column_fixed=True)
    bottom = page.cell(FIRST + len(runs.all) - 1, column, row_fixed=True, column_fixed=True)
    return f"'{WORKINGS}'!{top}:{bottom}"


def call_shown(book: Book, call: str) -> str:
    """What the cells say of a call."""
    return str(book.template["validation"]["calls"][call]) if call else NOT_GIVEN


def _extra_column(runs: Runs, extra: str) -> int:
    return 2 + len(runs.table.columns) + EXTRA.index(extra)


def write(book: Book, runs: Runs) -> None:
    """The sheet, and the names of the inputs in it."""
    ws, table = book.sheet(WORKINGS), runs.table
    after = 2 + len(table.columns)
    faults = after + len(EXTRA)
    last = faults + len(table.inputs) + len(runs.rules)
    page.plain_sheet(
        book,
        WORKINGS,
        kind="wide",
        last_column=last,
        stamp=False,
        sentence=book.template["validation"]["workings"],
        rows_repeated=(0, FIRST - 1),
        freeze=(FIRST, 2),
    )
    rows: list[tuple[Raw, Any, dict[str, Any]]] = []
    for at, run in enumerate(runs.all):
        number = FIRST + at + 1
        ident = Raw(f"=IF('{TITLE}'!$B{number}=\"\",\"\",'{TITLE}'!$B{number})", run.id)
        # While a row is spare, the first run's value keeps its terms numbers.
        cells = {
            key: Raw(
                f"=IF('{TITLE}'!$B{number}=\"\",'{TITLE}'!${column}${FIRST + 1},'{TITLE}'!${column}{number})",
                run.inputs[key],
            )
            for key, column in INPUT_COLUMNS.items()
        }
        rows.append((ident, run.inputs, cells))
    typed = len(runs.sweep)
    write_job_table(
        book,
        WORKINGS,
        table,
        rows,
        heading=book.template["validation"]["beside"]["run"],
        first_row=FIRST,
        typed_from=typed,
    )
    _write_headers(book, runs, after)
    for at, run in enumerate(runs.all):
        _write_extras(book, runs, at, run, after)
        _write_faults(book, runs, at, faults)
    end = FIRST + len(runs.all) - 1
    names = input_names(book.job)
    for at, key in enumerate(table.inputs):
        column = 2 + table.column(key)
        if key in VISIBLE:
            continue
        book.define(names[key], WORKINGS, FIRST, column, end)
        first = page.cell(FIRST + typed, column, column_fixed=True)
        ws.data_validation(FIRST + typed, column, end, column, validation(book, key, first, _highest(runs, typed)))
        wrong = f"={page.cell(FIRST + typed, faults + at, column_fixed=True)}>0"
        page.formula_marks(ws, book.styles, (FIRST + typed, column, end, column), wrong, "check")
    _write_outcomes(book, end + 2)
    page.print_area(ws, end + 4, 1 + len(table.results))


def _highest(runs: Runs, at: int) -> str:
    """The cell of a row with the layers that its model has, which no count of adapted layers may exceed."""
    if "layer_count" not in runs.table.columns:
        return ""
    return page.cell(FIRST + at, 2 + runs.table.column("layer_count"), column_fixed=True)


def _write_headers(book: Book, runs: Runs, after: int) -> None:
    put, styles = book.putter(book.sheet(WORKINGS)), book.styles
    words = book.template["validation"]["beside"]
    fault, unit = words["fault"]
    checked = [*(book.job.inputs[key].label for key in runs.table.inputs)]
    checked += [book.job.terms[rule].label for rule in runs.rules]
    labels = [words[extra] for extra in EXTRA] + [(filled(fault, label=label), unit) for label in checked]
    for column, (label, unit) in enumerate(labels, after):
        put(FIRST - 2, column, label, styles["th_r"])
        put(FIRST - 1, column, unit, styles["th_u"])


def _write_extras(book: Book, runs: Runs, at: int, run: Run, after: int) -> None:
    """What the statistics read: a number or a word, never an error while the inputs are right."""
    put, styles, number = book.putter(book.sheet(WORKINGS)), book.styles, FIRST + at + 1
    ident, measured, traced, published, reserved, upper, ended, trace = (
        f"'{TITLE}'!${column}{number}" for column in "BHJLMNPS"
    )
    code = _at(number, 2 + runs.table.column("verdict_code"))
    outcome = _at(number, _extra_column(runs, "outcome"))
    faults = f"{_at(number, after + len(EXTRA))}:{_at(number, _last_fault(runs))}"
    right, wrong, undecided = (quoted(call_shown(book, call)) for call in (RIGHT, WRONG, UNDECIDED))
    none = quoted(NOT_GIVEN)
    judged = f'IF(({code}<2)+({outcome}="{COMPLETED}")=1,{wrong},{right})'
    spare = f'({ident}="")+(N({trace})*N({measured})<=0)>0'
    formulas: dict[str, tuple[str, Any]] = {
        "traced": (f"=IF(ISNUMBER({traced}),ABS({traced}),{none})", _absolute(run.error("traced_allocated"))),
        "published": (
            f"=IF(ISNUMBER({published}),ABS({published}),{none})",
            _absolute(run.error("published_allocated")),
        ),
        "above": (f"=IF(N({upper})*N({reserved})>0,{upper}/{reserved}-1,{none})", run.above()),
        "trace": (f"=IF({spare},{none},ABS(ROUND({trace}/{measured}-1,4)))", run.trace_error()),
        "outcome": (
            f'=IF({ident}="",{none},IF(OR({ended}="{COMPLETED}",{ended}="{OUT_OF_MEMORY}"),{ended},{none}))',
            run.outcome or None,
        ),
        "call": (f"=IF({outcome}={none},{none},IF({code}=2,{undecided},{judged}))", call_shown(book, run.call())),
        "faults": (f"=IF(ISNUMBER(SUM({faults})),SUM({faults}),1)", 0),
    }
    for column, (extra, style) in enumerate(zip(EXTRA, _FORMS, strict=True), after):
        formula, value = formulas[extra]
        put(FIRST + at, column, Raw(formula, NOT_GIVEN if value is None else value), styles[style])


def _absolute(value: float | None) -> float | None:
    return None if value is None else abs(value)


def _last_fault(runs: Runs) -> int:
    return 1 + len(runs.table.columns) + len(EXTRA) + len(runs.table.inputs) + len(runs.rules)


def _at(number: int, column: int) -> str:
    return page.cell(number - 1, column, column_fixed=True)


def _write_faults(book: Book, runs: Runs, at: int, first: int) -> None:
    """One cell an input and one a rule between inputs: 1 where the row breaks it."""
    put, style, table = book.putter(book.sheet(WORKINGS)), book.styles["r_calc0"], runs.table
    number = FIRST + at + 1
    formulas = []
    for key in table.inputs:
        lowest, highest = checks.bounds(book.job, key)
        if isinstance(getattr(book.job.inputs[key].domain, "high", None), str):
            highest = _highest(runs, at)
        formulas.append(row_fault(book, key, _at(number, 2 + table.column(key)), (lowest, highest)))
    formulas += [f"=1-{_at(number, 2 + table.column(rule))}" for rule in runs.rules]
    for column, formula in enumerate(formulas, first):
        put(FIRST + at, column, Raw(formula, 0), style)


def _write_outcomes(book: Book, row: int) -> None:
    """What the outcome of a run may be: the list behind the dropdown on Validation."""
    put, styles = book.putter(book.sheet(WORKINGS)), book.styles
    put(row, 1, book.template["validation"]["beside"]["outcomes"], styles["th"])
    for at, words in enumerate((COMPLETED, OUT_OF_MEMORY), 1):
        put(row + at, 1, words, styles["r_label"])
    book.define(OUTCOMES, WORKINGS, row + 1, 1, row + 2)

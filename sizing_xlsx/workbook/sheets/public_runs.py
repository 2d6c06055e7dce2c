"""Other people's runs: a block of Validation below its charts, its workings, and on Notes what each run rests on.

The visible rows have the columns of the runs above them where both have the same figure. Measured figures stand
there; inputs stand on "Public workings", locked: a published run is what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import page
from ..book import Raw, told
from ..jobtable import NOT_GIVEN, write_job_table
from ..page import Tile
from ..public_runs import AVAILABLE, RESULT, PublicRun, PublicRuns
from ..words import filled, quoted
from .evidence import percent

if TYPE_CHECKING:
    from ..book import Book

VALIDATION, WORKINGS = "Validation", "Public workings"
FIRST = 9  # row of the first run on the workings, from 0
_PRINTED = 7  # last column of the workings that is printed: the results and the first inputs
_SMALL_TEXT = 1.2  # characters of 10 points to one of a column's width, at least
_LINE, _MARGIN = 12.5, 4  # points: a line of 10 points, and the room around a row
_LONGEST_MODEL = 38  # characters that its two columns hold
_GROUPS = ((1, 6), (7, 9), (10, 18), (19, 20))  # first and last column of Validation; the last has no name
_HEADERS = (  # column of Validation, style
    (1, "th"), (2, "th"), (4, "th_r"), (5, "th_r"), (6, "th_i"), (7, "th_r"), (8, "th_r"), (9, "th_r"), (10, "th_i"),
    (13, "th_i"), (17, "th_i"), (19, "th_i"), (20, "th_i"),
)  # fmt: skip
_INPUTS = (  # column of Validation, input, style
    (4, "batch_size", "r_calc0"), (5, "sequence_length", "r_calc0"), (6, "activation_checkpointing", "r_text_i"),
    (13, "training_stack", "r_help"),
)  # fmt: skip
_EXTRA = ("explained", "error", "near", "far")  # columns beside the job table


class _Statistic(NamedTuple):
    """A figure of all runs together: its name, label, formula, value and style."""

    name: str
    label: str
    formula: str
    value: Any
    style: str


def write(book: Book, runs: PublicRuns, row: int, last: int) -> int:
    """The block on Validation from a row on, and the workings; returns the row of its last line."""
    ws, styles, heights = book.sheet(VALIDATION), book.styles, book.look["rows"]
    put, spec = book.putter(ws), book.template["public_runs"]
    row = page.section(ws, styles, row, last_column=last, name=spec["name"], put=put)
    for at, (style, height) in enumerate(
        (("strip", "tile_label"), ("strip", "tile_value"), ("strip", "tile_note"), ("strip_edge", "strip_edge"))
    ):
        page.fill_row(ws, row + at, 0, last, styles[style], heights[height])
    page.tile_row(ws, styles, row, _tiles(book, runs), put)
    header = row + 5
    ws.set_row(header - 1, heights["header"])
    for (start, stop), text in zip(_GROUPS, (*spec["column_groups"], ""), strict=True):
        for column in range(start, stop + 1):
            put(header - 1, column, text if column == start else "", styles["th_group"])
    page.fill_row(ws, header, 1, last - 1, styles["th"], heights["header"])
    for (column, style), text in zip(_HEADERS, spec["columns"], strict=True):
        put(header, column, text, styles.variant(style, wrap=False))
    first = header + 1
    for at, run in enumerate(runs.all):
        _row(book, runs, at, run, first + at)
    end = first + len(runs.all) - 1
    _marks(book, first, end)
    for offset, words in enumerate((spec["note"], spec["not_predicted"]), 1):
        put(end + offset, 1, words, styles["help"])
        ws.set_row(end + offset, heights["table"])
    _write_workings(book, runs, first)
    return end + 2


def _row(book: Book, runs: PublicRuns, at: int, public: PublicRun, row: int) -> None:
    ws, styles, given, words = book.sheet(VALIDATION), book.styles, public.row, book.template["public_runs"]
    put, number = book.putter(ws), row + 1
    page.fill_row(ws, row, 1, 20, styles["r_label"])
    lines = _lines(given["source"], book.look["sheets"][VALIDATION]["widths"][20])
    ws.set_row(row, max(book.look["rows"]["table"], _LINE * lines + _MARGIN))
    quiet = styles.variant("r_help", indent=1, wrap=False)
    put(row, 1, given["id"], styles.variant("r_no", horizontal="left"))
    put(row, 2, model_shown(given["model"]), styles.variant("r_help", colour="ink", wrap=False))
    for column, key, style in _INPUTS:
        form = quiet if style == "r_help" else styles[style]
        put(row, column, Raw(f"={_workings_cell(runs, at, key)}", public.run.inputs[key]), form)
    measured = words["ran_out"] if public.ran_out else given["measured_gb"]
    put(row, 7, measured, styles.variant("r_calc3", shrink=True))
    traced = f"{_workings_cell(runs, at, RESULT)}/Bytes_Per_GB"
    formula = f"=IF({_workings_cell(runs, at, AVAILABLE)}>0,{traced},{quoted(words['not_traced'])})"
    predicted = public.run.predicted(RESULT)
    put(
        row,
        8,
        Raw(formula, words["not_traced"] if predicted is None else predicted),
        styles.variant("r_calc3", shrink=True),
    )
    error = f'=IF(COUNT($H{number}:$I{number})=2,ROUND($I{number}/$H{number}-1,4),"{NOT_GIVEN}")'
    put(row, 9, Raw(error, NOT_GIVEN if public.error is None else public.error), styles["r_err"])
    # What nests inside the format goes without saying here; the workings have its whole name.
    put(row, 10, public.run.inputs["base_storage_format"].partition(" (")[0], quiet)
    put(row, 17, given["card"], quiet)
    yes, no = words["explained"]
    formula = f"=IF({_extra_cell(runs, at, 'explained')}>0,{quoted(yes)},{quoted(no)})"
    explained = Raw(formula, yes if public.explained else no)
    put(row, 19, explained, styles["r_text_i"])
    put(row, 20, given["source"], styles.variant("r_help", indent=1, wrap=lines > 1))


def _lines(text: str, width: float) -> int:
    """Lines of a text of 10 points in a column; a path breaks after spaces and hyphens only."""
    room, lines, used = int(width * _SMALL_TEXT), 1, 0
    for piece in re.findall(r"[^ -]*[ -]*", text):
        if used and used + len(piece.rstrip()) > room:
            lines, used = lines + 1, 0
        used += len(piece)
    return lines


def model_shown(model: str) -> str:
    """The name of a model without its owner, as long as its cells are wide."""
    name = model.rpartition("/")[2]
    return name if len(name) <= _LONGEST_MODEL else name[: _LONGEST_MODEL - 1] + "…"


def _marks(book: Book, first: int, end: int) -> None:
    """Exceptions: large errors and runs that are not explained; what is missing stays quiet."""
    ws, styles = book.sheet(VALIDATION), book.styles
    here = page.cell(first, 9)
    page.formula_marks(ws, styles, (first, 9, end, 9), f"=AND(ISNUMBER({here}),ABS({here})>Large_Error)", "large")
    page.formula_marks(ws, styles, (first, 9, end, 9), f'={here}="{NOT_GIVEN}"', "quiet")
    unexplained = f"={page.cell(first, 19)}={quoted(book.template['public_runs']['explained'][1])}"
    page.formula_marks(ws, styles, (first, 19, end, 19), unexplained, "wrong")


# -- the strip


def _said(name: str, digits: int) -> str:
    """A named share as a percentage, in words; the word for nothing passes through."""
    return f'IF(ISNUMBER({name}),FIXED(ROUND({name}*Percent_Count,{digits})+0,{digits})&"%",{name})'


def _tiles(book: Book, runs: PublicRuns) -> list[Tile]:
    values = {statistic.name: statistic.value for statistic in _statistics(book, runs)}
    words = book.template["public_runs"]["strip"]
    limit, detail = book.template["public_runs"]["limits"]

    def figure(name: str) -> Raw:
        return Raw(f"={name}", values[name])

    def share(name: str, digits: int = 2) -> Raw:
        value = values[name]
        return Raw(f"={_said(name, digits)}", value if isinstance(value, str) else percent(value, digits))

    predicted, far = figure("Public_Runs_Predicted"), figure("Public_Runs_Unexplained")
    return [
        Tile(
            1,
            2,
            words["predicted"],
            told(words["predicted_count"], count=predicted, all=figure("Public_Runs_Count")),
            words["predicted_note"],
            "tile_text",
        ),
        Tile(3, 5, words["median"], share("Public_Median_Error"), words["median_note"], "tile_text"),
        Tile(
            6,
            8,
            words["near"],
            told(words["near_count"], count=figure("Public_Runs_Near"), all=predicted),
            told(words["near_note"], share=share("Public_Near_Share", 0)),
            "tile_text",
        ),
        Tile(
            9,
            12,
            words["worst"],
            share("Public_Worst_Error"),
            told(words["worst_note"], run=figure("Public_Worst_Run")),
            "tile_text",
        ),
        Tile(
            13,
            15,
            words["unexplained"],
            Raw(f'={far.inner}&""', str(far.value)),
            told(words["unexplained_note"], share=share("Public_Unexplained_Error")),
            "tile_text",
        ),
        Tile(16, 20, words["limits"], limit, detail, "tile_text"),
    ]


# -- the workings


def _extra_column(runs: PublicRuns, extra: str) -> int:
    return 2 + len(runs.table.columns) + _EXTRA.index(extra)


def _cell(at: int, column: int) -> str:
    return f"'{WORKINGS}'!{page.cell(FIRST + at, column, column_fixed=True)}"


def _workings_cell(runs: PublicRuns, at: int, symbol: str) -> str:
    """The workings' cell of an input or result of a run, as a formula of that row refers to it."""
    return _cell(at, 2 + runs.table.column(symbol))


def _extra_cell(runs: PublicRuns, at: int, extra: str) -> str:
    return _cell(at, _extra_column(runs, extra))


def _area(runs: PublicRuns, column: int) -> str:
    """A column of the workings, over all runs."""
    ends = (page.cell(FIRST + at, column, row_fixed=True, column_fixed=True) for at in (0, len(runs.all) - 1))
    return ":".join(ends)


def _write_workings(book: Book, runs: PublicRuns, first: int) -> None:
    """The job table, the errors beside it, and the statistics below. first: the row of the first run on Validation."""
    words = book.template["public_runs"]
    after = _extra_column(runs, _EXTRA[0])
    page.plain_sheet(
        book,
        WORKINGS,
        kind="wide",
        last_column=after + len(_EXTRA),
        stamp=False,
        sentence=words["workings"],
        rows_repeated=(0, FIRST - 1),
        freeze=(FIRST, 2),
    )
    rows: list[tuple[str | Raw, Any, dict[str, Any]]] = [(run.row["id"], run.run.inputs, {}) for run in runs.all]
    write_job_table(book, WORKINGS, runs.table, rows, heading=words["beside"]["run"], first_row=FIRST)
    ws, styles = book.sheet(WORKINGS), book.styles
    put = book.putter(ws)
    for column, (label, unit) in enumerate((words["beside"][extra] for extra in _EXTRA), after):
        put(FIRST - 2, column, label, styles["th_r"])
        put(FIRST - 1, column, unit, styles["th_u"])
    for at, run in enumerate(runs.all):
        _write_extras(book, runs, at, run, first + at + 1)
    row = FIRST + len(runs.all) + 1
    put(row, 1, words["together"]["name"], styles["th"])
    put(row, 2, "", styles["th_r"])
    for at, statistic in enumerate(_statistics(book, runs), row + 1):
        put(at, 1, statistic.label, styles["r_label"])
        content = Raw(statistic.formula, statistic.value) if statistic.formula else statistic.value
        put(at, 2, content, styles[statistic.style])
        book.define(statistic.name, WORKINGS, at, 2)
        row = at
    page.print_area(ws, row, _PRINTED)


def _write_extras(book: Book, runs: PublicRuns, at: int, public: PublicRun, number: int) -> None:
    """Whether a run is explained, and its error without a sign: a number, or a word where it does not belong."""
    put, styles, row = book.putter(book.sheet(WORKINGS)), book.styles, FIRST + at
    explained = page.cell(row, _extra_column(runs, "explained"), column_fixed=True)
    error = page.cell(row, _extra_column(runs, "error"), column_fixed=True)
    value = NOT_GIVEN if public.error is None else abs(public.error)
    put(row, _extra_column(runs, "explained"), int(public.explained), styles["r_calc0"])
    shown = f"'{VALIDATION}'!$J{number}"
    put(
        row,
        _extra_column(runs, "error"),
        Raw(f'=IF(ISNUMBER({shown}),ABS({shown}),"{NOT_GIVEN}")', value),
        styles["r_err"],
    )
    for extra, sign, wanted in (("near", ">", public.explained), ("far", "<=", not public.explained)):
        formula = f'=IF({explained}{sign}0,{error},"{NOT_GIVEN}")'
        put(row, _extra_column(runs, extra), Raw(formula, value if wanted else NOT_GIVEN), styles["r_err"])


def _statistics(book: Book, runs: PublicRuns) -> list[_Statistic]:
    near, words = book.template["public_runs"]["near"], book.template["public_runs"]["together"]
    ids, measured = _area(runs, 1), _area(runs, _extra_column(runs, "explained"))
    error, close, far = (_area(runs, _extra_column(runs, extra)) for extra in ("error", "near", "far"))
    errors, explained = runs.errors(), runs.errors(lambda run: run.explained)
    unexplained = runs.errors(lambda run: not run.explained)

    def some(function: str, area: str) -> str:
        return f'=IF(COUNT({area})=0,"{NOT_GIVEN}",{function}({area}))'

    def known(function: Callable[[Sequence[float]], float], values: Sequence[float]) -> float | str:
        return function(values) if values else NOT_GIVEN

    worst = known(max, explained)
    name = next((run.row["id"] for run in runs.all if run.explained and _absolute(run) == worst), NOT_GIVEN)
    return [
        _Statistic("Public_Runs_Count", words["count"], f"=COUNT({measured})", len(runs.all), "r_calc0"),
        _Statistic("Public_Runs_Predicted", words["predicted"], f"=COUNT({error})", len(errors), "r_calc0"),
        _Statistic("Public_Median_Error", words["median"], some("MEDIAN", error), known(median, errors), "r_err"),
        _Statistic("Public_Near_Share", words["share"], "", near, "r_err"),
        _Statistic(
            "Public_Runs_Near",
            words["near"],
            f'=COUNTIF({error},"<="&Public_Near_Share)',
            sum(value <= near for value in errors),
            "r_calc0",
        ),
        _Statistic("Public_Worst_Error", words["worst"], some("MAX", close), worst, "r_err"),
        _Statistic(
            "Public_Worst_Run",
            words["worst_run"],
            f'=IF(COUNT({close})=0,"{NOT_GIVEN}",INDEX({ids},MATCH(Public_Worst_Error,{close},0)))',
            name,
            "r_text_r",
        ),
        _Statistic(
            "Public_Runs_Unexplained",
            words["unexplained"],
            f"=COUNTIF({measured},0)",
            sum(not run.explained for run in runs.all),
            "r_calc0",
        ),
        _Statistic(
            "Public_Unexplained_Error",
            words["unexplained_error"],
            some("MAX", far),
            known(max, unexplained),
            "r_err",
        ),
    ]


def _absolute(run: PublicRun) -> float | None:
    return None if run.error is None else abs(run.error)


# -- the notes


def write_notes(book: Book, runs: PublicRuns, row: int, last: int) -> int:
    """What each run states, what was assumed for it, and what ran it; returns the next free row of Notes."""
    title = "Notes"
    ws, styles, widths = book.sheet(title), book.styles, book.look["sheets"][title]["widths"]
    put, spec = book.putter(ws), book.template["public_runs"]
    row = page.section(ws, styles, row, last_column=last, name=spec["notes"], put=put)
    for run in runs.all:
        name, note, versions = (run.row[key] for key in ("id", "note", "versions"))
        ws.set_row(row, page.wrapped_height((note, widths[2] / 1.1), (versions, widths[3])))
        put(
            row,
            1,
            filled(spec["group"], run=name, group=run.row["group"]),
            styles.variant("label_b", vertical="top", wrap=True),
        )
        put(row, 2, note, styles.variant("text_w", vertical="top"))
        put(row, 3, versions, styles.variant("help", vertical="top", wrap=True, indent=1))
        row += 1
    put(row, 2, spec["not_predicted"], styles.variant("text_w", vertical="top"))
    ws.set_row(row, page.wrapped_height((spec["not_predicted"], widths[2] / 1.1)))
    return row + 1

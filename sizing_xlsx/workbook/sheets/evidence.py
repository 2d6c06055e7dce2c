"""The evidence of the Validation sheet: its answer strip, and its two charts with their data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.primitives import fixed
from .. import charts, page
from ..book import Raw
from ..page import Tile
from ..runs import Run, Runs

if TYPE_CHECKING:
    from ..book import Book

TITLE, WORKINGS, DATA = "Validation", "Validation workings", "Chart data"
FIRST = 9  # row of the first run, from 0, on both sheets
EXTRA = {
    "traced": "Traced error, absolute",
    "published": "Published error, absolute",
    "above": "Upper estimate above measured",
}
_DATA_ROW = 55  # where the charts' figures begin on Chart data


def workings_cell(runs: Runs, at: int, result: str) -> str:
    """The workings' cell of a run's result, as a formula refers to it."""
    return f"'{WORKINGS}'!{page.cell(FIRST + at, 2 + runs.table.column(result), column_fixed=True)}"


def _workings_area(runs: Runs, extra: str) -> str:
    """A column that the workings have beside the job table, over all runs."""
    column = 2 + len(runs.table.columns) + list(EXTRA).index(extra)
    top = page.cell(FIRST, column, row_fixed=True, column_fixed=True)
    bottom = page.cell(FIRST + len(runs.all) - 1, column, row_fixed=True, column_fixed=True)
    return f"'{WORKINGS}'!{top}:{bottom}"


def _percent(value: float, digits: int) -> str:
    return f"{fixed(value * 100, digits)}%"


def _fixed(function: str, area: str, digits: int) -> str:
    return f"FIXED(ROUND({function}({area})*Percent_Count,{digits})+0,{digits})"


def write_strip(book: Book, runs: Runs, last: int) -> None:
    """Worst and median errors, how many calls were right, and whether the upper estimate ever was too low."""
    top, bottom = FIRST + 1, FIRST + len(runs.all)
    calls, outcomes, batches = f"$R${top}:$R${bottom}", f"$P${top}:$P${bottom}", f"$E${top}:$E${bottom}"
    done, right, wrong = len(runs.completed), runs.calls.count("Right"), runs.calls.count("Wrong")
    failed, undecided = len(runs.all) - done, runs.calls.count("Undecided")
    limit, detail = book.template["validation"]["limits"]
    sentence = Raw(
        f'=IF(COUNTIF({calls},"Wrong")=0,"No fit call was wrong: ",COUNTIF({calls},"Wrong")&" fit calls were wrong: ")'
        f'&COUNTIF({outcomes},"Completed")&" runs completed, "'
        f'&COUNTIF({outcomes},"Out of memory")&" ran out of memory."',
        (f"{wrong} fit calls were wrong: " if wrong else "No fit call was wrong: ")
        + f"{done} runs completed, {failed} ran out of memory.",
    )
    page.strip(
        book.sheet(TITLE),
        book.styles,
        last_column=last,
        title=book.template["validation"]["title"],
        sentence=sentence,
        stamp=book.template["validation"]["stamp"],
        put=book.putter(book.sheet(TITLE)),
        tiles=[
            _error_tile(runs, 1, 2, "traced"),
            _error_tile(runs, 3, 5, "published"),
            Tile(
                6,
                8,
                "Fit calls that were right",
                Raw(f'=COUNTIF({calls},"Right")&" of "&COUNT({batches})', f"{right} of {len(runs.all)}"),
                Raw(
                    f'=COUNTIF({calls},"Undecided")&" undecided, "&COUNTIF({calls},"Wrong")&" wrong"',
                    f"{undecided} undecided, {wrong} wrong",
                ),
                "tile_text",
            ),
            _band_tile(runs, 9, 12),
            Tile(13, 17, "What this does not show", limit, detail, "tile_text"),
        ],
    )


def _error_tile(runs: Runs, first: int, last: int, family: str) -> Tile:
    area, result = _workings_area(runs, family), f"{family}_allocated"
    return Tile(
        first,
        last,
        f"Worst error, {family}",
        Raw(f'={_fixed("MAX", area, 2)}&"%"', _percent(runs.worst(result), 2)),
        Raw(f'="median "&{_fixed("MEDIAN", area, 2)}&"%"', f"median {_percent(runs.middle(result), 2)}"),
        "tile_text",
    )


def _band_tile(runs: Runs, first: int, last: int) -> Tile:
    area, above = _workings_area(runs, "above"), [run.above() for run in runs.completed]
    never = sum(1 for share in above if share >= 0)
    low, high = _percent(min(above), 0).rstrip("%"), _percent(max(above), 0)
    return Tile(
        first,
        last,
        "Upper estimate never too low",
        Raw(f'=COUNTIF({area},">=0")&" of "&COUNT({area})', f"{never} of {len(above)}"),
        Raw(
            f'={_fixed("MIN", area, 0)}&" to "&{_fixed("MAX", area, 0)}&"% above measured reserved"',
            f"{low} to {high} above measured reserved",
        ),
        "tile_text",
    )


def write_charts(book: Book, runs: Runs, row: int) -> None:
    """Predicted against measured, and the error of each run; their figures go to Chart data."""
    levers = book.template["validation"]["levers"]
    count, lines = len(runs.all), _DATA_ROW + len(runs.all) + 3
    titles = lines + 4
    _write_points(book, runs, levers)
    _write_lines(book, runs, lines)
    put, label = book.putter(book.sheet(DATA)), book.styles["label"]
    put(titles, 1, "Traced estimates lie on the line of measured peaks", label)
    put(titles + 1, 1, _error_title(runs), label)

    def column(at: int) -> list[Any]:
        return [DATA, _DATA_ROW + 1, at, _DATA_ROW + count, at]

    def line(at: int, name: str) -> charts.Points:
        return charts.Points(name, [DATA, lines + 1, 1, lines + 2, 1], [DATA, lines + 1, at, lines + 2, at])

    ws, looks = book.sheet(TITLE), book.look["charts"]
    chart = charts.predicted_against_measured(
        book.workbook,
        book.look,
        title=[DATA, titles, 1],
        exact=line(2, "Exact"),
        above=line(3, "10% above or below"),
        below=line(4, "10% below"),
        levers=[charts.Points(lever["name"], column(1), column(at)) for at, lever in enumerate(levers, 2)],
    )
    alt = "Traced peak against measured peak of every completed run, with lines 10% above and below"
    charts.place(ws, row, 1, chart, size=looks["predicted_against_measured"]["size"], alt=alt)
    errors = 2 + len(levers)
    chart = charts.error_by_run(
        book.workbook,
        book.look,
        title=[DATA, titles + 1, 1],
        traced=charts.Points("Traced", column(1), column(errors)),
        published=charts.Points("Published", column(1), column(errors + 1)),
    )
    alt = "Error of the traced and the published prediction, run by run"
    charts.place(ws, row, 9, chart, size=looks["error_by_run"]["size"], alt=alt)


def _write_points(book: Book, runs: Runs, levers: list[dict[str, Any]]) -> None:
    put, styles = book.putter(book.sheet(DATA)), book.styles
    headers = ("Measured", *(lever["name"] for lever in levers), "Traced error", "Published error")
    for column, text in enumerate(headers, 1):
        put(_DATA_ROW, column, text, styles["th_r"])
    for at, run in enumerate(runs.all):
        row = _DATA_ROW + 1 + at
        put(row, 1, _or_missing(run, f"'{TITLE}'!$H{FIRST + at + 1}", run.peak), styles["r_calc3"])
        for column, lever in enumerate(levers, 2):
            mine = run.measured["lever"] in lever["keys"] and not run.failed
            shown = Raw(f"='{TITLE}'!$I{FIRST + at + 1}", run.predicted("traced_allocated"))
            put(row, column, shown if mine else Raw("=NA()", "#N/A"), styles["r_calc3"])
        for column, (source, result) in enumerate((("J", "traced"), ("L", "published")), 2 + len(levers)):
            error = None if run.failed else run.error(f"{result}_allocated")
            put(row, column, _or_missing(run, f"'{TITLE}'!${source}{FIRST + at + 1}", error), styles["r_err"])


def _or_missing(run: Run, cell: str, value: float | None) -> Raw:
    """A figure of a run, or #N/A, which a chart leaves out."""
    return Raw(f"=IF(ISNUMBER({cell}),{cell},NA())", "#N/A" if value is None else value)


def _write_lines(book: Book, runs: Runs, row: int) -> None:
    """The exact line and the band around it, from a little below the smallest peak to a little above the largest."""
    put, styles = book.putter(book.sheet(DATA)), book.styles
    for column, text in enumerate(("Line", "Exact", "10% above", "10% below"), 1):
        put(row, column, text, styles["th_r"])
    peaks = [run.peak for run in runs.completed if run.peak is not None]
    area = f"'{TITLE}'!$H${FIRST + 1}:$H${FIRST + len(runs.all)}"
    band = book.values["chart_band"]
    for at, (function, sign, factor, peak) in enumerate(
        (("MIN", "-", 1 - band, min(peaks)), ("MAX", "+", 1 + band, max(peaks))), 1
    ):
        end, number = peak * factor, row + at + 1
        put(row + at, 1, Raw(f"={function}({area})*(1{sign}Chart_Band)", end), styles["r_calc3"])
        put(row + at, 2, Raw(f"=$B{number}", end), styles["r_calc3"])
        put(row + at, 3, Raw(f"=$B{number}*(1+Chart_Band)", end * (1 + band)), styles["r_calc3"])
        put(row + at, 4, Raw(f"=$B{number}*(1-Chart_Band)", end * (1 - band)), styles["r_calc3"])


def _error_title(runs: Runs) -> Raw:
    traced, published = (_workings_area(runs, family) for family in ("traced", "published"))
    formula = (
        f'="Traced is within "&{_fixed("MAX", traced, 2)}&"%; published is up to "'
        f'&{_fixed("MAX", published, 1)}&"% off"'
    )
    words = (
        f"Traced is within {_percent(runs.worst('traced_allocated'), 2)}; "
        f"published is up to {_percent(runs.worst('published_allocated'), 1)} off"
    )
    return Raw(formula, words)

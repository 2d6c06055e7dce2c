"""The evidence of the Validation sheet: its answer strip, and its two charts with their data.

All of it counts every row that holds a run, and passes over rows that are spare, faulty or not traced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from ...formula.primitives import fixed
from ...formula.render import public_name
from .. import charts, page
from ..book import Raw, told
from ..jobtable import NOT_GIVEN
from ..own_runs import COMPLETED, OUT_OF_MEMORY
from ..page import Tile
from ..runs import OWN, RIGHT, UNDECIDED, WRONG, Runs
from ..words import filled, quoted, spelled
from .run_workings import FIRST, TITLE, extra_area

if TYPE_CHECKING:
    from ..book import Book

Words = Mapping[str, str]  # of a table of validation.toml

DATA = "Chart data"
_DATA_ROW = 55  # where the charts' figures begin on Chart data


def percent(value: float, digits: int) -> str:
    """A share as a percentage, in words."""
    return f"{fixed(value * 100, digits)}%"


def _fixed(function: str, area: str, digits: int) -> str:
    return f"FIXED(ROUND({function}({area})*Percent_Count,{digits})+0,{digits})"


def _share(function: str, area: str, digits: int) -> str:
    """A statistic of an area as a percentage, in words."""
    return _fixed(function, area, digits) + '&"%"'


def _some(area: str, formula: str, otherwise: str = NOT_GIVEN) -> str:
    """A formula that gives way to words while an area holds no number."""
    return f"IF(COUNT({area})=0,{quoted(otherwise)},{formula})"


def _said(function: Callable[[Sequence[float]], float], values: Sequence[float], digits: int) -> str:
    return percent(function(values), digits) if values else NOT_GIVEN


def write_strip(book: Book, runs: Runs, last: int) -> None:
    """Worst and median errors, how many calls were right, and whether the upper estimate ever was too low."""
    calls, outcomes = f"$R${FIRST + 1}:$R${FIRST + len(runs.all)}", extra_area(runs, "outcome")
    words = book.template["validation"]
    strip, (limit, detail) = words["strip"], words["limits"]
    right, wrong, undecided = (
        Raw(f"=COUNTIF({calls},{quoted(words['calls'][call])})", runs.calls.count(call))
        for call in (RIGHT, WRONG, UNDECIDED)
    )
    completed, failed = (
        Raw(f'=COUNTIF({outcomes},"{outcome}")', sum(run.outcome == outcome for run in runs.all))
        for outcome in (COMPLETED, OUT_OF_MEMORY)
    )
    some_wrong = told(strip["some_wrong"], count=wrong)
    ended = told(strip["ended"], completed=completed, failed=failed)
    sentence = Raw(
        f"=IF({wrong.inner}=0,{quoted(strip['none_wrong'])},{some_wrong.inner})&{ended.inner}",
        (some_wrong.value if wrong.value else strip["none_wrong"]) + ended.value,
    )
    traced, published = _error_tile(strip, runs, 1, 2, "traced"), _error_tile(strip, runs, 3, 5, "published")
    band = _band_tile(strip, runs, 9, 12)
    called = Raw(
        f"=({'+'.join(count.inner for count in (right, wrong, undecided))})",
        right.value + wrong.value + undecided.value,
    )
    page.strip(
        book.sheet(TITLE),
        book.styles,
        last_column=last,
        title=words["title"],
        sentence=sentence,
        stamp=words["stamp"],
        put=book.putter(book.sheet(TITLE)),
        tiles=[
            traced,
            published,
            Tile(
                6,
                8,
                strip["calls"],
                told(strip["calls_right"], count=right, all=called),
                told(strip["calls_other"], undecided=undecided, wrong=wrong),
                "tile_text",
            ),
            band,
            _trace_tile(strip, runs, 13, 15),
            Tile(16, 20, strip["limits"], limit, detail, "tile_text"),
        ],
    )
    _tell(book, "validation_finding", 1, 1, sentence)
    for tile, value, note in (
        (traced, "traced_worst_error", "traced_median_error"),
        (published, "published_worst_error", "published_median_error"),
        (band, "reserve_never_low", "reserve_band"),
    ):
        _tell(book, value, 4, tile.first, tile.value)
        _tell(book, note, 5, tile.first, tile.note)


def _tile(words: Words, first: int, last: int, label: str, area: str, values: Sequence[float], otherwise: str) -> Tile:
    """The worst and the median of a column of errors."""
    middle = spelled(words["median"], share=_share("MEDIAN", area, 2))
    note = filled(words["median"], share=_said(median, values, 2)) if values else otherwise
    return Tile(
        first,
        last,
        label,
        Raw(f"={_some(area, _share('MAX', area, 2))}", _said(max, values, 2)),
        Raw(f"={_some(area, middle, otherwise)}", note),
        "tile_text",
    )


def _tell(book: Book, symbol: str, row: int, column: int, told: Raw) -> None:
    """Name a text of the strip, so that other sheets can say it too."""
    book.define(public_name(symbol), TITLE, row, column)
    book.external(symbol, "text", told.value)


def _error_tile(words: Words, runs: Runs, first: int, last: int, family: str) -> Tile:
    values = runs.known("error", f"{family}_allocated")
    return _tile(words, first, last, words[family], extra_area(runs, family), values, words["nothing"])


def _trace_tile(words: Words, runs: Runs, first: int, last: int) -> Tile:
    area, values = extra_area(runs, "trace"), runs.known("trace_error")
    return _tile(words, first, last, words["trace"], area, values, words["no_trace"])


def _band_tile(words: Words, runs: Runs, first: int, last: int) -> Tile:
    area, above = extra_area(runs, "above"), runs.known("above")
    never = sum(1 for share in above if share >= 0)
    low, high = _said(min, above, 0).rstrip("%"), _said(max, above, 0)
    band, nothing = words["reserve_band"], words["nothing"]
    formula = spelled(band, low=_fixed("MIN", area, 0), high=_share("MAX", area, 0))
    counted = Raw(f'=COUNTIF({area},">=0")', never)
    return Tile(
        first,
        last,
        words["reserve"],
        told(words["never_low"], count=counted, all=Raw(f"=COUNT({area})", len(above))),
        Raw(f"={_some(area, formula, nothing)}", filled(band, low=low, high=high) if above else nothing),
        "tile_text",
    )


def write_charts(book: Book, runs: Runs, row: int) -> None:
    """Predicted against measured, and the error of each run; their figures go to Chart data."""
    words, levers = book.template["validation"]["charts"], book.template["validation"]["levers"]
    count, lines = len(runs.all), _DATA_ROW + len(runs.all) + 3
    titles = lines + 4
    book.chart_data_runs, book.chart_data_end = _DATA_ROW, titles + 1
    _write_points(book, runs, levers)
    _write_lines(book, runs, lines)
    put, label = book.putter(book.sheet(DATA)), book.styles["label"]
    put(titles, 1, _line_title(book, runs), label)
    put(titles + 1, 1, _error_title(words, runs), label)

    def column(at: int) -> list[Any]:
        return [DATA, _DATA_ROW + 1, at, _DATA_ROW + count, at]

    def line(at: int, name: str) -> charts.Points:
        return charts.Points(name, [DATA, lines + 1, 1, lines + 2, 1], [DATA, lines + 1, at, lines + 2, at])

    ws, looks = book.sheet(TITLE), book.look["charts"]
    chart = charts.predicted_against_measured(
        book.workbook,
        book.look,
        title=[DATA, titles, 1],
        exact=line(2, words["exact"]),
        above=line(3, words["band"]),
        below=line(4, words["below"]),
        levers=[charts.Points(lever["name"], column(1), column(at)) for at, lever in enumerate(levers, 2)],
    )
    charts.place(ws, row, 1, chart, size=looks["predicted_against_measured"]["size"], alt=words["alt"])
    errors = 2 + len(levers)
    chart = charts.error_by_run(
        book.workbook,
        book.look,
        title=[DATA, titles + 1, 1],
        traced=charts.Points(words["traced"], column(1), column(errors)),
        published=charts.Points(words["published"], column(1), column(errors + 1)),
    )
    charts.place(ws, row, 9, chart, size=looks["error_by_run"]["size"], alt=words["errors_alt"])


def _write_points(book: Book, runs: Runs, levers: list[dict[str, Any]]) -> None:
    put, styles, words = book.putter(book.sheet(DATA)), book.styles, book.template["validation"]["charts"]
    headers = (words["measured"], *(lever["name"] for lever in levers), words["traced_error"], words["published_error"])
    book.sheet(DATA).set_row(_DATA_ROW, book.look["rows"]["header_two_lines"])
    for column, text in enumerate(headers, 1):
        put(_DATA_ROW, column, text, styles["th_r"])
    for at, run in enumerate(runs.all):
        row, number = _DATA_ROW + 1 + at, FIRST + at + 1
        errors = run.error("traced_allocated"), run.error("published_allocated")
        # A run without a published error has no measured peak, or is no run at all.
        shown = _or_missing(f"'{TITLE}'!$L{number}", f"'{TITLE}'!$H{number}", None if errors[1] is None else run.peak)
        put(row, 1, shown, styles["r_calc3"])
        lever_of = run.lever if at < len(runs.sweep) else OWN
        for column, lever in enumerate(levers, 2):
            cell = Raw("=NA()", "#N/A")
            if lever_of in lever["keys"]:
                predicted = None if errors[0] is None else run.predicted("traced_allocated")
                cell = _or_missing(f"'{TITLE}'!$J{number}", f"'{TITLE}'!$I{number}", predicted)
            put(row, column, cell, styles["r_calc3"])
        for column, (source, error) in enumerate(zip("JL", errors, strict=True), 2 + len(levers)):
            here = f"'{TITLE}'!${source}{number}"
            put(row, column, _or_missing(here, here, error), styles["r_err"])


def _or_missing(known: str, cell: str, value: Any) -> Raw:
    """A figure of a run where another is known, or #N/A, which a chart leaves out."""
    return Raw(f"=IF(ISNUMBER({known}),{cell},NA())", "#N/A" if value is None else value)


def _write_lines(book: Book, runs: Runs, row: int) -> None:
    """The exact line and the band around it, from a little below the smallest peak to a little above the largest."""
    put, styles = book.putter(book.sheet(DATA)), book.styles
    for column, text in enumerate(book.template["validation"]["charts"]["lines"], 1):
        put(row, column, text, styles["th_r"])
    area = f"'{TITLE}'!$H${FIRST + 1}:$H${FIRST + len(runs.all)}"
    band, peaks = book.values["chart_band"], runs.peaks
    for at, (function, end_of, sign, factor) in enumerate(
        (("MIN", min, "-", 1 - band), ("MAX", max, "+", 1 + band)), 1
    ):
        number = row + at + 1
        end = end_of(peaks) * factor if peaks else None
        cells = (
            (f"=IF(COUNT({area})=0,NA(),{function}({area})*(1{sign}Chart_Band))", 1),
            (f"=$B{number}", 1),
            (f"=$B{number}*(1+Chart_Band)", 1 + band),
            (f"=$B{number}*(1-Chart_Band)", 1 - band),
        )
        for column, (formula, share) in enumerate(cells, 1):
            put(row + at, column, Raw(formula, "#N/A" if end is None else end * share), styles["r_calc3"])


def _line_title(book: Book, runs: Runs) -> Raw:
    """What the first chart shows, as long as it shows it."""
    area, errors = extra_area(runs, "traced"), runs.known("error", "traced_allocated")
    words = book.template["validation"]["charts"]
    off = spelled(words["off_line"], share=_share("MAX", area, 1))
    formula = f"IF(MAX({area})<=Large_Error,{quoted(words['on_line'])},{off})"
    shown = words["nothing"]
    if errors:
        near = max(errors) <= book.values["large_error"]
        shown = words["on_line"] if near else filled(words["off_line"], share=_said(max, errors, 1))
    return Raw(f"={_some(area, formula, words['nothing'])}", shown)


def _error_title(words: Words, runs: Runs) -> Raw:
    (traced, near), (published, far) = (
        (extra_area(runs, family), runs.known("error", f"{family}_allocated")) for family in ("traced", "published")
    )
    return told(
        words["errors"],
        traced=Raw(_some(traced, _share("MAX", traced, 2)), _said(max, near, 2)),
        published=Raw(_some(published, _share("MAX", published, 1)), _said(max, far, 1)),
    )

"""The four charts, each a function of cell ranges: plot data and titles stand in cells, so charts stay live.

A range is XlsxWriter's list [sheet, first row, first column, last row, last column], a cell
[sheet, row, column], both counted from 0. A point that is missing is #N/A in its cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from xlsxwriter.chart_bar import ChartBar
from xlsxwriter.chart_column import ChartColumn
from xlsxwriter.chart_line import ChartLine
from xlsxwriter.chart_scatter import ChartScatter

from .styles import Look, colour, number_format

if TYPE_CHECKING:
    from xlsxwriter.chart import Chart
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

CellRef = list[Any]
RangeRef = list[Any]


class Bars(NamedTuple):
    """One part of the stacked bars: the cell with its name, and its values, one per category."""

    name: CellRef
    values: RangeRef


class Points(NamedTuple):
    """One series of an x-y chart: the cell with its name, or the name as text, and its coordinates."""

    name: CellRef | str
    x: RangeRef
    y: RangeRef


class _Explicit:
    """Says in the file what XlsxWriter leaves to the reader's defaults, on which readers differ.

    Newer programs hide axes, round corners, smooth lines and lay titles over plots when an element is absent.
    """

    def _write_lang(self) -> None:
        super()._write_lang()  # type: ignore[misc]
        self._flag("c:roundedCorners", 0)

    def _write_plot_area(self) -> None:
        self._flag("c:autoTitleDeleted", 0)
        super()._write_plot_area()  # type: ignore[misc]

    def _write_axis_pos(self, val: str, reverse: Any) -> None:
        # c:delete stands right before c:axPos; no axis of ours is hidden.
        self._flag("c:delete", 0)
        super()._write_axis_pos(val, reverse)  # type: ignore[misc]

    def _write_title(self, title: Any, is_horizontal: bool = False) -> None:
        title.overlay = True  # makes the writer call _write_overlay, which says 0
        super()._write_title(title, is_horizontal)  # type: ignore[misc]

    def _write_overlay(self) -> None:
        self._flag("c:overlay", 0)

    def _write_disp_blanks_as(self) -> None:
        self._flag("c:dispBlanksAs", "gap")

    def _write_grouping(self, val: str) -> None:
        super()._write_grouping(val)  # type: ignore[misc]
        self._flag("c:varyColors", 0)

    def _write_scatter_style(self, val: str) -> None:
        super()._write_scatter_style(val)  # type: ignore[misc]
        self._flag("c:varyColors", 0)

    def _write_c_smooth(self, smooth: Any) -> None:
        self._flag("c:smooth", 1 if smooth else 0)

    def _write_c_invert_if_negative(self, invert: Any) -> None:
        self._flag("c:invertIfNegative", 1 if invert else 0)

    def _get_data_type(self, data: Any) -> str:
        # A missing point does not turn a column of numbers into text.
        known = [None if value in ("#N/A", "") else value for value in data or ()]
        return str(super()._get_data_type(known))  # type: ignore[misc]

    def _write_num_cache(self, data: Any) -> None:
        # XlsxWriter caches blanks and errors as 0, which would draw them until the first recalculation.
        self._xml_start_tag("c:numCache")  # type: ignore[attr-defined]
        self._write_format_code("General")  # type: ignore[attr-defined]
        self._write_pt_count(len(data or ()))  # type: ignore[attr-defined]
        for index, value in enumerate(data or ()):
            if value == "#N/A" or _is_number(value):
                self._write_pt(index, value)  # type: ignore[attr-defined]
        self._xml_end_tag("c:numCache")  # type: ignore[attr-defined]

    def _flag(self, tag: str, value: int | str) -> None:
        self._xml_empty_tag(tag, [("val", value)])  # type: ignore[attr-defined]


class _BarChart(_Explicit, ChartBar):  # type: ignore[misc]
    pass


class _ColumnChart(_Explicit, ChartColumn):  # type: ignore[misc]
    pass


class _LineChart(_Explicit, ChartLine):  # type: ignore[misc]
    pass


class _ScatterChart(_Explicit, ChartScatter):  # type: ignore[misc]
    pass


def memory_by_part(
    workbook: Workbook,
    look: Look,
    *,
    title: CellRef,
    categories: RangeRef,
    parts: Sequence[Bars],
    layout: str = "memory_by_part",
) -> Chart:
    """Horizontal stacked bars, one a category, lowest category first.

    parts: at most four and the capacity, in the order of the layout's colours: base, activations, all else,
    reserve (hatched: it is an estimate), capacity. layout: "memory_by_part_summary" is the flat one, for
    the one-page sheet.
    Raises ValueError for more parts than colours.
    """
    settings = look["charts"][layout]
    if len(parts) > len(settings["colours"]):
        raise ValueError(
            f"parts has {len(parts)} series; at most {len(settings['colours'])} can be told apart, join the small ones"
        )
    chart = _new(workbook, _BarChart, {"type": "bar", "subtype": "stacked"})
    for part, token in zip(parts, settings["colours"], strict=False):
        shown: dict[str, Any] = {"fill": {"color": colour(look, token)}, "border": {"none": True}}
        if token == settings["hatched"]:
            shown = {
                "pattern": {
                    "pattern": "wide_upward_diagonal",
                    "fg_color": colour(look, token),
                    "bg_color": colour(look, "white"),
                },
                "border": {"color": colour(look, token), "width": 0.5},
            }
        series = {"name": part.name, "categories": categories, "values": part.values, "gap": settings["gap"]}
        chart.add_series({**series, **shown})
    chart.set_x_axis(_axis(look, title=settings["axis_title"], grid=True, minimum=0))
    chart.set_y_axis(_axis(look, token="ink", form="general"))
    _dress(chart, look, title, settings["plot"])
    return chart


def state_by_size(
    workbook: Workbook,
    look: Look,
    *,
    title: CellRef,
    x_title: str,
    categories: RangeRef,
    parts: Sequence[Bars],
    cards: Sequence[Bars],
) -> Chart:
    """Stacked columns, one a model size, and a level line for each of some cards."""
    settings = look["charts"]["state_by_size"]
    chart = _new(workbook, _ColumnChart, {"type": "column", "subtype": "stacked"})
    for part, token in zip(parts, settings["colours"], strict=True):
        shown = {"fill": {"color": colour(look, token)}, "border": {"none": True}, "gap": settings["gap"]}
        chart.add_series({"name": part.name, "categories": categories, "values": part.values, **shown})
    lines = _new(workbook, _LineChart, {"type": "line"})
    for card, dash in zip(cards, settings["dashes"], strict=True):
        line = {"color": colour(look, "ink"), "width": 1.25, "dash_type": dash}
        lines.add_series({"name": card.name, "categories": categories, "values": card.values, "line": line})
    chart.combine(lines)
    chart.set_x_axis(_axis(look, title=x_title, token="ink", form="general"))
    chart.set_y_axis(_axis(look, title=settings["y_title"], grid=True, minimum=0))
    _dress(chart, look, title, settings["plot"])
    return chart


def by_month(
    workbook: Workbook,
    look: Look,
    *,
    title: CellRef,
    y_title: str,
    categories: RangeRef,
    parts: Sequence[Bars],
    stacked: bool,
    layout: str = "by_month",
) -> Chart:
    """Columns, one a month, stacked by part or a group of parts side by side; the legend is left to cells."""
    settings = look["charts"][layout]
    kind = {"type": "column", "subtype": "stacked"} if stacked else {"type": "column"}
    chart = _new(workbook, _ColumnChart, kind)
    for at, part in enumerate(parts):
        token = settings["colours"][at % len(settings["colours"])]
        shown = {"fill": {"color": colour(look, token)}, "border": {"color": colour(look, "white"), "width": 0.5}}
        chart.add_series(
            {"name": part.name, "categories": categories, "values": part.values, "gap": settings["gap"], **shown}
        )
    chart.set_x_axis({**_axis(look, token="ink", form="month"), "text_axis": True})
    chart.set_y_axis(_axis(look, title=y_title, grid=True, minimum=0))
    _dress(chart, look, title, settings["plot"])
    chart.set_legend({"none": True})
    return chart


def total_by(
    workbook: Workbook,
    look: Look,
    *,
    title: CellRef,
    x_title: str,
    total: Points,
    peak: Points,
    checkpointed: Points | None,
    capacity: Points,
    job: Points,
    boundary: Points,
    x_max: float | None = None,
    x_unit: float | None = None,
) -> Chart:
    """Total, peak and checkpointed total against sequence length or batch, with the capacity as a line.

    job: the point entered. boundary: the largest that fits (#N/A when none does). x_max, x_unit: end and step
    of the axis, in its own unit; left out, the axis follows the data.
    """
    chart = _new(workbook, _ScatterChart, {"type": "scatter", "subtype": "straight"})
    lines = [
        (total, "series_activations", "solid", 1.75),
        (peak, "series_activations", "square_dot", 1.25),
        (checkpointed, "series_other", "dash", 1.75),
        (capacity, "ink", "long_dash", 1.25),
    ]
    for points, token, dash, width in lines:
        if points is not None:
            _line(chart, look, points, token, dash, width)
    _marked(chart, look, job, "ink", "circle", 9)
    _marked(chart, look, boundary, "series_boundary", "diamond", 10)
    settings = look["charts"]["total_by"]
    chart.set_x_axis(_axis(look, title=x_title, minimum=0, maximum=x_max, unit=x_unit))
    chart.set_y_axis(_axis(look, title=settings["y_title"], grid=True, minimum=0))
    _dress(chart, look, title, settings["plot"])
    return chart


def users_by_context(
    workbook: Workbook,
    look: Look,
    *,
    title: CellRef,
    x_title: str,
    kept: Points,
    needed: Points,
    asked: Points,
    job: Points,
) -> Chart:
    """Users at one time against the length of their requests; the number asked for as a line, the job as a point.

    kept: as the engine keeps the cache. needed: if it kept what the architecture needs.
    """
    chart = _new(workbook, _ScatterChart, {"type": "scatter", "subtype": "straight"})
    _line(chart, look, needed, "series_other", "dash", 1.75)
    _line(chart, look, kept, "series_activations", "solid", 1.75)
    _line(chart, look, asked, "ink", "long_dash", 1.25)
    _marked(chart, look, job, "ink", "circle", 9)
    settings = look["charts"]["users_by_context"]
    chart.set_x_axis(_axis(look, title=x_title, minimum=0))
    chart.set_y_axis(_axis(look, title=settings["y_title"], grid=True, minimum=0))
    _dress(chart, look, title, settings["plot"])
    return chart


def predicted_against_measured(
    workbook: Workbook,
    look: Look,
    *,
    title: CellRef,
    exact: Points,
    above: Points,
    below: Points,
    levers: Sequence[Points],
    minimum: float | None = None,
    maximum: float | None = None,
    layout: str = "predicted_against_measured",
) -> Chart:
    """Predicted against measured on two log axes, with the exact line and dashes on either side.

    above, below: the two dashes; the first names both in the legend. levers: points, each with a marker and a
    colour of its own. minimum, maximum: of both axes, powers of ten, in the unit of the data.
    layout: in look.toml, with the titles of the axes. Raises ValueError for more levers than markers.
    """
    settings = look["charts"][layout]
    if len(levers) > len(settings["markers"]):
        raise ValueError(f"levers has {len(levers)} series; at most {len(settings['markers'])} can be told apart")
    chart = _new(workbook, _ScatterChart, {"type": "scatter", "subtype": "straight"})
    _line(chart, look, exact, "edge", "solid", 0.75)
    _line(chart, look, above, "edge", "square_dot", 0.75)
    _line(chart, look, below, "edge", "square_dot", 0.75)
    marks = zip(settings["colours"], settings["markers"], settings["sizes"], strict=True)
    for points, (token, shape, size) in zip(levers, marks, strict=False):
        _marked(chart, look, points, token, shape, size, hollow=shape in settings["hollow"])
    log: dict[str, Any] = {"grid": True, "minimum": minimum, "maximum": maximum, "log": True, "crossing": "min"}
    chart.set_x_axis(_axis(look, title=settings["x_title"], **log))
    chart.set_y_axis(_axis(look, title=settings["y_title"], **log))
    _dress(chart, look, title, settings["plot"], hidden_entries=[2])
    return chart


def error_by_run(
    workbook: Workbook,
    look: Look,
    *,
    title: CellRef,
    traced: Points,
    published: Points,
    minimum: float | None = None,
    maximum: float | None = None,
    error_range: tuple[float, float] | None = None,
    error_unit: float | None = None,
) -> Chart:
    """Error of each run against its measured size (log axis).

    error_range, error_unit: ends and step of the error axis as fractions; left out, it follows the data.
    """
    chart = _new(workbook, _ScatterChart, {"type": "scatter", "subtype": "straight"})
    _marked(chart, look, published, "series_boundary", "diamond", 9)
    _marked(chart, look, traced, "series_activations", "circle", 7)
    low, high = error_range or (None, None)
    settings = look["charts"]["error_by_run"]
    chart.set_x_axis(_axis(look, title=settings["x_title"], minimum=minimum, maximum=maximum, log=True, crossing="min"))
    chart.set_y_axis(
        _axis(
            look,
            title=settings["y_title"],
            form="axis_percent",
            grid=True,
            minimum=low,
            maximum=high,
            unit=error_unit,
            crossing="min",
        )
    )
    _dress(chart, look, title, settings["plot"])
    return chart


def totals_by_size(
    workbook: Workbook,
    look: Look,
    *,
    title: CellRef,
    x_title: str,
    formats: Sequence[Points],
    capacity: Points,
) -> Chart:
    """Total of a job against the size of its model on two log axes, a series a format.

    capacity: a level line a card, with a missing point between two of them.
    """
    settings = look["charts"]["totals_by_size"]
    chart = _new(workbook, _ScatterChart, {"type": "scatter", "subtype": "straight"})
    _line(chart, look, capacity, "ink", "long_dash", 1.0)
    marks = zip(settings["colours"], settings["markers"], settings["sizes"], strict=True)
    for points, (token, shape, size) in zip(formats, marks, strict=False):
        _marked(chart, look, points, token, shape, size)
    chart.set_x_axis(_axis(look, title=x_title, form="axis_decimal", log=True, crossing="min"))
    chart.set_y_axis(_axis(look, title=settings["y_title"], form="axis_powers", grid=True, log=True, crossing="min"))
    _dress(chart, look, title, settings["plot"])
    return chart


def place(
    ws: Worksheet,
    row: int,
    column: int,
    chart: Chart,
    *,
    size: Sequence[float],
    alt: str,
    offset: tuple[int, int] = (0, 0),
) -> None:
    """Put a chart with its corner in a cell. size: width and height in cm. alt: what it shows, in words."""
    if not alt.strip():
        raise ValueError("alt is empty; it must say what the chart shows")
    width, height = (round(length / 2.54 * 96) for length in size)
    chart.set_size({"width": width, "height": height})
    # 2: moves with the cells but keeps its shape when a row or column is resized.
    options = {"description": alt, "object_position": 2, "x_offset": offset[0], "y_offset": offset[1]}
    ws.insert_chart(row, column, chart, options)


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def _new(workbook: Workbook, kind: type[Any], options: Mapping[str, str]) -> Chart:
    chart: Any = workbook.add_chart(dict(options))
    chart.__class__ = kind  # add_chart knows only its own classes; ours adds methods, no state
    return cast("Chart", chart)


def _font(look: Look, token: str = "quiet", size: float | None = None, bold: bool = False) -> dict[str, Any]:
    return {
        "name": look["font"],
        "size": size or look["charts"]["text_size"],
        "bold": bold,
        "color": colour(look, token),
    }


def _axis(
    look: Look,
    *,
    title: str | None = None,
    token: str = "quiet",
    form: str = "axis_number",
    grid: bool = False,
    minimum: float | None = None,
    maximum: float | None = None,
    unit: float | None = None,
    log: bool = False,
    crossing: str | None = None,
) -> dict[str, Any]:
    settings = look["charts"]
    axis: dict[str, Any] = {
        "num_format": number_format(look, form),
        "num_font": _font(look, token),
        "line": {"color": colour(look, "edge"), "width": settings["axis_width"]},
        "major_tick_mark": "none",
        "minor_tick_mark": "none",
        "label_position": "low",
        "major_gridlines": {"visible": False},
    }
    if grid:
        thin = {"color": colour(look, "gridline"), "width": settings["gridline_width"]}
        axis["major_gridlines"] = {"visible": True, "line": thin}
    if title:
        axis.update(name=title, name_font=_font(look))
    if log:
        axis["log_base"] = 10
    given = {"min": minimum, "max": maximum, "major_unit": unit, "crossing": crossing}
    axis.update({key: value for key, value in given.items() if value is not None})
    return axis


def _line(chart: Chart, look: Look, points: Points, token: str, dash: str, width: float) -> None:
    line = {"color": colour(look, token), "width": width, "dash_type": dash}
    series = {"name": points.name, "categories": points.x, "values": points.y, "smooth": False}
    chart.add_series({**series, "line": line, "marker": {"type": "none"}})


def _marked(
    chart: Chart, look: Look, points: Points, token: str, shape: str, size: int, *, hollow: bool = False
) -> None:
    outlined = hollow or shape in ("x", "plus", "star", "long_dash")
    marker = {
        "type": shape,
        "size": size,
        "fill": {"none": True} if outlined else {"color": colour(look, token)},
        "border": {"color": colour(look, token if outlined else "white"), "width": 1.5 if outlined else 0.5},
    }
    series = {"name": points.name, "categories": points.x, "values": points.y, "smooth": False}
    chart.add_series({**series, "line": {"none": True}, "marker": marker})


def _dress(chart: Chart, look: Look, title: CellRef, plot: Sequence[float], hidden_entries: Sequence[int] = ()) -> None:
    settings = look["charts"]
    left, top, width, height = plot
    at_x, at_y = settings["title_at"]
    chart.set_title(
        {
            "name": title,
            "font": _font(look, "ink", settings["title_size"], True),
            "layout": {"x": at_x, "y": at_y},
        }
    )
    # "overlay_bottom" makes the writer call _write_overlay, which says 0.
    legend: dict[str, Any] = {"position": "overlay_bottom", "font": _font(look)}
    if hidden_entries:
        legend["delete_series"] = list(hidden_entries)
    chart.set_legend(legend)
    frame = {"color": colour(look, "rule"), "width": settings["frame_width"]}
    chart.set_chartarea({"fill": {"color": colour(look, "white")}, "border": frame})
    chart.set_plotarea(
        {
            "fill": {"none": True},
            "border": {"none": True},
            "layout": {"x": left, "y": top, "width": width, "height": height},
        }
    )

"""Charts as pictures, drawn by matplotlib as the workbook describes them; needs the extra "report"."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ..workbook.styles import Look, colour
from .chart_parts import Axis, Chart, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOTS_PER_INCH = 200
_MARGIN = 0.12  # inches around the drawing
_LETTER, _HANDLE = 0.075, 0.5  # inches of a legend's letter, and of its mark with the space around it
_MARKERS = {
    "circle": "o", "square": "s", "triangle": "^", "diamond": "D", "x": "x", "plus": "+", "star": "*", "dash": "_",
    "dot": ".",
}  # fmt: skip
_DASHES: Mapping[str, Any] = {
    "solid": "solid", "sysDot": (0, (1, 1)), "sysDash": (0, (3, 1)), "dash": (0, (4, 3)), "lgDash": (0, (8, 3)),
    "dashDot": (0, (4, 3, 1, 3)), "lgDashDot": (0, (8, 3, 1, 3)),
}  # fmt: skip
_LIKE_IT = ("Carlito", "DejaVu Sans")  # in place of the look's own font, where that is not installed


def need_matplotlib() -> None:
    """Raise ValueError where matplotlib is missing: it is not among the package's own requirements."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError("matplotlib is not installed, and charts need it: pip install 'sizing-xlsx[report]'") from None


def png(chart: Chart, look: Look) -> bytes:
    """The chart as a PNG, in its own size, with its title and what it shows among the picture's properties."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.font_manager import get_font_names

    settings, known = look["charts"], {*get_font_names()}
    font = next((name for name in (look["font"], *_LIKE_IT) if name in known), "sans-serif")
    with matplotlib.rc_context({"font.family": font, "font.size": settings["text_size"], "hatch.linewidth": 0.8}):
        figure = Figure(figsize=chart.size, dpi=DOTS_PER_INCH, layout="constrained", facecolor=colour(look, "white"))
        engine: Any = figure.get_layout_engine()
        engine.set(w_pad=_MARGIN, h_pad=_MARGIN)
        axes = figure.add_subplot()
        (_bars if chart.kind == "bar" else _points)(axes, chart)
        _dress(axes, chart, look)
        figure.suptitle(
            chart.title, x=settings["title_at"][0], ha="left", fontsize=settings["title_size"], fontweight="bold",
            color=colour(look, "ink"),
        )  # fmt: skip
        listed = [series for series in chart.series if series.listed]
        figure.legend(
            *_legend(axes, listed), loc="outside lower center", ncols=_columns(listed, chart.size[0]), frameon=False,
            labelcolor=colour(look, "quiet"), handlelength=1.6, columnspacing=1.2,
        )  # fmt: skip
        with io.BytesIO() as file:
            properties = {"Title": chart.title, "Description": chart.alt, "Software": None}
            figure.savefig(file, format="png", metadata=properties)
            return file.getvalue()


def _columns(listed: list[Series], width: float) -> int:
    """How many entries of the legend stand side by side in so many inches."""
    widest = max((len(series.name) for series in listed), default=0) * _LETTER + _HANDLE
    rows = math.ceil(max(1, len(listed)) * widest / (width - 2 * _MARGIN))
    return math.ceil(max(1, len(listed)) / rows)


def _bars(axes: Axes, chart: Chart) -> None:
    """Bars of each series, on each other or side by side."""
    words = chart.series[0].x if chart.series else []
    count = 1 if chart.stacked else len(chart.series)
    width = 0.69 / count  # the gap of the workbook's own charts: 45% of a bar
    ends = [0.0] * len(words)
    for at, series in enumerate(chart.series):
        sizes = [0.0 if math.isnan(value) else value for value in series.y]
        places = [place + (0 if chart.stacked else (at - (count - 1) / 2) * width) for place in range(len(words))]
        look: dict[str, Any] = {"label": series.name, "color": series.fill, "linewidth": 0}
        if series.hatched:
            look = {
                "label": series.name,
                "facecolor": "white",
                "edgecolor": series.fill,
                "hatch": "////",
                "linewidth": 0.5,
            }
        start = ends if chart.stacked else 0
        if chart.across:
            axes.barh(places, sizes, width, left=start, **look)
        else:
            axes.bar(places, sizes, width, bottom=start, **look)
        ends = [end + size for end, size in zip(ends, sizes, strict=True)] if chart.stacked else ends
    ticks = axes.set_yticks if chart.across else axes.set_xticks
    ticks(range(len(words)), words)


def _points(axes: Axes, chart: Chart) -> None:
    """Lines and points; a missing point interrupts its line."""
    for series in chart.series:
        line, marker = series.line, series.marker
        look: dict[str, Any] = {"label": series.name, "linestyle": "none"}
        if line:
            look |= {"color": line[0], "linewidth": line[1], "linestyle": _DASHES.get(line[2], "solid")}
        if marker:
            shape, size, fill, edge = marker
            look |= {"marker": _MARKERS.get(shape, "o"), "markersize": size * 0.8, "markerfacecolor": fill or "none",
                     "markeredgecolor": edge or fill, "markeredgewidth": 1.2 if fill is None else 0.5}  # fmt: skip
        axes.plot(series.x, series.y, **look)


def _legend(axes: Axes, listed: list[Series]) -> tuple[list[Any], list[str]]:
    """Handles and names of the series that the legend has, in their order."""
    known: dict[str, Any] = {}
    for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
        known.setdefault(name, handle)
    names = list(dict.fromkeys(series.name for series in listed if series.name in known))
    return [known[name] for name in names], names


def _dress(axes: Axes, chart: Chart, look: Look) -> None:
    ink, quiet, edge = (colour(look, token) for token in ("ink", "quiet", "edge"))
    settings = look["charts"]
    axes.set_axisbelow(True)
    by_words = chart.kind == "bar"
    grid: Literal["x", "y", "both"] = (
        ("x" if chart.across else "y") if by_words else "both" if chart.x.log and chart.y.log else "y"
    )
    axes.grid(True, axis=grid, color=colour(look, "gridline"), linewidth=settings["gridline_width"])
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(color=edge, linewidth=settings["axis_width"])
    axes.tick_params(which="both", length=0, colors=quiet)
    sides: tuple[tuple[Literal["x", "y"], Axis], ...] = (("x", chart.x), ("y", chart.y))
    for name, axis in sides:
        if by_words and (name == "y") == chart.across:  # the axis with the bars' names
            axes.tick_params(axis=name, labelcolor=ink)
        else:
            _scale(axes, name, axis)
        getattr(axes, f"set_{name}label")(axis.title, color=quiet)


def _scale(axes: Axes, name: str, axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    low, high = axis.low, axis.high
    if axis.log:
        getattr(axes, f"set_{name}scale")("log")
        low, high = _decades(getattr(axes, f"get_{name}lim")(), low, high)
    getattr(axes, f"set_{name}lim")(low, high)
    side = getattr(axes, f"{name}axis")
    side.set_major_formatter(FuncFormatter(lambda value, _: tick(value, axis.form)))
    side.set_minor_formatter(NullFormatter())


def _decades(reach: tuple[float, float], low: float | None, high: float | None) -> tuple[float, float]:
    """The ends of a logarithmic axis: where they are left to the data, the powers of ten around them."""
    start, end = reach if reach[0] > 0 else (1.0, 10.0)  # no point at all
    return low or 10.0 ** math.floor(math.log10(start)), high or 10.0 ** math.ceil(math.log10(end))


def tick(value: float, form: str) -> str:
    """A number beside an axis, in the spirit of its number format: percent with a sign, or thousands marked."""
    if "%" in form:
        percent = round(value * 100, 6)
        sign = "+" if percent > 0 and form.startswith("+") else ""
        return f"{sign}{percent:,.12g}%".replace("-", "−")
    return f"{round(value, 9):,.12g}".replace("-", "−")

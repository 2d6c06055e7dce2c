"""The charts of a workbook as its file describes them, with what their cells hold.

A chart's title, names and points are read from the cells that they are linked to, never from the chart's own copies.
"""

from __future__ import annotations

import math
import posixpath
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..formula.domains import date_of
from ..presets.names import one_line, shown
from ..workbook.package import Archive
from ..workbook.sheet_part import box

Cells = Callable[[str, int, int], Any]  # sheet, row and column from 0 -> what the cell holds

_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_XDR = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"
_M = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_REFERENCE = re.compile(r"('(?:[^']|'')+'|[^'!]+)!(\$?[A-Z]{1,3}\$?\d+(?::\$?[A-Z]{1,3}\$?\d+)?)")
_EMU_PER_INCH = 914_400
_KINDS = ("barChart", "scatterChart", "lineChart")
USUAL_SIZE = (7.2, 3.9)  # inches, of a chart whose anchor says cells
MISSING = math.nan


class Series(NamedTuple):
    """Points of one name: x are numbers, or the words of categories; a missing y is NaN.

    line, marker, fill: what they look like, None where there is none. Colours are "#RRGGBB"; widths in points.
    hatched: the fill is a pattern. listed: whether the legend has it; one without a name is in none.
    """

    name: str
    x: list[Any]
    y: list[float]
    fill: str | None
    hatched: bool
    line: tuple[str, float, str] | None  # colour, width, dash
    marker: tuple[str, float, str | None, str | None] | None  # shape, size, fill, edge
    listed: bool


class Axis(NamedTuple):
    """One axis: title, ends (None: as the data want), whether it is logarithmic, and its number format."""

    title: str
    low: float | None
    high: float | None
    log: bool
    form: str


class Chart(NamedTuple):
    """One chart. kind: bar, scatter or line; size in inches; across: bars lie; stacked: they stand on each other.

    x, y: the axes as they lie on the page. sheet and number say where it stands: the third of Sizing, for instance.
    """

    sheet: str
    number: int
    kind: str
    across: bool
    stacked: bool
    title: str
    alt: str
    size: tuple[float, float]
    series: list[Series]
    x: Axis
    y: Axis


def parse(archive: Archive, part: str) -> ET.Element:
    """The root of a part. Raises ValueError for a document type, which can grow without bound, and for no XML."""
    data = archive.read(part)
    where = f"{archive.where}, part {one_line(part)}"
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ValueError(f"{where} declares a document type; no workbook needs one")
    try:
        return ET.fromstring(data)
    except ET.ParseError as error:
        raise ValueError(f"{where} is no XML ({error}); use a copy that Excel opens without a repair") from None


def relations(archive: Archive, part: str) -> dict[str, str]:
    """What a part refers to inside the file: identifier -> part."""
    folder, _, file = part.rpartition("/")
    links = posixpath.join(folder, "_rels", f"{file}.rels")
    if links not in archive:
        return {}
    found = {}
    for link in parse(archive, links):
        target = link.get("Target", "")
        path = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
        if link.get("TargetMode") != "External":
            found[link.get("Id", "")] = posixpath.normpath(path)
    return found


def sheets(archive: Archive) -> dict[str, str]:
    """Sheet -> its part, in the order of the tabs."""
    main = "xl/workbook.xml"
    known = relations(archive, main)
    found = {e.get("name", ""): known.get(e.get(_R + "id", ""), "") for e in parse(archive, main).iter(_M + "sheet")}
    return {name: part for name, part in found.items() if part in archive}


def charts(archive: Archive, cells: Cells) -> list[Chart]:
    """Every chart in the order of sheets and of their place on them; one that draws what another draws is left out.

    Raises ValueError, one sentence, for a chart of another kind than bars, lines and points.
    """
    found: list[Chart] = []
    drawn: set[str] = set()
    for sheet, part in sheets(archive).items():
        for number, (chart_part, alt, size) in enumerate(_placed(archive, part), 1):
            root = parse(archive, chart_part)
            references = " ".join(e.text or "" for e in root.iter(_C + "f"))
            if references not in drawn:
                drawn.add(references)
                found.append(_chart(root, _Reader(archive, cells, chart_part), sheet, number, alt, size))
    return found


def _placed(archive: Archive, sheet_part: str) -> Iterator[tuple[str, str, tuple[float, float]]]:
    """The chart parts of a sheet from top to bottom, with alt text and size in inches."""
    for drawing in relations(archive, sheet_part).values():
        if not drawing.startswith("xl/drawings/drawing") or drawing not in archive:
            continue
        links = relations(archive, drawing)
        anchors = [a for a in parse(archive, drawing) if a.find(_XDR + "graphicFrame") is not None]
        for anchor in sorted(anchors, key=_corner):
            frame = next(anchor.iter(_C + "chart"), None)
            part = links.get(frame.get(_R + "id", "")) if frame is not None else None
            if part and part in archive:
                alt = next(anchor.iter(_XDR + "cNvPr")).get("descr", "")
                yield part, alt, _size(anchor)


def _corner(anchor: ET.Element) -> tuple[int, int]:
    corner = anchor.find(_XDR + "from")
    row, column = (corner.findtext(_XDR + key, "0") if corner is not None else "0" for key in ("row", "col"))
    return int(row), int(column)


def _size(anchor: ET.Element) -> tuple[float, float]:
    """Width and height: what the anchor says in lengths, else that of a usual chart."""
    extent = anchor.find(_XDR + "ext")
    if extent is None:
        return USUAL_SIZE
    return (int(extent.get("cx", "0")) / _EMU_PER_INCH, int(extent.get("cy", "0")) / _EMU_PER_INCH)


class _Reader:
    """What the references of one chart lead to."""

    def __init__(self, archive: Archive, cells: Cells, part: str) -> None:
        self.where, self.cells = f"{archive.where}, part {one_line(part)}", cells

    def values(self, parent: ET.Element | None) -> list[Any]:
        """The values of the cells that an element refers to, or those it holds itself."""
        if parent is None:
            return []
        reference = next(parent.iter(_C + "f"), None)
        if reference is None:
            return [point.text for point in parent.iter(_C + "v")]
        found = _REFERENCE.fullmatch((reference.text or "").strip())
        area = box(found[2].replace("$", "")) if found else None
        if found is None or area is None:
            raise ValueError(f"{self.where} draws {shown(reference.text or '')}; it should be one area of cells")
        sheet = found[1].removeprefix("'").removesuffix("'").replace("''", "'")
        top, left, bottom, right = area
        return [self.cells(sheet, row, column) for row in range(top, bottom + 1) for column in range(left, right + 1)]

    def text(self, parent: ET.Element | None) -> str:
        """A title or a name: that of its cell, or the words it holds itself."""
        if parent is None:
            return ""
        if next(parent.iter(_C + "f"), None) is not None or next(parent.iter(_C + "v"), None) is not None:
            return " ".join(str(value) for value in self.values(parent) if value is not None)
        return "".join(run.text or "" for run in parent.iter(_A + "t"))


def _chart(root: ET.Element, reader: _Reader, sheet: str, number: int, alt: str, size: tuple[float, float]) -> Chart:
    chart = root.find(_C + "chart")
    plot = chart.find(_C + "plotArea") if chart is not None else None
    body = next((e for e in plot if e.tag.removeprefix(_C) in _KINDS), None) if plot is not None else None
    if chart is None or plot is None or body is None:
        raise ValueError(f"{reader.where} is no chart of bars, lines or points; take it out of the workbook's copy")
    kind = body.tag.removeprefix(_C).removesuffix("Chart")
    across = _value(body, "barDir") == "bar"
    stacked = _value(body, "grouping") in ("stacked", "percentStacked")
    hidden = {
        _value(entry, "idx") for entry in chart.iter(_C + "legendEntry") if _value(entry, "delete") in ("1", "true")
    }
    series = [_series(e, reader, kind, str(at) not in hidden) for at, e in enumerate(body.iter(_C + "ser"))]
    series = [one._replace(listed=one.listed and bool(one.name.strip())) for one in series]
    axes = [_axis(e, reader) for e in plot if e.tag in (_C + "catAx", _C + "valAx", _C + "dateAx")]
    if kind == "bar" and axes[0].form.startswith("mmm"):
        series = [one._replace(x=[_month(word) for word in one.x]) for one in series]
    lying, standing = (axes[1], axes[0]) if across else (axes[0], axes[1])
    title = reader.text(chart.find(_C + "title"))
    return Chart(sheet, number, kind, across, stacked, title, alt, size, series, lying, standing)


def _value(parent: ET.Element | None, name: str) -> str | None:
    child = parent.find(_C + name) if parent is not None else None
    return None if child is None else child.get("val", "1")


def _number(parent: ET.Element | None, name: str) -> float | None:
    value = _value(parent, name)
    return None if value is None else float(value)


def _axis(element: ET.Element, reader: _Reader) -> Axis:
    scale, form = element.find(_C + "scaling"), element.find(_C + "numFmt")
    return Axis(
        reader.text(element.find(_C + "title")),
        _number(scale, "min"),
        _number(scale, "max"),
        _value(scale, "logBase") is not None,
        form.get("formatCode", "") if form is not None else "",
    )


def _month(word: Any) -> Any:
    """A day, as sheets count them, as its month; all else as it is."""
    try:
        return f"{date_of(float(word)):%b\n%Y}"
    except ValueError:
        return word


def _series(element: ET.Element, reader: _Reader, kind: str, listed: bool) -> Series:
    points = kind == "scatter"
    x = reader.values(element.find(_C + ("xVal" if points else "cat")))
    y = [_figure(value) for value in reader.values(element.find(_C + ("yVal" if points else "val")))]
    x = [_figure(value) if points else "" if value is None else str(value) for value in x] or list(range(1, len(y) + 1))
    shape = element.find(_C + "spPr")
    fill, hatched = _fill(shape)
    marker = None if kind == "bar" else _marker(element.find(_C + "marker"))
    line = None if kind == "bar" else _line(shape)
    return Series(reader.text(element.find(_C + "tx")), x, y, fill, hatched, line, marker, listed)


def _figure(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else MISSING


def _colour(parent: ET.Element | None) -> str | None:
    code = next(parent.iter(_A + "srgbClr"), None) if parent is not None else None
    return None if code is None else f"#{code.get('val', '000000')}"


def _fill(shape: ET.Element | None) -> tuple[str | None, bool]:
    if shape is None:
        return None, False
    pattern = shape.find(_A + "pattFill")
    if pattern is not None:
        return _colour(pattern.find(_A + "fgClr")), True
    return _colour(shape.find(_A + "solidFill")), False


def _line(shape: ET.Element | None) -> tuple[str, float, str] | None:
    line = shape.find(_A + "ln") if shape is not None else None
    if line is None or line.find(_A + "noFill") is not None:
        return None
    dash = line.find(_A + "prstDash")
    width = int(line.get("w", "9525")) / 12_700
    return _colour(line) or "#000000", width, dash.get("val", "solid") if dash is not None else "solid"


def _marker(element: ET.Element | None) -> tuple[str, float, str | None, str | None] | None:
    shape = _value(element, "symbol")
    if element is None or shape in (None, "none"):
        return None
    look = element.find(_C + "spPr")
    edge = look.find(_A + "ln") if look is not None else None
    return str(shape), _number(element, "size") or 7, _fill(look)[0], _colour(edge)


def title_cells(archive: Archive) -> Mapping[str, str]:
    """Chart part -> the reference of the cell that its title is linked to, for the charts that have one."""
    found = {}
    for part in archive.names():
        if re.fullmatch(r"xl/charts/chart\d+\.xml", part):
            title = parse(archive, part).find(f"{_C}chart/{_C}title")
            reference = next(title.iter(_C + "f"), None) if title is not None else None
            if reference is not None and reference.text:
                found[part] = reference.text
    return found

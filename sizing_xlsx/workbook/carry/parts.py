"""XML parts of a workbook as trees: namespaces, reading with care, relations."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from ...presets.names import one_line
from ..package import AGAIN

Element: TypeAlias = Any  # of lxml, which is imported only when a workbook is carried over

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
RELATIONS = "{http://schemas.openxmlformats.org/package/2006/relationships}"
CONTENT_TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"
CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"
EXCEL_2009 = "{http://schemas.microsoft.com/office/excel/2006/main}"
XML = "{http://www.w3.org/XML/1998/namespace}"


class Link(NamedTuple):
    """One relation of a part. target: the part it leads to, or the address outside where `outside`."""

    id: str
    kind: str  # the last word of its type: worksheet, drawing, chart
    type: str
    target: str
    outside: bool


def parsed(data: bytes, where: str) -> Element:
    """The root of a part. Raises ValueError for what is no XML or declares a document type."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_blank_text=False)
    try:
        root: Element = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(f"{where} is damaged ({one_line(str(error))}): {AGAIN}") from None
    if root.getroottree().docinfo.doctype:
        raise ValueError(f"{where} declares a document type, which no workbook needs: {AGAIN}")
    return root


def written(root: Element) -> bytes:
    """A part as bytes."""
    from lxml import etree

    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))


def local(element: Element) -> str:
    """An element's name without its namespace; "" for a comment."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def rels_part(part: str) -> str:
    """Where the relations of a part stand: xl/workbook.xml -> xl/_rels/workbook.xml.rels."""
    folder, _, file = part.rpartition("/")
    return posixpath.join(folder, "_rels", f"{file}.rels")


def links_of(parts: Mapping[str, bytes], part: str, where: str) -> list[Link]:
    """The relations of a part, in their order."""
    data = parts.get(rels_part(part))
    if data is None:
        return []
    folder = part.rpartition("/")[0]
    found = []
    for link in parsed(data, f"{where}, part {rels_part(part)}"):
        outside = link.get("TargetMode") == "External"
        target = link.get("Target", "")
        if not outside:
            target = posixpath.normpath(posixpath.join("/" + folder, target)).lstrip("/")
        kind = link.get("Type", "")
        found.append(Link(link.get("Id", ""), kind.rpartition("/")[2], kind, target, outside))
    return found


def relative(part: str, target: str) -> str:
    """A part as another one refers to it."""
    return posixpath.relpath("/" + target, "/" + part.rpartition("/")[0])

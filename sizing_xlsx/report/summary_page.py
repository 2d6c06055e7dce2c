"""A copy of a workbook that prints its Summary alone, with the titles of its charts as their cells now are."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.sax.saxutils import escape

from ..workbook.package import Archive
from .chart_parts import sheets, title_cells

_MAIN = "xl/workbook.xml"
_NAMES = re.compile(r"<definedNames\s*/>|<definedNames\s*>(.*?)</definedNames>", re.DOTALL)
_NAME = re.compile(r"<definedName\b([^>]*)>([^<]*)</definedName>")
_PRINT = re.compile(r'name="_xlnm\.Print_(?:Area|Titles)"')
_ORDER = re.compile(r'localSheetId="(\d+)"')
_EMPTY = "$XFD$1048576"  # a page of nothing is not printed
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"


def summary_alone(archive: Archive, summary: str, words_of: Callable[[str], str]) -> bytes:
    """The workbook's bytes with all other sheets printing nothing. words_of: what the cell of a reference says now.

    LibreOffice prints hidden sheets, and shows the copies of titles that charts hold; so both are changed.
    Raises ValueError where there is no such sheet.
    """
    known = list(sheets(archive))
    if summary not in known:
        raise ValueError(
            f"{archive.where} has no sheet {summary}, which the report prints; use a workbook that build.py wrote"
        )
    text = archive.read(_MAIN).decode("utf-8")
    found = _NAMES.search(text)
    kept = (
        [name[0] for name in _NAME.finditer(found[1] or "") if _keeps(name[1], known.index(summary))] if found else []
    )
    for at, sheet in enumerate(known):
        if sheet != summary:
            quoted = escape(sheet.replace("'", "''"))
            kept.append(f'<definedName name="_xlnm.Print_Area" localSheetId="{at}">\'{quoted}\'!{_EMPTY}</definedName>')
    names = f"<definedNames>{''.join(kept)}</definedNames>"
    whole = (
        text[: found.start()] + names + text[found.end() :] if found else text.replace("</sheets>", "</sheets>" + names)
    )
    parts = {_MAIN: whole.encode("utf-8")}
    for part, reference in title_cells(archive).items():
        parts[part] = _titled(archive.read(part), words_of(reference))
    return archive.replaced(parts)


def _titled(chart: bytes, words: str) -> bytes:
    """A chart's part with the copy of its linked title that says these words, whichever program wrote it."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    root = etree.fromstring(chart, parser)
    linked = root.find(f"{_CHART}chart/{_CHART}title/{_CHART}tx/{_CHART}strRef")
    if linked is None:
        return chart
    for old in linked.findall(_CHART + "strCache"):
        linked.remove(old)
    copy = etree.Element(_CHART + "strCache")
    linked.insert(1, copy)
    etree.SubElement(copy, _CHART + "ptCount", val="1")
    point = etree.SubElement(copy, _CHART + "pt", idx="0")
    etree.SubElement(point, _CHART + "v").text = words
    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))


def _keeps(attributes: str, summary: int) -> bool:
    """Whether a name stays: all but print areas and titles of the other sheets."""
    order = _ORDER.search(attributes)
    return not _PRINT.search(attributes) or (order is not None and int(order[1]) == summary)

"""The sheet "Carried notes": what a planner wrote or drew on sheets of ours, with the place where it stood.

Those sheets are made anew, and another line may stand there now. So nothing is put back among our cells: each note
gets a line, a formula stays live, and the planner decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..sheet_part import Value, address
from .draft import Draft, fill
from .parts import MAIN, RELATION, Element, links_of, parsed, rels_part, written
from .record import TITLE as RECORD

if TYPE_CHECKING:
    from .own_sheets import SheetCopier

TITLE = "Carried notes"
HEADERS = ("Where it stood", "Beside", "What it says", "As it was typed")
FIRST = 3  # row of the first note, from 0
LIVE = 2  # column of what it says
_WIDTHS = (28, 40, 40, 60)


class Note(NamedTuple):
    """One line. typed: the formula's text where the cell held one. style: index of the format in the new workbook."""

    where: str
    beside: str
    value: Value
    formula: str | None = None
    typed: str = ""
    style: int | None = None


def write(draft: Draft, notes: Sequence[Note], drawing: str | None, title: str) -> str:
    """Make the sheet; returns its part. drawing: part of the drawing that belongs below the notes."""
    cells = draft.book.cells(RECORD)
    styles = {name: cells[at].style for name, at in (("title", (0, 1)), ("sentence", (1, 1)), ("label", (4, 1)))}
    text = f'<worksheet xmlns="{MAIN[1:-1]}" xmlns:r="{RELATION[1:-1]}"><sheetViews><sheetView workbookViewId="0">'
    text += f'<pane ySplit="{FIRST}" topLeftCell="A{FIRST + 1}" activePane="bottomLeft" state="frozen"/></sheetView>'
    text += "</sheetViews><cols>"
    text += "".join(
        f'<col min="{at}" max="{at}" width="{width}" customWidth="1"/>' for at, width in enumerate(_WIDTHS, 1)
    )
    text += "</cols><sheetData/></worksheet>"
    tree = parsed(text.encode(), title)
    data = tree.find(MAIN + "sheetData")
    assert data is not None
    said = "You wrote or drew these on sheets that are made anew. Formulas are live; change or delete what you like."
    lines: list[list[tuple[Value, str | None, int]]] = [
        [(title, None, styles["title"])],
        [(said, None, styles["sentence"])],
        [(header, None, styles["label"]) for header in HEADERS],
    ]
    label = styles["label"]
    lines += [
        [
            (note.where, None, label),
            (note.beside, None, label),
            (note.value, note.formula, label if note.style is None else note.style),
            (note.typed, None, label),
        ]
        for note in notes
    ]
    for row, line in enumerate(lines):
        _row(data, row, line)
    part = draft.fresh("xl/worksheets/sheet1.xml")
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
    draft.add(part, b"", kind)
    if drawing is not None:
        made = tree.makeelement(MAIN + "drawing", None, None)
        made.set(RELATION + "id", draft.link(part, f"{RELATION[1:-1]}/drawing", drawing))
        tree.append(made)
    draft.parts[part] = written(tree)
    return part


def _row(data: Element, row: int, line: Sequence[tuple[Value, str | None, int]]) -> None:
    element = data.makeelement(MAIN + "row", None, None)
    element.set("r", str(row + 1))
    for column, (value, formula, style) in enumerate(line):
        if formula is None and value in (None, ""):
            continue
        cell = element.makeelement(MAIN + "c", None, None)
        cell.set("r", address(row, column))
        cell.set("s", str(style))
        fill(cell, value, formula)
        element.append(cell)
    data.append(element)


def drawing_of(
    copier: SheetCopier, anchored: Sequence[tuple[str, list[Element]]], title: str, below: int
) -> str | None:
    """One drawing of all that was drawn on sheets of ours; its part, None where nothing was."""
    parts = []
    for sheet, anchors in anchored:
        parts.append(copier.drawing(copier.old.titles[sheet.casefold()], anchors, title, below))
        below += 24 * len(anchors)
    return merged(copier.draft, parts) if parts else None


def merged(draft: Draft, drawings: Sequence[str]) -> str:
    """The anchors of several drawings in the first of them; the others are taken out."""
    first = draft.tree(drawings[0])
    links = links_of(draft.parts, drawings[0], draft.where)
    for other in drawings[1:]:
        tree = draft.tree(other)
        renamed = {}
        for link in links_of(draft.parts, other, draft.where):
            renamed[link.id] = f"rId{len(links) + 1}x"
            links.append(link._replace(id=renamed[link.id]))
        for element in tree.iter():
            for name, value in list(element.attrib.items()):
                if str(name).startswith(RELATION) and value in renamed:
                    element.set(name, renamed[value])
        for anchor in list(tree):
            first.append(anchor)
        del draft.parts[other]
        draft.parts.pop(rels_part(other), None)
        for override in list(draft.types):
            if override.get("PartName") == "/" + other:
                draft.types.remove(override)
    draft.parts[drawings[0]] = written(first)
    if links:
        draft.write_links(drawings[0], links)
    return drawings[0]

"""What in a workbook is the planner's: typed values, rows of tables, cells and charts beside ours, own sheets.

Everything is told by comparing the cells with the record, never by stored results. A row of a table counts as one
thing: where one of its typed cells was changed, all of them go over together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...functions import registered
from ..lambdas import BEGIN
from ..sheet_part import Value, address
from . import record as records
from .alignment import Alignment, align
from .cells import Cell
from .old_book import Named, OldBook, Sheet
from .parts import CHART, DRAWING, MAIN, RELATION, Element, local
from .record import Record
from .shapes import digest, drawing_digest

# Tables whose rows are known by a column: prefix of their names -> that column. Others go by position.
ROW_KEYS = {"Validation": "Validation_Run", "GPUs": "GPUs_Names_List", "Cards": "GPUs_Names_List"}
Places = set[tuple[int, int]]


class Typed(NamedTuple):
    """One typed cell. default: what it opened on."""

    name: str
    cell: Cell | None
    default: Value


class Row(NamedTuple):
    """A row of a table. at: its place among the rows of the table, from 0. key: what it is known by, if anything.

    first: the first row that may be typed in as a whole; own: this is one of them. cells: by the name of their
    column. changed: since the record was made; a run that came from a file of results need not be.
    """

    table: str
    at: int
    first: int
    key: Value
    cells: Mapping[str, Cell | None]
    own: bool
    changed: bool


class Loose(NamedTuple):
    """A planner's cell on one of our sheets, or one of ours that was overwritten. beside: what its row is called."""

    sheet: str
    row: int
    column: int
    cell: Cell
    beside: str
    ours: bool


class Remark(NamedTuple):
    """A comment on one of our sheets."""

    sheet: str
    place: str
    text: str


class Changes(NamedTuple):
    """All that is the planner's. drawings: sheet of ours -> the anchors on it that are not ours."""

    inputs: list[Typed]
    rows: list[Row]
    loose: list[Loose]
    remarks: list[Remark]
    drawings: Mapping[str, list[Element]]
    sheets: list[Sheet]
    names: list[Named]
    alignments: Mapping[str, Alignment]

    @property
    def any(self) -> bool:
        """Whether the planner has changed anything at all."""
        return bool(
            self.inputs
            or any(row.changed for row in self.rows)
            or self.loose
            or self.remarks
            or self.drawings
            or self.sheets
            or self.names
        )


def changes(old: OldBook, record: Record, *, complete: bool = True) -> Changes:
    """What the planner has changed since the record was made.

    complete: the record is the workbook's own. Else it is that of a later version, lent to a workbook that has
    none: then only what is known by a name is compared, and cells beside ours cannot be told.
    """
    ours = [sheet for sheet in old.sheets if sheet.title in record.grids]
    typed = _typed_places(record)
    alignments = {
        sheet.title: _alignment(old, record, sheet.title, typed.get(sheet.title, set()))
        if complete
        else _still(record, sheet.title)
        for sheet in ours
    }
    found = Changes(
        inputs=_inputs(old, record),
        rows=_rows(old, record, alignments),
        loose=[],
        remarks=[remark for sheet in ours for remark in _remarks(old, sheet)],
        drawings={},
        sheets=[sheet for sheet in old.sheets if sheet.title not in record.grids],
        names=_names(old, record),
        alignments=alignments,
    )
    if not complete:
        return found
    loose = [cell for sheet in ours for cell in _loose(old, record, sheet.title, typed, alignments)]
    drawings = {sheet.title: anchors for sheet in ours if (anchors := _drawings(old, record, sheet))}
    return found._replace(loose=loose, drawings=drawings)


def row_key(name: str, record: Record) -> str | None:
    """The column by which the rows of a table are known, of which a column is named; None where they go by position.

    It has a row for each of the table's: a table of the same first word in another workbook is another table.
    """
    key = ROW_KEYS.get(name.partition("_")[0])
    if key is None or key not in record.names or name not in record.names:
        return None
    own, keys = record.names[name], record.names[key]
    return key if own.last_row - own.first_row == keys.last_row - keys.first_row else None


def tables(record: Record) -> list[tuple[str, int, list[str]]]:
    """Tables that may be typed in: the word before the first underscore of their columns' names, rows, these names."""
    found: dict[tuple[str, int], list[str]] = {}
    for name in record.typed:
        area = record.names[name]
        rows = area.last_row - area.first_row + 1
        if rows > 1:
            found.setdefault((name.partition("_")[0], rows), []).append(name)
    return [(table, rows, names) for (table, rows), names in found.items()]


def _typed_places(record: Record) -> dict[str, Places]:
    found: dict[str, Places] = {}
    for name, first in record.typed.items():
        area = record.names[name]
        for row in range(area.first_row + first, area.last_row + 1):
            found.setdefault(area.sheet, set()).add((row, area.first_column))
    return found


def _alignment(old: OldBook, record: Record, title: str, typed: Places) -> Alignment:
    return align(record.grids[title], old.digests(title), typed)


def _still(record: Record, title: str) -> Alignment:
    grid = record.grids[title]
    return Alignment({row: row for row, _ in grid}, {column: column for _, column in grid})


def _inputs(old: OldBook, record: Record) -> list[Typed]:
    found = []
    for name, default in record.opened.items():
        area = old.place_of(name)
        if area is None:
            continue
        cell = old.cells(area.sheet).get((area.first_row, area.first_column))
        recorded = record.names[name]
        opened_on = record.grids[recorded.sheet].get((recorded.first_row, recorded.first_column), 0)
        if digest(cell.value if cell else None, cell.formula if cell else None) != opened_on:
            found.append(Typed(name, cell, default))
    return found


def _rows(old: OldBook, record: Record, alignments: Mapping[str, Alignment]) -> list[Row]:
    found = []
    for table, rows, columns in tables(record):
        key = row_key(columns[0], record)
        first = max(record.typed[name] for name in columns)
        for at in range(rows):
            cells = {name: _cell(old, record, alignments, name, at) for name in columns}
            changed = {name for name, cell in cells.items() if _changed(record, name, at, cell)}
            own = at >= first
            run = own and key in columns and (cell := cells[key]) is not None and not cell.empty
            if not changed and not run:
                continue
            known = _cell(old, record, alignments, key, at) if key else None
            kept = cells if own else {name: cells[name] for name in changed}
            found.append(Row(table, at, first, known.value if known else None, kept, own, bool(changed)))
    return found


def _cell(old: OldBook, record: Record, alignments: Mapping[str, Alignment], name: str, at: int) -> Cell | None:
    """The cell of a column in a recorded row, wherever it stands now."""
    recorded, now = record.names[name], old.place_of(name)
    if now is None or recorded.sheet not in alignments:
        return None
    row = alignments[recorded.sheet].rows.get(recorded.first_row + at)
    return None if row is None else old.cells(now.sheet).get((row, now.first_column))


def _changed(record: Record, name: str, at: int, cell: Cell | None) -> bool:
    area = record.names[name]
    recorded = record.grids[area.sheet].get((area.first_row + at, area.first_column), 0)
    return digest(cell.value if cell else None, cell.formula if cell else None) != recorded


def _loose(
    old: OldBook, record: Record, title: str, typed: Mapping[str, Places], alignments: Mapping[str, Alignment]
) -> Iterable[Loose]:
    """Cells that are neither ours as they were nor typed where one may type."""
    alignment, grid, cells = alignments[title], record.grids[title], old.cells(title)
    free = {at for place in typed.get(title, ()) if (at := alignment.now(*place))}
    free |= _map(old, title)
    free |= {
        (area.first_row, area.first_column)
        for name in record.opened
        if (area := old.place_of(name)) and area.sheet == title
    }
    ours = {at: code for place, code in grid.items() if (at := alignment.now(*place))}
    figures, digests = _figures(record, title, alignment), old.digests(title)
    for at in sorted(cells, key=lambda at: (at[1], at[0])):
        cell = cells[at]
        if cell.empty or at in free or at in figures:
            continue
        if ours.get(at) != digests.get(at):
            yield Loose(title, *at, cell, _beside(cells, *at), at in ours)


def _map(old: OldBook, title: str) -> Places:
    """The cells of the record's own map, which cannot describe itself."""
    area = old.place_of(records.MAP)
    if area is None or area.sheet != title:
        return set()
    return {(row, area.first_column - at) for row in range(area.first_row - 1, area.last_row + 1) for at in (0, 1)}


def _figures(record: Record, title: str, alignment: Alignment) -> Places:
    """Cells of a table's columns above those that may be typed in: a program may have written figures there."""
    return {
        at
        for name, first in record.typed.items()
        if (area := record.names[name]).sheet == title
        for row in range(area.first_row, area.first_row + first)
        if (at := alignment.now(row, area.first_column))
    }


def _beside(cells: Mapping[tuple[int, int], Cell], row: int, column: int) -> str:
    for left in range(column):
        cell = cells.get((row, left))
        if cell is not None and cell.formula is None and isinstance(cell.value, str) and cell.value.strip():
            return cell.value.strip()
    return ""


def _names(old: OldBook, record: Record) -> list[Named]:
    """The planner's own names; those that Excel makes for itself on our sheets are not among them."""
    known = {name.casefold() for name in (*record.names, records.MAP)}

    def ours(name: Named) -> bool:
        kept = name.name.casefold().startswith(("_xlnm.", "_xlfn.", "_xlpm."))
        function = "(" in name.text and (name.name in registered() or name.name.startswith(BEGIN))
        return (name.sheet is None and (function or name.name.casefold() in known)) or (
            kept and (name.sheet is None or name.sheet in record.grids)
        )

    return [name for name in old.names if not ours(name)]


def _remarks(old: OldBook, sheet: Sheet) -> Iterable[Remark]:
    for link in old.links_of(sheet.part):
        if link.kind == "comments" and link.target in old.parts:
            for comment in old.tree(link.target).iter(MAIN + "comment"):
                text = "".join(piece.text or "" for piece in comment.iter(MAIN + "t"))
                yield Remark(sheet.title, comment.get("ref", ""), text)


def _drawings(old: OldBook, record: Record, sheet: Sheet) -> list[Element]:
    """The anchors of a sheet's drawing that are not ours. Each chart of ours is taken away once."""
    left = list(record.charts.get(sheet.title, ()))
    found = []
    drawing = next((link.target for link in old.links_of(sheet.part) if link.kind == "drawing"), None)
    if drawing is None or drawing not in old.parts:
        return []
    charts = {link.id: link.target for link in old.links_of(drawing) if link.kind == "chart"}
    for anchor in old.tree(drawing):
        if local(anchor) not in ("twoCellAnchor", "oneCellAnchor", "absoluteAnchor"):
            continue
        chart = next(anchor.iter(CHART + "chart"), None)
        code = 0
        if chart is not None and (part := charts.get(chart.get(RELATION + "id", ""))) in old.parts:
            series = old.tree(part).iter(CHART + "val", CHART + "yVal")
            code = drawing_digest(area for one in series if (area := one.findtext(f".//{CHART}f")))
        if code in left:
            left.remove(code)
        elif (
            next(anchor.iter(DRAWING + "graphicFrame", DRAWING + "pic", DRAWING + "sp", DRAWING + "cxnSp"), None)
            is not None
        ):
            found.append(anchor)
    return found  # fmt: skip


def shown(loose: Loose) -> str:
    """Where a cell stands, as a reader says it."""
    return f"{loose.sheet}!{address(loose.row, loose.column)}"

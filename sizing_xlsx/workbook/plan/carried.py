"""What a planner typed into a plan, as the template that a new plan opens on: so its figures are stored as well.

Each table (jobs, cards, offers) is one thing: where any of its cells differs from the plan as it is shipped, all of
its rows go over. Cells that no template holds (formulas, truth values) are put into the new file afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...capacity.kinds import KINDS, input_of
from ...formula.domains import day_of
from ...formula.render import public_name
from ..carry.cells import Cell
from ..carry.changes import Changes, Loose, Row, Typed
from ..carry.old_book import OldBook
from ..carry.record import Record
from ..carry.renames import Renames
from ..carry.report import Report, told
from ..carry.typed import plain
from .book import CARD_COUNT, OFFER_COUNT, ROW_COUNT
from .typed import TABLES, opened_with, rows_of, setting_names

SPARE_ROWS = 10  # of Jobs below the last one in use, where that is more than the rows of a plan
_ROOM = {"cards": CARD_COUNT, "offers": OFFER_COUNT}  # rows of the tables that do not grow
_KINDS = {"jobs": "job", "cards": "card", "offers": "offer"}


class Carried(NamedTuple):
    """The template that the new plan opens on, and how many rows its jobs need.

    later: cells of settings that are put in afterwards, by name. rows: of tables, with such cells alone. loose:
    cells beside ours, without those of rows that were put between the rows of a table.
    """

    template: Mapping[str, Any]
    row_count: int
    later: dict[str, Typed]
    rows: list[Row]
    loose: list[Loose]


def row_count(jobs: int) -> int:
    """How many rows a plan has that opens on so many."""
    return max(ROW_COUNT, jobs + SPARE_ROWS)


def carried(
    old: OldBook, record: Record, its: Changes, template: Mapping[str, Any], renames: Renames, report: Report
) -> Carried:
    """All that was typed, whether it is right or not: the new plan says of each cell what is wrong with it."""
    later, settings = _settings(its, template, renames, report)
    opened = opened_with(template, settings)
    known = {renames.name(name): name for name in record.typed}
    changed = {name for row in its.rows if row.changed for name in row.cells}
    rows: list[Row] = []
    inside: set[tuple[str, int, int]] = set()
    for table, names in TABLES.items():
        columns = {key: known[name] for key, name in names.items() if name in known}
        put_in = _put_in(old, columns, its)
        if changed.isdisjoint(columns.values()) and not put_in:
            continue
        cells = {key: _column(old, name, inside) for key, name in columns.items()}
        held = {key: [_value(key, cell, renames) for cell in found] for key, found in cells.items()}
        opened[table] = _that_fit(table, rows_of(held), report)
        later_cells = _put_later(table, {columns[key]: found for key, found in cells.items()}, held, columns)
        rows += [row for row in later_cells if row.at < _ROOM.get(table, row.at + 1)]
        _tell(table, its, columns, put_in, report)
    used = max([len(opened["jobs"]), *(row.at + 1 for row in rows if row.table == "jobs")])
    loose = [one for one in its.loose if (one.sheet, one.row, one.column) not in inside]
    return Carried(opened, row_count(used), later, rows, loose)


def _settings(
    its: Changes, template: Mapping[str, Any], renames: Renames, report: Report
) -> tuple[dict[str, Typed], dict[tuple[str, str], Any]]:
    names, later, found = setting_names(template), dict[str, Typed](), dict[tuple[str, str], Any]()
    for typed in its.inputs:
        name = renames.name(typed.name)
        if name != typed.name:
            report.renamed[typed.name] = name
        if name not in names or not _opens(typed.cell):
            later[name] = typed
            continue
        value = plain(typed.cell.value if typed.cell else None)
        if isinstance(value, str):
            value = renames.choice(public_name(names[name][1]), value)
        found[names[name]] = value
        report.carry("input", f"{name} {told(value)}")
    return later, found


def _opens(cell: Cell | None) -> bool:
    """Whether a template may hold what a cell does, and a workbook that opens on it shows the same."""
    if cell is None:
        return True
    return cell.formula is None and not isinstance(cell.value, bool) and day_of(cell.value) == cell.value


def _column(old: OldBook, name: str, inside: set[tuple[str, int, int]]) -> list[Cell | None]:
    area = old.place_of(name)
    if area is None:
        return []
    inside |= {(area.sheet, row, area.first_column) for row in range(area.first_row, area.last_row + 1)}
    return old.at(area)


def _value(key: str, cell: Cell | None, renames: Renames) -> Any:
    """What a cell of a table opens on; None where it is put in later."""
    value = plain(cell.value) if cell and _opens(cell) else None
    if isinstance(value, str):
        for name in dict.fromkeys((public_name(key), *(public_name(input_of(kind, key)) for kind in KINDS))):
            value = renames.choice(name, value)
    return value


def _put_later(
    table: str,
    cells: Mapping[str, list[Cell | None]],
    held: Mapping[str, list[Any]],
    columns: Mapping[str, str],
) -> list[Row]:
    """The rows of a table that have cells which no template holds, with these cells alone."""
    found = []
    for at in range(max(map(len, cells.values()), default=0)):
        odd = {name: cell for name, line in cells.items() if at < len(line) and not _opens(cell := line[at])}
        if odd:
            names = next(iter(held.values()))
            found.append(Row(table, at, 0, names[at] if at < len(names) else None, odd, True, True))
    return found


def _put_in(old: OldBook, columns: Mapping[str, str], its: Changes) -> dict[int, str]:
    """Rows that a planner put between those of a table and typed into: its row -> what its first column says."""
    areas = [area for name in columns.values() if (area := old.place_of(name)) is not None]
    found: dict[int, str] = {}
    for one in its.loose:
        for at, area in enumerate(areas):
            rows = range(area.first_row, area.last_row + 1)
            if (one.sheet, one.column) == (area.sheet, area.first_column) and one.row in rows:
                said = str(one.cell.value) if at == 0 and one.cell.value not in (None, "") else ""
                found[one.row] = said or found.get(one.row, "")
    return found


def _that_fit(table: str, rows: list[dict[str, Any]], report: Report) -> list[dict[str, Any]]:
    """The rows that a plan has room for; the report names those that it has not."""
    room = _ROOM.get(table, len(rows))
    for row in rows[room:]:
        if row:
            report.gone.append(f"{_KINDS[table]} {told(next(iter(row.values())))}: a plan has {room} rows of {table}")
    return rows[:room]


def _tell(table: str, its: Changes, columns: Mapping[str, str], put_in: Mapping[int, str], report: Report) -> None:
    """Each row that differs, by what its first column says: a job by its name, an offer by its card."""
    names, first = set(columns.values()), next(iter(columns.values()), "")
    for at, said in sorted(put_in.items()):
        report.carry(_KINDS[table], said or f"a row put in at {at + 1}")
    for row in its.rows:
        if row.changed and not names.isdisjoint(row.cells):
            cell = row.cells.get(first)
            said = str(cell.value) if cell is not None and cell.value not in (None, "") else ""
            emptied = all(cell is None or cell.empty for cell in row.cells.values())
            report.carry(_KINDS[table], said or f"row {row.at + 1}{', emptied' if emptied else ''}")

"""Typed values of an old workbook, for the new one: inputs that it opens on, and rows of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...formula.render import public_name
from ..planner_file import Area
from ..sheet_part import Value
from .changes import ROW_KEYS, Changes, Row, Typed
from .draft import Draft
from .record import Record
from .references import References
from .renames import Renames
from .report import Report, told

if TYPE_CHECKING:
    from ...formula.job import Job


class Inputs(NamedTuple):
    """What the new workbook opens on, by input; and cells that are put into it afterwards, by name."""

    opened_on: dict[str, Any]
    later: dict[str, Typed]


def inputs_for(job: Job, changes: Changes, renames: Renames, report: Report) -> Inputs:
    """The typed inputs as the new job takes them. What it does not take is told, and the default stands."""
    keys = {public_name(key).casefold(): key for key in job.inputs}
    found = Inputs({}, {})
    for typed in changes.inputs:
        name = renames.name(typed.name)
        if name != typed.name:
            report.renamed[typed.name] = name
        key = keys.get(name.casefold())
        value = plain(typed.cell.value if typed.cell else None)
        formula = typed.cell.formula if typed.cell else None
        if key is None or formula is not None:
            found.later[name] = typed
        if key is None:
            continue
        if isinstance(value, str):
            value = renames.choice(name, value)
        try:
            found.opened_on[key] = job.accepted({key: value})[key]
        except ValueError as error:
            if formula is None:
                right = str(error).partition("; ")[2]
                default = told(job.worked[key])
                report.changed.append(f"{name} was {told(value)}; {right}: the default, {default}, stands")
            continue
        if formula is None:
            report.carry("input", f"{name} {told(found.opened_on[key])}")
    if found.opened_on:
        try:
            job.size(["verdict_code"], **found.opened_on)
        except ValueError:
            # They contradict each other, as they may have before: the workbook says so once they are typed.
            later = {public_name(key): value for key, value in found.opened_on.items()}
            renamed = {renames.name(typed.name): typed for typed in changes.inputs}
            found.later.update({name: renamed[name] for name in later if name not in found.later})
            found.opened_on.clear()
    return found


def plain(value: Value) -> Value:
    """A number as Python's int where it is whole: some programs write every number as a float."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def put_cells(
    draft: Draft, new: Record, cells: Mapping[str, Typed], references: References, renames: Renames, report: Report
) -> None:
    """Typed cells that are no plain values of inputs: formulas, and cells that no job reads."""
    for name, typed in cells.items():
        area = new.names.get(name)
        value = plain(typed.cell.value if typed.cell else None)
        formula = typed.cell.formula if typed.cell else None
        if area is None or name not in new.typed:
            report.gone.append(f"{typed.name}, which held {told('=' + formula if formula else value)}")
            continue
        if formula is not None:
            followed = references.formula(formula)
            report.tell(name, followed.lost)
            formula = followed.text
        elif isinstance(value, str):
            value = renames.choice(name, value)
        draft.put(area.sheet, area.first_row, area.first_column, value, formula)
        report.carry("input", f"{name} {'=' + formula if formula is not None else told(value)}")


def runs_to_place(changes: Changes, known: set[str]) -> int:
    """How many rows of runs need a spare row of the new workbook. known: folded ids that it has already."""
    return sum(
        row.own and str(row.key or "").strip().casefold() not in known
        for row in changes.rows
        if row.table in ROW_KEYS and ROW_KEYS[row.table] in row.cells
    )


def put_rows(
    draft: Draft, new: Record, changes: Changes, references: References, renames: Renames, report: Report
) -> list[Row]:
    """Rows of tables into their places; returns those for which there is none."""
    left: list[Row] = []
    for row in changes.rows:
        columns = {name: renames.name(name) for name in row.cells}
        known = {name: new.names[to] for name, to in columns.items() if to in new.names and to in new.typed}
        if not known:
            left.append(row)
            continue
        first = max(new.typed[columns[name]] for name in known)
        place = _place(draft, new, row, first, next(iter(known.values())), renames)
        if place is None:
            left.append(row)
            continue
        at, theirs = place
        if theirs:
            if row.changed:
                report.notes.append(f"{_title(row)} stands as this build has it.")
            continue
        wrote = False
        for name, area in known.items():
            wrote |= _put(draft, area, at, row, name, references, columns[name], report)
        for name in columns.keys() - known.keys():
            if (cell := row.cells[name]) is not None and not cell.empty:
                report.gone.append(f"the column {name}, which held {told(cell.value)} in {_title(row)}")
        if wrote and row.changed:
            report.carry(_KINDS.get(row.table, f"row of {row.table}"), str(row.key or f"row {row.at + 1}"))
        elif wrote:
            report.carry("measured run", str(row.key))
    return left


_KINDS = {
    "GPUs": "price", "Validation": "run", "Scenarios": "scenario",
    "jobs": "formula of job", "cards": "formula of card", "offers": "formula of offer",
}  # fmt: skip


def _title(row: Row) -> str:
    return f"{row.table} {row.key if row.key not in (None, '') else f'row {row.at + 1}'}"


def _place(draft: Draft, new: Record, row: Row, first: int, area: Area, renames: Renames) -> tuple[int, bool] | None:
    """The row of the new table that a row goes to, from 0, and whether that row is made by this build already."""
    size = area.last_row - area.first_row + 1
    key = ROW_KEYS.get(row.table)
    if key is None or key not in new.names:
        at = first + row.at - row.first
        return (at, False) if at < size else None
    where = new.names[key]
    values = [cell.value if cell else None for cell in draft.book.at(where)]
    known = {str(value).strip().casefold(): at for at, value in enumerate(values) if value not in (None, "")}
    said = str(row.key if row.key is not None else "").strip()
    for choices in renames.choices.values():
        said = choices.get(said.casefold(), said)
    if said and said.casefold() in known:
        at = known[said.casefold()]
        return at, row.own and key in row.cells
    if not row.own or key not in row.cells:
        return None  # a row of ours that is no longer there
    free = next((at for at in range(first, size) if values[at] in (None, "")), None)
    return None if free is None else (free, False)


def _put(
    draft: Draft, area: Area, at: int, row: Row, name: str, references: References, to: str, report: Report
) -> bool:
    cell = row.cells[name]
    place = (area.first_row + at, area.first_column)
    here = draft.book.cells(area.sheet).get(place)
    if here is not None and here.formula is not None:
        return False
    value, formula = (plain(cell.value), cell.formula) if cell else (None, None)
    if formula is not None:
        followed = references.formula(formula)
        report.tell(f"{area.sheet}, {to}, {_title(row)}", followed.lost)
        formula = followed.text
    if formula is None and (here.value if here else None) == value:
        return False
    draft.put(area.sheet, *place, value, formula)
    return True

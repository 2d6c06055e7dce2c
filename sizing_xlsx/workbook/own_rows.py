"""What the tables of a workbook know beyond the catalogue: cards and models that its planner added to them.

They come from files that were given when the workbook was built, which its sheet Record holds, or from rows that were
typed into its sheets GPUs and Presets, between the rows that stand there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..formula.render import column_name
from ..formula.table import Table
from ..presets.names import checked_name, one_line, shown
from .carry import record
from .carry.own_files import with_kept
from .patch import open_package

if TYPE_CHECKING:
    from ..presets.catalogue import Presets
    from .planner_file import Area, PlannerFile

_TABLES = {"gpus": "card", "models": "model", "training_models": "model"}  # what a row of each is
_MAY_BE_EMPTY = (  # what time, money and warnings rest on, and no memory; 0 is not known
    "price_usd_per_hour", "bf16_dense_tflops", "fp32_tflops", "power_w", "interconnect_gb_per_s",
    "emulates_bf16", "mig_slice",
)  # fmt: skip
_NAMING = {"layer_form": "layer_forms", "published_format": "storage_formats"}  # columns that name a row of a table


def with_rows_of(presets: Presets, path: str | os.PathLike[str]) -> Presets:
    """The presets with the cards and models of a workbook that they lack; the same ones where there are none.

    Raises ValueError, one sentence with the file, the row, the column, its value and what is right.
    """
    where = one_line(str(path))
    file = open_package(path, read_only=True)
    presets, _, refused = with_kept(presets, _files(file))
    if refused:
        raise ValueError(f"{where}, own {refused[0]}")
    longer: dict[str, Any] = {}
    for name in _TABLES:
        known: Table = getattr(presets, name)
        if rows := _rows(file, where, known, presets):
            longer[name] = _longer(known, rows, where)
    return presets._replace(**longer) if longer else presets


def _files(file: PlannerFile) -> list[record.OwnFile]:
    """The files of own models and cards that the workbook keeps; none where it has no record of itself."""
    columns = (record.KINDS, record.FILES, record.CONTENTS)
    if any(_area(file, name) is None for name in columns):
        return []
    return record.files_of({name: file.column_values(file.area(name)) for name in columns})


def _area(file: PlannerFile, name: str) -> Area | None:
    try:
        return file.area(name)
    except ValueError:
        return None


def _rows(file: PlannerFile, where: str, known: Table, presets: Presets) -> dict[str, dict[str, Any]]:
    """The rows of a table in the workbook whose names the presets lack: name -> column -> value."""
    names = _area(file, column_name(known.name, None))
    if names is None:
        return {}
    areas = {column: _area(file, column_name(known.name, column)) for column in known.columns}
    found: dict[str, dict[str, Any]] = {}
    for row, value in enumerate(file.column_values(names), names.first_row):
        name = "" if value is None else str(value)
        if not name or name.casefold() in known.index:
            continue
        place = f"{where}, {names.sheet} row {row + 1}"
        checked_name(name, place, f"the {_TABLES[known.name]}")
        place += f", {_TABLES[known.name]} {shown(name)}"
        found[name] = {
            column: _checked(file.cell(area.sheet, row, area.first_column).value, known, column, place, presets)
            for column, area in areas.items()
            if area is not None  # a column without a name is read by no formula
        }
    return found


def _checked(value: Any, known: Table, column: str, place: str, presets: Presets) -> Any:
    """A cell of a row, as formulas take it."""
    told = "empty" if value is None else shown(value)
    if known.units[column] == "text":
        text = "" if value is None else str(value)
        table: Table | None = getattr(presets, _NAMING[column]) if column in _NAMING else None
        if table is not None and text.casefold() not in table.index:
            some = ", ".join(map(shown, table.keys[:6]))
            raise ValueError(f"{place}: {column} is {told}; it must be one of those on Presets, such as {some}")
        return text
    if value is None and column in _MAY_BE_EMPTY:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ValueError(f"{place}: {column} is {told}; it must be a number in {known.units[column]}, 0 or more")
    return value


def _longer(known: Table, rows: dict[str, dict[str, Any]], where: str) -> Table:
    """The table with the rows before its own."""
    absent = {column: "" if unit == "text" else 0 for column, unit in known.units.items()}
    columns = {
        column: [*(row.get(column, absent[column]) for row in rows.values()), *values]
        for column, values in known.columns.items()
    }
    try:
        return Table(known.name, [*rows, *known.keys], columns, known.units)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None

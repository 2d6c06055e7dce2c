"""What one workbook of the two says: its inputs, the presets that it holds, its results and its formulas."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...formula.render import column_name, public_name
from ...formula.table import Table
from ...jobs import make_job
from ...presets.catalogue import OWN_TABLES, Presets
from ...presets.names import one_line, shown
from ..carry.old_book import OldBook
from ..carry.renames import Renames, read_renames
from ..carry.typed import plain
from ..own_runs import NOT_GIVEN
from ..package import find_workbook, read_workbook
from ..sheet_part import Value
from ..sorts import refuse_plan

ONLY_LORA = "LoRA_Rank"  # a name that the training workbook does not have


class Side(NamedTuple):
    """One workbook. inputs: by input, as its own presets allow them. lacking: inputs that it does not have.

    results, constants: stored values by term. shapes: term -> digest of its formula. presets: what its sheets hold.
    """

    where: str
    version: str
    job: str
    inputs: dict[str, Any]
    lacking: list[str]
    results: dict[str, Value]
    constants: dict[str, Value]
    shapes: dict[str, int]
    presets: Presets


def read_side(path: Path, presets: Presets, folder: Path) -> Side:
    """A workbook as one side. presets, folder: of this program, for what the workbook does not hold itself.

    Raises ValueError, one sentence, for a file that cannot be read, is none of ours, or whose inputs are at fault.
    """
    where = one_line(str(path))
    book = OldBook(read_workbook(find_workbook(path, where), where), where)
    refuse_plan(book.everywhere, where, "which diff does not compare")
    if not book.sort:
        raise ValueError(f"{where} is a workbook that this program has not made; name one of build.py")
    job = book.record.job if book.record else "lora" if ONLY_LORA.casefold() in book.everywhere else "training"
    names = _Names(book, read_renames(folder, book.version))
    held = _presets(names, presets)
    typed = {}
    lacking = []
    declared = make_job(job, presets)
    for key in declared.inputs:
        found = names.cell(public_name(key))
        if found is _MISSING:
            lacking.append(key)
        else:
            typed[key] = plain(found)
    sized = make_job(job, held, (), None if _defaults_held(declared, held) else _acceptable(typed, declared, held))
    try:
        inputs = sized.accepted({key: _given(value) for key, value in typed.items()})
        sized.size(["verdict_code"], **inputs)
    except ValueError as error:
        raise ValueError(f"{where}: {error}; correct it there, for a faulty job has no results to compare") from None
    return Side(
        where,
        book.version,
        job,
        inputs,
        lacking,
        {key: value for key in declared.terms if (value := names.cell(public_name(key))) is not _MISSING},
        {key: value for key in declared.constants if (value := names.cell(public_name(key))) is not _MISSING},
        {key: code for key in declared.terms if (code := names.shape(public_name(key)))},
        held,
    )


class _Missing:
    pass


_MISSING: Any = _Missing()


class _Names:
    """The cells of a workbook by the names that they have now."""

    def __init__(self, book: OldBook, renames: Renames) -> None:
        self.book = book
        self.renames = renames
        self._was = {renames.name(name).casefold(): name for name in book.everywhere}

    def _name(self, name: str) -> str:
        return self._was.get(name.casefold(), name)

    def cell(self, name: str) -> Value:
        """The value of a named cell; _MISSING where there is none."""
        area = self.book.place_of(self._name(name))
        if area is None:
            return _MISSING  # type: ignore[no-any-return]
        cell = self.book.cells(area.sheet).get((area.first_row, area.first_column))
        value = cell.value if cell else None
        return self.renames.choice(name, value) if isinstance(value, str) else value

    def shape(self, name: str) -> int:
        """What the formula of a named cell is, as a number; 0 where there is none."""
        area = self.book.place_of(self._name(name))
        return self.book.digests(area.sheet).get((area.first_row, area.first_column), 0) if area else 0

    def column(self, name: str) -> list[Value] | None:
        """The values of a named column; None where there is no such name."""
        was = self._name(name)
        return self.book.values(was) if self.book.place_of(was) is not None else None


def _presets(names: _Names, presets: Presets) -> Presets:
    """The presets with the tables that a workbook holds in place of the program's."""
    tables = {name: _table(names, table) for name, table in presets.tables.items()}
    own: dict[str, Any] = {name: tables[name] for name in OWN_TABLES}
    return presets._replace(**own, options={name: tables[name] for name in presets.options})


def _table(names: _Names, table: Table) -> Table:
    keys = names.column(column_name(table.name, None))
    if keys is None or any(not isinstance(key, str) or not key for key in keys):
        return table
    for renamed in names.renames.choices.values():
        keys = [renamed.get(str(key).casefold(), str(key)) for key in keys]
    columns: dict[str, list[Any]] = {}
    for name, mine in table.columns.items():
        held = names.column(column_name(table.name, name))
        missing: Any = "" if table.units[name] == "text" else 0
        if held is not None:
            columns[name] = [_cleaned(value, missing) for value in held]
        else:
            columns[name] = [
                mine[row - 1] if (row := table.index.get(str(key).casefold())) else missing for key in keys
            ]
    return Table(table.name, [str(key) for key in keys], columns, table.units)


def _cleaned(value: Value, missing: Any) -> Any:
    if isinstance(missing, str):
        return "" if value is None else str(value)
    return plain(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def _given(value: Value) -> Value:
    return None if value in ("", NOT_GIVEN) else value


def _defaults_held(declared: Any, held: Presets) -> bool:
    """Whether the worked job's choices are all in a workbook's own lists."""
    return not _absent(declared, held)


def _absent(declared: Any, held: Presets) -> list[str]:
    from ...formula.declare import Choice

    return [
        key
        for key, given in declared.inputs.items()
        if isinstance(given.domain, Choice)
        and str(given.default).casefold() not in held.tables[given.domain.table].index
    ]


def _acceptable(typed: Mapping[str, Value], declared: Any, held: Presets) -> dict[str, Any]:
    """What a job is opened on whose defaults are not in the lists: what is typed there."""
    found = {key: typed.get(key) for key in _absent(declared, held)}
    for key, value in found.items():
        table = held.tables[declared.inputs[key].domain.table]
        if str(value).casefold() not in table.index:
            raise ValueError(f"{key} is {shown(value)}, which the workbook's own list of {table.name} does not have")
    return found

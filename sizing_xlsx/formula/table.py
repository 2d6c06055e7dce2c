"""Preset data as the formulas see it: rows by key, columns by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .expression import Expr
from .units import kind_of


class Column:
    """One column of a table. Indexed by a row number it gives the cell; by a symbol, the look-up as a tree."""

    __slots__ = ("name", "table", "unit", "values")

    def __init__(self, table: Table, name: str, values: Sequence[Any], unit: str) -> None:
        self.table, self.name, self.values, self.unit = table, name, values, unit

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, Expr):
            kind = kind_of(self.unit)
            return Expr("cell", (Expr("range", (self.table.name, self.name), kind), row), kind)
        return self.values[row - 1]


class Table:
    """Rows by key, columns by name. Row numbers start at 1, in Python as in a sheet.

    name: a plural noun, as terms call it in their parameters ("models").
    keys: the row names, unique without regard to case.
    columns: column name -> values, one per key. units: column name -> unit (see units.py).
    Raises ValueError when keys repeat or a column has another length.
    """

    def __init__(
        self, name: str, keys: Sequence[str], columns: Mapping[str, Sequence[Any]], units: Mapping[str, str]
    ) -> None:
        self.name = name
        self.keys = tuple(keys)
        self.columns = {column: tuple(values) for column, values in columns.items()}
        self.units = dict(units)
        self.index: dict[str, int] = {}
        for row, key in enumerate(self.keys, 1):
            folded = key.casefold()
            if folded in self.index:
                raise ValueError(
                    f"{name}: {key!r} and {self.keys[self.index[folded] - 1]!r} are the same name "
                    "without regard to case; rename one of them"
                )
            self.index[folded] = row
        for column, values in self.columns.items():
            if len(values) != len(self.keys):
                raise ValueError(f"{name}.{column} has {len(values)} values for {len(self.keys)} keys")
            if column not in self.units:
                raise ValueError(f"{name}.{column} has no unit")

    def row_of(self, key: Any) -> Any:
        """The 1-based row of a key, without regard to case; KeyError when there is none."""
        if isinstance(key, Expr):
            return Expr("row", (key, Expr("range", (self.name, None), "text")), "count")
        return self.index[key.casefold()]

    def __getattr__(self, column: str) -> Column:
        try:
            values = self.__dict__["columns"][column]
        except KeyError:
            raise AttributeError(f"table {self.__dict__.get('name', '?')} has no column {column!r}") from None
        return Column(self, column, values, self.units[column])

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys)

    def __len__(self) -> int:
        return len(self.keys)

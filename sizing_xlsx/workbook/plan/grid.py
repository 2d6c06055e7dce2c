"""The rows of a plan over several sheets: one job a row, at the same height on each; columns know where they stand.

A column's formula is written once, over the keys of other columns; its value on the row that the workbook opens on
comes from a function beside it, over the values of those columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..jobtable import ROW
from ..scenarios import letters

if TYPE_CHECKING:
    from ..book import Book

FIRST = 11  # row of the first job, from 0, on every sheet
Values = dict[str, Any]
At = Callable[[str], str]  # key of a column -> its cell in the same row


class Column(NamedTuple):
    """One column. formula: over the cells of others; value: over their values. style: of its cells."""

    key: str
    head: str
    unit: str
    formula: Callable[[At], str]
    value: Callable[[Values], Any]
    style: str = ""


class _Row(Values):
    """The values of a row, each evaluated when it is first asked for."""

    def __init__(self, typed: Values, columns: Mapping[str, Column]) -> None:
        super().__init__(typed)
        self._columns = columns

    def __missing__(self, key: str) -> Any:
        self[key] = value = self._columns[key].value(self)
        return value


class Grid:
    """Where each column of each sheet stands, and what its rows hold."""

    def __init__(self, rows: int) -> None:
        self.rows, self.columns = rows, list[tuple[str, int, Column]]()
        self.places: dict[str, tuple[str, int]] = {}
        self.next: dict[str, int] = {}

    @property
    def last(self) -> int:
        """The last row, from 0."""
        return FIRST + self.rows - 1

    def place(self, key: str, sheet: str, column: int) -> None:
        """Say where a column that is written elsewhere stands."""
        self.places[key] = (sheet, column)

    def add(self, sheet: str, columns: Sequence[Column]) -> None:
        """Further columns of a sheet, in the order in which they are evaluated."""
        for column in columns:
            at = self.next.get(sheet, 2)
            self.next[sheet] = at + 1
            self.place(column.key, sheet, at)
            self.columns.append((sheet, at, column))

    def skip(self, sheet: str) -> None:
        """Leave a column empty."""
        self.next[sheet] = self.next.get(sheet, 2) + 1

    def at(self, sheet: str) -> At:
        """Addresses as formulas of one sheet have them, with ROW for the row's number."""

        def address(key: str) -> str:
            where, column = self.places[key]
            cell = f"${letters(column)}{ROW}"
            return cell if where == sheet else f"'{where}'!{cell}"

        return address

    def across(self, sheet: str, first: str, last: str) -> str:
        """The cells of a row from one column to another, as formulas of a sheet have them."""
        where, column = self.places[first]
        cells = f"${letters(column)}{ROW}:${letters(self.places[last][1])}{ROW}"
        return cells if where == sheet else f"'{where}'!{cells}"

    def area(self, key: str) -> str:
        """All rows of a column, absolutely."""
        where, column = self.places[key]
        return f"'{where}'!${letters(column)}${FIRST + 1}:${letters(column)}${self.last + 1}"

    def evaluate(self, rows: Sequence[Values]) -> list[Values]:
        """The values of every column; equal rows are evaluated once. rows: what is typed, by key."""
        columns = {facts.key: facts for _, _, facts in self.columns}
        found: list[Values] = []
        known: dict[str, Values] = {}
        for row in rows:
            same = known.setdefault(repr(sorted(row.items())), {})
            values = _Row({**same, **row, "_rows": found}, columns)
            for key in columns:
                values[key]
            found.append(values)
            same.update({key: value for key, value in values.items() if key not in self.running})
        return found

    running: frozenset[str] = frozenset()  # columns that depend on the rows above

    def write(self, book: Book, values: Sequence[Values], heads: Mapping[str, int]) -> None:
        """Write all columns. heads: sheet -> row of their heads, the units below."""
        styles, at = book.styles, {sheet: self.at(sheet) for sheet, _, _ in self.columns}
        for sheet, column, facts in self.columns:
            ws = book.sheet(sheet)
            book.put(ws, heads[sheet], column, facts.head, styles["th_open_r"])
            book.put(ws, heads[sheet] + 1, column, facts.unit, styles["th_u"])
            pieces = facts.formula(at[sheet]).replace("{above}", f"{ROW}\0").split(ROW)
            plain, text = styles[facts.style] if facts.style else _plain(book), styles[facts.style or "r_text_r"]
            for number, row in enumerate(values):
                value, where = row[facts.key], FIRST + number
                formula = str(where + 1).join(pieces)
                if "\0" in formula:
                    formula = formula.replace(f"{where + 1}\0", str(where))
                ws.write_formula(where, column, formula, text if isinstance(value, str) else plain, value)


def _plain(book: Book) -> Any:
    return book.styles.variant("r_calc0", format="general", shrink=True)

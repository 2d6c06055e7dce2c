"""References to our cells, followed from one version of a workbook to the next.

A name stays a name, under its new one where it was renamed. An address is followed where its cell is known in both
versions: by its defined name, by the row of a named table that it stands in, or because the same formula or text
stands exactly once on the sheet in both. What cannot be followed stays as it is and is told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..planner_file import Area
from ..sheet_part import Value, address, box
from .changes import ROW_KEYS, Changes, row_key
from .old_book import OldBook
from .record import Record
from .renames import Renames

At = tuple[str, int, int]  # sheet, row and column from 0
_SHEET = re.compile(r"^('(?:[^']|'')+'|[^'!]+)!(.*)$", re.DOTALL)
_CELLS = re.compile(r"(\$?)([A-Za-z]{1,3})(\$?)([0-9]{1,7})(?::(\$?)([A-Za-z]{1,3})(\$?)([0-9]{1,7}))?")
_COLUMNS = re.compile(r"\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3}|\$?[0-9]+:\$?[0-9]+")
_NAME = re.compile(r"[^\W\d][\w.\\?]*")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


class Followed(NamedTuple):
    """A formula for the new workbook, and what in it could not be followed, in words."""

    text: str
    lost: list[str]


class References:
    """Follows references of one workbook. values: key column -> its values in the new workbook, as carried over.

    loose: cells of the planner's that stood on our sheets -> where they stand now. titles: tabs of the planner's that
    had to be called otherwise; own_names: names of theirs that had to.
    """

    def __init__(
        self,
        old: OldBook,
        record: Record,
        changes: Changes,
        new: Record,
        renames: Renames,
        keys: Mapping[str, list[Value]],
    ) -> None:
        self.old, self.record, self.new, self.renames, self.keys = old, record, new, renames, keys
        self.loose: dict[At, At] = {}
        self.titles: dict[str, str] = {}
        self.own_names: dict[str, str] = {}
        self.used_renames: dict[str, str] = {}
        self._new_names = {name.casefold(): name for name in new.names}
        self._old_names = {name.casefold(): name for name in record.names}
        self._new_sheets = {title.casefold(): title for title in new.grids}
        self._back: dict[str, tuple[dict[int, int], dict[int, int]]] = {
            title: ({now: was for was, now in a.rows.items()}, {now: was for was, now in a.columns.items()})
            for title, a in changes.alignments.items()
        }
        self._cells: dict[At, str] = {}
        self._lists: list[tuple[str, Area]] = []
        for name, area in record.names.items():
            if (area.first_row, area.first_column) == (area.last_row, area.last_column):
                self._cells.setdefault((area.sheet, area.first_row, area.first_column), name)
            else:
                self._lists.append((name, area))
        self._places: dict[tuple[int, str], dict[int, list[tuple[int, int]]]] = {}

    # -- formulas

    def formula(self, text: str, home: str = "") -> Followed:
        """A formula without its equals sign. home: a sheet of ours that it stood on and has left."""
        from openpyxl.formula import Tokenizer
        from openpyxl.formula.tokenizer import Token, TokenizerError

        try:
            tokens = Tokenizer("=" + text).items
        except (TokenizerError, IndexError):
            return Followed(text, ["a formula that cannot be read"])
        lost: list[str] = []
        pieces = []
        for token in tokens:
            value = token.value
            if token.type == Token.OPERAND and token.subtype == Token.RANGE:
                value = self.operand(value, home, lost)
            elif token.type == Token.FUNC and token.subtype == Token.OPEN and value.upper() == "INDIRECT(":
                lost.append("INDIRECT, whose text is not followed")
            pieces.append(value)
        return Followed("".join(pieces), lost)

    def operand(self, text: str, home: str, lost: list[str]) -> str:
        """One reference: a name, cells or columns, with or without their sheet."""
        found = _SHEET.match(text)
        title = _unquoted(found[1]) if found else home
        inner = found[2] if found else text
        if not title:
            return self._named(inner, lost)
        if title.casefold() in self.titles:
            return f"{quoted(self.titles[title.casefold()])}!{inner}"
        sheet = next((known for known in self.record.grids if known.casefold() == title.casefold()), None)
        if sheet is None:
            return text
        if not _CELLS.fullmatch(inner) and not _COLUMNS.fullmatch(inner):
            if _NAME.fullmatch(inner) and not found:
                return self._named(inner, lost)
            return text
        if _COLUMNS.fullmatch(inner):
            return self._columns(sheet, inner, lost)
        return self._area(sheet, inner, lost)

    def _named(self, text: str, lost: list[str]) -> str:
        folded = text.casefold()
        if folded in self.own_names:
            return self.own_names[folded]
        if not _NAME.fullmatch(text) or folded not in self._old_names:
            return text
        new = self.renames.name(text)
        if new.casefold() not in self._new_names:
            lost.append(f"{text}, a name that no longer exists")
            return text
        if new != text and folded != new.casefold():
            self.used_renames[self._old_names[folded]] = new
        return new if folded != new.casefold() else text

    def _columns(self, sheet: str, inner: str, lost: list[str]) -> str:
        title = self.renames.sheet(sheet)
        if title.casefold() not in self._new_sheets:
            lost.append(f"{quoted(sheet)}!{inner}, on a sheet that no longer exists")
            return f"{quoted(sheet)}!{inner}"
        return f"{quoted(self._new_sheets[title.casefold()])}!{inner}"

    def _area(self, sheet: str, inner: str, lost: list[str]) -> str:
        cells = box(inner)
        found = _CELLS.fullmatch(inner)
        told = f"{quoted(sheet)}!{inner}"
        if cells is None or found is None:
            lost.append(told)
            return told
        single = found[6] is None
        there = self._followed(sheet, *cells)
        if there is None:
            lost.append(f"{told}, whose cell has no certain place in this version")
            title = self._new_sheets.get(self.renames.sheet(sheet).casefold())
            return f"{quoted(title)}!{inner}" if title else told
        first = _marked(there.first_row, there.first_column, found[1], found[3])
        last = _marked(there.last_row, there.last_column, found[5] or "", found[7] or "")
        return f"{quoted(there.sheet)}!{first}" + ("" if single else f":{last}")

    # -- places

    def _followed(self, sheet: str, top: int, left: int, bottom: int, right: int) -> Area | None:
        first_corner, last_corner = self._recorded(sheet, top, left), self._recorded(sheet, bottom, right)
        if first_corner and last_corner:
            first_row, first_column = first_corner
            last_row, last_column = last_corner
            for name, area in self._lists:
                if area == (sheet, first_row, last_row, first_column, last_column):
                    new = self.new.names.get(self._new_names.get(self.renames.name(name).casefold(), ""))
                    if new is not None:
                        return new
        first, last = self.cell((sheet, top, left)), self.cell((sheet, bottom, right))
        if first is None or last is None or first[0] != last[0] or first[1] > last[1] or first[2] > last[2]:
            return None
        if first[0] not in self.new.grids and (last[1] - first[1], last[2] - first[2]) != (bottom - top, right - left):
            return None  # loose cells that no longer stand side by side
        return Area(first[0], first[1], last[1], first[2], last[2])

    def _recorded(self, sheet: str, row: int, column: int) -> tuple[int, int] | None:
        """Where a cell stood when the record was made."""
        rows, columns = self._back[sheet]
        at = rows.get(row), columns.get(column)
        return None if at[0] is None or at[1] is None else (at[0], at[1])

    def cell(self, at: At) -> At | None:
        """Where a cell of the old workbook stands in the new one."""
        if at in self.loose:
            return self.loose[at]
        sheet, row, column = at
        recorded = self._recorded(sheet, row, column)
        if recorded is None:
            return None
        name = self._cells.get((sheet, *recorded))
        if name is not None:
            new = self.new.names.get(self._new_names.get(self.renames.name(name).casefold(), ""))
            return (new.sheet, new.first_row, new.first_column) if new else None
        return self._in_table(sheet, row, *recorded) or self._alike(sheet, *recorded)

    def _in_table(self, sheet: str, row: int, recorded_row: int, column: int) -> At | None:
        """By the row of a table: found by what its key column says, else by its position."""
        inside = [
            (name, area)
            for name, area in self._lists
            if area.sheet == sheet and area.first_row <= recorded_row <= area.last_row
        ]
        for name, area in inside:
            new = self.new.names.get(self._new_names.get(self.renames.name(name).casefold(), ""))
            if new is None:
                continue
            to = self._row_now(name, area, new, row, recorded_row)
            if to is None:
                continue
            if area.first_column == column:
                return new.sheet, to, new.first_column
            code = self.record.grids[sheet].get((recorded_row, column))
            here = [place for place in self._by_digest(self.new, 1, new.sheet).get(code or 0, ()) if place[0] == to]
            if code and len(here) == 1:
                return new.sheet, to, here[0][1]
        return None

    def _row_now(self, name: str, area: Area, new: Area, row: int, recorded_row: int) -> int | None:
        key = row_key(name, self.record) or _key_of(name, self.record)
        if key is None or key not in self.record.names or self.renames.name(key) not in self.keys:
            offset = recorded_row - area.first_row
            return new.first_row + offset if new.first_row + offset <= new.last_row else None
        where = self.old.place_of(key)
        cell = self.old.cells(where.sheet).get((row, where.first_column)) if where else None
        if cell is None or cell.value in (None, ""):
            return None
        said = str(cell.value).casefold()
        values = self.keys[self.renames.name(key)]
        at = next((at for at, value in enumerate(values) if str(value).casefold() == said), None)
        return None if at is None else new.first_row + at

    def _alike(self, sheet: str, row: int, column: int) -> At | None:
        """By what it says, where that stands once in both, or at the same place in both."""
        title = self._new_sheets.get(self.renames.sheet(sheet).casefold())
        code = self.record.grids[sheet].get((row, column))
        if title is None:
            return None
        if code is None:
            return (title, row, column) if (row, column) not in self.new.grids[title] else None
        there = self._by_digest(self.new, 1, title).get(code, [])
        if len(there) == 1 and len(self._by_digest(self.record, 0, sheet)[code]) == 1:
            return title, *there[0]
        return (title, row, column) if self.new.grids[title].get((row, column)) == code else None

    def _by_digest(self, record: Record, which: int, sheet: str) -> dict[int, list[tuple[int, int]]]:
        if (which, sheet) not in self._places:
            found: dict[int, list[tuple[int, int]]] = {}
            for at, code in record.grids[sheet].items():
                found.setdefault(code, []).append(at)
            self._places[which, sheet] = found
        return self._places[which, sheet]


def _key_of(name: str, record: Record) -> str | None:
    """The column of names beside a column: the longest table name that both begin with."""
    words = name.split("_")
    for count in range(len(words) - 1, 0, -1):
        key = "_".join([*words[:count], "Names", "List"])
        if key in record.names:
            return key
    return None


def key_columns(record: Record) -> list[str]:
    """Every column by which rows are known."""
    named = [name for name in record.names if name.endswith("_Names_List")]
    return [*named, *(key for key in ROW_KEYS.values() if key in record.names and key not in named)]


def quoted(title: str) -> str:
    """A tab as formulas write it."""
    if _PLAIN.fullmatch(title) and not _CELLS.fullmatch(title) and not re.fullmatch(r"(?i)R\d*(C\d*)?|C\d*", title):
        return title
    return "'" + title.replace("'", "''") + "'"


def _unquoted(title: str) -> str:
    return title[1:-1].replace("''", "'") if title.startswith("'") else title


def _marked(row: int, column: int, fixed_column: str, fixed_row: str) -> str:
    found = re.fullmatch(r"([A-Z]+)([0-9]+)", address(row, column))
    assert found is not None
    return f"{fixed_column}{found[1]}{fixed_row}{found[2]}"

"""The XML of one worksheet: at which bytes each cell lies in it, and what it holds.

Expat says at which byte each tag begins. So a part is never written anew: sheet_edit.py cuts other cells in, and
prefixes, extensions, comments and line ends elsewhere cannot change.

Rows and columns count from 0.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple, NoReturn

from ..presets.names import shown
from .package import COPY, Events

Value = str | int | float | bool | None
Box = tuple[int, int, int, int]  # first row, first column, last row, last column

ROWS, COLUMNS = 1_048_576, 16_384
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"

_TAG = re.compile(rb"<([^\s/>]+)((?:\s+[^\s=]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)\s*(/?)>")
_ADDRESS = re.compile(r"\$?([A-Za-z]{1,3})\$?([1-9][0-9]{0,6})")
_NUMBER = re.compile(r"[0-9]{1,9}")
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


class CellValue(NamedTuple):
    """What a cell holds; an error as its text. formula: the value comes from one, of this cell or an array."""

    value: Value
    formula: bool


def address(row: int, column: int) -> str:
    """The address of a cell: address(4, 1) is B5."""
    letters = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return f"{letters}{row + 1}"


def place(text: str) -> tuple[int, int] | None:
    """The row and column of an address, with or without $; None where it is no cell of a sheet."""
    found = _ADDRESS.fullmatch(text)
    if not found:
        return None
    column = 0
    for letter in found[1].upper():
        column = column * 26 + ord(letter) - 64
    row = int(found[2])
    return (row - 1, column - 1) if row <= ROWS and column <= COLUMNS else None


def box(text: str) -> Box | None:
    """The area that a reference such as A1:B3 or A1 names; None where it is none."""
    corners = [place(corner) for corner in text.split(":")]
    first, last = corners[0], corners[-1]
    if len(corners) > 2 or first is None or last is None or first[0] > last[0] or first[1] > last[1]:
        return None
    return (*first, *last)


def within(area: Box, row: int, column: int) -> bool:
    """Whether a cell lies in an area."""
    return area[0] <= row <= area[2] and area[1] <= column <= area[3]


def same(a: Value, b: Value) -> bool:
    """Whether two values are one to a cell: 1 and 1.0 are, 1 and True are not."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def shared_strings(data: bytes, where: str) -> list[str]:
    """The texts of a shared strings part, rich text without its formats."""
    return _Reader(data, where).strings


class _Reader:
    """Reads `<c>` or `<si>` elements: their values as written, whether a formula is there, their text."""

    def __init__(self, data: bytes, where: str) -> None:
        self.cells: list[tuple[str, str | None, str | None, bool]] = []  # type, <v>, text, formula
        self.strings: list[str] = []
        self._open: list[str] = []
        self._kind, self._formula = "n", False
        self._number: str | None = None
        self._text: str | None = None
        self._into: list[str] | None = None
        Events(data, where, spaced=False).run(self._start, self._end, self._characters)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        around = self._open[-1] if self._open else ""
        if name in ("c", "si"):
            self._kind, self._formula = attributes.get("t", "n"), False
            self._number = None
            self._text = "" if name == "si" else None
        elif name == "f" and around == "c":
            self._formula = True
        elif name == "is" and around == "c":
            self._text = ""
        elif (name == "v" and around == "c") or (name == "t" and self._holds_text(around)):
            self._into = []
        self._open.append(name)

    def _holds_text(self, around: str) -> bool:
        # The readings above Japanese words have texts too, which are no part of the value.
        return around in ("is", "si") or (around == "r" and len(self._open) > 1 and self._open[-2] in ("is", "si"))

    def _characters(self, text: str) -> None:
        if self._into is not None:
            self._into.append(text)

    def _end(self, name: str) -> None:
        name = self._open.pop()
        if name == "v" and self._into is not None:
            self._number, self._into = "".join(self._into), None
        elif name == "t" and self._into is not None:
            self._text, self._into = (self._text or "") + "".join(self._into), None
        elif name == "c":
            self.cells.append((self._kind, self._number, self._text, self._formula))
        elif name == "si":
            self.strings.append(_unescaped(self._text or ""))


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = int(found[1], 16)
        return found[0] if 0xD800 <= code < 0xE000 else chr(code)

    return _ESCAPED.sub(character, text) if "_x" in text else text


class SheetPart:
    """One worksheet's XML with the places of its rows and cells. where: the part as sentences name it."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data, self.where = data, where
        # Three integers a cell: a part may hold millions.
        self.keys, self.starts, self.stops = array("q"), array("q"), array("q")
        self.row_numbers, self.row_starts, self.row_stops = array("q"), array("q"), array("q")
        self.merged: list[Box] = []
        self.arrays: list[Box] = []
        self.column_styles: list[tuple[int, int, bytes]] = []
        self.dimension = self.data_start = self.data_stop = -1
        self._depth = 0
        self._row = self._column = -1
        self._in_data = False
        self._events = Events(data, where)
        self._events.run(self._start, self._end)
        del self._events
        if self.data_start < 0:
            raise ValueError(f"{where} holds no rows of cells; it should be a worksheet")

    # -- where things lie

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        depth, self._depth = self._depth, self._depth + 1
        if space != MAIN:
            return
        if self._in_data:
            if depth == 3 and local == "c":
                self._start_cell(attributes.get("r"))
            elif depth == 2 and local == "row":
                self._start_row(attributes.get("r"))
            elif depth == 4 and local == "f" and attributes.get("t") in ("array", "dataTable"):
                self._add(self.arrays, attributes.get("ref", ""))
        elif depth == 1:
            if local == "sheetData":
                self._in_data, self.data_start = True, self._events.at
            elif local == "dimension":
                self.dimension = self._events.at
        elif local == "mergeCell":
            self._add(self.merged, attributes.get("ref", ""))
        elif local == "col" and "style" in attributes:
            first, last, style = (attributes.get(name, "") for name in ("min", "max", "style"))
            if not all(_NUMBER.fullmatch(number) for number in (first, last, style)):
                self._damaged(f"its columns {shown(first)} to {shown(last)} have style {shown(style)}")
            self.column_styles.append((int(first) - 1, int(last) - 1, style.encode()))

    def _start_row(self, number: str | None) -> None:
        row = self._row + 1
        if number is not None:
            row = int(number) - 1 if _NUMBER.fullmatch(number) else -1
        if row <= self._row or row >= ROWS:
            self._damaged(f"row {shown(number)} follows row {self._row + 1}")
        self._row, self._column = row, -1
        self.row_numbers.append(row)
        self.row_starts.append(self._events.at)
        self.row_stops.append(-1)

    def _start_cell(self, text: str | None) -> None:
        at = (self._row, self._column + 1) if text is None else place(text)
        if at is None or at[0] != self._row or at[1] <= self._column or at[1] >= COLUMNS:
            last = address(self._row, self._column) if self._column >= 0 else f"the start of row {self._row + 1}"
            self._damaged(f"cell {shown(text)} follows {last}")
        self._column = at[1]
        self.keys.append(self._row * COLUMNS + self._column)
        self.starts.append(self._events.at)
        self.stops.append(-1)

    def _end(self, name: str) -> None:
        self._depth -= 1
        if not self._in_data or self._depth > 3 or not name.startswith(MAIN):
            return
        local = name.rpartition(" ")[2]
        if self._depth == 3 and local == "c":
            self.stops[-1] = self._events.at
        elif self._depth == 2 and local == "row":
            self.row_stops[-1] = self._events.at
        elif self._depth == 1:
            self._in_data, self.data_stop = False, self._events.at

    def _add(self, boxes: list[Box], reference: str) -> None:
        area = box(reference)
        if area is None:
            self._damaged(f"it names the area {shown(reference)}")
        boxes.append(area)

    def _damaged(self, why: str) -> NoReturn:
        raise ValueError(f"{self.where} is damaged: {why}; {COPY}")

    def find(self, row: int, column: int) -> int | None:
        key = row * COLUMNS + column
        at = bisect_left(self.keys, key)
        return at if at < len(self.keys) and self.keys[at] == key else None

    def span(self, at: int) -> tuple[int, int]:
        """First byte of a cell and the byte behind its last."""
        return self.starts[at], behind(self.data, self.starts[at], self.stops[at])

    # -- what cells hold

    def cell(self, row: int, column: int, strings: Sequence[str]) -> CellValue:
        """What a cell holds. strings: the shared strings."""
        in_array = any(within(area, row, column) for area in self.arrays)
        at = self.find(row, column)
        if at is None:
            return CellValue(None, in_array)
        start, stop = self.span(at)
        raw = _Reader(self.data[start:stop], self.where).cells[0]
        return CellValue(self._value(raw, strings, row, column), raw[3] or in_array)

    def rows(self, strings: Sequence[str]) -> Iterable[tuple[int, dict[int, Value]]]:
        """Each row that is there, with the values of its cells by column."""
        for at, row in enumerate(self.row_numbers):
            start = self.row_starts[at]
            first = bisect_left(self.keys, row * COLUMNS)
            last = bisect_left(self.keys, (row + 1) * COLUMNS)
            if first == last:
                continue
            cells = _Reader(self.data[start : behind(self.data, start, self.row_stops[at])], self.where).cells
            columns = [key % COLUMNS for key in self.keys[first:last]]
            yield (
                row,
                {
                    column: self._value(raw, strings, row, column)
                    for column, raw in zip(columns, cells, strict=True)
                },
            )  # fmt: skip

    def _value(
        self, raw: tuple[str, str | None, str | None, bool], strings: Sequence[str], row: int, column: int
    ) -> Value:
        kind, number, text, _ = raw
        if kind == "inlineStr":
            return None if text is None else _unescaped(text)
        if number is None or (number == "" and kind != "str"):
            return None
        try:
            if kind == "s":
                at = int(number)
                if at < 0:
                    raise ValueError
                return strings[at]
            if kind == "b":
                return {"0": False, "1": True, "false": False, "true": True}[number.strip()]
            if kind == "n":
                return int(number) if _WHOLE.fullmatch(number) else float(number)
        except (ValueError, LookupError):
            self._damaged(f"cell {address(row, column)} holds {shown(number)} as type {shown(kind)}")
        return _unescaped(number)

    def refusal(self, row: int, column: int) -> str | None:
        """Why a value may not be put into a cell, as the end of a sentence; None where it may."""
        at = self.find(row, column)
        if at is not None:
            start, stop = self.span(at)
            if _Reader(self.data[start:stop], self.where).cells[0][3]:
                return "holds a formula; it should be a cell for values"
        for area in self.arrays:
            if within(area, row, column):
                return f"belongs to the array formula in {address(*area[:2])}; it should be a cell for values"
        for area in self.merged:
            if within(area, row, column) and (row, column) != area[:2]:
                corner, end = address(*area[:2]), address(*area[2:])
                return f"is hidden in the merged cells {corner}:{end}; name {corner}, or take the merge apart"
        return None


def read_tag(data: bytes, at: int) -> re.Match[bytes]:
    """The tag at a byte: its name, its attributes with the blanks before them, and "/" where it is empty."""
    tag = _TAG.match(data, at)
    if tag is None:
        raise ValueError(f"no tag begins at byte {at}; it should be one that the parser found")
    return tag


def behind(data: bytes, start: int, stop: int) -> int:
    """The byte behind an element: for an empty one the parser has said it, for another it said where `</` is."""
    tag = read_tag(data, start)
    return tag.end() if tag[3] else data.index(b">", stop) + 1

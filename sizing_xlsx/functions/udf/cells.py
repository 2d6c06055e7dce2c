"""Values between Excel and the functions: what xlwings hands over, and what a cell takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from ..faults import WRONG, Fault

MOST_TEXT = 255  # characters of a sentence in a cell, and of a text in the function wizard
MOST_CELLS = 20_000  # of a range that is answered cell by cell: some seconds
MOST_WHOLE = 2**53  # up to which a cell's whole numbers are exact
Rows = list[list[Any]]

# What COM makes of an error cell: this, plus the number of the error. xlwings knows those before Office 2016.
_ERRORS_FROM = -2_146_828_288
_ERRORS = {
    2000: "#NULL!", 2007: "#DIV/0!", 2015: "#VALUE!", 2023: "#REF!", 2029: "#NAME?", 2036: "#NUM!", 2042: "#N/A",
    2043: "#GETTING_DATA", 2045: "#SPILL!", 2046: "#CONNECT!", 2047: "#BLOCKED!", 2049: "#FIELD!", 2050: "#CALC!",
    2051: "#BUSY!",
}  # fmt: skip


def from_cell(value: Any) -> Any:
    """What a cell holds, as the functions know values: dates as text, money as a number, errors by their name."""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if type(value) is int:
        return _ERRORS.get(value - _ERRORS_FROM, value)
    if isinstance(value, (float, Decimal)):  # Excel knows no other numbers, and shows 8 for 8.0
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < MOST_WHOLE else number
    return value


def from_cells(value: Any) -> Rows:
    """The rows of an argument: of a range, or of a single value."""
    rows = value if isinstance(value, (list, tuple)) else [value]
    return [[from_cell(cell) for cell in (row if isinstance(row, (list, tuple)) else [row])] for row in rows]


def to_cell(value: Any) -> Any:
    """A value as Excel takes it: numbers as floats, for it has no whole numbers beyond 32 bits."""
    if isinstance(value, list):
        return [[to_cell(cell) for cell in row] for row in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise ValueError(f"the result is {value}")
        return float(value)
    return value


def sentence(code: str, words: str) -> str:
    """A fault as a cell shows it: the code, a space, the sentence; cut at a word where it is too long."""
    return fitted(f"{code} {words}")


def fitted(text: str, most: int = MOST_TEXT) -> str:
    """A text of one line and at most so many characters, cut at a word."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    head = line[: most - 1]
    return (head.rpartition(" ")[0] or head).rstrip(" ,;:") + "…"


def shape(ranges: dict[str, Rows]) -> tuple[int, int]:
    """Rows and columns that ranges have in common; Fault where they differ or are too many cells to answer."""
    found = {name: (len(rows), len(rows[0])) for name, rows in ranges.items()}
    first, *others = found
    for other in others:
        if found[other] != found[first]:
            raise Fault(
                WRONG,
                f"{other} is a range of {_told(found[other])} cells and {first} one of {_told(found[first])}; "
                "ranges of one call must have the same shape",
            )
    rows, columns = found[first]
    if rows * columns > MOST_CELLS:
        raise Fault(
            WRONG, f"{first} is a range of {_told(found[first])} cells; it must have at most {MOST_CELLS:,} cells"
        )
    return rows, columns


def _told(size: Sequence[int]) -> str:
    return f"{size[0]:,} × {size[1]:,}"

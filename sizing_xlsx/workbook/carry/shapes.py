"""What a cell says, reduced to a number that does not depend on the program that saved the file.

Excel, LibreOffice and openpyxl write one formula in several ways, and a row that is put in moves every address. So
a formula is reduced to its shape: no blanks, no quotes around sheets, no case, and "@" in place of each address.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from functools import lru_cache

from ..sheet_part import Value

# A text, a quoted sheet, an address (no function, no name, no sheet), or blanks.
_PIECE = re.compile(
    r"(?P<text>\"(?:[^\"]|\"\")*\")"
    r"|'(?P<sheet>(?:[^']|'')+)'!"
    r"|(?<![\w.$])\$?[A-Za-z]{1,3}\$?[0-9]{1,7}(?![\w.(!])"
    r"|(?P<blank>\s+)"
)
# Rows of one column differ in the numbers of their rows alone; with these taken out, each formula is reduced once. The
# numbers that names end in go with them: a plain text in their place is several times as quick as one with a group.
_ROW = re.compile(r"(?<=[A-Za-z])\$?[0-9]{1,7}(?![\w.(!])")
_SINGLE = re.compile(r"(\$?[A-Za-z]{1,3}\$?[0-9]{1,7}):\1(?![0-9])")  # one cell, written as an area
_DIGITS = 12  # significant digits that every program keeps of a number


def shape(formula: str) -> str:
    """The shape of a formula, given without its equals sign."""
    formula = _ROW.sub("1", formula)

    def piece(found: re.Match[str]) -> str:
        if found["text"] is not None:
            return found[0]
        if found["sheet"] is not None:
            return found["sheet"].casefold() + "!"
        return "" if found["blank"] else "@"

    pieces = []
    last = 0
    for found in _PIECE.finditer(formula):
        pieces += [formula[last : found.start()].upper(), piece(found)]
        last = found.end()
    text = "".join([*pieces, formula[last:].upper()])
    # The same sheet with and without quotes differs in case alone.
    return re.sub(r"[^\"!@(),+\-*/^&=<>]+!", lambda sheet: sheet[0].casefold(), text)


@lru_cache(maxsize=16384)
def _code(formula: str) -> int:
    """The number of a formula without the numbers of its rows."""
    return zlib.crc32(("=" + shape(formula)).encode()) or 1


def digest(value: Value, formula: str | None = None) -> int:
    """A cell's content as a number of 32 bits; 0 for an empty one. Values of formulas do not count."""
    if formula is not None:
        return _code(_ROW.sub("1", formula))
    if value is None or value == "":
        return 0
    if isinstance(value, bool):
        text = f"b{value}"
    elif isinstance(value, str):
        text = "t" + value.replace("\r\n", "\n").strip()
    else:
        text = f"n{float(value):.{_DIGITS}g}"
    return zlib.crc32(text.encode()) or 1


def drawing_digest(references: Iterable[str]) -> int:
    """A chart by the areas that its series take their values from, rows left out: they move.

    A single cell may be written as an area, as LibreOffice does once a row was put in above it.
    """
    cells = (_SINGLE.sub(r"\1", reference.lstrip("=")) for reference in references)
    found = sorted(re.sub(r"[0-9$']+", "", reference).casefold() for reference in cells)
    return zlib.crc32("|".join(found).encode()) or 1

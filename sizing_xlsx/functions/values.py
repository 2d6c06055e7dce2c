"""Values as a spreadsheet hands them over: blanks, text numbers, truth values, error cells, ranges of one cell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..formula.domains import nearest, told
from .faults import WRONG, Fault

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_ERROR = re.compile(
    r"#(N/A|VALUE!|REF!|DIV/0!|NUM!|NAME\?|NULL!|SPILL!|CALC!|GETTING_DATA|BUSY!|FIELD!|BLOCKED!|CONNECT!)"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
LONGEST_TEXT = 32_767  # characters of a cell


def is_blank(value: Any) -> bool:
    """Whether nothing was given: an empty cell, an empty text, an argument left out."""
    return value is None or value == "" or (isinstance(value, str) and not value.strip())


def cell(argument: str, value: Any) -> Any:
    """What one cell holds, or None for a blank one; of a range, the single cell.

    Fault for an error, for several cells, and for a text longer than a cell's or with half a character.
    """
    while isinstance(value, (list, tuple)):
        if len(value) != 1:
            raise Fault(WRONG, f"{argument} is a range of {len(value)} rows or columns; it must be one cell")
        value = value[0]
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if is_blank(value) or value != value:
        return None
    if isinstance(value, str):
        text = value.strip()
        if len(text) > LONGEST_TEXT:
            raise Fault(WRONG, f"{argument} has {len(text):,} characters; it must have at most {LONGEST_TEXT:,}")
        if _SURROGATE.search(text):
            raise Fault(WRONG, f"{argument} holds half a character, a lone surrogate; type the text anew")
        if _ERROR.fullmatch(text):
            raise Fault(WRONG, f"{argument} is the error {text}; mend the cell that it comes from")
        return text
    return value


def number(value: Any) -> Any:
    """A text that reads as a plain number as that number; all else as it is."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        found = float(value)
        return int(found) if found.is_integer() and abs(found) < 2**53 else found
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def arguments(name: str, known: tuple[str, ...], given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, without the blank ones; Fault where there are too many or unknown ones."""
    if len(given) > len(known):
        raise Fault(WRONG, f"{name} was called with {len(given)} arguments; it takes at most {len(known)}")
    found = dict(zip(known, given, strict=False))
    for key, value in named.items():
        if key not in known:
            raise Fault(WRONG, f"{key} is no argument of {name}{nearest(key, known)}")
        if key in found:
            raise Fault(WRONG, f"{key} was given to {name} twice; {told(value)} is one too many")
        found[key] = value
    cells = {key: cell(key, value) for key, value in found.items()}
    return {key: value for key, value in cells.items() if value is not None}

"""A call from a cell. It never raises: what cannot be answered is a sentence in the cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import call
from ..faults import WRONG, Fault
from ..signature import TABLE
from . import failures
from .cells import Rows, from_cells, sentence, shape, to_cell

if TYPE_CHECKING:
    from ..desk import Desk
    from ..signature import Function


def answer(function: Function, given: Sequence[Any], desk: Callable[[], Desk]) -> Any:
    """The value of a call, or its sentence: "#N/A model is 'Lama'; …".

    given: arguments in their order, None for one that is left out, else a value or rows of them. desk: where it is
    asked, which may raise Fault. An argument that is a range is answered cell by cell, several of one shape together,
    with rows of that shape; a function that gives a table takes single cells.
    """
    try:
        values = {
            name: from_cells(value) for name, value in zip(function.arguments, given, strict=False) if value is not None
        }
        ranges = {name: rows for name, rows in values.items() if len(rows) != 1 or len(rows[0]) != 1}
        if not ranges or function.result.kind == TABLE:
            return _one(function, values, desk())
        return _each(function, values, ranges, desk())
    except Fault as fault:
        return sentence(fault.code, str(fault))
    except Exception as error:
        return _unforeseen(function, error)


def _each(function: Function, values: dict[str, Any], ranges: dict[str, Rows], at: Desk) -> Rows:
    rows, columns = shape(ranges)
    return [
        [
            _one(function, {**values, **{name: cells[row][column] for name, cells in ranges.items()}}, at)
            for column in range(columns)
        ]
        for row in range(rows)
    ]


def _one(function: Function, values: dict[str, Any], at: Desk) -> Any:
    try:
        return to_cell(call(function.name, at=at, **values))
    except Fault as fault:
        return sentence(fault.code, str(fault))
    except Exception as error:
        return _unforeseen(function, error)


def _unforeseen(function: Function, error: Exception) -> str:
    failures.count(function.name, error)
    return sentence(WRONG, f"{function.name} failed: {type(error).__name__} {error}")

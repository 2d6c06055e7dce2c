"""Distinct cells of a column as the formulas of a job take them, and what is wrong with the others."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ..formula import domains
from ..formula.declare import Choice, Whole
from ..formula.job import Job
from .rows import Array, Column

EXACT = 2.0**53  # whole numbers beyond may differ and yet be one float
MOST_REMEMBERED = 100_000  # cells of an input


class Read(NamedTuple):
    """values: of each cell its number (NaN where absent) or the place of its text in `texts`. texts: None for numbers.

    faults: place of a cell -> what is wrong with it; its value is then the default.
    """

    values: Array
    texts: list[str] | None
    faults: dict[int, str]


def given(cell: Any, is_text: bool) -> Any:
    """A cell as an argument of size(): a number where its text is one, unless the input takes texts."""
    return domains.typed(cell) if isinstance(cell, str) and not is_text else cell


class Reader:
    """Reads the cells of one input of a job, and remembers those that take long."""

    def __init__(self, job: Job, key: str) -> None:
        self.job, self.key = job, key
        self.declared = job.inputs[key]
        self.is_text = isinstance(self.declared.domain, Choice)
        self.known: dict[Any, tuple[Any, str]] = {}

    def read(self, column: Column) -> Read:
        """The cells as the formulas take them."""
        return self._texts(column) if self.is_text else self._numbers(column)

    def _texts(self, column: Column) -> Read:
        places: dict[str, int] = {}
        values = np.empty(len(column.cells), dtype=np.intp)
        faults = {}
        for at, (cell, empty) in enumerate(zip(column.cells, column.empty.tolist(), strict=True)):
            text, fault = (self.declared.default, "") if empty else self._accepted(cell)
            if fault:
                faults[at] = fault
            values[at] = places.setdefault(text, len(places))
        return Read(values, list(places), faults)

    def _numbers(self, column: Column) -> Read:
        domain = self.declared.domain
        values = np.where(column.empty, _number(self.declared.default), column.numbers)
        high = EXACT if isinstance(domain.high, str) else domain.high  # type: ignore[union-attr]
        good = (values >= domain.low) & (values <= high) & (np.abs(values) < EXACT)  # type: ignore[union-attr]
        if isinstance(domain, Whole):
            good &= values == np.floor(values)
        faults = {}
        for at in np.flatnonzero(~(good | column.empty)).tolist():
            value, fault = self._accepted(column.cells[at])
            if fault:
                faults[at] = fault
            values[at] = _number(value)
        return Read(values, None, faults)

    def _accepted(self, cell: Any) -> tuple[Any, str]:
        """What a cell is taken for, and ""; the default, and what is wrong with it."""
        try:
            return self.known[type(cell), cell]
        except (KeyError, TypeError):  # not met yet; or a list, which is no key
            pass
        try:
            found = domains.accept(self.job, self.key, given(cell, self.is_text)), ""
        except ValueError as error:
            found = self.declared.default, str(error)
        if len(self.known) >= MOST_REMEMBERED:
            self.known.clear()
        with suppress(TypeError):
            self.known[type(cell), cell] = found
        return found


def _number(value: Any) -> float:
    """A value as a column holds it: NaN where it is absent, or a word."""
    return float(value) if isinstance(value, (int, float)) else np.nan

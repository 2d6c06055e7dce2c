"""A table as distinct cells: what a million rows say, each different thing once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from .layout import Layout

Array = np.ndarray[Any, Any]
_ALL, _ZEROS = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0x3030303030303030)
_HIGH, _SIX = np.uint64(0xF0F0F0F0F0F0F0F0), np.uint64(0x0606060606060606)
_PAIRS = tuple(
    tuple(map(np.uint64, each))
    for each in (
        (0x0F0F0F0F0F0F0F0F, 10 * 2**8 + 1, 8),
        (0x00FF00FF00FF00FF, 100 * 2**16 + 1, 16),
        (0x0000FFFF0000FFFF, 10_000 * 2**32 + 1, 32),
    )
)


class Column:
    """A column of a table. codes: of each row, which of the distinct cells it has.

    cells: texts or values; "", blanks and None are empty. What a job does not ask for is never made of them.
    """

    def __init__(self, codes: Array, cells: list[Any]) -> None:
        self.codes, self.cells = codes, cells

    @cached_property
    def empty(self) -> Array:
        """Of each cell, whether it says nothing, so that the worked job's value holds."""
        return np.array(
            [cell is None or (isinstance(cell, str) and (not cell or cell.isspace())) for cell in self.cells]
        )

    @cached_property
    def numbers(self) -> Array:
        """Of each cell the number that it is at a glance; NaN for all else."""
        texts = [np.nan if cell in ("", None) else cell for cell in self.cells]
        if set(map(type, texts)) <= {str, float, int}:
            try:
                return np.array([*map(float, texts)])
            except (ValueError, OverflowError):
                pass
        return np.array([_glance(text) for text in texts], dtype=float)


class Packed(Column):
    """A column whose distinct cells are texts of at most eight bytes, each in a little-endian number."""

    def __init__(self, codes: Array, packed: Array) -> None:
        self.codes, self.packed = codes, packed

    @cached_property
    def cells(self) -> list[Any]:  # type: ignore[override]
        """The texts."""
        joined = self.packed.tobytes()
        return [joined[at : at + 8].rstrip(b"\0").decode() for at in range(0, len(joined), 8)]

    @cached_property
    def empty(self) -> Array:
        """Of each cell, whether it says nothing."""
        if self._digits[1].all():
            return np.zeros(len(self.packed), dtype=bool)
        return super().empty

    @cached_property
    def numbers(self) -> Array:
        """Of each cell the number that it is at a glance; those of digits alone without making a text."""
        values, right = self._digits
        return values if (right | (self.packed == 0)).all() else super().numbers

    @cached_property
    def _digits(self) -> tuple[Array, Array]:
        """Of each text the number that its digits are, and whether it is digits alone.

        The digits are moved to the upper end, with zeros before them; then two, four and eight of them are added up,
        each pair in one multiplication.
        """
        length = np.ceil(np.log2(self.packed.astype(float) + 1) / 8)
        room = np.uint64(8) * (8 - np.clip(length, 1, 8)).astype(np.uint64)
        text = (self.packed << room) | (_ZEROS & ~(_ALL << room))
        right = (text & _HIGH == _ZEROS) & ((text + _SIX) & _HIGH == _ZEROS) & (self.packed != 0)
        for mask, pair, shift in _PAIRS:
            text = ((text & mask) * pair) >> shift
        return np.where(right, text.astype(float), np.nan), right


class Rows(NamedTuple):
    """Some rows of a table. numbers: of each row, from 1. ids: as they stand there; None without such a column.

    columns: by name, those of the inputs and `job`. faults: position -> what is wrong with a row that is none.
    """

    numbers: Array
    ids: list[Any] | None
    columns: dict[str, Column]
    faults: dict[int, str]


def from_frame(frame: pd.DataFrame, layout: Layout, first: int = 1) -> Rows:
    """The rows of a DataFrame whose columns are those of the layout. first: the number of its first row."""
    columns = {name: column_of(frame.iloc[:, at]) for name, at in layout.places.items()}
    ids = None if layout.id is None else [None if absent(one) else one for one in frame.iloc[:, layout.id].tolist()]
    return Rows(np.arange(first, first + len(frame)), ids, columns, {})


def column_of(series: pd.Series) -> Column:
    """The distinct cells of a pandas column."""
    if pd.api.types.is_datetime64_any_dtype(series.dtype) and (series.isna() | (series == series.dt.normalize())).all():
        series = series.dt.date
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, cells = np.asarray(series.cat.codes, dtype=np.intp), series.cat.categories.tolist()
    elif series.dtype == object and pd.api.types.infer_dtype(series, skipna=True) not in ("string", "integer"):
        found: dict[Any, int] = {}
        items = [None if absent(item) else item for item in series]
        keys = (_told_from_others(item) for item in items)
        codes = np.fromiter((found.setdefault(key, len(found)) for key in keys), np.intp, len(items))
        first = np.unique(codes, return_index=True)[1]
        return Column(codes, [items[at] for at in first])
    else:
        codes, distinct = pd.factorize(series)
        cells = distinct.tolist()
    return Column(np.where(codes < 0, len(cells), codes), [*cells, None])


def _told_from_others(item: Any) -> Any:
    """1, 1.0 and True are one key of a dict, and refused or taken each for itself; what is no key is unlike all."""
    try:
        hash(item)
    except TypeError:
        return (id(item),)
    return (type(item), item)


def absent(item: Any) -> bool:
    """Whether a cell of a DataFrame is empty: None, NaN, NaT, NA."""
    return item is None or item is pd.NA or item is pd.NaT or (isinstance(item, float) and item != item)


def _glance(cell: Any) -> float:
    try:
        return float(cell) if type(cell) in (str, float, int) else np.nan
    except (ValueError, OverflowError):
        return np.nan

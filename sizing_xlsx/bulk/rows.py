"""A table as distinct cells: what a million rows say, each different thing once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from .layout import Layout

Array = np.ndarray[Any, Any]


class Column(NamedTuple):
    """codes: of each row, which of the cells it has. cells: texts or values; "" and None are empty."""

    codes: Array
    cells: list[Any]


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

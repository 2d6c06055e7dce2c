"""Millions of jobs from a table: `sizing-xlsx sweep` for files, `size_table` for a pandas DataFrame.

rows       a table as distinct cells and codes; from a DataFrame
fields     ... from a block of CSV
blocks     a file cut at its rows: CSV in bytes, Parquet in batches
layout     what the columns mean, which results are wanted
cells      distinct cells as the formulas take them, and what is wrong with the others
sizer      rows -> results, and a sentence for each row that is refused
answer     results as CSV or as an Arrow batch, written to a draft that takes the file's place at the end
places     who sizes: this process, its own processes, a Ray or a Dask cluster
command    the command

A chunk of a table is sized alike wherever that happens, so the result is the same table in every place.
Needs the extra "bulk" (NumPy, pandas and msgspec).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..presets.catalogue import Presets


def size_table(
    frame: Any, results: Iterable[str] | None = None, job: str = "lora", presets: Presets | None = None
) -> Any:
    """The results of the jobs in a pandas DataFrame, one a row, as a DataFrame with the same index.

    frame: a column for each input, as Job.size() names it; "job" says which job a row is ("lora", "training",
    "full"), "id" is handed on. An empty cell takes the worked job's value; a text that reads as a number is one.
    results: names of terms, layout.RESULTS by default. job: of rows that name none. presets: an own catalogue.
    The result has the row's number from 1, id and job where frame has them, the results (in the unit of their name;
    NaN where size() gives words), and error: what size() refuses the row with, empty for the others.
    Raises ValueError for a column that is no input, or a result that does not exist.
    """
    from .answer import as_frame
    from .layout import Layout
    from .rows import from_frame
    from .sizer import Sizer

    layout = Layout.of([str(name) for name in frame.columns], "the table", job, results)
    return as_frame(Sizer(layout, presets)(from_frame(frame, layout))).set_axis(frame.index)

"""Sized rows as a DataFrame, as lines of CSV or as an Arrow batch, and the draft that becomes the file of results."""

from __future__ import annotations

import csv
import importlib
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..presets.names import one_line
from .layout import Layout
from .sizer import Sized

# What a text may not hold to stand in a line of CSV without quotes, and in the JSON that lines are made from.
_UNSAFE = re.compile(r'[",\[\]\\\x00-\x1f\x7f]')
EXTRAS = {"pyarrow": "parquet", "msgspec": "bulk", "distributed": "dask", "ray": "ray"}


def need(package: str, why: str) -> Any:
    """Import an optional package; ModuleNotFoundError in a sentence that names the extra."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise ModuleNotFoundError(
            f"{name} cannot be imported ({error}), and {why} needs it: pip install 'sizing-xlsx[{EXTRAS[name]}]'"
        ) from None


def columns_of(layout: Layout) -> tuple[str, ...]:
    """The columns of the result."""
    kept = [name for name in ("id", "job") if name in layout.header]
    return ("row", *kept, *layout.results, "error")


def _columns(sized: Sized) -> list[Any]:
    errors = [""] * len(sized.numbers)
    for at, sentence in sized.errors.items():
        errors[at] = sentence
    said = [column for column in (sized.ids, sized.jobs) if column is not None]
    return [sized.numbers, *said, *sized.results.values(), errors]


def as_frame(sized: Sized) -> pd.DataFrame:
    """A DataFrame with the columns of the result."""
    said = {"id": sized.ids, "job": sized.jobs}
    kept = {name: values for name, values in said.items() if values is not None}
    return pd.DataFrame({"row": sized.numbers, **kept, **sized.results, "error": _columns(sized)[-1]})


# ------------------------------------------------------------------------------------------------ CSV
def header_line(layout: Layout) -> bytes:
    """The first line of a CSV of results."""
    return (",".join(columns_of(layout)) + "\n").encode()


def as_csv(sized: Sized) -> bytes:
    """The rows as lines of CSV; a number has as many digits as tell it from every other."""
    json = need("msgspec", "sweep").json
    if not len(sized.numbers):
        return b""
    if sized.ids is not None and set(map(type, sized.ids)) != {str}:
        sized = sized._replace(ids=["" if one is None else str(one) for one in sized.ids])
    columns = [column.tolist() if isinstance(column, np.ndarray) else column for column in _columns(sized)]
    if not any(_UNSAFE.search("".join(column)) for column in columns if isinstance(column[0], str)):
        lines: bytes = json.Encoder().encode_lines([*zip(*columns, strict=True)])
        return lines.replace(b",null", b",").translate(None, b'"[]')
    texts = [
        column if isinstance(column[0], str) else json.encode(column)[1:-1].replace(b"null", b"").decode().split(",")
        for column in columns
    ]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(zip(*texts, strict=True))
    return out.getvalue().encode()


# ------------------------------------------------------------------------------------------------ Parquet
def schema_of(layout: Layout, read: Any) -> Any:
    """The Arrow schema of the result. read: that of the jobs, where they have one; ids keep their type."""
    arrow = need("pyarrow", "a .parquet file")
    types = {"row": arrow.int64(), "job": arrow.string(), "error": arrow.string(), "id": arrow.string()}
    types |= {key: arrow.string() if key in layout.texts else arrow.float64() for key in layout.results}
    if layout.id is not None and read is not None:
        types["id"] = read.field(layout.id).type
    return arrow.schema([(name, types[name]) for name in columns_of(layout)])


def as_batch(sized: Sized, schema: Any) -> Any:
    """The rows as an Arrow batch; what a row has not is null."""
    arrow = need("pyarrow", "a .parquet file")
    arrays = []
    for field, column in zip(schema, _columns(sized), strict=True):
        if isinstance(column, list) or column.dtype == object:
            column = [None if value == "" else value for value in column]
        arrays.append(arrow.array(column, type=field.type, from_pandas=True))
    return arrow.record_batch(arrays, schema=schema)


# ------------------------------------------------------------------------------------------------ the file
@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A file beside the path that takes its place when all went well, and is gone when not."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def refuse_output(path: Path, source: Path, force: bool) -> None:
    """ValueError, one sentence, where results cannot go."""
    where = one_line(str(path))
    if path.is_dir():
        raise ValueError(f"--output is {where}, a folder; it must be a file")
    if not path.parent.is_dir():
        raise ValueError(f"--output is {where}, in a folder that does not exist; make it, or name another")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"--output is {where}, in a folder that may not be written to; name another")
    if path.exists():
        if path.samefile(source):
            raise ValueError(f"--output is {where}, the file of the jobs itself; name another")
        if not force:
            raise ValueError(
                f"--output is {where}, which is there already; name another, or give --force to replace it"
            )


@contextmanager
def writer(draft: Path, layout: Layout, schema: Any) -> Iterator[Callable[[Any], Any]]:
    """Takes the rows of the result, part by part, into the draft; all of it is on the disk when this ends."""
    with draft.open("xb") as file:
        if schema is None:
            file.write(header_line(layout))
            yield file.write
        else:
            with need("pyarrow.parquet", "a .parquet file").ParquetWriter(file, schema) as parquet:
                yield parquet.write_batch
        file.flush()
        os.fsync(file.fileno())

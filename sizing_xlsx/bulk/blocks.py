"""A file of jobs, in blocks that are read one after another: CSV cut between two rows, Parquet in batches."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ..presets.names import one_line

FIRST_BLOCK = 2**20  # bytes; sized before other processes start, it shows whether they are worth it
BLOCK = 2**23
LONGEST_ROW = 2**20
ROWS = 100_000  # of a Parquet batch
SUFFIXES = (".csv", ".parquet")

_QUOTED = re.compile(rb'(?:\A|(?<=[,\n]))"[^"]*+(?:""[^"]*+)*+("?)')


class Block(NamedTuple):
    """Some rows of a file. first: the number of the first, from 1. data: bytes of CSV, or an Arrow batch."""

    first: int
    data: Any


class Table(NamedTuple):
    """A file of jobs: the names of its columns, its rows in blocks, and the type of its ids, where it has types."""

    header: list[str]
    blocks: Iterator[Block]
    schema: Any


def open_table(path: Path, file: BinaryIO) -> Table:
    """Read the header of a file that is open. Raises ValueError, one sentence, for what is no table."""
    return _parquet(path, file) if kind_of(path) == ".parquet" else _csv(path, file)


def kind_of(path: Path) -> str:
    """The file's kind by its suffix. Raises ValueError for another."""
    suffix = path.suffix.casefold()
    if suffix not in SUFFIXES:
        raise ValueError(f"{one_line(str(path))} ends in {suffix or 'nothing'}; it must end in .csv or .parquet")
    return suffix


# ------------------------------------------------------------------------------------------------ CSV
def _csv(path: Path, file: BinaryIO) -> Table:
    where = one_line(str(path))
    start = file.read(FIRST_BLOCK)
    _refuse_other_formats(start, where)
    pieces = _pieces(file, start.removeprefix(b"\xef\xbb\xbf"), where)
    first = next(pieces, b"")
    if not first.strip():
        raise ValueError(f"{where} is empty; its first line must name an input above each column")
    lines = first.lstrip(b"\n")
    cut = _end_of_first(lines)
    header = next(csv.reader(io.StringIO(lines[:cut].decode(), newline="")))

    def blocks() -> Iterator[Block]:
        number = 1
        for piece in _with(lines[cut:], pieces):
            yield Block(number, piece)
            number += piece.count(b"\n")
            if b'"' in piece:
                number -= sum(found[0].count(b"\n") for found in _QUOTED.finditer(piece))

    return Table(header, blocks(), None)


def _with(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from others


def _refuse_other_formats(start: bytes, where: str) -> None:
    known = {b"PK\x03\x04": "a workbook or a zip file", b"PAR1": "Parquet", b"\x1f\x8b": "compressed by gzip"}
    known |= {
        b"\xff\xfe": "UTF-16 text",
        b"\xfe\xff": "UTF-16 text",
        b"%PDF": "a PDF",
        b"\xd0\xcf\x11\xe0": "a workbook",
    }
    for magic, words in known.items():
        if start.startswith(magic):
            raise ValueError(f"{where} is {words}; it must be CSV in UTF-8, with the names of inputs in its first line")


def _pieces(file: BinaryIO, start: bytes, where: str) -> Iterator[bytes]:
    """The text in pieces of whole rows; every line ends in "\\n"."""
    pending, fresh, number = b"", start, 0
    while True:
        data = pending + fresh
        if not fresh:
            if data:
                if _unclosed(data) is not None:
                    raise ValueError(f"{where}, {_row(number)} opens a quote that is not closed; close it")
                yield _checked(data if data[-1:] == b"\n" else data.replace(b"\r", b"\n") + b"\n", number, where)
            return
        cut = _end_of_rows(data)
        if len(data) - cut > LONGEST_ROW:
            number += data[:cut].count(b"\n")
            opened = (
                "opens a quote that is not closed within" if _unclosed(data[cut:]) is not None else "is longer than"
            )
            raise ValueError(f"{where}, {_row(number)} {opened} {LONGEST_ROW:,} bytes; a row must be shorter")
        piece, pending = data[:cut], data[cut:]
        if piece:
            piece = _checked(piece, number, where)
            number += piece.count(b"\n")
            yield piece
        fresh = file.read(BLOCK)


def _row(line: int) -> str:
    return f"row {line:,}" if line else "the header"


def _checked(piece: bytes, number: int, where: str) -> bytes:
    """The piece with plain line ends. Raises ValueError where it is no text. number: of its first line."""
    if b"\r" in piece:
        piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in piece:
        line = number + piece[: piece.index(b"\0")].count(b"\n")
        raise ValueError(f"{where}, {_row(line)} holds a NUL byte; the file must be CSV text in UTF-8")
    if not piece.isascii():
        try:
            piece.decode()
        except UnicodeDecodeError as error:
            line = number + piece[: error.start].count(b"\n")
            raise ValueError(f"{where}, {_row(line)} is not UTF-8 text; save the file as CSV in UTF-8") from None
    return piece


def _end_of_rows(data: bytes) -> int:
    """Where the last whole row ends: behind its line end, which stands outside quotes; 0 where no row is whole."""
    high = len(data)
    if b'"' in data:
        spans = [found.span() for found in _QUOTED.finditer(data)]
        for start, stop in reversed(spans):
            cut = data.rfind(b"\n", stop, high) + 1
            if cut:
                return cut
            high = start
    return data.rfind(b"\n", 0, high) + 1


def _end_of_first(data: bytes) -> int:
    """Where the first row ends."""
    low = 0
    for found in _QUOTED.finditer(data):
        cut = data.find(b"\n", low, found.start()) + 1
        if cut:
            return cut
        low = found.end()
    return data.index(b"\n", low) + 1


def _unclosed(data: bytes) -> int | None:
    """Where a quote is opened that is not closed."""
    if b'"' not in data:
        return None
    return next((found.start() for found in _QUOTED.finditer(data) if not found[1]), None)


# ------------------------------------------------------------------------------------------------ Parquet
def _parquet(path: Path, file: BinaryIO) -> Table:
    from .answer import need

    arrow, parquet = need("pyarrow", "a .parquet file"), need("pyarrow.parquet", "a .parquet file")
    try:
        opened = parquet.ParquetFile(file)
    except (arrow.ArrowException, OSError) as error:
        said = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(f"{one_line(str(path))} is not Parquet ({said}); write it as Parquet, or name a CSV") from None

    def blocks() -> Iterator[Block]:
        number = 1
        for batch in opened.iter_batches(ROWS, use_threads=False):
            yield Block(number, batch)
            number += batch.num_rows

    return Table(list(opened.schema_arrow.names), blocks(), opened.schema_arrow)

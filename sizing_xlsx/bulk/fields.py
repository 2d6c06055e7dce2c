"""A block of CSV -> rows as distinct cells, without a Python object for each cell.

Commas and line ends are found by NumPy. The bytes of a cell, eight at a time, are the whole numbers that pandas tells
its distinct values by. A block with quotes goes through Python's csv.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..presets.names import counted
from .layout import Layout
from .rows import Array, Column, Packed, Rows

WORD = 8
LONGEST = 16 * WORD  # bytes of a cell that are compared as numbers
_MASKS = np.array([(1 << 8 * length) - 1 for length in range(WORD + 1)], dtype="<u8")
_MIXER = np.uint64(0x9E3779B97F4A7C15)


def read_block(block: bytes, first: int, layout: Layout) -> Rows:
    """The rows of a block: UTF-8 text, whole lines that end in "\\n". first: the number of its first line.

    An empty line is no row; one with too few or too many cells is a fault, and of its cells only id and job are told.
    """
    return _quoted(block, first, layout) if b'"' in block else _plain(block, first, layout)


def _wrong(cells: int, width: int) -> str:
    return f"the row has {counted(cells, 'cell')}; it must have {width}, one for each column"


def _named(layout: Layout) -> tuple[int, ...]:
    """The columns by which a planner finds a row: id and job."""
    return tuple(at for at, name in enumerate(layout.header) if name in ("id", "job"))


def _quoted(block: bytes, first: int, layout: Layout) -> Rows:
    width = len(layout.header)
    lines = list(csv.reader(io.StringIO(block.decode(), newline="")))
    kept = [(first + at, line) for at, line in enumerate(lines) if line]
    faults = {at: _wrong(len(line), width) for at, (_, line) in enumerate(kept) if len(line) != width}
    named = _named(layout)

    def told(line: list[str]) -> list[str]:
        return [line[at] if at in named and at < len(line) else "" for at in range(width)]

    columns = list(zip(*(line if len(line) == width else told(line) for _, line in kept), strict=True)) or [()] * width
    return Rows(
        np.array([number for number, _ in kept], dtype=np.intp),
        None if layout.id is None else list(columns[layout.id]),
        {name: _told_apart(columns[at]) for name, at in layout.places.items()},
        faults,
    )


def _told_apart(texts: Sequence[str]) -> Column:
    codes, cells = pd.factorize(np.array(texts, dtype=object))
    return Column(codes, cells.tolist())


def _plain(block: bytes, first: int, layout: Layout) -> Rows:
    chars = np.frombuffer(block + bytes(WORD), dtype=np.uint8)
    starts, stops, lines, faults = _places(chars, len(layout.header), _named(layout))
    ids = None
    if layout.id is not None:
        text = block.decode("ascii") if block.isascii() else None
        places = zip(starts[:, layout.id].tolist(), stops[:, layout.id].tolist(), strict=True)
        ids = [block[a:b].decode() for a, b in places] if text is None else [text[a:b] for a, b in places]
    columns = {name: _column(block, chars, starts[:, at], stops[:, at]) for name, at in layout.places.items()}
    return Rows(first + lines, ids, columns, faults)


def _places(chars: Array, width: int, named: tuple[int, ...]) -> tuple[Array, Array, Array, dict[int, str]]:
    """Where the cells of each row begin and end, which line it is (from 0), and the rows of another length.

    Of these all cells but the named ones that they have are empty.
    """
    stops = np.flatnonzero((chars == ord(",")) | (chars == ord("\n")))
    starts = np.concatenate(([0], stops[:-1] + 1))[: len(stops)]
    last = np.flatnonzero(chars[stops] == ord("\n"))
    cells = np.diff(last, prepend=-1)
    blank = (cells == 1) & (starts[last] == stops[last])
    right = (cells == width) & ~blank
    if right.all():
        return starts.reshape(-1, width), stops.reshape(-1, width), np.arange(len(last)), {}
    kept = np.flatnonzero(~blank)
    wrong = np.flatnonzero(~right[kept])
    place = (last[kept] - cells[kept] + 1)[:, None] + np.arange(width)
    starts, stops = (each.take(place, mode="clip") for each in (starts, stops))
    there = np.isin(np.arange(width), named) & (np.arange(width) < cells[kept[wrong], None])
    starts[wrong], stops[wrong] = (np.where(there, each[wrong], 0) for each in (starts, stops))
    return starts, stops, kept, {at: _wrong(int(cells[kept[at]]), width) for at in wrong.tolist()}


def _column(block: bytes, chars: Array, starts: Array, stops: Array) -> Column:
    """The distinct cells between these places."""
    lengths = stops - starts
    longest = int(lengths.max(initial=0))
    if longest > LONGEST:
        return _told_apart([block[a:b].decode() for a, b in zip(starts.tolist(), stops.tolist(), strict=True)])
    words = np.ndarray(len(chars) - WORD + 1, dtype="<u8", buffer=chars, strides=(1,))
    parts = []
    for skipped in range(0, max(longest, 1), WORD):
        left = np.clip(lengths - skipped, 0, WORD)
        parts.append(words[np.minimum(starts + skipped, len(words) - 1)] & _MASKS[left])
    key = parts[0]
    for part in parts[1:]:
        key = (key ^ (key >> np.uint64(29))) * _MIXER + part
    codes, distinct = pd.factorize(key)
    if longest <= WORD:
        return Packed(codes, distinct)
    row = np.empty(len(distinct), dtype=np.intp)
    row[codes] = np.arange(len(codes))
    if any((part != part[row][codes]).any() for part in parts):  # two texts of one key
        return _told_apart([block[a:b].decode() for a, b in zip(starts.tolist(), stops.tolist(), strict=True)])
    return Column(codes, [block[a:b].decode() for a, b in zip(starts[row].tolist(), stops[row].tolist(), strict=True)])

"""What every process does alike, here or on a node: a block of a file of jobs in, the same rows of the result out."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ..presets.catalogue import Presets
from .answer import as_batch, as_csv
from .blocks import Block
from .fields import read_block
from .layout import Layout
from .rows import Rows, from_frame
from .sizer import Sized, Sizer


class Work(NamedTuple):
    """layout: of the jobs. presets: an own catalogue, if any. schema: of the result, where it is Parquet."""

    layout: Layout
    presets: Presets | None
    schema: Any


class Refused(NamedTuple):
    """Rows that were refused for one argument: how many, the first of them, and why that one."""

    rows: int
    first: int
    why: str


class Part(NamedTuple):
    """rows: how many. data: as CSV in bytes, or as an Arrow batch. refused: by argument, the rows refused for it."""

    rows: int
    data: Any
    refused: dict[str, Refused]


def perform(work: bytes, block: Block) -> Part:
    """The result of a block. work: a Work, pickled."""
    layout, _, schema = _work(work)
    sized = _sizer(work)(_rows(block, layout))
    return Part(len(sized.numbers), as_csv(sized) if schema is None else as_batch(sized, schema), _refused(sized))


@lru_cache(maxsize=2)
def _work(work: bytes) -> Work:
    found: Work = pickle.loads(work)
    return found


@lru_cache(maxsize=2)
def _sizer(work: bytes) -> Sizer:
    return Sizer(_work(work).layout, _work(work).presets)


def _rows(block: Block, layout: Layout) -> Rows:
    if isinstance(block.data, bytes):
        return read_block(block.data, block.first, layout)
    return from_frame(block.data.to_pandas(strings_to_categorical=True), layout, block.first)


def _refused(sized: Sized) -> dict[str, Refused]:
    found: dict[str, Refused] = {}
    for at, why in sorted(sized.errors.items()):
        add(found, why.partition(" ")[0], Refused(1, int(sized.numbers[at]), why))
    return found


def add(found: dict[str, Refused], argument: str, more: Refused) -> None:
    """Count refused rows, later ones, with those found so far."""
    before = found.get(argument)
    found[argument] = before._replace(rows=before.rows + more.rows) if before else more


def on_node(asked: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The same on a node of a cluster; folder: a checkout that it runs from, which is on its path by now."""
    return {"part": perform(asked["work"], Block(*asked["block"]))}

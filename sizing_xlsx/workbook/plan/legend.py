"""The legend of a chart by month, in cells beside it: a chart's own lists series that hold nothing, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..book import Raw
from ..scenarios import letters
from .book import MONTHS

if TYPE_CHECKING:
    from .book import PlanBook

NO_NAME = " "  # of a series that holds nothing: programs make up a name for an empty one
_MARK = "■"


class Key(NamedTuple):
    """Where one entry stands: its row, the columns of its mark and of its name, from 0."""

    row: int
    mark: int
    name: int


def unnamed(cell: str) -> str:
    """Whether a row of the sheet Months has no name, as a condition of a formula."""
    return f'OR({cell}="",{cell}="{NO_NAME}")'


def write(book: PlanBook, sheet: str, names: Sequence[tuple[int, str]], keys: Sequence[Key]) -> None:
    """Entries of a legend. names: row of each series on the sheet Months, and its name; keys: where each goes."""
    put, styles = book.putter(book.sheet(sheet)), book.styles
    colours = book.look["charts"]["by_month"]["colours"]
    for at, ((row, name), key) in enumerate(zip(names, keys, strict=True)):
        cell = f"'{MONTHS}'!${letters(1)}${row + 1}"
        told = "" if name in ("", NO_NAME) else name
        mark = styles.variant("help", colour=colours[at % len(colours)], horizontal="right")
        put(key.row, key.mark, Raw(f'=IF({unnamed(cell)},"","{_MARK}")', _MARK if told else ""), mark)
        put(key.row, key.name, Raw(f'=IF({unnamed(cell)},"",{cell})', told), styles["help"])

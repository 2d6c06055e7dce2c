"""Summary of serving: one page for a decision paper, all of it live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..page import Tile
from ..sheets import summary
from ..sheets.effort import live as live_of_time
from ..words import sentence
from . import chart_data

if TYPE_CHECKING:
    from ..book import Book

_LABEL, _VALUE, _UNIT, _SHARE, _WORDS = 1, 2, 3, 4, 5


def write(book: Book) -> None:
    """The sheet, which reads figures of Checks, Overrides and Validation: these are written before."""
    Served(book).write()


class Served(summary.Summary):
    """The page in the making, with the line items of a serving card and what serving costs in place of moments."""

    def tiles(self) -> list[Tile]:
        """What the decision rests on."""
        sym, shown, tiles = self.book.sym, self.book.shown, self.book.template["served"]["tiles"]
        verdict = shown(sym("verdict_shown"), self.book.words["check_input"])
        return [
            Tile(1, 1, self.words["tiles"]["verdict"], verdict, kind="verdict"),
            Tile(2, 3, tiles["users"], shown(sym("concurrency")), style="tile_count"),
            Tile(4, 4, tiles["pool"], shown(sym("kv_pool_tokens")), style="tile_count"),
            Tile(5, 5, tiles["headroom"], shown(sym("headroom_shown_gb"))),
        ]

    def items(self) -> None:
        """Line items of a card."""
        words = self.words["items_table"]
        sym, shown = self.book.sym, self.book.shown
        self.section(words["name"], self.live("{items_note}"))
        self.header(words["headers"])
        reduces = self.styles.variant("r_help", indent=1, wrap=False)
        first = self.row
        for item in self.book.template["served"]["items"]:
            form = "t" if item.get("total") else "r"
            small = {key: self.styles.variant(f"{form}_{key}", size=10) for key in ("label", "calc3", "share")}
            size = sym(item["term"])
            self.line(
                {
                    _LABEL: (item["name"], small["label"]),
                    _VALUE: (shown(size), small["calc3"]),
                    _UNIT: ("GB", f"{form}_unit"),
                    _SHARE: (shown(size / sym("gpu_usable_capacity_gb")), small["share"]),
                    _WORDS: ("" if form == "t" else item["reduces"], f"{form}_help" if form == "t" else reduces),
                }
            )
        self.bars(first)

    def chart(self) -> None:
        """Memory of a card by part."""
        chart_data.place_parts(self.book, self.ws, self.chart_rows(), "memory_by_part_summary")

    def moments(self) -> None:
        """What it costs, in place of moments."""
        words = self.book.template["served"]["summary"]
        self.lines(words["cost_name"], (self._of_cost(line) for line in words["cost_lines"]))

    def _of_cost(self, line: Any) -> Any:
        return live_of_time(self.book, sentence(line, self.book.sym))

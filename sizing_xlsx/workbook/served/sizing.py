"""Sizing of serving: the answer strip, the steps of inputs, what a card holds, and how far it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import page
from ..page import Tile
from ..sheets.sizing import TITLE, live, write_steps, write_strip
from ..words import sentence
from . import chart_data

if TYPE_CHECKING:
    from ..book import Book

_LABEL, _VALUE, _UNIT, _SHARE, _FIFTH, _DRIVES, _REDUCES = range(1, 8)
_CHART_ROWS = 16


def write(book: Book) -> None:
    """The sheet a planner works on."""
    ws = book.sheet(TITLE)
    last = page.set_page(ws, book.look, kind=TITLE, file_and_version=book.footer, freeze=(7, 0))
    _strip(book, last)
    row, breaks = write_steps(book, last)
    breaks.append(row)
    row = _items(book, row, last)
    for table in book.template["served"]["tables"]:
        if table.get("new_page"):
            breaks.append(row)
        row = _table(book, row, last, table)
    row = _charts(book, row, last)
    page.print_area(ws, row, last, breaks)
    ws.set_selection(9, _VALUE, 9, _VALUE)


def _strip(book: Book, last: int) -> None:
    sym, shown, tiles = book.sym, book.shown, book.template["served"]["tiles"]
    write_strip(
        book,
        last,
        [
            Tile(2, 3, tiles["users"], shown(sym("concurrency")), shown(sym("users_note")), "tile_count"),
            Tile(4, 4, tiles["pool"], shown(sym("kv_pool_tokens")), shown(sym("pool_note")), "tile_count"),
            Tile(5, 5, tiles["headroom"], shown(sym("headroom_shown_gb")), shown(sym("headroom_note"))),
            Tile(6, 6, tiles["use"], shown(sym("pool_utilisation")), shown(sym("gauge_share")), "tile_pct", "gauge"),
        ],
    )


def _head(book: Book, row: int, names: Sequence[str], numbers: Sequence[int]) -> int:
    ws, styles = book.sheet(TITLE), book.styles
    ws.set_row(row, book.look["rows"]["header"])
    for column, text in enumerate(names, 1):
        form = "th" if column == 1 else "th_r" if column in numbers else "th_i"
        style = styles.variant("th_i", indent=2) if column == _DRIVES else styles[form]
        book.put(ws, row, column, text, style)
    return row + 1


def _items(book: Book, row: int, last: int) -> int:
    """What stands on a card while the engine runs, in GB and in the GiB of its log."""
    ws, styles, sym, rows = book.sheet(TITLE), book.styles, book.sym, book.look["rows"]
    put, words = book.putter(ws), book.template["served"]["items_table"]
    row = page.section(
        ws, styles, row, last_column=last, name=words["name"], put=put, note=live(book, "items_note"),
        space_below=False,
    )  # fmt: skip
    row = _head(book, row, words["columns"], (_VALUE, _SHARE, _FIFTH))
    first = row
    for item in book.template["served"]["items"]:
        form = "t" if item.get("total") else "r"
        size = sym(item["term"])
        ws.set_row(row, rows["total" if form == "t" else "table"])
        put(row, _LABEL, item["name"], styles[f"{form}_label"])
        put(row, _VALUE, book.shown(size), styles[f"{form}_calc3"])
        put(row, _UNIT, "GB", styles[f"{form}_unit"])
        put(row, _SHARE, book.shown(size / sym("gpu_usable_capacity_gb")), styles[f"{form}_share"])
        put(row, _FIFTH, book.shown(size * sym("bytes_per_gb") / sym("bytes_per_gib")), styles[f"{form}_calc3"])
        put(row, _DRIVES, item["drives"], styles.variant(f"{form}_help", indent=2, wrap=False))
        put(row, _REDUCES, item["reduces"], styles.variant(f"{form}_help", indent=1, wrap=False))
        row += 1
    grid = book.look["sheets"][TITLE]["widths"]
    page.data_bar(ws, styles, (first, _SHARE, row - 1, _SHARE), maximum=page.bar_maximum(1, 6.8, grid[_SHARE]))
    return row


def _table(book: Book, row: int, last: int, table: Mapping[str, Any]) -> int:
    """Rows of figures of one kind: a value, up to two more beside it, its unit, and what it is."""
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    row = page.section(
        ws, styles, row, last_column=last, name=table["name"], put=put, note=live(book, table["note"]),
        space_below=False,
    )  # fmt: skip
    row = _head(book, row, table["columns"], (_VALUE, _SHARE, _FIFTH))
    for entry in table["rows"]:
        ws.set_row(row, book.look["rows"]["table"])
        put(row, _LABEL, entry["label"], styles["r_label"])
        put(row, _UNIT, entry["unit"], styles["r_unit"])
        for column, key in zip((_VALUE, _SHARE, _FIFTH), entry["cells"], strict=True):
            content: Any = book.shown(book.sym(key)) if key else ""
            put(row, column, content, styles.variant(_form(book, key), shrink=True))
        said = sentence(entry["words"], book.sym)
        told = said if isinstance(said, str) else book.shown(said)
        put(row, _DRIVES, told, styles.variant("r_help", indent=2, wrap=False))
        put(row, _REDUCES, "", styles["r_help"])
        row += 1
    return row


def _form(book: Book, key: str) -> str:
    """The style of a figure by its unit."""
    unit = book.units.get(key) or (book.job.unit_of(key) if key else "text")
    return {"GB": "r_calc3", "text": "r_text_r", "share": "r_share"}.get(unit, "r_calc0")


def _charts(book: Book, row: int, last: int) -> int:
    ws, styles = book.sheet(TITLE), book.styles
    name = book.template["sizing"]["charts"]["name"]
    row = page.section(ws, styles, row, last_column=last, name=name, put=book.putter(ws))
    chart_data.place_parts(book, ws, row)
    chart_data.place_users(book, ws, row, _FIFTH)
    for at in range(_CHART_ROWS):
        ws.set_row(row + at, book.look["rows"]["chart"])
    return row + _CHART_ROWS

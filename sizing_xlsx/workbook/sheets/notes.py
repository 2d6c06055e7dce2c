"""Notes: what the workbook covers, what it does not, and which formulas and data it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import page
from . import public_runs

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Notes"


def write(book: Book) -> None:
    """Template notes, what other people's runs rest on, then provenance."""
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    last = page.plain_sheet(book, TITLE, sentence=book.template["subject"] + ".", rows_repeated=None, freeze=(2, 0))
    row = page.section(ws, styles, 2, last_column=last, name="What this covers", put=put)
    for name, words in book.template["notes"].items():
        ws.set_row(row, 15 * (1 + len(words) // 100) + 8)
        put(row, 1, name, styles.variant("label_b", vertical="top"))
        put(row, 2, words, styles.variant("text_w", vertical="top"))
        row += 1
    if book.public_runs:
        row = public_runs.write_notes(book, book.public_runs, row, last)
    row = page.section(ws, styles, row, last_column=last, name="Provenance", put=put)
    for name, words in book.provenance.items():
        put(row, 1, name, styles["label"])
        put(row, 2, words, styles["label"])
        row += 1
    for name, words in book.told.items():
        ws.set_row(row, max(15, page.wrapped_height((words, 92))))
        put(row, 1, name, styles.variant("label", vertical="top"))
        put(row, 2, words, styles.variant("text_w", vertical="top"))
        row += 1
    page.print_area(ws, row, last)

"""Notes: what the workbook covers, what it does not, and which formulas and data it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import page
from ..words import filled
from . import public_runs

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Notes"


def write(book: Book) -> None:
    """Template notes, what other people's runs rest on, then provenance."""
    ws, styles = book.sheet(TITLE), book.styles
    put, words = book.putter(ws), book.template["notes_sheet"]
    about = filled(words["sentence"], subject=book.template["subject"])
    last = page.plain_sheet(book, TITLE, title=words["title"], sentence=about, rows_repeated=None, freeze=(2, 0))
    row = page.section(ws, styles, 2, last_column=last, name=words["covers"], put=put)
    for name, note in book.template["notes"].items():
        ws.set_row(row, 15 * (1 + len(note) // 100) + 8)
        put(row, 1, name, styles.variant("label_b", vertical="top"))
        put(row, 2, note, styles.variant("text_w", vertical="top"))
        row += 1
    if book.public_runs:
        row = public_runs.write_notes(book, book.public_runs, row, last)
    row = page.section(ws, styles, row, last_column=last, name=words["provenance"], put=put)
    for name, said in book.provenance.lines(book.words["provenance"]).items():
        put(row, 1, name, styles["label"])
        put(row, 2, said, styles["label"])
        row += 1
    for name, said in book.told.items():
        ws.set_row(row, max(15, page.wrapped_height((said, 92))))
        put(row, 1, name, styles.variant("label", vertical="top"))
        put(row, 2, said, styles.variant("text_w", vertical="top"))
        row += 1
    page.print_area(ws, row, last)

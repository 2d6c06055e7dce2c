"""Start: which sheet answers which question, what the figures mean, how to read the cells, where evidence ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import page

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Start"
_QUESTIONS = (
    ("Does my job fit this card?", "Verdict, headroom, line items", "The inputs of your job", "Sizing"),
    ("What if a shape or an allowance differs?", "Every preset, and room for your own", "What differs", "Overrides"),
    ("Can I trust these figures?", "Predicted beside measured, every run", "Own runs, if you have any", "Validation"),
    ("Which models and formats are known?", "Shapes, formats and choices, with sources", "Nothing", "Presets"),
    ("How much of a card can be used?", "Usable totals, with sources", "Nothing", "GPUs"),
    ("How does a figure come about?", "Every term, in words and as a formula", "Nothing", "Workings"),
    ("What is wrong with my input?", "Every check and warning", "Nothing", "Checks"),
)  # fmt: skip
_LEGEND = (
    ("Input", "Yours to change. Everything else is locked, without a password.", 512, "in_num"),
    ("Calculated", "Select it to see the formula.", None, "calc3"),
    ("Own value", "You replaced a preset; the preset stays beside it.", 85.0, "own"),
    ("Check input", "Something is missing or out of range; the words say what.", "Check input", "check"),
)  # fmt: skip


def write(book: Book) -> None:
    """The first sheet."""
    ws, styles, sym = book.sheet(TITLE), book.styles, book.sym
    put = book.putter(ws)
    rows = book.look["rows"]
    last = page.set_page(ws, book.look, kind=TITLE, file_and_version=book.footer, rows_repeated=None, freeze=(3, 0))
    for row, (style, height) in enumerate((("strip", 34), ("strip", 20), ("strip_edge", 10))):
        page.fill_row(ws, row, 0, last, styles[style], height)
    put(0, 1, f"GPU memory: {book.template['title']}", styles["title"])
    put(0, last - 1, book.stamp, styles["stamp"])
    put(1, 1, book.template["start"]["sentence"], styles["sentence"])

    def header(row: int, texts: tuple[str, ...]) -> int:
        ws.set_row(row, rows["header"])
        for column, text in enumerate(texts, 1):
            put(row, column, text, styles["th_r" if text == "This job" else "th"])
        return row + 1

    row = page.section(
        ws, styles, 3, last_column=last, name="Which sheet answers my question?", put=put, space_below=False
    )
    row = header(row, ("Question", "You get", "You enter", "Open"))
    for question, get, enter, sheet in _QUESTIONS:
        ws.set_row(row, 21)
        for column, text in enumerate((question, get, enter), 1):
            put(row, column, text, styles["r_label" if column == 1 else "r_text"])
        ws.write_url(row, 4, f"internal:'{sheet}'!A1", styles["r_link"], sheet)
        row += 1
    row = page.section(ws, styles, row, last_column=last, name="What the figures mean", put=put, space_below=False)
    row = header(row, ("Term", "Meaning", "Why it differs from the others", "This job"))
    figures: tuple[tuple[str, str, str, Any], ...] = (
        (
            "Peak allocated",
            "Memory in use at the worst moment",
            "Lower than the total; never size against it",
            sym("peak_shown_gb"),
        ),
        (
            "Total to size against",
            "Peak plus what the allocator holds back",
            "An upper estimate; the verdict rests on it",
            sym("total_shown_gb"),
        ),
        (
            "Shown by nvidia-smi",
            "Total plus the driver and the context",
            "The cache may grow to all that is free",
            sym("total_shown_gb") + sym("others_shown_gb"),
        ),
        (
            "Usable capacity",
            "What the framework can address",
            "Less than the label, counted in decimal GB",
            sym("usable_shown_gb"),
        ),
    )
    for name, meaning, why, tree in figures:
        ws.set_row(row, 21)
        for column, text in enumerate((name, meaning, why), 1):
            put(row, column, text, styles["r_label" if column == 1 else "r_text"])
        put(row, 4, book.shown(tree), styles["r_gb"])
        row += 1
    row = page.section(ws, styles, row, last_column=last, name="How to read the cells", put=put)
    for name, words, sample, style in _LEGEND:
        ws.set_row(row, 21)
        put(row, 1, name, styles["label"])
        put(row, 2, words, styles["label"])
        shown: Any = book.shown(sym("peak_allocated_gb")) if sample is None else sample
        put(row, 4, shown, styles.variant(style, locked=True) if style == "in_num" else styles[style])
        row += 1
    row = page.section(ws, styles, row, last_column=last, name="Where the evidence ends", put=put)
    for text in book.template["start"]["evidence"]:
        ws.set_row(row, 20)
        put(row, 1, text, styles["label"])
        row += 1
    page.print_area(ws, row, last)

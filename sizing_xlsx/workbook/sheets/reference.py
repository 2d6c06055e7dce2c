"""Presets and GPUs: the data that formulas look things up in, with the source of each figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.render import column_name
from ...formula.table import Table
from .. import page

if TYPE_CHECKING:
    from ..book import Book

PRESETS, GPUS = "Presets", "GPUs"
_COLUMNS = 20


def write(book: Book) -> None:
    """The Presets sheet: models, formats, choices, models that cannot be sized yet; and the GPUs sheet."""
    ws, styles = book.sheet(PRESETS), book.styles
    put = book.putter(ws)
    page.set_page(ws, book.look, kind=PRESETS, last_column=_COLUMNS, file_and_version=book.footer, rows_repeated=(0, 1), freeze=(2, 2))
    _title(book, PRESETS, "Presets", "Shapes, formats and choices that formulas look up, with their sources.")
    row = 2
    used = book.used_tables
    for name in ("models", "training_models", "storage_formats"):
        if name in used:
            row = _table(book, PRESETS, row, used[name], _sources(book, name))
    for name, table in used.items():
        if name not in ("models", "training_models", "storage_formats", "gpus"):
            row = _table(book, PRESETS, row, table, {key: book.presets.option_sources.get(name, "") for key in table.keys})
    if "models" in used:
        row = page.section(ws, styles, row, last_column=_COLUMNS, name="Models that are not offered yet", put=put, space_below=False)
        ws.set_row(row, book.look["rows"]["header"])
        for column, text in enumerate(("Model", "Family", "Why"), 1):
            put(row, column, text, styles["th" if column == 1 else "th_i"])
        row += 1
        for model in book.presets.unsized_models:
            put(row, 1, model.name, styles["r_label"])
            put(row, 2, model.family, styles["r_text_i"])
            put(row, 3, model.why_not, styles["r_text_i"])
            row += 1
    page.print_area(ws, row, _COLUMNS)
    _gpus(book)


def _title(book: Book, sheet: str, title: str, words: str) -> None:
    ws, styles = book.sheet(sheet), book.styles
    put = book.putter(ws)
    page.fill_row(ws, 0, 0, _COLUMNS, styles["strip"], book.look["rows"]["title"])
    page.fill_row(ws, 1, 0, _COLUMNS, styles["strip_edge"], book.look["rows"]["sentence"])
    put(0, 1, title, styles["title"])
    put(1, 1, words, styles["sentence"])


def _sources(book: Book, name: str) -> dict[str, str]:
    rows = {
        "models": [(row["model"], row["shape_source"]) for row in book.presets.model_sources],
        "training_models": [(row["name"], row["source"]) for row in book.presets.training_model_rows],
        "storage_formats": [(row["name"], row["source"]) for row in book.presets.storage_rows],
    }[name]
    return {key: source or "" for key, source in rows}


def _table(book: Book, sheet: str, row: int, table: Table, sources: dict[str, str]) -> int:
    """One table with named columns; returns the next free row."""
    ws, styles = book.sheet(sheet), book.styles
    put = book.putter(ws)
    title = table.name.replace("_", " ").capitalize()
    row = page.section(ws, styles, row, last_column=_COLUMNS, name=title, put=put, space_below=False)
    ws.set_row(row, book.look["rows"]["header_two_lines"])
    put(row, 1, "Name", styles["th_open"])
    put(row + 1, 1, "", styles["th_ul"])
    for column, name in enumerate(table.columns, 2):
        text = name.replace("_", " ").capitalize()
        numeric = table.units[name] != "text"
        put(row, column, text.replace("Kv ", "KV ").replace("Mlp ", "MLP "), styles["th_open_r" if numeric else "th_open_i"])
        put(row + 1, column, table.units[name] if numeric else "", styles["th_u" if numeric else "th_ui"])
    beyond = 2 + len(table.columns)
    put(row, beyond, "Source", styles["th_open_i"])
    put(row + 1, beyond, "", styles["th_ui"])
    first = row + 2
    for at, key in enumerate(table.keys):
        put(first + at, 1, key, styles["r_label"])
        for column, name in enumerate(table.columns, 2):
            value: Any = table.columns[name][at]
            if table.units[name] == "text":
                put(first + at, column, value, styles["r_text_i"])
            else:
                put(first + at, column, value, styles["r_calc0"] if value == int(value) else styles.variant("r_calc0", format="general"))
        put(first + at, beyond, sources.get(key, ""), styles.variant("r_help", indent=1, wrap=False))
    end = first + len(table.keys) - 1
    book.define(column_name(table.name, None), sheet, first, 1, end)
    for column, name in enumerate(table.columns, 2):
        if (table.name, name) in book.used_columns:
            book.define(column_name(table.name, name), sheet, first, column, end)
    return end + 1


def _gpus(book: Book) -> None:
    ws, styles = book.sheet(GPUS), book.styles
    put = book.putter(ws)
    last = 17
    widths = (3, 36, 9, 12, 11, 17, 17, 17, 10, 10, 10, 9, 12, 60, 44, 40, 40, 2)
    page.set_page(ws, book.look, kind=GPUS, widths=widths, file_and_version=book.footer, rows_repeated=(0, 3), freeze=(4, 2))
    _title(book, GPUS, "GPUs", "What the framework can address is less than the label. Cards without a known total need an own capacity.")
    columns = (
        ("vendor", "Vendor", ""), ("architecture", "Architecture", ""), ("marketed_gb", "Label", "GB"),
        ("usable_bytes", "Usable by the framework", "bytes"), ("driver_total_bytes", "Driver total", "bytes"),
        ("matmul_workspace_bytes", "Matrix workspace", "bytes"), ("bandwidth_gb_per_s", "Bandwidth", "GB/s"),
        ("bf16_dense_tflops", "16-bit dense", "TFLOP/s"), ("power_w", "Power", "W"), ("price_usd_per_hour", "Price, illustrative", "USD per hour"),
        ("release_year", "Year", ""), ("usable_basis", "Where the usable total comes from", ""), ("memory_source", "Source of memory", ""),
        ("price_source", "Source of price", ""), ("note", "Note", ""),
    )  # fmt: skip
    ws.set_row(2, book.look["rows"]["header_two_lines"])
    put(2, 1, "GPU", styles["th_open"])
    put(3, 1, "", styles["th_ul"])
    table = book.job.tables["gpus"]
    rows = {row["name"]: row for row in book.presets.gpu_rows}
    for column, (key, text, unit) in enumerate(columns, 2):
        numeric = bool(unit) or key == "release_year"
        put(2, column, text, styles["th_open_r" if numeric else "th_open_i"])
        put(3, column, unit, styles["th_u" if numeric else "th_ui"])
        for at, name in enumerate(table.keys):
            value = rows[name].get(key)
            if key in ("usable_bytes", "matmul_workspace_bytes"):
                put(4 + at, column, value or 0, styles["r_calc0"] if value else styles["r_none"])
            elif value is None or value == "":
                put(4 + at, column, "unknown" if numeric else "", styles["r_none" if numeric else "r_help"])
            elif isinstance(value, str):
                put(4 + at, column, value, styles.variant("r_help", indent=1, wrap=False))
            else:
                form = "r_calc0" if key != "price_usd_per_hour" else "r_calc2"
                put(4 + at, column, value, styles.variant(form, format="general") if key == "release_year" else styles[form])
    for at, name in enumerate(table.keys):
        put(4 + at, 1, name, styles["r_label"])
    end = 4 + len(table.keys) - 1
    book.define(column_name("gpus", None), GPUS, 4, 1, end)
    book.define(column_name("gpus", "usable_bytes"), GPUS, 4, 5, end)
    book.define(column_name("gpus", "matmul_workspace_bytes"), GPUS, 4, 7, end)
    page.print_area(ws, end + 1, last)

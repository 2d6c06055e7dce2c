"""Presets and GPUs: the data that formulas look things up in, with the source of each figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.declare import label_of
from ...formula.engine import value_of
from ...formula.expression import Expr, children
from ...formula.expression import name as symbol_of
from ...formula.render import column_name, sheet_formula
from ...formula.table import Table
from .. import page
from ..book import Raw

if TYPE_CHECKING:
    from ..book import Book

PRESETS, GPUS = "Presets", "GPUs"
# Terms shown in each row of a table, as live formulas over the row's own cells.
_LIVE = {
    "models": ("layer_matrix_parameters", "layer_bias_parameters", "preset_base_parameter_count"),
    "training_models": ("layer_matrix_parameters", "preset_parameter_count"),
}
_OWN_TABLES = ("models", "training_models", "storage_formats")
_GPU_COLUMNS = (
    ("vendor", "Vendor", ""), ("architecture", "Architecture", ""), ("marketed_gb", "Label", "GB"),
    ("usable_bytes", "Usable by the framework", "bytes"), ("driver_total_bytes", "Driver total", "bytes"),
    ("matmul_workspace_bytes", "Matrix workspace", "bytes"), ("bandwidth_gb_per_s", "Bandwidth", "GB/s"),
    ("bf16_dense_tflops", "16-bit dense", "TFLOP/s"), ("power_w", "Power", "W"),
    ("price_usd_per_hour", "Price, illustrative", "USD per hour"), ("release_year", "Year", ""),
)  # fmt: skip
_GPU_SOURCES = (
    ("usable_basis", "Usable"), ("memory_source", "memory"), ("bandwidth_source", "bandwidth"),
    ("flops_source", "speed"), ("power_source", "power"), ("price_source", "price"), ("interconnect_source", "links"),
    ("matmul_workspace_source", "matrix workspace"),
)  # fmt: skip


def write(book: Book) -> None:
    """The Presets sheet: models, formats, choices, models that cannot be sized yet; and the GPUs sheet."""
    ws, styles, used = book.sheet(PRESETS), book.styles, book.used_tables
    put = book.putter(ws)
    last = page.plain_sheet(
        book, PRESETS, sentence="Shapes, formats and choices that formulas look up, with their sources."
    )
    row = 2
    for name in _OWN_TABLES:
        if name in used:
            row = _table(book, row, last, used[name], _sources(book, name), "")
    for name, table in used.items():
        if name not in _OWN_TABLES and name != "gpus":
            row = _table(book, row, last, table, {}, book.presets.option_sources[name])
    if "models" in used:
        row = page.section(
            ws,
            styles,
            row,
            last_column=last,
            name="Models that are not offered yet",
            put=put,
            space_below=False,
        )
        ws.set_row(row, book.look["rows"]["header"])
        for column, text in ((1, "Model"), (2, "Family"), (4, "Why")):
            put(row, column, text, styles["th" if column == 1 else "th_i"])
        put(row, 3, "", styles["th"])
        row += 1
        for model in book.presets.unsized_models:
            put(row, 1, model.name, styles["r_label"])
            put(row, 2, model.family, styles["r_text_i"])
            put(row, 3, "", styles["r_label"])
            put(row, 4, model.why_not, styles["r_text_i"])
            row += 1
    page.print_area(ws, row, last)
    _gpus(book)


def _sources(book: Book, name: str) -> dict[str, str]:
    rows = {
        "models": [(row["model"], row["shape_source"]) for row in book.presets.model_sources],
        "training_models": [(row["name"], row["source"]) for row in book.presets.training_model_rows],
        "storage_formats": [(row["name"], row["source"]) for row in book.presets.storage_rows],
    }[name]
    return {key: source or "" for key, source in rows}


def _table(book: Book, row: int, last: int, table: Table, sources: dict[str, str], source: str) -> int:
    """One table with named columns; source: of the whole table, else one a row. Returns the next free row."""
    ws, styles = book.sheet(PRESETS), book.styles
    put = book.putter(ws)
    title = table.name.replace("_", " ").capitalize()
    note = f"Source: {source}" if source else None
    row = page.section(
        ws, styles, row, last_column=last, name=title, put=put, note=note, note_column=4, space_below=False
    )
    ws.set_row(row, book.look["rows"]["header_two_lines"])
    put(row, 1, "Name", styles["th_open"])
    put(row + 1, 1, "", styles["th_ul"])
    for column, name in enumerate(table.columns, 2):
        unit, text = table.units[name], label_of(name)
        put(row, column, text, styles["th_open_i" if unit == "text" else "th_open_r"])
        put(
            row + 1,
            column,
            "" if unit == "text" else unit.partition(" per ")[0],
            styles["th_ui" if unit == "text" else "th_u"],
        )
    live = _LIVE.get(table.name, ())
    for column, key in enumerate(live, 2 + len(table.columns)):
        put(row, column, book.label_of(key).removesuffix(", preset"), styles["th_open_r"])
        put(row + 1, column, "count", styles["th_u"])
    if sources:
        put(row, last - 1, "Source", styles["th_open_i"])
        put(row + 1, last - 1, "", styles["th_ui"])
    first = row + 2
    for at, key in enumerate(table.keys):
        put(first + at, 1, key, styles["r_label"])
        for column, name in enumerate(table.columns, 2):
            value: Any = table.columns[name][at]
            if table.units[name] == "text":
                put(first + at, column, value, styles["r_text_i"])
            else:
                whole = value == int(value)
                put(
                    first + at,
                    column,
                    value,
                    styles["r_calc0"] if whole else styles.variant("r_calc0", format="general"),
                )
        _write_live(book, table, live, first + at, at)
        if sources:
            words = sources.get(key) or "added by the planner"
            put(first + at, last - 1, words, styles.variant("r_help", indent=1))
            ws.set_row(first + at, page.wrapped_height((words, book.look["sheets"][PRESETS]["widths"][-2])))
    end = first + len(table.keys) - 1
    book.define(column_name(table.name, None), PRESETS, first, 1, end)
    for column, name in enumerate(table.columns, 2):
        if (table.name, name) in book.used_columns:
            book.define(column_name(table.name, name), PRESETS, first, column, end)
    return end + 1


def _write_live(book: Book, table: Table, live: tuple[str, ...], row: int, at: int) -> None:
    """Terms of one row of a table: the trees of the formulas, over the cells of the row."""
    from xlsxwriter.utility import xl_col_to_name

    cells = {key: f"${xl_col_to_name(column)}{row + 1}" for column, key in enumerate([*table.columns, *live], 2)}
    values = {**book.values, **{key: values[at] for key, values in table.columns.items()}}
    for column, key in enumerate(live, 2 + len(table.columns)):
        tree = _over_row(book, book.job.trees[key], table, live)
        values[key] = value_of(tree, values, book.job.tables)
        formula = sheet_formula(tree, lambda symbol: cells.get(symbol) or book.cell_name(symbol))
        book.put(book.sheet(PRESETS), row, column, Raw(formula, values[key]), book.styles["r_calc0"])


def _over_row(book: Book, tree: Expr, table: Table, stop: tuple[str, ...]) -> Expr:
    """The tree with each look-up in the table replaced by the column's name, and terms opened down to those."""
    if tree.op == "cell" and tree.args[0].args[0] == table.name:
        return symbol_of(tree.args[0].args[1], tree.unit)
    if tree.op == "name":
        symbol = tree.args[0]
        preset = f"preset_{symbol}" if symbol in book.job.overrides else symbol
        opened = preset in book.job.trees and symbol not in stop
        return _over_row(book, book.job.trees[preset], table, stop) if opened else tree
    inner = tuple(_over_row(book, child, table, stop) for child in children(tree))
    return Expr(tree.op, inner, tree.unit) if inner else tree


def _gpus(book: Book) -> None:
    ws, styles = book.sheet(GPUS), book.styles
    put = book.putter(ws)
    last = page.plain_sheet(
        book,
        GPUS,
        sentence="The framework can address less than the label says. Cards of unknown total need an own capacity.",
        rows_repeated=(0, 3),
        freeze=(4, 2),
    )
    ws.set_row(2, book.look["rows"]["header_two_lines"])
    put(2, 1, "GPU", styles["th_open"])
    put(3, 1, "", styles["th_ul"])
    put(2, last - 1, "Note", styles["th_open_i"])
    put(3, last - 1, "", styles["th_ui"])
    table = book.job.tables["gpus"]
    rows = {row["name"]: row for row in book.presets.gpu_rows}
    for column, (key, text, unit) in enumerate(_GPU_COLUMNS, 2):
        numeric = bool(unit) or key == "release_year"
        put(2, column, text, styles["th_open_r" if numeric else "th_open_i"])
        put(3, column, unit, styles["th_u" if numeric else "th_ui"])
        for at, name in enumerate(table.keys):
            _gpu_cell(book, 4 + at, column, key, rows[name].get(key), numeric)
    for at, name in enumerate(table.keys):
        put(4 + at, 1, name, styles["r_label"])
        note = rows[name]["note"] or ""
        put(4 + at, last - 1, note, styles.variant("r_help", indent=1))
        ws.set_row(4 + at, page.wrapped_height((note, book.look["sheets"][GPUS]["widths"][-2])))
    end = 4 + len(table.keys) - 1
    book.define(column_name("gpus", None), GPUS, 4, 1, end)
    for column, (key, _, _) in enumerate(_GPU_COLUMNS, 2):
        if ("gpus", key) in book.used_columns:
            book.define(column_name("gpus", key), GPUS, 4, column, end)
    row = page.section(ws, styles, end + 1, last_column=last, name="Where the figures come from", put=put)
    for name in table.keys:
        words = "; ".join(f"{label}: {rows[name][key]}" for key, label in _GPU_SOURCES if rows[name].get(key))
        put(row, 1, name, styles["r_label"])
        page.fill_row(
            ws,
            row,
            2,
            last - 2,
            styles["r_label"],
            page.wrapped_height((words, book.look["sheets"][GPUS]["widths"][-2])),
        )
        put(row, last - 1, words, styles.variant("r_help", indent=1))
        row += 1
    page.print_area(ws, row, last, [end + 1])


def _gpu_cell(book: Book, row: int, column: int, key: str, value: Any, numeric: bool) -> None:
    ws, styles = book.sheet(GPUS), book.styles
    if ("gpus", key) in book.used_columns:  # a formula reads it: unknown is 0, not a word
        book.put(ws, row, column, value or 0, styles["r_calc0" if value else "r_none"])
    elif value is None or value == "":
        book.put(ws, row, column, "unknown" if numeric else "", styles["r_none" if numeric else "r_help"])
    elif isinstance(value, str):
        book.put(ws, row, column, value, styles.variant("r_help", indent=1, wrap=False))
    elif key == "release_year":
        book.put(ws, row, column, value, styles.variant("r_calc0", format="general"))
    else:
        book.put(ws, row, column, value, styles["r_calc2" if key == "price_usd_per_hour" else "r_calc0"])

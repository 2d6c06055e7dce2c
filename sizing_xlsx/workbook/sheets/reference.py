"""Presets and GPUs: the data that formulas look things up in, with the source of each figure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

from ...formula.declare import label_of
from ...formula.engine import value_of
from ...formula.expression import Expr, children
from ...formula.expression import name as symbol_of
from ...formula.render import column_name, sheet_formula
from ...formula.table import Table
from ...functions.vocabulary import vocabulary
from ...presets.catalogue import MADE_OF_CARDS
from .. import page
from ..book import Raw
from ..inputs import prompt
from ..words import filled, quoted

if TYPE_CHECKING:
    from ...presets.full_forms import FullForm
    from ..book import Book

PRESETS, GPUS = "Presets", "GPUs"
# Terms shown in each row of a table, as live formulas over the row's own cells.
_LIVE = {
    "models": (
        "preset_base_parameter_count", "active_parameters", "embedding_parameters", "head_parameters",
        "all_expert_parameters", "kv_values_per_token_per_layer", "convertible_parameters",
    ),
    "training_models": ("layer_matrix_parameters", "preset_parameter_count"),
}  # fmt: skip
# Of a table that is too wide to be read: the columns before its source. The others, and the terms that the live ones
# rest on, stand behind the right edge.
_IN_VIEW = {
    "models": (
        "layer_form", "hidden_size", "layer_count", "attention_heads", "kv_heads", "head_dimension", "mlp_width",
        "vocabulary_size", "maximum_positions", "sliding_window",
    ),
    "layer_forms": (
        "norms_d", "attention_q", "attention_kv", "attention_nh", "mlp_ff", "moe_k_e", "moe_k_d", "shared_s",
        "final_norm_d", "extra_score_bytes",
    ),
    "full_forms": (
        "layer_d", "layer_q", "layer_kv", "layer_nh", "mlp_d", "mlp_ff", "moe_k_e", "moe_k_d", "outer_d", "traced",
    ),
    "stacks": (
        "forward_logit_bytes", "shifted_logit_bytes", "backward_logit_bytes", "fused_logit_bytes", "row_logit_bytes",
        "held_logit_bytes", "keeps_output", "fused_norms", "fused_adapters", "fused_loss", "unties", "linear_experts",
        "own_layers",
    ),
    "engines": (
        "memory_fraction", "fraction_of_free", "block_tokens", "large_card_gib", "large_batched_tokens",
        "small_batched_tokens", "large_sequences", "small_sequences", "sampler_bytes", "libraries_one_gib",
        "libraries_several_gib", "graphs_gib", "counts_step", "counts_graphs", "keeps_windows", "kv_fp8", "kv_int8",
    ),
}  # fmt: skip
_STEPS = {
    "models": (
        "query_width", "kv_width", "attention_output_width", "patterned_moe_layers", "moe_layer_count",
        "kv_expansion_width", "kv_parameters", "patterned_full_layers", "attention_parameters",
        "all_attention_parameters", "mlp_parameters", "all_mlp_parameters", "expert_parameters",
        "shared_expert_parameters", "all_shared_parameters", "router_parameters", "mlp_layer_biases", "bias_parameters",
        "norm_parameters", "embedding_width", "layers_parameters", "outer_parameters", "full_layer_count",
        "windowed_layer_count",
    ),
}  # fmt: skip
_STEP_WIDTH = 16  # characters
_COLUMN = "column "  # before the name of a column, for a term may have the same
_OWN_TABLES = (
    "models", "training_models", "recipes", "storage_formats", "engines", "stacks", "layer_forms", "full_forms",
)  # fmt: skip
_NAMED = ("cuda",)  # columns that sheets read, whatever the formulas do
_CARD_FIGURES = "cards"  # of names of columns that functions alone read, known or not: Cards_Usable_GB_List
_USABLE = {"usable_gb": "bytes_per_gb", "usable_mib": "bytes_per_mib"}  # beside the bytes; nvidia-smi counts in MiB
_TYPED: dict[str, dict[str, Any]] = {  # columns of a planner's own to change, and the rule for each
    "price_usd_per_hour": {"validate": "decimal", "minimum": 0, "maximum": 100_000},
    "price_as_of": {"validate": "length", "minimum": 0, "maximum": 60},
}
_SOURCE_LINE = 400  # characters between the names and the right edge of the sheet
_FORMATS = {"ecc_memory_share": "r_share", "usable_gb": "r_calc2", "usable_mib": "r_calc0"}


def write(book: Book) -> None:
    """The Presets sheet: models, formats, choices, models that cannot be sized yet; and the GPUs sheet."""
    ws, used, words = book.sheet(PRESETS), book.used_tables, book.template["reference"]["presets"]
    last = page.plain_sheet(book, PRESETS, title=words["title"], sentence=words["sentence"])
    row = 2
    for name in _OWN_TABLES:
        if name in used:
            row = _table(book, row, last, used[name], _sources(book, name))
    if "models" in used:
        row = _unsized(book, row, last)
    for name, table in used.items():
        if name not in _OWN_TABLES and name != "gpus":
            row = _table(book, row, last, table, {}, source=book.presets.option_sources[name])
    page.print_area(ws, row, last)
    _gpus(book)


def _full_forms(book: Book) -> list[tuple[str, FullForm]]:
    """The rows of full forms that were traced: a row of a stream is called by its form, a comma and the stream."""
    forms = book.presets.full_parts
    rows = [(key, key.partition(",")[0]) for key in book.presets.full_forms]
    return [(key, forms[name]) for key, name in rows if name in forms]


def _sources(book: Book, name: str) -> dict[str, str]:
    rows = {
        "models": [(row["model"], row["shape_source"]) for row in book.presets.model_sources],
        "training_models": [(row["name"], row["source"]) for row in book.presets.training_model_rows],
        "storage_formats": [(row["name"], row["source"]) for row in book.presets.storage_rows],
        "engines": [
            (row["name"], f"{row['evidence']}: {row['source']}; {row['note']}") for row in book.presets.engine_rows
        ],
        "stacks": [(row["name"], row["source"]) for row in book.presets.stack_rows],
        "layer_forms": [(row["name"], row["source"]) for row in book.presets.layer_form_rows],
        "full_forms": [(key, form.source) for key, form in _full_forms(book)],
        "recipes": [(row["name"], row["source"]) for row in book.presets.recipe_rows],
    }[name]
    words = book.template["reference"]["presets"]
    of_rows = {key: source or "" for key, source in rows}
    for row in book.presets.own:
        if row.table == name:  # a layer form says itself how it was found
            said = words["own_form"] if name == "layer_forms" else words["own"]
            of_rows[row.name] = filled(said, file=row.file, source=of_rows.get(row.name, ""))
    return of_rows


def _unsized(book: Book, row: int, last: int) -> int:
    """Models that no job sizes yet: those that are counted with their figures, the others with the reason alone."""
    words = book.template["reference"]["presets"]
    own = {model.name: model.file for model in book.presets.own if model.table == "models"}
    reasons = {model.name: model.why_not for model in book.presets.unsized_models}
    for name in reasons.keys() & own.keys():
        reasons[name] = filled(words["own_reason"], file=own[name], reason=reasons[name])
    counted = book.presets.counted_models
    if len(counted):
        row = _table(book, row, last, counted, reasons, like="models", title=words["not_offered"])
    others = [model for model in book.presets.unsized_models if model.name not in counted.keys]
    if not others:
        return row
    ws, styles = book.sheet(PRESETS), book.styles
    put = book.putter(ws)
    name = words["not_counted"]
    row = page.section(ws, styles, row, last_column=last, name=name, put=put, space_below=False)
    ws.set_row(row, book.look["rows"]["header"])
    for column, text in zip((1, 2, 4), words["not_counted_columns"], strict=True):
        put(row, column, text, styles["th" if column == 1 else "th_i"])
    put(row, 3, "", styles["th"])
    for model in others:
        row += 1
        put(row, 1, model.name, styles["r_label"])
        put(row, 2, model.family, styles["r_text_i"])
        put(row, 3, "", styles["r_label"])
        put(row, 4, reasons[model.name], styles["r_text_i"])
    return row + 1


class _Layout(NamedTuple):
    """Where the columns of a table and its live terms stand on the sheet."""

    columns: dict[str, int]
    live: dict[str, int]


def _layout(table: Table, like: str, last: int) -> _Layout:
    live = _LIVE.get(like, ())
    in_view = _IN_VIEW.get(like, tuple(table.columns))
    columns = {name: at for at, name in enumerate(in_view, 2)}
    terms = {name: at for at, name in enumerate(live, 2 + len(columns))}
    behind = last + 1
    for name in table.columns:
        if name not in columns:
            columns[name] = behind
            behind += 1
    for name in _STEPS.get(like, ()):
        terms[name] = behind
        behind += 1
    return _Layout(columns, terms)


def _table(
    book: Book,
    row: int,
    last: int,
    table: Table,
    sources: dict[str, str],
    *,
    source: str = "",
    like: str = "",
    title: str = "",
) -> int:
    """One table with named columns; returns the next free row.

    sources: of each row, or source: of the whole table. like: the table whose columns and live terms it has; then
    formulas do not look it up and its columns have no names.
    """
    ws, styles = book.sheet(PRESETS), book.styles
    put, words = book.putter(ws), book.template["reference"]["presets"]
    title = title or table.name.replace("_", " ").capitalize()
    note = filled(words["source_of_all"], source=source) if source else None
    row = page.section(
        ws, styles, row, last_column=last, name=title, put=put, note=note, note_column=4, space_below=False
    )
    ws.set_row(row, book.look["rows"]["header_two_lines"])
    put(row, 1, words["name"], styles["th_open"])
    put(row + 1, 1, "", styles["th_ul"])
    layout = _layout(table, like or table.name, last)
    heads = [(at, label_of(name), table.units[name].partition(" per ")[0]) for name, at in layout.columns.items()]
    heads += [(at, book.label_of(key).removesuffix(", preset"), "count") for key, at in layout.live.items()]
    for column, text, unit in heads:
        is_text = unit == "text"
        put(row, column, text, styles["th_open_i" if is_text else "th_open_r"])
        put(row + 1, column, "" if is_text else unit, styles["th_ui" if is_text else "th_u"])
        if column > last:
            ws.set_column(column, column, _STEP_WIDTH)
    if sources:
        put(row, last - 1, words["why" if like else "source"], styles["th_open_i"])
        put(row + 1, last - 1, "", styles["th_ui"])
    first = row + 2
    for at, key in enumerate(table.keys):
        put(first + at, 1, key, styles["r_label"])
        for name, column in layout.columns.items():
            value: Any = table.columns[name][at]
            if table.units[name] == "text":
                put(first + at, column, value, styles["r_text_i"])
            else:
                whole = value == int(value)
                put(
                    first + at,
                    column,
                    value,
                    styles.variant("r_calc0", shrink=True) if whole else styles.variant("r_calc0", format="general"),
                )
        _write_live(book, table, like or table.name, layout, first + at, at)
        if sources:
            said = sources.get(key) or words["no_source"]
            put(first + at, last - 1, said, styles.variant("r_help", indent=1))
            ws.set_row(first + at, page.wrapped_height((said, book.look["sheets"][PRESETS]["widths"][-2])))
    end = first + len(table.keys) - 1
    if not like:
        book.define(column_name(table.name, None), PRESETS, first, 1, end)
        for name, column in layout.columns.items():
            if (table.name, name) in book.used_columns:
                book.define(column_name(table.name, name), PRESETS, first, column, end)
    return end + 1


def _write_live(book: Book, table: Table, like: str, layout: _Layout, row: int, at: int) -> None:
    """Terms of one row of a table: the trees of the formulas, over the cells of the row."""
    from xlsxwriter.utility import xl_col_to_name

    places = {**{_COLUMN + name: column for name, column in layout.columns.items()}, **layout.live}
    cells = {key: f"${xl_col_to_name(column)}{row + 1}" for key, column in places.items()}
    values = {**book.values, **{_COLUMN + name: values[at] for name, values in table.columns.items()}}
    for key in book.job.order:
        if key not in layout.live:
            continue
        tree = _over_row(book, book.job.trees[key], like, tuple(layout.live))
        values[key] = value_of(tree, values, book.job.tables)
        formula = sheet_formula(tree, lambda symbol: cells.get(symbol) or book.cell_name(symbol))
        count = book.styles.variant("r_calc0", shrink=True)  # parameters of large models have 15 characters
        book.put(book.sheet(PRESETS), row, layout.live[key], Raw(formula, values[key]), count)


def _over_row(book: Book, tree: Expr, table: str, stop: tuple[str, ...]) -> Expr:
    """The tree with each look-up in the table replaced by a cell of the row, and terms opened down to `stop`."""
    if tree.op == "cell" and tree.args[0].args[0] == table:
        return symbol_of(_COLUMN + tree.args[0].args[1], tree.unit)
    if tree.op == "name":
        symbol = tree.args[0]
        preset = f"preset_{symbol}" if symbol in book.job.overrides else symbol
        if preset in stop:
            return symbol_of(preset, tree.unit)
        return _over_row(book, book.job.trees[preset], table, stop) if preset in book.job.trees else tree
    inner = tuple(_over_row(book, child, table, stop) for child in children(tree))
    return Expr(tree.op, inner, tree.unit) if inner else tree


def _is_named(book: Book, key: str) -> bool:
    """Whether a column of GPUs is one of the table's, which formulas, sheets or a planner's rows rest on."""
    return ("gpus", key) in book.used_columns or key in (*_NAMED, *_TYPED)


def card_column(book: Book, key: str | None) -> str:
    """The name of a column of GPUs; that of its cards where no key is said. No column has two names."""
    return column_name("gpus" if key is None or _is_named(book, key) else _CARD_FIGURES, key)


def _gpus(book: Book) -> None:
    ws, styles = book.sheet(GPUS), book.styles
    put, words = book.putter(ws), book.template["reference"]["gpus"]
    last = page.plain_sheet(
        book, GPUS, title=words["title"], sentence=words["sentence"], rows_repeated=(0, 3), freeze=(4, 2)
    )
    ws.set_row(2, book.look["rows"]["header_two_lines"])
    put(2, 1, words["gpu"], styles["th_open"])
    put(3, 1, "", styles["th_ul"])
    put(2, last - 1, words["note"], styles["th_open_i"])
    put(3, last - 1, "", styles["th_ui"])
    table = book.job.tables["gpus"]
    rows = {row["name"]: row for row in book.presets.gpu_rows}
    for column, (key, (text, unit)) in enumerate(words["columns"].items(), 2):
        numeric = bool(unit) or key == "release_year"
        put(2, column, text, styles["th_open_r" if numeric else "th_open_i"])
        put(3, column, unit, styles["th_u" if numeric else "th_ui"])
        for at, name in enumerate(table.keys):
            if key in _USABLE:
                _usable(book, 4 + at, column, key, rows[name]["usable_bytes"])
            else:
                value = table.columns[key][at] if key in MADE_OF_CARDS else rows[name][key]
                _gpu_cell(book, 4 + at, column, key, value, numeric)
    for at, name in enumerate(table.keys):
        put(4 + at, 1, name, styles["r_label"])
        note = rows[name]["note"] or ""
        put(4 + at, last - 1, note, styles.variant("r_help", indent=1))
        ws.set_row(4 + at, page.wrapped_height((note, book.look["sheets"][GPUS]["widths"][-2])))
    end = 4 + len(table.keys) - 1
    book.define(column_name("gpus", None), GPUS, 4, 1, end)
    for column, key in enumerate(words["columns"], 2):
        if _is_named(book, key) or key in vocabulary().gpu_fields.values():
            book.define(card_column(book, key), GPUS, 4, column, end)
        if key in _TYPED:
            _typed(book, 4, end, column, key)
    row = page.section(ws, styles, end + 1, last_column=last, name=words["sources"], put=put)
    for name in table.keys:
        row_of = rows[name]
        said = "; ".join(
            filled(words["source"], figure=figure, source=row_of[key])
            for key, figure in words["sources_of"].items()
            if row_of.get(key)
        )
        for at, line in enumerate(textwrap.wrap(said, _SOURCE_LINE)):  # each runs on over the empty cells beside it
            style = styles.variant("r_help", wrap=False, indent=1)
            page.fill_row(ws, row, 1, last - 1, styles["r_label"])
            put(row, 1, name if at == 0 else "", styles["r_label"])
            put(row, 2, line, style)
            row += 1
    page.print_area(ws, row, last, [end + 1])


def _gpu_cell(book: Book, row: int, column: int, key: str, value: Any, numeric: bool) -> None:
    ws, styles = book.sheet(GPUS), book.styles
    if key == "price_usd_per_hour":  # a planner's own to change; empty is not known
        book.put(ws, row, column, value, styles.variant("g_dec3", format="n2"))
    elif key in _TYPED:
        book.put(ws, row, column, value or None, styles.variant("g_text_i", wrap=False))
    elif ("gpus", key) in book.used_columns:  # a formula reads it: unknown is 0, not a word
        book.put(ws, row, column, value or 0, styles["r_calc0" if value else "r_none"])
    elif value is None or value == "":
        style = styles["r_none"] if numeric else styles.variant("r_help", indent=1)
        unknown = book.template["reference"]["gpus"]["unknown"]
        book.put(ws, row, column, unknown if numeric or key == "ecc" else "", style)
    elif isinstance(value, str):
        book.put(ws, row, column, value, styles.variant("r_help", indent=1, wrap=False))
    elif key == "release_year":
        book.put(ws, row, column, value, styles.variant("r_calc0", format="general"))
    else:
        book.put(ws, row, column, value, styles[_FORMATS.get(key, "r_calc0" if value == int(value) else "r_calc1")])


def _usable(book: Book, row: int, column: int, key: str, usable: int | None) -> None:
    """Usable memory in another unit: live, over the bytes beside it."""
    words = book.template["reference"]["gpus"]
    at = 2 + list(words["columns"]).index("usable_bytes")
    bytes_here, unit = page.cell(row, at, column_fixed=True), _USABLE[key]
    formula = f"=IF({bytes_here}>0,{bytes_here}/{book.cell_name(unit)},{quoted(words['unknown'])})"
    style = book.styles[_FORMATS[key] if usable else "r_none"]
    value = usable / book.values[unit] if usable else words["unknown"]
    book.put(book.sheet(GPUS), row, column, Raw(formula, value), style)


def _typed(book: Book, first: int, last: int, column: int, key: str) -> None:
    """What may be typed as a price, and as where it comes from."""
    label, what, right = book.template["reference"]["gpus"]["typed"][key]
    rule = {**prompt(book, label, what, right), **_TYPED[key], "criteria": "between", "input_message": what}
    book.sheet(GPUS).data_validation(first, column, last, column, rule)

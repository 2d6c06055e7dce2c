"""The whole presets folder: tables for the formulas, rows with their sources for the sheets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..formula.table import Table
from ..formula.units import kind_of
from ..paths import presets_folder
from .config import Architecture, read_models
from .csv_file import Row, read_rows
from .names import checked_name, one_line, shown

# Column -> what it holds (see csv_file.RIGHT). The first is the key.
TRAINING_MODELS = {
    "name": "name",
    "hidden_size": "count",
    "layer_count": "count",
    "attention_heads": "count",
    "mlp_width": "count",
    "vocabulary_size": "count",
    "maximum_positions": "whole",
    "source": "text",
}
GPUS = {
    "name": "name",
    "vendor": "text",
    "architecture": "text",
    "marketed_gb": "number",
    "driver_total_bytes": "count?",
    "usable_bytes": "count?",
    "usable_basis": "text",
    "memory_source": "text",
    "matmul_workspace_bytes": "whole",
    "matmul_workspace_source": "text",
    "bandwidth_gb_per_s": "number?",
    "bandwidth_source": "text?",
    "bf16_dense_tflops": "number?",
    "fp8_dense_tflops": "number?",
    "flops_source": "text?",
    "power_w": "number?",
    "power_source": "text?",
    "interconnect": "text?",
    "interconnect_gb_per_s": "number?",
    "interconnect_source": "text?",
    "release_year": "count?",
    "price_usd_per_hour": "number?",
    "price_source": "text?",
    "confidence": "text?",
    "note": "text?",
}
STORAGE_FORMATS = {
    "name": "name",
    "bytes_per_parameter": "number",
    "bytes_per_output_row": "number",
    "bytes_per_matrix": "number",
    "kept_input_bytes": "number",
    "unquantised_bytes": "number",
    "half_type": "number",
    "quantised": "flag",
    "fp32": "flag",
    "published_bytes": "number?",
    "offered": "flag",
    "why_not": "text?",
    "formula": "text",
    "source": "text",
    "not_quantised": "text?",
    "note": "text?",
}
RECIPES = {
    "name": "name",
    "weight_bytes": "number",
    "gradient_bytes": "number",
    "master_bytes": "number",
    "first_moment_bytes": "number",
    "second_moment_bytes": "number",
    "total_bytes": "number",
    "source": "text",
    "note": "text?",
}
MODEL_SOURCES = {
    "model": "name",
    "shape_source": "text",
    "verified": "text",
    "parameters": "count",
    "published_parameters": "count?",
    "published_source": "text",
    "note": "text?",
}
MEASURED = {  # of both sweeps, beside what each varies
    "id": "name",
    "lever": "text",
    "lever_value": "text",
    "batch_size": "count",
    "sequence_length": "count",
    "compute": "text",
    "optimizer": "text",
    "checkpointing": "truth",
    "measured_oom": "truth",
    "measured_peak_allocated_gb": "number?",
    "measured_peak_reserved_gb": "number?",
    "measured_gradient_bytes": "count?",
    "measured_optimizer_bytes": "count?",
    "measured_after_model_gb": "number?",
    "measured_after_optimizer_gb": "number?",
    "measured_peak_forward_gb": "number?",
    "measured_step_ms_median": "number?",
    "source": "text",
}
LORA_SWEEP = MEASURED | {
    "base_storage": "text",
    "lora_rank": "count",
    "adapter_layers": "text",
    "measured_frozen_bytes": "count?",
    "measured_adapter_bytes": "count?",
}
TRAINING_SWEEP = MEASURED | {
    "hidden_size": "count",
    "layers": "count",
    "attention_heads": "count",
    "ff_multiplier": "number",
    "output_width": "count",
    "parameters": "count",
    "measured_weight_bytes": "count?",
}
TRACE = {  # what tracing the step of a sweep's run gave, without a GPU; the files may be missing
    "id": "name",
    "peak_allocated_bytes": "count?",
    "peak_reserved_bytes": "count?",
    "source": "text",
}

# Table -> column -> unit. Only what formulas may look up; the rest is in the rows.
SHAPE_UNITS = dict.fromkeys(
    (
        "hidden_size",
        "layer_count",
        "attention_heads",
        "kv_heads",
        "head_dimension",
        "mlp_width",
        "vocabulary_size",
        "maximum_positions",
        "sliding_window",
        "tied",
        "qkv_bias",
        "output_bias",
        "mlp_bias",
    ),
    "count",
)
MODEL_UNITS = {"layer_form": "text"} | SHAPE_UNITS
TRAINING_UNITS = {column: "count" for column in TRAINING_MODELS if column in SHAPE_UNITS}
GPU_UNITS = {
    "vendor": "text",
    "architecture": "text",
    "marketed_gb": "GB",
    "driver_total_bytes": "bytes",
    "usable_bytes": "bytes",
    "matmul_workspace_bytes": "bytes",
    "release_year": "count",
    "price_usd_per_hour": "USD",
}
STORAGE_UNITS = {
    "bytes_per_parameter": "bytes",
    "bytes_per_output_row": "bytes",
    "bytes_per_matrix": "bytes",
    "kept_input_bytes": "bytes per value",
    "unquantised_bytes": "bytes",
    "half_type": "count",
    "published_bytes": "bytes",
    "quantised": "count",
    "fp32": "count",
}
OWN_TABLES = ("models", "training_models", "gpus", "storage_formats")


class Presets(NamedTuple):
    """All preset data. In a table what is unknown is 0 or ""; in a row it is None or ""."""

    models: Table  # those that can be sized
    training_models: Table
    gpus: Table
    storage_formats: Table  # those that are offered
    options: dict[str, Table]  # of options.toml, by name
    option_sources: dict[str, str]
    sized_models: list[Architecture]
    unsized_models: list[Architecture]  # each with its why_not
    model_sources: list[Row]
    training_model_rows: list[Row]
    gpu_rows: list[Row]
    storage_rows: list[Row]
    recipe_rows: list[Row]
    lora_sweep: list[Row]
    training_sweep: list[Row]
    lora_trace: list[Row]
    training_trace: list[Row]

    @property
    def tables(self) -> dict[str, Table]:
        """Every table by its name."""
        return {name: getattr(self, name) for name in OWN_TABLES} | self.options


def load_presets(presets: str | Path | None = None) -> Presets:
    """Reads and checks a presets folder; the product's own, read once, when none is named.

    Raises ValueError, one sentence with the file, the place, the value and what would be right.
    """
    return _own_presets() if presets is None else _read(Path(presets))


@lru_cache(maxsize=1)
def _own_presets() -> Presets:
    return _read(presets_folder())


def _read(folder: Path) -> Presets:
    models = read_models(folder / "models")
    sized = [model for model in models if model.layer_form]
    training = read_rows(folder / "training_models.csv", TRAINING_MODELS)
    gpus = read_rows(folder / "gpus.csv", GPUS)
    formats = read_rows(folder / "storage_formats.csv", STORAGE_FORMATS)
    options, sources = read_options(folder / "options.toml")
    lora_sweep = read_rows(folder / "measured" / "h100_lora_sweep.csv", LORA_SWEEP)
    training_sweep = read_rows(folder / "measured" / "h100_training_sweep.csv", TRAINING_SWEEP)
    return Presets(
        models=_table("models", [model._asdict() for model in sized], MODEL_UNITS),
        training_models=_table("training_models", training, TRAINING_UNITS),
        gpus=_table("gpus", gpus, GPU_UNITS),
        storage_formats=_table("storage_formats", [row for row in formats if row["offered"]], STORAGE_UNITS),
        options=options,
        option_sources=sources,
        sized_models=sized,
        unsized_models=[model for model in models if not model.layer_form],
        model_sources=read_rows(folder / "models" / "sources.csv", MODEL_SOURCES),
        training_model_rows=training,
        gpu_rows=gpus,
        storage_rows=formats,
        recipe_rows=read_rows(folder / "recipes.csv", RECIPES),
        lora_sweep=lora_sweep,
        training_sweep=training_sweep,
        lora_trace=_trace(folder / "measured" / "h100_lora_trace.csv", lora_sweep),
        training_trace=_trace(folder / "measured" / "h100_training_trace.csv", training_sweep),
    )


def _trace(path: Path, sweep: Sequence[Row]) -> list[Row]:
    """The step traces of a sweep's runs; none where there is no such file."""
    rows = read_rows(path, TRACE) if path.exists() else []
    known = {run["id"] for run in sweep}
    for row in rows:
        if row["id"] not in known:
            raise ValueError(
                f"{one_line(str(path))}: id is {shown(row['id'])}; it should be the id of a run in the sweep beside it"
            )
    return rows


def _table(name: str, rows: Sequence[Mapping[str, Any]], units: Mapping[str, str]) -> Table:
    """A table of the columns that have a unit; unknown cells become 0, or "" in text."""
    columns = {column: [row[column] or ("" if unit == "text" else 0) for row in rows] for column, unit in units.items()}
    return Table(name, [row["name"] for row in rows], columns, units)


def read_options(path: Path) -> tuple[dict[str, Table], dict[str, str]]:
    """The tables of options.toml and where their rows come from, both by name.

    Each is a [name] with keys = [...], source = "...", one list per column in columns, one unit per column
    in units. Raises ValueError, one sentence with the file and the place.
    """
    import tomllib

    where = one_line(str(path))
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, not TOML
        raise ValueError(f"{where} is not TOML: {one_line(str(error))}") from None
    tables: dict[str, Table] = {}
    sources: dict[str, str] = {}
    for name, entry in content.items():
        place = f"{where}: [{one_line(name)}]"
        if name in OWN_TABLES or not name.isidentifier():
            raise ValueError(f"{place} cannot be a table here; it should have a name of its own, in one word")
        tables[name] = _option_table(name, entry, place)
        sources[name] = _part(entry, "source", str, place, "a text that says where the rows come from")
    return tables, sources


def _option_table(name: str, entry: Any, place: str) -> Table:
    keys = _part(entry, "keys", list, place, "a list of names")
    columns = _part(entry, "columns", dict, place, "a table of lists, one per column")
    units = _part(entry, "units", dict, place, "a table of units, one per column")
    for key in keys:
        if not isinstance(key, str):
            raise ValueError(f"{place} has the key {shown(key)}; it should be a name")
        checked_name(key, place, "a key")
    if odd := set(units) ^ set(columns):
        raise ValueError(f"{place} has {sorted(odd)[0]} in columns or units alone; it should be in both")
    for column, values in columns.items():
        unit = units[column]
        if not isinstance(values, list):
            raise ValueError(f"{place}, column {column} is {shown(values)}; it should be a list of values")
        for value in values:
            if not _fits(value, unit):
                right = "printable text" if unit == "text" else "a finite number"
                raise ValueError(f"{place}, column {column} holds {shown(value)}; it should be {right}")
    try:
        for unit in units.values():
            kind_of(unit)
        return Table(name, keys, columns, units)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _fits(value: object, unit: object) -> bool:
    if unit == "text":
        return isinstance(value, str) and value.isprintable()
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _part(entry: Any, part: str, kind: type, place: str, right: str) -> Any:
    value = entry.get(part) if isinstance(entry, dict) else None
    if not isinstance(value, kind):
        fault = "is missing" if value is None else f"is {shown(value)}"
        raise ValueError(f"{place}: {part} {fault}; it should be {right}")
    return value

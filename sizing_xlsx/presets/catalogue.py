"""The whole presets folder: tables for the formulas, rows with their sources for the sheets."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..formula.table import Table
from ..formula.units import kind_of
from ..paths import presets_folder
from .config import UNITS, Architecture, read_models
from .csv_file import Row, read_rows
from .families import families
from .full_forms import FullForm, full_form_table, read_full_forms
from .layer_forms import LayerForm, read_layer_forms
from .mig import is_slice, read_slices
from .names import checked_name, one_line, shown
from .quantisation import stored_format
from .sweeps import public_sweep
from .toml_file import read_toml

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
    "ecc": "text?",  # on or off, as the card is shipped and as its totals are
    "ecc_memory_share": "number?",  # of the memory, while it is on
    "ecc_source": "text?",
    "matmul_workspace_bytes": "whole",
    "matmul_workspace_source": "text",
    "bandwidth_gb_per_s": "number?",
    "bandwidth_source": "text?",
    "bf16_dense_tflops": "number?",
    "fp8_dense_tflops": "number?",
    "flops_source": "text?",
    "fp32_tflops": "number?",
    "tf32_dense_tflops": "number?",
    "int8_dense_tops": "number?",
    "precision_source": "text?",
    "power_w": "number?",
    "power_source": "text?",
    "interconnect": "text?",
    "interconnect_gb_per_s": "number?",
    "interconnect_source": "text?",
    "release_year": "count?",
    "price_usd_per_hour": "number?",
    "price_as_of": "text?",
    "price_source": "text?",
    "confidence": "text?",
    "note": "text?",
}
STORAGE_FORMATS = {
    "name": "name",
    "bytes_per_parameter": "number",
    "value_bytes": "number",  # of these, without scales: what cards that share a step divide
    "bytes_per_output_row": "number",
    "bytes_per_input_column": "number",
    "bytes_per_matrix": "number",
    "kept_input_bytes": "number",
    "unquantised_bytes": "number",
    "half_type": "number",
    "quantised": "flag",
    "converts_linears": "flag",
    "converts_experts": "flag",
    "fp32": "flag",
    "published_bytes": "number?",
    "traced": "flag",
    "offered": "flag",
    "why_not": "text?",
    "formula": "text",
    "source": "text",
    "not_quantised": "text?",
    "note": "text?",
}
STACKS = {
    "name": "name",
    "forward_logit_bytes": "number",
    "shifted_logit_bytes": "number",
    "backward_logit_bytes": "number",
    "fused_logit_bytes": "number",
    "row_logit_bytes": "number",
    "held_logit_bytes": "number",
    "keeps_output": "flag",
    "fused_norms": "flag",
    "fused_adapters": "flag",
    "fused_loss": "flag",
    "unties": "flag",
    "linear_experts": "flag",
    "packed_qkv": "flag",
    "repeats_kv": "flag",
    "frees_head_input": "flag",
    "fused_optimizer": "flag",
    "position_bytes": "number",
    "dequantised_bytes": "number",
    "traced_nf4": "flag",
    "own_layers": "flag",
    "own_forms": "flag",
    "masks_layers": "flag",
    "reentrant": "flag",
    "versions": "text",
    "source": "text",
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
    "step_bytes": "number",  # of temporaries in a step over all tensors at once
    "narrow_state": "flag",  # 8-bit moments of bitsandbytes, which keep those of embeddings in 32 bit
    "paged": "flag",
    "traced": "flag",
    "runs_ddp": "flag",  # on one card, and with the state on each of several
    "runs_fsdp": "flag",
    "runs_zero_1_2": "flag",
    "runs_zero_3": "flag",
    "run_storage": "text?",  # how a run of verify stores its weights, and its optimizer; empty where it has none such
    "run_optimizer": "text?",
    "source": "text",
    "note": "text?",
}
ENGINES = {  # serving engines: what each takes of a card, and how it measures a step
    "name": "name",
    "memory_fraction": "number",
    "fraction_of_free": "flag",  # of what weights and a step leave, not of the card
    "block_tokens": "count",
    "large_card_gib": "number",  # from here on the large defaults hold, but on cards of the excepted architecture
    "excepted_architecture": "text?",
    "large_batched_tokens": "count",
    "small_batched_tokens": "count",
    "large_sequences": "count",
    "small_sequences": "count",
    "whole_prompts": "flag",  # a step is at least one whole context
    "sampler_bytes": "number",  # of a score while the next tokens are chosen
    "libraries_one_gib": "number",
    "libraries_several_gib": "number",
    "graphs_gib": "number",
    "counts_step": "flag",  # a step is taken off the budget before the pool
    "counts_graphs": "flag",
    "keeps_windows": "flag",
    "window_holds_step": "flag",  # room for the tokens of a step beside the window
    "window_spare": "whole",  # tokens that a window keeps fewer
    "kv_fp8": "flag",
    "kv_int8": "flag",
    "kv_formats": "text",
    "pads_experts": "flag",
    "rope_tables": "flag",  # sines and cosines of every position are kept
    "versions": "text",
    "evidence": "text",
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
PUBLIC_INPUTS = {  # of a public run, in the words of the LoRA job; what is empty takes the job's default
    "base_model": "text?",
    "base_storage_format": "text?",
    "kbit_preparation": "text?",
    "lora_rank": "count?",
    "adapter_targets": "text?",
    "target_output": "text?",
    "adapter_storage": "text?",
    "lora_dropout": "text?",
    "batch_size": "count?",
    "sequence_length": "count?",
    "compute_precision": "text?",
    "uses_autocast": "text?",
    "attention_implementation": "text?",
    "optimizer_choice": "text?",
    "activation_checkpointing": "text?",
    "training_stack": "text?",
    "gpu_choice": "text?",
    "gpu_count": "count?",
    "sharding_stage": "text?",
}
FULL_INPUTS = {  # of a public run of full fine-tuning, in the words of that job; empty as above
    "base_model": "text?",
    "training_recipe": "text?",
    "uses_autocast": "text?",
    "sharding_stage": "text?",
    "gpu_count": "count?",
    "batch_size": "count?",
    "sequence_length": "count?",
    "attention_implementation": "text?",
    "optimizer_step": "text?",
    "activation_checkpointing": "text?",
    "training_stack": "text?",
    "loss_forward_bytes_override": "number?",
    "loss_backward_bytes_override": "number?",
    "gpu_choice": "text?",
}
FULL_RUNS = {  # full fine-tuning that others published, a card of one or more; the file may be missing
    "id": "name",
    "group": "text",
    "model": "text",  # as published
    "card": "text",
    "measured_gb": "amount?",  # peak of allocated memory
    "shown_gb": "amount?",  # what nvidia-smi showed of the same run
    "ran_out": "flag",
    "versions": "text",
    "source": "text",
    "note": "text",
    "explained": "flag",
    **FULL_INPUTS,
}
PUBLIC_RUNS = {  # fine-tuning runs that others published, with their peak of allocated memory; the file may be missing
    "id": "name",
    "group": "text",
    "model": "text",  # as published
    "card": "text",
    "measured_gb": "amount?",
    "shown_gb": "amount?",  # what nvidia-smi showed of the same run
    "ran_out": "flag",
    "versions": "text",
    "source": "text",
    "note": "text",  # what the run states, and what was assumed for it
    "explained": "flag",
    **PUBLIC_INPUTS,
}
SERVING_INPUTS = {  # of a public run of serving, in the words of that job; empty as above
    "base_model": "text?",
    "base_storage_format": "text?",
    "serving_engine": "text?",
    "kv_format": "text?",
    "memory_fraction": "number?",
    "maximum_length": "count?",
    "maximum_sequences": "count?",
    "attention_in_16_bit": "text?",
    "kv_heads_override": "count?",
    "tensor_parallel": "count?",
    "gpu_choice": "text?",
    "gpu_capacity_override_gb": "number?",
}
SERVING_RUNS = {  # what serving engines logged of themselves, on one card of each; the file may be missing
    "id": "name",
    "model": "text",  # as published
    "card": "text",
    "weights_gib": "amount?",
    "kv_pool_gib": "amount?",
    "kv_pool_tokens": "count?",
    "kv_bytes_per_token": "count?",  # of one card
    "step_activation_gib": "amount?",
    "refused": "flag",  # the engine did not start
    "versions": "text",
    "source": "text",
    "note": "text",  # what the run states, and what was assumed for it
    "explained": "flag",
    **SERVING_INPUTS,
}
SPEEDS = {  # of training that others measured and published; the file may be missing
    "id": "name",
    "card": "text",
    "cards": "count",
    "method": "text",  # a row of reached_shares
    "model": "text",  # as published
    "working_parameters": "count",
    "layers": "count",
    "query_width": "count",
    "batch_size": "count",
    "sequence_length": "count",
    "stack": "text",
    "tokens_per_second_per_card": "number",
    "explained": "flag",
    "source": "text",
}

# Table -> column -> unit. Only what formulas may look up; the rest is in the rows.
MODEL_UNITS = UNITS
PUBLISHED_FORMAT, UNQUANTISED = "published_format", "bf16"  # beside them: the row of storage_formats of the weights
TRAINING_UNITS = {column: "count" for column in TRAINING_MODELS if column in MODEL_UNITS}
GPU_UNITS = {
    "vendor": "text",
    "architecture": "text",
    "marketed_gb": "GB",
    "driver_total_bytes": "bytes",
    "usable_bytes": "bytes",
    "matmul_workspace_bytes": "bytes",
    "release_year": "count",
    "bf16_dense_tflops": "count",
    "fp8_dense_tflops": "count",
    "fp32_tflops": "count",
    "bandwidth_gb_per_s": "GB per second",
    "power_w": "W",
    "interconnect_gb_per_s": "GB per second",
    "price_usd_per_hour": "USD per hour",
    "cuda": "count",
    "emulates_bf16": "count",
    "mig_slice": "count",
}
MADE_OF_CARDS = ("cuda", "emulates_bf16", "mig_slice")  # columns that no file has
STORAGE_UNITS = {
    "bytes_per_parameter": "bytes",
    "value_bytes": "bytes",
    "bytes_per_output_row": "bytes",
    "bytes_per_input_column": "bytes",
    "bytes_per_matrix": "bytes",
    "kept_input_bytes": "bytes per value",
    "unquantised_bytes": "bytes",
    "half_type": "count",
    "published_bytes": "bytes",
    "traced": "switch",
    "quantised": "count",
    "converts_linears": "count",
    "converts_experts": "count",
    "fp32": "count",
}
STACK_UNITS = {
    "forward_logit_bytes": "bytes per value",
    "shifted_logit_bytes": "bytes per value",
    "backward_logit_bytes": "bytes per value",
    "fused_logit_bytes": "bytes per value",
    "row_logit_bytes": "bytes per value",
    "held_logit_bytes": "bytes per value",
    "keeps_output": "switch",
    "fused_norms": "switch",
    "fused_adapters": "switch",
    "fused_loss": "switch",
    "unties": "switch",
    "linear_experts": "switch",
    "packed_qkv": "switch",
    "repeats_kv": "switch",
    "frees_head_input": "switch",
    "fused_optimizer": "switch",
    "position_bytes": "bytes per value",
    "dequantised_bytes": "bytes per parameter",
    "traced_nf4": "switch",
    "own_layers": "switch",
    "own_forms": "switch",
    "masks_layers": "switch",
    "reentrant": "switch",
}
ENGINE_UNITS = {
    **dict.fromkeys(("memory_fraction", "window_spare", "large_sequences", "small_sequences"), "count"),
    **dict.fromkeys(("block_tokens", "large_batched_tokens", "small_batched_tokens"), "tokens"),
    **dict.fromkeys(("large_card_gib", "libraries_one_gib", "libraries_several_gib", "graphs_gib"), "GiB"),
    **dict.fromkeys(("excepted_architecture", "kv_formats"), "text"),
    **{column: "switch" for column, kind in ENGINES.items() if kind == "flag"},
    "sampler_bytes": "bytes per value",
}
RECIPE_UNITS = {
    **{column: "bytes per parameter" for column in RECIPES if column.endswith("_bytes")},
    **dict.fromkeys((column for column, kind in RECIPES.items() if kind == "flag"), "switch"),
}
FORM_PARTS = {  # of layer_forms.toml, those that formulas look up: part -> widths
    "norms": ("d", "one"),
    "attention": ("q", "o", "kv", "nh", "nkv", "ql", "kvl", "nh_rope", "rope", "nh_S", "one"),
    "eager": ("q", "o", "kv", "nh", "nh_rope", "nh_S"),
    "uncached": ("q", "kv"),
    "masked": ("q", "kv", "S"),
    "checkpointed_masks": ("S",),
    "mlp": ("ff", "d"),
    "moe": ("k_e", "k_d", "k", "E", "E_e", "E_d", "one"),
    "shared": ("s", "d"),
    "plain": ("q", "kv", "nh"),
    "lowest": ("d", "one"),
    "final_norm": ("d", "one"),
    "boundary": ("d",),
    "lowest_boundary": ("d",),
    "working": ("d", "ff", "k_e", "k_d", "E_e", "s"),
    "norm_working": ("d",),
    "last_layer_working": ("d", "ff"),
    "forward_working": ("d", "ff"),
    "loss_forward": ("d",),
    "rope_layer": ("S_hd",),
    "rope_once": ("S_hd", "S_rope"),
}
FORM_SLOTS = ("query", "key", "value", "output", "gate", "up", "down")
FORM_UNITS = (
    {
        f"{part}_{width}": "bytes per token" if width in ("one", "k", "E") else "bytes per value"
        for part, widths in FORM_PARTS.items()
        for width in widths
    }
    | {f"slot_{slot}": "switch" for slot in (*FORM_SLOTS, "latent", "shared")}
    | {f"default_{slot}": "switch" for slot in FORM_SLOTS}
    | {"parallel": "switch", "extra_score_bytes": "bytes per value", "framework_row": "count"}
)
OWN_TABLES = (
    "models", "training_models", "gpus", "storage_formats", "stacks", "layer_forms", "full_forms", "recipes", "engines",
)  # fmt: skip
CUDA_VENDOR = "NVIDIA"


class OwnRow(NamedTuple):
    """A row that a planner added."""

    table: str  # models, gpus or layer_forms
    name: str
    file: str  # its name, without the folders above it
    why_not: str  # of a model that is not offered
    digest: str  # of the file
    content: str = ""  # the text of the file, by which a later build has it again


class Presets(NamedTuple):
    """All preset data. In a table what is unknown is 0 or ""; in a row it is None or ""."""

    models: Table  # those that can be sized
    training_models: Table
    gpus: Table
    storage_formats: Table  # those that are offered
    stacks: Table
    layer_forms: Table  # what a layer of each family keeps for backward
    full_forms: Table  # the same when everything is trained, for the same forms
    recipes: Table
    engines: Table  # of serving
    options: dict[str, Table]  # of options.toml, by name
    option_sources: dict[str, str]
    sized_models: list[Architecture]
    unsized_models: list[Architecture]  # each with its why_not
    counted_models: Table  # those of the unsized whose parameters are counted all the same
    model_sources: list[Row]
    training_model_rows: list[Row]
    gpu_rows: list[Row]
    storage_rows: list[Row]
    stack_rows: list[Row]
    layer_form_rows: list[Row]
    recipe_rows: list[Row]
    engine_rows: list[Row]
    lora_sweep: list[Row]
    training_sweep: list[Row]
    lora_trace: list[Row]
    training_trace: list[Row]
    public_runs: list[Row]
    full_runs: list[Row]
    serving_runs: list[Row]
    speeds: list[Row]
    forms: Mapping[str, LayerForm]  # the rows of layer_forms, as they were read
    full_parts: Mapping[str, FullForm]  # the rows of full_forms, as they were read
    framework_forms: Mapping[str, LayerForm]  # those of frameworks with model code of their own, which follow them
    own: tuple[OwnRow, ...] = ()  # what with_own() added; see own.py

    @property
    def full_sweep(self) -> list[Row]:
        """The published runs of full fine-tuning as the rows of a sweep."""
        return public_sweep(self.full_runs, FULL_INPUTS)

    @property
    def full_trace(self) -> list[Row]:
        """Step traces of those runs: none."""
        return []

    @property
    def tables(self) -> dict[str, Table]:
        """Every table by its name."""
        return {name: getattr(self, name) for name in OWN_TABLES} | self.options


def load_presets(
    presets: str | Path | None = None,
    *,
    models: Iterable[str | Path] = (),
    gpus: Iterable[str | Path] = (),
    layer_forms: Iterable[str | Path] = (),
) -> Presets:
    """Reads and checks a presets folder; the product's own, read once, when none is named.

    models, gpus, layer_forms: files of a planner's own to add; see own.py. Raises ValueError, one sentence with the
    file, the place, the value and what would be right.
    """
    base = _own_presets() if presets is None else _read(Path(presets))
    if not models and not gpus and not layer_forms:
        return base
    from .own import with_own

    return with_own(base, models, gpus, layer_forms)


@lru_cache(maxsize=1)
def _own_presets() -> Presets:
    return _read(presets_folder())


def _read(folder: Path) -> Presets:
    own_families = folder / "families.toml"
    models = read_models(folder / "models", families(own_families) if own_families.exists() else None)
    training = read_rows(folder / "training_models.csv", TRAINING_MODELS)
    cards = read_rows(folder / "gpus.csv", GPUS)
    gpus = cards + read_slices(folder / "mig_slices.csv", cards)  # last: most jobs run on a whole card
    formats = read_rows(folder / "storage_formats.csv", STORAGE_FORMATS)
    offered = _table("storage_formats", [row for row in formats if row["offered"]], STORAGE_UNITS)
    stacks = read_rows(folder / "stacks.csv", STACKS)
    options, sources = read_options(folder / "options.toml")
    forms = read_layer_forms(folder / "layer_forms.toml")
    framework_forms = read_layer_forms(folder / "framework_forms.toml")
    full_parts = read_full_forms(folder / "full_forms.toml")
    recipes = read_rows(folder / "recipes.csv", RECIPES)
    engines = read_rows(folder / "engines.csv", ENGINES)
    sized, unsized = by_layer_form(models, forms)
    lora_sweep = read_rows(folder / "measured" / "h100_lora_sweep.csv", LORA_SWEEP)
    training_sweep = read_rows(folder / "measured" / "h100_training_sweep.csv", TRAINING_SWEEP)
    return Presets(
        models=model_table(sized, offered),
        training_models=_table("training_models", training, TRAINING_UNITS),
        gpus=gpu_table(gpus, options),
        storage_formats=offered,
        stacks=_table("stacks", stacks, STACK_UNITS),
        layer_forms=form_table(forms, framework_forms),
        full_forms=full_form_table(full_parts, forms),
        recipes=_table("recipes", recipes, RECIPE_UNITS),
        engines=_table("engines", engines, ENGINE_UNITS),
        options=options,
        option_sources=sources,
        sized_models=sized,
        unsized_models=unsized,
        counted_models=counted_table(unsized, offered),
        model_sources=read_rows(folder / "models" / "sources.csv", MODEL_SOURCES),
        training_model_rows=training,
        gpu_rows=gpus,
        storage_rows=formats,
        stack_rows=stacks,
        layer_form_rows=form_rows({**forms, **framework_forms}),
        recipe_rows=recipes,
        engine_rows=engines,
        lora_sweep=lora_sweep,
        training_sweep=training_sweep,
        lora_trace=_trace(folder / "measured" / "h100_lora_trace.csv", lora_sweep),
        training_trace=_trace(folder / "measured" / "h100_training_trace.csv", training_sweep),
        public_runs=_if_there(folder / "measured" / "public_runs.csv", PUBLIC_RUNS),
        full_runs=_if_there(folder / "measured" / "full_public_runs.csv", FULL_RUNS),
        serving_runs=_if_there(folder / "measured" / "serving_runs.csv", SERVING_RUNS),
        speeds=_if_there(folder / "measured" / "speeds.csv", SPEEDS),
        forms=forms,
        full_parts=full_parts,
        framework_forms=framework_forms,
    )


def by_layer_form(
    models: Sequence[Architecture], forms: Collection[str]
) -> tuple[list[Architecture], list[Architecture]]:
    """Models that jobs size, and the others with the reason. forms: the layer forms that have coefficients."""
    reasons = [reason_not_sized(model, forms) for model in models]
    sized = [model for model, why in zip(models, reasons, strict=True) if not why]
    return sized, [model._replace(why_not=why) for model, why in zip(models, reasons, strict=True) if why]


def reason_not_sized(model: Architecture, forms: Collection[str]) -> str:
    """Why no job sizes a model; "" when its layer form has coefficients."""
    if not model.why_not and model.layer_form not in forms:
        return f"the layer form of family {model.family} is not sized yet"
    return model.why_not


def with_model(presets: Presets, model: Architecture) -> Presets:
    """The presets with one more model to size, in place of one of the same name."""
    others = [other for other in presets.sized_models if other.name.casefold() != model.name.casefold()]
    sized = [*others, model]
    return presets._replace(models=model_table(sized, presets.storage_formats), sized_models=sized)


def form_table(forms: Mapping[str, LayerForm], framework_forms: Mapping[str, LayerForm]) -> Table:
    """The table of layer forms, and of those that stand in their place in a framework's own code."""
    every = {**forms, **framework_forms}
    rows = {name: _form_row(form, every) for name, form in every.items()}
    for at, form in enumerate(framework_forms.values(), len(forms) + 1):
        for replaced in form.families:
            if replaced in forms:
                rows[replaced]["framework_row"] = at
    return _table("layer_forms", list(rows.values()), FORM_UNITS)


def form_rows(forms: Mapping[str, LayerForm]) -> list[Row]:
    """What the sheets show of layer forms: the name of each, and where it comes from."""
    return [{"name": form.name, "source": form.source} for form in forms.values()]


def not_added(parts: Mapping[str, Mapping[str, int]]) -> list[tuple[str, str]]:
    """Parts and widths of a layer form whose bytes no formula adds up, though others of the same part are.

    A cache apart from what layers keep is known of latent attention alone.
    """
    cache = [("cache", width) for width in parts.get("cache", {}) if width not in ("kvl", "rope")]
    return cache + [
        (part, width)
        for part, widths in FORM_PARTS.items()
        for width in parts.get(part, {})
        if width not in widths
        and (part, width) not in _BESIDE
        and not (part == "last_layer_working" and "moe" in parts)
    ]


_BESIDE = (  # known, or a few bytes a token, or of the one layer that is made anew
    *(("loss_forward", "V"), ("plain", "nkv"), ("working", "k"), ("working", "E")),
    *(("uncached", "kvl"), ("uncached", "rope")),
)


def _form_row(form: LayerForm, forms: Mapping[str, LayerForm]) -> dict[str, Any]:
    """A layer form as a row: its coefficients, which slots it has, and PEFT's own choice of them."""
    row: dict[str, Any] = {"name": form.name}
    for part, widths in FORM_PARTS.items():
        row |= {f"{part}_{width}": form.parts.get(part, {}).get(width, 0) for width in widths}
    for slot in FORM_SLOTS:
        row |= {f"slot_{slot}": int(slot in form.slots), f"default_{slot}": int(slot in form.default_targets)}
    up = form.slots.get("up", form.slots.get("gate"))
    row["parallel"] = int(up is not None and not up.lowest)  # the MLP reads the input of the layer
    row["extra_score_bytes"] = _scores(form) - min(map(_scores, forms.values()))  # a soft cap keeps a further copy
    row["framework_row"] = 0
    return row | {"slot_latent": int("query_latent" in form.slots), "slot_shared": int("shared_gate" in form.slots)}


def _scores(form: LayerForm) -> int:
    """Bytes per output score in the loss's forward."""
    return form.parts["loss_forward"]["V"]


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


def _if_there(path: Path, columns: Mapping[str, str]) -> list[Row]:
    """The rows of a file of measurements; none where there is no such file."""
    return read_rows(path, columns) if path.exists() else []


def model_table(models: Sequence[Architecture], formats: Table) -> Table:
    """The table of the models that can be sized. formats: the storage formats that are offered."""
    return _models("models", models, formats)


def counted_table(models: Sequence[Architecture], formats: Table) -> Table:
    """The table of the models that are counted and cannot be sized."""
    return _models("counted_models", [model for model in models if model.window_kind is not None], formats)


def _models(name: str, models: Sequence[Architecture], formats: Table) -> Table:
    rows = [model._asdict() | {PUBLISHED_FORMAT: published_format(model, formats) or UNQUANTISED} for model in models]
    return _table(name, rows, MODEL_UNITS | {PUBLISHED_FORMAT: "text"})


def published_format(model: Architecture, formats: Table) -> str:
    """The storage format of a model's published weights; "" where they are not quantised or no format is theirs."""
    name = stored_format(model.quantisation) if model.quantisation else ""
    return name if name.casefold() in formats.index else ""


def gpu_table(rows: Sequence[Row], options: Mapping[str, Table]) -> Table:
    """The table of cards, with what follows from their rows.

    cuda is 1 for a card of the vendor whose stack was measured; emulates_bf16 where its architecture is known to have
    no bf16 of its own; mig_slice for a slice of a card. options: the tables of options.toml.
    """
    known = options["architectures"]
    emulating = {name for name, flag in zip(known.keys, known.columns["emulates_bf16"], strict=True) if flag}
    old = {name.casefold() for name in emulating}
    made = [
        {
            "cuda": int(row["vendor"] == CUDA_VENDOR),
            "emulates_bf16": int(row["vendor"] == CUDA_VENDOR and row["architecture"].casefold() in old),
            "mig_slice": int(is_slice(row)),
        }
        for row in rows
    ]
    return _table("gpus", [row | facts for row, facts in zip(rows, made, strict=True)], GPU_UNITS)


def _table(name: str, rows: Sequence[Mapping[str, Any]], units: Mapping[str, str]) -> Table:
    """A table of the columns that have a unit; unknown cells become 0, or "" in text."""
    columns = {column: [row[column] or ("" if unit == "text" else 0) for row in rows] for column, unit in units.items()}
    return Table(name, [row["name"] for row in rows], columns, units)


def read_options(path: Path) -> tuple[dict[str, Table], dict[str, str]]:
    """The tables of options.toml and where their rows come from, both by name.

    Each is a [name] with keys = [...], source = "...", one list per column in columns, one unit per column
    in units. Raises ValueError, one sentence with the file and the place.
    """
    where = one_line(str(path))
    content = read_toml(path)
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

"""`sizing-xlsx model CONFIG`: the architecture of a config.json, each figure with where it came from, its exact
parameters, and what each job that can size it needs."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .formula.declare import label_of
from .memory.decoder.counts import FORMULAS, counts
from .output import printed
from .paths import presets_folder
from .presets.catalogue import (
    UNQUANTISED,
    OwnRow,
    Presets,
    load_presets,
    published_format,
    reason_not_sized,
    with_model,
)
from .presets.config import COLUMNS, FIXED, Architecture, read_config
from .presets.config_file import MAXIMUM_BYTES

if TYPE_CHECKING:
    from .formula.job import Job

BF16_BYTES = 2
# Components in the order of a report: name in the JSON object, term, words.
COMPONENTS = (
    ("embedding", "embedding_parameters", "token embeddings"),
    ("head", "head_parameters", "output head, where not tied"),
    ("positions", "position_parameters", "learned position embeddings"),
    ("embedding_projections", "embedding_projection_parameters", "matrices beside the embeddings"),
    ("attention", "all_attention_parameters", "attention matrices"),
    ("mlp", "all_mlp_parameters", "MLP matrices of dense layers"),
    ("experts", "all_expert_parameters", "routed experts"),
    ("shared_experts", "all_shared_parameters", "shared experts"),
    ("router", "router_parameters", "routers"),
    ("biases", "bias_parameters", "biases and attention sinks"),
    ("norms", "norm_parameters", "norms"),
    ("other_in_layers", "layers_other_parameters", "all else in the layers"),
    ("other", "outer_other_parameters", "all else"),
    ("vision", "vision_parameters", "image tower and projector"),
)
_RESULTS = (
    "traced_peak_allocated_gb", "traced_total_reserved_gb", "published_peak_allocated_gb",
    "fit_verdict",
)  # fmt: skip


class JobFigures(NamedTuple):
    """What one job needs for a model at the workbook's own batch and sequence on its own card, or why not."""

    label: str
    inputs: dict[str, Any]
    results: dict[str, Any]
    why_not: str
    warnings: tuple[str, ...]


# What a report says of a job besides, by its name: results, and inputs.
_OF_JOB: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "lora": (("frozen_base_weights",), ("base_storage_format",)),
    "full": (("model_state_per_gpu_gb",), ("training_recipe", "sharding_stage", "gpu_count")),
}
# Jobs about a decoder: name of the job, label, and what differs from its worked inputs.
_JOBS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("lora", "LoRA, bf16 base", {}),
    ("lora", "QLoRA, 4-bit base", {"base_storage_format": "nf4 / fp4, block 64, no double quant"}),
    ("full", "Full fine-tuning", {}),
)


def read(source: str, layer_forms: Iterable[str | Path] = ()) -> tuple[Presets, str]:
    """A catalogue with the model of a config as an own one, and its name. source: a word of the command line.

    layer_forms: files of own layer forms. Raises ValueError, one sentence, as read_config does.
    """
    presets, where = load_presets(layer_forms=layer_forms), _source(source)
    model = read_config(where)
    why_not = reason_not_sized(model, presets.forms)
    if not why_not:
        return with_model(presets, model), model.name
    row = OwnRow("models", model.name, "", why_not, "", _content(where))
    unsized = [model._replace(why_not=why_not), *presets.unsized_models]
    others = [other for other in presets.sized_models if other.name.casefold() != model.name.casefold()]
    return presets._replace(unsized_models=unsized, sized_models=others, own=(*presets.own, row)), model.name


def run(presets: Presets, name: str, *, as_json: bool) -> int:
    """Print the report of a model of a catalogue; 0."""
    model = next(one for one in (*presets.unsized_models, *reversed(presets.sized_models)) if one.name == name)
    found = as_object(model, presets)
    printed(json.dumps(found, indent=2, ensure_ascii=False) if as_json else "\n".join(_lines(model, found)))
    return 0


def _content(where: str | Path) -> str:
    """The text of a config, which has been read before."""
    if isinstance(where, str) and where.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        return where
    path = Path(where)
    return (path / "config.json" if path.is_dir() else path).read_text(encoding="utf-8-sig")


def _source(text: str) -> str | Path:
    """What a word of the command line means: standard input, a path, JSON text or a model of the catalogue."""
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        return text
    if text == "-":
        read = sys.stdin.read(MAXIMUM_BYTES + 1)
        if read.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
            raise ValueError("standard input holds no JSON object; it should be the text of a config.json")
        return read
    folder = presets_folder() / "models"
    wanted = text.replace("/", "--", 1).casefold()
    if not os.path.lexists(text):
        for entry in folder.iterdir():
            if entry.name.casefold() == wanted:
                return entry
    return text


# ---------------------------------------------------------------------- the object
def as_object(model: Architecture, presets: Presets) -> dict[str, Any]:
    """All that is known of a model, as JSON would have it. Counts are whole numbers, memory is in GB."""
    return {**figures_of(model, presets), "jobs": [job._asdict() for job in job_figures(model, presets)]}


def figures_of(model: Architecture, presets: Presets) -> dict[str, Any]:
    """The same without the jobs, which take several times as long."""
    known = counts(model, [*FORMULAS, *_COUNTED_ONLY] if model.counted is not None else list(FORMULAS))
    parts = {f"parameters_{name}": known[term] for name, term, _ in COMPONENTS if term in known}
    if "outer_norm_parameters" in known:
        parts["parameters_norms"] += known["outer_norm_parameters"]
    values = known.get("kv_values_per_token_per_layer")
    if model.counted is None:
        of_all = known["kv_values_per_token_per_layer"] * (model.layer_count or 0)
    else:
        of_all = known.get("kv_values_per_token")
    stored = published_format(model, presets.storage_formats)
    return {
        "name": model.name,
        "family": model.family,
        "layer_form": model.layer_form,
        "layer_form_source": form.source if (form := presets.forms.get(model.layer_form)) else None,
        "dtype": model.dtype,
        "quantisation": model.quantisation._asdict() if model.quantisation else None,
        "published_format": stored or None,
        "static_bytes": _static_bytes(model, presets, stored),
        "parameters_total": known["base_parameter_count"],
        "parameters_active": known.get("active_parameters"),
        **parts,
        "query_width": known.get("query_width"),
        "kv_values_per_token_per_layer": values,
        "kv_bytes_per_token_bf16": None if of_all is None else of_all * BF16_BYTES,
        "full_layers": known.get("full_layer_count"),
        "windowed_layers": known.get("windowed_layer_count"),
        "dense_layers": known.get("dense_layer_count"),
        "expert_layers": known.get("moe_layer_count"),
        "convertible_parameters": known.get("convertible_parameters"),
        "convertible_modules": known.get("convertible_modules"),
        "vision_convertible_parameters": known.get("vision_convertible_parameters"),
        "architecture": {
            column: {
                "value": getattr(model, column),
                "origin": model.origins[column].kind,
                "from": model.origins[column].place,
            }
            for column in COLUMNS
            if column in model.origins
        },
        "assumed": list(model.assumed),
        "notes": list(model.notes),
    }


_COUNTED_ONLY = (
    "layers_other_parameters", "outer_other_parameters", "attention_layer_count", "kv_values_per_token",
)  # fmt: skip


def _static_bytes(model: Architecture, presets: Presets, stored: str) -> dict[str, int]:
    """Storage format -> bytes of the weights on the card: of 16 bit, of the jobs shown, and of the file's own."""
    from .memory.lora.static import static_bytes

    shown = dict.fromkeys((UNQUANTISED, *(job.get("base_storage_format", UNQUANTISED) for _, _, job in _JOBS)))
    formats = [*([stored] if stored else []), *(name for name in shown if name != stored)]
    head = bool(model.quantisation and model.quantisation.head)
    found = {name: static_bytes(model, presets.storage_formats, name, head=head and name == stored) for name in formats}
    return {name: number for name, number in found.items() if number is not None}


def _jobs(model: Architecture, presets: Presets) -> list[tuple[str, str, dict[str, Any]]]:
    """The jobs of a report: the usual ones, and one at the storage format of the published weights."""
    stored = published_format(model, presets.storage_formats)
    if not stored:
        return list(_JOBS)
    head = {"quantised_head": "On"} if model.quantisation and model.quantisation.head else {}
    own = ("lora", f"LoRA, base as published: {stored}", {"base_storage_format": stored, **head})
    return [own, *(job for job in _JOBS if job[2] != own[2])]


def job_figures(model: Architecture, presets: Presets) -> Iterator[JobFigures]:
    """Each job about a decoder, for one model."""
    from .jobs import plain_job

    why_not = reason_not_sized(model, presets.layer_forms.keys)
    for name, label, changes in _jobs(model, presets):
        if why_not:
            yield JobFigures(label, {}, {}, why_not, ())
            continue
        job = plain_job(name, with_model(presets, model), opened_on={"base_model": model.name})
        changes = {**changes, **_within_positions(job, model.name)}
        values = job.size(job.plain_terms, **changes)
        inputs = {**job.defaults(), **changes}
        further, chosen = _OF_JOB[name]
        shown = {key: inputs[key] for key in ("batch_size", "sequence_length", "gpu_choice", *chosen)}
        results = {key: values[key] for key in (*further, *_RESULTS)}
        yield JobFigures(label, shown, results, "", tuple(job.warnings(values, **changes)))


def _within_positions(job: Job, name: str) -> dict[str, int]:
    """The longest sequence of a model with learned positions that has fewer of them than the worked job's."""
    models = job.tables["models"]
    row = models.row_of(name)
    longest = int(models.maximum_positions[row])
    short = models.position_rows[row] and longest < job.defaults()["sequence_length"]
    return {"sequence_length": longest} if short else {}


# ---------------------------------------------------------------------- the words
def _lines(model: Architecture, found: dict[str, Any]) -> Iterator[str]:
    yield f"{model.name}: family {model.family}, {found['parameters_total']:,} parameters"
    if model.quantisation:
        q = model.quantisation
        kept = f"; not converted: {', '.join(q.kept[:8])}{', ...' if len(q.kept) > 8 else ''}" if q.kept else ""
        yield f"Published weights: {q.words}{kept}. Counts are of the model without quantisation."
        if not found["published_format"]:
            yield "No storage format here is that of these weights: their bytes are not known; jobs use others."
    elif model.dtype:
        yield f"Published weights: {model.dtype}."
    yield ""
    yield "Architecture"
    without = []
    for column, entry in found["architecture"].items():
        if entry["origin"] == FIXED and not entry["value"]:
            without.append(label_of(column, capital=False))
            continue
        value = entry["value"] if isinstance(entry["value"], str) else f"{entry['value']:,}"
        yield f"  {label_of(column):28}{value:>16}  {entry['origin']}: {entry['from']}"
    if without:
        yield from textwrap.wrap(
            f"0, fixed by the class: {', '.join(without)}", 110, initial_indent="  ", subsequent_indent="    "
        )
    yield ""
    yield "Parameters"
    for name, _, words in COMPONENTS:
        if number := found.get(f"parameters_{name}"):
            yield f"  {words:32}{number:>20,}"
    yield f"  {'total':32}{found['parameters_total']:>20,}"
    if found["parameters_active"] is not None:
        yield f"  {'active for a token of text':32}{found['parameters_active']:>20,}"
    yield ""
    if found["static_bytes"]:
        yield "Bytes of the weights on the card"
        for name, number in found["static_bytes"].items():
            mark = "  (as published)" if name == found["published_format"] else ""
            yield f"  {name:52}{number:>20,}{mark}"
        yield ""
    if found["kv_bytes_per_token_bf16"]:
        yield f"KV cache in bf16: {found['kv_bytes_per_token_bf16']:,} bytes per token{_window_words(model, found)}."
    elif found["kv_bytes_per_token_bf16"] == 0:
        yield "KV cache: none, for no layer keeps keys and values of each token; its state has a fixed size."
    else:
        yield "KV cache: not told, for the projections of its attention are not known here."
    if found["layer_form_source"]:
        yield f"Layer form {model.layer_form}: {found['layer_form_source']}."
    if model.assumed:
        yield f"Not stated, taken from the class: {', '.join(model.assumed)}."
    yield from (f"Note: {note}." for note in model.notes)
    yield ""
    for job in found["jobs"]:
        yield _job_line(job)
        yield from (f"  Warning: {warning}." for warning in job["warnings"])


def _window_words(model: Architecture, found: dict[str, Any]) -> str:
    windowed = found["windowed_layers"]
    if not windowed:
        return ""
    return f"; {windowed} of {model.layer_count} layers keep at most {model.sliding_window:,} ({model.window_kind})"


def _job_line(job: dict[str, Any]) -> str:
    if job["why_not"]:
        return f"{job['label']}: not sized, for {job['why_not']}."
    inputs, results = job["inputs"], job["results"]

    def gb(key: str) -> str:
        value = results[key]
        return value if isinstance(value, str) else f"{value:,.2f} GB"

    cards = f"{inputs['gpu_count']} × " if "gpu_count" in inputs else ""
    stage = f"{inputs['sharding_stage']}, " if "sharding_stage" in inputs else ""
    return (
        f"{job['label']}: peak {gb('traced_peak_allocated_gb')} traced, {gb('published_peak_allocated_gb')} published; "
        f"reserved at most {gb('traced_total_reserved_gb')}; {results['fit_verdict']} on {cards}{inputs['gpu_choice']} "
        f"({stage}batch {inputs['batch_size']}, sequence {inputs['sequence_length']:,})."
    )

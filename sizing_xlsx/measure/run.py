"""What a run is: one training configuration, in the words of the workbook's inputs, and where runs are read from."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..formula import domains
from ..formula.declare import Choice, Whole
from ..formula.job import Job
from ..presets.names import counted, one_line

JOBS = {
    "lora": "LoRA or QLoRA fine-tuning of a decoder",
    "full": "full fine-tuning of a decoder",
    "training": "training an encoder from scratch",
}
SWEEPS = ("lora", "training")
SWEEP_CARD = "NVIDIA H100 SXM5 80GB"
LONGEST_FILE = 10_000_000  # bytes of a sweep file
MOST_RUNS = 10_000
LONGEST_ID = 120  # of an id that is made; it names files too

# What a run says beyond the inputs of its job: name -> (default, what is right).
SETTINGS: dict[str, tuple[Any, str]] = {
    "config": ("", "a config.json or a folder that holds one; empty for the base model of the presets"),
    "weights": ("random", '"random", or a folder or hub name to load weights from'),
    "steps": (3, "a whole number from 1 to 1,000: updates to run"),
    "loss_kernel": ("stock", '"stock" or "Liger"'),
    "reentrant_checkpointing": ("Off", '"Off" or "On": the older kind of activation checkpointing'),
}
TEXTS = ("config", "weights", "base_model")  # never numbers, even where they look so
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ONE_OF = {
    "loss_kernel": ("stock", "Liger"),
    "reentrant_checkpointing": ("Off", "On"),
}
# Settings that change a step, and that no formula knows: such a run has no prediction.
BEYOND_FORMULAS = ("config", *_ONE_OF)
# Inputs that say how to judge a run, or what others take: they change no step.
NOT_OF_A_RUN = (
    "verdict_basis", "average_sequence_length", "other_tenants_gb", "outside_pytorch_gb_override",
    "images_per_row", "image_tokens_override",  # the decoder alone is run
)  # fmt: skip
OF_A_STACK = ("loss_", "stack_", "fused_loss")  # its coefficients: formulas' words for what a step does
_METHOD = ("adapter_", "lora_rank", "lora_dropout", "target_", "virtual_tokens", "head_outputs")
_ADAPTER = (*_METHOD, "base_storage_format", "kbit_", "quantised_")


@dataclass(frozen=True)
class Run:
    """One configuration. inputs: every input of its job that a step depends on, by the workbook's names."""

    id: str
    job: str
    inputs: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.inputs[name] if name in self.inputs else self.settings[name]

    def on(self, name: str) -> bool:
        """Whether a switch is On."""
        return bool(self[name] == "On")

    def as_row(self) -> dict[str, Any]:
        """Every field by its name, as a CSV row or a JSON object holds it."""
        return {"id": self.id, "job": self.job, **self.inputs, **self.settings}


@lru_cache(maxsize=4)
def declared(job: str) -> Job:
    """The formulas whose inputs the runs of a job are written in."""
    from .. import jobs
    from ..presets.catalogue import load_presets

    return jobs.plain_job("training" if job == "training" else "lora", load_presets())


@lru_cache(maxsize=4)
def sizing(job: str) -> Job:
    """The formulas that size the runs of a job; those of full fine-tuning in words of their own, see full_run.py."""
    from .. import jobs
    from ..presets.catalogue import load_presets

    return jobs.plain_job(job, load_presets())


@lru_cache(maxsize=4)
def input_names(job: str) -> tuple[str, ...]:
    """The inputs of a job that a run states."""
    known = declared(job).inputs
    names = [
        key
        for key, value in known.items()
        if value.follows_job and key not in NOT_OF_A_RUN and not key.startswith(OF_A_STACK)
    ]
    if job == "full":
        names = [key for key in names if not key.startswith(_ADAPTER)] + ["parameter_storage"]
    return tuple(names)


def make_run(job: str, values: Mapping[str, Any], *, id: str = "", where: str = "") -> Run:
    """A run from some of its fields; the rest is the worked job's. ValueError: the field, its value, what is right."""
    at = f"{where}: " if where else ""
    if job not in JOBS:
        raise ValueError(f"{at}job is {job!r}; it must be one of {', '.join(JOBS)}")
    formulas, names = declared(job), input_names(job)
    unknown = [key for key in values if key not in names and key not in SETTINGS]
    if unknown:
        near = domains.nearest(unknown[0], (*names, *SETTINGS))
        raise ValueError(f"{at}{unknown[0]} is no field of a {job} run{near}")
    settings = {key: values.get(key, default) for key, (default, _) in SETTINGS.items()}
    if isinstance(settings["steps"], float) and settings["steps"].is_integer():
        settings["steps"] = int(settings["steps"])
    inputs: dict[str, Any] = {}
    try:
        _check_settings(settings)
        for key in names:
            if key == "parameter_storage" and job == "full":
                inputs[key] = domains.accept(declared("training"), key, values.get(key, "fp32"))
            elif key == "base_model" and job != "training":
                inputs[key] = _model(formulas, values.get(key), settings["config"])
            else:
                facts = formulas.inputs[key]
                inputs[key] = _whole(domains.accept(formulas, key, values.get(key, facts.default)), facts.domain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{at}{error}") from None
    if id and not id.isprintable():
        raise ValueError(f"{at}id is {id!r}; it must be one line of printable text")
    return Run(id or run_id(job, inputs, settings), job, inputs, settings)


def _whole(value: Any, domain: Any) -> Any:
    """8 for 8.0, as a spreadsheet writes it, where a whole number is asked for."""
    return int(value) if isinstance(domain, Whole) and isinstance(value, float) else value


def _model(formulas: Job, name: Any, config: str) -> str:
    """A base model that a run can be made of: one with a config.json, sized by formulas or not."""
    if config:
        read_config_fields(Path(config))
        file = Path(config).resolve()
        own = file.parent if file.name == "config.json" else file
        return str(name or own.name.removesuffix(".json"))
    name = name or formulas.inputs["base_model"].default
    if not isinstance(name, str) or not (model_folder(name) / "config.json").is_file():
        domain = formulas.inputs["base_model"].domain
        assert isinstance(domain, Choice)
        near = domains.nearest(str(name), formulas.tables[domain.table].keys)
        raise ValueError(f"base_model is {name!r}; it must be a model of the presets{near}")
    return name


def read_config_fields(where: Path) -> dict[str, Any]:
    """What a config.json, or the one of a folder, says; ValueError when no model can be made of it."""
    file = where / "config.json" if where.is_dir() else where
    try:
        fields = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(
            f"config is {str(file)!r}: {error.strerror or error}; give a config.json or its folder"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"config is {str(file)!r}, which is not JSON: {error}") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("model_type"), str):
        raise ValueError(f"config is {str(file)!r}, which has no model_type; give the config.json of a model")
    return fields


def model_folder(name: str) -> Path:
    """Where the presets keep a model's config.json."""
    from ..paths import presets_folder

    return presets_folder() / "models" / name.replace("/", "--")


def _check_settings(settings: Mapping[str, Any]) -> None:
    for key, choices in _ONE_OF.items():
        if settings[key] not in choices:
            raise ValueError(f"{key} is {settings[key]!r}; it must be {SETTINGS[key][1]}")
    steps = settings["steps"]
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= 1000:
        raise ValueError(f"steps is {steps!r}; it must be {SETTINGS['steps'][1]}")
    for key in ("config", "weights"):
        if not isinstance(settings[key], str):
            raise ValueError(f"{key} is {settings[key]!r}; it must be {SETTINGS[key][1]}")


def run_id(job: str, inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """A name for a run that was given none: what sets it apart from the worked job, in a few words."""
    known = {**declared("training").inputs, **declared(job).inputs}
    apart = [
        f"{key.removesuffix('_override').replace('_', '-')}={str(value).replace(' ', '-')}"
        for key, value in inputs.items()
        if value != known[key].default and key != "base_model"
    ]
    apart += [f"{key.replace('_', '-')}={value}" for key, value in settings.items() if value != SETTINGS[key][0]]
    model = str(inputs["base_model"]).rpartition("/")[2].replace(" ", "-")
    name = " ".join([job, model, *apart]).replace(",", "")
    if len(name) <= LONGEST_ID:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]  # what is cut off still tells runs apart
    return f"{name[: LONGEST_ID - 9]} {digest}"


# ------------------------------------------------------------------------------------------------ sweeps
def named_sweep(name: str) -> list[Run]:
    """A sweep that was measured on an H100: "lora" (ft01 to ft25) or "training" (tr01 to tr24)."""
    from ..presets.catalogue import load_presets
    from ..presets.sweeps import run_inputs

    rows = getattr(load_presets(), f"{name}_sweep")
    return [make_run(name, run_inputs(name, row, SWEEP_CARD), id=row["id"]) for row in rows]


def read_sweep(path: Path) -> list[Run]:
    """The runs of a TOML or CSV file; ValueError in one sentence when it cannot be read as runs.

    CSV: a row a run, columns named as fields, empty cells as the worked job. TOML: `[[run]]` tables over what
    `[defaults]` says; a list stands for one run for each of its values, several lists for all their combinations.
    """
    where = one_line(str(path))
    try:
        if path.stat().st_size > LONGEST_FILE:
            raise ValueError(f"{where} is larger than {LONGEST_FILE:,} bytes; split it into smaller sweeps")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ValueError(
            f"{where} is neither a file nor a named sweep; it must be {' or '.join(SWEEPS)}, or a .toml or .csv file"
        ) from None
    except IsADirectoryError:
        raise ValueError(f"{where} is a folder; a sweep is a .toml or .csv file") from None
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{where} is not UTF-8 text; save it as UTF-8") from None
    if path.suffix.lower() == ".toml":
        runs = _toml_runs(text, where)
    elif path.suffix.lower() == ".csv":
        runs = _csv_runs(text, where)
    else:
        raise ValueError(f"{where} ends in {path.suffix!r}; a sweep is a .toml or .csv file")
    if not runs:
        raise ValueError(f"{where} holds no run; write at least one")
    return unique(runs, where)


def unique(runs: Sequence[Run], where: str) -> list[Run]:
    """The same runs, or ValueError when two have the same id."""
    seen: set[str] = set()
    for run in runs:
        if run.id.casefold() in seen:
            raise ValueError(f"{where}: the id {run.id!r} is there twice; give each run an id of its own")
        seen.add(run.id.casefold())
    return list(runs)


def _toml_runs(text: str, where: str) -> list[Run]:
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, brackets without end
        raise ValueError(f"{where} is not TOML: {error}") from None
    unknown = [key for key in data if key not in ("defaults", "run")]
    if unknown:
        raise ValueError(f"{where}: {unknown[0]} is not known here; write [defaults] and [[run]] tables")
    defaults, tables = data.get("defaults", {}), data.get("run", [])
    if not isinstance(defaults, dict) or not isinstance(tables, list):
        raise ValueError(f"{where}: write [defaults] once and [[run]], with two brackets, for each run")
    runs: list[Run] = []
    for number, table in enumerate(tables, 1):
        line = f"{where}, run {number}"
        if not isinstance(table, dict):
            raise ValueError(f"{line} is {table!r}; it must be a [[run]] table")
        merged = {**defaults, **table}
        lists = {key: value for key, value in merged.items() if isinstance(value, list)}
        if any(not value for value in lists.values()):
            raise ValueError(f"{line}: a list is empty; give at least one value")
        if len(runs) + math.prod(len(value) for value in lists.values()) > MOST_RUNS:
            raise ValueError(f"{where} makes more than {MOST_RUNS:,} runs; split it into smaller sweeps")
        for values in itertools.product(*lists.values()):
            fields = {**merged, **dict(zip(lists, values, strict=True))}
            name = str(fields.pop("id", ""))
            if name and lists:
                name += "".join(f" {key}={value}" for key, value in zip(lists, values, strict=True) if key != "id")
            runs.append(_from_fields(fields, name, line))
    return runs


def _csv_runs(text: str, where: str) -> list[Run]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [cell.strip() or f"column {at}" for at, cell in enumerate(next(reader, []), 1)]
        if len(set(header)) != len(header):
            raise ValueError(f"{where}: a column is there twice; each field has one column")
        rows = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise ValueError(f"{where} is not CSV: {error}") from None
    if len(rows) > MOST_RUNS:
        raise ValueError(f"{where} holds more than {MOST_RUNS:,} runs; split it into smaller sweeps")
    runs = []
    for line, cells in rows:
        at = f"{where}, line {line}"
        if len(cells) != len(header):
            raise ValueError(
                f"{at} has {counted(len(cells), 'cell')}; it should have {len(header)}, one for each column"
            )
        fields = {key: cell.strip() for key, cell in zip(header, cells, strict=True) if cell.strip()}
        name = fields.pop("id", "")
        runs.append(_from_fields(typed(fields), name, at))
    return runs


def typed(fields: Mapping[str, str]) -> dict[str, Any]:
    """Texts as numbers where they are written as such; all else stays text."""
    out: dict[str, Any] = {}
    for key, text in fields.items():
        out[key] = text
        if key not in TEXTS and NUMBER.fullmatch(text):
            out[key] = int(text) if text.lstrip("+-").isdigit() and len(text) < 1000 else float(text)
    return out


def _from_fields(fields: Mapping[str, Any], name: str, where: str) -> Run:
    rest = dict(fields)
    return make_run(str(rest.pop("job", "lora")), rest, id=name, where=where)


def from_rows(rows: Iterable[Mapping[str, Any]]) -> list[Run]:
    """Runs from what as_row() gave."""
    runs = []
    for row in rows:
        rest = {key: value for key, value in row.items() if value is not None and key not in ("id", "job")}
        runs.append(make_run(row["job"], rest, id=row["id"]))
    return runs

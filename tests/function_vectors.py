"""The golden vectors of the Excel functions: calls with the value or the error that every surface has to give.

Values come from the plain functions, one term after another, and from loops over cards and values: none from the
registry, a compiled engine or a closed form. `python tests/function_vectors.py` writes them anew.
"""

from __future__ import annotations

import json
import math
import random
from functools import cache
from pathlib import Path
from typing import Any

from sizing_xlsx.functions import registered
from sizing_xlsx.functions.signature import TABLE
from sizing_xlsx.jobs import job
from sizing_xlsx.presets.catalogue import load_presets

FILE = Path(__file__).parent / "data" / "function_vectors.json"
NF4 = "nf4 / fp4, block 64, double quant (nested block 256)"
KEYWORDS: dict[str, tuple[str, dict[str, Any]]] = {
    "LoRA": ("lora", {}),
    "QLoRA": ("lora", {"base_storage_format": NF4, "kbit_preparation": "On"}),
    "DoRA": ("lora", {"adapter_method": "DoRA"}),
    "Prefix tuning": ("lora", {"adapter_method": "Prefix tuning"}),
    "Trained head": ("lora", {"adapter_method": "Trained head"}),
    "Training": ("training", {}),
    "Full fine-tuning": ("full", {}),
}
LLAMA, H100 = "meta-llama/Llama-3.1-8B", "NVIDIA H100 SXM5 80GB"
WORKED = {"model": "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "gpu": H100}
ITEMS = {  # name -> term in bytes, by either family
    "Frozen base weights": ("frozen_base_weights", "published_frozen_base"),
    "Optimizer state": ("optimizer_state", "published_optimizer_state"),
    "Activations": ("traced_activations", "published_peak_activations"),
}
TERMS = {"total": "total_reserved_gb", "peak": "peak_allocated_gb", "reserve": "allocator_reserve_gb"}
_INPUTS = {"model": "base_model", "gpu": "gpu_choice"}

Vector = dict[str, Any]


@cache
def _reference(name: str, inputs: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return job(name).reference(dict(inputs))


def _values(arguments: dict[str, Any]) -> dict[str, Any]:
    name, more = KEYWORDS[arguments.get("job", "LoRA")]
    given = {_INPUTS.get(key, key): value for key, value in arguments.items() if key not in ("job", "item")}
    return _reference(name, tuple({**more, **given}.items()))


def _passes(name: str, values: dict[str, Any]) -> bool:
    return all(values[rule] for rule in job(name).fault_rules)


def value(function: str, arguments: dict[str, Any]) -> Any:
    """What a call gives, by the plain functions; None for a job that breaks a rule."""
    name = KEYWORDS[arguments.get("job", "LoRA")][0]
    if function == "GPU_SMALLEST" or function == "GPU_CHEAPEST":
        return _card(function, arguments)
    if function in ("GPU_MAX_BATCH", "GPU_MAX_SEQUENCE"):
        return _largest(function, arguments)
    values = _values(arguments)
    if not _passes(name, values):
        return None
    if function in ("TRAIN_HOURS", "TRAIN_COST"):
        found = values["run_hours" if function == "TRAIN_HOURS" else "rent_cost"]
        return None if isinstance(found, str) else found
    if function == "GPU_FITS":
        return values["verdict_code"] == 1
    if function == "GPU_VERDICT":
        return values["fit_verdict"]
    if function == "GPU_HEADROOM":
        return values["headroom_gb"]
    assert function == "GPU_MEMORY"
    item = arguments.get("item", "total")
    if item in TERMS:
        return values[TERMS[item]]
    return values[ITEMS[item][0 if values["rests_on_traced"] else 1]] / 1e9


def _largest(function: str, arguments: dict[str, Any]) -> int | None:
    vary = "batch_size" if function == "GPU_MAX_BATCH" else "sequence_length"
    low, high = 0, job("lora").inputs[vary].domain.high + 1  # type: ignore[union-attr]
    while high - low > 1:
        middle = (low + high) // 2
        if value("GPU_FITS", {**arguments, vary: middle}):
            low = middle
        else:
            high = middle
    return low


def _card(function: str, arguments: dict[str, Any]) -> str | None:
    column = "usable_bytes" if function == "GPU_SMALLEST" else "price_usd_per_hour"
    best: tuple[float, str] | None = None
    for row in load_presets().gpu_rows:
        figure = row[column]
        if row["vendor"] != "NVIDIA" or not figure or not row["usable_bytes"] or (best and figure >= best[0]):
            continue
        if value("GPU_FITS", {**arguments, "gpu": row["name"]}):
            best = (figure, row["name"])
    return best and best[1]


# ---------------------------------------------------------------------- the cases
def _golden() -> list[Vector]:
    """The figures of both companion workbooks."""
    changes: list[dict[str, Any]] = [
        {},
        {"activation_checkpointing": "On"},
        {"batch_size": 32, "sequence_length": 2048},
        {"batch_size": 32, "sequence_length": 2048, "activation_checkpointing": "On"},
        {"base_storage_format": "fp32"},
        {"adapter_layers": 3},
        {"verdict_basis": "Published"},
        {"verdict_basis": "Published", "activation_checkpointing": "On"},
    ]
    shapes = [
        (WORKED, changes),
        (
            {"model": "Article worked model (1.01B)", "gpu": H100, "job": "Training"},
            [change for change in changes if not {"base_storage_format", "adapter_layers"} & set(change)]
            + [{"optimizer_choice": "8-bit Adam"}, {"compute_precision": "fp32"}],
        ),
    ]
    return [
        _case("GPU_MEMORY", {**base, **change, "item": item})
        for base, changed in shapes
        for change in changed
        for item in ("total", "peak")
    ]


def _case(function: str, arguments: dict[str, Any]) -> Vector:
    found = value(function, arguments)
    if found is None:
        return {"function": function, "arguments": arguments, "error": "#N/A" if function in _UNKNOWN else "#VALUE!"}
    return {"function": function, "arguments": arguments, "value": found}


_CARDS = ("GPU_SMALLEST", "GPU_CHEAPEST")
_UNKNOWN = (*_CARDS, "TRAIN_HOURS", "TRAIN_COST")  # of jobs that break no rule


def _random(rng: random.Random) -> list[Vector]:
    lora, training = job("lora"), job("training")
    cases = []
    functions = ("GPU_FITS", "GPU_VERDICT", "GPU_HEADROOM", "GPU_MEMORY")
    rare: dict[str, Any] = {
        "base_storage_format": lora.choices("base_storage_format"),
        "lora_rank": (1, 4, 16, 64, 256),
        "activation_checkpointing": ("On", "Off"),
        "optimizer_choice": lora.choices("optimizer_choice"),
        "compute_precision": lora.choices("compute_precision"),
        "attention_implementation": lora.choices("attention_implementation"),
        "adapter_targets": [key for key in lora.choices("adapter_targets") if key != "Own choice"],
        "adapter_layers": ("all", 1, 2, 6),
        "gradient_accumulation": (1, 2, 8),
        "gpu_capacity_override_gb": (24, 79.5),
        "other_tenants_gb": (0, 3.25),
        "verdict_basis": ("Traced", "Published"),
        "training_stack": lora.choices("training_stack"),
        "lora_dropout": ("On", "Off"),
        "adapter_storage": lora.choices("adapter_storage"),
        "uses_autocast": ("On", "Off"),
        "keeps_model_output": ("On", "Off"),
    }
    for at in range(160):
        arguments: dict[str, Any] = {
            "model": rng.choice(lora.choices("base_model")),
            "gpu": rng.choice(lora.choices("gpu_choice")),
            "batch_size": rng.choice((1, 2, 3, 4, 8, 16)),
            "sequence_length": rng.choice((128, 512, 1000, 2048, 4096)),
        }
        if rng.random() < 0.5:
            arguments["job"] = rng.choice([key for key in KEYWORDS if KEYWORDS[key][0] == "lora"])
        for key in rng.sample(sorted(rare), rng.choice((0, 0, 1, 2, 5))):
            arguments[key] = rng.choice(rare[key])
        function = functions[at % len(functions)]
        if function == "GPU_MEMORY":
            arguments["item"] = rng.choice([*TERMS, *ITEMS])
        cases.append(_case(function, arguments))
    for at in range(40):
        arguments = {
            "model": rng.choice(training.choices("base_model")),
            "gpu": rng.choice(training.choices("gpu_choice")),
            "batch_size": rng.choice((1, 16, 256, 1000)),
            "sequence_length": rng.choice((16, 100, 512)),
            "job": "Training",
        }
        for key in rng.sample(("optimizer_choice", "compute_precision", "verdict_basis", "parameter_storage"), at % 4):
            arguments[key] = rng.choice(training.choices(key))
        cases.append(_case(functions[at % 3], arguments))
    for at in range(12):
        base: dict[str, Any] = {"model": rng.choice(lora.choices("base_model")), "job": ("LoRA", "QLoRA")[at % 2]}
        on = {**base, "gpu": rng.choice(["NVIDIA L4", "NVIDIA A100 SXM4 40GB", H100, "NVIDIA H200 SXM"])}
        cases.append(_case("GPU_MAX_BATCH", {**on, "sequence_length": rng.choice((256, 1024))}))
        cases.append(_case("GPU_MAX_SEQUENCE", {**on, "batch_size": rng.choice((1, 4))}))
        if at < 6:
            cases.append(_case(_CARDS[at % 2], {**base, "batch_size": 1, "sequence_length": 512}))
    return cases


def _full(rng: random.Random) -> list[Vector]:
    """Full fine-tuning over one and several cards."""
    full = job("full")
    common: dict[str, Any] = {"job": "Full fine-tuning"}
    cases = []
    for at in range(60):
        arguments: dict[str, Any] = {
            "model": rng.choice(full.choices("base_model")),
            "gpu": rng.choice(full.choices("gpu_choice")),
            "batch_size": rng.choice((1, 2, 4)),
            "sequence_length": rng.choice((512, 2048, 4096)),
            **common,
            "gpu_count": rng.choice((1, 2, 4, 8, 16, 64)),
        }
        for key in ("training_recipe", "sharding_stage", "state_offload", "activation_checkpointing", "verdict_basis"):
            if rng.random() < 0.6:
                arguments[key] = rng.choice(full.choices(key))
        function = ("GPU_FITS", "GPU_VERDICT", "GPU_HEADROOM", "GPU_MEMORY")[at % 4]
        if function == "GPU_MEMORY":
            arguments["item"] = rng.choice(list(TERMS))
        cases.append(_case(function, arguments))
    shared = {"model": LLAMA, **common, "gpu_count": 8, "sharding_stage": "ZeRO-3"}
    cases.append(_case("GPU_MAX_BATCH", {**shared, "gpu": H100, "sequence_length": 1024}))
    cases.append(_case("GPU_MAX_SEQUENCE", {**shared, "gpu": H100, "batch_size": 1}))
    cases += [_case(card, {**shared, "batch_size": 1, "sequence_length": 2048}) for card in _CARDS]
    count = full.reference({"base_model": LLAMA})["base_parameter_count"]
    cases.append(_found("MODEL_PARAMETERS", {"model": LLAMA, **common}, count))
    return cases


def _looked_up() -> list[Vector]:
    presets, lora = load_presets(), job("lora")
    cases: list[Vector] = []
    for name in lora.choices("base_model")[::7]:
        values = lora.reference({"base_model": name})
        for component, term in (("total", "base_parameter_count"), ("active", "active_parameters")):
            cases.append(_found("MODEL_PARAMETERS", {"model": name, "component": component}, values[term]))
        cases.append(_found("MODEL_INFO", {"model": name, "field": "layers"}, values["layer_count"]))
        adapter = lora.reference({"base_model": name, "lora_rank": 16})["adapter_parameters"]
        cases.append(_found("LORA_PARAMETERS", {"model": name, "lora_rank": 16}, adapter))
    for row in presets.gpu_rows[::6]:
        usable = row["usable_bytes"] and row["usable_bytes"] / 1e9
        for field, figure in (("usable_gb", usable), ("price_usd_per_hour", row["price_usd_per_hour"])):
            arguments = {"gpu": row["name"], "field": field}
            if figure:
                cases.append(_found("GPU_INFO", arguments, figure))
            else:
                cases.append({"function": "GPU_INFO", "arguments": arguments, "error": "#N/A"})
    return cases


def _found(function: str, arguments: dict[str, Any], figure: Any) -> Vector:
    return {"function": function, "arguments": arguments, "value": figure}


def _names() -> list[Vector]:
    """The same job by other names, and cells as they come."""
    plain = {"model": LLAMA, "gpu": H100, "batch_size": 2, "sequence_length": 1024}
    expected = value("GPU_HEADROOM", plain)
    qlora = value("GPU_HEADROOM", {**plain, "job": "QLoRA"})
    same: list[tuple[dict[str, Any], Any]] = [
        ({"model": "Llama-3.1-8B"}, expected),
        ({"model": "LLAMA-3.1-8b"}, expected),
        ({"model": "llama 3.1 8b"}, expected),
        ({"model": " Llama-3.1-8B "}, expected),
        ({"gpu": "H100 SXM5 80GB"}, expected),
        ({"gpu": "h100 sxm5 80gb"}, expected),
        ({"gpu": "H100  SXM5 \t80GB"}, expected),
        ({"model": "Llama-3.1-8B\n"}, expected),
        ({"model": "\tLlama-3.1-8B\u00a0"}, expected),
        ({"batch_size": "2"}, expected),
        ({"batch_size": 2.0}, expected),
        ({"sequence_length": " 1024 "}, expected),
        ({"sequence_length": "+1.024e+3"}, expected),
        ({"sequence_length": "1024.\n"}, expected),
        ({"batch_size": ".2E1"}, expected),
        ({"batch_size": "20e-1"}, expected),
        ({"batch_size": "\u00a0"}, value("GPU_HEADROOM", {"model": LLAMA, "gpu": H100, "sequence_length": 1024})),
        ({"job": ""}, expected),
        ({"job": "lora"}, expected),
        ({"job": "qlora"}, qlora),
        ({"base_storage_format": "nf4", "kbit_preparation": "On"}, qlora),
        ({"base_storage_format": "NF4", "kbit_preparation": True}, qlora),
        ({"activation_checkpointing": True}, value("GPU_HEADROOM", {**plain, "activation_checkpointing": "On"})),
        ({"activation_checkpointing": False}, expected),
        ({"optimizer_choice": "adamw"}, expected),
        ({"optimizer_choice": "8-bit adamw"}, value("GPU_HEADROOM", {**plain, "optimizer_choice": "8-bit Adam"})),
        ({"adapter_layers": "ALL"}, expected),
        ({"attention_implementation": "sdpa"}, expected),
    ]
    return [_found("GPU_HEADROOM", {**plain, **change}, figure) for change, figure in same]


def _faults() -> list[Vector]:
    plain = {"model": "Llama-3.1-8B", "gpu": "H100 SXM5 80GB", "batch_size": 8, "sequence_length": 2048}
    unknown: list[dict[str, Any]] = [
        {"model": "Lama-3.1-8B"}, {"model": "Llama"}, {"model": "llama*"}, {"model": "?"}, {"model": "~"},
        {"model": "=1+1"}, {"model": "../../etc/passwd"}, {"model": 5}, {"model": True}, {"gpu": "H100"},
        {"gpu": "A100 80GB"}, {"gpu": "*"}, {"gpu": 80}, {"model": "BERT-base"}, {"model": "x" * 300},
    ]  # fmt: skip
    wrong: list[dict[str, Any]] = [
        {"batch_size": 0}, {"batch_size": -1}, {"batch_size": 1.5}, {"batch_size": 65537}, {"batch_size": "eight"},
        {"batch_size": True}, {"sequence_length": 0}, {"sequence_length": 1048577}, {"sequence_length": "#"},
        {"job": "whole"}, {"job": "T"}, {"job": 3}, {"base_storage_format": "int3"}, {"base_storage_format": "q"},
        {"lora_rank": 0}, {"lora_rank": 8193}, {"lora_rank": "high"}, {"adapter_layers": 0}, {"adapter_layers": 33},
        {"adapter_layers": "some"}, {"optimizer_choice": "Adafactor"}, {"optimizer_choice": 8},
        {"compute_precision": "fp64"}, {"activation_checkpointing": "maybe"}, {"activation_checkpointing": 1},
        {"gpu_capacity_override_gb": 0}, {"gpu_capacity_override_gb": 100001}, {"other_tenants_gb": -1},
        {"gpu": "B100"}, {"gpu": "H100 NVL"}, {"images_per_row": 1}, {"parameter_storage": "fp32"},
        {"model": "gpt2"}, {"head_outputs": 0}, {"gradient_accumulation": 0},
    ]  # fmt: skip
    no_plain_numbers = (
        "$2", "2%", "1,024", "1.2.3", "2024-01-01", "1/2", "1 1/2", "12:30", "Jan 2", "(2)", "2-", "--2", "+-2", "- 2",
        "1 2", "2E", "E2", "2E+-1", "2E0.5", ".", "+", "0x2", "2_0", "\u0662",
    )  # fmt: skip
    wrong += [{"batch_size": text} for text in no_plain_numbers]
    wrong += [
        {"other_tenants_gb": text} for text in ("$2", "50%", "1,5", "1,024", "2024-01-01", "12:30", ".", "-", "E")
    ]
    cases = [_error("GPU_FITS", {**plain, **change}, "#N/A") for change in unknown]
    cases += [_error("GPU_FITS", {**plain, **change}, "#VALUE!") for change in wrong]
    cases += [
        _error("GPU_MEMORY", {**plain, "item": "soul"}, "#VALUE!"),
        _error("GPU_MEMORY", {**plain, "item": "a"}, "#VALUE!"),
        _error("GPU_MEMORY", {**plain, "item": "Loss, backward", "verdict_basis": "Published"}, "#VALUE!"),
        _error("GPU_INFO", {"gpu": "H200"}, "#N/A"),
        _error("GPU_INFO", {"gpu": "H100 SXM5 80GB", "field": "colour"}, "#VALUE!"),
        _error("MODEL_INFO", {"model": "gpt2", "field": "colour"}, "#VALUE!"),
        _error("MODEL_PARAMETERS", {"model": "gpt-5"}, "#N/A"),
        _error("GPU_SMALLEST", {"model": "Llama-3.1-405B", "batch_size": 64, "sequence_length": 8192}, "#N/A"),
        _error("GPU_CHEAPEST", {"model": "nobody/nothing"}, "#N/A"),
        _error("GPU_MAX_BATCH", {"model": "Llama-3.1-8B", "gpu": "B100"}, "#VALUE!"),
        _error("LORA_PARAMETERS", {"model": "Llama-3.1-8B", "lora_rank": -8}, "#VALUE!"),
    ]
    return cases + _blanks()


def _blanks() -> list[Vector]:
    """Each argument that a function with one value requires, as an empty text and as white space."""
    asked = [
        (name, dict(function.examples[0])) for name, function in registered().items() if function.result.kind != TABLE
    ]
    asked.append(("GPU_FITS", {"model": "Article worked model (1.01B)", "gpu": H100, "job": "Training"}))
    return [
        _error(name, {**arguments, required: blank}, "#VALUE!")
        for name, arguments in asked
        for required in registered()[name].arguments[: registered()[name].required]
        for blank in ("", " \n\u00a0")
    ]


def _runs() -> list[Vector]:
    """Hours and cost of runs of every kind, on one card and on several, by the reached share and as measured."""
    cases = []
    changes: list[dict[str, Any]] = [
        {},
        {"gpu_count": 8, "activation_checkpointing": "On"},
        {"own_mfu_expected": 0.25, "job": "QLoRA", "sequence_length": 4096},
        {"measured_tokens_per_second": 1250, "training_tokens": 40_000_000},
        {"gpu": "NVIDIA A100 SXM4 80GB", "job": "QLoRA"},
        {"model": "mistralai/Mixtral-8x7B-v0.1", "gpu": "NVIDIA B200", "adapter_layers": 4},
        {"gpu": "NVIDIA T4"},
        {"gpu": "NVIDIA A10G", "compute_precision": "fp32"},
        {"model": "Article worked model (1.01B)", "job": "Training", "sequence_length": 100},
        {"model": "Article worked model (1.01B)", "job": "Training", "activation_checkpointing": "On", "gpu_count": 2},
        {"model": "Article worked model (1.01B)", "job": "Training", "compute_precision": "fp32"},
        {"job": "Full fine-tuning"},
        {"job": "Full fine-tuning", "gpu_count": 16, "sharding_stage": "FSDP full shard", "batch_size": 4},
    ]
    for change in changes:
        arguments = {**WORKED, "training_tokens": 10**8, **change}
        cases += [_case(function, arguments) for function in ("TRAIN_HOURS", "TRAIN_COST")]
    wrong: list[dict[str, Any]] = [{"training_tokens": 0}, {"gpu_count": 1.5}, {"own_mfu_expected": 1.5}]
    cases += [_error("TRAIN_HOURS", {**WORKED, "training_tokens": 10**8, **change}, "#VALUE!") for change in wrong]
    return cases


def _error(function: str, arguments: dict[str, Any], code: str) -> Vector:
    return {"function": function, "arguments": arguments, "error": code}


def vectors() -> list[Vector]:
    """Every case, the same each time."""
    cases = [*_golden(), *_names(), *_looked_up(), *_faults(), *_random(random.Random(20260817)), *_runs()]
    cases += _full(random.Random(20261130))
    return [{"id": f"{at:03}", **case} for at, case in enumerate(cases, 1)]


def read() -> list[Vector]:
    """The cases as they are kept."""
    return list(json.loads(FILE.read_text(encoding="utf-8")))


def given(case: Vector) -> list[Any]:
    """The arguments of a case in the function's order, None for one that is left out."""
    return [case["arguments"].get(name) for name in registered()[case["function"]].arguments]


def is_met(case: Vector, value: Any, error: str | None = None) -> bool:
    """Whether a surface answers a case as it has to: by the same error, or by its value, a number within 1e-12."""
    if error or "error" in case:
        return error == case.get("error")
    right = case["value"]
    if isinstance(right, (bool, str)) or isinstance(value, (bool, str)):
        return type(value) is type(right) and value == right
    return isinstance(value, (int, float)) and math.isclose(value, right, rel_tol=1e-12)


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in vectors())
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8", newline="\n")

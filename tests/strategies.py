"""Random jobs: valid inputs drawn from a job's own declared domains, never in contradiction with themselves.

random_inputs(job, rng) gives every input a value; jobs(job) is the same as a Hypothesis strategy.
"""

from __future__ import annotations

import math
import random
from typing import Any

from hypothesis import strategies as st

from sizing_xlsx.formula.declare import Choice, Number, Whole
from sizing_xlsx.formula.job import Job

OVERRIDE_SHARE = 0.15  # how often an optional input is filled in
# Overrides are drawn near real figures: an exotic one is covered by its bounds, tested on their own.
TYPICAL = {
    "hidden_size_override": (64, 16_384),
    "layer_count_override": (1, 126),
    "attention_heads_override": (1, 128),
    "kv_heads_override": (1, 64),
    "head_dimension_override": (16, 256),
    "mlp_width_override": (128, 65_536),
    "vocabulary_size_override": (100, 262_144),
    "base_parameter_count_override": (10**11, 10**13),
    "parameter_count_override": (10**6, 10**12),
    "matrix_workspace_bytes_override": (0, 2**28),
    "gpu_capacity_override_gb": (1, 400),
    "other_tenants_gb": (0, 20),
    "images_per_row": (0, 4),
    "image_tokens_override": (1, 2_000),
    "deadline_date": (36_526, 70_000),
    "training_examples": (1, 10**9),
    "lora_rank": (1, 512),
    "batch_size": (1, 256),
    "sequence_length": (1, 16_384),
    "gpu_count": (1, 1024),
    "gpus_per_node": (1, 16),
}


def random_inputs(job: Job, rng: random.Random) -> dict[str, Any]:
    """A valid value for every input of the job; None where an optional one stays empty."""
    while True:
        values = {key: _draw(job, key, rng) for key in job.inputs}
        _repair(job, values, rng)
        if "training_recipe" in values:
            _share(job, values, rng)
        if values.get("average_sequence_length"):
            values["average_sequence_length"] = min(values["average_sequence_length"], values["sequence_length"])
        if "training_recipe" not in values:
            return job.accepted(values)
        known = job.reference(values := job.accepted(values))
        if all(known[rule] for rule in job.fault_rules):
            return values


@st.composite
def jobs(draw: Any, job: Job) -> dict[str, Any]:
    """random_inputs as a Hypothesis strategy."""
    return random_inputs(job, random.Random(draw(st.integers(0, 2**32 - 1))))


def _draw(job: Job, key: str, rng: random.Random) -> Any:
    declared = job.inputs[key]
    domain = declared.domain
    if declared.default is None and rng.random() > OVERRIDE_SHARE:
        return None
    if isinstance(domain, Choice):
        keys = job.tables[domain.table].keys
        return declared.default if len(keys) <= 4 and rng.random() < 0.4 else rng.choice(keys)
    if isinstance(domain, Whole):
        if domain.word and rng.random() < 0.4:
            return rng.choice((domain.word, domain.word.upper()))
        high = domain.high if isinstance(domain.high, int) else 10_000
        if rng.random() < 0.02 and key in ("batch_size", "sequence_length"):
            return rng.choice((domain.low, high))
        low, high = TYPICAL.get(key, (domain.low, high))
        return _between(max(low, domain.low), high, rng)
    assert isinstance(domain, Number)
    low_number, high_number = TYPICAL.get(key, (domain.low, min(domain.high, 100)))
    whole = min(max(float(round(rng.uniform(low_number, high_number))), low_number), high_number)
    return rng.choice((rng.uniform(low_number, high_number), whole))


def _between(low: int, high: int, rng: random.Random) -> int:
    """A whole number, evenly over the orders of magnitude; the bounds themselves now and then."""
    if rng.random() < 0.04:
        return rng.choice((low, high))
    drawn = math.exp(rng.uniform(math.log(low + 1), math.log(high + 1))) - 1
    return min(max(round(drawn), low), high)


def _reach_a_module(job: Job, values: dict[str, Any], form: str) -> None:
    """A set of targets that the family has modules for; every family has one that makes queries."""
    forms = job.tables["layer_forms"]
    row, slots = forms.row_of(form) - 1, [key.removeprefix("target_") for key in values if key.startswith("target_")]
    there = {slot for slot in slots if forms.columns[f"slot_{slot}"][row]}
    if values["adapter_targets"] == "PEFT default":
        reached = {slot for slot in there if forms.columns[f"default_{slot}"][row]}
    elif values["adapter_targets"] == "Own choice":
        reached = {slot for slot in there if values[f"target_{slot}"] == "On"}
    else:
        reached = there - ({"query", "key", "value", "output"} if values["adapter_targets"] == "All MLP" else set())
    if not reached:
        values["adapter_targets"] = "Own choice"
        values["target_query"] = "On"


def _repair(job: Job, values: dict[str, Any], rng: random.Random) -> None:
    """Make the inputs agree with each other, as a planner's do."""
    models = job.tables[job.inputs["base_model"].domain.table]  # type: ignore[union-attr]
    row = models.row_of(values["base_model"])
    if "kv_heads_override" in values:
        if values["kv_heads_override"] or values["attention_heads_override"]:
            kv = values["kv_heads_override"] = rng.choice((1, 2, 4, 8, 12))
            values["attention_heads_override"] = kv * rng.choice((1, 2, 3, 7, 8))
    elif values["hidden_size_override"] or values["attention_heads_override"]:
        heads = values["attention_heads_override"] = rng.choice((1, 2, 5, 12, 16, 64))
        values["hidden_size_override"] = heads * rng.choice((32, 64, 80, 128))
    if "adapter_layers" in values and not isinstance(values["adapter_layers"], str):
        layers = values["layer_count_override"] or models.layer_count[row]
        values["adapter_layers"] = rng.choice((1, layers, rng.randint(1, layers)))
    if values.get("images_per_row") and not (values["image_tokens_override"] or models.image_tokens[row]):
        values["image_tokens_override"] = rng.randint(1, 2_000)
    if "adapter_targets" in values:
        if models.position_rows[row]:  # a table of learned positions, and no position beyond it
            values["sequence_length"] = min(values["sequence_length"], models.maximum_positions[row])
            values["images_per_row"] = 0
        _reach_a_module(job, values, models.layer_form[row])
    if values.get("sharding_stage") == "FSDP hybrid shard" and values["gpu_count"] > values["gpus_per_node"]:
        values["gpu_count"] -= values["gpu_count"] % values["gpus_per_node"]  # whole nodes
    if values.get("parameter_storage") == "bf16":
        values["compute_precision"] = "bf16 autocast"
    if values.get("deadline_date"):
        values["today_date"] = values["deadline_date"] - rng.randint(0, 400)
        values["deadline_date"] += 400  # no day before the first one
        values["today_date"] += 400
    if values["own_price_per_hour"] is not None:
        values["own_price_date"] = values["own_price_date"] or 46_251
    if values.get("today_date") and values["own_price_date"]:
        values["own_price_date"] = min(values["own_price_date"], values["today_date"])
    in_dollars = values["currency_choice"] == "USD"
    values["currency_per_usd"] = rng.choice((None, 1)) if in_dollars else values["currency_per_usd"] or 0.9
    shares = ("own_mfu_low", "own_mfu_expected", "own_mfu_high")
    if any(values[key] is not None for key in shares):
        drawn = sorted(rng.uniform(0.001, 1) for _ in shares)
        values.update(zip(shares, drawn, strict=True))
    least, most = values["least_gpu_hours_per_month"], values["most_gpu_hours_per_month"]
    if most is not None:
        values["least_gpu_hours_per_month"] = most if least is None else min(least, most)
    gpus = job.tables["gpus"]
    if not gpus.usable_bytes[gpus.row_of(values["gpu_choice"])] and not values["gpu_capacity_override_gb"]:
        values["gpu_capacity_override_gb"] = round(rng.uniform(20, 200), 3)


def _share(job: Job, values: dict[str, Any], rng: random.Random) -> None:
    """Cards, degrees of parallelism and offloads that go together; what still does not is drawn anew."""
    stages, recipes = job.tables["sharding_stages"], job.tables["recipes"]
    row, alone = stages.row_of(values["sharding_stage"]), values["sharding_stage"] == "None"
    models = job.tables["models"]
    degrees = {
        "tensor_parallel": rng.choice((1, 1, 1, 2)),
        "pipeline_parallel": rng.choice((1, 1, 1, 2)),
        "sequence_parallel": 1 if alone else rng.choice((1, 1, 1, 2)),
    }
    values |= {**degrees, "expert_parallel": 1, "gpus_per_node": 8}
    values["gpu_count"] = math.prod(degrees.values()) * (1 if alone else rng.choice((1, 2, 8, 64)))
    values["sequence_length"] += values["sequence_length"] % values["sequence_parallel"]
    if models.position_rows[models.row_of(values["base_model"])]:
        longest = int(models.maximum_positions[models.row_of(values["base_model"])])
        values["sequence_length"] = min(values["sequence_length"], longest)
    if not (stages.zero[row] or stages.fsdp[row]):
        values["state_offload"] = "None"
    if values["optimizer_step"] == "in backward":
        values["gradient_accumulation"] = 1
    if recipes.weight_bytes[recipes.row_of(values["training_recipe"])] < 4:
        values["compute_precision"] = rng.choice(("bf16 autocast", "fp16 autocast"))


# A decoder small enough to be really made, by the inputs that say its shape.
SMALL_DECODER: dict[str, Any] = {
    "hidden_size_override": 256,
    "layer_count_override": 2,
    "attention_heads_override": 4,
    "kv_heads_override": 2,
    "head_dimension_override": 64,
    "mlp_width_override": 1024,
    "vocabulary_size_override": 512,
    "batch_size": 1,
    "sequence_length": 32,
}

"""What must hold for any job, whatever the coefficients: properties of memory, not of our formulas."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from strategies import random_inputs

from sizing_xlsx.jobs import JOBS, job

GROWING = ("batch_size", "sequence_length", "layer_count_override", "vocabulary_size_override", "hidden_size_override")
MANY = {
    "lora": 1.0,
    "training": 1.0,
    "full": 0.2,
}  # a share of the draws: one of full fine-tuning takes ten times as long
PEAKS = ("traced_allocated", "published_allocated", "traced_reserved", "published_reserved")


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("grown", GROWING)
def test_more_of_anything_never_takes_less(name: str, grown: str) -> None:
    sized, rng = job(name), random.Random(11)
    for _ in range(round(60 * MANY[name])):
        inputs = {k: None if "parameter_count" in k else v for k, v in random_inputs(sized, rng).items()}
        known = sized.reference(inputs)
        term = grown.removesuffix("_override")
        if grown == "hidden_size_override":
            inputs["hidden_size_override"] = known[term]
            more = {grown: known[term] * 2}
        else:
            more = {grown: min(known[term] * 2, sized.inputs[grown].domain.high)}  # type: ignore[union-attr]
        if name == "lora" and grown == "layer_count_override" and inputs["adapter_layers"] == "all":
            continue  # the adapters grow as well: covered by the others
        before, after = sized.reference(inputs), sized.reference({**inputs, **more})
        for peak in PEAKS:
            assert after[peak] >= before[peak] * (1 - 1e-12), (peak, grown, inputs)


@pytest.mark.parametrize("name", JOBS)
def test_the_output_scores_are_there_in_the_loss_checkpointed_or_not(name: str) -> None:
    """Logits, their fp32 copy and their gradient meet in the loss, over everything that is resident."""
    sized, rng = job(name), random.Random(12)
    for _ in range(round(200 * MANY[name])):
        inputs = random_inputs(sized, rng)
        if "training_stack" in inputs:  # a fused loss never holds all scores
            inputs |= {key: None for key in inputs if key.startswith(("loss_", "stack_")) and key.endswith("_override")}
            inputs |= {"loss_kernel": "Stock"} if "loss_kernel" in inputs else {}
            inputs["training_stack"] = "Plain loop, transformers 5"
        values: dict[str, Any] = sized.reference(inputs)
        assert values["traced_allocated"] >= values["resident_memory"] + 10 * values["logit_values"]


@pytest.mark.parametrize("name", JOBS)
def test_checkpointing_never_takes_more(name: str) -> None:
    """At the sizes people run; with one token a step a recomputed layer may outweigh what it saves."""
    sized, rng = job(name), random.Random(13)
    for _ in range(round(100 * MANY[name])):
        inputs = random_inputs(sized, rng) | {
            "batch_size": rng.randint(1, 64),
            "sequence_length": rng.randint(64, 4096),
        }
        if sized.reference(inputs)["layer_count"] < 4 or inputs.get("adapter_layers", "all") != "all":
            continue
        plain = sized.reference({**inputs, "activation_checkpointing": "Off"})["traced_allocated"]
        assert sized.reference({**inputs, "activation_checkpointing": "On"})["traced_allocated"] <= plain * 1.001


@pytest.mark.parametrize("name", JOBS)
def test_line_items_add_up_at_the_extremes(name: str) -> None:
    sized, rng = job(name), random.Random(14)
    for _ in range(round(300 * MANY[name])):
        inputs = random_inputs(sized, rng)
        if rng.random() < 0.3:
            inputs |= {"batch_size": 65_536, "sequence_length": rng.choice([1, 1_048_576])}
        values = sized.reference(inputs)
        for family in ("traced", "published"):
            peak = values[f"{family}_allocated"]
            assert abs(values[f"{family}_items"] - peak) <= 1e-12 * peak


STAGES = ("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3", "FSDP full shard")  # each divides what the one before does, and more
STATE = ("base_held", "adapters_held", "gradients_held", "optimizer_held")  # of LoRA, on one card


@pytest.mark.parametrize("stage", [*STAGES, "None", "FSDP hybrid shard"])
def test_more_cards_never_need_more_of_each(stage: str) -> None:
    """From two on: the second brings what cards hold for each other."""
    lora, rng = job("lora"), random.Random(15)
    for _ in range(60):
        inputs = random_inputs(lora, rng) | {"sharding_stage": stage, "gpus_per_node": 8}
        found = [lora.reference({**inputs, "gpu_count": cards}) for cards in (2, 4, 8, 16, 64)]
        for key in (*STATE, *PEAKS, "total_to_size_against"):
            needs = [values[key] for values in found]
            assert all(more <= few * (1 + 1e-12) for few, more in pairwise(needs)), (key, inputs)


@pytest.mark.parametrize("cards", [1, 2, 8, 64])
def test_a_stage_that_divides_more_never_holds_more_state(cards: int) -> None:
    lora, rng = job("lora"), random.Random(16)
    for _ in range(60):
        inputs = random_inputs(lora, rng) | {"gpu_count": cards}
        found = [lora.reference({**inputs, "sharding_stage": stage}) for stage in STAGES]
        held = [sum(values[part] for part in STATE) for values in found]
        assert all(more <= less * (1 + 1e-12) for less, more in pairwise(held)), inputs
        alone = lora.reference({**inputs, "gpu_count": 1})
        assert held[0] == sum(alone[part] for part in STATE)


def test_a_vocabulary_of_32000_decides_a_checkpointed_training_job() -> None:
    training = job("training")
    result = training.size(
        base_model="125M shape (0.134B)", batch_size=64, sequence_length=1024, activation_checkpointing="On"
    )
    assert result["traced_moment"] == 2
    assert result["peak_allocated_gb"] == pytest.approx(29.4137, abs=5e-5)  # as an allocation trace gives it


def test_a_base_in_the_other_16_bit_type_is_not_traced() -> None:
    lora = job("lora")
    for base, compute, traced in (
        ("bf16", "bf16 autocast", 1), ("bf16", "fp16 autocast", 0), ("fp16", "fp16 autocast", 1),
        ("fp16", "bf16 autocast", 0), ("fp32", "fp16 autocast", 1), ("fp32", "bf16 autocast", 1),
        ("nf4 / fp4, block 64, no double quant", "fp16 autocast", 1),
    ):  # fmt: skip
        result = lora.size(base_storage_format=base, compute_precision=compute)
        assert result["traced_available"] == traced
        assert (result["traced_peak_allocated_gb"] == "not traced") is not bool(traced)


def test_k_bit_preparation_of_a_base_that_is_not_quantised_warns() -> None:
    lora = job("lora")
    inputs = {"kbit_preparation": "On", "base_storage_format": "bf16"}
    (warning,) = lora.warnings(lora.size(**inputs), **inputs)
    assert "kbit_preparation is 'On'" in warning and "bf16" in warning
    inputs["base_storage_format"] = "int8 LLM.int8 (bitsandbytes)"
    assert not lora.warnings(lora.size(**inputs), **inputs)

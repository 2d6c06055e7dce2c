"""LoRA over several cards: what each holds, by stage and count; what cards hold for each other; what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest
from strategies import random_inputs

from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import job

LORA = job("lora")
NF4 = "nf4 / fp4, block 64, double quant (nested block 256)"
STAGES = ("None", "DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3", "FSDP full shard", "FSDP hybrid shard")
FSDP, HYBRID = STAGES[5:]
COUNTS = (1, 2, 4, 8, 16, 64)
# A run of fms-acceleration on two A100 (presets/measured/public_runs.csv, H303).
MISTRAL: dict[str, Any] = {
    "base_model": "mistralai/Mistral-7B-v0.1",
    "lora_rank": 16,
    "adapter_targets": "All attention",
    "lora_dropout": "On",
    "batch_size": 4,
    "sequence_length": 4096,
    "uses_autocast": "Off",
    "attention_implementation": "FlashAttention 2",
    "activation_checkpointing": "On",
    "training_stack": "HF Trainer, transformers 4.48",
    "gpu_choice": "NVIDIA A100 SXM4 80GB",
}
STATE = ("base_held", "adapters_held", "optimizer_held", "gradients_held")


def size(*results: str, **inputs: Any) -> dict[str, Any]:
    return LORA.size(results, **inputs)


# -- one card


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("given", [{}, MISTRAL, {**MISTRAL, "base_storage_format": NF4, "uses_autocast": "On"}])
def test_one_card_is_what_it_is_by_any_stage(stage: str, given: dict[str, Any]) -> None:
    wanted = [key for key in LORA.plain_terms if LORA.terms[key].unit in ("bytes", "GB", "text")]
    alone = LORA.size(wanted, **given)
    assert LORA.size(wanted, **given, gpu_count=1, sharding_stage=stage) == alone
    assert alone["bucket_memory"] == alone["gathered_in_layers"] == alone["reserve_for_exchange"] == 0


def test_the_worked_job_stays_what_it_was() -> None:
    assert size("traced_peak_allocated_gb") == {"traced_peak_allocated_gb": pytest.approx(12.79461376, abs=1e-12)}
    assert LORA.defaults()["gpu_count"] == 1 and LORA.defaults()["sharding_stage"] == "None"


# -- several


@pytest.mark.parametrize("unnamed", ["None", "DDP"])
@pytest.mark.parametrize("cards", COUNTS[1:])
def test_without_a_stage_each_card_holds_everything_and_a_copy_of_the_gradients(unnamed: str, cards: int) -> None:
    one = size(*STATE, "resident_memory", "traced_allocated", "adapter_gradients", **MISTRAL)
    several = size(*one, "bucket_memory", **MISTRAL, gpu_count=cards, sharding_stage=unnamed)
    assert {key: several[key] for key in STATE} == {key: one[key] for key in STATE}
    assert several["bucket_memory"] == one["adapter_gradients"]
    assert several["traced_allocated"] - one["traced_allocated"] == pytest.approx(one["adapter_gradients"])


@pytest.mark.parametrize(
    ("stage", "divided"),
    [
        ("ZeRO-1", {"optimizer_held"}),
        ("ZeRO-2", {"optimizer_held", "gradients_held"}),
        ("ZeRO-3", set(STATE)),
        (FSDP, set(STATE)),
    ],
)
def test_a_stage_divides_what_its_row_says(stage: str, divided: set[str]) -> None:
    one = size(*STATE, **MISTRAL)
    eight = size(*STATE, **MISTRAL, gpu_count=8, sharding_stage=stage)
    for part in STATE:
        assert eight[part] == pytest.approx(one[part] / (8 if part in divided else 1), rel=1e-12), part


def test_of_a_quantised_base_cards_divide_the_values_and_each_holds_all_scales() -> None:
    quantised = MISTRAL | {"base_storage_format": NF4, "uses_autocast": "On"}
    one = size("frozen_base_weights", "base_held", "quantised_parameters", "unquantised_parameters", **quantised)
    assert one["frozen_base_weights"] == one["base_held"]
    values = one["quantised_parameters"] / 2 + 2 * one["unquantised_parameters"]
    scales = one["frozen_base_weights"] - values
    assert scales == pytest.approx(one["quantised_parameters"] * (1 / 64 + 4 / (64 * 256)), rel=1e-4)
    for cards in COUNTS:
        held = size("base_held", **quantised, gpu_count=cards, sharding_stage=FSDP)["base_held"]
        assert held == pytest.approx(values / cards + scales, rel=1e-12)


def test_a_hybrid_shard_divides_within_a_node_alone() -> None:
    def base(**inputs: Any) -> float:
        return float(size("base_held", **MISTRAL, **inputs)["base_held"])

    whole = base()
    assert base(gpu_count=64, sharding_stage=HYBRID) == pytest.approx(whole / 8)
    assert base(gpu_count=64, sharding_stage=HYBRID, gpus_per_node=4) == pytest.approx(whole / 4)
    assert base(gpu_count=2, sharding_stage=HYBRID) == base(gpu_count=2, sharding_stage=FSDP)


def test_fsdp_gathers_the_outer_weights_and_a_layer_as_it_is_stored() -> None:
    two = {**MISTRAL, "gpu_count": 2, "sharding_stage": FSDP}
    found = size("gathered_root", "gathered_layer", "gathered_in_layers", "live_weights", **two)
    assert found["gathered_root"] == 2 * 2 * 32_000 * 4096
    layer = 4096 * (4096 * 2 + 1024 * 2) + 3 * 4096 * 14_336
    assert found["gathered_layer"] == pytest.approx(2 * layer, rel=1e-4)
    assert found["gathered_in_layers"] == found["gathered_root"] + found["gathered_layer"]
    assert found["live_weights"] == 0
    packed = size("gathered_layer", "gathered_root", **two | {"base_storage_format": NF4})
    assert packed["gathered_layer"] == pytest.approx(layer / 2, rel=1e-3)
    assert packed["gathered_root"] == found["gathered_root"]
    zero = size("gathered_root", "gathered_layer", "live_weights", **two | {"sharding_stage": "ZeRO-3"})
    assert zero["gathered_root"] == zero["gathered_layer"] == 0
    assert zero["live_weights"] == pytest.approx(2e9)  # stage3_max_live_parameters, 2 bytes each


def test_reentrant_checkpoints_of_fsdp_leave_the_gradient_of_each_layers_input() -> None:
    one = 2 * 4 * 4096 * 4096  # a hidden state in 16 bit
    two = {**MISTRAL, "gpu_count": 2, "sharding_stage": FSDP}
    assert size("boundary_gradients", **two)["boundary_gradients"] == 31 * one
    fused = {**two, "training_stack": "Fused kernels, transformers 4.48"}
    assert size("boundary_gradients", **fused)["boundary_gradients"] == 30 * one
    for other in (
        {"stack_reentrant_override": 0},
        {"training_stack": "HF Trainer, transformers 5"},
        {"activation_checkpointing": "Off"},
        {"sharding_stage": "ZeRO-3"},
        {"gpu_count": 1},
    ):
        assert size("boundary_gradients", **two | other)["boundary_gradients"] == 0


def test_zeros_buckets_are_no_larger_than_what_is_trained() -> None:
    zero = {**MISTRAL, "gpu_count": 4, "sharding_stage": "ZeRO-2"}
    found = size("zero_buckets", "adapter_parameters", **zero)
    assert found["zero_buckets"] == 2 * 2 * found["adapter_parameters"]
    few = size("zero_buckets", **zero, bucket_elements_override=1_000_000)
    assert few["zero_buckets"] == 2 * 2 * 1_000_000


# -- what must hold for any job


def jobs_over(cards: int, count: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [random_inputs(LORA, rng) | {"gpu_count": cards, "gpus_per_node": 8} for _ in range(count)]


def test_items_add_up_over_any_number_of_cards() -> None:
    for cards in COUNTS[1:]:
        for inputs in jobs_over(cards, 60, 3):
            values = LORA.reference(inputs)
            for family in ("traced", "published"):
                peak = values[f"{family}_allocated"]
                assert abs(values[f"{family}_items"] - peak) <= 1e-12 * peak, (family, inputs)


# -- what is refused, and what is said


WRONG = [
    ({"gpu_count": 0}, "gpu_count is 0; it must be a whole number from 1 to 1,048,576"),
    ({"gpu_count": 1.5}, "gpu_count is 1.5; it must be a whole number from 1"),
    ({"gpu_count": "two"}, "gpu_count is"),
    ({"gpus_per_node": 0}, "gpus_per_node is 0"),
    ({"sharding_stage": "ZeRO-4"}, "sharding_stage is"),
    (
        {"gpu_count": 12, "sharding_stage": HYBRID},
        "sharding_stage is 'FSDP hybrid shard' with 12 cards and 8 of them a node; a hybrid shard needs whole nodes: a"
        " multiple of 8 cards",
    ),
]


@pytest.mark.parametrize(("given", "words"), WRONG)
def test_bad_input_is_refused_in_one_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match="^[^\n]*$") as refused:
        LORA.size(["fit_verdict"], **given)
    assert words in str(refused.value)


def said(of: Job, **inputs: Any) -> list[str]:
    return of.warnings(of.size(of.plain_terms, **inputs), **inputs)


def test_what_was_not_measured_is_said() -> None:
    for stage in STAGES:
        told = [text for text in said(LORA, **MISTRAL, gpu_count=2, sharding_stage=stage) if "sharding_stage" in text]
        assert bool(told) is (stage not in (FSDP, HYBRID)), stage
        assert all(len(text.splitlines()) == 1 and stage in text for text in told)
    assert not [text for text in said(LORA, **MISTRAL, sharding_stage="ZeRO-3") if "sharding_stage" in text]


def test_fsdp_and_k_bit_preparation_do_not_go_together() -> None:
    prepared = MISTRAL | {"base_storage_format": NF4, "uses_autocast": "On", "kbit_preparation": "On"}
    (told,) = [text for text in said(LORA, **prepared, gpu_count=2, sharding_stage=FSDP) if "kbit_preparation" in text]
    assert "kbit_preparation is 'On' with sharding_stage 'FSDP full shard'" in told and told.endswith("choose Off")
    assert not [text for text in said(LORA, **prepared) if "kbit_preparation" in text]

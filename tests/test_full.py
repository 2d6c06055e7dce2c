"""Full fine-tuning over one or more cards: figures of the articles, other people's runs, and what must hold of any job."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import job
from sizing_xlsx.presets.catalogue import FULL_INPUTS, load_presets

FULL: Job = job("full")
SIXTEEN = "bf16 params + fp32 master + bf16 grads, AdamW (16 B)"
PURE = "pure bf16 AdamW"
FP32 = "fp32 AdamW"
A100 = "NVIDIA A100 SXM4 80GB"
LLAMA, MISTRAL = "meta-llama/Meta-Llama-3-8B", "mistralai/Mistral-7B-v0.1"
STATE = ("weight_memory", "gradient_memory", "master_memory", "moment_memory", "model_state_per_gpu_gb")
MOMENTS = (
    "loss_forward_moment", "loss_backward_moment", "last_layer_moment", "first_layer_moment", "embedding_moment",
    "optimizer_moment",
)  # fmt: skip


def size(*results: str, **inputs: Any) -> dict[str, Any]:
    return FULL.size(results, **inputs)


# ------------------------------------------------------------------------------------------------ state
def test_the_state_of_seven_billion_parameters_is_four_tensors() -> None:
    found = size(*STATE, base_parameter_count_override=7_000_000_000, gpu_count=1, sharding_stage="None")
    assert [found[key] / 1e9 for key in STATE[:4]] == [14, 14, 28, 56]
    assert found["model_state_per_gpu_gb"] == 112


@pytest.mark.parametrize("cards", [1, 2, 3, 8, 64, 1024])
def test_stages_divide_the_state_as_published(cards: int) -> None:
    expected = {
        "DDP": 112, "ZeRO-1": 28 + 84 / cards, "ZeRO-2": 14 + 98 / cards, "ZeRO-3": 112 / cards,
        "FSDP full shard": 112 / cards,
    }  # fmt: skip
    for stage, state in expected.items():
        found = size(
            "model_state_per_gpu_gb", base_parameter_count_override=7_000_000_000, gpu_count=cards, sharding_stage=stage
        )
        assert found["model_state_per_gpu_gb"] == pytest.approx(state, rel=1e-12)


def test_a_hybrid_shard_stays_within_a_node() -> None:
    one = {"base_parameter_count_override": 7_000_000_000, "sharding_stage": "FSDP hybrid shard", "gpus_per_node": 8}
    assert size("model_state_per_gpu_gb", gpu_count=64, **one)["model_state_per_gpu_gb"] == pytest.approx(14)
    assert size("model_state_per_gpu_gb", gpu_count=8, **one)["model_state_per_gpu_gb"] == pytest.approx(14)


@pytest.mark.parametrize("recipe", FULL.choices("training_recipe"))
def test_every_recipe_holds_its_bytes(recipe: str) -> None:
    row = next(row for row in load_presets().recipe_rows if row["name"] == recipe)
    found = size(*STATE, "base_parameter_count", training_recipe=recipe, gpu_count=1, sharding_stage="None",
                 embedding_in_fp32="Off")  # fmt: skip
    moments = 0 if row["paged"] else row["first_moment_bytes"] + row["second_moment_bytes"]
    held = [row["weight_bytes"], row["gradient_bytes"], row["master_bytes"], moments]
    assert [found[key] / found["base_parameter_count"] for key in STATE[:4]] == pytest.approx(held)


def test_quarter_of_a_billion_parameters_in_fp32_need_4_gb() -> None:
    one = {"base_parameter_count_override": 250_000_000, "gpu_count": 1, "sharding_stage": "None"}
    assert size("model_state_per_gpu_gb", training_recipe=FP32, **one)["model_state_per_gpu_gb"] == 4


@pytest.mark.parametrize(("model", "parameters"), [(MISTRAL, 7_241_732_096), (LLAMA, 8_030_261_248)])
def test_pure_bf16_holds_6_bytes_between_steps_and_10_at_the_peak(model: str, parameters: int) -> None:
    found = size(
        "base_parameter_count", "exact_static_bytes", "optimizer_moment", "resident_memory", base_model=model,
        training_recipe=PURE, gpu_count=1, sharding_stage="None",
    )  # fmt: skip
    assert found["base_parameter_count"] == parameters
    assert found["exact_static_bytes"] == 6 * parameters
    assert found["optimizer_moment"] - found["resident_memory"] == 4 * parameters


def test_fsdp_in_mixed_precision_keeps_fp32_parameters_and_says_so() -> None:
    two = {"training_recipe": PURE, "gpu_count": 2, "sharding_stage": "FSDP full shard"}
    found = size(
        "base_parameter_count", "exact_static_bytes", "model_state", "optimizer_moment", "resident_memory", **two
    )
    half = found["base_parameter_count"] / 2
    assert found["exact_static_bytes"] == 12 * half
    assert found["model_state"] == 16 * half
    assert found["optimizer_moment"] - found["resident_memory"] == (20 - 12) * half
    with pytest.warns(UserWarning, match="FSDP's mixed precision keeps fp32 parameters"):
        FULL.size(**two)
    assert size("exact_static_bytes", uses_autocast="Off", **two)["exact_static_bytes"] == 6 * half


def test_8_bit_optimizers_keep_the_embeddings_moments_in_32_bit() -> None:
    one = {"training_recipe": "bf16 + bnb AdamW8bit / PagedAdamW8bit", "gpu_count": 1, "sharding_stage": "None"}
    with_, without = (
        size("moment_memory", "embedding_parameters", embedding_in_fp32=on, **one) for on in ("On", "Off")
    )
    assert with_["moment_memory"] - without["moment_memory"] == (8 - 2.03125) * with_["embedding_parameters"]
    assert size("moment_memory", paged_optimizer="On", **one)["moment_memory"] == 0


def test_offloading_moves_state_to_the_host() -> None:
    two = {"base_parameter_count_override": 7_000_000_000, "gpu_count": 2, "sharding_stage": "ZeRO-3"}
    found = size(*STATE, "host_memory_gb", "nvme_gb", state_offload="Optimizer to CPU", **two)
    assert found["master_memory"] == found["moment_memory"] == found["nvme_gb"] == 0
    assert found["host_memory_gb"] == pytest.approx(84 * 1.5)
    both = size(*STATE, "host_memory_gb", "nvme_gb", state_offload="Optimizer and parameters to NVMe", **two)
    assert both["weight_memory"] == 0
    assert (both["nvme_gb"], both["host_memory_gb"]) == pytest.approx((98, 4))


# ------------------------------------------------------------------------------------------------ the worked job
def test_the_worked_job_is_the_articles_figure() -> None:
    found = size("published_total_reserved_gb", "nameplate_gb", "gpu_usable_capacity_gb", "published_fits_label")
    assert found["published_total_reserved_gb"] == pytest.approx(84.38, abs=0.005)
    assert found["nameplate_gb"] == pytest.approx(85.9, abs=0.05)
    assert found["gpu_usable_capacity_gb"] == pytest.approx(85.0, abs=0.05)
    assert found["published_fits_label"] == 1


def test_published_activations_have_three_modes() -> None:
    tokens, heads, hidden, layers = 4096, 32, 4096, 32
    modes = [
        ({"attention_implementation": "Eager, scores stored"}, 34 + 5 * heads * tokens / hidden),
        ({}, 34),
        ({"activation_checkpointing": "On"}, 2),
    ]
    for changes, factor in modes:
        inputs = {"activation_checkpointing": "Off", **changes}
        found = size("published_peak_activations", **inputs)["published_peak_activations"]
        assert found == tokens * hidden * layers * factor


# ------------------------------------------------------------------------------------------------ other people's runs
RUNS = load_presets().full_runs


def sized(row: dict[str, Any], *results: str) -> dict[str, Any]:
    inputs = {key: row[key] for key in FULL_INPUTS if row[key] not in (None, "")}
    return size(*results, **inputs)


def test_public_runs_are_predicted() -> None:
    errors = {}
    for row in RUNS:
        if row["measured_gb"]:
            found = sized(row, "traced_allocated", "traced_available")
            assert found["traced_available"], row["id"]
            errors[row["id"]] = found["traced_allocated"] / 1e9 / row["measured_gb"] - 1
    assert len(errors) >= 8
    assert median(map(abs, errors.values())) < 0.001
    assert max(map(abs, errors.values())) < 0.006, errors


def test_runs_that_ran_out_of_memory_do_not_fit() -> None:
    gone = [row for row in RUNS if row["ran_out"]]
    assert len(gone) >= 4
    assert {sized(row, "fit_verdict")["fit_verdict"] for row in gone} == {"does not fit"}


def test_the_band_is_never_under_what_nvidia_smi_showed() -> None:
    shown = [row for row in RUNS if row["shown_gb"]]
    assert len(shown) >= 7
    for row in shown:
        assert sized(row, "nvidia_smi_gb")["nvidia_smi_gb"] >= row["shown_gb"], row["id"]


# ------------------------------------------------------------------------------------------------ any job
@st.composite
def jobs(draw: Any) -> dict[str, Any]:
    stage = draw(st.sampled_from(FULL.choices("sharding_stage")))
    return {
        "base_model": draw(st.sampled_from(FULL.choices("base_model"))),
        "training_recipe": draw(st.sampled_from(FULL.choices("training_recipe"))),
        "sharding_stage": stage,
        "gpu_count": 1 if stage == "None" else draw(st.sampled_from([1, 2, 8, 64])),
        "optimizer_step": draw(st.sampled_from(FULL.choices("optimizer_step"))),
        "loss_kernel": draw(st.sampled_from(FULL.choices("loss_kernel"))),
        "batch_size": draw(st.integers(1, 64)),
        "sequence_length": draw(st.integers(1, 1000)),
        "activation_checkpointing": draw(st.sampled_from(["Off", "On"])),
        "attention_implementation": draw(st.sampled_from(FULL.choices("attention_implementation"))),
        "keeps_model_output": draw(st.sampled_from(["Off", "On"])),
    }


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_items_add_up_and_the_peak_is_a_maximum(inputs: dict[str, Any]) -> None:
    found = size(*MOMENTS, "traced_allocated", "traced_items", "traced_moment", "published_items", "published_allocated",
                 "exact_static_bytes", **inputs)  # fmt: skip
    peak = max(found[key] for key in MOMENTS)
    assert found["traced_allocated"] == peak
    assert found["traced_items"] == pytest.approx(peak, rel=1e-12)
    assert found[MOMENTS[found["traced_moment"] - 1]] == peak
    assert found["published_items"] == pytest.approx(found["published_allocated"], rel=1e-12)
    assert found["exact_static_bytes"] <= peak


@settings(max_examples=25, deadline=None)
@given(jobs(), st.sampled_from([("batch_size", 1), ("sequence_length", 1)]))
def test_the_largest_batch_and_sequence_fit_and_one_more_does_not(
    inputs: dict[str, Any], grown: tuple[str, int]
) -> None:
    key, one = grown
    question = f"largest_{key}"
    answer = size(question, **inputs)[question]
    limit = FULL.constants[f"{key}_limit"].value
    if answer >= 1:
        assert size("headroom_gb", **{**inputs, key: int(answer)})["headroom_gb"] >= -1e-6
    if answer < limit and not (
        key == "sequence_length" and answer >= size("sequence_length_taken", **inputs)["sequence_length_taken"]
    ):
        assert size("headroom_gb", **{**inputs, key: int(answer) + one})["headroom_gb"] < 1e-6


# ------------------------------------------------------------------------------------------------ bad input
@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"gpu_count": 0}, "gpu_count is 0; it must be a whole number from 1"),
        ({"gpu_count": 3, "tensor_parallel": 2}, "gpu_count is 3 with tensor_parallel 2"),
        ({"gpu_count": 64, "pipeline_parallel": 64}, "pipeline_parallel is 64; it must be at most the layers of"),
        ({"training_recipe": "AdamW 12 bit"}, "training_recipe is 'AdamW 12 bit'; it must be one of"),
        ({"gpu_count": 3, "tensor_parallel": 3}, "tensor_parallel is 3; it must divide the attention heads, 32"),
        ({"gpu_count": 4, "expert_parallel": 4}, "expert_parallel is 4; it must divide the experts"),
        ({"gpu_count": 2, "sharding_stage": "None"}, "sharding_stage is 'None' with 2"),
        ({"gpu_count": 3, "sequence_parallel": 3}, "sequence_parallel is 3; it must divide sequence_length"),
        ({"sharding_stage": "DDP", "state_offload": "Optimizer to CPU"}, "ZeRO and FSDP offload"),
        ({"state_offload": "Optimizer and parameters to CPU"}, "parameters can be offloaded where weights are divided"),
        ({"optimizer_step": "in backward", "gradient_accumulation": 2}, "gradients that are dropped in backward"),
        ({"compute_precision": "fp32"}, "its weights compute in 16 bit"),
        ({"gpu_count": 12, "sharding_stage": "FSDP hybrid shard"}, "a hybrid shard needs whole nodes"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(inputs: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match="; ") as raised:
        size("fit_verdict", **inputs)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_degrees_of_parallelism_divide_parameters_and_leave_the_traced_family() -> None:
    whole = size("parameters_held", gpu_count=8, sharding_stage="DDP")["parameters_held"]
    cut = size("parameters_held", "traced_available", gpu_count=8, sharding_stage="DDP", tensor_parallel=8)
    assert (cut["parameters_held"], cut["traced_available"]) == (whole / 8, 0)
    mixture = {"base_model": "mistralai/Mixtral-8x7B-v0.1", "gpu_count": 8, "sharding_stage": "DDP"}
    shared = size("experts_held", expert_parallel=8, **mixture)["experts_held"]
    assert shared == size("experts_held", **mixture)["experts_held"] / 8

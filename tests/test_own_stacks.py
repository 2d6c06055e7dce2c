"""Stacks with model code of their own: the formulas against recorded traces of their steps, and against new ones where
the framework is installed."""

from __future__ import annotations

from typing import Any

import pytest
from own_stacks import LITGPT, LORA, TORCHTUNE, inputs_of, peak, recorded, versions

ROWS = recorded()
PACKAGES = {TORCHTUNE: "torchtune", LITGPT: "litgpt"}
# Blocks of the allocator are larger than the tensors in them, most where scores lie in pieces of 128 tokens.
NEAR = {TORCHTUNE: 0.003, LITGPT: 0.009}
# A coefficient taken back to what the loops of transformers have: some recorded step then comes out wrong.
TAKEN_BACK = [
    (TORCHTUNE, {"loss_forward_bytes": 10}),
    (TORCHTUNE, {"stack_repeats_kv": 0}),
    (TORCHTUNE, {"stack_frees_head_input": 0}),
    (TORCHTUNE, {"position_table_bytes": 0}),
    (TORCHTUNE, {"dequantised_bytes": 2}),
    (LITGPT, {"loss_forward_bytes": 10}),
    (LITGPT, {"loss_backward_bytes": 12}),
    (LITGPT, {"held_score_bytes": 0}),
    (LITGPT, {"stack_repeats_kv": 0}),
    (LITGPT, {"stack_packs_qkv": 0}),
]


def error(row: dict[str, Any], measured: int, **overrides: float) -> float:
    """How far the formula is from a step's peak, as a share of it."""
    inputs = inputs_of(row) | {f"{name}_override": value for name, value in overrides.items()}
    sized = LORA.size(("traced_allocated", "traced_available", "stack_described"), **inputs)
    assert sized["traced_available"] and sized["stack_described"]
    return float(sized["traced_allocated"]) / measured - 1


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_a_recorded_step_is_what_the_formulas_say(row: dict[str, Any]) -> None:
    assert abs(error(row, int(row["peak_allocated_bytes"]))) < NEAR[row["training_stack"]]


@pytest.mark.parametrize(("stack", "coefficient"), TAKEN_BACK)
def test_each_coefficient_is_needed(stack: str, coefficient: dict[str, float]) -> None:
    errors = [
        abs(error(row, int(row["peak_allocated_bytes"]), **coefficient))
        for row in ROWS
        if row["training_stack"] == stack
    ]
    assert max(errors) > NEAR[stack]


def test_layers_of_other_forms_are_those_of_the_frameworks_own_code() -> None:
    """What transformers' class keeps is far from what litgpt's code does; torchtune has no code for them."""
    row = next(row for row in ROWS if row["base_model"] == "phi-1_5")
    inputs = inputs_of(row)
    sizes = {
        stack: LORA.size(("kept_per_token", "stack_described"), **{**inputs, "training_stack": stack})
        for stack in (LITGPT, TORCHTUNE, "HF Trainer, transformers 5")
    }
    assert [size["stack_described"] for size in sizes.values()] == [1, 0, 1]
    assert sizes[LITGPT]["kept_per_token"] < 0.6 * sizes["HF Trainer, transformers 5"]["kept_per_token"]


@pytest.mark.parametrize(
    ("stack", "storage", "told"),
    [
        (TORCHTUNE, "bf16", False),
        (TORCHTUNE, "nf4 / fp4, block 64, no double quant", False),
        (TORCHTUNE, "int8 LLM.int8 (bitsandbytes)", True),
        (LITGPT, "bf16", False),
        (LITGPT, "nf4 / fp4, block 64, no double quant", True),
        (LITGPT, "int8 LLM.int8 (bitsandbytes)", True),
        ("HF Trainer, transformers 5", "int8 LLM.int8 (bitsandbytes)", False),
    ],
)
def test_a_format_that_a_framework_was_not_traced_with_is_told(stack: str, storage: str, told: bool) -> None:
    inputs = {"base_model": "meta-llama/Llama-3.1-8B", "training_stack": stack, "base_storage_format": storage}
    warnings = LORA.warnings(LORA.size(LORA.plain_terms, **inputs), **inputs)
    assert any("has not been traced" in words and stack in words for words in warnings) == told


def test_recorded_steps_have_their_versions() -> None:
    for row in ROWS:
        assert PACKAGES[row["training_stack"]] in row["versions"] and "torch " in row["versions"]


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_a_step_traced_anew_is_what_was_recorded(row: dict[str, Any]) -> None:
    package = PACKAGES[row["training_stack"]]
    pytest.importorskip(package, reason=f"{package} is not installed; its recorded steps are tested in its place")
    found = peak(inputs_of(row))
    assert abs(error(row, found)) < NEAR[row["training_stack"]]
    if versions(row["training_stack"]) == row["versions"]:
        assert found == int(row["peak_allocated_bytes"])

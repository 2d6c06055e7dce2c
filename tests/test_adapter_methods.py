"""Adapter methods beside LoRA: trained parameters and state against PEFT, a trained head against its trace."""

from __future__ import annotations

from typing import Any

import pytest
from strategies import SMALL_DECODER

from sizing_xlsx import lora
from sizing_xlsx.jobs import job
from sizing_xlsx.measure import cpu, models, trace
from sizing_xlsx.measure.run import Run, make_run

torch = pytest.importorskip("torch", reason="torch is not installed; the extra 'test' brings it")

LORA = job("lora")
METHODS = lora.choices("adapter_method")
HEAD, STORED = "Trained head", "Trained head on stored features"
UNTRACED = ("DoRA", "IA3", "Prefix tuning")
# Grouped heads; a head dimension of its own with norms over heads, tied; one matrix for queries, keys, values, tied.
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen3": {"base_model": "Qwen/Qwen3-0.6B", "head_dimension_override": 96},
    "gpt2": {"base_model": "openai-community/gpt2", "kv_heads_override": 4},
}


def sized(run: Run) -> dict[str, Any]:
    return lora.size(None, **{key: value for key, value in run.inputs.items() if key in lora.inputs})


def assert_static_bytes(run: Run) -> None:
    facts, said = cpu.trained(run).facts, sized(run)
    assert facts["trainable_parameters"] == said["adapter_parameters"]
    assert facts["frozen_parameter_bytes"] == said["frozen_base_weights"]
    assert facts["trainable_parameter_bytes"] == said["adapter_weights"]
    assert facts["gradient_bytes"] == said["adapter_gradients"]
    assert facts["optimizer_state_bytes"] == said["optimizer_state"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_and_state_are_those_of_the_real_modules(family: str, method: str) -> None:
    assert_static_bytes(make_run("lora", {**SMALL_DECODER, **FAMILIES[family], "adapter_method": method}))


@pytest.mark.parametrize("method", METHODS)
def test_state_of_an_8_bit_optimizer_is_exact(method: str) -> None:
    """Tensors on both sides of the size below which moments stay in fp32, in whole blocks of 256."""
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed; the extra 'test' brings it")
    wide = {**SMALL_DECODER, "mlp_width_override": 4352, "optimizer_choice": "8-bit Adam", "adapter_method": method}
    assert_static_bytes(make_run("lora", wide))
    if method == "Prefix tuning":
        assert_static_bytes(make_run("lora", {**wide, "virtual_tokens": 3}))
    if method == HEAD:
        assert_static_bytes(make_run("lora", {**wide, "head_outputs": 5}))


@pytest.mark.parametrize(
    "changes",
    [
        {"adapter_method": "DoRA", "adapter_targets": "Query and value", "lora_rank": 3},
        {"adapter_method": "IA3", "adapter_targets": "All MLP", "adapter_layers": 1},
        {"adapter_method": "Prefix tuning", "virtual_tokens": 7, "adapter_storage": "bf16"},
        {"adapter_method": HEAD, "head_outputs": 5, "adapter_storage": "bf16"},
        {"adapter_method": HEAD, "base_storage_format": "fp32"},
        {"adapter_method": STORED, "head_outputs": 700},
    ],
)
def test_the_methods_own_inputs_count(changes: dict[str, Any]) -> None:
    assert_static_bytes(make_run("lora", {**SMALL_DECODER, **changes}))


def test_ia3_on_key_value_down_is_pefts_own_default_for_llama() -> None:
    peft = pytest.importorskip("peft")
    run = make_run("lora", {**SMALL_DECODER, "adapter_method": "IA3", "adapter_targets": "Key, value, down"})
    adapted = peft.get_peft_model(models.base(run), peft.IA3Config(task_type="CAUSAL_LM"))
    assert adapted.get_nb_trainable_parameters()[0] == sized(run)["adapter_parameters"] == 2 * (128 + 128 + 1024)


def test_each_method_by_hand_on_the_worked_job() -> None:
    d, q, kv, ff, layers, words = 2048, 2048, 256, 5632, 22, 32_000
    pairs = [(d, q), (d, kv), (d, kv), (q, d), (d, ff), (d, ff), (ff, d)]
    low_rank = layers * 8 * sum(wide + tall for wide, tall in pairs)
    by_hand = {
        "LoRA": low_rank,
        "DoRA": low_rank + layers * sum(tall for _, tall in pairs),
        "IA3": layers * (q + kv + kv + d + ff + ff + ff),
        "Prefix tuning": 20 * layers * 2 * kv,
        HEAD: words * d,
        STORED: words * d,
    }
    assert {method: lora.size(None, adapter_method=method)["adapter_parameters"] for method in METHODS} == by_hand


def test_a_trained_head_takes_the_place_of_an_untied_one() -> None:
    plain = lora.size(None)
    head = lora.size(None, adapter_method=HEAD, head_outputs=2)
    assert plain["frozen_base_weights"] - head["frozen_base_weights"] == 2 * 32_000 * 2048
    tied = {"base_model": "Qwen/Qwen3-0.6B"}
    kept = lora.size(None, **tied, adapter_method=HEAD)["frozen_base_weights"]
    assert kept == lora.size(None, **tied)["frozen_base_weights"]


def test_with_stored_features_no_base_is_on_the_card() -> None:
    for basis in ("frozen_base_weights", "published_frozen_base"):
        assert lora.size(None, adapter_method=STORED)[basis] == 0
    deep = lora.size(None, adapter_method=STORED, layer_count_override=100)
    for moment in ("traced_allocated", "published_allocated"):
        assert deep[moment] == lora.size(None, adapter_method=STORED)[moment]


def test_inputs_of_another_method_change_nothing() -> None:
    plain = lora.size(None)
    other = lora.size(None, virtual_tokens=999, head_outputs=7)
    assert other == plain
    assert lora.size(None, adapter_method=HEAD) == lora.size(None, adapter_method=HEAD, lora_rank=99, adapter_layers=3)


# ------------------------------------------------------------------------------------------------ traced or not
@pytest.mark.parametrize("method", UNTRACED)
def test_what_is_not_traced_rests_on_the_published_accounting(method: str) -> None:
    found = lora.size(None, adapter_method=method)
    assert found["traced_peak_allocated_gb"] == found["traced_total_reserved_gb"] == "not traced"
    plain = lora.size(None)
    more = found["adapter_parameters"] - plain["adapter_parameters"]
    per_parameter = 4 + 4 + 8 + 2  # weight, gradient, Adam's moments, 16-bit copy
    assert found["published_allocated"] - plain["published_allocated"] == pytest.approx(per_parameter * more, abs=1)
    assert found["peak_allocated_gb"] == found["published_peak_allocated_gb"]


SHAPE: dict[str, Any] = {
    "hidden_size_override": 512,
    "layer_count_override": 3,
    "attention_heads_override": 8,
    "kv_heads_override": 8,
    "head_dimension_override": 64,
    "mlp_width_override": 1536,
    "vocabulary_size_override": 2048,
    "batch_size": 2,
    "sequence_length": 256,
}
FEW, WIDE = {"head_outputs": 16}, {"head_outputs": 20_000, "batch_size": 1, "sequence_length": 64}
CASES: list[tuple[dict[str, Any], int]] = [  # what differs, the moment that decides
    ({"adapter_method": HEAD}, 2),
    ({"adapter_method": HEAD, "keeps_model_output": "Off"}, 2),
    ({"adapter_method": HEAD, **FEW}, 3),
    ({"adapter_method": HEAD, **FEW, "keeps_model_output": "Off", "kv_heads_override": 2}, 3),
    ({"adapter_method": HEAD, **WIDE}, 4),
    ({"adapter_method": HEAD, **WIDE, "gradient_accumulation": 2}, 3),
    ({"adapter_method": HEAD, **WIDE, "adapter_storage": "bf16", "uses_autocast": "Off"}, 4),
    ({"adapter_method": HEAD, "training_stack": "HF Trainer, transformers 5"}, 2),
    ({"adapter_method": STORED}, 1),
    ({"adapter_method": STORED, "keeps_model_output": "Off"}, 1),
    ({"adapter_method": STORED, "activation_checkpointing": "On"}, 1),
    ({"adapter_method": STORED, **WIDE}, 4),
]


@pytest.mark.parametrize(("changes", "moment"), CASES, ids=lambda value: str(value)[:80])
def test_a_trained_heads_peak_is_the_traced_one(changes: dict[str, Any], moment: int) -> None:
    run = make_run("lora", {**SHAPE, **changes})
    traced, said = trace.trace(run), sized(run)
    assert (said["traced_available"], said["traced_moment"]) == (1, moment)
    assert said["traced_allocated"] == pytest.approx(max(traced.peaks.values()), rel=1e-3)
    assert said["traced_reserved"] >= trace.result(run, traced)["peak_reserved_bytes"]


FORMS = LORA.tables["layer_forms"]
TRACED_FORMS = {
    "llama": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "qwen3": "Qwen/Qwen3-0.6B",
    "phi3": "microsoft/phi-4",
    "gpt2": "openai-community/gpt2",
    "gpt_neox": "EleutherAI/pythia-1.4b",
    "olmo2": "allenai/OLMo-2-1124-7B",
    "starcoder2": "bigcode/starcoder2-7b",
    "cohere": "CohereForAI/c4ai-command-r-v01",
    "gemma2": "google/gemma-2-2b",
    "gemma3": "google/gemma-3-1b-it",
}


def test_every_form_that_has_a_forward_list_is_held_against_a_trace() -> None:
    listed = {form for form, width in zip(FORMS.keys, FORMS.columns["forward_working_ff"], strict=True) if width}
    assert listed == set(TRACED_FORMS)
    mixture = lora.size(None, adapter_method=HEAD, base_model="mistralai/Mixtral-8x7B-v0.1")
    assert mixture["traced_peak_allocated_gb"] == "not traced"


@pytest.mark.parametrize("form", TRACED_FORMS)
def test_what_a_frozen_layer_works_on_in_forward(form: str) -> None:
    for hidden, heads, mlp in ((512, 8, 2048), (768, 12, 3200)):
        shape = {"hidden_size_override": hidden, "attention_heads_override": heads, "mlp_width_override": mlp}
        shape["kv_heads_override"] = heads
        run = make_run("lora", {**SHAPE, **shape, **FEW, "base_model": TRACED_FORMS[form], "adapter_method": HEAD})
        said = sized(run)
        assert said["traced_moment"] == 3
        assert said["traced_allocated"] == pytest.approx(max(trace.trace(run).peaks.values()), rel=1e-3)


@pytest.mark.parametrize("method", ["Prefix tuning", HEAD, STORED])
def test_checkpointing_that_has_nothing_to_do_is_told(method: str) -> None:
    assert lora.size(None, adapter_method=method)["method_takes_checkpointing"] == 1
    found = lora.size(None, adapter_method=method, activation_checkpointing="On")
    assert found["method_takes_checkpointing"] == 0
    assert found["traced_available"] == (1 if method == STORED else 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("vary", ["batch_size", "sequence_length"])
def test_the_largest_that_fits_is_the_largest(method: str, vary: str) -> None:
    outputs = {"head_outputs": 3} if method == HEAD else {}
    inputs = {"adapter_method": method, "gpu_choice": "NVIDIA L4", **outputs}
    answer = lora.size([f"largest_{vary}"], **inputs)[f"largest_{vary}"]
    assert answer > 1
    assert lora.size(None, **inputs, **{vary: answer})["fit_verdict"] == "fits"
    assert lora.size(None, **inputs, **{vary: answer + 1})["fit_verdict"] != "fits"

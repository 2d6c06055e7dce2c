"""Storage formats: what a base takes on the card before a step, against figures that others measured or counted."""

from __future__ import annotations

from typing import Any

import pytest

from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import job, make_job
from sizing_xlsx.presets.catalogue import load_presets, with_model
from sizing_xlsx.presets.config import read_config

GIB = 2**30
NESTED = "nf4 / fp4, block 64, double quant (nested block 256)"
PLAIN = "nf4 / fp4, block 64, no double quant"
AWQ = "AWQ int4 g128 (GEMM)"
ROTARY = 18 * 128 * 4  # buffers of the checkpoint's class: one table of frequencies a layer, which is no weight
GEMMA_2B = {
    "model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 8,
    "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384, "vocab_size": 256000,
}  # fmt: skip


def base(sized: Job, **inputs: Any) -> float:
    return float(sized.size(("frozen_base_weights",), **inputs)["frozen_base_weights"])


def test_llama_3_1_8b_in_nf4() -> None:
    lora, model = job("lora"), {"base_model": "meta-llama/Llama-3.1-8B"}
    nested = base(lora, base_storage_format=NESTED, **model)
    assert round(nested / GIB, 2) == 5.31
    assert round(base(lora, base_storage_format=PLAIN, **model) / GIB, 2) == 5.61
    prepared = base(lora, base_storage_format=NESTED, kbit_preparation="On", **model)
    assert (prepared - nested) / GIB == pytest.approx(2, abs=0.05)


def test_fused_experts_stay_as_they_are_and_those_of_older_versions_do_not() -> None:
    lora, mixtral = job("lora"), {"base_model": "mistralai/Mixtral-8x7B-v0.1", "base_storage_format": NESTED}
    wanted = ("quantised_parameters", "base_parameter_count")
    fused = lora.size(wanted, **mixtral)
    assert round(fused["quantised_parameters"] / 1e9, 2) == 1.34
    assert round(fused["base_parameter_count"] / 1e9, 1) == 46.7
    linear = lora.size(wanted, training_stack="HF Trainer, transformers 4.48", **mixtral)
    assert linear["quantised_parameters"] > 46e9


@pytest.mark.parametrize(("head", "published"), [("Off", 3_127_075_840), ("On", 3_399_459_840)])
def test_gemma_2b_in_awq_with_the_rest_in_fp32(head: str, published: int) -> None:
    presets = with_model(load_presets(), read_config(GEMMA_2B | {"_name_or_path": "google/gemma-2b"}))
    lora = make_job("lora", presets)
    inputs = {"base_storage_format": AWQ, "kbit_preparation": "On", "quantised_head": head}
    assert base(lora, base_model="google/gemma-2b", **inputs) + ROTARY == published


def test_gpt_oss_is_published_in_mxfp4_of_its_experts_alone() -> None:
    sized = job("lora").size(
        ("quantised_parameters", "all_expert_parameters"),
        base_model="openai/gpt-oss-20b",
        base_storage_format="mxfp4 block 32, E8M0 scale",
    )
    biases = 24 * 32 * (2 * 2880 + 2880)
    assert sized["quantised_parameters"] == sized["all_expert_parameters"] - biases


@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-0.5B", "mistralai/Mistral-7B-v0.1"])
def test_a_prepared_quantised_base_can_need_more_than_lora(model: str) -> None:
    """Its stream, its MLP and its scores are fp32: on a small model more than the weights that it saves."""
    common = {"base_model": model, "batch_size": 8, "sequence_length": 2048, "adapter_targets": "All attention"}
    peak = {
        name: job("lora").size(("traced_allocated",), **common, **more)["traced_allocated"]
        for name, more in {
            "LoRA": {},
            "QLoRA": {"base_storage_format": NESTED},
            "prepared": {"base_storage_format": NESTED, "kbit_preparation": "On"},
        }.items()
    }
    assert peak["QLoRA"] < peak["LoRA"] < peak["prepared"]

"""Whole training steps of every family: the formulas' peak against the trace of the real step.

Shapes are the published ones with fewer layers, so that each step's widths and vocabulary are real. Blocks of the
allocator are larger than the tensors in them, and the lowest layer keeps a little less than the others, which fewer
layers make more of: hence the tolerance.
"""

from __future__ import annotations

from typing import Any

import pytest

from sizing_xlsx.jobs import job
from sizing_xlsx.measure import trace
from sizing_xlsx.measure.run import make_run

pytest.importorskip("torch", reason="torch is not installed; the extra 'test' brings it")

LORA = job("lora")
STEPS = [  # model, layers, what else the run asks for
    ("Qwen/Qwen3-0.6B", 4, {}),
    ("google/gemma-2-2b", 4, {}),
    ("google/gemma-3-1b-it", 6, {"activation_checkpointing": "On"}),
    ("CohereForAI/c4ai-command-r-v01", 4, {"activation_checkpointing": "On"}),
    ("ibm-granite/granite-3.0-8b-base", 4, {}),
    ("allenai/OLMo-2-1124-7B", 4, {}),
    ("bigcode/starcoder2-7b", 4, {}),
    ("EleutherAI/pythia-1.4b", 4, {"activation_checkpointing": "On"}),
    ("EleutherAI/gpt-neox-20b", 4, {"adapter_targets": "All seven"}),
    ("openai-community/gpt2", 4, {}),
    ("microsoft/Phi-3-mini-4k-instruct", 4, {"activation_checkpointing": "On"}),
    ("Qwen/Qwen3-30B-A3B", 4, {}),
    ("mistralai/Mixtral-8x7B-v0.1", 4, {"activation_checkpointing": "On"}),
    ("deepseek-ai/DeepSeek-V3", 5, {}),
    ("openai/gpt-oss-20b", 4, {"attention_implementation": "Eager, scores stored"}),
    ("HuggingFaceTB/SmolLM3-3B", 4, {}),
]
NF4 = "nf4 / fp4, block 64, double quant (nested block 256)"
PRECISIONS = [
    {"uses_autocast": "Off"},
    {"uses_autocast": "Off", "activation_checkpointing": "On"},
    {"adapter_storage": "bf16"},
    {"base_storage_format": NF4},
    {"base_storage_format": NF4, "kbit_preparation": "On"},
    {"base_storage_format": NF4, "kbit_preparation": "On", "activation_checkpointing": "On"},
    {"base_storage_format": NF4, "kbit_preparation": "On", "uses_autocast": "Off"},
    {"base_storage_format": NF4, "kbit_preparation": "Norms only", "activation_checkpointing": "On"},
]


def compared(fields: dict[str, Any]) -> tuple[float, float]:
    """The traced peak of a run, and what the formulas say of it."""
    run = make_run("lora", {"batch_size": 4, "sequence_length": 512, **fields}, id="step")
    peak = trace.result(run, trace.trace(run, 2))["peak_allocated_bytes"]
    inputs = {key: value for key, value in run.inputs.items() if key in LORA.inputs}
    sized = LORA.size(("traced_allocated", "traced_available"), **inputs)
    assert sized["traced_available"]
    return peak, sized["traced_allocated"]


@pytest.mark.parametrize(("model", "layers", "more"), STEPS, ids=[model.rpartition("/")[2] for model, _, _ in STEPS])
def test_a_step_of_each_family(model: str, layers: int, more: dict[str, Any]) -> None:
    targets = {"adapter_targets": "All attention"}
    peak, predicted = compared({"base_model": model, "layer_count_override": layers} | targets | more)
    assert predicted == pytest.approx(peak, rel=0.006)


@pytest.mark.parametrize("more", PRECISIONS, ids=lambda more: " ".join(str(value)[:10] for value in more.values()))
@pytest.mark.parametrize("targets", ["All seven", "All attention"])
def test_a_step_in_each_precision(targets: str, more: dict[str, Any]) -> None:
    peak, predicted = compared(
        {"layer_count_override": 4, "adapter_targets": targets, "keeps_model_output": "Off"} | more
    )
    assert predicted == pytest.approx(peak, rel=0.006)

"""Whole training steps of every family: the formulas' peak against the trace of the real step.

Shapes are the published ones with fewer layers, so that each step's widths and vocabulary are real. Blocks of the
allocator are larger than the tensors in them, and the lowest layer keeps a little less than the others, which fewer
layers make more of: hence the tolerance.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import job, plain_job
from sizing_xlsx.measure import trace
from sizing_xlsx.measure.run import make_run
from sizing_xlsx.presets.catalogue import load_presets

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
    ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 6, {"activation_checkpointing": "On", "adapter_layers": 2}),
]
ON, DROPPED = {"activation_checkpointing": "On"}, {"keeps_model_output": "Off"}
EAGER = {"attention_implementation": "Eager, scores stored"}
WINDOWS = [  # model, layers, rows, tokens a row, what else the run asks for
    ("google/gemma-3-1b-it", 6, 3, 1000, {}),
    ("google/gemma-2-2b", 4, 3, 4200, {}),
    ("google/gemma-2-2b", 4, 1, 4200, ON),
    ("mistralai/Mistral-7B-v0.1", 3, 1, 4095, {}),
    ("mistralai/Mistral-7B-v0.1", 3, 1, 4096, {}),
    ("mistralai/Mistral-7B-v0.1", 3, 3, 4200, DROPPED),
    ("mistralai/Mistral-7B-v0.1", 3, 3, 4200, ON),
    ("microsoft/Phi-3-mini-4k-instruct", 3, 3, 2047, {}),
    ("bigcode/starcoder2-7b", 3, 3, 4200, {}),
    ("openai/gpt-oss-20b", 4, 3, 512, ON | EAGER),
]
CHECKPOINTED = {"activation_checkpointing": "On"}
OTHER_STEPS = [  # the same of families without a model in the presets: hidden size, MLP width, heads, KV heads, words
    ("phi", (2048, 8192, 32, 32, 51200), {}),
    ("stablelm", (2560, 6912, 32, 32, 50304), CHECKPOINTED),
    ("gpt_bigcode", (2048, 8192, 16, 1, 49280), {}),
    ("opt", (2048, 8192, 32, 32, 50272), {}),
    ("qwen2_moe", (2048, 5632, 16, 16, 151936), {}),
    ("glm4", (4096, 13696, 32, 2, 151552), {}),
    ("olmoe", (2048, 1024, 16, 16, 50304), CHECKPOINTED),
    ("bloom", (1024, 4096, 16, 16, 250880), {**CHECKPOINTED, "attention_implementation": "Eager, scores stored"}),
    ("seed_oss", (5120, 27648, 80, 8, 155136), {}),
    ("ernie4_5", (1024, 3072, 16, 2, 103424), CHECKPOINTED),
    ("arcee", (2560, 18432, 20, 4, 128256), {"adapter_targets": "All seven"}),
    ("exaone4", (5120, 27392, 40, 8, 102400), {}),
    ("phimoe", (4096, 6400, 32, 8, 32064), CHECKPOINTED),
    ("glm4_moe", (4096, 10944, 96, 8, 151552), {}),
    ("deepseek_v2", (2048, 10944, 16, 16, 102400), {}),
    ("llama4_text", (5120, 8192, 40, 8, 202048), {}),
]
FURTHER = {  # what their published files say besides
    "bloom": {"n_layer": 4},
    "seed_oss": {"head_dim": 128},
    "ernie4_5": {"head_dim": 128},
    "arcee": {"head_dim": 128},
    "exaone4": {"sliding_window": 4096, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]},
    "phimoe": {"num_local_experts": 16, "num_experts_per_tok": 2, "lm_head_bias": True, "attention_bias": True},
    "glm4_moe": {"head_dim": 128, "num_experts_per_tok": 8, "attention_bias": True},
    "deepseek_v2": {"q_lora_rank": None, "num_experts_per_tok": 6, "moe_intermediate_size": 1408},
    "llama4_text": {
        "interleave_moe_layer_step": 2,
        "intermediate_size_mlp": 16384,
        "num_local_experts": 128,
        "use_qk_norm": False,
    },
}
FIELDS = {  # of config.json where they are not the usual ones
    "gpt_bigcode": ("n_embd", "n_inner", "n_head", "", "vocab_size"),
    "opt": ("hidden_size", "ffn_dim", "num_attention_heads", "", "vocab_size"),
}
USUAL = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "vocab_size")
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

WINDOWED_PRECISIONS = [
    {"uses_autocast": "Off"},
    {"base_storage_format": NF4},
    {"base_storage_format": NF4, "kbit_preparation": "On", "uses_autocast": "Off"},
    {"base_storage_format": NF4, "kbit_preparation": "Norms only", "activation_checkpointing": "On"},
]


def compared(fields: dict[str, Any], formulas: Job = LORA) -> tuple[float, float]:
    """The traced peak of a run, and what the formulas say of it."""
    run = make_run("lora", {"batch_size": 4, "sequence_length": 512, **fields}, id="step")
    peak = trace.result(run, trace.trace(run, 2))["peak_allocated_bytes"]
    inputs = {key: value for key, value in run.inputs.items() if key in formulas.inputs}
    sized = formulas.size(("traced_allocated", "traced_available"), **inputs)
    assert sized["traced_available"]
    return peak, sized["traced_allocated"]


@pytest.mark.parametrize(("model", "layers", "more"), STEPS, ids=[model.rpartition("/")[2] for model, _, _ in STEPS])
def test_a_step_of_each_family(model: str, layers: int, more: dict[str, Any]) -> None:
    targets = {"adapter_targets": "All attention"}
    peak, predicted = compared({"base_model": model, "layer_count_override": layers} | targets | more)
    assert predicted == pytest.approx(peak, rel=0.006)


@pytest.mark.parametrize(("model", "layers", "rows", "tokens", "more"), WINDOWS)
def test_a_step_with_rows_longer_than_a_window(
    model: str, layers: int, rows: int, tokens: int, more: dict[str, Any]
) -> None:
    fields = {"base_model": model, "layer_count_override": layers, "adapter_targets": "All attention"}
    peak, predicted = compared(fields | {"batch_size": rows, "sequence_length": tokens} | more)
    assert predicted == pytest.approx(peak, rel=0.006)


@pytest.mark.parametrize(
    "more", WINDOWED_PRECISIONS, ids=lambda more: " ".join(str(value)[:10] for value in more.values())
)
def test_a_masked_step_in_each_precision(more: dict[str, Any]) -> None:
    """Masks are in the precision of the kernel, and repeated keys and values only where they are not anyway."""
    fields = {"base_model": "mistralai/Mistral-7B-v0.1", "layer_count_override": 2, "adapter_targets": "All attention"}
    peak, predicted = compared(fields | {"batch_size": 2, "sequence_length": 4200} | more)
    assert predicted == pytest.approx(peak, rel=0.006)


@pytest.mark.parametrize(("kind", "shape", "more"), OTHER_STEPS, ids=[kind for kind, _, _ in OTHER_STEPS])
def test_a_step_of_a_family_by_its_config(
    kind: str, shape: tuple[int, ...], more: dict[str, Any], tmp_path: Path
) -> None:
    config = {"model_type": kind, **dict(zip(FIELDS.get(kind, USUAL), shape, strict=True))}
    config |= {"n_layer" if kind == "gpt_bigcode" else "num_hidden_layers": 4, "bos_token_id": 1, "eos_token_id": 2}
    config |= {"word_embed_proj_dim": shape[0]} if kind == "opt" else {"pad_token_id": 0}
    config |= FURTHER.get(kind, {})
    config.pop("", None)
    (tmp_path / "own.json").write_text(json.dumps(config), encoding="utf-8")
    run = {"config": str(tmp_path / "own.json"), "base_model": "own", "adapter_targets": "All attention"}
    peak, predicted = compared(run | more, plain_job("lora", load_presets(models=[tmp_path / "own.json"])))
    assert predicted == pytest.approx(peak, rel=0.006)


@pytest.mark.parametrize("more", PRECISIONS, ids=lambda more: " ".join(str(value)[:10] for value in more.values()))
@pytest.mark.parametrize("targets", ["All seven", "All attention"])
def test_a_step_in_each_precision(targets: str, more: dict[str, Any]) -> None:
    peak, predicted = compared(
        {"layer_count_override": 4, "adapter_targets": targets, "keeps_model_output": "Off"} | more
    )
    assert predicted == pytest.approx(peak, rel=0.006)

"""What a layer keeps for backward: really trained on the CPU, traced, and by the formulas: the same, tensor by tensor."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from strategies import SMALL_DECODER

from sizing_xlsx import lora, training
from sizing_xlsx.measure import cpu, derive, models, saved, trace
from sizing_xlsx.measure.run import Run, make_run

pytest.importorskip("torch", reason="torch is not installed; the extra 'test' brings it")

BASE = {"vocab_size": 96, "max_position_embeddings": 512, "num_hidden_layers": 3}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama"},
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3"},
    "gemma3": {"model_type": "gemma3_text", "sliding_window": 512, "layer_types": ["full_attention"] * 3},
    "phi3": {"model_type": "phi3", "pad_token_id": 0},
    "gpt2": {"model_type": "gpt2", "attn_pdrop": 0.0, "n_positions": 512},
    "mixtral": {"model_type": "mixtral", "num_local_experts": 5, "num_experts_per_tok": 3, "sliding_window": None},
}
# hidden, heads, KV heads, head, MLP: two shapes that are none of derive's own
SHAPES = ((96, 4, 2, 32, 160), (128, 4, 4, 24, 208))
OPTIONS = list(itertools.product(("Off", "On"), ("all", 2), ("Off", "On")))  # checkpointing, adapter layers, dropout


def config(folder: Path, family: str) -> str:
    path = folder / family
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps({**BASE, **FAMILIES[family]}), encoding="utf-8")
    return str(path)


def run_of(folder: Path, family: str, shape: tuple[int, ...], options: tuple[Any, ...] = ("Off", "all", "Off")) -> Run:
    hidden, heads, kv_heads, head, mlp = shape
    fields = {
        "config": config(folder, family),
        "hidden_size_override": hidden,
        "layer_count_override": 3,
        "attention_heads_override": heads,
        "kv_heads_override": kv_heads,
        "head_dimension_override": head,
        "mlp_width_override": mlp,
        "vocabulary_size_override": 96,
        "batch_size": 2,
        "sequence_length": 64,
        "lora_rank": 7,
        "activation_checkpointing": options[0],
        "adapter_layers": options[1],
        "lora_dropout": options[2],
    }
    return make_run("lora", fields, id=family)


def kept(recording: Any, run: Run) -> dict[int, Counter[tuple[str, str, float]]]:
    """By layer: what is alive at the end of forward. Attention's kernels have names of their own, and a seed on CUDA."""
    prefix = models.layers_of(models.base(run))[0]
    layers = saved.kept_by_layers(saved.alive_after_forward(recording.recorder, recording.marks), prefix, 1)
    out: dict[int, Counter[tuple[str, str, float]]] = {}
    for number, found in layers.items():
        out[number] = Counter()
        for one, times in found.items():
            if one.dtype in ("uint64", "int64") and "attention" in one.operation:
                continue
            operation = "attention" if "scaled_dot_product" in one.operation else one.operation
            out[number][f"{one.module}: {operation}", one.dtype, one.bytes_per_token] += times
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the families' configs lie; one for all tests, so that each run is trained and each list derived once."""
    return tmp_path_factory.mktemp("families")


@lru_cache
def kept_on_cpu(
    folder: Path, family: str, shape: tuple[int, ...], options: tuple[Any, ...] = ("Off", "all", "Off")
) -> dict[int, Counter[tuple[str, str, float]]]:
    """What the layers of a model that is really trained keep."""
    run = run_of(folder, family, shape, options)
    return kept(cpu.trained(run, 1), run)


@lru_cache
def derived(folder: Path, family: str) -> list[derive.LayerList]:
    """The lists of a family."""
    return derive.derive(run_of(folder, family, SHAPES[0]))


@lru_cache
def derived_of(job: str, **fields: Any) -> list[derive.LayerList]:
    """The lists of the worked job, or of one that differs in these fields."""
    return derive.derive(make_run(job, fields))


@pytest.mark.parametrize("shape", SHAPES, ids=("wide", "narrow"))
@pytest.mark.parametrize("family", FAMILIES)
def test_the_cpu_really_keeps_what_the_trace_says(family: str, shape: tuple[int, ...], folder: Path) -> None:
    for options in OPTIONS:
        odd = sum(option not in ("Off", "all") for option in options) % 2
        if odd != SHAPES.index(shape):  # every combination of options at one of the two shapes
            continue
        run = run_of(folder, family, shape, options)
        really, traced = kept_on_cpu(folder, family, shape, options), kept(trace.trace_forward(run), run)
        assert really == traced, (family, options)
        assert any(traced.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_derived_list_holds_at_other_shapes(family: str, folder: Path) -> None:
    lists = derived(folder, family)
    assert not any(found.unsolved for found in lists)
    for shape in SHAPES:
        run = run_of(folder, family, shape)
        widths = derive.widths_of(models.base(run), run)
        really = kept_on_cpu(folder, family, shape)
        for found in lists:
            for layer in found.layers:
                seeds = sum(
                    entry.coefficient * entry.times
                    for entry in found.entries
                    if entry.dtype in ("uint64", "int64") and "attention" in entry.operation
                )
                total = sum(size * times for (_, _, size), times in really[layer].items())
                assert found.bytes(widths, 128) - seeds == total, (family, shape, layer)


# The guide's lists: bytes per token and layer by width, for adapters on every linear module.
GUIDE = {
    "llama": {"d": 18, "q": 6, "kv": 4, "nh": 4, "ff": 8, "rank": 14, "1": 8},
    "qwen2": {"d": 18, "q": 6, "kv": 4, "nh": 4, "ff": 8, "rank": 14, "1": 8},
    "qwen3": {"d": 18, "q": 10, "kv": 8, "nh": 8, "KV heads": 4, "ff": 8, "rank": 14, "1": 8},
    "gemma3": {"d": 26, "q": 10, "kv": 8, "nh": 8, "KV heads": 4, "ff": 8, "rank": 14, "1": 16},
    "phi3": {"d": 12, "q": 6, "kv": 4, "nh": 4, "ff": 8, "rank": 8, "1": 8},
    "gpt2": {"d": 28, "nh": 4, "ff": 16, "rank": 8, "1": 16},
    "mixtral": {
        "d": 14, "q": 6, "kv": 4, "nh": 4, "rank": 8, "1": 12, "experts": 4, "experts per token": 40,
        "experts per token x ff": 6, "experts per token x d": 2,
    },
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_each_familys_coefficients(family: str, folder: Path) -> None:
    inner = next(found for found in derived(folder, family) if 1 in found.layers)
    assert inner.coefficients() == GUIDE[family]


def test_the_formulas_of_lora_have_the_derived_coefficients() -> None:
    inner = next(found for found in derived_of("lora") if 1 in found.layers).coefficients()
    forms = lora.tables["layer_forms"]
    row = forms.keys.index("llama")
    adapters = {"d": 2 * 5, "q": 2, "ff": 2, "rank": 2 * 7}  # a 16-bit copy of each adapter's input, its inner output
    assert inner["d"] == forms.columns["norms_d"][row] + adapters["d"]
    assert inner["1"] == forms.columns["norms_one"][row]
    assert inner["q"] == forms.columns["attention_q"][row] + adapters["q"]
    assert inner["kv"] == forms.columns["attention_kv"][row]
    assert inner["nh"] == forms.columns["attention_nh"][row]
    assert inner["ff"] == forms.columns["mlp_ff"][row] + adapters["ff"]
    assert inner["rank"] == adapters["rank"]


@pytest.mark.parametrize("targets", ["All seven", "Query and value", "All attention", "All MLP"])
@pytest.mark.parametrize("dropout", ["Off", "On"])
def test_a_layers_bytes_by_the_formulas_equal_the_derived_list(targets: str, dropout: str) -> None:
    changes = {"adapter_targets": targets, "lora_dropout": dropout}
    changes = {key: value for key, value in changes.items() if value != lora.inputs[key].default}
    inner = next(found for found in derived_of("lora", **changes) if 1 in found.layers)
    for shape in ((192, 4, 2, 64, 512), (2048, 32, 4, 64, 5632)):
        hidden, heads, kv_heads, head, mlp = shape
        inputs = {
            "hidden_size_override": hidden,
            "attention_heads_override": heads,
            "kv_heads_override": kv_heads,
            "head_dimension_override": head,
            "mlp_width_override": mlp,
            "adapter_targets": targets,
            "lora_dropout": dropout,
        }
        said = lora.size(("layer_activations", "tokens_per_micro_batch"), **inputs)
        widths = {"d": hidden, "q": heads * head, "kv": kv_heads * head, "nh": heads, "ff": mlp, "rank": 8, "1": 1}
        listed = sum(number * widths[width] for width, number in inner.coefficients().items())
        assert said["layer_activations"] == said["tokens_per_micro_batch"] * listed


@pytest.mark.parametrize("precision", ["bf16 autocast", "fp16 autocast", "fp32"])
def test_the_formulas_of_training_have_the_derived_coefficients(precision: str) -> None:
    run = make_run("training", {"compute_precision": precision})
    inner = next(found for found in derive.derive(run) if 1 in found.layers)
    assert not inner.unsolved
    tensors = training.tables["encoder_tensors"]
    row = tensors.keys.index(precision)
    columns = {"d": "hidden_bytes", "ff": "mlp_bytes", "1": "token_bytes", "nh": "head_bytes"}
    assert inner.coefficients() == {width: tensors.columns[name][row] for width, name in columns.items()}


# ------------------------------------------------------------------------------------------------ static bytes


def _sized(run: Run) -> dict[str, Any]:
    job = training if run.job == "training" else lora
    return job.size(None, **{key: value for key, value in run.inputs.items() if key in job.inputs})


@pytest.mark.parametrize("storage", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("optimizer", lora.choices("optimizer_choice"))
def test_static_bytes_of_lora_are_exact(storage: str, optimizer: str) -> None:
    precision = "fp16 autocast" if storage == "fp16" else "bf16 autocast"
    fields = {"base_storage_format": storage, "optimizer_choice": optimizer, "compute_precision": precision}
    run = make_run("lora", {**SMALL_DECODER, **fields})
    facts, said = cpu.trained(run).facts, _sized(run)
    assert facts["frozen_parameter_bytes"] == said["frozen_base_weights"]
    assert facts["trainable_parameter_bytes"] == said["adapter_weights"]
    assert facts["gradient_bytes"] == said["adapter_gradients"]
    assert facts["optimizer_state_bytes"] == said["optimizer_state"]
    assert facts["trainable_parameters"] == said["adapter_parameters"]
    assert facts["parameters"] == said["base_parameter_count"] + said["adapter_parameters"]


@pytest.mark.parametrize("storage", ["no double quant", "double quant (nested", "int8"])
def test_static_bytes_of_a_quantised_base_are_exact(storage: str) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed; the extra 'test' brings it")
    name = next(key for key in lora.choices("base_storage_format") if storage in key)
    wide = {"hidden_size_override": 512, "head_dimension_override": 128, "mlp_width_override": 1024}  # whole blocks
    run = make_run("lora", {**SMALL_DECODER, **wide, "base_storage_format": name})
    assert cpu.trained(run).facts["frozen_parameter_bytes"] == _sized(run)["frozen_base_weights"]


@pytest.mark.parametrize("storage", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", training.choices("optimizer_choice"))
def test_static_bytes_of_training_are_exact(storage: str, optimizer: str) -> None:
    shape = {key: value for key, value in SMALL_DECODER.items() if not key.startswith(("kv_", "head_"))}
    fields = {"parameter_storage": storage, "optimizer_choice": optimizer}
    run = make_run("training", {**shape, **fields})
    facts, said = cpu.trained(run).facts, _sized(run)
    assert facts["parameters"] == said["parameter_count"]
    assert facts["trainable_parameter_bytes"] == said["stored_weights"]
    assert facts["gradient_bytes"] == said["weight_gradients"]
    assert facts["optimizer_state_bytes"] == said["optimizer_state"]


def test_autograd_keeps_what_the_recording_says() -> None:
    """The bytes that autograd's own hooks see, against what stays alive over forward."""
    run = make_run("lora", SMALL_DECODER)
    done = cpu.trained(run, 1)
    layers = kept(done, run)
    listed = sum(size * times for found in layers.values() for (_, _, size), times in found.items())
    assert listed < done.facts["saved_tensor_bytes"] < 1.6 * listed  # the loss and the last norm are outside layers


def test_a_model_too_large_for_this_machine_is_refused_with_both_figures() -> None:
    run = make_run("lora", {"base_model": "meta-llama/Llama-3.1-405B"})
    with pytest.raises(models.CannotRun, match=r"base_model is .*405B.*takes 8\d\d\.\d GB; this machine has"):
        cpu.trained(run)


def test_what_derive_prints() -> None:
    text = derive.report(make_run("lora", {}), derived_of("lora"))
    assert "18 d" in text and "mlp.act_fn, silu, bfloat16" in text
    assert derive.as_json(derived_of("lora")[1])["bytes_per_token"]["d"] == 18

"""Any config.json: old names, parts of parts, experts, windows; exact figures; sentences for what is wrong."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sizing_xlsx import lora, paths
from sizing_xlsx.cli import main
from sizing_xlsx.memory.decoder.counts import counts, parameter_count
from sizing_xlsx.model_report import as_object
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.presets.config import CLASS_DEFAULT, DERIVED, STATED, read_config, read_models
from sizing_xlsx.presets.families import families
from sizing_xlsx.presets.layers import pattern
from sizing_xlsx.presets.quantisation import Quantisation, stored_format

PRESETS = paths.presets_folder()
MODELS = {model.name: model for model in read_models(PRESETS / "models")}
LLAMA = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100,
}  # fmt: skip
MOE = {
    **LLAMA, "model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
    "head_dim": 8,
}  # fmt: skip
# Column of the data file -> term.
TERMS = {
    "total": "base_parameter_count",
    "active": "active_parameters",
    "embedding": "embedding_parameters",
    "head": "head_parameters",
    "experts": "all_expert_parameters",
    "vision": "vision_parameters",
    "query_width": "query_width",
    "kv_values_per_token_per_layer": "kv_values_per_token_per_layer",
    "full_layers": "full_layer_count",
    "windowed_layers": "windowed_layer_count",
}


def rows(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / "data" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fault(source: Any) -> str:
    with pytest.raises(ValueError) as caught:
        read_config(source)
    sentence = str(caught.value)
    assert len(sentence.splitlines()) == 1 and sentence.isprintable() and len(sentence) < 500
    return sentence


# --- exact figures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", rows("model_counts.csv"), ids=lambda row: row["model"])
def test_every_figure_of_every_model_is_exact(row: dict[str, str]) -> None:
    said = counts(MODELS[row["model"]])
    assert {column: said[term] for column, term in TERMS.items() if row[column]} == {
        column: int(row[column]) for column in TERMS if row[column]
    }
    converted = said["convertible_parameters"] + said["vision_convertible_parameters"]
    assert converted == int(row["convertible_with_vision"])


def test_published_counts_are_met_and_what_differs_is_known() -> None:
    published = {row["model"]: row["published_parameters"] for row in load_presets().model_sources}
    said = {name: parameter_count(MODELS[name]) for name, count in published.items() if count}
    assert len(said) == 66
    router_buffers = 58 * 256
    own_head = counts(MODELS["tiiuae/falcon-7b"])["embedding_parameters"]
    assert {name: published[name] - count for name, count in said.items() if count != published[name]} == {
        "deepseek-ai/DeepSeek-V3": router_buffers,
        "deepseek-ai/DeepSeek-R1": router_buffers,
        "tiiuae/falcon-7b": own_head,
    }


@pytest.mark.parametrize(
    ("model", "kv_bytes"),
    [
        ("Qwen/Qwen3-4B", 147_456),
        ("google/gemma-2-9b", 344_064),
        ("mistralai/Mistral-Small-24B-Base-2501", 163_840),
        ("openai/gpt-oss-20b", 49_152),
        ("deepseek-ai/DeepSeek-V3", 70_272),
        ("openai-community/gpt2", 36_864),
        ("Qwen/Qwen2.5-7B", 57_344),
    ],
)
def test_kv_cache_of_a_token(model: str, kv_bytes: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kv_bytes_per_token_bf16"] == kv_bytes


@pytest.mark.parametrize(
    ("config", "parameters"),
    [  # counts as published on the models' pages
        ({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8, "new_decoder_architecture": True, "vocab_size": 65024}, 41_303_293_952),
        ({"model_type": "gpt_bigcode", "n_embd": 2048, "n_layer": 24, "n_head": 16, "n_inner": 8192, "n_positions": 2048, "vocab_size": 49280}, 1_124_886_528),
        ({"model_type": "qwen", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "kv_channels": 128, "intermediate_size": 22016, "vocab_size": 151936}, 7_721_324_544),
        ({"model_type": "chatglm", "hidden_size": 4096, "num_layers": 28, "num_attention_heads": 32, "kv_channels": 128, "ffn_hidden_size": 13696, "padded_vocab_size": 65024, "add_bias_linear": False, "add_qkv_bias": True, "multi_query_attention": True, "multi_query_group_num": 2}, 6_243_584_000),
        ({"model_type": "internlm2", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 92544}, 7_737_708_544),
        ({"model_type": "bloom", "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32, "vocab_size": 250880}, 7_069_016_064),
        ({"model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "ffn_dim": 4096, "vocab_size": 50272, "word_embed_proj_dim": 512, "do_layer_norm_before": False}, 331_196_416),
        ({"model_type": "phi", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "intermediate_size": 8192, "vocab_size": 51200}, 1_418_270_720),
        ({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27, "num_attention_heads": 16, "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "q_lora_rank": None, "vocab_size": 102400}, 15_706_484_224),
        ({"model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 5632, "vocab_size": 151936}, 14_315_784_192),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else str(value),
)  # fmt: skip
def test_shapes_outside_the_catalogue(config: dict[str, Any], parameters: int) -> None:
    assert parameter_count(read_config(config)) == parameters


def test_components_add_up() -> None:
    presets = load_presets()
    for model in MODELS.values():
        found = as_object(model, presets)
        parts = sum(
            v
            for k, v in found.items()
            if k.startswith("parameters_") and k not in ("parameters_total", "parameters_active")
        )
        assert parts == found["parameters_total"], model.name


# --- names, origins, parts --------------------------------------------------------------------------------


def test_each_value_says_where_it_came_from() -> None:
    model = read_config({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100})
    assert model.origins["hidden_size"] == (STATED, "n_embd")
    assert model.origins["maximum_positions"] == (CLASS_DEFAULT, "n_positions")
    assert model.origins["mlp_width"] == (DERIVED, "4 x hidden size") and model.mlp_width == 256
    assert model.origins["qkv_bias"].kind == "fixed by the class"
    assert model.assumed == ("n_positions", "tie_word_embeddings")
    assert (model.tied, model.position_rows) == (1, 1024)


def test_a_class_has_its_own_default_for_tied_embeddings() -> None:
    gemma = {**LLAMA, "model_type": "gemma"}
    assert (read_config(LLAMA).tied, read_config(gemma).tied) == (0, 1)
    assert "tie_word_embeddings" in read_config(gemma).assumed


def test_falcon_has_one_kv_head_whatever_num_kv_heads_says() -> None:
    falcon = {
        "model_type": "falcon",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "vocab_size": 100,
        "num_kv_heads": 8,
    }
    assert read_config(falcon).kv_heads == 1
    assert read_config(falcon | {"multi_query": False}).kv_heads == 8
    assert read_config(falcon | {"new_decoder_architecture": True, "num_kv_heads": 4}).kv_heads == 4
    assert read_config(falcon | {"parallel_attn": False}).layer_norm_vectors == 4
    assert (
        read_config(falcon | {"new_decoder_architecture": True, "num_ln_in_parallel_attn": 1}).layer_norm_vectors == 2
    )


def test_a_language_part_states_only_what_differs_from_its_class() -> None:
    config = {
        "model_type": "gemma3",
        "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024},
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": False},
    }  # fmt: skip
    model = read_config(config)
    assert parameter_count(model) == parameter_count(MODELS["google/gemma-3-4b-it"])
    assert "text_config.num_attention_heads" in model.assumed and model.image_tokens == 256
    assert model.origins["vocabulary_size"] == (CLASS_DEFAULT, "text_config.vocab_size")


def test_a_family_that_is_not_described_is_listed_by_its_language_part_at_any_depth() -> None:
    config = {"model_type": "acme_omni", "thinker_config": {"text_config": {"hidden_size": 64, "num_hidden_layers": 3}}}
    model = read_config(config, unknown="list")
    assert (model.hidden_size, model.layer_count, model.counted) == (64, 3, None)
    assert model.why_not == "family acme_omni is not described: it is not counted"


def test_layer_patterns() -> None:
    assert pattern([False, True, False, True])[:3] == (2, 1, 2)
    assert pattern([True] * 3)[:3] == (1, 0, 3)
    assert pattern([False] * 3) == (0, 0, 0, True)
    assert pattern([False, False, True, False])[:3] == (4, 2, 1)
    assert pattern([True, True, False]) == (0, 0, 2, False)
    assert pattern([]) == (0, 0, 0, True)


def test_experts_that_follow_no_pattern_are_counted_all_the_same() -> None:
    model = read_config(MOE | {"mlp_only_layers": [1]})
    said = counts(model)
    assert (said["moe_layer_count"], said["dense_layer_count"], said["moe_period"]) == (3, 1, 0)
    assert "3 of 4 layers have experts, in no regular pattern" in model.notes[0]
    assert said["all_expert_parameters"] == 3 * 4 * 3 * 64 * 16


def test_dense_and_expert_layers_take_turns() -> None:
    said = counts(read_config(MOE | {"decoder_sparse_step": 2}))
    assert (said["moe_period"], said["moe_offset"], said["moe_layer_count"]) == (2, 1, 2)
    assert said["largest_matrix_parameters"] == 64 * 96
    assert counts(read_config(MOE))["largest_matrix_parameters"] == 64 * 64


def test_chunked_layers_and_those_without_rotation() -> None:
    scout = MODELS["meta-llama/Llama-4-Scout-17B-16E-Instruct"]
    assert (scout.window_kind, scout.sliding_window, scout.full_period, scout.full_offset) == ("chunked", 8192, 4, 3)
    assert scout.image_tokens == 144
    smol = {**LLAMA, "model_type": "smollm3", "num_hidden_layers": 8, "use_sliding_window": True, "sliding_window": 16}
    assert read_config(smol).full_layer_count == 6
    assert read_config(smol | {"no_rope_layers": [1] * 8}).window_kind == "none"


def test_further_prediction_blocks_are_told_and_not_counted() -> None:
    v3 = MODELS["deepseek-ai/DeepSeek-V3"]
    assert v3.prediction_layers == 1 and "not built by transformers, not counted" in v3.notes[0]


@pytest.mark.parametrize(
    ("entry", "read"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, Quantisation("gptq", 4, 128, ())),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "llm_int8_skip_modules": ["lm_head"]}, Quantisation("bitsandbytes", 4, 0, ("lm_head",))),
        ({"load_in_8bit": True}, Quantisation("bitsandbytes", 8, 0, ())),
        ({"quant_method": "fp8", "modules_to_not_convert": ["a", "b"]}, Quantisation("fp8", 8, 0, ("a", "b"))),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}}, "ignore": ["lm_head"]}, Quantisation("compressed-tensors", 4, 32, ("lm_head",))),
        ({"quant_method": "mxfp4"}, Quantisation("mxfp4", 4, 0, ())),
    ],
)  # fmt: skip
def test_how_published_weights_are_stored_is_read_and_counts_stay(entry: dict[str, Any], read: Quantisation) -> None:
    model = read_config(LLAMA | {"quantization_config": entry})
    assert model.quantisation == read and parameter_count(model) == parameter_count(read_config(LLAMA))


BNB4 = {"quant_method": "bitsandbytes", "load_in_4bit": True}
INT4 = {"num_bits": 4, "type": "int", "group_size": 128}


@pytest.mark.parametrize(
    ("entry", "words", "stored"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}, "gptq, 4 bits, groups of 128, act-order", "GPTQ int4 g128 sym/asym"),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "gptq, 4 bits, one group a column", "GPTQ int4, no groups"),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "gptq, 3 bits, groups of 128", ""),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 128}, "awq, 4 bits, groups of 128", "AWQ int4 g128 (GEMM)"),
        (BNB4 | {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}, "bitsandbytes, nf4, 4 bits, double quantisation", "nf4 / fp4, block 64, double quant (nested block 256)"),
        (BNB4 | {"bnb_4bit_quant_type": "fp4"}, "bitsandbytes, fp4, 4 bits", "nf4 / fp4, block 64, no double quant"),
        ({"load_in_8bit": True}, "bitsandbytes, 8 bits", "int8 LLM.int8 (bitsandbytes)"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8, 8 bits, blocks of 128 x 128", "fp8 e4m3 block 128x128, fp32 scales (DeepSeek-V3/R1)"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "fp8, 8 bits, blocks of 64 x 64", ""),
        ({"quant_method": "mxfp4"}, "mxfp4, 4 bits", "mxfp4 block 32, E8M0 scale"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "modelopt, NVFP4, 4 bits", "nvfp4 block 16, E4M3 scale + fp32 global"),
        ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}}, "hqq, 4 bits, groups of 64", ""),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig"}}}, "torchao, Int4WeightOnlyConfig, 4 bits", ""),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": INT4}}}, "compressed-tensors, int, 4 bits, groups of 128", ""),
    ],
)  # fmt: skip
def test_published_weights_are_told_apart_and_have_their_storage_format(
    entry: dict[str, Any], words: str, stored: str
) -> None:
    for field in ("quantization_config", "compression_config"):
        found = read_config(LLAMA | {field: entry}).quantisation
        assert found is not None and (found.words, stored_format(found)) == (words, stored)
    assert not stored or stored in load_presets().storage_formats.keys


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"quant_method": "gptq", "bits": "four"}, 'quantization_config.bits is "four"; it should be a whole number from 1'),
        ({"quant_method": "gptq", "bits": -4}, "quantization_config.bits is -4"),
        ({"quant_method": "gptq", "bits": 0}, "quantization_config.bits is 0"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "group_size is 0; it should be -1 for one group a column"),
        ({"quant_method": "awq", "bits": 7}, "bits is 7; with quant_method awq it should be one of 2, 3, 4, 8"),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": "4"}}}}, 'config_groups.g.weights.num_bits is "4"'),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size is a list; it should be two whole numbers"),
        (BNB4 | {"bnb_4bit_quant_type": "nf8"}, 'bnb_4bit_quant_type is "nf8"; it should be nf4 or fp4'),
        (BNB4 | {"load_in_8bit": True}, "load_in_8bit is true and load_in_4bit is true"),
        (BNB4 | {"bnb_4bit_use_double_quant": "yes"}, 'bnb_4bit_use_double_quant is "yes"; it should be true or false'),
        ({"bits": 4}, "quantization_config.quant_method is missing"),
        ({}, "quantization_config.quant_method is missing"),
    ],
)  # fmt: skip
def test_a_value_that_no_quantisation_takes_is_refused(entry: dict[str, Any], said: str) -> None:
    assert said in fault(LLAMA | {"quantization_config": entry})


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": False}


def test_a_quantised_file_is_sized_as_it_is_stored() -> None:
    model = read_config(LLAMA | {"head_dim": 8, "_name_or_path": "acme/q", "quantization_config": GPTQ})
    found = as_object(model, load_presets())
    linears, columns = 4 * (64 * 64 + 2 * 64 * 16 + 64 * 64 + 3 * 64 * 96), 4 * (6 * 64 + 96)
    rest = found["parameters_total"] - linears
    assert found["static_bytes"]["GPTQ int4 g128 sym/asym"] == linears * (0.5 + 2.5 / 128) + 4 * columns + 2 * rest
    assert found["static_bytes"]["bf16"] == 2 * found["parameters_total"]
    first, second, *_ = found["jobs"]
    assert first["inputs"]["base_storage_format"] == found["published_format"] == "GPTQ int4 g128 sym/asym"
    assert first["results"]["frozen_base_weights"] == found["static_bytes"]["GPTQ int4 g128 sym/asym"]
    told = "the weights of acme/q are published as 'GPTQ int4 g128 sym/asym'"
    assert not first["warnings"] and any(told in warning for warning in second["warnings"])


def test_a_job_on_a_quantised_file_of_your_own_is_told_its_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(LLAMA | {"quantization_config": GPTQ}))
    assert main(["lora", "--model", str(file), "--base-model", "mine", "--lora-rank", "4"]) == 0
    shown = capsys.readouterr()
    assert "Warning: base_storage_format is 'bf16'; the weights of mine are published as 'GPTQ" in shown.out
    assert "is published quantised (gptq, 4 bits, groups of 128): its storage format is GPTQ int4" in shown.err
    file.write_text(json.dumps(LLAMA | {"quantization_config": {"quant_method": "aqlm"}}))
    assert main(["lora", "--model", str(file), "--base-model", "mine"]) == 0
    assert "no storage format here is that of these weights" in capsys.readouterr().err


# --- what contradicts itself ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (LLAMA | {"architectures": ["LlamaModel"]}, "architectures is LlamaModel, whose head is another or none"),
        (LLAMA | {"architectures": ["LlamaForSequenceClassification"]}, "whose head is another or none"),
        (LLAMA | {"architectures": ["GPT2LMHeadModel"]}, "architectures is GPT2LMHeadModel, which is no class of family llama"),
        (LLAMA | {"torch_dtype": "float7"}, 'the type of the published weights is "float7", which is none'),
        (
            MOE | {"model_type": "glm4_moe", "n_routed_experts": 4, "first_k_dense_replace": 9},
            "experts are stated, 4 a layer, and none of the 4 layers has them",
        ),
    ],
)  # fmt: skip
def test_a_field_that_contradicts_what_is_counted_is_noted(config: dict[str, Any], said: str) -> None:
    assert any(said in note for note in read_config(config).notes)


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "LLaMAForCausalLM"])
def test_the_usual_class_of_a_family_is_not_noted(name: str) -> None:
    assert read_config(LLAMA | {"architectures": [name], "torch_dtype": "bfloat16"}).notes == ()


def test_no_model_of_the_catalogue_names_another_class() -> None:
    assert not [model.name for model in MODELS.values() if any("architectures" in note for note in model.notes)]


# --- fields that nobody reads -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [[0.0, float("inf")], float("nan"), {"a": float("-inf")}])
def test_a_number_without_end_in_a_field_that_nobody_reads_passes(value: Any) -> None:
    assert read_config(LLAMA | {"time_step_limit": value}).hidden_size == 64
    assert "is Infinity; it should be a finite number" in fault(LLAMA | {"sliding_window": float("inf")})


def test_the_text_of_a_config_is_no_path_however_long(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", json.dumps(LLAMA | {"note": "x" * 5_000})]) == 0
    assert "llama: family llama" in capsys.readouterr().out


def test_a_config_comes_through_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "fifo"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(json.dumps(LLAMA),))
    writer.start()
    model = read_config(pipe)
    writer.join()
    assert (model.name, model.hidden_size) == ("llama", 64)


def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(json.dumps(LLAMA))
    command = f'"{sys.executable}" -m sizing_xlsx model "{file}" --json | head -1'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "{\n" and done.stderr == ""


# --- what is wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "gemma3", "vision_config": {}}, "text_config is missing; it should hold the config of the language part"),
        ({"model_type": "gemma3", "text_config": [1], "vision_config": {}}, "text_config is a list; it should be an object"),
        ({"model_type": "gemma3", "text_config": {"hidden_size": 64}}, "vision_config is missing"),
        ({"model_type": "gemma3", "text_config": {"hidden_size": "64"}, "vision_config": {}}, 'text_config.hidden_size is "64"'),
        ({"model_type": "gemma3", "text_config": {"num_key_value_heads": 3}, "vision_config": {}}, "text_config.num_key_value_heads is 3; it should divide num_attention_heads, 8"),
        ({"model_type": "gemma3", "text_config": {"model_type": "=1+1"}, "vision_config": {}}, "a name may not begin with = + - @"),
        (MOE | {"num_experts_per_tok": 5}, "num_experts_per_tok is 5; it should be at most num_experts, 4"),
        (MOE | {"mlp_only_layers": [4]}, "mlp_only_layers is a list; it should be a list of layers, each from 0 to 3, and it holds 4"),
        (MOE | {"mlp_only_layers": "1"}, 'mlp_only_layers is "1"; it should be a list of layers'),
        (MOE | {"model_type": "mixtral", "num_local_experts": 0, "num_experts": None}, "num_local_experts is 0; it should be a whole number from 1"),
        (MOE | {"num_experts": -1}, "num_experts is -1; it should be a whole number from 0"),
        (MOE | {"moe_intermediate_size": 0}, "moe_intermediate_size is 0; it should be a whole number from 1"),
        (LLAMA | {"model_type": "gemma2", "layer_types": ["full_attention"]}, "layer_types has 1 entry; it should be a list with one for each of 4 layers"),
        (LLAMA | {"model_type": "qwen3", "layer_types": ["full_attention"] * 3}, "layer_types has 3 entries; it should be a list with one for each of 4 layers"),
        (LLAMA | {"model_type": "gemma2", "layer_types": ["full_attention"] * 3 + ["mamba"]}, 'layer_types holds "mamba"; each should be one of'),
        (LLAMA | {"model_type": "gemma3_text", "sliding_window_pattern": 0}, "sliding_window_pattern is 0; it should be a whole number from 1"),
        (LLAMA | {"model_type": "smollm3", "use_sliding_window": True, "sliding_window": 8, "no_rope_layers": [1]}, "no_rope_layers is a list; it should be a list of 0 and 1, one for each of 4 layers"),
        (LLAMA | {"model_type": "mistral", "sliding_window": -1}, "sliding_window is -1; it should be a whole number from 0"),
        (LLAMA | {"model_type": "phi", "qk_layernorm": 1}, "qk_layernorm is 1; it should be true or false"),
        ({"model_type": "gpt2", "n_embd": 64, "hidden_size": 32, "n_layer": 1, "n_head": 4, "vocab_size": 9}, "hidden_size is 32 and n_embd is 64; they are two names of one figure and should agree"),
        (LLAMA | {"quantization_config": 4}, "quantization_config is 4; it should be an object"),
        (LLAMA | {"quantization_config": {}}, "quantization_config.quant_method is missing; it should be a name"),
        (LLAMA | {"_name_or_path": "x" * 300}, "300 characters long; a name has at most 200"),
        (LLAMA | {"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000; it should be a whole number from 1 to 10,000"),
        ({"model_type": "falcon", "hidden_size": 65, "num_hidden_layers": 1, "num_attention_heads": 8, "vocab_size": 9}, "hidden_size is 65; it should be a multiple of num_attention_heads, 8"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_what_is_right(config: dict[str, Any], said: str) -> None:
    assert said in fault(config)


def test_without_transformers_a_family_that_is_not_described_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, module, None)
    sentence = fault({"model_type": "gptj", "n_embd": 64})
    assert 'model_type is "gptj" and family gptj is not described' in sentence and "is missing" in sentence
    nested = {"model_type": "gemma3", "text_config": {"model_type": "gptj"}, "vision_config": {}}
    assert "its language part, of family gptj, is not described" in fault(nested)


def test_absurd_files_are_refused_quickly(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"a":' * 2_000_000 + "1" + "}" * 2_000_000, encoding="utf-8")
    start = time.process_time()
    assert "is larger than 1,000,000 bytes" in fault(file)
    assert "is nested" in fault('{"model_type": "llama", "a": ' + '{"a":' * 90_000 + "1" + "}" * 90_001)
    assert time.process_time() - start < 1


def test_families_are_data_and_a_wrong_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "families.toml"
    for content, said in (
        ("[a", "is not TOML"),
        ("a = 1", "a is 1; it should be a table"),
        ('[a]\nlike = "b"', 'is like "b"'),
    ):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            families(file)
    own = (PRESETS / "families.toml").read_text(
        encoding="utf-8"
    ) + '\n[acme]\nlike = "llama"\nfixed = { head_bias = 1 }\n'
    (tmp_path / "own.toml").write_text(own, encoding="utf-8")
    model = read_config(LLAMA | {"model_type": "acme"}, known=families(tmp_path / "own.toml"))
    assert parameter_count(model) == parameter_count(read_config(LLAMA)) + 100


# --- speed ------------------------------------------------------------------------------------------------


def test_reading_and_counting_is_quick() -> None:
    content = json.loads((PRESETS / "models" / "deepseek-ai--DeepSeek-V3" / "config.json").read_text(encoding="utf-8"))
    seconds = []
    for _ in range(20):
        start = time.process_time()
        counts(read_config(content))
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.005
    start = time.process_time()
    for model in read_models(PRESETS / "models"):
        counts(model)
    assert time.process_time() - start < 1


def test_reading_loads_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from sizing_xlsx.presets.config import read_config; "
        "from sizing_xlsx.memory.decoder.counts import counts; "
        f"counts(read_config({json.dumps(LLAMA)!r})); "
        "print([m for m in ('torch', 'transformers', 'numpy', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- the command ------------------------------------------------------------------------------------------


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["model", *words]) == 0
    return capsys.readouterr().out


def test_the_command_prints_the_whole_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "Qwen/Qwen2.5-7B")
    assert "family qwen2, 7,615,616,512 parameters" in text
    assert "Hidden size                            3,584  stated: hidden_size" in text
    assert "KV cache in bf16: 57,344 bytes per token." in text
    assert "LoRA, bf16 base: peak" in text and "fits on NVIDIA H100 SXM5 80GB (batch 8, sequence 512)" in text
    assert "QLoRA, 4-bit base: peak" in text


def test_the_command_takes_a_path_text_and_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "acme--one.json"
    file.write_text(json.dumps(LLAMA), encoding="utf-8")
    by_path = json.loads(output(capsys, str(file), "--json"))
    by_text = json.loads(output(capsys, json.dumps(LLAMA), "--json"))
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(LLAMA)))
    by_input = json.loads(output(capsys, "-", "--json"))
    assert by_path["name"] == "acme/one" and by_text == by_input == by_path | {"name": "llama"} | {
        "jobs": by_text["jobs"]
    }
    assert by_path["jobs"][0]["results"]["fit_verdict"] == "fits"
    assert by_path["parameters_total"] == by_path["parameters_active"] == parameter_count(read_config(LLAMA))
    assert by_path["assumed"] == list(read_config(LLAMA).assumed) != []
    assert {"parameters_embedding", "parameters_head", "parameters_experts", "query_width"} < set(by_path)


def test_the_command_says_why_no_job_sizes_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "google/gemma-2-9b")
    assert "21 of 42 layers keep at most 4,096 (sliding)" in text
    own_code = '{"model_type": "internlm2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 100}'
    said = output(capsys, own_code, "--no-derive")
    assert "LoRA, bf16 base: not sized, for the layer form of family internlm2 is not sized yet." in said


def test_the_command_refuses_in_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in ("no/such-model", '{"model_type": "llama"', "[1]"):
        assert main(["model", words]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("hello"))
    assert main(["model", "-"]) == 2
    assert "standard input holds no JSON object" in capsys.readouterr().err


def test_job_figures_are_those_of_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "meta-llama/Llama-3.1-8B", "--json"))
    expected = lora.size(base_model="meta-llama/Llama-3.1-8B")
    assert found["jobs"][0]["results"]["traced_peak_allocated_gb"] == expected["traced_peak_allocated_gb"]

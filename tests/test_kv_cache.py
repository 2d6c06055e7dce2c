"""The KV cache to the byte: published figures a token, and the cache of real models in transformers, token by token."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import job, plain_job
from sizing_xlsx.presets.catalogue import load_presets, with_model
from sizing_xlsx.presets.config import Architecture, read_config

ONE_CLASS = {"short_share": 0, "usual_share": 1, "long_share": 0}
PROMPT, ANSWER, WINDOW = 23, 10, 8
SMALL = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 4, "intermediate_size": 48, "vocab_size": 64,
         "max_position_embeddings": 64}  # fmt: skip
GQA = SMALL | {"num_key_value_heads": 2}
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
TINY: dict[str, dict[str, Any]] = {
    "gpt2, each head its own": {"model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_layer": 3, "n_positions": 64,
                                "vocab_size": 64},
    "gpt_neox": {"model_type": "gpt_neox", **SMALL},
    "llama, each head its own": {"model_type": "llama", **SMALL, "num_key_value_heads": 4},
    "llama, groups": {"model_type": "llama", **GQA},
    "falcon, one KV head": {"model_type": "falcon", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 3,
                            "vocab_size": 64, "multi_query": True, "new_decoder_architecture": False, "alibi": False},
    "deepseek_v3, a latent": {"model_type": "deepseek_v3", **SMALL, "num_key_value_heads": 4, "q_lora_rank": 12,
                              "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8,
                              "n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 1,
                              "topk_group": 1, **MOE},
    "mistral, every layer a window": {"model_type": "mistral", **GQA, "sliding_window": WINDOW},
    "phi3, every layer a window": {"model_type": "phi3", **SMALL, "num_key_value_heads": 4, "sliding_window": WINDOW,
                                   "pad_token_id": 0},
    "starcoder2": {"model_type": "starcoder2", **GQA, "sliding_window": WINDOW},
    "gemma2, every other layer a window": {"model_type": "gemma2", **GQA, "head_dim": 8, "sliding_window": WINDOW},
    "gemma3, five of six, one KV head": {"model_type": "gemma3_text", **SMALL, "num_hidden_layers": 7, "head_dim": 8,
                                         "num_key_value_heads": 1, "sliding_window": WINDOW,
                                         "sliding_window_pattern": 6},
    "gpt_oss": {"model_type": "gpt_oss", **GQA, "head_dim": 8, "sliding_window": WINDOW, "num_local_experts": 4,
                "num_experts_per_tok": 2},
    "llama4, three of four a chunk": {"model_type": "llama4_text", **GQA, "head_dim": 8, "num_local_experts": 2,
                                      "num_experts_per_tok": 1, "intermediate_size_mlp": 48,
                                      "interleave_moe_layer_step": 1, "attention_chunk_size": WINDOW,
                                      "use_qk_norm": True},
    "mixtral": {"model_type": "mixtral", **GQA, "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3": {"model_type": "qwen3", **GQA, "head_dim": 8},
}  # fmt: skip


@lru_cache(maxsize=1)
def tiny() -> tuple[Job, dict[str, Architecture]]:
    presets = load_presets()
    read = {name: read_config(config)._replace(name=name) for name, config in TINY.items()}
    for model in read.values():
        presets = with_model(presets, model)
    return plain_job("serving", presets), read


def kind(model: Architecture) -> tuple[Any, ...]:
    heads = {1: "one", model.attention_heads: "own"}.get(model.kv_heads, "groups")
    return bool(model.kv_latent_width), heads, model.window_kind, bool(model.full_layer_count)


def predicted(sized: Job, model: str, tokens: int, **inputs: Any) -> float:
    lengths = {"usual_prompt_tokens": tokens - 1, "usual_output_tokens": 1, "maximum_length": tokens}
    found = sized.size(
        ["percentile_request_held"], base_model=model, serving_engine="transformers", **ONE_CLASS, **lengths, **inputs
    )
    return float(found["percentile_request_held"])


def measured(config: dict[str, Any]) -> list[int]:
    """Bytes of the cache of one row: after its prompt, and after each token of its answer."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

    torch.manual_seed(0)
    made = AutoConfig.for_model(**config)
    model = AutoModelForCausalLM.from_config(made, dtype=torch.bfloat16).eval()
    cache, found = DynamicCache(config=model.config), []
    ids = torch.randint(0, 64, (1, PROMPT))
    with torch.no_grad():
        for _ in range(1 + ANSWER):
            model(input_ids=ids, past_key_values=cache, use_cache=True)
            found.append(sum(map(_bytes, cache.layers)))
            ids = torch.randint(0, 64, (1, 1))
    return found


def _bytes(layer: Any) -> int:
    parts = [getattr(layer, name, None) for name in ("keys", "values", "conv_states", "recurrent_states")]
    held = [one for part in parts for one in (part.values() if isinstance(part, dict) else [part])]  # states by number
    return sum(tensor.numel() * tensor.element_size() for tensor in held if tensor is not None)


# ------------------------------------------------------------------------------------------------ published figures
@pytest.mark.parametrize(
    ("model", "every_layer", "beyond_window"),
    [
        ("Qwen/Qwen3-4B", 147_456, 147_456),
        ("google/gemma-2-9b", 344_064, 172_032),
        ("mistralai/Mistral-Small-24B-Base-2501", 163_840, 163_840),
        ("deepseek-ai/DeepSeek-V3", 70_272, 70_272),
        ("openai-community/gpt2", 36_864, 36_864),
        ("Qwen/Qwen2.5-7B", 57_344, 57_344),
    ],
)
def test_bytes_of_a_token(model: str, every_layer: int, beyond_window: int) -> None:
    results = ["kv_cache_bytes_per_token", "kv_cache_bytes_per_token_windowed"]
    short = {"maximum_length": 1000, "usual_prompt_tokens": 1, "usual_output_tokens": 1, **ONE_CLASS}
    found = job("serving").size(results, base_model=model, **short)
    assert [found[key] for key in results] == [every_layer, beyond_window]
    half = job("serving").size(results, base_model=model, kv_format="fp8", **short)
    assert [half[key] * 2 for key in results] == [every_layer, beyond_window]


def test_the_window_of_gpt_oss_halves_its_cache() -> None:
    found = job("serving").size(
        ["kv_batch_every_layer_gb", "kv_batch_needed_gb"], base_model="openai/gpt-oss-20b", concurrent_users=32,
        usual_prompt_tokens=8000, usual_output_tokens=192, **ONE_CLASS,
    )  # fmt: skip
    assert found["kv_batch_every_layer_gb"] * 1e9 / 2**30 == 12
    assert found["kv_batch_needed_gb"] * 1e9 / 2**30 == pytest.approx(6.09, abs=0.005)


def test_an_engine_that_ignores_windows_takes_what_every_layer_would() -> None:
    inputs = {"base_model": "google/gemma-2-9b", "usual_prompt_tokens": 7000, "usual_output_tokens": 1000, **ONE_CLASS}
    results = [
        "kv_batch_every_layer_gb",
        "kv_batch_needed_gb",
        "kv_batch_reserved_gb",
        "engine_knows_windows",
        "concurrency",
        "concurrency_by_need",
    ]
    old = job("serving").size(results, serving_engine="vLLM 0.6", **inputs)
    assert old["kv_batch_reserved_gb"] == old["kv_batch_every_layer_gb"] > old["kv_batch_needed_gb"]
    assert not old["engine_knows_windows"]
    new = job("serving").size(results, serving_engine="vLLM 0.11", maximum_batched_tokens=512, **inputs)
    assert new["kv_batch_needed_gb"] < new["kv_batch_reserved_gb"] < new["kv_batch_every_layer_gb"]
    assert new["concurrency"] < new["concurrency_by_need"]
    assert new["engine_knows_windows"]


def test_a_request_takes_whole_blocks() -> None:
    tokens = {"usual_prompt_tokens": 16, "usual_output_tokens": 1, **ONE_CLASS}
    found = job("serving").size(["percentile_request_held"], **tokens)["percentile_request_held"]
    assert found == 32 * 131_072
    assert job("serving").size(["percentile_request_held"], block_tokens=1, **tokens)["percentile_request_held"] == (
        17 * 131_072
    )


# ------------------------------------------------------------------------------------------------ real caches
def test_the_tiny_models_are_of_every_attention_kind_of_the_catalogue() -> None:
    _, read = tiny()
    assert {kind(model) for model in load_presets().sized_models} <= {kind(model) for model in read.values()}


@pytest.mark.parametrize("name", TINY)
def test_the_cache_of_a_real_model_has_the_predicted_bytes(name: str) -> None:
    sized, _ = tiny()
    expected = [predicted(sized, name, PROMPT + more) for more in range(1 + ANSWER)]
    assert measured(TINY[name]) == expected


def test_recurrent_layers_keep_a_state_and_no_tokens() -> None:
    config = {
        "model_type": "qwen3_next", **GQA, "head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
        "linear_key_head_dim": 8, "linear_value_head_dim": 4, "linear_conv_kernel_dim": 4, "num_experts": 4,
        "shared_expert_intermediate_size": 16, "decoder_sparse_step": 1, **MOE,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    }  # fmt: skip
    sized, _ = tiny()
    state = {
        "recurrent_layers": 3, "recurrent_state_values": 4 * 8 * 4, "convolution_values": (2 * 2 * 8 + 4 * 4) * 4,
        "recurrent_value_bytes": 4,
    }  # fmt: skip
    expected = [predicted(sized, "qwen3", PROMPT + more, **state) for more in range(1 + ANSWER)]
    assert measured(config) == expected
    assert expected[1] - expected[0] == 2 * 2 * 8 * 2  # of the one layer with attention

"""Every count equals that of the class which transformers builds: for each model of the catalogue, for random shapes
of each family, for whole classes with an image tower, and for families that are not described."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from sizing_xlsx import paths
from sizing_xlsx.memory.decoder.counts import counts
from sizing_xlsx.model_report import as_object
from sizing_xlsx.presets import meta
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.presets.config import CLASS_DEFAULT, read_config
from sizing_xlsx.presets.families import Family, families

torch = pytest.importorskip("torch", reason="torch is not installed; the extra 'test' brings it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; the extra 'test' brings it")
MODELS = paths.presets_folder() / "models"
FAMILIES = families()
OWN_CODE = ("qwen", "baichuan", "chatglm", "internlm2", "kimi_k2")  # not in transformers: nothing to hold them against
ONLY_NESTED = ("qwen2_vl_text", "qwen2_5_vl_text")
COMPARED = (
    "embedding_parameters",
    "head_parameters",
    "all_expert_parameters",
    "convertible_parameters",
    "convertible_modules",
)


def differences(config: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """What transformers builds and what the formulas say, where the two differ."""
    model, made = meta.build(config, torch, transformers)
    said = counts(read_config(config))
    text = made.get_text_config(decoder=True)
    built = meta.components(model, torch, text)
    built["base_parameter_count"] = sum(parameter.numel() for parameter in model.parameters())
    said["norm_parameters"] += said["outer_norm_parameters"]
    compared = ("base_parameter_count", *COMPARED, *(("norm_parameters",) if not said["vision_parameters"] else ()))
    found = {key: (built[key], said[key]) for key in compared if built[key] != said[key]}
    linear = [
        module
        for path, module in model.named_modules()
        if type(module) is torch.nn.Linear and ".layers." in path and "vision" not in path and "visual" not in path
    ]
    if linear and text.model_type != "gpt2":
        measured = {
            "largest_matrix_parameters": max(module.weight.numel() for module in linear),
            "convertible_output_rows": sum(module.out_features for module in linear),
        }
        found |= {key: (value, said[key]) for key, value in measured.items() if value != said[key]}
    if said["vision_parameters"]:
        everywhere = sum(
            module.weight.numel()
            for path, module in model.named_modules()
            if type(module) is torch.nn.Linear and "lm_head" not in path
        )
        ours = said["convertible_parameters"] + said["vision_convertible_parameters"]
        found |= {"vision_convertible_parameters": (everywhere, ours)} if everywhere != ours else {}
    return found


# --- the catalogue ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", sorted(MODELS.glob("*--*")), ids=lambda folder: folder.name)
def test_a_model_of_the_catalogue_is_counted_as_its_class_is_built(folder: Path) -> None:
    assert differences(json.loads((folder / "config.json").read_text(encoding="utf-8"))) == {}


# --- random shapes ----------------------------------------------------------------------------------------


def random_config(name: str, family: Family, rng: random.Random) -> dict[str, Any]:
    """A small config of a family in which fields, biases, switches and the layers' make-up vary."""
    config: dict[str, Any] = {"model_type": name, "pad_token_id": None}

    def put(ours: str, *values: Any) -> None:
        if family.names.get(ours):
            config[rng.choice(family.names[ours][:1])] = rng.choice(values)

    heads, width = rng.choice([4, 8, 12]), rng.choice([8, 16, 32])
    # Norms over heads of another width than hidden size / heads exist in no checkpoint: the classes contradict themselves.
    own_width = bool(family.names.get("head_dimension")) and name not in ("phi", "olmoe") and rng.random() < 0.7
    if own_width or name == "ministral":
        put("head_dimension", width)
    put("hidden_size", heads * (rng.choice([8, 24]) if own_width else width))
    put("attention_heads", heads)
    put("layer_count", 1, 2, 3, 5, 7)
    put("kv_heads", 1, 2, 4)
    put("mlp_width", 40, 64, 96)
    put("vocabulary_size", 100, 128, 1000)
    put("maximum_positions", 64)
    for ours in ("tied", "qkv_bias", "output_bias", "mlp_bias"):
        if rng.random() < 0.6:
            put(ours, True, False)
    for field, default in family.switches.items():
        if rng.random() < 0.7:
            if isinstance(default, bool):
                config[field] = rng.random() < 0.5
            elif isinstance(default, int):
                config[field] = rng.choice([1, 2])
    if name == "falcon":
        config["num_kv_heads"] = rng.choice([1, 2, 4])
    put("expert_count", 4, 8)
    put("experts_per_token", 1, 2)
    put("expert_width", 16, 24)
    put("shared_expert_width", 16, 32)
    put("shared_experts", 1, 2)
    put("query_latent_width", None, 12, 24)
    put("kv_latent_width", 20)
    put("rope_dimension", 8)
    put("plain_dimension", 16)
    put("value_head_dimension", 8, 24)
    put("embedding_width", 16, 32)
    if "deepseek" in name or name == "glm4_moe":
        config |= {"first_k_dense_replace": rng.choice([0, 1, 3]), "n_group": 1, "topk_group": 1}
    if family.experts.get("rule") == "sparse_step":
        config |= {"decoder_sparse_step": rng.choice([1, 2, 3]), "mlp_only_layers": rng.choice([[], [0]])}
    if family.experts.get("rule") == "interleaved":
        config["interleave_moe_layer_step"] = rng.choice([1, 2])
    return config


@pytest.mark.parametrize("name", [name for name in FAMILIES.decoders if name not in (*OWN_CODE, *ONLY_NESTED)])
def test_random_shapes_of_a_family_are_counted_as_its_class_is_built(name: str) -> None:
    rng = random.Random(name)
    for _ in range(6):
        config = random_config(name, FAMILIES.decoders[name], rng)
        assert differences(config) == {}, config


VISION: dict[str, dict[str, Any]] = {
    "gemma3": {"model_type": "siglip_vision_model", "intermediate_size": 48, "num_hidden_layers": 2, "image_size": 28},
    "mistral3": {"model_type": "pixtral", "intermediate_size": 48, "num_hidden_layers": 3, "image_size": 56},
    "llama4": {
        "model_type": "llama4_vision_model", "intermediate_size": 64, "num_hidden_layers": 2, "image_size": 56,
        "projector_input_dim": 40, "projector_output_dim": 40, "vision_output_dim": 40,
    },
    "qwen2_vl": {"model_type": "qwen2_vl", "depth": 2, "embed_dim": 32, "num_heads": 4},
    "qwen2_5_vl": {"model_type": "qwen2_5_vl", "depth": 2, "intermediate_size": 40, "num_heads": 4, "out_hidden_size": 64},
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES.wrappers)
def test_whole_classes_are_counted_with_their_towers(name: str) -> None:
    rng = random.Random(name)
    wrapper = FAMILIES.wrappers[name]
    for at in range(6):
        text = random_config(wrapper.text, FAMILIES.decoders[wrapper.text], rng)
        tower = {**VISION[name], "hidden_size": 32, "num_attention_heads": 4, "patch_size": 14}
        config: dict[str, Any] = {"model_type": name, "text_config": text, "vision_config": tower}
        if name == "gemma3" and at % 2:
            tower["vision_use_head"] = False
        if name == "mistral3" and at % 2:
            config |= {"multimodal_projector_bias": True, "vision_feature_layer": [-1, -2]}
        if rng.random() < 0.7:
            config["tie_word_embeddings"] = rng.random() < 0.5
        if wrapper.flat and at % 2:
            config = {**text, **{key: value for key, value in config.items() if key != "text_config"}}
        assert differences(config) == {}, config


# --- class defaults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in FAMILIES.decoders if name not in OWN_CODE])
def test_defaults_are_those_of_the_configuration_class(name: str) -> None:
    family = FAMILIES.decoders[name]
    made = transformers.AutoConfig.for_model(name)
    heads = made.num_attention_heads
    follows = {
        "kv_heads": heads, "head_dimension": made.hidden_size // heads, "mlp_width": 4 * made.hidden_size,
        "embedding_width": made.hidden_size, "expert_width": getattr(made, "intermediate_size", 0),
    }  # fmt: skip
    for ours, spellings in family.names.items():
        if not spellings or ours in ("activation", "sliding_window", "prediction_layers"):
            continue
        theirs = next((getattr(made, field) for field in spellings if hasattr(made, field)), None) or 0
        default = family.defaults.get(ours, 0)
        assert theirs in (default, default or follows.get(ours, 0)), ours
    if family.windows.get("rule", "none") != "none" and "switch" not in family.windows:
        window = getattr(made, family.windows.get("window", "sliding_window"))
        assert (window or 0) == family.defaults["sliding_window"]
    for field, value in family.switches.items():
        assert (getattr(made, field) or 0) == value, field


@pytest.mark.parametrize(
    "name", [name for name, family in FAMILIES.decoders.items() if family.windows.get("layer_types")]
)
def test_layers_with_a_window_are_those_of_the_configuration_class(name: str) -> None:
    rng = random.Random(name)
    for _ in range(8):
        config = random_config(name, FAMILIES.decoders[name], rng)
        config |= {"use_sliding_window": rng.random() < 0.7, "max_window_layers": rng.choice([0, 1, 2, 9])}
        if rng.random() < 0.5:
            config |= {"sliding_window": 16, "attention_chunk_size": 16}
        if FAMILIES.decoders[name].windows.get("field") == "sliding_window_pattern" and rng.random() < 0.5:
            config["sliding_window_pattern"] = rng.choice([2, 3])
        made = transformers.AutoConfig.for_model(name, **{k: v for k, v in config.items() if k != "model_type"})
        model = read_config(config)
        full = [layer for layer, kind in enumerate(made.layer_types) if kind == "full_attention"]
        assert model.full_layer_count == len(full), config
        if model.full_period:
            assert model.full_offset is not None and model.layer_count is not None
            assert full == list(range(model.full_offset, model.layer_count, model.full_period))
        else:
            assert not full or any("no regular pattern" in note for note in model.notes)


# --- families that are not described ----------------------------------------------------------------------


def test_a_family_that_is_not_described_is_built_and_counted() -> None:
    config = {"model_type": "gptj", "n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8, "vocab_size": 100}
    model = read_config(config | {"auto_map": {"AutoConfig": "evil--x"}, "_name_or_path": "acme/j"})
    said = counts(model)
    by_hand = 100 * 64 + (100 * 64 + 100) + 2 * (12 * 64 * 64 + 5 * 64 + 2 * 64) + 2 * 64
    assert said["base_parameter_count"] == by_hand and said["kv_values_per_token_per_layer"] == 128
    assert (model.name, model.layer_count, model.kv_heads) == ("acme/j", 2, 4)
    assert model.assumed == ("max_position_embeddings",)
    assert model.origins["maximum_positions"].kind == CLASS_DEFAULT
    assert model.layer_form == "" and model.why_not == "family gptj is not described: it is counted, not sized"


def test_a_described_family_built_agrees_with_its_formulas() -> None:
    config = json.loads((MODELS / "mistralai--Mixtral-8x7B-v0.1" / "config.json").read_text(encoding="utf-8"))
    built, said = counts(meta.built(config, "here", "x", "for the test")), counts(read_config(config))
    for key in ("base_parameter_count", "active_parameters", "kv_values_per_token_per_layer", "query_width", *COMPARED):
        assert built[key] == said[key]


SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 100}
LATENT = {"kv_lora_rank": 16, "q_lora_rank": None, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16}
TYPES = ["sliding_attention", "full_attention"]
GEMMA3N = {
    "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 100, "laurel_rank": 4, "head_dim": 16,
    "intermediate_size": [96] * 4, "layer_types": TYPES * 2, "activation_sparsity_pattern": [0.0] * 4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "values", "layers"),
    [
        # the KV latent and the rotated part of the keys, whatever the heads
        ({**SMALL, **LATENT, "model_type": "youtu", "num_hidden_layers": 2}, 2 * 24, 2),
        # layers that share the keys of another keep none
        ({**SMALL, **GEMMA3N, "model_type": "gemma3n_text", "num_hidden_layers": 4, "num_key_value_heads": 2, "num_kv_shared_layers": 2}, 2 * 2 * 32, 2),
        # no layer keeps a token
        ({"model_type": "mamba", "hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 100}, 0, 0),
        # one layer of three attends
        ({**SMALL, "model_type": "recurrent_gemma", "num_hidden_layers": 3, "num_key_value_heads": 1, "lru_width": 64, "block_types": ["recurrent", "recurrent", "attention"]}, 2 * 16, 1),
        # fused queries, keys and values
        ({"model_type": "mpt", "d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 100}, 2 * 128, 2),
    ],
    ids=lambda value: value.get("model_type") if isinstance(value, dict) else None,
)  # fmt: skip
def test_keys_and_values_are_read_from_the_projections(config: dict[str, Any], values: int, layers: int) -> None:
    counted = read_config(config).counted
    assert counted is not None
    assert (counted["kv_values_per_token"], counted["attention_layer_count"]) == (values, layers)


def test_a_latent_head_has_both_parts_and_a_reader_learns_why_there_is_no_cache() -> None:
    model = read_config({**SMALL, **LATENT, "model_type": "youtu", "num_hidden_layers": 2})
    assert (model.head_dimension, model.origins["head_dimension"].place) == (24, "qk_rope_head_dim + qk_nope_head_dim")
    state = {"model_type": "mamba", "hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 100}
    found = as_object(read_config(state), load_presets())
    assert found["kv_bytes_per_token_bf16"] == 0


def test_figures_in_parts_of_a_config_are_read() -> None:
    config = {
        "model_type": "dbrx", "d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 100,
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 10000.0},
        "ffn_config": {"ffn_hidden_size": 48, "moe_num_experts": 4, "moe_top_k": 2},
    }  # fmt: skip
    model = read_config(config)
    assert (model.kv_heads, model.expert_count, model.experts_per_token, model.mlp_width) == (2, 4, 2, 48)
    assert model.origins["kv_heads"] == ("stated", "attn_config.kv_n_heads")
    counted = model.counted
    assert counted is not None and counted["active_parameters"] < counted["base_parameter_count"]
    assert "ffn_config.moe_num_experts" in read_config({**config, "ffn_config": None}).assumed


def test_cross_attention_is_built_and_counted() -> None:
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100, "n_positions": 32}
    plain, crossed = counts(read_config(config)), counts(read_config(config | {"add_cross_attention": True}))
    more = 2 * (64 * 64 + 64 + 64 * 128 + 128 + 64 * 64 + 64 + 2 * 64)
    assert crossed["base_parameter_count"] == plain["base_parameter_count"] + more


def test_another_class_and_another_tying_are_noted_where_a_model_is_built() -> None:
    notes = read_config({"model_type": "gptj", "n_embd": 64, "n_layer": 1, "n_head": 4, "rotary_dim": 8, "vocab_size": 9,
                         "architectures": ["GPTJForSequenceClassification"]}).notes  # fmt: skip
    assert any("architectures is GPTJForSequenceClassification: counted as GPTJForCausalLM" in note for note in notes)


@pytest.mark.parametrize("stub", ["raise RuntimeError('broken build')", "x = 1"])
def test_an_installation_that_does_not_work_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stub: str
) -> None:
    (tmp_path / "transformers.py").write_text(stub)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "transformers")
    with pytest.raises(ValueError, match="they do not work: ") as caught:
        read_config({"model_type": "gptj", "n_embd": 64, "n_layer": 1, "n_head": 4, "vocab_size": 9})
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"model_type": "no_such_family", "hidden_size": 8},
            "it should be a family that presets/families.toml describes",
        ),
        ({"model_type": "GPT-J", "n_embd": 64}, "did you mean gptj?"),
        (
            {"model_type": "x_chat", "llm_config": {"model_type": "qwen2"}},
            "its language part, llm_config, is of family qwen2",
        ),
        (
            {**SMALL, "model_type": "nemotron", "num_key_value_heads": 3},
            "num_key_value_heads is 3; it should divide num_attention_heads, 4",
        ),
        (
            {"model_type": "nemotron", "hidden_size": 64, "num_hidden_layers": 2},
            "num_attention_heads, vocab_size, intermediate_size not stated",
        ),
        (
            {**SMALL, "model_type": "jamba", "num_attention_heads": 0},
            "num_attention_heads is 0; it should be a whole number of at least 1",
        ),
        (
            {**SMALL, "model_type": "nemotron", "num_hidden_layers": "x"},
            'num_hidden_layers is "x"; it should be a whole number',
        ),
        (
            {**SMALL, "model_type": "bert", "num_hidden_layers": 2},
            "whose models read in both directions and write nothing",
        ),
        ({"model_type": "gptj"}, "neither its width nor its number of layers is stated"),
        ({"model_type": "t5", "d_model": 64}, "it has an encoder"),
        ({"model_type": "gptj", "n_layer": 5000}, "n_layer is 5000; a family that is not described is built"),
        ({"model_type": "vit", "hidden_size": 64}, "it has no class for text generation there"),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_sentence(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_config(config)
    assert said in str(caught.value) and len(str(caught.value).splitlines()) == 1

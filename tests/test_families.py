"""Layer forms: what each layer of each family keeps, traced at shapes of its own, against its row in layer_forms.toml."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from form_sums import Layer, adapter_bytes, adapter_parameters, layer_bytes, value

from sizing_xlsx.measure import derive, models, saved, trace
from sizing_xlsx.measure.run import Run, make_run, model_folder
from sizing_xlsx.presets import layer_forms
from sizing_xlsx.presets.layer_forms import LayerForm

torch = pytest.importorskip("torch", reason="torch is not installed; the extra 'test' brings it")

FORMS = layer_forms.read_layer_forms()
# Two shapes, none of derive's own: hidden, heads, KV heads, head, MLP, experts, experts per token, rank, sequence, batch
SHAPES = ((160, 5, 1, 40, 336, 4, 3, 5, 192, 3), (288, 6, 6, 16, 496, 6, 2, 9, 128, 2))
GROUPED = (288, 6, 2, 16, 496, 6, 2, 9, 128, 2)  # the second shape with heads that share keys and values
WINDOW = 100  # shorter than the sequences
EAGER = "Eager, scores stored"
FUSED_EXPERTS = ("expert_gate_up", "expert_down", "router", "shared_router")


DENSE_BELOW = (("first_k_dense_replace", 1), ("num_experts_per_tok", 2))
FULL_AND_SLIDING = (("layer_types", ["full_attention", "sliding_attention"]),)


class Family(NamedTuple):
    """A form's model in the presets, or its model type; fields of its config.json that make two layers of both kinds; its kinds."""

    model: str
    fields: tuple[tuple[str, Any], ...] = ()
    moe: tuple[int, ...] = ()  # which of the two layers are MoE layers
    windowed: tuple[int, ...] = ()  # which have a window
    plain: tuple[int, ...] = ()  # which have no rotary positions
    window: str = "sliding_window"
    follows: bool = False  # heads are hidden size / heads
    eager: bool = False  # the only attention it has
    fp32_stream: bool = False  # what runs between layers is fp32, kept by the layer that makes it, not by what reads it


FAMILIES = {
    "llama": Family("mistralai/Mistral-7B-v0.1", windowed=(0, 1)),
    "qwen3": Family("Qwen/Qwen3-4B"),
    "qwen3_moe": Family("Qwen/Qwen3-30B-A3B", moe=(0, 1)),
    "mixtral": Family("mistralai/Mixtral-8x7B-v0.1", moe=(0, 1)),
    "cohere": Family("CohereForAI/c4ai-command-r-v01"),
    "olmo2": Family("allenai/OLMo-2-1124-7B"),
    "starcoder2": Family("bigcode/starcoder2-7b", windowed=(0, 1)),
    "gpt_neox": Family("EleutherAI/pythia-1.4b", follows=True),
    "gpt_neox_fast": Family("EleutherAI/gpt-neox-20b", follows=True),
    "falcon": Family("tiiuae/falcon-7b"),
    "gpt2": Family("openai-community/gpt2", follows=True),
    "phi3": Family("microsoft/Phi-3-mini-4k-instruct", windowed=(0, 1)),
    "gemma2": Family("google/gemma-2-2b", FULL_AND_SLIDING, windowed=(1,)),
    "gemma3": Family("google/gemma-3-1b-it", FULL_AND_SLIDING, windowed=(1,)),
    "gemma": Family("gemma"),
    "cohere2": Family("cohere2", FULL_AND_SLIDING, windowed=(1,)),
    "llama4": Family(
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        (("layer_types", ["chunked_attention", "full_attention"]), ("no_rope_layers", [1, 0])),
        moe=(0, 1),
        windowed=(0,),
        plain=(1,),
        window="attention_chunk_size",
    ),
    "gpt_oss": Family("openai/gpt-oss-20b", FULL_AND_SLIDING, moe=(0, 1), windowed=(1,), eager=True),
    "phi": Family("phi"),
    "qwen2_moe": Family("qwen2_moe", moe=(0, 1)),
    "olmoe": Family("olmoe", moe=(0, 1), follows=True),
    "stablelm": Family("stablelm", follows=True),
    "gpt_bigcode": Family("gpt_bigcode", follows=True),
    "opt": Family("opt", follows=True),
    "olmo": Family("olmo"),
    "granitemoe": Family("granitemoe", moe=(0, 1)),
    "glm": Family("glm"),
    "glm4": Family("glm4"),
    "seed_oss": Family("seed_oss"),
    "ernie4_5": Family("ernie4_5"),
    "arcee": Family("arcee"),
    "exaone4": Family("exaone4", FULL_AND_SLIDING, windowed=(1,)),
    "glm4_moe": Family("glm4_moe", DENSE_BELOW, moe=(1,)),
    "glm4_moe_qk_norm": Family("glm4_moe", (*DENSE_BELOW, ("use_qk_norm", True)), moe=(1,)),
    "phimoe": Family("phimoe", (("sliding_window", 4096),), moe=(0, 1), windowed=(0, 1), fp32_stream=True),
    "llama4_no_qk_norm": Family(
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        (
            *(("layer_types", ["chunked_attention", "full_attention"]), ("no_rope_layers", [1, 0])),
            *(("use_qk_norm", False), ("moe_layers", [1])),
        ),
        moe=(1,),
        windowed=(0,),
        plain=(1,),
        window="attention_chunk_size",
    ),
    "deepseek_v2": Family(
        "deepseek_v2",
        (*DENSE_BELOW, ("topk_method", "group_limited_greedy"), ("n_group", 1), ("topk_group", 1)),
        moe=(1,),
    ),
    "deepseek_v2_lite": Family("deepseek_v2", (*DENSE_BELOW, ("q_lora_rank", None)), moe=(1,)),
    "bloom": Family("bloom", follows=True, eager=True, fp32_stream=True),
    "deepseek_v3": Family("deepseek-ai/DeepSeek-V3", (("first_k_dense_replace", 1),), moe=(1,)),
}


def test_every_form_is_traced_here() -> None:
    assert set(FAMILIES) == set(FORMS)


def config_file(folder: Path, family: Family, **fields: Any) -> str:
    content: dict[str, Any] = {"model_type": family.model, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    if "/" in family.model:
        content = json.loads((model_folder(family.model) / "config.json").read_text(encoding="utf-8"))
    content.get("text_config", content).update({"num_hidden_layers": 2, **dict(family.fields), **fields})
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    return str(folder)


def small(name: str, shape: tuple[int, ...], folder: Path, masked: bool = False, **fields: Any) -> Run:
    """A run of two layers of a form at a shape. Adapters on every linear module, but none on fused experts."""
    family = FAMILIES[name]
    only_attention = any(role in FORMS[name].slots for role in FUSED_EXPERTS[:2])
    if family.eager:
        fields = {**fields, "attention_implementation": EAGER}
    fields = {"adapter_targets": "All attention" if only_attention else "All seven", **fields}
    config = config_file(folder, family, **({family.window: WINDOW} if masked else {}))
    run = derive.small_run(make_run("lora", {"config": config, **fields}), shape, own_head=not family.follows)
    return replace(run, inputs={**run.inputs, "layer_count_override": 2})


def widths_of(run: Run) -> dict[str, int]:
    """The widths that forms are written in, from the configuration alone."""
    config = models.config_of(run)

    def field(*names: str, default: int = 0) -> int:
        return next((int(found) for name in names if (found := getattr(config, name, None))), default)

    d, nh = field("hidden_size", "n_embd"), field("num_attention_heads", "n_head")
    hd = field("head_dim", default=d // nh)
    nkv = 1 if getattr(config, "multi_query", False) else field("num_key_value_heads", default=nh)
    widths = {
        "d": d,
        "nh": nh,
        "nkv": nkv,
        "hd": hd,
        "q": nh * hd,
        "kv": nkv * hd,
        "S": run["sequence_length"],
        "ff": field("n_inner", "ffn_hidden_size", "ffn_dim", "intermediate_size_mlp", "intermediate_size"),
        "e": field("moe_intermediate_size", "intermediate_size"),
        "k": field("num_experts_per_tok"),
        "E": field("num_local_experts", "num_experts", "n_routed_experts"),
    }
    widths["s"] = field("shared_expert_intermediate_size") or widths["e"] * field("n_shared_experts", default=1)
    if config.model_type == "bloom":  # whose class has no such field
        widths["ff"] = 4 * d
    if field("kv_lora_rank"):
        rope = field("qk_rope_head_dim")
        key, values = field("qk_nope_head_dim") + rope, field("v_head_dim")
        widths |= {"ql": field("q_lora_rank"), "kvl": field("kv_lora_rank"), "rope": rope}
        widths |= {"q": nh * key, "o": nh * values, "nkv": nh}
    return widths


def roles_of(form: LayerForm) -> list[str]:
    return [role for role in form.all_linear if role not in FUSED_EXPERTS]


LAST_NORMS = (".norm", ".ln_f", ".final_layer_norm", ".final_layernorm")


def kept(run: Run, dropped: bool) -> tuple[dict[int, int], int, int]:
    """Bytes that each layer keeps, those of the last norm, those of the tables of positions.

    dropped: after the loop let go of the output.
    """
    traced = trace.trace_forward(run)
    at = traced.marks["backward"][0] if dropped else traced.marks["forward"][1]
    alive = traced.recorder.alive_after(at)
    prefix = models.layers_of(models.base(run))[0]
    found = saved.kept_by_layers(alive, prefix, 1)
    layers = {number: round(sum(one.bytes_per_token * n for one, n in kept.items())) for number, kept in found.items()}
    outside = [one for one in alive if saved.layer_path(one.module, prefix) is None]
    last = sum(one.exact for one in outside if one.module.endswith(LAST_NORMS))
    return layers, last, sum(one.exact for one in alive if one.module.endswith(".rotary_emb"))


CASES = ("flash, output kept", "masked, dropout, output dropped", "eager", "no cache")

WITHOUT_CACHE = ("llama", "phi3", "gpt2", "gpt_neox", "gemma3", "deepseek_v3")  # fused ones, and some others


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", FAMILIES)
def test_each_layer_keeps_what_its_form_says(name: str, case: str, tmp_path: Path) -> None:
    family, form = FAMILIES[name], FORMS[name]
    masked, eager = case.startswith("masked"), case == "eager" or family.eager
    if case == "eager" and family.eager:
        pytest.skip("eager is the only kind it has")
    if case == "no cache" and name not in WITHOUT_CACHE:
        pytest.skip("as with a cache; one of its kind is enough")
    masked = masked and bool(family.windowed)
    dropped, cached = case.endswith("dropped"), case != "no cache"
    shape = SHAPES[0] if case == CASES[0] else GROUPED if masked or case == CASES[2] else SHAPES[1]
    fields: dict[str, Any] = {
        "keeps_model_output": "Off" if dropped else "On",
        "lora_dropout": "On" if dropped else "Off",
    }
    if case == "eager":
        fields["attention_implementation"] = EAGER
    run = small(name, shape, tmp_path, masked, **fields)
    if not cached:
        run.settings["fields"]["use_cache"] = False
    if case == "eager":
        run.settings["fields"] |= dict.fromkeys(("attention_dropout", "attn_pdrop"), 0.0)
    widths, tokens = widths_of(run), run["batch_size"] * run["sequence_length"]
    really, last, rope = kept(run, dropped)
    stream = 4 * tokens * widths["d"] if family.fp32_stream else 0
    for number in (0, 1):
        layer = Layer(
            moe=number in family.moe,
            plain=number in family.plain,
            windowed=number in family.windowed,
            masked=masked and number in family.windowed,
            eager=eager,
            cached=cached,
            held=not dropped,
            lowest=number == 0,
        )
        adapters = adapter_bytes(
            form, roles_of(form), run["lora_rank"], widths, tokens, moe=layer.moe, lowest=layer.lowest, dropout=dropped
        )
        made = stream if layer.lowest else 0
        assert really[number] == layer_bytes(form, layer, widths, tokens) + adapters + made, (name, number)
    once = value(form.parts.get("final_norm_once", {}), widths)
    assert last == tokens * value(form.parts["final_norm"], widths) + once - stream
    assert rope == value(form.parts.get("rope_once", {}), widths)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_neox", "gpt2", "cohere", "olmo2", "falcon", "mixtral"])
def test_all_layers_together_with_a_base_in_fp32(name: str, tmp_path: Path) -> None:
    """Together, for a residual stream in fp32 is kept by the norm that reads it, in the layer after the one it is of."""
    form = FORMS[name]
    run = small(name, GROUPED, tmp_path, base_storage_format="fp32")
    widths = widths_of(run)
    frozen = [
        2 * value(slot.input, widths) * value(slot.output, widths)
        for number in (0, 1)
        for role, slot in form.slots.items()
        if role in roles_of(form) and (slot.lowest or number)
    ]
    assert sum(whole(run)) == expected(name, run, "fp32") + sum(frozen)


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_all_layers_together_with_a_base_prepared_for_kbit_training(name: str, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed; the extra 'test' brings it")
    nf4 = "nf4 / fp4, block 64, no double quant"
    run = small(name, GROUPED, tmp_path, base_storage_format=nf4, kbit_preparation="On")
    assert sum(whole(run)) == expected(name, run, "kbit")


def whole(run: Run) -> list[int]:
    """Bytes of each layer and of the last norm."""
    layers, last, _ = kept(run, dropped=False)
    return [*layers.values(), last]


def expected(name: str, run: Run, base: str) -> int:
    """What both layers and the last norm keep with a base in fp32, or prepared for k-bit training."""
    family, form = FAMILIES[name], FORMS[name]
    widths, tokens = widths_of(run), run["batch_size"] * run["sequence_length"]

    def part(end: str) -> int:
        return value(form.parts.get(base + end, {}), widths)

    total = tokens * (value(form.parts["final_norm"], widths) + part("_lowest"))
    if "fp32_layer" not in form.parts:  # its norms make fp32 weights of their own
        total += value(form.parts.get("final_norm_once", {}), widths)
    else:
        total -= value(form.parts["lowest_layer"], widths)
    for number in (0, 1):
        moe = number in family.moe
        layer = Layer(moe=moe, windowed=number in family.windowed, lowest=number == 0)
        total += layer_bytes(form, layer, widths, tokens) + tokens * (part("") + part("_cache")) + part("_layer")
        total += (tokens * part("_moe") + part("_moe_layer")) if moe else 0
        total += adapter_bytes(form, roles_of(form), run["lora_rank"], widths, tokens, moe=moe, lowest=number == 0)
    return total


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "falcon"])
def test_a_checkpointed_layer_keeps_its_input_only(name: str, tmp_path: Path) -> None:
    run = small(name, SHAPES[1], tmp_path, activation_checkpointing="On")
    really, _, _ = kept(run, dropped=False)
    stream = run["batch_size"] * run["sequence_length"] * widths_of(run)["d"]
    width = 2 + FORMS[name].parts.get("boundary", {}).get("d", 0)
    outputs = (0, 1) if FAMILIES[name].fp32_stream else (0,)  # layer 1's input, and what the final norm reads
    assert really == dict.fromkeys(outputs, width * stream)


@pytest.mark.parametrize("name", FAMILIES)
def test_adapter_parameters_are_pefts(name: str, tmp_path: Path) -> None:
    import peft

    family, form = FAMILIES[name], FORMS[name]
    run = small(name, SHAPES[0], tmp_path)
    widths, rank = widths_of(run), run["lora_rank"]
    attention = [role for role in form.all_linear if role in ("query_latent", "query", "key", "value", "output")]
    modules = [module for role in attention for module in form.slots[role].modules]
    choices: list[tuple[Any, tuple[str, ...]]] = [("all-linear", form.all_linear), (modules, tuple(attention))]
    if form.default_targets:
        choices.append((None, form.default_targets))
    for wanted, roles in choices:
        with torch.device("meta"):
            model = peft.get_peft_model(
                models.base(run), peft.LoraConfig(r=rank, target_modules=wanted, task_type="CAUSAL_LM")
            )
        really = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        said = sum(adapter_parameters(form, roles, rank, widths, number in family.moe) for number in (0, 1))
        assert really == said, (name, wanted)


def test_a_width_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="the width kv is not given"):
        layer_bytes(FORMS["llama"], Layer(), {"d": 8, "q": 8, "nh": 1, "nkv": 1}, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a]\nfamilies = ['x']", "source is null; it should be a text"),
        ("[a]\nsource = 's'\nnorm = { d = 1 }", 'has "norm"; a part is one of norms'),
        ("[a]\nsource = 's'\nnorms = { x = 1 }", 'names the width "x"; it should be one of'),
        ("[a]\nsource = 's'\nnorms = { d = 1.5 }", "d is 1.5; it should be a whole number of bytes"),
        ("[a]\nsource = 's'\ndefault_targets = ['key']", 'default_targets names "key"; it should name slots'),
        ("[a]\nsource = 's'\nslots.key = { size = 1 }", 'slot key has "size"; a slot has modules'),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "layer_forms.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="layer_forms.toml") as caught:
        layer_forms.read_layer_forms(file)
    assert said in str(caught.value) and "\n" not in str(caught.value)

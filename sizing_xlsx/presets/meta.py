"""A family that is not described, built by transformers on PyTorch's meta device (shapes without memory) and counted.

Only classes that transformers ships are built: auto_map, remote code and anything else a file might bring is ignored.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .config_file import Content
from .names import shown

if TYPE_CHECKING:
    from .config import Architecture

MAXIMUM_BUILT_LAYERS = 1_000  # each is some dozen Python objects
_UNSAFE = ("auto_map", "trust_remote_code", "custom_pipelines", "_attn_implementation", "attn_implementation")
_VISION = re.compile(
    r"(^|\.)(vision|visual|image|audio|video|multi_?modal|mm_|vit|sam_|embed_vision|embed_audio|aligner)"
)
_EXPERTS = re.compile(r"(^|\.)experts(\.|$)")
_ROUTER = re.compile(r"(^|\.)(router|gate|e_score_correction_bias|wg)(\.|$)")


def built(content: Content, where: str, name: str, why: str) -> Architecture:
    """The architecture of a model by building it; why: what a sentence says when that cannot be done.

    Raises ValueError, one sentence, when torch or transformers is missing, when they do not know the family, or when
    what they build is no decoder.
    """
    family = str(content["model_type"])
    try:
        torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    except ImportError as error:
        raise ValueError(
            f"{where}: model_type is {shown(family)} and {why}; with PyTorch and transformers installed "
            f"({error.name} is missing) any model they know can be counted"
        ) from None
    _check_layers(content, where)
    if family not in transformers.CONFIG_MAPPING:
        raise ValueError(
            f"{where}: model_type is {shown(family)}; it should be a family that presets/families.toml describes or "
            f"transformers {transformers.__version__} knows, and remote code is never run"
        )
    try:
        model, config = build(content, torch, transformers)
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{where}: model_type is {shown(family)}, {why}, and transformers {transformers.__version__} cannot build "
            f"it: {said or type(error).__name__}"
        ) from None
    text = config.get_text_config(decoder=True)
    if _stated(text, "vocab_size") is None:
        raise ValueError(
            f"{where}: model_type is {shown(family)}; it should be a model with a language part that writes"
        )
    from .config import STATED

    stated = set(_fields(content))
    described = _described(name, family, model, text, torch, stated)
    if not any(
        described.origins[field].kind == STATED
        for field in ("hidden_size", "layer_count")
        if field in described.origins
    ):
        raise ValueError(
            f"{where}: model_type is {shown(family)} and neither its width nor its number of layers is stated; "
            "a config.json states both"
        )
    return described


def _fields(content: Content) -> Iterator[str]:
    """Every field of a config and of its parts that is not null."""
    for field, value in content.items():
        if isinstance(value, Mapping):
            yield from _fields(value)
        elif value is not None:
            yield field


def build(content: Content, torch: Any, transformers: Any) -> tuple[Any, Any]:
    """The model on the meta device and its configuration, both of classes that transformers ships."""
    fields = {key: value for key, value in content.items() if key not in _UNSAFE and key != "model_type"}
    fields.pop("quantization_config", None)  # counts are of the model without it
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        config = transformers.AutoConfig.for_model(str(content["model_type"]), **fields)
        if config.is_encoder_decoder:
            raise ValueError("it has an encoder; only decoders are sized")
        with torch.device("meta"):
            model = _class_of(config, content, transformers)(config)
    finally:
        transformers.logging.set_verbosity(level)
    model.tie_weights()
    return model, config


_MAPPINGS = (
    "AutoModelForImageTextToText", "AutoModelForCausalLM", "AutoModelForMultimodalLM", "AutoModelForTextToWaveform",
)  # fmt: skip


def _class_of(config: Any, content: Content, transformers: Any) -> Any:
    """The class for text generation that goes with a configuration; that of architectures where it is one."""
    named = content.get("architectures")
    for mapping in _MAPPINGS:
        classes: Any = getattr(getattr(transformers, mapping, None), "_model_mapping", {})
        if type(config) not in classes:
            continue
        found = classes[type(config)]
        options = found if isinstance(found, tuple) else (found,)
        for option in options:
            if isinstance(named, list) and option.__name__ in named:
                return option
        return options[0]
    raise ValueError("it has no class for text generation there")


def _check_layers(content: Content, where: str) -> None:
    for field, value in _numbers(content):
        if re.search(r"(layers?|depth)$", field) and value > MAXIMUM_BUILT_LAYERS:
            raise ValueError(
                f"{where}: {field} is {value}; a family that is not described is built, "
                f"with at most {MAXIMUM_BUILT_LAYERS:,} layers"
            )


def _numbers(content: Content, part: str = "") -> Iterator[tuple[str, int]]:
    for field, value in content.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{part}{field}.")
        elif isinstance(value, int) and not isinstance(value, bool):
            yield part + field, value


def components(model: Any, torch: Any, text: Any, experts: int = 0) -> dict[str, int]:
    """Parameters of a built model by component, each counted once; names are those of the formulas' terms.

    experts: their number in a layer, by which parameters that hold one slice for each are known.
    """
    seen: set[int] = set()
    sums = dict.fromkeys(_COMPONENTS, 0)
    modules = dict(model.named_modules())
    layers = _layer_stack(model, text)

    def add(component: str, parameter: Any) -> None:
        if id(parameter) not in seen:
            seen.add(id(parameter))
            sums[component] += parameter.numel()

    for end, component in (("input", "embedding_parameters"), ("output", "head_parameters")):
        module = _end(model, f"get_{end}_embeddings")
        for parameter in module.parameters() if module is not None else ():
            add(component, parameter)
    for path, parameter in model.named_parameters():
        sliced = experts > 1 and parameter.dim() == 3 and parameter.shape[0] == experts
        owner = type(modules[path.rpartition(".")[0]]).__name__
        add("all_expert_parameters" if sliced else _component(path, owner, layers), parameter)
    for path, module in modules.items():
        if (type(module) is torch.nn.Linear or type(module).__name__ == "Conv1D") and path.startswith(layers):
            sums["convertible_parameters"] += module.weight.numel()
            sums["convertible_modules"] += 1
    return sums


def _end(model: Any, getter: str) -> Any:
    """The embedding or the output layer: the model's own, else that of the first of its parts that has one."""
    for part in (model, *model.children()):
        try:
            found = getattr(part, getter)()
        except (AttributeError, NotImplementedError):
            continue
        if found is not None:
            return found
    return None


_COMPONENTS = (
    "embedding_parameters", "head_parameters", "vision_parameters", "all_expert_parameters", "router_parameters",
    "norm_parameters", "layers_other_parameters", "outer_other_parameters", "convertible_parameters",
    "convertible_modules",
)  # fmt: skip


def _component(path: str, owner: str, layers: str) -> str:
    rules = (
        (_VISION.search(path) and not path.startswith(layers), "vision_parameters"),
        (_EXPERTS.search(path), "all_expert_parameters"),
        (_ROUTER.search(path), "router_parameters"),
        ("norm" in owner.lower(), "norm_parameters"),
        (path.startswith(layers), "layers_other_parameters"),
    )
    return next((component for holds, component in rules if holds), "outer_other_parameters")


def _attention_layers(model: Any, layers: str) -> int:
    """Layers that keep keys and values: those with a module of attention that is not linear."""
    found = set()
    for path, module in model.named_modules():
        if path.startswith(layers) and re.search(r"(?<!Linear)Attention", type(module).__name__):
            found.add(path[len(layers) :].partition(".")[0])
    return len(found)


def _layer_stack(model: Any, text: Any) -> str:
    """The path of the decoder's layers: the list of modules that is as long as the decoder is deep."""
    depth = getattr(text, "num_hidden_layers", None)
    for path, module in model.named_modules():
        if type(module).__name__ == "ModuleList" and len(module) == depth and not _VISION.search(path):
            return f"{path}."
    return "\0"  # no path begins so


def _stated(config: Any, field: str) -> int | None:
    """A whole number above 0 of a configuration; None where it has none, or one for each layer."""
    try:
        value = getattr(config, field, None)
    except Exception:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _uneven(config: Any, field: str) -> bool:
    """Whether a field has a value for each layer."""
    try:
        getattr(config, field, None)
    except Exception:
        return True
    return False


def _described(name: str, family: str, model: Any, text: Any, torch: Any, stated: set[str]) -> Architecture:
    """The architecture by the configuration that transformers made, with the counts of what it built."""
    from .config import CLASS_DEFAULT, DERIVED, STATED, Architecture, Origin

    origins: dict[str, Origin] = {}
    assumed: dict[str, None] = {}
    alias = {**text.attribute_map, **{own: usual for usual, own in text.attribute_map.items()}}

    def plain(ours: str) -> int:
        """A figure under our name, 0 when there is none; takes down where it came from."""
        for field in _SPELLINGS[ours]:
            if value := _stated(text, field):
                said = next((key for key in (field, alias.get(field)) if key in stated), None)
                origins[ours] = Origin(STATED, said) if said else Origin(CLASS_DEFAULT, field)
                if not said:
                    assumed[field] = None
                return value
        return 0

    shape = {ours: plain(ours) for ours in _SPELLINGS}
    heads, hidden, experts = shape["attention_heads"], shape["hidden_size"], shape["expert_count"]
    if heads and not shape["kv_heads"]:
        shape["kv_heads"], origins["kv_heads"] = heads, Origin(DERIVED, "as many as attention heads")
    if heads and hidden and not shape["head_dimension"] and not _uneven(text, "head_dim"):
        shape["head_dimension"] = hidden // heads
        origins["head_dimension"] = Origin(DERIVED, "hidden size / attention heads")
    sums = components(model, torch, text, experts)
    routed, per_token = sums["all_expert_parameters"], shape["experts_per_token"]
    counted = {"base_parameter_count": sum(parameter.numel() for parameter in model.parameters()), **sums}
    if not routed or (experts and per_token):
        idle = routed - routed * per_token // experts if routed else 0
        counted["active_parameters"] = counted["base_parameter_count"] - sums["vision_parameters"] - idle
    attending = _attention_layers(model, _layer_stack(model, text))
    if attending and heads and shape["head_dimension"] and not _uneven(text, "num_key_value_heads"):
        latent = shape["kv_latent_width"]
        whole = 2 * shape["kv_heads"] * shape["head_dimension"]
        counted["query_width"] = heads * shape["head_dimension"]
        counted["kv_values_per_token_per_layer"] = latent + shape["rope_dimension"] if latent else whole
        counted["attention_layer_count"] = attending
    shape |= {"vision_parameters": sums["vision_parameters"], "tied": int(not sums["head_parameters"])}
    origins |= dict.fromkeys(("vision_parameters", "tied"), Origin(DERIVED, "the modules that transformers builds"))
    known: dict[str, Any] = {ours: value for ours, value in shape.items() if ours in origins}
    return Architecture(
        name=name,
        family=family,
        why_not=f"the layer form of family {family} is not sized yet",
        assumed=tuple(assumed),
        origins=origins,
        notes=("counted module by module, as transformers builds it",),
        counted=counted,
        **known,
    )


# Our name of a figure -> the names that configurations of transformers have for it.
_SPELLINGS = {
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "layer_count": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "head_dimension": ("head_dim", "qk_head_dim"),
    "mlp_width": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    "vocabulary_size": ("vocab_size",),
    "maximum_positions": ("max_position_embeddings", "n_positions", "max_seq_len"),
    "kv_latent_width": ("kv_lora_rank",),
    "rope_dimension": ("qk_rope_head_dim",),
    "expert_count": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts"),
}

"""A family that is not described, built by transformers on PyTorch's meta device (shapes without memory) and counted.

Only classes that transformers ships are built: auto_map, remote code and anything else a file might bring is ignored.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import kv_cache
from .config_file import Content
from .families import families
from .names import one_line, shown

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
    torch, transformers = _imported(where, family, why)
    _check_layers(content, where)
    _check_figures(content, where)
    if family not in transformers.CONFIG_MAPPING:
        raise ValueError(
            f"{where}: model_type is {shown(family)}; it should be a family that presets/families.toml describes or "
            f"transformers {transformers.__version__} knows, and remote code is never run"
            f"{_hint(content, family, transformers)}"
        )
    try:
        model, config = build(content, torch, transformers)
    except Exception as error:
        raise ValueError(
            f"{where}: model_type is {shown(family)}, {why}, and transformers {transformers.__version__} cannot build "
            f"it: {_said(error)}{_unstated(content)}"
        ) from None
    if getattr(config, "is_decoder", None) is False and type(config) in transformers.MODEL_FOR_MASKED_LM_MAPPING:
        raise ValueError(
            f"{where}: model_type is {shown(family)}, a family whose models read in both directions and write nothing; "
            "it should be a decoder, or is_decoder should be true"
        )
    text = config.get_text_config(decoder=True)
    if _stated(text, "vocab_size") is None:
        raise ValueError(
            f"{where}: model_type is {shown(family)}; it should be a model with a language part that writes"
        )
    from .config import STATED

    stated = set(_fields(content))
    described = _described(name, family, model, text, torch, stated)
    named = content.get("architectures")
    first = named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""
    if first and first != type(model).__name__:
        note = f"architectures is {first}: counted as {type(model).__name__}, which transformers builds for the family"
        described = described._replace(notes=(*described.notes, note))
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


def _imported(where: str, family: str, why: str) -> tuple[Any, Any]:
    """torch and transformers; ValueError, one sentence, where either is missing or does not work."""
    try:
        torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
        _ = torch.device, transformers.CONFIG_MAPPING, transformers.AutoConfig
    except Exception as error:  # a broken installation raises anything
        missing = isinstance(error, ModuleNotFoundError) and error.name
        said = f"{error.name} is missing" if missing else f"they do not work: {_said(error)}"  # type: ignore[attr-defined]
        raise ValueError(
            f"{where}: model_type is {shown(family)} and {why}; with PyTorch and transformers installed "
            f"({said}) any model they know can be counted"
        ) from None
    return torch, transformers


def _hint(content: Content, family: str, transformers: Any) -> str:
    """What may help where a family is not known: one of nearly its name, or a language part of a known family."""
    from .config import LANGUAGE_PARTS

    known = [*families().decoders, *families().wrappers, *transformers.CONFIG_MAPPING]
    for field in LANGUAGE_PARTS:
        part = content.get(field)
        inner = part.get("model_type") if isinstance(part, Mapping) else None
        if isinstance(inner, str) and inner in known:
            return f"; its language part, {field}, is of family {inner}, which can be read as a config of its own"
    near = difflib.get_close_matches(family.casefold(), known, 1, 0.85)
    return f"; did you mean {near[0]}?" if near else ""


def _unstated(content: Content) -> str:
    """The figures of a shape that a file leaves out, where a class has no use for that."""
    stated = set(_fields(content))
    missing = [_SPELLINGS[ours][0] for ours in (*_NEVER_NONE, "mlp_width") if stated.isdisjoint(_SPELLINGS[ours])]
    return f"; {', '.join(missing)} not stated" if missing else ""


def _said(error: Exception) -> str:
    """What an error says, on one line of at most 200 characters; its kind where it says nothing."""
    return one_line(" ".join(str(error).split())[:200]) or type(error).__name__


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


def _check_figures(content: Content, where: str, part: str = "") -> None:
    """ValueError for a figure of the shape that no model has, where transformers would only say what failed.

    Lists have a value for each layer, and null leaves a figure to the class.
    """
    for ours, spellings in _SPELLINGS.items():
        low = 1 if ours in _NEVER_NONE else 0
        for field in spellings:
            value = content.get(field)
            if value is None or isinstance(value, list | tuple | Mapping):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise ValueError(
                    f"{where}: {part}{field} is {shown(value)}; it should be a whole number of at least {low}"
                )
    for field, value in content.items():
        if isinstance(value, Mapping):
            _check_figures(value, where, f"{part}{one_line(str(field))[:100]}.")
    heads = _first_stated(content, "attention_heads")
    kv_heads = _first_stated(content, "kv_heads")
    if heads and kv_heads and heads[1] % kv_heads[1]:
        raise ValueError(
            f"{where}: {part}{kv_heads[0]} is {kv_heads[1]}; it should divide {part}{heads[0]}, {heads[1]}"
        )
    hidden = _first_stated(content, "hidden_size")
    if heads and hidden and not _first_stated(content, "head_dimension") and hidden[1] < heads[1]:
        raise ValueError(
            f"{where}: {part}{hidden[0]} is {hidden[1]}; without head_dim it should be a multiple of "
            f"{part}{heads[0]}, {heads[1]}"
        )


_NEVER_NONE = ("hidden_size", "layer_count", "attention_heads", "vocabulary_size")


def _first_stated(content: Content, ours: str) -> tuple[str, int] | None:
    """A figure under our name in one part of a config: its field and its value; None where it is not a number."""
    for field in _SPELLINGS[ours]:
        value = content.get(field)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return field, value
    return None


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
        if not (type(module) is torch.nn.Linear or type(module).__name__ == "Conv1D"):
            continue
        if path.startswith(layers):
            rows, columns = (
                reversed(module.weight.shape) if type(module) is not torch.nn.Linear else module.weight.shape
            )
            sums["convertible_parameters"] += module.weight.numel()
            sums["convertible_modules"] += 1
            sums["convertible_output_rows"] += rows
            sums["convertible_input_columns"] += columns
        elif _VISION.search(path):
            sums["vision_convertible_parameters"] += module.weight.numel()
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
    "convertible_modules", "convertible_output_rows", "convertible_input_columns", "vision_convertible_parameters",
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


def _layer_stack(model: Any, text: Any) -> str:
    """The path of the decoder's layers: the list of modules that is as long as the decoder is deep."""
    for depth in (_stated(text, field) for field in _SPELLINGS["layer_count"]):
        for path, module in model.named_modules():
            if type(module).__name__ == "ModuleList" and len(module) == depth and not _VISION.search(path):
                return f"{path}."
    return "\0"  # no path begins so


def _stated(config: Any, field: str) -> int | None:
    """A whole number above 0 of a configuration; None where it has none, or one for each layer.

    field: its name, with those of the parts it lies in before it and points between.
    """
    try:
        value = config
        for part in field.split("."):
            value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
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
        found = {field: value for field in _SPELLINGS[ours] if (value := _stated(text, field))}
        for field, value in found.items():
            for key in (field, alias.get(field), field.rpartition(".")[2]):
                if key in stated:
                    origins[ours] = Origin(STATED, field if key in field else key)
                    return value
        if not found:
            return 0
        field, value = next(iter(found.items()))
        origins[ours] = Origin(CLASS_DEFAULT, field)
        assumed[field] = None
        return value

    shape = {ours: plain(ours) for ours in _SPELLINGS}
    heads, hidden, experts = shape["attention_heads"], shape["hidden_size"], shape["expert_count"]
    if shape["kv_latent_width"] and (plain_width := _stated(text, "qk_nope_head_dim")):
        shape["head_dimension"] = plain_width + shape["rope_dimension"]
        origins["head_dimension"] = Origin(DERIVED, "qk_rope_head_dim + qk_nope_head_dim")
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
    kept = kv_cache.values_of_layers(
        model, _layer_stack(model, text), text, heads, shape["kv_heads"], shape["head_dimension"]
    )
    if kept is not None:
        counted["kv_values_per_token"] = sum(kept)
        counted["attention_layer_count"] = len(kept)
        if len(set(kept)) == 1:
            counted["kv_values_per_token_per_layer"] = kept[0]
    if heads and shape["head_dimension"]:
        counted["query_width"] = heads * shape["head_dimension"]
    shape |= {"vision_parameters": sums["vision_parameters"], "tied": int(not sums["head_parameters"])}
    origins |= dict.fromkeys(("vision_parameters", "tied"), Origin(DERIVED, "the modules that transformers builds"))
    known: dict[str, Any] = {ours: value for ours, value in shape.items() if ours in origins}
    return Architecture(
        name=name,
        family=family,
        why_not=f"family {_language_family(family, text)} is not described: it is counted, not sized",
        assumed=tuple(assumed),
        origins=origins,
        notes=("counted module by module, as transformers builds it",),
        counted=counted,
        **known,
    )


def _language_family(family: str, text: Any) -> str:
    """The family, and that of its language part where it is another."""
    inner = getattr(text, "model_type", "") or family
    return family if inner == family else f"{inner}, the language part of {family},"


# Our name of a figure -> the names that configurations of transformers have for it.
_SPELLINGS = {
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "layer_count": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "attn_config.kv_n_heads"),
    "head_dimension": ("head_dim", "qk_head_dim"),
    "mlp_width": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "ffn_config.ffn_hidden_size"),
    "vocabulary_size": ("vocab_size",),
    "maximum_positions": ("max_position_embeddings", "n_positions", "max_seq_len"),
    "kv_latent_width": ("kv_lora_rank",),
    "rope_dimension": ("qk_rope_head_dim",),
    "expert_count": (
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "moe_num_experts",
        "ffn_config.moe_num_experts",
    ),
    "experts_per_token": ("num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts", "ffn_config.moe_top_k"),
}

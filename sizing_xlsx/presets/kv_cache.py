"""Values of keys and values that each layer of a built model keeps for a token, read from its projections.

A module that makes keys and values is known by the names of its parts, in transformers 5.20. Linear attention and
state spaces keep a state of fixed size and no token; cross-attention keeps what another model made; layers that share
the keys of another keep none of their own.
"""

from __future__ import annotations

import re
from typing import Any

_NO_TOKENS = re.compile(r"Linear.*Attention|Delta|Lightning|Cross|Mamba|Recurrent|Retention|Rwkv|Conv|Indexer")
_NO_TOKENS_TYPE = re.compile(r"linear|mamba|conv|recurrent|^mlp$|^moe$")
_PAIRS = (("k_proj", "v_proj"), ("key_proj", "value_proj"), ("key", "value"), ("wk", "wv"))
_LATENT = ("kv_a_proj_with_mqa", "kv_a_proj")  # the KV latent and the rotated part of the keys, which all heads share
_BOTH = ("kv_proj",)  # keys and values in one matrix
_FUSED = ("query_key_value", "qkv_proj", "qkv", "Wqkv", "c_attn", "att_proj", "W_pack", "wqkv", "in_proj")


def values_of_layers(model: Any, layers: str, text: Any, heads: int, kv_heads: int, head: int) -> list[int] | None:
    """For each layer that keeps keys and values, how many values of a token; None where that cannot be told.

    layers: the path of the decoder's layers. text: the configuration of the language part. heads, kv_heads and head,
    a head's width, are counts by the configuration: what a fused projection is held against.
    """
    kept: dict[str, int] = {}
    seen = False
    family = re.sub(r"(Text)?Config$", "", type(text).__name__)  # some have the word of another layer in their name
    types = getattr(text, "layer_types", None) or getattr(text, "layers_block_type", None)
    types = types if isinstance(types, list | tuple) else ()
    if any("compress" in str(kind) for kind in types):
        return None  # fewer than one entry a token
    for path, module in model.named_modules(remove_duplicate=False):  # layers may share their modules
        if not path.startswith(layers):
            continue
        seen = True
        layer = path[len(layers) :].partition(".")[0]
        kind = str(types[int(layer)]) if layer.isdigit() and int(layer) < len(types) else ""
        if (
            _NO_TOKENS.search(type(module).__name__.removeprefix(family))
            or _NO_TOKENS_TYPE.search(kind)
            or not layer.isdigit()
        ):
            continue
        if getattr(module, "is_cross_attention", False) or getattr(module, "is_kv_shared_layer", False):
            continue
        parts = dict(module.named_children())
        found = _values(parts, heads, kv_heads, head)
        if found is None and re.search(r"Attention$", type(module).__name__) and not _holds_attention(parts):
            return None
        if found:
            kept[layer] = kept.get(layer, 0) + found
    return list(kept.values()) if seen else None


def _holds_attention(parts: dict[str, Any]) -> bool:
    """Whether one of a module's parts is what makes keys and values."""
    return any("Attention" in type(part).__name__ for part in parts.values())


def _values(parts: dict[str, Any], heads: int, kv_heads: int, head: int) -> int | None:
    """Values of a token by the projections among a module's parts; None where there are none that are known."""
    for name in (*_LATENT, *_BOTH):
        if width := _width(parts.get(name)):
            return width
    for key, value in _PAIRS:
        if width := _width(parts.get(key)):
            return width + (_width(parts.get(value)) or width)  # values that are the keys are kept twice
    for name in _FUSED:
        if width := _width(parts.get(name)):
            both = 2 * kv_heads * head
            return both if width == heads * head + both else None
    return None


def _width(part: Any) -> int:
    """Output width of a linear module; 0 where it is none."""
    weight = getattr(part, "weight", None)
    if weight is None or getattr(weight, "dim", lambda: 0)() != 2:
        return 0
    if type(part).__name__ == "Conv1D":
        return int(weight.shape[1])
    return int(getattr(part, "out_features", weight.shape[0]))

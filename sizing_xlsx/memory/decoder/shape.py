"""A decoder's shape: each figure from its config.json or from the user. Every job about a decoder shares it.

A column that a family has no use for holds 0. What the columns mean, and where they come from: presets/config.py.
"""

from typing import Any

from ...formula.declare import Choice, Input, Whole, check, overridable, term
from ...formula.primitives import floor, maximum, when

_CONFIG = "the model's config.json"
_CLASS = "the model's config.json and its class in transformers 5.20"
base_model = Input(
    "text",
    Choice("models"),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "Base model",
    "The model you adapt; its shape comes from its config.json.",
)


@term("row")
def model_row(models: Any, base_model: Any) -> Any:
    """Row of the base model in the catalogue."""
    return models.row_of(base_model)


@term("text")
def layer_form(models: Any, model_row: Any) -> Any:
    """The form of the model's layers: which tensors each keeps for backward."""
    return models.layer_form[model_row]


@overridable(Whole(1, 1_000_000))
@term("count", source=_CONFIG)
def hidden_size(models: Any, model_row: Any) -> Any:
    """Width of the residual stream (d)."""
    return models.hidden_size[model_row]


@overridable(Whole(1, 10_000))
@term("layers", source=_CONFIG)
def layer_count(models: Any, model_row: Any) -> Any:
    """Decoder layers (L)."""
    return models.layer_count[model_row]


@overridable(Whole(1, 100_000))
@term("heads", source=_CONFIG)
def attention_heads(models: Any, model_row: Any) -> Any:
    """Attention heads (nh)."""
    return models.attention_heads[model_row]


@overridable(Whole(1, 100_000))
@term("heads", source=_CONFIG, label="KV heads")
def kv_heads(models: Any, model_row: Any) -> Any:
    """Heads that keys and values have; fewer than attention heads under grouped-query attention."""
    return models.kv_heads[model_row]


@overridable(Whole(1, 100_000))
@term("count", source=_CONFIG)
def head_dimension(models: Any, model_row: Any) -> Any:
    """Width of one head; not always hidden size over heads."""
    return models.head_dimension[model_row]


@overridable(Whole(1, 10_000_000))
@term("count", source=_CONFIG, label="MLP width")
def mlp_width(models: Any, model_row: Any) -> Any:
    """Intermediate size of the MLP (ff): of the dense layers, where others have experts."""
    return models.mlp_width[model_row]


@overridable(Whole(1, 10_000_000))
@term("count", source=_CONFIG)
def vocabulary_size(models: Any, model_row: Any) -> Any:
    """Entries of the vocabulary (V): width of the output scores."""
    return models.vocabulary_size[model_row]


@term("count", source=_CONFIG)
def rope_dimension(models: Any, model_row: Any) -> Any:
    """Width of the part of a key that carries positions and that all heads share, in latent attention."""
    return models.rope_dimension[model_row]


@term("count", source=_CONFIG)
def query_latent_width(models: Any, model_row: Any) -> Any:
    """Width that queries are compressed to, in latent attention; 0 when they are not."""
    return models.query_latent_width[model_row]


@term("count", source=_CONFIG, label="KV latent width")
def kv_latent_width(models: Any, model_row: Any) -> Any:
    """Width that keys and values are compressed to, in latent attention; 0 when they are not."""
    return models.kv_latent_width[model_row]


@term("count", source=_CONFIG)
def value_head_dimension(kv_latent_width: Any, models: Any, model_row: Any, head_dimension: Any) -> Any:
    """Width of one head of values: that of queries and keys but in latent attention."""
    return when(kv_latent_width > 0, models.value_head_dimension[model_row], head_dimension)


@term("count")
def query_width(attention_heads: Any, head_dimension: Any) -> Any:
    """Width of queries (q)."""
    return attention_heads * head_dimension


@term("count", label="KV width")
def kv_width(kv_heads: Any, head_dimension: Any) -> Any:
    """Width of keys, and of values (kv)."""
    return kv_heads * head_dimension


@term("count")
def attention_output_width(attention_heads: Any, value_head_dimension: Any) -> Any:
    """Width of what attention hands to its output projection."""
    return attention_heads * value_head_dimension


# ---------------------------------------------------------------------- what layers are made of
@term("count", source=_CLASS, label="MLP matrices")
def mlp_matrices(models: Any, model_row: Any) -> Any:
    """Matrices of an MLP: gate, up and down, or only up and down."""
    return models.mlp_matrices[model_row]


@term("switch", source=_CLASS)
def fused_qkv(models: Any, model_row: Any) -> Any:
    """1 when queries, keys and values come from one matrix."""
    return models.fused_qkv[model_row]


@term("switch", source=_CLASS, label="Fused MLP")
def fused_mlp(models: Any, model_row: Any) -> Any:
    """1 when gate and up are one matrix."""
    return models.fused_mlp[model_row]


# ---------------------------------------------------------------------- experts
@term("experts", source=_CONFIG)
def expert_count(models: Any, model_row: Any) -> Any:
    """Routed experts of a layer that has any; 0 in a dense model."""
    return models.expert_count[model_row]


@term("experts", source=_CONFIG)
def experts_per_token(models: Any, model_row: Any) -> Any:
    """Routed experts that a token passes."""
    return models.experts_per_token[model_row]


@term("count", source=_CONFIG)
def expert_width(models: Any, model_row: Any) -> Any:
    """Intermediate size of one routed expert."""
    return models.expert_width[model_row]


@term("count", source=_CONFIG)
def shared_expert_width(models: Any, model_row: Any) -> Any:
    """Intermediate size of all shared experts of a layer together; every token passes them."""
    return models.shared_expert_width[model_row]


@term("layers", source=_CONFIG, label="Expert layers: period")
def moe_period(models: Any, model_row: Any) -> Any:
    """Every so many layers, from the offset on, one has experts; 0 when none has, or in no regular pattern."""
    return models.moe_period[model_row]


@term("layers", source=_CONFIG, label="Expert layers: offset")
def moe_offset(models: Any, model_row: Any) -> Any:
    """The lowest layer with experts, from 0."""
    return models.moe_offset[model_row]


@term("layers", label="Expert layers by pattern")
def patterned_moe_layers(layer_count: Any, moe_offset: Any, moe_period: Any) -> Any:
    """Layers with experts, where they follow a pattern."""
    return maximum(0, floor((layer_count - 1 - moe_offset) / maximum(1, moe_period)) + 1)


@term("layers", label="Expert layers")
def moe_layer_count(moe_period: Any, patterned_moe_layers: Any, models: Any, model_row: Any) -> Any:
    """Layers with experts."""
    return when(moe_period > 0, patterned_moe_layers, models.moe_layer_count[model_row])


@term("layers", label="Dense layers")
def dense_layer_count(layer_count: Any, moe_layer_count: Any) -> Any:
    """Layers with a plain MLP."""
    return layer_count - moe_layer_count


# ---------------------------------------------------------------------- windows
@term("text", source=_CONFIG)
def window_kind(models: Any, model_row: Any) -> Any:
    """How layers with a window attend: sliding (the last tokens), chunked (those of the same chunk), or none."""
    return models.window_kind[model_row]


@term("layers", source=_CONFIG, label="Full-attention layers: period")
def full_period(models: Any, model_row: Any) -> Any:
    """Every so many layers, from the offset on, one attends to all; 0 when none does, or in no regular pattern."""
    return models.full_period[model_row]


@term("layers", source=_CONFIG, label="Full-attention layers: offset")
def full_offset(models: Any, model_row: Any) -> Any:
    """The lowest layer that attends to all, from 0."""
    return models.full_offset[model_row]


@term("layers", label="Full-attention layers by pattern")
def patterned_full_layers(layer_count: Any, full_offset: Any, full_period: Any) -> Any:
    """Layers that attend to all, where they follow a pattern."""
    return maximum(0, floor((layer_count - 1 - full_offset) / maximum(1, full_period)) + 1)


@term("layers", label="Full-attention layers")
def full_layer_count(full_period: Any, patterned_full_layers: Any, models: Any, model_row: Any) -> Any:
    """Layers that attend to all tokens."""
    return when(full_period > 0, patterned_full_layers, models.full_layer_count[model_row])


@term("layers", label="Windowed layers")
def windowed_layer_count(layer_count: Any, full_layer_count: Any) -> Any:
    """Layers that attend to a window."""
    return layer_count - full_layer_count


@term("values per token", label="KV values per token and layer")
def kv_values_per_token_per_layer(kv_latent_width: Any, rope_dimension: Any, kv_width: Any) -> Any:
    """What a layer's KV cache holds for one token: keys and values, or the latent and the shared part of the keys."""
    return when(kv_latent_width > 0, kv_latent_width + rope_dimension, 2 * kv_width)


@overridable(Whole(0, 1_000_000))
@term("tokens", source=_CONFIG)
def image_tokens(models: Any, model_row: Any) -> Any:
    """Tokens that one image becomes; 0 when the model reads none, or when it depends on the image."""
    return models.image_tokens[model_row]


@term("tokens", source=_CONFIG)
def maximum_positions(models: Any, model_row: Any) -> Any:
    """The longest sequence the model was made for; 0 when its config does not say."""
    return models.maximum_positions[model_row]


@term("tokens", source=_CONFIG)
def sliding_window(models: Any, model_row: Any) -> Any:
    """Tokens that a layer with a window attends to; 0 when every layer attends to all."""
    return models.sliding_window[model_row]


@check("attention_heads is {attention_heads}; it must be a multiple of kv_heads, which is {kv_heads}")
@term("switch")
def heads_divide(attention_heads: Any, kv_heads: Any) -> Any:
    """1 when the attention heads share the KV heads evenly."""
    return when(floor(attention_heads / kv_heads) * kv_heads >= attention_heads, 1, 0)

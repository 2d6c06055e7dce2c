"""Weights: every parameter in its storage format, and what one card holds of them."""

from typing import Any

from ...formula.declare import Choice, Constant, Input, check, term
from ...formula.primitives import floor, minimum, when

_FORMAT = "storage_formats.csv"
attention_in_16_bit = Input(
    "text",
    Choice("switches"),
    "Off",
    "Attention in 16 bit",
    "On for a checkpoint that quantises its MLPs and experts alone: attention among modules_to_not_convert.",
)
expert_width_step = Constant(
    256,
    "count",
    "Step of expert widths",
    "vLLM pads MXFP4 experts to a multiple of it: gpt-oss 2,880 to 3,072",
    "published",
)


@term("switch")
def attention_kept(switches: Any, attention_in_16_bit: Any) -> Any:
    """1 when a quantised checkpoint keeps its attention in 16 bit."""
    return switches.value[switches.row_of(attention_in_16_bit)]


@term("parameters")
def kept_linears(attention_kept: Any, plain_linears: Any, all_attention_parameters: Any) -> Any:
    """Attention that a quantised checkpoint keeps in 16 bit."""
    return attention_kept * plain_linears * all_attention_parameters


@term("parameters", source=_FORMAT)
def converted_linears(
    storage_formats: Any,
    storage_row: Any,
    convertible_parameters: Any,
    vision_convertible_parameters: Any,
    kept_linears: Any,
) -> Any:
    """Linear modules of the layers, and of an image tower, where the format converts them."""
    linears = convertible_parameters + vision_convertible_parameters - kept_linears
    return storage_formats.converts_linears[storage_row] * linears


@term("switch", source=_FORMAT)
def converted_experts(storage_formats: Any, storage_row: Any) -> Any:
    """1 when the format converts routed experts."""
    return storage_formats.converts_experts[storage_row]


@check(
    "quantised_head is {quantised_head!r} with base_storage_format {base_storage_format!r}; only a quantised model's"
    " head is quantised",
    fault=False,
)
@term("switch")
def quantised_head_has_effect(switches: Any, quantised_head: Any, quantised_base: Any) -> Any:
    """0 when the output head should be quantised and the model is not."""
    return when(switches.value[switches.row_of(quantised_head)] > quantised_base, 0, 1)


@term("switch")
def head_quantised(quantised_base: Any, switches: Any, quantised_head: Any) -> Any:
    """1 when the output head is quantised with the layers."""
    return quantised_base * switches.value[switches.row_of(quantised_head)]


@term("switch")
def head_untied(head_quantised: Any) -> Any:
    """1 when a tied output head is kept apart from the embeddings: quantising it unties it."""
    return head_quantised


@term("bytes per parameter", source=_FORMAT)
def unquantised_bytes(storage_formats: Any, storage_row: Any) -> Any:
    """Bytes of a parameter that is not converted."""
    return storage_formats.unquantised_bytes[storage_row]


@term("parameters")
def unquantised_parameters(base_parameter_count: Any, untied_parameters: Any, quantised_parameters: Any) -> Any:
    """Parameters that the format leaves as they are: embeddings, head, norms, routers, biases."""
    return base_parameter_count + untied_parameters - quantised_parameters


@term("bytes per parameter", source=_FORMAT)
def expert_matrix_bytes(converted_experts: Any, storage_formats: Any, storage_row: Any, unquantised_bytes: Any) -> Any:
    """Bytes of a parameter of a routed expert's matrices."""
    return when(converted_experts > 0, storage_formats.bytes_per_parameter[storage_row], unquantised_bytes)


@term("count")
def padded_expert_width(expert_width: Any, expert_width_step: Any) -> Any:
    """Width of an expert, up to the next step."""
    return (floor((expert_width - 1) / expert_width_step) + 1) * expert_width_step


@term("switch", source=_FORMAT)
def experts_alone(storage_formats: Any, storage_row: Any) -> Any:
    """1 when the format converts routed experts and nothing else."""
    return storage_formats.converts_experts[storage_row] * (1 - storage_formats.converts_linears[storage_row])


@term("share")
def expert_padding(
    padded_expert_width: Any, expert_width: Any, engines: Any, engine_row: Any, experts_alone: Any
) -> Any:
    """What the engine's padding adds to experts, as a share of them; only a format of experts alone is padded."""
    more = when(expert_width > 0, padded_expert_width / when(expert_width > 0, expert_width, 1) - 1, 0)
    return engines.pads_experts[engine_row] * experts_alone * more


@term("bytes")
def expert_padding_bytes(expert_padding: Any, expert_matrix_parameters: Any, expert_matrix_bytes: Any) -> Any:
    """Bytes that padding adds to all routed experts."""
    return expert_padding * expert_matrix_parameters * expert_matrix_bytes


@term("bytes")
def model_weights(
    unquantised_parameters: Any, unquantised_bytes: Any, quantised_weights: Any, expert_padding_bytes: Any
) -> Any:
    """The whole model in its storage format, once, as the engine keeps it: all experts, whichever are at work."""
    return unquantised_parameters * unquantised_bytes + quantised_weights + expert_padding_bytes


@term("GB", label="Weights, whole model")
def model_weights_gb(model_weights: Any, bytes_per_gb: Any) -> Any:
    """The whole model in its storage format, once."""
    return model_weights / bytes_per_gb


# ---------------------------------------------------------------------- of one card
@term("bytes")
def expert_weights(
    expert_matrix_parameters: Any,
    expert_matrix_bytes: Any,
    expert_padding_bytes: Any,
    all_expert_parameters: Any,
    unquantised_bytes: Any,
) -> Any:
    """All routed experts."""
    biases = (all_expert_parameters - expert_matrix_parameters) * unquantised_bytes
    return expert_matrix_parameters * expert_matrix_bytes + expert_padding_bytes + biases


@term("bytes")
def outer_weights(outer_parameters: Any, unquantised_bytes: Any) -> Any:
    """Embeddings, output head and image tower."""
    return outer_parameters * unquantised_bytes


@term("bytes")
def outer_weights_held(
    outer_weights: Any, embedding_parameters: Any, unquantised_bytes: Any, pipeline_parallel: Any, tensor_parallel: Any
) -> Any:
    """Of these what a card holds; with a pipeline, one of embeddings and head on the stage that has it."""
    one = minimum(outer_weights, embedding_parameters * unquantised_bytes)
    return when(pipeline_parallel > 1, one, outer_weights) / tensor_parallel


@term("parameters")
def repeated_parameters(
    norm_parameters: Any,
    router_parameters: Any,
    layer_count: Any,
    hidden_size: Any,
    kv_latent_width: Any,
    rope_dimension: Any,
    query_latent_width: Any,
) -> Any:
    """Parameters of the layers that every card of a tensor parallel group holds: norms, routers, ways into latents."""
    latents = when(kv_latent_width > 0, query_latent_width + kv_latent_width + rope_dimension, 0)
    return norm_parameters + router_parameters + layer_count * hidden_size * latents


@term("switch", source=_FORMAT)
def attention_converted(storage_formats: Any, storage_row: Any, quantised_base: Any, attention_kept: Any) -> Any:
    """1 when the attention projections are converted."""
    return quantised_base * storage_formats.converts_linears[storage_row] * (1 - attention_kept)


@term("bytes per parameter")
def linear_bytes(attention_converted: Any, storage_formats: Any, storage_row: Any, unquantised_bytes: Any) -> Any:
    """Bytes of a parameter of the attention projections."""
    return when(attention_converted > 0, storage_formats.bytes_per_parameter[storage_row], unquantised_bytes)


@term("bytes")
def repeated_weights(repeated_parameters: Any, unquantised_bytes: Any) -> Any:
    """Weights of the layers that every card of a tensor parallel group holds, in 16 bit as norms and routers are."""
    return repeated_parameters * unquantised_bytes


@term("bytes", label="Repeated KV projections")
def repeated_kv_weights(
    kv_heads_held: Any, kv_heads: Any, tensor_parallel: Any, layer_count: Any, kv_parameters: Any, linear_bytes: Any,
    kv_latent_width: Any,
) -> Any:  # fmt: skip
    """What a card holds more where KV heads are repeated: their projections, beyond an even part."""
    more = kv_heads_held / kv_heads - 1 / tensor_parallel
    return when(kv_latent_width > 0, 0, more * layer_count * kv_parameters * linear_bytes)


@term("bytes")
def layer_weights(model_weights: Any, expert_weights: Any, outer_weights: Any) -> Any:
    """Weights of the layers without routed experts."""
    return model_weights - expert_weights - outer_weights


@term("bytes")
def layer_weights_held(
    layer_weights: Any, repeated_weights: Any, repeated_kv_weights: Any, tensor_parallel: Any, stage_share: Any
) -> Any:
    """Of these what the fullest card holds."""
    repeated = minimum(repeated_weights, layer_weights)
    return stage_share * ((layer_weights - repeated) / tensor_parallel + repeated + repeated_kv_weights)


@term("bytes")
def expert_weights_held(expert_weights: Any, stage_share: Any, expert_shards: Any) -> Any:
    """Routed experts that the fullest card holds."""
    return expert_weights * stage_share / expert_shards


@term("count")
def rotated_width(kv_latent_width: Any, rope_dimension: Any, head_dimension: Any) -> Any:
    """Values of a head that are rotated by their position."""
    return when(kv_latent_width > 0, rope_dimension, head_dimension)


@term("bytes", source="vLLM: RotaryEmbedding; the start logs agree")
def rope_table(
    engines: Any,
    engine_row: Any,
    models: Any,
    model_row: Any,
    maximum_positions: Any,
    rotated_width: Any,
    bf16_bytes: Any,
) -> Any:
    """Sines and cosines of every position that the model takes, whole on each card; none with learned positions."""
    values = when(models.position_rows[model_row] > 0, 0, maximum_positions * rotated_width)
    return engines.rope_tables[engine_row] * values * bf16_bytes


@term("bytes", label="Weights of a card")
def weights_held(layer_weights_held: Any, expert_weights_held: Any, outer_weights_held: Any, rope_table: Any) -> Any:
    """Weights that the fullest card holds, and its table of positions."""
    return layer_weights_held + expert_weights_held + outer_weights_held + rope_table


@term("GB", label="Weights of a card")
def weights_gb(weights_held: Any, bytes_per_gb: Any) -> Any:
    """Weights that the fullest card holds."""
    return weights_held / bytes_per_gb

"""Parameters of a decoder, exactly, by component: as many as its class in transformers has.

Counts are of the model without quantisation. Buffers, and blocks that predict further tokens, are not parameters.
"""

from typing import Any

from ...formula.declare import Whole, overridable, term
from ...formula.primitives import maximum, when

_CLASS = "the model's class in transformers 5.20"


# ---------------------------------------------------------------------- attention
@term("parameters")
def query_parameters(query_latent_width: Any, hidden_size: Any, query_width: Any) -> Any:
    """Weights that make one layer's queries: one matrix, or two with a latent between."""
    latent = query_latent_width * (hidden_size + query_width)
    return when(query_latent_width > 0, latent, hidden_size * query_width)


@term("count", label="KV expansion width")
def kv_expansion_width(query_width: Any, attention_heads: Any, rope_dimension: Any, attention_output_width: Any) -> Any:
    """Width of keys without positions and of values, all heads together: what the KV latent expands to."""
    return query_width - attention_heads * rope_dimension + attention_output_width


@term("parameters", label="KV latent parameters")
def kv_latent_parameters(hidden_size: Any, kv_latent_width: Any, rope_dimension: Any, kv_expansion_width: Any) -> Any:
    """Weights into the KV latent, with the shared part of the keys, and out of it."""
    return hidden_size * (kv_latent_width + rope_dimension) + kv_latent_width * kv_expansion_width


@term("parameters", label="KV parameters")
def kv_parameters(kv_latent_width: Any, kv_latent_parameters: Any, hidden_size: Any, kv_width: Any) -> Any:
    """Weights that make one layer's keys and values."""
    return when(kv_latent_width > 0, kv_latent_parameters, 2 * hidden_size * kv_width)


@term("parameters")
def attention_parameters(
    query_parameters: Any, kv_parameters: Any, attention_output_width: Any, hidden_size: Any
) -> Any:
    """Weights of one layer's attention projections."""
    return query_parameters + kv_parameters + attention_output_width * hidden_size


@term("count", label="Width of query, key and value biases")
def qkv_bias_width(
    kv_latent_width: Any, query_latent_width: Any, rope_dimension: Any, query_width: Any, kv_width: Any
) -> Any:
    """Outputs that get a bias where the family has one: queries, keys and values, or their latents."""
    latent = query_latent_width + kv_latent_width + rope_dimension
    return when(kv_latent_width > 0, latent, query_width + 2 * kv_width)


@term("parameters")
def attention_bias_parameters(models: Any, model_row: Any, qkv_bias_width: Any, hidden_size: Any) -> Any:
    """Biases of one layer's attention, where the family has them."""
    return models.qkv_bias[model_row] * qkv_bias_width + models.output_bias[model_row] * hidden_size


@term("parameters", source=_CLASS)
def attention_sink_parameters(models: Any, model_row: Any, attention_heads: Any) -> Any:
    """One learned score a head that no token takes up, where the family has them."""
    return models.attention_sinks[model_row] * attention_heads


@term("parameters", source=_CLASS)
def head_norm_parameters(models: Any, model_row: Any, head_dimension: Any) -> Any:
    """Norms over each head of queries and keys, of one layer."""
    return models.head_norm_vectors[model_row] * head_dimension


@term("parameters", source=_CLASS)
def wide_norm_parameters(models: Any, model_row: Any, query_width: Any, kv_width: Any) -> Any:
    """Norms over all queries and all keys, of one layer."""
    return models.wide_qk_norms[model_row] * (query_width + kv_width)


@term("parameters")
def attention_norm_parameters(
    head_norm_parameters: Any, wide_norm_parameters: Any, query_latent_width: Any, kv_latent_width: Any
) -> Any:
    """Norms inside one layer's attention; latents have one each."""
    return head_norm_parameters + wide_norm_parameters + query_latent_width + kv_latent_width


# ---------------------------------------------------------------------- MLP and experts
@term("parameters", label="MLP parameters")
def mlp_parameters(mlp_matrices: Any, hidden_size: Any, mlp_width: Any) -> Any:
    """Weights of one dense layer's MLP."""
    return mlp_matrices * hidden_size * mlp_width


@term("parameters", label="MLP bias parameters")
def mlp_bias_parameters(models: Any, model_row: Any, hidden_size: Any, mlp_matrices: Any, mlp_width: Any) -> Any:
    """Biases of one dense layer's MLP, where the family has them."""
    return models.mlp_bias[model_row] * (hidden_size + (mlp_matrices - 1) * mlp_width)


@term("parameters", source=_CLASS)
def expert_bias_parameters(models: Any, model_row: Any, hidden_size: Any, mlp_matrices: Any, expert_width: Any) -> Any:
    """Biases of one routed expert, where the family has them."""
    return models.expert_bias[model_row] * (hidden_size + (mlp_matrices - 1) * expert_width)


@term("parameters", label="Parameters of one expert")
def expert_parameters(mlp_matrices: Any, hidden_size: Any, expert_width: Any, expert_bias_parameters: Any) -> Any:
    """One routed expert, biases included."""
    return mlp_matrices * hidden_size * expert_width + expert_bias_parameters


@term("parameters")
def router_parameters(models: Any, model_row: Any, hidden_size: Any, expert_count: Any, moe_layer_count: Any) -> Any:
    """What scores the experts, in all layers that have any."""
    return moe_layer_count * expert_count * (hidden_size + models.expert_bias[model_row])


@term("parameters")
def shared_expert_parameters(
    mlp_matrices: Any, hidden_size: Any, shared_expert_width: Any, models: Any, model_row: Any
) -> Any:
    """Weights of one layer's shared experts, and of the gate before them where there is one."""
    return hidden_size * (mlp_matrices * shared_expert_width + models.shared_expert_gate[model_row])


@term("count")
def shared_output_rows(shared_expert_width: Any, mlp_matrices: Any, hidden_size: Any) -> Any:
    """Output rows of the matrices of one layer's shared experts, without a gate."""
    return when(shared_expert_width > 0, hidden_size + (mlp_matrices - 1) * shared_expert_width, 0)


@term("parameters", label="Parameters of all experts")
def all_expert_parameters(moe_layer_count: Any, expert_count: Any, expert_parameters: Any) -> Any:
    """All routed experts of all layers."""
    return moe_layer_count * expert_count * expert_parameters


@term("parameters", label="Parameters of all shared experts")
def all_shared_parameters(moe_layer_count: Any, shared_expert_parameters: Any) -> Any:
    """All shared experts of all layers, biases not included."""
    return moe_layer_count * shared_expert_parameters


@term("parameters")
def shared_bias_parameters(models: Any, model_row: Any, shared_output_rows: Any) -> Any:
    """Biases of one layer's shared experts, where the family's MLPs have them."""
    return models.mlp_bias[model_row] * shared_output_rows


# ---------------------------------------------------------------------- a layer
@term("parameters")
def layer_matrix_parameters(attention_parameters: Any, mlp_parameters: Any) -> Any:
    """Weights of the linear modules of one dense layer."""
    return attention_parameters + mlp_parameters


@term("rows")
def attention_output_rows(query_width: Any, qkv_bias_width: Any, kv_latent_width: Any, kv_expansion_width: Any) -> Any:
    """Output rows of one layer's attention matrices but the last: latents, and what they expand to."""
    return qkv_bias_width + when(kv_latent_width > 0, query_width + kv_expansion_width, 0)


@term("rows", label="MLP output rows")
def mlp_output_rows(hidden_size: Any, mlp_matrices: Any, mlp_width: Any) -> Any:
    """Output rows of one dense layer's MLP matrices."""
    return hidden_size + (mlp_matrices - 1) * mlp_width


@term("count")
def attention_modules(fused_qkv: Any, query_latent_width: Any) -> Any:
    """Linear modules of one layer's attention."""
    return 2 + 2 * (1 - fused_qkv) + when(query_latent_width > 0, 1, 0)


@term("count", label="MLP modules")
def mlp_modules(mlp_matrices: Any, fused_mlp: Any) -> Any:
    """Linear modules of one MLP."""
    return mlp_matrices - fused_mlp


@term("count")
def largest_attention_matrix(
    query_latent_width: Any, hidden_size: Any, query_width: Any, fused_qkv: Any, kv_width: Any
) -> Any:
    """Weights of the largest matrix that makes queries, or queries, keys and values at once."""
    inputs = when(query_latent_width > 0, query_latent_width, hidden_size)
    return inputs * (query_width + 2 * fused_qkv * kv_width)


@term("count")
def largest_kv_matrix(
    kv_latent_width: Any, kv_expansion_width: Any, attention_output_width: Any, hidden_size: Any
) -> Any:
    """Weights of the larger of the expansion of the KV latent and the output projection."""
    return maximum(kv_latent_width * kv_expansion_width, attention_output_width * hidden_size)


@term("count", label="Largest MLP matrix")
def largest_mlp_matrix(
    dense_layer_count: Any, hidden_size: Any, mlp_width: Any, shared_expert_width: Any, fused_mlp: Any
) -> Any:
    """Weights of the largest matrix of an MLP or of shared experts; routed experts are no linear modules."""
    return hidden_size * (1 + fused_mlp) * maximum(when(dense_layer_count > 0, mlp_width, 0), shared_expert_width)


@term("count")
def largest_matrix_parameters(largest_attention_matrix: Any, largest_kv_matrix: Any, largest_mlp_matrix: Any) -> Any:
    """Weights of the largest linear module of a layer."""
    return maximum(largest_attention_matrix, largest_kv_matrix, largest_mlp_matrix)


# ---------------------------------------------------------------------- outside the layers
@term("count")
def embedding_width(models: Any, model_row: Any, hidden_size: Any) -> Any:
    """Width of the token embeddings; that of the residual stream in all but a few models."""
    return when(models.embedding_width[model_row] > 0, models.embedding_width[model_row], hidden_size)


@term("parameters")
def embedding_parameters(vocabulary_size: Any, embedding_width: Any) -> Any:
    """Token embeddings."""
    return vocabulary_size * embedding_width


@term("parameters", label="Output head parameters")
def head_parameters(models: Any, model_row: Any, embedding_parameters: Any, vocabulary_size: Any) -> Any:
    """The output layer where it is not tied to the embeddings, and its bias where it has one."""
    return (1 - models.tied[model_row]) * embedding_parameters + models.head_bias[model_row] * vocabulary_size


@term("parameters")
def position_parameters(models: Any, model_row: Any, hidden_size: Any) -> Any:
    """Learned position embeddings."""
    return models.position_rows[model_row] * hidden_size


@term("parameters")
def embedding_projection_parameters(models: Any, model_row: Any, embedding_width: Any, hidden_size: Any) -> Any:
    """Matrices between embeddings and residual stream where their widths differ."""
    return when(models.embedding_width[model_row] > 0, 2 * embedding_width * hidden_size, 0)


@term("parameters", source=_CLASS)
def norm_parameters(
    layer_count: Any, models: Any, model_row: Any, hidden_size: Any, attention_norm_parameters: Any
) -> Any:
    """All norms of the layers, weights and biases."""
    return layer_count * (models.layer_norm_vectors[model_row] * hidden_size + attention_norm_parameters)


@term("parameters", source=_CLASS)
def outer_norm_parameters(models: Any, model_row: Any, hidden_size: Any) -> Any:
    """Norms outside the layers: the final one, and one behind the embeddings where there is one."""
    return models.outer_norm_vectors[model_row] * hidden_size


@term("parameters", source=_CLASS)
def vision_parameters(models: Any, model_row: Any) -> Any:
    """The tower that reads images, with its projector into the decoder."""
    return models.vision_parameters[model_row]


# ---------------------------------------------------------------------- all together
@term("parameters")
def all_attention_parameters(layer_count: Any, attention_parameters: Any) -> Any:
    """Attention matrices of all layers."""
    return layer_count * attention_parameters


@term("parameters", label="Parameters of all dense MLPs")
def all_mlp_parameters(dense_layer_count: Any, mlp_parameters: Any) -> Any:
    """MLP matrices of all dense layers."""
    return dense_layer_count * mlp_parameters


@term("parameters")
def bias_parameters(
    layer_count: Any,
    attention_bias_parameters: Any,
    attention_sink_parameters: Any,
    mlp_layer_biases: Any,
) -> Any:
    """Biases of all layers, with attention sinks; those of routed experts, routers and the head are counted there."""
    return layer_count * (attention_bias_parameters + attention_sink_parameters) + mlp_layer_biases


@term("parameters", label="Biases of all MLPs")
def mlp_layer_biases(
    dense_layer_count: Any, mlp_bias_parameters: Any, moe_layer_count: Any, shared_bias_parameters: Any
) -> Any:
    """Biases of all dense MLPs and shared experts."""
    return dense_layer_count * mlp_bias_parameters + moe_layer_count * shared_bias_parameters


@term("parameters")
def layers_parameters(
    all_attention_parameters: Any,
    all_mlp_parameters: Any,
    all_expert_parameters: Any,
    all_shared_parameters: Any,
    router_parameters: Any,
    bias_parameters: Any,
) -> Any:
    """All layers without their norms."""
    experts = all_expert_parameters + all_shared_parameters + router_parameters
    return all_attention_parameters + all_mlp_parameters + experts + bias_parameters


@term("parameters")
def outer_parameters(
    embedding_parameters: Any,
    head_parameters: Any,
    position_parameters: Any,
    embedding_projection_parameters: Any,
    vision_parameters: Any,
) -> Any:
    """What stands before and behind the layers, without norms."""
    text = embedding_parameters + head_parameters + position_parameters + embedding_projection_parameters
    return text + vision_parameters


@overridable(Whole(1, 10**14))
@term("parameters", source="closed form; equals the module-by-module count of transformers for every model")
def base_parameter_count(
    layers_parameters: Any, norm_parameters: Any, outer_parameters: Any, outer_norm_parameters: Any
) -> Any:
    """Parameters of the base model, exactly (Nb)."""
    return layers_parameters + norm_parameters + outer_parameters + outer_norm_parameters


@term("parameters")
def idle_parameters(moe_layer_count: Any, expert_count: Any, experts_per_token: Any, expert_parameters: Any) -> Any:
    """Routed experts that one token does not pass."""
    return moe_layer_count * (expert_count - experts_per_token) * expert_parameters


@term("parameters")
def active_parameters(base_parameter_count: Any, idle_parameters: Any, vision_parameters: Any) -> Any:
    """Parameters at work for one token of text: neither the experts it does not pass nor what reads images."""
    return base_parameter_count - idle_parameters - vision_parameters


# ---------------------------------------------------------------------- what 4-bit and 8-bit loading converts
_CONVERTED = "bitsandbytes in transformers 5.20: PyTorch's own linear modules and Conv1D, no subclass, no fused experts"


@term("switch", source=_CONVERTED)
def plain_linears(models: Any, model_row: Any) -> Any:
    """1 when the layers' linear modules are such that bitsandbytes converts them."""
    return models.plain_linears[model_row]


@term("parameters", source=_CONVERTED)
def convertible_parameters(
    plain_linears: Any,
    layer_count: Any,
    attention_parameters: Any,
    dense_layer_count: Any,
    mlp_parameters: Any,
    moe_layer_count: Any,
    shared_expert_parameters: Any,
) -> Any:
    """Weights inside the decoder layers that bitsandbytes converts."""
    mlps = dense_layer_count * mlp_parameters + moe_layer_count * shared_expert_parameters
    return plain_linears * (layer_count * attention_parameters + mlps)


@term("parameters", source=_CONVERTED)
def vision_convertible_parameters(models: Any, model_row: Any) -> Any:
    """Weights of the image tower and its projector that bitsandbytes converts."""
    return models.vision_linear_parameters[model_row]


@term("rows", source=_CONVERTED)
def convertible_output_rows(
    plain_linears: Any,
    layer_count: Any,
    attention_output_rows: Any,
    hidden_size: Any,
    dense_layer_count: Any,
    mlp_output_rows: Any,
    convertible_shared_rows: Any,
) -> Any:
    """Output rows of all converted matrices inside the decoder layers."""
    attention = layer_count * (attention_output_rows + hidden_size)
    return plain_linears * (attention + dense_layer_count * mlp_output_rows + convertible_shared_rows)


@term("rows", source=_CONVERTED)
def convertible_shared_rows(moe_layer_count: Any, shared_output_rows: Any, models: Any, model_row: Any) -> Any:
    """Output rows of all shared experts and of their gates."""
    return moe_layer_count * (shared_output_rows + models.shared_expert_gate[model_row])


@term("count", source=_CONVERTED)
def shared_modules(shared_expert_width: Any, mlp_modules: Any, models: Any, model_row: Any) -> Any:
    """Linear modules of one layer's shared experts, and their gate."""
    return when(shared_expert_width > 0, mlp_modules, 0) + models.shared_expert_gate[model_row]


@term("count", source=_CONVERTED)
def convertible_modules(
    plain_linears: Any,
    layer_count: Any,
    attention_modules: Any,
    dense_layer_count: Any,
    mlp_modules: Any,
    moe_layer_count: Any,
    shared_modules: Any,
) -> Any:
    """Linear modules inside the decoder layers that bitsandbytes converts."""
    mlps = dense_layer_count * mlp_modules + moe_layer_count * shared_modules
    return plain_linears * (layer_count * attention_modules + mlps)

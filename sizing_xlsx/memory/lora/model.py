"""The base model: its shape, each figure from config.json or from the user, and its parameters."""

from typing import Any

from ...formula.declare import Choice, Input, Whole, check, overridable, term
from ...formula.primitives import floor, maximum, when

_CONFIG = "the model's config.json"
base_model = Input(
    "text",
    Choice("models"),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "Base model",
    "The model you adapt; its shape comes from its config.json.",
)
base_storage_format = Input(
    "text",
    Choice("storage_formats"),
    "bf16",
    "Base storage format",
    "How the frozen weights are kept on the card.",
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
    """Intermediate size of the gated MLP (ff)."""
    return models.mlp_width[model_row]


@overridable(Whole(1, 10_000_000))
@term("count", source=_CONFIG)
def vocabulary_size(models: Any, model_row: Any) -> Any:
    """Entries of the vocabulary (V): width of the output scores."""
    return models.vocabulary_size[model_row]


@term("count")
def query_width(attention_heads: Any, head_dimension: Any) -> Any:
    """Width of queries and of the attention output (q)."""
    return attention_heads * head_dimension


@term("count", label="KV width")
def kv_width(kv_heads: Any, head_dimension: Any) -> Any:
    """Width of keys, and of values (kv)."""
    return kv_heads * head_dimension


@term("parameters")
def attention_parameters(hidden_size: Any, query_width: Any, kv_width: Any) -> Any:
    """Weights of one layer's four attention projections."""
    return 2 * hidden_size * query_width + 2 * hidden_size * kv_width


@term("parameters", label="MLP parameters")
def mlp_parameters(hidden_size: Any, mlp_width: Any) -> Any:
    """Weights of one layer's gate, up and down projections."""
    return 2 * hidden_size * mlp_width + mlp_width * hidden_size


@term("parameters")
def layer_matrix_parameters(attention_parameters: Any, mlp_parameters: Any) -> Any:
    """Weights of the linear modules of one layer: what a quantised format converts."""
    return attention_parameters + mlp_parameters


@term("rows")
def layer_output_rows(hidden_size: Any, query_width: Any, kv_width: Any, mlp_width: Any) -> Any:
    """Output rows of one layer's linear modules; LLM.int8 keeps one scale for each."""
    return 2 * hidden_size + query_width + 2 * kv_width + 2 * mlp_width


@term("parameters")
def attention_bias_parameters(models: Any, model_row: Any, query_width: Any, kv_width: Any, hidden_size: Any) -> Any:
    """Biases of one layer's attention, where the family has them."""
    qkv = models.qkv_bias[model_row] * (query_width + 2 * kv_width)
    return qkv + models.output_bias[model_row] * hidden_size


@term("parameters")
def layer_bias_parameters(
    attention_bias_parameters: Any, models: Any, model_row: Any, hidden_size: Any, mlp_width: Any
) -> Any:
    """Biases of one layer, where the family has them."""
    return attention_bias_parameters + models.mlp_bias[model_row] * (hidden_size + 2 * mlp_width)


@term("parameters")
def embedding_parameters(models: Any, model_row: Any, vocabulary_size: Any, hidden_size: Any) -> Any:
    """Token embeddings, and the output head where it is not tied to them."""
    return (2 - models.tied[model_row]) * vocabulary_size * hidden_size


@term("parameters")
def norm_parameters(layer_count: Any, hidden_size: Any) -> Any:
    """Two norms a layer and the final one."""
    return (2 * layer_count + 1) * hidden_size


@term("parameters")
def layers_parameters(layer_count: Any, layer_matrix_parameters: Any, layer_bias_parameters: Any) -> Any:
    """Matrices and biases of all layers."""
    return layer_count * (layer_matrix_parameters + layer_bias_parameters)


@overridable(Whole(1, 10**14))
@term("parameters", source="closed form; equals the module-by-module count for every model offered")
def base_parameter_count(layers_parameters: Any, embedding_parameters: Any, norm_parameters: Any) -> Any:
    """Parameters of the frozen base, exactly (Nb)."""
    return layers_parameters + embedding_parameters + norm_parameters


@term("count")
def largest_matrix_parameters(hidden_size: Any, mlp_width: Any, query_width: Any) -> Any:
    """Weights of the largest linear module of a layer."""
    return hidden_size * maximum(mlp_width, query_width)


@term("tokens", source=_CONFIG)
def maximum_positions(models: Any, model_row: Any) -> Any:
    """The longest sequence the model was made for; 0 when its config does not say."""
    return models.maximum_positions[model_row]


@term("tokens", source=_CONFIG)
def sliding_window(models: Any, model_row: Any) -> Any:
    """Tokens a layer attends to; 0 when it attends to all."""
    return models.sliding_window[model_row]


@check("attention_heads is {attention_heads}; it must be a multiple of kv_heads, which is {kv_heads}")
@term("switch")
def heads_divide(attention_heads: Any, kv_heads: Any) -> Any:
    """1 when the attention heads share the KV heads evenly."""
    return when(floor(attention_heads / kv_heads) * kv_heads >= attention_heads, 1, 0)


@check(
    "sequence_length is {sequence_length}; beyond the {sliding_window}-token window of {base_model} attention keeps"
    " more than the traced list counts",
    fault=False,
)
@term("switch")
def sequence_within_window(sliding_window: Any, sequence_length: Any) -> Any:
    """1 when no layer's window is shorter than the sequence: beyond it the traced list is too low."""
    return when((sliding_window > 0) & (sequence_length > sliding_window), 0, 1)

"""The model that is trained from nothing: a pre-norm transformer encoder, its shape and its parameters."""

from typing import Any

from ...formula.declare import Choice, Constant, Input, Whole, check, overridable, term
from ...formula.primitives import equal, floor, when

_SHAPE = "the shape chosen on Presets"
layer_vectors = Constant(
    9,
    "count",
    "Hidden-width vectors per layer",
    "query, key, value, output and second MLP bias, two norms of two",
    "definition",
)
base_model = Input(
    "text",
    Choice("training_models"),
    "Article worked model (1.01B)",
    "Model",
    "The shape you train; replace any figure on Overrides.",
)
parameter_storage = Input(
    "text",
    Choice("parameter_storage_options"),
    "fp32",
    "Parameter storage",
    "fp32 keeps full precision; true bf16 is rare: small updates round to nothing.",
)


@term("row")
def model_row(training_models: Any, base_model: Any) -> Any:
    """Row of the shape in its table."""
    return training_models.row_of(base_model)


@overridable(Whole(1, 1_000_000))
@term("count", source=_SHAPE)
def hidden_size(training_models: Any, model_row: Any) -> Any:
    """Width of the residual stream (d)."""
    return training_models.hidden_size[model_row]


@overridable(Whole(1, 10_000))
@term("layers", source=_SHAPE)
def layer_count(training_models: Any, model_row: Any) -> Any:
    """Encoder layers (L)."""
    return training_models.layer_count[model_row]


@overridable(Whole(1, 100_000))
@term("heads", source=_SHAPE)
def attention_heads(training_models: Any, model_row: Any) -> Any:
    """Attention heads (nh)."""
    return training_models.attention_heads[model_row]


@overridable(Whole(1, 10_000_000))
@term("count", source=_SHAPE, label="MLP width")
def mlp_width(training_models: Any, model_row: Any) -> Any:
    """Width of the feed-forward block (ff = f times d)."""
    return training_models.mlp_width[model_row]


@overridable(Whole(1, 10_000_000))
@term("count", source=_SHAPE)
def vocabulary_size(training_models: Any, model_row: Any) -> Any:
    """Entries of the vocabulary (V): width of the embedding and of the output scores."""
    return training_models.vocabulary_size[model_row]


@term("parameters")
def layer_matrix_parameters(hidden_size: Any, mlp_width: Any) -> Any:
    """Weights of one layer's matrices (M = 4·d² + 2·d·ff)."""
    return 2 * hidden_size * (2 * hidden_size + mlp_width)


@term("parameters")
def layer_vector_parameters(layer_vectors: Any, hidden_size: Any, mlp_width: Any) -> Any:
    """Biases and norms of one layer: 9·d + ff."""
    return layer_vectors * hidden_size + mlp_width


@term("values")
def logit_values(tokens_per_micro_batch: Any, vocabulary_size: Any) -> Any:
    """Output scores: one per token and vocabulary entry."""
    return tokens_per_micro_batch * vocabulary_size


@term("parameters")
def embedding_parameters(vocabulary_size: Any, hidden_size: Any) -> Any:
    """Weights of the token embedding, and as many of the output head."""
    return vocabulary_size * hidden_size


@overridable(Whole(1, 10**14))
@term("parameters", source="closed form; equals what the article sweep measured")
def parameter_count(
    layer_count: Any,
    layer_matrix_parameters: Any,
    layer_vector_parameters: Any,
    embedding_parameters: Any,
    vocabulary_size: Any,
) -> Any:
    """Parameters of the model (N): layers, embedding, head and the head's bias."""
    layers = layer_count * (layer_matrix_parameters + layer_vector_parameters)
    return layers + 2 * embedding_parameters + vocabulary_size


@term("parameters", source="training article")
def matrices_only_parameters(layer_count: Any, layer_matrix_parameters: Any, embedding_parameters: Any) -> Any:
    """The article's count, without biases and norms: (4 + 2f)·d²·L + 2·V·d."""
    return layer_count * layer_matrix_parameters + 2 * embedding_parameters


@term("tokens", source=_SHAPE)
def maximum_positions(training_models: Any, model_row: Any) -> Any:
    """The longest sequence the shape is meant for; 0 when it does not say."""
    return training_models.maximum_positions[model_row]


@term("tokens")
def tokens_per_row(sequence_length: Any) -> Any:
    """Tokens of the longest row."""
    return sequence_length


@check("attention_heads is {attention_heads}; it must divide hidden_size, which is {hidden_size}")
@term("switch")
def heads_divide(hidden_size: Any, attention_heads: Any) -> Any:
    """1 when the heads share the hidden size evenly."""
    return when(floor(hidden_size / attention_heads) * attention_heads >= hidden_size, 1, 0)


@term("row")
def storage_row(parameter_storage_options: Any, parameter_storage: Any) -> Any:
    """Row of the parameter storage in its table."""
    return parameter_storage_options.row_of(parameter_storage)


@term("bytes per parameter")
def storage_bytes(parameter_storage_options: Any, storage_row: Any) -> Any:
    """Bytes of a stored parameter."""
    return parameter_storage_options.storage_bytes[storage_row]


@term("switch")
def fp32_storage(parameter_storage_options: Any, storage_row: Any) -> Any:
    """1 when parameters are stored in fp32."""
    return parameter_storage_options.fp32[storage_row]


@term("switch")
def computes_bf16(computed_half_type: Any) -> Any:
    """1 when matrices are multiplied in bf16."""
    return when(equal(computed_half_type, 1), 1, 0)


@check(
    "parameter_storage is {parameter_storage!r} with compute_precision {compute_precision!r}; parameters stored in bf16"
    " are computed in bf16: choose bf16 autocast"
)
@term("switch")
def precision_suits_storage(fp32_storage: Any, precision_row: Any) -> Any:
    """1 when the compute precision goes with the storage: anything over fp32, bf16 over bf16."""
    return when((fp32_storage > 0) | (precision_row <= 1), 1, 0)

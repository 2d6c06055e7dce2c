"""Training from scratch, published: the accounting of the training article, figure by figure.

fp32 storage, 16-bit autocast, pre-norm encoder layers, dropout 0.1. Per layer 9·T·d·b + 2·T·ff·b and masks of
2·T·d + T·ff; once T·d·b + T·V·b and, under autocast, 4·T·V. The plain sum is the peak; checkpointed, the largest of
three moments is.
"""

from typing import Any

from ...formula.declare import Constant, term
from ...formula.primitives import when

_ARTICLE = "training article"
published_hidden_copies = Constant(9, "count", "Published: hidden-width tensors per layer", _ARTICLE, "published")
published_segment_hidden_copies = Constant(
    7, "count", "Published: hidden-width tensors of a recomputed layer", _ARTICLE, "published"
)
published_segment_mlp_copies = Constant(
    3, "count", "Published: MLP-width tensors of a recomputed layer", _ARTICLE, "published"
)
published_forward_hidden_copies = Constant(
    3, "count", "Published: hidden-width tensors of a layer in forward", _ARTICLE, "published"
)
published_extra_boundaries = Constant(3, "layers", "Published: extra layer boundaries", _ARTICLE, "published")


@term("bytes", source=_ARTICLE)
def published_weights(parameter_count: Any, storage_bytes: Any) -> Any:
    """Every parameter in its storage precision: 4 bytes in fp32."""
    return parameter_count * storage_bytes


@term("bytes", source=_ARTICLE)
def published_gradients(parameter_count: Any, storage_bytes: Any) -> Any:
    """One gradient per parameter, as wide as the parameter."""
    return parameter_count * storage_bytes


@term("bytes", source=_ARTICLE)
def published_optimizer_state(parameter_count: Any, optimizers: Any, optimizer_row: Any, fp32_storage: Any) -> Any:
    """8 bytes per parameter for Adam, 2 for 8-bit Adam; moments of bf16 parameters are bf16."""
    wide = optimizers.published_state_bytes[optimizer_row]
    return parameter_count * when(fp32_storage > 0, wide, optimizers.published_bf16_state_bytes[optimizer_row])


@term("bytes", source=_ARTICLE)
def published_static(published_weights: Any, published_optimizer_state: Any) -> Any:
    """What is alive at every moment: weights and optimizer state."""
    return published_weights + published_optimizer_state


@term("bytes", source=_ARTICLE)
def published_cache(autocast_on: Any, fp32_storage: Any, bf16_bytes: Any, parameter_count: Any) -> Any:
    """Autocast's 16-bit copies of fp32 weights."""
    return autocast_on * fp32_storage * bf16_bytes * parameter_count


@term("bytes per token", source=_ARTICLE)
def published_mask_bytes(mask_bytes: Any, hidden_size: Any, mlp_width: Any) -> Any:
    """Dropout masks of one layer."""
    return mask_bytes * (2 * hidden_size + mlp_width)


@term("bytes per token", source=_ARTICLE)
def published_layer_bytes(
    compute_bytes: Any,
    published_hidden_copies: Any,
    hidden_size: Any,
    mlp_width: Any,
    published_mask_bytes: Any,
    published_score_bytes: Any,
) -> Any:
    """What one layer keeps for backward, per token."""
    tensors = compute_bytes * (published_hidden_copies * hidden_size + 2 * mlp_width)
    return tensors + published_mask_bytes + published_score_bytes


@term("bytes", source=_ARTICLE)
def published_plain_activations(
    layer_count: Any,
    tokens_per_micro_batch: Any,
    published_layer_bytes: Any,
    hidden_size: Any,
    compute_bytes: Any,
    published_output_scores: Any,
) -> Any:
    """Without checkpointing: all layers, the final norm input, and the output scores."""
    layers = layer_count * tokens_per_micro_batch * published_layer_bytes
    return layers + compute_bytes * tokens_per_micro_batch * hidden_size + published_output_scores


@term("bytes", source=_ARTICLE)
def published_output_scores(compute_bytes: Any, autocast_on: Any, fp32_bytes: Any, logit_values: Any) -> Any:
    """Output scores in compute precision and, under autocast, once more in fp32."""
    return (compute_bytes + autocast_on * fp32_bytes) * logit_values


@term("bytes per token", source=_ARTICLE)
def published_segment_bytes(
    compute_bytes: Any,
    published_segment_hidden_copies: Any,
    hidden_size: Any,
    published_segment_mlp_copies: Any,
    mlp_width: Any,
    mask_bytes: Any,
) -> Any:
    """A recomputed layer, per token."""
    tensors = published_segment_hidden_copies * hidden_size + published_segment_mlp_copies * mlp_width
    return compute_bytes * tensors + mask_bytes * hidden_size


@term("bytes per token", source=_ARTICLE)
def published_boundary_bytes(
    layer_count: Any, published_extra_boundaries: Any, fp32_bytes: Any, hidden_size: Any
) -> Any:
    """Checkpointed: one fp32 boundary per layer and three more, per token."""
    return (layer_count + published_extra_boundaries) * fp32_bytes * hidden_size


@term("bytes", source=_ARTICLE)
def published_checkpointed_activations(
    published_boundary_bytes: Any,
    tokens_per_micro_batch: Any,
    published_segment_bytes: Any,
    published_score_bytes: Any,
    compute_bytes: Any,
    logit_values: Any,
) -> Any:
    """Checkpointed: fp32 boundaries, one recomputed layer, and the output scores."""
    segment = published_segment_bytes + published_score_bytes
    return tokens_per_micro_batch * (published_boundary_bytes + segment) + compute_bytes * logit_values


@term("bytes", source=_ARTICLE)
def published_plain_peak(
    published_static: Any, published_gradients: Any, published_cache: Any, published_plain_activations: Any
) -> Any:
    """Without checkpointing: the plain sum, the cache included."""
    return published_static + published_gradients + published_cache + published_plain_activations


@term("bytes", source=_ARTICLE)
def published_temporaries(published_gradients: Any, optimizers: Any, optimizer_row: Any) -> Any:
    """One gradient-sized set while Adam updates; none for the others."""
    return published_gradients * optimizers.temporary_copies[optimizer_row]


@term("bytes", source=_ARTICLE)
def published_step_moment(published_static: Any, published_gradients: Any, published_temporaries: Any) -> Any:
    """Checkpointed: the optimizer step."""
    return published_static + published_gradients + published_temporaries


@term("bytes per token", source=_ARTICLE)
def published_forward_bytes(
    layer_count: Any,
    fp32_bytes: Any,
    hidden_size: Any,
    mlp_width: Any,
    published_forward_hidden_copies: Any,
    compute_bytes: Any,
    published_score_bytes: Any,
) -> Any:
    """Checkpointed: boundaries and one layer during forward, per token."""
    layer = (2 * mlp_width + published_forward_hidden_copies * hidden_size) * compute_bytes
    return layer_count * fp32_bytes * hidden_size + layer + published_score_bytes


@term("bytes", source=_ARTICLE)
def published_forward_activations(
    tokens_per_micro_batch: Any, published_forward_bytes: Any, published_output_scores: Any
) -> Any:
    """Checkpointed: boundaries, one layer and the output scores during forward."""
    return tokens_per_micro_batch * published_forward_bytes + published_output_scores

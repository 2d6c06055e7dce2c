"""LoRA, published: the accounting of the fine-tuning article, figure by figure.

Per layer 6·T·d·b + 2·T·kv·b + 2·T·d·b + 4·T·ff·b, once T·d·b + T·V·b and, under autocast, 12·T·V; a fitted matrix
workspace; the plain sum is the peak. Checkpointed, the largest of three moments is.
"""

from typing import Any

from ...formula.declare import Constant, term
from ...formula.primitives import when

_ARTICLE = "fine-tuning article"
published_hidden_copies = Constant(6, "count", "Published: hidden-width tensors per layer", _ARTICLE, "published")
published_norm_copies = Constant(2, "count", "Published: norm inputs per layer", _ARTICLE, "published")
published_mlp_copies = Constant(4, "count", "Published: MLP-width tensors per layer", _ARTICLE, "published")
published_score_copies = Constant(3, "count", "Published: fp32 copies of the output scores", _ARTICLE, "published")
published_extra_boundaries = Constant(3, "layers", "Published: extra layer boundaries", _ARTICLE, "published")
workspace_once = Constant(4.316, "count", "Published: workspace, once", _ARTICLE + ", fitted", "published")
workspace_per_layer = Constant(1.871, "count", "Published: workspace per layer", _ARTICLE + ", fitted", "published")


@term("parameters", source=_ARTICLE)
def published_base_parameters(base_on_card: Any, base_parameter_count: Any, replaced_head_parameters: Any) -> Any:
    """Every parameter of the base that is on the card; a trained head counts with what is trained."""
    return base_on_card * (base_parameter_count - replaced_head_parameters)


@term("bytes per parameter", source=_ARTICLE)
def published_base_bytes(storage_formats: Any, storage_row: Any) -> Any:
    """4, 2, 1 or 0.5 bytes for every parameter of the base; 0 for a format that the article has not."""
    return storage_formats.published_bytes[storage_row]


@term("bytes", source=_ARTICLE)
def published_frozen_base(published_base_parameters: Any, published_base_bytes: Any, frozen_base_weights: Any) -> Any:
    """The base at so many bytes a parameter; in a format that the article has not, what is stored."""
    return when(published_base_bytes > 0, published_base_parameters * published_base_bytes, frozen_base_weights)


@term("bytes", source=_ARTICLE)
def published_base_held(published_frozen_base: Any, weight_shards: Any) -> Any:
    """The same on one of the cards that divide it."""
    return published_frozen_base / weight_shards


@term("bytes", source=_ARTICLE)
def published_optimizer_state(
    adapter_parameters: Any, optimizers: Any, optimizer_row: Any, optimizer_shards: Any
) -> Any:
    """8 bytes per trained parameter for Adam, 2 for 8-bit Adam; on one of the cards that divide them."""
    return adapter_parameters * optimizers.published_state_bytes[optimizer_row] / optimizer_shards


@term("bytes", source=_ARTICLE)
def published_static(published_base_held: Any, adapters_held: Any, published_optimizer_state: Any) -> Any:
    """What is alive at every moment: base, adapters, optimizer state."""
    return published_base_held + adapters_held + published_optimizer_state


@term("bytes", source=_ARTICLE)
def published_cache(
    autocast_on: Any,
    bf16_bytes: Any,
    adapter_parameters: Any,
    storage_formats: Any,
    storage_row: Any,
    published_base_parameters: Any,
) -> Any:
    """Autocast's 16-bit copies: of what is trained, and of an fp32 base."""
    cast = adapter_parameters + storage_formats.fp32[storage_row] * published_base_parameters
    return autocast_on * bf16_bytes * cast


@term("bytes per token", source=_ARTICLE)
def published_segment_bytes(
    compute_bytes: Any,
    published_hidden_copies: Any,
    hidden_size: Any,
    kv_width: Any,
    published_mlp_copies: Any,
    mlp_width: Any,
) -> Any:
    """What one layer works on, per token, without its norm inputs."""
    return compute_bytes * (published_hidden_copies * hidden_size + 2 * kv_width + published_mlp_copies * mlp_width)


@term("bytes per token", source=_ARTICLE)
def published_dropout_bytes(dropout_on: Any, mask_bytes: Any, hidden_size: Any, mlp_width: Any) -> Any:
    """Masks of one layer, per token, when adapters drop inputs."""
    return dropout_on * mask_bytes * (2 * hidden_size + mlp_width)


@term("bytes", source=_ARTICLE)
def published_segment(
    base_on_card: Any, tokens_per_micro_batch: Any, published_segment_bytes: Any, published_score_bytes: Any
) -> Any:
    """What one layer works on; the article has LoRA alone, other methods have the same layers and their own Na."""
    return base_on_card * tokens_per_micro_batch * (published_segment_bytes + published_score_bytes)


@term("bytes", source=_ARTICLE)
def published_layer(
    published_segment: Any,
    tokens_per_micro_batch: Any,
    published_norm_copies: Any,
    compute_bytes: Any,
    hidden_size: Any,
    published_dropout_bytes: Any,
) -> Any:
    """What one layer keeps for backward."""
    norms = published_norm_copies * compute_bytes * hidden_size
    return published_segment + tokens_per_micro_batch * (norms + published_dropout_bytes)


@term("bytes", source=_ARTICLE)
def published_plain_activations(
    reached_layers: Any,
    published_layer: Any,
    tokens_per_micro_batch: Any,
    hidden_size: Any,
    compute_bytes: Any,
    logit_values: Any,
    autocast_on: Any,
    published_score_copies: Any,
    fp32_bytes: Any,
) -> Any:
    """Without checkpointing: all reached layers, the final norm input, and the output scores."""
    scores = (compute_bytes + autocast_on * published_score_copies * fp32_bytes) * logit_values
    return reached_layers * published_layer + compute_bytes * tokens_per_micro_batch * hidden_size + scores


@term("bytes", source=_ARTICLE)
def published_boundaries(
    reached_layers: Any,
    published_extra_boundaries: Any,
    fp32_bytes: Any,
    tokens_per_micro_batch: Any,
    hidden_size: Any,
) -> Any:
    """Checkpointed: one fp32 boundary per reached layer and three more."""
    layers = reached_layers + published_extra_boundaries
    return layers * fp32_bytes * tokens_per_micro_batch * hidden_size


@term("bytes", source=_ARTICLE)
def published_checkpointed_activations(
    published_boundaries: Any,
    published_segment: Any,
    compute_bytes: Any,
    logit_values: Any,
    autocast_on: Any,
    fp32_bytes: Any,
    dropout_on: Any,
    mask_bytes: Any,
    tokens_per_micro_batch: Any,
    hidden_size: Any,
) -> Any:
    """Checkpointed: boundaries, one recomputed layer, and the output scores."""
    scores = (compute_bytes + autocast_on * 2 * fp32_bytes) * logit_values
    mask = dropout_on * mask_bytes * tokens_per_micro_batch * hidden_size
    return published_boundaries + published_segment + scores + mask


@term("bytes", source=_ARTICLE)
def published_workspace(
    checkpointing_on: Any,
    workspace_once: Any,
    workspace_per_layer: Any,
    reached_layers: Any,
    fp32_bytes: Any,
    tokens_per_micro_batch: Any,
    hidden_size: Any,
) -> Any:
    """The article's fitted matrix-multiply workspace; 0 when checkpointed."""
    copies = workspace_once + workspace_per_layer * reached_layers
    return when(checkpointing_on > 0, 0, copies * fp32_bytes * tokens_per_micro_batch * hidden_size)


@term("bytes", source=_ARTICLE)
def published_plain_peak(
    published_static: Any,
    gradients_held: Any,
    published_cache: Any,
    published_plain_activations: Any,
    published_workspace: Any,
) -> Any:
    """Without checkpointing: the plain sum, the cache included."""
    return published_static + gradients_held + published_cache + published_plain_activations + published_workspace


@term("bytes", source=_ARTICLE)
def published_forward_activations(
    reached_layers: Any,
    fp32_bytes: Any,
    tokens_per_micro_batch: Any,
    hidden_size: Any,
    published_segment: Any,
    compute_bytes: Any,
    autocast_on: Any,
    logit_values: Any,
) -> Any:
    """Checkpointed: boundaries, one layer and the output scores during forward."""
    boundaries = reached_layers * fp32_bytes * tokens_per_micro_batch * hidden_size
    return boundaries + published_segment + (compute_bytes + autocast_on * fp32_bytes) * logit_values


@term("bytes", source=_ARTICLE)
def published_temporaries(gradients_held: Any, optimizers: Any, optimizer_row: Any) -> Any:
    """One gradient-sized set while Adam updates; none for the others."""
    return gradients_held * optimizers.temporary_copies[optimizer_row]


@term("bytes", source=_ARTICLE)
def published_step_moment(published_static: Any, gradients_held: Any, published_temporaries: Any) -> Any:
    """Checkpointed: the optimizer step."""
    return published_static + gradients_held + published_temporaries

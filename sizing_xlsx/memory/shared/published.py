"""The published accounting as far as both articles share it: its moments, its peak, and what that is made of."""

from typing import Any

from ...formula.declare import term
from ...formula.primitives import choose, maximum, when

_ARTICLE = "both articles"


@term("bytes per token", source=_ARTICLE)
def published_score_bytes(scores_stored: Any, attention_heads: Any, tokens_per_row: Any, compute_bytes: Any) -> Any:
    """Attention scores of one layer, per token, when attention stores them."""
    return scores_stored * attention_heads * tokens_per_row * compute_bytes


@term("bytes", source=_ARTICLE)
def published_activations(
    checkpointing_on: Any, published_checkpointed_activations: Any, published_plain_activations: Any
) -> Any:
    """Activations of the published accounting, with or without checkpointing."""
    return when(checkpointing_on > 0, published_checkpointed_activations, published_plain_activations)


@term("bytes", source=_ARTICLE)
def published_backward_moment(published_static: Any, published_checkpointed_activations: Any) -> Any:
    """Checkpointed: backward, one layer recomputed; no gradients yet."""
    return published_static + published_checkpointed_activations


@term("bytes", source=_ARTICLE)
def published_forward_moment(published_static: Any, published_cache: Any, published_forward_activations: Any) -> Any:
    """Checkpointed: the end of forward, the cast copies still alive."""
    return published_static + published_cache + published_forward_activations


@term("bytes", source=_ARTICLE)
def published_checkpointed_peak(
    published_backward_moment: Any, published_forward_moment: Any, published_step_moment: Any
) -> Any:
    """Checkpointed: the largest of three moments."""
    return maximum(published_backward_moment, published_forward_moment, published_step_moment)


@term("bytes", source=_ARTICLE)
def published_allocated(checkpointing_on: Any, published_checkpointed_peak: Any, published_plain_peak: Any) -> Any:
    """Allocated peak of the published accounting."""
    return when(checkpointing_on > 0, published_checkpointed_peak, published_plain_peak)


@term("count")
def published_moment(
    checkpointing_on: Any,
    published_allocated: Any,
    published_backward_moment: Any,
    published_forward_moment: Any,
) -> Any:
    """What sets the published peak: 1 the plain sum; checkpointed 2 backward, 3 forward, 4 optimizer step."""
    later = when(published_forward_moment >= published_allocated, 1, 2)
    return 1 + when(checkpointing_on > 0, when(published_backward_moment >= published_allocated, 1, 1 + later), 0)


@term("bytes")
def published_casts(published_moment: Any, published_cache: Any) -> Any:
    """Autocast's copies in the published peak."""
    return choose(published_moment, published_cache, 0, published_cache, 0)


@term("bytes")
def published_peak_activations(
    published_moment: Any,
    published_plain_activations: Any,
    published_checkpointed_activations: Any,
    published_forward_activations: Any,
) -> Any:
    """Activations in the published peak."""
    return choose(
        published_moment,
        published_plain_activations,
        published_checkpointed_activations,
        published_forward_activations,
        0,
    )


@term("bytes")
def published_peak_temporaries(published_moment: Any, published_temporaries: Any) -> Any:
    """The update's temporaries, when the optimizer step sets the published peak."""
    return choose(published_moment, 0, 0, 0, published_temporaries)


@term("GB", source=_ARTICLE)
def published_others_gb(other_tenants_gb: Any) -> Any:
    """What others take beside the published total, which holds the context itself."""
    return other_tenants_gb

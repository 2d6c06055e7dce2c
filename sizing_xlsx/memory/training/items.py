"""Training: what the peak is made of, item by item, at the moment that sets it. Items of one family add up."""

from typing import Any

from ...formula.declare import term
from ...formula.primitives import choose, when


@term("count")
def late_moment(traced_allocated: Any, forward_moment: Any, first_layer_moment: Any, embedding_moment: Any) -> Any:
    """Which of the moments 3 to 6 sets the traced peak, when 1 and 2 do not."""
    last = when(embedding_moment >= traced_allocated, 1, 2)
    return 2 + when(forward_moment >= traced_allocated, 1, when(first_layer_moment >= traced_allocated, 2, 2 + last))


@term("count")
def traced_moment(traced_allocated: Any, last_backward_moment: Any, loss_moment: Any, late_moment: Any) -> Any:
    """The moment of the traced peak: 1 last MLP backward, 2 loss, 3 last MLP forward, 4 first layer backward,
    5 embedding backward, 6 optimizer step.
    """
    return when(last_backward_moment >= traced_allocated, 1, when(loss_moment >= traced_allocated, 2, late_moment))


@term("bytes")
def traced_gradients(
    traced_moment: Any, accumulated_gradients: Any, early_gradients: Any, weight_gradients: Any
) -> Any:
    """Gradients alive at the traced peak: early in backward of the first micro-batch none but the head's."""
    before = accumulated_gradients
    return choose(traced_moment, before, before, before, early_gradients, weight_gradients, weight_gradients)


@term("bytes")
def traced_casts(traced_moment: Any, backward_casts: Any, loss_casts: Any, weight_casts: Any, layer_cast: Any) -> Any:
    """Autocast's 16-bit copies alive at the traced peak."""
    return choose(traced_moment, backward_casts, loss_casts, weight_casts, layer_cast, 0, 0)


@term("bytes")
def traced_activations(
    traced_moment: Any,
    last_backward_activations: Any,
    loss_activations: Any,
    forward_activations: Any,
    first_layer_activations: Any,
    logit_copy: Any,
    hidden_tensor: Any,
    token_buffers: Any,
) -> Any:
    """Activations alive at the traced peak, with the token ids and, early in backward, the head's gradient."""
    return token_buffers + choose(
        traced_moment,
        last_backward_activations,
        loss_activations,
        forward_activations,
        first_layer_activations,
        logit_copy + hidden_tensor,
        logit_copy,
    )


@term("bytes")
def traced_temporaries(traced_moment: Any, optimizer_temporaries: Any) -> Any:
    """The update's temporaries, when the optimizer step sets the traced peak."""
    return choose(traced_moment, 0, 0, 0, 0, 0, optimizer_temporaries)


@term("bytes")
def traced_items(
    exact_static_bytes: Any,
    traced_gradients: Any,
    traced_casts: Any,
    traced_activations: Any,
    traced_temporaries: Any,
    matrix_workspaces: Any,
) -> Any:
    """Sum of the traced items; a check holds it against the traced peak."""
    moving = traced_gradients + traced_casts + traced_activations + traced_temporaries
    return exact_static_bytes + moving + matrix_workspaces


@term("bytes")
def published_peak_gradients(published_moment: Any, published_gradients: Any) -> Any:
    """Gradients in the published peak."""
    return choose(published_moment, published_gradients, 0, 0, published_gradients)


@term("bytes")
def published_items(
    published_static: Any,
    published_peak_gradients: Any,
    published_casts: Any,
    published_peak_activations: Any,
    published_peak_temporaries: Any,
) -> Any:
    """Sum of the published items; a check holds it against the published peak."""
    moving = published_peak_gradients + published_casts + published_peak_activations + published_peak_temporaries
    return published_static + moving


@term("bytes")
def base_item(rests_on_traced: Any, stored_weights: Any, published_weights: Any) -> Any:
    """Weights, by the family the verdict rests on."""
    return when(rests_on_traced > 0, stored_weights, published_weights)


@term("GB")
def state_gb(stored_weights: Any, weight_gradients: Any, optimizer_state: Any, bytes_per_gb: Any) -> Any:
    """Weights with their gradients and optimizer state."""
    return (stored_weights + weight_gradients + optimizer_state) / bytes_per_gb

"""Full fine-tuning: what the peak is made of, item by item, at the moment that sets it. Items of one family add up."""

from typing import Any

from ...formula.declare import term
from ...formula.primitives import choose, when


@term("count")
def late_moment(traced_allocated: Any, last_layer_moment: Any, first_layer_moment: Any, embedding_moment: Any) -> Any:
    """Which of the moments 3 to 6 sets the traced peak, when 1 and 2 do not."""
    last = when(embedding_moment >= traced_allocated, 1, 2)
    return 2 + when(last_layer_moment >= traced_allocated, 1, when(first_layer_moment >= traced_allocated, 2, 2 + last))


@term("count")
def traced_moment(traced_allocated: Any, loss_forward_moment: Any, loss_backward_moment: Any, late_moment: Any) -> Any:
    """The moment of the traced peak: 1 loss forward, 2 loss backward, 3 last layer, 4 first layer, 5 embeddings,
    6 optimizer step.
    """
    return when(
        loss_forward_moment >= traced_allocated, 1, when(loss_backward_moment >= traced_allocated, 2, late_moment)
    )


@term("bytes")
def early_gradients(traced_moment: Any, fused_head_gradient: Any, head_gradient: Any) -> Any:
    """Gradients that this micro-batch has made by the traced peak, if it is in the loss or in the last layer."""
    return choose(traced_moment, fused_head_gradient, 0, head_gradient, 0, 0, 0)


@term("bytes")
def late_gradients(
    traced_moment: Any,
    first_layer_gradients: Any,
    gradient_memory: Any,
    second_embedding: Any,
    step_gradients: Any,
) -> Any:
    """Gradients alive at the traced peak, if it comes later."""
    twice = gradient_memory + second_embedding
    return choose(traced_moment, 0, 0, 0, first_layer_gradients, twice, step_gradients)


@term("bytes")
def traced_gradients(traced_moment: Any, accumulated_gradients: Any, early_gradients: Any, late_gradients: Any) -> Any:
    """Gradients alive at the traced peak."""
    before = accumulated_gradients
    return choose(traced_moment, before, before, before, 0, 0, 0) + early_gradients + late_gradients


@term("bytes")
def traced_casts(traced_moment: Any, all_casts: Any, saved_casts: Any, lower_casts: Any) -> Any:
    """Autocast's 16-bit copies alive at the traced peak."""
    return choose(traced_moment, all_casts, saved_casts, lower_casts, 0, 0, 0)


@term("bytes")
def traced_gathered(traced_moment: Any, gathered_always: Any, gathered_in_layers: Any) -> Any:
    """Weights that are gathered from other cards at the traced peak."""
    always, layers = gathered_always, gathered_in_layers
    return choose(traced_moment, always, always, layers, layers, always, 0)


@term("bytes")
def late_activations(
    traced_moment: Any,
    first_layer_activations: Any,
    embedding_activations: Any,
    held_output: Any,
    token_buffers: Any,
) -> Any:
    """Activations alive at the traced peak, if late in backward or in the update."""
    update = held_output + token_buffers
    return choose(traced_moment, 0, 0, 0, first_layer_activations, embedding_activations, update)


@term("bytes")
def traced_activations(
    traced_moment: Any,
    loss_forward_activations: Any,
    loss_backward_activations: Any,
    last_layer_activations: Any,
    late_activations: Any,
) -> Any:
    """Activations alive at the traced peak, with the token ids and the layer at work."""
    loss, late = loss_forward_activations, late_activations
    return choose(traced_moment, loss, loss_backward_activations, last_layer_activations, late, late, late)


@term("bytes")
def traced_temporaries(traced_moment: Any, step_temporaries: Any) -> Any:
    """The update's temporaries, when the optimizer step sets the traced peak."""
    return choose(traced_moment, 0, 0, 0, 0, 0, step_temporaries)


@term("bytes")
def traced_items(
    exact_static_bytes: Any, traced_gradients: Any, traced_casts: Any, traced_gathered: Any, traced_activations: Any,
    traced_temporaries: Any, matrix_workspaces: Any, bucket_memory: Any,
) -> Any:  # fmt: skip
    """Sum of the traced items; a check holds it against the traced peak."""
    moving = traced_gradients + traced_casts + traced_gathered + traced_activations + traced_temporaries
    return exact_static_bytes + moving + matrix_workspaces + bucket_memory


@term("bytes")
def published_items(exact_static_bytes: Any, gradient_memory: Any, published_peak_activations: Any) -> Any:
    """Sum of the published items; a check holds it against the published peak."""
    return exact_static_bytes + gradient_memory + published_peak_activations


@term("bytes")
def base_item(weight_memory: Any, traced_gathered: Any, rests_on_traced: Any) -> Any:
    """Weights on the card, with those that are gathered at the traced peak."""
    return weight_memory + when(rests_on_traced > 0, traced_gathered, 0)


@term("GB", label="Peak per GPU")
def per_gpu_peak_allocated_gb(peak_allocated: Any, bytes_per_gb: Any) -> Any:
    """Allocated peak of one card, by the family that the verdict rests on."""
    return peak_allocated / bytes_per_gb

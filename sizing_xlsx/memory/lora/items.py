"""LoRA: what the peak is made of, item by item, at the moment that sets it. Items of one family add up to its peak."""

from typing import Any

from ...formula.declare import term
from ...formula.primitives import choose, when


@term("count")
def traced_moment(
    traced_allocated: Any, loss_backward_moment: Any, loss_forward_moment: Any, last_layer_moment: Any
) -> Any:
    """The moment that sets the traced peak: 1 loss backward, 2 loss forward, 3 last layer, 4 optimizer step."""
    later = when(last_layer_moment >= traced_allocated, 1, 2)
    return 1 + when(
        loss_backward_moment >= traced_allocated,
        0,
        when(loss_forward_moment >= traced_allocated, 1, 1 + later),
    )


@term("bytes")
def traced_gradients(traced_moment: Any, accumulated_gradients: Any, late_gradients: Any, gradients_held: Any) -> Any:
    """Gradients alive at the traced peak: none in the loss of the first micro-batch."""
    before = accumulated_gradients
    return choose(traced_moment, before, before, before + late_gradients, gradients_held)


@term("bytes")
def traced_casts(traced_moment: Any, saved_casts: Any, loss_forward_casts: Any) -> Any:
    """Autocast's 16-bit copies alive at the traced peak."""
    return choose(traced_moment, saved_casts, saved_casts + loss_forward_casts, saved_casts, 0)


@term("bytes")
def saved_tensors(saved_activations: Any, saved_casts: Any, token_buffers: Any) -> Any:
    """What forward keeps, without the cast copies, and the token ids."""
    return saved_activations - saved_casts + token_buffers


@term("bytes")
def loss_forward_tensors(loss_forward_extra: Any, held_output: Any) -> Any:
    """What the loss's forward adds to what is saved: scores, and the output of the step before."""
    return loss_forward_extra + held_output


@term("bytes")
def layer_tensors(last_layer_extra: Any, boundary_gradients: Any) -> Any:
    """What the layer at work adds to what is saved, and what the layers above it left behind."""
    return last_layer_extra + boundary_gradients


@term("bytes")
def traced_activations(
    traced_moment: Any,
    saved_tensors: Any,
    loss_backward_logits: Any,
    loss_forward_tensors: Any,
    held_output: Any,
    layer_tensors: Any,
    token_buffers: Any,
) -> Any:
    """Activations alive at the traced peak: saved tensors, output scores, the layer at work, the last output."""
    return choose(
        traced_moment,
        saved_tensors + loss_backward_logits,
        saved_tensors + loss_forward_tensors,
        saved_tensors + layer_tensors,
        token_buffers + held_output,
    )


@term("bytes")
def traced_temporaries(traced_moment: Any, optimizer_temporaries: Any) -> Any:
    """The update's temporaries, when the optimizer step sets the traced peak."""
    return choose(traced_moment, 0, 0, 0, optimizer_temporaries)


@term("bytes")
def traced_exchange(traced_moment: Any, bucket_memory: Any, gathered_always: Any, gathered_in_layers: Any) -> Any:
    """What cards hold for each other at the traced peak: buckets, and weights that are gathered."""
    always = gathered_always
    return bucket_memory + choose(traced_moment, always, always, gathered_in_layers, 0)


@term("GB")
def exchange_gb(traced_exchange: Any, bytes_per_gb: Any) -> Any:
    """The same in GB."""
    return traced_exchange / bytes_per_gb


@term("bytes")
def traced_items(
    exact_static_bytes: Any,
    traced_gradients: Any,
    traced_casts: Any,
    traced_activations: Any,
    traced_temporaries: Any,
    traced_exchange: Any,
    matrix_workspaces: Any,
) -> Any:
    """Sum of the traced items; a check holds it against the traced peak."""
    moving = traced_gradients + traced_casts + traced_activations + traced_temporaries
    return exact_static_bytes + moving + traced_exchange + matrix_workspaces


@term("bytes")
def published_gradients(published_moment: Any, gradients_held: Any) -> Any:
    """Gradients in the published peak."""
    return choose(published_moment, gradients_held, 0, 0, gradients_held)


@term("bytes")
def published_items(
    published_static: Any,
    published_gradients: Any,
    published_casts: Any,
    published_peak_activations: Any,
    published_peak_temporaries: Any,
    published_workspace: Any,
) -> Any:
    """Sum of the published items; a check holds it against the published peak."""
    moving = published_gradients + published_casts + published_peak_activations + published_peak_temporaries
    return published_static + moving + published_workspace


@term("bytes")
def base_item(rests_on_traced: Any, base_held: Any, published_base_held: Any) -> Any:
    """Frozen base, by the family the verdict rests on."""
    return when(rests_on_traced > 0, base_held, published_base_held)


@term("GB")
def adapter_state_gb(adapters_held: Any, gradients_held: Any, optimizer_held: Any, bytes_per_gb: Any) -> Any:
    """Adapters with their gradients and optimizer state."""
    return (adapters_held + gradients_held + optimizer_held) / bytes_per_gb

"""What the allocator holds above the peak: the band of the other jobs, and what sharding adds to it.

Cards that share a step exchange weights and gradients on a stream of its own, whose blocks computation cannot use: the
blocks of the update and those of backward then both stay, with or without checkpointing.
"""

from typing import Any

from ...formula.declare import term
from ...formula.primitives import maximum, minimum, when

_BAND = "an upper band over public runs on several cards: never under what nvidia-smi showed there"


@term("bytes")
def recomputed_segment(layer_activations: Any, layer_working: Any) -> Any:
    """One layer as a whole: what it keeps and what it works on."""
    return layer_activations + layer_working


@term("bytes")
def update_blocks(step_gradients: Any, step_temporaries: Any) -> Any:
    """Blocks that gradients and their update leave behind."""
    return step_gradients + step_temporaries


@term("bytes")
def backward_blocks(
    loss_forward_moment: Any, loss_backward_moment: Any, last_layer_moment: Any, exact_static_bytes: Any
) -> Any:
    """Blocks of forward and backward beside the state that stays."""
    return maximum(0, maximum(loss_forward_moment, loss_backward_moment, last_layer_moment) - exact_static_bytes)


@term("bytes")
def reserve_for_gradients(update_blocks: Any, backward_blocks: Any) -> Any:
    """The smaller of both: at the peak of one, blocks of the other are still held."""
    return minimum(update_blocks, backward_blocks)


@term("bytes")
def reserve_for_saved(saved_layers: Any, reserve_activation_divisor: Any) -> Any:
    """Not checkpointed: a share of what the layers keep."""
    return saved_layers / reserve_activation_divisor


@term("switch")
def keeps_both(checkpointing_on: Any, copies_of_weights: Any) -> Any:
    """1 when blocks of backward and of the update are held side by side."""
    return when((checkpointing_on > 0) | (copies_of_weights > 1), 1, 0)


@term("bytes", source=_BAND)
def allocator_reserve(
    reserve_for_blocks: Any,
    keeps_both: Any,
    reserve_for_recomputing: Any,
    checkpointing_on: Any,
    reserve_for_saved: Any,
) -> Any:
    """Upper estimate of what the allocator holds above the allocated peak."""
    both = when(keeps_both > 0, reserve_for_recomputing, 0)
    return reserve_for_blocks + both + when(checkpointing_on > 0, 0, reserve_for_saved)

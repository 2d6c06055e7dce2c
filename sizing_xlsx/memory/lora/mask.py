"""LoRA, traced: what layers keep for a mask, which attention takes where a window is shorter than the row.

Each such layer turns the mask into 16 bit anew, a copy for each row of the batch, and keeps it; the mask itself is kept
by checkpoints alone, once for all layers of a kind. A row whose length is no multiple of 16 has its mask padded to one
on the GPU, which is not counted.
"""

from typing import Any

from ...formula.declare import Constant, check, term
from ...formula.primitives import when

_TRACE = "allocation trace: transformers 5.20, PEFT 0.21, PyTorch 2.13"
pair_bytes = Constant(1, "bytes per value", "A mask as it is made, per pair of tokens", "PyTorch", "definition")


@term("switch", source="transformers 5.20, which makes a mask from that length on")
def window_reached(tokens_per_row: Any, sliding_window: Any) -> Any:
    """1 when the longest row is as long as the window of the layers that have one."""
    return when(tokens_per_row >= sliding_window, 1, 0)


@term("switch", source=_TRACE)
def masks_kept(stack_masks_layers: Any, attention_kernels: Any, kernel_row: Any, form_masked_pair: Any) -> Any:
    """1 when a layer that is given a mask keeps it: not in kernels that know windows, or that keep scores instead."""
    known = stack_masks_layers * attention_kernels.keeps_masks[kernel_row]
    return when(form_masked_pair > 0, known, 0)


@term("layers")
def reached_windowed_layers(reached_layers: Any, reached_full_layers: Any) -> Any:
    """Layers with a window that the backward pass reaches."""
    return reached_layers - reached_full_layers


@term("switch", source=_TRACE)
def window_masks(window_reached: Any, masks_kept: Any, reached_windowed_layers: Any) -> Any:
    """1 when reached layers with a window keep masks."""
    return window_reached * when(reached_windowed_layers > 0, masks_kept, 0)


@term("layers", source=_TRACE)
def masked_layers(window_masks: Any, reached_windowed_layers: Any) -> Any:
    """Reached layers that keep a mask."""
    return window_masks * reached_windowed_layers


@term("switch", source=_TRACE)
def masks_repeat(kv_heads: Any, kv_repeats: Any, full_width_kv: Any) -> Any:
    """1 when a mask makes attention repeat keys and values for the query heads; one head alone is widened in place."""
    return when((kv_heads > 1) & (kv_repeats > 1), 1 - full_width_kv, 0)


@term("bytes per token", source=_TRACE)
def masked_bytes(
    form_masked_pair: Any,
    fp32_attention: Any,
    tokens_per_row: Any,
    masks_repeat: Any,
    form_masked_query: Any,
    query_width: Any,
    form_masked_kv: Any,
    kv_width: Any,
) -> Any:
    """What a layer keeps more under a mask: its own mask in the kernel's precision, repeated keys and values."""
    repeated = masks_repeat * (form_masked_query * query_width + form_masked_kv * kv_width)
    return form_masked_pair * (1 + fp32_attention) * tokens_per_row + repeated


@term("bytes per token", source=_TRACE)
def larger_mask_bytes(window_masks: Any, masked_bytes: Any) -> Any:
    """The same for one layer, where any keeps a mask."""
    return window_masks * masked_bytes


@term("bytes", source=_TRACE)
def checkpointed_masks(
    form_checkpointed_pair: Any,
    tokens_per_micro_batch: Any,
    window_masks: Any,
    pair_bytes: Any,
    tokens_per_row: Any,
) -> Any:
    """Masks that checkpoints hold: a byte for each pair of tokens, once; those of plain attention for each row."""
    plain = form_checkpointed_pair * tokens_per_micro_batch * tokens_per_row
    return window_masks * pair_bytes * tokens_per_row * tokens_per_row + plain


@check(
    "sequence_length is {sequence_length}; from the {sliding_window}-token window of {base_model} on attention may keep"
    " masks, which are traced for the stacks of transformers 5 alone",
    fault=False,
)
@term("switch")
def sequence_within_window(
    window_reached: Any,
    sliding_window: Any,
    stack_masks_layers: Any,
    attention_kernels: Any,
    kernel_row: Any,
    form_masked_pair: Any,
) -> Any:
    """0 when a window is shorter than the row and what a mask keeps is not known for the training stack."""
    unknown = attention_kernels.keeps_masks[kernel_row] * (1 - stack_masks_layers) * form_masked_pair
    return when((sliding_window > 0) & (window_reached * unknown > 0), 0, 1)

"""The loss: output scores and their copies, by the training stack or by a loss kernel of its own."""

from typing import Any

from ...formula.declare import Choice, Input, term
from ...formula.primitives import choose, floor, minimum, when

_STACK = "the chosen row of the training stacks"
_TRACE = "allocation trace: transformers 5.20, PyTorch 2.13"
loss_kernel = Input(
    "text",
    Choice("loss_kernels"),
    "Stock",
    "Loss kernel",
    "Stock: the training stack's own; fused, chunked and fused linear (Liger) hold fewer copies of the output scores.",
)


@term("row")
def loss_row(loss_kernels: Any, loss_kernel: Any) -> Any:
    """Row of the loss kernel in its table."""
    return loss_kernels.row_of(loss_kernel)


@term("values")
def logit_values(tokens_per_micro_batch: Any, vocabulary_size: Any, tensor_parallel: Any) -> Any:
    """Output scores of a card: one per token and vocabulary entry."""
    return tokens_per_micro_batch * vocabulary_size / tensor_parallel


@term("switch")
def loss_fused(loss_kernels: Any, loss_row: Any, stacks: Any, stack_row: Any) -> Any:
    """1 when output head and loss are one kernel, which never holds all output scores."""
    return when(loss_kernels.of_stack[loss_row] > 0, stacks.fused_loss[stack_row], loss_kernels.fused_loss[loss_row])


@term("count")
def loss_pieces(vocabulary_size: Any, hidden_size: Any) -> Any:
    """Pieces that a fused output head and loss work in: as many as the outputs are wider than the model."""
    return 1 + floor((vocabulary_size - 1) / hidden_size)


@term("switch")
def loss_of_stack(loss_kernels: Any, loss_row: Any) -> Any:
    """1 when the training stack's own loss computes."""
    return loss_kernels.of_stack[loss_row]


@term("bytes per value", source=_STACK)
def fused_score_bytes(loss_of_stack: Any, stacks: Any, stack_row: Any, loss_kernels: Any, loss_row: Any) -> Any:
    """Bytes per output score of the piece that a fused output head and loss work on."""
    own = loss_kernels.fused_logit_bytes[loss_row]
    return when(loss_of_stack > 0, stacks.fused_logit_bytes[stack_row], own)


@term("bytes", source=_STACK)
def fused_loss_memory(
    fused_score_bytes: Any,
    logit_values: Any,
    loss_pieces: Any,
    bf16_bytes: Any,
    tokens_per_micro_batch: Any,
    hidden_size: Any,
) -> Any:
    """Scores of one piece, and the gradient of the head's input, which such a kernel makes in forward."""
    return fused_score_bytes * logit_values / loss_pieces + bf16_bytes * tokens_per_micro_batch * hidden_size


@term("bytes per value", source=_TRACE)
def score_width(layer_stream: Any, bf16_bytes: Any, fp32_bytes: Any) -> Any:
    """Bytes of an output score as the head gives it."""
    return choose(layer_stream, bf16_bytes, bf16_bytes, fp32_bytes)


@term("bytes per value", source=_STACK)
def shift_bytes(loss_of_stack: Any, loss_shift_bytes: Any) -> Any:
    """Bytes per output score that shifting the labels copies."""
    return loss_of_stack * loss_shift_bytes


@term("bytes", source=_STACK)
def shifted_scores(shift_bytes: Any, logit_values: Any, tokens_per_row: Any, vocabulary_size: Any) -> Any:
    """The same of all scores: of all of several rows, none of a single one."""
    beyond_one_row = logit_values - tokens_per_row * vocabulary_size
    return minimum(shift_bytes * logit_values, 2 * shift_bytes * beyond_one_row)


@term("bytes per value", source=_TRACE)
def extra_score_bytes(layer_forms: Any, model_form_row: Any) -> Any:
    """Bytes per output score of a family that caps its scores: one copy more."""
    return layer_forms.extra_score_bytes[model_form_row]


@term("bytes per value", source=_STACK)
def forward_score_bytes(loss_of_stack: Any, loss_forward_bytes: Any, loss_kernels: Any, loss_row: Any) -> Any:
    """Bytes per output score in the loss's forward, when the scores are 16 bit."""
    return when(loss_of_stack > 0, loss_forward_bytes, loss_kernels.forward_logit_bytes[loss_row])


@term("bytes", source=_STACK)
def forward_scores(
    forward_score_bytes: Any,
    extra_score_bytes: Any,
    bf16_bytes: Any,
    score_width: Any,
    logit_values: Any,
    shifted_scores: Any,
) -> Any:
    """Output scores and their copies in the loss's forward; fp32 scores need no fp32 copy."""
    return (forward_score_bytes + extra_score_bytes + bf16_bytes - score_width) * logit_values + shifted_scores


@term("bytes per value", source=_STACK)
def backward_score_bytes(loss_of_stack: Any, loss_backward_bytes: Any, loss_kernels: Any, loss_row: Any) -> Any:
    """Bytes per output score in the loss's backward."""
    return when(loss_of_stack > 0, loss_backward_bytes, loss_kernels.backward_logit_bytes[loss_row])


@term("bytes", source=_STACK)
def backward_scores(backward_score_bytes: Any, extra_score_bytes: Any, logit_values: Any) -> Any:
    """Output scores, their copies and their gradient in the loss's backward."""
    return (backward_score_bytes + extra_score_bytes) * logit_values


@term("bytes", source=_TRACE)
def kept_scores(output_kept: Any, loss_fused: Any, score_width: Any, logit_values: Any) -> Any:
    """Output scores that the loop still holds; a fused head and loss gives none."""
    return output_kept * (1 - loss_fused) * score_width * logit_values


@term("bytes", source=_TRACE)
def kept_cache(
    output_kept: Any, checkpointing_on: Any, stream_value_bytes: Any, tokens_per_micro_batch: Any, layer_count: Any,
    kv_values_per_token_per_layer: Any,
) -> Any:  # fmt: skip
    """Keys and values that the kept output holds; checkpointing makes none."""
    held = output_kept * (1 - checkpointing_on) * stream_value_bytes
    return held * tokens_per_micro_batch * layer_count * kv_values_per_token_per_layer


@term("bytes", source=_TRACE)
def held_output(kept_scores: Any, kept_cache: Any) -> Any:
    """What the output of the step before still holds when the loop keeps it."""
    return kept_scores + kept_cache

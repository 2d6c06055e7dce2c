"""The run: batch, sequence, precision, optimizer, checkpointing. What a step works on at one time."""

from typing import Any

from ...formula.declare import Choice, Input, Whole, check, term
from ...formula.primitives import given, when

batch_size = Input(
    "rows",
    Whole(1, 65_536),
    8,
    "Batch size",
    "Rows on the card at once (the micro-batch); accumulated steps do not count.",
)
sequence_length = Input(
    "tokens",
    Whole(1, 1_048_576),
    512,
    "Sequence length",
    "The longest sequence after truncation: it sets the peak, not the average.",
)
average_sequence_length = Input(
    "tokens",
    Whole(1, 1_048_576),
    None,
    "Average sequence",
    "Optional: shows what the average would have said; the verdict does not use it.",
    optional=True,
)
gradient_accumulation = Input(
    "steps",
    Whole(1, 65_536),
    1,
    "Gradient accumulation",
    "Micro-batches per update; memory follows the micro-batch, gradients stay from the second on.",
)
compute_precision = Input(
    "text", Choice("compute_precisions"), "bf16 autocast", "Compute precision", "What the card calculates in."
)
attention_implementation = Input(
    "text",
    Choice("attention_kernels"),
    "Flash or memory-efficient",
    "Attention",
    "Eager attention stores a score for every pair of tokens; others do not.",
)
optimizer_choice = Input(
    "text",
    Choice("optimizers"),
    "Adam",
    "Optimizer",
    "What it keeps per trained parameter; 8-bit Adam keeps a quarter of Adam's.",
)
activation_checkpointing = Input(
    "text",
    Choice("switches"),
    "Off",
    "Activation checkpointing",
    "Keeps one tensor per layer and computes the rest again in backward.",
)
verdict_basis = Input(
    "text",
    Choice("verdict_bases"),
    "Traced",
    "Verdict basis",
    "Traced follows what PyTorch was seen to keep; Published follows the two articles.",
)


@term("tokens")
def tokens_per_micro_batch(batch_size: Any, tokens_per_row: Any) -> Any:
    """Tokens on the card at one time; every activation is a multiple of this figure."""
    return batch_size * tokens_per_row


@term("rows")
def effective_batch_size(batch_size: Any, gradient_accumulation: Any) -> Any:
    """Rows per update: the micro-batch times the accumulated steps. No memory term uses it."""
    return batch_size * gradient_accumulation


@term("tokens")
def average_tokens(average_sequence_length: Any, sequence_length: Any) -> Any:
    """The average sequence where one was entered, else the longest."""
    return given(average_sequence_length, sequence_length)


@check(
    "average_sequence_length is {average_sequence_length}; an average is not above sequence_length, which is"
    " {sequence_length}",
    fault=False,
)
@term("switch")
def average_below_longest(average_tokens: Any, sequence_length: Any) -> Any:
    """1 when the average sequence is not longer than the longest."""
    return when(average_tokens > sequence_length, 0, 1)


@term("row")
def precision_row(compute_precisions: Any, compute_precision: Any) -> Any:
    """Row of the compute precision in its table."""
    return compute_precisions.row_of(compute_precision)


@term("bytes per value")
def compute_bytes(compute_precisions: Any, precision_row: Any) -> Any:
    """Bytes of an activation in compute precision (b)."""
    return compute_precisions.compute_bytes[precision_row]


@term("count")
def computed_half_type(compute_precisions: Any, precision_row: Any) -> Any:
    """Which 16-bit type is computed in: 0 none, 1 bf16, 2 fp16."""
    return compute_precisions.half_type[precision_row]


@term("switch")
def autocast_on(compute_precisions: Any, precision_row: Any) -> Any:
    """1 when matrices are cast to 16 bit on the fly, 0 in fp32 compute."""
    return compute_precisions.autocast[precision_row]


@term("switch")
def checkpointing_on(switches: Any, activation_checkpointing: Any) -> Any:
    """1 when activations are checkpointed."""
    return switches.value[switches.row_of(activation_checkpointing)]


@term("row")
def kernel_row(attention_kernels: Any, attention_implementation: Any) -> Any:
    """Row of the attention implementation in its table."""
    return attention_kernels.row_of(attention_implementation)


@term("switch")
def scores_stored(attention_kernels: Any, kernel_row: Any) -> Any:
    """1 when attention keeps its scores for backward."""
    return attention_kernels.stores_scores[kernel_row]


@term("row")
def optimizer_row(optimizers: Any, optimizer_choice: Any) -> Any:
    """Row of the optimizer in its table."""
    return optimizers.row_of(optimizer_choice)


@term("switch")
def optimizer_traced(optimizers: Any, optimizer_row: Any) -> Any:
    """1 when the optimizer's step was traced."""
    return optimizers.traced[optimizer_row]


@term("count")
def smallest_tensor(optimizers: Any, optimizer_row: Any) -> Any:
    """Parameters from which on a tensor has narrow moments: 8-bit optimizers keep those of smaller ones in fp32."""
    return optimizers.smallest_tensor[optimizer_row]


def small_tensor(count: Any, smallest: Any) -> Any:
    """The parameters of a tensor that is too small for 8-bit moments, else 0. Part of terms, no term itself."""
    return when(count < smallest, count, 0)


@term("switch")
def gradients_accumulate(gradient_accumulation: Any) -> Any:
    """1 when gradients of an earlier micro-batch are alive during forward and backward."""
    return when(gradient_accumulation > 1, 1, 0)


@check(
    "sequence_length is {sequence_length}; {base_model} was made for at most {maximum_positions} tokens",
    fault=False,
)
@term("switch")
def sequence_within_model(maximum_positions: Any, tokens_per_row: Any) -> Any:
    """1 when the model was made for sequences this long."""
    return when((maximum_positions > 0) & (tokens_per_row > maximum_positions), 0, 1)

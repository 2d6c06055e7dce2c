"""The data of a run: how many tokens it is trained on, how many of them are padding, how many updates they make."""

from typing import Any

from ..formula.declare import Input, Number, Whole, check, term
from ..formula.primitives import floor, given

MOST = 10**16
training_tokens = Input(
    "tokens",
    Whole(1, MOST),
    None,
    "Own tokens",
    "All tokens trained on, every epoch counted; empty: examples × tokens each × epochs.",
    follows_job=False,
    optional=True,
)
training_examples = Input(
    "count",
    Whole(1, 10**12),
    40_000,
    "Examples",
    "Rows of the training set, before they are packed.",
    follows_job=False,
)
epoch_count = Input(
    "count", Number(0.001, 10_000), 2, "Epochs", "How often the training set is gone through.", follows_job=False
)
padding_share = Input(
    "share",
    Number(0, 0.99),
    0,
    "Padding",
    "Share of a batch's tokens that pad short rows: they are calculated and teach nothing. Packed rows have none.",
    follows_job=False,
)
supervised_share = Input(
    "share",
    Number(0.001, 1),
    1,
    "Supervised tokens",
    "Share of the tokens that the loss counts, such as the answers alone. The others cost the same.",
    follows_job=False,
)


@term("tokens")
def tokens_per_example(average_tokens: Any, tokens_per_whole_row: Any, sequence_length: Any) -> Any:
    """Tokens of an example: the average where one was entered, else the longest; with its images."""
    return average_tokens + tokens_per_whole_row - sequence_length


@check(
    "average_sequence_length is {average_sequence_length}, by which the tokens of a run are counted; it must not be"
    " above sequence_length, which is {sequence_length}"
)
@term("switch")
def average_counts(average_below_longest: Any) -> Any:
    """1 when the average sequence, by which tokens are counted, is not longer than the longest."""
    return average_below_longest


@term("tokens")
def run_tokens(training_tokens: Any, training_examples: Any, tokens_per_example: Any, epoch_count: Any) -> Any:
    """Tokens trained on: those entered, else examples × tokens each × epochs (D)."""
    return given(training_tokens, training_examples * tokens_per_example * epoch_count)


@term("tokens")
def processed_tokens(run_tokens: Any, padding_share: Any) -> Any:
    """Tokens that the cards calculate: with the padding between them."""
    return run_tokens / (1 - padding_share)


@term("tokens")
def supervised_tokens(run_tokens: Any, supervised_share: Any) -> Any:
    """Tokens that the loss counts."""
    return run_tokens * supervised_share


@term("count")
def update_count(run_tokens: Any, tokens_per_example: Any, rows_per_update: Any) -> Any:
    """Updates of the run; the last one may be smaller."""
    return 0 - floor(0 - run_tokens / (tokens_per_example * rows_per_update))

"""Full fine-tuning: what a run is, of the terms that all jobs share. The recipe stands in the optimizer's place."""

from typing import Any

from ...formula.declare import check, term
from ...formula.primitives import when


@term("tokens")
def tokens_per_row(sequence_length: Any, sequence_parallel: Any) -> Any:
    """Tokens of the longest row on one card: rows are cut where cards share them."""
    return sequence_length / sequence_parallel


@term("rows")
def effective_batch_size(batch_size: Any, gradient_accumulation: Any, data_parallel: Any) -> Any:
    """Rows per update: the micro-batch times the accumulated steps times the cards that hold different rows."""
    return batch_size * gradient_accumulation * data_parallel


@check(
    "sequence_length is {sequence_length}; {base_model} has learned positions for {maximum_positions} tokens and none"
    " beyond them"
)
@term("switch")
def positions_suffice(models: Any, model_row: Any, maximum_positions: Any, sequence_length: Any) -> Any:
    """0 when a row is longer than the table of learned positions: no such step can run."""
    return when((models.position_rows[model_row] > 0) & (sequence_length > maximum_positions), 0, 1)


@term("tokens", label="Longest sequence that the model takes")
def sequence_length_taken(models: Any, model_row: Any, maximum_positions: Any, sequence_length_limit: Any) -> Any:
    """What a table of learned positions has room for; other models have no such end."""
    return when(models.position_rows[model_row] > 0, maximum_positions, sequence_length_limit)

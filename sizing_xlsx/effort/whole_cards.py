"""Cards that each hold the whole job and take a part of every batch: how adapters and encoders are trained."""

from typing import Any

from ..formula.declare import term


@term("switch")
def parameters_sharded() -> Any:
    """1 when cards share the parameters; here each holds the whole job."""
    return 0


@term("tokens")
def tokens_per_whole_row(tokens_per_row: Any) -> Any:
    """Tokens of the longest row, with its images."""
    return tokens_per_row


@term("rows")
def rows_per_update(effective_batch_size: Any, gpu_count: Any) -> Any:
    """Rows of one update over all cards: micro-batch × accumulated steps × cards."""
    return effective_batch_size * gpu_count

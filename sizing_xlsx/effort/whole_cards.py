"""Cards that each work on rows of their own: how adapters and encoders are trained."""

from typing import Any

from ..formula.declare import term


@term("count")
def update_volume(replicated_volume: Any) -> Any:
    """Values that a card sends for each parameter and update."""
    return replicated_volume


@term("bytes")
def exchange_within(update_traffic: Any, several_nodes: Any) -> Any:
    """What of the exchange of gradients stays within a node: all of it, or none where the cards are more."""
    return update_traffic * (1 - several_nodes)


@term("bytes")
def exchange_between(update_traffic: Any, several_nodes: Any) -> Any:
    """What of the exchange of gradients goes to other nodes."""
    return update_traffic * several_nodes


@term("share")
def pipeline_bubble() -> Any:
    """Time that stages of a pipeline wait, for each hour of work: none, as each card has all layers."""
    return 0


@term("tokens")
def tokens_per_whole_row(tokens_per_row: Any) -> Any:
    """Tokens of the longest row, with its images."""
    return tokens_per_row


@term("rows")
def rows_per_update(effective_batch_size: Any, gpu_count: Any) -> Any:
    """Rows of one update over all cards: micro-batch × accumulated steps × cards."""
    return effective_batch_size * gpu_count

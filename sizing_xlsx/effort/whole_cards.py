"""Cards that each hold the whole job and take a part of every batch: how adapters and encoders are trained."""

from typing import Any

from ..formula.declare import Input, Whole, term

gpu_count = Input(
    "count",
    Whole(1, 1024),
    1,
    "Cards",
    "Cards that share the run: each holds the whole job and takes a part of every batch.",
    follows_job=False,
)
gpus_per_node = Input(
    "count",
    Whole(1, 1024),
    8,
    "GPUs per node",
    "Cards of one machine; beyond them, traffic goes over the network.",
    follows_job=False,
)


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


@term("bytes")
def model_traffic_within() -> Any:
    """What cards send each other because they share the model: nothing, as each holds it whole."""
    return 0


@term("bytes")
def model_traffic_between() -> Any:
    """The same between nodes: nothing."""
    return 0


@term("share")
def pipeline_bubble() -> Any:
    """Time that stages of a pipeline wait, for each hour of work: none, as each card holds the whole job."""
    return 0


@term("tokens")
def tokens_per_whole_row(tokens_per_row: Any) -> Any:
    """Tokens of the longest row, with its images."""
    return tokens_per_row


@term("rows")
def rows_per_update(effective_batch_size: Any, gpu_count: Any) -> Any:
    """Rows of one update over all cards: micro-batch × accumulated steps × cards."""
    return effective_batch_size * gpu_count

"""How cards that hold the same weights share a step: what of the state each stage divides, and among how many."""

from typing import Any

from ...formula.declare import Choice, Constant, Input, Whole, check, term
from ...formula.primitives import floor, when
from .card import APART, may_share

_ZERO = "Rajbhandari et al. 2020; DeepSpeed's and PyTorch's documentation"
gpu_count = Input("count", Whole(1, 1_048_576), 1, "GPUs", "Cards in all, over all nodes.")
sharding_stage = Input(
    "text",
    Choice("sharding_stages"),
    "None",
    "Sharding stage",
    "What cards divide: nothing (DDP), optimizer state (ZeRO-1), gradients too (ZeRO-2), weights too (ZeRO-3, FSDP).",
)
gpus_per_node = Input(
    "count", Whole(1, 1024), 8, "GPUs per node", "Cards of one machine; hybrid shards stay within it."
)
node_cards = Constant(8, "count", "Cards of a common node", "eight-GPU servers of all vendors", "definition")


@check(APART, fault=False)
@term("switch", source="NVIDIA MIG User Guide, Deployment Considerations")
def slices_work_alone(gpus: Any, gpu_row: Any, gpu_count: Any) -> Any:
    """0 when cards that share a step are MIG slices."""
    return may_share(gpus, gpu_row, gpu_count)


@term("row")
def stage_row(sharding_stages: Any, sharding_stage: Any) -> Any:
    """Row of the stage in its table."""
    return sharding_stages.row_of(sharding_stage)


@term("switch")
def hybrid_stage(sharding_stages: Any, stage_row: Any) -> Any:
    """1 when the state is divided within a node and repeated over nodes."""
    return sharding_stages.hybrid[stage_row]


@term("switch")
def fsdp_stage(sharding_stages: Any, stage_row: Any) -> Any:
    """1 when PyTorch's FSDP shares the state."""
    return sharding_stages.fsdp[stage_row]


@term("count")
def uneven_nodes(copies_of_weights: Any, node_group: Any) -> Any:
    """What is left over when cards form nodes, and tensor parallel groups within a node: 0 when both are even."""
    nodes = copies_of_weights / node_group
    return nodes - floor(nodes) + node_group - floor(node_group)


@check(
    "sharding_stage is {sharding_stage!r} with {copies_of_weights} {copies_of_weights:card|cards} and {node_group} of"
    " them a node; a hybrid shard needs whole nodes: a multiple of {node_group} {node_group:card|cards}"
)
@term("switch")
def nodes_are_whole(hybrid_stage: Any, uneven_nodes: Any) -> Any:
    """0 when a hybrid stage would have a node with fewer cards than the others."""
    return when((hybrid_stage > 0) & (uneven_nodes > 0), 0, 1)


@term("count", source=_ZERO)
def shard_count(hybrid_stage: Any, node_group: Any, copies_of_weights: Any) -> Any:
    """Cards among which the stage divides what it divides (N)."""
    return when(hybrid_stage > 0, node_group, copies_of_weights)


@term("count", source=_ZERO)
def weight_shards(sharding_stages: Any, stage_row: Any, shard_count: Any) -> Any:
    """Cards among which the weights are divided."""
    return when(sharding_stages.shards_weights[stage_row] > 0, shard_count, 1)


@term("count", source=_ZERO)
def gradient_shards(sharding_stages: Any, stage_row: Any, shard_count: Any) -> Any:
    """Cards among which the gradients are divided."""
    return when(sharding_stages.shards_gradients[stage_row] > 0, shard_count, 1)


@term("count", source=_ZERO)
def optimizer_shards(sharding_stages: Any, stage_row: Any, shard_count: Any) -> Any:
    """Cards among which the master copy and the moments are divided."""
    return when(sharding_stages.shards_optimizer[stage_row] > 0, shard_count, 1)


@term("switch", label="Stays on one eight-GPU node")
def on_one_node(gpu_count: Any, node_cards: Any) -> Any:
    """1 when all cards are in one node of eight."""
    return when(gpu_count > node_cards, 0, 1)

"""What cards send each other for an update where they share a model: by sharding, and by each kind of parallelism.

Volumes are of the card that sends most, in compute precision, over all micro-batches of an update. Cards of one
tensor-parallel group lie next to each other, then those that share rows or experts, then those that repeat them, and
stages of a pipeline farthest apart: a group that is larger than a node sends over the network.
"""

from typing import Any

from ..formula.declare import Constant, term
from ..formula.primitives import minimum, when
from .throughput import BUBBLE

_MEGATRON = (
    "Shoeybi et al. 2019, Megatron-LM: 2 all-reduces a layer forward, 2 backward; Narayanan et al. 2021: each sends"
    " 2·(t - 1)/t of its values"
)
_ULYSSES = "Jacobs et al. 2023, DeepSpeed Ulysses: all-to-all of queries, keys, values and of attention's output"
_EXPERTS = "Lepikhin et al. 2020, GShard: all-to-all to the experts and back"
_SHARDED = (
    "Rajbhandari et al. 2020, ZeRO: gradients reduced and parameters gathered twice are 3 values; Zhao et al. 2023,"
    " FSDP: a hybrid stage reduces its part between nodes"
)
sharded_volume = Constant(3, "count", "Values sent for each parameter, sharded", _SHARDED, "published")
layer_reductions = Constant(2, "count", "All-reduces of a layer, one way", _MEGATRON, "published")
ring_volume = Constant(2, "count", "Sent for each value reduced", "reduce-scatter, then all-gather", "published")
expert_exchanges = Constant(2, "count", "Exchanges of an expert layer, one way", _EXPERTS, "published")


@term("share", source=BUBBLE)
def pipeline_bubble(pipeline_parallel: Any, gradient_accumulation: Any) -> Any:
    """Time that a stage waits, for each hour of work: (stages - 1) / micro-batches of an update."""
    return (pipeline_parallel - 1) / gradient_accumulation


@term("bytes")
def boundary_bytes(tokens_per_micro_batch: Any, hidden_size: Any, compute_bytes: Any) -> Any:
    """One activation of a micro-batch between layers: S·B·d values."""
    return tokens_per_micro_batch * hidden_size * compute_bytes


@term("count")
def layer_passes(stage_layers: Any, forwards_repeated: Any, gradient_accumulation: Any) -> Any:
    """Layers that a card passes for an update: forward, backward, checkpointed forward again; each micro-batch."""
    return stage_layers * (2 + forwards_repeated) * gradient_accumulation


@term("bytes", source=_MEGATRON)
def tensor_traffic(
    boundary_bytes: Any, layer_passes: Any, layer_reductions: Any, ring_volume: Any, tensor_parallel: Any
) -> Any:
    """Tensor parallel: 2 all-reduces of S·B·d forward and 2 backward for each layer held, of 2·(t - 1)/t each."""
    reduced = boundary_bytes * layer_passes * layer_reductions
    return reduced * ring_volume * (tensor_parallel - 1) / tensor_parallel


@term("bytes", source=BUBBLE)
def pipeline_traffic(boundary_bytes: Any, pipeline_parallel: Any, gradient_accumulation: Any) -> Any:
    """Pipeline: S·B·d to the next stage forward and to the one before backward; of two stages each sends one."""
    return boundary_bytes * minimum(2, pipeline_parallel - 1) * gradient_accumulation


@term("bytes")
def exchanged_heads(tokens_per_micro_batch: Any, query_width: Any, kv_width: Any, compute_bytes: Any) -> Any:
    """Queries, keys, values and attention's output of a micro-batch in one layer."""
    return tokens_per_micro_batch * 2 * (query_width + kv_width) * compute_bytes


@term("bytes", source=_ULYSSES)
def sequence_traffic(exchanged_heads: Any, layer_passes: Any, sequence_parallel: Any) -> Any:
    """Sequence parallel: queries, keys, values and output of each layer held, (s - 1)/s of them, each pass."""
    return exchanged_heads * layer_passes * (sequence_parallel - 1) / sequence_parallel


@term("share")
def expert_layer_share(moe_layer_count: Any, layer_count: Any) -> Any:
    """Share of the layers that have experts."""
    return moe_layer_count / layer_count


@term("bytes", source=_EXPERTS)
def expert_traffic(
    boundary_bytes: Any,
    experts_per_token: Any,
    expert_layer_share: Any,
    layer_passes: Any,
    expert_exchanges: Any,
    expert_parallel: Any,
) -> Any:
    """Expert parallel: S·B·d for each expert of a token, there and back, (e - 1)/e of it, each pass."""
    sent = boundary_bytes * experts_per_token * expert_layer_share * layer_passes * expert_exchanges
    return sent * (expert_parallel - 1) / expert_parallel


def _larger(cards: Any, gpus_per_node: Any) -> Any:
    """1 when a group has more cards than a node. Part of terms, no term itself."""
    return when(cards > gpus_per_node, 1, 0)


@term("switch")
def tensor_between_nodes(tensor_parallel: Any, gpus_per_node: Any) -> Any:
    """1 when a tensor-parallel group is larger than a node."""
    return _larger(tensor_parallel, gpus_per_node)


@term("switch")
def sequence_between_nodes(tensor_parallel: Any, sequence_parallel: Any, gpus_per_node: Any) -> Any:
    """1 when the cards that share a row are more than a node."""
    return _larger(tensor_parallel * sequence_parallel, gpus_per_node)


@term("switch")
def experts_between_nodes(tensor_parallel: Any, expert_parallel: Any, gpus_per_node: Any) -> Any:
    """1 when the cards that share a layer's experts are more than a node."""
    return _larger(tensor_parallel * expert_parallel, gpus_per_node)


@term("switch")
def exchange_between_nodes(tensor_parallel: Any, copies_of_weights: Any, gpus_per_node: Any) -> Any:
    """1 when the cards of a stage that exchange gradients are more than a node."""
    return _larger(tensor_parallel * copies_of_weights, gpus_per_node)


@term("count", source=_SHARDED)
def further_reductions(sharding_stages: Any, stage_row: Any, gradient_accumulation: Any) -> Any:
    """Micro-batches after the first whose gradients are reduced apart: where cards share the gradients."""
    return sharding_stages.shards_gradients[stage_row] * (gradient_accumulation - 1)


@term("count", source=_SHARDED)
def update_volume(
    parameters_sharded: Any,
    sharded_volume: Any,
    replicated_volume: Any,
    further_reductions: Any,
    gradient_accumulation: Any,
) -> Any:
    """Values that a card sends for each parameter and update: what is sharded is sent for each micro-batch."""
    gathered = sharded_volume * gradient_accumulation
    return when(parameters_sharded > 0, gathered, replicated_volume + further_reductions)


@term("bytes")
def exchange_within(sharding_stages: Any, stage_row: Any, update_traffic: Any, exchange_between_nodes: Any) -> Any:
    """What of the exchange of gradients and weights stays within a node; a hybrid stage shards within one."""
    leaves = exchange_between_nodes * (1 - sharding_stages.hybrid[stage_row])
    return update_traffic * (1 - leaves)


@term("bytes", source=_SHARDED)
def exchange_between(
    sharding_stages: Any,
    stage_row: Any,
    update_traffic: Any,
    exchange_between_nodes: Any,
    replicated_volume: Any,
    exchanged_gradients: Any,
    shard_count: Any,
) -> Any:
    """What of it goes to other nodes: all, or with a hybrid stage 2 values of the part that a card holds."""
    of_part = replicated_volume * exchanged_gradients / shard_count
    return exchange_between_nodes * when(sharding_stages.hybrid[stage_row] > 0, of_part, update_traffic)


@term("bytes")
def model_traffic_between(
    tensor_traffic: Any,
    tensor_between_nodes: Any,
    pipeline_traffic: Any,
    several_nodes: Any,
    sequence_traffic: Any,
    sequence_between_nodes: Any,
    expert_traffic: Any,
    experts_between_nodes: Any,
) -> Any:
    """What a card sends to other nodes because they share the model, for one update."""
    inner = tensor_traffic * tensor_between_nodes + sequence_traffic * sequence_between_nodes
    return inner + expert_traffic * experts_between_nodes + pipeline_traffic * several_nodes


@term("bytes")
def model_traffic_within(
    tensor_traffic: Any,
    pipeline_traffic: Any,
    sequence_traffic: Any,
    expert_traffic: Any,
    model_traffic_between: Any,
) -> Any:
    """What a card sends within its node because they share the model, for one update."""
    return tensor_traffic + pipeline_traffic + sequence_traffic + expert_traffic - model_traffic_between


@term("GB")
def exchange_gb(exchange_within: Any, exchange_between: Any, bytes_per_gb: Any) -> Any:
    """Gradients and weights that a card exchanges, for one update."""
    return (exchange_within + exchange_between) / bytes_per_gb


@term("GB")
def tensor_traffic_gb(tensor_traffic: Any, bytes_per_gb: Any) -> Any:
    """What a card sends for tensor parallel, for one update."""
    return tensor_traffic / bytes_per_gb


@term("GB")
def pipeline_traffic_gb(pipeline_traffic: Any, bytes_per_gb: Any) -> Any:
    """What a card sends for the pipeline, for one update."""
    return pipeline_traffic / bytes_per_gb


@term("GB")
def sequence_traffic_gb(sequence_traffic: Any, bytes_per_gb: Any) -> Any:
    """What a card sends for sequence parallel, for one update."""
    return sequence_traffic / bytes_per_gb


@term("GB")
def expert_traffic_gb(expert_traffic: Any, bytes_per_gb: Any) -> Any:
    """What a card sends for expert parallel, for one update."""
    return expert_traffic / bytes_per_gb

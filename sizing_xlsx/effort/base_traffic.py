"""What cards send each other because a stage divides a frozen base: each gathers it for forward and for backward."""

from typing import Any

from ..formula.declare import Constant, term

_GATHERS = "Rajbhandari et al. 2020, ZeRO: weights are gathered for forward and backward; frozen ones have no gradient"
base_gathers = Constant(2, "count", "Gatherings of a frozen base for a micro-batch", _GATHERS, "published")


@term("bytes")
def gathered_base(
    weights_gathered: Any,
    gathered_bytes: Any,
    base_parameter_count: Any,
    quantised_parameters: Any,
    value_bytes: Any,
) -> Any:
    """The base as cards send it: in 16 bit or as it is stored; the scales of a quantised one are on every card."""
    plain = gathered_bytes * (base_parameter_count - quantised_parameters)
    return weights_gathered * (plain + value_bytes * quantised_parameters)


@term("bytes", source=_GATHERS)
def base_traffic(gathered_base: Any, base_gathers: Any, gradient_accumulation: Any, weight_shards: Any) -> Any:
    """What a card receives of the base for one update: all but its own part, for each micro-batch."""
    return gathered_base * base_gathers * gradient_accumulation * (1 - 1 / weight_shards)


@term("share")
def base_leaves_node(several_nodes: Any, hybrid_stage: Any) -> Any:
    """1 when it comes from other nodes too; a hybrid stage keeps a whole base in each."""
    return several_nodes * (1 - hybrid_stage)


@term("bytes")
def model_traffic_within(base_traffic: Any, base_leaves_node: Any) -> Any:
    """What of it stays within a node."""
    return base_traffic * (1 - base_leaves_node)


@term("bytes")
def model_traffic_between(base_traffic: Any, base_leaves_node: Any) -> Any:
    """What of it comes from other nodes."""
    return base_traffic * base_leaves_node

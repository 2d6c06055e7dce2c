"""What the cards tell each other: the volume of a step, and the least time that their links need for it.

Traffic may run beside the work: a run takes at least the longer of the two, max(work, traffic), and the links within
a node run beside those between nodes.
"""

from typing import Any

from ..formula.declare import Constant, Input, Number, check, term
from ..formula.primitives import given, maximum, minimum, when

_ZERO = "Rajbhandari et al. 2020, ZeRO: 2 values per parameter and step with all of them on every card, 3 sharded"
_NETWORK = "assumed: an adapter of 200 Gb/s for each card, as in a DGX A100; a DGX H100 has 400"
replicated_volume = Constant(2, "count", "Values sent for each parameter", _ZERO, "published")
assumed_network_gb_per_second = Constant(25, "GB per second", "Network, where none is entered", _NETWORK, "assumed")
least_link = Constant(
    1e-9, "GB per second", "Least link", "keeps a link that is not known from dividing by zero", "definition"
)
own_link_gb_per_second = Input(
    "GB per second",
    Number(0.001, 1_000_000),
    None,
    "Own link",
    "What one card can send within its node, one way; empty: half of its links, as on GPUs.",
    follows_job=False,
    optional=True,
)
own_network_gb_per_second = Input(
    "GB per second",
    Number(0.001, 1_000_000),
    None,
    "Own network",
    "What one card can send to other nodes, one way; empty: 25 are assumed, at most what the card's link takes.",
    follows_job=False,
    optional=True,
)


@term("bytes", source=_ZERO)
def update_traffic(exchanged_gradients: Any, update_volume: Any, gpu_count: Any) -> Any:
    """What a card sends of its gradients and weights for one update: 2·P values, 3·P with sharded parameters."""
    return when(gpu_count > 1, update_volume, 0) * exchanged_gradients


@term("switch")
def several_nodes(gpu_count: Any, gpus_per_node: Any) -> Any:
    """1 when the cards are more than one node has."""
    return when(gpu_count > gpus_per_node, 1, 0)


@term("GB")
def node_traffic_gb(exchange_within: Any, model_traffic_within: Any, bytes_per_gb: Any) -> Any:
    """What a card sends within its node for one update."""
    return (exchange_within + model_traffic_within) / bytes_per_gb


@term("GB")
def network_traffic_gb(exchange_between: Any, model_traffic_between: Any, bytes_per_gb: Any) -> Any:
    """What a card sends to other nodes for one update."""
    return (exchange_between + model_traffic_between) / bytes_per_gb


@term("GB")
def update_traffic_gb(node_traffic_gb: Any, network_traffic_gb: Any) -> Any:
    """All that a card sends for one update."""
    return node_traffic_gb + network_traffic_gb


@term("GB")
def run_traffic_gb(update_traffic_gb: Any, update_count: Any) -> Any:
    """All that a card sends in the whole run."""
    return update_traffic_gb * update_count


@term("GB")
def run_node_traffic_gb(node_traffic_gb: Any, update_count: Any) -> Any:
    """What a card sends within its node in the whole run."""
    return node_traffic_gb * update_count


@term("GB")
def run_network_traffic_gb(network_traffic_gb: Any, update_count: Any) -> Any:
    """What a card sends to other nodes in the whole run."""
    return network_traffic_gb * update_count


@term("GB per second", source="GPUs sheet: both ways together, so half of it one way")
def link_gb_per_second(own_link_gb_per_second: Any, gpus: Any, gpu_row: Any) -> Any:
    """What a card can send within its node, one way; 0 where it is not known."""
    return given(own_link_gb_per_second, gpus.interconnect_gb_per_s[gpu_row] / 2)


@term("switch")
def link_known(link_gb_per_second: Any) -> Any:
    """1 when it is known what a card can send."""
    return when(link_gb_per_second > 0, 1, 0)


@term("GB per second", source=_NETWORK)
def usual_network_gb_per_second(assumed_network_gb_per_second: Any, link_gb_per_second: Any, link_known: Any) -> Any:
    """What is assumed that a card can send to other nodes: no more than its link takes, where that is known."""
    limited = minimum(assumed_network_gb_per_second, link_gb_per_second)
    return when(link_known > 0, limited, assumed_network_gb_per_second)


@term("GB per second", label="Network of a card")
def network_gb_per_second(own_network_gb_per_second: Any, usual_network_gb_per_second: Any) -> Any:
    """What a card can send to other nodes, one way: as entered, else assumed."""
    return given(own_network_gb_per_second, usual_network_gb_per_second)


@term("seconds")
def node_seconds(node_traffic_gb: Any, link_gb_per_second: Any, least_link: Any, link_known: Any) -> Any:
    """The least time of one update's traffic within a node, at the full speed of a link; 0 where that is not known."""
    return link_known * (node_traffic_gb / maximum(link_gb_per_second, least_link))


@term("seconds")
def network_seconds(network_traffic_gb: Any, network_gb_per_second: Any) -> Any:
    """The least time of one update's traffic between nodes, at the full speed of the network."""
    return network_traffic_gb / network_gb_per_second


@term("seconds")
def traffic_seconds(node_seconds: Any, network_seconds: Any) -> Any:
    """The least time of one update's traffic: within nodes and between them at once."""
    return maximum(node_seconds, network_seconds)


@term("hours")
def traffic_hours(traffic_seconds: Any, update_count: Any, seconds_per_hour: Any) -> Any:
    """The least time of the whole run's traffic: training takes no less, however fast the cards work."""
    return traffic_seconds * update_count / seconds_per_hour


@term("tokens per second")
def entered_speed(measured_tokens_per_second: Any) -> Any:
    """The measured speed, as entered; 0 where it is not."""
    return given(measured_tokens_per_second, 0)


@term("hours", label="Traffic that training waits for")
def binding_traffic_hours(traffic_hours: Any, entered_speed: Any) -> Any:
    """The hours that training takes at least for its traffic; 0 with a measured speed, which has it in it."""
    return when(entered_speed > 0, 0, traffic_hours)


@term("hours")
def work_hours(processed_tokens: Any, computed_per_second: Any, least_speed: Any, seconds_per_hour: Any) -> Any:
    """What the work alone takes as expected, or the run as measured."""
    return processed_tokens / maximum(computed_per_second, least_speed) / seconds_per_hour


@check(
    "gpu_count is {gpu_count}: its traffic takes {traffic_hours:.2f} hours at the speed of its links and the work"
    " {work_hours:.2f}; a faster link, more rows for each update or fewer cards would help",
    fault=False,
)
@term("switch")
def work_binds(traffic_hours: Any, work_hours: Any, speed_known: Any) -> Any:
    """1 when the work takes longer than the traffic, or no speed is known."""
    return when((speed_known > 0) & (traffic_hours > work_hours), 0, 1)


@term("GB per second")
def entered_network(own_network_gb_per_second: Any) -> Any:
    """The network between nodes, as entered; 0 where it is not."""
    return given(own_network_gb_per_second, 0)


@check(
    "gpu_count is {gpu_count} with {gpus_per_node} to a node and without own_network_gb_per_second;"
    " {network_gb_per_second:.1f} GB per second between nodes are assumed, so enter your network's",
    fault=False,
    assumed="network_gb_per_second",
)
@term("switch")
def network_entered(several_nodes: Any, entered_network: Any) -> Any:
    """1 when the network between nodes is entered, or one node is enough."""
    return when((several_nodes > 0) & (entered_network <= 0), 0, 1)


@check(
    "gpu_count is {gpu_count} and no link of this card is known; traffic within a node is not counted, so enter"
    " own_link_gb_per_second",
    fault=False,
    assumed="link_gb_per_second",
)
@term("switch")
def link_entered(node_traffic_gb: Any, link_known: Any) -> Any:
    """1 when the link of a card that sends to its node is known."""
    return when((node_traffic_gb > 0) & (link_known <= 0), 0, 1)

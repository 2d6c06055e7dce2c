"""What the cards tell each other: the volume of a step, and the least time that their links need for it."""

from typing import Any

from ..formula.declare import Constant, Input, Number, term
from ..formula.primitives import given, maximum, when

_ZERO = "Rajbhandari et al. 2020, ZeRO: 2 values per parameter and step with all of them on every card, 3 sharded"
replicated_volume = Constant(2, "count", "Values sent for each parameter", _ZERO, "published")
sharded_volume = Constant(3, "count", "Values sent for each parameter, sharded", _ZERO, "published")
least_link = Constant(
    1e-9, "GB per second", "Least link", "keeps a link that is not known from dividing by zero", "definition"
)
own_link_gb_per_second = Input(
    "GB per second",
    Number(0.001, 1_000_000),
    None,
    "Own link",
    "What one card can send, one way: between machines the network's; empty: half of its links, as on GPUs.",
    follows_job=False,
    optional=True,
)


@term("bytes", source=_ZERO)
def update_traffic(
    exchanged_gradients: Any, parameters_sharded: Any, replicated_volume: Any, sharded_volume: Any, gpu_count: Any
) -> Any:
    """What a card sends for one update: 2·P values, 3·P with sharded parameters; nothing when it is alone."""
    volume = when(parameters_sharded > 0, sharded_volume, replicated_volume)
    return when(gpu_count > 1, volume, 0) * exchanged_gradients


@term("GB")
def update_traffic_gb(update_traffic: Any, bytes_per_gb: Any) -> Any:
    """What a card sends for one update."""
    return update_traffic / bytes_per_gb


@term("GB")
def run_traffic_gb(update_traffic_gb: Any, update_count: Any) -> Any:
    """What a card sends in the whole run."""
    return update_traffic_gb * update_count


@term("GB per second", source="GPUs sheet: both ways together, so half of it one way")
def link_gb_per_second(own_link_gb_per_second: Any, gpus: Any, gpu_row: Any) -> Any:
    """What a card can send, one way; 0 where it is not known."""
    return given(own_link_gb_per_second, gpus.interconnect_gb_per_s[gpu_row] / 2)


@term("switch")
def link_known(link_gb_per_second: Any) -> Any:
    """1 when it is known what a card can send."""
    return when(link_gb_per_second > 0, 1, 0)


@term("seconds")
def traffic_seconds(update_traffic_gb: Any, link_gb_per_second: Any, least_link: Any, link_known: Any) -> Any:
    """The least time of one update's traffic, at the full speed of the link; 0 where that is not known."""
    return link_known * (update_traffic_gb / maximum(link_gb_per_second, least_link))


@term("hours")
def traffic_hours(traffic_seconds: Any, update_count: Any, seconds_per_hour: Any) -> Any:
    """The least time of the whole run's traffic: a bound, and a part of what the reached share holds already."""
    return traffic_seconds * update_count / seconds_per_hour

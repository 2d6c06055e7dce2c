"""Why a figure of serving is not known, in words: the fact that is missing, and what to enter in its place."""

from typing import Any

from ..formula.declare import term
from ..formula.primitives import when

KNOWN = "known"


@term("text", label="Why times are not known")
def speed_unknown(engine_peak: Any, card_bandwidth: Any) -> Any:
    """Which peak of the card is missing where times and tokens a second are not known, else "known"."""
    no_bandwidth = "the card's bandwidth is not listed: enter an own bandwidth"
    no_peak = "the card's peak in this precision is not listed: enter an own peak, or choose another precision"
    return when(engine_peak <= 0, no_peak, when(card_bandwidth <= 0, no_bandwidth, KNOWN))


@term("text", label="Why deployments are not known")
def replicas_unknown(
    kv_room: Any, maximum_request_held: Any, deployment_places: Any, peaks_known: Any, speed_unknown: Any
) -> Any:
    """Why deployments, and with them what they cost, are not known, else "known"; what does not start comes first."""
    no_room = "weights and a step leave no room for a KV pool on the card: no deployment starts"
    no_request = "the KV pool does not hold one request of maximum length: no deployment starts"
    no_place = "the KV pool does not hold one request of mean length"
    starts = when(deployment_places <= 0, no_place, when(peaks_known > 0, KNOWN, speed_unknown))
    return when(kv_room <= 0, no_room, when(kv_room < maximum_request_held, no_request, starts))


@term("text", label="Why the rent is not known")
def rent_unknown(replicas_known: Any, replicas_unknown: Any, price_known: Any) -> Any:
    """Why what is rented has no cost, else "known"."""
    no_price = "the card has no listed price: enter an own price with its date"
    return when(replicas_known <= 0, replicas_unknown, when(price_known > 0, KNOWN, no_price))

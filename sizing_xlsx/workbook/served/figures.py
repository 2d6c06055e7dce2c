"""Figures of serving as they are shown: rounded so that what stands side by side adds up by eye.

Weights and what is used are rounded up, the pool and the headroom down, all to 0.1 GB; the headroom shown is the
difference of the shown figures. The verdict uses the exact values.
"""

from typing import Any

from ...formula.declare import Constant, term
from ...formula.primitives import maximum, minimum, round_down, round_up, rounded, when

_SENTENCE = "third and later sentences on the verdict"
reason_weights = Constant(3, "count", "Reason: no room for a cache", _SENTENCE, "definition")
reason_request = Constant(4, "count", "Reason: no room for one request", _SENTENCE, "definition")
reason_load = Constant(5, "count", "Reason: more than the card under load", _SENTENCE, "definition")
reason_users = Constant(6, "count", "Reason: too many users", _SENTENCE, "definition")


# ---------------------------------------------------------------------- the verdict and the strip
@term("count")
def start_case(
    kv_room: Any, maximum_request_held: Any, reason_weights: Any, reason_request: Any, reason_load: Any
) -> Any:
    """Which sentence says why the engine does not run."""
    return when(kv_room <= 0, reason_weights, when(kv_room < maximum_request_held, reason_request, reason_load))


@term("count")
def verdict_case(verdict_code: Any, engine_runs: Any, start_case: Any, reason_users: Any) -> Any:
    """Which sentence says the verdict: 1 fits, 2 tight, then why it does not fit."""
    return when(verdict_code <= 2, verdict_code, when(engine_runs > 0, reason_users, start_case))


@term("GB", label="Total to size against")
def total_reserved_gb(needed_gb: Any) -> Any:
    """What the job needs of a card: weights, step, libraries, graphs, the KV cache of all users."""
    return needed_gb


@term("GB")
def total_shown_gb(total_reserved_gb: Any) -> Any:
    """What the job needs of a card, rounded up."""
    return round_up(total_reserved_gb, 1)


@term("share")
def card_utilisation(needed_gb: Any, gpu_usable_capacity_gb: Any) -> Any:
    """Share of the usable capacity that the job needs; 0 where the capacity is not known."""
    known = when(gpu_usable_capacity_gb > 0, gpu_usable_capacity_gb, needed_gb)
    return when(gpu_usable_capacity_gb > 0, needed_gb, 0) / known


@term("GB")
def weights_shown_gb(weights_gb: Any) -> Any:
    """Weights of a card, rounded up."""
    return round_up(weights_gb, 1)


@term("GB")
def pool_shown_gb(kv_room: Any, bytes_per_gb: Any) -> Any:
    """Room for the KV pool, rounded down; below 0 when there is none."""
    gb = kv_room / bytes_per_gb
    return when(gb >= 0, round_down(gb, 1), 0 - round_up(0 - gb, 1))


@term("GB")
def used_shown_gb(users_held: Any, kv_room: Any, bytes_per_gb: Any, pool_shown_gb: Any) -> Any:
    """KV cache of all users on a card, rounded up, but never above the pool that it fits."""
    used = round_up(users_held / bytes_per_gb, 1)
    return when(users_held <= kv_room, minimum(used, pool_shown_gb), used)


@term("GB")
def headroom_shown_gb(pool_shown_gb: Any, used_shown_gb: Any) -> Any:
    """Headroom of the pool: the difference of the shown figures."""
    return rounded(pool_shown_gb - used_shown_gb, 1)


@term("GB")
def reserved_shown_gb(engine_reserved_gb: Any) -> Any:
    """What the engine takes of a card once it runs, rounded up."""
    return round_up(engine_reserved_gb, 1)


@term("share", label="Use of the pool")
def pool_utilisation(users_held: Any, kv_pool: Any, least_bytes: Any) -> Any:
    """Share of the KV pool that all users take at percentile length; 1 where there is no pool."""
    return when(kv_pool > 0, users_held / maximum(least_bytes, kv_pool), 1)


@term("share")
def gauge_share(pool_utilisation: Any) -> Any:
    """Use of the pool as the gauge shows it: at most full."""
    return minimum(1, pool_utilisation)


# ---------------------------------------------------------------------- line items of a card
@term("bytes")
def kv_users(users_held: Any, kv_pool: Any) -> Any:
    """What all users take of the pool of a card at percentile length; no more than there is."""
    return minimum(kv_pool, users_held)


@term("bytes")
def kv_spare(kv_pool: Any, kv_users: Any) -> Any:
    """What the engine sets aside for keys and values beyond the users asked for."""
    return kv_pool - kv_users


@term("bytes")
def engine_items(weights_held: Any, beside_weights: Any, kv_users: Any, kv_spare: Any) -> Any:
    """The line items of the engine, added up."""
    return weights_held + beside_weights + kv_users + kv_spare


@term("switch")
def engine_items_add_up(engine_items: Any, engine_reserved: Any, sum_tolerance: Any) -> Any:
    """1 when the line items add up to what the engine takes."""
    difference, tolerance = engine_items - engine_reserved, sum_tolerance * engine_reserved
    return when((difference <= tolerance) & (0 - difference <= tolerance), 1, 0)


@term("GB", label="KV cache of the users")
def kv_users_gb(kv_users: Any, bytes_per_gb: Any) -> Any:
    """What all users take of the pool of a card."""
    return kv_users / bytes_per_gb


@term("GB", label="KV cache of the users, as the architecture needs")
def kv_users_needed_gb(users_of_engine: Any, percentile_request_needed: Any, bytes_per_gb: Any) -> Any:
    """What all users need of a card at percentile length: windows alone, KV heads as often as cards repeat them."""
    return users_of_engine * percentile_request_needed / bytes_per_gb


@term("GB", label="KV pool beyond the users")
def kv_spare_gb(kv_spare: Any, bytes_per_gb: Any) -> Any:
    """What the engine sets aside beyond the users asked for."""
    return kv_spare / bytes_per_gb


@term("GB", label="Step, libraries and graphs")
def beside_weights_gb(beside_weights: Any, bytes_per_gb: Any) -> Any:
    """What the engine takes beside weights and pool."""
    return beside_weights / bytes_per_gb


@term("GB", label="Left of the card")
def card_left_gb(free_bytes: Any, engine_reserved: Any, bytes_per_gb: Any) -> Any:
    """What nobody takes of a card while the engine runs; below 0 where it runs out of memory under load."""
    return (free_bytes - engine_reserved) / bytes_per_gb


# ---------------------------------------------------------------------- one cache, counted three ways
@term("bytes per token", label="KV bytes per token, all cards")
def kv_token_held(kv_bytes_per_token_per_gpu: Any, tensor_parallel: Any, pipeline_parallel: Any) -> Any:
    """What all cards of an engine keep of a token together, repeated KV heads as often as they are kept."""
    return kv_bytes_per_token_per_gpu * tensor_parallel * pipeline_parallel


@term("GB", label="KV cache of a request, every layer")
def request_every_layer_gb(kv_request_every_layer: Any, bytes_per_gb: Any) -> Any:
    """A request of percentile length, if every layer kept every token."""
    return kv_request_every_layer / bytes_per_gb


@term("GB", label="KV cache of a request, as the architecture needs")
def request_needed_gb(kv_request_needed: Any, bytes_per_gb: Any) -> Any:
    """A request of percentile length, with no more than the window of layers that have one."""
    return kv_request_needed / bytes_per_gb


@term("GB", label="KV cache of a request, as the engine keeps it")
def request_reserved_gb(
    percentile_request_held: Any, tensor_parallel: Any, pipeline_parallel: Any, bytes_per_gb: Any
) -> Any:
    """A request of percentile length over all cards of an engine: whole blocks, whole windows or none."""
    return percentile_request_held * tensor_parallel * pipeline_parallel / bytes_per_gb

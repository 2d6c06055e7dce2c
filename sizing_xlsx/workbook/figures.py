"""Figures as they are shown: rounded so that what stands side by side adds up by eye.

The total is rounded up (but not past the room it fits), capacity and headroom down, all to 0.1 GB; the headroom
shown is the difference of the shown figures. The verdict uses the exact values.
"""

from typing import Any

from ..formula.declare import Constant, term
from ..formula.primitives import equal, given, minimum, round_down, round_up, rounded, when

percent_count = Constant(100, "count", "Percent", "1 % is 1/100", "definition")
large_error = Constant(0.02, "share", "Error that is shaded", "2 %, chosen for this workbook", "assumed")
one_million = Constant(1e6, "count", "Million", "1,000,000", "definition")
one_billion = Constant(1e9, "count", "Billion", "1,000,000,000", "definition")
verdict_states = Constant(3, "count", "States of a traced verdict", "fits, tight, does not fit", "definition")
way_out_sequence = Constant(3, "count", "Way out: shorter sequences", "third sentence on what helps", "definition")
way_out_card = Constant(4, "count", "Way out: another card", "fourth sentence on what helps", "definition")
sum_tolerance = Constant(1e-9, "share", "Tolerance of sums", "rounding of sums, at most a byte per GB", "assumed")
chart_band = Constant(0.1, "share", "Band drawn around measured peaks", "10 %, chosen for this workbook", "assumed")


@term("GB")
def room_shown_gb(usable_shown_gb: Any, others_shown_gb: Any) -> Any:
    """What the shown figures leave for the job."""
    return rounded(usable_shown_gb - others_shown_gb, 1)


@term("GB")
def total_shown_gb(
    total_reserved_gb: Any, total_to_size_against: Any, capacity_available: Any, room_shown_gb: Any
) -> Any:
    """Total to size against, rounded up, but never above the room that it fits."""
    up = round_up(total_reserved_gb, 1)
    return when(total_to_size_against <= capacity_available, minimum(up, room_shown_gb), up)


@term("GB")
def peak_shown_gb(peak_allocated_gb: Any, peak_allocated: Any, capacity_available: Any, room_shown_gb: Any) -> Any:
    """Peak allocated, rounded up, but never above the room that it fits."""
    up = round_up(peak_allocated_gb, 1)
    return when(peak_allocated <= capacity_available, minimum(up, room_shown_gb), up)


@term("GB")
def reserve_shown_gb(total_shown_gb: Any, peak_shown_gb: Any) -> Any:
    """Reserve: the difference of the shown figures."""
    return rounded(total_shown_gb - peak_shown_gb, 1)


@term("GB")
def usable_shown_gb(gpu_usable_capacity_gb: Any) -> Any:
    """Usable capacity, rounded down."""
    return round_down(gpu_usable_capacity_gb, 1)


@term("GB")
def others_shown_gb(others_beside_total_gb: Any) -> Any:
    """What others take, rounded up."""
    return round_up(others_beside_total_gb, 1)


@term("GB")
def headroom_shown_gb(room_shown_gb: Any, total_shown_gb: Any) -> Any:
    """Headroom: the difference of the shown figures; not negative when the job fits."""
    return rounded(room_shown_gb - total_shown_gb, 1)


@term("GB")
def shortfall_shown_gb(
    peak_allocated: Any,
    total_to_size_against: Any,
    capacity_available: Any,
    rests_on_traced: Any,
    bytes_per_gb: Any,
) -> Any:
    """By how much the deciding figure exceeds what is available, rounded up."""
    deciding = when(rests_on_traced > 0, peak_allocated, total_to_size_against)
    return round_up((deciding - capacity_available) / bytes_per_gb, 1)


@term("share")
def gauge_share(card_utilisation: Any) -> Any:
    """Utilisation as the gauge shows it: at most full."""
    return minimum(1, card_utilisation)


@term("count")
def verdict_case(rests_on_traced: Any, verdict_code: Any, verdict_states: Any) -> Any:
    """Which sentence says the verdict: 1 to 3 traced, 4 and 5 published."""
    return when(rests_on_traced > 0, verdict_code, verdict_states + when(equal(verdict_code, 1), 1, 2))


@term("switch")
def published_in_place(traced_chosen: Any, rests_on_traced: Any) -> Any:
    """1 when traced was chosen but no traced formula exists, so that the published one decides."""
    return traced_chosen - rests_on_traced


@term("share")
def activation_share(activation_item: Any, peak_allocated: Any) -> Any:
    """Activations as a share of the peak."""
    return activation_item / peak_allocated


@term("share")
def base_share(base_item: Any, peak_allocated: Any) -> Any:
    """Weights of the base as a share of the peak."""
    return base_item / peak_allocated


@term("switch")
def traced_items_add_up(traced_items: Any, traced_allocated: Any, sum_tolerance: Any) -> Any:
    """1 when the traced line items add up to the traced peak."""
    difference, tolerance = traced_items - traced_allocated, sum_tolerance * traced_allocated
    return when((difference <= tolerance) & (0 - difference <= tolerance), 1, 0)


@term("switch")
def published_items_add_up(published_items: Any, published_allocated: Any, sum_tolerance: Any) -> Any:
    """1 when the published line items add up to the published peak."""
    difference, tolerance = published_items - published_allocated, sum_tolerance * published_allocated
    return when((difference <= tolerance) & (0 - difference <= tolerance), 1, 0)


@term("text")
def verdict_shown(verdicts: Any, verdict_code: Any) -> Any:
    """The verdict as the strip shows it."""
    return verdicts.shown[verdict_code]


@term("GB")
def base_item_gb(base_item: Any, bytes_per_gb: Any) -> Any:
    """Weights of the base, by the family the verdict rests on."""
    return base_item / bytes_per_gb


@term("GB")
def activation_item_gb(activation_item: Any, bytes_per_gb: Any) -> Any:
    """Activations at the peak, by the family the verdict rests on."""
    return activation_item / bytes_per_gb


@term("GB")
def other_items_gb(peak_allocated_gb: Any, base_item_gb: Any, activation_item_gb: Any) -> Any:
    """Everything at the peak that is neither base nor activations."""
    return peak_allocated_gb - base_item_gb - activation_item_gb


@term("GB")
def available_gb(capacity_available: Any, bytes_per_gb: Any) -> Any:
    """Usable capacity less what others take."""
    return capacity_available / bytes_per_gb


@term("switch")
def average_entered(average_sequence_length: Any) -> Any:
    """1 when an average sequence was entered."""
    return when(given(average_sequence_length, 0) > 0, 1, 0)


@term("switch")
def capacity_entered(gpu_capacity_override_gb: Any) -> Any:
    """1 when the user entered the capacity of the card."""
    return when(given(gpu_capacity_override_gb, 0) > 0, 1, 0)

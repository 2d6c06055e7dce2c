"""The verdict: which family it rests on, what is compared with what, and the three states."""

from typing import Any

from ...formula.declare import check, term
from ...formula.primitives import either, maximum, when


@term("switch")
def traced_chosen(verdict_bases: Any, verdict_basis: Any) -> Any:
    """1 when the user asks for the traced family."""
    return verdict_bases.traced[verdict_bases.row_of(verdict_basis)]


@term("switch")
def rests_on_traced(traced_chosen: Any, traced_available: Any) -> Any:
    """1 when the verdict rests on the traced family: it is chosen, and a traced formula exists for the job."""
    return traced_chosen * traced_available


@term("bytes")
def peak_allocated(
    rests_on_traced: Any, traced_allocated: Any, published_allocated: Any, exact_static_bytes: Any
) -> Any:
    """Allocated peak of the family the verdict rests on; never below what is on the card at every moment."""
    return when(rests_on_traced > 0, traced_allocated, maximum(published_allocated, exact_static_bytes))


@term("bytes")
def total_to_size_against(
    rests_on_traced: Any,
    traced_reserved: Any,
    published_reserved: Any,
    exact_static_bytes: Any,
    published_allowance: Any,
) -> Any:
    """Reserved total of the family the verdict rests on: the figure to compare with a card."""
    published = maximum(published_reserved, exact_static_bytes + published_allowance)
    return when(rests_on_traced > 0, traced_reserved, published)


@check(
    "the published peak is below the exact bytes of the weights and the optimizer state, which are on the card at"
    " every moment; the verdict rests on those",
    fault=False,
)
@term("switch")
def published_holds_static(rests_on_traced: Any, published_allocated: Any, exact_static_bytes: Any) -> Any:
    """0 when the published accounting decides and counts less than is on the card at every moment."""
    return when(rests_on_traced + when(published_allocated >= exact_static_bytes, 1, 0) > 0, 1, 0)


@term("GB", label="Used by others, beside the total")
def others_beside_total_gb(rests_on_traced: Any, used_by_others_gb: Any, published_others_gb: Any) -> Any:
    """What is taken off the capacity: the traced total never holds the context, a published one may."""
    return when(rests_on_traced > 0, used_by_others_gb, published_others_gb)


@term("bytes")
def capacity_available(gpu_usable_capacity_gb: Any, others_beside_total_gb: Any, bytes_per_gb: Any) -> Any:
    """Usable capacity less what others take."""
    return (gpu_usable_capacity_gb - others_beside_total_gb) * bytes_per_gb


@term("bytes")
def published_capacity(gpu_usable_capacity_gb: Any, published_others_gb: Any, bytes_per_gb: Any) -> Any:
    """What the published total is compared with: usable capacity less what is not in it."""
    return (gpu_usable_capacity_gb - published_others_gb) * bytes_per_gb


@term("count")
def verdict_code(total_to_size_against: Any, peak_allocated: Any, capacity_available: Any, rests_on_traced: Any) -> Any:
    """1 fits, 2 tight, 3 does not fit. The published family knows no tight: it fits or it does not."""
    beyond = when((peak_allocated <= capacity_available) & (rests_on_traced > 0), 1, 2)
    return 1 + when(total_to_size_against <= capacity_available, 0, beyond)


@term("text")
def fit_verdict(verdicts: Any, verdict_code: Any) -> Any:
    """The verdict in a word: fits, tight or does not fit."""
    return verdicts.word[verdict_code]


@term("GB")
def peak_allocated_gb(peak_allocated: Any, bytes_per_gb: Any) -> Any:
    """Allocated peak, what torch.cuda.max_memory_allocated reports."""
    return peak_allocated / bytes_per_gb


@term("GB")
def total_reserved_gb(total_to_size_against: Any, bytes_per_gb: Any) -> Any:
    """Reserved total, what torch.cuda.max_memory_reserved reports at most; the figure to size against."""
    return total_to_size_against / bytes_per_gb


@term("GB")
def allocator_reserve_gb(total_reserved_gb: Any, peak_allocated_gb: Any) -> Any:
    """Total less peak: what the allocator holds back."""
    return total_reserved_gb - peak_allocated_gb


@term("GB")
def headroom_gb(capacity_available: Any, total_to_size_against: Any, bytes_per_gb: Any) -> Any:
    """What stays free at the highest estimate; negative when it does not fit."""
    return (capacity_available - total_to_size_against) / bytes_per_gb


@term("GB", label="nvidia-smi may show up to")
def nvidia_smi_gb(total_reserved_gb: Any, others_beside_total_gb: Any) -> Any:
    """The total and what others take: an upper figure, since the cache fills what is free."""
    return total_reserved_gb + others_beside_total_gb


@term("share")
def card_utilisation(nvidia_smi_gb: Any, gpu_usable_capacity_gb: Any) -> Any:
    """Share of the usable capacity that the job and others take; 0 where the capacity is not known."""
    known = when(gpu_usable_capacity_gb > 0, gpu_usable_capacity_gb, nvidia_smi_gb)
    return when(gpu_usable_capacity_gb > 0, nvidia_smi_gb, 0) / known


@term("GB", source="published accounting")
def published_peak_allocated_gb(published_allocated: Any, bytes_per_gb: Any) -> Any:
    """Allocated peak by the published accounting, whatever the verdict rests on."""
    return published_allocated / bytes_per_gb


@term("GB", source="published accounting")
def published_total_reserved_gb(published_reserved: Any, bytes_per_gb: Any) -> Any:
    """Reserved total by the published accounting, whatever the verdict rests on."""
    return published_reserved / bytes_per_gb


@term("GB")
def traced_peak_allocated_gb(traced_available: Any, traced_allocated: Any, bytes_per_gb: Any) -> Any:
    """Allocated peak by the traced list, or "not traced" for an option that has no traced formula."""
    return either(traced_available > 0, traced_allocated / bytes_per_gb, "not traced")


@term("GB")
def traced_total_reserved_gb(traced_available: Any, traced_reserved: Any, bytes_per_gb: Any) -> Any:
    """Traced peak and the allocator's reserve, or "not traced"."""
    return either(traced_available > 0, traced_reserved / bytes_per_gb, "not traced")

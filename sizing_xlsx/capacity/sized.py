"""A job that was sized elsewhere: its peak, total and hours are entered, its verdict and its cost are the jobs'.

Where a sizing workbook has Peak_Allocated_GB, Total_Reserved_GB and the hours on the cards, these are typed or pasted.
"""

from typing import Any

from ..effort.cards import gpu_count
from ..effort.checkpoints import bytes_per_mb, dataset_gb
from ..effort.hours import billed_gpu_hours, billed_share, failed_share, idle_share
from ..effort.rent import (
    billed_price,
    billing_choice,
    billing_row,
    card_rent,
    engineering_cost,
    engineering_days,
    engineering_rate,
    engineering_rate_usd,
    paid_engineering_rate,
    paid_storage_price,
    paid_transfer_price,
    paid_use,
    price_discount,
    reserved_discount,
    reserved_utilisation,
    spot_discount,
    storage_cost,
    storage_months,
    storage_price,
    storage_price_usd,
    transfer_cost,
    transfer_gb,
    transfer_price,
    transfer_price_usd,
)
from ..formula.declare import Input, Number, check, term
from ..formula.primitives import when
from ..memory.shared.card import (
    capacity_known,
    gpu_choice,
    gpu_row,
    gpu_usable_capacity_gb,
    other_tenants_gb,
    outside_pytorch_gb,
    used_by_others_gb,
)
from ..memory.shared.published import published_others_gb
from ..memory.shared.verdict import capacity_available, others_beside_total_gb, total_reserved_gb, verdict_code

__all__ = [
    "billed_gpu_hours", "billed_price", "billed_share", "billing_choice", "billing_row", "bytes_per_mb",
    "capacity_available", "capacity_known", "card_rent", "dataset_gb", "engineering_cost", "engineering_days",
    "engineering_rate", "engineering_rate_usd", "failed_share", "gpu_choice", "gpu_count", "gpu_row",
    "gpu_usable_capacity_gb", "idle_share", "other_tenants_gb", "others_beside_total_gb", "outside_pytorch_gb",
    "paid_engineering_rate", "paid_storage_price", "paid_transfer_price", "paid_use", "price_discount",
    "published_others_gb", "reserved_discount", "reserved_utilisation", "spot_discount", "storage_cost",
    "storage_months", "storage_price", "storage_price_usd", "total_reserved_gb", "transfer_cost", "transfer_gb",
    "transfer_price", "transfer_price_usd", "used_by_others_gb", "verdict_code",
]  # fmt: skip

sized_peak_gb = Input("GB", Number(0.001, 1e6), 1, "Peak, sized", "Peak_Allocated_GB of the sizing, for each card.")
sized_total_gb = Input("GB", Number(0.001, 1e6), 1, "Total, sized", "Total_Reserved_GB of the sizing, for each card.")
sized_hours = Input("hours", Number(0.001, 1e6), 1, "Hours, sized", "Hours on the cards of one run of the sizing.")


@check("sized_total_gb is {sized_total_gb} and sized_peak_gb is {sized_peak_gb}; the total must not be below the peak")
@term("switch")
def total_holds_peak(sized_total_gb: Any, sized_peak_gb: Any) -> Any:
    """1 when the total is at least the peak."""
    return when(sized_total_gb < sized_peak_gb, 0, 1)


@term("switch")
def rests_on_traced() -> Any:
    """1: the sizing has a peak and a total, as the traced family has."""
    return 1


@term("bytes")
def peak_allocated(sized_peak_gb: Any, bytes_per_gb: Any) -> Any:
    """Allocated peak, as sized."""
    return sized_peak_gb * bytes_per_gb


@term("bytes")
def total_to_size_against(sized_total_gb: Any, bytes_per_gb: Any) -> Any:
    """Reserved total, as sized: the figure to compare with a card."""
    return sized_total_gb * bytes_per_gb


@term("switch")
def speed_known() -> Any:
    """1: the hours are entered."""
    return 1


@term("hours")
def occupied_hours(sized_hours: Any) -> Any:
    """Hours on the cards, as sized."""
    return sized_hours


@term("GB")
def checkpoints_gb() -> Any:
    """Disk for checkpoints: none beside the data, which is entered."""
    return 0

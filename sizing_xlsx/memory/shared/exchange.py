"""What cards that share a step hold for each other: buckets of gradients, and weights gathered to compute with."""

from typing import Any

from ...formula.declare import Constant, Number, Whole, term
from ...formula.primitives import when

DEEPSPEED = "DeepSpeed's documentation of its configuration"
DDP = "PyTorch 2.13: DistributedDataParallel without gradient_as_bucket_view"
FSDP = "PyTorch 2.13: FSDP's root unit stays gathered from forward to the end of backward"
bucket_elements = Constant(
    5e8, "values", "Elements of a ZeRO bucket", DEEPSPEED + ": reduce_bucket_size, allgather_bucket_size", "published",
    Whole(0, 10**12),
)  # fmt: skip
bucket_buffers = Constant(2, "count", "ZeRO buckets alive", "one to reduce, one to gather", "published", Number(0, 20))
live_parameters = Constant(
    1e9, "parameters", "Parameters alive under ZeRO-3", DEEPSPEED + ": stage3_max_live_parameters", "published",
    Whole(0, 10**12),
)  # fmt: skip


def several(copies_of_weights: Any) -> Any:
    """1 when more than one card holds the same weights. Part of terms, no term itself."""
    return when(copies_of_weights > 1, 1, 0)


def copied_gradients(sharding_stages: Any, stage_row: Any, copies_of_weights: Any, gradients: Any) -> Any:
    """DDP's copy of so many bytes of gradients; several cards of which nothing is said work so. Part of terms."""
    repeats = sharding_stages.ddp[stage_row] + sharding_stages.copies[stage_row]
    return repeats * several(copies_of_weights) * gradients


def by_zero(sharding_stages: Any, stage_row: Any, copies_of_weights: Any) -> Any:
    """1 when several cards share the state by ZeRO. Part of terms, no term itself."""
    return sharding_stages.zero[stage_row] * several(copies_of_weights)


@term("bytes")
def bucket_memory(ddp_buckets: Any, zero_buckets: Any) -> Any:
    """Buffers in which cards exchange gradients and weights."""
    return ddp_buckets + zero_buckets


@term("bytes")
def gathered_always(gathered_root: Any, live_weights: Any) -> Any:
    """Gathered weights that are alive from forward to the end of backward."""
    return gathered_root + live_weights


@term("bytes")
def gathered_in_layers(gathered_always: Any, gathered_layer: Any, gathered_layers: Any) -> Any:
    """Gathered weights while a layer works in backward."""
    return gathered_always + gathered_layers * gathered_layer

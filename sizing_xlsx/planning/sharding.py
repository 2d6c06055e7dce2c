"""A job of full fine-tuning over 1 to 1,024 cards and each way of sharing it: memory of a card, and what fits first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..formula.job import Job

COUNTS = tuple(2**power for power in range(11))
STAGES = ("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3", "FSDP full shard", "FSDP hybrid shard")  # least divided first
_BLOCK = 8  # counts that are tried at a time
_RESULTS = ("model_state_per_gpu_gb", "per_gpu_peak_allocated_gb", "total_reserved_gb", "fit_verdict", "on_one_node")


class Shared(NamedTuple):
    """A job shared in one way among so many cards; memory of one card in decimal GB. on_one_node: of eight cards."""

    stage: str
    cards: int
    state_gb: float
    peak_gb: float
    total_gb: float
    verdict: str
    on_one_node: bool


def shared_among(job: Job, counts: Sequence[int] = COUNTS, **inputs: Any) -> list[Shared]:
    """The job at each count and stage that its degrees of parallelism allow, stage by stage; inputs as in Job.size().

    An offload that a stage does not have leaves the stage out. Raises ValueError for an input that is wrong.
    """
    job.accepted(inputs)
    found: list[Shared] = []
    for stage in STAGES:
        for cards in counts:
            changed = {**inputs, "sharding_stage": stage, "gpu_count": cards}
            record = job.record(_RESULTS)(**job.accepted(changed))
            if record is not None:
                state, peak, total, verdict, node = (record[key] for key in _RESULTS)
                found.append(Shared(stage, cards, state, peak, total, verdict, bool(node)))
    return found


def first_that_fits(found: Sequence[Shared]) -> Shared | None:
    """The smallest count that fits, and at it the stage that divides least; None where none fits."""
    fits = [shared for shared in found if shared.verdict == "fits"]
    return min(fits, key=lambda shared: (shared.cards, STAGES.index(shared.stage)), default=None)


def fewest_cards(job: Job, most: int = COUNTS[-1], **inputs: Any) -> Shared | None:
    """The smallest count of all, not of the powers of two alone, at which any stage fits, and the least divided one.

    None where up to `most` cards none fits. inputs as in Job.size(); ValueError of it.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ValueError(f"most is {most!r}; it must be a whole number of cards from 1")
    job.accepted(inputs)
    for start in range(1, most + 1, _BLOCK):
        counts = range(start, min(start + _BLOCK, most + 1))
        if found := first_that_fits(shared_among(job, counts, **inputs)):
            return found
    return None

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

    An offload that a stage does not have leaves the stage out. Raises ValueError for an input that is wrong, and for
    a job that no count and stage can be.
    """
    job.hold_beside(inputs)
    found, broken = _tried(job, counts, inputs)
    if not found:
        raise ValueError(_refused(job, counts, inputs, broken))
    return found


def _tried(job: Job, counts: Sequence[int], inputs: dict[str, Any]) -> tuple[list[Shared], set[str]]:
    """The crossings that can be, and the rules that all the others break."""
    job.accepted(inputs)
    rules = job.rules_of(_RESULTS)
    found, broken = list[Shared](), set(rules)
    for stage in STAGES:
        for cards in counts:
            accepted = job.accepted({**inputs, "sharding_stage": stage, "gpu_count": cards})
            record = job.record(_RESULTS)(**accepted)
            if record is None:
                kept = job.scalar(rules)(**accepted)
                broken &= {rule for rule, value in zip(rules, kept, strict=True) if not value}
                continue
            state, peak, total, verdict, node = (record[key] for key in _RESULTS)
            found.append(Shared(stage, cards, state, peak, total, verdict, bool(node)))
    return found, broken


def _refused(job: Job, counts: Sequence[int], inputs: dict[str, Any], broken: set[str]) -> str:
    """Why no crossing can be: the rule that each breaks, else what the last one breaks."""
    last = {**inputs, "sharding_stage": STAGES[-1], "gpu_count": max(counts)}
    rules = job.rules_of(_RESULTS)
    kept = dict(zip(rules, job.scalar(rules)(**job.accepted(last)), strict=True))
    rule = next((rule for rule in rules if rule in broken), None) or next(rule for rule in rules if not kept[rule])
    return job.contradiction(rule, last)


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
    job.hold_beside(inputs)
    possible, broken = False, set(job.rules_of(_RESULTS))
    for start in range(1, most + 1, _BLOCK):
        tried, also = _tried(job, range(start, min(start + _BLOCK, most + 1)), inputs)
        possible, broken = possible or bool(tried), broken & also
        if found := first_that_fits(tried):
            return found
    if not possible:
        raise ValueError(_refused(job, (most,), inputs, broken))
    return None

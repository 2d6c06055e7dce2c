"""Serving on every card and set of cards, and every model on one: what fits, what is smallest, cheapest, largest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..presets.catalogue import PUBLISHED_FORMAT
from .compare import FITS, card_inputs

if TYPE_CHECKING:
    from ..formula.job import Job

SETS = (1, 2, 4, 8)  # cards that share each matrix
_RESULTS = (
    "verdict_code", "fit_verdict", "gpu_count", "weights_gb", "kv_pool_tokens", "concurrency", "longest_context",
    "headroom_gb", "gpu_usable_capacity_gb", "base_parameter_count",
)  # fmt: skip


class Served(NamedTuple):
    """A model on a set of like cards. Memory of one card in decimal GB; the price in USD per hour of all cards.

    concurrency: users at one time, each at percentile length, over all cards. price: None where not known. cuda:
    whether the card's stack is the measured one.
    """

    model: str
    card: str
    cards: int
    verdict_code: int
    verdict: str
    weights_gb: float
    kv_pool_tokens: int
    concurrency: int
    longest_context: int
    headroom_gb: float
    usable_gb: float
    parameters: int
    price: float | None
    cuda: bool

    @property
    def fits(self) -> bool:
        """Whether all users fit, each at percentile length."""
        return self.verdict_code == FITS


def card_sets(job: Job, sets: Sequence[int] = SETS, **inputs: Any) -> list[Served]:
    """The job on each card of known capacity, alone and in sets that share each matrix; inputs as in Job.size().

    tensor_parallel and what was entered for another card are left aside; sets that do not divide the model's heads are
    left out. Raises ValueError and TypeError as Job.size() does.
    """
    job.hold_beside(inputs)
    _must_hold(job, {**inputs, "tensor_parallel": 1})
    tried = ({"tensor_parallel": cards, **card_inputs(job, name)} for name in job.tables["gpus"] for cards in sets)
    return [found for changes in tried if (found := _served(job, {**inputs, **changes})) is not None]


def every_model(job: Job, **inputs: Any) -> list[Served]:
    """Each model of the catalogue on the cards of the job; inputs as in Job.size(), base_model and its own left aside.

    Without a base_storage_format each is in the one that it is published in. Models that the job's degrees do not
    divide, or that were not made for its longest context, are left out. Raises ValueError for an input that is wrong.
    """
    job.hold_beside(inputs)
    own = dict.fromkeys(job.own_values_of("base_model"))
    models = job.tables["models"]
    published = zip(models, models.columns[PUBLISHED_FORMAT], strict=True)
    tried = ({"base_storage_format": stored, **inputs, "base_model": name, **own} for name, stored in published)
    return [found for each in tried if (found := _served(job, each)) is not None]


def smallest_set(found: Iterable[Served]) -> Served | None:
    """Of the sets of CUDA cards that fit the one with the least memory in all, of equals that with fewest cards."""
    fitting = [one for one in found if one.fits and one.cuda]
    return min(fitting, key=lambda one: (one.cards * one.usable_gb, one.cards), default=None)


def cheapest_set(found: Iterable[Served]) -> Served | None:
    """Of the sets of CUDA cards that fit the one with the lowest known price, of equals that with fewest cards."""
    fitting = [one for one in found if one.fits and one.cuda and one.price]
    return min(fitting, key=lambda one: (one.price or 0, one.cards), default=None)


def largest_model(found: Iterable[Served]) -> Served | None:
    """Of the models that fit the one with most parameters."""
    return max((one for one in found if one.fits), key=lambda one: one.parameters, default=None)


def _must_hold(job: Job, inputs: dict[str, Any]) -> None:
    """ValueError where the inputs break a rule on the worked card: what is left then breaks one by its card alone."""
    job.size((), **{**inputs, **card_inputs(job, job.worked["gpu_choice"])})


def _served(job: Job, inputs: dict[str, Any]) -> Served | None:
    """The job with these inputs; None where it breaks a rule, such as a card of unknown capacity."""
    accepted = job.accepted(inputs)
    record = job.record(_RESULTS)(**accepted)
    if record is None:
        return None
    known = {**job.defaults(), **accepted}
    gpus = job.tables["gpus"]
    at = gpus.index[known["gpu_choice"].casefold()] - 1
    price = gpus.columns["price_usd_per_hour"][at] * record["gpu_count"] or None
    return Served(
        known["base_model"],
        known["gpu_choice"],
        int(record["gpu_count"]),
        int(record["verdict_code"]),
        record["fit_verdict"],
        record["weights_gb"],
        int(record["kv_pool_tokens"]),
        int(record["concurrency"]),
        int(record["longest_context"]),
        record["headroom_gb"],
        record["gpu_usable_capacity_gb"],
        int(record["base_parameter_count"]),
        price,
        bool(gpus.columns["cuda"][at]),
    )

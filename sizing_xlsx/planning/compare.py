"""Every card of the catalogue against one job, and which of those that fit is the smallest and the cheapest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..formula.job import Job

RESULTS = (
    "verdict_code", "card_utilisation", "headroom_gb", "gpu_usable_capacity_gb", "largest_batch_size",
    "largest_sequence_length",
)  # fmt: skip
FITS, TIGHT = 1, 2  # verdict codes


class Card(NamedTuple):
    """One card against the job. Memory in decimal GB, the price in USD per hour of one card.

    verdict_code: 1 fits, 2 tight, 3 does not fit, None where the card's usable capacity is not known; the other
    results are then None as well. price: None where not known. cuda: whether its stack is the measured one.
    """

    name: str
    verdict_code: int | None
    utilisation: float | None
    headroom_gb: float | None
    usable_gb: float | None
    largest_batch_size: int | None
    largest_sequence_length: int | None
    price: float | None
    cuda: bool

    @property
    def fits(self) -> bool:
        """Whether even the upper estimate fits."""
        return self.verdict_code == FITS


def card_inputs(job: Job, name: str) -> dict[str, Any]:
    """The inputs that put the job on a card of the catalogue; what was entered for another card counts for none."""
    return {"gpu_choice": name, **dict.fromkeys(job.own_values_of("gpu_choice"))}


def every_card(job: Job, **inputs: Any) -> list[Card]:
    """The job on each card of the catalogue, in its order; inputs as in Job.size(), the card's own left aside.

    Raises ValueError and TypeError as Job.size() does.
    """
    accepted, sized = job.accepted(inputs), job.scalar(RESULTS)
    job.hold_beside(inputs)
    job.size((), **{**inputs, **card_inputs(job, job.worked["gpu_choice"])})  # the rules between the other inputs
    found = []
    for name in job.tables["gpus"]:
        results = sized(**{**accepted, **card_inputs(job, name)})
        found.append(card_of(job, name, dict(zip(RESULTS, results, strict=True))))
    return found


def card_of(job: Job, name: str, results: dict[str, Any]) -> Card:
    """A card of the catalogue from the results of the job on it."""
    gpus = job.tables["gpus"]
    at = gpus.index[name.casefold()] - 1
    known = results["gpu_usable_capacity_gb"] > 0
    price, cuda = gpus.columns["price_usd_per_hour"][at] or None, bool(gpus.columns["cuda"][at])
    figures: tuple[Any, ...] = tuple(results[key] if known else None for key in RESULTS)
    return Card._make((name, *figures, price, cuda))


def smallest_that_fits(cards: Iterable[Card]) -> Card | None:
    """The CUDA card with the least usable capacity on which the job fits; of equals the first."""
    fitting = [card for card in cards if card.fits and card.cuda]
    return min(fitting, key=lambda card: card.usable_gb or 0, default=None)


def cheapest_that_fits(cards: Iterable[Card]) -> Card | None:
    """The CUDA card with the lowest known price on which the job fits; of equals the first."""
    fitting = [card for card in cards if card.fits and card.cuda and card.price]
    return min(fitting, key=lambda card: card.price or 0, default=None)

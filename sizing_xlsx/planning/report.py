"""What planning answers, as tables to read on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..presets.names import counted
from . import every_card, levers_of, pull
from .sharding import COUNTS, Shared, fewest_cards, first_that_fits, shared_among

if TYPE_CHECKING:
    from ..formula.job import Job

_WORDS = {1: "fits", 2: "tight", 3: "does not fit", None: "capacity not known"}


def cards(job: Job, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Every card against the job, by usable capacity, as records; what is not known is None."""
    found = [card._asdict() | {"verdict": _WORDS[card.verdict_code]} for card in every_card(job, **inputs)]
    return sorted(found, key=lambda card: (card["usable_gb"] is None, card["usable_gb"] or 0))


def levers(job: Job, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Each lever pulled alone and all together, as records."""
    return [pulled._asdict() for pulled in pull(job, levers_of(job), **inputs)]


def cards_text(found: Sequence[dict[str, Any]]) -> str:
    """The cards as lines; memory in decimal GB, prices in USD per hour."""
    lines = [f"{'card':44}{'verdict':20}{'usable':>9}{'headroom':>10}{'batch':>8}{'sequence':>10}{'USD/hour':>10}"]
    for card in found:
        figures = (
            f"{_shown(card['usable_gb'], 1):>9}{_shown(card['headroom_gb'], 1):>10}"
            f"{_shown(card['largest_batch_size'], 0):>8}{_shown(card['largest_sequence_length'], 0):>10}"
            f"{_shown(card['price'], 2):>10}"
        )
        lines.append(f"{card['name']:44}{card['verdict']:20}{figures}")
    return "\n".join(lines)


def levers_text(found: Sequence[dict[str, Any]]) -> str:
    """The levers as lines; memory in decimal GB."""
    lines = [f"{'change':32}{'total':>10}{'saves':>12}  verdict"]
    for pulled in found:
        if pulled["does_not_apply"]:
            lines.append(f"{pulled['name']:32}{'does not apply: ':>26}{pulled['does_not_apply']}")
            continue
        saving = "other basis" if pulled["saving_gb"] is None else _shown(pulled["saving_gb"], 1)
        lines.append(f"{pulled['name']:32}{_shown(pulled['total_gb'], 1):>10}{saving:>12}  {pulled['verdict']}")
    return "\n".join(lines)


def stages(job: Job, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """The job over 1 to 1,024 cards in each way, as records; last the fewest that fit, if between these counts."""
    found, fewest = shared_among(job, **inputs), fewest_cards(job, **inputs)
    return [shared._asdict() for shared in (*found, *([fewest] if fewest and fewest.cards not in COUNTS else []))]


def stages_text(found: Sequence[dict[str, Any]]) -> str:
    """The same as lines, with the first that fits; memory of one card in decimal GB."""
    lines = [f"{'stage':20}{'cards':>6}{'state':>10}{'peak':>10}{'total':>10}  verdict"]
    for one in found:
        figures = "".join(f"{_shown(one[key], 1):>10}" for key in ("state_gb", "peak_gb", "total_gb"))
        lines.append(f"{one['stage']:20}{one['cards']:>6}{figures}  {one['verdict']}")
    every = [Shared(**one) for one in found]
    first, fewest = first_that_fits([one for one in every if one.cards in COUNTS]), first_that_fits(every)
    if first is None or fewest is None:
        return "\n".join((*lines, "", "None of these fits."))
    return "\n".join((*lines, "", f"First that fits: {_way(first)}.", f"Fewest cards: {_way(fewest)}."))


def _way(shared: Shared) -> str:
    where = "on one node of eight" if shared.on_one_node else "over more than one node of eight"
    return f"{counted(shared.cards, 'card')}, {shared.stage}, {where}"


def _shown(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value + 0.0:,.{digits}f}"

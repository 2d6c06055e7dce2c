"""Functions of a run: how long it takes, and what it costs on rented cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .desk import JOB, Desk, Values
from .faults import UNKNOWN, Fault
from .kinds import OfRun
from .question import Asked, Question
from .registry import H100, LLAMA, ends, register, words_of
from .signature import NUMBER, Function, Result

TOKENS = "training_tokens"
RUN = ("own_mfu_expected", "measured_tokens_per_second")  # what these functions alone take
_CARDS = "gpu_count"
_EXAMPLE = {"model": LLAMA, "gpu": H100, TOKENS: 100_000_000}


def _of_run(unit: str, known: str, why: str, *examples: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function whose parameters are terms of the run. known: the term that is 0 where they are not, and why."""

    def mark(formula: Callable[..., Any]) -> Callable[..., Any]:
        code = formula.__code__
        terms = code.co_varnames[: code.co_argcount]

        def answer(is_known: Any, *found: Any) -> Any:
            if not is_known:
                raise Fault(UNKNOWN, why)
            return formula(*found)

        def ask(desk: Desk, values: Values) -> Question:
            return desk.asked(values, (known, *terms), answer)

        begins, others = ("model", "gpu", TOKENS), (_CARDS, *RUN, "batch_size", "sequence_length", *ends((_CARDS,)))
        register(
            Function(
                formula.__name__, words_of(formula), begins, (), others, len(begins), Result(NUMBER, unit), Asked(ask),
                OfRun(formula, terms, known), examples,
            )
        )  # fmt: skip
        return formula

    return mark


@_of_run(
    "hours",
    "speed_known",
    "the peak of this card is not known in this precision; give measured_tokens_per_second",
    _EXAMPLE,
    _EXAMPLE | {JOB: "QLoRA", "gpu_count": 8},
    _EXAMPLE | {"measured_tokens_per_second": 2000},
)
def TRAIN_HOURS(elapsed_hours: Any) -> Any:
    """The hours of the run as expected: start-up, training by 4 to 8 FLOP a parameter and token, evaluation,
    checkpoints and interruptions."""
    return elapsed_hours


@_of_run(
    "currency",
    "cost_known",
    "the speed or the listed price of this card is not known; its price is on the sheet GPUs",
    _EXAMPLE,
    _EXAMPLE | {"gpu_count": 8},
)
def TRAIN_COST(card_rent: Any, cost_beside_cards: Any) -> Any:
    """The cost of the run on rented cards: card hours at the listed price, failed runs, idling, storage and whatever
    the sheet Time and cost adds; in USD where no other currency is chosen there."""
    return card_rent + cost_beside_cards

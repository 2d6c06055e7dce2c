"""What a call asks of a job, apart from how it is computed: alone, or with hundreds of others (batch.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..formula.job import Job
    from .desk import Desk

Row = Sequence[Any]


class Question(NamedTuple):
    """A job, the terms wanted of it, and the value of the call from theirs.

    inputs: as formulas take them. cards: cards of the catalogue, each of which the job is put on in turn; none for the
    job as it is. answer: from the wanted terms, a row for each card, or the one row; rows past the first may not be
    asked for, and are then not computed. All but the inputs is the same for calls of one pattern; see patterns.py.
    """

    job: Job
    inputs: dict[str, Any]
    results: tuple[str, ...]
    answer: Callable[[Iterable[Row]], Any]
    cards: tuple[str, ...] = ()

    def rows(self, desk: Desk) -> Iterator[Row]:
        """The wanted terms, computed one job after another; Fault for a job that contradicts itself."""
        if not self.cards:
            yield desk.sized(self.job, self.inputs, self.results)
            return
        desk.sized(self.job, self.ruled, ())
        sized = self.job.scalar(self.results)
        for name in self.cards:
            yield sized(**self.inputs, **on_card(self.job, name))

    @property
    def ruled(self) -> dict[str, Any]:
        """The inputs that the rules of the job are held against: those of a search over cards stand on a known one."""
        return {**self.inputs, "gpu_choice": self.job.worked["gpu_choice"]} if self.cards else self.inputs


def on_card(job: Job, name: str) -> dict[str, Any]:
    """The inputs that put a job on a card of the catalogue."""
    from ..planning.compare import card_inputs

    return card_inputs(job, name)


class Asked:
    """How a function over terms of a job is computed. ask: the question of a call; called, this gives its value."""

    def __init__(self, ask: Callable[[Desk, Mapping[str, Any]], Question]) -> None:
        self.ask = ask

    def __call__(self, desk: Desk, values: Mapping[str, Any]) -> Any:
        question = self.ask(desk, values)
        return question.answer(question.rows(desk))


def one(formula: Callable[..., Any]) -> Callable[[Iterable[Row]], Any]:
    """The answer of a question about one job: a formula of the wanted terms."""

    def answer(rows: Iterable[Row]) -> Any:
        (row,) = rows
        return formula(*row)

    return answer


def alone(value: Any) -> Any:
    """The one wanted term as it is."""
    return value

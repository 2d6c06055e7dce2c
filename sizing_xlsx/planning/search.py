"""Questions that no closed form answers: the largest whole value of an input up to which something holds.

Adapter layers count in steps, an 8-bit optimizer's state changes with the rank, and one moment of the step decides
up to some batch. Halving the interval finds the boundary in a handful of jobs; a sheet does the same down its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..formula.declare import Whole

if TYPE_CHECKING:
    from ..formula.job import Job


class Question(NamedTuple):
    """What is sought: the largest value of `vary`, an input in whole numbers, at which `term` <= `at_most`.

    The term never falls against its limit while the input grows. jobs: those that have the question.
    """

    name: str
    vary: str
    term: str
    at_most: str
    jobs: tuple[str, ...]


QUESTIONS = (
    Question("highest_lora_rank", "lora_rank", "total_to_size_against", "capacity_available", ("lora",)),
    Question("most_adapter_layers", "adapter_layers", "total_to_size_against", "capacity_available", ("lora",)),
    Question("free_batch_size", "batch_size", "traced_allocated", "optimizer_moment", ("lora", "training", "full")),
)


def questions(job: Job) -> tuple[Question, ...]:
    """The questions that a job has."""
    return tuple(question for question in QUESTIONS if job.name in question.jobs)


def limit_of(job: Job, question: Question) -> int | str:
    """The largest value that the input may take: a number, or the term that says it."""
    domain = job.inputs[question.vary].domain
    assert isinstance(domain, Whole)
    return domain.high


def steps_of(job: Job, question: Question) -> int:
    """How many halvings settle the question whatever the job is."""
    limit = limit_of(job, question)
    if isinstance(limit, str):  # a term; an override of it has a number as its bound
        limit = int(getattr(job.inputs[f"{limit}_override"].domain, "high"))  # noqa: B009
    return int(limit).bit_length() + 1


def middle(low: int, high: int) -> int:
    """The value to try next, between one that holds (0: none known) and one that does not; never 0."""
    return max(1, (low + high) // 2)


def answer(job: Job, question: Question, **inputs: Any) -> int:
    """The answer for a job, 0 where not even 1 holds; inputs as in Job.size(), which says what it raises."""
    accepted = {**job.accepted(inputs)}
    job.hold_beside(inputs)
    job.size((), **{**inputs, question.vary: 1})
    limit = limit_of(job, question)
    highest = job.scalar((limit,))(**accepted)[0] if isinstance(limit, str) else limit
    sized = job.scalar((question.term, question.at_most))
    low, high = 0, int(highest) + 1
    while high - low > 1:
        tried = middle(low, high)
        needed, room = sized(**{**accepted, question.vary: tried})
        low, high = (tried, high) if needed <= room else (low, tried)
    return low

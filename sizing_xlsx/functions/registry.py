"""The registry of Excel functions, each once. A function of a job is a formula over that job's terms, as a term is.

The functions stand in of_jobs.py, of_cards.py, of_models.py and of_runs.py. From each come its signature and help
(signature.py), its value in Python (desk.py) and its LAMBDA (workbook/lambdas.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .desk import JOB, Desk, Values
from .kinds import OfTerms
from .question import Asked, Question
from .signature import Function, Own, Result
from .vocabulary import vocabulary

FUNCTIONS: dict[str, Function] = {}
LLAMA, H100 = "Llama-3.1-8B", "H100 SXM5 80GB"  # of examples
WORKED = {"model": LLAMA, "gpu": H100, "batch_size": 8, "sequence_length": 2048}
CONTAINS = Own("contains", "", "Only names with this text in them.")


def register(function: Function) -> None:
    """Add a function."""
    FUNCTIONS[function.name] = function


def words_of(function: Callable[..., Any]) -> str:
    """A docstring as one line."""
    return " ".join((function.__doc__ or "").split())


def ends(without: Sequence[str] = ()) -> tuple[str, ...]:
    """The job and the arguments after it, less some."""
    return tuple(name for name in (JOB, *vocabulary().rest) if name not in without)


def begins(without: Sequence[str] = ()) -> tuple[str, ...]:
    """The arguments that most functions begin with, less some."""
    return tuple(name for name in vocabulary().common if name not in without)


def of_job(
    result: Result, *examples: Mapping[str, Any], without: Sequence[str] = (), required: int = 2
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of a job: its parameters are terms of the job. without: arguments that it does not take."""

    def mark(formula: Callable[..., Any]) -> Callable[..., Any]:
        code = formula.__code__
        terms = code.co_varnames[: code.co_argcount]

        def ask(desk: Desk, values: Values) -> Question:
            return desk.asked(values, terms, formula)

        kind = OfTerms(formula, terms)
        first = begins(without)
        register(
            Function(
                formula.__name__,
                words_of(formula),
                first,
                (),
                ends(without),
                required,
                result,
                Asked(ask),
                kind,
                examples,
            )
        )
        return formula

    return mark


def contained(values: Values) -> Callable[[str], bool]:
    """Whether a name has the text in it that a list is asked for."""
    wanted = str(values.get("contains", "")).casefold()
    return lambda name: wanted in name.casefold()

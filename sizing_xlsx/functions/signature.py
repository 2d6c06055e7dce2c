"""What a function is: its name, its arguments with their facts, its result, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .desk import Desk

TRUTH, NUMBER, TEXT, TABLE = "TRUE or FALSE", "number", "text", "table"


class Result(NamedTuple):
    """kind: TRUTH, NUMBER, TEXT or TABLE. unit: of a number, "" where it has none."""

    kind: str
    unit: str = ""


class Argument(NamedTuple):
    """One argument as a user reads of it. default: what is taken where it is left out; "" where it may not be."""

    name: str
    optional: bool
    default: str
    allowed: str
    help: str


class Own(NamedTuple):
    """An argument of one function alone. choices: its names, by the name of the job; none for a text of any kind."""

    name: str
    default: str
    help: str
    choices: Callable[[Desk, str], Mapping[str, Any]] | None = None


class Function(NamedTuple):
    """One Excel function.

    begins: the first arguments, up to the function's own. own: those. ends: the others, all optional. required: how
    many of the first must be given. compute: from the desk and the arguments by name, those that are blank left out.
    formula: for the surfaces that hold formulas; see lambdas.py. examples: arguments by name.
    """

    name: str
    help: str
    begins: tuple[str, ...]
    own: tuple[Own, ...]
    ends: tuple[str, ...]
    required: int
    result: Result
    compute: Callable[[Desk, Mapping[str, Any]], Any]
    formula: Any
    examples: tuple[Mapping[str, Any], ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments in their order."""
        return (*self.begins, *(own.name for own in self.own), *self.ends)


def described(function: Function, desk: Desk, only: str = "") -> list[Argument]:
    """The arguments of a function with their facts, from the declarations of the inputs that they are.

    only: the one job that the function answers where it stands; arguments that it has not are left out.
    """
    jobs = (only,) if only else tuple(dict.fromkeys(word.job for word in desk.vocabulary.jobs.values()))
    found = [_described(function, at, name, desk, jobs) for at, name in enumerate(function.arguments)]
    return [argument for argument in found if argument is not None]


def _described(function: Function, at: int, name: str, desk: Desk, jobs: tuple[str, ...]) -> Argument | None:
    from ..formula.declare import Choice
    from ..formula.domains import allowed
    from .desk import JOB

    optional = at >= function.required
    for own in function.own:
        if own.name == name:
            names = list(own.choices(desk, jobs[0])) if own.choices else []
            return Argument(name, optional, own.default, f"one of {'; '.join(names)}" if names else "a text", own.help)
    if name == JOB:
        keywords = {key: facts for key, facts in desk.vocabulary.jobs.items() if facts.job in jobs}
        words = "; ".join(f"{key}: {facts.help}" for key, facts in keywords.items())
        default = next(iter(keywords))
        return Argument(name, optional, default, f"one of {', '.join(keywords)}", f"What is run. {words}.")
    key = desk.input_of(name)
    known = [desk.job(job) for job in jobs if key in desk.job(job).inputs]
    if not known:
        return None
    declared = known[0].inputs[key]
    default = _defaults(desk, {job.name: job.worked[key] for job in known if job.worked.get(key) is not None})
    words = " ".join(part for part in (f"{declared.label}.", declared.help) if part)
    domain = declared.domain
    further = desk.vocabulary.words.get(domain.table, {}) if isinstance(domain, Choice) else {}
    also = "".join(f"; {word} is {meant}" for word, meant in further.items())
    return Argument(name, optional, default if optional else "", allowed(known[0], key) + also, words)


def _defaults(desk: Desk, of_jobs: Mapping[str, Any]) -> str:
    """What is taken where an argument is left out; where jobs differ, that of each by the first keyword it has."""
    first, *_ = (*of_jobs.values(), "")
    others = "; ".join(
        f"{next(word.name for word in desk.vocabulary.jobs.values() if word.job == job)}: {value}"
        for job, value in of_jobs.items()
        if value != first
    )
    return f"{first} ({others})" if others else str(first)

"""What the columns of a table mean, and which results are wanted of its jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from ..formula.domains import nearest
from ..formula.job import Job
from ..jobs import JOBS, QUESTIONS, ask, plain_job
from ..presets.catalogue import Presets, load_presets
from ..presets.names import shown

RESULTS = ("fit_verdict", "peak_allocated_gb", "total_reserved_gb", "headroom_gb", "run_hours", "rent_cost")


class Layout(NamedTuple):
    """header: the columns' names as they are understood. job: what a row is that does not say it.

    id: which column is handed on, if any. places: input, or `job`, -> its column. texts: results that are words.
    """

    header: tuple[str, ...]
    job: str
    id: int | None
    places: dict[str, int]
    results: tuple[str, ...]
    texts: frozenset[str]

    @classmethod
    def of(cls, header: Sequence[str], where: str, job: str, results: Iterable[str] | None) -> Layout:
        """Read a header. where: what a sentence calls the table. Raises ValueError, one sentence."""
        if job not in JOBS:
            raise ValueError(f"job is {job!r}; it must be one of {', '.join(JOBS)}{nearest(job, JOBS)}")
        names = tuple(name.strip().casefold() for name in header)
        wanted = RESULTS if results is None else tuple(results)
        may_be = {name: known_job(name, questions_in(wanted)) for name in (JOBS if "job" in names else (job,))}
        inputs = tuple(dict.fromkeys(("id", "job", *(key for each in may_be.values() for key in each.inputs))))
        jobs = " or ".join(may_be)
        for at, name in enumerate(names, 1):
            if not name:
                raise ValueError(
                    f"{where}: column {at} has no name; the first line must name an input above each column"
                )
            if name not in inputs:
                raise ValueError(
                    f"{where}: column {at} is called {shown(header[at - 1])}, which is no input of {jobs}"
                    f"{nearest(name, inputs)}; the first line must name an input above each column"
                )
            if names.index(name) + 1 < at:
                before = names.index(name) + 1
                raise ValueError(f"{where}: columns {before} and {at} are both called {name}; it must stand there once")
        _must_exist(wanted, may_be)
        units = {key: each.terms[key].unit for each in may_be.values() for key in wanted if key in each.trees}
        return cls(
            names,
            job,
            names.index("id") if "id" in names else None,
            {name: at for at, name in enumerate(names) if name != "id"},
            wanted,
            frozenset(key for key, unit in units.items() if unit == "text"),
        )


def _must_exist(wanted: tuple[str, ...], jobs: dict[str, Job]) -> None:
    if not wanted:
        raise ValueError("results is empty; it must name at least one result, such as fit_verdict")
    for key in wanted:
        if not any(key in job.trees for job in jobs.values()):
            known = tuple(dict.fromkeys(term for job in jobs.values() for term in job.trees))
            raise ValueError(f"results has {key!r}, which is no result of {' or '.join(jobs)}{nearest(key, known)}")
        if wanted.count(key) > 1:
            raise ValueError(f"results has {key!r} twice; it must stand there once")


@cache
def known_job(name: str, questions: tuple[str, ...]) -> Job:
    """A job over the catalogue that travels with the package."""
    return made(name, questions, load_presets())


def made(name: str, questions: tuple[str, ...], presets: Presets) -> Job:
    """A job with those of its inverse questions that are asked: making all of them takes half a second."""
    job = plain_job(name, presets)
    ask(job, questions)
    return job


def questions_in(results: Iterable[str]) -> tuple[str, ...]:
    """The inverse questions among the results."""
    return tuple(key for key in results if key in QUESTIONS)

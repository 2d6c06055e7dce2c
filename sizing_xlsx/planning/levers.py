"""Levers: one change to a job at a time, and all of them together. Which they are is said in the job's template.

A change gives an input its value; {half = "symbol"} halves what that term or input is, and is at least 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..formula.job import Job

RESULTS = ("total_reserved_gb", "headroom_gb", "fit_verdict", "rests_on_traced")


class Pulled(NamedTuple):
    """What a lever does to a job. Memory in decimal GB; saving_gb is negative where the lever needs more.

    saving_gb is None where one of the two totals is traced and the other published: these are not set off.
    changed: input -> its new value, for those that differ from what was entered; none where the job is so already.
    """

    name: str
    changed: dict[str, Any]
    total_gb: float
    saving_gb: float | None
    headroom_gb: float
    verdict: str


def change_of(change: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a change, for a job whose inputs and terms have these values."""
    return {
        key: max(1, int(values[value["half"]] // 2)) if isinstance(value, Mapping) else value
        for key, value in change.items()
    }


def together(levers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The change that all levers make at once."""
    return {key: value for lever in levers for key, value in lever["change"].items()}


def pull(job: Job, levers: Sequence[Mapping[str, Any]], **inputs: Any) -> list[Pulled]:
    """Each lever pulled alone, then all together under the name "all". levers: with "name" and "change" each.

    Inputs, and what is raised, as in Job.size(). What contradicts itself once a lever is pulled is left out.
    """
    job.size((), **inputs)
    values = job.reference(job.accepted(inputs))
    before = values["total_reserved_gb"]
    found = []
    for lever in (*levers, {"name": "all", "change": together(levers)}):
        change = change_of(lever["change"], values)
        changed = {key: value for key, value in change.items() if values[key] != value}
        record = job.record(RESULTS)(**{**job.accepted(inputs), **job.accepted(change)})
        if record is not None:
            total, alike = record["total_reserved_gb"], record["rests_on_traced"] == values["rests_on_traced"]
            saving = before - total if alike else None
            found.append(Pulled(lever["name"], changed, total, saving, record["headroom_gb"], record["fit_verdict"]))
    return found

"""Levers: one change to a job at a time, and all of them together. Which they are is said in the job's template.

A change gives an input its value; {half = "symbol"} halves what that term or input is, and is at least 1. Under
"unless" stand conditions, each with the reason in words, under which a lever does not apply: of a term of the job as
entered (`term`) or of the job with the change (`pulled`), and what it must then be (`at_most` or `at_least`).
"already" is the reason where the change leaves every input as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formula.primitives import equal, when

if TYPE_CHECKING:
    from ..formula.job import Job

RESULTS = ("total_reserved_gb", "headroom_gb", "fit_verdict", "rests_on_traced")
Symbol = Callable[[str], Any]  # what an input or a term is, as a value or as a tree


class Pulled(NamedTuple):
    """What a lever does to a job. Memory in decimal GB; saving_gb is negative where the lever needs more.

    saving_gb is None where one of the two totals is traced and the other published: these are not set off.
    changed: input -> its new value, for those that differ from what was entered. does_not_apply: why the lever says
    nothing of this job, "" where it does; there nothing is changed, and every figure and the verdict are None.
    """

    name: str
    changed: dict[str, Any]
    total_gb: float | None
    saving_gb: float | None
    headroom_gb: float | None
    verdict: str | None
    does_not_apply: str = ""


def change_of(change: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a change, for a job whose inputs and terms have these values."""
    return {
        key: max(1, int(values[value["half"]] // 2)) if isinstance(value, Mapping) else value
        for key, value in change.items()
    }


def together(levers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The change that all levers make at once."""
    return {key: value for lever in levers for key, value in lever["change"].items()}


def pulled_terms(levers: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The terms of the changed job that decide whether a lever applies."""
    told = (each["pulled"] for lever in levers for each in lever.get("unless", ()) if "pulled" in each)
    return tuple(dict.fromkeys(told))


def hindrance(conditions: Sequence[Mapping[str, Any]], before: Symbol, after: Symbol, otherwise: Any = "") -> Any:
    """The reason of the first condition that holds, or what to say otherwise; a tree where the symbols are trees.

    before, after: the symbols of the job as entered, and with the change.
    """
    found = otherwise
    for each in reversed(conditions):
        symbol = before(each["term"]) if "term" in each else after(each["pulled"])
        holds = symbol <= each["at_most"] if "at_most" in each else symbol >= each["at_least"]
        found = when(holds, each["why"], found)
    return found


def why_not(lever: Mapping[str, Any], before: Symbol, after: Symbol) -> Any:
    """Why a lever does not apply, "" where it does; arguments as in hindrance()."""
    same: Any = ""
    if "already" in lever:
        same = lever["already"]
        for key in lever["change"]:
            same = when(equal(before(key), after(key)), same, "")
    return hindrance(lever.get("unless", ()), before, after, same)


def none_applies(reasons: Iterable[Any], words: str) -> Any:
    """Why all levers together do not apply: none of them does; "" where one does. Reasons as from why_not()."""
    found: Any = words
    for reason in reasons:
        found = when(equal(reason, ""), "", found)
    return found


def pull(job: Job, levers: Sequence[Mapping[str, Any]], **inputs: Any) -> list[Pulled]:
    """Each lever pulled alone, then those that apply together under the name "all". levers: as in a template.

    Inputs, and what is raised, as in Job.size(). What contradicts itself once a lever is pulled is left out.
    """
    job.hold_beside(inputs)
    job.size((), **inputs)
    values = job.reference(job.accepted(inputs))
    found, apply = [], []
    for lever in levers:
        change = job.accepted(change_of(lever["change"], values))
        told = pulled_terms([lever])
        after = {**change, **(job.size(told, **{**inputs, **change}) if told else {})}
        reason = why_not(lever, values.__getitem__, after.__getitem__)
        if reason:
            found.append(_idle(lever["name"], reason))
        else:
            apply.append(lever)
            found += _pulled(job, lever["name"], change, values, inputs)
    if apply:
        return found + _pulled(job, "all", change_of(together(apply), values), values, inputs)
    from ..workbook.template import load_template

    return [*found, _idle("all", load_template(job.name)["levers_sheet"]["none_applies"])]


def _idle(name: str, reason: str) -> Pulled:
    return Pulled(name, {}, None, None, None, None, reason)


def _pulled(
    job: Job, name: str, change: Mapping[str, Any], values: Mapping[str, Any], inputs: Mapping[str, Any]
) -> list[Pulled]:
    """The job with a change, where that does not contradict itself. values: of the job as entered."""
    record = job.record(RESULTS)(**{**job.accepted(inputs), **job.accepted(change)})
    if record is None:
        return []
    total, alike = record["total_reserved_gb"], record["rests_on_traced"] == values["rests_on_traced"]
    saving = values["total_reserved_gb"] - total if alike else None
    changed = {key: value for key, value in change.items() if values[key] != value}
    return [Pulled(name, changed, total, saving, record["headroom_gb"], record["fit_verdict"])]

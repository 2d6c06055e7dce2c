"""Which model fits which card in which storage format of its base: where QLoRA begins to be needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..formula.job import Job

RESULTS = (
    "total_to_size_against", "others_beside_total_gb", "rests_on_traced", "frozen_base_weights", "base_parameter_count",
)  # fmt: skip


class Need(NamedTuple):
    """What the job needs with one model in one format, in decimal GB.

    traced: whether the figure rests on the traced formulas. need_gb: total and what others take, without the matrix
    workspace of the card, which a card takes off what it offers; None where the model cannot have the job.
    """

    model: str
    storage_format: str
    parameters: float
    base_gb: float
    traced: bool
    total_gb: float
    need_gb: float | None


class Room(NamedTuple):
    """What a card offers a traced and a published job, in decimal GB: usable less its matrix workspace, or usable."""

    name: str
    traced_gb: float
    published_gb: float


def model_inputs(job: Job, model: str, storage_format: str) -> dict[str, Any]:
    """The inputs that put a model of the catalogue in a format into the job."""
    own = dict.fromkeys(job.own_values_of("base_model"))
    return {**own, "base_model": model, "base_storage_format": storage_format}


def needs(job: Job, formats: Sequence[str], **inputs: Any) -> list[Need]:
    """Every model of the catalogue in each format, format by format.

    Inputs, and what is raised, as in Job.size().
    """
    accepted = job.accepted(inputs)
    job.hold_beside(inputs)
    job.size((), **inputs)
    wanted = (*RESULTS, "matrix_workspaces", *job.fault_rules)
    sized = job.scalar(wanted)
    found = []
    for form in formats:
        for model in job.tables["models"]:
            results = sized(**{**accepted, **model_inputs(job, model, form)})
            found.append(need_of(job, model, form, dict(zip(wanted, results, strict=True))))
    return found


def need_of(job: Job, model: str, storage_format: str, results: dict[str, Any]) -> Need:
    """What is needed, from the results of the job."""
    gb = job.constants["bytes_per_gb"].value
    total, traced = results["total_to_size_against"] / gb, bool(results["rests_on_traced"])
    need = total + results["others_beside_total_gb"] - traced * results["matrix_workspaces"] / gb
    holds = all(results[rule] for rule in job.fault_rules if rule != "capacity_known")
    base = results["frozen_base_weights"] / gb
    return Need(model, storage_format, results["base_parameter_count"], base, traced, total, need if holds else None)


def rooms(job: Job) -> list[Room]:
    """The CUDA cards of known capacity, in the order of the catalogue."""
    gpus, gb = job.tables["gpus"], job.constants["bytes_per_gb"].value
    threads = job.reference({"matrix_workspace_bytes_override": 1})["matrix_workspaces"]
    found = []
    for usable, workspace, cuda, name in zip(
        gpus.columns["usable_bytes"], gpus.columns["matmul_workspace_bytes"], gpus.columns["cuda"], gpus, strict=True
    ):
        if usable and cuda:
            found.append(Room(name, usable / gb - threads * workspace / gb, usable / gb))
    return found


def starts_at(need: Need, offered: Iterable[Room]) -> str | None:
    """The card with the least room on which it fits, of equals the first; None where it fits none."""
    enough = [
        (room, card.name)
        for card in offered
        if need.need_gb is not None and need.need_gb <= (room := card.traced_gb if need.traced else card.published_gb)
    ]
    return min(enough, key=lambda found: found[0])[1] if enough else None

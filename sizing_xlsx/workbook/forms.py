"""The kinds of workbook: which sheets each has, what plans and writes them, and the figures that it shows.

A template says by its entry "form" of which kind its workbook is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from . import figures, served
from .carry import record
from .sheets import (
    chart_data,
    checks,
    compare,
    crossover,
    effort,
    functions_list,
    levers,
    lookups,
    notes,
    overrides,
    public_runs,
    reference,
    scenarios,
    search,
    sensitivity,
    sharding,
    sizing,
    start,
    summary,
    validation,
    what_if,
    workings,
)
from .template import TRAINED, form_of, read_template

if TYPE_CHECKING:
    from .book import Book

Step = Callable[["Book"], None]


class Form(NamedTuple):
    """One kind of workbook.

    figures: the formulas of what is shown. sheets: their titles, in the order in which they stand. plans: what lays
    sheets out before anything is written. writes: what writes them. results: what other sheets and programs read by
    name; no number, not even a wrong one, while an input is at fault.
    """

    figures: tuple[ModuleType, ...]
    sheets: tuple[str, ...]
    plans: tuple[Step, ...]
    writes: tuple[Step, ...]
    results: tuple[str, ...]


FORMS: Mapping[str, Form] = {
    TRAINED: Form(
        figures=(figures,),
        sheets=(
            "Start", "Sizing", "Compare", sharding.TITLE, "Levers", "Crossover", "Sensitivity", "Scenarios",
            effort.TITLE, "Overrides", "Summary", "Validation", "Presets", "GPUs", "Workings", "Boundary workings",
            "Checks", "Chart data", "What-if", "Compare workings", "Search workings", "Crossover workings",
            "Sensitivity workings", "Scenario workings", "Validation workings", public_runs.WORKINGS, lookups.TITLE,
            functions_list.TITLE, "Notes", record.TITLE,
        ),
        plans=(
            chart_data.plan, compare.plan, search.plan, levers.plan, crossover.plan, sensitivity.plan, sharding.plan,
            scenarios.plan,
        ),
        writes=(
            start.write, sizing.write, compare.write, sharding.write, levers.write, crossover.write, sensitivity.write,
            scenarios.write, effort.write, overrides.write, validation.write, reference.write, workings.write,
            checks.write, chart_data.write, what_if.write, search.write, summary.write, lookups.write,
            functions_list.write, notes.write, record.write,
        ),
        results=(
            "peak_allocated_gb", "total_reserved_gb", "headroom_gb", "published_peak_allocated_gb",
            "published_total_reserved_gb", "traced_peak_allocated_gb", "traced_total_reserved_gb",
            "largest_batch_size", "largest_sequence_length",
        ),
    ),
    "served": Form(
        figures=(served.taken, served.figures),
        sheets=(
            "Start", "Sizing", served.cards.TITLE, served.models.TITLE, "Sensitivity", "Scenarios", effort.TITLE,
            "Overrides", "Summary", "Validation", "Presets", "GPUs", "Workings", "Checks", "Chart data", "What-if",
            served.cards.WORKINGS, served.models.WORKINGS, "Sensitivity workings", "Scenario workings",
            served.runs.WORKINGS, "Notes", record.TITLE,
        ),
        plans=(
            served.cards.plan, served.models.plan, served.chart_data.plan, sensitivity.plan, scenarios.plan,
            served.runs.plan,
        ),
        writes=(
            start.write, served.sizing.write, served.cards.write, served.models.write, sensitivity.write,
            scenarios.write, effort.write, overrides.write, served.runs.write, reference.write, workings.write,
            checks.write, served.chart_data.write, what_if.write, served.summary.write, notes.write, record.write,
        ),
        results=(
            "weights_gb", "kv_pool_gb", "kv_pool_tokens", "concurrency", "concurrency_at_mean", "longest_context",
            "headroom_gb", "needed_gb", "engine_reserved_gb",
        ),
    ),
}  # fmt: skip


def form_of_job(name: str) -> Form:
    """The kind of a job's workbook, as its template says."""
    return FORMS[form_of(read_template(name))]

"""Functions of a job on a card: verdict, memory, how far it can grow, which card; the size of an adapter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..formula.engine import value_of
from .desk import JOB, Desk, Values
from .faults import UNKNOWN, WRONG, Fault
from .kinds import BestCard, Boundary, OfTerms, Picked
from .names import Names
from .registry import LLAMA, WORKED, begins, ends, of_job, register
from .signature import NUMBER, TABLE, TEXT, TRUTH, Function, Own, Result

if TYPE_CHECKING:
    from ..formula.job import Job


FITS = 1  # verdict code


@of_job(Result(TRUTH), WORKED, WORKED | {"job": "QLoRA", "gpu": "RTX 4090"})
def GPU_FITS(verdict_code: Any) -> Any:
    """Whether the job fits one card: even the upper estimate does. FALSE where it is tight."""
    return verdict_code <= FITS


@of_job(Result(TEXT), WORKED, WORKED | {"gpu": "L4"})
def GPU_VERDICT(fit_verdict: Any) -> Any:
    """The verdict in words: fits (even the upper estimate does), tight (the peak does, the upper estimate does not) or
    does not fit."""
    return fit_verdict


@of_job(Result(NUMBER, "GB"), WORKED)
def GPU_HEADROOM(headroom_gb: Any) -> Any:
    """What stays free on the card at the upper estimate, in decimal GB; negative where the job does not fit."""
    return headroom_gb


def _of_basis(job: Job, item: Mapping[str, str]) -> tuple[str, str]:
    return item["traced"], item["published"]


def items_of(desk: Desk, job_name: str) -> dict[str, tuple[str, str]]:
    """What GPU_MEMORY can name, for a job: name -> the term by the traced and by the published family ("" for none)."""
    from ..workbook.template import load_template

    template = load_template(job_name)
    found = {name: (term, term) for name, term in desk.vocabulary.totals.items()}
    found |= {item["name"]: (item["traced"], item["published"]) for item in template["items"]}
    return found | {moment["name"]: (moment["term"], "") for moment in template["moments"]}


def in_gb(job: Job, term: str) -> Any:
    """The tree of a term in decimal GB."""
    tree = job.symbol(term)
    return tree if job.unit_of(term) == "GB" else tree / job.symbol("bytes_per_gb")


def _memory(desk: Desk, values: Values) -> float:
    job, inputs = desk.question(values, ("item",))
    items = items_of(desk, job.name)
    name = Names(tuple(items), "item").resolve("item", values.get("item", "total"), WRONG)
    traced, published = items[name]
    results = tuple(term for term in ("rests_on_traced", traced, published) if term)
    found = dict(zip(results, desk.sized(job, inputs, results), strict=True))
    term = traced if found["rests_on_traced"] else published
    if not term:
        raise Fault(WRONG, f"item is {name!r}; it has no figure in the published accounting, which decides here")
    constants = {key: constant.value for key, constant in job.constants.items()}
    return float(value_of(in_gb(job, term), found | constants, job.tables))


register(
    Function(
        "GPU_MEMORY",
        "Memory of the job in decimal GB: the total to size against, or any line item or moment by its name.",
        begins(),
        (Own("item", "total", "Which figure: total, peak, reserve, or a line item or moment of Sizing.", items_of),),
        ends(),
        2,
        Result(NUMBER, "GB"),
        _memory,
        Picked("item", items_of),
        (WORKED, WORKED | {"item": "Activations"}, WORKED | {"item": "peak"}),
    )
)


def _breakdown(desk: Desk, values: Values) -> list[list[Any]]:
    from ..workbook.template import load_template

    job, inputs = desk.question(values)
    rows: list[list[Any]] = [["Item", "GB"]]
    (traced,) = desk.sized(job, inputs, ("rests_on_traced",))
    gb = float(job.constants["bytes_per_gb"].value)
    items = [
        (item["name"], item["traced"] if traced else item["published"]) for item in load_template(job.name)["items"]
    ]
    known = tuple(term for _, term in items if term)
    found = dict(zip(known, desk.sized(job, inputs, known), strict=True))
    rows += [[name, found[term] / gb if term else 0.0] for name, term in items]
    totals = ("peak_allocated_gb", "allocator_reserve_gb", "total_reserved_gb", "gpu_usable_capacity_gb", "headroom_gb")
    words = ("Peak", "Reserve, at most", "Total to size against", "Usable on the card", "Headroom")
    return rows + [list(row) for row in zip(words, desk.sized(job, inputs, totals), strict=True)]


register(
    Function(
        "GPU_BREAKDOWN",
        "What the memory of the job goes to: a table of line items with decimal GB, peak, reserve, total and headroom.",
        begins(),
        (),
        ends(),
        2,
        Result(TABLE),
        _breakdown,
        None,
        (WORKED,),
    )
)


def _boundary(name: str, vary: str, unit: str, words: str) -> None:
    term = f"largest_{vary}"

    def compute(desk: Desk, values: Values) -> Any:
        return desk.terms(values, (term,))[0]

    first = begins((vary,))
    example = {key: value for key, value in WORKED.items() if key != vary}
    register(
        Function(name, words, first, (), ends(), 2, Result(NUMBER, unit), compute, Boundary(vary, term), (example,))
    )


_boundary(
    "GPU_MAX_BATCH",
    "batch_size",
    "rows",
    "The largest micro-batch with which the job fits the card; 0 where not even 1 does.",
)
_boundary(
    "GPU_MAX_SEQUENCE",
    "sequence_length",
    "tokens",
    "The longest sequence with which the job fits the card; 0 where not even one token does.",
)


# ---------------------------------------------------------------------- which card
_CARD = ("gpu", "gpu_capacity_override_gb")  # what a search over cards does not take


def _best(name: str, column: str, words: str) -> None:
    def compute(desk: Desk, values: Values) -> str:
        from .. import planning

        job, inputs = desk.question(values)
        wanted = {"gpu_choice": job.worked["gpu_choice"]}
        desk.sized(job, {**inputs, **wanted}, ("verdict_code",))
        cards = planning.every_card(job, **inputs)
        pick = planning.smallest_that_fits if column == "usable_bytes" else planning.cheapest_that_fits
        found = pick(cards)
        if found is None:
            raise Fault(UNKNOWN, f"no card of the {len(cards)} listed fits this job with a known {_FIGURE[column]}")
        return found.name

    first = begins(("gpu",))
    example = {key: value for key, value in WORKED.items() if key != "gpu"}
    others = ends(_CARD)
    register(Function(name, words, first, (), others, 1, Result(TEXT), compute, BestCard(column), (example,)))


_FIGURE = {"usable_bytes": "capacity", "price_usd_per_hour": "price"}
_best(
    "GPU_SMALLEST",
    "usable_bytes",
    "The card with the least usable memory on which the job fits, among those with CUDA.",
)
_best(
    "GPU_CHEAPEST",
    "price_usd_per_hour",
    "The card with the lowest listed price per hour on which the job fits, among those with CUDA.",
)


# ---------------------------------------------------------------------- the adapter
def _adapter(adapter_parameters: Any) -> Any:
    return adapter_parameters


register(
    Function(
        "LORA_PARAMETERS",
        "The exact trained parameters of an adapter.",
        ("model", "lora_rank"),
        (),
        ("adapter_targets", "adapter_layers", "adapter_method", JOB),
        1,
        Result(NUMBER, "parameters"),
        lambda desk, values: desk.terms(values, ("adapter_parameters",))[0],
        OfTerms(_adapter, ("adapter_parameters",)),
        ({"model": LLAMA, "lora_rank": 16}, {"model": LLAMA, "lora_rank": 16, "adapter_targets": "Query and value"}),
    )
)

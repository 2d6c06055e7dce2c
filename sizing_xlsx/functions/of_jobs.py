"""Functions of a job on a card: verdict, memory, how far it can grow, which card; the size of an adapter."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..formula.engine import value_of
from .desk import JOB, Desk, Values
from .faults import UNKNOWN, WRONG, Fault
from .kinds import BestCard, Boundary, OfTerms, Picked
from .names import Names
from .question import Asked, Question, Row, alone, one
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


@lru_cache(maxsize=4)
def _of_sheet(job_name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The line items and the moments of the job's sheet; only read."""
    from ..workbook.template import load_template

    template = load_template(job_name)
    return template["items"], template["moments"]


def items_of(desk: Desk, job_name: str) -> dict[str, tuple[str, str]]:
    """What GPU_MEMORY can name, for a job: name -> the term by the traced and by the published family ("" for none)."""
    items, moments = _of_sheet(job_name)
    found = {name: (term, term) for name, term in desk.vocabulary.totals.items()}
    found |= {item["name"]: (item["traced"], item["published"]) for item in items}
    return found | {moment["name"]: (moment["term"], "") for moment in moments}


def in_gb(job: Job, term: str) -> Any:
    """The tree of a term in decimal GB."""
    tree = job.symbol(term)
    return tree if job.unit_of(term) == "GB" else tree / job.symbol("bytes_per_gb")


def _memory(desk: Desk, values: Values) -> Question:
    job, inputs = desk.question(values, ("item",))
    items = items_of(desk, job.name)
    name = Names(tuple(items), "item").resolve("item", values.get("item", "total"), WRONG)
    traced, published = items[name]
    results = tuple(dict.fromkeys(term for term in ("rests_on_traced", traced, published) if term))
    constants = {key: constant.value for key, constant in job.constants.items()}

    def figure(*found: Any) -> float:
        known = dict(zip(results, found, strict=True))
        term = traced if known["rests_on_traced"] else published
        if not term:
            raise Fault(WRONG, f"item is {name!r}; it has no figure in the published accounting, which decides here")
        return float(value_of(in_gb(job, term), known | constants, job.tables))

    return Question(job, inputs, results, one(figure))


register(
    Function(
        "GPU_MEMORY",
        "Memory of the job in decimal GB: the total to size against, or any line item or moment by its name.",
        begins(),
        (Own("item", "total", "Which figure: total, peak, reserve, or a line item or moment of Sizing.", items_of),),
        ends(),
        2,
        Result(NUMBER, "GB"),
        Asked(_memory),
        Picked("item", items_of),
        (WORKED, WORKED | {"item": "Activations"}, WORKED | {"item": "peak"}),
    )
)


_TOTALS = {
    "Peak": "peak_allocated_gb",
    "Reserve, at most": "allocator_reserve_gb",
    "Total to size against": "total_reserved_gb",
    "Usable on the card": "gpu_usable_capacity_gb",
    "Headroom": "headroom_gb",
}


def _breakdown(desk: Desk, values: Values) -> Question:
    job, inputs = desk.question(values)
    items, _ = _of_sheet(job.name)
    gb = float(job.constants["bytes_per_gb"].value)
    terms = (term for item in items for term in (item["traced"], item["published"]) if term)
    results = tuple(dict.fromkeys(("rests_on_traced", *terms, *_TOTALS.values())))

    def table(*found: Any) -> list[list[Any]]:
        known = dict(zip(results, found, strict=True))
        family = "traced" if known["rests_on_traced"] else "published"
        rows = [[item["name"], known[item[family]] / gb if item[family] else 0.0] for item in items]
        return [["Item", "GB"], *rows, *([words, known[term]] for words, term in _TOTALS.items())]

    return Question(job, inputs, results, one(table))


register(
    Function(
        "GPU_BREAKDOWN",
        "What the memory of the job goes to: a table of line items with decimal GB, peak, reserve, total and headroom.",
        begins(),
        (),
        ends(),
        2,
        Result(TABLE),
        Asked(_breakdown),
        None,
        (WORKED,),
    )
)


def _boundary(name: str, vary: str, unit: str, words: str) -> None:
    term = f"largest_{vary}"

    first = begins((vary,))
    example = {key: value for key, value in WORKED.items() if key != vary}
    register(
        Function(
            name,
            words,
            first,
            (),
            ends(),
            2,
            Result(NUMBER, unit),
            Asked(lambda desk, values: desk.asked(values, (term,), alone)),
            Boundary(vary, term),
            (example,),
        )
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
    def ask(desk: Desk, values: Values) -> Question:
        job, inputs = desk.question(values)
        cards = _by_figure(job, column)

        def first_that_fits(rows: Iterable[Row]) -> str:
            for card, (verdict_code,) in zip(cards, rows, strict=False):
                if verdict_code <= FITS:
                    return card
            listed = len(job.tables["gpus"].keys)
            raise Fault(UNKNOWN, f"no card of the {listed} listed fits this job with a known {_FIGURE[column]}")

        return Question(job, inputs, ("verdict_code",), first_that_fits, cards)

    first = begins(("gpu",))
    example = {key: value for key, value in WORKED.items() if key != "gpu"}
    others = ends(_CARD)
    register(Function(name, words, first, (), others, 1, Result(TEXT), Asked(ask), BestCard(column), (example,)))


def _by_figure(job: Job, column: str) -> tuple[str, ...]:
    """The cards with CUDA whose capacity and figure are known, the lowest figure first."""
    gpus = job.tables["gpus"]
    figures, capacities, cuda = (gpus.columns[key] for key in (column, "usable_bytes", "cuda"))
    known = [at for at in range(len(gpus.keys)) if figures[at] and capacities[at] and cuda[at]]
    return tuple(gpus.keys[at] for at in sorted(known, key=lambda at: figures[at]))


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
register(
    Function(
        "LORA_PARAMETERS",
        "The exact trained parameters of an adapter.",
        ("model", "lora_rank"),
        (),
        ("adapter_targets", "adapter_layers", "adapter_method", JOB),
        1,
        Result(NUMBER, "parameters"),
        Asked(lambda desk, values: desk.asked(values, ("adapter_parameters",), alone)),
        OfTerms(alone, ("adapter_parameters",)),
        ({"model": LLAMA, "lora_rank": 16}, {"model": LLAMA, "lora_rank": 16, "adapter_targets": "Query and value"}),
    )
)

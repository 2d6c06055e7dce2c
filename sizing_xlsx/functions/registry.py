"""The Excel functions, each once. A function of a job is a formula over that job's terms, as a term is.

From a function come its signature and help (signature.py), its value in Python (desk.py), its LAMBDA (lambdas.py) and
its page (reference.py); docs/functions.md is made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formula.engine import value_of
from .desk import JOB, Desk, Values
from .faults import UNKNOWN, WRONG, Fault
from .names import Names
from .signature import NUMBER, TABLE, TEXT, TRUTH, Function, Own, Result
from .vocabulary import vocabulary

if TYPE_CHECKING:
    from ..formula.job import Job

FUNCTIONS: dict[str, Function] = {}
_LLAMA, _H100 = "Llama-3.1-8B", "H100 SXM5 80GB"
_WORKED = {"model": _LLAMA, "gpu": _H100, "batch_size": 8, "sequence_length": 2048}


class OfTerms(NamedTuple):
    """A formula over terms of the job. function: its parameters are terms; called with symbols it gives the tree."""

    function: Callable[..., Any]
    terms: tuple[str, ...]


class Picked(NamedTuple):
    """One of several terms, by the name that an argument gives. choices: as of that argument."""

    argument: str
    choices: Callable[[Desk, str], Mapping[str, Any]]


class Boundary(NamedTuple):
    """The largest whole value of an input at which the job fits. term: the closed form of the same in Python."""

    vary: str
    term: str


class BestCard(NamedTuple):
    """The card on which the job fits whose figure is the lowest. column: of the cards."""

    column: str


class OfCard(NamedTuple):
    """A figure of a card. choices: as of the argument that names it."""

    argument: str


def _register(function: Function) -> None:
    FUNCTIONS[function.name] = function


def _words(function: Callable[..., Any]) -> str:
    return " ".join((function.__doc__ or "").split())


def _ends(without: Sequence[str] = ()) -> tuple[str, ...]:
    return tuple(name for name in (JOB, *vocabulary().rest) if name not in without)


def _begins(without: Sequence[str] = ()) -> tuple[str, ...]:
    return tuple(name for name in vocabulary().common if name not in without)


def of_job(
    result: Result, *examples: Mapping[str, Any], without: Sequence[str] = (), required: int = 2
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of a job: its parameters are terms of the job. without: arguments that it does not take."""

    def mark(formula: Callable[..., Any]) -> Callable[..., Any]:
        code = formula.__code__
        terms = code.co_varnames[: code.co_argcount]

        def compute(desk: Desk, values: Values) -> Any:
            return formula(*desk.terms(values, terms))

        kind = OfTerms(formula, terms)
        begins = _begins(without)
        _register(
            Function(
                formula.__name__, _words(formula), begins, (), _ends(without), required, result, compute, kind, examples
            )
        )
        return formula

    return mark


# ---------------------------------------------------------------------- of a job on a card
FITS = 1  # verdict code


@of_job(Result(TRUTH), _WORKED, _WORKED | {"job": "QLoRA", "gpu": "RTX 4090"})
def GPU_FITS(verdict_code: Any) -> Any:
    """Whether the job fits one card: even the upper estimate does. FALSE where it is tight."""
    return verdict_code <= FITS


@of_job(Result(TEXT), _WORKED, _WORKED | {"gpu": "L4"})
def GPU_VERDICT(fit_verdict: Any) -> Any:
    """The verdict in words: fits (even the upper estimate does), tight (the peak does, the upper estimate does not) or
    does not fit."""
    return fit_verdict


@of_job(Result(NUMBER, "GB"), _WORKED)
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


_register(
    Function(
        "GPU_MEMORY",
        "Memory of the job in decimal GB: the total to size against, or any line item or moment by its name.",
        _begins(),
        (Own("item", "total", "Which figure: total, peak, reserve, or a line item or moment of Sizing.", items_of),),
        _ends(),
        2,
        Result(NUMBER, "GB"),
        _memory,
        Picked("item", items_of),
        (_WORKED, _WORKED | {"item": "Activations"}, _WORKED | {"item": "peak"}),
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


_register(
    Function(
        "GPU_BREAKDOWN",
        "What the memory of the job goes to: a table of line items with decimal GB, peak, reserve, total and headroom.",
        _begins(),
        (),
        _ends(),
        2,
        Result(TABLE),
        _breakdown,
        None,
        (_WORKED,),
    )
)


def _boundary(name: str, vary: str, unit: str, words: str) -> None:
    term = f"largest_{vary}"

    def compute(desk: Desk, values: Values) -> Any:
        return desk.terms(values, (term,))[0]

    begins = _begins((vary,))
    example = {key: value for key, value in _WORKED.items() if key != vary}
    _register(
        Function(name, words, begins, (), _ends(), 2, Result(NUMBER, unit), compute, Boundary(vary, term), (example,))
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

    begins = _begins(("gpu",))
    example = {key: value for key, value in _WORKED.items() if key != "gpu"}
    ends = _ends(_CARD)
    _register(Function(name, words, begins, (), ends, 1, Result(TEXT), compute, BestCard(column), (example,)))


_FIGURE = {"usable_bytes": "capacity", "price_usd_per_hour": "price"}
_best(
    "GPU_SMALLEST",
    "usable_bytes",
    "The card with the least usable memory on which the job fits, among those with CUDA.",
)
_best(
    "GPU_CHEAPEST",
    "price_usd_per_hour",
    "The card with the lowest listed price per hour on which the job fits, among those with CUDA; prices are illustrative.",
)


# ---------------------------------------------------------------------- of a card
def _card_fields(desk: Desk, job_name: str) -> dict[str, str]:
    return dict(desk.vocabulary.gpu_fields)


def _card(desk: Desk, values: Values) -> Any:
    name = desk.names("gpus").resolve("gpu", values["gpu"], UNKNOWN)
    row = next(row for row in desk.presets.gpu_rows if row["name"] == name)
    field = Names(tuple(desk.vocabulary.gpu_fields), "field").resolve("field", values.get("field", "usable_gb"), WRONG)
    column = desk.vocabulary.gpu_fields[field]
    if column == "usable_gb":
        value = row["usable_bytes"] and row["usable_bytes"] / float(desk.job("lora").constants["bytes_per_gb"].value)
    else:
        value = row[column]
    if value in (None, ""):
        raise Fault(UNKNOWN, f"{field} of {name} is not known")
    return value


_register(
    Function(
        "GPU_INFO",
        "A figure of a card; its usable memory in decimal GB where no field is named.",
        ("gpu",),
        (Own("field", "usable_gb", "Which figure of the card.", _card_fields),),
        (),
        1,
        Result(NUMBER, "by the field's name"),
        _card,
        OfCard("field"),
        ({"gpu": _H100}, {"gpu": _H100, "field": "bandwidth_gb_per_s"}),
    )
)


def _contained(values: Values) -> Callable[[str], bool]:
    wanted = str(values.get("contains", "")).casefold()
    return lambda name: wanted in name.casefold()


def _cards(desk: Desk, values: Values) -> list[list[Any]]:
    keep = _contained(values)
    gb = float(desk.job("lora").constants["bytes_per_gb"].value)
    rows = [
        [row["name"], row["usable_bytes"] / gb if row["usable_bytes"] else None, row["price_usd_per_hour"]]
        for row in desk.presets.gpu_rows
        if keep(row["name"])
    ]
    if not rows:
        raise Fault(UNKNOWN, f"contains is {values['contains']!r}; no card has that in its name")
    return [["Card", "Usable GB", "USD per hour"], *rows]


_CONTAINS = Own("contains", "", "Only names with this text in them.")
_register(
    Function(
        "GPU_LIST",
        "The cards of the catalogue: name, usable memory in decimal GB, listed price in USD per hour.",
        (), (_CONTAINS,), (), 0, Result(TABLE), _cards, None, ({"contains": "H100"},),
    )
)  # fmt: skip


# ---------------------------------------------------------------------- of a model
def _of_model(desk: Desk, values: Values, argument: str, choices: Mapping[str, str], default: str) -> Any:
    asked = Names(tuple(choices), argument).resolve(argument, values.get(argument, default), WRONG)
    return desk.terms(values, (choices[asked],), (argument,))[0]


def components_of(desk: Desk, job_name: str) -> dict[str, str]:
    """What MODEL_PARAMETERS can name, for the models of a job: component -> term."""
    return dict(desk.vocabulary.components[job_name])


def model_fields_of(desk: Desk, job_name: str) -> dict[str, str]:
    """What MODEL_INFO can name, for the models of a job: field -> term."""
    return dict(desk.vocabulary.model_fields[job_name])


def _model_function(name: str, words: str, own: Own, unit: str, *examples: Mapping[str, Any]) -> None:
    assert own.choices is not None
    choices = own.choices

    def compute(desk: Desk, values: Values) -> Any:
        return _of_model(desk, values, own.name, choices(desk, desk.keyword(values).job), own.default)

    _register(
        Function(
            name,
            words,
            ("model",),
            (own,),
            (JOB,),
            1,
            Result(NUMBER, unit),
            compute,
            Picked(own.name, choices),
            examples,
        )
    )


_model_function(
    "MODEL_PARAMETERS",
    "The exact parameters of a model, in all or of one component.",
    Own("component", "total", "Which parameters.", components_of),
    "parameters",
    {"model": _LLAMA},
    {"model": "Mixtral-8x7B-v0.1", "component": "active"},
)
_model_function(
    "MODEL_INFO",
    "A figure of a model's architecture.",
    Own("field", "parameters", "Which figure of the model.", model_fields_of),
    "by the field's name",
    {"model": _LLAMA, "field": "layers"},
    {"model": _LLAMA, "field": "kv_values_per_token_per_layer"},
)


def _models(desk: Desk, values: Values) -> list[list[Any]]:
    keep = _contained(values)
    keyword = desk.keyword(values)
    job = desk.job(keyword.job)
    term = components_of(desk, keyword.job)["total"]
    names = [name for name in job.choices("base_model") if keep(name)]
    if not names:
        raise Fault(UNKNOWN, f"contains is {values['contains']!r}; no model has that in its name")
    size = job.scalar((term,))
    return [["Model", "Parameters"], *([name, size(base_model=name)[0]] for name in names)]


_register(
    Function(
        "MODEL_LIST",
        "The models of the catalogue with their exact parameters.",
        (), (_CONTAINS,), (JOB,), 0, Result(TABLE), _models, None, ({"contains": "Qwen3"},),
    )
)  # fmt: skip


def _from_config(desk: Desk, values: Values) -> list[list[Any]]:
    from ..model_report import as_object
    from ..presets.config import read_config

    text = values["config"]
    if not isinstance(text, str) or text[:1] not in "{[":
        raise Fault(WRONG, "config is no JSON object; it must be the text of a config.json")
    try:
        found = as_object(read_config(text), desk.presets)
    except ValueError as error:
        raise Fault(WRONG, f"config: {error}") from None
    rows = [
        [key, _flat(value)] for key, value in found.items() if not isinstance(value, (dict, list)) or key == "assumed"
    ]
    return [["Field", "Value"], *rows]


def _flat(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


_register(
    Function(
        "MODEL_FROM_CONFIG",
        "The architecture and exact parameters of a model from its config.json, as a table; what was assumed is named.",
        ("config",), (), (), 1, Result(TABLE), _from_config, None,
        (
            {
                "config": '{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,'
                ' "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256,'
                ' "tie_word_embeddings": true}'
            },
        ),
    )
)  # fmt: skip


def _adapter(adapter_parameters: Any) -> Any:
    return adapter_parameters


_register(
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
        ({"model": _LLAMA, "lora_rank": 16}, {"model": _LLAMA, "lora_rank": 16, "adapter_targets": "Query and value"}),
    )
)

"""Inverse questions: the derived answer is what a search over the verdict finds, in each Python engine."""

from __future__ import annotations

import math
import random
import time
from functools import lru_cache
from types import ModuleType
from typing import Any

import pytest

from sizing_xlsx.formula.declare import Constant, Input, Whole, term
from sizing_xlsx.formula.inverse import largest
from sizing_xlsx.formula.job import Job
from sizing_xlsx.formula.primitives import maximum, minimum, when
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.jobs import plain_job
from sizing_xlsx.presets.catalogue import load_presets

QUESTIONS = {"largest_batch_size": "batch_size", "largest_sequence_length": "sequence_length"}
LIMITS = {"largest_batch_size": 65_536, "largest_sequence_length": 1_048_576}
LABELS = {"largest_batch_size": "Largest batch size", "largest_sequence_length": "Largest sequence length"}
JOBS = ("lora", "training")
RANDOM_JOBS = 300


def new_job(kind: str) -> Job:
    """A job of its own, without the questions."""
    return plain_job(kind, load_presets())


def ask(job: Job) -> dict[str, list[str]]:
    """Both questions of the product; question -> the terms it added."""
    return {
        question: largest(
            job,
            question,
            vary=vary,
            keep="total_to_size_against",
            at_most="capacity_available",
            limit=f"{vary}_limit",
            label=LABELS[question],
            help=f"The largest {vary.replace('_', ' ')} that fits, everything else as entered.",
        )
        for question, vary in QUESTIONS.items()
    }


@lru_cache(maxsize=2)
def asked(kind: str) -> tuple[Job, dict[str, list[str]]]:
    job = new_job(kind)
    return job, ask(job)


@lru_cache(maxsize=2)
def random_jobs(kind: str) -> list[dict[str, Any]]:
    """Valid inputs from all over their domains, the same in every run."""
    job, _ = asked(kind)
    draw = random.Random(f"inverse {kind}")
    return [random_job(job, kind, draw) for _ in range(RANDOM_JOBS)]


def random_job(job: Job, kind: str, draw: random.Random) -> dict[str, Any]:
    def log_whole(high: int) -> int:
        return int(math.exp(draw.uniform(0, math.log(high + 1))))

    inputs: dict[str, Any] = {key: draw.choice(job.choices(key)) for key in job.inputs if job.choices(key)}
    inputs["batch_size"], inputs["sequence_length"] = log_whole(65_536), log_whole(1_048_576)
    inputs["gradient_accumulation"] = draw.choice([1, 1, 4])
    inputs["average_sequence_length"] = draw.choice([None, log_whole(1_048_576)])
    inputs["other_tenants_gb"] = draw.choice([0, 0, round(draw.uniform(0, 10), 3)])
    entered = draw.random() < 0.3 or not usable(job, inputs["gpu_choice"])
    inputs["gpu_capacity_override_gb"] = round(10 ** draw.uniform(-1, 4), 3) if entered else None
    if draw.random() < 0.2:
        families = ("published_", "reserve_")
        allowances = [key for key in job.inputs if key.endswith("_override") and key.startswith(families)]
        inputs[draw.choice(allowances)] = draw.choice([1, 2.5, 7])
    if kind == "lora":
        inputs["lora_rank"] = log_whole(1024)
        layers = job.tables["models"].layer_count[job.tables["models"].row_of(inputs["base_model"])]
        inputs["adapter_layers"] = draw.choice(["all", "all", draw.randint(1, layers)])
        models, row = job.tables["models"], job.tables["models"].row_of(inputs["base_model"])
        if models.position_rows[row]:  # a table of learned positions, and no position beyond it
            inputs["sequence_length"] = min(inputs["sequence_length"], models.maximum_positions[row])
        inputs["target_query"] = "On"  # which every family has, and the other sets may not reach
        if inputs["adapter_targets"] in ("PEFT default", "All MLP"):
            inputs["adapter_targets"] = "Own choice"
    elif inputs["parameter_storage"] == "bf16":
        inputs["compute_precision"] = "bf16 autocast"
    return inputs


def usable(job: Job, gpu: str) -> bool:
    table = job.tables["gpus"]
    return bool(table.usable_bytes[table.row_of(gpu)] > 0)


def searched(job: Job, inputs: dict[str, Any], vary: str, limit: int) -> int:
    """The largest value whose verdict is "fits", by bisection; one step beyond it is not."""
    low, high = 0, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(job, inputs, vary, middle) else (low, middle)
    return low


def fits(job: Job, inputs: dict[str, Any], vary: str, value: int) -> bool:
    return bool(job.scalar(("fit_verdict",))(**{**inputs, vary: value})[0] == "fits")


def answer(job: Job, inputs: dict[str, Any], question: str) -> int:
    value: int = job.scalar((question,))(**inputs)[0]
    return value


def boundary(job: Job, inputs: dict[str, Any], vary: str, value: int) -> float:
    """The smallest capacity in GB at which the value still fits: the total to the last bit."""
    total, others = job.scalar(("total_to_size_against", "others_beside_total_gb"))(**{**inputs, vary: value})
    capacity = total / 1e9 + others
    for _ in range(40):
        lower = math.nextafter(capacity, 0)
        if not fits(job, {**inputs, "gpu_capacity_override_gb": lower}, vary, value):
            break
        capacity = lower
    while not fits(job, {**inputs, "gpu_capacity_override_gb": capacity}, vary, value):
        capacity = math.nextafter(capacity, math.inf)
    return float(capacity)


# ---------------------------------------------------------------------- against a search
@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_what_a_search_over_the_verdict_finds(kind: str, question: str) -> None:
    job, _ = asked(kind)
    vary, limit = QUESTIONS[question], LIMITS[question]
    found = []
    for inputs in random_jobs(kind):
        want = searched(job, inputs, vary, limit)
        assert answer(job, inputs, question) == want, inputs
        found.append(want)
    assert sum(0 < value < limit for value in found) > RANDOM_JOBS / 3
    assert 0 in found


def test_lengths_around_a_window() -> None:
    """What is needed jumps where rows reach the window: room for one length near it, or for one inside the jump."""
    job, _ = asked("lora")
    figures = job.scalar(("total_to_size_against", "others_beside_total_gb", "masked_layers"))
    draw = random.Random("windows")
    models = job.tables["models"]
    windowed = [name for name in job.choices("base_model") if models.sliding_window[models.row_of(name)]]
    drawn = (
        "base_storage_format",
        "activation_checkpointing",
        "keeps_model_output",
        "kbit_preparation",
        "uses_autocast",
    )
    sides = {-1: 0, 0: 0, 1: 0}  # answers below the window's last token but one, at the jump, beyond
    for _ in range(RANDOM_JOBS):
        inputs: dict[str, Any] = {key: draw.choice(job.choices(key)) for key in drawn}
        inputs |= {"base_model": draw.choice(windowed), "target_query": "On", "adapter_targets": "Own choice"}
        inputs |= {"batch_size": draw.randint(1, 8), "adapter_layers": draw.choice(["all", 7])}
        window = models.sliding_window[models.row_of(inputs["base_model"])]
        below, at = (figures(**{**inputs, "sequence_length": length}) for length in (window - 1, window))
        between = draw.uniform(*sorted((below[0], at[0])))
        needed = draw.choice([0.95 * below[0], below[0], between, between, at[0], 1.2 * at[0]])
        inputs["gpu_capacity_override_gb"] = needed / 1e9 + at[1] + 1e-6
        want = searched(job, inputs, "sequence_length", LIMITS["largest_sequence_length"])
        assert answer(job, inputs, "largest_sequence_length") == want, inputs
        if at[2]:
            sides[(want >= window) - (want < window - 1)] += 1
    assert min(sides.values()) > RANDOM_JOBS / 10, sides


@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_capacity_of_exactly_the_total_is_enough(kind: str, question: str) -> None:
    job, _ = asked(kind)
    vary, limit = QUESTIONS[question], LIMITS[question]
    tried = 0
    for inputs in random_jobs(kind):
        value = searched(job, inputs, vary, limit)
        if not 0 < value < limit:
            continue
        tried += 1
        exact = {**inputs, "gpu_capacity_override_gb": boundary(job, inputs, vary, value)}
        assert answer(job, exact, question) == value, exact
        step = job.scalar(("total_to_size_against",))
        rise = step(**{**exact, vary: value})[0] - step(**{**exact, vary: value - 1})[0]
        less = exact["gpu_capacity_override_gb"] - max(1, rise * 1e-6) / 1e9
        short = {**exact, "gpu_capacity_override_gb": less}
        assert answer(job, short, question) == value - 1, short
    assert tried > RANDOM_JOBS / 3


@pytest.mark.parametrize("kind", JOBS)
def test_every_option_is_among_the_random_jobs(kind: str) -> None:
    job, _ = asked(kind)
    for key in ("attention_implementation", "activation_checkpointing", "verdict_basis", "optimizer_choice"):
        assert {inputs[key] for inputs in random_jobs(kind)} == set(job.choices(key))
    eager = [inputs for inputs in random_jobs(kind) if job.scalar(("scores_stored",))(**inputs)[0] > 0]
    assert any(0 < answer(job, inputs, "largest_sequence_length") < 1_048_576 for inputs in eager)


# ---------------------------------------------------------------------- surfaces and facts
@pytest.mark.parametrize("kind", JOBS)
def test_reference_scalar_and_vector_agree_on_every_derived_term(kind: str) -> None:
    job, added = asked(kind)
    results = tuple(dict.fromkeys(key for names in added.values() for key in names))
    jobs = random_jobs(kind)
    columns = {key: [inputs.get(key, job.inputs[key].default) for inputs in jobs] for key in job.inputs}
    vector = job.size_many(columns, results)
    one = job.scalar(results)
    for row, inputs in enumerate(jobs):
        scalar = dict(zip(results, one(**inputs), strict=True))
        reference = job.reference(inputs) if row < 60 else scalar
        for key in results:
            assert scalar[key] == reference[key], (key, inputs)
            assert float(vector[key][row]) == pytest.approx(scalar[key], rel=1e-12, abs=1e-9), (key, inputs)
        for question in QUESTIONS:
            assert vector[question][row] == scalar[question] == reference[question]


@pytest.mark.parametrize("kind", JOBS)
def test_the_answer_does_not_depend_on_what_is_entered_for_it(kind: str) -> None:
    job, _ = asked(kind)
    for question, vary in QUESTIONS.items():
        assert question not in job.depends_on([vary])
        assert question not in job.depends_on(["average_sequence_length"])


@pytest.mark.parametrize("kind", JOBS)
def test_a_job_that_never_fits_gives_0_and_a_vast_card_the_limit(kind: str) -> None:
    job, _ = asked(kind)
    for question in QUESTIONS:
        assert answer(job, {"gpu_capacity_override_gb": 0.001}, question) == 0
    vast = {"gpu_capacity_override_gb": 1e5, "batch_size": 1, "sequence_length": 1}
    for question, limit in LIMITS.items():
        assert answer(job, vast, question) == limit


@pytest.mark.parametrize("kind", JOBS)
def test_limits_are_the_largest_values_of_the_inputs(kind: str) -> None:
    job, _ = asked(kind)
    for question, vary in QUESTIONS.items():
        domain = job.inputs[vary].domain
        assert isinstance(domain, Whole)
        assert domain.high == job.constants[f"{vary}_limit"].value == LIMITS[question]


@pytest.mark.parametrize("kind", JOBS)
def test_added_terms_are_good_citizens(kind: str) -> None:
    job, added = asked(kind)
    names = [key for terms in added.values() for key in terms]
    assert len(names) == len(set(names)) and all(len(terms) <= 250 for terms in added.values())
    for key in names:
        facts = job.terms[key]
        assert "_" in key and key == key.lower() and len(public_name(key)) <= 60
        assert facts.label and facts.help.endswith(".")
        assert facts.source == "derived from the tree of total_to_size_against"
        assert all(need in job.trees or need in job.inputs or need in job.constants for need in facts.needs)
    trees = [repr(job.trees[key]) for key in names]
    assert len(trees) == len(set(trees))


def test_both_questions_are_quick() -> None:
    load_presets()
    best = min(_seconds(kind) for kind in JOBS for _ in range(3))
    assert best < 0.2  # processor seconds; a third of it on two busy cores


def _seconds(kind: str) -> float:
    start = time.process_time()
    ask(new_job(kind))
    return time.process_time() - start


# ---------------------------------------------------------------------- toys: each rule on its own
MOST = {
    "vary": "n",
    "keep": "total",
    "at_most": "space",
    "limit": "n_limit",
    "label": "Most",
    "help": "Most.",
}


def toy(total: Any, room: float = 100, **extra: Any) -> Job:
    """A job of one input n, a constant room, and the given total; extra: terms and constants."""
    module = ModuleType("toy")

    @term("bytes")
    def space(room_bytes: Any) -> Any:
        """What there is."""
        return room_bytes

    @term("rows")
    def row(n: Any, more_rows: Any) -> Any:
        """A row that is longer than n."""
        return n + more_rows

    @term("count")
    def doubled(switch_on: Any) -> Any:
        """No memory at all."""
        return 2 * switch_on

    everything = {
        "n": Input("rows", Whole(1, 1000), 1, "n", "A number."),
        "switch_on": Input("switch", Whole(0, 1), 1, "switch", "A switch."),
        "more_rows": Constant(5, "rows", "more", "toy", "definition"),
        "each": Constant(3, "bytes", "each", "toy", "definition"),
        "start": Constant(10, "bytes", "start", "toy", "definition"),
        "room_bytes": Constant(room, "bytes", "room", "toy", "definition"),
        "n_limit": Constant(1000, "rows", "limit", "toy", "definition"),
        "rounding_guard": Constant(1e-9, "count", "guard", "toy", "assumed"),
        "step": Constant(10, "rows", "step", "toy", "definition"),
        "space": space,
        "row": row,
        "doubled": doubled,
        "total": total,
        **extra,
    }
    for key, value in everything.items():
        setattr(module, key, value)
    return Job("toy", (module,), {})


def most(job: Job, **inputs: Any) -> int:
    largest(job, "most_rows", **MOST)
    (scalar,) = job.scalar(("most_rows",))(**inputs)
    columns = {"switch_on": [1], **{key: [value] for key, value in inputs.items()}}
    assert job.reference(inputs)["most_rows"] == scalar
    assert job.size_many(columns, ("most_rows",))["most_rows"][0] == scalar
    value: int = scalar
    return value


def total_of(formula: Any) -> Any:
    formula.__name__, formula.__doc__ = "total", "The total."
    return term("bytes")(formula)


@pytest.mark.parametrize(
    ("formula", "want"),
    [
        (lambda each, n: each * n, 33),
        (lambda each, n, start: start + n * each, 30),
        (lambda each, n, start: n * each - start, 36),
        (lambda each, n: each * n * n, 5),
        (lambda each, n, start: start + each * n * (n + 1), 5),
        (lambda each, n: (each * n) / 2 + each * n, 22),
        (lambda each, n, start: maximum(start + each * n, each * n * n), 5),
        (lambda each, n, start: minimum(start + each * n, each * n * n), 30),
        (lambda each, n, start: minimum(each * n, start) + maximum(each * n, start), 30),
        (lambda each, n, start: maximum(each * n, start) - start, 36),
        (lambda each, n, switch_on: when(switch_on > 0, each * n, 2 * each * n), 33),
        (lambda each, n, switch_on: when(switch_on > 0, maximum(each * n, each), each) + each * n, 16),
        (lambda each, n, switch_on: (1 - switch_on) * each * n, 1000),
        (lambda each, n, start: minimum(each * n, start), 1000),
        (lambda start: start, 1000),
        (lambda each, n, step: each * n + when(n >= step, each * n, 0), 16),
        (lambda each, n, step: when(n >= step, 2 * each * n * n, each * n), 9),
        (lambda each, n, step, room_bytes: maximum(each * n, when(n >= step, 2 * room_bytes, 0)), 9),
        (lambda each, n, step: each * n + when(n >= step, 0, 2 * each * n), 33),
        (lambda each, n, step, switch_on: when(switch_on > 0, each * n, when(n >= step, each, 0)), 33),
        (lambda each, row, step: each * row + when(row >= step, each * row, 0), 11),
        (lambda each, row, step, room_bytes: maximum(each, when(row >= step, 2 * room_bytes, 0)), 4),
    ],
)
def test_each_rule(formula: Any, want: int) -> None:
    assert most(toy(total_of(formula))) == want


def test_what_does_not_grow_is_within_the_limit_or_never() -> None:
    flat = lambda start: start  # noqa: E731
    assert most(toy(total_of(flat), room=10)) == 1000
    assert most(toy(total_of(flat), room=9)) == 0
    bent = lambda each, n, switch_on: switch_on * each * n * n  # noqa: E731
    assert most(toy(total_of(bent), room=0)) == 0
    assert most(toy(total_of(bent), room=0), switch_on=0) == 1000


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        (lambda each, n, start: when(n > 1, each * n, start), "total asks whether n > 1, which depends on n"),
        (lambda each, n, start: when(n > 1, maximum(each * n, start), start), "asks whether n > 1"),
        (lambda each, n, step: when(n >= step, each * n, 0) + when(n > step, each, 0), "asks whether n ≥ step"),
        (lambda each, n, start: when(each * n >= start, each * n, 0), "asks whether each"),
        (lambda each, n: each * n * n * n, "total grows faster than the square of n"),
        (lambda each, n: each / n, "total divides by what depends on n"),
        (lambda each, n, start: 2 * maximum(each * n, start), "maximum or minimum under '\\*'"),
        (lambda each, n, start: start - maximum(each * n, start), "total subtracts a maximum or minimum"),
    ],
)
def test_what_has_no_answer_is_refused_by_name(formula: Any, words: str) -> None:
    with pytest.raises(TypeError, match=f"(?i)toy: most_rows: .*{words}"):
        most(toy(total_of(formula)))


def test_names_that_do_not_fit_are_refused() -> None:
    job = toy(total_of(lambda each, n: each * n))
    for wrong in ("vary", "keep", "at_most", "limit"):
        with pytest.raises(NameError, match="toy: most_rows needs nothing, which is no"):
            largest(job, "most_rows", **{**MOST, wrong: "nothing"})
    with pytest.raises(TypeError, match="total depends on n; it must not"):
        largest(job, "most_rows", **{**MOST, "at_most": "total"})
    with pytest.raises(TypeError, match="toy: most_rows: total <= doubled: bytes meets count"):
        largest(job, "most_rows", **{**MOST, "at_most": "doubled"})
    with pytest.raises(ValueError, match="total is defined twice"):
        largest(job, "total", **MOST)


def test_no_answer_is_longer_than_the_table_of_learned_positions() -> None:
    from sizing_xlsx import lora

    sized = {"base_model": "openai-community/gpt2", "gpu_choice": "NVIDIA B200"}
    for question in ("largest_sequence_length", "published_largest_sequence_length"):
        assert lora.size([question], **sized)[question] == 1024
        assert lora.size([question], **{**sized, "batch_size": 4096})[question] < 1024
    assert lora.size(["fit_verdict"], **sized, sequence_length=1024) == {"fit_verdict": "fits"}
    with pytest.raises(ValueError, match="learned positions for 1024 tokens|learned positions for 1,024 tokens"):
        lora.size(["fit_verdict"], **sized, sequence_length=1025)

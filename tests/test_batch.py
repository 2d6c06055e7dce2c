"""Many calls at once are what the same calls are one by one, whatever is among them."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing_xlsx import functions, planning
from sizing_xlsx.formula.job import Job
from sizing_xlsx.functions import Fault, batch
from sizing_xlsx.functions.batch import Answers, call_many, key_of
from sizing_xlsx.functions.question import Asked

DESK = functions.default_desk()
SLOW = ("GPU_SMALLEST", "GPU_CHEAPEST")  # one by one
NO_ADAPTER = ("Training", "Full fine-tuning")
ODD = (
    None, "", "  ", 0, -1, 1, 8, 8.0, 8.5, "8", " 16 ", 1e300, 10**400, True, False, "#N/A", "no such thing", "L4", "llama-3",
    "Llama-3.1-8B", "QLoRA", "Training", "bf16", "total", [[4]], [[1, 2]], [["H100 SXM5 80GB"]], "x" * 40_000, "On", {"a": 1},
)  # fmt: skip


def alone(name: str, given: Any) -> Any:
    """A call as call() answers it, its Fault as a value."""
    try:
        return functions.call(name, **given) if isinstance(given, dict) else functions.call(name, *given)
    except Fault as fault:
        return fault


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Fault) or isinstance(b, Fault):
        return isinstance(a, Fault) and isinstance(b, Fault) and (a.code, str(a)) == (b.code, str(b))
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (bool, str)) or a is None:
        return type(a) is type(b) and a == b
    return not isinstance(b, (bool, str)) and math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)


def drawn(rng: random.Random, count: int) -> list[tuple[str, Any]]:
    """Calls like those of sheets: most arguments of a job are the same ones, some are odd."""
    names = list(functions.registered())
    found: list[tuple[str, Any]] = []
    for _ in range(count):
        name = rng.choice(names)
        function = functions.registered()[name]
        values = [_value(rng, name, argument) for argument in function.arguments]
        given: Any = values[: rng.randint(0, min(len(values), rng.choice((5, 30))))]
        if rng.random() < 0.05:
            given = [*given, *[1] * 40]
        if rng.random() < 0.1:
            given = dict(zip(function.arguments, given, strict=False))
        found.append((rng.choice((name, name, name.lower(), "GPU_FIT")) if rng.random() < 0.1 else name, given))
    return found


def _value(rng: random.Random, name: str, argument: str) -> Any:
    if rng.random() < 0.02:
        return rng.choice(ODD)
    if argument in ("model", "gpu"):
        table = DESK.presets.tables["models" if argument == "model" else "gpus"]
        return rng.choice(table.keys)
    if argument in ("batch_size", "sequence_length"):
        return rng.choice((1, 2, 7, 64, 512, 4096, 3.0, 1.5, rng.randint(1, 10_000)))
    if argument == "job":
        return rng.choice((*DESK.vocabulary.jobs, None, None, "qlora"))
    if argument == "config":
        return functions.registered()["MODEL_FROM_CONFIG"].examples[0]["config"]
    for own in functions.registered()[name].own:
        if own.name == argument and own.choices:
            return rng.choice((*own.choices(DESK, "lora"), *own.choices(DESK, "training"), *own.choices(DESK, "full"), None))
    key = DESK.input_of(argument)
    job = next((DESK.job(each) for each in ("lora", "training", "full") if key in DESK.job(each).inputs), None)
    if job is None or rng.random() < 0.8:
        return None
    return rng.choice(job.choices(key) or (0, 1, 2, 16, 0.5))


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_batch_is_its_calls_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    calls = drawn(rng, 150)
    calls += rng.choices(calls, k=20)
    answers = Answers()
    for _ in range(2):  # computed, then kept
        found = call_many(calls, answers=answers)
        wrong = [(call, a, b) for call, a in zip(calls, found, strict=True) if not same(a, b := alone(*call))]
        assert not wrong, wrong[0]


@pytest.mark.parametrize(
    "name", [name for name, each in functions.registered().items() if isinstance(each.compute, Asked)]
)
@pytest.mark.parametrize("job", list(DESK.vocabulary.jobs))
def test_distinct_jobs_through_the_vector_engine(name: str, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function, each kind of job: jobs of all cards and many sizes, with some that are refused."""
    monkeypatch.setattr(batch, "VECTOR_FROM", 1)
    rng, function = random.Random(f"{name} {job}"), functions.registered()[name]
    table = "training_models" if job == "Training" else "models"
    calls = []
    for _ in range(30 if name not in SLOW else 10):
        values: dict[str, Any] = {"batch_size": rng.randint(1, 9), "sequence_length": rng.choice((1, 100, 999))}
        values |= {
            "model": rng.choice(DESK.presets.tables[table].keys),
            "gpu": rng.choice(DESK.presets.tables["gpus"].keys),
            "training_tokens": rng.randint(1, 10**9),
        }
        values |= {"job": job} if job in NO_ADAPTER else {"job": job, "lora_rank": rng.randint(1, 64)}
        if rng.random() < 0.1:
            values["batch_size"] = -4
        calls.append((name, [values.get(argument) for argument in function.arguments]))
    found = call_many(calls, answers=None)
    answered = [each for each in found if not isinstance(each, Fault)]
    assert bool(answered) != (name == "LORA_PARAMETERS" and job in NO_ADAPTER)
    wrong = [(call, a, b) for call, a in zip(calls, found, strict=True) if not same(a, b := alone(*call))]
    assert not wrong, wrong[0]


def test_a_job_that_contradicts_itself_is_refused_alone() -> None:
    calls = [
        ("GPU_FITS", {"model": "gpt2", "gpu": "L4", "batch_size": 1, "sequence_length": s}) for s in (8, 10**6, 16)
    ] * 9
    found = call_many(calls, answers=None)
    assert [type(each) for each in found[:3]] == [bool, Fault, bool]
    assert all(same(a, alone(*call)) for a, call in zip(found, calls, strict=True))


def test_golden_vectors_are_met_in_one_batch() -> None:
    vectors = json.loads((Path(__file__).parent / "data" / "function_vectors.json").read_text())
    found = call_many([(each["function"], each["arguments"]) for each in vectors], answers=None)
    wrong = [
        (each, answer)
        for each, answer in zip(vectors, found, strict=True)
        if (answer.code if isinstance(answer, Fault) else "") != each.get("error", "")
        or ("value" in each and not same(answer, each["value"]))
    ]
    assert not wrong, wrong[0]


def test_cards_of_a_search_are_those_that_planning_finds() -> None:
    job = DESK.job("lora")
    for name, pick in (("GPU_SMALLEST", planning.smallest_that_fits), ("GPU_CHEAPEST", planning.cheapest_that_fits)):
        for batch_size in (1, 8, 64, 500):
            card = pick(
                planning.every_card(job, base_model="Qwen/Qwen2.5-14B", batch_size=batch_size, sequence_length=1024)
            )
            answer = alone(name, ["Qwen/Qwen2.5-14B", batch_size, 1024])
            assert answer == card.name if card else answer.code == "#N/A"


def test_equal_calls_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    whole = batch._computed
    monkeypatch.setattr(batch, "_computed", lambda desk, calls: computed.append(len(calls)) or whole(desk, calls))
    calls = [("GPU_INFO", ["L4"]), ("GPU_INFO", ["L4"]), ("GPU_INFO", ["T4"])] * 5
    answers = Answers()
    first, second = call_many(calls, answers=answers), call_many(calls, answers=answers)
    assert first == second
    assert computed == [2, 0]
    assert (answers.hits, answers.misses) == (2, 2)


def test_other_data_have_answers_of_their_own() -> None:
    from sizing_xlsx.functions.desk import Desk
    from sizing_xlsx.presets.catalogue import load_presets

    presets = load_presets()
    rows = [row | {"price_usd_per_hour": 1.25} if row["name"] == "NVIDIA L4" else row for row in presets.gpu_rows]
    other, answers = Desk(presets._replace(gpu_rows=rows)), Answers()
    calls = [("GPU_INFO", ["NVIDIA L4", "price_usd_per_hour"])]
    (price,) = call_many(calls, answers=answers)
    assert other.digest != DESK.digest == type(DESK)().digest
    assert price != 1.25
    assert call_many(calls, at=other, answers=answers) == [1.25]
    assert call_many(calls, answers=answers) == [price]


def test_a_desk_that_reads_files_keeps_no_answers(tmp_path: Path) -> None:
    from sizing_xlsx.functions.desk import Desk

    config = json.loads(functions.registered()["MODEL_FROM_CONFIG"].examples[0]["config"])
    desk, file, answers = Desk(folders=[tmp_path]), tmp_path / "config.json", Answers()
    found = []
    for layers in (4, 8):
        file.write_text(json.dumps(config | {"num_hidden_layers": layers}))
        (table,) = call_many([("MODEL_FROM_CONFIG", [str(file)])], at=desk, answers=answers)
        found.append(dict(table)["parameters_total"])
    assert found[0] < found[1]


def test_answers_kept_are_bounded() -> None:
    answers = Answers(most_cells=100)
    for at in range(300):
        answers.keep("data", {("GPU_LIST", at): [["Card", "GB"]] * (at % 20)})
    assert answers.cells <= 100
    assert ("GPU_LIST", 299) in answers.find("data", [("GPU_LIST", 299), ("GPU_LIST", 0)])


def test_a_key_is_short_and_tells_values_apart() -> None:
    texts = [["x" * 10_000 + str(at)] for at in range(2)]
    keys = {key_of("A", given) for given in ([1], [1.0], [True], ["1"], [None], [], *texts)}
    assert len(keys) == 8
    assert key_of("A", [[[8]]]) == key_of("A", [8])
    assert all(len(repr(key_of("A", given))) < 500 for given in (*texts, [[[0] * 10_000] * 10_000]))


def test_without_numpy_each_job_is_computed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [("GPU_FITS", ["Llama-3.1-8B", "L4", batch_size, 512]) for batch_size in range(1, 30)]
    expected = call_many(calls, answers=None)
    monkeypatch.setattr(batch, "_has_numpy", lambda: False)
    monkeypatch.setattr(batch, "_together", lambda *given: pytest.fail("the vector engine was used"))
    assert call_many(calls, answers=None) == expected


def test_faults_hold_no_frames() -> None:
    (fault,) = call_many([("GPU_FITS", ["no such model", "L4"])], answers=None)
    assert isinstance(fault, Fault)
    assert fault.__traceback__ is None
    assert fault.__context__ is None


def test_what_a_refused_job_says_is_what_the_plain_functions_say() -> None:
    job: Job = DESK.job("lora")
    inputs = job.accepted({"base_model": "openai-community/gpt2", "sequence_length": 10**5})
    values = job.reference(inputs)
    broken = next(key for key in job.fault_rules if not values[key])
    words = job.told(broken, {**values, **inputs})
    assert str(DESK.contradiction(job, inputs)) == words.replace("base_model is ", "model is ")

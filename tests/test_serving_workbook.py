"""The workbook of serving: what the linter says of it, that it calculates what Python does, and what it refuses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import Book, File, Opened
from engines import ErrorValue, Formualizer

from sizing_xlsx.formula.job import Job
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.planning.serving import card_sets, cheapest_set, every_model, largest_model, smallest_set
from sizing_xlsx.presets.catalogue import SERVING_INPUTS, load_presets
from sizing_xlsx.workbook import build
from sizing_xlsx.workbook.build import book_bytes, workbook_job, write_book
from sizing_xlsx.workbook.carry.rebuild import rebuild
from sizing_xlsx.workbook.carry.report import CARRIED, SAME
from sizing_xlsx.workbook.rules import lint_workbook
from sizing_xlsx.workbook.template import load_template

GIB = 2**30
LLAMA_70B, FP8 = "meta-llama/Llama-3.3-70B-Instruct", "fp8 e4m3 per-tensor"
RUNS = {row["id"]: row for row in load_presets().serving_runs}


def short_template() -> dict[str, Any]:
    """With fewer rows of jobs: a row is as the others, and engines take time for each."""
    template = load_template("serving")
    template["scenarios"]["rows"] = len(template["scenarios"]["jobs"]) + 2
    for values in ("row_values", "column_values"):
        template["axes"][values] = template["axes"][values][:2]
    return template


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    template, presets = short_template(), load_presets()
    path = tmp_path_factory.mktemp("serving") / template["file"]
    write_book(path, "serving", template, presets)
    return Book("serving", path, presets, template)


@pytest.fixture(scope="module")
def once(book: Book) -> Iterator[Opened]:
    found = Opened(book, Formualizer)
    yield found
    found.engine.close()


@pytest.fixture
def opened(once: Opened) -> Iterator[Opened]:
    """The workbook on the worked job, to which it is set back."""
    yield once
    once.type()


def some_inputs(job: Job, rng: random.Random) -> dict[str, Any]:
    """Any models, formats, engines and cards; requests in three classes that ascend; degrees that mostly divide."""
    prompts, answers = (sorted(rng.randint(1, 3000) for _ in range(3)) for _ in range(2))
    short = round(rng.random() / 2, 3)
    usual = round(rng.random() / 2, 3)
    inputs = {
        key: rng.choice(job.choices(key))
        for key in (
            "base_model", "base_storage_format", "serving_engine", "kv_format", "gpu_choice", "attention_in_16_bit",
            "quantised_head", "serving_precision", "billing_choice",
        )
    }  # fmt: skip
    inputs |= {
        "concurrent_users": rng.choice([1, 8, 32, 500]), "maximum_length": rng.randint(6000, 32_768),
        "short_share": short, "usual_share": usual, "long_share": round(1 - short - usual, 3),
        "short_prompt_tokens": prompts[0], "usual_prompt_tokens": prompts[1], "long_prompt_tokens": prompts[2],
        "short_output_tokens": answers[0], "usual_output_tokens": answers[1], "long_output_tokens": answers[2],
        "length_percentile": round(rng.random(), 2), "tensor_parallel": rng.choice([1, 1, 2, 4, 8]),
        "pipeline_parallel": rng.choice([1, 1, 2]), "data_parallel": rng.choice([1, 1, 3]),
        "memory_fraction": rng.choice([None, 0.5, 0.95]), "maximum_sequences": rng.choice([None, 64]),
        "maximum_batched_tokens": rng.choice([None, 4096]), "block_tokens": rng.choice([None, 32]),
        "other_tenants_gb": rng.choice([0, 2.5]), "recurrent_layers": rng.choice([0, 0, 1]),
        "recurrent_state_values": 100_000, "convolution_values": 9000,
        "own_graphs_gb": rng.choice([None, 1.25]), "own_peak_tflops": rng.choice([None, 300]),
        "request_rate": rng.choice([0.05, 3, 70]), "api_input_price": rng.choice([0, 2.5]),
        "api_output_price": rng.choice([0, 10]),
    }  # fmt: skip
    return {**job.defaults(), **inputs}


def sized(job: Job, rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Random inputs that break no rule, and all their values by the plain functions."""
    while True:
        inputs = some_inputs(job, rng)
        values = job.reference(inputs)
        if all(values[rule] for rule, check in job.checks.items() if check.fault):
            return inputs, values


# ------------------------------------------------------------------------------------------------ the file
def test_it_lints_clean(book: Book) -> None:
    assert lint_workbook(book.path) == []


def test_every_formula_has_a_value_and_none_an_error_but_missing_points(book: Book) -> None:
    assert len(book.cached) > 10_000
    assert None not in book.cached.values()
    errors = {place[0] for place, value in book.cached.items() if isinstance(value, ErrorValue)}
    assert errors == {"Chart data"}


def test_two_builds_are_the_same_bytes(book: Book) -> None:
    assert book_bytes("serving", short_template(), book.presets) == book.path.read_bytes()


def test_public_names_are_there(book: Book) -> None:
    assert {"Base_Model", "KV_Cache_Bytes_Per_Token", "KV_Pool_Tokens", "Concurrency", "Fit_Verdict"} <= set(book.names)


def test_it_has_no_sheet_of_training(book: Book) -> None:
    assert not {"Levers", "Crossover", "Sharding", "Boundary workings", "Search workings"} & set(book.sheets)
    assert {"Start", "Sizing", "Compare", "Models", "Scenarios", "Sensitivity", "Summary", "Validation"} <= set(
        book.sheets
    )


# ------------------------------------------------------------------------------------------------ the same as Python
def test_it_recalculates_to_the_values_in_the_file(opened: Opened) -> None:
    assert opened.differences(opened.book.cached) == []


def test_random_jobs_are_sized_as_in_python(opened: Opened) -> None:
    job, rng = opened.book.job, random.Random(5)
    verdicts = set()
    for _ in range(30):
        inputs, values = sized(job, rng)
        verdicts.add(values["verdict_case"])
        opened.type(inputs)
        wrong = opened.differences({public_name(key): values[key] for key in job.order} | {"Checks_Failed": 0.0})
        assert not wrong, f"{wrong[:5]} for {inputs}"
    assert len(verdicts) >= 4


def test_a_workbook_that_opens_on_a_job_says_what_typing_the_job_says(opened: Opened, tmp_path: Path) -> None:
    """Every formula cell of every sheet: texts, charts' data, what-if jobs, checks, validation."""
    inputs, _ = sized(opened.book.job, random.Random(11))
    path = tmp_path / "opened.xlsx"
    write_book(path, "serving", short_template(), opened.book.presets, None, inputs)
    opened.type(inputs)
    assert File(path).formulas.keys() == opened.book.formulas.keys()
    assert opened.differences(File(path).cached) == []


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"base_model": LLAMA_70B, "base_storage_format": FP8, "concurrent_users": 8, "gpu_choice": "NVIDIA H200 SXM"},
        {"base_model": "google/gemma-2-9b", "concurrent_users": 100_000},
    ],
    ids=["worked", "70B", "too many users"],
)
def test_compare_and_models_find_what_planning_finds(opened: Opened, inputs: dict[str, Any]) -> None:
    job = opened.book.job
    opened.type(inputs)
    sets = card_sets(job, **inputs)
    for name, found in (("Smallest_Set", smallest_set(sets)), ("Cheapest_Set", cheapest_set(sets))):
        assert opened[name] == (f"{found.cards:,} × {found.card}" if found else "No set of up to eight fits")
    stored = {key: value for key, value in inputs.items() if key != "base_storage_format"}
    largest = largest_model(every_model(job, **stored))
    assert opened["Largest_Model"] == (largest.model if largest else "No model fits")
    assert opened["Cards_Fit"] == len({one.card for one in sets if one.fits})


# ------------------------------------------------------------------------------------------------ what was measured
def of_run(name: str) -> dict[str, Any]:
    return {key: RUNS[name][key] for key in SERVING_INPUTS if RUNS[name][key] not in (None, "")}


@pytest.mark.parametrize(("name", "tokens"), [("llama-3.1-8b-20000", 31_232), ("llama-3.1-8b-29000", 23_648)])
def test_pools_of_a_24_gb_card_are_as_logged(opened: Opened, name: str, tokens: int) -> None:
    inputs = of_run(name)
    assert inputs["gpu_capacity_override_gb"] * 1e9 / GIB == pytest.approx(23.58, abs=0.001)
    opened.type(inputs)
    assert opened["KV_Pool_Tokens"] == pytest.approx(tokens, rel=0.05)


def test_a_70b_in_fp8_on_one_h200_is_as_logged(opened: Opened) -> None:
    opened.type(of_run("llama-3.3-70b-fp8-h200"))
    assert float(opened["Weights_GB"] or 0) * 1e9 / GIB == pytest.approx(67.72, rel=0.03)  # type: ignore[arg-type]
    assert opened["KV_Pool_Tokens"] == pytest.approx(174_336, rel=0.03)


def test_mixtral_keeps_all_its_experts(opened: Opened) -> None:
    opened.type({"base_model": "mistralai/Mixtral-8x7B-v0.1"})
    assert opened["Model_Weights_GB"] == pytest.approx(93.4, abs=0.05)
    assert opened["Fit_Verdict"] == "does not fit"


def test_validation_shows_every_run(opened: Opened) -> None:
    cells = set(opened.engine.get_sheet("Validation").values())
    assert set(RUNS) <= cells
    assert opened["Runs_Logged"] == len(RUNS)


# ------------------------------------------------------------------------------------------------ what it refuses
FAULTS = [
    ({"maximum_length": 200_000}, "Longest context is 200,000; meta-llama/Llama-3.1-8B was made for at most 131,072"),
    ({"maximum_length": 3000}, "Longest context is 3,000; the longest requests take 7,000 tokens"),
    ({"memory_fraction": 1.5}, "Fraction of the card is 1.5; enter a number from 0.01 to 1"),
    ({"length_percentile": -0.1}, "Percentile of lengths is -0.1; enter"),
    ({"kv_format": "int8"}, "KV format is int8, which vLLM 0.11 has not; it must be one of bf16, fp8."),
    ({"tensor_parallel": 3}, "Tensor parallel is 3; it must divide the attention heads of meta-llama/Llama-3.1-8B, 32"),
    ({"pipeline_parallel": 64}, "Pipeline parallel is 64; it must be at most the layers"),
    ({"expert_parallel": 2}, "Expert parallel is 2; it must divide the experts"),
    ({"usual_share": 0.5}, "which sum to 0.900; they must sum to 1"),
    ({"long_prompt_tokens": 10, "long_output_tokens": 10}, "must not be shorter than the class before"),
    ({"concurrent_users": 0}, "Users at one time is 0; enter"),
    ({"base_model": "no-such/model"}, "Base model is no-such/model; enter"),
]


@pytest.mark.parametrize(("inputs", "words"), FAULTS, ids=[words[:30] for _, words in FAULTS])
def test_a_fault_is_named_in_the_strip_and_withdraws_every_figure(
    opened: Opened, inputs: dict[str, Any], words: str
) -> None:
    opened.type(inputs)
    assert words in opened.sentence
    assert opened["Sizing", 5, 2] == "CHECK INPUT"
    assert float(opened["Checks_Failed"] or 0) >= 1  # type: ignore[arg-type]
    for name in ("Concurrency", "KV_Pool_Tokens", "Headroom_GB", "Weights_GB", "KV_Pool_GB"):
        assert isinstance(opened[name], ErrorValue)
    for sheet in ("Compare", "Models", "Summary"):
        texts = [value for value in opened.engine.get_sheet(sheet).values() if isinstance(value, str)]
        assert any(words in text for text in texts)
        assert not any(isinstance(text, ErrorValue) for text in texts)


def test_a_wrong_price_withdraws_the_cost_and_no_verdict(opened: Opened) -> None:
    opened.type({"own_price_per_hour": -1})
    assert opened["Fit_Verdict"] == "fits"
    assert "Own price is -1" in str(opened["Time and cost", 2, 2])


def test_a_row_of_scenarios_is_sized_and_a_wrong_one_says_what_is_wrong(opened: Opened) -> None:
    job = opened.book.job
    opened.engine.set("Scenario_Choice", "70B in bf16 on four H100")
    opened.engine.recalculate()
    expected = job.reference({**job.defaults(), "base_model": LLAMA_70B, "tensor_parallel": 4, "concurrent_users": 40})
    assert opened["KV_Pool_Tokens"] == expected["kv_pool_tokens"]
    assert opened.sentence.startswith("Scenario 70B in bf16 on four H100: ")
    opened.engine.set("Scenario_Choice", "As typed below")
    cells = opened.engine.get_sheet("Scenarios")
    row, name = next(place for place, value in cells.items() if value == "70B in bf16 on four H100")
    column = next(at for (_, at), value in cells.items() if value == "Tensor parallel")
    opened.engine.set(("Scenarios", row, column), 3.0)
    opened.engine.recalculate()
    assert opened["Scenarios", row, name + 1] == "Check tensor parallel"
    said = opened.engine.get_sheet("Scenarios").values()
    assert any("Tensor parallel is 3; it must divide" in str(value) for value in said)
    opened.engine.set(("Scenarios", row, column), 4.0)
    opened.engine.recalculate()


# ------------------------------------------------------------------------------------------------ a planner's work
def test_what_was_typed_goes_over_into_the_next_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "BOOKS", ("serving",))
    (first,) = rebuild(tmp_path)
    assert [report.found for report in rebuild(tmp_path)] == [SAME]
    typed = openpyxl.load_workbook(first.file)

    def cell(name: str) -> Any:
        ((sheet, place),) = typed.defined_names[name].destinations
        return typed[sheet][place.replace("$", "").partition(":")[0]]

    cell("Concurrent_Users").value = 100
    cell("KV_Format").value = "fp8"
    cell("GPUs_Price_USD_Per_Hour_List").value = 7.5
    typed.create_sheet("Mine")["A1"] = "=Concurrency*2"
    typed.save(first.file)
    (again,) = rebuild(tmp_path)
    assert again.found == CARRIED
    with Formualizer(first.file) as engine:
        job = workbook_job("serving", load_presets())
        expected = job.size(("concurrency", "kv_pool_tokens"), concurrent_users=100, kv_format="fp8")
        assert engine.get("Concurrency") == expected["concurrency"]
        assert engine.get("KV_Pool_Tokens") == expected["kv_pool_tokens"]
        assert engine.get(("Mine", 1, 1)) == 2 * expected["concurrency"]
        assert 7.5 in engine.get_sheet("GPUs").values()

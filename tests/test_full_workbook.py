"""The workbook of full fine-tuning: what the linter says of it, and that it calculates what Python does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Book, Opened
from engines import Formualizer

from sizing_xlsx.formula.job import Job
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.planning import first_that_fits, shared_among
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook.build import write_book
from sizing_xlsx.workbook.rules import lint_workbook
from sizing_xlsx.workbook.template import load_template


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """With fewer rows of jobs: a row is as the others, and engines take time for each."""
    template, presets = load_template("full"), load_presets()
    template["scenarios"]["rows"] = len(template["scenarios"]["jobs"]) + 2
    for values in ("row_values", "column_values"):
        template["axes"][values] = template["axes"][values][:2]
    path = tmp_path_factory.mktemp("full") / template["file"]
    write_book(path, "full", template, presets)
    return Book("full", path, presets, template)


@pytest.fixture(scope="module")
def opened(book: Book) -> Iterator[Opened]:
    found = Opened(book, Formualizer)
    yield found
    found.engine.close()


def some_inputs(job: Job, rng: random.Random) -> dict[str, Any]:
    """Any choices, a count of cards that the stage takes, and small batches and sequences."""
    stage = rng.choice(job.choices("sharding_stage"))
    inputs = {
        key: rng.choice(job.choices(key))
        for key in (
            "base_model", "training_recipe", "optimizer_step", "paged_optimizer", "embedding_in_fp32", "uses_autocast",
            "attention_implementation", "activation_checkpointing", "training_stack", "loss_kernel",
            "keeps_model_output", "verdict_basis", "gpu_choice",
        )
    }  # fmt: skip
    inputs |= {"sharding_stage": stage, "gpu_count": 1 if stage == "None" else rng.choice([1, 2, 8, 64])}
    inputs |= {"batch_size": rng.randint(1, 64), "sequence_length": rng.randint(1, 1000)}
    return {**job.defaults(), **inputs}


def test_it_lints_clean(book: Book) -> None:
    assert lint_workbook(book.path) == []


def test_it_recalculates_to_the_values_in_the_file(opened: Opened) -> None:
    assert len(opened.book.cached) > 4_000
    assert opened.differences(opened.book.cached) == []


def test_it_sizes_jobs_as_python_does(opened: Opened) -> None:
    job, rng = opened.book.job, random.Random(7)
    sized = 0
    while sized < 25:
        inputs = some_inputs(job, rng)
        values = job.reference(inputs)
        if not all(values[rule] for rule in job.fault_rules):
            continue
        sized += 1
        opened.type(inputs)
        wrong = opened.differences({public_name(key): values[key] for key in job.order})
        assert not wrong, f"{wrong[:5]} for {inputs}"
    opened.type()


def test_a_wrong_number_of_cards_gets_no_verdict(opened: Opened) -> None:
    opened.type({"gpu_count": 3, "tensor_parallel": 2})
    assert opened["Checks_Failed"] == 1
    assert opened["Fit_Verdict"] not in ("fits", "tight", "does not fit")
    opened.type()


def test_validation_shows_the_public_runs(opened: Opened) -> None:
    cells = opened.engine.get_sheet("Validation").values()
    assert {row["id"] for row in opened.book.presets.full_runs} <= set(cells)


def test_the_sheet_sharding_finds_what_planning_finds(opened: Opened) -> None:
    for inputs in (
        {},
        {"base_model": "meta-llama/Llama-3.1-70B", "batch_size": 4},
        {"base_model": "Qwen/Qwen2.5-0.5B"},
    ):
        opened.type(inputs)
        found = shared_among(opened.book.job, **inputs)
        first = first_that_fits(found)
        assert first is not None
        cells = opened.engine.get_sheet("Sharding")
        where = "on" if first.on_one_node else "over more than"
        assert (
            str(opened["Sharding", 2, 2])
            == f"First that fits: {first.cards} × {first.stage}, {where} one node of eight."
        )
        states = {one.state_gb for one in found}
        shown = [value for value in cells.values() if isinstance(value, float)]
        assert all(any(abs(state - value) < 1e-9 * state for value in shown) for state in states)
    opened.type()

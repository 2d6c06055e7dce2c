"""The workbooks calculate what Python does: in three engines, cell by cell, over random jobs and the articles' figures."""

from __future__ import annotations

import random
import zlib
from pathlib import Path
from typing import Any

import pytest
from conftest import Book, Engine, File, Opened
from engines import Formualizer, IronCalc, engine_parameters
from strategies import random_inputs

from sizing_xlsx.formula.render import public_name
from sizing_xlsx.workbook.build import write_book

SETS = {"Formualizer": 60, "IronCalc": 2, "LibreOffice": 12}  # random jobs a workbook; IronCalc takes seconds for one


@pytest.fixture(params=engine_parameters())
def workbook_engine(request: pytest.FixtureRequest) -> type[Engine]:
    """Every engine."""
    engine: type[Engine] = request.param
    return engine


def seed(*parts: object) -> random.Random:
    """The same jobs in every run, others for every test."""
    return random.Random(zlib.crc32(repr(parts).encode()))


def skip_ironcalc(opened: Opened) -> None:
    """For what the other engines show as well: a change takes it seconds."""
    if isinstance(opened.engine, IronCalc):
        pytest.skip("IronCalc takes seconds for a change: it tries random jobs and the articles' figures")


def test_every_formula_recalculates_to_the_value_in_the_file(opened: Opened) -> None:
    assert len(opened.book.cached) > 5_000
    assert opened.differences(opened.book.cached) == []


def test_random_jobs_are_sized_as_in_python(opened: Opened) -> None:
    book, engine = opened.book, type(opened.engine).__name__
    job, rng = book.job, seed(book.name, engine)
    for at in range(SETS[engine]):
        inputs = random_inputs(job, rng)
        opened.type(inputs)
        values = job.reference(inputs)
        expected = {public_name(key): values[key] for key in job.order} | {"Checks_Failed": 0.0}
        wrong = opened.differences(expected)
        assert not wrong, f"job {at}: {wrong[:5]} for {inputs}"


def test_rows_around_a_window_are_sized_as_in_python(opened: Opened) -> None:
    job = opened.book.job
    if opened.book.name != "lora":
        pytest.skip("layers of the encoder have no windows")
    skip_ironcalc(opened)
    mistral = {"base_model": "mistralai/Mistral-7B-v0.1", "gpu_choice": "NVIDIA H200 SXM"}
    for changes in (
        mistral | {"sequence_length": 4095},
        mistral | {"sequence_length": 4096, "gpu_capacity_override_gb": 70},
        mistral | {"sequence_length": 5000, "activation_checkpointing": "On", "keeps_model_output": "Off"},
        mistral | {"sequence_length": 4096, "training_stack": "HF Trainer, transformers 4.48"},
        {"base_model": "google/gemma-2-9b", "sequence_length": 8192, "batch_size": 1, "activation_checkpointing": "On"},
    ):
        inputs = job.defaults() | changes
        opened.type(inputs)
        values = job.reference(inputs)
        expected = {public_name(key): values[key] for key in job.order}
        wrong = opened.differences(expected)
        assert not wrong, f"{wrong[:5]} for {changes}"


@pytest.fixture(scope="module")
def fresh_books(
    short_books: dict[str, Book], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[tuple[dict[str, Any], File]]]:
    """Workbooks that open on random jobs, so that every cell of theirs has a value from Python."""
    folder = tmp_path_factory.mktemp("fresh")
    found: dict[str, list[tuple[dict[str, Any], File]]] = {}
    for name, book in short_books.items():
        rng = seed(name, "fresh")
        for at in range(3):
            inputs, path = random_inputs(book.job, rng), folder / f"{name}-{at}.xlsx"
            write_book(path, name, book.template, book.presets, None, inputs)
            found.setdefault(name, []).append((inputs, File(path)))
    return found


def test_a_workbook_that_opens_on_a_job_says_what_typing_the_job_says(
    opened: Opened, fresh_books: dict[str, list[tuple[dict[str, Any], File]]]
) -> None:
    """Every formula cell of every sheet: texts, charts' data, what-if jobs, checks, validation."""
    for inputs, file in fresh_books[opened.book.name]:
        opened.type(inputs)
        assert file.formulas.keys() == opened.book.formulas.keys()
        wrong = opened.differences(file.cached)
        assert not wrong, f"{len(wrong)} cells, {wrong[:8]} for {inputs}"
        if not isinstance(opened.engine, Formualizer):
            break  # one job: the other engines take seconds for it


def test_a_warned_job_says_so_in_a_workbook_that_opens_on_it(short_books: dict[str, Book], tmp_path: Path) -> None:
    book = short_books["lora"]
    write_book(tmp_path / "long.xlsx", "lora", book.template, book.presets, None, {"sequence_length": 4096})
    file = File(tmp_path / "long.xlsx")
    raised, first = (file.cached[place] for place in _places(book, ("Warnings_Raised", "First_Warning")))
    assert raised == 1
    assert str(first).startswith("Sequence length is 4,096; TinyLlama/")
    assert any(place[0] == "Sizing" and "with a warning" in str(value) for place, value in file.cached.items())


def validation(book: Book) -> dict[Any, Any]:
    """The cells of the runs and of their workings."""
    return {place: value for place, value in book.cached.items() if place[0].startswith("Validation")}


def test_validation_does_not_move_with_the_job_on_sizing(opened: Opened) -> None:
    skip_ironcalc(opened)
    job, rng = opened.book.job, seed(opened.book.name, "closed")
    runs = validation(opened.book)
    assert len(runs) > 500
    for _ in range(4 if isinstance(opened.engine, Formualizer) else 1):
        inputs = random_inputs(job, rng)
        opened.type({key: value for key, value in inputs.items() if job.inputs[key].follows_job})
        assert opened.differences(runs) == []


# Allowances of ZeRO's buckets, of what FSDP's allocator holds and of hosts: no run on Validation says what they reach.
OF_NO_RUN = {
    f"{key}_override"
    for key in (
        "bucket_elements", "bucket_buffers", "live_parameters", "reserve_gathered_layers", "host_buffer_factor",
        "nvme_buffer_gb",
    )
}  # fmt: skip


def test_validation_moves_with_each_allowance_of_the_installation(opened: Opened) -> None:
    skip_ironcalc(opened)
    job, runs = opened.book.job, validation(opened.book)
    every = {key for key, facts in job.inputs.items() if not facts.follows_job and key not in job.beside}
    allowances = [key for key in job.inputs if key in every - OF_NO_RUN]
    published = "published_overhead_gb_override" if job.name == "full" else "published_context_gb_override"
    assert {published, "reserve_layer_mib_override", "outside_pytorch_gb_override"} <= {*allowances}
    if not isinstance(opened.engine, Formualizer):
        allowances = allowances[:2]
    for key in allowances:
        moved = []
        for allowance in (1, 60):  # one is below its preset or the other above it
            opened.type({key: allowance})
            moved += opened.differences(runs)
        assert any("'Validation'" in line for line in moved), key


WORKED_CARDS = {
    "lora": "NVIDIA H100 SXM5 80GB",
    "training": "NVIDIA H100 SXM5 80GB",
    "full": "NVIDIA A100 SXM4 80GB",
}
PUBLISHED, TOTAL, TRACED = "Published_Peak_Allocated_GB", "Published_Total_Reserved_GB", "Traced_Peak_Allocated_GB"
# The articles' figures in GB: published peak, published reserved total, traced peak (None: not among them), verdict.
GOLDEN = {
    # 8,030,261,248 × (4 + 12/2) bytes, 2 × 4,096 × 4,096 of each of 32 layers, and 3 GB of overhead
    "full": [({}, 81.3764, 84.3764, None, "does not fit")],
    "lora": [
        ({}, 12.7966, 14.5966, 12.7946, "fits"),
        ({"activation_checkpointing": "On"}, 4.7148, 10.5148, 4.5808, "fits"),
        ({"batch_size": 32, "sequence_length": 2048}, 170.0404, 171.8404, None, "does not fit"),
        (
            {"batch_size": 32, "sequence_length": 2048, "activation_checkpointing": "On"},
            41.2996, 47.0996, 38.1473, "fits",
        ),
        ({"base_storage_format": "fp32"}, 17.1968, 18.9968, 17.2481, "fits"),
        ({"adapter_layers": 3}, 5.3694, 7.1694, 5.3674, "fits"),
    ],
    "training": [
        ({}, 60.4042, 62.2042, 59.0724, "fits"),
        ({"activation_checkpointing": "On"}, 20.2252, 26.0252, 20.3448, "fits"),
        ({"activation_checkpointing": "On", "batch_size": 1024}, 39.8126, 45.6126, 40.0328, "fits"),
        ({"compute_precision": "fp32"}, 94.0869, 95.8869, None, "does not fit"),
    ],
}  # fmt: skip


def test_the_articles_figures_stand_in_the_workbook(opened: Opened) -> None:
    cases = GOLDEN[opened.book.name]
    for inputs, published, total, traced, verdict in cases[:2] if isinstance(opened.engine, IronCalc) else cases:
        opened.type(inputs)
        assert opened["GPU_Choice"] == WORKED_CARDS[opened.book.name]
        assert opened[PUBLISHED] == pytest.approx(published, abs=5.1e-5), inputs
        assert opened[TOTAL] == pytest.approx(total, abs=5.1e-5), inputs
        if traced is not None:
            assert opened[TRACED] == pytest.approx(traced, abs=5.1e-5), inputs
        assert opened["Fit_Verdict"] == verdict, inputs


def test_the_worked_job_opens_on_the_articles_figures(book: Book) -> None:
    """The values in the file, which a mail preview shows, without any engine."""
    places = {name: refers for name, refers in book.names.items() if name in (PUBLISHED, TOTAL, TRACED, "Fit_Verdict")}
    assert len(places) == 4
    _, published, total, traced, verdict = GOLDEN[book.name][0]
    shown = [book.cached[place] for place in _places(book, (PUBLISHED, TOTAL, TRACED))]
    assert shown == pytest.approx([published, total, shown[2] if traced is None else traced], abs=5.1e-5)
    assert [book.cached[place] for place in _places(book, ("Fit_Verdict",))] == [verdict]


def _places(book: Book, wanted: tuple[str, ...]) -> list[tuple[str, int, int]]:
    from engines import contents

    return [contents(book.path).names[name.casefold()] for name in wanted]

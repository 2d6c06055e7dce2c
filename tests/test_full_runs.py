"""Runs of full fine-tuning: a run of verify in the words of the job that sizes it and back, and with its workbook."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Book
from engines import Formualizer
from test_own_runs import FIGURES, SWEEP, Table, assert_row, expected

from sizing_xlsx.jobs import job
from sizing_xlsx.measure import command
from sizing_xlsx.measure.full_run import run_fields, same_step, sized
from sizing_xlsx.measure.run import make_run
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook.own_runs import KEY, input_names
from sizing_xlsx.workbook.patch import open_package
from sizing_xlsx.workbook.write_back import write_results

FULL = job("full")
SMOL = "HuggingFaceTB/SmolLM2-135M"
PURE = {"base_model": SMOL, "parameter_storage": "bf16", "uses_autocast": "Off"}
AMP = "AMP autocast bf16/fp16, fp32 storage, AdamW"


@pytest.mark.parametrize(
    ("fields", "recipe"),
    [
        ({}, AMP),
        ({"uses_autocast": "Off"}, "fp32 AdamW"),
        ({"compute_precision": "fp32"}, "fp32 AdamW"),
        ({"parameter_storage": "bf16"}, "pure bf16 AdamW"),
        ({"optimizer_choice": "SGD with momentum"}, "fp32 SGD momentum"),
        ({"optimizer_choice": "SGD"}, "fp32 SGD plain"),
        ({"optimizer_choice": "8-bit Adam"}, "fp32 + bnb AdamW8bit"),
        ({"optimizer_choice": "8-bit Adam", "parameter_storage": "bf16"}, "bf16 + bnb AdamW8bit / PagedAdamW8bit"),
    ],
)
def test_a_run_is_sized_by_the_recipe_that_it_steps_and_comes_back(fields: dict[str, Any], recipe: str) -> None:
    run = make_run("full", {"base_model": SMOL, **fields})
    found = sized(run.as_row())
    assert found is not None
    assert (found["training_recipe"], found["sharding_stage"], found["gpu_count"]) == (recipe, "None", 1)
    inputs = {**FULL.defaults(), **{key: value for key, value in found.items() if key in FULL.inputs}}
    assert make_run("full", run_fields(inputs)) == run
    assert command.predicted(run) is not None or found["training_recipe"].endswith("8bit")


def test_an_optimizer_without_a_recipe_has_no_formula() -> None:
    assert sized(make_run("full", {"parameter_storage": "bf16", "optimizer_choice": "SGD"}).as_row()) is None


def test_recipes_that_differ_in_name_alone_are_one_step() -> None:
    assert same_step(AMP, "fp32 AdamW") and not same_step("pure bf16 AdamW", "fp32 AdamW")
    assert not same_step("bf16 Muon", "fp32 Muon (2-D hidden matrices only)"), "verify runs neither"
    rows = {row["name"]: row for row in load_presets().recipe_rows if row["run_storage"]}
    for one in rows:
        for other in rows:
            if one != other and same_step(one, other):
                assert {one, other} == {AMP, "fp32 AdamW"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"gpu_count": 2, "sharding_stage": "DDP"}, "gpu_count is 2; it must be 1, for verify runs one card"),
        (
            {"training_recipe": "bf16 Muon"},
            "training_recipe is 'bf16 Muon', which verify cannot run; it must be one of",
        ),
        ({"optimizer_step": "fused"}, "optimizer_step is 'fused'; it must be 'foreach' where verify runs the job"),
        ({"training_recipe": "fp32 + bnb AdamW8bit"}, "embedding_in_fp32 is 'On'; it must be 'Off'"),
    ],
)
def test_a_job_that_no_run_steps_is_refused_in_one_sentence(changes: dict[str, Any], told: str) -> None:
    one = {"gpu_count": 1, "sharding_stage": "None", "training_recipe": "pure bf16 AdamW", **changes}
    with pytest.raises(ValueError, match="; ") as raised:
        run_fields({**FULL.defaults(), **one})
    assert told in str(raised.value) and "\n" not in str(raised.value)


@pytest.fixture
def plan(short_books: dict[str, Book], tmp_path: Path) -> Path:
    return Path(shutil.copyfile(short_books["full"].path, tmp_path / "plan.xlsx"))


def result(run: Any, **more: Any) -> dict[str, Any]:
    row = {
        "backend": "cuda",
        "outcome": "ok",
        "peak_allocated_bytes": 12_500_000_001,
        "peak_reserved_bytes": 14 * 10**9,
    }
    found = sized({**run.as_row(), **row, "source": "measured: here", **more})
    assert found is not None
    return found


def test_a_measured_run_comes_alive_in_the_workbook_and_is_found_again(plan: Path) -> None:
    run = make_run("full", {**PURE, "batch_size": 4}, id="own")
    before = plan.read_bytes()
    write_results(plan, [result(run)], FULL)
    table, at = Table(plan, Formualizer(plan)), SWEEP["full"]
    table.engine.recalculate()  # type: ignore[union-attr]
    recipe = {"training_recipe": "pure bf16 AdamW", "sharding_stage": "None", "gpu_count": 1, "uses_autocast": "Off"}
    inputs = {"base_model": SMOL, "batch_size": 4, "sequence_length": run["sequence_length"], **recipe}
    inputs |= {
        key: run[key] for key in ("activation_checkpointing", "training_stack", "keeps_model_output", "gpu_choice")
    }
    assert_row(table.shown(at), expected(FULL, inputs), 12.500000001, completed=True)
    assert command.runs_of_workbook(plan, "validation")[-1] == run
    again = write_results(plan, [result(run)], FULL)
    assert again.cells == 0 and plan.read_bytes() != before
    with pytest.raises(ValueError, match="the run own has batch_size 4"):
        write_results(plan, [result(make_run("full", {**PURE, "batch_size": 8}, id="own"))], FULL)


def test_the_runs_of_the_workbook_that_one_card_takes_come_out(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = {run.id: run for run in command.runs_of_workbook(plan, "validation")}
    said = capsys.readouterr().err
    assert {"H290", "H366"} <= set(runs) and not {"H291", "H393"} & set(runs)
    assert "runs are left out, which verify cannot run; the first: " in said and "gpu_count is 2" in said
    assert (runs["H290"]["parameter_storage"], runs["H290"]["optimizer_choice"]) == ("bf16", "Adam")


def test_what_sizing_sizes_is_run_where_one_card_takes_it(plan: Path) -> None:
    with pytest.raises(ValueError, match="training_recipe is 'bf16 params .* which verify cannot run"):
        command.runs_of_workbook(plan, "scenario")
    package = open_package(plan)
    cells = {}
    for name, value in (("Training_Recipe", "fp32 AdamW"), ("GPU_Count", 1), ("Sharding_Stage", "None")):
        area = package.area(name)
        cells[area.sheet, area.first_row, area.first_column] = value
    package.write(cells, backup=False)
    (run,) = command.runs_of_workbook(plan, "scenario")
    assert (run.job, run["parameter_storage"], run["sequence_length"]) == ("full", "fp32", 4096)


def test_the_names_of_the_table_are_those_of_the_job(plan: Path) -> None:
    package = open_package(plan, read_only=True)
    for name in (KEY, *FIGURES.values(), *input_names(FULL).values()):
        package.area(name)

"""Levers and what search answers: pulled in Python and in the live rows, and held against trying every value."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from conftest import Book, Opened
from engines import Formualizer, Value, close
from strategies import random_inputs
from test_workbook_engines import seed

from sizing_xlsx import lora, planning
from sizing_xlsx.cli import main
from sizing_xlsx.formula.job import Job
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.jobs import JOBS
from sizing_xlsx.jobs import job as job_of
from sizing_xlsx.planning.levers import change_of, pull, together
from sizing_xlsx.planning.search import answer, limit_of, questions
from sizing_xlsx.workbook.template import load_template


def fits(job: Job, inputs: dict[str, Any], **more: Any) -> bool:
    return bool(job.size(["verdict_code"], **{**inputs, **more})["verdict_code"] == 1)


@pytest.mark.parametrize("name", JOBS)
def test_each_lever_is_the_job_with_that_change(name: str) -> None:
    job, levers = job_of(name), load_template(name)["levers"]
    rng = seed(name, "levers")
    for inputs in ({}, *(random_inputs(job, rng) for _ in range(40))):
        before = job.size(["total_reserved_gb"], **inputs)["total_reserved_gb"]
        for found in pull(job, levers, **inputs):
            alone = job.size(["total_reserved_gb", "fit_verdict", "headroom_gb"], **{**inputs, **found.changed})
            assert found.total_gb == alone["total_reserved_gb"]
            rests = [job.size(["rests_on_traced"], **each) for each in (inputs, {**inputs, **found.changed})]
            assert found.saving_gb == (before - found.total_gb if rests[0] == rests[1] else None)
            assert (found.verdict, found.headroom_gb) == (alone["fit_verdict"], alone["headroom_gb"])


def test_a_lever_that_is_pulled_already_changes_nothing() -> None:
    levers = load_template("lora")["levers"]
    found = {pulled.name: pulled for pulled in pull(lora, levers, activation_checkpointing="On", batch_size=1)}
    for name in ("Checkpointing", "Half the batch"):
        assert found[name].changed == {} and found[name].saving_gb == 0
    assert found["all"].changed.keys() >= {"optimizer_choice", "sequence_length"}


def test_halves_are_whole_and_never_nothing() -> None:
    assert change_of({"batch_size": {"half": "batch_size"}}, {"batch_size": 7}) == {"batch_size": 3}
    assert change_of({"batch_size": {"half": "batch_size"}}, {"batch_size": 1}) == {"batch_size": 1}
    assert together([{"change": {"a": 1}}, {"change": {"b": 2}}]) == {"a": 1, "b": 2}


def brute(job: Job, vary: str, inputs: dict[str, Any], highest: int) -> tuple[bool, ...]:
    return tuple(fits(job, inputs, **{vary: value}) for value in range(1, highest + 1))


def test_the_most_layers_and_the_highest_rank_are_the_last_that_fit() -> None:
    rng = random.Random(11)
    asked = {question.name: question for question in questions(lora)}
    seen = set()
    for _ in range(60):
        inputs = random_inputs(lora, rng)
        layers = lora.size(["layer_count"], **inputs)["layer_count"]
        found = answer(lora, asked["most_adapter_layers"], **inputs)
        tried = brute(lora, "adapter_layers", inputs, int(layers))
        assert found == tried.index(False) if False in tried else found == layers
        assert not any(tried[found:]) or found == layers
        rank = answer(lora, asked["highest_lora_rank"], **inputs)
        if rank:
            assert fits(lora, inputs, lora_rank=rank)
        if rank < 8_192:
            assert not fits(lora, inputs, lora_rank=rank + 1)
        seen.add((0 < found < layers, 0 < rank < 8_192))
    assert {True} == {first or second for first, second in seen if first or second}


@pytest.mark.parametrize("name", JOBS)
def test_up_to_the_free_batch_the_optimizer_step_decides(name: str) -> None:
    job = job_of(name)
    (question,) = [question for question in questions(job) if question.name == "free_batch_size"]
    rng = seed(name, "free")
    for inputs in ({}, *(random_inputs(job, rng) for _ in range(60))):
        found = answer(job, question, **inputs)
        for batch, decides in ((found, True), (found + 1, False)):
            if 1 <= batch <= 65_536:
                values = job.size(["traced_allocated", "optimizer_moment"], **{**inputs, "batch_size": batch})
                assert (values["traced_allocated"] <= values["optimizer_moment"]) is decides


def lever_rows(opened: Opened) -> dict[str, tuple[Value, ...]]:
    """The lever table as it is shown: change -> total, saving, verdict."""
    cells = opened.engine.get_sheet("Levers")
    top = next(row for (row, column), value in cells.items() if column == 2 and value == "Change") + 1
    found = {}
    while (top, 4) in cells:
        found[str(cells[top, 2])] = tuple(cells.get((top, column)) for column in (4, 5, 7))
        top += 1
    return found


def test_the_lever_table_says_what_python_says(opened: Opened) -> None:
    job, levers = opened.book.job, opened.book.template["levers"]
    rng = seed(opened.book.name, "lever rows")
    words = dict(zip(("fits", "tight", "does not fit"), ("Fits", "Tight", "Does not fit"), strict=True))
    for at in range(20 if isinstance(opened.engine, Formualizer) else 1):
        inputs = random_inputs(job, rng) if at else {}
        opened.type(inputs)
        found = lever_rows(opened)
        before = job.size(["total_shown_gb"], **inputs)["total_shown_gb"]
        assert close(found["As entered"][0], before)
        pulled = {each.name: each for each in pull(job, levers, **inputs)}
        for name, row in found.items():
            each = pulled.get("all" if name == "All together" else name)
            if name == "As entered":
                continue
            if each is None:
                assert row[2] == "Check"
                continue
            total = job.size(["total_shown_gb"], **{**inputs, **each.changed})["total_shown_gb"]
            assert close(row[0], total), (name, inputs)
            assert row[2] == words[each.verdict]
            saved = "other basis" if each.saving_gb is None else round(before - total, 1) + 0
            assert close(row[1], saved if each.changed else "already so", 1e-9), (name, inputs)
        assert len(found) == len(levers) + 2


def test_search_answers_in_the_sheet_as_in_python(opened: Opened) -> None:
    job = opened.book.job
    rng = seed(opened.book.name, "search")
    for at in range(20 if isinstance(opened.engine, Formualizer) else 1):
        inputs = random_inputs(job, rng) if at else {}
        opened.type(inputs)
        for question in questions(job):
            assert opened[public_name(question.name)] == answer(job, question, **inputs), (question.name, inputs)
        for state, word in (("plain", "Off"), ("checkpointed", "On")):
            alone = job.size(
                ["largest_batch_size", "largest_sequence_length"], **{**inputs, "activation_checkpointing": word}
            )
            for key, value in alone.items():
                assert opened[public_name(f"{state}_{key}")] == value


def test_the_steps_of_a_search_reach_every_value(book: Book) -> None:
    for question in questions(book.job):
        limit = limit_of(book.job, question)
        assert isinstance(limit, str) or limit in (8_192, 65_536)


def test_highest_names_its_question() -> None:
    assert planning.highest(lora, "highest_lora_rank", gpu_choice="NVIDIA L4") > 8
    with pytest.raises(ValueError, match="question is 'highest_rank'; it must be one of highest_lora_rank"):
        planning.highest(lora, "highest_rank")


@pytest.mark.parametrize("name", JOBS)
def test_the_command_line_plans(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--cards", "--levers", "--batch-size", "3"]) == 0
    told = capsys.readouterr().out
    assert "NVIDIA H100 SXM5 80GB" in told and "Half the batch" in told and "capacity not known" in told
    assert main([name, "--levers", "--json", "--batch-size", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["levers"][0]["name"] == "Checkpointing" and "cards" not in found
    assert main([name, "--cards", "--batch-size", "0"]) == 2
    assert "batch_size is 0" in capsys.readouterr().err

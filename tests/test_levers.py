"""Levers and what search answers: pulled in Python and in the live rows, and held against trying every value."""

from __future__ import annotations

import json
import random
import re
from itertools import accumulate
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
            if found.does_not_apply:
                assert found[1:6] == ({}, None, None, None, None)
                continue
            alone = job.size(["total_reserved_gb", "fit_verdict", "headroom_gb"], **{**inputs, **found.changed})
            assert found.total_gb == alone["total_reserved_gb"]
            rests = [job.size(["rests_on_traced"], **each) for each in (inputs, {**inputs, **found.changed})]
            assert found.saving_gb == (before - found.total_gb if rests[0] == rests[1] else None)
            assert (found.verdict, found.headroom_gb) == (alone["fit_verdict"], alone["headroom_gb"])


NF4 = "nf4 / fp4, block 64, double quant (nested block 256)"
IDLE: list[tuple[str, dict[str, Any], dict[str, str]]] = [  # job, inputs -> levers that do not apply, and why
    ("lora", {}, {}),
    ("lora", {"activation_checkpointing": "On"}, {"Checkpointing": "it is on already"}),
    ("lora", {"optimizer_choice": "8-bit Adam"}, {"8-bit Adam": "the optimizer is 8-bit already"}),
    ("lora", {"batch_size": 1}, {"Half the batch": "the batch is one row"}),
    ("lora", {"sequence_length": 1}, {"Half the sequence": "the sequence is one token"}),
    ("lora", {"adapter_layers": 1}, {"Half the adapter layers": "one layer alone has adapters"}),
    ("lora", {"base_storage_format": NF4}, {"NF4 base (QLoRA)": "the base is so already"}),
    ("lora", {"base_model": "openai/gpt-oss-20b"}, {"NF4 base (QLoRA)": "the weights come quantised"}),
    ("lora", {"base_model": "tiiuae/falcon-7b"}, {"NF4 base (QLoRA)": "it converts no weight here"}),
    ("lora", {"training_stack": "Fused kernels with fused linear loss"}, {"Fused loss": "the loss is fused already"}),
    ("lora", {"adapter_method": "IA3"}, {}),
    ("lora", {"adapter_method": "Prefix tuning"},
     {"Checkpointing": "PEFT refuses it for a prefix", "Half the adapter layers": "the method has no adapters"}),
    ("lora", {"adapter_method": "Trained head on stored features", "batch_size": 1},
     {"Checkpointing": "below a head nothing is kept", "NF4 base (QLoRA)": "the base is not on the card",
      "Half the batch": "the batch is one row", "Half the adapter layers": "the method has no adapters"}),
    ("training", {}, {"16-bit compute": "compute is in 16 bit already"}),
    ("training", {"compute_precision": "fp32"}, {}),
    ("training", {"activation_checkpointing": "On", "optimizer_choice": "8-bit Adam", "batch_size": 1,
                  "sequence_length": 1, "compute_precision": "fp16 autocast"},
     {"Checkpointing": "it is on already", "8-bit Adam": "the optimizer is 8-bit already",
      "Half the batch": "the batch is one row", "Half the sequence": "the sequence is one token",
      "16-bit compute": "compute is in 16 bit already", "all": "no line above applies"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "idle"), IDLE)
def test_levers_that_do_not_apply_say_why_and_give_no_figure(
    name: str, inputs: dict[str, Any], idle: dict[str, str]
) -> None:
    job, levers = job_of(name), load_template(name)["levers"]
    found = {pulled.name: pulled for pulled in pull(job, levers, **inputs)}
    assert {key: each.does_not_apply for key, each in found.items() if each.does_not_apply} == idle
    every = found.pop("all")
    alone = {key: value for each in found.values() for key, value in each.changed.items()}
    assert every.changed == alone  # what all change together is what each of those that apply changes
    assert len(found) == len(levers)


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
            if each.does_not_apply:
                assert row == ("–", "–", "–")
                continue
            total = job.size(["total_shown_gb"], **{**inputs, **each.changed})["total_shown_gb"]
            assert close(row[0], total), (name, inputs)
            assert row[2] == words[each.verdict]
            saved = "other basis" if each.saving_gb is None else round(before - total, 1) + 0
            assert close(row[1], saved, 1e-9), (name, inputs)
        assert len(found) == len(levers) + 2


def test_the_lever_table_says_why_a_lever_does_not_apply(opened: Opened) -> None:
    every = opened.book.template["levers_sheet"]["all"]
    for _, inputs, idle in (each for each in IDLE if each[0] == opened.book.name):
        opened.type(inputs)
        cells = opened.engine.get_sheet("Levers")
        names = {value: row for (row, column), value in cells.items() if column == 2}
        wanted = {every if name == "all" else name: reason for name, reason in idle.items()}
        for lever in (*(lever["name"] for lever in opened.book.template["levers"]), every):
            told = [cells.get((names[lever], column)) for column in range(3, 10)]
            if lever in wanted:
                assert told == [f"does not apply: {wanted[lever]}", *["–"] * 6], (lever, inputs)
            else:
                assert isinstance(told[1], float) and not str(told[0]).startswith("does not apply"), (lever, inputs)


@pytest.mark.parametrize("name", JOBS)
def test_no_row_of_what_if_reads_another_that_it_touches(short_books: dict[str, Book], name: str) -> None:
    """LibreOffice calculates equal formulas below each other as one group: within one, that would be a circle."""
    formulas = {place: text for place, text in short_books[name].formulas.items() if place[0] == "What-if"}
    rows = sorted({row for _, row, _ in formulas})
    part = dict(zip(rows, accumulate(0 if row - 1 in rows else 1 for row in rows), strict=True))
    read = {
        (row, int(other))
        for (_, row, _), text in formulas.items()
        for other in re.findall(r"'What-if'!\$[A-Z]+\$(\d+)", text)
    }
    assert read and all(part[row] != part[other] for row, other in read)


METHODS = {  # adapter method -> which rows of "How far the job can grow" have an answer without, with checkpointing
    "LoRA": {"batch": (True, True), "rank": True, "layers": True},
    "IA3": {"batch": (True, True), "rank": False, "layers": True},
    "Prefix tuning": {"batch": (True, False), "rank": False, "layers": False},
    "Trained head": {"batch": (True, False), "rank": False, "layers": False},
}


def test_how_far_a_job_can_grow_says_what_does_not_apply(opened: Opened) -> None:
    if opened.book.name != "lora":
        return
    words = opened.book.template["levers_sheet"]
    for method, expected in METHODS.items():
        opened.type(adapter_method=method)
        cells = opened.engine.get_sheet("Levers")
        rows = {value: row for (row, column), value in cells.items() if column == 2}
        for key, label in (("rank", "highest_lora_rank"), ("layers", "most_adapter_layers")):
            row = rows[words["names"][label]]
            entered, answer_, why = (cells.get((row, column)) for column in (3, 4, 6))
            if expected[key]:
                assert isinstance(answer_, float) and not why, (method, key)
            else:
                assert (entered, answer_) == ("–", "–") and str(why).startswith("does not apply: the method has no")
        row = rows[words["names"]["largest_batch_size"]]
        known = tuple(isinstance(cells.get((row, column)), float) for column in (4, 5))
        assert known == expected["batch"], method
        assert bool(cells.get((row, 6))) is not known[1]
        twice = rows[words["doubled"]["batch_size"]]
        assert isinstance(cells[twice, 7], float) is known[1]


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
    for method in ("IA3", "Prefix tuning", "Trained head"):
        with pytest.raises(ValueError, match="'highest_lora_rank', which does not apply: the method has no rank"):
            planning.highest(lora, "highest_lora_rank", adapter_method=method)
    assert planning.highest(lora, "most_adapter_layers", adapter_method="IA3") == 22


@pytest.mark.parametrize("name", JOBS)
def test_the_command_line_plans(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--cards", "--levers", "--batch-size", "3"]) == 0
    told = capsys.readouterr().out
    assert "NVIDIA H100 SXM5 80GB" in told and "Half the batch" in told and "capacity not known" in told
    assert main([name, "--levers", "--json", "--batch-size", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["levers"][0]["name"] == "Checkpointing" and "cards" not in found
    assert main([name, "--levers", "--batch-size", "1"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Half the batch")]
    assert line.split(None, 3)[3] == "does not apply: the batch is one row"
    assert main([name, "--cards", "--batch-size", "0"]) == 2
    assert "batch_size is 0" in capsys.readouterr().err

"""Scenarios: every row is sized as Python sizes the job, a wrong row says what is wrong and counts nowhere, the
summary adds up, and a row that is sent to Sizing is sized there."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import RESULTS, Book, Opened, short_template
from engines import ErrorValue, Formualizer, Value, close
from openpyxl.formula.translate import Translator
from openpyxl.utils import get_column_letter
from strategies import random_inputs

from sizing_xlsx import lora
from sizing_xlsx.cli import main
from sizing_xlsx.formula.declare import Choice, Number
from sizing_xlsx.formula.render import column_name, public_name
from sizing_xlsx.jobs import JOBS, job
from sizing_xlsx.measure.command import runs_of_workbook
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook.build import write_book
from sizing_xlsx.workbook.lint import r1c1
from sizing_xlsx.workbook.patch import open_package
from sizing_xlsx.workbook.scenario_file import scenario_of, scenarios_of
from sizing_xlsx.workbook.scenarios import CHOICE, inputs_of_scenarios, list_name, standard
from sizing_xlsx.workbook.template import load_template

pytestmark = pytest.mark.filterwarnings("ignore:.*xtension is not supported:UserWarning")
SHOWN = {"fits": "Fits", "tight": "Tight", "does not fit": "Does not fit"}
MAIN = {name: [column["input"] for column in load_template(name)["scenarios"]["columns"]] for name in JOBS}
ROUNDS = {"Formualizer": 4, "LibreOffice": 2}  # how often all rows are filled anew
EVERY = {"Formualizer": 1, "LibreOffice": 7}  # the slower engine tries a part of the wrong values


class Table:
    """The table of scenarios in an engine; rows from 1. What is typed is taken back by restore()."""

    def __init__(self, opened: Opened) -> None:
        self.opened, self.engine, self.book, self.job = opened, opened.engine, opened.book, opened.book.job
        self.holds = dict(self.opens_on)
        self.waiting: dict[tuple[str, int, int], Any] = {}

    @cached_property
    def places(self) -> dict[str, tuple[str, int, int, int]]:
        """Column -> sheet, first row, last row, column."""
        keys = ("name", "owner", "date", "note", "verdict", "total_reserved_gb", "message")
        return {key: _place(self.book, list_name(key)) for key in (*keys, *inputs_of_scenarios(self.job))}

    @property
    def rows(self) -> int:
        """How many rows are prepared."""
        _, first, last, _ = self.places["name"]
        return last - first + 1

    def cell(self, key: str, row: int) -> tuple[str, int, int]:
        sheet, first, _, column = self.places[key]
        return sheet, first + row - 1, column

    def type(self, row: int, **cells: Any) -> None:
        """Type into cells of a row; None empties one. Takes effect with calculate()."""
        for key, value in cells.items():
            whole = isinstance(value, int) and not isinstance(value, bool)
            self.waiting[self.cell(key, row)] = float(value) if whole else value

    def empty(self, row: int) -> None:
        """Take everything out of a row."""
        self.type(row, **dict.fromkeys((*inputs_of_scenarios(self.job), "name", "owner", "date", "note")))

    def calculate(self) -> None:
        """Recalculate with what was typed; cells that change side by side are set together."""
        changed = {
            at: value for at, value in self.waiting.items()
            if type(value) is not type(self.holds.get(at)) or value != self.holds.get(at)
        }  # fmt: skip
        runs: list[tuple[tuple[str, int, int], list[Any]]] = []
        for sheet, row, column in sorted(changed):
            if runs and runs[-1][0] == (sheet, row, column - len(runs[-1][1])):
                runs[-1][1].append(changed[sheet, row, column])
            else:
                runs.append(((sheet, row, column), [changed[sheet, row, column]]))
        for first, values in runs:
            self.engine.set_row(first, values)
        self.holds |= changed
        self.waiting.clear()
        self.engine.recalculate()

    def __getitem__(self, at: tuple[str, int]) -> Value:
        return self.engine.get(self.cell(*at))

    def utilisation(self, row: int) -> Value:
        sheet, at, column = self.cell("total_reserved_gb", row)
        return self.engine.get((sheet, at, column + 1))

    def counts(self) -> dict[str, Value]:
        """The tiles' figures."""
        kinds = ("Used", "Counted", "Fit", "Tight", "No_Fit", "Left_Out", "Cards")
        return {kind: self.engine.get(f"Scenarios_{kind}_Count") for kind in kinds}

    def panel(self) -> list[list[Value]]:
        """What fits which card: card, jobs, fit, tight, do not fit; the last two lines are all others and the sum."""
        sheet, first, _, column = self.places["message"]
        left, lines = column + 2, self.book.template["scenarios"]["cards"] + 2
        found = [[self.engine.get((sheet, first + at, left + to)) for to in range(5)] for at in range(lines)]
        return [line for line in found if line[0] not in ("", None)]

    def restore(self) -> None:
        """Everything as the workbook opens."""
        self.waiting = {place: self.opens_on.get(place) for place in self.holds}
        self.engine.set(CHOICE, self.book.template["scenarios"]["as_typed"])
        self.opened.type()
        self.calculate()

    @cached_property
    def opens_on(self) -> dict[tuple[str, int, int], Any]:
        """What is typed where, when the workbook opens."""
        found: dict[tuple[str, int, int], Any] = {}
        for row, entry in enumerate(self.book.template["scenarios"]["jobs"], 1):
            main = {key: standard(self.job)[key] for key in MAIN[self.book.name]}
            typed = {
                **main,
                **entry["inputs"],
                "name": entry["name"],
                "owner": entry["owner"],
                "note": entry.get("note"),
            }
            typed["date"] = (entry["date"] - _DAY_0).days
            for key, value in typed.items():
                found[self.cell(key, row)] = float(value) if isinstance(value, int) else value
        return found


_DAY_0 = date(1899, 12, 30)


def _place(book: Book, name: str) -> tuple[str, int, int, int]:
    sheet, area = book.names[name].rsplit("!", 1)
    first, last = (openpyxl.utils.cell.coordinate_to_tuple(part) for part in area.replace("$", "").split(":"))
    assert first[1] == last[1]
    return sheet.strip("'"), first[0], last[0], first[1]


@pytest.fixture
def table(opened: Opened) -> Iterator[Table]:
    found = Table(opened)
    yield found
    found.restore()


def reference(table: Table, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Every value of a row's job by the plain functions."""
    return table.job.reference({**standard(table.job), **typed})


def a_job(table: Table, rng: random.Random, others: bool = True) -> dict[str, Any]:
    """What a planner may type into a row: the main inputs, and some of the others or none, without contradiction."""
    known = inputs_of_scenarios(table.job)
    while True:
        drawn = random_inputs(table.job, rng)
        main = MAIN[table.book.name]
        share = rng.choice((0.1, 0.5, 1.0)) if others else 0
        typed = {key: drawn[key] for key in known if key in main or (rng.random() < share and drawn[key] is not None)}
        try:
            table.job.size(["verdict_code"], **{**standard(table.job), **typed})
        except ValueError:
            continue
        return typed


# -- values


def test_random_rows_are_sized_as_in_python(table: Table) -> None:
    rng = random.Random(f"rows {table.book.name}")
    for _ in range(ROUNDS[type(table.engine).__name__]):
        expected = []
        for row in range(1, table.rows + 1):
            table.empty(row)
            typed = a_job(table, rng)
            table.type(row, name=f"Job {row}", **typed)
            expected.append((typed, reference(table, typed)))
        table.calculate()
        for row, (typed, values) in enumerate(expected, 1):
            assert table["message", row] == "", typed
            assert table["verdict", row] == SHOWN[values["fit_verdict"]], typed
            assert close(table["total_reserved_gb", row], values["total_reserved_gb"]), typed
            assert close(table.utilisation(row), float(values["card_utilisation"])), typed
        verdicts = [values["fit_verdict"] for _, values in expected]
        assert table.counts() == {
            "Used": table.rows, "Counted": table.rows, "Left_Out": 0, "Fit": verdicts.count("fits"),
            "Tight": verdicts.count("tight"), "No_Fit": verdicts.count("does not fit"),
            "Cards": len({typed["gpu_choice"] for typed, _ in expected}),
        }  # fmt: skip


def test_all_prepared_rows_of_the_shipped_workbook_can_be_used(whole_book: Book) -> None:
    table = Table(Opened(whole_book, Formualizer))
    assert table.rows == 200
    rng, expected = random.Random(whole_book.name), []
    for row in range(1, table.rows + 1):
        table.empty(row)
        typed = a_job(table, rng, others=False)
        table.type(row, name=f"Job {row}", **typed)
        expected.append(reference(table, typed))
    table.calculate()
    for row, values in enumerate(expected, 1):
        assert table["verdict", row] == SHOWN[values["fit_verdict"]]
        assert close(table["total_reserved_gb", row], values["total_reserved_gb"])
    assert table.counts()["Used"] == 200
    cards = table.panel()
    assert len(cards) == 14
    jobs = [line[1] for line in cards[:12]]
    assert jobs == sorted(jobs, reverse=True)
    for column in range(1, 5):
        assert sum(line[column] for line in cards[:-1]) == cards[-1][column]
    assert cards[-1][1] == 200 == sum(cards[-1][2:])


def test_every_formula_of_the_shipped_workbook_recalculates(whole_book: Book) -> None:
    opened = Opened(whole_book, Formualizer)
    planned = {place: value for place, value in whole_book.cached.items() if place[0].startswith("Scenario")}
    assert len(planned) > 200 * 90
    opened.engine.set("Batch_Size", 3.0)
    opened.engine.recalculate()
    assert opened.differences(planned) == []  # closed: nothing on Sizing moves a row


def test_an_empty_row_shows_nothing_and_does_not_count(table: Table) -> None:
    jobs = len(table.book.template["scenarios"]["jobs"])
    row = jobs + 1
    assert [table["verdict", row], table["total_reserved_gb", row], table.utilisation(row)] == ["", "", ""]
    assert table.counts()["Used"] == jobs
    table.type(row, owner="Ana", note="a heading")
    table.calculate()
    assert table["verdict", row] == "" and table.counts()["Used"] == jobs
    for row in range(1, jobs + 1):
        table.empty(row)
    table.calculate()
    assert table.counts() == dict.fromkeys(table.counts(), 0.0)
    assert str(table.engine.get(("Scenarios", 2, 2))).startswith("No job yet")


def test_the_examples_show_all_three_verdicts(book: Book) -> None:
    sheet = openpyxl.load_workbook(book.path, data_only=True)["Scenarios"]
    _, first, last, column = _place(book, list_name("verdict"))
    shown = [sheet.cell(row, column).value or "" for row in range(first, last + 1)]
    assert {*shown} == {"Fits", "Tight", "Does not fit", ""}
    assert len([word for word in shown if word]) == len(book.template["scenarios"]["jobs"])


def test_a_row_moves_with_an_allowance_and_with_nothing_else(table: Table) -> None:
    before = [table["total_reserved_gb", row] for row in range(1, 8)]
    table.opened.type(batch_size=1, gpu_choice="NVIDIA T4")
    assert [table["total_reserved_gb", row] for row in range(1, 8)] == before
    table.opened.type(reserve_layer_mib_override=300)
    after = [table["total_reserved_gb", row] for row in range(1, 8)]
    values = reference(table, {}), table.job.reference({**standard(table.job), "reserve_layer_mib_override": 300})
    assert close(before[0], values[0]["total_reserved_gb"]) and close(after[0], values[1]["total_reserved_gb"])
    assert before != after


# -- faults

# What is typed into a cell of the first row, and how the message begins and goes on.
WRONG: dict[str, list[tuple[str, Any, str]]] = {
    "lora": [
        ("lora_rank", 1.5, "LoRA rank is 1.5; enter a whole number from 1 to 8,192."),
        ("adapter_layers", 23, "Adapter layers is 23; the model has 22 layers: enter 1 to 22 or \"all\"."),
        ("adapter_layers", "most", 'Adapter layers is most; enter a whole number from 1 to the layer count or "all".'),
        ("adapter_layers", None, 'Adapter layers is empty; enter a whole number from 1 to the layer count or "all".'),
        ("base_storage_format", "nf4", "Base storage format is nf4; enter one of the 13 storage formats listed."),
        ("kv_heads_override", 5, "Attention heads is 32; it must be a multiple of KV heads, which is 5."),
        ("images_per_row", 1, "Images per row is 1; how many tokens an image becomes is not known for TinyLlama/"),
    ],
    "training": [
        ("parameter_storage", "fp16", "Parameter storage is fp16; enter one of fp32, bf16."),
        ("attention_heads_override", 15, "Attention heads is 15; it must divide Hidden size, which is 2,048."),
    ],
    "full": [
        ("training_recipe", "soap", "Training recipe is soap; enter one of the "),
        ("sharding_stage", "ZeRO-4", "Sharding stage is ZeRO-4; enter one of "),
        ("gpu_count", 0, "GPUs is 0; enter a whole number from 1 to 1,048,576."),
        ("tensor_parallel", 3, "GPUs is 2 with Tensor parallel 3, Pipeline parallel 1 and Sequence"),
        ("kv_heads_override", 5, "Attention heads is 32; it must be a multiple of KV heads, which is 5."),
    ],
}  # fmt: skip
OPENS = {"lora": "Fits", "training": "Fits", "full": "Does not fit"}  # the worked job
BOTH: list[tuple[str, Any, str]] = [
    ("batch_size", None, "Batch size is empty; enter a whole number from 1 to 65,536."),
    ("batch_size", "8", "Batch size is 8 (text); enter a whole number from 1 to 65,536."),
    ("batch_size", "eight", "Batch size is eight; enter a whole number from 1 to 65,536."),
    ("batch_size", 0, "Batch size is 0; enter a whole number from 1 to 65,536."),
    ("batch_size", 70_000, "Batch size is 70000; enter a whole number from 1 to 65,536."),
    ("sequence_length", 2.5, "Sequence length is 2.5; enter a whole number from 1 to 1,048,576."),
    ("base_model", None, " is empty; enter one of the "),
    ("base_model", "nobody/none", " is nobody/none; enter one of the "),
    ("base_model", 5, " is 5"),
    ("base_model", "*", " is *; enter one of the "),
    ("gpu_choice", "H100", "GPU is H100; enter one of the "),
    ("gpu_choice", "NVIDIA H100 NVL", "GPU is NVIDIA H100 NVL; its usable capacity is not known: enter Own usable"),
    ("activation_checkpointing", 1, "Activation checkpointing is 1"),
    ("hidden_size_override", -5, "Own hidden size is -5; enter a whole number from 1 to 1,000,000, or leave it empty."),
    ("other_tenants_gb", "a", "Used by other programs is a; enter a number from 0 to 10,000 GB."),
    ("average_sequence_length", 0, "Average sequence is 0; enter "),
    ("name", None, "Job is empty; enter a name that no other row has."),
    ("name", "{second}", "Job is {second}; enter a name that no other row has."),
    ("name", "as TYPED below", "Job is as TYPED below; enter a name that no other row has."),
]  # fmt: skip


def test_a_wrong_cell_is_named_and_its_row_counts_nowhere(table: Table) -> None:
    name = table.book.name
    jobs = len(table.book.template["scenarios"]["jobs"])
    second = table.book.template["scenarios"]["jobs"][1]["name"]
    sizing = table.engine.get("Total_Reserved_GB")
    for key, typed, words in [*BOTH, *WRONG[name]][:: EVERY[type(table.engine).__name__]]:
        taken = typed == "{second}"
        typed, words = (second, words.format(second=second)) if taken else (typed, words)
        table.type(1, **{key: typed})
        table.calculate()
        assert words in str(table["message", 1]), (key, typed)
        assert str(table["verdict", 1]).startswith("Check "), (key, typed)
        assert table["total_reserved_gb", 1] == table.utilisation(1) == ""
        left_out = 2 if taken else 1
        counts = table.counts()
        assert (counts["Left_Out"], counts["Counted"]) == (left_out, jobs - left_out), (key, typed)
        assert table.panel()[-1][1] == jobs - left_out
        assert f"; row 1: {table['message', 1]}" in str(table.engine.get(("Scenarios", 2, 2)))
        assert (table.engine.get("Checks_Failed"), table.engine.get("Total_Reserved_GB")) == (0, sizing)
        table.type(1, **{key: table.opens_on.get(table.cell(key, 1))})
    table.calculate()
    assert table["message", 1] == "" and table["verdict", 1] == OPENS[name]


def test_any_mixture_of_faults_in_a_row_is_caught(table: Table) -> None:
    if not isinstance(table.engine, Formualizer):
        pytest.skip("one engine is enough for many mixtures; the kinds of fault are tried in each")
    rng = random.Random(11)
    for _ in range(20):
        typed = a_job(table, rng)
        for key in rng.sample(list(typed), rng.randint(1, 3)):
            typed[key] = rng.choice((-1, "nothing", "*", 1e30, True))
        table.empty(1)
        table.type(1, name="Odd", **typed)
        table.calculate()
        assert str(table["verdict", 1]).startswith("Check "), typed
        message = table["message", 1]
        assert isinstance(message, str) and not isinstance(message, ErrorValue), typed
        assert " is " in message and message.endswith("."), message


def test_a_formula_that_fails_in_a_cell_is_a_fault_in_words(table: Table) -> None:
    if not isinstance(table.engine, Formualizer):
        pytest.skip("only this engine types formulas here")
    for key, words in (
        ("batch_size", "Batch size is an error"),
        ("gpu_choice", "GPU is an error"),
        ("name", "Job is empty"),
    ):
        table.holds[table.cell(key, 1)] = "=1/0"
        table.engine._book.set_formula(*table.cell(key, 1), "=1/0")
        table.calculate()
        assert str(table["message", 1]).startswith(words)
        assert table.counts()["Left_Out"] == 1
        assert [table["verdict", row] for row in (2, 3)] == ["Tight", "Fits"]
        table.restore()


def test_every_fault_points_at_a_column_of_the_sheet(book: Book) -> None:
    """The mark on the wrong cell and the message find it by its heading."""
    sheet = openpyxl.load_workbook(book.path, data_only=True)
    heads = [cell.value for cell in sheet["Scenarios"][9]]
    place, first, last, column = _place(book, "Scenario_Inputs_Head_List")
    named = [sheet[place].cell(row, column).value for row in range(first, last + 1)]
    assert len(named) == len(inputs_of_scenarios(book.job)) + 1 + len(book.job.fault_rules)
    assert [name for name in named if heads.count(name) != 1] == []


# -- a row on Sizing


def test_a_row_sent_to_sizing_is_sized_there(table: Table) -> None:
    rng, job, jobs = random.Random(3), table.job, table.book.template["scenarios"]["jobs"]
    typed = {key: table.engine.get(public_name(key)) for key in job.inputs}
    chosen = [entry["name"] for entry in jobs][:: 1 if isinstance(table.engine, Formualizer) else 6]
    rows = {
        entry["name"]: {key: standard(job)[key] for key in MAIN[table.book.name]} | entry["inputs"] for entry in jobs
    }
    for at in range(8 if isinstance(table.engine, Formualizer) else 1):
        row = len(jobs) + 1 + at % 3
        table.empty(row)
        name = f"Random {at}"
        rows[name] = a_job(table, rng)
        table.type(row, name=name, **rows[name])
        for which in [*chosen, name] if at == 0 else [name]:
            table.engine.set(CHOICE, which.upper() if at % 2 else which)
            table.calculate()
            values = reference(table, rows[which])
            expected: dict[str, Any] = {public_name(key): values[key] for key in job.order} | {"Checks_Failed": 0.0}
            assert table.opened.differences(expected) == [], rows[which]
            own = [key for key in rows[which] if key in {o.input_name for o in job.overrides.values()}]
            assert table.engine.get("Own_Values_Count") == len(own)
            assert table.opened.sentence.casefold().startswith(f"scenario {which}: ".casefold())
    assert {key: table.engine.get(public_name(key)) for key in job.inputs} == typed
    table.engine.set(CHOICE, "As typed below")
    table.calculate()
    assert close(table.engine.get("Total_Reserved_GB"), float(job.reference()["total_reserved_gb"]))


def test_allowances_hold_for_a_row_on_sizing_and_other_inputs_do_not(table: Table) -> None:
    table.engine.set(CHOICE, "Worked example")
    table.opened.type(outside_pytorch_gb_override=3, batch_size=77, hidden_size_override=64)
    values = table.job.reference({"outside_pytorch_gb_override": 3})
    assert close(table.engine.get("Headroom_GB"), values["headroom_gb"])
    assert close(table.engine.get("Total_Reserved_GB"), float(values["total_reserved_gb"]))
    assert table.engine.get("Own_Values_Count") == 1


def test_a_faulty_or_missing_row_on_sizing_gets_no_verdict(table: Table) -> None:
    second = table.book.template["scenarios"]["jobs"][1]["name"]
    table.engine.set(CHOICE, "Worked example")
    table.type(1, batch_size="8")
    table.calculate()
    assert table.opened.sentence == (
        "Scenario Worked example: Batch size is 8 (text); enter a whole number from 1 to 65,536."
    )
    assert_withdrawn(table)
    table.type(1, batch_size=8, gpu_choice="NVIDIA H100 NVL")
    table.calculate()
    assert "its usable capacity is not known" in table.opened.sentence
    assert_withdrawn(table)
    table.type(1, gpu_choice=None)
    table.calculate()
    assert table.opened.sentence.startswith("Scenario Worked example: GPU is empty; enter one of the ")
    assert_withdrawn(table)
    for name in ("Work*", "Gone", "*", 5.0)[: 4 if isinstance(table.engine, Formualizer) else 1]:
        table.engine.set(CHOICE, name)
        table.calculate()
        shown = "5" if name == 5 else name
        assert table.opened.sentence.startswith(
            f"Job to size is {shown}; choose “As typed below”, or a name that one row"
        )
        assert_withdrawn(table)
    table.type(1, name=second, gpu_choice="NVIDIA H200 SXM")
    table.engine.set(CHOICE, second)
    table.calculate()
    assert table.opened.sentence.startswith(f"Job to size is {second}; choose ")
    table.engine.set(CHOICE, None)
    table.calculate()
    assert table.engine.get("Fit_Verdict") == OPENS[table.book.name].lower(), "an empty cell is as typed"


def assert_withdrawn(table: Table) -> None:
    """No verdict, and no figure that another sheet could take for one."""
    assert table.engine.get("Fit_Verdict") == "CHECK INPUT"
    assert table.engine.get("Checks_Failed") == 1
    held = [name for name in RESULTS if isinstance(table.engine.get(name), float)]
    assert {*held} <= {"GPU_Usable_Capacity_GB"}


def test_faults_typed_on_sizing_do_not_count_while_a_row_is_sized(table: Table) -> None:
    table.engine.set(CHOICE, "Worked example")
    table.opened.type(batch_size="eight", base_model=None, hidden_size_override="x")
    assert table.engine.get("Checks_Failed") == 0
    assert table.engine.get("Fit_Verdict") == OPENS[table.book.name].lower()


# -- the file


def test_the_sheet_says_when_a_job_stands_below_the_print_area(whole_book: Book) -> None:
    spec, opened = whole_book.template["scenarios"], Opened(whole_book, Formualizer)
    table = Table(opened)
    for row, words in ((spec["printed"], "printed_all"), (spec["printed"] + 1, "printed_part")):
        table.type(row, name=f"job {row}")
        table.calculate()
        said = [value for value in opened.engine.get_sheet("Scenarios").values() if "print area" in str(value)]
        assert said == [spec[words].replace("{rows}", str(spec["printed"]))]
    opened.engine.close()


def test_columns_have_one_formula_and_names_of_one_length(whole_book: Book) -> None:
    _, first, last, _ = _place(whole_book, list_name("name"))
    assert last - first + 1 == 200
    for key in inputs_of_scenarios(whole_book.job):
        assert _place(whole_book, list_name(key))[:3] == ("Scenarios", first, last), key
    width = _place(whole_book, list_name("message"))[3]
    lists = _place(whole_book, "Scenario_Inputs_Head_List")[3]
    ends = {"Scenarios": width, "Scenario workings": lists - 1}
    forms: dict[tuple[str, int], set[str]] = {}
    for (sheet, row, column), formula in whole_book.formulas.items():
        if first <= row <= last and column <= ends.get(sheet, 0):
            forms.setdefault((sheet, column), set()).add(r1c1(formula, row, column))
    assert len(forms) > 100
    assert [place for place, found in forms.items() if len(found) != 1] == []


def test_a_copy_of_the_last_row_extends_the_table(book: Book) -> None:
    opened = Opened(book, Formualizer)
    table = Table(opened)
    _, _, last, _ = table.places["name"]
    for (sheet, row, column), formula in book.formulas.items():
        if row == last and sheet.startswith("Scenario") and column < _place(book, "Scenario_Inputs_Head_List")[3]:
            here = f"{get_column_letter(column)}{last}"
            moved = Translator("=" + formula, here).translate_formula(f"{get_column_letter(column)}{last + 1}")
            opened.engine.set((sheet, last + 1, column), None)
            opened.engine._book.set_formula(sheet, last + 1, column, moved)
    row = table.rows + 1
    typed = a_job(table, random.Random(5))
    table.type(row, name="One more", **typed)
    table.calculate()
    values = reference(table, typed)
    assert close(table["total_reserved_gb", row], values["total_reserved_gb"])


def test_the_sheet_is_ready_to_be_typed_into(book: Book) -> None:
    sheet = openpyxl.load_workbook(book.path)["Scenarios"]
    _, first, _, column = _place(book, list_name("name"))
    assert sheet.freeze_panes == f"C{first}"
    texts = [str(cell.value or "") for row in sheet.iter_rows() for cell in row]
    assert any("copy the last row" in text for text in texts), "how to extend the table"
    assert sheet.cell(first - 1, column).value == "Blank means"
    job, rules = book.job, sheet.data_validations.dataValidation
    kinds = {str(rule.sqref).partition(":")[0]: rule.type for rule in rules}
    for key in inputs_of_scenarios(job):
        head = sheet.cell(first - 1, _place(book, list_name(key))[3]).value
        assert (head == "needed") is (key in MAIN[book.name]), key
        domain = job.inputs[key].domain
        cell = sheet.cell(first, _place(book, list_name(key))[3])
        kind = kinds[cell.coordinate]
        assert (kind == "list") is isinstance(domain, Choice), key
        assert kind in ("list", "decimal" if isinstance(domain, Number) else "whole", "custom"), key


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s["columns"].append({"input": "batchsize", "head": "B", "width": 5}), "batchsize is no input of a job"),
        (lambda s: s["jobs"].append({"name": "x", "inputs": {"lora_ranks": 5}}), "lora_ranks is no input of a job"),
        (lambda s: s.update(rows=2), "rows is 2; it must be at least 7"),
    ],
)  # fmt: skip
def test_a_slip_in_the_template_is_refused_with_its_name(
    books: dict[str, Book], tmp_path: Path, change: Any, words: str
) -> None:
    template = load_template("lora")
    change(template["scenarios"])
    with pytest.raises(ValueError, match=words):
        write_book(tmp_path / "x.xlsx", "lora", template, books["lora"].presets)


def test_an_example_that_the_presets_do_not_have_is_left_out(books: dict[str, Book], tmp_path: Path) -> None:
    template = short_template("lora")
    template["scenarios"]["jobs"][0]["inputs"] = {"base_model": "nobody/none"}
    write_book(tmp_path / "x.xlsx", "lora", template, books["lora"].presets)
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx")["Scenarios"]
    assert sheet["B12"].value == "Worked example, small card"


# -- what is read out of a planner's file


@pytest.fixture
def plan(books: dict[str, Book], tmp_path: Path) -> Path:
    """The fine-tuning workbook, to be typed into."""
    path = tmp_path / "plan.xlsx"
    path.write_bytes(books["lora"].path.read_bytes())
    return path


def write(plan: Path, row: int, **cells: Any) -> None:
    """Save values in a row of Scenarios, or the choice on Sizing."""
    package = open_package(plan)
    found = {}
    for key, value in cells.items():
        area = package.area(CHOICE if key == "choice" else list_name(key))
        found[area.sheet, area.first_row + (0 if key == "choice" else row - 1), area.first_column] = value
    package.write(found)


def test_rows_in_use_are_read_as_jobs(plan: Path) -> None:
    write(plan, 9, name="Nine", **{key: lora.inputs[key].default for key in MAIN["lora"]}, lora_dropout="on")
    write(plan, 9, hidden_size_override=1024, layer_count_override="none", batch_size=3)
    rows = scenarios_of(plan, job("lora"))
    jobs = load_template("lora")["scenarios"]["jobs"]
    assert [row.name for row in rows] == [entry["name"] for entry in jobs] + ["Nine"]
    for row, entry in zip(rows, jobs, strict=False):
        assert row.inputs == {**standard(job("lora")), **entry["inputs"]}
    assert rows[-1].inputs == {
        **standard(job("lora")), "batch_size": 3, "lora_dropout": "On", "hidden_size_override": 1024,
    }  # fmt: skip
    assert rows[-1].where.endswith("plan.xlsx, Scenarios row 20")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"batch_size": "8"}, "Scenarios row 12, job \"Worked example\": batch_size is '8'; it must be a whole number"),
        ({"gpu_choice": None}, 'Scenarios row 12, job "Worked example": gpu_choice is empty; it must be one of the '),
        ({"name": None}, "Scenarios row 12: Job is empty; it must be a name that no other row has"),
        ({"name": "support TONE"}, 'Job is "Support tone", as in Scenarios row 12; it must be a name'),
    ],
)
def test_a_row_that_cannot_be_read_is_refused_in_a_sentence(plan: Path, cells: dict[str, Any], words: str) -> None:
    write(plan, 1, **cells)
    with pytest.raises(ValueError) as refused:
        scenarios_of(plan, job("lora"))
    assert words in str(refused.value)
    assert scenario_of(plan, job("lora"), "claims triage").inputs["batch_size"] == 2, "other rows are not asked"


def test_verify_takes_the_rows_and_the_job_that_sizing_sizes(plan: Path) -> None:
    runs = runs_of_workbook(plan, "scenarios")
    assert [run.id for run in runs][:2] == ["Worked example", "Worked example, small card"]
    assert (runs[1]["batch_size"], runs[1]["gpu_choice"]) == (9, "NVIDIA T4")
    (typed,) = runs_of_workbook(plan, "scenario")
    assert typed["batch_size"] == 8
    write(plan, 1, choice="Claims triage")
    (sent,) = runs_of_workbook(plan, "scenario")
    assert (sent["base_model"], sent["batch_size"]) == ("Qwen/Qwen2.5-7B", 2)
    write(plan, 1, choice="Gone")
    with pytest.raises(ValueError, match='scenario is "Gone", which no row has; it must be one of "Worked example"'):
        runs_of_workbook(plan, "scenario")


def test_a_row_is_sized_on_the_command_line(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lora", "--workbook", str(plan), "--scenario", "claims TRIAGE", "--batch-size", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    entry = next(e for e in load_template("lora")["scenarios"]["jobs"] if e["name"] == "Claims triage")
    assert said["results"]["fit_verdict"] == lora.size(**{**entry["inputs"], "batch_size": 1})["fit_verdict"]
    assert said["inputs"]["base_model"] == "Qwen/Qwen2.5-7B" and said["inputs"]["batch_size"] == 1
    assert main(["lora", "--scenario", "x"]) == 2
    assert "--scenario is given without --workbook" in capsys.readouterr().err
    assert main(["lora", "--workbook", str(plan), "--scenario", "x"]) == 2
    assert 'scenario is "x", which no row has' in capsys.readouterr().err


def typed_card(plan: Path, cells: Mapping[str | None, Any] = {}) -> None:
    """Save a card of the planner's in the last row of GPUs, and send the first scenario there."""
    package = open_package(plan)
    values: dict[str | None, Any] = {
        None: "Rack 7",
        "usable_bytes": 20_000_000_000,
        "matmul_workspace_bytes": 8_519_680,
        "cuda": 1,
        **cells,
    }
    found = {}
    for column, value in values.items():
        area = package.area(column_name("gpus", column))
        found[area.sheet, area.last_row, area.first_column] = value
    package.write(found)
    write(plan, 1, gpu_choice="Rack 7")


@pytest.mark.parametrize(("command", "of"), [("lora", "training"), ("training", "full"), ("full", "lora")])
def test_the_workbook_of_the_other_job_is_named(
    command: str, of: str, books: dict[str, Book], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--workbook", str(books[of].path), "--scenario", "Worked example"]) == 2
    told = capsys.readouterr().err
    assert f"is the workbook of `{of}`, not of `{command}`: use that command" in told and told.count("\n") == 1


def test_a_card_typed_into_the_workbook_is_known_to_its_scenarios(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed_card(plan)
    command = ["lora", "--workbook", str(plan), "--scenario", "Worked example"]
    assert main([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["inputs"]["gpu_choice"] == "Rack 7"
    assert said["results"]["gpu_usable_capacity_gb"] == 20
    assert said["results"]["fit_verdict"] == lora.size(gpu_capacity_override_gb=20)["fit_verdict"]
    assert main([*command, "--cards"]) == 0
    assert "Rack 7" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("usable_bytes", "20 GB", 'card "Rack 7": usable_bytes is "20 GB"; it must be a number in bytes, 0 or more'),
        ("usable_bytes", None, 'card "Rack 7": usable_bytes is empty; it must be a number in bytes'),
        ("matmul_workspace_bytes", -1, "matmul_workspace_bytes is -1; it must be a number in bytes, 0 or more"),
        (None, "Rack*7", 'the card is "Rack*7"; a name may not begin with'),
        ("usable_bytes", 0, "gpu_choice is 'Rack 7'; its usable capacity is not known"),
    ],
)
def test_a_wrong_card_in_the_workbook_is_refused_in_a_sentence(
    plan: Path, column: str | None, value: Any, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    typed_card(plan, {column: value})
    assert main(["lora", "--workbook", str(plan), "--scenario", "Worked example"]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1 and "Traceback" not in told


def test_a_model_typed_into_the_workbook_is_known_to_its_scenarios(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def typed(cells: dict[str | None, Any]) -> None:
        package = open_package(plan)
        areas = {column: package.area(column_name("models", column)) for column in cells}
        package.write({(area.sheet, area.last_row, area.first_column): cells[at] for at, area in areas.items()})

    typed({None: "In house 1B", "hidden_size": 1024})
    write(plan, 1, base_model="In house 1B")
    command = ["lora", "--workbook", str(plan), "--scenario", "Worked example", "--json"]
    assert main(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["inputs"]["base_model"], said["results"]["hidden_size"]) == ("In house 1B", 1024)
    typed({"layer_form": "llamma"})
    assert main(command) == 2
    assert 'layer_form is "llamma"; it must be one of those on Presets, such as' in capsys.readouterr().err


def test_a_card_given_at_the_build_is_known_to_the_scenarios(
    books: dict[str, Book], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cards = tmp_path / "cards.csv"
    cards.write_text("name,usable_gib\nRack 7,20\n", encoding="utf-8")
    path = tmp_path / "own.xlsx"
    write_book(path, "lora", short_template("lora"), load_presets(gpus=[cards]))
    cards.unlink()
    write(path, 1, gpu_choice="Rack 7")
    assert main(["lora", "--workbook", str(path), "--scenario", "Worked example", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["results"]["gpu_usable_capacity_gb"] == 20 * 2**30 / 1e9

"""The workbook of the capacity plan: what the linter says of it, and that it plans what Python plans."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from engines import Formualizer, close

from sizing_xlsx.capacity.kinds import graphs
from sizing_xlsx.cli import main
from sizing_xlsx.formula.domains import day_of
from sizing_xlsx.planning import CapacityPlan, Offer, PlanCard, capacity_plan
from sizing_xlsx.planning.row_states import COLUMNS
from sizing_xlsx.workbook.plan import fleet, jobs, months
from sizing_xlsx.workbook.plan.book import CARD_COUNT, FLEET, JOBS, MONTH_COUNT, MONTHS, OFFERS, TEAM_COUNT, PlanBook
from sizing_xlsx.workbook.plan.build import write_plan
from sizing_xlsx.workbook.plan.grid import FIRST
from sizing_xlsx.workbook.plan.template import load_plan_template
from sizing_xlsx.workbook.rules import lint_workbook

ROWS = 14
H100, L4 = "NVIDIA H100 SXM5 80GB", "NVIDIA L4"
LORA: Mapping[str, Any] = {
    "name": "Tone", "team": "Support", "job_kind": "LoRA", "base_model": "meta-llama/Llama-3.1-8B", "batch_size": 4,
    "sequence_length": 2048, "training_examples": 40_000, "epoch_count": 2, "runs_per_month": 4,
}  # fmt: skip
SIZED: Mapping[str, Any] = {
    "name": "Vision", "job_kind": "sized elsewhere", "sized_peak_gb": 20, "sized_total_gb": 22, "sized_hours": 100,
    "runs_per_month": 30, "gpu_choice": "nvidia l4",
}  # fmt: skip
FULL: Mapping[str, Any] = {**LORA, "name": "Base", "job_kind": "Full fine-tuning", "batch_size": 1, "runs_per_month": 1}
TRAINING: Mapping[str, Any] = {
    "name": "Encoder", "team": "research", "job_kind": "Training", "base_model": "Article worked model (1.01B)",
    "batch_size": 256, "sequence_length": 100, "training_tokens": 10**10, "runs_per_month": 0.5, "gpu_choice": H100,
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[PlanBook, Path]:
    path = tmp_path_factory.mktemp("plan") / "gpu-capacity-plan.xlsx"
    return write_plan(path, rows=ROWS), path


def sheet_number(value: Any) -> Any:
    """A value of a cell as the number that it is: both readers turn days into dates, and count those of 1900 apart."""
    if not isinstance(value, date):
        return value
    day = day_of(date(value.year, value.month, value.day))
    return day - 1 if day < 61 else day


class Plan:
    """The workbook in an engine: rows are typed, and read as Python's plan has them."""

    def __init__(self, book: PlanBook, path: Path) -> None:
        self.book, self.engine = book, Formualizer(path)

    def type(self, rows: Sequence[Mapping[str, Any]], cells: Mapping[Any, Any] | None = None) -> None:
        for at in range(ROWS):
            row = rows[at] if at < len(rows) else {}
            for column in COLUMNS:
                value = row.get(column)
                if column in ("first_month", "last_month", "deadline_date"):
                    value = day_of(value)
                number = isinstance(value, int) and not isinstance(value, bool)
                self.engine.set((JOBS, FIRST + at + 1, jobs.column_of(column) + 1), float(value) if number else value)
        for target, value in (cells or {}).items():
            self.engine.set(target, value)
        self.engine.recalculate()

    def shown(self, at: int, key: str) -> Any:
        sheet, column = self.book.grid.places[key]
        return self.engine.get((sheet, FIRST + at + 1, column + 1))

    def differences(self, plan: CapacityPlan) -> list[str]:
        """Where rows, months, cards and the fleet are not those of Python."""
        found: list[str] = []

        def same(where: str, shown: Any, right: Any) -> None:
            if isinstance(right, bool | int):
                right = float(right)
            if not close(shown, right, 1e-9):
                found.append(f"{where}: {shown!r} instead of {right!r}")

        for at, row in enumerate(plan.rows):
            same(f"state of {row.name}", self.shown(at, "state"), row.state)
            same(f"counted {row.name}", self.shown(at, "counted"), row.counted)
            if row.verdict:
                same(f"card of {row.name}", self.shown(at, "card.gpu_choice"), row.gpu_choice)
                same(f"cards of {row.name}", self.shown(at, "card.gpu_count"), row.gpu_count)
                same(f"verdict of {row.name}", str(self.shown(at, "verdict")).casefold(), row.verdict)
            for number, cost in enumerate(row.offers):
                shown = self.shown(at, f"offer.{number}")
                same(f"offer {number} of {row.name}", None if isinstance(shown, str) else shown, cost)
            if row.counted:
                same(f"hours of {row.name}", self.shown(at, "taken.occupied_hours"), row.hours)
                same(f"cost of {row.name}", self.shown(at, "row.run_cost"), row.run_cost)
                same(f"cards needed by {row.name}", self.shown(at, "row.cards_needed"), row.cards_needed)
            for month, figures in enumerate(row.by_month):
                for key, right in zip(("month_card_hours", "month_cards", "month_spend"), figures, strict=True):
                    same(f"{key} of {row.name} in {month}", self.shown(at, f"m{month}.{key}"), right)
        teams = list(plan.spend_by_team.items())
        for at in range(min(len(teams), TEAM_COUNT)):
            row = months.TEAM_ROW + at + 1
            same(f"team {at}", self.engine.get((MONTHS, row, 2)), teams[at][0])
            for month, right in enumerate(teams[at][1]):
                same(f"team {at} in {month}", self.engine.get((MONTHS, row, 3 + month)), right)
        for at, card in enumerate(plan.cards):
            for month in range(MONTH_COUNT):
                for row, figures in ((months.HOURS_ROW, card.card_hours), (months.PEAK_ROW, card.cards_at_once)):
                    same(f"{card.name} in {month}", self.engine.get((MONTHS, row + at + 1, 3 + month)), figures[month])
            for column, key in enumerate(fleet.SHOWN):
                same(
                    f"{key} of {card.name}", self.engine.get((FLEET, fleet.FIRST + at + 1, 3 + column)), card.fleet[key]
                )
        same("total", self.engine.get("Plan_Total_Spend"), plan.spend)
        same("not counted", self.engine.get("Plan_Not_Counted"), len(plan.not_counted))
        same("checks", self.engine.get("Checks_Failed"), 0)
        return found


@pytest.fixture(scope="module")
def opened(made: tuple[PlanBook, Path]) -> Iterator[Plan]:
    found = Plan(*made)
    yield found
    found.engine.close()


def planned(rows: Sequence[Mapping[str, Any]], **options: Any) -> CapacityPlan:
    return capacity_plan(rows, **{"today": "2026-08-17", "first_month": "2026-09-01", **options})


def test_it_lints_clean(made: tuple[PlanBook, Path]) -> None:
    assert lint_workbook(made[1]) == []


def test_every_cell_recalculates_to_the_value_in_the_file(made: tuple[PlanBook, Path]) -> None:
    engine = Formualizer(made[1])
    formulas, values = (openpyxl.load_workbook(made[1], data_only=only) for only in (False, True))
    wrong, count = [], 0
    for sheet in formulas:
        for row in sheet.iter_rows():
            for cell in row:
                if not (isinstance(cell.value, str) and cell.value.startswith("=")):
                    continue
                count += 1
                stored, found = (
                    values[sheet.title].cell(cell.row, cell.column).value,
                    engine.get((sheet.title, cell.row, cell.column)),
                )
                numbers = [sheet_number(each) for each in (stored, found)]
                right, left = ("" if each is None else each for each in numbers)
                if not close(
                    float(left) if isinstance(left, int) else left, float(right) if isinstance(right, int) else right
                ):
                    wrong.append(f"{sheet.title}!{cell.coordinate}: {found!r} instead of {stored!r}")
    assert count > 25_000
    assert wrong == []


def test_it_opens_on_what_python_plans(opened: Plan) -> None:
    template = load_plan_template()
    plan = planned(template["jobs"])
    assert plan.spend > 10_000 and len(plan.not_counted) == 1
    assert opened.differences(plan) == []


def test_typed_rows_are_planned_as_python_does(opened: Plan) -> None:
    rows = [
        LORA,
        {**LORA, "name": "QLoRA", "recipe": "nf4 / fp4, block 64, no double quant", "lora_rank": 64, "team": "SUPPORT"},
        {**LORA, "name": "Long", "sequence_length": 32_768, "activation_checkpointing": "Off", "team": None},
        {**LORA, "name": "Two", "gpu_choice": H100, "gpu_count": 2},
        {
            **LORA,
            "name": "Sharded",
            "base_model": "Qwen/Qwen2.5-72B",
            "batch_size": 1,
            "sharding_stage": "FSDP full shard",
        },
        {**FULL, "gpu_choice": H100},
        {**FULL, "name": "Sixteen", "gpu_count": 16, "sharding_stage": "ZeRO-3", "deadline_date": "2026-12-24"},
        {**TRAINING, "first_month": "2026-10-31", "last_month": "2027-02-01"},
        SIZED,
        {**SIZED, "name": "Queue", "runs_at_once": 1, "gpu_choice": H100},
        {**SIZED, "name": "Late", "deadline_date": "2026-09-02"},
        {**SIZED, "name": "Own recipe", "recipe": "whatever", "gpu_choice": None},
    ]
    plan = planned(rows)
    assert sum(row.counted for row in plan.rows) >= 10 and plan.rows[4].gpu_count > 1
    opened.type(rows)
    assert opened.differences(plan) == []


def test_a_wrong_row_says_the_same_as_in_python(opened: Plan) -> None:
    changes: list[Mapping[str, Any]] = [
        {"name": None}, {"job_kind": "lorra"}, {"job_kind": None}, {"base_model": "Llama"}, {"base_model": None},
        {"recipe": "bf17"}, {"batch_size": 2.5}, {"batch_size": "4"}, {"sequence_length": 0}, {"training_examples": None},
        {"training_tokens": 0}, {"gpu_choice": "NVIDIA H999"}, {"gpu_count": 0}, {"runs_per_month": None},
        {"runs_per_month": -1}, {"runs_at_once": 0}, {"first_month": "soon"}, {"deadline_date": "2026-08-03"},
        {"first_month": "2026-12-01", "last_month": "2026-11-30"}, {"last_month": "2026-08-20"}, {"batch_size": 4096},
        {"batch_size": 4096, "gpu_choice": H100}, {"lora_rank": 0}, {"base_model": "*"},
        {**FULL, "gpu_choice": H100, "gpu_count": 4, "sharding_stage": "None"}, {**SIZED, "sized_total_gb": 10},
        {**SIZED, "sized_total_gb": None}, {**TRAINING, "base_model": "meta-llama/Llama-3.1-8B"},
    ]  # fmt: skip
    for start in range(0, len(changes), ROWS - 1):
        rows = [{**LORA, **change} for change in changes[start : start + ROWS - 1]]
        plan = planned([*rows, LORA])
        assert [row.counted for row in plan.rows] == [False] * len(rows) + [True]
        opened.type([*rows, LORA])
        assert opened.differences(plan) == []


def test_settings_cards_and_offers_move_the_plan_as_in_python(opened: Plan) -> None:
    rows = [
        LORA,
        {**FULL, "gpu_choice": H100},
        SIZED,
        {**SIZED, "name": "T4", "gpu_choice": "NVIDIA T4", "sized_total_gb": 14, "sized_peak_gb": 12},
    ]
    cells = {
        "Currency_Choice": "EUR", "Currency_Per_USD": 0.9, "Idle_Share": 0.0, "Engineering_Days": 3.0, "Spare_Cards": 2.0,
        "Storage_Price": 0.2, "Purchase_Price": 11_000.0, "Billing_Choice": "Reserved", "Reserved_Utilisation": 0.5,
        "Full_Sharding_Stage": "ZeRO-2", "Lora_Optimizer_Choice": "SGD",
        ("Cards", 9, 3): 1.0, ("Cards", 9, 4): float(day_of("2026-08-01")), ("Cards", 12, 2): "NVIDIA T4",
        ("Cards", 6, 6): None, ("Cards", 7, 5): 9_000.0, ("Cards", 8, 6): 16_000.0,
    }  # fmt: skip
    before = {target: opened.engine.get(target) for target in cells}
    template = load_plan_template()
    cards = [PlanCard(**card) for card in template["cards"]]
    cards[0] = PlanCard(L4)
    cards[1] = cards[1]._replace(purchase_price=9_000)
    cards[2] = cards[2]._replace(purchase_usd=16_000)
    cards[3] = cards[3]._replace(price=1.0, price_date="2026-08-01")
    settings = {
        "currency_choice": "EUR",
        "currency_per_usd": 0.9,
        "idle_share": 0,
        "engineering_days": 3,
        "spare_cards": 2,
        "storage_price": 0.2,
        "purchase_price": 11_000,
        "billing_choice": "Reserved",
        "reserved_utilisation": 0.5,
    }
    plan = planned(
        rows, cards=[*cards, PlanCard("NVIDIA T4")], offers=[Offer(**offer) for offer in template["offers"]], settings=settings,
        of_kinds={"full": {"sharding_stage": "ZeRO-2"}, "lora": {"optimizer_choice": "SGD"}},
    )  # fmt: skip
    assert [row.counted for row in plan.rows] == [True] * 4 and not plan.rows[3].priced
    uses = [card.fleet["break_even_utilisation"] for card in plan.cards]
    assert "not known" in uses and any(isinstance(use, float) for use in uses)
    opened.type(rows, cells)
    try:
        assert opened.differences(plan) == []
        summary = [opened.engine.get(("Summary", row, 7)) for row in range(1, 60)]
        assert "not known" in summary  # of the T4, which has no price
        blank = planned(rows, cards=[*cards, PlanCard("NVIDIA T4")], settings={**settings, "storage_price": None,
                        "purchase_price": None, "power_price": None}, offers=[Offer(**o) for o in template["offers"]],
                        of_kinds={"full": {"sharding_stage": "ZeRO-2"}, "lora": {"optimizer_choice": "SGD"}})  # fmt: skip
        opened.type(rows, {"Storage_Price": None, "Purchase_Price": None, "Power_Price": None})
        assert opened.differences(blank) == []
    finally:
        opened.type([], before)


def test_another_day_and_month_move_the_plan_as_in_python(opened: Plan) -> None:
    rows = [LORA, {**LORA, "name": "Due", "deadline_date": "2027-01-15"}, SIZED]
    before = {name: opened.engine.get(name) for name in ("Today_Date", "Plan_Start")}
    opened.type(rows, {"Today_Date": float(day_of("2026-12-10")), "Plan_Start": float(day_of("2026-11-20"))})
    try:
        plan = planned(rows, today="2026-12-10", first_month="2026-11-20")
        assert plan.months[:2] == [date(2026, 11, 1), date(2026, 12, 1)] and plan.months[-1] == date(2027, 10, 1)
        assert opened.differences(plan) == []
        opened.type(rows, {"Today_Date": None})
        assert str(opened.shown(1, "state")).startswith("Deadline is 2027-01-15 without Today")
    finally:
        opened.type([], before)


def test_a_wrong_setting_withholds_the_totals(opened: Plan) -> None:
    opened.type([LORA], {"Idle_Share": -1.0})
    assert opened.engine.get("Settings_Faults") == 1
    assert str(opened.engine.get((JOBS, 2, 2))).startswith("A setting is wrong")
    opened.type([LORA], {"Idle_Share": 0.1})
    assert opened.engine.get("Settings_Faults") == 0


def test_a_wrong_card_is_named_and_no_card_of_the_plan(opened: Plan) -> None:
    opened.type([{**LORA, "gpu_choice": L4}], {("Cards", 6, 3): -2.0})
    assert "Not a card of the plan" in str(opened.engine.get(("Cards", 6, 9)))
    assert str(opened.shown(0, "state")).startswith("GPU is NVIDIA L4; it must be one of the cards on the sheet Cards")
    opened.type([{**LORA, "gpu_choice": L4}], {("Cards", 6, 3): 2.0})
    assert "without its date" in str(opened.engine.get(("Cards", 6, 9)))
    assert "date of own price" in str(opened.shown(0, "state")).casefold()
    opened.type([], {("Cards", 6, 3): None})


def test_an_empty_plan_has_no_money_and_no_fault(opened: Plan) -> None:
    opened.type([])
    assert opened.engine.get("Plan_Total_Spend") == 0
    assert opened.engine.get("Plan_Not_Counted") == 0
    assert opened.engine.get("Checks_Failed") == 0


def test_two_builds_are_the_same_bytes() -> None:
    first, second = io.BytesIO(), io.BytesIO()
    write_plan(first, rows=3 + len(load_plan_template()["jobs"]))
    write_plan(second, rows=3 + len(load_plan_template()["jobs"]))
    assert first.getvalue() == second.getvalue()


def test_names_of_what_is_typed_reach_every_row(made: tuple[PlanBook, Path]) -> None:
    names = openpyxl.load_workbook(made[1]).defined_names
    for column in COLUMNS:
        assert f"${FIRST + 1}:" in names[jobs.list_name(column)].attr_text
    assert len(graphs().kinds) == 4 and CARD_COUNT == 10 and OFFERS in openpyxl.load_workbook(made[1]).sheetnames


def test_the_command_writes_a_plan_and_reads_back_what_is_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed, first, second = tmp_path / "jobs.csv", tmp_path / "plan.xlsx", tmp_path / "again.xlsx"
    listed.write_text(
        "name,team,job_kind,base_model,batch_size,sequence_length,training_examples,runs_per_month,gpu_choice,deadline_date\n"
        "Tone,Support,LoRA,meta-llama/Llama-3.1-8B,4,2048,40000,8,,2027-01-15\n"
        "Bad,Support,LoRA,Llama,4,2048,40000,8,,\n"
    )
    assert (
        main(["plan", str(listed), "--today", "2026-08-17", "--first-month", "2026-09-01", "--workbook", str(first)])
        == 0
    )
    assert main(["plan", str(listed), "--workbook", str(first)]) == 2  # a file that is there stays
    book = openpyxl.load_workbook(first)
    book["Jobs"].cell(FIRST + 4, jobs.column_of("name") + 1).value = "Third"
    book["Cards"].cell(9, 3).value, book["Cards"].cell(9, 4).value = 2.5, date(2026, 8, 1)
    book["Settings"][book.defined_names["Idle_Share"].attr_text.partition("!")[2].replace("$", "")].value = 0.25
    book.save(first)
    assert main(["plan", str(first), "--workbook", str(second)]) == 0
    capsys.readouterr()
    said = []
    for path in (first, second):
        assert main(["plan", str(path), "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert [row["name"] for row in said[1]["jobs"]] == ["Tone", "Bad", "", "Third"]
    assert [row["counted"] for row in said[1]["jobs"]] == [True, False, False, False]
    days = {"today": "2026-08-17", "first_month": "2026-09-01"}
    row = {**LORA, "epoch_count": None, "runs_per_month": 8, "deadline_date": "2027-01-15"}
    template = load_plan_template()
    cards = [PlanCard(**card) for card in template["cards"]]
    cards[3] = PlanCard(H100, 2.5, "2026-08-01", None, cards[3].purchase_usd)
    alone = capacity_plan([row], **days, cards=cards, settings={"idle_share": 0.25})
    assert said[1]["spend"] == pytest.approx(alone.spend)
    engine = Formualizer(second)
    assert engine.get("Plan_Total_Spend") == pytest.approx(alone.spend)


def test_the_command_prints_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = tmp_path / "jobs.csv"
    listed.write_text(
        "name,job_kind,sized_peak_gb,sized_total_gb,sized_hours,runs_per_month,gpu_choice\nA,Sized elsewhere,10,12,100,3,NVIDIA L4\n"
    )
    assert main(["plan", str(listed), "--first-month", "2026-09-01"]) == 0
    said = capsys.readouterr().out
    assert "1 x NVIDIA L4" in said and "0 of 1 job not counted" in said and "Sep 2026" in said
    listed.write_text("nmae\nA\n")
    assert main(["plan", str(listed)]) == 2
    assert "'nmae' is no column of a plan" in capsys.readouterr().err


def test_a_team_of_one_letter_has_its_money(opened: Plan) -> None:
    rows = [{**LORA, "team": "R"}, {**LORA, "name": "Other", "team": "support"}]
    plan = planned(rows)
    assert plan.spend_by_team["R"][1] > 0
    opened.type(rows)
    assert opened.differences(plan) == []


def test_the_legend_lists_what_the_chart_shows_and_no_more(made: tuple[PlanBook, Path], opened: Plan) -> None:
    template = load_plan_template()
    opened.type(template["jobs"])
    teams = list(dict.fromkeys(job["team"] for job in template["jobs"]))
    plan = planned(template["jobs"])
    needed = [card.name for card in plan.cards if any(card.cards_at_once)]
    cells = openpyxl.load_workbook(made[1])
    for sheet, found in (("Summary", [teams]), (MONTHS, [teams, needed, needed])):
        marks = [
            (cell.row, cell.column)
            for row in cells[sheet].iter_rows()
            for cell in row
            if isinstance(cell.value, str) and cell.value.endswith('"■")')
        ]
        assert len(marks) == 7 * len(found)
        entries = [(opened.engine.get((sheet, *at)), opened.engine.get((sheet, at[0], at[1] + 1))) for at in marks]
        for at, names in enumerate(found):
            shown = [name for mark, name in entries[7 * at : 7 * at + 7] if mark]
            assert shown == names, (sheet, at)
            assert all(not name for mark, name in entries[7 * at : 7 * at + 7] if not mark)
    with zipfile.ZipFile(made[1]) as archive:
        charts = [archive.read(name) for name in archive.namelist() if name.startswith("xl/charts/chart")]
    assert len(charts) == 4 and not any(b"<c:legend>" in chart for chart in charts)

"""The capacity plan as one of the workbooks of a build: emitted, the same twice, refused, and carried over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from carry_books import column, named
from engines import Formualizer, libreoffice_available, saved_by_libreoffice
from openpyxl.styles import Font

from sizing_xlsx import cli
from sizing_xlsx.jobs import JOBS, plain_job
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook import build
from sizing_xlsx.workbook.build import BOOKS, targets
from sizing_xlsx.workbook.carry import rebuild, record
from sizing_xlsx.workbook.carry.report import Report
from sizing_xlsx.workbook.plan import carried
from sizing_xlsx.workbook.plan.build import plan_bytes
from sizing_xlsx.workbook.plan.template import load_plan_template
from sizing_xlsx.workbook.rules import lint_workbook
from sizing_xlsx.workbook.write_back import job_of

FILE = "gpu-capacity-plan.xlsx"
ROWS = 12
NEW_JOB = {
    "Plan_Name_List": "Night batch", "Plan_Team_List": "Ops", "Plan_Job_Kind_List": "LoRA",
    "Plan_Base_Model_List": "meta-llama/Llama-3.1-8B", "Plan_Batch_Size_List": 2, "Plan_Sequence_Length_List": 1024,
    "Plan_Training_Examples_List": 5000, "Plan_Runs_Per_Month_List": 3,
}  # fmt: skip


@pytest.fixture(autouse=True)
def plan_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is built alone, with fewer rows: a row is as the others, and each takes programs time."""
    monkeypatch.setattr(build, "BOOKS", ("plan",))
    monkeypatch.setattr(carried, "ROW_COUNT", ROWS)
    monkeypatch.setattr(carried, "SPARE_ROWS", 2)
    monkeypatch.setattr(rebuild, "plan_bytes", short_plan)


def short_plan(template: Mapping[str, Any], presets: Any, folder: Any = None, rows: int = 0) -> bytes:
    return plan_bytes(template, presets, folder, rows or ROWS)


@pytest.fixture(scope="module")
def shipped() -> bytes:
    """The plan as a build makes it."""
    return short_plan(load_plan_template(), load_presets())


@pytest.fixture
def path(shipped: bytes, tmp_path: Path) -> Path:
    """A folder with the plan as shipped."""
    path = tmp_path / FILE
    path.write_bytes(shipped)
    return path


def edit(path: Path, change: Callable[[Any], None]) -> None:
    """A planner's work, saved through openpyxl."""
    book = openpyxl.load_workbook(path)
    change(book)
    book.save(path)


def type_job(book: Any, at: int, typed: Mapping[str, Any]) -> None:
    for name, value in typed.items():
        column(book, name)[at].value = value


def rebuilt(folder: Path) -> Report:
    (report,) = rebuild.rebuild(folder)
    return report


# -- emitted


def test_a_build_emits_the_plan_beside_the_sizing_workbooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "BOOKS", BOOKS)
    assert [path.name for _, path in targets(tmp_path).values()] == [
        "gpu-finetune-memory-sizing.xlsx",
        "gpu-training-memory-sizing.xlsx",
        "gpu-full-finetune-sizing.xlsx",
        "gpu-inference-sizing.xlsx",
        FILE,
    ]


def test_it_opens_on_jobs_of_every_kind_and_two_teams(shipped: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(shipped)
    book = openpyxl.load_workbook(tmp_path / FILE, data_only=True)
    kinds = {cell.value for cell in column(book, "Plan_Job_Kind_List")} - {None}
    assert {"LoRA", "Training", "Full fine-tuning"} <= kinds
    assert len({cell.value for cell in column(book, "Plan_Team_List")} - {None}) >= 2
    assert named(book, "Checks_Failed").value == 0
    assert named(book, "Settings_Faults").value == 0
    assert named(book, "Plan_Total_Spend").value > 0
    assert lint_workbook(tmp_path / FILE) == []


def test_builds_of_other_processes_are_the_same_bytes(shipped: bytes, tmp_path: Path) -> None:
    """Another process orders its sets otherwise."""
    code = (
        "import sys; from pathlib import Path; from sizing_xlsx.workbook.plan.build import write_plan; "
        "write_plan(Path(sys.argv[1]), rows=int(sys.argv[2]))"
    )
    for seed in ("1", "4242"):
        words = [sys.executable, "-c", code, str(tmp_path / FILE), str(ROWS)]
        subprocess.run(words, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        assert (tmp_path / FILE).read_bytes() == shipped, seed


def test_a_second_build_leaves_it(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.stat()
    assert cli.main(["build", "--output", str(path.parent), "--json"]) == 0
    assert '"found": "same"' in capsys.readouterr().out
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


# -- refused, nothing touched


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    assert cli.main(["build", "--output", str(path.parent)]) == 2
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and str(path) in said
    return said


def test_what_is_no_plan_is_never_overwritten(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shipped = path.read_bytes()
    path.write_bytes(b"a letter")
    assert "no zip file" in refused(path, capsys)
    path.write_bytes(shipped[: len(shipped) // 2])
    assert "cut short" in refused(path, capsys)
    openpyxl.Workbook().save(path)
    assert "this program has not made (it lacks names such as Plan_Total_Spend)" in refused(path, capsys)


def test_a_plan_in_the_place_of_a_sizing_workbook_is_refused_too(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "BOOKS", ("training",))
    there = path.rename(path.with_name("gpu-training-memory-sizing.xlsx"))
    assert "plans capacity, and the workbook of that name sizes training; move it away" in refused(there, capsys)


def test_a_plan_that_is_open_elsewhere_or_of_a_later_version_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = path.with_name(f"~${FILE}")
    owner.write_bytes(b"x")
    assert "is open in Excel" in refused(path, capsys)
    owner.unlink()
    edit(path, lambda book: setattr(named(book, "Record_Version"), "value", "9.1.0"))
    assert "was made by sizing_xlsx 9.1.0" in refused(path, capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["diff", FILE, FILE], "is a capacity plan, which diff does not compare"),
        (["lora", "--workbook", FILE, "--scenario", "x"], "is a capacity plan, which has no Scenarios"),
    ],
    ids=["diff", "scenario"],
)
def test_commands_that_size_one_job_say_that_it_is_a_plan(
    path: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(path.parent)
    before = path.read_bytes()
    assert cli.main(words) == 2
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1 and path.read_bytes() == before


def test_a_plan_has_no_runs_to_write_into(path: Path) -> None:
    with pytest.raises(ValueError, match="is a capacity plan, which has no table of runs"):
        job_of(path, {name: plain_job(name, load_presets()) for name in JOBS})


# -- carried over


def test_rows_settings_cards_and_offers_go_over_with_their_values(path: Path) -> None:
    def work(book: Any) -> None:
        jobs = len([cell for cell in column(book, "Plan_Name_List") if cell.value])
        type_job(book, jobs, NEW_JOB)
        type_job(book, 0, {"Plan_Batch_Size_List": 8, "Plan_Name_List": "Support tone, v2"})
        type_job(book, 11, {"Plan_Name_List": "far below"})  # a row that is not whole keeps its place
        named(book, "Idle_Share").value = 0.25
        named(book, "Lora_LoRA_Rank").value = 32
        column(book, "Cards_Price_List")[0].value = 0.55
        column(book, "Cards_Price_Date_List")[0].value = 46000
        column(book, "Offers_Count_List")[0].value = 3

    edit(path, work)
    before = path.read_bytes()
    report = rebuilt(path.parent)
    assert report.found == "carried over"
    assert report.carried["input"] == ["Idle_Share 0.25", "Lora_LoRA_Rank 32"]
    assert report.carried["job"] == ["Support tone, v2", "Night batch", "far below"]
    assert report.carried["card"] == ["NVIDIA L4"] and report.carried["offer"] == ["NVIDIA L4"]
    assert report.backup is not None and report.backup.read_bytes() == before
    was, now = openpyxl.load_workbook(report.backup), openpyxl.load_workbook(path)
    stored = openpyxl.load_workbook(path, data_only=True)
    for name in record_of(path).typed:
        before_it, after_it = ([cell.value for cell in column_or_cell(book, name)] for book in (was, now))
        assert after_it == before_it + [None] * (len(after_it) - len(before_it)), name
    assert named(stored, "Plan_Jobs_Counted").value == 8  # figures are stored, not left for the next program
    assert named(stored, "Checks_Failed").value == 0
    with Formualizer(path) as opened:
        for name in ("Plan_Total_Spend", "Plan_Jobs_Counted", "Plan_Not_Counted", "Plan_Peak_Cards"):
            assert opened.get(name) == pytest.approx(named(stored, name).value, rel=1e-9), name
    after = path.read_bytes()
    assert rebuilt(path.parent).found == "same" and path.read_bytes() == after


def record_of(path: Path) -> record.Record:
    from sizing_xlsx.workbook.carry.old_book import OldBook

    found = OldBook(path.read_bytes(), path.name).record
    assert found is not None
    return found


def column_or_cell(book: Any, name: str) -> list[Any]:
    _, area = next(iter(book.defined_names[name].destinations))
    return column(book, name) if ":" in area else [named(book, name)]


def test_what_is_wrong_stays_as_typed_and_is_named(path: Path) -> None:
    def work(book: Any) -> None:
        type_job(book, 0, {"Plan_Base_Model_List": "a model of ours", "Plan_Batch_Size_List": "many"})
        type_job(book, 1, {"Plan_First_Month_List": "2026-10-01", "Plan_Epoch_Count_List": True})
        named(book, "Idle_Share").value = "a tenth"
        named(book, "Plan_Start").value = "2026-10-01"
        column(book, "Cards_Card_List")[5].value = "a card of ours"
        column(book, "Offers_Count_List")[1].value = 0.5

    edit(path, work)
    report = rebuilt(path.parent)
    book = openpyxl.load_workbook(path)
    assert column(book, "Plan_Base_Model_List")[0].value == "a model of ours"
    assert column(book, "Plan_Batch_Size_List")[0].value == "many"
    assert column(book, "Plan_First_Month_List")[1].value == "2026-10-01"
    assert column(book, "Plan_Epoch_Count_List")[1].value is True
    assert (named(book, "Idle_Share").value, named(book, "Plan_Start").value) == ("a tenth", "2026-10-01")
    assert column(book, "Cards_Card_List")[5].value == "a card of ours"
    assert column(book, "Offers_Count_List")[1].value == 0.5
    assert report.gone == [] and report.lost == []
    with Formualizer(path) as opened:
        assert opened.get("Settings_Faults") == 2.0
        said = " ".join(str(value) for value in opened.get_sheet("Settings").values())
        assert "a tenth; it must be" in said
        cards = [str(value) for value in opened.get_sheet("Cards").values()]
        wrong = load_plan_template()["cards_sheet"]
        assert wrong["wrong_card"] in cards and wrong["wrong_offer"] in cards
        assert any("a model of ours" in str(value) for value in opened.get_sheet("Jobs").values())


def test_emptied_tables_stay_empty_and_a_plan_of_other_rows_finds_its_place(tmp_path: Path, shipped: bytes) -> None:
    """A plan with fewer rows than this version's, and one with more."""
    path, template = tmp_path / FILE, load_plan_template()
    path.write_bytes(plan_bytes({**template, "jobs": []}, load_presets(), rows=5))
    edit(path, lambda book: type_job(book, 4, NEW_JOB))
    report = rebuilt(tmp_path)
    assert report.carried["job"][-1] == "Night batch"
    assert [cell.value for cell in column(openpyxl.load_workbook(path), "Plan_Name_List")] == [
        *[None] * 4, "Night batch", *[None] * 7,
    ]  # fmt: skip
    many = [{**template["jobs"][0], "name": f"job {at}"} for at in range(14)]
    path.write_bytes(plan_bytes({**template, "jobs": many}, load_presets(), rows=16))
    report = rebuilt(tmp_path)  # opened on a list of one's own, and never touched since
    names = [cell.value for cell in column(openpyxl.load_workbook(path), "Plan_Name_List")]
    assert names[:14] == [row["name"] for row in many] and len(names) == 16
    assert report.found == "same"


@pytest.mark.skipif(not libreoffice_available()[0], reason=libreoffice_available()[1])
def test_rows_put_between_the_rows_of_a_table_go_over_or_are_named(path: Path, tmp_path: Path) -> None:
    """A plan is unlocked, a row is put in, and nothing else of the table is touched."""
    book = openpyxl.load_workbook(path)
    places = [(column(book, name)[1].parent.title, column(book, name)[1].row, 1) for name in ("Plan_Name_List", "Cards_Card_List")]
    last = [cell.value for cell in column(book, "Cards_Card_List")][-1]
    saved = saved_by_libreoffice(path, tmp_path / "saved.xlsx", inserted=places)
    shutil.copyfile(saved, path)

    def work(book: Any) -> None:
        type_job(book, 1, NEW_JOB)
        column(book, "Cards_Card_List")[1].value = "NVIDIA L4"
        column(book, "Cards_Card_List")[-1].value = last or "NVIDIA T4"

    edit(path, work)
    report = rebuilt(path.parent)
    assert "Night batch" in report.carried["job"]
    names = [cell.value for cell in column(openpyxl.load_workbook(path), "Plan_Name_List")]
    assert names[1] == "Night batch" and len([name for name in names if name]) == len(load_plan_template()["jobs"]) + 1
    assert [line for line in report.gone if line.startswith("card ") and "a plan has 10 rows of cards" in line]


def test_own_sheets_notes_and_formulas_go_over(path: Path) -> None:
    def work(book: Any) -> None:
        own = book.create_sheet("Budget", 2)
        spend, name = named(book, "Plan_Total_Spend"), column(book, "Plan_Name_List")[1]
        own["A1"], own["A1"].font = "=Plan_Total_Spend*2", Font(bold=True, color="FF9C3400")
        own["A2"] = f"='{spend.parent.title}'!{spend.coordinate}"
        own["A3"] = f"='{name.parent.title}'!{name.coordinate}"
        own["A4"] = 4
        price = column(book, "Cards_Price_List")[2]
        own["A5"] = f"={price.parent.title}!{price.coordinate}"
        column(book, "Cards_Price_List")[2].value = 1.75
        column(book, "Cards_Price_Date_List")[2].value = 46000
        column(book, "Plan_Runs_Per_Month_List")[0].value = "=Budget!A4*3"
        named(book, "Transfer_GB").value = "=Budget!A4"
        book["Summary"].cell(90, 3).value = "ask procurement"

    edit(path, work)
    report = rebuilt(path.parent)
    assert report.carried["own sheet"] == ["Budget"] and report.carried["note"] == ["Summary!C90"]
    assert report.carried["input"] == ["Transfer_GB =Budget!A4"] and report.lost == [] and report.gone == []
    assert report.carried["formula of job"] == ["Support tone"]
    book = openpyxl.load_workbook(path)
    assert book["Budget"]["A1"].font.bold
    assert column(book, "Plan_Runs_Per_Month_List")[0].value == "=Budget!A4*3"
    with Formualizer(path) as opened:
        spend = opened.get("Plan_Total_Spend")
        assert opened.get(("Budget", 1, 1)) == pytest.approx(2 * spend) and spend > 0
        assert opened.get(("Budget", 2, 1)) == pytest.approx(spend)
        assert opened.get(("Budget", 3, 1)) == "Legal drafts"
        assert opened.get(("Budget", 5, 1)) == 1.75
        assert opened.get("Transfer_GB_In_Force") == 4.0
        assert "ask procurement" in opened.get_sheet("Carried notes").values()
    after = path.read_bytes()
    assert rebuilt(path.parent).found == "same" and path.read_bytes() == after


def test_a_plan_without_a_record_is_carried_by_its_names(path: Path) -> None:
    def work(book: Any) -> None:
        del book["Record"]
        for name in [name for name in book.defined_names if name.startswith("Record_")]:
            del book.defined_names[name]
        type_job(book, 8, NEW_JOB)
        named(book, "Spare_Cards").value = 3
        column(book, "Cards_Price_List")[1].value = 1.1

    edit(path, work)
    report = rebuilt(path.parent)
    assert report.carried == {"input": ["Spare_Cards 3"], "job": ["Night batch"], "card": ["NVIDIA L40S"]}
    assert "kept a record" in "\n".join(report.lines()) and report.backup is not None
    assert column(openpyxl.load_workbook(path), "Plan_Name_List")[8].value == "Night batch"


def test_a_plan_with_macros_stays_and_the_new_one_stands_beside(path: Path) -> None:
    from sizing_xlsx.workbook.carry.draft import Draft

    draft = Draft(path.read_bytes(), "it")
    area = draft.book.place_of("Spare_Cards")
    assert area is not None
    draft.put(area.sheet, area.first_row, area.first_column, 2)
    draft.add("xl/vbaProject.bin", b"x")
    draft.link(draft.book.main, "http://schemas.microsoft.com/office/2006/relationships/vbaProject", "xl/vbaProject.bin")
    path.write_bytes(draft.file())
    before = path.read_bytes()
    report = rebuilt(path.parent)
    assert path.read_bytes() == before and report.file.name == "gpu-capacity-plan (new).xlsx"
    assert named(openpyxl.load_workbook(report.file), "Spare_Cards").value == 2


def test_a_plan_written_from_a_list_knows_its_jobs_for_the_planners(tmp_path: Path) -> None:
    """What `plan JOBS.csv --workbook` wrote is carried over by a build, though nobody has typed in it since."""
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("name,job_kind,sized_peak_gb,sized_total_gb,sized_hours,gpu_choice,runs_per_month\n"
                    "Ours,Sized elsewhere,10,12,5,NVIDIA L4,2\n", encoding="utf-8")  # fmt: skip
    out = tmp_path / "out"
    out.mkdir()
    words = ["plan", str(jobs), "--today", "2026-09-10", "--workbook", str(out / FILE)]
    assert cli.main(words) == 0
    report = rebuilt(out)
    assert report.carried.get("job", [])[:1] == ["Ours"]
    book = openpyxl.load_workbook(out / FILE)
    assert [cell.value for cell in column(book, "Plan_Name_List")][:2] == ["Ours", None]
    shutil.rmtree(out)

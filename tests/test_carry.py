"""A rebuild over workbooks that planners have worked in: what is theirs is there again, and computes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from carry_books import (
    PRICES,
    column,
    named,
    newer_presets,
    older_workbook,
    planners,
    scenario_names,
)  # fmt: skip
from engines import Formualizer, LibreOffice, close, libreoffice_available, saved_by_libreoffice
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.workbook.defined_name import DefinedName

from sizing_xlsx import cli
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook import build
from sizing_xlsx.workbook.build import book_bytes, load_template, workbook_job
from sizing_xlsx.workbook.carry import files, rebuild, record
from sizing_xlsx.workbook.carry.alignment import align
from sizing_xlsx.workbook.carry.changes import changes
from sizing_xlsx.workbook.carry.draft import Draft
from sizing_xlsx.workbook.carry.old_book import OldBook
from sizing_xlsx.workbook.carry.own_files import with_kept
from sizing_xlsx.workbook.carry.record import OwnFile
from sizing_xlsx.workbook.carry.renames import read_renames
from sizing_xlsx.workbook.carry.report import Report
from sizing_xlsx.workbook.carry.shapes import digest, drawing_digest, shape
from sizing_xlsx.workbook.own_runs import OwnRun

FILE = "gpu-training-memory-sizing.xlsx"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
INPUTS = {"Batch_Size": 48, "Other_Users_GB": 3.5, "GPU_Choice": "NVIDIA L4", "Activation_Checkpointing": "On"}
with_libreoffice = pytest.mark.skipif(not libreoffice_available()[0], reason=libreoffice_available()[1])


@pytest.fixture(autouse=True)
def one_workbook(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smaller of the two workbooks does: nothing here differs between them."""
    monkeypatch.setattr(build, "WORKBOOKS", ("training",))


@pytest.fixture(scope="session")
def fresh() -> bytes:
    """The training workbook of this version, as a build makes it."""
    return book_bytes("training", load_template("training"), load_presets())


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook of an earlier version, not edited."""
    return older_workbook(tmp_path_factory.mktemp("old") / FILE)


@pytest.fixture(scope="session")
def presets_now(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The presets folder of a later release."""
    return newer_presets(tmp_path_factory.mktemp("newer") / "presets")


@pytest.fixture(scope="session")
def worked_in(old: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The earlier workbook after a planner's work, saved through openpyxl."""
    path = tmp_path_factory.mktemp("worked") / FILE
    return path, planners(old, path, INPUTS)


@pytest.fixture(scope="session", params=["openpyxl", pytest.param("libreoffice", marks=with_libreoffice)])
def carried(
    request: pytest.FixtureRequest,
    worked_in: tuple[Path, dict[str, Any]],
    presets_now: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Report, dict[str, Any]]:
    """The planner's workbook, saved by either program, after a build with later presets; the report; what was typed."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "libreoffice":
        saved_by_libreoffice(worked_in[0], folder / FILE)
    else:
        shutil.copy(worked_in[0], folder / FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "WORKBOOKS", ("training",))
        (report,) = rebuild.rebuild(folder, load_presets(presets_now), presets_now)
    return folder / FILE, report, worked_in[1]


# -- a planner's months


def test_inputs_rows_and_prices_are_there(carried: tuple[Path, Report, dict[str, Any]]) -> None:
    path, report, typed = carried
    book = openpyxl.load_workbook(path)
    assert named(book, "Batch_Size").value == 48
    assert named(book, "Other_Tenants_GB").value == 3.5
    assert named(book, "GPU_Choice").value == "NVIDIA L4 24GB"
    assert named(book, "Activation_Checkpointing").value == "On"
    prices = dict(
        zip(
            [c.value for c in column(book, "GPUs_Names_List")],
            column(book, "GPUs_Price_USD_Per_Hour_List"),
            strict=True,
        )
    )
    dates = dict(zip(prices, column(book, "GPUs_Price_As_Of_List"), strict=True))
    for card, price in PRICES.items():
        now = "NVIDIA L4 24GB" if card == "NVIDIA L4" else card
        assert (prices[now].value, dates[now].value) == (price, "2026-09, our contract")
    assert prices["NVIDIA T4 again"].value != PRICES["NVIDIA T4"]
    runs = [cell.value for cell in column(book, "Validation_Run")]
    for ident, cells in typed["runs"].items():
        for name, value in cells.items():
            assert column(book, name)[runs.index(ident)].value == value
    for name in scenario_names(book.defined_names):
        wanted = [row[name] for row in typed["scenarios"] if name in row]
        assert [cell.value for cell in column(book, name)][1 : 1 + len(wanted)] == wanted
    assert report.found == "carried over"
    assert sorted(report.carried["price"]) == sorted(PRICES)
    assert report.carried["run"] == list(typed["runs"])


def test_the_report_names_the_renames(carried: tuple[Path, Report, dict[str, Any]]) -> None:
    _, report, _ = carried
    assert report.renamed == {"Other_Users_GB": "Other_Tenants_GB", "Leeway_GB": "Headroom_GB"}
    assert "Batch_Size" not in str(report.renamed), "a rename that the old workbook has seen already"
    told = "\n".join(report.lines())
    assert "Leeway_GB is Headroom_GB now" in told
    assert "own sheet: Plan '27" in told
    assert json.dumps(report.as_json())
    assert not report.gone
    assert not report.lost


@pytest.mark.parametrize("engine", [Formualizer, pytest.param(LibreOffice, marks=with_libreoffice)])
def test_their_formulas_still_compute(carried: tuple[Path, Report, dict[str, Any]], engine: Any) -> None:
    path, _, _ = carried
    names = ("Peak_Allocated_GB", "Headroom_GB", "Other_Tenants_GB", "Checks_Failed")
    opened = engine(path)
    try:
        peak, headroom, others, failed = opened.get_many(names)
        found = opened.get_many([("Plan '27", row, 2) for row in range(2, 10)])
        prices = [v for v in _column(opened, path, "GPUs_Price_USD_Per_Hour_List") if isinstance(v, float)]
        notes = opened.get_sheet("Carried notes")
    finally:
        opened.close()
    assert failed == 0
    wanted = [peak * 2, headroom + others, peak + 1, 480.0, PRICES["NVIDIA T4"] * 24, sum(prices)]
    wanted += [peak * 2 + headroom + others + peak + 1 + 480, 8.0]
    for value, right in zip(found, wanted, strict=True):
        assert close(value, right, 1e-9), (found, wanted)
    said = {notes.get((row, 1)): notes.get((row, 3)) for row in range(4, 9)}
    assert 7.0 in said.values()
    assert 7.0 * 48 in said.values(), "the formula of the margin is live"
    assert "ask for two cards" in said.values()
    assert said["Sizing!C3"] is not None, "a remark on a cell of ours"


def _column(opened: Any, path: Path, name: str) -> list[Any]:
    cells = column(openpyxl.load_workbook(path), name)
    return list(opened.get_many([(cell.parent.title, cell.row, cell.column) for cell in cells]))


def test_the_look_of_their_sheet_is_there(carried: tuple[Path, Report, dict[str, Any]]) -> None:
    path, _, _ = carried
    book = openpyxl.load_workbook(path)
    assert book.sheetnames.index("Plan '27") == 3, "where it stood"
    plan = book["Plan '27"]
    assert (plan["A1"].font.size, plan["A1"].font.bold, plan["A1"].fill.fgColor.rgb[-6:]) == (17, True, "FFEE00")
    assert plan["A1"].font.color.rgb[-6:] == "9C3400"
    assert plan["B2"].number_format.replace("\\ ", " ").replace('"', "") == "0.000 GB, mine"
    assert [str(area) for area in plan.merged_cells.ranges] == ["D1:F1"]
    assert abs(plan.column_dimensions["A"].width - 41) < 1
    assert "look here" in plan["B2"].comment.text
    assert plan["D4"].hyperlink.target == "https://example.com/plan"
    (rule,) = [rule for rules in plan.conditional_formatting for rule in rules.rules]
    assert rule.formula == ["Headroom_GB"]
    assert rule.dxf.fill.bgColor.rgb[-6:] == "00FF00"
    (choice,) = plan.data_validations.dataValidation
    assert choice.formula1.lstrip("=") == "GPUs_Names_List"
    assert [len(book[sheet]._charts) for sheet in ("Plan '27", "Carried notes")] == [1, 1]
    (series,) = plan._charts[0].series
    assert series.val.numRef.f.replace("$", "") == "'Plan ''27'!B2:B5"
    assert book.defined_names["Plan_Total"].attr_text.replace("$", "") == "'Plan ''27'!B8"


def test_the_file_as_it_was_stays_beside(carried: tuple[Path, Report, dict[str, Any]]) -> None:
    path, report, _ = carried
    assert report.backup is not None
    assert report.backup.name.startswith("gpu-training-memory-sizing.backup-")
    assert named(openpyxl.load_workbook(report.backup), "Batch_Size").value == 48
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([path.name, report.backup.name])


def test_no_stored_result_is_stale(carried: tuple[Path, Report, dict[str, Any]]) -> None:
    """Every result that the file holds is what an engine calculates."""
    path, _, _ = carried
    book, opened = OldBook(path.read_bytes(), "it"), Formualizer(path)
    stored = {
        (sheet.title, row + 1, column + 1): cell.value
        for sheet in book.sheets
        for (row, column), cell in book.cells(sheet.title).items()
        if cell.formula is not None and cell.value is not None
    }
    assert len(stored) > 5000
    found = opened.get_many(list(stored))
    wrong = [at for (at, value), now in zip(stored.items(), found, strict=True) if not close(now, _stored(value), 1e-9)]
    assert not [at for at in wrong if not str(stored[at]).startswith("#")], wrong[:5]


def _stored(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def test_a_second_build_changes_nothing(carried: tuple[Path, Report, dict[str, Any]], presets_now: Path) -> None:
    path, first, _ = carried
    before = {p: p.read_bytes() for p in path.parent.iterdir()}
    (report,) = rebuild.rebuild(path.parent, load_presets(presets_now), presets_now)
    assert (report.found, first.found) == ("same", "carried over")
    assert {p: p.read_bytes() for p in path.parent.iterdir()} == before


# -- told from one that was never edited


@pytest.mark.parametrize("program", ["as built", "openpyxl", pytest.param("libreoffice", marks=with_libreoffice)])
def test_a_workbook_that_nobody_edited_is_simply_replaced(
    old: Path, fresh: bytes, tmp_path: Path, program: str
) -> None:
    path = tmp_path / FILE
    if program == "libreoffice":
        saved_by_libreoffice(old, path)
    elif program == "openpyxl":
        openpyxl.load_workbook(old).save(path)
    else:
        shutil.copy(old, path)
    (report,) = rebuild.rebuild(tmp_path)
    assert (report.found, report.carried, report.backup) == ("replaced", {}, None)
    assert path.read_bytes() == fresh
    assert [p.name for p in tmp_path.iterdir()] == [FILE]


def test_a_formula_has_one_shape_in_every_program() -> None:
    assert shape("IF('Sizing'!$B$4>0, sum(B2:C9),\"a b\")") == shape('if(Sizing!$B$12>0,SUM(B3:C10),"a b")')
    assert shape("'Chart data'!A1") == shape("'chart data'!Z99")
    assert shape('IF(A1="x",1)') != shape('IF(A1="y",1)')
    assert shape("Batch_Size*2") != shape("Batch_Size*3")
    assert digest(8) == digest(8.0) != digest("8")
    assert digest(None) == digest("") == 0
    assert digest(0.1 + 0.2) == digest(0.3)


def test_a_chart_has_one_shape_in_every_program() -> None:
    ours = ["='Chart data'!$C$22:$C$31", "='Chart data'!$G$32"]
    moved = ["'Chart data'!$C$23:$C$32", "'Chart data'!$G$33:$G$33"]  # LibreOffice, a row put in above
    assert drawing_digest(ours) == drawing_digest(moved) == drawing_digest(reversed(moved))
    for other in ("'Chart data'!$G$33:$G$34", "'Chart data'!$G$3:$G$33", "'Chart data'!$H$33"):
        assert drawing_digest([moved[0], other]) != drawing_digest(ours)


def test_every_cell_that_may_be_typed_in_has_a_name(books: dict[str, Any]) -> None:
    for book in books.values():
        opened = OldBook(book.path.read_bytes(), "it")
        styles = opened.tree("xl/styles.xml").find(f"{{{record_namespace()}}}cellXfs")
        free = {
            at
            for at, xf in enumerate(styles)
            if any(child.get("locked") in ("0", "false") for child in xf if str(child.tag).endswith("protection"))
        }
        made = opened.record
        assert made is not None
        typed = {
            (area.sheet, row, area.first_column)
            for name, first in made.typed.items()
            for area in [made.names[name]]
            for row in range(area.first_row + first, area.last_row + 1)
        }
        unnamed = [
            (sheet.title, at)
            for sheet in opened.sheets
            for at, cell in opened.cells(sheet.title).items()
            if cell.style in free and (sheet.title, *at) not in typed
        ]
        assert not unnamed, unnamed[:5]


def record_namespace() -> str:
    return "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


# -- rows that were put between ours


@with_libreoffice
def test_rows_put_into_our_sheets_move_nothing_and_lose_nothing(fresh: bytes, tmp_path: Path) -> None:
    source, path = tmp_path / "source.xlsx", tmp_path / "out" / FILE
    path.parent.mkdir()
    source.write_bytes(fresh)
    saved_by_libreoffice(
        source,
        path,
        [("Sizing", 12, 2), ("GPUs", 9, 1), ("Validation", 14, 1), ("Checks", 6, 3), ("Chart data", 10, 1)],
    )
    book = openpyxl.load_workbook(path)
    named(book, "Batch_Size").value = 12
    book["Sizing"]["B12"] = "our own line"
    book["GPUs"]["B9"] = "a card of theirs"
    column(book, "GPUs_Price_USD_Per_Hour_List")[10].value = 4.25
    card = column(book, "GPUs_Names_List")[10].value
    book["Plan"] if "Plan" in book.sheetnames else book.create_sheet("Plan")
    peak = named(book, "Peak_Allocated_GB")
    book["Plan"]["A1"] = f"='{peak.parent.title}'!{peak.coordinate}"
    book["Plan"]["A2"] = "=Sizing!B12"
    book.save(path)
    (report,) = rebuild.rebuild(path.parent)
    assert report.carried["input"] == ["Batch_Size 12"]
    assert report.carried["price"] == [card]
    assert sorted(report.carried["note"]) == ["GPUs!B9", "Sizing!B12"]
    assert "drawing" not in report.carried, "every chart is known as ours"
    with Formualizer(path) as opened:
        assert opened.get("Batch_Size") == 12.0
        assert close(opened.get(("Plan", 1, 1)), opened.get("Peak_Allocated_GB"))
        assert opened.get(("Plan", 2, 1)) == "our own line"
    prices = dict(
        zip(
            [c.value for c in column(openpyxl.load_workbook(path), "GPUs_Names_List")],
            column(openpyxl.load_workbook(path), "GPUs_Price_USD_Per_Hour_List"),
            strict=True,
        )
    )
    assert prices[card].value == 4.25


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_rows_and_columns_are_found_wherever_they_went(data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    rows, columns = rng.randint(3, 30), rng.randint(2, 8)
    # A table whose rows are alike but for their first cell, as ours are.
    grid = {
        (r, c): (1000 + r if c == 0 else 10 + c)
        for r in range(rows)
        for c in range(columns)
        if c == 0 or rng.random() < 0.8
    }
    row_of, column_of = _spread(rows, rng), _spread(columns, rng)
    now = {(row_of[r], column_of[c]): code for (r, c), code in grid.items()}
    for _ in range(rng.randint(0, 5)):  # notes in the margin, and cells that were overwritten
        now[rng.choice(row_of), max(column_of) + 1 + rng.randint(0, 2)] = rng.randint(10**6, 10**7)
    found = align(grid, now, set())
    wrong = [r for r in {r for r, _ in grid} if found.rows.get(r) != row_of[r]]
    assert not wrong
    assert not [c for c in {c for _, c in grid} if found.columns.get(c) != column_of[c]]


def _spread(count: int, rng: random.Random) -> list[int]:
    """Places of lines after others were put between some of them."""
    at, found = -1, []
    for _ in range(count):
        at += 1 + (rng.randint(1, 3) if rng.random() < 0.15 else 0)
        found.append(at)
    return found


# -- random edits


@pytest.mark.parametrize("seed", range(2))
def test_random_typed_cells_are_found_again(fresh: bytes, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    draft = Draft(fresh, "it")
    made = draft.book.record
    assert made is not None
    job = workbook_job("training", load_presets())
    typed: dict[str, Any] = {}
    for key in rng.sample(list(job.inputs), 6):
        name = public_name(key)
        value = _random_value(job, key, rng)
        if value is None:
            continue
        typed[name] = value
        area = made.names[name]
        draft.put(area.sheet, area.first_row, area.first_column, value)
    prices = made.names["GPUs_Price_USD_Per_Hour_List"]
    rows = rng.sample(range(prices.last_row - prices.first_row + 1), 5)
    for at in rows:
        draft.put(prices.sheet, prices.first_row + at, prices.first_column, round(rng.uniform(0.1, 20), 3))
    wanted = [(draft.book.cells("GPUs")[prices.first_row + at, prices.first_column].value, at) for at in rows]
    (tmp_path / FILE).write_bytes(draft.file())
    (report,) = rebuild.rebuild(tmp_path)
    now = OldBook((tmp_path / FILE).read_bytes(), "it")
    for name, value in typed.items():
        area = now.place_of(name)
        assert area is not None
        cell = now.cells(area.sheet).get((area.first_row, area.first_column))
        assert (cell.value if cell else None) == value, name
    for value, at in wanted:
        assert now.values("GPUs_Price_USD_Per_Hour_List")[at] == value
    again = now.record
    assert again is not None
    assert not report.gone
    assert {one.name for one in changes(now, again).inputs} == {
        name for name, value in typed.items() if digest(value) != digest(made.opened[name])
    }


def _random_value(job: Any, key: str, rng: random.Random) -> Any:
    for value in rng.sample([2, 3, 5, 0.5, 7, "On", "Off", "Adam", "NVIDIA T4", "NVIDIA A10G"], 10):
        try:
            found = job.accepted({key: value})[key]
            job.size(["verdict_code"], **{key: found})
        except ValueError:
            continue
        return found
    return None


def test_figures_that_verify_wrote_beside_shipped_runs_go_over(fresh: bytes, tmp_path: Path) -> None:
    draft = Draft(fresh, "it")
    for name, value in (("Validation_Measured_Peak_GB", 3.25), ("Validation_Source", "measured: our own card")):
        area = draft.book.place_of(name)
        assert area is not None
        draft.put(area.sheet, area.first_row + 2, area.first_column, value)
    (tmp_path / FILE).write_bytes(draft.file())
    (report,) = rebuild.rebuild(tmp_path)
    now = OldBook((tmp_path / FILE).read_bytes(), "it")
    assert now.values("Validation_Measured_Peak_GB")[2] == 3.25
    assert now.values("Validation_Source")[2] == "measured: our own card"
    assert report.carried == {"run": [now.values("Validation_Run")[2]]}


def test_more_runs_than_spare_rows_all_find_a_place(fresh: bytes, tmp_path: Path) -> None:
    """Rows made from a results file that is no longer there, and rows that were typed below them."""
    rows = [
        OwnRun("", f"run {at}", "training", "cuda", "ok", 10**9, None, "measured: x", {"batch_size": 8})
        for at in range(30)
    ]
    made = book_bytes("training", load_template("training"), load_presets(), None, rows)
    draft = Draft(made, "it")
    area = draft.book.place_of("Validation_Run")
    assert area is not None
    first = next(at for at, cell in enumerate(draft.book.at(area)) if cell is None or cell.value is None)
    draft.put(area.sheet, area.first_row + first, area.first_column, "typed")
    (tmp_path / FILE).write_bytes(draft.file())
    (report,) = rebuild.rebuild(tmp_path)
    now = OldBook((tmp_path / FILE).read_bytes(), "it")
    runs = [value for value in now.values("Validation_Run") if value is not None]
    assert runs[-31:] == [f"run {at}" for at in range(30)] + ["typed"]
    assert now.values("Validation_Run").count(None) == 24, "as many spare rows as ever"
    assert now.values("Validation_Batch_Size")[len(runs) - 2] == 8
    assert report.carried["run"] == ["typed"]
    assert len(report.carried["measured run"]) == 30


# -- what a planner typed has no place any more


def test_a_choice_that_is_gone_gives_way_to_the_default_and_is_told(fresh: bytes, tmp_path: Path) -> None:
    draft = Draft(fresh, "it")
    for name, value in (("GPU_Choice", "Rack 7"), ("Batch_Size", 2.5)):
        area = draft.book.place_of(name)
        assert area is not None
        draft.put(area.sheet, area.first_row, area.first_column, value)
    (tmp_path / FILE).write_bytes(draft.file())
    (report,) = rebuild.rebuild(tmp_path)
    told = "\n".join(report.changed)
    assert 'GPU_Choice was "Rack 7"' in told
    assert "Batch_Size was 2.5; it must be a whole number from 1 to" in told
    assert "the default, 256, stands" in told
    assert report.backup is not None
    assert named(openpyxl.load_workbook(tmp_path / FILE), "Batch_Size").value == 256


def test_inputs_that_contradict_each_other_are_typed_again_as_they_were(fresh: bytes, tmp_path: Path) -> None:
    draft = Draft(fresh, "it")
    typed = {"Parameter_Storage": "bf16", "Compute_Precision": "fp32"}
    for name, value in typed.items():
        area = draft.book.place_of(name)
        assert area is not None
        draft.put(area.sheet, area.first_row, area.first_column, value)
    (tmp_path / FILE).write_bytes(draft.file())
    rebuild.rebuild(tmp_path)
    with Formualizer(tmp_path / FILE) as opened:
        assert opened.get_many(list(typed)) == list(typed.values())
        assert opened.get("Checks_Failed") == 1.0


def test_the_functions_of_a_workbook_are_no_names_of_the_planner(fresh: bytes, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(fresh)
    book = openpyxl.load_workbook(path)
    named(book, "Batch_Size").value = 128
    book.defined_names["My_Double"] = DefinedName("My_Double", attr_text="_xlfn.LAMBDA(_xlpm.x,_xlpm.x*2)")
    book.save(path)
    (report,) = rebuild.rebuild(tmp_path)
    assert report.carried["own name"] == ["My_Double"]
    names = [name.name for name in OldBook(path.read_bytes(), FILE).names]
    assert names.count("My_Double") == names.count("GPU_FITS") == names.count("Functions_Blank") == 1
    before = path.read_bytes()
    rebuild.rebuild(tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("row", [14, 25, 34, 211])
def test_a_remark_over_a_calculated_cell_moves_no_row_of_a_table(fresh: bytes, tmp_path: Path, row: int) -> None:
    """The rows of Scenarios say the same as one another."""
    path = tmp_path / FILE
    path.write_bytes(fresh)
    book = openpyxl.load_workbook(path)
    sheet = book["Scenarios"]
    names = column(book, "Scenarios_Name_List")
    filled = [cell.row for cell in names][:30]
    for at in filled:
        names[at - filled[0]].value = f"Job {at}"
    verdicts = column(book, "Scenarios_Verdict_List")
    verdicts[row - filled[0]].value = "see Anna"
    book.create_sheet("Plan")["B2"] = f'=COUNTIF(Scenarios!C{filled[0]}:C{names[-1].row},"Fits")'
    book.save(path)
    (report,) = rebuild.rebuild(tmp_path)
    now = openpyxl.load_workbook(path)
    assert [cell.value for cell in column(now, "Scenarios_Name_List")][:30] == [f"Job {at}" for at in filled]
    assert now["Plan"]["B2"].value == sheet.parent["Plan"]["B2"].value
    assert len(report.carried["note"]) == 1


def test_an_input_that_is_a_formula_stays_one(fresh: bytes, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(fresh)
    book = openpyxl.load_workbook(path)
    book.create_sheet("Plan")["B2"] = 96
    named(book, "Batch_Size").value = "=Plan!B2/2"
    book.save(path)
    (report,) = rebuild.rebuild(tmp_path)
    assert report.carried["input"] == ["Batch_Size =Plan!B2/2"]
    with Formualizer(path) as opened:
        assert opened.get("Batch_Size") == 48.0
        alone = workbook_job("training", load_presets()).size(["peak_allocated_gb"], batch_size=48)
        assert close(opened.get("Peak_Allocated_GB"), alone["peak_allocated_gb"], 1e-9)


def test_a_sheet_and_a_name_that_this_version_uses_itself_are_called_otherwise(fresh: bytes, tmp_path: Path) -> None:
    """The workbook says that it had no sheet Notes and no name Large_Error: a planner has made both."""
    path = tmp_path / FILE
    path.write_bytes(fresh)
    book = openpyxl.load_workbook(path)
    del book["Notes"]
    notes = book.create_sheet("Notes")
    notes["A1"], notes["A2"] = 5, "=A1*2"
    book.create_sheet("Plan")["A1"] = "=Notes!A2+Large_Error"
    book.defined_names["Large_Error"] = DefinedName("Large_Error", attr_text="Notes!$A$1")
    chunks = column(book, record.MAP)
    described = record.unpack(record.joined_chunks(cell.value for cell in chunks))
    del described["grids"]["Notes"], described["charts"]["Notes"], described["names"]["Large_Error"]
    for cell, text in zip(chunks, _cut(record.pack(described), len(chunks)), strict=True):
        cell.value = text
    book.save(path)
    (report,) = rebuild.rebuild(tmp_path)
    assert report.renamed == {"Notes": "Notes (own)", "Large_Error": "Large_Error_Own"}
    with Formualizer(path) as opened:
        assert opened.get(("Plan", 1, 1)) == 15.0
        assert opened.get(("Notes (own)", 2, 1)) == 10.0


def _cut(text: str, parts: int) -> list[str]:
    size = -(-len(text) // parts)
    return [f"{at + 1}:{text[at * size : (at + 1) * size]}" for at in range(parts)]


# -- a planner's own models and cards


def test_cards_given_once_are_there_at_the_next_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cards = tmp_path / "cards.csv"
    cards.write_bytes("name,usable_gib\r\nRack 7,70.5\r\nRäck 8,31\r\n".encode())
    assert cli.main(["build", "--output", str(tmp_path), "--gpu", str(cards)]) == 0
    first = (tmp_path / FILE).read_bytes()
    cards.unlink()
    assert cli.main(["build", "--output", str(tmp_path)]) == 0
    assert "Rack 7" in [cell.value for cell in column(openpyxl.load_workbook(tmp_path / FILE), "GPUs_Names_List")]
    assert (tmp_path / FILE).read_bytes() == first
    assert not list(tmp_path.glob("*backup*"))
    cards.write_text("name,usable_gib\nRack 7,60\n", encoding="utf-8")
    assert cli.main(["build", "--output", str(tmp_path), "--gpu", str(cards)]) == 0
    assert "the file that was given now is used" in capsys.readouterr().out
    names = [cell.value for cell in column(openpyxl.load_workbook(tmp_path / FILE), "GPUs_Names_List")]
    assert "Rack 7" in names and "Räck 8" not in names


def test_kept_files_give_way_and_are_told() -> None:
    presets = load_presets()
    llama = json.dumps(
        {
            "model_type": "llama",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_attention_heads": 4,
            "num_hidden_layers": 2,
            "vocab_size": 100,
        }
    )
    kept = [
        OwnFile("models", "acme--small/config.json", llama),
        OwnFile("gpus", "a.csv", "name,usable_gib\nNVIDIA T4,14\nMine,20\n"),
        OwnFile("gpus", "b.csv", "name,memory\nX,1\n"),
    ]
    found, gave_way, refused = with_kept(presets, kept)
    assert found.models.keys[0] == "acme/small"
    assert found.gpus.keys[0] == "Mine"
    assert gave_way == ["NVIDIA T4 of a.csv: the one of the same name that is known now is used"]
    assert [text.partition(":")[0] for text in refused] == ["b.csv"]
    assert "may be the label" in refused[0]
    assert {file.file for file in record.own_files(found)} == {"a.csv", "acme--small/config.json"}


# -- files that are no workbook of ours, or may not be replaced


def _refused(folder: Path) -> str:
    before = {p: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(ValueError) as error:
        rebuild.rebuild(folder)
    assert {p: p.read_bytes() for p in folder.iterdir()} == before, "nothing is touched"
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_cannot_be_replaced_is_refused_in_a_sentence(fresh: bytes, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(b"not a workbook at all")
    assert "no zip file" in _refused(tmp_path)
    path.write_bytes(fresh[: len(fresh) // 2])
    assert "cut short" in _refused(tmp_path)
    path.write_bytes(bytes.fromhex("D0CF11E0A1B11AE1") + "EncryptedPackage".encode("utf-16-le"))
    assert "encrypted" in _refused(tmp_path)
    other = openpyxl.Workbook()
    other.save(path)
    assert "this program has not made" in _refused(tmp_path)
    path.write_bytes(fresh)
    (tmp_path / f"~${FILE}").write_bytes(b"x")
    assert "is open in Excel" in _refused(tmp_path)


def test_a_workbook_of_a_later_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "__version__", "9.1.0")
    (tmp_path / FILE).write_bytes(book_bytes("training", load_template("training"), load_presets()))
    assert "was made by sizing_xlsx 9.1.0, and this is 0." in _refused(tmp_path)


def test_a_workbook_of_the_other_job_is_refused(books: dict[str, Any], tmp_path: Path) -> None:
    shutil.copy(books["lora"].path, tmp_path / FILE)
    assert "sizes lora, and the workbook of that name sizes training" in _refused(tmp_path)


UNSAFE = {
    "macros": ("xl/vbaProject.bin", "http://schemas.microsoft.com/office/2006/relationships/vbaProject"),
    "links to other workbooks": ("xl/externalLinks/externalLink1.xml", f"{RELATIONS}/externalLink"),
    "pivot tables": ("xl/pivotCache/pivotCacheDefinition1.xml", f"{RELATIONS}/pivotCacheDefinition"),
}


def test_what_cannot_be_carried_leaves_the_file_and_writes_beside(fresh: bytes, tmp_path: Path) -> None:
    draft = Draft(fresh, "it")
    area = draft.book.place_of("Batch_Size")
    assert area is not None
    draft.put(area.sheet, area.first_row, area.first_column, 24)
    for part, kind in UNSAFE.values():
        draft.add(part, b"<x/>")
        draft.link(draft.book.main, kind, part)
    path = tmp_path / FILE
    path.write_bytes(draft.file())
    before = path.read_bytes()
    for _ in range(2):
        (report,) = rebuild.rebuild(tmp_path)
        assert path.read_bytes() == before
        assert report.file.name == "gpu-training-memory-sizing (new).xlsx"
        told = "\n".join(report.lines())
        assert "which cannot be carried over" in told
        assert all(words in told for words in UNSAFE)
    assert named(openpyxl.load_workbook(report.file), "Batch_Size").value == 24
    assert len(list(tmp_path.iterdir())) == 2


def test_a_workbook_without_a_record_is_carried_by_its_names(fresh: bytes, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(fresh)
    book = openpyxl.load_workbook(path)
    del book["Record"]
    for name in [name for name in book.defined_names if name.startswith("Record_")]:
        del book.defined_names[name]
    named(book, "Batch_Size").value = 40
    column(book, "GPUs_Price_USD_Per_Hour_List")[3].value = 5.5
    card = column(book, "GPUs_Names_List")[3].value
    run = next(cell for cell in column(book, "Validation_Run") if cell.value is None)
    run.value = "mine"
    book.create_sheet("Plan")["A1"] = "=Batch_Size"
    book.save(path)
    (report,) = rebuild.rebuild(tmp_path)
    assert report.carried == {"input": ["Batch_Size 40"], "price": [card], "run": ["mine"], "own sheet": ["Plan"]}
    assert "kept a record" in "\n".join(report.lines())
    assert report.backup is not None
    with Formualizer(path) as opened:
        assert opened.get(("Plan", 1, 1)) == 40.0


def test_other_defaults_and_other_bounds_are_told(fresh: bytes, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(fresh)
    book = openpyxl.load_workbook(path)
    names = [cell.value for cell in column(book, record.INPUTS)]
    for list_name, value in ((record.OPENED_ON, 512), (record.ALLOWED, "a whole number from 1 to 99")):
        column(book, list_name)[names.index("Batch_Size")].value = value
    book.create_sheet("Plan")
    book.save(path)
    (report,) = rebuild.rebuild(tmp_path)
    assert report.changed == [
        "Batch_Size opens on 256, before on 512",
        "Batch_Size may be a whole number from 1 to 65,536; before it was a whole number from 1 to 99",
    ]
    assert named(openpyxl.load_workbook(path), "Batch_Size").value == 256


def test_a_record_that_was_changed_is_none(fresh: bytes) -> None:
    packed = record.pack({"names": {}, "n": 1})
    assert record.unpack(packed) == {"names": {}, "n": 1}
    for spoiled in (packed[:-3], packed[9:], packed.replace(packed[20], "_", 1), "", "00000000.AAAA"):
        with pytest.raises(ValueError, match="was changed"):
            record.unpack(spoiled)


# -- renames


def test_renames_are_read_with_care(tmp_path: Path) -> None:
    file = tmp_path / "renames.toml"
    file.write_text(
        '[[name]]\nold="A_B"\nnew="C_D"\nsince="0.2"\n[[name]]\nold="C_D"\nnew="E_F"\nsince="0.3"\n', encoding="utf-8"
    )
    assert read_renames(tmp_path, "0.1").name("a_b") == "E_F"
    assert read_renames(tmp_path, "0.2.5").name("C_D") == "E_F"
    assert read_renames(tmp_path, "0.3").name("C_D") == "C_D"
    for text, right in (
        ("[[nme]]\n", "alone"),
        ('[[name]]\nold="A_B"\n', "old, new, since"),
        ('[[choice]]\nold="A"\nnew=1\nsince="1"\ninput="I"\n', "nothing else"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=right):
            read_renames(tmp_path, "0.1")


# -- all or none


@pytest.fixture
def two(tmp_path: Path) -> Iterator[list[files.Planned]]:
    """Two files that are there, and what is to take their place."""
    found = []
    for name in ("a.xlsx", "b.xlsx"):
        (tmp_path / name).write_bytes(b"old " + name.encode())
        found.append(files.Planned(tmp_path / name, b"new " + name.encode(), b"old " + name.encode(), True))
    yield found


@pytest.mark.parametrize("failing", [PermissionError(13, "denied"), OSError(28, "no space"), KeyboardInterrupt()])
def test_both_workbooks_or_none(
    two: list[files.Planned], monkeypatch: pytest.MonkeyPatch, failing: BaseException
) -> None:
    replace, calls = os.replace, []

    def refusing(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise failing
        replace(source, target)

    monkeypatch.setattr(os, "replace", refusing)
    with pytest.raises((ValueError, OSError, KeyboardInterrupt)) as error:
        files.write_all(two)
    if isinstance(failing, PermissionError):
        assert "close it in Excel" in str(error.value)
    monkeypatch.undo()
    folder = two[0].path.parent
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {"a.xlsx": b"old a.xlsx", "b.xlsx": b"old b.xlsx"}


def test_a_file_that_changed_meanwhile_is_not_written_over(two: list[files.Planned]) -> None:
    two[1].path.write_bytes(b"saved by its planner")
    with pytest.raises(ValueError, match="has changed since it was read"):
        files.write_all(two)
    assert two[0].path.read_bytes() == b"old a.xlsx"
    assert len(list(two[0].path.parent.iterdir())) == 2


def test_no_backup_is_written_over(two: list[files.Planned]) -> None:
    path = two[0].path
    first = files.back_up(path, b"one")
    assert files.back_up(path, b"one") == first
    second = files.back_up(path, b"two")
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")


def test_killed_in_the_middle_no_file_is_half_written(tmp_path: Path) -> None:
    """The process ends with no chance to clean up, at every system call that matters."""
    for name in ("a.xlsx", "b.xlsx"):
        (tmp_path / name).write_bytes(b"old" * 1000)
    program = """
import os, signal, sys
from pathlib import Path
from sizing_xlsx.workbook.carry import files
folder, count, calls = Path(sys.argv[1]), int(sys.argv[2]), 0
def dying(call):
    def wrapped(*given, **named):
        global calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)
    return wrapped
os.fsync, os.replace, os.link = dying(os.fsync), dying(os.replace), dying(os.link)
files.write_all([files.Planned(folder / n, b"new" * 1000, b"old" * 1000, True) for n in ("a.xlsx", "b.xlsx")])
"""
    killed = 0
    for count in range(1, 12):
        for name in ("a.xlsx", "b.xlsx"):
            (tmp_path / name).write_bytes(b"old" * 1000)
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path), str(count)], check=False)
        killed += done.returncode == -signal.SIGKILL
        for name in ("a.xlsx", "b.xlsx"):
            assert (tmp_path / name).read_bytes() in (b"old" * 1000, b"new" * 1000)
        for backup in tmp_path.glob("*backup*"):
            assert backup.read_bytes() == b"old" * 1000
    assert killed >= 6

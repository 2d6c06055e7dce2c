"""Workbooks as planners leave them, for the tests of what a rebuild carries over."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import openpyxl
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import Font, PatternFill
from openpyxl.utils import get_column_letter
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation

from sizing_xlsx.formula import render
from sizing_xlsx.paths import presets_folder
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook.build import book_bytes
from sizing_xlsx.workbook.carry import record
from sizing_xlsx.workbook.template import load_template

OLD_VERSION = "0.0.9"
RENAMES = """
[[name]]
old = "Other_Users_GB"
new = "Other_Tenants_GB"
since = "0.1.0"
[[name]]
old = "Leeway_GB"
new = "Headroom_GB"
since = "0.1.0"
[[name]]
old = "Validation_Other_Users_GB"
new = "Validation_Other_Tenants_GB"
since = "0.1.0"
[[name]]
old = "Batch_Size"
new = "Never_Mind"
since = "0.0.5"
[[choice]]
input = "GPU_Choice"
old = "NVIDIA L4"
new = "NVIDIA L4 24GB"
since = "0.1.0"
"""
PRICES = {"NVIDIA T4": 0.31, "NVIDIA L4": 0.72, "NVIDIA H100 SXM5 80GB": 2.19}


@contextmanager
def older_names() -> Iterator[None]:
    """Terms are called as in the old version meanwhile."""
    render.public_name.cache_clear()
    try:
        with (
            patch.dict(render._ACRONYMS, {"tenants": "Users", "headroom": "Leeway"}),
            patch.object(record, "__version__", OLD_VERSION),
        ):
            yield
    finally:
        render.public_name.cache_clear()


def older_workbook(path: Path, job: str = "training") -> Path:
    """A workbook of an earlier version, in which two terms had other names."""
    with older_names():
        path.write_bytes(book_bytes(job, load_template(job), load_presets()))
    return path


def newer_presets(folder: Path) -> Path:
    """A later presets folder: a card more in front, one with another name, other prices, and the renames."""
    shutil.copytree(presets_folder(), folder)
    cards = folder / "gpus.csv"
    text = cards.read_text(encoding="utf-8")
    text = text.replace("NVIDIA L4,", "NVIDIA L4 24GB,", 1)
    lines = text.splitlines(keepends=True)
    lines.insert(1, lines[1].replace("NVIDIA T4", "NVIDIA T4 again", 1))
    cards.write_text("".join(lines), encoding="utf-8")
    (folder / "renames.toml").write_text(RENAMES, encoding="utf-8")
    return folder


def named(book: Any, name: str) -> Any:
    """The cell of a defined name, or the first of its cells."""
    sheet, area = next(iter(book.defined_names[name].destinations))
    return book[sheet][area.replace("$", "").split(":")[0]]


def column(book: Any, name: str) -> list[Any]:
    """The cells of a named column."""
    sheet, area = next(iter(book.defined_names[name].destinations))
    return [row[0] for row in book[sheet][area.replace("$", "")]]


def planners(source: Path, target: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A workbook after a planner's months with it; returns what is to be found again."""
    book = openpyxl.load_workbook(source)
    for name, value in inputs.items():
        named(book, name).value = value
    typed = _tables(book)
    plan = book.create_sheet("Plan '27", 3)
    sheet, margin = book["Sizing"], book["Sizing"].max_column + 2
    letter = get_column_letter(margin)
    peak, batch = named(book, "Peak_Allocated_GB"), named(book, "Batch_Size")
    price = next(
        cell
        for cell, card in zip(
            column(book, "GPUs_Price_USD_Per_Hour_List"), column(book, "GPUs_Names_List"), strict=True
        )
        if card.value == "NVIDIA T4"
    )
    plan.append(["What", "Figure"])
    for label, formula in (
        ("by name", "=Peak_Allocated_GB*2"),
        ("a renamed term", "=Leeway_GB+Other_Users_GB"),
        ("by address", f"='{peak.parent.title}'!{peak.coordinate}+1"),
        ("an input by address", f"={batch.parent.title}!${batch.column_letter}${batch.row}*10"),
        ("a row of a table", f"={price.parent.title}!{price.coordinate}*24"),
        ("a column of a table", "=SUM(GPUs_Price_USD_Per_Hour_List)"),
        ("of their own", "=SUM(B2:B5)"),
        ("of their margin", f"=Sizing!{letter}30+1"),
    ):
        plan.append([label, formula])
    plan["A1"].font, plan["A1"].fill = (
        Font(bold=True, size=17, color="FF9C3400"),
        PatternFill("solid", fgColor="FFFFEE00"),
    )
    plan["B2"].number_format = '0.000" GB, mine"'
    plan.merge_cells("D1:F1")
    plan["D1"] = "across"
    plan.column_dimensions["A"].width = 41
    plan["B2"].comment = Comment("look here", "planner")
    plan.conditional_formatting.add(
        "B2:B6", CellIsRule(operator="greaterThan", formula=["Leeway_GB"], fill=PatternFill(bgColor="FF00FF00"))
    )
    choice = DataValidation(type="list", formula1="GPUs_Names_List")
    plan.add_data_validation(choice)
    choice.add("D3")
    plan["D4"], plan["D4"].hyperlink = "their wiki", "https://example.com/plan"
    chart = BarChart()
    chart.add_data(Reference(plan, min_col=2, min_row=2, max_row=5))
    plan.add_chart(chart, "H3")
    book.defined_names["Plan_Total"] = DefinedName("Plan_Total", attr_text="'Plan ''27'!$B$8")
    sheet.cell(30, margin).value = 7
    sheet.cell(31, margin).value = "ask for two cards"
    sheet.cell(32, margin).value = f"={letter}30*Batch_Size"
    chart = BarChart()
    chart.add_data(Reference(plan, min_col=2, min_row=2, max_row=5))
    sheet.add_chart(chart, f"{letter}40")
    sheet["C3"].comment = Comment("a remark on the strip", "planner")
    book.save(target)
    return {**typed, "margin": f"Sizing!{letter}"}


def _tables(book: Any) -> dict[str, Any]:
    """Types into the tables: prices, runs, and twelve scenarios where the workbook has the sheet."""
    for cell, date, card in zip(
        column(book, "GPUs_Price_USD_Per_Hour_List"),
        column(book, "GPUs_Price_As_Of_List"),
        column(book, "GPUs_Names_List"),
        strict=True,
    ):
        if card.value in PRICES:
            cell.value, date.value = PRICES[card.value], "2026-09, our contract"
    runs = {}
    columns = {
        name: column(book, name)
        for name, defined in book.defined_names.items()
        if name.startswith("Validation_") and ":" in defined.attr_text and name != "Validation_Outcomes_List"
    }
    spare = [at for at, cell in enumerate(columns["Validation_Run"]) if cell.value is None]
    for number, at in enumerate(spare[:3]):
        typed = {
            "Validation_Run": f"mine {number}",
            "Validation_Lever": "Own run",
            "Validation_Batch_Size": 4 + number,
            "Validation_Sequence_Length": 128,
            "Validation_Activation_Checkpointing": "On",
            "Validation_Measured_Peak_GB": 3.5 + number,
            "Validation_Outcome": "Completed",
        }
        for name, value in typed.items():
            columns[name][at].value = value
        runs[typed["Validation_Run"]] = typed
    return {"runs": runs, "scenarios": _scenarios(book)}


def scenario_names(names: Any) -> list[str]:
    """The columns of the sheet Scenarios, none where a workbook has no such sheet."""
    return sorted(name for name in names if re.fullmatch(r"Scenarios_\w+_List", name))


def _scenarios(book: Any) -> list[dict[str, Any]]:
    names = scenario_names(book.defined_names)
    values = {"Scenarios_Name_List": "job {}", "Scenarios_Owner_List": "team {}", "Scenarios_Note_List": "note {}"}
    found = []
    for number in range(12 if names else 0):
        typed: dict[str, Any] = {name: text.format(number) for name, text in values.items() if name in names}
        figures = {"Scenarios_Batch_Size_List": 2 + number, "Scenarios_Sequence_Length_List": 64 + number}
        typed |= {name: value for name, value in figures.items() if name in names}
        for name, value in typed.items():
            column(book, name)[number + 1].value = value
        found.append(typed)
    return found

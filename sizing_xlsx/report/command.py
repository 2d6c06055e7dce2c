"""`sizing-xlsx report WORKBOOK`: the Summary as PDF, each chart as PNG. The workbook is only read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..presets.names import one_line
from ..workbook.package import Archive, find_workbook, read_workbook
from ..workbook.planner_file import PlannerFile
from ..workbook.sheet_part import address, box
from ..workbook.styles import load_look
from .chart_parts import Chart, charts
from .draw import need_matplotlib, png
from .office import Office, find_office
from .summary_page import summary_alone

SUMMARY = "Summary"


def run(options: argparse.Namespace) -> int:
    """Write the files and print their paths; 0."""
    for path in report(options.workbook, options.output):
        print(path)
    return 0


def report(workbook: Path, folder: Path) -> list[Path]:
    """Write WORKBOOK-summary.pdf and WORKBOOK-SHEET-N.png into a folder, made where it is missing; returns the paths.

    With LibreOffice everything is calculated anew. Without it there is no PDF, which standard error says, and the
    charts show the values that the workbook was saved with. Nothing is written before all of it is made.
    Raises ValueError, one sentence, for a workbook that cannot be used, for values that are missing where nothing
    can calculate them, and where matplotlib is not installed; OSError for a folder that cannot be written.
    """
    need_matplotlib()
    where = one_line(str(workbook))
    path = find_workbook(workbook, where)
    data = read_workbook(path, where)
    archive, office = Archive(data, where), find_office()
    made: dict[str, bytes] = {}
    stem = path.stem
    if office is None:
        print("sizing-xlsx: no PDF, as LibreOffice is not installed; charts show the saved values.", file=sys.stderr)
        saved = _cells(PlannerFile(data, where), where)
        made |= _pictures(charts(archive, saved), stem)
    else:
        with Office(office, where) as libreoffice:
            calculated = PlannerFile(libreoffice.convert(data, path.name, "xlsx"), where)
            cells = _cells(calculated, where)
            alone = summary_alone(archive, SUMMARY, lambda reference: _words(cells, reference))
            made |= _pictures(charts(archive, cells), stem)
            made[f"{stem}-summary.pdf"] = libreoffice.convert(alone, path.name, "pdf")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in made]


def _pictures(found: list[Chart], stem: str) -> dict[str, bytes]:
    look = load_look()
    return {f"{stem}-{chart.sheet.lower().replace(' ', '-')}-{chart.number}.png": png(chart, look) for chart in found}


def _cells(file: PlannerFile, where: str) -> Callable[[str, int, int], Any]:
    """What a cell holds; ValueError for a formula that was saved without its value."""

    def cell(sheet: str, row: int, column: int) -> Any:
        value, formula = file.cell(sheet, row, column)
        if formula and value is None:
            raise ValueError(
                f"{where} was saved without the value of {sheet}!{address(row, column)}; open it in Excel and save it, "
                "or install LibreOffice, which calculates it"
            )
        return value

    return cell


def _words(cells: Callable[[str, int, int], Any], reference: str) -> str:
    """The text of the one cell that a title is linked to."""
    sheet, _, place = reference.rpartition("!")
    area = box(place.replace("$", ""))
    if area is None:
        return ""
    value = cells(sheet.removeprefix("'").removesuffix("'").replace("''", "'"), area[0], area[1])
    return "" if value is None else str(value)

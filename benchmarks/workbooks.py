"""The workbooks from presets and formulas, against bare openpyxl writing the same cells with the same styles."""

from __future__ import annotations

import warnings
from copy import copy
from io import BytesIO
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from openpyxl import Workbook, load_workbook

from sizing_xlsx.paths import presets_folder
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook.build import build

from .measure import Line, ratio, seconds

TARGET = 2.0
STYLE = ("font", "fill", "border", "alignment", "number_format", "protection")


class Cells(NamedTuple):
    """What stands in a workbook: sheet titles, distinct styles, and (sheet, row, column, content, style) a cell."""

    sheets: list[str]
    styles: list[dict[str, Any]]
    cells: list[tuple[str, int, int, Any, int]]


def lines(repeats: int) -> list[Line]:
    """The time of a rebuild over that of bare openpyxl."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        both = [read(path) for path in build(folder)]
        taken = seconds(
            {
                "build": lambda: build(folder, load_presets(presets_folder())),  # read anew, as each command does
                "openpyxl": lambda: [write(cells) for cells in both],
            },
            repeats,
        )
    times = ratio(taken["build"], taken["openpyxl"])
    count = sum(len(cells.cells) for cells in both)
    detail = f"{median(taken['build']):.2f} against {median(taken['openpyxl']):.2f} s for {count:,} cells"
    return [Line("workbooks rebuilt", f"{times:.2f} times openpyxl", f"<= {TARGET}", times <= TARGET, detail)]


def read(path: Path) -> Cells:
    """Every cell that has a content or a style of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl says that it skips Excel 2010's data bars: no cell is among them
        book = load_workbook(path)
    styles: dict[Any, int] = {}
    formats: list[dict[str, Any]] = []
    cells: list[tuple[str, int, int, Any, int]] = []
    for sheet in book.worksheets:
        row: Any
        for row in sheet.iter_rows():
            for cell in row:
                if cell.value is None and not cell.has_style:
                    continue
                key = tuple(cell._style) if cell.has_style else ()
                if key not in styles:
                    styles[key] = len(styles)
                    formats.append({part: copy(getattr(cell, part)) for part in STYLE} if key else {})
                cells.append((sheet.title, cell.row, cell.column, cell.value, styles[key]))
    return Cells([sheet.title for sheet in book.worksheets], formats, cells)


def write(content: Cells) -> int:
    """The same cells in a new workbook, in the quickest way that openpyxl has; returns the size of the file.

    A style is put together once, on the first cell that has it; every other one takes it over as a whole.
    """
    book = Workbook()
    book.remove(book.worksheets[0])
    sheets = {title: book.create_sheet(title) for title in content.sheets}
    made: dict[int, Any] = {}
    for title, row, column, value, style in content.cells:
        cell: Any = sheets[title].cell(row, column)
        if value is not None:
            cell.value = value
        if style in made:
            cell._style = copy(made[style])
        else:
            for part, facts in content.styles[style].items():
                setattr(cell, part, facts)
            made[style] = cell._style
    file = BytesIO()
    book.save(file)
    return len(file.getbuffer())

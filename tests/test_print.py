"""How the workbooks print, on A4 and on Letter, and how the keyboard goes through them.

The scale at which a sheet prints follows from its column widths and heights, without any program; LibreOffice then
counts the pages.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import MAIN, Book
from engines import contents, libreoffice_available, to_pdf
from lxml import etree

from sizing_xlsx.formula.render import public_name
from sizing_xlsx.workbook.guide import read_guide
from sizing_xlsx.workbook.scenarios import FIRST
from sizing_xlsx.workbook.sheets.start import answer_name
from sizing_xlsx.workbook.sheets.summary import BY, DATE
from sizing_xlsx.workbook.styles import load_look

PAPERS = {"A4": (9, 595.3, 841.9), "Letter": (1, 612.0, 792.0)}  # code of the file format, width and height in points
PIXEL = 0.75  # points, at the usual 96 to an inch
DIGIT = 7  # pixels, Calibri 11
READABLE = 0.70  # a figure of 11 points is then 7.7
# Reference sheets: tables of many columns, looked up on screen; they are one page wide all the same.
WIDE = {
    "Validation", "Presets", "GPUs", "Workings", "Boundary workings", "Checks", "What-if", "Validation workings",
    "Public workings", "Overrides", "Crossover",
}  # fmt: skip
SMALLEST = 0.30


class Page:
    """A sheet's print set-up, from its XML."""

    def __init__(self, book: Book, sheet: str, part: int = -1) -> None:
        """part: which of the areas that it prints, the last one unless given."""
        self.tree = book.sheets[sheet].tree
        order = list(book.sheets).index(sheet)
        names = etree.fromstring(book.parts["xl/workbook.xml"]).iter(MAIN + "definedName")
        area = next(
            n.text for n in names if n.get("name") == "_xlnm.Print_Area" and n.get("localSheetId") == str(order)
        )
        cells = area.split(",")[part].rpartition("!")[2].replace("$", "")
        self.first_column, self.first_row, self.last_column, self.last_row = openpyxl.utils.range_boundaries(cells)
        setup = self.tree.find(MAIN + "pageSetup")
        self.portrait = setup.get("orientation", "portrait") == "portrait"
        self.pages_high = int(setup.get("fitToHeight", "1"))
        self.pages_wide = int(setup.get("fitToWidth", "1"))
        fit = self.tree.find(f"{MAIN}sheetPr/{MAIN}pageSetUpPr")
        self.fits = fit is not None and fit.get("fitToPage") == "1"
        self.breaks = [int(b.get("id")) for b in self.tree.iterfind(f"{MAIN}rowBreaks/{MAIN}brk")]

    def width(self) -> float:
        """Width of the print area in points."""
        widths = {}
        for column in self.tree.iter(MAIN + "col"):
            for at in range(int(column.get("min")), min(int(column.get("max")), 500) + 1):
                widths[at] = float(column.get("width"))
        spots = range(self.first_column, self.last_column + 1)
        return sum(round(widths.get(at, 9.14) * DIGIT) * PIXEL for at in spots)

    def height(self, first: int, last: int) -> float:
        """Height of rows in points."""
        heights = {int(row.get("r")): float(row.get("ht", 15)) for row in self.tree.iter(MAIN + "row")}
        return sum(heights.get(at, 15) for at in range(first, last + 1))

    def room(self, paper: str) -> tuple[float, float]:
        """Width and height of a page between its margins, in points."""
        _, width, height = PAPERS[paper]
        margins: Any = self.tree.find(MAIN + "pageMargins")
        across, down = (
            72 * sum(float(margins.get(side)) for side in sides) for sides in (("left", "right"), ("top", "bottom"))
        )
        if not self.portrait:
            width, height = height, width
        return width - across, height - down

    def scale(self, paper: str) -> float:
        """At what part of its size the sheet prints: never enlarged."""
        width, height = self.room(paper)
        scale = min(1, width / self.width())
        if self.pages_high:
            scale = min(scale, self.pages_high * height / self.height(self.first_row, self.last_row))
        return scale


@pytest.mark.parametrize("paper", PAPERS)
def test_every_sheet_is_one_page_wide_and_can_be_read(book: Book, paper: str) -> None:
    scales = {}
    for sheet in book.sheets:
        page = Page(book, sheet)
        assert page.fits and page.pages_wide == 1, sheet
        scales[sheet] = page.scale(paper)
    assert {sheet: scale for sheet, scale in scales.items() if scale < READABLE and sheet not in WIDE} == {}
    assert {sheet: scale for sheet, scale in scales.items() if scale < SMALLEST} == {}


@pytest.mark.parametrize("paper", PAPERS)
def test_the_summary_is_one_portrait_page(book: Book, paper: str) -> None:
    page = Page(book, "Summary")
    assert (page.portrait, page.pages_high, page.pages_wide) == (True, 1, 1)
    assert page.scale(paper) >= 0.78


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("sheet", ["Levers", "Sensitivity"])
def test_levers_and_sensitivity_are_one_page_each(book: Book, sheet: str, paper: str) -> None:
    page = Page(book, sheet)
    assert (page.pages_high, page.pages_wide) == (1, 1)
    assert page.scale(paper) >= READABLE


@pytest.mark.parametrize("paper", PAPERS)
def test_the_rows_of_scenarios_that_print_fill_one_page(whole_book: Book, paper: str) -> None:
    """No empty page follows: as many rows as a page takes, and the sheet says so when there are more in use."""
    page, spec = Page(whole_book, "Scenarios", 0), whole_book.template["scenarios"]
    assert page.last_row - FIRST == spec["printed"] < spec["rows"]
    across, down = page.room(paper)
    scale = min(1, across / page.width())
    assert page.height(1, page.last_row) * scale <= down
    assert page.height(1, page.last_row) * scale >= 0.8 * down


@pytest.mark.parametrize("paper", PAPERS)
def test_each_part_of_start_fits_its_page(book: Book, paper: str) -> None:
    """The second part also where a workbook has all the sheets that the map knows."""
    page = Page(book, "Start")
    absent = [row for row in book.template["start"]["sheets"]["rows"] if row["sheet"] not in book.sheets]
    spare = load_look()["rows"]["start"] * len(absent)
    _, height = page.room(paper)
    assert len(page.breaks) == 1
    for first, last in itertools.pairwise([0, *page.breaks, page.last_row]):
        assert (page.height(first + 1, last) + (spare if first else 0)) * page.scale(paper) <= height, (first, last)


@pytest.mark.skipif(not libreoffice_available()[0], reason="LibreOffice is not here")
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not here")
@pytest.mark.parametrize("paper", PAPERS)
def test_libreoffice_prints_the_summary_on_one_page_and_start_on_two(book: Book, paper: str, tmp_path: Path) -> None:
    from sizing_xlsx.report.chart_parts import sheets
    from sizing_xlsx.workbook.package import Archive

    archive = Archive(book.path.read_bytes(), "book")
    code = f'paperSize="{PAPERS[paper][0]}"'.encode()
    changed = {part: re.sub(rb'paperSize="\d+"', code, archive.read(part)) for part in sheets(archive).values()}
    (tmp_path / "paper.xlsx").write_bytes(archive.replaced(changed))
    pdf = to_pdf(tmp_path / "paper.xlsx", tmp_path)
    text = subprocess.run(["pdftotext", "-layout", str(pdf), "-"], check=True, capture_output=True, timeout=60).stdout
    pages = [name.decode() for name in re.findall(rb"(\S[^\n]*\S) +Page \d+ of \d+", text)]
    counts = {sheet: sum(page.endswith(f" {sheet}") for page in pages) for sheet in ("Start", "Summary", "Sizing")}
    assert counts == {"Start": 2, "Summary": 1, "Sizing": len(Page(book, "Sizing").breaks) + 1}
    assert text.count(b"###") == 0, "a figure that does not fit its cell"


def test_the_keyboard_goes_through_the_inputs_in_the_order_they_are_read(book: Book) -> None:
    """Tab visits unlocked cells row by row; the steps of Sizing stand in one column, so it follows their order."""
    names = contents(book.path).names
    steps = [row["input"] for step in book.template["steps"] for row in step["rows"] if "input" in row]
    questions = read_guide(book.template["start"]["guide"], "guide").questions
    orders = {
        "Sizing": ["Scenario_Choice", *(public_name(key) for key in steps)],
        "Start": [answer_name(question.id) for question in questions],
        "Summary": [DATE, BY],
    }
    for sheet, inputs in orders.items():
        places = [names[name.casefold()] for name in inputs]
        assert unlocked(book, sheet) == places, sheet


def unlocked(book: Book, sheet: str) -> list[tuple[str, int, int]]:
    """The cells of a sheet that can be typed into, as the keyboard visits them."""
    styles = etree.fromstring(book.parts["xl/styles.xml"]).find(MAIN + "cellXfs")
    free = set()
    for at, style in enumerate(styles):
        protection = style.find(MAIN + "protection")
        if protection is not None and protection.get("locked") == "0":
            free.add(str(at))
    return sorted(place for place, cell in book.sheets[sheet].cells() if cell.get("s", "0") in free)


def test_sheets_with_inputs_fit_a_screen(book: Book) -> None:
    """What must be seen at once while typing fits 1,300 pixels."""
    for sheet in ("Start", "Sizing", "Summary"):
        assert Page(book, sheet).width() / PIXEL <= 1300, sheet

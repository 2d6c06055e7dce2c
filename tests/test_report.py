"""sizing-xlsx report: the Summary as PDF, each chart as a picture of what its cells hold, the workbook untouched."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Book
from engines import libreoffice_available

from sizing_xlsx.cli import main
from sizing_xlsx.report import command, draw, office
from sizing_xlsx.report.chart_parts import Axis, Chart, Series, charts, sheets
from sizing_xlsx.report.summary_page import summary_alone
from sizing_xlsx.workbook.package import Archive
from sizing_xlsx.workbook.patch import open_package
from sizing_xlsx.workbook.planner_file import PlannerFile
from sizing_xlsx.workbook.styles import load_look

PNG = b"\x89PNG\r\n\x1a\n"
FORMULA_VALUE = re.compile(rb"(<f>[^<]*</f>)<v>[^<]*</v>")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without LibreOffice."""
    monkeypatch.setattr(command, "find_office", lambda: None)


def typed(book: Book, folder: Path, **inputs: Any) -> Path:
    """A copy of a workbook with inputs typed into it, its other values as they were."""
    path = Path(shutil.copy(book.path, folder / "mine.xlsx"))
    package = open_package(path)
    cells = {}
    for name, value in inputs.items():
        area = package.area(name)
        cells[area.sheet, area.first_row, area.first_column] = value
    package.write(cells, backup=False)
    return path


def reader(archive: Archive) -> Callable[[str, int, int], Any]:
    file = PlannerFile(archive.data, archive.where)
    return lambda sheet, row, column: file.cell(sheet, row, column).value


def found(book: Book) -> list[Chart]:
    archive = Archive(book.path.read_bytes(), "book")
    return charts(archive, reader(archive))


def by_title(book: Book, words: str) -> Chart:
    return next(chart for chart in found(book) if words in chart.title)


# -- what the charts are


def test_charts_hold_what_their_cells_hold(book: Book) -> None:
    """The memory chart adds up to the total, peak and capacity that Python calculates."""
    chart = by_title(book, "GB needed")
    values = book.job.reference()
    assert (chart.sheet, chart.number, chart.kind, chart.across, chart.stacked) == ("Sizing", 1, "bar", True, True)
    entered = next(at for at, name in enumerate(chart.series[0].x) if name.startswith("As entered"))
    parts = [series.y[entered] for series in chart.series if not math.isnan(series.y[entered])]
    assert sum(parts) == pytest.approx(values["total_reserved_gb"])
    assert [series.fill for series in chart.series] == ["#56B4E9", "#0072B2", "#009E73", "#E69F00", "#C9D1D9"]
    assert [series.hatched for series in chart.series] == [False, False, False, True, False]
    assert (chart.x.title, chart.x.low, chart.y.title) == ("Memory, GB", 0, "")


def test_lines_points_and_logarithmic_axes_are_read(book: Book) -> None:
    chart = by_title(book, "measured peaks" if book.name == "lora" else "line of measured")
    assert (chart.kind, chart.x.log, chart.y.log) == ("scatter", True, True)
    assert [series.listed for series in chart.series][:4] == [True, True, False, True]
    assert {series.marker[0] for series in chart.series if series.marker} >= {"circle", "square"}
    growth = by_title(book, "not even one token" if book.name == "full" else "sequences of up to")
    assert growth.series[0].line == ("#0072B2", pytest.approx(1.75), "solid")
    assert growth.series[0].x == sorted(growth.series[0].x)


def test_the_memory_chart_of_the_summary_is_drawn_once(book: Book) -> None:
    titles = [chart.title for chart in found(book)]
    assert len(titles) == len({*titles})
    assert "Summary" not in [chart.sheet for chart in found(book)]


def test_a_title_is_that_of_its_cell_and_not_the_charts_own_copy(book: Book, tmp_path: Path) -> None:
    archive = Archive(book.path.read_bytes(), "book")
    part = archive.read("xl/charts/chart1.xml")
    title = by_title(book, "GB needed").title
    old = Archive(archive.replaced({"xl/charts/chart1.xml": part.replace(title.encode(), b"An old title")}), "book")
    assert title in [chart.title for chart in charts(old, reader(old))]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"c:barChart>", b"c:pieChart>", "is no chart of bars, lines or points"),
        (b"'Chart data'!$C$10:$C$12", b"Totals_By_Part", "it should be one area of cells"),
        (b"<c:chartSpace", b"<!DOCTYPE x><c:chartSpace", "declares a document type"),
    ],
)
def test_a_chart_that_cannot_be_drawn_is_named(books: dict[str, Book], old: bytes, new: bytes, words: str) -> None:
    archive = Archive(books["lora"].path.read_bytes(), "book")
    part = archive.read("xl/charts/chart1.xml")
    assert old in part
    changed = Archive(archive.replaced({"xl/charts/chart1.xml": part.replace(old, new)}), "book")
    with pytest.raises(ValueError, match=words) as caught:
        charts(changed, reader(changed))
    assert "chart1.xml" in str(caught.value) and "\n" not in str(caught.value)


# -- pictures


@pytest.mark.usefixtures("alone")
def test_without_libreoffice_there_are_pictures_and_a_sentence(
    books: dict[str, Book], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = books["training"]
    before = book.path.read_bytes()
    assert main(["report", str(book.path), "--output", str(tmp_path / "out")]) == 0
    told = capsys.readouterr()
    paths = [Path(line) for line in told.out.splitlines()]
    assert told.err.count("\n") == 1 and "no PDF, as LibreOffice is not installed" in told.err
    assert [path.name for path in paths] == [
        f"{book.path.stem}-{chart.sheet.lower().replace(' ', '-')}-{chart.number}.png" for chart in found(book)
    ]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in paths)
    for path in paths:
        assert path.read_bytes().startswith(PNG) and path.stat().st_size > 10_000
    assert book.path.read_bytes() == before


def test_a_picture_has_the_colours_of_its_chart(books: dict[str, Book]) -> None:
    import io

    from matplotlib.image import imread

    picture = imread(io.BytesIO(draw.png(by_title(books["lora"], "GB needed"), load_look())))
    seen = {tuple(round(float(part) * 255) for part in pixel[:3]) for line in picture[::3] for pixel in line[::3]}
    assert {(0x56, 0xB4, 0xE9), (0x00, 0x72, 0xB2), (0xC9, 0xD1, 0xD9)} <= seen


def test_a_chart_without_a_point_is_drawn_all_the_same() -> None:
    """What a workbook with a wrong input has: #N/A everywhere."""
    nothing = Series("Total", [1.0, 2.0], [math.nan, math.nan], None, False, ("#000000", 1.0, "solid"), None, True)
    plain = Axis("GB", None, None, False, "#,##0")
    for log in (False, True):
        axis = plain._replace(log=log)
        chart = Chart("Sizing", 1, "scatter", False, False, "Check input", "", (6, 3), [nothing], axis, axis)
        assert draw.png(chart, load_look()).startswith(PNG)


@pytest.mark.parametrize(
    ("value", "form", "words"),
    [(1000, "#,##0", "1,000"), (-2.5, "#,##0", "−2.5"), (0.08, "+0%", "+8%"), (0, "+0%", "0%"), (-0.02, "0%", "−2%")],
)
def test_numbers_beside_axes(value: float, form: str, words: str) -> None:
    assert draw.tick(value, form) == words


# -- the page


@pytest.mark.skipif(not libreoffice_available()[0], reason="LibreOffice is not here")
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not here")
def test_the_page_counts_what_was_typed_and_is_one(books: dict[str, Book], tmp_path: Path) -> None:
    """The file still holds the values of the worked job: they must not be printed."""
    book = books["lora"]
    path = typed(book, tmp_path, Batch_Size=512, Sequence_Length=1024)
    before = path.read_bytes()
    made = command.report(path, tmp_path / "out")
    pdf = next(file for file in made if file.suffix == ".pdf")
    assert pdf.name == "mine-summary.pdf"
    assert len(made) == 1 + len(found(book))
    text = subprocess.run(["pdftotext", "-layout", str(pdf), "-"], check=True, capture_output=True, timeout=60).stdout
    words = text.decode()
    values = book.job.reference({"batch_size": 512, "sequence_length": 1024})
    assert words.count("\f") == 1, "one page"
    assert "mine.xlsx, version" in words
    assert "###" not in words
    assert f"{values['peak_allocated_gb']:,.3f}" in words
    assert "512 rows" in words and "1,024 tokens" in words
    assert "Does not fit" in words and values["fit_verdict"] == "does not fit"
    title = re.search(r"([\d,]+\.\d) of 85\.0 GB needed", words)
    assert title and float(title[1].replace(",", "")) == pytest.approx(values["total_reserved_gb"], abs=0.11), (
        "the chart's title too"
    )
    assert path.read_bytes() == before


def test_all_other_sheets_print_nothing(book: Book) -> None:
    archive = Archive(book.path.read_bytes(), "book")
    copy = Archive(summary_alone(archive, "Summary", lambda reference: "<now & here>"), "book")
    text = copy.read("xl/workbook.xml").decode()
    areas = dict(re.findall(r'name="_xlnm.Print_Area" localSheetId="(\d+)">([^<]*)<', text))
    known = list(sheets(archive))
    assert len(areas) == len(known)
    printed = [known[int(at)] for at, area in areas.items() if not area.endswith("$XFD$1048576")]
    assert printed == ["Summary"]
    assert text.count("<definedName ") > 500, "names stay"
    assert b"&lt;now &amp; here&gt;</c:v>" in copy.read("xl/charts/chart1.xml")


def test_a_workbook_without_a_summary_is_refused(book: Book) -> None:
    with pytest.raises(ValueError, match="book has no sheet Nothing, which the report prints"):
        summary_alone(Archive(book.path.read_bytes(), "book"), "Nothing", str)


# -- what cannot be reported


@pytest.mark.usefixtures("alone")
def test_values_that_are_missing_are_named(
    books: dict[str, Book], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Archive(books["lora"].path.read_bytes(), "book")
    part = sheets(archive)["Chart data"]
    data, count = FORMULA_VALUE.subn(rb"\1", archive.read(part))
    assert count > 50
    (tmp_path / "bare.xlsx").write_bytes(archive.replaced({part: data}))
    assert main(["report", str(tmp_path / "bare.xlsx"), "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert re.search(
        r"bare\.xlsx was saved without the value of Chart data![A-Z]+\d+; open it in Excel and save it", told
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("gone.xlsx", None, "is not there"), ("text.xlsx", b"not a workbook", "text.xlsx"), ("old.xls", b"", "old.xls")],
)
def test_a_file_that_is_no_workbook_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: bytes | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["report", str(tmp_path / name), "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_missing_matplotlib_is_named(
    book: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["report", str(book.path), "--output", str(tmp_path)]) == 2
    assert "pip install 'sizing-xlsx[report]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "words"),
    [("exit 0", "made no pdf of plan.xlsx; it says: nothing"), ("echo it broke >&2; exit 3", "it says: it broke")],
)
def test_a_libreoffice_that_makes_nothing_is_named(tmp_path: Path, script: str, words: str) -> None:
    program = tmp_path / "soffice"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with office.Office(program, "plan.xlsx") as libreoffice, pytest.raises(ValueError, match=words):
        libreoffice.convert(b"", "plan.xlsx", "pdf")


def test_a_libreoffice_that_does_not_start_or_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        office.Office(tmp_path / "none", "plan.xlsx") as libreoffice,
        pytest.raises(ValueError, match="does not start"),
    ):
        libreoffice.convert(b"", "plan.xlsx", "pdf")
    program = tmp_path / "soffice"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(office, "TIMEOUT_S", 0.3)
    with office.Office(program, "plan.xlsx") as libreoffice, pytest.raises(ValueError, match="more than 0.3 seconds"):
        libreoffice.convert(b"", "plan.xlsx", "pdf")


def test_the_package_starts_without_matplotlib() -> None:
    code = "import sys, sizing_xlsx.report.command; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0

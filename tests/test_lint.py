"""Each rule of the workbook lint: a workbook that breaks just it is reported, and a clean one passes."""

from __future__ import annotations

import datetime
import re
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from sizing_xlsx.cli import main
from sizing_xlsx.workbook.lint import lint, r1c1

SHEET = "xl/worksheets/sheet1.xml"
CHART = "xl/charts/chart1.xml"
DATE = datetime.datetime(2024, 5, 1)
Patch = Callable[[str, str], str]


def build(path: Path, change: Callable[[Any, dict[str, Any], dict[str, Any]], None] | None = None) -> Path:
    """A clean workbook: two sheets, an input, a dropdown, a table, a chart; change() spoils it in one way."""
    book = xlsxwriter.Workbook(path)
    book.set_properties({"created": DATE})
    form = {
        "input": book.add_format({"locked": False}),
        "bold": book.add_format({"bold": True}),
        "quoted": book.add_format({"quote_prefix": True}),
    }
    sheets = {name: book.add_worksheet(name) for name in ("Sizing", "GPU list")}
    for sheet in sheets.values():
        sheet.hide_gridlines(2)
        sheet.protect()
        sheet.print_area("A1:F40")
        sheet.fit_to_pages(1, 0)
        sheet.set_footer("&L&F&RPage &P of &N")
        sheet.freeze_panes(1, 0)
    sizing, gpus = sheets["Sizing"], sheets["GPU list"]
    for row, (name, capacity) in enumerate([("H100", 80), ("L4", 24), ("T4", 16)], 1):
        gpus.write_string(row, 0, name)
        gpus.write_number(row, 1, capacity)
        gpus.write_formula(row, 2, f"=B{row + 1}*Safety_Share", None, capacity * 0.5)
        gpus.write_formula(row, 3, f'=A{row + 1}&" GB"', None, f"{name} GB")
    sizing.write_string("A2", "GPU")
    sizing.write_string("B2", "L4", form["input"])
    sizing.write_number("B3", 8, form["input"])
    sizing.write_number("B4", 0.5)
    sizing.write_formula("B6", "=INDEX(GPU_Capacity_GB,MATCH(GPU_Choice,GPU_Keys,0))", None, 24)
    sizing.write_formula("B7", '=IF(Batch_Size*2<=B6,"Fits","Does not fit")', None, "Fits")
    sizing.write_formula("B8", "=2^-9*(1-B6)^3+ROUND(B6,4)+ROUNDUP(B6/2,0)*2^(1/3)", None, 24.5)
    sizing.write_formula("B9", '=FIXED(B6,1,TRUE)&" GB"', None, "24.0 GB")
    sizing.write_formula("B10", "=NA()", None, "#N/A")
    sizing.write_formula("B11", "=B6>2", None, True)
    sizing.write_formula("B12", '=""', None, "")
    sizing.write_formula("B13", "=-(2^2)+(2^2)^2-B6*2^2", None, 1)
    sizing.write_string("A14", "−")
    sizing.write_string("A15", "=quoted", form["quoted"])
    book.define_name("GPU_Choice", "=Sizing!$B$2")
    book.define_name("Batch_Size", "=Sizing!$B$3")
    book.define_name("Safety_Share", "=Sizing!$B$4")
    book.define_name("GPU_Keys", "='GPU list'!$A$2:$A$4")
    book.define_name("GPU_Capacity_GB", "='GPU list'!$B$2:$B$4")
    say = {
        "input_title": "Input",
        "input_message": "Choose one",
        "error_title": "No",
        "error_message": "Not in list",
    }
    sizing.data_validation("B2", {"validate": "list", "source": "=GPU_Keys", **say})
    bounds = {"validate": "integer", "criteria": "between", "minimum": 1, "maximum": 4096}
    sizing.data_validation("B3", {**bounds, **say})
    sizing.conditional_format("B7", {"type": "formula", "criteria": '=LEFT($B$7,4)="Fits"', "format": form["bold"]})
    chart = book.add_chart({"type": "column"})
    chart.add_series({"name": "Capacity", "categories": "='GPU list'!$A$2:$A$4", "values": "='GPU list'!$B$2:$B$4"})
    chart.set_title({"name": "Capacity of each GPU"})
    sizing.insert_chart("D2", chart, {"description": "Columns: the capacity of each GPU in GB"})
    if change is not None:
        change(book, sheets, form)
    book.close()
    # What XlsxWriter leaves out: the type of an empty text, and two settings of charts.
    patch(path, SHEET, lambda t: t.replace('<c r="B12"><f>', '<c r="B12" t="str"><f>'))
    patch(path, CHART, lambda t: t.replace("</c:scaling>", '</c:scaling><c:delete val="0"/>'))
    patch(path, CHART, lambda t: t.replace("<c:chart>", '<c:roundedCorners val="0"/><c:chart>'))
    return path


def patch(path: Path, part: str, change: Callable[[str], str], *, must_differ: bool = True) -> None:
    """Rewrite one part of a workbook; every part keeps its date."""
    with zipfile.ZipFile(path) as archive:
        parts = [(info, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w") as archive:
        for info, data in parts:
            if info.filename == part:
                new = change(data.decode()).encode()
                assert new != data or not must_differ, part
                data = new
            archive.writestr(info, data)


def test_a_clean_workbook_passes(tmp_path: Path) -> None:
    path = build(tmp_path / "clean.xlsx")
    assert lint(path, tables={"GPU list": ["A2:D4"]}) == []
    assert lint(path, tables={"GPU list": []}) == []


def formula(text: str, value: object = 1) -> Callable[..., None]:
    return lambda book, sheets, form: sheets["Sizing"].write_formula("C12", text, None, value)


def name(defined: str, target: str = "=Sizing!$B$6") -> Callable[..., None]:
    return lambda book, sheets, form: book.define_name(defined, target)


FORMULAS = [
    ("=B6*160", "Sizing!C12: formula has the number 160; every constant belongs in a named cell"),
    ("=ROUND(B6,5)", "number 5"),
    ("=ROUND(7,2)", "number 7"),
    ("=ROUND(INDEX(B6:B8,3),2)", "number 3"),
    ("=2^B6+9", "number 9"),
    ("=B6*1E9", "number 1E9"),
    ("=B6*2%", "percent sign"),
    ("=SQRT(B6)", "uses SQRT, which is not among"),
    ('=TEXT(B6,"0.0")', "uses TEXT, which depends on the reader's locale"),
    ("=TODAY()", "uses TODAY, which is volatile"),
    ("=OFFSET(B6,1,0)", "uses OFFSET, which hides"),
    ('=INDIRECT("B6")', "uses INDIRECT, which hides"),
    ("=_xlfn.LET(Batch_Size,B6,B6)", "uses LET, which does not work"),
    ("=_xlfn.IFS(B6>1,B6)", "uses IFS, which is not among"),
    ("=[1]Prices!A1", "refers to another workbook"),
    ("=SUM(Table1[Cost])", "refers to a table by structured reference"),
    ("=SUM(B:B)", "refers to whole columns or rows"),
    ("=SUM('GPU list'!$2:$4)", "refers to whole columns or rows"),
    ("=SUM({1,2})", "array constant"),
    ("=IF(TRUE,B6,0)", "literal TRUE"),
    ("=B6+#REF!", "#REF!"),
    ("=Batch_Sise*2", "'Batch_Sise', which is neither a cell nor a defined name"),
    ("=Sizes!B6", "refers to the sheet 'Sizes'"),
    ("=SUM(B6:B8 B7:B9)", "intersects ranges"),
    ("=SUM((B6:B8,B7:B9))", "unites ranges"),
    ("=-B6^2", "minus before a power"),
    ("=B7*-2^2", "minus before a power"),
    ("=2^B6^2", "power of a power"),
    ("=MATCH(B6,B6:B8)", "MATCH without 0"),
    ("=MATCH(B6,B6:B8,1)", "MATCH without 0"),
    ("=IF(B6>1,IF(B6>2,IF(B7>1,IF(B8>1,1,0),0),0),0)", "nests functions 4 deep"),
    ("=B6" + "+B6" * 60, "has 183 characters; at most 160"),
    ('="' + "x" * 256 + '"', "text of 256 characters"),
]


@pytest.mark.parametrize(("text", "message"), FORMULAS, ids=[f[:40] for f, _ in FORMULAS])
def test_formulas(tmp_path: Path, text: str, message: str) -> None:
    found = lint(build(tmp_path / "book.xlsx", formula(text)))
    assert any(message in sentence and sentence.startswith("Sizing!C12: ") for sentence in found), found
    # No other rule is broken, except that a long text makes a long formula.
    assert len(found) == 1 + ("text of" in message), found


@pytest.mark.parametrize(
    "text",
    [
        "=2^-3*(B6+1)^(1/5)",
        "=ROUND(B6,3)",
        "=FIXED(B6,4)",
        "='GPU list'!B2&\"160\"",
        "=MATCH(MAX(B6:B8),B6:B8,0)",
        "=SUMPRODUCT((B6:B8>1)*B6:B8)",
        "=B6-2^2",
        "=batch_size*2",
        "=IF( B6 > 2 , B6 , (B7) )",
        "=1-(-2)^2",
        "=INDEX(B6:B8,2,1)",
        '=IF(B6="(1,2","=",B6)',
    ],
)
def test_good_formulas_pass(tmp_path: Path, text: str) -> None:
    assert lint(build(tmp_path / "book.xlsx", formula(text))) == []


def test_a_very_long_formula_is_reported_even_where_exempt(tmp_path: Path) -> None:
    path = build(tmp_path / "book.xlsx", formula("=B6" + "+B6" * 2800))
    assert lint(path, exempt=lambda *_: True) == ["Sizing!C12: formula has 8403 characters; Excel reads at most 8192"]


def test_exemptions_see_sheet_cell_and_formula(tmp_path: Path) -> None:
    long = "=B6" + "+B6" * 60 + "*160"
    path = build(tmp_path / "book.xlsx", formula(long))
    assert len(lint(path)) == 2
    seen: list[tuple[str, str, str]] = []

    def exempt(*where: str) -> bool:
        seen.append(where)  # type: ignore[arg-type]
        return True

    assert lint(path, exempt=exempt, exempt_numbers=exempt) == []
    assert seen == [("Sizing", "C12", long)] * 2
    assert lint(path, functions={"NA"}) != []


def test_rows_of_a_table_are_told_apart(tmp_path: Path) -> None:
    def spoil(book: Any, sheets: dict[str, Any], form: dict[str, Any]) -> None:
        sheets["GPU list"].write_formula("C3", "=B3*2*Safety_Share", None, 24)

    path = build(tmp_path / "book.xlsx", spoil)
    want = "GPU list!C3: its formula differs from the one in C2; a column has one formula"
    assert lint(path) == []
    assert lint(path, tables={"GPU list": ["A2:D4"]}) == [want]
    assert lint(path, tables={"GPU list": []}) == [want]


def test_a_value_in_a_column_of_formulas_is_reported(tmp_path: Path) -> None:
    path = build(tmp_path / "book.xlsx", lambda b, s, f: s["GPU list"].write_number("C4", 8))
    assert lint(path, tables={"GPU list": ["A2:D4"]}) == ["GPU list!C4: is a value in a column of formulas"]


def test_an_unknown_table_sheet_is_reported(tmp_path: Path) -> None:
    assert lint(build(tmp_path / "book.xlsx"), tables={"Gone": []}) == [
        "Gone: no sheet of this name, though it is said to hold a table"
    ]


NAMES = [
    ("Margin", "=Sizing!$B$6", "has no underscore"),
    ("Größe_GB", "=Sizing!$B$6", "only ASCII"),
    ("A_" + "b" * 70, "=Sizing!$B$6", "has 72 characters"),
    ("Two_Columns", "=Sizing!$B$6:$C$7", "more than one column"),
    ("Rel_Ative", "=Sizing!B6", "it must be one cell"),
    ("Con_Stant", "=42", "it must be one cell"),
    ("For_Mula", "=Sizing!$B$6*2", "it must be one cell"),
    ("Lost_Cell", "=Gone!$B$6", "the sheet 'Gone'"),
    ("BATCH_SIZE", "=Sizing!$B$6", "by case"),
]


@pytest.mark.parametrize(("defined", "target", "message"), NAMES, ids=[n[0][:20] for n in NAMES])
def test_names(tmp_path: Path, defined: str, target: str, message: str) -> None:
    if not defined.isascii() or defined == "BATCH_SIZE":
        path = build(tmp_path / "book.xlsx", name("Batch_Sizf", target))  # XlsxWriter would not write or order it
        patch(path, "xl/workbook.xml", lambda text: text.replace("Batch_Sizf", defined))
    else:
        path = build(tmp_path / "book.xlsx", name(defined, target))
    found = lint(path)
    assert len(found) == 1 and found[0].startswith("Name ") and message in found[0]


@pytest.mark.parametrize("defined", ["H100", "L4", "FF2", "XFD1048576", "R1C1", "R", "c", "RC", "R2", "C7", "mi300"])
def test_names_that_read_as_cells(tmp_path: Path, defined: str) -> None:
    path = build(tmp_path / "book.xlsx", name("Odd_Name"))
    patch(path, "xl/workbook.xml", lambda text: text.replace("Odd_Name", defined))
    assert f"Name {defined}: reads as the address of a cell" in lint(path)


def test_a_name_defined_twice(tmp_path: Path) -> None:
    path = build(tmp_path / "book.xlsx", name("Sizing!Batch_Size"))
    assert lint(path) == ["Name Batch_Size: defined twice"]


def test_generated_names_need_not_be_cells(tmp_path: Path) -> None:
    path = build(tmp_path / "book.xlsx", name("GPU_FITS", "=_xlfn.LAMBDA(_xlpm.x_1,_xlpm.x_1)"))
    assert len(lint(path)) == 1
    assert lint(path, generated_names=["gpu_fits"]) == []


PATCHES: list[tuple[str, str, str, str, str]] = [
    # id, part, pattern, replacement, message
    (
        "no value",
        SHEET,
        r"(<c r=\"B6\"[^>]*><f>[^<]*</f>)<v>24</v>",
        r"\1",
        "Sizing!B6: the formula has no cached value",
    ),
    ("no number", SHEET, r"<v>24</v>", "<v></v>", "Sizing!B6: the formula has no cached value"),
    ("text as number", SHEET, r't="str"(><f>IF)', r"\1", "Sizing!B7: the cached value 'Fits' is no number"),
    ("nan", SHEET, r"<v>24</v>", "<v>nan</v>", "Sizing!B6: the cached value 'nan' is no number"),
    (
        "odd bool",
        SHEET,
        r't="b"(.*?)<v>1</v>',
        r't="b"\1<v>TRUE</v>',
        "Sizing!B11: the cached value 'TRUE' is not 0 or 1",
    ),
    ("odd error", SHEET, r"<v>#N/A</v>", "<v>NA</v>", "Sizing!B10: the cached value 'NA' is no error"),
    ("shared text", SHEET, r't="str"(><f>IF)', r't="s"\1', "Sizing!B7: the cached value has the type 's'"),
    ("typed blank", SHEET, "</row>", '<c r="F1" t="n"/></row>', 'Sizing!F1: a blank cell has the type t="n"'),
    ("array", SHEET, "<f>INDEX", '<f t="array" ref="B6">INDEX', "Sizing!B6: is an array formula"),
    (
        "what-if",
        SHEET,
        "<f>INDEX",
        '<f t="dataTable" ref="B6">INDEX',
        "Sizing!B6: is part of a what-if data table",
    ),
    (
        "merged",
        SHEET,
        "<dataValidations",
        '<mergeCells count="1"><mergeCell ref="A1:C1"/></mergeCells><dataValidations',
        "Sizing!A1:C1: cells are merged",
    ),
    ("unprotected", SHEET, "<sheetProtection[^>]*/>", "", "Sizing: is not protected"),
    (
        "password",
        SHEET,
        "<sheetProtection ",
        '<sheetProtection password="83AF" ',
        "Sizing: is protected with a password",
    ),
    ("gridlines", SHEET, ' showGridLines="0"', "", "Sizing: gridlines are on"),
    ("not frozen", SHEET, "<pane [^>]*/>", "", "Sizing: no rows or columns are frozen"),
    ("not fitted", SHEET, "<pageSetUpPr[^>]*/>", "", "Sizing: does not print one page wide"),
    ("two wide", SHEET, "<pageSetup ", '<pageSetup fitToWidth="2" ', "Sizing: does not print one page wide"),
    ("no footer", SHEET, "<oddFooter>.*?</oddFooter>", "", "Sizing: has no footer"),
    (
        "no print area",
        "xl/workbook.xml",
        r"<definedName name=\"_xlnm.Print_Area\" localSheetId=\"0\">.*?</definedName>",
        "",
        "Sizing: has no print area",
    ),
    (
        "hidden",
        "xl/workbook.xml",
        '<sheet name="GPU list"',
        r'<sheet state="veryHidden" name="GPU list"',
        "GPU list: the sheet is veryHidden",
    ),
    ("no calc", "xl/workbook.xml", ' fullCalcOnLoad="1"', "", "Document: fullCalcOnLoad is not set"),
    (
        "any input",
        SHEET,
        r'showErrorMessage="1" ([^>]*sqref="B2")',
        r"\1",
        "B2: the data validation shows no error message",
    ),
    (
        "warning",
        SHEET,
        r'(<dataValidation )([^>]*sqref="B2")',
        r'\1errorStyle="warning" \2',
        "B2: the data validation only warns",
    ),
    ("no prompt", SHEET, r' prompt="[^"]*"( sqref="B2")', r"\1", "B2: the data validation shows no prompt"),
    (
        "inline list",
        SHEET,
        "<formula1>GPU_Keys<",
        '<formula1>"H100,L4"<',
        "Sizing!B2: the list is typed into the data validation; ",
    ),
    (
        "long list",
        SHEET,
        "<formula1>GPU_Keys<",
        f'<formula1>"{"H100,L4" * 40}"<',
        "characters, which corrupts the file",
    ),
    (
        "volatile list",
        SHEET,
        "<formula1>GPU_Keys<",
        "<formula1>OFFSET(GPU_Keys,1,0)<",
        "Sizing!B2: data validation uses OFFSET",
    ),
    (
        "wrong list",
        SHEET,
        "<formula1>GPU_Keys<",
        "<formula1>GPU_Kees<",
        "Sizing!B2: data validation refers to 'GPU_Kees'",
    ),
    (
        "empty rule",
        SHEET,
        "<formula1>GPU_Keys</formula1>",
        "",
        "B2: the data validation has nothing to check",
    ),
    ("anything", SHEET, 'type="list" ', "", "B2: the data validation accepts anything"),
    (
        "format",
        SHEET,
        r"<formula>LEFT\(\$B\$7,4\)",
        "<formula>INDIRECT($B$7)",
        "Sizing!B7: conditional format uses INDIRECT",
    ),
    ("free input", SHEET, 'sqref="B3"', 'sqref="B30"', "Sizing!B3: is unlocked but has no data validation"),
    ("axis", CHART, '(<c:valAx>.*?)<c:delete val="0"/>', r"\1", "an axis (valAx) lacks"),
    (
        "axis off",
        CHART,
        '(<c:catAx>.*?)<c:delete val="0"/>',
        r'\1<c:delete val="1"/>',
        "an axis (catAx) lacks",
    ),
    ("corners", CHART, '<c:roundedCorners val="0"/>', "", "rounded corners are not off"),
    ("title", CHART, "<c:title>.*?</c:title>", "", "xl/charts/chart1.xml: has no title"),
    ("points", CHART, "<c:numCache>.*?</c:numCache>", "", "'GPU list'!$B$2:$B$4 has no cached points"),
    ("labels", CHART, "<c:strCache>.*?</c:strCache>", "", "'GPU list'!$A$2:$A$4 has no cached points"),
    (
        "alt text",
        "xl/drawings/drawing1.xml",
        ' descr="[^"]*"',
        "",
        "xl/drawings/drawing1.xml: 'Chart 1' has no alt text",
    ),
]


@pytest.mark.parametrize(
    ("part", "pattern", "replacement", "message"), [p[1:] for p in PATCHES], ids=[p[0] for p in PATCHES]
)
def test_rules_of_the_parts(tmp_path: Path, part: str, pattern: str, replacement: str, message: str) -> None:
    path = build(tmp_path / "book.xlsx")
    patch(path, part, lambda text: re.sub(pattern, replacement, text, count=1, flags=re.S))
    found = lint(path)
    assert len(found) == 1 and message in found[0], found


@pytest.mark.parametrize(
    "rule, sheet",
    [
        ("protection", "is not protected"),
        ("gridlines", "gridlines are on"),
        ("print area", "has no print area"),
        ("one page wide", "does not print one page wide"),
        ("footer", "has no footer"),
        ("freeze panes", "no rows or columns are frozen"),
    ],
)
def test_a_sheet_can_go_without(tmp_path: Path, rule: str, sheet: str) -> None:
    path = build(tmp_path / "book.xlsx", lambda b, s, f: b.add_worksheet("Bare").write_number("A1", 1))
    assert f"Bare: {sheet}" in lint(path)
    assert f"Bare: {sheet}" not in lint(path, without={rule: ["Bare"]})
    assert f"Bare: {sheet}" not in lint(path, without={rule: ["*"]})
    assert len(lint(path)) == 6


def test_unknown_rules_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'freeze'"):
        lint(build(tmp_path / "book.xlsx"), without={"freeze": ["*"]})


@pytest.mark.parametrize("text", ["=1+1", "+3", "-5", "@SUM", "\tx"])
@pytest.mark.parametrize("inline", [False, True])
def test_texts_that_begin_like_formulas(tmp_path: Path, text: str, inline: bool) -> None:
    path = build(tmp_path / "book.xlsx", lambda b, s, f: s["Sizing"].write_string("A20", "placeholder"))
    if inline:
        patch(
            path,
            SHEET,
            lambda t: re.sub(r'<c r="A20" t="s">.*?</c>', f'<c r="A20" t="inlineStr"><is><t>{text}</t></is></c>', t),
        )
    else:
        patch(path, "xl/sharedStrings.xml", lambda t: t.replace("placeholder", text))
    assert lint(path) == [f"Sizing!A20: the text {text!r} begins like a formula; set its quote prefix"]


@pytest.mark.parametrize("text", ["-", "–", "−", "plain", "1-2"])
def test_lone_dashes_and_plain_texts_pass(tmp_path: Path, text: str) -> None:
    assert lint(build(tmp_path / "book.xlsx", lambda b, s, f: s["Sizing"].write_string("A20", text))) == []


def test_dates_of_today_are_reported(tmp_path: Path) -> None:
    path = build(tmp_path / "book.xlsx")
    found = lint(path, today=DATE.date())
    assert [f.split(",")[0] for f in found] == [
        "Document: the date created is today",
        "Document: the date modified is today",
    ]
    patch(path, "docProps/core.xml", lambda t: re.sub("<dcterms:modified.*?</dcterms:modified>", "", t))
    assert lint(path) == ["Document: the date modified is missing from docProps/core.xml"]


def test_dates_inside_the_zip_are_fixed(tmp_path: Path) -> None:
    path = build(tmp_path / "book.xlsx")
    message = "Document: the dates inside the zip are not fixed; give every part the same past date"
    assert message in lint(path, today=datetime.date(1980, 1, 31))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo("extra.txt", (2020, 1, 1, 0, 0, 0)), "x")
    assert lint(path) == [message]


def test_external_links_are_reported(tmp_path: Path) -> None:
    path = build(tmp_path / "book.xlsx")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo("xl/externalLinks/externalLink1.xml", (1980, 1, 31, 0, 0, 0)), "<x/>")
    assert lint(path) == ["Document: xl/externalLinks/externalLink1.xml links to another workbook"]


def test_shared_formulas_are_read(tmp_path: Path) -> None:
    path = build(tmp_path / "book.xlsx")
    patch(
        path,
        "xl/worksheets/sheet2.xml",
        lambda t: t.replace("<f>B2*", '<f t="shared" ref="C2:C3" si="0">9*B2*'),
    )
    patch(path, "xl/worksheets/sheet2.xml", lambda t: re.sub(r"<f>B3\*.*?</f>", '<f t="shared" si="0"/>', t))
    assert [f.split(";")[0] for f in lint(path)] == [
        "GPU list!C2: formula has the number 9",
        "GPU list!C3: formula has the number 9",
    ]


@pytest.mark.parametrize(
    ("content", "message"), [(b"not a zip", "no zip file"), (None, "document type"), (b"", "no zip file")]
)
def test_odd_files_are_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = build(tmp_path / "book.xlsx")
    if content is None:
        patch(path, SHEET, lambda t: t.replace("<worksheet", '<!DOCTYPE x [<!ENTITY a "b">]><worksheet', 1))
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        lint(path)


@pytest.mark.parametrize(
    ("text", "row", "column", "want"),
    [
        ("=A1*$B$2", 1, 3, "=RC[-2]*R2C2"),
        ("=SUM(B$1:C4)", 4, 2, "=SUM(R1C:RC[1])"),
        ("='My A1 sheet'!A1&\"A1\"", 2, 1, "='My A1 sheet'!R[-1]C&\"A1\""),
        ("=LOG10(A1)+Rate_A1+Batch_Size", 1, 1, "=LOG10(RC)+Rate_A1+Batch_Size"),
        ("=Sheet!$AA10", 9, 1, "=Sheet!R[1]C27"),
    ],
)
def test_r1c1(text: str, row: int, column: int, want: str) -> None:
    assert r1c1(text, row, column) == want


def test_ten_thousand_formulas_take_less_than_three_seconds(tmp_path: Path) -> None:
    def fill(book: Any, sheets: dict[str, Any], form: dict[str, Any]) -> None:
        for row in range(30, 1030):
            for column in range(5, 15):
                text = f"=IF(B{row + 1}>2,INDEX(GPU_Capacity_GB,MATCH(GPU_Choice,GPU_Keys,0))*$B{row + 2},B6)"
                sheets["Sizing"].write_formula(row, column, text, None, 1)

    path = build(tmp_path / "large.xlsx", fill)
    start = time.perf_counter()
    found = lint(path, tables={"Sizing": []})
    assert time.perf_counter() - start < 3
    assert all("differs" in sentence for sentence in found)


def test_what_is_no_workbook_is_refused_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no zip")
    assert main(["lint", str(path)]) == 2
    assert capsys.readouterr().err == f"sizing-xlsx: {path} is no whole .xlsx workbook: it is no zip file; use a copy that Excel opens.\n"

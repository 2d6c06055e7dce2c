"""Values put into a planner's own file: the cells, one calculation setting, and not a byte beside them."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import stat
import struct
import sys
import types
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from io import BytesIO, RawIOBase
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter
from engines import Formualizer, IronCalc, LibreOffice, engine_parameters
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from sizing_xlsx.workbook import live_excel, package, patch
from sizing_xlsx.workbook.patch import Area, Package, open_package, write_into_open_excel

Edit = Callable[[bytes], bytes]

DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
XF = '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001"
    "5e0d0a2d0000000049454e44ae426082"
)


# -- files of planners


def sheet(rows: str = "", before: str = "", after: str = "", root: str = "") -> str:
    """A worksheet part around rows of cells."""
    data = f"<sheetData>{rows}</sheetData>" if rows else "<sheetData/>"
    return f'{DECLARATION}<worksheet xmlns="{MAIN}" xmlns:r="{RELATIONS}"{root}>{before}{data}{after}</worksheet>'


def parts_of(
    sheets: Mapping[str, str],
    *,
    names: str = "",
    strings: str = "",
    calculation: str = '<calcPr calcId="191029"/>',
    more: Mapping[str, str | bytes] | None = None,
) -> dict[str, bytes]:
    """The parts of a small workbook. names: definedName elements. strings: si elements."""
    tabs = "".join(f'<sheet name="{title}" sheetId="{n}" r:id="rId{n}"/>' for n, title in enumerate(sheets, 1))
    links = "".join(
        f'<Relationship Id="rId{n}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    found: dict[str, str | bytes] = {
        "[Content_Types].xml": f'{DECLARATION}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
        f'{overrides}<Override PartName="/xl/styles.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/><Override '
        'PartName="/xl/sharedStrings.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/></Types>',
        "_rels/.rels": f'{DECLARATION}<Relationships xmlns="{PACKAGE_RELATIONS}"><Relationship Id="rId1" '
        f'Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'{DECLARATION}<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><workbookPr/>'
        f"<sheets>{tabs}</sheets>{f'<definedNames>{names}</definedNames>' if names else ''}{calculation}</workbook>",
        "xl/_rels/workbook.xml.rels": f'{DECLARATION}<Relationships xmlns="{PACKAGE_RELATIONS}">{links}'
        f'<Relationship Id="rIdS" Type="{RELATIONS}/styles" Target="styles.xml"/>'
        f'<Relationship Id="rIdT" Type="{RELATIONS}/sharedStrings" Target="/xl/sharedStrings.xml"/></Relationships>',
        **{f"xl/worksheets/sheet{n}.xml": text for n, text in enumerate(sheets.values(), 1)},
        "xl/styles.xml": f'{DECLARATION}<styleSheet xmlns="{MAIN}"><fonts count="1"><font><sz val="11"/><name val="Calibri"/>'
        '</font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill '
        'patternType="gray125"/></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border>'
        '</borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
        f'<cellXfs count="4">{XF * 4}</cellXfs>'
        "</styleSheet>",
        "xl/sharedStrings.xml": f'{DECLARATION}<sst xmlns="{MAIN}">{strings}</sst>',
        **(more or {}),
    }
    return {name: text.encode() if isinstance(text, str) else text for name, text in found.items()}


def zipped(path: Path, parts: Mapping[str, bytes]) -> Path:
    """The parts as a file whose members differ in time, attributes, packing and extra fields."""
    with zipfile.ZipFile(path, "w") as archive:
        for number, (name, content) in enumerate(parts.items()):
            info = zipfile.ZipInfo(name, (2019, 1 + number % 12, 1 + number % 28, 11, 12, 14))
            info.compress_type = zipfile.ZIP_STORED if number % 5 == 3 else zipfile.ZIP_DEFLATED
            info.external_attr = (0o600 + number % 64) << 16
            info.create_system = number % 4
            info.comment = b"part" * (number % 3)
            info.extra = b"\x99\x99\x04\x00abcd" * (number % 2)
            archive.writestr(info, content)
        archive.comment = b"made by a planner"
    return path


def small(folder: Path, rows: str = "", *, before: str = "", after: str = "", **more: Any) -> Path:
    """A workbook of one sheet, Plan."""
    return zipped(folder / "plan.xlsx", parts_of({"Plan": sheet(rows, before, after)}, **more))


def edited(path: Path, edits: Mapping[str, Edit], more: Mapping[str, bytes] | None = None) -> Path:
    """A file with parts changed by hand, and more of them."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for name, edit in edits.items():
        changed = edit(parts[name])
        assert changed != parts[name], f"the edit of {name} found nothing"
        parts[name] = changed
    return zipped(path, {**parts, **(more or {})})


def put(before: str, new: str) -> Edit:
    """An edit that puts something right before the first place of a text."""
    return lambda part: part.replace(before.encode(), (new + before).encode(), 1)


@pytest.fixture
def planner(tmp_path: Path) -> Path:
    """A file as planners have them, with parts that no library keeps."""
    path, picture, macros = tmp_path / "Kapazität 2027.xlsm", tmp_path / "logo.png", tmp_path / "vba.bin"
    picture.write_bytes(PICTURE)
    macros.write_bytes(b"macros " * 300)
    with xlsxwriter.Workbook(path) as made:
        jobs, data, notes = (made.add_worksheet(name) for name in ("Jobs '27", "Data & more", "Notes"))
        bold, italic, money = (
            made.add_format({k: v}) for k, v in (("bold", 1), ("italic", 1), ("num_format", "0.00 €"))
        )
        jobs.write_row("B3", ["Model", " Batch\n", "GB", "Verdict", "Twice GB"])
        jobs.write_rich_string("B4", "a ", bold, "rich", italic, " text & more")
        jobs.write_row("B5", ["plain", 8, 12.5, "fits"])
        for row in range(3, 12):
            jobs.write_number(row, 3, row / 4, money)
            jobs.write_formula(row, 5, f"=2*D{row + 1}", None, row / 2)
        jobs.write_array_formula("H4:H6", "{=D4:D6*2}", None, 1.5)
        jobs.merge_range("J4:K6", "merged")
        jobs.write_datetime("B14", datetime(2027, 3, 1), made.add_format({"num_format": "yyyy-mm-dd"}))
        jobs.write_boolean("B15", True)
        jobs.write_formula("B16", "=NA()", None, "#N/A")
        jobs.conditional_format("D4:D12", {"type": "data_bar", "data_bar_2010": True, "bar_solid": True})
        jobs.conditional_format("C4:C12", {"type": "icon_set", "icon_style": "3_traffic_lights"})
        jobs.data_validation("C4:C12", {"validate": "list", "source": "='Data & more'!$A$1:$A$5"})
        jobs.add_sparkline("L4", {"range": "'Data & more'!A1:A5", "markers": True})
        jobs.write_comment("C5", "a comment", {"author": "P. Lanner"})
        jobs.insert_image("N2", str(picture))
        chart = made.add_chart({"type": "column"})
        chart.add_series({"values": "='Jobs ''27'!$D$4:$D$12"})
        jobs.insert_chart("N8", chart)
        jobs.freeze_panes(3, 2)
        data.write_column("A1", [1, 2, 3, 4, 5])
        data.write_formula("B1", "=SUM('Jobs ''27'!D4:D12)", None, 15.75)
        data.add_table("D1:F5", {"columns": [{"header": "k"}, {"header": "v", "total_function": "sum"}, {"header": "w"}],
                                 "total_row": True, "name": "Costs"})  # fmt: skip
        notes.write("A1", "nothing here")
        made.define_name("Plan_GB", "='Jobs ''27'!$D$4:$D$12")
        made.define_name("Notes!Plan_Local", "=Notes!$A$1")
        made.define_name("Plan_Moved", "='Jobs ''27'!$C$9:$C$12")
        made.define_name("Plan_Two", "=Notes!$A$1,Notes!$B$2")
        made.define_name("Plan_Number", "=12.5")
        made.define_name("Plan_Gone", "=Notes!#REF!")
        made.add_vba_project(str(macros))
    picture.unlink()
    macros.unlink()
    first, x14 = "xl/worksheets/sheet1.xml", "http://schemas.microsoft.com/office/spreadsheetml/2009/9/main"
    extensions = (
        f'<ext xmlns:x14="{x14}" uri="{{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}}"><x14:dataValidations '
        'xmlns:xm="http://schemas.microsoft.com/office/excel/2006/main" count="1"><x14:dataValidation type="list" '
        'xr:uid="{00000000-0002-0000-0000-000000000000}"><x14:formula1><xm:f>Notes!$A$1:$A$3</xm:f></x14:formula1>'
        f'<xm:sqref>E4:E12</xm:sqref></x14:dataValidation></x14:dataValidations></ext><ext xmlns:x14="{x14}" '
        'uri="{78C0D931-6437-407d-A8EE-F0AAD7539E66}"><x14:conditionalFormattings><x14:conditionalFormatting '
        'xmlns:xm="http://schemas.microsoft.com/office/excel/2006/main"><x14:cfRule type="iconSet" priority="9" id="{1}">'
        '<x14:iconSet iconSet="3Stars"><x14:cfvo type="percent"><xm:f>0</xm:f></x14:cfvo></x14:iconSet></x14:cfRule>'
        "<xm:sqref>D4</xm:sqref></x14:conditionalFormatting></x14:conditionalFormattings></ext>"
    )
    mc = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    return edited(
        path,
        {
            first: lambda part: put(
                "<pageMargins",
                f'<!-- a comment > "with" <c r="A1"> in it --><?planner keep="this"?><mc:AlternateContent xmlns:mc="{mc}"><mc:Choice '
                'xmlns:x14="urn:x" Requires="x14"><controls/></mc:Choice><mc:Fallback/></mc:AlternateContent>',
            )(put("</extLst></worksheet>", extensions)(part)).replace(
                b"<worksheet ",
                b'<worksheet xmlns:xr="http://schemas.microsoft.com/office/spreadsheetml/2014/revision" '
                b'xr:uid="{00000000-0001-0000-0000-000000000000}" ', 1,
            ).replace(b'<row r="5" ', b"<row  ht='20'\n r=\"5\" ", 1),
            "xl/workbook.xml": lambda part: part.replace(b' fullCalcOnLoad="1"', b""),
            "xl/worksheets/_rels/sheet1.xml.rels": put(
                "</Relationships>",
                '<Relationship Id="rId91" Type="http://schemas.microsoft.com/office/2017/10/relationships/threadedComment" '
                'Target="../threadedComments/threadedComment1.xml"/><Relationship Id="rId92" '
                f'Type="{RELATIONS}/printerSettings" Target="../printerSettings/printerSettings1.bin"/>',
            ),
            "xl/_rels/workbook.xml.rels": put(
                "</Relationships>",
                f'<Relationship Id="rId91" Type="{RELATIONS}/pivotCacheDefinition" '
                'Target="pivotCache/pivotCacheDefinition1.xml"/>',
            ),
        },
        {
            "xl/threadedComments/threadedComment1.xml": b'<ThreadedComments xmlns="urn:t"><a>\r\n</a></ThreadedComments>',
            "xl/printerSettings/printerSettings1.bin": random.Random(5).randbytes(700),
            "xl/pivotCache/pivotCacheDefinition1.xml": b"<pivotCacheDefinition/>",
            "customXml/item1.xml": b"<?xml version='1.0' encoding='utf-16'?><x/>",
            "docMetadata/LabelInfo.xml": b"<l/>",
        },
    )  # fmt: skip


# -- what is compared


def members(path: Path) -> dict[str, tuple[Any, ...]]:
    """Everything about each member but where it lies: its header and its packed bytes as they are in the file."""
    data = path.read_bytes()
    found = {}
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        ends = sorted([info.header_offset for info in infos] + [archive.start_dir])
        for info in infos:
            end = ends[ends.index(info.header_offset) + 1]
            known = {name: getattr(info, name) for name in info.__slots__ if name not in (
                "header_offset", "_raw_time", "orig_filename", "_compresslevel", "_end_offset")}  # fmt: skip
            found[info.filename] = (data[info.header_offset : end], repr(known), info.date_time, info.external_attr)
    return found


def part(path: Path, name: str) -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name).decode()


def snapshot(folder: Path) -> dict[str, tuple[bytes | None, int, int]]:
    """Every file and folder with its bytes, mode and time."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = content, status.st_mode, status.st_mtime_ns
    return found


def refusal(call: Callable[[], object], folder: Path) -> str:
    """The sentence with which a call is refused, after which nothing in the folder has changed."""
    before = snapshot(folder)
    with pytest.raises(ValueError) as caught:
        call()
    text = str(caught.value)
    assert snapshot(folder) == before
    assert "\n" not in text and ". " not in text and not text.endswith("."), text
    assert 20 < len(text.replace(str(folder), "")) < 320, text
    return text


def cells_of(path: Path, name: str = "Plan") -> Callable[[str], Any]:
    opened = open_package(path)

    def value(at: str) -> Any:
        row, column = place(at)
        return opened.cell(name, row, column).value

    return value


def place(at: str) -> tuple[int, int]:
    return openpyxl.utils.cell.coordinate_to_tuple(at)[0] - 1, openpyxl.utils.cell.coordinate_to_tuple(at)[1] - 1


def to(values: Mapping[str, Any], name: str = "Plan") -> dict[tuple[str, int, int], Any]:
    """Addresses as places."""
    return {(name, *place(at)): value for at, value in values.items()}


# -- nothing else changes


def test_only_cells_and_one_setting_change(planner: Path, tmp_path: Path) -> None:
    """The whole file, down to the headers of its zip, but for the sheet's cells and calcPr."""
    original = shutil.copyfile(planner, tmp_path / "before")
    os.chmod(planner, 0o640)
    values = {
        "C5": 16,
        "D5": 0.1,
        "E5": "=does <not> fit & more",
        "B4": "plain now",
        "D9": None,
        "B15": False,
        "B40": "new",
    }
    report = open_package(planner).write(to(values, "Jobs '27"))
    assert (report.cells, report.sheets, report.recalculated, report.in_excel) == (7, ("Jobs '27",), False, False)
    old, new = members(original), members(planner)
    changed = {"xl/worksheets/sheet1.xml", "xl/workbook.xml"}
    assert list(old) == list(new)
    assert {name for name in old if old[name] != new[name]} == changed
    for name in changed:
        assert old[name][2:] == new[name][2:]
    expected = part(original, "xl/worksheets/sheet1.xml")
    for was, now in (
        (r'<c r="C5" t="s"?>|<c r="C5"><v>8</v></c>', '<c r="C5"><v>16</v></c>'),
        (r'<c r="D5" s="(\d+)"><v>1</v></c>', r'<c r="D5" s="\1"><v>0.1</v></c>'),
        (r'<c r="E5" t="s"><v>\d+</v></c>', '<c r="E5" t="inlineStr"><is><t>=does &lt;not&gt; fit &amp; more</t></is></c>'),
        (r'<c r="B4" t="s"><v>\d+</v></c>', '<c r="B4" t="inlineStr"><is><t>plain now</t></is></c>'),
        (r'<c r="D9" s="(\d+)"><v>2</v></c>', r'<c r="D9" s="\1"/>'),
        (r'<c r="B15" t="b"><v>1</v></c>', '<c r="B15" t="b"><v>0</v></c>'),
        (r"</sheetData>", '<row r="40"><c r="B40" t="inlineStr"><is><t>new</t></is></c></row></sheetData>'),
        (r'<dimension ref="B3:K16"/>', '<dimension ref="B3:K40"/>'),
    ):  # fmt: skip
        expected, count = re.subn(was, now, expected, count=1)
        assert count == 1, was
    assert part(planner, "xl/worksheets/sheet1.xml") == expected
    settings_before = part(original, "xl/workbook.xml")
    assert part(planner, "xl/workbook.xml") == settings_before.replace('"124519"/>', '"124519" fullCalcOnLoad="1"/>')
    assert stat.S_IMODE(planner.stat().st_mode) == 0o640
    assert report.backup_path is not None and report.backup_path.read_bytes() == original.read_bytes()
    assert re.fullmatch(r"Kapazität 2027\.backup-\d{8}-\d{6}\.xlsm", report.backup_path.name)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["before", planner.name, report.backup_path.name])
    with zipfile.ZipFile(planner) as archive:
        assert archive.testzip() is None and archive.comment == b"made by a planner"


def test_other_programs_read_the_file(planner: Path) -> None:
    open_package(planner).write(to({"C5": 16, "E5": "tight", "H9": True}, "Jobs '27"))
    seen = openpyxl.load_workbook(planner, keep_vba=True, data_only=True)["Jobs '27"]
    assert (seen["C5"].value, seen["E5"].value, seen["H9"].value, seen["F5"].value) == (16, "tight", True, 2)
    with zipfile.ZipFile(planner) as archive:
        for name in archive.namelist():
            if name.endswith((".xml", ".rels")) and not name.startswith("customXml"):
                etree.fromstring(archive.read(name))


@pytest.mark.parametrize("engine", engine_parameters())
def test_engines_calculate_with_the_new_values(
    engine: type[Formualizer] | type[IronCalc] | type[LibreOffice], tmp_path: Path
) -> None:
    path = tmp_path / "plan.xlsx"
    with xlsxwriter.Workbook(path) as made:
        made.add_worksheet("Plan").write_row("A1", [2, "=A1*10"])
        made.get_worksheet_by_name("Plan").write("B2", "=A1&A3")
    open_package(path).write(to({"A1": 7, "A3": " = 1 ", "C4": True, "C5": "007", "D9": 1e-300}))
    with engine(path) as opened:
        opened.recalculate()
        assert opened.get(("Plan", 1, 2)) == 70
        assert opened.get(("Plan", 2, 2)) == "7 = 1 "
        assert opened.get(("Plan", 4, 3)) in (True, 1.0)
        assert opened.get(("Plan", 5, 3)) == "007"
        assert opened.get(("Plan", 9, 4)) == 1e-300


@pytest.mark.parametrize(
    ("calculation", "after"),
    [
        ('<calcPr calcId="191029"/>', '<calcPr calcId="191029" fullCalcOnLoad="1"/>'),
        ('<calcPr calcId="1" fullCalcOnLoad=\'0\' calcMode="manual" />', '<calcPr calcId="1" fullCalcOnLoad=\'1\' calcMode="manual" />'),
        ('<calcPr fullCalcOnLoad="1"/>', '<calcPr fullCalcOnLoad="1"/>'),
        ("<calcPr></calcPr>", '<calcPr fullCalcOnLoad="1"></calcPr>'),
        ("<oleSize ref=\"A1\"/>", '<calcPr fullCalcOnLoad="1"/><oleSize ref="A1"/>'),
        ("", '<calcPr fullCalcOnLoad="1"/>'),
        ("<externalReferences/>", '<externalReferences/><calcPr fullCalcOnLoad="1"/>'),
        ("<extLst/>", '<calcPr fullCalcOnLoad="1"/><extLst/>'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("names", ["", '<definedName name="A_B">Plan!$A$1</definedName>'])
def test_excel_is_told_to_calculate(calculation: str, after: str, names: str, tmp_path: Path) -> None:
    path = small(tmp_path, calculation=calculation, names=names)
    before = part(path, "xl/workbook.xml")
    open_package(path).write(to({"A1": 1}))
    assert part(path, "xl/workbook.xml") == before.replace(calculation + "</workbook>", after + "</workbook>")


# -- the XML of cells

ROW = '<row r="2" spans="2:3" ht="30" customHeight="1"><c r="B2" s="1"><v>1</v></c><c r="C2" t="s"><v>0</v></c></row>'


@pytest.mark.parametrize(
    ("values", "was", "now"),
    [
        ({"A1": 1}, "<sheetData/>", '<sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData>'),
        ({"A1": None}, "<sheetData/>", "<sheetData/>"),
        ({"C3": 1, "A1": 2, "B3": 3}, "<sheetData ></sheetData >",
         '<sheetData ><row r="1"><c r="A1"><v>2</v></c></row><row r="3"><c r="B3"><v>3</v></c><c r="C3"><v>1</v></c></row></sheetData >'),
        ({"B2": None}, '<c r="B2" s="1"><v>1</v></c>', '<c r="B2" s="1"/>'),
        ({"B2": "x"}, '<c r="B2" s="1"><v>1</v></c>', '<c r="B2" s="1" t="inlineStr"><is><t>x</t></is></c>'),
        ({"B2": " x"}, '<c r="B2" s="1"><v>1</v></c>', '<c r="B2" s="1" t="inlineStr"><is><t xml:space="preserve"> x</t></is></c>'),
        ({"B2": ""}, '<c r="B2" s="1"><v>1</v></c>', '<c r="B2" s="1" t="inlineStr"><is><t></t></is></c>'),
        ({"B2": True}, '<c r="B2" s="1"><v>1</v></c>', '<c r="B2" s="1" t="b"><v>1</v></c>'),
        ({"C2": 2.5}, '<c r="C2" t="s"><v>0</v></c>', '<c r="C2"><v>2.5</v></c>'),
        ({"A2": 1, "D2": 2}, ROW,
         '<row r="2" spans="1:4" ht="30" customHeight="1"><c r="A2"><v>1</v></c><c r="B2" s="1"><v>1</v></c><c r="C2" t="s"><v>0</v></c><c r="D2"><v>2</v></c></row>'),
        ({"F1": 1, "F2": 2, "F3": 3}, ROW,
         '<row r="1"><c r="F1"><v>1</v></c></row>' + ROW.replace("2:3", "2:6").replace("</row>", '<c r="F2"><v>2</v></c></row>') + '<row r="3"><c r="F3"><v>3</v></c></row>'),
        ({"A1": 1, "B1": 2}, '<row r="1"/><row r="2"/>', '<row r="1"><c r="A1"><v>1</v></c><c r="B1"><v>2</v></c></row><row r="2"/>'),
        ({"I1": 2}, '<row r="1" spans="2:3 5:8"/>', '<row r="1" spans="2:3 5:9"><c r="I1"><v>2</v></c></row>'),
        ({"B1": 2}, '<row r="1" spans="1:1" />', '<row r="1" spans="1:2" ><c r="B1"><v>2</v></c></row>'),
        ({"B1": 2}, '<row r="1"></row>', '<row r="1"><c r="B1"><v>2</v></c></row>'),
        ({"B1": 2, "D1": 4}, "<row><c/><c><v>1</v></c><c r='E1'/></row>",
         "<row><c/><c><v>2</v></c><c r=\"D1\"><v>4</v></c><c r='E1'/></row>"),
        ({"B1": 2}, '<row r="1" s="3" customFormat="1"><c r="A1"/></row>', '<row r="1" s="3" customFormat="1"><c r="A1"/><c r="B1" s="3"><v>2</v></c></row>'),
        ({"B1": 2}, '<row r="1" s="3"><c r="A1"/></row>', '<row r="1" s="3"><c r="A1"/><c r="B1"><v>2</v></c></row>'),
        ({"B1": 2, "C1": 3}, '<cols><col min="1" max="2" width="9" style="2"/></cols><sheetData/>',
         '<cols><col min="1" max="2" width="9" style="2"/></cols><sheetData><row r="1"><c r="B1" s="2"><v>2</v></c><c r="C1"><v>3</v></c></row></sheetData>'),
        ({"A1": 2}, '<row r="1"><c vm="1" r="A1" cm="2" ph=\'1\'\n s="3" t="e"><v>#VALUE!</v><extLst><ext uri="x"/></extLst></c></row>',
         '<row r="1"><c r="A1" ph=\'1\'\n s="3"><v>2</v><extLst><ext uri="x"/></extLst></c></row>'),
        ({"A1": 2}, '<row r="1"><c r="A1" t="n" ></c ></row>', '<row r="1"><c r="A1"><v>2</v></c></row>'),
        ({"A1": "_x000D_ a\rb"}, "<sheetData/>",
         '<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t xml:space="preserve">_x005F_x000D_ a_x000D_b</t></is></c></row></sheetData>'),
        ({"A1": 1}, "<!-- <row> --><sheetData><!-- > --><?a b?></sheetData>", '<!-- <row> --><sheetData><!-- > --><?a b?><row r="1"><c r="A1"><v>1</v></c></row></sheetData>'),
        ({"C4": 1}, '<dimension ref="B2"/><sheetData/>', '<dimension ref="B2:C4"/><sheetData><row r="4"><c r="C4"><v>1</v></c></row></sheetData>'),
        ({"C4": 1}, '<dimension\n ref=\'A1:D9\' /><sheetData/>', '<dimension\n ref=\'A1:D9\' /><sheetData><row r="4"><c r="C4"><v>1</v></c></row></sheetData>'),
        ({"A1": 1e22, "B1": -0.0, "C1": 1.0, "D1": 9007199254740992}, "<sheetData/>",
         '<sheetData><row r="1"><c r="A1"><v>1e+22</v></c><c r="B1"><v>0.0</v></c><c r="C1"><v>1.0</v></c><c r="D1"><v>9007199254740992</v></c></row></sheetData>'),
        ({"XFD1048576": 1}, "<sheetData/>", '<sheetData><row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'),
        ({"A1": "Grüße 👋"}, "<sheetData/>", '<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>Grüße 👋</t></is></c></row></sheetData>'),
    ],
)  # fmt: skip
def test_cells_are_cut_in(values: dict[str, Any], was: str, now: str, tmp_path: Path) -> None:
    """Each case in full: what stood in the part, and what stands there after."""
    was_part = was if "sheetData" in was else f"<sheetData>{was}</sheetData>"
    now_part = now if "sheetData" in now else f"<sheetData>{now}</sheetData>"
    if was.startswith('<c r="'):
        was_part, now_part = (f"<sheetData>{ROW.replace(was, text)}</sheetData>" for text in (was, now))
    strings, text = "<si><t>s</t></si>", sheet().replace("<sheetData/>", "%")
    path = zipped(tmp_path / "plan.xlsx", parts_of({"Plan": text.replace("%", was_part)}, strings=strings))
    open_package(path).write(to(values))
    assert part(path, "xl/worksheets/sheet1.xml") == text.replace("%", now_part)
    assert {at: cells_of(path)(at) for at in values} == values


def test_prefixed_parts_stay_prefixed(tmp_path: Path) -> None:
    """Libraries of other makers give every element a prefix."""
    xml = f'<x:worksheet xmlns:x="{MAIN}"><x:sheetData><x:row r="1"><x:c r="A1"><x:v>1</x:v></x:c></x:row></x:sheetData></x:worksheet>'
    parts = parts_of({"Plan": xml})
    prefixed = parts["xl/workbook.xml"].decode().replace("<", "<x:").replace("<x:/", "</x:").replace("<x:?", "<?")
    parts["xl/workbook.xml"] = (
        prefixed.replace("xmlns=", "xmlns:x=").replace('<x:calcPr calcId="191029"/>', "").encode()
    )
    path = zipped(tmp_path / "plan.xlsx", parts)
    open_package(path).write(to({"A1": "t", "B1": 2, "A2": True}))
    assert part(path, "xl/worksheets/sheet1.xml") == xml.replace(
        '<x:c r="A1"><x:v>1</x:v></x:c></x:row>',
        '<x:c r="A1" t="inlineStr"><x:is><x:t>t</x:t></x:is></x:c><x:c r="B1"><x:v>2</x:v></x:c></x:row>'
        '<x:row r="2"><x:c r="A2" t="b"><x:v>1</x:v></x:c></x:row>',
    )
    assert '</x:sheets><x:calcPr fullCalcOnLoad="1"/></x:workbook>' in part(path, "xl/workbook.xml")
    assert openpyxl.load_workbook(path)["Plan"]["B1"].value == 2


def test_a_byte_order_mark_is_kept_and_long_parts_are_exact(tmp_path: Path) -> None:
    """The parser reads a part in pieces of a megabyte; the bytes it names must be right all the same."""
    rows = "".join(
        f'<row r="{n}"><c r="A{n}" t="inlineStr"><is><t>Zeile ä {n}</t></is></c></row>' for n in range(1, 40_001)
    )
    text = "\ufeff" + sheet(rows)
    path = zipped(tmp_path / "plan.xlsx", parts_of({"Plan": text}))
    open_package(path).write(to({f"A{n}": n for n in range(500, 40_001, 500)}))
    for n in range(500, 40_001, 500):
        text = text.replace(f'<c r="A{n}" t="inlineStr"><is><t>Zeile ä {n}</t></is></c>', f'<c r="A{n}"><v>{n}</v></c>')
    assert part(path, "xl/worksheets/sheet1.xml") == text


# -- what is read


def test_cells_are_read(planner: Path) -> None:
    opened = open_package(planner)
    assert opened.sheet_names() == ["Jobs '27", "Data & more", "Notes"]

    def read(at: str) -> tuple[Any, bool]:
        return tuple(opened.cell("jobs '27", *place(at)))  # type: ignore[return-value]

    assert read("B4") == ("a rich text & more", False)
    assert read("C3") == (" Batch\n", False)
    assert read("C5") == (8, False) and isinstance(read("C5")[0], int)
    assert read("D5") == (1, False)
    assert read("F5") == (2, True)
    assert read("H4")[1] and read("H5")[1] and read("H6")[1] and not read("H7")[1]
    assert read("B14") == (46447, False)
    assert read("B15") == (True, False)
    assert read("B16") == ("#N/A", True)
    assert read("Z99") == (None, False)
    assert opened.find_columns("Jobs '27", ["gb", "BATCH ", "Verdict"]) == {
        "gb": (2, 3),
        "BATCH ": (2, 2),
        "Verdict": (2, 4),
    }


def test_every_kind_of_stored_value_is_read(tmp_path: Path) -> None:
    path = small(
        tmp_path,
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="str"><f>"x"</f><v>x_x000D_y</v></c>'
        '<c r="D1" t="inlineStr"><is><r><t>in</t></r><r><t xml:space="preserve">line </t></r><rPh sb="0" eb="1"><t>NO</t></rPh></is></c>'
        '<c r="E1" t="b"><v>1</v></c><c r="F1" t="e"><v>#DIV/0!</v></c><c r="G1"><v>1E-3</v></c><c r="H1"><v>12</v></c>'
        '<c r="I1" t="n"/><c r="J1" t="str"><f>""</f><v></v></c><c r="K1" t="d"><v>2027-01-01</v></c><c r="L1" t="s"><v>2</v></c>'
        '<c r="M1" t="inlineStr"><is><t><![CDATA[a<b]]>&amp;c</t></is></c><c r="N1"><v>123456789012345678</v></c></row>',
        strings='<si><t xml:space="preserve"> one </t></si><si><r><rPr><b/></rPr><t>ri</t></r><r><t>ch</t></r>'
        '<rPh sb="0" eb="1"><t>NO</t></rPh><phoneticPr fontId="1"/></si><si/>',
    )  # fmt: skip
    value = cells_of(path)
    assert [value(f"{letter}1") for letter in "ABCDEFGHIJKLMN"] == [
        " one ", "rich", "x\ry", "inline ", True, "#DIV/0!", 0.001, 12, None, "", "2027-01-01", "", "a<b&c", 1.2345678901234568e17,
    ]  # fmt: skip


def test_areas(planner: Path, tmp_path: Path) -> None:
    opened = open_package(planner)
    assert opened.area("plan_gb") == Area("Jobs '27", 3, 11, 3, 3)
    assert opened.column_values(opened.area("Plan_GB")) == [row / 4 for row in range(3, 12)]
    for name, why in {
        "Plan_Nix": 'has no name "Plan_Nix".*Plan_GB',
        "Plan_Gone": "its cells were deleted",
        "Plan_Local": "on one sheet only",
        "Plan_Two": "should be one area",
        "Plan_Number": "should be one area",
    }.items():
        assert re.search(why, refusal(lambda name=name: opened.area(name), tmp_path))  # type: ignore[misc]
    assert "one column" in refusal(lambda: opened.column_values(Area("Notes", 0, 3, 0, 1)), tmp_path)


@pytest.mark.parametrize(
    ("reference", "area"),
    [
        ("Plan!$B$10:$B$60", (9, 59, 1, 1)),
        ("'Plan'!$XFD$1048576", (1048575, 1048575, 16383, 16383)),
        ("PLAN!$B$2", (1, 1, 1, 1)),
        ("Plan!$B$10:$A$60", None),
        ("Plan!$B$10:B60", None),
        ("Plan!$B:$B", None),
        ("Plan!$XFE$1", None),
        ("[1]Plan!$B$1", None),
        ("'[1]Plan'!$B$1", None),
        ("Other!$B$1", None),
        ("Plan:Plan!$B$1", None),
        ("OFFSET(Plan!$B$1,1,1)", None),
        ("", None),
    ],
)
def test_what_a_name_may_stand_for(reference: str, area: tuple[int, ...] | None, tmp_path: Path) -> None:
    opened = open_package(small(tmp_path, names=f'<definedName name="It">{reference}</definedName>'))
    if area:
        assert opened.area("IT") == ("Plan", *area)
    else:
        assert "one area of cells" in refusal(lambda: opened.area("it"), tmp_path)


def test_a_name_is_found_where_inserted_rows_moved_it(tmp_path: Path) -> None:
    """A planner puts rows in; Excel moves the name, and the values go where it points now."""
    for shift in (0, 7):
        path = small(tmp_path, names=f'<definedName name="Plan_Batch">Plan!$C${4 + shift}:$C${6 + shift}</definedName>')
        opened = open_package(path)
        area = opened.area("Plan_Batch")
        opened.write(
            {(area.sheet, row, area.first_column): row for row in range(area.first_row, area.last_row + 1)}, False
        )
        assert open_package(path).column_values(area) == [3 + shift, 4 + shift, 5 + shift]
        assert cells_of(path)(f"C{4 + shift}") == 3 + shift


def test_headers_that_are_not_there(tmp_path: Path) -> None:
    rows = "".join(
        f'<row r="{n}">' + "".join(f'<c r="{c}{n}" t="inlineStr"><is><t>{t}</t></is></c>' for c, t in zip("ABCD", line, strict=False)) + "</row>"
        for n, line in enumerate([["Title"], ["Model", "Batch"], ["Model", "Batch", "model ", "GB"]], 1)
    )  # fmt: skip
    opened = open_package(small(tmp_path, rows))
    assert opened.find_columns("Plan", iter(["Model", "batch"])) == {"Model": (1, 0), "batch": (1, 1)}
    assert opened.find_columns("Plan", ["GB", " gb "]) == {"GB": (2, 3), " gb ": (2, 3)}
    for headers, why in {
        ("Model", "Price"): 'should hold "Price" too',
        ("Nix",): '"Nix"',
        ("Model", "GB"): "A3 and C3",
        (): "none",
        ("Model", " "): "a text that is there",
    }.items():
        assert why in refusal(lambda headers=headers: opened.find_columns("Plan", headers), tmp_path)  # type: ignore[misc]
    assert "Plan" in refusal(lambda: opened.find_columns("Plans", ["Model"]), tmp_path)


# -- refused cells and values


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), "finite"),
        (float("-inf"), "finite"),
        ("x" * 32_768, "32,767"),
        ("👋" * 16_384, "32,768"),
        ("a\x00b", r"U\+0000 at character 2"),
        ("a\x0b", r"U\+000B"),
        ("\ud800", r"U\+D800"),
        ("\uffff", r"U\+FFFF"),
        (2**53 + 1, "9,007,199,254,740,992"),
        (-(10**400), "bits"),
        (b"bytes", "type bytes"),
        ([1], "a list"),
        (datetime(2027, 1, 1), "type datetime"),
    ],
)
def test_values_that_no_cell_holds(value: Any, why: str, tmp_path: Path) -> None:
    path = small(tmp_path)
    text = refusal(lambda: open_package(path).write(to({"A1": 1, "B2": value})), tmp_path)
    assert re.search(why, text) and "Plan!B2" in text


def test_cells_that_are_not_for_values(planner: Path, tmp_path: Path) -> None:
    cases = {
        ("Jobs '27", "F5"): "holds a formula",
        ("Jobs '27", "H4"): "holds a formula",
        ("Jobs '27", "H5"): "array formula in H4",
        ("Jobs '27", "K6"): "merged cells J4:K6; name J4",
        ("Data & more", "E1"): 'header of table "Costs"',
        ("Data & more", "D5"): 'total of table "Costs"',
        ("Nix", "A1"): "should be one of its sheets \\(Jobs '27, Data & more, Notes\\)",
    }
    for (name, at), why in cases.items():
        text = refusal(lambda name=name, at=at: open_package(planner).write(to({at: 1, "B30": 1}, name)), tmp_path)  # type: ignore[misc]
        assert re.search(why, text)
    for row, column in ((-1, 0), (1_048_576, 0), (0, 16_384), (0, True), (0.0, 1)):
        assert "whole number from 0" in refusal(
            lambda row=row, column=column: open_package(planner).write({("Notes", row, column): 1}), tmp_path  # type: ignore[misc]
        )  # fmt: skip
    twice = {("Notes", 1, 1): 1, ("NOTES", 1, 1): 2}
    assert "named twice" in refusal(lambda: open_package(planner).write(twice), tmp_path)
    open_package(planner).write(to({"J4": "merged still"}, "Jobs '27"))
    open_package(planner).write(to({"D2": "key", "E6": 1}, "Data & more"))


def test_members_of_shared_and_data_table_formulas_and_pivot_tables(tmp_path: Path) -> None:
    rows = (
        '<row r="1"><c r="A1"><f t="shared" ref="A1:A3" si="0">B1</f><v>0</v></c><c r="C1"><f t="dataTable" ref="C1:D2" dt2D="1"/><v>1</v></c></row>'
        '<row r="2"><c r="A2"><f t="shared" si="0"/><v>0</v></c></row>'
    )
    pivot = f'<pivotTableDefinition xmlns="{MAIN}" name="Sums"><location ref="H1:I4" firstHeaderRow="1"/></pivotTableDefinition>'
    links = (
        f'<Relationships xmlns="{PACKAGE_RELATIONS}"><Relationship Id="rId1" Type="{RELATIONS}/pivotTable" '
        'Target="../pivotTables/pivotTable1.xml"/><Relationship Id="rId2" Type="urn:x" Target="http://x.invalid/" TargetMode="External"/></Relationships>'
    )
    path = small(
        tmp_path, rows, more={"xl/worksheets/_rels/sheet1.xml.rels": links, "xl/pivotTables/pivotTable1.xml": pivot}
    )
    for at, why in {"A1": "formula", "A2": "formula", "D2": "array formula in C1", "I4": 'pivot table "Sums"'}.items():
        assert why in refusal(lambda at=at: open_package(path).write(to({at: 1})), tmp_path)  # type: ignore[misc]
    open_package(path).write(to({"A3": 1, "H5": 2}))


# -- cached values of formulas


def test_stale_values_are_replaced(tmp_path: Path) -> None:
    rows = (
        '<row r="1"><c r="A1"><v>1</v></c><c r="B1" s="1"><f>A1*2</f><v>2</v></c><c r="C1" t="str"><f>"a"&amp;A1</f><v>a1</v></c>'
        '<c r="D1"><f>A1</f></c><c r="E1" t="e"><f ca="1">1/A1</f>\n<v>#N/A</v></c><c r="F1"><f t="array" ref="F1:F2">A1:A2</f><v>1</v></c>'
        '<c r="G1"><f>A1</f><v>5</v></c></row><row r="2"><c r="F2"><v>0</v></c></row>'
    )  # fmt: skip
    path = small(tmp_path, rows)
    before = part(path, "xl/worksheets/sheet1.xml")
    fresh = {"B1": 14.0, "C1": "a<7", "D1": True, "E1": 0.5, "F1": "#DIV/0!", "F2": 3, "G1": None}
    report = open_package(path).write(to({"A1": 7}), stale=to(fresh))
    assert report.recalculated and report.cells == 1
    expected = before
    for was, now in (
        ('<c r="A1"><v>1</v></c>', '<c r="A1"><v>7</v></c>'),
        ("<f>A1*2</f><v>2</v>", "<f>A1*2</f><v>14.0</v>"),
        ("<v>a1</v>", "<v>a&lt;7</v>"),
        ('<c r="D1"><f>A1</f></c>', '<c r="D1" t="b"><f>A1</f><v>1</v></c>'),
        ('<c r="E1" t="e"><f ca="1">1/A1</f>\n<v>#N/A</v></c>', '<c r="E1"><f ca="1">1/A1</f>\n<v>0.5</v></c>'),
        ('<c r="F1"><f t="array" ref="F1:F2">A1:A2</f><v>1</v></c>', '<c r="F1" t="e"><f t="array" ref="F1:F2">A1:A2</f><v>#DIV/0!</v></c>'),
        ('<c r="F2"><v>0</v></c>', '<c r="F2"><v>3</v></c>'),
        ("<f>A1</f><v>5</v>", "<f>A1</f>"),
    ):  # fmt: skip
        assert was in expected
        expected = expected.replace(was, now)
    assert part(path, "xl/worksheets/sheet1.xml") == expected
    assert {at: cells_of(path)(at) for at in fresh} == fresh


def test_stale_cells_must_be_formulas_of_the_same_sheets(planner: Path, tmp_path: Path) -> None:
    for name, at, why in (("Jobs '27", "D5", "holds no formula"), ("Data & more", "B1", "gets no value")):
        call = lambda name=name, at=at: open_package(planner).write(to({"C5": 9}, "Jobs '27"), stale=to({at: 1}, name))  # noqa: E731
        assert why in refusal(call, tmp_path)
    assert "finite" in refusal(
        lambda: open_package(planner).write(to({"C5": 9}, "Jobs '27"), stale=to({"F5": float("nan")}, "Jobs '27")),
        tmp_path,
    )


# -- refused files


def with_part(name: str, content: bytes) -> Callable[[Path], Path]:
    return lambda folder: zipped(folder / "plan.xlsx", {**parts_of({"Plan": sheet()}), name: content})


def changed_bytes(change: Callable[[bytes], bytes], rows: str = "") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = small(folder, rows)
        path.write_bytes(change(path.read_bytes()))
        return path

    return make


def raw(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def replaced(name: str, was: str, now: str) -> Callable[[Path], Path]:
    return lambda folder: edited(small(folder), {name: lambda content: content.replace(was.encode(), now.encode())})


def bomb(size: int) -> bytes:
    return b"\0" * size


def lying(folder: Path) -> Path:
    """A part that unpacks to a hundred times what the directory says."""
    path = with_part("xl/media/image1.png", bytes(range(256)) * 4000)(folder)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("xl/media/image1.png")
    at = data.rindex(b"xl/media/image1.png") - 46
    for offset in (at + 24, info.header_offset + 22):
        struct.pack_into("<L", data, offset, 10_000)
    for offset in (at + 16, info.header_offset + 14):
        struct.pack_into("<L", data, offset, zlib.crc32((bytes(range(256)) * 4000)[:10_000]))
    path.write_bytes(data)
    return path


def twice(folder: Path) -> Path:
    return zipped(folder / "plan.xlsx", {**parts_of({"Plan": sheet()}), "XL/Workbook.xml": b"<a/>"})


OLE = bytes.fromhex("D0CF11E0A1B11AE1") + bytes(600)

FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "nothing": (lambda folder: folder / "nix.xlsx", "is not there"),
    "folder": (lambda folder: folder, "is a folder"),
    "xls": (raw("old.xls", OLE), r"old \.xls form"),
    "xls renamed": (raw("plan.xlsx", OLE), r"old \.xls form"),
    "encrypted": (raw("plan.xlsx", OLE + "EncryptedPackage".encode("utf-16-le")), "encrypted with a password"),
    "csv": (raw("plan.xlsx", b"a,b\n"), "no zip file"),
    "empty": (raw("plan.xlsx", b""), "no zip file"),
    "xlsb": (replaced("_rels/.rels", "xl/workbook.xml", "xl/workbook.bin"), r"\.xlsb"),
    "signed": (with_part("_xmlsignatures/origin.sigs", b""), "digitally signed"),
    "signed by relation": (
        replaced("_rels/.rels", "</Rel", '<Relationship Id="s" Target="s" Type="http://schemas.openxmlformats.org/package/2006/relationships/digital-signature/origin"/></Rel'),
        "digitally signed",
    ),
    "strict": (replaced("_rels/.rels", RELATIONS, "http://purl.oclc.org/ooxml/officeDocument/relationships"), "Strict"),
    "strict workbook": (replaced("xl/workbook.xml", MAIN, "http://purl.oclc.org/ooxml/spreadsheetml/main"), "Strict"),
    "document": (replaced("xl/workbook.xml", "workbook", "document"), "another document"),
    "no workbook": (replaced("_rels/.rels", "officeDocument", "other"), "without a workbook"),
    "workbook gone": (replaced("_rels/.rels", "xl/workbook.xml", "xl/nix.xml"), "without a workbook"),
    "opendocument": (
        lambda folder: zipped(folder / "plan.ods", {"mimetype": b"application/vnd.oasis", "content.xml": b"<a/>"}),
        "OpenDocument",
    ),
    "two sheets of one name": (
        lambda folder: edited(zipped(folder / "plan.xlsx", parts_of({"Plan": sheet(), "Pan": sheet()})), {"xl/workbook.xml": lambda part: part.replace(b"Pan", b"PLAN")}),
        'sheet "PLAN" is there twice',
    ),
    "no sheet": (replaced("xl/_rels/workbook.xml.rels", "/worksheet", "/chartsheet"), "no worksheet"),
    "cut short": (changed_bytes(lambda data: data[:-40]), "cut short"),
    "half": (changed_bytes(lambda data: data[: len(data) // 2]), "cut short"),
    "something behind": (changed_bytes(lambda data: data + b"x"), "no whole"),
    "something before": (changed_bytes(lambda data: b"x" + data), "no whole"),
    "a byte off": (changed_bytes(lambda data: data[:400] + bytes([data[400] ^ 255]) + data[401:]), "damaged|no whole"),
    "twice": (twice, "twice"),
    "too many parts": (
        lambda folder: zipped(folder / "p.xlsx", {**parts_of({"P": sheet()}), **{f"x/{n}": b"" for n in range(2000)}}),
        "2,007 parts",
    ),
    "ratio": (with_part("xl/media/image1.png", bomb(3 * 2**20)), "packs 3,145,728 bytes"),
    "lying size": (lying, "damaged|is not what the directory says"),
    "doctype": (replaced("xl/workbook.xml", "<workbook ", '<!DOCTYPE w [<!ENTITY a "b">]><workbook '), "document type"),
    "doctype in relations": (replaced("_rels/.rels", "<Relationships ", "<!DOCTYPE r><Relationships "), "document type"),
    "utf-16": (with_part("xl/workbook.xml", '<?xml version="1.0" encoding="UTF-16"?><workbook/>'.encode("utf-16")), "UTF-16"),
    "latin": (replaced("xl/workbook.xml", "UTF-8", "ISO-8859-1"), "ISO-8859-1"),
    "not XML": (replaced("xl/workbook.xml", "</sheets>", ""), "damaged \\(mismatched tag\\)"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_files_that_are_refused(kind: str, tmp_path: Path) -> None:
    make, why = FILES[kind]
    path = make(tmp_path)
    text = refusal(lambda: open_package(path), tmp_path)
    assert re.search(why, text), text
    assert str(path) in text
    assert refusal(lambda: open_package(path, read_only=True), tmp_path) == text


def test_a_file_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small(tmp_path)
    monkeypatch.setattr(package, "MAX_UNPACKED", 3000)
    assert re.search("unpacks to [0-9,]+ bytes", refusal(lambda: open_package(path), tmp_path))
    monkeypatch.setattr(package, "MAX_UNPACKED", 1000)
    assert "bytes long" in refusal(lambda: open_package(path), tmp_path)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ('<row r="2"/><row r="1"/>', 'row "1" follows row 2'),
        ('<row r="1"><c r="B1"/><c r="A1"/></row>', 'cell "A1" follows B1'),
        ('<row r="1"><c r="B1"/><c r="B1"/></row>', 'cell "B1" follows B1'),
        ('<row r="1"><c r="B2"/></row>', 'cell "B2" follows the start of row 1'),
        ('<row r="1048577"/>', 'row "1048577"'),
        (f'<row r="{"9" * 5000}"/>', 'row "999'),
        ('<row r="1"><c r="XFE1"/></row>', 'cell "XFE1"'),
        ('<row r="x"/>', 'row "x"'),
        ('<row r="1"><c r="A1" t="s"><v>9</v></c></row>', 'A1 holds "9" as type "s"'),
        ('<row r="1"><c r="A1"><v>many</v></c></row>', 'A1 holds "many" as type "n"'),
        ('<row r="1"><c r="A1"><f t="array" ref="?">B1</f></c></row>', 'area "\\?"'),
        ("<row r='1'><c r='A1'></row>", "mismatched tag"),
    ],
)
def test_damaged_sheets_are_refused(rows: str, why: str, tmp_path: Path) -> None:
    path = small(tmp_path, rows)
    assert re.search(why, refusal(lambda: open_package(path).write(to({"A1": 1})), tmp_path))


def test_sheets_in_another_encoding_or_with_a_document_type_are_refused(tmp_path: Path) -> None:
    for xml, why in (
        (sheet().replace("UTF-8", "UTF-16").encode("utf-16"), "UTF-16"),
        (b"<!DOCTYPE a>" + sheet()[56:].encode(), "document type"),
    ):
        path = zipped(tmp_path / "plan.xlsx", {**parts_of({"Plan": sheet()}), "xl/worksheets/sheet1.xml": xml})
        assert why in refusal(lambda path=path: open_package(path).write(to({"A1": 1})), tmp_path)  # type: ignore[misc]


def test_read_only_files_and_folders(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = small(folder)
    opened = open_package(path)
    try:
        os.chmod(path, 0o444)
        assert "is read-only" in refusal(lambda: open_package(path), tmp_path)
        assert "is read-only" in refusal(lambda: opened.write(to({"A1": 1})), tmp_path)
        assert open_package(path, read_only=True).cell("Plan", 0, 0).value is None
        os.chmod(path, 0o644)
        os.chmod(folder, 0o555)
        assert "folder that cannot be written" in refusal(lambda: open_package(path), tmp_path)
        assert "folder that cannot be written" in refusal(lambda: opened.write(to({"A1": 1})), tmp_path)
    finally:
        os.chmod(folder, 0o755)


@pytest.mark.parametrize(("owner", "program"), [("~$plan.xlsx", "Excel"), (".~lock.plan.xlsx#", "LibreOffice")])
def test_a_file_that_is_open_elsewhere(owner: str, program: str, tmp_path: Path) -> None:
    path = small(tmp_path)
    opened = open_package(path)
    (tmp_path / owner).write_bytes(b"planner")
    for call in (lambda: open_package(path), lambda: opened.write(to({"A1": 1}))):
        text = refusal(call, tmp_path)
        assert f"is open in {program}" in text and owner in text
    assert open_package(path, read_only=True).sheet_names() == ["Plan"]


# -- how the file is written


def test_each_form_of_zip_is_kept(tmp_path: Path) -> None:
    """Members whose sizes stand behind their data, as LibreOffice and streaming writers leave them."""

    class Stream(RawIOBase):
        def __init__(self) -> None:
            self.data = BytesIO()

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            return self.data.write(data)

    stream = Stream()
    parts = parts_of({"Plan": sheet('<row r="1"><c r="A1"><v>1</v></c></row>')})
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        for number, (name, content) in enumerate(parts.items()):
            with archive.open(name, "w", force_zip64=number % 2 == 0) as member:
                member.write(content)
    path = tmp_path / "plan.xlsx"
    path.write_bytes(stream.data.getvalue())
    before = members(path)
    for value in range(20, 30):
        open_package(path).write(to({"A1": value, f"C{value}": "x" * value}), backup=False)
    after = members(path)
    changed = {"xl/worksheets/sheet1.xml", "xl/workbook.xml"}
    assert {name for name in before if before[name] != after[name]} == changed
    assert cells_of(path)("A1") == 29 and openpyxl.load_workbook(path)["Plan"]["C29"].value == "x" * 29
    assert len(list(tmp_path.iterdir())) == 1


def test_nothing_is_written_where_nothing_changes(planner: Path, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    report = open_package(planner).write(
        to({"B4": "a rich text & more", "C5": 8.0, "B15": True, "Z99": None}, "Jobs '27")
    )
    assert report == (None, 0, (), False, False)
    assert open_package(planner).write({}).cells == 0
    assert snapshot(tmp_path) == before
    assert open_package(planner).write(to({"B15": 1}, "Jobs '27")).cells == 1


def test_backups_never_overwrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small(tmp_path)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls(2027, 1, 2, 3, 4, 5)

    monkeypatch.setattr(patch.datetime, "datetime", Clock)
    contents = []
    for value in range(3):
        contents.append(path.read_bytes())
        report = open_package(path).write(to({"A1": value}))
        assert report.backup_path is not None
    for name, content in zip(("", "-2", "-3"), contents, strict=True):
        assert (tmp_path / f"plan.backup-20270102-030405{name}.xlsx").read_bytes() == content
    assert open_package(path).write(to({"A1": 9}), backup=False).backup_path is None
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = small(tmp_path / "real")
    link = tmp_path / "link.xlsx"
    link.symlink_to(path)
    report = open_package(link).write(to({"A1": 5}))
    assert link.is_symlink() and cells_of(path)("A1") == 5
    assert report.backup_path is not None and report.backup_path.parent == path.parent
    (tmp_path / "~$link.xlsx").touch()
    assert "open in Excel" in refusal(lambda: open_package(link), tmp_path)
    (tmp_path / "dead.xlsx").symlink_to(tmp_path / "nix")
    assert "is not there" in refusal(lambda: open_package(tmp_path / "dead.xlsx"), tmp_path)


def test_a_file_that_changed_meanwhile(tmp_path: Path) -> None:
    path = small(tmp_path)
    opened = open_package(path)
    opened.write(to({"A1": 1}))
    assert "has changed since it was read" in refusal(lambda: opened.write(to({"A1": 2})), tmp_path)
    opened = open_package(path)
    status, data = path.stat(), bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert "has changed since it was read" in refusal(lambda: opened.write(to({"A1": 2})), tmp_path)
    path.unlink()
    assert "has changed since it was read" in refusal(lambda: opened.write(to({"A1": 2})), tmp_path)


def fail(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        (patch.os, "replace", fail),
        (patch.os, "fsync", fail),
        (patch.os, "chmod", fail),
        (patch.tempfile, "mkstemp", fail),
        (Package, "_back_up", fail),
        (patch.zipfile.ZipFile, "testzip", lambda _: "xl/workbook.xml"),
        (patch.zipfile.ZipFile, "namelist", lambda _: []),
        (patch, "with_attribute", lambda *_: [(0, 5, b"<<<<")]),
    ],
)
def test_a_failure_leaves_everything_as_it_was(
    where: Any, name: str, instead: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small(tmp_path, '<row r="1"><c r="A1"><v>1</v></c></row>')
    opened = open_package(path)
    monkeypatch.setattr(where, name, instead)
    files = {p: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=r"could not be written|was not written|damaged"):
        opened.write(to({"A1": 2}))
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == files


def test_an_interruption_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small(tmp_path)
    opened, before = open_package(path), path.read_bytes()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(patch.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        opened.write(to({"A1": 2}))
    assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == before


def test_a_write_that_does_not_read_back_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small(tmp_path, '<row r="1"><c r="A1"><v>1</v></c></row>')
    monkeypatch.setattr(patch.SheetEdit, "patched", lambda self, *_: self.part.data)
    assert "Plan!A1 would not read back" in refusal_of_content(
        lambda: open_package(path).write(to({"A1": 2})), tmp_path
    )


def refusal_of_content(call: Callable[[], object], folder: Path) -> str:
    """As refusal(), where the folder's own time may change."""
    files = {p: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(ValueError) as caught:
        call()
    assert {p: p.read_bytes() for p in folder.iterdir()} == files
    return str(caught.value)


# -- any cells, any values

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff").filter(
        lambda c: c >= " " or c in "\t\n\r"), max_size=12),
    st.sampled_from(["=1+1", "+1", "-1", "@a", "\t=1", "_x000D_", "_x005F_x000D_", "'x", "#N/A", "TRUE", "007", "]]>", "\r\n"]),
)  # fmt: skip
PLACES = st.tuples(
    st.one_of(st.integers(0, 12), st.sampled_from([1_048_575, 65_536])), st.one_of(st.integers(0, 8), st.just(16_383))
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_written_is_read_back_and_can_be_undone(data: st.DataObject, tmp_path: Path) -> None:
    """On a random sheet: the values arrive, the old ones come back, and cells beside them hold theirs."""
    old = data.draw(st.dictionaries(PLACES, VALUES, max_size=20), "sheet")
    new = data.draw(st.dictionaries(PLACES, VALUES, max_size=20), "values")
    path = small(tmp_path, random_rows(data, old))
    start = open_package(path)
    stored = {at: start.cell("Plan", *at).value for at in old | new}
    assert all(same(stored[at], value) for at, value in old.items())
    start.write({("Plan", *at): value for at, value in new.items()}, backup=False)
    written = open_package(path)
    for at in old | new:
        assert same(written.cell("Plan", *at).value, new.get(at, old.get(at))), at
    assert [cell for at in old.keys() - new.keys() if raw_cell(start, at) != (cell := raw_cell(written, at))] == []
    written.write({("Plan", *at): stored[at] for at in new}, backup=False)
    undone = open_package(path)
    assert all(same(undone.cell("Plan", *at).value, value) for at, value in stored.items())
    etree.fromstring(part(path, "xl/worksheets/sheet1.xml").encode())


def raw_cell(opened: Package, at: tuple[int, int]) -> bytes:
    """A cell's bytes as they stand in its part."""
    plan = opened._part("Plan")
    number = plan.find(*at)
    return b"" if number is None else plan.data[slice(*plan.span(number))]


def same(a: Any, b: Any) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def random_rows(data: st.DataObject, cells: Mapping[tuple[int, int], Any]) -> str:
    """Rows as different writers leave them: with or without addresses, spans, blanks and comments."""
    from xml.sax.saxutils import escape

    lines: dict[int, list[str]] = {}
    for (row, column), value in sorted(cells.items()):
        letters = openpyxl.utils.get_column_letter(column + 1)
        space = data.draw(st.sampled_from(["", " ", "\n  ", "<!-- <c/> -->"]))
        kind, inner = "", f"<v>{value!r}</v>"
        if value is None:
            inner = ""
        elif isinstance(value, bool):
            kind, inner = ' t="b"', f"<v>{int(value)}</v>"
        elif isinstance(value, str):
            text = escape(value.replace("_x", "_x005F_x")).replace("\r", "&#13;")
            kind, inner = ' t="inlineStr"', f"<is><r><t xml:space='preserve'>{text}</t></r></is>"
        end = f">{inner}</c>" if inner or data.draw(st.booleans()) else "/>"
        lines.setdefault(row, []).append(f'{space}<c r="{letters}{row + 1}"{kind}{end}')
    return "".join(f'<row r="{row + 1}">{"".join(line)}</row>' for row, line in lines.items())


# -- Excel, as far as it can be played


class FakeRange:
    def __init__(self, sheet: FakeSheet, corners: tuple[tuple[int, int], tuple[int, int]]) -> None:
        self._sheet, self._corners = sheet, corners

    def _set(self, rows: list[list[Any]]) -> None:
        self._sheet.calls.append((self._corners, rows))
        if self._sheet.busy:
            raise RuntimeError("Call was rejected by callee")

    value = property(None, _set)


class FakeSheet:
    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.busy = False

    def range(self, first: tuple[int, int], last: tuple[int, int]) -> FakeRange:
        return FakeRange(self, (first, last))


class FakeBook:
    def __init__(self, fullname: str | None, saved: bool) -> None:
        self._fullname = fullname
        self.sheets = {"Plan": FakeSheet()}
        self.api = types.SimpleNamespace(Saved=saved)

    @property
    def fullname(self) -> str:
        if self._fullname is None:
            raise RuntimeError("in the cloud")
        return self._fullname


@pytest.fixture
def excel(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """xlwings with a running Excel in which other workbooks are open."""
    module = types.ModuleType("xlwings")
    module.apps = [types.SimpleNamespace(books=[FakeBook(None, True), FakeBook("/other/plan.xlsx", True)])]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "xlwings", module)
    yield module


def opened_in(excel: types.ModuleType, path: Path, saved: bool = True) -> FakeBook:
    here = FakeBook(str(path), saved)
    excel.apps[0].books.append(here)
    path.with_name(f"~${path.name}").touch()
    return here


def test_values_go_into_the_open_workbook(excel: types.ModuleType, tmp_path: Path) -> None:
    path = small(tmp_path)
    here, before = opened_in(excel, path), snapshot(tmp_path)
    values = to({"B2": 1, "C2": "=a", "B3": None, "C3": True, "B9": 2.5, "D3": "007"})
    report = open_package(path).write(values)
    assert report == (None, 6, ("Plan",), True, True)
    assert here.sheets["Plan"].calls == [
        (((2, 2), (2, 3)), [[1.0, "'=a"]]),
        (((3, 2), (3, 4)), [[None, True, "'007"]]),
        (((9, 2), (9, 2)), [[2.5]]),
    ]
    assert write_into_open_excel(path, to({"A1": 1})) is True
    assert snapshot(tmp_path) == before


def test_a_file_that_windows_says_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There no program can open for writing what Excel has open; in reach of xlwings that is no fault."""
    path = small(tmp_path)
    real = Path.open

    def held(self: Path, mode: str = "r", *more: Any, **most: Any) -> Any:
        if mode == "r+b":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(self, mode, *more, **most)

    monkeypatch.setattr(Path, "open", held)
    assert "close it in other programs" in refusal(lambda: open_package(path), tmp_path)
    monkeypatch.setattr(live_excel, "is_open", lambda _: True)
    (tmp_path / "~$plan.xlsx").touch()
    assert open_package(path).sheet_names() == ["Plan"]


def test_blocks_are_as_few_as_can_be() -> None:
    cells = {("S", row, column): row * 10 + column for row in range(25) for column in range(8)}
    assert [(block[:3], len(block[3])) for block in live_excel.blocks(cells)] == [(("S", 0, 0), 25)]
    two = {("S", row, column): 0 for row in range(3) for column in (0, 1, 5)}
    assert [block[:3] for block in live_excel.blocks(two)] == [("S", 0, 0), ("S", 0, 5)]
    assert live_excel.blocks({}) == []


def test_excel_is_not_given_what_the_file_is_not(excel: types.ModuleType, tmp_path: Path) -> None:
    path = small(tmp_path, '<row r="1"><c r="A1"><f>1</f><v>1</v></c></row>')
    here = opened_in(excel, path)
    assert "holds a formula" in refusal(lambda: write_into_open_excel(path, to({"A1": 1})), tmp_path)
    assert "holds a formula" in refusal(lambda: open_package(path).write(to({"A1": 1})), tmp_path)
    here.api.Saved = False
    assert "not saved" in refusal(lambda: open_package(path).write(to({"B1": 1})), tmp_path)
    here.api.Saved = True
    here.sheets["Plan"].busy = True
    assert "did not take" in refusal(lambda: open_package(path).write(to({"B1": 1})), tmp_path)


def test_excel_is_not_given_places_of_an_older_file(excel: types.ModuleType, tmp_path: Path) -> None:
    """Saved in Excel after it was read: rows may have moved since."""
    path = small(tmp_path)
    here = opened_in(excel, path)
    opened = open_package(path)
    small(tmp_path, '<row r="1"><c r="A1"><v>1</v></c></row>')
    assert "has changed since it was read" in refusal(lambda: opened.write(to({"B1": 1})), tmp_path)
    assert here.sheets["Plan"].calls == []


def test_without_the_workbook_in_excel(
    excel: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small(tmp_path)
    assert write_into_open_excel(path, to({"A1": 1})) is False
    del excel.apps
    assert write_into_open_excel(path, to({"A1": 1})) is False
    monkeypatch.setitem(sys.modules, "xlwings", None)
    assert write_into_open_excel(path, to({"A1": 1})) is False
    assert open_package(path).write(to({"A1": 1})).in_excel is False


# -- the project's own workbook


def test_own_workbook_takes_inputs(book: Any, tmp_path: Path) -> None:
    """An input found by its name; with an engine's numbers as stored results, every formula cell is right at once."""
    path = Path(shutil.copyfile(book.path, tmp_path / "own.xlsx"))
    opened = open_package(path)
    area = opened.area("Batch_Size")
    at = (area.sheet, area.first_row, area.first_column)
    old = opened.cell(*at).value
    assert isinstance(old, int) and not opened.cell(*at).formula
    with Formualizer(book.path) as engine:
        engine.set("Batch_Size", float(old + 1))
        engine.recalculate()
        results = {
            (area.sheet, row - 1, column - 1): value
            for (row, column), value in engine.get_sheet(area.sheet).items()
            if opened.cell(area.sheet, row - 1, column - 1).formula
        }
        assert len(results) > 50
        assert opened.write({at: old + 1}, stale=results).recalculated
        written = open_package(path)
        assert written.cell(*at).value == old + 1
        assert all(same(written.cell(*place).value, value) for place, value in results.items())
        with Formualizer(path) as seen:
            for name in ("Peak_Allocated_GB", "Total_Reserved_GB", "Fit_Verdict"):
                assert seen.get(name) == engine.get(name)
    before = {place: opened.cell(*place).value for place in results}
    written.write({at: old}, stale=before)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(book.path) as original:
        assert archive.namelist() == original.namelist()
        assert len([name for name in archive.namelist() if archive.read(name) != original.read(name)]) <= 1
    assert {place: open_package(path).cell(*place).value for place in results} == before


# -- damage of any kind


def test_damage_is_refused_or_does_no_harm(planner: Path, tmp_path: Path) -> None:
    """Bytes changed anywhere, in the zip or in a part: a sentence, or a file that reads back; never anything else."""
    draw = random.Random(20270101)
    original = planner.read_bytes()
    with zipfile.ZipFile(planner) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    read = [
        "xl/workbook.xml",
        "xl/worksheets/sheet1.xml",
        "xl/_rels/workbook.xml.rels",
        "_rels/.rels",
        "xl/sharedStrings.xml",
    ]
    for number in range(200):
        name = draw.choice(["", *read])
        content = bytearray(parts[name] if name else original)
        at = draw.randrange(len(content))
        content[at : at + draw.choice((0, 1, 20))] = draw.choice(
            (b"", b"9", b"<c/>", b"\xff", b'"', b"-1", b"&#65;", b"#REF!")
        )
        if name:
            zipped(planner, {**parts, name: bytes(content)})
        else:
            planner.write_bytes(content)
        damaged = planner.read_bytes()
        try:
            opened = open_package(planner)
            first = opened.sheet_names()[0]
            opened.write({(first, 4, 2): number + 100, (first, 60, 2): "x"}, backup=False)
        except ValueError as error:
            assert "\n" not in str(error)
            assert planner.read_bytes() == damaged
        else:
            assert open_package(planner).cell(first, 4, 2).value == number + 100
        assert [path.name for path in tmp_path.iterdir()] == [planner.name]

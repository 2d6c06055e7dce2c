"""The three engines agree with Python on every function that the workbooks use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import xlsxwriter
from engines import (
    Engine,
    ErrorValue,
    Formualizer,
    IronCalc,
    LibreOffice,
    close,
    engine_parameters,
    libreoffice_available,
    to_pdf,
    to_png,
)

NA = ErrorValue("#N/A")

# The named inputs, and the table in Calc!A1:C4.
INPUTS = {
    "Batch_Size": 8,
    "Loss_Rate": 0.3,
    "Model_Name": "Small",
    "Adapter_Layers": None,
    "Text_Number": "007",
}
TABLE = [("Tiny", 1, 0.5), ("Small", 2, 1.5), ("Large", 3, -2.5), ("Huge", 4, 1e12)]
CASES: list[tuple[str, object]] = [
    ("=Batch_Size+2", 10), ("=Batch_Size-9", -1), ("=Batch_Size*Loss_Rate", 8 * 0.3),
    ("=Batch_Size/7", 8 / 7), ("=2^10", 1024), ("=10^-9*3", 3e-9), ("=(-2)^2", 4), ("=-(2^2)", -4),
    ("=Loss_Rate^(1/3)", 0.3 ** (1 / 3)), ("=Batch_Size=8", True), ("=Batch_Size<>8", False),
    ("=Batch_Size>=9", False), ("=Batch_Size<9", True), ('=Model_Name="SMALL"', True),
    ('=IF(Batch_Size>4,"big","small")', "big"), ("=IF(Batch_Size>8,1,0)", 0),
    ("=AND(Batch_Size>1,Loss_Rate<1)", True), ("=OR(Batch_Size>10,Loss_Rate>1)", False),
    ("=NOT(Batch_Size=8)", False), ("=MIN(Batch_Size,3)", 3), ("=MAX(Calc!C1:C4)", 1e12),
    ("=SUM(Calc!B1:B4)", 10), ("=SUMPRODUCT(Calc!B1:B3,Calc!C1:C3)", 0.5 + 3 - 7.5),
    ("=SUMPRODUCT((Calc!B1:B4>1)*Calc!B1:B4)", 9), ("=ABS(0-Batch_Size)", 8), ("=ROUND(2.5,0)", 3),
    ("=ROUND(0-2.5,0)", -3), ("=ROUNDUP(2.01,0)", 3), ("=ROUNDDOWN(2.99,0)", 2),
    ("=ROUNDUP(Batch_Size/256,0)*256", 256), ("=INT(0-2.5)", -3), ("=INT(2.5)", 2),
    ("=INDEX(Calc!C1:C4,2)", 1.5), ("=CHOOSE(2,1,Batch_Size,0)", 8), ("=MATCH(Model_Name,Calc!A1:A4,0)", 2),
    ("=INDEX(Calc!C1:C4,MATCH(Model_Name,Calc!A1:A4,0))", 1.5), ("=COUNT(Calc!A1:C4)", 8),
    ('=COUNTIF(Calc!A1:A4,"large")', 1), ('=COUNTIF(Calc!B1:B4,">2")', 2),
    ("=COUNTIFS(Calc!A1:A4,Model_Name,Calc!B1:B4,2)", 1), ('=SUMIF(Calc!A1:A4,"Huge",Calc!B1:B4)', 4),
    ("=AVERAGE(Calc!B1:B4)", 2.5), ("=ISNUMBER(Text_Number)", False), ("=ISNUMBER(Batch_Size)", True),
    ("=NA()", NA), ("=MATCH(99,Calc!B1:B4,0)", NA), ("=1/(Batch_Size-8)", ErrorValue("#DIV/0!")),
    ('="a"*Batch_Size', ErrorValue("#VALUE!")), ("=NA()+1", NA), ('=IFERROR(NA(),"none")', "none"),
    ("=FIXED(1234.567,1)", "1,234.6"), ("=FIXED(1234.567,2,TRUE)", "1234.57"),
    ('=Model_Name&" x "&Batch_Size', "Small x 8"), ('=Model_Name&""', "Small"), ('=""', ""),
    ("=ISBLANK(Adapter_Layers)", True), ('=Adapter_Layers=""', True), ("=Adapter_Layers=0", True),
    ("=Adapter_Layers", 0), ("=Adapter_Layers+1", 1), ("=COUNT(Adapter_Layers)", 0),
    ("=LEFT(Model_Name,2)", "Sm"), ("=MID(Model_Name,2,2)", "ma"), ("=LEN(Model_Name)", 5),
    ("=LARGE(Calc!B1:B4,1)", 4), ("=SMALL(Calc!B1:B4,1)", 1), ("=MEDIAN(Calc!B1:B4)", 2.5),
    ("=RANK(3,Calc!B1:B4)", 2), ("=ISTEXT(Text_Number)", True), ("=N(Model_Name)", 0),
    ("=Text_Number", "007"), ("=Text_Number+1", 8),
]  # fmt: skip


@pytest.fixture(scope="module")
def workbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook of inputs, a table and one formula per case. Its cached values are all 0: trust shows."""
    path = tmp_path_factory.mktemp("engines") / "cases.xlsx"
    book = xlsxwriter.Workbook(path)
    inputs, calc, cases = (book.add_worksheet(name) for name in ("In puts", "Calc", "Cases"))
    plain = book.add_format({"bold": True})
    for r, (name, value) in enumerate(INPUTS.items()):
        book.define_name(name, f"='In puts'!$B${r + 1}")
        if value is None:
            inputs.write_blank(r, 1, None, plain)
        elif isinstance(value, str):
            inputs.write_string(r, 1, value)
        else:
            inputs.write_number(r, 1, value)
    for r, row in enumerate(TABLE):
        calc.write_row(r, 0, row)
    for r, (formula, _) in enumerate(CASES):
        cases.write_formula(r, 0, formula)
    cases.protect()
    inputs.write_string("D9", "corner")
    book.define_name("First_Case", "=Cases!$A$1")
    book.define_name("Model_List", "=Calc!$A$1:$A$4")
    book.close()
    return path


@pytest.fixture(params=engine_parameters())
def engine(request: pytest.FixtureRequest, workbook: Path):  # type: ignore[no-untyped-def]
    opened = request.param(workbook)
    yield opened
    opened.close()


def result(engine: Engine, formula: str) -> object:
    """The value of the case with this formula."""
    return engine.get(("Cases", 1 + [f for f, _ in CASES].index(formula), 1))


def check(engine: Engine, expected: list[object]) -> None:
    got = engine.get_many([("Cases", r, 1) for r in range(1, len(expected) + 1)])
    wrong = [(CASES[i][0], w, g) for i, (w, g) in enumerate(zip(expected, got, strict=True)) if not close(g, w)]
    assert not wrong


def test_every_function_gives_the_expected_value(engine: Engine) -> None:
    check(engine, [value for _, value in CASES])


def test_a_name_and_its_cell_are_the_same(engine: Engine) -> None:
    assert engine.get("Batch_Size") == engine.get(("In puts", 1, 2)) == engine.get("batch_size") == 8
    assert engine.get("First_Case") == 10


def test_changed_inputs_reach_the_results(engine: Engine) -> None:
    engine.set("Batch_Size", 20)
    engine.set(("In puts", 2, 2), 0.5)
    engine.set("Model_Name", "Huge")
    engine.recalculate()
    for formula, want in [
        ("=Batch_Size*Loss_Rate", 10),
        ("=INDEX(Calc!C1:C4,MATCH(Model_Name,Calc!A1:A4,0))", 1e12),
        ('=Model_Name&" x "&Batch_Size', "Huge x 20"),
        ("=Batch_Size=8", False),
    ]:
        assert close(result(engine, formula), want), formula
    for name, value in INPUTS.items():
        engine.set(name, value)
    engine.recalculate()
    check(engine, [value for _, value in CASES])


@pytest.mark.parametrize("text", ["12", "=1+1", "+3", "#N/A", "TRUE", "1/2", "'quoted", " padded ", "ünïcode – ✓"])
def test_a_text_stays_a_text(engine: Engine, text: str) -> None:
    engine.set("Text_Number", text)
    engine.recalculate()
    value = engine.get("Text_Number")
    assert value == text
    assert not isinstance(value, ErrorValue)
    assert close(result(engine, "=ISNUMBER(Text_Number)"), False)


def test_a_cleared_cell_is_blank(engine: Engine) -> None:
    engine.set("Adapter_Layers", 4)
    engine.recalculate()
    assert close(result(engine, "=ISBLANK(Adapter_Layers)"), False)
    engine.set("Adapter_Layers", None)
    engine.recalculate()
    assert close(result(engine, "=ISBLANK(Adapter_Layers)"), True)
    assert engine.get("Adapter_Layers") is None


def test_a_bool_can_be_set(engine: Engine) -> None:
    engine.set("Batch_Size", True)
    engine.recalculate()
    assert close(engine.get("Batch_Size"), True)
    if not isinstance(engine, LibreOffice):  # there a bool is a number
        assert result(engine, "=ISNUMBER(Batch_Size)") is False


def test_a_whole_sheet_can_be_read(engine: Engine) -> None:
    sheet = engine.get_sheet("Calc")
    assert sheet == {(r, c): v for r, row in enumerate(TABLE, 1) for c, v in enumerate(row, 1)}
    inputs = engine.get_sheet("In puts")
    assert (4, 2) not in inputs
    assert inputs[9, 4] == "corner"
    cases = engine.get_sheet("Cases")
    assert all(close(cases[r, 1], value) for r, (_, value) in enumerate(CASES, 1))


def test_an_error_is_not_a_text(engine: Engine) -> None:
    value = result(engine, "=NA()")
    assert isinstance(value, ErrorValue)
    assert value == "#N/A"


def test_unknown_targets_are_named(engine: Engine) -> None:
    with pytest.raises(KeyError, match="No_Such"):
        engine.get("No_Such")
    with pytest.raises(KeyError, match="Model_List"):
        engine.get("Model_List")  # a range, not one cell
    with pytest.raises(KeyError, match="Nowhere"):
        engine.set(("Nowhere", 1, 1), 1)


def test_two_copies_do_not_share_inputs(workbook: Path) -> None:
    for kind in (Formualizer, IronCalc, LibreOffice) if libreoffice_available()[0] else (Formualizer, IronCalc):
        with kind(workbook) as first, kind(workbook) as second:
            first.set("Batch_Size", 99)
            first.recalculate()
            second.recalculate()
            assert (first.get("Batch_Size"), second.get("Batch_Size")) == (99, 8)


def test_close_compares_values_of_cells() -> None:
    assert close(1.0, 1 + 1e-13) and not close(1.0, 1 + 1e-11)
    assert close(0.0, 0) and close(0.0, 9e-15) and not close(0.0, 2e-14) and not close(1e-4, 1.0001e-4)
    assert close("a", "a") and not close("a", "A") and not close("1", 1)
    assert close(True, 1.0) and not close(True, 0.0)
    assert close(None, None) and not close(None, 0) and not close(None, "")
    assert close(NA, ErrorValue("#N/A")) and not close(NA, "#N/A")
    assert not close(float("nan"), 1.0) and not close(float("nan"), float("nan"))


needs_libreoffice = pytest.mark.skipif(not libreoffice_available()[0], reason=libreoffice_available()[1] or "present")


@needs_libreoffice
def test_pictures(workbook: Path, tmp_path: Path) -> None:
    pages = to_png(to_pdf(workbook, tmp_path), tmp_path / "pages", dpi=40)
    assert pages and all(page.read_bytes().startswith(b"\x89PNG") for page in pages)


@needs_libreoffice
def test_a_failed_request_leaves_libreoffice_usable(workbook: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(workbook.read_bytes())
    book = LibreOffice(broken)
    with pytest.raises(RuntimeError, match="LibreOffice"):
        book._server.ask("read", document=10**6, areas=[["Calc", 1, 1, 1, 1]])
    assert book.get("Batch_Size") == 8
    book.close()


@needs_libreoffice
def test_a_killed_client_leaves_no_office_behind(workbook: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import engines\nengines.LibreOffice({str(workbook)!r})\n"
        "print(engines.server()._process.pid, flush=True)\nsys.stdin.read()\n"
    )
    client = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None and client.stdin is not None
    group = int(client.stdout.readline())
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdin.close()
    client.stdout.close()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)
    pytest.fail("LibreOffice outlived the process that started it")

"""The functions in desktop Excel, through the metadata, the VBA and the conversion of the real xlwings."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from typing import Any

import function_vectors
import pytest
from desktop_excel import CHECKOUT, asked, cells
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing_xlsx import functions
from sizing_xlsx.functions.signature import NUMBER, TABLE, Function, Result
from sizing_xlsx.functions.udf import failures
from sizing_xlsx.functions.udf.answer import answer
from sizing_xlsx.functions.udf.cells import MOST_CELLS, fitted
from sizing_xlsx.functions.udf.vba import RESERVED, unsafe_names

pytest.importorskip("xlwings")

REGISTRY = functions.registered()
LLAMA, H100 = "Llama-3.1-8B", "H100 SXM5 80GB"
JOB = (LLAMA, H100, 8, 2048)
EXAMPLES = [(name, example) for name, function in REGISTRY.items() for example in function.examples]
MISSING = {"missing": True}
WRONG = [
    ("GPU_FITS", ("Lama", H100)),
    ("GPU_FITS", (LLAMA, "H1000")),
    ("GPU_FITS", (LLAMA, H100, 0)),
    ("GPU_FITS", (LLAMA, H100, 8.5)),
    ("GPU_FITS", (LLAMA, H100, "eight")),
    ("GPU_FITS", (LLAMA, H100, True)),
    ("GPU_FITS", (None, H100)),
    ("GPU_FITS", (LLAMA, "H100 NVL")),
    ("GPU_FITS", (LLAMA, H100, 8, 2048, "pretrain")),
    ("GPU_MEMORY", (LLAMA, H100, 8, 2048, "kernels")),
    ("GPU_LIST", ("no such card",)),
    ("GPU_INFO", ("H100 NVL",)),
    ("GPU_SMALLEST", ("meta-llama/Llama-3.1-405B", 65536, 1_048_576)),
    ("MODEL_FROM_CONFIG", ("/etc/passwd",)),
    ("MODEL_FROM_CONFIG", ('{"model_type": 3}',)),
]


def in_order(name: str, example: Any) -> list[Any]:
    """The arguments of an example in their order, those that it leaves out marked."""
    return [example.get(argument, MISSING) for argument in REGISTRY[name].arguments]


def in_python(name: str, *given: Any) -> Any:
    """What functions.call gives, as a block of cells; its fault as a cell tells it."""
    try:
        value = functions.call(name, *given)
    except functions.Fault as fault:
        value = fitted(f"{fault.code} {fault}")
    return [["" if cell is None else cell for cell in row] for row in value] if isinstance(value, list) else [[value]]


@pytest.fixture(scope="module")
def excel() -> list[Any]:
    """Metadata, VBA, and the values of every example and of wrong calls, each in one process."""
    steps = [{"call": name, "given": in_order(name, example)} for name, example in EXAMPLES]
    steps += [{"call": name, "given": given} for name, given in WRONG]
    return asked({"facts": True}, {"vba": "sizing-xlsx.xlam"}, *steps)


# ---------------------------------------------------------------------- what Excel is told of them
def test_metadata_is_the_registry(excel):
    facts = excel[0]
    assert set(facts) == set(REGISTRY)
    for name, function in REGISTRY.items():
        arguments = facts[name]["arguments"]
        assert [argument["name"] for argument in arguments] == list(function.arguments)
        optional = [argument["optional"] for argument in arguments]
        assert optional == [at >= function.required for at in range(len(optional))]
        assert {argument["options"]["ndim"] for argument in arguments} == {2}
        assert function.help[:100] in facts[name]["help"]
        assert facts[name]["category"] == "GPU memory sizing"


def test_texts_of_the_wizard_are_whole_within_255_characters(excel):
    for function in excel[0].values():
        for text in (function["help"], *(argument["doc"] for argument in function["arguments"])):
            assert 0 < len(text) <= 255
            assert text.endswith((".", "…"))
    arguments = {argument["name"]: argument["doc"] for argument in excel[0]["GPU_FITS"]["arguments"]}
    assert "Left out: 8 (Training: 256; Full fine-tuning: 1). A whole number from 1 to 65,536." in arguments["batch_size"]
    assert arguments["job"].endswith("Left out: LoRA.")  # what is taken is told, however long the help


def test_the_vba_has_every_function_with_its_arguments(excel):
    text = excel[1].replace(" _\n", "")
    begun = dict(re.findall(r"^Function (\w+)\((.*)\)$", text, re.MULTILINE))
    assert set(begun) == set(REGISTRY)
    for name, function in REGISTRY.items():
        told = [argument.removeprefix("Optional ") for argument in begun[name].split(", ")]
        assert told == list(function.arguments)
        assert begun[name].count("Optional ") == len(function.arguments) - function.required
        assert not RESERVED & {argument.casefold() for argument in told}
        assert f'XLPy.CallUDF("sizing_xlsx.functions.udf.excel", "{name}", Array({", ".join(told)})' in text
        assert f'Attribute {name}.VB_Description = "' in text
    assert text.isascii()
    assert max(map(len, excel[1].splitlines())) <= 1023


def test_importing_through_excel_brings_the_functions_with_all_their_help(excel):
    (found,) = asked({"import": ["XLSTART/sizing-xlsx.xlam", "functions.bas"]})
    assert found["done"] == [
        "open XLSTART/sizing-xlsx.xlam", "IsAddin False", "import functions.bas", "IsAddin True", "save", "close", "quit"
    ]  # fmt: skip
    assert len(found["described"]) == len(REGISTRY)
    for name, facts in excel[0].items():
        help_of = [argument["doc"] for argument in facts["arguments"]]
        assert found["described"][f"'sizing-xlsx.xlam'!{name}"] == [facts["help"], "GPU memory sizing", help_of]


def test_no_function_calls_python_while_a_workbook_could_name_another(excel):
    for body in excel[1].split("\nFunction ")[1:]:
        name = body.partition("(")[0]
        before = body.partition("XLPy.CallUDF")[0]
        assert f'If SheetExists(ActiveWorkbook, "myaddin.conf") Then\n        {name} = "#VALUE! ' in before
        assert "Exit Function\n    End If\n" in before


def test_names_are_safe_in_vba_and_others_are_found():
    assert unsafe_names(REGISTRY) == []
    fits = REGISTRY["GPU_FITS"]
    for bad in ("type", "Step", "gpu_fits", "two words", "caller", "1st"):
        assert unsafe_names({"GPU_FITS": fits._replace(begins=("model", bad))}), bad
    for bad in ("GPU1", "gpu_fits", "END"):
        assert unsafe_names({bad: fits}), bad
    assert unsafe_names({"GPU_FITS": fits._replace(ends=tuple(f"a{at}" for at in range(61)))})


# ---------------------------------------------------------------------- what cells get
def test_values_of_every_example_are_those_of_python(excel):
    found = dict(zip(map(str, EXAMPLES), excel[2:], strict=False))
    for name, example in EXAMPLES:
        value = functions.call(name, **example)
        rows = value if isinstance(value, list) else [[value]]
        assert found[str((name, example))] == [["" if cell is None else cell for cell in row] for row in rows]


def test_golden_vectors_hold_through_the_conversion():
    """The calls that every surface has to answer alike, values from plain functions."""
    vectors = function_vectors.read()
    found = asked(
        *({"call": case["function"], "given": in_order(case["function"], case["arguments"])} for case in vectors)
    )
    for case, ((cell,),) in zip(vectors, found, strict=True):
        error = str(cell).partition(" ")[0] if str(cell).startswith("#") else None
        assert function_vectors.is_met(case, cell, error), (case, cell)


def test_wrong_calls_are_sentences_and_those_of_python(excel):
    for (name, wrong), found in zip(WRONG, excel[2 + len(EXAMPLES) :], strict=True):
        assert found == in_python(name, *wrong), (name, wrong)
        assert re.match(r"#(N/A|VALUE!) \w", found[0][0])
        assert len(found[0][0]) <= 255


def test_values_as_cells_hold_them():
    fits = functions.call("GPU_HEADROOM", *JOB)
    steps = {
        "one-cell ranges": (cells([LLAMA]), cells([H100]), cells([8]), cells([2048])),
        "text numbers": (LLAMA, H100, "8", cells(["2048"])),
        "money": (LLAMA, H100, cells([{"money": "8"}]), 2048),
        "blanks": (LLAMA, H100, cells([8]), 2048, cells([None]), cells([""])),
        "truth values": (LLAMA, H100, 8, 2048, None, None, None, cells([False])),
    }
    assert asked(*({"call": "GPU_HEADROOM", "given": given} for given in steps.values())) == [[[fits]]] * len(steps)


def test_error_cells_and_dates_are_named():
    found = asked(
        {"call": "GPU_FITS", "given": [LLAMA, H100, cells([{"error": "#N/A"}])]},
        {"call": "GPU_FITS", "given": [cells([{"error": "#SPILL!"}]), H100]},
        {"call": "GPU_FITS", "given": [LLAMA, {"error": "#DIV/0!"}]},
        {"call": "GPU_FITS", "given": [LLAMA, H100, cells([{"date": "2026-11-30"}])]},
    )
    texts = [rows[0][0] for rows in found]
    assert texts[0].startswith("#VALUE! batch_size is the error #N/A; ")
    assert texts[1].startswith("#VALUE! model is the error #SPILL!; ")
    assert texts[2].startswith("#VALUE! gpu is the error #DIV/0!; ")
    assert texts[3].startswith("#VALUE! batch_size is '2026-11-30'; it must be a whole number")


def test_ranges_are_answered_cell_by_cell():
    column, row = [1, 8, "x", None], [512, 2048]
    found = asked(
        {"call": "GPU_HEADROOM", "given": [LLAMA, H100, cells(*([value] for value in column)), 2048]},
        {"call": "GPU_HEADROOM", "given": [LLAMA, H100, 8, cells(row)]},
        {"call": "GPU_FITS", "given": [LLAMA, H100, cells([1, 2], [3, 64]), cells([512, 1024], [2048, 4096])]},
        {"call": "GPU_FITS", "given": [LLAMA, H100, cells([1], [2]), cells(row)]},
        {"call": "GPU_LIST", "given": [cells(["H100"], ["A100"])]},
    )
    assert found[0] == [in_python("GPU_HEADROOM", LLAMA, H100, value, 2048)[0] for value in column]
    assert found[1] == [[functions.call("GPU_HEADROOM", LLAMA, H100, 8, value) for value in row]]
    pairs = [[(1, 512), (2, 1024)], [(3, 2048), (64, 4096)]]
    assert found[2] == [[functions.call("GPU_FITS", LLAMA, H100, *pair) for pair in line] for line in pairs]
    assert found[3] == [
        ["#VALUE! sequence_length is a range of 1 × 2 cells and batch_size one of 2 × 1; "
         "ranges of one call must have the same shape"]
    ]  # fmt: skip
    assert found[4] == [["#VALUE! contains is a range of 2 rows or columns; it must be one cell"]]


def test_a_range_of_too_many_cells_is_refused():
    rows = [[1]] * (MOST_CELLS + 1)
    found = answer(REGISTRY["GPU_FITS"], (LLAMA, H100, rows), functions.default_desk)
    assert found == "#VALUE! batch_size is a range of 20,001 × 1 cells; it must have at most 20,000 cells"


CELL = st.one_of(
    st.none(), st.booleans(), st.floats(), st.text(max_size=12), st.sampled_from([LLAMA, H100, "8", "#N/A", "QLoRA"]),
    st.integers(-(2**40), 2**40),
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.sampled_from([n for n, f in REGISTRY.items() if f.result.kind != TABLE]), st.lists(CELL, max_size=6))
def test_nothing_that_a_cell_can_hold_raises(name, given):
    found = answer(REGISTRY[name], given, functions.default_desk)
    assert isinstance(found, (bool, float, str))
    if isinstance(found, str) and found.startswith("#"):
        assert "failed" not in found
        assert len(found) <= 255


# ---------------------------------------------------------------------- what is not foreseen
def broken(desk: Any, values: Any) -> Any:
    raise KeyError(values["contains"])


BROKEN = REGISTRY["GPU_LIST"]._replace(compute=broken, result=Result(NUMBER))


def test_what_is_not_foreseen_is_told_in_the_cell_and_counted_without_it(monkeypatch, caplog):
    monkeypatch.setitem(REGISTRY, "GPU_LIST", BROKEN)
    monkeypatch.setattr(failures, "COUNTS", type(failures.COUNTS)())
    monkeypatch.setattr(failures.LOGGER, "propagate", True)
    with caplog.at_level(logging.WARNING, failures.LOGGER.name):
        rows = answer(BROKEN, ([["secret plan"]] * 20,), functions.default_desk)
    assert rows == [["#VALUE! GPU_LIST failed: KeyError 'secret plan'"]] * 20
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(", ")[2] for line in lines] == ["1 so far", "10 so far"]
    assert all(re.match(r"GPU_LIST: KeyError at test_xlwings\.py:\d+", line) for line in lines)
    assert "secret" not in caplog.text


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_result_that_is_no_number_is_told(monkeypatch, value):
    function: Function = BROKEN._replace(compute=lambda desk, values: value)
    monkeypatch.setitem(REGISTRY, "GPU_LIST", function)
    assert answer(function, (), functions.default_desk) == f"#VALUE! GPU_LIST failed: ValueError the result is {value}"


def test_presets_that_cannot_be_read_are_told_in_every_cell(tmp_path):
    file = tmp_path / "sizing-xlsx-excel.toml"
    file.write_text("gpus = ['missing.csv']\n")
    found = asked({"facts": True}, {"call": "GPU_FITS", "given": JOB}, environ={"SIZING_XLSX_EXCEL": str(file)})
    assert set(found[0]) == set(REGISTRY)
    assert found[1][0][0].startswith("#VALUE! presets: ")
    assert "missing.csv" in found[1][0][0]


def test_own_cards_count_in_cells(tmp_path):
    (tmp_path / "cards.csv").write_text("name,usable_gib\nRack 7,200\n")
    file = tmp_path / "sizing-xlsx-excel.toml"
    file.write_text("gpus = ['cards.csv']\n")
    (found,) = asked({"call": "GPU_INFO", "given": ["Rack 7"]}, environ={"SIZING_XLSX_EXCEL": str(file)})
    assert found == [[pytest.approx(200 * 2**30 / 1e9)]]


def test_the_package_does_not_import_xlwings():
    code = "import sys, sizing_xlsx; from sizing_xlsx import functions; functions.registered(); print('xlwings' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

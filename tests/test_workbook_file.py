"""The emitted files themselves: the same bytes twice, values everywhere, public names, dropdowns, locks, charts; and
what happens to them when presets are new, odd or wrong, or when a build breaks off."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from conftest import MAIN, RESULTS, Book, File, short_template
from engines import ErrorValue, Formualizer, close, contents, libreoffice_available, to_pdf
from lxml import etree

from sizing_xlsx.formula.declare import Choice, Number, Whole
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.functions import registered
from sizing_xlsx.jobs import JOBS, job
from sizing_xlsx.paths import presets_folder
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook import build as building
from sizing_xlsx.workbook.build import BOOKS, build, workbook_job, write_book
from sizing_xlsx.workbook.lambdas import BEGIN
from sizing_xlsx.workbook.own_runs import KEY, figure_names, input_names
from sizing_xlsx.workbook.rules import lint_workbook
from sizing_xlsx.workbook.scenarios import CHOICE, inputs_of_scenarios, list_name
from sizing_xlsx.workbook.template import TRAINED

CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
INPUTS = {
    "Base_Model", "Batch_Size", "Sequence_Length", "Compute_Precision", "Optimizer_Choice",
    "Activation_Checkpointing", "GPU_Choice", "GPU_Capacity_Override_GB",
}  # fmt: skip
LORA_INPUTS = {"Base_Storage_Format", "LoRA_Rank", "Adapter_Targets", "Adapter_Layers"}

pytestmark = pytest.mark.filterwarnings("ignore:.*xtension is not supported:UserWarning")


# -- the bytes


def test_two_builds_are_byte_identical(books: dict[str, Book], tmp_path: Path) -> None:
    paths = build(tmp_path)
    for again, book in zip(paths[: len(JOBS)], books.values(), strict=True):  # of the plan: test_plan_build.py
        assert again.name == book.path.name
        assert again.read_bytes() == book.path.read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted(paths) and len(paths) == len(BOOKS)


def test_no_time_or_place_of_the_build_is_in_the_file(book: Book) -> None:
    with zipfile.ZipFile(book.path) as archive:
        assert len({info.date_time for info in archive.infolist()}) == 1
    here = (str(Path.home()), str(book.path.parent), str(presets_folder()))
    text = b"".join(book.parts.values()).decode()
    assert [place for place in here if len(place) > 6 and place in text] == []


def test_the_linter_finds_nothing(whole_book: Book) -> None:
    assert lint_workbook(whole_book.path) == []


def test_the_parts_are_those_of_a_plain_workbook(book: Book) -> None:
    odd = ("external", "vba", "custom", "connections", "macro", "activeX", "embeddings")
    assert [name for name in book.parts if any(word in name for word in odd)] == []
    assert [
        name for name, part in book.parts.items() if name.endswith((".xml", ".rels")) and b"<!DOCTYPE" in part
    ] == []


# -- values


def test_every_formula_has_a_value_of_the_right_type(book: Book) -> None:
    assert [place for place, value in book.cached.items() if value is None] == []
    number = re.compile(r"^(SUM|COUNT|COUNTIF|MAX|MIN|MATCH|ROUNDUP|ROUNDDOWN)\([^&\"]*\)$")
    wrong = [p for p, f in book.formulas.items() if number.match(f) and not isinstance(book.cached[p], float)]
    assert wrong == []
    errors = {place for place, value in book.cached.items() if isinstance(value, ErrorValue)}
    assert {book.cached[place] for place in errors} <= {"#N/A"}
    assert {place[0] for place in errors} <= {"Chart data", "Crossover workings"}, (
        "only a chart's missing points are errors"
    )
    for name in RESULTS:
        assert isinstance(book.cached[contents(book.path).names[name.casefold()]], float), name


def test_readers_without_an_engine_see_values(book: Book) -> None:
    values = _values(book.path)
    found = contents(book.path).names
    expected = book.job.reference()
    for key in book.job.order:
        sheet, row, column = found[public_name(key).casefold()]
        value = values[sheet].cell(row, column).value
        value = float(value) if isinstance(value, int) else value
        right = expected[key]
        assert close(value, float(right) if isinstance(right, int) else right), key
    frame = pd.read_excel(book.path, sheet_name="Sizing", header=None)
    full = book.name == "full"  # whose worked job needs more than its two cards have
    told = "Does not fit 2 × NVIDIA A100 SXM4 80GB: " if full else "Fits one NVIDIA H100 SXM5 80GB: "
    assert str(frame.iloc[1, 1]).startswith(told)
    assert frame.astype(str).isin(["Does not fit" if full else "Fits"]).any(axis=None)


# -- names, inputs, locks


def test_the_public_names_are_there(book: Book) -> None:
    wanted = {*INPUTS, *RESULTS, "Fit_Verdict", "Checks_Failed", *(LORA_INPUTS if book.name == "lora" else ())}
    if book.name == "full":  # a recipe says what the optimizer keeps
        wanted = (wanted - {"Optimizer_Choice"}) | FULL_NAMES
    assert wanted - book.names.keys() == set()
    terms = {public_name(key) for key in (*book.job.order, *book.job.inputs, *book.job.constants)}
    assert terms - book.names.keys() == set(), "every input, constant and term has a name"
    cells = re.compile(r"'[^']+'!\$[A-Z]+\$\d+(:\$[A-Z]+\$\d+)?")
    others = {name for name, refers in book.names.items() if not cells.fullmatch(refers)}
    functions = {name for name in registered() if name in others}
    assert functions, "the functions are names too"
    assert {name for name in others - functions if not name.startswith(BEGIN)} == set()
    assert [name for name in others if "LAMBDA(" not in book.names[name]] == []


def test_every_input_has_a_validation_that_refuses_what_is_wrong(book: Book) -> None:
    found = contents(book.path).names
    rules = {}
    for sheet in book.sheets.values():
        for rule in sheet.tree.iter(MAIN + "dataValidation"):
            for area in rule.get("sqref").split():
                rules[sheet.name, area] = rule
    for key, declared in book.job.inputs.items():
        sheet, row, column = found[public_name(key).casefold()]
        rule = rules.pop((sheet, openpyxl.utils.get_column_letter(column) + str(row)))
        assert rule.get("showErrorMessage") == "1", key
        assert rule.get("errorStyle", "stop") == "stop", key
        assert (rule.get("allowBlank") == "1") is declared.optional, key
        assert 0 < len(rule.get("prompt")) <= 255 and 0 < len(rule.get("error")) <= 255, key
        first, second = rule.findtext(MAIN + "formula1"), rule.findtext(MAIN + "formula2")
        domain = declared.domain
        if isinstance(domain, Choice):
            assert rule.get("type") == "list"
            assert cells_of(book, first) == list(book.job.tables[domain.table].keys), key
        elif isinstance(domain, Whole) and domain.word:
            assert rule.get("type") == "custom" and domain.word in first
        else:
            assert rule.get("type") == ("whole" if isinstance(domain, Whole) else "decimal")
            assert isinstance(domain, Whole | Number)
            assert [float(first), float(second)] == [domain.low, domain.high], key
    choice = found[CHOICE.casefold()]
    rule = rules.pop((choice[0], openpyxl.utils.get_column_letter(choice[2]) + str(choice[1])))
    assert cells_of(book, rule.findtext(MAIN + "formula1"))[:2] == ["As typed below", "Worked example"]
    typed = {column_of(book, name) for name in RUN_COLUMNS[book.name] + scenario_columns(book)}
    left = {(sheet, area.partition(":")[0].rstrip("0123456789")) for sheet, area in rules}
    free = {(s, openpyxl.utils.get_column_letter(column)) for s, _, column in prices_of(book) | page_inputs(book)}
    assert left == {(sheet, letter) for sheet, letter, _, _ in typed} | free, "a validation on a cell that is no input"


FULL_NAMES = {
    "Base_Model", "Training_Recipe", "Sharding_Stage", "GPU_Count", "Base_Parameter_Count", "Model_State_Per_GPU_GB",
    "Per_GPU_Peak_Allocated_GB",
}  # fmt: skip
RUN_COLUMNS = {name: [KEY, *figure_names().values(), *input_names(job(name)).values()] for name in JOBS}


def scenario_columns(book: Book) -> list[str]:
    """The columns of Scenarios in which something can be typed."""
    return [list_name(key) for key in ("name", "owner", "date", "note", *inputs_of_scenarios(book.job))]


def column_of(file: File, name: str) -> tuple[str, str, int, int]:
    """Sheet, column, first and last row of a name for a column of the table of runs."""
    sheet, letter, first, last = re.fullmatch(r"'(.+)'!\$([A-Z]+)\$(\d+):\$[A-Z]+\$(\d+)", file.names[name]).groups()  # type: ignore[union-attr]
    return sheet, letter, int(first), int(last)


def prices_of(book: Book) -> set[tuple[str, int, int]]:
    """The cells of GPUs with a price and its date, which a planner may change."""
    found = set()
    for name in ("GPUs_Price_USD_Per_Hour_List", "GPUs_Price_As_Of_List"):
        sheet, letter, first, last = column_of(book, name)
        at = openpyxl.utils.column_index_from_string(letter)
        found |= {(sheet, row, at) for row in range(first, last + 1)}
    return found


def page_inputs(book: Book) -> set[tuple[str, int, int]]:
    """The inputs of a single sheet, which no other sheet reads."""
    named = {name: contents(book.path).names.get(name.casefold(), ("",)) for name in book.names}
    typed = (
        ("Start", "Answer_"), ("Summary", "Prepared_"), ("Compare", "Compare_Order"), ("Sensitivity", "Sensitivity_"),
        ("Crossover", "Crossover_Card_"), ("Crossover", "Nominal_"),
    )  # fmt: skip
    return {
        at for name, at in named.items() if any(at[0] == sheet and name.startswith(start) for sheet, start in typed)
    }


def cells_of(file: File, name: str) -> list[Any]:
    """The values of the area that a defined name refers to."""
    sheet, area = file.names[name].rsplit("!", 1)
    return [row[0].value for row in _values(file.path)[sheet.strip("'")][area.replace("$", "")]]


@lru_cache(maxsize=4)
def _values(path: Path) -> Any:
    return openpyxl.load_workbook(path, data_only=True)


def test_only_inputs_can_be_changed(book: Book) -> None:
    styles = etree.fromstring(book.parts["xl/styles.xml"]).find(MAIN + "cellXfs")
    free = [
        at for at, style in enumerate(styles)
        if style.find(MAIN + "protection") is not None and style.find(MAIN + "protection").get("locked") == "0"
    ]  # fmt: skip
    found = contents(book.path).names
    unlocked = {
        place for sheet in book.sheets.values() for place, cell in sheet.cells() if int(cell.get("s", 0)) in free
    }
    runs = len(getattr(book.presets, f"{book.name}_sweep"))
    spare = {
        (sheet, row, openpyxl.utils.column_index_from_string(letter))
        for sheet, letter, first, last in (column_of(book, name) for name in RUN_COLUMNS[book.name])
        for row in range(first + runs, last + 1)
    }
    planned = {
        (sheet, row, openpyxl.utils.column_index_from_string(letter))
        for sheet, letter, first, last in (column_of(book, name) for name in scenario_columns(book))
        for row in range(first, last + 1)
    }
    inputs = {found[public_name(key).casefold()] for key in book.job.inputs} | {found[CHOICE.casefold()]}
    assert unlocked == inputs | spare | planned | prices_of(book) | page_inputs(book)
    for sheet in book.sheets.values():
        protection = sheet.tree.find(MAIN + "sheetProtection")
        assert protection is not None and protection.get("sheet") == "1", sheet.name
        assert not {"password", "hashValue", "saltValue"} & set(protection.keys()), sheet.name
        columns = [c for c in sheet.tree.iter(MAIN + "col") if c.get("style") and int(c.get("style")) in free]
        rows = [r for r in sheet.tree.iter(MAIN + "row") if r.get("s") and int(r.get("s")) in free]
        assert (columns, rows) == ([], []), sheet.name


def test_no_sheet_is_hidden_and_every_link_leads_somewhere(book: Book) -> None:
    states = [sheet.get("state") for sheet in etree.fromstring(book.parts["xl/workbook.xml"]).iter(MAIN + "sheet")]
    assert {*states} == {None}
    links = [link.get("location") for sheet in book.sheets.values() for link in sheet.tree.iter(MAIN + "hyperlink")]
    assert len(links) >= 5
    assert [link for link in links if link.rpartition("!")[0].strip("'") not in book.sheets] == []


# -- print


@pytest.mark.skipif(not libreoffice_available()[0], reason="LibreOffice is not here")
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not here")
def test_what_stands_between_two_page_breaks_of_sizing_fits_one_page(book: Book, tmp_path: Path) -> None:
    """As LibreOffice prints it: no section runs over by a row or two."""
    breaks = openpyxl.load_workbook(book.path)["Sizing"].row_breaks.brk
    pdf = to_pdf(book.path, tmp_path)
    text = subprocess.run(["pdftotext", "-layout", str(pdf), "-"], check=True, capture_output=True, timeout=60).stdout
    assert len(re.findall(rb" Sizing +Page \d+ of", text)) == len(breaks) + 1  # one footer a page


# -- charts


def test_charts_show_their_axes_and_carry_their_values(book: Book) -> None:
    charts = {name: etree.fromstring(part) for name, part in book.parts.items() if name.startswith("xl/charts/chart")}
    assert len(charts) >= 5
    values = _values(book.path)
    for name, chart in charts.items():
        axes = [axis for kind in ("catAx", "valAx") for axis in chart.iter(CHART + kind)]
        assert len(axes) == 2, name
        assert {axis.find(CHART + "delete").get("val") for axis in axes} == {"0"}, name
        for kind in ("numRef", "strRef"):
            for reference in chart.iter(CHART + kind):
                assert_cache(values, name, reference)


def assert_cache(values: Any, name: str, reference: Any) -> None:
    """A chart's cached points are the cells they refer to."""
    formula = reference.findtext(CHART + "f")
    sheet, area = formula.rsplit("!", 1)
    cells = values[sheet.strip("'").replace("''", "'")][area.replace("$", "")]
    wanted = [row[0].value for row in cells] if isinstance(cells, tuple) else [cells.value]
    cache = next(child for child in reference if child.tag.endswith("Cache"))
    points = {int(point.get("idx")): point.findtext(CHART + "v") for point in cache.iter(CHART + "pt")}
    assert int(cache.find(CHART + "ptCount").get("val")) == len(wanted), (name, formula)
    for at, value in enumerate(wanted):
        shown = points.get(at)
        if isinstance(value, int | float):
            assert shown is not None and close(float(shown), float(value)), (name, formula, at)
        else:
            assert shown in (value, None if value in (None, "#N/A") else value), (name, formula, at)


# -- other presets


@pytest.fixture
def own_presets(tmp_path: Path) -> Path:
    """A copy of the presets that a test may change."""
    return Path(shutil.copytree(presets_folder(), tmp_path / "presets"))


def add_model(presets: Path, folder: str, **fields: Any) -> None:
    config = json.loads((presets_folder() / "models" / "HuggingFaceTB--SmolLM2-135M" / "config.json").read_text())
    (presets / "models" / folder).mkdir()
    (presets / "models" / folder / "config.json").write_text(json.dumps({**config, **fields}))


def test_a_model_folder_dropped_in_is_offered_and_sized(own_presets: Path, tmp_path: Path) -> None:
    add_model(
        own_presets,
        "own-lab--Tiny-1",
        hidden_size=640,
        num_hidden_layers=7,
        num_attention_heads=10,
        num_key_value_heads=5,
    )
    add_model(own_presets, "own-lab--Strange", model_type="mamba3")
    path = tmp_path / "own.xlsx"
    write_book(path, "lora", short_template("lora"), load_presets(own_presets), own_presets)
    names = cells_of(File(path), "Models_Names_List")
    assert "own-lab/Tiny-1" in names
    assert "own-lab/Strange" not in names

    job = workbook_job("lora", load_presets(own_presets))
    inputs = {"base_model": "own-lab/Tiny-1", "adapter_layers": 7}
    engine = Formualizer(path)
    for key, value in inputs.items():
        engine.set(public_name(key), value)
    engine.recalculate()
    values = job.reference(inputs)
    assert (engine.get("Checks_Failed"), engine.get("Hidden_Size")) == (0, 640)
    assert [key for key in job.order if not close(engine.get(public_name(key)), values[key])] == []
    assert "own-lab/Tiny-1" in str(engine.get_sheet("Presets").values())

    unsized = {model.name: model.why_not for model in load_presets(own_presets).unsized_models}
    shown = engine.get_sheet("Presets").values()
    assert len(unsized["own-lab/Strange"]) > 10
    assert {"own-lab/Strange", unsized["own-lab/Strange"]} <= {*shown}


def test_every_model_that_is_not_offered_is_listed_with_its_reason(own_presets: Path, tmp_path: Path) -> None:
    for family in ("internlm2", "mamba3"):
        add_model(own_presets, f"own-lab--{family}", model_type=family)
    presets, path = load_presets(own_presets), tmp_path / "own.xlsx"
    unsized = presets.unsized_models
    assert len(unsized) == 2
    write_book(path, "lora", short_template("lora"), presets, own_presets)
    sheet = _values(path)["Presets"]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    for model in unsized:
        assert any(model.name in row and model.why_not in row for row in rows), model.name


def test_texts_of_presets_never_become_formulas(own_presets: Path, tmp_path: Path) -> None:
    odd = ("=1+1", "+x", "@y", "-2", "\t=3", "=HYPERLINK(0)", "{=4}", "https://example.org", "'=5", "007")
    sources = own_presets / "models" / "sources.csv"
    gpus, training = own_presets / "gpus.csv", own_presets / "training_models.csv"
    for file, column in ((sources, "shape_source"), (gpus, "note"), (gpus, "memory_source"), (training, "source")):
        frame = pd.read_csv(file, dtype=str, keep_default_na=False)
        frame[column] = [odd[at % len(odd)].strip() for at in range(len(frame))]
        frame.to_csv(file, index=False)
    plain, presets = [text.strip() for text in odd], load_presets(own_presets)
    for name in ("lora", "training"):  # what full fine-tuning shows of presets, LoRA does
        path = tmp_path / f"{name}.xlsx"
        write_book(path, name, short_template(name), presets, own_presets)
        file = File(path)
        assert [f for f in file.formulas.values() if f.lstrip("=") in {text.lstrip("=") for text in plain}] == []
        shown = [
            c.value
            for title in ("Presets", "GPUs")
            for row in openpyxl.load_workbook(path)[title]
            for c in row
            if c.data_type == "s"
        ]
        assert {*plain} <= {*shown}
        outside = [
            link
            for sheet in file.sheets.values()
            for link in sheet.tree.iter(MAIN + "hyperlink")
            if link.get("location") is None
        ]
        assert outside == []
        assert lint_workbook(path) == []


BAD: list[tuple[str, dict[str, Any]]] = [
    ("own-lab--Tiny-1", {"hidden_size": "wide"}),
    ("own-lab--Tiny-1", {"num_hidden_layers": -1}),
    ("own-lab--Tiny-1", {"num_attention_heads": None}),
    ("own-lab--Tiny-1", {"vocab_size": 1e300}),
    ("own-lab--Tiny-1", {"hidden_size": True}),
    ("own-lab--=1+1*", {}),
    ("HUGGINGFACETB--smollm2-135m", {}),
]


@pytest.mark.parametrize(("folder", "fields"), BAD, ids=[f"{folder}-{'-'.join(fields)}" for folder, fields in BAD])
def test_a_bad_config_leaves_the_workbooks_that_are_there(
    own_presets: Path, tmp_path: Path, books: dict[str, Book], folder: str, fields: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    before = earlier(out, books)
    add_model(own_presets, folder, **fields)
    with pytest.raises(ValueError) as caught:
        build(out, None, own_presets)
    assert "\n" not in str(caught.value) and len(str(caught.value)) > 20
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_config_that_is_no_json_leaves_the_workbooks_that_are_there(
    own_presets: Path, tmp_path: Path, books: dict[str, Book]
) -> None:
    before = earlier(tmp_path / "out", books)
    (own_presets / "models" / "HuggingFaceTB--SmolLM2-135M" / "config.json").write_text('{"hidden_size": 5')
    with pytest.raises(ValueError, match=r"SmolLM2-135M"):
        build(tmp_path / "out", None, own_presets)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def earlier(folder: Path, books: dict[str, Book]) -> dict[str, bytes]:
    """Both workbooks as an earlier build left them, and what they hold."""
    folder.mkdir()
    before = {book.path.name: book.path.read_bytes() for book in books.values()}
    for name, content in before.items():
        (folder / name).write_bytes(content)
    return before


@pytest.mark.parametrize(
    "error", [RuntimeError("out of ideas"), KeyboardInterrupt(), OSError(28, "No space left on device")]
)
def test_a_build_that_breaks_off_leaves_the_workbooks_that_are_there(
    tmp_path: Path, books: dict[str, Book], monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """The first workbook is written in full, the second in part."""
    before, written = earlier(tmp_path / "out", books), []

    def breaks(file: Any, name: str, *_: Any) -> None:
        file.write(b"a draft")
        written.append(name)
        if len(written) == 2:
            raise error

    monkeypatch.setattr(building, "write_book", breaks)
    with pytest.raises(type(error)):
        build(tmp_path / "out")
    assert len(written) == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_build_that_breaks_off_while_a_sheet_is_written_leaves_no_draft(
    tmp_path: Path, books: dict[str, Book], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = earlier(tmp_path / "out", books)

    def breaks(_: object) -> None:
        raise RuntimeError("no notes today")

    whole = building.FORMS[TRAINED]
    monkeypatch.setitem(building.FORMS, TRAINED, whole._replace(writes=(*whole.writes[:-2], breaks)))
    with pytest.raises(RuntimeError, match="no notes today"):
        build(tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_folder_that_is_a_file_is_an_oserror(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OSError):
        build(tmp_path / "out")

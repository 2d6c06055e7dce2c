"""Own runs on Validation: read from a results file, or typed and written into spare rows, and held against Python."""

from __future__ import annotations

import csv
import random
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import MAIN, Book, Engine, File, Opened
from engines import ErrorValue, Formualizer, close, engine_parameters
from lxml import etree
from strategies import random_inputs

from sizing_xlsx.cli import main
from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import JOBS, WORKBOOKS, job
from sizing_xlsx.paths import presets_folder
from sizing_xlsx.workbook import lint as linting
from sizing_xlsx.workbook.build import build, workbook_job
from sizing_xlsx.workbook.own_runs import (
    COLUMNS,
    KEY,
    LONGEST_SOURCE,
    RESULTS_FILE,
    SPARE_ROWS,
    figure_names,
    input_names,
    read_results,
)
from sizing_xlsx.workbook.rules import lint_workbook

pytestmark = pytest.mark.filterwarnings("ignore:.*xtension is not supported:UserWarning")

FIGURES = figure_names()
SWEEP = {"lora": 25, "training": 24, "full": 12}  # the last are runs that others published
SWEPT = ("lora", "training")  # measured on an H100 and traced; what others published was neither
SHIPPED_TRACES = {
    "lora": ("0.01%", "median 0.00%"),
    "training": ("0.26%", "median 0.24%"),
    "full": ("none", "no step traced yet"),
}
FITS = {"lora": {}, "training": {}, "full": {"gpu_count": 8}}  # what makes the worked job fit its card
ALL_INPUTS = list(dict.fromkeys(key for name in JOBS for key in input_names(job(name))))
HEADER = [*COLUMNS, *ALL_INPUTS]
SMOL = "HuggingFaceTB/SmolLM2-135M"


def row(ident: str, name: str, **cells: Any) -> dict[str, Any]:
    """A row of a results file: a completed, measured run unless said otherwise."""
    found = {"id": ident, "job": name, "backend": "cuda", "outcome": "ok", "source": f"measured: here, {ident}"}
    return {**found, "peak_allocated_bytes": 12_700_000_000, "peak_reserved_bytes": 14_000_000_000, **cells}


def write_results(folder: Path, rows: list[dict[str, Any]], header: list[str] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / RESULTS_FILE
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, header or HEADER, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


# -- the table by its names


class Table:
    """The table of runs of a workbook in an engine: cells by defined name and row, from 0."""

    def __init__(self, path: Path, engine: Engine | None = None) -> None:
        self.file, self.engine = File(path), engine
        self.before: dict[tuple[str, int, int], Any] = {}  # what cells held that were written

    def area(self, name: str) -> tuple[str, int, int, int]:
        """Sheet, first row, last row and column of a name."""
        sheet, place = self.file.names[name].rsplit("!", 1)
        left, top, right, bottom = openpyxl.utils.range_boundaries(place.replace("$", ""))
        assert left == right and top is not None and bottom is not None and left is not None
        return sheet.strip("'"), top, bottom, left

    def place(self, name: str, at: int) -> tuple[str, int, int]:
        sheet, top, bottom, column = self.area(name)
        assert top + at <= bottom, "beyond the last row"
        return sheet, top + at, column

    def __len__(self) -> int:
        _, top, bottom, _ = self.area(KEY)
        return bottom - top + 1

    def write(self, at: int, name: str, inputs: Mapping[str, Any], ident: Any = "own", **figures: Any) -> None:
        """Put a run into a row by nothing but values: its id, its inputs, its figures."""
        assert self.engine is not None
        names = input_names(job(name))
        cells = {KEY: ident, **{names[key]: "none" if value is None else value for key, value in inputs.items()}}
        cells |= {FIGURES[key]: value for key, value in figures.items()}
        for defined, value in cells.items():
            place = self.place(defined, at)
            assert place not in self.file.formulas, f"{defined} is a formula"
            self.before.setdefault(place, self.engine.get(place))
            self.engine.set(place, float(value) if isinstance(value, int) else value)
        self.engine.recalculate()

    def restore(self) -> None:
        """Set back every cell that was written."""
        assert self.engine is not None
        for place, value in self.before.items():
            self.engine.set(place, value)
        self.engine.recalculate()

    def shown(self, at: int) -> dict[str, Any]:
        """What the formulas of a row show, by the letters of its columns."""
        assert self.engine is not None
        _, line, _ = self.place(KEY, at)
        letters = "IJKLNOQR"
        places = [("Validation", line, ord(letter) - 64) for letter in letters]
        return dict(zip(letters, self.engine.get_many(places), strict=True))

    def strip(self) -> dict[str, tuple[Any, Any]]:
        """The tiles: label -> figure and note. The sentence is "" -> (sentence, "")."""
        assert self.engine is not None
        cells = self.engine.get_sheet("Validation")
        found = {str(cells[4, c]): (cells[5, c], cells.get((6, c))) for c in range(2, 22) if (4, c) in cells}
        return {**found, "": (cells[2, 2], "")}


def new_job(sized: Job, rng: random.Random) -> dict[str, Any]:
    """Random inputs of a row: those that a run has."""
    inputs = random_inputs(sized, rng)
    return {key: inputs[key] for key in input_names(sized)}


@pytest.fixture
def table(opened: Opened) -> Iterator[Table]:
    """Each workbook, as built without a results file, in each engine; set back afterwards."""
    found = Table(opened.book.path, opened.engine)
    yield found
    found.restore()


# -- the names


def test_the_names_cover_sweep_and_spare_rows_in_one_column(book: Book) -> None:
    table = Table(book.path)
    names = [KEY, *FIGURES.values(), *input_names(book.job).values()]
    assert len(set(names)) == len(names) and max(map(len, names)) <= linting.MAX_NAME
    others = {"Validation_Outcomes_List", "Validation_Finding"}
    assert {name for name in book.names if name.startswith("Validation_")} == {*names, *others}
    rows = {table.area(name)[1:3] for name in names}
    assert len(rows) == 1 and len(table) == SWEEP[book.name] + SPARE_ROWS
    visible = {"Validation_Batch_Size", "Validation_Sequence_Length", "Validation_Activation_Checkpointing"}
    for name in names:
        workings = name in input_names(book.job).values() and name not in visible
        assert table.area(name)[0] == ("Validation workings" if workings else "Validation"), name
        places = {table.place(name, at) for at in range(len(table))}
        assert not places & book.formulas.keys(), f"{name}: a value cannot take the place of a formula"
    assert {FIGURES["measured_peak_gb"], FIGURES["trace_peak_gb"]} <= {*names}
    assert input_names(book.job) == input_names(job(book.name)), "the same without a workbook"


def test_one_column_has_one_formula_over_all_rows(book: Book) -> None:
    table = Table(book.path)
    _, top, bottom, _ = table.area(KEY)
    forms: dict[tuple[str, int], dict[str, int]] = {}
    for (sheet, line, column), formula in book.formulas.items():
        if sheet in ("Validation", "Validation workings") and top <= line <= bottom:
            form = linting.r1c1(formula, line, column)
            count = forms.setdefault((sheet, column), {})
            count[form] = count.get(form, 0) + 1
    assert len(forms) > 100
    assert {tuple(count.values()) for count in forms.values()} == {(bottom - top + 1,)}


def test_spare_rows_are_empty_to_the_eye(book: Book) -> None:
    cells = openpyxl.load_workbook(book.path, data_only=True)["Validation"]
    table = Table(book.path)
    _, top, bottom, _ = table.area(KEY)
    spare = range(top + SWEEP[book.name], bottom + 1)
    assert [c.value for line in spare for c in cells[line] if c.value not in (None, "")] == []
    _, line, column = table.place(FIGURES["source"], 0)
    assert str(cells.cell(line, column).value).startswith("measured: ")
    outcomes = [cells.cell(*table.place(FIGURES["outcome"], at)[1:]).value for at in range(len(table))]
    for key in ("trace_peak_gb", "trace_reserved_gb"):
        held = [cells.cell(*table.place(FIGURES[key], at)[1:]).value for at in range(len(table))]
        swept = book.name in SWEPT
        assert [value is not None for value in held] == [swept and outcome == "Completed" for outcome in outcomes]


# -- a run in a spare row


def expected(sized: Job, inputs: Mapping[str, Any]) -> dict[str, Any]:
    wanted = ["traced_peak_allocated_gb", "published_peak_allocated_gb", "traced_total_reserved_gb",
              "published_total_reserved_gb", "fit_verdict"]  # fmt: skip
    values = sized.size(wanted, **inputs)
    return dict(zip("IKNOQ", [values[key] for key in wanted], strict=True))


def assert_row(shown: Mapping[str, Any], right: Mapping[str, Any], peak: float, completed: bool) -> None:
    verdict = {"fits": "Fits", "tight": "Tight", "does not fit": "Does not fit"}[right["Q"]]
    for letter in "IKNO":
        assert close(shown[letter], right[letter], 1e-12), letter
    assert shown["Q"] == verdict
    for letter, source in (("J", "I"), ("L", "K")):
        if isinstance(right[source], str):
            assert shown[letter] == "none"
        else:
            assert shown[letter] == pytest.approx(right[source] / peak - 1, rel=1e-12, abs=5.1e-5)
    call = "Undecided" if verdict == "Tight" else "Right" if completed == (verdict == "Fits") else "Wrong"
    assert shown["R"] == call


def test_a_run_written_into_a_spare_row_is_sized_as_in_python(table: Table, book: Book) -> None:
    sized, rng = job(book.name), random.Random(zlib.crc32(book.name.encode()))
    first = SWEEP[book.name]
    for at in range(first, first + (6 if isinstance(table.engine, Formualizer) else 2)):
        assert set(table.shown(at).values()) == {""}
        inputs = new_job(sized, rng)
        peak = rng.uniform(1, 80)
        figures = {"measured_peak_gb": peak, "measured_reserved_gb": peak * 1.1, "outcome": "Completed"}
        table.write(at, book.name, inputs, f"own {at}", **figures)
        assert_row(table.shown(at), expected(sized, inputs), peak, completed=True)


def test_a_name_alone_brings_a_row_alive_and_asks_for_what_is_missing(table: Table, book: Book) -> None:
    at = SWEEP[book.name] + 3
    table.write(at, book.name, {}, 7)
    shown = table.shown(at)
    assert [shown[letter] for letter in "IKNOQ"] == ["CHECK INPUT"] * 5
    assert [shown[letter] for letter in "JLR"] == ["none"] * 3
    worked = job(book.name).defaults()
    visible = {key: worked[key] for key in ("batch_size", "sequence_length", "activation_checkpointing")}
    table.write(at, book.name, visible, 7)
    assert close(table.shown(at)["I"], expected(job(book.name), {})["I"])
    assert table.shown(at)["R"] == "none"


def test_all_statistics_count_own_runs(table: Table, book: Book) -> None:
    sized, first = job(book.name), SWEEP[book.name]
    before = table.strip()
    right, _, of = str(before["Fit calls that were right"][0]).partition(" of ")
    done, failed = map(int, re.findall(r"(\d+) (?:runs completed|ran)", str(before[""][0])))
    assert before["Worst error, step trace"] == SHIPPED_TRACES[book.name]
    visible = {key: sized.defaults()[key] for key in ("batch_size", "sequence_length", "activation_checkpointing")}
    visible |= FITS[book.name]
    peak = expected(sized, visible)["I"]
    reserved = int(str(before["Upper estimate never too low"][0]).partition(" of ")[2])
    figures = {"measured_peak_gb": peak / 1.5, "measured_reserved_gb": 1.0, "trace_peak_gb": peak / 1.5 * 1.25}
    table.write(first, book.name, visible, "one", outcome="Completed", **figures)
    table.write(first + 1, book.name, visible, "two", outcome="Out of memory")
    table.write(len(table) - 1, book.name, visible, "last", outcome="Completed", measured_peak_gb=peak)
    after = table.strip()
    assert after["Worst error, traced"][0] == "50.00%"
    median = SHIPPED_TRACES[book.name][1] if book.name in SWEPT else "median 25.00%"
    assert after["Worst error, step trace"] == ("25.00%", median)
    undecided = int(str(before["Fit calls that were right"][1]).split()[0])
    assert after["Fit calls that were right"][0] == f"{int(right) + 2} of {int(of) + 3}"
    assert after["Fit calls that were right"][1] == f"{undecided} undecided, 1 wrong"
    assert after[""][0] == f"1 fit calls were wrong: {done + 2} runs completed, {failed + 1} ran out of memory."
    assert str(after["Upper estimate never too low"][0]) == f"{reserved + 1} of {reserved + 1}"
    assert table.shown(first + 1)["R"] == "Wrong"
    assert table.engine is not None
    titles = [str(value) for value in table.engine.get_sheet("Chart data").values() if isinstance(value, str)]
    assert "Traced estimates are up to 50.0% off the line" in titles
    drawn = [value for value in table.engine.get_sheet("Chart data").values() if value == peak / 1.5]
    assert len(drawn) == 1, "the measured peak is among the points"


WRONG = {
    "lora": [
        {"base_model": "nobody/none"}, {"batch_size": 2.5}, {"batch_size": 0}, {"lora_rank": "eight"}, {"base_model": "*"},
        {"adapter_layers": 23}, {"adapter_layers": "most"}, {"hidden_size_override": "abc"}, {"gpu_choice": None},
        {"other_tenants_gb": -1}, {"sequence_length": 2_000_000}, {"kv_heads_override": 5},
        {"adapter_targets": "Own choice", **{f"target_{t}": "Off" for t in ("query", "key", "value", "output", "gate", "up", "down")}},
    ],
    "training": [
        {"base_model": "nobody/none"}, {"batch_size": "8"}, {"activation_checkpointing": "Maybe"},
        {"layer_count_override": 0.5}, {"optimizer_choice": 5}, {"attention_heads_override": 7},
        {"parameter_storage": "bf16", "compute_precision": "fp32"}, {"gpu_capacity_override_gb": 0},
    ],
    "full": [
        {"base_model": "nobody/none"}, {"gpu_count": 0}, {"gpu_count": 3, "tensor_parallel": 2},
        {"training_recipe": "AdamW 12 bit"}, {"sharding_stage": "None"}, {"pipeline_parallel": 64, "gpu_count": 64},
        {"compute_precision": "fp32"}, {"optimizer_step": "in backward", "gradient_accumulation": 2},
    ],
}  # fmt: skip


def test_a_wrong_input_is_shown_and_breaks_no_statistic(table: Table, book: Book) -> None:
    sized, at = job(book.name), SWEEP[book.name] + 1
    before = table.strip()
    names = input_names(sized)
    right = {key: sized.defaults()[key] for key in names}
    figures = {"measured_peak_gb": 3.5, "measured_reserved_gb": 4.5, "trace_peak_gb": 3.5}
    cases = WRONG[book.name]
    for wrong in cases if isinstance(table.engine, Formualizer) else cases[:3]:
        table.write(at, book.name, {**right, **wrong}, "own", outcome="Completed", **figures)
        shown = table.shown(at)
        assert [shown[letter] for letter in "IKNOQ"] == ["CHECK INPUT"] * 5, wrong
        assert [shown[letter] for letter in "JLR"] == ["none"] * 3, wrong
        after = table.strip()
        changed = {label for label, tile in after.items() if tile != before[label]}
        assert changed <= {"", "Worst error, step trace"}, wrong
        assert not [value for pair in after.values() for value in pair if isinstance(value, ErrorValue)]
    table.write(at, book.name, right, None, outcome=None, **dict.fromkeys(figures))
    assert table.strip() == before
    assert set(table.shown(at).values()) == {""}


def test_texts_in_figures_and_an_unknown_outcome_are_passed_over(table: Table, book: Book) -> None:
    sized, at = job(book.name), SWEEP[book.name]
    before = table.strip()
    visible = {key: sized.defaults()[key] for key in ("batch_size", "sequence_length", "activation_checkpointing")}
    figures = {"measured_peak_gb": "none", "measured_reserved_gb": "none", "trace_peak_gb": "none"}
    table.write(at, book.name, visible, "own", outcome="failed", **figures)
    assert table.strip() == before
    table.write(at, book.name, visible, "own", outcome=None, measured_peak_gb=0, measured_reserved_gb=-1)
    assert table.strip() == before
    assert table.shown(at)["J"] == "none"


def test_no_figure_at_all_leaves_words_and_no_error(book: Book) -> None:
    """Every run of the sweep repeated on a card where it ran out of memory."""
    table = Table(book.path, Formualizer(book.path))
    for at in range(SWEEP[book.name]):
        for key in ("measured_peak_gb", "measured_reserved_gb"):
            table.engine.set(table.place(FIGURES[key], at), "none")  # type: ignore[union-attr]
        table.engine.set(table.place(FIGURES["outcome"], at), "Out of memory")  # type: ignore[union-attr]
    table.engine.recalculate()  # type: ignore[union-attr]
    tiles = table.strip()
    for label in ("Worst error, traced", "Worst error, published"):
        assert tiles[label] == ("none", "nothing measured")
    assert tiles["Upper estimate never too low"] == ("0 of 0", "nothing measured")
    cells = {**table.engine.get_sheet("Validation"), **table.engine.get_sheet("Validation workings")}  # type: ignore[union-attr]
    assert [place for place, value in cells.items() if isinstance(value, ErrorValue)] == []


def test_the_table_can_be_filled_to_the_last_spare_row(book: Book) -> None:
    table, sized = Table(book.path, Formualizer(book.path)), job(book.name)
    rng = random.Random(3)
    jobs = {at: new_job(sized, rng) for at in range(SWEEP[book.name], len(table))}
    for at, inputs in jobs.items():
        table.write(at, book.name, inputs, f"own {at}", outcome="Completed", measured_peak_gb=10.0)
    for at, inputs in jobs.items():
        assert_row(table.shown(at), expected(sized, inputs), 10.0, completed=True)
    with pytest.raises(AssertionError, match="beyond the last row"):
        table.place(KEY, len(table))


def test_what_may_be_typed_in_spare_rows_is_said_and_unlocked(book: Book) -> None:
    table = Table(book.path)
    styles = etree.fromstring(book.parts["xl/styles.xml"]).find(MAIN + "cellXfs")
    free = {
        at for at, s in enumerate(styles) if (p := s.find(MAIN + "protection")) is not None and p.get("locked") == "0"
    }
    style_of = {place: int(c.get("s", 0)) for part in book.sheets.values() for place, c in part.cells()}
    for name in (KEY, *FIGURES.values(), *input_names(book.job).values()):
        unlocked = [style_of[table.place(name, at)] in free for at in range(len(table))]
        assert unlocked == [False] * SWEEP[book.name] + [True] * SPARE_ROWS, name
    rules = {
        (sheet.name, area): rule
        for sheet in book.sheets.values()
        for rule in sheet.tree.iter(MAIN + "dataValidation")
        for area in rule.get("sqref").split()
    }
    sheet, line, column = table.place(FIGURES["outcome"], SWEEP[book.name])
    letter = openpyxl.utils.get_column_letter(column)
    rule = rules[sheet, f"{letter}{line}:{letter}{table.area(KEY)[2]}"]
    assert (rule.get("type"), rule.findtext(MAIN + "formula1")) == ("list", "Validation_Outcomes_List")
    assert rule.get("errorStyle", "stop") == "stop" and rule.get("showErrorMessage") == "1"
    words = openpyxl.load_workbook(book.path)["Validation workings"]
    place = book.names["Validation_Outcomes_List"].rsplit("!", 1)[1].replace("$", "")
    assert [c[0].value for c in words[place]] == ["Completed", "Out of memory"]


# -- step traces of the shipped runs


@pytest.fixture
def traced_presets(tmp_path: Path) -> Path:
    """The presets with step traces beside both sweeps: 1% above what was measured, the last run not traced."""
    folder = Path(shutil.copytree(presets_folder(), tmp_path / "presets"))
    for name in SWEPT:
        with (folder / "measured" / f"h100_{name}_sweep.csv").open(encoding="utf-8") as file:
            runs = list(csv.DictReader(file))
        lines = ["id,peak_allocated_bytes,peak_reserved_bytes,source"]
        for run in runs[:-1]:
            peak = run["measured_peak_allocated_gb"]
            lines.append(f"{run['id']},{round(float(peak) * 1.01e9) if peak else ''},,traced with a stand-in")
        (folder / "measured" / f"h100_{name}_trace.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_step_traces_of_the_presets_stand_beside_the_sweep(traced_presets: Path, tmp_path: Path) -> None:
    for path, name in zip(build(tmp_path / "out", None, traced_presets)[:2], SWEPT, strict=True):
        assert lint_workbook(path) == []
        engine = Formualizer(path)
        table = Table(path, engine)
        assert [place for place, value in table.file.cached.items() if not close(engine.get(place), value)] == []
        assert table.strip()["Worst error, step trace"] == ("1.00%", "median 1.00%")
        peak = engine.get(table.place(FIGURES["measured_peak_gb"], 0))
        assert engine.get(table.place(FIGURES["trace_peak_gb"], 0)) == pytest.approx(float(peak) * 1.01, abs=1e-9)  # type: ignore[arg-type]
        assert engine.get(table.place(FIGURES["trace_reserved_gb"], 0)) is None
        assert engine.get(table.place(FIGURES["trace_peak_gb"], SWEEP[name] - 1)) is None
        assert "traced with a stand-in" in engine.get_sheet("Notes").values()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("zz99,1,1,x", 'id is "zz99"; it should be the id of a run'),
        ("ft01,1.5,1,x", 'column peak_allocated_bytes is "1.5"; it should be a whole number of at least 1'),
        ("ft01,1,1,", 'column source is ""; it should be printable text'),
    ],
)
def test_a_bad_trace_file_is_refused(traced_presets: Path, tmp_path: Path, line: str, words: str) -> None:
    path = traced_presets / "measured" / "h100_lora_trace.csv"
    path.write_text(f"id,peak_allocated_bytes,peak_reserved_bytes,source\n{line}\n")
    with pytest.raises(ValueError, match=re.escape(words)):
        build(tmp_path / "out", None, traced_presets)
    assert not (tmp_path / "out").exists()


# -- a results file


def rows_of_all_kinds() -> list[dict[str, Any]]:
    trace = {"backend": "trace", "source": "traced: a stand-in", "peak_allocated_bytes": 12_600_000_000}
    own = [
        row("one", "lora", base_model=SMOL, batch_size=4, peak_allocated_bytes=1),
        row("one", "lora", base_model=SMOL, batch_size=4, gpu_choice="NVIDIA L4"),
        row("ONE", "lora", base_model=SMOL, batch_size=4, **trace),
        row("oom", "lora", outcome="oom", batch_size=64, peak_allocated_bytes="", peak_reserved_bytes=""),
        row("traced", "lora", batch_size=2, **trace),
        row("sgd", "lora", optimizer_choice="SGD", peak_reserved_bytes=""),
        row("ft02", "lora"),
        row("ft03", "lora", **trace),
        row("none", "lora", outcome="not run", peak_allocated_bytes=""),
        row("broken", "lora", outcome="failed"),
        row("eight", "inference"),
        row("other", "lora", backend="estimate"),
    ]
    sharded = {"training_recipe": "pure bf16 AdamW", "sharding_stage": "FSDP full shard", "uses_autocast": "Off"}
    return [
        *own,
        row("tr-own", "training", batch_size=128),
        row("sharded", "full", base_model=SMOL, gpu_count=4, **sharded),
        row(
            "one card", "full", base_model=SMOL, parameter_storage="bf16", optimizer_choice="Adam", uses_autocast="Off"
        ),
        row("no recipe", "full", parameter_storage="bf16", optimizer_choice="SGD"),
    ]


@pytest.fixture(scope="module")
def with_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The workbooks as built beside a results file."""
    folder = tmp_path_factory.mktemp("results")
    write_results(folder, rows_of_all_kinds())
    return dict(zip(WORKBOOKS, build(folder), strict=True))


@pytest.mark.parametrize("engine", engine_parameters("formualizer", "libreoffice"))
@pytest.mark.parametrize("name", JOBS)
def test_a_results_file_stands_in_the_workbook(with_results: dict[str, Path], name: str, engine: type[Engine]) -> None:
    path = with_results[name]
    opened = engine(path)
    table = Table(path, opened)
    cached = table.file.cached
    found = opened.get_many(list(cached))
    assert [p for (p, right), value in zip(cached.items(), found, strict=True) if not close(value, right)] == []
    own = {"lora": 4, "training": 1, "full": 2}[name]
    assert len(table) == SWEEP[name] + own + SPARE_ROWS
    assert set(table.shown(len(table) - 1).values()) == {""}
    opened.close()


def test_results_fill_the_rows_they_name(with_results: dict[str, Path]) -> None:
    engine = Formualizer(with_results["lora"])
    table = Table(with_results["lora"], engine)

    def held(at: int, *keys: str) -> list[Any]:
        return [engine.get(table.place(FIGURES[key], at)) for key in keys]

    figures = ("outcome", "measured_peak_gb", "measured_reserved_gb", "trace_peak_gb", "source")
    ids = [engine.get(table.place(KEY, at)) for at in range(len(table))]
    assert ids[25:30] == ["one", "oom", "traced", "sgd", None], "in the order in which they first appear"
    both = "measured: here, one; traced: a stand-in"
    assert held(25, *figures) == ["Completed", 12.7, 14.0, 12.6, both], "the last row of an id and backend"
    assert held(25, "lever", "setting") == ["Own run", "SmolLM2-135M"]
    assert held(26, *figures) == ["Out of memory", "none", "none", None, "measured: here, oom"]
    assert held(27, *figures) == [None, None, None, 12.6, "traced: a stand-in"]
    assert held(28, *figures) == ["Completed", 12.7, None, None, "measured: here, sgd"]
    assert held(1, *figures) == ["Completed", 12.7, 14.0, 7.577120768, "measured: here, ft02"]
    shipped = str(held(2, "source")[0])
    assert held(2, "measured_peak_gb", "trace_peak_gb") == [12.7966, 12.6]
    assert shipped.startswith("measured: article sweep") and shipped.endswith("; traced: a stand-in")

    sized = job("lora")
    inputs = {"base_model": SMOL, "batch_size": 4, "gpu_choice": "NVIDIA L4"}
    assert_row(table.shown(25), expected(sized, inputs), 12.7, completed=True)
    assert table.shown(26)["R"] == "Right"
    assert table.shown(27)["R"] == "none"
    assert (table.shown(28)["I"], table.shown(28)["J"], table.shown(28)["N"]) == ("not traced", "none", "not traced")
    assert_row(table.shown(28), expected(sized, {"optimizer_choice": "SGD"}), 12.7, completed=True)
    names = input_names(sized)
    assert engine.get(table.place(names["gpu_choice"], 25)) == "NVIDIA L4"
    assert engine.get(table.place(names["hidden_size_override"], 25)) == "none"

    told = f"{RESULTS_FILE}: 7 rows used, 9 skipped (1 replaced by a later row, 1 not run, 1 failed, 4 of another job, 1 of another backend, 1 with a setting that no formula knows)"
    assert told in engine.get_sheet("Notes").values()
    table.write(
        29,
        "lora",
        {**{k: sized.defaults()[k] for k in names}, "batch_size": 16},
        "next",
        measured_peak_gb=23.2,
        outcome="Completed",
    )
    assert_row(table.shown(29), expected(sized, {"batch_size": 16}), 23.2, completed=True)


def test_runs_of_full_fine_tuning_are_read_in_the_words_of_their_recipe(with_results: dict[str, Path]) -> None:
    """A results file may name the recipe and the stage; a run of verify says storage and optimizer, on one card."""
    engine = Formualizer(with_results["full"])
    table, sized = Table(with_results["full"], engine), job("full")
    pure = {"base_model": SMOL, "training_recipe": "pure bf16 AdamW", "uses_autocast": "Off"}
    for at, stage, cards in ((12, "FSDP full shard", 4), (13, "None", 1)):
        inputs = {**pure, "sharding_stage": stage, "gpu_count": cards}
        assert_row(table.shown(at), expected(sized, inputs), 12.7, completed=True)
        assert engine.get(table.place(input_names(sized)["training_recipe"], at)) == "pure bf16 AdamW"


def test_workbooks_with_results_are_clean_and_the_same_twice(with_results: dict[str, Path], tmp_path: Path) -> None:
    write_results(tmp_path, rows_of_all_kinds())
    for again, path in zip(build(tmp_path), with_results.values(), strict=True):
        assert again.read_bytes() == path.read_bytes()
        assert lint_workbook(path) == []


def test_without_a_results_file_nothing_is_said(book: Book) -> None:
    cells = openpyxl.load_workbook(book.path)["Notes"].iter_rows(values_only=True)
    assert [cell for line in cells for cell in line if cell and RESULTS_FILE in str(cell)] == []


def test_a_build_says_its_paths_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_results(tmp_path, [row("one", "lora")])
    assert main(["build", "--output", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert sorted(said.out.splitlines()) == [str(path) for path in sorted(tmp_path.glob("*.xlsx"))]
    assert said.err == ""


def test_results_without_a_single_figure_leave_words(tmp_path: Path) -> None:
    """Every run of the sweep, repeated on a small card, ran out of memory."""
    runs = {"lora": [f"ft{at:02}" for at in range(1, 26)], "training": [f"tr{at:02}" for at in range(1, 25)]}
    card = {"outcome": "oom", "gpu_choice": "NVIDIA T4", "peak_allocated_bytes": "", "peak_reserved_bytes": ""}
    write_results(tmp_path, [row(ident, name, **card) for name, ids in runs.items() for ident in ids])
    for path, name in zip(build(tmp_path)[:2], SWEPT, strict=True):
        assert lint_workbook(path) == []
        table = Table(path, Formualizer(path))
        engine = table.engine
        assert engine is not None
        assert [p for p, right in table.file.cached.items() if not close(engine.get(p), right)] == []
        assert table.strip()["Worst error, traced"] == ("none", "nothing measured")
        assert str(table.strip()[""][0]).endswith(f" 0 runs completed, {len(runs[name])} ran out of memory.")
        assert engine.get(table.place(input_names(job(name))["gpu_choice"], 0)) == "NVIDIA T4"


HOSTILE = [
    '=HYPERLINK("http://x")',
    "+1",
    "@x",
    "-2",
    "{=4}",
    "007",
    "'=5",
    "https://example.org",
    "<b>&amp;",
    "x" * LONGEST_SOURCE,
]


def test_texts_of_a_results_file_never_become_formulas(tmp_path: Path) -> None:
    write_results(tmp_path, [row(f"own {at}", "lora", source=text) for at, text in enumerate(HOSTILE)])
    path = build(tmp_path)[0]
    table = Table(path)
    assert lint_workbook(path) == []
    sheet = openpyxl.load_workbook(path)["Validation"]
    cells = [sheet.cell(*table.place(FIGURES["source"], SWEEP["lora"] + at)[1:]) for at in range(len(HOSTILE))]
    assert [cell.value for cell in cells] == HOSTILE
    assert {cell.data_type for cell in cells} == {"s"}
    assert [f for f in table.file.formulas.values() if "HYPERLINK" in f] == []


def test_read_results_says_why_a_row_is_not_used(tmp_path: Path) -> None:
    found = read_results(write_results(tmp_path, rows_of_all_kinds()))
    assert [run.skipped for run in found] == [
        "replaced", "", "", "", "", "", "", "", "not_run", "failed", "other_job", "other_backend", "", "", "",
        "unknown_setting",
    ]  # fmt: skip
    assert found[1].inputs == {"base_model": SMOL, "batch_size": 4, "gpu_choice": "NVIDIA L4"}
    assert found[3].peak_allocated_bytes is None
    assert found[1].where.endswith(f"{RESULTS_FILE}, line 3")


def without(column: str) -> list[str]:
    return [name for name in HEADER if name != column]


BAD: list[tuple[list[dict[str, Any]], list[str], str]] = [
    ([row("a", "lora", batch_size="8.5")], HEADER, 'line 2, column batch_size is "8.5"; it should be a whole number from 1 to 65,536, or empty'),
    ([row("a", "lora", batch_size="nan")], HEADER, 'line 2, column batch_size is "nan"; it should be'),
    ([row("a", "lora", batch_size=" ４")], HEADER, 'line 2, column batch_size is " ４"; it should be'),
    ([row("a", "lora", base_model="nobody/none")], HEADER, 'line 2, column base_model is "nobody/none"; it should be one of the'),
    ([row("a", "lora", hidden_size_override="wide")], HEADER, 'column hidden_size_override is "wide"; it should be'),
    ([row("a", "lora", peak_allocated_bytes="NaN")], HEADER, 'line 2, column peak_allocated_bytes is "NaN"; it should be a whole number'),
    ([row("a", "lora", peak_allocated_bytes="1.5")], HEADER, 'column peak_allocated_bytes is "1.5"; it should be'),
    ([row("a", "lora", peak_allocated_bytes="")], HEADER, 'column peak_allocated_bytes is ""; it should be a whole number of bytes where the outcome is ok'),
    ([row("a", "lora"), row("b", "lora", outcome="fine")], HEADER, 'line 3, column outcome is "fine"; it should be one of ok, oom, not run, failed'),
    ([row("=1+1", "lora")], HEADER, 'line 2: column id is "=1+1"; a name may not begin with'),
    ([row("", "lora")], HEADER, "line 2: column id is empty; it should be a name"),
    ([row("a", "lora", source="x" * (LONGEST_SOURCE + 1))], HEADER, f"{LONGEST_SOURCE + 1} characters long; it should have at most {LONGEST_SOURCE}"),
    ([row("a", "lora", source="a\nb")], HEADER, r'column source is "a\nb"; it should be printable text'),
    ([row("a", "lora")], without("outcome"), "line 1 lacks the column outcome"),
    ([row("a", "lora")], without("lora_rank"), "line 1 lacks the column lora_rank, an input of lora"),
    ([row("a", "lora")], [*HEADER, "source"], 'line 1 names the column "source" twice'),
    ([row("ft02", "lora", batch_size=16)], HEADER, "column batch_size is 16; it should be 4, as the sweep says of the run ft02"),
    ([row("a", "lora", batch_size=4), row("a", "lora", backend="trace", batch_size=2)], HEADER, "line 3, column batch_size is 2; it should be 4, as line 2 says of the run a"),
    ([row("a", "lora", adapter_layers=23)], HEADER, "line 2: adapter_layers is 23; the model has 22 layers"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "header", "words"), BAD, ids=[words for _, _, words in BAD])
def test_a_bad_results_file_is_refused_in_one_sentence(
    tmp_path: Path,
    books: dict[str, Book],
    capsys: pytest.CaptureFixture[str],
    rows: list[dict[str, Any]],
    header: list[str],
    words: str,
) -> None:
    write_results(tmp_path, rows, header)
    kept = tmp_path / books["training"].path.name
    kept.write_bytes(books["training"].path.read_bytes())
    assert main(["build", "--output", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert words in said.err and RESULTS_FILE in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert kept.read_bytes() == books["training"].path.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [kept.name, RESULTS_FILE]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1 lacks the column id"),
        (b"id,job\xff\n", "is not UTF-8 text at byte 6"),
        (",".join(HEADER).encode() + b"\na,lora\n", "line 2 has 2 cells; it should have"),
    ],
)
def test_a_results_file_that_is_no_csv_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / RESULTS_FILE).write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(words)):
        build(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [RESULTS_FILE]


def test_a_run_of_a_model_without_formulas_is_not_used(tmp_path: Path, books: dict[str, Book]) -> None:
    """Models that are listed without formulas, and models from a config of the planner's own."""
    other = [{**row(ident, "lora", base_model=f"own/{ident}"), "config": f"{ident}.json"} for ident in "ab"]
    write_results(tmp_path, [*other, row("c", "lora")], [*HEADER, "config"])
    path = build(tmp_path)[0]
    told = f"{RESULTS_FILE}: 1 row used, 2 skipped (2 of a model without formulas here)"
    assert told in Formualizer(path).get_sheet("Notes").values()


def test_how_a_run_is_judged_need_not_be_said(tmp_path: Path) -> None:
    header = [name for name in HEADER if name not in ("verdict_basis", "other_tenants_gb")]
    assert [run.skipped for run in read_results(write_results(tmp_path, [row("a", "lora")], header))] == [""]


def test_the_results_of_verify_are_read(tmp_path: Path) -> None:
    """What one command writes, the other reads: the same file, the same columns."""
    from sizing_xlsx.measure.result_file import NAME, ResultFile
    from sizing_xlsx.measure.run import named_sweep

    assert NAME == RESULTS_FILE
    file = ResultFile(tmp_path / NAME)
    for name in SWEPT:
        for run in named_sweep(name):
            peaks = {"peak_allocated_bytes": 10**10, "peak_reserved_bytes": 11 * 10**9}
            file.put(run, {"backend": "trace", "outcome": "ok", "source": "traced: here", **peaks})
    assert {run.skipped for run in read_results(tmp_path / NAME)} == {""}
    for path, name in zip(build(tmp_path)[:2], SWEPT, strict=True):
        table = Table(path, Formualizer(path))
        assert len(table) == SWEEP[name] + SPARE_ROWS
        assert table.engine.get(table.place(FIGURES["trace_peak_gb"], SWEEP[name] - 1)) == 10  # type: ignore[union-attr]


def test_columns_of_others_are_ignored_and_a_byte_order_mark_is_no_matter(tmp_path: Path) -> None:
    path = write_results(tmp_path, [{**row("a", "lora"), "note": "x\ny"}], [*HEADER, "note"])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert [run.id for run in read_results(path)] == ["a"]


def test_own_presets_decide_which_inputs_are_known(tmp_path: Path) -> None:
    """A model that only the planner's presets have is taken from the results file, too."""
    presets = Path(shutil.copytree(presets_folder(), tmp_path / "presets"))
    shutil.copytree(presets / "models" / SMOL.replace("/", "--"), presets / "models" / "own-lab--Tiny")
    write_results(tmp_path / "out", [row("a", "lora", base_model="own-lab/Tiny")])
    path = build(tmp_path / "out", None, presets)[0]
    engine = Formualizer(path)
    table = Table(path, engine)
    assert (
        engine.get(table.place(input_names(workbook_job("lora", _presets(presets)))["base_model"], 25))
        == "own-lab/Tiny"
    )
    assert table.shown(25)["Q"] == "Fits"


def _presets(folder: Path) -> Any:
    from sizing_xlsx.presets.catalogue import load_presets

    return load_presets(folder)

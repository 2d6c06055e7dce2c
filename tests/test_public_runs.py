"""Other people's runs: what is predicted for each, in Python, in the file and in three engines, and how near it is."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path
from statistics import median
from typing import Any

import openpyxl
import pytest
from conftest import SPARE, Book, File, Opened
from engines import Formualizer, contents
from strategies import random_inputs

from sizing_xlsx.cli import main
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.jobs import job, plain_job
from sizing_xlsx.presets.catalogue import PUBLIC_INPUTS, load_presets
from sizing_xlsx.workbook.build import book_bytes, load_template
from sizing_xlsx.workbook.public_runs import PublicRun, PublicRuns
from sizing_xlsx.workbook.rules import lint_workbook

ROOT = Path(__file__).parents[1]
FILE = "measured/public_runs.csv"
SHEET, WORKINGS = "Validation", "Public workings"
STATISTICS = (
    "Public_Runs_Count", "Public_Runs_Predicted", "Public_Median_Error", "Public_Runs_Near", "Public_Worst_Error",
    "Public_Worst_Run", "Public_Runs_Unexplained", "Public_Unexplained_Error",
)  # fmt: skip
# Two runs that differ in what is named alone: the first is measured smaller or larger than the second.
PAIRS = {
    "QLoRA over LoRA, half a billion parameters": ("H170", "H168"),
    "QLoRA with the stock preparation, under LoRA": ("H312", "H300"),
    "QLoRA, nothing in fp32, under LoRA": ("H328", "H300"),
    "QLoRA under LoRA, batch 8": ("H330", "H302"),
    "GPTQ under LoRA, batch 8": ("H342", "H302"),
    "QLoRA under LoRA, fused kernels": ("H374", "H369"),
    "the stock preparation": ("H312", "H328"),
    "batch 8 over 4": ("H302", "H300"),
    "batch 8 over 4, NF4": ("H330", "H328"),
    "batch 8 over 4, fused kernels": ("H370", "H369"),
    "a fused linear loss": ("H370", "H372"),
    "GPTQ over NF4": ("H342", "H330"),
    "two cards that divide everything, batch 4": ("H300", "H303"),
    "batch 4 over 2, FSDP": ("H303", "H301"),
    "batch 4 over 2, FSDP, experts in NF4": ("H319", "H317"),
    "batch 16 over 8, FSDP": ("H402", "H401"),
    "NF4 under LoRA, FSDP": ("H313", "H301"),
}

pytestmark = pytest.mark.filterwarnings("ignore:.*xtension is not supported:UserWarning")


@pytest.fixture(scope="module")
def runs() -> PublicRuns:
    return PublicRuns(job("lora"), load_presets().public_runs)


@pytest.fixture(scope="module")
def by_id(runs: PublicRuns) -> dict[str, PublicRun]:
    return {run.row["id"]: run for run in runs.all}


@pytest.fixture
def book(short_books: dict[str, Book]) -> Book:
    return short_books["lora"]


def absolute(run: PublicRun) -> float:
    assert run.error is not None, run.row["id"]
    return abs(run.error)


def completed(runs: PublicRuns) -> list[PublicRun]:
    return [run for run in runs.all if not run.ran_out]


def sized(run: PublicRun, *results: str) -> dict[str, Any]:
    given = {key: run.row[key] for key in PUBLIC_INPUTS if run.row[key] not in (None, "")}
    return job("lora").size(results, **given)


# -- what Python predicts


def test_every_run_is_predicted_as_the_job_sizes_it(runs: PublicRuns) -> None:
    for run in runs.all:
        peak = sized(run, "traced_peak_allocated_gb")["traced_peak_allocated_gb"]
        assert run.run.predicted("traced_allocated") == pytest.approx(peak, rel=1e-12), run.row["id"]
        if not run.ran_out:
            assert run.error == pytest.approx(peak / run.row["measured_gb"] - 1, abs=5.1e-5)


def test_half_the_runs_are_within_half_a_percent_and_nine_of_ten_within_five(runs: PublicRuns) -> None:
    errors = [absolute(run) for run in completed(runs)]
    assert len(errors) >= 39
    assert median(errors) <= 0.005
    assert sum(error <= 0.05 for error in errors) >= 0.9 * len(errors)


def test_a_run_is_called_explained_where_it_is_and_not_where_it_is_not(runs: PublicRuns) -> None:
    """The mark cannot hide a run that the formulas merely get wrong a little, nor pass one that they miss."""
    for run in completed(runs):
        assert (absolute(run) <= 0.05) is run.explained, run.row["id"]
    assert [run.row["id"] for run in runs.all if not run.explained] == ["H414", "H034"]


def test_runs_over_several_cards_are_as_near_as_those_on_one(runs: PublicRuns) -> None:
    """FSDP over two and four cards, 16-bit, NF4 and GPTQ bases, dense and experts, stock and fused kernels."""
    several = [run for run in runs.all if run.run.inputs["gpu_count"] > 1]
    explained = [absolute(run) for run in several if run.explained]
    assert len(several) >= 18 and len(explained) >= 17
    assert median(explained) <= 0.001 and max(explained) <= 0.01


def test_a_run_that_ran_out_of_memory_does_not_fit(runs: PublicRuns) -> None:
    failed = [run for run in runs.all if run.ran_out]
    assert failed and all(sized(run, "fit_verdict")["fit_verdict"] == "does not fit" for run in failed)


def test_the_total_over_several_cards_is_never_under_what_nvidia_smi_showed(runs: PublicRuns) -> None:
    several = [run for run in completed(runs) if run.run.inputs["gpu_count"] > 1 and run.row["shown_gb"]]
    assert len(several) >= 16
    for run in several:
        assert sized(run, "nvidia_smi_gb")["nvidia_smi_gb"] >= run.row["shown_gb"], run.row["id"]


@pytest.mark.parametrize("pair", PAIRS)
def test_the_difference_of_two_runs_has_the_right_sign_and_size(by_id: dict[str, PublicRun], pair: str) -> None:
    first, second = (by_id[ident] for ident in PAIRS[pair])
    measured = first.run.peak - second.run.peak  # type: ignore[operator]
    predicted = first.run.predicted("traced_allocated") - second.run.predicted("traced_allocated")  # type: ignore[operator]
    assert measured * predicted > 0
    assert predicted == pytest.approx(measured, rel=0.1)


def test_pairs_differ_in_nothing_but_what_they_are_for(by_id: dict[str, PublicRun]) -> None:
    free = {
        "base_storage_format", "kbit_preparation", "batch_size", "training_stack", "uses_autocast",
        "compute_precision", "gpu_count", "sharding_stage",
    }  # fmt: skip
    for pair in PAIRS.values():
        first, second = (by_id[ident].run.inputs for ident in pair)
        differ = {key for key in first if first[key] != second[key]}
        assert differ and differ <= free, pair


def test_each_run_says_what_it_rests_on(runs: PublicRuns) -> None:
    assert len({run.row["id"] for run in runs.all}) == len(runs.all)
    for run in runs.all:
        assert "States: " in run.row["note"] and "Assumed: " in run.row["note"], run.row["id"]
        assert ("Not explained: " in run.row["note"]) is not run.explained
        assert run.row["source"] and run.row["versions"] and "/work" not in str(run.row)


# -- what the workbook says


def rows_of(cells: dict[tuple[int, int], Any], runs: PublicRuns) -> dict[str, int]:
    """Where each run stands on Validation: id -> row, all below the heading of the block."""
    title = next(row for (row, column), value in cells.items() if value == "Other people’s runs" and column == 2)
    found = {value: row for (row, column), value in cells.items() if column == 2 and row > title}
    assert {run.row["id"] for run in runs.all} <= found.keys()
    return {run.row["id"]: found[run.row["id"]] for run in runs.all}


def statistics(runs: PublicRuns) -> dict[str, Any]:
    """The figures of the strip, from the file alone."""
    errors = [absolute(run) for run in completed(runs)]
    worst = max((run for run in completed(runs) if run.explained), key=absolute)
    missed = [absolute(run) for run in runs.all if not run.explained]
    near = sum(error <= 0.05 for error in errors)
    figures = (
        len(runs.all), len(errors), median(errors), near, absolute(worst), worst.row["id"], len(missed), max(missed)
    )  # fmt: skip
    return dict(zip(STATISTICS, figures, strict=True))


def test_the_file_and_every_engine_say_what_python_says(opened: Opened, runs: PublicRuns) -> None:
    saved = openpyxl.load_workbook(opened.book.path, data_only=True)[SHEET]
    at = rows_of({(cell.row, cell.column): cell.value for line in saved for cell in line}, runs)
    expected: dict[Any, Any] = {}
    for run in runs.all:
        row, inputs = at[run.row["id"]], run.run.inputs
        shown = {
            5: inputs["batch_size"], 6: inputs["sequence_length"], 7: inputs["activation_checkpointing"],
            8: "ran out" if run.ran_out else run.row["measured_gb"], 9: run.run.predicted("traced_allocated"), 10: "none" if run.error is None else run.error,
            14: inputs["training_stack"], 18: run.row["card"], 20: "Yes" if run.explained else "No",
            21: run.row["source"],
        }  # fmt: skip
        expected |= {(SHEET, row, c): float(value) if isinstance(value, int) else value for c, value in shown.items()}
        for column, value in shown.items():
            cell = saved.cell(row, column).value
            assert cell == pytest.approx(value, rel=1e-12) if isinstance(value, float) else cell == value
        for column in (5, 6, 7, 9, 10, 14, 20):
            assert (SHEET, row, column) in opened.book.formulas
    expected |= {name: float(v) if isinstance(v, int) else v for name, v in statistics(runs).items()}
    assert opened.differences(expected) == []
    assert opened.book.cached.keys() >= {contents(opened.book.path).names[name.casefold()] for name in STATISTICS}


def test_every_cell_of_the_workings_recalculates(opened: Opened) -> None:
    cells = {place: value for place, value in opened.book.cached.items() if place[0] == WORKINGS}
    assert len(cells) > 2_000
    assert opened.differences(cells) == []


def test_the_strip_says_the_statistics(opened: Opened, runs: PublicRuns) -> None:
    figures, cells = statistics(runs), opened.engine.get_sheet(SHEET)
    label = {str(value): place for place, value in cells.items() if isinstance(value, str)}

    def tile(name: str) -> tuple[Any, Any]:
        row, column = label[name]
        return cells[row + 1, column], cells[row + 2, column]

    assert tile("Median error")[0] == f"{figures['Public_Median_Error']:.2%}"
    assert tile("Close to the measured peak") == (
        f"{figures['Public_Runs_Near']} of {len(completed(runs))}",
        "within 5%",
    )
    worst, missed = figures["Public_Worst_Error"], figures["Public_Unexplained_Error"]
    assert tile("Worst error, explained runs") == (f"{worst:.2%}", f"run {figures['Public_Worst_Run']}")
    assert tile("Runs not explained") == (str(figures["Public_Runs_Unexplained"]), f"error {missed:.2%}")


def test_nothing_moves_with_the_job_on_sizing(opened: Opened) -> None:
    sized, rng = opened.book.job, random.Random(20)
    cells = {place: value for place, value in opened.book.cached.items() if place[0] == WORKINGS}
    for _ in range(3 if isinstance(opened.engine, Formualizer) else 1):
        inputs = random_inputs(sized, rng)
        opened.type({key: value for key, value in inputs.items() if sized.inputs[key].follows_job})
        assert opened.differences(cells) == []


def test_no_formula_reads_an_input_of_sizing(book: Book) -> None:
    of_the_job = {public_name(key) for key, declared in book.job.inputs.items() if declared.follows_job}
    of_the_job |= {f"{name}_In_Force" for name in of_the_job}
    for place, formula in book.formulas.items():
        if place[0] == WORKINGS:
            assert not of_the_job & set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", formula)), place
            assert "Sizing" not in formula


def test_the_statistics_follow_a_measured_figure(book: Book, runs: PublicRuns) -> None:
    """They are live: a run measured at half its peak is far off, and the worst of those that are explained."""
    engine = Formualizer(book.path)
    row = rows_of(engine.get_sheet(SHEET), runs)["H300"]
    engine.set((SHEET, row, 8), 26.704571904 / 2)
    engine.recalculate()
    assert engine.get("Public_Worst_Run") == "H300"
    assert engine.get("Public_Worst_Error") == pytest.approx(1.0, abs=1e-3)
    assert engine.get("Public_Runs_Near") == statistics(runs)["Public_Runs_Near"] - 1


def test_where_no_traced_formula_exists_the_row_says_so(tmp_path: Path) -> None:
    presets = load_presets()
    rows = [{**presets.public_runs[0], "optimizer_choice": "SGD"}, presets.public_runs[1]]
    path = tmp_path / "lora.xlsx"
    path.write_bytes(book_bytes("lora", load_template("lora"), presets._replace(public_runs=rows)))
    engine = Formualizer(path)
    runs = PublicRuns(job("lora"), rows)
    row = rows_of(engine.get_sheet(SHEET), runs)["H168"]
    assert [engine.get((SHEET, row, column)) for column in (9, 10)] == ["not traced", "none"]
    assert (engine.get("Public_Runs_Count"), engine.get("Public_Runs_Predicted")) == (2, 1)
    assert engine.get("Public_Unexplained_Error") == "none"
    assert {place: value for place, value in File(path).cached.items() if value is None} == {}


def test_the_linter_finds_nothing(book: Book) -> None:
    assert lint_workbook(book.path) == []


def test_the_notes_hold_what_was_stated_and_assumed(book: Book, runs: PublicRuns) -> None:
    words = {str(cell.value) for line in openpyxl.load_workbook(book.path)["Notes"] for cell in line}
    for run in runs.all:
        assert {run.row["note"], run.row["versions"]} <= words
    assert any("phi-1.5" in text and "SantaCoder" in text for text in words)


def _with_few_scenarios(name: str) -> dict[str, Any]:
    template = load_template(name)
    template["scenarios"]["rows"] = len(template["scenarios"]["jobs"]) + SPARE
    return template


def test_the_runs_above_and_the_other_workbook_stay_as_they_are(tmp_path: Path, book: Book) -> None:
    presets = load_presets()
    without = presets._replace(public_runs=[])
    short = _with_few_scenarios("training")
    training = [book_bytes("training", short, found) for found in (presets, without)]
    assert training[0] == training[1]
    path = tmp_path / "without.xlsx"
    path.write_bytes(book_bytes("lora", dict(book.template), without))
    bare = File(path)
    assert WORKINGS not in bare.sheets and WORKINGS in book.sheets
    above = {place for place in bare.cached if place[0] == SHEET}
    assert {place: (bare.formulas[place], bare.cached[place]) for place in above} == {
        place: (book.formulas[place], book.cached[place]) for place in above
    }
    assert {name: refers for name, refers in book.names.items() if not name.startswith("Public_")} == bare.names | {
        name: refers for name, refers in book.names.items() if "Notes" in refers or "Record" in refers
    }


# -- what is refused


WRONG = {
    "no memory": ("26.704571904", "0", 'column measured_gb is "0"; it should be a number above 0'),
    "no memory at all": ("26.704571904", "", 'run H300: measured_gb is "" and ran_out 0; a run has a peak, or ran out'),
    "memory and none": ("26.704571904,31.013,0,", "26.704571904,31.013,1,", "run H300: measured_gb is 26.7045"),
    "words for memory": ("26.704571904", "26.7 GB", 'column measured_gb is "26.7 GB"; it should be a number above 0'),
    "half a row": (",4,4096,,Off,FlashAttention 2,", ",4.5,4096,,Off,FlashAttention 2,", 'column batch_size is "4.5"'),
    "no flag": ('.",1,', '.",yes,', 'column explained is "yes"; it should be 0 or 1'),
    "twice": ("H302,", "h300,", 'column id is "h300", which line 6 has already'),
    "no source": (
        "Lightning-AI/litgpt#1112 / PR#1113",
        "",
        'column source is ""; it should be printable text',
    ),
    "no such column": ("uses_autocast", "autocast", "line 1 lacks the column uses_autocast"),
    "an unknown model": (
        ",mistralai/Mistral-7B-v0.1,,,16",
        ",mistralai/Mistral-8B,,,16",
        'run H300: base_model is "mistralai/Mistral-8B"; it should be one of the',
    ),
    "an unknown stack": (
        "litgpt, own loop",
        "lit gpt",
        'run H043: training_stack is "lit gpt"; it should be one of the',
    ),
    "an odd switch": (",Off,FlashAttention 2,", ",no,FlashAttention 2,", 'run H300: uses_autocast is "no"'),
    "a batch too large": (",4,4096,,Off", ",99999999,4096,,Off", "run H300: batch_size is 99999999; it should be"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_cell_is_refused_in_a_sentence_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    old, new, words = WRONG[case]
    folder = Path(shutil.copytree(ROOT / "presets", tmp_path / "presets"))
    text = (folder / FILE).read_text(encoding="utf-8")
    assert old in text
    (folder / FILE).write_text(text.replace(old, new, 1), encoding="utf-8")
    assert main(["build", "--presets", str(folder), "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert words in told and "public_runs.csv" in told
    assert told.count("\n") == 1 and "Traceback" not in told
    assert not (tmp_path / "out").exists()


def test_a_presets_folder_without_the_file_has_no_such_runs(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ROOT / "presets", tmp_path / "presets"))
    (folder / FILE).unlink()
    presets = load_presets(folder)
    assert presets.public_runs == [] and PublicRuns(plain_job("lora", presets), []).all == []


# -- what the README says


def test_the_readme_quotes_what_the_runs_give(runs: PublicRuns) -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    figures, missed = statistics(runs), [absolute(run) for run in completed(runs) if not run.explained]
    for quoted in (
        f"{len(completed(runs))} LoRA, QLoRA and GPTQ-LoRA runs",
        f"Median error {figures['Public_Median_Error']:.2%}",
        f"{figures['Public_Runs_Near']} of {len(completed(runs))} lie within 5%",
        f"worst of the {len(completed(runs)) - figures['Public_Runs_Unexplained']} explained runs is {figures['Public_Worst_Error']:.2%} off",
        f"Two runs of litgpt are {min(missed):.2%} and {figures['Public_Unexplained_Error']:.2%} off",
    ):
        assert quoted in text, quoted

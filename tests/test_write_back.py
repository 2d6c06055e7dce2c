"""Results into a planner's own workbook and runs out of it, as `sizing-xlsx verify --write` and `--workbook` do it.

The measuring is a stub that gives figures at once (`desk`); the command, the workbooks and the engines are real.
"""

from __future__ import annotations

import csv
import random
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openpyxl
import pytest
import xlsxwriter
from conftest import Book, Engine
from engines import Formualizer, close, engine_parameters
from lxml import etree
from strategies import random_inputs
from test_own_runs import FIGURES, SWEEP, Table, assert_row, expected
from test_patch import OLE, PICTURE, RELATIONS, edited, members, parts_of, put, sheet, snapshot, zipped

from sizing_xlsx.cli import main
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.measure import command, results, sweep
from sizing_xlsx.measure.result_file import columns
from sizing_xlsx.measure.run import Run, declared, make_run, model_folder, named_sweep
from sizing_xlsx.workbook.build import build
from sizing_xlsx.workbook.own_runs import COMPLETED, KEY, OUT_OF_MEMORY, SPARE_ROWS, input_names
from sizing_xlsx.workbook.patch import open_package
from sizing_xlsx.workbook.runs import VISIBLE
from sizing_xlsx.workbook.write_back import job_of, write_columns, write_results

pytestmark = pytest.mark.filterwarnings("ignore:.*xtension is not supported:UserWarning")

GB = 10**9
SMOL = "HuggingFaceTB/SmolLM2-135M"
# Runs of full fine-tuning are written in words of their own, and those shipped are other people's: test_full_runs.py.
JOBS = ("lora", "training")
OTHER = {"lora": "training", "training": "lora"}
FIRST = {"lora": "ft01", "training": "tr01"}
# Runs of each job that no sweep has, by id.
OWN = {
    "lora": {
        "small": {"base_model": SMOL, "batch_size": 4},
        "long": {"sequence_length": 1024, "activation_checkpointing": "On", "gpu_choice": "NVIDIA L4"},
        "four bits": {"base_storage_format": "nf4 / fp4, block 64, no double quant", "lora_rank": 32},
    },
    "training": {
        "small": {"batch_size": 3, "sequence_length": 96},
        "long": {"sequence_length": 640, "activation_checkpointing": "On", "gpu_choice": "NVIDIA L4"},
        "wide": {"mlp_width_override": 2048, "batch_size": 2},
    },
}
FIVE = ("outcome", "measured_peak_gb", "measured_reserved_gb", "trace_peak_gb", "trace_reserved_gb")


# -- a desk: a folder, a command, and a measuring that gives figures at once


def measured(run: Run, backend: str = "cuda", **more: Any) -> dict[str, Any]:
    """The row that a backend gives of a run: completed, at 12.5 and 14 GB, unless said otherwise."""
    figures = results.FIGURES[backend]
    where = {"cuda": "NVIDIA L4", "trace": f"no GPU, for {run['gpu_choice']}", "cpu": "this machine's CPU"}[backend]
    row = {"outcome": "ok", "peak_allocated_bytes": 12_500_000_001, "peak_reserved_bytes": 14 * GB, "seconds": 2.5}
    row |= {"backend": backend, "figures": figures, "date": "2027-01-02", "commit": "123456789012"}
    row |= {"source": f"{figures}: {where}, torch 9.9, 2027-01-02", **more}
    if row["outcome"] == "oom":
        row |= {"peak_allocated_bytes": None, "peak_reserved_bytes": None}
    return row


def settled(run: Run, backend: str = "cuda", **more: Any) -> dict[str, Any]:
    """The same with the run's fields, as it is written into a workbook."""
    return {**run.as_row(), **measured(run, backend, **more)}


class Desk:
    """A folder to work in. figures: what comes out of a run, by its id. begun: the runs that were begun."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.figures: dict[str, dict[str, Any]] = {}
        self.begun: list[str] = []

    def perform(self, runs: Sequence[Run], backend: str, *_: Any, **__: Any) -> Iterator[tuple[Run, dict[str, Any]]]:
        for run in runs:
            self.begun.append(run.id)
            yield run, measured(run, backend, **self.figures.get(run.id, {}))

    def verify(self, *words: Any) -> SimpleNamespace:
        """`sizing-xlsx verify`: its exit status and what it printed."""
        try:
            status = main(["verify", *map(str, words)])
        except SystemExit as stop:
            status = int(stop.code or 0)
        said = self.capsys.readouterr()
        return SimpleNamespace(status=status, out=said.out, err=said.err)

    def done(self, *words: Any) -> SimpleNamespace:
        """The same, where it must go well."""
        found = self.verify(*words)
        assert found.status == 0, found.err
        return found

    def refused(self, *words: Any) -> str:
        """The sentence with which it is refused: before any run is begun, and with the folder as it was."""
        before, begun = snapshot(self.folder), list(self.begun)
        found = self.verify(*words)
        assert (found.status, found.out, self.begun) == (2, "", begun), found.out + found.err
        assert snapshot(self.folder) == before
        text = found.err
        assert text.startswith("sizing-xlsx: ") and text.endswith((".\n", "?\n")) and text.count("\n") == 1, text
        assert ". " not in text and len(text.replace(str(self.folder), "")) < 480, text
        return text

    def sweep(self, runs: Mapping[str, Mapping[str, Any]], job: str = "lora") -> Path:
        """A sweep file with these runs."""
        path = self.folder / "runs.csv"
        fields = list(dict.fromkeys(key for inputs in runs.values() for key in inputs))
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["id", "job", *fields])
            writer.writeheader()
            writer.writerows({"id": ident, "job": job, **inputs} for ident, inputs in runs.items())
        return path


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    found = Desk(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "ready", lambda *_: None)
    monkeypatch.setattr(sweep, "perform_all", found.perform)
    return found


@pytest.fixture(params=JOBS)
def book(request: pytest.FixtureRequest, short_books: dict[str, Book]) -> Book:
    """Each workbook whose shipped runs can be run again, with fewer rows of jobs."""
    return short_books[request.param]


@pytest.fixture
def plan(book: Book, tmp_path: Path) -> Path:
    """A planner's copy of each workbook."""
    return Path(shutil.copyfile(book.path, tmp_path / "plan.xlsx"))


@pytest.fixture
def plans(books: dict[str, Book], tmp_path: Path) -> dict[str, Path]:
    """A planner's copy of both workbooks, each in a folder of its own."""
    for name in JOBS:
        (tmp_path / name).mkdir()
    return {name: Path(shutil.copyfile(books[name].path, tmp_path / name / "plan.xlsx")) for name in JOBS}


@pytest.fixture
def lora_plan(books: dict[str, Book], tmp_path: Path) -> Path:
    return Path(shutil.copyfile(books["lora"].path, tmp_path / "plan.xlsx"))


class Runs:
    """The table of runs of a file, as it was saved."""

    def __init__(self, path: Path) -> None:
        self.package = open_package(path, read_only=True)
        area = self.package.area(KEY)
        self.ids = self.package.column_values(area)

    def at(self, ident: str) -> int:
        """The one row of an id, from 0."""
        found = [at for at, value in enumerate(self.ids) if str(value).casefold() == ident.casefold()]
        assert len(found) == 1, f"{ident} stands in {len(found)} rows"
        return found[0]

    def cell(self, name: str, ident: str) -> Any:
        area = self.package.area(name)
        return self.package.cell(area.sheet, area.first_row + self.at(ident), area.first_column).value

    def figures(self, ident: str, *keys: str) -> list[Any]:
        return [self.cell(FIGURES[key], ident) for key in keys or FIVE]

    def inputs(self, ident: str, job: str) -> dict[str, Any]:
        return {key: self.cell(name, ident) for key, name in input_names(declared(job)).items()}


def typed(path: Path, values: Mapping[tuple[str, int], Any]) -> None:
    """Values typed into a table of runs, by the name of their column and their row from 0."""
    package = open_package(path)
    cells = {}
    for (name, at), value in values.items():
        area = package.area(name)
        cells[area.sheet, area.first_row + at, area.first_column] = value
    package.write(cells, backup=False)


# -- into the Validation sheet


def test_figures_of_shipped_runs_stand_side_by_side(desk: Desk, lora_plan: Path) -> None:
    """ft01 and ft24: traced, then measured; each kind of figure and of source in its place."""
    before = Runs(lora_plan)
    desk.done("--sweep", "lora", "--only", "ft01,ft24", "--write", lora_plan)
    traced = Runs(lora_plan)
    for ident in ("ft01", "ft24"):
        assert traced.figures(ident)[:3] == before.figures(ident)[:3], "a trace measures nothing"
        assert traced.figures(ident)[3:] == [12.500000001, 14]
        assert traced.cell(FIGURES["source"], ident) == (
            f"{before.cell(FIGURES['source'], ident)}; traced: no GPU, for NVIDIA H100 SXM5 80GB, torch 9.9, 2027-01-02"
        )
    desk.figures = {"ft01": {"peak_allocated_bytes": 13 * GB}, "ft24": {"outcome": "oom"}}
    desk.done("--backend", "cuda", "--sweep", "lora", "--only", "ft01,ft24", "--write", lora_plan)
    both = Runs(lora_plan)
    assert both.figures("ft01") == [COMPLETED, 13, 14, 12.500000001, 14]
    assert both.figures("ft24") == [OUT_OF_MEMORY, "none", "none", 12.500000001, 14]
    source = (
        "measured: NVIDIA L4, torch 9.9, 2027-01-02; traced: no GPU, for NVIDIA H100 SXM5 80GB, torch 9.9, 2027-01-02"
    )
    assert both.figures("ft01", "source") == both.figures("ft24", "source") == [source]
    assert both.ids == before.ids
    for ident in ("ft01", "ft24"):
        assert both.inputs(ident, "lora") == before.inputs(ident, "lora")
        assert both.figures(ident, "lever", "setting") == before.figures(ident, "lever", "setting")


# What stood in "Where from", which backend writes, and what stands there afterwards. "M" and "T" are the new texts.
SOURCES = [
    (None, "cuda", "M"),
    (None, "trace", "T"),
    ("measured: card, one; two; three", "trace", "measured: card, one; two; three; T"),
    ("traced: old", "trace", "T"),
    ("traced: old", "cuda", "M; traced: old"),
    ("measured: old; traced: old", "cuda", "M; traced: old"),
    ("measured: old; traced: old", "trace", "measured: old; T"),
    ("seen by Ann", "cuda", "M; seen by Ann"),
    ("seen by Ann; measured: old", "trace", "seen by Ann; measured: old; T"),
]


def test_where_figures_come_from(lora_plan: Path) -> None:
    """Each kind of source replaces the older one of its kind, and nothing else: one case a row."""
    typed(lora_plan, {(FIGURES["source"], at): was for at, (was, _, _) in enumerate(SOURCES)})
    texts, runs = {"M": "measured: new", "T": "traced: new"}, named_sweep("lora")
    rows = [
        settled(run, backend, source=texts["M" if backend == "cuda" else "T"])
        for run, (_, backend, _) in zip(runs, SOURCES, strict=False)
    ]
    write_results(lora_plan, rows, declared("lora"))
    held = Runs(lora_plan)
    for run, (was, _, now) in zip(runs, SOURCES, strict=False):
        right = "; ".join(texts.get(text, text) for text in now.split("; "))
        assert held.figures(run.id, "source") == [right], was


def engines_of_books() -> list[Any]:
    """Both workbooks in the quickest engine, and each of the others once."""
    quick, iron, office = engine_parameters()
    pairs = [("lora", quick), ("training", quick), ("training", iron), ("lora", office)]
    return [pytest.param(name, *engine.values, marks=engine.marks, id=f"{name}-{engine.id}") for name, engine in pairs]


@pytest.mark.parametrize(("book", "engine"), engines_of_books(), indirect=["book"])
def test_new_runs_come_alive(desk: Desk, plan: Path, book: Book, engine: type[Engine]) -> None:
    """A spare row gets a run's inputs and figures, and its formulas give what Python gives."""
    desk.figures = {"long": {"outcome": "oom"}}
    done = desk.done("--backend", "cuda", "--sweep", desk.sweep(OWN[book.name], book.name), "--write", plan)
    assert re.search(
        r"\d+ cells written into \S+plan\.xlsx; the file as it was is plan\.backup-\d{8}-\d{6}\.xlsx", done.out
    )
    desk.done("--sweep", desk.sweep(OWN[book.name], book.name), "--only", "small", "--write", plan)
    job, held = declared(book.name), Runs(plan)
    table = Table(plan, engine(plan))
    assert table.engine is not None
    table.engine.recalculate()
    for at, (ident, inputs) in enumerate(OWN[book.name].items(), SWEEP[book.name]):
        assert held.at(ident) == at, "in the first spare rows, in their order"
        assert held.figures(ident, "lever", "setting") == [
            "Own run",
            "SmolLM2-135M" if "base_model" in inputs else None,
        ]
        given = {**job.defaults(), **inputs}
        assert held.inputs(ident, book.name) == {
            key: "none" if given[key] is None else given[key] for key in input_names(job)
        }
        completed = ident != "long"
        assert held.figures(ident)[:3] == (
            [COMPLETED, 12.500000001, 14] if completed else [OUT_OF_MEMORY, "none", "none"]
        )
        if completed:
            assert_row(table.shown(at), expected(job, inputs), 12.500000001, completed)
        else:
            shown, right = table.shown(at), expected(job, inputs)
            assert shown["Q"] == {"fits": "Fits", "tight": "Tight", "does not fit": "Does not fit"}[right["Q"]]
            assert (shown["J"], shown["L"]) == ("none", "none")
    assert held.figures("small", "trace_peak_gb", "trace_reserved_gb") == [12.500000001, 14]
    assert held.figures("long", "trace_peak_gb", "trace_reserved_gb") == [None, None]
    assert set(table.shown(SWEEP[book.name] + 3).values()) == {""}
    table.engine.close()


def test_any_run_comes_alive(plan: Path, book: Book) -> None:
    """Random runs, all with inputs of their own, to the last spare row."""
    job, rng = declared(book.name), random.Random(7)
    runs = []
    for at in range(SPARE_ROWS):
        inputs = {key: value for key, value in random_inputs(job, rng).items() if key in command.input_names(book.name)}
        runs.append(make_run(book.name, inputs, id=f"own {at}"))
    report = write_results(plan, [settled(run) for run in runs], job)
    assert report.backup_path is not None
    table = Table(plan, Formualizer(plan))
    for at, run in enumerate(runs, SWEEP[book.name]):
        assert_row(table.shown(at), expected(job, run.inputs), 12.500000001, completed=True)


def test_a_run_that_is_there_is_written_where_it_is(desk: Desk, lora_plan: Path) -> None:
    """A second time, under another spelling of its id, and after the planner moved it to another row."""
    runs = {"own": {"batch_size": 3}, "next": {"batch_size": 5}}
    desk.done("--backend", "cuda", "--sweep", desk.sweep(runs), "--write", lora_plan)
    for spelt, peak in (("own", 11), ("OWN", 10), (" Own ", 9)):
        typed(lora_plan, {(KEY, SWEEP["lora"]): spelt})
        desk.figures = {"own": {"peak_allocated_bytes": peak * GB}}
        desk.done("--backend", "cuda", "--sweep", "runs.csv", "--write", lora_plan, "--again")
        held = Runs(lora_plan)
        assert [value for value in held.ids[SWEEP["lora"] :] if value] == [spelt, "next"]
        assert held.figures(spelt, "measured_peak_gb") == [peak]
    again = desk.done("--backend", "cuda", "--sweep", "runs.csv", "--write", lora_plan)
    assert "holds these figures already" in again.out


def test_a_measured_run_has_the_card_it_was_measured_on(lora_plan: Path) -> None:
    job = declared("lora")
    run = make_run("lora", {**named_sweep("lora")[0].inputs, "gpu_choice": "NVIDIA L4"}, id="ft01")
    write_results(lora_plan, [settled(run, "trace")], job)
    assert Runs(lora_plan).inputs("ft01", "lora")["gpu_choice"] == "NVIDIA H100 SXM5 80GB"
    write_results(lora_plan, [settled(run, "cuda", outcome="oom")], job)
    assert Runs(lora_plan).inputs("ft01", "lora")["gpu_choice"] == "NVIDIA L4"
    table = Table(lora_plan, Formualizer(lora_plan))
    assert (
        table.shown(0)["Q"]
        == {"fits": "Fits", "tight": "Tight", "does not fit": "Does not fit"}[expected(job, run.inputs)["Q"]]
    )


def test_results_that_were_kept_are_written_as_fresh_ones(desk: Desk, lora_plan: Path) -> None:
    """Runs that the file of results has already: its texts become the same numbers again."""
    words = ("--backend", "cuda", "--sweep", desk.sweep(OWN["lora"], "lora"), "--write")
    other = Path(shutil.copyfile(lora_plan, desk.folder / "other.xlsx"))
    desk.done(*words, lora_plan)
    begun = list(desk.begun)
    desk.done(*words, other)
    assert desk.begun == begun, "nothing is measured again"
    assert other.read_bytes() == lora_plan.read_bytes()
    desk.done("--sweep", "lora", "--only", "ft01", "--write", lora_plan)
    desk.done("--sweep", "lora", "--only", "ft01", "--write", other)
    assert other.read_bytes() == lora_plan.read_bytes()


def test_an_emptied_row_gives_nothing_to_the_next_run(lora_plan: Path) -> None:
    """A planner deletes an id and leaves its figures; the next run must not inherit them."""
    job, at = declared("lora"), SWEEP["lora"]
    write_results(lora_plan, [settled(make_run("lora", {"batch_size": 3}, id="own"))], job)
    typed(lora_plan, {(KEY, at): None})
    write_results(lora_plan, [settled(make_run("lora", {"batch_size": 5}, id="next"), "trace")], job)
    held = Runs(lora_plan)
    assert held.at("next") == at
    assert held.figures("next") == [None, None, None, 12.500000001, 14]
    assert str(held.cell(FIGURES["source"], "next")).startswith("traced: ")


def test_what_is_not_written_is_said(desk: Desk, lora_plan: Path) -> None:
    """A setting or a model that no formula knows has no row that could predict it; a run that failed has no figure."""
    before = lora_plan.read_bytes()
    assert "not written" in desk.done("--loss-kernel", "Liger", "--write", lora_plan).err
    assert lora_plan.read_bytes() == before
    runs = desk.sweep({"one": {"batch_size": 2}})
    desk.figures = {"one": {"outcome": "failed", "message": "broken"}}
    failed = desk.verify("--sweep", runs, "--write", lora_plan)
    assert failed.status == 1 and "no run was settled" in failed.out
    assert lora_plan.read_bytes() == before


def test_a_run_of_a_model_without_formulas_is_not_written(desk: Desk, lora_plan: Path) -> None:
    own = {"config": str(model_folder("google/gemma-2-9b"))}
    done = desk.done("--sweep", desk.sweep({"a": own, "b": {"batch_size": 2}}), "--write", lora_plan)
    assert re.search("not written.*: a\n", done.err)
    assert [value for value in Runs(lora_plan).ids[SWEEP["lora"] :] if value] == ["b"]


def test_the_last_spare_row_is_the_last(desk: Desk, plan: Path, book: Book) -> None:
    runs = {f"own {at}": {"batch_size": at} for at in range(1, SPARE_ROWS + 1)}
    desk.done("--sweep", desk.sweep(runs, book.name), "--write", plan)
    assert None not in Runs(plan).ids
    more = desk.sweep({**runs, "one more": {"batch_size": 99}}, book.name)
    text = desk.refused("--sweep", more, "--write", plan)
    assert "no spare row left" in text and "run build.py with the file of results beside the workbook" in text
    desk.done("--sweep", more, "--only", "own 3", "--write", plan, "--again")


def test_many_rows_are_written_in_no_time(plan: Path, book: Book) -> None:
    rows = [settled(run, backend) for run in named_sweep(book.name) for backend in ("cuda", "trace")]
    began = time.perf_counter()
    report = write_results(plan, rows, declared(book.name))
    took = time.perf_counter() - began
    print(f"{SWEEP[book.name]} runs, {report.cells} cells: {took:.2f} s")
    assert took < 3


# -- refused before anything runs


def test_runs_of_the_other_job_are_refused(desk: Desk, plan: Path, book: Book) -> None:
    text = desk.refused("--sweep", OTHER[book.name], "--write", plan)
    assert f"a workbook of {book.name} runs; the run {FIRST[OTHER[book.name]]} is of {OTHER[book.name]}" in text
    assert "no figures of a GPU" in desk.refused("--backend", "cpu", "--sweep", book.name, "--write", plan)


CONTRADICTIONS = {
    "a shipped run": ("ft01", {"batch_size": 7}, "the run ft01 has batch_size 8 on the Validation sheet and 7 in the result"),
    "another case": ("FT02", {"batch_size": 4, "lora_rank": 99}, "the run FT02 has lora_rank 8 on the Validation sheet and 99"),
    "a text": ("ft01", {"activation_checkpointing": "On"}, "activation_checkpointing 'Off' on the Validation sheet and 'On'"),
    "an override": ("ft01", {"hidden_size_override": 64}, "hidden_size_override 'none' on the Validation sheet and 64"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_another_run_of_the_same_name_is_refused(kind: str, desk: Desk, lora_plan: Path) -> None:
    ident, inputs, words = CONTRADICTIONS[kind]
    text = desk.refused("--sweep", desk.sweep({ident: inputs}), "--write", lora_plan)
    assert words in text and "give one of them another id" in text


Make = Callable[[Path, Path], Path]  # a planner's copy of a workbook, a folder -> a file that is wrong


def bytes_of(change: Callable[[bytes], bytes], name: str = "plan.xlsx") -> Make:
    def make(good: Path, folder: Path) -> Path:
        content = change(good.read_bytes())
        good.unlink()
        (folder / name).write_bytes(content)
        return folder / name

    return make


def with_owner(good: Path, _: Path) -> Path:
    good.with_name(f"~${good.name}").write_bytes(b"P. Lanner")
    return good


def read_only(good: Path, _: Path) -> Path:
    good.chmod(0o444)
    return good


def main_part(was: str, now: str) -> Make:
    return lambda good, _: edited(good, {"xl/workbook.xml": lambda part: part.replace(was.encode(), now.encode())})


def more_parts(parts: Mapping[str, bytes]) -> Make:
    return lambda good, _: edited(good, {}, parts)


def renamed_name(name: str) -> Make:
    return main_part(f'"{name}"', f'"Old_{name}"')


def gone(name: str) -> Make:
    """A name whose cells were deleted, as Excel leaves it."""

    def make(good: Path, _: Path) -> Path:
        edit = lambda part: re.sub(rf'(name="{name}"[^>]*>)[^<]*'.encode(), rb"\1Validation!#REF!", part)  # noqa: E731
        return edited(good, {"xl/workbook.xml": edit})

    return make


def foreign(good: Path, _: Path) -> Path:
    return zipped(good, parts_of({"Plan": sheet()}))


def longer(name: str) -> Make:
    """A name that covers a row more than the others: a row was put into the table."""

    def make(good: Path, _: Path) -> Path:
        def edit(part: bytes) -> bytes:
            return re.sub(
                rf'(name="{name}"[^>]*>[^<]*\$)(\d+)<'.encode(), lambda m: m[1] + b"%d<" % (int(m[2]) + 1), part
            )

        return edited(good, {"xl/workbook.xml": edit})

    return make


BAD: dict[str, tuple[Make, str]] = {
    "open in Excel": (with_owner, "is open in Excel; save and close it there"),
    "read-only": (read_only, "is read-only"),
    "encrypted": (bytes_of(lambda _: OLE + "EncryptedPackage".encode("utf-16-le")), "encrypted with a password"),
    "xls": (bytes_of(lambda _: OLE, "plan.xls"), r"old \.xls form"),
    "xlsb": (lambda good, _: edited(good, {"_rels/.rels": lambda part: part.replace(b"workbook.xml", b"workbook.bin")}), r"\.xlsb"),
    "signed": (more_parts({"_xmlsignatures/origin.sigs": b""}), "digitally signed"),
    "truncated": (bytes_of(lambda data: data[: len(data) // 2]), "cut short"),
    "zip bomb": (more_parts({f"xl/media/image{at}.png": bytes(4 * 2**20) for at in (7, 8)}), "packs 4,194,304 bytes"),
    "no zip": (bytes_of(lambda _: b"id,peak\n"), "no zip file"),
    "not there": (lambda good, folder: folder / "nix.xlsx", "is not there"),
    "a folder": (lambda good, folder: folder, "is a folder"),
    "not of build.py": (foreign, "Validation_Run"),
    "no Validation": (lambda good, _: edited(good, {"xl/workbook.xml": lambda part: re.sub(rb'<definedName name="Validation_[^>]*>[^<]*</definedName>', b"", part)}), "Validation_Run"),
    "an input's name is missing": (renamed_name("Validation_Batch_Size"), '"Validation_Batch_Size"'),
    "a figure's name is missing": (renamed_name("Validation_Trace_Peak_GB"), '"Validation_Trace_Peak_GB"'),
    "the runs' name is missing": (renamed_name("Validation_Run"), "Validation_Run"),
    "an input was deleted": (gone("Validation_Batch_Size"), '"Validation_Batch_Size" stands for "Validation!#REF!": its cells were deleted'),
    "a figure was deleted": (gone("Validation_Source"), '"Validation_Source" stands for "Validation!#REF!": its cells were deleted'),
    "the runs were deleted": (gone("Validation_Run"), '"Validation_Run" stands for "Validation!#REF!": its cells were deleted'),
    "a row within the table": (longer("Validation_(?:Run|Batch_Size|Measured_Peak_GB)"), "no longer cover the same rows"),
    "a row within the workings": (longer("Validation_Gpu_Choice|Validation_GPU_Choice"), "no longer cover the same rows"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_workbook_is_refused_before_any_run(kind: str, desk: Desk, plans: dict[str, Path]) -> None:
    make, why = BAD[kind]
    name = "training" if "name" in kind or "row" in kind else "lora"
    path = make(plans[name], desk.folder)
    try:
        text = desk.refused("--sweep", name, "--only", FIRST[name], "--write", path)
    finally:
        if path.is_file():
            path.chmod(0o644)
    assert re.search(why, text), text
    assert str(path) in text


@pytest.mark.parametrize(
    "kind", [kind for kind in BAD if kind not in ("open in Excel", "read-only", "a figure was deleted")]
)
def test_a_bad_workbook_gives_no_runs(kind: str, desk: Desk, lora_plan: Path) -> None:
    make, why = BAD[kind]
    assert re.search(why, desk.refused("--workbook", make(lora_plan, desk.folder)))


def test_a_workbook_that_is_open_can_be_read(desk: Desk, lora_plan: Path) -> None:
    with_owner(lora_plan, desk.folder)
    desk.done("--workbook", lora_plan, "--only", "ft01")
    assert desk.begun == ["ft01"]


def runs_parts(path: Path) -> list[str]:
    """The parts of the sheets of runs: Validation, and the workings with the other inputs."""
    package = open_package(path)
    names = package.sheet_names()
    sheets = [package.area(name).sheet for name in (KEY, "Validation_Optimizer_Choice")]
    return [f"xl/worksheets/sheet{names.index(sheet) + 1}.xml" for sheet in sheets]


def test_a_formula_in_a_row_is_not_overwritten(desk: Desk, lora_plan: Path) -> None:
    """A planner computes a measured peak from something else; nothing is written, also not the other run."""
    area = open_package(lora_plan).area(FIGURES["measured_peak_gb"])
    at = f'r="{openpyxl.utils.get_column_letter(area.first_column + 1)}{area.first_row + 1}"'
    edit = lambda part: re.sub(rf"(<c {at}[^>]*>)<v>[^<]*</v>".encode(), rb"\1<f>6+6</f><v>12</v>", part)  # noqa: E731
    edited(lora_plan, {runs_parts(lora_plan)[0]: edit})
    text = desk.refused("--backend", "cuda", "--sweep", "lora", "--only", "ft02,ft01", "--write", lora_plan)
    assert "holds a formula" in text and "Validation!H10" in text


def test_options_without_their_workbook_are_refused(desk: Desk, lora_plan: Path) -> None:
    assert "--sheet is 'Plan' without --write" in desk.refused("--sweep", "lora", "--sheet", "Plan")
    assert "--rows is scenario without --workbook" in desk.refused("--sweep", "lora", "--rows", "scenario")
    assert "both given" in desk.refused("--sweep", "lora", "--workbook", lora_plan)


# -- a workbook that its planner has changed

A1 = r"\$?[A-Z]{1,3}\$?[0-9]+"
REFERENCE = re.compile(
    rf"""("[^"]*")|('(?:[^']|'')+'!|\b\w+!)?(?<![\w.$])({A1}(?::{A1})?)(?![\w(.!])|('(?:[^']|'')+'!|\bValidation!)"""
)


class Changed:
    """What Excel does to every part of a file when rows or columns are put into Validation, or it gets a new name."""

    def __init__(
        self,
        rows: int = 0,
        columns: int = 0,
        sheets: Mapping[str, str] | None = None,
        *,
        below: int = 8,
        behind: int = 1,
    ) -> None:
        self.rows, self.columns, self.sheets = rows, columns, sheets or {}
        self.below, self.behind = below, behind  # the last row and column that stay

    def place(self, reference: str) -> str:
        def one(found: re.Match[str]) -> str:
            column, row = openpyxl.utils.column_index_from_string(found[2]), int(found[4])
            row += self.rows * (row > self.below)
            column += self.columns * (column > self.behind)
            return f"{found[1]}{openpyxl.utils.get_column_letter(min(column, 16_384))}{found[3]}{min(row, 1_048_576)}"

        return re.sub(r"(\$?)([A-Z]{1,3})(\$?)([0-9]+)", one, reference)

    def formula(self, text: str, own: bool) -> str:
        def one(found: re.Match[str]) -> str:
            if found[1]:
                return found[1]
            prefix, reference = found[2] or found[4] or "", found[3] or ""
            name = prefix.rstrip("!").strip("'")
            here = name == "Validation" or (own and not name)
            if name in self.sheets:
                prefix = "'" + self.sheets[name].replace("'", "''") + "'!"
            return prefix + (self.place(reference) if here else reference)

        return REFERENCE.sub(one, text)

    def part(self, data: bytes, own: bool) -> bytes:
        tree = etree.fromstring(data)
        for element in tree.iter():
            kind = etree.QName(element).localname if isinstance(element.tag, str) else ""
            if kind in ("f", "formula", "formula1", "formula2", "definedName") and element.text:
                element.text = self.formula(element.text, own)
            if kind == "sheet" and element.get("name") in self.sheets:
                element.set("name", self.sheets[element.get("name")])
            if not own:
                continue
            for key in ("sqref", "ref", "topLeftCell", "activeCell"):
                if element.get(key):
                    element.set(key, self.place(element.get(key)))
            if kind in ("row", "c"):
                place = self.place(element.get("r") if kind == "c" else f"A{element.get('r')}")
                element.set("r", place if kind == "c" else place[1:])
                element.attrib.pop("spans", None)
        return etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=True)

    def __call__(self, path: Path) -> Path:
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        runs = runs_parts(path)[0]
        wanted = re.compile(r"xl/(workbook|worksheets/sheet\d+|charts/chart\d+)\.xml")
        for name in filter(wanted.fullmatch, parts):
            parts[name] = self.part(parts[name], own=name == runs)
        return zipped(path, parts)


def decorated(path: Path) -> Path:
    """Sparklines, stars, threaded comments, printer settings, pivot caches and pictures beside the table of runs."""
    x14 = "http://schemas.microsoft.com/office/spreadsheetml/2009/9/main"
    mc, xm = (
        "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "http://schemas.microsoft.com/office/excel/2006/main",
    )
    extensions = (
        f'<extLst><ext xmlns:x14="{x14}" uri="{{05C60535-1F16-4fd2-B633-F4F36F0B64E0}}"><x14:sparklineGroups xmlns:xm="{xm}">'
        "<x14:sparklineGroup><x14:sparklines><x14:sparkline><xm:f>Validation!H10:H30</xm:f><xm:sqref>X3</xm:sqref></x14:sparkline>"
        f'</x14:sparklines></x14:sparklineGroup></x14:sparklineGroups></ext><ext xmlns:x14="{x14}" '
        'uri="{78C0D931-6437-407d-A8EE-F0AAD7539E66}"><x14:conditionalFormattings><x14:conditionalFormatting '
        f'xmlns:xm="{xm}"><x14:cfRule type="iconSet" priority="99" id="{{1}}"><x14:iconSet iconSet="3Stars"><x14:cfvo '
        'type="percent"><xm:f>0</xm:f></x14:cfvo></x14:iconSet></x14:cfRule><xm:sqref>H10:H58</xm:sqref>'
        "</x14:conditionalFormatting></x14:conditionalFormattings></ext></extLst>"
    )
    runs = runs_parts(path)[0]
    return edited(
        path,
        {
            runs: lambda part: put("</worksheet>", extensions)(
                put(
                    "<drawing ",
                    f'<!-- a note --><?planner keep="this"?><mc:AlternateContent xmlns:mc="{mc}"><mc:Choice xmlns:x14="urn:x" '
                    'Requires="x14"><controls/></mc:Choice><mc:Fallback/></mc:AlternateContent>',
                )(part)
            ),
            runs.replace("sheets/", "sheets/_rels/") + ".rels": put(
                "</Relationships>",
                '<Relationship Id="rId91" Type="http://schemas.microsoft.com/office/2017/10/relationships/threadedComment" '
                'Target="../threadedComments/threadedComment1.xml"/><Relationship Id="rId92" '
                f'Type="{RELATIONS}/printerSettings" Target="../printerSettings/printerSettings1.bin"/>',
            ),
        },
        {
            "xl/threadedComments/threadedComment1.xml": b'<ThreadedComments xmlns="urn:t"><a>\r\n</a></ThreadedComments>',
            "xl/printerSettings/printerSettings1.bin": random.Random(5).randbytes(700),
            "xl/pivotCache/pivotCacheDefinition1.xml": b"<pivotCacheDefinition/>",
            "xl/media/image7.png": PICTURE,
            "customXml/item1.xml": b"<?xml version='1.0' encoding='utf-16'?><x/>",
        },
    )


def with_hidden_rows(path: Path) -> Path:
    edit = lambda part: re.sub(rb'<row r="(1\d|3[5-7])"', rb'<row r="\1" hidden="1"', part)  # noqa: E731
    return edited(path, {runs_parts(path)[0]: edit})


CHANGES: dict[str, Callable[[Path], Path]] = {
    "as built": lambda path: path,
    "rows above the table": Changed(rows=7),
    "columns before the table": Changed(columns=3),
    "columns within the table": Changed(columns=2, behind=7),
    "rows and columns": Changed(rows=2, columns=30, below=3),
    "sheets renamed": Changed(sheets={"Validation": "Läufe & mehr", "Validation workings": "Validation", "Sizing": "O'Neill"}),
    "rows hidden": with_hidden_rows,
    "more beside it": decorated,
    "all of it": lambda path: Changed(2, 1, {"Validation": "Runs '27"})(with_hidden_rows(decorated(path))),
}  # fmt: skip


@pytest.mark.parametrize(
    ("book", "kind"),
    [
        pytest.param(name, kind, id=f"{name}-{kind}")
        for at, kind in enumerate(CHANGES)
        for name in (JOBS if kind == "all of it" else [list(JOBS)[at % 2]])
    ],
    indirect=["book"],
)
def test_figures_land_where_the_planner_moved_them(kind: str, plan: Path, book: Book, tmp_path: Path) -> None:
    """Only parts of the two sheets and the calculation setting change, and a backup holds the file as it was."""
    original = Path(shutil.copyfile(CHANGES[kind](plan), tmp_path / "before"))
    job, shipped, inputs = declared(book.name), named_sweep(book.name), OWN[book.name]["small"]
    new = make_run(book.name, inputs, id="small")
    assert job_of(plan, {name: declared(name) for name in JOBS}) == book.name
    report = write_results(plan, [settled(shipped[0]), settled(shipped[-1], "trace"), settled(new)], job)

    before, after = members(original), members(plan)
    assert list(before) == list(after)
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"xl/workbook.xml", *runs_parts(original)}
    assert report.backup_path is not None and report.backup_path.read_bytes() == original.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["before", plan.name, report.backup_path.name])
    was, now = (re.sub(rb' fullCalcOnLoad="1"', b"", raw(path, "xl/workbook.xml")) for path in (original, plan))
    assert was == now
    ends = (0, SWEEP[book.name] - 1, SWEEP[book.name])
    assert apart(original, plan) <= cells_of_runs(original, ends, book.name)

    held = Runs(plan)
    assert held.figures(shipped[0].id)[:3] == [COMPLETED, 12.500000001, 14]
    assert held.figures(shipped[-1].id)[3:] == [12.500000001, 14]
    assert [held.at(ident) for ident in (shipped[0].id, shipped[-1].id, "small")] == [*ends]
    area, right = held.package.area(KEY), expected(job, inputs)
    line = area.first_row + 1 + ends[-1]
    shown = [value for (row, _), value in Formualizer(plan).get_sheet(area.sheet).items() if row == line]
    for letter in "IKNO":
        assert [value for value in shown if close(value, right[letter])], letter


def test_rows_that_were_sorted_are_found_by_their_ids(lora_plan: Path) -> None:
    """Where the inputs behind the rows did not move along, nothing is written into a row of another run."""
    runs = {run.id: run for run in named_sweep("lora")}
    visible = [KEY, *FIGURES.values(), *(input_names(declared("lora"))[key] for key in VISIBLE)]
    ids = list(runs)
    for first, second in (("ft02", "ft03"), ("ft01", "ft13")):
        swap = {first: ids.index(second), second: ids.index(first)}
        held = Runs(lora_plan)
        typed(lora_plan, {(name, at): held.cell(name, ident) for ident, at in swap.items() for name in visible})
    write_results(lora_plan, [settled(runs["ft02"], peak_allocated_bytes=2 * GB)], declared("lora"))
    held = Runs(lora_plan)
    assert (held.at("ft02"), held.figures("ft02", "measured_peak_gb")) == (ids.index("ft03"), [2])
    before = lora_plan.read_bytes()
    with pytest.raises(ValueError, match="the run ft13 has lora_rank 8 on the Validation sheet and 64"):
        write_results(lora_plan, [settled(runs["ft13"])], declared("lora"))
    assert lora_plan.read_bytes() == before


def raw(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def tables(path: Path) -> dict[tuple[str, str], bytes]:
    """The bytes of every cell of the two sheets of runs, and of what stands around the cells."""
    found = {}
    for name in runs_parts(path):
        part = raw(path, name)
        cell = re.compile(rb'<c r="([A-Z]+[0-9]+)"[^>]*?(?:/>|>.*?</c>)', re.S)
        found |= {(name, match[1].decode()): match[0] for match in cell.finditer(part)}
        found[name, ""] = cell.sub(b"", part)
    return found


def apart(before: Path, after: Path) -> set[tuple[str, str]]:
    """Which cells of the sheets of runs differ, beyond a formula's stored result."""
    was, now = tables(before), tables(after)
    return {at for at in was.keys() | now.keys() if without_result(was.get(at)) != without_result(now.get(at))}


def without_result(cell: Any) -> Any:
    """A formula cell as written, without its result, which goes where it no longer holds."""
    if not isinstance(cell, bytes) or b"<f" not in cell:
        return cell
    return re.sub(rb'<v>[^<]*</v>|<v/>| t="\w+"', b"", cell)


def cells_of_runs(path: Path, rows: Sequence[int], job: str) -> set[tuple[str, str]]:
    """The cells that belong to rows of the table, on both sheets."""
    package = open_package(path)
    keys, parts = package.area(KEY), runs_parts(path)
    found = set()
    for name in (KEY, *FIGURES.values(), *input_names(declared(job)).values()):
        area = package.area(name)
        part = parts[area.sheet != keys.sheet]
        letters = openpyxl.utils.get_column_letter(area.first_column + 1)
        found |= {(part, f"{letters}{area.first_row + 1 + at}") for at in rows}
    return found


# -- into a sheet of the planner's own

ID_FORMULA = '="ft"&"01"'


def own_sheet(folder: Path, header: Sequence[Any], rows: Sequence[Sequence[Any]] = (), above: int = 0) -> Path:
    """A workbook with a sheet Läufe; a text that begins with "=" is a formula."""
    path = folder / "own.xlsx"
    with xlsxwriter.Workbook(path) as made:
        made.add_worksheet("Notes").write("A1", "id")
        ws = made.add_worksheet("Läufe")
        if above:
            ws.write(0, 0, "Messungen im Sommer")
        for at, line in enumerate([header, *rows], above):
            ws.write_row(at, 0, line)
            if line[:1] == [ID_FORMULA]:
                ws.write_formula(at, 0, ID_FORMULA, None, "ft01")
    return path


def grid(path: Path, name: str = "Läufe") -> list[list[Any]]:
    """The values and formulas of a sheet, row by row."""
    cells = openpyxl.load_workbook(path)[name]
    return [list(line) for line in cells.iter_rows(values_only=True)]


PEAK = 12.500000001
# Header and rows before, and rows after "ft01" (ok) and "new" (oom) were measured.
SHEETS: dict[str, tuple[list[Any], list[list[Any]], list[list[Any]]]] = {
    "as it comes": (
        ["id", "peak_allocated_gb", "Outcome"],
        [["ft01", 1, "?"]],
        [["ft01", PEAK, "ok"], ["new", None, "oom"]],
    ),
    "id last": (
        ["OUTCOME", " Peak_Allocated_GB", "ID "],
        [["?", 1, "ft01"]],
        [["ok", PEAK, "ft01"], ["oom", None, "new"]],
    ),
    "columns of others between": (
        ["Team", "peak_reserved_gb", "Id", "Twice", "measured_peak_gb", "Remark"],
        [["A", None, "FT01", "=E2*2", None, "keep"]],
        [["A", 14, "FT01", "=E2*2", PEAK, "keep"], [None, None, "new", None, None, None]],
    ),
    "bytes, inputs and texts": (
        ["id", "peak_allocated_bytes", "batch_size", "gpu_choice", "commit", "seconds", "message"],
        [],
        [["ft01", 12_500_000_001, 8, "NVIDIA H100 SXM5 80GB", "123456789012", 2.5, None],
         ["new", None, 3, "NVIDIA H100 SXM5 80GB", "123456789012", 2.5, None]],
    ),
    "spelt otherwise": (
        ["id", "outcome"],
        [[" Ft01 ", None], ["NEW", None]],
        [[" Ft01 ", "ok"], ["NEW", "oom"]],
    ),
    "ids by formula": (
        ["id", "outcome"],
        [[ID_FORMULA, None]],
        [[ID_FORMULA, "ok"], ["new", "oom"]],
    ),
    "with gaps": (
        ["id", "outcome"],
        [["a", 1], [None, None], ["ft01", None], [None, "Sum"], ["b", 2]],
        [["a", 1], [None, None], ["ft01", "ok"], [None, "Sum"], ["b", 2], ["new", "oom"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SHEETS)
def test_results_stand_below_the_headers_of_an_own_sheet(kind: str, desk: Desk) -> None:
    header, rows, after = SHEETS[kind]
    above = 3 if kind == "columns of others between" else 0
    rows, after = (
        [[re.sub("E2", "E5", c) if above and isinstance(c, str) else c for c in line] for line in lines]
        for lines in (rows, after)
    )
    path = own_sheet(desk.folder, header, rows, above)
    desk.figures = {"new": {"outcome": "oom"}}
    runs = desk.sweep({"ft01": {"batch_size": 8}, "new": {"batch_size": 3}})
    for word in ("Läufe", "LÄUFE"):
        desk.done("--backend", "cuda", "--sweep", runs, "--write", path, "--sheet", word)
        assert grid(path)[above:] == [header, *after]
    assert len(list(desk.folder.glob("own.backup-*.xlsx"))) == 1, "the second time nothing was new"


def test_kept_results_are_numbers_in_an_own_sheet_too(desk: Desk) -> None:
    wanted = ["id", "outcome", "peak_allocated_bytes", "seconds", "batch_size", "commit", "hidden_size_override"]
    runs = desk.sweep({"a": {"batch_size": 8}})
    kept = []
    for _ in range(2):
        path = own_sheet(desk.folder, wanted)
        desk.done("--backend", "cuda", "--sweep", runs, "--write", path, "--sheet", "Läufe")
        kept.append(grid(path)[1])
    assert desk.begun == ["a"]
    assert kept[0] == kept[1] == ["a", "ok", 12_500_000_001, 2.5, 8, "123456789012", None]


def test_any_job_and_backend_may_go_into_an_own_sheet(desk: Desk) -> None:
    path = own_sheet(desk.folder, ["id", "job", "figures", "loss_kernel"])
    full = desk.sweep({"full": {"batch_size": 1}}, "full")
    desk.done("--backend", "cpu", "--sweep", full, "--write", path, "--sheet", "Läufe")
    done = desk.done("--sweep", desk.sweep({"liger": {"loss_kernel": "Liger"}}), "--write", path, "--sheet", "Läufe")
    assert "not written" not in done.err
    assert grid(path)[1:] == [["full", "full", "counted", "stock"], ["liger", "lora", "traced", "Liger"]]


# Header, rows, name of the sheet, and why it is refused.
WRONG_SHEETS = {
    "unknown": (["id", "outcome"], [], "Lauf", r'has no sheet "Lauf"; it should be one of its sheets \(Notes, Läufe\)'),
    "no id": (["run", "outcome"], [], "Läufe", '"id"'),
    "no results": (["id", "Remark"], [], "Läufe", "no column of results beside it"),
    "an id twice": (["id", "outcome", "ID"], [], "Läufe", "A1 and C1"),
    "a header twice": (["id", "outcome", "Outcome"], [], "Läufe", "B1 and C1"),
    "a formula": (["id", "outcome"], [["ft01", "=1+1"]], "Läufe", r'"?Läufe"?!B2 holds a formula'),
    "a formula in a new row": (["id", "outcome"], [["ft09", 1], [None, "=COUNTA(B2:B2)"]], "Läufe", r'"?Läufe"?!B3 holds a formula'),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG_SHEETS)
def test_a_sheet_that_takes_no_results_is_refused_before_any_run(kind: str, desk: Desk) -> None:
    header, rows, name, why = WRONG_SHEETS[kind]
    path = own_sheet(desk.folder, header, rows)
    text = desk.refused("--sweep", "lora", "--only", "ft01", "--write", path, "--sheet", name)
    assert re.search(why, text), text


# -- out of a workbook


def asked(monkeypatch: pytest.MonkeyPatch, desk: Desk, *words: Any) -> list[Run]:
    """The runs that a command would perform."""
    found: list[Run] = []

    def take(runs: Sequence[Run], *more: Any, **most: Any) -> Any:
        found.extend(runs)
        return desk.perform(runs, *more, **most)

    monkeypatch.setattr(sweep, "perform_all", take)
    desk.done(*words, "--csv", desk.folder / "asked.csv", "--again")
    return found


def test_the_shipped_runs_come_out_as_they_went_in(
    desk: Desk, plan: Path, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(monkeypatch, desk, "--workbook", plan) == named_sweep(book.name)
    last = f"{FIRST[book.name][:2]}{SWEEP[book.name]}"
    assert asked(monkeypatch, desk, "--workbook", plan, "--only", f"{last},{FIRST[book.name]}") == [
        named_sweep(book.name)[-1],
        named_sweep(book.name)[0],
    ]


def test_own_runs_come_out_as_they_went_in(desk: Desk, plan: Path, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written, read and written again: the same runs, in a workbook with other rows above them."""
    job, rng = declared(book.name), random.Random(11)
    known = command.input_names(book.name)
    runs = [
        make_run(
            book.name, {key: value for key, value in random_inputs(job, rng).items() if key in known}, id=f"own {at}"
        )
        for at in range(SPARE_ROWS)
    ]
    write_results(plan, [settled(run) for run in runs], job)
    Changed(rows=5)(plan)
    assert asked(monkeypatch, desk, "--workbook", plan) == [*named_sweep(book.name), *runs]
    desk.done("--workbook", plan, "--only", "own 3", "--write", plan)
    assert Runs(plan).figures("own 3", "trace_peak_gb") == [12.500000001]


def test_optional_inputs_may_be_none_or_blank(desk: Desk, lora_plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, names = SWEEP["lora"], input_names(declared("lora"))
    visible = {"batch_size": 4.0, "sequence_length": 512, "activation_checkpointing": "on"}
    values: dict[str, Any] = {"hidden_size_override": "None", "layer_count_override": None, "mlp_width_override": 4096}
    typed(lora_plan, {(KEY, at): 7, **{(names[key], at): value for key, value in {**visible, **values}.items()}})
    right = {"batch_size": 4, "activation_checkpointing": "On", "mlp_width_override": 4096}
    assert asked(monkeypatch, desk, "--workbook", lora_plan, "--only", "7") == [make_run("lora", right, id="7")]


# What is typed into the first spare row beside a good run, by input ("id" for the run's name), and the words of the refusal.
TYPED: dict[str, tuple[dict[str, Any], str]] = {
    "a text": ({"batch_size": "eight"}, r"run own: batch_size is 'eight'; it must be a whole number from 1 to 65,536"),
    "half": ({"batch_size": 2.5}, r"run own: batch_size is 2\.5; it must be"),
    "out of range": ({"sequence_length": 10**9}, r"run own: sequence_length is 1000000000; it must be"),
    "empty": ({"sequence_length": None}, r"row 35, run own: sequence_length is empty; it must be"),
    "unknown model": ({"base_model": "nobody/none"}, r"run own: base_model is 'nobody/none'; it must be a model of the presets"),
    "no model": ({"base_model": None}, r"run own: base_model is empty; it must be one of"),
    "unknown choice": ({"gpu_choice": "NVIDIA L5"}, r"run own: gpu_choice is 'NVIDIA L5'; .*did you mean NVIDIA L4"),
    "an override": ({"hidden_size_override": "wide"}, r"run own: hidden_size_override is 'wide'; it must be"),
    "an error": ({"batch_size": "#REF!"}, r"run own: batch_size is '#REF!'; it must be"),
    "true": ({"batch_size": True}, r"run own: batch_size is True; it must be"),
    "no id": ({"id": None}, r"Validation row 35 has batch_size 4 and no id; give the run an id"),
    "blanks as id": ({"id": "  "}, r"Validation row 35 has batch_size 4 and no id"),
    "id of another run": ({"id": "FT01"}, r"the id 'FT01' is there twice"),
    "two lines as id": ({"id": "a\nb"}, r"id is 'a\\nb'; it must be one line"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPED)
def test_what_is_typed_wrongly_is_refused(kind: str, desk: Desk, lora_plan: Path) -> None:
    values, why = TYPED[kind]
    at, names = SWEEP["lora"], {"id": KEY, **input_names(declared("lora"))}
    good = {"id": "own", "batch_size": 4, "sequence_length": 512, "activation_checkpointing": "Off"}
    typed(lora_plan, {(names[key], at): value for key, value in {**good, **values}.items()})
    text = desk.refused("--workbook", lora_plan)
    assert re.search(why, text), text
    assert "plan.xlsx" in text


def test_a_sheet_without_runs_is_refused(desk: Desk, lora_plan: Path) -> None:
    names = [input_names(declared("lora"))[key] for key in VISIBLE]
    typed(lora_plan, {(name, at): None for name in (KEY, *names) for at in range(SWEEP["lora"])})
    assert "holds no run; give an id and its inputs in a spare row" in desk.refused("--workbook", lora_plan)


def test_a_scenario_is_what_the_planner_typed(
    desk: Desk, plan: Path, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As built the worked job; then with own values, and put into the workbook each under a name of its own."""
    words = ("--workbook", plan, "--rows", "scenario")
    assert [run.inputs for run in asked(monkeypatch, desk, *words)] == [make_run(book.name, {}).inputs]
    inputs = {"batch_size": 6, "sequence_length": 768, "activation_checkpointing": "On", "hidden_size_override": 1024,
              "gpu_choice": "NVIDIA L4"}  # fmt: skip
    for batch in (6, 9):
        typed(plan, {(public_name(key), 0): value for key, value in {**inputs, "batch_size": batch}.items()})
        (run,) = asked(monkeypatch, desk, *words)
        assert run.inputs == make_run(book.name, {**inputs, "batch_size": batch}).inputs
        desk.done(*words, "--write", plan)
    own = [value for value in Runs(plan).ids[SWEEP[book.name] :] if value]
    assert len(own) == 2
    assert [Runs(plan).inputs(ident, book.name)["batch_size"] for ident in own] == [6, 9]


SCENARIOS: dict[str, tuple[str, Any, str]] = {
    "a text": ("Batch_Size", "many", "batch_size is 'many'; it must be a whole number"),
    "empty": ("Sequence_Length", None, "sequence_length is empty; it must be a whole number"),
    "a model": ("Base_Model", "x/y", "base_model is 'x/y'; it must be a model"),
    "an override": ("Hidden_Size_Override", -4, "hidden_size_override is -4; it must be"),
}


@pytest.mark.parametrize("kind", SCENARIOS)
def test_a_scenario_that_is_wrong_is_refused(kind: str, desk: Desk, lora_plan: Path) -> None:
    name, value, why = SCENARIOS[kind]
    typed(lora_plan, {(name, 0): value})
    assert why in desk.refused("--workbook", lora_plan, "--rows", "scenario")


def test_an_input_without_its_name_is_never_guessed(desk: Desk, lora_plan: Path) -> None:
    renamed_name("Batch_Size")(lora_plan, desk.folder)
    assert 'has no name "Batch_Size"' in desk.refused("--workbook", lora_plan, "--rows", "scenario")


# -- and a workbook that is built anew


def test_workbooks_built_anew_hold_what_was_written(desk: Desk, plans: dict[str, Path]) -> None:
    """Beside the file of results, build.py gives the same rows the same inputs, figures and sources."""
    for name, plan in plans.items():
        shipped, others = FIRST[name][:2], [*OWN[name]]
        runs = {**OWN[name], "BIG": {"batch_size": 512}}
        desk.figures = {
            "BIG": {"outcome": "oom"},
            f"{shipped}02": {"outcome": "oom"},
            "long": {"peak_reserved_bytes": None},
        }
        own = desk.sweep(runs, name)
        for backend, what, only in (
            ("cuda", name, f"{shipped}01,{shipped}02"),
            ("trace", name, f"{shipped}01,{shipped}03"),
            ("trace", own, ",".join(others[:2])),
            ("cuda", own, f"{others[1]},BIG"),
            ("cuda", own, others[2]),
        ):
            desk.done("--backend", backend, "--sweep", what, "--only", only, "--write", plan)
    for plan, anew, name in zip(plans.values(), build(desk.folder)[:2], JOBS, strict=True):
        old, new = Runs(plan), Runs(anew)
        ids = [value for value in old.ids if value]
        assert [value for value in new.ids if value] == ids and len(ids) == SWEEP[name] + len(OWN[name]) + 1
        for ident in ids:
            assert new.inputs(ident, name) == old.inputs(ident, name), ident
            assert new.figures(ident, *FIGURES) == old.figures(ident, *FIGURES), ident
        table, built = Table(plan, Formualizer(plan)), Table(anew)
        for at, ident in enumerate(ids):
            line = built.place(KEY, at)[1]
            for letter, value in table.shown(at).items():
                assert close(built.file.cached["Validation", line, ord(letter) - 64], value, 1e-12), (ident, letter)


def test_the_columns_of_a_results_file_are_all_headers(desk: Desk) -> None:
    """Every column of the file of results may head a column of a planner's sheet."""
    path = own_sheet(desk.folder, [*columns()])
    write_columns(path, "Läufe", [settled(named_sweep("lora")[0])], columns())
    line = dict(zip(*grid(path)[:2], strict=True))
    row = {key: value for key, value in settled(named_sweep("lora")[0]).items() if value not in (None, "")}
    assert {key: value for key, value in line.items() if value is not None} == row


@pytest.mark.parametrize("book", ["lora"], indirect=True)
def test_results_that_no_longer_hold_are_taken_away(book: Book, plan: Path) -> None:
    """A program that trusts stored results would else show the spare row's predictions beside the new run."""
    new = make_run(book.name, OWN[book.name]["small"], id="small")
    write_results(plan, [settled(new)], declared(book.name))
    package = open_package(plan, read_only=True)
    area = package.area(KEY)

    def stored(row: int) -> set[bool]:
        cells = [package.cell(area.sheet, row, column) for column in range(area.first_column, area.first_column + 17)]
        return {cell.value is None for cell in cells if cell.formula}

    assert stored(area.first_row + SWEEP[book.name]) == {True}
    assert stored(area.first_row) == {False}

"""The workbooks, built once a test run, and open in each engine.

`whole_book` is each of them as it is shipped; `book` is the same with fewer jobs on Scenarios, Sensitivity and
Crossover, which saves the engines time; `opened` is that book in an engine, on the worked job, and is set back to it afterwards.
Cells are found by defined names or by scanning a sheet, never at a fixed address.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from engines import ErrorValue, Formualizer, IronCalc, LibreOffice, Target, Value, close, engine_parameters
from lxml import etree
from skips import pytest_sessionfinish  # noqa: F401 - the hook

from sizing_xlsx.formula.job import Job
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.jobs import JOBS, WORKBOOKS
from sizing_xlsx.presets.catalogue import Presets, load_presets
from sizing_xlsx.workbook.build import build, load_template, workbook_job, write_book

# The suite runs side by side, a process a core: threads of PyTorch beside them would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

LONGEST_FIRST = (
    "test_trace.py",
    "test_kept_tensors.py",
    "test_cluster.py",
    "test_workbook_engines.py",
    "test_language.py",
)  # side by side, they end together


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; the order within a file stays."""
    order = {name: at for at, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


# Where engines open a workbook: empty rows on Scenarios, values on an axis of Sensitivity, models on Crossover.
SPARE, AXIS = 3, 4
MODELS = [
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B",
    "openai-community/gpt2", "mistralai/Mixtral-8x7B-v0.1", "google/gemma-2-9b",
]  # fmt: skip
Place = tuple[str, int, int]  # sheet, row and column from 1
Engine = Formualizer | IronCalc | LibreOffice

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
RESULTS = (
    "Peak_Allocated_GB", "Total_Reserved_GB", "GPU_Usable_Capacity_GB", "Headroom_GB", "Largest_Batch_Size",
    "Largest_Sequence_Length", "Published_Peak_Allocated_GB", "Published_Total_Reserved_GB",
)  # fmt: skip


class Part:
    """The cells of one sheet, straight from its XML: nothing between the file and the test."""

    def __init__(self, name: str, tree: Any) -> None:
        self.name, self.tree = name, tree

    def cells(self) -> Iterator[tuple[Place, Any]]:
        """Every `<c>` with its place."""
        for cell in self.tree.iter(MAIN + "c"):
            letters, digits = re.fullmatch(r"([A-Z]+)(\d+)", cell.get("r")).groups()  # type: ignore[union-attr]
            column = 0
            for letter in letters:
                column = column * 26 + ord(letter) - 64
            yield (self.name, int(digits), column), cell


class File:
    """An emitted workbook as it lies on disk: its parts, and its formulas with their cached values."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def parts(self) -> dict[str, bytes]:
        with zipfile.ZipFile(self.path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    @cached_property
    def sheets(self) -> dict[str, Part]:
        """The sheets by title, in the workbook's order."""
        links = {
            link.get("Id"): link.get("Target") for link in etree.fromstring(self.parts["xl/_rels/workbook.xml.rels"])
        }
        found = {}
        for sheet in etree.fromstring(self.parts["xl/workbook.xml"]).iter(MAIN + "sheet"):
            part = f"xl/{links[sheet.get(RELATION)]}"
            found[sheet.get("name")] = Part(sheet.get("name"), etree.fromstring(self.parts[part]))
        return found

    @cached_property
    def strings(self) -> list[str]:
        """The texts that cells share."""
        items = etree.fromstring(self.parts["xl/sharedStrings.xml"])
        return ["".join(text.text or "" for text in item.iter(MAIN + "t")) for item in items]

    @cached_property
    def formulas(self) -> dict[Place, str]:
        """Every formula, without its equals sign."""
        return {
            place: cell.findtext(MAIN + "f")
            for part in self.sheets.values()
            for place, cell in part.cells()
            if cell.find(MAIN + "f") is not None
        }

    @cached_property
    def cached(self) -> dict[Place, Value]:
        """The value beside every formula; None where there is none."""
        return {
            place: _cached(cell)
            for part in self.sheets.values()
            for place, cell in part.cells()
            if cell.find(MAIN + "f") is not None
        }

    @cached_property
    def names(self) -> dict[str, str]:
        """Defined name -> what it refers to, but for those that Excel itself keeps."""
        return {
            name.get("name"): name.text
            for name in etree.fromstring(self.parts["xl/workbook.xml"]).iter(MAIN + "definedName")
            if not name.get("name").startswith("_xlnm")
        }


def _cached(cell: Any) -> Value:
    text, kind = cell.findtext(MAIN + "v"), cell.get("t", "n")
    if text is None:
        return None
    if kind == "e":
        return ErrorValue(text)
    if kind == "b":
        return text == "1"
    return text if kind == "str" else float(text)


class Book(File):
    """One of the workbooks, with the job it was made from."""

    def __init__(self, name: str, path: Path, presets: Presets, template: dict[str, Any] | None = None) -> None:
        super().__init__(path)
        self.name, self.presets = name, presets
        self.template: dict[str, Any] = template or load_template(name)
        self.job: Job = workbook_job(name, presets)


class Opened:
    """A workbook in an engine. typed: what its inputs hold now, by input."""

    def __init__(self, book: Book, engine: type[Engine]) -> None:
        self.book, self.engine = book, engine(book.path)
        self.typed: dict[str, Any] = book.job.defaults()

    def type(self, inputs: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Type these inputs, and the worked job's for all others; None clears a cell. Then recalculate."""
        wanted = {**self.book.job.defaults(), **(inputs or {}), **more}
        changed = [key for key, value in wanted.items() if repr(value) != repr(self.typed[key])]
        for key in changed:
            value = wanted[key]
            # an int travels as an int to LibreOffice, which takes no whole number beyond 31 bits
            number = isinstance(value, int) and not isinstance(value, bool)
            self.engine.set(public_name(key), float(value) if number else value)
        self.typed = wanted
        if changed:
            self.engine.recalculate()

    def __getitem__(self, target: Target) -> Value:
        return self.engine.get(target)

    def differences(self, expected: Mapping[Any, Value], relative: float = 1e-12) -> list[str]:
        """Where the cells or names do not hold what is expected."""
        found = self.engine.get_many(list(expected))
        return [
            f"{target}: {value!r} instead of {right!r}"
            for (target, right), value in zip(expected.items(), found, strict=True)
            if not close(value, right, relative)
        ]

    @cached_property
    def tiles(self) -> dict[str, list[Place]]:
        """Where the answer strip of Sizing has its figures: label of each tile -> its figure and its note."""
        cells = self.engine.get_sheet("Sizing")
        labels = (
            "Verdict",
            "Total to size against",
            "Usable capacity",
            "Headroom",
            "Utilisation of the card",
            "Checks",
        )
        row = min(row for (row, _), value in cells.items() if value == "Verdict")
        where = {value: column for (at, column), value in cells.items() if at == row}
        return {label: [("Sizing", row + below, where[label]) for below in (1, 2)] for label in labels}

    def strip(self) -> dict[str, list[Value]]:
        """What the answer strip says: label of each tile -> its figure and its note."""
        shown = iter(self.engine.get_many([place for pair in self.tiles.values() for place in pair]))
        return {label: [next(shown), next(shown)] for label in self.tiles}

    @property
    def sentence(self) -> str:
        """The sentence of the answer strip."""
        return str(self["Sizing", 2, 2])


@pytest.fixture(scope="session")
def books(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Book]:
    """The workbooks of JOBS, as `python build.py` makes them; that of serving has tests of its own."""
    presets = load_presets()
    paths = build(tmp_path_factory.mktemp("workbooks"))
    made = dict(zip(WORKBOOKS, paths, strict=True))
    return {name: Book(name, made[name], presets) for name in JOBS}


@pytest.fixture(scope="session")
def short_books(books: dict[str, Book], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Book]:
    """The workbooks with fewer rows of jobs: a row is as the others, and engines take time for each."""
    folder, found = tmp_path_factory.mktemp("short"), {}
    for name, book in books.items():
        template = load_template(name)
        template["scenarios"]["rows"] = len(template["scenarios"]["jobs"]) + SPARE
        for values in ("row_values", "column_values"):
            template["axes"][values] = template["axes"][values][:AXIS]
        if "crossover" in template:
            template["crossover"]["models"] = MODELS
        path = folder / book.path.name
        write_book(path, name, template, book.presets)
        found[name] = Book(name, path, book.presets, template)
    return found


@pytest.fixture(scope="session")
def shared_engines() -> Iterator[dict[tuple[str, type[Engine]], Opened]]:
    """The books that are open, so that each is loaded once an engine."""
    found: dict[tuple[str, type[Engine]], Opened] = {}
    yield found
    for opened in found.values():
        opened.engine.close()


@pytest.fixture(params=list(JOBS))
def book(request: pytest.FixtureRequest, short_books: dict[str, Book]) -> Book:
    """Each of the workbooks, with fewer rows of jobs."""
    return short_books[request.param]


@pytest.fixture(params=list(JOBS))
def whole_book(request: pytest.FixtureRequest, books: dict[str, Book]) -> Book:
    """Each of the workbooks, as it is shipped."""
    return books[request.param]


@pytest.fixture(params=engine_parameters("formualizer", "libreoffice"))
def workbook_engine(request: pytest.FixtureRequest) -> type[Engine]:
    """The engines a workbook is opened in. IronCalc takes seconds for each change: test_workbook_engines.py has it too."""
    engine: type[Engine] = request.param
    return engine


@pytest.fixture
def opened(
    book: Book, workbook_engine: type[Engine], shared_engines: dict[tuple[str, type[Engine]], Opened]
) -> Iterator[Opened]:
    """Each workbook in each engine, on the worked job."""
    key = (book.name, workbook_engine)
    if key not in shared_engines:
        shared_engines[key] = Opened(book, workbook_engine)
    yield shared_engines[key]
    shared_engines[key].type()

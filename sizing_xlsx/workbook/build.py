"""From presets, formulas and a template to a workbook on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from .. import __version__
from ..formula.job import Job
from ..formula.render import sheet_formula
from ..jobs import JOBS, make_job
from ..paths import presets_folder, templates_folder
from ..presets.catalogue import Presets, load_presets
from . import figures
from .book import Book
from .sheets import chart_data, checks, notes, overrides, reference, sizing, start, validation, workings
from .words import sentence

# What other sheets and programs read by name: no number, not even a wrong one, while an input is at fault.
RESULTS = (
    "peak_allocated_gb", "total_reserved_gb", "headroom_gb", "published_peak_allocated_gb",
    "published_total_reserved_gb", "largest_batch_size", "largest_sequence_length",
)  # fmt: skip
SHEETS = (
    "Start", "Sizing", "Overrides", "Validation", "Presets", "GPUs", "Workings", "Boundary workings", "Checks",
    "Chart data", "What-if", "Validation workings", "Notes",
)  # fmt: skip


def load_template(name: str) -> dict[str, Any]:
    """A template by its name."""
    import tomllib

    with (templates_folder() / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


def workbook_job(name: str, presets: Presets, opened_on: Mapping[str, Any] | None = None) -> Job:
    """The job with the figures that only a workbook shows. opened_on: inputs, where not the article's."""
    return make_job(name, presets, (figures,), opened_on)


def build(output: Path, presets: Presets | None = None, folder: Path | None = None) -> list[Path]:
    """Write every workbook into a folder and return their paths.

    All are made beside their final place first and moved there when all are complete: a failure leaves the
    workbooks that are there untouched. Raises ValueError for presets that cannot be used and OSError for a folder
    that cannot be written.
    """
    found = presets or load_presets(folder)
    output.mkdir(parents=True, exist_ok=True)
    finished: list[tuple[Path, Path]] = []
    try:
        for name in JOBS:
            template = load_template(name)
            final = output / template["file"]
            draft = output / f".{template['file']}.{os.getpid()}.tmp"
            finished.append((draft, final))
            write_book(draft, name, template, found, folder)
        for draft, final in finished:
            os.replace(draft, final)
    finally:
        for draft, _ in finished:
            draft.unlink(missing_ok=True)
    return [final for _, final in finished]


def write_book(
    path: Path,
    name: str,
    template: dict[str, Any],
    presets: Presets,
    folder: Path | None = None,
    opened_on: Mapping[str, Any] | None = None,
) -> None:
    """Write one workbook; opened_on: inputs, where they are not the article's."""
    import tomllib

    job = workbook_job(name, presets, opened_on)
    with ((folder or presets_folder()) / "release.toml").open("rb") as file:
        date = tomllib.load(file)["data_date"]
    spoken = f"{date.day} {date:%B} {date.year}"
    provenance = {
        "Version": f"sizing_xlsx {__version__}",
        "Data": f"as of {spoken}",
        "Formulas": f"hash {formula_hash(job)}: every formula of this workbook, rendered",
        "Presets": f"hash {data_hash(folder or presets_folder())}: every file under presets/",
    }
    book = Book(path, job, template, presets, f"Version {__version__}, data of {spoken}", provenance)
    book.workbook.set_properties(
        {
            "title": template["title"],
            "subject": template["subject"],
            "comments": "; ".join(f"{key}: {value}" for key, value in provenance.items()),
            "created": datetime(date.year, date.month, date.day),
        }
    )
    for title in SHEETS:
        book.sheet(title)
    chart_data.plan(book)
    book.external("checks_count", "count", _count_checks(book))
    for key, text in template["sentences"].items():
        book.say(key, sentence(text, book.sym))
    book.guards["fit_verdict"] = lambda content: book.guarded(content, '"CHECK INPUT"')
    for result in RESULTS:
        book.guards[result] = lambda content: book.guarded(content, "NA()")
    for write in (
        start.write, sizing.write, overrides.write, validation.write, reference.write, workings.write, checks.write,
        chart_data.write, notes.write,
    ):  # fmt: skip
        write(book)
    book.sheet("Sizing").activate()
    book.workbook.close()


def _count_checks(book: Book) -> int:
    faults = sum(1 for rule in book.job.checks.values() if rule.fault)
    return len(book.job.inputs) + faults + len(checks.SUMS)


def formula_hash(job: Job) -> str:
    """A short hash of every formula and constant of a job."""
    digest = hashlib.sha256()
    for key in job.order:
        digest.update(f"{key}{sheet_formula(job.trees[key])}\n".encode())
    for key, constant in job.constants.items():
        digest.update(f"{key}={constant.value!r}\n".encode())
    return digest.hexdigest()[:12]


def data_hash(folder: Path) -> str:
    """A short hash of the names and contents of every preset file."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix in (".csv", ".toml", ".json"):
            digest.update(str(file.relative_to(folder)).replace(os.sep, "/").encode())
            digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:12]

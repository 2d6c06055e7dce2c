"""From presets, formulas and a template to a workbook on disk."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO

from .. import __version__
from ..formula.job import Job
from ..formula.render import sheet_formula
from ..jobs import JOBS, make_job, plain_job
from ..paths import presets_folder
from ..presets.catalogue import Presets, load_presets
from . import figures
from .book import Book
from .own_runs import RESULTS_FILE, OwnRun, read_results, said_of
from .public_runs import PublicRuns
from .sheets import chart_data, checks, notes, overrides, public_runs, reference, sizing, start, validation, workings
from .template import load_template, read_toml
from .words import sentence

# What other sheets and programs read by name: no number, not even a wrong one, while an input is at fault.
RESULTS = (
    "peak_allocated_gb", "total_reserved_gb", "headroom_gb", "published_peak_allocated_gb",
    "published_total_reserved_gb", "traced_peak_allocated_gb", "traced_total_reserved_gb", "largest_batch_size",
    "largest_sequence_length",
)  # fmt: skip
SHOWN_FILES = 5  # of a planner's own, by name
SHEETS = (
    "Start", "Sizing", "Overrides", "Validation", "Presets", "GPUs", "Workings", "Boundary workings", "Checks",
    "Chart data", "What-if", "Validation workings", "Public workings", "Notes",
)  # fmt: skip


def workbook_job(name: str, presets: Presets, opened_on: Mapping[str, Any] | None = None) -> Job:
    """The job with the figures that only a workbook shows. opened_on: inputs, where not the article's."""
    return make_job(name, presets, (figures,), opened_on)


def build(output: Path, presets: Presets | None = None, folder: Path | None = None) -> list[Path]:
    """Write every workbook into a folder and return their paths.

    Where the folder holds a results file (verify-results.csv), its runs stand on Validation. All workbooks are made
    first, then written beside their final place, then moved there: a failure leaves those that are there untouched.
    Raises ValueError for presets or results that cannot be used and OSError for a folder that cannot be written.
    """
    found = presets or load_presets(folder)
    file = output / RESULTS_FILE
    results: Sequence[OwnRun] = ()
    if file.exists():
        unsized = [model.name for model in found.unsized_models]
        results = read_results(file, {name: plain_job(name, found) for name in JOBS}, unsized)
    made: dict[Path, bytes] = {}
    for name in JOBS:
        template = load_template(name)
        final = output / template["file"]
        if final in made:
            raise ValueError(f"the templates of two workbooks both say file = {template['file']!r}; rename one")
        made[final] = book_bytes(name, template, found, folder, results)
    output.mkdir(parents=True, exist_ok=True)
    for final in made:
        if final.exists() and not final.is_file():
            raise OSError(f"{final} is not a file; move it away or choose another folder")
    drafts = {final: final.with_name(f".{final.name}.{os.getpid()}.tmp") for final in made}
    try:
        for final, draft in drafts.items():
            draft.write_bytes(made[final])
        for final, draft in drafts.items():
            os.replace(draft, final)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
    return list(made)


def book_bytes(
    name: str,
    template: dict[str, Any],
    presets: Presets,
    folder: Path | None = None,
    results: Sequence[OwnRun] = (),
) -> bytes:
    """One workbook as the bytes of its file."""
    with io.BytesIO() as file:
        write_book(file, name, template, presets, folder, None, results)
        return file.getvalue()


def write_book(
    path: Path | BinaryIO,
    name: str,
    template: dict[str, Any],
    presets: Presets,
    folder: Path | None = None,
    opened_on: Mapping[str, Any] | None = None,
    results: Sequence[OwnRun] = (),
) -> None:
    """Write one workbook to a path or an open file.

    opened_on: inputs, where they are not the article's. results: rows of a results file; see own_runs.py.
    """
    job = workbook_job(name, presets, opened_on)
    day = _data_date((folder or presets_folder()) / "release.toml")
    spoken = f"{day.day} {day:%B} {day.year}"
    provenance = {
        "Version": f"sizing_xlsx {__version__}",
        "Data": f"as of {spoken}",
        "Formulas": f"hash {formula_hash(job)}: every formula of this workbook, rendered",
        "Presets": f"hash {data_hash(folder or presets_folder())}: every file under presets/",
    }
    if presets.own:
        provenance["Own models and cards"] = own_files(presets)
    book = Book(path, job, template, presets, f"Version {__version__}, data of {spoken}", provenance, results)
    if results:
        book.told["Own runs"] = said_of(results, name)
    if traces := getattr(presets, template["validation"]["rows"] + "_trace"):
        book.told["Step traces"] = "; ".join(dict.fromkeys(trace["source"] for trace in traces))
    book.workbook.set_properties(
        {
            "title": template["title"],
            "subject": template["subject"],
            "comments": "; ".join(f"{key}: {value}" for key, value in provenance.items()),
            "created": datetime(day.year, day.month, day.day),
        }
    )
    if "public_runs" in template and presets.public_runs:
        book.public_runs = PublicRuns(job, presets.public_runs)
    for title in SHEETS:
        if title != public_runs.WORKINGS or book.public_runs:
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


def _data_date(path: Path) -> date:
    found = read_toml(path).get("data_date")
    if not isinstance(found, date):
        raise ValueError(f"{path}: data_date is {found!r}; it must be a date such as 2026-08-17")
    return found


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


def own_files(presets: Presets) -> str:
    """The files that a planner's own models and cards come from, each with a hash of its content."""
    digests: dict[str, list[str]] = {}
    for row in presets.own:
        digests.setdefault(f"{row.file} (hash {row.digest})", []).append(row.name)
    files = [f"{file}: {names[0] if len(names) == 1 else f'{len(names)} rows'}" for file, names in digests.items()]
    more = f"; {len(files) - SHOWN_FILES} more files" if len(files) > SHOWN_FILES else ""
    return "; ".join(files[:SHOWN_FILES]) + more


def data_hash(folder: Path) -> str:
    """A short hash of the names and contents of every preset file."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix in (".csv", ".toml", ".json"):
            digest.update(str(file.relative_to(folder)).replace(os.sep, "/").encode())
            digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:12]

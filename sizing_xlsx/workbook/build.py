"""From presets, formulas and a template to a workbook on disk."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from .. import __version__
from ..formula.job import Job
from ..jobs import JOBS, WORKBOOKS, make_job, plain_job
from ..paths import presets_folder
from ..presets.catalogue import Presets
from .book import Book
from .forms import FORMS, form_of_job
from .lambdas import LAMBDA, NO_ONE, PROVIDERS
from .own_runs import RESULTS_FILE, OwnRun, read_results, said_of
from .plan.template import NAME as PLAN
from .plan.template import load_plan_template
from .provenance import data_date, provenance_of, spoken
from .public_runs import PublicRuns
from .sheets import checks, crossover, effort, functions_list, lookups, public_runs, sharding, what_if
from .template import form_of, load_template
from .words import sentence

BOOKS = (*WORKBOOKS, PLAN)  # in the order in which they are written


def workbook_job(name: str, presets: Presets, opened_on: Mapping[str, Any] | None = None) -> Job:
    """The job with the figures that only a workbook shows. opened_on: inputs, where not the article's."""
    return make_job(name, presets, form_of_job(name).figures, opened_on)


def build(output: Path, presets: Presets | None = None, folder: Path | None = None) -> list[Path]:
    """Write every workbook into a folder and return their paths; a planner's work in those that are there goes over.

    See rebuild() of workbook/carry/rebuild.py, which also says what it did.
    """
    from .carry.rebuild import rebuild

    return [report.file for report in rebuild(output, presets, folder)]


def targets(output: Path) -> dict[str, tuple[dict[str, Any], Path]]:
    """Job, or plan -> its template, and the file in a folder that its workbook is.

    Raises ValueError where two are one file, and OSError where one of these, or the folder, is something else.
    """
    if output.exists() and not output.is_dir():
        raise OSError(f"{output} is not a folder; name another with --output")
    found: dict[str, tuple[dict[str, Any], Path]] = {}
    for name in BOOKS:
        template = load_plan_template() if name == PLAN else load_template(name)
        final = output / template["file"]
        if any(final == other for _, other in found.values()):
            raise ValueError(f"the templates of two workbooks both say file = {template['file']!r}; rename one")
        if final.exists() and not final.is_file():
            raise OSError(f"{final} is not a file; move it away or choose another folder")
        found[name] = (template, final)
    return found


def results_in(output: Path, presets: Presets) -> Sequence[OwnRun]:
    """The runs of the results file (verify-results.csv) in a folder, none where there is no such file.

    Raises ValueError for results that cannot be used.
    """
    file = output / RESULTS_FILE
    if not file.exists():
        return ()
    unsized = [model.name for model in presets.unsized_models]
    return read_results(file, {name: plain_job(name, presets) for name in JOBS}, unsized)


def book_bytes(
    name: str,
    template: dict[str, Any],
    presets: Presets,
    folder: Path | None = None,
    results: Sequence[OwnRun] = (),
    opened_on: Mapping[str, Any] | None = None,
    more_spare_rows: int = 0,
    functions: str = LAMBDA,
) -> bytes:
    """One workbook as the bytes of its file."""
    with io.BytesIO() as file:
        write_book(file, name, template, presets, folder, opened_on, results, more_spare_rows, functions)
        return file.getvalue()


def write_book(
    path: Path | BinaryIO,
    name: str,
    template: dict[str, Any],
    presets: Presets,
    folder: Path | None = None,
    opened_on: Mapping[str, Any] | None = None,
    results: Sequence[OwnRun] = (),
    more_spare_rows: int = 0,
    functions: str = LAMBDA,
) -> None:
    """Write one workbook to a path or an open file.

    opened_on: inputs, where they are not the article's. results: rows of a results file; see own_runs.py.
    more_spare_rows: of Validation, for runs that are put into the file afterwards. functions: who provides the Excel
    functions, one of PROVIDERS.
    """
    if functions not in PROVIDERS:
        raise ValueError(f"functions is {functions!r}; it must be one of {', '.join(PROVIDERS)}")
    job = workbook_job(name, presets, opened_on)
    day = data_date(folder or presets_folder())
    words = template["book"]
    said = spoken(day, words)
    provenance = provenance_of(job, presets, folder or presets_folder(), said, words["provenance"])
    book = Book(path, job, template, presets, __version__, said, provenance, results)
    book.spare_rows += more_spare_rows
    if results:
        book.told[words["own_runs"]["name"]] = said_of(results, name, words["own_runs"])
    if "validation" in template and (traces := getattr(presets, template["validation"]["rows"] + "_trace")):
        book.told[words["provenance"]["step_traces"]] = "; ".join(dict.fromkeys(trace["source"] for trace in traces))
    book.workbook.set_properties(
        {
            "title": template["title"],
            "subject": template["subject"],
            "comments": "; ".join(f"{key}: {value}" for key, value in provenance.lines(words["provenance"]).items()),
            "created": datetime(day.year, day.month, day.day),
        }
    )
    if "public_runs" in template and presets.public_runs:
        book.public_runs = PublicRuns(job, presets.public_runs)
    absent = set() if book.public_runs else {public_runs.WORKINGS}
    absent |= set() if functions == LAMBDA else {lookups.TITLE}
    absent |= {functions_list.TITLE} if functions == NO_ONE else set()
    absent |= set() if "sharding" in template else {sharding.TITLE}
    absent |= set() if "crossover" in template else {crossover.TITLE, crossover.WORKINGS}
    form = FORMS[form_of(template)]
    for title in form.sheets:
        if title not in absent:
            book.sheet(title)
    book.what_if = what_if.WhatIf(book)
    for plan in form.plans:
        plan(book)
    book.provider = functions
    book.external("checks_count", "count", _count_checks(book))
    for key, text in template["sentences"].items():
        book.say(key, sentence(text, book.sym))
    effort.say(book)
    book.guards["fit_verdict"] = lambda content: book.shown(content, words["check_input"])
    for result in form.results:
        book.guards[result] = lambda content: book.guarded(content, "NA()")
    for write in form.writes:
        write(book)
    book.sheet("Sizing").activate()
    book.workbook.close()


def _count_checks(book: Book) -> int:
    job = book.job
    return (
        1 + len(job.inputs.keys() - job.beside) + len(job.fault_rules) + len(checks.sums_of(job))
    )  # 1: the job that is chosen

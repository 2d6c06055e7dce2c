"""A build into a folder that may hold workbooks already: what is the planner's goes over into the new ones.

Of a workbook that is there: one that was never changed is replaced; one that was, is carried over and kept as a
backup; one with parts that cannot be carried safely (macros, pivot tables, links to other workbooks) stays, and the
new one is written beside it. A workbook that is none of ours, of a later version, damaged, encrypted, signed or open in
another program stops the build, and nothing is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ... import __version__
from ...paths import presets_folder
from ...presets.catalogue import Presets, load_presets
from ...presets.names import one_line
from ..build import book_bytes, results_in, targets, workbook_job
from ..lambdas import LAMBDA
from ..own_runs import OwnRun, merged
from ..package import find_workbook, read_workbook
from ..plan.build import plan_bytes
from ..plan.carried import carried
from ..sorts import NAMES, PLAN, SIZING
from . import files
from .changes import Changes, changes
from .compose import compose
from .draft import Draft
from .lent import lent
from .old_book import OldBook, numbers
from .own_files import with_kept
from .record import FORMAT, Record
from .renames import Renames, read_renames
from .report import BESIDE, CARRIED, REPLACED, SAME, Report, told
from .shapes import digest
from .typed import inputs_for, runs_to_place

_NO_RECORD = (
    "The workbook was made before workbooks kept a record of themselves: typed values that differ from this version's "
    "were taken for yours, and notes on its own sheets cannot be told; look for them in the backup."
)


class Found:
    """A workbook of ours that is there. Raises ValueError, one sentence, where it may not be replaced."""

    def __init__(self, path: Path, job: str) -> None:
        where = one_line(str(path))
        files.refuse_open(path)
        self.path = path
        self.data = read_workbook(find_workbook(path, where), where)
        self.book = OldBook(self.data, where)
        sort = PLAN if job == PLAN else SIZING
        if not self.book.sort:
            raise ValueError(
                f"{where} is a workbook that this program has not made (it lacks names such as {NAMES[sort][2]}); "
                "move it away, or name another folder with --output"
            )
        form = self.book.record_format
        newer = isinstance(form, (int, float)) and form > FORMAT
        if newer or numbers(self.book.version) > numbers(__version__):
            raise ValueError(
                f"{where} was made by sizing_xlsx {self.book.version}, and this is {__version__}; "
                f"use version {self.book.version} or later"
            )
        self.record = self.book.record
        if self.book.sort != sort or (self.record is not None and self.record.job != job):
            its = PLAN if self.book.sort == PLAN else self.record.job if self.record else ""
            raise ValueError(f"{where} {_does(its)}, and the workbook of that name {_does(job)}; move it away")
        self.unsafe = self.book.unsafe()


def rebuild(
    output: Path,
    presets: Presets | None = None,
    folder: Path | None = None,
    completed: Callable[[Presets], Presets] | None = None,
    functions: str = LAMBDA,
) -> list[Report]:
    """Write every workbook into a folder; what was done with those that were there.

    completed: what is still to be done to the presets once the planner's own files in those workbooks are among them.
    functions: as of write_book().

    Where the folder holds a results file (verify-results.csv), its runs stand on Validation. All workbooks are made
    first; either all are put in place or none. Raises ValueError, one sentence, for presets, results or workbooks that
    cannot be used, and OSError for a folder that cannot be written.
    """
    given = presets or load_presets(folder)
    finals = targets(output)
    found = {name: Found(path, name) for name, (_, path) in finals.items() if path.exists()}
    kept = [file for there in found.values() if there.record for file in there.record.files]
    known, gave_way, refused = with_kept(given, kept)
    known = completed(known) if completed else known
    build = _Build(known, folder, results_in(output, known), {own.file for own in given.own}, functions)
    made = [build.workbook(name, template, final, found.get(name)) for name, (template, final) in finals.items()]
    output.mkdir(parents=True, exist_ok=True)
    backups = files.write_all([planned for planned, _ in made if planned is not None])
    reports = [report for _, report in made]
    for report in reports:
        report.backup = backups.get(report.file)
    reports[0].changed += gave_way
    reports[0].gone += refused
    return reports


class _Build(NamedTuple):
    """What the workbooks are made from. given: files of own models and cards that are named at this build."""

    presets: Presets
    folder: Path | None
    results: Sequence[OwnRun]
    given: set[str]
    functions: str = LAMBDA

    def workbook(
        self, name: str, template: dict[str, Any], final: Path, there: Found | None
    ) -> tuple[files.Planned | None, Report]:
        """One workbook: what to write, None where the file says it already; and the report."""
        report = Report(final)
        make = self._maker(name, template)
        if there is None:
            return files.Planned(final, make()), report
        if there.book.untouched and make() == there.data:
            report.found = SAME
            return None, report
        complete = there.record is not None
        record = there.record or lent(there.book, _record_of(make(), final))
        its = changes(there.book, record, complete=complete)
        if there.unsafe:
            its = its._replace(sheets=[], names=[], drawings={}, loose=[], remarks=[])
        renames = read_renames(self.folder or presets_folder(), there.book.version)
        data = self._carried(name, template, there, record, its, renames, report)
        offered = {own.file for own in self.presets.own} - self.given
        for file in record.files:
            if file.file in offered:
                report.carry("own file", file.file)
        if its.any:
            _meanings(record, _record_of(data, final), renames, report)
        if there.unsafe:
            return _beside(final, data, there, report), report
        if not complete:
            report.notes.append(_NO_RECORD)
        if data == there.data:
            report.found = SAME
            return None, report
        kept = bool(report.carried) or its.any or not complete
        report.found = CARRIED if kept else REPLACED
        return files.Planned(final, data, there.data, keep=kept), report

    def _carried(
        self,
        name: str,
        template: dict[str, Any],
        there: Found,
        record: Record,
        its: Changes,
        renames: Renames,
        report: Report,
    ) -> bytes:
        """The new workbook with all that is the planner's."""
        make = self._maker(name, template)
        if not its.any and not its.rows:
            return make()
        if name == PLAN:
            plan = carried(there.book, record, its, template, renames, report)
            data = plan_bytes(plan.template, self.presets, self.folder, plan.row_count)
            its, later = its._replace(rows=plan.rows, loose=plan.loose), plan.later
        else:
            inputs = inputs_for(workbook_job(name, self.presets), its, renames, report)
            rows = 0
            if "validation" in template:  # with room for a planner's own runs
                shipped = getattr(self.presets, template["validation"]["rows"] + "_sweep")
                known = {row["id"].casefold() for row in shipped} | set(merged(self.results, name))
                rows = runs_to_place(its, known)
            data, later = make(inputs.opened_on, rows), inputs.later
        if not (its._replace(inputs=[]).any or its.rows or later):
            return data
        draft = Draft(data, f"the new {one_line(there.path.name)}")
        return compose(draft, there.book, record, its, later, renames, report)

    def _maker(self, name: str, template: dict[str, Any]) -> Callable[..., bytes]:
        """What makes the workbook as it is shipped."""
        if name == PLAN:
            return partial(plan_bytes, template, self.presets, self.folder)
        return partial(book_bytes, name, template, self.presets, self.folder, self.results, functions=self.functions)


def _does(job: str) -> str:
    """What the workbook of a job does, for a sentence; "": of a job that is not known."""
    return "plans capacity" if job == PLAN else f"sizes {job or 'another job'}"


def _beside(final: Path, data: bytes, there: Found, report: Report) -> files.Planned | None:
    """The new workbook under another name: parts of the old one cannot be carried."""
    report.file, report.found = files.beside(final, data), BESIDE
    report.notes.append(
        f"{one_line(str(final))} holds {_joined(there.unsafe)}, which cannot be carried over: it is as it was, and the "
        "new workbook stands beside it, with your inputs and rows but without your sheets."
    )
    before = report.file.read_bytes() if report.file.exists() else None
    return None if before == data else files.Planned(report.file, data, before)


def _record_of(data: bytes, path: Path) -> Record:
    record = OldBook(data, one_line(str(path))).record
    assert record is not None
    return record


def _meanings(old: Record, new: Record, renames: Renames, report: Report) -> None:
    """Inputs whose default or domain is another one now."""
    edited = " ".join(report.carried.get("input", []))
    for name, default in old.opened.items():
        now = renames.name(name)
        if now not in new.opened:
            continue
        if digest(default) != digest(new.opened[now]) and f"{now} " not in f"{edited} ":
            report.changed.append(f"{now} opens on {told(new.opened[now])}, before on {told(default)}")
        before, after = old.allowed.get(name, ""), new.allowed.get(now, "")
        if before != after and not (before.startswith("one of the ") and after.startswith("one of the ")):
            report.changed.append(f"{now} may be {after}; before it was {before}")


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

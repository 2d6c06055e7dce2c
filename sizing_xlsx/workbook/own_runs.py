"""Own runs: what the Validation sheet calls its columns, and the runs that a results file holds.

The names are the interface by which figures reach a workbook later: each is a column of the table of runs, from
the first run to the last spare row, and the cells of one row belong together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formula.declare import Choice
from ..formula.domains import allowed
from ..formula.render import public_name
from ..measure import full_run
from ..measure.run import BEYOND_FORMULAS, NOT_OF_A_RUN, OF_A_STACK, SETTINGS
from ..measure.run import input_names as run_names
from ..presets.csv_file import NUMBER, WHOLE, read_cell, read_lines
from ..presets.names import one_line, shown
from .jobtable import NOT_GIVEN as NOT_GIVEN
from .jobtable import inputs_used
from .words import filled

if TYPE_CHECKING:
    from ..formula.job import Job

RESULTS_FILE = "verify-results.csv"  # looked for beside the workbooks
SPARE_ROWS = 24
KEY = "Validation_Run"
COMPLETED, OUT_OF_MEMORY = "Completed", "Out of memory"  # written into workbooks of every language

# What is predicted and measured of a run, and therefore which inputs its row has.
PREDICTIONS = (
    "traced_allocated", "published_allocated", "traced_reserved", "published_reserved", "verdict_code", "fit_verdict",
)  # fmt: skip
FIGURES = (
    "lever", "setting", "outcome", "measured_peak_gb", "measured_reserved_gb", "trace_peak_gb", "trace_reserved_gb",
    "source",
)  # fmt: skip
COLUMNS = {  # of a results file, and what each holds (see csv_file.RIGHT)
    "id": "name",
    "job": "text",
    "backend": "text",
    "outcome": "text",
    "peak_allocated_bytes": "count?",
    "peak_reserved_bytes": "count?",
    "source": "text?",
}
MEASURED, TRACED = "cuda", "trace"  # backends
OUTCOMES = ("ok", "oom", "not run", "failed")
LONGEST_ID, LONGEST_SOURCE = 120, 300
MOST_RUNS = 500  # in one workbook, beyond those of the sweep
# What of a run says where it ran, not what ran: a run of the sweep may be repeated on another card.
OF_THE_MACHINE = ("gpu_choice", "gpu_capacity_override_gb", "other_tenants_gb", "matrix_workspace_bytes_override")


class OwnRun(NamedTuple):
    """One row of a results file.

    where: file and line, as a sentence names them. outcome: "ok" or "oom". Bytes are None where not known.
    inputs: those that the row gives, as the formulas take them. skipped: why the row is not used, by its name in the
    table own_runs.skipped of book.toml, "" where it is used.
    """

    where: str
    id: str
    job: str
    backend: str
    outcome: str
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    source: str
    inputs: dict[str, Any]
    skipped: str = ""


def figure_names() -> dict[str, str]:
    """The defined names of a run's labels and figures: "measured_peak_gb" -> "Validation_Measured_Peak_GB"."""
    return {key: "Validation_" + public_name(key) for key in FIGURES}


def input_names(job: Job) -> dict[str, str]:
    """The defined names of a run's inputs, in the order of its row: "batch_size" -> "Validation_Batch_Size".

    A cell of an optional input that is not given holds "none"; an empty one is a fault of the row.
    """
    return {key: "Validation_" + public_name(key) for key in inputs_used(job, PREDICTIONS)}


def read_results(path: Path, jobs: Mapping[str, Job] | None = None, unsized: Collection[str] = ()) -> list[OwnRun]:
    """The rows of a results file in their order, those that are not used with the reason.

    jobs: name -> job whose runs the file may hold; those that have a workbook unless given. unsized: names of models
    that are known but have no formulas; their rows are not used. Of several rows with one id and backend the last
    is used. Raises ValueError, one sentence with the file, the line, the column, the
    value and what would be right.
    """
    known = _own_jobs() if jobs is None else jobs
    rows = [_row(path, number, cells, known, unsized) for number, cells in read_lines(path, COLUMNS)]
    last: dict[tuple[str, str, str], int] = {}
    for at, row in enumerate(rows):
        if not row.skipped:
            last[row.job, row.id.casefold(), row.backend] = at
    used = {*last.values()}
    later = "replaced"
    return [row if row.skipped or at in used else row._replace(skipped=later) for at, row in enumerate(rows)]


def said_of(rows: Iterable[OwnRun], job: str, words: Mapping[str, Any]) -> str:
    """What a workbook says of the results file it was made with: the rows used, and those skipped with reasons.

    words: the table own_runs of book.toml.
    """
    used, reasons = 0, dict[str, int]()
    for row in rows:
        reason = row.skipped or ("" if row.job == job else "other_job")
        used += not reason
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
    facts = {
        "file": RESULTS_FILE,
        "used": words["one_used"] if used == 1 else filled(words["used"], count=f"{used:,}"),
        "count": f"{sum(reasons.values()):,}",
    }
    if not reasons:
        return filled(words["told"], **facts)
    told = words["skipped"]
    why = (filled(words["why"], count=str(count), reason=told[reason]) for reason, count in reasons.items())
    return filled(words["told_why"], **facts, why=", ".join(why))


def _own_jobs() -> dict[str, Job]:
    from ..jobs import JOBS, job

    return {name: job(name) for name in JOBS}


def _row(
    path: Path, number: int, cells: Mapping[str, str], jobs: Mapping[str, Job], unsized: Collection[str]
) -> OwnRun:
    where = f"{one_line(str(path))}, line {number}"
    found = {column: read_cell(cells[column], kind, where, column) for column, kind in COLUMNS.items()}
    for column, longest in (("id", LONGEST_ID), ("source", LONGEST_SOURCE)):
        if len(found[column]) > longest:
            raise ValueError(
                f"{where}, column {column} is {shown(found[column])}, {len(found[column]):,} characters long; "
                f"it should have at most {longest}"
            )
    outcome, peak = found["outcome"], found["peak_allocated_bytes"]
    if outcome not in OUTCOMES:
        raise ValueError(f"{where}, column outcome is {shown(outcome)}; it should be one of {', '.join(OUTCOMES)}")
    reason = ""
    if found["job"] not in jobs:
        reason = "other_job"
    elif found["backend"] not in (MEASURED, TRACED):
        reason = "other_backend"
    elif outcome not in ("ok", "oom"):
        reason = outcome.replace(" ", "_")
    elif cells.get("base_model") in unsized or cells.get("config"):
        reason = "no_formulas"
    elif any(cells.get(column, "") not in ("", SETTINGS[column][0]) for column in BEYOND_FORMULAS):
        reason = "unknown_setting"
    elif outcome == "ok" and peak is None:
        raise ValueError(
            f'{where}, column peak_allocated_bytes is ""; it should be a whole number of bytes where the outcome is ok'
        )
    words = cells
    if found["job"] == "full" and not reason and cells.get("parameter_storage"):
        _check_columns(path, cells, run_names("full"), "full")
        words = full_run.sized(cells) or {}
        reason = "" if words else "unknown_setting"
    inputs = {} if reason else _inputs(path, where, words, jobs[found["job"]], whole=words is cells)
    if outcome == "oom":
        found |= {"peak_allocated_bytes": None, "peak_reserved_bytes": None}
    return OwnRun(where, inputs=inputs, skipped=reason, **found)


def _check_columns(path: Path, cells: Mapping[str, Any], names: Iterable[str], job: str) -> None:
    """ValueError where a results file has no column for an input that a run of a job states."""
    for key in names:
        if key not in cells and key not in NOT_OF_A_RUN and not key.startswith(OF_A_STACK):
            raise ValueError(
                f"{one_line(str(path))}, line 1 lacks the column {key}, an input of {job}; "
                "a column for each input should be there, empty where a run takes the worked job's value"
            )


def _inputs(path: Path, where: str, cells: Mapping[str, Any], job: Job, *, whole: bool) -> dict[str, Any]:
    """The inputs that a row gives, each held against its declaration. whole: there is a column for each of them."""
    inputs: dict[str, Any] = {}
    if whole:
        _check_columns(path, cells, inputs_used(job, PREDICTIONS), job.name)
    for key in inputs_used(job, PREDICTIONS):
        text = str(cells.get(key, "")).strip()
        if not text or (job.inputs[key].optional and text.casefold() == NOT_GIVEN):
            continue
        try:
            inputs[key] = job.accepted({key: _value(job, key, text)})[key]
        except ValueError:
            raise ValueError(
                f"{where}, column {key} is {shown(str(cells[key]))}; it should be {allowed(job, key)}, or empty"
            ) from None
    return inputs


def _value(job: Job, key: str, text: str) -> Any:
    """A number where the input is one and the text is plainly one, else the text."""
    if isinstance(job.inputs[key].domain, Choice) or not NUMBER.fullmatch(text):
        return text
    number = int(text) if WHOLE.fullmatch(text) else float(text)
    return int(number) if number == int(number) else number


class Merged(NamedTuple):
    """The figures of one id, from a measured row, a traced row, or both. None where there is no such row."""

    measured: OwnRun | None
    traced: OwnRun | None

    @property
    def id(self) -> str:
        """The id as the measured row writes it, else as the traced one."""
        found = self.measured or self.traced
        assert found is not None
        return found.id

    @property
    def source(self) -> str:
        """Where the figures come from, in the words of the file; each text once."""
        texts = [row.source for row in self if row is not None and row.source]
        return "; ".join(dict.fromkeys(texts))


def merged(rows: Sequence[OwnRun], job: str) -> dict[str, Merged]:
    """The used rows of a job by id, without regard to case; ids in the order in which they first appear."""
    found: dict[str, Merged] = {}
    for row in rows:
        if row.job == job and not row.skipped:
            before = found.get(row.id.casefold(), Merged(None, None))
            found[row.id.casefold()] = (
                before._replace(measured=row) if row.backend == MEASURED else before._replace(traced=row)
            )
    return found


def inputs_of(pair: Merged, job: Job, own: Mapping[str, Any], *, fixed: bool) -> dict[str, Any]:
    """The inputs of a run: `own`, with what its rows give.

    fixed: the run is one of the sweep: only where it was measured may differ. Raises ValueError where a row
    contradicts the sweep, the other row of its id, or itself.
    """
    inputs = dict(own)
    for row, other in ((pair.measured, None), (pair.traced, pair.measured)):
        if row is None:
            continue
        for key, value in row.inputs.items():
            machine = key in OF_THE_MACHINE
            if machine and (other is not None or (fixed and row.backend == TRACED)):
                continue  # a trace has no card; the measured figures are what the row is held against
            if not machine and (fixed or other is not None) and value != inputs[key]:
                here = f"line {other.where.rpartition(' ')[2]}" if other and not fixed else "the sweep"
                raise ValueError(
                    f"{row.where}, column {key} is {shown(value)}; it should be {_plain(inputs[key])}, "
                    f"as {here} says of the run {row.id}: give another run another id"
                )
            inputs[key] = value
    where = (pair.measured or pair.traced).where  # type: ignore[union-attr]
    try:
        job.size(["verdict_code"], **inputs)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return inputs


def _plain(value: Any) -> str:
    return "empty" if value is None else shown(value)

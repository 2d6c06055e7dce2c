"""Runs as jobs: their inputs, what was measured or traced, and what both families predict.

The table of runs has three parts that follow each other: the shipped sweep, own runs from a results file, and
spare rows. A spare row has no id; behind it stand the worked job's inputs, so that all its terms are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..presets.sweeps import run_inputs
from .jobtable import JobTable
from .own_runs import (
    COMPLETED,
    MOST_RUNS,
    OUT_OF_MEMORY,
    PREDICTIONS,
    RESULTS_FILE,
    Merged,
    inputs_of,
    merged,
)
from .words import filled

if TYPE_CHECKING:
    from ..formula.job import Job
    from .book import Book

OWN = "own"  # the lever of the runs that are not of the sweep
VISIBLE = ("batch_size", "sequence_length", "activation_checkpointing")  # inputs that stand on Validation itself
RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"  # calls, by their names in validation.toml
_TOP = "upper-"  # of the sweep, before a number of layers


@dataclass(frozen=True)
class Run:
    """One row of the table: memory in GB, None where there is none; errors are shares, rounded as they are shown.

    lever: what the sweep varies, or OWN. words, setting: what the cells say. outcome: "" where it is not known.
    """

    id: str
    lever: str
    words: str
    setting: str | int
    inputs: Mapping[str, Any]
    outcome: str = ""
    peak: float | None = None
    reserved: float | None = None
    trace_peak: float | None = None
    trace_reserved: float | None = None
    source: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spare(self) -> bool:
        """Whether the row waits for a run."""
        return not self.id

    def predicted(self, result: str) -> float | None:
        """A predicted figure in GB, None where the run is not traced."""
        if result.startswith("traced") and not self.values["traced_available"]:
            return None
        return float(self.values[result] / 1e9)

    def error(self, result: str) -> float | None:
        """Predicted over measured peak, less 1; without a negative zero. None where one of them is missing."""
        predicted = self.predicted(result)
        if self.spare or self.peak is None or predicted is None:
            return None
        return round(predicted / self.peak - 1, 4) + 0.0

    def above(self) -> float | None:
        """By how much the upper estimate exceeds what was reserved."""
        predicted = self.predicted("traced_reserved")
        if self.spare or self.reserved is None or predicted is None:
            return None
        return predicted / self.reserved - 1

    def trace_error(self) -> float | None:
        """By how much the step trace differs from the measured peak, without its sign."""
        if self.spare or self.peak is None or self.trace_peak is None:
            return None
        return abs(round(self.trace_peak / self.peak - 1, 4))

    def call(self) -> str:
        """Whether the verdict (1 fits, 2 tight, 3 does not fit) agrees with what happened; "": it is not known."""
        if self.spare or not self.outcome:
            return ""
        code = self.values["verdict_code"]
        if code == 2:
            return UNDECIDED
        return RIGHT if (code < 2) == (self.outcome == COMPLETED) else WRONG


class Runs:
    """All runs of a job, and the job table that predicts them: `all` is `sweep`, then `own`, then spare rows."""

    def __init__(self, book: Book) -> None:
        job, spec = book.job, book.template["validation"]
        self.book = book
        self.rules = job.fault_rules
        self.table = JobTable(job, PREDICTIONS, ("traced_available", *self.rules))
        self.shown: Sequence[str] = job.tables["verdicts"].columns["shown"]
        self.worked = with_allowances(job)
        found = merged(book.results, job.name)
        shipped = getattr(book.presets, spec["rows"] + "_sweep")
        if all(row["measured_oom"] for row in shipped):
            raise ValueError(f"presets/measured: the {spec['rows']} sweep has no completed run; put its rows back")
        self.sweep = [self._of_sweep(row, found) for row in shipped]
        self.own = [self._own(pair) for pair in found.values()]
        if len(self.own) > MOST_RUNS:
            raise ValueError(
                f"{RESULTS_FILE} has {len(self.own):,} {job.name} runs of its own; a workbook takes at most "
                f"{MOST_RUNS}: split the file"
            )
        first = self.sweep[0].inputs
        spare = self._run("", "", "", "", {**self.worked, **{key: first[key] for key in VISIBLE}})
        self.all = [*self.sweep, *self.own, *[spare] * book.spare_rows]
        self.calls = [run.call() for run in self.all]

    def _run(self, ident: str, lever: str, words: str, setting: str | int, inputs: Mapping[str, Any]) -> Run:
        return Run(ident, lever, words, setting, inputs, values=self.table.values(inputs))

    def _of_sweep(self, row: Mapping[str, Any], found: dict[str, Merged]) -> Run:
        """A shipped run; where the results file repeats it, its figures take the place of the shipped ones."""
        spec = self.book.template["validation"]
        inputs = {**self.worked, **run_inputs(spec["rows"], row, spec["card"])}
        pair = found.pop(row["id"].casefold(), Merged(None, None))
        if pair.measured or pair.traced:
            inputs = inputs_of(pair, self.book.job, inputs, fixed=True)
        run = replace(
            self._run(row["id"], row["lever"], spec["lever_names"][row["lever"]], self._setting(row), inputs),
            outcome=OUT_OF_MEMORY if row["measured_oom"] else COMPLETED,
            peak=row["measured_peak_allocated_gb"],
            reserved=row["measured_peak_reserved_gb"],
            source=f"measured: {row['source']}",
        )
        for trace in getattr(self.book.presets, spec["rows"] + "_trace"):
            if trace["id"] == row["id"]:
                run = replace(
                    run,
                    trace_peak=_gb(trace["peak_allocated_bytes"]),
                    trace_reserved=_gb(trace["peak_reserved_bytes"]),
                )
        shipped = "" if pair.measured else run.source
        return _with_figures(run, pair, shipped)

    def _setting(self, row: Mapping[str, Any]) -> str | int:
        """What a run of the sweep sets its lever to, as the cell says it."""
        setting, words = str(row["lever_value"]), self.book.template["validation"]["settings"]
        if setting.isdigit():
            return int(setting)
        if setting.startswith(_TOP):
            return filled(words["upper"], count=setting.removeprefix(_TOP))
        return str(words.get(setting, setting))

    def _own(self, pair: Merged) -> Run:
        inputs = inputs_of(pair, self.book.job, self.worked, fixed=False)
        model = inputs["base_model"]
        setting = "" if model == self.book.job.worked["base_model"] else model.rpartition("/")[2][:20].strip()
        words = self.book.template["validation"]["lever_names"][OWN]
        return _with_figures(self._run(pair.id, OWN, words, setting, inputs), pair, "")

    def verdict(self, run: Run) -> str:
        """The verdict of a run, as it is shown."""
        return str(self.shown[run.values["verdict_code"] - 1])

    def known(self, figure: str, result: str = "") -> list[float]:
        """A figure of every run that has it: "error" of a result (without its sign), "above" or "trace_error"."""
        found = [getattr(run, figure)(*([result] if result else [])) for run in self.all]
        return [abs(value) if figure == "error" else value for value in found if value is not None]

    @property
    def peaks(self) -> list[float]:
        """The measured peaks."""
        return [run.peak for run in self.all if run.peak is not None]


def with_allowances(job: Job) -> dict[str, Any]:
    """The worked job's inputs, with the installation's allowances as they stand: what a closed table starts from."""
    allowances = {key: value for key, value in job.defaults().items() if not job.inputs[key].follows_job}
    return {**job.worked, **allowances}


def _gb(size: int | None) -> float | None:
    return None if size is None else size / 1e9


def _with_figures(run: Run, pair: Merged, shipped: str) -> Run:
    """The run with what the results file says of it. shipped: where its own measured figures come from."""
    if (row := pair.measured) is not None:
        failed = row.outcome == "oom"
        run = replace(
            run,
            outcome=OUT_OF_MEMORY if failed else COMPLETED,
            peak=_gb(row.peak_allocated_bytes),
            reserved=_gb(row.peak_reserved_bytes),
        )
    if (row := pair.traced) is not None:
        run = replace(run, trace_peak=_gb(row.peak_allocated_bytes), trace_reserved=_gb(row.peak_reserved_bytes))
    return replace(run, source="; ".join(text for text in (shipped, pair.source) if text))

"""Other people's runs as jobs: what describes each, what was measured, and what the traced formula predicts.

They are rows of presets/measured/public_runs.csv, a second block of evidence beside the shipped sweep: other models,
cards, versions and training loops, measured by others. Nothing in the formulas is fitted to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..formula.domains import allowed
from ..presets.catalogue import PUBLIC_INPUTS
from ..presets.names import shown
from .jobtable import JobTable
from .runs import Run, with_allowances

if TYPE_CHECKING:
    from ..formula.job import Job
    from ..presets.csv_file import Row

FILE = "presets/measured/public_runs.csv"
RESULT, AVAILABLE = "traced_allocated", "traced_available"


class PublicRun(NamedTuple):
    """One published run: its row of the file, and the same as a run of the table."""

    row: Row
    run: Run

    @property
    def error(self) -> float | None:
        """Predicted over measured peak, less 1, rounded as it is shown; None where nothing is predicted."""
        return self.run.error(RESULT)

    @property
    def ran_out(self) -> bool:
        """Whether the run ran out of memory: it has no peak, and must not fit."""
        return bool(self.row["ran_out"])

    @property
    def explained(self) -> bool:
        """Whether the formulas claim to cover what this run did."""
        return bool(self.row["explained"])


class PublicRuns:
    """All published runs of a job, the job table that predicts them, and what they say together."""

    def __init__(self, job: Job, rows: Sequence[Row]) -> None:
        self.job = job
        self.table = JobTable(job, (RESULT,), (AVAILABLE,))
        self.all = [self._run(row) for row in rows]

    def _run(self, row: Row) -> PublicRun:
        given = {key: row[key] for key in PUBLIC_INPUTS if row[key] not in (None, "")}
        where = f"{FILE}, run {row['id']}"
        if bool(row["ran_out"]) is (row["measured_gb"] is not None):
            raise ValueError(
                f"{where}: measured_gb is {shown(row['measured_gb'] or '')} and ran_out {row['ran_out']}; a run has a"
                " peak, or ran out of memory"
            )
        for key, value in given.items():
            try:
                given[key] = self.job.accepted({key: value})[key]
            except ValueError:
                right = allowed(self.job, key)
                raise ValueError(f"{where}: {key} is {shown(value)}; it should be {right}, or empty") from None
        inputs = {**with_allowances(self.job), **given}
        try:
            self.job.size((RESULT,), **inputs)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        values = self.table.values(inputs)
        run = Run(row["id"], "", "", "", inputs, peak=row["measured_gb"], source=row["source"], values=values)
        return PublicRun(row, run)

    def errors(self, which: Callable[[PublicRun], bool] = lambda _: True) -> list[float]:
        """The errors without their sign, of the runs that have one and are wanted; in the order of the file."""
        found = [(public.error, which(public)) for public in self.all]
        return [abs(error) for error, wanted in found if wanted and error is not None]

"""Rows of a table -> their results, and a sentence for each row that is refused: the one that Job.size() raises."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..formula import domains
from ..formula.expression import names_in
from ..formula.job import Job, names_of
from ..formula.vector import evaluated
from ..jobs import JOBS
from ..presets.catalogue import Presets
from .cells import MOST_REMEMBERED, Reader, given
from .layout import Layout, known_job, made, questions_in
from .rows import Array, Column, Rows


class Sized(NamedTuple):
    """numbers and ids: of each row, as in Rows. jobs: what each row is; None where the table does not say it.

    results: by name, an array with one a row; NaN, or "" for words, where there is none.
    errors: position -> why that row is refused.
    """

    numbers: Array
    ids: list[Any] | None
    jobs: list[Any] | None
    results: dict[str, Array]
    errors: dict[int, str]


class Sizer:
    """Sizes rows of a layout. presets: the catalogue; that of the package without it."""

    def __init__(self, layout: Layout, presets: Presets | None = None) -> None:
        self.layout, self.presets = layout, presets
        self.jobs: dict[str, Job] = {}
        self.readers: dict[tuple[str, str], Reader] = {}
        self.told: dict[Any, str] = {}

    def __call__(self, rows: Rows) -> Sized:
        """Size them."""
        count = len(rows.numbers)
        results = {
            key: np.full(count, "", dtype=object) if key in self.layout.texts else np.full(count, np.nan)
            for key in self.layout.results
        }
        sized = Sized(rows.numbers, rows.ids, None, results, dict(rows.faults))
        sound = np.ones(count, dtype=bool)
        sound[list(rows.faults)] = False
        if "job" not in rows.columns:
            at = np.arange(count) if rows.faults else None
            self._size(self.layout.job, rows, at if at is None else at[sound], sized)
            return sized
        column = rows.columns["job"]
        kinds = [
            self.layout.job if empty else _kind(cell)
            for cell, empty in zip(column.cells, column.empty.tolist(), strict=True)
        ]
        for name in JOBS:
            of_job = np.array([kind == name for kind in kinds], dtype=bool)[column.codes] & sound
            if of_job.any():
                self._size(name, rows, None if of_job.all() else np.flatnonzero(of_job), sized)
        known = np.array([kind in JOBS for kind in kinds], dtype=bool)[column.codes]
        for place in np.flatnonzero(~known & sound).tolist():
            cell = column.cells[column.codes[place]]
            sized.errors[place] = (
                f"job is {domains.told(cell)}; it must be one of {', '.join(JOBS)}{domains.nearest(cell, JOBS)}"
            )
        said = np.array([cell if kind is None else kind for cell, kind in zip(column.cells, kinds, strict=True)])
        return sized._replace(jobs=said.astype(object)[column.codes].tolist())

    def _job(self, name: str) -> Job:
        if name not in self.jobs:
            asked = questions_in(self.layout.results)
            self.jobs[name] = made(name, asked, self.presets) if self.presets else known_job(name, asked)
        return self.jobs[name]

    def _size(self, name: str, rows: Rows, at: Array | None, sized: Sized) -> None:
        """Put the results of the rows of one job, or their errors, where they belong. at: which rows; None for all."""
        job = self._job(name)
        given_for = {key: column for key, column in rows.columns.items() if key != "job"}
        count = len(rows.numbers) if at is None else len(at)
        if not count:
            return
        bad = np.zeros(count, dtype=bool)
        columns: dict[str, Any] = {}

        def refuse(faulty: Array, sentence: Any) -> None:
            for row in np.flatnonzero(faulty & ~bad).tolist():
                sized.errors[row if at is None else int(at[row])] = sentence(row)
            np.logical_or(bad, faulty, out=bad)

        for key, column in given_for.items():
            codes = column.codes if at is None else column.codes[at]
            used = np.bincount(codes, minlength=len(column.empty)) > 0
            if not (used & ~column.empty).any():
                continue
            if key not in job.inputs:
                refuse(~column.empty[codes], lambda row, key=key: self._no_input(job, key))
                continue
            columns[key], faults = self._column(job, key, column, codes)
            if faults:
                faulty = np.zeros(len(used), dtype=bool)
                faulty[list(faults)] = True
                refuse(faulty[codes], lambda row, faults=faults, codes=codes: faults[int(codes[row])])
        wanted = tuple(key for key in self.layout.results if key in job.trees)
        answer = evaluated(job, columns, count, wanted)
        for rule in job.rules_of(wanted):
            broken = ~answer[rule].astype(bool)
            if broken.any():
                refuse(
                    broken,
                    lambda row, rule=rule: self._contradiction(
                        job, rule, given_for, row if at is None else int(at[row])
                    ),
                )
        for key in wanted:
            values = answer[key]
            if bad.any():
                values[bad] = "" if key in self.layout.texts else np.nan
            sized.results[key][slice(None) if at is None else at] = values

    def _column(self, job: Job, key: str, column: Column, codes: Array) -> tuple[Any, dict[int, str]]:
        """A column as the vector engine takes it, for rows of these codes, and what is wrong with cells."""
        if (job.name, key) not in self.readers:
            self.readers[job.name, key] = Reader(job, key)
        values, texts, faults = self.readers[job.name, key].read(column)
        if texts is None:
            return values[codes], faults
        places = values[codes]
        used = np.bincount(places, minlength=len(texts)) > 0
        if used.all():
            return (texts, places), faults
        return ([text for text, one in zip(texts, used, strict=True) if one], (np.cumsum(used) - 1)[places]), faults

    def _no_input(self, job: Job, key: str) -> str:
        try:
            job.accepted({key: None})
        except TypeError as error:
            return str(error)
        raise AssertionError(key)

    def _contradiction(self, job: Job, rule: str, columns: dict[str, Column], row: int) -> str:
        """The sentence for a row that breaks a rule; rows that agree in what the sentence rests on share it."""
        place = ("rests on", job.name, rule)
        if place not in job.engines:
            terms = job.needed(names_of(job.checks[rule].message))
            rest = {name for key in terms for name in names_in(job.trees[key])}.union(
                names_of(job.checks[rule].message)
            )
            job.engines[place] = tuple(key for key in job.inputs if key in rest)
        said = {}
        for key in job.engines[place]:
            if key in columns:
                code = columns[key].codes[row]
                if not columns[key].empty[code]:
                    said[key] = given(columns[key].cells[code], bool(job.choices(key)))
        known = (job.name, rule, *((key, type(value), value) for key, value in said.items()))
        if known not in self.told:
            if len(self.told) >= MOST_REMEMBERED:
                self.told.clear()
            self.told[known] = job.contradiction(rule, said)
        return self.told[known]


def _kind(cell: Any) -> str | None:
    """The job that a cell names, if any."""
    name = cell.casefold() if isinstance(cell, str) else ""
    return name if name in JOBS else None

"""Results go back into a planner's workbook, and a planner's runs come out of it.

Into the Validation sheet by its defined names: a run is found by its id, a new one takes the first spare row, whose
predictions are live already. Into any other sheet by the texts of its header row.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..formula.render import public_name
from ..presets.names import one_line
from .own_runs import COMPLETED, KEY, MEASURED, NOT_GIVEN, OF_THE_MACHINE, OUT_OF_MEMORY, figure_names, input_names
from .patch import Package, WriteReport, open_package

if TYPE_CHECKING:
    from ..formula.job import Job

Cells = dict[tuple[str, int, int], Any]
MOST_COLUMNS = 500  # of a header row
# Headers of any other sheet, beside the columns of a results file: name -> column of a result, in GB of 1e9 bytes.
IN_GB = {
    "peak_allocated_gb": "peak_allocated_bytes",
    "peak_reserved_gb": "peak_reserved_bytes",
    "measured_peak_gb": "peak_allocated_bytes",
    "measured_reserved_gb": "peak_reserved_bytes",
}


def jobs_of(package: Package, jobs: Mapping[str, Job]) -> list[str]:
    """The jobs whose runs a workbook's Validation sheet holds: those of whose inputs it has every name."""
    return [name for name, job in jobs.items() if all(_has(package, cell) for cell in input_names(job).values())]


def _has(package: Package, defined: str) -> bool:
    try:
        package.area(defined)
    except ValueError:
        return False
    return True


def write_results(path: str | os.PathLike[str], results: Sequence[Mapping[str, Any]], job: Job) -> WriteReport:
    """Put results into the Validation sheet of a workbook. All are written, or none; a backup is kept.

    results: rows of results with the fields of their runs. Measured ones ("cuda") fill Measured, Outcome and Where
    from; traced ones the columns of the step trace and Where from; a run that the sheet does not have gets a spare
    row. Raises ValueError where it cannot be done safely: the file is then as it was.
    """
    package = open_package(path)
    where = one_line(str(path))
    keys = package.area(KEY)  # says what is wrong where the sheet or its names are missing
    names = {**figure_names(), **input_names(job)}
    columns = {key: package.area(defined) for key, defined in names.items()}
    ids = [str(value) if value is not None else "" for value in package.column_values(keys)]
    cells: Cells = {}

    def put(key: str, at: int, value: Any) -> None:
        area = columns[key]
        cells[area.sheet, area.first_row + at, area.first_column] = value

    def held(key: str, at: int) -> Any:
        area = columns[key]
        place = (area.sheet, area.first_row + at, area.first_column)
        return cells[place] if place in cells else package.cell(*place).value

    for row in results:
        known = [name.casefold() for name in ids]
        if row["id"].casefold() in known:
            at = known.index(row["id"].casefold())
            _same_run(row, job, lambda key, at=at: held(key, at), where)
        else:
            at = _free_row(ids, where)
            ids[at] = row["id"]
            cells[keys.sheet, keys.first_row + at, keys.first_column] = row["id"]
            put("lever", at, "Own run")
            put("setting", at, _setting(row, job))
            for key in input_names(job):
                put(key, at, _as_cell(row.get(key, job.inputs[key].default)))
        _put_figures(row, lambda key, value, at=at: put(key, at, value), held("source", at))
    return package.write(cells)


def _free_row(ids: Sequence[str], where: str) -> int:
    for at, name in enumerate(ids):
        if not name.strip():
            return at
    raise ValueError(
        f"{where}: the Validation sheet has no spare row left; run build.py with the file of results beside the"
        " workbook, which gives every run in it a row of its own"
    )


def _setting(row: Mapping[str, Any], job: Job) -> str:
    model = str(row.get("base_model") or "")
    return "" if model == job.worked.get("base_model") else model.rpartition("/")[2][:20].strip()


def _as_cell(value: Any) -> Any:
    return NOT_GIVEN if value is None else value


def _same_run(row: Mapping[str, Any], job: Job, held: Any, where: str) -> None:
    """ValueError when the sheet's run of this id is another one; where it ran may differ."""
    for key in input_names(job):
        if key in OF_THE_MACHINE or key not in row:
            continue
        mine, theirs = _as_cell(row[key]), held(key)
        same = mine == theirs if isinstance(theirs, (int, float)) else str(mine).casefold() == str(theirs).casefold()
        if not same:
            raise ValueError(
                f"{where}: the run {row['id']} has {key} {theirs!r} on the Validation sheet and {mine!r} in the result;"
                " give one of them another id"
            )


def _put_figures(row: Mapping[str, Any], put: Any, source: Any) -> None:
    peak, reserved = (_gb(row.get(key)) for key in ("peak_allocated_bytes", "peak_reserved_bytes"))
    failed = row["outcome"] == "oom"
    if failed:
        peak = reserved = None
    if row["backend"] == MEASURED:
        put("outcome", OUT_OF_MEMORY if failed else COMPLETED)
        put("measured_peak_gb", "none" if failed else peak)
        put("measured_reserved_gb", "none" if failed else reserved)
        for key in OF_THE_MACHINE:
            if key in row:
                put(key, _as_cell(row[key]))
    else:
        put("trace_peak_gb", peak)
        put("trace_reserved_gb", reserved)
    kind = str(row["source"]).partition(":")[0]
    others = [part for part in str(source or "").split("; ") if part and not part.startswith(f"{kind}:")]
    put("source", "; ".join([*others, str(row["source"])] if row["backend"] != MEASURED else [row["source"], *others]))


def _gb(size: Any) -> float | None:
    return None if size in (None, "") else float(size) / 1e9


# ------------------------------------------------------------------------------------------------ any sheet
def write_columns(
    path: str | os.PathLike[str], sheet: str, results: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> WriteReport:
    """Put results into a sheet of the planner's own: below each header that names a column of results.

    The header row is the first one with a cell "id"; its rows are found by that column, new runs go below the last.
    columns: the names that a header may have. Raises ValueError where there is no such row, and for what may not be
    written.
    """
    package = open_package(path)
    where = one_line(str(path))
    header, key_column = package.find_columns(sheet, ["id"])["id"]
    places: dict[str, int] = {}
    for column in range(key_column, key_column + MOST_COLUMNS):
        text = package.cell(sheet, header, column).value
        name = str(text).strip().casefold() if text is not None else ""
        if name in IN_GB or name in columns:
            places.setdefault(name, column)
    if set(places) <= {"id"}:
        raise ValueError(
            f"{where}: the sheet {sheet} has a header id and no column of results beside it; name one of them"
            f" peak_allocated_bytes, peak_allocated_gb or another column of the file of results"
        )
    rows: dict[str, int] = {}
    at = header + 1
    while (value := package.cell(sheet, at, key_column).value) is not None:
        rows.setdefault(str(value).strip().casefold(), at)
        at += 1
    cells: Cells = {}
    for result in results:
        row = rows.setdefault(result["id"].casefold(), at)
        at = max(at, row + 1)
        for name, column in places.items():
            value = _gb(result.get(IN_GB[name])) if name in IN_GB else result.get(name)
            if value is not None or name != "id":
                cells[sheet, row, column] = None if value == "" else value
    return package.write(cells)


# ------------------------------------------------------------------------------------------------ out of a workbook
def runs_of_validation(path: str | os.PathLike[str], jobs: Mapping[str, Job]) -> list[tuple[str, str, dict[str, Any]]]:
    """The runs of a Validation sheet: id, job, inputs as they stand in the cells."""
    package = open_package(path, read_only=True)
    ids = package.column_values(package.area(KEY))
    job = _only_job(package, jobs, path)
    columns = {key: package.column_values(package.area(name)) for key, name in input_names(jobs[job]).items()}
    runs = []
    for at, name in enumerate(ids):
        if name is not None and str(name).strip():
            values = {key: None if found[at] == NOT_GIVEN else found[at] for key, found in columns.items()}
            runs.append((str(name).strip(), job, {key: _whole(value) for key, value in values.items()}))
    return runs


def run_of_scenario(path: str | os.PathLike[str], jobs: Mapping[str, Job]) -> tuple[str, dict[str, Any]]:
    """What the planner has entered on the Sizing and Overrides sheets: the job, and its inputs."""
    package = open_package(path, read_only=True)
    job = _only_job(package, jobs, path)
    inputs = {}
    for key in jobs[job].inputs:
        name = public_name(key)
        if _has(package, name):
            area = package.area(name)
            value = package.cell(area.sheet, area.first_row, area.first_column).value
            inputs[key] = _whole(value)
    return job, inputs


def _only_job(package: Package, jobs: Mapping[str, Job], path: str | os.PathLike[str]) -> str:
    found = jobs_of(package, jobs)
    if not found:
        names = input_names(next(iter(jobs.values()))).values()
        lacking = next((name for name in names if not _has(package, name)), KEY)
        raise ValueError(
            f"{one_line(str(path))} is no workbook of build.py, or of an older one: it has no name {lacking}"
            f"; regenerate it with build.py"
        )
    return found[0]


def _whole(value: Any) -> Any:
    """A cell's number as Python's int where it is one; sheets hold every number as a float."""
    return int(value) if isinstance(value, float) and value == int(value) else value


def job_of(path: str | os.PathLike[str], jobs: Mapping[str, Job]) -> str:
    """The job of a workbook's Validation sheet."""
    return _only_job(open_package(path, read_only=True), jobs, path)


def backup_words(report: WriteReport, path: Path) -> str:
    """What was written, in a sentence."""
    if report.in_excel:
        return f"{report.cells} cells written into {path}, which Excel has open: save it there"
    if not report.cells:
        return f"{path} holds these figures already"
    kept = f"; the file as it was is {report.backup_path.name}" if report.backup_path else ""
    return f"{report.cells} cells written into {path}{kept}"

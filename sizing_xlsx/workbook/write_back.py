"""Results go back into a planner's workbook, and a planner's runs come out of it.

Into the Validation sheet by its defined names: a run is found by its id, a new one takes the first spare row, whose
predictions are live already. Into any other sheet by the texts of its header row.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..formula.domains import allowed
from ..formula.render import public_name
from ..measure.full_run import same_step
from ..presets.names import one_line
from .own_runs import COMPLETED, KEY, MEASURED, NOT_GIVEN, OF_THE_MACHINE, OUT_OF_MEMORY, figure_names, input_names
from .patch import Area, Package, WriteReport, open_package
from .scenario_file import chosen
from .sorts import refuse_plan

if TYPE_CHECKING:
    from ..formula.job import Job

Cells = dict[tuple[str, int, int], Any]
_UNKNOWN = {"outcome": "oom", "source": ""}  # of a run that is still to be made
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
    cells = _cells_of_results(package, results, job, one_line(str(path)))
    return package.write(cells, stale=_stale(package, cells, _columns(package, job, one_line(str(path))).values()))


def check_results(path: str | os.PathLike[str], runs: Sequence[Mapping[str, Any]], job: Job) -> None:
    """ValueError where results of these runs could not be written: what write_results() would say, and no write."""
    package = open_package(path)
    package.checked(_cells_of_results(package, [{**_UNKNOWN, **run} for run in runs], job, one_line(str(path))))


def _columns(package: Package, job: Job, where: str) -> dict[str, Area]:
    """The columns of the table of runs by key, "id" first. Raises ValueError unless they are one table still."""
    names = {"id": KEY, **figure_names(), **input_names(job)}
    columns = {key: package.area(defined) for key, defined in names.items()}
    keys = columns["id"]
    for key, area in columns.items():
        rows = area.last_row - area.first_row == keys.last_row - keys.first_row
        if (
            not rows
            or area.first_column != area.last_column
            or (area.sheet == keys.sheet and area.first_row != keys.first_row)
        ):
            raise ValueError(
                f"{where}: the names {KEY} and {names[key]} no longer cover the same rows, so that a run's cells cannot"
                " be told; rows were put into the table of runs or taken out of it: undo that, or run build.py anew"
            )
    return columns


def _cells_of_results(package: Package, results: Sequence[Mapping[str, Any]], job: Job, where: str) -> Cells:
    """What the results put where."""
    columns = _columns(package, job, where)
    keys = columns["id"]
    ids = [str(value).strip() if value is not None else "" for value in package.column_values(keys)]
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
            put("id", at, row["id"])
            for key in figure_names():  # what an emptied row has left is of another run
                put(key, at, None)
            put("lever", at, "Own run")
            put("setting", at, _setting(row, job) or None)
            for key in input_names(job):
                put(key, at, _as_cell(row.get(key, job.inputs[key].default)))
        _put_figures(row, lambda key, value, at=at: put(key, at, value), held("source", at))
    return cells


def _stale(package: Package, cells: Cells, table: Iterable[Area] = ()) -> Cells:
    """Formula cells whose stored results no longer hold, emptied, so that every program calculates them anew.

    On the sheets that change: those beside the table of runs, and in it those of the rows that change.
    """
    changed = {at for at, value in cells.items() if package.cell(*at).value != value}
    rows = {(sheet, row) for sheet, row, _ in changed}
    areas = list(table)
    stale: Cells = {}
    for sheet in {sheet for sheet, _, _ in changed}:
        inside = {row for area in areas if area.sheet == sheet for row in range(area.first_row, area.last_row + 1)}
        for row, values in package.rows(sheet).items():
            if row not in inside or (sheet, row) in rows:
                stale |= {(sheet, row, at): None for at in values if package.cell(sheet, row, at).formula}
    return stale


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
        if key == "training_recipe" and same_step(mine, theirs):
            continue
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
    cells = _cells_of_columns(package, sheet, results, columns, one_line(str(path)))
    _, key_column = package.find_columns(sheet, ["id"])["id"]  # ids made by formulas must be found the next time
    stale = {at: None for at in _stale(package, cells) if at[2] != key_column}
    return package.write(cells, stale=stale)


def check_columns(
    path: str | os.PathLike[str], sheet: str, runs: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> None:
    """ValueError where results of these runs could not be written: what write_columns() would say, and no write."""
    package = open_package(path)
    package.checked(_cells_of_columns(package, sheet, runs, columns, one_line(str(path))))


def _cells_of_columns(
    package: Package, sheet: str, results: Sequence[Mapping[str, Any]], columns: Sequence[str], where: str
) -> Cells:
    """What the results put where."""
    header, key_column = package.find_columns(sheet, ["id"])["id"]
    filled = package.rows(sheet)
    texts = filled[header].values()
    known = {text.strip().casefold() for text in texts if isinstance(text, str)} & {*IN_GB, *columns}
    places = {name: at[1] for name, at in package.find_columns(sheet, known).items() if name != "id"}
    if not places:
        raise ValueError(
            f"{where}: the sheet {sheet} has a header id and no column of results beside it; name one of them"
            f" peak_allocated_bytes, peak_allocated_gb or another column of the file of results"
        )
    rows: dict[str, int] = {}
    for at in range(header + 1, max(filled) + 1):
        value = package.cell(sheet, at, key_column).value
        if value is not None and (name := str(value).strip().casefold()):
            rows.setdefault(name, at)
    after = max(rows.values(), default=header) + 1
    cells: Cells = {}
    for result in results:
        name = result["id"].casefold()
        if name not in rows:
            cells[sheet, after, key_column] = result["id"]
            rows[name], after = after, after + 1
        for column, at in places.items():
            value = _gb(result.get(IN_GB[column])) if column in IN_GB else result.get(column)
            cells[sheet, rows[name], at] = None if value == "" else value
    return cells


# ------------------------------------------------------------------------------------------------ out of a workbook
def runs_of_validation(path: str | os.PathLike[str], jobs: Mapping[str, Job]) -> list[tuple[str, str, dict[str, Any]]]:
    """The runs of a Validation sheet: id, job, inputs as they stand in the cells."""
    package = open_package(path, read_only=True)
    where = one_line(str(path))
    name = _only_job(package, jobs, path)
    job = jobs[name]
    areas = _columns(package, job, where)
    columns = {key: package.column_values(areas[key]) for key in ("id", *input_names(job))}
    typed = [key for key in input_names(job) if areas[key].sheet == areas["id"].sheet]
    runs = []
    for at, value in enumerate(columns.pop("id")):
        ident = str(value).strip() if value is not None else ""
        line = f"{where}, {areas['id'].sheet} row {areas['id'].first_row + at + 1}"
        inputs = {key: found[at] for key, found in columns.items()}
        if ident:
            runs.append((ident, name, _inputs_of_cells(inputs, job, f"{line}, run {ident}")))
        elif found := next((key for key in typed if inputs[key] not in (None, "")), None):
            raise ValueError(f"{line} has {found} {inputs[found]!r} and no id; give the run an id, or empty the row")
    return runs


def _inputs_of_cells(cells: Mapping[str, Any], job: Job, where: str) -> dict[str, Any]:
    """Inputs as they stand in cells: none where one that is optional is not given, never where another is missing."""
    inputs = {}
    for key, value in cells.items():
        text, optional = value.strip().casefold() if isinstance(value, str) else value, job.inputs[key].optional
        if text in (None, "") and not optional:
            raise ValueError(f"{where}: {key} is empty; it must be {allowed(job, key)}")
        inputs[key] = None if text in (None, "") or (text == NOT_GIVEN and optional) else _whole(value)
    return inputs


def run_of_scenario(path: str | os.PathLike[str], jobs: Mapping[str, Job]) -> tuple[str, dict[str, Any]]:
    """What the Sizing sheet sizes: the job, and its inputs, typed there and on Overrides or in the row it is sent."""
    package = open_package(path, read_only=True)
    job = _only_job(package, jobs, path)
    if (row := chosen(package, one_line(str(path)), jobs[job])) is not None:
        return job, row.inputs
    cells = {}
    for key in jobs[job].inputs:
        area = package.area(public_name(key))
        cells[key] = package.cell(area.sheet, area.first_row, area.first_column).value
    return job, _inputs_of_cells(cells, jobs[job], one_line(str(path)))


def _only_job(package: Package, jobs: Mapping[str, Job], path: str | os.PathLike[str]) -> str:
    found = jobs_of(package, jobs)
    if not found:
        refuse_plan(package.known_names(), one_line(str(path)), "which has no table of runs")
        if _has(package, public_name("serving_engine")):
            raise ValueError(
                f"{one_line(str(path))} sizes serving, and holds what engines logged; it takes no runs of one's own: "
                "name a workbook that sizes training"
            )
        names = [list(input_names(job).values()) for job in jobs.values()]
        if not any(_has(package, name) for name in [KEY, *names[0], *names[-1]]):
            raise ValueError(
                f"{one_line(str(path))} has no table of runs: the name {KEY} is not there; name a workbook of build.py,"
                " or a sheet with a header row to write into"
            )
        package.area(KEY)
        lacking = [[name for name in of_job if not _has(package, name)] for of_job in names]
        package.area(min(lacking, key=len)[0])  # says what is wrong with it
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

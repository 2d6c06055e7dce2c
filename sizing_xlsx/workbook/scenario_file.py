"""Planned jobs of a planner's workbook, read as they were saved: rows of Scenarios, and the one that Sizing sizes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formula.domains import allowed
from ..jobs import JOBS, WORKBOOKS
from ..presets.names import one_line, shown
from .own_runs import NOT_GIVEN
from .patch import open_package
from .planner_file import PlannerFile
from .scenarios import AS_TYPED, CHOICE, TITLE, inputs_of_scenarios, list_name, standard
from .sorts import refuse_plan

if TYPE_CHECKING:
    from ..formula.job import Job


# An input that no other job has.
OWN_INPUT = {
    "lora": "lora_rank",
    "training": "parameter_storage",
    "full": "training_recipe",
    "serving": "serving_engine",
}


class PlannedJob(NamedTuple):
    """A row of Scenarios. where: file, sheet and row. inputs: every input that makes a job, checked."""

    name: str
    where: str
    inputs: dict[str, Any]


def scenarios_of(path: str | os.PathLike[str], job: Job) -> list[PlannedJob]:
    """The rows in use of a workbook's Scenarios sheet. ValueError: the row, the field, its value and what is right."""
    where = one_line(str(path))
    return _rows(open_package(path, read_only=True), where, job)


def scenario_of(path: str | os.PathLike[str], job: Job, name: str) -> PlannedJob:
    """The row of that name, whatever is wrong with others. ValueError where not one row alone has it."""
    where = one_line(str(path))
    return _row_of(open_package(path, read_only=True), where, job, name)


def chosen(file: PlannerFile, where: str, job: Job) -> PlannedJob | None:
    """The row that Sizing sizes; None where it sizes what is typed there, or the workbook has no such choice."""
    try:
        area = file.area(CHOICE)
    except ValueError:
        return None
    name = _text(file.cell(area.sheet, area.first_row, area.first_column).value)
    if not name or name.casefold() == _as_typed(file).casefold():
        return None
    return _row_of(file, where, job, name)


def _as_typed(file: PlannerFile) -> str:
    area = file.area(AS_TYPED)
    return _text(file.cell(area.sheet, area.first_row, area.first_column).value)


def _text(value: Any) -> str:
    """A name as it is compared: a number as a sheet shows it."""
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return "" if value is None else str(value).strip()


def _plans(file: PlannerFile, job: str) -> bool:
    """Whether a workbook's Scenarios are about a job: it has a column of one of its own inputs."""
    try:
        file.area(list_name(OWN_INPUT[job]))
    except ValueError:
        return False
    return True


def _typed_rows(file: PlannerFile, where: str, job: Job) -> list[tuple[int, str, dict[str, Any]]]:
    """Row from 1, name, and what is typed into its cells, for each row in use."""
    keys = ("name", *inputs_of_scenarios(job))
    refuse_plan(file.known_names(), where, "which has no Scenarios")
    others = [name for name in WORKBOOKS if name != job.name and _plans(file, name) and not _plans(file, job.name)]
    if others:
        instead = "use that command, or that file" if others[0] in JOBS else "its scenarios are sized in it alone"
        raise ValueError(f"{where} is the workbook of `{others[0]}`, not of `{job.name}`: {instead}")
    areas = {key: file.area(list_name(key)) for key in keys}
    columns = {key: file.column_values(area) for key, area in areas.items()}
    first, found = areas["name"].first_row, []
    for at, name in enumerate(columns.pop("name")):
        typed = {key: values[at] for key, values in columns.items() if values[at] not in (None, "")}
        if typed or _text(name):
            found.append((first + at + 1, _text(name), typed))
    return found


def _rows(file: PlannerFile, where: str, job: Job) -> list[PlannedJob]:
    found = [_planned(row, where, job) for row in _typed_rows(file, where, job)]
    seen: dict[str, str] = {}
    for planned in found:
        if planned.name.casefold() in seen:
            raise ValueError(
                f"{planned.where}: Job is {shown(planned.name)}, as in {seen[planned.name.casefold()]}; "
                "it must be a name that no other row has"
            )
        seen[planned.name.casefold()] = planned.where.rpartition(", ")[2]
    return found


def _row_of(file: PlannerFile, where: str, job: Job, name: str) -> PlannedJob:
    rows = _typed_rows(file, where, job)
    named = [row for row in rows if row[1].casefold() == name.strip().casefold()]
    if len(named) != 1:
        known = ", ".join(shown(row[1]) for row in rows[:12] if row[1])
        how_many = f"{len(named)} rows have" if named else "no row has"
        raise ValueError(
            f"{where}: the scenario is {shown(name)}, which {how_many}; it must be one of {known or 'none'}"
        )
    return _planned(named[0], where, job)


def _planned(row: tuple[int, str, dict[str, Any]], where: str, job: Job) -> PlannedJob:
    """A row with every input, blanks as the sheet takes them. What is main in the template must be filled in."""
    from .template import load_template

    number, name, typed = row
    at = f"{where}, {TITLE} row {number}"
    if not name:
        raise ValueError(f"{at}: Job is empty; it must be a name that no other row has")
    main = {column["input"] for column in load_template(job.name)["scenarios"]["columns"]}
    inputs = standard(job)
    for key in inputs:
        if key not in typed:
            if key in main:
                raise ValueError(f"{at}, job {shown(name)}: {key} is empty; it must be {allowed(job, key)}")
            continue
        value = typed[key]
        if job.inputs[key].optional and isinstance(value, str) and value.strip().casefold() == NOT_GIVEN:
            inputs[key] = None
            continue
        try:
            inputs[key] = job.accepted({key: int(value) if _whole(value) else value})[key]
        except ValueError as error:
            raise ValueError(f"{at}, job {shown(name)}: {error}") from None
    return PlannedJob(name, at, inputs)


def _whole(value: Any) -> bool:
    return isinstance(value, float) and value == int(value)

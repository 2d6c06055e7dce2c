"""Planned jobs: which columns the table of scenarios has, where they stand, and the rows that it opens on.

Main inputs stand first and must be filled in; every other input has a column further right, where an empty cell
takes the worked job's value. A row is used once its name or any input is filled in. The template says what is main
and which jobs are there when the workbook opens; a planner may type over all of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from ..formula.domains import nearest
from ..formula.render import column_name
from .jobtable import ROW, JobTable
from .own_runs import NOT_GIVEN
from .runs import with_allowances

if TYPE_CHECKING:
    from ..formula.job import Job
    from .book import Book

TITLE, WORKINGS = "Scenarios", "Scenario workings"
FIRST = 11  # row of the first job, from 0, on both sheets
CHOICE = "Scenario_Choice"  # the cell of Sizing that says which job is sized
AS_TYPED = "Scenario_As_Typed"  # the choice that stands for what is typed on Sizing
RESULTS = ("verdict_code", "total_reserved_gb", "card_utilisation")
COLUMNS = ("name", "owner", "date", "note", "verdict", "total_reserved_gb", "message")  # beside the inputs
LONGEST_NAME, LONGEST_NOTE = 60, 300
LISTED, CARD_COLUMNS = 5, 5  # columns of the two lists beside the workings
NAMED = {  # columns by name: what the summary and other sheets read
    "number": "Scenario_Numbers_List",
    "own_values": "Scenario_Own_Values_List",
    "used": "Scenario_Used_List",
    "counted": "Scenario_Counted_List",
    "left_out": "Scenario_Left_Out_List",
}
LAYERS = "Scenario_Layer_Count_List"
KEYS, CHOICES = "Scenario_Keys_List", "Scenario_Choices_List"
HEADS, CHECKS, LABELS, RIGHT = (f"Scenario_Inputs_{word}_List" for word in ("Head", "Check", "Label", "Right"))
JOBS_ON_CARD, ORDER, CARD_IN_FORCE = "Scenario_Card_Jobs_List", "Scenario_Card_Order_List", "Scenario_Card_List"
_SHEET_START = date(1899, 12, 30)  # day 0 of a sheet's calendar, for days from March 1900 on


def list_name(column: str) -> str:
    """The defined name of a column of Scenarios: "batch_size" -> "Scenarios_Batch_Size_List"."""
    return column_name("scenarios", column)


def sheet_day(day: date) -> int:
    """A date as the number that a sheet keeps for it."""
    return (day - _SHEET_START).days


def inputs_of_scenarios(job: Job) -> list[str]:
    """Every input that makes a job: those that a row of Scenarios has a column for."""
    return [key for key, declared in job.inputs.items() if declared.follows_job]


def standard(job: Job) -> dict[str, Any]:
    """What an empty cell stands for: the worked job's value, none for an input that is optional."""
    return {key: job.worked[key] for key in inputs_of_scenarios(job)}


@dataclass(frozen=True)
class Scenario:
    """One row. typed: what its input cells hold, by input; an empty row has no name and nothing typed."""

    name: str
    owner: str
    day: date | None
    note: str
    typed: Mapping[str, Any]
    inputs: Mapping[str, Any]
    values: Mapping[str, Any]

    @property
    def used(self) -> bool:
        """Whether anything stands in the row."""
        return bool(self.name or self.typed)


class Scenarios:
    """The table: its columns on both sheets, and all prepared rows."""

    def __init__(self, book: Book) -> None:
        job, spec = book.job, book.template["scenarios"]
        where = f"templates/{job.name}.toml: scenarios"
        known = inputs_of_scenarios(job)
        self.spec = spec
        self.main = [column["input"] for column in spec["columns"]]
        for key in self.main:
            if key not in known:
                raise ValueError(f"{where}: {key} is no input of a job{nearest(key, tuple(known))}")
        overrides = {override.input_name for override in job.overrides.values()}
        rest = [key for key in known if key not in self.main]
        self.further = [key for key in rest if key not in overrides]
        self.own = [key for key in rest if key in overrides]
        self.inputs = [*self.main, *self.further, *self.own]
        self.heads = {key: job.inputs[key].label for key in self.inputs}
        self.heads |= {column["input"]: column["head"] for column in spec["columns"]}
        self.rules = job.fault_rules
        told = {name for rule in self.rules for name in re.findall(r"[a-z]+(?:_[a-z0-9]+)+", job.checks[rule].message)}
        shown = [key for key in job.order if key in told and key not in self.rules]
        self.table = JobTable(job, RESULTS, (*shown, *self.rules), self.inputs)
        self.standard = standard(job)
        self._allowances = with_allowances(job)
        spare = self._scenario({}, {})
        rows = [self._example(book, entry, f"{where}, job {at}") for at, entry in enumerate(spec["jobs"], 1)]
        self.examples = [row for row in rows if row is not None]
        if len(self.examples) > spec["rows"]:
            raise ValueError(f"{where}: rows is {spec['rows']}; it must be at least {len(rows)}, the number of jobs")
        self.printed: int = min(spec["printed"], spec["rows"])  # rows of the print area
        self.all = [*self.examples, *[spare] * (spec["rows"] - len(self.examples))]

    @property
    def last(self) -> int:
        """The last prepared row, from 0."""
        return FIRST + len(self.all) - 1

    def column(self, key: str) -> int:
        """Where an input is typed on Scenarios, from 0."""
        if key in self.main:
            return self.first_main + self.main.index(key)
        if key in self.further:
            return self.first_further + self.further.index(key)
        return self.first_own + self.own.index(key)

    # columns of Scenarios, from 0, in their order
    number, name, verdict, total, utilisation, first_main = range(6)

    @property
    def owner(self) -> int:
        """Owner, date and note follow the main inputs."""
        return self.first_main + len(self.main)

    @property
    def note(self) -> int:
        """The last column that is printed with the jobs."""
        return self.owner + 2

    @property
    def fault(self) -> int:
        """Which cell is wrong; what is wrong with it stands beside it."""
        return self.note + 1

    @property
    def cards(self) -> int:
        """The first of the five columns that say what fits which card, between two narrow ones."""
        return self.fault + 3

    @property
    def first_further(self) -> int:
        """The inputs that may stay empty."""
        return self.cards + 6

    @property
    def first_own(self) -> int:
        """Own values in place of presets."""
        return self.first_further + len(self.further)

    @property
    def end(self) -> int:
        """The right gutter."""
        return self.first_own + len(self.own)

    # -- rows

    def _example(self, book: Book, entry: Mapping[str, Any], where: str) -> Scenario | None:
        """A row of the template, or None where the presets lack what it names: a catalogue may be another."""
        given = entry.get("inputs", {})
        for key in given:
            if key not in self.inputs:
                raise ValueError(f"{where}: {key} is no input of a job{nearest(key, tuple(self.inputs))}")
        try:
            typed = book.job.accepted({**{key: self.standard[key] for key in self.main}, **given})
        except ValueError:
            return None
        made = self._scenario(entry, typed)
        return made if all(made.values[rule] for rule in self.rules) else None

    def _scenario(self, entry: Mapping[str, Any], typed: Mapping[str, Any]) -> Scenario:
        inputs = {**self.standard, **typed}
        values = self.table.values({**self._allowances, **inputs})
        return Scenario(
            entry.get("name", ""), entry.get("owner", ""), entry.get("date"), entry.get("note", ""), typed, inputs,
            values,
        )  # fmt: skip

    def held(self, scenario: Scenario, key: str) -> Any:
        """What the workings hold for an input of a row: its value, or the word for an optional one not given."""
        value = scenario.inputs[key]
        return NOT_GIVEN if value is None else value


class Place:
    """Where the columns of the workings stand, from 0."""

    def __init__(self, scenarios: Scenarios) -> None:
        self.table = scenarios.table
        after = 2 + len(self.table.columns)
        rules = ["name", *scenarios.rules]
        keys = [
            "number", "filled", "used", "own_values",
            *(f"{key}!" for key in scenarios.inputs), *(f"{rule}!" for rule in rules),
            "faults", "all_faults", "position", "counted", "left_out", "value", "check", "where",
            *(f"{rule}?" for rule in rules), "message",
        ]  # fmt: skip
        self.extra = {key: after + at for at, key in enumerate(keys)}
        self.listed = after + len(keys) + 1
        self.cards = self.listed + LISTED + 1
        self.end = self.cards + CARD_COLUMNS

    def __getitem__(self, key: str) -> int:
        """The column of a result, an input, "used"; of a fault as "batch_size!", of a rule's message as "name?"."""
        return self.extra[key] if key in self.extra else 2 + self.table.column(key)

    def cell(self, key: str) -> str:
        """A column's cell in the same row of the workings, with ROW for its number."""
        return f"${letters(self[key])}{ROW}"

    def across(self, first: str, last: str) -> str:
        """The cells from one column to another in the same row."""
        return f"{self.cell(first)}:{self.cell(last)}"

    def from_outside(self, key: str) -> str:
        """The cell as another sheet's row refers to it."""
        return f"'{WORKINGS}'!{self.cell(key)}"


def letters(column: int) -> str:
    from xlsxwriter.utility import xl_col_to_name

    return str(xl_col_to_name(column))


def area(column: int, first: int, last: int) -> str:
    """Cells of a column of the workings, as other sheets refer to them; rows from 0."""
    return f"'{WORKINGS}'!${letters(column)}${first + 1}:${letters(column)}${last + 1}"


def input_area(scenarios: Scenarios, key: str) -> str:
    """An input's values in force, over all rows."""
    return area(Place(scenarios)[key], FIRST, scenarios.last)

"""What a planner typed into a plan's workbook, read back by name: jobs, cards, offers and settings open a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ...capacity.kinds import KINDS
from ...formula.render import column_name, public_name
from ...planning.row_states import COLUMNS, empty
from .book import CARD_NUMBERS
from .jobs import list_name

# Tables of the template that stand on sheets: each column, and the defined name of its cells.
TABLES: Mapping[str, Mapping[str, str]] = {
    "jobs": {column: list_name(column) for column in COLUMNS},
    "cards": {"name": "Cards_Card_List", **{key: column_name("cards", key) for key in CARD_NUMBERS}},
    "offers": {"card": "Offers_Card_List", "cards": "Offers_Count_List"},
}


def setting_names(template: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The defined name of each setting's cell -> kind of job and input; kind "" where all kinds share it."""
    found = {public_name(key): ("", key) for section in template["settings"] for key in section["rows"]}
    for kind in KINDS:
        spec = template["kinds"][kind]
        keys = (*spec["blank"], *spec["common"])
        found |= {f"{kind.capitalize()}_{public_name(key)}": (kind, key) for key in keys}
    return found


def opened_with(template: Mapping[str, Any], settings: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """The template with other values in the cells of settings, by kind of job and input."""
    opens = {**template["opens"], **{key: value for (kind, key), value in settings.items() if not kind}}
    kinds = {
        kind: {**spec, "inputs": {**spec["inputs"], **{key: settings[of, key] for of, key in settings if of == kind}}}
        for kind, spec in template["kinds"].items()
    }
    return {**template, "opens": opens, "kinds": kinds}


def template_of(path: Path, template: Mapping[str, Any]) -> dict[str, Any]:
    """The template opened on what stands in a plan's workbook. Raises ValueError where the file is no plan."""
    import openpyxl

    try:
        book = openpyxl.load_workbook(path, data_only=True)
    except Exception as error:  # zip, XML and key errors of whatever the file holds
        raise ValueError(f"{path} cannot be read as a workbook: {error}") from None
    if list_name("job_kind") not in book.defined_names or "Plan_Start" not in book.defined_names:
        raise ValueError(f"{path} is no capacity plan of this program; name a CSV, or a plan that it wrote")
    tables = {table: _rows(book, names) for table, names in TABLES.items()}
    settings = {at: _cells(book, name)[0] for name, at in setting_names(template).items()}
    return {**opened_with(template, settings), **tables}


def _cells(book: Any, name: str) -> Sequence[Any]:
    if name not in book.defined_names:
        raise ValueError(
            f"the plan lacks the name {name}; it was written by another version, so take its rows as a CSV"
        )
    sheet, area = next(iter(book.defined_names[name].destinations))
    cells = book[sheet][area.replace("$", "")]
    found = [row[0].value for row in cells] if isinstance(cells, tuple) else [cells.value]
    return [value.date() if isinstance(value, datetime) else value for value in found]


def _rows(book: Any, names: Mapping[str, str]) -> list[dict[str, Any]]:
    return rows_of({key: _cells(book, name) for key, name in names.items()})


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows in use, those before an unused one too: a row keeps its place. Empty cells are left out."""
    count = max(
        (at + 1 for values in columns.values() for at, value in enumerate(values) if not empty(value)), default=0
    )
    return [
        {key: values[at] for key, values in columns.items() if at < len(values) and not empty(values[at])}
        for at in range(count)
    ]

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


def template_of(path: Path, template: Mapping[str, Any]) -> dict[str, Any]:
    """The template opened on what stands in a plan's workbook. Raises ValueError where the file is no plan."""
    import openpyxl

    try:
        book = openpyxl.load_workbook(path, data_only=True)
    except Exception as error:  # zip, XML and key errors of whatever the file holds
        raise ValueError(f"{path} cannot be read as a workbook: {error}") from None
    if list_name("job_kind") not in book.defined_names or "Plan_Start" not in book.defined_names:
        raise ValueError(f"{path} is no capacity plan of this program; name a CSV, or a plan that it wrote")
    jobs = _rows(book, {column: list_name(column) for column in COLUMNS})
    cards = _rows(book, {"name": "Cards_Card_List"} | {key: column_name("cards", key) for key in CARD_NUMBERS})
    offers = _rows(book, {"card": "Offers_Card_List", "cards": "Offers_Count_List"})
    opens = dict(template["opens"])
    for section in template["settings"]:
        for key in section["rows"]:
            opens[key] = _cells(book, public_name(key))[0]
    kinds = {}
    for kind in KINDS:
        spec = template["kinds"][kind]
        inputs = {
            key: _cells(book, f"{kind.capitalize()}_{public_name(key)}")[0] for key in (*spec["blank"], *spec["common"])
        }
        kinds[kind] = {**spec, "inputs": {**spec["inputs"], **inputs}}
    return {**template, "jobs": jobs, "cards": cards, "offers": offers, "opens": opens, "kinds": kinds}


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
    """Rows in use, those before an unused one too: a row keeps its place. Empty cells are left out."""
    columns = {key: _cells(book, name) for key, name in names.items()}
    count = max(
        (at + 1 for values in columns.values() for at, value in enumerate(values) if not empty(value)), default=0
    )
    return [{key: values[at] for key, values in columns.items() if not empty(values[at])} for at in range(count)]

"""A workbook with every prepared row of Scenarios in use: how long it takes to recalculate after one input changed."""

from __future__ import annotations

from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook.build import write_book
from sizing_xlsx.workbook.template import load_template

from .measure import Line

LIMIT_S = 0.2
CELL = "Scenarios_Batch_Size_List"


def lines(repeats: int) -> list[Line]:
    """The fine-tuning workbook in Formualizer, where that is installed: after an input of Sizing, and of a row."""
    if not find_spec("formualizer"):
        return []
    import formualizer

    with TemporaryDirectory() as folder:
        path = Path(folder) / "full.xlsx"
        rows = full_workbook(path)
        book = formualizer.load_workbook(str(path))
        book.evaluate_all()
        found = [(name, *cell_of(path, name)) for name in ("Batch_Size", CELL)]
        taken: dict[str, list[float]] = {name: [] for name, *_ in found}
        for repeat in range(repeats):
            for name, sheet, row, column in found:
                book.set_value(sheet, row, column, float(2 + repeat))
                began = process_time()
                book.evaluate_all()
                taken[name].append(process_time() - began)
    words = {"Batch_Size": "an input of Sizing", CELL: "an input of a row"}
    return [
        Line(
            f"recalculation after {words[name]}, {rows} scenarios in use",
            f"{median(spent) * 1e3:.0f} ms",
            f"<= {LIMIT_S * 1e3:.0f} ms",
            median(spent) <= LIMIT_S,
            "Formualizer, all sheets",
        )
        for name, spent in taken.items()
    ]


def full_workbook(path: Path) -> int:
    """The fine-tuning workbook with the template's jobs repeated until no row is empty; how many rows."""
    template = load_template("lora")
    spec = template["scenarios"]
    jobs = [deepcopy(spec["jobs"][at % len(spec["jobs"])]) for at in range(spec["rows"])]
    for at, entry in enumerate(jobs, 1):
        entry["name"] = f"{entry['name']} {at}"
    spec["jobs"] = jobs
    write_book(path, "lora", template, load_presets())
    return len(jobs)


def cell_of(path: Path, name: str) -> tuple[str, int, int]:
    """Sheet, row and column of a defined name's first cell, from 1."""
    from sizing_xlsx.workbook.planner_file import PlannerFile

    area = PlannerFile(path.read_bytes(), path.name).area(name)
    return area.sheet, area.first_row + 1, area.first_column + 1

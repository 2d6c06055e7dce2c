"""Stored results that no longer hold are taken away, so that every program calculates them when it opens the file.

A result is stale where a cell changed on which its formula rests, by name or by address, through however many others.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

from ..planner_file import Area
from ..sheet_part import box
from . import record as records
from .cells import Cell
from .draft import Draft
from .parts import MAIN

At = tuple[str, int, int]
_TEXT = re.compile(r'"(?:[^"]|"")*"')
_REFERENCE = re.compile(
    r"(?:(?P<sheet>'(?:[^']|'')+'|[^\W\d][\w.]*)!)?"
    r"(?P<area>\$?[A-Za-z]{1,3}\$?[0-9]{1,7}(?::\$?[A-Za-z]{1,3}\$?[0-9]{1,7})?)(?![\w.(!])"
    r"|(?P<name>[^\W\d][\w.]*)(?![\w.(!])"
)


def drop_stale(draft: Draft) -> None:
    """Takes away the stored results that rest on the changed cells of a draft, in our sheets."""
    if not draft.dirty:
        return
    sheets = [sheet.title for sheet in draft.book.sheets if sheet.kind == "worksheet"]
    names: dict[str, Area] = {}
    for name, text in draft.book.everywhere.items():
        try:
            names[name] = records.area_of(text)
        except ValueError:
            continue
    cells = {title: draft.book.cells(title) for title in sheets}
    stale = dependents(cells, names, draft.dirty)
    for title, row, column in stale:
        element = cells[title][row, column].element
        stored = element.find(MAIN + "v")
        if stored is not None:
            draft.sheet_tree(title)
            element.remove(stored)
            element.attrib.pop("t", None)


def dependents(
    cells: Mapping[str, Mapping[tuple[int, int], Cell]], names: Mapping[str, Area], changed: Iterable[At]
) -> set[At]:
    """The formula cells that rest on changed ones. names: folded name -> its cells."""
    single: dict[At, list[At]] = defaultdict(list)
    ranges: dict[tuple[str, int], list[tuple[int, int, At]]] = defaultdict(list)
    for title, found in cells.items():
        for (row, column), cell in found.items():
            if cell.formula is None:
                continue
            at = (title, row, column)
            for area in areas_of(cell.formula, title, names):
                if (area.first_row, area.first_column) == (area.last_row, area.last_column):
                    single[area.sheet, area.first_row, area.first_column].append(at)
                    continue
                for inner in range(area.first_column, area.last_column + 1):
                    ranges[area.sheet, inner].append((area.first_row, area.last_row, at))
    stale: set[At] = set()
    waiting = deque(changed)
    while waiting:
        sheet, row, column = waiting.popleft()
        resting = [*single.get((sheet, row, column), ())]
        resting += [at for first, last, at in ranges.get((sheet, column), ()) if first <= row <= last]
        for at in resting:
            if at not in stale:
                stale.add(at)
                waiting.append(at)
    return stale


def areas_of(formula: str, home: str, names: Mapping[str, Area]) -> Iterable[Area]:
    """The cells that a formula reads. home: the sheet that it stands on."""
    for found in _REFERENCE.finditer(_TEXT.sub('""', formula)):
        if found["name"]:
            area = names.get(found["name"].casefold())
            if area:
                yield area
            continue
        cells = box(found["area"])
        sheet = found["sheet"] or home
        if cells:
            title = sheet[1:-1].replace("''", "'") if sheet.startswith("'") else sheet
            yield Area(title, cells[0], cells[2], cells[1], cells[3])

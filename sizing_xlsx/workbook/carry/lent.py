"""A record for a workbook that has none, borrowed from a later version's: only what is known by a name."""

from __future__ import annotations

from . import record as records
from .changes import row_key
from .old_book import OldBook
from .record import Grid, Record
from .shapes import digest


def lent(old: OldBook, new: Record) -> Record:
    """What in the new record fits an old workbook: names that both have; rows by their keys where they have any."""
    names = {name: area for name in new.names if (area := old.place_of(name)) is not None}
    names[records.MAP] = new.names.get(records.MAP, next(iter(names.values())))
    grids: dict[str, Grid] = {sheet.title: {} for sheet in old.sheets if sheet.title in new.grids}
    typed = {}
    for name, first in new.typed.items():
        area = names.get(name)
        if area is None:
            continue
        theirs = new.names[name]
        typed[name] = min(first, area.last_row - area.first_row)
        rows = _rows(old, new, name)
        for at in range(area.last_row - area.first_row + 1):
            to = rows.get(at)
            code = 0 if to is None else new.grids[theirs.sheet].get((theirs.first_row + to, theirs.first_column), 0)
            if code and area.sheet in grids:
                grids[area.sheet][area.first_row + at, area.first_column] = code
        for row in range(area.first_row, area.last_row + 1):
            if area.sheet in grids:
                grids[area.sheet].setdefault((row, area.first_column), 0)
    opened = {name: value for name, value in new.opened.items() if name in names}
    return Record(old.version, new.job, names, typed, grids, {}, opened, {}, [])


def _rows(old: OldBook, new: Record, name: str) -> dict[int, int]:
    """Row of the old table -> row of the new one."""
    area = old.place_of(name)
    assert area is not None
    count = area.last_row - area.first_row + 1
    key = row_key(name, new)
    if key is None or old.place_of(key) is None:
        theirs = new.names[name]
        return {at: at for at in range(min(count, theirs.last_row - theirs.first_row + 1))}
    theirs = new.names[key]
    codes = {
        new.grids[theirs.sheet].get((row, theirs.first_column), 0): row - theirs.first_row
        for row in range(theirs.last_row, theirs.first_row - 1, -1)
    }
    return {at: codes[code] for at, value in enumerate(old.values(key)) if (code := digest(value)) and code in codes}

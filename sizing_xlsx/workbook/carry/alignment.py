"""Where the rows and columns of one of our sheets stand now, after a planner has put others between them.

Rows are matched by what their cells say (formulas without addresses, texts), not by names alone: a note in the
margin or a typed value does not hide a row, and rows that were taken out are told from those that moved.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

Grid = Mapping[tuple[int, int], int]  # row and column from 0 -> digest
Key = tuple[int, ...]  # what the cells of a row say


class Alignment(NamedTuple):
    """Recorded row -> row now, and the same for columns; what was taken out is missing."""

    rows: Mapping[int, int]
    columns: Mapping[int, int]

    def now(self, row: int, column: int) -> tuple[int, int] | None:
        """Where a recorded cell stands now."""
        at = self.rows.get(row), self.columns.get(column)
        return None if at[0] is None or at[1] is None else (at[0], at[1])

    @property
    def moved(self) -> bool:
        """Whether anything stands elsewhere."""
        return any(a != b for line in self for a, b in line.items())


def align(recorded: Grid, now: Grid, typed: Collection[tuple[int, int]]) -> Alignment:
    """The alignment of a sheet. typed: recorded places that may hold anything."""
    rows = {row for row, _ in recorded} | {row for row, _ in typed}
    columns = {column for _, column in recorded} | {column for _, column in typed}
    fixed = {at: code for at, code in recorded.items() if at not in typed}
    if all(now.get(at) == code for at, code in fixed.items()):
        return Alignment({row: row for row in rows}, {column: column for column in columns})
    matched = _matched_rows(_by_row(fixed), _by_row(now))
    columns_now = _columns(fixed, now, matched, columns)
    return Alignment(_filled(matched, rows), _filled(columns_now, columns))


def _by_row(grid: Grid) -> dict[int, list[int]]:
    lines: dict[int, list[int]] = defaultdict(list)
    for row, column in sorted(grid):
        lines[row].append(grid[row, column])
    return lines


def _matched_rows(recorded: Mapping[int, list[int]], now: Mapping[int, list[int]]) -> dict[int, int]:
    known = {code for line in recorded.values() for code in line}
    old = sorted(recorded)
    new = sorted(now)
    old_keys = [tuple(recorded[row]) for row in old]
    new_keys = [tuple(code for code in now[row] if code in known) for row in new]
    found: dict[int, int] = {}
    for same, first, last, start, stop in _blocks(old_keys, new_keys):
        if same:
            found |= dict(zip(old[first:last], new[start:stop], strict=True))
            continue
        # Rows with a note or a changed cell: those that still share half of what they said, in their order.
        at = start
        for row in old[first:last]:
            line = Counter(recorded[row])
            for candidate in range(at, stop):
                shared = sum((line & Counter(now[new[candidate]])).values())
                if 2 * shared >= line.total():
                    found[row], at = new[candidate], candidate + 1
                    break
    return found


def _blocks(old: Sequence[Key], new: Sequence[Key]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Runs of rows that say the same, and runs between them that do not: same, old from and to, new from and to.

    Rows of a table say the same as one another. So what is alike from the top and from the bottom is taken first, and
    where as many rows lie between, and most of them are alike in their places, nothing has moved: looking for the
    longest run alone would put the rows below a changed one in the place of those above it.
    """
    top, most = 0, min(len(old), len(new))
    while top < most and old[top] == new[top]:
        top += 1
    bottom = 0
    while bottom < most - top and old[-1 - bottom] == new[-1 - bottom]:
        bottom += 1
    end, end_now = len(old) - bottom, len(new) - bottom
    yield True, 0, top, 0, top
    alike = [a == b for a, b in zip(old[top:end], new[top:end_now], strict=False)]
    if end == end_now and 2 * sum(alike) >= len(alike):
        for at, same in enumerate(alike, top):
            yield same, at, at + 1, at, at + 1
    else:
        matcher = SequenceMatcher(None, old[top:end], new[top:end_now], autojunk=False)
        for tag, first, last, start, stop in matcher.get_opcodes():
            yield tag == "equal", top + first, top + last, top + start, top + stop
    yield True, end, len(old), end_now, len(new)


def _columns(fixed: Grid, now: Grid, rows: Mapping[int, int], columns: Collection[int]) -> dict[int, int]:
    """Each column goes where most of its cells are found again, near the column before it."""
    places: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (row, column), code in now.items():
        places[row][code].append(column)
    votes: dict[int, Counter[int]] = {column: Counter() for column in columns}
    for (row, column), code in fixed.items():
        for there in places[rows.get(row, -1)].get(code, ()):
            votes[column][there] += 1
    found: dict[int, int] = {}
    shift = 0
    for column in sorted(columns):
        counted = votes[column]
        if counted:
            most = max(counted.values())
            there = min((at for at, count in counted.items() if count == most), key=lambda at: abs(at - column - shift))
            shift = there - column
            found[column] = there
    return found


def _filled(found: Mapping[int, int], wanted: Collection[int]) -> dict[int, int]:
    """The map, with what says nothing itself (spare rows, gutters) as far from its neighbour as it was."""
    filled = dict(found)
    known = sorted(found)
    for line in wanted:
        if line in filled or not known:
            continue
        before = [at for at in known if at < line]
        after = [at for at in known if at > line]
        # A line between two that moved alike moved with them; one that is gone leaves no room and is left out.
        if before and after:
            low, high = before[-1], after[0]
            if found[low] - low == found[high] - high:
                filled[line] = line + found[low] - low
        elif before:
            filled[line] = line + found[before[-1]] - before[-1]
        else:
            filled[line] = line + found[after[0]] - after[0]
    return filled

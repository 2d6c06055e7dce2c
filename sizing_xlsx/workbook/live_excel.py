"""Values into a workbook that is open in Excel on this machine, through xlwings where that is installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..presets.names import counted, one_line
from .sheet_part import Value, address

Block = tuple[str, int, int, list[list[Value]]]  # sheet, first row, first column, rows of values


def is_open(path: Path) -> bool:
    """Whether a running Excel has the workbook open and can be reached."""
    return _find(path) is not None


def put(path: Path, cells: Mapping[tuple[str, int, int], Value]) -> bool:
    """Set cells of the open workbook, a call for each block; False where there is none. Nothing is saved.

    cells: (sheet, row, column) from 0, checked. Raises ValueError where the workbook has changes that are not saved,
    as its cells may then be elsewhere than in the file, and where Excel does not take a value.
    """
    book = _find(path)
    if book is None:
        return False
    where = one_line(str(path))
    if _saved(book) is False:
        raise ValueError(f"{where} has changes in Excel that are not saved; save it there, then write again")
    done = 0
    for sheet, row, column, rows in blocks(cells):
        try:
            corners = (row + 1, column + 1), (row + len(rows), column + len(rows[0]))
            book.sheets[sheet].range(*corners).value = [[_as_typed(value) for value in line] for line in rows]
        except Exception as error:
            raise ValueError(
                f"Excel did not take the values from {one_line(sheet)}!{address(row, column)} on ({done} of "
                f"{counted(len(cells), 'cell')} of {where} set); finish typing there, lift the protection and write"
                " again"
            ) from error
        done += len(rows) * len(rows[0])
    return True


def blocks(cells: Mapping[tuple[str, int, int], Value]) -> list[Block]:
    """The cells as few rectangles: runs along a row, joined with the same run in the row below."""
    runs: list[Block] = []
    for sheet, row, column in sorted(cells):
        value = cells[sheet, row, column]
        if runs:
            last_sheet, last_row, first, rows = runs[-1]
            if (last_sheet, last_row) == (sheet, row) and first + len(rows[0]) == column:
                rows[0].append(value)
                continue
        runs.append((sheet, row, column, [[value]]))
    found: dict[tuple[str, int, int, int], Block] = {}  # by the run that would continue it
    done: list[Block] = []
    for run in runs:
        sheet, row, column, rows = run
        block = found.pop((sheet, row, column, len(rows[0])), None)
        if block:
            block[3].extend(rows)
        else:
            block = run
            done.append(block)
        found[sheet, row + 1, column, len(rows[0])] = block
    return done


def _find(path: Path) -> Any:
    """The open workbook, or None. Excel may be missing, closing or busy: none of it is a fault of the caller."""
    try:
        import xlwings

        for app in xlwings.apps:
            for book in app.books:
                if _same_file(book, path):
                    return book
    except Exception:
        return None
    return None


def _same_file(book: Any, path: Path) -> bool:
    try:
        name = str(book.fullname)
        return os.path.normcase(os.path.realpath(name)) == os.path.normcase(os.path.realpath(path))
    except Exception:
        return False  # a workbook in a cloud folder may have no path


def _saved(book: Any) -> bool | None:
    """Whether all changes are saved; None where Excel does not say."""
    try:
        saved = book.api.Saved  # Windows
    except Exception:
        try:
            saved = book.api.saved.get()  # macOS
        except Exception:
            return None
    return saved if isinstance(saved, bool) else None


def _as_typed(value: Value) -> Value:
    # Excel reads a text that it is given as if it were typed: 007 would become 7, =A1 a formula.
    if isinstance(value, str):
        return "'" + value
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value

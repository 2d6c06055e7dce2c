"""A CSV file -> rows whose cells are checked against what each column should hold."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .names import checked_name, counted, one_line, shown

Row = dict[str, Any]

# What a column may hold. A kind with "?" may be empty and then reads None ("" for text).
RIGHT = {
    "name": "a name",
    "text": "printable text",
    "count": "a whole number of at least 1",
    "whole": "a whole number of at least 0",
    "number": "a number of at least 0, with a point for decimals",
    "amount": "a number above 0, with a point for decimals",
    "flag": "0 or 1",
    "truth": "true or false",
}
NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?")
WHOLE = re.compile(r"[0-9]{1,18}")


def read_rows(path: Path, kinds: Mapping[str, str]) -> list[Row]:
    """The rows of a CSV file in their order; columns that kinds does not know are kept as text.

    The first column of kinds is the key: no two rows share it, without regard to case. Raises ValueError, one
    sentence with the file, the line, the column, the value and what would be right.
    """
    key = next(iter(kinds))
    rows: list[Row] = []
    lines: dict[str, int] = {}
    for number, cells in read_lines(path, kinds):
        line = f"{one_line(str(path))}, line {number}"
        row = {name: read_cell(text, kinds.get(name, "text?"), line, name) for name, text in cells.items()}
        first = lines.setdefault(str(row[key]).casefold(), number)
        if first != number:
            raise ValueError(
                f"{line}, column {key} is {shown(row[key])}, which line {first} has already; "
                "it should be unique without regard to case"
            )
        rows.append(row)
    return rows


def read_lines(path: Path, needed: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a CSV file that are not empty: number, and column -> text as it stands there.

    needed: columns that must be there. Raises ValueError, one sentence with the file and the place.
    """
    where = one_line(str(path))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = _header(next(reader, []), needed, where)
            for cells in reader:
                if not any(cells):
                    continue
                if len(cells) != len(header):
                    raise ValueError(
                        f"{where}, line {reader.line_num} has {counted(len(cells), 'cell')}; "
                        f"it should have {len(header)}, one for each column"
                    )
                yield reader.line_num, dict(zip(header, cells, strict=True))
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is not UTF-8 text at byte {error.start}; save it as UTF-8") from None
    except csv.Error as error:
        raise ValueError(f"{where} is not CSV: {error}") from None


def _header(header: list[str], needed: Iterable[str], where: str) -> list[str]:
    if missing := [name for name in needed if name not in header]:
        raise ValueError(
            f"{where}, line 1 lacks the column {missing[0]}; "
            "the first line should name the columns, with a comma between them"
        )
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"{where}, line 1 names the column {shown(twice)} twice; it should stand there once")
    return header


def read_cell(text: str, kind: str, line: str, column: str) -> Any:
    """A cell's text as the value its kind says; ValueError, one sentence that begins with the line."""
    optional = kind.endswith("?")
    kind = kind.rstrip("?")
    if kind == "name":
        return checked_name(text, line, f"column {column}")
    if not text and optional:
        return "" if kind == "text" else None
    if kind == "text" and text and text.isprintable():
        return text
    if kind == "truth" and text in ("true", "false"):
        return text == "true"
    if kind == "flag" and text in ("0", "1"):
        return int(text)
    if kind in ("count", "whole") and WHOLE.fullmatch(text) and int(text) >= (kind == "count"):
        return int(text)
    if kind in ("number", "amount") and NUMBER.fullmatch(text):
        number = int(text) if WHOLE.fullmatch(text) else float(text)
        if number > 0 or kind == "number":
            return number
    raise ValueError(f"{line}, column {column} is {shown(text)}; it should be {RIGHT[kind]}")

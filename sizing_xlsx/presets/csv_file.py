"""A CSV file -> rows whose cells are checked against what each column should hold."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .names import checked_name, one_line, shown

Row = dict[str, Any]

# What a column may hold. A kind with "?" may be empty and then reads None ("" for text).
RIGHT = {
    "name": "a name",
    "text": "printable text",
    "count": "a whole number of at least 1",
    "whole": "a whole number of at least 0",
    "number": "a number of at least 0, with a point for decimals",
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
    where = one_line(str(path))
    key = next(iter(kinds))
    rows: list[Row] = []
    lines: dict[str, int] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = _header(next(reader, []), kinds, where)
            columns = [(name, kinds.get(name, "text?")) for name in header]
            for cells in reader:
                if not any(cells):
                    continue
                line = f"{where}, line {reader.line_num}"
                if len(cells) != len(header):
                    raise ValueError(
                        f"{line} has {len(cells)} cells; it should have {len(header)}, one for each column"
                    )
                row = {name: _cell(text, kind, line, name) for (name, kind), text in zip(columns, cells, strict=True)}
                first = lines.setdefault(str(row[key]).casefold(), reader.line_num)
                if first != reader.line_num:
                    raise ValueError(
                        f"{line}, column {key} is {shown(row[key])}, which line {first} has already; "
                        "it should be unique without regard to case"
                    )
                rows.append(row)
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is not UTF-8 text at byte {error.start}; save it as UTF-8") from None
    except csv.Error as error:
        raise ValueError(f"{where} is not CSV: {error}") from None
    return rows


def _header(header: list[str], kinds: Mapping[str, str], where: str) -> list[str]:
    if missing := [name for name in kinds if name not in header]:
        raise ValueError(
            f"{where}, line 1 lacks the column {missing[0]}; "
            "the first line should name the columns, with a comma between them"
        )
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"{where}, line 1 names the column {shown(twice)} twice; it should stand there once")
    return header


def _cell(text: str, kind: str, line: str, column: str) -> Any:
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
    if kind == "number" and NUMBER.fullmatch(text):
        return int(text) if WHOLE.fullmatch(text) else float(text)
    raise ValueError(f"{line}, column {column} is {shown(text)}; it should be {RIGHT[kind]}")

"""A workbook cut down to what its LAMBDA names read, as values: engines load it in a second instead of half a minute."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sizing_xlsx.workbook.lambda_rules import is_lambda

if TYPE_CHECKING:
    from conftest import File

_WHOLE = ("Lookups", "Presets", "GPUs")
_CELL = re.compile(r"(?:'(?P<quoted>[^']+)'|\b(?P<plain>\w+))!\$(?P<letters>[A-Z]+)\$(?P<row>\d+)")


def cut_down(book: File, path: Path) -> Path:
    """Write the names, the sheets that they look things up in, and the single cells that they read."""
    import xlsxwriter

    functions = {name: text for name, text in book.names.items() if is_lambda(text)}
    read: dict[str, set[tuple[str, str]]] = {}
    for found in _CELL.finditer(" ".join(functions.values())):
        read.setdefault(found["quoted"] or found["plain"], set()).add((found["letters"], found["row"]))
    with xlsxwriter.Workbook(str(path), {"strings_to_formulas": False}) as small:
        for name, text in functions.items():
            small.define_name(name, f"={text}")
        for title in read.keys() - set(_WHOLE):
            sheet = small.add_worksheet(title)
            for place in read[title]:
                sheet.write("".join(place), _values(book, title)[place])
        for title in _WHOLE:
            sheet = small.add_worksheet(title)
            for (letters, row), value in _values(book, title).items():
                if value not in (None, ""):
                    sheet.write(f"{letters}{row}", value)
    return path


_KEPT: dict[tuple[Path, str], dict[tuple[str, str], Any]] = {}


def _values(book: File, title: str) -> dict[tuple[str, str], Any]:
    """What the cells of a sheet hold, by letters and row."""
    if (book.path, title) not in _KEPT:
        strings = book.strings
        found = {}
        for cell in book.sheets[title].tree.iter("{*}c"):
            letters, row = re.fullmatch(r"([A-Z]+)(\d+)", cell.get("r")).groups()  # type: ignore[union-attr]
            text, kind = cell.findtext("{*}v"), cell.get("t", "n")
            if text is not None:
                found[letters, row] = strings[int(text)] if kind == "s" else text if kind == "str" else float(text)
        _KEPT[book.path, title] = found
    return _KEPT[book.path, title]

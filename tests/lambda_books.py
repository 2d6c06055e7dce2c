"""A workbook cut down to what its LAMBDA names read, as values: engines load it in a second instead of half a minute."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sizing_xlsx.workbook.lambda_rules import is_lambda

if TYPE_CHECKING:
    from conftest import File

_WHOLE = ("Lookups", "Presets", "GPUs")
_AREA = re.compile(r"'?(?P<sheet>[^'!]+)'?!\$(?P<letters>[A-Z]+)\$(?P<row>\d+)(:.*)?")


def cut_down(book: File, path: Path) -> Path:
    """Write the names, the sheets that they look things up in, and the single cells that they read."""
    import xlsxwriter

    texts = " ".join(text for text in book.names.values() if is_lambda(text))
    read = {name: text for name, text in book.names.items() if is_lambda(text) or re.search(rf"\b{name}\b", texts)}
    with xlsxwriter.Workbook(str(path), {"strings_to_formulas": False}) as small:
        sheets: dict[str, Any] = {}
        for name, text in read.items():
            small.define_name(name, f"={text}")
            place = _AREA.fullmatch(text)
            if place and not is_lambda(text) and place["sheet"] not in _WHOLE:
                sheet = place["sheet"]
                sheets.setdefault(sheet, small.add_worksheet(sheet) if sheet not in sheets else None)
                sheets[sheet].write(
                    f"{place['letters']}{place['row']}", _values(book, sheet)[place["letters"], place["row"]]
                )
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

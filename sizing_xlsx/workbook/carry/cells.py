"""The cells of a sheet as trees: values, formulas (shared ones written out), styles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..sheet_part import Value, address, place
from .parts import MAIN, Element

_WHOLE = re.compile(r"-?[0-9]{1,15}")
_CELL, _FORMULA, _VALUE, _INLINE = MAIN + "c", MAIN + "f", MAIN + "v", MAIN + "is"
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


class Cell(NamedTuple):
    """What a cell holds. formula: without its equals sign, None for a value. style: index of its format."""

    value: Value
    formula: str | None
    style: int
    element: Element

    @property
    def empty(self) -> bool:
        """Whether it shows nothing and calculates nothing."""
        return self.formula is None and self.value in (None, "")


def read_cells(sheet: Element, strings: Sequence[Element]) -> dict[tuple[int, int], Cell]:
    """The cells of a worksheet by row and column from 0. strings: the `<si>` of the shared strings."""
    found: dict[tuple[int, int], Cell] = {}
    shared: dict[str, tuple[str, str]] = {}
    data = sheet.find(MAIN + "sheetData")
    texts: dict[int, Value] = {}
    row = -1
    for line in data if data is not None else ():
        number = line.get("r")
        row = int(number) - 1 if number else row + 1
        column = -1
        for cell in line.iterchildren(_CELL):
            at = place(cell.get("r", "")) or (row, column + 1)
            column = at[1]
            kind = cell.get("t", "n")
            formula = value = None
            for child in cell:
                if child.tag == _FORMULA:
                    formula = _formula(child, at, shared)
                elif child.tag == _VALUE or child.tag == _INLINE:
                    value = _value(kind, child, strings, texts)
            style = cell.get("s", "0")
            found[at] = Cell(value, formula, int(style) if style.isdigit() else 0, cell)
    return found


def _formula(element: Element, at: tuple[int, int], shared: dict[str, tuple[str, str]]) -> str:
    text = element.text or ""
    if element.get("t") == "shared":
        group = element.get("si", "")
        if text:
            shared[group] = ("=" + text, address(*at))
        elif group in shared:
            from openpyxl.formula.translate import Translator

            origin, start = shared[group]
            text = str(Translator(origin, start).translate_formula(address(*at)))[1:]
    return str(text)


def _value(kind: str, element: Element, strings: Sequence[Element], texts: dict[int, Value]) -> Value:
    """The value of a `<v>` or `<is>`; an error as its text. texts: those of shared strings that were read already."""
    if element.tag == _INLINE:
        return plain_text(element)
    text = str(element.text or "")
    if text == "" and kind != "str":
        return None
    if kind == "s":
        at = int(text) if text.isdigit() else len(strings)
        if at not in texts:
            texts[at] = plain_text(strings[at]) if at < len(strings) else None
        return texts[at]
    if kind == "b":
        return text.strip() in ("1", "true")
    if kind in ("str", "e"):
        return unescaped(text)
    if kind == "d":
        return text
    try:
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    except ValueError:
        return text


def plain_text(item: Element) -> str:
    """The text of an `<si>` or `<is>`, without its formats and without readings above words."""
    texts = [part.text or "" for part in item.iterchildren(MAIN + "t")]
    texts += [part.text or "" for run in item.iterchildren(MAIN + "r") for part in run.iterchildren(MAIN + "t")]
    return unescaped("".join(texts))


def unescaped(text: str) -> str:
    """The characters that a part writes as _x000D_ and the like."""

    def character(found: re.Match[str]) -> str:
        code = int(found[1], 16)
        return found[0] if 0xD800 <= code < 0xE000 else chr(code)

    return _ESCAPED.sub(character, text) if "_x" in text else text

"""Formats of a planner's cells, appended to those of the new workbook: fonts, fills, borders, numbers, marks."""

from __future__ import annotations

from copy import deepcopy

from .parts import MAIN, Element

_ORDER = ("numFmts", "fonts", "fills", "borders", "cellStyleXfs", "cellXfs", "cellStyles", "dxfs", "tableStyles",
          "colors", "extLst")  # fmt: skip
_OWN_NUMBERS = 164  # number formats below belong to every program
_INDICES = {"fontId": "fonts", "fillId": "fills", "borderId": "borders"}


class Formats:
    """Maps indices of the old styles part to indices of the new one; equal formats are shared."""

    def __init__(self, old: Element, new: Element) -> None:
        self.old, self.new = old, new
        self._mapped: dict[tuple[str, int], int] = {}
        self._known: dict[str, dict[bytes, int]] = {}
        self._codes = {fmt.get("numFmtId", ""): fmt.get("formatCode", "") for fmt in old.iter(MAIN + "numFmt")}

    def cell(self, index: int) -> int:
        """The new index of a cell's format."""
        return self._format("cellXfs", index)

    def mark(self, index: int) -> int:
        """The new index of what a conditional format or a table puts on top."""
        key = ("dxfs", index)
        if key not in self._mapped:
            found = self._old("dxfs", index)
            self._mapped[key] = self._add("dxfs", deepcopy(found), index) if found is not None else 0
        return self._mapped[key]

    def _format(self, group: str, index: int) -> int:
        key = (group, index)
        if key in self._mapped:
            return self._mapped[key]
        found = self._old(group, index)
        if found is None:
            return 0
        made = deepcopy(found)
        for attribute, parts in _INDICES.items():
            at = int(made.get(attribute, "0"))
            part = self._old(parts, at)
            made.set(attribute, str(self._add(parts, deepcopy(part), at) if part is not None else 0))
        made.set("numFmtId", str(self._number(made.get("numFmtId", "0"))))
        if group == "cellXfs":
            made.set("xfId", str(self._style(int(made.get("xfId", "0")))))
        else:
            made.attrib.pop("xfId", None)
        self._mapped[key] = self._add(group, made, index)
        return self._mapped[key]

    def _style(self, index: int) -> int:
        """The new index of a named cell style's format; Normal is ours."""
        named = next((s for s in self.old.iter(MAIN + "cellStyle") if s.get("xfId") == str(index)), None)
        if named is None or named.get("builtinId") == "0" or named.get("name") == "Normal":
            return 0
        for style in self.new.iter(MAIN + "cellStyle"):
            if style.get("name") == named.get("name"):
                return int(style.get("xfId", "0"))
        made = deepcopy(named)
        to = self._format("cellStyleXfs", index)
        made.set("xfId", str(to))
        self._add("cellStyles", made)
        return to

    def _number(self, index: str) -> int:
        """The new identifier of a number format."""
        code = self._codes.get(index)
        if code is None:
            return int(index) if index.isdigit() and int(index) < _OWN_NUMBERS else 0
        known = {fmt.get("formatCode"): int(fmt.get("numFmtId", "0")) for fmt in self.new.iter(MAIN + "numFmt")}
        if code in known:
            return known[code]
        made = self.new.makeelement(MAIN + "numFmt", None, None)
        made.set("numFmtId", str(max([_OWN_NUMBERS - 1, *known.values()]) + 1))
        made.set("formatCode", code)
        self._add("numFmts", made)
        return int(made.get("numFmtId", "0"))

    def _old(self, group: str, index: int) -> Element | None:
        found = self.old.find(MAIN + group)
        children = [] if found is None else [child for child in found if isinstance(child.tag, str)]
        return children[index] if index < len(children) else None

    def _group(self, group: str) -> Element:
        found = self.new.find(MAIN + group)
        if found is None:
            found = self.new.makeelement(MAIN + group, None, None)
            after = _ORDER[: _ORDER.index(group)]
            self.new.insert(sum(child.tag in {MAIN + name for name in after} for child in self.new), found)
        return found

    def _add(self, group: str, element: Element, like: int = -1) -> int:
        """The index of an element among those of a group, appended where none is equal. like: where to look first."""
        parent = self._group(group)
        element.tail = None
        if group not in self._known:
            self._known[group] = {_code(child): at for at, child in reversed([*enumerate(parent)])}
        code = _code(element)
        if 0 <= like < len(parent) and _code(parent[like]) == code:
            return like
        if code not in self._known[group]:
            parent.append(element)
            self._known[group][code] = len(parent) - 1
            parent.set("count", str(len(parent)))
        return self._known[group][code]


def _code(element: Element) -> bytes:
    from lxml import etree

    return bytes(etree.tostring(element, method="c14n", exclusive=True, with_tail=False))

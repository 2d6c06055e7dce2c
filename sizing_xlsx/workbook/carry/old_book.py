"""A workbook that lies in the folder: its sheets, names and cells, and its record where it has one."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

from ...presets.names import one_line, shown
from ..planner_file import Area, PlannerFile
from ..sheet_part import Value
from . import record as records
from .cells import Cell, read_cells
from .parts import MAIN, RELATION, Element, Link, links_of, parsed, rels_part
from .shapes import digest

OURS = ("GPU_Choice", "Fit_Verdict", "Checks_Failed")  # in every version of every workbook
_VERSION = re.compile(r"sizing_xlsx (\d+(?:\.\d+)*)")
# Parts that cannot be carried safely, by a piece of their type: what they are, in words.
UNSAFE = {
    "vbaProject": "macros",
    "xlMacrosheet": "macro sheets",
    "dialogsheet": "dialog sheets",
    "pivotCacheDefinition": "pivot tables",
    "pivotTable": "pivot tables",
    "slicer": "slicers",
    "timeline": "timelines",
    "externalLink": "links to other workbooks",
    "connections": "data connections",
    "queryTable": "data connections",
    "oleObject": "embedded objects",
    "package": "embedded objects",
    "control": "form or ActiveX controls",
    "ctrlProp": "form or ActiveX controls",
    "customXmlMappings": "XML maps",
    "xmlMaps": "XML maps",
    "model": "a data model",
    "rdRichValue": "linked data types or pictures in cells",
    "richValueRel": "linked data types or pictures in cells",
}


class Sheet(NamedTuple):
    """A tab: its title, its part, what kind of part, and whether it is hidden."""

    title: str
    part: str
    kind: str  # worksheet or chartsheet
    state: str


class Named(NamedTuple):
    """A defined name. sheet: the tab that it belongs to, None where it holds everywhere."""

    name: str
    text: str
    sheet: str | None
    element: Element


class OldBook(PlannerFile):
    """A workbook in memory. Raises ValueError, one sentence, for what PlannerFile refuses."""

    def __init__(self, data: bytes, where: str) -> None:
        super().__init__(data, where)
        self.where = where
        self.parts = {name: self._archive.read(name) for name in self._archive.names()}
        self.main = self._main
        self.main_tree = self.tree(self.main)
        self.links = links_of(self.parts, self.main, where)
        by_id = {link.id: link for link in self.links}
        self.sheets = [
            Sheet(sheet.get("name", ""), link.target, link.kind, sheet.get("state", "visible"))
            for sheet in self.main_tree.iter(MAIN + "sheet")
            if (link := by_id.get(sheet.get(RELATION + "id", ""))) is not None
        ]
        self._cells: dict[str, dict[tuple[int, int], Cell]] = {}
        self._trees: dict[str, Element] = {}
        self._digests: dict[str, dict[tuple[int, int], int]] = {}

    def tree(self, part: str) -> Element:
        """A part as a tree of its own."""
        if part not in self.parts:
            raise ValueError(f"{self.where} lacks the part {shown(part)}; use a copy that Excel opens")
        return parsed(self.parts[part], f"{self.where}, part {one_line(part)}")

    def links_of(self, part: str) -> list[Link]:
        """The relations of a part."""
        return links_of(self.parts, part, self.where)

    @cached_property
    def titles(self) -> dict[str, Sheet]:
        """The tabs by their folded titles."""
        return {sheet.title.casefold(): sheet for sheet in self.sheets}

    @cached_property
    def names(self) -> list[Named]:
        """Every defined name, those that Excel keeps for itself among them."""
        found = []
        for element in self.main_tree.iter(MAIN + "definedName"):
            local = element.get("localSheetId", "")
            sheet = None
            if local.isdigit():
                sheet = self.sheets[int(local)].title if int(local) < len(self.sheets) else ""
            found.append(Named(element.get("name", ""), element.text or "", sheet, element))
        return found

    @cached_property
    def everywhere(self) -> dict[str, str]:
        """Name of the whole workbook, folded -> what it stands for."""
        return {name.name.casefold(): name.text for name in self.names if name.sheet is None}

    def place_of(self, name: str) -> Area | None:
        """The cells that a name stands for now; None where it is gone or stands for anything else."""
        text = self.everywhere.get(name.casefold())
        try:
            area = records.area_of(text) if text else None
        except ValueError:
            return None
        sheet = self.titles.get(area.sheet.casefold()) if area else None
        return area._replace(sheet=sheet.title) if area and sheet else None

    @cached_property
    def strings(self) -> list[Element]:
        """The shared strings, with their formats."""
        part = next((link.target for link in self.links if link.kind == "sharedStrings"), None)
        return list(self.tree(part).iterchildren(MAIN + "si")) if part in self.parts else []

    def sheet_tree(self, title: str) -> Element:
        """The XML of a worksheet, read once."""
        sheet = self.titles[title.casefold()]
        if sheet.part not in self._trees:
            self._trees[sheet.part] = self.tree(sheet.part)
        return self._trees[sheet.part]

    def cells(self, title: str) -> dict[tuple[int, int], Cell]:
        """The cells of a worksheet by row and column from 0, read once."""
        if title not in self._cells:
            self._cells[title] = read_cells(self.sheet_tree(title), self.strings)
        return self._cells[title]

    def digests(self, title: str) -> dict[tuple[int, int], int]:
        """What the cells of a worksheet say, as record.py compares them; read once."""
        if title not in self._digests:
            cells = self.cells(title)
            found = {at: digest(cell.value, cell.formula) for at, cell in cells.items()}
            self._digests[title] = {at: code for at, code in found.items() if code}
        return self._digests[title]

    def at(self, area: Area) -> list[Cell | None]:
        """The cells of one column, from its first row to its last."""
        cells = self.cells(area.sheet)
        return [cells.get((row, area.first_column)) for row in range(area.first_row, area.last_row + 1)]

    def values(self, name: str) -> list[Value]:
        """The values of a named column. Raises ValueError where the name is gone."""
        area = self.place_of(name)
        if area is None:
            raise ValueError(f"{self.where} has no name {name}")
        return [cell.value if cell else None for cell in self.at(area)]

    # -- what it is

    @cached_property
    def is_ours(self) -> bool:
        """Whether a build made it: the names that every version has are there."""
        return all(name.casefold() in self.everywhere for name in OURS)

    @cached_property
    def record_format(self) -> Value:
        """The form of its record; None where it has none."""
        area = self.place_of("Record_Format")
        cell = self.cells(area.sheet).get((area.first_row, area.first_column)) if area else None
        return cell.value if cell else None

    @cached_property
    def record(self) -> records.Record | None:
        """What it was when it was made; None where it does not say, or no longer in a form that can be read."""
        if self.record_format != records.FORMAT:
            return None
        columns = (records.MAP, records.KINDS, records.FILES, records.CONTENTS, records.INPUTS, records.OPENED_ON,
                   records.ALLOWED)  # fmt: skip
        try:
            facts = {name: self.values(name)[0] for name in ("Record_Version", "Record_Job")}
            return records.read(facts, {name: self.values(name) for name in columns})
        except (ValueError, KeyError, TypeError):
            return None

    @cached_property
    def version(self) -> str:
        """The version of the program that made it: by its record, else by its notes; "0" where neither says."""
        area = self.place_of("Record_Version")
        cell = self.cells(area.sheet).get((area.first_row, area.first_column)) if area else None
        if cell is not None and cell.value is not None:
            return str(cell.value)
        for sheet in self.sheets:
            if sheet.kind == "worksheet" and sheet.title.casefold() == "notes":
                for found in self.cells(sheet.title).values():
                    if isinstance(found.value, str) and (said := _VERSION.search(found.value)):
                        return said[1]
        return "0"

    @cached_property
    def untouched(self) -> bool:
        """Whether no other program seems to have saved it: its properties are those of a build."""
        core = self.parts.get("docProps/core.xml", b"")
        stamps = {stamp for _, stamp in re.findall(rb"<dcterms:(created|modified)[^>]*>([^<]*)<", core)}
        return len(stamps) == 1

    def unsafe(self) -> list[str]:
        """What it holds that cannot be carried safely, in words, each once."""
        kinds: list[str] = []
        for part in self.parts:
            if rels_part(part) in self.parts:
                kinds += [link.kind for link in self.links_of(part)]
        found = [UNSAFE[kind] for kind in kinds if kind in UNSAFE]
        found += ["macros"] if any(part.casefold().endswith("vbaproject.bin") for part in self.parts) else []
        return list(dict.fromkeys(found))


def numbers(version: str) -> tuple[int, ...]:
    """A version for comparing: "0.10.2" -> (0, 10, 2)."""
    return tuple(int(part) for part in re.findall(r"\d+", version))

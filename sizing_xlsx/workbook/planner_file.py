"""What a planner's workbook holds: its sheets, its names and the values of its cells.

Rows and columns count from 0.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from ..presets.names import one_line, shown
from .package import COPY, Archive, Events
from .sheet_part import (
    COLUMNS,
    MAIN,
    ROWS,
    Box,
    CellValue,
    SheetPart,
    Value,
    address,
    behind,
    box,
    shared_strings,
    within,
)

Place = tuple[str, int, int]  # sheet, row and column from 0

_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_STRICT = "http://purl.oclc.org/ooxml/"
# What stands before the calculation settings in a workbook part: ECMA-376 part 1, 18.2.27.
_BEFORE_SETTINGS = frozenset(
    ("fileVersion", "fileSharing", "workbookPr", "workbookProtection", "bookViews", "sheets", "functionGroups",
     "externalReferences", "definedNames")
)  # fmt: skip
_AREA = re.compile(r"('(?:[^']|'')+'|[^'!:\[\]]+)!(\$[A-Za-z]{1,3}\$[0-9]+(?::\$[A-Za-z]{1,3}\$[0-9]+)?)")
_NAMES_SHOWN = 12


class Area(NamedTuple):
    """One area of cells; first and last count from 0 and both belong to it."""

    sheet: str
    first_row: int
    last_row: int
    first_column: int
    last_column: int


class PlannerFile:
    """A workbook in memory, as it was saved. Each sheet is read when it is asked for.

    where: the file as sentences name it. Raises ValueError for what is no workbook, or one that may not be changed.
    """

    def __init__(self, data: bytes, where: str) -> None:
        self._where = where
        self._archive = Archive(data, where)
        self._archive.verify()
        self._sheet_parts: dict[str, SheetPart] = {}
        self._furniture: dict[str, list[tuple[Box, str]]] = {}
        self._main = self._find_main()
        self._parts: dict[str, str] = {}  # sheet -> part, in the order of the tabs
        self._names: dict[str, tuple[str, str, bool]] = {}  # folded name -> name, reference, whether of all sheets
        self._calc_pr = self._before_settings = self._sheets_tag = -1
        self._folded: dict[str, str] = {}  # folded sheet -> sheet
        self._read_main()

    # -- what the workbook holds

    def sheet_names(self) -> list[str]:
        """The worksheets, in the order of their tabs; chart sheets, which have no cells, are left out."""
        return list(self._parts)

    def known_names(self) -> set[str]:
        """The names of the whole workbook, in lower case."""
        return {key for key, (_, _, whole) in self._names.items() if whole}

    def area(self, defined_name: str) -> Area:
        """The one plain area that a name of the whole workbook stands for. Case does not count.

        Raises ValueError where there is no such name, its cells were deleted, or it stands for anything else.
        """
        _, reference, everywhere = self._names.get(defined_name.casefold(), ("", None, False))
        if reference is None:
            known = [name for name, _, whole in self._names.values() if whole and not name.startswith("_xlnm.")]
            raise ValueError(
                f"{self._where} has no name {shown(defined_name)}; it should be a name for cells "
                f"of the whole workbook{_listed(known)}"
            )
        what = f"{self._where}: the name {shown(defined_name)} stands for {shown(reference)}"
        if not everywhere:
            raise ValueError(f"{what} on one sheet only; give it the scope of the workbook")
        if "#REF!" in reference.upper():
            raise ValueError(f"{what}: its cells were deleted; let it stand for cells that are there")
        found = _AREA.fullmatch(reference.strip().removeprefix("="))
        cells = box(found[2]) if found else None
        sheet = None
        if found:
            sheet = self._folded.get(found[1].removeprefix("'").removesuffix("'").replace("''", "'").casefold())
        if cells is None or sheet is None:
            raise ValueError(f"{what}; it should be one area of cells such as 'My Sheet'!$B$10:$B$60")
        return Area(sheet, cells[0], cells[2], cells[1], cells[3])

    def cell(self, sheet: str, row: int, column: int) -> CellValue:
        """What a cell holds, as it was saved last, and whether that comes from a formula.

        Whole numbers come as int, others as float, dates as their numbers, errors as their texts such as "#N/A", and
        a blank cell as None. Raises ValueError for an unknown sheet or a place that no sheet has.
        """
        name = self._known(sheet)
        self._check_place((name, row, column))
        return self._part(name).cell(row, column, self._strings)

    def rows(self, sheet: str) -> dict[int, dict[int, Value]]:
        """The rows of a sheet that hold cells, in their order, with the values of these cells by column."""
        return dict(self._part(self._known(sheet)).rows(self._strings))

    def column_values(self, area: Area) -> list[Value]:
        """The values of an area of one column, from its first row to its last."""
        if area.first_column != area.last_column:
            raise ValueError(
                f"area is {address(area.first_row, area.first_column)}:{address(area.last_row, area.last_column)} "
                f"of {shown(area.sheet)}; it should be cells of one column"
            )
        return [self.cell(area.sheet, row, area.first_column).value for row in range(area.first_row, area.last_row + 1)]

    def find_columns(self, sheet: str, headers: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Header -> its row and column, in the first row that holds all these texts.

        Case and blanks around them do not count. Raises ValueError that names the missing ones, or the one that
        stands in the row twice.
        """
        name = self._known(sheet)
        wanted = {header: header.strip().casefold() for header in headers}
        if not wanted or "" in wanted.values():
            raise ValueError(
                f"headers are {', '.join(map(shown, wanted)) or 'none'}; each should be a text that is there"
            )
        nearest: set[str] = set()
        for row, values in self._part(name).rows(self._strings):
            texts: dict[str, list[int]] = {}
            for column, value in values.items():
                if isinstance(value, str):
                    texts.setdefault(value.strip().casefold(), []).append(column)
            present = texts.keys() & wanted.values()
            if len(present) == len(set(wanted.values())):
                for header, text in wanted.items():
                    if len(texts[text]) > 1:
                        places = " and ".join(address(row, column) for column in texts[text][:2])
                        raise ValueError(
                            f"{self._where}, sheet {shown(name)} has the header {shown(header)} in {places}; "
                            "it should be there once"
                        )
                return {header: (row, texts[text][0]) for header, text in wanted.items()}
            if len(present) > len(nearest):
                nearest = present
        missing = ", ".join(shown(header) for header, text in wanted.items() if text not in nearest)
        raise ValueError(
            f"{self._where}, sheet {shown(name)} has no row with all the headers; "
            f"the row that comes nearest should hold {missing} too"
        )

    # -- reading the parts

    def _known(self, sheet: str) -> str:
        name = self._folded.get(sheet.casefold())
        if name is None:
            raise ValueError(
                f"{self._where} has no sheet {shown(sheet)}; it should be one of its sheets{_listed(self._parts)}"
            )
        return name

    def _check_place(self, at: Place) -> None:
        for what, number, limit in (("row", at[1], ROWS), ("column", at[2], COLUMNS)):
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < limit:
                raise ValueError(
                    f"{self._where}: the {what} of a cell of sheet {shown(at[0])} is {shown(number)}; "
                    f"it should be a whole number from 0 to {limit - 1:,}"
                )

    def _shown(self, at: Place) -> str:
        plain = re.fullmatch(r"[^\W\d]\w*", at[0])
        return f"{at[0] if plain else shown(at[0])}!{address(at[1], at[2])}"

    def _part(self, sheet: str) -> SheetPart:
        if sheet not in self._sheet_parts:
            part = self._parts[sheet]
            self._sheet_parts[sheet] = SheetPart(self._archive.read(part), f"{self._where}, part {one_line(part)}")
        return self._sheet_parts[sheet]

    @cached_property
    def _strings(self) -> list[str]:
        for kind, part in self._relations(self._main).values():
            if kind.endswith("/sharedStrings") and part in self._archive:
                return shared_strings(self._archive.read(part), f"{self._where}, part {one_line(part)}")
        return []

    def _claimed(self, sheet: str, row: int, column: int) -> str | None:
        """Why a table or a pivot table does not leave a cell to others, as the end of a sentence."""
        if sheet not in self._furniture:
            self._furniture[sheet] = self._read_furniture(sheet)
        return next((reason for area, reason in self._furniture[sheet] if within(area, row, column)), None)

    def _read_furniture(self, sheet: str) -> list[tuple[Box, str]]:
        found: list[tuple[Box, str]] = []
        for kind, part in self._relations(self._parts[sheet]).values():
            if not kind.endswith(("/table", "/pivotTable")) or part not in self._archive:
                continue
            elements = self._elements(part)
            name, attributes = elements[0]
            title = shown(attributes.get("displayName") or attributes.get("name", ""))
            if name == f"{MAIN} table":
                if area := box(attributes.get("ref", "")):
                    first, left, last, right = area
                    heads, totals = (
                        int(count) if (count := attributes.get(key, usual)) in ("0", "1") else 1
                        for key, usual in (("headerRowCount", "1"), ("totalsRowCount", "0"))
                    )
                    should = "it should be a row of its data"
                    found.append(((first, left, first + heads - 1, right), f"is the header of table {title}; {should}"))
                    found.append(((last - totals + 1, left, last, right), f"is a total of table {title}; {should}"))
            else:
                found += [
                    (area, f"belongs to the pivot table {title}, which overwrites it; it should be outside")
                    for child, inner in elements
                    if child == f"{MAIN} location" and (area := box(inner.get("ref", "")))
                ]
        return found

    def _elements(self, part: str) -> list[tuple[str, dict[str, str]]]:
        found: list[tuple[str, dict[str, str]]] = []
        data = self._archive.read(part)
        Events(data, f"{self._where}, part {one_line(part)}").run(lambda name, given: found.append((name, given)))
        return found

    def _relations(self, part: str) -> dict[str, tuple[str, str]]:
        """What a part refers to inside the file: identifier -> kind and part."""
        folder, _, file = part.rpartition("/")
        links = posixpath.join(folder, "_rels", f"{file}.rels")
        if links not in self._archive:
            return {}
        return {
            given.get("Id", ""): (
                given.get("Type", ""),
                posixpath.normpath(posixpath.join("/" + folder, given.get("Target", ""))).lstrip("/"),
            )
            for name, given in self._elements(links)
            if name.endswith(" Relationship") and given.get("TargetMode") != "External"
        }

    def _find_main(self) -> str:
        """The workbook part. Raises ValueError for what looks like a workbook and may not be changed."""
        where, names = self._where, [name.casefold() for name in self._archive.names()]
        links = self._relations("").values()
        if any(name.startswith("_xmlsignatures/") for name in names) or any(
            kind.endswith("/digital-signature/origin") for kind, _ in links
        ):
            raise ValueError(f"{where} is digitally signed, and any change would break that; use a copy without it")
        main = next((part for kind, part in links if kind.endswith("/officeDocument")), "")
        if any(kind.startswith(_STRICT) for kind, _ in links):
            raise ValueError(f"{where} is a Strict Open XML file; save it as Excel Workbook (.xlsx) in Excel")
        if main.casefold().endswith(".bin"):
            raise ValueError(f"{where} is a binary workbook (.xlsb); save it as Excel Workbook (.xlsx) in Excel")
        if not main or main not in self._archive:
            what = "an OpenDocument file" if "content.xml" in names else "a zip without a workbook in it"
            raise ValueError(f"{where} is {what}; name an .xlsx or .xlsm workbook")
        return main

    def _read_main(self) -> None:
        data = self._archive.read(self._main)
        events = Events(data, f"{self._where}, part {one_line(self._main)}")
        sheets: list[tuple[str, str]] = []
        around: list[str] = []
        named: list[str] | None = None
        scope = ("", True)
        began = 0

        def start(name: str, given: dict[str, str]) -> None:
            nonlocal named, scope, began
            local = name.removeprefix(f"{MAIN} ")
            if len(around) == 1:
                began = events.at
            if not around:
                if name.startswith(_STRICT):
                    raise ValueError(
                        f"{self._where} is a Strict Open XML file; save it as Excel Workbook (.xlsx) in Excel"
                    )
                if local != "workbook":
                    raise ValueError(f"{self._where} is no workbook but another document; name an .xlsx workbook")
            elif len(around) == 1 and local == "calcPr":
                self._calc_pr = events.at
            elif len(around) == 1 and local == "sheets":
                self._sheets_tag = events.at
            elif local == "sheet" and around[-1] == "sheets":
                sheets.append((given.get("name", ""), given.get(f"{_RELATIONS} id", "")))
            elif local == "definedName" and around[-1] == "definedNames":
                named, scope = [], (given.get("name", ""), "localSheetId" not in given)
            around.append(local)

        def end(_: str) -> None:
            nonlocal named
            local = around.pop()
            if local == "definedName" and named is not None:
                key = scope[0].casefold()
                if scope[1] or key not in self._names:
                    self._names[key] = (scope[0], "".join(named), scope[1])
                named = None
            elif len(around) == 1 and local in _BEFORE_SETTINGS:
                self._before_settings = behind(data, began, events.at)

        def text(piece: str) -> None:
            if named is not None:
                named.append(piece)

        events.run(start, end, text)
        links = self._relations(self._main)
        for title, link in sheets:
            kind, part = links.get(link, ("", ""))
            if kind != f"{_RELATIONS}/worksheet":
                continue
            if title.casefold() in self._folded or part in self._parts.values():
                raise ValueError(f"{self._where} is damaged: its sheet {shown(title)} is there twice; {COPY}")
            self._parts[title], self._folded[title.casefold()] = part, title
        if not self._parts:
            raise ValueError(f"{self._where} holds no worksheet; it should have one")


def _listed(names: Iterable[str]) -> str:
    """The names at the end of a sentence, not more than a reader can take in."""
    known = [one_line(name) for name in names]
    more = f" and {len(known) - _NAMES_SHOWN} more" if len(known) > _NAMES_SHOWN else ""
    return f" ({', '.join(known[:_NAMES_SHOWN])}{more})" if known else ""

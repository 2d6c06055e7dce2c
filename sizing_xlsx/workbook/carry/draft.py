"""The new workbook while things are put into it: trees of its parts, new parts, content types, and the bytes."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping

from ..sheet_part import Value, address, place
from .cells import Cell
from .old_book import OldBook
from .parts import CONTENT_TYPES, MAIN, RELATIONS, XML, Element, Link, links_of, parsed, relative, rels_part, written

_EPOCH = (1980, 1, 1, 0, 0, 0)  # two builds of one thing are byte-identical
_TYPES = "[Content_Types].xml"


class Draft:
    """A workbook of this version that is being filled."""

    def __init__(self, data: bytes, where: str) -> None:
        self.book = OldBook(data, where)
        self.where = where
        self.parts: dict[str, bytes] = dict(self.book.parts)
        self.main = self.tree(self.book.main)
        self.types = self.tree(_TYPES)
        self._edited: dict[str, Element] = {}
        self.dirty: set[tuple[str, int, int]] = set()  # cells whose dependents must be calculated anew

    def tree(self, part: str) -> Element:
        """A fresh tree of a part."""
        return parsed(self.parts[part], f"{self.where}, part {part}")

    def edited(self, part: str) -> Element:
        """The tree of a part, which goes into the file as it is at the end."""
        if part not in self._edited:
            self._edited[part] = self.main if part == self.book.main else self.tree(part)
        return self._edited[part]

    def sheet_tree(self, title: str) -> Element:
        """The tree of one of our sheets, to be changed. Its cells are those of book.cells()."""
        sheet = self.book.titles[title.casefold()]
        tree = self.book.sheet_tree(title)
        self._edited[sheet.part] = tree
        return tree

    # -- cells

    def put(self, title: str, row: int, column: int, value: Value, formula: str | None = None) -> None:
        """A value, or a formula without its stored result, into a cell of ours; the cell keeps its format."""
        tree = self.sheet_tree(title)
        cells = self.book.cells(title)
        cell = cells.get((row, column))
        element = cell.element if cell else _new_cell(tree, row, column)
        fill(element, value, formula)
        cells[row, column] = Cell(value, formula, int(element.get("s", "0")), element)
        self.dirty.add((title, row, column))

    # -- parts

    def fresh(self, like: str) -> str:
        """A name for a new part, made from that of another: xl/charts/chart1.xml -> xl/charts/chart6.xml."""
        taken = {name.casefold() for name in self.parts}
        found = re.fullmatch(r"(.*?)(\d*)(\.[^./]+)", like)
        stem, number, suffix = (found[1], int(found[2] or 1), found[3]) if found else (like, 1, "")
        while f"{stem}{number}{suffix}".casefold() in taken:
            number += 1
        return f"{stem}{number}{suffix}"

    def add(self, part: str, data: bytes, content_type: str = "") -> None:
        """A new part; content_type where the type of its ending is not the right one."""
        self.parts[part] = data
        if content_type and content_type != self._default(part):
            override = self.types.makeelement(CONTENT_TYPES + "Override", None, None)
            override.set("PartName", "/" + part)
            override.set("ContentType", content_type)
            self.types.append(override)

    def _default(self, part: str) -> str:
        ending = part.rpartition(".")[2].casefold()
        for default in self.types.iter(CONTENT_TYPES + "Default"):
            if default.get("Extension", "").casefold() == ending:
                return str(default.get("ContentType", ""))
        return ""

    def learn_default(self, ending: str, content_type: str) -> None:
        """The type of an ending, where the file does not know one yet."""
        if not self._default(f"x.{ending}"):
            default = self.types.makeelement(CONTENT_TYPES + "Default", None, None)
            default.set("Extension", ending)
            default.set("ContentType", content_type)
            self.types.insert(0, default)

    def link(self, part: str, kind: str, target: str) -> str:
        """A relation from one part to another; returns its identifier."""
        links = links_of(self.parts, part, self.where)
        taken = {link.id for link in links}
        number = len(links) + 1
        while f"rId{number}" in taken:
            number += 1
        self.write_links(part, [*links, Link(f"rId{number}", "", kind, target, False)])
        return f"rId{number}"

    def write_links(self, part: str, links: list[Link]) -> None:
        """The relations of a part."""
        root = parsed(f'<Relationships xmlns="{RELATIONS[1:-1]}"/>'.encode(), self.where)
        for link in links:
            made = root.makeelement(RELATIONS + "Relationship", None, None)
            made.set("Id", link.id)
            made.set("Type", link.type)
            made.set("Target", link.target if link.outside else relative(part, link.target))
            if link.outside:
                made.set("TargetMode", "External")
            root.append(made)
        self.parts[rels_part(part)] = written(root)

    def file(self) -> bytes:
        """The bytes of the file."""
        for part, tree in self._edited.items():
            self.parts[part] = written(tree)
        self.parts[self.book.main] = written(self.main)
        self._sort_types()
        self.parts[_TYPES] = written(self.types)
        with io.BytesIO() as file:
            with zipfile.ZipFile(file, "w") as archive:
                for name, data in self._ordered().items():
                    info = zipfile.ZipInfo(name, _EPOCH)
                    info.compress_type = zipfile.ZIP_DEFLATED
                    info.external_attr = 0o600 << 16
                    archive.writestr(info, data)
            return file.getvalue()

    def _sort_types(self) -> None:
        """Endings first, then the parts of the new workbook as they are, then those that were added by their names."""
        endings = [type_ for type_ in self.types if type_.get("Extension")]
        added = [type_ for type_ in self.types if type_.get("PartName", "/").lstrip("/") not in self.book.parts]
        added = [type_ for type_ in added if type_.get("PartName")]
        for at, type_ in enumerate(sorted(endings, key=lambda type_: type_.get("Extension", ""))):
            self.types.insert(at, type_)
        for type_ in sorted(added, key=lambda type_: type_.get("PartName", "")):
            self.types.append(type_)

    def _ordered(self) -> Mapping[str, bytes]:
        """The parts of the new workbook in their order, then those that were added by their names."""
        added = sorted(self.parts.keys() - self.book.parts.keys())
        return {_TYPES: self.parts[_TYPES], **{name: self.parts[name] for name in [*self.book.parts, *added]}}


def fill(element: Element, value: Value, formula: str | None = None) -> None:
    """Give a `<c>` another content: a value, or a formula without a stored result."""
    for child in list(element):
        element.remove(child)
    for name in ("t", "cm", "vm"):
        element.attrib.pop(name, None)
    if formula is not None:
        child = element.makeelement(MAIN + "f", None, None)
        child.text = formula
        element.append(child)
        return
    if value is None:
        return
    if isinstance(value, str):
        element.set("t", "inlineStr")
        inline = element.makeelement(MAIN + "is", None, None)
        text = inline.makeelement(MAIN + "t", None, None)
        text.text = escaped(value)
        if value != " ".join(value.split()):
            text.set(XML + "space", "preserve")
        inline.append(text)
        element.append(inline)
        return
    child = element.makeelement(MAIN + "v", None, None)
    if isinstance(value, bool):
        element.set("t", "b")
        child.text = "1" if value else "0"
    else:
        child.text = repr(value)
    element.append(child)


def escaped(text: str) -> str:
    """A text as a part holds it: what XML cannot hold is written as _x000B_ and the like."""
    text = re.sub(r"_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", text)
    return re.sub("[\x00-\x08\x0b-\x1f\ufffe\uffff]", lambda found: f"_x{ord(found[0]):04X}_", text)


def _new_cell(tree: Element, row: int, column: int) -> Element:
    """A cell where none is, in its place among the others."""
    data = tree.find(MAIN + "sheetData")
    assert data is not None
    lines = list(data.iterchildren(MAIN + "row"))
    line = next((line for line in lines if line.get("r") == str(row + 1)), None)
    if line is None:
        line = data.makeelement(MAIN + "row", None, None)
        line.set("r", str(row + 1))
        data.insert(sum(int(other.get("r", "0")) <= row for other in lines), line)
    made = line.makeelement(MAIN + "c", None, None)
    made.set("r", address(row, column))
    before = sum((place(other.get("r", "")) or (0, 0))[1] < column for other in line.iterchildren(MAIN + "c"))
    line.insert(before, made)
    line.attrib.pop("spans", None)
    return made

"""A planner's own sheets, copied part by part: cells, formats, charts, pictures, comments, tables and names.

Formulas, rules, links and charts are followed through References. Stored results of formulas are not taken along: they
were calculated from the old workbook.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable

from ..sheet_part import address
from .cells import read_cells
from .draft import Draft
from .formats import Formats
from .old_book import Named, OldBook, Sheet
from .parts import CONTENT_TYPES, EXCEL_2009, MAIN, RELATION, Element, Link, local, written
from .references import References

_TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
_CONTENT = "application/vnd.openxmlformats-officedocument.spreadsheetml."
_DROPPED = ("customSheetViews", "oleObjects", "controls", "smartTags")
_UNLINKED = ("printerSettings",)  # of one machine
_SHARED = ("metadata", "person")  # of the whole workbook: array formulas that spill, authors of comments
_MARKS = ("dxfId", "dataDxfId", "headerRowDxfId", "totalsRowDxfId", "headerRowBorderDxfId", "tableBorderDxfId",
          "totalsRowBorderDxfId")  # fmt: skip
_FORMULAS = {MAIN + tag for tag in ("formula", "formula1", "formula2", "calculatedColumnFormula", "totalsRowFormula")}

Tell = Callable[[str, list[str]], None]  # where, and what could not be followed


class SheetCopier:
    """Copies sheets of one old workbook into a draft. tell: hears of each reference that could not be followed."""

    def __init__(self, old: OldBook, draft: Draft, references: References, formats: Formats, tell: Tell) -> None:
        self.old, self.draft, self.references, self.formats, self.tell = old, draft, references, formats, tell
        self._copied: dict[str, str] = {}
        self._types = {
            override.get("PartName", "").lstrip("/").casefold(): override.get("ContentType", "")
            for override in old.tree("[Content_Types].xml").iter(CONTENT_TYPES + "Override")
        }
        self._endings = {
            default.get("Extension", "").casefold(): default.get("ContentType", "")
            for default in old.tree("[Content_Types].xml").iter(CONTENT_TYPES + "Default")
        }
        self._tables = 0

    # -- sheets

    def sheet(self, sheet: Sheet, title: str) -> str:
        """Copy a tab under a title; returns the new part."""
        tree = copy.deepcopy(self.old.tree(sheet.part))
        if sheet.kind == "worksheet":
            self._cells(tree, title)
            self._furniture(tree, title)
        for tag in _DROPPED:
            for child in tree.findall(MAIN + tag):
                tree.remove(child)
        for view in tree.iter(MAIN + "sheetView"):
            view.attrib.pop("tabSelected", None)
        for properties in tree.iter(MAIN + "sheetPr"):
            properties.attrib.pop("codeName", None)
        part = self.draft.fresh(
            "xl/worksheets/sheet1.xml" if sheet.kind == "worksheet" else "xl/chartsheets/sheet1.xml"
        )
        kind = "worksheet" if sheet.kind == "worksheet" else "chartsheet"
        self.draft.add(part, b"", f"{_CONTENT}{kind}+xml")
        self._copied[sheet.part] = part
        self._links(sheet.part, part, tree, title)
        self.draft.parts[part] = written(tree)
        return part

    def _cells(self, tree: Element, title: str) -> None:
        cells = read_cells(tree, self.old.strings)
        for (row, column), cell in cells.items():
            element = cell.element
            if "s" in element.attrib:
                element.set("s", str(self.formats.cell(cell.style)))
            if cell.formula is not None:
                self._formula(element, cell.formula, f"{title}!{address(row, column)}")
            elif element.get("t") == "s":
                self._inline(element)
        for line in tree.iter(MAIN + "row", MAIN + "col"):
            name = "s" if line.tag == MAIN + "row" else "style"
            if (style := line.get(name, "")).isdigit():
                line.set(name, str(self.formats.cell(int(style))))

    def _formula(self, element: Element, text: str, where: str) -> None:
        formula = element.find(MAIN + "f")
        assert formula is not None
        if text:
            followed = self.references.formula(text)
            self.tell(where, followed.lost)
            formula.text = followed.text
        if formula.get("t") == "shared":
            for name in ("t", "si", "ref"):
                formula.attrib.pop(name, None)
        for child in list(element):
            if child.tag in (MAIN + "v", MAIN + "is"):
                element.remove(child)
        element.attrib.pop("t", None)

    def _inline(self, element: Element) -> None:
        """A shared text written into its cell, with its formats."""
        stored = element.find(MAIN + "v")
        at = int(stored.text or 0) if stored is not None and (stored.text or "").isdigit() else -1
        if stored is not None:
            element.remove(stored)
        if not 0 <= at < len(self.old.strings):
            element.attrib.pop("t", None)
            return
        inline = element.makeelement(MAIN + "is", None, None)
        for child in self.old.strings[at]:
            inline.append(copy.deepcopy(child))
        element.append(inline)
        element.set("t", "inlineStr")

    def _furniture(self, tree: Element, title: str) -> None:
        """Rules, links and what else on a sheet holds formulas or formats."""
        for rule in tree.iter(MAIN + "cfRule"):
            if (mark := rule.get("dxfId", "")).isdigit():
                rule.set("dxfId", str(self.formats.mark(int(mark))))
        self._texts(tree, title, (*_FORMULAS, EXCEL_2009 + "f"))
        for link in tree.iter(MAIN + "hyperlink"):
            if location := link.get("location"):
                link.set("location", self._text(location, title))

    def _texts(self, tree: Element, where: str, tags: Iterable[str]) -> None:
        for element in tree.iter(*tags):
            if element.text:
                element.text = self._text(element.text, where)

    def _text(self, text: str, where: str) -> str:
        # Lists of words ("a,b") and plain numbers pass through as they are.
        followed = self.references.formula(text)
        self.tell(where, followed.lost)
        return followed.text

    # -- parts

    def _links(self, old: str, new: str, tree: Element | None, title: str) -> None:
        """The relations of a copied part, with what they lead to."""
        links = []
        for link in self.old.links_of(old):
            if link.kind in _UNLINKED:
                _forget(tree, link.id)
                continue
            target = link.target if link.outside else self._copied.get(link.target) or self.part(link, title)
            links.append(link._replace(target=target))
        if links:
            self.draft.write_links(new, links)

    def part(self, link: Link, title: str) -> str:
        """Copy a part and all that it leads to; returns its new name. title: the tab that it belongs to."""
        old = link.target
        if old not in self.old.parts:
            raise ValueError(f"{self.old.where} lacks the part {old}; use a copy that Excel opens without a repair")
        new = self.draft.fresh(old)
        self._copied[old] = new
        kind, ending = self._types.get(old.casefold(), ""), old.rpartition(".")[2].casefold()
        if not kind and ending in self._endings:
            self.draft.learn_default(ending, self._endings[ending])
        self.draft.add(new, b"", kind)
        tree = self.old.tree(old) if old.endswith((".xml", ".vml")) and link.kind not in ("vmlDrawing",) else None
        if tree is not None and link.kind == "table":
            self._table(tree, title)
        elif tree is not None and link.kind in ("chart", "chartEx"):
            self._texts(
                tree,
                title,
                [tag for tag in {e.tag for e in tree.iter()} if isinstance(tag, str) and tag.endswith("}f")],
            )
        self._links(old, new, tree, title)
        self.draft.parts[new] = (
            self.old.parts[old] if tree is None or link.kind not in ("table", "chart", "chartEx") else written(tree)
        )
        return new

    def drawing(self, sheet: Sheet, anchors: list[Element], title: str, first_row: int) -> str:
        """A drawing of some anchors of a sheet of ours, one below the other; returns its part."""
        old = next(link.target for link in self.old.links_of(sheet.part) if link.kind == "drawing")
        tree = copy.deepcopy(self.old.tree(old))
        for child in list(tree):
            tree.remove(child)
        row = first_row
        for anchor in anchors:
            made = copy.deepcopy(anchor)
            row = _moved(made, row)
            tree.append(made)
        new = self.draft.fresh("xl/drawings/drawing1.xml")
        self.draft.add(new, b"", "application/vnd.openxmlformats-officedocument.drawing+xml")
        used = {
            value for element in tree.iter() for name, value in element.attrib.items() if str(name).startswith(RELATION)
        }
        links = [
            link._replace(
                target=link.target if link.outside else self._copied.get(link.target) or self.part(link, title)
            )
            for link in self.old.links_of(old)
            if link.id in used
        ]
        if links:
            self.draft.write_links(new, links)
        self.draft.parts[new] = written(tree)
        return new

    def _table(self, tree: Element, title: str) -> None:
        self._tables += 1
        tree.set("id", str(self._tables))
        for element in tree.iter():
            for name in _MARKS:
                if (mark := element.get(name, "")).isdigit():
                    element.set(name, str(self.formats.mark(int(mark))))
        self._texts(tree, title, _FORMULAS)

    def shared_parts(self) -> None:
        """Parts of the whole workbook that copied sheets lean on."""
        for link in self.old.links:
            if link.kind in _SHARED and not any(mine.kind == link.kind for mine in self.draft.book.links):
                self.draft.link(self.draft.book.main, link.type, self.part(link, ""))


def add_tab(draft: Draft, part: str, title: str, kind: str = "worksheet", state: str = "visible") -> Element:
    """A tab for a part, behind the others; returns its element."""
    sheets = draft.main.find(MAIN + "sheets")
    assert sheets is not None
    made = sheets.makeelement(MAIN + "sheet", None, None)
    made.set("name", title)
    made.set("sheetId", str(max(int(sheet.get("sheetId", "0")) for sheet in sheets) + 1))
    if state != "visible":
        made.set("state", state)
    made.set(RELATION + "id", draft.link(draft.book.main, _TYPE + kind, part))
    sheets.append(made)
    return made


def arrange(draft: Draft, order: list[str]) -> None:
    """Put the tabs into an order; names and the tab in view follow."""
    sheets = draft.main.find(MAIN + "sheets")
    assert sheets is not None
    before = [sheet.get("name", "") for sheet in sheets]
    elements = {sheet.get("name", ""): sheet for sheet in sheets}
    for title in order:
        sheets.append(elements[title])
    after = {title: at for at, title in enumerate(order)}
    for name in draft.main.iter(MAIN + "definedName"):
        if (index := name.get("localSheetId", "")).isdigit():
            name.set("localSheetId", str(after[before[int(index)]]))
    for view in draft.main.iter(MAIN + "workbookView"):
        for attribute in ("activeTab", "firstSheet"):
            if (index := view.get(attribute, "")).isdigit():
                view.set(attribute, str(after[before[int(index)]]))


def add_names(draft: Draft, names: Iterable[tuple[Named, str, str]], titles: dict[str, str]) -> None:
    """Names of the planner's: each with what it is called and stands for now. titles: folded old tab -> new one."""
    found = draft.main.find(MAIN + "definedNames")
    if found is None:
        return
    sheets = draft.main.find(MAIN + "sheets")
    order = [sheet.get("name", "").casefold() for sheet in sheets] if sheets is not None else []
    for named, called, text in names:
        made = copy.deepcopy(named.element)
        made.set("name", called)
        made.text = text
        if named.sheet is not None:
            title = titles.get(named.sheet.casefold(), named.sheet).casefold()
            if title not in order:
                continue
            made.set("localSheetId", str(order.index(title)))
        found.append(made)


def forget_titles(draft: Draft) -> None:
    """Take the list of tabs out of the file's properties, where it would no longer be right."""
    part = "docProps/app.xml"
    if part in draft.parts:
        tree = draft.edited(part)
        for child in list(tree):
            if local(child) in ("TitlesOfParts", "HeadingPairs"):
                tree.remove(child)


def _forget(tree: Element | None, identifier: str) -> None:
    for element in tree.iter() if tree is not None else ():
        if element.get(RELATION + "id") == identifier:
            del element.attrib[RELATION + "id"]


def _moved(anchor: Element, row: int) -> int:
    """Put an anchor at a row; returns the first row below it."""
    rows = [element for element in anchor.iter() if local(element) == "row" and (element.text or "").strip().isdigit()]
    if not rows:
        return row
    shift = row - int(rows[0].text or 0)
    for element in rows:
        element.text = str(int(element.text or 0) + shift)
    last = int(rows[-1].text or 0)
    return (last if len(rows) > 1 else last + 20) + 2

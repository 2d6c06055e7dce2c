"""A new workbook with a planner's work in it: typed cells, own sheets, names, and what stood on sheets of ours."""

from __future__ import annotations

from collections.abc import Mapping

from . import notes_sheet, own_sheets
from .changes import Changes, Loose, Row, Typed, shown
from .draft import Draft
from .formats import Formats
from .notes_sheet import Note
from .old_book import Named, OldBook
from .own_sheets import SheetCopier
from .parts import Element
from .record import Record
from .references import References, key_columns
from .renames import Renames
from .report import Report
from .stale import drop_stale
from .typed import put_cells, put_rows

_LONGEST_TITLE = 31


def compose(
    draft: Draft,
    old: OldBook,
    record: Record,
    changes: Changes,
    later: Mapping[str, Typed],
    renames: Renames,
    report: Report,
) -> bytes:
    """The bytes of the new workbook. later: typed cells that it does not open on already."""
    new = draft.book.record
    assert new is not None
    references = References(old, record, changes, new, renames, {})
    _settle_names(references, changes, draft, new)
    notes_title = _free_title(notes_sheet.TITLE, _taken(draft, references))
    loose = sorted(changes.loose, key=lambda one: (one.sheet, one.column, one.row))
    for at, one in enumerate(loose):
        references.loose[one.sheet, one.row, one.column] = (notes_title, notes_sheet.FIRST + at, notes_sheet.LIVE)
    left = put_rows(draft, new, changes, references, renames, report)
    references.keys = {
        name: [cell.value if cell else None for cell in draft.book.at(new.names[name])] for name in key_columns(new)
    }
    put_cells(draft, new, later, references, renames, report)
    drop_stale(draft)
    tabs = _own_sheets(draft, old, changes, references, report, loose, left, notes_title)
    if tabs:
        own_sheets.arrange(draft, _order(draft, old, tabs, renames))
        own_sheets.forget_titles(draft)
    _names(draft, changes, references, report)
    report.renamed.update(references.used_renames)
    return draft.file()


def _own_sheets(
    draft: Draft,
    old: OldBook,
    changes: Changes,
    references: References,
    report: Report,
    loose: list[Loose],
    left: list[Row],
    notes_title: str,
) -> dict[str, str]:
    """Copy the planner's sheets and write the notes; returns new title -> old title, "" for the notes."""
    notes_wanted = bool(loose or left or changes.remarks or changes.drawings)
    if not (changes.sheets or notes_wanted):
        return {}
    styles = next(link.target for link in draft.book.links if link.kind == "styles")
    theirs = next((link.target for link in old.links if link.kind == "styles"), None)
    old_styles: Element = old.tree(theirs) if theirs else draft.tree(styles)
    formats = Formats(old_styles, draft.edited(styles))
    copier = SheetCopier(old, draft, references, formats, report.tell)
    tabs: dict[str, str] = {}
    for sheet in changes.sheets:
        title = references.titles.get(sheet.title.casefold(), sheet.title)
        part = copier.sheet(sheet, title)
        kind = "worksheet" if sheet.kind == "worksheet" else "chartsheet"
        own_sheets.add_tab(draft, part, title, kind, sheet.state)
        tabs[title] = sheet.title
        report.carry("own sheet", title)
        if title != sheet.title:
            report.renamed[sheet.title] = title
    if notes_wanted:
        lines = [_note(one, references, formats, report) for one in loose]
        lines += [line for row in left for line in _row_notes(row, report)]
        for remark in changes.remarks:
            lines.append(Note(f"{remark.sheet}!{remark.place}", "a comment", remark.text))
            report.carry("comment", f"{remark.sheet}!{remark.place}")
        below = notes_sheet.FIRST + len(lines) + 2
        drawing = notes_sheet.drawing_of(copier, list(changes.drawings.items()), notes_title, below)
        for title, anchors in changes.drawings.items():
            for _ in anchors:
                report.carry("drawing", title)
        part = notes_sheet.write(draft, lines, drawing, notes_title)
        own_sheets.add_tab(draft, part, notes_title)
        tabs[notes_title] = ""
        report.notes.append(f"What you wrote or drew on our sheets stands on the sheet {notes_title} now.")
    copier.shared_parts()
    return tabs


def _note(one: Loose, references: References, formats: Formats, report: Report) -> Note:
    where, beside = shown(one), one.beside
    if one.ours:
        beside = f"{beside} (a cell of ours, overwritten)".strip()
    report.carry("note", where)
    style = formats.cell(one.cell.style)
    if one.cell.formula is None:
        return Note(where, beside, one.cell.value, style=style)
    followed = references.formula(one.cell.formula, one.sheet)
    report.tell(where, followed.lost)
    live = None if followed.lost else followed.text
    return Note(where, beside, None, live, f"={one.cell.formula}", style)


def _row_notes(row: Row, report: Report) -> list[Note]:
    """A row that no longer has a place, cell by cell."""
    title = f"{row.table} {row.key if row.key not in (None, '') else f'row {row.at + 1}'}"
    report.gone.append(f"{title}; what it held stands on the sheet of notes")
    return [
        Note(title, name, cell.value, typed=f"={cell.formula}" if cell.formula else "")
        for name, cell in row.cells.items()
        if cell is not None and not cell.empty
    ]


# -- titles and names


def _settle_names(references: References, changes: Changes, draft: Draft, new: Record) -> None:
    """Other titles and names for those of the planner's that this version uses itself."""
    ours = {sheet.title.casefold() for sheet in draft.book.sheets}
    taken = ours | {sheet.title.casefold() for sheet in changes.sheets}
    for sheet in changes.sheets:
        if sheet.title.casefold() in ours:
            title = _free_title(f"{sheet.title[: _LONGEST_TITLE - 6]} (own)", taken)
            references.titles[sheet.title.casefold()] = title
            taken.add(title.casefold())
    known = {name.casefold() for name in new.names}
    for named in changes.names:
        if named.sheet is None and named.name.casefold() in known:
            called = f"{named.name}_Own"
            while called.casefold() in known:
                called += "_Own"
            references.own_names[named.name.casefold()] = called


def _taken(draft: Draft, references: References) -> set[str]:
    theirs = {references.titles.get(sheet.title.casefold(), sheet.title) for sheet in references.old.sheets}
    return {title.casefold() for title in (*theirs, *(sheet.title for sheet in draft.book.sheets))}


def _free_title(title: str, taken: set[str]) -> str:
    found, number = title, 1
    while found.casefold() in taken:
        number += 1
        found = f"{title[: _LONGEST_TITLE - 4]} {number}"
    return found


def _order(draft: Draft, old: OldBook, tabs: Mapping[str, str], renames: Renames) -> list[str]:
    """Ours as they are, and each of the planner's behind the tab that it stood behind."""
    order = [sheet.title for sheet in draft.book.sheets]
    called = {was: title for title, was in tabs.items() if was}
    before = ""
    for sheet in old.sheets:
        title = called.get(sheet.title)
        if title is not None:
            order.insert(order.index(before) + 1 if before in order else 0, title)
            before = title
        else:
            ours = renames.sheet(sheet.title)
            before = ours if ours in order else before
    return [*order, *(title for title, was in tabs.items() if not was)]


def _names(draft: Draft, changes: Changes, references: References, report: Report) -> None:
    found: list[tuple[Named, str, str]] = []
    for named in changes.names:
        followed = references.formula(named.text)
        report.tell(f"the name {named.name}", followed.lost)
        called = references.own_names.get(named.name.casefold(), named.name) if named.sheet is None else named.name
        found.append((named, called, followed.text))
        if not named.name.startswith("_xlnm."):
            report.carry("own name", called)
        if called != named.name:
            report.renamed[named.name] = called
    own_sheets.add_names(draft, found, references.titles)

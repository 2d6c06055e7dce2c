"""From a list of jobs to the plan's workbook on disk."""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO

from ... import __version__
from ...capacity.kinds import Graphs
from ...formula.domains import day_of
from ...paths import presets_folder
from ...planning.row_states import COLUMNS, empty
from ...presets.catalogue import Presets, load_presets
from .. import page
from ..carry import record
from ..provenance import Provenance, data_date, data_hash, spoken
from ..words import filled
from . import checks, fleet, jobs, lists, month_columns, months, offers, row_columns, settings, summary, tables
from .book import (
    CARD_COUNT,
    CARDS,
    DAYS,
    FLEET,
    JOBS,
    KIND_SHEETS,
    LIST,
    MONTH_ROWS,
    MONTHS,
    OFFERS,
    ROW_COUNT,
    ROWS,
    SETTINGS,
    SUMMARY,
    WEIGHTS,
    PlanBook,
)
from .grid import FIRST, Values
from .template import NAME, load_plan_template
from .vocabulary import check_terms

SHEETS = (
    JOBS, MONTHS, FLEET, SUMMARY, CARDS, SETTINGS, OFFERS, checks.TITLE, tables.TITLE, LIST, ROWS,
    *KIND_SHEETS.values(), offers.OFFER_TERMS, MONTH_ROWS, "Notes", record.TITLE,
)  # fmt: skip


def plan_bytes(
    template: Mapping[str, Any], presets: Presets, folder: Path | None = None, rows: int = ROW_COUNT
) -> bytes:
    """The plan's workbook as the bytes of its file."""
    with io.BytesIO() as file:
        write_plan(file, template, presets, folder, rows)
        return file.getvalue()


def write_plan(
    path: Path | BinaryIO,
    template: Mapping[str, Any] | None = None,
    presets: Presets | None = None,
    folder: Path | None = None,
    rows: int = ROW_COUNT,
) -> PlanBook:
    """Write the plan's workbook to a path or an open file."""
    template = template or load_plan_template()
    presets = presets or load_presets(folder)
    day = data_date(folder or presets_folder())
    graphs = Graphs(presets)
    check_terms(template, graphs, f"templates/{NAME}.toml")
    made = _provenance(presets, template, graphs, day, folder or presets_folder())
    book = PlanBook(path, template, presets, __version__, spoken(day, template["book"]), made, graphs, rows)
    book.workbook.set_properties(
        {"title": template["title"], "subject": template["subject"], "created": datetime(day.year, day.month, day.day)}
    )
    for title in SHEETS:
        book.sheet(title)
    _lay_out(book)
    typed = [_typed(row) for row in template["jobs"]]
    typed += [_typed({})] * (rows - len(typed))
    book.row_results = book.grid.evaluate(typed)
    _rank(book.row_results)
    checks.totals(book)
    book.floors = [{} for _ in range(CARD_COUNT)]
    book.fleet = fleet.table(book)
    months_written = (months.write, fleet.write, summary.write)
    jobs.write(book)
    for write in months_written:
        write(book)
    offers.write_cards(book)
    settings.write(book)
    offers.write_offers(book)
    checks.write(book)
    tables.write(book)
    _workings(book)
    offers.write_terms(book)
    lists.write(book)
    _notes(book)
    record.write(book)
    book.sheet(JOBS).activate()
    book.workbook.close()
    return book


def _lay_out(book: PlanBook) -> None:
    """Every column of the grid, in the order in which they are evaluated."""
    grid, graph = book.grid, book.graphs.row
    jobs.place(book)
    grid.add(ROWS, row_columns.typed(book))
    grid.add(ROWS, row_columns.kind_of_row(book))
    grid.add(ROWS, row_columns.faults(book))
    grid.add(ROWS, row_columns.open_offers(book))
    for name, sheet in KIND_SHEETS.items():
        kind = book.kinds[name]
        grid.add(sheet, kind.columns_of_row())
        for at in range(len(book.offers)):
            grid.add(sheet, kind.columns_of_offer(at))
    grid.add(OFFERS, row_columns.offered(book))
    grid.add(ROWS, row_columns.chosen(book))
    for name, sheet in KIND_SHEETS.items():
        grid.add(sheet, book.kinds[name].columns_on_card())
    grid.add(ROWS, row_columns.taken(book))
    grid.add(ROWS, row_columns.of_row(book, graph))
    lists.steady_of_rows(book)
    grid.add(ROWS, row_columns.states(book))
    grid.add(MONTH_ROWS, month_columns.columns(book))
    grid.add(ROWS, row_columns.sums(book))
    grid.running = frozenset(("team_first", "team_no", "left_no"))


def dated(day: Any) -> date:
    """A date, from a text such as 2026-08-17."""
    return day if isinstance(day, date) else date.fromisoformat(str(day).strip())


def _typed(row: dict[str, Any]) -> Values:
    found: Values = {}
    for column in COLUMNS:
        value = row.get(column)
        value = day_of(value) if column in DAYS else value
        found[f"jobs.{column}"] = "" if empty(value) else value
    return found


def _rank(rows: list[Values]) -> None:
    """Places by money, of equals the first row first."""
    order = sorted((row for row in rows if row["spend"] > 0), key=lambda row: -row["spend"])
    for place, row in enumerate(order, 1):
        row["rank"] = place


def _workings(book: PlanBook) -> None:
    """The sheets of the grid: heads, names of the jobs, every column."""
    words, styles, grid = book.template["workings"], book.styles, book.grid
    sheets = (ROWS, *KIND_SHEETS.values(), MONTH_ROWS)
    for sheet in sheets:
        ws, put = book.sheet(sheet), book.putter(book.sheet(sheet))
        page.plain_sheet(
            book, sheet, kind="wide", last_column=grid.next[sheet], stamp=False, sentence=words["sentence"],
            rows_repeated=(0, FIRST - 1), freeze=(FIRST, 2),
        )  # fmt: skip
        put(FIRST - 2, 1, book.states.label("name"), styles["th_open"])
        put(FIRST - 1, 1, "", styles["th_ul"])
        name = grid.at(sheet)("jobs.name")
        for at, row in enumerate(book.row_results):
            formula = f'=IF({name}="","",{name})'.replace("{row}", str(FIRST + at + 1))
            ws.write_formula(FIRST + at, 1, formula, styles["r_label"], row["jobs.name"])
        page.print_area(ws, grid.last, 12)
    put = book.putter(book.sheet(ROWS))
    told = [f"told.{key}" for key in row_columns.TOLD]
    for keys in (told, list(row_columns.NOTED)):
        for at, key in enumerate(keys):
            put(WEIGHTS, grid.places[key][1], len(keys) - at, styles["r_no"])
    grid.write(book, book.row_results, dict.fromkeys((*sheets, OFFERS), FIRST - 2))


def _notes(book: PlanBook) -> None:
    ws, styles = book.sheet("Notes"), book.styles
    put = book.putter(ws)
    last = page.plain_sheet(book, "Notes", sentence=book.template["subject"], rows_repeated=None, freeze=(2, 0))
    row = 3
    for name, note in book.template["notes"].items():
        ws.set_row(row, 15 * (1 + len(note) // 100) + 8)
        put(row, 1, name, styles.variant("label_b", vertical="top"))
        put(row, 2, note, styles.variant("text_w", vertical="top"))
        row += 1
    for name, said in book.provenance.lines(book.words["provenance"]).items():
        put(row, 1, name, styles["label"])
        put(row, 2, said, styles["label"])
        row += 1
    page.print_area(ws, row, last)


def _provenance(presets: Presets, template: Mapping[str, Any], graphs: Graphs, day: date, folder: Path) -> Provenance:
    import hashlib

    from ..provenance import formula_hash, own_files

    words = template["book"]["provenance"]
    every = (*graphs.kinds.values(), graphs.row, graphs.offer, graphs.load, graphs.fleet)
    digest = hashlib.sha256("".join(formula_hash(job) for job in every).encode()).hexdigest()[:12]
    return Provenance(
        program=f"sizing_xlsx {__version__}",
        data=filled(words["data_of"], date=spoken(day, template["book"])),
        formulas=filled(words["hash"], digest=digest),
        presets=filled(words["hash"], digest=data_hash(folder)),
        own=own_files(presets, words) if presets.own else "",
    )

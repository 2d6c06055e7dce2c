"""Sizing: the answer strip, the steps of inputs, the line items, the moments, the boundary and the charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...formula.expression import Expr
from ...formula.primitives import either, when
from ...formula.render import public_name
from .. import page
from ..book import Raw, told
from ..inputs import typed_style, write_input
from ..page import Tile
from ..words import quoted, sentence, spelled
from . import chart_data, overrides, scenarios
from . import checks as checks_sheet

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Sizing"
_MOST_ON_A_PAGE = 14  # line items and moments that are printed on one page
_LABEL, _VALUE, _UNIT, _HELP, _PUBLISHED, _DRIVES, _REDUCES = 1, 2, 3, 4, 5, 6, 7


def write(book: Book) -> None:
    """The sheet a planner works on."""
    ws = book.sheet(TITLE)
    last = page.set_page(ws, book.look, kind="Sizing", file_and_version=book.footer, freeze=(7, 0))
    _strip(book, last)
    row, breaks = write_steps(book, last)
    breaks.append(row)
    row = _items(book, row, last)
    if len(book.template["items"]) + len(book.template["moments"]) > _MOST_ON_A_PAGE:
        breaks.append(row)
    row = _moments(book, row, last)
    row = _boundary(book, row, last)
    breaks.append(row)
    row = _charts(book, row, last)
    page.print_area(ws, row, last, breaks)
    ws.set_selection(9, _VALUE, 9, _VALUE)


def write_steps(book: Book, last: int) -> tuple[int, list[int]]:
    """Which job is sized, and the steps of inputs below the strip; returns the next free row and page breaks."""
    ws, styles = book.sheet(TITLE), book.styles
    scenarios.write_choice(book, TITLE, 0, _DRIVES - 1)
    row = 7
    breaks = []
    for number, step in enumerate(book.template["steps"], 1):
        if step.get("new_page"):
            breaks.append(row)
        row = page.section(
            ws,
            styles,
            row,
            last_column=last,
            name=step["name"],
            put=book.putter(ws),
            number=number,
            note=scenarios.idle_note(book, live(book, step["note"])),
        )
        for entry in step["rows"]:
            _entry(book, row, entry)
            row += 1
    return row, breaks


def live(book: Book, key: str) -> Any:
    """A sentence of the template, withdrawn while an input is faulty."""
    return book.shown(book.sym(key))


def _strip(book: Book, last: int) -> None:
    sym, shown, tiles = book.sym, book.shown, book.template["sizing"]["tiles"]
    write_strip(
        book,
        last,
        [
            Tile(2, 3, tiles["total"], shown(sym("total_shown_gb")), shown(sym("total_note"))),
            Tile(4, 4, tiles["usable"], shown(sym("usable_shown_gb")), shown(sym("usable_note"))),
            Tile(5, 5, tiles["headroom"], shown(sym("headroom_shown_gb")), shown(sym("headroom_note"))),
            Tile(6, 6, tiles["utilisation"], shown(sym("card_utilisation")),
                 shown(sym("gauge_share")), "tile_pct", "gauge"),
        ],
        Raw("Published_In_Place", book.values["published_in_place"]),
    )  # fmt: skip


def write_strip(book: Book, last: int, figures: Sequence[Tile], basis: Raw | None = None) -> None:
    """The answer strip: verdict, the figures given, checks.

    basis: whether the verdict rests on another family than was chosen, which its sentence then says.
    """
    sym, shown, words = book.sym, book.shown, book.template["sizing"]
    tiles, states = words["tiles"], words["checks"]
    passing = told(states["pass"], count=Raw("=Checks_Count", book.values["checks_count"]))
    one, several = (quoted(ending) for ending in states["endings"])
    failing = spelled(
        states["fail"], failed="Checks_Failed", count="Checks_Count", ending=f"IF(Checks_Failed>1,{several},{one})"
    )
    checks = Raw(f"=IF(Checks_Failed>0,{failing},{passing.inner})", passing.value)
    own = told(states["own"], count=Raw("=Own_Values_Count", overrides.own_values(book)))
    warning = Raw(
        f"=IF(Checks_Failed>0,{quoted(states['corrected'])},"
        f"IF(Warnings_Raised>0,{quoted(states['warning'])},"
        f"IF(Own_Values_Count>0,{own.inner},{quoted(states['fine'])})))",
        _state_of_inputs(book, own.value),
    )
    scenario = spelled(words["scenario"], name="Scenario_Choice")
    verdict = str(book.value(sym("verdict")))
    warnings = checks_sheet.open_warnings(book)
    if basis and basis.value:  # its sentence is long: the warning is then told on Checks alone
        verdict += f" {book.values['basis']}"
    elif warnings:
        verdict += f" {checks_sheet.first_warning(book)}"
    beside = 'IF(Warnings_Raised>0," "&First_Warning,"")'
    if basis:
        beside = f'IF({basis.formula}>0," "&Basis_Sentence,{beside})'
    page.strip(
        book.sheet(TITLE),
        book.styles,
        last_column=last,
        title=book.template["title"],
        sentence=Raw(
            f'=IF(Scenario_Row>0,{scenario},"")&IF(Checks_Failed>0,First_Fault,Verdict_Sentence&{beside})', verdict
        ),
        stamp=book.stamp,
        put=book.putter(book.sheet(TITLE)),
        tiles=[
            Tile(1, 1, tiles["verdict"], shown(sym("verdict_shown"), book.words["check_input"]),
                 shown(sym("verdict_note"), tiles["no_verdict"]), kind="verdict"),
            *figures,
            Tile(7, 7, tiles["checks"], checks, warning, "tile_text"),
        ],
    )  # fmt: skip


def _state_of_inputs(book: Book, own: str) -> str:
    """What the checks tile says of the inputs the workbook opens on; own: where presets are replaced."""
    states: Mapping[str, str] = book.template["sizing"]["checks"]
    if checks_sheet.open_warnings(book):
        return states["warning"]
    return own if overrides.own_values(book) else states["fine"]


def _entry(book: Book, row: int, entry: dict[str, Any]) -> None:
    ws, styles, job = book.sheet(TITLE), book.styles, book.job
    put = book.putter(ws)
    rows = book.look["rows"]
    ws.set_row(row, rows["input_wrapped"] if entry.get("tall") else rows["input"])
    if "input" in entry:
        key = entry["input"]
        book.sym(key)  # a template that names no input is refused with the name
        facts: Any = job.inputs[key]
        share = styles.variant(typed_style(facts), format="n2") if facts.unit == "share" else None
        write_input(book, ws, TITLE, row, _VALUE, key, share)
        if entry.get("own"):
            page.formula_marks(ws, styles, (row, _LABEL, row, _VALUE), f"={public_name(entry['own'])}=0", "quiet")
    else:
        key = entry["term"]
        facts = job.terms[key]
        put(row, _VALUE, book.shown(book.sym(key)), styles["calc1" if facts.unit == "GB" else "calc0"])
        if key in job.overrides:
            entered = public_name(job.overrides[key].input_name)
            page.own_marks(ws, styles, (row, _VALUE, row, _VALUE), f"=ISNUMBER({entered}_In_Force)")
    put(row, _LABEL, entry.get("label") or facts.label, styles["label"])
    unit = facts.unit.partition(" per ")[0]
    put(row, _UNIT, {"text": "", "parameters": "count"}.get(unit, unit), styles["unit"])
    if "sentence" in entry:
        put(row, _HELP, book.shown(book.sym(entry["sentence"])), styles["help"])
    elif entry.get("help"):
        text = sentence(entry["help"], book.sym)
        put(row, _HELP, text if isinstance(text, str) else book.shown(text), styles["help"])


def _head(book: Book, row: int, names: Sequence[str]) -> int:
    ws, styles = book.sheet(TITLE), book.styles
    ws.set_row(row, book.look["rows"]["header"])
    forms = ("th", "th_r", "th_i", "th_r", "th_r", "th_i", "th_i")
    for column, (text, form) in enumerate(zip(names, forms, strict=True), 1):
        style = styles.variant("th_i", indent=2) if column == _DRIVES else styles[form]
        book.put(ws, row, column, text, style)
    return row + 1


def _items(book: Book, row: int, last: int) -> int:
    ws, styles, sym, rows = book.sheet(TITLE), book.styles, book.sym, book.look["rows"]
    put, words = book.putter(ws), book.template["sizing"]["items"]
    not_traced, no_item = (book.template["sizing"][key] for key in ("not_traced", "no_item"))
    row = page.section(
        ws, styles, row, last_column=last, name=words["name"], put=put, note=live(book, "items_note"),
        space_below=False,
    )  # fmt: skip
    row = _head(book, row, words["columns"])
    first = row
    gb, traced_on = sym("bytes_per_gb"), sym("traced_available") > 0
    for item in book.template["items"]:
        traced = sym(item["traced"]) / gb
        published = sym(item["published"]) / gb if item["published"] else None
        ws.set_row(row, rows["table"])
        put(row, _LABEL, item["name"], styles["r_label"])
        put(row, _VALUE, book.shown(either(traced_on, traced, not_traced)), styles["r_calc3"])
        put(row, _UNIT, "GB", styles["r_unit"])
        put(row, _HELP, book.shown(item_in_force(book, item) / sym("peak_allocated")), styles["r_share"])
        put(row, _PUBLISHED, no_item if published is None else book.shown(published), styles["r_calc3"])
        put(row, _DRIVES, item["drives"], styles.variant("r_help", indent=2, wrap=False))
        put(row, _REDUCES, item["reduces"], styles.variant("r_help", indent=1, wrap=False))
        row += 1
    grid = book.look["sheets"]["Sizing"]["widths"]
    page.data_bar(ws, styles, (first, _HELP, row - 1, _HELP), maximum=page.bar_maximum(1, 6.8, grid[_HELP]))
    peak, total = "peak_allocated_gb", "total_reserved_gb"
    totals = (
        (words["peak"], peak, "t"),
        (words["reserve"], None, "r"),
        (words["total"], total, "t"),
    )
    for (name, drives), figure, form in totals:
        ws.set_row(row, rows["table" if form == "r" else "total"])
        put(row, _LABEL, name, styles[f"{form}_label"])
        if figure is None:
            traced = either(traced_on, sym("allocator_reserve") / gb, not_traced)
            published = (sym("published_reserved") - sym("published_allocated")) / gb
        else:
            traced, published = sym("traced_" + figure), sym("published_" + figure)
        put(row, _VALUE, book.shown(traced), styles[f"{form}_calc3"])
        put(row, _UNIT, "GB", styles[f"{form}_unit"])
        put(row, _HELP, Raw('=IF(Checks_Failed>0,"–",1)', 1) if figure == peak else "", styles[f"{form}_share"])
        put(row, _PUBLISHED, book.shown(published), styles[f"{form}_calc3"])
        put(row, _DRIVES, drives, styles.variant(f"{form}_help", indent=2, wrap=False))
        reduces = words["reserve_reduces"] if form == "r" else ""
        put(row, _REDUCES, reduces, styles.variant(f"{form}_help", indent=1, wrap=False))
        row += 1
    ws.set_row(row, rows["input"])
    name, drives = words["shown_outside"]
    put(row, _LABEL, name, styles["label"])
    put(row, _VALUE, book.shown(sym("nvidia_smi_gb")), styles["calc3"])
    put(row, _UNIT, "GB", styles["unit"])
    put(row, _DRIVES, drives, styles.variant("help", indent=2))
    return row + 1


def item_in_force(book: Book, item: Mapping[str, Any]) -> Expr:
    """Bytes of a line item by the family that the verdict rests on."""
    published = book.sym(item["published"]) if item["published"] else 0
    tree: Expr = when(book.sym("rests_on_traced") > 0, book.sym(item["traced"]), published)
    return tree


def _moments(book: Book, row: int, last: int) -> int:
    ws, styles, sym, rows = book.sheet(TITLE), book.styles, book.sym, book.look["rows"]
    put, words = book.putter(ws), book.template["sizing"]["moments"]
    not_traced = book.template["sizing"]["not_traced"]
    row = page.section(
        ws, styles, row, last_column=last, name=words["name"], put=put, space_below=False, note=words["note"]
    )
    columns = [*words["columns"], ""]
    row = _head(book, row, columns)
    put(row - 1, _PUBLISHED, columns[_PUBLISHED - 1], styles["th_i"])
    first = row
    traced_on = sym("traced_available") > 0
    for moment in book.template["moments"]:
        term = sym(moment["term"])
        ws.set_row(row, rows["table"])
        put(row, _LABEL, moment["name"], styles["r_label"])
        in_use = either(traced_on, term / sym("bytes_per_gb"), not_traced)
        put(row, _VALUE, book.shown(in_use), styles["r_calc3"])
        put(row, _UNIT, "GB", styles["r_unit"])
        put(
            row,
            _HELP,
            book.shown(either(traced_on, term / sym("traced_allocated"), not_traced)),
            styles["r_share"],
        )
        state = when(term >= sym("traced_allocated"), words["sets"], words["below"])
        put(row, _PUBLISHED, book.shown(when(traced_on, state, not_traced)), styles["r_text_i"])
        put(row, _DRIVES, moment["alive"], styles.variant("r_help", indent=2, wrap=False))
        put(row, _REDUCES, "", styles["r_help"])
        for column in (_LABEL, _VALUE, _PUBLISHED):  # not the bar: a mark would hide it in some programs
            sets = f"=$F${row + 1}={quoted(words['sets'])}"
            page.formula_marks(ws, styles, (row, column, row, column), sets, "decides")
        row += 1
    grid = book.look["sheets"]["Sizing"]["widths"]
    page.data_bar(ws, styles, (first, _HELP, row - 1, _HELP), maximum=page.bar_maximum(1, 6.8, grid[_HELP]))
    return row


def _boundary(book: Book, row: int, last: int) -> int:
    ws, styles, sym, rows = book.sheet(TITLE), book.styles, book.sym, book.look["rows"]
    put, words = book.putter(ws), book.template["sizing"]["boundary"]
    row = page.section(
        ws, styles, row, last_column=last, name=words["name"], put=put, space_below=False, note=words["note"]
    )
    row = _head(book, row, [*words["columns"], ""])
    for (name, unit), key, entered in (
        (words["batch"], "largest_batch_size", "batch_size"),
        (words["sequence"], "largest_sequence_length", "sequence_length"),
    ):
        ws.set_row(row, rows["table"])
        put(row, _LABEL, name, styles["r_label"])
        put(row, _VALUE, book.shown(sym(key)), styles["r_calc0"])
        put(row, _UNIT, unit, styles["r_unit"])
        put(row, _HELP, book.shown(sym(entered)), styles["r_calc0"])
        put(row, _PUBLISHED, book.shown(sym("published_" + key)), styles["r_calc0"])
        put(
            row,
            _DRIVES,
            book.template["boundary"]["note"],
            styles.variant("r_help", indent=2, wrap=False),
        )
        put(row, _REDUCES, "", styles["r_help"])
        row += 1
    return row


def _charts(book: Book, row: int, last: int) -> int:
    ws, styles, rows = book.sheet(TITLE), book.styles, book.look["rows"]
    name = book.template["sizing"]["charts"]["name"]
    row = page.section(ws, styles, row, last_column=last, name=name, put=book.putter(ws))
    for placed in (chart_data.place_parts_and_sequence, chart_data.place_batch):
        placed(book, ws, row)
        for _ in range(16):
            ws.set_row(row, rows["chart"])
            row += 1
    return row

"""Sizing: the answer strip, the steps of inputs, the line items, the moments, the boundary and the charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...formula.expression import Expr
from ...formula.primitives import either, when
from ...formula.render import public_name
from .. import page
from ..book import Raw
from ..inputs import write_input
from ..page import Tile
from ..words import sentence
from . import chart_data, overrides, scenarios
from . import checks as checks_sheet

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Sizing"
_LABEL, _VALUE, _UNIT, _HELP, _PUBLISHED, _DRIVES, _REDUCES = 1, 2, 3, 4, 5, 6, 7


def write(book: Book) -> None:
    """The sheet a planner works on."""
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    last = page.set_page(ws, book.look, kind="Sizing", file_and_version=book.footer, freeze=(7, 0))
    _strip(book, last)
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
            put=put,
            number=number,
            note=scenarios.idle_note(book, _live(book, step["note"])),
        )
        for entry in step["rows"]:
            _entry(book, row, entry)
            row += 1
    breaks.append(row)
    row = _items(book, row, last)
    row = _moments(book, row, last)
    row = _boundary(book, row, last)
    breaks.append(row)
    row = _charts(book, row, last)
    page.print_area(ws, row, last, breaks)
    ws.set_selection(9, _VALUE, 9, _VALUE)


def _live(book: Book, key: str) -> Any:
    """A sentence of the template, withdrawn while an input is faulty."""
    return book.shown(book.sym(key))


def _strip(book: Book, last: int) -> None:
    sym, shown = book.sym, book.shown
    checks = Raw(
        '=IF(Checks_Failed>0,Checks_Failed&" of "&Checks_Count&IF(Checks_Failed>1," fail"," fails"),'
        '"All "&Checks_Count&" pass")',
        f"All {book.values['checks_count']} pass",
    )
    warning = Raw(
        '=IF(Checks_Failed>0,"no verdict until corrected",'
        'IF(Warnings_Raised>0,"with a warning: see Checks",'
        'IF(Own_Values_Count>0,"own values in force: "&Own_Values_Count,"inputs complete and in range")))',
        _state_of_inputs(book),
    )
    verdict = str(book.value(sym("verdict")))
    warning_told = checks_sheet.first_warning(book)
    if book.values["published_in_place"]:  # its sentence is long: the warning is then told on Checks alone
        verdict += f" {book.values['basis']}"
    elif warning_told != "none":
        verdict += f" {warning_told}"
    page.strip(
        book.sheet(TITLE),
        book.styles,
        last_column=last,
        title=book.template["title"],
        sentence=Raw(
            '=IF(Scenario_Row>0,"Scenario "&Scenario_Choice&": ","")&IF(Checks_Failed>0,First_Fault,'
            'Verdict_Sentence&IF(Published_In_Place>0," "&Basis_Sentence,'
            'IF(Warnings_Raised>0," "&First_Warning,"")))', verdict),
        stamp=book.stamp,
        put=book.putter(book.sheet(TITLE)),
        tiles=[
            Tile(1, 1, "Verdict", shown(sym("verdict_shown"), "CHECK INPUT"),
                 shown(sym("verdict_note"), "No verdict until corrected"), kind="verdict"),
            Tile(2, 3, "Total to size against", shown(sym("total_shown_gb")), shown(sym("total_note"))),
            Tile(4, 4, "Usable capacity", shown(sym("usable_shown_gb")), shown(sym("usable_note"))),
            Tile(5, 5, "Headroom", shown(sym("headroom_shown_gb")), shown(sym("headroom_note"))),
            Tile(6, 6, "Utilisation of the card", shown(sym("card_utilisation")),
                 shown(sym("gauge_share")), "tile_pct", "gauge"),
            Tile(7, 7, "Checks", checks, warning, "tile_text"),
        ],
    )  # fmt: skip


def _state_of_inputs(book: Book) -> str:
    """What the checks tile says of the inputs the workbook opens on."""
    if any(not rule.fault and not book.values[key] for key, rule in book.job.checks.items()):
        return "with a warning: see Checks"
    own = overrides.own_values(book)
    return f"own values in force: {own}" if own else "inputs complete and in range"


def _entry(book: Book, row: int, entry: dict[str, Any]) -> None:
    ws, styles, job = book.sheet(TITLE), book.styles, book.job
    put = book.putter(ws)
    rows = book.look["rows"]
    ws.set_row(row, rows["input_wrapped"] if entry.get("tall") else rows["input"])
    if "input" in entry:
        key = entry["input"]
        book.sym(key)  # a template that names no input is refused with the name
        facts: Any = job.inputs[key]
        write_input(book, ws, TITLE, row, _VALUE, key)
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
    put(row, _UNIT, {"text": "", "parameters": "count"}.get(facts.unit, facts.unit), styles["unit"])
    if "sentence" in entry:
        put(row, _HELP, book.shown(book.sym(entry["sentence"])), styles["help"])
    elif entry.get("help"):
        text = sentence(entry["help"], book.sym)
        put(row, _HELP, text if isinstance(text, str) else book.shown(text), styles["help"])


def _head(book: Book, row: int, names: tuple[str, ...]) -> int:
    ws, styles = book.sheet(TITLE), book.styles
    ws.set_row(row, book.look["rows"]["header"])
    forms = ("th", "th_r", "th_i", "th_r", "th_r", "th_i", "th_i")
    for column, (text, form) in enumerate(zip(names, forms, strict=True), 1):
        style = styles.variant("th_i", indent=2) if column == _DRIVES else styles[form]
        book.put(ws, row, column, text, style)
    return row + 1


def _items(book: Book, row: int, last: int) -> int:
    ws, styles, sym, rows = book.sheet(TITLE), book.styles, book.sym, book.look["rows"]
    put = book.putter(ws)
    row = page.section(
        ws, styles, row, last_column=last, name="Where the memory goes", put=put, note=_live(book, "items_note"),
        space_below=False,
    )  # fmt: skip
    row = _head(
        book,
        row,
        (
            "Line item",
            "Traced",
            "Unit",
            "Share of the peak",
            "Published",
            "What drives it",
            "What reduces it",
        ),
    )
    first = row
    gb, traced_on = sym("bytes_per_gb"), sym("traced_available") > 0
    for item in book.template["items"]:
        traced = sym(item["traced"]) / gb
        published = sym(item["published"]) / gb if item["published"] else None
        ws.set_row(row, rows["table"])
        put(row, _LABEL, item["name"], styles["r_label"])
        put(row, _VALUE, book.shown(either(traced_on, traced, "not traced")), styles["r_calc3"])
        put(row, _UNIT, "GB", styles["r_unit"])
        put(row, _HELP, book.shown(item_in_force(book, item) / sym("peak_allocated")), styles["r_share"])
        put(row, _PUBLISHED, "none" if published is None else book.shown(published), styles["r_calc3"])
        put(row, _DRIVES, item["drives"], styles.variant("r_help", indent=2, wrap=False))
        put(row, _REDUCES, item["reduces"], styles.variant("r_help", indent=1, wrap=False))
        row += 1
    grid = book.look["sheets"]["Sizing"]["widths"]
    page.data_bar(ws, styles, (first, _HELP, row - 1, _HELP), maximum=page.bar_maximum(1, 6.8, grid[_HELP]))
    peak, total = "peak_allocated_gb", "total_reserved_gb"
    totals = (
        ("Peak allocated", peak, "What the framework reports as its maximum", "t"),
        ("Allocator reserve, upper estimate", None, "Blocks kept for reuse; fragments", "r"),
        ("Total to size against", total, "What the verdict compares with the card", "t"),
    )
    for name, figure, words, form in totals:
        ws.set_row(row, rows["table" if form == "r" else "total"])
        put(row, _LABEL, name, styles[f"{form}_label"])
        if figure is None:
            traced = either(traced_on, sym("allocator_reserve") / gb, "not traced")
            published = (sym("published_reserved") - sym("published_allocated")) / gb
        else:
            traced, published = sym("traced_" + figure), sym("published_" + figure)
        put(row, _VALUE, book.shown(traced), styles[f"{form}_calc3"])
        put(row, _UNIT, "GB", styles[f"{form}_unit"])
        put(row, _HELP, Raw('=IF(Checks_Failed>0,"–",1)', 1) if figure == peak else "", styles[f"{form}_share"])
        put(row, _PUBLISHED, book.shown(published), styles[f"{form}_calc3"])
        put(row, _DRIVES, words, styles.variant(f"{form}_help", indent=2, wrap=False))
        put(
            row,
            _REDUCES,
            "Expandable segments" if form == "r" else "",
            styles.variant(f"{form}_help", indent=1, wrap=False),
        )
        row += 1
    ws.set_row(row, rows["input"])
    put(row, _LABEL, "nvidia-smi may show up to", styles["label"])
    put(row, _VALUE, book.shown(sym("nvidia_smi_gb")), styles["calc3"])
    put(row, _UNIT, "GB", styles["unit"])
    put(
        row,
        _DRIVES,
        "The total and what others use. Rows are rounded one by one.",
        styles.variant("help", indent=2),
    )
    return row + 1


def item_in_force(book: Book, item: Mapping[str, Any]) -> Expr:
    """Bytes of a line item by the family that the verdict rests on."""
    published = book.sym(item["published"]) if item["published"] else 0
    tree: Expr = when(book.sym("rests_on_traced") > 0, book.sym(item["traced"]), published)
    return tree


def _moments(book: Book, row: int, last: int) -> int:
    ws, styles, sym, rows = book.sheet(TITLE), book.styles, book.sym, book.look["rows"]
    put = book.putter(ws)
    row = page.section(
        ws, styles, row, last_column=last, name="Which moment sets the peak", put=put, space_below=False,
        note="The traced peak is the largest of these moments, not their sum.",
    )  # fmt: skip
    row = _head(book, row, ("Moment", "In use", "Unit", "Against the peak", "State", "What is alive then", ""))
    put(row - 1, _PUBLISHED, "State", styles["th_i"])
    first = row
    traced_on = sym("traced_available") > 0
    for moment in book.template["moments"]:
        term = sym(moment["term"])
        ws.set_row(row, rows["table"])
        put(row, _LABEL, moment["name"], styles["r_label"])
        in_use = either(traced_on, term / sym("bytes_per_gb"), "not traced")
        put(row, _VALUE, book.shown(in_use), styles["r_calc3"])
        put(row, _UNIT, "GB", styles["r_unit"])
        put(
            row,
            _HELP,
            book.shown(either(traced_on, term / sym("traced_allocated"), "not traced")),
            styles["r_share"],
        )
        state = when(term >= sym("traced_allocated"), "Sets the peak", "Below it")
        put(row, _PUBLISHED, book.shown(when(traced_on, state, "not traced")), styles["r_text_i"])
        put(row, _DRIVES, moment["alive"], styles.variant("r_help", indent=2, wrap=False))
        put(row, _REDUCES, "", styles["r_help"])
        for column in (_LABEL, _VALUE, _PUBLISHED):  # not the bar: a mark would hide it in some programs
            page.formula_marks(ws, styles, (row, column, row, column), f'=$F${row + 1}="Sets the peak"', "decides")
        row += 1
    grid = book.look["sheets"]["Sizing"]["widths"]
    page.data_bar(ws, styles, (first, _HELP, row - 1, _HELP), maximum=page.bar_maximum(1, 6.8, grid[_HELP]))
    return row


def _boundary(book: Book, row: int, last: int) -> int:
    ws, styles, sym, rows = book.sheet(TITLE), book.styles, book.sym, book.look["rows"]
    put = book.putter(ws)
    row = page.section(
        ws, styles, row, last_column=last, name="How far it can grow on this card", put=put, space_below=False,
        note="Each alone, all else as entered: the largest value whose verdict is still “fits”.",
    )  # fmt: skip
    row = _head(book, row, ("Input", "Verdict's basis", "Unit", "As entered", "Published", "What limits it", ""))
    for name, key, unit, entered in (
        ("Largest batch size", "largest_batch_size", "rows", "batch_size"),
        ("Longest sequence", "largest_sequence_length", "tokens", "sequence_length"),
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
    row = page.section(
        ws, styles, row, last_column=last, name="What this looks like against the card", put=book.putter(ws)
    )
    for placed in (chart_data.place_parts_and_sequence, chart_data.place_batch):
        placed(book, ws, row)
        for _ in range(16):
            ws.set_row(row, rows["chart"])
            row += 1
    return row

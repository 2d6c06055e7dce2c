"""Compare: every card of the catalogue against the job of Sizing, sorted as the planner likes.

"Compare workings" is a job table in which the card alone varies, in the order of the catalogue, with each card's
price and its place in the order chosen. The visible rows look their card up by its place. Last stands the card as
entered, where a figure of its own was entered for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...formula.primitives import fixed
from ...formula.render import column_name, public_name
from ...planning.compare import (
    FITS,
    RESULTS,
    TIGHT,
    Card,
    card_inputs,
    card_of,
    cheapest_that_fits,
    smallest_that_fits,
)
from .. import page
from ..book import Raw
from ..jobtable import JobTable, write_job_table
from ..own_runs import NOT_GIVEN
from ..page import Tile
from ..words import filled, quoted, spelled

if TYPE_CHECKING:
    from ..book import Book

TITLE, WORKINGS = "Compare", "Compare workings"
ORDER, ORDERS = "Compare_Order", "Compare_Orders_List"
FIRST = 9  # row of the first card, from 0, on both sheets
_ORDER_ROW = 7
_EXTRA = {  # columns beside the job table, with their styles; headings and units stand in the template
    "name": "r_text_r", "row": "r_calc0", "card": "r_text_r", "known": "r_calc0", "shipped": "r_calc2",
    "source": "r_text_r", "price": "r_calc2", "price_source": "r_text_r", "small": "r_calc3", "cheap": "r_calc2",
    "key": "r_calc3", "rank": "r_calc0", "shown": "r_calc0",
}  # fmt: skip
_SHOWN = ("headroom_shown_gb", "usable_shown_gb", "matrix_workspaces")  # the first two rounded as on Sizing
# The visible columns: what is shown, its style, whether a figure that is not known says so.
_COLUMNS = (
    ("card", "r_label"), ("verdict_code", "r_text_i"), ("card_utilisation", "r_util"), ("headroom_shown_gb", "r_calc1"),
    ("usable_shown_gb", "r_calc1"), ("largest_batch_size", "r_calc0"), ("largest_sequence_length", "r_calc0"),
    ("price", "r_calc2"), ("price_source", "r_note"),
)  # fmt: skip


class Compare:
    """The rows of the table, with the figures of each card and its place."""

    def __init__(self, book: Book) -> None:
        job, self.words = book.job, book.template["compare"]
        self.own_inputs = job.own_values_of("gpu_choice")
        self.varied = ["gpu_choice", *self.own_inputs]
        self.table = JobTable(job, (*RESULTS, *_SHOWN), varied=self.varied, elsewhere=book.cell_name)
        self.names = list(job.tables["gpus"])
        self.entered = {key: book.values[key] for key in job.inputs}
        self.own = any(self.entered[key] is not None for key in self.own_inputs)
        jobs = [{**self.entered, **card_inputs(job, name)} for name in self.names]
        self.jobs = [*jobs, self.entered]
        self.rows = [self.table.values(inputs) for inputs in self.jobs]
        self.labels = [*self.names, self.words["own_card"] if self.own else ""]
        self.cards = [card_of(job, name, row) for name, row in zip(self.names, self.rows, strict=False)]
        self.sources = {row["name"]: brief(row["price_source"] or "") for row in book.presets.gpu_rows}
        self.order = sorted(range(len(self.rows)), key=lambda at: (self.key(at), at))

    def known(self, at: int) -> bool:
        """Whether a row has a usable capacity; the last one counts only where a figure was entered."""
        return self.own if at == len(self.names) else self.cards[at].verdict_code is not None

    def key(self, at: int) -> float:
        """What the first order sorts by: usable capacity; rows without one come last."""
        usable = max(float(row["gpu_usable_capacity_gb"]) for row in self.rows)
        dearest = max((card.price or 0 for card in self.cards), default=0)
        return float(self.rows[at]["gpu_usable_capacity_gb"]) if self.known(at) else 2 * (1 + dearest + usable)

    def card(self, at: int) -> Card | None:
        """The card of a row, None for the card as entered."""
        return self.cards[at] if at < len(self.cards) else None

    def column(self, name: str) -> int:
        """Where a figure stands on the workings."""
        return 2 + (self.table.column(name) if name in self.table.columns else self._beside(name))

    def _beside(self, name: str) -> int:
        return len(self.table.columns) + list(_EXTRA).index(name)

    @property
    def end(self) -> int:
        """The last row on both sheets, from 0."""
        return FIRST + len(self.rows) - 1


def brief(source: str) -> str:
    """Whose price it is; GPUs says where and when it was read."""
    return re.split(r" via |;| \(", source, maxsplit=1)[0]


def area(name: str) -> str:
    """The defined name of a column of the workings, over all its rows."""
    return f"Compare_{public_name(name)}_List"


def plan(book: Book) -> None:
    """Size the job on every card and register the figures that sentences use."""
    book.compare = compare = Compare(book)
    codes = [row["verdict_code"] for at, row in enumerate(compare.rows) if compare.known(at)]
    for symbol, count in (
        ("cards_known", len(codes)), ("cards_fit", codes.count(FITS)), ("cards_tight", codes.count(TIGHT)),
    ):  # fmt: skip
        book.external(symbol, "count", count)
    book.derive("cards_beyond", "count", book.sym("cards_known") - book.sym("cards_fit") - book.sym("cards_tight"))
    for symbol, found in _suggested(compare):
        book.external(symbol, "text", found.name if found else compare.words["none_fits"])


def _suggested(compare: Compare) -> tuple[tuple[str, Card | None], ...]:
    return (
        ("smallest_card", smallest_that_fits(compare.cards)),
        ("cheapest_card", cheapest_that_fits(compare.cards)),
    )


# ---------------------------------------------------------------------- the workings
def _write_workings(book: Book, compare: Compare) -> None:
    table, end, words = compare.table, compare.end, compare.words
    ws, styles = book.sheet(WORKINGS), book.styles
    put = book.putter(ws)
    page.plain_sheet(
        book, WORKINGS, kind="wide", last_column=compare.column("shown") + 1, stamp=False,
        sentence=words["workings"], rows_repeated=(0, FIRST - 1), freeze=(FIRST, 2),
    )  # fmt: skip
    names = column_name("gpus", None)
    rows: list[tuple[str | Raw, Any, dict[str, Any]]] = []
    for at, (label, inputs) in enumerate(zip(compare.labels, compare.jobs, strict=True)):
        here = Raw(f"={page.cell(FIRST + at, compare.column('card'), column_fixed=True)}", label)
        if at < len(compare.names):
            number = page.cell(FIRST + at, compare.column("row"), column_fixed=True)
            card = {"gpu_choice": Raw(f"=INDEX({names},{number})", label)}
        else:
            card = {
                key: Raw(f"={book.cell_name(key)}", NOT_GIVEN if inputs[key] is None else inputs[key])
                for key in compare.varied
            }
        rows.append((here, inputs, card))
    write_job_table(book, WORKINGS, table, rows, heading=words["card"], first_row=FIRST)
    for key in _EXTRA:
        label, unit = words["beside"][key]
        put(FIRST - 2, compare.column(key), label, styles["th_r"])
        put(FIRST - 1, compare.column(key), unit, styles["th_u"])
    for key in (*RESULTS, *_SHOWN, *_EXTRA):
        book.define(area(key), WORKINGS, FIRST, compare.column(key), end)
    for at in range(len(compare.rows)):
        put(FIRST + at, 0, at + 1, styles["r_no"])
        for key, content in _extras(book, compare, at).items():
            value = content.value if isinstance(content, Raw) else content
            style = "r_text_r" if isinstance(value, str) else _EXTRA[key]
            put(FIRST + at, compare.column(key), content, styles[style])
    _write_answers(book, compare, end + 2)
    page.print_area(ws, end + 8, 1 + len(table.results))


def _number(at: int) -> str:
    return page.cell(FIRST + at, 0, column_fixed=True)


def _extras(book: Book, compare: Compare, at: int) -> dict[str, Any]:
    """Price, what counts when the smallest and the cheapest are sought, and the place in the order."""
    words, row, card = compare.words, compare.rows[at], compare.card(at)

    def here(name: str) -> str:
        return page.cell(FIRST + at, compare.column(name), column_fixed=True)

    usable, price, number, row_of = here("gpu_usable_capacity_gb"), here("price"), _number(at), here("row")
    gpus = {column: column_name("gpus", column) for column in (None, "price_usd_per_hour", "cuda")}
    entered = "+".join(f"ISNUMBER({book.cell_name(key)})" for key in compare.own_inputs)
    suggested = f"{here('known')}*({here('verdict_code')}=1)*INDEX({gpus['cuda']},{row_of})=1"
    dear = f"1+MAX({area('price')})"
    unpriced = f"2*({dear})+{usable}"
    key = f"CHOOSE(Compare_Order_Row,{usable},IF(ISNUMBER({price}),{price},{unpriced}),{number})"
    behind = f"2*({dear}+MAX({area('gpu_usable_capacity_gb')}))"
    numbers = f"$A${FIRST + 1}:$A${compare.end + 1}"
    keys = area("key")
    place = {
        "key": Raw(f"=IF({here('known')}>0,{key},{behind})", compare.key(at)),
        "rank": Raw(
            f'=1+COUNTIF({keys},"<"&{here("key")})+COUNTIFS({keys},{here("key")},{numbers},"<"&{number})',
            compare.order.index(at) + 1,
        ),
        "shown": Raw(f"=MATCH({number},{area('rank')},0)", compare.order[at] + 1),
    }
    if card is None:
        return {
            "name": words["own_card"], "row": at + 1,
            "card": Raw(f'=IF({entered}>0,{quoted(words["own_card"])},"")', compare.labels[at]),
            "known": Raw(f"=IF(({entered}>0)*({usable}>0)>0,1,0)", int(compare.own)),
            **dict.fromkeys(("shipped", "price", "small", "cheap"), words["none"]),
            **dict.fromkeys(("source", "price_source"), words["no_price"]), **place,
        }  # fmt: skip
    suits, none = card.fits and card.cuda, quoted(words["none"])
    typed = f"INDEX({gpus['price_usd_per_hour']},{row_of})"
    # A planner may put a row between those of GPUs: a card is found there by its name, one with another by its place.
    found = f"MATCH({here('name')},{gpus[None]},0)"
    return {
        "name": card.name,
        "row": Raw(f"=IF(ISNUMBER({found}),{found},{number})", at + 1),
        "card": Raw(f"=INDEX({gpus[None]},{row_of})", card.name),
        "known": Raw(f"=IF({usable}>0,1,0)", int(compare.known(at))),
        "shipped": card.price or words["none"],
        "source": compare.sources[card.name] or words["no_price"],
        "price": Raw(
            f'=IF(N({typed})>0,{typed},IF({typed}="",{none},{quoted(words["wrong_price"])}))',
            card.price or words["none"],
        ),
        "price_source": Raw(
            f"=IF({price}={here('shipped')},{here('source')},IF({price}={none},{quoted(words['no_price'])},"
            f"IF(ISNUMBER({price}),{quoted(words['own_price'])},{quoted(words['wrong_price_told'])})))",
            compare.sources[card.name] or words["no_price"],
        ),
        "small": Raw(f"=IF({suggested},{usable},{none})", row["gpu_usable_capacity_gb"] if suits else words["none"]),
        "cheap": Raw(f"=IF({suggested},{price},{none})", card.price if suits and card.price else words["none"]),
        **place,
    }


def _write_answers(book: Book, compare: Compare, row: int) -> None:
    """The orders, and the figures of the strip: how many cards fit, which is the smallest, which the cheapest."""
    words = compare.words
    put, styles = book.putter(book.sheet(WORKINGS)), book.styles

    def answer(at: int, label: str, name: str, content: Any) -> None:
        value = content.value if isinstance(content, Raw) else book.value(content)
        put(row + at, 1, label, styles["r_label"])
        put(row + at, 2, content, styles["r_text_r" if isinstance(value, str) else "r_calc0"])
        book.define(name, WORKINGS, row + at, 2)

    codes, known = area("verdict_code"), area("known")
    labels = words["answers"]
    for at, (symbol, formula) in enumerate(
        (
            ("cards_known", f"=SUM({known})"),
            ("cards_fit", f"=SUMPRODUCT(({codes}=1)*{known})"),
            ("cards_tight", f"=SUMPRODUCT(({codes}=2)*{known})"),
        )
    ):
        answer(at, labels[at], public_name(symbol), Raw(formula, book.values[symbol]))
    for at, ((symbol, found), column) in enumerate(zip(_suggested(compare), ("small", "cheap"), strict=True), 3):
        number = compare.names.index(found.name) + 1 if found else 0
        answer(
            at, labels[at], f"{public_name(symbol)}_Row",
            Raw(f"=IF(COUNT({area(column)})>0,MATCH(MIN({area(column)}),{area(column)},0),0)", number),
        )  # fmt: skip
        name = public_name(symbol)
        told = f"=IF({name}_Row>0,INDEX({area('card')},{name}_Row),{quoted(words['none_fits'])})"
        put(row + at, 3, Raw(told, book.values[symbol]), styles["r_text_r"])
        book.define(name, WORKINGS, row + at, 3)
    chosen = f"MATCH({ORDER},{ORDERS},0)"
    answer(5, labels[5], f"{ORDER}_Row", Raw(f"=IF(ISNUMBER({chosen}),{chosen},1)", 1))
    for at, text in enumerate(words["orders"]):
        put(row + at, 5, text, styles["r_text_r"])
    book.define(ORDERS, WORKINGS, row, 5, row + len(words["orders"]) - 1)


# ---------------------------------------------------------------------- what the planner sees
def write(book: Book) -> None:
    """Both sheets."""
    compare = book.compare
    _write_workings(book, compare)
    ws, styles, rows = book.sheet(TITLE), book.styles, book.look["rows"]
    put = book.putter(ws)
    last = page.set_page(
        ws, book.look, kind=TITLE, file_and_version=book.footer, freeze=(FIRST, 2), rows_repeated=(0, FIRST - 1)
    )
    _strip(book, compare, last)
    _order(book, compare)
    ws.set_row(FIRST - 1, rows["header_two_lines"])
    for column, head in enumerate(compare.words["columns"], 1):
        put(FIRST - 1, column, head, styles["th" if column == 1 else "th_i" if column in (2, 9) else "th_r"])
    for place, at in enumerate(compare.order):
        _row(book, compare, place, at)
    _marks(book, compare)
    for row, key in enumerate(("note", "own_rows"), compare.end + 1):
        put(row, 1, compare.words[key], styles["help"])
    page.print_area(ws, compare.end + 2, last)


def _row(book: Book, compare: Compare, place: int, at: int) -> None:
    """One card, looked up by its place."""
    ws, styles, row, card = book.sheet(TITLE), book.styles, FIRST + place, compare.rows[at]
    put = book.putter(ws)
    ws.set_row(row, book.look["rows"]["table"])
    label, known, names = compare.labels[at], compare.known(at), compare.words
    shown = f"'{WORKINGS}'!{page.cell(row, compare.column('shown'), column_fixed=True)}"
    numbered = f"'{WORKINGS}'!{page.cell(row, 0, column_fixed=True)}"
    price: Any = compare.card(at).price if compare.card(at) else None  # type: ignore[union-attr]

    def looked_up(name: str) -> str:
        return f"INDEX({area(name)},{shown})"

    verdicts = f"INDEX({column_name('verdicts', 'shown')},{looked_up('verdict_code')})"
    own_source = compare.sources.get(label, "") or names["no_price"]
    for column, (key, style) in enumerate(_COLUMNS, 1):
        formula, value = looked_up(key), card.get(key)
        if key == "card":  # the names stay where a faulty input leaves the order open
            formula, value = f"IF(Checks_Failed>0,INDEX({area(key)},{numbered}),{formula})", label
        elif key == "verdict_code":
            formula, value = verdicts, book.job.tables["verdicts"].columns["shown"][card["verdict_code"] - 1]
        elif key == "price":
            value = price or names["none"]
        elif key == "price_source":
            value = own_source
        if key not in ("card", "price", "price_source"):
            unknown = names["unknown" if key == "verdict_code" else "none"]
            formula, value = f"IF({looked_up('known')}>0,{formula},{quoted(unknown)})", value if known else unknown
        if key != "card":
            blank = page.cell(row, 1, column_fixed=True)
            formula, value = f'IF({blank}="","",{formula})', value if label else ""
        put(row, column, book.guarded(Raw(f"={formula}", value), '"–"') if key != "card" else Raw(f"={formula}", value),
            _style(styles, style))  # fmt: skip


def _style(styles: Any, name: str) -> Any:
    if name == "r_util":
        return styles.variant("r_share", format="p0")
    if name == "r_note":
        return styles.variant("r_help", indent=1, wrap=False)
    return styles.variant(name, shrink=True) if name.startswith("r_calc") else styles[name]


def _order(book: Book, compare: Compare) -> None:
    """What the planner sorts by: a choice of this sheet alone, of which no verdict depends."""
    ws, styles, words = book.sheet(TITLE), book.styles, compare.words
    put = book.putter(ws)
    ws.set_row(_ORDER_ROW, book.look["rows"]["input"])
    put(_ORDER_ROW, 1, words["order_label"], styles["label"])
    put(_ORDER_ROW, 3, words["orders"][0], styles["in_text"])
    put(_ORDER_ROW, 4, words["order_help"], styles.variant("help", indent=1))
    book.define(ORDER, TITLE, _ORDER_ROW, 3)
    ws.data_validation(
        _ORDER_ROW, 3, _ORDER_ROW, 3,
        {
            "validate": "list", "source": f"={ORDERS}", "input_title": words["order_label"],
            "input_message": words["order_help"], "error_title": words["order_label"],
            "error_message": filled(words["order_right"], orders=", ".join(words["orders"])), "error_type": "stop",
        },
    )  # fmt: skip
    page.formula_marks(ws, styles, (_ORDER_ROW, 3, _ORDER_ROW, 3), f"=COUNTIF({ORDERS},{ORDER})=0", "check")


def _strip(book: Book, compare: Compare, last: int) -> None:
    words, shown = compare.words, book.shown
    tiles = []
    for (symbol, found), (first, end), label in zip(
        _suggested(compare), ((1, 2), (3, 4)), (words["smallest"], words["cheapest"]), strict=True
    ):
        row = f"{public_name(symbol)}_Row"
        usable, price = (f"INDEX({area(key)},{row})" for key in ("gpu_usable_capacity_gb", "price"))
        priced = spelled(words["hourly"], price=f"FIXED({price},2)")
        told = spelled(
            words["suggested"],
            usable=f"FIXED(ROUNDDOWN({usable},1),1)",
            price=f"IF(ISNUMBER({price}),{priced},{quoted(words['no_price'].lower())})",
        )
        note = Raw(f'=IF({row}=0,"",{told})', _note(found, words))
        tiles.append(Tile(first, end, label, shown(book.sym(symbol)), shown(note), "tile_text"))
    page.strip(
        book.sheet(TITLE), book.styles, last_column=last, title=words["title"],
        sentence=Raw("=IF(Checks_Failed>0,First_Fault,Cards_Found_Sentence)", book.value(book.sym("cards_found"))),
        stamp=book.stamp, put=book.putter(book.sheet(TITLE)),
        tiles=[
            *tiles,
            here(book, 5, 8),
            Tile(9, last - 1, words["prices"], words["prices_are"], words["prices_note"], "tile_text"),
        ],
    )  # fmt: skip


def here(book: Book, first: int, last: int) -> Tile:
    """The tile that says which card Sizing rests on, and how the job stands there."""
    card, told = book.shown(book.sym("gpu_choice")), book.shown(book.sym("card_here"))
    return Tile(first, last, book.template["compare"]["here"], card, told, "tile_text")


def _note(found: Card | None, words: Mapping[str, Any]) -> str:
    if found is None:
        return ""
    usable = int((found.usable_gb or 0) * 10) / 10
    price = filled(words["hourly"], price=fixed(found.price, 2)) if found.price else words["no_price"].lower()
    return filled(words["suggested"], usable=fixed(usable, 1), price=price)


def _marks(book: Book, compare: Compare) -> None:
    """Bars of utilisation, the exceptions, and the card of Sizing in bold."""
    ws, styles, end = book.sheet(TITLE), book.styles, compare.end
    widths = book.look["sheets"][TITLE]["widths"]
    page.data_bar(ws, styles, (FIRST, 3, end, 3), maximum=page.bar_maximum(1, 6.8, widths[3]))
    page.state_marks(ws, styles, (FIRST, 2, end, 2))
    first = page.cell(FIRST, 1, column_fixed=True)
    own_card, none = quoted(compare.words["own_card"]), quoted(compare.words["none"])
    own = f"ISNUMBER(MATCH({own_card},{area('card')},0))"
    here = f"=IF({own},{first}={own_card},{first}={book.cell_name('gpu_choice')})"
    for column in (1, 4, 5, 6, 7, 8):  # not the bar: a mark would hide it in some programs
        page.formula_marks(ws, styles, (FIRST, column, end, column), here, "decides")
    for column in (4, 5, 6, 7, 8):
        page.formula_marks(ws, styles, (FIRST, column, end, column), f"={page.cell(FIRST, column)}={none}", "quiet")
    wrong = f"={page.cell(FIRST, 8)}={quoted(compare.words['wrong_price'])}"
    page.formula_marks(ws, styles, (FIRST, 8, end, 8), wrong, "check")

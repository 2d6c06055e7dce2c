"""Compare: every card of the catalogue, alone and in sets that share each matrix, against the job of Sizing.

"Card workings" is a job table in which card and tensor parallel vary, first every card alone, then every pair and so
on: of sets with the same memory the one with fewest cards stands first. What was entered for the card of Sizing counts
for none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.render import column_name, public_name
from ...planning.compare import FITS, card_inputs
from ...planning.serving import SETS
from .. import page
from ..book import Raw
from ..jobtable import JobTable, write_job_table
from ..page import Tile
from ..sheets.compare import brief, here
from ..words import filled, quoted, spelled

if TYPE_CHECKING:
    from ..book import Book

TITLE, WORKINGS = "Compare", "Card workings"
FIRST = 9  # row of the first card, from 0, on both sheets
RESULTS = ("verdict_code", "concurrency", "kv_pool_tokens", "weights_gb", "gpu_usable_capacity_gb", "gpu_count")
BESIDE = (  # columns beside the job table
    "name", "row", "holds", "shipped", "source", "price", "fits", "memory", "cost",
)  # fmt: skip
ANSWERS = ("smallest_set", "cheapest_set")
_SHOWN = (("fewest", "r_calc0"), ("usable", "r_calc1"), *((f"users_{cards}", "r_calc0") for cards in SETS))
_COLUMNS = (*_SHOWN, ("price", "r_calc2"), ("price_of_these", "r_calc2"), ("price_source", "r_note"))


class Cards:
    """The rows of the table: of each set its card, its inputs, its values and what stands beside them."""

    def __init__(self, book: Book) -> None:
        job, self.words, self.shared = book.job, book.template["served"]["cards"], book.template["compare"]
        self.names = list(job.tables["gpus"])
        varied = ["gpu_choice", *job.own_values_of("gpu_choice"), "tensor_parallel"]
        moving = job.depends_on(varied)
        self.rules = [rule for rule in job.fault_rules if rule in moving]
        self.table = JobTable(job, RESULTS, self.rules, varied=varied, elsewhere=book.cell_name)
        entered = {key: book.values[key] for key in job.inputs}
        self.sets = [(name, cards) for cards in SETS for name in self.names]
        self.jobs = [{**entered, **card_inputs(job, name), "tensor_parallel": cards} for name, cards in self.sets]
        self.rows = [self.table.values(inputs) for inputs in self.jobs]
        gpus = job.tables["gpus"].columns
        self.prices = [gpus["price_usd_per_hour"][at] or None for at in range(len(self.names))]
        self.sources = {row["name"]: brief(row["price_source"] or "") for row in book.presets.gpu_rows}
        self.beside = [self._beside(at, gpus["cuda"]) for at in range(len(self.rows))]
        usable = [self.rows[at]["gpu_usable_capacity_gb"] for at in range(len(self.names))]
        self.order = sorted(range(len(self.names)), key=lambda at: (usable[at] <= 0, usable[at], at))

    def _beside(self, at: int, cuda: Any) -> dict[str, Any]:
        row, card, none = self.rows[at], at % len(self.names), self.words["none"]
        holds = int(all(row[rule] for rule in self.rules))
        fits = bool(holds and row["verdict_code"] == FITS)
        price, count = self.prices[card], row["gpu_count"]
        return {
            "name": self.names[card],
            "row": card + 1,
            "holds": holds,
            "shipped": price or none,
            "source": self.sources[self.names[card]] or self.shared["no_price"],
            "price": price or none,
            "fits": count if fits else none,
            "memory": count * row["gpu_usable_capacity_gb"] if fits and cuda[card] else none,
            "cost": count * price if fits and cuda[card] and price else none,
        }

    def column(self, key: str) -> int:
        """Where a figure stands on the workings."""
        columns = self.table.columns
        return 2 + (columns.index(key) if key in columns else len(columns) + BESIDE.index(key))

    def cell(self, key: str, card: int, cards: int = 1) -> str:
        """The cell of a set's figure, as other sheets refer to it."""
        row = FIRST + SETS.index(cards) * len(self.names) + card
        return f"'{WORKINGS}'!{page.cell(row, self.column(key), row_fixed=True, column_fixed=True)}"

    def of(self, key: str, card: int, cards: int = 1) -> Any:
        """The same as the workbook opens."""
        at = SETS.index(cards) * len(self.names) + card
        return self.beside[at][key] if key in BESIDE else self.rows[at][key]

    def fewest(self, card: int) -> Any:
        """The fewest of a card that fit, or the word for none."""
        fitting = [fits for cards in SETS if isinstance(fits := self.of("fits", card, cards), (int, float))]
        return min(fitting, default=self.words["none"])

    def answer(self, symbol: str) -> int:
        """The row of the smallest or the cheapest set, from 1; 0 where none fits."""
        key = "memory" if symbol == "smallest_set" else "cost"
        found = [row[key] for row in self.beside]
        numbers = [value for value in found if not isinstance(value, str)]
        return found.index(min(numbers)) + 1 if numbers else 0

    def told(self, symbol: str) -> str:
        """That set in words."""
        at = self.answer(symbol)
        if not at:
            return str(self.words["none_fits"])
        return filled(self.words["set"], cards=f"{self.rows[at - 1]['gpu_count']:,.0f}", card=self.sets[at - 1][0])

    @property
    def end(self) -> int:
        """The last row of the workings, from 0."""
        return FIRST + len(self.rows) - 1


def area(key: str) -> str:
    """The defined name of a column of the workings, over all its rows."""
    return f"Sets_{public_name(key)}_List"


def plan(book: Book) -> None:
    """Size the job on every set and register the figures that sentences use."""
    book.cards = cards = Cards(book)
    fewest = [cards.fewest(card) for card in range(len(cards.names))]
    known = [card for card in range(len(cards.names)) if cards.of("gpu_usable_capacity_gb", card) > 0]
    book.external("cards_known", "count", len(known))
    book.external("cards_fit", "count", sum(not isinstance(count, str) for count in fewest))
    book.external("cards_alone", "count", sum(not isinstance(cards.of("fits", card), str) for card in known))
    for symbol in ANSWERS:
        book.external(symbol, "text", cards.told(symbol))


# ---------------------------------------------------------------------- the workings
def _write_workings(book: Book, cards: Cards) -> None:
    ws, styles, words = book.sheet(WORKINGS), book.styles, cards.words
    put = book.putter(ws)
    last = cards.column(BESIDE[-1]) + 1
    page.plain_sheet(
        book, WORKINGS, kind="wide", last_column=last, stamp=False, sentence=words["workings"],
        rows_repeated=(0, FIRST - 1), freeze=(FIRST, 2),
    )  # fmt: skip
    names = column_name("gpus", None)
    rows: list[tuple[str | Raw, Any, dict[str, Any]]] = []
    for at, (name, _) in enumerate(cards.sets):
        number = page.cell(FIRST + at, cards.column("row"), column_fixed=True)
        card = Raw(f"=INDEX({names},{number})", name)
        rows.append((Raw(f"={page.cell(FIRST + at, cards.column('gpu_choice'), column_fixed=True)}", name),
                     cards.jobs[at], {"gpu_choice": card}))  # fmt: skip
    write_job_table(book, WORKINGS, cards.table, rows, heading=words["card"], first_row=FIRST)
    for key in BESIDE:
        label, unit = words["beside"][key]
        put(FIRST - 2, cards.column(key), label, styles["th_r"])
        put(FIRST - 1, cards.column(key), unit, styles["th_u"])
    for key in ("gpu_choice", "gpu_count", "memory", "cost"):
        book.define(area(key), WORKINGS, FIRST, cards.column(key), cards.end)
    for at in range(len(cards.rows)):
        put(FIRST + at, 0, at % len(cards.names) + 1, styles["r_no"])
        for key, content in _extras(book, cards, at).items():
            value = content.value if isinstance(content, Raw) else content
            put(FIRST + at, cards.column(key), content, styles["r_text_r" if isinstance(value, str) else "r_calc0"])
    _write_answers(book, cards, cards.end + 2)
    page.print_area(ws, cards.end + 4, 1 + len(cards.table.results))


def _extras(book: Book, cards: Cards, at: int) -> dict[str, Any]:
    """Whether the set is one, its price, and what counts when the smallest and the cheapest are sought."""
    row, none = cards.beside[at], quoted(cards.words["none"])

    def own(key: str) -> str:
        return page.cell(FIRST + at, cards.column(key), column_fixed=True)

    names, prices, cuda = (column_name("gpus", column) for column in (None, "price_usd_per_hour", "cuda"))
    # A planner may put a row between those of GPUs: a card is found there by its name, one with another by its place.
    found = f"MATCH({own('name')},{names},0)"
    typed = f"INDEX({prices},{own('row')})"
    suits = f"ISNUMBER({own('fits')})*INDEX({cuda},{own('row')})"
    return {
        "name": row["name"],
        "row": Raw(f"=IF(ISNUMBER({found}),{found},{page.cell(FIRST + at, 0, column_fixed=True)})", row["row"]),
        "holds": Raw("=" + "*".join(own(rule) for rule in cards.rules), row["holds"]),
        "shipped": row["shipped"],
        "source": row["source"],
        "price": Raw(f"=IF(N({typed})>0,{typed},{none})", row["price"]),
        "fits": Raw(f"=IF({own('holds')}*({own('verdict_code')}=1)>0,{own('gpu_count')},{none})", row["fits"]),
        "memory": Raw(f"=IF({suits}>0,{own('fits')}*{own('gpu_usable_capacity_gb')},{none})", row["memory"]),
        "cost": Raw(f"=IF({suits}*ISNUMBER({own('price')})>0,{own('fits')}*{own('price')},{none})", row["cost"]),
    }  # fmt: skip


def _write_answers(book: Book, cards: Cards, row: int) -> None:
    words = cards.words
    put, styles = book.putter(book.sheet(WORKINGS)), book.styles
    for at, (symbol, key) in enumerate(zip(ANSWERS, ("memory", "cost"), strict=True), row):
        name = public_name(symbol)
        put(at, 1, words["answers"][at - row], styles["r_label"])
        where = f"=IF(COUNT({area(key)})>0,MATCH(MIN({area(key)}),{area(key)},0),0)"
        put(at, 2, Raw(where, cards.answer(symbol)), styles["r_calc0"])
        book.define(f"{name}_Row", WORKINGS, at, 2)
        count, card = (f"INDEX({area(column)},{name}_Row)" for column in ("gpu_count", "gpu_choice"))
        told = spelled(words["set"], cards=f"FIXED({count},0)", card=card)
        put(at, 3, Raw(f"=IF({name}_Row>0,{told},{quoted(words['none_fits'])})", cards.told(symbol)),
            styles["r_text_r"])  # fmt: skip
        book.define(name, WORKINGS, at, 3)


# ---------------------------------------------------------------------- what the planner sees
def write(book: Book) -> None:
    """Both sheets."""
    cards = book.cards
    _write_workings(book, cards)
    ws, styles, words = book.sheet(TITLE), book.styles, cards.words
    put = book.putter(ws)
    last = page.set_page(
        ws, book.look, kind="card_sets", file_and_version=book.footer, freeze=(FIRST, 2), rows_repeated=(0, FIRST - 1)
    )
    _strip(book, cards, last)
    put(7, 1, words["note"], styles["help"])
    ws.set_row(FIRST - 1, book.look["rows"]["header_two_lines"])
    heads = [words["columns"]["card"]]
    for key, _ in _COLUMNS:
        users = key.removeprefix("users_")
        heads.append(filled(words["columns"]["users"], cards=users) if users != key else words["columns"][key])
    for column, head in enumerate(heads, 1):
        put(FIRST - 1, column, head, styles["th" if column == 1 else "th_i" if column == len(heads) else "th_r"])
    for place, card in enumerate(cards.order):
        _row(book, cards, FIRST + place, card)
    end = FIRST + len(cards.order) - 1
    _counts(book, cards, end)
    _marks(book, cards, end)
    put(end + 1, 1, words["below"], styles["help"])
    page.print_area(ws, end + 1, last)


def _row(book: Book, cards: Cards, row: int, card: int) -> None:
    ws, styles, words = book.sheet(TITLE), book.styles, cards.words
    put, none = book.putter(ws), quoted(words["none"])
    ws.set_row(row, book.look["rows"]["table"])
    put(row, 1, Raw(f"={cards.cell('gpu_choice', card)}", cards.names[card]), styles["r_label"])
    usable, price, fewest = cards.of("gpu_usable_capacity_gb", card), cards.prices[card], cards.fewest(card)
    fits = ",".join(cards.cell("fits", card, count) for count in SETS)
    here = page.cell(row, 2, column_fixed=True)
    known, priced = cards.cell("gpu_usable_capacity_gb", card), cards.cell("price", card)
    shipped, source = cards.cell("shipped", card), cards.cell("source", card)
    other = f"IF(ISNUMBER({priced}),{quoted(cards.shared['own_price'])},{quoted(cards.shared['no_price'])})"
    contents: dict[str, Raw] = {
        "fewest": Raw(f"=IF(COUNT({fits})>0,MIN({fits}),{none})", fewest),
        "usable": Raw(f"=IF({known}>0,{known},{none})", usable if usable > 0 else words["none"]),
        "price": Raw(f"={priced}", price or words["none"]),
        "price_of_these": Raw(
            f"=IF(ISNUMBER({here})*ISNUMBER({priced})>0,{here}*{priced},{none})",
            words["none"] if price is None or isinstance(fewest, str) else price * fewest,
        ),
        "price_source": Raw(f"=IF({priced}={shipped},{source},{other})", cards.of("source", card)),
    }  # fmt: skip
    for count in SETS:
        holds, users = cards.cell("holds", card, count), cards.cell("concurrency", card, count)
        value = cards.of("concurrency", card, count) if cards.of("holds", card, count) else words["none"]
        contents[f"users_{count}"] = Raw(f"=IF({holds}>0,{users},{none})", value)
    for column, (key, style) in enumerate(_COLUMNS, 2):
        note = style == "r_note"
        form = styles.variant("r_help", indent=1, wrap=False) if note else styles.variant(style, shrink=True)
        put(row, column, book.guarded(contents[key], '"–"'), form)


def _counts(book: Book, cards: Cards, end: int) -> None:
    """How many cards serve the job: figures of the strip, counted on the visible sheet."""
    put, styles = book.putter(book.sheet(WORKINGS)), book.styles
    fewest, usable = (f"{TITLE}!{page.area(FIRST, column, end)}" for column in (2, 3))
    alone = page.area(FIRST, cards.column("fits"), FIRST + len(cards.names) - 1)
    for at, (symbol, formula) in enumerate(
        (
            ("cards_known", f"=COUNT({usable})"),
            ("cards_fit", f"=COUNT({fewest})"),
            ("cards_alone", f"=COUNT({alone})"),
        ),
        cards.end + 4,
    ):
        put(at, 1, cards.words["counts"][at - cards.end - 4], styles["r_label"])
        put(at, 2, Raw(formula, book.values[symbol]), styles["r_calc0"])
        book.define(public_name(symbol), WORKINGS, at, 2)


def _strip(book: Book, cards: Cards, last: int) -> None:
    words, shown = cards.words, book.shown
    tiles = []
    for symbol, key, (first, end) in zip(ANSWERS, ("memory", "cost"), ((1, 1), (2, 5)), strict=True):
        row, at = f"{public_name(symbol)}_Row", cards.answer(symbol)
        value = cards.beside[at - 1][key] if at else 0
        told = spelled(words["suggested"][key], figure=f"FIXED(INDEX({area(key)},{row}),2)")
        note = Raw(f'=IF({row}=0,"",{told})', filled(words["suggested"][key], figure=f"{value:,.2f}") if at else "")
        tiles.append(Tile(first, end, words[symbol], shown(book.sym(symbol)), shown(note), "tile_text"))
    prices = cards.shared["prices"]
    page.strip(
        book.sheet(TITLE), book.styles, last_column=last, title=words["title"],
        sentence=Raw("=IF(Checks_Failed>0,First_Fault,Cards_Found_Sentence)", book.value(book.sym("cards_found"))),
        stamp=book.stamp, put=book.putter(book.sheet(TITLE)),
        tiles=[
            *tiles,
            here(book, 6, 9),
            Tile(10, last - 1, prices, cards.shared["prices_are"], cards.shared["prices_note"], "tile_text"),
        ],
    )  # fmt: skip


def _marks(book: Book, cards: Cards, end: int) -> None:
    """Bold: the card of Sizing, and the users of sets that fit; quiet: what is not known or not possible."""
    ws, styles = book.sheet(TITLE), book.styles
    name = page.cell(FIRST, 1, column_fixed=True)
    page.formula_marks(ws, styles, (FIRST, 1, end, 1), f"={name}={book.cell_name('gpu_choice')}", "decides")
    users = (FIRST, 4, end, 3 + len(SETS))
    enough = f"=IF(ISNUMBER({page.cell(FIRST, 4)}),{page.cell(FIRST, 4)}>={book.cell_name('concurrent_users')},FALSE)"
    page.formula_marks(ws, styles, users, enough, "decides")
    everything = (FIRST, 2, end, 9)
    page.formula_marks(ws, styles, everything, f"={page.cell(FIRST, 2)}={quoted(cards.words['none'])}", "quiet")

"""Cards: cards of the plan with their prices, and what is offered to jobs that name none; Offers: what a run costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...capacity import kinds
from ...formula.declare import Number, Whole
from ...formula.domains import allowed, day_of
from ...formula.render import column_name, sheet_formula
from ...planning.row_states import empty
from .. import page
from ..book import Raw
from ..inputs import prompt
from ..jobtable import NOT_GIVEN
from ..scenarios import letters
from ..words import quoted, spelled
from .book import CARD_COUNT, CARDS, OFFER_COUNT, OFFERS
from .grid import FIRST

if TYPE_CHECKING:
    from .book import PlanBook

CARD_FIRST, OFFER_FIRST = 5, 5 + CARD_COUNT + 5  # rows, from 0
OFFER_TERMS = "Offer workings"
# columns of Cards: cards, then what follows from them
_NAME, _PRICE, _DATE, _PURCHASE, _ASSUMED, _USABLE, _LISTED, _STATE, _IN_FORCE = range(1, 10)
_OFFER_CARD, _OFFER_COUNT, _OFFER_STATE, _RIGHT = 1, 2, _STATE, _IN_FORCE
_NUMBERS = {"price": _PRICE, "price_date": _DATE, "purchase_price": _PURCHASE, "purchase_usd": _ASSUMED}
_FIXED = {"right": 2, "card": 3, "gpu_choice": 3, "gpu_count": 4, "own_price_per_hour": 5, "own_price_date": 6}


def cell_of(book: PlanBook, kind: str, key: str, at: int) -> str:
    """What follows from an offer alone."""
    column = _FIXED[key] if key in _FIXED else _columns(book)[kind, key]
    return f"'{OFFER_TERMS}'!${letters(column)}${4 + at + 1}"


def _columns(book: PlanBook) -> dict[tuple[str, str], int]:
    keys = [(name, key) for name, kind in book.kinds.items() for key in kind.of_offer]
    return {pair: 7 + at for at, pair in enumerate(keys)}


def write_cards(book: PlanBook) -> None:
    """The cards that can be typed, what is wrong with them, and the offers."""
    ws, styles, words = book.sheet(CARDS), book.styles, book.template["cards_sheet"]
    put = book.putter(ws)
    last = page.plain_sheet(book, CARDS, title=words["title"], sentence=words["sentence"], freeze=(2, 2))
    ws.set_column(_IN_FORCE, _IN_FORCE + len(_NUMBERS), 20)
    row = page.section(ws, styles, 2, last_column=last, name=words["cards"], put=put, space_below=False)
    _heads(book, row, words["card_columns"])
    table = book.job.tables["gpus"]
    names, lora = column_name("gpus", None), book.graphs.kinds["lora"]
    error = quoted(words["wrong_card"])
    looks = {
        "price": styles.variant("g_dec3", format="n2"), "price_date": styles["g_date"],
        "purchase_price": styles["g_num"], "purchase_usd": styles["g_num"],
    }  # fmt: skip
    for at in range(CARD_COUNT):
        where, number = CARD_FIRST + at, CARD_FIRST + at + 1
        card = book.card_rows[at]
        typed = card["typed"]
        put(where, _NAME, typed.get("name"), styles["g_text"])
        for key, column in _NUMBERS.items():
            put(where, column, typed.get(key), looks[key])
        known = table.index.get(card["name"].casefold(), 0)
        found = f"MATCH($J{number},{names},0)"
        for column, key, scale in (
            (_USABLE, "usable_bytes", "/" + book.constant("bytes_per_gb", _gb(book))),
            (_LISTED, "price_usd_per_hour", ""),
        ):
            value: Any = table.columns[key][known - 1] / (1e9 if scale else 1) if known else ""
            formula = f'=IF($J{number}="","",INDEX({column_name("gpus", key)},{found}){scale})'
            put(where, column, Raw(formula, value), styles["r_calc1" if scale else "r_calc2"])
        # a card that is wrong is no card of the plan: rows that name it say so
        area = f"$B${CARD_FIRST + 1}:$B${CARD_FIRST + CARD_COUNT}"
        once = f"(SUMPRODUCT(({area}=$B{number})*1)=1)*(SUMPRODUCT(({names}=$B{number})*1)=1)"
        amounts = "*".join(
            f'(IF(${letters(column)}{number}="",1,IF(ISNUMBER(${letters(column)}{number}),'
            f"(${letters(column)}{number}>=0)*1,0)))"
            for column in (_PRICE, _PURCHASE, _ASSUMED)
        )
        right = f'=IFERROR(IF({once}*{amounts}=1,$B{number},""),"")'
        put(where, _IN_FORCE, Raw(right, card["name"]), styles["r_text"])
        for key, column in _NUMBERS.items():
            cell = f"${letters(column)}{number}"
            usual = "Purchase_Price_In_Force" if key == "purchase_price" else f'"{NOT_GIVEN}"'
            value = book.settings_value("", key) if key == "purchase_price" and card[key] == NOT_GIVEN else card[key]
            put(where, _IN_FORCE + column - 1, Raw(f"=IF(ISNUMBER({cell}),{cell},{usual})", value), styles["r_text_r"])
        said = (
            f'=IF($B{number}="","",IF($J{number}="",{error},IF(ISNUMBER($C{number})*(1-ISNUMBER($D{number}))=1,'
            f"{quoted(words['no_date'])},IF($G{number}=0,{quoted(words['no_capacity'])},"
            f"{_price_state(words, number)}))))"
        )
        put(where, _STATE, Raw(said, _card_state(book, card)), styles["r_text_i"])
    end = CARD_FIRST + CARD_COUNT - 1
    lists = {"Plan_Cards_List": _IN_FORCE, "Cards_Card_List": _NAME}
    for key, column in _NUMBERS.items():
        lists[column_name("cards", key)] = column
        lists[column_name("plan_card", key)] = _IN_FORCE + column - 1
    for name, column in lists.items():
        book.define(name, CARDS, CARD_FIRST, column, end)
    rules = {
        _NAME: {
            "validate": "list", "source": f"={names}",
            **prompt(book, "Card", words["card_help"], allowed(lora, "gpu_choice")),
        },
        _PRICE: _number(book, "own_price_per_hour"), _DATE: _number(book, "own_price_date"),
        _PURCHASE: _number(book, "purchase_price", book.graphs.fleet),
        _ASSUMED: _number(book, "card_purchase_usd", book.graphs.fleet),
    }  # fmt: skip
    for column, rule in rules.items():
        ws.data_validation(CARD_FIRST, column, end, column, rule)
    row = page.section(
        ws,
        styles,
        OFFER_FIRST - 3,
        last_column=last,
        name=words["offers"],
        put=put,
        note=words["offers_note"],
        note_column=2,
        space_below=False,
    )
    _heads(book, row, words["offer_columns"])
    for at in range(OFFER_COUNT):
        where, number = OFFER_FIRST + at, OFFER_FIRST + at + 1
        offer = book.offers[at]
        put(where, _OFFER_CARD, offer.typed.get("card"), styles["g_text"])
        put(where, _OFFER_COUNT, day_of(offer.typed.get("cards")), styles["g_num"])
        for column in range(_OFFER_COUNT + 1, _OFFER_STATE):
            put(where, column, "", styles["r_text"])
        listed = f'(SUMPRODUCT((Plan_Cards_List=$B{number})*(Plan_Cards_List<>""))=1)'
        within = f"($C{number}>=1)*($C{number}<={book.bound_cell('gpu_count', 'high')})*($C{number}=INT($C{number}))"
        whole = f"IF(ISNUMBER($C{number}),{within},0)"
        put(where, _RIGHT, Raw(f"=IFERROR({listed}*{whole},0)", int(offer.right)), styles["r_calc0"])
        wrong = "" if offer.right or empty(offer.typed.get("card")) else words["wrong_offer"]
        said = f'=IF($J{number}=1,"",IF($B{number}="","",{quoted(words["wrong_offer"])}))'
        put(where, _OFFER_STATE, Raw(said, wrong), styles["r_text_i"])
    end = OFFER_FIRST + OFFER_COUNT - 1
    for name, column in (("Offers_Card_List", _OFFER_CARD), ("Offers_Count_List", _OFFER_COUNT)):
        book.define(name, CARDS, OFFER_FIRST, column, end)
    ws.data_validation(
        OFFER_FIRST,
        1,
        end,
        1,
        {
            "validate": "list",
            "source": "=Plan_Cards_List",
            **prompt(book, "Card", words["offer_help"], words["offer_right"]),
        },
    )
    ws.data_validation(OFFER_FIRST, 2, end, 2, _number(book, "gpu_count"))
    page.print_area(ws, end, _STATE)


def _gb(book: PlanBook) -> Any:
    return book.graphs.kinds["lora"].constants["bytes_per_gb"]


def _price_state(words: Any, number: int) -> str:
    return f'IF(ISNUMBER($C{number}),"",IF($G{number}>0,{quoted(words["listed"])},{quoted(words["no_price"])}))'


def _card_state(book: PlanBook, card: dict[str, Any]) -> str:
    words, table = book.template["cards_sheet"], book.job.tables["gpus"]
    if not card["name"]:
        return "" if empty(card["typed"].get("name")) else str(words["wrong_card"])
    at = table.index[card["name"].casefold()] - 1
    if card["price"] != NOT_GIVEN and card["price_date"] == NOT_GIVEN:
        return str(words["no_date"])
    if not table.columns["usable_bytes"][at]:
        return str(words["no_capacity"])
    if card["price"] != NOT_GIVEN:
        return ""
    return str(words["listed"] if table.columns["price_usd_per_hour"][at] else words["no_price"])


def _number(book: PlanBook, key: str, job: Any = None) -> dict[str, Any]:
    job = job or book.graphs.kinds["sized" if key == "gpu_count" else "lora"]
    declared = job.inputs[key]
    assert isinstance(declared.domain, (Whole, Number))
    kind = "integer" if isinstance(declared.domain, Whole) else "decimal"
    rule = prompt(book, declared.label, declared.help, allowed(job, key))
    return {
        **rule,
        "validate": kind,
        "criteria": "between",
        "minimum": declared.domain.low,
        "maximum": declared.domain.high,
        "ignore_blank": True,
    }


def _heads(book: PlanBook, row: int, words: Any) -> None:
    put, styles = book.putter(book.sheet(CARDS)), book.styles
    book.sheet(CARDS).set_row(row, book.look["rows"]["header_two_lines"])
    for column, (text, unit) in enumerate(words, 1):
        kind = "th" if column == 1 else "th_i" if column >= _STATE else "th_r"
        put(row, column, f"{text}, {unit}" if unit else text, styles[kind])


def write_terms(book: PlanBook) -> None:
    """Offer workings: what follows from an offer alone, for each kind of job."""
    ws, styles, words = book.sheet(OFFER_TERMS), book.styles, book.template["cards_sheet"]
    put, columns = book.putter(ws), _columns(book)
    end = 7 + len(columns)
    page.plain_sheet(
        book, OFFER_TERMS, kind="wide", last_column=end, stamp=False, sentence=words["terms"], freeze=(4, 2)
    )
    plain = styles.variant("r_calc0", format="general", shrink=True)
    for column, text in ((1, words["offer"]), *zip((2, 3, 4, 5, 6), words["term_columns"], strict=True)):
        put(2, column, text, styles["th_r"])
        put(3, column, "", styles["th_ul"])
    for (name, key), column in columns.items():
        facts = book.graphs.kinds[name].terms[key]
        put(2, column, facts.label, styles["th_r"])
        put(3, column, f"{facts.unit}, {name}", styles["th_u"])
    for at in range(OFFER_COUNT):
        row, typed = 4 + at, OFFER_FIRST + at + 1
        offer, names = book.offers[at], column_name("gpus", None)
        card = book.card_of(offer.card if offer.right else "")
        right = f"'{CARDS}'!$J${typed}"
        number = f"MATCH('{CARDS}'!$B${typed},Plan_Cards_List,0)"
        put(row, 1, at + 1, styles["r_no"])
        put(row, 2, Raw(f"={right}", int(offer.right)), plain)
        put(
            row,
            3,
            Raw(
                f"=IF({right}=1,INDEX(Plan_Cards_List,MATCH('{CARDS}'!$B${typed},Plan_Cards_List,0)),INDEX({names},1))",
                offer.card,
            ),
            styles["r_text_r"],
        )
        put(row, 4, Raw(f"=IF({right}=1,'{CARDS}'!$C${typed},1)", offer.cards), plain)
        put(row, 5, Raw(f'=IF({right}=1,INDEX(Plan_Card_Price_List,{number}),"{NOT_GIVEN}")', card["price"]), plain)
        put(
            row,
            6,
            Raw(f'=IF({right}=1,INDEX(Plan_Card_Price_Date_List,{number}),"{NOT_GIVEN}")', card["price_date"]),
            plain,
        )
        for name, kind in book.kinds.items():
            known = offer.values[name]
            for key in kind.of_offer:
                inside = set(kind.of_offer) | set(kinds.ON_CARD)
                formula = sheet_formula(
                    kind.trees[key],
                    lambda each, name=name, kind=kind, at=at, inside=inside: (
                        cell_of(book, name, each, at).partition("!")[2] if each in inside else kind.name(each)
                    ),  # type: ignore[misc]
                    column_name,
                )
                put(row, columns[name, key], Raw(formula, known[key]), plain)
    last = 4 + OFFER_COUNT - 1
    book.define("Plan_Offer_Cards_List", OFFER_TERMS, 4, 3, last)
    book.define("Plan_Offer_Counts_List", OFFER_TERMS, 4, 4, last)
    page.print_area(ws, last, 6)


def write_offers(book: PlanBook) -> None:
    """The sheet Offers beside the grid's columns: the names of the jobs, the offers above."""
    ws, styles, words = book.sheet(OFFERS), book.styles, book.template["offers_sheet"]
    put, grid = book.putter(ws), book.grid
    end = 2 + len(book.offers)
    page.plain_sheet(
        book,
        OFFERS,
        kind="Offers",
        title=words["title"],
        sentence=words["sentence"],
        freeze=(FIRST, 2),
        rows_repeated=(0, FIRST - 1),
    )
    for row, text in zip((4, 5, 6), words["notes"], strict=True):
        put(row, 1, text, styles["help"])
    put(FIRST - 2, 1, words["job"], styles["th_open"])
    put(FIRST - 1, 1, "", styles["th_ul"])
    for at, values in enumerate(book.row_results):
        number = FIRST + at + 1
        name = grid.at(OFFERS)("typed.name").replace("{row}", str(number))
        put(FIRST + at, 1, Raw(f"={name}", values["typed.name"]), styles["r_text"])
    for at, offer in enumerate(book.offers):
        card, count = (cell_of(book, "", key, at) for key in ("card", "gpu_count"))
        right = cell_of(book, "", "right", at)
        told = spelled(words["offer"], count=count, card=card)
        shown = f"{offer.cards} × {offer.card}" if offer.right else "–"
        put(FIRST - 2, 2 + at, Raw(f'=IF({right}=1,{told},"–")', shown), styles["th_r"])
    printed = min(grid.rows, book.template["jobs_sheet"]["printed"])
    page.print_area(ws, FIRST + printed - 1, end)

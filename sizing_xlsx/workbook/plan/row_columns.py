"""The columns of Row workings: what is typed, what is wrong with it, the card in force, what the job takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...capacity import kinds
from ...formula.declare import Choice, Whole
from ...formula.engine import value_of
from ...formula.expression import Expr, lift, names_in
from ...formula.render import column_name, public_name, sheet_formula
from ...planning.row_states import COLUMNS, DATE_RULES, NOTES, OF_ROW, REQUIRED
from ..jobtable import NOT_GIVEN, compact
from ..words import quoted, spelled
from .book import ROWS
from .grid import At, Column, Values

if TYPE_CHECKING:
    from ...formula.job import Job
    from .book import PlanBook

CHECKED = tuple(column for column in COLUMNS if column not in ("name", "team"))
_WINDOW = ("first_month", "last_month", "deadline_date")
_PLAN = {"today_date": "Today_Date_In_Force", "plan_start": "Plan_First_Day", "plan_end": "Plan_End_Day"}
TOLD = ("column", "date", "before", "offer", "after", "size", "speed")  # what keeps a row from being counted
NOTED = ("note.price", "note.queue", "note.late", "note.tight")


def typed(book: PlanBook) -> list[Column]:
    """What is typed on Jobs, an empty cell as "", an error as words."""
    error = book.template["states"]["error"]

    def column(key: str) -> Column:
        def formula(at: At) -> str:
            cell = at(f"jobs.{key}")
            return f'=IFERROR(IF(SUBSTITUTE({cell}," ","")="","",{cell}),"{error}")'

        return Column(f"typed.{key}", book.states.label(key), "as typed", formula, lambda row: row[f"jobs.{key}"])

    return [column(key) for key in COLUMNS]


def kind_of_row(book: PlanBook) -> list[Column]:
    """Whether a row is used, and which kind of job it is."""
    grid, table = book.grid, book.job.tables["job_kinds"]
    names = column_name("job_kinds", None)

    def used(at: At) -> str:
        return f'=MIN(1,SUMPRODUCT(({grid.across(ROWS, f"typed.{COLUMNS[0]}", f"typed.{COLUMNS[-1]}")}<>"")*1))'

    found = [Column("used", "Used", "switch", used, lambda row: int(any(row[f"typed.{key}"] != "" for key in COLUMNS)))]
    for number, kind in enumerate(kinds.KINDS, 1):
        place = {1: "1", 2: "2", 3: "2+1", 4: "2+2"}[number]
        key = table.keys[number - 1]
        found.append(
            Column(
                f"is.{kind}",
                key,
                "switch",
                lambda at, place=place: f"=IF({at('typed.job_kind')}=INDEX({names},{place}),1,0)",  # type: ignore[misc]
                lambda row, key=key: int(str(row["typed.job_kind"]).casefold() == key.casefold()),  # type: ignore[misc]
            )
        )
    found.append(
        Column(
            "kind",
            "Kind",
            "row",
            lambda at: f"={at('is.lora')}+2*{at('is.training')}+(2+1)*{at('is.full')}+(2+2)*{at('is.sized')}",
            lambda row: sum(number * row[f"is.{kind}"] for number, kind in enumerate(kinds.KINDS, 1)),
        )
    )
    return found


def _kinds_with(column: str) -> list[str]:
    return [kind for kind in kinds.KINDS if column in kinds.COLUMNS[kind]] if column not in OF_ROW else []


def bounds_of(book: PlanBook, column: str) -> tuple[Any, Any]:
    """The lowest and the highest number of a column; texts have none."""
    if column in ("name", "team", "job_kind", "base_model", "recipe", "gpu_choice"):
        return "", ""
    kind = next(iter(_kinds_with(column)), "lora")
    job, key = book.states.owner(column, kind)
    domain = job.inputs[key].domain
    return ("", "") if isinstance(domain, Choice) else (domain.low, domain.high)


def _fault_of(book: PlanBook, column: str) -> Column:
    """1 where a column is empty and must not be, or holds what it may not."""
    job_kinds = _kinds_with(column)
    low, high = (book.bound_cell(column, which) for which in ("low", "high"))
    right = book.states._is_right

    def value(row: Values) -> int:
        typed_value, kind = row[f"typed.{column}"], kinds.KINDS[row["kind"] - 1] if row["kind"] else ""
        if column == "job_kind":
            return int(row["used"] and not kind)
        if not row["used"] or not kind or (job_kinds and kind not in job_kinds):
            return 0
        if typed_value == "":
            excused = column == "training_examples" and row["typed.training_tokens"] != ""
            return int(column in REQUIRED and not excused)
        return int(not right(column, kind, typed_value))

    def formula(at: At) -> str:
        cell = at(f"typed.{column}")
        relevant = "+".join(at(f"is.{kind}") for kind in job_kinds) if job_kinds else f"({at('kind')}>0)*1"
        if column == "job_kind":
            return f"=IF({at('used')}*({at('kind')}=0)=1,1,0)"
        needed = f'IF({at("typed.training_tokens")}="",1,0)' if column == "training_examples" else "1"
        absent = needed if column in REQUIRED else "0"
        return f'=({relevant})*IF({cell}="",{absent},{test(at, cell)})'

    def among(name: str, cell: str) -> str:
        return f"(SUMPRODUCT(({name}={cell})*1)>0)"

    def test(at: At, cell: str) -> str:
        if column == "gpu_choice":
            return f"1-{among('Plan_Cards_List', cell)}"
        by_table: dict[str, list[str]] = {}
        for kind in job_kinds or ["lora"]:
            job, key = book.states.owner(column, kind)
            domain = job.inputs[key].domain
            if isinstance(domain, Choice):
                by_table.setdefault(column_name(domain.table, None), []).append(at(f"is.{kind}"))
        if len(by_table) == 1:
            return f"1-{among(next(iter(by_table)), cell)}"
        if by_table:
            return "1-" + "-".join(at(f"known.{column}.{place}") for place in range(len(by_table)))
        job, key = book.states.owner(column, (job_kinds or ["lora"])[0])
        whole = f"*({cell}=INT({cell}))" if isinstance(job.inputs[key].domain, Whole) else ""
        return f"IF(ISNUMBER({cell}),1-({cell}>={low})*({cell}<={high}){whole},1)"

    return Column(f"fault.{column}", book.states.label(column), "1: wrong", formula, value)


def _known(book: PlanBook, column: str) -> list[Column]:
    """Whether a choice is among those of the row's kind, where kinds have lists of their own."""
    by_table: dict[str, list[str]] = {}
    for kind in _kinds_with(column):
        job, key = book.states.owner(column, kind)
        domain = job.inputs[key].domain
        assert isinstance(domain, Choice)
        by_table.setdefault(domain.table, []).append(kind)
    found = []
    for place, (table, of) in enumerate(by_table.items()):

        def formula(at: At, table: str = table, of: Any = of) -> str:
            flags = "+".join(at(f"is.{kind}") for kind in of)
            return f"=({flags})*(SUMPRODUCT(({column_name(table, None)}={at(f'typed.{column}')})*1)>0)"

        def value(row: Values, table: str = table, of: Any = of) -> int:
            known = str(row[f"typed.{column}"]).casefold() in book.job.tables[table].index
            return int(known and any(row[f"is.{kind}"] for kind in of))

        found.append(
            Column(f"known.{column}.{place}", f"{book.states.label(column)}, {table}", "switch", formula, value)
        )
    return found


def faults(book: PlanBook) -> list[Column]:
    """What is wrong with a column, and in which words."""
    grid, words = book.grid, book.template["states"]

    def name_fault(at: At) -> str:
        return f'=IF({at("used")}=0,0,IF({at("typed.name")}="",1,0))'

    def value_of_name(row: Values) -> int:
        return int(row["used"] and row["typed.name"] == "")

    found = [known for column in ("base_model", "recipe") for known in _known(book, column)]
    found.append(Column("fault.name", book.states.label("name"), "1: wrong", name_fault, value_of_name))
    found += [_fault_of(book, column) for column in CHECKED]
    first, last = f"fault.{COLUMNS[0]}", f"fault.{CHECKED[-1]}"

    def across() -> str:
        return grid.across(ROWS, first, last)

    order = ("name", *CHECKED)

    def position(row: Values) -> int:
        return next((at for at, column in enumerate(order, 1) if row[f"fault.{column}"]), 0)

    def faulty_value(row: Values) -> Any:
        return row[f"typed.{order[row['faulty'] - 1]}"] if row["faulty"] > 1 else ""

    def typed_at(at: At) -> str:
        """The value at fault; the team stands between the name and the kind, and is never wrong."""
        area = grid.across(ROWS, f"typed.{CHECKED[0]}", f"typed.{CHECKED[-1]}")
        return f'=IF({at("faulty")}<2,"",INDEX({area},1,{at("faulty")}-1))'

    def as_text(at: At) -> str:
        value = at("faulty_value")
        return f'=IF(ISTEXT({value}),IF(ISNUMBER(IFERROR(1*{value},"")),{quoted(words["as_text"])},""),"")'

    def faulty_text(row: Values) -> str:
        value = row["faulty_value"]
        from ...planning.row_states import _is_number

        return str(words["as_text"]) if isinstance(value, str) and _is_number(value) else ""

    found += [
        Column(
            "faulty", "First at fault", "column",
            lambda at: f"=IF(SUM({across()})>0,MATCH(1,{across()},0),0)", position,
        ),
        Column("faulty_value", "Its value", "", typed_at, faulty_value, "r_text_r"),
        Column("faulty_text", "A text", "", as_text, faulty_text, "r_text_r"),
        Column(
            "ok", "Cells right", "switch",
            lambda at: f"=IF({at('used')}*({at('faulty')}=0)=1,1,0)",
            lambda row: int(row["used"] and not row["faulty"]),
        ),
    ]  # fmt: skip
    for kind in kinds.KINDS:
        found.append(
            Column(
                f"use.{kind}",
                book.job.tables["job_kinds"].keys[kinds.KINDS.index(kind)],
                "in use",
                lambda at, kind=kind: f"={at('ok')}*{at(f'is.{kind}')}",  # type: ignore[misc]
                lambda row, kind=kind: row["ok"] * row[f"is.{kind}"],  # type: ignore[misc]
            )
        )
    for key, column in (("count_asked", "gpu_count"), ("card_asked", "gpu_choice")):
        found.append(
            Column(
                key,
                f"{book.states.label(column)}, asked",
                "",
                lambda at, column=column: (
                    f'=IF({at("ok")}=0,"{NOT_GIVEN}",'
                    f'IF({at(f"typed.{column}")}="","{NOT_GIVEN}",{at(f"typed.{column}")}))'
                ),  # type: ignore[misc]
                lambda row, column=column: (
                    row[f"typed.{column}"] if row["ok"] and row[f"typed.{column}"] != "" else NOT_GIVEN
                ),  # type: ignore[misc]
            )
        )
    return found


def wrong_cell(book: PlanBook) -> Column:
    """What is wrong with a row's first cell at fault, in words."""
    words, order = book.template["states"], ("name", *CHECKED)

    def message_value(row: Values) -> str:
        if not row["faulty"]:
            return ""
        column = order[row["faulty"] - 1]
        value = row[f"typed.{column}"]
        kind = kinds.KINDS[row["kind"] - 1] if row["kind"] else "lora"
        return book.states._empty(column, kind) if value == "" else book.states._wrong(column, value, kind)

    def message(at: At) -> str:
        label, right = (f"INDEX(Plan_Column_{name}_List,{at('faulty')})" for name in ("Labels", "Right"))
        empty = spelled(words["empty"], label=label, right=right)
        wrong = spelled(words["wrong"], label=label, right=right, value=f"{at('faulty_value')}&{at('faulty_text')}")
        return f'=IF({at("faulty")}=0,"",IF({at("faulty_value")}="",{empty},{wrong}))'

    return Column("told.column", "Wrong cell", "", message, message_value, "r_text")


def chosen(book: PlanBook) -> list[Column]:
    """The card in force: the one asked for, or that of the cheapest offer."""
    grid, offers = book.grid, book.offers
    first, last = "offer.0", f"offer.{len(offers) - 1}"
    cards = [card["name"].casefold() for card in book.card_rows]

    def cheapest(row: Values) -> int:
        costs = [row[f"offer.{at}"] for at in range(len(offers))]
        known = [cost for cost in costs if not isinstance(cost, str)]
        return costs.index(min(known)) + 1 if known else 0

    def cheapest_formula(at: At) -> str:
        cells = grid.across(ROWS, first, last)
        return f"=IF(COUNT({cells})>0,MATCH(MIN({cells}),{cells},0),0)"

    def card(row: Values) -> str:
        if row["cheapest"]:
            return str(offers[row["cheapest"] - 1].card)
        return str(offers[0].card if row["card_asked"] == NOT_GIVEN else row["card_asked"])

    def card_formula(at: At) -> str:
        asked = f'IF({at("card_asked")}="{NOT_GIVEN}",INDEX(Plan_Offer_Cards_List,1),{at("card_asked")})'
        return f"=IF({at('cheapest')}>0,INDEX(Plan_Offer_Cards_List,{at('cheapest')}),{asked})"

    def count(row: Values) -> Any:
        if row["count_asked"] != NOT_GIVEN:
            return row["count_asked"]
        return offers[row["cheapest"] - 1].cards if row["cheapest"] else 1

    def count_formula(at: At) -> str:
        offered = f"IF({at('cheapest')}>0,INDEX(Plan_Offer_Counts_List,{at('cheapest')}),1)"
        return f'=IF({at("count_asked")}="{NOT_GIVEN}",{offered},{at("count_asked")})'

    def of_card(name: str, key: str) -> Column:
        return Column(
            f"card.{name}",
            book.graphs.kinds["lora"].inputs[name].label,
            book.graphs.kinds["lora"].inputs[name].unit,
            lambda at: f'=IF({at("card_no")}=0,"{NOT_GIVEN}",INDEX(Plan_Card_{public_name(key)}_List,{at("card_no")}))',
            lambda row: book.card_rows[row["card_no"] - 1][key] if row["card_no"] else NOT_GIVEN,
        )

    return [
        Column("cheapest", "Cheapest offer", "row", cheapest_formula, cheapest),
        Column(
            "no_offer", "No offer", "switch",
            lambda at: f'=IF(AND({at("card_asked")}="{NOT_GIVEN}",{at("cheapest")}=0),{at("ok")},0)',
            lambda row: int(row["ok"] and row["card_asked"] == NOT_GIVEN and not row["cheapest"]),
        ),
        Column("card_found", "Card", "", card_formula, card, "r_text_r"),
        Column(
            "card_no", "Row of the card", "row",
            lambda at: (
                f"=IF(SUMPRODUCT((Plan_Cards_List={at('card_found')})*1)>0,"
                f"MATCH({at('card_found')},Plan_Cards_List,0),0)"
            ),
            lambda row: 1 + cards.index(row["card_found"].casefold()) if row["card_found"].casefold() in cards else 0,
        ),
        Column(
            "card.gpu_choice", "Card", "in force",
            lambda at: f"=IF({at('card_no')}=0,{at('card_found')},INDEX(Plan_Cards_List,{at('card_no')}))",
            lambda row: book.card_rows[row["card_no"] - 1]["name"] if row["card_no"] else row["card_found"], "r_text_r",
        ),
        Column("card.gpu_count", "Cards", "count", count_formula, count),
        of_card("own_price_per_hour", "price"),
        of_card("own_price_date", "price_date"),
    ]  # fmt: skip


def open_offers(book: PlanBook) -> list[Column]:
    """Which offers a row leaves open."""
    found = []
    for number, offer in enumerate(book.offers):
        card, right = book.offer_cell("", "card", number), book.offer_cell("", "right", number)
        found.append(
            Column(
                f"open.{number}",
                f"Offer {number + 1} open",
                "switch",
                lambda at, card=card, right=right: (
                    f'=IF({at("card_asked")}="{NOT_GIVEN}",1,IF({at("card_asked")}={card},1,0))*{right}*{at("ok")}'
                ),  # type: ignore[misc]
                lambda row, offer=offer: (
                    row["ok"]
                    * offer.right
                    * int(row["card_asked"] == NOT_GIVEN or str(row["card_asked"]).casefold() == offer.card.casefold())
                ),  # type: ignore[misc]
            )
        )
    return found


def offered(book: PlanBook) -> list[Column]:
    """What a run would cost on each offer."""
    found = []
    for number, offer in enumerate(book.offers):

        def formula(at: At, number: int = number) -> str:
            costs = ",".join(at(f"{kind}.{number}.offer_cost") for kind in kinds.KINDS)
            return f'=IF({at(f"open.{number}")}=0,"–",CHOOSE({at("kind")},{costs}))'

        def value(row: Values, number: int = number) -> Any:
            if not row[f"open.{number}"]:
                return "–"
            return row[f"{kinds.KINDS[row['kind'] - 1]}.{number}.offer_cost"]

        found.append(Column(f"offer.{number}", f"{offer.cards} × {offer.card}", "currency", formula, value, "r_calc2"))
    return found


def taken(book: PlanBook) -> list[Column]:
    """What the rest takes of the job, whichever kind it is."""

    def picked(key: str, head: str, unit: str, style: str = "") -> Column:
        def formula(at: At) -> str:
            return f"=CHOOSE(MAX(1,{at('kind')}),{','.join(at(f'{kind}.{key}') for kind in kinds.KINDS)})"

        return Column(
            f"taken.{key}", head, unit, formula, lambda row: row[f"{kinds.KINDS[max(1, row['kind']) - 1]}.{key}"], style
        )

    facts = book.graphs.kinds["lora"].terms
    found = [picked(key, facts[key].label, facts[key].unit) for key in kinds.TAKEN]
    return [*found, *(picked(key, f"Broken rule, {key}", "", "r_text") for key in ("before", "after"))]


def of_row(book: PlanBook, job: Job) -> list[Column]:
    """The terms of the row: its window, its runs, its cards; and the sentences of its rules."""
    grid = book.grid
    asked = {"runs_per_month": "1", "runs_at_once": f'"{NOT_GIVEN}"'} | dict.fromkeys(_WINDOW, f'"{NOT_GIVEN}"')
    found = []
    for key, standing in asked.items():
        value = 1 if standing == "1" else NOT_GIVEN
        found.append(
            Column(
                f"row.{key}",
                job.inputs[key].label,
                job.inputs[key].unit,
                lambda at, key=key, standing=standing: (
                    f'=IF({at("ok")}=0,{standing},IF({at(f"typed.{key}")}="",{standing},{at(f"typed.{key}")}))'
                ),  # type: ignore[misc]
                lambda row, key=key, value=value: (
                    row[f"typed.{key}"] if row["ok"] and row[f"typed.{key}"] != "" else value
                ),  # type: ignore[misc]
            )
        )
    moving = job.depends_on((*asked, "gpu_count", *kinds.TAKEN))
    of_month = job.depends_on(("month_day",))
    results = (
        *DATE_RULES, *NOTES, "window_start", "window_end", "window_days", "run_cost", "at_once", "at_once_needed",
        "cards_needed", "run_days", "days_late",
    )  # fmt: skip
    needed = job.needed((*results, "month_card_hours", "month_cards", "month_spend"))
    trees = {key: job.trees[key] for key in needed if key in moving and key not in of_month}
    trees = compact(trees, results, lambda tree: sheet_formula(tree, lambda key: "$AB12"))
    constants = {key: facts.value for key, facts in job.constants.items()}

    def cell(at: At, key: str) -> str:
        if f"row.{key}" in grid.places:
            return at(f"row.{key}")
        if key in kinds.TAKEN:
            return at(f"taken.{key}")
        if key == "gpu_count":
            return at("card.gpu_count")
        if key in _PLAN:
            return _PLAN[key]
        if key in job.constants:
            return book.constant(key, job.constants[key])
        return "Row_" + public_name(key)

    def column(key: str, tree: Expr, style: str = "") -> Column:
        used = names_in(tree)

        rule = key.rstrip("?")

        def value(row: Values) -> Any:
            if rule != key and row[f"row.{rule}"] > 0:
                return ""
            env = {name: _value(book, row, name, constants) for name in used}
            return value_of(tree, env, job.tables)

        def formula(at: At) -> str:
            text = sheet_formula(tree, lambda name: cell(at, name), column_name)
            return text if rule == key else f'=IF({at(f"row.{rule}")}>0,"",{text[1:]})'

        facts = job.terms[rule]
        return Column(
            f"row.{key}", facts.label, facts.unit if not key.endswith("?") else "",
            formula, value, style,
        )  # fmt: skip

    order = [*DATE_RULES, *NOTES, *(key for key in trees if key not in DATE_RULES and key not in NOTES)]
    found += [column(key, trees[key]) for key in order]
    book.row_steady = [key for key in needed if key not in moving and key not in of_month]
    for rules in (DATE_RULES, NOTES):
        for rule in rules:
            tree = book.states.message(job, rule, job.symbol)
            found.append(column(f"{rule}?", lift(tree), "r_text"))
    return found


def _value(book: PlanBook, row: Values, name: str, constants: dict[str, Any]) -> Any:
    if f"row.{name}" in book.grid.places:
        return row[f"row.{name}"]
    if name in kinds.TAKEN:
        return row[f"taken.{name}"]
    if name == "gpu_count":
        return row["card.gpu_count"]
    for known in (constants, book.plan_days, book.row_values):
        if name in known:
            return known[name]
    raise KeyError(name)


def states(book: PlanBook) -> list[Column]:
    """Why a row is not counted, what to know of one that is, and what others show of it."""
    grid, words = book.grid, book.template["states"]

    def when(key: str, head: str, test: Any, text: str, holds: Any) -> Column:
        return Column(
            key, head, "", lambda at: f'=IF({test(at)},{quoted(text)},"")',
            lambda row: text if holds(row) else "", "r_text",
        )  # fmt: skip

    def dates(at: At) -> str:
        rules = grid.across(ROWS, f"row.{DATE_RULES[0]}", f"row.{DATE_RULES[-1]}")
        said = grid.across(ROWS, f"row.{DATE_RULES[0]}?", f"row.{DATE_RULES[-1]}?")
        return f'=IF({at("ok")}*(1-MIN({rules}))=0,"",INDEX({said},1,MATCH(0,{rules},0)))'

    def dates_value(row: Values) -> str:
        broken = next((rule for rule in DATE_RULES if not row[f"row.{rule}"]), None)
        return row[f"row.{broken}?"] if row["ok"] and broken else ""

    def copied(key: str, source: str, head: str) -> Column:
        return Column(
            key, head, "", lambda at: f'=IF({at("ok")}=0,"",{at(source)})',
            lambda row: row[source] if row["ok"] else "", "r_text",
        )  # fmt: skip

    def note(key: str, rule: str, head: str) -> Column:
        return Column(
            key, head, "", lambda at: f'=IF({at(f"row.{rule}")}>0,"",{at(f"row.{rule}?")})',
            lambda row: "" if row[f"row.{rule}"] else row[f"row.{rule}?"], "r_text",
        )  # fmt: skip

    told = tuple(f"told.{key}" for key in TOLD)

    def rank(keys: tuple[str, ...]) -> Any:
        """How far from the end the first of them stands that says something; 0 where none does."""

        def formula(at: At) -> str:
            weights = book.weights(keys)
            return f'=SUMPRODUCT(MAX(({grid.across(ROWS, keys[0], keys[-1])}<>"")*{weights}))'

        return formula

    def rank_value(keys: tuple[str, ...]) -> Any:
        return lambda row: max([len(keys) - place for place, key in enumerate(keys) if row[key] != ""], default=0)

    def said(rank_key: str, keys: tuple[str, ...], head: str, key: str) -> Column:
        backwards = keys[::-1]
        return Column(
            key, head, "",
            lambda at: f'=IF({at(rank_key)}=0,"",CHOOSE({at(rank_key)},{",".join(at(each) for each in backwards)}))',
            lambda row: row[backwards[row[rank_key] - 1]] if row[rank_key] else "", "r_text",
        )  # fmt: skip

    return [
        wrong_cell(book),
        Column("told.date", "Dates", "", dates, dates_value, "r_text"),
        copied("told.before", "taken.before", "Rules of the job"),
        when(
            "told.offer", "No offer", lambda at: f"{at('no_offer')}=1", words["no_offer"],
            lambda row: row["no_offer"],
        ),
        copied("told.after", "taken.after", "Rules on its card"),
        when(
            "told.size", "Too large", lambda at: f"{at('ok')}*({at('taken.verdict_code')}>2)=1", words["too_large"],
            lambda row: row["ok"] and row["taken.verdict_code"] > 2,
        ),
        when(
            "told.speed", "No speed", lambda at: f"{at('ok')}*(1-{at('taken.speed_known')})=1", words["no_speed"],
            lambda row: row["ok"] and not row["taken.speed_known"],
        ),
        note("note.price", "cost_counted", "No price"),
        note("note.queue", "queue_drains", "Runs wait"),
        note("note.late", "run_in_window", "Late"),
        when(
            "note.tight", "Tight", lambda at: f"{at('taken.verdict_code')}=2", words["tight"],
            lambda row: row["taken.verdict_code"] == 2,
        ),
        Column("told_no", "Why not", "from the end", rank(told), rank_value(told)),
        Column("note_no", "What to know", "from the end", rank(NOTED), rank_value(NOTED)),
        said("told_no", told, "Reason", "reason"),
        said("note_no", NOTED, "Remark", "remark"),
        Column(
            "counted", "Counted", "switch",
            lambda at: f"=IF({at('used')}*({at('told_no')}=0)=1,1,0)",
            lambda row: int(row["used"] and not row["told_no"]),
        ),
        Column(
            "state", "State", "",
            lambda at: f'=IF({at("used")}=0,"",IF({at("told_no")}>0,{at("reason")},{at("remark")}))',
            lambda row: "" if not row["used"] else row["reason"] if row["told_no"] else row["remark"], "r_text",
        ),
        Column(
            "sized", "Sized", "switch",
            lambda at: f"=IF({at('used')}*({at('told_no')}<=2)=1,1,0)",
            lambda row: int(row["used"] and row["told_no"] <= 2),
        ),
        Column(
            "verdict", "Verdict", "",
            lambda at: (
                f'=IF({at("used")}=0,"",IF({at("sized")}=0,"Check",'
                f'INDEX(Verdicts_Shown_List,{at("taken.verdict_code")})))'
            ),
            lambda row: (
                "" if not row["used"] else "Check" if not row["sized"]
                else book.job.tables["verdicts"].columns["shown"][row["taken.verdict_code"] - 1]
            ),
            "r_text",
        ),
        Column(
            "team", "Team", "counted",
            lambda at: (
                f'=IF({at("counted")}=0,"",'
                f'IF({at("typed.team")}="",{quoted(words["no_team"])},{at("typed.team")}))'
            ),
            lambda row: "" if not row["counted"] else row["typed.team"] or words["no_team"], "r_text",
        ),
        Column(
            "team_first", "First of its team", "switch",
            lambda at: f'=IF({at("team")}="",0,IF(SUMPRODUCT(({_above(book, "team")}={at("team")})*1)=1,1,0))',
            lambda row: int(
                row["team"] != ""
                and all(str(each["team"]).casefold() != str(row["team"]).casefold() for each in row["_rows"])
            ),
        ),
        Column(
            "team_no", "Team so far", "count", lambda at: f"={at('team_first')}+N({_over(book, 'team_no')})",
            lambda row: row["team_first"] + (row["_rows"][-1]["team_no"] if row["_rows"] else 0),
        ),
    ]  # fmt: skip


def sums(book: PlanBook) -> list[Column]:
    """A row's money over the plan and its rank by it, and how many rows up to it are not counted."""
    from .book import MONTH_COUNT

    grid, last = book.grid, MONTH_COUNT - 1

    def rank(at: At) -> str:
        area, cell = book.rank_area(), at("spend")
        return f"=IF({cell}>0,SUMPRODUCT(({area}>{cell})*1)+SUMPRODUCT(({_above(book, 'spend')}={cell})*1),0)"

    return [
        Column(
            "spend", "Spend", "currency",
            lambda at: f"=SUM({grid.across(ROWS, 'm0.month_spend', f'm{last}.month_spend')})",
            lambda row: sum(row[f"m{month}.month_spend"] for month in range(MONTH_COUNT)),
        ),
        Column(
            "hours", "Card hours", "hours",
            lambda at: f"=SUM({grid.across(ROWS, 'm0.month_card_hours', f'm{last}.month_card_hours')})",
            lambda row: sum(row[f"m{month}.month_card_hours"] for month in range(MONTH_COUNT)),
        ),
        Column("rank", "Rank by spend", "count", rank, lambda row: 0),
        Column(
            "left_no", "Not counted so far", "count",
            lambda at: f"={at('used')}*(1-{at('counted')})+N({_over(book, 'left_no')})",
            lambda row: row["used"] * (1 - row["counted"]) + (row["_rows"][-1]["left_no"] if row["_rows"] else 0),
        ),
    ]  # fmt: skip


def _above(book: PlanBook, key: str) -> str:
    from ..scenarios import letters
    from .grid import FIRST

    column = letters(book.grid.places[key][1])
    return f"${column}${FIRST + 1}:${column}{{row}}"


def _over(book: PlanBook, key: str) -> str:
    from ..scenarios import letters

    return f"${letters(book.grid.places[key][1])}{{above}}"

"""Fleet: what to buy for the floor of use and what to rent for the peak, by card; from which use owning pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.render import column_name, public_name, sheet_formula
from .. import page
from ..book import Raw
from ..jobtable import NOT_GIVEN, JobTable
from ..scenarios import letters
from .book import CARD_COUNT, FLEET
from .months import AVERAGE_ROW, FLOOR_ROW, PEAK_ROW, total

if TYPE_CHECKING:
    from .book import PlanBook

FIRST = 6  # row of the first card, from 0
SHOWN = (
    "floor_cards", "floor_use", "break_even_utilisation", "cards_bought", "spares_bought", "cards_rented",
    "fleet_purchase", "floor_rent", "floor_owned", "buying_saves",
)  # fmt: skip
VARIED = (
    "gpu_choice", "own_price_per_hour", "own_price_date", "purchase_price", "card_purchase_usd",
    "least_average", "most_at_once", "floor_card_hours",
)  # fmt: skip
STYLES = {"floor_use": "r_share", "break_even_utilisation": "r_share"}


def table(book: PlanBook) -> JobTable:
    """The columns of the sheet: what is shown, what it is read from, and every term between."""
    job = book.graphs.fleet

    def elsewhere(key: str) -> str:
        if key in job.constants:
            return book.constant(key, job.constants[key])
        if key == "plan_hours":
            return "Plan_Hours"
        if key == "own_system_kw":  # of one card alone; a plan has several
            return f'"{NOT_GIVEN}"'
        return public_name(key) + "_In_Force" if key in book.shared else "Fleet_" + public_name(key)

    return JobTable(job, SHOWN, inputs=VARIED, varied=VARIED, elsewhere=elsewhere)


def column_of(book: PlanBook, key: str) -> int:
    """Where a column stands, from 0."""
    return 2 + book.fleet.column(key)


def floor_cell(at: int) -> str:
    """Cards of the floor, of one card."""
    return f"'{FLEET}'!${letters(2 + SHOWN.index('floor_cards'))}${FIRST + at + 1}"


def write(book: PlanBook) -> None:
    """A row a card; sums of the money below."""
    ws, styles, words, job = book.sheet(FLEET), book.styles, book.template["fleet_sheet"], book.graphs.fleet
    put, layout = book.putter(ws), book.fleet
    end = 2 + len(layout.columns)
    page.plain_sheet(
        book, FLEET, kind="Fleet", last_column=end, title=words["title"], sentence=words["sentence"], freeze=(FIRST, 2)
    )
    for row, text in zip((2, 3), words["notes"], strict=True):
        put(row, 1, text, styles["help"])
    ws.set_row(FIRST - 2, book.look["rows"]["header_two_lines"])
    put(FIRST - 2, 1, words["card"], styles["th_open"])
    put(FIRST - 1, 1, "", styles["th_ul"])
    for at, key in enumerate(layout.columns, 2):
        facts = job.inputs.get(key) or job.terms[key]
        put(FIRST - 2, at, facts.label, styles["th_open_r"])
        currency = facts.unit.startswith("currency")
        unit = (
            Raw(
                f'=Currency_Choice_In_Force&"{facts.unit.removeprefix("currency")}"',
                book.opened["currency_choice"] + facts.unit.removeprefix("currency"),
            )
            if currency
            else facts.unit
        )
        put(FIRST - 1, at, unit, styles["th_u"])
    steady = {key: book.settings_value("", key) for key in book.shared if key in job.inputs}
    formulas = layout.formulas(2)
    sums = dict.fromkeys(
        (
            "cards_bought",
            "spares_bought",
            "cards_rented",
            "fleet_purchase",
            "floor_rent",
            "floor_owned",
            "buying_saves",
        ),
        0.0,
    )
    book.fleet_values = []
    plan_hours = sum(values["month_hours"] for values in book.loads[0])
    for at in range(CARD_COUNT):
        row, number = FIRST + at, FIRST + at + 1
        card, bought = book.card_rows[at], book.card_rows[at]["purchase_price"]
        inputs: dict[str, Any] = {
            **steady, "gpu_choice": card["name"] or job.tables["gpus"].keys[0], "own_price_per_hour": card["price"],
            "own_price_date": card["price_date"], "card_purchase_usd": card["purchase_usd"],
            "purchase_price": steady["purchase_price"] if bought == NOT_GIVEN else bought,
            "plan_hours": plan_hours, **book.floors[at],
        }  # fmt: skip
        values = {**inputs, **job.reference(inputs)}
        book.fleet_values.append(values)
        put(
            row,
            1,
            Raw(f"=INDEX(Plan_Cards_List,{page.cell(row, 0, column_fixed=True)})", card["name"]),
            styles["r_text"],
        )
        put(row, 0, at + 1, styles["r_no"])
        cells = {
            "gpu_choice": f'=IF($B{number}="",INDEX({column_name("gpus", None)},1),$B{number})',
            "own_price_per_hour": f"=INDEX(Plan_Card_Price_List,$A{number})",
            "own_price_date": f"=INDEX(Plan_Card_Price_Date_List,$A{number})",
            "purchase_price": f"=INDEX(Plan_Card_Purchase_Price_List,$A{number})",
            "card_purchase_usd": f"=INDEX(Plan_Card_Purchase_USD_List,$A{number})",
            "least_average": f"={total(AVERAGE_ROW + at)}",
            "most_at_once": f"={total(PEAK_ROW + at)}",
            "floor_card_hours": f"={total(FLOOR_ROW + at)}",
        }
        for column, key in enumerate(layout.columns, 2):
            formula = formulas[key].replace("{row}", str(number)) if key in formulas else cells[key]
            style = STYLES.get(key, "r_calc0" if key in SHOWN else "r_calc2")
            value = values[key]
            put(
                row,
                column,
                Raw(formula, value),
                styles["r_text_r"] if isinstance(value, str) and key not in STYLES else styles[style],
            )
        for key in sums:
            sums[key] += values[key]
    page.formula_marks(ws, styles, (FIRST, 0, FIRST + CARD_COUNT - 1, end), f'=$B{FIRST + 1}=""', "hidden")
    row = FIRST + CARD_COUNT
    style = styles.variant("t_calc1", format="n0")
    put(row, 1, words["all"], styles["t_label"])
    for column, key in enumerate(layout.columns[: len(SHOWN)], 2):
        letter = letters(column)
        content = Raw(f"=SUM(${letter}${FIRST + 1}:${letter}${row})", sums[key]) if key in sums else ""
        put(row, column, content, style)
        if key in sums:
            book.define("Fleet_Total_" + public_name(key), FLEET, row, column)
    book.fleet_sums = sums
    steady_keys = [key for key in job.needed(SHOWN) if key not in layout.local]
    row += 3
    put(row - 1, 1, words["steady"], styles["section"])
    shared = {**steady, "plan_hours": plan_hours}
    for label, unit, name, content in (
        (job.inputs["plan_hours"].label, "hours", "Plan_Hours", Raw("=SUM(" + _month_hours() + ")", plan_hours)),
        *(
            (
                job.terms[key].label, job.terms[key].unit, "Fleet_" + public_name(key),
                Raw(sheet_formula(job.trees[key], layout.elsewhere, column_name), job.reference(shared, (key,))[key]),
            )
            for key in steady_keys
        ),
    ):  # fmt: skip
        put(row, 1, label, styles["r_label"])
        put(row, 2, content, styles.variant("r_calc0", format="general"))
        put(row, 3, unit, styles["r_unit"])
        book.define(name, FLEET, row, 2)
        row += 1
    page.print_area(ws, FIRST + CARD_COUNT, 1 + len(SHOWN))


def _month_hours() -> str:
    from .book import MONTH_COUNT
    from .lists import month_cell

    first, last = month_cell("month_hours", 0), month_cell("month_hours", MONTH_COUNT - 1)
    return f"{first}:{last.partition('!')[2]}"

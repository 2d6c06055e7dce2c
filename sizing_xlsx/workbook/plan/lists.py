"""Plan workings: what no row changes. The columns of Jobs, the months, what stands in for empty cells, steady terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.engine import value_of
from ...formula.render import column_name, public_name, sheet_formula
from .. import page
from ..book import Raw
from .book import LIST, MONTH_COUNT
from .row_columns import CHECKED, bounds_of

if TYPE_CHECKING:
    from .book import PlanBook

_ORDER = ("name", *CHECKED)
_COLUMNS, _MONTHS = 4, 4 + len(_ORDER) + 3  # first rows of the two tables, from 0
_LABEL, _RIGHT, _LOW, _HIGH = 1, 2, 3, 4
_DAY, _NEXT, _DAYS, _HOURS = 2, 3, 4, 5


def bound_cell(column: str, which: str) -> str:
    """The cell with the lowest or the highest number of a column of Jobs."""
    return f"'{LIST}'!${'D' if which == 'low' else 'E'}${_COLUMNS + _ORDER.index(column) + 1}"


def month_cell(key: str, at: int) -> str:
    """A figure of a month."""
    column = {"month_day": "C", "next_month_day": "D", "days_in_month": "E", "month_hours": "F"}[key]
    return f"'{LIST}'!${column}${_MONTHS + at + 1}"


def month_values(book: PlanBook, at: int) -> dict[str, Any]:
    """What those cells hold."""
    job = book.graphs.load
    found = job.reference({"month_day": book.months[at]}, ("next_month_day", "days_in_month", "month_hours"))
    return {key: found[key] for key in ("month_day", "next_month_day", "days_in_month", "month_hours")}


def write(book: PlanBook) -> None:
    """The sheet, with a name for each figure."""
    ws, styles, words = book.sheet(LIST), book.styles, book.template["lists"]
    put = book.putter(ws)
    last = page.plain_sheet(
        book, LIST, kind="Plan workings", sentence=words["sentence"], title=words["title"], freeze=(2, 2)
    )
    plain = styles.variant("r_calc0", format="general", shrink=True)
    day = styles.variant("r_calc0", format="date")

    def heads(row: int, texts: list[str]) -> None:
        for column, text in enumerate(texts, 1):
            put(row, column, text, styles["th" if column < 3 else "th_r"])

    heads(_COLUMNS - 1, words["columns"])
    for at, column in enumerate(_ORDER):
        row, (low, high) = _COLUMNS + at, bounds_of(book, column)
        put(row, _LABEL, book.states.label(column), styles["r_label"])
        put(row, _RIGHT, book.states.right(column, _kind(book, column)), styles["r_text"])
        put(row, _LOW, low, plain)
        put(row, _HIGH, high, plain)
    end = _COLUMNS + len(_ORDER) - 1
    book.define("Plan_Column_Labels_List", LIST, _COLUMNS, _LABEL, end)
    book.define("Plan_Column_Right_List", LIST, _COLUMNS, _RIGHT, end)
    heads(_MONTHS - 1, words["months"])
    job = book.graphs.load
    for at in range(MONTH_COUNT):
        row, values = _MONTHS + at, month_values(book, at)
        put(row, _LABEL, at + 1, styles["r_no"])
        before = sheet_formula(book.graphs.row.trees["first_asked"], lambda key: "Plan_Start_In_Force")  # any day of it
        first = before if at == 0 else f"=$D${row}"
        put(row, _DAY, Raw(first, values["month_day"]), day)
        cells = {"month_day": f"$C${row + 1}", "next_month_day": f"$D${row + 1}", "days_in_month": f"$E${row + 1}"}
        for where, key in ((_NEXT, "next_month_day"), (_DAYS, "days_in_month"), (_HOURS, "month_hours")):
            formula = sheet_formula(job.trees[key], lambda name, cells=cells: cells.get(name) or _constant(book, name))  # type: ignore[misc]
            put(row, where, Raw(formula, values[key]), day if key == "next_month_day" else plain)
    end = _MONTHS + MONTH_COUNT - 1
    book.define("Plan_First_Day", LIST, _MONTHS, _DAY)
    book.define("Plan_End_Day", LIST, end, _NEXT)
    row = end + 3
    heads(row - 1, words["figures"])

    def figure(label: str, unit: str, content: Any, name: str) -> None:
        nonlocal row
        value = content.value if isinstance(content, Raw) else content
        put(row, _LABEL, label, styles["r_label"])
        put(row, 2, content, styles["r_text_r"] if isinstance(value, str) else plain)
        put(row, 3, unit, styles["r_unit"])
        book.define(name, LIST, row, 2)
        row += 1

    graph = book.graphs.row
    for key in book.row_steady:
        tree, facts = graph.trees[key], graph.terms[key]
        formula = sheet_formula(tree, lambda name: _row_name(book, name), column_name)
        figure(facts.label, facts.unit, Raw(formula, book.row_values[key]), "Row_" + public_name(key))
    for name, kind in book.kinds.items():
        values = kind.steady_values()
        for key in dict.fromkeys((*kind.row_inputs, *kind.fixed)):
            if key not in kind.settings and key not in book.shared:
                held = book.settings_value(name, key)
                figure(f"{kind.job.inputs[key].label}, {name}", kind.job.inputs[key].unit, held, kind.stand_in(key))
        for key, value in kind.figures.items():
            figure(words["figure"].format(kind=name), "", value, kind.prefix + public_name(key))
        for key in kind.steady:
            facts, tree = kind.job.terms[key], kind.trees[key]
            value = value_of(tree, values, kind.job.tables)
            formula = sheet_formula(tree, kind.name, column_name)
            figure(f"{facts.label}, {name}", facts.unit, Raw(formula, value), kind.prefix + public_name(key))
    for key, constant in list(book.constants.items()):
        figure(constant.label, constant.unit, constant.value, public_name(key))
    page.print_area(ws, row - 1, last)


def _kind(book: PlanBook, column: str) -> str:
    from ...capacity import kinds

    return next((kind for kind in kinds.KINDS if column in kinds.COLUMNS[kind]), "lora")


def _constant(book: PlanBook, key: str) -> str:
    return book.constant(key, book.graphs.load.constants[key])


def _row_name(book: PlanBook, key: str) -> str:
    graph = book.graphs.row
    if key in graph.constants:
        return book.constant(key, graph.constants[key])
    return {"today_date": "Today_Date_In_Force", "plan_start": "Plan_First_Day", "plan_end": "Plan_End_Day"}.get(
        key, "Row_" + public_name(key)
    )


def steady_of_rows(book: PlanBook) -> None:
    """What the row's graph has that no row changes."""
    graph = book.graphs.row
    values = {**{key: facts.value for key, facts in graph.constants.items()}, **book.plan_days}
    for key in book.row_steady:
        values[key] = value_of(graph.trees[key], values, graph.tables)
    book.row_values = {key: values[key] for key in book.row_steady}

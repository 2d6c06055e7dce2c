"""Jobs: the list that a planner types, with the verdict, the card, the hours and the money of each row beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...capacity import kinds
from ...formula.declare import Choice, Whole
from ...formula.render import column_name
from ...planning.row_states import COLUMNS
from .. import page
from ..book import Raw
from ..inputs import prompt
from ..page import Tile
from ..scenarios import letters
from ..words import quoted
from .book import DAYS, JOBS
from .grid import FIRST

if TYPE_CHECKING:
    from .book import PlanBook

_NUMBER, _NAME, _TEAM, _RESULTS = 0, 1, 2, 3
RESULTS = (  # what a row shows: key of the grid, style, where it is shown
    ("verdict", "r_text_i", "used"), ("card.gpu_choice", "r_text_i", "sized"), ("card.gpu_count", "r_calc0", "sized"),
    ("taken.occupied_hours", "r_calc1", "counted"), ("row.run_cost", "r_calc2", "priced"),
    ("row.cards_needed", "r_calc0", "counted"), ("spend", "r_calc0", "priced"), ("state", "r_help", "used"),
)  # fmt: skip
_FIRST_TYPED = _RESULTS + len(RESULTS)
LAST_PRINTED = _FIRST_TYPED - 1


def place(book: PlanBook) -> None:
    """Say where each column that is typed stands."""
    for column in COLUMNS:
        book.grid.place(f"jobs.{column}", JOBS, column_of(column))


def column_of(column: str) -> int:
    """Where a column is typed, from 0."""
    return {"name": _NAME, "team": _TEAM}.get(column, _FIRST_TYPED + COLUMNS.index(column) - 2)


def list_name(column: str) -> str:
    """The defined name of a column of Jobs."""
    return column_name("plan", column)


def write(book: PlanBook) -> None:
    """The sheet."""
    ws, styles, look, words = book.sheet(JOBS), book.styles, book.look, book.template["jobs_sheet"]
    put, grid = book.putter(ws), book.grid
    end = column_of(COLUMNS[-1]) + 1
    grid_widths = look["sheets"]["Jobs"]
    widths = [*grid_widths["first"], *(words["columns"][column][1] for column in COLUMNS[2:]), 2]
    page.set_page(
        ws,
        look,
        kind=JOBS,
        file_and_version=book.footer,
        widths=widths,
        freeze=(FIRST, 2),
        rows_repeated=(FIRST - 3, FIRST - 1),
    )
    ws.repeat_columns(0, _NAME)
    _strip(book, LAST_PRINTED)
    for row, height in (
        (FIRST - 4, "space"),
        (FIRST - 3, "header_two_lines"),
        (FIRST - 2, "unit"),
        (FIRST - 1, "unit"),
    ):
        ws.set_row(row, look["rows"][height])
    put(FIRST - 3, _NUMBER, "", styles["th_open"])
    put(FIRST - 2, _NUMBER, "", styles["th_ul"])
    heads = [("name", _NAME), ("team", _TEAM)]
    for key, at in heads:
        put(FIRST - 3, at, book.states.label(key), styles["th_open"])
        put(FIRST - 2, at, words["needed"] if key == "name" else "", styles["th_ul"])
    for at, (text, unit) in enumerate(words["results"], _RESULTS):
        left = RESULTS[at - _RESULTS][1] in ("r_text_i", "r_help")
        put(FIRST - 3, at, text, styles["th_open_i" if left else "th_open_r"])
        content = Raw("=Currency_Choice_In_Force", book.opened["currency_choice"]) if unit == "currency" else unit
        put(FIRST - 2, at, content, styles["th_ui" if left else "th_u"])
    for column in COLUMNS[2:]:
        at = column_of(column)
        put(FIRST - 3, at, words["columns"][column][0], styles["th_open_r"])
        put(FIRST - 2, at, words["columns"][column][2], styles["th_u"])
    put(FIRST - 1, 1, words["below"], styles["help"])
    for at, values in enumerate(book.row_results):
        _row(book, FIRST + at, at, values)
    _marks(book)
    _validations(book)
    for column in COLUMNS:
        book.define(list_name(column), JOBS, FIRST, column_of(column), grid.last)
    printed = (0, 0, FIRST + min(grid.rows, words["printed"]) - 1, LAST_PRINTED)
    typed = (FIRST - 3, _FIRST_TYPED, FIRST + min(grid.rows, words["printed"]) - 1, end - 1)
    page.print_areas(ws, (printed, typed))


def _row(book: PlanBook, row: int, at: int, values: dict[str, Any]) -> None:
    ws, styles, grid = book.sheet(JOBS), book.styles, book.grid
    put, address = book.putter(ws), grid.at(JOBS)
    ws.set_row(row, book.look["rows"]["table"])
    put(row, _NUMBER, at + 1, styles["r_no"])
    shown = {
        "used": address("used"), "sized": address("sized"), "counted": address("counted"),
        "priced": f"{address('counted')}*{address('taken.price_known')}",
    }  # fmt: skip
    for column, (key, style, when) in enumerate(RESULTS, _RESULTS):
        formula = f'=IF({shown[when]}=0,"",{address(key)})'.replace("{row}", str(row + 1))
        holds = values["counted"] and values["taken.price_known"] if when == "priced" else values[when]
        form = styles.variant(style, wrap=False) if style == "r_help" else styles[style]
        put(row, column, Raw(formula, values[key] if holds else ""), form)
    for typed in COLUMNS:
        value = values[f"jobs.{typed}"]
        put(row, column_of(typed), None if value == "" else value, styles[_style(book, typed)])


def _style(book: PlanBook, column: str) -> str:
    if column in ("name", "team"):
        return "g_text"
    if column in DAYS:
        return "g_date"
    return {"runs_per_month": "g_dec3", "epoch_count": "g_dec1"}.get(column) or (
        "g_text_r" if _choice(book, column) or column in ("job_kind", "base_model", "recipe", "gpu_choice") else "g_num"
    )


def _choice(book: PlanBook, column: str) -> bool:
    kind = next((kind for kind in kinds.KINDS if column in kinds.COLUMNS[kind]), "lora")
    if column == "job_kind":
        return True
    job, key = book.states.owner(column, kind)
    return isinstance(job.inputs[key].domain, Choice)


def _marks(book: PlanBook) -> None:
    ws, grid = book.sheet(JOBS), book.grid
    page.state_marks(ws, book.styles, (FIRST, _RESULTS, grid.last, _RESULTS))
    counted = f"'Row workings'!${letters(grid.places['counted'][1])}{FIRST + 1}"
    used = f"'Row workings'!${letters(grid.places['used'][1])}{FIRST + 1}"
    state = _RESULTS + len(RESULTS) - 1
    page.formula_marks(ws, book.styles, (FIRST, state, grid.last, state), f"={used}*(1-{counted})=1", "wrong")


def _validations(book: PlanBook) -> None:
    ws, words = book.sheet(JOBS), book.template["jobs_sheet"]
    last = book.grid.last
    lists = {
        "job_kind": column_name("job_kinds", None), "base_model": "Plan_Models_List", "recipe": "Plan_Recipes_List",
        "gpu_choice": "Plan_Cards_List",
    }  # fmt: skip
    for column in COLUMNS:
        at = column_of(column)
        kind = next((kind for kind in kinds.KINDS if column in kinds.COLUMNS[kind]), "lora")
        label, right = (
            book.states.label(column, kind),
            book.states.right(column, kind) if column != "team" else words["team_right"],
        )
        said = prompt(book, label, words["help"].get(column) or _help(book, column, kind), right)
        if column in ("name", "team"):
            rule: dict[str, Any] = {"validate": "length", "criteria": "<=", "value": words["longest"]}
        elif column in lists:
            rule = {"validate": "list", "source": f"={lists[column]}"}
        else:
            job, key = book.states.owner(column, kind)
            domain: Any = job.inputs[key].domain
            if isinstance(domain, Choice):
                rule = {"validate": "list", "source": f"={column_name(domain.table, None)}"}
            else:
                number = "integer" if isinstance(domain, Whole) else "decimal"
                rule = {"validate": number, "criteria": "between", "minimum": domain.low, "maximum": domain.high}
        ws.data_validation(FIRST, at, last, at, {**said, **rule, "ignore_blank": True})


def _help(book: PlanBook, column: str, kind: str) -> str:
    job, key = book.states.owner(column, kind)
    return job.inputs[key].help


def _strip(book: PlanBook, last: int) -> None:
    words, totals = book.template["jobs_sheet"], book.totals
    tiles = words["tiles"]
    failed = "Settings_Faults+Checks_Failed>0"

    def shown(name: str, value: Any) -> Raw:
        return Raw(f'=IF({failed},"–",{name})', "–" if book.faults else value)

    currency = Raw("=Currency_Choice_In_Force", book.opened["currency_choice"])
    left = totals["not_counted"]
    told = (
        f"=IF(Settings_Faults>0,{quoted(words['settings_wrong'])},IF(Checks_Failed>0,{quoted(words['checks_failed'])},"
        f"FIXED(Plan_Jobs_Counted,0)&{quoted(words['told'])}&FIXED(Plan_Total_Spend,0)"
        '&" "&Currency_Choice_In_Force&Plan_Left_Out_Told))'
    )
    spend = f"{_fixed(totals['spend'])} {book.opened['currency_choice']}"
    value = f"{totals['counted']:,}{words['told']}{spend}{book.left_out_told}"
    value = words["settings_wrong"] if book.faults else value
    page.strip(
        book.sheet(JOBS), book.styles, last_column=last, title=words["title"], sentence=Raw(told, value),
        stamp=book.stamp, stamp_column=last,
        put=book.putter(book.sheet(JOBS)),
        tiles=[
            Tile(1, 1, tiles["spend"], shown("Plan_Total_Spend", totals["spend"]), currency, "tile_amount"),
            Tile(2, 3, tiles["counted"],
                 shown("Plan_Jobs_Counted", totals["counted"]), tiles["counted_note"], "tile_count"),
            Tile(4, 4, tiles["left"], Raw("=Plan_Not_Counted", left), tiles["left_note"], "tile_count"),
            Tile(5, 7, tiles["hours"], shown("Plan_Total_Hours", totals["hours"]), tiles["hours_note"], "tile_amount"),
            Tile(8, 9, tiles["peak"], shown("Plan_Peak_Cards", totals["peak"]), tiles["peak_note"], "tile_count"),
            Tile(10, 10, tiles["unpriced"],
                 Raw("=Plan_Without_Price", totals["unpriced"]), tiles["unpriced_note"], "tile_count"),
        ],
    )  # fmt: skip


def _fixed(value: float) -> str:
    from ...formula.primitives import fixed

    return str(fixed(value, 0))

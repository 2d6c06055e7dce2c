"""Summary: one page for a decision: what is bought and rented, money by month, largest jobs, what is not counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.primitives import fixed
from .. import charts, page
from ..book import Raw, told
from ..page import Tile
from ..scenarios import letters
from ..words import quoted
from . import legend
from .book import CARD_COUNT, FLEET, MONTHS, SUMMARY
from .fleet import FIRST as FLEET_FIRST
from .fleet import SHOWN
from .legend import Key
from .months import _FIRST as MONTH_FIRST
from .months import _TOTAL as MONTH_TOTAL
from .months import CHART_ROW, TEAM_ROW, TITLE_COLUMN, needed_cards, order_cell, series, series_names

if TYPE_CHECKING:
    from .book import PlanBook

_TOP, _LEFT_OUT, _CARDS, _CHART_ROWS = 6, 5, 6, 10
_LEGEND = ((0, 1), (2, 3), (5, 6))  # columns of marks and names, entries side by side
_FAILED = "Settings_Faults+Checks_Failed>0"


def write(book: PlanBook) -> None:
    """The sheet."""
    ws, styles, words, look = book.sheet(SUMMARY), book.styles, book.template["summary_sheet"], book.look
    put, rows = book.putter(ws), look["rows"]
    last = page.set_page(ws, look, kind="Plan summary", file_and_version=book.footer, rows_repeated=None, freeze=(4, 0))
    currency = Raw("=Currency_Choice_In_Force", book.opened["currency_choice"])
    found, fleet = book.totals, book.fleet_sums

    def number(name: str, value: float) -> Raw:
        return Raw(f"=FIXED({name},0)", fixed(value, 0))

    spend = told(words["sentence"], spend=number("Plan_Total_Spend", found["spend"]), currency=currency,
                 jobs=number("Plan_Jobs_Counted", found["counted"]),
                 hours=number("Plan_Total_Hours", found["hours"]))  # fmt: skip
    bought = told(words["bought"], bought=number("Fleet_Total_Cards_Bought", fleet["cards_bought"]),
                  spares=number("Fleet_Total_Spares_Bought", fleet["spares_bought"]), currency=currency,
                  price=number("Fleet_Total_Fleet_Purchase", fleet["fleet_purchase"]),
                  saves=number("Fleet_Total_Buying_Saves", fleet["buying_saves"]))  # fmt: skip
    none = words["none_bought"]
    second = Raw(
        f"=IF(Fleet_Total_Cards_Bought=0,{quoted(none)},{bought.inner})",
        bought.value if fleet["cards_bought"] else none,
    )
    guard, wrong = quoted(words["wrong"]), book.faults > 0
    said, also = (words["wrong"], "") if wrong else (spend.value, second.value)
    contents = (
        (words["title"], "title"), (Raw(f"=IF({_FAILED},{guard},{spend.inner})", said), "sentence"),
        (Raw(f'=IF({_FAILED},"",{second.inner})', also), "sentence"), ("", "strip_edge"),
    )  # fmt: skip
    for row, (content, style) in enumerate(contents):
        page.fill_row(ws, row, 0, last, styles["strip" if content else style], rows[style])
        put(row, 1, content, styles[style])
    ws.set_row(4, rows["space"])

    def shown(name: str, value: Any) -> Raw:
        return Raw(f'=IF({_FAILED},"–",{name})', "–" if wrong else value)

    tiles = words["tiles"]
    page.tile_row(
        ws, styles, 5,
        [
            Tile(1, 1, tiles["spend"], shown("Plan_Total_Spend", found["spend"]), currency, "tile_amount"),
            Tile(2, 3, tiles["purchase"],
                 shown("Fleet_Total_Fleet_Purchase", fleet["fleet_purchase"]), currency, "tile_amount"),
            Tile(4, 5, tiles["peak"], shown("Plan_Peak_Cards", found["peak"]), tiles["peak_note"], "tile_count"),
            Tile(6, 6, tiles["left"], Raw("=Plan_Not_Counted", found["not_counted"]), tiles["left_note"], "tile_count"),
        ],
        put,
    )  # fmt: skip
    for row, height in ((5, "tile_label"), (6, "tile_value"), (7, "tile_note")):
        ws.set_row(row, rows[height])
    row = _cards(book, 8, last)
    row = _chart(book, row, last)
    row = _top(book, row, last)
    row = _left_out(book, row, last)
    row = _section(book, row, last, words["assumptions"])
    for line in words["assumption_lines"]:
        ws.set_row(row, rows["summary"])
        put(row, 1, line, styles["small"])
        row += 1
    made = book.provenance
    ws.set_row(row, rows["summary"])
    put(row, 1, f"{made.program}, {made.data}; {words['rate']}", styles["help"])
    page.print_area(ws, row, last)


def _section(book: PlanBook, row: int, last: int, name: str, note: str | None = None) -> int:
    return page.section(
        book.sheet(SUMMARY), book.styles, row, last_column=last, name=name, put=book.putter(book.sheet(SUMMARY)),
        note=note, note_column=3, space_below=False, height="summary_section",
    )  # fmt: skip


def _line(book: PlanBook, row: int, cells: list[tuple[int, Any, str]], height: str = "summary") -> None:
    ws, styles = book.sheet(SUMMARY), book.styles
    ws.set_row(row, book.look["rows"][height])
    page.fill_row(ws, row, 1, 6, styles["r_label"], book.look["rows"][height])
    for column, content, style in cells:
        form = styles[style] if style.startswith("th") else styles.variant(style, size=10)
        book.put(ws, row, column, content, form)


def _cards(book: PlanBook, row: int, last: int) -> int:
    """Cards in the order of their hours."""
    words = book.template["summary_sheet"]
    row = _section(book, row, last, words["cards"], words["cards_note"])
    heads = words["card_columns"]
    _line(book, row, [(at, text, "th" if at == 1 else "th_r") for at, text in enumerate(heads, 1)], "unit")
    columns = ("cards_bought", "spares_bought", "cards_rented", "floor_use", "break_even_utilisation")
    used = needed_cards(book)
    for place in range(_CARDS):
        row += 1
        at = used[place] if place < len(used) else None
        position = page.cell(row, 0, column_fixed=True)
        content = Raw(f"={order_cell(place)}", at + 1 if at is not None else 0)
        book.put(book.sheet(SUMMARY), row, 0, content, book.styles.variant("r_no", colour="white"))
        name = book.card_rows[at]["name"] if at is not None else ""
        cells: list[tuple[int, Any, str]] = [
            (1, Raw(f'=IF({position}=0,"",INDEX(Plan_Cards_List,MAX(1,{position})))', name), "r_label")
        ]
        for column, key in enumerate(columns, 2):
            letter = letters(2 + SHOWN.index(key))
            area = f"'{FLEET}'!${letter}${FLEET_FIRST + 1}:${letter}${FLEET_FIRST + CARD_COUNT}"
            value = book.fleet_values[at][key] if at is not None else ""
            style = "r_share" if key in ("floor_use", "break_even_utilisation") else "r_calc0"
            cells.append((column, Raw(f'=IF({position}=0,"",INDEX({area},MAX(1,{position})))', value), style))
        _line(book, row, cells)
    return row + 1


def _chart(book: PlanBook, row: int, last: int) -> int:
    """Money by month."""
    ws, look, words = book.sheet(SUMMARY), book.look, book.template["months_sheet"]["charts"]["spend"]
    chart = charts.by_month(
        book.workbook, look, title=[MONTHS, CHART_ROW, TITLE_COLUMN], y_title=words["y"],
        categories=[MONTHS, TEAM_ROW - 1, MONTH_FIRST, TEAM_ROW - 1, MONTH_TOTAL - 1],
        parts=series("spend"), stacked=True,
        layout="by_month_summary",
    )  # fmt: skip
    width, height = look["charts"]["by_month_summary"]["size"]
    chart.set_size({"width": round(width / 2.54 * 96), "height": round(height / 2.54 * 96)})
    ws.set_row(row, look["rows"]["space"])
    ws.insert_chart(row + 1, 1, chart, {"description": words["alt"], "object_position": 2})
    for at in range(1, _CHART_ROWS + 1):
        ws.set_row(row + at, look["rows"]["summary_chart"])
    row += _CHART_ROWS + 1
    names = series_names(book, "spend")
    places = [divmod(place, len(_LEGEND)) for place in range(len(names))]
    legend.write(book, SUMMARY, names, [Key(row + line, *_LEGEND[along]) for line, along in places])
    for line in range(places[-1][0] + 1):
        ws.set_row(row + line, look["rows"]["summary"])
    return row + places[-1][0] + 1


def _top(book: PlanBook, row: int, last: int) -> int:
    """The jobs with most money."""
    words, grid = book.template["summary_sheet"], book.grid
    row = _section(book, row, last, words["top"])
    _line(
        book,
        row,
        [(at, text, "th" if at == 1 else "th_r") for at, text in enumerate(words["top_columns"], 1) if text],
        "unit",
    )
    ranks = grid.area("rank")
    ordered = sorted((each for each in book.row_results if each["rank"]), key=lambda each: each["rank"])
    shown = (("typed.name", 1, "r_label"), ("team", 2, "r_text_r"), ("card.gpu_count", 3, "r_calc0"),
             ("taken.occupied_hours", 4, "r_calc1"), ("row.run_cost", 5, "r_calc0"),
             ("spend", 6, "r_calc0"))  # fmt: skip
    for place in range(_TOP):
        row += 1
        here = page.cell(row, 0, column_fixed=True)
        book.put(book.sheet(SUMMARY), row, 0, place + 1, book.styles.variant("r_no", colour="white"))
        values = ordered[place] if place < len(ordered) else None
        cells = []
        for key, column, style in shown:
            formula = f'=IF({here}>MAX({ranks}),"",INDEX({grid.area(key)},MATCH({here},{ranks},0)))'
            cells.append((column, Raw(formula, values[key] if values else ""), style))
        _line(book, row, cells)
    return row + 1


def _left_out(book: PlanBook, row: int, last: int) -> int:
    """The first rows that are not counted, and why."""
    words, grid = book.template["summary_sheet"], book.grid
    row = _section(book, row, last, words["left_out"]) - 1
    numbers = grid.area("left_no")
    left = [each for each in book.row_results if each["used"] and not each["counted"]]
    for place in range(_LEFT_OUT):
        row += 1
        here = page.cell(row, 0, column_fixed=True)
        book.put(book.sheet(SUMMARY), row, 0, place + 1, book.styles.variant("r_no", colour="white"))
        cells: list[tuple[int, Any, str]] = []
        for key, column in (("typed.name", 1), ("state", 2)):
            formula = f'=IF({here}>MAX({numbers}),"",INDEX({grid.area(key)},MATCH({here},{numbers},0)))'
            value = left[place][key] if place < len(left) else ""
            if key == "typed.name" and place == 0:
                none = quoted(words["none_left_out"])
                formula = f"=IF(MAX({numbers})=0,{none},INDEX({grid.area(key)},MATCH({here},{numbers},0)))"
                value = value if left else words["none_left_out"]
            cells.append((column, Raw(formula, value), "r_label"))
        _line(book, row, cells)
    return row + 1

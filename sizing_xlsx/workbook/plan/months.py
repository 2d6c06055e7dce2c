"""Months: money by team, card hours and cards at once by card, month by month; the charts of the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.engine import value_of
from ...formula.render import sheet_formula
from .. import charts, page
from ..book import Raw
from ..scenarios import letters
from ..words import quoted
from . import legend
from .book import CARD_COUNT, MONTH_COUNT, MONTHS, TEAM_COUNT
from .legend import NO_NAME, Key, unnamed
from .lists import month_cell

if TYPE_CHECKING:
    from .book import PlanBook

_LABEL, _FIRST, _TOTAL = 1, 2, 2 + MONTH_COUNT
TEAM_ROW = 4  # first row of the teams, from 0
OTHER_ROW = TEAM_ROW + TEAM_COUNT
HOURS_ROW = OTHER_ROW + 5
PEAK_ROW = HOURS_ROW + CARD_COUNT + 4
CHART_ROW = PEAK_ROW + CARD_COUNT + 3
_CHART_ROWS, _LEGEND_ROW = 15, 13  # of each chart with its legend, and where that begins
_LEGEND_COLUMNS = 4  # entries of a legend side by side
TITLE_COLUMN = _TOTAL + 2  # of what the charts' titles are linked to, beside the page
FLOOR_ROW = CHART_ROW + 3 * _CHART_ROWS + 3
AVERAGE_ROW = FLOOR_ROW + CARD_COUNT + 3
SHOWN_CARDS = 6  # of a chart, in the order of the cards that are needed; all others are one more
DATA_ROWS = {"hours": AVERAGE_ROW + CARD_COUNT + 3, "peak": AVERAGE_ROW + CARD_COUNT + SHOWN_CARDS + 7}


def cell(row: int, month: int) -> str:
    """A cell of a month's column, absolutely."""
    return f"'{MONTHS}'!${letters(_FIRST + month)}${row + 1}"


def span(row: int) -> str:
    """A row's cells of all months."""
    return f"'{MONTHS}'!${letters(_FIRST)}${row + 1}:${letters(_TOTAL - 1)}${row + 1}"


def total(row: int) -> str:
    """A row's sum over the months."""
    return f"'{MONTHS}'!${letters(_TOTAL)}${row + 1}"


def write(book: PlanBook) -> None:
    """Three tables, their sums, the charts, and below them what the fleet rests on."""
    ws, words = book.sheet(MONTHS), book.template["months_sheet"]
    last = page.plain_sheet(book, MONTHS, title=words["title"], sentence=words["sentence"], freeze=(2, 2))
    _teams(book, last, words)
    _cards(book, last, words)
    for first, count in ((TEAM_ROW, TEAM_COUNT + 1), (HOURS_ROW, CARD_COUNT), (PEAK_ROW, CARD_COUNT)):
        area = (first, 0, first + count - 1, _TOTAL)
        page.formula_marks(ws, book.styles, area, f"={unnamed(f'$B{first + 1}')}", "hidden")
    _workings(book, last, words)
    _chart_data(book, last, words)
    _charts(book, words)
    write_order(book)
    ws.set_row(CHART_ROW - 1, book.look["rows"]["section"])
    page.print_area(ws, CHART_ROW + 3 * _CHART_ROWS, last, [CHART_ROW])


def _heads(
    book: PlanBook, row: int, last: int, name: str, note: str, first: str, unit: Any, total_head: str = ""
) -> None:
    ws, styles = book.sheet(MONTHS), book.styles
    put = book.putter(ws)
    page.section(ws, styles, row, last_column=last, name=name, put=put, note=note, note_column=4, space_below=False)
    day = styles.variant("th_r", format="month")
    put(row + 1, _LABEL, first, styles["th"])
    for month in range(MONTH_COUNT):
        put(row + 1, _FIRST + month, Raw(f"={month_cell('month_day', month)}", book.months[month]), day)
    put(row + 1, _TOTAL, total_head or unit, styles["th_r"])


def _sum_row(book: PlanBook, row: int, first: int, end: int, label: str, sums: list[float]) -> None:
    put, styles = book.putter(book.sheet(MONTHS)), book.styles
    style = styles.variant("t_calc1", format="n0")
    put(row, _LABEL, label, styles["t_label"])
    for month in range(MONTH_COUNT):
        column = letters(_FIRST + month)
        put(row, _FIRST + month, Raw(f"=SUM(${column}${first + 1}:${column}${end + 1})", sums[month]), style)
    row_cells = f"${letters(_FIRST)}${row + 1}:${letters(_TOTAL - 1)}${row + 1}"
    put(row, _TOTAL, Raw(f"=SUM({row_cells})", sum(sums)), style)


def _across(row: int) -> str:
    return f"=SUM(${letters(_FIRST)}${row + 1}:${letters(_TOTAL - 1)}${row + 1})"


def _teams(book: PlanBook, last: int, words: Any) -> None:
    put, styles, grid = book.putter(book.sheet(MONTHS)), book.styles, book.grid
    currency = Raw("=Currency_Choice_In_Force", book.opened["currency_choice"])
    _heads(book, TEAM_ROW - 2, last, words["spend"], words["spend_note"], words["team"], currency)
    rows = book.row_results
    teams = book.teams
    numbers, names = grid.area("team_no"), grid.area("team")
    money = [[row[f"m{month}.month_spend"] for row in rows] for month in range(MONTH_COUNT)]
    sums = [sum(each) for each in money]
    by_team = []
    for at in range(TEAM_COUNT):
        row, number = TEAM_ROW + at, TEAM_ROW + at + 1
        name = teams[at] if at < len(teams) else NO_NAME
        position = f"$A${number}"
        put(row, 0, at + 1, styles["r_no"])
        label = f'=IF({position}>MAX({numbers}),"{NO_NAME}",INDEX({names},MATCH({position},{numbers},0)))'
        put(row, _LABEL, Raw(label, name), styles["r_text"])
        found = []
        for month in range(MONTH_COUNT):
            area = grid.area(f"m{month}.month_spend")
            value = sum(
                row_money for row_money, each in zip(money[month], rows, strict=True)
                if str(each["team"]).casefold() == name.casefold()
            )  # fmt: skip
            found.append(value)
            put(
                row,
                _FIRST + month,
                Raw(f"=IF({unnamed(f'$B${number}')},0,SUMPRODUCT(({names}=$B${number})*{area}))", value),
                styles["r_calc0"],
            )
        by_team.append(found)
        put(row, _TOTAL, Raw(_across(row), sum(found)), styles["r_calc0"])
    others = [sums[month] - sum(team[month] for team in by_team) for month in range(MONTH_COUNT)]
    beyond = [0.0 if len(teams) <= TEAM_COUNT else other for other in others]
    label = f'=IF(MAX({numbers})>$A${OTHER_ROW},{quoted(words["other_teams"])},"{NO_NAME}")'
    put(OTHER_ROW, _LABEL, Raw(label, words["other_teams"] if len(teams) > TEAM_COUNT else NO_NAME), styles["r_text"])
    for month in range(MONTH_COUNT):
        area, column = grid.area(f"m{month}.month_spend"), letters(_FIRST + month)
        listed = f"${column}${TEAM_ROW + 1}:${column}${OTHER_ROW}"
        formula = f"=IF(MAX({numbers})>$A${OTHER_ROW},SUM({area})-SUM({listed}),0)"
        put(OTHER_ROW, _FIRST + month, Raw(formula, beyond[month]), styles["r_calc0"])
    put(OTHER_ROW, _TOTAL, Raw(_across(OTHER_ROW), sum(beyond)), styles["r_calc0"])
    whole = [sum(team[month] for team in by_team) + beyond[month] for month in range(MONTH_COUNT)]
    _sum_row(book, OTHER_ROW + 1, TEAM_ROW, OTHER_ROW, words["all"], whole)
    book.spend_by_month = whole


def _cards(book: PlanBook, last: int, words: Any) -> None:
    put, styles, grid = book.putter(book.sheet(MONTHS)), book.styles, book.grid
    load, rows = book.graphs.load, book.row_results
    _heads(book, HOURS_ROW - 2, last, words["hours"], words["hours_note"], words["card"], words["hours_unit"])
    _heads(book, PEAK_ROW - 2, last, words["peak"], words["rule"], words["card"], words["peak_unit"])
    on = grid.area("card.gpu_choice")
    book.loads = []
    for at in range(CARD_COUNT):
        name = book.card_rows[at]["name"]
        listed = f"INDEX(Plan_Cards_List,$A${HOURS_ROW + at + 1})"
        found: list[dict[str, Any]] = []
        for row in (HOURS_ROW + at, PEAK_ROW + at):
            put(row, 0, at + 1, styles["r_no"])
            put(row, _LABEL, Raw(f"={listed}", name), styles["r_text"])
        for month in range(MONTH_COUNT):
            mine = [each for each in rows if name and each["card.gpu_choice"] == name]
            hours = sum(each[f"m{month}.month_card_hours"] for each in mine)
            largest = max((each[f"m{month}.month_cards"] for each in mine), default=0)
            area, held = grid.area(f"m{month}.month_card_hours"), grid.area(f"m{month}.month_cards")
            number = HOURS_ROW + at + 1
            put(
                HOURS_ROW + at,
                _FIRST + month,
                Raw(f'=IF($B${number}="",0,SUMPRODUCT(({on}=$B${number})*{area}))', hours),
                styles["r_calc0"],
            )
            values = load.reference({
                "card_hours": hours, "largest_need": largest, "month_day": book.months[month],
                "today_date": book.plan_days["today_date"],
            })  # fmt: skip
            found.append(values)
            here = cell(HOURS_ROW + at, month).partition("!")[2]
            cells = {"card_hours": here, "month_hours": month_cell("month_hours", month)}
            average = sheet_formula(load.trees["average_cards"], cells.__getitem__)[1:]
            most = f"SUMPRODUCT(MAX(({on}=$B${number})*{held}))"
            guard = book.constant("rounding_guard", load.constants["rounding_guard"])
            pieces = {"average_cards": f"({average})", "largest_need": most, "rounding_guard": guard}
            formula = sheet_formula(load.trees["cards_at_once"], pieces.__getitem__)
            put(PEAK_ROW + at, _FIRST + month, Raw(formula, values["cards_at_once"]), styles["r_calc0"])
        put(
            HOURS_ROW + at,
            _TOTAL,
            Raw(_across(HOURS_ROW + at), sum(each["card_hours"] for each in found)),
            styles["r_calc0"],
        )
        peak = max(each["cards_at_once"] for each in found)
        put(PEAK_ROW + at, _TOTAL, Raw(_across(PEAK_ROW + at).replace("=SUM", "=MAX"), peak), styles["r_calc0"])
        book.loads.append(found)
    sums = [sum(card[month]["card_hours"] for card in book.loads) for month in range(MONTH_COUNT)]
    _sum_row(book, HOURS_ROW + CARD_COUNT, HOURS_ROW, HOURS_ROW + CARD_COUNT - 1, words["all"], sums)
    _peak_sums(book, words)


def _peak_sums(book: PlanBook, words: Any) -> None:
    """Cards of all kinds at once, month by month, and most of them."""
    put, styles = book.putter(book.sheet(MONTHS)), book.styles
    row = PEAK_ROW + CARD_COUNT
    sums = [sum(card[month]["cards_at_once"] for card in book.loads) for month in range(MONTH_COUNT)]
    _sum_row(book, row, PEAK_ROW, row - 1, words["all"], sums)
    most = _across(row).replace("=SUM", "=MAX")
    put(row, _TOTAL, Raw(most, max(sums)), styles.variant("t_calc1", format="n0"))


def _workings(book: PlanBook, last: int, words: Any) -> None:
    """Hours that the cards of the floor would do, and cards busy on average in whole months."""
    put, styles, load = book.putter(book.sheet(MONTHS)), book.styles, book.graphs.load
    _heads(book, FLOOR_ROW - 2, last, words["floor"], words["floor_note"], words["card"], words["hours_unit"])
    _heads(book, AVERAGE_ROW - 2, last, words["average"], words["average_note"], words["card"], words["least"])
    trees = {key: load.trees[key] for key in ("average_cards", "whole_month_cards", "floor_month_hours")}
    for at in range(CARD_COUNT):
        from .fleet import floor_cell

        name = book.card_rows[at]["name"]
        for row in (FLOOR_ROW + at, AVERAGE_ROW + at):
            put(row, _LABEL, Raw(f"=$B${HOURS_ROW + at + 1}", name), styles["r_text"])
        averages, floors = [], []
        for month in range(MONTH_COUNT):
            values = book.loads[at][month]
            cells = {
                "card_hours": cell(HOURS_ROW + at, month).partition("!")[2],
                "month_hours": month_cell("month_hours", month),
                "month_day": month_cell("month_day", month),
                "today_date": "Today_Date_In_Force",
                "floor_cards": floor_cell(at),
            }
            cells["average_cards"] = "(" + sheet_formula(trees["average_cards"], cells.__getitem__)[1:] + ")"
            averages.append(values["whole_month_cards"])
            formula = sheet_formula(trees["whole_month_cards"], cells.__getitem__)
            put(AVERAGE_ROW + at, _FIRST + month, Raw(formula, averages[-1]), styles["r_calc2"])
        known = [each for each in averages if not isinstance(each, str)]
        least = min(known, default=0)
        put(AVERAGE_ROW + at, _TOTAL, Raw(_across(AVERAGE_ROW + at).replace("=SUM", "=MIN"), least), styles["r_calc2"])
        book.floors[at]["least_average"] = least
        floor = book.graphs.fleet.reference({"least_average": least}, ("floor_cards",))["floor_cards"]
        for month in range(MONTH_COUNT):
            values = {**book.loads[at][month], "floor_cards": floor}
            floors.append(value_of(trees["floor_month_hours"], values, load.tables))
            cells = {
                "card_hours": cell(HOURS_ROW + at, month).partition("!")[2],
                "month_hours": month_cell("month_hours", month), "floor_cards": floor_cell(at),
            }  # fmt: skip
            formula = sheet_formula(trees["floor_month_hours"], cells.__getitem__)
            put(FLOOR_ROW + at, _FIRST + month, Raw(formula, floors[-1]), styles["r_calc0"])
        put(FLOOR_ROW + at, _TOTAL, Raw(_across(FLOOR_ROW + at), sum(floors)), styles["r_calc0"])
        book.floors[at]["floor_card_hours"] = sum(floors)
        book.floors[at]["most_at_once"] = max(each["cards_at_once"] for each in book.loads[at])


def order_cell(place: int) -> str:
    """The row of the card that comes at a place among those that are needed; 0 where no more are."""
    return f"'{MONTHS}'!${letters(_TOTAL + 3)}${HOURS_ROW + place + 1}"


def write_order(book: PlanBook) -> None:
    """Beside the table of hours: how many cards are needed so far, and which comes at each place."""
    put, styles = book.putter(book.sheet(MONTHS)), book.styles
    used = needed_cards(book)
    so_far, column = 0, letters(_TOTAL + 2)
    for at in range(CARD_COUNT):
        row = HOURS_ROW + at
        so_far += int(at in used)
        put(row, _TOTAL + 2, Raw(f"=({total(PEAK_ROW + at)}>0)*1+N(${column}${row})", so_far), styles["r_calc0"])
        area, place = f"${column}${HOURS_ROW + 1}:${column}${HOURS_ROW + CARD_COUNT}", f"$A${row + 1}"
        content = Raw(f"=IF({place}>MAX({area}),0,MATCH({place},{area},0))", used[at] + 1 if at < len(used) else 0)
        put(row, _TOTAL + 3, content, styles["r_calc0"])


def needed_cards(book: PlanBook) -> list[int]:
    """Rows, from 0, of the cards that are needed in some month."""
    return [at for at, months in enumerate(book.loads) if any(month["cards_at_once"] for month in months)]


def _chart_data(book: PlanBook, last: int, words: Any) -> None:
    """Rows of the charts by card: the first cards that are needed, then all others together."""
    put, styles, used = book.putter(book.sheet(MONTHS)), book.styles, needed_cards(book)
    for key, source, figure in (("hours", HOURS_ROW, "card_hours"), ("peak", PEAK_ROW, "cards_at_once")):
        first = DATA_ROWS[key]
        _heads(book, first - 2, last, words["charts"][key]["data"], words["data_note"], words["card"], "")
        for place in range(SHOWN_CARDS):
            row, order = first + place, order_cell(place).partition("!")[2]
            at = used[place] if place < len(used) else None
            name = f'=IF({order}=0,"{NO_NAME}",INDEX(Plan_Cards_List,{order}))'
            put(row, _LABEL, Raw(name, NO_NAME if at is None else book.card_rows[at]["name"]), styles["r_text"])
            for month in range(MONTH_COUNT):
                column = letters(_FIRST + month)
                area = f"${column}${source + 1}:${column}${source + CARD_COUNT}"
                value = 0 if at is None else book.loads[at][month][figure]
                put(row, _FIRST + month, Raw(f"=IF({order}=0,0,INDEX({area},{order}))", value), styles["r_calc0"])
        row, more = first + SHOWN_CARDS, len(used) > SHOWN_CARDS
        order = order_cell(SHOWN_CARDS).partition("!")[2]
        label = f'=IF({order}=0,"{NO_NAME}",{quoted(words["other_cards"])})'
        put(row, _LABEL, Raw(label, words["other_cards"] if more else NO_NAME), styles["r_text"])
        for month in range(MONTH_COUNT):
            column = letters(_FIRST + month)
            area = f"${column}${source + 1}:${column}${source + CARD_COUNT}"
            listed = f"${column}${first + 1}:${column}${first + SHOWN_CARDS}"
            rest = sum(book.loads[at][month][figure] for at in used[SHOWN_CARDS:])
            put(row, _FIRST + month, Raw(f"=IF({order}=0,0,SUM({area})-SUM({listed}))", rest), styles["r_calc0"])


def _series_rows(key: str) -> range:
    first, count = (TEAM_ROW, TEAM_COUNT + 1) if key == "spend" else (DATA_ROWS[key], SHOWN_CARDS + 1)
    return range(first, first + count)


def series(key: str) -> list[charts.Bars]:
    """The series of a chart: its rows, those that hold nothing without a name."""
    return [charts.Bars([MONTHS, row, _LABEL], [MONTHS, row, _FIRST, row, _TOTAL - 1]) for row in _series_rows(key)]


def series_names(book: PlanBook, key: str) -> list[tuple[int, str]]:
    """Row and name of each series of a chart, as the workbook opens."""
    words, used = book.template["months_sheet"], needed_cards(book)
    names = book.teams if key == "spend" else [book.card_rows[at]["name"] for at in used]
    rows, others = _series_rows(key), words["other_teams" if key == "spend" else "other_cards"]
    shown = len(rows) - 1
    found = [*names[:shown], *[NO_NAME] * (shown - len(names)), others if len(names) > shown else NO_NAME]
    return list(zip(rows, found, strict=True))


def _charts(book: PlanBook, words: Any) -> None:
    """Money stacked by team, card hours stacked by card, cards at once by card."""
    ws, look = book.sheet(MONTHS), book.look
    categories = [MONTHS, TEAM_ROW - 1, _FIRST, TEAM_ROW - 1, _TOTAL - 1]
    for at, key in enumerate(("spend", "hours", "peak")):
        spec = words["charts"][key]
        title_row = CHART_ROW + at * _CHART_ROWS
        book.put(ws, title_row, TITLE_COLUMN, book.chart_title(key), book.styles["help"])
        chart = charts.by_month(
            book.workbook, look, title=[MONTHS, title_row, TITLE_COLUMN], y_title=spec["y"], categories=categories,
            parts=series(key), stacked=key != "peak",
        )  # fmt: skip
        width, height = look["charts"]["by_month"]["size"]
        chart.set_size({"width": round(width / 2.54 * 96), "height": round(height / 2.54 * 96)})
        ws.insert_chart(title_row, _LABEL, chart, {"description": spec["alt"], "object_position": 2, "y_offset": 6})
        names = series_names(book, key)
        places = [divmod(place, _LEGEND_COLUMNS) for place in range(len(names))]
        keys = [Key(title_row + _LEGEND_ROW + line, 2 + 3 * along, 3 + 3 * along) for line, along in places]
        legend.write(book, MONTHS, names, keys)

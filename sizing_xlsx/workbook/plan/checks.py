"""Checks of a plan: all sums are the same money and the same hours; and the totals that other sheets read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import page
from ..book import FAILED, Raw
from ..words import quoted
from .book import CARD_COUNT, MONTH_COUNT, TEAM_COUNT
from .months import HOURS_ROW, OTHER_ROW, PEAK_ROW, span, total

if TYPE_CHECKING:
    from .book import PlanBook

TITLE = "Checks"


def totals(book: PlanBook) -> None:
    """What the totals are when the workbook opens."""
    rows = book.row_results
    used = [row for row in rows if row["used"]]
    counted = [row for row in used if row["counted"]]
    load, cards = book.graphs.load, [card["name"] for card in book.card_rows if card["name"]]
    peak = 0
    for month in range(MONTH_COUNT):
        at_once = 0
        for card in cards:
            mine = [row for row in rows if row["card.gpu_choice"] == card]
            values = load.reference({
                "card_hours": sum(row[f"m{month}.month_card_hours"] for row in mine),
                "largest_need": max((row[f"m{month}.month_cards"] for row in mine), default=0),
                "month_day": book.months[month],
            }, ("cards_at_once",))  # fmt: skip
            at_once += values["cards_at_once"]
        peak = max(peak, at_once)
    left = len(used) - len(counted)
    book.totals = {
        "spend": sum(row["spend"] for row in rows), "hours": sum(row["hours"] for row in rows), "used": len(used),
        "counted": len(counted), "not_counted": left, "peak": peak,
        "unpriced": sum(1 - row["taken.price_known"] for row in counted),
    }  # fmt: skip
    words = book.template["jobs_sheet"]
    book.left_out_told = words["none_left"] if not left else words["left_out"].format(count=left)
    book.teams = list(dict.fromkeys(row["team"] for row in rows if row["team_first"]))


def write(book: PlanBook) -> None:
    """The totals with their names, then each check: 1 where it fails."""
    ws, styles, words, grid = book.sheet(TITLE), book.styles, book.template["checks_sheet"], book.grid
    put, found, jobs = book.putter(ws), book.totals, book.template["jobs_sheet"]
    last = page.plain_sheet(book, TITLE, title=words["title"], sentence=words["sentence"], kind="Plan workings")
    row = page.section(ws, styles, 2, last_column=last, name=words["totals"], put=put, space_below=False)
    used, counted = grid.area("used"), grid.area("counted")
    number = styles.variant("r_calc0", format="n2")
    left_out = jobs["left_out"].partition("{count}")
    lines: tuple[tuple[str, str, str, Any], ...] = (
        ("spend", "Plan_Total_Spend", f"={total(OTHER_ROW + 1)}", found["spend"]),
        ("hours", "Plan_Total_Hours", f"={total(HOURS_ROW + CARD_COUNT)}", found["hours"]),
        ("used", "Plan_Jobs_Used", f"=SUM({used})", found["used"]),
        ("counted", "Plan_Jobs_Counted", f"=SUM({counted})", found["counted"]),
        ("not_counted", "Plan_Not_Counted", "=Plan_Jobs_Used-Plan_Jobs_Counted", found["not_counted"]),
        (
            "unpriced", "Plan_Without_Price", f"=SUMPRODUCT({counted}*(1-{grid.area('taken.price_known')}))",
            found["unpriced"],
        ),
        ("peak", "Plan_Peak_Cards", "=MAX(" + span(PEAK_ROW + CARD_COUNT) + ")", found["peak"]),
        (
            "told", "Plan_Left_Out_Told",
            f"=IF(Plan_Not_Counted=0,{quoted(jobs['none_left'])},{quoted(left_out[0])}&Plan_Not_Counted&{quoted(left_out[2])})",
            book.left_out_told,
        ),
    )  # fmt: skip
    for key, name, formula, value in lines:
        put(row, 1, words["lines"][key], styles["r_label"])
        put(row, 2, Raw(formula, value), styles["r_text_r"] if isinstance(value, str) else number)
        book.define(name, TITLE, row, 2)
        row += 1
    row = page.section(ws, styles, row, last_column=last, name=words["checks"], put=put, space_below=False)
    first = row
    for key, a, b in (
        ("months", f"SUM({span(OTHER_ROW + 1)})", f"SUM({grid.area('spend')})"),
        (
            "teams",
            "+".join(total(TEAM_ROW_AT) for TEAM_ROW_AT in range(OTHER_ROW - TEAM_COUNT, OTHER_ROW + 1)),
            f"SUM({grid.area('spend')})",
        ),
        ("hours", "Plan_Total_Hours", f"SUM({grid.area('hours')})"),
    ):
        put(row, 1, words["lines"][key], styles["r_label"])
        put(row, 2, Raw(f"={a}", found["hours" if key == "hours" else "spend"]), number)
        put(row, 3, Raw(f"={b}", found["hours" if key == "hours" else "spend"]), number)
        put(row, 4, Raw(f"=IF(ROUND($C{row + 1}-$D{row + 1},2)=0,0,1)", 0), styles["r_calc0"])
        row += 1
    put(row, 1, words["failed"], styles["t_label"])
    put(row, 4, Raw(f"=SUM($E${first + 1}:$E${row})", 0), styles.variant("t_calc1", format="n0"))
    book.define(FAILED, TITLE, row, 4)
    page.print_area(ws, row, last)

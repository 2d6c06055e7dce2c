"""Chart data of serving: what a card holds by part, and how many users fit at each context.

The points come from What-if: the job of Sizing with requests of one length, at shares of the longest context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import charts, page
from ..book import Raw
from ..words import filled, sentence

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

    from ..book import Book

TITLE = "Chart data"
POINTS = 12
TITLES = {"card_title": 3, "users_title": 4, "pool_title": 5}  # sentence -> its row, from 0
_PARTS, _USERS, RUNS = 8, 14, 32  # rows of the headers, from 0; RUNS: of what Validation draws
_ONE_CLASS = {"short_share": 0, "usual_share": 1, "long_share": 0, "usual_output_tokens": 1}


def point(longest: float, at: int) -> int:
    """The prompt at a point of the axis, for a context that ends at a share of the longest: whole, at least 1."""
    return max(1, int(longest * at / POINTS) - 1)


def plan(book: Book) -> None:
    """Add the points to What-if."""
    words, jobs, longest = book.template["served"]["charts"], book.what_if, book.values["maximum_length"]
    for at in range(1, POINTS + 1):
        prompt = Raw(f"='{TITLE}'!$C${_USERS + at + 1}", point(longest, at))
        jobs.add(filled(words["point"], number=str(at)), {**_ONE_CLASS, "usual_prompt_tokens": prompt})


def write(book: Book) -> None:
    """The figures the charts draw."""
    ws, styles, sym, jobs = book.sheet(TITLE), book.styles, book.sym, book.what_if
    put, words = book.putter(ws), book.template["served"]["charts"]
    last = 10
    page.plain_sheet(book, TITLE, title=words["title"], last_column=last, sentence=words["sentence"], freeze=(2, 1))
    for key, row in TITLES.items():
        put(row, 1, book.shown(sym(key), words["check"]), styles["label"])
    for column, text in enumerate((words["unit"], *words["parts"]), 1):
        put(_PARTS, column, text, styles["th" if column == 1 else "th_r"])
    bars: tuple[tuple[Any, list[Any]], ...] = (
        (words["bars"]["usable"], [None] * 4 + [sym("usable_shown_gb")]),
        (words["bars"]["needed"],
         [*(sym(key) for key in ("weights_gb", "kv_users_needed_gb", "beside_weights_gb")), None, None]),
        (words["bars"]["taken"],
         [*(sym(key) for key in ("weights_gb", "kv_users_gb", "beside_weights_gb", "kv_spare_gb")), None]),
    )  # fmt: skip
    for row, (label, cells) in enumerate(bars, _PARTS + 1):
        said = sentence(label, sym)
        put(row, 1, said if isinstance(said, str) else book.shown(said), styles["r_label"])
        for column, cell in enumerate(cells, 2):
            content = Raw("=NA()", "#N/A") if cell is None else book.guarded(cell, "NA()")
            put(row, column, content, styles["r_calc3"])
    for column, text in enumerate((words["context"], words["prompt"], *words["lines"]), 1):
        put(_USERS, column, text, styles["th_r"])
    longest = book.values["maximum_length"]
    for at in range(1, POINTS + 1):
        row = _USERS + at
        share = f"{book.cell_name('maximum_length')}*$I{row + 1}/$I${_USERS + POINTS + 1}"
        prompt = point(longest, at)
        put(row, 1, Raw(f"=$C{row + 1}+1", prompt + 1), styles["r_calc0"])
        put(row, 2, Raw(f"=MAX(1,INT({share})-1)", prompt), styles["r_calc0"])
        for column, result in ((3, "concurrency"), (4, "concurrency_by_need")):
            put(row, column, book.guarded(jobs.cell(_row(book, at), result), "NA()"), styles["r_calc0"])
        put(row, 5, book.guarded(sym("concurrent_users"), "NA()"), styles["r_calc0"])
        put(row, 8, at, styles["r_no"])
    end = _USERS + POINTS + 1
    put(end, 1, book.guarded(sym("percentile_context"), "NA()"), styles["r_calc0"])
    put(end, 6, book.guarded(sym("concurrency"), "NA()"), styles["r_calc0"])
    page.print_area(ws, RUNS + len(book.runs.rows) + 3, last, [RUNS - 1])


def _row(book: Book, at: int) -> int:
    """The row of What-if that holds a point: the first ones are the chart's."""
    label = filled(book.template["served"]["charts"]["point"], number=str(at))
    return [row[0] for row in book.what_if.rows].index(label)


def place_parts(book: Book, ws: Worksheet, row: int, layout: str = "memory_by_part") -> None:
    """Memory of a card by part, in one of its layouts in look.toml."""
    words = book.template["served"]["charts"]
    parts = [
        charts.Bars([TITLE, _PARTS, column], [TITLE, _PARTS + 1, column, _PARTS + 3, column]) for column in range(2, 7)
    ]
    chart = charts.memory_by_part(
        book.workbook, book.look, title=[TITLE, TITLES["card_title"], 1],
        categories=[TITLE, _PARTS + 1, 1, _PARTS + 3, 1], parts=parts, layout=layout,
    )  # fmt: skip
    charts.place(ws, row, 1, chart, size=book.look["charts"][layout]["size"], alt=words["parts_alt"])


def place_users(book: Book, ws: Worksheet, row: int, column: int) -> None:
    """Users at one time against the context."""
    words, first, end = book.template["served"]["charts"], _USERS + 1, _USERS + POINTS
    x = [TITLE, first, 1, end, 1]

    def line(position: int, name: str) -> charts.Points:
        return charts.Points(name, x, [TITLE, first, position, end, position])

    kept, needed, asked, job = words["lines"]
    chart = charts.users_by_context(
        book.workbook, book.look, title=[TITLE, TITLES["users_title"], 1], x_title=words["axis"],
        kept=line(3, kept), needed=line(4, needed), asked=line(5, asked),
        job=charts.Points(job, [TITLE, end + 1, 1, end + 1, 1], [TITLE, end + 1, 6, end + 1, 6]),
    )  # fmt: skip
    size = book.look["charts"]["users_by_context"]["size"]
    charts.place(ws, row, column, chart, size=size, alt=words["users_alt"])

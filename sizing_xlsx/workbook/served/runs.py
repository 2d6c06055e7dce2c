"""Validation of serving: what engines logged of themselves beside what the formulas say, computed in the row.

The inputs of each run stand on "Validation workings"; no input of Sizing is read, but the allowances on Overrides are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...formula.render import column_name, public_name
from ...presets.catalogue import SERVING_INPUTS
from .. import charts, page
from ..book import Raw
from ..jobtable import JobTable, write_job_table
from ..page import Tile
from ..runs import with_allowances
from ..words import filled, quoted, sentence
from . import chart_data

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

    from ..book import Book

TITLE, WORKINGS = "Validation", "Validation workings"
FIRST = 9  # row of the first run, from 0, on both sheets
RESULTS = (
    "weights_held", "kv_pool", "kv_pool_tokens", "kv_bytes_per_token_per_gpu", "step_activation_gb", "verdict_code",
)  # fmt: skip


class Figure(NamedTuple):
    """What is logged and calculated of a run: column of the file, term, and whether the term is divided into GiB."""

    key: str
    logged: str
    term: str
    factor: str  # constant by which the term is multiplied, "" for none
    gib: bool


FIGURES = (
    Figure("weights", "weights_gib", "weights_held", "", True),
    Figure("pool", "kv_pool_gib", "kv_pool", "", True),
    Figure("tokens", "kv_pool_tokens", "kv_pool_tokens", "", False),
    Figure("step", "step_activation_gib", "step_activation_gb", "bytes_per_gb", True),
)
# Requests shorter than any of these engines accepts: what a run tells of is no figure of its users.
_ASKED = {
    "concurrent_users": 1, "short_share": 0, "usual_share": 1, "long_share": 0, "usual_prompt_tokens": 500,
    "usual_output_tokens": 100,
}  # fmt: skip
_WORST = ("weights", "pool", "step")  # figures whose largest error the strip says
_REFUSED = 3  # the verdict's code for a run that did not start


class Runs:
    """The runs and the job table that sizes them."""

    def __init__(self, book: Book) -> None:
        job, self.words = book.job, book.template["served"]["runs"]
        self.runs: list[Mapping[str, Any]] = list(book.presets.serving_runs)
        self.rules = job.fault_rules
        self.table = JobTable(job, RESULTS, self.rules)
        self.book = book
        plain = {**with_allowances(job), **_ASKED}
        self.jobs = [
            {**plain, **{key: run[key] for key in SERVING_INPUTS if run[key] not in (None, "")}} for run in self.runs
        ]
        self.rows = [self.table.values(inputs) for inputs in self.jobs]

    def value(self, at: int, figure: Figure) -> float:
        """A calculated figure of a run, in the unit that the log has it in."""
        values = self.book.values
        value = self.rows[at][figure.term] * (values[figure.factor] if figure.factor else 1)
        return float(value / values["bytes_per_gib"] if figure.gib else value)

    def error(self, at: int, figure: Figure) -> Any:
        """Calculated over logged, less 1; the word for none where nothing was logged."""
        logged = self.runs[at][figure.logged]
        return self.value(at, figure) / logged - 1 if logged else self.words["none"]

    def worst(self, key: str) -> float:
        """The largest error of a figure among explained runs, without its sign."""
        figure = next(each for each in FIGURES if each.key == key)
        found = [self.error(at, figure) for at, run in enumerate(self.runs) if run["explained"]]
        return max((abs(error) for error in found if not isinstance(error, str)), default=0)

    def called(self) -> int:
        """How many runs the verdict called as they ended."""
        pairs = zip(self.runs, self.rows, strict=True)
        return sum(bool(run["refused"]) == (row["verdict_code"] >= _REFUSED) for run, row in pairs)

    def cell(self, at: int, key: str) -> str:
        """The cell of a figure on the workings, as the visible sheet refers to it."""
        place = page.cell(FIRST + at, 2 + self.table.column(key), row_fixed=True, column_fixed=True)
        return f"'{WORKINGS}'!{place}"

    @property
    def end(self) -> int:
        """The last row on both sheets, from 0."""
        return FIRST + len(self.runs) - 1


def plan(book: Book) -> None:
    """Size the runs and register the figures that sentences use."""
    book.runs = runs = Runs(book)
    book.external("runs_logged", "count", len(runs.runs))
    book.external("runs_explained", "count", sum(bool(run["explained"]) for run in runs.runs))
    book.external("runs_called", "count", runs.called())
    for key in _WORST:
        book.external(f"worst_{key}_error", "share", runs.worst(key))


def write(book: Book) -> None:
    """Both sheets and the chart's figures."""
    runs = book.runs
    _write_workings(book, runs)
    ws, styles, words = book.sheet(TITLE), book.styles, runs.words
    put = book.putter(ws)
    last = page.set_page(
        ws, book.look, kind="serving_runs", file_and_version=book.footer, freeze=(FIRST, 2),
        rows_repeated=(0, FIRST - 1),
    )  # fmt: skip
    _strip(book, runs, last)
    heads = words["columns"]
    ws.set_row(FIRST - 2, book.look["rows"]["unit"])
    ws.set_row(FIRST - 1, book.look["rows"]["header_two_lines"])
    page.fill_row(ws, FIRST - 2, 1, last - 1, styles["th_open"])
    for at, group in enumerate(words["groups"]):
        put(FIRST - 2, 5 + 3 * at, group, styles.variant("th_open_i", wrap=False))
    for column, head in enumerate(heads, 1):
        text = column <= 4 or column >= len(heads) - 1
        put(FIRST - 1, column, head, styles["th" if column == 1 else "th_i" if text else "th_r"])
    for at in range(len(runs.runs)):
        _row(book, runs, at)
    area = (FIRST, 5, runs.end, len(heads) - 2)
    bound = book.cell_name("large_error")
    for at in range(len(FIGURES)):
        column = 7 + 3 * at
        here = page.cell(FIRST, column)
        large = f"=IF(ISNUMBER({here}),ABS({here})>{bound},FALSE)"
        page.formula_marks(ws, styles, (FIRST, column, runs.end, column), large, "large")
    page.formula_marks(ws, styles, area, f"={page.cell(FIRST, 5)}={quoted(words['none'])}", "quiet")
    verdict, called = len(heads) - 1, page.cell(FIRST, 2 + len(runs.table.columns), column_fixed=True)
    page.formula_marks(ws, styles, (FIRST, verdict, runs.end, verdict), f"='{WORKINGS}'!{called}=0", "wrong")
    row = runs.end + 1
    for note in words["notes"]:
        put(row, 1, note, styles["help"])
        row += 1
    chart_row = row + 1
    _chart(book, runs, ws, chart_row)
    page.print_area(ws, chart_row + 22, last)


def _row(book: Book, runs: Runs, at: int) -> None:
    ws, styles, words, run = book.sheet(TITLE), book.styles, runs.words, runs.runs[at]
    put, row, gib = book.putter(ws), FIRST + at, book.cell_name("bytes_per_gib")
    ws.set_row(row, book.look["rows"]["table"])
    put(row, 1, run["id"], styles.variant("r_label", shrink=True))
    for column, key in enumerate(("model", "card", "versions"), 2):
        put(row, column, run[key], styles.variant("r_text_i", shrink=True))
    for number, figure in enumerate(FIGURES):
        column = 5 + 3 * number
        logged = run[figure.logged] or words["none"]
        form = styles["r_calc2" if figure.gib else "r_calc0"]
        put(row, column, logged, form)
        formula = runs.cell(at, figure.term) + (f"*{book.cell_name(figure.factor)}" if figure.factor else "")
        put(row, column + 1, Raw(f"={formula}" + (f"/{gib}" if figure.gib else ""), runs.value(at, figure)), form)
        said, found = (page.cell(row, column + more, column_fixed=True) for more in (0, 1))
        error = f"=IF(ISNUMBER({said}),{found}/{said}-1,{quoted(words['none'])})"
        put(row, column + 2, Raw(error, runs.error(at, figure)), styles["r_err"])
    column = 5 + 3 * len(FIGURES)
    held = Raw(f"={runs.cell(at, 'kv_bytes_per_token_per_gpu')}", runs.rows[at]["kv_bytes_per_token_per_gpu"])
    put(row, column, held, styles["r_calc0"])
    shown = book.job.tables["verdicts"].columns["shown"][runs.rows[at]["verdict_code"] - 1]
    verdict = f"=INDEX({column_name('verdicts', 'shown')},{runs.cell(at, 'verdict_code')})"
    put(row, column + 1, Raw(verdict, shown), styles["r_text_i"])
    told = words["explained" if run["explained"] else "unexplained"]
    put(row, column + 2, filled(told, source=run["source"]), styles.variant("r_help", indent=1, wrap=False))


def _write_workings(book: Book, runs: Runs) -> None:
    ws, styles, words = book.sheet(WORKINGS), book.styles, runs.words
    put, beside = book.putter(ws), 2 + len(runs.table.columns)
    page.plain_sheet(
        book, WORKINGS, kind="wide", last_column=beside + len(_WORST) + 1, stamp=False, sentence=words["workings"],
        rows_repeated=(0, FIRST - 1), freeze=(FIRST, 2),
    )  # fmt: skip
    rows = [(str(run["id"]), inputs, dict[str, Any]()) for run, inputs in zip(runs.runs, runs.jobs, strict=True)]
    write_job_table(book, WORKINGS, runs.table, rows, heading=words["run"], first_row=FIRST)
    figures = {figure.key: at for at, figure in enumerate(FIGURES)}
    for more, key in enumerate(("called", *_WORST)):
        label, unit = words["beside"][key]
        put(FIRST - 2, beside + more, label, styles["th_r"])
        put(FIRST - 1, beside + more, unit, styles["th_u"])
    for at, run in enumerate(runs.runs):
        refused = runs.rows[at]["verdict_code"] >= _REFUSED
        code = page.cell(FIRST + at, 2 + runs.table.column("verdict_code"), column_fixed=True)
        right = f"=IF({code}>2,{int(bool(run['refused']))},{int(not run['refused'])})"
        put(FIRST + at, beside, Raw(right, int(bool(run["refused"]) == refused)), styles["r_calc0"])
        for more, key in enumerate(_WORST, 1):
            place = page.cell(FIRST + at, 7 + 3 * figures[key], row_fixed=True, column_fixed=True)
            error = runs.error(at, FIGURES[figures[key]])
            formula = f"=IF(ISNUMBER({TITLE}!{place}),ABS({TITLE}!{place}),{quoted(words['none'])})"
            counted: Any = Raw(formula, error if isinstance(error, str) else abs(error))
            put(FIRST + at, beside + more, counted if run["explained"] else words["none"], styles["r_err"])
    row = runs.end + 2
    answers = (
        ("runs_called", f"=SUM({page.area(FIRST, beside, runs.end)})"),
        *((f"worst_{key}_error", f"=MAX({page.area(FIRST, beside + more, runs.end)})")
          for more, key in enumerate(_WORST, 1)),
    )  # fmt: skip
    for label, (symbol, formula) in zip(words["answers"], answers, strict=True):
        put(row, 1, label, styles["r_label"])
        put(row, 2, Raw(formula, book.values[symbol]), styles["r_err" if "worst" in symbol else "r_calc0"])
        book.define(public_name(symbol), WORKINGS, row, 2)
        row += 1
    for label, symbol in zip(words["counts"], ("runs_logged", "runs_explained"), strict=True):
        put(row, 1, label, styles["r_label"])
        put(row, 2, book.values[symbol], styles["r_calc0"])
        book.define(public_name(symbol), WORKINGS, row, 2)
        row += 1
    page.print_area(ws, row - 1, 1 + len(runs.table.results))


def _strip(book: Book, runs: Runs, last: int) -> None:
    words, sym = runs.words, book.sym
    tiles = [
        Tile(1, 1, words["strip"]["runs"], sym("runs_logged"), words["strip"]["runs_note"], "tile_count"),
        Tile(2, 2, words["strip"]["called"], sym("runs_called"), words["strip"]["called_note"], "tile_count"),
    ]
    spans = ((3, 4), (5, 9), (10, 14))
    for key, (first, end) in zip(_WORST, spans, strict=True):
        shown = sentence(f"{{worst_{key}_error:%1}}", sym)
        tiles.append(Tile(first, end, words["strip"][key], shown, words["strip"]["worst_note"], "tile_text"))
    page.strip(
        book.sheet(TITLE), book.styles, last_column=last, title=words["title"], sentence=sym("runs_told"),
        stamp=book.stamp, put=book.putter(book.sheet(TITLE)), tiles=tiles,
    )  # fmt: skip


def _chart(book: Book, runs: Runs, ws: Worksheet, row: int) -> None:
    """Calculated pools against logged ones, on the exact line and 10% around it."""
    data, styles, words = book.sheet(chart_data.TITLE), book.styles, runs.words["chart"]
    put, first = book.putter(data), chart_data.RUNS + 1
    for column, text in enumerate(words["columns"], 1):
        put(first - 1, column, text, styles["th" if column == 1 else "th_r"])
    pools = [at for at, run in enumerate(runs.runs) if run["kv_pool_gib"]]
    pool = FIGURES[1]
    for place, at in enumerate(pools, first):
        run = runs.runs[at]
        logged, found = (page.cell(FIRST + at, column, row_fixed=True, column_fixed=True) for column in (8, 9))
        put(place, 1, run["id"], styles["r_label"])
        put(place, 2, Raw(f"={TITLE}!{logged}", run["kv_pool_gib"]), styles["r_calc2"])
        value = Raw(f"={TITLE}!{found}", runs.value(at, pool))
        missing = Raw("=NA()", "#N/A")
        put(place, 3, value if run["explained"] else missing, styles["r_calc2"])
        put(place, 4, missing if run["explained"] else value, styles["r_calc2"])
    end = first + len(pools) - 1
    logged_pools = [runs.runs[at]["kv_pool_gib"] for at in pools]
    band, name, area = book.values["chart_band"], book.cell_name("chart_band"), page.area(first, 2, end)
    ends = ((f"=MIN({area})", min(logged_pools)), (f"=MAX({area})", max(logged_pools)))
    for more, (formula, value) in enumerate(ends, 1):
        here = page.cell(end + more, 2, column_fixed=True)
        put(end + more, 1, words["line"], styles["r_label"])
        put(end + more, 2, Raw(formula, value), styles["r_calc2"])
        put(end + more, 5, Raw(f"={here}", value), styles["r_calc2"])
        put(end + more, 6, Raw(f"={here}*(1+{name})", value * (1 + band)), styles["r_calc2"])
        put(end + more, 7, Raw(f"={here}*(1-{name})", value * (1 - band)), styles["r_calc2"])

    def points(label: str, column: int, top: int, bottom: int) -> charts.Points:
        sheet = chart_data.TITLE
        return charts.Points(label, [sheet, top, 2, bottom, 2], [sheet, top, column, bottom, column])

    exact, above, below = (
        points(words[key], column, end + 1, end + 2) for key, column in (("exact", 5), ("band", 6), ("below", 7))
    )
    chart = charts.predicted_against_measured(
        book.workbook, book.look, title=[chart_data.TITLE, chart_data.TITLES["pool_title"], 1], exact=exact,
        above=above, below=below,
        levers=[points(words["explained"], 3, first, end), points(words["unexplained"], 4, first, end)],
        minimum=1, layout="pool_against_logged",
    )  # fmt: skip
    charts.place(ws, row, 1, chart, size=book.look["charts"]["pool_against_logged"]["size"], alt=words["alt"])

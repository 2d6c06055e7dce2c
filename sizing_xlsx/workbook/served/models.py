"""Models: every model of the catalogue on the cards of Sizing, each in the format that it is published in.

"Model workings" is a job table in which the model varies; what was entered for the model of Sizing counts for none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.render import column_name, public_name
from ...planning.compare import FITS
from ...presets.catalogue import PUBLISHED_FORMAT
from .. import page
from ..book import Raw
from ..jobtable import JobTable, write_job_table
from ..page import Tile
from ..sheets.compare import here
from ..words import quoted

if TYPE_CHECKING:
    from ..book import Book

TITLE, WORKINGS = "Models", "Model workings"
FIRST = 9  # row of the first model, from 0, on both sheets
RESULTS = (
    "verdict_code", "concurrency", "kv_pool_tokens", "weights_gb", "base_parameter_count", "kv_cache_bytes_per_token",
    "longest_context",
)  # fmt: skip
BESIDE = ("row", "holds", "fits")
_COLUMNS = (  # figure, style
    ("base_parameter_count", "r_calc1"), ("base_storage_format", "r_text_i"), ("weights_gb", "r_calc1"),
    ("kv_cache_bytes_per_token", "r_calc0"), ("verdict_code", "r_text_i"), ("concurrency", "r_calc0"),
    ("kv_pool_tokens", "r_calc0"), ("longest_context", "r_calc0"),
)  # fmt: skip


class Models:
    """The rows of the table, in the order of the catalogue."""

    def __init__(self, book: Book) -> None:
        job, self.words = book.job, book.template["served"]["models"]
        models = job.tables["models"]
        own = job.own_values_of("base_model")
        self.varied = ["base_model", *own, "base_storage_format"]
        moving = job.depends_on(self.varied)
        self.rules = [rule for rule in job.fault_rules if rule in moving]
        self.table = JobTable(job, RESULTS, self.rules, varied=self.varied, elsewhere=book.cell_name)
        entered = {**{key: book.values[key] for key in job.inputs}, **dict.fromkeys(own)}
        self.names, self.formats = list(models), list(models.columns[PUBLISHED_FORMAT])
        self.jobs = [
            {**entered, "base_model": name, "base_storage_format": stored}
            for name, stored in zip(self.names, self.formats, strict=True)
        ]
        self.rows = [self.table.values(inputs) for inputs in self.jobs]
        self.holds = [int(all(row[rule] for rule in self.rules)) for row in self.rows]
        self.fits = [
            row["base_parameter_count"] if holds and row["verdict_code"] == FITS else self.words["none"]
            for row, holds in zip(self.rows, self.holds, strict=True)
        ]
        self.order = sorted(range(len(self.rows)), key=lambda at: (self.rows[at]["base_parameter_count"], at))

    def column(self, key: str) -> int:
        """Where a figure stands on the workings."""
        columns = self.table.columns
        return 2 + (columns.index(key) if key in columns else len(columns) + BESIDE.index(key))

    @property
    def largest(self) -> int:
        """The row of the largest model that fits, from 1; 0 where none does."""
        known = [count for count in self.fits if not isinstance(count, str)]
        return self.fits.index(max(known)) + 1 if known else 0


def plan(book: Book) -> None:
    """Size every model and register the figures that sentences use."""
    book.models = models = Models(book)
    at = models.largest
    book.external("largest_model", "text", models.names[at - 1] if at else models.words["none_fits"])
    book.external("largest_model_row", "count", at)
    book.external("models_fit", "count", sum(not isinstance(count, str) for count in models.fits))
    book.external("models_known", "count", len(models.names))


def _write_workings(book: Book, models: Models) -> None:
    ws, styles, words = book.sheet(WORKINGS), book.styles, models.words
    put, end = book.putter(ws), FIRST + len(models.rows) - 1
    page.plain_sheet(
        book, WORKINGS, kind="wide", last_column=models.column(BESIDE[-1]) + 1, stamp=False,
        sentence=words["workings"], rows_repeated=(0, FIRST - 1), freeze=(FIRST, 2),
    )  # fmt: skip
    names, formats = column_name("models", None), column_name("models", PUBLISHED_FORMAT)
    rows: list[tuple[str | Raw, Any, dict[str, Any]]] = []
    for at, (name, stored) in enumerate(zip(models.names, models.formats, strict=True)):
        number = page.cell(FIRST + at, models.column("row"), column_fixed=True)
        cells = {
            "base_model": Raw(f"=INDEX({names},{number})", name),
            "base_storage_format": Raw(f"=INDEX({formats},{number})", stored),
        }
        label = page.cell(FIRST + at, models.column("base_model"), column_fixed=True)
        rows.append((Raw(f"={label}", name), models.jobs[at], cells))
    write_job_table(book, WORKINGS, models.table, rows, heading=words["model"], first_row=FIRST)
    for key in BESIDE:
        label, unit = words["beside"][key]
        put(FIRST - 2, models.column(key), label, styles["th_r"])
        put(FIRST - 1, models.column(key), unit, styles["th_u"])
    for at in range(len(models.rows)):
        row = FIRST + at

        def own(key: str, row: int = row) -> str:
            return page.cell(row, models.column(key), column_fixed=True)

        above = f"N({page.cell(row - 1, models.column('row'), column_fixed=True)})+1"
        put(row, models.column("row"), Raw(f"={above}", at + 1), styles["r_calc0"])
        holds = "*".join(own(rule) for rule in models.rules)
        put(row, models.column("holds"), Raw(f"={holds}", models.holds[at]), styles["r_calc0"])
        fits = f"=IF({own('holds')}*({own('verdict_code')}=1)>0,{own('base_parameter_count')},"
        put(row, models.column("fits"), Raw(f"{fits}{quoted(words['none'])})", models.fits[at]), styles["r_text_r"])
    found = public_name("largest_model_row")
    fitting = page.area(FIRST, models.column("fits"), end)
    labels, numbers = page.area(FIRST, 1, end), page.area(FIRST, models.column("row"), end)
    for at, (symbol, formula) in enumerate(
        (
            ("models_known", f"=COUNT({numbers})"),
            ("models_fit", f"=COUNT({fitting})"),
            ("largest_model_row", f"=IF(COUNT({fitting})>0,MATCH(MAX({fitting}),{fitting},0),0)"),
            ("largest_model", f"=IF({found}>0,INDEX({labels},{found}),{quoted(words['none_fits'])})"),
        ),
        end + 2,
    ):  # fmt: skip
        put(at, 1, words["answers"][at - end - 2], styles["r_label"])
        value = book.values[symbol]
        put(at, 2, Raw(formula, value), styles["r_text_r" if isinstance(value, str) else "r_calc0"])
        book.define(public_name(symbol), WORKINGS, at, 2)
    page.print_area(ws, end + 5, 1 + len(models.table.results))


def write(book: Book) -> None:
    """Both sheets."""
    models = book.models
    _write_workings(book, models)
    ws, styles, words = book.sheet(TITLE), book.styles, models.words
    put, shown = book.putter(ws), book.shown
    last = page.set_page(
        ws, book.look, kind=TITLE, file_and_version=book.footer, freeze=(FIRST, 2), rows_repeated=(0, FIRST - 1)
    )
    page.strip(
        ws, styles, last_column=last, title=words["title"],
        sentence=Raw("=IF(Checks_Failed>0,First_Fault,Models_Found_Sentence)", book.value(book.sym("models_found"))),
        stamp=book.stamp, put=put,
        tiles=[
            Tile(1, 1, words["largest"], shown(book.sym("largest_model")), words["largest_note"], "tile_text"),
            Tile(2, 4, words["count"], shown(book.sym("models_fit")), words["count_note"], "tile_count"),
            here(book, 5, last - 1),
        ],
    )  # fmt: skip
    put(7, 1, words["note"], styles["help"])
    ws.set_row(FIRST - 1, book.look["rows"]["header_two_lines"])
    put(FIRST - 1, 1, words["columns"][0], styles["th"])
    for column, ((_, style), head) in enumerate(zip(_COLUMNS, words["columns"][1:], strict=True), 2):
        put(FIRST - 1, column, head, styles["th_i" if style == "r_text_i" else "th_r"])
    for place, at in enumerate(models.order):
        _row(book, models, FIRST + place, at)
    end = FIRST + len(models.order) - 1
    page.state_marks(ws, styles, (FIRST, 6, end, 6))
    chosen = f"={page.cell(FIRST, 1, column_fixed=True)}={book.cell_name('base_model')}"
    page.formula_marks(ws, styles, (FIRST, 1, end, 1), chosen, "decides")
    unfit = f"={page.cell(FIRST, 2)}={quoted(words['none'])}"
    page.formula_marks(ws, styles, (FIRST, 2, end, last - 1), unfit, "quiet")
    page.print_area(ws, end, last)


def _row(book: Book, models: Models, row: int, at: int) -> None:
    ws, styles, words = book.sheet(TITLE), book.styles, models.words
    put, none, figures = book.putter(ws), quoted(words["none"]), models.rows[at]
    ws.set_row(row, book.look["rows"]["table"])

    def there(key: str) -> str:
        place = page.cell(FIRST + at, models.column(key), row_fixed=True, column_fixed=True)
        return f"'{WORKINGS}'!{place}"

    put(row, 1, Raw(f"={there('base_model')}", models.names[at]), styles["r_label"])
    for column, (key, style) in enumerate(_COLUMNS, 2):
        formula, value = there(key), figures[key]
        if key == "base_parameter_count":
            formula, value = f"{formula}/{book.cell_name('one_billion')}", value / book.values["one_billion"]
        elif key == "verdict_code":
            formula = f"INDEX({column_name('verdicts', 'shown')},{formula})"
            value = book.job.tables["verdicts"].columns["shown"][value - 1]
        if key not in ("base_parameter_count", "base_storage_format"):
            formula, value = f"IF({there('holds')}>0,{formula},{none})", value if models.holds[at] else words["none"]
        form = styles.variant(style, shrink=True)
        put(row, column, book.guarded(Raw(f"={formula}", value), '"–"'), form)

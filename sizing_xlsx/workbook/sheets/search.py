"""Search workings: the questions of planning/search.py, each halved down its rows, and both ways to checkpoint.

Each block is a job table in which one input varies: the row's value lies between one that holds and one that does
not, and the next row takes the half in which the boundary must be. The last row has the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.render import public_name
from ...planning.search import Question, limit_of, middle, questions, steps_of
from .. import page
from ..book import Raw
from ..jobtable import ROW, JobTable
from ..words import filled
from . import checks

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Search workings"
CHECKPOINTING = "activation_checkpointing"
BOUNDARIES = ("largest_batch_size", "largest_sequence_length")
_FIRST = 3
_BESIDE = 4  # columns beside a table: two bounds, the value tried, whether it holds


class Search:
    """The blocks of the sheet, each with its rows and its answer."""

    def __init__(self, book: Book) -> None:
        job = book.job
        inputs = {key: book.values[key] for key in job.inputs}
        self.blocks = [_Block(book, question, inputs) for question in questions(job)]
        self.pair = JobTable(job, BOUNDARIES, varied=(CHECKPOINTING,), elsewhere=book.cell_name)
        self.pair_rows = [self.pair.values({**inputs, CHECKPOINTING: state}) for state in ("Off", "On")]


class _Block:
    """One question: (low, high, value tried, whether it holds) in each row, and the terms of the row's job."""

    def __init__(self, book: Book, question: Question, inputs: dict[str, Any]) -> None:
        job = book.job
        self.question = question
        moving = job.depends_on((question.vary,))
        results = [key for key in (question.term, question.at_most) if key in moving]
        self.table = JobTable(job, results, varied=(question.vary,), elsewhere=book.cell_name)
        limit = limit_of(job, question)
        low, high = 0, int(book.values[limit] if isinstance(limit, str) else limit) + 1
        self.rows: list[tuple[int, int, int, bool, dict[str, Any]]] = []
        sized = job.scalar((question.term, question.at_most))
        for _ in range(steps_of(job, question)):
            tried = middle(low, high)
            here = {**inputs, question.vary: tried}
            needed, room = sized(**here)
            self.rows.append((low, high, tried, needed <= room, self.table.values(here)))
            low, high = (tried, high) if needed <= room else (low, tried)
        self.answer = low


def plan(book: Book) -> None:
    """Answer the questions and register the answers, that sentences use them."""
    book.search = search = Search(book)
    for block in search.blocks:
        book.external(block.question.name, book.job.unit_of(block.question.vary), block.answer)
    for state, row in zip(("plain", "checkpointed"), search.pair_rows, strict=True):
        for key in BOUNDARIES:
            book.external(f"{state}_{key}", book.job.unit_of(key), row[key])


def write(book: Book) -> None:
    """The sheet, a block a question."""
    search = book.search
    columns = max(len(block.table.columns) for block in search.blocks) + _BESIDE
    page.plain_sheet(
        book, TITLE, title=book.template["search"]["title"], kind="wide",
        last_column=2 + max(columns, len(search.pair.columns)), stamp=False,
        sentence=book.template["levers_sheet"]["search_workings"], rows_repeated=(0, 1), freeze=(2, 2),
    )  # fmt: skip
    row = _FIRST
    for block in search.blocks:
        row = _write_block(book, block, row)
    row = _write_pair(book, search, row)
    page.print_area(book.sheet(TITLE), row - 1, 1 + _BESIDE)


def _head(book: Book, row: int, heading: str, labels: list[tuple[str, str]]) -> None:
    put, styles = book.putter(book.sheet(TITLE)), book.styles
    put(row, 1, heading, styles["th"])
    put(row + 1, 1, "", styles["th_ul"])
    for column, (label, unit) in enumerate(labels, 2):
        put(row, column, label, styles["th_r"])
        put(row + 1, column, unit, styles["th_u"])


def _labels(book: Book, table: JobTable) -> list[tuple[str, str]]:
    facts = [book.job.inputs.get(key) or book.job.terms[key] for key in table.columns]
    return [(fact.label, fact.unit) for fact in facts]


def _terms(book: Book, table: JobTable, row: int, first: int, values: dict[str, Any]) -> None:
    """The terms of one row; the varied input stands there already."""
    put, styles = book.putter(book.sheet(TITLE)), book.styles
    for key, formula in table.formulas(first).items():
        column, value = first + table.column(key), values[key]
        style = styles["r_text_r"] if isinstance(value, str) else styles.variant("r_calc0", shrink=True)
        put(row, column, Raw(formula.replace(ROW, str(row + 1)), value), style)


def _write_block(book: Book, block: _Block, row: int) -> int:
    put, styles, job, question = book.putter(book.sheet(TITLE)), book.styles, book.job, block.question
    table = block.table
    after = 2 + _BESIDE
    vary = after + table.column(question.vary)
    unit = job.unit_of(question.vary)
    words = book.template["search"]
    heading = filled(
        words["heading"], input=job.inputs[question.vary].label, question=words["questions"][question.name]
    )
    _head(book, row, heading, [*((label, unit) for label in words["columns"]), *_labels(book, table)])
    limit = limit_of(job, question)
    first = row + 2
    highest = book.cell_name(limit) if isinstance(limit, str) else checks.bounds(job, question.vary)[1]
    for at, (low, high, tried, holds, values) in enumerate(block.rows):
        here = first + at

        def cell(column: int, above: int = 0, here: int = here) -> str:
            return page.cell(here - above, column, column_fixed=True)

        lower = Raw("=0", low) if at == 0 else Raw(f"=IF({cell(5, 1)}>0,{cell(4, 1)},{cell(2, 1)})", low)
        upper = Raw(f"={highest}+1", high) if at == 0 else Raw(f"=IF({cell(5, 1)}>0,{cell(3, 1)},{cell(4, 1)})", high)
        needed, room = (
            cell(after + table.column(key)) if key in table.columns else book.cell_name(key)
            for key in (question.term, question.at_most)
        )
        put(here, 1, filled(words["step"], number=str(at + 1)), styles["r_label"])
        put(here, 2, lower, styles["r_calc0"])
        put(here, 3, upper, styles["r_calc0"])
        put(here, 4, Raw(f"=MAX(1,INT(({cell(2)}+{cell(3)})/2))", tried), styles["r_calc0"])
        put(here, 5, Raw(f"=IF({needed}<={room},1,0)", int(holds)), styles["r_calc0"])
        put(here, vary, Raw(f"={cell(4)}", tried), styles["r_calc0"])
        _terms(book, table, here, after, values)
    end = first + len(block.rows)
    last = end - 1
    put(end, 1, words["answer"], styles["r_label"])
    found = f"IF({page.cell(last, 5)}>0,{page.cell(last, 4)},{page.cell(last, 2)})"
    put(end, 2, book.guarded(Raw(f"={found}", block.answer), "NA()"), styles["r_calc0"])
    book.define(public_name(question.name), TITLE, end, 2)
    return end + 2


def _write_pair(book: Book, search: Search, row: int) -> int:
    """The largest batch and the longest sequence without and with checkpointing."""
    put, styles, table = book.putter(book.sheet(TITLE)), book.styles, search.pair
    _head(book, row, book.template["search"]["checkpointing"], _labels(book, table))
    for at, (state, name, values) in enumerate(
        zip(("Off", "On"), ("plain", "checkpointed"), search.pair_rows, strict=True)
    ):
        here = row + 2 + at
        put(here, 1, state, styles["r_label"])
        put(here, 2 + table.column(CHECKPOINTING), state, styles["r_text_r"])
        _terms(book, table, here, 2, values)
        for key in BOUNDARIES:
            book.define(public_name(f"{name}_{key}"), TITLE, here, 2 + table.column(key))
    return row + 5

"""What-if: the job of Sizing with some inputs changed, a row a change; charts, levers and sensitivity read its rows.

The inputs of a row are those in force on Sizing but for the ones that are changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...formula.domains import nearest
from ...formula.render import column_name
from ...planning.levers import pulled_terms
from .. import page
from ..book import Raw
from ..jobtable import NOT_GIVEN, JobTable, write_job_table

if TYPE_CHECKING:
    from ..book import Book

TITLE = "What-if"
FIRST = 5  # row of the first job, from 0
OF_SOME = ("model_state_per_gpu_gb",)  # results of the jobs that have them


class WhatIf:
    """The rows of the table: label, the job's inputs, and what their cells hold."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.rules = book.job.fault_rules
        self.check: str = book.look["states"]["check"]["word"]
        pulled = pulled_terms(book.template.get("levers", ()))
        for term in pulled:
            if term not in book.job.terms:
                where = f"templates/{book.job.name}.toml: levers"
                raise ValueError(f"{where}: {term} is no term{nearest(term, tuple(book.job.terms))}")
        shown: Sequence[str] = book.template["what_if"]["results"]
        results = (*shown, *(key for key in OF_SOME if key in book.job.terms))
        self.table = JobTable(book.job, results, (*self.rules, *pulled))
        self.worked = {key: book.values.get(key) for key in self.table.inputs}
        self.rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        self.parts: list[int] = []  # the first rows of parts after the first
        self._found: dict[int, dict[str, Any]] = {}

    def add(self, label: str, changed: Mapping[str, Any]) -> int:
        """Add a job; changed: input -> value, or the formula that gives it. Returns its row, from 0."""
        inputs, cells = dict(self.worked), dict[str, Any]()
        for key in self.table.inputs:
            content = changed.get(key, Raw(f"={self.book.cell_name(key)}", inputs[key]))
            inputs[key] = content.value if isinstance(content, Raw) else content
            missing = isinstance(content, Raw) and content.value is None
            cells[key] = content._replace(value=NOT_GIVEN) if missing else content
        self.rows.append((label, inputs, cells))
        return len(self.rows) - 1

    def part(self) -> None:
        """Begin a part of the table whose rows may depend on rows above, one empty row below them.

        Equal formulas that follow each other in a column are one group to LibreOffice, which may calculate it as a
        whole: a row that depended on another of its group would then depend on itself (Err:522).
        """
        self.parts.append(len(self.rows))

    def at(self, row: int) -> int:
        """Where a row stands on the sheet, from 0."""
        return FIRST + row + sum(part <= row for part in self.parts)

    def results(self, row: int) -> dict[str, Any]:
        """The values of a row."""
        if row not in self._found:
            self._found[row] = self.table.values(self.rows[row][1])
        return self._found[row]

    def address(self, row: int, column: str) -> str:
        """The cell of a result or an input, as a formula on another sheet refers to it."""
        at = 2 + self.table.column(column)
        return f"'{TITLE}'!{page.cell(self.at(row), at, row_fixed=True, column_fixed=True)}"

    def cell(self, row: int, result: str) -> Raw:
        """A reference to a result, with its value."""
        return Raw("=" + self.address(row, result), self.results(row)[result])

    def broken(self, row: int) -> str:
        """The cell that counts the rules between inputs which a row breaks."""
        return f"'{TITLE}'!{page.cell(self.at(row), self.beside, row_fixed=True, column_fixed=True)}"

    def breaks(self, row: int) -> int:
        """How many rules between inputs a row breaks."""
        return sum(1 - self.results(row)[rule] for rule in self.rules)

    def verdict(self, row: int, faults: str = "") -> Raw:
        """The verdict of a row as a word; one that breaks a rule, or where other faults count above 0, has none."""
        shown = f"INDEX({column_name('verdicts', 'shown')},{self.address(row, 'verdict_code')})"
        return Raw(f'=IF({faults}{self.broken(row)}>0,"{self.check}",{shown})', self.word(row))

    def word(self, row: int) -> str:
        """The same as the workbook opens."""
        words = self.book.job.tables["verdicts"].columns["shown"]
        return self.check if self.breaks(row) else str(words[self.results(row)["verdict_code"] - 1])

    @property
    def beside(self) -> int:
        """The column beside the table."""
        return 2 + len(self.table.columns)


def write(book: Book) -> None:
    """The table."""
    what_if, words = book.what_if, book.template["what_if"]
    page.plain_sheet(
        book,
        TITLE,
        title=words["title"],
        kind="wide",
        last_column=what_if.beside + 1,
        stamp=False,
        sentence=words["sentence"],
        rows_repeated=(0, FIRST - 1),
        freeze=(FIRST, 2),
    )
    write_job_table(book, TITLE, what_if.table, what_if.rows, heading=words["job"], first_row=FIRST, place=what_if.at)
    put, styles = book.putter(book.sheet(TITLE)), book.styles
    for row, text, style in zip((FIRST - 2, FIRST - 1), words["broken"], ("th_r", "th_u"), strict=True):
        put(row, what_if.beside, text, styles[style])
    for row in range(len(what_if.rows)):
        here = what_if.at(row)
        rules = (page.cell(here, 2 + what_if.table.column(rule), column_fixed=True) for rule in what_if.rules)
        content = Raw("=" + "+".join(f"(1-{rule})" for rule in rules), what_if.breaks(row))
        put(here, what_if.beside, content, styles["r_calc0"])

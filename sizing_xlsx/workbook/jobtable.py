"""The job table: many jobs, one a row; inputs are columns, and so are the terms that follow from them.

A table is closed unless told what varies: a row's formulas refer to the row's own columns, to allowances of the
installation and to preset tables, never to another job's inputs. Where it is told, the rows are the job of Sizing
with those inputs changed: only the terms that move with them are columns, and all else is read where it stands.
Every row has the same formula down a column. Terms used once are written into their user, as far as a formula
stays readable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..formula.declare import Choice, Number
from ..formula.expression import Expr, names_in, replace
from ..formula.job import Job
from ..formula.render import NameOf, column_name, public_name, sheet_formula
from . import page

if TYPE_CHECKING:
    from .book import Book, Raw

LONGEST_FORMULA = 160
DEEPEST_NESTING = 3
NOT_GIVEN = "none"  # what an optional input's cell holds, in workbooks of every language
ROW = "{row}"  # stands for a row's number in the formulas of a table


class JobTable:
    """The layout of a job table: which columns it has and what stands in them.

    results: terms that the caller shows; each keeps a column of its own. also: further terms that keep theirs,
    among those that follow; they read no input that the results do not. inputs: which have a column, and in which
    order, where that is not those that the results follow from; they are among them. varied: the inputs in which the
    rows differ from the job of Sizing; each result moves with them. elsewhere: the name of what is no column.
    """

    def __init__(
        self,
        job: Job,
        results: Sequence[str],
        also: Sequence[str] = (),
        inputs: Sequence[str] = (),
        *,
        varied: Sequence[str] | None = None,
        elsewhere: NameOf = public_name,
    ) -> None:
        self.job, self.elsewhere = job, elsewhere
        self.results = tuple(results)
        self.inputs = list(varied) if varied is not None else list(inputs) or inputs_used(job, results)
        order = job.needed((*results, *also))
        moving = job.depends_on(self.inputs)
        if still := [key for key in self.results if key not in moving]:
            raise ValueError(f"{job.name}: {', '.join(still)} would be the same in every row of a table of jobs")
        self.local = moving
        kept = (*self.results, *also)
        self.trees = compact({key: job.trees[key] for key in order if key in moving}, kept, self._text)
        self.terms = [*self.results, *(key for key in self.trees if key not in self.results)]
        self.columns = [*self.results, *self.inputs, *self.terms[len(self.results) :]]

    def _text(self, tree: Expr) -> str:
        return sheet_formula(tree, lambda symbol: "$AB123" if symbol in self.local else self.elsewhere(symbol))

    def column(self, symbol: str) -> int:
        """The position of an input or result among the table's columns, from 0."""
        return self.columns.index(symbol)

    def formulas(self, first_column: int) -> dict[str, str]:
        """The formulas of a row, by term, with ROW where its number belongs: all rows have the same."""
        from xlsxwriter.utility import xl_col_to_name

        address = {symbol: f"${xl_col_to_name(first_column + at)}{ROW}" for at, symbol in enumerate(self.columns)}
        return {
            key: sheet_formula(tree, lambda symbol: address.get(symbol) or self.elsewhere(symbol), column_name)
            for key, tree in self.trees.items()
        }

    def values(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """What the columns of a row hold, for the inputs of its job (defaults for those left out).

        A row of a table that is not closed has the inputs of the whole job, not those of its columns alone.
        """
        wanted = tuple(self.trees)
        row = dict(zip(wanted, self.job.scalar(wanted)(**inputs), strict=True))
        return {**{key: inputs.get(key, self.job.inputs[key].default) for key in self.inputs}, **row}


def inputs_used(job: Job, results: Sequence[str]) -> list[str]:
    """The inputs that make a job and that the results follow from, in the order of their declaration."""
    used = {symbol for key in job.needed(results) for symbol in names_in(job.trees[key])}
    return [key for key, declared in job.inputs.items() if declared.follows_job and key in used]


def compact(trees: dict[str, Expr], keep: Iterable[str], text: Any) -> dict[str, Expr]:
    """The same results from fewer columns: a term used once moves into its user while the formula stays short."""
    trees, keep = dict(trees), set(keep)
    uses: dict[str, int] = {}
    for tree in trees.values():
        for symbol in names_in(tree):
            uses[symbol] = uses.get(symbol, 0) + 1
    for key in list(trees):
        for symbol in dict.fromkeys(names_in(trees[key])):
            if symbol in trees and symbol not in keep and uses[symbol] == 1:
                merged = replace(trees[key], {symbol: trees[symbol]})
                formula = text(merged)
                if len(formula) <= LONGEST_FORMULA and nesting(formula) <= DEEPEST_NESTING:
                    trees[key] = merged
                    del trees[symbol]
    return trees


def nesting(formula: str) -> int:
    """How deep the brackets of a formula go."""
    depth = deepest = 0
    for character in formula:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


def _number(book: Book, unit: str) -> Any:
    if unit in ("GB", "GiB", "MiB"):
        return book.styles["r_calc3"]
    if " per " in unit or unit == "count":
        return book.styles.variant("r_calc0", format="general")
    # A job that is far too large takes terabytes, which no column for gigabytes in bytes has room for.
    return book.styles.variant("r_calc0", shrink=True)


def typed_style(job: Job, key: str) -> str:
    """The style of an input's cells in a table where it can be typed; numbers may give way to a word."""
    domain = job.inputs[key].domain
    if isinstance(domain, Choice):
        return "g_text_r"
    return "g_dec3" if isinstance(domain, Number) and job.unit_of(key) == "GB" else "g_num"


def write_job_table(
    book: Book,
    title: str,
    table: JobTable,
    rows: Sequence[tuple[str | Raw, Mapping[str, Any], Mapping[str, Any]]],
    *,
    heading: str,
    first_row: int = 9,
    typed_from: int | None = None,
    place: Callable[[int], int] | None = None,
) -> None:
    """Write the rows of a job table on a sheet of its own, from `first_row` (0-based) and column B on.

    rows: label, the job's inputs as values, and what their cells hold where that is not the value itself (a
    formula). An optional input that is not given says NOT_GIVEN. The results come first, and only they are printed.
    typed_from: the row, from 0, from which on inputs that are values can be typed over. place: where each row stands
    on the sheet, if not one below the other.
    """
    row_of = place or (lambda number: first_row + number)
    ws, styles = book.sheet(title), book.styles
    header, unit = styles["th_r"], styles["th_u"]
    text_style = styles["r_text_r"]
    book.put(ws, first_row - 2, 1, heading, styles["th"])
    book.put(ws, first_row - 1, 1, "", styles["th_ul"])
    job = table.job
    for column, symbol in enumerate(table.columns, 2):
        facts = job.inputs.get(symbol) or job.terms[symbol]
        book.put(ws, first_row - 2, column, facts.label, header)
        book.put(ws, first_row - 1, column, facts.unit, unit)
    formulas = table.formulas(2)
    numbers = {key: _number(book, job.unit_of(key)) for key in table.columns}
    for number, (label, inputs, cells) in enumerate(rows):
        row = row_of(number)
        values = table.values(inputs)
        book.put(ws, row, 1, label, styles["r_label"])
        for column, key in enumerate(table.columns, 2):
            value = values[key]
            style = text_style if isinstance(value, (str, type(None))) else numbers[key]
            if key in formulas:
                ws.write_formula(row, column, formulas[key].replace(ROW, str(row + 1)), style, value)
            else:
                content = cells.get(key, value)
                if typed_from is not None and number >= typed_from and key not in cells:
                    style = styles[typed_style(job, key)]
                book.put(ws, row, column, NOT_GIVEN if content is None else content, style)
    page.print_area(ws, row_of(len(rows) - 1), 1 + len(table.results))

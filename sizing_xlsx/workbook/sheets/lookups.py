"""Lookups: what the Excel functions look up: lists of names, the jobs, and terms that rest on one choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...formula.declare import Choice
from ...formula.engine import value_of
from ...formula.expression import Expr, names_in
from ...formula.render import column_name, in_words, sheet_formula
from ...formula.render import write as written
from ...functions import registered
from ...functions.chain import in_order
from ...functions.names import parts, tail
from .. import lambdas, page
from ..book import Raw
from ..jobtable import ROW, compact
from .reference import card_column

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Lookups"
_LIST_PARTS = {"text": 2, "row": 3, "words": 5}
_FIRST = 3
_MOST_WORDS = 120


class Listed(NamedTuple):
    """Names, the row of each being its position from 1, and further words with the row that they mean."""

    names: Sequence[str]
    words: Mapping[str, int]


class Lookups:
    """Where everything stands on the sheet; addresses of rows and columns count from 0."""

    def __init__(self, book: Book) -> None:
        self.book, self.plan = book, lambdas.plan(book)
        job = book.job
        tables = [job.inputs[key].domain for key in self.plan.choices]
        self.lists: dict[str, Listed] = {}
        for domain in tables:
            assert isinstance(domain, Choice)
            keys = job.tables[domain.table].keys
            words = self.plan.desk.names(domain.table).exact
            further = {word: keys.index(name) + 1 for word, name in words.items() if word != name.casefold()}
            self.lists[domain.table] = Listed(keys, further)
        keywords = [word.name for word in self.plan.keywords]
        kinds = self.plan.desk.vocabulary.words["jobs"]
        further = {word: keywords.index(name) + 1 for word, name in kinds.items() if name in keywords}
        self.lists["jobs"] = Listed(keywords, further)
        for function in registered().values():
            if own := [own for own in function.own if own.choices]:
                assert own[0].choices is not None
                names = own[0].choices(self.plan.desk, job.name)
                self.lists[self.name_list(function.name)] = Listed(tuple(names), {})
        self.columns = self._columns()
        row = _FIRST + 3
        self.list_rows: dict[str, tuple[int, int]] = {}
        for name, listed in self.lists.items():
            self.list_rows[name] = (row, row + 2 * len(listed.names) + len(listed.words) - 1)
            row = self.list_rows[name][1] + 1
        self.keyword_row = row + 4
        row = self.keyword_row + len(self.plan.keywords) + 1
        self.choice_rows: dict[str, tuple[int, int]] = {}
        for key in self.columns:
            domain = job.inputs[key].domain
            assert isinstance(domain, Choice)
            row += 3
            count = len(job.tables[domain.table])
            self.choice_rows[key] = (row, row + count - 1)
            row += count + 1
        self.last_row = row

    def _columns(self) -> dict[str, dict[str, Expr]]:
        """Choice -> its columns, name -> tree; what is used once is written into its user."""
        found: dict[str, dict[str, Expr]] = {}
        for name, column in in_order(self.plan.columns).items():
            found.setdefault(column.choice, {})[name] = column.tree
        used = {
            name
            for chain in self.plan.chains
            for tree in (*chain.trees.values(), *chain.results, *chain.rules)
            for name in names_in(tree)
        } | {name for tree in self.plan.figures.values() for name in names_in(tree)}
        return {
            choice: compact(trees, [name for name in trees if name in used], self._text)
            for choice, trees in found.items()
        }

    def _text(self, tree: Expr) -> str:
        return sheet_formula(
            tree, lambda symbol: "$AB123" if symbol in self.plan.columns else self.book.cell_name(symbol)
        )

    # ------------------------------------------------------------------ addresses, as LAMBDA texts hold them
    def name_list(self, function: str) -> str:
        """The list of what an argument of a function may name."""
        return function.lower()

    def area(self, first: int, last: int, column: int) -> str:
        """A column between two rows."""
        from xlsxwriter.utility import xl_range_abs

        return f"{TITLE}!{xl_range_abs(first, column, last, column)}"

    def list_area(self, name: str, part: str) -> str:
        """A column of a list: text, row or words."""
        return self.area(*self.list_rows[name], _LIST_PARTS[part])

    def index_of(self, name: str, row: str) -> str:
        """A column of one choice at a row."""
        choice = self.plan.columns[name].choice
        at = 3 + list(self.columns[choice]).index(name)
        return f"INDEX({self.area(*self.choice_rows[choice], at)},{row})"

    def figure(self, tree: Expr, row: str) -> str:
        """A figure of a model at a row."""
        return written(tree, "sheet", lambda name: self.index_of(name, row), self.column)

    def default(self, key: str, keyword: str) -> str:
        """What an input is where no argument gives it: that of the keyword, or what stands on its sheet."""
        if key not in self.plan.inputs:
            return self.place(key)
        at = 3 + self.plan.inputs.index(key)
        if not any(key in word.inputs for word in self.plan.keywords):
            return self.area(self.keyword_row, self.keyword_row, at)
        return f"INDEX({self.area(self.keyword_row, self.keyword_row + len(self.plan.keywords) - 1, at)},{keyword})"

    def card(self, column: str, row: str) -> str:
        """A figure of a card at a row; its name where no column is said."""
        return f"INDEX({self.book.defined[card_column(self.book, column or None)]},{row})"

    def place(self, symbol: str) -> str:
        """The cell of a symbol. Its name says more, but engines that search all names for each use take long."""
        return self.book.defined[self.book.cell_name(symbol)]

    def column(self, table: str, column: str | None) -> str:
        """The cells of a table's column, for the same reason."""
        return self.book.defined[column_name(table, column)]


def write(book: Book) -> None:
    """The sheet, and the names of the functions, of a workbook that has them."""
    if book.provider != lambdas.LAMBDA:
        return
    lookups = book.lookups = Lookups(book)
    widest = max(len(columns) for columns in lookups.columns.values())
    page.plain_sheet(
        book, TITLE, kind=TITLE, last_column=4 + max(widest, len(lookups.plan.inputs)), stamp=False,
        sentence=book.template["functions"]["lookups"], rows_repeated=(0, 1), freeze=(2, 2),
    )  # fmt: skip
    _lists(book, lookups)
    _keywords(book, lookups)
    for choice, columns in lookups.columns.items():
        _choice(book, lookups, choice, columns)
    page.print_area(book.sheet(TITLE), lookups.last_row, 6)
    for name, text in lambdas.names(lookups.plan, lookups):
        book.workbook.define_name(name, f"={text}")


def _head(book: Book, row: int, heading: str, labels: Sequence[tuple[str, str]]) -> None:
    put, styles = book.putter(book.sheet(TITLE)), book.styles
    put(row, 1, heading, styles["th"])
    put(row + 1, 1, "", styles["th_ul"])
    for column, (label, unit) in enumerate(labels, 2):
        put(row, column, label, styles["th_r"])
        put(row + 1, column, unit, styles["th_u"])


def _lists(book: Book, lookups: Lookups) -> None:
    """Short forms, each where it means one name alone and is none itself; then the names, and further words."""
    put, styles = book.putter(book.sheet(TITLE)), book.styles
    words = book.template["functions"]
    _head(book, _FIRST, words["lists"], [(label, "") for label in words["list_columns"]])
    text = styles["r_text_r"]
    for name, (keys, further) in lookups.lists.items():
        first, last = lookups.list_rows[name]
        begin, end = first + len(keys), first + 2 * len(keys)
        exact, ends = f"$C${begin + 1}:$C${last + 1}", f"$E${begin + 1}:$E${end}"
        tails = [tail(key) for key in keys]
        known = Counter(each.casefold() for each in (*keys, *further, *tails))
        put(first, 1, name.replace("_", " "), styles["r_label"])
        for at, (key, short) in enumerate(zip(keys, tails, strict=True)):
            cell, place, ending = (page.cell(begin + at, column, column_fixed=True) for column in (2, 3, 4))
            count = f"SUMPRODUCT(({exact}={ending})*1)+SUMPRODUCT(({ends}={ending})*1)"
            own = short if known[short.casefold()] == 1 else ""
            put(first + at, 2, Raw(f'=IF({count}=1,{ending},"")', own), text)
            put(first + at, 3, at + 1, styles["r_calc0"])
            live = name in book.used_tables
            put(begin + at, 2, Raw(f"=INDEX({column_name(name, None)},{place})", key) if live else key, text)
            put(begin + at, 3, at + 1, styles["r_calc0"])
            slash, space = (f'MID({cell},FIND("{sign}",{cell})+1,LEN({cell}))' for sign in "/ ")
            put(begin + at, 4, Raw(f'=IFERROR({slash},IFERROR({space},""))', short), text)
            folded = f'="/"&SUBSTITUTE(SUBSTITUTE(LOWER({cell})," ","/"),"-","/")'
            put(begin + at, 5, Raw(folded, parts(key)), text)
        for at, (word, row) in enumerate(further.items(), end):
            put(at, 2, word, text)
            put(at, 3, row, styles["r_calc0"])


def _keywords(book: Book, lookups: Lookups) -> None:
    put, styles, job = book.putter(book.sheet(TITLE)), book.styles, book.job
    labels = [("", ""), *((job.inputs[key].label, job.inputs[key].unit) for key in lookups.plan.inputs)]
    _head(book, lookups.keyword_row - 2, book.template["functions"]["jobs"], labels)
    for at, keyword in enumerate(lookups.plan.keywords):
        row = lookups.keyword_row + at
        put(row, 1, keyword.name, styles["r_label"])
        put(row, 2, at + 1, styles["r_calc0"])
        for column, key in enumerate(lookups.plan.inputs, 3):
            value = keyword.inputs.get(key, job.worked[key])
            domain = job.inputs[key].domain
            if isinstance(domain, Choice):
                value = job.tables[domain.table].row_of(value)
            style = styles["r_text_r"] if value is None or isinstance(value, str) else styles["r_calc0"]
            put(row, column, "none" if value is None else value, style)


def _choice(book: Book, lookups: Lookups, choice: str, columns: Mapping[str, Expr]) -> None:
    from xlsxwriter.utility import xl_col_to_name

    put, styles, job = book.putter(book.sheet(TITLE)), book.styles, book.job
    first, last = lookups.choice_rows[choice]
    domain = job.inputs[choice].domain
    assert isinstance(domain, Choice)
    table = job.tables[domain.table]
    _head(
        book,
        first - 2,
        job.inputs[choice].label,
        [
            (book.template["functions"]["list_columns"][1], ""),
            *(_label(book, name, tree) for name, tree in columns.items()),
        ],
    )
    places = {name: at for at, name in enumerate(columns, 3)}
    number = styles.variant("r_calc0", format="general", shrink=True)

    def name_of(symbol: str) -> str:
        if symbol == choice:
            return f"$C{ROW}"
        return f"${xl_col_to_name(places[symbol])}{ROW}" if symbol in places else book.cell_name(symbol)

    formulas = {name: sheet_formula(tree, name_of) for name, tree in columns.items()}
    for row in range(first, last + 1):
        at = row - first + 1
        here = str(row + 1)
        put(row, 1, Raw(f"=INDEX({column_name(domain.table, None)},$C{here})", table.keys[at - 1]), styles["r_label"])
        put(row, 2, at, styles["r_calc0"])
        values: dict[str, Any] = {**book.values, choice: at}
        for name, tree in columns.items():
            values[name] = value_of(tree, values, job.tables)
            style = styles["r_text_r"] if isinstance(values[name], str) else number
            put(row, places[name], Raw(formulas[name].replace(ROW, here), values[name]), style)


def _label(book: Book, name: str, tree: Expr) -> tuple[str, str]:
    facts = book.job.terms.get(name)
    if facts:
        return facts.label, facts.unit
    words = in_words(tree, book.label_of)
    return words if len(words) <= _MOST_WORDS else words[: _MOST_WORDS - 1] + "…", ""

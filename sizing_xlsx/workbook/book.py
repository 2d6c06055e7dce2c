"""A workbook in the making: where each name stands, and every formula written with its value.

Sheets ask the book to write a tree; the book renders it with defined names, evaluates it with the reference
engine's values, and writes both. What a cell may hold: a tree (live formula), a Raw formula with its value, a
number, or a text (never taken for a formula).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ..formula.declare import Choice
from ..formula.domains import allowed, nearest
from ..formula.engine import value_of
from ..formula.expression import Expr, name
from ..formula.job import Job
from ..formula.render import column_name, public_name, ranges_in, sheet_formula
from ..formula.units import kind_of
from .own_runs import SPARE_ROWS
from .styles import Styles, load_look, workbook_options
from .words import filled, quoted, spelled

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

    from ..presets.catalogue import Presets
    from .own_runs import OwnRun
    from .provenance import Provenance
    from .public_runs import PublicRuns
    from .scenarios import Place, Scenarios
    from .served.cards import Cards
    from .served.models import Models
    from .served.runs import Runs
    from .sheets.compare import Compare
    from .sheets.crossover import Crossover
    from .sheets.levers import Levers
    from .sheets.lookups import Lookups
    from .sheets.search import Search
    from .sheets.sensitivity import Sensitivity
    from .sheets.sharding import Sharding
    from .sheets.what_if import WhatIf


FAILED = "Checks_Failed"  # how many checks of the job do
TIME_FAILED = "Time_Checks_Failed"  # with those of its time
COST_FAILED = "Time_And_Cost_Checks_Failed"  # with those of its money, too: all of them
FORMULA_SIGNS = tuple("=+-@\t")  # how a text begins that a program may take for a formula


class Raw(NamedTuple):
    """A formula that is no tree (a fault, a reference, a count), with the value it has on the worked job."""

    formula: str
    value: Any

    @property
    def inner(self) -> str:
        """The formula as a part of another one."""
        return self.formula.removeprefix("=")


def told(text: str, **parts: Raw) -> Raw:
    """A text of a template as a formula with its value; parts: what its braces name."""
    formula = spelled(text, **{key: part.inner for key, part in parts.items()})
    return Raw(f"={formula}", filled(text, **{key: str(part.value) for key, part in parts.items()}))


@cache
def sheet_class() -> Any:
    """XlsxWriter's sheet, without its search of every formula for functions newer than the rules allow."""
    from xlsxwriter.worksheet import Worksheet

    class Sheet(Worksheet):  # type: ignore[misc]
        def _prepare_formula(self, formula: str, expand_future_functions: bool = False) -> str:
            return formula.removeprefix("=")

        def _xml_formula_element(self, formula: Any, result: Any, attributes: Any = ()) -> None:
            # The innermost loop. Attributes are an address, a number and a type, which need no escaping; XlsxWriter
            # leaves the type of an empty text out, and the cell then claims to be a number.
            marks = "".join([f' {key}="{value}"' for key, value in attributes])
            if result == "":
                marks += ' t="str"'
            value = self._escape_data(result) if isinstance(result, str) else result
            self.fh.write(f"<c{marks}><f>{self._escape_data(formula)}</f><v>{value}</v></c>")

    return Sheet


class Book:
    """One workbook of one job. See write_book() in build.py for the order in which its sheets are made."""

    what_if: WhatIf
    compare: Compare
    crossover: Crossover  # of those workbooks whose template asks for it
    levers: Levers
    search: Search
    sensitivity: Sensitivity
    sharding: Sharding  # of those workbooks whose template asks for it
    cards: Cards  # these of a workbook of serving
    models: Models
    runs: Runs
    scenarios: Scenarios
    provider: str  # of the Excel functions; see lambdas.py
    lookups: Lookups | None = None  # of those workbooks whose functions are names of their own
    scenario_place: Place | None = None
    public_runs: PublicRuns | None = None  # of those workbooks whose template asks for them
    chart_data_runs: int  # rows of Chart data, from 0, between which the figures of Validation's charts stand
    chart_data_end: int

    def __init__(
        self,
        path: Path | BinaryIO,
        job: Job,
        template: Mapping[str, Any],
        presets: Presets,
        version: str,
        data_date: str,
        provenance: Provenance,
        results: Sequence[OwnRun] = (),
    ) -> None:
        import xlsxwriter

        self.job, self.template, self.presets = job, template, presets
        self.words: Mapping[str, Any] = template["book"]  # those that all sheets share
        self.provenance, self.results = provenance, results
        self.stamp = filled(self.words["stamp"], version=version, date=data_date)
        self.footer = filled(self.words["footer"], file="&F", version=version)
        self.spare_rows = SPARE_ROWS  # of Validation, for runs that come later
        self.told: dict[str, str] = {}  # further provenance, of figures on Validation
        self.look = load_look()
        check, word = self.words["check_input"], self.look["states"]["check"]["word"]
        if not check.casefold().startswith(word.casefold()):
            raise ValueError(f'book.toml: check_input is "{check}"; it must begin with "{word}", as look.toml says')
        self.workbook = xlsxwriter.Workbook(
            str(path) if isinstance(path, Path) else path,
            {**workbook_options(self.look), "strings_to_formulas": False, "strings_to_urls": False, "in_memory": True},
        )
        self.styles = Styles(self.workbook, self.look)
        self.values: dict[str, Any] = job.reference()
        self.units: dict[str, str] = {}
        self.defined: dict[str, str] = {}
        self.derived: list[tuple[str, str, Expr]] = []
        self.sentences: dict[str, Any] = {}
        self.aliases: dict[str, str] = {}
        self.guards: dict[str, Any] = {}
        self.used_columns = {found for key in job.order for found in ranges_in(job.trees[key])}
        names = {table for table, _ in self.used_columns}
        names |= {declared.domain.table for declared in job.inputs.values() if isinstance(declared.domain, Choice)}
        self.used_tables = {name: table for name, table in job.tables.items() if name in names}
        self.sheets: dict[str, Worksheet] = {}

    # ------------------------------------------------------------------ what its record says
    @property
    def called(self) -> str:
        """Which of the workbooks it is."""
        return self.job.name

    def standards(self) -> Mapping[str, Sequence[Any]]:
        """What cells that may be typed in hold in a workbook that opens on its template: name -> down its column."""
        return {public_name(key): [self.job.worked[key]] for key in self.job.inputs}

    def may_be(self, name: str) -> str:
        """What may be typed into a single cell, in words; "" where it is no input."""
        key = next((key for key in self.job.inputs if public_name(key) == name), None)
        return allowed(self.job, key) if key else ""

    # ------------------------------------------------------------------ names
    def cell_name(self, symbol: str) -> str:
        """The defined name that formulas use for a symbol; an input is read after its check."""
        if symbol in self.aliases:
            return self.aliases[symbol]
        return public_name(symbol) + ("_In_Force" if symbol in self.job.inputs else "")

    def define(self, defined: str, sheet: str, row: int, column: int, last_row: int | None = None) -> None:
        """Give a cell, or a column from row to last_row, a name."""
        from xlsxwriter.utility import xl_rowcol_to_cell

        if defined in self.defined:
            raise ValueError(f"the name {defined} is defined twice: {self.defined[defined]}")
        area = xl_rowcol_to_cell(row, column, row_abs=True, col_abs=True)
        if last_row is not None:
            area += ":" + xl_rowcol_to_cell(last_row, column, row_abs=True, col_abs=True)
        self.defined[defined] = f"'{sheet}'!{area}"
        self.workbook.define_name(defined, f"='{sheet}'!{area}")

    def external(self, symbol: str, unit: str, value: Any) -> None:
        """A figure that a sheet, not the graph, provides; sentences may use it like a term."""
        self.units[symbol], self.values[symbol] = unit, value

    def derive(self, symbol: str, unit: str, tree: Expr) -> None:
        """A figure of this workbook alone, from terms and external figures; it gets a row on Workings."""
        self.derived.append((symbol, unit, tree))
        self.external(symbol, unit, self.value(tree))

    def say(self, key: str, tree: Any) -> None:
        """A live sentence; it gets a row on Workings and may be used in later ones."""
        self.sentences[key] = tree
        self.aliases[key] = public_name(key) + "_Sentence"
        self.external(key, "text", self.value(tree) if isinstance(tree, Expr) else tree)

    def label_of(self, symbol: str) -> str:
        """What a reader calls a symbol."""
        for facts in (self.job.terms, self.job.constants, self.job.inputs):
            if symbol in facts:
                return str(facts[symbol].label)
        return symbol.replace("_", " ")

    def shown(self, content: Any, words: str = "–", failed: str = FAILED) -> Raw:
        """A formula that gives way to words while an input is faulty."""
        return self.guarded(content, quoted(words), failed)

    def displayed(self, tree: Expr) -> Raw:
        """A figure that gives way to a dash where what it rests on is faulty; for display alone."""
        return Raw(f'=IFERROR({sheet_formula(tree, self.cell_name, column_name)[1:]},"–")', self.value(tree))

    def guarded(self, content: Any, instead: str, failed: str = FAILED) -> Raw:
        """A formula that gives way to another while an input is faulty. failed: the checks that it rests on."""
        if isinstance(content, Expr):
            formula = sheet_formula(content, self.cell_name, column_name)
            value = self.value(content)
        else:
            formula, value = content.formula, content.value
        return Raw(f"=IF({failed}>0,{instead},{formula[1:]})", value)

    def sym(self, symbol: str) -> Expr:
        """A reference to an input, constant, term or external figure."""
        if symbol in self.units:
            return name(symbol, kind_of(self.units[symbol]))
        try:
            unit = self.job.unit_of(symbol)
        except KeyError:
            known = (*self.units, *self.job.inputs, *self.job.constants, *self.job.terms)
            where = f"templates/{self.job.name}.toml"
            raise ValueError(
                f"{where}: {symbol} is no input, term, constant or earlier sentence{nearest(symbol, known)}"
            ) from None
        return name(symbol, kind_of(unit))

    def value(self, tree: Expr) -> Any:
        """What a tree is worth on the worked job."""
        return value_of(tree, self.values, self.job.tables)

    # ------------------------------------------------------------------ cells
    def sheet(self, title: str) -> Worksheet:
        """The sheet of that title, added at its first mention."""
        if title not in self.sheets:
            self.sheets[title] = self.workbook.add_worksheet(title, sheet_class())
        return self.sheets[title]

    def put(self, ws: Worksheet, row: int, column: int, content: Any, style: Any) -> None:
        """Write one cell."""
        if content is None:
            ws.write_blank(row, column, None, style)
        elif isinstance(content, Expr):
            ws.write_formula(
                row, column, sheet_formula(content, self.cell_name, column_name), style, self.value(content)
            )
        elif isinstance(content, Raw):
            ws.write_formula(row, column, content.formula, style, content.value)
        elif isinstance(content, str):
            quoted = content[:1] in FORMULA_SIGNS and len(content) > 1
            ws.write_string(row, column, content, self.styles.quoted(style) if quoted else style)
        else:
            ws.write_number(row, column, content, style)

    def putter(self, ws: Worksheet) -> Any:
        """put() bound to a sheet, as page furniture wants it."""
        return lambda row, column, content, style: self.put(ws, row, column, content, style)

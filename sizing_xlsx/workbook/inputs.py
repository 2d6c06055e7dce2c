"""Inputs on a sheet: the cell, its dropdown or bounds, its check, and the value in force; all from one declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..formula.declare import Choice, Input, Number, Whole
from ..formula.domains import allowed
from ..formula.render import column_name, public_name
from . import page
from .jobtable import NOT_GIVEN
from .words import filled

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

    from .book import Book

LONGEST_TITLE, LONGEST_MESSAGE = 32, 255  # characters of a prompt's title and text


class CheckedInput(NamedTuple):
    """The formulas of one input's row on the Checks sheet; `{row}` stands for the row's number."""

    row_found: str | None
    fault: str


def typed_style(declared: Input) -> str:
    """The style of an input's cell."""
    if isinstance(declared.domain, Choice) or (isinstance(declared.domain, Whole) and declared.domain.word):
        return "in_text"
    return "in_dec" if isinstance(declared.domain, Number) else "in_num"


def write_input(book: Book, ws: Worksheet, sheet: str, row: int, column: int, key: str, style: Any = None) -> None:
    """The typed cell of an input, with its name, its validation and its prompt."""
    declared = book.job.inputs[key]
    book.put(ws, row, column, declared.default, style or book.styles[typed_style(declared)])
    book.define(public_name(key), sheet, row, column)
    ws.data_validation(row, column, row, column, validation(book, key))
    here = (row, column, row, column)
    if declared.follows_job:
        page.formula_marks(ws, book.styles, here, "=Scenario_Row>0", "idle", alone=True)
    page.formula_marks(ws, book.styles, here, f"={public_name(key)}_Fault=1", "check")
    if declared.optional and any(key == override.input_name for override in book.job.overrides.values()):
        page.own_marks(ws, book.styles, here, f"=ISNUMBER({public_name(key)})")


def validation(book: Book, key: str, cell: str = "", highest: str = "") -> dict[str, Any]:
    """The data validation of an input: a dropdown over a table's names, or bounds.

    cell: the first cell, where the input is a column of a job table and not the cell of its name; there an
    optional input that is not given says NOT_GIVEN. highest: what a bound that is a term is in that row.
    """
    declared = book.job.inputs[key]
    domain = declared.domain
    not_given = NOT_GIVEN if declared.optional and cell else ""
    right = allowed(book.job, key)
    if not_given:
        right = filled(book.words["prompt"]["or_word"], right=right, word=not_given)
    rule = {"ignore_blank": declared.optional and not cell, **prompt(book, declared.label, declared.help, right)}
    if isinstance(domain, Choice):
        return {**rule, "validate": "list", "source": "=" + column_name(domain.table, None)}
    word = domain.word if isinstance(domain, Whole) and domain.word else not_given
    if word:
        name = cell or public_name(key)
        high = domain.high if not isinstance(domain.high, str) else highest or public_name(domain.high)
        whole = f"*({name}=INT({name}))" if isinstance(domain, Whole) else ""
        in_range = f"({name}>={domain.low})*({name}<={high}){whole}=1"
        return {**rule, "validate": "custom", "value": f'=IF(ISNUMBER({name}),{in_range},{name}="{word}")'}
    kind = "integer" if isinstance(domain, Whole) else "decimal"
    return {**rule, "validate": kind, "criteria": "between", "minimum": domain.low, "maximum": domain.high}


def prompt(book: Book, label: str, what: str, right: str) -> dict[str, Any]:
    """What a cell says when it is chosen, and when something else is typed: what it is, and what is right."""
    words = book.words["prompt"]
    return {
        "input_title": label[:LONGEST_TITLE],
        "input_message": _cut(filled(words["message"], what=what, right=right)),
        "error_title": label[:LONGEST_TITLE],
        "error_message": _cut(filled(words["refused"], right=right)),
        "error_type": "stop",
    }


def fault_formulas(book: Book, key: str, row: int) -> CheckedInput:
    """How the Checks sheet finds fault with an input: 1 when it is not what it must be, else 0.

    The row holds the value as entered in column C, the lowest and highest in E and F, and a choice's row in G. An
    optional input that is not given is a blank cell on Sizing, and NOT_GIVEN in a row of Scenarios.
    """
    declared = book.job.inputs[key]
    domain, typed = declared.domain, f"$C{row}"
    if isinstance(domain, Choice):
        names = column_name(domain.table, None)
        found = f"=IF(ISNUMBER(MATCH({typed},{names},0)),MATCH({typed},{names},0),0)"
        return CheckedInput(found, f"=IF($G{row}>0,1-(INDEX({names},$G{row})={typed}),1)")
    whole = f"*({typed}=INT({typed}))" if isinstance(domain, Whole) else ""
    in_range = f"1-({typed}>=$E{row})*({typed}<=$F{row}){whole}"
    if isinstance(domain, Whole) and domain.word:
        word = f'IF(ISTEXT({typed}),1-({typed}="{domain.word}"),1)'
        return CheckedInput(None, f"=IF(ISNUMBER({typed}),{in_range},{word})")
    if declared.optional:
        absent = f"1-ISBLANK({public_name(key)})"
        if declared.follows_job:
            absent = f'IF(Scenario_Row>0,1-({typed}="{NOT_GIVEN}"),{absent})'
        return CheckedInput(None, f"=IF(ISNUMBER({typed}),{in_range},{absent})")
    return CheckedInput(None, f"=IF(ISNUMBER({typed}),{in_range},1)")


def row_fault(book: Book, key: str, cell: str, bounds: tuple[str, str]) -> str:
    """How a row of a job table finds fault with one of its inputs: 1 when it is not what it must be, else 0.

    bounds: the cells that hold the lowest and the highest value; no highest where a rule between inputs sets it.
    """
    declared = book.job.inputs[key]
    domain = declared.domain
    if isinstance(domain, Choice):
        return f"=IF(ISTEXT({cell}),1-SUMPRODUCT(({column_name(domain.table, None)}={cell})*1),1)"
    whole = f"*({cell}=INT({cell}))" if isinstance(domain, Whole) else ""
    highest = f"*({cell}<={bounds[1]})" if bounds[1] else ""
    in_range = f"1-({cell}>={bounds[0]}){highest}{whole}"
    word = domain.word if isinstance(domain, Whole) and domain.word else NOT_GIVEN if declared.optional else ""
    other = f'IF(ISTEXT({cell}),1-({cell}="{word}"),1)' if word else "1"
    return f"=IF(ISNUMBER({cell}),{in_range},{other})"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"

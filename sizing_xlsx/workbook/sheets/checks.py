"""Checks: each input held against what it may be, each rule between inputs, each sum; and the inputs in force.

A faulty input is never used: what formulas read is #N/A while it is at fault, and the strip says CHECK INPUT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.declare import Choice, Number, Whole
from ...formula.domains import allowed
from ...formula.expression import Expr
from ...formula.render import public_name
from .. import page
from ..book import Raw
from ..inputs import fault_formulas
from ..words import sentence

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Checks"
SUMS = (
    ("traced_items_add_up", "The traced line items add up to the traced peak"),
    ("published_items_add_up", "The published line items add up to the published peak"),
)
WIDTHS = (3, 30, 26, 44, 14, 14, 8, 9, 26, 70, 2)


def write(book: Book) -> None:
    """One row a check; names Checks_Failed, Checks_Count, Warnings_Raised, First_Fault, First_Warning."""
    ws, styles, job = book.sheet(TITLE), book.styles, book.job
    put = book.putter(ws)
    last = page.set_page(
        ws,
        book.look,
        kind="Checks",
        widths=WIDTHS,
        file_and_version=book.footer,
        rows_repeated=(0, 1),
        freeze=(2, 2),
    )
    everything_passes = Raw('=IF(Checks_Failed>0,First_Fault,"All checks pass.")', "All checks pass.")
    page.plain_head(ws, styles, last_column=last, title=TITLE, sentence=everything_passes, stamp=book.stamp, put=put)

    row = _header(
        book,
        2,
        last,
        "Inputs",
        ("Input", "As entered", "Allowed", "Lowest", "Highest", "Row", "Fault", "In force", "What is wrong"),
    )
    first = row
    for key, declared in job.inputs.items():
        _input_row(book, row, key, declared)
        row += 1
    last_input = row - 1
    inputs_range = f"$H${first + 1}:$H${last_input + 1}"

    row = _header(book, row, last, "Rules between inputs", ("Rule", "", "", "", "", "", "Fault", "", "What is wrong"))
    rules = row
    for key, rule in job.checks.items():
        if rule.fault:
            _rule_row(book, row, key, rule.message, f"=IF(SUM({inputs_range})>0,0,1-{public_name(key)})")
            row += 1
    for key, words in SUMS:
        _rule_row(book, row, key, words + ".", f"=IF(SUM({inputs_range})>0,0,1-{public_name(key)})")
        row += 1
    last_rule = row - 1

    row = _header(book, row, last, "Warnings", ("Warning", "", "", "", "", "", "Raised", "", "What to know"))
    warnings = row
    for key, rule in job.checks.items():
        if not rule.fault:
            _rule_row(book, row, key, rule.message, f"=IF(SUM({inputs_range})>0,0,1-{public_name(key)})")
            row += 1
    last_warning = row - 1

    row = _header(book, row, last, "Result", ("Figure", "Value", "", "", "", "", "", "", ""))
    faults, everything = f"$H${first + 1}:$H${last_rule + 1}", f"$J${first + 1}:$J${last_rule + 1}"
    raised, told = f"$H${warnings + 1}:$H${last_warning + 1}", f"$J${warnings + 1}:$J${last_warning + 1}"
    count = (last_input - first + 1) + (last_rule - rules + 1)
    for label, name, formula, value in (
        ("Checks that fail", "Checks_Failed", f"=SUM({faults})", 0),
        ("Checks", "Checks_Count", f"=COUNT({faults})", count),
        ("Warnings", "Warnings_Raised", f"=SUM({raised})", 0),
        (
            "First fault",
            "First_Fault",
            f'=IF(Checks_Failed>0,INDEX({everything},MATCH(1,{faults},0)),"none")',
            "none",
        ),
        (
            "First warning",
            "First_Warning",
            f'=IF(Warnings_Raised>0,INDEX({told},MATCH(1,{raised},0)),"none")',
            "none",
        ),
    ):
        put(row, 1, label, styles["r_label"])
        put(row, 2, Raw(formula, value), styles["r_calc0" if isinstance(value, int) else "r_text_r"])
        book.define(name, TITLE, row, 2)
        row += 1
    page.formula_marks(ws, styles, (first, 7, last_warning, 7), f"=$H{first + 1}=1", "check")
    page.print_area(ws, row, last)


def _header(book: Book, row: int, last: int, name: str, columns: tuple[str, ...]) -> int:
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    row = page.section(ws, styles, row, last_column=last, name=name, put=put, space_below=False)
    ws.set_row(row, book.look["rows"]["header"])
    for column, text in enumerate(columns, 1):
        numeric = text in ("As entered", "Lowest", "Highest", "Row", "Fault", "Raised", "In force", "Value")
        put(row, column, text, styles["th_r" if numeric else "th_i" if column == len(columns) else "th"])
    return row + 1


def _input_row(book: Book, row: int, key: str, declared: Any) -> None:
    ws, styles, job = book.sheet(TITLE), book.styles, book.job
    put = book.putter(ws)
    number, name, domain = row + 1, public_name(key), declared.domain
    plain = styles.variant("r_calc0", format="general")
    found = fault_formulas(book, key, number)
    empty = declared.optional
    shown = "empty" if declared.default is None else declared.default
    put(row, 1, declared.label, styles["r_label"])
    put(
        row,
        2,
        Raw(f'=IF(ISBLANK({name}),"empty",{name})', shown),
        styles["r_text_r"] if isinstance(shown, str) else plain,
    )
    put(row, 3, allowed(job, key) + (", or empty" if empty else ""), styles["r_help"])
    for column, bound in ((4, getattr(domain, "low", None)), (5, getattr(domain, "high", None))):
        content: Any = bound
        if isinstance(bound, str):
            content = Raw("=" + public_name(bound), book.values[bound])
        put(row, column, "" if isinstance(domain, Choice) else content, plain)
    row_found = "" if found.row_found is None else Raw(found.row_found, _row_of(book, key, declared))
    put(row, 6, row_found, plain)
    put(row, 7, Raw(found.fault, 0), styles["r_calc0"])
    book.define(name + "_Fault", TITLE, row, 7)
    if empty:
        put(row, 8, "as entered", styles["r_none"])
    else:
        put(
            row,
            8,
            Raw(f"=IF($H{number}=0,{name},NA())", declared.default),
            styles["r_text_r"] if isinstance(declared.default, str) else plain,
        )
        book.define(name + "_In_Force", TITLE, row, 8)
    label = declared.label.replace('"', "")
    words = f'=IF($H{number}=0,"–","{label} is "&$C{number}&"; enter "&$D{number}&".")'
    put(row, 9, Raw(words, "–"), styles["r_text_i"])


def _row_of(book: Book, key: str, declared: Any) -> int:
    row: int = book.job.tables[declared.domain.table].row_of(declared.default)
    return row


def _rule_row(book: Book, row: int, key: str, message: str, fault: str) -> None:
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    rule = book.job.terms[key].help.removeprefix("1 when ").partition(":")[0].rstrip(".")
    put(row, 1, rule[0].upper() + rule[1:], styles["r_label"])
    for column in range(2, 9):
        put(row, column, "", styles["r_label"])
    passes = bool(book.values[key])
    put(row, 7, Raw(fault, 0 if passes else 1), styles["r_calc0"])
    book.define(public_name(key) + "_Fault", TITLE, row, 7)
    tree = sentence(_shown_message(book, message), book.sym)
    if isinstance(tree, Expr):
        value = "–" if passes else book.value(tree)
        from ...formula.render import column_name, sheet_formula

        text = sheet_formula(tree, book.cell_name, column_name)[1:]
        put(row, 9, Raw(f'=IF($H{row + 1}=0,"–",{text})', value), styles["r_text_i"])
    else:
        put(row, 9, tree, styles["r_text_i"])


def _shown_message(book: Book, message: str) -> str:
    """A check's message with its symbols shown as a sheet shows them: numbers without decimals, no quotes."""
    import re

    def slot(found: re.Match[str]) -> str:
        symbol = found[1]
        unit = book.job.unit_of(symbol)
        declared = book.job.inputs.get(symbol)
        word = declared is not None and isinstance(declared.domain, Whole) and declared.domain.word
        return f"{{{symbol}}}" if unit == "text" or word else f"{{{symbol}:0}}"

    text = re.sub(r"\{([a-z0-9_]+)(?:![a-z])?\}", slot, message)
    for symbol in re.findall(r"(?<!\{)\b([a-z0-9]+(?:_[a-z0-9]+)+)\b(?![:}])", text):
        if symbol in book.job.inputs or symbol in book.job.terms:
            text = text.replace(f" {symbol} ", f" {book.label_of(symbol)} ")
            text = re.sub(rf"^{symbol} ", f"{book.label_of(symbol)} ", text)
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


__all__ = ["Number", "write"]

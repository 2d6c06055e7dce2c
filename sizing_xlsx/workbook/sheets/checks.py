"""Checks: each input held against what it may be, each rule between inputs, each sum; and the inputs in force.

A faulty input is never used: what formulas read is #N/A while it is at fault, and the strip says CHECK INPUT. Inputs
of time withdraw its figures and the cost, and no verdict; those of money the cost alone. Their checks stand below the
others and count apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...formula.declare import Choice, Input, Whole
from ...formula.domains import allowed
from ...formula.expression import Expr
from ...formula.render import column_name, public_name, sheet_formula
from .. import page
from ..book import COST_FAILED, FAILED, TIME_FAILED, Raw
from ..inputs import fault_formulas
from ..jobtable import NOT_GIVEN
from ..scenarios import AS_TYPED, CHOICE, KEYS, NAMED, input_area
from ..styles import HIDDEN
from ..words import check_words, filled, quoted, sentence, spelled

if TYPE_CHECKING:
    from ...formula.job import Job
    from ..book import Book

TITLE = "Checks"
LAYERS = ("job", "time", "cost")  # of a job: faults of each withdraw its own figures and those of the ones after it
SUMS = {  # rule, of the jobs that have it -> its words
    "traced_items_add_up": "traced_sum",
    "published_items_add_up": "published_sum",
    "engine_items_add_up": "engine_sum",
}
_FORMS = ("th", "th_r", "th_i", "th_r", "th_r", "th_r", "th_r", "th_r", "th_i")  # of a header
_CHOICE = 4  # row of the job that is chosen, from 0
_FIRST_INPUT = 5  # row of the first input
_FAULT, _IN_FORCE, _WORDS = 7, 8, 9  # columns H, I, J


def write(book: Book) -> None:
    """One row a check; names Checks_Failed, Checks_Count, Warnings_Raised, First_Fault, First_Warning.

    Time_Checks_Failed holds for those of the job and of its time, Time_And_Cost_Checks_Failed and
    First_Time_And_Cost_Fault for all.
    """
    ws, styles, job, words = book.sheet(TITLE), book.styles, book.job, book.template["checks"]
    last = page.plain_sheet(
        book,
        TITLE,
        title=words["title"],
        sentence=Raw(
            f"=IF({COST_FAILED}>0,First_Time_And_Cost_Fault,"
            f"IF(Warnings_Raised>0,First_Warning,{quoted(words['pass'])}))",
            first_warning(book) if open_warnings(book) else words["pass"],
        ),
    )
    row = first = _header(book, 2, last, words["inputs"])
    assert first == _CHOICE
    _choice_row(book, row)
    row += 1
    ends, of_job = list[int](), ""
    for layer, kind in enumerate(LAYERS):
        if layer:
            row = _header(book, row, last, words["inputs"] | words[f"{kind}_inputs"])
        row = _input_rows(book, row, [key for key in job.inputs if job.layers[key] == layer])
        above = f"$H${first + 1}:$H${row}"
        rules = {k: rule.message for k, rule in job.checks.items() if rule.fault and job.layers[k] == layer}
        if not layer:
            rules |= {key: words[SUMS[key]] for key in sums_of(job)}
        row = _rule_rows(book, _header(book, row, last, words["rules"] | words.get(f"{kind}_rules", {})), rules, above)
        ends.append(row)
        of_job = of_job or above
    row = told = _header(book, row, last, words["warnings"])
    told_of = {key: rule.message for key, rule in job.checks.items() if not rule.fault and key not in job.beside}
    row = _rule_rows(book, row, told_of, of_job)
    warnings = (told, row)
    page.formula_marks(ws, styles, (first, _FAULT, row - 1, _FAULT), f"=$H{first + 1}=1", "check")
    row = _results(book, row, last, first, ends, warnings)
    page.print_area(ws, row, last)


def sums_of(job: Job) -> tuple[str, ...]:
    """The sums of line items that a job is held against: some of SUMS."""
    return tuple(key for key in SUMS if key in job.terms)


def _input_rows(book: Book, row: int, keys: Iterable[str]) -> int:
    for key in keys:
        _input_row(book, row, key, book.job.inputs[key])
        row += 1
    return row


def _rule_rows(book: Book, row: int, messages: Mapping[str, str], above: str) -> int:
    for key, message in messages.items():
        _rule_row(book, row, key, message, above)
        row += 1
    return row


def bounds(job: Job, key: str) -> tuple[str, str]:
    """The cells with the lowest and the highest value of an input, for other sheets."""
    number = _FIRST_INPUT + list(job.inputs).index(key) + 1
    return f"{TITLE}!$E${number}", f"{TITLE}!$F${number}"


def _header(book: Book, row: int, last: int, words: Mapping[str, Any]) -> int:
    """A section and its header; words: its name and its columns. Columns without a name look like the first."""
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    row = page.section(ws, styles, row, last_column=last, name=words["name"], put=put, space_below=False)
    ws.set_row(row, book.look["rows"]["header"])
    for column, (text, form) in enumerate(zip(words["columns"], _FORMS, strict=True), 1):
        put(row, column, text, styles[form if text else "th"])
    return row + 1


def _choice_row(book: Book, row: int) -> None:
    """Which job is sized: Scenario_Row is the number of its row on Scenarios, 0 for what is typed on Sizing.

    Here alone it is decided what is in force: "As entered" below takes an input from that row, or from its cell.
    """
    put, styles, number = book.putter(book.sheet(TITLE)), book.styles, row + 1
    as_typed = book.scenarios.spec["as_typed"]
    text, plain = styles["r_text_r"], styles["r_calc0"]
    words = book.template["checks"]
    label = words["choice"]["name"]
    put(row, 1, label, styles["r_label"])
    put(row, 2, Raw(f'=IFERROR(IF({CHOICE}="",{AS_TYPED},{CHOICE}),{quoted(words["error"])})', as_typed),
        styles.variant("r_text_r", shrink=True))  # fmt: skip
    put(row, 3, filled(words["choice"]["allowed"], as_typed=as_typed), styles["r_help"])
    put(row, 4, "", plain)
    put(row, 5, "", plain)
    typed = f"$C{number}={AS_TYPED}"
    found = f"SUMPRODUCT(({KEYS}=$C{number})*{NAMED['number']})"
    put(row, 6, Raw(f"=IF($H{number}=0,IF({typed},0,{found}),0)", 0), plain)
    book.define("Scenario_Row", TITLE, row, 6)
    put(row, _FAULT, Raw(f"=IF({typed},0,1-(SUMPRODUCT(({KEYS}=$C{number})*1)=1))", 0), plain)
    book.define(f"{CHOICE}_Fault", TITLE, row, _FAULT)
    put(row, _IN_FORCE, Raw(f"=IF($H{number}=0,$C{number},NA())", as_typed), text)
    _unseen_error(book, row)
    wrong = filled(words["choice"]["wrong"], name=label, typed="{typed}", allowed="{allowed}")
    told = spelled(wrong, typed=f"$C{number}", allowed=f"$D{number}")
    put(row, _WORDS, Raw(f'=IF($H{number}=0,"–",{told})', "–"), styles["r_text_i"])
    book.sheet(TITLE).set_row(row, book.look["rows"]["table"])


def _input_row(book: Book, row: int, key: str, declared: Input) -> None:
    ws, styles = book.sheet(TITLE), book.styles
    put, words = book.putter(ws), book.template["checks"]
    number, name, domain = row + 1, public_name(key), declared.domain
    day = isinstance(domain, Whole) and domain.day
    plain = styles.variant("r_calc0", format="date" if day else "general")
    text = styles.variant("r_text_r", shrink=True, **({"format": "date"} if day else {}))
    found = fault_formulas(book, key, number)
    shown = words["empty"] if declared.default is None else declared.default
    put(row, 1, declared.label, styles["r_label"])
    typed = f'IF({name}="",{quoted(words["empty"])},{name})'
    if declared.follows_job:
        typed = f"IF(Scenario_Row>0,INDEX({input_area(book.scenarios, key)},Scenario_Row),{typed})"
    typed = f"=IFERROR({typed},{quoted(words['error'])})"
    put(row, 2, Raw(typed, shown), text if isinstance(shown, str) else plain)
    right = allowed(book.job, key)
    if declared.optional:
        right = filled(book.words["prompt"]["or_empty"], right=right)
    put(row, 3, _allowed(book, declared, right, number), styles.variant("r_help", indent=1))
    width = book.look["sheets"][TITLE]["widths"][3]
    ws.set_row(row, page.wrapped_height((right, width)))
    if isinstance(domain, Choice):
        put(row, 4, "", plain)
        put(row, 5, "", plain)
        put(row, 6, Raw(str(found.row_found), book.job.tables[domain.table].row_of(declared.default)), plain)
    else:
        highest = plain if day else styles.variant("r_calc0", shrink=True)
        bound = plain if isinstance(domain.low, float) or domain.low != int(domain.low) else highest
        put(row, 4, domain.low, bound)
        put(row, 5, _bound(book, domain.high, number), highest)
        put(row, 6, "", plain)
    put(row, _FAULT, Raw(found.fault, 0), styles["r_calc0"])
    book.define(name + "_Fault", TITLE, row, _FAULT)
    in_force = f'IF(ISNUMBER($C{number}),$C{number},"{NOT_GIVEN}")' if declared.optional else f"$C{number}"
    value = NOT_GIVEN if declared.default is None else declared.default
    put(row, _IN_FORCE, Raw(f"=IF($H{number}=0,{in_force},NA())", value), text if isinstance(value, str) else plain)
    _unseen_error(book, row)
    book.define(name + "_In_Force", TITLE, row, _IN_FORCE)
    wrong = filled(words["wrong_input"], input=declared.label, typed="{typed}", allowed="{allowed}")
    told = spelled(wrong, typed=_as_entered(book, declared, number), allowed=f"$D{number}")
    put(row, _WORDS, Raw(f'=IF($H{number}=0,"–",{told})', "–"), styles["r_text_i"])


def _unseen_error(book: Book, row: int) -> None:
    """Hide the error that keeps a wrong input out of every formula: what is wrong stands beside it, in words."""
    area = (row, _IN_FORCE, row, _IN_FORCE)
    page.formula_marks(book.sheet(TITLE), book.styles, area, f"=$H{row + 1}>0", HIDDEN)


def _allowed(book: Book, declared: Input, words: str, number: int) -> Any:
    """What is allowed; a bound that is a term is shown as the number it is now."""
    high = getattr(declared.domain, "high", None)
    if not isinstance(high, str):
        return words
    before, _, after = words.partition(f"the {high.replace('_', ' ')}")
    return Raw(f"={quoted(before)}&$F{number}&{quoted(after)}", f"{before}{book.values[high]}{after}")


def _as_entered(book: Book, declared: Input, number: int) -> str:
    """What was entered; where a number is wanted, a text that looks like one says that it is a text.

    A number that is refused is no day in a sentence: programs disagree on those before March 1900.
    """
    typed = f"$C{number}"
    if isinstance(declared.domain, Choice):
        return typed
    if isinstance(declared.domain, Whole) and declared.domain.day:
        return f"IF(ISNUMBER({typed}),{quoted(book.template['checks']['no_day'])},{typed})"
    as_text = quoted(book.template["checks"]["as_text"])
    return f'{typed}&IF(ISTEXT({typed}),IF(ISNUMBER(1*{typed}),{as_text},""),"")'


def _bound(book: Book, high: float | str, number: int) -> Any:
    """The highest value; one that is a term stands aside while that term is not known."""
    if not isinstance(high, str):
        return high
    name = public_name(high)
    return Raw(f"=IF(ISNUMBER({name}),{name},$C{number})", book.values[high])


def _rule_row(book: Book, row: int, key: str, message: str, inputs: str) -> None:
    """A rule is judged where what it rests on, and what its sentence names, is known; else the row says it is not.

    A wrong input is #N/A to all formulas, so a rule that can be worked out rests on none. An error while every input is
    right stays an error.
    """
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    put(row, 1, rule_shown(book.job, key), styles["r_label"])
    for column in range(2, _WORDS):
        put(row, column, "", styles["r_label"])
    rule, not_judged = public_name(key), quoted(book.template["checks"]["not_judged"])
    fault = f"=IF($J{row + 1}={not_judged},0,1-{rule})"
    put(row, _FAULT, Raw(fault, 1 - book.values[key]), styles["r_calc0"])
    book.define(rule + "_Fault", TITLE, row, _FAULT)
    tree = sentence(shown_message(book, message), book.sym)
    formula = sheet_formula(tree, book.cell_name, column_name)[1:] if isinstance(tree, Expr) else quoted(tree)
    value = "–" if book.values[key] else _told(book, message)
    judged = f'IF({CHOICE}_Fault+1-{rule}<=0,"–",IF({CHOICE}_Fault>0,NA(),{formula}))'
    told = f"=IFERROR({judged},IF(SUM({inputs})>0,{not_judged},NA()))"
    put(row, _WORDS, Raw(told, value), styles["r_text_i"])


def rule_shown(job: Job, key: str) -> str:
    """What a rule asks for, from its term's help: what holds when it is 1."""
    rule = job.terms[key].help.removeprefix("1 when ").partition(":")[0].rstrip(".")
    return rule[0].upper() + rule[1:]


def _told(book: Book, message: str) -> str:
    tree = sentence(shown_message(book, message), book.sym)
    return str(book.value(tree) if isinstance(tree, Expr) else tree)


def shown_message(book: Book, message: str) -> str:
    """A check's message for a template: labels in place of names, as many decimals as it says, no quotes."""
    return check_words(book.job, message, book.label_of)


def open_warnings(book: Book) -> list[str]:
    """The messages of the warnings that the job the workbook opens on raises."""
    told = [key for key, rule in book.job.checks.items() if not rule.fault and key not in book.job.beside]
    return [book.job.checks[key].message for key in told if not book.values[key]]


def first_warning(book: Book) -> str:
    """The first warning of the job the workbook opens on, in words; NOT_GIVEN when there is none."""
    messages = open_warnings(book)
    return _told(book, messages[0]) if messages else NOT_GIVEN


def _results(book: Book, row: int, last: int, first: int, ends: Sequence[int], warnings: tuple[int, int]) -> int:
    """ends: the row after the last check of the job, of its time, and of its money."""
    put, styles, words = book.putter(book.sheet(TITLE)), book.styles, book.template["checks"]["results"]
    row = _header(book, row, last, words)
    faults, time_faults, all_faults = (f"$H${first + 1}:$H${end}" for end in ends)
    wrong, _, all_wrong = (f"$J${first + 1}:$J${end}" for end in ends)
    raised, told = (f"${column}${warnings[0] + 1}:${column}${warnings[1]}" for column in "HJ")
    raised_now, none = len(open_warnings(book)), quoted(NOT_GIVEN)
    for label, name, formula, value in (
        ("failed", FAILED, f"SUM({faults})", 0),
        ("time_failed", TIME_FAILED, f"SUM({time_faults})", 0),
        ("cost_failed", COST_FAILED, f"SUM({all_faults})", 0),
        ("count", "Checks_Count", f"COUNT({faults})", book.values["checks_count"]),
        ("warnings", "Warnings_Raised", f"SUM({raised})", raised_now),
        ("first_fault", "First_Fault", f"IF({FAILED}>0,INDEX({wrong},MATCH(1,{faults},0)),{none})", NOT_GIVEN),
        (
            "first_time_fault",
            "First_Time_And_Cost_Fault",
            f"IF({COST_FAILED}>0,INDEX({all_wrong},MATCH(1,{all_faults},0)),{none})",
            NOT_GIVEN,
        ),
        (
            "first_warning",
            "First_Warning",
            f"IF(Warnings_Raised>0,INDEX({told},MATCH(1,{raised},0)),{none})",
            first_warning(book),
        ),
    ):
        put(row, 1, words[label], styles["r_label"])
        put(row, 2, Raw("=" + formula, value), styles["r_calc0" if isinstance(value, int) else "r_text_r"])
        book.define(name, TITLE, row, 2)
        row += 1
    return row

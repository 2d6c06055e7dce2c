"""Functions: the Excel functions that work beside this workbook, each with an example; who provides them is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...functions import registered
from ...functions.desk import DEFAULT_JOB, JOB, Desk
from ...functions.page import allowed_of, answer, brief, formula, shown
from ...functions.signature import TABLE, Function, described
from .. import lambdas, page

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Functions"


def write(book: Book) -> None:
    """The sheet; nothing where no one provides functions."""
    if book.provider == lambdas.NO_ONE:
        return
    ws, styles, words = book.sheet(TITLE), book.styles, book.template["functions"]
    put, widths = book.putter(ws), book.look["sheets"][TITLE]["widths"]
    last = page.plain_sheet(book, TITLE, title=words["title"], sentence=words["sentence"], rows_repeated=(0, 5))
    row = 2
    for told in (words["providers"][book.provider], words["names"], words["errors"]):
        put(row, 1, told, styles.variant("r_help", wrap=False, bottom=0))
        row += 1
    for column, label in enumerate(words["columns"], 1):
        put(row, column, label, styles["th" if column == 1 else "th_i"])
    desk = Desk(book.presets)
    for function in _offered(book):
        row += 1
        typed, gives = texts_of(book, function, desk)
        texts = (function.help, brief(function, words["job_arguments"]), typed, gives)
        ws.set_row(row, page.wrapped_height(*((text, widths[at]) for at, text in enumerate(texts, 2))))
        put(row, 1, function.name, styles["r_label"])
        for column, text in enumerate(texts, 2):
            put(row, column, text, styles.variant("r_help", indent=1))
    row = page.section(ws, styles, row + 2, last_column=last, name=words["job"], put=put, space_below=False)
    for column, label in enumerate(words["job_columns"], 1):
        put(row, column, label, styles["th" if column == 1 else "th_i"])
    only = book.job.name if book.provider == lambdas.LAMBDA else ""
    for argument in described(registered()["GPU_FITS"], desk, only):
        row += 1
        facts = (argument.help, allowed_of(argument))
        ws.set_row(row, page.wrapped_height(*((text, widths[at]) for at, text in enumerate(facts, 2))))
        put(row, 1, argument.name, styles["r_label"])
        for column, text in enumerate(facts, 2):
            put(row, column, text, styles.variant("r_help", indent=1))
    page.print_area(ws, row, last)


def texts_of(book: Book, function: Function, desk: Desk) -> tuple[str, str]:
    """An example of a function, and what it gives."""
    example = _example(book, function, desk)
    asked = example if JOB not in function.arguments else {JOB: _keyword(book, desk), **example}
    found = answer(function, asked, desk)
    gives = shown(found) if not isinstance(found, list) else " | ".join(map(shown, found[0]))
    return formula(function, example), gives


def _offered(book: Book) -> list[Function]:
    functions = list(registered().values())
    if book.lookups is None:
        return functions
    names = {name for name, _ in lambdas.names(book.lookups.plan, book.lookups)}
    return [function for function in functions if function.name in names and function.result.kind != TABLE]


def _example(book: Book, function: Function, desk: Desk) -> Mapping[str, Any]:
    """An example of the function about the job of this workbook: its own, or the same of the model that it opens on."""
    jobs = desk.vocabulary.jobs
    for example in function.examples:
        if JOB not in function.arguments or jobs[str(example.get(JOB) or DEFAULT_JOB)].job == book.job.name:
            return example
    first = function.examples[0]
    return {**first, "model": book.job.worked["base_model"]} if "model" in first else first


def _keyword(book: Book, desk: Desk) -> str:
    """The kind of job that a call is about, in this workbook, where it does not say."""
    return next(word.name for word in desk.vocabulary.jobs.values() if word.job == book.job.name)

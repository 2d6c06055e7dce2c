"""Live sentences: a template's text with {symbols} becomes a tree, so that a cell holds it and Python evaluates it.

In a template: "{batch_size:0} rows" shows a number with 0 decimals, "{share:%}" a percentage, "{count:B2}" billions
and "{count:M1}" millions with decimals, "{deadline_day:D}" a date, "{gpu_choice}" a text; "{batch_size:row|rows}" is
the first word where the number is shown as 1, else the second. A sentence may also be
{ switch = "checkpointing_on", on = "...", off = "..." } or { by = "verdict_case", cases = ["...", "..."] }.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..formula.declare import Whole
from ..formula.expression import Expr, lift
from ..formula.primitives import choose, dated, equal, fixed, joined, when

if TYPE_CHECKING:
    from ..formula.job import Job

_SLOT = re.compile(r"\{([a-z0-9_]+)(?::([0-4]|%[0-4]?|[BM][0-4]|D|[a-z ]+\|[a-z ]+))?\}")
_BRACE = re.compile(r"\{([a-z_]+)\}")


def sentence(text: Any, sym: Callable[[str], Expr]) -> Any:
    """The tree of a template's sentence; a plain text stays as it is.

    sym: what a symbol is. Raises ValueError for a form that does not exist, and what sym raises.
    """
    if isinstance(text, dict):
        if "switch" in text:
            return when(sym(text["switch"]) > 0, sentence(text["on"], sym), sentence(text["off"], sym))
        return choose(sym(text["by"]), *[sentence(case, sym) for case in text["cases"]])
    parts: list[Any] = []
    end = 0
    for slot in _SLOT.finditer(text):
        if slot.start() > end:
            parts.append(_plain(text[end : slot.start()], text))
        parts.append(_shown(sym(slot[1]), slot[2] or "", sym))
        end = slot.end()
    if end < len(text):
        parts.append(_plain(text[end:], text))
    if not _SLOT.search(text):
        return text
    return joined(*[lift(part) for part in parts])


def filled(text: str, /, **values: str) -> str:
    """A text of a template whose braces name things that are known when the workbook is made.

    Raises ValueError for a brace that names anything else.
    """
    try:
        return text.format(**values)
    except (LookupError, ValueError):
        known = ", ".join(f"{{{name}}}" for name in values)
        raise ValueError(f"the template says {text!r}; in braces it may say {known}") from None


def quoted(text: str) -> str:
    """A text as a formula says it."""
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def spelled(text: str, /, **formulas: str) -> str:
    """A text of a template as a piece of a formula; formulas: what each of its braces is there.

    Raises ValueError for a brace that names anything else.
    """
    filled(text, **formulas)
    pieces = _BRACE.split(text)  # words and names in turn
    said = [formulas[piece] if at % 2 else quoted(piece) for at, piece in enumerate(pieces) if piece]
    return "&".join(said) or '""'


def check_words(job: Job, message: str, label_of: Callable[[str], str]) -> str:
    """A check's message for a template: labels in place of names, as many decimals as it says, no quotes."""

    def slot(found: re.Match[str]) -> str:
        declared = job.inputs.get(found[1])
        word = declared is not None and isinstance(declared.domain, Whole) and declared.domain.word
        unit = job.unit_of(found[1])
        if unit == "text" or word:
            return f"{{{found[1]}}}"
        usual = {"date": "D", "share": "3"}.get(unit, "0")
        return f"{{{found[1]}:{found[2] or usual}}}"

    def label(found: re.Match[str]) -> str:
        known = found[0] in job.inputs or found[0] in job.terms
        return label_of(found[0]) if known else found[0]

    text = re.sub(r"(?<![\w{])[a-z]+(?:_[a-z0-9]+)+(?![\w}:!])", label, message)
    text = re.sub(r"\{([a-z0-9_]+)(?:![a-z])?(?::,?\.([0-4])f|:\.\dg)?\}", slot, text)
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _plain(piece: str, text: str) -> str:
    """Text between symbols; a brace in it is a slip."""
    if "{" in piece or "}" in piece:
        raise ValueError(
            f"the template says {text!r}; a symbol is written {{name}}, {{name:1}}, {{name:%}}, {{name:B2}}, {{name:D}}"
            f" or {{name:row|rows}}"
        )
    return piece


def _shown(symbol: Expr, form: str, sym: Callable[[str], Expr]) -> Any:
    if not form:
        return symbol
    if "|" in form:
        one, many = form.split("|")
        return when(equal(fixed(symbol, 0), "1"), one, many)
    if form == "D":
        return when(symbol > 0, dated(symbol), "–")
    if form.startswith("%"):
        return joined(fixed(symbol * sym("percent_count"), int(form[1:] or 0)), "%")
    if form[0] in "BM":
        return fixed(symbol / sym("one_billion" if form[0] == "B" else "one_million"), int(form[1:] or 0))
    return fixed(symbol, int(form))

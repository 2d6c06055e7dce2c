"""Texts of the function wizard, which shows 255 characters of each."""

from __future__ import annotations

from ..signature import NUMBER, Argument, Function
from .cells import MOST_TEXT, fitted


def of_function(function: Function) -> str:
    """What it computes, and the unit of its number."""
    unit = function.result.unit if function.result.kind == NUMBER else ""
    return fitted(f"{function.help} Result: {unit}." if unit else function.help)


def of_argument(argument: Argument) -> str:
    """What it is, what is taken where it is left out, what is allowed."""
    default = f"Left out: {argument.default}." if argument.default else "May be left out." if argument.optional else ""
    allowed = f"{argument.allowed[:1].upper()}{argument.allowed[1:]}."
    known = f"{fitted(argument.help, MOST_TEXT - len(default) - 1)} {default}".rstrip()
    room = MOST_TEXT - len(known) - 1
    return f"{known} {fitted(allowed, room)}" if room >= WORTH_IT else known


WORTH_IT = 24  # characters of what is allowed that help at all

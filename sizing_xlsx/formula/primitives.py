"""What Python's operators cannot say, one entry each: the rule for plain values, and how every surface writes it.

A primitive called with plain numbers computes; called with a tree in any argument it grows the tree. Its
surfaces stand next to each other in PRIMITIVES, so that a new one is written in one place.

Levels say how tightly a text binds: 0 comparison, 1 sum, 2 product, 3 power, 4 name or call. `needs` is the
level each argument must reach, else it is put in brackets; `level` is that of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .expression import Expr, condition, lift
from .units import same


class Primitive(NamedTuple):
    """How one operation is written: on one job in Python, on arrays, in a sheet, and for a reader."""

    scalar: str
    vector: str
    sheet: str
    words: str
    compute: Callable[..., Any]
    needs: tuple[int, ...] = ()
    level: int = 4


def _decimal(value: float, digits: int, rounding: str) -> Any:
    from decimal import Decimal

    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), rounding=rounding)


def _round_up(value: float, digits: int) -> float:
    return float(_decimal(value, digits, "ROUND_UP"))


def _round_down(value: float, digits: int) -> float:
    return float(_decimal(value, digits, "ROUND_DOWN"))


def _round(value: float, digits: int) -> float:
    return float(_decimal(value, digits, "ROUND_HALF_UP"))


def _fixed(value: float, digits: int) -> str:
    rounded = _decimal(value, digits, "ROUND_HALF_UP")
    return f"{abs(rounded) if rounded == 0 else rounded:,}"


def _iso(day: float) -> str:
    from .domains import date_of

    return date_of(day).isoformat()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and bool(value == value)  # NaN, the absent value of a column, is not


def _month(day: float, further: int) -> float:
    from .domains import date_of, day_of

    start = date_of(int(day))
    months = start.year * 12 + start.month - 1 + further
    return float(day_of(start.replace(year=months // 12, month=months % 12 + 1, day=1)))


def _root(room: float, slope: float, curvature: float) -> float:
    return float(2 * room / (slope + max(0, slope**2 + 2 * curvature * room) ** 0.5))


PRIMITIVES: dict[str, Primitive] = {
    "max": Primitive("max({*})", "maximum({*})", "MAX({*})", "largest of ({*})", max),
    "min": Primitive("min({*})", "minimum({*})", "MIN({*})", "smallest of ({*})", min),
    "when": Primitive(
        "({1} if {0} else {2})",
        "where({0}, {1}, {2})",
        "IF({0},{1},{2})",
        "({1} when {0}, else {2})",
        lambda c, a, b: a if c else b,
    ),
    "and": Primitive("({0} and {1})", "both({0}, {1})", "AND({0},{1})", "({0} and {1})", lambda a, b: a and b),
    "or": Primitive("({0} or {1})", "either({0}, {1})", "OR({0},{1})", "({0} or {1})", lambda a, b: a or b),
    "not": Primitive("(not {0})", "opposite({0})", "NOT({0})", "not ({0})", lambda a: not a),
    "is": Primitive("({0} == {1})", "equal({0}, {1})", "{0}={1}", "{0} is {1}", lambda a, b: a == b, (1, 1), 0),
    "given": Primitive(
        "({0} if is_number({0}) else {1})",
        "given({0}, {1})",
        "IF(ISTEXT({0}),{1},{0})",
        "({0} where entered, else {1})",
        lambda a, b: a if _is_number(a) else b,
    ),
    "floor": Primitive("floor({0})", "floor({0})", "INT({0})", "whole part of ({0})", math.floor),
    "row": Primitive("find({1}, {0})", "find({1}, {0})", "MATCH({0},{1},0)", "row of {0}", lambda key, keys: keys[key]),
    "cell": Primitive("{0}[int({1})]", "take({0}, {1})", "INDEX({0},{1})", "{0}", lambda column, row: column[row - 1]),
    "choose": Primitive(
        "({*1})[int({0}) - 1]",
        "choose({0}, {*1})",
        "CHOOSE({0},{*1})",
        "by {0}: ({*1})",
        lambda index, *values: values[int(index) - 1],
    ),
    "root": Primitive(
        "root({0}, {1}, {2})",
        "root({0}, {1}, {2})",
        "2*{0}/({1}+MAX(0,{1}^2+2*{2}*{0})^(1/2))",
        "2 · {0} / ({1} + root of ({1}² + 2 · {2} · {0}))",
        _root,
        (4, 4, 4),
        2,
    ),
    "round_up": Primitive("round_up({0}, {1})", "", "ROUNDUP({0},{1})", "{0} rounded up", _round_up),
    "round_down": Primitive("round_down({0}, {1})", "", "ROUNDDOWN({0},{1})", "{0} rounded down", _round_down),
    "round": Primitive("round_({0}, {1})", "", "ROUND({0},{1})", "{0} rounded", _round),
    "fixed": Primitive("fixed({0}, {1})", "", "FIXED({0},{1})", "{0}", _fixed),
    "iso": Primitive(
        "iso({0})",
        "",
        'YEAR({0})&"-"&IF(LEN(MONTH({0}))=1,"0","")&MONTH({0})&"-"&IF(LEN(DAY({0}))=1,"0","")&DAY({0})',
        "{0}",
        _iso,
        (4,),
        1,
    ),
    "join": Primitive("''.join(({*},))", "", "{*&}", "{*}", lambda *parts: "".join(parts), (2,), 1),
    "month_start": Primitive(
        "month_start({0})",
        "",
        "DATE(YEAR({0}),MONTH({0}),1)",
        "first day of the month of {0}",
        lambda day: _month(day, 0),
    ),
    "month_after": Primitive(
        "month_after({0})",
        "",
        "DATE(YEAR({0}),MONTH({0})+1,1)",
        "first day of the month after that of {0}",
        lambda day: _month(day, 1),
    ),
    "shown": Primitive(
        "({1} if {0} else {2})",
        "where({0}, {1}, nan)",
        "IF({0},{1},{2})",
        "({1} when {0}, else {2})",
        lambda c, a, b: a if c else b,
    ),
}
INFIX_LEVEL = {"<": 0, "<=": 0, ">": 0, ">=": 0, "+": 1, "-": 1, "*": 2, "/": 2}


def _grow(op: str, args: tuple[Any, ...], unit: str | None) -> Expr:
    return Expr(op, tuple(lift(a) for a in args), unit)


def _alike(op: str, args: tuple[Any, ...]) -> Any:
    """An operation whose arguments and result are of one kind."""
    if not any(isinstance(a, Expr) for a in args):
        return PRIMITIVES[op].compute(*args)
    unit: str | None = None
    for arg in args:
        unit = same(unit, lift(arg).unit, op)
    return _grow(op, args, unit)


def maximum(*values: Any) -> Any:
    """The largest of several values of one kind."""
    return _alike("max", values)


def minimum(*values: Any) -> Any:
    """The smallest of several values of one kind."""
    return _alike("min", values)


def floor(value: Any) -> Any:
    """The whole part, towards minus infinity."""
    return _alike("floor", (value,))


def when(test: Any, then: Any, otherwise: Any) -> Any:
    """One of two values of one kind. NumPy evaluates both: neither may divide by zero."""
    if not any(isinstance(a, Expr) for a in (test, then, otherwise)):
        return then if test else otherwise
    return _grow("when", (condition(test), then, otherwise), same(lift(then).unit, lift(otherwise).unit, "when"))


def either(test: Any, value: Any, words: str) -> Any:
    """A value, or words in its place where it has no meaning; the only way a number and a text share a cell."""
    if not any(isinstance(a, Expr) for a in (test, value)):
        return value if test else words
    return _grow("shown", (condition(test), value, words), lift(value).unit)


def given(value: Any, otherwise: Any) -> Any:
    """What was entered, or another value where nothing (or a word such as "all") was.

    In a sheet an absent value is a word, "none": so that an error stays an error and a blank never counts as 0.
    """
    if not any(isinstance(a, Expr) for a in (value, otherwise)):
        return value if _is_number(value) else otherwise
    return _grow("given", (value, otherwise), same(lift(value).unit, lift(otherwise).unit, "given"))


def choose(index: Any, *values: Any) -> Any:
    """The index-th (from 1) of several values of one kind."""
    if not any(isinstance(a, Expr) for a in (index, *values)):
        return values[int(index) - 1]
    unit: str | None = None
    for value in values:
        unit = same(unit, lift(value).unit, "choose")
    return _grow("choose", (index, *values), unit)


def square_root(value: Any) -> Any:
    """The square root of a count above 0."""
    if not isinstance(value, Expr):
        return PRIMITIVES["root"].compute(value, 0, 2)
    return _grow("root", (value, 0, 2), same("count", value.unit, "square root"))


def equal(a: Any, b: Any) -> Any:
    """Whether two whole numbers or two texts are the same; engines disagree on floats, so never on those."""
    if not any(isinstance(x, Expr) for x in (a, b)):
        return a == b
    same(lift(a).unit, lift(b).unit, "equal")
    return _grow("is", (a, b), "bool")


def opposite(test: Any) -> Any:
    """Not: the opposite of a condition."""
    return Expr("not", (condition(test),), "bool") if isinstance(test, Expr) else not test


def _digits(op: str, value: Any, digits: int, unit: str | None) -> Any:
    if not isinstance(value, Expr):
        return PRIMITIVES[op].compute(value, digits)
    return Expr(op, (value, Expr("number", (digits,), "count")), unit)


def round_up(value: Any, digits: int) -> Any:
    """Rounded away from zero, for display."""
    return _digits("round_up", value, digits, value.unit if isinstance(value, Expr) else None)


def round_down(value: Any, digits: int) -> Any:
    """Rounded towards zero, for display."""
    return _digits("round_down", value, digits, value.unit if isinstance(value, Expr) else None)


def rounded(value: Any, digits: int) -> Any:
    """Rounded, half away from zero, for display."""
    return _digits("round", value, digits, value.unit if isinstance(value, Expr) else None)


def month_start(day: Any) -> Any:
    """The first day of a day's month; days as sheets count them."""
    return _alike("month_start", (day,))


def month_after(day: Any) -> Any:
    """The first day of the month after that of a day; days as sheets count them."""
    return _alike("month_after", (day,))


def fixed(value: Any, digits: int) -> Any:
    """A number as words, with its thousands marked in the reader's own way."""
    return _digits("fixed", value, digits, "text")


def dated(day: Any) -> Any:
    """A day, as sheets count, in words: 2026-08-17. From 1 March 1900 on, before which programs disagree."""
    return Expr("iso", (day,), "text") if isinstance(day, Expr) else _iso(day)


def joined(*parts: Any) -> Any:
    """Texts one after another."""
    if not any(isinstance(p, Expr) for p in parts):
        return "".join(parts)
    return _grow("join", parts, "text")

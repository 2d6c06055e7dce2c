"""Partial evaluation: the trees of a job with some of its inputs fixed, shorter by all that follows from these.

What is fixed may be a value, or any tree in place of an input; the same arithmetic in another order never happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .engine import value_of
from .expression import Expr, children, names_in

if TYPE_CHECKING:
    from .job import Job

_LEAVES = ("number", "words")
_CONDITIONS = ("and", "or", "not", "is", "<", "<=", ">", ">=")
ABSENT = Expr("words", ("none",), "text")  # an entry that is left empty, as a sheet has it


def literal(value: Any, unit: str | None) -> Expr:
    """A value as a leaf; None, an absent one, as the word a sheet has for it."""
    if value is None:
        return ABSENT
    return Expr("words" if isinstance(value, str) else "number", (value,), unit)


def specialised(
    job: Job, results: Iterable[str], fixed: Mapping[str, Any], rows: Iterable[str] = ()
) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """The terms that the results rest on, in order, as far as they still vary, and those that are known.

    fixed: input -> its value. rows: inputs that are texts and stand, where they are looked up, for their row instead.
    Constants stay names. Both results are name -> tree; a known one is a literal.
    """
    rows = frozenset(rows)
    known = {key: literal(value, _kind(job, key)) for key, value in fixed.items()}
    left: dict[str, Expr] = {}
    for key in job.needed(results):
        tree = _folded(job.trees[key], known, rows, job)
        if tree.op in _LEAVES:
            known[key] = tree
        else:
            left[key] = tree
    wanted = set(results)
    for key in reversed(list(left)):
        if key in wanted:
            wanted.update(names_in(left[key]))
    return {key: tree for key, tree in left.items() if key in wanted}, known


def _kind(job: Job, key: str) -> str:
    from .units import kind_of

    return kind_of(job.unit_of(key))


def _folded(tree: Expr, known: Mapping[str, Expr], rows: frozenset[str], job: Job) -> Expr:
    if tree.op == "name":
        return known.get(tree.args[0], tree)
    if tree.op == "row" and tree.args[0].op == "name" and tree.args[0].args[0] in rows:
        return Expr("name", tree.args[0].args, "count")
    kids = children(tree)
    if not kids:
        return tree
    args = tuple(_folded(kid, known, rows, job) for kid in kids)
    return _simpler(Expr(tree.op, args, tree.unit), job)


def _simpler(tree: Expr, job: Job) -> Expr:
    op = tree.op
    args: tuple[Expr, ...] = tree.args
    if op == "given" and args[0].op in _LEAVES:
        return args[1] if args[0].op == "words" else args[0]
    if op in ("and", "or"):
        for one, other in (args, args[::-1]):
            if one.op == "number":
                return other if bool(one.args[0]) == (op == "and") else one
    if op in ("when", "shown") and args[0].op == "number":
        return args[1] if args[0].args[0] else args[2]
    if all(arg.op in _LEAVES or arg.op == "range" for arg in args):
        value = value_of(tree, {}, job.tables)
        return literal(int(value) if op in _CONDITIONS else value, tree.unit)
    if op == "when" and _same(args[1], args[2]):
        return args[1]
    if op in ("+", "-") and _is(args[1], 0):
        return args[0]
    if op == "+" and _is(args[0], 0):
        return args[1]
    if op == "*" and (_is(args[0], 0) or _is(args[1], 0)):
        return literal(0, tree.unit)
    if op in ("*", "/") and _is(args[1], 1):
        return args[0]
    if op == "*" and _is(args[0], 1):
        return args[1]
    return tree


def _is(tree: Expr, value: int) -> bool:
    return tree.op == "number" and tree.args[0] == value


def _same(a: Expr, b: Expr) -> bool:
    return a.op in _LEAVES and a.op == b.op and a.args == b.args

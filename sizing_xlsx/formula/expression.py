"""The tree that a formula becomes when it is called with symbols instead of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from .units import product, quotient, same

COMPARISONS = frozenset(("<", "<=", ">", ">="))


class Expr:
    """A node: an operation, its arguments, and the kind of its value (None: a literal zero).

    Leaves are "name" (an input, constant or term), "number", "words" (a text literal) and "range" (the table
    and column of a look-up; column None is the key column).
    """

    __slots__ = ("args", "names", "op", "unit")

    def __init__(self, op: str, args: tuple[Any, ...], unit: str | None) -> None:
        self.op, self.args, self.unit = op, args, unit
        self.names: tuple[str, ...] | None = None  # filled by names_in(): a tree never changes

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a formula branched with Python's if, and, or, min or max; use when(), &, |, minimum(), maximum()"
        )

    def __add__(self, other: Any) -> Expr:
        return arithmetic("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return arithmetic("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return arithmetic("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return arithmetic("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return arithmetic("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return arithmetic("*", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return arithmetic("/", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return arithmetic("/", other, self)

    def __lt__(self, other: Any) -> Expr:
        return arithmetic("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return arithmetic("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return arithmetic(">", self, other)

    def __ge__(self, other: Any) -> Expr:
        return arithmetic(">=", self, other)

    def __eq__(self, other: Any) -> NoReturn:
        raise TypeError("a formula compared with Python's == or !=; use equal() and opposite()")

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Expr:
        return Expr("and", (condition(self), condition(other)), "bool")

    def __or__(self, other: Any) -> Expr:
        return Expr("or", (condition(self), condition(other)), "bool")

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(repr, self.args))})"


def lift(value: Any) -> Expr:
    """A number or a text as a leaf; a tree as it is."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return Expr("words", (value,), "text")
    return Expr("number", (value,), None if value == 0 else "count")


def condition(value: Any) -> Expr:
    """A tree that may stand as a condition; TypeError for anything else."""
    tree = lift(value)
    if tree.unit != "bool":
        raise TypeError(f"a condition is a comparison, not {tree.unit}")
    return tree


def arithmetic(op: str, a: Any, b: Any) -> Expr:
    """One infix operation, with its units checked."""
    a, b = lift(a), lift(b)
    for side in (a, b):
        if side.unit in ("text", "bool"):
            raise TypeError(f"{op}: {side.unit} in arithmetic")
    if op == "*":
        unit = product(a.unit, b.unit)
    elif op == "/":
        unit = quotient(a.unit, b.unit)
    else:
        unit = same(a.unit, b.unit, op)
    return Expr(op, (a, b), "bool" if op in COMPARISONS else unit)


def name(symbol: str, unit: str | None) -> Expr:
    """A reference to an input, a constant or a term."""
    return Expr("name", (symbol,), unit)


def children(tree: Expr) -> tuple[Expr, ...]:
    """The sub-trees of a node; leaves have none."""
    return tree.args if tree.op not in ("name", "number", "words", "range") else ()


def walk(tree: Expr) -> Iterator[Expr]:
    """Every node, from the top down."""
    yield tree
    for child in children(tree):
        yield from walk(child)


def names_in(tree: Expr) -> tuple[str, ...]:
    """The names a tree refers to, from left to right, with repetitions."""
    if tree.names is not None:
        return tree.names
    found: list[str] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        if node.op == "name":
            found.append(node.args[0])
        elif node.op not in ("number", "words", "range"):
            stack.extend(reversed(node.args))
    tree.names = tuple(found)
    return tree.names


def replace(tree: Expr, found: dict[str, Expr]) -> Expr:
    """The tree with names replaced by other trees."""
    if tree.op == "name":
        return found.get(tree.args[0], tree)
    kids = children(tree)
    if not kids:
        return tree
    return Expr(tree.op, tuple(replace(kid, found) for kid in kids), tree.unit)

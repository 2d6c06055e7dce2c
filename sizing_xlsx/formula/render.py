"""Text from trees. One writer serves every surface; surfaces differ in how a name and a column are called."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from .declare import ACRONYMS, label_of
from .expression import Expr
from .primitives import INFIX_LEVEL, PRIMITIVES

NameOf = Callable[[str], str]
RangeOf = Callable[[str, "str | None"], str]

_SLOT = re.compile(r"\{(\d+|\*\d*&?)\}")
_SIGNS = {
    "words": {
        "*": " × ",
        "/": " ÷ ",
        "+": " + ",
        "-": " − ",
        "<=": " ≤ ",
        ">=": " ≥ ",
        "<": " < ",
        ">": " > ",
    }
}


def write(tree: Expr, surface: str, name_of: NameOf, range_of: RangeOf, need: int = 0) -> str:
    """The tree as text. need: how tightly the text must bind where it will stand (primitives.py)."""
    op = tree.op
    if op == "name":
        return name_of(tree.args[0])
    if op == "range":
        return range_of(*tree.args)
    if op == "number":
        value = tree.args[0]
        text = f"{value:.15g}" if surface == "sheet" else repr(value)
        return f"({text})" if value < 0 and need > 0 else text
    if op == "words":
        return _quoted(tree.args[0], surface)
    if op in INFIX_LEVEL:
        level = INFIX_LEVEL[op]
        left = write(tree.args[0], surface, name_of, range_of, level)
        right = write(tree.args[1], surface, name_of, range_of, level + 1)
        sign = _SIGNS.get(surface, {}).get(op, op)
        text = left + sign + right
        return f"({text})" if level < need else text
    primitive = PRIMITIVES[op]
    template: str = getattr(primitive, surface)
    if not template:
        raise TypeError(f"{op} has no form on the {surface} surface")
    needs, last = primitive.needs, len(primitive.needs) - 1
    parts = [
        write(arg, surface, name_of, range_of, needs[min(i, last)] if needs else 0) for i, arg in enumerate(tree.args)
    ]
    pieces = list(_pieces(template))
    pieces[1::2] = [_fill(slot, parts, surface) for slot in pieces[1::2]]
    text = "".join(pieces)
    return f"({text})" if primitive.level < need else text


@cache
def _pieces(template: str) -> tuple[str, ...]:
    """A template as text, slot, text, slot, ..., text."""
    return tuple(_SLOT.split(template))


def _fill(slot: str, parts: list[str], surface: str) -> str:
    if slot == "*&":
        return "&".join(parts)
    if slot.startswith("*"):
        return ("," if surface == "sheet" else ", ").join(parts[int(slot[1:] or 0) :])
    return parts[int(slot)]


def _quoted(text: str, surface: str) -> str:
    if surface == "sheet":
        return '"' + text.replace('"', '""') + '"'
    return text if surface == "words" else repr(text)


# As labels write them, but for the two that begin in lower case there: a defined name capitalises every word.
_ACRONYMS = {**ACRONYMS, "bf16": "BF16", "fp32": "FP32", "usd": "USD", "nvidia": "Nvidia"}


@cache
def public_name(symbol: str) -> str:
    """The defined name of a term or constant: frozen_base_weights -> Frozen_Base_Weights."""
    return "_".join(_ACRONYMS.get(word, word[:1].upper() + word[1:]) for word in symbol.split("_"))


@cache
def column_name(table: str, column: str | None) -> str:
    """The defined name of a table's column: models, hidden_size -> Models_Hidden_Size_List."""
    return f"{public_name(table)}_{public_name(column) if column else 'Names'}_List"


def sheet_formula(tree: Expr, name_of: NameOf = public_name, range_of: RangeOf = column_name) -> str:
    """A cell's formula, with its equals sign."""
    return "=" + write(tree, "sheet", name_of, range_of)


def in_words(tree: Expr, label: NameOf = label_of) -> str:
    """The formula as a reader would say it."""
    return write(
        tree,
        "words",
        label,
        lambda table, column: f"{table.replace('_', ' ')}: {(column or '').replace('_', ' ')}",
    )


def source_text(tree: Expr, surface: str) -> str:
    """The formula as Python source, scalar or vector."""
    return write(tree, surface, lambda symbol: symbol, source_range)


def source_range(table: str, column: str | None) -> str:
    """What a column is called in compiled source."""
    return f"{table}__{column or 'names_'}"


def ranges_in(tree: Expr) -> list[tuple[str, Any]]:
    """The table columns a tree looks into."""
    from .expression import walk

    return [(node.args[0], node.args[1]) for node in walk(tree) if node.op == "range"]

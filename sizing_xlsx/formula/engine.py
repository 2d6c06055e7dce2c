"""Numbers from trees, one job at a time. The reference is Job.reference(): the plain functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .expression import Expr, arithmetic
from .primitives import PRIMITIVES
from .render import ranges_in, source_range, source_text
from .table import Table

if TYPE_CHECKING:
    from .job import Job

_INFIX: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_LAZY = {"when": 0, "shown": 0}


def value_of(tree: Expr, values: Mapping[str, Any], tables: Mapping[str, Table]) -> Any:
    """The value of one tree, walked; only the branch that is taken is evaluated, as in a sheet."""
    op, args = tree.op, tree.args
    if op == "name":
        return values[args[0]]
    if op in ("number", "words"):
        return args[0]
    if op == "range":
        table = tables[args[0]]
        return table.columns[args[1]] if args[1] else table.index
    if op == "row":
        return tables[args[1].args[0]].row_of(value_of(args[0], values, tables))
    if op in _LAZY:
        return value_of(args[1] if value_of(args[0], values, tables) else args[2], values, tables)
    parts = [value_of(arg, values, tables) for arg in args]
    return _INFIX[op](*parts) if op in _INFIX else PRIMITIVES[op].compute(*parts)


def compile_scalar(job: Job, results: tuple[str, ...]) -> Callable[..., tuple[Any, ...]]:
    """The results' terms as one Python function of the inputs: text from the trees, so the same arithmetic."""
    namespace: dict[str, Any] = {
        "floor": math.floor,
        "is_number": lambda x: x is not None and not isinstance(x, str) and x == x,
        "find": operator.getitem,
        "root": PRIMITIVES["root"].compute,
        "fixed": PRIMITIVES["fixed"].compute,
        "round_up": PRIMITIVES["round_up"].compute,
        "round_down": PRIMITIVES["round_down"].compute,
        "round_": PRIMITIVES["round"].compute,
    }
    needed = job.needed(results)
    for key in needed:
        for table, column in ranges_in(job.trees[key]):
            data = job.tables[table]
            namespace[source_range(table, column)] = (None, *data.columns[column]) if column else _Rows(data)
    arguments = [f"{key}={value.default!r}" for key, value in job.inputs.items()]
    arguments += [f"{key}={value.value!r}" for key, value in job.constants.items()]
    lines = [f"    {key} = {source_text(job.trees[key], 'scalar')}" for key in needed]
    source = f"def one_job(*, {', '.join(arguments)}):\n" + "\n".join(lines)
    source += f"\n    return ({''.join(key + ', ' for key in results)})"
    exec(compile(source, f"<{job.name}>", "exec"), namespace)
    function: Callable[..., tuple[Any, ...]] = namespace["one_job"]
    return function


class _Rows(dict[str, int]):
    """Key -> row without regard to case; a key written as the table writes it is found without folding it."""

    def __init__(self, table: Table) -> None:
        super().__init__({**table.index, **{key: row for row, key in enumerate(table.keys, 1)}})

    def __missing__(self, text: str) -> int:
        row = self.get(text.casefold())
        if row is None:
            raise KeyError(text)
        return row


__all__ = ["arithmetic", "compile_scalar", "value_of"]

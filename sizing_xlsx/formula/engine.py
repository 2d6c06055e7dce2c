"""Numbers from trees, one job at a time. The reference is Job.reference(): the plain functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .expression import Expr
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
    lines = [f"{key} = {text}" for key, text in _texts(job, results)]
    return _function(job, results, {}, [*lines, f"return ({''.join(key + ', ' for key in results)})"])


def compile_record(job: Job, results: tuple[str, ...], rules: tuple[str, ...]) -> Callable[..., dict[str, Any] | None]:
    """The same with the results in a dict; None for a job that breaks one of the rules (terms that are then 0).

    The dict starts as a copy of one that has every key: a third faster than putting it together at the end.
    """
    lines = [
        f"record[{key!r}] = {key} = {text}" if key in results else f"{key} = {text}"
        for key, text in _texts(job, results + rules)
    ]
    last = f"return record if {' and '.join(rules) or 'True'} else None"
    blank = {"blank": dict.fromkeys(results)}
    return _function(job, results + rules, blank, ["record = blank.copy()", *lines, last])


def _texts(job: Job, results: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each needed term with its formula as Python, in order of evaluation."""
    needed = job.needed(results)
    rows = [key for key in needed if job.trees[key].op == "row"]
    out = []
    for key in needed:
        text = source_text(job.trees[key], "scalar")
        for row in rows:  # a row that was looked up is whole: nothing to convert
            text = text.replace(f"[int({row})]", f"[{row}]")
        out.append((key, text))
    return out


def _function(job: Job, results: tuple[str, ...], namespace: dict[str, Any], body: list[str]) -> Callable[..., Any]:
    """A function of all inputs and constants with that body."""
    namespace |= {
        "floor": math.floor,
        "is_number": lambda x: x is not None and not isinstance(x, str) and x == x,
        "find": operator.getitem,
        "root": PRIMITIVES["root"].compute,
        "fixed": PRIMITIVES["fixed"].compute,
        "round_up": PRIMITIVES["round_up"].compute,
        "round_down": PRIMITIVES["round_down"].compute,
        "round_": PRIMITIVES["round"].compute,
    }
    for key in job.needed(results):
        for table, column in ranges_in(job.trees[key]):
            data = job.tables[table]
            namespace[source_range(table, column)] = (None, *data.columns[column]) if column else _Rows(data)
    arguments = [f"{key}={value.default!r}" for key, value in job.inputs.items()]
    arguments += [f"{key}={value.value!r}" for key, value in job.constants.items()]
    source = "\n    ".join([f"def one_job(*, {', '.join(arguments)}):", *body])
    exec(compile(source, f"<{job.name}>", "exec"), namespace)
    function: Callable[..., Any] = namespace["one_job"]
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

"""Numbers from trees, one job at a time. The reference is Job.reference(): the plain functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .declare import Choice, Input
from .expression import Expr, names_in
from .primitives import PRIMITIVES
from .render import ranges_in, source_range, write
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
MOST_REMEMBERED = 256  # sets of choices whose steady terms a compiled function keeps


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
    last = f"return ({''.join(key + ', ' for key in results)})"
    return _function(job, results, (), last)


def compile_record(job: Job, results: tuple[str, ...], rules: tuple[str, ...]) -> Callable[..., dict[str, Any] | None]:
    """The same with the results in a dict; None for a job that breaks one of the rules (terms that are then 0)."""
    return _function(job, results + rules, results, f"return record_ if {' and '.join(rules) or 'True'} else None")


def _function(job: Job, needed: tuple[str, ...], recorded: tuple[str, ...], last: str) -> Callable[..., Any]:
    """A function of all inputs that evaluates the needed terms and ends in `last`; record_ is a dict of those recorded.

    Steady terms, those that rest on texts and on entries that are mostly left empty, are evaluated apart and
    remembered: most jobs of a series differ in their numbers alone, and two terms in three look up what a model, a
    card or a format is. The dict starts as a copy of one that has every key and their values, which is also much
    faster than putting it together at the end.
    """
    texts = _texts(job, needed)
    moving = job.depends_on(key for key, declared in job.inputs.items() if not _is_steady(declared))
    steady = [key for key in texts if key not in moving]
    used = {name for key in steady for name in names_in(job.trees[key])}
    inputs = [key for key in job.inputs if key in used]
    wanted = {name for key in texts if key in moving for name in names_in(job.trees[key])}.union(needed)
    carried = [key for key in steady if key in wanted]

    def lines(keys: Iterable[str]) -> list[str]:
        return [f"{f'record_[{key!r}] = ' if key in recorded else ''}{key} = {texts[key]}" for key in keys]

    def remember(key: tuple[Any, ...]) -> Any:
        found = namespace["steady_"](*key)
        if all(value is None or isinstance(value, str) for value in key):  # 64 and 64.0 would be one key
            if len(memory) >= MOST_REMEMBERED:
                memory.clear()
            memory[key] = found
        return found

    memory: dict[tuple[Any, ...], Any] = {}
    namespace = _namespace(job, texts) | {"recall_": memory.get, "remember_": remember, "recorded_": recorded}
    read = used | {name for key in texts for name in names_in(job.trees[key])}
    arguments = "".join(f"{key}={declared.default!r}, " for key, declared in job.inputs.items() if key in read)
    source = [
        f"def steady_({', '.join(inputs)}):",
        "    record_ = dict.fromkeys(recorded_)",
        *(f"    {line}" for line in lines(steady)),
        f"    return (record_, {''.join(key + ', ' for key in carried)})",
        f"def one_job({'*, ' if arguments else ''}{arguments}**others_):",
        f"    key_ = ({''.join(key + ', ' for key in inputs)})",
        f"    (record_, {''.join(key + ', ' for key in carried)}) = recall_(key_) or remember_(key_)",
        "    record_ = record_.copy()" if recorded else "",
        *(f"    {line}" for line in lines(key for key in texts if key in moving)),
        f"    {last}",
    ]
    exec(compile("\n".join(source), f"<{job.name}>", "exec"), namespace)
    function: Callable[..., Any] = namespace["one_job"]
    return function


def _is_steady(declared: Input) -> bool:
    """Whether an input is a text, or an entry that is mostly left empty: such values repeat from job to job."""
    return declared.optional or isinstance(declared.domain, Choice)


def _texts(job: Job, results: tuple[str, ...]) -> dict[str, str]:
    """Each needed term with its formula as Python, in order of evaluation; constants are written as their values."""
    needed = job.needed(results)
    values = {key: f"({declared.value!r})" for key, declared in job.constants.items()}
    rows = [key for key in needed if job.trees[key].op == "row"]
    out = {}
    for key in needed:
        text = write(job.trees[key], "scalar", lambda name: values.get(name, name), source_range)
        if "[int(" in text:
            for row in rows:  # a row that was looked up is whole: nothing to convert
                text = text.replace(f"[int({row})]", f"[{row}]")
        out[key] = text
    return out


def _namespace(job: Job, keys: Iterable[str]) -> dict[str, Any]:
    """What the formulas of these terms call, and the columns that they look into."""
    namespace: dict[str, Any] = {
        "floor": math.floor,
        "is_number": lambda x: x is not None and not isinstance(x, str) and x == x,
        "find": operator.getitem,
        "root": PRIMITIVES["root"].compute,
        "fixed": PRIMITIVES["fixed"].compute,
        "iso": PRIMITIVES["iso"].compute,
        "round_up": PRIMITIVES["round_up"].compute,
        "round_down": PRIMITIVES["round_down"].compute,
        "round_": PRIMITIVES["round"].compute,
        "month_start": PRIMITIVES["month_start"].compute,
        "month_after": PRIMITIVES["month_after"].compute,
    }
    for key in keys:
        for table, column in ranges_in(job.trees[key]):
            data = job.tables[table]
            namespace[source_range(table, column)] = (None, *data.columns[column]) if column else _Rows(data)
    return namespace


class _Rows(dict[str, int]):
    """Key -> row without regard to case; a key written as the table writes it is found without folding it."""

    def __init__(self, table: Table) -> None:
        super().__init__({**table.index, **{key: row for row, key in enumerate(table.keys, 1)}})

    def __missing__(self, text: str) -> int:
        row = self.get(text.casefold())
        if row is None:
            raise KeyError(text)
        return row

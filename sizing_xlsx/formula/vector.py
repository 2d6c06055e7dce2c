"""Numbers from trees, a million jobs at a time: the same text as the scalar engine, over NumPy arrays.

Texts travel as (categories, codes): each distinct text is looked up once, and what rests on texts alone is evaluated
once for each combination of them (grid.py). Jobs are taken in blocks that stay in the processor's cache. NumPy
evaluates both branches of when(): no formula may divide by zero in either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from . import domains
from .declare import Choice, Whole
from .expression import names_in
from .grid import Grid, steady_terms
from .render import ranges_in, source_range, source_text

if TYPE_CHECKING:
    from .job import Job

Texts = tuple[Sequence[str], "np.ndarray[Any, Any]"]


def _find(index: Mapping[str, int], text: Any) -> Any:
    if isinstance(text, str):
        return index[text.casefold()]
    categories, codes = text
    return np.array([index.get(str(c).casefold(), 0) for c in categories], dtype=np.intp)[codes]


def _take(column: Any, row: Any) -> Any:
    position = int(row) if np.ndim(row) == 0 else np.asarray(row).astype(np.intp, copy=False)
    if isinstance(column, tuple):
        return (column[0], column[1][position])
    return column[position]


def _where(test: Any, then: Any, otherwise: Any) -> Any:
    if isinstance(test, (bool, np.bool_)):
        return then if test else otherwise
    return np.where(test, then, otherwise)


def _given(value: Any, otherwise: Any) -> Any:
    if value is None or isinstance(value, str):
        return otherwise
    if isinstance(value, (int, float)):
        return value if value == value else otherwise
    return np.where(np.isnan(value), otherwise, value)


def _choose(index: Any, *values: Any) -> Any:
    if np.ndim(index) == 0:
        return values[int(index) - 1]
    if np.ndim(index) > 1:  # on the grid
        return np.choose(index.astype(np.intp) - 1, values, mode="clip")
    count = len(index)
    rows = np.empty((len(values), count))
    for row, value in zip(rows, values, strict=True):
        row[:] = value
    return rows.ravel().take((index.astype(np.intp) - 1) * count + np.arange(count))


def _equal(a: Any, b: Any) -> Any:
    a, b = (np.array(x[0], dtype=object)[x[1]] if isinstance(x, tuple) else x for x in (a, b))
    return np.equal(a, b)


def _root(room: Any, slope: Any, curvature: Any) -> Any:
    inner = np.sqrt(np.maximum(0, slope * slope + 2 * curvature * room))
    with np.errstate(divide="ignore", invalid="ignore"):
        return 2 * room / (slope + inner)


def compile_vector(job: Job, results: tuple[str, ...]) -> Callable[..., tuple[Any, ...]]:
    """The results' terms as one function over arrays."""
    steps = compile_steps(job, results)

    def many_jobs(**inputs: Any) -> tuple[Any, ...]:
        found = dict(steps(**inputs))
        return tuple(found[key] for key in results)

    return many_jobs


def compile_steps(
    job: Job, results: tuple[str, ...], given: tuple[str, ...] = ()
) -> Callable[..., Iterator[tuple[str, Any]]]:
    """The results' terms as one generator over arrays: each result with its name as soon as it is known.

    given: terms that are not evaluated; the argument `gather` gives them where they are first used. A term that
    nothing further needs is dropped at once: its memory, still in the cache, serves the next.
    """
    namespace: dict[str, Any] = {
        "nan": np.nan,
        "where": _where,
        "floor": np.floor,
        "given": _given,
        "choose": _choose,
        "root": _root,
        "find": _find,
        "take": _take,
        "equal": _equal,
        "both": np.logical_and,
        "either": np.logical_or,
        "opposite": np.logical_not,
        "maximum": lambda *a: reduce(np.maximum, a),
        "minimum": lambda *a: reduce(np.minimum, a),
    }
    needed = job.needed(results, given)
    for key in needed:
        for table, column in ranges_in(job.trees[key]):
            data = job.tables[table]
            if column is None:
                namespace[source_range(table, column)] = data.index
            elif data.units[column] == "text":
                words = list(dict.fromkeys(data.columns[column]))
                codes = np.array([-1] + [words.index(word) for word in data.columns[column]])
                namespace[source_range(table, column)] = (words, codes)
            else:
                namespace[source_range(table, column)] = np.array([np.nan, *data.columns[column]], dtype=float)
    namespace["number"] = np.float64
    arguments = [f"{key}={_default(value.default)}" for key, value in job.inputs.items()]
    arguments += [f"{key}={value.value!r}" for key, value in job.constants.items()]
    lines = [f"def many_jobs(*, {', '.join((*arguments, 'gather=None'))}):", "    yield from ()"]
    last_user = {used: key for key in needed for used in (key, *names_in(job.trees[key]))}
    waiting = set(given)
    for key in needed:
        now = waiting.intersection(names_in(job.trees[key]))
        lines += [f"    {used} = gather({used!r})" for used in sorted(now)]
        waiting -= now
        lines.append(f"    {key} = {source_text(job.trees[key], 'vector')}")
        if key in results:
            lines.append(f"    yield {key!r}, {key}")
        lines += [
            f"    del {used}" for used in dict.fromkeys((key, *names_in(job.trees[key]))) if last_user[used] == key
        ]
    exec(compile("\n".join(lines), f"<{job.name}, vector>", "exec"), namespace)
    function: Callable[..., Iterator[tuple[str, Any]]] = namespace["many_jobs"]
    return function


def _default(value: Any) -> str:
    return f"number({value!r})" if isinstance(value, (int, float)) else repr(value)


def run(job: Job, inputs: Mapping[str, Any], results: tuple[str, ...], block: int) -> dict[str, Any]:
    """Check the columns, evaluate, and refuse the first job that breaks a rule. See Job.size_many."""
    columns, count = _columns(job, inputs)
    if not count:
        _must_exist(job, results)
        return {key: np.empty(0) for key in results}
    answer = evaluated(job, columns, count, results, block)
    for key in job.rules_of(results):
        if not np.all(answer[key]):
            row = int(np.argmin(answer[key]))
            known = {**job.defaults(), **{k: _one(v, row) for k, v in columns.items()}}
            known.update(job.reference(known))
            raise ValueError(f"row {row}: {job.told(key, known)}")
    return {key: answer[key] for key in results}


def judged(
    job: Job, inputs: Mapping[str, Any], results: tuple[str, ...], block: int = 16_384
) -> tuple[dict[str, Any], Any]:
    """The same where no job is refused: the results, and an array that is True for each job that breaks no rule."""
    columns, count = _columns(job, inputs)
    answer = evaluated(job, columns, count, results, block)
    sound = np.ones(count, dtype=bool)
    for key in job.rules_of(results):
        sound &= answer[key].astype(bool)
    return {key: answer[key] for key in results}, sound


def _must_exist(job: Job, results: tuple[str, ...]) -> None:
    unknown = [key for key in results if key not in job.trees]
    if unknown:
        raise TypeError(f"{unknown[0]} is no result of {job.name}")


def evaluated(
    job: Job, columns: Mapping[str, Any], count: int, results: tuple[str, ...], block: int = 16_384
) -> dict[str, Any]:
    """The results and the rules of the job, block by block.

    columns: input -> one value for all, an array of numbers (NaN where absent), or texts with their codes; as the
    formulas take them. count: how many jobs.
    """
    _must_exist(job, results)
    wanted = results + tuple(key for key in job.rules_of(results) if key not in results)
    steady = steady_terms(job, columns, wanted, count)
    steps = job.steps(tuple(key for key in wanted if key not in steady), steady)
    kept = [key for key in steady if key in wanted]
    with np.errstate(invalid="ignore", divide="ignore"):
        grid = Grid(job, columns, steady)
        answer = {key: grid.column(key, count) for key in kept}
        for start in range(0, count, block):
            part = {key: _slice(value, start, start + block) for key, value in columns.items()}
            gather = grid.block(part)
            for key in kept:
                gather.into(key, answer[key][start : start + block])
            for key, value in steps(gather=gather, **part):
                if isinstance(value, tuple):
                    value = np.array(value[0], dtype=object)[value[1]]
                if key not in answer:
                    answer[key] = np.empty(count, dtype=np.asarray(value).dtype)
                answer[key][start : start + block] = value
    return answer


def _slice(value: Any, start: int, stop: int) -> Any:
    if isinstance(value, tuple):
        return (value[0], value[1][start:stop])
    return value[start:stop] if isinstance(value, np.ndarray) else value


def _one(value: Any, row: int) -> Any:
    if isinstance(value, tuple):
        return value[0][value[1][row]]
    if not isinstance(value, np.ndarray):
        return value
    number = value[row].item()
    if number != number:
        return None
    return int(number) if number == int(number) else number


def _columns(job: Job, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    columns: dict[str, Any] = {}
    lengths: dict[str, int] = {}
    for key in inputs:
        value = inputs[key]
        if getattr(value, "ndim", None) == 0:
            value = value.item()
        if value is None or isinstance(value, (str, int, float, bool)):
            columns[key] = _alone(domains.accept(job, key, value))
            continue
        if key not in job.inputs:
            domains.accept(job, key, None)
        column = _text_column(job, key, value) if _is_text(job, key) else _number_column(job, key, value)
        columns[key] = column
        lengths[key] = len(column[1]) if isinstance(column, tuple) else len(column)
    if len(set(lengths.values())) > 1:
        longest = ", ".join(f"{key} has {n:,}" for key, n in lengths.items())
        raise ValueError(f"columns must be of one length; {longest}")
    return columns, next(iter(lengths.values()), 1)


def _alone(value: Any) -> Any:
    """A value for all jobs; a NumPy number divides by zero without an exception, as the arrays beside it do."""
    return value if value is None or isinstance(value, str) else np.float64(value)


def _is_text(job: Job, key: str) -> bool:
    return isinstance(job.inputs[key].domain, Choice)


def _text_column(job: Job, key: str, value: Any) -> Texts:
    if hasattr(value, "cat"):
        categories, codes = list(value.cat.categories), np.asarray(value.cat.codes, dtype=np.intp)
    elif isinstance(value, tuple) and len(value) == 2 and not isinstance(value[1], str):
        categories, codes = list(value[0]), np.asarray(value[1], dtype=np.intp)
    else:
        items = list(value)
        found: dict[Any, int] = {}
        codes = np.fromiter((found.setdefault(item, len(found)) for item in items), np.intp, len(items))
        categories = list(found)
    if codes.size and codes.min() < 0:
        raise ValueError(f"row {int(np.argmin(codes))}: {key} is empty; it must be {domains.allowed(job, key)}")
    used = np.bincount(codes, minlength=len(categories)) if codes.size else np.zeros(len(categories))
    accepted: list[str] = []
    for i, category in enumerate(categories):
        try:
            accepted.append(domains.accept(job, key, category) if used[i] else job.choices(key)[0])
        except ValueError as error:
            raise ValueError(f"row {int(np.argmax(codes == i))}: {error}") from None
    return accepted, codes


def _number_column(job: Job, key: str, value: Any) -> np.ndarray[Any, Any]:
    declared = job.inputs[key]
    domain = declared.domain
    word = domain.word if isinstance(domain, Whole) else ""
    if isinstance(value, (bytes, set, frozenset, dict)) or np.ma.isMaskedArray(value):
        kind = type(value).__name__
        raise ValueError(f"{key} is of type {kind}; it must be one number, or a list or array with one a job")
    if _dimensions(value) != 1:
        raise ValueError(f"{key} has {_dimensions(value)} dimensions; a column has one")
    if isinstance(domain, Whole) and domain.day and np.asarray(value).dtype.kind in "MO":
        value = [domains.day_of(item) for item in value]
    try:
        raw = np.asarray(value)
        items = list(value) if isinstance(value, (list, tuple)) else []
        if raw.dtype.kind in "cMmSV" or raw.dtype == bool or any(isinstance(item, (bool, np.bool_)) for item in items):
            raise ValueError
        if raw.dtype == object or raw.dtype.kind in "US":
            raw = np.array([np.nan if _absent(item, word) else _plain(item) for item in list(value)], dtype=float)
        column = raw.astype(float)
    except (TypeError, ValueError, OverflowError):
        for row, item in enumerate(list(value)):
            if not (_absent(item, word) and (declared.default is None or word)):
                try:
                    domains.accept(job, key, item)
                except ValueError as error:
                    raise ValueError(f"row {row}: {error}") from None
        raise ValueError(f"{key} has values of several kinds; each must be {domains.allowed(job, key)}") from None
    empty = np.isnan(column)
    may_be_empty = declared.optional or bool(word)
    low, high = domain.low, domain.high  # type: ignore[union-attr]
    good = (column >= low) & (column <= (high if not isinstance(high, str) else np.inf))
    if isinstance(domain, Whole):
        good &= column == np.floor(column)
    good |= empty & may_be_empty
    good &= np.isfinite(column) | empty
    if not good.all():
        row = int(np.argmin(good))
        domains_value = column[row].item()
        if domains_value == domains_value and abs(domains_value) < np.inf and domains_value == int(domains_value):
            domains_value = int(domains_value)
        raise ValueError(f"row {row}: {key} is {domains_value!r}; it must be {domains.allowed(job, key)}")
    return column


def _dimensions(value: Any) -> int:
    try:
        return int(np.ndim(value))
    except ValueError:  # rows of several lengths
        return 2


def _is_nan(item: Any) -> bool:
    try:
        return bool(item != item)
    except TypeError:  # pandas' own NA
        return True


def _absent(item: Any, word: str) -> bool:
    return item is None or _is_nan(item) or (bool(word) and isinstance(item, str) and item.casefold() == word)


def _plain(item: Any) -> float:
    if isinstance(item, (str, bool)):
        raise ValueError(item)
    return float(item)

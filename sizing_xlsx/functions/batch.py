"""Many calls at once: a sheet that is recalculated asks hundreds of times, and mostly the same of other numbers.

Equal calls are computed once. Where NumPy is there, calls that ask the same terms of the same kind of job go through
the vector engine together; fewer than VECTOR_FROM of them are quicker one by one. A call that is refused leaves the
others as they are.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formula.domains import told
from . import default_desk
from .desk import Desk
from .faults import Fault
from .patterns import Patterns
from .question import Question, on_card

if TYPE_CHECKING:
    from ..formula.job import Job

VECTOR_FROM = 10  # questions of one kind
MOST_CELLS = 200_000  # of the answers that are kept
LONGEST_KEY = 200  # characters of a text; of a longer one the digest tells it from others

Request = tuple[str, "Sequence[Any] | Mapping[str, Any]"]
Key = tuple[Any, ...]


class Answers:
    """The latest answers, at most so many cells of them. What goes first is what was asked for longest ago."""

    def __init__(self, most_cells: int = MOST_CELLS) -> None:
        self.most_cells, self.cells, self.hits, self.misses = most_cells, 0, 0, 0
        self._known, self._lock = OrderedDict[Key, tuple[Any, int]](), Lock()

    def find(self, digest: str, keys: Iterable[Key]) -> dict[Key, Any]:
        """Those of the answers that are known, by key."""
        found = {}
        with self._lock:
            for key in keys:
                kept = self._known.get((digest, key))
                if kept is None:
                    self.misses += 1
                    continue
                self.hits += 1
                self._known.move_to_end((digest, key))
                found[key] = kept[0]
        return found

    def keep(self, digest: str, answers: Mapping[Key, Any]) -> None:
        """Keep answers of the data with that digest."""
        with self._lock:
            for key, answer in answers.items():
                if (digest, key) in self._known:
                    continue
                cells = len(key) + (sum(map(len, answer)) if isinstance(answer, list) else 0)
                self._known[digest, key] = (answer, cells)
                self.cells += cells
            while self.cells > self.most_cells:
                self.cells -= self._known.popitem(last=False)[1][1]


class _Held(NamedTuple):
    """Questions about one kind of job for the same terms, each with the key of its call."""

    keys: list[Key]
    questions: list[Question]


ANSWERS = Answers()


def call_many(requests: Iterable[Request], at: Desk | None = None, answers: Answers | None = ANSWERS) -> list[Any]:
    """The values of many calls in their order; a Fault stands where call() would raise it. Tables are only to be read.

    requests: of each the function's name and its arguments, in their order or by name. at: the catalogue asked.
    answers: where answers are kept from one time to the next; None keeps none. Numbers are those of call(), but for
    what the two engines round differently, less than a relative 1e-12; whole numbers may come as floats.
    """
    desk = at or default_desk()
    if desk.folders:
        answers = None  # a file may change between two calls
    order = [(key_of(name, given), name, given) for name, given in requests]
    distinct = {key: (name, given) for key, name, given in order}
    found = answers.find(desk.digest, distinct) if answers is not None else {}
    fresh = _computed(desk, {key: asked for key, asked in distinct.items() if key not in found})
    if answers is not None:
        answers.keep(desk.digest, fresh)
    found |= fresh
    return [found[key] for key, _, _ in order]


def key_of(name: str, given: Sequence[Any] | Mapping[str, Any]) -> Key:
    """What tells a call from others; it is short, whatever the call holds."""
    if isinstance(given, Mapping):
        return (name, tuple(given), *map(_told_from_others, given.values()))
    return (name, *map(_told_from_others, given))


def _told_from_others(value: Any) -> Any:
    """8, 8.0 and TRUE differ here, though Python takes them for equals."""
    while isinstance(value, (list, tuple)):
        if len(value) != 1:
            return ("range", len(value))  # refused, whatever it holds
        value = value[0]
    if isinstance(value, str):
        return (
            value if len(value) <= LONGEST_KEY else ("text", hashlib.sha256(value.encode("utf-8", "replace")).digest())
        )
    if value is None or isinstance(value, (int, float)):
        return None if value is None else (type(value), value)
    return (type(value), told(value))  # refused, in these words


def _computed(desk: Desk, distinct: Mapping[Key, tuple[str, Any]]) -> dict[Key, Any]:
    """The answer to each of several different calls."""
    found: dict[Key, Any] = {}
    held: dict[tuple[Any, ...], _Held] = {}
    patterns = Patterns(desk)
    for key, (name, given) in distinct.items():
        try:
            question = patterns.question(name, given)
        except Fault as fault:
            found[key] = _told(fault)
            continue
        if isinstance(question, Question):
            kind = (question.job.name, question.results, question.cards)
            keys, questions = held.setdefault(kind, _Held([], []))
            keys.append(key)
            questions.append(question)
        else:
            found[key] = question
    for keys, questions in held.values():
        several = len(questions) * max(1, len(questions[0].cards)) >= VECTOR_FROM and _has_numpy()
        found.update(zip(keys, (_together if several else _one_by_one)(desk, questions), strict=True))
    return found


@cache
def _has_numpy() -> bool:
    return find_spec("numpy") is not None


def _told(fault: Fault) -> Fault:
    """The same without the frames that it went through, which hold the calls."""
    return Fault(fault.code, str(fault))


def _one_by_one(desk: Desk, questions: Sequence[Question]) -> list[Any]:
    return [_answer(question, question.rows(desk)) for question in questions]


def _answer(question: Question, rows: Iterable[Sequence[Any]]) -> Any:
    try:
        return question.answer(rows)
    except Fault as fault:
        return _told(fault)


def _together(desk: Desk, questions: Sequence[Question]) -> list[Any]:
    """The answers to questions for the same terms of one kind of job, on the same cards, by the vector engine."""
    from ..formula.vector import judged

    job, _, results, _, cards = questions[0]
    columns = _columns(job, [question.inputs for question in questions])
    if cards:
        _, sound = judged(job, {**columns, "gpu_choice": job.worked["gpu_choice"]}, ())
        found, _ = judged(job, _on_each(job, columns, cards, len(questions)), results)
    else:
        found, sound = judged(job, columns, results)
    rows = list(zip(*(found[key].tolist() for key in results), strict=True))
    width = max(1, len(cards))
    answers = []
    for at, (question, good) in enumerate(zip(questions, sound.tolist(), strict=True)):
        if good:
            answers.append(_answer(question, rows[at * width : (at + 1) * width]))
        else:
            answers.append(_told(desk.contradiction(job, question.ruled)))
    return answers


def _columns(job: Job, inputs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Inputs of many jobs as columns, at least one of them a list with a value a job."""
    given = dict.fromkeys(key for each in inputs for key in each)
    columns: dict[str, Any] = {}
    for key in given:
        otherwise = job.inputs[key].default
        columns[key] = [each.get(key, otherwise) for each in inputs]
    for key in list(columns):
        first, *rest = columns[key]
        if all(value is first for value in rest) and len(columns) > 1:
            columns[key] = first
    if not any(isinstance(column, list) for column in columns.values()):
        columns["batch_size"] = [each.get("batch_size", job.inputs["batch_size"].default) for each in inputs]
    return columns


def _on_each(job: Job, columns: Mapping[str, Any], cards: Sequence[str], count: int) -> dict[str, Any]:
    """The same jobs, each on each of the cards in turn."""
    import numpy as np

    wide = {
        key: [value for value in column for _ in cards] if isinstance(column, list) else column
        for key, column in columns.items()
    }
    codes = np.tile(np.arange(len(cards)), count)
    return {**wide, **on_card(job, cards[0]), "gpu_choice": (list(cards), codes)}

"""The questions of many calls. What calls of one pattern have in common is asked once.

Two calls are of one pattern when they name the same function, kind of job and own arguments of the function; they then
differ in the inputs of the job alone, and each input is taken by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from . import found as function_of
from . import values_of
from .desk import JOB, Desk
from .faults import Fault
from .question import Asked, Question
from .signature import Function
from .vocabulary import Keyword


class _Shape(NamedTuple):
    """A function. telling: the places of the arguments that tell its patterns. inputs: of the others, their inputs."""

    function: Function
    most: int
    telling: tuple[int, ...]
    inputs: tuple[tuple[int, str, str], ...]


class _Pattern(NamedTuple):
    question: Question
    keyword: Keyword


class Patterns:
    """The patterns of the calls of one batch."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.shapes: dict[str, _Shape] = {}
        self.known: dict[tuple[Any, ...], _Pattern] = {}

    def question(self, name: str, given: Sequence[Any] | Mapping[str, Any]) -> Question | Any:
        """What a call asks, or its value where it asks nothing of a job; Fault as functions.call raises it."""
        if isinstance(given, Mapping):
            return self._whole(function_of(name), (), given)
        shape = self.shapes.get(name) or self._shape(name)
        key = (name, *((type(given[at]), given[at]) for at in shape.telling if at < len(given)))
        try:
            pattern = self.known.get(key)
            if pattern is not None and len(given) <= shape.most:
                return self._of_pattern(shape, pattern, given)
        except (Fault, TypeError):  # of several faults the first counts; a range has no hash
            return self._whole(shape.function, tuple(given), {})
        found = self._whole(shape.function, tuple(given), {})
        if isinstance(found, Question):
            self._note(shape, key, found, given)
        return found

    def _note(self, shape: _Shape, key: tuple[Any, ...], found: Question, given: Sequence[Any]) -> None:
        """Take a pattern down by the first call of it."""
        told = {shape.function.arguments[at]: given[at] for at in shape.telling if at < len(given)}
        if all(value is None or isinstance(value, str) for value in told.values()):
            job = (told.get(JOB) or "").strip()
            self.known[key] = _Pattern(found, self.desk.keyword({JOB: job} if job else {}))

    def _shape(self, name: str) -> _Shape:
        function = function_of(name)
        own = {JOB, *(own.name for own in function.own)}
        places = list(enumerate(function.arguments))
        inputs = tuple((at, key, self.desk.input_of(key)) for at, key in places if key not in own)
        self.shapes[name] = _Shape(function, len(places), tuple(at for at, key in places if key in own), inputs)
        return self.shapes[name]

    def _whole(self, function: Function, given: tuple[Any, ...], named: Mapping[str, Any]) -> Question | Any:
        values = values_of(function, given, named)
        compute = function.compute
        return compute.ask(self.desk, values) if isinstance(compute, Asked) else compute(self.desk, values)

    def _of_pattern(self, shape: _Shape, pattern: _Pattern, given: Sequence[Any]) -> Question:
        job, keyword = pattern.question.job, pattern.keyword.name
        inputs = dict(pattern.keyword.inputs)
        count, taken, usual = len(given), self.desk.taken, job.usual
        for at, argument, key in shape.inputs:
            if at >= count:
                break
            value = given[at]
            kind, plain = usual.get(key, (None, ()))
            if type(value) is not kind or value not in plain:
                value = taken(job, keyword, argument, value)
            if value is not None:
                inputs[key] = value
            elif at < shape.function.required:
                return self._whole(shape.function, tuple(given), {})  # it is refused
        if count < shape.function.required:
            return self._whole(shape.function, tuple(given), {})
        question = pattern.question
        return Question(question.job, inputs, question.results, question.answer, question.cards)

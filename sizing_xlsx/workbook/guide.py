"""Which way to a model: questions, rules and options of templates/start.toml, and the rule that decides.

A question is answered yes, no or unsure. A rule holds when each of its questions has the answer it asks for; the
first that holds decides. The logic stands here once: called with words it decides, called with symbols it gives the
trees that the Start sheet shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import mul
from typing import Any, NamedTuple

from ..formula.domains import nearest
from ..formula.primitives import equal, when

ANSWERS = ("yes", "no", "unsure")
_OPPOSITE = {"yes": "no", "no": "yes"}


class Question(NamedTuple):
    """A question; unsure: the answer that an unsure one counts as."""

    id: str
    text: str
    help: str
    unsure: str


class Rule(NamedTuple):
    """An option, when it is the right one (question -> answer), and why in a sentence."""

    option: str
    when: Mapping[str, str]
    reason: str


class Guide(NamedTuple):
    """Questions, and rules of which the first that holds decides. words: what yes, no and unsure are called."""

    questions: Sequence[Question]
    rules: Sequence[Rule]
    words: Mapping[str, str]

    def holds(self, rule: Rule, given: Mapping[str, Any]) -> Any:
        """1 when a rule holds, else 0. given: question -> the word of its answer, or a symbol for it."""
        met = []
        for question in self.questions:
            wanted, answer = rule.when.get(question.id), given[question.id]
            if wanted and question.unsure == wanted:  # all but the opposite will do
                met.append(when(equal(answer, self.words[_OPPOSITE[wanted]]), 0, 1))
            elif wanted:
                met.append(when(equal(answer, self.words[wanted]), 1, 0))
        return reduce(mul, met) if met else 1

    def decide(self, given: Mapping[str, str]) -> Rule:
        """The first rule that holds for the words of the answers. Raises ValueError for a word that is no answer."""
        for question in self.questions:
            if given.get(question.id) not in self.words.values():
                raise ValueError(
                    f"{question.id} is {given.get(question.id)!r}; it must be one of {', '.join(self.words.values())}"
                )
        return next(rule for rule in self.rules if self.holds(rule, given))


def read_guide(spec: Mapping[str, Any], where: str) -> Guide:
    """The guide of a template. Raises ValueError of one sentence that names the entry."""
    questions = [Question(*(_entry(row, key, f"{where}: questions {at}") for key in Question._fields))
                 for at, row in enumerate(spec["questions"], 1)]  # fmt: skip
    options = tuple(str(_entry(row, "id", f"{where}: options {at}")) for at, row in enumerate(spec["options"], 1))
    rules = [Rule(*(_entry(row, key, f"{where}: rules {at}") for key in Rule._fields))
             for at, row in enumerate(spec["rules"], 1)]  # fmt: skip
    known = tuple(question.id for question in questions)
    for name, ids in (("questions", known), ("options", options)):
        if len({*ids}) < len(ids):
            raise ValueError(f"{where}: {name} has an id twice; each must be there once")
    for question in questions:
        if question.unsure not in _OPPOSITE:
            raise ValueError(f"{where}: unsure of {question.id} is {question.unsure!r}; it must be yes or no")
    for at, rule in enumerate(rules, 1):
        if rule.option not in options:
            raise ValueError(f"{where}: option of rules {at} is {rule.option!r}{nearest(rule.option, options)}")
        for asked, answer in rule.when.items():
            if asked not in known:
                raise ValueError(f"{where}: rules {at} asks {asked}, which is no question{nearest(asked, known)}")
            if answer not in _OPPOSITE:
                raise ValueError(f"{where}: {asked} of rules {at} is {answer!r}; it must be yes or no")
    if not rules or rules[-1].when:
        raise ValueError(f"{where}: the last of the rules has a condition; it must hold for all answers: when = {{}}")
    words = {key: _entry(spec["answers"], key, f"{where}: answers") for key in ANSWERS}
    return Guide(questions, rules, words)


def _entry(row: Any, key: str, where: str) -> Any:
    if not isinstance(row, Mapping) or key not in row:
        raise ValueError(f"{where} lacks {key}")
    return row[key]

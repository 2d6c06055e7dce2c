"""Where functions are computed: the catalogue, its jobs, and what the arguments of a call mean over them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from ..formula import domains
from ..formula.declare import Choice
from ..formula.table import Table
from .faults import UNKNOWN, WRONG, Fault
from .names import Names
from .question import Question, one
from .values import cell, number
from .vocabulary import Keyword, Vocabulary, vocabulary

if TYPE_CHECKING:
    from ..formula.job import Job
    from ..presets.catalogue import OwnRow, Presets

Values = Mapping[str, Any]
JOB, DEFAULT_JOB = "job", "LoRA"
WHAT = {  # table -> what one of its rows is
    "models": "model", "training_models": "model", "gpus": "card", "storage_formats": "storage format",
    "stacks": "training stack",
}  # fmt: skip
LONGEST_REMEMBERED = 200  # characters
CATALOGUE = ("models", "training_models", "gpus")  # a name that these lack is unknown, not wrong


def _without_files(rows: Sequence[OwnRow]) -> tuple[OwnRow, ...]:
    """Rows with a hash in place of their file's text, which all cards of a file share; each text is read once."""
    hashes = {text: hashlib.sha256(text.encode()).hexdigest() for text in {row.content for row in rows}}
    return tuple(row._replace(content=hashes[row.content]) for row in rows)


class Desk:
    """The functions' view of a set of presets; those that travel with the package when none are named.

    folders: where MODEL_FROM_CONFIG may read a file; none: it takes JSON text alone.
    """

    def __init__(self, presets: Presets | None = None, folders: Sequence[Path] = ()) -> None:
        self._presets, self._jobs, self._names = presets, dict[str, "Job"](), dict[str, Names]()
        self.folders = tuple(folders)
        self._remembered = lru_cache(maxsize=8192, typed=True)(self._taken)  # 8, 8.0 and TRUE are three values

    @cached_property
    def presets(self) -> Presets:
        """The catalogue."""
        from ..presets.catalogue import load_presets

        return self._presets or load_presets()

    @cached_property
    def digest(self) -> str:
        """A short hash of the data and the version that answers come from: equal ones give equal answers."""
        from .. import __version__

        content = hashlib.sha256(f"{__version__} {self.vocabulary!r}".encode())
        presets = self.presets._replace(own=_without_files(self.presets.own))
        for name, part in zip(presets._fields, presets, strict=True):
            parts = part.values() if isinstance(part, dict) else (part,)
            content.update(name.encode())
            for each in parts:
                shown = (each.keys, each.columns, each.units) if isinstance(each, Table) else each
                content.update(repr(shown).encode())
        return content.hexdigest()[:16]

    @property
    def vocabulary(self) -> Vocabulary:
        """Keywords, order of arguments, further words."""
        return vocabulary()

    def job(self, name: str) -> Job:
        """The formulas of a job over these presets."""
        if name not in self._jobs:
            from ..jobs import job, make_job

            self._jobs[name] = job(name) if self._presets is None else make_job(name, self.presets)
        return self._jobs[name]

    def names(self, table: str) -> Names:
        """The names of a table's rows and how they may be called."""
        if table not in self._names:
            what = WHAT.get(table, table.removesuffix("s").replace("_", " "))
            self._names[table] = Names(self.presets.tables[table].keys, what, self.vocabulary.words.get(table))
        return self._names[table]

    @cached_property
    def _keywords(self) -> Names:
        return Names(tuple(self.vocabulary.jobs), "job", self.vocabulary.words["jobs"])

    # ------------------------------------------------------------------ what a call asks
    def keyword(self, values: Values) -> Keyword:
        """The kind of job that a call is about."""
        asked = values.get(JOB)
        return self.vocabulary.jobs[DEFAULT_JOB if asked is None else self._keywords.resolve(JOB, asked, WRONG)]

    def input_of(self, argument: str) -> str:
        """The input that an argument is."""
        return self.vocabulary.inputs.get(argument, argument)

    def question(self, values: Values, without: Sequence[str] = ()) -> tuple[Job, dict[str, Any]]:
        """The job that a call is about and its inputs, as formulas take them. without: arguments that are no input."""
        keyword = self.keyword(values)
        job = self.job(keyword.job)
        inputs = dict(keyword.inputs)
        for argument, value in values.items():
            if argument != JOB and argument not in without:
                inputs[self.input_of(argument)] = self.accepted(job, keyword.name, argument, value)
        return job, inputs

    def accepted(self, job: Job, keyword: str, argument: str, value: Any) -> Any:
        """One argument as formulas take it; Fault with the argument, its value and what is right."""
        key = self.input_of(argument)
        if key not in job.inputs:
            raise Fault(WRONG, f"{argument} is {domains.told(value)}; {keyword} has no such input: leave it out")
        domain = job.inputs[key].domain
        if isinstance(domain, Choice):
            if isinstance(value, bool):
                value = {True: "On", False: "Off"}[value]
            code = UNKNOWN if domain.table in CATALOGUE else WRONG
            return self.names(domain.table).resolve(argument, value, code)
        try:
            return domains.accept(job, key, number(value))
        except ValueError:
            raise Fault(WRONG, f"{argument} is {domains.told(value)}; it must be {domains.allowed(job, key)}") from None

    def taken(self, job: Job, keyword: str, argument: str, value: Any) -> Any:
        """What a cell holds as formulas take it, None for a blank; Fault as accepted() raises it."""
        if isinstance(value, str) and len(value) > LONGEST_REMEMBERED:
            return self._taken(job, keyword, argument, value)
        return self._remembered(job, keyword, argument, value)

    def _taken(self, job: Job, keyword: str, argument: str, value: Any) -> Any:
        held = cell(argument, value)
        return None if held is None else self.accepted(job, keyword, argument, held)

    def asked(
        self, values: Values, results: tuple[str, ...], formula: Callable[..., Any], without: Sequence[str] = ()
    ) -> Question:
        """What a call asks whose value is a formula over terms of its job; see question()."""
        job, inputs = self.question(values, without)
        self._must_have(job, results)
        return Question(job, inputs, results, one(formula))

    def sized(self, job: Job, inputs: Mapping[str, Any], results: tuple[str, ...]) -> tuple[Any, ...]:
        """Terms of a job with accepted inputs, in their order; Fault for one that contradicts itself."""
        record = job.record(results)(**inputs)
        if record is None:
            raise self.contradiction(job, inputs)
        return tuple(record[key] for key in results)

    @staticmethod
    def _must_have(job: Job, results: Sequence[str]) -> None:
        for key in results:
            if key not in job.trees:
                raise Fault(WRONG, f"job is {job.name}; it has no {key.replace('_', ' ')}")

    def contradiction(self, job: Job, inputs: Mapping[str, Any]) -> Fault:
        """What is wrong with a job that breaks a rule, in the words of its check."""
        rules = tuple(key for key, rule in job.checks.items() if rule.fault)
        messages = [job.checks[key].message for key in rules]
        named = {field for text in messages for _, field, _, _ in Formatter().parse(text) if field in job.trees}
        wanted = (*rules, *sorted(named))
        values = dict(zip(wanted, job.scalar(wanted)(**inputs), strict=True))
        constants = {key: constant.value for key, constant in job.constants.items()}
        broken = next(key for key in rules if not values[key])
        words = job.told(broken, {**job.defaults(), **constants, **values, **inputs})
        for argument, key in self.vocabulary.inputs.items():
            words = words.replace(f"{key} is ", f"{argument} is ")
        return Fault(WRONG, words)

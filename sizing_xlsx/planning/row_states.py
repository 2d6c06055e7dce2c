"""What is wrong with a row of a capacity plan, or worth knowing of it: one sentence, the first that applies.

The order and the words are those of the workbook, which asks the same questions in cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..capacity import kinds
from ..formula.declare import Choice
from ..formula.domains import accept, allowed
from ..formula.engine import value_of
from ..formula.expression import Expr

if TYPE_CHECKING:
    from ..capacity.kinds import Graphs
    from ..formula.job import Job

OF_ROW = (  # columns of every kind, behind those of its own
    "gpu_choice", "gpu_count", "runs_per_month", "runs_at_once", "first_month", "last_month", "deadline_date",
)  # fmt: skip
OF_KINDS = tuple(dict.fromkeys(column for columns in kinds.COLUMNS.values() for column in columns))
COLUMNS = ("name", "team", "job_kind", *OF_KINDS, *OF_ROW)
REQUIRED = (
    "name", "job_kind", "base_model", "batch_size", "sequence_length", "training_examples", "sized_peak_gb",
    "sized_total_gb", "sized_hours", "runs_per_month",
)  # fmt: skip
DATE_RULES = ("today_entered", "deadline_ahead", "months_in_order", "window_in_plan")
NOTES = ("cost_counted", "queue_drains", "run_in_window")


def empty(value: Any) -> bool:
    """Whether nothing stands in a cell."""
    return value is None or (isinstance(value, str) and not value.strip())


def shown(value: Any) -> str:
    """A value as a sheet puts it into a sentence."""
    return value if isinstance(value, str) else f"{value:.15g}" if isinstance(value, (int, float)) else str(value)


class States:
    """The sentences. words: the states of the template. cards: names of the cards of the plan."""

    def __init__(self, graphs: Graphs, words: Mapping[str, str], cards: Sequence[str]) -> None:
        self.graphs, self.words = graphs, words
        self.cards = {name.casefold(): name for name in cards}

    # ------------------------------------------------------------------ declarations
    def owner(self, column: str, kind: str) -> tuple[Job, str]:
        """The graph that a column's input belongs to, and the name that it has there."""
        if column in OF_KINDS:
            kind = kind if column in kinds.COLUMNS[kind] else next(k for k in kinds.KINDS if column in kinds.COLUMNS[k])
            return self.graphs.kinds[kind], kinds.input_of(kind, column)
        if column in ("gpu_choice", "gpu_count"):
            return self.graphs.kinds["sized"], column
        return self.graphs.row, column

    def label(self, column: str, kind: str = "lora") -> str:
        """What a column is called."""
        if f"{column}_label" in self.words:
            return self.words[f"{column}_label"]
        job, key = self.owner(column, kind)
        return job.inputs[key].label

    def right(self, column: str, kind: str = "lora") -> str:
        """What may stand in a column, in words."""
        words = {"base_model": "model_right", "recipe": "recipe_right", "gpu_choice": "card_right"}
        if column == "name":
            return self.words["name_right"]
        if column == "job_kind":
            return "one of " + ", ".join(self.graphs.presets.tables["job_kinds"].keys)
        right = self.words[words[column]] if column in words else allowed(*self.owner(column, kind))
        if column == "training_examples":
            return self.words["examples_right"].format(right=right)
        return right if column in REQUIRED else self.words["or_empty"].format(right=right)

    # ------------------------------------------------------------------ what is asked, in its order
    def kind(self, typed: Mapping[str, Any]) -> str:
        """The kind of job of a row whose columns are right."""
        table = self.graphs.presets.tables["job_kinds"]
        return str(table.columns["job"][table.row_of(typed["job_kind"]) - 1])

    def of_columns(self, typed: Mapping[str, Any]) -> str:
        """The first column that is empty or wrong."""
        table = self.graphs.presets.tables["job_kinds"]
        if typed["name"] is None:
            return self._empty("name")
        if typed["job_kind"] is None:
            return self._empty("job_kind")
        if not isinstance(typed["job_kind"], str) or typed["job_kind"].casefold() not in table.index:
            return self._wrong("job_kind", typed["job_kind"])
        kind = self.kind(typed)
        for column in (*kinds.COLUMNS[kind], *OF_ROW):
            value = typed[column]
            if value is None:
                tokens = column == "training_examples" and typed["training_tokens"] is not None
                if column in REQUIRED and not tokens:
                    return self._empty(column, kind)
            elif not self._is_right(column, kind, value):
                return self._wrong(column, value, kind)
        return ""

    def _is_right(self, column: str, kind: str, value: Any) -> bool:
        if column == "gpu_choice":
            return isinstance(value, str) and value.casefold() in self.cards
        job, key = self.owner(column, kind)
        if isinstance(value, str) and not isinstance(job.inputs[key].domain, Choice):
            return False
        try:
            accept(job, key, value)
        except ValueError:
            return False
        return True

    def inputs(self, kind: str, typed: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs of the job that a row sets; what it leaves empty is as the kind has it."""
        job = self.graphs.kinds[kind]
        given = {kinds.input_of(kind, column): typed[column] for column in kinds.COLUMNS[kind]}
        return job.accepted({key: value for key, value in given.items() if value is not None})

    def of_dates(self, when: Mapping[str, Any]) -> str:
        """The first rule of dates that the row breaks."""
        return self._of_rules(self.graphs.row, DATE_RULES, when)

    def of_job(self, kind: str, inputs: Mapping[str, Any], *, no_offer: bool) -> str:
        """The first rule that the job breaks: by itself, for want of a card, or on its card."""
        job = self.graphs.kinds[kind]
        on_card = kinds.offer_rules(job)
        if told := self._of_rules(job, [key for key in kinds.rules_of(job) if key not in on_card], inputs):
            return told
        return self.words["no_offer"] if no_offer else self._of_rules(job, on_card, inputs)

    def of_results(self, taken: Mapping[str, Any]) -> str:
        """Why a job that can be sized is not counted all the same."""
        if taken["verdict_code"] > 2:
            return self.words["too_large"]
        return "" if taken["speed_known"] else self.words["no_speed"]

    def of_note(self, values: Mapping[str, Any], taken: Mapping[str, Any]) -> str:
        """What to know of a row that is counted."""
        for rule in NOTES:
            if not values[rule]:
                return self._told(self.graphs.row, rule, values)
        return self.words["tight"] if taken["verdict_code"] == 2 else ""

    # ------------------------------------------------------------------ sentences
    def _empty(self, column: str, kind: str = "lora") -> str:
        return self.words["empty"].format(label=self.label(column, kind), right=self.right(column, kind))

    def _wrong(self, column: str, value: Any, kind: str = "lora") -> str:
        said = shown(value)
        if isinstance(value, str) and _is_number(value):
            said += self.words["as_text"]
        return self.words["wrong"].format(label=self.label(column, kind), value=said, right=self.right(column, kind))

    def _of_rules(self, job: Job, rules: Sequence[str], inputs: Mapping[str, Any]) -> str:
        values = job.scalar(tuple(rules))(**inputs) if rules else ()
        broken = next((rule for rule, kept in zip(rules, values, strict=True) if not kept), None)
        return "" if broken is None else self._told(job, broken, job.reference(inputs))

    def message(self, job: Job, rule: str, symbol: Callable[[str], Expr]) -> Any:
        """What a broken rule says: a tree, or a plain text."""
        from ..workbook.words import check_words, sentence

        if rule == "capacity_known":
            return self.words["no_capacity"]
        label = {key: facts.label for facts_of in (job.inputs, job.terms) for key, facts in facts_of.items()}
        return sentence(check_words(job, job.checks[rule].message, label.__getitem__), symbol)

    def _told(self, job: Job, rule: str, values: Mapping[str, Any]) -> str:
        tree = self.message(job, rule, job.symbol)
        return str(value_of(tree, values, job.tables) if isinstance(tree, Expr) else tree)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

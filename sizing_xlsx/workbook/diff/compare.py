"""The shares of inputs, presets and formulas in what moved between two workbooks.

Results are calculated again with this program: from the old inputs over the old presets, step by step, to the new
inputs over the new presets. Each step is one table of presets or one input; what it moves is its share. What is left
between the stored results of the two workbooks is the share of the formulas. Shares add up to the whole; where two
causes act together, the order of the steps decides which of them gets the common part.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...formula.declare import Choice
from ...formula.render import public_name
from ...jobs import make_job
from ...paths import presets_folder
from ...presets.catalogue import Presets, load_presets
from ...presets.names import counted
from ..carry.report import told as _told
from ..template import load_template
from .side import Side, read_side

RESULTS = (
    "fit_verdict", "peak_allocated_gb", "total_reserved_gb", "headroom_gb", "gpu_usable_capacity_gb",
    "traced_peak_allocated_gb", "traced_total_reserved_gb", "published_peak_allocated_gb",
    "published_total_reserved_gb", "largest_batch_size", "largest_sequence_length",
)  # fmt: skip
_SAME = 1e-9  # relative
INPUT, PRESET, FORMULA = "input", "preset", "formula"

Values = Mapping[str, Any]


class Cause(NamedTuple):
    """One step. kind: input, preset or formula. name: the input, or the table. told: what changed, in figures."""

    kind: str
    name: str
    told: tuple[str, ...]


class Moved(NamedTuple):
    """One result. shares: cause -> what it moved, of a number its difference, of a text the text after it."""

    name: str
    old: Any
    new: Any
    shares: dict[Cause, Any]

    def share(self, kind: str) -> float:
        """What one kind of cause moved a number by."""
        return float(sum(value for cause, value in self.shares.items() if cause.kind == kind and _number(value)))


class Difference(NamedTuple):
    """The answer. changed: every cause that there is, whether or not it moved a result."""

    old: Side
    new: Side
    moved: list[Moved]
    changed: list[Cause]
    notes: list[str]


def compare(old_path: Path, new_path: Path, presets: Presets | None = None, folder: Path | None = None) -> Difference:
    """What moved between two workbooks, and why.

    presets, folder: of this program; its own unless given. Raises ValueError, one sentence, for files that are not two
    workbooks of one job.
    """
    mine = presets or load_presets(folder)
    old, new = (read_side(path, mine, folder or presets_folder()) for path in (old_path, new_path))
    if old.job != new.job:
        raise ValueError(f"{old.where} sizes {old.job} and {new.where} sizes {new.job}; name two workbooks of one job")
    terms = _terms(old.job)
    steps, notes = _steps(old, new, terms)
    formulas = Cause(FORMULA, "formulas", tuple(_formulas(old, new)))
    moved = [found for term in terms if (found := _moved(term, old, new, steps, formulas, notes)) is not None]
    changed = [cause for cause, _ in steps[1:]]
    if formulas.told or any(formulas in one.shares for one in moved):
        changed.append(formulas)
    return Difference(old, new, moved, [cause for cause in changed if cause.told], notes)


def _terms(job: str) -> list[str]:
    """The results that are compared: the headline figures, then the line items."""
    template = load_template(job)
    if "items" not in template:
        from ..forms import form_of_job

        return ["fit_verdict", "gpu_usable_capacity_gb", *form_of_job(job).results]
    items = [item[kind] for item in template["items"] for kind in ("traced", "published") if item[kind]]
    return list(dict.fromkeys([*RESULTS, *items]))


def _steps(old: Side, new: Side, terms: list[str]) -> tuple[list[tuple[Cause, Values]], list[str]]:
    """The results after each step from the old inputs and presets to the new ones; the first is where they start."""
    notes: list[str] = []
    inputs = {**{key: new.inputs[key] for key in old.lacking if key in new.inputs}, **old.inputs}
    presets = old.presets
    steps: list[tuple[Cause, Values]] = [(Cause("", "", ()), _size(old.job, presets, inputs, terms))]
    for name, table in new.presets.tables.items():
        before = presets.tables[name]
        if (before.keys, before.columns) == (table.keys, table.columns):
            continue
        trial = _with_table(presets, name, new)
        choices = {key: value for key, value in inputs.items() if _choice_of(old.job, key) == name}
        gone = [key for key, value in choices.items() if str(value).casefold() not in table.index]
        notes += [
            f"{public_name(key)} {choices[key]} is no longer listed: the step to {new.inputs[key]} counts as preset"
            for key in gone
        ]
        inputs = {**inputs, **{key: new.inputs[key] for key in gone}}
        presets = trial
        told = _rows(
            before,
            table,
            {str(value).casefold() for value in [*choices.values(), *new.inputs.values()] if isinstance(value, str)},
        )
        steps.append((Cause(PRESET, name, tuple(told)), _size(old.job, presets, inputs, terms)))
    for key, value in new.inputs.items():
        if inputs.get(key) == value and type(inputs.get(key)) is type(value):
            continue
        told = [f"{_told(inputs.get(key))} → {_told(value)}"]
        inputs = {**inputs, key: value}
        steps.append((Cause(INPUT, public_name(key), tuple(told)), _size(old.job, presets, inputs, terms)))
    return steps, notes


def _size(job: str, presets: Presets, inputs: Values, terms: list[str]) -> Values:
    """Results of a job over given presets; faults between inputs halfway do not stop it."""
    opened = {key: value for key, value in inputs.items() if _choice_of(job, key)}
    made = make_job(job, presets, (), opened)
    accepted = made.accepted(inputs)
    values = dict(zip(terms, made.scalar(tuple(terms))(**{**made.defaults(), **accepted}), strict=True))
    return {term: value.item() if hasattr(value, "item") else value for term, value in values.items()}


def _choice_of(job: str, key: str) -> str:
    """The table that an input is chosen from, "" where it is none."""
    from ...jobs import job as known

    declared = known(job).inputs.get(key)
    return declared.domain.table if declared is not None and isinstance(declared.domain, Choice) else ""


def _with_table(presets: Presets, name: str, new: Side) -> Presets:
    table = new.presets.tables[name]
    if name in presets.options:
        return presets._replace(options={**presets.options, name: table})
    return presets._replace(**{name: table})  # type: ignore[arg-type]


def _rows(before: Any, after: Any, keys: set[str]) -> list[str]:
    """What differs between two tables: the rows that the job uses figure by figure, the others as a count."""
    found = []
    others = 0
    for key in dict.fromkeys([*before.keys, *after.keys]):
        rows = before.index.get(key.casefold()), after.index.get(key.casefold())
        told = []
        if None in rows:
            told = ["is new"] if rows[0] is None else ["is gone"]
        else:
            for column in after.columns:
                was = before.columns[column][rows[0] - 1] if column in before.columns else None
                now = after.columns[column][rows[1] - 1]
                if was != now:
                    told.append(f"{column} {_told(was)} → {_told(now)}")
        if key.casefold() in keys:
            found += [f"{key}: {text}" for text in told]
        elif told:
            others += 1
    if others:
        found.append(counted(others, "other row"))
    return found or ["the order of its rows"]


def _formulas(old: Side, new: Side) -> list[str]:
    """Formulas and constants that differ, by their names."""
    found = [
        f"{public_name(key)}: {_told(old.constants[key])} → {_told(new.constants[key])}"
        for key in old.constants
        if key in new.constants and not _alike(old.constants[key], new.constants[key])
    ]
    other = [key for key in new.shapes if key in old.shapes and old.shapes[key] != new.shapes[key]]
    if other:
        names = ", ".join(public_name(key) for key in other[:8])
        differ = counted(len(other), "formula differs", "formulas differ")
        found.append(f"{differ}: {names}{' and more' if len(other) > 8 else ''}")
    return found


def _moved(
    term: str, old: Side, new: Side, steps: list[tuple[Cause, Values]], formulas: Cause, notes: list[str]
) -> Moved | None:
    first, last = steps[0][1][term], steps[-1][1][term]
    was, now = _stored(old, term, first, notes), _stored(new, term, last, notes)
    shares: dict[Cause, Any] = {}
    before = first
    for cause, values in steps[1:]:
        after = values[term]
        if not _alike(before, after):
            shares[cause] = after - before if _number(after) and _number(before) else after
        before = after
    if _number(was) and _number(now):
        rest = (now - was) - sum(value for value in shares.values() if _number(value))
        scale = max(abs(was), abs(now), abs(first), abs(last), 1e-300)
        if abs(rest) > _SAME * scale:
            shares[formulas] = rest
    elif not _alike(was, first) or not _alike(now, last):
        shares[formulas] = now
    if _alike(was, now) and not any(_number(value) for value in shares.values()):
        return None
    if _alike(was, now) and not shares:
        return None
    return Moved(public_name(term), was, now, shares)


def _stored(side: Side, term: str, calculated: Any, notes: list[str]) -> Any:
    """The result that a workbook holds; what this program calculates where it holds none."""
    value = side.results.get(term)
    if value is None or (isinstance(value, str) and value.startswith("#")) or _number(value) != _number(calculated):
        note = f"{side.where} holds no stored results for some figures: those of this program are used instead"
        if note not in notes:
            notes.append(note)
        return calculated
    return value


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _alike(a: Any, b: Any) -> bool:
    if _number(a) and _number(b):
        return bool(abs(a - b) <= _SAME * max(abs(a), abs(b)))
    return bool(a == b)

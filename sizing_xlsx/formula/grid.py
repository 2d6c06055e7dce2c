"""Terms that rest on few texts: evaluated once for each combination, on a grid with an axis a text, then gathered.

A million jobs have some hundred models, cards and formats among them; what is looked up of these, and all that is
calculated from it alone, is the same for many jobs. NumPy's broadcasting lays the grid out: a term has the axes of the
texts that it rests on, and length 1 along all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .expression import names_in

if TYPE_CHECKING:
    from .job import Job

SHARE = 4  # a term is evaluated on the grid where that has at most one combination for so many jobs

Shape = tuple[int, ...]


def steady_terms(job: Job, columns: Mapping[str, Any], wanted: tuple[str, ...], count: int) -> tuple[str, ...]:
    """The terms to evaluate on the grid: those wanted, and those that others are made of.

    They rest on no column of numbers, and on texts of far fewer combinations than there are jobs.
    """
    sizes = {key: len(value[0]) for key, value in columns.items() if isinstance(value, tuple)}
    moving = {key for key, value in columns.items() if isinstance(value, np.ndarray)}
    place: Any = "rests on", wanted, frozenset(sizes), frozenset(moving)
    if place not in job.engines:
        job.engines[place] = _rests_on(job, wanted, {*sizes, *moving})
    rests_on: dict[str, frozenset[str]] = job.engines[place]
    small = frozenset(
        texts
        for texts in set(rests_on.values())
        if texts.isdisjoint(moving) and prod(sizes[text] for text in texts) * SHARE <= count
    )
    if (*place, small) not in job.engines:
        steady = {key for key, texts in rests_on.items() if texts in small}
        used = {name for key in rests_on if key not in steady for name in names_in(job.trees[key])}.union(wanted)
        job.engines[*place, small] = tuple(key for key in rests_on if key in steady and key in used)
    return job.engines[*place, small]  # type: ignore[no-any-return]


def _rests_on(job: Job, wanted: tuple[str, ...], columns: set[str]) -> dict[str, frozenset[str]]:
    """Each needed term, in order of evaluation, with the columns that it rests on."""
    found = {key: frozenset((key,)) for key in columns}
    needed = job.needed(wanted)
    for key in needed:
        found[key] = frozenset[str]().union(*(found.get(name, ()) for name in names_in(job.trees[key])))
    return {key: found[key] for key in needed}


class Grid:
    """The values of terms for every combination of the texts that they rest on."""

    def __init__(self, job: Job, columns: Mapping[str, Any], terms: tuple[str, ...]) -> None:
        self.texts = [key for key, value in columns.items() if isinstance(value, tuple)]
        axes = {}
        for axis, key in enumerate(self.texts):
            words = columns[key][0]
            shape = [-1 if at == axis else 1 for at in range(len(self.texts))]
            axes[key] = (words, np.arange(len(words)).reshape(shape))
        single = {key: value for key, value in columns.items() if not isinstance(value, (tuple, np.ndarray))}
        self.values = dict(job.steps(terms)(**single, **axes)) if terms else {}

    def column(self, key: str, count: int) -> Any:
        """Room for a term's values, one a job."""
        value = self.values[key]
        return np.empty(count, dtype=object if isinstance(value, tuple) else np.asarray(value).dtype)

    def block(self, columns: Mapping[str, Any]) -> Block:
        """The same terms for jobs with these texts."""
        return Block(self.values, [columns[key][1] for key in self.texts])


class Block:
    """The terms of a grid for the jobs of one block. codes: of each text, one a job."""

    def __init__(self, values: Mapping[str, Any], codes: list[Any]) -> None:
        self.values, self.codes = values, codes
        self.places: dict[Shape, Any] = {}

    def __call__(self, key: str) -> Any:
        """A term's values, one a job; or its single value."""
        value = self.values[key]
        return (value[0], self._gathered(value[1])) if isinstance(value, tuple) else self._gathered(value)

    def into(self, key: str, out: Any) -> None:
        """Write a term's values where they go."""
        value = self.values[key]
        if isinstance(value, tuple):
            value = np.array(value[0], dtype=object)[value[1]]
        if np.size(value) == 1:
            out[:] = value
        else:
            value.ravel().take(self._place(value.shape), out=out, mode="clip")

    def _gathered(self, value: Any) -> Any:
        if np.size(value) == 1:
            return value.ravel()[0] if np.ndim(value) else value
        return value.ravel().take(self._place(value.shape), mode="clip")

    def _place(self, shape: Shape) -> Any:
        """Where the jobs lie in values of that shape, counted through."""
        if shape not in self.places:
            place: Any = 0
            for length, codes in zip(shape, self.codes, strict=True):
                if length > 1:
                    place = place * length + codes
            self.places[shape] = place
        return self.places[shape]

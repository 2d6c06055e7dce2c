"""Kinds of formulas: what the surfaces that hold formulas need to know of a function beside its value in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .desk import Desk


class OfTerms(NamedTuple):
    """A formula over terms of the job. function: its parameters are terms; called with symbols it gives the tree."""

    function: Callable[..., Any]
    terms: tuple[str, ...]


class OfRun(NamedTuple):
    """A formula over terms that stand beside memory, which are only known where another term is above 0."""

    function: Callable[..., Any]
    terms: tuple[str, ...]
    known: str

    @property
    def asked(self) -> tuple[str, ...]:
        """All the terms that it rests on."""
        return (self.known, *self.terms)


class Picked(NamedTuple):
    """One of several terms, by the name that an argument gives. choices: as of that argument."""

    argument: str
    choices: Callable[[Desk, str], Mapping[str, Any]]


class Boundary(NamedTuple):
    """The largest whole value of an input at which the job fits. term: the closed form of the same in Python."""

    vary: str
    term: str


class BestCard(NamedTuple):
    """The card on which the job fits whose figure is the lowest. column: of the cards."""

    column: str


class OfCard(NamedTuple):
    """A figure of a card. choices: as of the argument that names it."""

    argument: str

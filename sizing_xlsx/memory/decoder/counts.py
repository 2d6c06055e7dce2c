"""The counts of one architecture in plain Python: the formulas of shape and parameters, called with its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from ...formula.declare import Term
from ...formula.table import Table
from ...presets.config import UNITS, Architecture
from . import parameters, shape


def formulas_of(module: ModuleType) -> dict[str, Term]:
    """The terms of a module by name."""
    return {
        key: facts for key, value in vars(module).items() if isinstance(facts := getattr(value, "term", None), Term)
    }


FORMULAS: dict[str, Term] = formulas_of(shape) | formulas_of(parameters)


def counts(model: Architecture, terms: Iterable[str] = tuple(FORMULAS)) -> dict[str, Any]:
    """Terms of shape and parameters by name, for one model.

    Raises ValueError when the model's family is not described and its modules have not been counted either.
    """
    if model.counted is not None:
        known = dict(model.counted)
        return {key: known[key] for key in terms if key in known}
    if model.window_kind is None:
        raise ValueError(f"{model.name}: its parameters cannot be counted, for {model.why_not}")
    row = {column: getattr(model, column) for column in UNITS}
    values: dict[str, Any] = {
        "models": Table("models", [model.name], {column: [value] for column, value in row.items()}, UNITS),
        "model_row": 1,
    }
    return {key: evaluated(key, values, FORMULAS) for key in terms if key != "model_row"}


def parameter_count(model: Architecture) -> int:
    """The exact number of parameters of a model; ValueError as counts() says."""
    return int(counts(model, ("base_parameter_count",))["base_parameter_count"])


def evaluated(key: str, values: dict[str, Any], formulas: Mapping[str, Term]) -> Any:
    """A term's value, by plain functions, from the values that are known; those on the way are added to them."""
    if key not in values:
        formula = formulas[key]
        assert formula.function is not None
        values[key] = formula.function(*[evaluated(needed, values, formulas) for needed in formula.needs])
    return values[key]

"""The counts of one architecture in plain Python: the formulas of shape and parameters, called with its columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...formula.declare import Term
from ...formula.table import Table
from ...presets.config import UNITS, Architecture
from . import parameters, shape

FORMULAS: dict[str, Term] = {
    key: facts
    for module in (shape, parameters)
    for key, value in vars(module).items()
    if isinstance(facts := getattr(value, "term", None), Term)
}


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
    return {key: _value(key, values) for key in terms if key != "model_row"}


def parameter_count(model: Architecture) -> int:
    """The exact number of parameters of a model; ValueError as counts() says."""
    return int(counts(model, ("base_parameter_count",))["base_parameter_count"])


def _value(key: str, values: dict[str, Any]) -> Any:
    if key not in values:
        formula = FORMULAS[key]
        assert formula.function is not None
        values[key] = formula.function(*[_value(needed, values) for needed in formula.needs])
    return values[key]

"""What the stages of a budget cost at their limits, on rented cards."""

from typing import Any

from ..formula.declare import term
from ..formula.primitives import either


@term("currency per hour")
def machine_price(gpu_count: Any, billed_price: Any) -> Any:
    """Price of all cards of the run for an hour."""
    return gpu_count * billed_price


@term("currency", label="Correctness")
def correctness_cost(cost_known: Any, correctness_hours: Any, machine_price: Any) -> Any:
    """Rent of the first stage at its limit."""
    return either(cost_known > 0, correctness_hours * machine_price, "not known")


@term("currency", label="Feasibility")
def feasibility_cost(cost_known: Any, feasibility_hours: Any, machine_price: Any) -> Any:
    """Rent of the second stage at its limit."""
    return either(cost_known > 0, feasibility_hours * machine_price, "not known")


@term("currency", label="Quality")
def quality_cost(cost_known: Any, quality_hours: Any, machine_price: Any) -> Any:
    """Rent of the third stage at its limit."""
    return either(cost_known > 0, quality_hours * machine_price, "not known")


@term("currency", label="Long run")
def long_run_cost(cost_known: Any, long_run_hours: Any, machine_price: Any) -> Any:
    """Rent of the last stage at its limit."""
    return either(cost_known > 0, long_run_hours * machine_price, "not known")


@term("currency", label="Budget")
def budget_cost(cost_known: Any, budget_hours: Any, machine_price: Any, cost_beside_cards: Any) -> Any:
    """All stages at their limits, and what is paid beside the cards."""
    return either(cost_known > 0, budget_hours * machine_price + cost_beside_cards, "not known")

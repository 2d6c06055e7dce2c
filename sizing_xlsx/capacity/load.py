"""All jobs on one kind of card in one month: how many cards are needed at once. An estimate; no schedule is made."""

from typing import Any

from ..effort.hours import hours_per_day, today_date
from ..formula.declare import Input, Number, term
from ..formula.primitives import either, floor, given, maximum, minimum
from ..memory.shared.limits import rounding_guard
from .month import days_in_month, month_day, next_month_day

__all__ = ["days_in_month", "hours_per_day", "month_day", "next_month_day", "rounding_guard", "today_date"]

card_hours = Input("hours", Number(0, 1e300), 0, "Card hours", "Of all jobs on the card in the month.")
largest_need = Input(
    "count", Number(0, 1e300), 0, "Largest need", "Most cards that one job holds at once in the month."
)
floor_cards = Input("count", Number(0, 1e300), 0, "Floor", "Cards that every month has work for.")


@term("hours")
def month_hours(days_in_month: Any, hours_per_day: Any) -> Any:
    """Hours of the month."""
    return days_in_month * hours_per_day


@term("count")
def average_cards(card_hours: Any, month_hours: Any) -> Any:
    """Cards that are busy on average."""
    return card_hours / month_hours


@term("count")
def cards_at_once(average_cards: Any, largest_need: Any, rounding_guard: Any) -> Any:
    """Cards needed at once: the average load rounded up, and at least what the largest job holds."""
    return maximum(0 - floor(rounding_guard - average_cards), largest_need)


@term("count")
def whole_month_cards(average_cards: Any, month_day: Any, today_date: Any) -> Any:
    """Cards busy on average in a month that lies ahead as a whole; a month that has begun says nothing of a floor."""
    return either(month_day >= given(today_date, month_day), average_cards, "not whole")


@term("hours")
def floor_month_hours(card_hours: Any, floor_cards: Any, month_hours: Any) -> Any:
    """Card hours of the month that the cards of the floor would do."""
    return minimum(card_hours, floor_cards * month_hours)

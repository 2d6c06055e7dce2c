"""When a job of the plan runs: from its first month or today, to its last month or its deadline."""

from typing import Any

from ..effort.hours import (
    dates_entered,
    days_late,
    days_left,
    deadline_ahead,
    deadline_date,
    deadline_day,
    plan_day,
    today_date,
    today_entered,
)
from ..formula.declare import DAY, Input, check, term
from ..formula.primitives import given, maximum, minimum, month_after, month_start, when

__all__ = [
    "dates_entered", "days_late", "days_left", "deadline_ahead", "deadline_date", "deadline_day", "plan_day",
    "today_date", "today_entered",
]  # fmt: skip

plan_start = Input("days", DAY, 46_266, "Start of the plan", "First day of the plan's first month.")
plan_end = Input("days", DAY, 46_631, "End of the plan", "The day after the plan's last month.")
first_month = Input(
    "days",
    DAY,
    None,
    "First month",
    "Any day of the first month with runs; empty: from the plan's start.",
    optional=True,
)
last_month = Input(
    "days", DAY, None, "Last month", "Any day of the last month with runs; empty: to the plan's end.", optional=True
)


@term("days")
def first_month_day(first_month: Any, plan_start: Any) -> Any:
    """A day of the row's first month, or of the plan's."""
    return given(first_month, plan_start)


@term("days")
def last_month_day(last_month: Any, plan_end: Any) -> Any:
    """A day of the row's last month; the plan's end where none is entered."""
    return given(last_month, plan_end)


@term("days")
def first_asked(first_month_day: Any) -> Any:
    """First day of the row's first month, or of the plan."""
    return month_start(first_month_day)


@term("days")
def last_asked(last_month_day: Any) -> Any:
    """The day after the row's last month, or one beyond the plan."""
    return month_after(last_month_day)


@term("days")
def window_start(first_asked: Any, plan_start: Any, today_date: Any) -> Any:
    """The first day with runs: the latest of the row's first month, the plan's, and today."""
    return maximum(first_asked, plan_start, given(today_date, plan_start))


@term("days")
def window_end(last_asked: Any, plan_end: Any, deadline_date: Any) -> Any:
    """The day before which the last run ends: the end of the row's last month, of the plan, or the deadline."""
    return minimum(last_asked, plan_end, given(deadline_date, plan_end))


@term("days")
def window_days(window_start: Any, window_end: Any) -> Any:
    """Days with runs."""
    return maximum(0, window_end - window_start)


@term("days")
def first_entered(first_month: Any) -> Any:
    """The first month as entered; 0 where it is not."""
    return given(first_month, 0)


@term("days")
def last_entered(last_month: Any) -> Any:
    """The last month as entered; 0 where it is not."""
    return given(last_month, 0)


@check("last_month is before first_month; it must be the same month or a later one")
@term("switch")
def months_in_order(first_entered: Any, last_entered: Any, first_asked: Any, last_asked: Any) -> Any:
    """1 when the last month is not before the first, or one of them is not entered."""
    return when((minimum(first_entered, last_entered) > 0) & (last_asked <= first_asked), 0, 1)


@check(
    "first_month, last_month and deadline_date leave no day within the plan from today on; they must leave one at least"
)
@term("switch")
def window_in_plan(window_days: Any) -> Any:
    """1 when the row has a day within the plan."""
    return when(window_days > 0, 1, 0)

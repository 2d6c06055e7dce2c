"""A job of the plan in one month: its runs, card hours, cards and money."""

from typing import Any

from ..formula.declare import DAY, Input, term
from ..formula.primitives import maximum, minimum, month_after, when

month_day = Input("days", DAY, 46_266, "Month", "The month's first day.")


@term("days")
def next_month_day(month_day: Any) -> Any:
    """First day of the month after."""
    return month_after(month_day)


@term("days")
def days_in_month(month_day: Any, next_month_day: Any) -> Any:
    """Days of the month."""
    return next_month_day - month_day


@term("days")
def days_running(window_start: Any, window_end: Any, month_day: Any, next_month_day: Any) -> Any:
    """Days of the month on which the job runs."""
    return maximum(0, minimum(window_end, next_month_day) - maximum(window_start, month_day))


@term("count")
def month_runs(runs_per_month: Any, days_running: Any, days_in_month: Any) -> Any:
    """Runs in the month: those of a whole month, in proportion to its days."""
    return runs_per_month * (days_running / days_in_month)


@term("hours")
def month_card_hours(month_runs: Any, billed_gpu_hours: Any) -> Any:
    """Card hours in the month."""
    return month_runs * billed_gpu_hours


@term("count")
def month_cards(days_running: Any, cards_needed: Any) -> Any:
    """Cards that the job holds at once in the month."""
    return when(days_running > 0, cards_needed, 0)


@term("currency")
def month_storage(days_running: Any, storage_cost: Any) -> Any:
    """Disks of the job in a month in which it runs: paid once for the job, however many runs share them."""
    return when(days_running > 0, storage_cost, 0)


@term("currency")
def month_setup(window_start: Any, month_day: Any, next_month_day: Any, engineering_cost: Any) -> Any:
    """Setting up, in the month in which the job begins."""
    return when((window_start >= month_day) & (window_start < next_month_day), engineering_cost, 0)


@term("currency")
def month_spend(month_runs: Any, run_cost: Any, month_storage: Any, month_setup: Any, price_known: Any) -> Any:
    """Money of the month: its runs, the month's disks, and setting up; 0 where the card has no price."""
    return price_known * (month_runs * run_cost + month_storage + month_setup)

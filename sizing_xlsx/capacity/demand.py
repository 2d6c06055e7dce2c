"""What a job of the plan takes: money of a run, runs side by side, cards. Its hours and prices are the job's own."""

from typing import Any

from ..effort.hours import hours_per_day
from ..effort.own import hours_per_year, one_year
from ..formula.declare import Constant, Input, Number, Whole, check, term
from ..formula.primitives import floor, given, maximum, minimum, when
from ..memory.shared.limits import rounding_guard

__all__ = ["hours_per_day", "hours_per_year", "one_year", "rounding_guard"]

_MOST = 1e300
months_per_year = Constant(12, "count", "Months of a year", "definition", "definition")
# What the job's own formulas say of a run, under the names that they have there.
gpu_count = Input("count", Number(1, _MOST), 1, "Cards of a run", "Cards that one run works on at once.")
occupied_hours = Input("hours", Number(0, _MOST), 1, "Hours of a run", "Hours on the cards as expected.")
billed_gpu_hours = Input(
    "hours", Number(0, _MOST), 1, "Card hours of a run", "With those of failed runs and of idling, as expected."
)
card_rent = Input("currency", Number(0, _MOST), 0, "Rent of a run", "Rent of the cards as expected.")
transfer_cost = Input("currency", Number(0, _MOST), 0, "Transfer of a run", "What leaves the provider's network.")
storage_cost = Input("currency", Number(0, _MOST), 0, "Storage of a month", "Disks for data and checkpoints, a month.")
engineering_cost = Input("currency", Number(0, _MOST), 0, "Setting up", "Days of setting up, once for the job.")
price_known = Input("switch", Whole(0, 1), 1, "Price known", "1 when the card has a price.")
speed_known = Input("switch", Whole(0, 1), 1, "Speed known", "1 when the card's speed is known.")
runs_per_month = Input(
    "count",
    Number(0.001, 1_000_000),
    1,
    "Runs a month",
    "How often the job runs in a whole month; 0.25 is every fourth.",
)
runs_at_once = Input(
    "count",
    Whole(1, 100_000),
    None,
    "Runs at once",
    "Runs that must go side by side; empty: as many as a month's runs need.",
    optional=True,
)


@term("currency", label="Cost of a run")
def run_cost(card_rent: Any, transfer_cost: Any) -> Any:
    """Rent of the cards and what leaves the network; storage is paid by the month, setting up once."""
    return card_rent + transfer_cost


@term("hours")
def usual_month_hours(hours_per_year: Any, one_year: Any, months_per_year: Any) -> Any:
    """Hours of a month on average."""
    return hours_per_year * one_year / months_per_year


@term("hours")
def machine_hours(billed_gpu_hours: Any, gpu_count: Any) -> Any:
    """Hours for which a run holds its cards."""
    return billed_gpu_hours / gpu_count


@term("count")
def at_once_needed(runs_per_month: Any, machine_hours: Any, usual_month_hours: Any, rounding_guard: Any) -> Any:
    """Runs side by side without which a month's runs do not end within the month."""
    return 0 - floor(rounding_guard - runs_per_month * machine_hours / usual_month_hours)


@term("count")
def at_once_most(runs_per_month: Any, rounding_guard: Any) -> Any:
    """Runs that a month has at all."""
    return 0 - floor(rounding_guard - runs_per_month)


@term("count")
def at_once_asked(runs_at_once: Any) -> Any:
    """Runs side by side, as entered; 1 where they are not."""
    return given(runs_at_once, 1)


@term("count")
def at_once(at_once_asked: Any, at_once_most: Any, at_once_needed: Any) -> Any:
    """Runs side by side: those entered, no more than there are, and at least those that are needed."""
    return maximum(minimum(at_once_asked, at_once_most), at_once_needed)


@term("count")
def cards_needed(gpu_count: Any, at_once: Any) -> Any:
    """Cards that the job holds while it runs: those of a run, times the runs side by side."""
    return gpu_count * at_once


@check(
    "runs_at_once is {runs_at_once}; {at_once_needed} are planned for, as a month's runs do not end in time otherwise",
    fault=False,
)
@term("switch")
def queue_drains(runs_at_once: Any, at_once_needed: Any) -> Any:
    """1 when the runs entered side by side do a month's work in a month."""
    return when(given(runs_at_once, at_once_needed) < at_once_needed, 0, 1)


@term("days")
def run_days(occupied_hours: Any, hours_per_day: Any) -> Any:
    """Days that a run takes, day and night."""
    return occupied_hours / hours_per_day


@check(
    "a run takes {run_days} {run_days:day|days} and deadline_date leaves {window_days}; more or faster cards would"
    " help",
    fault=False,
)
@term("switch")
def run_in_window(dates_entered: Any, run_days: Any, window_days: Any) -> Any:
    """1 when a run ends by the deadline, or none is entered."""
    return when((dates_entered > 0) & (run_days > window_days), 0, 1)


@check("the card has no price; its hours are counted and its money is not", fault=False)
@term("switch")
def cost_counted(price_known: Any) -> Any:
    """1 when the row's money is counted: its card has a price."""
    return price_known

"""What to buy and what to rent of one kind of card: the floor of use is bought where that pays, the rest is rented.

The cost of owning is that of the jobs' own formulas: purchase, upkeep, spare cards, power and cooling.
"""

from typing import Any

from ..effort.hours import hours_per_day, least_duration
from ..effort.own import (
    break_even_exists,
    break_even_known,
    break_even_utilisation,
    cards_per_working,
    fixed_per_owned_hour,
    hours_per_year,
    least_price,
    one_year,
    own_price_per_gpu_hour,
    own_system_kw,
    owned_cost,
    owned_hours,
    owned_years,
    paid_power_price,
    power_known,
    power_per_gpu_hour,
    power_price,
    power_price_usd,
    power_usage_effectiveness,
    purchase_price,
    purchase_price_usd,
    purchase_total,
    rent_recovered,
    saved_per_hour,
    spare_cards,
    system_kw,
    system_power_factor,
    upkeep_share,
    watts_per_kilowatt,
)
from ..effort.rent import (
    IN_DOLLARS,
    billed_price,
    billing_choice,
    billing_row,
    paid_use,
    price_discount,
    reserved_discount,
    reserved_utilisation,
    spot_discount,
)
from ..formula.declare import Constant, Input, Number, term
from ..formula.primitives import floor, given, maximum, when
from ..memory.shared.card import gpu_choice, gpu_row
from ..memory.shared.limits import rounding_guard

__all__ = [
    "billed_price", "billing_choice", "billing_row", "break_even_exists", "break_even_known", "break_even_utilisation",
    "cards_per_working", "fixed_per_owned_hour", "gpu_choice", "gpu_row", "hours_per_day", "hours_per_year",
    "least_duration", "least_price", "one_year", "own_price_per_gpu_hour", "own_system_kw", "owned_cost", "owned_hours",
    "owned_years", "paid_power_price", "paid_use", "power_known", "power_per_gpu_hour",
    "power_price", "power_price_usd", "power_usage_effectiveness", "price_discount", "purchase_price",
    "purchase_price_usd", "purchase_total", "rent_recovered", "reserved_discount", "reserved_utilisation",
    "rounding_guard", "saved_per_hour", "spare_cards", "spot_discount", "system_kw", "system_power_factor",
    "upkeep_share", "watts_per_kilowatt",
]  # fmt: skip

_MOST = 1e300
never_reached = Constant(2, "share", "Never reached", "stands for a use that no card reaches", "definition")
least_share = Constant(1e-9, "share", "Least use", "keeps a use that is none from dividing by zero", "definition")
card_purchase_usd = Input(
    "USD",
    Number(0, 1e9),
    None,
    "Purchase, assumed",
    "Of this card, in US dollars, with its share of machine, network and installation; counts where none is entered.",
    optional=True,
)
least_average = Input("count", Number(0, _MOST), 0, "Quietest month", "Cards busy on average in the month with least.")
most_at_once = Input("count", Number(0, _MOST), 0, "Peak", "Cards needed at once in the busiest month.")
plan_hours = Input("hours", Number(0, _MOST), 8760, "Hours of the plan", "From its first day to its last.")
floor_card_hours = Input(
    "hours", Number(0, _MOST), 0, "Hours of the floor", "Card hours that the cards of the floor would do."
)


@term("currency", source=IN_DOLLARS, label="Purchase in force")
def paid_purchase_price(
    purchase_price: Any, card_purchase_usd: Any, purchase_price_usd: Any, exchange_rate: Any
) -> Any:
    """A card bought: as entered, in the currency; else what is assumed of it, or of any card, in dollars."""
    return given(purchase_price, given(card_purchase_usd, purchase_price_usd) * exchange_rate)


@term("count")
def floor_cards(least_average: Any, rounding_guard: Any) -> Any:
    """Cards that every month has work for: the average of the quietest, rounded up."""
    return 0 - floor(rounding_guard - least_average)


@term("count")
def gpu_count(floor_cards: Any) -> Any:
    """Cards that are bought together, spare ones apart; 1 where none are, so that owning one can be told."""
    return maximum(floor_cards, 1)


@term("share")
def floor_use(floor_card_hours: Any, floor_cards: Any, plan_hours: Any, least_duration: Any) -> Any:
    """Share of all hours in which the cards of the floor would work."""
    return floor_card_hours / maximum(floor_cards * plan_hours, least_duration)


@term("share")
def break_even_use(break_even_known: Any, break_even_exists: Any, rent_recovered: Any, never_reached: Any) -> Any:
    """The use from which on owning is cheaper than renting, as a number; beyond 1 where none is, or it is not known."""
    return when((break_even_known > 0) & (break_even_exists > 0), rent_recovered, never_reached)


@term("switch")
def buying_pays(floor_cards: Any, floor_use: Any, break_even_use: Any) -> Any:
    """1 when the cards of the floor would be used enough for owning to be cheaper."""
    return when((floor_cards > 0) & (break_even_use <= 1) & (floor_use >= break_even_use), 1, 0)


@term("count")
def cards_bought(buying_pays: Any, floor_cards: Any) -> Any:
    """Cards to buy, spare ones apart."""
    return buying_pays * floor_cards


@term("count")
def spares_bought(buying_pays: Any, spare_cards: Any) -> Any:
    """Spare cards to buy: 1 makes N+1."""
    return buying_pays * spare_cards


@term("count")
def cards_rented(most_at_once: Any, cards_bought: Any) -> Any:
    """Cards to rent at the peak, beside those bought."""
    return maximum(0, most_at_once - cards_bought)


@term("currency")
def fleet_purchase(buying_pays: Any, purchase_total: Any) -> Any:
    """What the purchase takes at once, spare cards among it."""
    return buying_pays * purchase_total


@term("share")
def own_utilisation(floor_use: Any, least_share: Any) -> Any:
    """The use of owned cards at which their hour is told: that of the floor."""
    return maximum(floor_use, least_share)


@term("currency")
def floor_rent(floor_card_hours: Any, billed_price: Any) -> Any:
    """Rent of the hours that the cards of the floor would do."""
    return floor_card_hours * billed_price


@term("currency")
def floor_owned(floor_card_hours: Any, own_price_per_gpu_hour: Any) -> Any:
    """The same hours on owned cards: their share of purchase and upkeep, and their power."""
    return floor_card_hours * own_price_per_gpu_hour


@term("currency")
def buying_saves(buying_pays: Any, floor_rent: Any, floor_owned: Any) -> Any:
    """What buying saves over the plan, against renting the same hours; 0 where it does not pay."""
    return when(buying_pays > 0, floor_rent - floor_owned, 0)

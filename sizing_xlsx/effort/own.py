"""A run on cards of one's own: what an hour costs over the years, and from which use on it is less than rent."""

from typing import Any

from ..formula.declare import Constant, Input, Number, Whole, term
from ..formula.primitives import either, given, maximum, when
from .rent import IN_DOLLARS

hours_per_year = Constant(8760, "hours per year", "Hours of a year", "365 days", "definition")
watts_per_kilowatt = Constant(1000, "W per kW", "Watts of a kilowatt", "definition", "definition")
purchase_price = Input(
    "currency",
    Number(0, 1e9),
    None,
    "Purchase, per card",
    "With its share of machine, network and installation. Empty: 30,000 USD, assumed.",
    follows_job=False,
    optional=True,
)
purchase_price_usd = Constant(
    30_000, "USD", "Purchase, per card, where none is entered", "an order of size, for a planner to replace", "assumed"
)
owned_years = Input(
    "years", Number(0.1, 50), 4, "Years of use", "Over which the purchase is written off.", follows_job=False
)
own_utilisation = Input(
    "share",
    Number(0.001, 1),
    0.5,
    "Use of own cards",
    "Share of all hours in which they work for somebody; the others have to be paid for too.",
    follows_job=False,
)
spare_cards = Input(
    "count",
    Whole(0, 100_000),
    0,
    "Spare cards",
    "Bought beside those of the run, so that a broken one stops nothing: 1 makes N+1.",
    follows_job=False,
)
upkeep_share = Input(
    "share",
    Number(0, 10),
    0.08,
    "Upkeep, a year",
    "Support, repair and space, as a share of the purchase. 8% is an assumption.",
    follows_job=False,
)
system_power_factor = Input(
    "count",
    Number(1, 10),
    1.82,
    "Power of the system",
    "Times that of its cards: processors, network and fans. A DGX H100 is 10.2 kW for eight cards of 0.7.",
    follows_job=False,
)
own_system_kw = Input(
    "kW",
    Number(0.001, 1000),
    None,
    "Own power, per card",
    "Of the whole system while it works, for each card; empty: the card's power times the system's.",
    follows_job=False,
    optional=True,
)
power_usage_effectiveness = Input(
    "count",
    Number(1, 10),
    1.5,
    "Power usage effectiveness",
    "Power of the building for each of the machines, cooling above all (PUE). 1.1 to 1.6 are usual.",
    follows_job=False,
)
power_price = Input(
    "currency per kWh",
    Number(0, 100),
    None,
    "Power price",
    "Of a kWh. Empty: 0.20 USD, assumed.",
    follows_job=False,
    optional=True,
)
power_price_usd = Constant(
    0.2, "USD per kWh", "Power price, where none is entered", "an order of size, for a planner to replace", "assumed"
)
least_price = Constant(
    1e-9, "currency per hour", "Least saving", "keeps a saving that is none from dividing by zero", "definition"
)
one_year = Constant(1, "years", "One year", "definition", "definition")


@term("currency", source=IN_DOLLARS, label="Purchase in force")
def paid_purchase_price(purchase_price: Any, purchase_price_usd: Any, exchange_rate: Any) -> Any:
    """A card bought: as entered, in the currency; else the assumed dollars at the exchange rate."""
    return given(purchase_price, purchase_price_usd * exchange_rate)


@term("currency per kWh", source=IN_DOLLARS, label="Power price in force")
def paid_power_price(power_price: Any, power_price_usd: Any, exchange_rate: Any) -> Any:
    """A kWh: as entered, in the currency; else the assumed dollars at the exchange rate."""
    return given(power_price, power_price_usd * exchange_rate)


@term("kW", label="System power, per card")
def system_kw(own_system_kw: Any, gpus: Any, gpu_row: Any, watts_per_kilowatt: Any, system_power_factor: Any) -> Any:
    """Power of the whole system while it works, for each card; 0 where the card's is not known."""
    return given(own_system_kw, gpus.power_w[gpu_row] / watts_per_kilowatt * system_power_factor)


@term("switch")
def power_known(system_kw: Any) -> Any:
    """1 when the power of the card, or of its system, is known."""
    return when(system_kw > 0, 1, 0)


@term("currency per hour")
def power_per_gpu_hour(system_kw: Any, power_usage_effectiveness: Any, paid_power_price: Any) -> Any:
    """Power and cooling of one card for an hour of work."""
    return system_kw * power_usage_effectiveness * paid_power_price


@term("hours")
def owned_hours(hours_per_year: Any, owned_years: Any) -> Any:
    """Hours of a card from purchase to the end."""
    return hours_per_year * owned_years


@term("currency")
def owned_cost(paid_purchase_price: Any, upkeep_share: Any, owned_years: Any, one_year: Any) -> Any:
    """Purchase and upkeep of a card over its years, power apart."""
    return paid_purchase_price * (1 + upkeep_share * (owned_years / one_year))


@term("count")
def cards_per_working(gpu_count: Any, spare_cards: Any) -> Any:
    """Cards bought for each that works: with the spare ones."""
    return (gpu_count + spare_cards) / gpu_count


@term("currency")
def purchase_total(gpu_count: Any, spare_cards: Any, paid_purchase_price: Any) -> Any:
    """What buying the cards of the run takes at once, the spare ones among them."""
    return (gpu_count + spare_cards) * paid_purchase_price


@term("currency per hour")
def fixed_per_owned_hour(owned_cost: Any, cards_per_working: Any, owned_hours: Any) -> Any:
    """Purchase and upkeep for each hour on the calendar, worked or not."""
    return owned_cost * cards_per_working / owned_hours


@term("currency per hour")
def own_price_per_gpu_hour(fixed_per_owned_hour: Any, own_utilisation: Any, power_per_gpu_hour: Any) -> Any:
    """What an hour of work of one owned card costs."""
    return fixed_per_owned_hour / own_utilisation + power_per_gpu_hour


@term("currency")
def owned_cards_cost(billed_gpu_hours: Any, own_price_per_gpu_hour: Any) -> Any:
    """The share of the run in what owned cards cost, failed runs and idling among it."""
    return billed_gpu_hours * own_price_per_gpu_hour


@term("currency")
def owned_run(owned_cards_cost: Any, cost_beside_cards: Any) -> Any:
    """The run on owned cards as expected, and what is paid beside the cards."""
    return owned_cards_cost + cost_beside_cards


@term("switch")
def own_cost_known(speed_known: Any, power_known: Any) -> Any:
    """1 when both the speed and the power of the cards are known."""
    return speed_known * power_known


@term("currency", label="Owned, expected")
def own_cost(own_cost_known: Any, owned_run: Any) -> Any:
    """The run on owned cards, everything counted; "not known" where the speed, or the card's power, is not."""
    return either(own_cost_known > 0, owned_run, "not known")


@term("currency", label="Owned, per million tokens")
def own_per_million_tokens(own_cost_known: Any, owned_run: Any, run_tokens: Any, one_million_tokens: Any) -> Any:
    """Cost of a million tokens trained on, on owned cards."""
    return either(own_cost_known > 0, owned_run / (run_tokens / one_million_tokens), "not known")


@term("currency per hour")
def saved_per_hour(billed_price: Any, power_per_gpu_hour: Any) -> Any:
    """What an hour of an owned card saves of the rent, its power paid."""
    return billed_price - power_per_gpu_hour


@term("share")
def rent_recovered(saved_per_hour: Any, fixed_per_owned_hour: Any, least_price: Any) -> Any:
    """Use of an owned card at which the rent saved equals purchase and upkeep; above 1 where no use saves enough."""
    return fixed_per_owned_hour / maximum(saved_per_hour, least_price)


@term("switch")
def break_even_known(price_known: Any, power_known: Any) -> Any:
    """1 when both the rent and the power of the cards are known."""
    return price_known * power_known


@term("switch")
def break_even_exists(saved_per_hour: Any, rent_recovered: Any) -> Any:
    """1 when owning is no dearer than renting from some use on, 100% at most."""
    return when((saved_per_hour > 0) & (rent_recovered <= 1), 1, 0)


@term("share", label="Break-even use")
def break_even_utilisation(break_even_known: Any, break_even_exists: Any, rent_recovered: Any) -> Any:
    """The use above which owning is cheaper than renting; "never" where it is not even at 100%."""
    return either(break_even_known > 0, either(break_even_exists > 0, rent_recovered, "never"), "not known")


@term("hours", label="Break-even hours")
def break_even_hours(break_even_known: Any, break_even_exists: Any, rent_recovered: Any, owned_hours: Any) -> Any:
    """Hours of work of one card, over all its years, from which on owning is cheaper than renting; else "never"."""
    hours = rent_recovered * owned_hours
    return either(break_even_known > 0, either(break_even_exists > 0, hours, "never"), "not known")

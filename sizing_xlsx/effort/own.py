"""A run on cards of one's own: what an hour costs over the years, and from which use on it is less than rent."""

from typing import Any

from ..formula.declare import Constant, Input, Number, Whole, term
from ..formula.primitives import either, given, maximum

hours_per_year = Constant(8760, "hours per year", "Hours of a year", "365 days", "definition")
watts_per_kilowatt = Constant(1000, "W per kW", "Watts of a kilowatt", "definition", "definition")
purchase_price = Input(
    "currency",
    Number(0, 1e9),
    30_000,
    "Purchase, per card",
    "With the card's share of the machine, the network and the installation. 30,000 is an assumption.",
    follows_job=False,
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
    "currency per kWh", Number(0, 100), 0.2, "Power price", "Of a kWh; 0.20 is an assumption.", follows_job=False
)
least_price = Constant(
    1e-9, "currency per hour", "Least saving", "keeps a saving that is none from dividing by zero", "definition"
)
one_year = Constant(1, "years", "One year", "definition", "definition")


@term("kW", label="System power, per card")
def system_kw(own_system_kw: Any, gpus: Any, gpu_row: Any, watts_per_kilowatt: Any, system_power_factor: Any) -> Any:
    """Power of the whole system while it works, for each card; 0 where the card's is not known."""
    return given(own_system_kw, gpus.power_w[gpu_row] / watts_per_kilowatt * system_power_factor)


@term("currency per hour")
def power_per_gpu_hour(system_kw: Any, power_usage_effectiveness: Any, power_price: Any) -> Any:
    """Power and cooling of one card for an hour of work."""
    return system_kw * power_usage_effectiveness * power_price


@term("hours")
def owned_hours(hours_per_year: Any, owned_years: Any) -> Any:
    """Hours of a card from purchase to the end."""
    return hours_per_year * owned_years


@term("currency")
def owned_cost(purchase_price: Any, upkeep_share: Any, owned_years: Any, one_year: Any) -> Any:
    """Purchase and upkeep of a card over its years, power apart."""
    return purchase_price * (1 + upkeep_share * (owned_years / one_year))


@term("count")
def cards_per_working(gpu_count: Any, spare_cards: Any) -> Any:
    """Cards bought for each that works: with the spare ones."""
    return (gpu_count + spare_cards) / gpu_count


@term("currency")
def purchase_total(gpu_count: Any, spare_cards: Any, purchase_price: Any) -> Any:
    """What buying the cards of the run takes at once, the spare ones among them."""
    return (gpu_count + spare_cards) * purchase_price


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


@term("currency", label="Owned, expected")
def own_cost(speed_known: Any, owned_run: Any) -> Any:
    """The run on owned cards, everything counted; "not known" where the speed is not."""
    return either(speed_known > 0, owned_run, "not known")


@term("currency", label="Owned, per million tokens")
def own_per_million_tokens(speed_known: Any, owned_run: Any, run_tokens: Any, one_million_tokens: Any) -> Any:
    """Cost of a million tokens trained on, on owned cards."""
    return either(speed_known > 0, owned_run / (run_tokens / one_million_tokens), "not known")


@term("currency per hour")
def saved_per_hour(billed_price: Any, power_per_gpu_hour: Any) -> Any:
    """What an hour of an owned card saves of the rent, its power paid."""
    return billed_price - power_per_gpu_hour


@term("share", label="Break-even use")
def break_even_utilisation(price_known: Any, saved_per_hour: Any, fixed_per_owned_hour: Any, least_price: Any) -> Any:
    """The use above which owning is cheaper than renting; above 1: never; "never" where power costs more than rent."""
    share = fixed_per_owned_hour / maximum(saved_per_hour, least_price)
    return either((price_known > 0) & (saved_per_hour > 0), share, "never")


@term("hours", label="Break-even hours")
def break_even_hours(
    price_known: Any, saved_per_hour: Any, owned_cost: Any, cards_per_working: Any, least_price: Any
) -> Any:
    """Hours of work of one card, over all its years, from which on owning is cheaper than renting."""
    hours = owned_cost * cards_per_working / maximum(saved_per_hour, least_price)
    return either((price_known > 0) & (saved_per_hour > 0), hours, "never")

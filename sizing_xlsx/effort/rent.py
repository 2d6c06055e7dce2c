"""A run on rented cards: hours billed, and what is paid beside them. Allowances are a planner's to change."""

from typing import Any

from ..formula.declare import Choice, Constant, Input, Number, check, term
from ..formula.primitives import either, given, when

IN_DOLLARS = "the value entered, else the assumed one, in dollars"
one_million_tokens = Constant(1e6, "tokens", "One million tokens", "definition", "definition")
billing_choice = Input(
    "text",
    Choice("billings"),
    "On demand",
    "Billing",
    "Spot machines may be taken away at any time; reserved ones are paid for whether used or not.",
    follows_job=False,
)
spot_discount = Input(
    "share",
    Number(0, 1),
    0.5,
    "Spot discount",
    "Off the price on demand. Half is an assumption: enter your provider's.",
    follows_job=False,
)
reserved_discount = Input(
    "share",
    Number(0, 1),
    0.3,
    "Reserved discount",
    "Off the price on demand. Three tenths is an assumption: enter your provider's.",
    follows_job=False,
)
reserved_utilisation = Input(
    "share",
    Number(0.001, 1),
    1,
    "Use of reserved cards",
    "Share of the reserved hours in which they work for somebody; the others are paid for, too. 1 is an assumption.",
    follows_job=False,
)
storage_price = Input(
    "currency per GB",
    Number(0, 1000),
    None,
    "Storage price",
    "Of a GB for a month, while machines are stopped, too. Empty: 0.10 USD, assumed.",
    follows_job=False,
    optional=True,
)
storage_price_usd = Constant(
    0.1, "USD per GB", "Storage price, where none is entered", "an order of size, for a planner to replace", "assumed"
)
storage_months = Input(
    "count",
    Number(0, 1200),
    1,
    "Months stored",
    "How long the disks are kept, the time of stopped machines among it.",
    follows_job=False,
)
transfer_gb = Input(
    "GB",
    Number(0, 1e9),
    0,
    "Transfer",
    "Moved out of the provider's network; moving in is mostly free.",
    follows_job=False,
)
transfer_price = Input(
    "currency per GB",
    Number(0, 1000),
    None,
    "Transfer price",
    "Of a GB that leaves. Empty: 0.09 USD, assumed.",
    follows_job=False,
    optional=True,
)
transfer_price_usd = Constant(
    0.09, "USD per GB", "Transfer price, where none is entered", "an order of size, for a planner to replace", "assumed"
)
engineering_days = Input(
    "days",
    Number(0, 10_000),
    0,
    "Engineering",
    "Days of setting up. A run over several cards takes some more: 2 to 10 are usual for a sharded one.",
    follows_job=False,
)
engineering_rate = Input(
    "currency per day",
    Number(0, 100_000),
    None,
    "Rate of a day",
    "What a day of engineering costs. Empty: 800 USD, assumed.",
    follows_job=False,
    optional=True,
)
engineering_rate_usd = Constant(
    800, "USD per day", "Rate of a day, where none is entered", "an order of size, for a planner to replace", "assumed"
)
least_gpu_hours_per_month = Input(
    "hours",
    Number(0, 1e9),
    None,
    "Least use",
    "Card hours of the quietest month, all jobs together: what a commitment may be sized for. Empty: this run.",
    follows_job=False,
    optional=True,
)
most_gpu_hours_per_month = Input(
    "hours",
    Number(0, 1e9),
    None,
    "Most use",
    "Card hours of the busiest month, all jobs together. Empty: as the least.",
    follows_job=False,
    optional=True,
)


@check(
    "own_price_date is {entered_price_day}, after today_date {plan_day}; a price is not offered after the day of the"
    " plan: enter an earlier day, or the day on which the plan is made"
)
@term("switch")
def price_offered_by_today(entered_price_day: Any, plan_day: Any) -> Any:
    """1 when the own price was not offered after the day of the plan, or one of the days is not entered."""
    return when((plan_day > 0) & (entered_price_day > plan_day), 0, 1)


@term("row")
def billing_row(billings: Any, billing_choice: Any) -> Any:
    """Row of the kind of billing in its table."""
    return billings.row_of(billing_choice)


@term("share")
def price_discount(billings: Any, billing_row: Any, spot_discount: Any, reserved_discount: Any) -> Any:
    """What the kind of billing takes off the price."""
    return billings.spot[billing_row] * spot_discount + billings.reserved[billing_row] * reserved_discount


@term("share")
def paid_use(billings: Any, billing_row: Any, reserved_utilisation: Any) -> Any:
    """Hours used of those paid for: all, but of a reservation, which is paid for whether it is used or not."""
    return 1 - billings.reserved[billing_row] * (1 - reserved_utilisation)


@term("currency per hour")
def billed_price(price_per_gpu_hour: Any, price_discount: Any, paid_use: Any) -> Any:
    """The price of one card for an hour that is used: after the discount, unused hours of a reservation on top."""
    return price_per_gpu_hour * (1 - price_discount) / paid_use


@term("currency")
def card_rent(billed_gpu_hours: Any, billed_price: Any) -> Any:
    """Rent of the cards as expected."""
    return billed_gpu_hours * billed_price


@term("currency per GB", source=IN_DOLLARS, label="Storage price in force")
def paid_storage_price(storage_price: Any, storage_price_usd: Any, exchange_rate: Any) -> Any:
    """A GB on disk for a month: as entered, in the currency; else the assumed dollars at the exchange rate."""
    return given(storage_price, storage_price_usd * exchange_rate)


@term("currency per GB", source=IN_DOLLARS, label="Transfer price in force")
def paid_transfer_price(transfer_price: Any, transfer_price_usd: Any, exchange_rate: Any) -> Any:
    """A GB that leaves: as entered, in the currency; else the assumed dollars at the exchange rate."""
    return given(transfer_price, transfer_price_usd * exchange_rate)


@term("currency per day", source=IN_DOLLARS, label="Rate of a day in force")
def paid_engineering_rate(engineering_rate: Any, engineering_rate_usd: Any, exchange_rate: Any) -> Any:
    """A day of engineering: as entered, in the currency; else the assumed dollars at the exchange rate."""
    return given(engineering_rate, engineering_rate_usd * exchange_rate)


@term("currency")
def storage_cost(dataset_gb: Any, checkpoints_gb: Any, paid_storage_price: Any, storage_months: Any) -> Any:
    """Disks for data and checkpoints, while machines run and while they are stopped."""
    return (dataset_gb + checkpoints_gb) * paid_storage_price * storage_months


@term("currency")
def transfer_cost(transfer_gb: Any, paid_transfer_price: Any) -> Any:
    """What leaves the provider's network."""
    return transfer_gb * paid_transfer_price


@term("currency")
def engineering_cost(engineering_days: Any, paid_engineering_rate: Any) -> Any:
    """Days of setting up."""
    return engineering_days * paid_engineering_rate


@term("currency")
def cost_beside_cards(storage_cost: Any, transfer_cost: Any, engineering_cost: Any) -> Any:
    """What is paid beside the cards, rented or owned."""
    return storage_cost + transfer_cost + engineering_cost


@term("switch")
def cost_known(price_known: Any, speed_known: Any) -> Any:
    """1 when both the speed and the price of the cards are known."""
    return price_known * speed_known


@term("currency", label="Rented, expected")
def rent_cost(cost_known: Any, card_rent: Any, cost_beside_cards: Any) -> Any:
    """The run on rented cards, everything counted; "not known" where speed or price is not."""
    return either(cost_known > 0, card_rent + cost_beside_cards, "not known")


@term("currency", label="Rented, slow")
def rent_cost_slow(
    cost_known: Any,
    gpu_count: Any,
    occupied_hours_slow: Any,
    billed_share: Any,
    billed_price: Any,
    cost_beside_cards: Any,
) -> Any:
    """The same when the cards reach the low share."""
    cards = gpu_count * occupied_hours_slow * billed_share * billed_price
    return either(cost_known > 0, cards + cost_beside_cards, "not known")


@term("currency", label="Rented, fast")
def rent_cost_fast(
    cost_known: Any,
    gpu_count: Any,
    occupied_hours_fast: Any,
    billed_share: Any,
    billed_price: Any,
    cost_beside_cards: Any,
) -> Any:
    """The same when the cards reach the high share."""
    cards = gpu_count * occupied_hours_fast * billed_share * billed_price
    return either(cost_known > 0, cards + cost_beside_cards, "not known")


@term("currency", label="Rented, per million tokens")
def rent_per_million_tokens(
    cost_known: Any, card_rent: Any, cost_beside_cards: Any, run_tokens: Any, one_million_tokens: Any
) -> Any:
    """Cost of a million tokens trained on, on rented cards."""
    return either(cost_known > 0, (card_rent + cost_beside_cards) / (run_tokens / one_million_tokens), "not known")


# ---------------------------------------------------------------------- how much to commit to
@term("hours")
def floor_hours(least_gpu_hours_per_month: Any, billed_gpu_hours: Any) -> Any:
    """Card hours that every month uses."""
    return given(least_gpu_hours_per_month, billed_gpu_hours)


@term("hours")
def peak_hours(most_gpu_hours_per_month: Any, floor_hours: Any) -> Any:
    """Card hours of the busiest month."""
    return given(most_gpu_hours_per_month, floor_hours)


@term("hours")
def usual_hours(floor_hours: Any, peak_hours: Any) -> Any:
    """Card hours of a month between the quietest and the busiest."""
    return (floor_hours + peak_hours) / 2


@check(
    "most_gpu_hours_per_month is {peak_hours}; it must not be below least_gpu_hours_per_month, which is {floor_hours}"
)
@term("switch")
def use_in_order(floor_hours: Any, peak_hours: Any) -> Any:
    """1 when the busiest month uses no less than the quietest."""
    return when(peak_hours < floor_hours, 0, 1)


@term("currency")
def month_at_floor(floor_hours: Any, usual_hours: Any, price_per_gpu_hour: Any, reserved_discount: Any) -> Any:
    """A usual month with a commitment for the least use: reserved up to it, on demand above."""
    return price_per_gpu_hour * (usual_hours - floor_hours * reserved_discount)


@term("currency")
def month_at_peak(peak_hours: Any, price_per_gpu_hour: Any, reserved_discount: Any) -> Any:
    """A usual month with a commitment for the busiest: all of it is paid for, used or not."""
    return peak_hours * price_per_gpu_hour * (1 - reserved_discount)


@term("currency")
def month_on_demand(usual_hours: Any, price_per_gpu_hour: Any) -> Any:
    """A usual month without a commitment."""
    return usual_hours * price_per_gpu_hour

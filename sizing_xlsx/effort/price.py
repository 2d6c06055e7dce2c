"""What a card costs by the hour, in the planner's currency, and when that was so."""

from typing import Any

from ..formula.declare import DAY, Choice, Constant, Input, Number, check, term
from ..formula.primitives import given, when

one_dollar = Constant(1, "currency per USD", "One dollar in dollars", "definition", "definition")
no_price = Constant(-1, "currency per hour", "No own price", "stands for an entry left empty", "definition")
currency_choice = Input(
    "text", Choice("currencies"), "USD", "Currency", "In which everything here is entered and told.", follows_job=False
)
currency_per_usd = Input(
    "currency per USD",
    Number(0.000001, 1e9),
    None,
    "Currency per USD",
    "What one US dollar is worth in it: listed and assumed prices are in dollars. Needed for every other currency;"
    " 1 or empty in USD.",
    follows_job=False,
    optional=True,
)
own_price_per_hour = Input(
    "currency per hour",
    Number(0, 100_000),
    None,
    "Own price",
    "Of one card for an hour, in the currency; empty: the listed price of the sheet GPUs, which is illustrative.",
    follows_job=False,
    optional=True,
)
own_price_date = Input(
    "date",
    DAY,
    None,
    "Date of own price",
    "The day on which the own price was offered: a price without a date is worth nothing.",
    follows_job=False,
    optional=True,
)


@term("switch")
def in_dollars(currencies: Any, currency_choice: Any) -> Any:
    """1 when the currency is the US dollar."""
    return currencies.dollar[currencies.row_of(currency_choice)]


@term("currency per USD")
def entered_rate(currency_per_usd: Any) -> Any:
    """What one dollar is worth, as entered; 0 where it is not."""
    return given(currency_per_usd, 0)


@term("currency per hour")
def entered_price(own_price_per_hour: Any, no_price: Any) -> Any:
    """The own price, as entered; below 0 where it is not: nothing paid is a price, too."""
    return given(own_price_per_hour, no_price)


@term("date")
def entered_price_day(own_price_date: Any) -> Any:
    """The day of the own price, as sheets count days; 0 where it is not entered."""
    return given(own_price_date, 0)


@check("currency_choice is {currency_choice} without currency_per_usd; enter what one US dollar is worth in it")
@term("switch")
def exchange_rate_entered(in_dollars: Any, entered_rate: Any) -> Any:
    """1 when the worth of a dollar in the currency is known."""
    return when((in_dollars <= 0) & (entered_rate <= 0), 0, 1)


@check("currency_per_usd is {entered_rate:.4f} with currency_choice {currency_choice}; it must be 1 there, or empty")
@term("switch")
def dollar_worth_a_dollar(in_dollars: Any, entered_rate: Any, one_dollar: Any) -> Any:
    """1 when a dollar in dollars is worth 1, as entered or left empty."""
    another = (entered_rate < one_dollar) | (entered_rate > one_dollar)
    return when((in_dollars > 0) & (entered_rate > 0) & another, 0, 1)


@check(
    "own_price_per_hour is {entered_price:.2f} without own_price_date; enter the day on which that price was offered"
)
@term("switch")
def own_price_dated(entered_price: Any, entered_price_day: Any) -> Any:
    """1 when an own price has a date."""
    return when((entered_price >= 0) & (entered_price_day <= 0), 0, 1)


@term("currency per USD")
def exchange_rate(currency_per_usd: Any, one_dollar: Any, in_dollars: Any) -> Any:
    """What one dollar is worth: 1 in dollars."""
    return when(in_dollars > 0, one_dollar, given(currency_per_usd, one_dollar))


@term("currency per hour")
def listed_price_per_hour(gpus: Any, gpu_row: Any, exchange_rate: Any) -> Any:
    """The listed price of one card for an hour; 0 where none is listed."""
    return gpus.price_usd_per_hour[gpu_row] * exchange_rate


@term("currency per hour")
def price_per_gpu_hour(own_price_per_hour: Any, listed_price_per_hour: Any) -> Any:
    """The price of one card for an hour: the own one, else the listed one; 0 where none is known."""
    return given(own_price_per_hour, listed_price_per_hour)


@term("switch")
def price_known(entered_price: Any, listed_price_per_hour: Any) -> Any:
    """1 when a card has a price, own or listed."""
    return when((listed_price_per_hour > 0) | (entered_price >= 0), 1, 0)

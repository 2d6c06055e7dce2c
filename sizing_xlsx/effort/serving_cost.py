"""What serving costs: a million tokens in and out, a month, a user; rented, owned, and against an API."""

from typing import Any

from ..formula.declare import Constant, Input, Number, term
from ..formula.primitives import either, maximum, when

months_per_year = Constant(12, "count", "Months of a year", "definition", "definition")
least_cost = Constant(1e-12, "currency", "Least cost", "keeps a cost that is none from dividing by zero", "definition")
api_input_price = Input(
    "currency",
    Number(0, 1_000_000),
    0,
    "API price, input",
    "Of a million input tokens; 0: none is compared. Enter your provider's.",
    follows_job=False,
)
api_output_price = Input(
    "currency",
    Number(0, 1_000_000),
    0,
    "API price, output",
    "Of a million output tokens; 0: none is compared. Enter your provider's.",
    follows_job=False,
)


@term("currency per hour", label="Rent of a deployment")
def deployment_rent(gpu_count: Any, billed_price: Any) -> Any:
    """Rent of the cards of one deployment for an hour."""
    return gpu_count * billed_price


@term("currency per hour", label="Owned deployment")
def deployment_owned(gpu_count: Any, fixed_per_owned_hour: Any, power_per_gpu_hour: Any) -> Any:
    """Purchase, upkeep and power of the cards of one deployment for an hour on the calendar; it runs all the time."""
    return gpu_count * (fixed_per_owned_hour + power_per_gpu_hour)


@term("hours", label="A million input tokens")
def million_input_hours(
    prompt_seconds: Any, mean_prompt_tokens: Any, one_million_tokens: Any, data_parallel: Any, load_share: Any,
    seconds_per_hour: Any,
) -> Any:  # fmt: skip
    """Hours for which a million input tokens keep a deployment, at the load that is planned for."""
    seconds = prompt_seconds * one_million_tokens / mean_prompt_tokens
    return seconds / (data_parallel * load_share) / seconds_per_hour


@term("hours", label="A million output tokens")
def million_output_hours(
    full_step_seconds: Any, requests_at_mean: Any, one_million_tokens: Any, data_parallel: Any, load_share: Any,
    seconds_per_hour: Any,
) -> Any:  # fmt: skip
    """Hours for which a million output tokens keep a deployment with all places taken, at the load planned for."""
    seconds = full_step_seconds * one_million_tokens / maximum(1, requests_at_mean)
    return seconds / (data_parallel * load_share) / seconds_per_hour


@term("switch")
def rent_known(replicas_known: Any, price_known: Any) -> Any:
    """1 when speed and price of the cards are known."""
    return replicas_known * price_known


@term("currency", label="A million input tokens, rented")
def rent_per_million_input(rent_known: Any, million_input_hours: Any, deployment_rent: Any) -> Any:
    """Cost of a million input tokens on rented cards."""
    return either(rent_known > 0, million_input_hours * deployment_rent, "not known")


@term("currency", label="A million output tokens, rented")
def rent_per_million_output(rent_known: Any, million_output_hours: Any, deployment_rent: Any) -> Any:
    """Cost of a million output tokens on rented cards."""
    return either(rent_known > 0, million_output_hours * deployment_rent, "not known")


@term("currency", label="A million input tokens, owned")
def own_per_million_input(replicas_known: Any, million_input_hours: Any, deployment_owned: Any) -> Any:
    """Cost of a million input tokens on owned cards."""
    return either(replicas_known > 0, million_input_hours * deployment_owned, "not known")


@term("currency", label="A million output tokens, owned")
def own_per_million_output(replicas_known: Any, million_output_hours: Any, deployment_owned: Any) -> Any:
    """Cost of a million output tokens on owned cards."""
    return either(replicas_known > 0, million_output_hours * deployment_owned, "not known")


@term("hours")
def month_hours(hours_per_year: Any, one_year: Any, months_per_year: Any) -> Any:
    """Hours of a month, on average."""
    return hours_per_year * one_year / months_per_year


@term("count", label="Requests of a month")
def month_requests(request_rate: Any, mean_load_share: Any, month_hours: Any, seconds_per_hour: Any) -> Any:
    """Requests of a month, by the mean hour."""
    return request_rate * mean_load_share * (month_hours * seconds_per_hour)


@term("currency")
def rent_of_month(replica_count: Any, deployment_rent: Any, month_hours: Any) -> Any:
    """Rent of all deployments for a month: they run all the time."""
    return replica_count * deployment_rent * month_hours


@term("currency")
def owned_month(replica_count: Any, deployment_owned: Any, month_hours: Any) -> Any:
    """All deployments on owned cards for a month."""
    return replica_count * deployment_owned * month_hours


@term("currency", label="A month, rented")
def rent_per_month(rent_known: Any, rent_of_month: Any) -> Any:
    """All deployments for a month on rented cards."""
    return either(rent_known > 0, rent_of_month, "not known")


@term("currency", label="A month, owned")
def own_per_month(replicas_known: Any, owned_month: Any) -> Any:
    """All deployments for a month on owned cards."""
    return either(replicas_known > 0, owned_month, "not known")


@term("currency", label="A user and month, rented")
def rent_per_user_month(rent_known: Any, rent_of_month: Any, user_count: Any) -> Any:
    """A month on rented cards for each user."""
    return either(rent_known > 0, rent_of_month / user_count, "not known")


@term("currency", label="A user and month, owned")
def own_per_user_month(replicas_known: Any, owned_month: Any, user_count: Any) -> Any:
    """A month on owned cards for each user."""
    return either(replicas_known > 0, owned_month / user_count, "not known")


@term("currency", label="A request, by the API")
def api_request(
    mean_prompt_tokens: Any, api_input_price: Any, mean_output_tokens: Any, api_output_price: Any,
    one_million_tokens: Any,
) -> Any:  # fmt: skip
    """A mean request at the API's prices."""
    return (mean_prompt_tokens * api_input_price + mean_output_tokens * api_output_price) / one_million_tokens


@term("switch")
def api_priced(api_input_price: Any, api_output_price: Any) -> Any:
    """1 when an API's prices are entered."""
    return when(api_input_price + api_output_price > 0, 1, 0)


@term("currency", label="A month, by the API")
def api_per_month(api_priced: Any, month_requests: Any, api_request: Any) -> Any:
    """The requests of a month at the API's prices."""
    return either(api_priced > 0, month_requests * api_request, "no API price")


@term("count", label="Break-even requests of a month, rented")
def api_break_even_requests(
    rent_known: Any, api_priced: Any, rent_of_month: Any, api_request: Any, least_cost: Any
) -> Any:
    """Requests of a month from which on rented cards cost less than the API, as many deployments as now."""
    known = (rent_known > 0) & (api_priced > 0)
    return either(known, rent_of_month / maximum(least_cost, api_request), "not known")

"""Requests: how long prompts and answers are, in three classes, and how many users are served at one time."""

from typing import Any

from ...formula.declare import Constant, Input, Number, Whole, check, term
from ...formula.primitives import when

_LONGEST = 10_000_000
concurrent_users = Input(
    "count", Whole(1, 1_000_000), 32, "Users at one time", "Requests in progress at once, over all cards."
)
maximum_length = Input(
    "tokens",
    Whole(1, _LONGEST),
    8192,
    "Longest context",
    "Prompt and answer together that the engine accepts (max_model_len); it must be able to hold one such request.",
)
short_share = Input(
    "share", Number(0, 1), 0.3, "Share of short requests", "Of all requests; the three shares sum to 1."
)
short_prompt_tokens = Input("tokens", Whole(1, _LONGEST), 300, "Short prompt", "Tokens of a short request's prompt.")
short_output_tokens = Input("tokens", Whole(1, _LONGEST), 100, "Short answer", "Tokens of a short request's answer.")
usual_share = Input(
    "share", Number(0, 1), 0.6, "Share of usual requests", "Of all requests; the three shares sum to 1."
)
usual_prompt_tokens = Input("tokens", Whole(1, _LONGEST), 1500, "Usual prompt", "Tokens of a usual request's prompt.")
usual_output_tokens = Input("tokens", Whole(1, _LONGEST), 400, "Usual answer", "Tokens of a usual request's answer.")
long_share = Input("share", Number(0, 1), 0.1, "Share of long requests", "Of all requests; the three shares sum to 1.")
long_prompt_tokens = Input("tokens", Whole(1, _LONGEST), 6000, "Long prompt", "Tokens of a long request's prompt.")
long_output_tokens = Input("tokens", Whole(1, _LONGEST), 1000, "Long answer", "Tokens of a long request's answer.")
length_percentile = Input(
    "share",
    Number(0, 1),
    0.95,
    "Percentile of lengths",
    "Share of requests that are at most as long as the percentile context, which decides how many users fit.",
)
share_tolerance = Constant(1e-6, "share", "Rounding of shares", "three decimal shares may miss 1 by this", "assumed")


@term("share")
def share_sum(short_share: Any, usual_share: Any, long_share: Any) -> Any:
    """The three shares together: 1 in a distribution."""
    return short_share + usual_share + long_share


@check(
    "short_share is {short_share}, usual_share {usual_share} and long_share {long_share}, which sum to {share_sum:.6g};"
    " they must sum to 1"
)
@term("switch")
def shares_sum(share_sum: Any, share_tolerance: Any) -> Any:
    """0 when the three shares are no distribution."""
    return when((share_sum > 1 + share_tolerance) | (share_sum < 1 - share_tolerance), 0, 1)


@term("tokens")
def short_context(short_prompt_tokens: Any, short_output_tokens: Any) -> Any:
    """Tokens of a short request at its end."""
    return short_prompt_tokens + short_output_tokens


@term("tokens")
def usual_context(usual_prompt_tokens: Any, usual_output_tokens: Any) -> Any:
    """Tokens of a usual request at its end."""
    return usual_prompt_tokens + usual_output_tokens


@term("tokens")
def long_context(long_prompt_tokens: Any, long_output_tokens: Any) -> Any:
    """Tokens of a long request at its end."""
    return long_prompt_tokens + long_output_tokens


@term("switch")
def usual_below_short(short_share: Any, usual_share: Any, short_context: Any, usual_context: Any) -> Any:
    """1 when usual requests are shorter than short ones, and both have a share."""
    return when((short_share > 0) & (usual_share > 0) & (short_context > usual_context), 1, 0)


@term("switch")
def long_below_usual(usual_share: Any, long_share: Any, usual_context: Any, long_context: Any) -> Any:
    """1 when long requests are shorter than usual ones, and both have a share."""
    return when((usual_share > 0) & (long_share > 0) & (usual_context > long_context), 1, 0)


@term("switch")
def long_below_short(short_share: Any, long_share: Any, short_context: Any, long_context: Any) -> Any:
    """1 when long requests are shorter than short ones, and both have a share."""
    return when((short_share > 0) & (long_share > 0) & (short_context > long_context), 1, 0)


@check(
    "the short, usual and long requests are {short_context}, {usual_context} and {long_context} tokens; classes with a"
    " share must not be shorter than the class before: enter a longer usual_prompt_tokens or long_prompt_tokens"
)
@term("switch")
def classes_ascend(usual_below_short: Any, long_below_usual: Any, long_below_short: Any) -> Any:
    """0 when a class that has a share is shorter than one before it: the percentile would be another's."""
    return when(usual_below_short + long_below_usual + long_below_short > 0, 0, 1)


@term("tokens")
def mean_prompt_tokens(
    short_share: Any,
    short_prompt_tokens: Any,
    usual_share: Any,
    usual_prompt_tokens: Any,
    long_share: Any,
    long_prompt_tokens: Any,
) -> Any:
    """Tokens of a prompt, on average over the classes."""
    return short_share * short_prompt_tokens + usual_share * usual_prompt_tokens + long_share * long_prompt_tokens


@term("tokens")
def mean_output_tokens(
    short_share: Any,
    short_output_tokens: Any,
    usual_share: Any,
    usual_output_tokens: Any,
    long_share: Any,
    long_output_tokens: Any,
) -> Any:
    """Tokens of an answer, on average over the classes."""
    return short_share * short_output_tokens + usual_share * usual_output_tokens + long_share * long_output_tokens


@term("tokens")
def mean_context(mean_prompt_tokens: Any, mean_output_tokens: Any) -> Any:
    """Tokens of a request at its end, on average over the classes."""
    return mean_prompt_tokens + mean_output_tokens


@term("tokens")
def live_context(mean_prompt_tokens: Any, mean_output_tokens: Any) -> Any:
    """Tokens that a request in progress has, on average over its answer: the prompt and half of the answer."""
    return mean_prompt_tokens + mean_output_tokens / 2


@term("share")
def share_wanted(length_percentile: Any, share_tolerance: Any) -> Any:
    """The percentile of lengths, less the rounding of shares."""
    return length_percentile - share_tolerance


@term("share")
def share_below_long(short_share: Any, usual_share: Any) -> Any:
    """Share of requests that are short or usual."""
    return short_share + usual_share


@term("tokens")
def percentile_context(
    short_share: Any,
    share_below_long: Any,
    share_wanted: Any,
    short_context: Any,
    usual_context: Any,
    long_context: Any,
) -> Any:
    """Tokens at their end of the request below which the chosen share of requests stays."""
    above_short = when(share_below_long >= share_wanted, usual_context, long_context)
    return when((short_share >= share_wanted) & (short_share > 0), short_context, above_short)


@term("tokens")
def longest_request(
    short_share: Any, usual_share: Any, long_share: Any, short_context: Any, usual_context: Any, long_context: Any
) -> Any:
    """Tokens at its end of the longest class that has a share."""
    below = when(usual_share > 0, usual_context, when(short_share > 0, short_context, 0))
    return when(long_share > 0, long_context, below)


@check(
    "maximum_length is {maximum_length}; the longest requests take {longest_request} tokens, prompt and answer: enter"
    " at least that, or shorter requests"
)
@term("switch")
def requests_within_length(longest_request: Any, maximum_length: Any) -> Any:
    """0 when a class of requests is longer than the engine accepts."""
    return when(longest_request > maximum_length, 0, 1)


@check("maximum_length is {maximum_length}; {base_model} was made for at most {maximum_positions} tokens")
@term("switch")
def length_within_model(maximum_length: Any, maximum_positions: Any) -> Any:
    """0 when the context goes beyond what the model was made for."""
    return when((maximum_positions > 0) & (maximum_length > maximum_positions), 0, 1)

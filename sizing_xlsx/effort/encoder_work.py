"""What works, is trained and is saved where every parameter is trained: training an encoder from scratch."""

from typing import Any

from ..formula.declare import Constant, check, term
from ..formula.primitives import when

_HOFFMANN = "Hoffmann et al. 2022, Training compute-optimal large language models: about 20"
attended_share = Constant(
    1, "share", "Share of a row that a token attends to", "an encoder attends to all of it", "definition"
)
tokens_wanted_each = Constant(20, "tokens per parameter", "Tokens for each parameter", _HOFFMANN, "published")


@term("parameters")
def trained_parameters(parameter_count: Any) -> Any:
    """Parameters that are trained: all of them."""
    return parameter_count


@term("parameters")
def working_parameters(parameter_count: Any) -> Any:
    """Parameters at work for one token: all of them (P)."""
    return parameter_count


@term("parameters")
def passed_parameters(parameter_count: Any) -> Any:
    """Parameters that backward passes on the way down: all of them."""
    return parameter_count


@term("parameters")
def gradient_parameters(parameter_count: Any) -> Any:
    """Parameters whose gradient a token adds to: all of them."""
    return parameter_count


@term("count")
def attention_query_width(hidden_size: Any) -> Any:
    """Width of all heads together."""
    return hidden_size


@term("bytes")
def saved_weights(stored_weights: Any) -> Any:
    """Weights as the optimizer has them."""
    return stored_weights


@term("bytes")
def exchanged_gradients(weight_gradients: Any) -> Any:
    """One set of gradients, as cards exchange it."""
    return weight_gradients


@check(
    "run_tokens is {run_tokens:,.0f}; a model of {trained_parameters:,.0f} parameters trained from scratch wants"
    " {tokens_wanted_each} for each of them, or it learns less than a smaller one would",
    fault=False,
)
@term("switch")
def tokens_suffice(run_tokens: Any, trained_parameters: Any, tokens_wanted_each: Any) -> Any:
    """1 when the tokens are not few for the parameters."""
    return when(run_tokens >= trained_parameters * tokens_wanted_each, 1, 0)

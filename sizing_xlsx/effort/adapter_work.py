"""What works, is trained and is saved where a frozen base is adapted."""

from typing import Any

from ..formula.declare import Constant, check, term
from ..formula.primitives import when

_ADAPTERS = "adapters that have seen fewer tokens than they have parameters can store them word for word"
attended_share = Constant(
    0.5, "share", "Share of a row that a token attends to", "causal attention: half of it on average", "definition"
)
tokens_wanted_each = Constant(1, "tokens per parameter", "Tokens for each parameter", _ADAPTERS, "assumed")


@term("row")
def method_row_of_speed(quantised_base: Any) -> Any:
    """Row of the method in the table of reached shares: 2 over a 16-bit base, 3 over a quantised one."""
    return when(quantised_base > 0, 1, 0) + 2


@term("parameters")
def trained_parameters(adapter_parameters: Any) -> Any:
    """Parameters that are trained: the adapters."""
    return adapter_parameters


@term("parameters")
def working_parameters(active_parameters: Any, base_on_card: Any, adapter_parameters: Any) -> Any:
    """Parameters at work for one token (P): of a mixture those of its experts alone; and the adapters."""
    return active_parameters * base_on_card + adapter_parameters


@term("share")
def passed_layers_share(reached_layers: Any, layer_count: Any) -> Any:
    """Share of the layers that backward passes: down to the lowest that is adapted."""
    return reached_layers / layer_count


@term("parameters")
def passed_parameters(working_parameters: Any, passed_layers_share: Any) -> Any:
    """Parameters that backward passes on the way down; what lies below the lowest adapter is not passed."""
    return working_parameters * passed_layers_share


@term("parameters")
def gradient_parameters(adapter_parameters: Any) -> Any:
    """Parameters whose gradient a token adds to: the adapters; the frozen base has none."""
    return adapter_parameters


@term("layers")
def attention_layers(layer_count: Any, base_on_card: Any) -> Any:
    """Layers whose attention runs: none over stored features."""
    return layer_count * base_on_card


@term("count")
def attention_query_width(query_width: Any) -> Any:
    """Width of all heads together."""
    return query_width


@term("bytes")
def saved_weights(adapter_weights: Any) -> Any:
    """The adapters as the optimizer has them; the base is not saved again."""
    return adapter_weights


@term("bytes")
def exchanged_gradients(adapter_gradients: Any) -> Any:
    """One set of gradients, as cards exchange it."""
    return adapter_gradients


@check(
    "run_tokens is {run_tokens:,.0f}; that is fewer than one for each of the {trained_parameters:,.0f} trained"
    " parameters, which can then store them word for word: a lower rank, fewer targets or more data",
    fault=False,
)
@term("switch")
def tokens_suffice(run_tokens: Any, trained_parameters: Any, tokens_wanted_each: Any) -> Any:
    """1 when the tokens are not few for the adapters."""
    return when(run_tokens >= trained_parameters * tokens_wanted_each, 1, 0)

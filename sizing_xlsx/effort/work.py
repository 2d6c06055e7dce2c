"""The work of a run: floating-point operations for each token, by the rule and beyond it."""

from typing import Any

from ..formula.declare import Choice, Constant, Input, term

_RULE = (
    "Kaplan et al. 2020, Scaling laws for neural language models: 2 FLOP per parameter and token forward, 4 backward"
)
_ATTENTION = "products of queries with keys and of scores with values, 2 FLOP per multiply-add"
_SELECTIVE = "5 to 10% of a step; the middle"
multiply_add = Constant(2, "FLOP per value", "A multiply-add", "one product and one sum", "definition")
attention_products = Constant(2, "count", "Products of attention", _ATTENTION, "definition")
selective_share = Constant(0.075, "share", "Selective recomputation, of a step", _SELECTIVE, "published")
recomputation_choice = Input(
    "text",
    Choice("recomputations"),
    "As checkpointing",
    "Recomputation",
    "As checkpointing: a whole forward more when it is on. Selective: attention alone is computed again.",
    follows_job=False,
)


@term("switch")
def recomputes_selectively(recomputations: Any, recomputation_choice: Any) -> Any:
    """1 when attention alone is computed again."""
    return recomputations.selective[recomputations.row_of(recomputation_choice)]


@term("count")
def forwards_repeated(recomputes_selectively: Any, checkpointing_on: Any) -> Any:
    """Whole forwards that backward computes again: 1 with checkpointing, else 0."""
    return (1 - recomputes_selectively) * checkpointing_on


@term("FLOP per token", source=_RULE)
def matrix_forward_flop(multiply_add: Any, working_parameters: Any) -> Any:
    """Forward: a multiply-add for each parameter that works on the token (2·P)."""
    return multiply_add * working_parameters


@term("FLOP per token", source=_RULE)
def matrix_backward_flop(multiply_add: Any, passed_parameters: Any, gradient_parameters: Any) -> Any:
    """Backward: through what is passed on the way down (2·P), and for what is trained (2·P)."""
    return multiply_add * (passed_parameters + gradient_parameters)


@term("FLOP per token", source=_RULE)
def matrix_repeated_flop(multiply_add: Any, passed_parameters: Any, forwards_repeated: Any) -> Any:
    """The forward of what backward passes, once more, with full checkpointing (2·P)."""
    return multiply_add * passed_parameters * forwards_repeated


@term("FLOP per token", source=_ATTENTION)
def attention_forward_flop(
    multiply_add: Any,
    attention_products: Any,
    attention_layers: Any,
    tokens_per_whole_row: Any,
    attention_query_width: Any,
    attended_share: Any,
) -> Any:
    """Attention beyond the rule: it grows with the row. Causal attention sees half of it; windows are not counted."""
    attended = tokens_per_whole_row * attended_share
    return multiply_add * attention_products * attention_layers * attended * attention_query_width


@term("FLOP per token", source=_ATTENTION)
def attention_flop(attention_forward_flop: Any, passed_layers_share: Any, forwards_repeated: Any) -> Any:
    """Attention forward, twice as much backward, and once more with full checkpointing."""
    return attention_forward_flop * (1 + passed_layers_share * (2 + forwards_repeated))


@term("FLOP per token", source=_RULE)
def rule_flop(matrix_forward_flop: Any, matrix_backward_flop: Any, matrix_repeated_flop: Any) -> Any:
    """Work by the rule: 6·P in full training, 8·P checkpointed; over a frozen base 4·P and 6·P, and the adapters'."""
    return matrix_forward_flop + matrix_backward_flop + matrix_repeated_flop


@term("FLOP per token")
def token_flop(rule_flop: Any, attention_flop: Any, recomputes_selectively: Any, selective_share: Any) -> Any:
    """All work for one token: the rule, attention beyond it, and selective recomputation."""
    return (rule_flop + attention_flop) * (1 + recomputes_selectively * selective_share)


@term("FLOP")
def run_flop(token_flop: Any, processed_tokens: Any) -> Any:
    """All work of the run (C)."""
    return token_flop * processed_tokens


@term("share")
def attention_work_share(attention_flop: Any, rule_flop: Any) -> Any:
    """Share of attention in the work; the rule leaves it out."""
    return attention_flop / (rule_flop + attention_flop)

"""What works, is trained, exchanged and saved in full fine-tuning of a decoder, whose cards may share its parts."""

from typing import Any

from ..formula.declare import Constant, check, term
from ..formula.primitives import maximum, when

_FEW = (
    "Biderman et al. 2024, LoRA learns less and forgets less: on little data adapters are level; the bound is assumed"
)
_SAVED = "trainers save what the optimizer updates: the fp32 master copy where there is one, else the weights"
attended_share = Constant(
    0.5, "share", "Share of a row that a token attends to", "causal attention: half of it on average", "definition"
)
tokens_wanted_each = Constant(0.01, "tokens per parameter", "Tokens for each parameter", _FEW, "assumed")


@term("switch")
def parameters_sharded(sharding_stages: Any, stage_row: Any) -> Any:
    """1 when cards share the parameters, and gather them for forward and for backward."""
    return sharding_stages.shards_weights[stage_row]


@term("tokens")
def tokens_per_whole_row(sequence_length: Any) -> Any:
    """Tokens of the longest row, over all cards that share it."""
    return sequence_length


@term("rows")
def rows_per_update(effective_batch_size: Any) -> Any:
    """Rows of one update over all cards."""
    return effective_batch_size


@term("parameters")
def trained_parameters(base_parameter_count: Any) -> Any:
    """Parameters that are trained: all of them."""
    return base_parameter_count


@term("parameters")
def working_parameters(active_parameters: Any) -> Any:
    """Parameters at work for one token (P): of a mixture those of its experts alone."""
    return active_parameters


@term("parameters")
def passed_parameters(active_parameters: Any) -> Any:
    """Parameters that backward passes on the way down: all that work."""
    return active_parameters


@term("parameters")
def gradient_parameters(active_parameters: Any) -> Any:
    """Parameters whose gradient a token adds to: all that work."""
    return active_parameters


@term("count")
def attention_query_width(query_width: Any) -> Any:
    """Width of all heads together."""
    return query_width


@term("bytes", source=_SAVED)
def saved_weights(base_parameter_count: Any, weight_bytes: Any, master_bytes: Any) -> Any:
    """Weights of the whole model as the optimizer has them."""
    return base_parameter_count * maximum(weight_bytes, master_bytes)


@term("bytes")
def optimizer_state(
    base_parameter_count: Any,
    moment_bytes: Any,
    embedding_exception: Any,
    embedding_parameters: Any,
    fp32_bytes: Any,
) -> Any:
    """Both moments of the whole model, wherever they lie; embeddings in 32 bit where an 8-bit optimizer keeps them."""
    wider = embedding_exception * embedding_parameters * (2 * fp32_bytes - moment_bytes)
    return base_parameter_count * moment_bytes + wider


@term("bytes")
def exchanged_gradients(
    copies_of_weights: Any,
    parameters_held: Any,
    sharding_stages: Any,
    stage_row: Any,
    weight_bytes: Any,
    gathered_bytes: Any,
) -> Any:
    """One set of a card's gradients, as cards exchange it: DDP as wide as the weights, others as they compute."""
    width = when(sharding_stages.ddp[stage_row] > 0, weight_bytes, gathered_bytes)
    return when(copies_of_weights > 1, parameters_held, 0) * width


@check(
    "run_tokens is {run_tokens:,.0f}; that is fewer than {tokens_wanted_each:.2f} for each of {trained_parameters:,.0f}"
    " parameters: adapters learn as much from so few, and forget less",
    fault=False,
)
@term("switch")
def tokens_suffice(run_tokens: Any, trained_parameters: Any, tokens_wanted_each: Any) -> Any:
    """1 when the tokens are not few for the parameters."""
    return when(run_tokens >= trained_parameters * tokens_wanted_each, 1, 0)

"""What a prompt and a token take of a card: multiplications, and bytes that are read."""

from typing import Any

from ..formula.declare import Constant, term
from ..formula.primitives import maximum, minimum, when

_ROOFLINE = "Williams et al. 2009 (roofline); Pope et al. 2022, Efficiently scaling transformer inference"
flop_per_multiplication = Constant(
    2, "FLOP per parameter", "FLOP a parameter and token", "one multiplication and one addition", "definition"
)
flop_per_pair = Constant(
    4,
    "FLOP per value",
    "FLOP a pair of tokens and value",
    "queries × keys, then scores × values, two each",
    "definition",
)


@term("parameters", source=_ROOFLINE)
def multiplied_parameters(
    active_parameters: Any, embedding_parameters: Any, head_parameters: Any, position_parameters: Any
) -> Any:
    """Parameters that every token of text is multiplied with: the active ones, without tables and the output head."""
    return active_parameters - embedding_parameters - head_parameters - position_parameters


@term("parameters")
def scoring_parameters(vocabulary_size: Any, embedding_width: Any) -> Any:
    """Parameters of the output head, tied or not: multiplied once for each answered token."""
    return vocabulary_size * embedding_width


@term("tokens")
def prompt_window(mean_prompt_tokens: Any, sliding_window: Any) -> Any:
    """Tokens of a mean prompt that a layer with a window looks back on."""
    return when(sliding_window > 0, minimum(mean_prompt_tokens, sliding_window), mean_prompt_tokens)


@term("count")
def prompt_pairs(mean_prompt_tokens: Any, prompt_window: Any, full_kept_layers: Any, windowed_layer_count: Any) -> Any:
    """Pairs of tokens, over all layers, between which a mean prompt computes attention: each with those before it."""
    windowed = prompt_window * (mean_prompt_tokens - prompt_window / 2)
    return full_kept_layers * mean_prompt_tokens * mean_prompt_tokens / 2 + windowed_layer_count * windowed


@term("FLOP", source=_ROOFLINE)
def prompt_flop(
    multiplied_parameters: Any, mean_prompt_tokens: Any, scoring_parameters: Any, flop_per_multiplication: Any,
    prompt_pairs: Any, query_width: Any, flop_per_pair: Any,
) -> Any:  # fmt: skip
    """FLOP of a mean prompt: all its tokens, and the scores of the last."""
    matrices = (multiplied_parameters * mean_prompt_tokens + scoring_parameters) * flop_per_multiplication
    return matrices + prompt_pairs * query_width * flop_per_pair


@term("count")
def live_pairs(live_context: Any, sliding_window: Any, full_kept_layers: Any, windowed_layer_count: Any) -> Any:
    """Tokens, over all layers, with which a token of an answer computes attention."""
    window = when(sliding_window > 0, minimum(live_context, sliding_window), live_context)
    return full_kept_layers * live_context + windowed_layer_count * window


@term("FLOP", source=_ROOFLINE)
def output_token_flop(
    multiplied_parameters: Any, scoring_parameters: Any, flop_per_multiplication: Any, live_pairs: Any,
    query_width: Any, flop_per_pair: Any,
) -> Any:  # fmt: skip
    """FLOP of one token of an answer, half way through it."""
    matrices = (multiplied_parameters + scoring_parameters) * flop_per_multiplication
    return matrices + live_pairs * query_width * flop_per_pair


@term("count")
def decode_batch(requests_at_mean: Any, users_of_engine: Any) -> Any:
    """Requests of one engine that a step works on: its users, as many as it holds at mean length; at least one."""
    return maximum(1, minimum(requests_at_mean, users_of_engine))


@term("share", source="Bernoulli's inequality, for a router that chooses evenly")
def experts_read(experts_per_token: Any, expert_count: Any, decode_batch: Any) -> Any:
    """Share of the routed experts that a step reads at least, on average: a token's own, and more with more tokens."""
    own = experts_per_token / maximum(1, expert_count)
    return maximum(own, own * decode_batch / (1 + own * decode_batch))


@term("bytes")
def head_read(scoring_parameters: Any, unquantised_bytes: Any, tensor_parallel: Any, pipeline_parallel: Any) -> Any:
    """What each card reads of the output head, on average over the stages."""
    return scoring_parameters * unquantised_bytes / (tensor_parallel * pipeline_parallel)


@term("bytes", source=_ROOFLINE)
def step_weights_read(layer_weights_held: Any, expert_weights_held: Any, experts_read: Any, head_read: Any) -> Any:
    """Weights that each card reads in a step, whatever the number of requests; token embeddings are looked up."""
    return layer_weights_held + expert_weights_held * experts_read + head_read

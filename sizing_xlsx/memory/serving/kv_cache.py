"""The KV cache: bytes of a token, of a request, of a batch; by architecture, and as the engine keeps it.

Three figures stand side by side: every layer keeps every token (what one number a token says); layers with a window
keep their window (what the architecture needs); what the engine sets aside, in whole blocks and for a step's tokens.
"""

from typing import Any

from ...formula.declare import Input, Whole, check, term
from ...formula.primitives import floor, maximum, minimum, when

_WINDOWS = "vLLM: SlidingWindowSpec.max_memory_usage_bytes; transformers 5.20: DynamicSlidingWindowLayer"
recurrent_layers = Input(
    "layers",
    Whole(0, 10_000),
    0,
    "Recurrent layers",
    "Layers that keep a state of fixed size in place of keys and values (linear attention, Mamba).",
)
recurrent_state_values = Input(
    "values",
    Whole(0, 10**9),
    0,
    "State values of a recurrent layer",
    "For one request: heads × key width × value width, or inner width × state size.",
)
convolution_values = Input(
    "values",
    Whole(0, 10**9),
    0,
    "Convolution values of a recurrent layer",
    "For one request: width of the convolution × the tokens that it looks back on.",
)
recurrent_value_bytes = Input(
    "bytes per value", Whole(1, 8), 4, "Bytes of a state value", "4: most engines keep the recurrent state in fp32."
)


# ---------------------------------------------------------------------- of one token
@check(
    "recurrent_layers is {recurrent_layers}; it must be at most the full-attention layers of {base_model},"
    " {full_layer_count}"
)
@term("switch")
def recurrent_layers_exist(recurrent_layers: Any, full_layer_count: Any) -> Any:
    """0 when more layers should be recurrent than there are without a window."""
    return when(recurrent_layers > full_layer_count, 0, 1)


@term("layers", label="Layers that keep every token")
def full_kept_layers(full_layer_count: Any, recurrent_layers: Any) -> Any:
    """Layers whose keys and values of every token are kept."""
    return maximum(0, full_layer_count - recurrent_layers)


@term("bytes per token", label="KV bytes per token and layer")
def kv_layer_bytes(kv_values_per_token_per_layer: Any, kv_value_bytes: Any) -> Any:
    """What one layer keeps of a token: keys and values of all KV heads, or the latent and the rotated part."""
    return kv_values_per_token_per_layer * kv_value_bytes


@term("bytes per token", label="KV cache bytes per token")
def kv_cache_bytes_per_token(full_kept_layers: Any, windowed_layer_count: Any, kv_layer_bytes: Any) -> Any:
    """What all layers together keep of a token, those with a window as well; no card's copy is counted twice."""
    return (full_kept_layers + windowed_layer_count) * kv_layer_bytes


@term("bytes per token", label="KV cache bytes per token beyond the window")
def kv_cache_bytes_per_token_windowed(full_kept_layers: Any, kv_layer_bytes: Any) -> Any:
    """What a further token takes once the windows are full: of the layers that attend to everything alone."""
    return full_kept_layers * kv_layer_bytes


@term("bytes", label="Recurrent state of a request")
def recurrent_state(
    recurrent_layers: Any,
    recurrent_state_values: Any,
    convolution_values: Any,
    recurrent_value_bytes: Any,
    bf16_bytes: Any,
) -> Any:
    """What recurrent layers keep of a request, however long it is; the convolution's tokens in 16 bit."""
    return recurrent_layers * (recurrent_state_values * recurrent_value_bytes + convolution_values * bf16_bytes)


# ---------------------------------------------------------------------- as the engine keeps it, on one card
@term("values per token", label="KV values per token and layer of a card")
def kv_values_held(kv_latent_width: Any, rope_dimension: Any, kv_heads_held: Any, head_dimension: Any) -> Any:
    """What a layer keeps of a token on one card: its KV heads, or the whole latent, which cards do not share."""
    return when(kv_latent_width > 0, kv_latent_width + rope_dimension, 2 * kv_heads_held * head_dimension)


@term("bytes per token", label="KV bytes per token of a card, full layers")
def full_kv_held(full_kept_layers: Any, kv_values_held: Any, kv_value_bytes: Any, stage_share: Any) -> Any:
    """What the layers of one card that attend to everything keep of a token."""
    return full_kept_layers * stage_share * kv_values_held * kv_value_bytes


@term("bytes per token", label="KV bytes per token of a card, windowed layers")
def windowed_kv_held(windowed_layer_count: Any, kv_values_held: Any, kv_value_bytes: Any, stage_share: Any) -> Any:
    """What the layers of one card that have a window keep of a token within it."""
    return windowed_layer_count * stage_share * kv_values_held * kv_value_bytes


@term("bytes per token", label="KV bytes per token of a card")
def kv_bytes_per_token_per_gpu(full_kv_held: Any, windowed_kv_held: Any) -> Any:
    """What all layers of one card keep of a token."""
    return full_kv_held + windowed_kv_held


@term("bytes", label="Recurrent state of a request on a card")
def recurrent_state_held(recurrent_state: Any, stage_share: Any, tensor_parallel: Any) -> Any:
    """One card's part of the recurrent state of a request."""
    return recurrent_state * stage_share / tensor_parallel


@term("count", label="Copies of the KV cache")
def kv_copies(kv_values_held: Any, tensor_parallel: Any, kv_values_per_token_per_layer: Any) -> Any:
    """How often the cards of one stage keep the same keys and values: 1 when each keeps its own part."""
    return kv_values_held * tensor_parallel / kv_values_per_token_per_layer


@term("switch", source="engines.csv")
def windows_kept(engines: Any, engine_row: Any, windowed_layer_count: Any) -> Any:
    """1 when the engine keeps no more than the window of layers that have one."""
    return when(windowed_layer_count > 0, engines.keeps_windows[engine_row], 0)


@term("tokens", source=_WINDOWS)
def window_tokens_wanted(sliding_window: Any, engines: Any, engine_row: Any, batched_tokens: Any) -> Any:
    """Tokens that a layer with a window may have to hold at once: those before a step, and the step's."""
    spare = engines.window_spare[engine_row]
    return maximum(0, sliding_window - spare + engines.window_holds_step[engine_row] * batched_tokens)


@term("tokens", source=_WINDOWS)
def window_tokens_kept(window_tokens_wanted: Any, engines: Any, engine_row: Any, tokens_of_block: Any) -> Any:
    """Tokens for which the engine keeps room in a layer with a window: whole blocks, and with a step's one more."""
    blocks = 0 - floor(0 - window_tokens_wanted / tokens_of_block)
    return (blocks + engines.window_holds_step[engine_row]) * tokens_of_block


@term("tokens")
def maximum_blocks_held(maximum_length: Any, tokens_of_block: Any) -> Any:
    """Tokens of the whole blocks that the longest request takes."""
    return (0 - floor(0 - maximum_length / tokens_of_block)) * tokens_of_block


@term("tokens")
def maximum_window_held(maximum_blocks_held: Any, windows_kept: Any, window_tokens_kept: Any) -> Any:
    """Tokens that a layer with a window keeps of the longest request."""
    return when(windows_kept > 0, minimum(maximum_blocks_held, window_tokens_kept), maximum_blocks_held)


@term("bytes", label="KV cache of the longest request, on a card")
def maximum_request_held(
    full_kv_held: Any, maximum_blocks_held: Any, windowed_kv_held: Any, maximum_window_held: Any,
    recurrent_state_held: Any,
) -> Any:  # fmt: skip
    """What a card keeps of a request as long as the engine accepts."""
    kv = full_kv_held * maximum_blocks_held + windowed_kv_held * maximum_window_held
    return kv + recurrent_state_held


@term("tokens")
def mean_blocks_held(mean_context: Any, tokens_of_block: Any) -> Any:
    """Tokens of the whole blocks that a request of mean length takes."""
    return (0 - floor(0 - mean_context / tokens_of_block)) * tokens_of_block


@term("tokens")
def mean_window_held(mean_blocks_held: Any, windows_kept: Any, window_tokens_kept: Any) -> Any:
    """Tokens that a layer with a window keeps of a request of mean length."""
    return when(windows_kept > 0, minimum(mean_blocks_held, window_tokens_kept), mean_blocks_held)


@term("bytes", label="KV cache of a mean request, on a card")
def mean_request_held(
    full_kv_held: Any, mean_blocks_held: Any, windowed_kv_held: Any, mean_window_held: Any,
    recurrent_state_held: Any,
) -> Any:  # fmt: skip
    """What a card keeps of a request of mean length at its end."""
    kv = full_kv_held * mean_blocks_held + windowed_kv_held * mean_window_held
    return kv + recurrent_state_held


@term("tokens")
def percentile_blocks_held(percentile_context: Any, tokens_of_block: Any) -> Any:
    """Tokens of the whole blocks that a request of percentile length takes."""
    return (0 - floor(0 - percentile_context / tokens_of_block)) * tokens_of_block


@term("tokens")
def percentile_window_held(percentile_blocks_held: Any, windows_kept: Any, window_tokens_kept: Any) -> Any:
    """Tokens that a layer with a window keeps of a request of percentile length."""
    return when(windows_kept > 0, minimum(percentile_blocks_held, window_tokens_kept), percentile_blocks_held)


@term("bytes", label="KV cache of a percentile request, on a card")
def percentile_request_held(
    full_kv_held: Any, percentile_blocks_held: Any, windowed_kv_held: Any, percentile_window_held: Any,
    recurrent_state_held: Any,
) -> Any:  # fmt: skip
    """What a card keeps of a request of percentile length at its end."""
    kv = full_kv_held * percentile_blocks_held + windowed_kv_held * percentile_window_held
    return kv + recurrent_state_held


@term("tokens")
def percentile_window_needed(percentile_context: Any, sliding_window: Any) -> Any:
    """Tokens that a layer with a window needs of a request of percentile length."""
    return when(sliding_window > 0, minimum(percentile_context, sliding_window), percentile_context)


@term("bytes", label="KV cache of a percentile request, on a card, as the architecture needs")
def percentile_request_needed(
    full_kv_held: Any, windowed_kv_held: Any, percentile_context: Any, percentile_window_needed: Any,
    recurrent_state_held: Any,
) -> Any:  # fmt: skip
    """What a card needs of a request of percentile length at its end, with no more than the window of its layers."""
    return full_kv_held * percentile_context + windowed_kv_held * percentile_window_needed + recurrent_state_held


@term("bytes", label="KV cache of a request in progress, on a card")
def live_request_held(
    full_kv_held: Any, windowed_kv_held: Any, live_context: Any, sliding_window: Any, recurrent_state_held: Any
) -> Any:
    """What a step reads of a request in progress: of layers with a window no more than that."""
    window = when(sliding_window > 0, minimum(live_context, sliding_window), live_context)
    return full_kv_held * live_context + windowed_kv_held * window + recurrent_state_held


# ---------------------------------------------------------------------- of a request and a batch, all cards together
@term("bytes", label="KV cache of a request, every layer")
def kv_request_every_layer(kv_cache_bytes_per_token: Any, percentile_context: Any, recurrent_state: Any) -> Any:
    """A request of percentile length, if every layer kept every token."""
    return kv_cache_bytes_per_token * percentile_context + recurrent_state


@term("bytes", label="KV cache of a request, as the architecture needs")
def kv_request_needed(
    full_kept_layers: Any, windowed_layer_count: Any, kv_layer_bytes: Any, percentile_context: Any,
    percentile_window_needed: Any, recurrent_state: Any,
) -> Any:  # fmt: skip
    """A request of percentile length, with no more than the window of layers that have one."""
    tokens = full_kept_layers * percentile_context + windowed_layer_count * percentile_window_needed
    return tokens * kv_layer_bytes + recurrent_state


@term("GB", label="KV cache of all users, every layer")
def kv_batch_every_layer_gb(concurrent_users: Any, kv_request_every_layer: Any, bytes_per_gb: Any) -> Any:
    """All users at percentile length, if every layer kept every token."""
    return concurrent_users * kv_request_every_layer / bytes_per_gb


@term("GB", label="KV cache of all users, as the architecture needs")
def kv_batch_needed_gb(concurrent_users: Any, kv_request_needed: Any, bytes_per_gb: Any) -> Any:
    """All users at percentile length, with no more than the window of layers that have one."""
    return concurrent_users * kv_request_needed / bytes_per_gb


@term("GB", label="KV cache of all users, as the engine keeps it")
def kv_batch_reserved_gb(
    concurrent_users: Any, percentile_request_held: Any, tensor_parallel: Any, pipeline_parallel: Any, bytes_per_gb: Any
) -> Any:
    """All users at percentile length over all cards: whole blocks, repeated KV heads, whole windows or none."""
    return concurrent_users * percentile_request_held * tensor_parallel * pipeline_parallel / bytes_per_gb


@check(
    "{serving_engine} keeps every token in all {layer_count} {layer_count:layer|layers}, of which"
    " {windowed_layer_count} need only {sliding_window} tokens: it takes more than the architecture needs",
    fault=False,
)
@term("switch")
def engine_knows_windows(
    windows_kept: Any, windowed_layer_count: Any, sliding_window: Any, percentile_context: Any
) -> Any:
    """0 when the engine ignores windows that are shorter than requests."""
    return when((windowed_layer_count > 0) & (windows_kept <= 0) & (percentile_context > sliding_window), 0, 1)

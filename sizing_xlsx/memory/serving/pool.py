"""The KV pool: what the engine has left for keys and values, how many tokens and users that is, and the verdict."""

from typing import Any

from ...formula.declare import Constant, check, term
from ...formula.primitives import floor, maximum, minimum, when

longest_unstated = Constant(
    10_000_000, "tokens", "Longest context asked for", "where a model's config does not state one", "assumed"
)
least_bytes = Constant(1, "bytes", "One byte", "keeps a cache that is none from dividing by zero", "definition")


@term("bytes")
def card_bytes(gpu_usable_capacity_gb: Any, bytes_per_gb: Any) -> Any:
    """What the framework can address of one card."""
    return gpu_usable_capacity_gb * bytes_per_gb


@term("bytes")
def free_bytes(card_bytes: Any, other_tenants_gb: Any, bytes_per_gb: Any) -> Any:
    """What other programs leave of one card."""
    return card_bytes - other_tenants_gb * bytes_per_gb


@term("bytes", source="engines.csv")
def beside_pool(
    weights_held: Any, engines: Any, engine_row: Any, step_activation_gb: Any, libraries_gb: Any, graphs_gb: Any,
    bytes_per_gb: Any,
) -> Any:  # fmt: skip
    """What the engine takes off its budget: weights, libraries, and where it counts them the step and the graphs."""
    step = engines.counts_step[engine_row] * step_activation_gb + engines.counts_graphs[engine_row] * graphs_gb
    return weights_held + (libraries_gb + step) * bytes_per_gb


@term("bytes", source="engines.csv", label="Room for the KV pool")
def kv_room(
    card_bytes: Any, free_bytes: Any, fraction_taken: Any, engines: Any, engine_row: Any, beside_pool: Any
) -> Any:
    """What the engine has left for keys and values on one card; negative when weights and step alone are too much."""
    of_total = minimum(fraction_taken * card_bytes, free_bytes) - beside_pool
    return when(engines.fraction_of_free[engine_row] > 0, fraction_taken * (free_bytes - beside_pool), of_total)


@term("bytes", label="KV pool of a card")
def kv_pool(kv_room: Any) -> Any:
    """Bytes of the KV pool of one card."""
    return maximum(0, kv_room)


@term("GB", label="KV pool of a card")
def kv_pool_gb(kv_pool: Any, bytes_per_gb: Any) -> Any:
    """The KV pool of one card."""
    return kv_pool / bytes_per_gb


@term("tokens", label="Tokens in the KV pool")
def kv_pool_tokens(kv_pool: Any, kv_bytes_per_token_per_gpu: Any, tokens_of_block: Any, least_bytes: Any) -> Any:
    """Tokens of which every layer of an engine can keep keys and values: what vLLM prints as KV cache size."""
    block = maximum(least_bytes, kv_bytes_per_token_per_gpu * tokens_of_block)
    return when(kv_bytes_per_token_per_gpu > 0, floor(kv_pool / block) * tokens_of_block, 0)


@term("count", label="Requests of the longest kind in the pool")
def maximum_concurrency(kv_pool: Any, maximum_request_held: Any, least_bytes: Any) -> Any:
    """How many requests as long as the engine accepts its pool holds: what vLLM prints as maximum concurrency."""
    return kv_pool / maximum(least_bytes, maximum_request_held)


@term("count")
def requests_at_mean(kv_pool: Any, mean_request_held: Any, least_bytes: Any, sequences_of_step: Any) -> Any:
    """Requests of mean length that one engine holds at once, and works on in one step."""
    return minimum(sequences_of_step, floor(kv_pool / maximum(least_bytes, mean_request_held)))


@term("count")
def requests_at_percentile(kv_pool: Any, percentile_request_held: Any, least_bytes: Any, sequences_of_step: Any) -> Any:
    """Requests of percentile length that one engine holds at once, and works on in one step."""
    return minimum(sequences_of_step, floor(kv_pool / maximum(least_bytes, percentile_request_held)))


@term("text", label="What limits users, percentile length")
def users_limited_by(kv_pool: Any, percentile_request_held: Any, least_bytes: Any, sequences_of_step: Any) -> Any:
    """Which limit decides how many users an engine serves at percentile length: the KV pool, or its longest step."""
    held = floor(kv_pool / maximum(least_bytes, percentile_request_held))
    return when(held < sequences_of_step, "the KV pool", "the sequences of a step")


@term("text", label="What limits users, mean length")
def users_at_mean_limited_by(kv_pool: Any, mean_request_held: Any, least_bytes: Any, sequences_of_step: Any) -> Any:
    """The same at mean length."""
    held = floor(kv_pool / maximum(least_bytes, mean_request_held))
    return when(held < sequences_of_step, "the KV pool", "the sequences of a step")


@term("count", label="Users at one time, percentile length")
def concurrency(requests_at_percentile: Any, data_parallel: Any) -> Any:
    """Users that all cards together serve at once, each at percentile length."""
    return requests_at_percentile * data_parallel


@term("count", label="Users at one time, percentile length, by need")
def concurrency_by_need(
    kv_pool: Any, percentile_request_needed: Any, least_bytes: Any, sequences_of_step: Any, data_parallel: Any
) -> Any:
    """The same if the engine set aside what the architecture needs and no more: once all prompts are worked off."""
    held = floor(kv_pool / maximum(least_bytes, percentile_request_needed))
    return minimum(sequences_of_step, held) * data_parallel


@term("count", label="Users at one time, mean length")
def concurrency_at_mean(requests_at_mean: Any, data_parallel: Any) -> Any:
    """Users that all cards together serve at once, on average of mean length."""
    return requests_at_mean * data_parallel


@term("tokens")
def longest_taken(maximum_positions: Any, longest_unstated: Any) -> Any:
    """The longest context that the model takes; a limit of the search where its config does not say."""
    return when(maximum_positions > 0, maximum_positions, longest_unstated)


@term("tokens", label="Longest context within the windows")
def tokens_in_windows(
    kv_pool: Any, recurrent_state_held: Any, kv_bytes_per_token_per_gpu: Any, least_bytes: Any
) -> Any:
    """Tokens of one request that the pool holds as long as every layer keeps each of them."""
    return maximum(0, kv_pool - recurrent_state_held) / maximum(least_bytes, kv_bytes_per_token_per_gpu)


@term("tokens", label="Longest context beyond the windows")
def tokens_beyond_windows(
    kv_pool: Any, recurrent_state_held: Any, windowed_kv_held: Any, window_tokens_kept: Any, full_kv_held: Any,
    least_bytes: Any,
) -> Any:  # fmt: skip
    """Tokens of one request that the pool holds once the windows are full."""
    room = maximum(0, kv_pool - recurrent_state_held - windowed_kv_held * window_tokens_kept)
    return room / maximum(least_bytes, full_kv_held)


@term("tokens", label="Tokens that one user could have")
def tokens_held(
    windows_kept: Any, tokens_in_windows: Any, window_tokens_kept: Any, tokens_beyond_windows: Any, full_kv_held: Any,
    longest_taken: Any,
) -> Any:  # fmt: skip
    """Tokens of one request that the pool holds; without end where no layer keeps more than its window."""
    beyond = when(full_kv_held > 0, tokens_beyond_windows, longest_taken)
    return when((windows_kept > 0) & (tokens_in_windows >= window_tokens_kept), beyond, tokens_in_windows)


@term("tokens", label="Longest context for one user")
def longest_context(
    tokens_held: Any, tokens_of_block: Any, longest_taken: Any, rounding_guard: Any, kv_bytes_per_token_per_gpu: Any
) -> Any:
    """The longest context that one user alone could have: whole blocks, and no more than the model takes."""
    blocks = floor(tokens_held / tokens_of_block + rounding_guard) * tokens_of_block
    return when(kv_bytes_per_token_per_gpu > 0, minimum(longest_taken, blocks), longest_taken)


@term("count")
def users_of_engine(concurrent_users: Any, data_parallel: Any) -> Any:
    """Users of one engine where copies share them."""
    return 0 - floor(0 - concurrent_users / data_parallel)


@term("switch")
def engine_runs(kv_room: Any, maximum_request_held: Any, engine_within_card: Any) -> Any:
    """1 when the engine starts, with room for a request as long as it accepts, and stays within the card."""
    return when((kv_room <= 0) | (kv_room < maximum_request_held) | (engine_within_card <= 0), 0, 1)


@term("count")
def users_beyond(concurrency: Any, concurrency_at_mean: Any, concurrent_users: Any) -> Any:
    """0 when all users fit at percentile length, 1 when they do at mean length alone, 2 when they do not."""
    return when(concurrency >= concurrent_users, 0, when(concurrency_at_mean >= concurrent_users, 1, 2))


@term("count")
def verdict_code(engine_runs: Any, users_beyond: Any) -> Any:
    """1 fits: all users at percentile length. 2 tight: at mean length alone. 3 does not fit: fewer, or no start."""
    return 1 + when(engine_runs > 0, users_beyond, 2)


@term("text")
def fit_verdict(verdicts: Any, verdict_code: Any) -> Any:
    """The verdict in a word: fits, tight or does not fit."""
    return verdicts.word[verdict_code]


@term("GB")
def headroom_gb(kv_room: Any, users_held: Any, bytes_per_gb: Any) -> Any:
    """What stays free of a card's KV pool with all users at percentile length; negative when it is too little."""
    return (kv_room - users_held) / bytes_per_gb


@term("bytes")
def users_held(users_of_engine: Any, percentile_request_held: Any) -> Any:
    """KV cache on a card of all users at percentile length."""
    return users_of_engine * percentile_request_held


@term("GB", label="Needed on a card")
def needed_gb(weights_held: Any, beside_weights: Any, users_held: Any, bytes_per_gb: Any) -> Any:
    """Weights, step, libraries, graphs, and the KV cache of all users at percentile length."""
    return (weights_held + beside_weights + users_held) / bytes_per_gb


@term("bytes")
def beside_weights(step_activation_gb: Any, libraries_gb: Any, graphs_gb: Any, bytes_per_gb: Any) -> Any:
    """What the engine holds beside weights and pool: a step, the libraries, the graphs."""
    return (step_activation_gb + libraries_gb + graphs_gb) * bytes_per_gb


@term("bytes")
def engine_reserved(weights_held: Any, beside_weights: Any, kv_pool: Any) -> Any:
    """What the engine holds once it runs, however few its users: the pool is taken whole at its start."""
    return weights_held + beside_weights + kv_pool


@term("GB", label="Taken by the engine, of a card")
def engine_reserved_gb(engine_reserved: Any, bytes_per_gb: Any) -> Any:
    """What the engine holds of a card once it runs."""
    return engine_reserved / bytes_per_gb


@check(
    "{serving_engine} would take {engine_reserved_gb:.2f} GB with its steps and CUDA graphs, which is more than the"
    " {gpu_usable_capacity_gb:.2f} GB of the card, weights {weights_gb:.2f} GB of it: enter a memory_fraction"
    " below {fraction_taken}, or where weights are too much a larger card or more of them",
    fault=False,
)
@term("switch")
def engine_within_card(engine_reserved: Any, free_bytes: Any, rounding_guard: Any) -> Any:
    """0 when pool, steps and graphs together are more than the card has: it runs out of memory under load."""
    return when(engine_reserved > free_bytes * (1 + rounding_guard), 0, 1)

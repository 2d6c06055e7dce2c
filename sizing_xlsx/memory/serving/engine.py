"""The serving engine: what it keeps, what it may take of a card, and how it measures what a step needs."""

from typing import Any

from ...formula.declare import Choice, Constant, Input, Number, Whole, check, term
from ...formula.primitives import equal, given, maximum, when

serving_engine = Input(
    "text", Choice("engines"), "vLLM 0.11", "Serving engine", "What serves the model; its defaults are in engines.csv."
)
memory_fraction = Input(
    "share",
    Number(0.01, 1),
    None,
    "Fraction of the card",
    "Share of the card that the engine may take (gpu_memory_utilization, mem_fraction_static); empty: its default.",
    optional=True,
)
maximum_batched_tokens = Input(
    "tokens",
    Whole(1, 10_000_000),
    None,
    "Tokens of a step",
    "Most tokens that one step works on (max_num_batched_tokens); empty: the engine's default on this card.",
    optional=True,
)
maximum_sequences = Input(
    "count",
    Whole(1, 1_000_000),
    None,
    "Requests of a step",
    "Most requests that one step works on (max_num_seqs); empty: the engine's default on this card.",
    optional=True,
)
block_tokens = Input(
    "tokens",
    Whole(1, 65_536),
    None,
    "Tokens of a block",
    "Tokens of one block of the paged KV cache; empty: the engine's default.",
    optional=True,
)
kv_format = Input(
    "text", Choice("kv_formats"), "bf16", "KV format", "How keys and values are kept; fp16 takes as much as bf16."
)
bytes_per_gib = Constant(2**30, "bytes per GiB", "Bytes per GiB", "1 GiB = 1,073,741,824 bytes", "definition")


@term("row")
def engine_row(engines: Any, serving_engine: Any) -> Any:
    """Row of the engine in its table."""
    return engines.row_of(serving_engine)


@term("share", source="engines.csv")
def fraction_taken(memory_fraction: Any, engines: Any, engine_row: Any) -> Any:
    """Share of the card that the engine may take."""
    return given(memory_fraction, engines.memory_fraction[engine_row])


@term("switch", source="engines.csv")
def card_excepted(engines: Any, engine_row: Any, gpus: Any, gpu_row: Any) -> Any:
    """1 when the engine never takes a card of this architecture for a large one."""
    return when(equal(gpus.architecture[gpu_row], engines.excepted_architecture[engine_row]), 1, 0)


@term("switch", source="engines.csv")
def large_card(card_bytes: Any, engines: Any, engine_row: Any, bytes_per_gib: Any, card_excepted: Any) -> Any:
    """1 when the engine takes the card for a large one, with longer steps by default."""
    return when(card_bytes >= engines.large_card_gib[engine_row] * bytes_per_gib, 1 - card_excepted, 0)


@term("tokens", source="engines.csv")
def usual_batched_tokens(engines: Any, engine_row: Any, large_card: Any) -> Any:
    """Most tokens that one step works on, by the engine's default on this card."""
    return when(large_card > 0, engines.large_batched_tokens[engine_row], engines.small_batched_tokens[engine_row])


@term("tokens", source="engines.csv")
def whole_prompt_tokens(engines: Any, engine_row: Any, maximum_length: Any) -> Any:
    """Tokens of one whole context, where the engine works on a prompt in one step; else 0."""
    return engines.whole_prompts[engine_row] * maximum_length


@term("tokens")
def batched_tokens(maximum_batched_tokens: Any, usual_batched_tokens: Any, whole_prompt_tokens: Any) -> Any:
    """Tokens of the pass by which the engine measures a step: its longest step, or one whole context."""
    return given(maximum_batched_tokens, maximum(usual_batched_tokens, whole_prompt_tokens))


@term("count", source="engines.csv")
def usual_sequences(engines: Any, engine_row: Any, large_card: Any) -> Any:
    """Most requests that one step works on, by the engine's default on this card."""
    return when(large_card > 0, engines.large_sequences[engine_row], engines.small_sequences[engine_row])


@term("count", source="engines.csv")
def sequences_of_step(maximum_sequences: Any, usual_sequences: Any) -> Any:
    """Requests that one step works on at most."""
    return given(maximum_sequences, usual_sequences)


@term("tokens", source="engines.csv")
def tokens_of_block(block_tokens: Any, engines: Any, engine_row: Any) -> Any:
    """Tokens of one block of the KV cache; a request takes whole blocks."""
    return given(block_tokens, engines.block_tokens[engine_row])


@term("row")
def kv_format_row(kv_formats: Any, kv_format: Any) -> Any:
    """Row of the KV format in its table."""
    return kv_formats.row_of(kv_format)


@term("bytes per value", label="Bytes of a KV value")
def kv_value_bytes(kv_formats: Any, kv_format_row: Any) -> Any:
    """Bytes of one key or value in the cache; scales of a whole tensor are not counted."""
    return kv_formats.value_bytes[kv_format_row]


@term("text", source="engines.csv", label="KV formats of the engine")
def kv_formats_offered(engines: Any, engine_row: Any) -> Any:
    """The KV formats that the engine has."""
    return engines.kv_formats[engine_row]


@term("switch")
def fp8_missing(kv_formats: Any, kv_format_row: Any, engines: Any, engine_row: Any) -> Any:
    """1 when the cache should be in 8-bit floats and the engine has none."""
    return kv_formats.fp8[kv_format_row] * (1 - engines.kv_fp8[engine_row])


@term("switch")
def int8_missing(kv_formats: Any, kv_format_row: Any, engines: Any, engine_row: Any) -> Any:
    """1 when the cache should be in 8-bit integers and the engine has none."""
    return kv_formats.int8[kv_format_row] * (1 - engines.kv_int8[engine_row])


@check("kv_format is {kv_format!r}, which {serving_engine} has not; it must be one of {kv_formats_offered}")
@term("switch")
def kv_format_offered(fp8_missing: Any, int8_missing: Any) -> Any:
    """0 when the engine does not have the KV format."""
    return 1 - fp8_missing - int8_missing

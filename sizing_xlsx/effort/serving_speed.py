"""How fast an engine answers: bounds that no engine passes, and what it reaches by two efficiencies.

A bound takes a card's peaks for granted and nothing else: no scheduler, no talk between cards, no waiting.
"""

from typing import Any

from ..formula.declare import Choice, Constant, Input, Number, term
from ..formula.primitives import either, given, maximum, when

_ROOFLINE = "Williams et al. 2009 (roofline)"
serving_precision = Input(
    "text",
    Choice("serving_precisions"),
    "16 bit",
    "Precision of products",
    "In what matrices are multiplied; fp8 needs a card with it and weights in fp8.",
    follows_job=False,
)
own_bandwidth_gb_per_s = Input(
    "GB per second",
    Number(0.001, 1_000_000),
    None,
    "Own bandwidth",
    "Of one card's memory, in GB/s; empty: the card's own, as on GPUs.",
    follows_job=False,
    optional=True,
)
bandwidth_unknown = Constant(
    1,
    "bytes per second",
    "One byte a second",
    "stands for a bandwidth that is not known: no division by zero",
    "definition",
)
least_seconds = Constant(
    1e-18, "seconds", "Least time", "keeps a time that is none from dividing by zero", "definition"
)
prefill_efficiency = Input(
    "share",
    Number(0.001, 1),
    0.5,
    "Share of peak FLOP",
    "That prompts reach. Half is assumed; Pope et al. 2022 report 0.76 for large batches of a 540-billion model.",
    follows_job=False,
)
decode_efficiency = Input(
    "share",
    Number(0.001, 1),
    0.6,
    "Share of peak bandwidth",
    "That answers reach. 0.6 is assumed, near the 0.55 and 0.60 that Databricks reported for several A100 and H100.",
    follows_job=False,
)


@term("switch")
def products_in_8_bit(serving_precisions: Any, serving_precision: Any) -> Any:
    """1 when matrices are multiplied in fp8."""
    return serving_precisions.fp8[serving_precisions.row_of(serving_precision)]


@term("count", label="Listed peak for products", source="GPUs sheet: dense")
def serving_listed_tflops(products_in_8_bit: Any, gpus: Any, gpu_row: Any) -> Any:
    """Peak of one card in the precision of products, in TFLOP/s, as listed; 0 where it is not known."""
    return when(products_in_8_bit > 0, gpus.fp8_dense_tflops[gpu_row], gpus.bf16_dense_tflops[gpu_row])


@term("FLOP per second", label="Peak of an engine")
def engine_peak(
    own_peak_tflops: Any, serving_listed_tflops: Any, one_tflops: Any, tensor_parallel: Any, pipeline_parallel: Any
) -> Any:
    """Peak of all cards of one engine; 0 where it is not known."""
    return given(own_peak_tflops, serving_listed_tflops) * one_tflops * tensor_parallel * pipeline_parallel


@term("bytes per second", label="Bandwidth of a card")
def card_bandwidth(own_bandwidth_gb_per_s: Any, gpus: Any, gpu_row: Any, bytes_per_gb: Any) -> Any:
    """Bytes a second between one card and its memory; 0 where it is not known."""
    return given(own_bandwidth_gb_per_s, gpus.bandwidth_gb_per_s[gpu_row]) * bytes_per_gb


@term("switch")
def peaks_known(engine_peak: Any, card_bandwidth: Any) -> Any:
    """1 when both peaks of the card are known; else nothing is said of speed and cost."""
    return when((engine_peak > 0) & (card_bandwidth > 0), 1, 0)


@term("seconds", source=_ROOFLINE)
def prompt_compute_seconds(prompt_flop: Any, engine_peak: Any, one_tflops: Any) -> Any:
    """A mean prompt at the peak of all cards of an engine."""
    return prompt_flop / when(engine_peak > 0, engine_peak, one_tflops)


@term("seconds", source=_ROOFLINE)
def prompt_read_seconds(
    layer_weights_held: Any, expert_weights_held: Any, head_read: Any, card_bandwidth: Any, bandwidth_unknown: Any,
    pipeline_parallel: Any,
) -> Any:  # fmt: skip
    """Reading all weights once, stage by stage: what a short prompt takes at least."""
    read = layer_weights_held + expert_weights_held + head_read
    return read * pipeline_parallel / when(card_bandwidth > 0, card_bandwidth, bandwidth_unknown)


@term("seconds", label="Time to first token, bound")
def first_token_bound_seconds(peaks_known: Any, prompt_compute_seconds: Any, prompt_read_seconds: Any) -> Any:
    """Least time from a mean prompt to its first token, on an engine that does nothing else."""
    return either(peaks_known > 0, maximum(prompt_compute_seconds, prompt_read_seconds), "not known")


@term("seconds")
def prompt_seconds(
    prompt_compute_seconds: Any, prefill_efficiency: Any, prompt_read_seconds: Any, decode_efficiency: Any
) -> Any:
    """A mean prompt at the shares of the peaks that are expected."""
    return maximum(prompt_compute_seconds / prefill_efficiency, prompt_read_seconds / decode_efficiency)


@term("seconds", label="Time to first token, expected")
def first_token_seconds(peaks_known: Any, prompt_seconds: Any) -> Any:
    """Time from a mean prompt to its first token at the expected shares, without waiting for other requests."""
    return either(peaks_known > 0, prompt_seconds, "not known")


@term("seconds", source=_ROOFLINE)
def step_read_seconds(
    step_weights_read: Any, pipeline_parallel: Any, decode_batch: Any, live_request_held: Any, card_bandwidth: Any,
    bandwidth_unknown: Any,
) -> Any:  # fmt: skip
    """Reading weights, once for all requests, and the KV cache of each: a token of every answer, through all stages."""
    read = step_weights_read * pipeline_parallel + decode_batch * live_request_held
    return read / when(card_bandwidth > 0, card_bandwidth, bandwidth_unknown)


@term("seconds", source=_ROOFLINE)
def step_compute_seconds(decode_batch: Any, output_token_flop: Any, engine_peak: Any, one_tflops: Any) -> Any:
    """Computing a token of every answer at the peak of all cards of an engine."""
    return decode_batch * output_token_flop / when(engine_peak > 0, engine_peak, one_tflops)


@term("seconds", label="Time per output token, bound")
def output_token_bound_seconds(peaks_known: Any, step_read_seconds: Any, step_compute_seconds: Any) -> Any:
    """Least time from one token of an answer to the next, with all users of the engine answered at once."""
    return either(peaks_known > 0, maximum(step_read_seconds, step_compute_seconds), "not known")


@term("seconds")
def step_seconds(
    step_read_seconds: Any, decode_efficiency: Any, step_compute_seconds: Any, prefill_efficiency: Any
) -> Any:
    """A token of every answer at the shares of the peaks that are expected."""
    return maximum(step_read_seconds / decode_efficiency, step_compute_seconds / prefill_efficiency)


@term("seconds", label="Time per output token, expected")
def output_token_seconds(peaks_known: Any, step_seconds: Any) -> Any:
    """Time from one token of an answer to the next at the expected shares, with all users answered at once."""
    return either(peaks_known > 0, step_seconds, "not known")


@term("tokens per second", label="Output tokens a second and card, bound")
def tokens_per_second_per_gpu_bound(
    peaks_known: Any, decode_batch: Any, step_read_seconds: Any, step_compute_seconds: Any, tensor_parallel: Any,
    pipeline_parallel: Any,
) -> Any:  # fmt: skip
    """Tokens of answers that each card makes a second at most, while no prompt is worked on."""
    cards = tensor_parallel * pipeline_parallel
    return either(peaks_known > 0, decode_batch / maximum(step_read_seconds, step_compute_seconds) / cards, "not known")


@term("tokens per second", label="Output tokens a second and card, expected")
def tokens_per_second_per_gpu(
    peaks_known: Any, decode_batch: Any, step_seconds: Any, tensor_parallel: Any, pipeline_parallel: Any
) -> Any:
    """Tokens of answers that each card makes a second at the expected shares, while no prompt is worked on."""
    return either(peaks_known > 0, decode_batch / step_seconds / (tensor_parallel * pipeline_parallel), "not known")


@term("count", label="Requests from which products of matrices are computing")
def matrix_balance_batch(
    peaks_known: Any, prompt_read_seconds: Any, multiplied_parameters: Any, scoring_parameters: Any,
    flop_per_multiplication: Any, engine_peak: Any,
) -> Any:  # fmt: skip
    """Requests at which reading all weights takes as long as multiplying with them; caches and attention apart."""
    flop = (multiplied_parameters + scoring_parameters) * flop_per_multiplication
    return either(peaks_known > 0, prompt_read_seconds * engine_peak / flop, "not known")


@term("seconds", label="Time that one more request adds")
def request_balance_seconds(
    output_token_flop: Any, engine_peak: Any, one_tflops: Any, live_request_held: Any, card_bandwidth: Any,
    bandwidth_unknown: Any,
) -> Any:  # fmt: skip
    """What a further request adds to computing beyond what it adds to reading; below 0 reading always decides."""
    compute = output_token_flop / when(engine_peak > 0, engine_peak, one_tflops)
    return compute - live_request_held / when(card_bandwidth > 0, card_bandwidth, bandwidth_unknown)


@term("count", label="Requests from which computing decides")
def compute_bound_batch(
    peaks_known: Any, request_balance_seconds: Any, prompt_read_seconds: Any, least_seconds: Any
) -> Any:
    """Requests of one engine at which a step moves from bandwidth to compute; "never" where caches outweigh it.

    "not known" without the card's peaks.
    """
    batch = prompt_read_seconds / maximum(least_seconds, request_balance_seconds)
    return either(peaks_known > 0, either(request_balance_seconds > 0, batch, "never"), "not known")

"""How fast the cards work: what share of their peak a run reaches, or what was measured."""

from typing import Any

from ..formula.declare import Constant, Input, Number, check, term
from ..formula.primitives import equal, given, maximum, minimum, when

_SHARE = "reached shares: measured on one kind of card, assumed for the others"
BUBBLE = "Narayanan et al. 2021, Efficient large-scale language model training on GPU clusters using Megatron-LM"
one_tflops = Constant(1e12, "FLOP per second", "One TFLOP/s", "definition", "definition")
own_peak_tflops = Input(
    "count",
    Number(0.001, 1_000_000),
    None,
    "Own peak",
    "TFLOP/s of one card in the compute precision, dense; empty: the card's own, as on GPUs.",
    follows_job=False,
    optional=True,
)
own_mfu_low = Input(
    "share",
    Number(0.001, 1),
    None,
    "Own share, low",
    "Share of the peak that cards of a slow run reach at work (MFU); empty: the preset, no more than is expected.",
    follows_job=False,
    optional=True,
)
own_mfu_expected = Input(
    "share",
    Number(0.001, 1),
    None,
    "Own share, expected",
    "Share of the peak that cards are expected to reach at work (MFU), the bubble apart; empty: the preset.",
    follows_job=False,
    optional=True,
)
own_mfu_high = Input(
    "share",
    Number(0.001, 1),
    None,
    "Own share, high",
    "Share of the peak that cards of a fast run reach at work (MFU); empty: the preset, no less than is expected.",
    follows_job=False,
    optional=True,
)
measured_tokens_per_second = Input(
    "tokens per second",
    Number(0.001, 1e12),
    None,
    "Measured speed",
    "Of all cards together, padding included, from a trial run: in place of the shares, the bubble and the traffic.",
    follows_job=False,
    optional=True,
)


@term("count", source="GPUs sheet: dense, in the compute precision", label="Listed peak")
def listed_peak_tflops(compute_precisions: Any, precision_row: Any, gpus: Any, gpu_row: Any) -> Any:
    """Peak of one card in the compute precision, in TFLOP/s, as listed; 0 where it is not known."""
    in_16_bit = compute_precisions.half_type[precision_row] > 0
    return when(in_16_bit, gpus.bf16_dense_tflops[gpu_row], gpus.fp32_tflops[gpu_row])


@term("count", label="Peak of a card")
def card_peak_tflops(own_peak_tflops: Any, listed_peak_tflops: Any) -> Any:
    """Peak of one card in the compute precision, in TFLOP/s; 0 where it is not known."""
    return given(own_peak_tflops, listed_peak_tflops)


@term("switch", source=_SHARE)
def speed_measured(gpus: Any, gpu_row: Any, reached_shares: Any, method_row_of_speed: Any) -> Any:
    """1 when runs of this method were measured on cards of this architecture."""
    return when(equal(gpus.architecture[gpu_row], reached_shares.architecture[method_row_of_speed]), 1, 0)


@term("share")
def several_cards_share(reached_shares: Any, method_row_of_speed: Any, gpu_count: Any) -> Any:
    """What several cards keep of the share that one reaches: they wait for each other."""
    return when(gpu_count > 1, reached_shares.kept_by_several[method_row_of_speed], 1)


@term("share", source=_SHARE, label="Preset share, low")
def preset_mfu_low(reached_shares: Any, method_row_of_speed: Any, speed_measured: Any, several_cards_share: Any) -> Any:
    """Share of the peak that a slow run reaches."""
    row = method_row_of_speed
    return several_cards_share * when(speed_measured > 0, reached_shares.low[row], reached_shares.assumed_low[row])


@term("share", source=_SHARE, label="Preset share, expected")
def preset_mfu_expected(
    reached_shares: Any, method_row_of_speed: Any, speed_measured: Any, several_cards_share: Any
) -> Any:
    """Share of the peak that a run is expected to reach."""
    row = method_row_of_speed
    return several_cards_share * when(speed_measured > 0, reached_shares.expected[row], reached_shares.assumed[row])


@term("share", source=_SHARE, label="Preset share, high")
def preset_mfu_high(
    reached_shares: Any, method_row_of_speed: Any, speed_measured: Any, several_cards_share: Any
) -> Any:
    """Share of the peak that a fast run reaches."""
    row = method_row_of_speed
    return several_cards_share * when(speed_measured > 0, reached_shares.high[row], reached_shares.assumed_high[row])


@term("share", label="Share while at work, expected")
def working_mfu_expected(own_mfu_expected: Any, preset_mfu_expected: Any) -> Any:
    """Share of the peak that cards are expected to reach while they work, the bubble of a pipeline apart."""
    return given(own_mfu_expected, preset_mfu_expected)


@term("share", label="Share while at work, low")
def working_mfu_low(own_mfu_low: Any, preset_mfu_low: Any, working_mfu_expected: Any) -> Any:
    """The same at worst: as entered, else the preset where that is below what is expected."""
    return given(own_mfu_low, minimum(preset_mfu_low, working_mfu_expected))


@term("share", label="Share while at work, high")
def working_mfu_high(own_mfu_high: Any, preset_mfu_high: Any, working_mfu_expected: Any) -> Any:
    """The same at best: as entered, else the preset where that is above what is expected."""
    return given(own_mfu_high, maximum(preset_mfu_high, working_mfu_expected))


@check(
    "own_mfu_low is {working_mfu_low:.3f}, own_mfu_expected {working_mfu_expected:.3f} and own_mfu_high"
    " {working_mfu_high:.3f}, the preset where none is entered; low must not be above expected, nor expected above high"
)
@term("switch")
def shares_in_order(working_mfu_low: Any, working_mfu_expected: Any, working_mfu_high: Any) -> Any:
    """1 when the low share is not above the expected one, nor that above the high one."""
    out_of_order = (working_mfu_low > working_mfu_expected) | (working_mfu_expected > working_mfu_high)
    return when(out_of_order, 0, 1)


@term("share", source=BUBBLE)
def pipeline_work_share(pipeline_bubble: Any) -> Any:
    """What a pipeline keeps of the share that its cards reach: 1 where there is none."""
    return 1 / (1 + pipeline_bubble)


@term("share", label="Share of the peak, low")
def mfu_low(working_mfu_low: Any, pipeline_work_share: Any) -> Any:
    """Share of the peak reached at worst (MFU with what checkpointing repeats), the bubble counted."""
    return working_mfu_low * pipeline_work_share


@term("share", label="Share of the peak, expected")
def mfu_expected(working_mfu_expected: Any, pipeline_work_share: Any) -> Any:
    """Share of the peak reached as expected (MFU with what checkpointing repeats), the bubble counted."""
    return working_mfu_expected * pipeline_work_share


@term("share", label="Share of the peak, high")
def mfu_high(working_mfu_high: Any, pipeline_work_share: Any) -> Any:
    """Share of the peak reached at best (MFU with what checkpointing repeats), the bubble counted."""
    return working_mfu_high * pipeline_work_share


@term("tokens per second")
def peak_tokens_per_second(gpu_count: Any, card_peak_tflops: Any, one_tflops: Any, token_flop: Any) -> Any:
    """Tokens a second of all cards at their peak, which no run reaches; 0 where the peak is not known."""
    return gpu_count * card_peak_tflops * one_tflops / token_flop


@term("tokens per second", label="Computed a second, slow")
def slow_computed_per_second(measured_tokens_per_second: Any, peak_tokens_per_second: Any, mfu_low: Any) -> Any:
    """Tokens a second that all cards compute at the low share, or as measured."""
    return given(measured_tokens_per_second, peak_tokens_per_second * mfu_low)


@term("tokens per second", label="Computed a second, expected")
def computed_per_second(measured_tokens_per_second: Any, peak_tokens_per_second: Any, mfu_expected: Any) -> Any:
    """Tokens a second that all cards compute at the expected share, or as measured."""
    return given(measured_tokens_per_second, peak_tokens_per_second * mfu_expected)


@term("tokens per second", label="Computed a second, fast")
def fast_computed_per_second(measured_tokens_per_second: Any, peak_tokens_per_second: Any, mfu_high: Any) -> Any:
    """Tokens a second that all cards compute at the high share, or as measured."""
    return given(measured_tokens_per_second, peak_tokens_per_second * mfu_high)


@term("switch")
def speed_known(computed_per_second: Any) -> Any:
    """0 when neither the card's peak nor a measured speed is known: then nothing is said of time and cost."""
    return when(computed_per_second > 0, 1, 0)

"""One job at a time: what is accepted, what is refused and how, and that the fast engine is the reference."""

from __future__ import annotations

import math
import random
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from strategies import jobs, random_inputs

from sizing_xlsx.formula import engine
from sizing_xlsx.formula.declare import Choice, Number, Whole
from sizing_xlsx.formula.domains import date_of
from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import job, plain_job
from sizing_xlsx.presets.catalogue import load_presets

LORA, TRAINING = job("lora"), job("training")
BOTH = [LORA, TRAINING]
BOTH_NAMES = ["lora", "training"]  # the machinery is the same for all; what full fine-tuning refuses: test_full.py


def refused(sizing: Job, **inputs: Any) -> str:
    """The message of the ValueError; it is one sentence that starts with the argument and its value."""
    with pytest.raises(ValueError) as caught:
        sizing.size(**inputs)
    message = str(caught.value)
    assert "\n" not in message
    assert not re.search(r"nan|None|Traceback|\{|\}", message.replace("is nan", "").replace("is None", "")), message
    return message


# ---------------------------------------------------------------------- whole numbers
BAD_WHOLE = [
    0,
    -1,
    2.5,
    "8",
    "eight",
    "",
    True,
    False,
    math.nan,
    math.inf,
    -math.inf,
    None,
    [8],
    (8,),
    1j,
    b"8",
]


@pytest.mark.parametrize("value", BAD_WHOLE, ids=repr)
@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_a_batch_size_must_be_a_whole_number_above_zero(sizing: Job, value: Any) -> None:
    message = refused(sizing, batch_size=value)
    assert message == f"batch_size is {value!r}; it must be a whole number from 1 to 65,536"


@pytest.mark.parametrize("value", [np.True_, np.array([8]), np.array([8, 16]), np.nan, np.float64(2.5)], ids=repr)
def test_numpy_values_that_are_no_whole_number(value: Any) -> None:
    assert refused(LORA, batch_size=value).endswith("; it must be a whole number from 1 to 65,536")


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_a_value_too_long_to_write_out_is_still_named(sizing: Job) -> None:
    right = "it must be a whole number from 1 to 65,536"
    assert refused(sizing, batch_size=10**5000) == f"batch_size is an integer of thousands of digits; {right}"
    assert refused(sizing, batch_size="9" * 10**6) == f"batch_size is '{'9' * 198}…; {right}"
    with pytest.raises(ValueError, match=r"^row 1: batch_size is an integer of thousands of digits; it must be"):
        sizing.size_many({"batch_size": [1, 10**5000]}, ["peak_allocated_gb"])


@pytest.mark.parametrize("results", [3, "fit_verdict", True])
def test_results_must_be_a_list(results: Any) -> None:
    with pytest.raises(TypeError, match=rf"^results is {results!r}; it must be a list of names, such as "):
        LORA.size(results)


RIGHT_WHOLE = [
    8,
    8.0,
    np.int8(8),
    np.uint8(8),
    np.int16(8),
    np.int32(8),
    np.int64(8),
    np.uint64(8),
    np.float32(8),
    np.float64(8),
    Fraction(8),
    Decimal(8),
]


@pytest.mark.parametrize("value", RIGHT_WHOLE, ids=repr)
@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_any_number_of_that_value_gives_the_same_job(sizing: Job, value: Any) -> None:
    assert sizing.size(batch_size=value) == sizing.size(batch_size=8)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32, np.float32])
def test_narrow_numpy_numbers_do_not_overflow_or_round(kind: Any) -> None:
    """65,536 × 65,536 is more than an int32 holds; 1.2345 is not what a float32 holds."""
    wanted = LORA.size(batch_size=65_536, sequence_length=65_536)
    assert LORA.size(batch_size=kind(65_536), sequence_length=kind(65_536)) == wanted
    large = {"hidden_size_override": 999_999, "mlp_width_override": 9_999_999, "layer_count_override": 10_000}
    if kind is not np.float32:
        assert LORA.size(**{key: kind(value) for key, value in large.items()}) == LORA.size(**large)


def test_numpy_numbers_replace_a_preset_in_the_reference_too() -> None:
    inputs = LORA.accepted({"adapter_layers": np.int64(3), "hidden_size_override": np.int32(1024)})
    assert LORA.reference(inputs)["peak_allocated_gb"] == LORA.size(**inputs)["peak_allocated_gb"]


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_every_number_has_bounds_that_hold(sizing: Job) -> None:
    """Each bound itself is accepted; one step beyond it is refused, with the bound in the message."""
    for key, declared in sizing.inputs.items():
        domain = declared.domain
        if isinstance(domain, Choice):
            continue
        assert sizing.accepted({key: domain.low})[key] == domain.low
        step = 1 if isinstance(domain, Whole) else abs(domain.low) / 2 + 1e-3
        low = f"{domain.low:,}" if isinstance(domain, Whole) else f"{domain.low:,.12g}"
        if isinstance(domain, Whole) and domain.day:
            low = str(date_of(domain.low))
        kind = "date|(whole )?number"
        with pytest.raises(ValueError, match=rf"^{key} is .*; it must be a ({kind}) from {re.escape(low)} to"):
            sizing.accepted({key: domain.low - step})
        if not isinstance(domain.high, str):
            assert sizing.accepted({key: domain.high})[key] == domain.high
            with pytest.raises(ValueError, match=f"^{key} is "):
                sizing.accepted({key: domain.high + max(step, 1)})
        for value in (True, "x", math.nan, math.inf, -math.inf, [], 1j):
            with pytest.raises(ValueError, match=rf"^{key} is {re.escape(repr(value))}; it must be "):
                sizing.accepted({key: value})


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_the_extremes_of_every_input_can_be_sized(sizing: Job) -> None:
    for key, declared in sizing.inputs.items():
        domain = declared.domain
        values = sizing.choices(key) if isinstance(domain, Choice) else [domain.low, domain.high]
        for value in values:
            if isinstance(domain, Whole | Number) and isinstance(value, str):
                continue
            try:
                result = sizing.size(**{key: value})
            except ValueError as error:  # one choice alone may contradict the worked job: then a check says so
                assert key.removesuffix("_override") in str(error)
                continue
            assert all(isinstance(v, str) or math.isfinite(v) for v in result.values()), key


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_the_worked_job_is_valid_and_the_default(sizing: Job) -> None:
    defaults = sizing.defaults()
    assert sizing.accepted(defaults) == defaults
    assert sizing.size(**defaults) == sizing.size()
    assert sizing.warnings(sizing.size()) == []


# ---------------------------------------------------------------------- choices
@pytest.mark.parametrize(
    ("sizing", "key", "value", "nearest"),
    [
        (LORA, "base_model", "TinyLlama-1.1B", "TinyLlama/TinyLlama-1.1B-Chat-v1.0"),
        (LORA, "base_model", "llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        (LORA, "gpu_choice", "H100 SXM5 80GB", "NVIDIA H100 SXM5 80GB"),
        (TRAINING, "gpu_choice", "nvidia a100 sxm4 80 gb", "NVIDIA A100 SXM4 80GB"),
        (LORA, "optimizer_choice", "AdamW", "Adam"),
        (LORA, "adapter_targets", "all sevn", "All seven"),
        (TRAINING, "compute_precision", "bf16", "bf16 autocast"),
        (TRAINING, "base_model", "2.7B", "2.7B shape (2.68B)"),
        (LORA, "activation_checkpointing", "Offf", "Off"),
    ],
)
def test_an_unknown_choice_is_answered_with_the_nearest(sizing: Job, key: str, value: str, nearest: str) -> None:
    message = refused(sizing, **{key: value})
    assert message.startswith(f"{key} is {value!r}; it must be one of ")
    assert message.endswith(f"; did you mean {nearest}?")


@pytest.mark.parametrize("value", ["*", "", "zzzzzz", 7, None, math.nan, ["Adam"], b"Adam"], ids=repr)
@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_what_is_no_choice_at_all_is_refused(sizing: Job, value: Any) -> None:
    for key in ("base_model", "gpu_choice", "optimizer_choice", "compute_precision"):
        assert refused(sizing, **{key: value}).startswith(f"{key} is {value!r}; it must be one of ")


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_choices_are_matched_without_regard_to_case(sizing: Job) -> None:
    for key in sizing.inputs:
        for choice in sizing.choices(key):
            assert sizing.accepted({key: choice.upper()}) == {key: choice}
            assert sizing.accepted({key: choice.casefold()}) == {key: choice}


def test_a_switch_may_be_a_truth_value() -> None:
    assert LORA.size(activation_checkpointing=True) == LORA.size(activation_checkpointing="On")
    assert LORA.size(lora_dropout=False) == LORA.size(lora_dropout="off")
    refused(LORA, activation_checkpointing=1)
    refused(LORA, optimizer_choice=True)


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("batch", "batch_size"),
        ("sequence_lenght", "sequence_length"),
        ("gpu_choise", "gpu_choice"),
        ("optimiser_choice", "optimizer_choice"),
    ],
)
def test_an_unknown_argument_is_a_type_error_that_names_the_nearest(sizing: Job, key: str, nearest: str) -> None:
    with pytest.raises(TypeError, match=f"^{key} is no input of {sizing.name}; did you mean {nearest}\\?$"):
        sizing.size(**{key: 1})


def test_an_argument_like_none_at_all_is_named_without_a_proposal() -> None:
    with pytest.raises(TypeError, match=r"^zzz is no input of lora$"):
        LORA.size(zzz=1)


# ---------------------------------------------------------------------- jobs that contradict themselves
def test_more_adapter_layers_than_the_model_has() -> None:
    message = refused(LORA, adapter_layers=23)
    assert message == 'adapter_layers is 23; the model has 22 layers: enter 1 to 22 or "all"'
    assert refused(LORA, adapter_layers=5, layer_count_override=4).startswith(
        "adapter_layers is 5; the model has 4 layers"
    )
    assert LORA.size(adapter_layers=22)["peak_allocated_gb"] == LORA.size()["peak_allocated_gb"]
    assert LORA.size(adapter_layers="ALL") == LORA.size()
    for value in (0, -1, 2.5, "some", True, None, math.nan):
        assert refused(LORA, adapter_layers=value) == (
            f'adapter_layers is {value!r}; it must be a whole number from 1 to the layer count or "all"'
        )


def test_a_rank_of_zero() -> None:
    assert refused(LORA, lora_rank=0) == "lora_rank is 0; it must be a whole number from 1 to 8,192"


def test_all_targets_off() -> None:
    off = {f"target_{slot}": "Off" for slot in ("query", "key", "value", "output", "gate", "up", "down")}
    message = refused(LORA, adapter_targets="Own choice", **off)
    assert message == (
        "adapter_targets is 'Own choice', which reaches no module of TinyLlama/TinyLlama-1.1B-Chat-v1.0; choose another"
        " set, or Own choice with at least one target On"
    )
    assert LORA.size(**off) == LORA.size()  # a named set does not look at them
    own = LORA.size(adapter_targets="Own choice", **(off | {"target_query": "On", "target_value": "On"}))
    assert own["peak_allocated_gb"] == LORA.size(adapter_targets="Query and value")["peak_allocated_gb"]


def test_heads_that_do_not_divide() -> None:
    message = refused(LORA, kv_heads_override=5)
    assert message == "attention_heads is 32; it must be a multiple of kv_heads, which is 5"
    message = refused(TRAINING, attention_heads_override=7)
    assert message == "attention_heads is 7; it must divide hidden_size, which is 2048"


def test_bf16_storage_is_computed_in_bf16() -> None:
    for precision in ("fp32", "fp16 autocast"):
        message = refused(TRAINING, parameter_storage="bf16", compute_precision=precision)
        assert message.startswith("parameter_storage is 'bf16' with compute_precision ")
        assert message.endswith(": choose bf16 autocast")
    assert TRAINING.size(parameter_storage="bf16")["stored_weights"] == 2 * TRAINING.size()["parameter_count"]


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_a_card_without_a_known_capacity(sizing: Job) -> None:
    gpus = sizing.tables["gpus"]
    unknown = [key for key in gpus if not gpus.usable_bytes[gpus.row_of(key)]]
    assert unknown
    for card in unknown:
        message = refused(sizing, gpu_choice=card.upper())
        assert message.endswith("its usable capacity is not known: enter gpu_capacity_override_gb in GB")
        assert "gpu_choice is " in message
        assert sizing.size(gpu_choice=card, gpu_capacity_override_gb=100)["gpu_usable_capacity_gb"] == 100


def test_a_sequence_beyond_the_model_is_a_warning() -> None:
    result = LORA.size(sequence_length=4096)
    assert LORA.warnings(result, sequence_length=4096) == [
        "sequence_length is 4096; TinyLlama/TinyLlama-1.1B-Chat-v1.0 was made for at most 2048 tokens"
    ]
    assert LORA.warnings(LORA.size(sequence_length=2048), sequence_length=2048) == []


def test_a_row_beyond_a_window_is_a_warning_where_its_masks_are_not_known() -> None:
    long = {"base_model": "mistralai/Mistral-7B-v0.1", "sequence_length": 4096}
    older = long | {"training_stack": "HF Trainer, transformers 4.48"}
    for inputs, warned in (
        (long, False),
        (older, True),
        (older | {"sequence_length": 4095}, False),
        (older | {"attention_implementation": "FlashAttention 2"}, False),
        (older | {"base_model": "mistralai/Mistral-7B-v0.3"}, False),
    ):
        found = [w for w in LORA.warnings(LORA.size(**inputs), **inputs) if "4096-token window" in w]
        assert bool(found) == warned, inputs


# ---------------------------------------------------------------------- what the parts mean
def test_the_verdict_has_three_states_and_the_published_one_two() -> None:
    peak, total = LORA.size()["traced_peak_allocated_gb"], LORA.size()["traced_total_reserved_gb"]
    for capacity, verdict in (
        (total + 0.81, "fits"),
        ((peak + total) / 2 + 0.8, "tight"),
        (peak + 0.79, "does not fit"),
    ):
        assert LORA.size(gpu_capacity_override_gb=capacity)["fit_verdict"] == verdict
    published = LORA.size()["published_total_reserved_gb"]
    for capacity, verdict in ((published + 0.001, "fits"), (published - 0.001, "does not fit")):
        result = LORA.size(gpu_capacity_override_gb=capacity, verdict_basis="Published")
        assert result["fit_verdict"] == verdict
    with_others = LORA.size(gpu_capacity_override_gb=total + 0.81, other_tenants_gb=0.02)
    assert with_others["fit_verdict"] == "tight"


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_an_option_that_was_not_traced_falls_back_on_published(sizing: Job) -> None:
    for options in (
        {"optimizer_choice": "SGD"},
        {"optimizer_choice": "SGD with momentum"},
        {"attention_implementation": "Eager, scores stored"},
    ):
        result = sizing.size(**options)
        assert result["rests_on_traced"] == 0
        assert result["traced_peak_allocated_gb"] == result["traced_total_reserved_gb"] == "not traced"
        assert result["peak_allocated_gb"] == result["published_peak_allocated_gb"]
        assert result["total_reserved_gb"] == result["published_total_reserved_gb"]


GROWS = [
    "batch_size",
    "sequence_length",
    "lora_rank",
    "adapter_layers",
    "gradient_accumulation",
    "hidden_size_override",
    "mlp_width_override",
    "vocabulary_size_override",
    "base_parameter_count_override",
    "parameter_count_override",
    "matrix_workspace_bytes_override",
]


WIDENS = ("lora_rank", "hidden_size_override", "mlp_width_override")


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_more_work_never_takes_less_memory(sizing: Job) -> None:
    rng = random.Random(23)
    for _ in range(150):
        inputs = random_inputs(sizing, rng)
        before = sizing.size(**inputs)
        for key in GROWS:
            value = inputs.get(key)
            if (
                not isinstance(value, int | float)
                or value < 1
                or (key == "hidden_size_override" and sizing is TRAINING)
            ):
                continue
            if key == "adapter_layers" and value >= before["layer_count"]:
                continue
            if key in ("mlp_width_override", "hidden_size_override") and inputs.get("base_parameter_count_override"):
                continue  # of a fixed count, wider layers are a larger part that a quantised format shrinks
            if sizing is LORA and key in ("vocabulary_size_override", *WIDENS) and before["stack_fused_loss"]:
                continue  # a fused loss cuts a wider vocabulary into more pieces, and a wider model into fewer
            if inputs["optimizer_choice"] == "8-bit Adam" and key in WIDENS:
                continue  # a matrix that outgrows 4,096 parameters has moments of one byte in place of four
            more = value + 1
            domain = sizing.inputs[key].domain
            if isinstance(domain, Whole) and isinstance(domain.high, int) and more > domain.high:
                continue
            if sizing is LORA and not sizing.reference(inputs | {key: more})["positions_suffice"]:
                continue  # a table of learned positions ends there
            after = sizing.size(**(inputs | {key: more}))
            for result in (
                "published_allocated",
                "traced_allocated",
                "published_reserved",
                "traced_reserved",
            ):
                tolerance = 1e-12 * before[result]
                assert after[result] >= before[result] - tolerance, (key, value, result, inputs)


@pytest.mark.parametrize("count", [1_000_000, 500_000_000, 1_100_048_384, 70_000_000_000])
def test_a_quantised_base_weighs_no_less_than_its_format_says(count: int) -> None:
    """Whatever count was entered: between all converted and nothing converted."""
    for form, lowest in (
        ("nf4 / fp4, block 64, no double quant", 0.5625),
        ("int8 LLM.int8 (bitsandbytes)", 1),
    ):
        result = LORA.size(base_parameter_count_override=count, base_storage_format=form)
        assert lowest * count <= result["frozen_base_weights"] <= 2 * count + 2e6  # LLM.int8: its scales


# ---------------------------------------------------------------------- the fast engine is the reference
@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_compiled_equals_reference_exactly(sizing: Job) -> None:
    rng = random.Random(17)
    every = tuple(sizing.order)
    for _ in range(300):
        inputs = random_inputs(sizing, rng)
        reference = sizing.reference(inputs)
        compiled = dict(zip(every, sizing.scalar(every)(**inputs), strict=True))
        assert compiled == {key: reference[key] for key in every}, inputs
        assert sizing.size(every, **inputs) == compiled


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_what_is_remembered_of_one_job_is_right_for_the_next(sizing: Job) -> None:
    """Series of jobs that differ in a number, an entry or a choice, each met again; 64 and 64.0 stay apart."""
    rng = random.Random(23)
    every = tuple(sizing.order)
    settings = [random_inputs(sizing, rng) for _ in range(4)]
    for _ in range(60):
        inputs = rng.choice(settings) | {"batch_size": rng.randint(1, 64)}
        inputs |= {"gpu_capacity_override_gb": rng.choice((64, 64.0, 80))} if rng.random() < 0.5 else {}
        found, wanted = sizing.size(every, **inputs), sizing.reference(inputs)
        assert repr(found) == repr({key: wanted[key] for key in every})
        found.clear()  # the caller's own
    assert sizing.size(every, **inputs) == {key: wanted[key] for key in every}


def test_only_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_REMEMBERED", 3)
    sizing = plain_job("training", load_presets())
    for _ in range(2):
        for card in sizing.choices("gpu_choice")[:8]:
            assert sizing.size(("gpu_usable_capacity_gb",), gpu_choice=card) == {
                "gpu_usable_capacity_gb": sizing.reference({"gpu_choice": card})["gpu_usable_capacity_gb"]
            }


@settings(max_examples=60, deadline=None, derandomize=True)
@for_all(st.data())
def test_any_valid_job_is_finite_and_never_below_its_static_part(data: st.DataObject) -> None:
    for sizing in BOTH:
        result = sizing.size(**data.draw(jobs(sizing)))
        for key, value in result.items():
            assert isinstance(value, str) or math.isfinite(value), key
        assert result["published_allocated"] >= result["published_static"] > 0
        assert result["traced_allocated"] >= result["resident_memory"] > 0
        assert result["traced_reserved"] >= result["traced_allocated"]
        assert result["published_reserved"] >= result["published_allocated"]
        assert result["fit_verdict"] in ("fits", "tight", "does not fit")


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_a_caller_who_names_results_gets_only_those(sizing: Job) -> None:
    results = ("fit_verdict", "peak_allocated_gb")
    assert sizing.scalar(results)() == tuple(sizing.size()[key] for key in results)
    assert set(sizing.needed(("effective_batch_size",))) == {"effective_batch_size"}


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_depends_on_is_true_of_what_changes(sizing: Job) -> None:
    rng = random.Random(29)
    for _ in range(60):
        one, two = random_inputs(sizing, rng), random_inputs(sizing, rng)
        key = rng.choice(list(sizing.inputs))
        before, after = sizing.reference(one), sizing.reference(one | {key: two[key]})
        changed = {name for name in sizing.order if before[name] != after[name]}
        assert changed <= sizing.depends_on([key])


# Inputs that no result of memory rests on, and why they are there.
INFORMATION = {"average_sequence_length": "shown beside the longest; the verdict must not use it"}


@pytest.mark.parametrize("sizing", BOTH, ids=BOTH_NAMES)
def test_every_input_reaches_a_result(sizing: Job) -> None:
    results = {"peak_allocated_gb", "total_reserved_gb", "headroom_gb", "fit_verdict"}
    beside = {
        "run_hours_slow",
        "run_hours_fast",
        "run_hours",
        "supervised_tokens",
        "own_cost",
        "budget_cost",
        "traffic_hours",
        "month_at_floor",
    }
    rules = {"run_in_time", "own_price_dated", *(f"{stage}_gb" for stage in ("correctness", "feasibility", "quality"))}
    for key in sizing.inputs:
        reached = sizing.depends_on([key])
        assert bool(reached & results) == (key not in INFORMATION and key not in sizing.beside), key
        assert key not in sizing.beside or reached & (beside | rules), key


@pytest.mark.parametrize(("typed", "told"), [
    ({"base_model": "llama 3 8b"}, "did you mean meta-llama/Meta-Llama-3-8B?"),
    ({"base_model": "Llama-3-8B"}, "did you mean meta-llama/Meta-Llama-3-8B?"),
    ({"base_model": "llama3.1 8b"}, "did you mean meta-llama/Llama-3.1-8B?"),
    ({"base_model": "qwen 2.5 7b"}, "did you mean Qwen/Qwen2.5-7B?"),
    ({"gpu_choice": "a100-80gb"}, "did you mean NVIDIA A100 PCIe 80GB or NVIDIA A100 SXM4 80GB?"),
    ({"gpu_choice": "a100 40gb"}, "did you mean NVIDIA A100 PCIe 40GB, NVIDIA A100 SXM4 40GB or "),
    ({"gpu_choice": "RTX4090"}, "did you mean NVIDIA GeForce RTX 4090?"),
    ({"gpu_choice": "H100"}, " or NVIDIA H100 SXM5 80GB?"),
    ({"optimizer_choice": "adam 8bit"}, "did you mean 8-bit Adam?"),
])  # fmt: skip
def test_a_choice_by_its_usual_name_is_recognised(typed: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match="it must be") as refused:
        LORA.size(**typed)
    assert told in str(refused.value)


def test_choices_of_what_is_no_input_is_refused_in_a_sentence() -> None:
    for asked, told in (
        ("nope", "^nope is no input of lora"),
        ("gpu", "did you mean gpu_"),
        (3, "^3 is no input of lora"),
    ):
        with pytest.raises(TypeError, match=told):
            LORA.choices(asked)  # type: ignore[arg-type]
    assert "Adam" in LORA.choices("optimizer_choice") and LORA.choices("batch_size") == ()


def test_messages_show_whole_numbers_whole_and_one_thing_as_one() -> None:
    with pytest.raises(ValueError, match="with 2 cards for each copy"):
        job("full").size(gpu_count=2.0, sharding_stage="None")
    assert type(LORA.accepted({"gpu_count": 2.0})["gpu_count"]) is int
    for first, said in (("2026-08-16", "1 day before"), ("2026-08-15", "2 days before")):
        with pytest.raises(ValueError, match=f"deadline_date is {first}, {said} today_date 2026-08-17"):
            LORA.size(today_date="2026-08-17", deadline_date=first)
    with pytest.raises(ValueError, match="the model has 1 layer: enter 1 to 1"):
        LORA.size(layer_count_override=1, adapter_layers=2)

"""Serving: what engines logged of themselves, what must hold of any job, bounds, cost, and what is refused."""

from __future__ import annotations

import json
from math import ceil, factorial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sizing_xlsx
from sizing_xlsx import planning
from sizing_xlsx.cli import main
from sizing_xlsx.formula.job import Job
from sizing_xlsx.formula.table import Table
from sizing_xlsx.jobs import JOBS, WORKBOOKS, job, plain_job
from sizing_xlsx.presets.catalogue import SERVING_INPUTS, load_presets
from sizing_xlsx.serving_report import report

SERVING: Job = job("serving")
GIB = 2**30
LLAMA, FP8 = "meta-llama/Llama-3.1-8B", "fp8 e4m3 per-tensor"
ONE_CLASS = {"short_share": 0, "usual_share": 1, "long_share": 0}
RUNS = {row["id"]: row for row in load_presets().serving_runs}
SMALL_POOL = "gpt-oss-120b"  # 3.33 GiB beside 64 of weights: 0.29% of these is 5% of it
OLDER = ("llama-3.1-405b-fp8", "r1-distill-qwen-14b")  # parts of a model, as older versions measured them


def size(*results: str, **inputs: Any) -> dict[str, Any]:
    return SERVING.size(results, **inputs)


def of_run(row: dict[str, Any], *results: str) -> dict[str, Any]:
    inputs = {key: row[key] for key in SERVING_INPUTS if row[key] not in (None, "")}
    short = {"usual_prompt_tokens": 500, "usual_output_tokens": 100, **ONE_CLASS}
    return size(*results, concurrent_users=1, **inputs, **short)


def test_the_job_is_there_and_has_a_workbook_but_no_rows_among_other_jobs() -> None:
    assert sizing_xlsx.serving is SERVING
    assert "serving" in WORKBOOKS
    assert "serving" not in JOBS


# ------------------------------------------------------------------------------------------------ measured
@pytest.mark.parametrize("name", RUNS)
def test_kv_bytes_are_exact_and_weights_as_logged(name: str) -> None:
    row = RUNS[name]
    found = of_run(row, "weights_held", "kv_bytes_per_token_per_gpu")
    if row["weights_gib"]:
        assert found["weights_held"] / GIB == pytest.approx(row["weights_gib"], rel=0.012 if name in OLDER else 0.003)
    if row["kv_bytes_per_token"]:
        assert found["kv_bytes_per_token_per_gpu"] == row["kv_bytes_per_token"]


@pytest.mark.parametrize("name", [name for name, row in RUNS.items() if row["explained"]])
def test_pools_and_steps_are_as_logged(name: str) -> None:
    row = RUNS[name]
    found = of_run(row, "kv_pool", "kv_pool_tokens", "step_activation_gb")
    near = 0.051 if name == SMALL_POOL else 0.008
    for logged, value in (
        (row["kv_pool_gib"], found["kv_pool"] / GIB),
        (row["kv_pool_tokens"], found["kv_pool_tokens"]),
        (row["step_activation_gib"], found["step_activation_gb"] * 1e9 / GIB),
    ):
        assert not logged or value == pytest.approx(logged, rel=near)


def test_what_is_not_explained_stays_in_the_list() -> None:
    off = {
        name: of_run(row, "kv_pool")["kv_pool"] / GIB / row["kv_pool_gib"] - 1
        for name, row in RUNS.items()
        if not row["explained"]
    }
    assert off == pytest.approx({"mistral-small-3.2": -0.097, "qwen3-235b-fp8": 0.232}, abs=0.001)


def test_an_own_figure_of_the_step_explains_the_pool() -> None:
    row = RUNS["mistral-small-3.2"]
    inputs = {key: row[key] for key in SERVING_INPUTS if row[key] not in (None, "")}
    logged = row["step_activation_gib"] * GIB / 1e9
    found = size("kv_pool_tokens", own_activation_gb=logged, concurrent_users=1, **inputs, **ONE_CLASS)
    assert found["kv_pool_tokens"] == pytest.approx(row["kv_pool_tokens"], rel=0.003)


def test_an_engine_that_was_refused_does_not_fit() -> None:
    refused = [row for row in RUNS.values() if row["refused"]]
    assert refused
    assert {of_run(row, "fit_verdict")["fit_verdict"] for row in refused} == {"does not fit"}
    shorter = of_run({**refused[0], "maximum_length": 16_000}, "fit_verdict")
    assert shorter["fit_verdict"] == "fits"


def test_concurrency_is_as_vllm_prints_it() -> None:
    found = of_run(RUNS["llama-3.1-8b-20000"], "maximum_concurrency")
    assert found["maximum_concurrency"] == pytest.approx(1.56, rel=0.015)


# ------------------------------------------------------------------------------------------------ weights
def test_mixtral_keeps_all_experts_and_computes_with_two() -> None:
    found = size(
        "model_weights_gb", "active_parameters", "multiplied_parameters", base_model="mistralai/Mixtral-8x7B-v0.1"
    )
    assert found["model_weights_gb"] == pytest.approx(93.4, abs=0.05)
    assert found["active_parameters"] == 12_879_925_248
    assert found["active_parameters"] - found["multiplied_parameters"] == 2 * 32_000 * 4096


def test_formats_leave_embeddings_and_head_in_16_bit() -> None:
    found = size(
        "model_weights", "base_parameter_count", "embedding_parameters", base_model=LLAMA, base_storage_format=FP8
    )
    norms = (2 * 32 + 1) * 4096
    assert found["model_weights"] == found["base_parameter_count"] + 2 * found["embedding_parameters"] + norms


def test_attention_may_stay_in_16_bit() -> None:
    stored = {"base_model": LLAMA, "base_storage_format": FP8}
    off, on = (
        size("model_weights", "all_attention_parameters", attention_in_16_bit=word, **stored) for word in ("Off", "On")
    )
    assert on["model_weights"] - off["model_weights"] == on["all_attention_parameters"]


def test_engines_keep_a_table_of_positions() -> None:
    held = [size("weights_held", serving_engine=engine)["weights_held"] for engine in ("vLLM 0.11", "transformers")]
    assert held[0] - held[1] == 131_072 * 128 * 2
    assert size("rope_table", base_model="openai-community/gpt2", maximum_length=1024, usual_prompt_tokens=9,
                usual_output_tokens=9, **ONE_CLASS)["rope_table"] == 0  # fmt: skip


def test_a_quantised_head_unties() -> None:
    gemma = {"base_model": "google/gemma-2-2b", "base_storage_format": "AWQ int4 g128 (GEMM)"}
    off, on = (size("model_weights", "embedding_parameters", quantised_head=word, **gemma) for word in ("Off", "On"))
    assert on["model_weights"] - off["model_weights"] == on["embedding_parameters"] * 0.51953125


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-70B", "Qwen/Qwen3-235B-A22B", "deepseek-ai/DeepSeek-V3"])
def test_cards_together_hold_every_weight(model: str) -> None:
    whole = size("model_weights", base_model=model)["model_weights"]
    for tensor in (1, 2, 8):
        held = size("weights_held", base_model=model, tensor_parallel=tensor)["weights_held"]
        assert whole <= held * tensor * (1 + 1e-12) <= 1.1 * whole


def test_experts_are_divided_among_the_cards_of_copies() -> None:
    one = {"base_model": "Qwen/Qwen3-235B-A22B", "data_parallel": 8}
    alone, shared = (size("weights_held", "expert_weights", expert_parallel=cards, **one) for cards in (1, 8))
    assert alone["weights_held"] - shared["weights_held"] == pytest.approx(alone["expert_weights"] * 7 / 8)


def test_kv_heads_are_repeated_where_there_are_fewer_than_cards() -> None:
    results = ("kv_copies", "kv_heads_held", "kv_bytes_per_token_per_gpu", "repeated_kv_weights")
    eight, sixteen = (size(*results, base_model=LLAMA, tensor_parallel=cards) for cards in (8, 16))
    assert (eight["kv_copies"], sixteen["kv_copies"]) == (1, 2)
    assert eight["kv_bytes_per_token_per_gpu"] == sixteen["kv_bytes_per_token_per_gpu"] == 131_072 / 8
    assert eight["repeated_kv_weights"] == 0
    assert sixteen["repeated_kv_weights"] == 32 * 2 * 4096 * 1024 * 2 / 16
    latent = size("kv_copies", base_model="deepseek-ai/DeepSeek-V3", tensor_parallel=8)
    assert latent["kv_copies"] == 8


def test_pipeline_stages_hold_their_layers() -> None:
    whole, half = (size("kv_bytes_per_token_per_gpu", pipeline_parallel=stages) for stages in (1, 2))
    assert half["kv_bytes_per_token_per_gpu"] == whole["kv_bytes_per_token_per_gpu"] / 2


# ------------------------------------------------------------------------------------------------ engines and cards
COLUMNS = [("engines", column) for column, unit in SERVING.tables["engines"].units.items() if unit != "text"]
COLUMNS += [("kv_formats", column) for column in SERVING.tables["kv_formats"].units]
COLUMNS += [("gpus", "fp8_dense_tflops"), ("gpus", "bandwidth_gb_per_s"), ("serving_precisions", "fp8")]


def figures(sized: Job, engine: str) -> list[Any]:
    results = ("kv_pool_tokens", "percentile_request_held", "step_activation_gb", "weights_gb", "concurrency_at_mean",
               "kv_format_offered", "output_token_seconds", "first_token_seconds", "graphs_gb")  # fmt: skip
    jobs = (
        {"base_model": "google/gemma-2-9b", "kv_format": "fp8", "serving_precision": "fp8"},
        {"base_model": "Qwen/Qwen2.5-0.5B", "kv_format": "int8", "gpu_choice": "NVIDIA A100 SXM4 80GB"},
        {"base_model": "openai/gpt-oss-20b", "base_storage_format": "mxfp4 block 32, E8M0 scale", "tensor_parallel": 2},
        {"base_model": "Qwen/Qwen2.5-0.5B", "gpu_choice": "NVIDIA L4", "maximum_length": 32_768},
    )
    return [sized.reference(sized.accepted({"serving_engine": engine, **one}), results) for one in jobs]


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_every_column_counts(table: str, column: str) -> None:
    presets = load_presets()
    old = presets.tables[table]
    flags = set(old.columns[column]) <= {0, 1}
    values = [1 - value if flags else 2 * value for value in old.columns[column]]
    changed = Table(table, old.keys, {**old.columns, column: values}, old.units)
    options = {**presets.options, table: changed}
    sized = plain_job(
        "serving", presets._replace(**{table: changed} if table in presets._fields else {"options": options})
    )
    engines = SERVING.choices("serving_engine")
    assert [figures(sized, engine) for engine in engines] != [figures(SERVING, engine) for engine in engines]


# ------------------------------------------------------------------------------------------------ any job
@st.composite
def jobs(draw: Any) -> dict[str, Any]:
    lengths = sorted(draw(st.lists(st.integers(1, 300), min_size=6, max_size=6)))
    return {
        "base_model": draw(st.sampled_from(SERVING.choices("base_model"))),
        "base_storage_format": draw(st.sampled_from(SERVING.choices("base_storage_format"))),
        "gpu_choice": draw(st.sampled_from(["NVIDIA L4", "NVIDIA H100 SXM5 80GB", "NVIDIA B200", "NVIDIA A10"])),
        "serving_engine": draw(st.sampled_from(SERVING.choices("serving_engine"))),
        "maximum_length": draw(st.integers(600, 1024)),
        "concurrent_users": draw(st.integers(1, 500)),
        "data_parallel": draw(st.integers(1, 4)),
        "other_tenants_gb": draw(st.sampled_from([0, 3])),
        "length_percentile": draw(st.floats(0, 1)),
        "request_rate": draw(st.floats(0.001, 100)),
        "short_prompt_tokens": lengths[0], "short_output_tokens": lengths[1], "usual_prompt_tokens": lengths[2],
        "usual_output_tokens": lengths[3], "long_prompt_tokens": lengths[4], "long_output_tokens": lengths[5],
    }  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(jobs())
def test_what_holds_of_any_job(inputs: dict[str, Any]) -> None:
    found = SERVING.size(SERVING.plain_terms, **inputs)
    again = SERVING.reference(SERVING.accepted(inputs))
    for key, value in found.items():
        assert again[key] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12)), key
    assert found["kv_batch_needed_gb"] <= found["kv_batch_every_layer_gb"] * (1 + 1e-12)
    assert found["concurrency"] <= found["concurrency_at_mean"] or found["percentile_context"] < found["mean_context"]
    assert found["concurrency"] <= found["concurrency_by_need"] or inputs["serving_engine"] == "transformers"
    assert found["kv_pool_tokens"] * found["kv_bytes_per_token_per_gpu"] <= found["kv_pool"]
    assert (found["verdict_code"] == 1) <= (found["headroom_gb"] >= -1e-9)
    if found["peaks_known"]:
        assert found["first_token_bound_seconds"] <= found["first_token_seconds"]
        assert found["tokens_per_second_per_gpu_bound"] >= found["tokens_per_second_per_gpu"]


@settings(max_examples=20, deadline=None)
@given(st.lists(jobs(), min_size=3, max_size=3))
def test_many_jobs_at_once_are_as_each_alone(several: list[dict[str, Any]]) -> None:
    results = ["verdict_code", "kv_pool_tokens", "concurrency", "longest_context", "needed_gb", "decode_batch"]
    columns = {key: [one[key] for one in several] for key in several[0]}
    found = SERVING.size_many(columns, results)
    for at, one in enumerate(several):
        alone = SERVING.size(results, **one)
        assert all(float(found[key][at]) == pytest.approx(alone[key], rel=1e-12) for key in results)


@pytest.mark.parametrize("engine", ["vLLM 0.11", "SGLang", "TensorRT-LLM"])
@pytest.mark.parametrize(
    ("model", "stored", "card"),
    [
        (LLAMA, "bf16", "NVIDIA L4"),
        (LLAMA, FP8, "NVIDIA L4"),
        ("google/gemma-3-12b-it", FP8, "NVIDIA L4"),
        ("google/gemma-2-9b", FP8, "NVIDIA A10"),
        ("openai/gpt-oss-20b", "mxfp4 block 32, E8M0 scale", "NVIDIA RTX 6000 Ada"),
        ("mistralai/Mistral-Nemo-Base-2407", "bf16", "NVIDIA L40S"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", FP8, "NVIDIA H200 SXM"),
    ],
)
def test_the_longest_context_fits_and_one_block_more_does_not(model: str, stored: str, card: str, engine: str) -> None:
    asked = {"base_model": model, "base_storage_format": stored, "gpu_choice": card, "serving_engine": engine,
             "usual_prompt_tokens": 1, "usual_output_tokens": 1, "maximum_length": 1000, **ONE_CLASS}  # fmt: skip
    longest, block, taken = size("longest_context", "tokens_of_block", "longest_taken", **asked).values()
    if longest == taken:
        assert size("maximum_concurrency", **{**asked, "maximum_length": taken})["maximum_concurrency"] >= 1
        return
    held = [
        size("maximum_concurrency", **{**asked, "maximum_length": tokens})["maximum_concurrency"]
        for tokens in (longest, min(taken, longest + block))
    ]
    assert held[0] >= 1 > held[1]


def test_the_percentile_is_of_the_class_that_holds_it() -> None:
    contexts = {
        at: size("percentile_context", length_percentile=at)["percentile_context"] for at in (0.3, 0.31, 0.9, 0.91)
    }
    assert contexts == {0.3: 400, 0.31: 1900, 0.9: 1900, 0.91: 7000}
    mean = size("mean_prompt_tokens", "mean_output_tokens", "mean_context")
    assert list(mean.values()) == pytest.approx([1590, 370, 1960])


def test_the_verdict_knows_three_states() -> None:
    at_percentile, at_mean = size("concurrency", "concurrency_at_mean").values()
    words = [
        size("fit_verdict", concurrent_users=int(users))["fit_verdict"]
        for users in (at_percentile, at_mean, at_mean + 1)
    ]
    assert words == ["fits", "tight", "does not fit"]


# ------------------------------------------------------------------------------------------------ speed
def test_one_answer_is_bound_by_reading_weights_and_its_own_cache() -> None:
    found = size("output_token_bound_seconds", "model_weights", "embedding_parameters", "live_context",
                 base_model=LLAMA, concurrent_users=1)  # fmt: skip
    read = found["model_weights"] - 2 * found["embedding_parameters"] - 4096 * 2 + found["live_context"] * 131_072
    assert found["output_token_bound_seconds"] == pytest.approx(read / 3350e9, rel=1e-4)


def test_a_prompt_is_bound_by_computing() -> None:
    found = size("first_token_bound_seconds", base_model=LLAMA, usual_prompt_tokens=4000, **ONE_CLASS)
    matrices = 2 * (8_030_261_248 - 2 * 128_256 * 4096) * 4000 + 2 * 128_256 * 4096
    attention = 4 * 32 * 4096 * 4000 * 4000 / 2
    assert found["first_token_bound_seconds"] == pytest.approx((matrices + attention) / 989e12, rel=1e-12)


def test_two_cards_halve_what_each_reads() -> None:
    bound = [
        size("output_token_bound_seconds", tensor_parallel=cards)["output_token_bound_seconds"] for cards in (1, 2)
    ]
    assert bound[0] / bound[1] == pytest.approx(2, rel=0.001)


def test_computing_decides_from_the_balance_on() -> None:
    short = {"usual_prompt_tokens": 20, "usual_output_tokens": 20, **ONE_CLASS}
    balance = size("compute_bound_batch", **short)["compute_bound_batch"]
    below, above = (
        size("step_read_seconds", "step_compute_seconds", concurrent_users=users, **short)
        for users in (int(balance), ceil(balance))
    )
    assert below["step_read_seconds"] > below["step_compute_seconds"]
    assert above["step_read_seconds"] <= above["step_compute_seconds"]
    assert size("compute_bound_batch")["compute_bound_batch"] == "never"  # long caches outweigh all computing


def test_fp8_products_are_twice_as_fast() -> None:
    wide, narrow = (
        size("first_token_bound_seconds", usual_prompt_tokens=6000, serving_precision=word, **ONE_CLASS)
        for word in ("16 bit", "fp8")
    )
    assert wide["first_token_bound_seconds"] / narrow["first_token_bound_seconds"] == pytest.approx(1979 / 989)


def test_a_step_reads_no_fewer_experts_than_a_token_passes() -> None:
    shares = [
        size(
            "experts_read", base_model="Qwen/Qwen3-30B-A3B", concurrent_users=users, usual_prompt_tokens=20, **ONE_CLASS
        )
        for users in (1, 8, 64, 1024)
    ]
    read = [share["experts_read"] for share in shares]
    assert read == sorted(read)
    assert read[0] == 8 / 128
    for users, share in zip((8, 64), read[1:3], strict=True):
        assert share <= 1 - (1 - 8 / 128) ** users  # what an even router reads on average


# ------------------------------------------------------------------------------------------------ replicas and cost
def waiting(places: int, load: float) -> float:
    """Share of requests that wait at random arrivals and lengths (Erlang C)."""
    last = load**places / factorial(places) * places / (places - load)
    return last / (sum(load**at / factorial(at) for at in range(places)) + last)


@pytest.mark.parametrize(("safety", "at_most"), [(1, 0.24), (2, 0.041)])
@pytest.mark.parametrize("load", [5, 20, 80])
def test_the_safety_lets_few_requests_wait(load: float, safety: float, at_most: float) -> None:
    seconds = size("request_seconds")["request_seconds"]
    found = size("offered_load", "wanted_places", request_rate=load / seconds, queue_safety=safety)
    assert found["offered_load"] == pytest.approx(load)
    assert waiting(ceil(found["wanted_places"]), load) <= at_most


def test_replicas_follow_the_rate() -> None:
    counts = [size("replicas", request_rate=rate)["replicas"] for rate in (0.01, 1, 20, 200, 2000)]
    assert counts[0] == 1 and counts == sorted(counts) and counts[-1] > 100
    found = size("replicas", "busiest_load", request_rate=200)
    assert found["busiest_load"] <= 0.7


def test_costs_add_up() -> None:
    results = ("million_output_hours", "rent_per_million_output", "rent_per_month", "rent_per_user_month", "replicas")
    found = size(*results, gpu_choice="NVIDIA H100 SXM5 80GB", tensor_parallel=2, user_count=50)
    assert found["rent_per_million_output"] == pytest.approx(found["million_output_hours"] * 2 * 2.95)
    assert found["rent_per_month"] == pytest.approx(found["replicas"] * 2 * 2.95 * 730)
    assert found["rent_per_user_month"] == pytest.approx(found["rent_per_month"] / 50)


def test_an_api_is_compared_where_its_price_is_entered() -> None:
    assert size("api_per_month", "api_break_even_requests") == {
        "api_per_month": "no API price", "api_break_even_requests": "not known",
    }  # fmt: skip
    found = size("api_per_month", "api_break_even_requests", "month_requests", "rent_per_month",
                 api_input_price=0.5, api_output_price=2)  # fmt: skip
    each = (1590 * 0.5 + 370 * 2) / 1e6
    assert found["api_per_month"] == pytest.approx(found["month_requests"] * each)
    assert found["api_break_even_requests"] == pytest.approx(found["rent_per_month"] / each)


def test_what_is_not_known_is_said() -> None:
    unpriced = size(
        "rent_per_million_output",
        "own_per_million_output",
        "replicas",
        gpu_choice="NVIDIA A10",
        base_model="Qwen/Qwen3-4B",
    )
    assert unpriced["rent_per_million_output"] == "not known"
    assert isinstance(unpriced["own_per_million_output"], float)
    too_large = size("replicas", "rent_per_month", "own_per_month", base_model="meta-llama/Llama-3.1-405B")
    assert set(too_large.values()) == {"not known"}


WHY = ("speed_unknown", "replicas_unknown", "rent_unknown")
NO_PEAK, NO_BANDWIDTH, NO_PRICE = "enter an own peak", "enter an own bandwidth", "enter an own price"


@pytest.mark.parametrize(
    ("inputs", "named"),
    [
        ({}, ("known", "known", "known")),
        ({"gpu_choice": "NVIDIA A10", "base_model": "Qwen/Qwen3-4B"}, ("known", "known", NO_PRICE)),
        ({"gpu_choice": "NVIDIA A100 SXM4 80GB", "serving_precision": "fp8"}, (NO_PEAK,) * 3),
        ({"base_model": "meta-llama/Llama-3.1-405B"}, ("known", "no room for a KV pool", "no room for a KV pool")),
        ({"gpu_choice": "NVIDIA GeForce RTX 3090", "maximum_length": 131_072}, ("known", *("one request",) * 2)),
    ],
)
def test_why_a_figure_is_not_known_is_said_in_words(inputs: dict[str, Any], named: tuple[str, ...]) -> None:
    figures = ("first_token_seconds", "replicas", "rent_per_month")
    found = size(*WHY, *figures, **inputs)
    for why, figure, words in zip(WHY, figures, named, strict=True):
        assert words in found[why], why
        assert (found[why] == "known") == (found[figure] != "not known"), why
    lines = report(SERVING, inputs, SERVING.size(SERVING.plain_terms, **inputs)).splitlines()
    told = [line for line in lines if line.startswith("Not known, ")]
    assert {line.partition(": ")[2] for line in told} == {f"{found[why]}." for why in WHY if found[why] != "known"}


def test_what_is_entered_takes_the_reason_away() -> None:
    fp8 = {"gpu_choice": "NVIDIA A100 SXM4 80GB", "serving_precision": "fp8"}
    assert size("speed_unknown", **fp8, own_peak_tflops=600)["speed_unknown"] == "known"
    assert NO_BANDWIDTH in SERVING.terms["speed_unknown"].function(1.0, 0.0)  # every card of the catalogue has one


def test_no_peak_is_not_never() -> None:
    unknown = {"gpu_choice": "NVIDIA A100 SXM4 80GB", "serving_precision": "fp8"}
    assert size("compute_bound_batch", **unknown)["compute_bound_batch"] == "not known"
    assert size("compute_bound_batch")["compute_bound_batch"] == "never"


def test_which_limit_binds_is_told_and_lifting_it_helps() -> None:
    assert size("users_limited_by")["users_limited_by"] == "the KV pool"
    by_step = size("concurrency", "users_limited_by", maximum_sequences=8)
    assert by_step == {"concurrency": 8, "users_limited_by": "the sequences of a step"}
    assert size("concurrency", maximum_sequences=9)["concurrency"] == 9
    both = size("users_limited_by", "users_at_mean_limited_by", maximum_sequences=100)
    assert both == {"users_limited_by": "the KV pool", "users_at_mean_limited_by": "the sequences of a step"}
    text = report(SERVING, {}, SERVING.size(SERVING.plain_terms, maximum_sequences=100))
    assert "Limited by              the KV pool at 7,000 tokens, the sequences of a step, 100 at 1,960 tokens" in text


# ------------------------------------------------------------------------------------------------ planning
def test_sets_of_cards_and_models_are_found() -> None:
    found = planning.card_sets(SERVING, base_model="Qwen/Qwen3-32B", concurrent_users=20)
    smallest, cheapest = planning.smallest_set(found), planning.cheapest_set(found)
    assert smallest is not None and cheapest is not None and smallest.fits and cheapest.fits
    assert all(
        one.cards * one.usable_gb >= smallest.cards * smallest.usable_gb for one in found if one.fits and one.cuda
    )
    assert all(one.price >= cheapest.price for one in found if one.fits and one.cuda and one.price and cheapest.price)
    largest = planning.largest_model(planning.every_model(SERVING, gpu_choice="NVIDIA L40S"))
    assert largest is not None and largest.model == "openai/gpt-oss-20b"  # in the format that it is published in
    in_16_bit = planning.every_model(SERVING, gpu_choice="NVIDIA L40S", base_storage_format="bf16")
    assert planning.largest_model(in_16_bit) != largest
    with pytest.raises(ValueError, match="sum to 0.8"):
        planning.card_sets(SERVING, usual_share=0.4)


# ------------------------------------------------------------------------------------------------ the command line
def test_the_command_line_tells_and_gives_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serving", "--base-model", "Qwen/Qwen3-8B", "--concurrent-users", "20"]) == 0
    text = capsys.readouterr().out
    assert "fits." in text and "bound" in text and "147,456 bytes in every layer" in text
    assert main(["serving", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["results"]["kv_pool_tokens"] == size("kv_pool_tokens")["kv_pool_tokens"]
    assert main(["serving", "--cards", "--models", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"cards", "models"}
    assert main(["serving", "--cards"]) == 0
    assert "Smallest that fits: 4 x NVIDIA T4." in capsys.readouterr().out


def test_warnings_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serving", "--memory-fraction", "1"]) == 0
    assert "enter a memory_fraction below 1" in capsys.readouterr().out
    with pytest.warns(UserWarning, match="published as 'mxfp4"):
        SERVING.size(base_model="openai/gpt-oss-20b")


# ------------------------------------------------------------------------------------------------ what is refused
@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ({"concurrent_users": 0}, r"concurrent_users is 0; it must be a whole number from 1 to 1,000,000"),
        ({"user_count": 0}, r"user_count is 0; it must be a whole number from 1"),
        ({"memory_fraction": 1.2}, r"memory_fraction is 1\.2; it must be a number from 0\.01 to 1"),
        ({"memory_fraction": -0.1}, r"memory_fraction is -0\.1; it must be"),
        ({"usual_share": 1.5}, r"usual_share is 1\.5; it must be a number from 0 to 1"),
        ({"length_percentile": 95}, r"length_percentile is 95; it must be a number from 0 to 1"),
        (
            {"usual_share": 0.4},
            r"short_share is 0\.3, usual_share 0\.4 and long_share 0\.1, which sum to 0\.8; they must",
        ),
        (
            {"maximum_length": 200_000},
            r"maximum_length is 200000; meta-llama/Llama-3\.1-8B was made for at most 131072",
        ),
        ({"maximum_length": 4096}, r"maximum_length is 4096; the longest requests take 7000 tokens"),
        ({"usual_prompt_tokens": 7500}, r"are 400, 7900 and 7000 tokens; classes with a share must not be shorter"),
        ({"kv_format": "int8"}, r"kv_format is 'int8', which vLLM 0\.11 has not; it must be one of bf16, fp8$"),
        (
            {"kv_format": "fp8", "serving_engine": "transformers"},
            r"which transformers has not; it must be one of bf16$",
        ),
        ({"kv_format": "int7"}, r"kv_format is 'int7'; it must be one of bf16, fp8, int8"),
        ({"tensor_parallel": 3}, r"tensor_parallel is 3; it must divide the attention heads of meta-llama.*, 32"),
        (
            {"tensor_parallel": 7, "base_model": "Qwen/Qwen2.5-7B"},
            r"must divide the KV heads of Qwen/Qwen2\.5-7B, 4, or",
        ),
        ({"pipeline_parallel": 33}, r"pipeline_parallel is 33; it must be at most the layers of .*, 32"),
        ({"expert_parallel": 2, "data_parallel": 2}, r"expert_parallel is 2; .*, 0, .* and be 1 for a dense model"),
        (
            {"expert_parallel": 3, "tensor_parallel": 4, "base_model": "Qwen/Qwen3-30B-A3B"},
            r"expert_parallel is 3; it must divide the experts of Qwen/Qwen3-30B-A3B, 128, and tensor_parallel",
        ),
        ({"recurrent_layers": 33}, r"recurrent_layers is 33; it must be at most the full-attention layers"),
        ({"gpu_choice": "NVIDIA B100"}, r"enter gpu_capacity_override_gb"),
        ({"serving_engine": "vLLM 0.12"}, r"serving_engine is 'vLLM 0\.12'; it must be one of"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(inputs: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as told:
        SERVING.size(**inputs)
    assert "\n" not in str(told.value)


def test_a_wrong_price_leaves_memory_alone() -> None:
    assert size("fit_verdict", currency_choice="EUR")["fit_verdict"] == "fits"
    with pytest.raises(ValueError, match="currency_choice is EUR without currency_per_usd"):
        size("rent_per_month", currency_choice="EUR")


def test_the_command_line_refuses_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serving", "--concurrent-users", "0"]) == 2
    assert capsys.readouterr().err.startswith("sizing-xlsx: concurrent_users is 0; it must be")

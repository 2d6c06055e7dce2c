"""Training from scratch: the article's figures, its measured sweep, and the same arithmetic by hand."""

from __future__ import annotations

import csv
import random
from typing import Any

import pytest
from strategies import random_inputs

from sizing_xlsx.jobs import job
from sizing_xlsx.paths import presets_folder

TRAINING = job("training")
CHECKPOINTED = {"activation_checkpointing": "On"}
FP32 = {"compute_precision": "fp32"}

# changes to the worked job -> published allocated, published reserved, traced allocated (GB), verdict
TABLE: list[tuple[dict[str, Any], float, float, float, str]] = [
    ({}, 60.4042, 62.2042, 59.0724, "fits"),
    (CHECKPOINTED, 20.2252, 26.0252, 20.3448, "fits"),
    (CHECKPOINTED | {"batch_size": 1024}, 39.8126, 45.6126, 40.0328, "fits"),
    (FP32, 94.0869, 95.8869, 0, "does not fit"),
]


@pytest.mark.parametrize(("changes", "allocated", "reserved", "traced", "verdict"), TABLE)
def test_the_figures_of_the_article(
    changes: dict[str, Any], allocated: float, reserved: float, traced: float, verdict: str
) -> None:
    result = TRAINING.size(**changes, verdict_basis="Published")
    assert round(result["published_peak_allocated_gb"], 4) == allocated
    assert round(result["published_total_reserved_gb"], 4) == reserved
    assert result["peak_allocated_gb"] == result["published_peak_allocated_gb"]
    assert result["fit_verdict"] == verdict
    by_trace = TRAINING.size(**changes, verdict_basis="Traced")
    assert by_trace["fit_verdict"] == verdict
    if traced:
        assert round(by_trace["peak_allocated_gb"], 4) == traced


def test_fp32_keeps_the_attention_output_twice() -> None:
    # A trace of PyTorch's own encoder layers in fp32: 91.2316 GB; without flash the output and its copy both stay.
    assert round(TRAINING.size(**FP32)["traced_peak_allocated_gb"], 4) == 91.2226


def test_the_line_items_of_the_article() -> None:
    items = TRAINING.size()
    assert items["parameter_count"] == 1_011_262_440
    assert items["matrices_only_parameters"] == 1_010_728_960
    for term, gb in (
        ("published_weights", 4.0),
        ("published_gradients", 4.0),
        ("published_optimizer_state", 8.1),
        ("published_cache", 2.0),
        ("published_activations", 42.2),
    ):
        assert round(items[term] / 1e9, 1) == gb, term
    assert round(TRAINING.size(**CHECKPOINTED)["published_activations"] / 1e9, 1) == 6.9
    fp32 = TRAINING.size(**FP32)["published_activations"]
    assert round(fp32 / items["published_activations"], 2) == 1.85
    spared = (
        items["published_optimizer_state"] - TRAINING.size(optimizer_choice="8-bit Adam")["published_optimizer_state"]
    )
    assert spared == 6 * items["parameter_count"]


@pytest.mark.parametrize(("sequence", "gb"), [(512, 236), (1024, 452), (2048, 884)])
def test_predicted_reserved_totals_of_longer_sequences(sequence: int, gb: int) -> None:
    assert round(TRAINING.size(sequence_length=sequence)["published_total_reserved_gb"]) == gb


# ---------------------------------------------------------------------- the measured sweep
def sweep() -> list[dict[str, str]]:
    with (presets_folder() / "measured" / "h100_training_sweep.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def sweep_inputs(row: dict[str, str]) -> dict[str, Any]:
    hidden = int(row["hidden_size"])
    return {
        "hidden_size_override": hidden,
        "layer_count_override": int(row["layers"]),
        "attention_heads_override": int(row["attention_heads"]),
        "mlp_width_override": hidden * int(row["ff_multiplier"]),
        "vocabulary_size_override": int(row["output_width"]),
        "parameter_count_override": int(row["parameters"]),
        "batch_size": int(row["batch_size"]),
        "sequence_length": int(row["sequence_length"]),
        "compute_precision": {"bf16_autocast": "bf16 autocast", "fp32": "fp32"}[row["compute"]],
        "optimizer_choice": {"adam": "Adam", "adam8bit": "8-bit Adam"}[row["optimizer"]],
        "activation_checkpointing": {"true": "On", "false": "Off"}[row["checkpointing"]],
    }


ROWS = sweep()
COMPLETED = [row for row in ROWS if row["measured_oom"] == "false"]
FAILED = [row for row in ROWS if row["measured_oom"] == "true"]


def _id(row: dict[str, str]) -> str:
    return row["id"]


def test_the_sweep_is_whole() -> None:
    assert (len(ROWS), len(COMPLETED), len(FAILED)) == (24, 11, 13)


@pytest.mark.parametrize("row", COMPLETED, ids=_id)
def test_every_completed_row(row: dict[str, str]) -> None:
    result = TRAINING.size(**sweep_inputs(row))
    allocated, reserved = float(row["measured_peak_allocated_gb"]), float(row["measured_peak_reserved_gb"])
    assert abs(result["traced_peak_allocated_gb"] / allocated - 1) < 0.0030
    assert abs(result["published_peak_allocated_gb"] / allocated - 1) < 0.0218
    assert 1 <= result["traced_total_reserved_gb"] / reserved <= 1.14
    assert result["fit_verdict"] == "fits"


@pytest.mark.parametrize("row", FAILED, ids=_id)
@pytest.mark.parametrize("basis", ["Traced", "Published"])
def test_no_row_that_ran_out_of_memory_fits(row: dict[str, str], basis: str) -> None:
    assert TRAINING.size(**sweep_inputs(row), verdict_basis=basis)["fit_verdict"] != "fits"


@pytest.mark.parametrize("row", COMPLETED, ids=_id)
def test_static_bytes_are_the_measured_ones(row: dict[str, str]) -> None:
    inputs = sweep_inputs(row)
    closed_form = {key: value for key, value in inputs.items() if key != "parameter_count_override"}
    result = TRAINING.size(**closed_form)
    assert result["parameter_count"] == int(row["parameters"])
    assert result["stored_weights"] == result["published_weights"] == int(row["measured_weight_bytes"])
    assert result["weight_gradients"] == result["published_gradients"] == int(row["measured_gradient_bytes"])
    d, ff, v = 2048, 8192, 1000
    layer = [3 * d * d, 3 * d, d * d, d, d * ff, ff, ff * d, d, d, d, d, d]
    sizes = layer * 20 + [v * d, v * d, v]
    # Counted with them: Adam's fp32 step of each tensor; two tables of 1 KB with each tensor that has 8-bit moments.
    adam = inputs["optimizer_choice"] == "Adam"
    added = 4 * len(sizes) if adam else sum(2048 for n in sizes if n >= 4096)
    assert result["optimizer_state"] + added == pytest.approx(int(row["measured_optimizer_bytes"]), abs=1)


def test_the_sweep_summary_is_the_one_in_the_notes() -> None:
    errors = {"published": [], "traced": []}  # type: dict[str, list[float]]
    for row in COMPLETED:
        result = TRAINING.size(**sweep_inputs(row))
        for family, found in errors.items():
            measured = float(row["measured_peak_allocated_gb"])
            found.append(abs(result[f"{family}_peak_allocated_gb"] / measured - 1) * 100)
    medians = {family: sorted(found)[len(found) // 2] for family, found in errors.items()}
    assert (round(max(errors["published"]), 2), round(medians["published"], 2)) == (2.17, 2.00)
    assert (round(max(errors["traced"]), 3), round(medians["traced"], 3)) == (
        0.270,
        0.250,
    )  # the 8-bit row with its small tensors in fp32


# ---------------------------------------------------------------------- the same arithmetic, by hand
# traced state of fp32 parameters, of bf16 ones; published state of each; has temporaries
OPTIMIZERS = {
    "Adam": (8, 4, 8, 4, 1),
    "8-bit Adam": (2.03125, 2.03125, 2, 2, 0),
    "SGD with momentum": (4, 2, 4, 2, 0),
    "SGD": (0, 0, 0, 0, 0),
}


def entered(inputs: dict[str, Any], name: str, otherwise: float) -> float:
    value = inputs[name + "_override"]
    return otherwise if value is None else value


def by_hand(inputs: dict[str, Any]) -> dict[str, float]:
    """Sections 1, 4 and 6 of the memory model, in bytes, written straight from its sentences."""
    models = TRAINING.tables["training_models"]
    at = models.row_of(inputs["base_model"]) - 1

    def figure(column: str) -> Any:
        return entered(inputs, column, models.columns[column][at])

    d, layers, nh = figure("hidden_size"), figure("layer_count"), figure("attention_heads")
    ff, v = figure("mlp_width"), figure("vocabulary_size")
    f = ff / d
    batch, s = inputs["batch_size"], inputs["sequence_length"]
    t = batch * s
    autocast = inputs["compute_precision"] != "fp32"
    b = 2 if autocast else 4
    checkpointed = inputs["activation_checkpointing"] == "On"
    scores = inputs["attention_implementation"].endswith("scores stored")
    wide = inputs["parameter_storage"] == "fp32"
    stored = 4 if wide else 2
    state, narrow, published_wide, published_narrow, temporaries = OPTIMIZERS[inputs["optimizer_choice"]]
    n = (4 + 2 * f) * d**2 * layers + 2 * v * d + layers * (9 + f) * d + v
    n = entered(inputs, "parameter_count", n)

    # section 1: published
    static = stored * n + (published_wide if wide else published_narrow) * n
    gradients = stored * n
    cache = 2 * n if autocast and wide else 0
    layer = 9 * t * d * b + 2 * t * f * d * b + 2 * t * d + t * f * d
    stored_scores = batch * nh * s**2 * b if scores else 0
    head = t * v * b + (4 * t * v if autocast else 0)
    plain = layers * (layer + stored_scores) + t * d * b + head
    again = (layers + 3) * 4 * t * d + 7 * t * d * b + 3 * t * f * d * b + t * d + t * v * b + stored_scores
    if checkpointed:
        backward = static + again
        step = static + gradients + temporaries * gradients
        forward = static + cache + 4 * layers * t * d + (2 * f * d + 3 * d) * t * b + head + stored_scores
        published = max(backward, step, forward)
        allowance = entered(inputs, "published_checkpointed_reserve_gb", 5.2)
    else:
        published = static + gradients + cache + plain
        allowance = entered(inputs, "published_reserve_gb", 1.2)
    allowance += entered(inputs, "published_context_gb", 0.6)

    # section 4: traced
    gpus = TRAINING.tables["gpus"]
    card = gpus.row_of(inputs["gpu_choice"]) - 1
    w = entered(inputs, "matrix_workspace_bytes", gpus.columns["matmul_workspace_bytes"][card])
    optimizer = (state if wide else narrow) * n
    if inputs["optimizer_choice"] == "8-bit Adam":  # vectors of fewer than 4,096 numbers keep both moments in fp32
        vectors = [*([d] * 6 + [3 * d, ff]) * int(layers), v]
        optimizer += (8 - 2.03125) * sum(size for size in vectors if size < 4096)
    resident = stored * n + optimizer + 2 * w + 16 * t + 4 * s * d
    m = 4 * d**2 + 2 * d * ff
    if autocast:
        one = 22 * t * d + 5 * t * ff + 16 * t + 4 * t * nh
        head_cast, layer_cast = 2 * v * d, 2 * m
        kept_scores = 2 * t * v
        working = 5 * t * d + 2 * t * ff
        x = kept_scores + working + 2 * d * ff + 4 * v * d
    else:
        one = 38 * t * d + 9 * t * ff + 16 * t + 4 * t * nh
        head_cast, layer_cast = 0, 0
        kept_scores = 4 * t * v
        working = 7 * t * d + 4 * t * ff
        x = kept_scores + working + 4 * d * ff + 4 * v * d
    casts = layers * layer_cast + head_cast
    gradients_before = gradients if inputs["gradient_accumulation"] > 1 else 0
    if checkpointed:
        ffn = resident + 4 * t * d * layers + one - 4 * t * d + layer_cast + x
        forward = resident + 4 * t * d * layers + casts + 8 * t * d + (5 if autocast else 9) * t * ff + kept_scores
        forward += gradients_before
        saved = 4 * t * d * layers
    else:
        ffn = resident + layers * one + casts + x - head_cast
        forward = 0
        saved = layers * one
    # In the loss's backward checkpointed layers keep no cast of theirs; in its forward autocast still holds them all.
    backward_loss = (head_cast if checkpointed else casts) + (12 if autocast else 16) * t * v
    loss = resident + saved + b * t * d + max(backward_loss, casts + (10 if autocast else 12) * t * v)
    ffn, loss = ffn + gradients_before, loss + gradients_before
    step = resident + gradients + temporaries * gradients + kept_scores
    late = 0 if inputs["gradient_accumulation"] > 1 else stored * (4 * d * d + 2 * d * ff + v * d)
    first = resident + gradients - late + one + layer_cast + x - 4 * v * d
    embedding = resident + gradients + kept_scores + 4 * t * d
    traced = max(ffn, step, loss, forward, first, embedding)

    # section 6: reserved
    per_score, mib = entered(inputs, "reserve_logit_bytes", 4), entered(inputs, "reserve_layer_mib", 14)
    reserve = per_score * t * v + mib * layers * 2**20
    if checkpointed:
        trainable = (4 if inputs["optimizer_choice"] == "8-bit Adam" else 8) * n
        reserve += min(one + working, entered(inputs, "reserve_recomputed_bytes", 14) * t * v)
        reserve += min(trainable, ffn - stored * n - optimizer)
    else:
        reserve += layers * one / entered(inputs, "reserve_activation_divisor", 6)
    available = wide and not scores and inputs["optimizer_choice"] in ("Adam", "8-bit Adam")
    return {
        "parameter_count": n,
        "published_activations": again if checkpointed else plain,
        "published_allocated": published,
        "published_reserved": published + allowance * 1e9,
        "resident_memory": resident,
        "layer_activations": one,
        "weight_casts": casts,
        "last_backward_moment": ffn,
        "optimizer_moment": step,
        "loss_moment": loss,
        "forward_moment": forward,
        "first_layer_moment": first,
        "embedding_moment": embedding,
        "traced_allocated": traced,
        "traced_reserved": traced + reserve,
        "traced_available": 1 if available else 0,
    }


def verdict_by_hand(values: dict[str, float], inputs: dict[str, Any], usable_bytes: float) -> str:
    """Section 6: the three states, by the family that the verdict rests on."""
    usable = inputs["gpu_capacity_override_gb"]
    usable = usable_bytes / 1e9 if usable is None else usable
    others = inputs["other_tenants_gb"]
    if inputs["verdict_basis"] == "Published" or not values["traced_available"]:
        return "fits" if values["published_reserved"] <= (usable - others) * 1e9 else "does not fit"
    room = (usable - entered(inputs, "outside_pytorch_gb", 0.8) - others) * 1e9
    if values["traced_reserved"] <= room:
        return "fits"
    return "tight" if values["traced_allocated"] <= room else "does not fit"


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-12 * max(abs(a), abs(b))


def test_arithmetic_by_hand_agrees_on_random_jobs() -> None:
    rng = random.Random(20_260_817)
    gpus = TRAINING.tables["gpus"]
    verdicts = set()
    for _ in range(400):
        inputs = random_inputs(TRAINING, rng)
        result = TRAINING.size(**inputs)
        hand = by_hand(inputs)
        for term, value in hand.items():
            assert close(result[term], value), (term, result[term], value, inputs)
        usable = gpus.columns["usable_bytes"][gpus.row_of(inputs["gpu_choice"]) - 1]
        # Few random cards lie between the peak and the total: a card of one's own may.
        between = (hand["traced_allocated"] + hand["traced_reserved"]) / 2e9 + inputs["other_tenants_gb"] + 0.8
        for given in (inputs, inputs | {"gpu_capacity_override_gb": min(between, 100_000)}):
            verdict = verdict_by_hand(hand, given, usable)
            assert TRAINING.size(("fit_verdict",), **given)["fit_verdict"] == verdict, given
            verdicts.add(verdict)
    assert verdicts == {"fits", "tight", "does not fit"}


def test_arithmetic_by_hand_gives_the_figures_of_the_article() -> None:
    for changes, allocated, reserved, traced, _ in TABLE:
        hand = by_hand(TRAINING.defaults() | changes)
        assert round(hand["published_allocated"] / 1e9, 4) == allocated
        assert round(hand["published_reserved"] / 1e9, 4) == reserved
        assert not traced or round(hand["traced_allocated"] / 1e9, 4) == traced


def test_items_of_each_family_add_up_to_its_peak() -> None:
    rng = random.Random(3)
    for _ in range(200):
        result = TRAINING.size(**random_inputs(TRAINING, rng))
        assert close(result["traced_items"], result["traced_allocated"])
        assert close(result["published_items"], result["published_allocated"])

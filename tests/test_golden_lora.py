"""LoRA: the article's figures, its measured sweep, and the same arithmetic written a second time by hand."""

from __future__ import annotations

import csv
import random
from typing import Any

import pytest
from strategies import random_inputs

from sizing_xlsx.jobs import job
from sizing_xlsx.paths import presets_folder

LORA = job("lora")
BATCH_2048 = {"batch_size": 32, "sequence_length": 2048}
CHECKPOINTED = {"activation_checkpointing": "On"}

# changes to the worked job -> published allocated, reserved, traced allocated (GB), verdict by either family
TABLE: list[tuple[dict[str, Any], float, float, float, str]] = [
    ({}, 12.7966, 14.5966, 12.7946, "fits"),
    (CHECKPOINTED, 4.7148, 10.5148, 4.5808, "fits"),
    (BATCH_2048, 170.0404, 171.8404, 0, "does not fit"),
    (BATCH_2048 | CHECKPOINTED, 41.2996, 47.0996, 38.1473, "fits"),
    ({"base_storage_format": "fp32"}, 17.1968, 18.9968, 17.2481, "fits"),
    ({"adapter_layers": 3}, 5.3694, 7.1694, 5.3674, "fits"),
]


@pytest.mark.parametrize(("changes", "allocated", "reserved", "traced", "verdict"), TABLE)
def test_the_figures_of_the_article(
    changes: dict[str, Any], allocated: float, reserved: float, traced: float, verdict: str
) -> None:
    result = LORA.size(**changes, verdict_basis="Published")
    assert round(result["published_peak_allocated_gb"], 4) == allocated
    assert round(result["published_total_reserved_gb"], 4) == reserved
    assert result["peak_allocated_gb"] == result["published_peak_allocated_gb"]
    assert result["fit_verdict"] == verdict
    if traced:
        assert round(result["traced_peak_allocated_gb"], 4) == traced
    by_trace = LORA.size(**changes, verdict_basis="Traced")
    assert by_trace["fit_verdict"] == verdict
    assert by_trace["peak_allocated_gb"] == by_trace["traced_peak_allocated_gb"]


def test_the_fp32_base_is_near_its_measurement() -> None:
    traced = LORA.size(base_storage_format="fp32")["traced_peak_allocated_gb"]
    assert abs(traced - 17.2377) < 0.0105


def test_the_line_items_of_the_article() -> None:
    items = LORA.size()
    assert items["adapter_parameters"] == 6_307_840
    assert items["base_parameter_count"] == 1_100_048_384
    for term, gb, digits in (
        ("published_frozen_base", 2.20, 2),
        ("adapter_weights", 0.025, 3),
        ("adapter_gradients", 0.025, 3),
        ("published_optimizer_state", 0.050, 3),
        ("published_cache", 0.013, 3),
        ("published_plain_activations", 8.96, 2),
        ("published_workspace", 1.5, 1),
        ("published_allocated", 12.7966, 4),
    ):
        assert round(items[term] / 1e9, digits) == gb, term
    checkpointed = LORA.size(**CHECKPOINTED)
    assert round(checkpointed["published_activations"] / 1e9, 2) == 2.44
    assert checkpointed["published_workspace"] == 0
    for layers, gb in ((11, 5.40), (3, 2.82)):
        assert round(LORA.size(adapter_layers=layers)["published_activations"] / 1e9, 2) == gb


def test_the_fit_boundary_that_the_published_formula_gives() -> None:
    def reserved(**inputs: Any) -> float:
        return LORA.size(**inputs)["published_total_reserved_gb"]

    usable = LORA.size()["gpu_usable_capacity_gb"]
    room = (usable - reserved(batch_size=61)) / (reserved(batch_size=62) - reserved(batch_size=61))
    assert round(61 + room, 1) == 61.7
    assert reserved(sequence_length=3951) <= usable < reserved(sequence_length=3952)


def test_published_base_of_70_billion_parameters() -> None:
    for form, gb in (
        ("bf16", 140),
        ("nf4 / fp4, block 64, no double quant", 35),
        ("int8 LLM.int8 (bitsandbytes)", 70),
    ):
        result = LORA.size(base_parameter_count_override=70_000_000_000, base_storage_format=form)
        assert result["published_frozen_base"] == gb * 1e9


SMALL = {"batch_size": 1, "sequence_length": 128, "activation_checkpointing": "On"}


@pytest.mark.parametrize("storage", LORA.choices("base_storage_format"))
@pytest.mark.parametrize("more", [{}, {"optimizer_choice": "SGD"}, {"verdict_basis": "Published"}], ids=str)
def test_no_verdict_rests_on_less_than_the_bytes_that_are_stored(storage: str, more: dict[str, Any]) -> None:
    """Whatever a format converts of a model: all linears, only experts, no experts."""
    wanted = ("exact_static_bytes", "peak_allocated", "total_to_size_against", "fit_verdict", "gpu_usable_capacity_gb")
    for model in ("meta-llama/Llama-3.1-70B", "mistralai/Mixtral-8x7B-v0.1", "tiiuae/falcon-7b", "google/gemma-2b"):
        if model not in LORA.choices("base_model"):
            continue
        found = LORA.size(wanted, base_model=model, base_storage_format=storage, **SMALL, **more)
        assert found["peak_allocated"] >= found["exact_static_bytes"], model
        assert found["total_to_size_against"] > found["exact_static_bytes"], model
        if found["exact_static_bytes"] > found["gpu_usable_capacity_gb"] * 1e9:
            assert found["fit_verdict"] == "does not fit", model


def test_the_published_base_of_a_format_that_the_article_has_not_is_what_is_stored() -> None:
    inputs = {"base_model": "meta-llama/Llama-3.1-70B", "base_storage_format": "mxfp4 block 32, E8M0 scale", **SMALL}
    found = LORA.size(**inputs)
    assert found["published_frozen_base"] == found["frozen_base_weights"] == 2 * found["base_parameter_count"]
    assert found["fit_verdict"] == "does not fit"


def test_a_published_peak_below_the_stored_bytes_is_told() -> None:
    inputs = {"base_model": "mistralai/Mixtral-8x7B-v0.1", "optimizer_choice": "SGD", **SMALL}
    inputs["base_storage_format"] = "nf4 / fp4, block 64, no double quant"  # fused experts stay in 16 bit
    found = LORA.size(**inputs)
    assert found["published_allocated"] < found["exact_static_bytes"] == found["peak_allocated"]
    assert any("below the exact bytes" in told for told in LORA.warnings(found, **inputs))


# ---------------------------------------------------------------------- what contradicts itself
def test_no_step_runs_beyond_a_table_of_learned_positions() -> None:
    LORA.size(("fit_verdict",), base_model="openai-community/gpt2", sequence_length=1024)
    with pytest.raises(
        ValueError, match="sequence_length is 2048; openai-community/gpt2 has learned positions for 1024"
    ):
        LORA.size(("fit_verdict",), base_model="openai-community/gpt2", sequence_length=2048)


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"quantised_head": "On"}, "only the frozen head of a quantised base is quantised"),
        ({"kbit_preparation": "On"}, "only a quantised base is prepared"),
        ({"base_model": "openai-community/gpt2", "training_stack": "litgpt, own loop"}, "described over models of Llama form and a few others"),
        ({"base_model": "openai/gpt-oss-20b", "sequence_length": 64}, "are published as 'mxfp4"),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_user_should_know_is_warned_of_in_python(inputs: dict[str, Any], told: str) -> None:
    with pytest.warns(UserWarning, match=told):
        LORA.size(**inputs)


def test_an_average_above_the_longest_row_leaves_memory_alone() -> None:
    assert LORA.size(("fit_verdict",), average_sequence_length=9_999) == {"fit_verdict": "fits"}
    with pytest.raises(ValueError, match="average_sequence_length is 9999.* must not be above sequence_length"):
        LORA.size(("run_hours",), average_sequence_length=9_999)


# ---------------------------------------------------------------------- the measured sweep
def sweep() -> list[dict[str, str]]:
    with (presets_folder() / "measured" / "h100_lora_sweep.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def sweep_inputs(row: dict[str, str]) -> dict[str, Any]:
    layers = row["adapter_layers"]
    return {
        "base_storage_format": row["base_storage"],
        "lora_rank": int(row["lora_rank"]),
        "adapter_layers": "all" if layers == "all" else int(layers.removeprefix("upper-")),
        "batch_size": int(row["batch_size"]),
        "sequence_length": int(row["sequence_length"]),
        "compute_precision": {"bf16_autocast": "bf16 autocast"}[row["compute"]],
        "optimizer_choice": {"adam": "Adam", "adam8bit": "8-bit Adam"}[row["optimizer"]],
        "activation_checkpointing": {"true": "On", "false": "Off"}[row["checkpointing"]],
    }


ROWS = sweep()
COMPLETED = [row for row in ROWS if row["measured_oom"] == "false"]
FAILED = [row for row in ROWS if row["measured_oom"] == "true"]


def _id(row: dict[str, str]) -> str:
    return row["id"]


def test_the_sweep_is_whole() -> None:
    assert (len(ROWS), len(COMPLETED), len(FAILED)) == (25, 23, 2)


@pytest.mark.parametrize("row", COMPLETED, ids=_id)
def test_every_completed_row(row: dict[str, str]) -> None:
    result = LORA.size(**sweep_inputs(row))
    allocated, reserved = float(row["measured_peak_allocated_gb"]), float(row["measured_peak_reserved_gb"])
    assert abs(result["traced_peak_allocated_gb"] / allocated - 1) < 0.0013
    assert abs(result["published_peak_allocated_gb"] / allocated - 1) < 0.0827
    assert 1 <= result["traced_total_reserved_gb"] / reserved <= 1.10
    assert result["fit_verdict"] == "fits"


@pytest.mark.parametrize("row", FAILED, ids=_id)
@pytest.mark.parametrize("basis", ["Traced", "Published"])
def test_no_row_that_ran_out_of_memory_fits(row: dict[str, str], basis: str) -> None:
    assert LORA.size(**sweep_inputs(row), verdict_basis=basis)["fit_verdict"] != "fits"


@pytest.mark.parametrize("row", COMPLETED, ids=_id)
def test_static_bytes_are_the_measured_ones(row: dict[str, str]) -> None:
    inputs = sweep_inputs(row)
    result = LORA.size(**inputs)
    assert result["frozen_base_weights"] == result["published_frozen_base"] == int(row["measured_frozen_bytes"])
    assert result["adapter_weights"] == int(row["measured_adapter_bytes"])
    assert result["adapter_gradients"] == int(row["measured_gradient_bytes"])
    rank, layers = inputs["lora_rank"], result["reached_layers"]
    widths = [(2048, 2048), (2048, 256), (2048, 256), (2048, 2048), (2048, 5632), (2048, 5632), (5632, 2048)]
    sizes = [rank * width for pair in widths for width in pair] * int(layers)
    # Counted with them: Adam's fp32 step of each tensor; two tables of 1 KB with each tensor that has 8-bit moments.
    adam = inputs["optimizer_choice"] == "Adam"
    added = 4 * len(sizes) if adam else sum(2048 for n in sizes if n >= 4096)
    assert result["optimizer_state"] + added == int(row["measured_optimizer_bytes"])


def test_the_sweep_summary_is_the_one_in_the_notes() -> None:
    """Worst and median error of both families, as the guide states them."""
    errors = {"published": [], "traced": []}  # type: dict[str, list[float]]
    for row in COMPLETED:
        result = LORA.size(**sweep_inputs(row))
        for family, found in errors.items():
            measured = float(row["measured_peak_allocated_gb"])
            found.append(abs(result[f"{family}_peak_allocated_gb"] / measured - 1) * 100)
    medians = {family: sorted(found)[len(found) // 2] for family, found in errors.items()}
    assert (round(max(errors["published"]), 2), round(medians["published"], 2)) == (8.26, 0.12)
    assert (round(max(errors["traced"]), 2), round(medians["traced"], 3)) == (0.12, 0.016)


# ---------------------------------------------------------------------- the same arithmetic, by hand
SLOTS = ("query", "key", "value", "output", "gate", "up", "down")
NAMED = {
    "All seven": SLOTS,
    "Query and value": ("query", "value"),
    "Query, key, value": ("query", "key", "value"),
    "All attention": SLOTS[:4],
    "All MLP": SLOTS[4:],
    "Key, value, down": ("key", "value", "down"),
}
# bytes per parameter of what is converted, of the rest, per output row, per input column; of the published list, where
# the article has the format
STORED = {
    "fp32": (4, 4, 0, 0, 4),
    "bf16": (2, 2, 0, 0, 2),
    "fp16": (2, 2, 0, 0, 2),
    "int8 LLM.int8 (bitsandbytes)": (1, 2, 4, 0, 1),
    "nf4 / fp4, block 64, no double quant": (0.5625, 2, 0, 0, 0.5),
    "nf4 / fp4, block 64, double quant (nested block 256)": (0.5 + 1 / 64 + 4 / (64 * 256), 2, 0, 0, 0.5),
    "GPTQ int4 g128 sym/asym": (0.5 + 2.5 / 128, 2, 0, 4, None),
    "GPTQ int4, no groups": (0.5, 2, 2.5, 4, None),
    "AWQ int4 g128 (GEMM)": (0.5 + 2.5 / 128, 2, 0, 0, None),
    "fp8 e4m3 per-tensor": (1, 2, 0, 0, None),
    "fp8 e4m3 block 128x128, fp32 scales (DeepSeek-V3/R1)": (1 + 4 / 128**2, 2, 0, 0, None),
    "mxfp4 block 32, E8M0 scale": (0.53125, 2, 0, 0, None),  # of experts alone, which Llama form has none of
    "nvfp4 block 16, E4M3 scale + fp32 global": (0.5625, 2, 0, 0, None),
}
# traced state, published state, has temporaries, state of 16-bit parameters
OPTIMIZERS = {
    "Adam": (8, 8, 1, 4),
    "8-bit Adam": (2.03125, 2, 0, 2.03125),
    "SGD with momentum": (4, 4, 0, 2),
    "SGD": (0, 0, 0, 0),
}
# output scores: forward, more when shifted, backward, of a fused loss; keeps outputs, fused norms, adapters, loss
STACKS = {
    "Plain loop, transformers 5": (10, 0, 12, 0, True, False, False, False),
    "HF Trainer, transformers 5": (10, 0, 12, 0, False, False, False, False),
    "HF Trainer, transformers 4.48": (10, 4, 12, 0, False, False, False, False),
    "HF Trainer, transformers 4.45": (8, 4, 12, 0, False, False, False, False),
    "Fused kernels, transformers 4.48": (10, 0, 8, 0, False, True, False, False),
    "Fused kernels, transformers 4.45": (8, 0, 8, 0, False, True, False, False),
    "Fused kernels and adapters, transformers 4.45": (8, 0, 8, 0, False, True, True, False),
    "Fused kernels with fused linear loss": (0, 0, 0, 10, False, True, False, True),
    "Fused kernels and adapters with fused linear loss": (0, 0, 0, 10, False, True, True, True),
    "litgpt, own loop": (6, 0, 4, 0, False, False, False, False),
    "torchtune, own recipe": (6.5, 0, 5, 0, False, False, False, False),
}
OWN_LAYERS = {"litgpt, own loop": 0, "torchtune, own recipe": 4}  # bytes of tables of all positions, a value of a head
OF_STACK = {  # override -> its place in a row of STACKS
    "loss_forward_bytes": 0, "loss_shift_bytes": 1, "loss_backward_bytes": 2, "fused_loss_bytes": 3,
    "stack_keeps_output": 4, "stack_fused_norms": 5, "stack_fused_adapters": 6, "stack_fused_loss": 7,
}  # fmt: skip
_MODELS = LORA.tables["models"]
LLAMA_FORM = [  # of decoders alone, for an image tower has parameters of its own
    key
    for key, form, tower in zip(
        _MODELS.keys, _MODELS.columns["layer_form"], _MODELS.columns["vision_parameters"], strict=True
    )
    if form == "llama" and not tower
]


def shape_of(inputs: dict[str, Any]) -> dict[str, float]:
    """d, q, kv, nh, hd, ff, V, L and N_b, from the catalogue or from what was entered."""
    models = LORA.tables["models"]
    at = models.row_of(inputs["base_model"]) - 1

    def figure(column: str) -> Any:
        entered = inputs.get(column + "_override")
        return models.columns[column][at] if entered is None else entered

    d, ff, v, layers = (
        figure("hidden_size"),
        figure("mlp_width"),
        figure("vocabulary_size"),
        figure("layer_count"),
    )
    nh, hd, kv_heads = figure("attention_heads"), figure("head_dimension"), figure("kv_heads")
    q, kv = nh * hd, kv_heads * hd
    biases = {name: models.columns[name][at] for name in ("qkv_bias", "output_bias", "mlp_bias")}
    linear = 2 * d * q + 2 * d * kv + 3 * d * ff
    bias = biases["qkv_bias"] * (q + 2 * kv) + biases["output_bias"] * d + biases["mlp_bias"] * (2 * ff + d)
    head_and_embedding = v * d * (1 if models.columns["tied"][at] else 2)
    count = layers * (linear + bias) + head_and_embedding + (2 * layers + 1) * d
    counted = count
    if inputs.get("base_parameter_count_override") is not None:
        count = inputs["base_parameter_count_override"]
    return {
        "tied": models.columns["tied"][at],
        "d": d,
        "q": q,
        "kv": kv,
        "nh": nh,
        "hd": hd,
        "ff": ff,
        "V": v,
        "L": layers,
        "Nb": count,
        "counted": counted,
    }


def by_hand(inputs: dict[str, Any]) -> dict[str, float]:
    """Sections 2, 3 and 6 of the memory model, in bytes, written straight from its sentences."""
    shape = shape_of(inputs)
    d, q, kv, nh, hd, ff = (shape[key] for key in ("d", "q", "kv", "nh", "hd", "ff"))
    v, layers, n_base = shape["V"], shape["L"], shape["Nb"]
    batch, rank = inputs["batch_size"], inputs["lora_rank"]
    s = inputs["sequence_length"] + inputs["images_per_row"] * (inputs["image_tokens_override"] or 0)
    t = batch * s
    reached = layers if isinstance(inputs["adapter_layers"], str) else inputs["adapter_layers"]
    checkpointed = inputs["activation_checkpointing"] == "On"
    stack = [entered(inputs, name, STACKS[inputs["training_stack"]][at]) for name, at in OF_STACK.items()]
    loss_forward, loss_shift, loss_backward, loss_piece, keeps, fused_norms, fused_adapters, fused_loss = stack
    litgpt = inputs["training_stack"].startswith("litgpt")
    unties = entered(inputs, "stack_unties", int(litgpt)) > 0
    packed = entered(inputs, "stack_packs_qkv", int(litgpt)) > 0
    own = inputs["training_stack"] in OWN_LAYERS
    repeated = entered(inputs, "stack_repeats_kv", int(own)) > 0
    head_freed = entered(inputs, "stack_frees_head_input", int(own)) > 0
    torchtune = own and not litgpt
    one_kernel = entered(inputs, "stack_fuses_optimizer", int(torchtune)) > 0
    of_position = entered(inputs, "position_table_bytes", OWN_LAYERS.get(inputs["training_stack"], 0))
    dequantised = entered(inputs, "dequantised_bytes", 14.046875 if torchtune else 2)
    loss_rows = entered(inputs, "loss_row_bytes", 1024 if litgpt else 0) * batch * v
    kept = keeps * (inputs["keeps_model_output"] == "On")
    dropout = inputs["lora_dropout"] == "On"
    scores = inputs["attention_implementation"].endswith("scores stored")
    autocast = inputs["compute_precision"] != "fp32"
    b = 2 if autocast else 4
    fp32_base = inputs["base_storage_format"] == "fp32"
    converted, rest, per_row, per_column, published_bytes = STORED[inputs["base_storage_format"]]
    state, published_state, temporaries, narrow_state = OPTIMIZERS[inputs["optimizer_choice"]]
    narrow = inputs["adapter_storage"] == "bf16"
    of_adapter = 2 if narrow else 4
    state = narrow_state if narrow else state
    if inputs["adapter_targets"] == "PEFT default":
        on = ["query", "value"]
    elif inputs["adapter_targets"] == "Own choice":
        on = [slot for slot in SLOTS if inputs[f"target_{slot}"] == "On"]
    else:
        on = list(NAMED[inputs["adapter_targets"]])
    width_in = {"query": d, "key": d, "value": d, "output": q, "gate": d, "up": d, "down": ff}
    width_out = {"query": q, "key": kv, "value": kv, "output": d, "gate": ff, "up": ff, "down": d}
    inner = sum(width_in[slot] for slot in on)
    n_adapter = reached * sum(rank * (width_in[slot] + width_out[slot]) for slot in on)
    linear = 2 * d * q + 2 * d * kv + 3 * d * ff

    other_half = (inputs["base_storage_format"], inputs["compute_precision"][:4]) in (
        ("bf16", "fp16"),
        ("fp16", "bf16"),
    )

    # section 2: published
    layer = 6 * t * d * b + 2 * t * kv * b + 2 * t * d * b + 4 * t * ff * b
    segment = 4 * t * ff * b + 6 * t * d * b + 2 * t * kv * b
    if dropout:
        layer += 2 * t * d + t * ff
    if scores:
        layer += batch * nh * s * s * b
        segment += batch * nh * s * s * b
    plain = reached * layer + t * d * b + t * v * b + (4 * t * v + 8 * t * v if autocast else 0)
    again = (reached + 3) * 4 * t * d + segment + t * v * b
    again += (8 * t * v if autocast else 0) + (t * d if dropout else 0)
    workspace = (4.316 + 1.871 * reached) * 4 * t * d
    cache = 2 * (n_adapter + (n_base if fp32_base else 0)) if autocast else 0
    static = n_base * (published_bytes or 0) + of_adapter * n_adapter + published_state * n_adapter
    if checkpointed:
        backward = static + again
        step = static + of_adapter * n_adapter + temporaries * of_adapter * n_adapter
        forward = static + cache + 4 * reached * t * d + segment + t * v * b + (4 * t * v if autocast else 0)
        published = max(backward, step, forward)
    else:
        published = static + of_adapter * n_adapter + cache + plain + workspace
    allowance = published_allowance(inputs, checkpointed)

    # section 3: traced
    gpus = LORA.tables["gpus"]
    card = gpus.row_of(inputs["gpu_choice"]) - 1
    w = inputs["matrix_workspace_bytes_override"]
    w = gpus.columns["matmul_workspace_bytes"][card] if w is None else w
    quantised = converted != rest
    norms_fp32 = quantised and inputs["kbit_preparation"] != "Off"
    rest_fp32 = quantised and inputs["kbit_preparation"] == "On"
    with_head = quantised and inputs["quantised_head"] == "On"
    active = autocast and inputs["uses_autocast"] == "On"
    stream = 4 if fp32_base or norms_fp32 else 2  # bytes of what runs between the layers
    fp32_head = fp32_base or rest_fp32
    again_head = v * d if shape["tied"] and (with_head or unties) else 0
    if not quantised:
        base = (n_base + again_head) * converted
    else:
        rows, columns = q + kv + kv + d + ff + ff + d, 3 * d + q + 2 * d + ff
        grown = n_base / shape["counted"]  # an entered count scales what is converted with all else
        turned = (0 if "mxfp4" in inputs["base_storage_format"] else grown * layers * linear) + (
            v * d if with_head else 0
        )
        base = turned * converted + layers * (rows * per_row + columns * per_column)
        base += (n_base + again_head - turned) * (4 if rest_fp32 else rest)
        if norms_fp32 and not rest_fp32:
            base += 2 * (2 * layers + 1) * d
    if "nested" in inputs["base_storage_format"]:
        base += 4 * 7 * layers
    base += of_position * _MODELS.columns["maximum_positions"][_MODELS.row_of(inputs["base_model"]) - 1] * hd
    if published_bytes is None:  # what is stored, at every moment
        published += base
    of_optimizer = state * n_adapter
    if inputs["optimizer_choice"] == "8-bit Adam":  # small tensors keep both moments in fp32
        sizes = [rank * side[slot] for slot in on for side in (width_in, width_out)]
        of_optimizer += (8 - 2.03125) * reached * sum(size for size in sizes if size < 4096)
    resident = base + of_adapter * n_adapter + of_optimizer + 2 * w + 16 * t
    accumulated = of_adapter * n_adapter if inputs["gradient_accumulation"] > 1 else 0

    # one layer: norms, inputs of adapters and their inner outputs, attention, MLP
    value = 4 if not narrow and not active else 2  # of what an adapter computes with
    same = not dropout and (stream == 2 if narrow else not active and stream == 4)
    each = value + dropout
    down_copy = each * ff if "down" in on else 0
    if fused_adapters:
        copies = 2 * (inner + d)
    elif same:
        copies = value * (
            d * bool({"query", "key", "value"} & set(on)) + d * bool({"gate", "up"} & set(on)) + ff * ("down" in on)
        )
        copies += value * q * (packed and "output" in on)  # the output lies head by head: its projection copies it
    else:
        copies = each * inner
        if packed:  # queries, keys and values share one input
            three = [slot for slot in on if slot in ("query", "key", "value")]
            copies -= each * d * max(0, len(three) - 1)
    kernel = inputs["attention_implementation"]
    wide_heads = stream == 4 and not active and kernel != "FlashAttention 2"  # fp32 queries reach the kernel
    attention = 4 * q + (0 if scores or wide_heads or repeated else 4 * kv) + (0 if scores else 4 * nh)
    attention += 4 * q * repeated
    if packed:
        padded = sum(width_out[slot] for slot in on if slot in ("query", "key", "value"))
        all_three = {"query", "key", "value"} <= set(on)
        attention += (0 if kv < q else 4) * q + (0 if all_three else 2 * padded)
    eager = kernel.startswith("Eager")
    attention += (2 * q if eager else 0) + (12 * q if wide_heads or kernel.startswith("Math") else 0)
    attention += {"Eager, scores stored": 6, "Math, scores stored": 4}.get(kernel, 0) * nh * s
    if same and stream == 4 and not active and not wide_heads and "output" in on:
        attention += 4 * q
    norms = (4 if fused_norms else 8) * d + 8
    inner_value = 2 if fused_adapters else value
    # A window that is no longer than the row: each layer keeps a mask, and keys and values repeated for its queries.
    row = _MODELS.row_of(inputs["base_model"]) - 1
    window = _MODELS.columns["sliding_window"][row]
    masks = 0 < window <= s and kernel.startswith("Flash or") and inputs["training_stack"].endswith("transformers 5")
    repeats = masks and hd < kv < q and not wide_heads and not repeated
    attention += (4 if wide_heads else 2) * s * masks + 4 * (q - kv) * repeats
    one = t * (norms + copies + inner_value * rank * len(on) + attention + (12 if norms_fp32 else 6) * ff)

    boundary = stream * t * d
    offset = 2 * t * d if norms_fp32 and not rest_fp32 else 0  # the embeddings' output stays in 16 bit
    saved = layers * boundary - offset + s * s * masks if checkpointed else reached * one
    kv_of_layer = 0 if own else 2 * stream * t * kv
    final = 2 if fused_norms else 4
    casts = 2 * n_adapter if active and not narrow else 0
    once = (0 if of_position else 4 * s * hd) + t * (final * d + 4)
    frozen_cache = 0.0
    layer_casts = 2 * reached * linear if fp32_base and active else 0
    if not checkpointed:
        once += casts + layer_casts - t * (4 * d + 4)
        if dropout and not fused_adapters:  # masks over the lowest layer's input, which needs no gradient
            readers = len({"query", "key", "value"} & set(on))
            once -= t * d * (min(1, readers) if packed else readers)
        frozen_cache = (layers - reached) * kv_of_layer
        if (
            stream == 4 or scores or repeats
        ):  # the cache stands beside what the layers keep, and only the output holds it
            frozen_cache += reached * kv_of_layer
    if fp32_head and active:
        once += 2 * v * d
    score = 4 if fp32_head and not active else 2
    held_scores = kept * score * t * v + entered(inputs, "held_score_bytes", 4 if litgpt else 0) * t * v
    previous = held_scores + kept * (4 * t * d if checkpointed else layers * kv_of_layer)
    once += kept * frozen_cache
    matrix = dequantised * d * max(ff, q) if quantised else 0
    # LLM.int8 keeps the input of each matrix on its node of the graph: beyond checkpointing, as long as the output
    node_inputs = 2 * t * (reached * (2 * d + q + ff) - d) if "int8" in inputs["base_storage_format"] else 0
    also_saved = node_inputs
    if node_inputs and not checkpointed:
        also_saved -= 2 * t * reached * q  # the attention output is kept anyway
    held = resident + accumulated + saved + once + also_saved
    of_last_step = previous + kept * node_inputs
    moment1 = held + loss_backward * t * v + held_scores + loss_rows
    if fused_loss > 0:
        scores_then = fused_loss * loss_piece * t * v / (1 + (v - 1) // d)
    else:
        scores_then = (loss_forward + 2 - score) * t * v + (loss_shift * t * v if batch > 1 else 0)
    moment2 = held + scores_then + fused_loss * 2 * t * d + (1 - kept) * frozen_cache + of_last_step
    moment2 += 0 if head_freed else stream * t * d
    moment2 += casts if checkpointed else 0
    of_norm = 16 if litgpt else 20  # what the final norm's backward adds
    uncast = narrow and stream == 2  # adapters compute in the 16 bit of what runs between the layers
    if norms_fp32:
        working = t * (12 * ff - down_copy)
    elif uncast and checkpointed:
        dropped = 10 * d + 2 * ff if dropout and "down" in on else 0
        working = t * max(2 * d + 6 * ff - down_copy, dropped)
    elif uncast:
        working = t * max(of_norm * d, 6 * ff - 2 * d - down_copy)
    else:
        if {"up", "down"} & set(on):
            working = t * (10 * d + 6 * ff)
        elif checkpointed:
            working = t * (2 * d + 6 * ff)
        else:  # the final norm's backward, or the last MLP's
            working = t * max(of_norm * d, 6 * ff - 2 * d)
    working_beside = max(working, matrix + t * (4 * d + 2 * ff))
    if checkpointed:
        moment3 = held + working_beside + one - final * t * d + held_scores + (casts + layer_casts) / reached
    else:
        moment3 = held + working_beside + previous
    moment4 = resident + of_adapter * n_adapter * (1 + temporaries * (not one_kernel)) + of_last_step
    traced = max(moment1, moment2, moment3, moment4)

    # section 6: reserved
    per_score, mib = entered(inputs, "reserve_logit_bytes", 4), entered(inputs, "reserve_layer_mib", 14)
    reserve = per_score * t * v + mib * layers * 2**20
    if checkpointed:
        reserve += min(one + working, entered(inputs, "reserve_recomputed_bytes", 14) * t * v)
        reserve += (4 if inputs["optimizer_choice"] == "8-bit Adam" else 8) * n_adapter
        reserve += also_saved / entered(inputs, "reserve_activation_divisor", 6)
    else:
        reserve += saved / entered(inputs, "reserve_activation_divisor", 6)
    return {
        "base_parameter_count": n_base,
        "adapter_parameters": n_adapter,
        "published_activations": again if checkpointed else plain,
        "published_workspace": 0 if checkpointed else workspace,
        "published_cache": cache,
        "published_allocated": published,
        "published_reserved": published + allowance * 1e9,
        "frozen_base_weights": base,
        "exact_static_bytes": base + of_adapter * n_adapter + of_optimizer,
        "resident_memory": resident,
        "layer_activations": one,
        "loss_backward_moment": moment1,
        "loss_forward_moment": moment2,
        "last_layer_moment": moment3,
        "optimizer_moment": moment4,
        "traced_allocated": traced,
        "traced_reserved": traced + reserve,
        "traced_available": 1
        if autocast
        and (active or not fp32_base)
        and not kernel.startswith("Eager")
        and not inputs["base_storage_format"].startswith(("AWQ", "fp8", "mxfp4", "nvfp4"))
        and inputs["optimizer_choice"] in ("Adam", "8-bit Adam")
        and not other_half
        else 0,
    }


def entered(inputs: dict[str, Any], name: str, otherwise: float) -> float:
    value = inputs[name + "_override"]
    return otherwise if value is None else value


def published_allowance(inputs: dict[str, Any], checkpointed: bool) -> float:
    """Context and reserve of the published list, in GB."""
    reserve = ("published_checkpointed_reserve_gb", 5.2) if checkpointed else ("published_reserve_gb", 1.2)
    return entered(inputs, "published_context_gb", 0.6) + entered(inputs, *reserve)


def verdict_by_hand(values: dict[str, float], inputs: dict[str, Any], usable_bytes: float) -> str:
    """Section 6: the three states, by the family that the verdict rests on."""
    usable = inputs["gpu_capacity_override_gb"]
    usable = usable_bytes / 1e9 if usable is None else usable
    others = inputs["other_tenants_gb"]
    if inputs["verdict_basis"] == "Published" or not values["traced_available"]:
        allowance = values["published_reserved"] - values["published_allocated"]
        total = max(values["published_reserved"], values["exact_static_bytes"] + allowance)
        return "fits" if total <= (usable - others) * 1e9 else "does not fit"
    room = (usable - entered(inputs, "outside_pytorch_gb", 0.8) - others) * 1e9
    if values["traced_reserved"] <= room:
        return "fits"
    return "tight" if values["traced_allocated"] <= room else "does not fit"


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-12 * max(abs(a), abs(b))


def llama_inputs(rng: random.Random) -> dict[str, Any]:
    """A random job of LoRA on a model whose layers have the Llama form, in words that by_hand reads."""
    while True:
        inputs = random_inputs(LORA, rng) | {"adapter_method": "LoRA", "gpu_count": 1}
        if inputs["base_model"] in LLAMA_FORM:
            return inputs


def test_arithmetic_by_hand_agrees_on_random_jobs() -> None:
    rng = random.Random(20_260_817)
    gpus = LORA.tables["gpus"]
    verdicts = set()
    for _ in range(400):
        inputs = llama_inputs(rng)
        result = LORA.size(**inputs)
        hand = by_hand(inputs)
        for term, value in hand.items():
            assert close(result[term], value), (term, result[term], value, inputs)
        usable = gpus.columns["usable_bytes"][gpus.row_of(inputs["gpu_choice"]) - 1]
        # Few random cards lie between the peak and the total: a card of one's own may.
        between = (hand["traced_allocated"] + hand["traced_reserved"]) / 2e9 + inputs["other_tenants_gb"] + 0.8
        for given in (inputs, inputs | {"gpu_capacity_override_gb": min(between, 100_000)}):
            verdict = verdict_by_hand(hand, given, usable)
            assert LORA.size(("fit_verdict",), **given)["fit_verdict"] == verdict, given
            verdicts.add(verdict)
    assert verdicts == {"fits", "tight", "does not fit"}


def test_arithmetic_by_hand_agrees_where_rows_reach_a_window() -> None:
    rng = random.Random(4096)
    masked = 0
    for _ in range(400):
        windowed = {"base_model": "mistralai/Mistral-7B-v0.1", "sequence_length": rng.randint(4090, 4110)}
        inputs = random_inputs(LORA, rng) | windowed | {"adapter_method": "LoRA", "adapter_layers": "all"}
        inputs |= {"target_query": "On", "images_per_row": 0, "gpu_count": 1}
        inputs["average_sequence_length"] = None  # drawn for another sequence
        result = LORA.size(**inputs)
        masked += result["masked_layers"] > 0
        for term, value in by_hand(inputs).items():
            assert close(result[term], value), (term, result[term], value, inputs)
    assert masked > 20


def test_arithmetic_by_hand_gives_the_figures_of_the_article() -> None:
    for changes, allocated, reserved, traced, _ in TABLE:
        hand = by_hand(LORA.defaults() | changes)
        assert round(hand["published_allocated"] / 1e9, 4) == allocated
        assert round(hand["published_reserved"] / 1e9, 4) == reserved
        assert not traced or round(hand["traced_allocated"] / 1e9, 4) == traced


def test_items_of_each_family_add_up_to_its_peak() -> None:
    rng = random.Random(3)
    for _ in range(200):
        result = LORA.size(**random_inputs(LORA, rng))
        assert close(result["traced_items"], result["traced_allocated"])
        assert close(result["published_items"], result["published_allocated"])

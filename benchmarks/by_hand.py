"""A million LoRA jobs by hand: what a NumPy programmer writes for the same arithmetic, without the engine.

It is the yardstick of the vectorised engine and a second opinion on its figures. Written from the two accountings
themselves: published and traced, allocated and reserved, and the verdict. Symbols: B, S, T batch, sequence, tokens;
d, q, kv, ff, V widths; L, Lb layers and reached layers; r rank; N, Na parameters of the base and of the adapters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sizing_xlsx.formula.table import Table

Texts = tuple[tuple[str, ...], "np.ndarray[Any, Any]"]  # categories, and a code for each job
RESULTS = ("traced_allocated", "traced_reserved", "published_allocated", "published_reserved", "fit_verdict")
MIB = 2**20
WORDS = np.array(("fits", "tight", "does not fit"), dtype=object)


def columns(tables: Mapping[str, Table], count: int) -> dict[str, Any]:
    """Ten columns of `count` random jobs; texts as (categories, codes). Every job can be sized."""
    random = np.random.default_rng(0)

    def texts(keys: tuple[str, ...]) -> Texts:
        return keys, random.integers(0, len(keys), count)

    models, gpus = tables["models"], tables["gpus"]
    known = tuple(key for key, usable in zip(gpus.keys, gpus.columns["usable_bytes"], strict=True) if usable)
    switches = tables["switches"].keys
    shapes = zip(models.keys, models.columns["layer_form"], models.columns["vision_parameters"], strict=True)
    llama = tuple(key for key, form, tower in shapes if form == "llama" and not tower)
    base_model = llama, random.integers(0, len(llama), count)
    rows = [models.index[key.casefold()] - 1 for key in llama]
    layers = np.array(models.columns["layer_count"])[rows][base_model[1]]
    return {
        "base_model": base_model,
        "gpu_choice": texts(known),
        "base_storage_format": texts(tables["storage_formats"].keys),
        "optimizer_choice": texts(tables["optimizers"].keys),
        "activation_checkpointing": texts(switches),
        "keeps_model_output": texts(switches),
        "batch_size": random.integers(1, 64, count).astype(float),
        "sequence_length": random.integers(16, 8_192, count).astype(float),
        "lora_rank": random.integers(1, 128, count).astype(float),
        "adapter_layers": random.integers(1, layers + 1).astype(float),
    }


def size(tables: Mapping[str, Table], jobs: Mapping[str, Any]) -> dict[str, Any]:
    """RESULTS for every job: bytes, and the verdict in a word."""

    def column(table: str, name: str, texts: Texts) -> Any:
        data, (categories, codes) = tables[table], texts
        rows = np.array([data.index[key.casefold()] - 1 for key in categories])
        return np.array(data.columns[name], dtype=float)[rows][codes]

    def model(name: str) -> Any:
        return column("models", name, jobs["base_model"])

    def optimizer(name: str) -> Any:
        return column("optimizers", name, jobs["optimizer_choice"])

    def storage(name: str) -> Any:
        return column("storage_formats", name, jobs["base_storage_format"])

    B, S, r, Lb = (jobs[key] for key in ("batch_size", "sequence_length", "lora_rank", "adapter_layers"))
    T = B * S
    checkpointed = column("switches", "value", jobs["activation_checkpointing"]) > 0
    kept = column("switches", "value", jobs["keeps_model_output"])
    d, L, nh, hd = model("hidden_size"), model("layer_count"), model("attention_heads"), model("head_dimension")
    ff, V, q, kv = model("mlp_width"), model("vocabulary_size"), nh * hd, model("kv_heads") * hd
    fp32, temporaries = storage("fp32"), optimizer("temporary_copies")

    # Parameters: matrices and biases of the layers, embeddings and head, norms; adapters on all seven modules.
    matrices = 2 * d * (q + kv) + 3 * d * ff
    biases = model("qkv_bias") * (q + 2 * kv) + model("output_bias") * d + model("mlp_bias") * (d + 2 * ff)
    N = L * (matrices + biases) + (2 - model("tied")) * V * d + (2 * L + 1) * d
    inputs = 5 * d + q + ff
    Na = r * Lb * (inputs + q + 2 * kv + 2 * d + 2 * ff)

    # Traced: what is resident, what forward keeps, and the four moments that can set the peak.
    converted = storage("converts_linears") * L * matrices
    base = (N - converted) * storage("unquantised_bytes") + converted * storage("bytes_per_parameter")
    base += storage("bytes_per_output_row") * L * (2 * d + q + 2 * kv + 2 * ff) * storage("converts_linears")
    base += storage("bytes_per_input_column") * L * inputs + storage("bytes_per_matrix") * 7 * L
    small = sum(w * (r * w < 4096) for w in (d, d, d, q, d, d, ff, q, kv, kv, d, ff, ff, d))
    narrow = optimizer("small_tensor_bytes") * r * Lb * small
    workspace = column("gpus", "matmul_workspace_bytes", jobs["gpu_choice"])
    exact = base + 4 * Na + optimizer("state_bytes") * Na + narrow
    resident = exact + 2 * workspace + 16 * T
    layer = T * (8 * d + 8 + 2 * inputs + 14 * r + 4 * q + 4 * nh + 4 * kv + 6 * ff)
    layers = Lb * np.where(checkpointed, (2 + 2 * fp32) * T * d, layer)
    cache = (1 + fp32) * 4 * T * kv
    once = fp32 * 2 * V * d + 4 * S * hd
    layer_casts = 2 * Na / Lb + fp32 * 2 * matrices
    once += np.where(checkpointed, 4 * T * (d + 1), Lb * layer_casts)
    held = np.where(checkpointed, 0, (L - Lb + fp32 * Lb) * cache)
    nodes = storage("kept_input_bytes") * T * (Lb * (2 * d + q + ff) - d)  # LLM.int8 holds its modules' inputs
    apart = nodes - np.where(checkpointed, 0, storage("kept_input_bytes") * T * Lb * q)
    saved = resident + layers + once + kept * held + apart
    scores = T * V
    output = kept * (2 * scores + np.where(checkpointed, 4 * T * d, L * cache))
    previous = output + kept * nodes
    working = T * (10 * d + 6 * ff)
    again = layer - 4 * T * d + kept * 2 * scores + layer_casts
    loss_backward = saved + (12 + 2 * kept) * scores
    loss_forward = saved + 10 * scores + (2 + 2 * fp32) * T * d + (1 - kept) * held + checkpointed * 2 * Na + previous
    dequantised = storage("quantised") * 2 * d * np.maximum(ff, q)
    beside = np.maximum(working, dequantised + T * (4 * d + 2 * ff))
    last_layer = saved + beside + np.where(checkpointed, again, output)
    step = resident + 4 * Na * (1 + temporaries) + previous
    traced = np.maximum(np.maximum(loss_backward, loss_forward), np.maximum(last_layer, step))
    recomputing = np.minimum(layer + working, 14 * scores) + optimizer("reserve_bytes") * Na + apart / 6
    reserved = traced + 4 * scores + 14 * MIB * L + np.where(checkpointed, recomputing, layers / 6)

    # Published: the articles' accounting.
    frozen = np.where(storage("published_bytes") > 0, N * storage("published_bytes"), base)
    static = frozen + (4 + optimizer("published_state_bytes")) * Na
    casts = 2 * (Na + fp32 * N)
    segment = 2 * T * (6 * d + 2 * kv + 4 * ff)
    boundary = 4 * T * d
    plain = static + 4 * Na + casts + Lb * (segment + 4 * T * d) + 2 * T * d + 14 * scores
    plain += (4.316 + 1.871 * Lb) * boundary
    backward = static + (Lb + 3) * boundary + segment + 10 * scores
    forward = static + casts + Lb * boundary + segment + 6 * scores
    checkpointed_peak = np.maximum(np.maximum(backward, forward), static + 4 * Na * (1 + temporaries))
    published = np.where(checkpointed, checkpointed_peak, plain)
    allowance = np.where(checkpointed, 5.8e9, 1.8e9)
    published_reserved = published + allowance

    # The verdict rests on the traced list where the optimizer was traced and a 16-bit base is in bf16, as computed.
    rests = (optimizer("traced") > 0) & (storage("half_type") < 2) & (storage("traced") > 0)
    usable = column("gpus", "usable_bytes", jobs["gpu_choice"])
    fits = np.where(rests, reserved <= usable - 0.8e9, np.maximum(published, exact) + allowance <= usable)
    code = np.where(fits, 0, np.where(rests & (traced <= usable - 0.8e9), 1, 2))
    return dict(zip(RESULTS, (traced, reserved, published, published_reserved, WORDS[code]), strict=True))

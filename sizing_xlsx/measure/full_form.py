"""What a layer of a family keeps when everything is trained: an entry of full_forms.toml, from the family's own traces.

Three streams are told apart, for they save different tensors: 16-bit weights, with or without autocast; fp32 weights
under autocast; fp32 weights and compute. The 16-bit copies of fp32 matrices are left out: formulas count them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..presets.full_forms import STREAMS
from . import derive, layer_form
from .run import Run, make_run
from .saved import Kept, layer_path

_FIELDS = {  # of a run, by stream
    "half": {"parameter_storage": "bf16", "uses_autocast": "Off"},
    "autocast": {"parameter_storage": "fp32", "uses_autocast": "On"},
    "fp32": {"parameter_storage": "fp32", "uses_autocast": "Off", "compute_precision": "fp32"},
}


def full_form_of(model: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a model's layer form: source and the sums of each stream that was traced.

    model: what a run calls it, {"base_model": ...} or {"config": ...}. Takes nine traces of small shapes. A stream
    whose tensors fit no width is left out. Raises CannotRun where the family cannot be traced at all.
    """
    entry: dict[str, Any] = {"source": _source()}
    for stream in STREAMS:
        run = make_run("full", {**model, **_FIELDS[stream], "keeps_model_output": "Off"}, id="full form")
        try:
            entry |= {f"{stream}_{part}": one for part, one in _parts(run).items() if one}
        except layer_form.CannotWrite:
            entry = {key: value for key, value in entry.items() if not key.startswith(f"{stream}_")}
    return entry


def _source() -> str:
    return layer_form.source().rpartition(", peft")[0]


def _parts(run: Run) -> dict[str, layer_form.Sum]:
    """layer, mlp, moe and outer of one stream: bytes a token by width."""
    run, _ = layer_form.attention(run)
    smalls = derive.traced_small(run)
    own_head = smalls[0].run["head_dimension_override"] is not None
    wide = own_head and any(small.widths.get("q") != small.widths["d"] for small in smalls)
    kinds = [_of_kind(found, wide) for found in derive.lists_of(smalls, dropped=True)]
    return {
        "layer": max((kind["layer"] for kind in kinds), key=lambda one: sum(one.values())),
        "mlp": next((kind["mlp"] for kind in kinds if kind["mlp"]), {}),
        "moe": next((kind["moe"] for kind in kinds if kind["moe"]), {}),
        "outer": layer_form.solved([(small, _outer(small)) for small in smalls])[0],
    }


def _outer(small: derive.Small) -> list[Kept]:
    """What is kept outside the layers but tables of positions and output scores, when the output is gone."""
    recorder, batch = small.traced.recorder, (small.run["batch_size"], small.run["sequence_length"])
    alive = recorder.alive_after(small.traced.marks["backward"][0])
    return [
        Kept(found.module, found.operation, found.dtype, found.exact)
        for found in alive
        if found.phase == "forward" and found.shape[:2] == batch and found.dtype != "int64"
        if layer_path(found.module, small.prefix) is None and found.shape[-1] != derive.VOCABULARY
    ]


def _of_kind(found: derive.LayerList, wide: bool) -> dict[str, layer_form.Sum]:
    """layer, mlp and moe of one kind of layer. The 16-bit copies of weights are no multiple of the tokens."""
    unsolved = [text for text in found.unsolved if ", _to_copy, bfloat16" not in text]
    if unsolved:
        raise layer_form.CannotWrite(f"what a layer keeps fits no width of the model: {unsolved[0]}")
    growing = derive.LayerList(found.layers, [entry for entry in found.entries if entry.per_token], [])
    sums = layer_form.by_part(growing, wide)
    return {
        "layer": layer_form.plus(sums.get("norms", {}), sums.get("attention", {})),
        "mlp": sums.get("mlp", {}),
        "moe": layer_form.plus(sums.get("moe", {}), sums.get("shared", {})),
    }

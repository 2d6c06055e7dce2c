"""Layer forms: what one decoder layer of a model family keeps for backward under LoRA, as plain coefficients.

A part of a form is a sum: coefficient times width. Widths have short names, and a product of widths is their names
joined by "_": `nh_S = 6` is six bytes times heads times sequence. A form's parts are bytes a token, but those whose
name ends in "once" or "layer": these are bytes a layer.

    d hidden size            q query width: heads times head dimension     o value width of all heads (latent attention)
    kv key or value width    nh heads      nkv KV heads                    hd head dimension
    ff MLP width             e width of one expert    s width of the shared experts    k experts a token    E experts
    ql, kvl query and key-value latent      rope rope dimension of latent attention
    S sequence               V vocabulary  one 1

The file presets/layer_forms.toml says where each form comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..paths import presets_folder
from .names import one_line, shown
from .toml_file import read_toml

WIDTHS = frozenset(
    ("d", "q", "o", "kv", "nh", "nkv", "hd", "ff", "e", "s", "k", "E", "ql", "kvl", "rope", "S", "V", "one")
)

# What each part is; a form states those it has. In bytes a token, unless it says a layer or once.
PARTS = {
    "norms": "inputs and statistics of the layer's norms",
    "attention": "queries, keys, values, attention output, log-sum-exp, norms of queries and keys",
    "mlp": "a dense MLP",
    "moe": "router and routed experts; takes the place of the dense MLP on MoE layers",
    "shared": "the shared experts of MoE layers",
    "layer": "bytes a layer, whatever the tokens: fp32 copies of norm weights, seeds",
    "moe_layer": "the same of a MoE layer, in addition",
    "plain": "change on layers without rotary positions",
    "plain_layer": "the same, bytes a layer",
    "cache": "what only the model's output holds, the KV cache: it goes when the loop drops the output",
    "uncached": "change without a KV cache: checkpointing, use_cache off",
    "uncached_layer": "the same, bytes a layer",
    "masked": "change when the layer gets a mask: a window shorter than the sequence, padded batches",
    "masked_layer": "the same, bytes a layer",
    "checkpointed_masks": "checkpointed, scores stored by every kernel: the masks of all kinds of layers, held once",
    "eager": "change with attention that stores its scores",
    "eager_layer": "the same, bytes a layer",
    "repeated_cache": "cache in addition where a mask or eager attention repeats keys and values for the query heads",
    "windowed_layer": "cache in addition of a layer with a window, whatever the sequence, bytes a layer",
    "lowest": "change of the lowest reached layer, whose input needs no gradient",
    "lowest_layer": "the same, bytes a layer",
    "final_norm": "the norm after the last layer",
    "final_norm_once": "the same, bytes once",
    "fp32": "change with a base in fp32",
    "fp32_layer": "the same, bytes a layer, without the 16-bit copies of frozen matrices",
    "fp32_lowest": "change of what the lowest reached layer lacks, with a base in fp32",
    "fp32_moe": "change of a MoE layer with a base in fp32, in addition",
    "fp32_moe_layer": "the same, bytes a layer: the router's 16-bit copy",
    "fp32_cache": "cache in addition with a base in fp32",
    "kbit": "change with a base prepared for k-bit training: what is not quantised becomes fp32",
    "kbit_moe": "change of a MoE layer then, in addition",
    "kbit_moe_layer": "the same, bytes a layer: the router's 16-bit copy",
    "kbit_cache": "cache in addition then",
    "kbit_working": "working then, checkpointed or not",
    "boundary": "checkpointed: what a layer's input takes more, where what runs between layers is fp32 anyway",
    "lowest_boundary": "the same of the lowest layer's input, in addition",
    "working": "checkpointed: what backward adds to one layer made anew; the final norm's part is gone",
    "norm_working": "not checkpointed: what the final norm's backward adds to all that is kept",
    "last_layer_working": "not checkpointed: what the last layer's backward adds to what is kept, less what is gone",
    "forward_working": "frozen as a whole: what the MLP works on in forward, where it is wider than attention",
    "loss_forward": "what the loss's forward holds of scores and their copies, and the head's input",
    "loss_backward_kept": "what the loss's backward holds of scores, when the loop keeps the output",
    "loss_backward_dropped": "the same, when the loop drops it",
    "rope_layer": "copies of them that each layer keeps, bytes a layer; none where it is checkpointed",
    "rope_once": "tables of rotary positions, bytes once; twice that with an fp32 or k-bit prepared base",
}


class Slot(NamedTuple):
    """Where an adapter can sit. modules: how the names of its modules end; input and output: sums of widths.

    on: "all" layers, "dense" ones or "moe" ones. rank, times: an adapter on fused experts has a multiple of the rank
    and one pair of matrices an expert. lowest: its input needs a gradient in the lowest reached layer too.
    """

    modules: tuple[str, ...]
    input: Mapping[str, int]
    output: Mapping[str, int]
    on: str = "all"
    rank: int = 1
    times: str = "one"
    lowest: bool = True


class LayerForm(NamedTuple):
    """One layer form: the families that have it, its parts by name, its slots by role, PEFT's own choices of slots."""

    name: str
    families: tuple[str, ...]
    source: str
    parts: Mapping[str, Mapping[str, int]]
    slots: Mapping[str, Slot]
    default_targets: tuple[str, ...]
    all_linear: tuple[str, ...]


def read_layer_forms(path: Path | None = None) -> dict[str, LayerForm]:
    """The layer forms of layer_forms.toml by name. Raises ValueError, one sentence with the file and the place."""
    path = path or presets_folder() / "layer_forms.toml"
    where = one_line(str(path))
    content = read_toml(path)
    return {name: _form(name, entry, f"{where}: [{one_line(name)}]") for name, entry in content.items()}


def _form(name: str, entry: Any, place: str) -> LayerForm:
    rest = dict(_table(entry, place))
    slots = {role: _slot(slot, f"{place}, slot {role}") for role, slot in _table(rest.pop("slots", {}), place).items()}
    texts = {key: tuple(_texts(rest.pop(key, []), key, place)) for key in ("families", "default_targets", "all_linear")}
    for key in ("default_targets", "all_linear"):
        unknown = [role for role in texts[key] if role not in slots]
        if unknown:
            raise ValueError(f"{place}: {key} names {shown(unknown[0])}; it should name slots of the form")
    source = rest.pop("source", None)
    if not isinstance(source, str):
        raise ValueError(
            f"{place}: source is {shown(source)}; it should be a text that says where the figures come from"
        )
    unknown = [part for part in rest if part not in PARTS]
    if unknown:
        raise ValueError(f"{place} has {shown(unknown[0])}; a part is one of {', '.join(PARTS)}")
    parts = {part: sum_of(rest[part], f"{place}, {part}") for part in rest}
    return LayerForm(name, source=source, parts=parts, slots=slots, **texts)


def _slot(entry: Any, place: str) -> Slot:
    slot = _table(entry, place)
    unknown = [key for key in slot if key not in Slot._fields]
    if unknown:
        raise ValueError(f"{place} has {shown(unknown[0])}; a slot has {', '.join(Slot._fields)}")
    made = Slot(
        tuple(_texts(slot.get("modules", []), "modules", place)),
        sum_of(slot.get("input"), f"{place}, input"),
        sum_of(slot.get("output"), f"{place}, output"),
        slot.get("on", "all"),
        slot.get("rank", 1),
        slot.get("times", "one"),
        slot.get("lowest", True),
    )
    if made.on not in ("all", "dense", "moe"):
        raise ValueError(f'{place}: on is {shown(made.on)}; it should be "all", "dense" or "moe"')
    return made


def sum_of(entry: Any, place: str) -> dict[str, int]:
    """Coefficients by width, checked."""
    for name, coefficient in _table(entry, place).items():
        unknown = [width for width in name.split("_") if width not in WIDTHS]
        if unknown:
            raise ValueError(
                f"{place} names the width {shown(unknown[0])}; it should be one of {', '.join(sorted(WIDTHS))}"
            )
        if isinstance(coefficient, bool) or not isinstance(coefficient, int):
            raise ValueError(f"{place}: {name} is {shown(coefficient)}; it should be a whole number of bytes")
    return dict(entry)


def _table(entry: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError(f"{place} is {shown(entry)}; it should be a table")
    return entry


def _texts(entry: Any, key: str, place: str) -> list[str]:
    if not isinstance(entry, list) or not all(isinstance(text, str) for text in entry):
        raise ValueError(f"{place}: {key} is {shown(entry)}; it should be a list of texts")
    return entry

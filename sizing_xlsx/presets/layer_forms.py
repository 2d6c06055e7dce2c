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

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..paths import presets_folder
from .names import one_line, shown

WIDTHS = frozenset(
    ("d", "q", "o", "kv", "nh", "nkv", "hd", "ff", "e", "s", "k", "E", "ql", "kvl", "rope", "S", "V", "one")
)
ADAPTER_BYTES, DROPOUT_BYTES = 2, 1  # bf16 copies of an adapter's input and inner output; a mask byte an input value

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
    "working": "checkpointed: what backward adds to one layer made anew; the final norm's part is gone",
    "norm_working": "not checkpointed: what the final norm's backward adds to all that is kept",
    "last_layer_working": "not checkpointed: what the last layer's backward adds to what is kept, less what is gone",
    "forward_working": "frozen as a whole: what the MLP works on in forward, where it is wider than attention",
    "loss_forward": "what the loss's forward holds of scores and their copies, and the head's input",
    "loss_backward_kept": "what the loss's backward holds of scores, when the loop keeps the output",
    "loss_backward_dropped": "the same, when the loop drops it",
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


class Layer(NamedTuple):
    """Which layer of a form, and how it runs.

    moe: a MoE layer. plain: without rotary positions. windowed: it has a window. masked: the window is shorter than
    the sequence, or batches are padded. cached: the model keeps a KV cache. held: the loop holds the model's output.
    """

    moe: bool = False
    plain: bool = False
    windowed: bool = False
    masked: bool = False
    eager: bool = False
    cached: bool = True
    held: bool = True
    lowest: bool = False


def value(part: Mapping[str, int], widths: Mapping[str, int]) -> int:
    """A sum of coefficients times widths. Raises ValueError for a width that is not given."""
    total = 0
    for name, coefficient in part.items():
        product = coefficient
        for width in name.split("_"):
            if width != "one":
                product *= _given(widths, width)
        total += product
    return total


def _given(widths: Mapping[str, int], width: str) -> int:
    if width not in widths:
        raise ValueError(f"the width {width} is not given; the layer form needs it")
    return widths[width]


def parts_of(layer: Layer, shared_heads: bool) -> list[str]:
    """The names of the parts that add up to a layer. shared_heads: query heads share key and value heads."""
    names = ["norms", "attention", "layer", *(("moe", "shared", "moe_layer") if layer.moe else ("mlp",))]
    names += ["plain", "plain_layer"] if layer.plain else []
    repeats = layer.masked or layer.eager
    if layer.eager:
        names += ["eager", "eager_layer"]
    elif layer.masked:
        names += ["masked", "masked_layer"]
    if not layer.cached:
        names += [] if repeats else ["uncached", "uncached_layer"]
    else:
        names += ["cache", *(["windowed_layer"] if layer.windowed else [])] if layer.held else []
        names += ["repeated_cache"] if layer.held and repeats and shared_heads else []
    return names + (["lowest", "lowest_layer"] if layer.lowest else [])


def layer_bytes(form: LayerForm, layer: Layer, widths: Mapping[str, int], tokens: int) -> int:
    """What one layer keeps for backward without its adapters, in bytes.

    widths: those of WIDTHS that the form names. tokens: batch size times sequence length. Raises ValueError for a
    width that is not given.
    """
    names = parts_of(layer, _given(widths, "nkv") < _given(widths, "nh"))
    total = 0
    for name in names:
        times = 1 if name.endswith(("layer", "once")) else tokens
        total += times * value(form.parts.get(name, {}), widths)
    return total


def slots_on(form: LayerForm, roles: Collection[str], moe: bool) -> dict[str, Slot]:
    """The slots of these roles that exist on a dense or on a MoE layer."""
    on = ("all", "moe" if moe else "dense")
    return {role: slot for role, slot in form.slots.items() if role in roles and slot.on in on}


def adapter_parameters(
    form: LayerForm, roles: Collection[str], rank: int, widths: Mapping[str, int], moe: bool = False
) -> int:
    """Adapter parameters of one layer: rank times input plus output width of each slot."""
    return sum(
        slot.rank * rank * value({slot.times: 1}, widths) * (value(slot.input, widths) + value(slot.output, widths))
        for slot in slots_on(form, roles, moe).values()
    )


def adapter_bytes(
    form: LayerForm,
    roles: Collection[str],
    rank: int,
    widths: Mapping[str, int],
    tokens: int,
    *,
    moe: bool = False,
    lowest: bool = False,
    dropout: bool = False,
) -> int:
    """What a layer keeps for the adapters of its linear modules, in bytes.

    A token: a bf16 copy of each input, with a mask byte under dropout, and each inner output. A layer: the bf16 copies
    of the adapters, but of the lowest layer's first matrices where nothing below needs a gradient. Adapters on fused
    experts keep more and are not counted: ValueError.
    """
    total = 0
    for role, slot in slots_on(form, roles, moe).items():
        if slot.rank > 1 or slot.times != "one":
            raise ValueError(f"{role} lies on fused experts; what an adapter keeps there is not known")
        wide, out = value(slot.input, widths), value(slot.output, widths)
        passes_on = slot.lowest or not lowest  # what lies below needs a gradient
        total += tokens * ((ADAPTER_BYTES + DROPOUT_BYTES * (dropout and passes_on)) * wide + ADAPTER_BYTES * rank)
        total += ADAPTER_BYTES * rank * (out + passes_on * wide)
    return total


def read_layer_forms(path: Path | None = None) -> dict[str, LayerForm]:
    """The layer forms of layer_forms.toml by name. Raises ValueError, one sentence with the file and the place."""
    import tomllib

    path = path or presets_folder() / "layer_forms.toml"
    where = one_line(str(path))
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, not TOML
        raise ValueError(f"{where} is not TOML: {one_line(str(error))}") from None
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
    parts = {part: _sum(rest[part], f"{place}, {part}") for part in rest}
    return LayerForm(name, source=source, parts=parts, slots=slots, **texts)


def _slot(entry: Any, place: str) -> Slot:
    slot = _table(entry, place)
    unknown = [key for key in slot if key not in Slot._fields]
    if unknown:
        raise ValueError(f"{place} has {shown(unknown[0])}; a slot has {', '.join(Slot._fields)}")
    made = Slot(
        tuple(_texts(slot.get("modules", []), "modules", place)),
        _sum(slot.get("input"), f"{place}, input"),
        _sum(slot.get("output"), f"{place}, output"),
        slot.get("on", "all"),
        slot.get("rank", 1),
        slot.get("times", "one"),
        slot.get("lowest", True),
    )
    if made.on not in ("all", "dense", "moe"):
        raise ValueError(f'{place}: on is {shown(made.on)}; it should be "all", "dense" or "moe"')
    return made


def _sum(entry: Any, place: str) -> dict[str, int]:
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

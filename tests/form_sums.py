"""What a layer form adds up to, in plain sums: the reader that the formulas are held against."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sizing_xlsx.presets.layer_forms import LayerForm, Slot

ADAPTER_BYTES, DROPOUT_BYTES = 2, 1  # bf16 copies of an adapter's input and inner output; a mask byte an input value


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


def parts_of(layer: Layer, heads: int, kv_heads: int) -> list[str]:
    """The names of the parts that add up to a layer, by its heads.

    Eager attention repeats keys and values wherever query heads share them; a mask does where there are several heads
    of them, for one alone is widened without a copy.
    """
    names = ["norms", "attention", "layer", *(("moe", "shared", "moe_layer") if layer.moe else ("mlp",))]
    names += ["rope_layer", *(["plain", "plain_layer"] if layer.plain else [])]
    repeats = kv_heads < heads and (layer.eager or (layer.masked and kv_heads > 1))
    if layer.eager:
        names += ["eager", "eager_layer"]
    elif layer.masked:
        names += ["masked", "masked_layer"]
    if not layer.cached:
        names += [] if repeats or layer.eager else ["uncached", "uncached_layer"]
    else:
        names += ["cache", *(["windowed_layer"] if layer.windowed else [])] if layer.held else []
        names += ["repeated_cache"] if layer.held and repeats else []
    return names + (["lowest", "lowest_layer"] if layer.lowest else [])


def layer_bytes(form: LayerForm, layer: Layer, widths: Mapping[str, int], tokens: int) -> int:
    """What one layer keeps for backward without its adapters, in bytes.

    widths: those of WIDTHS that the form names. tokens: batch size times sequence length. Raises ValueError for a
    width that is not given.
    """
    kv_heads = _given(widths, "nkv")
    total = 0
    for name in parts_of(layer, _given(widths, "nh"), kv_heads):
        part = form.parts.get(name, {})
        if name == "masked" and kv_heads == 1:  # nothing is repeated
            part = {width: part[width] for width in part if width == "S"}
        total += (1 if name.endswith(("layer", "once")) else tokens) * value(part, widths)
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

"""Which layers of a model attend to a window, and which are mixtures of experts: one small rule for each way of
saying so in a config.json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .names import counted, shown

if TYPE_CHECKING:
    from .config import Fields

Flags = list[bool]  # one for each layer, from the bottom

WINDOWED = {"sliding_attention": True, "chunked_attention": True, "full_attention": False}


class Pattern(NamedTuple):
    """Layers i with i >= offset and (i - offset) % period == 0; period 0: none, or no such pattern (fits False)."""

    period: int
    offset: int
    number: int  # of such layers
    fits: bool


class Windows(NamedTuple):
    """How layers attend. kind: none, sliding or chunked; tokens: the window, 0 for none; full: the full layers."""

    kind: str
    tokens: int
    full: Pattern


def pattern(flags: Sequence[bool]) -> Pattern:
    """The period and offset of the layers that a list marks."""
    marked = [layer for layer, flag in enumerate(flags) if flag]
    if not marked:
        return Pattern(0, 0, 0, True)
    offset = marked[0]
    period = marked[1] - offset if len(marked) > 1 else max(len(flags), 1)
    if marked != list(range(offset, len(flags), period)):
        return Pattern(0, 0, len(marked), False)
    return Pattern(period, offset, len(marked), True)


# ---------------------------------------------------------------------- windows
def windows(fields: Fields, rule: dict[str, Any], layers: int) -> Windows:
    """Which layers see everything, by the rule of the family; see presets/families.toml."""
    everything = Windows("none", 0, Pattern(1, 0, layers, True))
    if not rule or rule["rule"] == "none":
        return everything
    stated = _stated_types(fields, layers) if rule.get("layer_types") else None  # refused where wrong, used or not
    if "switch" in rule and not fields.flag(rule["switch"], 0):
        return everything
    tokens = _window(fields, rule)
    if not tokens:
        return everything
    windowed = stated if stated is not None else _WINDOW_RULES[rule["rule"]](fields, rule, layers)
    if not any(windowed):
        return everything
    return Windows(rule.get("kind", "sliding"), tokens, pattern([not flag for flag in windowed]))


def _window(fields: Fields, rule: dict[str, Any]) -> int:
    """Tokens of the window; null is none, and so is 0."""
    key = rule.get("window", "sliding_window")
    if key in fields.raw and fields.raw[key] is None:
        return 0
    default = fields.family.defaults.get("sliding_window", 0)
    return fields.whole(key, default, low=0, high=fields.MAXIMUM_POSITIONS, ours="sliding_window")


def _stated_types(fields: Fields, layers: int) -> Flags | None:
    kinds = fields.raw.get("layer_types")
    if kinds is None:
        return None
    if not isinstance(kinds, list) or len(kinds) != layers:
        said = f"has {counted(len(kinds), 'entry', 'entries')}" if isinstance(kinds, list) else f"is {shown(kinds)}"
        raise ValueError(
            f"{fields.place('layer_types')} {said}; it should be a list with one for each of {layers:,} layers"
        )
    for kind in kinds:
        if not isinstance(kind, str) or kind not in WINDOWED:
            right = ", ".join(sorted(WINDOWED))
            raise ValueError(f"{fields.place('layer_types')} holds {shown(kind)}; each should be one of {right}")
    return [WINDOWED[kind] for kind in kinds]


def _all(fields: Fields, rule: dict[str, Any], layers: int) -> Flags:
    return [True] * layers


def _all_but_every(fields: Fields, rule: dict[str, Any], layers: int) -> Flags:
    """Every n-th layer is full."""
    every = fields.whole(rule["field"], rule["default"]) if "field" in rule else rule["default"]
    return [(layer + 1) % every != 0 for layer in range(layers)]


def _from_layer(fields: Fields, rule: dict[str, Any], layers: int) -> Flags:
    """The layers from one on."""
    first = fields.whole(rule["field"], rule["default"], low=0)
    return [layer >= first for layer in range(layers)]


def _every_other_below(fields: Fields, rule: dict[str, Any], layers: int) -> Flags:
    """Every other layer, beginning with the lowest, below one."""
    below = fields.whole(rule["field"], rule["default"], low=0)
    return [layer % 2 == 0 and layer < below for layer in range(layers)]


def _with_rope(fields: Fields, rule: dict[str, Any], layers: int) -> Flags:
    """Layers that rotate positions: a list of 0 and 1, or all but every n-th."""
    stated = fields.raw.get(rule["field"])
    if stated:
        if not isinstance(stated, list) or len(stated) != layers or not all(flag in (0, 1) for flag in stated):
            raise ValueError(
                f"{fields.place(rule['field'])} is {shown(stated)}; "
                f"it should be a list of 0 and 1, one for each of {layers:,} layers"
            )
        return [bool(flag) for flag in stated]
    every = fields.whole(rule["interval_field"], rule["default"])
    return [(layer + 1) % every != 0 for layer in range(layers)]


def _without_rope(fields: Fields, rule: dict[str, Any], layers: int) -> Flags:
    return [not flag for flag in _with_rope(fields, rule, layers)]


_WINDOW_RULES: dict[str, Callable[[Fields, dict[str, Any], int], Flags]] = {
    "all": _all,
    "all_but_every": _all_but_every,
    "from_layer": _from_layer,
    "every_other_below": _every_other_below,
    "with_rope": _with_rope,
    "without_rope": _without_rope,
}


# ---------------------------------------------------------------------- experts
def expert_layers(fields: Fields, rule: dict[str, Any], layers: int) -> Pattern:
    """Which layers are mixtures of experts, by the rule of the family."""
    return pattern(_EXPERT_RULES[rule["rule"]](fields, rule, layers)) if rule else Pattern(0, 0, 0, True)


def _sparse_step(fields: Fields, rule: dict[str, Any], layers: int) -> Flags:
    """Every n-th layer but those that are listed as dense."""
    step = fields.whole("decoder_sparse_step", 1)
    dense = _layer_list(fields, "mlp_only_layers", layers) or ()
    return [(layer + 1) % step == 0 and layer not in dense for layer in range(layers)]


def _interleaved(fields: Fields, rule: dict[str, Any], layers: int) -> Flags:
    """Those listed, else every n-th layer."""
    listed = _layer_list(fields, rule["field"], layers)
    if listed is not None:
        return [layer in listed for layer in range(layers)]
    step = fields.whole(rule["step_field"], rule["default"])
    return [(layer + 1) % step == 0 for layer in range(layers)]


def _is_layer(layer: object, layers: int) -> bool:
    return isinstance(layer, int) and not isinstance(layer, bool) and 0 <= layer < layers


def _layer_list(fields: Fields, field: str, layers: int) -> set[int] | None:
    listed = fields.raw.get(field)
    if listed is None:
        return None
    if not isinstance(listed, list) or not all(_is_layer(layer, layers) for layer in listed):
        wrong = (
            next((layer for layer in listed if not _is_layer(layer, layers)), None) if isinstance(listed, list) else 0
        )
        holds = f", and it holds {shown(wrong)}" if isinstance(listed, list) else ""
        raise ValueError(
            f"{fields.place(field)} is {shown(listed)}; "
            f"it should be a list of layers, each from 0 to {layers - 1:,}{holds}"
        )
    return set(listed)


_EXPERT_RULES: dict[str, Callable[[Fields, dict[str, Any], int], Flags]] = {
    "all": _all,
    "from_layer": _from_layer,
    "sparse_step": _sparse_step,
    "interleaved": _interleaved,
}

"""A layer form of a model family, derived: the row of layer_forms.toml that the family's own traces give.

What layers keep comes from derive.py, in the runs that a form tells apart: as it is, with eager attention, without a
KV cache, with the output dropped. What works beside it is read off at the moments that the formulas name, at the same
small shapes. A form that formulas could not add up is refused, never rounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

from ..presets.catalogue import not_added
from ..presets.layer_forms import PARTS
from ..presets.layers import WINDOWED
from . import derive, models
from .derive import SHAPES, Entry, LayerList, Small
from .models import CannotRun
from .run import Run, make_run
from .saved import Kept, layer_path

Sum = dict[str, int]  # width, as layer_forms.toml writes it -> bytes

# A width of derive.py, as layer_forms.toml writes it.
_WIDTHS: dict[str, Sum] = {
    "d": {"d": 1}, "q": {"q": 1}, "kv": {"kv": 1}, "nh": {"nh": 1}, "KV heads": {"nkv": 1}, "head": {"hd": 1},
    "ff": {"ff": 1}, "1": {"one": 1}, "q + 2 kv": {"q": 1, "kv": 2}, "experts": {"E": 1}, "experts per token": {"k": 1},
    "experts per token x ff": {"k_e": 1}, "experts per token x d": {"k_d": 1}, "experts x ff": {"E_e": 1},
    "experts x d": {"E_d": 1}, "shared": {"s": 1}, "q_lora_rank": {"ql": 1}, "kv_lora_rank": {"kvl": 1},
    "nh x key head": {"q": 1}, "nh x value head": {"o": 1}, "kv_lora_rank + rope head": {"kvl": 1, "rope": 1},
    "nh x (nope + value head)": {"q": 1, "o": 1, "nh_rope": -1}, "rope head": {"rope": 1}, "sequence": {"S": 1},
    "sequence x nh": {"nh_S": 1}, "(sequence + 1) x nh": {"nh_S": 1, "nh": 1}, "sequence x head": {"S_hd": 1},
    "sequence x rope head": {"S_rope": 1},
}  # fmt: skip
EAGER = "Eager, scores stored"
WINDOW = 100  # tokens, fewer than the rows of every small shape have
PEAKS = 16  # moments of a stretch that may be its largest at shapes of other proportions
WORDS = 9973  # a vocabulary whose scores outweigh small layers
_TINY = ("one", "k", "E", "nh", "nkv")  # widths of a few bytes a token, which the formulas of a moment leave out
_TYPICAL = {"d": 4, "q": 4, "o": 4, "kv": 1, "ff": 11, "k_e": 11, "k_d": 8, "E_e": 40, "E_d": 40, "s": 6}  # proportions
_ROLES = ("query_latent", *models.ROLES, *(f"shared_{role}" for role in models.ROLES))
_OF_HEADS = {("query", "output"): "q", ("key", "output"): "kv", ("value", "output"): "kv", ("output", "input"): "q"}
_AMBIGUOUS = ("dense", "c_attn", "c_proj", "c_fc")  # modules that more than one part of a layer may have
_SIDES = (
    *("d", "q + 2 kv", "q", "kv", "ff", "experts", "shared", "q_lora_rank", "kv_lora_rank"),
    *("kv_lora_rank + rope head", "nh x key head", "nh x value head", "nh x (nope + value head)"),
)


class CannotWrite(ValueError):
    """A family whose layers the formulas cannot add up; the text says what stands in the way."""


class _Moment(NamedTuple):
    """One moment of a small step: bytes that backward made, and bytes that forward kept and that are gone."""

    made: list[Kept]
    gone: list[Kept]


def form_of(run: Run) -> dict[str, Any]:
    """The layer form of a run's model, in the words of layer_forms.toml: families, source, parts, slots.

    Takes some 25 traces of small shapes. Raises CannotRun where the family cannot be traced, CannotWrite where a
    tensor fits no width or no part of the formulas.
    """
    named = {"config": run["config"]} if run["config"] else {"base_model": run["base_model"]}
    plain = make_run("lora", {**named, "adapter_targets": "All seven", "keeps_model_output": "On"}, id="form")
    plain, eager = attention(plain)
    if any("experts" in name for name in _adapted(plain, SHAPES[0])):  # fused ones, whose adapters are not counted
        plain = _with(plain, adapter_targets="All attention")
    smalls = derive.traced_small(plain)
    own_head = smalls[0].run["head_dimension_override"] is not None
    wide = own_head and any(small.widths.get("q") != small.widths["d"] for small in smalls)

    def again(fields: Mapping[str, Any] | None = None, **inputs: Any) -> list[Small]:
        other = _with(plain, **inputs)
        other = replace(other, settings={**other.settings, "fields": dict(fields or {})})
        return derive.traced_small(other, own_head)

    def layers(found: Sequence[Small], dropped: bool = False) -> _Layers:
        return _Layers(derive.lists_of(found, dropped), wide)

    def dropped(fields: Mapping[str, Any] | None = None, **inputs: Any) -> _Layers:
        return layers(again(fields, keeps_model_output="Off", **inputs), dropped=True)

    base, alone = layers(smalls), dropped()
    uncached = again({"use_cache": False})
    without = layers(uncached)
    parts = alone.parts() | {"windowed_layer": base.windowed(alone)} | _changes("uncached", alone, without)
    parts |= _changes("cache", alone, base)
    if not eager:
        undropped = dict.fromkeys(("attention_dropout", "attn_pdrop"), 0.0)
        parts |= _changes("eager", alone, dropped(undropped, attention_implementation=EAGER))
    if window := _window(plain):
        parts |= _changes("masked", alone, dropped({window: WINDOW}))
    parts |= outside(smalls)
    checkpointed = again(activation_checkpointing="On")
    parts["working"] = _less(_made(checkpointed, _recomputed_peaks), _big(without.whole(), smalls))
    parts |= _boundaries(checkpointed)
    if "d" not in parts["final_norm"]:  # it reads what the layer below it has made and keeps: count it as its own
        stream = {"d": 2 + parts["boundary"]["d"]}
        parts |= {"final_norm": plus(parts["final_norm"], stream), "lowest": _less(parts["lowest"], stream)}
    parts |= {"norm_working": _added(smalls, _norm_peaks), "last_layer_working": _added(smalls, _mlp_peaks)}
    parts |= _loss(plain, own_head)
    made = {name: part for name in PARTS if (part := {width: n for width, n in parts.get(name, {}).items() if n})}
    _check(made)
    kind = models.config_of(plain).model_type
    return {"families": [kind], "source": source(), **made, **_slots(plain, smalls, base, own_head, kind)}


def _with(run: Run, **inputs: Any) -> Run:
    return replace(run, inputs={**run.inputs, **inputs})


def attention(run: Run) -> tuple[Run, bool]:
    """The run with an attention that its family has, and whether that is the eager one."""
    try:
        models.base(derive.small_run(run, SHAPES[0]))
        return run, False
    except CannotRun:
        stored = _with(run, attention_implementation=EAGER)
        models.base(derive.small_run(stored, SHAPES[0]))
        return stored, True


def _window(run: Run) -> str:
    """The field of a model's window; "" where no layer has one."""
    config = models.config_of(run)
    kinds = getattr(config, "layer_types", None)
    if kinds is not None and not any(WINDOWED.get(kind, False) for kind in kinds):
        return ""
    return next((field for field in ("attention_chunk_size", "sliding_window") if getattr(config, field, None)), "")


def source() -> str:
    return "traced with " + ", ".join(
        f"{package} {version(package).partition('+')[0]}" for package in ("torch", "transformers", "peft")
    )


# ------------------------------------------------------------------------------------------------ layers
class _Layers:
    """The lists of a model's kinds of layers, as parts of a form. wide: heads are told from the hidden size."""

    def __init__(self, lists: Sequence[LayerList], wide: bool) -> None:
        for found in lists:
            if found.unsolved:
                raise CannotWrite(f"what a layer keeps fits no width of the model: {found.unsolved[0]}")
        self.wide = wide
        self.lists = lists
        self.lowest = next(found for found in lists if 0 in found.layers)
        self.upper = [found for found in lists if found.layers != [0]] or list(lists)
        self.last = max(lists, key=lambda found: max(found.layers))

    def parts(self) -> dict[str, Sum]:
        """norms, attention, MLP and so on, and what the lowest layer lacks."""
        common = self._kinds()
        if any(other[part] != common[0][part] for other in common for part in ("norms", "attention")):
            raise CannotWrite(
                "its layers are of more than one kind of attention, which a derived form cannot tell apart"
            )
        made: dict[str, Sum] = dict(common[0])
        for found in self.lists:
            sums = by_part(found, self.wide)
            made |= {name: sums[name] for name in ("mlp", "moe", "shared", "moe_layer") if sums.get(name)}
        lowest = self._common(self.lowest)
        parts = ("norms", "attention")
        made["lowest"] = _less(plus(*(lowest[name] for name in parts)), plus(*(common[0][name] for name in parts)))
        made["lowest_layer"] = _less(lowest["layer"], common[0]["layer"])
        return made

    def windowed(self, dropped: _Layers) -> Sum:
        """Bytes a layer that layers with a window keep more while the output is held."""
        return _less(self._kinds()[-1]["layer"], dropped._kinds()[0]["layer"])

    def _kinds(self) -> list[dict[str, Sum]]:
        """What the kinds of upper layers have in common, those with a window last."""
        return sorted((self._common(found) for found in self.upper), key=lambda one: one["layer"].get("one", 0))

    def _common(self, found: LayerList) -> dict[str, Sum]:
        sums = by_part(found, self.wide)
        return {name: sums.get(name, {}) for name in ("norms", "attention", "layer", "rope_layer")}

    def of_upper(self) -> tuple[Sum, Sum]:
        """Bytes a token and bytes a layer of an upper layer without adapters: of one that has a mask, if any has."""
        masked = [found for found in self.upper if any(entry.width == "sequence" for entry in found.entries)]
        sums = by_part([*masked, *self.upper][0], self.wide)
        layer = ("layer", "moe_layer", "rope_layer")
        return plus(*(part for name, part in sums.items() if name not in layer)), plus(
            *(sums.get(name, {}) for name in layer)
        )

    def whole(self) -> Sum:
        """Bytes a token of the last layer, with what its adapters keep of their inputs."""
        entries = [entry for entry in self.last.entries if entry.per_token and entry.width != "rank"]
        return plus(*(_sum(entry, self.wide, entry.module) for entry in entries))


def by_part(found: LayerList, wide: bool) -> dict[str, Sum]:
    """A layer's list, without its adapters, by part."""
    moe = any("experts" in entry.module or "experts" in entry.width for entry in found.entries)
    sums: dict[str, Sum] = {}
    for entry in found.entries:
        if ".lora_" in entry.module:
            continue
        part = _part_of(entry.module, moe)
        if not entry.per_token:
            rope = entry.width in ("sequence x head", "sequence x rope head")
            part = "rope_layer" if rope else "moe_layer" if part in ("moe", "shared") else "layer"
        elif part == "shared" and entry.width == "1":
            part = "moe"
        elif part == "attention" and entry.width == "d" and wide:  # a dropout of its output, as wide as the stream
            part = "norms"
        sums[part] = plus(sums.get(part, {}), _sum(entry, wide, part))
    return sums


def _part_of(module: str, moe: bool) -> str:
    """The part that a module inside a layer belongs to; what the layer itself makes goes with the MLP."""
    first = module.partition(".")[0]
    if "norm" in first or first.startswith("ln_"):
        return "norms"
    if "attn" in first or "attention" in first:
        return "attention"
    if "shared" in module:
        return "shared"
    if moe:
        return "moe" if "." in module or first else "norms"
    return "mlp"


def _sum(entry: Entry, wide: bool, part: str) -> Sum:
    if entry.width not in _WIDTHS:
        raise CannotWrite(f"{entry.module or 'the layer'} keeps bytes by {entry.width}, which no layer form has")
    name = "q" if entry.width == "d" and part == "attention" and not wide else entry.width
    return {width: entry.coefficient * entry.times * n for width, n in _WIDTHS[name].items()}


def _changes(name: str, before: _Layers, after: _Layers) -> dict[str, Sum]:
    """What an upper layer keeps in one run and not in another, a token and a layer."""
    (token, layer), (other, others) = before.of_upper(), after.of_upper()
    return {name: _less(other, token), f"{name}_layer": _less(others, layer)}


def plus(*sums: Mapping[str, int]) -> Sum:
    total: Counter[str] = Counter()
    for one in sums:
        total.update(one)
    return {width: n for width, n in total.items() if n}


def _less(one: Mapping[str, int], other: Mapping[str, int]) -> Sum:
    return plus(one, {width: -n for width, n in other.items()})


# ------------------------------------------------------------------------------------------------ outside the layers
def outside(smalls: Sequence[Small]) -> dict[str, Sum]:
    """The norm after the last layer, and the tables of positions."""
    token, once = solved([(small, _outer(small, _is_norm)) for small in smalls])
    tables = _tables(smalls, [sum(kept.bytes_per_token for kept in _outer(small, _is_rotary)) for small in smalls])
    return {"final_norm": token, "final_norm_once": once, "rope_once": tables}


def _tables(smalls: Sequence[Small], sizes: Sequence[float]) -> Sum:
    """All tables of positions together, of which each may have a part of the head dimension only."""
    for name, width in (("sequence x head", "S_hd"), ("sequence x rope head", "S_rope")):
        found = {size / small.widths[name] for small, size in zip(smalls, sizes, strict=True) if name in small.widths}
        if len(found) == 1 and (number := found.pop()).is_integer():
            return {width: int(number)} if number else {}
    raise CannotWrite(f"its tables of positions, {sizes[0]:,.0f} bytes at the first small shape, fit no width")


def _outer(small: Small, wanted: Callable[[str], bool]) -> list[Kept]:
    """What modules outside the layers made that is alive at the end of forward."""
    alive = small.traced.recorder.alive_after(small.traced.marks["forward"][1])
    return [
        _as_kept(found)
        for found in alive
        if found.phase == "forward" and layer_path(found.module, small.prefix) is None and wanted(found.module)
    ]


def _is_norm(module: str) -> bool:
    last = module.rpartition(".")[2]
    return "norm" in last or last.startswith("ln_")


def _is_rotary(module: str) -> bool:
    return "rotary" in module.rpartition(".")[2]


def _as_kept(found: Any) -> Kept:
    return Kept(found.module, found.operation, found.dtype, found.exact)


def solved(kept: Sequence[tuple[Small, list[Kept]]], strict: bool = True) -> tuple[Sum, Sum]:
    """Tensors of the three shapes as sums: bytes a token, and bytes once. Raises CannotWrite for one of no width."""
    entries, unsolved = derive.solve([(small.widths, small.tokens, Counter(found)) for small, found in kept])
    if unsolved:
        raise CannotWrite(f"a tensor fits no width: {unsolved[0]}")
    known = [entry for entry in entries if "rank" not in entry.width.split()]  # of an adapter
    token = plus(*(_sum(entry, True, "") for entry in known if entry.per_token))
    return token, plus(*(_sum(entry, True, "") for entry in known if not entry.per_token and entry.width in _WIDTHS))


def _boundaries(smalls: Sequence[Small]) -> dict[str, Sum]:
    """What checkpointed layers keep beyond a 16-bit input: their own output, which is the next one's, and the first."""
    found: list[tuple[int, int]] = []
    for small in smalls:
        recorder, values = small.traced.recorder, small.tokens * small.widths["d"]
        alive = [recorder.all[number] for number in sorted(_alive(recorder, small.traced.marks["forward"][1]))]
        streams = [one for one in alive if one.phase == "forward" and one.shape[-1:] == (small.widths["d"],)]
        places = [layer_path(one.module, small.prefix) for one in streams]
        second = [one.exact for one, place in zip(streams, places, strict=True) if place is not None and place[0] == 0]
        first = [one.exact for one in streams[: next((at for at, place in enumerate(places) if place), 0)]]
        found.append((sum(second) // values, sum(first) // values))
    if len(set(found)) > 1 or not all(found[0]):
        raise CannotWrite(
            f"its checkpointed layers keep {found[0][0]} bytes a value of hidden width, which is no input"
        )
    second_bytes, first_bytes = found[0]
    return {"boundary": {"d": second_bytes - 2}, "lowest_boundary": {"d": first_bytes - second_bytes}}


# ------------------------------------------------------------------------------------------------ moments
def _made(smalls: Sequence[Small], where: Callable[[Small], list[int]]) -> Sum:
    """What backward has made and still holds at a moment, a token."""
    return _largest_of(smalls, where, lambda moments: _tokens(smalls, [one.made for one in moments]))


def _added(smalls: Sequence[Small], where: Callable[[Small], list[int]]) -> Sum:
    """What a moment of backward adds to what forward kept, a token."""

    def less_gone(moments: Sequence[_Moment]) -> Sum:
        made, gone = ([one.made for one in moments], [one.gone for one in moments])
        return _less(_tokens(smalls, made), _tokens(smalls, gone))

    return _largest_of(smalls, where, less_gone)


def _tokens(smalls: Sequence[Small], kept: Sequence[list[Kept]]) -> Sum:
    token, _ = solved(list(zip(smalls, kept, strict=True)))
    return _big(token, smalls)


def _big(one: Mapping[str, int], smalls: Sequence[Small]) -> Sum:
    """A sum without widths of a few bytes, and all that is as wide as the hidden size under its name."""
    total: Counter[str] = Counter()
    for width, number in one.items():
        same = width in ("q", "kv") and all(small.widths.get(width) == small.widths["d"] for small in smalls)
        total["d" if same else width] += number
    return {width: number for width, number in total.items() if number and width not in _TINY}


def _largest_of(
    smalls: Sequence[Small], where: Callable[[Small], list[int]], summed: Callable[[Sequence[_Moment]], Sum]
) -> Sum:
    """The largest of a stretch's moments in words of widths. A step has the same events at every shape; which of its
    peaks is the largest may differ, and the one counts that is so where ranks and heads are small beside the others."""
    peaks = [where(small) for small in smalls]
    if len({len(small.traced.recorder.events) for small in smalls}) > 1:
        return summed([_at(small, counts[0]) for small, counts in zip(smalls, peaks, strict=True)])
    sums = []
    for count in dict.fromkeys(count for counts in peaks for count in counts):
        try:
            sums.append(summed([_at(small, count) for small in smalls]))
        except CannotWrite:
            if any(count == counts[0] for counts in peaks):
                raise

    def size(one: Sum) -> tuple[int, int]:  # of experts first: the formulas know the way back to the tokens
        experts = one.get("k_e", 0) + one.get("E_e", 0)
        return experts, sum(_TYPICAL.get(width, 0) * number for width, number in one.items())

    return max(sums, key=size)


def _at(small: Small, count: int) -> _Moment:
    """What a moment of backward holds of its own, and lacks of what forward kept; but scores, and what is small."""
    recorder = small.traced.recorder
    kept, now = _alive(recorder, small.traced.marks["backward"][0]), _alive(recorder, count)

    def tensors(numbers: Sequence[int]) -> list[Kept]:
        found = [recorder.all[number] for number in numbers]
        return [_as_kept(one) for one in found if _counts(one, small)]

    made = [number for number in sorted(now) if recorder.all[number].phase == "backward"]
    return _Moment(tensors(made), tensors(sorted(kept - now)))


def _counts(found: Any, small: Small) -> bool:
    """Whether a tensor is of tokens and as wide as the model: none of an adapter's rank, no scores, no scratch."""
    narrow = small.run["lora_rank"] in found.shape
    scores = found.shape[-1:] == (derive.VOCABULARY,)
    return bool(found.shape) and not narrow and not scores and found.operation != "cublas_workspace"


def _alive(recorder: Any, count: int) -> set[int]:
    alive: set[int] = set()
    for number, size in recorder.events[:count]:
        (alive.add if size else alive.discard)(number)
    return alive


def _norm_peaks(small: Small) -> list[int]:
    """The largest moments of backward until the final norm is done with."""
    return _peaks(small, small.traced.marks["backward"][0], _final_norm_gone(small))


def _recomputed_peaks(small: Small) -> list[int]:
    """The largest moments of backward from there on: of the last layer, made anew."""
    return _peaks(small, _final_norm_gone(small), small.traced.marks["backward"][1])


def _mlp_peaks(small: Small) -> list[int]:
    """The largest moments of the backward of the last layer's MLP."""
    recorder, marks = small.traced.recorder, small.traced.marks
    kept = _alive(recorder, marks["backward"][0])
    last = max(place[0] for number in kept if (place := layer_path(recorder.all[number].module, small.prefix)))
    mlp = {number for number in kept if _is_of_mlp(layer_path(recorder.all[number].module, small.prefix), last)}
    freed = [at for at, (number, size) in enumerate(recorder.events, 1) if not size and number in mlp]
    return _peaks(small, freed[0], freed[-1])


def _is_of_mlp(place: tuple[int, str] | None, last: int) -> bool:
    return place is not None and place[0] == last and _part_of(place[1], moe=False) in ("mlp", "shared")


def _final_norm_gone(small: Small) -> int:
    """How many events there were when backward let go of the final norm's input."""
    recorder, marks = small.traced.recorder, small.traced.marks
    kept = _alive(recorder, marks["backward"][0])
    layers = [number for number in kept if layer_path(recorder.all[number].module, small.prefix)]
    outer = [number for number in kept if number > max(layers) and _is_norm(recorder.all[number].module)]
    if not outer:
        return marks["backward"][0]
    largest = max(outer, key=lambda number: recorder.all[number].exact)
    return next(at for at, event in enumerate(recorder.events, 1) if event == (largest, 0))


def _largest(small: Small, first: int, last: int) -> int:
    """How many events there were at the largest moment between two."""
    return _peaks(small, first, last)[0]


def _peaks(small: Small, first: int, last: int) -> list[int]:
    """How many events there were at the peaks between two, the largest first."""
    sizes: dict[int, int] = {}
    total = 0
    peaks = [(0, -first)]
    for at, (number, size) in enumerate(small.traced.recorder.events[:last], 1):
        if size:
            sizes[number] = size
            total += size
        else:
            total -= sizes.pop(number)
        if at <= first:
            continue
        if peaks[-1][1] == 1 - at and total > peaks[-1][0]:  # still rising
            peaks[-1] = (total, -at)
        elif size:
            peaks.append((total, -at))
    return [-at for _, at in sorted(peaks, reverse=True)[:PEAKS]]


def _loss(plain: Run, own_head: bool) -> dict[str, Sum]:
    """Scores and their copies in the loss, a value; and the head's input."""
    found = {}
    for name, keeps in (("kept", "On"), ("dropped", "Off")):
        run = derive.small_run(_with(plain, keeps_model_output=keeps), SHAPES[2], own_head)
        run = _with(run, vocabulary_size_override=WORDS)
        found[name] = derive.traced(run)
    kept = found["kept"]
    forward = _largest(kept, *kept.traced.marks["forward"])
    recorder = kept.traced.recorder
    leaving = _alive(recorder, forward) - _alive(recorder, kept.traced.marks["forward"][1])
    bytes_of_head = sum(
        recorder.all[number].exact
        for number in leaving
        if recorder.all[number].shape[-1:] == (kept.widths["d"],) and _is_of_forward(recorder.all[number])
    )
    return {
        "loss_forward": {"d": _whole(bytes_of_head, kept, "d"), "V": _scores(kept, forward)},
        **{
            f"loss_backward_{name}": {"V": _scores(small, _largest(small, *small.traced.marks["backward"]))}
            for name, small in found.items()
        },
    }


def _is_of_forward(found: Any) -> bool:
    return bool(found.phase == "forward")


def _scores(small: Small, count: int) -> int:
    """Bytes a token and word that a moment holds of output scores."""
    recorder = small.traced.recorder
    alive = [recorder.all[number] for number in _alive(recorder, count)]
    size: int = sum(one.exact for one in alive if one.shape[-1:] == (WORDS,))
    return round(size / small.tokens / WORDS)


def _whole(size: int, small: Small, width: str) -> int:
    return round(size / small.tokens / small.widths[width])


# ------------------------------------------------------------------------------------------------ adapters
def _adapted(run: Run, shape: Sequence[int], own_head: bool = True) -> dict[str, Any]:
    """The modules of a small model that have an adapter, by their names inside the layers: "0.self_attn.q_proj"."""
    torch = models.need("torch", "derive")
    small = derive.small_run(run, shape, own_head)
    with torch.device("meta"):
        model = models.adapted(models.base(small), small)
    prefix = models.layers_of(model)[0]
    return {
        name.removeprefix(f"{prefix}."): module
        for name, module in model.named_modules()
        if name.startswith(f"{prefix}.") and hasattr(module, "lora_A")
    }


def _slots(plain: Run, smalls: Sequence[Small], base: _Layers, own_head: bool, kind: str) -> dict[str, Any]:
    """The slots of a family, and which of them PEFT takes by default and as all linear modules."""
    found = [_adapted(plain, shape, own_head) for shape in SHAPES]
    layers: dict[str, list[int]] = {}
    for name in found[0]:
        number, _, path = name.partition(".")
        layers.setdefault(path, []).append(int(number))
    reaching = {entry.module.partition(".lora_A")[0] for entry in base.lowest.entries if _is_first_matrix(entry)}
    wanted, default, slots = _default_targets(kind), [], {}
    for path, numbers in layers.items():
        role = _role(path)
        shapes = [derive.sides_of(adapted[f"{numbers[0]}.{path}"].get_base_layer()) for adapted in found]
        ends = {"input": [sides[0] for sides in shapes], "output": [sides[1] for sides in shapes]}
        slot: dict[str, Any] = {"modules": [_end(path)]}
        slot |= {end: _side(values, smalls, role, end) for end, values in ends.items()}
        if len(numbers) < smalls[0].run["layer_count_override"]:
            slot["on"] = "moe" if "shared" in path else "dense"
        if 0 in numbers and path not in reaching:
            slot["lowest"] = False
        slots[role] = slot
        default += [role] if any(f".{path}".endswith(f".{name}") for name in wanted) else []
    order = [role for role in _ROLES if role in slots]
    default = [role for role in order if role in default]
    return {"default_targets": default, "all_linear": order, "slots": {role: slots[role] for role in order}}


def _is_first_matrix(entry: Entry) -> bool:
    """Whether an entry is the 16-bit copy of an adapter's first matrix: kept where what lies below needs a gradient."""
    return ".lora_A" in entry.module and not entry.per_token


def _role(path: str) -> str:
    """The slot of a module: the first of its roles; latents and shared experts have slots of their own."""
    if path.endswith("q_a_proj"):
        return "query_latent"
    role = next(role for role, ends in models.ROLES.items() if any(f".{path}".endswith(f".{end}") for end in ends))
    return f"shared_{role}" if "shared" in path else role


def _end(path: str) -> str:
    """How a module's name ends, as far as it tells the module from others of the layer."""
    parts = path.split(".")
    return ".".join(parts[-2:]) if (len(parts) > 1 and parts[-1] in _AMBIGUOUS) or "shared" in path else parts[-1]


def _side(values: Sequence[int], smalls: Sequence[Small], role: str, end: str) -> Sum:
    """Input or output width of a module as a sum of widths. Raises CannotWrite for one that is none."""
    of_heads = _OF_HEADS.get((role, end))  # as wide as the hidden size too, where heads follow from it
    for times in (1, 2):
        for name in (of_heads, *_SIDES) if of_heads else _SIDES:
            if all(small.widths.get(name, 0) * times == value for small, value in zip(smalls, values, strict=True)):
                return {width: times * n for width, n in _WIDTHS[name].items()}
    raise CannotWrite(f"the {end} of its {role} module, {values[0]} wide at the first small shape, is no known width")


def _default_targets(kind: str) -> list[str]:
    """What PEFT adapts of a family where it is told nothing."""
    constants = models.need("peft.utils.constants", "derive")
    return list(constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.get(kind, []))


# ------------------------------------------------------------------------------------------------ as a file
def _check(parts: Mapping[str, Mapping[str, int]]) -> None:
    """CannotWrite for bytes that no formula would add up."""
    for part, width in not_added(parts):
        raise CannotWrite(f"its {part} has {parts[part][width]} bytes x {width}, which no formula adds up")


def as_toml(name: str, form: Mapping[str, Any]) -> str:
    """A form as the table of a layer_forms.toml."""
    lines = [f"[{name}]"]
    for key, entry in form.items():
        if key == "slots":
            lines += [f"slots.{role} = {_toml(slot)}" for role, slot in entry.items()]
        else:
            lines.append(f"{key} = {_toml(entry)}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    import json

    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)

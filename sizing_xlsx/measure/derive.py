"""Re-derive the per-layer list of a model family: trace it at a few small shapes and solve each tensor's size.

Every tensor that a layer keeps is a whole number of bytes times one width of the model (or a rank times a width), and
the same number at every shape. The list says which; a tensor that fits no width at all shapes is reported, never
rounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from . import models, saved, trace
from .run import Run

# Small shapes whose widths have no common ratios: hidden, heads, KV heads, head, MLP, experts, experts per token,
# rank, sequence, batch.
SHAPES = (
    (192, 4, 2, 56, 432, 5, 3, 11, 256, 2),
    (240, 6, 3, 64, 624, 7, 2, 13, 320, 3),
    (256, 8, 2, 24, 352, 6, 3, 7, 192, 4),
)
VOCABULARY = 97
_DENSE_WIDTH = "intermediate_size_mlp"  # Llama 4: of its dense layers, where intermediate_size is an expert's
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
_CHOSEN = ("num_experts_per_tok", "top_k_experts")
_ALWAYS_TWO = ("phimoe",)  # families whose router chooses two experts a token, whatever the config says
_SIDES = (  # of weights
    *("rank", "d", "q", "kv", "ff", "q + 2 kv", "experts", "KV heads", "head", "shared"),
    *("q_lora_rank", "kv_lora_rank", "nh x key head", "nh x value head"),
    *("kv_lora_rank + rope head", "nh x (nope + value head)"),
)
_EXPERT_WIDTH = ("moe_intermediate_size", "intermediate_size")


class Entry(NamedTuple):
    """What one layer keeps of one kind: coefficient bytes times the width, for each token when per_token."""

    module: str
    operation: str
    dtype: str
    coefficient: int
    width: str
    per_token: bool
    times: int


@dataclass
class LayerList:
    """The list of one kind of layer: the layers that share it, its entries, and what fitted no width."""

    layers: list[int]
    entries: list[Entry]
    unsolved: list[str]

    def coefficients(self) -> dict[str, int]:
        """Bytes per token by width, summed over the entries."""
        total: Counter[str] = Counter()
        for entry in self.entries:
            if entry.per_token:
                total[entry.width] += entry.coefficient * entry.times
        return dict(total)

    def per_layer(self) -> dict[str, int]:
        """Bytes that do not grow with the tokens, by width: copies of adapters, seeds."""
        total: Counter[str] = Counter()
        for entry in self.entries:
            if not entry.per_token:
                total[entry.width] += entry.coefficient * entry.times
        return dict(total)

    def bytes(self, widths: Mapping[str, int], tokens: int) -> int:
        """What a layer of these widths keeps for so many tokens."""

        def side(name: str) -> int:
            if name in widths:
                return widths[name]
            return next(
                widths[first] * widths[second]
                for first, second in combinations_with_replacement(_SIDES, 2)
                if f"{first} x {second}" == name
            )

        growing = sum(number * side(width) for width, number in self.coefficients().items())
        return tokens * growing + sum(number * side(width) for width, number in self.per_layer().items())


def small_run(run: Run, shape: Sequence[int], own_head: bool = True) -> Run:
    """The run at a small shape; everything but the size is as it was. own_head: heads have a width of their own,
    else hidden size / heads."""
    hidden, heads, mlp, experts, chosen, rank, sequence, batch = shape[0], shape[1], *shape[4:]
    kv_heads: int | None = shape[2]
    head: int | None = shape[3] if own_head else None
    fields: dict[str, Any] = {}
    if run.job != "training":
        config = models.config_of(run)
        chosen = 2 if config.model_type in _ALWAYS_TWO else chosen
        fields |= {name: experts for name in _EXPERTS if getattr(config, name, None)}
        fields |= {name: chosen for name in _CHOSEN if getattr(config, name, None)}
        fields |= {name: 1 for name in ("n_group", "topk_group") if getattr(config, name, None)}
        if getattr(config, "moe_intermediate_size", None):
            fields["moe_intermediate_size"] = mlp - 40
        if getattr(config, "n_shared_experts", None):
            fields["n_shared_experts"] = 3
        if getattr(config, "shared_expert_intermediate_size", None):
            fields["shared_expert_intermediate_size"] = mlp + 24
        if getattr(config, "word_embed_proj_dim", None):  # OPT: tables of that width need no projection
            fields["word_embed_proj_dim"] = hidden
        if getattr(config, _DENSE_WIDTH, None):
            fields[_DENSE_WIDTH] = mlp + 56
        if getattr(config, "kv_lora_rank", None):  # multi-head latent attention has widths of its own
            head = shape[3]
            rope, values = 2 * rank - 2, 8 * heads + 24
            fields |= {"kv_lora_rank": (hidden + sequence // 4) // 2}
            fields |= {"q_lora_rank": hidden // 2 + 8} if getattr(config, "q_lora_rank", None) else {}
            fields |= {"qk_nope_head_dim": head, "qk_rope_head_dim": rope, "v_head_dim": values}
            fields |= {"qk_head_dim": head + rope}
            kv_heads, head = heads, rope
    inputs = {
        **run.inputs,
        "hidden_size_override": hidden,
        "attention_heads_override": heads,
        "kv_heads_override": kv_heads,
        "head_dimension_override": head,
        "mlp_width_override": mlp,
        "vocabulary_size_override": VOCABULARY,
        "layer_count_override": layers_needed(run),
        "batch_size": batch,
        "sequence_length": sequence,
        "gradient_accumulation": 1,
        **({"lora_rank": rank, "adapter_layers": "all"} if run.job == "lora" else {}),
    }
    fields |= run.settings.get("fields", {})
    return Run(f"{run.id} at {hidden}", run.job, inputs, {**run.settings, "fields": fields})


def layers_needed(run: Run) -> int:
    """Enough layers that each kind of the model appears after the first, which keeps less than the others."""
    if run.job == "training":
        return 3
    config = models.config_of(run)
    kinds = list(getattr(config, "layer_types", None) or [])
    last_new = max((kinds.index(kind, 1) for kind in set(kinds) if kind in kinds[1:]), default=1)
    dense_first = int(getattr(config, "first_k_dense_replace", 0) or 0)
    return max(3, last_new + 1, dense_first + 2)


def derive(run: Run) -> list[LayerList]:
    """The lists of the kinds of layers of a run's model, by tracing it at each of SHAPES. Raises CannotRun."""
    return lists_of(traced_small(run, whole=False))


class Small(NamedTuple):
    """A run at a small shape, traced: its widths, its tokens, and what the decoder's list of layers is called."""

    run: Run
    traced: trace.Trace
    widths: dict[str, int]
    tokens: int
    prefix: str


def traced_small(run: Run, own_head: bool | None = None, *, whole: bool = True) -> list[Small]:
    """A run traced at each of SHAPES; not the whole step: to the end of forward.

    own_head: heads have a width of their own; None: unless that cannot be traced.
    """
    try:
        return [traced(small_run(run, shape, own_head is not False), whole=whole) for shape in SHAPES]
    except RuntimeError:  # the family's class has no such width, and what else it builds does not fit
        if own_head is not None:
            raise
        return traced_small(run, own_head=False, whole=whole)


def traced(small: Run, *, whole: bool = True) -> Small:
    """One run at its small shape."""
    found = trace.trace(small, 1) if whole else trace.trace_forward(small)
    tokens = small["batch_size"] * small["sequence_length"]
    return Small(small, found, widths_of(models.base(small), small), tokens, layer_prefix(small))


def lists_of(smalls: Sequence[Small], dropped: bool = False) -> list[LayerList]:
    """The lists of the kinds of layers. dropped: of what is kept once the loop has let go of the output."""
    seen: list[tuple[dict[str, int], int, dict[int, Counter[Any]]]] = []
    for small in smalls:
        marks = small.traced.marks
        at = marks["backward"][0] if dropped else marks["forward"][1]
        alive = small.traced.recorder.alive_after(at)
        seen.append((small.widths, small.tokens, saved.kept_by_layers(alive, small.prefix, 1)))
    lists: dict[tuple[Any, ...], LayerList] = {}
    for layer in sorted(seen[0][2]):
        solved = solve([(widths, tokens, layers.get(layer, Counter())) for widths, tokens, layers in seen])
        key = (tuple(solved[0]), tuple(solved[1]))
        lists.setdefault(key, LayerList([], *solved)).layers.append(layer)
    return list(lists.values())


def layer_prefix(run: Run) -> str:
    """What the decoder's list of layers is called inside the model, as the modules' names end."""
    if run.job == "training":
        return "layers"
    return models.layers_of(models.base(run))[0]


def widths_of(model: Any, run: Run) -> dict[str, int]:
    """The widths of a model, read from its modules: what a tensor's size can be a multiple of."""
    if run.job == "training":
        shape = models.encoder_shape(run)
        d, heads, ff = shape["hidden_size"], shape["attention_heads"], shape["mlp_width"]
        return {"d": d, "nh": heads, "ff": ff, "1": 1, **_scores(run, heads)}
    config = model.config
    sides: dict[str, tuple[int, int]] = {}
    _, layers = models.layers_of(model)
    for layer in layers:
        for role, ends in models.ROLES.items():
            for name, module in layer.named_modules():
                if "shared" in name:
                    continue
                if role not in sides and any(f".{name}".endswith(f".{end}") for end in ends):
                    sides[role] = sides_of(module)
    d, heads = config.hidden_size, config.num_attention_heads
    q = sides["output"][0] if "output" in sides else d
    out = sides["key"][1] if "key" in sides else q
    kv = out if out <= q else (out - q) // 2
    widths = {
        "d": d,
        "ff": sides["down"][0] if "down" in sides else 0,
        "q": q,
        "kv": kv,
        "nh": heads,
        "KV heads": getattr(config, "num_key_value_heads", None) or heads,
        "rank": run.inputs.get("lora_rank") or 0,
        "head": getattr(config, "head_dim", None) or d // heads,
        "q + 2 kv": q + 2 * kv,
    }
    experts = next((getattr(config, name) for name in _EXPERTS if getattr(config, name, None)), 0)
    if experts:
        chosen = next(getattr(config, name) for name in _CHOSEN if getattr(config, name, None))
        wide = next(getattr(config, name) for name in _EXPERT_WIDTH if getattr(config, name, None))
        widths |= {"experts per token x ff": chosen * wide, "experts per token x d": chosen * d}
        widths |= {"experts": experts, "experts per token": chosen}
        widths |= {"experts x ff": experts * wide, "experts x d": experts * d}
        widths |= {"shared": _shared_width(layers)}
    if getattr(config, "kv_lora_rank", None):
        key, value = config.qk_nope_head_dim + config.qk_rope_head_dim, config.v_head_dim
        widths |= {"q_lora_rank": config.q_lora_rank or 0, "kv_lora_rank": config.kv_lora_rank}
        widths |= {"nh x key head": heads * key, "nh x value head": heads * value}
        widths |= {"kv_lora_rank + rope head": config.kv_lora_rank + config.qk_rope_head_dim}
        widths |= {"nh x (nope + value head)": heads * (config.qk_nope_head_dim + value)}
        widths |= {"rope head": config.qk_rope_head_dim}
        for name in ("head", "q", "kv", "q + 2 kv"):  # these have the widths above in their place
            del widths[name]
    widths |= {**_scores(run, heads), "1": 1}
    for head in ("head", "rope head"):
        widths[f"sequence x {head}"] = run["sequence_length"] * widths.get(head, 0)
    return {name: width for name, width in widths.items() if width}


def _shared_width(layers: Any) -> int:
    """Width of the experts that every token passes; 0 where there are none."""
    found = [module for layer in layers for name, module in layer.named_modules() if _is_shared_down(name)]
    return sides_of(found[0])[0] if found else 0


def _is_shared_down(name: str) -> bool:
    return "shared" in name and any(name.endswith(f".{end}") for end in models.ROLES["down"])


def _scores(run: Run, heads: int) -> dict[str, int]:
    sequence = run["sequence_length"]
    scores = {"sequence x nh": sequence * heads, "(sequence + 1) x nh": (sequence + 1) * heads}
    return {"sequence": sequence, "sequence x sequence": sequence * sequence, **scores}


def sides_of(module: Any) -> tuple[int, int]:
    """Input and output width of a linear module, transposed ones too."""
    rows, columns = module.weight.shape
    transposed = type(module).__name__ == "Conv1D"
    return (rows, columns) if transposed else (columns, rows)


def solve(shapes: Sequence[tuple[Mapping[str, int], int, Counter[Any]]]) -> tuple[list[Entry], list[str]]:
    """One layer's list from what it kept at each shape; tensors are matched in the order they were made."""
    rows = [list(kept.elements()) for _, _, kept in shapes]
    if len({len(row) for row in rows}) > 1:
        return [], [f"the number of kept tensors changes with the shape: {', '.join(str(len(row)) for row in rows)}"]
    entries: Counter[Entry] = Counter()
    unsolved = []
    for same in zip(*rows, strict=True):
        if len({(kept.module, kept.operation, kept.dtype) for kept in same}) > 1:
            unsolved.append(f"another tensor at another shape: {' / '.join(kept.module for kept in same)}")
            continue
        first = same[0]
        sizes = [int(kept.bytes_per_token) for kept in same]  # kept_by_layers was asked for one token: whole bytes
        ordered = [_by_module(widths, first.module) for widths, _, _ in shapes]
        found = _width(ordered, [tokens for _, tokens, _ in shapes], sizes)
        if found is None:
            unsolved.append(f"{first.module}, {first.operation}, {first.dtype}: {sizes} bytes")
        else:
            entries[Entry(first.module, first.operation, first.dtype, *found, 1)] += 1
    return [entry._replace(times=times) for entry, times in entries.items()], unsolved


def _by_module(widths: Mapping[str, int], module: str) -> dict[str, int]:
    """The widths in the order they are tried: those of a token's experts first inside the experts, else last.

    It decides only where each shape has as many experts a token.
    """
    inside = "experts" in module
    return dict(sorted(widths.items(), key=lambda entry: entry[0].startswith("experts per token") != inside))


def _width(
    shapes: Sequence[Mapping[str, int]], tokens: Sequence[int], sizes: Sequence[int]
) -> tuple[int, str, bool] | None:
    """The coefficient and the width that give these sizes at these shapes: per token first, then per layer."""
    for per_token in (True, False):
        for width in shapes[0]:
            products = [
                widths[width] * (count if per_token else 1) for widths, count in zip(shapes, tokens, strict=True)
            ]
            found = _coefficient(products, sizes)
            if found:
                return found, width, per_token
    for first, second in combinations_with_replacement(_SIDES, 2):  # a copy of a weight
        products = [widths.get(first, 0) * widths.get(second, 0) for widths in shapes]
        found = _coefficient(products, sizes)
        if found:
            return found, f"{first} x {second}", False
    return None


def _coefficient(products: Sequence[int], sizes: Sequence[int]) -> int | None:
    if any(not product or size % product for product, size in zip(products, sizes, strict=True)):
        return None
    ratios = {size // product for product, size in zip(products, sizes, strict=True)}
    return ratios.pop() if len(ratios) == 1 else None


def report(run: Run, lists: Sequence[LayerList]) -> str:
    """The lists in words, one line a tensor."""
    lines = [
        f"What a layer of {run['base_model']} keeps for backward ({run.job}, traced at {len(SHAPES)} small shapes):",
        "bytes per token, unless it says per layer. d hidden size, q query width, kv key or value width, nh heads,",
        "ff MLP width, rank the adapters' rank; 1 a fixed number of bytes.",
    ]
    for found in lists:
        numbers = ", ".join(str(layer) for layer in found.layers)
        lines += ["", f"Layer{'s' if len(found.layers) > 1 else ''} {numbers} of the small model: {summary(found)}"]
        for entry in found.entries:
            repeated = f"{entry.times} x " if entry.times > 1 else ""
            where = "" if entry.per_token else ", per layer"
            name = entry.module or "the layer itself"
            lines.append(
                f"  {repeated}{entry.coefficient} {entry.width}{where}: {name}, {entry.operation}, {entry.dtype}"
            )
        lines += [f"  not solved: {sentence}" for sentence in found.unsolved]
    return "\n".join(lines)


def summary(found: LayerList) -> str:
    """A list as a sum: "8 d + 4 q + 6 ff per token, 44 rank x d per layer"."""
    growing = " + ".join(f"{number} {width}" for width, number in found.coefficients().items())
    fixed = " + ".join(f"{number} {width}" for width, number in found.per_layer().items())
    return f"{growing or '0'} per token" + (f"; {fixed} per layer" if fixed else "")


def as_json(found: LayerList) -> dict[str, Any]:
    """A list as plain data."""
    return {
        "layers_of_the_small_model": found.layers,
        "bytes_per_token": found.coefficients(),
        "bytes_per_layer": found.per_layer(),
        "tensors": [entry._asdict() for entry in found.entries],
        "unsolved": found.unsolved,
    }

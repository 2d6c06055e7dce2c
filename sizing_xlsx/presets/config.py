"""A model's config.json -> its architecture, and the exact number of its parameters.

The field names are those of transformers; what a config.json leaves out is filled in as the family's
configuration class of transformers 5 does, and listed in Architecture.assumed.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, cast

from .names import checked_name, one_line, shown

MAXIMUM_BYTES = 1_000_000
MAXIMUM_DEPTH = 100
MAXIMUM_COUNT = 10_000_000
MAXIMUM_LAYERS = 10_000
MAXIMUM_POSITIONS = 1_000_000_000  # contexts of ten million tokens are on sale


class Architecture(NamedTuple):
    """The shape of a model. Widths, heads, layers, positions are counts; biases and tied are 0 or 1.

    layer_form is "" for a family that is not sized yet: why_not then says why, and fields that its
    config.json does not state in the usual place are None.
    """

    name: str
    family: str  # model_type
    layer_form: str
    why_not: str
    hidden_size: int | None
    layer_count: int | None
    attention_heads: int | None
    kv_heads: int | None
    head_dimension: int | None
    mlp_width: int | None
    vocabulary_size: int | None
    maximum_positions: int | None  # 0: not stated
    sliding_window: int | None  # tokens; 0: every layer attends to everything
    tied: int | None  # 1: the output layer shares the embedding
    qkv_bias: int | None
    output_bias: int | None
    mlp_bias: int | None
    assumed: tuple[str, ...]  # fields of config.json that were not stated


class Family(NamedTuple):
    """What a family of the llama layer form assumes or fixes."""

    kv_heads: int  # when num_key_value_heads is not stated; 0: as many as attention heads
    window: int  # when sliding_window is not stated; 0: the family has none
    window_switch: bool  # sliding_window counts only with use_sliding_window
    bias_fields: bool  # attention_bias and mlp_bias are read
    qkv_bias: int  # where they are not


# Source: LlamaConfig, MistralConfig, Qwen2Config and their attention classes in transformers 5.
FAMILIES = {
    "llama": Family(kv_heads=0, window=0, window_switch=False, bias_fields=True, qkv_bias=0),
    "mistral": Family(kv_heads=8, window=4096, window_switch=False, bias_fields=False, qkv_bias=0),
    "qwen2": Family(kv_heads=32, window=4096, window_switch=True, bias_fields=False, qkv_bias=1),
}
WINDOWED_FROM_LAYER = 28  # Qwen2Config.max_window_layers when it is not stated


def read_config(source: str | Path | Mapping[str, object]) -> Architecture:
    """The architecture that a config.json describes.

    source: the path of a config.json, the path of a folder that holds one, its JSON text, or its content as a
    dict. The name is the folder's ("org--name" reads "org/name"), else the file's, else _name_or_path, else
    model_type. Raises ValueError, one sentence with the file, the field, its value and what would be right.
    """
    if isinstance(source, Mapping):
        return _architecture(source, "the config", "")
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        if len(source) > MAXIMUM_BYTES:
            raise ValueError(
                f"the JSON text has {len(source):,} characters; a config.json has at most {MAXIMUM_BYTES:,}"
            )
        return _architecture(_parsed(source.lstrip("\ufeff"), "the JSON text"), "the JSON text", "")
    if isinstance(source, str | Path) and str(source).strip():
        path = _file(Path(source))
        where = one_line(str(path))
        return _architecture(_parsed(_text(path, where), where), where, _name_of(path))
    raise ValueError(
        f"the source of a config is {shown(source)}; it should be a path, JSON text or a dict of its content"
    )


def read_models(folder: str | Path) -> list[Architecture]:
    """The architectures of every subfolder of a folder, sorted by name without regard to case.

    Files beside the subfolders and hidden subfolders are ignored. Raises ValueError as read_config does, for
    a subfolder without a config.json, and for two names that differ only in case.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{one_line(str(folder))} is not a folder; it should hold one folder per model")
    found: dict[str, Architecture] = {}
    for sub in sorted(folder.iterdir()):
        if not sub.is_dir() or sub.name.startswith("."):
            continue
        model = read_config(sub)
        other = found.setdefault(model.name.casefold(), model)
        if other is not model:
            raise ValueError(
                f"{one_line(str(folder))}: {shown(other.name)} and {shown(model.name)} are the same name "
                "without regard to case; rename one of their folders"
            )
    return [found[name] for name in sorted(found)]


def parameter_count(model: Architecture) -> int:
    """The exact number of parameters of a model of the llama layer form, biases and norms included.

    Per layer: query and output matrices d x q, key and value d x kv, three MLP matrices d x ff, their biases,
    two norms of d; once: the embedding V x d, the output layer V x d unless tied, the last norm.
    Raises ValueError when the family is not sized.
    """
    if not model.layer_form:
        raise ValueError(f"{model.name}: its parameters cannot be counted, for {model.why_not}")
    known = cast("dict[str, int]", model._asdict())  # with a layer form, every count is known
    d, ff, layers = known["hidden_size"], known["mlp_width"], known["layer_count"]
    q = known["attention_heads"] * known["head_dimension"]
    kv = known["kv_heads"] * known["head_dimension"]
    biases = known["qkv_bias"] * (q + 2 * kv) + known["output_bias"] * d + known["mlp_bias"] * (2 * ff + d)
    per_layer = 2 * d * q + 2 * d * kv + 3 * d * ff + biases
    return layers * per_layer + known["vocabulary_size"] * d * (2 - known["tied"]) + (2 * layers + 1) * d


class _Fields:
    """The fields of one config.json, taken one at a time; what was not stated is collected."""

    __slots__ = ("assumed", "raw", "where")

    def __init__(self, raw: Mapping[str, object], where: str) -> None:
        self.raw, self.where = raw, where
        self.assumed: list[str] = []

    def count(self, field: str, high: int = MAXIMUM_COUNT, default: int | None = None) -> int:
        """A whole number from 1 to high. The default, where there is one, stands for absent and null."""
        value = self.raw.get(field)
        if value is None and default is not None:
            self.assumed.append(field)
            return default
        right = f"a whole number from 1 to {high:,}"
        if field not in self.raw:
            raise ValueError(f"{self.where}: {field} is missing; it should be {right}")
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= high:
            raise ValueError(f"{self.where}: {field} is {shown(value)}; it should be {right}")
        return value

    def flag(self, field: str) -> int:
        """true or false as 1 or 0; 0 when absent, as the configuration classes assume."""
        if field not in self.raw:
            self.assumed.append(field)
            return 0
        value = self.raw[field]
        if not isinstance(value, bool):
            raise ValueError(f"{self.where}: {field} is {shown(value)}; it should be true or false")
        return int(value)


def _architecture(raw: Mapping[str, object], where: str, name: str) -> Architecture:
    """The architecture from the content of a config.json; see read_config."""
    _check_numbers(raw, where)
    family = _checked_texts(raw, where)
    known_as = raw.get("_name_or_path")
    name = name or (known_as if isinstance(known_as, str) else "") or family
    checked_name(name, where, "the model's name")
    if family in FAMILIES:
        return _llama_form(raw, where, name, family)
    return _unsized(raw, name, family, f"the layer form of family {family} is not sized yet")


def _llama_form(raw: Mapping[str, object], where: str, name: str, family: str) -> Architecture:
    rules = FAMILIES[family]
    fields = _Fields(raw, where)
    hidden = fields.count("hidden_size")
    layers = fields.count("num_hidden_layers", MAXIMUM_LAYERS)
    heads = fields.count("num_attention_heads")
    kv_heads, head = _heads(fields, rules, hidden, heads)
    mlp = fields.count("intermediate_size")
    vocabulary = fields.count("vocab_size")
    positions = fields.count("max_position_embeddings", MAXIMUM_POSITIONS, default=0)
    window = _sliding_window(fields, rules, layers)
    if window is None:
        return _unsized(raw, name, family, "its mix of sliding-window and full layers is not sized yet")
    activation = raw.get("hidden_act")
    if activation not in (None, "silu", "swish"):
        return _unsized(raw, name, family, f"its activation {shown(activation)} is not sized yet")
    tied = fields.flag("tie_word_embeddings")
    attention_bias = fields.flag("attention_bias") if rules.bias_fields else 0
    return Architecture(
        name=name,
        family=family,
        layer_form="llama",
        why_not="",
        hidden_size=hidden,
        layer_count=layers,
        attention_heads=heads,
        kv_heads=kv_heads,
        head_dimension=head,
        mlp_width=mlp,
        vocabulary_size=vocabulary,
        maximum_positions=positions,
        sliding_window=window,
        tied=tied,
        qkv_bias=attention_bias or rules.qkv_bias,
        output_bias=attention_bias,
        mlp_bias=fields.flag("mlp_bias") if rules.bias_fields else 0,
        assumed=tuple(fields.assumed),
    )


def _heads(fields: _Fields, rules: Family, hidden: int, heads: int) -> tuple[int, int]:
    """KV heads and head dimension; null KV heads are as many as attention heads, absent ones the family's."""
    absent = "num_key_value_heads" not in fields.raw
    kv_heads = fields.count("num_key_value_heads", default=(absent and rules.kv_heads) or heads)
    if heads % kv_heads:
        raise ValueError(
            f"{fields.where}: num_key_value_heads is {kv_heads}{' by default' if absent else ''}; "
            f"it should divide num_attention_heads, {heads}"
        )
    # An absent or null head_dim is no assumption: it follows from the other two.
    if fields.raw.get("head_dim") is not None:
        return kv_heads, fields.count("head_dim")
    if hidden % heads:
        raise ValueError(
            f"{fields.where}: hidden_size is {hidden}; "
            f"without head_dim it should be a multiple of num_attention_heads, {heads}"
        )
    return kv_heads, hidden // heads


def _sliding_window(fields: _Fields, rules: Family, layers: int) -> int | None:
    """The attention window in tokens, 0 for none, None when only some of the layers have it."""
    if not rules.window or (rules.window_switch and not fields.flag("use_sliding_window")):
        return 0
    if "sliding_window" in fields.raw and fields.raw["sliding_window"] is None:
        return 0
    window = fields.count("sliding_window", MAXIMUM_POSITIONS, default=rules.window)
    if not rules.window_switch:
        return window
    kinds = fields.raw.get("layer_types")
    if isinstance(kinds, list):
        sliding = sum(kind == "sliding_attention" for kind in kinds)
        full_layers = len(kinds) - sliding
    else:
        first = fields.raw.get("max_window_layers", WINDOWED_FROM_LAYER)
        if isinstance(first, bool) or not isinstance(first, int) or not 0 <= first <= MAXIMUM_COUNT:
            raise ValueError(
                f"{fields.where}: max_window_layers is {shown(first)}; "
                f"it should be a whole number from 0 to {MAXIMUM_COUNT:,}"
            )
        full_layers = min(first, layers)
        sliding = layers - full_layers
    if sliding and full_layers:
        return None
    return window if sliding else 0


def _unsized(raw: Mapping[str, object], name: str, family: str, why_not: str) -> Architecture:
    """What is plain to read of a family that is not sized: its top-level fields under their usual names."""

    def plain(*fields: str) -> int | None:
        for field in fields:
            value = raw.get(field)
            if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAXIMUM_POSITIONS:
                return value
        return None

    return Architecture(
        name=name,
        family=family,
        layer_form="",
        why_not=why_not,
        hidden_size=plain("hidden_size", "n_embd"),
        layer_count=plain("num_hidden_layers", "n_layer"),
        attention_heads=plain("num_attention_heads", "n_head"),
        kv_heads=plain("num_key_value_heads"),
        head_dimension=plain("head_dim"),
        mlp_width=plain("intermediate_size", "n_inner"),
        vocabulary_size=plain("vocab_size"),
        maximum_positions=plain("max_position_embeddings", "n_positions"),
        sliding_window=None,
        tied=None,
        qkv_bias=None,
        output_bias=None,
        mlp_bias=None,
        assumed=(),
    )


def _checked_texts(raw: Mapping[str, object], where: str) -> str:
    """Checks all name-like text of a config.json and returns model_type."""
    for field in ("_name_or_path", "architectures"):
        value = raw.get(field)
        entries = value if field == "architectures" and isinstance(value, list) else [value]
        for entry in entries:
            if entry is None or entry == "":
                continue
            if not isinstance(entry, str):
                right = "a list of names" if field == "architectures" else "a name"
                raise ValueError(f"{where}: {field} is {shown(entry)}; it should be {right}")
            checked_name(entry, where, field)
    if "model_type" not in raw:
        raise ValueError(f'{where}: model_type is missing; it should name the family, such as "llama"')
    family = raw["model_type"]
    if not isinstance(family, str):
        raise ValueError(f'{where}: model_type is {shown(family)}; it should name the family, such as "llama"')
    return checked_name(family, where, "model_type")


def _check_numbers(raw: Mapping[str, object], where: str) -> None:
    """ValueError for a NaN or infinity anywhere, and for nesting that no config.json has."""
    level: list[tuple[str, object]] = [("", raw)]
    for _ in range(MAXIMUM_DEPTH):
        deeper: list[tuple[str, object]] = []
        for field, value in level:
            if isinstance(value, Mapping):
                # The cut keeps a hostile file's long keys from multiplying.
                deeper += [(f"{field}.{key}".lstrip(".")[:100], item) for key, item in value.items()]
            elif isinstance(value, list | tuple):
                deeper += [(field, item) for item in value]
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{where}: {one_line(field)} is {shown(value)}; it should be a finite number")
        if not deeper:
            return
        level = deeper
    raise ValueError(f"{where} is nested more than {MAXIMUM_DEPTH} deep; a config.json has a few levels")


def _parsed(text: str, where: str) -> Mapping[str, object]:
    """The JSON object that a text holds."""
    try:
        content = json.loads(text, object_pairs_hook=_unique_keys(where), parse_int=_whole_number(where))
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError(f"{where} is nested too deeply; a config.json has a few levels") from None
    if not isinstance(content, dict):
        raise ValueError(f"{where} holds {shown(content)}; a config.json is one object of fields and their values")
    return content


def _unique_keys(where: str) -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        built = dict(pairs)
        if len(built) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice = next(key for key in counts if counts[key] > 1)
            raise ValueError(f"{where}: {shown(twice)} stands there twice; it should stand there once")
        return built

    return build


def _whole_number(where: str) -> Callable[[str], int]:
    def build(digits: str) -> int:
        if len(digits) > 100:
            raise ValueError(f"{where} holds a number of {len(digits):,} digits; no field needs more than 20")
        return int(digits)

    return build


def _file(path: Path) -> Path:
    """The config.json that a path means: itself, or the one in the folder."""
    try:
        is_folder = path.is_dir()
        file = path / "config.json" if is_folder else path
        if file.is_file():
            return file
    except OSError:  # a name too long to be one, a folder that may not be entered
        is_folder = False
    if is_folder:
        raise ValueError(f"{one_line(str(path))} holds no config.json; a model's folder should hold one")
    raise ValueError(
        f"there is no file {shown(str(path))}; "
        "it should be a config.json, a folder that holds one, or the JSON text of one"
    )


def _text(path: Path, where: str) -> str:
    """The text of a file, UTF-8 with or without its mark, of at most a megabyte."""
    try:
        with path.open("rb") as file:
            content = file.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}") from None
    if len(content) > MAXIMUM_BYTES:
        raise ValueError(f"{where} is larger than {MAXIMUM_BYTES:,} bytes; a config.json has a few thousand")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is not UTF-8 text at byte {error.start}; save it as UTF-8") from None


def _name_of(path: Path) -> str:
    """A model's name by its file: that of the folder of a config.json, else the file's own."""
    # abspath, not resolve: download caches link config.json to a file of another name elsewhere.
    name = Path(os.path.abspath(path)).parent.name if path.name == "config.json" else path.stem
    return name.replace("--", "/", 1)

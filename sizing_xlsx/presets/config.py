"""A model's config.json -> its architecture: every figure under one name, with where it came from.

What a family calls its fields, what its configuration class takes where the file says nothing, and what its layers
are made of are data: presets/families.toml. The counts of parameters are formulas: memory/decoder/.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import layers, vision
from .config_file import Content, check_finite, load_config
from .families import Families, Family, Wrapper, extended, families
from .names import checked_name, one_line, shown
from .quantisation import Quantisation, quantisation

MAXIMUM_COUNT = 10_000_000
MAXIMUM_LAYERS = 10_000
MAXIMUM_POSITIONS = 1_000_000_000  # contexts of ten million tokens are on sale
MLP_FACTOR = 4  # MLP width over hidden size, in families whose config.json may leave the width out

STATED, CLASS_DEFAULT, DERIVED, FIXED = "stated", "class default", "derived", "fixed by the class"
# Where a language part lies in a config of several parts.
LANGUAGE_PARTS = ("text_config", "language_config", "llm_config", "thinker_config", "language_model", "decoder")
# What no model computes positions with unless they are finite.
_POSITIONS = frozenset(("rope_theta", "rope_scaling", "rope_parameters"))
# What a sound config.json of one part never leaves out; parts of a larger one state only what differs from the class.
_REQUIRED = ("hidden_size", "layer_count", "attention_heads", "mlp_width", "vocabulary_size")


class Origin(NamedTuple):
    """Where a value came from: stated, class default, derived or fixed by the class; and the field or rule."""

    kind: str
    place: str


class Architecture(NamedTuple):
    """The shape of a model. Widths, heads, layers, positions are counts; switches are 0 or 1.

    layer_form is "" where no formula of activations could hold: why_not then says why. A family that is not known
    has None for all that its config.json does not state in the usual place.
    """

    name: str
    family: str  # model_type, of the whole
    layer_form: str = ""
    why_not: str = ""
    # ------------------------------------------------------------------ shape
    hidden_size: int | None = None
    layer_count: int | None = None
    attention_heads: int | None = None
    kv_heads: int | None = None
    head_dimension: int | None = None  # of queries and keys
    mlp_width: int | None = None  # of the dense layers; where there are none, what the file states
    vocabulary_size: int | None = None
    maximum_positions: int | None = None  # 0: not stated
    sliding_window: int | None = None  # tokens, of the layers that have a window; 0: every layer attends to everything
    tied: int | None = None  # 1: the output layer shares the embedding
    qkv_bias: int | None = None
    output_bias: int | None = None
    mlp_bias: int | None = None
    head_bias: int | None = None  # of the output layer
    # ------------------------------------------------------------------ latent attention; 0: none
    value_head_dimension: int | None = None
    query_latent_width: int | None = None
    kv_latent_width: int | None = None
    rope_dimension: int | None = None
    # ------------------------------------------------------------------ what layers are made of
    mlp_matrices: int | None = None  # 3: gate, up and down; 2: up and down
    fused_qkv: int | None = None  # 1: queries, keys and values come from one matrix
    fused_mlp: int | None = None  # 1: gate and up are one matrix
    plain_linears: int | None = None  # 1: linear modules are PyTorch's own, which bitsandbytes converts
    layer_norm_vectors: int | None = None  # norm weights and biases of hidden width in a layer
    outer_norm_vectors: int | None = None  # those outside the layers
    head_norm_vectors: int | None = None  # norm weights and biases of head width in a layer
    wide_qk_norms: int | None = None  # 1: norms over all queries and all keys
    attention_sinks: int | None = None  # 1: one learned value a head
    embedding_width: int | None = None  # 0: hidden size
    position_rows: int | None = None  # learned position embeddings; 0: none
    # ------------------------------------------------------------------ experts; 0: none
    expert_count: int | None = None
    experts_per_token: int | None = None
    expert_width: int | None = None
    shared_expert_width: int | None = None  # of all shared experts of a layer together
    shared_expert_gate: int | None = None
    expert_bias: int | None = None  # 1: experts and router have biases
    moe_period: int | None = None
    moe_offset: int | None = None
    moe_layer_count: int | None = None
    # ------------------------------------------------------------------ windows
    window_kind: str | None = None  # none, sliding or chunked
    full_period: int | None = None
    full_offset: int | None = None
    full_layer_count: int | None = None
    # ------------------------------------------------------------------ images
    vision_parameters: int | None = None  # tower and projector
    vision_linear_parameters: int | None = None
    image_tokens: int | None = None  # of one image; 0: none, or it depends on the image
    # ------------------------------------------------------------------ about the reading
    prediction_layers: int = 0  # blocks that predict further tokens: in the checkpoint, not built, not counted
    dtype: str = ""  # of the published weights, as stated
    quantisation: Quantisation | None = None  # of the published weights; counts are of the model without it
    assumed: tuple[str, ...] = ()  # fields of config.json that were not stated and taken from the class
    origins: Mapping[str, Origin] = {}
    notes: tuple[str, ...] = ()
    counted: Mapping[str, int] | None = None  # parameters counted module by module, where no formula holds


class Fields:
    """The fields of one config.json or of a part of it, taken one at a time; what was not stated is collected."""

    MAXIMUM_POSITIONS = MAXIMUM_POSITIONS
    MAXIMUM_LAYERS = MAXIMUM_LAYERS

    def __init__(self, raw: Content, where: str, family: Family, part: str = "") -> None:
        self.raw, self.where, self.family, self.part = raw, where, family, part
        self.assumed: dict[str, None] = {}  # in the order of asking, each once
        self.origins: dict[str, Origin] = {}

    def place(self, field: str) -> str:
        """How a sentence names a field."""
        return f"{self.where}: {self.part}{field}"

    def whole(self, field: str, default: int, *, low: int = 1, high: int = MAXIMUM_COUNT, ours: str = "") -> int:
        """A whole number from low to high under the file's own name; the default where it is absent or null.

        ours: the column that it is, for its origin.
        """
        value = self.raw.get(field)
        if ours:
            self.origins[ours] = Origin(CLASS_DEFAULT if value is None else STATED, self.part + field)
        if value is None:
            self._assume(field)
            return default
        return self._checked(field, value, low, high)

    def flag(self, field: str, default: int) -> int:
        """true or false as 1 or 0 under the file's own name; the default where it is absent or null."""
        value = self.raw.get(field)
        if value is None:
            self._assume(field)
            return default
        if not isinstance(value, bool):
            raise ValueError(f"{self.place(field)} is {shown(value)}; it should be true or false")
        return int(value)

    def share(self, field: str, default: float) -> float:
        """A number above 0 and at most 1."""
        value = self.raw.get(field)
        if value is None:
            self._assume(field)
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise ValueError(f"{self.place(field)} is {shown(value)}; it should be a number above 0 and at most 1")
        return float(value)

    def number(self, ours: str, *, low: int = 1, high: int = MAXIMUM_COUNT) -> int:
        """A whole number under our name, by the family's rules. 0 where it follows from the rest or there is none."""
        found = self._of_family(ours)
        if isinstance(found, int):
            return found
        field, value = found
        return self._checked(field, value, low, high)

    def switch(self, ours: str) -> int:
        """true or false under our name, by the family's rules."""
        found = self._of_family(ours)
        if isinstance(found, int):
            return found
        field, _ = found
        return self.flag(field, 0)

    def _of_family(self, ours: str) -> int | tuple[str, object]:
        """What the family fixes or takes by default, else the stated field with its value."""
        family = self.family
        names = family.names.get(ours, ())
        if len(names) > 1 and ours in _ONE_MEANING:
            self._agree(names)
        for field in names:
            if self.raw.get(field) is not None:
                self.origins[ours] = Origin(STATED, self.part + field)
                return field, self.raw[field]
        if ours in _NULL_IS_NONE and any(field in self.raw for field in names):
            self.origins[ours] = Origin(STATED, self.part + names[0])
            return 0
        if ours in family.fixed:
            self.origins[ours] = Origin(FIXED, family.name)
            return family.fixed[ours]
        default = family.defaults.get(ours, 0)
        if not names:
            return default
        if ours in _REQUIRED and default and not self.part:
            fault = "is null" if names[0] in self.raw else "is missing"
            raise ValueError(f"{self.place(names[0])} {fault}; it should be {_right(1, self._high(ours))}")
        if default or names[0] not in self.raw:
            self._assume(names[0], quiet=default == 0 and ours in _FOLLOWING)
            self.origins[ours] = Origin(CLASS_DEFAULT, self.part + names[0])
        return default

    def _agree(self, names: tuple[str, ...]) -> None:
        """ValueError when a figure is stated under two names with two values."""
        stated = [name for name in names if self.raw.get(name) is not None]
        for other in stated[1:]:
            if self.raw[other] != self.raw[stated[0]]:
                raise ValueError(
                    f"{self.place(other)} is {shown(self.raw[other])} and {stated[0]} is "
                    f"{shown(self.raw[stated[0]])}; they are two names of one figure and should agree"
                )

    def _high(self, ours: str) -> int:
        return MAXIMUM_LAYERS if ours == "layer_count" else MAXIMUM_COUNT

    def _assume(self, field: str, quiet: bool = False) -> None:
        if not quiet:
            self.assumed[self.part + field] = None

    def _checked(self, field: str, value: object, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{self.place(field)} is {shown(value)}; it should be {_right(low, high)}")
        return value


# Fields whose names in a config.json mean the same; of others the first counts.
_ONE_MEANING = ("hidden_size", "layer_count", "attention_heads", "expert_count", "experts_per_token")
# Fields in which null says that there is none, whatever the class's default.
_NULL_IS_NONE = ("query_latent_width",)
# Fields that follow from others where they are not stated: no assumption.
_FOLLOWING = ("head_dimension", "mlp_width", "expert_width", "embedding_width", "prediction_layers")


def _right(low: int, high: int) -> str:
    return f"a whole number from {low} to {high:,}"


# ---------------------------------------------------------------------- the ways in
def read_config(source: str | Path | Content, *, unknown: str = "build", known: Families | None = None) -> Architecture:
    """The architecture that a config.json describes.

    source: the path of a config.json, the path of a folder that holds one, its JSON text, or its content as a
    dict; see load_config. unknown: what becomes of a family that is not described here: "build" it on PyTorch's
    meta device with transformers and count its modules, or "list" what is plain to read, with why_not. Nothing in
    the file is executed. Raises ValueError, one sentence with the file, the field, its value and what is right.
    """
    content, where, name = load_config(source)
    described = known or families()
    check_finite(content, where, described.fields | _POSITIONS)
    family = str(content["model_type"])
    rest: dict[str, Any] = {"quantisation": quantisation(content, where)}
    if wrapper := described.wrappers.get(family):
        try:
            return _noted(_wrapped(content, where, name, wrapper, described), content)._replace(**rest)
        except LookupError as unread:
            why = str(unread)
    elif family in described.decoders and content.get("add_cross_attention") is not True:
        return _noted(_decoder(content, where, name, described.decoders[family]), content)._replace(**rest)
    elif family in described.decoders:
        why = f"family {family} with add_cross_attention is not described"
    else:
        why = f"family {family} is not described"
    if unknown == "list":
        return _listed(content, name, family, why)._replace(dtype=_dtype(content), **rest)
    from .meta import built  # the only part that knows torch

    return _noted(built(content, where, name, why), content)._replace(**rest)


def read_models(folder: str | Path, known: Families | None = None) -> list[Architecture]:
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
        model = read_config(sub, unknown="list", known=known)
        other = found.setdefault(model.name.casefold(), model)
        if other is not model:
            raise ValueError(
                f"{one_line(str(folder))}: {shown(other.name)} and {shown(model.name)} are the same name "
                "without regard to case; rename one of their folders"
            )
    return [found[name] for name in sorted(found)]


# ---------------------------------------------------------------------- whole classes
def _wrapped(raw: Content, where: str, name: str, wrapper: Wrapper, described: Families) -> Architecture:
    """A decoder with a tower; LookupError, with the reason, when one of its parts is of a family not described."""
    text, part = _part(raw, where, "text_config"), "text_config."
    if text is None:
        if not (wrapper.flat and "hidden_size" in raw):
            raise ValueError(f"{where}: text_config is missing; it should hold the config of the language part")
        text, part = raw, ""
    family = text.get("model_type", wrapper.text) if part else wrapper.text
    if not isinstance(family, str):
        raise ValueError(f'{where}: text_config.model_type is {shown(family)}; it should be a name, such as "llama"')
    checked_name(family, where, "text_config.model_type")
    if family == wrapper.name:
        family = wrapper.text
    if family not in described.decoders:
        raise LookupError(f"its language part, of family {family}, is not described")
    decoder = described.decoders[family]
    model = _decoder(text, where, name, decoder, part)

    whole = Fields(raw, where, decoder)
    tower_raw = _part(raw, where, "vision_config")
    if tower_raw is None:
        raise ValueError(f"{where}: vision_config is missing; it should hold the config of the part that reads images")
    tower_fields = Fields(tower_raw, where, decoder, "vision_config.")
    kind = tower_fields.raw.get("model_type")
    if kind is not None and kind not in wrapper.vision_types:
        raise LookupError(f"its vision_config of type {shown(kind)} is not described")
    tower = vision.count(wrapper.vision, tower_fields, whole, model.hidden_size or 0)
    tied = model.tied
    if wrapper.tied is not None:
        tied = whole.flag("tie_word_embeddings", wrapper.tied)
        if wrapper.tied_in_text and text.get("tie_word_embeddings") is True:
            tied = 1
    image_tokens = tower.image_tokens
    if wrapper.image_tokens:
        image_tokens = whole.whole(wrapper.image_tokens["field"], wrapper.image_tokens["default"])
    unused = {"text_config.tie_word_embeddings"} if wrapper.tied is not None else set()
    assumed = dict.fromkeys((*model.assumed, *whole.assumed, *tower_fields.assumed))
    vision_origin = Origin(DERIVED, "vision_config")
    origin_of_tied = Origin(CLASS_DEFAULT if "tie_word_embeddings" in whole.assumed else STATED, "tie_word_embeddings")
    return model._replace(
        family=wrapper.name,
        tied=tied,
        vision_parameters=tower.parameters,
        vision_linear_parameters=tower.linear,
        image_tokens=image_tokens,
        assumed=tuple(field for field in assumed if field not in unused),
        origins={
            **model.origins,
            **({"tied": origin_of_tied} if wrapper.tied is not None else {}),
            "vision_parameters": vision_origin,
            "vision_linear_parameters": vision_origin,
            "image_tokens": _image_origin(wrapper, whole),
        },
    )


def _image_origin(wrapper: Wrapper, whole: Fields) -> Origin:
    field = wrapper.image_tokens.get("field")
    if not field:
        return Origin(DERIVED, "vision_config")
    return Origin(CLASS_DEFAULT if field in whole.assumed else STATED, field)


def _part(raw: Content, where: str, field: str) -> Content | None:
    part = raw.get(field)
    if part is None or isinstance(part, Mapping):
        return part
    raise ValueError(f"{where}: {field} is {shown(part)}; it should be an object, the config of one part")


# ---------------------------------------------------------------------- decoders
def _decoder(raw: Content, where: str, name: str, family: Family, part: str = "") -> Architecture:
    fields = Fields(raw, where, _variant(raw, where, family, part), part)
    _variant_origins(fields, family)
    family = fields.family
    hidden = fields.number("hidden_size")
    layer_count = fields.number("layer_count", high=MAXIMUM_LAYERS)
    heads = fields.number("attention_heads")
    latent = fields.number("kv_latent_width")
    kv_heads = _kv_heads(fields, heads)
    head, values = _head_dimensions(fields, hidden, heads, latent)
    mlp = fields.number("mlp_width") or _derived(fields, "mlp_width", MLP_FACTOR * hidden, "4 x hidden size")
    positions = fields.number("maximum_positions", high=MAXIMUM_POSITIONS)
    embedding = fields.number("embedding_width")
    experts = layers.expert_layers(fields, dict(family.experts), layer_count)
    moe = _experts(fields, experts)
    windows = layers.windows(fields, dict(family.windows), layer_count)
    learned = family.fixed.get("positions_learned", 0)
    fixed: dict[str, Any] = {key: family.fixed.get(key, 0) for key in _FIXED_COLUMNS}
    model = Architecture(
        name=name,
        family=family.name,
        layer_form=family.form,
        hidden_size=hidden,
        layer_count=layer_count,
        attention_heads=heads,
        kv_heads=kv_heads,
        head_dimension=head,
        mlp_width=mlp // family.fixed.get("mlp_width_divisor", 1),
        vocabulary_size=fields.number("vocabulary_size"),
        maximum_positions=positions,
        sliding_window=windows.tokens,
        tied=fields.switch("tied"),
        qkv_bias=fields.switch("qkv_bias"),
        output_bias=fields.switch("output_bias"),
        mlp_bias=fields.switch("mlp_bias"),
        value_head_dimension=values,
        query_latent_width=fields.number("query_latent_width"),
        kv_latent_width=latent,
        rope_dimension=fields.number("rope_dimension"),
        embedding_width=0 if embedding == hidden else embedding,
        position_rows=learned * (positions + family.fixed.get("extra_position_rows", 0)),
        **moe,
        **fixed,
        window_kind=windows.kind,
        full_period=windows.full.period,
        full_offset=windows.full.offset,
        full_layer_count=windows.full.number,
        vision_parameters=0,
        vision_linear_parameters=0,
        image_tokens=0,
        prediction_layers=fields.number("prediction_layers", low=0),
    )
    model = model._replace(
        assumed=tuple(fields.assumed), origins=_all_origins(fields, model), notes=_notes(model, windows, experts)
    )
    return _of_known_activation(model, fields)


_FIXED_COLUMNS = (
    "head_bias", "mlp_matrices", "fused_qkv", "fused_mlp", "plain_linears", "layer_norm_vectors", "outer_norm_vectors",
    "head_norm_vectors", "wide_qk_norms", "attention_sinks", "shared_expert_gate", "expert_bias",
)  # fmt: skip
_EXPERT_COLUMNS = ("expert_count", "experts_per_token", "expert_width", "shared_expert_width")


def _variant(raw: Content, where: str, family: Family, part: str) -> Family:
    """The family as the file's switches make it."""
    if not family.switches:
        return family
    reader = Fields(raw, where, family, part)
    values: dict[str, bool | int | str] = {}
    for field, default in family.switches.items():
        if _means_none(raw, field, family):
            values[field] = 0
        elif isinstance(default, str):
            stated = raw.get(field)
            values[field] = stated if isinstance(stated, str) else default
        elif isinstance(default, bool):
            values[field] = bool(reader.flag(field, int(default)))
        else:
            values[field] = reader.whole(field, default, low=0)
    for variant in family.variants:
        if all(values[field] == wanted for field, wanted in variant["when"].items()):
            family = extended(family, variant)
    return family


def _means_none(raw: Content, field: str, family: Family) -> bool:
    """Whether a field is null where that means there is none, and not what the class takes."""
    none = any(field in family.names.get(ours, ()) for ours in _NULL_IS_NONE)
    return none and field in raw and raw[field] is None


def _variant_origins(fields: Fields, family: Family) -> None:
    """Switches that the file leaves to the class are assumed."""
    for field in family.switches:
        if fields.raw.get(field) is None and not _means_none(fields.raw, field, family):
            fields.assumed[fields.part + field] = None


def _kv_heads(fields: Fields, heads: int) -> int:
    """KV heads; null ones, and absent ones where the class says so, are as many as attention heads."""
    names = fields.family.names.get("kv_heads", ())
    stated_null = any(name in fields.raw and fields.raw[name] is None for name in names)
    if stated_null and not any(fields.raw.get(name) is not None for name in names):
        return _derived(fields, "kv_heads", heads, "null: as many as attention heads")
    kv_heads = fields.number("kv_heads")
    if not kv_heads:
        if fields.origins.get("kv_heads", Origin("", "")).kind == CLASS_DEFAULT:
            return heads
        return _derived(fields, "kv_heads", heads, "as many as attention heads")
    if heads % kv_heads:
        by = " by default" if fields.origins["kv_heads"].kind == CLASS_DEFAULT else ""
        own, other = _name(fields, "kv_heads"), _name(fields, "attention_heads")
        raise ValueError(f"{fields.place(own)} is {kv_heads}{by}; it should divide {other}, {heads}")
    return kv_heads


def _head_dimensions(fields: Fields, hidden: int, heads: int, latent: int) -> tuple[int, int]:
    """Width of one head of queries and keys, and of one of values."""
    if latent:
        head = fields.number("rope_dimension") + fields.number("plain_dimension")
        rule = " + ".join(_name(fields, part) for part in ("rope_dimension", "plain_dimension"))
        return _derived(fields, "head_dimension", head, rule), fields.number("value_head_dimension")
    if any(name in fields.raw and fields.raw[name] is None for name in fields.family.names.get("head_dimension", ())):
        head = 0
    else:
        head = fields.number("head_dimension")
    if not head:
        if hidden % heads:
            unless = "without head_dim " if fields.family.names.get("head_dimension") else ""
            raise ValueError(
                f"{fields.place(_name(fields, 'hidden_size'))} is {hidden}; "
                f"{unless}it should be a multiple of {_name(fields, 'attention_heads')}, {heads}"
            )
        head = _derived(fields, "head_dimension", hidden // heads, "hidden size / attention heads")
    return head, _derived(fields, "value_head_dimension", head, "head dimension")


def _name(fields: Fields, ours: str) -> str:
    """The name of a field in the file at hand: the one that is there, else the usual one."""
    names = fields.family.names.get(ours) or (ours,)
    return next((name for name in names if fields.raw.get(name) is not None), names[0])


def _experts(fields: Fields, pattern: layers.Pattern) -> dict[str, Any]:
    """The columns about experts; all 0 when no layer has any."""
    if not fields.family.experts:
        return dict.fromkeys((*_EXPERT_COLUMNS, *_OF_EXPERTS), 0)
    optional = fields.family.experts["rule"] == "sparse_step"  # its class builds a dense model where there are none
    count = fields.number("expert_count", low=0 if optional else 1)
    if not count:
        return dict.fromkeys((*_EXPERT_COLUMNS, *_OF_EXPERTS), 0)
    per_token, width = fields.number("experts_per_token"), fields.number("expert_width")
    if not per_token:
        raise ValueError(
            f"{fields.place(_name(fields, 'experts_per_token'))} is missing; it should be {_right(1, count)}"
        )
    if per_token > count:
        raise ValueError(
            f"{fields.place(_name(fields, 'experts_per_token'))} is {per_token}; "
            f"it should be at most {_name(fields, 'expert_count')}, {count}"
        )
    width = width or fields.number("mlp_width")
    if fields.family.names.get("shared_experts") or "shared_experts" in fields.family.fixed:
        shared = width * fields.number("shared_experts", low=0)
        fields.origins["shared_expert_width"] = Origin(DERIVED, "shared experts x expert width")
    else:
        shared = fields.number("shared_expert_width", low=0)
    return {
        "expert_count": count,
        "experts_per_token": per_token,
        "expert_width": width,
        "shared_expert_width": shared,
        "moe_period": pattern.period,
        "moe_offset": pattern.offset,
        "moe_layer_count": pattern.number,
    }


def _derived(fields: Fields, ours: str, value: int, rule: str) -> int:
    fields.origins[ours] = Origin(DERIVED, rule)
    return value


def _all_origins(fields: Fields, model: Architecture) -> dict[str, Origin]:
    """An origin for every column; what no field or rule gave is fixed by the class."""
    origins = dict.fromkeys(COLUMNS, Origin(FIXED, fields.family.name))
    if fields.family.windows:
        origins |= dict.fromkeys(_OF_WINDOWS, Origin(DERIVED, "the layers' windows"))
    else:
        origins["full_layer_count"] = Origin(DERIVED, "layer count")
    if fields.family.experts:
        origins |= dict.fromkeys(_OF_EXPERTS, Origin(DERIVED, "the layers' experts"))
    if model.position_rows:
        origins["position_rows"] = Origin(DERIVED, "maximum positions")
    origins |= {ours: origin for ours, origin in fields.origins.items() if ours in origins}
    return origins


_OF_WINDOWS = ("window_kind", "sliding_window", "full_period", "full_offset", "full_layer_count")
_OF_EXPERTS = ("moe_period", "moe_offset", "moe_layer_count")


def _notes(model: Architecture, windows: layers.Windows, experts: layers.Pattern) -> tuple[str, ...]:
    """What a reader of the architecture should know."""
    notes = []
    if not windows.full.fits:
        notes.append(
            f"{windows.full.number} of {model.layer_count} layers attend to everything, in no regular pattern: "
            "their number is exact, full_period is 0"
        )
    if not experts.fits:
        notes.append(
            f"{experts.number} of {model.layer_count} layers have experts, in no regular pattern: "
            "their number is exact, moe_period is 0"
        )
    if model.expert_count and not model.moe_layer_count:
        notes.append(
            f"experts are stated, {model.expert_count} a layer, and none of the {model.layer_count} layers has them, "
            "by what the file says of its dense layers: the model is counted as dense"
        )
    if model.prediction_layers:
        notes.append(
            f"{model.prediction_layers} multi-token-prediction block{'s' if model.prediction_layers > 1 else ''}: "
            "in the checkpoint, not built by transformers, not counted"
        )
    return tuple(notes)


_CLASS_ENDS = ("LMHeadModel", "ForCausalLM", "ForConditionalGeneration", "Model")
_HEADLESS_WITH_HEAD = ("chatglm",)  # their ...Model has an output head


def _noted(model: Architecture, content: Content) -> Architecture:
    """The model with the type of its published weights, and a note on each field that contradicts what is counted."""
    model = model._replace(dtype=_dtype(content))
    known = model.counted is not None  # what was built says of itself which class it is
    said = ("" if known else _other_class(model, content), _other_tying(model, content), _other_dtype(model))
    return model._replace(notes=(*model.notes, *(note for note in said if note)))


def _other_class(model: Architecture, content: Content) -> str:
    """What to say where architectures names a class with another head, or of another family."""
    named = content.get("architectures")
    first = named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""
    family = model.family.replace("_", "").casefold()
    end = next((end for end in _CLASS_ENDS if first.endswith(end)), "")
    start = first.removesuffix(end).replace("_", "").casefold()
    if first and (not end or (end == "Model" and model.family not in _HEADLESS_WITH_HEAD)):
        return f"architectures is {first}, whose head is another or none: counted with the head of a model that writes"
    if start and not (family.startswith(start) or start.startswith(family)) and start not in _OTHER_NAMES:
        return f"architectures is {first}, which is no class of family {model.family}: counted as model_type says"
    return ""


_DTYPES = ("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2", "int8", "uint8", "auto")


def _other_dtype(model: Architecture) -> str:
    """What to say where the type of the published weights is none."""
    if not model.dtype or model.dtype.removeprefix("torch.") in _DTYPES:
        return ""
    return f"the type of the published weights is {shown(model.dtype)}, which is none that is known here"


def _other_tying(model: Architecture, content: Content) -> str:
    """What to say where the language part states another tying than the whole is built with."""
    text = content.get("text_config")
    inner = text.get("tie_word_embeddings") if isinstance(text, Mapping) else None
    if not isinstance(inner, bool) or model.tied is None or inner == bool(model.tied):
        return ""
    outer = content.get("tie_word_embeddings")
    stated = "is not stated" if outer is None else f"is {str(bool(outer)).lower()}"
    return (
        f"text_config.tie_word_embeddings is {str(inner).lower()} and tie_word_embeddings of the whole {stated}: "
        f"counted {'' if model.tied else 'un'}tied, as transformers builds it"
    )


# Classes of published files whose names have another beginning than their families.
_OTHER_NAMES = ("rw", "deepseekv3", "deepseekv2", "llava", "internvlchat")


def _of_known_activation(model: Architecture, fields: Fields) -> Architecture:
    """The model without a layer form when its MLP's activation is not one that the form holds for."""
    for field in fields.family.names.get("activation", ()):
        activation = fields.raw.get(field)
        if activation is not None and activation not in fields.family.activations:
            return model._replace(layer_form="", why_not=f"its activation {shown(activation)} is not sized yet")
    return model


# ---------------------------------------------------------------------- what is not known
def _listed(raw: Content, name: str, family: str, why: str) -> Architecture:
    """What is plain to read of a family that is not described: the usual fields of its language part."""
    part = _language_part(raw)

    def plain(*fields: str) -> int | None:
        for field in fields:
            value = part.get(field)
            if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAXIMUM_POSITIONS:
                return value
        return None

    return Architecture(
        name=name,
        family=family,
        why_not=f"{why}: it is not counted",
        hidden_size=plain("hidden_size", "n_embd"),
        layer_count=plain("num_hidden_layers", "n_layer"),
        attention_heads=plain("num_attention_heads", "n_head"),
        kv_heads=plain("num_key_value_heads"),
        head_dimension=plain("head_dim"),
        mlp_width=plain("intermediate_size", "n_inner"),
        vocabulary_size=plain("vocab_size"),
        maximum_positions=plain("max_position_embeddings", "n_positions"),
    )


def _language_part(raw: Content) -> Content:
    """The innermost config of a language part, at any depth; the config itself where it has no parts."""
    inner = next((raw[field] for field in LANGUAGE_PARTS if isinstance(raw.get(field), Mapping)), None)
    return _language_part(inner) if isinstance(inner, Mapping) else raw


def _dtype(raw: Content) -> str:
    for part in (raw, raw.get("text_config")):
        if isinstance(part, Mapping):
            for field in ("dtype", "torch_dtype"):
                value: Any = part.get(field)
                if isinstance(value, str) and value.isprintable():
                    return value[:20]
    return ""


_ABOUT = (
    "name", "family", "layer_form", "why_not", "prediction_layers", "dtype", "quantisation", "assumed", "origins",
    "notes", "counted",
)  # fmt: skip
# The figures of an architecture, all counts but window_kind.
COLUMNS = tuple(field for field in Architecture._fields if field not in _ABOUT)
# What formulas may look up of a model, with the unit of each.
UNITS = {"layer_form": "text"} | {column: "text" if column == "window_kind" else "count" for column in COLUMNS}

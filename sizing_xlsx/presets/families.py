"""presets/families.toml -> what a family of models calls things, assumes and builds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..paths import presets_folder
from .names import one_line, shown
from .toml_file import read_toml


class Family(NamedTuple):
    """What a family's config.json means. The file says what each field is."""

    name: str
    form: str
    activations: tuple[str, ...] = ()
    names: Mapping[str, tuple[str, ...]] = {}
    defaults: Mapping[str, int] = {}
    fixed: Mapping[str, int] = {}
    switches: Mapping[str, bool | int | str] = {}
    variants: tuple[Mapping[str, Any], ...] = ()
    windows: Mapping[str, Any] = {}
    experts: Mapping[str, Any] = {}


class Wrapper(NamedTuple):
    """A class around a decoder. tied: its own default, None where the decoder's counts; flat: without text_config,
    the decoder's fields may stand beside vision_config."""

    name: str
    text: str
    vision: str
    vision_types: tuple[str, ...] = ()
    tied: int | None = None
    tied_in_text: bool = False
    flat: bool = False
    image_tokens: Mapping[str, Any] = {}


class Families(NamedTuple):
    """All families and wrappers by model_type."""

    decoders: Mapping[str, Family]
    wrappers: Mapping[str, Wrapper]
    fields: frozenset[str] = frozenset()  # of a config.json, that any of them reads


def families(path: Path | None = None) -> Families:
    """The families of a file, the product's own when none is named; ValueError, one sentence, when it is wrong."""
    return _read(path or presets_folder() / "families.toml")


def extended(family: Family, entry: Mapping[str, Any]) -> Family:
    """The family with the differences that an entry (another family, or a variant) states.

    What an entry reads from the file is no longer fixed, and what it fixes is no longer read.
    """
    names, fixed = dict(family.names), dict(family.fixed)
    for field, spellings in entry.get("names", {}).items():
        names[field] = tuple(spellings)
        fixed.pop(field, None)
    for field, value in entry.get("fixed", {}).items():
        fixed[field] = value
        names[field] = ()
    return family._replace(
        form=entry.get("form", family.form),
        activations=tuple(entry.get("activations", family.activations)),
        names=names,
        fixed=fixed,
        defaults={**family.defaults, **entry.get("defaults", {})},
        switches=entry.get("switches", family.switches),
        variants=tuple(entry.get("variants", family.variants)),
        windows=entry.get("windows", family.windows),
        experts=entry.get("experts", family.experts),
    )


def forget() -> None:
    """Read the files anew when they are next asked for: they have changed."""
    _read.cache_clear()


@lru_cache(maxsize=4)
def _read(path: Path) -> Families:
    where = one_line(str(path))
    content = read_toml(path)
    wrappers = content.pop("wrappers", {})
    decoders: dict[str, Family] = {}
    for name, entry in content.items():
        if not isinstance(entry, dict):
            raise ValueError(f"{where}: {one_line(name)} is {shown(entry)}; it should be a table of a family")
        parent = entry.get("like")
        if parent is not None and parent not in decoders:
            raise ValueError(f"{where}: [{one_line(name)}] is like {shown(parent)}; it should name a family above it")
        base = decoders[parent]._replace(name=name) if parent else Family(name, "")
        decoders[name] = extended(base, entry)
    fields = frozenset(
        name
        for family in decoders.values()
        for names in (*family.names.values(), family.switches, _fields_of(family.windows), _fields_of(family.experts))
        for name in names
    )
    return Families(decoders, {name: Wrapper(name, **entry) for name, entry in wrappers.items()}, fields)


def _fields_of(rule: Mapping[str, Any]) -> list[str]:
    """The fields that a rule about layers names."""
    return [
        value for key, value in rule.items() if key in ("window", "switch", "field", "step_field", "interval_field")
    ]

"""Full forms: what a decoder layer keeps when everything is trained, as coefficients by stream; see full_forms.toml."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..formula.table import Table
from ..paths import presets_folder
from .layer_forms import sum_of
from .names import one_line, shown
from .toml_file import read_toml

# What runs between the layers: 16-bit weights; fp32 weights under autocast; fp32 weights and compute.
STREAMS = ("half", "autocast", "fp32")
# Part of a stream -> the widths that formulas add up, as layer_forms.py names them.
PARTS = {
    "layer": ("d", "q", "o", "kv", "nh", "nkv", "ql", "kvl", "rope", "nh_rope", "nh_S", "S", "one"),
    "mlp": ("d", "ff"),
    "moe": ("d", "k_e", "k_d", "k", "E", "E_e", "E_d", "s", "one"),
    "outer": ("d", "one"),
}
_PLAIN = ("one", "k", "E")  # widths that are no width of a tensor: bytes a token of them
UNITS = {
    f"{part}_{width}": "bytes per token" if width in _PLAIN else "bytes per value"
    for part, widths in PARTS.items()
    for width in widths
} | {"traced": "switch", "autocast_row": "count", "fp32_row": "count"}


class FullForm(NamedTuple):
    """What one layer form keeps in full training: where it comes from, and the parts of each traced stream."""

    name: str
    source: str
    streams: Mapping[str, Mapping[str, Mapping[str, int]]]  # stream -> part -> width -> bytes


def read_full_forms(path: Path | None = None) -> dict[str, FullForm]:
    """The entries of full_forms.toml by layer form. Raises ValueError, one sentence with the file and the place."""
    path = path or presets_folder() / "full_forms.toml"
    where = one_line(str(path))
    return {name: _form(name, entry, f"{where}: [{one_line(name)}]") for name, entry in read_toml(path).items()}


def _form(name: str, entry: Any, place: str) -> FullForm:
    if not isinstance(entry, dict) or not isinstance(entry.get("source"), str):
        raise ValueError(f"{place} has no source; it should say where its figures come from")
    streams: dict[str, dict[str, Mapping[str, int]]] = {}
    for key, value in entry.items():
        if key == "source":
            continue
        stream, _, part = key.partition("_")
        if stream not in STREAMS or part not in PARTS:
            raise ValueError(f"{place} has {shown(key)}; a key is a stream and a part, such as half_layer")
        added = sum_of(value, f"{place}, {key}")
        for width in added:
            if width not in PARTS[part]:
                raise ValueError(f"{place}, {key} has {shown(width)}; it should be one of {', '.join(PARTS[part])}")
        streams.setdefault(stream, {})[part] = added
    return FullForm(name, entry["source"], streams)


def full_form_table(forms: Mapping[str, FullForm], layer_forms: Collection[str]) -> Table:
    """A row of each layer form for 16-bit weights, under the form's name, then one of each further stream.

    A form, or a stream of it, that was not traced has traced 0 and no bytes.
    """
    names = list(layer_forms)
    keys = names + [f"{name}, {stream}" for stream in STREAMS[1:] for name in names]
    columns: dict[str, list[float]] = {column: [] for column in UNITS}
    for at, key in enumerate(keys):
        name, stream = names[at % len(names)], STREAMS[at // len(names)]
        parts = forms[name].streams.get(stream, {}) if name in forms else {}
        for part, widths in PARTS.items():
            for width in widths:
                columns[f"{part}_{width}"].append(parts.get(part, {}).get(width, 0))
        columns["traced"].append(int(bool(parts)))
        columns["autocast_row"].append(1 + at % len(names) + len(names))
        columns["fp32_row"].append(1 + at % len(names) + 2 * len(names))
        assert key.startswith(name)
    return Table("full_forms", keys, columns, UNITS)

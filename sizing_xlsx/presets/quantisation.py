"""quantization_config of a config.json: how the published weights are stored. Read, not counted with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .names import one_line, shown

MAXIMUM_KEPT = 1_000


class Quantisation(NamedTuple):
    """method: as the file names it. bits and group_size: 0 where not stated. kept: modules that are not quantised."""

    method: str
    bits: int
    group_size: int
    kept: tuple[str, ...]


def quantisation(raw: Mapping[str, object], where: str) -> Quantisation | None:
    """What quantization_config (of the whole, or of its language part) says; None when there is none."""
    for part, path in ((raw, ""), (raw.get("text_config"), "text_config.")):
        if isinstance(part, Mapping) and part.get("quantization_config") is not None:
            return _read(part["quantization_config"], f"{where}: {path}quantization_config")
    return None


def _read(entry: object, place: str) -> Quantisation:
    if not isinstance(entry, Mapping):
        raise ValueError(f"{place} is {shown(entry)}; it should be an object that names its quant_method")
    method = entry.get("quant_method") or ("bitsandbytes" if "load_in_4bit" in entry or "load_in_8bit" in entry else "")
    if not isinstance(method, str) or not method:
        raise ValueError(f'{place}.quant_method is {shown(method)}; it should be a name, such as "gptq"')
    group: Any = entry
    groups = entry.get("config_groups")  # compressed-tensors: a scheme for each group of modules
    if isinstance(groups, Mapping) and groups:
        first: Any = next(iter(groups.values()))
        group = first.get("weights") if isinstance(first, Mapping) and isinstance(first.get("weights"), Mapping) else {}
    kept: list[Any] = next((found for key in _KEPT if isinstance(found := entry.get(key), list)), [])
    return Quantisation(
        one_line(method)[:40],
        _bits(entry, group, method),
        _first(group, ("group_size", "q_group_size"), 65_536),
        tuple(one_line(str(name))[:200] for name in kept[:MAXIMUM_KEPT]),
    )


_KEPT = ("modules_to_not_convert", "llm_int8_skip_modules", "ignore", "ignored_layers")
_BITS_OF_METHOD = {"fp8": 8, "fbgemm_fp8": 8, "finegrained_fp8": 8, "mxfp4": 4}


def _bits(entry: Mapping[str, object], group: Mapping[str, object], method: str) -> int:
    stated = _first(group, ("bits", "num_bits", "w_bit", "nbits"), 32)
    if stated:
        return stated
    if entry.get("load_in_4bit") is True:
        return 4
    return 8 if entry.get("load_in_8bit") is True else _BITS_OF_METHOD.get(method, 0)


def _first(entry: Mapping[str, object], fields: tuple[str, ...], high: int) -> int:
    for field in fields:
        value = entry.get(field)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= high:
            return value
    return 0

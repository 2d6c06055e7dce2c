"""quantization_config of a config.json: how the published weights are stored, checked field by field.

Counts are of the model without quantisation; stored_format() says which row of storage_formats.csv the file's is.
Source of fields and defaults: the quantisation configurations of transformers 5.20.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .names import one_line, shown

MAXIMUM_KEPT = 1_000
MAXIMUM_BITS = 32
MAXIMUM_GROUP = 65_536
WHOLE_COLUMN = -1  # group_size of one group as long as the column


class Quantisation(NamedTuple):
    """method: as the file names it. bits and group_size: 0 where not stated, group_size -1 for one group a column.
    kept: modules that are not quantised. variant: the kind of number, such as nf4, fp4, int or NVFP4. double: scales
    are quantised once more. act_order: columns are sorted by activation. blocks: rows and columns that share a scale.
    head: the output head is quantised too.
    """

    method: str
    bits: int
    group_size: int
    kept: tuple[str, ...]
    variant: str = ""
    double: bool = False
    act_order: bool = False
    blocks: tuple[int, ...] = ()
    head: bool = False

    @property
    def words(self) -> str:
        """All of it but the modules that are kept, in a line."""
        grouped = "one group a column" if self.group_size < 0 else f"groups of {self.group_size}"
        parts = (
            self.method,
            self.variant,
            f"{self.bits} bits" if self.bits else "",
            grouped if self.group_size else "",
            f"blocks of {' x '.join(map(str, self.blocks))}" if self.blocks else "",
            "double quantisation" if self.double else "",
            "act-order" if self.act_order else "",
            "output head too" if self.head else "",
        )
        return ", ".join(part for part in parts if part)


def quantisation(raw: Mapping[str, object], where: str) -> Quantisation | None:
    """What quantization_config (of the whole, or of its language part) says; None when there is none.

    compression_config is its name in older files. Raises ValueError, one sentence, for a value that no method takes.
    """
    for part, path in ((raw, ""), (raw.get("text_config"), "text_config.")):
        for field in ("quantization_config", "compression_config"):
            if isinstance(part, Mapping) and part.get(field) is not None:
                return _read(part[field], f"{where}: {path}{field}")
    return None


def stored_format(stored: Quantisation) -> str:
    """The row of storage_formats.csv that a file's weights are in; "" where none is."""
    return next((name for name, holds in _FORMATS if holds(stored)), "")


# ---------------------------------------------------------------------- reading
def _read(entry: object, place: str) -> Quantisation:
    if not isinstance(entry, Mapping):
        raise ValueError(f"{place} is {shown(entry)}; it should be an object that names its quant_method")
    method = _method(entry, place)
    detail, inner = _detail(entry, method, place)
    bits = _whole(detail, inner, ("bits", "num_bits", "w_bit", "nbits"), 1, MAXIMUM_BITS)
    if bits and method in _PACKED_BITS and bits not in _PACKED_BITS[method]:
        right = ", ".join(map(str, _PACKED_BITS[method]))
        raise ValueError(f"{inner}.bits is {bits}; with quant_method {method} it should be one of {right}")
    kept: list[Any] = next((found for key in _KEPT if isinstance(found := entry.get(key), list)), [])
    loads = [_flag(entry, field, place) for field in ("load_in_4bit", "load_in_8bit")]
    if all(loads):
        raise ValueError(f"{place}.load_in_8bit is true and load_in_4bit is true; one of them should be")
    variant = _variant(entry, detail, method, place)
    return Quantisation(
        one_line(method)[:40],
        bits or 4 * loads[0] + 8 * loads[1] or _BITS_OF_METHOD.get(method, 0) or _bits_in(variant),
        _whole(detail, inner, ("group_size", "q_group_size"), WHOLE_COLUMN, MAXIMUM_GROUP),
        tuple(one_line(str(name))[:200] for name in kept[:MAXIMUM_KEPT]),
        variant,
        _flag(entry, "bnb_4bit_use_double_quant", place),
        _flag(entry, "desc_act", place),
        _blocks(entry, method, place),
        _flag(entry, "lm_head", place),
    )


def _method(entry: Mapping[str, object], place: str) -> str:
    method = entry.get("quant_method")
    if method is None and ("load_in_4bit" in entry or "load_in_8bit" in entry):
        return "bitsandbytes"
    if method is None:
        raise ValueError(f'{place}.quant_method is missing; it should be a name, such as "gptq"')
    if not isinstance(method, str) or not method.strip():
        raise ValueError(f'{place}.quant_method is {shown(method)}; it should be a name, such as "gptq"')
    return method


def _detail(entry: Mapping[str, Any], method: str, place: str) -> tuple[Mapping[str, Any], str]:
    """The object that holds bits and groups, and how a sentence names it."""
    groups = entry.get("config_groups")  # compressed-tensors: a scheme for each group of modules
    if isinstance(groups, Mapping) and groups:
        name, first = next(iter(groups.items()))
        weights = first.get("weights") if isinstance(first, Mapping) else None
        return (weights if isinstance(weights, Mapping) else {}), f"{place}.config_groups.{one_line(str(name))}.weights"
    inner, path = entry, place
    for field in ("quant_config", "weight_quant_params") if method == "hqq" else ():
        if isinstance(inner.get(field), Mapping):
            inner, path = inner[field], f"{path}.{field}"
    return inner, path


def _variant(entry: Mapping[str, Any], detail: Mapping[str, Any], method: str, place: str) -> str:
    """The kind of number that weights are stored as, where the file says it."""
    if (kind := entry.get("bnb_4bit_quant_type")) is not None:
        if kind not in ("nf4", "fp4"):
            raise ValueError(f"{place}.bnb_4bit_quant_type is {shown(kind)}; it should be nf4 or fp4")
        return str(kind) if entry.get("load_in_4bit") else ""
    if method == "torchao":
        kinds = entry.get("quant_type")
        kind = kinds.get("default", kinds) if isinstance(kinds, Mapping) else kinds
        kind = kind.get("_type") if isinstance(kind, Mapping) else kind
    elif method == "modelopt":
        kind = entry.get("quant_algo")
    elif method == "compressed-tensors":
        named = entry.get("format")
        kind = named if named in ("nvfp4-pack-quantized", "mxfp4-pack-quantized") else detail.get("type")
        if detail.get("strategy") in ("tensor", "channel"):
            kind = f"{kind}, a scale a {detail['strategy']}"
    else:
        kind = None
    return one_line(kind)[:60] if isinstance(kind, str) else ""


def _bits_in(variant: str) -> int:
    """Bits that the name of a kind of number states, such as NVFP4 or Int4WeightOnlyConfig."""
    found = re.search(r"(?i)(?:fp|int|uint)(\d{1,2})", variant)
    return int(found[1]) if found and 1 <= int(found[1]) <= MAXIMUM_BITS else 0


def _blocks(entry: Mapping[str, object], method: str, place: str) -> tuple[int, ...]:
    """Rows and columns of a block with one scale; () where there are none or the class's own."""
    blocks = entry.get("weight_block_size")
    if blocks is None:
        return ()
    if not (
        isinstance(blocks, list | tuple)
        and len(blocks) == 2
        and all(isinstance(side, int) and not isinstance(side, bool) and 1 <= side <= MAXIMUM_GROUP for side in blocks)
    ):
        raise ValueError(
            f"{place}.weight_block_size is {shown(blocks)}; it should be two whole numbers, such as [128, 128]"
        )
    return tuple(blocks)


def _whole(entry: Mapping[str, object], place: str, fields: tuple[str, ...], low: int, high: int) -> int:
    """The first of these fields that is stated, a whole number from low to high but 0; 0 where none is."""
    for field in fields:
        value = entry.get(field)
        if value is None:
            continue
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high and value:
            return value
        column = f"{WHOLE_COLUMN} for one group a column, or " if low < 0 else ""
        raise ValueError(
            f"{place}.{field} is {shown(value)}; it should be {column}a whole number from {max(low, 1)} to {high:,}"
        )
    return 0


def _flag(entry: Mapping[str, object], field: str, place: str) -> bool:
    value = entry.get(field)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise ValueError(f"{place}.{field} is {shown(value)}; it should be true or false")


_KEPT = ("modules_to_not_convert", "llm_int8_skip_modules", "ignore", "ignored_layers")
_BITS_OF_METHOD = {"fp8": 8, "fbgemm_fp8": 8, "finegrained_fp8": 8, "mxfp4": 4, "bitnet": 2}
_PACKED_BITS = {"gptq": (2, 3, 4, 8), "awq": (2, 3, 4, 8)}

# Row of storage_formats.csv -> whether a file's weights are in it; the first that holds counts.
_FORMATS: tuple[tuple[str, Callable[[Quantisation], bool]], ...] = (
    ("int8 LLM.int8 (bitsandbytes)", lambda q: q.method == "bitsandbytes" and q.bits == 8),
    (
        "nf4 / fp4, block 64, double quant (nested block 256)",
        lambda q: q.method == "bitsandbytes" and q.bits == 4 and q.double,
    ),
    ("nf4 / fp4, block 64, no double quant", lambda q: q.method == "bitsandbytes" and q.bits == 4),
    ("GPTQ int4 g128 sym/asym", lambda q: q.method == "gptq" and (q.bits, q.group_size) == (4, 128)),
    ("GPTQ int4, no groups", lambda q: q.method == "gptq" and (q.bits, q.group_size) == (4, WHOLE_COLUMN)),
    ("AWQ int4 g128 (GEMM)", lambda q: q.method == "awq" and (q.bits, q.group_size) == (4, 128)),
    (
        "fp8 e4m3 block 128x128, fp32 scales (DeepSeek-V3/R1)",
        lambda q: q.method in ("fp8", "finegrained_fp8") and q.blocks in ((), (128, 128)),
    ),
    (
        "fp8 e4m3 per-tensor",
        lambda q: (q.method, q.variant) in (("modelopt", "FP8"), ("compressed-tensors", "float, a scale a tensor")),
    ),
    ("mxfp4 block 32, E8M0 scale", lambda q: q.method == "mxfp4"),
    (
        "nvfp4 block 16, E4M3 scale + fp32 global",
        lambda q: (q.method, q.variant) in (("modelopt", "NVFP4"), ("compressed-tensors", "nvfp4-pack-quantized")),
    ),
)

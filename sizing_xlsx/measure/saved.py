"""What a layer keeps for backward: read from a recording, tensor by tensor, and as bytes per token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from .events import Allocation, Recorder


class Kept(NamedTuple):
    """A tensor that one layer keeps: the module that made it (inside the layer), its dtype, and its bytes a token."""

    module: str
    operation: str
    dtype: str
    bytes_per_token: float


def layer_path(module: str, prefix: str) -> tuple[int, str] | None:
    """The layer that a module's name lies in and the rest of the name; None outside the layers."""
    head, found, tail = module.partition(f"{prefix}.")
    number, _, rest = tail.partition(".")
    if not found or not number.isdigit() or (head and not head.endswith(".")):
        return None
    return int(number), rest


def kept_by_layers(alive: Iterable[Allocation], prefix: str, tokens: int) -> dict[int, Counter[Kept]]:
    """What is alive of what each layer's forward made. alive: the allocations at the end of forward."""
    layers: dict[int, Counter[Kept]] = {}
    for found in alive:
        if found.phase != "forward" or found.operation == "cublas_workspace":
            continue
        place = layer_path(found.module, prefix)
        if place is not None:
            number, module = place
            kept = Kept(module, found.operation, found.dtype, found.exact / tokens)
            layers.setdefault(number, Counter())[kept] += 1
    return layers


def alive_after_forward(recorder: Recorder, marks: Any) -> list[Allocation]:
    """What was alive when the last forward ended."""
    return recorder.alive_after(marks["forward"][1])

"""A row of what a run gave: its fields, what came out, and where that came from."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

OUTCOMES = ("ok", "oom", "not run", "failed")
# Whose figures these are, by backend: never to be confused.
FIGURES = {"cuda": "measured", "trace": "traced", "cpu": "counted"}

# Columns after a run's own fields. Sizes in bytes, times as named; empty where a backend does not know.
COLUMNS = (
    "backend",
    "figures",
    "outcome",
    "message",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "peak_reserved_expandable_bytes",
    "peak_forward_allocated_bytes",
    "peak_backward_allocated_bytes",
    "peak_update_allocated_bytes",
    "allocated_after_model_bytes",
    "allocated_after_forward_bytes",
    "allocated_after_optimizer_bytes",
    "parameters",
    "trainable_parameters",
    "frozen_parameter_bytes",
    "trainable_parameter_bytes",
    "gradient_bytes",
    "optimizer_state_bytes",
    "saved_tensor_bytes",
    "bytes_per_parameter",
    "parameter_dtypes",
    "gradient_dtypes",
    "optimizer_state_dtypes",
    "autocast_cache_bytes",
    "attention_kernel",
    "allocator_retries",
    "context_bytes",
    "device_used_peak_bytes",
    "other_processes_bytes",
    "evaluation_peak_bytes",
    "save_peak_bytes",
    "reload_peak_bytes",
    "export_peak_bytes",
    "step_time_median_ms",
    "tokens_per_second",
    "adapted_modules",
    "card",
    "card_total_bytes",
    "driver",
    "allocator_settings",
    "versions",
    "commit",
    "date",
    "seconds",
    "node",
    "source",
)


# Those that hold texts, also where a text reads as a number.
TEXTS = (
    "id", "job", "backend", "figures", "outcome", "message", "parameter_dtypes", "gradient_dtypes",
    "optimizer_state_dtypes", "attention_kernel", "card", "driver", "allocator_settings", "versions", "commit", "date",
    "node", "source",
)  # fmt: skip


def versions() -> str:
    """The packages that decide the figures, with their versions."""
    found = [f"Python {platform.python_version()}"]
    for name in ("sizing-xlsx", "torch", "transformers", "peft", "bitsandbytes", "accelerate", "liger-kernel"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def commit() -> str:
    """The commit of the checkout that the package runs from; "" for an installed one."""
    git, folder = shutil.which("git"), Path(__file__).resolve().parents[2]
    if git is None or not (folder / ".git").exists():
        return ""
    done = subprocess.run(
        [git, "-C", str(folder), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def static_bytes(model: Any, optimizer: Any) -> dict[str, Any]:
    """What parameters, gradients and optimizer state take, and in which dtypes. Bytes of the tensors themselves."""
    frozen, trained = _split(model)
    scales = _quantisation(model)
    gradients = [parameter.grad for parameter in trained if parameter.grad is not None]
    state = [value for entry in optimizer.state.values() for value in _tensors(entry)]
    total = sum(_bytes(tensor) for tensor in (*frozen, *trained, *gradients, *state))
    count = sum(_numbers(tensor) for tensor in (*frozen, *trained))
    return {
        "parameters": count,
        "trainable_parameters": sum(_numbers(tensor) for tensor in trained),
        "frozen_parameter_bytes": sum(_bytes(tensor) for tensor in frozen) + scales,
        "trainable_parameter_bytes": sum(_bytes(tensor) for tensor in trained),
        "gradient_bytes": sum(_bytes(tensor) for tensor in gradients),
        "optimizer_state_bytes": sum(_bytes(tensor) for tensor in state),
        "bytes_per_parameter": round((total + scales) / count, 6) if count else None,
        "parameter_dtypes": _dtypes((*frozen, *trained)),
        "gradient_dtypes": _dtypes(gradients),
        "optimizer_state_dtypes": _dtypes(state),
    }


def _split(model: Any) -> tuple[list[Any], list[Any]]:
    every = list(model.parameters())
    return [p for p in every if not p.requires_grad], [p for p in every if p.requires_grad]


def _tensors(entry: Any) -> list[Any]:
    """The tensors of one parameter's optimizer state; not the step, which is on the CPU, nor a map that all share."""
    if not isinstance(entry, Mapping):
        return []
    return [
        value
        for key, value in entry.items()
        if hasattr(value, "element_size") and key != "step" and not key.startswith("qmap")
    ]


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _numbers(tensor: Any) -> int:
    """Parameters that a tensor stands for: a quantised one packs two in a byte."""
    state = getattr(tensor, "quant_state", None)
    if state is not None:
        count = 1
        for side in state.shape:
            count *= side
        return int(count)
    return int(tensor.numel())


def _quantisation(model: Any) -> int:
    """Bytes of the scales, and of the scales' own scales, that quantised weights keep beside themselves."""
    total = 0
    for module in model.modules():
        weight = module._parameters.get("weight")
        state = getattr(weight, "quant_state", None)
        if state is not None:
            total += _bytes(state.absmax)
            if getattr(state, "nested", False):
                total += _bytes(state.state2.absmax) + _bytes(state.offset)
        for holder in (weight, getattr(module, "state", None)):  # bitsandbytes moves them at the first forward
            held = getattr(holder, "SCB", None)
            total += 0 if held is None else _bytes(held)
    return total


def _dtypes(tensors: Any) -> str:
    """The dtypes in a set of tensors, the one with the most bytes first."""
    sizes: dict[str, int] = {}
    for tensor in tensors:
        name = str(tensor.dtype).removeprefix("torch.")
        sizes[name] = sizes.get(name, 0) + _bytes(tensor)
    return ", ".join(sorted(sizes, key=lambda name: (-sizes[name], name)))

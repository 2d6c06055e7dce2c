"""The cpu backend: a model small enough for this machine, really trained, under CUDA's autocast rules.

Its static bytes are exact and its kept tensors are those that autograd really keeps; times and peaks say nothing
about a GPU and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import cuda_rules, fake_gpu, models, results
from .loop import train
from .run import Run

STEPS = 2
SPARE = 0.8  # of the free memory that a run may take


@dataclass
class Trained:
    """A run on the CPU: its recorder, events before and after each phase of the last step, static bytes, kept bytes."""

    recorder: Any
    marks: dict[str, tuple[int, int]]
    facts: dict[str, Any]


def trained(run: Run, steps: int = STEPS) -> Trained:
    """Train a run on the CPU. Raises CannotRun, also when the model is too large for this machine's memory."""
    torch = models.need("torch", "--backend cpu")
    from .events import Recorder

    refuse_large(run)
    fake_gpu.install_before_backward()
    cuda_rules.teach("cpu")
    dtype, kind = models.storage_dtype(run) if run.job != "training" else (None, "")
    torch.manual_seed(0)
    model = models.base(run, "cpu")
    if kind:
        models.replace_linears(model, kind, dtype, run.on("quantised_head"))
        model = model.to("cpu")
    model = models.dress(model, run)
    optimizer = models.make_optimizer(run, [parameter for parameter in model.parameters() if parameter.requires_grad])
    recorder = Recorder("cpu")
    recorder.watch(model)
    marks: dict[str, list[int]] = {}

    def begin(_: int, phase: str) -> None:
        recorder.phase = phase
        marks[phase] = [len(recorder.events)]

    def end(_: int, phase: str) -> None:
        marks[phase].append(len(recorder.events))

    with recorder:
        recorder.know(model)
        train(model, optimizer, run, "cpu", steps, begin, end)
        facts = results.static_bytes(model, optimizer)
        recorder.close()
    facts["attention_kernel"] = recorder.attention()
    facts["saved_tensor_bytes"] = saved_bytes(model, run)
    return Trained(recorder, {key: (at[0], at[1]) for key, at in marks.items()}, facts)


def refuse_large(run: Run) -> None:
    """CannotRun when weights, gradients and optimizer state would not fit into the free memory."""
    psutil = models.need("psutil", "--backend cpu")
    model = models.base(run)
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    trained_too = 1 if run.job == "lora" else 4  # a full job has gradients and two moments beside its weights
    wanted, free = weights * trained_too, psutil.virtual_memory().available
    if wanted > SPARE * free:
        raise models.CannotRun(
            f"base_model is {run['base_model']!r}, whose training state takes {wanted / 1e9:,.1f} GB; this machine has"
            f" {free / 1e9:,.1f} GB free: choose a smaller model for --backend cpu, or trace it with --backend trace"
        )


def saved_bytes(model: Any, run: Run) -> int:
    """Bytes that autograd keeps for backward after a forward pass, without parameters; each storage once."""
    import torch

    from .loop import losses

    known = {parameter.untyped_storage()._cdata for parameter in (*model.parameters(), *model.buffers())}
    kept: dict[int, tuple[Any, int]] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage._cdata not in known:
            kept[storage._cdata] = (storage, storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = losses(model, run, "cpu")
    total = sum(size for _, size in kept.values())
    del out
    return total


def result(trained_run: Trained) -> dict[str, Any]:
    """The columns of results.py that a run on the CPU knows."""
    return {"outcome": "ok", **trained_run.facts}

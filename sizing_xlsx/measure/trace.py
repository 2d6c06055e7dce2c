"""The trace backend: the run's real training step on a GPU that is not there, and what it would take.

The step is the one loop.py runs; its tensors are fake_gpu.py's; events.py records what they take and give back;
allocator.py replays that as PyTorch's allocator would act on the run's card.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from . import fake_gpu, models, results
from .allocator import Allocator, OutOfMemory
from .loop import train, vocabulary
from .run import Run, declared

STEPS = 2  # the second finds the optimizer state and the last step's output in place


@dataclass
class Trace:
    """What was recorded: the recorder, where each phase of the last step began and ended, and the phases' peaks."""

    recorder: Any
    marks: dict[str, tuple[int, int]]  # phase -> events before it, events after it; the same where it was left out
    peaks: dict[str, int]
    after: dict[str, int]
    facts: dict[str, Any]
    vocabulary: int


class _Enough(Exception):
    """What was asked for is recorded."""


def trace_forward(run: Run) -> Trace:
    """Record one forward pass, up to where backward would begin: what layers keep for it. Raises as trace() does."""
    return trace(run, 1, until="backward")


def trace(run: Run, steps: int = STEPS, *, until: str = "") -> Trace:
    """Record a run. until: the phase before which it ends, if not after all. Raises CannotRun or TracingNotPossible."""
    torch = models.need("torch", "--backend trace")
    if run["loss_kernel"] == "Liger":
        raise models.CannotRun("loss_kernel is 'Liger', whose kernels are compiled for a GPU and cannot be traced")
    fake_gpu.install()
    _quiet_transformers()
    from .events import Recorder

    card = run_card(run)
    model = models.base(run)
    recorder = Recorder(fake_gpu.NAME, card["workspace"])
    marks: dict[str, list[int]] = {}
    peaks: dict[str, int] = {}
    after: dict[str, int] = {}
    mode = fake_gpu.fake_mode()
    dtype, kind = models.storage_dtype(run) if run.job != "training" else (None, "")
    with torch.device("meta"):
        if kind:
            models.replace_linears(model, kind, dtype, run.on("quantised_head"))
        model = models.dress(model, run)
    if kind.startswith("nf4"):  # a map of values, to be made where tensors have some
        functional = models.need("bitsandbytes", kind).functional
        functional.name2qmap.setdefault("dynamic", functional.create_dynamic_map())
    with mode:
        place(model, kind)
    _keep_every_layer(model)
    recorder.watch(model)

    def begin(_: int, phase: str) -> None:
        recorder.phase = phase
        recorder.reset_peak()
        marks[phase] = [len(recorder.events)]
        if phase == until:
            raise _Enough

    def end(_: int, phase: str) -> None:
        peaks[phase] = recorder.peak
        after[phase] = recorder.allocated
        marks[phase].append(len(recorder.events))
        if phase == "backward":
            recorder.mark_gradients(model)

    optimizer = models.make_optimizer(run, [parameter for parameter in model.parameters() if parameter.requires_grad])
    if hasattr(optimizer, "fill_qmap"):
        optimizer.fill_qmap()  # as above
    with mode, recorder:
        recorder.know(model)
        after["model"] = recorder.allocated
        with contextlib.suppress(_Enough):
            train(model, optimizer, run, fake_gpu.DEVICE, steps, begin, end)
        facts = results.static_bytes(model, optimizer)
        recorder.close()
    facts["adapted_modules"] = sum(1 for name, _ in model.named_modules() if name.endswith("lora_A.default"))
    spans = {key: (at[0], at[-1]) for key, at in marks.items()}
    return Trace(recorder, spans, peaks, after, facts, vocabulary(model))


def run_card(run: Run) -> dict[str, Any]:
    """What the run's card means for a trace: usable bytes (None: not known), and cuBLAS's workspace per thread."""
    formulas = declared("training" if run.job == "training" else "lora")
    gpus = formulas.tables["gpus"]
    row = gpus.keys.index(run["gpu_choice"])
    own = run.inputs.get("gpu_capacity_override_gb")
    usable = int(own * 1e9) if own is not None else int(gpus.columns["usable_bytes"][row])
    workspace = run.inputs.get("matrix_workspace_bytes_override")
    return {
        "capacity": usable or None,
        "workspace": int(gpus.columns["matmul_workspace_bytes"][row] if workspace is None else workspace),
    }


def card_capacity(run: Run) -> int | None:
    """Bytes that PyTorch may reserve on the run's card: its usable memory less the context. None: not known."""
    usable: int | None = run_card(run)["capacity"]
    if usable is None:
        return None
    outside = declared("lora").constants["preset_outside_pytorch_gb"].value
    return usable - int(outside * 1e9)


def result(run: Run, traced: Trace, capacity: int | None = None) -> dict[str, Any]:
    """The columns of results.py that a trace knows. capacity: usable bytes of the card, without what others hold."""
    events = traced.recorder.events
    free = Allocator().replay(events)
    expandable = Allocator(expandable=True).replay(events)
    row: dict[str, Any] = {
        "outcome": "ok",
        "peak_allocated_bytes": free.peak_allocated,
        "peak_reserved_bytes": free.peak_reserved,
        "peak_reserved_expandable_bytes": expandable.peak_reserved,
        **{f"peak_{phase}_allocated_bytes": peak for phase, peak in traced.peaks.items()},
        "allocated_after_model_bytes": traced.after["model"],
        "allocated_after_forward_bytes": traced.after["forward"],
        "allocated_after_optimizer_bytes": traced.after["update"],
        "allocator_settings": "native, default",
        "attention_kernel": traced.recorder.attention(),
        **traced.facts,
    }
    if capacity is not None:
        limited = Allocator(capacity)
        try:
            limited.replay(events)
            row["peak_reserved_bytes"] = limited.peak_reserved
            row["allocator_retries"] = limited.retries
        except OutOfMemory as error:
            row |= {"outcome": "oom", "message": f"CUDA out of memory on a card of that size: {error}"}
            row["allocator_retries"] = limited.retries
    return row


def place(model: Any, kind: str = "") -> None:
    """Give every meta tensor of a model its place on the fake GPU; tied weights stay tied, quantised ones quantise."""
    import torch

    placed: dict[int, tuple[Any, Any]] = {}

    def on_gpu(tensor: Any) -> Any:
        if tensor is None:
            return None
        if id(tensor) not in placed:
            new: Any = torch.empty(tensor.shape, dtype=tensor.dtype, device=fake_gpu.DEVICE)
            if hasattr(tensor, "quant_state") or hasattr(tensor, "SCB"):
                new = _quantise(new, kind)
            elif isinstance(tensor, torch.nn.Parameter):
                new = torch.nn.Parameter(new, requires_grad=tensor.requires_grad)
            placed[id(tensor)] = (tensor, new)
        return placed[id(tensor)][1]

    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for name, tensor in list(table.items()):
                table[name] = on_gpu(tensor)
        if hasattr(module, "state") and hasattr(module.state, "threshold"):
            module.state.threshold = 0.0  # which columns are outliers depends on values, which fake tensors lack


def _quantise(weight: Any, kind: str) -> Any:
    """A weight as bitsandbytes keeps it. Its own parameter classes cannot hold fake tensors; its operations can."""
    import bitsandbytes.functional as bnb
    import torch

    if kind == "int8":
        packed, scales, _ = bnb.int8_vectorwise_quant(weight.half())
        new = torch.nn.Parameter(packed, requires_grad=False)
        new.CB, new.SCB = packed, scales
        return new
    packed, state = bnb.quantize_4bit(weight, compress_statistics=kind == "nf4 double", quant_type="nf4")
    new = torch.nn.Parameter(packed, requires_grad=False)
    new.quant_state = state
    return new


def _keep_every_layer(model: Any) -> None:
    """Spare a decoder that could drop whole layers, and drops none, the draw: fake tensors cannot decide it."""
    for module in model.modules():
        if getattr(module, "layerdrop", None) == 0:
            module.training = False  # of the list of layers alone; the layers train


def _quiet_transformers() -> None:
    """Two looks at the values of tensors, which fake ones do not have."""
    try:
        from transformers import masking_utils
    except ImportError:
        return
    masking_utils.find_packed_sequence_indices = lambda position_ids: None

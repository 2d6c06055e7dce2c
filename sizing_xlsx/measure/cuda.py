"""The cuda backend: the run's training step on a GPU, measured.

Peaks are read as PyTorch documents it: the counters are reset before a phase and read after it, both times with the
device synchronised. Running out of memory is a result: what was measured until then is kept, with the allocator's
own words.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import checks, models, results
from .card import Card
from .loop import losses, train
from .run import Run

SAMPLE = 0.02  # seconds between two looks at what the whole device uses


class Watch:
    """The highest use of the whole device, of all processes, while it is open; sampled: a short peak may escape."""

    def __init__(self, card: Any) -> None:
        self.card, self.peak = card, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(SAMPLE):
            self.peak = max(self.peak, self.card.used())


def measure(run: Run, options: Mapping[str, Any], card: Any = None) -> dict[str, Any]:
    """The columns of results.py that a GPU knows. options: also (checks to run after training), composition."""
    card = card or Card()
    row: dict[str, Any] = {
        "outcome": "ok",
        "card": card.name(),
        "card_total_bytes": card.total(),
        "driver": card.driver(),
        "allocator_settings": card.settings(),
        "commit": results.commit(),
        "other_processes_bytes": card.others(),
    }
    try:
        with card.mode(), Watch(card) as watch:
            _train(run, options, card, row)
    except card.out_of_memory as error:
        row |= {"outcome": "oom", "message": " ".join(str(error).split())[:600]}
        row["peak_allocated_bytes"] = max(row.get("peak_allocated_bytes", 0), card.peak_allocated())
        row["peak_reserved_bytes"] = max(row.get("peak_reserved_bytes", 0), card.peak_reserved())
    row["device_used_peak_bytes"] = max(watch.peak, card.used()) or None
    row["context_bytes"] = card.context()
    row["allocator_retries"] = card.retries()
    return row


def _train(run: Run, options: Mapping[str, Any], card: Any, row: dict[str, Any]) -> None:
    card.synchronize()
    card.reset_peaks()
    model = load(run, card)
    card.synchronize()
    row["allocated_after_model_bytes"] = card.allocated()
    optimizer = models.make_optimizer(run, [parameter for parameter in model.parameters() if parameter.requires_grad])
    times: list[float] = []
    began = 0.0

    def note(peak: str = "") -> None:
        for name, size in (("allocated", card.peak_allocated()), ("reserved", card.peak_reserved())):
            row[f"peak_{name}_bytes"] = max(row.get(f"peak_{name}_bytes", 0), size)
        if peak:
            row[f"peak_{peak}_allocated_bytes"] = card.peak_allocated()

    def begin(_: int, phase: str) -> None:
        nonlocal began
        card.synchronize()
        card.reset_peaks()
        if phase == "forward" and not began:
            began = time.perf_counter()

    def end(_: int, phase: str) -> None:
        nonlocal began
        card.synchronize()
        note(phase)
        row[f"allocated_after_{'optimizer' if phase == 'update' else phase}_bytes"] = card.allocated()
        if phase == "update":
            times.append(time.perf_counter() - began)
            began = 0.0

    train(model, optimizer, run, card.device, run["steps"], begin, end)
    row.pop("allocated_after_backward_bytes", None)
    row |= results.static_bytes(model, optimizer)
    row["adapted_modules"] = sum(1 for name, _ in model.named_modules() if name.endswith("lora_A.default"))
    settled = times[1:] or times  # the first step warms up kernels and makes the optimizer's state
    row["step_time_median_ms"] = round(statistics.median(settled) * 1e3, 3)
    tokens = run["batch_size"] * run["sequence_length"] * run["gradient_accumulation"]
    row["tokens_per_second"] = round(tokens / statistics.median(settled), 1)
    optimizer.zero_grad(set_to_none=True)
    row["attention_kernel"] = kernels_of(model, run, card)
    row["autocast_cache_bytes"] = autocast_cache(model, run, card)
    if options.get("composition"):
        from . import composition

        recording = composition.of_gpu(run, model, optimizer, card)
        composition.write(run, recording, Path(options["composition"]))
    for name in options.get("also", ()):
        card.synchronize()
        card.reset_peaks()
        with tempfile.TemporaryDirectory() as folder:
            checks.CHECKS[name](model, run, card.device, Path(folder))
        card.synchronize()
        row[f"{name}_peak_bytes"] = card.peak_allocated()


def load(run: Run, card: Any) -> Any:
    """The run's model on the card: random weights from its config, or those of a folder or hub."""
    dtype, kind = models.storage_dtype(run) if run.job != "training" else (None, "")
    if run["weights"] != "random":
        model = models.pretrained(run)
    elif kind or card.made_elsewhere:
        model = models.base(run, card.made_elsewhere or "cpu")
    else:
        model = models.base(run, card.device)
    if kind:
        models.replace_linears(model, kind, dtype, run.on("quantised_head"))
    return models.dress(card.place(model), run)


def kernels_of(model: Any, run: Run, card: Any) -> str:
    """The attention kernel that really runs in a forward pass, as PyTorch dispatches it."""
    from .events import Recorder

    spy = Recorder("none")
    with spy:
        losses(model, run, card.device)
    return spy.attention()


def autocast_cache(model: Any, run: Run, card: Any) -> int | None:
    """What autocast's cache of cast weights adds to a forward pass, by running one without it. None in fp32 compute."""
    import torch

    if run["compute_precision"] == "fp32":
        return None
    peaks: list[int] = []
    for cached in (True, False):
        card.synchronize()
        card.reset_peaks()
        with torch.no_grad(), checks.autocast_cache(cached):
            losses(model, run, card.device)
        card.synchronize()
        peaks.append(int(card.peak_allocated()))
    return max(0, peaks[0] - peaks[1])

"""The training loop that every backend runs: batches of the longest sequence, several updates, a call at each phase."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from .run import Run

PHASES = ("forward", "backward", "update")


def vocabulary(model: Any) -> int:
    """How many token ids there are."""
    config = getattr(model, "config", None)
    return int(config.get_text_config().vocab_size if config is not None else model.head.out_features)


def precision(run: Run, device_type: str) -> Any:
    """The context in which forward computes: autocast of the run's type, or none for fp32."""
    import torch

    name = run["compute_precision"]
    if name == "fp32":
        return nullcontext()
    return torch.autocast(device_type, dtype=torch.float16 if name.startswith("fp16") else torch.bfloat16)


def losses(model: Any, run: Run, device: str) -> tuple[Any, Any]:
    """One forward pass over a fresh batch: the model's output, which holds the scores, and the loss."""
    import torch

    words = vocabulary(model)
    shape = (run["batch_size"], run["sequence_length"])
    ids = torch.randint(0, words, shape, device=device)
    labels = ids.clone()
    with precision(run, device.partition(":")[0]):
        if run.job == "training":
            out = model(ids)
            return out, torch.nn.functional.cross_entropy(out.reshape(-1, words), labels.reshape(-1))
        out = model(input_ids=ids, labels=labels)
        return out, out.loss


def train(
    model: Any,
    optimizer: Any,
    run: Run,
    device: str,
    steps: int,
    begin: Callable[[int, str], None],
    end: Callable[[int, str], None],
) -> None:
    """Run updates. begin and end are called with the step and the phase; the last output is held as the run says."""
    keeps = run.job == "training" or run.inputs.get("keeps_model_output", "On") == "On"
    out: Any = None
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        for _ in range(run["gradient_accumulation"]):
            begin(step, "forward")
            out, loss = losses(model, run, device)
            end(step, "forward")
            if not keeps:
                out = None
            begin(step, "backward")
            (loss / run["gradient_accumulation"] if run["gradient_accumulation"] > 1 else loss).backward()
            del loss
            end(step, "backward")
        begin(step, "update")
        optimizer.step()
        end(step, "update")
    del out

"""The training loop that every backend runs: batches of the longest sequence, several updates, a call at each phase."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from .models import CannotRun
from .run import Run, declared

RUN_HERE = ("Plain loop, transformers 5", "HF Trainer, transformers 5")  # the loop below, its output kept or dropped


def vocabulary(model: Any) -> int:
    """How many token ids there are."""
    config = getattr(model, "config", None)
    return int(config.get_text_config().vocab_size if config is not None else model.head.out_features)


def precision(run: Run, device_type: str) -> Any:
    """The context in which forward computes: autocast of the run's type, or none."""
    import torch

    name = run["compute_precision"]
    if name == "fp32" or run.inputs.get("uses_autocast") == "Off":
        return nullcontext()
    return torch.autocast(device_type, dtype=torch.float16 if name.startswith("fp16") else torch.bfloat16)


def losses(model: Any, run: Run, device: str) -> tuple[Any, Any]:
    """One forward pass over a fresh batch: the model's output, which holds the scores, and the loss."""
    import torch

    words = vocabulary(model)
    shape = (run["batch_size"], run["sequence_length"])
    if hasattr(model, "feature_dtype"):  # a head over stored features: they are the batch, and no token ids
        batch = {"features": torch.randn((*shape, model.head.in_features), dtype=model.feature_dtype, device=device)}
        labels = torch.randint(0, words, shape, device=device)
    else:
        ids = torch.randint(0, min(words, token_ids(model)), shape, device=device)
        batch, labels = {"input_ids": ids}, ids.clone()
    with precision(run, device.partition(":")[0]):
        if run.job == "training":
            out = model(ids)
            return out, torch.nn.functional.cross_entropy(out.reshape(-1, words), labels.reshape(-1))
        out = model(**batch, labels=labels)
        return out, out.loss


def token_ids(model: Any) -> int:
    """How many token ids a model can read: fewer than the outputs that a trained head of its own may have."""
    table = getattr(model, "get_input_embeddings", None)
    return int(table().num_embeddings) if table is not None else vocabulary(model)


def keeps_output(run: Run) -> bool:
    """Whether the loop holds the model's output until the next step's. CannotRun for a stack of other software."""
    if run.job == "training" or "training_stack" not in run.inputs:
        return True
    stacks = declared("lora").tables["stacks"]
    row = stacks.keys.index(run["training_stack"])
    if run["training_stack"] not in RUN_HERE:
        raise CannotRun(
            f"training_stack is {run['training_stack']!r}, other software than is installed here; it can be"
            f" {' or '.join(RUN_HERE)}"
        )
    return bool(stacks.columns["keeps_output"][row]) and run.inputs.get("keeps_model_output", "On") == "On"


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
    keeps = keeps_output(run)
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

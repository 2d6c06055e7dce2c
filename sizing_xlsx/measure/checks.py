"""Steps that a real job takes beside training, each of which has to fit too: evaluation, save, reload, export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .loop import losses
from .run import Run


def evaluation(model: Any, run: Run, device: str, folder: Path) -> None:
    """A forward pass over a batch without gradients, in evaluation mode."""
    import torch

    model.eval()
    with torch.no_grad():
        losses(model, run, device)
    model.train()


def save(model: Any, run: Run, device: str, folder: Path) -> None:
    """What a checkpoint holds, written to a temporary folder: the adapters, or all weights."""
    import torch

    if hasattr(model, "save_pretrained"):
        model.save_pretrained(folder)
    else:
        torch.save(model.state_dict(), folder / "model.pt")


def reload(model: Any, run: Run, device: str, folder: Path) -> None:
    """A checkpoint read back onto the device, beside the model that is there."""
    import torch

    save(model, run, device, folder)
    if run.job == "lora":
        from peft import load_peft_weights, set_peft_model_state_dict

        set_peft_model_state_dict(model, load_peft_weights(str(folder), device=device))
    elif (folder / "model.pt").is_file():
        model.load_state_dict(torch.load(folder / "model.pt", map_location=device, weights_only=True))
    else:
        from safetensors.torch import load_file

        for file in sorted(folder.glob("*.safetensors")):
            model.load_state_dict(load_file(file, device=device), strict=False)


def export(model: Any, run: Run, device: str, folder: Path) -> None:
    """What is handed on: adapters merged into the base, and all of it written out. It changes the model: the last."""
    merged = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    save(merged, run, device, folder)


CHECKS: dict[str, Callable[[Any, Run, str, Path], None]] = {
    "evaluation": evaluation,
    "save": save,
    "reload": reload,
    "export": export,
}


@contextmanager
def autocast_cache(on: bool) -> Iterator[None]:
    """Autocast's cache of cast weights switched on or off."""
    import torch

    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(on)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)

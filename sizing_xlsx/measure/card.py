"""The GPU as the measurement sees it: PyTorch's counters, and what the driver says of the whole device."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from typing import Any


class Card:
    """The first CUDA device that this process sees. Sizes in bytes."""

    device = "cuda:0"
    made_elsewhere = ""  # where models are made before they are placed; "": on the device itself

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.cuda = torch.cuda
        self.cuda.set_device(0)
        self.cuda.init()
        torch.zeros(1, device=self.device)  # the context is there from here on
        self.out_of_memory = torch.cuda.OutOfMemoryError

    def mode(self) -> Any:
        """The context in which tensors are made and computed with."""
        return contextlib.nullcontext()

    def place(self, model: Any) -> Any:
        """The model on the device."""
        return model.to(self.device)

    def synchronize(self) -> None:
        """Wait until the device has done all it was given."""
        self.cuda.synchronize()

    def reset_peaks(self) -> None:
        """Start new peaks from what is allocated now."""
        self.cuda.reset_peak_memory_stats()

    def allocated(self) -> int:
        """What tensors hold now."""
        return int(self.cuda.memory_allocated())

    def peak_allocated(self) -> int:
        """The most that tensors held since the last reset."""
        return int(self.cuda.max_memory_allocated())

    def peak_reserved(self) -> int:
        """The most that the allocator held since the last reset."""
        return int(self.cuda.max_memory_reserved())

    def retries(self) -> int:
        """How often the allocator had to give back its cache to go on."""
        return int(self.cuda.memory_stats().get("num_alloc_retries", 0))

    def used(self) -> int:
        """What is in use on the whole device, by every process: the figure that nvidia-smi shows."""
        free, total = self.cuda.mem_get_info()
        return int(total - free)

    def context(self) -> int | None:
        """The device's use beyond the allocator's and other processes': the CUDA context. None: cannot be told."""
        others = self.others()
        if others is None:
            return None
        return max(0, self.used() - int(self.cuda.memory_reserved()) - others)

    def others(self) -> int | None:
        """What other processes hold on this device, by the driver's list of processes. None: it does not say."""
        said = _nvidia_smi("--query-compute-apps=gpu_uuid,pid,used_memory")
        if said is None:
            return None
        uuid = str(getattr(self.cuda.get_device_properties(0), "uuid", ""))
        total = 0
        for line in said:
            cells = [cell.strip() for cell in line.split(",")]
            if len(cells) == 3 and cells[1].isdigit() and cells[2].isdigit():
                same_card = not uuid or uuid in cells[0]
                total += int(cells[2]) * 2**20 if same_card and int(cells[1]) != os.getpid() else 0
        return total

    def name(self) -> str:
        """The card's name, as the driver gives it."""
        return str(self.cuda.get_device_name(0))

    def total(self) -> int:
        """The device's memory as PyTorch sees it."""
        return int(self.cuda.get_device_properties(0).total_memory)

    def driver(self) -> str:
        """The driver's version and the CUDA version that PyTorch was built for."""
        said = _nvidia_smi("--query-gpu=driver_version")
        return ", ".join(filter(None, [said[0].strip() if said else "", f"CUDA {self.torch.version.cuda}"]))

    def settings(self) -> str:
        """The allocator's backend, and its settings where the environment has some."""
        given = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or "default"
        return f"{self.cuda.memory.get_allocator_backend()}, {given}"

    def record_history(self) -> None:
        """Have the allocator record what it hands out and takes back."""
        self.cuda.memory._record_memory_history(max_entries=2_000_000, stacks="python")

    def history(self) -> list[dict[str, Any]]:
        """The allocator's record: action, addr, size, in order. Ends the recording."""
        snapshot = self.cuda.memory._snapshot()
        self.cuda.memory._record_memory_history(enabled=None)
        traces = snapshot.get("device_traces") or [[]]
        return list(traces[0])


def _nvidia_smi(query: str) -> list[str] | None:
    """The lines that nvidia-smi answers; None where there is none or it fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, query, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.splitlines() if done.returncode == 0 else None

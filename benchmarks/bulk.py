"""A table of jobs sized by the command `sweep`, CSV to CSV: seconds, processor seconds of all processes, memory.

The jobs are of all three kinds, on the models and the cards of the catalogue, and some of them are refused.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from sizing_xlsx.jobs import job

from .measure import CHECKOUT, Line

TARGET_S = 10.0  # a million jobs on two processors
TARGET_GB = 2.0
LOOK_S = 0.02


class Spent(NamedTuple):
    """seconds by the clock; processor seconds and gigabytes in use at most, of all processes of a command together."""

    seconds: float
    processor: float
    gigabytes: float


def lines(jobs: int) -> list[Line]:
    """The command over that many jobs, and over a hundredth of them for what a start costs."""
    if not all(map(find_spec, ("msgspec", "pandas", "psutil"))):
        return []
    with TemporaryDirectory() as place:
        folder = Path(place)
        few, many = (sweep(folder, count) for count in (max(1, jobs // 100), jobs))
    allowed = TARGET_S * max(1.0, jobs / 1e6)
    rest = f"{many.processor:.1f} processor seconds; {jobs // 100:,} jobs take {few.seconds:.1f} s"
    return [
        Line(f"sweep of {jobs:,} jobs, CSV to CSV", f"{many.seconds:.1f} s", f"<= {allowed:.0f} s",
             many.seconds <= allowed, rest),
        Line("its memory, all processes", f"{many.gigabytes:.2f} GB", f"<= {TARGET_GB:.0f} GB",
             many.gigabytes <= TARGET_GB, "what they share counted once"),
    ]  # fmt: skip


def sweep(folder: Path, count: int) -> Spent:
    """Write a table of so many jobs and size it."""
    write_jobs(folder / "jobs.csv", count)
    command = [sys.executable, "-m", "sizing_xlsx", "sweep", str(folder / "jobs.csv"), "--force"]
    return watched(command)


def write_jobs(path: Path, count: int, seed: int = 7) -> None:
    """A table of jobs of three kinds."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    lora = job("lora")
    kinds = np.array(["lora", "training", "full"], dtype=object)[rng.integers(0, 3, count)]
    gpus = lora.tables["gpus"]
    cards = [card for card in gpus if gpus.columns["usable_bytes"][gpus.row_of(card) - 1]]

    def among(choices: Any, kind: str = "") -> Any:
        drawn = np.array(choices, dtype=object)[rng.integers(0, len(choices), count)]
        return np.where(kinds == kind, drawn, "") if kind else drawn

    columns = {
        "id": [f"job-{at:07d}" for at in range(count)],
        "job": kinds,
        "base_model": np.where(kinds == "training", "", among(lora.choices("base_model"))),
        "gpu_choice": among(cards),
        "batch_size": rng.integers(1, 65, count),
        "sequence_length": among([128, 256, 512, 1024, 2048, 4096]),
        "lora_rank": among(["4", "8", "16", "32", "64"], "lora"),
        "base_storage_format": among(["", *lora.choices("base_storage_format")[:3]], "lora"),
        "activation_checkpointing": among(["Off", "On"]),
        "training_examples": rng.integers(1_000, 1_000_000, count),
        "gpu_count": among(["1", "2", "4", "8"], "full"),
    }
    pd.DataFrame(columns).to_csv(path, index=False)


def watched(command: list[str]) -> Spent:
    """Run a command to its end, watching what its processes use. Raises RuntimeError where it is refused."""
    import psutil

    began, most, stop = time.perf_counter(), 0, threading.Event()
    before = _children()
    running = subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True)

    def watch() -> None:
        nonlocal most
        first = psutil.Process(running.pid)
        while not stop.wait(LOOK_S):
            try:
                of_all = (first, *first.children(recursive=True))
                most = max(most, sum(one.memory_full_info().pss for one in of_all))
            except psutil.Error:
                continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    said = running.communicate()[1]
    seconds = time.perf_counter() - began
    stop.set()
    watcher.join()
    if running.returncode not in (0, 1):
        raise RuntimeError(said)
    return Spent(seconds, _children() - before, most / 1e9)


def _children() -> float:
    """Processor seconds of ended children and theirs."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

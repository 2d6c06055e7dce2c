"""What it takes to trace a training step without a GPU, and to write a sweep's figures into a workbook."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from .measure import Line

TRACES = (("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 15), ("meta-llama/Llama-3.1-8B", 60))
WRITE_S, ROWS = 1.0, 25


def lines(repeats: int) -> list[Line]:
    """A trace of each of TRACES, from the command line, and the write-back of a whole sweep."""
    made = [_write_back(repeats)]
    if all(find_spec(name) for name in ("torch", "transformers", "peft")):
        made = [_trace(model, limit) for model, limit in TRACES] + made
    return made


def _trace(model: str, limit: float) -> Line:
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "sizing_xlsx", "verify", "--base-model", model, "--csv", f"{folder}/out.csv"]
        began = perf_counter()
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        taken = perf_counter() - began
    return Line(
        f"verify, a LoRA step of {model}", f"{taken:.1f} s", f"<= {limit} s", taken <= limit, "imports included"
    )


def _write_back(repeats: int) -> Line:
    from sizing_xlsx.jobs import job
    from sizing_xlsx.measure.run import named_sweep
    from sizing_xlsx.workbook.build import build
    from sizing_xlsx.workbook.write_back import write_results

    taken = []
    with TemporaryDirectory() as folder:
        workbook = next(path for path in build(Path(folder)) if "finetune" in path.name)
        for repeat in range(repeats):
            rows = [
                {
                    **run.as_row(),
                    "backend": "trace",
                    "outcome": "ok",
                    "peak_allocated_bytes": 10**9 + repeat,
                    "peak_reserved_bytes": 2 * 10**9 + repeat,
                    "source": f"traced: benchmark {repeat}",
                }
                for run in named_sweep("lora")
            ]
            began = perf_counter()
            write_results(workbook, rows, job("lora"))
            taken.append(perf_counter() - began)
    spent = median(taken)
    words = f"write-back of {ROWS} rows into the workbook"
    return Line(words, f"{spent * 1e3:.0f} ms", f"<= {WRITE_S * 1e3:.0f} ms", spent <= WRITE_S, "with backup and check")

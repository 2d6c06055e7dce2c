"""One run on one backend: the row of results that it gives, whatever happens."""

from __future__ import annotations

import datetime
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import results
from .run import Run

BACKENDS = {
    "trace": "no GPU: the real step on fake tensors, replayed through the allocator",
    "cuda": "a GPU: the real step, measured",
    "cpu": "a tiny model really trained on the CPU: exact static bytes and kept tensors",
}


def perform(run: Run, backend: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Run it and return the row. What goes wrong is an outcome: "oom", "not run" (why), "failed" (the error)."""
    from .fake_gpu import TracingNotPossible
    from .models import CannotRun

    began = time.perf_counter()
    try:
        row = _results(run, backend, options)
    except (CannotRun, TracingNotPossible) as error:
        row = {"outcome": "not run", "message": one_sentence(str(error))}
    except MemoryError:
        row = {"outcome": "failed", "message": "this machine ran out of memory"}
    except Exception as error:
        if options.get("debug"):
            traceback.print_exc()
        row = {"outcome": "failed", "message": one_sentence(f"{type(error).__name__}: {error}")}
    row |= {
        "backend": backend,
        "figures": results.FIGURES[backend],
        "versions": results.versions(),
        "date": datetime.date.today().isoformat(),
        "seconds": round(time.perf_counter() - began, 2),
    }
    row["source"] = source(run, row)
    return row


def _results(run: Run, backend: str, options: Mapping[str, Any]) -> dict[str, Any]:
    if backend == "trace":
        from . import trace

        recorded = trace.trace(run)
        if options.get("composition"):
            from . import composition

            made = composition.compose(recorded.recorder, recorded.marks, recorded.vocabulary)
            composition.write(run, made, Path(options["composition"]))
        return trace.result(run, recorded, trace.card_capacity(run))
    if backend == "cpu":
        from . import cpu

        return cpu.result(cpu.trained(run))
    from . import cuda

    return cuda.measure(run, options)


def source(run: Run, row: Mapping[str, Any]) -> str:
    """Where a row's figures come from, in a line: measured, traced or counted, on what, with what, when."""
    kept = [part for part in row["versions"].split(", ") if part.partition(" ")[0] in ("torch", "transformers", "peft")]
    where = {
        "measured": str(row.get("card") or "no GPU"),
        "traced": f"no GPU, for {run['gpu_choice']}",
        "counted": "this machine's CPU",
    }[row["figures"]]
    return f"{row['figures']}: {where}, {', '.join(kept)}, {row['date']}"


def one_sentence(text: str, longest: int = 400) -> str:
    """A message on one line, cut where it would fill the screen."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"

"""Timing that survives a busy machine: candidates take turns, processor time counts, medians are reported."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

CHECKOUT = Path(__file__).resolve().parent.parent


class Line(NamedTuple):
    """One line of the table. met: whether the figure keeps to its target."""

    what: str
    figure: str
    target: str
    met: bool
    detail: str


def seconds(candidates: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Processor seconds of each candidate, one figure a round; in each round every candidate has its turn."""
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    for call in candidates.values():
        call()
    for _ in range(repeats):
        for name, call in candidates.items():
            gc.collect()
            start = process_time()
            result = call()
            taken[name].append(process_time() - start)
            del result
    return taken


def printed_seconds(program: str, *arguments: str) -> list[float]:
    """The figures that a program prints, one a line, in a process of its own that finds the helpers of the tests."""
    done = subprocess.run(
        (sys.executable, "-c", program, *arguments),
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(CHECKOUT), str(CHECKOUT / "tests")))},
        check=True,
        capture_output=True,
        text=True,
    )
    return [float(line) for line in done.stdout.split()]


def keep_memory() -> None:
    """Let this process keep the memory it frees, where its C library is glibc.

    Arrays of a gigabyte are else given back and fetched anew at every call, at a price that the system sets, not
    the code that is measured: on some virtual machines more than all arithmetic.
    """
    mmap_threshold, trim_threshold = -3, -1  # of mallopt()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(mmap_threshold, 32 * 2**20)
        library.mallopt(trim_threshold, -1)


def ratio(numerator: Sequence[float], denominator: Sequence[float]) -> float:
    """The median of the ratios of the rounds: what disturbs a round disturbs both of its figures."""
    return median(a / b for a, b in zip(numerator, denominator, strict=True))


def table(lines: Sequence[Line]) -> str:
    """The lines as text, in columns."""
    rows = [("", "measured", "target", "", ""), *(_row(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def _row(line: Line) -> tuple[str, str, str, str, str]:
    return line.what, line.figure, line.target, "pass" if line.met else "MISS", line.detail

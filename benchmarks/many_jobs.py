"""Many LoRA jobs in one vectorised call, against the same arithmetic written by hand in NumPy (by_hand.py).

Both are measured with the memory of earlier calls at hand (see keep_memory). A first call also waits for the system
to hand out what the results take, 1.6 GB for all terms of a million jobs; that is shown beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from sizing_xlsx.jobs import job

from . import by_hand
from .measure import Line, keep_memory, ratio, seconds

TARGET = 1 / 3  # of the rate of the hand-written code
TOLERANCE = 1e-12


def lines(jobs: int, repeats: int) -> list[Line]:
    """The engine's rate as a share of the hand-written code's: all plain terms kept, and only what that computes."""
    lora = job("lora")
    columns = by_hand.columns(lora.tables, jobs)
    compare(by_hand.size(lora.tables, columns), lora.size_many(columns, by_hand.RESULTS))
    start = process_time()
    lora.size_many(columns, lora.plain_terms)
    first = process_time() - start
    keep_memory()
    hand, five, every = (
        f"by hand, {len(by_hand.RESULTS)} results",
        f"the same {len(by_hand.RESULTS)} results kept",
        f"all {len(lora.plain_terms)} plain terms kept",
    )
    taken = seconds(
        {
            hand: lambda: by_hand.size(lora.tables, columns),
            five: lambda: lora.size_many(columns, by_hand.RESULTS),
            every: lambda: lora.size_many(columns, lora.plain_terms),
        },
        repeats,
    )
    return [
        _line(every, jobs, taken[hand], taken[every], f"; first call {first:.2f} s"),
        _line(five, jobs, taken[hand], taken[five], ""),
    ]


def _line(name: str, jobs: int, hand: list[float], spent: list[float], note: str) -> Line:
    share = ratio(hand, spent)
    rates = f"{jobs / median(spent) / 1e6:.2f} against {jobs / median(hand) / 1e6:.2f} million jobs/s{note}"
    return Line(f"{jobs:,} jobs, {name}", f"{share:.2f} of hand's rate", ">= 0.33", share >= TARGET, rates)


def compare(hand: Mapping[str, Any], engine: Mapping[str, Any]) -> None:
    """ValueError unless both give the same figures: bytes to 1e-12, verdicts exactly."""
    for key, wanted in hand.items():
        got = engine[key]
        same = got == wanted if wanted.dtype == object else np.abs(got - wanted) <= TOLERANCE * np.abs(wanted)
        if not same.all():
            row = int(np.argmin(same))
            raise ValueError(f"{key} of row {row} is {got[row]} by the engine and {wanted[row]} by hand")

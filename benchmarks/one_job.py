"""One LoRA job at a time, its inputs checked as a caller's are."""

from __future__ import annotations

from statistics import median
from typing import Any

from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import job

from .measure import Line, seconds

TARGET = 20_000  # jobs per second
BATCH = 1_000


def lines(repeats: int) -> list[Line]:
    """Jobs per second: every plain term, and the verdict alone."""
    lora = job("lora")
    models = ("meta-llama/Llama-3.1-8B", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "Qwen/Qwen2.5-7B")
    jobs: list[dict[str, Any]] = [
        {
            "base_model": models[at % 3],
            "batch_size": 1 + at % 32,
            "sequence_length": 128 << at % 5,
            "lora_rank": 8 << at % 3,
            "activation_checkpointing": ("Off", "On")[at % 2],
        }
        for at in range(BATCH)
    ]
    taken = seconds(
        {
            f"one job, all {len(lora.plain_terms)} plain terms": lambda: _each(lora, None, jobs),
            "one job, the verdict": lambda: _each(lora, ("fit_verdict",), jobs),
        },
        3 * repeats,
    )
    return [
        Line(
            name,
            f"{BATCH / median(spent):,.0f} jobs/s",
            f">= {TARGET:,} jobs/s",
            BATCH / median(spent) >= TARGET,
            f"best round {BATCH / min(spent):,.0f} jobs/s; five inputs given, all checked",
        )
        for name, spent in taken.items()
    ]


def _each(lora: Job, results: tuple[str, ...] | None, jobs: list[dict[str, Any]]) -> None:
    for inputs in jobs:
        lora.size(results, **inputs)

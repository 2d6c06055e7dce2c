"""The jobs that can be sized: which modules of formulas make each, over which presets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

from .formula.job import Job
from .presets.catalogue import Presets, load_presets


def _shared() -> tuple[ModuleType, ...]:
    """What every job has in common."""
    from .memory.shared import activations, allocator, card, limits, published, run, units, verdict

    return (units, limits, run, card, activations, published, allocator, verdict)


def lora_job(presets: Presets, extra: tuple[ModuleType, ...] = (), opened_on: Mapping[str, Any] | None = None) -> Job:
    """LoRA and QLoRA-style fine-tuning of a decoder on one GPU."""
    from .memory.lora import adapters, items, model, published, traced

    modules = (*_shared(), model, adapters, published, traced, items, *extra)
    return _with_boundaries(Job("lora", modules, presets.tables, opened_on=opened_on))


def training_job(
    presets: Presets, extra: tuple[ModuleType, ...] = (), opened_on: Mapping[str, Any] | None = None
) -> Job:
    """Training an encoder from scratch on one GPU."""
    from .memory.training import items, model, published, traced

    modules = (*_shared(), model, published, traced, items, *extra)
    article = {"batch_size": 256, "sequence_length": 100}
    return _with_boundaries(Job("training", modules, presets.tables, article, opened_on))


def _with_boundaries(job: Job) -> Job:
    """Add the inverse questions: the largest batch and the longest sequence that still fit."""
    from .formula.inverse import largest

    for prefix, keep, at_most in (
        ("", "total_to_size_against", "capacity_available"),
        ("published_", "published_reserved", "published_capacity"),
    ):
        basis = " by the published accounting" if prefix else ""
        for vary, words in (("batch_size", "batch size"), ("sequence_length", "sequence length")):
            largest(
                job,
                f"{prefix}largest_{vary}",
                vary=vary,
                keep=keep,
                at_most=at_most,
                limit=f"{vary}_limit",
                label=f"Largest {words}{basis}",
                help=f"The largest {words} that fits{basis}, everything else as entered; 0 when not even 1 does.",
            )
    return job


JOBS = {"lora": lora_job, "training": training_job}


@lru_cache(maxsize=4)
def job(name: str) -> Job:
    """The job of that name over the presets that travel with the package."""
    return JOBS[name](load_presets())

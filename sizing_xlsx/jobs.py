"""The jobs that can be sized: which modules of formulas make each, over which presets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

from .formula.job import Job
from .presets.catalogue import Presets, load_presets

WORKED: dict[str, dict[str, Any]] = {
    "lora": {},
    "training": {"batch_size": 256, "sequence_length": 100, "training_examples": 250_000_000, "epoch_count": 1},
    "full": {
        "gpu_count": 2,
        "sharding_stage": "ZeRO-1",
        "base_model": "meta-llama/Meta-Llama-3-8B",
        "batch_size": 1,
        "sequence_length": 4096,
        "activation_checkpointing": "On",
        "training_stack": "HF Trainer, transformers 5",
        "gpu_choice": "NVIDIA A100 SXM4 80GB",
    },
    "serving": {"base_model": "meta-llama/Llama-3.1-8B"},
}
JOBS = ("lora", "training", "full")  # what tables of jobs, functions and plans take
WORKBOOKS = (*JOBS, "serving")  # each has a workbook
BASES = {  # of a verdict: the total to keep within which capacity, and how a label says it
    "": ("total_to_size_against", "capacity_available", ""),
    "published_": ("published_reserved", "published_capacity", " by the published accounting"),
}
QUESTIONS = tuple(f"{basis}largest_{vary}" for basis in BASES for vary in ("batch_size", "sequence_length"))


def modules(name: str) -> tuple[ModuleType, ...]:
    """The formulas of a job: LoRA, full fine-tuning or serving of a decoder on GPUs, training an encoder on one."""
    from .memory.shared import activations, allocator, card, exchange, limits, published, run, stages, units, verdict

    if name == "full":
        return (units, limits, card, activations, verdict, stages, exchange, *_full())
    if name == "serving":
        return (units, *_serving())
    shared = (units, limits, run, card, activations, published, allocator, verdict)
    return (*shared, stages, exchange, *_lora()) if name == "lora" else (*shared, *_training())


def beside(name: str) -> tuple[tuple[ModuleType, ...], ...]:
    """The formulas of a job's time, and those of its money, which stand beside those of its memory."""
    if name == "serving":
        return _beside_serving()
    from .effort import (
        adapter_work,
        all_trained,
        base_traffic,
        budget,
        cards,
        checkpoints,
        communication,
        encoder_work,
        full_work,
        hours,
        model_traffic,
        own,
        price,
        rent,
        stage_costs,
        throughput,
        tokens,
        whole_cards,
        work,
    )

    of_job = {
        "lora": (whole_cards, base_traffic, adapter_work),
        "training": (cards, whole_cards, all_trained, encoder_work),
        "full": (all_trained, full_work, model_traffic),
    }
    time = (tokens, *of_job[name], work, throughput, checkpoints, hours, communication, budget)
    return time, (price, rent, own, stage_costs)


def _beside_serving() -> tuple[tuple[ModuleType, ...], ...]:
    from .effort import (
        price,
        serving_cost,
        serving_paid,
        serving_replicas,
        serving_speed,
        serving_taken,
        serving_told,
        serving_work,
    )

    return (serving_taken, serving_work, serving_speed, serving_replicas), (
        price,
        serving_paid,
        serving_cost,
        serving_told,
    )


def _lora() -> tuple[ModuleType, ...]:
    from .memory.decoder import parameters, shape
    from .memory.lora import (
        adapters,
        base,
        form,
        items,
        kept,
        layer,
        mask,
        methods,
        model,
        published,
        resident,
        sharding,
        stack,
        traced,
    )

    kept_modules = (layer, mask, kept)
    decoder = (base, shape, parameters)
    trained = (methods, adapters, published, resident, sharding)
    return (*decoder, model, stack, form, *trained, *kept_modules, traced, items)


def _training() -> tuple[ModuleType, ...]:
    from .memory.training import items, model, published, traced

    return (model, published, traced, items)


def _full() -> tuple[ModuleType, ...]:
    from .memory.decoder import parameters, shape
    from .memory.full import items, layer, loss, moments, published, recipe, reserve, run, sharding, state, taken

    decoder = (shape, parameters)
    return (taken, run, *decoder, recipe, sharding, state, layer, loss, moments, published, reserve, items)


def _serving() -> tuple[ModuleType, ...]:
    from .memory.decoder import parameters, shape
    from .memory.serving import activations, engine, kv_cache, parallel, pool, requests, taken, weights

    return (taken, shape, parameters, requests, engine, parallel, weights, kv_cache, activations, pool)


def plain_job(
    name: str,
    presets: Presets,
    extra: tuple[ModuleType, ...] = (),
    opened_on: Mapping[str, Any] | None = None,
) -> Job:
    """A job without its inverse questions. extra: further modules. opened_on: inputs in place of the worked job's."""
    return Job(name, (*modules(name), *extra), presets.tables, WORKED[name], opened_on, beside(name))


def make_job(
    name: str,
    presets: Presets,
    extra: tuple[ModuleType, ...] = (),
    opened_on: Mapping[str, Any] | None = None,
) -> Job:
    """A job with its inverse questions: the largest batch and the longest sequence that still fit, by either basis."""
    made = plain_job(name, presets, extra, opened_on)
    ask(made, questions_of(name))
    return made


def questions_of(name: str) -> tuple[str, ...]:
    """The inverse questions of a job, some of QUESTIONS: serving answers its own in closed form."""
    return () if name == "serving" else QUESTIONS


def ask(made: Job, questions: Iterable[str]) -> None:
    """Add inverse questions, some of QUESTIONS, to a plain job."""
    from .formula.inverse import largest

    for question in questions:
        prefix, _, vary = question.rpartition("largest_")
        words = vary.replace("_", " ")
        keep, at_most, basis = BASES[prefix]
        largest(
            made,
            question,
            vary=vary,
            keep=keep,
            at_most=at_most,
            limit=f"{vary}_limit",
            most=most if (most := f"{vary}_taken") in made.trees else "",
            label=f"Largest {words}{basis}",
            help=f"The largest {words} that fits{basis}, everything else as entered; 0 when not even 1 does.",
        )


@lru_cache(maxsize=4)
def job(name: str) -> Job:
    """The job of that name over the presets that travel with the package."""
    return make_job(name, load_presets())

"""The measured sweeps in the words of the inputs: what each row of presets/measured/ asks of its job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

OPTIMIZERS = {"adam": "Adam", "adam8bit": "8-bit Adam"}
PRECISIONS = {"bf16_autocast": "bf16 autocast", "fp16_autocast": "fp16 autocast", "fp32": "fp32"}


_STAGES = {"None": "one_card", "FSDP": "fsdp", "ZeRO": "zero", "DDP": "ddp"}  # how a stage begins -> its lever


def public_sweep(runs: Sequence[Mapping[str, Any]], inputs: Iterable[str]) -> list[dict[str, Any]]:
    """Runs of full fine-tuning that others published, as the rows of a sweep: the lever is how cards share the state.

    inputs: the columns that are inputs of the job; "stated" names those that a run fills in.
    """
    return [
        {
            **run,
            "lever": next(lever for begins, lever in _STAGES.items() if run["sharding_stage"].startswith(begins)),
            "lever_value": str(run["gpu_count"]),
            "measured_oom": bool(run["ran_out"]),
            "measured_peak_allocated_gb": run["measured_gb"],
            "measured_peak_reserved_gb": None,
            "checkpointing": run["activation_checkpointing"] == "On",
            "stated": [key for key in inputs if run[key] not in (None, "")],
        }
        for run in runs
    ]


def run_inputs(kind: str, run: Mapping[str, Any], card: str) -> dict[str, Any]:
    """A row of presets/measured/ as the inputs of its job. kind: "lora", "training" or "full"."""
    if kind == "full":
        return {key: run[key] for key in run["stated"]}
    inputs = {
        "batch_size": run["batch_size"],
        "sequence_length": run["sequence_length"],
        "compute_precision": PRECISIONS[run["compute"]],
        "optimizer_choice": OPTIMIZERS[run["optimizer"]],
        "activation_checkpointing": "On" if run["checkpointing"] else "Off",
        "gpu_choice": card,
    }
    if kind == "training":
        return {
            **inputs,
            "hidden_size_override": run["hidden_size"],
            "layer_count_override": run["layers"],
            "attention_heads_override": run["attention_heads"],
            "mlp_width_override": run["ff_multiplier"] * run["hidden_size"],
            "vocabulary_size_override": run["output_width"],
            "parameter_count_override": run["parameters"],
        }
    layers = run["adapter_layers"]
    return {
        **inputs,
        "base_storage_format": run["base_storage"],
        "lora_rank": run["lora_rank"],
        "adapter_layers": layers if layers == "all" else int(layers.partition("-")[2]),
    }

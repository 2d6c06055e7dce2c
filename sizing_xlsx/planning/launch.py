"""The configuration that starts a sized step: of DeepSpeed for ZeRO, of accelerate for FSDP, DDP and one card.

"auto" stands in DeepSpeed's file where transformers' Trainer fills in what its own arguments say, so that a figure is
never said twice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..formula.job import Job

_FACTS = (
    "launcher_starts_recipe", "fsdp_upcasts", "autocast_on", "half_weights", "bucket_elements", "live_parameters",
)  # fmt: skip
_DEGREES = ("tensor_parallel", "pipeline_parallel", "expert_parallel")  # which the training code sets up
_MIXED = {"bf16 autocast": "bf16", "fp16 autocast": "fp16", "fp32": "no"}


def kind_of(job: Job, **inputs: Any) -> str:
    """Whose file starts the job: "DeepSpeed" or "accelerate"."""
    stage = job.tables["sharding_stages"]
    row = stage.row_of(job.accepted({**job.defaults(), **inputs})["sharding_stage"])
    return "DeepSpeed" if stage.columns["zero"][row - 1] else "accelerate"


def launch_config(job: Job, **inputs: Any) -> dict[str, Any]:
    """The configuration of a job as the launcher reads it. ValueError, in one sentence, where it would start another.

    inputs: as in Job.size(), of the job "full"; ValueError of it too.
    """
    job.hold_beside(inputs)
    facts = job.size(_FACTS, **inputs)
    chosen = job.accepted({**job.defaults(), **inputs})
    kind = kind_of(job, **inputs)
    if refused := _refused(job, kind, chosen, facts):
        raise ValueError(refused)
    return config_of(job, chosen, facts)


def config_of(job: Job, chosen: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """The configuration for inputs and terms of a job, whatever it starts: what a sheet shows of any job."""
    stages = job.tables["sharding_stages"]
    zero = stages.columns["zero"][stages.row_of(chosen["sharding_stage"]) - 1]
    return _deepspeed(job, chosen, facts) if zero else _accelerate(job, chosen)


def _refused(job: Job, kind: str, chosen: dict[str, Any], facts: dict[str, Any]) -> str:
    """Why no file of the launcher starts the job that is sized, in one sentence; "" where one does."""
    stage, recipe, offload = (chosen[key] for key in ("sharding_stage", "training_recipe", "state_offload"))
    degree = next((key for key in _DEGREES if chosen[key] > 1), "")
    if degree:
        return f"{degree} is {chosen[degree]}; it must be 1 for a file of {kind}: the training code sets it up"
    if facts["fsdp_upcasts"]:
        return (
            f"training_recipe is {recipe!r} with uses_autocast 'On'; FSDP's mixed precision would keep fp32 parameters:"
            " choose uses_autocast 'Off', or a recipe with fp32 parameters"
        )
    if not facts["launcher_starts_recipe"]:
        return (
            f"training_recipe is {recipe!r}, which {kind} does not start under {stage}; it must be one of"
            f" {', '.join(_started(job, stage))}"
        )
    if chosen["optimizer_step"] == "in backward":
        return "optimizer_step is 'in backward'; no file says so: it must be foreach, fused or for-loop"
    if kind == "DeepSpeed":
        return ""
    if chosen["sequence_parallel"] > 1:
        return (
            f"sequence_parallel is {chosen['sequence_parallel']}; it must be 1 under {stage}, or the stage a ZeRO one"
        )
    offloads = job.tables["offloads"]
    at = offloads.row_of(offload) - 1
    if offloads.columns["optimizer"][at] and (offloads.columns["nvme"][at] or not offloads.columns["parameters"][at]):
        return (
            f"state_offload is {offload!r} under {stage}, which moves optimizer and parameters together, to the CPU:"
            " it must be 'None' or 'Optimizer and parameters to CPU'"
        )
    cards, node = chosen["gpu_count"], chosen["gpus_per_node"]
    if cards > node and cards % node:
        return (
            f"gpu_count is {cards} with gpus_per_node {node}; accelerate starts as many on every node: it must divide"
        )
    return ""


def _started(job: Job, stage: str) -> list[str]:
    """The recipes that the launcher of a stage starts."""
    stages, recipes = job.tables["sharding_stages"], job.tables["recipes"]
    at = stages.row_of(stage) - 1
    zero = "runs_zero_3" if stages.columns["shards_weights"][at] else "runs_zero_1_2"
    flag = zero if stages.columns["zero"][at] else "runs_fsdp" if stages.columns["fsdp"][at] else "runs_ddp"
    return [name for name, starts in zip(recipes.keys, recipes.columns[flag], strict=True) if starts]


def launch_text(job: Job, **inputs: Any) -> str:
    """The same as the text of its file: JSON of DeepSpeed, YAML of accelerate."""
    config = launch_config(job, **inputs)
    if kind_of(job, **inputs) == "DeepSpeed":
        return json.dumps(config, indent=2) + "\n"
    return "\n".join(_yaml(config)) + "\n"


def write_launch_config(path: Path, job: Job, *, force: bool = False, **inputs: Any) -> str:
    """Write the file and say what it is for.

    force: also where a file of that name is there. ValueError for a name that ends as the other launcher's does.
    """
    kind = kind_of(job, **inputs)
    ends = (".json",) if kind == "DeepSpeed" else (".yaml", ".yml")
    if path.suffix.casefold() not in ends:
        stage = job.accepted({**job.defaults(), **inputs})["sharding_stage"]
        raise ValueError(f"launch_config is {str(path)!r}; the file of {kind} for {stage} must end in {ends[0]}")
    text = launch_text(job, **inputs)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ValueError(
            f"launch_config is {str(path)!r}, which is there already; name a new file, or give --force"
        ) from None
    return f"{path}: for {'Trainer(deepspeed=...)' if kind == 'DeepSpeed' else 'accelerate launch --config_file'}"


def _deepspeed(job: Job, chosen: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    stage = int(chosen["sharding_stage"].removeprefix("ZeRO-"))
    offloads, buckets = job.tables["offloads"], int(facts["bucket_elements"])
    at = offloads.row_of(chosen["state_offload"]) - 1
    zero: dict[str, Any] = {
        "stage": stage,
        "overlap_comm": False,
        "contiguous_gradients": True,
        "reduce_bucket_size": buckets,
    }
    if stage < 3:
        zero["allgather_bucket_size"] = buckets
    else:
        zero |= {
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            "stage3_max_live_parameters": int(facts["live_parameters"]),
            "stage3_max_reuse_distance": int(facts["live_parameters"]),
            "stage3_gather_16bit_weights_on_model_save": True,
        }
    device = {"device": "nvme", "nvme_path": "/local_nvme"} if offloads.columns["nvme"][at] else {"device": "cpu"}
    if offloads.columns["optimizer"][at]:
        zero["offload_optimizer"] = {**device, "pin_memory": True}
    if offloads.columns["parameters"][at]:
        zero["offload_param"] = {**device, "pin_memory": True}
    half = _MIXED[chosen["compute_precision"]] if facts["half_weights"] or facts["autocast_on"] else "no"
    config: dict[str, Any] = {name: {"enabled": half == name} for name in ("bf16", "fp16")}
    config |= {
        "zero_optimization": zero,
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
    }
    if "AdamW" in chosen["training_recipe"]:
        config["optimizer"] = {"type": "AdamW", "params": dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")}
    if chosen["sequence_parallel"] > 1:
        config["sequence_parallel_size"] = chosen["sequence_parallel"]
    return config


def _accelerate(job: Job, chosen: dict[str, Any]) -> dict[str, Any]:
    stages, offloads = job.tables["sharding_stages"], job.tables["offloads"]
    at = stages.row_of(chosen["sharding_stage"]) - 1
    cards, fsdp = chosen["gpu_count"], bool(stages.columns["fsdp"][at])
    mixed = _MIXED[chosen["compute_precision"]] if chosen["uses_autocast"] == "On" else "no"
    config: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "FSDP" if fsdp else "MULTI_GPU" if cards > 1 else "NO",
        "downcast_bf16": "no",
        "machine_rank": 0,
        "main_training_function": "main",
        "mixed_precision": mixed,
        "num_machines": -(-cards // chosen["gpus_per_node"]),
        "num_processes": cards,
        "rdzv_backend": "static",
        "same_network": True,
        "use_cpu": False,
    }
    if fsdp:
        config["fsdp_config"] = {
            "fsdp_version": 1,
            "fsdp_activation_checkpointing": chosen["activation_checkpointing"] == "On",
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_backward_prefetch": "BACKWARD_PRE",
            "fsdp_cpu_ram_efficient_loading": True,
            "fsdp_forward_prefetch": False,
            "fsdp_offload_params": bool(offloads.columns["parameters"][offloads.row_of(chosen["state_offload"]) - 1]),
            "fsdp_sharding_strategy": "HYBRID_SHARD" if stages.columns["hybrid"][at] else "FULL_SHARD",
            "fsdp_state_dict_type": "SHARDED_STATE_DICT",
            "fsdp_sync_module_states": True,
            "fsdp_use_orig_params": True,
        }
    return config


def _yaml(config: dict[str, Any], indent: str = "") -> list[str]:
    lines: list[str] = []
    for key, value in config.items():
        if isinstance(value, dict):
            lines += [f"{indent}{key}:", *_yaml(value, indent + "  ")]
        else:
            quoted = isinstance(value, str) and value.casefold() == "no"  # else a truth value to YAML
            plain = str(value).lower() if isinstance(value, bool) else value
            lines.append(f"{indent}{key}: {value!r}" if quoted else f"{indent}{key}: {plain}")
    return lines

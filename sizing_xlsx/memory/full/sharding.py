"""How cards share a step: what of the state is divided among how many, and which divisions are possible."""

from typing import Any

from ...formula.declare import Input, Whole, check, term
from ...formula.primitives import floor, minimum, when

_LAUNCHERS = "presets/recipes.csv: ZeRO keeps a master copy in fp32; FSDP, DDP and one card keep none"
tensor_parallel = Input(
    "count", Whole(1, 1024), 1, "Tensor parallel", "Cards that share each matrix; must divide heads and KV heads."
)
pipeline_parallel = Input(
    "count",
    Whole(1, 1024),
    1,
    "Pipeline parallel",
    "Stages that each hold some of the layers; at most as many as layers.",
)
sequence_parallel = Input(
    "count", Whole(1, 1024), 1, "Sequence parallel", "Cards that share each row (context or Ulysses parallel)."
)
expert_parallel = Input(
    "count", Whole(1, 1024), 1, "Expert parallel", "Cards that share the experts of each layer; 1 for dense models."
)


@term("count")
def model_parallel(tensor_parallel: Any, pipeline_parallel: Any) -> Any:
    """Cards that together hold one copy of the weights."""
    return tensor_parallel * pipeline_parallel


@term("count")
def data_parallel(gpu_count: Any, model_parallel: Any, sequence_parallel: Any) -> Any:
    """Groups of cards that work on different rows."""
    return gpu_count / (model_parallel * sequence_parallel)


@term("count")
def copies_of_weights(gpu_count: Any, model_parallel: Any) -> Any:
    """Cards among which a stage may divide the state: those that would hold the same weights."""
    return gpu_count / model_parallel


@check(
    "gpu_count is {gpu_count} with tensor_parallel {tensor_parallel}, pipeline_parallel {pipeline_parallel} and"
    " sequence_parallel {sequence_parallel}; it must be a multiple of their product"
)
@term("switch")
def degrees_divide_cards(data_parallel: Any) -> Any:
    """0 when the degrees of parallelism do not divide the cards."""
    return when(floor(data_parallel) >= data_parallel, 1, 0)


@term("count")
def uneven_heads(attention_heads: Any, kv_heads: Any, tensor_parallel: Any) -> Any:
    """What is left over when tensor parallel shares heads and KV heads: 0 when both are even."""
    queries, keys = attention_heads / tensor_parallel, kv_heads / tensor_parallel
    return queries - floor(queries) + keys - floor(keys)


@check(
    "tensor_parallel is {tensor_parallel}; it must divide the attention heads, {attention_heads}, and the KV heads,"
    " {kv_heads}, of {base_model}"
)
@term("switch")
def tensor_parallel_divides(uneven_heads: Any) -> Any:
    """0 when heads cannot be shared evenly."""
    return when(uneven_heads > 0, 0, 1)


@check("pipeline_parallel is {pipeline_parallel}; it must be at most the layers of {base_model}, {layer_count}")
@term("switch")
def stages_hold_layers(pipeline_parallel: Any, layer_count: Any) -> Any:
    """0 when there are more pipeline stages than layers."""
    return when(pipeline_parallel > layer_count, 0, 1)


@check("sequence_parallel is {sequence_parallel}; it must divide sequence_length, which is {sequence_length}")
@term("switch")
def sequence_parallel_divides(sequence_length: Any, sequence_parallel: Any) -> Any:
    """0 when a row cannot be cut evenly."""
    part = sequence_length / sequence_parallel
    return when(floor(part) >= part, 1, 0)


@term("count")
def expert_groups(copies_of_weights: Any, expert_parallel: Any) -> Any:
    """Groups of cards that together hold all experts."""
    return copies_of_weights / expert_parallel


@term("count")
def uneven_experts(expert_count: Any, expert_parallel: Any, expert_groups: Any) -> Any:
    """What is left over when expert parallel shares experts, and cards its groups: 0 when both are even."""
    held = expert_count / expert_parallel
    return held - floor(held) + expert_groups - floor(expert_groups)


@check(
    "expert_parallel is {expert_parallel}; it must divide the experts of {base_model}, {expert_count}, and the cards"
    " beside tensor and pipeline parallel, and be 1 for a dense model"
)
@term("switch")
def expert_parallel_divides(expert_parallel: Any, expert_count: Any, uneven_experts: Any) -> Any:
    """0 when experts cannot be shared evenly."""
    return when((expert_parallel > 1) & ((uneven_experts > 0) | (expert_count < expert_parallel)), 0, 1)


@check(
    "sharding_stage is 'None' with {copies_of_weights} cards for each copy of the weights; choose DDP to repeat the"
    " state on each, or a stage that divides it"
)
@term("switch")
def stage_named(sharding_stages: Any, stage_row: Any, copies_of_weights: Any) -> Any:
    """0 when several cards would hold the same weights and nothing is said of how they work together."""
    return when((sharding_stages.copies[stage_row] > 0) & (copies_of_weights > 1), 0, 1)


@term("count")
def node_group(gpus_per_node: Any, tensor_parallel: Any, copies_of_weights: Any) -> Any:
    """Cards of one node among which a hybrid stage divides the state."""
    return minimum(copies_of_weights, gpus_per_node / tensor_parallel)


@term("switch", source=_LAUNCHERS)
def zero_starts_recipe(sharding_stages: Any, stage_row: Any, recipes: Any, recipe_row: Any) -> Any:
    """1 when DeepSpeed at this stage, or at stage 1 or 2, holds the recipe's tensors and no others."""
    divided = sharding_stages.shards_weights[stage_row] > 0
    return when(divided, recipes.runs_zero_3[recipe_row], recipes.runs_zero_1_2[recipe_row])


@term("switch", source=_LAUNCHERS)
def torch_starts_recipe(fsdp_stage: Any, recipes: Any, recipe_row: Any, fsdp_upcasts: Any) -> Any:
    """1 when PyTorch's FSDP, or its DDP and one card alone, holds the recipe's tensors and no others."""
    return when(fsdp_stage > 0, recipes.runs_fsdp[recipe_row] * (1 - fsdp_upcasts), recipes.runs_ddp[recipe_row])


@term("switch", source=_LAUNCHERS)
def launcher_starts_recipe(
    sharding_stages: Any, stage_row: Any, zero_starts_recipe: Any, torch_starts_recipe: Any
) -> Any:
    """1 when the launcher of the stage starts a job that holds the recipe's tensors, and no others."""
    return when(sharding_stages.zero[stage_row] > 0, zero_starts_recipe, torch_starts_recipe)

"""LoRA over several cards: what each holds of base, adapters and optimizer state, and what they hold for each other.

Without a stage each card holds everything and copies the adapters' gradients into buckets (DDP). A stage divides what
its row says. FSDP divides the stored values of a quantised base; their scales stay whole on every card.
"""

from typing import Any

from ...formula.declare import Constant, Number, check, term
from ...formula.primitives import maximum, minimum, when
from ..shared.exchange import DDP, DEEPSPEED, FSDP, by_zero, copied_gradients

_RUNS = "held against public runs of FSDP over two and four A100"
_FROZEN = (
    "PyTorch 2.4, FullyShardedDataParallel: the hooks of frozen units hold the inputs of reentrant checkpoints, and"
    " with them their gradients; "
) + _RUNS
gathered_layers = Constant(
    1, "layers", "Layers gathered at once", "adapters are units of their own between the layers; " + _RUNS, "traced"
)

_BAND = "an upper band over public runs of FSDP: never under what nvidia-smi showed there"
reserve_gathered_layers = Constant(2, "layers", "Reserve for layers in 16 bit", _BAND, "assumed", Number(0, 100))


# ---------------------------------------------------------------------- what is divided
@term("count")
def copies_of_weights(gpu_count: Any) -> Any:
    """Cards among which a stage may divide the state: all, for each works on rows of its own."""
    return gpu_count


@term("count")
def other_cards(gpu_count: Any) -> Any:
    """Cards beside the one that is sized."""
    return gpu_count - 1


@term("count")
def node_group(gpus_per_node: Any, copies_of_weights: Any) -> Any:
    """Cards of one node among which a hybrid stage divides the state."""
    return minimum(copies_of_weights, gpus_per_node)


@term("bytes per parameter")
def value_bytes(storage_formats: Any, storage_row: Any) -> Any:
    """Bytes of a converted parameter without its scales: what cards can divide of it."""
    return storage_formats.value_bytes[storage_row]


@term("bytes")
def divisible_base(
    base_on_card: Any,
    unquantised_parameters: Any,
    unquantised_bytes: Any,
    prepared_norms: Any,
    quantised_parameters: Any,
    value_bytes: Any,
) -> Any:
    """The frozen base without scales, indices and tables: they are no parameters, so every card holds them whole."""
    plain = unquantised_parameters * unquantised_bytes + prepared_norms
    return base_on_card * (plain + quantised_parameters * value_bytes)


@term("bytes", source=_RUNS)
def base_held(frozen_base_weights: Any, divisible_base: Any, weight_shards: Any) -> Any:
    """The frozen base on one card."""
    return frozen_base_weights - divisible_base * (1 - 1 / weight_shards)


@term("bytes")
def adapters_held(adapter_weights: Any, weight_shards: Any) -> Any:
    """The adapters on one card."""
    return adapter_weights / weight_shards


@term("bytes")
def gradients_held(adapter_gradients: Any, gradient_shards: Any) -> Any:
    """Gradients on one card, while they exist."""
    return adapter_gradients / gradient_shards


@term("bytes")
def optimizer_held(optimizer_state: Any, optimizer_shards: Any) -> Any:
    """Optimizer state on one card."""
    return optimizer_state / optimizer_shards


# ---------------------------------------------------------------------- what cards hold for each other
@term("bytes", source=DDP)
def ddp_buckets(sharding_stages: Any, stage_row: Any, copies_of_weights: Any, adapter_gradients: Any) -> Any:
    """DDP copies the adapters' gradients into buckets, which stay."""
    return copied_gradients(sharding_stages, stage_row, copies_of_weights, adapter_gradients)


@term("bytes", source=DEEPSPEED)
def zero_buckets(
    sharding_stages: Any,
    stage_row: Any,
    copies_of_weights: Any,
    adapter_parameters: Any,
    bucket_elements: Any,
    bucket_buffers: Any,
    bf16_bytes: Any,
) -> Any:
    """Buckets in which ZeRO reduces gradients and gathers adapters: no larger than what is trained."""
    bucket = bucket_buffers * bf16_bytes * minimum(bucket_elements, adapter_parameters)
    return by_zero(sharding_stages, stage_row, copies_of_weights) * bucket


@term("switch")
def weights_gathered(base_on_card: Any, weight_shards: Any) -> Any:
    """1 when weights must be gathered from other cards before they compute."""
    return base_on_card * when(weight_shards > 1, 1, 0)


@term("switch")
def fsdp_gathers(weights_gathered: Any, fsdp_stage: Any) -> Any:
    """1 when FSDP gathers them, a unit at a time."""
    return weights_gathered * fsdp_stage


@term("bytes per parameter")
def gathered_bytes(autocast_active: Any, unquantised_bytes: Any, bf16_bytes: Any) -> Any:
    """Bytes of a gathered parameter that is not quantised: mixed precision gathers in 16 bit."""
    return when(autocast_active > 0, minimum(bf16_bytes, unquantised_bytes), unquantised_bytes)


@term("parameters")
def outer_plain_parameters(
    outer_parameters: Any,
    untied_parameters: Any,
    replaced_head_parameters: Any,
    head_quantised: Any,
    head_matrix_parameters: Any,
) -> Any:
    """Parameters of the embeddings and the output head that are not quantised."""
    return outer_parameters + untied_parameters - replaced_head_parameters - head_quantised * head_matrix_parameters


@term("bytes", source=FSDP)
def gathered_root(
    fsdp_gathers: Any,
    gathered_bytes: Any,
    outer_plain_parameters: Any,
    value_bytes: Any,
    head_quantised: Any,
    head_matrix_parameters: Any,
) -> Any:
    """Embeddings and output head, gathered as a whole."""
    head = value_bytes * head_quantised * head_matrix_parameters
    return fsdp_gathers * (gathered_bytes * outer_plain_parameters + head)


@term("bytes", source=_RUNS)
def gathered_layer(
    fsdp_gathers: Any,
    gathered_bytes: Any,
    base_parameter_count: Any,
    outer_parameters: Any,
    quantised_layer_parameters: Any,
    value_bytes: Any,
    layer_count: Any,
) -> Any:
    """One layer, gathered as it is stored."""
    plain = maximum(0, base_parameter_count - outer_parameters - quantised_layer_parameters)
    return fsdp_gathers * (gathered_bytes * plain + value_bytes * quantised_layer_parameters) / layer_count


@term("bytes", source=DEEPSPEED)
def live_weights(
    weights_gathered: Any,
    sharding_stages: Any,
    stage_row: Any,
    divisible_base: Any,
    live_parameters: Any,
    base_parameter_count: Any,
) -> Any:
    """Weights that ZeRO-3 keeps gathered for reuse."""
    share = minimum(1, live_parameters / base_parameter_count)
    return weights_gathered * sharding_stages.zero[stage_row] * divisible_base * share


@term("switch", source=_FROZEN)
def holds_boundary_gradients(fsdp_gathers: Any, checkpointing_on: Any, stack_reentrant: Any) -> Any:
    """1 when backward leaves the gradient of every layer's input behind: FSDP over frozen, reentrant checkpoints."""
    return fsdp_gathers * checkpointing_on * stack_reentrant


@term("bytes", source=_FROZEN)
def boundary_gradients(
    holds_boundary_gradients: Any, reached_layers: Any, layer_count: Any, stack_fused_norms: Any, layer_boundary: Any
) -> Any:
    """These, when the lowest layer is at work: of all layers above it, one less beside fused norms."""
    layers = when(reached_layers > 0, maximum(0, layer_count - 1 - stack_fused_norms), 0)
    return holds_boundary_gradients * layers * layer_boundary


@term("bytes", source=_FROZEN)
def late_gradients(holds_boundary_gradients: Any, gradients_accumulate: Any, gradients_held: Any) -> Any:
    """By then the adapters above have their gradients too."""
    return holds_boundary_gradients * (1 - gradients_accumulate) * gradients_held


# ---------------------------------------------------------------------- what the allocator holds for it
@term("bytes", source=_BAND)
def reserve_for_exchange(
    fsdp_gathers: Any,
    reserve_gathered_layers: Any,
    bf16_bytes: Any,
    base_parameter_count: Any,
    outer_parameters: Any,
    layer_count: Any,
    gathered_root: Any,
    boundary_gradients: Any,
) -> Any:
    """Blocks of FSDP's own stream, which computation cannot use: gathered layers and root, gradients left behind."""
    layer = bf16_bytes * maximum(0, base_parameter_count - outer_parameters) / layer_count
    return fsdp_gathers * reserve_gathered_layers * layer + gathered_root + boundary_gradients


# ---------------------------------------------------------------------- what a planner should know
@check(
    "sharding_stage is {sharding_stage!r}; its buffers are those of its documentation, and no such step was traced",
    fault=False,
)
@term("switch")
def stage_measured(fsdp_stage: Any, copies_of_weights: Any) -> Any:
    """0 when several cards share a step in a way that no public run at hand was held against: all but FSDP."""
    return when(copies_of_weights > 1, fsdp_stage, 1)


@check(
    "kbit_preparation is {kbit_preparation!r} with sharding_stage {sharding_stage!r}; FSDP wants one type in a unit,"
    " and trainers leave the preparation out there: choose Off",
    fault=False,
)
@term("switch")
def fsdp_takes_preparation(fsdp_gathers: Any, kbit_prepared: Any) -> Any:
    """0 when FSDP should divide a base whose norms were turned into fp32."""
    return 1 - fsdp_gathers * kbit_prepared

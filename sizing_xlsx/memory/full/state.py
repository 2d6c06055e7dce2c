"""State: weights, gradients, master copy and moments of one card, what is held elsewhere, and buffers beside them."""

from typing import Any

from ...formula.declare import Choice, Constant, Input, Number, check, term
from ...formula.primitives import floor, maximum, minimum, when
from ..shared.exchange import DDP, DEEPSPEED, FSDP, by_zero, copied_gradients

_ZERO = "Rajbhandari et al. 2020; DeepSpeed's and PyTorch's documentation"
state_offload = Input(
    "text",
    Choice("offloads"),
    "None",
    "Offload",
    "State that the host's memory or a disk holds; ZeRO and FSDP can, and parameters only where weights are divided.",
)
host_buffer_factor = Constant(
    1.5, "count", "Host memory, times what is offloaded", "DeepSpeed's own memory estimate", "published", Number(1, 10)
)
nvme_buffer_gb = Constant(
    2, "GB", "Host buffers a card, with NVMe", "5 buffers of 1e8 fp32 elements: DeepSpeed's defaults", "published",
    Number(0, 1000),
)  # fmt: skip
gathered_layers = Constant(
    2, "layers", "Layers gathered at once", "FSDP gathers the next layer while one works; public runs agree", "traced"
)


# ---------------------------------------------------------------------- parameters of one card
@term("parameters")
def inner_parameters(base_parameter_count: Any, outer_parameters: Any) -> Any:
    """Parameters of the layers, with the norms."""
    return maximum(0, base_parameter_count - outer_parameters)


@term("parameters", label="Parameters of experts")
def inner_expert_parameters(all_expert_parameters: Any, inner_parameters: Any) -> Any:
    """Of these, the routed experts."""
    return minimum(all_expert_parameters, inner_parameters)


@term("layers")
def stage_layers(layer_count: Any, pipeline_parallel: Any) -> Any:
    """Layers of the pipeline stage that has most."""
    return floor((layer_count - 1) / pipeline_parallel) + 1


@term("parameters", label="Dense parameters in layers of a card")
def inner_dense_held(
    inner_parameters: Any, inner_expert_parameters: Any, stage_layers: Any, layer_count: Any, tensor_parallel: Any
) -> Any:
    """Parameters of a card's layers without experts, before a stage divides them."""
    dense = inner_parameters - inner_expert_parameters
    return dense * stage_layers / (layer_count * tensor_parallel)


@term("parameters")
def outer_share(base_parameter_count: Any, outer_parameters: Any) -> Any:
    """Parameters outside the layers."""
    return minimum(base_parameter_count, outer_parameters)


@term("parameters", label="Parameters outside the layers of a card")
def outer_held(outer_share: Any, pipeline_parallel: Any, tensor_parallel: Any, embedding_parameters: Any) -> Any:
    """Embeddings and output head; with a pipeline, one of them on the stage that has it."""
    one = minimum(outer_share, embedding_parameters)
    return when(pipeline_parallel > 1, one, outer_share) / tensor_parallel


@term("parameters")
def dense_held(inner_dense_held: Any, outer_held: Any) -> Any:
    """Parameters of a card that are no routed experts, before a stage divides them."""
    return inner_dense_held + outer_held


@term("parameters", label="Parameters of experts of a card")
def experts_held(
    inner_expert_parameters: Any, stage_layers: Any, layer_count: Any, tensor_parallel: Any, expert_parallel: Any
) -> Any:
    """Routed experts of a card, before a stage divides them."""
    return inner_expert_parameters * stage_layers / (layer_count * tensor_parallel * expert_parallel)


@term("parameters", label="Parameters of a card")
def parameters_held(dense_held: Any, experts_held: Any) -> Any:
    """All parameters of a card, before a stage divides them."""
    return dense_held + experts_held


@term("parameters", source=_ZERO)
def weights_held(dense_held: Any, experts_held: Any, weight_shards: Any, expert_parallel: Any) -> Any:
    """Parameters whose weights a card holds; experts that cards share already are divided among fewer."""
    return dense_held / weight_shards + experts_held / maximum(1, weight_shards / expert_parallel)


@term("parameters", source=_ZERO)
def gradients_held(dense_held: Any, experts_held: Any, gradient_shards: Any, expert_parallel: Any) -> Any:
    """Parameters whose gradients a card holds."""
    return dense_held / gradient_shards + experts_held / maximum(1, gradient_shards / expert_parallel)


@term("parameters", source=_ZERO)
def updates_held(dense_held: Any, experts_held: Any, optimizer_shards: Any, expert_parallel: Any) -> Any:
    """Parameters that a card updates: whose master copy and moments it holds."""
    return dense_held / optimizer_shards + experts_held / maximum(1, optimizer_shards / expert_parallel)


# ---------------------------------------------------------------------- bytes of one card
@term("row")
def offload_row(offloads: Any, state_offload: Any) -> Any:
    """Row of the offload in its table."""
    return offloads.row_of(state_offload)


@check("state_offload is {state_offload!r} with sharding_stage {sharding_stage!r}; ZeRO and FSDP offload, not others")
@term("switch")
def stage_offloads(offloads: Any, offload_row: Any, sharding_stages: Any, stage_row: Any) -> Any:
    """0 when a stage should offload that cannot."""
    return when(sharding_stages.shards_optimizer[stage_row] > 0, 1, 1 - offloads.optimizer[offload_row])


@check(
    "state_offload is {state_offload!r} with sharding_stage {sharding_stage!r}; parameters can be offloaded where"
    " weights are divided: with ZeRO-3 or FSDP"
)
@term("switch")
def stage_offloads_parameters(offloads: Any, offload_row: Any, sharding_stages: Any, stage_row: Any) -> Any:
    """0 when parameters should be offloaded and the stage holds them whole."""
    return when(sharding_stages.shards_weights[stage_row] > 0, 1, 1 - offloads.parameters[offload_row])


@check(
    "state_offload is {state_offload!r} with sharding_stage {sharding_stage!r}; FSDP offloads parameters and optimizer"
    " together to the CPU, or nothing",
    fault=False,
)
@term("switch")
def offload_offered(offloads: Any, offload_row: Any, fsdp_stage: Any) -> Any:
    """0 when FSDP should offload in a way that it does not have."""
    both = offloads.parameters[offload_row] * (1 - offloads.nvme[offload_row])
    return when(fsdp_stage * offloads.optimizer[offload_row] > both, 0, 1)


@term("bytes")
def all_weights(weights_held: Any, weight_bytes: Any) -> Any:
    """Weights of a card's share, wherever they lie."""
    return weights_held * weight_bytes


@term("bytes")
def weight_memory(all_weights: Any, offloads: Any, offload_row: Any) -> Any:
    """Weights on the card between steps."""
    return all_weights * (1 - offloads.parameters[offload_row])


@term("bytes")
def gradient_memory(gradients_held: Any, gradient_bytes: Any, gradients_kept: Any) -> Any:
    """Gradients on the card at the end of backward."""
    return gradients_kept * gradients_held * gradient_bytes


@term("bytes")
def all_master(updates_held: Any, master_bytes: Any) -> Any:
    """The optimizer's own copy of a card's share, wherever it lies."""
    return updates_held * master_bytes


@term("bytes")
def master_memory(all_master: Any, offloads: Any, offload_row: Any) -> Any:
    """The optimizer's own copy on the card."""
    return all_master * (1 - offloads.optimizer[offload_row])


@term("parameters")
def embedding_held(embedding_parameters: Any, tensor_parallel: Any, optimizer_shards: Any) -> Any:
    """Embeddings that a card updates."""
    return embedding_parameters / (tensor_parallel * optimizer_shards)


@term("bytes", source="bitsandbytes 0.50")
def exception_bytes(embedding_exception: Any, embedding_held: Any, fp32_bytes: Any, moment_bytes: Any) -> Any:
    """What embeddings take more under an 8-bit optimizer that keeps theirs in 32 bit."""
    return embedding_exception * embedding_held * (2 * fp32_bytes - moment_bytes)


@term("bytes")
def all_moments(updates_held: Any, moment_bytes: Any, exception_bytes: Any) -> Any:
    """Both moments of a card's share, wherever they lie."""
    return updates_held * moment_bytes + exception_bytes


@term("bytes")
def moment_memory(all_moments: Any, moments_paged: Any, offloads: Any, offload_row: Any) -> Any:
    """Both moments as PyTorch counts them: none that are paged or held elsewhere."""
    return all_moments * (1 - offloads.optimizer[offload_row]) * (1 - moments_paged)


@term("bytes")
def exact_static_bytes(weight_memory: Any, master_memory: Any, moment_memory: Any) -> Any:
    """Weights, master copy and moments: on the card between steps too."""
    return weight_memory + master_memory + moment_memory


@term("bytes", label="Model state of a card")
def model_state(exact_static_bytes: Any, gradient_memory: Any) -> Any:
    """Weights, gradients, master copy and moments of one card."""
    return exact_static_bytes + gradient_memory


@term("GB", label="Model state per GPU")
def model_state_per_gpu_gb(model_state: Any, bytes_per_gb: Any) -> Any:
    """Weights, gradients, master copy and moments of one card; activations not included."""
    return model_state / bytes_per_gb


@term("GB", label="Model state of all tensors, undivided")
def whole_state_gb(
    base_parameter_count: Any, weight_bytes: Any, gradient_bytes: Any, master_bytes: Any, moment_bytes: Any,
    bytes_per_gb: Any,
) -> Any:  # fmt: skip
    """Parameters times the bytes of the recipe: what one card would hold that shares with none."""
    return base_parameter_count * (weight_bytes + gradient_bytes + master_bytes + moment_bytes) / bytes_per_gb


# ---------------------------------------------------------------------- elsewhere
@term("bytes")
def offloaded_state(
    all_weights: Any, weight_memory: Any, all_master: Any, master_memory: Any, all_moments: Any, offloads: Any,
    offload_row: Any,
) -> Any:  # fmt: skip
    """State of one card that the host or a disk holds."""
    moments = all_moments * offloads.optimizer[offload_row]
    return all_weights - weight_memory + all_master - master_memory + moments


@term("count")
def cards_of_node(gpus_per_node: Any, gpu_count: Any) -> Any:
    """Cards of the fullest node."""
    return minimum(gpus_per_node, gpu_count)


@term("GB", label="Host memory per node", source="DeepSpeed's own memory estimate")
def host_memory_gb(
    offloaded_state: Any, offloads: Any, offload_row: Any, cards_of_node: Any, host_buffer_factor: Any,
    nvme_buffer_gb: Any, bytes_per_gb: Any,
) -> Any:  # fmt: skip
    """Host memory that offloading needs on one node: the state with its buffers, or buffers alone before a disk."""
    held = offloaded_state * host_buffer_factor / bytes_per_gb
    buffers = when(offloaded_state > 0, nvme_buffer_gb, 0)
    return cards_of_node * when(offloads.nvme[offload_row] > 0, buffers, held)


@term("GB", label="NVMe per node")
def nvme_gb(offloaded_state: Any, offloads: Any, offload_row: Any, cards_of_node: Any, bytes_per_gb: Any) -> Any:
    """Disk space that offloading needs on one node."""
    return cards_of_node * offloads.nvme[offload_row] * offloaded_state / bytes_per_gb


# ---------------------------------------------------------------------- buffers
@term("bytes", source=DDP)
def ddp_buckets(sharding_stages: Any, stage_row: Any, copies_of_weights: Any, parameters_held: Any,
                gradient_bytes: Any) -> Any:  # fmt: skip
    """DDP copies all gradients into buckets, which stay."""
    return copied_gradients(sharding_stages, stage_row, copies_of_weights, parameters_held * gradient_bytes)


@term("bytes", source=DEEPSPEED)
def zero_buckets(
    sharding_stages: Any, stage_row: Any, copies_of_weights: Any, parameters_held: Any, bucket_elements: Any,
    bucket_buffers: Any, bf16_bytes: Any,
) -> Any:  # fmt: skip
    """Buckets in which ZeRO reduces gradients and gathers weights."""
    bucket = bucket_buffers * bf16_bytes * minimum(bucket_elements, parameters_held)
    return by_zero(sharding_stages, stage_row, copies_of_weights) * bucket


@term("bytes per parameter")
def gathered_bytes(half_weights: Any, autocast_active: Any, bf16_bytes: Any, fp32_bytes: Any) -> Any:
    """Bytes of a weight that is gathered to compute with."""
    return when(half_weights + autocast_active > 0, bf16_bytes, fp32_bytes)


@term("switch")
def weights_gathered(weight_shards: Any, offloads: Any, offload_row: Any) -> Any:
    """1 when weights must be gathered before they compute: they are divided, or lie elsewhere."""
    return when((weight_shards > 1) | (offloads.parameters[offload_row] > 0), 1, 0)


@term("bytes", source=FSDP)
def gathered_root(weights_gathered: Any, fsdp_stage: Any, gathered_bytes: Any, outer_held: Any) -> Any:
    """Embeddings and output head, gathered as a whole."""
    return weights_gathered * fsdp_stage * gathered_bytes * outer_held


@term("bytes")
def gathered_layer(
    weights_gathered: Any, fsdp_stage: Any, gathered_bytes: Any, inner_dense_held: Any, experts_held: Any,
    stage_layers: Any,
) -> Any:  # fmt: skip
    """One layer, gathered."""
    return weights_gathered * fsdp_stage * gathered_bytes * (inner_dense_held + experts_held) / stage_layers


@term("bytes", source=DEEPSPEED)
def live_weights(
    weights_gathered: Any, sharding_stages: Any, stage_row: Any, gathered_bytes: Any, live_parameters: Any,
    parameters_held: Any,
) -> Any:  # fmt: skip
    """Weights that ZeRO-3 keeps gathered for reuse."""
    zero = weights_gathered * sharding_stages.zero[stage_row]
    return zero * gathered_bytes * minimum(live_parameters, parameters_held)

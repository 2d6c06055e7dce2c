"""How cards share one model: tensor, pipeline, data and expert parallel, and which degrees are possible."""

from typing import Any

from ...formula.declare import Input, Whole, check, term
from ...formula.primitives import floor, maximum, when
from ..shared.card import APART, may_share

tensor_parallel = Input(
    "count", Whole(1, 1024), 1, "Tensor parallel", "Cards that share each matrix; it must divide the attention heads."
)
pipeline_parallel = Input(
    "count",
    Whole(1, 1024),
    1,
    "Pipeline parallel",
    "Stages that each hold some of the layers; at most as many as layers.",
)
data_parallel = Input(
    "count", Whole(1, 1024), 1, "Data parallel", "Copies of the engine that each serve other requests."
)
expert_parallel = Input(
    "count",
    Whole(1, 1024),
    1,
    "Expert parallel",
    "Cards among which whole experts are divided; it must divide tensor × data parallel and the experts.",
)


@term("count", label="Cards")
def gpu_count(tensor_parallel: Any, pipeline_parallel: Any, data_parallel: Any) -> Any:
    """Cards of one deployment: tensor × pipeline × data parallel."""
    return tensor_parallel * pipeline_parallel * data_parallel


@check(APART, fault=False)
@term("switch", source="NVIDIA MIG User Guide, Deployment Considerations")
def slices_work_alone(
    gpus: Any, gpu_row: Any, tensor_parallel: Any, pipeline_parallel: Any, expert_parallel: Any
) -> Any:
    """0 when cards that share a step are MIG slices; copies of the engine need nothing of each other."""
    return may_share(gpus, gpu_row, maximum(tensor_parallel * pipeline_parallel, expert_parallel))


@check("tensor_parallel is {tensor_parallel}; it must divide the attention heads of {base_model}, {attention_heads}")
@term("switch")
def tensor_parallel_divides(attention_heads: Any, tensor_parallel: Any) -> Any:
    """0 when attention heads cannot be shared evenly."""
    part = attention_heads / tensor_parallel
    return when(floor(part) >= part, 1, 0)


@term("switch")
def kv_heads_shared(kv_heads: Any, tensor_parallel: Any) -> Any:
    """1 when cards share the KV heads evenly."""
    part = kv_heads / tensor_parallel
    return when(floor(part) >= part, 1, 0)


@term("switch")
def kv_heads_repeated(kv_heads: Any, tensor_parallel: Any) -> Any:
    """1 when each KV head is kept by as many cards."""
    copies = tensor_parallel / kv_heads
    return when(floor(copies) >= copies, 1, 0)


@check(
    "tensor_parallel is {tensor_parallel}; it must divide the KV heads of {base_model}, {kv_heads}, or be a multiple of"
    " them, so that each is kept as often"
)
@term("switch", label="KV heads divide")
def kv_heads_divide(kv_heads_shared: Any, kv_heads_repeated: Any, kv_latent_width: Any) -> Any:
    """0 when KV heads can neither be shared evenly nor repeated evenly; a latent is whole on each card."""
    return when((kv_latent_width > 0) | (kv_heads_shared + kv_heads_repeated > 0), 1, 0)


@check("pipeline_parallel is {pipeline_parallel}; it must be at most the layers of {base_model}, {layer_count}")
@term("switch")
def stages_hold_layers(pipeline_parallel: Any, layer_count: Any) -> Any:
    """0 when there are more pipeline stages than layers."""
    return when(pipeline_parallel > layer_count, 0, 1)


@term("count")
def experts_of_card(expert_count: Any, expert_parallel: Any) -> Any:
    """Whole experts of each card that shares them."""
    return expert_count / expert_parallel


@term("count")
def expert_groups(tensor_parallel: Any, data_parallel: Any, expert_parallel: Any) -> Any:
    """Groups of cards that each hold all experts together."""
    return tensor_parallel * data_parallel / expert_parallel


@term("count")
def uneven_experts(experts_of_card: Any, expert_groups: Any) -> Any:
    """What is left over when cards share whole experts: 0 when all is even."""
    return experts_of_card - floor(experts_of_card) + expert_groups - floor(expert_groups)


@check(
    "expert_parallel is {expert_parallel}; it must divide the experts of {base_model}, {expert_count}, and"
    " tensor_parallel × data_parallel, {tensor_parallel} × {data_parallel}, and be 1 for a dense model"
)
@term("switch")
def expert_parallel_divides(expert_parallel: Any, expert_count: Any, uneven_experts: Any) -> Any:
    """0 when experts cannot be shared evenly."""
    return when((expert_parallel > 1) & ((uneven_experts > 0) | (expert_count < expert_parallel)), 0, 1)


@term("heads", source="vLLM: ModelConfig.get_num_kv_heads", label="KV heads of a card")
def kv_heads_held(kv_heads: Any, tensor_parallel: Any) -> Any:
    """KV heads that each card keeps: its part, and at least one, which other cards then keep too."""
    return maximum(1, kv_heads / tensor_parallel)


@term("share")
def stage_share(stage_layers: Any, layer_count: Any) -> Any:
    """Share of the layers that the pipeline stage with most of them holds."""
    return stage_layers / layer_count


@term("count")
def expert_shards(tensor_parallel: Any, expert_parallel: Any) -> Any:
    """Cards among which the experts are divided, whole or by their width."""
    return maximum(tensor_parallel, expert_parallel)

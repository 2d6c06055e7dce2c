"""LoRA, traced: what one decoder layer keeps for backward, in bytes per token by tensor."""

from typing import Any

from ...formula.declare import Choice, Constant, Input, term
from ...formula.primitives import floor, maximum, minimum, when

_TRACE = "allocation trace: transformers 5.20, PEFT 0.21, PyTorch 2.13"
uses_autocast = Input(
    "text",
    Choice("switches"),
    "On",
    "Autocast",
    "Off when a 16-bit base computes as it is (a trainer without bf16=True): adapters then copy inputs in fp32.",
)


fp32_attention_bytes = Constant(12, "bytes per value", "Attention in fp32: more in query width", _TRACE, "traced")
repeated_query_bytes = Constant(
    4, "bytes per value", "Repeated keys and values, query width", "allocation trace: torchtune 0.6.1", "traced"
)
packed_query_bytes = Constant(
    4, "bytes per value", "Packed attention: more in query width", "allocation trace: litgpt 0.5.13", "traced"
)
expert_loop_bytes = Constant(
    4, "bytes per value", "Loop over experts, hidden width", "held against public runs of transformers 4.48", "traced"
)


@term("switch")
def autocast_active(autocast_on: Any, switches: Any, uses_autocast: Any) -> Any:
    """1 when autocast picks the precision of each operation."""
    return autocast_on * switches.value[switches.row_of(uses_autocast)]


@term("bytes per token", source=_TRACE)
def norm_bytes(
    stack_fused_norms: Any, fused_norm_bytes: Any, form_norms_hidden: Any, form_norms_token: Any, hidden_size: Any
) -> Any:
    """Inputs of the layer's norms in fp32, with their statistics; fused kernels keep them in 16 bit."""
    width = when(stack_fused_norms > 0, fused_norm_bytes, form_norms_hidden)
    return width * hidden_size + form_norms_token


@term("bytes per value", source=_TRACE)
def adapter_value_bytes(autocast_active: Any, fp32_adapters: Any, fp32_bytes: Any, bf16_bytes: Any) -> Any:
    """Bytes of a value that an adapter computes with: 16 bit under autocast, else the adapter's own."""
    return when((fp32_adapters > 0) & (autocast_active <= 0), fp32_bytes, bf16_bytes)


@term("switch", source=_TRACE)
def inputs_shared(dropout_on: Any, fp32_adapters: Any, autocast_active: Any, fp32_stream: Any) -> Any:
    """1 when adapters keep their module's own input in place of a copy each: nothing is cast, nothing dropped."""
    return (1 - dropout_on) * when(fp32_adapters > 0, (1 - autocast_active) * fp32_stream, 1 - fp32_stream)


@term("count", label="Packed query, key and value width")
def packed_qkv_width(
    query_adapter: Any,
    key_adapter: Any,
    value_adapter: Any,
    hidden_size: Any,
    output_adapter: Any,
    attention_output_width: Any,
) -> Any:
    """Input widths of attention's adapters where queries, keys and values share one."""
    shared = minimum(1, query_adapter + key_adapter + value_adapter) * hidden_size
    return shared + output_adapter * attention_output_width


@term("count")
def own_attention_width(stack_packs_qkv: Any, packed_qkv_width: Any, attention_input_width: Any) -> Any:
    """Sum of the widths that the adapters of attention copy."""
    return when(stack_packs_qkv > 0, packed_qkv_width, attention_input_width)


@term("count", label="Padded adapter width")
def padded_adapter_width(
    query_adapter: Any, query_width: Any, key_adapter: Any, value_adapter: Any, kv_width: Any
) -> Any:
    """Outputs of adapters on some of query, key and value, which are padded to the width of all; 0 when on all."""
    some = when(query_adapter + key_adapter + value_adapter > 2, 0, 1)
    return some * (query_adapter * query_width + (key_adapter + value_adapter) * kv_width)


@term("count")
def shared_attention_width(
    query_adapter: Any,
    key_adapter: Any,
    value_adapter: Any,
    hidden_size: Any,
    stack_packs_qkv: Any,
    output_adapter: Any,
    attention_output_width: Any,
) -> Any:
    """Width of the input that adapters of queries, keys and values share, and of attention's output where it is copied.

    Queries that were cut out of a packed matrix lie head by head, and so does the output, which the kernel keeps.
    """
    shared = minimum(1, query_adapter + key_adapter + value_adapter) * hidden_size
    return shared + stack_packs_qkv * output_adapter * attention_output_width


@term("count", label="Shared MLP width")
def shared_mlp_width(gate_adapter: Any, up_adapter: Any, hidden_size: Any, down_adapter: Any, mlp_width: Any) -> Any:
    """Width of the inputs that the adapters of a dense MLP share."""
    return minimum(1, gate_adapter + up_adapter) * hidden_size + down_adapter * mlp_width


@term("bytes per value", source=_TRACE)
def own_input_bytes(adapter_value_bytes: Any, dropout_on: Any, mask_bytes: Any) -> Any:
    """A copy of an adapter's input, and its mask when adapters drop inputs."""
    return adapter_value_bytes + dropout_on * mask_bytes


@term("bytes per token", source=_TRACE)
def attention_input_bytes(
    inputs_shared: Any,
    adapter_value_bytes: Any,
    shared_attention_width: Any,
    own_input_bytes: Any,
    own_attention_width: Any,
) -> Any:
    """What the adapters of attention keep of their inputs."""
    return when(inputs_shared > 0, adapter_value_bytes * shared_attention_width, own_input_bytes * own_attention_width)


@term("bytes per token", source=_TRACE, label="MLP adapter input bytes")
def mlp_input_bytes(
    inputs_shared: Any, adapter_value_bytes: Any, shared_mlp_width: Any, own_input_bytes: Any, mlp_input_width: Any
) -> Any:
    """What the adapters of a dense MLP keep of their inputs."""
    return when(inputs_shared > 0, adapter_value_bytes * shared_mlp_width, own_input_bytes * mlp_input_width)


@term("bytes per value", source=_TRACE)
def inner_bytes(stack_fused_adapters: Any, bf16_bytes: Any, adapter_value_bytes: Any) -> Any:
    """Bytes of a value of the inner, rank-wide output of an adapter."""
    return when(stack_fused_adapters > 0, bf16_bytes, adapter_value_bytes)


@term("bytes per token", source=_TRACE)
def attention_adapter_bytes(
    stack_fused_adapters: Any,
    bf16_bytes: Any,
    attention_input_width: Any,
    hidden_size: Any,
    attention_input_bytes: Any,
) -> Any:
    """Inputs kept for the adapters of attention; fused kernels keep them in 16 bit, and the stream once more."""
    fused = bf16_bytes * (attention_input_width + hidden_size)
    return when(stack_fused_adapters > 0, fused, attention_input_bytes)


@term("bytes per token", source=_TRACE, label="MLP adapter bytes")
def mlp_adapter_bytes(stack_fused_adapters: Any, bf16_bytes: Any, mlp_input_width: Any, mlp_input_bytes: Any) -> Any:
    """Inputs kept for the adapters of a dense MLP."""
    return when(stack_fused_adapters > 0, bf16_bytes * mlp_input_width, mlp_input_bytes)


@term("switch", source=_TRACE)
def fp32_attention(fp32_stream: Any, autocast_active: Any, attention_kernels: Any, kernel_row: Any) -> Any:
    """1 when queries, keys and values reach the kernel in fp32: it then takes none with fewer heads than queries."""
    return fp32_stream * (1 - autocast_active) * attention_kernels.takes_fp32[kernel_row]


@term("switch", source=_TRACE)
def eager_attention(attention_kernels: Any, kernel_row: Any) -> Any:
    """1 when attention is written out in plain operations."""
    return attention_kernels.eager[kernel_row]


@term("switch", source=_TRACE)
def full_width_kv(scores_stored: Any, fp32_attention: Any, stack_repeats_kv: Any) -> Any:
    """1 when keys and values are kept at query width: kernels that store scores, and fp32 ones, repeat them."""
    return when(scores_stored + fp32_attention + stack_repeats_kv > 0, 1, 0)


@term("bytes per token", source=_TRACE, label="Repeated key and value bytes")
def repeated_bytes(stack_repeats_kv: Any, repeated_query_bytes: Any, query_width: Any) -> Any:
    """Keys and values that the training stack itself repeats for the queries."""
    return stack_repeats_kv * repeated_query_bytes * query_width


@term("bytes per token", source=_TRACE, label="Packed query, key and value bytes")
def packed_bytes(
    stack_packs_qkv: Any,
    packed_query_bytes: Any,
    query_width: Any,
    bf16_bytes: Any,
    padded_adapter_width: Any,
    kv_repeats: Any,
) -> Any:
    """What one matrix for queries, keys and values keeps more: its output, where nothing is repeated, stays too."""
    whole = when(kv_repeats > 1, 0, 1) * packed_query_bytes * query_width
    return stack_packs_qkv * (whole + bf16_bytes * padded_adapter_width)


@term("count", label="Query heads per KV head")
def kv_repeats(attention_heads: Any, kv_heads: Any) -> Any:
    """Query heads that share one head of keys and values."""
    return attention_heads / kv_heads


@term("bytes per token", source=_TRACE)
def score_bytes(
    form_attention_score: Any,
    form_eager_score: Any,
    eager_attention: Any,
    attention_kernels: Any,
    kernel_row: Any,
    attention_heads: Any,
    tokens_per_row: Any,
) -> Any:
    """Scores that attention stores: one per head and pair of tokens."""
    form = form_attention_score + eager_attention * form_eager_score
    return (form + attention_kernels.score_bytes[kernel_row]) * attention_heads * tokens_per_row


@term("switch", source=_TRACE)
def form_stores_scores(form_attention_score: Any) -> Any:
    """1 when the layers store their scores, whatever the kernel."""
    return when(form_attention_score > 0, 1, 0)


@term("bytes per value", source=_TRACE)
def query_value_bytes(
    form_attention_query: Any,
    form_eager_query: Any,
    eager_attention: Any,
    attention_kernels: Any,
    kernel_row: Any,
    fp32_attention: Any,
    fp32_attention_bytes: Any,
) -> Any:
    """What attention keeps in query width."""
    form = form_attention_query + eager_attention * form_eager_query
    kernel = when(fp32_attention > 0, fp32_attention_bytes, attention_kernels.extra_query_bytes[kernel_row])
    return form + kernel


@term("bytes per token", source=_TRACE)
def query_bytes(
    query_value_bytes: Any,
    query_width: Any,
    form_attention_output: Any,
    form_eager_output: Any,
    eager_attention: Any,
    attention_output_width: Any,
) -> Any:
    """Queries, and with them the attention output."""
    output = form_attention_output + eager_attention * form_eager_output
    return query_value_bytes * query_width + output * attention_output_width


@term("bytes per token", source=_TRACE)
def head_bytes(
    form_attention_head: Any,
    form_eager_head: Any,
    form_attention_kv_head: Any,
    scores_stored: Any,
    attention_heads: Any,
    kv_heads: Any,
) -> Any:
    """Numbers a head: logsumexp unless scores are stored, statistics of norms over heads."""
    heads = form_attention_head + scores_stored * form_eager_head
    return heads * attention_heads + form_attention_kv_head * kv_heads


@term("bytes per token", source=_TRACE)
def kv_bytes(form_attention_kv: Any, form_eager_kv: Any, full_width_kv: Any, kv_width: Any) -> Any:
    """Keys and values; where they are kept at query width, that is counted there."""
    return (form_attention_kv + full_width_kv * form_eager_kv) * kv_width


@term("bytes per token", source=_TRACE)
def latent_bytes(
    form_attention_query_latent: Any, form_attention_kv_latent: Any, query_latent_width: Any, kv_latent_width: Any
) -> Any:
    """Latents of queries, keys and values."""
    queries = form_attention_query_latent * query_latent_width
    return queries + form_attention_kv_latent * kv_latent_width


@term("bytes per token", source=_TRACE)
def position_bytes(
    form_attention_position: Any,
    form_eager_position: Any,
    eager_attention: Any,
    attention_heads: Any,
    form_attention_rope: Any,
    rope_dimension: Any,
    form_attention_token: Any,
) -> Any:
    """What latent attention keeps more or less of the part of keys that carries positions."""
    form = form_attention_position + eager_attention * form_eager_position
    return (form * attention_heads + form_attention_rope) * rope_dimension + form_attention_token


@term("bytes per token", source=_TRACE)
def cast_output_bytes(
    fp32_stream: Any,
    autocast_active: Any,
    fp32_attention: Any,
    output_adapter: Any,
    fp32_bytes: Any,
    attention_output_width: Any,
) -> Any:
    """A 16-bit kernel in an fp32 stream without autocast: the output's adapter keeps its input in fp32 besides."""
    apart = fp32_stream * (1 - autocast_active) * (1 - fp32_attention)
    return apart * output_adapter * fp32_bytes * attention_output_width


@term("bytes per token", source=_TRACE)
def uncached_bytes(
    checkpointing_on: Any, form_uncached_query: Any, query_width: Any, form_uncached_kv: Any, kv_width: Any
) -> Any:
    """What attention keeps more without a KV cache, which checkpointing switches off."""
    return checkpointing_on * (form_uncached_query * query_width + form_uncached_kv * kv_width)


@term("bytes per token", source=_TRACE)
def attention_bytes(
    query_bytes: Any,
    kv_bytes: Any,
    head_bytes: Any,
    score_bytes: Any,
    latent_bytes: Any,
    position_bytes: Any,
    uncached_bytes: Any,
    repeated_bytes: Any,
    packed_bytes: Any,
    inputs_shared: Any,
    cast_output_bytes: Any,
) -> Any:
    """Queries, keys, values, attention output, and what stands beside them."""
    kept = query_bytes + kv_bytes + head_bytes + score_bytes + latent_bytes + position_bytes
    return kept + uncached_bytes + repeated_bytes + packed_bytes + inputs_shared * cast_output_bytes


@term("bytes per token", source=_TRACE, label="MLP bytes")
def mlp_bytes(kbit_prepared: Any, form_mlp_width: Any, mlp_width: Any, form_mlp_hidden: Any, hidden_size: Any) -> Any:
    """A dense MLP's tensors: in fp32 behind quantised modules that are given fp32."""
    return (1 + kbit_prepared) * form_mlp_width * mlp_width + form_mlp_hidden * hidden_size


@term("bytes per token", source=_TRACE)
def routed_bytes(
    form_moe_passed_width: Any,
    form_moe_passed_hidden: Any,
    form_moe_passed: Any,
    experts_per_token: Any,
    expert_width: Any,
    hidden_size: Any,
) -> Any:
    """What the experts that a token passes keep."""
    wide = form_moe_passed_width * expert_width + form_moe_passed_hidden * hidden_size
    return experts_per_token * (wide + form_moe_passed)


@term("bytes per token", source=_TRACE)
def every_expert_bytes(
    form_moe_every_width: Any,
    form_moe_every_hidden: Any,
    form_moe_every: Any,
    expert_count: Any,
    expert_width: Any,
    hidden_size: Any,
) -> Any:
    """What is kept for every expert: the router's scores, and all tensors where every expert computes every token."""
    wide = form_moe_every_width * expert_width + form_moe_every_hidden * hidden_size
    return expert_count * (form_moe_every + wide)


@term("bytes per token", source=_TRACE, label="Expert layer's bytes")
def moe_bytes(
    routed_bytes: Any,
    every_expert_bytes: Any,
    form_moe_token: Any,
    stack_linear_experts: Any,
    expert_loop_bytes: Any,
    hidden_size: Any,
) -> Any:
    """What the routed experts of a layer keep; a loop over experts that are modules keeps a few rows more."""
    loop = stack_linear_experts * expert_loop_bytes * hidden_size
    return routed_bytes + every_expert_bytes + loop + form_moe_token


@term("bytes per token", source=_TRACE)
def shared_expert_bytes(
    form_shared_width: Any, shared_expert_width: Any, form_shared_hidden: Any, hidden_size: Any
) -> Any:
    """What the shared experts of a layer keep."""
    return form_shared_width * shared_expert_width + form_shared_hidden * hidden_size


@term("bytes per token", source=_TRACE)
def common_layer_bytes(
    norm_bytes: Any,
    attention_bytes: Any,
    attention_adapter_bytes: Any,
    inner_bytes: Any,
    lora_rank: Any,
    attention_adapters: Any,
) -> Any:
    """Norms and attention of a layer, with its adapters."""
    return norm_bytes + attention_bytes + attention_adapter_bytes + inner_bytes * lora_rank * attention_adapters


@term("bytes per token", source=_TRACE, label="Bytes of a dense MLP")
def dense_mlp_bytes(mlp_bytes: Any, mlp_adapter_bytes: Any, inner_bytes: Any, lora_rank: Any, mlp_adapters: Any) -> Any:
    """A plain MLP with its adapters."""
    return mlp_bytes + mlp_adapter_bytes + inner_bytes * lora_rank * mlp_adapters


@term("bytes per token", source=_TRACE)
def shared_adapter_bytes(
    own_input_bytes: Any,
    shared_adapter_input_width: Any,
    inner_bytes: Any,
    lora_rank: Any,
    shared_adapters: Any,
    mlp_adapters: Any,
) -> Any:
    """What the adapters of a layer's shared experts keep."""
    inner = inner_bytes * lora_rank * shared_adapters * mlp_adapters
    return own_input_bytes * shared_adapter_input_width + inner


@term("bytes per token", source=_TRACE)
def expert_mlp_bytes(moe_bytes: Any, shared_expert_bytes: Any, shared_adapter_bytes: Any, kbit_prepared: Any) -> Any:
    """Routed and shared experts of a layer, with their adapters."""
    return (1 + kbit_prepared) * (moe_bytes + shared_expert_bytes) + shared_adapter_bytes


@term("bytes per token", source=_TRACE, label="Bytes of the larger MLP")
def larger_mlp_bytes(dense_layer_count: Any, dense_mlp_bytes: Any, moe_layer_count: Any, expert_mlp_bytes: Any) -> Any:
    """MLP or experts of one layer: the larger of the two where a model has both."""
    return maximum(when(dense_layer_count > 0, dense_mlp_bytes, 0), when(moe_layer_count > 0, expert_mlp_bytes, 0))


@term("bytes per token", source=_TRACE)
def layer_bytes(trains_head: Any, common_layer_bytes: Any, larger_mlp_bytes: Any, larger_mask_bytes: Any) -> Any:
    """Everything one layer keeps for backward: of the larger kind where a model has two; nothing below a head alone."""
    return (1 - trains_head) * (common_layer_bytes + larger_mlp_bytes + larger_mask_bytes)


@term("bytes per token", source=_TRACE)
def unrotated_bytes(
    form_unrotated_query: Any,
    form_unrotated_kv: Any,
    form_unrotated_head: Any,
    query_width: Any,
    kv_width: Any,
    attention_heads: Any,
    kv_heads: Any,
) -> Any:
    """What a layer without rotary positions keeps less (Llama 4: those that attend to all)."""
    wide = form_unrotated_query * query_width + form_unrotated_kv * kv_width
    return wide + form_unrotated_head * (attention_heads + kv_heads)


@term("layers", label="Unreached full-attention layers by pattern")
def patterned_unreached_full_layers(unreached_layers: Any, full_offset: Any, full_period: Any) -> Any:
    """Layers that attend to all below the lowest adapter, where they follow a pattern."""
    return maximum(0, floor((unreached_layers - 1 - full_offset) / maximum(1, full_period)) + 1)


@term("layers", label="Reached full-attention layers")
def reached_full_layers(
    full_layer_count: Any,
    full_period: Any,
    patterned_unreached_full_layers: Any,
    unreached_layers: Any,
    layer_count: Any,
) -> Any:
    """Layers that attend to all and that the backward pass reaches; in proportion where they follow no pattern."""
    unreached = when(
        full_period > 0, patterned_unreached_full_layers, full_layer_count * unreached_layers / layer_count
    )
    return full_layer_count - unreached


@term("bytes per token", source=_TRACE)
def attention_changes(reached_full_layers: Any, unrotated_bytes: Any, masked_layers: Any, masked_bytes: Any) -> Any:
    """What attention keeps less in all layers without rotary positions, and more in all that are given a mask."""
    return reached_full_layers * unrotated_bytes + masked_layers * masked_bytes


@term("bytes per token", source=_TRACE)
def kept_per_token(
    reached_layers: Any,
    common_layer_bytes: Any,
    reached_dense_layers: Any,
    dense_mlp_bytes: Any,
    reached_moe_layers: Any,
    expert_mlp_bytes: Any,
    attention_changes: Any,
) -> Any:
    """What the reached layers keep without checkpointing, all kinds together."""
    mlps = reached_dense_layers * dense_mlp_bytes + reached_moe_layers * expert_mlp_bytes
    return reached_layers * common_layer_bytes + mlps + attention_changes


@term("bytes", source=_TRACE)
def layer_boundary(
    fp32_stream: Any,
    fp32_bytes: Any,
    bf16_bytes: Any,
    form_boundary_hidden: Any,
    tokens_per_micro_batch: Any,
    hidden_size: Any,
) -> Any:
    """What a checkpointed layer keeps: its input, in the precision of what runs between the layers."""
    width = when(fp32_stream > 0, fp32_bytes, bf16_bytes + form_boundary_hidden)
    return width * tokens_per_micro_batch * hidden_size


@term("bytes", source=_TRACE)
def first_boundary(
    trains_head: Any,
    kbit_prepared: Any,
    rest_prepared: Any,
    fp32_bytes: Any,
    bf16_bytes: Any,
    fp32_stream: Any,
    form_lowest_boundary_hidden: Any,
    tokens_per_micro_batch: Any,
    hidden_size: Any,
) -> Any:
    """What the first boundary, the embeddings' output, saves: it stays in 16 bit with norms alone in fp32."""
    prepared = (kbit_prepared - rest_prepared) * (fp32_bytes - bf16_bytes)
    less = when(fp32_stream > 0, prepared, 0 - form_lowest_boundary_hidden)
    return (1 - trains_head) * less * tokens_per_micro_batch * hidden_size


@term("bytes", source=_TRACE)
def layer_boundaries(reached_layers: Any, layer_count: Any, layer_boundary: Any, first_boundary: Any) -> Any:
    """What checkpointed layers keep: those below the lowest adapter hold their inputs too."""
    return when(reached_layers > 0, layer_count, 0) * layer_boundary - first_boundary


@term("bytes", source=_TRACE)
def saved_layers(
    checkpointing_on: Any,
    layer_boundaries: Any,
    checkpointed_masks: Any,
    tokens_per_micro_batch: Any,
    kept_per_token: Any,
) -> Any:
    """What the reached layers keep until their backward."""
    kept = tokens_per_micro_batch * kept_per_token
    return when(checkpointing_on > 0, layer_boundaries + checkpointed_masks, kept)

"""What the layers keep for backward when everything is trained: coefficients of full_forms.toml times widths."""

from typing import Any

from ...formula.declare import Constant, check, term
from ...formula.primitives import choose, maximum, when

_TRACE = "full_forms.toml: the allocation trace of the family's own layers, PyTorch 2.13, transformers 5.20"
_FUSED = "read from fused kernels and held against public runs of them"
fused_norm_saving = Constant(10, "bytes per value", "A layer's norms, less in fused kernels", _FUSED, "traced")
fused_final_saving = Constant(4, "bytes per value", "The final norm, less in fused kernels", _FUSED, "traced")


@term("count")
def layer_stream(half_weights: Any, fsdp_stage: Any, autocast_active: Any) -> Any:
    """What runs between the layers: 1 16 bit, 2 fp32 under autocast, 3 fp32. FSDP casts the weights it gathers."""
    fp32 = when(autocast_active > 0, 1, 2)
    return 1 + when(half_weights + fsdp_stage * autocast_active > 0, 0, fp32)


@term("row")
def form_row(full_forms: Any, layer_form: Any) -> Any:
    """Row of the model's layer form, computed in 16 bit."""
    return full_forms.row_of(layer_form)


@term("row")
def stream_row(layer_stream: Any, form_row: Any, full_forms: Any) -> Any:
    """Row of the model's layer form in the stream of the run."""
    return choose(layer_stream, form_row, full_forms.autocast_row[form_row], full_forms.fp32_row[form_row])


@term("bytes per token", source=_TRACE)
def stream_bytes(full_forms: Any, stream_row: Any, stack_fused_norms: Any, fused_norm_saving: Any,
                 hidden_size: Any) -> Any:  # fmt: skip
    """Norms and attention, hidden width: inputs, and what trained norms and matrices need besides."""
    wide = full_forms.layer_d[stream_row] - stack_fused_norms * fused_norm_saving
    return wide * hidden_size + full_forms.layer_one[stream_row]


@term("bytes per token", source=_TRACE)
def query_bytes(full_forms: Any, stream_row: Any, query_width: Any, attention_output_width: Any) -> Any:
    """Queries and the attention output."""
    return full_forms.layer_q[stream_row] * query_width + full_forms.layer_o[stream_row] * attention_output_width


@term("bytes per token", source=_TRACE, label="Query, key and value bytes")
def projection_bytes(query_bytes: Any, full_forms: Any, stream_row: Any, kv_width: Any) -> Any:
    """Queries, keys, values and the attention output."""
    return query_bytes + full_forms.layer_kv[stream_row] * kv_width


@term("bytes per token", source=_TRACE, label="Repeated key and value bytes")
def repeated_bytes(stack_repeats_kv: Any, repeated_query_bytes: Any, query_width: Any, kv_width: Any) -> Any:
    """Keys and values that the training stack itself repeats for the queries."""
    return stack_repeats_kv * repeated_query_bytes * (query_width - kv_width)


@term("bytes per token", source=_TRACE)
def position_bytes(full_forms: Any, stream_row: Any, attention_heads: Any, rope_dimension: Any) -> Any:
    """The part of keys that carries positions, in latent attention."""
    rope = full_forms.layer_rope[stream_row] + full_forms.layer_nh_rope[stream_row] * attention_heads
    return rope * rope_dimension


@term("bytes per token", source=_TRACE)
def latent_bytes(full_forms: Any, stream_row: Any, query_latent_width: Any, kv_latent_width: Any) -> Any:
    """Latents of queries, keys and values."""
    return full_forms.layer_ql[stream_row] * query_latent_width + full_forms.layer_kvl[stream_row] * kv_latent_width


@term("bytes per token", source=_TRACE)
def score_bytes(full_forms: Any, stream_row: Any, attention_heads: Any, tokens_per_row: Any) -> Any:
    """Scores that the layers store whatever the kernel: one per head and pair of tokens."""
    return full_forms.layer_nh_S[stream_row] * attention_heads * tokens_per_row


@term("bytes per token", source=_TRACE)
def head_bytes(full_forms: Any, stream_row: Any, attention_heads: Any, kv_heads: Any, score_bytes: Any) -> Any:
    """Numbers a head: logsumexp or scores, statistics of norms over heads."""
    heads = full_forms.layer_nh[stream_row] * attention_heads
    return heads + full_forms.layer_nkv[stream_row] * kv_heads + score_bytes


@term("bytes per token", source=_TRACE)
def attention_bytes(
    stream_bytes: Any,
    projection_bytes: Any,
    repeated_bytes: Any,
    latent_bytes: Any,
    position_bytes: Any,
    head_bytes: Any,
) -> Any:
    """Norms and attention of a layer."""
    return stream_bytes + projection_bytes + repeated_bytes + latent_bytes + position_bytes + head_bytes


@term("bytes per token", source=_TRACE, label="Bytes of a dense MLP")
def dense_mlp_bytes(full_forms: Any, stream_row: Any, hidden_size: Any, mlp_width: Any) -> Any:
    """A plain MLP."""
    return full_forms.mlp_d[stream_row] * hidden_size + full_forms.mlp_ff[stream_row] * mlp_width


@term("bytes per token", source=_TRACE)
def expert_bytes(full_forms: Any, stream_row: Any, expert_width: Any, hidden_size: Any) -> Any:
    """One expert that a token passes."""
    wide = full_forms.moe_k_e[stream_row] * expert_width + full_forms.moe_k_d[stream_row] * hidden_size
    return wide + full_forms.moe_k[stream_row]


@term("bytes per token", source=_TRACE)
def routed_bytes(experts_per_token: Any, expert_bytes: Any) -> Any:
    """The experts that a token passes."""
    return experts_per_token * expert_bytes


@term("bytes per token", source=_TRACE)
def idle_expert_bytes(full_forms: Any, stream_row: Any, expert_width: Any, hidden_size: Any) -> Any:
    """What is kept for one expert, whether or not a token passes it."""
    wide = full_forms.moe_E_e[stream_row] * expert_width + full_forms.moe_E_d[stream_row] * hidden_size
    return wide + full_forms.moe_E[stream_row]


@term("bytes per token", source=_TRACE)
def every_expert_bytes(expert_count: Any, idle_expert_bytes: Any) -> Any:
    """The same for all experts."""
    return expert_count * idle_expert_bytes


@term("bytes per token", source=_TRACE)
def shared_expert_bytes(full_forms: Any, stream_row: Any, hidden_size: Any, shared_expert_width: Any) -> Any:
    """Routing and shared experts of a layer."""
    shared = full_forms.moe_s[stream_row] * shared_expert_width + full_forms.moe_d[stream_row] * hidden_size
    return shared + full_forms.moe_one[stream_row]


@term("bytes per token", source=_TRACE)
def expert_mlp_bytes(routed_bytes: Any, every_expert_bytes: Any, shared_expert_bytes: Any) -> Any:
    """Routing, routed and shared experts of a layer."""
    return routed_bytes + every_expert_bytes + shared_expert_bytes


@term("bytes per token", source=_TRACE)
def layer_bytes(
    attention_bytes: Any, dense_layer_count: Any, dense_mlp_bytes: Any, moe_layer_count: Any, expert_mlp_bytes: Any
) -> Any:
    """Everything one layer keeps for backward: of the larger kind where a model has two."""
    dense = when(dense_layer_count > 0, dense_mlp_bytes, 0)
    return attention_bytes + maximum(dense, when(moe_layer_count > 0, expert_mlp_bytes, 0))


@term("bytes per token", source=_TRACE)
def kept_per_token(
    layer_count: Any, attention_bytes: Any, dense_layer_count: Any, dense_mlp_bytes: Any, moe_layer_count: Any,
    expert_mlp_bytes: Any,
) -> Any:  # fmt: skip
    """What all layers keep without checkpointing."""
    mlps = dense_layer_count * dense_mlp_bytes + moe_layer_count * expert_mlp_bytes
    return layer_count * attention_bytes + mlps


@term("bytes per value", source=_TRACE)
def stream_value_bytes(layer_stream: Any, bf16_bytes: Any, fp32_bytes: Any) -> Any:
    """Bytes of a value that runs between the layers."""
    return choose(layer_stream, bf16_bytes, fp32_bytes, fp32_bytes)


@term("bytes", source=_TRACE)
def layer_boundary(stream_value_bytes: Any, tokens_per_micro_batch: Any, hidden_size: Any) -> Any:
    """What a checkpointed layer keeps: its input."""
    return stream_value_bytes * tokens_per_micro_batch * hidden_size


@term("bytes", source=_TRACE)
def layer_boundaries(layer_count: Any, layer_stream: Any, layer_boundary: Any) -> Any:
    """What all checkpointed layers keep; in an fp32 stream the first one's input is counted with the embeddings."""
    return (layer_count - choose(layer_stream, 0, 1, 1)) * layer_boundary


@term("bytes", source=_TRACE)
def saved_layers(checkpointing_on: Any, layer_boundaries: Any, tokens_per_micro_batch: Any, kept_per_token: Any) -> Any:
    """What the layers keep until their backward."""
    return when(checkpointing_on > 0, layer_boundaries, tokens_per_micro_batch * kept_per_token)


@term("bytes per token", source=_TRACE)
def outer_bytes(
    full_forms: Any, stream_row: Any, stack_fused_norms: Any, fused_final_saving: Any, hidden_size: Any
) -> Any:
    """Outside the layers: the embeddings' output, the final norm, the input of the output head."""
    wide = full_forms.outer_d[stream_row] - stack_fused_norms * fused_final_saving
    return wide * hidden_size + full_forms.outer_one[stream_row]


@term("bytes", source=_TRACE)
def outer_memory(tokens_per_micro_batch: Any, outer_bytes: Any) -> Any:
    """The same for all tokens at work."""
    return tokens_per_micro_batch * outer_bytes


@term("switch")
def window_reached(tokens_per_row: Any, sliding_window: Any) -> Any:
    """1 when layers have a window and the longest row is as long."""
    return when((sliding_window > 0) & (tokens_per_row >= sliding_window), 1, 0)


@check(
    "sequence_length is {sequence_length}; from the {sliding_window}-token window of {base_model} on, attention other"
    " than FlashAttention 2 may keep masks, which are not counted",
    fault=False,
)
@term("switch")
def sequence_within_window(window_reached: Any, attention_kernels: Any, kernel_row: Any) -> Any:
    """0 when a window is shorter than the row and the kernel would be given masks."""
    return 1 - window_reached * attention_kernels.keeps_masks[kernel_row]

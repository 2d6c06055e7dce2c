"""LoRA, traced: what is kept once from forward to backward, and what the step before still holds."""

from typing import Any

from ...formula.declare import Choice, Input, term
from ...formula.primitives import minimum, when

_TRACE = "allocation trace: transformers 5.20, PEFT 0.21, PyTorch 2.13"
_FORMAT = "allocation trace of LLM.int8 modules: bitsandbytes 0.50"
keeps_model_output = Input(
    "text",
    Choice("switches"),
    "On",
    "Loop keeps the model output",
    "On when the last step's output is still referenced, as in a plain loop; trainers drop it whatever stands here.",
)


@term("bytes", source=_TRACE)
def adapter_casts(
    autocast_active: Any,
    fp32_adapters: Any,
    bf16_bytes: Any,
    adapter_parameters: Any,
    fsdp_gathers: Any,
    quantised_base: Any,
) -> Any:
    """Autocast's 16-bit copies of fp32 adapters; FSDP gathers those over a 16-bit base in 16 bit already."""
    copies = 1 - fsdp_gathers * (1 - quantised_base)
    return copies * autocast_active * fp32_adapters * bf16_bytes * adapter_parameters


@term("bytes", source=_TRACE)
def head_cast(fp32_head: Any, autocast_active: Any, bf16_bytes: Any, head_matrix_parameters: Any) -> Any:
    """Autocast's 16-bit copy of an output head that is kept in fp32."""
    return fp32_head * autocast_active * bf16_bytes * head_matrix_parameters


@term("bytes", source=_TRACE)
def layer_casts(
    fp32_base: Any, autocast_active: Any, bf16_bytes: Any, reached_layers: Any, layer_matrix_parameters: Any
) -> Any:
    """Autocast's 16-bit copies of the frozen matrices of an fp32 base, kept for backward by the reached layers."""
    return fp32_base * autocast_active * bf16_bytes * reached_layers * layer_matrix_parameters


@term("bytes", source=_TRACE)
def saved_casts(trains_head: Any, checkpointing_on: Any, head_cast: Any, adapter_casts: Any, layer_casts: Any) -> Any:
    """16-bit copies alive until backward: none below or of a trained head; checkpointed layers make theirs anew."""
    layers = when(checkpointing_on > 0, 0, adapter_casts + layer_casts)
    return (1 - trains_head) * (head_cast + layers)


@term("bytes", source=_TRACE, label="KV cache of one layer")
def layer_kv_cache(
    base_on_card: Any,
    stack_own_layers: Any,
    fp32_stream: Any,
    bf16_bytes: Any,
    tokens_per_micro_batch: Any,
    kv_values_per_token_per_layer: Any,
) -> Any:
    """Keys and values that a model with use_cache left on returns, in the precision of what runs between layers."""
    width = base_on_card * (1 - stack_own_layers) * (1 + fp32_stream) * bf16_bytes
    return width * tokens_per_micro_batch * kv_values_per_token_per_layer


@term("bytes", source=_TRACE, label="KV cache of unreached layers")
def unreached_kv_cache(checkpointing_on: Any, unreached_layers: Any, layer_kv_cache: Any) -> Any:
    """Cache of the frozen layers below the lowest adapter; checkpointing switches it off."""
    return when(checkpointing_on > 0, 0, unreached_layers * layer_kv_cache)


@term("bytes", source=_TRACE, label="KV cache of reached layers")
def cache_apart(
    checkpointing_on: Any,
    fp32_stream: Any,
    scores_stored: Any,
    form_stores_scores: Any,
    kv_latent_width: Any,
    reached_layers: Any,
    masked_layers: Any,
    masks_repeat: Any,
    layer_kv_cache: Any,
) -> Any:
    """Cache of the reached layers where it is not what they keep: in fp32, a latent, or repeated for the queries."""
    separate = fp32_stream + scores_stored + form_stores_scores + kv_latent_width
    apart = when(separate > 0, reached_layers, masked_layers * masks_repeat)
    return when(checkpointing_on > 0, 0, apart * layer_kv_cache)


@term("bytes per value", source=_TRACE, label="RoPE tables, head dimension")
def rope_bytes(form_rope: Any, form_layer_rope: Any, checkpointing_on: Any, reached_layers: Any) -> Any:
    """Bytes of the tables of positions for each value of a head: of all layers, and each layer's own copies."""
    return form_rope + (1 - checkpointing_on) * form_layer_rope * reached_layers


@term("bytes", source=_TRACE, label="RoPE table")
def rope_table(
    position_table_bytes: Any,
    tokens_per_row: Any,
    rope_bytes: Any,
    head_dimension: Any,
    form_latent_rope: Any,
    rope_dimension: Any,
) -> Any:
    """Sines and cosines of the step's positions, 16 bit each; none where the framework keeps those of all positions."""
    made = tokens_per_row * (rope_bytes * head_dimension + form_latent_rope * rope_dimension)
    return when(position_table_bytes > 0, 0, made)


@term("bytes per value", source=_TRACE)
def stream_norm_bytes(stack_fused_norms: Any, bf16_bytes: Any, form_final_norm_hidden: Any) -> Any:
    """Bytes of a value in the final norm's kept input: fp32, or 16 bit in fused kernels."""
    return when(stack_fused_norms > 0, bf16_bytes, form_final_norm_hidden)


@term("bytes per token", source=_TRACE)
def lowest_norm_bytes(checkpointing_on: Any, form_lowest_hidden: Any, form_lowest_token: Any, hidden_size: Any) -> Any:
    """What the lowest layer's first norm keeps less, for its input needs no gradient; checkpointed it keeps it."""
    kept = form_lowest_hidden * hidden_size + form_lowest_token
    return (1 - checkpointing_on) * kept


@term("bytes per token", source=_TRACE, label="Lowest MLP bytes")
def lowest_mlp_bytes(checkpointing_on: Any, form_parallel: Any, mlp_adapters: Any, mlp_bytes: Any) -> Any:
    """What the lowest layer's MLP keeps less: all, where it stands beside attention and needs no gradient itself."""
    return (1 - checkpointing_on) * form_parallel * when(mlp_adapters > 0, 0, mlp_bytes)


@term("count")
def lowest_input_width(
    query_latent_width: Any,
    latent_adapter: Any,
    query_adapter: Any,
    key_adapter: Any,
    kv_latent_width: Any,
    value_adapter: Any,
    form_parallel: Any,
    gate_adapter: Any,
    up_adapter: Any,
    hidden_size: Any,
) -> Any:
    """Input widths of the adapters that read the lowest layer's first norm, whose output needs no gradient."""
    queries = when(query_latent_width > 0, latent_adapter, query_adapter)
    values = when(kv_latent_width > 0, 0, value_adapter)
    return (queries + key_adapter + values + form_parallel * (gate_adapter + up_adapter)) * hidden_size


@term("bytes per token", source=_TRACE)
def lowest_mask_bytes(
    checkpointing_on: Any,
    stack_fused_adapters: Any,
    dropout_on: Any,
    mask_bytes: Any,
    stack_packs_qkv: Any,
    hidden_size: Any,
    lowest_input_width: Any,
) -> Any:
    """Masks that these adapters do not keep: what is dropped of an input without gradient leaves nothing to undo."""
    masks = when(stack_packs_qkv > 0, minimum(hidden_size, lowest_input_width), lowest_input_width)
    return (1 - checkpointing_on) * (1 - stack_fused_adapters) * dropout_on * mask_bytes * masks


@term("bytes", source=_TRACE)
def final_norm_input(
    tokens_per_micro_batch: Any,
    stream_norm_bytes: Any,
    hidden_size: Any,
    form_final_norm_token: Any,
    lowest_norm_bytes: Any,
    lowest_mlp_bytes: Any,
    lowest_mask_bytes: Any,
) -> Any:
    """Input of the final norm, less what the lowest layer does not keep."""
    final = stream_norm_bytes * hidden_size + form_final_norm_token
    return tokens_per_micro_batch * (final + lowest_norm_bytes - lowest_mlp_bytes - lowest_mask_bytes)


@term("switch")
def output_kept(stack_keeps_output: Any, switches: Any, keeps_model_output: Any) -> Any:
    """1 when the loop still holds the model's output of the step before."""
    return stack_keeps_output * switches.value[switches.row_of(keeps_model_output)]


@term("bytes", source=_TRACE)
def saved_once(trains_head: Any, kept_features: Any, saved_casts: Any, rope_table: Any, final_norm_input: Any) -> Any:
    """What is kept once, not per layer; a head alone keeps its input and nothing else."""
    return saved_casts + when(trains_head > 0, kept_features, rope_table + final_norm_input)


@term("bytes", source=_TRACE, label="KV cache that only the output holds")
def held_kv_cache(unreached_kv_cache: Any, cache_apart: Any) -> Any:
    """Cache that backward does not need: it goes when the loop drops the model's output."""
    return unreached_kv_cache + cache_apart


@term("bytes", source=_FORMAT)
def module_inputs(
    storage_formats: Any,
    storage_row: Any,
    tokens_per_micro_batch: Any,
    reached_layers: Any,
    module_input_width: Any,
    hidden_size: Any,
) -> Any:
    """Inputs that LLM.int8 modules hold on to as long as the step's graph is there, whatever is checkpointed."""
    kept = storage_formats.kept_input_bytes[storage_row] * tokens_per_micro_batch
    return kept * when(reached_layers > 0, reached_layers * module_input_width - hidden_size, 0)


@term("count")
def module_input_width(hidden_size: Any, attention_output_width: Any, mlp_width: Any) -> Any:
    """Sum of the widths of a layer's different module inputs: both norms' outputs, attention's, the MLP's inside."""
    return 2 * hidden_size + attention_output_width + mlp_width


@term("bytes", source=_FORMAT)
def shared_inputs(
    checkpointing_on: Any,
    storage_formats: Any,
    storage_row: Any,
    tokens_per_micro_batch: Any,
    reached_layers: Any,
    query_width: Any,
) -> Any:
    """Of these, the attention outputs, which the layers keep anyway unless they are checkpointed."""
    kept = storage_formats.kept_input_bytes[storage_row] * tokens_per_micro_batch
    return (1 - checkpointing_on) * kept * reached_layers * query_width


@term("bytes", source=_TRACE)
def saved_inputs(module_inputs: Any, shared_inputs: Any) -> Any:
    """What quantised modules keep of their inputs beyond what the layers keep."""
    return module_inputs - shared_inputs


@term("bytes", source=_TRACE)
def saved_activations(
    saved_layers: Any, saved_once: Any, saved_inputs: Any, output_kept: Any, held_kv_cache: Any
) -> Any:
    """Everything kept from forward to backward, without the output scores."""
    return saved_layers + saved_once + saved_inputs + output_kept * held_kv_cache


@term("bytes per value", source=_TRACE)
def logit_bytes(fp32_head: Any, autocast_active: Any, fp32_bytes: Any, bf16_bytes: Any) -> Any:
    """Bytes of an output score as the head gives it: fp32 when the head computes in fp32."""
    return when((fp32_head > 0) & (autocast_active <= 0), fp32_bytes, bf16_bytes)


@term("bytes", source=_TRACE)
def kept_logits(output_kept: Any, logit_bytes: Any, held_score_bytes: Any, logit_values: Any) -> Any:
    """Output scores of the step before, when the loop keeps them, or always holds them."""
    return (output_kept * logit_bytes + held_score_bytes) * logit_values


@term("bytes", source=_TRACE)
def previous_output(
    kept_logits: Any,
    output_kept: Any,
    checkpointing_on: Any,
    hidden_tensor: Any,
    layer_count: Any,
    layer_kv_cache: Any,
    trains_head: Any,
) -> Any:
    """What the step before still holds when the loop keeps its output: scores, and the KV cache or its stand-in."""
    cache = when(checkpointing_on > 0, (1 - trains_head) * hidden_tensor, layer_count * layer_kv_cache)
    return kept_logits + output_kept * cache


@term("bytes", source=_TRACE)
def held_output(previous_output: Any, output_kept: Any, module_inputs: Any) -> Any:
    """All that hangs on an output the loop keeps: the output, and inputs that quantised modules hold in its graph."""
    return previous_output + output_kept * module_inputs

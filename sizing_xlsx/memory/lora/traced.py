"""LoRA, traced: what PyTorch was seen to keep during a real step, and the four moments that can set the peak.

Read from the allocation trace of a training step (transformers 5.24, PEFT 0.21, PyTorch 2.13); no figure is
fitted. Whole numbers of bytes per value come from that trace.
"""

from typing import Any

from ...formula.declare import Choice, Constant, Input, check, term
from ...formula.primitives import equal, maximum, opposite, when
from ..shared.run import small_tensor

_TRACE = "allocation trace: transformers 5.24, PEFT 0.21, PyTorch 2.13"
_FORMAT = "bytes of the format, measured on CPU tensors; no quantised step was traced"
keeps_model_output = Input(
    "text",
    Choice("switches"),
    "On",
    "Loop keeps the model output",
    "On when the last step's output is still referenced, as in a plain loop; trainers drop it.",
)
backward_bytes_kept = Constant(14, "bytes per value", "Output scores in loss backward, output kept", _TRACE, "traced")
backward_bytes_dropped = Constant(
    12, "bytes per value", "Output scores in loss backward, output dropped", _TRACE, "traced"
)
forward_bytes = Constant(10, "bytes per value", "Output scores in loss forward", _TRACE, "traced")
layer_hidden_bytes = Constant(10, "bytes per value", "Working tensors of a layer, hidden width", _TRACE, "traced")
layer_mlp_bytes = Constant(6, "bytes per value", "Working tensors of a layer, MLP width", _TRACE, "traced")


# ---------------------------------------------------------------------- resident
@term("row")
def storage_row(storage_formats: Any, base_storage_format: Any) -> Any:
    """Row of the base storage format in its table."""
    return storage_formats.row_of(base_storage_format)


@term("switch")
def fp32_base(storage_formats: Any, storage_row: Any) -> Any:
    """1 when the frozen base is kept in fp32."""
    return storage_formats.fp32[storage_row]


@term("parameters")
def quantised_parameters(
    storage_formats: Any,
    storage_row: Any,
    layer_count: Any,
    layer_matrix_parameters: Any,
    base_parameter_count: Any,
    preset_base_parameter_count: Any,
) -> Any:
    """Parameters that a quantised format converts: the linear modules of the layers, not embeddings, head, norms.

    An entered parameter count scales them with all else.
    """
    entered = base_parameter_count / preset_base_parameter_count
    return storage_formats.quantised[storage_row] * layer_count * layer_matrix_parameters * entered


@check(
    "base_storage_format is {base_storage_format}; a script that prepares the model for k-bit training turns what is"
    " not quantised into fp32, which needs more than is counted here",
    fault=False,
)
@term("switch")
def base_not_quantised(storage_formats: Any, storage_row: Any) -> Any:
    """1 when the base is not quantised: nothing is prepared for k-bit training."""
    return 1 - storage_formats.quantised[storage_row]


@term("bytes", source=_FORMAT)
def row_scales(storage_formats: Any, storage_row: Any, layer_count: Any, layer_output_rows: Any) -> Any:
    """Scales that a format keeps per output row of each converted matrix (LLM.int8)."""
    return storage_formats.bytes_per_output_row[storage_row] * layer_count * layer_output_rows


@term("bytes", source=_FORMAT)
def matrix_offsets(storage_formats: Any, storage_row: Any, layer_count: Any, layer_forms: Any, form_row: Any) -> Any:
    """One offset for each converted matrix (nested 4-bit)."""
    return storage_formats.bytes_per_matrix[storage_row] * layer_count * layer_forms.matrices[form_row]


@term("bytes", source=_FORMAT)
def quantised_weights(
    quantised_parameters: Any, storage_formats: Any, storage_row: Any, row_scales: Any, matrix_offsets: Any
) -> Any:
    """The converted parameters with their scales."""
    return quantised_parameters * storage_formats.bytes_per_parameter[storage_row] + row_scales + matrix_offsets


@term("bytes", source=_TRACE)
def frozen_base_weights(
    base_parameter_count: Any,
    quantised_parameters: Any,
    storage_formats: Any,
    storage_row: Any,
    quantised_weights: Any,
) -> Any:
    """The frozen base in its storage format; it gets no gradient and no optimizer state."""
    unquantised = base_parameter_count - quantised_parameters
    return unquantised * storage_formats.unquantised_bytes[storage_row] + quantised_weights


@term("bytes")
def adapter_weights(adapter_parameters: Any, fp32_bytes: Any) -> Any:
    """Adapters are kept in fp32, whatever the base is."""
    return adapter_parameters * fp32_bytes


@term("bytes")
def adapter_gradients(adapter_parameters: Any, fp32_bytes: Any) -> Any:
    """One fp32 gradient per trained parameter, while gradients exist."""
    return adapter_parameters * fp32_bytes


@term("parameters", source=_FORMAT)
def small_hidden_matrix(lora_rank: Any, hidden_size: Any, smallest_tensor: Any) -> Any:
    """Parameters of an adapter matrix as wide as the residual stream, where it is too small for 8-bit moments."""
    return small_tensor(lora_rank * hidden_size, smallest_tensor)


@term("parameters", source=_FORMAT)
def small_query_matrix(lora_rank: Any, query_width: Any, smallest_tensor: Any) -> Any:
    """The same of one as wide as the queries."""
    return small_tensor(lora_rank * query_width, smallest_tensor)


@term("parameters", source=_FORMAT)
def small_kv_matrix(lora_rank: Any, kv_width: Any, smallest_tensor: Any) -> Any:
    """The same of one as wide as the keys, or the values."""
    return small_tensor(lora_rank * kv_width, smallest_tensor)


@term("parameters", source=_FORMAT)
def small_mlp_matrix(lora_rank: Any, mlp_width: Any, smallest_tensor: Any) -> Any:
    """The same of one as wide as the MLP."""
    return small_tensor(lora_rank * mlp_width, smallest_tensor)


@term("parameters", source=_FORMAT)
def small_attention_parameters(
    query_adapter: Any,
    output_adapter: Any,
    small_query_matrix: Any,
    key_adapter: Any,
    value_adapter: Any,
    small_kv_matrix: Any,
) -> Any:
    """Parameters of a layer's small adapter matrices as wide as queries, keys and values."""
    return (query_adapter + output_adapter) * small_query_matrix + (key_adapter + value_adapter) * small_kv_matrix


@term("parameters", source=_FORMAT)
def small_layer_parameters(
    adapters_per_layer: Any,
    small_hidden_matrix: Any,
    gate_adapter: Any,
    up_adapter: Any,
    down_adapter: Any,
    small_mlp_matrix: Any,
) -> Any:
    """Parameters of a layer's other small adapter matrices: each adapter has one as wide as the residual stream."""
    return adapters_per_layer * small_hidden_matrix + (gate_adapter + up_adapter + down_adapter) * small_mlp_matrix


@term("parameters", source=_FORMAT)
def small_adapter_parameters(reached_layers: Any, small_attention_parameters: Any, small_layer_parameters: Any) -> Any:
    """Adapter parameters in tensors that are too small for 8-bit moments."""
    return reached_layers * (small_attention_parameters + small_layer_parameters)


@term("bytes", source=_FORMAT)
def small_tensor_state(optimizers: Any, optimizer_row: Any, small_adapter_parameters: Any) -> Any:
    """What an 8-bit optimizer keeps more for tensors whose moments stay in fp32."""
    return optimizers.small_tensor_bytes[optimizer_row] * small_adapter_parameters


@term("bytes", source=_TRACE)
def optimizer_state(adapter_parameters: Any, optimizers: Any, optimizer_row: Any, small_tensor_state: Any) -> Any:
    """What the optimizer keeps per trained parameter between steps."""
    return adapter_parameters * optimizers.state_bytes[optimizer_row] + small_tensor_state


@term("bytes", source=_TRACE)
def token_buffers(tokens_per_micro_batch: Any, token_id_bytes: Any) -> Any:
    """Token ids and labels as 64-bit integers."""
    return tokens_per_micro_batch * token_id_bytes


@term("bytes", source=_TRACE)
def resident_memory(
    frozen_base_weights: Any,
    adapter_weights: Any,
    optimizer_state: Any,
    matrix_workspaces: Any,
    token_buffers: Any,
) -> Any:
    """What is on the card at every moment of a step."""
    return frozen_base_weights + adapter_weights + optimizer_state + matrix_workspaces + token_buffers


@term("bytes", source=_TRACE)
def accumulated_gradients(gradients_accumulate: Any, adapter_gradients: Any) -> Any:
    """Gradients of earlier micro-batches, alive during forward and backward from the second one on."""
    return gradients_accumulate * adapter_gradients


# ---------------------------------------------------------------------- one layer
@term("bytes per token", source=_TRACE)
def norm_bytes(layer_forms: Any, form_row: Any, hidden_size: Any) -> Any:
    """Inputs of the layer's norms in fp32, with their statistics."""
    return layer_forms.norm_bytes[form_row] * hidden_size + layer_forms.norm_statistics_bytes[form_row]


@term("row")
def form_row(layer_forms: Any, layer_form: Any) -> Any:
    """Row of the layer form in its table."""
    return layer_forms.row_of(layer_form)


@term("bytes per token", source=_TRACE)
def adapter_input_bytes(bf16_bytes: Any, adapter_input_width: Any, dropout_on: Any, mask_bytes: Any) -> Any:
    """One 16-bit copy of the input per adapter, and its mask when adapters drop inputs."""
    return (bf16_bytes + dropout_on * mask_bytes) * adapter_input_width


@term("bytes per token", source=_TRACE)
def adapter_inner_bytes(bf16_bytes: Any, lora_rank: Any, adapters_per_layer: Any) -> Any:
    """The inner, rank-wide output of each adapter."""
    return bf16_bytes * lora_rank * adapters_per_layer


@term("bytes per token", source=_TRACE)
def query_bytes(layer_forms: Any, form_row: Any, query_width: Any, attention_heads: Any) -> Any:
    """Queries and attention output, and the logsumexp of each head."""
    heads = layer_forms.head_bytes[form_row] * attention_heads
    return layer_forms.query_bytes[form_row] * query_width + heads


@term("bytes per token", source=_TRACE)
def attention_bytes(query_bytes: Any, layer_forms: Any, form_row: Any, kv_width: Any) -> Any:
    """Queries, attention output and logsumexp; keys and values."""
    return query_bytes + layer_forms.kv_bytes[form_row] * kv_width


@term("bytes per token", source=_TRACE, label="MLP bytes")
def mlp_bytes(layer_forms: Any, form_row: Any, mlp_width: Any) -> Any:
    """Gate, its activation and up."""
    return layer_forms.mlp_bytes[form_row] * mlp_width


@term("bytes per token", source=_TRACE)
def layer_bytes(
    norm_bytes: Any, adapter_input_bytes: Any, adapter_inner_bytes: Any, attention_bytes: Any, mlp_bytes: Any
) -> Any:
    """Everything one layer keeps for backward, per token."""
    return norm_bytes + adapter_input_bytes + adapter_inner_bytes + attention_bytes + mlp_bytes


@term("bytes", source=_TRACE)
def layer_boundary(
    fp32_base: Any, fp32_bytes: Any, bf16_bytes: Any, tokens_per_micro_batch: Any, hidden_size: Any
) -> Any:
    """What a checkpointed layer keeps: its input, in the base's own precision (16 bit unless the base is fp32)."""
    return when(fp32_base > 0, fp32_bytes, bf16_bytes) * tokens_per_micro_batch * hidden_size


@term("bytes", source=_TRACE)
def saved_layers(checkpointing_on: Any, reached_layers: Any, layer_boundary: Any, layer_activations: Any) -> Any:
    """What the reached layers keep until their backward."""
    return reached_layers * when(checkpointing_on > 0, layer_boundary, layer_activations)


# ---------------------------------------------------------------------- kept once
@term("bytes", source=_TRACE)
def adapter_casts(bf16_bytes: Any, adapter_parameters: Any) -> Any:
    """Autocast's 16-bit copies of the adapters."""
    return bf16_bytes * adapter_parameters


@term("bytes", source=_TRACE)
def head_cast(fp32_base: Any, bf16_bytes: Any, vocabulary_size: Any, hidden_size: Any) -> Any:
    """Autocast's 16-bit copy of the output head of an fp32 base."""
    return fp32_base * bf16_bytes * vocabulary_size * hidden_size


@term("bytes", source=_TRACE)
def layer_casts(fp32_base: Any, bf16_bytes: Any, reached_layers: Any, layer_matrix_parameters: Any) -> Any:
    """Autocast's 16-bit copies of the frozen matrices of an fp32 base, kept for backward by the reached layers."""
    return fp32_base * bf16_bytes * reached_layers * layer_matrix_parameters


@term("bytes", source=_TRACE)
def saved_casts(checkpointing_on: Any, head_cast: Any, adapter_casts: Any, layer_casts: Any) -> Any:
    """16-bit copies alive until backward; checkpointed layers make theirs anew."""
    return head_cast + when(checkpointing_on > 0, 0, adapter_casts + layer_casts)


@term("bytes", source=_TRACE, label="KV cache of one layer")
def layer_kv_cache(fp32_base: Any, fp32_bytes: Any, tokens_per_micro_batch: Any, kv_width: Any) -> Any:
    """Keys and values that a model with use_cache left on returns; in fp32 when the base is."""
    return (1 + fp32_base) * fp32_bytes * tokens_per_micro_batch * kv_width


@term("bytes", source=_TRACE, label="KV cache of unreached layers")
def unreached_kv_cache(checkpointing_on: Any, unreached_layers: Any, layer_kv_cache: Any) -> Any:
    """Cache of the frozen layers below the lowest adapter; checkpointing switches it off."""
    return when(checkpointing_on > 0, 0, unreached_layers * layer_kv_cache)


@term("bytes", source=_TRACE, label="fp32 KV cache")
def fp32_kv_cache(checkpointing_on: Any, fp32_base: Any, reached_layers: Any, layer_kv_cache: Any) -> Any:
    """With an fp32 base the cache of the reached layers stands beside the 16-bit keys and values they keep."""
    return when(checkpointing_on > 0, 0, fp32_base * reached_layers * layer_kv_cache)


@term("bytes", source=_TRACE, label="RoPE table")
def rope_table(fp32_bytes: Any, sequence_length: Any, head_dimension: Any) -> Any:
    """Sines and cosines of the positions, 16 bit each."""
    return fp32_bytes * sequence_length * head_dimension


@term("bytes", source=_TRACE)
def final_norm_input(checkpointing_on: Any, hidden_tensor: Any, fp32_bytes: Any, tokens_per_micro_batch: Any) -> Any:
    """Input of the final norm; without checkpointing the lowest layer's first norm, which keeps none, offsets it."""
    return checkpointing_on * (hidden_tensor + fp32_bytes * tokens_per_micro_batch)


@term("switch")
def output_kept(switches: Any, keeps_model_output: Any) -> Any:
    """1 when the loop still holds the model's output of the step before."""
    return switches.value[switches.row_of(keeps_model_output)]


@term("bytes", source=_TRACE)
def saved_once(saved_casts: Any, rope_table: Any, final_norm_input: Any) -> Any:
    """What is kept once, not per layer."""
    return saved_casts + rope_table + final_norm_input


@term("bytes", source=_TRACE, label="KV cache that only the output holds")
def held_kv_cache(unreached_kv_cache: Any, fp32_kv_cache: Any) -> Any:
    """Cache that backward does not need: it goes when the loop drops the model's output."""
    return unreached_kv_cache + fp32_kv_cache


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
    return kept * (reached_layers * module_input_width - hidden_size)


@term("count")
def module_input_width(hidden_size: Any, query_width: Any, mlp_width: Any) -> Any:
    """Sum of the widths of a layer's different module inputs: both norms' outputs, attention's, the MLP's inside."""
    return 2 * hidden_size + query_width + mlp_width


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


@term("bytes", source=_TRACE)
def kept_logits(output_kept: Any, bf16_bytes: Any, logit_values: Any) -> Any:
    """Output scores of the step before, when the loop keeps them."""
    return output_kept * bf16_bytes * logit_values


@term("bytes", source=_TRACE)
def previous_output(
    kept_logits: Any,
    output_kept: Any,
    checkpointing_on: Any,
    hidden_tensor: Any,
    layer_count: Any,
    layer_kv_cache: Any,
) -> Any:
    """What the step before still holds when the loop keeps its output: scores, and the KV cache or its stand-in."""
    return kept_logits + output_kept * when(checkpointing_on > 0, hidden_tensor, layer_count * layer_kv_cache)


@term("bytes", source=_TRACE)
def held_output(previous_output: Any, output_kept: Any, module_inputs: Any) -> Any:
    """All that hangs on an output the loop keeps: the output, and inputs that quantised modules hold in its graph."""
    return previous_output + output_kept * module_inputs


# ---------------------------------------------------------------------- the four moments
@term("bytes", source=_TRACE)
def loss_backward_logits(
    output_kept: Any, backward_bytes_kept: Any, backward_bytes_dropped: Any, logit_values: Any
) -> Any:
    """Copies of the output scores alive in the loss's backward."""
    return when(output_kept > 0, backward_bytes_kept, backward_bytes_dropped) * logit_values


@term("bytes", source=_TRACE)
def loss_backward_moment(
    resident_memory: Any, accumulated_gradients: Any, saved_activations: Any, loss_backward_logits: Any
) -> Any:
    """Loss, backward: all that forward kept, and the scores with their gradient."""
    return resident_memory + accumulated_gradients + saved_activations + loss_backward_logits


@term("bytes", source=_TRACE)
def loss_forward_extra(
    forward_bytes: Any,
    logit_values: Any,
    bf16_bytes: Any,
    tokens_per_micro_batch: Any,
    hidden_size: Any,
    output_kept: Any,
    held_kv_cache: Any,
) -> Any:
    """Scores in the loss's forward, the head's input, and the cache that a dropped output holds until then."""
    head_input = bf16_bytes * tokens_per_micro_batch * hidden_size
    return forward_bytes * logit_values + head_input + (1 - output_kept) * held_kv_cache


@term("bytes", source=_TRACE)
def loss_forward_casts(checkpointing_on: Any, adapter_casts: Any) -> Any:
    """Checkpointed: the adapters' 16-bit copies live to the end of forward."""
    return checkpointing_on * adapter_casts


@term("bytes", source=_TRACE)
def loss_forward_moment(
    resident_memory: Any,
    accumulated_gradients: Any,
    saved_activations: Any,
    loss_forward_extra: Any,
    loss_forward_casts: Any,
    held_output: Any,
) -> Any:
    """Loss, forward: all that forward kept, the scores, and the output of the step before."""
    base = resident_memory + accumulated_gradients + saved_activations
    return base + loss_forward_extra + loss_forward_casts + held_output


@term("bytes", source=_FORMAT)
def dequantised_matrix(storage_formats: Any, storage_row: Any, bf16_bytes: Any, largest_matrix_parameters: Any) -> Any:
    """A quantised base is multiplied one matrix at a time, each turned into 16 bit for the while."""
    return storage_formats.quantised[storage_row] * bf16_bytes * largest_matrix_parameters


@term("bytes", source=_TRACE)
def layer_working_tensors(
    tokens_per_micro_batch: Any,
    layer_hidden_bytes: Any,
    hidden_size: Any,
    layer_mlp_bytes: Any,
    mlp_width: Any,
) -> Any:
    """What the last layer's MLP works on in backward."""
    return tokens_per_micro_batch * (layer_hidden_bytes * hidden_size + layer_mlp_bytes * mlp_width)


@term("bytes", source=_TRACE)
def recomputed_segment(layer_activations: Any, layer_working_tensors: Any) -> Any:
    """One layer as a whole: what it keeps and what it works on."""
    return layer_activations + layer_working_tensors


@term("bytes", source=_TRACE)
def recomputed_layer(
    layer_activations: Any,
    hidden_tensor: Any,
    kept_logits: Any,
    adapter_casts: Any,
    layer_casts: Any,
    reached_layers: Any,
) -> Any:
    """Checkpointed: the last layer made anew, the 16-bit copies it makes, and the kept scores."""
    return layer_activations - hidden_tensor + kept_logits + (adapter_casts + layer_casts) / reached_layers


@term("bytes", source=_TRACE)
def last_layer_extra(
    layer_working_tensors: Any,
    dequantised_matrix: Any,
    checkpointing_on: Any,
    recomputed_layer: Any,
    previous_output: Any,
) -> Any:
    """What the last layer adds to what is saved."""
    extra = when(checkpointing_on > 0, recomputed_layer, previous_output)
    return layer_working_tensors + dequantised_matrix + extra


@term("bytes", source=_TRACE)
def last_layer_moment(
    resident_memory: Any, accumulated_gradients: Any, saved_activations: Any, last_layer_extra: Any
) -> Any:
    """Last layer's MLP: matters with a small vocabulary."""
    return resident_memory + accumulated_gradients + saved_activations + last_layer_extra


@term("bytes", source=_TRACE)
def optimizer_temporaries(adapter_gradients: Any, optimizers: Any, optimizer_row: Any) -> Any:
    """Adam over all tensors at once makes one set of temporaries as large as the gradients; 8-bit makes none."""
    return adapter_gradients * optimizers.temporary_copies[optimizer_row]


@term("bytes", source=_TRACE)
def optimizer_moment(resident_memory: Any, adapter_gradients: Any, optimizer_temporaries: Any, held_output: Any) -> Any:
    """Optimizer step: gradients, the update's temporaries, and the output the loop still holds."""
    return resident_memory + adapter_gradients + optimizer_temporaries + held_output


@term("bytes", source=_TRACE)
def traced_allocated(
    loss_backward_moment: Any, loss_forward_moment: Any, last_layer_moment: Any, optimizer_moment: Any
) -> Any:
    """Allocated peak: the largest of the four moments, never their sum."""
    return maximum(loss_backward_moment, loss_forward_moment, last_layer_moment, optimizer_moment)


@term("bytes")
def reserve_for_gradients(
    adapter_parameters: Any, optimizers: Any, optimizer_row: Any, saved_inputs: Any, reserve_activation_divisor: Any
) -> Any:
    """Checkpointed: blocks that gradients and their update leave behind, and a share of what modules hold on to."""
    return adapter_parameters * optimizers.reserve_bytes[optimizer_row] + saved_inputs / reserve_activation_divisor


@term("count")
def stored_half_type(storage_formats: Any, storage_row: Any) -> Any:
    """Which 16-bit type the base is kept in: 0 none, 1 bf16, 2 fp16."""
    return storage_formats.half_type[storage_row]


@term("count")
def computed_half_type(compute_precisions: Any, precision_row: Any) -> Any:
    """Which 16-bit type is computed in: 0 none, 1 bf16, 2 fp16."""
    return compute_precisions.half_type[precision_row]


@term("switch")
def same_half_type(stored_half_type: Any, computed_half_type: Any) -> Any:
    """0 when a 16-bit base is computed in the other 16-bit type: every weight is then cast, which was not traced."""
    return when((stored_half_type > 0) & opposite(equal(stored_half_type, computed_half_type)), 0, 1)


@term("switch")
def traced_available(autocast_on: Any, same_half_type: Any, scores_stored: Any, optimizer_traced: Any) -> Any:
    """1 when a traced formula exists: 16-bit compute in the base's type, no stored scores, Adam or 8-bit Adam."""
    return autocast_on * same_half_type * (1 - scores_stored) * optimizer_traced

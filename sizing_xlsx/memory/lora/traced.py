"""LoRA, traced: the four moments of a step that can set the peak, and for which jobs the list was traced.

Read from the allocation trace of a training step; no figure is fitted. Whole numbers of bytes per value come from
that trace.
"""

from typing import Any

from ...formula.declare import Constant, term
from ...formula.primitives import equal, maximum, opposite, when

_TRACE = "allocation trace: transformers 5.20, PEFT 0.21, PyTorch 2.13"
_FORMAT = "bytes of the format, measured on CPU tensors"
adapted_hidden_bytes = Constant(8, "bytes per value", "Of these, with an adapter on up or down", _TRACE, "traced")
routing_hidden_bytes = Constant(6, "bytes per value", "Working tensors of experts, hidden width", _TRACE, "traced")
scattered_hidden_bytes = Constant(10, "bytes per value", "The same, for each expert of a token", _TRACE, "traced")
matrix_hidden_bytes = Constant(4, "bytes per value", "Beside a dequantised matrix, hidden width", _TRACE, "traced")
matrix_mlp_bytes = Constant(2, "bytes per value", "Beside a dequantised matrix, MLP width", _TRACE, "traced")


@term("bytes", source=_TRACE)
def loss_backward_logits(
    loss_backward_bytes: Any, form_extra_scores: Any, logit_values: Any, kept_logits: Any, loss_rows: Any
) -> Any:
    """Copies of the output scores alive in the loss's backward, and those that the loop keeps."""
    return (loss_backward_bytes + form_extra_scores) * logit_values + kept_logits + loss_rows


@term("bytes", source=_TRACE)
def loss_backward_moment(
    resident_memory: Any,
    gathered_always: Any,
    accumulated_gradients: Any,
    saved_activations: Any,
    loss_backward_logits: Any,
) -> Any:
    """Loss, backward: all that forward kept, and the scores with their gradient."""
    base = resident_memory + gathered_always + accumulated_gradients
    return base + saved_activations + loss_backward_logits


@term("bytes", source=_TRACE)
def loss_forward_logits(
    loss_forward_bytes: Any,
    form_extra_scores: Any,
    logit_bytes: Any,
    bf16_bytes: Any,
    logit_values: Any,
    shifted_logits: Any,
) -> Any:
    """Copies of the output scores alive in the loss's forward; fp32 scores need no fp32 copy."""
    all_rows = (loss_forward_bytes + form_extra_scores + bf16_bytes - logit_bytes) * logit_values
    return all_rows + shifted_logits


@term("bytes", source=_TRACE)
def head_input(
    trains_head: Any,
    stack_frees_head_input: Any,
    fp32_stream: Any,
    fp32_bytes: Any,
    form_head_input: Any,
    tokens_per_micro_batch: Any,
    hidden_size: Any,
) -> Any:
    """Input of a frozen output head, in the precision of what runs between the layers; a trained one keeps it."""
    held = (1 - trains_head) * (1 - stack_frees_head_input)
    width = held * when(fp32_stream > 0, fp32_bytes, form_head_input)
    return width * tokens_per_micro_batch * hidden_size


@term("bytes", source=_TRACE)
def loss_forward_scores(stack_fused_loss: Any, fused_loss_piece: Any, loss_forward_logits: Any) -> Any:
    """Output scores in the loss's forward: all of them, or a piece at a time."""
    return when(stack_fused_loss > 0, fused_loss_piece, loss_forward_logits)


@term("bytes", source=_TRACE)
def fused_loss_gradient(stack_fused_loss: Any, bf16_bytes: Any, tokens_per_micro_batch: Any, hidden_size: Any) -> Any:
    """A fused head and loss make the gradient of the head's input in forward."""
    return stack_fused_loss * bf16_bytes * tokens_per_micro_batch * hidden_size


@term("bytes", source=_TRACE)
def loss_forward_extra(
    loss_forward_scores: Any, fused_loss_gradient: Any, head_input: Any, output_kept: Any, held_kv_cache: Any
) -> Any:
    """Scores in the loss's forward, the head's input, and the cache that a dropped output holds until then."""
    return loss_forward_scores + fused_loss_gradient + head_input + (1 - output_kept) * held_kv_cache


@term("bytes", source=_TRACE)
def loss_forward_casts(checkpointing_on: Any, trains_head: Any, adapter_casts: Any) -> Any:
    """The 16-bit copies that live to the end of forward only: a trained head's, and checkpointed the adapters'."""
    return when(checkpointing_on + trains_head > 0, adapter_casts, 0)


@term("bytes", source=_TRACE)
def loss_forward_moment(
    resident_memory: Any,
    gathered_always: Any,
    accumulated_gradients: Any,
    saved_activations: Any,
    loss_forward_extra: Any,
    loss_forward_casts: Any,
    held_output: Any,
) -> Any:
    """Loss, forward: all that forward kept, the scores, and the output of the step before."""
    base = resident_memory + gathered_always + accumulated_gradients + saved_activations
    return base + loss_forward_extra + loss_forward_casts + held_output


@term("bytes", source=_FORMAT)
def dequantised_matrix(quantised_base: Any, dequantised_bytes: Any, largest_matrix_parameters: Any) -> Any:
    """A quantised base is multiplied one matrix at a time, each turned into 16 bit for the while."""
    return quantised_base * dequantised_bytes * largest_matrix_parameters


@term("switch")
def up_or_down_adapter(up_adapter: Any, down_adapter: Any) -> Any:
    """1 when the MLP's up or down projection has an adapter."""
    return when(up_adapter + down_adapter > 0, 1, 0)


@term("switch", source=_TRACE)
def adapters_in_stream(fp32_adapters: Any, fp32_stream: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when a gated MLP's adapters compute in the 16 bit that runs between the layers, so that nothing is cast."""
    gated = layer_forms.slot_gate[form_row] * layer_forms.slot_up[form_row]
    return (1 - fp32_adapters) * (1 - fp32_stream) * gated


@term("switch", source=_TRACE)
def casting_adapter(up_or_down_adapter: Any, adapters_in_stream: Any) -> Any:
    """1 when an adapter on up or down works beside the MLP on copies of its own."""
    return up_or_down_adapter * (1 - adapters_in_stream)


@term("bytes per token", source=_TRACE)
def down_input_bytes(
    down_adapter: Any, adapter_value_bytes: Any, dropout_on: Any, mask_bytes: Any, mlp_width: Any
) -> Any:
    """What the adapter of the down projection keeps of its input: gone before the rest of the MLP's backward."""
    return down_adapter * (adapter_value_bytes + dropout_on * mask_bytes) * mlp_width


@term("bytes per token", source=_TRACE)
def backward_mlp_bytes(
    casting_adapter: Any,
    adapters_in_stream: Any,
    form_working_hidden: Any,
    adapted_hidden_bytes: Any,
    hidden_size: Any,
    form_working_width: Any,
    mlp_width: Any,
    down_input_bytes: Any,
) -> Any:
    """What the backward of a dense MLP whose layer was made anew works on: more beside adapters that cast."""
    less = (1 - casting_adapter) * adapted_hidden_bytes
    wide = form_working_width * mlp_width - adapters_in_stream * down_input_bytes
    return (form_working_hidden - less) * hidden_size + wide


@term("bytes per token", source=_TRACE)
def dropped_mlp_bytes(
    adapters_in_stream: Any,
    dropout_on: Any,
    down_adapter: Any,
    form_working_hidden: Any,
    hidden_size: Any,
    bf16_bytes: Any,
    mlp_width: Any,
) -> Any:
    """What making it anew works on where an adapter on down drops inputs: they stand beside what is left of them."""
    dropped = adapters_in_stream * dropout_on * down_adapter
    return dropped * (form_working_hidden * hidden_size + bf16_bytes * mlp_width)


@term("bytes per token", source=_TRACE)
def recomputed_working_bytes(backward_mlp_bytes: Any, dropped_mlp_bytes: Any) -> Any:
    """What a dense MLP works on in a layer that is made anew."""
    return maximum(backward_mlp_bytes, dropped_mlp_bytes)


@term("bytes per token", source=_TRACE)
def prepared_working_bytes(form_working_width: Any, mlp_width: Any, down_input_bytes: Any) -> Any:
    """After k-bit preparation the MLP's tensors are fp32 and twice as large; those of the stream are shared."""
    return 2 * form_working_width * mlp_width - down_input_bytes


@term("bytes per token", source=_TRACE)
def backward_working_bytes(
    form_norm_working: Any,
    hidden_size: Any,
    form_last_hidden: Any,
    form_last_width: Any,
    bf16_bytes: Any,
    mlp_width: Any,
    down_input_bytes: Any,
) -> Any:
    """Not checkpointed: the final norm's backward, or the last MLP's, without the input of an adapter on down."""
    wide = (form_last_width + bf16_bytes) * mlp_width - down_input_bytes
    return maximum(form_norm_working * hidden_size, form_last_hidden * hidden_size + wide)


@term("bytes per token", source=_TRACE)
def plain_working_bytes(
    checkpointing_on: Any, casting_adapter: Any, recomputed_working_bytes: Any, backward_working_bytes: Any
) -> Any:
    """What a dense MLP works on: while it is made, or in backward where nothing is made anew."""
    return when(checkpointing_on + casting_adapter > 0, recomputed_working_bytes, backward_working_bytes)


@term("bytes per token", source=_TRACE)
def dense_working_bytes(kbit_prepared: Any, prepared_working_bytes: Any, plain_working_bytes: Any) -> Any:
    """What a dense MLP works on."""
    return when(kbit_prepared > 0, prepared_working_bytes, plain_working_bytes)


@term("bytes per token", source=_TRACE)
def scattered_working_bytes(
    routing_hidden_bytes: Any, scattered_hidden_bytes: Any, experts_per_token: Any, hidden_size: Any
) -> Any:
    """Experts' outputs on their way back to their tokens."""
    return (routing_hidden_bytes + scattered_hidden_bytes * experts_per_token) * hidden_size


@term("bytes per token", source=_TRACE)
def passed_working_bytes(
    form_working_passed_width: Any,
    expert_width: Any,
    form_working_passed_hidden: Any,
    hidden_size: Any,
    experts_per_token: Any,
) -> Any:
    """What the experts that a token passes work on in backward."""
    one = form_working_passed_width * expert_width + form_working_passed_hidden * hidden_size
    return experts_per_token * one


@term("bytes per token", source=_TRACE)
def expert_backward_bytes(
    passed_working_bytes: Any,
    form_working_hidden: Any,
    hidden_size: Any,
    expert_count: Any,
    form_working_every_width: Any,
    expert_width: Any,
    form_working_shared: Any,
    shared_expert_width: Any,
) -> Any:
    """What routed experts work on in backward, where shared ones are done with."""
    every = expert_count * form_working_every_width * expert_width
    return passed_working_bytes + form_working_hidden * hidden_size + every + form_working_shared * shared_expert_width


@term("bytes per token", source=_TRACE)
def grouped_working_bytes(scattered_working_bytes: Any, expert_backward_bytes: Any) -> Any:
    """What experts work on in one grouped product, at its largest."""
    return maximum(scattered_working_bytes, expert_backward_bytes)


@term("bytes per token", source=_TRACE)
def looped_working_bytes(kbit_prepared: Any, expert_loop_bytes: Any, hidden_size: Any) -> Any:
    """What is left beside the last of the experts that a loop goes through one by one."""
    return (1 + kbit_prepared) * expert_loop_bytes * hidden_size


@term("bytes per token", source=_TRACE)
def working_bytes(
    moe_layer_count: Any,
    stack_linear_experts: Any,
    looped_working_bytes: Any,
    grouped_working_bytes: Any,
    dense_working_bytes: Any,
) -> Any:
    """What the last layer's MLP, or its experts, work on in backward."""
    experts = when(stack_linear_experts > 0, looped_working_bytes, grouped_working_bytes)
    return when(moe_layer_count > 0, experts, dense_working_bytes)


@term("bytes", source=_TRACE)
def layer_working_tensors(tokens_per_micro_batch: Any, working_bytes: Any) -> Any:
    """The same for all tokens at work."""
    return tokens_per_micro_batch * working_bytes


@term("bytes", source=_TRACE)
def matrix_working_tensors(
    dequantised_matrix: Any,
    tokens_per_micro_batch: Any,
    matrix_hidden_bytes: Any,
    hidden_size: Any,
    matrix_mlp_bytes: Any,
    mlp_width: Any,
) -> Any:
    """What stands beside a matrix that is turned into 16 bit, and the matrix."""
    beside = tokens_per_micro_batch * (matrix_hidden_bytes * hidden_size + matrix_mlp_bytes * mlp_width)
    return dequantised_matrix + beside


@term("bytes", source=_TRACE)
def recomputed_segment(layer_activations: Any, layer_working_tensors: Any) -> Any:
    """One layer as a whole: what it keeps and what it works on."""
    return layer_activations + layer_working_tensors


@term("bytes", source=_TRACE)
def norm_offset(stream_norm_bytes: Any, tokens_per_micro_batch: Any, hidden_size: Any) -> Any:
    """The final norm's input, which is gone when the last layer is made anew."""
    return stream_norm_bytes * tokens_per_micro_batch * hidden_size


@term("bytes", source=_TRACE)
def recomputed_layer(
    layer_activations: Any,
    norm_offset: Any,
    kept_logits: Any,
    adapter_casts: Any,
    layer_casts: Any,
    reached_layers: Any,
) -> Any:
    """Checkpointed: the last layer made anew, the 16-bit copies it makes, and the kept scores."""
    casts = (adapter_casts + layer_casts) / maximum(1, reached_layers)
    return layer_activations - norm_offset + kept_logits + casts


@term("bytes", source=_TRACE)
def last_layer_kept(checkpointing_on: Any, recomputed_layer: Any, previous_output: Any) -> Any:
    """Beside what the last layer works on: the layer made anew, or the output of the step before."""
    return when(checkpointing_on > 0, recomputed_layer, previous_output)


@term("bytes", source=_TRACE)
def widest_extra(trains_head: Any, head_forward_extra: Any, layer_working_tensors: Any, last_layer_kept: Any) -> Any:
    """What the last layer's MLP adds to what is saved: in backward, or below a trained head in forward."""
    return when(trains_head > 0, head_forward_extra, layer_working_tensors + last_layer_kept)


@term("bytes", source=_TRACE)
def product_extra(trains_head: Any, head_product_extra: Any, matrix_working_tensors: Any, last_layer_kept: Any) -> Any:
    """What one product adds: that of a dequantised matrix, or of a trained head's gradient."""
    return when(trains_head > 0, head_product_extra, matrix_working_tensors + last_layer_kept)


@term("bytes", source=_TRACE)
def last_layer_extra(widest_extra: Any, product_extra: Any, head_cast_extra: Any) -> Any:
    """What the last layer, or a trained head's own backward, adds to what is saved."""
    return maximum(widest_extra, product_extra, head_cast_extra)


@term("bytes", source=_TRACE)
def last_layer_moment(
    resident_memory: Any,
    gathered_in_layers: Any,
    accumulated_gradients: Any,
    late_gradients: Any,
    saved_activations: Any,
    boundary_gradients: Any,
    last_layer_extra: Any,
) -> Any:
    """A layer's MLP in backward: the last one's, or the lowest's where the others leave gradients behind."""
    base = resident_memory + gathered_in_layers + accumulated_gradients + late_gradients
    return base + saved_activations + boundary_gradients + last_layer_extra


@term("bytes", source=_TRACE)
def optimizer_temporaries(stack_fuses_optimizer: Any, gradients_held: Any, optimizers: Any, optimizer_row: Any) -> Any:
    """Adam over all tensors at once makes one set of temporaries as large as the gradients; one kernel makes none."""
    return (1 - stack_fuses_optimizer) * gradients_held * optimizers.temporary_copies[optimizer_row]


@term("bytes", source=_TRACE)
def optimizer_moment(resident_memory: Any, gradients_held: Any, optimizer_temporaries: Any, held_output: Any) -> Any:
    """Optimizer step: gradients, the update's temporaries, and the output the loop still holds."""
    return resident_memory + gradients_held + optimizer_temporaries + held_output


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


@term("bytes")
def allocator_reserve(
    reserve_for_blocks: Any,
    checkpointing_on: Any,
    reserve_for_recomputing: Any,
    reserve_for_saved: Any,
    reserve_for_exchange: Any,
) -> Any:
    """Upper estimate of what the allocator holds above the allocated peak."""
    held = when(checkpointing_on > 0, reserve_for_recomputing, reserve_for_saved)
    return reserve_for_blocks + held + reserve_for_exchange


@term("count")
def stored_half_type(storage_formats: Any, storage_row: Any) -> Any:
    """Which 16-bit type the base is kept in: 0 none, 1 bf16, 2 fp16."""
    return storage_formats.half_type[storage_row]


@term("switch")
def same_half_type(stored_half_type: Any, computed_half_type: Any) -> Any:
    """0 when a 16-bit base is computed in the other 16-bit type: every weight is then cast, which was not traced."""
    return when((stored_half_type > 0) & opposite(equal(stored_half_type, computed_half_type)), 0, 1)


@term("switch")
def computes_bf16(autocast_active: Any, stored_half_type: Any, computed_half_type: Any) -> Any:
    """1 when matrices are multiplied in bf16: a 16-bit base as it is stored where autocast casts nothing."""
    half_type = when((stored_half_type > 0) & (autocast_active <= 0), stored_half_type, computed_half_type)
    return when(equal(half_type, 1), 1, 0)


@term("switch")
def kernel_traced(form_stores_scores: Any, attention_kernels: Any, kernel_row: Any) -> Any:
    """1 when what attention keeps was traced: by the kernel, or by the form where it stores scores in any case."""
    return when(form_stores_scores > 0, 1, attention_kernels.traced[kernel_row])


@term("switch")
def format_traced(storage_formats: Any, storage_row: Any) -> Any:
    """1 when a step over a base in this format was traced, or held against public runs."""
    return storage_formats.traced[storage_row]


@term("switch")
def precision_traced(same_half_type: Any, autocast_active: Any, fp32_base: Any) -> Any:
    """1 when the step's precision was traced: a base computed in its own 16-bit type, or cast by autocast."""
    return same_half_type * when(autocast_active + 1 - fp32_base > 0, 1, 0)


@term("switch")
def traced_available(
    autocast_on: Any,
    precision_traced: Any,
    format_traced: Any,
    kernel_traced: Any,
    optimizer_traced: Any,
    method_traced: Any,
) -> Any:
    """1 when a traced formula exists: 16-bit compute in the base's type, no eager attention, Adam or 8-bit Adam."""
    return autocast_on * precision_traced * format_traced * kernel_traced * optimizer_traced * method_traced

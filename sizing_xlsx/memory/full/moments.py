"""Full fine-tuning, traced: the moments of a step that can set the peak; it is their maximum, never their sum.

Without checkpointing, layers hand over what they kept for gradients as backward goes down, so the largest of these
moments is at one of the two ends: the last layer, or the first. No figure is fitted.
"""

from typing import Any

from ...formula.declare import Constant, check, term
from ...formula.primitives import choose, maximum, when

_TRACE = "allocation trace: transformers 5.20, PyTorch 2.13"
working_mlp_bytes = Constant(4, "bytes per value", "A layer's MLP in backward, MLP width", _TRACE, "traced")
working_norm_bytes = Constant(20, "bytes per value", "The final norm in backward, hidden width", _TRACE, "traced")
working_fp32_norm_bytes = Constant(10, "bytes per value", "The same in an fp32 stream", _TRACE, "traced")


# ---------------------------------------------------------------------- what several moments share
@term("bytes", source=_TRACE)
def token_buffers(tokens_per_micro_batch: Any, token_id_bytes: Any) -> Any:
    """Token ids and labels as 64-bit integers."""
    return tokens_per_micro_batch * token_id_bytes


@term("bytes per token", source=_TRACE, label="RoPE bytes")
def rope_bytes(layer_forms: Any, model_form_row: Any, head_dimension: Any, rope_dimension: Any) -> Any:
    """Sines and cosines of one position, 16 bit each."""
    heads = layer_forms.rope_once_S_hd[model_form_row] * head_dimension
    return heads + layer_forms.rope_once_S_rope[model_form_row] * rope_dimension


@term("bytes", source=_TRACE, label="RoPE table")
def rope_table(layer_stream: Any, rope_bytes: Any, tokens_per_row: Any) -> Any:
    """Those of the step's positions, twice as wide in an fp32 stream."""
    return choose(layer_stream, 1, 2, 2) * rope_bytes * tokens_per_row


@term("bytes", source=_TRACE)
def resident_memory(exact_static_bytes: Any, matrix_workspaces: Any, token_buffers: Any, bucket_memory: Any) -> Any:
    """What is on the card at every moment of a step."""
    return exact_static_bytes + matrix_workspaces + token_buffers + bucket_memory


@term("bytes", source=_TRACE)
def accumulated_gradients(gradients_accumulate: Any, gradient_memory: Any) -> Any:
    """Gradients of earlier micro-batches, alive during forward and backward from the second one on."""
    return gradients_accumulate * gradient_memory


@term("switch", source=_TRACE)
def copies_cast(layer_stream: Any) -> Any:
    """1 when autocast copies fp32 matrices in 16 bit."""
    return choose(layer_stream, 0, 1, 0)


@term("bytes", source=_TRACE)
def head_cast(
    copies_cast: Any, bf16_bytes: Any, vocabulary_size: Any, embedding_width: Any, tensor_parallel: Any
) -> Any:
    """Autocast's 16-bit copy of the output head."""
    return copies_cast * bf16_bytes * vocabulary_size * embedding_width / tensor_parallel


@term("parameters", source=_TRACE)
def layer_cast_parameters(
    full_forms: Any, stream_row: Any, inner_dense_held: Any, experts_held: Any, stage_layers: Any
) -> Any:
    """Weights of a layer that autocast copies: of experts those of families whose experts all compute every token."""
    experts = when(full_forms.moe_E_e[stream_row] > 0, experts_held, 0)
    return (inner_dense_held + experts) / stage_layers


@term("bytes", source=_TRACE)
def layer_cast(copies_cast: Any, bf16_bytes: Any, layer_cast_parameters: Any) -> Any:
    """Autocast's 16-bit copies of one layer's matrices."""
    return copies_cast * bf16_bytes * layer_cast_parameters


@term("bytes", source=_TRACE)
def all_casts(layer_cast: Any, stage_layers: Any, head_cast: Any) -> Any:
    """Autocast's 16-bit copies of all matrices."""
    return stage_layers * layer_cast + head_cast


@term("bytes", source=_TRACE)
def saved_casts(checkpointing_on: Any, head_cast: Any, all_casts: Any) -> Any:
    """Copies alive at the beginning of backward; checkpointed layers make theirs anew."""
    return when(checkpointing_on > 0, head_cast, all_casts)


@term("bytes", source=_TRACE)
def saved_activations(saved_layers: Any, outer_memory: Any, rope_table: Any) -> Any:
    """Everything kept from forward to backward but the output scores and copies of weights."""
    return saved_layers + outer_memory + rope_table


# ---------------------------------------------------------------------- the loss
@term("bytes", source=_TRACE)
def fp32_cache(
    copies_cast: Any,
    checkpointing_on: Any,
    fp32_bytes: Any,
    tokens_per_micro_batch: Any,
    layer_count: Any,
    kv_values_per_token_per_layer: Any,
) -> Any:
    """Keys and values that the output holds in fp32 until it is dropped, where the layers keep them in 16 bit."""
    held = copies_cast * (1 - checkpointing_on) * fp32_bytes
    return held * tokens_per_micro_batch * layer_count * kv_values_per_token_per_layer


@term("bytes", source=_TRACE)
def fp32_head_input(layer_stream: Any, fp32_bytes: Any, tokens_per_micro_batch: Any, hidden_size: Any) -> Any:
    """The output head's input as an fp32 stream gives it: alive until the loss is there."""
    return choose(layer_stream, 0, 1, 1) * fp32_bytes * tokens_per_micro_batch * hidden_size


@term("bytes", source=_TRACE)
def loss_forward_tensors(
    loss_fused: Any,
    fused_loss_memory: Any,
    forward_scores: Any,
    fp32_cache: Any,
    fp32_head_input: Any,
    held_output: Any,
) -> Any:
    """What the loss's forward adds to what is kept."""
    return when(loss_fused > 0, fused_loss_memory, forward_scores) + fp32_cache + fp32_head_input + held_output


@term("bytes", source=_TRACE)
def loss_forward_activations(saved_activations: Any, loss_forward_tensors: Any, token_buffers: Any) -> Any:
    """Activations alive in the loss's forward."""
    return saved_activations + loss_forward_tensors + token_buffers


@term("bytes", source=_TRACE)
def loss_forward_moment(
    resident_memory: Any, gathered_always: Any, accumulated_gradients: Any, all_casts: Any, saved_activations: Any,
    loss_forward_tensors: Any, fused_head_gradient: Any,
) -> Any:  # fmt: skip
    """Loss, forward: all that forward kept, and the scores."""
    weights = resident_memory + gathered_always + accumulated_gradients + all_casts
    return weights + saved_activations + loss_forward_tensors + fused_head_gradient


@term("bytes", source=_TRACE)
def loss_backward_activations(
    loss_fused: Any, saved_activations: Any, backward_scores: Any, kept_scores: Any, token_buffers: Any
) -> Any:
    """Activations alive in the loss's backward; a fused head and loss has done its own in forward."""
    return token_buffers + (1 - loss_fused) * (saved_activations + backward_scores + kept_scores)


@term("bytes", source=_TRACE)
def loss_backward_moment(
    resident_memory: Any, gathered_always: Any, accumulated_gradients: Any, saved_casts: Any,
    loss_backward_activations: Any, token_buffers: Any,
) -> Any:  # fmt: skip
    """Loss, backward: all that forward kept, and the scores with their gradient."""
    weights = resident_memory + gathered_always + accumulated_gradients + saved_casts
    return weights + loss_backward_activations - token_buffers


# ---------------------------------------------------------------------- layers
@term("bytes", source=_TRACE)
def head_gradient(gradients_accumulate: Any, vocabulary_size: Any, embedding_width: Any, weights_gathered: Any,
                  gradient_width: Any, tensor_parallel: Any) -> Any:  # fmt: skip
    """The first gradient of backward, the output head's; sharded it is whole until the root unit is reduced."""
    fresh = when(weights_gathered > 0, 1, 1 - gradients_accumulate)
    return fresh * gradient_width * vocabulary_size * embedding_width / tensor_parallel


@term("bytes", source=_TRACE)
def fused_head_gradient(loss_fused: Any, head_gradient: Any) -> Any:
    """A fused head and loss makes the head's gradient in forward."""
    return loss_fused * head_gradient


@term("bytes per parameter", source=_TRACE)
def gradient_width(layer_stream: Any, bf16_bytes: Any, fp32_bytes: Any) -> Any:
    """Bytes of a gradient as backward makes it."""
    return choose(layer_stream, bf16_bytes, fp32_bytes, fp32_bytes)


@term("bytes", source=_TRACE)
def matrix_gradients(
    weights_gathered: Any,
    largest_matrix_parameters: Any,
    gradient_width: Any,
    copies_cast: Any,
    bf16_bytes: Any,
    tensor_parallel: Any,
) -> Any:
    """The gradient of the matrix at work, with the 16-bit one that autocast makes it from; sharded, of two."""
    width = (1 + weights_gathered) * (gradient_width + copies_cast * bf16_bytes)
    return width * largest_matrix_parameters / tensor_parallel


@term("count")
def working_width(mlp_width: Any, dense_layer_count: Any, experts_per_token: Any, expert_width: Any,
                  shared_expert_width: Any) -> Any:  # fmt: skip
    """Width of the MLP at work, or of all experts that a token passes."""
    return maximum(when(dense_layer_count > 0, mlp_width, 0), experts_per_token * expert_width + shared_expert_width)


@term("bytes", source=_TRACE)
def layer_working(tokens_per_micro_batch: Any, working_mlp_bytes: Any, layer_stream: Any, working_width: Any) -> Any:
    """What a layer's backward works on beside what the layer keeps."""
    return choose(layer_stream, 1, 1, 2) * working_mlp_bytes * tokens_per_micro_batch * working_width


@term("bytes", source=_TRACE)
def one_layer(layer_activations: Any, layer_working: Any, matrix_gradients: Any, layer_cast: Any) -> Any:
    """One layer in backward: what it keeps, what it works on, gradients and copies of its matrices."""
    return layer_activations + layer_working + matrix_gradients + layer_cast


@term("bytes", source=_TRACE)
def norm_working(layer_stream: Any, working_norm_bytes: Any, working_fp32_norm_bytes: Any, tokens_per_micro_batch: Any,
                 hidden_size: Any) -> Any:  # fmt: skip
    """What the final norm's backward works on."""
    width = choose(layer_stream, working_norm_bytes, working_fp32_norm_bytes, working_fp32_norm_bytes)
    return width * tokens_per_micro_batch * hidden_size


@term("bytes", source=_TRACE)
def last_layer_activations(
    checkpointing_on: Any, saved_layers: Any, one_layer: Any, layer_activations: Any, rope_table: Any, kept_scores: Any,
    norm_working: Any, token_buffers: Any,
) -> Any:  # fmt: skip
    """Activations alive in the last layer's backward, or in the final norm's before it."""
    layer = one_layer - when(checkpointing_on > 0, 0, layer_activations)
    return token_buffers + saved_layers + maximum(layer, norm_working) + rope_table + kept_scores


@term("bytes", source=_TRACE)
def last_layer_moment(
    resident_memory: Any, gathered_in_layers: Any, accumulated_gradients: Any, head_gradient: Any,
    last_layer_activations: Any, lower_casts: Any, token_buffers: Any,
) -> Any:  # fmt: skip
    """Last layer, backward: all that lower layers kept, and the output head's gradient."""
    weights = resident_memory + gathered_in_layers + accumulated_gradients + head_gradient + lower_casts
    return weights + last_layer_activations - token_buffers


@term("bytes", source=_TRACE)
def lower_casts(checkpointing_on: Any, stage_layers: Any, layer_cast: Any) -> Any:
    """Copies of the layers below the last one."""
    return when(checkpointing_on > 0, 0, (stage_layers - 1) * layer_cast)


@term("bytes", source=_TRACE)
def first_layer_gradients(
    gradient_memory: Any, gradients_accumulate: Any, base_parameter_count: Any, embedding_parameters: Any,
    head_parameters: Any, inner_parameters: Any, layer_count: Any,
) -> Any:  # fmt: skip
    """Gradients alive when backward reaches the first layer: all but its own, and the embeddings' unless tied."""
    late = when(head_parameters > 0, embedding_parameters, 0) + inner_parameters / layer_count
    return gradient_memory * maximum(0, 1 - (1 - gradients_accumulate) * late / base_parameter_count)


@term("bytes", source=_TRACE)
def first_layer_activations(
    one_layer: Any, layer_boundary: Any, rope_table: Any, kept_scores: Any, kept_cache: Any, token_buffers: Any
) -> Any:
    """Activations alive in the first layer's backward: one layer and the gradient of its output."""
    return token_buffers + one_layer + layer_boundary + rope_table + kept_scores + kept_cache


@term("bytes", source=_TRACE)
def first_layer_moment(
    resident_memory: Any, gathered_in_layers: Any, first_layer_gradients: Any, first_layer_activations: Any,
    token_buffers: Any,
) -> Any:  # fmt: skip
    """First layer, backward: nearly all gradients exist, one layer is left."""
    return resident_memory + gathered_in_layers + first_layer_gradients + first_layer_activations - token_buffers


# ---------------------------------------------------------------------- the embeddings and the update
@term("bytes", source=_TRACE)
def embedding_activations(
    stream_value_bytes: Any, tokens_per_micro_batch: Any, hidden_size: Any, held_output: Any, token_buffers: Any
) -> Any:
    """Activations alive in the embeddings' backward: the gradient of their output."""
    return stream_value_bytes * tokens_per_micro_batch * hidden_size + held_output + token_buffers


@term("bytes", source=_TRACE)
def second_embedding(
    head_parameters: Any, gradients_accumulate: Any, embedding_parameters: Any, gradient_width: Any,
    tensor_parallel: Any,
) -> Any:  # fmt: skip
    """A gradient of the embeddings beside one that exists: a tied head's, or that of the micro-batch before."""
    twice = when(head_parameters > 0, gradients_accumulate, 1)
    return twice * gradient_width * embedding_parameters / tensor_parallel


@term("bytes", source=_TRACE)
def embedding_moment(
    resident_memory: Any, gathered_always: Any, gradient_memory: Any, second_embedding: Any,
    embedding_activations: Any, token_buffers: Any,
) -> Any:  # fmt: skip
    """Embeddings, backward: all gradients, and the embeddings' a second time where they are tied or accumulate."""
    weights = resident_memory + gathered_always + gradient_memory + second_embedding
    return weights + embedding_activations - token_buffers


@term("parameters")
def largest_tensor(embedding_held: Any, largest_matrix_parameters: Any, optimizer_shards: Any) -> Any:
    """Parameters of the largest tensor that a card updates."""
    return maximum(embedding_held, largest_matrix_parameters / optimizer_shards)


@term("parameters", source=_TRACE)
def walked_at_once(optimizer_steps: Any, step_row: Any, updates_held: Any, largest_tensor: Any) -> Any:
    """Parameters at work at one time: all, those of the largest tensor, or none in one kernel."""
    updated = optimizer_steps.all_tensors[step_row] * updates_held
    return updated + optimizer_steps.one_tensor[step_row] * largest_tensor


@term("parameters")
def updated_at_once(master_bytes: Any, updates_held: Any, walked_at_once: Any) -> Any:
    """The same; a master copy takes all its gradients in fp32 before the walk, however the optimizer walks."""
    return when(master_bytes > 0, updates_held, walked_at_once)


@term("bytes", source=_TRACE)
def step_temporaries(offloads: Any, offload_row: Any, step_bytes: Any, updated_at_once: Any) -> Any:
    """What the update works on; nothing on the card where the host updates."""
    return (1 - offloads.optimizer[offload_row]) * step_bytes * updated_at_once


@term("bytes", source=_TRACE)
def step_gradients(gradient_memory: Any, gradients_kept: Any, largest_tensor: Any, gradient_bytes: Any) -> Any:
    """Gradients in the update: all, or in backward the one at work."""
    return when(gradients_kept > 0, gradient_memory, largest_tensor * gradient_bytes)


@term("bytes", source=_TRACE)
def optimizer_moment(resident_memory: Any, step_gradients: Any, step_temporaries: Any, held_output: Any) -> Any:
    """Optimizer step: gradients, the update's temporaries, and the output that the loop still holds."""
    return resident_memory + step_gradients + step_temporaries + held_output


@term("bytes", source=_TRACE)
def traced_allocated(
    loss_forward_moment: Any, loss_backward_moment: Any, last_layer_moment: Any, first_layer_moment: Any,
    embedding_moment: Any, optimizer_moment: Any,
) -> Any:  # fmt: skip
    """Allocated peak: the largest of the six moments, never their sum."""
    backward = maximum(loss_backward_moment, last_layer_moment, first_layer_moment, embedding_moment)
    return maximum(loss_forward_moment, backward, optimizer_moment)


# ---------------------------------------------------------------------- what was traced
@term("switch")
def form_traced(full_forms: Any, stream_row: Any) -> Any:
    """1 when the layers of the model's form were traced in this precision with everything trained."""
    return full_forms.traced[stream_row]


@term("switch")
def kernel_traced(full_forms: Any, stream_row: Any, attention_kernels: Any, kernel_row: Any) -> Any:
    """1 when what attention keeps was traced: scores where the form stores them in any case, else none."""
    stores = when(full_forms.layer_nh_S[stream_row] > 0, 1, 0)
    return when(stores > 0, 1, 1 - attention_kernels.stores_scores[kernel_row])


@term("switch")
def traced_available(form_traced: Any, kernel_traced: Any, model_parallel: Any) -> Any:
    """1 when a traced formula exists: a traced form, no stored scores, neither tensor nor pipeline parallel."""
    return form_traced * kernel_traced * when(model_parallel > 1, 0, 1)


@check(
    "sharding_stage is {sharding_stage!r}; its buffers are those of its documentation, and no such step was traced",
    fault=False,
)
@term("switch")
def stage_measured(sharding_stages: Any, stage_row: Any, copies_of_weights: Any) -> Any:
    """0 when several cards share the state in a way that no public run at hand was held against."""
    return when(copies_of_weights > 1, sharding_stages.fsdp[stage_row] + sharding_stages.copies[stage_row], 1)


@check(
    "training_recipe is {training_recipe!r}; the temporaries of its optimizer's step are assumed, not traced",
    fault=False,
)
@term("switch")
def recipe_traced(recipes: Any, recipe_row: Any) -> Any:
    """1 when a step by the recipe was traced."""
    return recipes.traced[recipe_row]

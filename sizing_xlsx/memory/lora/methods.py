"""Adapter methods: what is trained in place of the whole model, and what of it goes into the one set of formulas.

Unchanged by the method: the frozen base gets no gradient and no optimizer state; trained parameters, their gradients
and their optimizer state are as large as their number says; output scores follow tokens and outputs.
"""

from typing import Any

from ...formula.declare import Choice, Constant, Input, Whole, check, term
from ...formula.primitives import given, when
from ..shared.run import small_tensor

_PEFT = "PEFT 0.21: the shapes of its trained tensors"
_FORMAT = "bytes of the format, measured on CPU tensors"
_TRACE = "allocation trace: transformers 5.20, PEFT 0.21, PyTorch 2.13"
_BAND = "upper estimate: never below the reserved memory of the traces in the tests"
adapter_method = Input(
    "text",
    Choice("adapter_methods"),
    "LoRA",
    "Adapter method",
    "What is trained beside the frozen base: adapters, vectors, a prefix, or a new output head.",
)
virtual_tokens = Input(
    "tokens",
    Whole(1, 65_536),
    20,
    "Virtual tokens",
    "num_virtual_tokens of prefix tuning; counts when that is the method.",
)
head_outputs = Input(
    "count",
    Whole(1, 10_000_000),
    None,
    "Outputs of the trained head",
    "Classes or entries that a trained head scores; empty for the model's vocabulary.",
    optional=True,
)
label_bytes = Constant(8, "bytes per token", "Labels beside stored features", _TRACE, "traced")


@term("row")
def method_row(adapter_methods: Any, adapter_method: Any) -> Any:
    """Row of the adapter method in its table."""
    return adapter_methods.row_of(adapter_method)


@term("switch")
def adapts_modules(adapter_methods: Any, method_row: Any) -> Any:
    """1 when the method adapts linear modules, so that targets and layers count."""
    return adapter_methods.modules[method_row]


@term("switch")
def trains_low_rank(adapter_methods: Any, method_row: Any) -> Any:
    """1 when each target gets two matrices of the rank's width (LoRA, DoRA)."""
    return adapter_methods.low_rank[method_row]


@term("switch")
def trains_vectors(adapter_methods: Any, method_row: Any) -> Any:
    """1 when each target gets a vector (DoRA's magnitude, IA3's scale)."""
    return adapter_methods.vectors[method_row]


@term("switch")
def scales_inputs(adapter_methods: Any, method_row: Any) -> Any:
    """1 when the vector of the down projection scales its input, not its output (IA3)."""
    return adapter_methods.scales_inputs[method_row]


@term("switch")
def trains_prefix(adapter_methods: Any, method_row: Any) -> Any:
    """1 when keys and values of virtual tokens are trained, for every layer."""
    return adapter_methods.prefix[method_row]


@term("switch")
def trains_head(adapter_methods: Any, method_row: Any) -> Any:
    """1 when a new output head alone is trained: no layer keeps anything for backward."""
    return adapter_methods.head[method_row]


@term("switch")
def base_on_card(adapter_methods: Any, method_row: Any) -> Any:
    """0 when the base has done its work before training: its features are stored, and only they are loaded."""
    return adapter_methods.base_on_card[method_row]


# ---------------------------------------------------------------------- output scores
@term("count")
def output_width(trains_head: Any, head_outputs: Any, vocabulary_size: Any) -> Any:
    """Output scores of a token: one for each entry of the vocabulary, or for each output of a trained head."""
    return when(trains_head > 0, given(head_outputs, vocabulary_size), vocabulary_size)


@term("values")
def logit_values(tokens_per_micro_batch: Any, output_width: Any) -> Any:
    """Output scores: one per token and output."""
    return tokens_per_micro_batch * output_width


# ---------------------------------------------------------------------- trained parameters
@term("count")
def trained_rank(trains_low_rank: Any, lora_rank: Any) -> Any:
    """Inner width of each target's two matrices; 0 where the method has none."""
    return trains_low_rank * lora_rank


@term("parameters", source=_PEFT)
def low_rank_parameters(
    trained_rank: Any, attention_adapter_width: Any, dense_adapter_width: Any, shared_adapter_width: Any
) -> Any:
    """Rank times (input + output width), over all targets of all reached layers."""
    return trained_rank * (attention_adapter_width + dense_adapter_width + shared_adapter_width)


@term("count", source=_PEFT)
def attention_vector_width(attention_adapter_output_width: Any, latent_adapter: Any, query_latent_width: Any) -> Any:
    """Vectors of a layer's attention: one number per output of each target."""
    return attention_adapter_output_width + latent_adapter * query_latent_width


@term("count", source=_PEFT, label="MLP vector width")
def mlp_vector_width(
    mlp_adapter_output_width: Any, scales_inputs: Any, down_adapter: Any, mlp_width: Any, hidden_size: Any
) -> Any:
    """Vectors of a dense MLP: one number per output of each target; IA3 scales the input of down."""
    return mlp_adapter_output_width + scales_inputs * down_adapter * (mlp_width - hidden_size)


@term("count", source=_PEFT)
def shared_vector_width(
    shared_adapter_output_width: Any,
    scales_inputs: Any,
    shared_adapters: Any,
    down_adapter: Any,
    shared_expert_width: Any,
    hidden_size: Any,
) -> Any:
    """Vectors of a layer's shared experts."""
    down = scales_inputs * shared_adapters * down_adapter
    return shared_adapter_output_width + down * (shared_expert_width - hidden_size)


@term("parameters", source=_PEFT)
def vector_parameters(
    trains_vectors: Any,
    reached_layers: Any,
    attention_vector_width: Any,
    reached_dense_layers: Any,
    mlp_vector_width: Any,
    reached_moe_layers: Any,
    shared_vector_width: Any,
) -> Any:
    """Vectors of all targets of all reached layers."""
    mlps = reached_dense_layers * mlp_vector_width + reached_moe_layers * shared_vector_width
    return trains_vectors * (reached_layers * attention_vector_width + mlps)


@term("parameters", source=_PEFT)
def prefix_parameters(trains_prefix: Any, virtual_tokens: Any, layer_count: Any, kv_width: Any) -> Any:
    """Keys and values of the virtual tokens in every layer, without a projection."""
    return trains_prefix * virtual_tokens * layer_count * 2 * kv_width


@term("parameters")
def trained_head_parameters(trains_head: Any, output_width: Any, embedding_width: Any) -> Any:
    """The new output head, apart from the embeddings and without a bias: a row for each output."""
    return trains_head * output_width * embedding_width


@term("parameters")
def adapter_parameters(
    low_rank_parameters: Any, vector_parameters: Any, prefix_parameters: Any, trained_head_parameters: Any
) -> Any:
    """Trained parameters (Na), by the method: matrices of the rank's width, vectors, a prefix, or a head."""
    return low_rank_parameters + vector_parameters + prefix_parameters + trained_head_parameters


# ---------------------------------------------------------------------- tensors too small for 8-bit moments
@term("count", source=_FORMAT)
def small_query_vector(query_adapter: Any, query_output_width: Any, smallest_tensor: Any) -> Any:
    """The query projection's vector, where it is too small for 8-bit moments."""
    return query_adapter * small_tensor(query_output_width, smallest_tensor)


@term("count", source=_FORMAT)
def small_key_vector(key_adapter: Any, key_output_width: Any, smallest_tensor: Any) -> Any:
    """The key projection's vector, where it is too small for 8-bit moments."""
    return key_adapter * small_tensor(key_output_width, smallest_tensor)


@term("count", source=_FORMAT)
def small_value_vector(value_adapter: Any, value_output_width: Any, smallest_tensor: Any) -> Any:
    """The value projection's vector, where it is too small for 8-bit moments."""
    return value_adapter * small_tensor(value_output_width, smallest_tensor)


@term("count", source=_FORMAT)
def small_output_vector(output_adapter: Any, hidden_size: Any, smallest_tensor: Any) -> Any:
    """The output projection's vector, where it is too small for 8-bit moments."""
    return output_adapter * small_tensor(hidden_size, smallest_tensor)


@term("count", source=_FORMAT)
def small_latent_vector(latent_adapter: Any, query_latent_width: Any, smallest_tensor: Any) -> Any:
    """The query latent's vector, where it is too small for 8-bit moments."""
    return latent_adapter * small_tensor(query_latent_width, smallest_tensor)


@term("count", source=_FORMAT)
def small_attention_vectors(
    small_query_vector: Any,
    small_key_vector: Any,
    small_value_vector: Any,
    small_output_vector: Any,
    small_latent_vector: Any,
) -> Any:
    """Those of one layer's attention."""
    return small_query_vector + small_key_vector + small_value_vector + small_output_vector + small_latent_vector


@term("count", source=_FORMAT)
def small_down_vector(
    down_adapter: Any, scales_inputs: Any, mlp_width: Any, hidden_size: Any, smallest_tensor: Any
) -> Any:
    """The vector of a dense MLP's down projection, where it is too small for 8-bit moments."""
    outputs = (1 - scales_inputs) * small_tensor(hidden_size, smallest_tensor)
    return down_adapter * (outputs + scales_inputs * small_tensor(mlp_width, smallest_tensor))


@term("count", source=_FORMAT, label="Small MLP vectors")
def small_mlp_vectors(
    gate_adapter: Any,
    gate_output_width: Any,
    up_adapter: Any,
    mlp_width: Any,
    smallest_tensor: Any,
    small_down_vector: Any,
) -> Any:
    """Those of one dense MLP."""
    gate = gate_adapter * small_tensor(gate_output_width, smallest_tensor)
    return gate + up_adapter * small_tensor(mlp_width, smallest_tensor) + small_down_vector


@term("count", source=_FORMAT)
def small_shared_down_vector(
    down_adapter: Any, scales_inputs: Any, shared_expert_width: Any, hidden_size: Any, smallest_tensor: Any
) -> Any:
    """The vector of the shared experts' down projection, where it is too small for 8-bit moments."""
    outputs = (1 - scales_inputs) * small_tensor(hidden_size, smallest_tensor)
    return down_adapter * (outputs + scales_inputs * small_tensor(shared_expert_width, smallest_tensor))


@term("count", source=_FORMAT)
def small_shared_vectors(
    shared_adapters: Any,
    gate_adapter: Any,
    up_adapter: Any,
    shared_expert_width: Any,
    smallest_tensor: Any,
    small_shared_down_vector: Any,
) -> Any:
    """Those of one layer's shared experts."""
    wide = (gate_adapter + up_adapter) * small_tensor(shared_expert_width, smallest_tensor)
    return shared_adapters * (wide + small_shared_down_vector)


@term("parameters", source=_FORMAT)
def small_vector_parameters(
    trains_vectors: Any,
    reached_layers: Any,
    small_attention_vectors: Any,
    reached_dense_layers: Any,
    small_mlp_vectors: Any,
    reached_moe_layers: Any,
    small_shared_vectors: Any,
) -> Any:
    """Vectors that are too small for 8-bit moments, of all reached layers."""
    mlps = reached_dense_layers * small_mlp_vectors + reached_moe_layers * small_shared_vectors
    return trains_vectors * (reached_layers * small_attention_vectors + mlps)


@term("parameters", source=_FORMAT)
def small_whole_parameters(prefix_parameters: Any, trained_head_parameters: Any, smallest_tensor: Any) -> Any:
    """A prefix or a head, which is one tensor, where that is too small for 8-bit moments."""
    return small_tensor(prefix_parameters + trained_head_parameters, smallest_tensor)


# ---------------------------------------------------------------------- what the base gives up
@term("parameters")
def replaced_head_parameters(trains_head: Any, head_parameters: Any) -> Any:
    """The model's own output head, where it is not tied: a trained head takes its place."""
    return trains_head * head_parameters


# ---------------------------------------------------------------------- what a head alone keeps
@term("bytes per token", source=_TRACE)
def batch_bytes(base_on_card: Any, token_id_bytes: Any, label_bytes: Any, bf16_bytes: Any, embedding_width: Any) -> Any:
    """A token of the batch, there all through a step: its id and label, or its stored 16-bit features and label."""
    return when(base_on_card > 0, token_id_bytes, label_bytes + bf16_bytes * embedding_width)


@term("bytes", source=_TRACE)
def kept_features(
    trains_head: Any, base_on_card: Any, bf16_bytes: Any, tokens_per_micro_batch: Any, embedding_width: Any
) -> Any:
    """Input of a trained head, kept for its gradient; stored features are part of the batch already."""
    return trains_head * base_on_card * bf16_bytes * tokens_per_micro_batch * embedding_width


@term("bytes", source=_TRACE)
def frozen_forward_working(
    base_on_card: Any,
    tokens_per_micro_batch: Any,
    form_forward_hidden: Any,
    hidden_size: Any,
    form_forward_width: Any,
    mlp_width: Any,
    rope_table: Any,
) -> Any:
    """What a layer that is frozen as a whole works on in forward: its MLP, and the table of positions."""
    wide = form_forward_hidden * hidden_size + form_forward_width * mlp_width
    return base_on_card * (tokens_per_micro_batch * wide + rope_table)


@term("bytes", source=_TRACE)
def head_forward_extra(
    frozen_forward_working: Any, output_kept: Any, held_kv_cache: Any, previous_output: Any, kept_features: Any
) -> Any:
    """The last frozen layer at work below a head: caches and the last output are there, the head's input not yet."""
    return frozen_forward_working + (1 - output_kept) * held_kv_cache + previous_output - kept_features


@term("bytes", source=_TRACE)
def head_gradient(adapter_bytes: Any, fp32_adapters: Any, bf16_bytes: Any, trained_head_parameters: Any) -> Any:
    """A trained head's gradient while it is made: in its storage, and in 16 bit where autocast made it."""
    return (adapter_bytes + fp32_adapters * bf16_bytes) * trained_head_parameters


@term("bytes", source=_TRACE)
def head_product_extra(bf16_bytes: Any, logit_values: Any, trained_head_parameters: Any, kept_logits: Any) -> Any:
    """A trained head's backward: its 16-bit gradient beside that of the scores, and the kept scores."""
    return bf16_bytes * (logit_values + trained_head_parameters) + kept_logits


@term("bytes", source=_TRACE)
def head_cast_extra(head_gradient: Any, kept_features: Any, kept_logits: Any) -> Any:
    """Its gradient cast to its storage, when the scores' gradient and the head's input are gone."""
    return head_gradient - kept_features + kept_logits


@term("bytes", source=_BAND)
def reserve_for_head(head_gradient: Any, frozen_forward_working: Any, reserve_activation_divisor: Any) -> Any:
    """Blocks that the head's gradient does not find free, and a share of what the frozen layers work on."""
    return head_gradient + frozen_forward_working / reserve_activation_divisor


@term("bytes", source=_BAND)
def reserve_for_saved(
    saved_layers: Any, reserve_activation_divisor: Any, trains_head: Any, reserve_for_head: Any
) -> Any:
    """Not checkpointed: a share of what the layers keep, or what a head alone leaves behind."""
    return when(trains_head > 0, reserve_for_head, saved_layers / reserve_activation_divisor)


@term("switch", source=_TRACE)
def frozen_traced(
    form_forward_width: Any, fp32_stream: Any, quantised_base: Any, scores_stored: Any, checkpointing_on: Any
) -> Any:
    """1 when a frozen base below a head was traced: dense layers in 16 bit, no stored scores, no checkpointing."""
    unseen = fp32_stream + quantised_base + scores_stored + checkpointing_on
    return when(unseen > 0, 0, when(form_forward_width > 0, 1, 0))


@term("switch", source=_TRACE)
def head_traced(
    base_on_card: Any, frozen_traced: Any, stack_fused_loss: Any, fp32_adapters: Any, autocast_active: Any
) -> Any:
    """1 when a trained head was traced: autocast or 16-bit storage, a loss apart from it, and the base below it."""
    unseen = base_on_card * (1 - frozen_traced) + stack_fused_loss + fp32_adapters * (1 - autocast_active)
    return when(unseen > 0, 0, 1)


@term("switch")
def method_traced(adapter_methods: Any, method_row: Any, trains_head: Any, head_traced: Any) -> Any:
    """1 when what the method keeps was traced; else only its parameters and state are exact."""
    return adapter_methods.traced[method_row] * when(trains_head > 0, head_traced, 1)


@check(
    "activation_checkpointing is {activation_checkpointing!r} with adapter_method {adapter_method!r}: PEFT refuses it"
    " for a prefix, and below a head nothing is kept that could be made anew; set it to Off",
    fault=False,
)
@term("switch")
def method_takes_checkpointing(trains_prefix: Any, trains_head: Any, checkpointing_on: Any) -> Any:
    """0 when layers are to be checkpointed for a prefix or a head."""
    return 1 - (trains_prefix + trains_head) * checkpointing_on

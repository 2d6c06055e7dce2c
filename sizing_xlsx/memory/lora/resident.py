"""LoRA, traced: what is on the card at every moment: base, adapters, optimizer state, workspaces, token ids."""

from typing import Any

from ...formula.declare import Choice, Input, check, term
from ...formula.primitives import equal, when
from ..shared.run import small_tensor

_TRACE = "allocation trace: transformers 5.20, PEFT 0.21, PyTorch 2.13"
_FORMAT = "bytes of the format, measured on CPU tensors"
kbit_preparation = Input(
    "text",
    Choice("kbit_preparations"),
    "Off",
    "K-bit preparation",
    "On: what a quantised base leaves unquantised is kept in fp32, as prepare_model_for_kbit_training does.",
)
quantised_head = Input(
    "text",
    Choice("switches"),
    "Off",
    "Quantised output head",
    "On for a checkpoint whose output head is quantised too; a tied head then exists twice.",
)
adapter_storage = Input(
    "text",
    Choice("adapter_storages"),
    "fp32",
    "Adapter storage",
    "PEFT keeps adapters in fp32 over a 16-bit base; frameworks of their own keep them in 16 bit.",
)


@term("row")
def storage_row(storage_formats: Any, base_storage_format: Any) -> Any:
    """Row of the base storage format in its table."""
    return storage_formats.row_of(base_storage_format)


@term("switch")
def fp32_base(storage_formats: Any, storage_row: Any) -> Any:
    """1 when the frozen base is kept in fp32."""
    return storage_formats.fp32[storage_row]


@term("switch")
def quantised_base(storage_formats: Any, storage_row: Any) -> Any:
    """1 when the frozen base is quantised."""
    return storage_formats.quantised[storage_row]


@term("text")
def published_format(models: Any, model_row: Any) -> Any:
    """The storage format of the published weights, by the model's quantization_config; bf16 where it has none."""
    return models.published_format[model_row]


@term("row")
def published_format_row(storage_formats: Any, published_format: Any) -> Any:
    """Row of the published weights' format in the table of formats."""
    return storage_formats.row_of(published_format)


@check(
    "base_storage_format is {base_storage_format!r}; the weights of {base_model} are published as"
    " {published_format!r}, by its quantization_config",
    fault=False,
)
@term("switch")
def format_as_published(storage_formats: Any, storage_row: Any, published_format_row: Any, bf16_bytes: Any) -> Any:
    """0 when the published weights are quantised and another storage format is chosen."""
    quantised = when(storage_formats.bytes_per_parameter[published_format_row] < bf16_bytes, 1, 0)
    return when(equal(storage_row, published_format_row), 1, 1 - quantised)


@term("row")
def preparation_row(kbit_preparations: Any, kbit_preparation: Any) -> Any:
    """Row of the k-bit preparation in its table."""
    return kbit_preparations.row_of(kbit_preparation)


@term("switch")
def kbit_prepared(quantised_base: Any, kbit_preparations: Any, preparation_row: Any) -> Any:
    """1 when the norms beside a quantised base are kept in fp32."""
    return quantised_base * kbit_preparations.norms_fp32[preparation_row]


@term("switch")
def rest_prepared(quantised_base: Any, kbit_preparations: Any, preparation_row: Any) -> Any:
    """1 when everything else that is not quantised is in fp32 too: embeddings, head, biases."""
    return quantised_base * kbit_preparations.rest_fp32[preparation_row]


@term("switch")
def fp32_head(fp32_base: Any, rest_prepared: Any) -> Any:
    """1 when the output head is kept in fp32."""
    return fp32_base + rest_prepared


@term("switch")
def fp32_stream(fp32_base: Any, kbit_prepared: Any) -> Any:
    """1 when norms are kept in fp32, and with them everything that runs between the layers."""
    return fp32_base + kbit_prepared


@check(
    "kbit_preparation is {kbit_preparation!r} with base_storage_format {base_storage_format!r}; only a quantised base"
    " is prepared: choose fp32 where all of the base is turned into fp32",
    fault=False,
)
@term("switch")
def preparation_has_effect(kbit_preparations: Any, preparation_row: Any, quantised_base: Any) -> Any:
    """0 when k-bit preparation is on and the base is not quantised."""
    return when(kbit_preparations.norms_fp32[preparation_row] > quantised_base, 0, 1)


@check(
    "quantised_head is {quantised_head!r} with base_storage_format {base_storage_format!r}; only the frozen"
    " head of a quantised base is quantised",
    fault=False,
)
@term("switch")
def quantised_head_has_effect(switches: Any, quantised_head: Any, quantised_base: Any, trains_head: Any) -> Any:
    """0 when the output head should be quantised and the base is not, or the head is trained."""
    asked = switches.value[switches.row_of(quantised_head)]
    return when(asked > quantised_base * (1 - trains_head), 0, 1)


@term("switch")
def head_quantised(quantised_base: Any, switches: Any, quantised_head: Any, trains_head: Any) -> Any:
    """1 when the output head is quantised with the layers; a trained one never is."""
    return (1 - trains_head) * quantised_base * switches.value[switches.row_of(quantised_head)]


@term("parameters")
def head_matrix_parameters(vocabulary_size: Any, embedding_width: Any) -> Any:
    """Weights of the output head, tied to the embeddings or not."""
    return vocabulary_size * embedding_width


@term("parameters")
def untied_parameters(models: Any, model_row: Any, head_untied: Any, head_matrix_parameters: Any) -> Any:
    """The output head once more, where quantising it, or the framework, unties it from the embeddings."""
    return models.tied[model_row] * head_untied * head_matrix_parameters


@term("switch")
def head_untied(trains_head: Any, head_quantised: Any, stack_unties: Any) -> Any:
    """1 when a tied output head is kept apart from the embeddings; a trained one is counted with the adapters."""
    return (1 - trains_head) * when(head_quantised + stack_unties > 0, 1, 0)


@term("parameters")
def converted_linears(
    storage_formats: Any, storage_row: Any, convertible_parameters: Any, vision_convertible_parameters: Any
) -> Any:
    """Linear modules of the layers, and of an image tower, where the format converts them."""
    return storage_formats.converts_linears[storage_row] * (convertible_parameters + vision_convertible_parameters)


@term("switch")
def converted_experts(storage_formats: Any, storage_row: Any, stack_linear_experts: Any, plain_linears: Any) -> Any:
    """1 when routed experts are converted: by a format that knows them, or as the linear modules they once were."""
    as_linears = storage_formats.converts_linears[storage_row] * stack_linear_experts * plain_linears
    return when(storage_formats.converts_experts[storage_row] + as_linears > 0, 1, 0)


@term("parameters")
def expert_matrix_parameters(
    moe_layer_count: Any, expert_count: Any, mlp_matrices: Any, hidden_size: Any, expert_width: Any
) -> Any:
    """Weights of all routed experts, without biases."""
    return moe_layer_count * expert_count * mlp_matrices * hidden_size * expert_width


@term("parameters")
def quantised_layer_parameters(
    converted_linears: Any,
    converted_experts: Any,
    expert_matrix_parameters: Any,
    base_parameter_count: Any,
    preset_base_parameter_count: Any,
) -> Any:
    """Parameters of the layers that a quantised format converts. An entered parameter count scales them with all."""
    entered = base_parameter_count / preset_base_parameter_count
    return (converted_linears + converted_experts * expert_matrix_parameters) * entered


@term("parameters")
def quantised_parameters(quantised_layer_parameters: Any, head_quantised: Any, head_matrix_parameters: Any) -> Any:
    """Parameters that a quantised format converts: linear modules of the layers, and the head when that is asked."""
    return quantised_layer_parameters + head_quantised * head_matrix_parameters


@term("rows")
def expert_output_rows(
    converted_experts: Any,
    moe_layer_count: Any,
    expert_count: Any,
    hidden_size: Any,
    mlp_matrices: Any,
    expert_width: Any,
) -> Any:
    """Output rows of the matrices of all routed experts, where they are converted."""
    one = hidden_size + (mlp_matrices - 1) * expert_width
    return converted_experts * moe_layer_count * expert_count * one


@term("bytes", source=_FORMAT)
def row_scales(storage_formats: Any, storage_row: Any, convertible_output_rows: Any, expert_output_rows: Any) -> Any:
    """Scales that a format keeps per output row of each converted matrix (LLM.int8, GPTQ without groups)."""
    return storage_formats.bytes_per_output_row[storage_row] * (convertible_output_rows + expert_output_rows)


@term("count")
def attention_input_columns(layer_count: Any, hidden_size: Any, fused_qkv: Any, attention_output_width: Any) -> Any:
    """Input columns of the attention matrices of all layers."""
    return layer_count * (hidden_size + 2 * (1 - fused_qkv) * hidden_size + attention_output_width)


@term("count", label="Columns of one MLP")
def mlp_input_columns(mlp_matrices: Any, fused_mlp: Any, hidden_size: Any) -> Any:
    """Input columns of an MLP's matrices but the last."""
    return (mlp_matrices - 1 - fused_mlp) * hidden_size


@term("count")
def expert_input_columns(moe_layer_count: Any, expert_count: Any, mlp_input_columns: Any, expert_width: Any) -> Any:
    """Input columns of the matrices of all routed experts."""
    return moe_layer_count * expert_count * (mlp_input_columns + expert_width)


@term("count", label="MLP columns that have an index")
def indexed_mlp_columns(
    dense_layer_count: Any,
    mlp_input_columns: Any,
    mlp_width: Any,
    converted_experts: Any,
    expert_input_columns: Any,
) -> Any:
    """Input columns of the converted matrices of all MLPs."""
    return dense_layer_count * (mlp_input_columns + mlp_width) + converted_experts * expert_input_columns


@term("bytes", source=_FORMAT)
def column_indices(
    storage_formats: Any, storage_row: Any, attention_input_columns: Any, indexed_mlp_columns: Any
) -> Any:
    """Indices that a format keeps per input column of each converted matrix (GPTQ)."""
    columns = attention_input_columns + indexed_mlp_columns
    return storage_formats.bytes_per_input_column[storage_row] * columns


@term("bytes", source=_FORMAT)
def matrix_offsets(storage_formats: Any, storage_row: Any, convertible_modules: Any) -> Any:
    """One offset for each converted matrix (nested 4-bit)."""
    return storage_formats.bytes_per_matrix[storage_row] * convertible_modules


@term("bytes", source=_FORMAT)
def format_extras(row_scales: Any, column_indices: Any, matrix_offsets: Any) -> Any:
    """What a format keeps beside its blocks."""
    return row_scales + column_indices + matrix_offsets


@term("bytes", source=_FORMAT)
def quantised_weights(quantised_parameters: Any, storage_formats: Any, storage_row: Any, format_extras: Any) -> Any:
    """The converted parameters with their scales."""
    return quantised_parameters * storage_formats.bytes_per_parameter[storage_row] + format_extras


@check(
    "base_storage_format is {base_storage_format!r}, which converts no weight of {base_model}: its layers are not made"
    " of the linear modules that the format takes",
    fault=False,
)
@term("switch")
def format_converts(quantised_base: Any, quantised_parameters: Any) -> Any:
    """0 when the base is to be quantised and nothing of it is."""
    return when((quantised_base > 0) & (quantised_parameters <= 0), 0, 1)


@term("parameters")
def unquantised_parameters(
    base_parameter_count: Any, untied_parameters: Any, quantised_parameters: Any, replaced_head_parameters: Any
) -> Any:
    """Parameters of the base that no format converts."""
    return base_parameter_count + untied_parameters - quantised_parameters - replaced_head_parameters


@term("bytes per parameter", source=_FORMAT)
def unquantised_bytes(rest_prepared: Any, fp32_bytes: Any, storage_formats: Any, storage_row: Any) -> Any:
    """Bytes of a parameter that is not converted."""
    return when(rest_prepared > 0, fp32_bytes, storage_formats.unquantised_bytes[storage_row])


@term("bytes", source=_FORMAT)
def prepared_norms(
    kbit_prepared: Any,
    rest_prepared: Any,
    fp32_bytes: Any,
    bf16_bytes: Any,
    norm_parameters: Any,
    outer_norm_parameters: Any,
) -> Any:
    """What norms in fp32 take more, where only they are."""
    norms = norm_parameters + outer_norm_parameters
    return (kbit_prepared - rest_prepared) * (fp32_bytes - bf16_bytes) * norms


@term("bytes", source=_TRACE)
def frozen_base_weights(
    base_on_card: Any,
    unquantised_parameters: Any,
    unquantised_bytes: Any,
    prepared_norms: Any,
    quantised_weights: Any,
    position_table: Any,
) -> Any:
    """The frozen base in its storage format, and its tables; it gets no gradient and no optimizer state."""
    weights = unquantised_parameters * unquantised_bytes + prepared_norms + quantised_weights
    return base_on_card * (weights + position_table)


@term("switch")
def fp32_adapters(adapter_storages: Any, adapter_storage: Any) -> Any:
    """1 when adapters are kept in fp32."""
    return adapter_storages.fp32[adapter_storages.row_of(adapter_storage)]


@term("bytes per parameter")
def adapter_bytes(fp32_adapters: Any, fp32_bytes: Any, bf16_bytes: Any) -> Any:
    """Bytes of an adapter's parameter, and of its gradient."""
    return when(fp32_adapters > 0, fp32_bytes, bf16_bytes)


@term("bytes")
def adapter_weights(adapter_parameters: Any, adapter_bytes: Any) -> Any:
    """The adapters."""
    return adapter_parameters * adapter_bytes


@term("bytes")
def adapter_gradients(adapter_parameters: Any, adapter_bytes: Any) -> Any:
    """One gradient per trained parameter, while gradients exist."""
    return adapter_parameters * adapter_bytes


@term("count", source=_FORMAT)
def narrow_limit(smallest_tensor: Any, lora_rank: Any) -> Any:
    """Widths below this make adapter matrices that are too small for 8-bit moments."""
    return smallest_tensor / lora_rank


@term("count", source=_FORMAT)
def small_query_matrices(query_input_width: Any, query_output_width: Any, narrow_limit: Any) -> Any:
    """Widths of the query projection's adapter in matrices that are too small for 8-bit moments."""
    return small_tensor(query_input_width, narrow_limit) + small_tensor(query_output_width, narrow_limit)


@term("count", source=_FORMAT)
def small_key_matrices(hidden_size: Any, key_output_width: Any, narrow_limit: Any) -> Any:
    """Widths of the key projection's adapter in matrices that are too small for 8-bit moments."""
    return small_tensor(hidden_size, narrow_limit) + small_tensor(key_output_width, narrow_limit)


@term("count", source=_FORMAT)
def small_value_matrices(value_input_width: Any, value_output_width: Any, narrow_limit: Any) -> Any:
    """Widths of the value projection's adapter in matrices that are too small for 8-bit moments."""
    return small_tensor(value_input_width, narrow_limit) + small_tensor(value_output_width, narrow_limit)


@term("count", source=_FORMAT)
def small_output_matrices(attention_output_width: Any, hidden_size: Any, narrow_limit: Any) -> Any:
    """Widths of the output projection's adapter in matrices that are too small for 8-bit moments."""
    return small_tensor(attention_output_width, narrow_limit) + small_tensor(hidden_size, narrow_limit)


@term("count", source=_FORMAT)
def small_latent_matrices(hidden_size: Any, query_latent_width: Any, narrow_limit: Any) -> Any:
    """Widths of the query latent's adapter in matrices that are too small for 8-bit moments."""
    return small_tensor(hidden_size, narrow_limit) + small_tensor(query_latent_width, narrow_limit)


@term("count", source=_FORMAT, label="Small MLP matrices")
def small_mlp_matrices(hidden_size: Any, mlp_width: Any, narrow_limit: Any) -> Any:
    """Widths of the adapter of an MLP projection in matrices that are too small for 8-bit moments."""
    return small_tensor(hidden_size, narrow_limit) + small_tensor(mlp_width, narrow_limit)


@term("count", source=_FORMAT)
def small_shared_matrices(hidden_size: Any, shared_expert_width: Any, narrow_limit: Any) -> Any:
    """Widths of the adapter of a shared expert's projection in matrices too small for 8-bit moments."""
    return small_tensor(hidden_size, narrow_limit) + small_tensor(shared_expert_width, narrow_limit)


@term("count", source=_FORMAT)
def small_input_matrices(
    query_adapter: Any,
    small_query_matrices: Any,
    key_adapter: Any,
    small_key_matrices: Any,
    value_adapter: Any,
    small_value_matrices: Any,
) -> Any:
    """Those of queries, keys and values of one layer."""
    queries = query_adapter * small_query_matrices
    return queries + key_adapter * small_key_matrices + value_adapter * small_value_matrices


@term("count", source=_FORMAT)
def small_attention_matrices(
    small_input_matrices: Any,
    output_adapter: Any,
    small_output_matrices: Any,
    latent_adapter: Any,
    small_latent_matrices: Any,
) -> Any:
    """Those of one layer's attention."""
    return small_input_matrices + output_adapter * small_output_matrices + latent_adapter * small_latent_matrices


@term("count", source=_FORMAT)
def small_joint_matrix(gate_output_width: Any, narrow_limit: Any) -> Any:
    """The output matrix of an adapter on the gate, joint with up where the two are one matrix."""
    return small_tensor(gate_output_width, narrow_limit)


@term("count", source=_FORMAT)
def small_single_matrix(mlp_width: Any, narrow_limit: Any) -> Any:
    """A matrix of an adapter that is as wide as the MLP."""
    return small_tensor(mlp_width, narrow_limit)


@term("count", source=_FORMAT)
def small_dense_matrices(
    mlp_adapters: Any,
    small_mlp_matrices: Any,
    gate_adapter: Any,
    small_joint_matrix: Any,
    small_single_matrix: Any,
) -> Any:
    """Those of one dense layer's MLP."""
    return mlp_adapters * small_mlp_matrices + gate_adapter * (small_joint_matrix - small_single_matrix)


@term("count", source=_FORMAT)
def small_expert_matrices(shared_adapters: Any, mlp_adapters: Any, small_shared_matrices: Any) -> Any:
    """Those of one layer's shared experts."""
    return shared_adapters * mlp_adapters * small_shared_matrices


@term("parameters", source=_FORMAT)
def small_matrix_parameters(
    trained_rank: Any,
    reached_layers: Any,
    small_attention_matrices: Any,
    reached_dense_layers: Any,
    small_dense_matrices: Any,
    reached_moe_layers: Any,
    small_expert_matrices: Any,
) -> Any:
    """Parameters of low-rank matrices that are too small for 8-bit moments."""
    mlps = reached_dense_layers * small_dense_matrices + reached_moe_layers * small_expert_matrices
    return trained_rank * (reached_layers * small_attention_matrices + mlps)


@term("parameters", source=_FORMAT)
def small_adapter_parameters(
    small_matrix_parameters: Any, small_vector_parameters: Any, small_whole_parameters: Any
) -> Any:
    """Trained parameters in tensors that are too small for 8-bit moments."""
    return small_matrix_parameters + small_vector_parameters + small_whole_parameters


@term("bytes per parameter", source=_FORMAT)
def adapter_state_bytes(optimizers: Any, optimizer_row: Any, fp32_adapters: Any) -> Any:
    """What the optimizer keeps per trained parameter: moments have the parameter's own precision."""
    wide = optimizers.state_bytes[optimizer_row]
    return when(fp32_adapters > 0, wide, optimizers.bf16_state_bytes[optimizer_row])


@term("bytes", source=_FORMAT)
def small_tensor_state(optimizers: Any, optimizer_row: Any, small_adapter_parameters: Any) -> Any:
    """What an 8-bit optimizer keeps more for tensors whose moments stay in fp32."""
    return optimizers.small_tensor_bytes[optimizer_row] * small_adapter_parameters


@term("bytes", source=_TRACE)
def optimizer_state(adapter_parameters: Any, adapter_state_bytes: Any, small_tensor_state: Any) -> Any:
    """What the optimizer keeps between steps."""
    return adapter_parameters * adapter_state_bytes + small_tensor_state


@term("bytes", source=_TRACE)
def token_buffers(tokens_per_micro_batch: Any, batch_bytes: Any) -> Any:
    """The batch: token ids and labels as 64-bit integers, or stored features and labels."""
    return tokens_per_micro_batch * batch_bytes


@term("bytes", source=_FORMAT)
def exact_static_bytes(base_held: Any, adapters_held: Any, optimizer_held: Any) -> Any:
    """Base, adapters and optimizer state, to the byte: on the card between steps too."""
    return base_held + adapters_held + optimizer_held


@term("bytes", source=_TRACE)
def resident_memory(exact_static_bytes: Any, matrix_workspaces: Any, token_buffers: Any, bucket_memory: Any) -> Any:
    """What is on the card at every moment of a step."""
    return exact_static_bytes + matrix_workspaces + token_buffers + bucket_memory


@term("bytes", source=_TRACE)
def accumulated_gradients(gradients_accumulate: Any, gradients_held: Any) -> Any:
    """Gradients of earlier micro-batches, alive during forward and backward from the second one on."""
    return gradients_accumulate * gradients_held

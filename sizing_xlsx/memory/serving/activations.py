"""What a step takes beside weights and cache: the engine's profiling pass, CUDA graphs, context and libraries."""

from typing import Any

from ...formula.declare import Constant, Number, check, overridable, term
from ...formula.primitives import maximum, when

_VLLM = "vLLM's layers, and the pools that public logs of vLLM 0.5 print for two context lengths"
forward_hidden_bytes = Constant(
    6, "bytes per value", "Bytes per hidden value in a step", "stream, norm and attention output in 16 bit; " + _VLLM,
    "published",
)  # fmt: skip
forward_mlp_bytes = Constant(
    6, "bytes per value", "Bytes per MLP value in a step", "gate, up and their product in 16 bit; " + _VLLM, "published"
)


@term("values per token", label="MLP values of a token")
def step_mlp_values(
    dense_layer_count: Any, mlp_width: Any, experts_per_token: Any, expert_width: Any, shared_expert_width: Any,
    tensor_parallel: Any,
) -> Any:  # fmt: skip
    """Width of the widest MLP that a token passes, on one card."""
    dense = when(dense_layer_count > 0, mlp_width, 0)
    return maximum(dense, experts_per_token * expert_width + shared_expert_width) / tensor_parallel


@term("bytes", source=_VLLM)
def forward_activation(
    batched_tokens: Any, hidden_size: Any, forward_hidden_bytes: Any, step_mlp_values: Any, forward_mlp_bytes: Any
) -> Any:
    """What the widest layer holds in a step of the longest kind."""
    return batched_tokens * (hidden_size * forward_hidden_bytes + step_mlp_values * forward_mlp_bytes)


@term("bytes", source="engines.csv")
def sampling_activation(
    sequences_of_step: Any, vocabulary_size: Any, engines: Any, engine_row: Any, batched_tokens: Any, hidden_size: Any,
    bf16_bytes: Any,
) -> Any:  # fmt: skip
    """What choosing the next token of every request holds: scores, their sort and probabilities, the hidden states."""
    scores = sequences_of_step * vocabulary_size * engines.sampler_bytes[engine_row]
    return scores + batched_tokens * hidden_size * bf16_bytes


@overridable(Number(0, 100_000), input_name="own_activation_gb")
@term("GB", label="Activation of a step", source="the larger of a layer and the sampler, and the matrix workspace")
def step_activation_gb(
    forward_activation: Any, sampling_activation: Any, matrix_workspace_bytes: Any, bytes_per_gb: Any
) -> Any:
    """What the profiling pass finds that a step takes beside the weights: what the engine holds back for it."""
    return (maximum(forward_activation, sampling_activation) + matrix_workspace_bytes) / bytes_per_gb


@term("GiB", label="Context and libraries, as listed", source="engines.csv")
def libraries_gib(engines: Any, engine_row: Any, tensor_parallel: Any, pipeline_parallel: Any) -> Any:
    """Memory of the process outside PyTorch, on one card or on several."""
    several = tensor_parallel * pipeline_parallel > 1
    return when(several, engines.libraries_several_gib[engine_row], engines.libraries_one_gib[engine_row])


@overridable(Number(0, 10_000), input_name="own_libraries_gb")
@term("GB", label="Context and libraries", source="engines.csv")
def libraries_gb(libraries_gib: Any, bytes_per_gib: Any, bytes_per_gb: Any) -> Any:
    """Memory of the process outside PyTorch: its context, and with several cards what they talk through."""
    return libraries_gib * bytes_per_gib / bytes_per_gb


@overridable(Number(0, 10_000), input_name="own_graphs_gb")
@term("GB", label="CUDA graphs", source="engines.csv")
def graphs_gb(engines: Any, engine_row: Any, bytes_per_gib: Any, bytes_per_gb: Any) -> Any:
    """Steps that are recorded once and replayed."""
    return engines.graphs_gib[engine_row] * bytes_per_gib / bytes_per_gb


@check(
    "{base_model} reads images; what its image tower holds in a step is not counted: enter own_activation_gb where the"
    " engine's log says it",
    fault=False,
)
@term("switch")
def step_reads_text(vision_parameters: Any) -> Any:
    """0 when the model has an image tower, whose activations no formula holds."""
    return when(vision_parameters > 0, 0, 1)

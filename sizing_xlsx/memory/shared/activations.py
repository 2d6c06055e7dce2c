"""Activations as far as all jobs share them: what a step keeps and works on, in multiples of its tokens."""

from typing import Any

from ...formula.declare import Constant, term
from ...formula.primitives import when

_TRACE = "allocation trace: PyTorch 2.13"
token_id_bytes = Constant(16, "bytes per token", "Token ids and labels", _TRACE, "traced")


@term("bytes", source=_TRACE)
def matrix_workspaces(matrix_workspace_bytes: Any) -> Any:
    """Workspace of the matrix library, for the forward and the backward thread."""
    return 2 * matrix_workspace_bytes


@term("bytes", source=_TRACE)
def layer_activations(tokens_per_micro_batch: Any, layer_bytes: Any) -> Any:
    """Everything one layer keeps for backward."""
    return tokens_per_micro_batch * layer_bytes


@term("bytes", source=_TRACE)
def hidden_tensor(fp32_bytes: Any, tokens_per_micro_batch: Any, hidden_size: Any) -> Any:
    """One fp32 tensor of the residual stream."""
    return fp32_bytes * tokens_per_micro_batch * hidden_size


@term("bytes")
def activation_item(rests_on_traced: Any, traced_activations: Any, published_peak_activations: Any) -> Any:
    """Activations at the peak, by the family the verdict rests on."""
    return when(rests_on_traced > 0, traced_activations, published_peak_activations)

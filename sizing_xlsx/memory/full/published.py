"""Full fine-tuning, published: the state of ZeRO's accounting and the activations of Korthikanti et al. (2022).

S·B·d·(34 + 5·heads·S/d) bytes a layer; without the second term where attention stores no scores, or recomputes them
alone; 2·S·B·d where everything is recomputed. Accurate to about 20 %: gated MLPs, grouped heads and the output scores
are not in it.
"""

from typing import Any

from ...formula.declare import Constant, Number, term
from ...formula.primitives import when

_PAPER = "Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models"
_ARTICLE = "published accounting of state and overhead; accurate to about 20%"
published_replicated_bytes = Constant(
    10, "bytes per value", "Published: a layer, hidden width, on every card of tensor parallel", _PAPER, "published"
)
published_shared_bytes = Constant(
    24, "bytes per value", "Published: a layer, hidden width, divided by tensor parallel", _PAPER, "published"
)
published_score_factor = Constant(5, "bytes per value", "Published: a score of a head", _PAPER, "published")
published_boundary_bytes = Constant(2, "bytes per value", "Published: input of a recomputed layer", _PAPER, "published")
published_overhead_gb = Constant(
    3, "GB", "Published overhead", "2 to 4 GB: buffers, fragments", "published", Number(0, 1000)
)


@term("bytes per token", source=_PAPER)
def published_scores(
    scores_stored: Any, published_score_factor: Any, attention_heads: Any, tokens_per_row: Any, tensor_parallel: Any
) -> Any:
    """Attention scores of one layer, when attention stores them."""
    return scores_stored * published_score_factor * attention_heads * tokens_per_row / tensor_parallel


@term("bytes per token", source=_PAPER)
def published_layer_bytes(
    published_replicated_bytes: Any, published_shared_bytes: Any, tensor_parallel: Any, hidden_size: Any,
    published_scores: Any,
) -> Any:  # fmt: skip
    """What one layer keeps: 34·d, and the scores."""
    width = published_replicated_bytes + published_shared_bytes / tensor_parallel
    return width * hidden_size + published_scores


@term("bytes per token", source=_PAPER)
def published_kept_bytes(
    checkpointing_on: Any, published_boundary_bytes: Any, hidden_size: Any, published_layer_bytes: Any
) -> Any:
    """The same, or a layer's input alone where it is recomputed."""
    return when(checkpointing_on > 0, published_boundary_bytes * hidden_size, published_layer_bytes)


@term("bytes", source=_PAPER)
def published_peak_activations(tokens_per_micro_batch: Any, layer_count: Any, published_kept_bytes: Any) -> Any:
    """Activations of all layers: the first of several pipeline stages has a micro-batch in flight for each."""
    return tokens_per_micro_batch * layer_count * published_kept_bytes


@term("bytes", source=_ARTICLE)
def published_allocated(model_state: Any, published_peak_activations: Any) -> Any:
    """State and activations of one card: a plain sum."""
    return model_state + published_peak_activations


@term("bytes", source=_ARTICLE)
def published_allowance(published_overhead_gb: Any, bytes_per_gb: Any) -> Any:
    """Buffers and fragments."""
    return published_overhead_gb * bytes_per_gb


@term("bytes", source=_ARTICLE)
def published_reserved(published_allocated: Any, published_allowance: Any) -> Any:
    """State, activations and overhead of one card."""
    return published_allocated + published_allowance


@term("GB", source="GPUs sheet: a label counts in GiB", label="Capacity on the label")
def nameplate_gb(gpus: Any, gpu_row: Any, bytes_per_gb: Any) -> Any:
    """All memory of the card in decimal GB, as its label means it: more than the framework can use."""
    return gpus.driver_total_bytes[gpu_row] / bytes_per_gb


@term("switch", source=_ARTICLE)
def published_fits_label(published_reserved: Any, nameplate_gb: Any, bytes_per_gb: Any) -> Any:
    """1 when the published total is within what the label says, whatever others hold of the card."""
    return when(published_reserved <= nameplate_gb * bytes_per_gb, 1, 0)


@term("GB", source=_ARTICLE)
def published_others_gb(used_by_others_gb: Any) -> Any:
    """What else is on the card beside the published total: the context and driver, and other programs."""
    return used_by_others_gb


@term("switch", source=_ARTICLE)
def published_fits_usable(published_reserved: Any, published_capacity: Any) -> Any:
    """1 when the published total is within the usable capacity less what else is on the card."""
    return when(published_reserved <= published_capacity, 1, 0)

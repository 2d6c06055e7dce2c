"""What serving takes from other jobs as it is: the card, the storage formats, the model's own limits.

A module is taken whole where all of it applies; of these only the names below do.
"""

from ..full.state import stage_layers  # noqa: F401
from ..lora.base import base_storage_format  # noqa: F401
from ..lora.resident import (  # noqa: F401
    attention_input_columns,
    column_indices,
    expert_input_columns,
    expert_matrix_parameters,
    expert_output_rows,
    format_as_published,
    format_converts,
    format_extras,
    head_matrix_parameters,
    indexed_mlp_columns,
    matrix_offsets,
    mlp_input_columns,
    published_format,
    published_format_row,
    quantised_base,
    quantised_head,
    quantised_layer_parameters,
    quantised_parameters,
    quantised_weights,
    row_scales,
    storage_row,
    untied_parameters,
)
from ..shared.card import (  # noqa: F401
    capacity_known,
    card_runs_cuda,
    gpu_choice,
    gpu_row,
    gpu_usable_capacity_gb,
    matrix_workspace_bytes,
    other_tenants_gb,
)
from ..shared.limits import rounding_guard  # noqa: F401

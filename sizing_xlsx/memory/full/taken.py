"""What full fine-tuning takes from other jobs as it is: the run without its optimizer, the stack's loss, the band.

A module is taken whole where all of it applies; of these only the names below do.
"""

from ..lora.form import model_form_row  # noqa: F401
from ..lora.kept import keeps_model_output, output_kept  # noqa: F401
from ..lora.layer import autocast_active, repeated_query_bytes  # noqa: F401
from ..lora.stack import (  # noqa: F401
    loss_backward_bytes,
    loss_forward_bytes,
    loss_shift_bytes,
    stack_fused_norms,
    stack_keeps_output,
    stack_repeats_kv,
    stack_row,
    training_stack,
)
from ..shared.allocator import (  # noqa: F401
    reserve_activation_divisor,
    reserve_for_blocks,
    reserve_for_recomputing,
    reserve_layer_mib,
    reserve_logit_bytes,
    reserve_recomputed_bytes,
    traced_reserved,
)
from ..shared.run import (  # noqa: F401
    activation_checkpointing,
    attention_implementation,
    autocast_on,
    average_below_longest,
    average_sequence_length,
    average_tokens,
    batch_size,
    checkpointing_on,
    compute_bytes,
    compute_precision,
    computed_half_type,
    gradient_accumulation,
    gradients_accumulate,
    kernel_row,
    precision_row,
    scores_stored,
    sequence_length,
    sequence_within_model,
    tokens_per_micro_batch,
    verdict_basis,
)

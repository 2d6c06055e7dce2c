"""The training stack: what a framework and its loss kernel do differently, as coefficients of one set of formulas."""

from typing import Any

from ...formula.declare import Choice, Constant, Input, Number, Whole, check, overridable, term
from ...formula.primitives import equal, floor, minimum, when

_STACK = "the chosen row of the training stacks"
_FUSED = "read from fused kernels and held against public runs of them"
training_stack = Input(
    "text",
    Choice("stacks"),
    "Plain loop, transformers 5",
    "Training stack",
    "The loop and its loss kernel: most of the difference between two people's runs.",
)
fused_norm_bytes = Constant(4, "bytes per value", "Inputs of a layer's norms, fused kernels", _FUSED, "traced")


@term("row")
def stack_row(stacks: Any, training_stack: Any) -> Any:
    """Row of the training stack in its table."""
    return stacks.row_of(training_stack)


@overridable(Number(0, 100))
@term("bytes per value", source=_STACK)
def loss_forward_bytes(stacks: Any, stack_row: Any) -> Any:
    """Bytes per output score alive in the loss's forward, when the micro-batch is one row."""
    return stacks.forward_logit_bytes[stack_row]


@overridable(Number(0, 100))
@term("bytes per value", source=_STACK)
def loss_shift_bytes(stacks: Any, stack_row: Any) -> Any:
    """Bytes per output score more when the micro-batch has several rows: shifting the labels then copies."""
    return stacks.shifted_logit_bytes[stack_row]


@overridable(Number(0, 100))
@term("bytes per value", source=_STACK)
def loss_backward_bytes(stacks: Any, stack_row: Any) -> Any:
    """Bytes per output score alive in the loss's backward, the model's output dropped."""
    return stacks.backward_logit_bytes[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK)
def stack_keeps_output(stacks: Any, stack_row: Any) -> Any:
    """1 when the stack leaves it to the loop whether the model's output is kept; trainers drop it."""
    return stacks.keeps_output[stack_row]


@overridable(Number(0, 100))
@term("bytes per value", source=_STACK)
def held_score_bytes(stacks: Any, stack_row: Any) -> Any:
    """Bytes per output score that the framework's own loop holds from one step's forward to the next one's."""
    return stacks.held_logit_bytes[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK)
def stack_fused_norms(stacks: Any, stack_row: Any) -> Any:
    """1 when norms are fused kernels that keep no fp32 copy."""
    return stacks.fused_norms[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK)
def stack_fused_adapters(stacks: Any, stack_row: Any) -> Any:
    """1 when adapters are computed by fused kernels."""
    return stacks.fused_adapters[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK)
def stack_fused_loss(stacks: Any, stack_row: Any) -> Any:
    """1 when output head and loss are one kernel, which never holds all output scores."""
    return stacks.fused_loss[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK)
def stack_unties(stacks: Any, stack_row: Any) -> Any:
    """1 when the framework keeps a tied output head apart from the embeddings."""
    return stacks.unties[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK)
def stack_linear_experts(stacks: Any, stack_row: Any) -> Any:
    """1 when experts are linear modules of their own, which a quantised format converts (transformers before 5)."""
    return stacks.linear_experts[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK, label="Stack packs query, key and value")
def stack_packs_qkv(stacks: Any, stack_row: Any) -> Any:
    """1 when queries, keys and values come from one matrix of the framework's own, and share an adapter's input."""
    return stacks.packed_qkv[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK, label="Stack repeats keys and values")
def stack_repeats_kv(stacks: Any, stack_row: Any) -> Any:
    """1 when keys and values are repeated for the queries that share them, and kept so, whatever the kernel."""
    return stacks.repeats_kv[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK)
def stack_frees_head_input(stacks: Any, stack_row: Any) -> Any:
    """1 when the loss is computed after the model has returned: the input of a frozen output head is gone by then."""
    return stacks.frees_head_input[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK)
def stack_fuses_optimizer(stacks: Any, stack_row: Any) -> Any:
    """1 when the framework's Adam updates in one kernel, without temporaries."""
    return stacks.fused_optimizer[stack_row]


@overridable(Number(0, 100))
@term("bytes per value", source=_STACK)
def position_table_bytes(stacks: Any, stack_row: Any) -> Any:
    """Bytes per position and value of a head, of tables of all positions; 0 when each step makes its own."""
    return stacks.position_bytes[stack_row]


@term("bytes", source=_STACK)
def position_table(position_table_bytes: Any, maximum_positions: Any, head_dimension: Any) -> Any:
    """Sines and cosines of all positions that the model takes, where the framework keeps them on the card."""
    return position_table_bytes * maximum_positions * head_dimension


@overridable(Number(0, 100))
@term("bytes per parameter", source=_STACK)
def dequantised_bytes(stacks: Any, stack_row: Any) -> Any:
    """Bytes per parameter of a quantised matrix while it is turned into 16 bit: the result, and what makes it."""
    return stacks.dequantised_bytes[stack_row]


@term("switch", source=_STACK)
def stack_own_layers(stacks: Any, stack_row: Any) -> Any:
    """1 when the layers are the framework's own code, not transformers': they fill no KV cache while training."""
    return stacks.own_layers[stack_row]


@term("switch", source=_STACK)
def stack_own_forms(stacks: Any, stack_row: Any) -> Any:
    """1 when what layers keep in the framework's own code is known by forms of its own."""
    return stacks.own_forms[stack_row]


@overridable(Whole(0, 1))
@term("switch", source=_STACK)
def stack_reentrant(stacks: Any, stack_row: Any) -> Any:
    """1 when checkpointing is of the older, reentrant kind: each layer's backward is a backward of its own."""
    return stacks.reentrant[stack_row]


@term("switch", source=_STACK)
def stack_masks_layers(stacks: Any, stack_row: Any) -> Any:
    """1 when each layer whose window is shorter than the row keeps a mask of its own, as traced."""
    return stacks.masks_layers[stack_row]


@overridable(Number(0, 100_000))
@term("bytes per value", source=_STACK)
def loss_row_bytes(stacks: Any, stack_row: Any) -> Any:
    """Bytes per row and vocabulary entry of a loss that works through each row in pieces."""
    return stacks.row_logit_bytes[stack_row]


@term("bytes", source=_STACK)
def loss_rows(loss_row_bytes: Any, batch_size: Any, output_width: Any) -> Any:
    """The piece of each row that such a loss works on."""
    return loss_row_bytes * batch_size * output_width


@overridable(Number(0, 100))
@term("bytes per value", source=_STACK)
def fused_loss_bytes(stacks: Any, stack_row: Any) -> Any:
    """Bytes per output score of the piece that a fused output head and loss work on."""
    return stacks.fused_logit_bytes[stack_row]


@term("count")
def loss_pieces(output_width: Any, hidden_size: Any) -> Any:
    """Pieces that a fused output head and loss work in: as many as the outputs are wider than the model."""
    return 1 + floor((output_width - 1) / hidden_size)


@term("bytes", source=_FUSED)
def fused_loss_piece(stack_fused_loss: Any, fused_loss_bytes: Any, logit_values: Any, loss_pieces: Any) -> Any:
    """Output scores of one piece."""
    return stack_fused_loss * fused_loss_bytes * logit_values / loss_pieces


@term("bytes", source=_STACK)
def shifted_logits(loss_shift_bytes: Any, logit_values: Any, tokens_per_row: Any, output_width: Any) -> Any:
    """Output scores that shifting the labels copies: all of several rows, none of a single one."""
    beyond_one_row = logit_values - tokens_per_row * output_width
    return minimum(loss_shift_bytes * logit_values, 2 * loss_shift_bytes * beyond_one_row)


@check(
    "training_stack is {training_stack!r} with base_storage_format {base_storage_format!r}; how its own code turns such"
    " a base into 16 bit has not been traced, and a run of that kind may need more",
    fault=False,
)
@term("switch")
def stack_takes_format(
    storage_formats: Any,
    storage_row: Any,
    quantised_base: Any,
    stacks: Any,
    stack_row: Any,
    stack_own_layers: Any,
    bf16_bytes: Any,
) -> Any:
    """0 when the stack has code of its own and the base is in a format that this was not traced with."""
    below_a_byte = when(2 * storage_formats.bytes_per_parameter[storage_row] < bf16_bytes, 1, 0)
    return 1 - stack_own_layers * quantised_base * (1 - below_a_byte * stacks.traced_nf4[stack_row])


@check(
    "training_stack is {training_stack!r}; what its own layers keep is described over models of Llama form and a"
    " few others, and the layers of {base_model} have the form {layer_form}",
    fault=False,
)
@term("switch")
def stack_described(stack_own_layers: Any, framework_form: Any, layer_form: Any) -> Any:
    """0 when the stack has layers of its own and the model's are neither of Llama form nor of a form known there."""
    return when(equal(layer_form, "llama"), 1, 1 - stack_own_layers * (1 - framework_form))

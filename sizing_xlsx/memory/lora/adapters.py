"""Adapters: which linear modules have one, how many parameters that makes, and what their inputs weigh."""

from typing import Any

from ...formula.declare import Choice, Input, Whole, check, term
from ...formula.primitives import given, when

lora_rank = Input("count", Whole(1, 8_192), 8, "LoRA rank", "Inner width of each adapter; 8 to 64 is usual.")
adapter_targets = Input(
    "text",
    Choice("target_sets"),
    "All seven",
    "Adapter targets",
    "Which linear modules get an adapter; each keeps a copy of its input.",
)
adapter_layers = Input(
    "layers",
    Whole(1, "layer_count", "all"),
    "all",
    "Adapter layers",
    '"all", or the number of top layers; the backward pass stops below the lowest one.',
)
lora_dropout = Input(
    "text",
    Choice("switches"),
    "Off",
    "LoRA dropout",
    "On when its rate is above 0; keeps a mask for each adapter's input.",
)

target_query = Input(
    "text", Choice("switches"), "On", "Adapter on query", "q_proj; counts when Adapter targets is Own choice."
)
target_key = Input(
    "text", Choice("switches"), "On", "Adapter on key", "k_proj; counts when Adapter targets is Own choice."
)
target_value = Input(
    "text", Choice("switches"), "On", "Adapter on value", "v_proj; counts when Adapter targets is Own choice."
)
target_output = Input(
    "text", Choice("switches"), "On", "Adapter on output", "o_proj; counts when Adapter targets is Own choice."
)
target_gate = Input(
    "text", Choice("switches"), "On", "Adapter on gate", "gate_proj; counts when Adapter targets is Own choice."
)
target_up = Input("text", Choice("switches"), "On", "Adapter on up", "up_proj; counts when targets are Own choice.")
target_down = Input(
    "text", Choice("switches"), "On", "Adapter on down", "down_proj; counts when Adapter targets is Own choice."
)


@term("row")
def target_set_row(target_sets: Any, adapter_targets: Any) -> Any:
    """Row of the named set of targets."""
    return target_sets.row_of(adapter_targets)


@term("switch")
def own_targets(target_sets: Any, target_set_row: Any) -> Any:
    """1 when the seven switches decide, 0 when a named set does."""
    return target_sets.own[target_set_row]


@term("layers")
def reached_layers(adapter_layers: Any, layer_count: Any) -> Any:
    """Layers that the backward pass reaches (Lb): from the top down to the lowest adapter."""
    return given(adapter_layers, layer_count)


@term("layers")
def unreached_layers(layer_count: Any, reached_layers: Any) -> Any:
    """Frozen layers below the lowest adapter: nothing of theirs is kept for backward."""
    return layer_count - reached_layers


@term("switch")
def dropout_on(switches: Any, lora_dropout: Any) -> Any:
    """1 when adapters drop a share of their input."""
    return switches.value[switches.row_of(lora_dropout)]


@term("switch")
def query_adapter(own_targets: Any, switches: Any, target_query: Any, target_sets: Any, target_set_row: Any) -> Any:
    """1 when the query projection has an adapter."""
    own = switches.value[switches.row_of(target_query)]
    return when(own_targets > 0, own, target_sets.query[target_set_row])


@term("switch")
def key_adapter(own_targets: Any, switches: Any, target_key: Any, target_sets: Any, target_set_row: Any) -> Any:
    """1 when the key projection has an adapter."""
    own = switches.value[switches.row_of(target_key)]
    return when(own_targets > 0, own, target_sets.key[target_set_row])


@term("switch")
def value_adapter(own_targets: Any, switches: Any, target_value: Any, target_sets: Any, target_set_row: Any) -> Any:
    """1 when the value projection has an adapter."""
    own = switches.value[switches.row_of(target_value)]
    return when(own_targets > 0, own, target_sets.value[target_set_row])


@term("switch")
def output_adapter(own_targets: Any, switches: Any, target_output: Any, target_sets: Any, target_set_row: Any) -> Any:
    """1 when the output projection has an adapter."""
    own = switches.value[switches.row_of(target_output)]
    return when(own_targets > 0, own, target_sets.output[target_set_row])


@term("switch")
def gate_adapter(own_targets: Any, switches: Any, target_gate: Any, target_sets: Any, target_set_row: Any) -> Any:
    """1 when the gate projection has an adapter."""
    own = switches.value[switches.row_of(target_gate)]
    return when(own_targets > 0, own, target_sets.gate[target_set_row])


@term("switch")
def up_adapter(own_targets: Any, switches: Any, target_up: Any, target_sets: Any, target_set_row: Any) -> Any:
    """1 when the up projection has an adapter."""
    own = switches.value[switches.row_of(target_up)]
    return when(own_targets > 0, own, target_sets.up[target_set_row])


@term("switch")
def down_adapter(own_targets: Any, switches: Any, target_down: Any, target_sets: Any, target_set_row: Any) -> Any:
    """1 when the down projection has an adapter."""
    own = switches.value[switches.row_of(target_down)]
    return when(own_targets > 0, own, target_sets.down[target_set_row])


@term("count")
def adapters_on_hidden(
    query_adapter: Any, key_adapter: Any, value_adapter: Any, gate_adapter: Any, up_adapter: Any
) -> Any:
    """Adapters of a layer that read the residual stream."""
    return query_adapter + key_adapter + value_adapter + gate_adapter + up_adapter


@term("count")
def adapters_per_layer(adapters_on_hidden: Any, output_adapter: Any, down_adapter: Any) -> Any:
    """Adapters of a layer."""
    return adapters_on_hidden + output_adapter + down_adapter


@term("count")
def adapter_input_width(
    adapters_on_hidden: Any,
    hidden_size: Any,
    output_adapter: Any,
    query_width: Any,
    down_adapter: Any,
    mlp_width: Any,
) -> Any:
    """Sum of the input widths of a layer's adapters."""
    return adapters_on_hidden * hidden_size + output_adapter * query_width + down_adapter * mlp_width


@term("count")
def adapter_output_width(
    query_adapter: Any,
    query_width: Any,
    key_adapter: Any,
    value_adapter: Any,
    kv_width: Any,
    output_adapter: Any,
    down_adapter: Any,
    hidden_size: Any,
    gate_adapter: Any,
    up_adapter: Any,
    mlp_width: Any,
) -> Any:
    """Sum of the output widths of a layer's adapters."""
    attention = query_adapter * query_width + (key_adapter + value_adapter) * kv_width
    return attention + (output_adapter + down_adapter) * hidden_size + (gate_adapter + up_adapter) * mlp_width


@term("parameters")
def adapter_parameters(lora_rank: Any, reached_layers: Any, adapter_input_width: Any, adapter_output_width: Any) -> Any:
    """Trained parameters (Na): rank times (input + output width), over all targets of all reached layers."""
    return lora_rank * reached_layers * (adapter_input_width + adapter_output_width)


@term("share")
def trained_share(adapter_parameters: Any, base_parameter_count: Any) -> Any:
    """Trained parameters as a share of the base's."""
    return adapter_parameters / base_parameter_count


@check('adapter_layers is {adapter_layers!r}; the model has {layer_count} layers: enter 1 to {layer_count} or "all"')
@term("switch")
def adapter_layers_exist(reached_layers: Any, layer_count: Any) -> Any:
    """1 when the model has as many layers as are to be adapted."""
    return when(reached_layers <= layer_count, 1, 0)


@check("adapter_targets is {adapter_targets!r} and all seven targets are Off; switch at least one On")
@term("switch")
def some_target_on(adapters_per_layer: Any) -> Any:
    """1 when at least one linear module has an adapter."""
    return when(adapters_per_layer > 0, 1, 0)

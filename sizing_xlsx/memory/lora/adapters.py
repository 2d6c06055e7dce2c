"""Adapters: which linear modules have one, how many parameters that makes, and what their inputs weigh."""

from typing import Any

from ...formula.declare import Choice, Input, Whole, check, term
from ...formula.primitives import floor, given, maximum, when

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


@term("switch")
def default_targets(target_sets: Any, target_set_row: Any) -> Any:
    """1 when PEFT's own choice for the family decides."""
    return target_sets.default[target_set_row]


@term("layers")
def reached_layers(adapts_modules: Any, adapter_layers: Any, layer_count: Any, trains_prefix: Any) -> Any:
    """Layers that the backward pass reaches (Lb): down to the lowest adapter; all of a prefix, none of a head."""
    return when(adapts_modules > 0, given(adapter_layers, layer_count), trains_prefix * layer_count)


@term("layers")
def unreached_layers(layer_count: Any, reached_layers: Any) -> Any:
    """Frozen layers below the lowest adapter: nothing of theirs is kept for backward."""
    return layer_count - reached_layers


@term("switch")
def dropout_on(switches: Any, lora_dropout: Any) -> Any:
    """1 when adapters drop a share of their input."""
    return switches.value[switches.row_of(lora_dropout)]


@term("switch")
def query_exists(adapts_modules: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the method adapts modules, and the family has a projection of its own for query."""
    return adapts_modules * layer_forms.slot_query[form_row]


@term("switch")
def query_named(target_sets: Any, target_set_row: Any, default_targets: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the named set, or PEFT's default, has the query projection."""
    return target_sets.query[target_set_row] + default_targets * layer_forms.default_query[form_row]


@term("switch")
def query_adapter(query_exists: Any, own_targets: Any, switches: Any, target_query: Any, query_named: Any) -> Any:
    """1 when the query projection has an adapter."""
    own = switches.value[switches.row_of(target_query)]
    return query_exists * when(own_targets > 0, own, query_named)


@term("switch")
def key_exists(adapts_modules: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the method adapts modules, and the family has a projection of its own for key."""
    return adapts_modules * layer_forms.slot_key[form_row]


@term("switch")
def key_named(target_sets: Any, target_set_row: Any, default_targets: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the named set, or PEFT's default, has the key projection."""
    return target_sets.key[target_set_row] + default_targets * layer_forms.default_key[form_row]


@term("switch")
def key_adapter(key_exists: Any, own_targets: Any, switches: Any, target_key: Any, key_named: Any) -> Any:
    """1 when the key projection has an adapter."""
    own = switches.value[switches.row_of(target_key)]
    return key_exists * when(own_targets > 0, own, key_named)


@term("switch")
def value_exists(adapts_modules: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the method adapts modules, and the family has a projection of its own for value."""
    return adapts_modules * layer_forms.slot_value[form_row]


@term("switch")
def value_named(target_sets: Any, target_set_row: Any, default_targets: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the named set, or PEFT's default, has the value projection."""
    return target_sets.value[target_set_row] + default_targets * layer_forms.default_value[form_row]


@term("switch")
def value_adapter(value_exists: Any, own_targets: Any, switches: Any, target_value: Any, value_named: Any) -> Any:
    """1 when the value projection has an adapter."""
    own = switches.value[switches.row_of(target_value)]
    return value_exists * when(own_targets > 0, own, value_named)


@term("switch")
def output_exists(adapts_modules: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the method adapts modules, and the family has a projection of its own for output."""
    return adapts_modules * layer_forms.slot_output[form_row]


@term("switch")
def output_named(target_sets: Any, target_set_row: Any, default_targets: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the named set, or PEFT's default, has the output projection."""
    return target_sets.output[target_set_row] + default_targets * layer_forms.default_output[form_row]


@term("switch")
def output_adapter(output_exists: Any, own_targets: Any, switches: Any, target_output: Any, output_named: Any) -> Any:
    """1 when the output projection has an adapter."""
    own = switches.value[switches.row_of(target_output)]
    return output_exists * when(own_targets > 0, own, output_named)


@term("switch")
def gate_exists(adapts_modules: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the method adapts modules, and the family has a projection of its own for gate."""
    return adapts_modules * layer_forms.slot_gate[form_row]


@term("switch")
def gate_named(target_sets: Any, target_set_row: Any, default_targets: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the named set, or PEFT's default, has the gate projection."""
    return target_sets.gate[target_set_row] + default_targets * layer_forms.default_gate[form_row]


@term("switch")
def gate_adapter(gate_exists: Any, own_targets: Any, switches: Any, target_gate: Any, gate_named: Any) -> Any:
    """1 when the gate projection has an adapter."""
    own = switches.value[switches.row_of(target_gate)]
    return gate_exists * when(own_targets > 0, own, gate_named)


@term("switch")
def up_exists(adapts_modules: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the method adapts modules, and the family has a projection of its own for up."""
    return adapts_modules * layer_forms.slot_up[form_row]


@term("switch")
def up_named(target_sets: Any, target_set_row: Any, default_targets: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the named set, or PEFT's default, has the up projection."""
    return target_sets.up[target_set_row] + default_targets * layer_forms.default_up[form_row]


@term("switch")
def up_adapter(up_exists: Any, own_targets: Any, switches: Any, target_up: Any, up_named: Any) -> Any:
    """1 when the up projection has an adapter."""
    own = switches.value[switches.row_of(target_up)]
    return up_exists * when(own_targets > 0, own, up_named)


@term("switch")
def down_exists(adapts_modules: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the method adapts modules, and the family has a projection of its own for down."""
    return adapts_modules * layer_forms.slot_down[form_row]


@term("switch")
def down_named(target_sets: Any, target_set_row: Any, default_targets: Any, layer_forms: Any, form_row: Any) -> Any:
    """1 when the named set, or PEFT's default, has the down projection."""
    return target_sets.down[target_set_row] + default_targets * layer_forms.default_down[form_row]


@term("switch")
def down_adapter(down_exists: Any, own_targets: Any, switches: Any, target_down: Any, down_named: Any) -> Any:
    """1 when the down projection has an adapter."""
    own = switches.value[switches.row_of(target_down)]
    return down_exists * when(own_targets > 0, own, down_named)


@term("switch")
def latent_adapter(layer_forms: Any, form_row: Any, query_latent_width: Any, query_adapter: Any) -> Any:
    """1 when the projection into the query latent has an adapter: it goes with the queries'."""
    return layer_forms.slot_latent[form_row] * when(query_latent_width > 0, query_adapter, 0)


# ---------------------------------------------------------------------- widths of the modules
@term("count")
def query_input_width(query_latent_width: Any, hidden_size: Any) -> Any:
    """Input width of the query projection: the residual stream, or the query latent."""
    return when(query_latent_width > 0, query_latent_width, hidden_size)


@term("count")
def query_output_width(query_width: Any, fused_qkv: Any, framework_form: Any, kv_width: Any) -> Any:
    """Output width of the query projection; keys and values too where they are one matrix with one adapter."""
    return query_width + 2 * fused_qkv * (1 - framework_form) * kv_width


@term("count")
def key_output_width(kv_latent_width: Any, rope_dimension: Any, kv_width: Any) -> Any:
    """Output width of the key projection, or of the one into the KV latent."""
    return when(kv_latent_width > 0, kv_latent_width + rope_dimension, kv_width)


@term("count")
def value_input_width(kv_latent_width: Any, hidden_size: Any) -> Any:
    """Input width of the value projection, or of the one out of the KV latent."""
    return when(kv_latent_width > 0, kv_latent_width, hidden_size)


@term("count")
def value_output_width(kv_latent_width: Any, kv_expansion_width: Any, kv_width: Any) -> Any:
    """Output width of the value projection, or of the one out of the KV latent."""
    return when(kv_latent_width > 0, kv_expansion_width, kv_width)


@term("count")
def gate_output_width(fused_mlp: Any, mlp_width: Any) -> Any:
    """Output width of the gate projection; of gate and up where they are one matrix."""
    return (1 + fused_mlp) * mlp_width


# ---------------------------------------------------------------------- sums over a layer
@term("count")
def attention_adapters(
    query_adapter: Any, key_adapter: Any, value_adapter: Any, output_adapter: Any, latent_adapter: Any
) -> Any:
    """Adapters of a layer's attention."""
    return query_adapter + key_adapter + value_adapter + output_adapter + latent_adapter


@term("count", label="MLP adapters")
def mlp_adapters(gate_adapter: Any, up_adapter: Any, down_adapter: Any) -> Any:
    """Adapters of an MLP."""
    return gate_adapter + up_adapter + down_adapter


@term("count")
def attention_input_width(
    query_adapter: Any,
    query_input_width: Any,
    key_adapter: Any,
    latent_adapter: Any,
    hidden_size: Any,
    value_adapter: Any,
    value_input_width: Any,
    output_adapter: Any,
    attention_output_width: Any,
) -> Any:
    """Sum of the input widths of the adapters of a layer's attention."""
    first = query_adapter * query_input_width + (key_adapter + latent_adapter) * hidden_size
    return first + value_adapter * value_input_width + output_adapter * attention_output_width


@term("count")
def attention_adapter_output_width(
    query_adapter: Any,
    query_output_width: Any,
    key_adapter: Any,
    key_output_width: Any,
    value_adapter: Any,
    value_output_width: Any,
    output_adapter: Any,
    hidden_size: Any,
) -> Any:
    """Sum of their output widths, without that of the query latent."""
    first = query_adapter * query_output_width + key_adapter * key_output_width
    return first + value_adapter * value_output_width + output_adapter * hidden_size


@term("count", label="MLP adapter input width")
def mlp_input_width(gate_adapter: Any, up_adapter: Any, hidden_size: Any, down_adapter: Any, mlp_width: Any) -> Any:
    """Sum of the input widths of the adapters of a dense layer's MLP."""
    return (gate_adapter + up_adapter) * hidden_size + down_adapter * mlp_width


@term("count", label="MLP adapter output width")
def mlp_adapter_output_width(
    gate_adapter: Any, gate_output_width: Any, up_adapter: Any, mlp_width: Any, down_adapter: Any, hidden_size: Any
) -> Any:
    """Sum of their output widths."""
    return gate_adapter * gate_output_width + up_adapter * mlp_width + down_adapter * hidden_size


@term("switch")
def shared_adapters(layer_forms: Any, form_row: Any, shared_expert_width: Any) -> Any:
    """1 when shared experts are modules of their own that take adapters; routed experts take none here."""
    return layer_forms.slot_shared[form_row] * when(shared_expert_width > 0, 1, 0)


@term("count")
def shared_adapter_input_width(
    shared_adapters: Any,
    gate_adapter: Any,
    up_adapter: Any,
    hidden_size: Any,
    down_adapter: Any,
    shared_expert_width: Any,
) -> Any:
    """Sum of the input widths of the adapters of a layer's shared experts."""
    wide = (gate_adapter + up_adapter) * hidden_size
    return shared_adapters * (wide + down_adapter * shared_expert_width)


@term("count")
def shared_adapter_output_width(
    shared_adapters: Any,
    gate_adapter: Any,
    up_adapter: Any,
    shared_expert_width: Any,
    down_adapter: Any,
    hidden_size: Any,
) -> Any:
    """Sum of their output widths."""
    wide = (gate_adapter + up_adapter) * shared_expert_width
    return shared_adapters * (wide + down_adapter * hidden_size)


# ---------------------------------------------------------------------- which layers
@term("layers", label="Unreached expert layers by pattern")
def patterned_unreached_moe_layers(unreached_layers: Any, moe_offset: Any, moe_period: Any) -> Any:
    """Layers with experts below the lowest adapter, where they follow a pattern."""
    return maximum(0, floor((unreached_layers - 1 - moe_offset) / maximum(1, moe_period)) + 1)


@term("layers", label="Unreached expert layers")
def unreached_moe_layers(
    moe_period: Any, patterned_unreached_moe_layers: Any, moe_layer_count: Any, unreached_layers: Any, layer_count: Any
) -> Any:
    """Layers with experts below the lowest adapter; in proportion where they follow no pattern."""
    return when(moe_period > 0, patterned_unreached_moe_layers, moe_layer_count * unreached_layers / layer_count)


@term("layers", label="Reached expert layers")
def reached_moe_layers(moe_layer_count: Any, unreached_moe_layers: Any) -> Any:
    """Layers with experts that the backward pass reaches."""
    return moe_layer_count - unreached_moe_layers


@term("layers", label="Reached dense layers")
def reached_dense_layers(reached_layers: Any, reached_moe_layers: Any) -> Any:
    """Layers with a plain MLP that the backward pass reaches."""
    return reached_layers - reached_moe_layers


@term("count")
def dense_adapter_width(reached_dense_layers: Any, mlp_input_width: Any, mlp_adapter_output_width: Any) -> Any:
    """Input and output widths of the adapters of all dense MLPs."""
    return reached_dense_layers * (mlp_input_width + mlp_adapter_output_width)


@term("count")
def shared_adapter_width(
    reached_moe_layers: Any, shared_adapter_input_width: Any, shared_adapter_output_width: Any
) -> Any:
    """Input and output widths of the adapters of all shared experts."""
    return reached_moe_layers * (shared_adapter_input_width + shared_adapter_output_width)


@term("count")
def attention_adapter_width(
    reached_layers: Any,
    attention_input_width: Any,
    attention_adapter_output_width: Any,
    latent_adapter: Any,
    query_latent_width: Any,
) -> Any:
    """Input and output widths of the adapters of all attention."""
    outputs = attention_adapter_output_width + latent_adapter * query_latent_width
    return reached_layers * (attention_input_width + outputs)


@term("share")
def trained_share(adapter_parameters: Any, base_parameter_count: Any) -> Any:
    """Trained parameters as a share of the base's."""
    return adapter_parameters / base_parameter_count


@check(
    "adapter_layers is {adapter_layers!r}; the model has {layer_count} {layer_count:layer|layers}: enter 1 to"
    ' {layer_count} or "all"'
)
@term("switch")
def adapter_layers_exist(reached_layers: Any, layer_count: Any) -> Any:
    """1 when the model has as many layers as are to be adapted."""
    return when(reached_layers <= layer_count, 1, 0)


@check(
    "adapter_targets is {adapter_targets!r}, which reaches no module of {base_model}; choose another set, or Own choice"
    " with at least one target On"
)
@term("switch")
def some_target_on(adapter_parameters: Any) -> Any:
    """1 when something is trained: at least one linear module has an adapter, or the method needs none."""
    return when(adapter_parameters > 0, 1, 0)

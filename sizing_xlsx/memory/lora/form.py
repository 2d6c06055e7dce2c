"""The coefficients of the model's layer form, each a term of its own: bytes that a layer keeps, by tensor width."""

from typing import Any

from ...formula.declare import term
from ...formula.primitives import when

_FORM = "layer_forms.toml: the allocation trace of the family's own layers"


@term("row")
def model_form_row(layer_forms: Any, layer_form: Any) -> Any:
    """Row of the model's layer form in its table, as its class in transformers has it."""
    return layer_forms.row_of(layer_form)


@term("switch", source=_FORM)
def framework_form(stack_own_forms: Any, layer_forms: Any, model_form_row: Any) -> Any:
    """1 when the training stack has model code of its own, whose layers have a form of their own."""
    return stack_own_forms * when(layer_forms.framework_row[model_form_row] > 0, 1, 0)


@term("row")
def form_row(framework_form: Any, layer_forms: Any, model_form_row: Any) -> Any:
    """Row of the layer form in force: that of the framework's own code, or of the class in transformers."""
    return when(framework_form > 0, layer_forms.framework_row[model_form_row], model_form_row)


@term("bytes per value", source=_FORM, label="Form: inputs of the layer's norms, hidden width")
def form_norms_hidden(layer_forms: Any, form_row: Any) -> Any:
    """Inputs of the layer's norms, hidden width."""
    return layer_forms.norms_d[form_row]


@term("bytes per token", source=_FORM, label="Form: statistics of the norms")
def form_norms_token(layer_forms: Any, form_row: Any) -> Any:
    """Statistics of the norms."""
    return layer_forms.norms_one[form_row]


@term("bytes per value", source=_FORM, label="Form: attention, query width")
def form_attention_query(layer_forms: Any, form_row: Any) -> Any:
    """Attention, query width."""
    return layer_forms.attention_q[form_row]


@term("bytes per value", source=_FORM, label="Form: attention, width of its output")
def form_attention_output(layer_forms: Any, form_row: Any) -> Any:
    """Attention, width of its output."""
    return layer_forms.attention_o[form_row]


@term("bytes per value", source=_FORM, label="Form: attention, KV width")
def form_attention_kv(layer_forms: Any, form_row: Any) -> Any:
    """Attention, KV width."""
    return layer_forms.attention_kv[form_row]


@term("bytes per value", source=_FORM, label="Form: attention, per head")
def form_attention_head(layer_forms: Any, form_row: Any) -> Any:
    """Attention, per head."""
    return layer_forms.attention_nh[form_row]


@term("bytes per value", source=_FORM, label="Form: attention, per KV head")
def form_attention_kv_head(layer_forms: Any, form_row: Any) -> Any:
    """Attention, per KV head."""
    return layer_forms.attention_nkv[form_row]


@term("bytes per value", source=_FORM, label="Form: attention, query latent")
def form_attention_query_latent(layer_forms: Any, form_row: Any) -> Any:
    """Attention, query latent."""
    return layer_forms.attention_ql[form_row]


@term("bytes per value", source=_FORM, label="Form: attention, KV latent")
def form_attention_kv_latent(layer_forms: Any, form_row: Any) -> Any:
    """Attention, KV latent."""
    return layer_forms.attention_kvl[form_row]


@term("bytes per value", source=_FORM, label="Form: attention, positions of each head")
def form_attention_position(layer_forms: Any, form_row: Any) -> Any:
    """Attention, positions of each head."""
    return layer_forms.attention_nh_rope[form_row]


@term("bytes per value", source=_FORM, label="Form: attention, positions")
def form_attention_rope(layer_forms: Any, form_row: Any) -> Any:
    """Attention, positions: once for all heads."""
    return layer_forms.attention_rope[form_row]


@term("bytes per value", source=_FORM, label="Form: attention, per head and pair of tokens")
def form_attention_score(layer_forms: Any, form_row: Any) -> Any:
    """Attention, per head and pair of tokens."""
    return layer_forms.attention_nh_S[form_row]


@term("bytes per token", source=_FORM, label="Form: attention, per token")
def form_attention_token(layer_forms: Any, form_row: Any) -> Any:
    """Attention, per token."""
    return layer_forms.attention_one[form_row]


@term("bytes per value", source=_FORM, label="Form: eager attention, more in query width")
def form_eager_query(layer_forms: Any, form_row: Any) -> Any:
    """Eager attention, more in query width."""
    return layer_forms.eager_q[form_row]


@term("bytes per value", source=_FORM, label="Form: eager attention, more in the width of its output")
def form_eager_output(layer_forms: Any, form_row: Any) -> Any:
    """Eager attention, more in the width of its output."""
    return layer_forms.eager_o[form_row]


@term("bytes per value", source=_FORM, label="Form: keys and values at query width, more in KV width")
def form_eager_kv(layer_forms: Any, form_row: Any) -> Any:
    """Keys and values at query width, more in KV width."""
    return layer_forms.eager_kv[form_row]


@term("bytes per value", source=_FORM, label="Form: scores in place of logsumexp, more per head")
def form_eager_head(layer_forms: Any, form_row: Any) -> Any:
    """Scores in place of logsumexp, more per head."""
    return layer_forms.eager_nh[form_row]


@term("bytes per value", source=_FORM, label="Form: eager attention, more per head in positions")
def form_eager_position(layer_forms: Any, form_row: Any) -> Any:
    """Eager attention, more per head in positions."""
    return layer_forms.eager_nh_rope[form_row]


@term("bytes per value", source=_FORM, label="Form: eager attention, per head and pair of tokens")
def form_eager_score(layer_forms: Any, form_row: Any) -> Any:
    """Eager attention, per head and pair of tokens."""
    return layer_forms.eager_nh_S[form_row]


@term("bytes per value", source=_FORM, label="Form: without a KV cache, more in query width")
def form_uncached_query(layer_forms: Any, form_row: Any) -> Any:
    """Without a KV cache, more in query width."""
    return layer_forms.uncached_q[form_row]


@term("bytes per value", source=_FORM, label="Form: without a KV cache, more in KV width")
def form_uncached_kv(layer_forms: Any, form_row: Any) -> Any:
    """Without a KV cache, more in KV width."""
    return layer_forms.uncached_kv[form_row]


@term("bytes per value", source=_FORM, label="Form: keys and values repeated under a mask, more in query width")
def form_masked_query(layer_forms: Any, form_row: Any) -> Any:
    """Keys and values repeated under a mask, more in query width."""
    return layer_forms.masked_q[form_row]


@term("bytes per value", source=_FORM, label="Form: keys and values repeated under a mask, more in KV width")
def form_masked_kv(layer_forms: Any, form_row: Any) -> Any:
    """Keys and values repeated under a mask, more in KV width."""
    return layer_forms.masked_kv[form_row]


@term("bytes per value", source=_FORM, label="Form: a mask, per pair of tokens")
def form_masked_pair(layer_forms: Any, form_row: Any) -> Any:
    """A mask, per pair of tokens."""
    return layer_forms.masked_S[form_row]


@term("bytes per value", source=_FORM, label="Form: masks of plain attention held by checkpoints, per pair of tokens")
def form_checkpointed_pair(layer_forms: Any, form_row: Any) -> Any:
    """Masks of plain attention held by checkpoints, per pair of tokens."""
    return layer_forms.checkpointed_masks_S[form_row]


@term("bytes per value", source=_FORM, label="Form: a dense MLP, hidden width")
def form_mlp_hidden(layer_forms: Any, form_row: Any) -> Any:
    """A dense MLP, hidden width."""
    return layer_forms.mlp_d[form_row]


@term("bytes per value", source=_FORM, label="Form: a dense MLP, MLP width")
def form_mlp_width(layer_forms: Any, form_row: Any) -> Any:
    """A dense MLP, MLP width."""
    return layer_forms.mlp_ff[form_row]


@term("bytes per value", source=_FORM, label="Form: an expert that a token passes, expert width")
def form_moe_passed_width(layer_forms: Any, form_row: Any) -> Any:
    """An expert that a token passes, expert width."""
    return layer_forms.moe_k_e[form_row]


@term("bytes per value", source=_FORM, label="Form: an expert that a token passes, hidden width")
def form_moe_passed_hidden(layer_forms: Any, form_row: Any) -> Any:
    """An expert that a token passes, hidden width."""
    return layer_forms.moe_k_d[form_row]


@term("bytes per token", source=_FORM, label="Form: an expert that a token passes")
def form_moe_passed(layer_forms: Any, form_row: Any) -> Any:
    """An expert that a token passes."""
    return layer_forms.moe_k[form_row]


@term("bytes per token", source=_FORM, label="Form: every expert")
def form_moe_every(layer_forms: Any, form_row: Any) -> Any:
    """Every expert."""
    return layer_forms.moe_E[form_row]


@term("bytes per value", source=_FORM, label="Form: every expert, expert width")
def form_moe_every_width(layer_forms: Any, form_row: Any) -> Any:
    """Every expert, expert width."""
    return layer_forms.moe_E_e[form_row]


@term("bytes per value", source=_FORM, label="Form: every expert, hidden width")
def form_moe_every_hidden(layer_forms: Any, form_row: Any) -> Any:
    """Every expert, hidden width."""
    return layer_forms.moe_E_d[form_row]


@term("bytes per token", source=_FORM, label="Form: routing, per token")
def form_moe_token(layer_forms: Any, form_row: Any) -> Any:
    """Routing, per token."""
    return layer_forms.moe_one[form_row]


@term("bytes per value", source=_FORM, label="Form: shared experts, their width")
def form_shared_width(layer_forms: Any, form_row: Any) -> Any:
    """Shared experts, their width."""
    return layer_forms.shared_s[form_row]


@term("bytes per value", source=_FORM, label="Form: shared experts, hidden width")
def form_shared_hidden(layer_forms: Any, form_row: Any) -> Any:
    """Shared experts, hidden width: their output, where a gate weighs it."""
    return layer_forms.shared_d[form_row]


@term("bytes per value", source=_FORM, label="Form: a layer without rotary positions, more in query width")
def form_unrotated_query(layer_forms: Any, form_row: Any) -> Any:
    """A layer without rotary positions, more in query width."""
    return layer_forms.plain_q[form_row]


@term("bytes per value", source=_FORM, label="Form: a layer without rotary positions, more in KV width")
def form_unrotated_kv(layer_forms: Any, form_row: Any) -> Any:
    """A layer without rotary positions, more in KV width."""
    return layer_forms.plain_kv[form_row]


@term("bytes per value", source=_FORM, label="Form: a layer without rotary positions, more per head")
def form_unrotated_head(layer_forms: Any, form_row: Any) -> Any:
    """A layer without rotary positions, more per head."""
    return layer_forms.plain_nh[form_row]


@term("switch", source=_FORM, label="Form: MLP beside attention")
def form_parallel(layer_forms: Any, form_row: Any) -> Any:
    """1 when the MLP reads the layer's own input, side by side with attention."""
    return layer_forms.parallel[form_row]


@term("bytes per value", source=_FORM, label="Form: lowest reached layer, more in hidden width")
def form_lowest_hidden(layer_forms: Any, form_row: Any) -> Any:
    """Lowest reached layer, more in hidden width."""
    return layer_forms.lowest_d[form_row]


@term("bytes per token", source=_FORM, label="Form: lowest reached layer, more per token")
def form_lowest_token(layer_forms: Any, form_row: Any) -> Any:
    """Lowest reached layer, more per token."""
    return layer_forms.lowest_one[form_row]


@term("bytes per value", source=_FORM, label="Form: final norm, hidden width")
def form_final_norm_hidden(layer_forms: Any, form_row: Any) -> Any:
    """Final norm, hidden width."""
    return layer_forms.final_norm_d[form_row]


@term("bytes per token", source=_FORM, label="Form: final norm, per token")
def form_final_norm_token(layer_forms: Any, form_row: Any) -> Any:
    """Final norm, per token."""
    return layer_forms.final_norm_one[form_row]


@term("bytes per value", source=_FORM, label="Form: checkpointed layers' inputs, more in hidden width")
def form_boundary_hidden(layer_forms: Any, form_row: Any) -> Any:
    """Checkpointed layers' inputs, more in hidden width: where what runs between layers is fp32 anyway."""
    return layer_forms.boundary_d[form_row]


@term("bytes per value", source=_FORM, label="Form: the lowest layer's input, more in hidden width")
def form_lowest_boundary_hidden(layer_forms: Any, form_row: Any) -> Any:
    """The checkpointed lowest layer's input, more in hidden width than those of the others."""
    return layer_forms.lowest_boundary_d[form_row]


@term("bytes per value", source=_FORM, label="Form: working tensors of a checkpointed layer, hidden width")
def form_working_hidden(layer_forms: Any, form_row: Any) -> Any:
    """Working tensors of a checkpointed layer, hidden width."""
    return layer_forms.working_d[form_row]


@term("bytes per value", source=_FORM, label="Form: working tensors of a layer, MLP width")
def form_working_width(layer_forms: Any, form_row: Any) -> Any:
    """Working tensors of a layer, MLP width."""
    return layer_forms.working_ff[form_row]


@term("bytes per value", source=_FORM, label="Form: working tensors of an expert, its width")
def form_working_passed_width(layer_forms: Any, form_row: Any) -> Any:
    """Working tensors of an expert, its width."""
    return layer_forms.working_k_e[form_row]


@term("bytes per value", source=_FORM, label="Form: working tensors of an expert, hidden width")
def form_working_passed_hidden(layer_forms: Any, form_row: Any) -> Any:
    """Working tensors of an expert, hidden width."""
    return layer_forms.working_k_d[form_row]


@term("bytes per value", source=_FORM, label="Form: working tensors of every expert, its width")
def form_working_every_width(layer_forms: Any, form_row: Any) -> Any:
    """Working tensors of every expert, its width."""
    return layer_forms.working_E_e[form_row]


@term("bytes per value", source=_FORM, label="Form: working tensors of shared experts, their width")
def form_working_shared(layer_forms: Any, form_row: Any) -> Any:
    """Working tensors of shared experts, their width."""
    return layer_forms.working_s[form_row]


@term("bytes per value", source=_FORM, label="Form: the final norm's backward, hidden width")
def form_norm_working(layer_forms: Any, form_row: Any) -> Any:
    """The final norm's backward, hidden width."""
    return layer_forms.norm_working_d[form_row]


@term("bytes per value", source=_FORM, label="Form: the last layer's MLP in backward, hidden width")
def form_last_hidden(layer_forms: Any, form_row: Any) -> Any:
    """The last layer's MLP in backward, hidden width."""
    return layer_forms.last_layer_working_d[form_row]


@term("bytes per value", source=_FORM, label="Form: the last layer's MLP in backward, MLP width")
def form_last_width(layer_forms: Any, form_row: Any) -> Any:
    """The last layer's MLP in backward, MLP width."""
    return layer_forms.last_layer_working_ff[form_row]


@term("bytes per value", source=_FORM, label="Form: a frozen layer's MLP in forward, hidden width")
def form_forward_hidden(layer_forms: Any, form_row: Any) -> Any:
    """A frozen layer's MLP in forward, hidden width."""
    return layer_forms.forward_working_d[form_row]


@term("bytes per value", source=_FORM, label="Form: a frozen layer's MLP in forward, MLP width")
def form_forward_width(layer_forms: Any, form_row: Any) -> Any:
    """A frozen layer's MLP in forward, MLP width; 0 where it was not traced."""
    return layer_forms.forward_working_ff[form_row]


@term("bytes per value", source=_FORM, label="Form: input of the output head, hidden width")
def form_head_input(layer_forms: Any, form_row: Any) -> Any:
    """Input of the output head, hidden width."""
    return layer_forms.loss_forward_d[form_row]


@term("bytes per value", source=_FORM, label="Form: tables of positions, head dimension")
def form_rope(layer_forms: Any, form_row: Any) -> Any:
    """Tables of positions, head dimension."""
    return layer_forms.rope_once_S_hd[form_row]


@term("bytes per value", source=_FORM, label="Form: a layer's own tables of positions, head dimension")
def form_layer_rope(layer_forms: Any, form_row: Any) -> Any:
    """Copies of the tables of positions that each layer keeps, head dimension."""
    return layer_forms.rope_layer_S_hd[form_row]


@term("bytes per value", source=_FORM, label="Form: tables of positions, latent attention")
def form_latent_rope(layer_forms: Any, form_row: Any) -> Any:
    """Tables of positions, latent attention."""
    return layer_forms.rope_once_S_rope[form_row]


@term("bytes per value", source=_FORM, label="Form: a further copy of the output scores")
def form_extra_scores(layer_forms: Any, form_row: Any) -> Any:
    """A further copy of the output scores."""
    return layer_forms.extra_score_bytes[form_row]

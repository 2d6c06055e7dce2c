"""The formulas add up a layer form as its data say: two readers of the same coefficients."""

from __future__ import annotations

from typing import Any

import pytest
from form_sums import Layer, layer_bytes

from sizing_xlsx.jobs import job
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.presets.layer_forms import read_layer_forms

LORA, FORMS = job("lora"), read_layer_forms()
MODELS = {model.name: model for model in load_presets().sized_models}
WIDTHS = {
    "d": "hidden_size", "q": "query_width", "o": "attention_output_width", "kv": "kv_width", "nh": "attention_heads",
    "nkv": "kv_heads", "hd": "head_dimension", "ff": "mlp_width", "e": "expert_width", "k": "experts_per_token",
    "E": "expert_count", "s": "shared_expert_width", "ql": "query_latent_width", "kvl": "kv_latent_width",
    "rope": "rope_dimension", "S": "sequence_length",
}  # fmt: skip


def per_token(form: str, layer: Layer, widths: dict[str, int]) -> int:
    """What a layer keeps for each token, without what it keeps whatever the tokens."""
    return layer_bytes(FORMS[form], layer, widths, 1) - layer_bytes(FORMS[form], layer, widths, 0)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.sliding_window])
def test_layers_with_a_window_shorter_than_the_row(name: str) -> None:
    form, window = MODELS[name].layer_form, MODELS[name].sliding_window
    for length, stack in (
        (window - 1, "Plain"),
        (window, "Plain"),
        (window + 5, "Plain"),
        (window, "HF Trainer, 4.48"),
    ):
        inputs = {**LORA.defaults(), "base_model": name, "sequence_length": length, "batch_size": 3}
        if stack != "Plain":
            inputs["training_stack"] = "HF Trainer, transformers 4.48"
        values: dict[str, Any] = {**inputs, **LORA.reference(inputs)}
        widths = {short: int(values[term]) for short, term in WIDTHS.items()}
        masked = length >= window and stack == "Plain" and form != "gpt_oss"
        more = per_token(form, Layer(masked=True, held=False), widths) - per_token(form, Layer(held=False), widths)
        assert values["masked_layers"] * values["masked_bytes"] == masked * values["windowed_layer_count"] * more
        assert values["sequence_within_window"] == (length < window or stack == "Plain" or form == "gpt_oss")


@pytest.mark.parametrize("name", MODELS)
def test_every_model_of_the_catalogue(name: str) -> None:
    form = MODELS[name].layer_form
    for checkpointing in ("Off", "On"):
        inputs = {**LORA.defaults(), "base_model": name, "activation_checkpointing": checkpointing}
        values: dict[str, Any] = {**inputs, **LORA.reference(inputs)}
        widths = {short: int(values[term]) for short, term in WIDTHS.items()}
        common = values["norm_bytes"] + values["attention_bytes"]
        kinds = {False: values["dense_layer_count"], True: values["moe_layer_count"]}
        mlp = {False: values["mlp_bytes"], True: values["moe_bytes"] + values["shared_expert_bytes"]}
        for moe, layers in kinds.items():
            if layers:
                layer = Layer(moe=moe, cached=checkpointing == "Off", held=False)
                assert common + mlp[moe] == per_token(form, layer, widths), (checkpointing, moe)

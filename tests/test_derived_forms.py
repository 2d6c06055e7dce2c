"""Layer forms that a planner derives: the same as those that are shipped, and sized with like them."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sizing_xlsx.cli import main
from sizing_xlsx.jobs import plain_job
from sizing_xlsx.paths import presets_folder
from sizing_xlsx.presets.catalogue import load_presets, reason_not_sized
from sizing_xlsx.presets.config import read_config

SHAPE = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 16}
OLMO = {"model_type": "olmo", "vocab_size": 50304, "pad_token_id": 1, "eos_token_id": 2, **SHAPE}


def tables() -> dict[str, str]:
    """The shipped layer forms, each as the text of its table."""
    text = (presets_folder() / "layer_forms.toml").read_text(encoding="utf-8")
    parts = ["[" + part for part in text.split("\n[")[1:]]
    return {part[1 : part.index("]")]: part for part in parts}


@pytest.fixture
def presets_without(tmp_path: Path) -> Path:
    """A copy of the presets that has no layer form of OLMo."""
    folder = tmp_path / "presets"
    shutil.copytree(presets_folder(), folder)
    forms = "\n".join(text for name, text in tables().items() if name != "olmo")
    (folder / "layer_forms.toml").write_text(forms, encoding="utf-8")
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "own.json"
    path.write_text(json.dumps(OLMO), encoding="utf-8")
    return path


def test_a_form_that_is_derived_is_the_one_that_is_shipped(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, presets_without: Path
) -> None:
    pytest.importorskip("peft", reason="peft is not installed; the extra 'test' brings it")
    shipped = tomllib.loads(tables()["olmo"])["olmo"]
    del shipped["repeated_cache"]  # which no formula looks up
    without = load_presets(presets_without)
    monkeypatch.setattr("sizing_xlsx.presets.catalogue.load_presets", lambda: without)
    assert main(["derive", str(model), "--write", str(tmp_path / "form.toml")]) == 0
    assert tomllib.loads((tmp_path / "form.toml").read_text(encoding="utf-8")) == {"olmo": shipped}


def test_a_model_of_an_own_form_is_sized_as_with_a_shipped_one(
    model: Path, presets_without: Path, tmp_path: Path
) -> None:
    file = tmp_path / "form.toml"
    file.write_text(tables()["olmo"], encoding="utf-8")
    without = load_presets(presets_without, models=[model])
    assert [row.why_not for row in without.own] == ["the layer form of family olmo is not sized yet"]
    results = [
        plain_job("lora", presets).size(("traced_allocated", "traced_available"), base_model="own")
        for presets in (
            load_presets(models=[model]),
            load_presets(presets_without, models=[model], layer_forms=[file]),
        )
    ]
    assert results[0] == results[1] and results[0]["traced_available"] == 1


def test_a_model_in_the_folder_of_presets_is_sized_with_an_own_form(presets_without: Path, tmp_path: Path) -> None:
    forms = tables()
    lacking = "\n".join(text for name, text in forms.items() if name not in ("olmo", "gpt2"))
    (presets_without / "layer_forms.toml").write_text(lacking, encoding="utf-8")
    (tmp_path / "gpt2.toml").write_text(forms["gpt2"], encoding="utf-8")
    assert "openai-community/gpt2" not in load_presets(presets_without).models.keys
    found = load_presets(presets_without, layer_forms=[tmp_path / "gpt2.toml"])
    assert "openai-community/gpt2" in found.models.keys and not found.unsized_models


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no layer form; it should hold a table for each"),
        (tables()["llama"], "[llama] is a layer form of the catalogue already; leave it out"),
        ("[new]\nsource = 's'\nnorms = { d = 8 }", "[new] lacks attention; a layer form has norms, attention"),
        (
            tables()["olmo"].replace("[olmo]", "[new]").replace("V = 10", "d = 2").replace("d = 2, d = 2", "d = 2"),
            "[new] lacks V in loss_forward",
        ),
        (
            tables()["olmo"].replace("[olmo]", "[new]").replace("mlp = { ff = 6 }", "mlp = { ff = 6, nh = 2 }"),
            "[new], mlp has nh, which no formula adds up; leave it out",
        ),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "form.toml"
    file.write_text(text, encoding="utf-8")
    assert main(["lora", "--layer-forms", str(file)]) == 2
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["meta-llama/Llama-3.2-1B"], "is of layer form llama, which the catalogue has already"),
        (["meta-llama/Llama-3.2-1B", "--json"], "--write is given with --json"),
        (["meta-llama/Llama-3.2-1B", "--job", "full"], "--write is given with --job full"),
    ],
)
def test_a_form_that_could_not_be_used_is_not_derived(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments: list[Any] = ["derive", *options, "--write", str(tmp_path / "form.toml")]
    assert main(arguments) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "form.toml").exists()


@pytest.mark.parametrize(
    ("kind", "switch"),
    [
        ("phi", {"qk_layernorm": True}),
        ("phi", {"hidden_act": "gelu"}),  # one operation, where the traced one is several
        ("stablelm", {"use_parallel_residual": True}),
        ("stablelm", {"qk_layernorm": True}),
        ("opt", {"do_layer_norm_before": False}),
        ("opt", {"layer_norm_elementwise_affine": False}),
        ("gpt_bigcode", {"multi_query": False}),
        ("gpt_bigcode", {"activation_function": "gelu_new"}),
    ],
)
def test_a_form_holds_for_the_switches_it_was_traced_with(kind: str, switch: dict[str, Any]) -> None:
    usual = {"model_type": kind, "vocab_size": 50304, **SHAPE}
    names = {"num_key_value_heads": 16, "n_embd": 2048, "n_inner": 8192, "n_layer": 16, "n_head": 16, "ffn_dim": 8192}
    forms = load_presets().forms
    assert reason_not_sized(read_config({**usual, **names}), forms) == ""
    assert reason_not_sized(read_config({**usual, **names, **switch}), forms) != ""

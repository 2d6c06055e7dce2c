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
from sizing_xlsx.measure.run import Run
from sizing_xlsx.paths import presets_folder
from sizing_xlsx.presets.catalogue import load_presets, reason_not_sized
from sizing_xlsx.presets.config import read_config
from sizing_xlsx.workbook.carry.own_files import with_kept
from sizing_xlsx.workbook.carry.record import own_files

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
    monkeypatch.setattr("sizing_xlsx.presets.catalogue._own_presets", lambda: without)
    assert main(["derive", str(model), "--write", str(tmp_path / "form.toml")]) == 0
    assert tomllib.loads((tmp_path / "form.toml").read_text(encoding="utf-8")) == {"olmo": shipped}


@pytest.fixture
def derivations(presets_without: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The catalogue without the form of OLMo, and a trace that gives it at once; takes down the configs traced."""
    without = load_presets(presets_without)
    traced: list[str] = []

    def form_of(run: Run) -> dict[str, Any]:
        traced.append(Path(run["config"]).read_text(encoding="utf-8"))
        return dict(tomllib.loads(tables()["olmo"])["olmo"])

    monkeypatch.setattr("sizing_xlsx.presets.catalogue._own_presets", lambda: without)
    monkeypatch.setattr("sizing_xlsx.measure.layer_form.form_of", form_of)
    monkeypatch.setattr("sizing_xlsx.measure.own_forms.find_spec", lambda package: package)
    return traced


def test_a_model_whose_family_has_no_form_is_sized_with_a_derived_one(
    model: Path, derivations: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lora", "--model", str(model), "--base-model", "own", "--json"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["results"]["traced_available"] == 1
    assert [json.loads(text) for text in derivations] == [OLMO]
    assert found.err.startswith("sizing-xlsx: own: its layer form, olmo, is derived by tracing, traced with torch ")
    assert found.err.count("\n") == 1 and found.err.endswith(" s.\n")
    assert main(["model", str(model)]) == 0
    told = capsys.readouterr().out
    assert "Layer form olmo: derived when a model was added, traced with torch" in told and "not sized" not in told
    assert main(["catalogue", "models", "--model", str(model), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["models"][0]
    assert (row["name"], row["offered"]) == ("own", True) and len(derivations) == 3


def test_a_form_is_not_derived_where_that_is_not_wanted_or_not_possible(
    model: Path, derivations: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["catalogue", "models", "--model", str(model), "--json"]
    reason = "the layer form of family olmo is not sized yet"
    for more in (["--no-derive"], []):
        assert main([*words, *more]) == 0
        found = capsys.readouterr()
        row = next(row for row in json.loads(found.out)["models"] if row["name"] == "own")
        assert row["why_not"] == reason and found.err == f"sizing-xlsx: own (own.json) is not offered: {reason}.\n"
        assert not derivations
        monkeypatch.setattr("sizing_xlsx.measure.own_forms.find_spec", lambda package: None)


def test_a_family_that_cannot_be_derived_says_why(
    model: Path, derivations: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(run: Run) -> dict[str, Any]:
        raise KeyError("gate")

    monkeypatch.setattr("sizing_xlsx.measure.layer_form.form_of", fails)
    assert main(["model", str(model)]) == 0
    assert "not sized, for its layer form cannot be derived: KeyError: 'gate'." in capsys.readouterr().out
    assert main(["lora", "--model", str(model), "--base-model", "own"]) == 2
    assert (
        "own (own.json) is not offered: its layer form cannot be derived: KeyError: 'gate'." in capsys.readouterr().err
    )


def test_what_a_workbook_keeps_gives_the_same_catalogue_again(
    model: Path, presets_without: Path, tmp_path: Path
) -> None:
    (tmp_path / "form.toml").write_text(tables()["olmo"], encoding="utf-8")
    own = load_presets(presets_without, models=[model], layer_forms=[tmp_path / "form.toml"])
    without = load_presets(presets_without)
    found, gave_way, refused = with_kept(without, reversed(own_files(own)))
    assert not gave_way and not refused
    assert found.own == own.own and found.forms == own.forms and found.sized_models == own.sized_models
    shipped, gave_way, refused = with_kept(load_presets(), own_files(own))  # a later version has the form itself
    assert gave_way == ["olmo of form.toml: the one of the same name that is known now is used"] and not refused
    assert "own" in shipped.models.keys and shipped.forms == load_presets().forms


def test_a_rebuild_keeps_derived_and_own_forms(
    model: Path, derivations: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import openpyxl

    place = ["build", "--output", str(tmp_path / "out"), "--json"]
    assert main([*place, "--model", str(model)]) == 0
    file = tmp_path / "out" / "gpu-finetune-memory-sizing.xlsx"
    book = openpyxl.load_workbook(file)
    place_of_model = book.defined_names["Base_Model"].attr_text.partition("!")[2].replace("$", "")
    book["Sizing"][place_of_model] = "own"
    book.save(file)
    capsys.readouterr()
    assert main(place) == 0 and len(derivations) == 1
    carried = json.loads(capsys.readouterr().out)[0]["carried"]
    assert carried["input"] == ['Base_Model "own"'] and set(carried["own file"]) == {"olmo.toml", "own.json"}
    sheets = openpyxl.load_workbook(file)
    assert sheets["Sizing"][place_of_model].value == "own"
    texts = [str(cell.value) for row in sheets["Presets"].iter_rows() for cell in row]
    assert any(text.startswith("own: olmo.toml, derived when a model was added, traced with") for text in texts)


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
        (
            tables()["olmo"].replace("[olmo]", "[new]") + "\n[new.cache]\nkv = 8\n",
            "[new], cache has kv, which no formula adds up; leave it out",
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

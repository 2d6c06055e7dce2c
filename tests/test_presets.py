"""The preset data is what its sources say, and whatever is wrong with a file is named in one sentence."""

from __future__ import annotations

import copy
import csv
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing_xlsx import paths
from sizing_xlsx.memory.decoder.counts import counts, parameter_count
from sizing_xlsx.presets import catalogue
from sizing_xlsx.presets.catalogue import load_presets, reason_not_sized
from sizing_xlsx.presets.config import UNITS, Architecture, read_config, read_models

PRESETS = paths.presets_folder()
TINY_LLAMA = "TinyLlama/TinyLlama-1.1B-Chat-v1.0"
H100 = "NVIDIA H100 SXM5 80GB"


def config_of(model: str) -> dict[str, Any]:
    path = PRESETS / "models" / model.replace("/", "--", 1) / "config.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


LLAMA = config_of(TINY_LLAMA)
QWEN2 = config_of("Qwen/Qwen2.5-7B")
MISTRAL = config_of("mistralai/Mistral-7B-v0.1")


def changed(config: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return config | fields


def without(config: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {field: value for field, value in config.items() if field not in fields}


def fault(source: Any) -> str:
    """The sentence that read_config refuses a source with."""
    with pytest.raises(ValueError) as caught:
        read_config(source)
    sentence = str(caught.value)
    assert type(caught.value) is ValueError and len(sentence.splitlines()) == 1 and sentence.isprintable()
    return sentence


# --- models -----------------------------------------------------------------------------------------------


def test_the_worked_model_reads_as_its_config_says() -> None:
    model = read_config(PRESETS / "models" / TINY_LLAMA.replace("/", "--"))
    shape = {
        "name": TINY_LLAMA,
        "family": "llama",
        "layer_form": "llama",
        "why_not": "",
        "hidden_size": 2048,
        "layer_count": 22,
        "attention_heads": 32,
        "kv_heads": 4,
        "head_dimension": 64,
        "value_head_dimension": 64,
        "mlp_width": 5632,
        "vocabulary_size": 32000,
        "maximum_positions": 2048,
        "mlp_matrices": 3,
        "layer_norm_vectors": 2,
        "outer_norm_vectors": 1,
        "plain_linears": 1,
        "window_kind": "none",
        "full_period": 1,
        "full_layer_count": 22,
        "dtype": "bfloat16",
        "assumed": (),
    }
    origins = model.origins
    found = {field: value for field, value in model._asdict().items() if value != 0 and field != "origins"}
    assert found == shape | {"notes": (), "quantisation": None, "counted": None}
    assert {column: origins[column].kind for column in ("kv_heads", "head_dimension", "mlp_matrices")} == {
        "kv_heads": "stated", "head_dimension": "derived", "mlp_matrices": "fixed by the class",
    }  # fmt: skip
    assert set(origins) == set(UNITS) - {"layer_form"}


# Published with router biases, which are buffers, and with an output layer that is stored apart.
COUNTED_OTHERWISE = ("deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3", "tiiuae/falcon-7b")


def test_every_sized_model_has_exactly_its_published_parameters() -> None:
    presets = load_presets()
    sources = {row["model"]: row for row in presets.model_sources}
    assert len(presets.sized_models) == 68 and not presets.unsized_models
    for model in presets.sized_models:
        count, published = parameter_count(model), sources[model.name]["published_parameters"]
        assert count == sources[model.name]["parameters"]
        assert published in (None, count) or model.name in COUNTED_OTHERWISE, model.name


def test_every_model_has_a_source_and_every_source_a_model() -> None:
    presets = load_presets()
    models = [m.name for m in (*presets.sized_models, *presets.unsized_models)]
    assert sorted(models) == sorted(row["model"] for row in presets.model_sources) and len(models) == 68


def test_what_cannot_be_sized_says_why_and_is_read_as_far_as_plain() -> None:
    phi = read_config(PRESETS / "models" / "microsoft--phi-4" / "config.json")._replace(layer_form="new")
    assert reason_not_sized(phi, load_presets().layer_forms.keys) == "the layer form of family phi3 is not sized yet"
    assert phi.hidden_size == 5120
    other = read_config({"model_type": "gptj", "n_embd": 64, "n_layer": 2}, unknown="list")
    assert other.why_not == "family gptj is not described: it is not counted" and other.hidden_size == 64
    with pytest.raises(ValueError, match="gptj is not described"):
        parameter_count(other)


def test_path_folder_text_and_dict_read_alike() -> None:
    folder = PRESETS / "models" / TINY_LLAMA.replace("/", "--")
    path = folder / "config.json"
    from_path = read_config(path)
    assert from_path == read_config(str(path)) == read_config(folder) == read_config(str(folder))
    text = path.read_text(encoding="utf-8")
    as_dict = read_config(LLAMA | {"_name_or_path": TINY_LLAMA})
    assert as_dict == from_path
    assert read_config(text) == read_config("\ufeff \n" + text) == from_path._replace(name="llama")


def test_a_file_that_is_not_called_config_json_gives_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "acme--one.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())
    assert read_config(file).name == "acme/one"


def test_what_is_not_stated_is_as_the_family_assumes() -> None:
    old = read_config(
        without(
            LLAMA,
            "num_key_value_heads",
            "tie_word_embeddings",
            "attention_bias",
            "mlp_bias",
            "max_position_embeddings",
        )
    )
    assert (old.kv_heads, old.tied, old.qkv_bias, old.mlp_bias, old.maximum_positions) == (32, 0, 0, 0, 2048)
    assert set(old.assumed) == {
        "num_key_value_heads",
        "tie_word_embeddings",
        "attention_bias",
        "mlp_bias",
        "max_position_embeddings",
    }
    mistral = read_config(without(MISTRAL, "num_key_value_heads", "sliding_window"))
    assert (mistral.kv_heads, mistral.sliding_window) == (8, 4096)
    assert set(mistral.assumed) == {"num_key_value_heads", "sliding_window"}
    assert read_config(changed(MISTRAL, num_key_value_heads=None)).kv_heads == 32
    assert "32 by default" not in fault(changed(QWEN2, num_key_value_heads=3))
    assert "num_key_value_heads is 32 by default" in fault(without(QWEN2, "num_key_value_heads"))


def test_biases() -> None:
    assert (read_config(QWEN2).qkv_bias, read_config(QWEN2).output_bias) == (1, 0)
    biased = read_config(changed(LLAMA, attention_bias=True, mlp_bias=True))
    assert (biased.qkv_bias, biased.output_bias, biased.mlp_bias) == (1, 1, 1)
    more = 22 * (2048 + 2 * 256 + 2048 + 2 * 5632 + 2048)
    assert parameter_count(biased) == parameter_count(read_config(LLAMA)) + more
    assert parameter_count(read_config(changed(LLAMA, tie_word_embeddings=True))) == 1_100_048_384 - 65_536_000


def test_the_sliding_window_counts_only_where_it_is_used() -> None:
    assert read_config(MISTRAL).sliding_window == 4096
    assert read_config(changed(MISTRAL, sliding_window=None)).sliding_window == 0
    assert read_config(changed(LLAMA, sliding_window=4096)).sliding_window == 0
    assert read_config(QWEN2).sliding_window == 0
    used = changed(QWEN2, use_sliding_window=True, sliding_window=4096)
    assert read_config(changed(used, max_window_layers=28)).sliding_window == 0
    assert read_config(changed(used, max_window_layers=0)).sliding_window == 4096
    mixed = read_config(changed(used, max_window_layers=14))
    assert (mixed.sliding_window, mixed.full_layer_count, mixed.full_period) == (4096, 14, 0)
    assert "14 of 28 layers attend to everything, in no regular pattern" in mixed.notes[0]
    assert counts(mixed)["windowed_layer_count"] == 14
    layers = ["sliding_attention"] * 28
    assert read_config(changed(used, layer_types=layers)).sliding_window == 4096
    last = read_config(changed(used, layer_types=[*layers[:27], "full_attention"]))
    assert (last.full_layer_count, last.full_period, last.full_offset) == (1, 28, 27)


def test_a_head_dimension_of_its_own() -> None:
    model = read_config(changed(LLAMA, hidden_size=2050, head_dim=64))
    assert model.head_dimension == 64 and read_config(changed(LLAMA, head_dim=None)).head_dimension == 64
    assert "without head_dim it should be a multiple of num_attention_heads, 32" in fault(
        changed(LLAMA, hidden_size=2050)
    )


COUNT = "it should be a whole number from 1 to 10,000,000"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hidden_size", True, f"hidden_size is true; {COUNT}"),
        ("hidden_size", "32", f'hidden_size is "32"; {COUNT}'),
        ("num_attention_heads", 32.5, f"num_attention_heads is 32.5; {COUNT}"),
        ("vocab_size", 32000.0, f"vocab_size is 32000.0; {COUNT}"),
        ("intermediate_size", None, f"intermediate_size is null; {COUNT}"),
        ("hidden_size", 0, f"hidden_size is 0; {COUNT}"),
        ("hidden_size", -2048, f"hidden_size is -2048; {COUNT}"),
        ("vocab_size", 10_000_001, f"vocab_size is 10000001; {COUNT}"),
        (
            "num_hidden_layers",
            10_001,
            "num_hidden_layers is 10001; it should be a whole number from 1 to 10,000",
        ),
        ("hidden_size", [2048], f"hidden_size is a list; {COUNT}"),
        ("hidden_size", 10**4000, f"hidden_size is a number of 13288 bits; {COUNT}"),
        ("hidden_size", float("nan"), "hidden_size is NaN; it should be a finite number"),
        ("rope_theta", float("inf"), "rope_theta is Infinity; it should be a finite number"),
        (
            "rope_scaling",
            {"factor": float("-inf")},
            "rope_scaling.factor is -Infinity; it should be a finite number",
        ),
        ("num_key_value_heads", 5, "num_key_value_heads is 5; it should divide num_attention_heads, 32"),
        ("tie_word_embeddings", 1, "tie_word_embeddings is 1; it should be true or false"),
        (
            "model_type",
            "=cmd|'/c calc'!A1",
            "model_type is \"=cmd|'/c calc'!A1\"; a name may not begin with = + - @ or hold * ? ~ or control",
        ),
        ("model_type", 7, 'model_type is 7; it should name the family, such as "llama"'),
        ("model_type", "", "model_type is empty; it should be a name"),
        ("architectures", "LlamaForCausalLM\n", 'architectures is "LlamaForCausalLM\\n"; a name may not'),
        ("architectures", ["@SUM(A1)"], 'architectures is "@SUM(A1)"; a name may not'),
        ("architectures", [1], "architectures is 1; it should be a list of names"),
        ("_name_or_path", "\tx", '_name_or_path is "\\tx"; a name may not'),
        ("_name_or_path", "any*", '_name_or_path is "any*"; a name may not'),
        ("_name_or_path", "a\u202eb", '_name_or_path is "a\\u202eb"; a name may not'),
        ("_name_or_path", "x" * 201, "201 characters long; a name has at most 200"),
        ("_name_or_path", {}, "_name_or_path is an object; it should be a name"),
    ],
)
def test_a_wrong_value_is_named_with_its_field(field: str, value: Any, said: str) -> None:
    assert fault(changed(LLAMA, **{field: value})).startswith("the config: ")
    assert said in fault(changed(LLAMA, **{field: value}))


@pytest.mark.parametrize(
    "field",
    [
        "model_type",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
    ],
)
def test_a_missing_field_is_named(field: str) -> None:
    assert f"{field} is missing; it should" in fault(without(LLAMA, field))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not JSON"),
        (b"{'a': 1}", "is not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        (b"[1]", "holds a list; a config.json is one object"),
        (b"null", "holds null; a config.json is one object"),
        (b'{"a": 1, "b": 2, "a": 3}', '"a" stands there twice'),
        (b'{"a": {"b": 2, "b": 3}}', '"b" stands there twice'),
        (b"\xff\xfe{\x00}\x00", "is not UTF-8 text at byte 0"),
        (b'{"a": "' + b"x" * 1_000_000 + b'"}', "is larger than 1,000,000 bytes"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"a": ' + b"[" * 150 + b"]" * 150 + b"}", "is nested more than 100 deep"),
        (b'{"a": ' + b"9" * 5000 + b"}", "holds a number of 5,000 digits"),
        (b'{"model_type": "llama", "hidden_size": 1e999}', "hidden_size is Infinity"),
        (b'{"model_type": "llama", "hidden_size": NaN}', "hidden_size is NaN"),
    ],
)
def test_a_file_that_is_no_config_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)
    sentence = fault(file)
    assert sentence.startswith(str(file)) and said in sentence
    assert fault(tmp_path) == sentence


def test_sources_that_are_none() -> None:
    assert "there is no file" in fault("no such file.json")
    assert "there is no file" in fault("x" * 5000)
    assert "there is no file" in fault("a\0b")
    for source in ("", "  ", None, 5, b"{}", [LLAMA]):
        assert "the source of a config is" in fault(source)
    assert "the JSON text holds a list" in fault("[1]")
    assert "the JSON text has 1,000,002 characters" in fault("{" + " " * 1_000_000 + "}")


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-2, max_value=70),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["=1+1", "llama", "qwen2", "mistral", "sliding_attention", 10**400, "\ud800", "\u2028"]),
    st.recursive(
        st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ),
)
FIELDS = st.sampled_from(
    sorted({*LLAMA, *QWEN2, *MISTRAL, "head_dim", "_name_or_path", "layer_types", "max_window_layers"})
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    base=st.sampled_from([LLAMA, QWEN2, MISTRAL]),
    new=st.dictionaries(FIELDS, VALUES, max_size=4),
    gone=st.sets(FIELDS, max_size=2),
    as_text=st.booleans(),
)
def test_any_config_is_read_or_refused_in_one_sentence(
    base: dict[str, Any], new: dict[str, Any], gone: set[str], as_text: bool
) -> None:
    config = without(copy.deepcopy(base) | new, *gone)
    try:
        model = read_config(json.dumps(config) if as_text else config, unknown="list")
        if model.window_kind is None:
            return
    except ValueError as error:
        assert type(error) is ValueError and str(error).isprintable() and len(str(error)) < 500
        return
    assert model.name.isprintable() and model.name[0] not in "=+-@" and len(model.name) <= 200
    assert parameter_count(model) > 0 and (model.layer_form or model.why_not)
    shape = [getattr(model, column) for column in UNITS if UNITS[column] == "count"]
    assert all(type(value) is int and value >= 0 for value in shape)


@settings(max_examples=200, deadline=None)
@given(cut=st.integers(0, 700), put=st.binary(max_size=6))
def test_any_damaged_file_is_read_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, cut: int, put: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "config.json"
    content = json.dumps(LLAMA).encode()
    file.write_bytes(content[:cut] + put + content[cut + len(put) :])
    try:
        read_config(file, unknown="list")
    except ValueError as error:
        assert type(error) is ValueError and str(error).isprintable()


# --- a folder of models -----------------------------------------------------------------------------------


def add_model(folder: Path, name: str, config: dict[str, Any] = LLAMA) -> None:
    (folder / name).mkdir()
    (folder / name / "config.json").write_text(json.dumps(config), encoding="utf-8")


def test_models_are_sorted_without_regard_to_case_and_stray_files_ignored(tmp_path: Path) -> None:
    for name in ("b--x", "A--y--z", "a--x", ".hidden"):
        add_model(tmp_path, name)
    (tmp_path / "sources.csv").write_text("model\n", encoding="utf-8")
    assert [m.name for m in read_models(tmp_path)] == ["a/x", "A/y--z", "b/x"]


def test_two_names_that_differ_in_case_are_both_named(tmp_path: Path) -> None:
    add_model(tmp_path, "Acme--One")
    add_model(tmp_path, "acme--one")
    with pytest.raises(ValueError, match=r'"Acme/One" and "acme/one" are the same name'):
        read_models(tmp_path)


def test_a_folder_without_a_config_or_with_an_unfit_name_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty holds no config\.json"):
        read_models(tmp_path)
    (tmp_path / "empty").rmdir()
    add_model(tmp_path, "=acme--one")
    with pytest.raises(ValueError, match=r"""the model's name is "=acme/one"; a name may not begin"""):
        read_models(tmp_path)
    with pytest.raises(ValueError, match="is not a folder"):
        read_models(tmp_path / "nowhere")


# --- tables -----------------------------------------------------------------------------------------------


def test_the_tables_hold_what_formulas_look_up() -> None:
    presets = load_presets()
    row = presets.models.row_of(TINY_LLAMA.upper())
    assert presets.models.hidden_size[row] == 2048 and presets.models.layer_form[row] == "llama"
    card = presets.gpus.row_of(H100)
    assert presets.gpus.usable_bytes[card] == 85_027_979_264
    own = {"models", "training_models", "gpus", "storage_formats", "stacks", "layer_forms", "full_forms"}
    own |= {"recipes", "engines"}
    assert own | set(presets.options) == set(presets.tables)
    assert all(name == table.name for name, table in presets.tables.items())
    assert set(presets.option_sources) == set(presets.options) and all(presets.option_sources.values())
    assert load_presets() is presets


def test_training_models_have_their_true_size_in_their_name() -> None:
    table = load_presets().training_models
    counts = {}
    for row, name in enumerate(table.keys, 1):
        d, layers, ff = table.hidden_size[row], table.layer_count[row], table.mlp_width[row]
        vocabulary = table.vocabulary_size[row]
        biases_and_norms = layers * (9 * d + ff) + vocabulary
        counts[name] = layers * (4 * d * d + 2 * d * ff) + 2 * vocabulary * d + biases_and_norms
        (shown,) = re.findall(r"\(([\d.]+)B\)", name)
        decimals = len(shown.partition(".")[2])
        assert abs(counts[name] / 1e9 - float(shown)) < 10**-decimals
        assert d % table.attention_heads[row] == 0 and table.maximum_positions[row] == 0
    assert counts["Article worked model (1.01B)"] == 1_011_262_440
    assert min(counts.values()) == 134_238_464 and max(counts.values()) == 64_957_349_120


def test_cards_have_the_workspace_of_their_generation_and_usable_totals_below_the_label() -> None:
    presets = load_presets()
    cards = {row["name"]: row for row in presets.gpu_rows if " MIG " not in row["name"]}
    assert len(cards) == 36 and [*cards] == [*presets.gpus.keys[:36]]
    unknown = {name for name, row in cards.items() if row["usable_bytes"] is None}
    assert unknown == {"NVIDIA H100 NVL", "NVIDIA B100", "NVIDIA GB300 (per GPU)", "Intel Gaudi 3 (OAM)"}
    assert {presets.gpus.usable_bytes[presets.gpus.row_of(name)] for name in unknown} == {0}
    for name, row in cards.items():
        usable = row["usable_bytes"] or 0
        assert usable <= row["marketed_gb"] * 2**30 and usable <= (row["driver_total_bytes"] or usable)
        workspace = {"Hopper": 2**25, "Blackwell": 2**25, "Blackwell Ultra": 2**25}.get(row["architecture"], 8_519_680)
        if row["vendor"] == "AMD":
            workspace = 2**27 if name.startswith("AMD Instinct MI3") else 2**25
        assert row["matmul_workspace_bytes"] == (0 if row["vendor"] == "Intel" else workspace), name


def test_offered_formats_and_why_the_others_are_not() -> None:
    presets = load_presets()
    formats = presets.storage_formats
    assert formats.keys[:4] == ("fp32", "bf16", "fp16", "int8 LLM.int8 (bitsandbytes)") and len(formats) == 13
    int8 = formats.row_of("int8 LLM.int8 (bitsandbytes)")
    assert formats.bytes_per_parameter[int8] == 1 and formats.bytes_per_output_row[int8] == 4
    assert [formats.published_bytes[row] for row in range(1, 14)] == [4, 2, 2, 1, 0.5, 0.5, *7 * [0]]
    assert [formats.unquantised_bytes[row] for row in range(1, 7)] == [4, 2, 2, 2, 2, 2]
    for row in presets.storage_rows:
        assert bool(row["why_not"]) != bool(row["offered"])


def test_recipes_sum_up() -> None:
    for row in load_presets().recipe_rows:
        parts = [row[f"{p}_bytes"] for p in ("weight", "gradient", "master", "first_moment", "second_moment")]
        assert sum(parts) == pytest.approx(row["total_bytes"], abs=1e-9)


def test_the_sweeps_are_whole() -> None:
    presets = load_presets()
    lora, training = presets.lora_sweep, presets.training_sweep
    assert (len(lora), len(training)) == (25, 24)
    assert sum(row["measured_oom"] for row in (*lora, *training)) == 15
    assert lora[0]["measured_peak_allocated_gb"] == 12.7966 and lora[0]["lora_rank"] == 8
    assert training[0]["measured_peak_allocated_gb"] == 59.2206 and training[0]["checkpointing"] is False
    for row in (*lora, *training):
        assert row["source"] == "article sweep, one NVIDIA H100 SXM5 80GB, 17 August 2026"
        assert (row["measured_peak_allocated_gb"] is None) == row["measured_oom"]


def test_no_cell_of_the_data_would_be_taken_for_a_formula() -> None:
    for path in PRESETS.rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@") or not cell.isprintable()]


def test_reading_everything_is_quick() -> None:
    seconds = []
    for _ in range(5):
        start = time.process_time()
        load_presets(PRESETS)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.200


# --- wrong tables -----------------------------------------------------------------------------------------


@pytest.fixture
def own_copy(tmp_path: Path) -> Path:
    """A presets folder with one model, to be spoilt."""
    folder = tmp_path / "presets"
    model = TINY_LLAMA.replace("/", "--")
    shutil.copytree(PRESETS, folder, ignore=lambda where, names: names if where.endswith("models") else [])
    shutil.copytree(PRESETS / "models" / model, folder / "models" / model)
    shutil.copy(PRESETS / "models" / "sources.csv", folder / "models")
    return folder


def spoil(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "gpus.csv",
            "85027979264",
            "85.0e9",
            'line 19, column usable_bytes is "85.0e9"; it should be a whole',
        ),
        ("gpus.csv", "33554432", "-1", 'column matmul_workspace_bytes is "-1"; it should be a whole number'),
        ("gpus.csv", ",2.95,", ',"2,95",', 'column price_usd_per_hour is "2,95"; it should be a number'),
        ("gpus.csv", ",2.95,", ",NaN,", 'column price_usd_per_hour is "NaN"; it should be a number'),
        ("gpus.csv", ",2.95,", ",2.95,,", "line 19 has 34 cells; it should have 33"),
        ("gpus.csv", "name,vendor", "name;vendor", "line 1 lacks the column name"),
        ("gpus.csv", "vendor,arch", "vendor,vendor,arch", 'line 1 names the column "vendor" twice'),
        ("gpus.csv", "NVIDIA H100 NVL", "nvidia h100 sxm5 80gb", "which line 19 has already"),
        ("gpus.csv", "NVIDIA H100 NVL", "=H100", 'column name is "=H100"; a name may not begin with'),
        ("gpus.csv", "NVIDIA H100 NVL", "H100*", 'column name is "H100*"; a name may not begin with'),
        (
            "gpus.csv",
            "NVIDIA H100 NVL",
            '"H100\nNVL"',
            'column name is "H100\\nNVL"; a name may not begin with',
        ),
        ("gpus.csv", "NVIDIA,Hopper", ",Hopper", 'column vendor is ""; it should be printable text'),
        ("gpus.csv", "NVIDIA T4", '"NVIDIA" T4', "is not CSV"),
        (
            "storage_formats.csv",
            "fp32,4,4,0,0,0,0,4,0,0,0,1,",
            "fp32,4,4,0,0,0,0,4,0,0,0,yes,",
            'column fp32 is "yes"; it should be 0 or 1',
        ),
        (
            "training_models.csv",
            "2048,20",
            "0,20",
            'column hidden_size is "0"; it should be a whole number of at',
        ),
        ("recipes.csv", ",16,", ",1e999,", 'column total_bytes is "1e999"; it should be a number'),
        (
            "measured/h100_lora_sweep.csv",
            "false",
            "no",
            'column checkpointing is "no"; it should be true or false',
        ),
        (
            "models/sources.csv",
            "34388917248",
            "34.4B",
            'column parameters is "34.4B"; it should be a whole number',
        ),
        ("options.toml", "[switches]", "[switches", "is not TOML"),
        ("options.toml", "[switches]", "[models]", "[models] cannot be a table here"),
        (
            "options.toml",
            "value = [0, 1]",
            "value = [0, nan]",
            "column value holds NaN; it should be a finite",
        ),
        ("options.toml", "value = [0, 1]", "value = [0]", "switches.value has 1 values for 2 keys"),
        ("options.toml", "value = [0, 1]", "value = 0", "column value is 0; it should be a list of values"),
        ("options.toml", 'value = "switch"', 'value = "furlong"', "unit 'furlong' is not known"),
        (
            "options.toml",
            'units.value = "switch"',
            'units.x = "count"',
            "has value in columns or units alone",
        ),
        ("options.toml", '"Off", "On"', '"Off", "off"', "the same name without regard to case"),
        ("options.toml", '"Off", "On"', '"Off", "=On"', 'a key is "=On"; a name may not begin with'),
        ("options.toml", '"Off", "On"', '"Off", 1', "has the key 1; it should be a name"),
        ("options.toml", 'source = "definition"', "", "[switches]: source is missing; it should be a text"),
    ],
)
def test_a_wrong_cell_is_named_with_its_place(own_copy: Path, file: str, old: str, new: str, said: str) -> None:
    spoil(own_copy / file, old, new)
    with pytest.raises(ValueError) as caught:
        load_presets(own_copy)
    sentence = str(caught.value)
    assert sentence.startswith(str(own_copy / file)) and said in sentence and sentence.isprintable()


def test_a_planner_may_add_a_row_a_column_and_a_byte_order_mark(own_copy: Path) -> None:
    spoil(own_copy / "training_models.csv", "source\n", "source,mine\n")
    file = own_copy / "training_models.csv"
    head, *lines = file.read_text(encoding="utf-8").splitlines()
    lines = [line + ",x" for line in lines] + ["Ours,1024,8,8,4096,5000,512,measured here,", ",,,,,,,,", ""]
    file.write_text("\ufeff" + "\r\n".join([head, *lines]), encoding="utf-8")
    presets = load_presets(own_copy)
    table = presets.training_models
    assert table.maximum_positions[table.row_of("ours")] == 512
    assert presets.training_model_rows[0]["mine"] == "x"
    assert len(presets.models) == 1 and len(load_presets().models) == 68


def test_a_missing_file_is_named(own_copy: Path) -> None:
    (own_copy / "recipes.csv").unlink()
    with pytest.raises(ValueError, match=r"recipes\.csv cannot be read: No such file"):
        load_presets(own_copy)


# --- where the data lies ----------------------------------------------------------------------------------


def test_the_data_is_found_beside_the_package_or_inside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "sizing_xlsx")
    with pytest.raises(FileNotFoundError, match="the presets folder is missing"):
        paths.presets_folder()
    packed = tmp_path / "sizing_xlsx" / "_data" / "presets"
    packed.mkdir(parents=True)
    (packed / "gpus.csv").touch()
    (tmp_path / "presets").mkdir()  # of another project
    assert paths.presets_folder() == packed
    (tmp_path / "presets" / "gpus.csv").touch()
    assert paths.presets_folder() == tmp_path / "presets"
    with pytest.raises(FileNotFoundError, match="the templates folder is missing"):
        paths.templates_folder()


def test_the_tables_name_only_columns_that_the_files_have() -> None:
    assert set(catalogue.GPU_UNITS) - set(catalogue.MADE_OF_CARDS) < set(catalogue.GPUS)
    assert set(catalogue.STORAGE_UNITS) < set(catalogue.STORAGE_FORMATS)
    assert set(catalogue.MODEL_UNITS) < set(Architecture._fields)

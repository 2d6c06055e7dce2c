"""sizing-xlsx-excel.toml, the catalogue that follows its files, and the files that MODEL_FROM_CONFIG may read."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from sizing_xlsx import functions
from sizing_xlsx.functions.config_paths import config_within
from sizing_xlsx.functions.desk import Desk
from sizing_xlsx.functions.udf import source as udf_source
from sizing_xlsx.functions.udf.settings import VARIABLE, read_settings, settings_file, template
from sizing_xlsx.functions.udf.source import EVERY_S, Source
from sizing_xlsx.paths import presets_folder

CONFIG = {
    "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": True,
}  # fmt: skip


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def of(file: Path) -> dict[str, str]:
    return {VARIABLE: str(file)}


# ---------------------------------------------------------------------- the file
def test_where_the_settings_are():
    assert settings_file({VARIABLE: "/a/b.toml", "APPDATA": "/roaming"}) == Path("/a/b.toml")
    assert settings_file({"APPDATA": "/roaming"}) == Path("/roaming/sizing-xlsx/sizing-xlsx-excel.toml")
    assert settings_file({"HOME": "/home/me"}) == Path("/home/me/.config/sizing-xlsx/sizing-xlsx-excel.toml")


def test_settings_count_from_the_folder_of_their_file(tmp_path):
    file = written(tmp_path / "s.toml", "presets = 'p'\nmodels = ['m', '/abs/m']\nfolders = ['../shared']\n")
    found = read_settings(of(file))
    assert found.presets == tmp_path / "p"
    assert found.models == (tmp_path / "m", Path("/abs/m"))
    assert found.folders == (tmp_path / "../shared",)
    assert found.gpus == ()


def test_the_template_changes_nothing(tmp_path):
    file = written(tmp_path / "s.toml", template())
    assert read_settings(of(file)) == read_settings({"HOME": str(tmp_path)})
    assert max(map(len, template().splitlines())) <= 120


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model = []", "model is no setting; there are presets, models, gpus, layer_forms, folders; did you mean models"),
        ("models = 'm'", "models is 'm'; it must be a list of config.json files"),
        ("folders = [3]", "folders has 3; it must be the path of folders"),
        ("presets = ''", "presets has ''; it must be the path of a folder"),
        ("folders = [", "is not TOML"),
    ],
)  # fmt: skip
def test_wrong_settings_are_one_sentence(tmp_path, text, says):
    with pytest.raises(ValueError, match="s.toml") as refused:
        read_settings(of(written(tmp_path / "s.toml", text)))
    assert says in str(refused.value)


def test_a_file_that_the_variable_names_must_be_there(tmp_path):
    with pytest.raises(ValueError, match="SIZING_XLSX_EXCEL is .*there is no such file"):
        read_settings(of(tmp_path / "none.toml"))


# ---------------------------------------------------------------------- following its files
def test_the_catalogue_is_read_anew_when_a_file_changes_and_not_before(tmp_path):
    cards = written(tmp_path / "cards.csv", "name,usable_gib\nRack 7,100\n")
    settings = written(tmp_path / "s.toml", "gpus = ['cards.csv']\n")
    clock = Clock()
    source = Source(of(settings), clock)

    def usable() -> float:
        return functions.call("GPU_INFO", "Rack 7", at=source.desk())

    first = source.desk()
    assert usable() == pytest.approx(107.3741824)
    clock.now += 2 * EVERY_S
    assert source.desk() is first  # nothing has changed
    written(cards, "name,usable_gib\nRack 7,1000\n")
    clock.now += EVERY_S / 2
    assert source.desk() is first  # not looked at yet
    clock.now += EVERY_S
    assert usable() == pytest.approx(1073.741824)
    written(settings, "gpus = []\n")
    clock.now += EVERY_S
    with pytest.raises(functions.Fault, match="gpu is 'Rack 7'; it is none of"):
        usable()


def test_a_file_that_is_broken_gives_no_stale_figures_and_is_told_until_it_is_mended(tmp_path):
    cards = written(tmp_path / "cards.csv", "name,usable_gib\nRack 7,100\n")
    clock = Clock()
    source = Source(of(written(tmp_path / "s.toml", "gpus = ['cards.csv']\n")), clock)
    source.desk()
    written(cards, "name,memory\nRack 7,100\n")
    for _ in range(2):
        clock.now += EVERY_S
        with pytest.raises(functions.Fault, match=r"presets: .*cards\.csv"):
            source.desk()
    written(cards, "name,usable_gib\nRack 7,100\n")
    clock.now += EVERY_S
    assert functions.call("GPU_INFO", "Rack 7", at=source.desk()) == pytest.approx(107.3741824)


def test_what_nobody_thought_of_is_told_as_well(tmp_path, monkeypatch):
    def fails(*given: object, **named: object) -> None:
        raise KeyError("usable_gib")

    monkeypatch.setattr(udf_source, "load_presets", fails)
    clock = Clock()
    source = Source({"HOME": str(tmp_path)}, clock)
    for _ in range(2):
        with pytest.raises(functions.Fault, match="presets: KeyError 'usable_gib'"):
            source.desk()
        clock.now += EVERY_S


def test_own_models_and_a_presets_folder_are_followed(tmp_path):
    presets = shutil.copytree(presets_folder(), tmp_path / "presets")
    models = tmp_path / "models"
    written(models / "ours--small" / "config.json", json.dumps(CONFIG))
    clock = Clock()
    source = Source(of(written(tmp_path / "s.toml", "presets = 'presets'\nmodels = ['models']\n")), clock)
    assert functions.call("MODEL_INFO", "ours/small", "layers", at=source.desk()) == 16
    written(models / "ours--large" / "config.json", json.dumps({**CONFIG, "num_hidden_layers": 32}))
    clock.now += EVERY_S
    assert functions.call("MODEL_INFO", "ours/large", "layers", at=source.desk()) == 32
    cards = presets / "gpus.csv"
    written(cards, cards.read_text(encoding="utf-8").replace("NVIDIA L4,", "NVIDIA L4 of ours,", 1))
    clock.now += EVERY_S
    assert functions.call("GPU_INFO", "L4 of ours", at=source.desk()) > 20


def test_without_settings_it_is_the_catalogue_as_shipped(tmp_path):
    source = Source({"HOME": str(tmp_path)})
    worked = ("Llama-3.1-8B", "H100 SXM5 80GB", 8, 2048)
    assert functions.call("GPU_HEADROOM", *worked, at=source.desk()) == functions.call("GPU_HEADROOM", *worked)


# ---------------------------------------------------------------------- which files may be read
@pytest.fixture
def allowed(tmp_path) -> Path:
    """A folder that is allowed, with a model in it, and one beside it that is not."""
    written(tmp_path / "allowed" / "ours--small" / "config.json", json.dumps(CONFIG))
    written(tmp_path / "allowed" / "notes.txt", json.dumps(CONFIG))
    written(tmp_path / "secret" / "config.json", json.dumps(CONFIG))
    return tmp_path / "allowed"


def test_a_path_within_an_allowed_folder_is_read(allowed):
    desk = Desk(folders=(allowed,))
    for path in ("ours--small", "ours--small/config.json", "ours--small\\config.json", str(allowed / "ours--small")):
        table = dict(functions.call("MODEL_FROM_CONFIG", path, at=desk))
        assert table["name"] == "ours/small"
        assert table == {**dict(functions.call("MODEL_FROM_CONFIG", json.dumps(CONFIG))), "name": "ours/small"}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("../secret", "no plain path"),
        ("ours--small/../../secret/config.json", "no plain path"),
        ("ours--small\\..\\..\\secret", "no plain path"),
        ("\\\\host\\share\\config.json", "a network path"),
        ("//host/share/config.json", "a network path"),
        ("\\\\?\\C:\\models\\config.json", "a network path"),
        ("/\\host\\share", "a network path"),
        ("ours--small/config.json:stream", "no plain path"),
        ("C:config.json", "no plain path"),
        ("ours\n--small", "no plain path"),
        ("ours\x00small", "no plain path"),
        ("notes.txt", "no config.json in an allowed folder"),
        ("missing", "no config.json in an allowed folder"),
        ("/etc/hostname", "no config.json in an allowed folder"),
        ("x" * 5000, "no config.json in an allowed folder"),
    ],
)  # fmt: skip
def test_other_paths_are_refused(allowed, path, says):
    with pytest.raises(functions.Fault) as refused:
        functions.call("MODEL_FROM_CONFIG", path, at=Desk(folders=(allowed,)))
    assert refused.value.code == functions.WRONG
    assert says in str(refused.value)


def test_what_lies_outside_is_refused_whether_it_is_there_or_not(allowed):
    there, not_there = (str(allowed.parent / name / "config.json") for name in ("secret", "nothing"))
    told = set()
    for path in (there, not_there):
        with pytest.raises(ValueError, match="allowed folder") as refused:
            config_within([allowed], path)
        told.add(str(refused.value).replace(path, ""))
    assert len(told) == 1


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_links_are_followed_and_may_not_lead_out(allowed):
    (allowed / "out").symlink_to(allowed.parent / "secret")
    (allowed / "in").symlink_to(allowed / "ours--small")
    (allowed.parent / "way").symlink_to(allowed)
    with pytest.raises(ValueError, match="no config.json in an allowed folder"):
        config_within([allowed], "out")
    assert config_within([allowed], "in") == allowed / "in" / "config.json"
    assert config_within([allowed.parent / "way"], "ours--small").is_file()


def test_a_file_that_is_too_large_or_no_config_is_refused(allowed):
    written(allowed / "large.json", "[" + " " * 1_000_001 + "]")
    written(allowed / "broken.json", "{")
    desk = Desk(folders=(allowed,))
    for path, says in (("large.json", "is larger than 1,000,000 bytes"), ("broken.json", "is not JSON")):
        with pytest.raises(functions.Fault, match=says):
            functions.call("MODEL_FROM_CONFIG", path, at=desk)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_no_file(allowed):
    os.mkfifo(allowed / "pipe.json")
    with pytest.raises(ValueError, match="no config.json in an allowed folder"):
        config_within([allowed], "pipe.json")


def test_without_folders_only_json_is_taken():
    with pytest.raises(functions.Fault, match="config is no JSON object; it must be the text of a config.json"):
        functions.call("MODEL_FROM_CONFIG", "ours--small")

"""A planner's own models and cards: read from their files, offered first, sized as any other, or refused in a sentence."""

from __future__ import annotations

import csv
import io
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import Alone, Book, File
from engines import Formualizer, LibreOffice, close, libreoffice_available

from sizing_xlsx import catalogue_command
from sizing_xlsx.cli import main
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.jobs import JOBS, make_job
from sizing_xlsx.paths import presets_folder
from sizing_xlsx.presets.catalogue import GPUS, Presets, load_presets
from sizing_xlsx.presets.own import config_files
from sizing_xlsx.workbook.build import BOOKS, build
from sizing_xlsx.workbook.rules import lint_workbook

SMOL = presets_folder() / "models" / "HuggingFaceTB--SmolLM2-135M" / "config.json"
TINY = {"hidden_size": 640, "num_hidden_layers": 7, "num_attention_heads": 10, "num_key_value_heads": 5}
CARDS = "Card,Usable (GiB),Label GB,USD per hour,Notes\nRack 7,70.5,80,2.1,on loan\nAcme A1,31.5,,,\n"

pytestmark = pytest.mark.filterwarnings("ignore:.*xtension is not supported:UserWarning")


def config(path: Path, **fields: Any) -> Path:
    """A config.json of the smallest model, with fields changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**json.loads(SMOL.read_text(encoding="utf-8")), **fields}), encoding="utf-8")
    return path


def cards(path: Path, text: str = CARDS) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def card(path: Path, text: str) -> dict[str, Any]:
    """The row of the first card of a file."""
    return load_presets(gpus=[cards(path, text)]).gpu_rows[0]


def refused(**files: Any) -> str:
    """The sentence that load_presets refuses files with."""
    with pytest.raises(ValueError) as caught:
        load_presets(**files)
    sentence = str(caught.value)
    assert type(caught.value) is ValueError and len(sentence.splitlines()) == 1 and sentence.isprintable()
    return sentence


# -- cards


def test_an_own_card_stands_first_and_leaves_the_catalogue_as_it_was(tmp_path: Path) -> None:
    base = load_presets()
    before = list(base.gpu_rows)
    own = load_presets(gpus=[cards(tmp_path / "cards.csv")])
    assert own.gpus.keys == ("Rack 7", "Acme A1", *base.gpus.keys)
    assert own.gpu_rows[2:] == before == base.gpu_rows and base.own == () and load_presets() is base
    assert own.models is base.models and own.sized_models == base.sized_models
    row = own.gpu_rows[0]
    assert (row["usable_bytes"], row["marketed_gb"], row["price_usd_per_hour"]) == (70.5 * 2**30, 80, 2.1)
    assert (row["usable_basis"], row["note"]) == ("as entered", "Own: on loan")
    assert row["memory_source"] == row["price_source"] == "own: cards.csv, as entered"
    assert own.gpu_rows[1]["marketed_gb"] is None and own.gpu_rows[1]["price_source"] == ""
    assert [(o.table, o.name, o.file) for o in own.own] == [
        ("gpus", "Rack 7", "cards.csv"), ("gpus", "Acme A1", "cards.csv"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "value", "usable"),
    [
        ("usable_bytes", "34000000000", 34 * 10**9),
        ("usable_gb", "34", 34 * 10**9),
        ("Usable GB", "34.5", 34_500_000_000),
        ("Usable memory (GiB)", "32", 2**35),
        ("usable-mib", "32768", 2**35),
        ("USABLE MB", "34000", 34 * 10**9),
        ("Framework total GiB", "31.75", 31.75 * 2**30),
    ],
)
def test_the_header_says_the_unit(tmp_path: Path, header: str, value: str, usable: float) -> None:
    row = card(tmp_path / "c.csv", f"GPU,{header}\nOne,{value}\n")
    assert row["usable_bytes"] == usable and isinstance(row["usable_bytes"], int)


def test_plain_words_and_the_catalogue_as_it_is_written_are_taken(tmp_path: Path) -> None:
    row = card(tmp_path / "c.csv", "name,usable_gb,bandwidth,price\nOne,31.5,900,2.5\n")
    assert (row["bandwidth_gb_per_s"], row["price_usd_per_hour"]) == (900, 2.5)
    from sizing_xlsx.catalogue_command import csv_text, rows_of

    text = csv_text(rows_of(load_presets())["gpus"])
    written = tmp_path / "cards.csv"
    written.write_text(text, newline="")
    assert load_presets(gpus=[written]).gpus.keys == load_presets().gpus.keys
    written.write_text(text.replace("NVIDIA T4,NVIDIA", "Site 7,NVIDIA", 1), newline="")
    assert load_presets(gpus=[written]).gpus.keys == ("Site 7", *load_presets().gpus.keys)


def test_files_that_lie_beside_a_config_are_no_models(tmp_path: Path) -> None:
    for name in ("a.json", "tokenizer_config.json", "generation_config.json", "model.safetensors.index.json"):
        (tmp_path / name).write_text("{}")
    assert config_files(tmp_path) == [tmp_path / "a.json"]


def test_csv_and_toml_say_the_same(tmp_path: Path) -> None:
    from_csv = card(tmp_path / "c.csv", "name,usable_gib,vendor,architecture,power_w\nOne,31.5,NVIDIA,Ada,300\n")
    text = '[[gpu]]\nname = "One"\nusable_gib = 31.5\nvendor = "NVIDIA"\narchitecture = "Ada"\npower_w = 300\n'
    from_toml = card(tmp_path / "c.toml", text)
    named = {key: str(value).replace("c.csv", "c.toml") for key, value in from_csv.items()}
    assert named == {key: str(value) for key, value in from_toml.items()}


def test_what_is_not_said_is_told_as_assumed(tmp_path: Path) -> None:
    plain = card(tmp_path / "c.csv", "name,usable_gb\nNVIDIA X9,31.5\n")
    assert (plain["vendor"], plain["architecture"], plain["ecc"]) == ("NVIDIA", "not stated", "")
    assert plain["matmul_workspace_bytes"] == 2**25 and plain["matmul_workspace_source"].startswith("assumed: 32 MiB")
    ada = card(tmp_path / "c.csv", "name,usable_gb,architecture\nNVIDIA X9,31.5,ada\n")
    assert ada["matmul_workspace_bytes"] == 8_519_680 and "as NVIDIA GeForce RTX 4090" in ada["matmul_workspace_source"]
    said = card(tmp_path / "c.csv", "name,usable_gb,matrix workspace MiB\nNVIDIA X9,31.5,16\n")
    assert said["matmul_workspace_bytes"] == 2**24 and said["matmul_workspace_source"] == "own: c.csv, as entered"
    assert card(tmp_path / "c.csv", "name,usable_gb\nAcme,31.5\n")["vendor"] == "not stated"


def test_the_catalogue_as_csv_is_a_file_of_cards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue", "gpus", "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    t4 = next(line for line in lines if line.startswith("NVIDIA T4"))
    row = card(tmp_path / "c.csv", f"{lines[0]}\nOur own T4{t4.removeprefix('NVIDIA T4')}\n")
    base = load_presets().gpu_rows[0]
    changed = {key for key in GPUS if row[key] != base[key]}
    assert changed == {"name", "memory_source", "note"}


BAD_CARDS = [
    ("", "holds no card"),
    ("name,usable_gib\n", "holds no card"),
    ("name;usable_gib\nA;5\n", 'line 1 is "name;usable_gib"; a comma should stand between cells'),
    ("name,vendor\nA,B\n", "line 1 has no column for usable memory"),
    ("usable_gib\n5\n", "line 1 has no column for the name"),
    ("name,usabel_gb\nA,8\n", 'has the column "usabel_gb", which no card has; did you mean usable_gb?'),
    ("name,usable_gb,rack\nA,8,r\n", 'has the column "rack", which no card has; the columns are those'),
    ("name,Memory (GB)\nA,80\n", 'the column "Memory (GB)", which may be the label or what a framework can use'),
    ("name,VRAM\nA,80\n", "which may be the label or what a framework can use"),
    ("name,usable memory\nA,80\n", "says no unit; it should end in GB, GiB, MB, MiB or bytes"),
    ("name,usable_gb,Usable GiB\nA,8,7\n", 'columns "usable_gb" and "Usable GiB", which are the same'),
    ("name,usable_gb,usable_gb\nA,8,7\n", 'names the column "usable_gb" twice'),
    ("name,usable_gb\nA,-8\n", 'line 2, column usable_gb is "-8"; it should be a number of at least 0'),
    ("name,usable_gb\nA,80 GB\n", 'column usable_gb is "80 GB"; it should be a number'),
    ('name,usable_gb\nA,"8,5"\n', 'column usable_gb is "8,5"; it should be a number of at least 0, with a point'),
    ("name,usable_gb\nA,\n", 'column usable_gb is ""; it should be a number'),
    ("name,usable_gb\nA,inf\n", 'column usable_gb is "inf"'),
    ("name,usable_gb\nA,0\n", "which is 0.000 GB; it should be from 0.1 to 2,000 GB"),
    ("name,usable_gb\nA,81089\n", "which is 81,089.000 GB; it should be from 0.1 to 2,000 GB"),
    ("name,usable_bytes\nA,80\n", "it should be from 0.1 to 2,000 GB, in the unit that the column's name says"),
    ("name,usable_gib,label_gb\nA,85.9,80\n", "more than the label of 80 GB even when that counts in GiB"),
    ("name,usable_gib,driver_total_mib\nA,8,8000\n", "more than the driver's total of 8,388,608,000 bytes"),
    ("name,usable_gb,power_w\nA,8,lots\n", 'column power_w is "lots"; it should be a number'),
    ("name,usable_gb,ecc\nA,8,yes\n", 'column ecc is "yes"; it should be on, off or empty'),
    ("name,usable_gb,ecc_memory_share\nA,8,6.25\n", "column ecc_memory_share is 6.25; it should be below 1"),
    ("name,usable_gb,matrix workspace gb\nA,8,32\n", "the matrix workspace is 32,000,000,000 bytes; it should be at"),
    ("name,usable_gb\nA,8\na,9\n", 'line 3, column name is "a", which is there already as "A"; rename'),
    ("name,usable_gb\nA,8\nA,9\n", 'line 3, column name is "A", which is there already; rename'),
    ("name,usable_gb\nnvidia t4,15\n", 'is "nvidia t4", which is there already as "NVIDIA T4"; rename'),
    ("name,usable_gb\nNVIDIA B200 MIG 1G.23GB,20\n", "which is there already as"),
    ("name,usable_gb\n=1+1,8\n", 'column name is "=1+1"; a name may not begin with = + - @'),
    ("name,usable_gb\nA*,8\n", 'column name is "A*"; a name may not'),
    ("name,usable_gb\nA?,8\n", 'column name is "A?"; a name may not'),
    ("name,usable_gb\nA~,8\n", 'column name is "A~"; a name may not'),
    ("name,usable_gb\nA\tB,8\n", 'column name is "A\\tB"; a name may not'),
    ('name,usable_gb\n"A\nB",8\n', 'column name is "A\\nB"; a name may not'),
    (f"name,usable_gb\n{'x' * 300},8\n", "300 characters long; a name has at most 200"),
    ("name,usable_gb,note\nA,8,=cmd|x!A1\n", "column note is \"=cmd|x!A1\"; a text may not begin with = + - @"),
    (f"name,usable_gb,note\nA,8,{'x' * 1001}\n", "longer than 1,000 characters"),
    ("name,usable_gb\nA,8,9\n", "line 2 has 3 cells; it should have 2"),
    ('name,usable_gb\n"A,8\n', "is not CSV"),
]  # fmt: skip
BAD_TOML = [
    ("", "holds no card"),
    ("x =", "is not TOML"),
    ("[gpu]\nname = 'A'", "it should be written as [[gpu]], once for each card"),
    ("[[card]]\nname = 'A'", 'holds "card"; it should hold a [[gpu]] for each card'),
    ("[[gpu]]\nname = 'A'", "[[gpu]] 1 has no column for usable memory"),
    ("[[gpu]]\nname = 'A'\nusable_gib = true", "[[gpu]] 1, column usable_gib is true; it should be a text or a number"),
    ("[[gpu]]\nname = 'A'\nusable_gib = nan", 'column usable_gib is "nan"; it should be a number'),
    ("[[gpu]]\nname = 'A'\nusable_gib = 8\n[[gpu]]\nname = 'B'\nusable_gib = -8", "[[gpu]] 2, column usable_gib is"),
]


@pytest.mark.parametrize(
    ("name", "text", "said"), [("c.csv", *case) for case in BAD_CARDS] + [("c.toml", *case) for case in BAD_TOML]
)
def test_a_wrong_file_of_cards_is_named_in_a_sentence(tmp_path: Path, name: str, text: str, said: str) -> None:
    file = cards(tmp_path / name, text)
    sentence = refused(gpus=[file])
    assert said in sentence and str(file) in sentence
    assert file.read_text(encoding="utf-8") == text


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(gpus=[tmp_path / "no.csv"])
    assert "cannot be read: No such file" in refused(gpus=[tmp_path / "no.toml"])
    (tmp_path / "latin.csv").write_bytes(b"name,usable_gb\nK\xf6ln,8\n")
    assert "is not UTF-8 text at byte" in refused(gpus=[tmp_path / "latin.csv"])
    assert "there is no file" in refused(models=[tmp_path / "no"])
    assert "cannot be read" in refused(gpus=[tmp_path])


def test_a_thousand_cards_are_read_at_once_and_offered(tmp_path: Path, build_alone: Alone) -> None:
    build_alone("training")
    text = "name,usable_gb\n" + "".join(f"Node {at},{20 + at % 60}\n" for at in range(1000))
    start = time.process_time()
    own = load_presets(gpus=[cards(tmp_path / "c.csv", text)])
    assert time.process_time() - start < 2 and len(own.gpus) == 1000 + len(load_presets().gpus)
    path, *_ = build(tmp_path / "out", own)
    assert lint_workbook(path) == []


# -- models


def test_a_path_means_a_config_a_folder_with_one_or_a_folder_of_them(tmp_path: Path) -> None:
    zoo, flat = tmp_path / "zoo", tmp_path / "flat"
    for name in ("b--Two", "a--One", ".hidden"):
        config(zoo / name / "config.json")
    (zoo / "notes").mkdir()
    for name in ("c--Three.json", "d--Four.JSON", ".e.json"):
        config(flat / name)
    (flat / "readme.txt").write_text("no model")

    def names(*paths: Path) -> list[str]:
        return [own.name for own in load_presets(models=paths).own]

    assert names(zoo) == ["a/One", "b/Two"]
    assert names(flat) == ["c/Three", "d/Four"]
    assert names(zoo / "a--One") == names(zoo / "a--One" / "config.json") == ["a/One"]
    assert names(flat / "c--Three.json", zoo) == ["c/Three", "a/One", "b/Two"]
    assert config_files(tmp_path / "none") == [tmp_path / "none"]
    (tmp_path / "empty").mkdir()
    assert "empty holds no model; it should hold a config.json" in refused(models=[tmp_path / "empty"])


def test_own_models_are_offered_first_or_listed_with_their_reason(tmp_path: Path) -> None:
    base = load_presets()
    config(tmp_path / "zoo" / "lab--Tiny" / "config.json", **TINY)
    config(tmp_path / "zoo" / "lab--Odd" / "config.json", model_type="internlm2")
    own = load_presets(models=[tmp_path / "zoo"])
    assert own.models.keys == ("lab/Tiny", *base.models.keys)
    assert own.models.hidden_size[1] == 640
    assert [model.name for model in own.unsized_models][:1] == ["lab/Odd"]
    assert own.unsized_models[1:] == base.unsized_models and base.sized_models == own.sized_models[1:]
    assert {row.name: bool(row.why_not) for row in own.own} == {"lab/Tiny": False, "lab/Odd": True}


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (
            "qwen--qwen2.5-7b",
            'is called "qwen/qwen2.5-7b", which is there already as "Qwen/Qwen2.5-7B"; rename its folder',
        ),
        ("google--gemma-2-9b", 'is called "google/gemma-2-9b", which is there already; rename its folder'),
        ("=1+1", "a name may not begin with"),
        ("x" * 240, "240 characters long"),
    ],
)
def test_a_name_that_cannot_be_offered_is_refused(tmp_path: Path, folder: str, said: str) -> None:
    file = config(tmp_path / folder / "config.json")
    assert said in refused(models=[file])
    twice = config(tmp_path / "a--Own" / "config.json")
    assert '"a/Own", which is there already' in refused(models=[twice, twice.parent])


def test_a_config_that_is_wrong_is_named(tmp_path: Path) -> None:
    file = config(tmp_path / "lab--Wrong" / "config.json", hidden_size="wide")
    assert 'hidden_size is "wide"' in refused(models=[tmp_path / "lab--Wrong"])
    file.write_text("{")
    assert "is not JSON" in refused(models=[file])


# -- workbooks


@pytest.fixture(scope="module")
def own_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    cards(folder / "cards.csv")
    config(folder / "zoo" / "lab--Tiny" / "config.json", **TINY)
    config(folder / "zoo" / "lab--Odd" / "config.json", model_type="internlm2")
    return folder


@pytest.fixture(scope="module")
def own(own_files: Path) -> Presets:
    return load_presets(models=[own_files / "zoo"], gpus=[own_files / "cards.csv"])


@pytest.fixture(scope="module")
def own_books(own_files: Path, own: Presets) -> dict[str, Book]:
    paths = build(own_files / "out", own)
    return {name: Book(name, path, own) for name, path in zip(BOOKS, paths, strict=True) if name in JOBS}


@pytest.mark.parametrize("name", JOBS)
def test_the_workbooks_offer_them_and_stay_clean(own_books: dict[str, Book], name: str) -> None:
    book = own_books[name]
    assert lint_workbook(book.path) == []
    shown = values(book.path)
    assert {"Rack 7", "Acme A1", "Own: on loan"} <= shown["GPUs"]
    assert any("own: cards.csv, as entered" in str(text) for text in shown["GPUs"])
    assert any(str(text).startswith("cards.csv (hash ") or "cards.csv (hash " in str(text) for text in shown["Notes"])
    if name == "lora":
        assert {"lab/Tiny", "lab/Odd", "own: lab--Tiny/config.json, as entered"} <= shown["Presets"]
        assert any(str(text).startswith("own, lab--Odd/config.json: ") for text in shown["Presets"])
    text = b"".join(File(book.path).parts.values()).decode()
    assert str(book.path.parent) not in text


def values(path: Path) -> dict[str, set[Any]]:
    book = openpyxl.load_workbook(path, data_only=True)
    return {sheet.title: {cell for row in sheet.iter_rows(values_only=True) for cell in row} for sheet in book}


ENGINES: list[Any] = [
    Formualizer,
    pytest.param(
        LibreOffice, marks=pytest.mark.skipif(not libreoffice_available()[0], reason="LibreOffice is not here")
    ),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", JOBS)
def test_their_verdict_in_the_workbook_is_that_of_python(
    own_books: dict[str, Book], own: Presets, name: str, engine: Callable[[Path], Any]
) -> None:
    book, job = own_books[name], make_job(name, own)
    opened = engine(book.path)
    of_job = {"lora": {"base_model": "lab/Tiny", "adapter_layers": 7}, "full": {"base_model": "lab/Tiny"}}
    model: dict[str, Any] = of_job.get(name, {})
    verdicts = set()
    try:
        for card, batch in (("Acme A1", 4), ("Rack 7", 400), ("Acme A1", 400)):
            inputs = {**model, "gpu_choice": card, "batch_size": batch}
            for key, value in inputs.items():
                opened.set(public_name(key), float(value) if isinstance(value, int) else value)
            opened.recalculate()
            found = job.size(**inputs)
            assert opened.get("Checks_Failed") == 0
            wrong = [
                key for key, value in found.items()
                if not close(opened.get(public_name(key)), float(value) if isinstance(value, int) else value)
            ]  # fmt: skip
            assert [key for key in wrong if key != "fit_verdict"] == []
            assert str(opened.get("Fit_Verdict")).casefold() == str(found["fit_verdict"]).casefold()
            verdicts.add(found["fit_verdict"])
    finally:
        getattr(opened, "close", lambda: None)()
    assert len(verdicts) >= 2, verdicts


def test_a_refused_file_leaves_the_workbooks_and_the_files_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = cards(tmp_path / "c.csv", "name,usable_gb\nnvidia t4,15\n"), tmp_path / "out"
    out.mkdir()
    (out / "gpu-finetune-memory-sizing.xlsx").write_bytes(b"mine")
    assert main(["build", "--output", str(out), "--gpu", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and 'line 2, column name is "nvidia t4"' in said
    assert [path.read_bytes() for path in out.iterdir()] == [b"mine"]
    assert file.read_text() == "name,usable_gb\nnvidia t4,15\n"


# -- the command line


def test_the_commands_take_them(own_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--gpu", str(own_files / "cards.csv"), "--model", str(own_files / "zoo"), "--no-derive"]
    chosen = ["--base-model", "lab/tiny", "--gpu-choice", "acme a1", "--adapter-layers", "7"]
    assert main(["lora", *files, *chosen, "--json"]) == 0
    said = capsys.readouterr()
    sized = json.loads(said.out)
    assert sized["results"]["gpu_usable_capacity_gb"] == 31.5 * 2**30 / 10**9
    assert any("Acme A1" in line or "acme a1" in line for line in sized["warnings"])
    assert said.err.count("\n") == 1
    assert said.err.startswith("sizing-xlsx: lab/Odd (lab--Odd/config.json) is not offered: ")
    assert main(["training", *files[:2], "--gpu-choice", "Rack 7"]) == 0
    assert "on Rack 7:" in capsys.readouterr().out
    assert main(["lora", *chosen]) == 2, "without the files they are not known"
    capsys.readouterr()


def test_both_options_may_be_repeated(own_files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = cards(tmp_path / "more.toml", '[[gpu]]\nname = "Third"\nusable_gb = 20\n')
    config(tmp_path / "flat" / "x--Y.json")
    words = ["--gpu", str(own_files / "cards.csv"), "--gpu", str(more)]
    words += ["--model", str(own_files / "zoo" / "lab--Tiny"), "--model", str(tmp_path / "flat")]
    assert main(["catalogue", "--json", *words]) == 0
    lists = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in lists["gpus"]][:4] == ["Rack 7", "Acme A1", "Third", "NVIDIA T4"]
    assert [(row["name"], row["own"]) for row in lists["models"]][:2] == [
        ("lab/Tiny", "lab--Tiny/config.json"), ("x/Y", "x--Y.json"),
    ]  # fmt: skip


# -- the catalogue


def test_the_catalogue_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue"]) == 0
    text = capsys.readouterr().out
    presets = load_presets()
    for name in (*presets.models.keys, *presets.gpus.keys, *(row["name"] for row in presets.storage_rows)):
        assert name in text
    assert all(model.why_not in text for model in presets.unsized_models)
    assert main(["catalogue", "formats"]) == 0
    one = capsys.readouterr().out
    assert one.startswith("Storage format") and "NVIDIA" not in one and one in text


@pytest.mark.parametrize("name", catalogue_command.LISTS)
def test_the_catalogue_as_csv_is_what_rfc_4180_says(name: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["catalogue", name, "--csv"]) == 0
    text = capsysbinary.readouterr().out.decode()
    assert text.endswith("\r\n") and text.count("\n") == text.count("\r\n")
    lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    rows = catalogue_command.rows_of(load_presets())[name]
    assert lines[0] == list(rows[0]) and {len(line) for line in lines} == {len(lines[0])}
    assert [line[lines[0].index("name")] for line in lines[1:]] == [row["name"] for row in rows]


def test_the_catalogue_as_json_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(catalogue_command.rows_of(load_presets())))
    assert main(["catalogue", "gpus", "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert list(one) == ["gpus"] and list(one["gpus"][0]) == list(GPUS)
    h100 = next(row for row in one["gpus"] if row["name"] == "NVIDIA H100 SXM5 80GB")
    assert h100["usable_bytes"] == 85_027_979_264


def test_a_catalogue_that_cannot_be_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue", "--csv"]) == 2
    assert capsys.readouterr().err == f"sizing-xlsx: {catalogue_command.CSV_WITHOUT_A_LIST}.\n"
    for words in (["catalogue", "prices"], ["catalogue", "gpus", "--csv", "--json"]):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 2
    assert main(["catalogue", "--presets", str(tmp_path / "none")]) == 2


def test_the_catalogue_of_an_own_presets_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(presets_folder(), tmp_path / "presets"))
    config(folder / "models" / "own--Copy" / "config.json")
    assert main(["catalogue", "models", "--presets", str(folder)]) == 0
    assert "own/Copy" in capsys.readouterr().out

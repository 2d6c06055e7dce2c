"""Templates and presets that a planner has edited wrongly: one sentence that names the place, nothing written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sizing_xlsx import paths
from sizing_xlsx.cli import main
from sizing_xlsx.workbook import build as building
from sizing_xlsx.workbook import styles, template
from sizing_xlsx.workbook.build import build
from sizing_xlsx.workbook.plan import template as plan_template

ROOT = Path(__file__).parents[1]
EDITS = [
    ('input = "lora_rank"', 'input = "lora_rankk"', "lora_rankk is no input"),
    ('switch = "capacity_entered"', 'switch = "capacity_enteredd"', "did you mean capacity_entered"),
    ('title = "LoRA', 'titel = "LoRA', "titel is no entry of a template; did you mean title"),
    ("[[steps]]", "[[stepz]]", "stepz is no entry"),
    ('file = "gpu-finetune', 'file = "../gpu-finetune', "must be a plain name"),
    ('file = "gpu-finetune-memory-sizing.xlsx"', 'file = "a.txt"', "ends in .xlsx"),
    ('file = "gpu-finetune-memory', 'file = "gpu-training-memory', "rename one"),
    ("{largest_batch_size:0}", "{largest_batch_size:9z}", "a symbol is written"),
    ("{largest_batch_size:0} would", "{largest_batch_size:0 would", "a symbol is written"),
    ('title = "LoRA fine-tuning"', "title = 5", "title is 5; it must be a text"),
    ('subject = "', 'subject = ""', "lora.toml: "),
    ('term = "loss_forward_moment"', 'term = "nope"', "nope is no input"),
    ('rows = "lora"', "", "lora.toml and validation.toml: rows is missing; it must be a text"),
    ('term = "trains_prefix"', 'therm = "trains_prefix"', "unless of the lever 'Checkpointing' has {'therm'"),
    ('term = "trains_prefix"', 'term = "trains_prefixx"', "trains_prefixx is no input, term, constant"),
    (
        'pulled = "format_converts"',
        'pulled = "format_convert"',
        "format_convert is no term; did you mean format_converts",
    ),
    (
        'at_most = 0, why = "the base is not',
        'at_most = 7, why = "the base is not',
        "at_most or at_least with 0, 1 or 2",
    ),
]


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the templates that the build reads in place of the checkout's."""
    folder = Path(shutil.copytree(ROOT / "templates", tmp_path / "templates"))
    for module in (paths, template, styles, plan_template):
        monkeypatch.setattr(module, "templates_folder", lambda: folder)
    return folder


@pytest.mark.parametrize(("old", "new", "words"), EDITS, ids=[edit[1][:30] for edit in EDITS])
def test_a_wrong_template_is_refused_before_anything_is_written(
    templates: Path, tmp_path: Path, old: str, new: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (templates / "lora.toml").read_text(encoding="utf-8")
    assert old in text
    (templates / "lora.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    assert main(["build", "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1 and "Traceback" not in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("start.toml", 'option = "custom"', 'option = "costum"', "did you mean custom"),
        ("start.toml", "Unsure: {unsure_answers:0}", "Unsure: {unsure_answer:0}", "unsure_answer is no input"),
        ("start.toml", 'memory: {title}"', 'memory: {titel}"', "in braces it may say {title}"),
        ("start.toml", 'job = "lora"', 'job = "lore"', "lore.toml is missing"),
        ("summary.toml", "[signed]", "[sign]", "sign.date is no text that a sheet shows; did you mean signed.date"),
        ("scenarios.toml", "[tiles]", "[tile]", "scenarios 1 lacks tiles"),
        ("scenarios.toml", "the first {rows} rows", "the first {row} rows", "in braces it may say {rows}"),
        ("sensitivity.toml", "{label} is {value}", "{label} is {values}", "in braces it may say {axis}, {at}, {label}"),
        ("crossover.toml", "no_card =", "nocard =", "crossover 1 lacks no_card"),
        ("summary.toml", "{total_shown_gb:1} of", "{total_shown:1} of", "total_shown is no input"),
        ("sizing.toml", 'headroom = "Headroom"', "", "sizing.toml: tiles.headroom is missing; it must be a text"),
        ("sizing.toml", "no_item", "no_itme", "no_itme is no text that a sheet shows; did you mean no_item"),
        ("sizing.toml", "{failed} of", "{fialed} of", "in braces it may say {failed}, {count}, {ending}"),
        ("sizing.toml", '"Headroom"', '"Headroom {count}"', "nothing in braces is filled in there"),
        ("sizing.toml", '" fails", ', "", "checks.endings is \"[' fail']\"; it must be a list of 2 texts"),
        (
            "validation.toml",
            'wrong = "Wrong"',
            'wrong = "right"',
            "calls.right is 'Right'; it must begin with a letter",
        ),
        ("chart_data.toml", "{usable_shown_gb:1}", "{usable_shown:1}", "usable_shown is no input"),
        ("book.toml", '"CHECK INPUT"', '"LOOK HERE"', 'it must begin with "Check"'),
        ("lora.toml", 'unseen_kind = "no"', 'unseen_kind = "never"', "unseen_kind = 'never'; it must be one of yes"),
    ],
)
def test_wrong_words_of_start_and_summary_are_refused(
    templates: Path, tmp_path: Path, file: str, old: str, new: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (templates / file).read_text(encoding="utf-8")
    assert old in text
    (templates / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    assert main(["build", "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"idle_share", "failed', '"idle_shares", "failed', "idle_shares, which is no input; did you mean idle_share"),
        ("spare_cards = 1", "spare_card = 1", "opens has spare_card, which is no row of settings; did you mean"),
        ('"lora_rank", "sharding', '"lora_ranks", "sharding', "blank of kinds.lora names lora_ranks, which is no input"),
        ('inputs = { training_recipe', 'inputs = { training_recipes', "inputs of kinds.full names training_recipes"),
        ("purchase_usd = 2800", "purchase = 2800", "cards 1 has purchase, which none has"),
        ("runs_at_once = 2", "run_at_once = 2", "jobs 3 has run_at_once, which none has; did you mean runs_at_once"),
        ('lora_rank = ["LoRA rank", 8', 'lora_rank = ["LoRA rank", "8"', "columns.lora_rank must be a head, a width"),
        ('deadline_date = ["', 'deadline = ["', "columns.deadline"),
        ("{count} not counted", "{counts} not counted", "in braces it may say {count}"),
        ("{number} {currency}, by", "{numbers} {currency}, by", "in braces it may say {number}, {currency}"),
        ('too_large = "', 'to_large = "', "to_large is no text that a sheet shows; did you mean too_large"),
        ("[lists]", "[list]", "list is no entry of a plan's template; did you mean lists"),
        ('file = "gpu-capacity-plan.xlsx"', 'file = "gpu-full-finetune-sizing.xlsx"', "rename one"),
        ('file = "gpu-capacity-plan.xlsx"', 'file = "plan.txt"', "ends in .xlsx"),
        ('file = "gpu-capacity-plan.xlsx"', "file = 1", "file is 1; it must be a text"),
        ('[["Card", ""], ["Own price"', '[["Own price"', "card_columns must be a list of 13 pairs of texts"),
    ],
)
def test_a_wrong_template_of_the_plan_is_refused(
    templates: Path,
    tmp_path: Path,
    old: str,
    new: str,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "rename" not in words:
        monkeypatch.setattr(building, "BOOKS", ("plan",))
    text = (templates / "plan.toml").read_text(encoding="utf-8")
    assert old in text
    (templates / "plan.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    assert main(["build", "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("size = 11", 'size = "big"', "size is 'big'"),
        ("size = 11", "size = -3", "size is -3"),
        ('ink = "1F2A37"', 'ink = "#zzz"', "palette.ink is '#zzz'"),
        ("[rows]", "[rowz]", "the section rows is missing"),
        ('y_title = "Error"', "", "charts.error_by_run.y_title is None; it must be a text"),
        ("Page {page}", "Page {side}", "in braces it may say {page}, {pages}"),
    ],
)
def test_a_wrong_look_is_refused(templates: Path, tmp_path: Path, old: str, new: str, words: str) -> None:
    text = (templates / "look.toml").read_text(encoding="utf-8")
    (templates / "look.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        build(tmp_path)


@pytest.mark.parametrize(
    ("file", "gone", "words"),
    [
        ("gpus.csv", "NVIDIA H100 SXM5 80GB", 'parent is "NVIDIA H100 SXM5 80GB"; it should be a card of gpus.csv'),
        ("storage_formats.csv", "bf16,", "storage_formats has no 'bf16'"),
        ("training_models.csv", "Article worked model", "training_models has no 'Article worked model"),
        ("measured/h100_lora_sweep.csv", "ft", "the lora sweep has no completed run"),
    ],
)
def test_presets_that_lack_what_a_workbook_opens_on(tmp_path: Path, file: str, gone: str, words: str) -> None:
    presets = Path(shutil.copytree(ROOT / "presets", tmp_path / "presets"))
    if "_sweep" in file:  # a trace of a run that is gone is refused
        (presets / file.replace("_sweep", "_trace")).unlink()
    lines = (presets / file).read_text(encoding="utf-8").splitlines(keepends=True)
    (presets / file).write_text("".join(line for line in lines if not line.startswith(gone)), encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        build(tmp_path / "out", folder=presets)
    assert not (tmp_path / "out").exists()


def test_a_folder_in_the_place_of_a_workbook_leaves_the_other_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "gpu-training-memory-sizing.xlsx").mkdir()
    (tmp_path / "gpu-finetune-memory-sizing.xlsx").write_bytes(b"mine")
    assert main(["build", "--output", str(tmp_path)]) == 2
    assert (tmp_path / "gpu-finetune-memory-sizing.xlsx").read_bytes() == b"mine"
    assert len(list(tmp_path.iterdir())) == 2

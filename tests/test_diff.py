"""Two workbooks of one job: what moved is told apart into inputs, presets and formulas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from carry_books import column, named, newer_presets
from engines import libreoffice_available, saved_by_libreoffice

from sizing_xlsx import cli
from sizing_xlsx.memory.shared import allocator
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook.build import book_bytes, load_template, plain_job
from sizing_xlsx.workbook.diff import words
from sizing_xlsx.workbook.diff.compare import compare
from sizing_xlsx.workbook.template import read_toml

with_libreoffice = pytest.mark.skipif(not libreoffice_available()[0], reason=libreoffice_available()[1])
LAYER = "reserve_layer_mib"


def workbook(path: Path, presets: Path | None = None, **inputs: Any) -> Path:
    """A training workbook that opens on some inputs, over a presets folder."""
    data = book_bytes("training", load_template("training"), load_presets(presets), presets, (), inputs or None)
    path.write_bytes(data)
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Workbooks that differ in one thing each, and one that differs in all of them."""
    found = tmp_path_factory.mktemp("diff")
    presets = found / "presets"
    newer_presets(presets)
    cards = presets / "gpus.csv"
    lines = cards.read_text(encoding="utf-8").splitlines(keepends=True)
    usable = lines[0].split(",").index("usable_bytes")
    for at, line in enumerate(lines):
        if line.startswith("NVIDIA H100 SXM5 80GB,"):
            cells = line.split(",")
            cells[usable] = str(int(cells[usable]) - 10**9)
            lines[at] = ",".join(cells)
    cards.write_text("".join(lines), encoding="utf-8")
    workbook(found / "plain.xlsx")
    workbook(found / "input.xlsx", batch_size=300)
    workbook(found / "preset.xlsx", presets)
    with pytest.MonkeyPatch.context() as patch:
        constant = getattr(allocator, LAYER)
        patch.setattr(allocator, LAYER, constant._replace(value=constant.value + 4))
        workbook(found / "formula.xlsx")
    workbook(found / "all.xlsx", presets, batch_size=300)
    return found


def shares(found: Any, name: str) -> dict[str, float]:
    """The shares of one result by kind; they are what moved in all."""
    (moved,) = [one for one in found.moved if one.name == name]
    by = {kind: moved.share(kind) for kind in ("input", "preset", "formula")}
    assert sum(by.values()) == pytest.approx(moved.new - moved.old, abs=1e-9)
    return by


def test_a_workbook_and_itself_do_not_differ(folder: Path) -> None:
    found = compare(folder / "plain.xlsx", folder / "plain.xlsx")
    assert (found.moved, found.changed, found.notes) == ([], [], [])
    assert words.lines(found)[1:] == ["No result moved."]


def test_an_input_has_the_whole_share(folder: Path) -> None:
    found = compare(folder / "plain.xlsx", folder / "input.xlsx")
    job = plain_job("training", load_presets())
    before, after = (job.size(["peak_allocated_gb"], batch_size=size)["peak_allocated_gb"] for size in (256, 300))
    assert shares(found, "Peak_Allocated_GB") == {"input": pytest.approx(after - before), "preset": 0, "formula": 0}
    assert [(cause.kind, cause.name, cause.told) for cause in found.changed] == [
        ("input", "Batch_Size", ("256 → 300",))
    ]
    assert "GPU_Usable_Capacity_GB" not in [moved.name for moved in found.moved]


def test_a_preset_has_the_whole_share(folder: Path) -> None:
    found = compare(folder / "plain.xlsx", folder / "preset.xlsx")
    assert shares(found, "GPU_Usable_Capacity_GB") == {"input": 0, "preset": pytest.approx(-1), "formula": 0}
    assert shares(found, "Headroom_GB")["preset"] == pytest.approx(-1)
    (cause,) = found.changed
    assert (cause.kind, cause.name) == ("preset", "gpus")
    assert cause.told[0].startswith("NVIDIA H100 SXM5 80GB: usable_bytes 85,")
    assert "other rows" in cause.told[-1], "cards that the job does not use are counted"


def test_a_formula_has_the_whole_share(folder: Path) -> None:
    """The older workbook kept another constant; its stored results are all that is left of it."""
    found = compare(folder / "formula.xlsx", folder / "plain.xlsx")
    by = shares(found, "Total_Reserved_GB")
    assert (by["input"], by["preset"]) == (0, 0)
    assert by["formula"] < -0.01
    assert [cause.kind for cause in found.changed] == ["formula"]
    assert "Preset_Reserve_Layer_MiB: 18 → 14" in "\n".join(words.lines(found))
    assert "Peak_Allocated_GB" not in [moved.name for moved in found.moved]


def test_all_three_are_told_apart(folder: Path) -> None:
    found = compare(folder / "formula.xlsx", folder / "all.xlsx")
    headroom, total = shares(found, "Headroom_GB"), shares(found, "Total_Reserved_GB")
    assert headroom["preset"] == pytest.approx(-1)
    assert headroom["formula"] > 0.01
    alone = shares(compare(folder / "plain.xlsx", folder / "input.xlsx"), "Total_Reserved_GB")
    assert total["input"] == pytest.approx(alone["input"])
    assert total["formula"] == pytest.approx(shares(compare(folder / "formula.xlsx", folder / "plain.xlsx"), "Total_Reserved_GB")["formula"])  # fmt: skip
    assert {cause.kind for cause in found.changed} == {"input", "preset", "formula"}
    back = compare(folder / "all.xlsx", folder / "formula.xlsx")
    assert shares(back, "Headroom_GB")["preset"] == pytest.approx(1)


@with_libreoffice
def test_a_workbook_that_was_typed_in_and_saved_elsewhere(folder: Path, tmp_path: Path) -> None:
    book = openpyxl.load_workbook(folder / "plain.xlsx")
    named(book, "Batch_Size").value = 300
    column(book, "GPUs_Price_USD_Per_Hour_List")[0].value = 0.01
    book.save(tmp_path / "typed.xlsx")
    saved_by_libreoffice(tmp_path / "typed.xlsx", tmp_path / "new.xlsx")
    found = compare(folder / "plain.xlsx", tmp_path / "new.xlsx")
    assert shares(found, "Peak_Allocated_GB") == shares(compare(folder / "plain.xlsx", folder / "input.xlsx"), "Peak_Allocated_GB")  # fmt: skip
    assert ("gpus", ("1 other row",)) in [(cause.name, cause.told) for cause in found.changed]


def test_results_that_are_not_stored_are_calculated_and_told(folder: Path, tmp_path: Path) -> None:
    openpyxl.load_workbook(folder / "input.xlsx").save(tmp_path / "new.xlsx")  # which drops them
    found = compare(folder / "plain.xlsx", tmp_path / "new.xlsx")
    assert shares(found, "Peak_Allocated_GB")["formula"] == 0
    assert "holds no stored results for some figures" in words.lines(found)[-1]


def test_the_command_prints_lines_and_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["diff", str(folder / "plain.xlsx"), str(folder / "input.xlsx")]
    assert cli.main(arguments) == 0
    told = capsys.readouterr().out
    assert "  Batch_Size: 256 → 300" in told
    assert " by input Batch_Size" in told
    assert cli.main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (peak,) = [moved for moved in found["moved"] if moved["name"] == "Peak_Allocated_GB"]
    assert peak["by"]["input"] == pytest.approx(peak["new"] - peak["old"])


def test_what_cannot_be_compared_is_refused(
    folder: Path, books: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.xlsx"
    openpyxl.Workbook().save(other)
    book = openpyxl.load_workbook(folder / "plain.xlsx")
    named(book, "Batch_Size").value = 2.5
    book.save(tmp_path / "faulty.xlsx")
    for path, right in (
        (other, "this program has not made"),
        (tmp_path / "gone.xlsx", "is not there"),
        (books["lora"].path, "name two workbooks of one job"),
        (tmp_path / "faulty.xlsx", "batch_size is 2.5; it must be a whole number"),
    ):
        assert cli.main(["diff", str(folder / "plain.xlsx"), str(path)]) == 2
        said = capsys.readouterr()
        assert right in said.err
        assert (said.out, said.err.count("\n")) == ("", 1)


def test_the_renames_of_the_product_can_be_read() -> None:
    from sizing_xlsx.paths import presets_folder
    from sizing_xlsx.workbook.carry.renames import FILE, read_renames

    assert read_toml(presets_folder() / FILE) is not None
    read_renames(presets_folder(), "0")

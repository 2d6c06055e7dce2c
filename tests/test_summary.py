"""The Summary sheet: the figures of Sizing on one page, withdrawn while an input is at fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Book, File, Opened
from engines import Formualizer, contents

from sizing_xlsx.workbook.build import write_book
from sizing_xlsx.workbook.sheets.summary import BY, DATE

HARD = {"activation_checkpointing": "Off", "gpu_choice": "NVIDIA T4"}
LARGE = {"lora": {**HARD, "batch_size": 64}, "training": HARD, "full": HARD}
CARDS = {"lora": ("Card", "one "), "training": ("Card", "one "), "full": ("Cards", "2 × ")}


def shown(opened: Opened) -> dict[tuple[int, int], Any]:
    """What the cells of the sheet hold, by row and column from 1."""
    return dict(opened.engine.get_sheet("Summary"))


def beside(cells: dict[tuple[int, int], Any], label: str, right: int = 1) -> Any:
    """What stands to the right of the last cell with a text."""
    row, column = max(place for place, value in cells.items() if value == label)
    return cells.get((row, column + right))


def below(cells: dict[tuple[int, int], Any], label: str) -> Any:
    row, column = min(place for place, value in cells.items() if value == label)
    return cells[row + 1, column]


def test_the_page_says_what_sizing_says(opened: Opened) -> None:
    opened.type(LARGE[opened.book.name])
    cells, strip = shown(opened), opened.strip()
    assert below(cells, "Verdict") == strip["Verdict"][0] == "Does not fit"
    for label in ("Total to size against", "Usable capacity", "Headroom"):
        assert below(cells, label) == strip[label][0]
    assert beside(cells, "Peak allocated") == opened["Peak_Allocated_GB"]
    assert beside(cells, "Total to size against") == opened["Total_Reserved_GB"]
    label, number = CARDS[opened.book.name]
    assert beside(cells, label).startswith(f"{number.replace('one ', '')}NVIDIA T4, ")
    assert str(cells[2, 2]).startswith(f"Does not fit {number}NVIDIA T4: the peak alone is ")


def test_the_published_total_is_held_against_the_label_and_what_is_usable(short_books: dict[str, Book]) -> None:
    """Each with its verdict, on Sizing and on Summary, and the published verdict is the latter."""
    opened = Opened(short_books["full"], Formualizer)
    for inputs, told in (
        ({}, "Published, 84.38 GB: tight on the 85.9 of the label, does not fit the usable 85.0 less 0.8 of context and others."),
        ({"gpu_count": 4}, "Published, 60.29 GB: fits the 85.9 of the label, fits the usable 85.0 less 0.8 of context and others."),
        ({"sharding_stage": "DDP"}, "Published, 132.56 GB: does not fit the 85.9 of the label, does not fit the usable"),
        ({"gpu_choice": "NVIDIA V100 SXM2 32GB"}, "Published, 84.38 GB: does not fit the usable 34.1 less 0.8"),
    ):  # fmt: skip
        opened.type(inputs, verdict_basis="Published")
        for sheet in ("Sizing", "Summary"):
            lines = [str(value) for value in opened.engine.get_sheet(sheet).values()]
            assert any(line.startswith(told) for line in lines), (sheet, told, [x for x in lines if "Published, " in x])
        assert opened["Fit_Verdict"] == ("fits" if ", fits the usable" in told else "does not fit")
    opened.engine.close()


def test_line_items_add_up_to_the_peak_by_either_basis(opened: Opened) -> None:
    if not isinstance(opened.engine, Formualizer):
        pytest.skip("one engine is enough; the others recalculate every cell elsewhere")
    for basis in ("Traced", "Published"):
        opened.type(verdict_basis=basis)
        cells = shown(opened)
        sizes = [beside(cells, item["name"]) for item in opened.book.template["items"]]
        assert sum(sizes) == pytest.approx(beside(cells, "Peak allocated"), rel=1e-9)
        total = beside(cells, "Peak allocated") + beside(cells, "Allocator reserve, upper estimate")
        assert total == pytest.approx(beside(cells, "Total to size against"), rel=1e-9)


def test_a_fault_withdraws_every_figure_of_the_job(opened: Opened) -> None:
    before = shown(opened)
    opened.type(batch_size=0)
    cells = shown(opened)
    assert below(cells, "Verdict") == "CHECK INPUT"
    assert str(cells[2, 2]).startswith("Batch size is 0; enter a whole number")
    assert [(place, value) for place, value in cells.items() if isinstance(value, float)] == []
    assert sum(isinstance(value, float) for value in before.values()) > 20
    changed = {value for place, value in cells.items() if value != before.get(place)}
    assert changed <= {"–", "", "CHECK INPUT", cells[2, 2]}


def test_assumptions_follow_the_job(opened: Opened) -> None:
    if not isinstance(opened.engine, Formualizer):
        pytest.skip("one engine is enough; the others recalculate every cell elsewhere")
    plain = {*shown(opened).values()}
    assert "No own values: every shape and allowance is its preset." in plain
    warned = any(str(value).startswith("Warning: Sharding stage is ZeRO-1; ") for value in plain)
    assert warned is (opened.book.name == "full") is ("No warning is raised." not in plain)
    longest = 4_096 if opened.book.name == "lora" else 1_000_000
    opened.type(sequence_length=longest, layer_count_override=4, verdict_basis="Published")
    told = [str(value) for value in shown(opened).values()]
    assert "Own values in force: 1, in place of presets. Overrides and Sizing show them." in told
    assert "Basis: the published accounting of the article, as chosen." in told
    assert any(f"No row is longer than {longest:,} tokens" in text for text in told)
    if opened["Warnings_Raised"] and opened.book.name == "lora":
        assert any(text.startswith("Warning: Sequence length is 4,096;") for text in told)


def test_a_long_warning_is_cut_with_a_sign(books: dict[str, Book], tmp_path: Path) -> None:
    """In Python as in the cell; Checks has all of it."""
    book = books["lora"]
    amd = next(card for card in book.job.tables["gpus"] if card.startswith("AMD Instinct MI300X"))
    write_book(tmp_path / "amd.xlsx", "lora", book.template, book.presets, None, {"gpu_choice": amd})
    told = {value for place, value in File(tmp_path / "amd.xlsx").cached.items() if place[0] == "Summary"}
    cut = next(str(value) for value in told if str(value).endswith("…"))
    assert cut.startswith(f"Warning: GPU is {amd}") and len(cut) == len("Warning: ") + 113
    engine = Formualizer(tmp_path / "amd.xlsx")
    assert cut in engine.get_sheet("Summary").values()


def test_evidence_is_that_of_validation(book: Book) -> None:
    cells = {place: value for place, value in book.cached.items() if place[0] == "Summary"}
    where = contents(book.path).names
    finding, worst = (book.cached[where[name]] for name in ("validation_finding", "traced_worst_error"))
    assert finding in cells.values()
    assert any(f"traced {worst} at worst" in str(value) for value in cells.values())


def test_date_and_name_are_the_only_inputs_and_nothing_reads_them(book: Book) -> None:
    places = [contents(book.path).names[name.casefold()] for name in (DATE, BY)]
    assert {sheet for sheet, _, _ in places} == {"Summary"}
    assert places == sorted(places)
    assert [f for f in book.formulas.values() if DATE in f or BY in f] == []


def test_provenance_stands_on_the_page(book: Book) -> None:
    from lxml import etree

    strings = ["".join(item.itertext()) for item in etree.fromstring(book.parts["xl/sharedStrings.xml"])]
    line = next(text for text in strings if text.startswith("sizing_xlsx ") and "formulas hash" in text)
    assert "presets hash" in line and "data as of" in line

"""Compare: every card against the job, in Python and in the live rows, in whatever order the planner sorts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Book, Opened
from engines import Formualizer, Value, close, libreoffice_available, saved_by_libreoffice
from openpyxl.utils.cell import coordinate_to_tuple
from test_workbook_engines import seed

from sizing_xlsx import lora
from sizing_xlsx.jobs import job as job_of
from sizing_xlsx.planning.compare import (
    Card,
    cheapest_that_fits,
    every_card,
    smallest_that_fits,
)

WORDS = {1: "Fits", 2: "Tight", 3: "Does not fit", None: "Not known"}
ORDERS = ("Usable capacity", "Price per hour", "Catalogue")
JOBS: dict[str, list[dict[str, Any]]] = {
    "lora": [
        {},
        {"base_model": "meta-llama/Llama-3.1-70B", "batch_size": 2, "activation_checkpointing": "On"},
        {"verdict_basis": "Published", "batch_size": 64, "other_tenants_gb": 3},
        {"base_model": "mistralai/Mixtral-8x7B-v0.1", "base_storage_format": "nf4 / fp4, block 64, no double quant"},
    ],
    "full": [{"gpu_count": 8}, {"base_model": "Qwen/Qwen2.5-1.5B", "sharding_stage": "FSDP full shard"}],
    "training": [{}, {"batch_size": 1024, "activation_checkpointing": "On"}, {"compute_precision": "fp32"}],
}


def rows(opened: Opened) -> list[tuple[Value, ...]]:
    """What Compare shows, from its header's row down to the first row without a card."""
    cells = opened.engine.get_sheet("Compare")
    top = next(row for (row, column), value in cells.items() if column == 2 and value == "Card") + 1
    found = []
    while cells.get((top, 2)) not in (None, "") and (top, 3) in cells:
        found.append(tuple(cells.get((top, column)) for column in range(2, 10)))
        top += 1
    return found


def shown(card: Card) -> tuple[Value, ...]:
    """Name, verdict, utilisation, largest batch, longest sequence, price, as Compare shows them."""
    figures = (card.utilisation, card.largest_batch_size, card.largest_sequence_length)
    known = ["none" if figure is None else float(figure) for figure in figures]
    return (card.name, WORDS[card.verdict_code], *known, card.price or "none")


def test_every_card_is_sized_as_the_job_on_it() -> None:
    inputs = {"base_model": "Qwen/Qwen2.5-7B", "batch_size": 4, "gpu_capacity_override_gb": 10}
    cards = every_card(lora, **inputs)
    assert [card.name for card in cards] == list(lora.tables["gpus"])
    for card in cards:
        if card.verdict_code is None:
            assert lora.tables["gpus"].columns["usable_bytes"][lora.tables["gpus"].row_of(card.name) - 1] == 0
            continue
        alone = lora.size(
            ["verdict_code", "headroom_gb", "largest_batch_size", "largest_sequence_length"],
            **{**inputs, "gpu_capacity_override_gb": None, "gpu_choice": card.name},
        )
        assert alone["verdict_code"] == card.verdict_code
        assert alone["headroom_gb"] == card.headroom_gb
        assert alone["largest_batch_size"] == card.largest_batch_size
        assert alone["largest_sequence_length"] == card.largest_sequence_length


def test_the_smallest_and_the_cheapest_are_among_those_that_fit() -> None:
    cards = every_card(lora, batch_size=32, sequence_length=2048, activation_checkpointing="On")
    fitting = [card for card in cards if card.verdict_code == 1 and card.cuda]
    smallest, cheapest = smallest_that_fits(cards), cheapest_that_fits(cards)
    assert smallest in fitting and cheapest in fitting
    assert all(smallest.usable_gb <= card.usable_gb for card in fitting)  # type: ignore[union-attr, operator]
    assert all(cheapest.price <= card.price for card in fitting if card.price)  # type: ignore[union-attr, operator]
    none = every_card(lora, base_model="meta-llama/Llama-3.1-405B", batch_size=8)
    assert smallest_that_fits(none) is None and cheapest_that_fits(none) is None


@pytest.mark.parametrize(
    ("wrong", "said"), [({"batch_size": 0}, "batch_size is 0"), ({"gpu_choice": "H1000"}, "gpu_choice is 'H1000'")]
)
def test_a_wrong_job_is_refused_as_by_size(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        every_card(lora, **wrong)


def test_the_rows_are_the_cards_in_the_order_chosen(opened: Opened) -> None:
    name = opened.book.name
    for inputs in JOBS[name] if isinstance(opened.engine, Formualizer) else JOBS[name][1:2]:
        cards = every_card(job_of(name), **inputs)
        for order in ORDERS:
            opened.type(inputs)
            opened.engine.set("Compare_Order", order)
            opened.engine.recalculate()
            found = rows(opened)
            assert len(found) == len(cards)
            by_name = {card.name: card for card in cards}
            for row in found:
                expected = shown(by_name[str(row[0])])
                got = (row[0], row[1], row[2], *row[5:8])
                assert all(map(close, got, expected)), (got, expected, inputs, order)
            known = [by_name[str(row[0])] for row in found if row[1] != "Not known"]
            assert len(known) == sum(card.verdict_code is not None for card in cards)
            assert [row[1] for row in found[len(known) :]] == ["Not known"] * (len(cards) - len(known))
            if order == "Usable capacity":
                assert known == sorted(known, key=lambda card: card.usable_gb or 0)
            elif order == "Price per hour":
                priced = [card.price for card in known if card.price]
                assert priced == sorted(priced) == [card.price for card in known[: len(priced)]]
            else:
                assert [card.name for card in known] == [c.name for c in cards if c.verdict_code is not None]
    opened.engine.set("Compare_Order", ORDERS[0])


def test_the_strip_names_the_smallest_and_the_cheapest(opened: Opened) -> None:
    for inputs in JOBS[opened.book.name] if isinstance(opened.engine, Formualizer) else JOBS[opened.book.name][1:2]:
        cards = every_card(job_of(opened.book.name), **inputs)
        opened.type(inputs)
        found = {"Smallest_Card": smallest_that_fits(cards), "Cheapest_Card": cheapest_that_fits(cards)}
        for defined, card in found.items():
            assert opened.engine.get(defined) == (card.name if card else "No card fits")
        assert opened.engine.get("Cards_Fit") == sum(card.fits for card in cards)
        assert opened.engine.get("Cards_Tight") == sum(card.verdict_code == 2 for card in cards)


def test_an_own_price_and_an_own_capacity_count(opened: Opened) -> None:
    job = job_of(opened.book.name)
    rng = seed("own price", opened.book.name)
    opened.type({"gpu_capacity_override_gb": 500})
    found = rows(opened)
    own = [row for row in found if row[0] == "Card as entered on Sizing"]
    assert len(found) == len(job.tables["gpus"]) + 1 and len(own) == 1
    assert own[0][1] == "Fits" and own[0][4] == 500
    fitting = [card for card in every_card(job) if card.fits and card.cuda]
    dear = rng.choice(fitting)
    sheet, area = opened.book.names["GPUs_Price_USD_Per_Hour_List"].split("!")
    row, column = coordinate_to_tuple(area.split(":")[0].replace("$", ""))
    place = (sheet.strip("'"), row + list(job.tables["gpus"]).index(dear.name), column)
    before = opened.engine.get(place)
    opened.engine.set(place, 0.01)
    opened.engine.recalculate()
    assert opened.engine.get("Cheapest_Card") == dear.name
    opened.engine.set(place, before)
    opened.engine.recalculate()


def test_a_price_that_is_none_is_marked(opened: Opened) -> None:
    sheet, area = opened.book.names["GPUs_Price_USD_Per_Hour_List"].split("!")
    row, column = coordinate_to_tuple(area.split(":")[0].replace("$", ""))
    at = list(opened.book.job.tables["gpus"]).index("NVIDIA L4")
    place = (sheet.strip("'"), row + at, column)
    before = opened.engine.get(place)
    said = {}
    for typed in (-3, "1,10", None) if isinstance(opened.engine, Formualizer) else ("1,10",):
        opened.engine.set(place, typed)
        opened.engine.recalculate()
        cells = opened.engine.get_sheet("Compare")
        here = next(r for (r, c), value in cells.items() if c == 2 and value == "NVIDIA L4")
        said[typed] = (cells[here, 9], cells[here, 10])
    wrong = ("Check", "GPUs: a price is a number above 0")
    assert said == {-3: wrong, "1,10": wrong, None: ("none", "No price entered")} or said == {"1,10": wrong}
    opened.engine.set(place, before)
    opened.engine.recalculate()


def test_a_faulty_input_withdraws_every_figure(opened: Opened) -> None:
    for wrong in ({"batch_size": 2.5}, {"gpu_choice": "NVIDIA H1000"}, {"gpu_choice": None}):
        opened.type(wrong)
        found = rows(opened)
        assert {row[0] for row in found} == {*opened.book.job.tables["gpus"]}, wrong
        assert {value for row in found for value in row[1:]} == {"–"}
    opened.type({})
    opened.engine.set("Compare_Order", "By colour")
    opened.engine.recalculate()
    capacities = [row[4] for row in rows(opened) if row[1] != "Not known"]
    assert capacities == sorted(capacities, key=float)  # type: ignore[arg-type]
    opened.engine.set("Compare_Order", ORDERS[0])


@pytest.mark.skipif(not libreoffice_available()[0], reason="LibreOffice is not here")
def test_a_row_put_in_on_gpus_moves_no_card(book: Book, tmp_path: Path) -> None:
    """With the card that is typed there, every other one keeps its figures, its price and where that comes from."""
    path = saved_by_libreoffice(book.path, tmp_path / "longer.xlsx", [("GPUs", 9, 1)])
    before, after = Opened(book, Formualizer), Formualizer(path)
    for column, value in enumerate(("Rack 7", "NVIDIA"), 2):
        after.set(("GPUs", 9, column), value)
    after.recalculate()
    for sheet in ("Compare", "Crossover"):
        if sheet in book.sheets:
            wanted, found = before.engine.get_sheet(sheet), after.get_sheet(sheet)
            told = {at: value for at, value in wanted.items() if value != ""}
            assert {at: found.get(at) for at in told} == {at: pytest.approx(value) for at, value in told.items()}, sheet
    before.engine.close()
    after.close()

"""Crossover: every model in three formats against the cards, in Python and in the sheet, held against the jobs."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Book, Opened
from engines import Formualizer
from test_workbook_engines import seed

from sizing_xlsx import lora
from sizing_xlsx.planning.crossover import Need, needs, rooms, starts_at

CARD = "NVIDIA H100 SXM5 80GB"
JOBS: list[dict[str, Any]] = [
    {},
    {"activation_checkpointing": "On", "batch_size": 2, "sequence_length": 1024},
    {"verdict_basis": "Published", "other_tenants_gb": 2},
    {"adapter_layers": 20, "hidden_size_override": 1024, "gpu_choice": "NVIDIA L4"},
]


def formats(book: Book) -> dict[str, str]:
    return dict(book.template["crossover"]["formats"])


def holds(need: Need, name: str, inputs: dict[str, Any]) -> bool:
    """The verdict of the job itself on a card."""
    own = dict.fromkeys((*lora.own_values_of("base_model"), *lora.own_values_of("gpu_choice")))
    try:
        sized = lora.size(
            ["verdict_code"],
            **{
                **inputs,
                **own,
                "base_model": need.model,
                "base_storage_format": need.storage_format,
                "gpu_choice": name,
            },
        )
    except ValueError:
        return False
    return bool(sized["verdict_code"] == 1)


def test_what_is_needed_decides_as_the_verdict_does(books: dict[str, Book]) -> None:
    rng = seed("crossover")
    offered = rooms(lora)
    decided = set()
    for inputs in JOBS:
        for need in rng.sample(needs(lora, list(formats(books["lora"]).values()), **inputs), 40):
            for room in rng.sample(offered, 6):
                fits = need.need_gb is not None and need.need_gb <= (
                    room.traced_gb if need.traced else room.published_gb
                )
                assert fits is holds(need, room.name, inputs), (need, room, inputs)
                decided.add((fits, need.traced))
    assert decided == {(fits, traced) for fits in (True, False) for traced in (True, False)}


def test_the_card_it_starts_at_fits_and_no_smaller_one_does(books: dict[str, Book]) -> None:
    rng = seed("starts")
    offered = rooms(lora)
    for need in rng.sample(needs(lora, list(formats(books["lora"]).values()), batch_size=2), 60):
        name = starts_at(need, offered)
        by_room = {room.name: room.traced_gb if need.traced else room.published_gb for room in offered}
        smaller = [card for card, room in by_room.items() if name is None or room < by_room[name]]
        assert name is None or holds(need, name, {"batch_size": 2})
        assert not any(holds(need, card, {"batch_size": 2}) for card in rng.sample(smaller, min(4, len(smaller))))


@pytest.fixture
def book(short_books: dict[str, Book]) -> Book:
    """The fine-tuning workbook: the other one has no such sheet."""
    return short_books["lora"]


def test_the_sheet_says_what_python_says(opened: Opened) -> None:
    named = formats(opened.book)
    offered = rooms(lora)
    by_name = {room.name: room for room in offered}
    cards = list(opened.book.template["crossover"]["cards"])
    for inputs in JOBS if isinstance(opened.engine, Formualizer) else JOBS[1:2]:
        opened.type(inputs)
        found = {(need.model, need.storage_format): need for need in needs(lora, list(named.values()), **inputs)}
        cells = opened.engine.get_sheet("Crossover")
        top = next(row for (row, column), value in cells.items() if column == 2 and value == "Base model, by size") + 1
        models = []
        while cells.get((top, 2)) in lora.tables["models"].keys:
            model = str(cells[top, 2])
            models.append(model)
            each = [found[model, form] for form in named.values()]
            assert cells[top, 3] == pytest.approx(each[0].parameters / 1e9, rel=1e-12)
            for at, need in enumerate(each):
                assert cells[top, 4 + at] == pytest.approx(need.base_gb, rel=1e-12)
                assert cells[top, 4 + len(each) + at] == (starts_at(need, offered) or "no card"), (model, inputs)
            for at, card in enumerate(cards):
                first = next(
                    (name for name, need in zip(named, each, strict=True) if fits(need, by_name[card])), "none"
                )
                assert cells[top, 4 + 2 * len(each) + at] == first, (model, card, inputs)
            top += 1
        assert sorted(models) == sorted(opened.book.template["crossover"]["models"])
        sizes = [found[model, "bf16"].parameters for model in models]
        assert sizes == sorted(sizes)
        here = inputs.get("gpu_choice", CARD)
        for name, form in named.items():
            most = [model for model in models if fits(found[model, form], by_name[here])]
            assert opened[
                f"Largest_Model_{name}".replace("bf16", "BF16").replace("int8", "Int8").replace("NF4", "Nf4")
            ] == (most[-1] if most else "No model fits")


def fits(need: Need, room: Any) -> bool:
    return need.need_gb is not None and need.need_gb <= (room.traced_gb if need.traced else room.published_gb)


def test_every_model_of_the_catalogue_is_there(books: dict[str, Book]) -> None:
    models = {value for place, value in books["lora"].cached.items() if place[0] == "Crossover" and place[2] == 2}
    assert {*lora.tables["models"]} <= models


def test_seventy_billion_parameters_as_the_articles_count_them(books: dict[str, Book]) -> None:
    cells = {place[1:]: value for place, value in books["lora"].cached.items() if place[0] == "Crossover"}
    shown = [
        round(value, 1) for (_, column), value in sorted(cells.items()) if column == 3 and isinstance(value, float)
    ]
    assert shown[-5:-2] == [140.0, 35.0, 36.1]
    assert shown[-2] == 141.1 and 39 < shown[-1] < 40  # head and embeddings stay in 16 bit

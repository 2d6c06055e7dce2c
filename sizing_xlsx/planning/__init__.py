"""What a planner asks of a job beyond its size: which card, how far, at what price of change.

from sizing_xlsx import full, lora, planning, serving

cards = planning.every_card(lora, base_model="meta-llama/Llama-3.1-8B", batch_size=4)
planning.cheapest_that_fits(cards)
planning.pull(lora, planning.levers_of(lora), batch_size=4)
planning.highest(lora, "highest_lora_rank", batch_size=4)
planning.first_that_fits(planning.shared_among(full, base_model="meta-llama/Llama-3.1-70B"))
planning.fewest_cards(full, base_model="meta-llama/Llama-3.1-70B")
planning.launch_text(full, sharding_stage="ZeRO-3", gpu_count=8)
planning.cheapest_set(planning.card_sets(serving, base_model="Qwen/Qwen3-32B", concurrent_users=50))
planning.largest_model(planning.every_model(serving, gpu_choice="NVIDIA L40S"))
planning.capacity_plan([{"name": "Tone", "job_kind": "LoRA", "base_model": "Qwen/Qwen2.5-7B", ...}], today="2026-08-17")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .capacity import CapacityPlan, CardPlan, Offer, PlanCard, PlanRow, capacity_plan
from .compare import Card, cheapest_that_fits, every_card, smallest_that_fits
from .crossover import Need, Room, needs, rooms, starts_at
from .launch import launch_config, launch_text, write_launch_config
from .levers import Pulled, hindrance, pull
from .search import QUESTIONS, answer, questions
from .serving import Served, card_sets, cheapest_set, every_model, largest_model, smallest_set
from .sharding import Shared, fewest_cards, first_that_fits, shared_among

if TYPE_CHECKING:
    from ..formula.job import Job

__all__ = [
    "QUESTIONS", "CapacityPlan", "Card", "CardPlan", "Need", "Offer", "PlanCard", "PlanRow", "Pulled", "Room",
    "Served", "Shared", "answer", "capacity_plan", "card_sets", "cheapest_set", "cheapest_that_fits", "every_card",
    "every_model", "fewest_cards", "first_that_fits", "highest", "largest_model", "launch_config", "launch_text",
    "levers_of", "needs", "pull", "questions", "rooms", "shared_among", "smallest_set",
    "smallest_that_fits", "starts_at", "write_launch_config",
]  # fmt: skip


def levers_of(job: Job) -> list[dict[str, Any]]:
    """The levers that the workbook of a job shows, from its template: name, change, and what it costs in words."""
    from ..workbook.template import load_template

    return list(load_template(job.name)["levers"])


def highest(job: Job, question: str, **inputs: Any) -> int:
    """The answer to one of the questions of a job, by its name; inputs as in Job.size().

    Raises ValueError for a question that the job has not, or that does not apply to it.
    """
    from ..formula.domains import nearest
    from ..workbook.template import load_template

    asked = {each.name: each for each in questions(job)}
    if question not in asked:
        raise ValueError(
            f"question is {question!r}; it must be one of {', '.join(asked)}{nearest(question, tuple(asked))}"
        )
    if conditions := load_template(job.name)["levers_sheet"]["unless"].get(question):
        values = job.size([each["term"] for each in conditions], **inputs).__getitem__
        if reason := hindrance(conditions, values, values):
            raise ValueError(f"question is {question!r}, which does not apply: {reason}")
    return answer(job, asked[question], **inputs)

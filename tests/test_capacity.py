"""The capacity plan in Python: its terms against hand arithmetic, its rows against the jobs themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from math import ceil
from typing import Any

import pytest

from sizing_xlsx.capacity.kinds import FIXED, graphs
from sizing_xlsx.formula.domains import day_of
from sizing_xlsx.planning import CapacityPlan, Offer, PlanCard, PlanRow, capacity_plan
from sizing_xlsx.workbook.plan.template import opening

H100, L4, A100 = "NVIDIA H100 SXM5 80GB", "NVIDIA L4", "NVIDIA A100 SXM4 80GB"
LORA: Mapping[str, Any] = {
    "name": "Tone", "team": "Support", "job_kind": "LoRA", "base_model": "meta-llama/Llama-3.1-8B", "batch_size": 4,
    "sequence_length": 2048, "training_examples": 40_000, "epoch_count": 2, "runs_per_month": 4,
}  # fmt: skip
FULL: Mapping[str, Any] = {
    **LORA, "name": "Base", "team": "Research", "job_kind": "Full fine-tuning", "batch_size": 1, "runs_per_month": 1,
}  # fmt: skip
TRAINING: Mapping[str, Any] = {
    "name": "Encoder", "team": "research", "job_kind": "Training", "base_model": "Article worked model (1.01B)",
    "batch_size": 256, "sequence_length": 100, "training_tokens": 10**9, "runs_per_month": 0.5,
}  # fmt: skip
SIZED: Mapping[str, Any] = {
    "name": "Vision", "job_kind": "Sized elsewhere", "sized_peak_gb": 20, "sized_total_gb": 22, "sized_hours": 100,
    "runs_per_month": 3, "gpu_choice": L4,
}  # fmt: skip
ALL = (LORA, FULL, TRAINING, SIZED)


def planned(*rows: Mapping[str, Any], **options: Any) -> CapacityPlan:
    return capacity_plan(rows, **{"today": "2026-08-17", "first_month": "2026-09-01", **options})


def one(row: Mapping[str, Any], **options: Any) -> PlanRow:
    return planned(row, **options).rows[0]


def row_values(**inputs: Any) -> dict[str, Any]:
    days = {key: day_of(value) for key, value in inputs.items()}
    return graphs().row.reference(days)


@pytest.mark.parametrize("row", ALL, ids=lambda row: row["job_kind"])
def test_a_row_is_what_its_own_job_says(row: Mapping[str, Any]) -> None:
    kind = {"LoRA": "lora", "Full fine-tuning": "full", "Training": "training"}.get(row["job_kind"], "sized")
    found, job = one({**row, "gpu_choice": H100, "gpu_count": 2}), graphs().kinds[kind]
    own = {key: value for key, value in row.items() if key in job.inputs}
    inputs = {**opening().inputs[kind], **FIXED, **own, "gpu_choice": H100, "gpu_count": 2}
    results = job.size(("fit_verdict",) if kind != "sized" else (), **inputs)
    values = job.reference(job.accepted(inputs))
    assert found.counted
    assert found.verdict == results.get("fit_verdict", "fits")
    assert found.hours == values["occupied_hours"]
    assert found.run_cost == values["card_rent"] + values["transfer_cost"]
    whole_month = found.by_month[0]
    assert whole_month[0] == pytest.approx(row["runs_per_month"] * values["billed_gpu_hours"], rel=1e-12)
    assert whole_month[2] == pytest.approx(
        row["runs_per_month"] * found.run_cost + values["storage_cost"] + values["engineering_cost"], rel=1e-12
    )


def test_storage_is_paid_by_the_month_however_many_runs_there_are() -> None:
    free = {"cards": [PlanCard(H100, 0, "2026-08-01")], "offers": [Offer(H100, 1)]}
    once, often = (one({**LORA, "runs_per_month": runs}, **free) for runs in (1, 30))
    assert once.by_month[5][2] == often.by_month[5][2] > 10  # 100 GB of data at 0.10, and the checkpoints


def test_setting_up_is_paid_once() -> None:
    plain, with_days = (one(LORA, settings={"engineering_days": days}) for days in (0, 2))
    assert with_days.spend - plain.spend == pytest.approx(2 * 800)
    assert with_days.by_month[1][2] == plain.by_month[1][2]


def test_the_window_is_cut_by_the_plan_by_today_and_by_the_deadline() -> None:
    plan = {"plan_start": "2026-09-01", "plan_end": "2027-09-01"}
    cases = (
        ({}, "2026-09-01", "2027-09-01"),
        ({"today_date": "2026-09-10"}, "2026-09-10", "2027-09-01"),
        ({"today_date": "2026-09-10", "first_month": "2026-09-25"}, "2026-09-10", "2027-09-01"),
        ({"first_month": "2026-12-31", "last_month": "2027-02-01"}, "2026-12-01", "2027-03-01"),
        ({"today_date": "2026-09-10", "deadline_date": "2026-10-05"}, "2026-09-10", "2026-10-05"),
        ({"last_month": "2030-01-01"}, "2026-09-01", "2027-09-01"),
    )
    for inputs, start, end in cases:
        found = row_values(**plan, **inputs)
        assert (found["window_start"], found["window_end"]) == (day_of(start), day_of(end)), inputs


def test_a_month_that_is_cut_has_its_part_of_the_runs() -> None:
    found = one({**LORA, "first_month": "2026-09-15", "deadline_date": "2026-10-11"}, today="2026-09-16")
    whole = one(LORA).by_month[0][0]
    hours = [month[0] for month in found.by_month]
    assert hours[0] == pytest.approx(whole * 15 / 30)
    assert hours[1] == pytest.approx(whole * 10 / 31)
    assert hours[2:] == [0] * 10
    assert found.by_month[2][2] == 0


def test_a_month_of_december_is_followed_by_january() -> None:
    assert planned(LORA).months == [date(2026, at, 1) for at in range(9, 13)] + [
        date(2027, at, 1) for at in range(1, 9)
    ]
    assert planned(LORA, today=None, first_month="2027-01-31", months=2).months == [date(2027, 1, 1), date(2027, 2, 1)]


def test_runs_side_by_side_make_the_cards_needed() -> None:
    long = {"gpu_count": 2, "occupied_hours": 300, "billed_gpu_hours": 2 * 365, "runs_per_month": 5}
    found = row_values(**long)
    assert found["at_once_needed"] == 3  # 5 runs of 365 hours in a month of 730
    assert found["cards_needed"] == 6 and found["queue_drains"] == 1
    assert row_values(**long, runs_at_once=1)["cards_needed"] == 6
    assert row_values(**long, runs_at_once=1)["queue_drains"] == 0
    assert row_values(**long, runs_at_once=4)["cards_needed"] == 8
    assert row_values(**long, runs_at_once=99)["cards_needed"] == 10  # no more than there are runs
    assert row_values(gpu_count=8, billed_gpu_hours=8, runs_per_month=0.25)["cards_needed"] == 8


def test_cards_at_once_are_the_average_rounded_up_and_at_least_the_largest_job() -> None:
    many = [{**SIZED, "name": f"job {at}", "sized_hours": 100} for at in range(7)]
    found = next(card for card in planned(*many).cards if card.name == L4)
    assert found.card_hours[0] == pytest.approx(7 * 3 * 100 * 1.2)
    assert list(found.cards_at_once[:2]) == [ceil(2520 / 720), ceil(2520 / 744)]
    large = {**SIZED, "gpu_count": 5, "runs_at_once": 2}
    found = next(card for card in planned(*many, large).cards if card.name == L4)
    assert list(found.cards_at_once[:1]) == [max(ceil((2520 + 5 * 3 * 120) / 720), 10)]


def test_all_sums_are_the_same_money() -> None:
    found = planned(*ALL, {**LORA, "name": "other", "team": "SUPPORT"}, {"name": "no job"})
    assert found.spend > 1000
    by_team = sum(sum(months) for months in found.spend_by_team.values())
    assert by_team == pytest.approx(found.spend, rel=1e-12)
    assert sum(row.spend for row in found.rows) == pytest.approx(found.spend, rel=1e-12)
    assert sum(found.spend_by_month) == pytest.approx(found.spend, rel=1e-12)
    assert list(found.spend_by_team) == ["Support", "Research", "No team"]
    hours = sum(month[0] for row in found.rows for month in row.by_month)
    assert sum(sum(card.card_hours) for card in found.cards) == pytest.approx(hours, rel=1e-12)
    assert [row.name for row in found.not_counted] == ["no job"]


def test_adapters_over_several_cards_are_sized_card_by_card() -> None:
    large = {**LORA, "base_model": "Qwen/Qwen2.5-72B", "batch_size": 1, "gpu_choice": H100}
    job, shards = graphs().kinds["lora"], {**large, "gpu_count": 8, "sharding_stage": "FSDP full shard"}
    inputs = {**opening().inputs["lora"], **FIXED, **{key: value for key, value in shards.items() if key in job.inputs}}
    assert one(shards).verdict == job.size(("fit_verdict",), **inputs)["fit_verdict"] == "fits"
    assert one(shards).hours == job.reference(job.accepted(inputs))["occupied_hours"]
    assert one({**large, "gpu_count": 8}).verdict == "does not fit"  # without a stage each card holds all of it
    proposed = one({**large, "gpu_choice": None, "sharding_stage": "FSDP full shard"})
    assert proposed.counted and proposed.gpu_count > 1
    whole = one({**large, "gpu_choice": None})
    offers = [Offer(**offer) for offer in opening().offers]
    assert {offer.card for offer, cost in zip(offers, whole.offers, strict=True) if cost} == {"NVIDIA B200"}
    assert one({**LORA, "sharding_stage": "ZeRO-9"}).state.startswith("Sharding stage is ZeRO-9; it must be one of")
    hybrid = {**LORA, "gpu_choice": H100, "gpu_count": 12, "sharding_stage": "FSDP hybrid shard"}
    assert one(hybrid).state.startswith("Sharding stage is FSDP hybrid shard with 12 cards and 8 of them a node")


def test_the_cheapest_offer_on_which_it_fits_is_proposed() -> None:
    found = one(FULL)
    offers = [Offer(**offer) for offer in opening().offers]
    tried = [one({**FULL, "gpu_choice": offer.card, "gpu_count": offer.cards}) for offer in offers]
    fitting = {at: row.run_cost for at, row in enumerate(tried) if row.verdict == "fits"}
    assert 2 <= len(fitting) < len(offers)
    best = min(fitting, key=lambda at: fitting[at])
    assert (found.gpu_choice, found.gpu_count) == tuple(offers[best])
    assert [at for at, cost in enumerate(found.offers) if cost is not None] == list(fitting)


def test_a_named_card_is_kept_and_a_named_count_too() -> None:
    assert one({**FULL, "gpu_choice": H100}).gpu_choice == H100
    assert one({**FULL, "gpu_choice": H100}).gpu_count > 1
    assert one({**FULL, "gpu_count": 16}).gpu_count == 16
    assert one({**LORA, "gpu_choice": H100, "gpu_count": 3}).gpu_count == 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": None}, "Job is empty; enter what the job is called."),
        ({"job_kind": "lorra"}, "Kind is lorra; it must be one of LoRA, Training, Full fine-tuning, Sized elsewhere."),
        ({"base_model": "Llama"}, "Model is Llama; it must be one of the models that are listed"),
        ({"base_model": None}, "Model is empty"),
        ({"recipe": "bf17"}, "Recipe is bf17; it must be one of the recipes"),
        ({"batch_size": 2.5}, "Batch size is 2.5; it must be a whole number from 1 to 65,536."),
        ({"batch_size": "4"}, "Batch size is 4, a text; it must be a whole number"),
        ({"sequence_length": 0}, "Sequence length is 0; it must be a whole number from 1 to 1,048,576."),
        ({"training_examples": None}, "Examples is empty; enter a whole number from 1 to 1,000,000,000,000, or their"),
        ({"training_tokens": 0}, "Own tokens is 0; it must be a whole number"),
        (
            {"gpu_choice": "NVIDIA H999"},
            "GPU is NVIDIA H999; it must be one of the cards on the sheet Cards, or empty.",
        ),
        ({"gpu_count": 0}, "Cards is 0; it must be a whole number from 1 to 1,024, or empty."),
        ({"runs_per_month": None}, "Runs a month is empty; enter a number from 0.001 to 1,000,000."),
        ({"runs_per_month": -1}, "Runs a month is -1; it must be a number from 0.001"),
        ({"runs_at_once": 0}, "Runs at once is 0; it must be a whole number"),
        ({"first_month": "soon"}, "First month is soon; it must be a date from 2000-01-01 to 2099-12-31, or empty."),
        ({"deadline_date": "2026-08-03"}, "Deadline is 2026-08-03, 14 days before Today 2026-08-17; it must not be"),
        ({"first_month": "2026-12-01", "last_month": "2026-11-30"}, "Last month is before First month"),
        ({"last_month": "2026-08-20"}, "First month, Last month and Deadline leave no day within the plan"),
        ({"batch_size": 4096}, "No offer on the sheet Cards fits"),
        ({"batch_size": 4096, "gpu_choice": H100}, "Does not fit its card: the peak alone is too large."),
        ({"lora_rank": 0}, "LoRA rank is 0; it must be a whole number"),
    ],
)
def test_a_wrong_row_says_why_and_is_counted_nowhere(change: Mapping[str, Any], says: str) -> None:
    found = planned({**LORA, **change}, LORA)
    assert found.rows[0].state.startswith(says)
    assert not found.rows[0].counted and found.rows[1].counted
    assert found.spend == found.rows[1].spend > 0
    assert found.not_counted == [found.rows[0]]


def test_a_deadline_needs_a_today() -> None:
    row = {**LORA, "deadline_date": "2026-12-01"}
    assert one(row).counted
    assert one(row, today=None).state.startswith("Deadline is 2026-12-01 without Today")


def test_a_rule_of_the_job_is_told() -> None:
    row = {**FULL, "gpu_choice": H100, "gpu_count": 4, "sharding_stage": "None"}
    assert one(row).state.startswith("Sharding stage is 'None' with 4 cards")
    assert one({**SIZED, "sized_total_gb": 10}).state.startswith("Total, sized is 10 and Peak, sized is 20")


def test_what_is_counted_may_still_be_told_of() -> None:
    cards = {"cards": [PlanCard("NVIDIA T4"), PlanCard(H100)], "offers": [Offer(H100, 1)]}
    found = one({**SIZED, "sized_total_gb": 12, "sized_peak_gb": 10, "gpu_choice": "NVIDIA T4"}, **cards)
    assert found.counted and not found.priced
    assert found.spend == 0 and found.by_month[0][0] > 0
    assert found.state == "The card has no price; its hours are counted and its money is not."
    assert one({**SIZED, "runs_per_month": 20, "runs_at_once": 1}).state.startswith("Runs at once is 1; 4 are planned")
    late = one({**SIZED, "deadline_date": "2026-09-03"})
    assert late.counted and late.state.startswith("A run takes 4 days and Deadline leaves 2")
    assert one({**SIZED, "sized_total_gb": 30}).state == "Tight: the peak fits, the highest estimate does not."


def test_money_is_in_one_currency() -> None:
    euros = one(LORA, settings={"currency_choice": "EUR", "currency_per_usd": 0.5, "storage_price": 0})
    dollars = one(LORA, settings={"storage_price": 0})
    assert euros.spend == pytest.approx(dollars.spend / 2)
    assert "currency_per_usd" not in one(LORA, settings={"currency_choice": "EUR"}).state
    assert one(LORA, settings={"currency_choice": "EUR"}).state.startswith("Currency is EUR without Currency per USD")


def test_amounts_are_in_the_currency_and_empty_ones_are_dollars_at_the_rate() -> None:
    euros = {"currency_choice": "EUR", "currency_per_usd": 0.5}
    card = [PlanCard(H100, 3, "2026-08-01")]

    def purchase(card: PlanCard, **settings: Any) -> float:
        fleet = planned(LORA, cards=[card], offers=[Offer(H100, 1)], settings={**euros, **settings}).cards[0].fleet
        return float(fleet["paid_purchase_price"])

    assert purchase(PlanCard(H100)) == 30_000 * 0.5  # assumed of any card
    assert purchase(PlanCard(H100, purchase_usd=32_000)) == 32_000 * 0.5  # assumed of this one
    assert purchase(PlanCard(H100, purchase_usd=32_000), purchase_price=20_000) == 20_000  # entered for any card
    assert purchase(PlanCard(H100, None, None, 25_000, 32_000), purchase_price=20_000) == 25_000  # for this one
    plain = one(LORA, cards=card, offers=[Offer(H100, 1)], settings=euros)
    entered = one(LORA, cards=card, offers=[Offer(H100, 1)], settings={**euros, "engineering_days": 2})
    dearer = one(
        LORA, cards=card, offers=[Offer(H100, 1)], settings={**euros, "engineering_days": 2, "engineering_rate": 700}
    )
    assert entered.spend - plain.spend == pytest.approx(2 * 800 * 0.5)
    assert dearer.spend - plain.spend == pytest.approx(2 * 700)
    reserved = {"billing_choice": "Reserved", "reserved_discount": 0}
    full, half = (one(LORA, settings={**reserved, "reserved_utilisation": use}) for use in (1, 0.5))
    assert half.run_cost == pytest.approx(2 * full.run_cost)  # unused hours of a reservation are paid for


def test_a_use_that_is_not_known_is_told_and_buys_nothing() -> None:
    busy = [{**SIZED, "name": f"job {at}", "gpu_choice": "NVIDIA T4", "sized_peak_gb": 9, "sized_total_gb": 10,
             "sized_hours": 600} for at in range(4)]  # fmt: skip
    fleet = planned(*busy, cards=[PlanCard("NVIDIA T4")], offers=[]).cards[0].fleet
    assert fleet["break_even_utilisation"] == "not known"
    assert fleet["floor_cards"] > 0 and fleet["cards_bought"] == 0 and fleet["buying_saves"] == 0
    assert fleet["cards_rented"] > 0


def test_a_plan_without_cards_proposes_none() -> None:
    assert one(LORA, cards=[], offers=[]).state.startswith("No offer on the sheet Cards fits")


def test_the_floor_is_bought_where_that_pays() -> None:
    busy = [
        {**SIZED, "name": f"job {at}", "gpu_choice": H100, "sized_hours": 660, "runs_per_month": 1} for at in range(6)
    ]
    settings = {"idle_share": 0, "failed_share": 0, "upkeep_share": 0, "power_price": 0, "owned_years": 4}
    cheap = planned(*busy, cards=[PlanCard(H100, 3, "2026-08-01", 20_000), PlanCard(L4)], offers=[], settings=settings)
    fleet = cheap.cards[0].fleet
    assert fleet["floor_cards"] == 6 and fleet["spares_bought"] == 1 and fleet["cards_bought"] == 6
    assert fleet["cards_rented"] == 0 and fleet["fleet_purchase"] == 7 * 20_000
    assert fleet["break_even_utilisation"] == pytest.approx(20_000 * 7 / 6 / (4 * 8760) / 3)
    assert fleet["floor_use"] == pytest.approx(6 * 660 * 12 / (6 * 8760))
    assert fleet["buying_saves"] == pytest.approx(6 * 660 * 12 * 3 - 7 * 20_000 / 4)  # a year of four
    dear = (
        planned(*busy, cards=[PlanCard(H100, 0.4, "2026-08-01", 20_000)], offers=[], settings=settings).cards[0].fleet
    )
    assert dear["break_even_utilisation"] == "never" and dear["cards_bought"] == 0 and dear["cards_rented"] == 6
    assert dear["buying_saves"] == 0


def test_a_month_that_has_begun_says_nothing_of_the_floor() -> None:
    busy = {**SIZED, "gpu_choice": H100, "sized_hours": 500, "runs_per_month": 10}
    begun = planned(busy, today="2026-09-29", first_month="2026-09-01").cards
    assert next(card for card in begun if card.name == H100).fleet["floor_cards"] == ceil(10 * 600 / 744)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"months": 0}, "months is 0"),
        ({"cards": [PlanCard("NVIDIA H999")], "offers": []}, "gpu_choice is 'NVIDIA H999'"),
        ({"cards": [PlanCard(H100), PlanCard(H100)], "offers": []}, "twice"),
        ({"cards": [PlanCard(H100, -1, "2026-01-01")], "offers": []}, "own_price_per_hour is -1"),
        ({"cards": [PlanCard(H100, 3)], "offers": []}, "without own_price_date"),
        ({"offers": [Offer("NVIDIA T4", 1)]}, "offers has 'NVIDIA T4'"),
        ({"today": "yesterday"}, "today_date is 'yesterday'"),
        ({"settings": {"idle_share": -1}}, "idle_share is -1"),
    ],
)
def test_a_wrong_setting_is_refused(options: Mapping[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        planned(LORA, **options)


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(TypeError, match="modell is no column of a plan"):
        planned({**LORA, "modell": "x"})


def test_a_load_of_exactly_one_card_needs_one() -> None:
    whole = {**SIZED, "sized_hours": 60, "runs_per_month": 10}  # 720 hours, with a fifth on top, of a month of 30 days
    found = next(card for card in planned(whole).cards if card.name == L4)
    assert found.card_hours[0] > 720
    assert found.cards_at_once[0] == 1

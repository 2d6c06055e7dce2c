"""Time and money beside memory: the rule, hours, files, rent and owning, against arithmetic and published runs."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import sizing_xlsx
from sizing_xlsx import planning
from sizing_xlsx.cli import main
from sizing_xlsx.effort import work
from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import WORKED, beside, job
from sizing_xlsx.paths import presets_folder

SEVEN = {"parameter_count_override": 7 * 10**9}
A100 = "NVIDIA A100 SXM4 80GB"
RUNS = tuple(name for name in WORKED if name != "serving")  # those with a beginning and an end


def of(name: str, *results: str, **inputs: Any) -> Any:
    found = job(name).size(results, **inputs)
    return found[results[0]] if len(results) == 1 else tuple(found[key] for key in results)


# ---------------------------------------------------------------------- the work of a token
@pytest.mark.parametrize(("checkpointing", "times"), [("Off", 6), ("On", 8)])
def test_full_training_takes_six_or_eight_flop_a_parameter(checkpointing: str, times: int) -> None:
    assert of("training", "rule_flop", activation_checkpointing=checkpointing, **SEVEN) == times * 7e9


@pytest.mark.parametrize(("checkpointing", "times"), [("Off", 6), ("On", 8)])
def test_full_fine_tuning_works_with_all_that_a_token_reaches(checkpointing: str, times: int) -> None:
    for model, count in (
        ("meta-llama/Meta-Llama-3-8B", 8_030_261_248),
        ("mistralai/Mixtral-8x7B-v0.1", 12_879_925_248),
    ):
        assert of("full", "rule_flop", activation_checkpointing=checkpointing, base_model=model) == times * count


def test_cards_that_share_a_row_do_the_work_of_all_of_it() -> None:
    """Each holds a part of the row, and attends to the whole."""
    results = ("token_flop", "run_tokens", "tokens_per_example", "update_count")
    alone = of("full", *results, gpu_count=2)
    shared = of("full", *results, gpu_count=4, sequence_parallel=2)
    assert shared == alone


@pytest.mark.parametrize(("checkpointing", "base", "own"), [("Off", 4, 6), ("On", 6, 8)])
def test_a_frozen_base_has_no_weight_gradients(checkpointing: str, base: int, own: int) -> None:
    rule, active, adapters = of(
        "lora", "rule_flop", "active_parameters", "adapter_parameters", activation_checkpointing=checkpointing
    )
    assert rule == base * active + own * adapters


def test_a_mixture_works_with_the_experts_of_a_token_alone() -> None:
    model = {"base_model": "mistralai/Mixtral-8x7B-v0.1"}
    worked, adapters, every = of("lora", "working_parameters", "adapter_parameters", "base_parameter_count", **model)
    assert worked - adapters == 12_879_925_248 and every == 46_702_792_704


def test_backward_stops_below_the_lowest_adapter() -> None:
    passed, worked, layers = of("lora", "passed_parameters", "working_parameters", "layer_count", adapter_layers=2)
    assert passed == worked * 2 / layers


def test_a_head_over_stored_features_needs_no_base() -> None:
    worked, trained, attention = of(
        "lora", "working_parameters", "trained_parameters", "attention_flop",
        adapter_method="Trained head on stored features",
    )  # fmt: skip
    assert worked == trained and attention == 0


def test_attention_grows_with_the_row_and_selective_recomputation_costs_a_part_of_a_step() -> None:
    short, long = (of("training", "attention_flop", sequence_length=length) for length in (1000, 4000))
    layers, width = of("training", "layer_count", "hidden_size")
    assert long == 4 * short == 3 * 4 * layers * width * 4000
    plain = of("training", "token_flop")
    assert of("training", "token_flop", recomputation_choice="Selective") == pytest.approx(plain * 1.075)
    assert of("training", "forwards_repeated", recomputation_choice="Selective", activation_checkpointing="On") == 0


# ---------------------------------------------------------------------- tokens and hours
def test_tokens_are_examples_times_length_times_epochs_or_as_entered() -> None:
    run = {"training_examples": 40_000, "average_sequence_length": 500, "epoch_count": 2}
    tokens, hours = of("lora", "run_tokens", "training_hours", **run, measured_tokens_per_second=1250)
    assert tokens == 40e6 and hours == pytest.approx(8.888, abs=1e-3)
    assert of("lora", "run_tokens", **run, training_tokens=7) == 7
    assert of("lora", "supervised_tokens", **run, supervised_share=0.25) == 10e6
    assert of("lora", "processed_tokens", **run, padding_share=0.2) == pytest.approx(50e6)


def test_a_measured_speed_stands_in_place_of_the_shares() -> None:
    hours = of("training", "training_hours", training_tokens=10**8, measured_tokens_per_second=2000)
    assert hours * 3600 == pytest.approx(50_000) and hours == pytest.approx(13.9, abs=0.05)
    padded = of("training", "training_hours", training_tokens=10**8, measured_tokens_per_second=2000, padding_share=0.5)
    assert padded == pytest.approx(2 * hours)


@pytest.mark.parametrize("share", [0.35, 0.42])
def test_fifty_million_tokens_on_two_a100(share: float) -> None:
    """8·P·D over two cards of 312 TFLOP/s, and attention beyond the rule."""
    hours, cards, flop, cost = of(
        "training", "training_hours", "billed_gpu_hours", "token_flop", "card_rent", **SEVEN,
        activation_checkpointing="On", training_tokens=50 * 10**6, gpu_count=2, gpu_choice=A100,
        own_mfu_expected=share, startup_hours=0, evaluation_share=0, idle_share=0, failed_share=0, stalled_share=0,
        gpu_hours_between_interruptions=1e9, own_price_per_hour=2, own_price_date="2026-08-17",
    )  # fmt: skip
    by_rule = 8 * 7e9 * 50e6 / (2 * 312e12 * share) / 3600
    assert hours == pytest.approx(by_rule * flop / (8 * 7e9), rel=1e-12)
    assert by_rule == pytest.approx({0.35: 3.561, 0.42: 2.968}[share], abs=1e-3)
    assert cards == pytest.approx(2 * hours, rel=1e-6) and cost == pytest.approx(4 * hours, rel=1e-6)


def test_the_hours_on_the_cards_add_up() -> None:
    parts = of(
        "training", "occupied_hours", "training_hours", "evaluation_hours", "stall_hours", "interruption_hours",
        "first_startup_hours", gpu_count=64, stalled_share=0.5,
    )  # fmt: skip
    assert parts[0] == pytest.approx(sum(parts[1:]), rel=1e-12) and min(parts) > 0
    slow, usual, fast = of("training", "run_hours_slow", "run_hours", "run_hours_fast", data_hours=5)
    assert slow > usual > fast > 5


def test_updates_are_counted_over_all_cards() -> None:
    rows, updates = of(
        "lora", "rows_per_update", "update_count", batch_size=2, gradient_accumulation=4, gpu_count=2,
        training_examples=100, epoch_count=1,
    )  # fmt: skip
    assert (rows, updates) == (16, 7)


def test_several_cards_send_two_values_a_parameter_and_one_sends_none() -> None:
    assert of("training", "update_traffic") == 0
    sent, seconds = of("training", "update_traffic", "traffic_seconds", gpu_count=2, own_link_gb_per_second=50, **SEVEN)
    assert sent == 2 * 4 * 7e9 and seconds == pytest.approx(56 / 50)


@pytest.mark.parametrize(("stage", "values"), [("DDP", 2), ("ZeRO-2", 2), ("ZeRO-3", 3), ("FSDP full shard", 3)])
def test_shared_weights_are_gathered_once_more(stage: str, values: int) -> None:
    cards = {"sharding_stage": stage, "gpu_count": 8}
    sent, count = of("full", "update_traffic", "base_parameter_count", **cards)
    assert sent == values * 2 * count  # of 16 bits each
    assert of("full", "update_traffic", **cards, tensor_parallel=2) == sent / 2
    assert of("full", "update_traffic", **cards, tensor_parallel=8) == 0  # nobody else has the same weights
    assert of("full", "rows_per_update", **cards, tensor_parallel=2, gradient_accumulation=4) == 4 * 4


CASES = ("training_hours_slow", "training_hours", "training_hours_fast")
WIDE: list[tuple[str, dict[str, Any]]] = [
    ("training", {"gpu_count": 2, "own_link_gb_per_second": 0.5}),
    ("lora", {"gpu_count": 64, "own_network_gb_per_second": 0.001}),
    ("full", {"gpu_count": 8, "sharding_stage": "ZeRO-3", "own_link_gb_per_second": 1}),
    ("full", {"gpu_count": 16, "sharding_stage": "FSDP hybrid shard", "own_network_gb_per_second": 0.01}),
    ("full", {"gpu_count": 16, "tensor_parallel": 8, "own_link_gb_per_second": 0.1}),
]


@pytest.mark.parametrize(("name", "asked"), WIDE)
def test_training_takes_no_less_than_its_traffic(name: str, asked: dict[str, Any]) -> None:
    slow, usual, fast, traffic, work, speed, tokens, told = of(
        name, *CASES, "traffic_hours", "work_hours", "tokens_per_second", "processed_tokens", "work_binds", **asked
    )
    assert slow == usual == fast == traffic > work and told == 0
    assert speed == pytest.approx(tokens / usual / 3600)
    with pytest.warns(UserWarning, match="its traffic takes .* hours at the speed of its links and the work"):
        job(name).size(training_tokens=10**9, **asked)
    quick = {key: 1e6 for key in asked if key.startswith("own_")}
    slow, usual, fast, work = of(name, *CASES, "work_hours", **asked | quick)
    assert slow > usual == work > fast


def test_a_measured_speed_has_its_traffic_in_it() -> None:
    asked = {"gpu_count": 2, "own_link_gb_per_second": 0.001, "training_tokens": 10**8}
    hours, told = of("training", "training_hours", "work_binds", measured_tokens_per_second=2000, **asked)
    assert hours * 3600 == pytest.approx(50_000) and told == 0


def test_a_network_that_is_not_entered_is_assumed_and_said_to_be() -> None:
    said = "gpu_count is 16 with 8 to a node and without own_network_gb_per_second; 25.0 GB per second"
    for name in RUNS:
        with pytest.warns(UserWarning, match=said):
            job(name).size(gpu_count=16, training_tokens=10**9)
        entered, one_node, wide_node = (
            of(name, "network_entered", gpu_count=count, **more)
            for count, more in ((16, {"own_network_gb_per_second": 50}), (8, {}), (16, {"gpus_per_node": 16}))
        )
        assert (entered, one_node, wide_node) == (1, 1, 1)
    slow_card = of("training", "network_gb_per_second", gpu_count=16, gpu_choice="NVIDIA T4")
    assert slow_card == 16  # no more than half of its link


def test_an_assumed_network_is_told_with_hours_and_money_whatever_was_entered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With more cards than a node has: nothing of time is entered, and hours rest on a network that nobody entered."""
    said = "without own_network_gb_per_second; 25.0 GB per second"
    for name, cards in (
        ("lora", {"gpu_count": 16, "sharding_stage": "ZeRO-3"}),
        ("training", {"gpu_count": 16}),
        ("full", {"gpu_count": 16}),
    ):
        sized = job(name)
        for results in (None, ["run_hours"], ["rent_cost", "fit_verdict"]):
            with pytest.warns(UserWarning, match=said):
                found = sized.size(results, **cards)
            assert results is None or [*found] == results
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sized.size(["fit_verdict", "peak_allocated_gb", "run_tokens"], **cards)
            sized.size(["run_hours"], **cards, own_network_gb_per_second=50)
        options = [word for key, value in cards.items() for word in (f"--{key.replace('_', '-')}", str(value))]
        assert main([name, *options]) == 0 and said in capsys.readouterr().out
        assert main([name, *options, "--own-network-gb-per-second", "50"]) == 0
        assert said not in capsys.readouterr().out


def test_a_link_that_is_not_known_is_told_with_hours(capsys: pytest.CaptureFixture[str]) -> None:
    sized = job("full")
    gpus = sized.tables["gpus"]
    card = next(
        key
        for key in gpus.keys
        if gpus.usable_bytes[gpus.row_of(key)] and not gpus.interconnect_gb_per_s[gpus.row_of(key)]
    )
    with pytest.warns(UserWarning, match="no link of this card is known"):
        sized.size(["run_hours"], gpu_choice=card)
    assert main(["full", "--gpu-choice", card]) == 0 and "no link of this card is known" in capsys.readouterr().out


def test_the_bubble_of_a_pipeline_lowers_the_share() -> None:
    plain = of("full", "mfu_expected", gpu_count=8)
    for stages, batches in ((2, 1), (4, 8), (8, 2)):
        cards = {"gpu_count": 8, "pipeline_parallel": stages, "gradient_accumulation": batches}
        bubble, share, own = of("full", "pipeline_bubble", "mfu_expected", "working_mfu_expected", **cards)
        assert bubble == (stages - 1) / batches
        assert share == pytest.approx(plain / (1 + bubble)) and own == pytest.approx(plain)
        hours, least = of("full", "training_hours", "work_hours", own_mfu_expected=0.4, **cards)
        assert (
            hours == least == pytest.approx(of("full", "work_hours", gpu_count=8, own_mfu_expected=0.4) * (1 + bubble))
        )


def test_cards_that_share_a_model_send_activations() -> None:
    """Llama 3 8B, 4,096 tokens, checkpointed, bf16: by hand."""
    passed = 4096 * 4096 * 2  # S·B·d in bytes
    tensor, exchange = of("full", "tensor_traffic", "update_traffic", gpu_count=4, tensor_parallel=4)
    assert tensor == 32 * 6 * 2 * 3 / 4 * passed and exchange == 0
    plain = of("full", "tensor_traffic", gpu_count=4, tensor_parallel=4, activation_checkpointing="Off")
    assert plain == 32 * 4 * 2 * 3 / 4 * passed
    staged = {"gpu_count": 8, "gradient_accumulation": 4}
    assert of("full", "pipeline_traffic", **staged, pipeline_parallel=2) == 4 * passed
    assert of("full", "pipeline_traffic", **staged, pipeline_parallel=4) == 2 * 4 * passed
    assert of("full", "tensor_traffic", **staged, tensor_parallel=4, pipeline_parallel=2) == 4 * tensor / 2
    rows = of("full", "sequence_traffic", gpu_count=2, sequence_parallel=2)
    assert rows == 32 * 3 * (2048 * 2 * (4096 + 1024) * 2) / 2
    mixture = {"base_model": "mistralai/Mixtral-8x7B-v0.1", "gpu_count": 8}
    assert of("full", "expert_traffic", **mixture, expert_parallel=4) == 32 * 2 * 2 * 3 * 3 / 4 * passed
    assert of("full", "tensor_traffic", "pipeline_traffic", "sequence_traffic", "expert_traffic") == (0, 0, 0, 0)


def test_a_group_larger_than_a_node_sends_over_the_network() -> None:
    results = ("node_traffic_gb", "network_traffic_gb", "update_traffic_gb", "exchange_gb", "tensor_traffic_gb")
    near, far, both, exchange, tensor = of("full", *results, gpu_count=16, tensor_parallel=8)
    assert (near, far, both) == (tensor, exchange, near + far) and min(near, far) > 0
    near, far, _, exchange, _ = of("full", *results, gpu_count=16, sharding_stage="FSDP hybrid shard")
    assert far == pytest.approx(near * 2 / 3 / 8) and exchange == near + far


def test_what_is_sharded_is_sent_for_each_micro_batch() -> None:
    count = of("full", "base_parameter_count")
    for stage, values in (("DDP", 2), ("ZeRO-1", 2), ("ZeRO-2", 5), ("ZeRO-3", 12)):
        sent = of("full", "update_traffic", gpu_count=8, sharding_stage=stage, gradient_accumulation=4)
        assert sent == values * 2 * count, stage


# ---------------------------------------------------------------------- files
def test_a_checkpoint_is_twelve_bytes_a_parameter_and_its_weights_four() -> None:
    whole, weights, seconds, kept = of(
        "training", "checkpoint_gb", "weights_file_gb", "checkpoint_seconds", "checkpoints_gb", **SEVEN,
        checkpoints_kept=3, write_mb_per_second=300,
    )  # fmt: skip
    assert (whole, weights, kept) == (84, 28, 84 + 2 * 28) and seconds == pytest.approx(280)
    own = of("training", "checkpoint_gb", **SEVEN, own_checkpoint_bytes=14)
    assert own == 98
    adapters, count = of("lora", "checkpoint_gb", "adapter_parameters")
    assert adapters == 12 * count / 1e9


@pytest.mark.parametrize(("recipe", "whole", "weights"), [
    ("bf16 params + fp32 master + bf16 grads, AdamW (16 B)", 12, 4), ("pure bf16 AdamW", 6, 2),
])  # fmt: skip
def test_a_checkpoint_holds_the_whole_model_however_many_cards_share_it(
    recipe: str, whole: float, weights: float
) -> None:
    recipe = next(key for key in job("full").choices("training_recipe") if key.startswith(recipe))
    for cards in ({"gpu_count": 1, "sharding_stage": "None"}, {"gpu_count": 16, "sharding_stage": "ZeRO-3"}):
        state, alone, count = of(
            "full", "checkpoint_bytes", "weights_bytes", "base_parameter_count", training_recipe=recipe, **cards
        )
        assert (state, alone) == (whole * count, weights * count)


# ---------------------------------------------------------------------- money
def test_rent_counts_failed_runs_idling_disks_and_days() -> None:
    rent = {
        "gpu_choice": "NVIDIA H100 SXM5 80GB", "own_price_per_hour": 3, "own_price_date": date(2026, 8, 17),
        "failed_share": 0.2, "idle_share": 0.3, "dataset_gb": 1000, "storage_price": 0.1, "storage_months": 2,
        "transfer_gb": 10, "transfer_price": 0.5, "engineering_days": 2, "engineering_rate": 700,
    }  # fmt: skip
    hours, disk, cost, each, tokens = of(
        "training", "occupied_hours", "checkpoints_gb", "rent_cost", "rent_per_million_tokens", "run_tokens", **rent
    )
    assert cost == pytest.approx(hours * 1.5 * 3 + (1000 + disk) * 0.2 + 5 + 1400)
    assert each == pytest.approx(cost / (tokens / 1e6))
    spot = {"billing_choice": "Spot", "spot_discount": 0.6}
    assert of("training", "card_rent", **rent, **spot) == pytest.approx(hours * 1.5 * 1.2)


def test_a_commitment_is_sized_for_the_quietest_month() -> None:
    use = {"least_gpu_hours_per_month": 100, "most_gpu_hours_per_month": 500, "reserved_discount": 0.4}
    price = {"own_price_per_hour": 2, "own_price_date": "2026-08-17"}
    plain, floor, peak = of("lora", "month_on_demand", "month_at_floor", "month_at_peak", **use, **price)
    assert (plain, floor, peak) == (600, pytest.approx(100 * 1.2 + 200 * 2), pytest.approx(600))


def test_owning_and_renting_meet_at_the_break_even() -> None:
    own = {
        "purchase_price": 40_000, "owned_years": 5, "upkeep_share": 0.1, "spare_cards": 1, "gpu_count": 4,
        "own_system_kw": 1.2, "power_usage_effectiveness": 1.5, "power_price": 0.3,
        "own_price_per_hour": 3, "own_price_date": "2026-08-17",
    }  # fmt: skip
    share, hours = of("lora", "break_even_utilisation", "break_even_hours", **own)
    assert share == pytest.approx(40_000 * 1.5 * 1.25 / (5 * 8760) / (3 - 0.54))
    assert hours == pytest.approx(share * 5 * 8760)
    hourly = of("lora", "own_price_per_gpu_hour", **own, own_utilisation=share)
    assert hourly == pytest.approx(3)
    rented, owned = of("lora", "rent_cost", "own_cost", **own, own_utilisation=share)
    assert rented == pytest.approx(owned)
    assert of("lora", "break_even_utilisation", **{**own, "own_price_per_hour": 0.5}) == "never"


def test_owning_that_never_pays_says_so() -> None:
    price = {"own_price_per_hour": 1, "own_price_date": "2026-08-17"}
    both = ("break_even_utilisation", "break_even_hours")
    assert of("lora", *both, **price, purchase_price=10**6) == ("never", "never")  # above 100%
    assert of("lora", *both, **price | {"own_price_per_hour": 0}) == ("never", "never")
    assert of("lora", *both, **price, power_price=50) == ("never", "never")
    assert of("lora", *both, **price, purchase_price=0) == (0, 0)
    assert of("lora", *both, gpu_choice="NVIDIA T4") == ("not known", "not known")
    power, hourly = of("lora", "power_per_gpu_hour", "own_price_per_gpu_hour", purchase_price=0)
    assert power == hourly > 0
    for cost in (1_000, 60_000, 80_000, 10**7):
        share = of("lora", "break_even_utilisation", **price | {"own_price_per_hour": 2}, purchase_price=cost)
        assert share == "never" or 0 < share <= 1


def test_unused_hours_of_a_reservation_are_paid_for() -> None:
    price = {"own_price_per_hour": 2, "own_price_date": "2026-08-17", "reserved_discount": 0.4}
    plain, reserved, half = (
        of("lora", "card_rent", **price, billing_choice=kind, reserved_utilisation=use)
        for kind, use in (("On demand", 0.5), ("Reserved", 1), ("Reserved", 0.5))
    )
    assert reserved == pytest.approx(plain * 0.6) and half == pytest.approx(plain * 0.6 / 0.5)
    assert of("lora", "machine_price", **price, billing_choice="Reserved", reserved_utilisation=0.5) == 2 * 0.6 / 0.5


ASSUMED = {  # figure: what it is without an entry, in dollars
    "paid_storage_price": 0.1,
    "paid_transfer_price": 0.09,
    "paid_engineering_rate": 800,
    "paid_purchase_price": 30_000,
    "paid_power_price": 0.2,
}


@pytest.mark.parametrize(("figure", "dollars"), ASSUMED.items())
def test_assumed_prices_are_dollars_and_entered_ones_the_currency(figure: str, dollars: float) -> None:
    yen = {"currency_choice": "JPY", "currency_per_usd": 150}
    assert of("lora", figure) == dollars
    assert of("lora", figure, **yen) == pytest.approx(dollars * 150)
    assert of("lora", figure, **yen, **{figure.removeprefix("paid_"): 7}) == 7


def test_a_currency_multiplies_every_cost() -> None:
    costs = ("rent_cost", "own_cost", "budget_cost", "storage_cost", "purchase_total", "month_at_floor")
    more = {"transfer_gb": 10, "engineering_days": 2}
    dollars, euros = of("full", *costs, **more), of("full", *costs, **more, currency_choice="EUR", currency_per_usd=0.9)
    assert euros == pytest.approx([cost * 0.9 for cost in dollars])
    same = of("full", "break_even_utilisation", currency_choice="EUR", currency_per_usd=0.9)
    assert same == pytest.approx(of("full", "break_even_utilisation"))


def test_the_shares_stay_in_order_around_an_entered_one() -> None:
    three = ("mfu_low", "mfu_expected", "mfu_high")
    for entered in (0.01, 0.3, 0.55, 0.9):
        low, usual, high = of("lora", *three, own_mfu_expected=entered)
        assert low <= usual == entered <= high


def test_listed_prices_are_dollars_and_turn_into_the_currency() -> None:
    euro = {"currency_choice": "EUR", "currency_per_usd": 0.9}
    assert of("lora", "price_per_gpu_hour", **euro) == pytest.approx(2.95 * 0.9)
    assert of("lora", "price_per_gpu_hour", **euro, own_price_per_hour=2, own_price_date="2026-08-17") == 2


def test_what_is_not_known_is_no_number() -> None:
    assert of("lora", "run_hours", "rent_cost", gpu_choice="NVIDIA A10G", compute_precision="fp32") == (
        "not known", "not known",
    )  # fmt: skip
    hours, cost = of("lora", "run_hours", "rent_cost", gpu_choice="NVIDIA T4")
    assert hours > 0 and cost == "not known"


def test_the_budget_has_four_stages_and_says_how_much_is_debugging() -> None:
    hours = of("training", "correctness_hours", "feasibility_hours", "quality_hours", "long_run_hours")
    total, debugging, cost, price, beside_cards = of(
        "training", "budget_hours", "debugging_share", "budget_cost", "machine_price", "cost_beside_cards"
    )
    assert total == pytest.approx(sum(hours)) and debugging == pytest.approx((hours[0] + hours[1]) / total)
    assert cost == pytest.approx(total * price + beside_cards)
    stages = job("training").tables["budget_stages"]
    assert stages.keys == ("Correctness", "Feasibility", "Quality", "Long run")
    assert all(rule.startswith("Stop ") for rule in stages.columns["stop_rule"])


# ---------------------------------------------------------------------- bad input
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"own_price_per_hour": -1}, "own_price_per_hour is -1; it must be a number from 0 to 100,000"),
    ({"own_price_per_hour": 2}, "own_price_per_hour is 2.00 without own_price_date; enter the day on which"),
    ({"own_utilisation": 1.2}, "own_utilisation is 1.2; it must be a number from 0.001 to 1"),
    ({"training_tokens": 0}, "training_tokens is 0; it must be a whole number from 1 to"),
    ({"today_date": "2026-08-17", "deadline_date": "2026-08-01"}, "deadline_date is 2026-08-01, 16 days before today_date 2026-08-17; it must not be before it, so enter a later day"),
    ({"deadline_date": "2026-08-01"}, "deadline_date is 2026-08-01 without today_date; enter the day of the plan"),
    ({"deadline_date": "soon"}, "deadline_date is 'soon'; it must be a date from 2000-01-01 to 2099-12-31"),
    ({"currency_choice": "EUR"}, "currency_choice is EUR without currency_per_usd"),
    ({"currency_per_usd": 1.2}, "currency_per_usd is 1.2000 with currency_choice USD; it must be 1 there, or empty"),
    ({"own_price_date": "2026-08-18", "today_date": "2026-08-17"}, "own_price_date is 2026-08-18, after today_date 2026-08-17; a price is not offered after"),
    ({"average_sequence_length": 5_000}, "average_sequence_length is 5000, by which the tokens of a run are counted; it must not be above sequence_length, which is "),
    ({"own_mfu_low": 0.5, "own_mfu_expected": 0.4}, "own_mfu_low is 0.500, own_mfu_expected 0.400 and own_mfu_high 0."),
    ({"own_mfu_high": 0.01}, "and own_mfu_high 0.010, the preset where none is entered; low must not be above expected"),
    ({"reserved_utilisation": 1.01}, "reserved_utilisation is 1.01; it must be a number from 0.001 to 1"),
    ({"purchase_price": -1}, "purchase_price is -1; it must be a number from 0 to"),
    ({"training_examples": 0}, "training_examples is 0; it must be a whole number from 1 to"),
    ({"gpu_count": 0}, "gpu_count is 0; it must be a whole number from 1 to 1,0"),
    ({"least_gpu_hours_per_month": 9, "most_gpu_hours_per_month": 3}, "most_gpu_hours_per_month is 3"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "said"), WRONG)
@pytest.mark.parametrize("name", RUNS)
def test_a_wrong_entry_is_refused_in_one_sentence(
    name: str, given: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        job(name).size(**given)
    assert "\n" not in str(refused.value)
    options = [word for key, value in given.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    assert main([name, *options]) == 2 and said in capsys.readouterr().err


REPORTS = {"lora": ("cards", "levers"), "training": ("cards", "levers"), "full": ("cards", "levers", "stages")}
REPORTS["serving"] = ("cards", "models")


@pytest.mark.parametrize(("name", "report"), [(name, report) for name in REPORTS for report in REPORTS[name]])
def test_reports_of_memory_refuse_wrong_time_and_money_as_sizing_does(
    name: str, report: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody sees that an entry was wrong in a table that does not show what rests on it."""
    sized = job(name)
    tried = [(given, said) for given, said in WRONG if sized.beside.issuperset(given)]
    assert len(tried) >= 3
    for given, said in tried:
        options = [word for key, value in given.items() for word in (f"--{key.replace('_', '-')}", str(value))]
        assert main([name, f"--{report}", *options]) == 2, given
        told = capsys.readouterr()
        assert said in told.err and told.out == "", given


def test_planning_refuses_wrong_time_and_money_as_sizing_does(tmp_path: Path) -> None:
    asked: list[Callable[..., Any]] = [
        lambda **wrong: planning.every_card(job("lora"), **wrong),
        lambda **wrong: planning.pull(job("lora"), planning.levers_of(job("lora")), **wrong),
        lambda **wrong: planning.needs(job("lora"), ["bf16"], **wrong),
        lambda **wrong: planning.highest(job("lora"), "highest_lora_rank", **wrong),
        lambda **wrong: planning.shared_among(job("full"), **wrong),
        lambda **wrong: planning.fewest_cards(job("full"), **wrong),
        lambda **wrong: planning.launch_config(job("full"), **wrong),
        lambda **wrong: planning.write_launch_config(tmp_path / "a.json", job("full"), **wrong),
        lambda **wrong: planning.card_sets(job("serving"), **wrong),
        lambda **wrong: planning.every_model(job("serving"), **wrong),
    ]
    for ask in asked:
        for wrong, said in (
            ({"own_price_per_hour": 2}, "own_price_date"),
            ({"currency_choice": "EUR"}, "one US dollar"),
        ):
            with pytest.raises(ValueError, match=said):
                ask(**wrong)
    assert not any(tmp_path.iterdir())


HOURS = ("run_hours", "training_hours", "gpu_hours", "billed_gpu_hours", "budget_hours", "quality_gb", "checkpoint_gb")
OF_MONEY = [
    {"own_price_per_hour": 2},
    {"currency_choice": "EUR"},
    {"least_gpu_hours_per_month": 9, "most_gpu_hours_per_month": 3},
]


@pytest.mark.parametrize("asked", OF_MONEY)
@pytest.mark.parametrize("name", RUNS)
def test_a_fault_of_money_withdraws_no_hours(name: str, asked: dict[str, Any]) -> None:
    sized = job(name)
    assert sized.size(HOURS, **asked) == sized.size(HOURS)
    assert sized.size_many(asked, ["run_hours"])["run_hours"][0] > 0
    with pytest.raises(ValueError, match=next(iter(asked)).split("_")[-1]):
        sized.size(["rent_cost"], **asked)


@pytest.mark.parametrize("name", RUNS)
def test_a_fault_of_time_withdraws_hours_and_cost(name: str) -> None:
    late = {"today_date": "2026-08-17", "deadline_date": "2026-08-01"}
    for result in ("run_hours", "rent_cost"):
        with pytest.raises(ValueError, match="deadline_date is 2026-08-01"):
            job(name).size([result], **late)
    assert job(name).size(["fit_verdict"], **late) == job(name).size(["fit_verdict"])


@pytest.mark.parametrize("name", RUNS)
def test_a_wrong_price_withdraws_no_verdict_on_memory(name: str) -> None:
    sized = job(name)
    asked = {"own_price_per_hour": 2}
    assert sized.size(["fit_verdict"], **asked) == sized.size(["fit_verdict"])
    assert sized.size(HOURS, **asked) == sized.size(HOURS)
    assert sized.size_many(asked, ["peak_allocated_gb"])["peak_allocated_gb"][0] > 0
    with pytest.raises(ValueError, match="own_price_date"):
        sized.size(["rent_cost"], **asked)
    with pytest.raises(ValueError, match="row 0: own_price_per_hour"):
        sized.size_many(asked, ["rent_cost"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lora", "store them word for word"),
        ("training", "from scratch wants 20"),
        ("full", "fewer than 0.01 for each of 8,030,261,248 parameters"),
    ],
)
def test_few_tokens_are_warned_of_where_they_are_asked_about(name: str, said: str) -> None:
    with pytest.warns(UserWarning, match=said):
        job(name).size(training_tokens=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        job("lora").size(lora_rank=512, gpu_choice="NVIDIA H200 SXM")
    with pytest.warns(
        UserWarning, match="deadline_date 2026-08-18 leaves 1 day from today_date 2026-08-17 and the run takes 4.8;"
    ):
        job("training").size(today_date=date(2026, 8, 17), deadline_date=date(2026, 8, 18))


# ---------------------------------------------------------------------- one set of formulas
@pytest.mark.parametrize("name", RUNS)
def test_many_jobs_give_what_one_gives(name: str) -> None:
    sized: Job = job(name)
    results = [key for key in sized.plain_terms if key in sized.beside and sized.terms[key].unit != "text"]
    inputs = {
        "gpu_choice": ["NVIDIA T4", A100, "NVIDIA B200"], "training_tokens": [10**6, 10**9, 10**12],
        "gpu_count": [1, 2, 64], "own_mfu_expected": [0.1, 0.3, 0.5],
    }  # fmt: skip
    many = sized.size_many(inputs, results)
    for row in range(3):
        one = sized.size(results, **{key: values[row] for key, values in inputs.items()})
        for key in results:
            if isinstance(one[key], str):
                assert many[key][row] != many[key][row], key
            else:
                assert many[key][row] == pytest.approx(one[key], rel=1e-12), key


@pytest.mark.parametrize("name", WORKED)
def test_memory_rests_on_nothing_of_time_and_money(name: str) -> None:
    sized = job(name)
    memory = [key for key in sized.order if key not in sized.beside]
    assert sized.beside.isdisjoint(sized.needed(memory))
    assert not any(sized.inputs[key].follows_job for key in sized.beside if key in sized.inputs)
    if name in RUNS:
        modules = {module.__name__.rpartition(".")[2] for layer in beside(name) for module in layer}
        assert modules >= {"tokens", "hours", "rent", "own"}


def test_python_and_the_command_line_tell_hours_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    found = sizing_xlsx.lora.size()
    assert found["run_hours"] > 0 and found["rent_cost"] > 0
    assert main(["lora"]) == 0
    told = capsys.readouterr().out
    assert f"{found['run_hours']:,.1f} hours" in told and f"{found['rent_cost']:,.2f} USD" in told


# ---------------------------------------------------------------------- published speeds
def speeds() -> list[dict[str, str]]:
    with (presets_folder() / "measured" / "speeds.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", speeds(), ids=lambda row: row["id"])
def test_published_speeds_lie_within_a_quarter(row: dict[str, str]) -> None:
    """One reached share a card and method, less for several cards; Llama and Mistral form, full training and LoRA."""
    shares = job("lora").tables["reached_shares"]
    at = shares.row_of(row["method"])
    several = shares.kept_by_several[at] if int(row["cards"]) > 1 else 1
    parameters, full = float(row["working_parameters"]), row["method"] == "Full training"
    matrices = sum((
        work.matrix_forward_flop(2, parameters),
        work.matrix_backward_flop(2, parameters, parameters if full else 0),
        work.matrix_repeated_flop(2, parameters, 1),
    ))  # fmt: skip
    forward = work.attention_forward_flop(
        2, 2, float(row["layers"]), float(row["sequence_length"]), float(row["query_width"]), 0.5
    )
    flop = work.token_flop(matrices, work.attention_flop(forward, 1, 1), 0, 0)
    predicted = job("lora").tables["gpus"].bf16_dense_tflops[job("lora").tables["gpus"].row_of(row["card"])] * 1e12
    predicted *= shares.expected[at] * several / flop
    error = predicted / float(row["tokens_per_second_per_card"]) - 1
    if row["explained"] == "1":
        assert abs(error) <= 0.25
    else:
        assert abs(error) > 0.25

"""Full fine-tuning planned: over 1 to 1,024 cards, the first way that fits, and the file that starts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sizing_xlsx import full, planning
from sizing_xlsx.cli import main
from sizing_xlsx.presets.catalogue import load_presets

AMP = "AMP autocast bf16/fp16, fp32 storage, AdamW"
SEVEN = {"base_parameter_count_override": 7_000_000_000}


def test_state_of_a_card_for_1_to_1024_cards_by_stage() -> None:
    found = {(one.stage, one.cards): one for one in planning.shared_among(full, **SEVEN)}
    assert len(found) == 6 * 11
    assert found["ZeRO-2", 1024].state_gb == pytest.approx(14 + 98 / 1024)
    assert found["FSDP hybrid shard", 1024].state_gb == found["FSDP full shard", 8].state_gb
    assert found["ZeRO-3", 8].on_one_node and not found["ZeRO-3", 16].on_one_node


def test_the_first_that_fits_has_the_fewest_cards_and_divides_least() -> None:
    found = planning.shared_among(full)
    first = planning.first_that_fits(found)
    assert first is not None and first.verdict == "fits"
    fits = [one for one in found if one.verdict == "fits"]
    assert first.cards == min(one.cards for one in fits)
    stages = list(dict.fromkeys(one.stage for one in found))
    assert stages.index(first.stage) == min(stages.index(one.stage) for one in fits if one.cards == first.cards)
    assert planning.first_that_fits(planning.shared_among(full, (1,), base_model="meta-llama/Llama-3.1-405B")) is None


def test_the_fewest_cards_are_of_any_count_and_any_stage() -> None:
    fewest = planning.fewest_cards(full)
    assert fewest is not None and fewest.verdict == "fits"
    tried = planning.shared_among(full, range(1, fewest.cards + 1))
    assert {one.cards for one in tried if one.verdict == "fits"} == {fewest.cards} == {3}, (
        "the first of the powers is 4"
    )
    first = planning.first_that_fits(planning.shared_among(full))
    assert first is not None and fewest.cards < first.cards
    assert planning.fewest_cards(full, 2) is None
    with pytest.raises(ValueError, match="most is 0; it must be a whole number of cards from 1"):
        planning.fewest_cards(full, 0)


def test_degrees_that_do_not_divide_a_count_leave_it_out() -> None:
    found = planning.shared_among(full, tensor_parallel=8)
    assert {one.cards for one in found if one.stage == "ZeRO-1"} == {8, 16, 32, 64, 128, 256, 512, 1024}


FILLED_IN = (  # by Trainer, from its own arguments (transformers 5.20, integrations/deepspeed.py)
    "gradient_accumulation_steps", "gradient_clipping", "train_batch_size", "train_micro_batch_size_per_gpu", "lr",
    "betas", "eps", "weight_decay", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold",
)  # fmt: skip


@pytest.mark.parametrize(
    ("stage", "offload"),
    [("ZeRO-1", "None"), ("ZeRO-2", "Optimizer to CPU"), ("ZeRO-3", "Optimizer and parameters to NVMe")],
)
def test_a_zero_file_is_one_that_accelerate_reads_and_trainer_fills_in(
    stage: str, offload: str, tmp_path: Path
) -> None:
    reader = pytest.importorskip("accelerate.utils.deepspeed", reason="accelerate is not installed")
    file = tmp_path / "zero.json"
    planning.write_launch_config(file, full, sharding_stage=stage, state_offload=offload)
    read = reader.HfDeepSpeedConfig(str(file))
    assert (read.is_zero2(), read.is_zero3(), read.is_offload()) == (
        stage[-1] == "2",
        stage[-1] == "3",
        offload != "None",
    )
    assert read.get_value("zero_optimization.stage") == int(stage[-1])
    assert read.is_true("bf16.enabled") and not read.is_true("fp16.enabled")

    def automatic(config: dict[str, Any]) -> set[str]:
        nested = [automatic(value) for value in config.values() if isinstance(value, dict)]
        return {key for key, value in config.items() if value == "auto"}.union(*nested)

    assert automatic(json.loads(file.read_text(encoding="utf-8"))) <= set(FILLED_IN)


@pytest.mark.parametrize(
    ("stage", "cards", "kind"), [("FSDP full shard", 16, "FSDP"), ("FSDP hybrid shard", 16, "FSDP"),
                                 ("DDP", 4, "MULTI_GPU"), ("None", 1, "NO")],
)  # fmt: skip
def test_an_accelerate_file_is_one_that_accelerate_reads(stage: str, cards: int, kind: str, tmp_path: Path) -> None:
    arguments = pytest.importorskip("accelerate.commands.config.config_args", reason="accelerate is not installed")
    file = tmp_path / "launch.yaml"
    planning.write_launch_config(file, full, sharding_stage=stage, gpu_count=cards, training_recipe=AMP)
    read = arguments.load_config_from_file(str(file))
    assert (read.distributed_type.value, read.num_processes, read.mixed_precision) == (kind, cards, "bf16")
    assert read.num_machines == (2 if cards == 16 else 1)
    if kind == "FSDP":
        assert read.fsdp_config["fsdp_sharding_strategy"] == ("HYBRID_SHARD" if "hybrid" in stage else "FULL_SHARD")
        assert read.fsdp_config["fsdp_offload_params"] is False


def test_what_no_file_can_say_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the file of DeepSpeed for ZeRO-1 must end in \.json"):
        planning.write_launch_config(tmp_path / "own.yaml", full)
    with pytest.raises(ValueError, match="tensor_parallel is 2; it must be 1 for a file of DeepSpeed"):
        planning.launch_text(full, tensor_parallel=2)


EIGHT = "bf16 + bnb AdamW8bit / PagedAdamW8bit"
FSDP = {"sharding_stage": "FSDP full shard", "training_recipe": AMP}


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"training_recipe": EIGHT}, f"training_recipe is '{EIGHT}', which DeepSpeed does not start under ZeRO-1"),
        (
            {"training_recipe": "pure bf16 AdamW"},
            "which DeepSpeed does not start under ZeRO-1; it must be one of bf16 p",
        ),
        ({"training_recipe": "DeepSpeed ZeRO-3 fp16/bf16 (18 B/N)"}, "which DeepSpeed does not start under ZeRO-1"),
        ({"sharding_stage": "DDP"}, "which accelerate does not start under DDP; it must be one of fp32 AdamW"),
        ({"sharding_stage": "FSDP full shard"}, "which accelerate does not start under FSDP full shard"),
        ({**FSDP, "training_recipe": "pure bf16 AdamW"}, "FSDP's mixed precision would keep fp32 parameters"),
        ({**FSDP, "training_recipe": EIGHT, "uses_autocast": "Off"}, "which accelerate does not start under FSDP"),
        ({**FSDP, "optimizer_step": "in backward"}, "optimizer_step is 'in backward'; no file says so"),
        ({**FSDP, "sequence_parallel": 2}, "sequence_parallel is 2; it must be 1 under FSDP full shard"),
        ({**FSDP, "state_offload": "Optimizer to CPU"}, "moves optimizer and parameters together, to the CPU"),
        ({**FSDP, "state_offload": "Optimizer and parameters to NVMe"}, "it must be 'None' or 'Optimizer and param"),
        ({**FSDP, "gpu_count": 12}, "gpu_count is 12 with gpus_per_node 8; accelerate starts as many on every node"),
    ],
)
def test_a_file_that_would_start_another_job_is_refused(inputs: dict[str, Any], told: str, tmp_path: Path) -> None:
    full.size(("verdict_code",), **inputs)  # it is sized all the same
    name = "zero.json" if "sharding_stage" not in inputs else "own.yaml"
    with pytest.raises(ValueError, match="; |: ") as raised:
        planning.write_launch_config(tmp_path / name, full, **inputs)
    assert told in str(raised.value) and "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stage", full.choices("sharding_stage"))
def test_a_recipe_is_refused_or_its_file_says_what_it_holds(stage: str) -> None:
    """Every recipe under every stage: a master copy is DeepSpeed's, fp32 parameters are never cast down to 16 bit."""
    rows = {row["name"]: row for row in load_presets().recipe_rows}
    started = set()
    for recipe in full.choices("training_recipe"):
        one = {"sharding_stage": stage, "gpu_count": 1 if stage == "None" else 2, "training_recipe": recipe}
        try:
            config = planning.launch_config(full, uses_autocast="Off", **one)
        except ValueError:
            continue
        started.add(recipe)
        assert ("zero_optimization" in config) == (rows[recipe]["master_bytes"] > 0), recipe
        assert not (rows[recipe]["narrow_state"] and stage.startswith(("ZeRO", "FSDP"))), recipe
    assert started


def test_a_file_that_is_there_stays_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "zero.json"
    file.write_text("mine", encoding="utf-8")
    asked = ["full", "--launch-config", str(file)]
    assert main(asked) == 2
    said = capsys.readouterr()
    assert (file.read_text(encoding="utf-8"), said.out) == ("mine", "")
    assert "which is there already; name a new file, or give --force" in said.err and said.err.count("\n") == 1
    assert main([*asked, "--force"]) == 0
    assert json.loads(file.read_text(encoding="utf-8"))["zero_optimization"]["stage"] == 1
    assert main(["full", "--training-recipe", "bf16 Muon", "--launch-config", str(tmp_path / "new.json")]) == 2
    assert not (tmp_path / "new.json").exists()


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Any] = ["full", "--gpu-count", "4", "--launch-config", str(tmp_path / "zero.json"), "--json"]
    assert main(asked) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["results"]["model_state_per_gpu_gb"] == pytest.approx((4 + 12 / 4) * 8.030261248)
    assert (tmp_path / "zero.json").exists() and "zero.json" in said.err
    assert main(["full", "--stages"]) == 0
    told = capsys.readouterr().out
    assert "First that fits: 4 cards, ZeRO-1, on one node of eight." in told
    assert "Fewest cards: 3 cards, ZeRO-2, on one node of eight." in told
    assert main(["full", "--gpu-count", "3", "--tensor-parallel", "2"]) == 2
    assert "gpu_count is 3 with tensor_parallel 2" in capsys.readouterr().err

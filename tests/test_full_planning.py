"""Full fine-tuning planned: over 1 to 1,024 cards, the first way that fits, and the file that starts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sizing_xlsx import full, planning
from sizing_xlsx.cli import main

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
    planning.write_launch_config(file, full, sharding_stage=stage, gpu_count=cards)
    read = arguments.load_config_from_file(str(file))
    assert (read.distributed_type.value, read.num_processes, read.mixed_precision) == (kind, cards, "bf16")
    assert read.num_machines == (2 if cards == 16 else 1)
    if kind == "FSDP":
        assert read.fsdp_config["fsdp_sharding_strategy"] == ("HYBRID_SHARD" if "hybrid" in stage else "FULL_SHARD")
        assert read.fsdp_config["fsdp_offload_params"] is False


def test_what_no_file_can_say_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the file of DeepSpeed for ZeRO-1 must end in \.json"):
        planning.write_launch_config(tmp_path / "own.yaml", full)
    with pytest.raises(ValueError, match="tensor_parallel is 2 and pipeline_parallel 1; a configuration is written"):
        planning.launch_text(full, tensor_parallel=2)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Any] = ["full", "--gpu-count", "4", "--launch-config", str(tmp_path / "zero.json"), "--json"]
    assert main(asked) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["results"]["model_state_per_gpu_gb"] == pytest.approx((4 + 12 / 4) * 8.030261248)
    assert (tmp_path / "zero.json").exists() and "zero.json" in said.err
    assert main(["full", "--stages"]) == 0
    assert "First that fits: 4 cards, ZeRO-1, on one node of eight." in capsys.readouterr().out
    assert main(["full", "--gpu-count", "3", "--tensor-parallel", "2"]) == 2
    assert "gpu_count is 3 with tensor_parallel 2" in capsys.readouterr().err

"""The trace: real training steps on a GPU that is not there, held against what an H100 measured and the formulas say."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sizing_xlsx import lora, training
from sizing_xlsx.measure import composition, cuda_rules, fake_gpu, models, trace
from sizing_xlsx.measure.allocator import Allocator
from sizing_xlsx.measure.run import Run, make_run, named_sweep
from sizing_xlsx.presets.catalogue import load_presets

pytest.importorskip("torch", reason="torch is not installed; the extra 'test' brings it")

TINY = {
    "hidden_size_override": 192,
    "layer_count_override": 3,
    "attention_heads_override": 4,
    "kv_heads_override": 2,
    "head_dimension_override": 56,
    "mlp_width_override": 432,
    "vocabulary_size_override": 512,
    "batch_size": 2,
    "sequence_length": 256,
}
TINY_ENCODER = {key: value for key, value in TINY.items() if not key.startswith(("kv_", "head_d"))} | {
    "parameter_count_override": None
}


def tiny(**changes: Any) -> Run:
    return make_run("lora", {**TINY, **changes}, id="tiny")


# ------------------------------------------------------------------------------------------------ the sweeps
@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, dict[str, str]]]:
    """Both article sweeps, traced as a user does it."""
    folder = tmp_path_factory.mktemp("sweeps")
    rows = {}
    for name in ("lora", "training"):
        path = folder / f"{name}.csv"
        command = [sys.executable, "-m", "sizing_xlsx", "verify", "--sweep", name, "--csv", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ}, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        with path.open(encoding="utf-8", newline="") as file:
            rows[name] = {row["id"]: row for row in csv.DictReader(file)}
    return rows


@pytest.mark.parametrize(("name", "allocated", "reserved"), [("lora", 0.0002, 0.05), ("training", 0.003, 0.05)])
def test_the_trace_agrees_with_the_h100(sweeps: Any, name: str, allocated: float, reserved: float) -> None:
    measured = getattr(load_presets(), f"{name}_sweep")
    assert list(sweeps[name]) == [row["id"] for row in measured]
    for row in measured:
        traced = sweeps[name][row["id"]]
        assert traced["figures"] == "traced"
        if row["measured_oom"]:
            assert traced["outcome"] == "oom", row["id"]
            assert "out of memory" in traced["message"]
        else:
            assert traced["outcome"] == "ok", row["id"]
            peak = int(traced["peak_allocated_bytes"]) / 1e9
            assert peak == pytest.approx(row["measured_peak_allocated_gb"], rel=allocated), row["id"]
            held = int(traced["peak_reserved_bytes"]) / 1e9
            assert held == pytest.approx(row["measured_peak_reserved_gb"], rel=reserved), row["id"]


def test_the_bytes_that_stay_are_those_measured(sweeps: Any) -> None:
    step = 4  # the sweeps counted Adam's step of each tensor, which is on the CPU
    for row in load_presets().lora_sweep:
        if row["measured_oom"]:
            continue
        traced = sweeps["lora"][row["id"]]
        assert int(traced["frozen_parameter_bytes"]) == row["measured_frozen_bytes"]
        assert int(traced["trainable_parameter_bytes"]) == row["measured_adapter_bytes"]
        assert int(traced["gradient_bytes"]) == row["measured_gradient_bytes"]
        assert (row["measured_optimizer_bytes"] - int(traced["optimizer_state_bytes"])) % step == 0
        after = int(traced["allocated_after_model_bytes"]) / 1e9
        assert after == pytest.approx(row["measured_after_model_gb"], rel=0.003)


def test_the_formulas_agree_with_the_traces_of_both_sweeps(sweeps: Any) -> None:
    for name, job in (("lora", lora), ("training", training)):
        for run in named_sweep(name):
            traced = int(sweeps[name][run.id]["peak_allocated_bytes"])
            inputs = {key: value for key, value in run.inputs.items() if key in job.inputs}
            predicted = job.size(("traced_allocated",), **inputs)["traced_allocated"]
            assert predicted == pytest.approx(traced, rel=0.0013), run.id


# ------------------------------------------------------------------------------------------------ one run
def test_a_trace_needs_no_memory_and_says_what_it_is() -> None:
    run = make_run("lora", {"base_model": "meta-llama/Llama-3.1-8B", "layer_count_override": 2, "batch_size": 64})
    row = trace.result(run, trace.trace(run), trace.card_capacity(run))
    assert row["outcome"] == "oom" or row["peak_allocated_bytes"] > 10e9
    assert row["attention_kernel"] == "flash"
    assert row["peak_reserved_bytes"] >= row["peak_allocated_bytes"]


def test_two_traces_of_a_run_are_the_same() -> None:
    first, second = (trace.trace(tiny()) for _ in range(2))
    assert first.recorder.events == second.recorder.events


def test_phase_peaks_hold_the_peak() -> None:
    recorded = trace.trace(tiny())
    row = trace.result(tiny(), recorded)
    assert max(recorded.peaks.values()) <= row["peak_allocated_bytes"]
    assert recorded.after["model"] < recorded.after["forward"] < max(recorded.peaks.values())


def test_a_smaller_card_runs_out_of_memory_and_says_where() -> None:
    run = tiny()
    recorded = trace.trace(run)
    needed = Allocator().replay(recorded.recorder.events).peak_reserved
    assert trace.result(run, recorded, needed)["outcome"] == "ok"
    short = trace.result(run, recorded, needed // 2)
    assert short["outcome"] == "oom"
    assert "tried to allocate" in short["message"]
    assert short["peak_allocated_bytes"] > needed // 2  # what it would have needed


def test_gradient_accumulation_keeps_gradients_through_the_step() -> None:
    once = trace.trace(tiny()).peaks["forward"]
    twice = trace.trace(tiny(gradient_accumulation=2)).peaks["forward"]
    gradients = trace.trace(tiny()).facts["gradient_bytes"]
    assert twice - once >= gradients


def test_a_dropped_output_frees_its_scores_before_backward() -> None:
    kept, dropped = trace.trace(tiny()), trace.trace(tiny(keeps_model_output="Off"))
    scores = 2 * 512 * 512  # bf16
    assert kept.peaks["backward"] - dropped.peaks["backward"] >= scores


@pytest.mark.parametrize("storage", ["int8", "no double quant", "double quant (nested"])
def test_quantised_bases_are_traced(storage: str) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed; the extra 'test' brings it")
    name = next(key for key in lora.choices("base_storage_format") if storage in key)
    run = tiny(base_storage_format=name)
    recorded = trace.trace(run)
    inputs = {key: value for key, value in run.inputs.items() if key in lora.inputs}
    formula = lora.size(("frozen_base_weights",), **inputs)["frozen_base_weights"]
    difference = recorded.facts["frozen_parameter_bytes"] - formula
    matrices = 7 * 3  # a nested format keeps whole blocks of scales, which these small matrices do not fill
    assert 0 <= difference <= (4 * matrices if "nested" in name else 0)


def test_eight_bit_adam_keeps_small_tensors_in_fp32() -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed; the extra 'test' brings it")
    recorded = trace.trace(tiny(optimizer_choice="8-bit Adam"))
    assert recorded.facts["optimizer_state_dtypes"].startswith("float32")  # all tiny tensors are below 4,096
    wide = tiny(optimizer_choice="8-bit Adam", lora_rank=64)
    assert "uint8" in trace.trace(wide).facts["optimizer_state_dtypes"]


@pytest.mark.parametrize("optimizer", ["SGD", "SGD with momentum"])
def test_sgd_keeps_what_the_formulas_say(optimizer: str) -> None:
    recorded = trace.trace(tiny(optimizer_choice=optimizer))
    trained = recorded.facts["trainable_parameters"]
    assert recorded.facts["optimizer_state_bytes"] == trained * (4 if "momentum" in optimizer else 0)


@pytest.mark.parametrize("storage", ["fp32", "bf16"])
def test_full_fine_tuning_is_traced(storage: str) -> None:
    run = make_run("full", {**TINY, "parameter_storage": storage}, id="full")
    facts = trace.trace(run).facts
    size = 4 if storage == "fp32" else 2
    assert facts["trainable_parameter_bytes"] == facts["gradient_bytes"] == facts["parameters"] * size
    assert facts["optimizer_state_bytes"] == 2 * facts["trainable_parameter_bytes"]


def test_k_bit_preparation_casts_what_is_left_to_fp32() -> None:
    nf4 = {"base_storage_format": "nf4 / fp4, block 64, no double quant"}
    assert "float32" not in trace.trace(tiny(**nf4)).facts["parameter_dtypes"].split(", ")[0]
    prepared = trace.trace(tiny(kbit_preparation="On", **nf4)).facts["parameter_dtypes"]
    assert "bfloat16" not in prepared and "float32" in prepared


def test_liger_cannot_be_traced() -> None:
    with pytest.raises(models.CannotRun, match="loss_kernel is 'Liger'"):
        trace.trace(tiny(loss_kernel="Liger"))


# ------------------------------------------------------------------------------------------------ CUDA's rules
@pytest.fixture(scope="module")
def fake() -> Iterator[Any]:
    fake_gpu.install()
    with fake_gpu.fake_mode() as mode:
        yield mode


def test_every_rule_is_one_that_cuda_has(fake: Any) -> None:
    import torch

    table = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    known = {name.removeprefix("aten::") for name in table}
    assert known >= cuda_rules.LOWER_PRECISION | cuda_rules.WIDEST | cuda_rules.GIVEN_DTYPE | cuda_rules.LEFT_OUT
    assert not cuda_rules.LOWER_PRECISION & (cuda_rules.WIDEST | cuda_rules.GIVEN_DTYPE)


def _calls() -> list[tuple[str, Any]]:
    import torch
    from torch.nn import functional

    half, full = torch.bfloat16, torch.float32

    def pair(call: Any, *dtypes: Any) -> Any:
        return lambda device: call(*(torch.ones(4, 4, dtype=dtype, device=device) for dtype in dtypes))

    return [
        ("matmul", pair(torch.matmul, full, full)),
        ("mm", pair(torch.mm, full, half)),
        ("linear", pair(functional.linear, full, full)),
        ("addmm", pair(torch.addmm, full, full, full)),
        ("softmax", pair(lambda x: torch.softmax(x, -1), half)),
        ("log_softmax", pair(lambda x: torch.log_softmax(x, -1), half)),
        ("log_softmax in its own dtype", pair(lambda x: torch.log_softmax(x, -1, half), half)),
        ("sum", pair(torch.sum, half)),
        ("cumsum", pair(lambda x: torch.cumsum(x, 0), half)),
        ("pow", pair(lambda x: x.pow(2), half)),
        ("pow of a number", pair(lambda x: 2.0**x, half)),
        ("rsqrt", pair(torch.rsqrt, half)),
        ("exp", pair(torch.exp, half)),
        ("tanh", pair(torch.tanh, half)),
        ("gelu", pair(functional.gelu, half)),
        ("silu", pair(functional.silu, half)),
        ("relu", pair(torch.relu, half)),
        ("layer_norm", pair(lambda x: functional.layer_norm(x, (4,)), half)),
        ("rms_norm", pair(lambda x: functional.rms_norm(x, (4,)), half)),
        ("mse_loss", pair(functional.mse_loss, half, half)),
        ("add", pair(torch.add, full, half)),
        ("cat", pair(lambda a, b: torch.cat([a, b]), full, half)),
        ("addcmul", pair(torch.addcmul, full, half, half)),
        ("mean", pair(torch.mean, half)),
        ("softplus", pair(functional.softplus, half)),
    ]


@pytest.mark.parametrize("name", [name for name, _ in _calls()])
def test_autocast_gives_the_dtype_that_cuda_gives(fake: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_: True)
    call = dict(_calls())[name]
    with torch.no_grad():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            real = call("cuda:0")  # CUDA's own table, on a fake tensor: forward needs no device
        with torch.autocast(fake_gpu.NAME, dtype=torch.bfloat16):
            taught = call(fake_gpu.DEVICE)
    assert taught.dtype == real.dtype


def test_a_weight_is_cast_once_and_let_go_when_autocast_ends(fake: Any) -> None:
    import torch

    weight = torch.nn.Parameter(torch.ones(4, 4, device=fake_gpu.DEVICE))
    with torch.autocast(fake_gpu.NAME, dtype=torch.bfloat16):
        torch.mm(weight, weight)
        assert len(cuda_rules._casts) == 1
        with torch.autocast(fake_gpu.NAME, enabled=False):
            pass
        assert len(cuda_rules._casts) == 1
    assert not cuda_rules._casts


# ------------------------------------------------------------------------------------------------ composition
@pytest.fixture(scope="module")
def composed() -> tuple[Run, Any, composition.Composition]:
    run = tiny()
    recorded = trace.trace(run)
    return run, recorded, composition.compose(recorded.recorder, recorded.marks, recorded.vocabulary)


def test_the_parts_add_up_to_the_peak(composed: Any) -> None:
    _, recorded, made = composed
    assert sum(part.bytes for part in made.parts) == made.peak == max(recorded.peaks.values())


def test_the_parts_are_those_that_the_formulas_name(composed: Any) -> None:
    run, _, made = composed
    found = composition.by_term(made)
    inputs = {key: value for key, value in run.inputs.items() if key in lora.inputs}
    said = lora.size(None, **inputs)
    assert found["frozen weights"] == pytest.approx(said["frozen_base_weights"], rel=0.01)
    assert found["trained weights"] == pytest.approx(said["adapter_weights"], rel=0.02)
    assert found["optimizer state"] == pytest.approx(said["optimizer_state"], rel=0.02)
    assert found["cuBLAS workspaces"] == said["matrix_workspaces"]
    assert found["autocast copies"] == pytest.approx(said["saved_casts"], rel=0.05)
    # The cache of the last step's output is alive too; the first layer's first norm keeps nothing.
    cache, first_norm = 3 * said["layer_kv_cache"], 4 * 512 * (192 + 1)
    assert found["kept by layers"] == pytest.approx(said["saved_layers"] + cache - first_norm, rel=0.002)
    assert found["output scores and loss"] >= 10 * 512 * 512  # 10 bytes a token and word in the loss's forward
    assert "gradients" not in found  # none exist in the loss


def test_a_table_and_a_picture_are_written(composed: Any, tmp_path: Path) -> None:
    run, _, made = composed
    composition.write(run, made, tmp_path / "out")
    with (tmp_path / "out" / "tiny.csv").open(encoding="utf-8", newline="") as file:
        assert sum(int(row["bytes"]) for row in csv.DictReader(file)) == made.peak
    assert (tmp_path / "out" / "tiny.png").read_bytes().startswith(b"\x89PNG")


def test_the_moments_of_the_formulas_are_marked(composed: Any) -> None:
    run, _, made = composed
    marked = composition.moments(run)
    assert max(marked.values()) == pytest.approx(made.peak / 1e9, rel=0.01)
    assert composition.moments(make_run("full", TINY)) == {}

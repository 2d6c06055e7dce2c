"""The cuda backend up to the device's own calls: a card is pretended on the fake GPU, its counters by the replay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sizing_xlsx.measure import backends, checks, composition, cuda, fake_gpu, results, trace
from sizing_xlsx.measure.allocator import Allocator, OutOfMemory
from sizing_xlsx.measure.events import Allocation
from sizing_xlsx.measure.run import Run, make_run

torch = pytest.importorskip("torch", reason="torch is not installed; the extra 'test' brings it")

TINY = {
    "hidden_size_override": 192,
    "layer_count_override": 2,
    "attention_heads_override": 4,
    "kv_heads_override": 2,
    "head_dimension_override": 48,
    "mlp_width_override": 432,
    "vocabulary_size_override": 640,
    "batch_size": 2,
    "sequence_length": 256,
}


class PretendedCard:
    """A GPU whose counters are those of the recorder's events, replayed as they come."""

    device = fake_gpu.DEVICE
    made_elsewhere = "meta"
    out_of_memory = OutOfMemory

    def __init__(self, capacity: int | None = None) -> None:
        from sizing_xlsx.measure.events import Recorder

        fake_gpu.install()
        trace._quiet_transformers()
        self.recorder = Recorder(fake_gpu.NAME, 8 << 20)
        self.allocator = Allocator(capacity)
        self.replayed = 0
        self.began = 0

    @contextmanager
    def mode(self) -> Iterator[None]:
        with fake_gpu.fake_mode(), self.recorder:
            yield

    def place(self, model: Any) -> Any:
        with fake_gpu.fake_mode():
            trace.place(model)
        self.recorder.know(model)
        return model

    def synchronize(self) -> None:
        events = self.recorder.events[self.replayed :]
        self.replayed = len(self.recorder.events)
        self.allocator.replay(events)

    def reset_peaks(self) -> None:
        self.allocator.reset_peaks()

    def allocated(self) -> int:
        return self.allocator.allocated

    def peak_allocated(self) -> int:
        return self.allocator.peak_allocated

    def peak_reserved(self) -> int:
        return self.allocator.peak_reserved

    def retries(self) -> int:
        return self.allocator.retries

    def used(self) -> int:
        return self.allocator.reserved + 600_000_000

    def context(self) -> int:
        return 600_000_000

    def others(self) -> int:
        return 0

    def name(self) -> str:
        return "pretended card"

    def total(self) -> int:
        return 80_000_000_000

    def driver(self) -> str:
        return "1.0"

    def settings(self) -> str:
        return "native, default"

    def record_history(self) -> None:
        self.began = len(self.recorder.events)

    def history(self) -> list[dict[str, Any]]:
        return []


@pytest.fixture(autouse=True)
def meta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adapters, too, are made where models are: without memory."""
    from sizing_xlsx.measure import models

    dress = models.dress

    def on_meta(model: Any, run: Run) -> Any:
        with torch.device("meta"):
            return dress(model, run)

    monkeypatch.setattr(models, "dress", on_meta)
    monkeypatch.setattr(cuda, "load", lambda run, card: card.place(models.dress(models.base(run, "meta"), run)))


def test_a_run_is_measured_phase_by_phase() -> None:
    run = make_run("lora", TINY, id="tiny")
    row = cuda.measure(run, {}, PretendedCard())
    traced = trace.result(run, trace.trace(run, run["steps"]))
    assert row["outcome"] == "ok"
    assert row["card"] == "pretended card"
    for key in ("frozen_parameter_bytes", "gradient_bytes", "optimizer_state_bytes", "trainable_parameters"):
        assert row[key] == traced[key]
    phases = [row[f"peak_{phase}_allocated_bytes"] for phase in ("forward", "backward", "update")]
    assert row["peak_allocated_bytes"] >= max(phases) > row["allocated_after_model_bytes"] > 0
    assert row["peak_reserved_bytes"] >= row["peak_allocated_bytes"]
    assert row["allocated_after_optimizer_bytes"] < row["allocated_after_forward_bytes"]
    assert row["step_time_median_ms"] > 0 and row["tokens_per_second"] > 0
    assert row["attention_kernel"] == "flash"
    assert row["device_used_peak_bytes"] >= row["peak_reserved_bytes"]


def test_the_autocast_cache_is_isolated_by_switching_it_off() -> None:
    run = make_run("training", {key: value for key, value in TINY.items() if not key.startswith(("kv_", "head_"))})
    row = cuda.measure(run, {}, PretendedCard())
    copies = 2 * (2 * (4 * 192 * 192 + 2 * 192 * 432) + 640 * 192)  # of two layers and the head, 16 bit
    assert row["autocast_cache_bytes"] == pytest.approx(copies, rel=0.02)
    plain = make_run("training", {**run.inputs, "compute_precision": "fp32"})
    assert cuda.measure(plain, {}, PretendedCard())["autocast_cache_bytes"] is None


def test_running_out_of_memory_is_a_result() -> None:
    run = make_run("lora", TINY, id="tiny")
    needed = cuda.measure(run, {}, PretendedCard())["peak_reserved_bytes"]
    row = cuda.measure(run, {}, PretendedCard(int(needed * 0.7)))
    assert row["outcome"] == "oom"
    assert "tried to allocate" in row["message"]
    assert 0 < row["peak_reserved_bytes"] <= needed * 0.7


def test_evaluation_has_a_peak_of_its_own() -> None:
    run = make_run("lora", TINY, id="tiny")
    row = cuda.measure(run, {"also": ["evaluation"]}, PretendedCard())
    assert row["allocated_after_model_bytes"] < row["evaluation_peak_bytes"] < row["peak_allocated_bytes"]


@pytest.mark.parametrize("job", ["lora", "full", "training"])
def test_save_reload_and_export_really_work(job: str, tmp_path: Path) -> None:
    """On the CPU, with real tensors: the checks themselves know no GPU."""
    from sizing_xlsx.measure import models

    fields = TINY if job != "training" else {k: v for k, v in TINY.items() if not k.startswith(("kv_", "head_"))}
    run = make_run(job, {**fields, "sequence_length": 16})
    with torch.device("cpu"):
        model = models.base(run, "cpu")
        from peft import get_peft_model

        if job == "lora":
            model = get_peft_model(model, models.adapter_config(model, run))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for name in checks.CHECKS:
        folder = tmp_path / name
        folder.mkdir()
        checks.CHECKS[name](model, run, "cpu", folder)
        if name == "reload":
            assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert list((tmp_path / "save").iterdir()) and list((tmp_path / "export").iterdir())


def test_without_a_gpu_the_command_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    from sizing_xlsx.cli import main

    out = tmp_path / "out.csv"
    assert main(["verify", "--sweep", "lora", "--backend", "cuda", "--csv", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "finds no CUDA GPU here" in said and "--backend trace" in said
    assert not out.exists()


def test_a_source_says_whose_figures_they_are() -> None:
    run = make_run("lora", TINY, id="tiny")
    facts = {"versions": "Python 3.11.0, torch 2.13.0, transformers 5.20.2, peft 0.21.0", "date": "2026-11-29"}
    measured = backends.source(run, {**facts, "figures": results.FIGURES["cuda"], "card": "NVIDIA A100"})
    assert measured == "measured: NVIDIA A100, torch 2.13.0, transformers 5.20.2, peft 0.21.0, 2026-11-29"
    traced = backends.source(run, {**facts, "figures": results.FIGURES["trace"]})
    assert traced.startswith("traced: no GPU, for NVIDIA H100 SXM5 80GB")


# ------------------------------------------------------------------------------------------------ history
class _Recorder:
    def __init__(self, all: list[Allocation], addresses: dict[int, int]) -> None:
        self.all, self.addresses = all, addresses
        self.trained, self.gradients = {0}, {3}


def test_the_allocators_history_is_named_by_the_tensors() -> None:
    def piece(operation: str, phase: str, size: int = 512) -> Allocation:
        return Allocation(size, size, operation, (size // 4,), "float32", phase, "model.layers.0.mlp")

    recorder = _Recorder(
        [
            piece("parameter", "model", 1024),
            piece("mm", "forward"),
            piece("add", "backward"),
            piece("mm", "backward"),
            piece("sub", "update"),
        ],
        {0: 100, 1: 200, 2: 300, 3: 200, 4: 300},
    )
    history = [
        {"action": "alloc", "addr": 200, "size": 512},  # forward's mm
        {"action": "alloc", "addr": 900, "size": 2048},  # nobody's tensor
        {"action": "free_requested", "addr": 900, "size": 2048},
        {"action": "free_completed", "addr": 900, "size": 2048},
        {"action": "alloc", "addr": 300, "size": 512},
        {"action": "free_completed", "addr": 200, "size": 512},
        {"action": "alloc", "addr": 200, "size": 512},  # becomes a gradient
        {"action": "free_completed", "addr": 300, "size": 512},
        {"action": "alloc", "addr": 300, "size": 512},
    ]
    recording, marks = composition.from_history(recorder, history, 1)
    made = composition.compose(recording, marks, vocabulary=7)
    assert made.peak == 1024 + 512 + 2048
    assert composition.by_term(made) == {
        "trained weights": 1024,
        "kept by layers": 512,
        "scratch inside kernels": 2048,
    }
    last = made.samples[-1][1]
    assert last["gradients"] == 512 and last["scratch inside kernels"] == 0
    assert [phase for _, phase in made.phases] == ["forward", "backward", "update"]

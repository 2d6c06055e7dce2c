"""Whole steps of full fine-tuning: the formulas' peak against the trace of the real step, and forms derived anew.

Blocks of the allocator are larger than the tensors in them, hence the tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import job
from sizing_xlsx.presets.catalogue import load_presets

torch = pytest.importorskip("torch", reason="torch is not installed; the extra 'test' brings it")
from sizing_xlsx.measure import models, trace  # noqa: E402
from sizing_xlsx.measure.full_form import full_form_of  # noqa: E402
from sizing_xlsx.measure.run import make_run  # noqa: E402

FULL: Job = job("full")
TINY = "TinyLlama/TinyLlama-1.1B-Chat-v1.0"
STREAMS = {  # recipe, and the same in the words of a run
    "half": ("pure bf16 AdamW", {"parameter_storage": "bf16", "uses_autocast": "Off"}),
    "autocast": ("AMP autocast bf16/fp16, fp32 storage, AdamW", {"parameter_storage": "fp32"}),
    "fp32": ("fp32 AdamW", {"parameter_storage": "fp32", "uses_autocast": "Off", "compute_precision": "fp32"}),
}
CHECKPOINTED, SMALL = {"activation_checkpointing": "On"}, {"batch_size": 1, "sequence_length": 128}
STEPS: list[tuple[str, str, int, str, dict[str, Any]]] = [  # stream, model, layers, optimizer step, what else is asked
    ("half", TINY, 2, "foreach", {"gradient_accumulation": 2, "keeps_model_output": "On"}),
    ("half", TINY, 4, "fused", {"batch_size": 8, **CHECKPOINTED}),
    ("half", TINY, 4, "for-loop", SMALL),
    ("autocast", TINY, 4, "fused", {"batch_size": 8}),
    ("autocast", TINY, 4, "fused", SMALL),
    ("autocast", TINY, 4, "foreach", {"sequence_length": 256, **CHECKPOINTED}),
    ("half", "google/gemma-3-1b-it", 3, "fused", {}),
    ("autocast", "Qwen/Qwen3-30B-A3B", 1, "fused", {}),
]


@pytest.fixture
def optimizers() -> Iterator[dict[str, str]]:
    """How the run's optimizer walks over the parameters, which a run itself does not say."""
    how = {"step": "foreach"}

    def made(run: Any, parameters: list[Any]) -> Any:
        plain = {"lr": 1e-4, "foreach": how["step"] == "foreach", "fused": how["step"] == "fused"}
        return torch.optim.AdamW(parameters, **plain)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "make_optimizer", made)
        yield how


@pytest.mark.parametrize(
    ("stream", "model", "layers", "step", "more"),
    STEPS,
    ids=lambda value: str(value).rpartition("/")[2] if isinstance(value, str) else "",
)
def test_a_step(
    stream: str, model: str, layers: int, step: str, more: dict[str, Any], optimizers: dict[str, str]
) -> None:
    optimizers["step"] = step
    recipe, fields = STREAMS[stream]
    asked = {"batch_size": 4, "sequence_length": 512, "keeps_model_output": "Off", **fields, **more}
    run = make_run("full", {"base_model": model, "layer_count_override": layers, **asked}, id="step")
    peak = trace.result(run, trace.trace(run, 2))["peak_allocated_bytes"]
    inputs = {key: value for key, value in run.inputs.items() if key in FULL.inputs}
    inputs |= {"training_recipe": recipe, "optimizer_step": step, "sharding_stage": "None", "gpu_count": 1}
    found = FULL.size(("traced_allocated", "traced_available"), **inputs)
    assert found["traced_available"]
    assert found["traced_allocated"] == pytest.approx(peak, rel=0.006)


def test_a_form_is_derived_as_the_presets_have_it() -> None:
    entry = full_form_of({"base_model": "meta-llama/Llama-2-7b-hf"})
    form = load_presets().full_parts["llama"]
    parts = {f"{stream}_{part}": dict(sums) for stream, found in form.streams.items() for part, sums in found.items()}
    assert {key: value for key, value in entry.items() if key != "source"} == parts

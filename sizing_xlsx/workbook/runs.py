"""Measured runs as jobs: their inputs, what was measured, and what both families predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from .jobtable import JobTable

if TYPE_CHECKING:
    from .book import Book

RESULTS = (
    "traced_allocated", "published_allocated", "traced_reserved", "published_reserved", "verdict_code", "fit_verdict",
)  # fmt: skip
_OPTIMIZERS = {"adam": "Adam", "adam8bit": "8-bit Adam"}
_PRECISIONS = {"bf16_autocast": "bf16 autocast", "fp16_autocast": "fp16 autocast", "fp32": "fp32"}


def run_inputs(kind: str, run: Mapping[str, Any], card: str) -> dict[str, Any]:
    """A row of presets/measured/ as the inputs of its job. kind: "lora" or "training"."""
    inputs = {
        "batch_size": run["batch_size"],
        "sequence_length": run["sequence_length"],
        "compute_precision": _PRECISIONS[run["compute"]],
        "optimizer_choice": _OPTIMIZERS[run["optimizer"]],
        "activation_checkpointing": "On" if run["checkpointing"] else "Off",
        "gpu_choice": card,
    }
    if kind == "training":
        return {
            **inputs,
            "hidden_size_override": run["hidden_size"],
            "layer_count_override": run["layers"],
            "attention_heads_override": run["attention_heads"],
            "mlp_width_override": run["ff_multiplier"] * run["hidden_size"],
            "vocabulary_size_override": run["output_width"],
            "parameter_count_override": run["parameters"],
        }
    layers = run["adapter_layers"]
    return {
        **inputs,
        "base_storage_format": run["base_storage"],
        "lora_rank": run["lora_rank"],
        "adapter_layers": layers if layers == "all" else int(layers.partition("-")[2]),
    }


class Run:
    """One measured run beside its predictions, in GB; errors are shares, rounded as they are shown."""

    def __init__(self, measured: Mapping[str, Any], inputs: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self.measured, self.inputs, self.values = measured, inputs, values
        self.failed: bool = measured["measured_oom"]
        self.peak: float | None = measured["measured_peak_allocated_gb"]
        self.reserved: float | None = measured["measured_peak_reserved_gb"]

    def predicted(self, result: str) -> float:
        """A predicted figure in GB."""
        return float(self.values[result] / 1e9)

    def error(self, result: str) -> float:
        """Predicted over measured peak, less 1; without a negative zero."""
        assert self.peak is not None
        return round(self.predicted(result) / self.peak - 1, 4) + 0.0

    def above(self) -> float:
        """By how much the upper estimate exceeds what was reserved."""
        assert self.reserved is not None
        return self.predicted("traced_reserved") / self.reserved - 1

    def call(self) -> str:
        """Whether the verdict (1 fits, 2 tight, 3 does not fit) agrees with what happened."""
        code = self.values["verdict_code"]
        if code == 2:
            return "Undecided"
        return "Right" if self.failed == (code > 2) else "Wrong"


class Runs:
    """All measured runs of a job, and the job table that predicts them."""

    def __init__(self, book: Book) -> None:
        spec = book.template["validation"]
        measured: Sequence[Mapping[str, Any]] = getattr(book.presets, spec["rows"] + "_sweep")
        self.table = JobTable(book.job, RESULTS)
        self.shown: Sequence[str] = book.job.tables["verdicts"].columns["shown"]
        allowances = {key: value for key, value in book.job.defaults().items() if not book.job.inputs[key].follows_job}
        self.all: list[Run] = []
        for row in measured:
            inputs = {**book.job.worked, **allowances, **run_inputs(spec["rows"], row, spec["card"])}
            self.all.append(Run(row, inputs, self.table.values(inputs)))
        self.completed = [run for run in self.all if not run.failed]
        if not self.completed:
            raise ValueError(f"presets/measured: the {spec['rows']} sweep has no completed run; put its rows back")
        self.calls = [run.call() for run in self.all]

    def verdict(self, run: Run) -> str:
        """The verdict of a run, as it is shown."""
        return str(self.shown[run.values["verdict_code"] - 1])

    def worst(self, result: str) -> float:
        """The largest absolute error over the completed runs."""
        return max(abs(run.error(result)) for run in self.completed)

    def middle(self, result: str) -> float:
        """The median absolute error over the completed runs."""
        return median(abs(run.error(result)) for run in self.completed)

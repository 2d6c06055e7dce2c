"""Counts and durations, for Prometheus. Each worker leaves its own in a file, and one that is asked adds them up."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from threading import Lock

from .files import write_whole

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
HELP = {
    "sizing_requests_total": ("counter", "Requests by route and status."),
    "sizing_request_seconds": ("histogram", "Time from a request's head to the end of its answer."),
    "sizing_calls_total": ("counter", "Calls of functions by function and outcome."),
    "sizing_answers_kept_total": ("counter", "Distinct calls by whether their answer was known already."),
    "sizing_refused_total": ("counter", "Requests refused by reason."),
    "sizing_connections_dropped_total": ("counter", "Connections closed by reason."),
}
Sample = tuple[str, str]  # name, labels as they are printed


class Metrics:
    """The counts of this process."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder, self._counts, self._lock = folder, Counter[Sample](), Lock()

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[name, _labels(labels)] += amount  # type: ignore[assignment]

    def took(self, route: str, seconds: float) -> None:
        """Add a request to the histogram of its route."""
        name = "sizing_request_seconds"
        with self._lock:
            for bound in (*BUCKETS, float("inf")):
                if seconds <= bound:
                    text = "+Inf" if bound == float("inf") else f"{bound:g}"
                    self._counts[f"{name}_bucket", _labels({"route": route, "le": text})] += 1
            self._counts[f"{name}_sum", _labels({"route": route})] += seconds  # type: ignore[assignment]
            self._counts[f"{name}_count", _labels({"route": route})] += 1

    def leave(self) -> None:
        """Write the counts where the other workers find them."""
        if self.folder is not None:
            with self._lock:
                rows = [[name, labels, value] for (name, labels), value in self._counts.items()]
            write_whole(self.folder / f"metrics-{os.getpid()}.json", json.dumps(rows).encode())

    def text(self) -> str:
        """The counts of all workers in Prometheus' text format."""
        with self._lock:
            total = self._counts.copy()
        for file in self.folder.glob("metrics-*.json") if self.folder is not None else ():
            if file.name != f"metrics-{os.getpid()}.json":
                total.update({(name, labels): value for name, labels, value in json.loads(file.read_bytes())})
        lines: list[str] = []
        for name, (kind, words) in HELP.items():
            own = (name, *(f"{name}_{part}" for part in _PARTS))
            samples = sorted((key for key in total if key[0] in own), key=_in_order)
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
            lines += [f"{sample}{labels} {total[sample, labels]:.12g}" for sample, labels in samples]
        return "\n".join((*lines, f"# {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}", ""))


_PARTS = ("bucket", "count", "sum")


def _in_order(sample: Sample) -> tuple[str, str, float]:
    """By name and labels, the buckets of a histogram from the smallest."""
    name, labels = sample
    before, _, bound = labels.partition(',le="')
    return name, before, float(bound.rstrip('"}')) if bound else 0.0


def _labels(labels: dict[str, str]) -> str:
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{{{inside}}}" if inside else ""

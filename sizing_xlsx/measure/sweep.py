"""Many runs: each in a process of its own, results kept as they come, and what is missing on the next start.

On a GPU every run has a fresh process, so that no allocator state leaks from one to the next; traces share a process
per worker, as they leave nothing behind. A process that hangs or dies costs its run, not the sweep.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import results
from .backends import one_sentence, source
from .run import Run

TIMEOUT = 1800.0  # seconds a run may take before it counts as hung
DONE = ("ok", "oom")


class Worker:
    """A process that performs runs, one after another."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        # The package is found wherever it lies, also by a Python that it is not installed for.
        path = (str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH"))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sizing_xlsx.measure.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), **environment},
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self.said: list[str] = []
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            del self.said[:-50]

    def perform(self, run: Run, backend: str, options: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The row of a run; outcome "failed" when the process hangs or dies."""
        assert self.process.stdin is not None and self.process.stdout is not None
        asked = json.dumps({"run": run.as_row(), "backend": backend, "options": dict(options)})
        hung = threading.Event()

        def kill() -> None:
            hung.set()
            self.process.kill()

        timer = threading.Timer(timeout, kill)
        timer.start()
        try:
            with contextlib.suppress(OSError):
                self.process.stdin.write(asked + "\n")
                self.process.stdin.flush()
                for line in self.process.stdout:
                    row = _answer(line)
                    if row is not None:
                        return row
            status = self.process.wait()
            self.listener.join(1)  # its last words may still be on their way
        finally:
            timer.cancel()
        if hung.is_set():
            message = f"hung: stopped after {timeout:,.0f} seconds"
        elif status < 0:
            message = f"the process was killed by signal {-status}, most likely for this machine's memory"
        else:
            message = f"the process ended with status {status}: {_last(self.said)}"
        return unfinished(run, backend, message)

    def alive(self) -> bool:
        """Whether it can take another run."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End it now."""
        if self.alive():
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what it never read is still in the buffer
                    stream.close()


def _answer(line: str) -> dict[str, Any] | None:
    """The row in a line of a worker; None for all else that a process may print."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and "outcome" in row else None


def _last(said: Sequence[str]) -> str:
    lines = [line.strip() for line in said if line.strip()]
    return one_sentence(lines[-1]) if lines else "it said nothing"


def unfinished(run: Run, backend: str, message: str) -> dict[str, Any]:
    """The row of a run that gave none itself."""
    import datetime

    row = {
        "backend": backend,
        "figures": results.FIGURES[backend],
        "outcome": "failed",
        "message": message,
        "versions": results.versions(),
        "date": datetime.date.today().isoformat(),
    }
    return {**row, "source": source(run, row)}


def perform_all(
    runs: Sequence[Run],
    backend: str,
    options: Mapping[str, Any],
    *,
    workers: int = 1,
    timeout: float = TIMEOUT,
) -> Generator[tuple[Run, dict[str, Any]], None, None]:
    """Each run with its row, in the order in which they finish. Closing the iterator ends the processes."""
    waiting: queue.SimpleQueue[list[Run]] = queue.SimpleQueue()
    for same in [[run] for run in runs] if options.get("composition") else _alike(runs, backend):
        waiting.put(same)
    finished: queue.SimpleQueue[tuple[Run, dict[str, Any]]] = queue.SimpleQueue()
    active: list[Worker] = []
    stopped = threading.Event()
    environment = {"OMP_NUM_THREADS": "1"} if workers > 1 else {}
    once = backend == "cuda"  # a fresh process for each run

    def serve() -> None:
        worker: Worker | None = None
        while not stopped.is_set():
            try:
                same = waiting.get_nowait()
            except queue.Empty:
                break
            try:
                if worker is None or not worker.alive():
                    if worker is not None:
                        worker.stop()
                    worker = Worker(environment)
                    active.append(worker)
                    if stopped.is_set():
                        break
                row = worker.perform(same[0], backend, options, timeout)
            except Exception as error:  # no process could be started; nothing may keep the others waiting
                row = unfinished(same[0], backend, one_sentence(f"{type(error).__name__}: {error}"))
            for run in same:
                finished.put((run, row))
            if once and worker is not None:
                worker.stop()
        if worker is not None:
            worker.stop()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(min(workers, len(runs)))]
    for thread in threads:
        thread.start()
    try:
        for _ in runs:
            yield finished.get()
    finally:
        stopped.set()
        for worker in active:
            worker.process.kill()
        for thread in threads:  # each closes its own worker's pipes: two threads may not
            thread.join(5)


def _alike(runs: Sequence[Run], backend: str) -> list[list[Run]]:
    """Runs that differ in their name alone share one trace; a measurement is repeated."""
    if backend != "trace":
        return [[run] for run in runs]
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(json.dumps({**run.as_row(), "id": ""}), []).append(run)
    return list(groups.values())


def default_workers(backend: str) -> int:
    """Traces use every core, as far as memory allows for one model each; measuring takes the GPU alone."""
    return 1 if backend != "trace" else max(1, min(os.cpu_count() or 1, 8))


class Progress:
    """A line for each finished run, with the time that is left."""

    def __init__(self, total: int, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.say, self.clock = total, say, clock
        self.done, self.began = 0, clock()

    def finished(self, run: Run, row: Mapping[str, Any]) -> None:
        """Tell of a run."""
        self.done += 1
        left = (self.clock() - self.began) / self.done * (self.total - self.done)
        rest = f"; about {_duration(left)} left" if self.done < self.total else ""
        self.say(f"[{self.done}/{self.total}] {run.id}: {outcome_words(row)}{rest}")


def outcome_words(row: Mapping[str, Any]) -> str:
    """What came out, in a few words."""
    figures = [
        f"{row[key] / 1e9:,.4f} GB {word}"
        for key, word in (("peak_allocated_bytes", "allocated"), ("peak_reserved_bytes", "reserved"))
        if row.get(key)
    ]
    if row["outcome"] == "ok":
        return ", ".join(["ok", *figures])
    return ": ".join(filter(None, [{"oom": "out of memory"}.get(row["outcome"], row["outcome"]), row.get("message")]))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"

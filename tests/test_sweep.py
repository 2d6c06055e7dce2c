"""Many runs as a user starts them: every run gets a row whatever its process does, and what is wrong is one sentence.

Most tests run the real command and real worker processes on a machine made of a few small modules (`machine`): there
torch is a stub, and a run does what its id says ("ok…", "killed…", "hangs…"). The last ones use the real thing.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sizing_xlsx.cli import main
from sizing_xlsx.measure import backends, command, result_file, results, sweep
from sizing_xlsx.measure.result_file import NAME, ResultFile
from sizing_xlsx.measure.run import Run, make_run, model_folder, named_sweep

ROOT = Path(__file__).resolve().parent.parent
TINY = {
    "hidden_size_override": 32, "layer_count_override": 2, "attention_heads_override": 2, "kv_heads_override": 1,
    "head_dimension_override": 16, "mlp_width_override": 64, "vocabulary_size_override": 64, "batch_size": 1,
    "sequence_length": 16,
}  # fmt: skip

# What a run does on the machine of the tests, by how its id begins; and which packages the machine lacks.
SITE = """
import os, sys

sys.modules.update(dict.fromkeys(filter(None, os.environ.get("HIDDEN", "").split(","))))  # as if not installed

def play():
    import json, signal, time
    from sizing_xlsx.measure import backends
    from sizing_xlsx.measure.models import CannotRun

    def results(run, backend, options):
        line = {"id": run.id, "process": os.getpid(), "threads": os.environ.get("OMP_NUM_THREADS"), **options}
        with open(os.environ["PERFORMED"], "a") as file:
            file.write(json.dumps(line) + "\\n")
        name = run.id.lstrip("=")
        if name.startswith("killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        if name.startswith("hangs"):
            time.sleep(600)
        if name.startswith("exits"):
            print("a last word", file=sys.stderr, flush=True)
            os._exit(3)
        if name.startswith("slow"):
            time.sleep(1.5)
        if name.startswith("noisy"):
            print("{} is JSON, and no answer")
            os.write(1, b"Loading checkpoint shards: 100%\\n")
        if name.startswith("raises"):
            raise RuntimeError("two\\nlines")
        if name.startswith("cannot"):
            raise CannotRun("bitsandbytes is not installed")
        if name.startswith("oom"):
            return {"outcome": "oom", "message": "CUDA out of memory", "allocator_retries": 1}
        return {"outcome": "ok", "peak_allocated_bytes": 10**9 + run["batch_size"], "peak_reserved_bytes": 2 * 10**9}

    backends._results = results

if "PERFORMED" in os.environ and "sizing_xlsx.measure.worker" in sys.orig_argv:
    if "NOISE" in os.environ:
        print("a package that greets", flush=True)
    play()
"""
TORCH = """
import types
__version__ = "9.9"
cuda = types.SimpleNamespace(is_available=lambda: False)
"""


class Machine:
    """A folder to work in, and what is installed there."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], log: Path) -> None:
        self.folder, self.capsys, self.log = folder, capsys, log

    def sweep(self, *ids: str, name: str = "runs.toml", **fields: Any) -> str:
        """A sweep file with these runs, each of its own batch size."""
        text = "[defaults]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())
        for at, run in enumerate(ids, 1):
            text += f"[[run]]\nid = {json.dumps(run)}\nbatch_size = {at}\n"
        (self.folder / name).write_text(text, encoding="utf-8")
        return str(self.folder / name)

    def verify(self, *words: str) -> SimpleNamespace:
        """`sizing-xlsx verify`: its exit status and what it printed."""
        try:
            status = main(["verify", *words])
        except SystemExit as stop:
            status = int(stop.code or 0)
        said = self.capsys.readouterr()
        return SimpleNamespace(status=status, out=said.out, err=said.err, lines=said.err.splitlines())

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """The same as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "sizing_xlsx", "verify", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder, **options,
        )  # fmt: skip

    @property
    def performed(self) -> list[dict[str, Any]]:
        """What workers performed, in their order."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def rows(self, name: str = NAME) -> list[dict[str, str]]:
        """The rows of a file of results."""
        with (self.folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def outcomes(self, name: str = NAME) -> dict[str, str]:
        """id -> outcome."""
        return {row["id"]: row["outcome"] for row in self.rows(name)}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Machine:
    """A machine with a stub of torch, in an empty folder."""
    installed, folder = tmp_path / "installed", tmp_path / "here"
    folder.mkdir()
    for name, text in {
        "sitecustomize.py": SITE,
        "torch/__init__.py": TORCH,
        "torch/utils/__init__.py": "",
        "torch/utils/backend_registration.py": "def _setup_privateuseone_for_python_backend(): pass\n",
        "transformers/__init__.py": "",
        "peft/__init__.py": "",
        "psutil/__init__.py": "",
    }.items():
        path = installed / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(installed), str(ROOT))))
    monkeypatch.setenv("PERFORMED", str(tmp_path / "performed"))
    monkeypatch.chdir(folder)

    torch, registration = ModuleType("torch"), ModuleType("torch.utils.backend_registration")
    exec(TORCH, torch.__dict__)
    registration._setup_privateuseone_for_python_backend = None  # type: ignore[attr-defined]
    utilities = ModuleType("torch.utils")
    utilities.backend_registration = registration  # type: ignore[attr-defined]
    stubs = {"torch": torch, "torch.utils": utilities, "torch.utils.backend_registration": registration}
    stubs |= {name: ModuleType(name) for name in ("transformers", "peft", "psutil")}
    for name, module in stubs.items():
        monkeypatch.setitem(sys.modules, name, module)
    return Machine(folder, capsys, tmp_path / "performed")


def gone(process: int) -> bool:
    """Whether a process ends within some seconds."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                return True
            time.sleep(0.05)
            continue
        return True
    return False


# -- every run gets a row


def test_a_sweep_goes_on_whatever_one_of_its_processes_does(machine: Machine) -> None:
    ids = ["ok1", "killed", "ok2", "exits", "ok3", "hangs", "ok4", "noisy", "raises", "cannot", "oom"]
    done = machine.verify("--sweep", machine.sweep(*ids), "--workers", "2", "--timeout", "6")
    assert done.status == 1, "some runs failed"
    rows = {row["id"]: row for row in machine.rows()}
    assert list(rows) == ids, "in the order of the sweep, whichever finished first"
    assert {key: row["outcome"] for key, row in rows.items()} == {
        **dict.fromkeys(["ok1", "ok2", "ok3", "ok4", "noisy"], "ok"),
        **dict.fromkeys(["killed", "exits", "hangs", "raises"], "failed"),
        "cannot": "not run",
        "oom": "oom",
    }
    messages = {key: row["message"] for key, row in rows.items() if row["message"]}
    assert messages == {
        "killed": "the process was killed by signal 9, most likely for this machine's memory",
        "exits": "the process ended with status 3: a last word",
        "hangs": "hung: stopped after 6 seconds",
        "raises": "RuntimeError: two lines",
        "cannot": "bitsandbytes is not installed",
        "oom": "CUDA out of memory",
    }
    for at, name in enumerate(ids, 1):
        assert rows[name]["batch_size"] == str(at) and rows[name]["backend"] == "trace"
        assert rows[name]["figures"] == "traced" and rows[name]["source"].startswith("traced: no GPU, for NVIDIA H100")
    assert rows["ok3"]["peak_allocated_bytes"] == "1000000005" and rows["killed"]["peak_allocated_bytes"] == ""
    assert [run["id"] for run in machine.performed].count("killed") == 1, "it is not tried again"


def test_all_settled_is_status_0_and_the_table_shows_each_run(machine: Machine) -> None:
    done = machine.verify("--sweep", machine.sweep("ok", "oom", "cannot"), "--workers", "1")
    assert done.status == 0
    table = done.out.splitlines()
    assert table[0].split() == [
        "id",
        "outcome",
        "allocated",
        "GB",
        "predicted",
        "error",
        "reserved",
        "GB",
        "at",
        "most",
    ]
    assert [line.split()[0] for line in table[1:4]] == ["ok", "oom", "cannot"]
    assert "1.0000" in table[1] and "2.0000" in table[1] and "%" in table[1]
    assert "%" not in table[2] + table[3], "there is no error of what was not seen"
    assert table[-1] == f"Results: {NAME}"


def test_each_finished_run_has_a_line_of_progress(machine: Machine) -> None:
    done = machine.verify("--sweep", machine.sweep("ok", "oom"), "--workers", "1")
    first, last = done.lines
    assert first.startswith("[1/2] ok: ok, 1.0000 GB allocated, 2.0000 GB reserved; about ")
    assert first.endswith(" s left")
    assert last == "[2/2] oom: out of memory: CUDA out of memory"


def test_traces_share_a_process_and_a_killed_one_is_replaced(machine: Machine) -> None:
    machine.verify("--sweep", machine.sweep("ok1", "ok2", "killed", "ok3", "ok4"), "--workers", "1")
    processes = [run["process"] for run in machine.performed]
    assert processes[0] == processes[1] == processes[2] != processes[3] == processes[4]
    assert all(gone(process) for process in set(processes))


def test_on_a_gpu_every_run_has_a_process_of_its_own(machine: Machine) -> None:
    sys.modules["torch"].cuda.is_available = lambda: True
    done = machine.verify("--sweep", machine.sweep("ok1", "ok2", "ok3"), "--backend", "cuda")
    assert done.status == 0 and len({run["process"] for run in machine.performed}) == 3
    assert [row["figures"] for row in machine.rows()] == ["measured"] * 3


def test_identical_runs_share_one_trace_and_are_each_measured(machine: Machine) -> None:
    (machine.folder / "same.csv").write_text("id,batch_size\nok1,4\nok2,4\nok3,5\n")
    assert machine.verify("--sweep", "same.csv", "--workers", "1").status == 0
    assert [run["id"] for run in machine.performed] == ["ok1", "ok3"]
    assert [row["peak_allocated_bytes"] for row in machine.rows()] == ["1000000004", "1000000004", "1000000005"]
    assert machine.verify("--sweep", "same.csv", "--backend", "cpu").status == 0
    assert [run["id"] for run in machine.performed[2:]] == ["ok1", "ok2", "ok3"]


def test_identical_runs_have_a_picture_each(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", ModuleType("matplotlib"))
    (machine.folder / "same.csv").write_text("id,batch_size\nok1,4\nok2,4\n")
    assert machine.verify("--sweep", "same.csv", "--workers", "1", "--composition", "pictures").status == 0
    assert [(run["id"], run["composition"]) for run in machine.performed] == [("ok1", "pictures"), ("ok2", "pictures")]


def test_several_workers_compute_in_one_thread_each(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # the suite's own
    machine.verify("--sweep", machine.sweep("ok1", "ok2"), "--workers", "2")
    machine.verify("--sweep", machine.sweep("ok1", "ok2"), "--workers", "1", "--again")
    assert [run["threads"] for run in machine.performed] == ["1", "1", None, None]


def test_what_a_package_prints_as_it_starts_is_no_answer(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOISE", "1")
    process = machine.start("--sweep", machine.sweep("ok1", "ok2"), "--workers", "1")
    try:
        process.wait(timeout=15)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0 and machine.outcomes() == {"ok1": "ok", "ok2": "ok"}


def test_a_worker_finds_the_package_from_any_folder_and_by_any_python(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python build.py verify` of a Python that has torch and not this package."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "installed"))
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from sizing_xlsx.cli import main; sys.exit(main())"
    bare = getattr(sys, "_base_executable", sys.executable)
    done = subprocess.run(
        [bare, "-c", script, "verify", "--sweep", machine.sweep("ok1"), "--workers", "1"],
        cwd=machine.folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, machine.outcomes()) == (0, {"ok1": "ok"}), done.stderr


# -- workers that break the rules


def settled(runs: Sequence[Run], seconds: float = 15, **options: Any) -> list[tuple[str, dict[str, Any]]]:
    """What perform_all gives, in the order of the runs; it must end within some seconds, and without an exception."""
    found: list[tuple[Run, dict[str, Any]]] = []
    errors: list[BaseException] = []

    def collect() -> None:
        try:
            found.extend(sweep.perform_all(runs, "trace", {}, **options))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"the sweep waits for ever; {len(found)} of {len(runs)} runs are settled"
    assert not errors, f"{errors[0]!r}"
    order = [run.id for run in runs]
    return [(run.id, row) for run, row in sorted(found, key=lambda pair: order.index(pair[0].id))]


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a script in place of Python, so that every worker is this."""

    def put(script: str) -> None:
        path = tmp_path / "worker"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(sweep, "sys", SimpleNamespace(executable=str(path)))

    return put


TWO = [make_run("lora", {"batch_size": at}, id=f"run{at}") for at in (1, 2)]


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "the process ended with status 0: it said nothing"),
        ("echo why >&2; exit 7", "the process ended with status 7: why"),
        ("exec <&-; sleep 0.2; exit 7", "the process ended with status 7: it said nothing"),
        ("read line; exit 7", "the process ended with status 7: it said nothing"),
        ('read line; printf \'{"outcome": "o\'; exit 7', "the process ended with status 7"),
        ("read line; kill -9 $$", "the process was killed by signal 9, most likely for this machine's memory"),
        ("read line; kill -11 $$", "the process was killed by signal 11"),
        ("read line; exec >&-; exec sleep 30", "hung: stopped after 2 seconds"),
        ("read line; echo; echo null; echo no JSON; echo []; exit 7", "the process ended with status 7"),
    ],
)
def test_a_process_that_gives_no_answer_costs_its_run(worker: Any, script: str, said: str) -> None:
    worker(script)
    rows = settled(TWO, timeout=2)
    assert [name for name, _ in rows] == ["run1", "run2"]
    for _, row in rows:
        assert row["outcome"] == "failed" and row["message"].startswith(said)
        assert row["backend"] == "trace" and row["figures"] == "traced" and row["date"] and row["versions"]


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_process_that_cannot_be_started_costs_its_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sweep, "sys", SimpleNamespace(executable=str(tmp_path / "no python")))
    assert [row["outcome"] for _, row in settled(TWO)] == ["failed", "failed"]


def test_what_a_process_says_without_end_is_cut(worker: Any) -> None:
    worker("read line; yes abcdefgh | head -c 100000 | tr '\\n' ' ' >&2; exit 7")
    message = settled(TWO[:1])[0][1]["message"]
    assert len(message) < 500 and message.endswith("…")


def test_closing_the_iterator_ends_the_processes(machine: Machine) -> None:
    runs = [make_run("lora", {"batch_size": at + 1}, id=name) for at, name in enumerate(["ok", "hangs1", "hangs2"])]
    going = sweep.perform_all(runs, "trace", {}, workers=2)
    assert next(going)[0].id == "ok"
    while len(machine.performed) < 3:
        time.sleep(0.02)
    going.close()
    assert all(gone(run["process"]) for run in machine.performed)


def test_a_sweep_of_no_runs_is_over_at_once() -> None:
    assert list(sweep.perform_all([], "trace", {})) == []


# -- Ctrl-C, and going on


@pytest.mark.parametrize("whole_group", [False, True], ids=["to the command", "from a terminal"])
def test_ctrl_c_keeps_what_is_done_and_the_next_start_goes_on(machine: Machine, whole_group: bool) -> None:
    path = machine.sweep("ok1", "ok2", "slow3", "ok4")
    process = machine.start("--sweep", path, "--workers", "1", start_new_session=True)
    assert process.stderr is not None
    said = [process.stderr.readline(), process.stderr.readline()]
    assert said[1].startswith("[2/4] ok2: ok")
    os.killpg(process.pid, signal.SIGINT) if whole_group else process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=20)
    assert process.returncode == 130 and out == ""
    assert rest == f"stopped; 2 of 4 results are in {NAME}, and the same command goes on from there\n"
    assert machine.outcomes() == {"ok1": "ok", "ok2": "ok"}
    assert all(gone(run["process"]) for run in machine.performed)
    assert [path.name for path in machine.folder.iterdir() if path.name.startswith(".")] == [], "no draft is left"

    before = len(machine.performed)
    done = machine.verify("--sweep", path, "--workers", "1")
    assert done.status == 0 and [run["id"] for run in machine.performed[before:]] == ["slow3", "ok4"]
    assert done.lines[0] == f"2 of 4 runs are in {NAME} already; --again repeats them"
    assert done.lines[1].startswith("[1/2] slow3: ok") and len(done.out.splitlines()) == 8
    assert list(machine.outcomes()) == ["ok1", "ok2", "slow3", "ok4"]


def test_ctrl_c_before_the_first_run_is_as_quiet(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing torch takes seconds, in which a user may think better of it."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "ready", interrupted)
    try:
        done = machine.verify("--batch-size", "4")
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C reaches the user as a traceback")
    assert done.status == 130 and len(done.lines) <= 1 and list(machine.folder.iterdir()) == []


def test_a_second_start_repeats_what_failed_or_could_not_run(machine: Machine) -> None:
    path = machine.sweep("ok", "oom", "raises", "cannot", "killed")
    assert machine.verify("--sweep", path, "--workers", "1").status == 1
    before = len(machine.performed)
    assert machine.verify("--sweep", path, "--workers", "1").status == 1
    assert [run["id"] for run in machine.performed[before:]] == ["raises", "cannot", "killed"]
    assert len(machine.rows()) == 5


def test_nothing_missing_performs_nothing_and_shows_the_same_table(machine: Machine) -> None:
    path = machine.sweep("ok", "oom")
    first = machine.verify("--sweep", path, "--workers", "1")
    content = (machine.folder / NAME).read_bytes()
    again = machine.verify("--sweep", path, "--workers", "1")
    assert again.out == first.out and again.status == 0 and len(machine.performed) == 2
    assert again.lines == [f"2 of 2 runs are in {NAME} already; --again repeats them"]
    assert (machine.folder / NAME).read_bytes() == content


def test_again_repeats_every_run(machine: Machine) -> None:
    path = machine.sweep("ok1", "ok2")
    machine.verify("--sweep", path, "--workers", "1")
    machine.verify("--sweep", path, "--workers", "1", "--again")
    assert [run["id"] for run in machine.performed] == ["ok1", "ok2", "ok1", "ok2"] and len(machine.rows()) == 2


def test_a_run_of_the_same_name_with_another_field_is_repeated(machine: Machine) -> None:
    machine.verify("--sweep", machine.sweep("ok1", "ok2"), "--workers", "1")
    machine.verify("--sweep", machine.sweep("ok1", "ok2", sequence_length=64), "--workers", "1")
    assert len(machine.performed) == 4 and [row["sequence_length"] for row in machine.rows()] == ["64", "64"]


def test_each_backend_has_rows_of_its_own(machine: Machine) -> None:
    path = machine.sweep("ok")
    machine.verify("--sweep", path)
    machine.verify("--sweep", path, "--backend", "cpu")
    assert [(row["backend"], row["figures"]) for row in machine.rows()] == [("trace", "traced"), ("cpu", "counted")]
    assert machine.rows()[1]["source"].startswith("counted: this machine's CPU, ")


# -- the file of results


def test_rows_of_other_sweeps_and_own_columns_stay(machine: Machine) -> None:
    (machine.folder / NAME).write_text(
        "id,backend,outcome,my note\nelse,cuda,ok,measured by me\nok2,trace,failed,\n", encoding="utf-8"
    )
    machine.verify("--sweep", machine.sweep("ok1", "ok2"), "--workers", "1")
    rows = machine.rows()
    assert [(row["id"], row["backend"], row["outcome"]) for row in rows] == [
        ("else", "cuda", "ok"), ("ok1", "trace", "ok"), ("ok2", "trace", "ok"),
    ]  # fmt: skip
    assert rows[0]["my note"] == "measured by me" and list(rows[0])[:3] == ["id", "job", "backend"]


def test_an_empty_file_takes_results(machine: Machine) -> None:
    (machine.folder / NAME).touch()
    assert machine.verify("--sweep", machine.sweep("ok")).status == 0 and machine.outcomes() == {"ok": "ok"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name,price\napple,3\n", "is no file of results: it has no columns id, backend and outcome"),
        (b"id,backend\na,trace\n", "is no file of results"),
        (b"Dear diary,\n", "is no file of results"),
        (b"id;backend;outcome\na;trace;ok\n", "is no file of results"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "is not UTF-8 text; name another file for the results"),
        ("id,backend,outcome\n".encode("utf-16"), "is not UTF-8 text"),
        (b"id,backend,outcome\na,trace\n", "line 2 has not one cell for each column"),
        (b"id,backend,outcome\na,trace,ok,more\n", "line 2 has not one cell for each column"),
        pytest.param(b"id,backend,outcome\n" + b"a" * 200_000 + b",trace,ok\n", "is not CSV", id="a long cell"),
    ],
)
def test_a_file_that_is_something_else_is_refused_and_left_alone(machine: Machine, content: bytes, said: str) -> None:
    path = machine.folder / "my.csv"
    path.write_bytes(content)
    done = machine.verify("--sweep", machine.sweep("ok"), "--csv", "my.csv")
    assert done.status == 2 and len(done.lines) == 1
    assert done.lines[0].startswith("sizing-xlsx: my.csv") and said in done.lines[0]
    assert path.read_bytes() == content and machine.performed == []


def test_no_cell_begins_as_a_formula_does(machine: Machine) -> None:
    ids = ["=1+1", "+ok", "-ok", "@SUM(A1)", "ok =2"]
    done = machine.verify("--sweep", machine.sweep(*ids), "--workers", "1")
    assert done.status == 0
    assert [row["id"] for row in machine.rows()] == ["'=1+1", "'+ok", "'-ok", "'@SUM(A1)", "ok =2"]
    for cells in csv.reader((machine.folder / NAME).read_text(encoding="utf-8").splitlines()):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)


@pytest.mark.parametrize("name", ["=1+1", "two  spaces", " edges "])
def test_a_run_is_known_again_by_any_name(machine: Machine, name: str) -> None:
    path = machine.sweep(name)
    machine.verify("--sweep", path)
    machine.verify("--sweep", path)
    assert len(machine.performed) == 1, "the second start has nothing to do"
    machine.verify("--sweep", path, "--again")
    assert len(machine.rows()) == 1


def test_a_row_that_cannot_be_written_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ResultFile(tmp_path / NAME)
    file.put(TWO[0], {"backend": "trace", "outcome": "ok"})
    before = (tmp_path / NAME).read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(result_file.os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        file.put(TWO[1], {"backend": "trace", "outcome": "ok"})
    assert (tmp_path / NAME).read_bytes() == before and [path.name for path in tmp_path.iterdir()] == [NAME]


def test_two_commands_may_write_the_same_file_at_a_time(tmp_path: Path) -> None:
    """A GPU measures in one window and a trace runs in another, both with the file's usual name."""
    one, other = ResultFile(tmp_path / NAME), ResultFile(tmp_path / NAME)
    one.put(TWO[0], {"backend": "cuda", "outcome": "ok"})
    other.put(TWO[0], {"backend": "trace", "outcome": "ok"})
    one.put(TWO[1], {"backend": "cuda", "outcome": "ok"})
    kept = ResultFile(tmp_path / NAME).rows
    assert set(kept) == {("run1", "lora", "cuda"), ("run1", "lora", "trace"), ("run2", "lora", "cuda")}


def test_every_column_is_there_and_in_its_order(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / NAME)
    for run in (TWO[0], make_run("full", {}), make_run("training", {})):
        file.put(run, {"backend": "trace", "outcome": "ok", "peak_allocated_bytes": 5})
    with (tmp_path / NAME).open(newline="") as text:
        header, *rows = csv.reader(text)
    assert header == list(result_file.columns()) and all(len(row) == len(header) for row in rows)
    assert header[:3] == ["id", "job", "backend"] and len(set(header)) == len(header)
    assert set(results.COLUMNS) < set(header)


# -- words


def test_progress_says_how_long_it_will_take() -> None:
    now, lines = [0.0], []
    progress = sweep.Progress(4, lines.append, lambda: now[0])
    for seconds, row in (
        (30, {"outcome": "ok", "peak_allocated_bytes": 12_796_600_000, "peak_reserved_bytes": 14_493_400_000}),
        (3600, {"outcome": "oom", "message": "tried to allocate 2 GiB"}),
        (60, {"outcome": "not run", "message": "peft is not installed"}),
        (1, {"outcome": "failed", "message": "RuntimeError: no"}),
    ):
        now[0] += seconds
        progress.finished(TWO[0], row)
    assert lines == [
        "[1/4] run1: ok, 12.7966 GB allocated, 14.4934 GB reserved; about 1 min 30 s left",
        "[2/4] run1: out of memory: tried to allocate 2 GiB; about 1 h 0 min left",
        "[3/4] run1: not run: peft is not installed; about 20 min 30 s left",
        "[4/4] run1: failed: RuntimeError: no",
    ]


def test_the_table_is_as_wide_as_its_longest_name_up_to_40() -> None:
    runs = [make_run("lora", {}, id=name) for name in ("a", "a longer name", "x" * 60)]
    lines = command.table(runs, {run.id: {"outcome": "ok"} for run in runs}).splitlines()
    assert lines[1].startswith("a ") and lines[2].startswith("a longer name ") and lines[3].startswith("x" * 40 + " ")
    assert len({line.index("ok") for line in lines[1:4]}) == 1


def test_the_table_holds_the_formulas_against_what_was_seen() -> None:
    (run, *_) = named_sweep("lora")
    row = {"outcome": "ok", "peak_allocated_bytes": "12796600000", "peak_reserved_bytes": 14_493_400_000}
    line = command.table([run], {"ft01": row}).splitlines()[1].split()
    said = command.predicted(run)
    assert said is not None and abs(said[0] / 12.7966 - 1) < 0.002
    assert line == [
        "ft01",
        "ok",
        "12.7966",
        f"{said[0]:.4f}",
        f"{said[0] / 12.7966 - 1:+.2%}",
        "14.4934",
        f"{said[1]:.1f}",
    ]
    every = command.predicted(make_run("full", {}))  # all parameters and their state beside the rows
    assert every is not None and 1.1e9 * 16 / 1e9 < every[0] < every[1]
    assert command.predicted(make_run("lora", {"config": str(model_folder("google/gemma-2-9b"))})) is None
    assert command.predicted(make_run("lora", {"compute_precision": "fp32"})) is None, "there is no traced list of it"


def test_a_message_is_one_line_of_bearable_length() -> None:
    assert backends.one_sentence("a\n  b\tc") == "a b c"
    assert len(backends.one_sentence("x" * 5000)) == 400 and backends.one_sentence("x" * 5000).endswith("…")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"figures": "traced"}, "traced: no GPU, for NVIDIA H100 SXM5 80GB, torch 2.13.0, peft 0.21.0, 2026-08-17"),
        ({"figures": "counted"}, "counted: this machine's CPU, torch 2.13.0, peft 0.21.0, 2026-08-17"),
        ({"figures": "measured", "card": "NVIDIA L4"}, "measured: NVIDIA L4, torch 2.13.0, peft 0.21.0, 2026-08-17"),
    ],
)
def test_a_source_never_takes_a_trace_for_a_measurement(row: dict[str, str], said: str) -> None:
    more = {"versions": "Python 3.11, torch 2.13.0, peft 0.21.0, accelerate 1.0", "date": "2026-08-17"}
    assert backends.source(TWO[0], {**row, **more}) == said


def test_memory_that_runs_out_and_what_nobody_expected_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, said in (
        (MemoryError(), "this machine ran out of memory"),
        (KeyError("x"), "KeyError: 'x'"),
        (AssertionError(), "AssertionError:"),
    ):

        def fail(*_: Any, error: BaseException = error) -> dict[str, Any]:
            raise error

        monkeypatch.setattr(backends, "_results", fail)
        row = backends.perform(TWO[0], "trace", {})
        assert row["outcome"] == "failed" and row["message"] == said and row["seconds"] >= 0


def test_measuring_takes_the_gpu_alone_and_traces_every_core() -> None:
    assert sweep.default_workers("cuda") == sweep.default_workers("cpu") == 1
    assert 1 <= sweep.default_workers("trace") <= (os.cpu_count() or 1)


# -- which runs


def asked(*words: str) -> list[Run]:
    """The runs that these words ask for."""
    seen: list[Run] = []

    class Stop(Exception):
        pass

    def stop(options: Any) -> int:
        seen.extend(command.runs_asked(options))
        raise Stop

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Stop):
        patch.setattr(command, "verify", stop)
        main(["verify", *words])
    return seen


def test_a_run_by_its_fields() -> None:
    (run,) = asked("--batch-size", "4", "--lora-dropout", "On", "--gpu-capacity-override-gb", "79.5", "--steps", "5")
    assert (run["batch_size"], run["lora_dropout"], run["gpu_capacity_override_gb"], run["steps"]) == (4, "On", 79.5, 5)
    (run,) = asked("--job", "training", "--parameter-storage", "bf16")
    assert run.job == "training" and run["parameter_storage"] == "bf16"


def test_every_field_of_every_job_is_an_option() -> None:
    for job, values in (("lora", {}), ("full", {"parameter_storage": "bf16"}), ("training", {"batch_size": 3})):
        run = make_run(job, values)
        words = [
            word
            for key, value in {**run.inputs, **run.settings}.items()
            if value not in (None, "")
            for word in (f"--{key.replace('_', '-')}", str(value))
        ]
        assert asked("--job", job, *words) == [run]


def test_only_picks_runs_of_a_sweep_in_the_order_asked() -> None:
    assert [run.id for run in asked("--sweep", "lora", "--only", "ft05, ft01")] == ["ft05", "ft01"]
    assert [run.id for run in asked("--sweep", "training", "--only", "tr24,")] == ["tr24"]
    assert len(asked("--sweep", "lora")) == 25 and len(asked("--sweep", "training")) == 24


def test_only_names_a_run_once() -> None:
    assert [run.id for run in asked("--sweep", "lora", "--only", "ft01,ft01")] == ["ft01"]


def test_only_picks_runs_whose_ids_were_made(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[[run]]\nid = "r"\nbatch_size = [1, 2]\nlora_rank = [4, 8]\n[[run]]\nbatch_size = 64\n')
    runs = asked("--sweep", str(path))
    assert len(runs) == 5
    for run in runs:
        assert asked("--sweep", str(path), "--only", run.id) == [run]
    assert asked("--sweep", str(path), "--only", f"{runs[0].id},{runs[4].id}") == [runs[0], runs[4]]


# -- bad input


FIELDS = ["--batch-size", "4"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--backend", "cuda"],
            "--backend is cuda, and torch 9.9 finds no CUDA GPU here; run it on a machine with one",
        ),
        (["--backend", "gpu"], "invalid choice: 'gpu'"),
        (["--sweep", "lorra"], "lorra is neither a file nor a named sweep; it must be lora or training, or a .toml"),
        (["--sweep", "bad.toml"], "bad.toml, run 1: batchsize is no field of a lora run; did you mean batch_size?"),
        (["--sweep", "broken.toml"], "broken.toml is not TOML: "),
        (["--sweep", "folder"], "folder is a folder; a sweep is a .toml or .csv file"),
        (["--sweep", "lora", "--only", "ft99"], "--only is 'ft99'; the sweep's runs are ft01, ft02"),
        (["--sweep", "lora", "--only", "ft01,ft99"], "--only is 'ft01,ft99'; the sweep's runs are"),
        (["--sweep", "lora", "--only", ""], "--only is ''; the sweep's runs are"),
        (["--sweep", "lora", "--only", ","], "--only is ','; the sweep's runs are"),
        (["--only", "ft01", *FIELDS], "--only"),
        (["--sweep", "lora", "--job", "training"], "--job"),
        (["--sweep", "lora", "--batch-size", "4"], "--batch-size is given beside --sweep lora; write it into a sweep"),
        (["--workers", "0"], "--workers is 0; it must be 1 to 64"),
        (["--workers", "65"], "--workers is 65; it must be 1 to 64"),
        (["--workers", "two"], "argument --workers: invalid int value: 'two'"),
        (["--timeout", "0"], "--timeout is 0; it must be a number of seconds above 0"),
        (["--timeout", "-5"], "--timeout is -5; it must be a number of seconds above 0"),
        (["--timeout", "nan"], "--timeout is nan; it must be a number of seconds above 0"),
        (["--timeout", "inf"], "--timeout is inf; it must be"),
        (["--timeout", "1e12"], "--timeout is 1e+12; it must be"),
        (["--batch-size", "0"], "batch_size is 0; it must be a whole number from 1 to 65,536"),
        (["--batch-size", "many"], "batch_size is 'many'; it must be a whole number"),
        (["--no-such-field", "1"], "unrecognized arguments: --no-such-field 1"),
        (["--batch-size"], "argument --batch-size: expected one argument"),
        (["--lora-rank", "8", "--job", "full"], "lora_rank is no field of a full run"),
        (["--parameter-storage", "bf16"], "parameter_storage is no field of a lora run"),
        (["--base-model", "Tiny"], "base_model is 'Tiny'; it must be a model of the presets; did you mean"),
        (["--gpu-choice", "RTX"], "gpu_choice is 'RTX'; it must be one of the"),
        (["--config", "folder"], "folder/config.json"),
        (["--config", "nowhere"], "nowhere"),
        (["--config", "no-json.json"], "no-json.json', which is not JSON"),
        (["--config", "no-type.json"], "no-type.json', which has no model_type; give the config.json of a model"),
        (["--backend", "cpu", "--composition", "pictures"], "--composition is given with --backend cpu; it needs"),
        (["--csv", "nowhere/out.csv"], "nowhere"),
        (["--csv", "no-json.json/out.csv"], "no-json.json/out.csv"),
        (["--csv", "folder"], "folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_sentence_before_anything_runs(machine: Machine, words: list[str], said: str) -> None:
    for name, text in {
        "bad.toml": "[[run]]\nbatchsize = 4\n",
        "broken.toml": "[[run]\n",
        "no-json.json": "{'model_type': 'llama'}",
        "no-type.json": '{"hidden_size": 64}',
    }.items():
        (machine.folder / name).write_text(text)
    (machine.folder / "folder").mkdir()
    before = sorted(machine.folder.rglob("*"))
    done = machine.verify(*words)
    assert (done.status, done.out) == (2, "")
    assert len(done.lines) == 1 and done.lines[0].startswith("sizing-xlsx: ") and said in done.lines[0]
    assert sorted(machine.folder.rglob("*")) == before, "nothing is written"
    assert machine.performed == [], "nothing has run"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(machine: Machine) -> None:
    locked = machine.folder / "locked"
    locked.mkdir(mode=0o500)
    done = machine.verify("--csv", "locked/out.csv", *FIELDS)
    assert done.status == 2 and len(done.lines) == 1 and "locked" in done.lines[0] and machine.performed == []


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [
        ("torch", ["--batch-size", "4"], "measure"),
        ("torch", ["--backend", "cuda"], "measure"),
        ("transformers", ["--backend", "cpu"], "measure"),
        ("peft", ["--sweep", "lora"], "measure"),
        ("psutil", ["--backend", "cpu"], "measure"),
        ("matplotlib", ["--composition", "pictures"], "measure"),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, package: str, words: list[str], extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # what `import` then says is that it is not installed
    monkeypatch.setenv("HIDDEN", package)
    done = machine.verify(*words)
    assert done.status == 2 and len(done.lines) == 1
    assert done.lines[0].startswith(f"sizing-xlsx: {package} is not installed, and ")
    assert f"pip install 'sizing-xlsx[{extra}]'" in done.lines[0]
    assert list(machine.folder.iterdir()) == [] and machine.performed == []


def test_a_package_that_is_broken_is_not_called_missing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise ImportError("libcudart.so.12: cannot open shared object file")

    monkeypatch.setattr(command.models.importlib, "import_module", broken)
    done = machine.verify(*FIELDS)
    assert done.status == 2 and len(done.lines) == 1
    assert "torch is installed and cannot be imported: libcudart.so.12: cannot open" in done.lines[0]


def test_a_torch_that_is_too_old_to_trace_is_told_so(machine: Machine) -> None:
    del sys.modules["torch.utils.backend_registration"]._setup_privateuseone_for_python_backend  # type: ignore[attr-defined]
    done = machine.verify(*FIELDS)
    assert done.status == 2 and len(done.lines) == 1
    assert "torch is 9.9, which takes no backend written in Python; --backend trace needs torch 2.10" in done.lines[0]


# -- the real thing: tiny models, real processes


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SimpleNamespace]:
    """Two sweeps on the real torch, at a time, where bitsandbytes is not installed: by backend, what came of them."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    (folder / "unknown.json").write_text('{"model_type": "no_such_family", "hidden_size": 64}')
    tiny = "".join(f"{key} = {value}\n" for key, value in TINY.items())
    of_an_encoder = "".join(
        f"{key} = {value}\n" for key, value in TINY.items() if not key.startswith(("kv_heads", "head_dimension"))
    )
    (folder / "cpu.toml").write_text(
        f"""[defaults]
        [[run]]\nid = "8-bit"\nbase_storage_format = "int8 LLM.int8 (bitsandbytes)"\n{tiny}
        [[run]]\nid = "4-bit"\nbase_storage_format = "nf4 / fp4, block 64, no double quant"\n{tiny}
        [[run]]\nid = "too large"\nhidden_size_override = 1000000\nvocabulary_size_override = 10000000
        layer_count_override = 1\nattention_heads_override = 8\nkv_heads_override = 8\nhead_dimension_override = 64
        [[run]]\nid = "unknown family"\nconfig = "unknown.json"
        [[run]]\nid = "too many layers"\nadapter_layers = 3\n{tiny}
        [[run]]\nid = "lora"\n{tiny}
        [[run]]\nid = "full"\njob = "full"\n{tiny}
        [[run]]\nid = "training"\njob = "training"\n{of_an_encoder}
        """.replace("\n        ", "\n"),
        encoding="utf-8",
    )
    (folder / "trace.toml").write_text(
        f'[defaults]\n{tiny}\n[[run]]\nid = "one"\n[[run]]\nid = "same"\n'
        '[[run]]\nid = "4-bit"\nbase_storage_format = "nf4 / fp4, block 64, no double quant"\n'
        '[[run]]\nid = "on a tiny card"\ngpu_capacity_override_gb = 0.75\n',
        encoding="utf-8",
    )
    environment = {**os.environ, "HIDDEN": "bitsandbytes"}
    environment["PYTHONPATH"] = os.pathsep.join((str(folder), str(ROOT)))
    environment.pop("PERFORMED", None)
    processes = {
        backend: subprocess.Popen(
            [sys.executable, "-m", "sizing_xlsx", "verify", "--sweep", f"{backend}.toml", "--backend", backend,
             "--csv", f"{backend}.csv", "--workers", "1", "--timeout", "300"],
            cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for backend in ("cpu", "trace")
    }  # fmt: skip
    found = {}
    for backend, process in processes.items():
        out, err = process.communicate(timeout=300)
        assert (folder / f"{backend}.csv").exists(), err
        with (folder / f"{backend}.csv").open(encoding="utf-8", newline="") as file:
            rows = {row["id"]: row for row in csv.DictReader(file)}
        found[backend] = SimpleNamespace(status=process.returncode, out=out, err=err, rows=rows)
    return found


def test_real_what_cannot_run_here_is_not_run_and_the_rest_goes_on(real: dict[str, Any]) -> None:
    done = real["cpu"]
    assert done.status == 0, done.err
    assert {key: row["outcome"] for key, row in done.rows.items()} == {
        "8-bit": "not run", "4-bit": "not run", "too large": "not run", "unknown family": "not run",
        "too many layers": "not run", "lora": "ok", "full": "ok", "training": "ok",
    }, done.err  # fmt: skip
    assert len(done.err.splitlines()) == 8 and done.out.splitlines()[-1] == "Results: cpu.csv"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("8-bit", "bitsandbytes is not installed, and base_storage_format int8 needs it: pip install 'sizing-xlsx[quantised]'"),
        ("4-bit", "bitsandbytes is not installed, and base_storage_format nf4 needs it: pip install 'sizing-xlsx[quantised]'"),
        ("unknown family", "model_type is 'no_such_family', which transformers "),
        ("too many layers", "adapter_layers is 3; the model has 2 layers: enter 1 to 2"),
        ("too large", "base_model is 'TinyLlama/TinyLlama-1.1B-Chat-v1.0', whose training state takes "),
    ],
)  # fmt: skip
def test_real_the_message_says_why_it_was_not_run(real: dict[str, Any], name: str, said: str) -> None:
    message = real["cpu"].rows[name]["message"]
    assert message.startswith(said) and "Traceback" not in message
    if name == "too large":
        assert " GB; this machine has " in message and message.count(" GB") == 2


def test_real_static_bytes_of_a_tiny_model_are_exact(real: dict[str, Any]) -> None:
    """Hidden 32, 2 heads of 16, 1 KV head, MLP 64, 64 words, 2 layers; rank 8 on all seven."""
    rows = real["cpu"].rows
    layer = 32 * 32 + 2 * 32 * 16 + 32 * 32 + 3 * 32 * 64  # q, k and v, o, MLP
    adapters = 2 * 8 * ((32 + 32) + 2 * (32 + 16) + (32 + 32) + 3 * (32 + 64))
    matrices, norms = 2 * layer + 2 * 64 * 32, 5 * 32
    lora = rows["lora"]
    assert int(lora["trainable_parameters"]) == adapters
    assert int(lora["frozen_parameter_bytes"]) == 2 * (matrices + norms)
    assert int(lora["gradient_bytes"]) == 4 * adapters and int(lora["optimizer_state_bytes"]) == 8 * adapters
    full = rows["full"]
    assert int(full["parameters"]) == int(full["trainable_parameters"]) == matrices + norms
    assert float(full["bytes_per_parameter"]) == 16
    assert float(rows["training"]["bytes_per_parameter"]) == 16
    for row in (lora, full, rows["training"]):
        assert row["figures"] == "counted" and row["peak_allocated_bytes"] == "" and row["card"] == ""
        assert row["source"].startswith("counted: this machine's CPU, torch ")


def test_real_traces_of_the_same_run_are_the_same(real: dict[str, Any]) -> None:
    status, rows = real["trace"].status, real["trace"].rows
    assert status == 0, real["trace"].err
    assert rows["4-bit"]["outcome"] == "not run" and "sizing-xlsx[quantised]" in rows["4-bit"]["message"]
    one, same = ({key: value for key, value in rows[name].items() if key != "id"} for name in ("one", "same"))
    assert one == same and one["outcome"] == "ok" and one["figures"] == "traced"
    assert 0 < int(one["peak_allocated_bytes"]) <= int(one["peak_reserved_bytes"])
    assert rows["on a tiny card"]["outcome"] == "oom", "0.75 GB less the context does not hold two workspaces"
    assert "out of memory" in rows["on a tiny card"]["message"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{'model_type': 'llama'}", "which is not JSON: "),
        ("", "which is not JSON: "),
        ("[]", "which has no model_type; give the config.json of a model"),
        ('{"hidden_size": 64}', "which has no model_type"),
        ('{"model_type": "no_such_family"}', "model_type is 'no_such_family', which transformers "),
        (None, "is a folder without a config.json; give a config.json or its folder"),
    ],
)
def test_derive_refuses_a_config_that_no_model_can_be_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str | None, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    if content is not None:
        (tmp_path / "mine" / "config.json").write_text(content)
    assert main(["derive", "mine"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and len(shown.err.splitlines()) == 1
    assert shown.err.startswith("sizing-xlsx: ") and said in shown.err
    assert "mine" in shown.err or "no_such_family" in shown.err


def test_derive_prints_a_list_of_an_own_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    fields = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    (tmp_path / "mine" / "config.json").write_text(json.dumps(fields))
    assert main(["derive", "mine/config.json"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("What a layer of mine keeps for backward (lora, traced at 3 small shapes):")
    assert " d + " in text and " per token" in text and "not solved" not in text
    assert main(["derive", "mine", "--job", "full", "--json"]) == 0
    (found, *_) = json.loads(capsys.readouterr().out)
    assert found["bytes_per_token"]["d"] > 0 and found["unsolved"] == [] and found["tensors"]
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "config.json"], "nothing is written"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["derive"], "the following arguments are required: CONFIG"),
        (["derive", "Llama-3.1-8b"], "base_model is 'Llama-3.1-8b'; it must be a model of the presets; did you mean meta-"),
        (["derive", "meta-llama/Llama-3.1-8B", "--batch-size", "0"], "batch_size is 0; it must be"),
        (["derive", "meta-llama/Llama-3.1-8B", "--job", "training"], "invalid choice: 'training'"),
    ],
)  # fmt: skip
def test_derive_refuses_what_it_cannot_take(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(words)
    except SystemExit as stop:
        status = int(stop.code or 0)
    shown = capsys.readouterr()
    assert status == 2 and shown.out == "" and len(shown.err.splitlines()) == 1 and said in shown.err

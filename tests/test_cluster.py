"""`verify --ray`: a Ray cluster on this machine's loopback, with GPUs that it only pretends to have."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sizing_xlsx.measure import cluster, models
from sizing_xlsx.measure.run import Run, make_run

pytest.importorskip("torch", reason="torch is not installed: pip install 'sizing-xlsx[measure]'")
psutil = pytest.importorskip("psutil", reason="psutil is not installed: pip install 'sizing-xlsx[measure]'")

MARK = "SIZING_TEST_CLUSTER"  # in the environment of every process that this module's cluster starts
TINY = {
    "hidden_size_override": 32, "layer_count_override": 2, "attention_heads_override": 2, "mlp_width_override": 64,
    "vocabulary_size_override": 64, "batch_size": 1, "sequence_length": 16,
}  # fmt: skip
ON_A_GPU = {"num_gpus": 1.0, "num_cpus": 1.0}  # what a run asks Ray for, while it is counted on the CPU


def tiny(count: int) -> list[Run]:
    """Runs of a few seconds each, all different."""
    return [make_run("training", {**TINY, "sequence_length": 16 + at}, id=f"run{at}") for at in range(count)]


class Machines:
    """A cluster: a head that offers nothing, and nodes with a GPU each as they are added."""

    def __init__(self, made: Any, mark: str) -> None:
        self.made, self.mark, self.address = made, mark, made.address
        self.nodes: list[Any] = []

    def add(self) -> None:
        """A node with a GPU and a CPU."""
        node = self.made.add_node(num_cpus=1, num_gpus=1, node_ip_address="127.0.0.1", object_store_memory=80_000_000)
        self.nodes.append(node)

    def lose(self) -> None:
        """A node is gone from one moment to the next."""
        self.made.remove_node(self.nodes.pop(), allow_graceful=False)

    def runs(self) -> list[Any]:
        """The processes in which runs are performed now."""
        return [process for process in self._ours() if "sizing_xlsx.measure.worker" in process.info["cmdline"]]

    def tasks(self) -> list[Any]:
        """Ray's own processes that hold a run now."""
        return [process for process in self._ours() if process.info["cmdline"][0].startswith("ray::verify ")]

    def _ours(self) -> list[Any]:
        found = []
        for process in psutil.process_iter(["cmdline", "status"]):
            try:
                alive = process.info["cmdline"] and process.info["status"] != psutil.STATUS_ZOMBIE
                if alive and process.environ().get(MARK) == self.mark:
                    found.append(process)
            except psutil.Error:
                continue
        return found


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    """A cluster without a GPU yet. Its folder is short, as the paths of sockets have to be."""
    if sys.platform == "win32":
        pytest.skip("processes are killed by signals here, which Windows has not")
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")
    os.mkdir(os.path.join(folder, "ray"))
    changed = pytest.MonkeyPatch()
    changed.setenv("RAY_TMPDIR", folder)
    changed.setenv("RAY_USAGE_STATS_ENABLED", "0")
    changed.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # this machine is 127.0.0.1, and nothing listens beyond
    changed.setenv("RAY_health_check_period_ms", "500")  # a lost node is noticed in seconds
    changed.setenv("RAY_health_check_failure_threshold", "2")
    changed.setenv(MARK, folder)
    pytest.importorskip("ray", reason="ray is not installed: pip install 'sizing-xlsx[ray]'")
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0, "num_gpus": 0, "node_ip_address": "127.0.0.1", "include_dashboard": False,
            "object_store_memory": 80_000_000,
        },
    )  # fmt: skip
    try:
        yield Machines(made, folder)
    finally:
        made.shutdown()
        changed.undo()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def two_gpus(machines: Machines) -> Machines:
    while len(machines.nodes) < 2:
        machines.add()
    return machines


def eventually(true: Any, seconds: float = 10.0) -> bool:
    """Whether something becomes true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.05)
    return bool(true())


# ------------------------------------------------------------------------------------------------ addresses
@pytest.mark.parametrize("address", ["", "local", "somewhere", "host:0", "host:99999", "http://host:6379", "a b:6379"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="--ray is .*; it must be") as refused:
        cluster.refuse_address(address)
    assert repr(address) in str(refused.value)


@pytest.mark.parametrize("address", ["auto", "head:6379", "ray://head:10001", "[::1]:6379", "10.0.0.7:6379"])
def test_what_is_an_address(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: socket.socket())
    cluster.refuse_address(address)


def test_a_port_where_nothing_listens_is_refused_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(
        ValueError, match=r"--ray is '127\.0\.0\.2:1', where no Ray cluster answers \(Connection refused"
    ):
        cluster.refuse_address("127.0.0.2:1")
    assert time.monotonic() - began < 5


def test_a_client_port_where_nothing_listens_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"--ray is 'ray://127\.0\.0\.1:1', where no Ray cluster answers \(Conn"):
        cluster.refuse_address("ray://127.0.0.1:1")


def test_something_else_that_listens_is_refused_in_time(machines: Machines) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(ValueError, match="where no Ray cluster answers within 3 seconds; it must be"):
            next(cluster.perform_on_cluster(tiny(1), "cpu", {}, address=address, answer_within=3))
    assert time.monotonic() - began < 10


def test_a_cluster_without_gpus_is_refused_for_cuda(machines: Machines) -> None:
    with pytest.raises(ValueError, match="a cluster that has no GPU and no CPU, which --backend cuda takes"):
        next(cluster.perform_on_cluster(tiny(1), "cuda", {}, address=machines.address))


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(models.CannotRun, match=r"--ray needs it: pip install 'sizing-xlsx\[ray\]'"):
        next(cluster.perform_on_cluster(tiny(1), "cpu", {}, address="auto"))


def test_no_runs_need_no_cluster() -> None:
    assert list(cluster.perform_on_cluster([], "cuda", {}, address="nowhere:1")) == []


# ------------------------------------------------------------------------------------------------ sweeps
def test_a_sweep_loses_nothing_to_a_killed_process(two_gpus: Machines) -> None:
    runs = tiny(5)
    most, over = [0], threading.Event()

    def count() -> None:
        while not over.wait(0.25):
            most[0] = max(most[0], len(two_gpus.runs()))

    counting = threading.Thread(target=count)
    counting.start()
    performing = cluster.perform_on_cluster(runs, "cpu", {}, address=two_gpus.address, resources=ON_A_GPU, timeout=300)
    try:
        rows = [next(performing)]
        assert eventually(two_gpus.runs)
        killed = two_gpus.runs()[0]
        holder = killed.parent()
        assert holder.cmdline()[0].startswith("ray::verify run")
        os.kill(holder.pid, signal.SIGKILL)
        assert eventually(lambda: killed not in two_gpus.runs()), "the run went on beside its repetition"
        rows += performing
    finally:
        performing.close()
        over.set()
        counting.join()
    assert sorted(run.id for run, _ in rows) == sorted(run.id for run in runs)
    assert {row["outcome"] for _, row in rows} == {"ok"}, [row.get("message") for _, row in rows]
    assert {row["node"] for _, row in rows} == {socket.gethostname()}
    assert all(row["figures"] == "counted" and row["saved_tensor_bytes"] > 0 for _, row in rows)
    assert most[0] == 2


def test_a_run_lost_for_good_fails_and_the_sweep_goes_on(two_gpus: Machines) -> None:
    runs = tiny(2)

    def kill() -> None:
        if eventually(lambda: len(two_gpus.runs()) == 2, 30):
            os.kill(two_gpus.runs()[0].ppid(), signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    rows = {
        run.id: row
        for run, row in cluster.perform_on_cluster(
            runs, "cpu", {}, address=two_gpus.address, resources=ON_A_GPU, retries=0
        )
    }
    killing.join()
    assert sorted(rows) == [run.id for run in runs]
    assert sorted(row["outcome"] for row in rows.values()) == ["failed", "ok"]
    (failed,) = (row for row in rows.values() if row["outcome"] == "failed")
    assert failed["message"] == "the process that held the run on its node was lost once"


def test_a_run_that_hangs_is_stopped_and_closing_early_leaves_nothing_but_the_cluster(two_gpus: Machines) -> None:
    performing = cluster.perform_on_cluster(
        tiny(6), "cpu", {}, address=two_gpus.address, resources=ON_A_GPU, timeout=1.5
    )
    _, row = next(performing)
    assert row["outcome"] == "failed" and row["message"].startswith("hung: stopped after")
    assert row["node"] == socket.gethostname()
    assert eventually(two_gpus.runs)
    performing.close()
    assert eventually(lambda: not two_gpus.runs() and not two_gpus.tasks())
    assert cluster.look_from_aside(two_gpus.address, 30)["resources"]["GPU"] == 2


def test_a_run_of_a_lost_node_is_repeated_on_another(two_gpus: Machines) -> None:
    def lose() -> None:
        if eventually(lambda: len(two_gpus.runs()) == 2, 30):
            two_gpus.lose()

    losing = threading.Thread(target=lose)
    losing.start()
    rows = list(cluster.perform_on_cluster(tiny(2), "cpu", {}, address=two_gpus.address, resources=ON_A_GPU))
    losing.join()
    assert len(two_gpus.nodes) == 1
    assert sorted((run.id, row["outcome"]) for run, row in rows) == [("run0", "ok"), ("run1", "ok")]


def test_runs_fail_when_no_node_is_left() -> None:
    class NoNodes:
        wait = staticmethod(lambda waiting, num_returns, timeout: (time.sleep(timeout), ([], waiting))[1])
        cluster_resources = staticmethod(lambda: {"CPU": 8.0})

    waiting = {"first": [tiny(2)[0]], "second": [tiny(2)[1]]}
    rows = list(cluster._as_they_finish(NoNodes, waiting, "cpu", cluster.GPU, 3, 0.2))
    assert [row["outcome"] for _, row in rows] == ["failed", "failed"]
    assert rows[0][1]["message"] == "the cluster had no GPU for 0.2 seconds"
    assert list(waiting) == ["first", "second"]  # still to be cancelled


# ------------------------------------------------------------------------------------------------ nodes
@pytest.mark.parametrize(("there", "said"), [
    ("None", "sizing-xlsx is not installed on node .*: pip install 'sizing-xlsx\\[measure\\]==1.2.3' there"),
    ("types.SimpleNamespace(__version__='0.0.9')", "has sizing-xlsx 0.0.9, and this is 1.2.3: pip install"),
])  # fmt: skip
def test_a_node_without_this_version_says_so(there: str, said: str, machines: Machines, tmp_path: Path) -> None:
    from ray import cloudpickle

    sent = tmp_path / "task"
    sent.write_bytes(cloudpickle.dumps(cluster.node_task()))
    code = f"""if True:
        import pickle, sys, types
        from ray import cloudpickle
        sys.modules['sizing_xlsx'] = {there}
        print(cloudpickle.loads(open({str(sent)!r}, 'rb').read())({{'version': '1.2.3', 'checkout': ''}})['refused'])
    """
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search(said, answer.stdout)


def test_files_of_a_run_are_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.json").write_text('{"model_type": "llama"}')
    run = make_run("lora", {"config": "own.json", "weights": "organisation/name"}, id="own")
    asked = cluster.question(run, "trace", {"composition": "pictures"}, 5)
    assert asked["run"]["config"] == str(tmp_path / "own.json")
    assert asked["run"]["weights"] == "organisation/name"
    assert asked["options"]["composition"] == str(tmp_path / "pictures")


def test_a_model_that_a_node_has_not_is_not_run() -> None:
    row = {**tiny(1)[0].as_row(), "base_model": "nobody's model"}
    assert "base_model" in cluster.on_node({"run": row}, "")["refused"]


def test_a_process_ends_with_the_one_that_watches_it() -> None:
    code = """if True:
        import os, subprocess, sys
        from sizing_xlsx.measure.cluster import ending_too
        run = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
        print(run.pid, flush=True)
        with ending_too(run.pid):
            os.kill(os.getpid(), 9)
    """
    watched = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    number = int(watched.stdout)
    assert eventually(lambda: not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize(("name", "retries", "said"), [
    ("WorkerCrashedError", 3, "the process that held the run on its node was lost 4 times"),
    ("NodeDiedError", 0, "the node of the run was lost once"),
    ("OutOfMemoryError", 3, "Ray ended the run 4 times, as its node had too little memory left"),
    ("RaySystemError", 3, "RaySystemError: what else"),
])  # fmt: skip
def test_why_a_run_was_lost(name: str, retries: int, said: str) -> None:
    assert cluster.why_lost(type(name, (Exception,), {})("what\nelse"), retries) == said

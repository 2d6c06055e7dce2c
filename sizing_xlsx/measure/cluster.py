"""`verify --ray ADDRESS`: the runs of a sweep on a Ray cluster that is there already, one for each free GPU.

Which run goes where and when is Ray's affair, and so is doing again what was lost with a node. On the node a run gets
the fresh process that it gets here (sweep.py), so that a hang, a kill and a full GPU end alike in both places.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import __version__
from . import models
from .backends import one_sentence
from .run import Run, from_rows
from .sweep import TIMEOUT, Worker, _alike, unfinished

RETRIES = 3  # of a run that was lost with its node or with the process that held it
ANSWER_WITHIN = 30.0  # seconds that a cluster has to answer; Ray itself would wait for minutes
NODES_WITHIN = 300.0  # seconds without any node that could take a run, before the rest counts as failed
LOOK = 5.0  # seconds between two looks at the cluster while nothing finishes

GPU = {"num_gpus": 1.0, "num_cpus": 1.0}
CPU = {"num_cpus": 1.0}
RIGHT = (
    'it must be "auto" for a cluster on this machine, HOST:6379 on a machine of the cluster with HOST as its head,'
    " or ray://HOST:10001 from elsewhere"
)
_ADDRESS = re.compile(r"auto|(?P<client>ray://)?(?P<host>\[[^\]\s]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})/?")
_CLUSTER_NAMES = {"num_gpus": "GPU", "num_cpus": "CPU"}


def perform_on_cluster(
    runs: Sequence[Run],
    backend: str,
    options: Mapping[str, Any],
    *,
    address: str,
    timeout: float = TIMEOUT,
    resources: Mapping[str, float] | None = None,
    retries: int = RETRIES,
    answer_within: float = ANSWER_WITHIN,
    nodes_within: float = NODES_WITHIN,
) -> Generator[tuple[Run, dict[str, Any]], None, None]:
    """Each run with its row, in the order in which they finish, as sweep.perform_all gives them.

    resources: what Ray keeps free for each run, in the words of ray.remote; one GPU for --backend cuda, else one CPU.
    Closing the iterator ends what still runs and leaves the cluster. ValueError when the cluster cannot be used.
    """
    if not runs:
        return
    wanted = dict(resources if resources is not None else GPU if backend == "cuda" else CPU)
    join(address, backend, wanted, answer_within)
    ray = _ray()
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    waiting: dict[Any, list[Run]] = {}
    try:
        # A GPU task would have its Ray process replaced each time; the run has a process of its own anyway.
        task = ray.remote(max_retries=retries, retry_exceptions=False, max_calls=0, **wanted)(node_task())
        for same in _alike(runs, backend):
            named = task.options(name=f"verify {same[0].id}")  # what Ray's own pages and messages call it
            waiting[named.remote(question(same[0], backend, options, timeout))] = same
        yield from _as_they_finish(ray, waiting, backend, wanted, retries, nodes_within)
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)
        ray.shutdown()


def _ray() -> Any:
    # The owner of a task counts its retries, so this process's environment says how many: without end otherwise.
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))
    return models.need("ray", "--ray")


def _as_they_finish(
    ray: Any,
    waiting: dict[Any, list[Run]],
    backend: str,
    wanted: Mapping[str, float],
    retries: int,
    nodes_within: float,
) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Take from what waits whatever is done; give all of it up when no node is left to do it."""
    possible = time.monotonic()
    while waiting:
        done, _ = ray.wait(list(waiting), num_returns=1, timeout=min(LOOK, nodes_within))
        for reference in done:
            same = waiting.pop(reference)
            row = _row_of(ray, reference, same[0], backend, retries)
            for run in same:
                yield run, row
        if done or not lacking(ray.cluster_resources(), wanted):
            possible = time.monotonic()
        elif time.monotonic() - possible >= nodes_within:
            short = lacking(ray.cluster_resources(), wanted) or lacking({}, wanted)
            message = f"the cluster had no {short} for {nodes_within:,g} seconds"
            for same in waiting.values():
                for run in same:
                    yield run, unfinished(run, backend, message)
            return


def _row_of(ray: Any, reference: Any, run: Run, backend: str, retries: int) -> dict[str, Any]:
    """The row of a task that is over, whichever way it went."""
    try:
        answer: dict[str, Any] = ray.get(reference)
    except ray.exceptions.RayError as error:
        return unfinished(run, backend, why_lost(error, retries))
    if "row" in answer:
        return {**answer["row"], "node": answer["node"]}
    return {**unfinished(run, backend, answer["refused"]), "outcome": "not run", "node": answer["node"]}


def why_lost(error: Exception, retries: int) -> str:
    """Why a task ended for good, in one sentence."""
    times = f"{retries + 1} times" if retries else "once"
    known = {
        "WorkerCrashedError": f"the process that held the run on its node was lost {times}",
        "NodeDiedError": f"the node of the run was lost {times}",
        "LocalRayletDiedError": f"the node of the run was lost {times}",
        "OutOfMemoryError": f"Ray ended the run {times}, as its node had too little memory left",
        "TaskCancelledError": "the run was cancelled on the cluster",
    }
    name = type(error).__name__
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return one_sentence(f"{type(cause).__name__}: {cause}")
    return known.get(name) or one_sentence(f"{name}: {error}")


# ------------------------------------------------------------------------------------------------ the cluster
def join(address: str, backend: str, wanted: Mapping[str, float], within: float = ANSWER_WITHIN) -> None:
    """ValueError in one sentence unless a cluster answers at the address in time and has what a run takes.

    backend: of a run; empty where what is asked for is none.

    Asked from a process of its own: where no cluster is, Ray waits for minutes and writes to the screen meanwhile.
    """
    _ray()
    refuse_address(address)
    said = look_from_aside(address, within)
    if "error" in said:
        raise ValueError(f"--ray is {address!r}, {said['error']}")
    short = lacking(said["resources"], wanted)
    if short:
        other = " or run without a GPU: --backend trace" if backend == "cuda" else " or choose another cluster"
        takes = f"--backend {backend} takes for each run" if backend else "each task takes"
        raise ValueError(
            f"--ray is {address!r}, a cluster that has no {short}, which {takes}; start"
            f" Ray on a machine with one,{other}"
        )


def refuse_address(address: str) -> None:
    """ValueError for what is no address, and for one at which nothing listens."""
    parts = _ADDRESS.fullmatch(address)
    if parts is None or (parts["port"] and not 0 < int(parts["port"]) < 65536):
        raise ValueError(f"--ray is {address!r}; {RIGHT}")
    if not parts["host"]:
        return
    host = parts["host"].strip("[]")
    if host in ("localhost", "127.0.0.1", "::1") and not parts["client"]:
        return  # Ray asks at this machine's outer address instead, where it has one
    try:
        socket.create_connection((host, int(parts["port"])), timeout=5).close()
    except OSError as error:
        why = "no answer in 5 seconds" if isinstance(error, TimeoutError) else error.strerror or error
        raise ValueError(f"--ray is {address!r}, where no Ray cluster answers ({why}); {RIGHT}") from None


def look_from_aside(address: str, within: float) -> dict[str, Any]:
    """What look() says in another process, or an error when that has not answered in time."""
    try:
        looked = subprocess.run(
            [sys.executable, "-m", "sizing_xlsx.measure.cluster", address],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=within,
        )
        answer: dict[str, Any] = json.loads(looked.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": f"where no Ray cluster answers within {within:,.0f} seconds; {RIGHT}"}
    except (IndexError, ValueError):  # Ray ended the process
        return {"error": f"where no Ray cluster answers; {RIGHT}"}
    return answer


def look(address: str) -> dict[str, Any]:
    """What a cluster has in all, or why it cannot be joined from here."""
    ray = _ray()
    try:
        ray.init(address=address, log_to_driver=False)
        return {"resources": dict(ray.cluster_resources())}
    except ConnectionError as error:
        return {"error": f"where no Ray cluster answers ({_said(error)}); {RIGHT}"}
    except Exception as error:  # another version of Ray or Python there, a token or a package missing here
        return {"error": f"a cluster that cannot be joined from here: {_said(error)}"}


def _said(error: Exception) -> str:
    return one_sentence(str(error)).rstrip(".") or type(error).__name__


def lacking(has: Mapping[str, float], wanted: Mapping[str, float]) -> str:
    """What a cluster has too little of for a single run; empty when there is enough."""
    return " and no ".join(
        _CLUSTER_NAMES.get(name, name)
        for name, amount in wanted.items()
        if has.get(_CLUSTER_NAMES.get(name, name), 0) < amount
    )


# ------------------------------------------------------------------------------------------------ on the node
def question(run: Run, backend: str, options: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """All that a node needs to know to perform a run. Files keep their names: the node has to see them too."""
    fields = run.as_row()
    for key in ("config", "weights"):
        if fields.get(key) and Path(fields[key]).exists():
            fields[key] = os.path.abspath(fields[key])
    folder = options.get("composition")
    return {
        "run": fields,
        "backend": backend,
        "options": {**options, "composition": os.path.abspath(folder)} if folder else dict(options),
        "timeout": timeout,
        "version": __version__,
        "checkout": checkout(),
    }


def checkout() -> str:
    """The folder that this package is imported from, unless it is installed there."""
    folder = Path(__file__).resolve().parents[2]
    return str(folder) if (folder / "pyproject.toml").is_file() else ""


def node_task(
    module: str = "sizing_xlsx.measure.cluster", extra: str = "measure"
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The function that runs on a node of a cluster: on_node() of a module here, which needs that extra.

    It is made here, not at the top of the module, as pickle then sends it whole instead of its name: a node that has
    not this package, or another version of it, can say so. That is why it leans on nothing outside itself.
    """

    def task(asked: dict[str, Any]) -> dict[str, Any]:
        import importlib
        import os
        import socket
        import sys

        node, version, folder = socket.gethostname(), asked["version"], asked["checkout"]
        there = bool(folder) and os.path.isdir(os.path.join(folder, "sizing_xlsx", "measure"))
        if there and folder not in sys.path:
            sys.path.insert(0, folder)
        right = f"pip install 'sizing-xlsx[{extra}]=={version}' there"
        try:
            import sizing_xlsx
        except ImportError:
            return {"node": node, "refused": f"sizing-xlsx is not installed on node {node}: {right}"}
        found = sizing_xlsx.__version__
        if found != version:
            return {"node": node, "refused": f"node {node} has sizing-xlsx {found}, and this is {version}: {right}"}
        here = importlib.import_module(module)
        return {"node": node, **here.on_node(asked, folder if there else "")}

    return task


def on_node(asked: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Perform a run in a fresh process on this node, which gets the GPU that Ray chose from the environment."""
    try:
        run = from_rows([asked["run"]])[0]
    except ValueError as error:  # a model that only the planner's presets have
        return {"refused": one_sentence(str(error))}
    paths = [folder, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    worker = Worker({"PYTHONPATH": os.pathsep.join(path for path in paths if path)} if folder else {})
    try:
        with ending_too(worker.process.pid):
            return {"row": worker.perform(run, asked["backend"], asked["options"], asked["timeout"])}
    finally:
        worker.stop()


@contextmanager
def ending_too(process: int) -> Iterator[None]:
    """End a process when this one ends, even by a signal that nothing can act upon.

    Else a run goes on when Ray's own process is killed, on a GPU that Ray takes for free and gives to the next. What
    watches is a process whose standard input ends with this one.
    """
    code = "import os, sys; sys.stdin.read(); os.kill(int(sys.argv[1]), 9)"
    watch = subprocess.Popen([sys.executable, "-S", "-E", "-c", code, str(process)], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        watch.kill()
        watch.communicate()


if __name__ == "__main__":
    print(json.dumps(look(sys.argv[1])))

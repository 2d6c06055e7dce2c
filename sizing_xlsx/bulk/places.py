"""Where blocks are sized: in this process, in processes of this machine, on a Ray or on a Dask cluster that is there.

Each place takes a block and promises its part; parts come back in the order of the blocks, and no more blocks are
underway than keep every processor busy, so that memory does not grow with the table.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

from .. import __version__
from .answer import need
from .blocks import Block
from .work import Part, perform

ANSWER_WITHIN = 30.0  # seconds that a cluster has to answer


class Place(NamedTuple):
    """submit: takes a block and promises its part; result: waits for it. width: how many blocks are underway."""

    submit: Callable[[Block], Any]
    result: Callable[[Any], Part]
    width: int


def in_order(place: Place, blocks: Iterable[Block]) -> Iterator[Part]:
    """The parts of the blocks, in their order."""
    waiting: deque[Any] = deque()
    for block in blocks:
        waiting.append(place.submit(block))
        if len(waiting) >= place.width:
            yield place.result(waiting.popleft())
    while waiting:
        yield place.result(waiting.popleft())


# ------------------------------------------------------------------------------------------------ this machine
def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def here(work: bytes, blocks: Iterator[Block], workers: int) -> Iterator[Part]:
    """The parts, in their order; processes are only started for what the first block leaves over."""
    first = next(blocks, None)
    if first is None:
        return
    yield perform(work, first)
    second = next(blocks, None)
    if second is None:
        return
    rest = chain((second,), blocks)
    if workers == 1:
        yield from (perform(work, block) for block in rest)
        return
    with processes(work, workers) as place:
        yield from in_order(place, rest)


@contextmanager
def processes(work: bytes, workers: int) -> Iterator[Place]:
    """Processes of this machine. On Linux they start with all that this one has made for its first block."""
    method = "fork" if sys.platform == "linux" else "spawn"
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context(method), _start, (work,))

    def result(promised: Any) -> Part:
        try:
            return promised.result()  # type: ignore[no-any-return]
        except BrokenProcessPool:
            raise ValueError(
                "a process that sized rows was ended from outside, perhaps for want of memory; try fewer --workers"
            ) from None

    try:
        yield Place(lambda block: pool.submit(_perform, block), result, workers + 2)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_started: dict[str, bytes] = {}


def _start(work: bytes) -> None:
    """Ctrl-C is the first process's affair, whose end ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _started["work"] = work
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _perform(block: Block) -> Part:
    return perform(_started["work"], block)


# ------------------------------------------------------------------------------------------------ clusters
def _asked(work: bytes, block: Block) -> dict[str, Any]:
    from ..measure.cluster import checkout

    return {"version": __version__, "checkout": checkout(), "work": work, "block": tuple(block)}


def _part(answer: dict[str, Any]) -> Part:
    if "refused" in answer:
        raise ValueError(str(answer["refused"]))
    part: Part = answer["part"]
    return part


def _node_task() -> Callable[[dict[str, Any]], dict[str, Any]]:
    from ..measure.cluster import node_task

    return node_task("sizing_xlsx.bulk.work", "bulk")


@contextmanager
def ray_cluster(work: bytes, address: str) -> Iterator[Place]:
    """A Ray cluster; ValueError in one sentence where none can be used. What is lost with a node is done again."""
    import logging

    from ..measure.cluster import join, why_lost

    ray = need("ray", "--ray")
    retries = 3
    join(address, "", {"num_cpus": 1.0}, ANSWER_WITHIN)
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    task = ray.remote(max_retries=retries, num_cpus=1)(_node_task()).options(name="sweep")
    width = int(ray.cluster_resources().get("CPU", 1)) + 2

    def result(promised: Any) -> Part:
        try:
            return _part(ray.get(promised))
        except ray.exceptions.RayError as error:
            raise ValueError(f"--ray is {address!r}, where {why_lost(error, retries)}") from None

    try:
        yield Place(lambda block: task.remote(_asked(work, block)), result, width)
    finally:
        ray.shutdown()


@contextmanager
def dask_cluster(work: bytes, address: str) -> Iterator[Place]:
    """A Dask cluster; ValueError in one sentence where none can be used. What is lost with a worker is done again."""
    dask = need("distributed", "--dask")
    right = "it must be HOST:8786 or tcp://HOST:8786, where a dask scheduler listens"
    try:
        client = dask.Client(address, timeout=ANSWER_WITHIN, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--dask is {address!r}, where no Dask cluster answers ({_first_line(error)}); {right}"
        ) from None
    try:
        try:
            client.wait_for_workers(1, timeout=ANSWER_WITHIN)
        except TimeoutError:
            raise ValueError(
                f"--dask is {address!r}, a cluster that has no worker; start one: dask worker {address}"
            ) from None
        threads = sum(client.nthreads().values())
        task = _node_task()

        def result(promised: Any) -> Part:
            try:
                return _part(promised.result())
            except (dask.scheduler.KilledWorker, dask.client.FutureCancelledError) as error:
                raise ValueError(f"--dask is {address!r}, where a block was lost: {_first_line(error)}") from None
            finally:
                promised.release()

        yield Place(lambda block: client.submit(task, _asked(work, block), pure=False), result, threads + 2)
    finally:
        client.close()


def _first_line(error: Exception) -> str:
    return (str(error).strip().partition("\n")[0] or type(error).__name__).rstrip(".")

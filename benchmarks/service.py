"""The add-in's service: a batch of distinct jobs beside a batch of trivial calls, over HTTP; many batches at once.

And batches of a user while strangers, who have no key, ask on more connections than the service keeps.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from sizing_xlsx.functions.batch import call_many

from .measure import Line, ratio, seconds

CALLS, SIDE_BY_SIDE, BATCHES = 500, 8, 40
MOST_RATIO, MOST_MS = 5.0, 10.0
STRANGERS, BESIDE = 600, 6  # connections; batches meanwhile
STRANGE = b"POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
_SERIES = count(1)


def distinct() -> list[tuple[str, list[Any]]]:
    """A batch of jobs that nobody asked for before: batch and length of each differ from all others."""
    start = next(_SERIES) * CALLS
    cards = ("H100 SXM5 80GB", "NVIDIA L4", "RTX 4090", "A100 SXM4 80GB")
    return [("GPU_FITS", ["Llama-3.1-8B", cards[at % 4], 1 + at % 64, start + at]) for at in range(CALLS)]


def trivial() -> list[tuple[str, list[Any]]]:
    """As many calls that only look something up, all alike."""
    return [("GPU_INFO", ["NVIDIA L4"])] * CALLS


def lines(repeats: int) -> list[Line]:
    """The library alone, then the service in a process of its own; no line where the extra "server" is missing."""
    spent = seconds({"many": lambda: call_many(distinct(), answers=None)}, 3 * repeats)["many"]
    found = [
        Line(
            f"{CALLS} distinct GPU_FITS in one batch",
            f"{1000 * min(spent):.1f} ms",
            f"<= {MOST_MS:.0f} ms",
            min(spent) * 1000 <= MOST_MS,
            f"the best round, median {1000 * median(spent):.1f} ms; nothing remembered from before",
        )
    ]
    try:
        import httpx  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError:
        return found
    with _service() as (url, key):
        return [*found, *asyncio.run(_over_http(url, key, 6 * repeats))]


async def _over_http(url: str, key: str, rounds: int) -> list[Line]:
    import httpx

    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:

        async def asked(calls: list[tuple[str, list[Any]]]) -> float:
            body = json.dumps({"calls": [{"function": name, "arguments": given} for name, given in calls]})
            start = time.perf_counter()
            reply = await client.post("/v1/calls", content=body)
            taken = time.perf_counter() - start
            reply.raise_for_status()
            assert len(reply.json()["answers"]) == CALLS
            return taken

        for _ in range(3):
            await asked(distinct()), await asked(trivial())
        new, plain = [], []
        for _ in range(rounds):
            new.append(await asked(distinct()))
            plain.append(await asked(trivial()))
        start = time.perf_counter()
        gate = asyncio.Semaphore(SIDE_BY_SIDE)

        async def one() -> None:
            async with gate:
                await asked(distinct())

        await asyncio.gather(*(one() for _ in range(BATCHES)))
        together = time.perf_counter() - start
        beside, failed = await _beside_strangers(url, asked)
    times = ratio(new, plain)
    return [
        Line(
            f"a request of {CALLS} distinct jobs against one of {CALLS} equal look-ups",
            f"{times:.1f} x",
            f"<= {MOST_RATIO:.0f} x",
            times <= MOST_RATIO,
            f"{1000 * median(new):.1f} and {1000 * median(plain):.1f} ms; "
            f"best {1000 * min(new):.1f} and {1000 * min(plain):.1f} ms",
        ),
        Line(
            f"{SIDE_BY_SIDE} requests of distinct jobs at a time",
            f"{BATCHES * CALLS / together:,.0f} jobs/s",
            "none",
            True,
            "one worker; the client runs on the same cores",
        ),
        Line(
            f"a request of {CALLS} distinct jobs while strangers ask on {STRANGERS} connections",
            f"{failed} of {BESIDE} failed",
            "none failed",
            failed == 0,
            f"median {1000 * median(beside):.0f} ms; asked once more where the connection was closed" if beside else "",
        ),
    ]


async def _beside_strangers(
    url: str, asked: Callable[[list[tuple[str, list[Any]]]], Awaitable[float]]
) -> tuple[list[float], int]:
    """Seconds of a user's requests while strangers ask, and how many failed; like the add-in it asks twice."""
    import httpx

    strangers = [asyncio.create_task(_strange(url)) for _ in range(STRANGERS)]
    taken, failed = [], 0
    try:
        await asyncio.sleep(1)
        for _ in range(BESIDE):
            start, calls = time.perf_counter(), distinct()
            try:
                try:
                    await asked(calls)
                except httpx.TransportError:
                    await asked(calls)
                taken.append(time.perf_counter() - start)
            except httpx.HTTPError:
                failed += 1
    finally:
        for each in strangers:
            each.cancel()
        await asyncio.gather(*strangers, return_exceptions=True)
    return taken, failed


async def _strange(url: str) -> None:
    """Ask without a key, and again whenever the connection is closed."""
    parts = urlsplit(url)
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            try:
                writer.write(STRANGE)
                await reader.read()  # to the end: it is closed after the refusal
            finally:
                writer.close()


@contextmanager
def _service() -> Iterator[tuple[str, str]]:
    from sizing_xlsx.server.keys import KeyRing, Limits

    with tempfile.TemporaryDirectory() as name:
        ring = KeyRing(Path(name) / "keys.json")
        _, key = ring.add("benchmark", limits=Limits(rate=1e6, burst=10**6))
        log = Path(name) / "log.txt"
        command = [sys.executable, "-m", "sizing_xlsx", "serve", "--keys", str(ring.path), "--port", "0"]
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ})
        try:
            while not (ready := re.search(r"running on (http://\S+)", log.read_text())):
                if process.poll() is not None:
                    raise RuntimeError(log.read_text())
                time.sleep(0.1)
            yield ready[1], key
        finally:
            process.terminate()
            process.wait(30)

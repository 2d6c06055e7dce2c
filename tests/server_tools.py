"""A service for tests: settings in a folder, keys, a client of the application, or a real server in a process."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


class Served:
    """A folder with keys: of two tenants, an administrator's and a plain one each."""

    def __init__(self, folder: Path) -> None:
        from sizing_xlsx.server.keys import KeyRing, Limits

        self.folder, self.ring = folder, KeyRing(folder / "keys.json")
        quick = Limits(rate=10_000, burst=10_000)
        self.admin = self.ring.add("acme", admin=True, limits=quick)[1]
        self.user = self.ring.add("acme", limits=quick)[1]
        self.other = self.ring.add("umbrella", limits=quick)[1]
        self.other_admin = self.ring.add("umbrella", admin=True, limits=quick)[1]

    def settings(self, **given: Any) -> Any:
        from sizing_xlsx.server.settings import settings_of

        return settings_of(None, {"keys": str(self.ring.path), "origin": "https://sizing.example.com", **given})


def signed(key: str) -> dict[str, str]:
    """The headers of a request with a key."""
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def calls(*each: tuple[str, list[Any]]) -> dict[str, Any]:
    """The body of a request."""
    return {"calls": [{"function": name, "arguments": given} for name, given in each]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(folder: Path, *options: str, scheme: str = "http") -> Iterator[tuple[str, Path, subprocess.Popen[bytes]]]:
    """`sizing-xlsx serve` in a process, from when it answers: its address, the file of its log, the process."""
    port, log = free_port(), folder / "log.txt"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "sizing_xlsx", "serve", "--port", str(port), *options]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=folder, env=environment)
    try:
        for _ in range(600):
            if re.search(rb"startup complete", log.read_bytes()) or process.poll() is not None:
                break
            time.sleep(0.1)
        assert process.poll() is None, log.read_text()
        yield f"{scheme}://localhost:{port}", log, process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise

"""Files that several processes read and one replaces at a time."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


def write_whole(path: Path, content: bytes, mode: int = 0o600) -> None:
    """A file in one stroke: readers see the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Within it no other process or thread is within it for the same file: a lock file beside it, `.NAME.lock`.

    The operating system holds the lock, and frees it when the process ends, however it ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path.parent / f".{path.name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError:  # another process holds it
                time.sleep(0.05)
            else:
                return

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)


class Watched(Generic[T]):
    """What a file holds, read again when another one has taken its place."""

    def __init__(self, path: Path, read: Callable[[Path], T], otherwise: T) -> None:
        self.path, self.read, self.otherwise = path, read, otherwise
        self._seen: tuple[int, int, int] | None = None
        self._value = otherwise

    def value(self) -> T:
        """What it holds now; `otherwise` where there is none."""
        try:
            facts = self.path.stat()
        except FileNotFoundError:
            self._seen, self._value = None, self.otherwise
            return self._value
        now = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        if now != self._seen:
            self._value = self.read(self.path)
            self._seen = now
        return self._value

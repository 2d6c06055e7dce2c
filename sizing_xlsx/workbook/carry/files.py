"""Workbooks onto the disk: all or none, none half-written, and the old ones kept where work was carried over."""

from __future__ import annotations

import contextlib
import datetime
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...presets.names import one_line
from ..package import open_elsewhere, owner_file

_MOST_BACKUPS = 1000


class Planned(NamedTuple):
    """One file to write. before: the bytes that were read of it, None where it was not there. keep: as a backup."""

    path: Path
    data: bytes
    before: bytes | None = None
    keep: bool = False


def refuse_open(path: Path) -> None:
    """Raise ValueError where another program has a workbook open."""
    if owner := owner_file(path):
        raise ValueError(open_elsewhere(one_line(str(path)), owner))


def write_all(files: Sequence[Planned]) -> dict[Path, Path]:
    """Write every file or none; returns path -> backup of those that were kept.

    Each is written whole beside its place and then moved there. Where one cannot be moved, those moved before it are
    put back. Raises ValueError, one sentence, for a file that is open elsewhere or has changed since it was read, and
    OSError for a folder that cannot be written.
    """
    drafts: dict[Path, Path] = {}
    backups: dict[Path, Path] = {}
    moved: list[Planned] = []
    done = False
    try:
        for planned in files:
            drafts[planned.path] = _draft(planned.path, planned.data)
        for planned in files:
            refuse_open(planned.path)
            _check_unchanged(planned)
        for planned in files:
            if planned.keep and planned.before is not None:
                backups[planned.path] = back_up(planned.path, planned.before)
        for planned in files:
            _move(drafts[planned.path], planned.path)
            moved.append(planned)
        done = True
    finally:
        if not done:
            for planned in reversed(moved):
                with contextlib.suppress(OSError):
                    _put_back(planned)
            for backup in backups.values():
                with contextlib.suppress(OSError):
                    backup.unlink()
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
    return backups


def back_up(path: Path, data: bytes) -> Path:
    """A copy of a file as it was, named by its date; no earlier copy is written over, and an equal one serves."""
    stamp = datetime.datetime.fromtimestamp(path.stat().st_mtime).strftime("%Y%m%d-%H%M%S")
    for number in range(1, _MOST_BACKUPS):
        tail = f"-{number}" if number > 1 else ""
        backup = path.with_name(f"{path.stem}.backup-{stamp}{tail}{path.suffix}")
        if backup.exists():
            if backup.is_file() and backup.read_bytes() == data:
                return backup
            continue
        draft = _draft(backup, data)
        try:
            os.link(draft, backup)  # fails where the name has been taken meanwhile
        except FileExistsError:
            continue
        except OSError:  # a file system without links
            os.replace(draft, backup)
        finally:
            draft.unlink(missing_ok=True)
        return backup
    raise ValueError(f"{one_line(str(path))} has {_MOST_BACKUPS - 1} backups of one second; move some away")


def beside(path: Path, data: bytes) -> Path:
    """Where a new workbook goes that may not take the place of the old one: a name that is free, or says the same."""
    number = 1
    while True:
        tail = f" {number}" if number > 1 else ""
        found = path.with_name(f"{path.stem} (new{tail}){path.suffix}")
        if not found.exists() or (found.is_file() and found.read_bytes() == data):
            return found
        number += 1


def _draft(path: Path, data: bytes) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{path.stem[:40]}-", suffix=".tmp", dir=path.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_mask()
        os.chmod(draft, mode)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _check_unchanged(planned: Planned) -> None:
    now = planned.path.read_bytes() if planned.path.exists() else None
    if now != planned.before:
        raise ValueError(f"{one_line(str(planned.path))} has changed since it was read; run the command again")


def _move(draft: Path, path: Path) -> None:
    try:
        os.replace(draft, path)
    except PermissionError as error:
        raise ValueError(
            f"{one_line(str(path))} cannot be replaced ({error.strerror}); close it in Excel and other programs"
        ) from error


def _put_back(planned: Planned) -> None:
    if planned.before is None:
        planned.path.unlink()
    else:
        os.replace(_draft(planned.path, planned.before), planned.path)

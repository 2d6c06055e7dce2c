"""Which file a path in a cell means: a config.json within folders that the user has allowed, and nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ..formula.domains import told

_DRIVE = re.compile(r"[A-Za-z]:/")


def config_within(folders: Sequence[Path], text: str) -> Path:
    """The config.json that a path means: a *.json file, or the one in a folder; relative to a folder, or whole.

    Links are followed, and where they end must lie in the same folder. Nothing outside the folders is looked at: a
    network path is refused before the system sees it. Raises ValueError with what is right.
    """
    path = text.replace("\\", "/")
    if path.startswith("//"):
        raise ValueError(f"{told(text)} is a network path; it must be a path within an allowed folder")
    drive = _DRIVE.match(path)
    rest = path[3:] if drive else path
    if ".." in rest.split("/") or ":" in rest or any(ord(letter) < 32 for letter in rest):
        raise ValueError(f"{told(text)} is no plain path; it must have no '..', no colon and no control character")
    whole = bool(drive) or path.startswith("/")
    for folder in folders:
        found = _within(folder, Path(path) if whole else folder / path)
        if found is not None:
            return found
    listed = "; ".join(map(str, folders))
    raise ValueError(f"{told(text)} is no config.json in an allowed folder; these are allowed: {listed}")


def _within(folder: Path, path: Path) -> Path | None:
    """The file, where it is there and lies in the folder; links at both ends are followed."""
    try:
        root = Path(os.path.realpath(folder))
        for candidate in (path, path / "config.json"):
            real = Path(os.path.realpath(candidate))
            if not real.is_relative_to(root):
                return None
            if candidate.suffix.casefold() == ".json" and real.is_file():
                return candidate
    except (OSError, ValueError):  # a name too long to be one
        pass
    return None

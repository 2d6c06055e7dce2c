"""Reading a TOML file of presets or of a planner's own, with every fault of it as one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .names import one_line


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file in UTF-8, with or without a byte order mark. Raises ValueError with the file."""
    import tomllib

    where = one_line(str(path))
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, not TOML
        raise ValueError(f"{where} is not TOML: {one_line(str(error))}") from None

"""Where the data lies: in a checkout beside the package, in an installed copy inside it."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def presets_folder() -> Path:
    """The folder of models, cards, formats and measured runs; FileNotFoundError when there is none."""
    return _folder("presets", "gpus.csv")


def templates_folder() -> Path:
    """The folder that says what the workbooks look like; FileNotFoundError when there is none."""
    return _folder("templates", "look.toml")


def _folder(name: str, marker: str) -> Path:
    # Only with its marker file: beside an installed package another project's "presets" may lie.
    candidates = (PACKAGE.parent / name, PACKAGE / "_data" / name)
    for folder in candidates:
        if (folder / marker).is_file():
            return folder
    raise FileNotFoundError(
        f"the {name} folder is missing; {marker} should be in {candidates[0]} or in {candidates[1]}"
    )

"""sizing-xlsx-excel.toml: what the functions in desktop Excel may use beside the catalogue.

It is the file that SIZING_XLSX_EXCEL names, else the one in %APPDATA%\\sizing-xlsx (elsewhere than on Windows
~/.config/sizing-xlsx), else nothing. One beside a workbook is never read: whoever sends a workbook could then say
which folders its formulas may read. Relative paths count from the file's folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...formula.domains import nearest, told
from ...presets.names import one_line
from ...presets.toml_file import read_toml

VARIABLE = "SIZING_XLSX_EXCEL"
FILE_NAME = "sizing-xlsx-excel.toml"
LISTS = {
    "models": "config.json files, folders with one, or folders of such",
    "gpus": "files of cards, CSV or TOML",
    "layer_forms": "files of layer forms, as derive --write makes them",
    "folders": "folders in which MODEL_FROM_CONFIG may read a config.json",
}


class Settings(NamedTuple):
    """presets: a copy of the presets folder, in place of the package's. The others: see LISTS."""

    presets: Path | None = None
    models: tuple[Path, ...] = ()
    gpus: tuple[Path, ...] = ()
    layer_forms: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()


def settings_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the settings are, or would be."""
    if named := environ.get(VARIABLE):
        return Path(named)
    if roaming := environ.get("APPDATA"):
        return Path(roaming) / "sizing-xlsx" / FILE_NAME
    base = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".config"
    return Path(base) / "sizing-xlsx" / FILE_NAME


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings; none where there is no file, but where the variable names it. Raises ValueError with the file and
    the entry."""
    file = settings_file(environ)
    if not file.exists():
        if environ.get(VARIABLE):
            raise ValueError(f"{VARIABLE} is {told(str(file))}; there is no such file")
        return Settings()
    where, content = one_line(str(file)), read_toml(file)
    for key in content:
        if key not in Settings._fields:
            known = ", ".join(Settings._fields)
            raise ValueError(
                f"{where}: {one_line(key)} is no setting; there are {known}{nearest(key, Settings._fields)}"
            )
    presets = content.get("presets")
    if presets is not None:
        (presets,) = _paths([presets], "presets", "a folder", where, file)
    return Settings(presets, *(_paths(content.get(key, []), key, LISTS[key], where, file) for key in LISTS))


def _paths(value: Any, key: str, meant: str, where: str, file: Path) -> tuple[Path, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{where}: {key} is {told(value)}; it must be a list of {meant}")
    found = []
    for entry in value:
        if not isinstance(entry, str) or not entry.strip():
            raise ValueError(f"{where}: {key} has {told(entry)}; it must be the path of {meant}")
        found.append(file.absolute().parent / Path(os.path.expandvars(entry.strip())).expanduser())
    return tuple(found)


def template() -> str:
    """A file of settings that changes nothing, with each setting explained."""
    lines = [
        "# What the functions of sizing-xlsx in desktop Excel may use. A saved change counts within seconds, and shows",
        "# when Excel calculates anew (Ctrl+Alt+F9). Relative paths count from this file's folder. Write paths of",
        "# Windows in single quotes: 'C:\\models\\ours'.",
        "",
        "# presets: a copy of the presets folder, in place of the package's own.",
        "# presets = 'presets'",
    ]
    for key, meant in LISTS.items():
        lines += ["", f"# {key}: {meant}.", f"{key} = []"]
    return "\n".join(lines) + "\n"

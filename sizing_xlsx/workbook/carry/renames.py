"""What names, sheets and choices are called since which version: presets/renames.toml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ...presets.names import one_line, shown
from ..template import read_toml
from .old_book import numbers

FILE = "renames.toml"
_KINDS = {"name": ("old", "new", "since"), "sheet": ("old", "new", "since"), "choice": ("input", "old", "new", "since")}


class Renames(NamedTuple):
    """Old -> new. choices: defined name of an input, folded -> folded old text -> new text."""

    names: Mapping[str, str]
    sheets: Mapping[str, str]
    choices: Mapping[str, Mapping[str, str]]

    def name(self, old: str) -> str:
        """What a defined name is called now."""
        return self.names.get(old.casefold(), old)

    def sheet(self, old: str) -> str:
        """What a sheet is called now."""
        return self.sheets.get(old.casefold(), old)

    def choice(self, name: str, old: str) -> str:
        """What a choice of an input is called now. name: what the input is called now."""
        return self.choices.get(name.casefold(), {}).get(old.casefold(), old)


NONE = Renames({}, {}, {})


def read_renames(folder: Path, since: str) -> Renames:
    """The renames that a workbook of that version has not seen, one after the other in the file's order.

    Raises ValueError, one sentence with the file, the entry and what is right.
    """
    path = folder / FILE
    if not path.exists():
        return NONE
    names: dict[str, str] = {}
    sheets: dict[str, str] = {}
    choices: dict[str, dict[str, str]] = {}
    where = one_line(str(path))
    found = read_toml(path)
    for kind in found:
        if kind not in _KINDS:
            raise ValueError(f"{where} holds {shown(kind)}; it should hold [[name]], [[sheet]] and [[choice]] alone")
    for kind, keys in _KINDS.items():
        for at, entry in enumerate(found.get(kind, []), 1):
            if (
                not isinstance(entry, dict)
                or set(entry) != set(keys)
                or not all(isinstance(value, str) and value for value in entry.values())
            ):
                raise ValueError(f"{where}, [[{kind}]] {at} should hold the texts {', '.join(keys)} and nothing else")
            if numbers(entry["since"]) <= numbers(since):
                continue
            into = {"name": names, "sheet": sheets}.get(kind)
            into = choices.setdefault(entry["input"].casefold(), {}) if into is None else into
            _chain(into, entry["old"], entry["new"])
    return Renames(names, sheets, choices)


def _chain(into: dict[str, str], old: str, new: str) -> None:
    for first, last in into.items():
        if last.casefold() == old.casefold():
            into[first] = new
    into.setdefault(old.casefold(), new)

"""What a rebuild did with a workbook that was there, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...presets.names import one_line, shown

_NAMES_SHOWN = 12
MADE, SAME, REPLACED, CARRIED, BESIDE = "made", "same", "replaced", "carried over", "written beside"


@dataclass
class Report:
    """Of one workbook. file: where it was written. found: what became of the one that was there.

    carried: kind -> names of what went over. changed: what means something else now. gone: what has no place any more.
    renamed: old name -> new name. lost: references that could not be followed, each with its cell.
    """

    file: Path
    found: str = MADE
    backup: Path | None = None
    carried: dict[str, list[str]] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def carry(self, kind: str, name: str) -> None:
        """Count one thing that went over."""
        self.carried.setdefault(kind, []).append(name)

    def tell(self, where: str, lost: Sequence[str]) -> None:
        """Take down the references of a cell that could not be followed."""
        self.lost += [f"{where}: {what}" for what in lost]

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "file": str(self.file),
            "found": self.found,
            "backup": str(self.backup) if self.backup else None,
            "carried": self.carried,
            "changed": self.changed,
            "gone": self.gone,
            "renamed": self.renamed,
            "lost": self.lost,
            "notes": self.notes,
        }

    def lines(self) -> list[str]:
        """The report as lines to print; the first is the file."""
        found = [str(self.file)]
        if self.carried:
            found.append("  Carried over:")
            found += [
                f"    {len(names)} {_kind(kind, len(names))}: {_listed(names)}" for kind, names in self.carried.items()
            ]
        for title, lines in (
            ("Renamed", [f"{old} is {new} now" for old, new in self.renamed.items()]),
            ("Means something else now", self.changed),
            ("No longer exists", self.gone),
            ("Could not be followed", self.lost),
        ):
            if lines:
                found += [f"  {title}:", *(f"    {line}" for line in lines)]
        found += [f"  {note}" for note in self.notes]
        if self.backup:
            found.append(f"  The file as it was: {self.backup}")
        return found


def _kind(kind: str, count: int) -> str:
    return kind if count == 1 else kind + "s"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(map(one_line, names[:_NAMES_SHOWN])) + more


def told(value: object) -> str:
    """A value as the report says it: texts in quotes, nothing as "empty"."""
    if value is None or value == "":
        return "empty"
    if isinstance(value, float):
        return f"{value:,.12g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return shown(value)

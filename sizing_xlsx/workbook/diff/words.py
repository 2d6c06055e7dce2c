"""A difference as lines to read, and as plain values."""

from __future__ import annotations

from typing import Any

from ...presets.names import counted
from ..carry.report import told
from .compare import FORMULA, INPUT, PRESET, Cause, Difference, Moved

_TITLES = {INPUT: "Inputs", PRESET: "Presets", FORMULA: "Formulas"}


def lines(found: Difference) -> list[str]:
    """The answer as lines: what moved with its shares, then what changed."""
    old, new = found.old, found.new
    text = [f"{old.where} ({old.version}) → {new.where} ({new.version}), {old.job}"]
    if not found.moved:
        text.append("No result moved.")
    else:
        text.append(f"{counted(len(found.moved), 'result')} moved:")
        text += [line for moved in found.moved for line in _moved(moved)]
    for kind, title in _TITLES.items():
        causes = [cause for cause in found.changed if cause.kind == kind]
        if causes:
            text.append(f"{title} that changed:")
            text += [f"  {line}" for cause in causes for line in _cause(cause)]
    return [*text, *(f"Note: {note}." for note in found.notes)]


def _moved(moved: Moved) -> list[str]:
    if not isinstance(moved.new, (int, float)):
        by = " by " + ", ".join(f"{cause.kind} {cause.name}" for cause in moved.shares) if moved.shares else ""
        return [f"  {moved.name}: {told(moved.old)} → {told(moved.new)}{by}"]
    whole = float(moved.old).is_integer() and float(moved.new).is_integer()
    change = _signed(moved.new - moved.old, whole)
    return [
        f"  {moved.name}: {_figure(moved.old, whole)} → {_figure(moved.new, whole)} ({change})",
        *(f"    {_signed(share, whole)} by {cause.kind} {cause.name}" for cause, share in moved.shares.items()),
    ]


def _cause(cause: Cause) -> list[str]:
    if len(cause.told) == 1:
        return [f"{cause.name}: {cause.told[0]}"]
    return [f"{cause.name}:", *(f"  {line}" for line in cause.told)]


def _figure(value: float, whole: bool) -> str:
    sign = "−" if value < 0 else ""
    return f"{sign}{abs(value):,.0f}" if whole or abs(value) >= 1e6 else f"{sign}{abs(value):,.4f}"


def _signed(value: float, whole: bool) -> str:
    return _figure(value, whole) if value < 0 else f"+{_figure(value, whole)}"


def as_json(found: Difference) -> dict[str, Any]:
    """The answer as plain values: of a number the share of each kind and of each cause."""
    return {
        "old": {"file": found.old.where, "version": found.old.version},
        "new": {"file": found.new.where, "version": found.new.version},
        "job": found.old.job,
        "moved": [
            {
                "name": moved.name,
                "old": moved.old,
                "new": moved.new,
                "by": {kind: moved.share(kind) for kind in _TITLES} if isinstance(moved.new, (int, float)) else None,
                "causes": [
                    {"kind": cause.kind, "name": cause.name, "share": share} for cause, share in moved.shares.items()
                ],
            }
            for moved in found.moved
        ],
        "changed": [{"kind": cause.kind, "name": cause.name, "what": list(cause.told)} for cause in found.changed],
        "notes": found.notes,
    }

"""Units: only what must never mix.

Counts (tokens, layers, parameters, shares, switches) are dimensionless and multiply with anything. Every other
unit is a kind of its own: bytes never add to GB, GB never meets GiB unconverted. A conversion is a constant
with a unit such as "bytes per GB": bytes / (bytes per GB) gives GB.
"""

from __future__ import annotations

COUNTS = frozenset((
    "count", "counts", "tokens", "token", "rows", "row", "layers", "layer", "parameters", "parameter", "heads",
    "share", "switch", "values", "value", "experts", "steps", "step", "element",
))  # fmt: skip
KINDS = frozenset((
    "bytes", "MB", "GB", "GiB", "MiB", "seconds", "hours", "days", "years", "FLOP", "TFLOP", "W", "kWh",
    "USD", "currency", "text", "bool",
))  # fmt: skip
SINGULAR = {name[:-1]: name for name in ("seconds", "hours", "days", "years")}
TIMES = ("seconds", "hours")
RATES = {"kW": "kWh per hours", "date": "days"}  # units with a name of their own; a date is a day as sheets count


def kind_of(unit: str) -> str:
    """The kind of a unit: "tokens" -> "count", "bytes per token" -> "bytes", "bytes per GB" stays.

    Raises ValueError for a unit that is not known.
    """
    if unit in COUNTS:
        return "count"
    if unit in KINDS:
        return unit
    if unit in SINGULAR or unit in RATES:
        return SINGULAR.get(unit) or RATES[unit]
    top, per, bottom = unit.partition(" per ")
    if per:
        upper, lower = kind_of(top), kind_of(bottom)
        return upper if lower == "count" else f"{upper} per {lower}"
    raise ValueError(f"unit {unit!r} is not known; known are {', '.join(sorted(COUNTS | KINDS))} and 'a per b'")


def same(a: str | None, b: str | None, where: str) -> str | None:
    """The common kind of two operands; None is the kind of a literal zero and meets anything."""
    if a is None or b is None or a == b:
        return b if a is None else a
    raise TypeError(f"{where}: {a} meets {b}")


def product(a: str | None, b: str | None) -> str | None:
    """The kind of a * b."""
    if a == "count" or a is None:
        return b
    if b == "count" or b is None:
        return a
    for rate, other in ((a, b), (b, a)):
        top, per, bottom = rate.partition(" per ")
        if per and bottom == other:
            return top
        if per and other.startswith(f"{bottom} per "):  # kW × currency per kWh: currency per hour
            return f"{top}{other.removeprefix(bottom)}"
    raise TypeError(f"{a} * {b} has no meaning")


def quotient(a: str | None, b: str | None) -> str | None:
    """The kind of a / b."""
    if b == "count" or b is None:
        return a
    if a == b:
        return "count"
    top, per, bottom = b.partition(" per ")
    if per and (a == top or a is None):
        return bottom
    if a is None:
        return None
    upper, _, lower = a.partition(" per ")
    if upper == b and lower in TIMES:  # work a second over work a token: tokens a second
        return f"count per {lower}"
    if not lower and b in TIMES:
        return f"{a} per {b}"
    raise TypeError(f"{a} / {b} has no meaning")

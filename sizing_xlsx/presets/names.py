"""Text from files: what may serve as a name in a sheet, and how a sentence shows a value or a number of things."""

from __future__ import annotations

import json

MAXIMUM_LENGTH = 200


def one_line(text: str) -> str:
    """The text with what does not print written as escapes, so that a sentence stays one line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(number: float, one: str, many: str = "") -> str:
    """A number with what it counts: "1 card", "1,024 cards". many: where it is not the one with an s."""
    said = f"{number:,.0f}"
    return f"{said} {one if said == '1' else many or one + 's'}"


def shown(value: object) -> str:
    """A value as an error sentence shows it: JSON notation, one line, at most about 60 characters."""
    if isinstance(value, str):
        cut = value if len(value) <= 60 else value[:60] + "…"
        return '"' + one_line(cut.replace('"', '\\"')) + '"'
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 128 else f"a number of {value.bit_length()} bits"
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"of type {type(value).__name__}"


def checked_name(value: str, where: str, what: str) -> str:
    """The value, when a sheet can look it up and no program takes it for a formula; else ValueError.

    = + - @ at the start make a formula of a pasted or exported cell; * ? ~ are wildcards of MATCH; what does
    not print (control characters, line ends, text-direction marks, half characters) breaks files or deceives.
    """
    stripped = value.strip()
    if not stripped:
        raise ValueError(f"{where}: {what} is empty; it should be a name")
    if stripped != value:
        raise ValueError(f"{where}: {what} is {shown(value)}; a name may not begin or end with a space")
    if len(value) > MAXIMUM_LENGTH:
        raise ValueError(
            f"{where}: {what} is {shown(value)}, {len(value):,} characters long; a name has at most {MAXIMUM_LENGTH}"
        )
    if stripped[0] in "=+-@" or any(c in "*?~" for c in value) or not value.isprintable():
        raise ValueError(
            f"{where}: {what} is {shown(value)}; a name may not begin with = + - @ or hold * ? ~ or control characters"
        )
    return value

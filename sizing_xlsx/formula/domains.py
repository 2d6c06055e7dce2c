"""What an input may be, declared once: from it come the ValueError in Python and the words a user reads.

(The dropdown, the bounds and the fault cell of a sheet are made from the same declaration by workbook/.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container
from datetime import date, datetime, time, timedelta
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from .declare import Choice, Number, Whole, label_of

if TYPE_CHECKING:
    from .job import Job

_LARGEST = 2**53  # whole numbers beyond are no exact numbers of a sheet
_PART = re.compile(r"[a-z]+|\d+(?:\.\d+)*")  # words and numbers of a name
_DAY_0 = date(1899, 12, 30)  # of sheets; right from 1 March 1900 on


def allowed(job: Job, key: str) -> str:
    """What is right, in words: "a whole number from 1 to 65,536"."""
    domain = job.inputs[key].domain
    if isinstance(domain, Choice):
        keys = job.tables[domain.table].keys
        if len(keys) <= 8:
            return "one of " + ("; " if any("," in key for key in keys) else ", ").join(keys)
        return f"one of the {len(keys)} {label_of(domain.table, capital=False)} listed"
    unit = job.inputs[key].unit
    tail = f" {unit}" if unit in ("GB", "GiB", "hours", "USD", "currency") else ""
    if isinstance(domain, Number):
        return f"a number from {domain.low:,.12g} to {domain.high:,.12g}{tail}"
    if domain.day and not isinstance(domain.high, str):
        return f"a date from {date_of(domain.low)} to {date_of(domain.high)}"
    high = f"the {domain.high.replace('_', ' ')}" if isinstance(domain.high, str) else f"{domain.high:,}"
    word = f' or "{domain.word}"' if domain.word else ""
    return f"a whole number from {domain.low:,} to {high}{word}"


def usual(job: Job, key: str) -> tuple[type, Container[Any]]:
    """A type, and the values of that type that accept() takes as they are; a look there is much faster."""
    domain = job.inputs[key].domain
    if isinstance(domain, Choice):
        return str, frozenset(job.tables[domain.table].keys)
    high = _LARGEST if isinstance(domain.high, str) else min(floor(domain.high), 2**62)
    return int, range(ceil(domain.low), high + 1)


def told(value: Any) -> str:
    """A refused value as a message names it: its repr, cut where it would fill the screen."""
    try:
        text = repr(value)
    except ValueError:  # Python writes out no integer of more than 4,300 digits
        return "an integer of thousands of digits"
    return text if len(text) <= 200 else text[:199] + "…"


def accept(job: Job, key: str, value: Any) -> Any:
    """The value as formulas take it, or ValueError with the argument, its value and what is right."""
    if key not in job.inputs:
        raise no_input(job, key)
    declared = job.inputs[key]
    if value is None and declared.optional:
        return None
    domain = declared.domain
    if isinstance(domain, Choice):
        return _accept_choice(job, key, value, domain)
    if isinstance(domain, Whole) and domain.day:
        value = day_of(value)
    if isinstance(domain, Whole) and domain.word and isinstance(value, str):
        if value.casefold() == domain.word:
            return domain.word
    elif (number := plain_number(value)) is not None:
        high = _LARGEST if isinstance(domain.high, str) else domain.high
        if domain.low <= number <= high and (isinstance(domain, Number) or number == int(number)):
            return int(number) if isinstance(domain, Whole) else number  # 2.0 cards are 2
    raise ValueError(f"{key} is {told(value)}; it must be {allowed(job, key)}")


def no_input(job: Job, key: Any) -> TypeError:
    """What to raise for a name that is no input of a job: it names the most alike of those that are."""
    alike = tuple(name for name in job.inputs if str(key) in name and name not in job.beside)
    return TypeError(f"{key} is no input of {job.name}{nearest(key, alike or tuple(job.inputs))}")


def typed(text: str) -> int | float | str:
    """What is typed: a number where the text is one, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def day_of(value: Any) -> Any:
    """A date, the midnight of one, or a text such as 2026-08-17, as sheets count days; all else as it is."""
    if type(value).__name__ == "datetime64":  # NumPy's
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime) and value == value and value == datetime.combine(value.date(), time()):
        value = value.date()
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value.strip())
        except ValueError:
            return value
    return (value - _DAY_0).days if type(value) is date else value


def date_of(day: float) -> date:
    """The date that sheets count as this day."""
    return _DAY_0 + timedelta(days=int(day))


def plain_number(value: Any) -> int | float | None:
    """The value as Python's own int or float; None for all else, truth values, NaN and infinities among it.

    NumPy's narrow integers overflow in a product, and its float32 rounds: no formula may meet them.
    """
    if getattr(value, "ndim", 0) != 0:
        return None
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        return None
    try:
        number = value if isinstance(value, int) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None


def _accept_choice(job: Job, key: str, value: Any, domain: Choice) -> str:
    table = job.tables[domain.table]
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, bool) and set(table.keys) == {"Off", "On"}:
        return "On" if value else "Off"
    if isinstance(value, str):
        row = table.index.get(value.casefold())
        if row:
            return table.keys[row - 1]
    raise ValueError(f"{key} is {told(value)}; it must be {allowed(job, key)}{nearest(value, table.keys, 3)}")


def nearest(value: Any, names: tuple[str, ...], most: int = 1) -> str:
    """ "; did you mean …?" with the most alike of the names; empty when none is alike.

    A name that has every word and number of the value is more alike than one that is spelled like it: "a100 80gb" is
    an A100. most: how many of such are told where the value leaves open which is meant.
    """
    if not isinstance(value, str):
        return ""
    found = _with_every_part(value, names)
    if not found:
        text = value.casefold().strip()
        inside = [name for name in names if text and text in name.casefold()]
        found = sorted(inside, key=len)[:1] or _spelled_alike(value, names)
    told = found[:most]
    return f"; did you mean {' or '.join(filter(None, (', '.join(told[:-1]), told[-1])))}?" if told else ""


def _with_every_part(value: str, names: tuple[str, ...]) -> list[str]:
    """The names that have all words and numbers of the value: the one that has no others, else all, least others first.

    What stands before a slash, the owner of a model, may be left out.
    """
    asked = Counter(_PART.findall(value.casefold()))
    tails = {name: Counter(_PART.findall(name.casefold().rpartition("/")[2])) for name in names}
    same = [name for name, tail in tails.items() if asked and asked == tail]
    has = [name for name in names if asked and asked <= Counter(_PART.findall(name.casefold()))]
    if same:
        return same[:1]
    found = list[str]()
    for name in sorted(has, key=lambda name: (tails[name].total(), len(name))):
        if not any(name.startswith(f"{whole} ") for whole in found):  # a slice of a card that is told already
            found.append(name)
    return found


def _spelled_alike(value: str, names: tuple[str, ...]) -> list[str]:
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in names}
    tails = {name.rpartition("/")[2]: whole for name, whole in folded.items()}
    found = get_close_matches(value.casefold(), [*folded, *tails], 1, 0.5)
    return [folded.get(one) or tails[one] for one in found]

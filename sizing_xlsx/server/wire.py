"""JSON of a request to calls, and answers to JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from pydantic_core import from_json

from ..functions import Fault

LONGEST_NAME = 64
MOST_ARGUMENTS = 255  # Excel's own bound
CELLS = (str, int, float, bool, type(None))
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # of a pair too, as some clients write what is beyond U+FFFF
NOT_FINITE = {"error": "#VALUE!", "message": "the result is no finite number"}


class Refused(Exception):
    """A request that is not answered: an HTTP status and one sentence that quotes nothing of the request's cells."""

    def __init__(self, status: int, sentence: str, retry_after: float = 0.0) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_after = status, sentence, retry_after


def parsed(body: bytes) -> Any:
    """A JSON text; Refused for one that is none, is nested too deep, or holds NaN or an infinity."""
    try:
        return from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        raise _no_json() from None


def _parsed_with_halves(body: bytes) -> Any:
    r"""The same, where texts may hold halves of a character, `\ud800`: the calls that hold one are refused alone."""
    if not _HALF.search(body):
        return parsed(body)
    try:
        return json.loads(body.decode(), parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError):
        raise _no_json() from None


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("not finite")
    return number


def _no_json() -> Refused:
    return Refused(400, "the body is no JSON, is nested too deep, or holds a number that is not finite")


def calls_of(body: bytes, most: int) -> list[tuple[str, list[Any]]]:
    """The calls of a request, of each the name and the arguments; Refused with the place that is wrong."""
    content = _parsed_with_halves(body)
    calls = content.get("calls") if isinstance(content, dict) and len(content) == 1 else None
    if not isinstance(calls, list):
        raise Refused(422, 'the body is of another form; it must be {"calls": [{"function": …, "arguments": […]}, …]}')
    if len(calls) > most:
        raise Refused(413, f"calls has {len(calls):,} entries; this key may send {most:,} in a request")
    return [_call(at, call) for at, call in enumerate(calls)]


def _call(at: int, call: Any) -> tuple[str, list[Any]]:
    if not isinstance(call, dict) or len(call) != 2:
        raise Refused(422, f"calls[{at}] must be an object with function and arguments, and nothing else")
    name, given = call.get("function"), call.get("arguments")
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        raise Refused(422, f"calls[{at}].function must be a text of at most {LONGEST_NAME} characters")
    if not isinstance(given, list) or len(given) > MOST_ARGUMENTS or not all(map(_is_cell, given)):
        words = "texts, numbers, truth values, nulls and ranges"
        raise Refused(422, f"calls[{at}].arguments must be a list of at most {MOST_ARGUMENTS} {words}")
    return name, given


def _is_cell(value: Any) -> bool:
    if isinstance(value, list):  # a range: rows of cells
        return all(isinstance(row, list) and all(isinstance(cell, CELLS) for cell in row) for row in value)
    return isinstance(value, CELLS)


def answers_to(answers: Sequence[Any], digest: str) -> bytes:
    """The body of the reply."""
    return json.dumps({"data": digest, "answers": [_told(each) for each in answers]}, separators=(",", ":")).encode()


def _told(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Fault):
        return {"error": answer.code, "message": str(answer)}
    if isinstance(answer, float) and not math.isfinite(answer):
        return NOT_FINITE
    if isinstance(answer, list):
        return {"value": [[_finite(cell) for cell in row] for row in answer]}
    return {"value": answer}


def _finite(cell: Any) -> Any:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell

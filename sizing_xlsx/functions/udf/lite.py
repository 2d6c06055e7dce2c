"""The functions in xlwings Lite, whose Python runs in the browser that Excel's add-ins run in.

Lite takes functions from the workbook's own main.py. lite_text.py writes that; what it writes calls this module, which
needs nothing but the standard library and Lite's xlwings.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from .. import default_desk, registered
from .answer import answer
from .facade import Made, explained


def with_help(made: Made) -> Made:
    """Decorate a function of main.py: it gets its help. ValueError where it is of another version of the package."""
    name, parameters = made.__name__, tuple(inspect.signature(made).parameters)
    function = registered().get(name)
    if function is None or function.arguments != parameters:
        raise ValueError(f"{name} of main.py is of another version; `sizing-xlsx excel lite` writes it anew")
    return explained(made, function, default_desk())


def answered(name: str, given: Mapping[str, Any]) -> Any:
    """The value of a call, or its sentence. given: the arguments by name, None for one that is left out."""
    function = registered()[name]
    return answer(function, [given[argument] for argument in function.arguments], default_desk)

"""The functions as xlwings imports them: "UDF Modules" is this module's name. Each is made from the registry.

Outside Windows, where xlwings has no functions of cells, they are plain Python functions.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import xlwings

from .. import default_desk, registered
from ..faults import Fault
from ..signature import Function
from . import failures
from .answer import answer
from .facade import explained
from .source import Source

CATEGORY = "GPU memory sizing"
_SOURCE = Source()


def _made(function: Function) -> Callable[..., Any]:
    """One function as xlwings takes it: arguments arrive as rows of cells, errors among them by name."""

    def from_excel(*given: Any) -> Any:
        return answer(function, given, _SOURCE.desk)

    optional = function.arguments[function.required :]
    from_excel.__name__ = from_excel.__qualname__ = function.name
    from_excel.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None if name in optional else Parameter.empty)
            for name in function.arguments
        ]
    )
    explained(from_excel, function, _help_desk)
    return xlwings.func(category=CATEGORY)(from_excel)  # last, for each argument sets the category back


try:
    _help_desk = _SOURCE.desk()
except Fault:  # every cell will say so; the functions have to be there for that
    _help_desk = default_desk()
failures.log_to(_SOURCE.log)
globals().update({name: _made(function) for name, function in registered().items()})

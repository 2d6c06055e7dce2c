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
from ..signature import Function, described
from . import failures, help
from .answer import answer
from .source import SOURCE

CATEGORY = "GPU memory sizing"


def _made(function: Function) -> Callable[..., Any]:
    """One function as xlwings takes it: arguments arrive as rows of cells, errors among them by name."""

    def from_excel(*given: Any) -> Any:
        return answer(function, given, SOURCE.desk)

    optional = function.arguments[function.required :]
    from_excel.__name__ = from_excel.__qualname__ = function.name
    from_excel.__doc__ = help.of_function(function)
    from_excel.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None if name in optional else Parameter.empty)
            for name in function.arguments
        ]
    )
    made = xlwings.func(category=CATEGORY)(from_excel)
    for argument in described(function, _help_desk):
        made = xlwings.arg(argument.name, doc=help.of_argument(argument), ndim=2, err_to_str=True)(made)
    return xlwings.ret()(made)


try:
    _help_desk = SOURCE.desk()
except Fault:  # every cell will say so; the functions have to be there for that
    _help_desk = default_desk()
failures.log_to(SOURCE.log)
globals().update({name: _made(function) for name, function in registered().items()})

"""What a function of cells needs of xlwings beside its decorator: help, and arguments that arrive as rows of cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import xlwings

from ..desk import Desk
from ..signature import Function, described
from . import wizard

Made = TypeVar("Made", bound=Callable[..., Any])


def explained(made: Made, function: Function, desk: Desk) -> Made:
    """A Python function with the help of the Excel function that it is; error cells will reach it by their names.

    made: its parameters are the function's arguments. desk: whose names and defaults the help tells.
    """
    made.__doc__ = wizard.of_function(function)
    for argument in described(function, desk):
        xlwings.arg(argument.name, doc=wizard.of_argument(argument), ndim=2, err_to_str=True)(made)
    return made

"""The Excel functions in Python: what =GPU_FITS(...) computes, on every surface.

from sizing_xlsx import functions

functions.call("GPU_FITS", "Llama-3.1-8B", "H100 SXM5 80GB", 8, 2048)
functions.call("GPU_MEMORY", "Llama-3.1-8B", "H100 SXM5 80GB", 8, 2048, item="Activations", job="QLoRA")

faults      what a function says where it cannot answer
values      values as a spreadsheet hands them over
names       which name of a list a text means
vocabulary  presets/functions.toml: job keywords, order of arguments, further words
config_paths  which files MODEL_FROM_CONFIG may read
desk        the catalogue and its jobs, and what the arguments of a call mean over them
signature   what a function is
kinds       what surfaces that hold formulas need to know of a function
question    what a call asks of a job, apart from how it is computed
registry    the functions by name; they stand in of_jobs, of_cards, of_models and of_runs
page        the functions as a reader meets them: help, docs/functions.md
batch       many calls at once
chain       terms of a job as LAMBDA names, each within Excel's limits
udf         the functions in desktop Excel and in xlwings Lite
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..formula.domains import nearest, told
from .faults import CODES, UNKNOWN, WRONG, Fault
from .values import arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .desk import Desk
    from .signature import Function

__all__ = ["CODES", "UNKNOWN", "WRONG", "Fault", "call", "default_desk", "found", "registered", "values_of"]


@lru_cache(maxsize=1)
def registered() -> dict[str, Function]:
    """Every function by its name, in alphabetical order."""
    from importlib import import_module

    from .registry import FUNCTIONS

    for module in ("of_jobs", "of_cards", "of_models", "of_runs"):  # each registers its own
        import_module(f"{__name__}.{module}")

    return dict(sorted(FUNCTIONS.items()))


@lru_cache(maxsize=1)
def default_desk() -> Desk:
    """The functions over the catalogue that travels with the package."""
    from .desk import Desk

    return Desk()


def found(name: str) -> Function:
    """A function by its name, without regard to case; Fault where there is none."""
    known = registered()
    function = known.get(name.upper()) if isinstance(name, str) else None
    if function is None:
        raise Fault(WRONG, f"function is {told(name)}; there is none of that name{nearest(name, tuple(known))}")
    return function


def values_of(function: Function, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, without the blank ones; Fault where one is lacking or cannot be taken."""
    values = arguments(function.name, function.arguments, given, named)
    for needed in function.arguments[: function.required]:
        if needed not in values:
            raise Fault(WRONG, f"{needed} is empty; {function.name} needs it")
    return values


def call(name: str, *given: Any, at: Desk | None = None, **named: Any) -> Any:
    """The value of a function: a truth value, a number, a text, or a table as a list of rows, its headings first.

    name: without regard to case. given, named: its arguments; blank ones count as left out. at: the catalogue that it
    is asked of. Raises Fault, with the code and one sentence that names the argument, its value and what is right.
    batch.call_many answers many calls at once.
    """
    function = found(name)
    return function.compute(at or default_desk(), values_of(function, given, named))

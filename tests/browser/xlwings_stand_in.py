"""What stands for the xlwings of xlwings Lite: its decorators, and the arguments as its documentation describes them."""

from __future__ import annotations

FUNCTIONS = {}


def func(function):
    """A function of cells."""
    FUNCTIONS[function.__name__] = function
    return function


def arg(name, *, doc, ndim, err_to_str):
    """The options of an argument, kept beside the function."""

    def kept(function):
        vars(function).setdefault("options", {})[name] = {"doc": doc, "ndim": ndim, "err_to_str": err_to_str}
        return function

    return kept


def called(name, given):
    """A call from a cell: values arrive as rows of rows (ndim=2), None for what is left out."""
    return FUNCTIONS[name](*(None if value is None else [[value]] for value in given))

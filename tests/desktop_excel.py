"""xlwings as it runs on Windows, with pywin32 alone stood in for. Import it in a process of its own, before xlwings.

Real: the decorators' metadata, the VBA that is generated, the conversion of arguments and results (xlwings.udfs,
xlwings._xlwindows). Stood in for: COM, and the ranges of cells that Excel hands over.
"""

from __future__ import annotations

import asyncio.subprocess  # noqa: F401 - what picks a platform at its import does so before it is changed
import concurrent.futures.thread  # noqa: F401
import ctypes
import logging.handlers  # noqa: F401
import sys
import tempfile  # noqa: F401
from datetime import datetime
from types import ModuleType
from typing import Any

RANGE = "{00020846-0000-0000-C000-000000000046}"
MISSING = -2147352572  # what an argument that is left out arrives as
NA, DIV0, SPILL = -2146826246, -2146826281, -2146826243  # error cells


class TimeType(datetime):
    """A date as COM hands it over."""


class ComError(Exception):
    """What pywin32 raises."""


class Com:
    """Any object of Excel's that is asked for nothing but the next one."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self

    def __getitem__(self, key: object) -> Any:
        return self


class Module(ModuleType):
    """A module of pywin32."""

    __path__: list[str] = []  # noqa: RUF012 - it holds modules

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Com()


class RangeType(Com):
    """What tells COM that an object is a range."""

    iid = RANGE


class Count(Com):
    """Rows or columns of a range."""

    def __init__(self, count: int) -> None:
        self.Count = count


class Cells:
    """A range of cells: Value is what COM gives, one value or a tuple of rows."""

    _oleobj_, Worksheet, Row, Column = RangeType(), Com(), 1, 1

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self.Value = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else rows
        self.Rows, self.Columns = Count(len(rows)), Count(len(rows[0]))


def _stand_in() -> ModuleType:
    """xlwings, imported as on Windows."""
    names = (
        "pythoncom", "pywintypes", "win32api", "win32con", "win32event", "win32gui", "win32process", "win32timezone",
        "win32com", "win32com.client", "win32com.client.dynamic", "win32com.client.gencache", "win32com.server",
        "win32com.server.dispatcher", "win32com.server.policy", "win32com.server.util", "win32com.server.exception",
        "winreg",
    )  # fmt: skip
    for name in names:
        module: Any = Module(name)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    process: Any = sys.modules["win32process"]
    process.GetWindowThreadProcessId = lambda handle: (1, 1)
    times: Any = sys.modules["pywintypes"]
    times.TimeType, times.com_error, times.IID = TimeType, ComError, str
    client: Any = sys.modules["win32com.client"]
    client.CDispatch, client.DispatchBaseClass, client.CoClassBaseClass = (type(name, (), {}) for name in "ABC")
    client.Dispatch = lambda value, *rest, **named: value
    policy: Any = sys.modules["win32com.server.policy"]
    policy.DefaultPolicy = type("DefaultPolicy", (), {})
    for name in ("matplotlib", "numpy", "pandas", "PIL", "plotly", "polars"):  # that xlwings takes where they are
        sys.modules[name] = None  # type: ignore[assignment]
    sys.modules["pythoncom"].__file__ = "pythoncom"
    library: Any = ctypes
    library.windll = library.oledll = Com()
    library.WINFUNCTYPE = library.CFUNCTYPE
    loader, library.PyDLL = library.PyDLL, Com()
    platform, sys.platform = sys.platform, "win32"
    try:
        import xlwings
    finally:
        sys.platform, library.PyDLL = platform, loader
    return xlwings


xlwings = _stand_in()

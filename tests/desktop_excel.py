"""xlwings as it runs on Windows, with pywin32 alone stood in for, in a process of its own so that nothing leaks.

Real: the decorators' metadata, the VBA that is generated, the conversion of arguments and results (xlwings.udfs,
xlwings._xlwindows). Stood in for: COM, and the ranges of cells that Excel hands over.

asked() runs steps in such a process: {"facts": …}, {"vba": name}, {"import": [add-in, module]},
{"call": name, "given": [...]} or {"command": [...], "machine": …}; as a program this file reads them as JSON and writes what each gave.
"""

from __future__ import annotations

import asyncio.subprocess  # noqa: F401 - what picks a platform at its import does so before it is changed
import concurrent.futures.thread  # noqa: F401
import contextlib
import ctypes
import io
import json
import logging.handlers  # noqa: F401
import os
import subprocess
import sys
import tempfile  # noqa: F401
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

RANGE = "{00020846-0000-0000-C000-000000000046}"
MISSING = -2147352572  # what an argument that is left out arrives as
ERRORS = {"#N/A": -2146826246, "#DIV/0!": -2146826281, "#SPILL!": -2146826243}  # what error cells arrive as
CHECKOUT = Path(__file__).resolve().parent.parent


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


def as_on_windows() -> ModuleType:
    """xlwings, imported as on Windows, once in a process and before anything else imports it."""
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


# ---------------------------------------------------------------------- what a test asks for
def cells(*rows: Sequence[Any]) -> dict[str, Any]:
    """A range, as an argument of a call. In it, as alone: {"error": "#N/A"}, {"date": "2026-11-30"}, {"money": "8"}."""
    return {"cells": rows}


def asked(*steps: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> list[Any]:
    """What each step gave, in one process."""
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(steps),
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **(environ or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


# ---------------------------------------------------------------------- in the process
def _handed_over(value: Any) -> Any:
    """An argument as COM hands it over."""
    if not isinstance(value, dict):
        return float(value) if type(value) is int else value
    ((kind, content),) = value.items()
    return {
        "cells": lambda: Cells(*(tuple(map(_handed_over, row)) for row in content)),
        "missing": lambda: MISSING,
        "error": lambda: ERRORS[content],
        "date": lambda: TimeType.fromisoformat(content),
        "money": lambda: Decimal(content),
    }[kind]()


def _facts() -> dict[str, Any]:
    from sizing_xlsx.functions.udf import excel

    found = {
        name: getattr(excel, name).__xlfunc__ for name in dir(excel) if hasattr(getattr(excel, name), "__xlfunc__")
    }
    return {
        name: {
            "help": facts["ret"]["doc"],
            "category": facts["category"],
            "arguments": [
                {**{key: argument[key] for key in ("name", "doc", "options")}, "optional": "optional" in argument}
                for argument in facts["args"]
            ],
        }
        for name, facts in found.items()
    }


def _command(words: Sequence[str], facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a command prints on a machine. facts: its folders; the values of its registry by their name."""
    import argparse

    from sizing_xlsx.functions.udf import command
    from sizing_xlsx.functions.udf.places import Machine

    registry = facts["registry"]
    machine = Machine(
        facts.get("system", "Windows"),
        {"APPDATA": facts["appdata"]},
        lambda hive, key, name: registry.get(name or key.rpartition("\\")[2]),
        Path(facts["python"]),
        Path(facts["python"]).parent,
    )
    parser = argparse.ArgumentParser()
    command.add(parser)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            status: int | str = command.run(parser.parse_args(words), machine)
        except ValueError as error:
            status = str(error)
    return {"status": status, "lines": printed.getvalue().splitlines()}


class Workbook(Com):
    """An add-in that is open in Excel, and what is done with it."""

    def __init__(self) -> None:
        self.__dict__.update(done=[], described={})

    def __setattr__(self, name: str, value: Any) -> None:
        self.done.append(f"{name} {value}")

    def Import(self, path: str) -> None:
        self.done.append(f"import {path}")

    def MacroOptions(self, macro: str, **facts: Any) -> None:
        self.described[macro] = [facts["Description"], facts["Category"], facts["ArgumentDescriptions"]]

    def open(self, path: str) -> Any:
        self.done.append(f"open {path}")
        return self

    def save(self) -> None:
        self.done.append("save")

    def close(self) -> None:
        self.done.append("close")


def _imported(addin: str, module: str) -> dict[str, Any]:
    """What importing the functions does in Excel."""
    import xlwings

    from sizing_xlsx.functions.udf import install

    book = Workbook()

    @contextlib.contextmanager
    def app(**options: Any) -> Iterator[Any]:
        yield book
        book.done.append("quit")

    xlwings.App = app
    install.import_through_excel(Path(addin), Path(module))
    return {"done": book.done, "described": book.described}


def _done(step: Mapping[str, Any]) -> Any:
    from sizing_xlsx.functions.udf import MODULE, vba

    if "facts" in step:
        return _facts()
    if "vba" in step:
        return vba.module_text(step["vba"])
    if "import" in step:
        return _imported(*step["import"])
    if "command" in step:
        return _command(step["command"], step["machine"])
    given = tuple(map(_handed_over, step["given"]))
    from xlwings import udfs

    arguments = len(udfs.get_udf_module(MODULE, None).__dict__[step["call"]].__xlfunc__["args"])
    left_out = (MISSING,) * (arguments - len(given))  # VBA hands over what was left out, too
    return udfs.call_udf(MODULE, step["call"], given + left_out)


if __name__ == "__main__":
    as_on_windows()
    json.dump([_done(step) for step in json.load(sys.stdin)], sys.stdout)

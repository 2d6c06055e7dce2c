"""A Windows machine as far as it is asked: where things lie, what its registry says. A test gives one of its own."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...paths import PACKAGE
from .settings import FILE_NAME

USER, MACHINE, CLASSES = "HKEY_CURRENT_USER", "HKEY_LOCAL_MACHINE", "HKEY_CLASSES_ROOT"
Registry = Callable[[str, str, str], Any]  # hive, key, name of the value ("" for the key's own) -> value or None


class Machine(NamedTuple):
    """system: "Windows", "Linux", "Darwin". executable, prefix: of the Python that the functions will run in."""

    system: str
    environ: Mapping[str, str]
    registry: Registry
    executable: Path
    prefix: Path

    @property
    def interpreter(self) -> Path:
        """The Python that Excel starts: without a window, where there is such a one."""
        quiet = self.executable.with_name("pythonw.exe")
        return quiet if quiet.is_file() else self.executable


class Places(NamedTuple):
    """startup: the folder whose add-ins Excel loads. data: the user's folder of this product."""

    startup: Path
    data: Path

    @property
    def addin(self) -> Path:
        """The add-in."""
        return self.startup / "sizing-xlsx.xlam"

    @property
    def module(self) -> Path:
        """The functions in VBA, for Excel to import."""
        return self.data / "sizing-xlsx-functions.bas"

    @property
    def settings(self) -> Path:
        """sizing-xlsx-excel.toml."""
        return self.data / FILE_NAME

    @property
    def record(self) -> Path:
        """What install wrote."""
        return self.data / "sizing-xlsx-excel-install.json"


def this_machine() -> Machine:
    """The machine that this runs on."""
    return Machine(platform.system(), os.environ, windows_registry, Path(sys.executable), Path(sys.prefix))


def places(machine: Machine, startup: Path | None = None) -> Places:
    """Where things go for the user. startup: a folder of add-ins in place of Excel's own XLSTART of the user."""
    roaming = machine.environ.get("APPDATA")
    if not roaming:
        raise ValueError("APPDATA is not set; Windows sets it to the user's folder of application data")
    return Places(startup or Path(roaming) / "Microsoft" / "Excel" / "XLSTART", Path(roaming) / "sizing-xlsx")


def package_folder() -> Path:
    """The folder from which Python imports this package."""
    return PACKAGE.parent


def windows_registry(hive: str, key: str, name: str) -> Any:
    """A value of the registry, of 64 or of 32 bits; None where it is not there or may not be read."""
    import winreg

    reg: Any = winreg  # its names are there on Windows alone
    for view in (reg.KEY_WOW64_64KEY, reg.KEY_WOW64_32KEY):
        try:
            with reg.OpenKey(getattr(reg, hive), key, 0, reg.KEY_READ | view) as found:
                return reg.QueryValueEx(found, name)[0]
        except OSError:
            continue
    return None

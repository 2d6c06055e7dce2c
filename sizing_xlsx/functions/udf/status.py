"""What is missing or in the way of the functions in desktop Excel: a line each, with how to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from .. import registered
from ..faults import Fault
from . import XLWINGS
from .addin import holds_functions, is_ours, read_configuration
from .install import BY_HAND
from .places import CLASSES, MACHINE, USER, Machine, Places
from .settings import settings_file
from .source import Source

OK, WRONG, NOTE = "ok", "wrong", "note"
INSTALL = "run: sizing-xlsx excel install"
_OFFICE = r"Software\Microsoft\Office"
_CLICK_TO_RUN = r"SOFTWARE\Microsoft\Office\ClickToRun\Configuration"


class Finding(NamedTuple):
    """state: "ok", "wrong" (the functions cannot work) or "note". mend: what to do, "" where nothing is."""

    what: str
    state: str
    words: str
    mend: str = ""

    def line(self) -> str:
        """One line for a person."""
        return f"{self.state:6} {self.what}: {self.words}" + (f"; {self.mend}" if self.mend else "")


def findings(machine: Machine, places: Places) -> Iterator[Finding]:
    """All that is looked at, in the order in which it would fail."""
    excel = _excel(machine)
    yield excel
    yield from _trust(machine)
    yield from _python(machine, places)
    yield from _files(places)
    yield from _settings(machine)


# ---------------------------------------------------------------------- Excel
def _excel(machine: Machine) -> Finding:
    program = machine.registry(MACHINE, r"SOFTWARE\Microsoft\Windows\CurrentVersion\App Paths\excel.exe", "")
    if not program:
        return Finding("Excel", WRONG, "none is installed", "desktop Excel is needed; Excel in a browser has no Python")
    full = machine.registry(MACHINE, _CLICK_TO_RUN, "VersionToReport")
    release = str(full or _release(machine))
    return Finding("Excel", OK, f"{release}, {bits(machine)} bits, {program}")


def _release(machine: Machine) -> str:
    """The version that Office's keys of the registry have in their names."""
    current = str(machine.registry(CLASSES, r"Excel.Application\CurVer", "") or "Excel.Application.16")
    return f"{current.rpartition('.')[2]}.0"


def bits(machine: Machine) -> int:
    """Of Excel, not of Python: the library that Excel loads must have as many."""
    platform = machine.registry(MACHINE, _CLICK_TO_RUN, "Platform")
    msi = machine.registry(MACHINE, rf"SOFTWARE\Microsoft\Office\{_release(machine)}\Outlook", "Bitness")
    return 32 if "x86" in (platform, msi) else 64


def trusts_vba(machine: Machine) -> bool:
    """Whether Excel lets programs write into VBA projects: install can then import the functions itself."""
    return _security(machine, "AccessVBOM") == 1


def _security(machine: Machine, name: str, below: str = "") -> object:
    """A setting of Excel's trust centre; a policy goes before what the user chose."""
    release = _release(machine)
    for base in (r"Software\Policies\Microsoft\Office", _OFFICE):
        found = machine.registry(USER, rf"{base}\{release}\Excel\Security{below}", name)
        if found is not None:
            return found
    return None


def _trust(machine: Machine) -> Iterator[Finding]:
    centre = "File > Options > Trust Center > Trust Center Settings"
    if _security(machine, "AllLocationsDisabled", r"\Trusted Locations") == 1:
        macros = _security(machine, "VBAWarnings")
        state = WRONG if macros in (3, 4) else NOTE
        yield Finding("Macros", state, "no folder is trusted", f"allow {centre} > Trusted Locations for XLSTART")
    else:
        yield Finding("Macros", OK, "Excel trusts its XLSTART folder")
    if trusts_vba(machine):
        yield Finding("VBA project", OK, "install may import the functions itself")
    else:
        mend = f"import them by hand, or allow {centre} > Macro Settings > Trust access to the VBA project object model"
        yield Finding("VBA project", NOTE, "install may not import the functions itself", mend)


# ---------------------------------------------------------------------- Python
def _python(machine: Machine, places: Places) -> Iterator[Finding]:
    named = read_configuration(places.addin).get("Interpreter_Win", "")
    interpreter = Path(named) if named else machine.interpreter
    if not interpreter.is_file():
        yield Finding("Python", WRONG, f"{interpreter}, which the add-in names, is missing", INSTALL)
    elif interpreter != machine.interpreter:
        yield Finding("Python", NOTE, f"the add-in names {interpreter}, and this is {machine.interpreter}", INSTALL)
    else:
        yield Finding("Python", OK, str(interpreter))
    for package, right in (("xlwings", XLWINGS), ("pywin32", "")):
        try:
            found = version(package)
        except PackageNotFoundError:
            yield Finding(package, WRONG, "is not installed", 'pip install "sizing-xlsx[excel]"')
            continue
        if right and found != right:
            yield Finding(package, WRONG, f"{found}; it must be {right}", 'pip install "sizing-xlsx[excel]"')
        else:
            yield Finding(package, OK, found)
    library = f"xlwings{bits(machine)}-{XLWINGS}.dll"
    if any((folder / library).is_file() for folder in (machine.prefix, interpreter.parent, interpreter.parent.parent)):
        yield Finding("Library", OK, library)
    else:
        mend = f"pip install --force-reinstall xlwings=={XLWINGS}"
        yield Finding("Library", WRONG, f"{library} is not beside {interpreter.name}", mend)


# ---------------------------------------------------------------------- files
def _files(places: Places) -> Iterator[Finding]:
    for what, file in (("Add-in", places.addin), ("Module", places.module)):
        if not file.exists():
            yield Finding(what, WRONG, f"{file} is missing", INSTALL)
        elif not is_ours(file):
            yield Finding(what, WRONG, f"{file} is none of sizing-xlsx", "move it away, then " + INSTALL)
        else:
            yield Finding(what, OK, str(file))
    if places.addin.exists() and is_ours(places.addin):
        yield _functions(places)


def _functions(places: Places) -> Finding:
    if holds_functions(places.addin):
        return Finding("Functions", OK, f"{len(registered())}, imported into {places.addin.name}")
    mend = BY_HAND.format(addin=places.addin.name, module=places.module)
    return Finding("Functions", WRONG, f"not yet imported into {places.addin.name}", mend)


def _settings(machine: Machine) -> Iterator[Finding]:
    file = settings_file(machine.environ)
    try:
        desk = Source(machine.environ).desk()
    except Fault as fault:
        yield Finding("Settings", WRONG, str(fault), "mend that file; every function says so meanwhile")
        return
    yield Finding("Settings", OK, str(file) if file.exists() else "none; the catalogue as it is shipped")
    for own in desk.presets.own:
        if own.why_not:
            yield Finding("Own model", NOTE, f"{own.name} ({own.file}) is not offered: {own.why_not}")

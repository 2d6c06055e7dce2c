"""`sizing-xlsx excel install | status | uninstall | lite`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...output import printed
from .places import Machine, places, this_machine

WORDS = {
    "install": "put the functions into desktop Excel, for this user",
    "status": "say what is missing or in the way, a line each",
    "uninstall": "take away what install wrote",
}
INSTEAD = "the functions in the workbooks themselves and sizing_xlsx.functions in Python work here"


def add(parser: argparse.ArgumentParser) -> None:
    """The actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, words in WORDS.items():
        action = actions.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
        action.add_argument("--folder", type=Path, metavar="DIR", help="where add-ins are loaded from; Excel's XLSTART")
        if name == "status":
            action.add_argument("--json", action="store_true", help="what was found, as JSON")
    words = "print main.py for xlwings Lite, the add-in that runs Python without an installation"
    lite = actions.add_parser("lite", help=words, description=f"{words[0].upper()}{words[1:]}.")
    lite.add_argument("--wheel", default="", metavar="URL", help="where the package's wheel is fetched from; PyPI")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, machine: Machine | None = None) -> int:
    """Do it and print what was done; 1 where status finds something wrong, else 0."""
    if options.action == "lite":
        from .lite_text import main_py

        printed(main_py(options.wheel), end="")
        return 0
    machine = machine or this_machine()
    if machine.system != "Windows":
        raise ValueError(f"excel {options.action} {_cannot(options.action, machine.system)}; {INSTEAD}")
    where = places(machine, options.folder)
    if options.action == "status":
        return _status(machine, options)
    if options.action == "uninstall":
        from .install import uninstall

        print("\n".join(uninstall(where)))
        return 0
    from .install import import_through_excel, install
    from .status import trusts_vba

    print("\n".join(install(machine, where, import_through_excel if trusts_vba(machine) else None)))
    return 0


def _cannot(action: str, system: str) -> str:
    if system == "Darwin":
        return "needs Windows: Excel on a Mac has no functions of cells through xlwings"
    what = {"install": "put functions into", "status": "look at", "uninstall": "take functions out of"}[action]
    return f"needs Windows: there is no desktop Excel to {what}"


def _status(machine: Machine, options: argparse.Namespace) -> int:
    import json

    from .status import WRONG, findings

    found = list(findings(machine, places(machine, options.folder)))
    if options.json:
        print(json.dumps([finding._asdict() for finding in found], indent=2))
    else:
        print("\n".join(finding.line() for finding in found))
    return 1 if any(finding.state == WRONG for finding in found) else 0

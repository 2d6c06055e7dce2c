"""`sizing-xlsx function`: the Excel functions on the command line: a list, the help of one, or what a call gives."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from . import own_options
from .output import printed


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.description = "List the Excel functions, tell what one is, or compute a call."
    parser.add_argument("name", nargs="?", help="of a function; all are listed without one")
    parser.add_argument(
        "values",
        nargs="*",
        metavar="VALUE",
        help="its arguments in their order, or NAME=VALUE; empty ones are left out",
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="the value as JSON")
    shape.add_argument("--markdown", action="store_true", help="the reference of all functions, as docs/functions.md")
    own_options.add(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what was asked for; 1 where a call has no answer, which is told on standard error."""
    from . import functions
    from .functions import page
    from .functions.desk import Desk
    from .functions.values import number

    own = options.model or options.gpu or options.layer_forms
    desk = Desk(own_options.presets(options)) if own else functions.default_desk()
    if options.markdown:
        printed(page.markdown(desk), end="")
        return 0
    if not options.name:
        printed(page.listed())
        return 0
    function = functions.found(options.name)
    if not options.values:
        printed(page.help_of(function, desk))
        return 0
    given, named = _arguments(options.values, function.arguments)
    try:
        value = functions.call(
            function.name, *map(number, given), at=desk, **{key: number(text) for key, text in named.items()}
        )
    except functions.Fault as fault:
        print(f"{fault.code} {fault}", file=sys.stderr)
        return 1
    printed(json.dumps(value, ensure_ascii=False) if options.json else _text(value))
    return 0


def _arguments(values: list[str], known: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """Arguments in their order, and those that are named."""
    given, named = [], {}
    for value in values:
        name, sign, text = value.partition("=")
        if sign and name in known:
            named[name] = text
        else:
            given.append(value)
    return given, named


def _text(value: Any) -> str:
    from .functions.page import shown

    if isinstance(value, list):
        return "\n".join("\t".join(map(shown, row)) for row in value)
    return value if isinstance(value, str) else shown(value) if isinstance(value, bool) else repr(value)

"""`sizing-xlsx function`: the Excel functions on the command line: a list, the help of one, or what a call gives."""

from __future__ import annotations

import argparse
import json
import re
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
            function.name, *map(_typed, given), at=desk, **{key: _typed(text) for key, text in named.items()}
        )
    except functions.Fault as fault:
        print(f"{fault.code} {fault}", file=sys.stderr)
        return 1
    printed(json.dumps(value, ensure_ascii=False) if options.json else _text(value))
    return 0


_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def _arguments(values: list[str], known: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """Arguments in their order, and those that are named, in whatever case. Raises ValueError for one named twice."""
    folded = {name.casefold(): name for name in known}
    given: list[str] = []
    named: dict[str, str] = {}
    for value in values:
        found = _NAMED.fullmatch(value)
        if found is None:
            given.append(value)
            continue
        name = folded.get(found[1].casefold(), found[1])  # an unknown one is told by the call, with the nearest
        if name in named:
            raise ValueError(f"{name} is given twice, as {named[name]!r} and {found[2]!r}; it must be given once")
        named[name] = found[2]
    return given, named


def _typed(text: str) -> Any:
    """What a cell would hold after typing this: a number, TRUE or FALSE, or the text."""
    from .functions.values import number

    return {"true": True, "false": False}.get(text.casefold(), number(text))


def _text(value: Any) -> str:
    from .functions.page import shown

    if isinstance(value, list):
        return "\n".join("\t".join(map(shown, row)) for row in value)
    return value if isinstance(value, str) else shown(value) if isinstance(value, bool) else repr(value)

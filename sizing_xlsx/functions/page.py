"""The functions as a reader meets them: a line each, a page of help, and docs/functions.md; examples are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..presets.names import counted
from . import CODES, Fault, call, default_desk, registered
from .desk import Desk
from .signature import TABLE, Argument, Function, described

FEW_ENDS = 4  # arguments after a function's own that a brief line names
_MOST_ROWS = 8  # of an example's table
_MOST_TEXT = 60  # characters of a text in an example


def signature(function: Function) -> str:
    """GPU_INFO(gpu, [field]): optional arguments in brackets."""
    names = [name if at < function.required else f"[{name}]" for at, name in enumerate(function.arguments)]
    return f"{function.name}({', '.join(names)})"


def brief(function: Function, more: str) -> str:
    """The same without the function's name; more: in place of the arguments of a job after the first four."""
    shown = [name for name in function.arguments if name not in function.ends or len(function.ends) <= FEW_ENDS]
    at = function.arguments.index
    names = [name if at(name) < function.required else f"[{name}]" for name in shown]
    return ", ".join([*names, more] if len(shown) < len(function.arguments) else names)


def formula(function: Function, arguments: Mapping[str, Any]) -> str:
    """A call as it is typed into a cell; what is left out between two arguments is empty."""
    cells = [_cell(arguments[name]) if name in arguments else "" for name in function.arguments]
    while cells and not cells[-1]:
        cells.pop()
    return f"={function.name}({', '.join(cells)})"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else f"{value:.15g}"


def shown(value: Any) -> str:
    """A value of one cell as a reader sees it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) else f"{value:,.10g}"


def answer(function: Function, arguments: Mapping[str, Any], desk: Desk) -> Any:
    """What a call gives; the code and the sentence of one that is refused."""
    try:
        return call(function.name, at=desk, **arguments)
    except Fault as fault:
        return f"{fault.code} {fault}"


def listed() -> str:
    """Every function, a line each."""
    functions = registered().values()
    width = max(len(function.name) for function in functions)
    return "\n".join(f"{function.name:{width}}  {function.help}" for function in functions)


def help_of(function: Function, desk: Desk | None = None) -> str:
    """One function with its arguments and examples, as text."""
    desk = desk or default_desk()
    lines = [signature(function), "", function.help, "", "Arguments:"]
    for argument in described(function, desk):
        lines += [f"  {argument.name}: {argument.help}", f"      {allowed_of(argument)}"]
    lines += ["", f"Gives a {_result(function)}.", "", "Examples:"]
    for example in function.examples:
        lines += [
            f"  {formula(function, example)}",
            *(f"      {line}" for line in _answer_lines(function, example, desk)),
        ]
    return "\n".join(lines)


def allowed_of(argument: Argument) -> str:
    """What an argument may be, and what it is where it is left out."""
    words = f"{argument.allowed[:1].upper()}{argument.allowed[1:]}."
    if not argument.optional:
        return f"{words} Has to be given."
    return f"{words} Where it is left out: {argument.default}." if argument.default else f"{words} May be left out."


def _result(function: Function) -> str:
    kind, unit = function.result
    return f"{kind}, {unit}" if unit else kind


def _answer_lines(function: Function, example: Mapping[str, Any], desk: Desk) -> Iterator[str]:
    found = answer(function, example, desk)
    if function.result.kind != TABLE or isinstance(found, str):
        yield shown(found)
        return
    for row in found[:_MOST_ROWS]:
        yield " | ".join(map(shown, row))
    if len(found) > _MOST_ROWS:
        yield f"… and {counted(len(found) - _MOST_ROWS, 'row')} more"


# ---------------------------------------------------------------------- docs/functions.md
_HEAD = """# Excel functions

What each function is, from the one registry that Python, the workbooks' LAMBDA names and every other surface are made
from. This page is made by `python build.py function --markdown`; its examples are computed when it is made.

Names of models, cards and choices count without regard to case, and short where that is unambiguous: `Llama-3.1-8B`,
`H100 SXM5 80GB`, `nf4`. An empty cell is an argument left out. Memory is in decimal GB (1 GB = 1,000,000,000 bytes).

A call that cannot be answered gives an error:

| error | means |
|---|---|
"""


def markdown(desk: Desk | None = None) -> str:
    """docs/functions.md."""
    desk = desk or default_desk()
    parts = [_HEAD + "".join(f"| `{code}` | {words} |\n" for code, words in CODES.items())]
    parts.append(_common(desk))
    parts += [_section(function, desk) for function in registered().values()]
    return "\n".join(parts)


def _common(desk: Desk) -> str:
    """The arguments of a job, once: most functions share them."""
    fits = registered()["GPU_FITS"]
    rows = "".join(_row(argument) for argument in described(fits, desk))
    return f"## Arguments of a job\n\n{_OF_A_JOB}\n\n{_TABLE_HEAD}{rows}"


_OF_A_JOB = """\
They come in this order and are named alike everywhere. The job sets what its kind is known by (QLoRA an NF4 base, DoRA
its method); an argument that is given counts before that, so QLoRA with a bf16 base is LoRA. What the kind of job has
no use for, such as the rank of IA3, changes nothing. A workbook's own LAMBDA names answer the job of that workbook."""
_TABLE_HEAD = "| argument | what it is | what it may be |\n|---|---|---|\n"


def _row(argument: Argument) -> str:
    return f"| `{argument.name}` | {_escaped(argument.help)} | {_escaped(allowed_of(argument))} |\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _section(function: Function, desk: Desk) -> str:
    shared = set(registered()["GPU_FITS"].arguments)
    own = [argument for argument in described(function, desk) if argument.name not in shared]
    lines = [f"## {function.name}\n", f"`{signature(function)}`\n", f"{function.help} Gives a {_result(function)}.\n"]
    if own:
        lines.append(_TABLE_HEAD + "".join(map(_row, own)))
    for example in function.examples:
        lines += ["```", _short(formula(function, example)), *_answer_lines(function, example, desk), "```\n"]
    return "\n".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= 2 * _MOST_TEXT else text[: 2 * _MOST_TEXT - 1] + "…"

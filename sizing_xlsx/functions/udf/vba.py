"""What VBA can take: names, and the module of functions that xlwings generates for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from io import StringIO
from types import SimpleNamespace
from typing import Any, NamedTuple

from ..signature import Function
from . import MODULE, VBA_MODULE
from .addin import SHEET

# Words of the language, and what the generated lines and xlwings' own code call things.
RESERVED = frozenset(
    """
    abs addressof and any app array as attribute boolean byref byte byval call case cbool cbyte ccur cdate cdbl cdec
    cdecl cint circle class clng clnglng clngptr close const csng cstr currency cvar cverr date debug decimal declare
    defbool defbyte defcur defdate defdbl defdec defint deflng deflnglng deflngptr defobj defsng defstr defvar dim do
    doevents double each else elseif empty end endif enum eqv erase error event exit false fix for friend function get
    global gosub goto if imp implements in input inputb int integer is lbound len lenb let like line linkedlist lock
    long longlong longptr loop lset me mod module name new next not nothing null object on open option optional or
    paramarray preserve print private property pset public put raiseevent redim rem resume return rset scale seek
    select set sgn shared single spc static step stop strcomp string sub tab then time to true type typeof ubound
    unlock until variant wend while width with withevents write xor
    application activeworkbook caller err failed range thisworkbook xlpy
    """.split()  # noqa: SIM905
)
MOST_ARGUMENTS = 60
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,254}")
_CELL = re.compile(r"[A-Z]{1,3}\d{1,7}|R\d*C?\d*|C\d*")


def unsafe_names(functions: Mapping[str, Function]) -> list[str]:
    """What VBA or Excel would refuse of names, a sentence each. VBA tells no capitals from small letters."""
    taken = {name.casefold() for name in functions}
    found = []
    for name, function in functions.items():
        if not _NAME.fullmatch(name) or name != name.upper() or _CELL.fullmatch(name) or name.casefold() in RESERVED:
            found.append(f"{name} cannot be a function's name: it must be in capitals, no cell, no word of VBA")
        if len(function.arguments) > MOST_ARGUMENTS:
            found.append(f"{name} has {len(function.arguments)} arguments; VBA takes at most {MOST_ARGUMENTS}")
        folded = [argument.casefold() for argument in function.arguments]
        for argument in function.arguments:
            key = argument.casefold()
            if not _NAME.fullmatch(argument) or key in RESERVED or key in taken or folded.count(key) > 1:
                found.append(f"{name}: {argument} cannot be an argument's name; VBA has that word already")
    return found


def module_text(addin: str) -> str:
    """The module of VBA, one function for each of the registry; to be saved with CR LF, as Excel imports it.

    addin: the file name of the add-in that will hold it. ValueError without pywin32, which xlwings needs for it.
    """
    try:
        from xlwings import udfs
    except ImportError as error:
        raise ValueError(f'pywin32 is not installed ({error}); pip install "sizing-xlsx[excel]"') from None
    from . import excel

    file = StringIO()
    file.write(f'Attribute VB_Name = "{VBA_MODULE}"\n\'Functions of {MODULE}, generated: changes will be lost.\n')
    file.write('#Const App = "Microsoft Excel"\n')
    generate: Any = udfs.generate_vba_wrapper
    generate(MODULE, excel, file, SimpleNamespace(Name=addin))
    helps = {name: help.words for name, help in wizard_help().items()}
    return "\n".join(_guarded(file.getvalue().splitlines(), helps)) + "\n"


class Help(NamedTuple):
    """What the function wizard says of a function and of each of its arguments."""

    words: str
    category: str
    arguments: list[str]


def wizard_help() -> dict[str, Help]:
    """The wizard's texts by function, from the metadata of xlwings; needs Windows, as that does."""
    from . import excel

    found = {name: getattr(function, "__xlfunc__", None) for name, function in vars(excel).items()}
    return {
        name: Help(facts["ret"]["doc"], facts["category"], [argument["doc"] for argument in facts["args"]])
        for name, facts in found.items()
        if facts
    }


def _guarded(lines: list[str], helps: Mapping[str, str]) -> Iterator[str]:
    """The lines with, below the first of each function, what Excel shows of it, and a guard.

    xlwings' VBA takes the Python to start from a sheet of that name in the active workbook, before the add-in's own:
    whoever sends a workbook could have any program started.
    """
    name = ""
    for line in lines:
        yield line
        if begun := re.match(r"Function (\w+)\(", line):
            name = begun[1]
        if name and not line.endswith(" _"):
            words = helps[name].encode("ascii", "replace").decode().replace('"', '""')  # VBA reads no UTF-8
            yield f'Attribute {name}.VB_Description = "{words}"'
            yield f'    If SheetExists(ActiveWorkbook, "{SHEET}") Then'
            yield f'        {name} = "#VALUE! the workbook has a sheet {SHEET}, which may start any program; remove it"'
            yield "        Exit Function"
            yield "    End If"
            name = ""

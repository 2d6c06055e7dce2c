"""Rules that the LAMBDA names of a generated workbook must keep, checked on the file itself.

Engines are lenient about prefixes, names and lengths; Excel refuses the whole file. Hence each text is cut up by
openpyxl's Tokenizer and held against what Excel's documentation says.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token

from .lint import ALLOWED_FUNCTIONS

LONGEST, MOST_PAIRS, MOST_PARAMETERS, DEEPEST = 8192, 126, 253, 64
# Written with _xlfn.
NEWER = frozenset(("LAMBDA", "LET", "ISOMITTED", "XMATCH", "REDUCE", "SEQUENCE", "NUMBERVALUE", "UNICHAR"))
OLDER = ALLOWED_FUNCTIONS | {"CHAR", "ISERROR", "ISLOGICAL", "TRIM", "UPPER", "VALUE"}
_CELL = re.compile(r"(?i)[a-z]{1,3}\d+|r\d*(c\d*)?|c\d*")
_LOCAL = re.compile(r"_xl(pm|op)\.")


def is_lambda(text: str) -> bool:
    """Whether a defined name holds a function."""
    return text.startswith("_xlfn.LAMBDA(")


def lint_lambdas(path: str | Path) -> list[str]:
    """What is wrong with the LAMBDA names of a workbook, as sentences; empty for a clean one, or one without any."""
    texts = lambda_names(path)
    found = [f"Name {name}: {problem}" for name, text in texts.items() for problem in _problems(text, set(texts))]
    return found + [
        f"{part}: a cell calls {name}, which older Excel lacks; no cell may" for part, name in _called(path, set(texts))
    ]


def lambda_names(path: str | Path) -> dict[str, str]:
    """The LAMBDA names of a workbook with their texts."""
    from lxml import etree

    with zipfile.ZipFile(path) as file:
        root = etree.fromstring(file.read("xl/workbook.xml"))
    names = {str(name.get("name")): name.text or "" for name in root.iter("{*}definedName")}
    return {name: text for name, text in names.items() if is_lambda(text)}


def _called(path: str | Path, names: set[str]) -> Iterator[tuple[str, str]]:
    if not names:
        return
    call = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\(", re.IGNORECASE)
    with zipfile.ZipFile(path) as file:
        for part in file.namelist():
            if part.startswith("xl/worksheets/sheet"):
                text = file.read(part).decode()
                for formula in re.findall(r"<f[^>]*>([^<]*)</f>", text):
                    if match := call.search(formula):
                        yield part, match[1]


def _problems(text: str, names: set[str]) -> Iterator[str]:
    if len(text) > LONGEST:
        yield f"has {len(text):,} characters; at most {LONGEST:,} are allowed"
    tokens = [token for token in Tokenizer(f"={text}").items if token.type != Token.WSPACE]
    depth = deepest = 0
    open_lets: list[list[int]] = []  # of each open call: [is it a LET or a LAMBDA, its separators]
    declared: set[str] = set()
    for at, token in enumerate(tokens):
        if token.type == Token.FUNC and token.subtype == Token.OPEN:
            yield from _function(token.value[:-1], names, declared)
            open_lets.append([{"_xlfn.LET(": 1, "_xlfn.LAMBDA(": 2}.get(token.value, 0), 0])
            depth += 1
        elif token.type == Token.PAREN and token.subtype == Token.OPEN:
            open_lets.append([0, 0])
            depth += 1
        elif token.subtype == Token.CLOSE and token.type in (Token.FUNC, Token.PAREN):
            kind, separators = open_lets.pop()
            if kind == 1 and separators // 2 > MOST_PAIRS:
                yield f"has a LET of {separators // 2} names; at most {MOST_PAIRS} are allowed"
            if kind == 2 and separators > MOST_PARAMETERS:
                yield f"has {separators} parameters; at most {MOST_PARAMETERS} are allowed"
            depth -= 1
        elif token.type == Token.SEP:
            open_lets[-1][1] += 1
        elif token.type == Token.OPERAND and _LOCAL.match(token.value):
            name = _LOCAL.sub("", token.value)
            after = tokens[at + 1] if at + 1 < len(tokens) else None
            kind, separators = open_lets[-1]
            here = after is not None and after.type == Token.SEP
            if here and ((kind == 1 and separators % 2 == 0) or kind == 2):
                declared.add(name)
                if _CELL.fullmatch(name):
                    yield f"calls a parameter {name}, which reads as a cell"
            elif token.value.startswith("_xlop."):
                yield f"uses {token.value}; where it is not declared it is written _xlpm.{name}"
            elif name not in declared:
                yield f"uses {token.value}, which nothing declares"
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        yield f"has {deepest} brackets into one another; at most {DEEPEST} are allowed"


def _function(name: str, names: set[str], declared: set[str]) -> Iterator[str]:
    if name.startswith("_xlpm."):
        if name.removeprefix("_xlpm.") not in declared:
            yield f"calls {name}, which nothing declares"
    elif name.startswith("_xlfn."):
        if name.removeprefix("_xlfn.") not in NEWER:
            yield f"calls {name}, which is not among the newer functions that are known to need that prefix"
    elif name not in OLDER and name not in names:
        yield f"calls {name}, which is no name of this workbook and not among the functions that work everywhere"

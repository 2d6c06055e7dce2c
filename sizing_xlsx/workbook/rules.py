"""What the linter lets pass in our workbooks, and why."""

from __future__ import annotations

from pathlib import Path

from .jobtable import DEEPEST_NESTING, LONGEST_FORMULA, nesting
from .lint import lint
from .sheets import compare, search
from .sheets.workings import BOUNDARIES

_GENERATED = (BOUNDARIES, compare.WORKINGS, search.TITLE)  # sheets that hold inverse questions
_GUARD = "IF(Checks_Failed>0,"


def exempt(sheet: str, cell: str, formula: str) -> bool:
    """Sentences are as long as their words; generated inverse questions are read piece by piece, not as formulas.

    The guard that withdraws a figure while an input is at fault counts for neither length nor depth.
    """
    if sheet in _GENERATED or _is_sentence(formula):
        return True
    body = formula.removeprefix("=")
    if not body.startswith(_GUARD):
        return False
    inner = body[len(_GUARD) :].partition(",")[2].removesuffix(")")
    return len(inner) <= LONGEST_FORMULA and nesting(inner) <= DEEPEST_NESTING


def _is_sentence(formula: str) -> bool:
    """Whether a formula is there for its words: it joins texts, or chooses between several."""
    return '"&' in formula or '&"' in formula or formula.count('"') >= 4


def lint_workbook(path: Path) -> list[str]:
    """The linter's findings on an emitted workbook; empty when it is clean."""
    return lint(path, exempt=exempt)

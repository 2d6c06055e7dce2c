"""What the linter lets pass in our workbooks, and why."""

from __future__ import annotations

from pathlib import Path

from .book import COST_FAILED, FAILED, TIME_FAILED
from .jobtable import DEEPEST_NESTING, LONGEST_FORMULA, nesting
from .lambda_rules import lambda_names, lint_lambdas
from .lint import lint
from .sheets import compare, lookups, search
from .sheets.workings import BOUNDARIES

_GENERATED = (BOUNDARIES, compare.WORKINGS, search.TITLE, lookups.TITLE)  # inverse questions, specialised formulas
_PLAIN = ("Concurrency", "Replicas")  # terms of one word, which no program takes for a cell
_GUARDS = tuple(f"IF({failed}>0," for failed in (FAILED, TIME_FAILED, COST_FAILED))


def exempt(sheet: str, cell: str, formula: str) -> bool:
    """Sentences are as long as their words; generated inverse questions are read piece by piece, not as formulas.

    The guard that withdraws a figure while an input is at fault counts for neither length nor depth.
    """
    if sheet in _GENERATED or _is_sentence(formula):
        return True
    body = formula.removeprefix("=")
    if not body.startswith(_GUARDS):
        return False
    inner = body.partition(">0,")[2].partition(",")[2].removesuffix(")")
    return len(inner) <= LONGEST_FORMULA and nesting(inner) <= DEEPEST_NESTING


def exempt_numbers(sheet: str, cell: str, formula: str) -> bool:
    """Lookups holds formulas with some of the choices made; what these stand for is a number there."""
    return sheet == lookups.TITLE


def _is_sentence(formula: str) -> bool:
    """Whether a formula is there for its words: it joins texts, or chooses between several."""
    return '"&' in formula or '&"' in formula or formula.count('"') >= 4


def lint_workbook(path: Path) -> list[str]:
    """The linter's findings on an emitted workbook; empty when it is clean."""
    made = lambda_names(path)
    found = lint(path, exempt=exempt, exempt_numbers=exempt_numbers, generated_names=made, plain_names=_PLAIN)
    return found + lint_lambdas(path)

"""The columns of Month workings: each job in each month, its card hours, the cards that it holds, its money."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...capacity import kinds
from ...formula.engine import value_of
from ...formula.expression import names_in
from ...formula.render import sheet_formula
from ..jobtable import compact
from .book import MONTH_COUNT
from .grid import At, Column, Values
from .lists import month_cell, month_values

if TYPE_CHECKING:
    from .book import PlanBook

RESULTS = ("month_card_hours", "month_cards", "month_spend")
_OF_MONTH = ("month_day", "next_month_day", "days_in_month")


def columns(book: PlanBook) -> list[Column]:
    """Three results for each month, and what they share."""
    job = book.graphs.row
    moving = job.depends_on(("month_day",))
    trees = {key: job.trees[key] for key in job.needed(RESULTS) if key in moving and key not in _OF_MONTH}
    trees = compact(trees, RESULTS, lambda tree: sheet_formula(tree, lambda key: "'Row workings'!$AB12"))
    constants = {key: facts.value for key, facts in job.constants.items()}
    found = []
    for key in [*(key for key in trees if key not in RESULTS), *RESULTS]:
        for month in range(MONTH_COUNT):
            of_month = month_values(book, month)
            tree = trees[key]

            def cell(at: At, name: str, month: int = month) -> str:
                if name in _OF_MONTH:
                    return month_cell(name, month)
                if name in trees:
                    return at(f"m{month}.{name}")
                if name in kinds.TAKEN:
                    return at(f"taken.{name}")
                if name == "gpu_count":
                    return at("card.gpu_count")
                if name in job.constants:
                    return book.constant(name, job.constants[name])
                return at(f"row.{name}")

            def formula(at: At, tree: Any = tree, key: str = key, cell: Any = cell) -> str:
                inner = sheet_formula(tree, lambda name: cell(at, name))
                return f"=IF({at('counted')}=0,0,{inner[1:]})" if key in RESULTS else inner

            def value(row: Values, tree: Any = tree, key: str = key, month: int = month, days: Any = of_month) -> Any:
                if key in RESULTS and not row["counted"]:
                    return 0
                env = {}
                for name in names_in(tree):
                    if name in days:
                        env[name] = days[name]
                    elif name in trees:
                        env[name] = row[f"m{month}.{name}"]
                    elif name in kinds.TAKEN:
                        env[name] = row[f"taken.{name}"]
                    elif name == "gpu_count":
                        env[name] = row["card.gpu_count"]
                    else:
                        env[name] = constants[name] if name in constants else row[f"row.{name}"]
                return value_of(tree, env, job.tables)

            facts = job.terms[key]
            found.append(Column(f"m{month}.{key}", facts.label, facts.unit, formula, value))
    return found

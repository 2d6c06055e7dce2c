"""One kind of job down the rows of a plan: its terms on the card of the row, and on every offered card.

Four levels of terms: those that no row changes stand once; those of an offered card alone once an offer; those of a row
once a row; and those of both once for the row's card and once for each offer. Inputs that the plan does not show are
as the job opens.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ...capacity import kinds
from ...formula.engine import value_of
from ...formula.expression import Expr, children, names_in
from ...formula.expression import name as symbol_of
from ...formula.job import PLAIN_NUMBERS
from ...formula.partial import specialised
from ...formula.render import column_name, public_name, ranges_in, sheet_formula
from ..jobtable import NOT_GIVEN, compact
from .grid import At, Column, Values
from .offers import OFFER_TERMS

if TYPE_CHECKING:
    from ...formula.job import Job
    from .book import PlanBook

_CARD = ("gpu_choice", "own_price_per_hour", "own_price_date")


class Kind:
    """The layout of a kind."""

    def __init__(self, book: PlanBook, kind: str, sheet: str) -> None:
        self.book, self.kind, self.sheet = book, kind, sheet
        self.job: Job = book.graphs.kinds[kind]
        self.prefix = kind.capitalize() + "_"
        job, spec = self.job, book.template["kinds"][kind]
        self.row_inputs = [kinds.input_of(kind, column) for column in kinds.COLUMNS[kind]]
        self.settings = [*spec["blank"], *spec["common"]]
        self.opened = book.kinds_opened(kind)
        self.on_card, rules = kinds.offer_rules(job), kinds.rules_of(job)
        self.rules = (*[rule for rule in rules if rule not in self.on_card], *self.on_card)
        self.said = {rule: book.states.message(job, rule, job.symbol) for rule in self.rules}
        told = sorted({key for tree in self.said.values() if isinstance(tree, Expr) for key in names_in(tree)})
        told_terms = [key for key in told if key in job.trees]
        self.results = (*kinds.TAKEN, *self.rules)
        free = {*self.row_inputs, *kinds.ON_CARD, *spec["common"], *book.shared}
        fixed = {key: value for key, value in self.opened.items() if key not in free}
        wanted = (*self.results, *told_terms)
        self.trees, known = specialised(job, wanted, fixed)
        self.figures: dict[str, Any] = {}
        self.trees = {key: self._without_figures(tree) for key, tree in self.trees.items()}
        self.known = {key: tree for key, tree in known.items() if key in wanted}
        self.fixed = {key: fixed[key] for key in told if key in fixed}
        moves_row, moves_card = self._moving(self.row_inputs), self._moving(kinds.ON_CARD)
        alone = self._moving(_CARD) - moves_row - self._moving(("gpu_count",))
        self.steady = [key for key in self.trees if key not in moves_row and key not in moves_card]
        self.of_offer = [key for key in self.trees if key in alone]
        row = {key: tree for key, tree in self.trees.items() if key in moves_row and key not in moves_card}
        card = {key: tree for key, tree in self.trees.items() if key in moves_card}
        self.moving = moves_row | moves_card
        used = {symbol for tree in card.values() for symbol in names_in(tree)}
        self.row = compact(row, {*used, *wanted}, self._length)
        self.card = compact(card, {*wanted}, self._length)
        self.on_card = tuple(rule for rule in self.on_card if rule in self.card)
        self.rules = (*[rule for rule in self.rules if rule not in self.on_card], *self.on_card)
        needed = self._needed((*kinds.OFFERED, *self.on_card))
        pair = {key: tree for key, tree in card.items() if key not in alone and key in needed}
        self.pair = compact(pair, {*kinds.OFFERED, *self.on_card}, partial(self._length, of_offer=alone))

    def _without_figures(self, tree: Expr) -> Expr:
        """The tree with numbers that a fixed choice stands for as names: each has a cell of its own."""
        if tree.op == "number" and tree.args[0] not in PLAIN_NUMBERS:
            key = next((key for key, value in self.figures.items() if value == tree.args[0]), "")
            key = key or f"figure_{len(self.figures) + 1}"
            self.figures[key] = tree.args[0]
            return symbol_of(key, tree.unit)
        if tree.op in ("fixed", "round", "round_up", "round_down") or not children(tree):
            return tree
        return Expr(tree.op, tuple(self._without_figures(kid) for kid in children(tree)), tree.unit)

    def _moving(self, changed: Any) -> set[str]:
        out = set(changed)
        for key, tree in self.trees.items():
            if not out.isdisjoint(names_in(tree)):
                out.add(key)
        return out

    def _needed(self, results: Any) -> set[str]:
        wanted, stack = set[str](), list(results)
        while stack:
            key = stack.pop()
            if key not in wanted and key in self.trees:
                wanted.add(key)
                stack.extend(names_in(self.trees[key]))
        return wanted

    def _length(self, tree: Expr, of_offer: Collection[str] = ()) -> str:
        def cell(key: str) -> str:
            if key in of_offer:
                return f"'{OFFER_TERMS}'!$AB$12"
            return "$ABC12" if key in self.moving else self.name(key)

        return sheet_formula(tree, cell)

    # ------------------------------------------------------------------ names of what no row changes
    def name(self, key: str) -> str:
        """The name of a setting, a constant or a steady term."""
        if key in self.book.shared:
            return public_name(key) + "_In_Force"
        if key in self.job.constants:
            return self.book.constant(key, self.job.constants[key], self.kind)
        suffix = "_In_Force" if key in self.settings else ""
        return self.prefix + public_name(key) + suffix

    def stand_in(self, key: str) -> str:
        """The cell with what an input of a row is where the row does not say, or is of another kind."""
        return self.prefix + public_name(key) + ("_In_Force" if key in self.settings else "")

    def used_columns(self) -> set[tuple[str, Any]]:
        """Columns of presets that the formulas look into."""
        trees = [*self.trees.values(), *[tree for tree in self.said.values() if isinstance(tree, Expr)]]
        return {found for tree in trees for found in ranges_in(tree)}

    def steady_values(self) -> Values:
        """What no row changes, by symbol."""
        values: Values = {key: constant.value for key, constant in self.job.constants.items()}
        values |= {**self.opened, **self.figures}
        values |= {key: self.book.settings_value(self.kind, key) for key in (*self.settings, *self.book.shared)}
        for key in self.steady:
            values[key] = value_of(self.trees[key], values, self.job.tables)
        return values

    # ------------------------------------------------------------------ columns
    def _symbol(self, at: At, prefix: str, others: Mapping[str, str]) -> Any:
        known = self.book.grid.places

        def cell(key: str) -> str:
            if key in others:
                return others[key]
            for place in (f"{prefix}{key}", f"{self.kind}.{key}"):
                if place in known and key in self.moving:
                    return at(place)
            return self.name(key)

        return cell

    def _tree(self, key: str, tree: Expr, prefix: str, others: Mapping[str, str], values: Mapping[str, Any]) -> Column:
        facts = self.job.terms[key]
        used = names_in(tree)
        steady, places = self.steady_now, self.book.grid.places

        def worth(row: Values) -> Any:
            env = {}
            for name in used:
                if name in values:
                    env[name] = values[name]
                elif f"{prefix}{name}" in places:
                    env[name] = row[f"{prefix}{name}"]
                elif f"{self.kind}.{name}" in places and name in self.moving:
                    env[name] = row[f"{self.kind}.{name}"]
                else:
                    env[name] = steady[name]
            return value_of(tree, env, self.job.tables)

        return Column(
            f"{prefix}{key}",
            facts.label,
            facts.unit,
            lambda at: sheet_formula(tree, self._symbol(at, prefix, others), column_name),
            worth,
        )

    def _known(self, key: str, prefix: str) -> Column | None:
        if key in self.known:
            value = self.known[key].args[0]
            return Column(f"{prefix}{key}", self.job.terms[key].label, "", lambda at: f"={value}", lambda row: value)
        if key in self.steady:
            value = self.steady_now[key]
            return Column(
                f"{prefix}{key}", self.job.terms[key].label, "", lambda at: f"={self.name(key)}", lambda row: value
            )
        return None

    def columns_of_row(self) -> list[Column]:
        """The row's inputs and the terms that no card changes."""
        self.steady_now = self.steady_values()
        kind, found = self.kind, []
        for column, key in zip(kinds.COLUMNS[kind], self.row_inputs, strict=True):
            standing = self.stand_in(key)
            opened = self.book.settings_value(kind, key)

            def formula(at: At, column: str = column, standing: str = standing) -> str:
                typed = at(f"typed.{column}")
                return f'=IF({at(f"use.{kind}")}=0,{standing},IF({typed}="",{standing},{typed}))'

            def value(row: Values, column: str = column, opened: Any = opened) -> Any:
                typed = row[f"typed.{column}"]
                return opened if not row[f"use.{kind}"] or typed == "" else typed

            facts = self.job.inputs[key]
            found.append(Column(f"{kind}.{key}", facts.label, facts.unit, formula, value))
        rules = [key for key in self.rules if key not in self.on_card]
        found += [self._known(key, f"{kind}.") or self._tree(key, self.row[key], f"{kind}.", {}, {}) for key in rules]
        found += [self._tree(key, tree, f"{kind}.", {}, {}) for key, tree in self.row.items() if key not in rules]
        return found

    def columns_of_offer(self, at_offer: int) -> list[Column]:
        """The terms of a row on one offered card, and what a run would cost there."""
        kind, book = self.kind, self.book
        prefix = f"{kind}.{at_offer}."
        offer = book.offers[at_offer]
        cells = {key: book.offer_cell(kind, key, at_offer) for key in (*self.of_offer, *_CARD)}
        values = {key: offer.values[kind][key] for key in (*self.of_offer, *_CARD)}
        count = book.offer_cell("", "gpu_count", at_offer)
        found = [
            Column(
                f"{prefix}gpu_count",
                self.job.inputs["gpu_count"].label,
                "count",
                lambda at: f'=IF({at("count_asked")}="{NOT_GIVEN}",{count},{at("count_asked")})',
                lambda row: offer.cards if row["count_asked"] == NOT_GIVEN else row["count_asked"],
            )
        ]
        found += [self._tree(key, tree, prefix, cells, values) for key, tree in self.pair.items()]
        job = book.graphs.offer
        tree = job.trees["offer_cost"]
        rules = [key for key in self.on_card if key in self.pair or key in self.of_offer]

        def read(key: str, at: At) -> str:
            if key in cells:
                return cells[key]
            if key in self.pair:
                return at(f"{prefix}{key}")
            if key in self.known:
                return str(self.known[key].args[0])
            return at(f"{kind}.{key}") if key in self.row else self.name(key)

        def worth(key: str, row: Values) -> Any:
            if key in values:
                return values[key]
            if key in self.pair:
                return row[f"{prefix}{key}"]
            if key in self.known:
                return self.known[key].args[0]
            return row[f"{kind}.{key}"] if key in self.row else self.steady_now[key]

        def kept(at: At) -> str:
            return f"=MIN(1,{','.join(read(rule, at) for rule in rules)})" if rules else "=1"

        def value(row: Values) -> Any:
            env = {key: worth(key, row) for key in kinds.OFFERED}
            return value_of(tree, env | {"rules_kept": row[f"{prefix}rules_kept"]}, job.tables)

        return [
            *found,
            Column(
                f"{prefix}rules_kept",
                job.inputs["rules_kept"].label,
                job.inputs["rules_kept"].unit,
                kept,
                lambda row: min((1, *(worth(rule, row) for rule in rules))),
            ),
            Column(
                f"{prefix}offer_cost",
                job.terms["offer_cost"].label,
                "currency",
                lambda at: sheet_formula(
                    tree, lambda key: at(f"{prefix}rules_kept") if key == "rules_kept" else read(key, at), column_name
                ),
                value,
            ),
        ]

    def columns_on_card(self) -> list[Column]:
        """The terms of a row on its own card: what the plan takes of it, its rules and their words."""
        kind, job = self.kind, self.job
        prefix = f"{kind}."
        found = [
            Column(
                f"{prefix}{key}",
                job.inputs[key].label,
                job.inputs[key].unit,
                lambda at, key=key: f"={at(f'card.{key}')}",  # type: ignore[misc]
                lambda row, key=key: row[f"card.{key}"],  # type: ignore[misc]
            )
            for key in kinds.ON_CARD
        ]
        found += [self._tree(key, self.card[key], prefix, {}, {}) for key in self.on_card if key in self.card]
        found += [self._tree(key, tree, prefix, {}, {}) for key, tree in self.card.items() if key not in self.on_card]
        for key in kinds.TAKEN:
            if key not in self.card and key not in self.row:
                made = self._known(key, prefix)
                assert made is not None, key
                found.append(made)
        for rules, name in ((self.rules[: len(self.rules) - len(self.on_card)], "before"), (self.on_card, "after")):
            found += [self._message(rule) for rule in rules]
            found.append(self._first(name, list(rules)))
        return found

    def _message(self, rule: str) -> Column:
        tree, kind = self.said[rule], self.kind
        if not isinstance(tree, Expr):
            return Column(f"{kind}.{rule}?", rule, "", lambda at: f'="{tree}"', lambda row: tree, "r_text")
        used = names_in(tree)

        def worth(row: Values) -> Any:
            if row[f"{kind}.{rule}"] > 0:
                return ""
            places = self.book.grid.places
            env = {key: row[f"{kind}.{key}"] if f"{kind}.{key}" in places else self.steady_now.get(key) for key in used}
            return value_of(tree, env, self.job.tables)

        label = self.job.terms[rule].label
        return Column(
            f"{kind}.{rule}?",
            label,
            "",
            lambda at: _unless(
                at(f"{kind}.{rule}"), sheet_formula(tree, self._symbol(at, f"{kind}.", {}), column_name)
            ),
            worth,
            "r_text",
        )

    def _first(self, name: str, rules: list[str]) -> Column:
        grid, kind = self.book.grid, self.kind
        if not rules:
            return Column(f"{kind}.{name}", "First broken rule", "", lambda at: '=""', lambda row: "", "r_text")

        def formula(at: At) -> str:
            cells = grid.across(self.sheet, f"{kind}.{rules[0]}", f"{kind}.{rules[-1]}")
            words = grid.across(self.sheet, f"{kind}.{rules[0]}?", f"{kind}.{rules[-1]}?")
            return f'=IF(MIN({cells})>0,"",INDEX({words},1,MATCH(0,{cells},0)))'

        def value(row: Values) -> Any:
            return next((row[f"{kind}.{rule}?"] for rule in rules if not row[f"{kind}.{rule}"]), "")

        return Column(f"{kind}.{name}", "First broken rule", "", formula, value, "r_text")


def _unless(rule: str, formula: str) -> str:
    """A sentence that is only put together where a rule is broken."""
    return f'=IF({rule}>0,"",{formula[1:]})'

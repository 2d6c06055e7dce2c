"""Terms of a job as LAMBDA names, each within Excel's limits, one calling the next.

Inputs that an argument gives vary; all others are fixed, and the trees are the shorter for it (formula/partial.py).
What rests on one choice alone, a model's shape say, is not computed in the call: it stands in a column of the sheet
Lookups, a row a model, and the call looks it up. The rest is cut into stages: a LAMBDA computes as many terms as it
has room for and hands what is still needed to the next.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formula.expression import Expr, children, names_in, replace
from ..formula.expression import name as name_of
from ..formula.partial import specialised
from ..formula.primitives import minimum
from ..formula.render import RangeOf, write

if TYPE_CHECKING:
    from ..formula.job import Job

LONGEST_NAME = 8_000  # characters of a LAMBDA; Excel's limit is 8,192
MOST_PAIRS = 110  # of a LET; the limit is 126
DEEPEST = 24  # brackets into brackets; the limit is 64
_LOOKS_LIKE_A_CELL = re.compile(r"r\d*(c\d*)?|c\d*")


class Column(NamedTuple):
    """What a row of Lookups holds for one choice: a tree over the row's number and other columns."""

    choice: str
    tree: Expr


class Terms(NamedTuple):
    """The terms that a call computes. results: the trees that it chooses from, by their position from 1.

    rules: conditions that must be 1. trees: the terms between, in order. columns: what is looked up, by its name.
    """

    parameters: tuple[str, ...]
    results: tuple[Expr, ...]
    rules: tuple[Expr, ...]
    trees: dict[str, Expr]
    columns: dict[str, Column]


def terms(
    job: Job,
    results: Sequence[Expr],
    parameters: Sequence[str],
    choices: Sequence[str],
    fixed: Mapping[str, Any],
    part: str = "part",
    rules: Sequence[str] | None = None,
) -> Terms:
    """What a call computes. results: trees over terms of the job. parameters: the inputs that vary.

    choices: those among them that are texts, and stand for the row of their table; each has a table on Lookups.
    fixed: the other inputs; those of the installation stay names. part: what columns of no term's own are called.
    rules: checks that must hold for every result; all that hold for any, where they are not named.
    """
    asked_for = [name for tree in results for name in names_in(tree)]
    broken_by = job.rules_of(tuple(name for name in asked_for if name in job.trees)) if rules is None else rules
    wanted = [*asked_for, *broken_by]
    left, known = specialised(job, wanted, fixed, choices)
    rests_on = {key: frozenset((key,)) for key in parameters}
    rests_on |= dict.fromkeys(job.constants, frozenset())
    for key, tree in left.items():
        rests_on[key] = frozenset[str]().union(*(rests_on.get(name, _HERE) for name in names_in(tree)))
    columns: dict[str, Column] = {}
    names: dict[str, str] = {}

    def alone(tree: Expr) -> str:
        """The one choice of Lookups that a tree rests on; "" where it rests on others too."""
        on = frozenset[str]().union(*(rests_on.get(name, _HERE) for name in names_in(tree)))
        return next(iter(on)) if len(on) == 1 and on <= set(choices) else ""

    def hoisted(tree: Expr) -> Expr:
        choice = alone(tree)
        if choice and tree.op == "name" and tree.args[0] in left:
            columns.setdefault(tree.args[0], Column(choice, left[tree.args[0]]))
            return tree
        if choice and tree.op not in ("name", "number", "words", "range") and tree.unit not in ("bool", "text"):
            text = repr(tree)
            if text not in names:
                names[text] = f"{part}_{len(names) + 1}"
                columns[names[text]] = Column(choice, tree)
            return Expr("name", (names[text],), tree.unit)
        kids = children(tree)
        return Expr(tree.op, tuple(map(hoisted, kids)), tree.unit) if kids else tree

    installed = {key for key, on in rests_on.items() if key in left and not on - _HERE}
    moving = {
        key: hoisted(tree) for key, tree in left.items() if key not in installed and not alone(Expr("name", (key,), ""))
    }

    ends = tuple(hoisted(replace(tree, known)) for tree in results)
    passed: dict[str, list[Expr]] = {}  # those that rest on one choice are one
    for key in broken_by:
        rule = replace(name_of(key, job.trees[key].unit), known)
        if rule.op != "number":
            passed.setdefault(alone(rule) or key, []).append(rule)
    held = tuple(hoisted(minimum(*some) if len(some) > 1 else some[0]) for some in passed.values())
    moving, renamed = _without_renamed(moving)
    asked = tuple(replace(tree, renamed) for tree in (*ends, *held))
    trees = _inlined(moving, asked)
    asked = _opened(asked, trees)
    _with_what_they_need(columns, left)
    ends, held = asked[: len(ends)], asked[len(ends) :]
    return Terms(tuple(parameters), ends, held, _ordered(trees, asked), columns)


def shared(chains: Sequence[Terms]) -> tuple[list[Terms], dict[str, Column]]:
    """The chains over one set of columns: what is the same in several has one column, and each another name."""
    columns: dict[str, Column] = {}
    known: dict[tuple[str, str], str] = {}
    found = []
    for chain in chains:
        names: dict[str, str] = {}

        def rename(tree: Expr, names: Mapping[str, str] = names) -> Expr:
            if tree.op == "name":
                return name_of(names.get(tree.args[0], tree.args[0]), tree.unit)
            kids = children(tree)
            return Expr(tree.op, tuple(map(rename, kids)), tree.unit) if kids else tree

        for name, column in in_order(chain.columns).items():
            tree = rename(column.tree)
            key = column.choice, repr(tree)
            if key not in known:
                known[key] = (
                    name
                    if name not in columns
                    else next(free for at in count(2) if (free := f"{name}_{at}") not in columns)
                )
                columns[known[key]] = Column(column.choice, tree)
            names[name] = known[key]
        found.append(
            Terms(
                chain.parameters,
                tuple(map(rename, chain.results)),
                tuple(map(rename, chain.rules)),
                {key: rename(tree) for key, tree in chain.trees.items()},
                {names[name]: columns[names[name]] for name in chain.columns},
            )
        )
    return found, columns


def in_order(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Columns after those that they are made of."""
    found: dict[str, Column] = {}

    def visit(name: str) -> None:
        for needed in names_in(columns[name].tree):
            if needed in columns and needed not in found:
                visit(needed)
        found[name] = columns[name]

    for name in columns:
        if name not in found:
            visit(name)
    return found


_HERE: frozenset[str] = frozenset(("",))  # of the installation


def _with_what_they_need(columns: dict[str, Column], left: Mapping[str, Expr]) -> None:
    """Adds the columns that other columns are made of."""
    waiting = list(columns.values())
    while waiting:
        column = waiting.pop()
        for name in names_in(column.tree):
            if name in left and name not in columns and name != column.choice:
                columns[name] = Column(column.choice, left[name])
                waiting.append(columns[name])


def _without_renamed(trees: Mapping[str, Expr]) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """The terms without those that are another one by their name, and what these are."""
    kept: dict[str, Expr] = {}
    renamed: dict[str, Expr] = {}
    for key, tree in trees.items():
        tree = replace(tree, renamed)
        (renamed if tree.op == "name" else kept)[key] = tree
    return kept, renamed


def _inlined(trees: dict[str, Expr], ends: Sequence[Expr]) -> dict[str, Expr]:
    """The same with terms that are used once written into their user, as deep as formulas may be."""
    trees = dict(trees)
    uses: dict[str, int] = {}
    for tree in (*trees.values(), *ends):
        for name in names_in(tree):
            uses[name] = uses.get(name, 0) + 1
    ended = {name for tree in ends for name in names_in(tree)}
    for key in list(trees):
        for name in dict.fromkeys(names_in(trees[key])):
            if name in trees and uses[name] == 1 and name not in ended:
                merged = replace(trees[key], {name: trees[name]})
                if depth(merged) <= DEEPEST:
                    trees[key] = merged
                    del trees[name]
    return trees


def depth(tree: Expr) -> int:
    """How many operations stand inside one another."""
    kids = children(tree)
    return 1 + max(map(depth, kids)) if kids else 0


def _opened(ends: Sequence[Expr], trees: dict[str, Expr]) -> tuple[Expr, ...]:
    """The results and rules, each in place of its term where nothing else uses that."""
    uses: dict[str, int] = {}
    for tree in (*trees.values(), *ends):
        for name in names_in(tree):
            uses[name] = uses.get(name, 0) + 1
    opened = []
    for tree in ends:
        key = tree.args[0] if tree.op == "name" else ""
        if key in trees and uses[key] == 1:
            tree = trees.pop(key)
        opened.append(tree)
    return tuple(opened)


def _ordered(trees: dict[str, Expr], ends: Sequence[Expr]) -> dict[str, Expr]:
    """The terms each as near before its first user as may be: less has to be handed on."""
    found: dict[str, Expr] = {}

    def visit(tree: Expr) -> None:
        for name in names_in(tree):
            if name in trees and name not in found:
                visit(trees[name])
                found[name] = trees[name]

    for tree in (*trees.values(), *ends):
        visit(tree)
    return found | {key: tree for key, tree in trees.items() if key not in found}


def short_names() -> Iterator[str]:
    """Names of one to three letters that look like no cell."""
    for length in count(1):
        for number in range(26**length):
            letters = ""
            for _ in range(length):
                number, letter = divmod(number, 26)
                letters = string.ascii_lowercase[letter] + letters
            if not _LOOKS_LIKE_A_CELL.fullmatch(letters):
                yield letters


def stages(
    found: Terms, begin: str, *, index_of: Callable[[str, str], str], range_of: RangeOf, elsewhere: Callable[[str], str]
) -> list[tuple[str, str]]:
    """The LAMBDA names of a chain with their texts, the first to be called with the position of a result, then the
    parameters. begin: of each name. index_of: a column of Lookups at a row. elsewhere: what is no parameter, constants
    among it.
    """
    short = short_names()
    what = next(short)
    local = {key: next(short) for key in (*found.parameters, *found.trees)}

    def name_of(symbol: str) -> str:
        if symbol in found.columns:
            return index_of(symbol, f"_xlpm.{local[found.columns[symbol].choice]}")
        return f"_xlpm.{local[symbol]}" if symbol in local else elsewhere(symbol)

    def text(tree: Expr) -> str:
        return write(tree, "sheet", name_of, range_of)

    def uses(tree: Expr) -> set[str]:
        return {found.columns[name].choice if name in found.columns else name for name in names_in(tree)} & set(local)

    pairs = [(key, f"_xlpm.{local[key]},{text(tree)},", uses(tree)) for key, tree in found.trees.items()]
    end = _end(found, text, what)
    last = set[str]().union(*(uses(tree) for tree in (*found.results, *found.rules)))
    waiting, live = list(pairs), list(found.parameters)
    texts: list[str] = []
    while True:
        head = "_xlfn.LAMBDA(" + "".join(f"_xlpm.{key}," for key in (what, *(local[key] for key in live)))
        fitting = _fitting(head, waiting, live, last, local, end, begin)
        here, waiting = waiting[:fitting], waiting[fitting:]
        live = _still_needed([*live, *(key for key, _, _ in here)], waiting, last)
        handed = ",".join(f"_xlpm.{key}" for key in (what, *(local[key] for key in live)))
        tail = f"{begin}{len(texts) + 2}({handed})" if waiting else end
        body = f"_xlfn.LET({''.join(pair for _, pair, _ in here)}{tail})" if here else tail
        texts.append(f"{head}{body})")
        if not waiting:
            return [(f"{begin}{at}", body) for at, body in enumerate(texts, 1)]


def _still_needed(live: Sequence[str], waiting: Sequence[tuple[str, str, set[str]]], last: set[str]) -> list[str]:
    needed = last.union(*(used for _, _, used in waiting))
    return [key for key in dict.fromkeys(live) if key in needed]


def _fitting(
    head: str,
    waiting: Sequence[tuple[str, str, set[str]]],
    live: Sequence[str],
    last: set[str],
    local: Mapping[str, str],
    end: str,
    begin: str,
) -> int:
    """How many of the waiting terms a stage has room for."""
    size, best = len(head) + len("_xlfn.LET())"), 0
    for at, (_, pair, _) in enumerate(waiting[:MOST_PAIRS], 1):
        size += len(pair)
        rest = waiting[at:]
        handed = _still_needed([*live, *(key for key, _, _ in waiting[:at])], rest, last)
        tail = len(end) if not rest else len(begin) + 12 + sum(len(local[key]) + 7 for key in handed)
        if size + tail <= LONGEST_NAME:
            best = at
        elif size > LONGEST_NAME:
            break
    if waiting and not best:
        raise ValueError(f"{begin}: {waiting[0][0]} has no room in a LAMBDA of {LONGEST_NAME} characters")
    return best


def _end(found: Terms, text: Callable[[Expr], str], what: str) -> str:
    """The result that is asked for; a job that breaks a rule has none."""
    one = text(found.results[0])
    chosen = one if len(found.results) == 1 else f"CHOOSE(_xlpm.{what},{','.join(map(text, found.results))})"
    if not found.rules:
        return chosen
    return f'IF(MIN({",".join(map(text, found.rules))})>0,{chosen},VALUE("x"))'

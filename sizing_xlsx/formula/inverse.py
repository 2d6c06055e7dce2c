"""Inverse questions: the largest whole value of an input for which a result stays within a limit.

The result's tree is taken apart by its algebra, not searched. Maxima, minima and conditions are moved to
the top; below them stand pieces that are polynomials in the input, of degree 2 at most, each with a fixed
part (its value where the input is 0), a slope there, and a curvature (its second derivative). With room =
limit - fixed part, a piece reaches the limit at

    2 * room / (slope + root of (slope^2 + 2 * curvature * room))

which is room / slope where nothing curves. A maximum is within the limit when all its pieces are, so the
smallest answer counts; of a minimum, the largest. The parts are terms like any other: every surface has
them.

One condition may ask whether the input has reached a threshold, from which on the result is another polynomial. The
result is then evaluated at the threshold. Where it is within the limit there, the answer lies at the threshold or
above, and the condition holds; else it lies below, and the threshold less 1 caps it.

Where all of a result rests on the input through one sum, input + what does not change, the sum is varied in its place.
Counting from 0, not from the value entered, keeps the answer free of that value and exact however far away it
is: under a curvature the answer would else be the difference of two large numbers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from .declare import Term
from .expression import Expr, arithmetic, children, lift, name, names_in, replace, walk
from .job import Job
from .primitives import floor, maximum, minimum, when
from .render import in_words
from .units import COUNTS, kind_of, same

GUARD = "rounding_guard"
LONGEST_FORMULA = 150


class Polynomial(NamedTuple):
    """A tree as a polynomial in one input. None is a part that is 0 whatever the job is."""

    fixed: Expr | None
    slope: Expr | None = None
    curvature: Expr | None = None


def largest(
    job: Job, result: str, *, vary: str, keep: str, at_most: str, limit: str, label: str, help: str, most: str = ""
) -> list[str]:
    """Add `result`: the largest whole value of `vary` with keep <= at_most. Returns all names added.

    job: the graph to add to; it has the constant rounding_guard. vary: an input. keep: a term that never
    falls while vary grows on the same side of a threshold, made of sums, maxima and minima of pieces of degree
    2 at most. at_most: a term of the same kind that vary does not change. limit: the constant that no answer
    exceeds. most: a term that vary does not change, and that no answer exceeds either. The answer has the unit of
    vary and is 0 when even 1 is too much. label, help: of the answer.
    Raises ValueError when the result exists, NameError for a name that does not, and TypeError for a tree
    without such an answer: at_most that depends on vary, a condition on vary but one alone that reads
    `vary >= a term that vary does not change`, a higher degree, an operation without a slope.
    """
    _check(job, result, vary, keep, at_most, limit)
    question = _Question(job, result, vary, keep, at_most, limit, label)
    answer = question.below_threshold(question.answer(question.opened(question.symbol(keep), keep), ()))
    if question.beside is not None:
        answer = answer - question.beside
    unit, before = job.unit_of(vary), f"{label}: before rounding down"
    answer = question.plan(f"{result}_unrounded", answer, unit, before, "The answer of the case that holds.")
    whole = floor(answer + question.symbol(GUARD))
    bounds = [question.symbol(limit), *([question.symbol(most)] if most else [])]
    question.plan(result, maximum(0, minimum(*bounds, whole)), unit, label, help)
    return _add(job, result, question.terms, _shorter(question.trees, result))


def _check(job: Job, result: str, vary: str, keep: str, at_most: str, limit: str) -> None:
    if result in job.terms:
        raise ValueError(f"{job.name}: {result} is defined twice")
    wanted = {"input": (vary,), "term": (keep, at_most), "constant": (limit, GUARD)}
    known: dict[str, Collection[str]] = {"input": job.inputs, "term": job.trees, "constant": job.constants}
    for kind, symbols in wanted.items():
        for symbol in symbols:
            if symbol not in known[kind]:
                raise NameError(f"{job.name}: {result} needs {symbol}, which is no {kind}")
    same(
        kind_of(job.unit_of(keep)),
        kind_of(job.unit_of(at_most)),
        f"{job.name}: {result}: {keep} <= {at_most}",
    )
    if at_most in job.depends_on([vary]):
        raise TypeError(f"{job.name}: {result}: {at_most} depends on {vary}; it must not")


# ---------------------------------------------------------------------- sums and products without 0s and 1s
def _plus(a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return b if a is None else a
    return _plus(_plus(a, b.args[0]), b.args[1]) if b.op == "+" else arithmetic("+", a, b)


def _minus(a: Expr | None, b: Expr | None) -> Expr | None:
    return a if b is None else arithmetic("-", lift(0) if a is None else a, b)


def _times(a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return None
    if _is_number(a, 1) or _is_number(b, 1):
        return b if _is_number(a, 1) else a
    return _times(_times(a, b.args[0]), b.args[1]) if b.op == "*" else arithmetic("*", a, b)


def _is_number(tree: Expr, value: int) -> bool:
    return tree.op == "number" and tree.args[0] == value


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    """a * b, for factors whose degrees sum up to 2 at most."""
    cross = _times(lift(2), _times(a.slope, b.slope))
    return Polynomial(
        _times(a.fixed, b.fixed),
        _plus(_times(a.slope, b.fixed), _times(a.fixed, b.slope)),
        _plus(_plus(_times(a.curvature, b.fixed), _times(a.fixed, b.curvature)), cross),
    )


def _degree(a: Polynomial) -> int:
    return 2 if a.curvature is not None else 1 if a.slope is not None else 0


def _chosen(test: Expr, a: Polynomial, b: Polynomial) -> Polynomial:
    """when(test, a, b), part by part."""
    parts = [
        None if x is None and y is None else when(test, 0 if x is None else x, 0 if y is None else y)
        for x, y in zip(a, b, strict=True)
    ]
    return Polynomial(*parts)


# ---------------------------------------------------------------------- one question
class _Question:
    """What is known while one question is taken apart: planned terms in order, and what each term has become.

    trees, terms: the planned terms. base: what is varied, the input or its sum with beside. hot: names that change with
    it. forked: hot terms with a maximum or minimum of hot trees in them or further down; stepped: the same of the
    threshold. parts: hot term -> its polynomial. answers: piece -> its answer. most: no value of base is larger.
    """

    def __init__(self, job: Job, result: str, vary: str, keep: str, at_most: str, limit: str, label: str) -> None:
        self.job, self.result, self.keep, self.at_most, self.label = job, result, keep, at_most, label
        self.trees: dict[str, Expr] = {}
        self.terms: dict[str, Term] = {}
        self.hot = job.depends_on([vary])
        self.base, self.beside = self.varied(vary)
        self.parts: dict[str, Polynomial] = {self.base: Polynomial(None, lift(1))}
        self.answers: dict[str, Expr] = {}
        self.cases = 0
        self.most: Expr = self.symbol(limit)
        if self.beside is not None:
            unit, words = job.unit_of(self.base), f"No value of {in_words(self.symbol(self.base))} is larger."
            self.most = self.plan(f"{result}_most", self.most + self.beside, unit, f"{label}: end of the search", words)
        self.forked: set[str] = set()
        self.stepped: set[str] = set()
        tests: dict[str, Expr] = {}
        for key in job.needed([keep]):
            if key not in self.hot:
                continue
            if self.forks(job.trees[key]):
                self.forked.add(key)
            found = {repr(node.args[0]): node.args[0] for node in walk(job.trees[key]) if self.asks(node)}
            tests |= found
            if found or not self.stepped.isdisjoint(names_in(job.trees[key])):
                self.stepped.add(key)
        self.step = next(iter(tests.values())) if len(tests) == 1 else None
        if self.step is not None and not self.is_threshold(self.step):
            self.step = None
        self.beyond: Expr | None = None if self.step is None else self.above_limit()

    def varied(self, vary: str) -> tuple[str, Expr | None]:
        """What to vary: the one term that adds to the input what does not change with it, and that; else the input."""
        users = [key for key in self.job.needed([self.keep]) if vary in names_in(self.job.trees[key])]
        tree = self.job.trees[users[0]] if len(users) == 1 else None
        if tree is not None and tree.op == "+":
            others = [side for side in tree.args if not self.changes(side)]
            if len(others) == 1 and all(side.op == "name" or side is others[0] for side in tree.args):
                return users[0], others[0]
        return vary, None

    # ------------------------------------------------------------------ the threshold
    def asks(self, tree: Expr) -> bool:
        """Whether the node is a condition on what is varied."""
        return tree.op == "when" and self.changes(tree.args[0])

    def is_threshold(self, test: Expr) -> bool:
        """Whether a condition is `base >= a name that does not change`."""
        return (
            test.op == ">="
            and all(side.op == "name" for side in test.args)
            and test.args[0].args[0] == self.base
            and not self.changes(test.args[1])
        )

    def above_limit(self) -> Expr:
        """A planned switch: 1 when the result is beyond the limit where the threshold is just reached."""
        assert self.step is not None
        words = in_words(self.step.args[1])
        return self.plan(
            f"{self.result}_below_threshold",
            self.above_limit_of(self.keep),
            "switch",
            f"{self.label}: below {words}",
            f"1 when the answer lies below {words}, because what is needed there is beyond the limit.",
        )

    def above_limit_of(self, key: str) -> Expr:
        """The same of the part that holds the threshold; 0 where another part counts."""
        tree = self.job.trees[key]
        if tree.op == "when" and not self.changes(tree.args[0]):
            test, *branches = tree.args
            stepped = [branch.op == "name" and branch.args[0] in self.stepped for branch in branches]
            if sum(stepped) == 1 and self.stepped.isdisjoint(names_in(branches[stepped.index(False)])):
                inner = self.above_limit_of(branches[stepped.index(True)].args[0])
                return lift(when(test, inner, 0) if stepped[0] else when(test, 0, inner))
        return lift(when(self.at_threshold(key) <= self.symbol(self.at_most), 0, 1))

    def at_threshold(self, key: str) -> Expr:
        """The planned value of a term where the threshold is just reached, from those it rests on."""
        assert self.step is not None
        threshold = self.step.args[1]
        values: dict[str, Expr] = {self.base: threshold}
        for hot in self.job.needed([key]):
            if hot in self.hot and hot != self.base:
                facts, words = self.job.terms[hot], in_words(threshold)
                values[hot] = self.plan(
                    f"{hot}_at_{threshold.args[0]}",
                    replace(self.reached(self.job.trees[hot]), values),
                    facts.unit,
                    f"{facts.label}: at {words}",
                    f"What it is where {in_words(self.symbol(self.base))} is {words}.",
                )
        return values[key]

    def reached(self, tree: Expr) -> Expr:
        """The tree where the threshold is reached."""
        if self.asks(tree):
            return self.reached(tree.args[1])
        kids = children(tree)
        return Expr(tree.op, tuple(map(self.reached, kids)), tree.unit) if kids else tree

    def below_threshold(self, answer: Expr) -> Expr:
        """The answer, capped where it lies below the threshold."""
        if self.step is None or self.beyond is None:
            return answer
        return lift(when(self.beyond > 0, minimum(answer, self.step.args[1] - 1), answer))

    # ------------------------------------------------------------------ small questions
    def symbol(self, key: str) -> Expr:
        """A leaf of the graph that is asked."""
        leaf: Expr = self.job.symbol(key)
        return leaf

    def changes(self, tree: Expr) -> bool:
        """Whether the tree depends on the input."""
        return any(key in self.hot for key in names_in(tree))

    def forks(self, tree: Expr) -> bool:
        """Whether a maximum or minimum in the tree, or in a term it names, depends on the input."""
        if tree.op == "name":
            return tree.args[0] in self.forked
        if tree.op in ("max", "min") and self.changes(tree):
            return True
        return any(self.forks(child) for child in children(tree))

    def refuse(self, owner: str, why: str) -> TypeError:
        """The error for a tree that has no answer, with the names."""
        return TypeError(f"{self.job.name}: {self.result}: {owner} {why}")

    def steady(self, test: Expr, owner: str) -> Expr:
        """The condition, which must not depend on the input; that on the threshold is known for the answer."""
        if not self.changes(test):
            return test
        if self.beyond is None:
            raise self.refuse(owner, f"asks whether {in_words(test)}, which depends on {self.base}")
        return lift(self.beyond <= 0)

    def plan(self, key: str, tree: Expr, unit: str, label: str, help: str) -> Expr:
        """Plan a term; the leaf that refers to it."""
        source = f"derived from the tree of {self.keep}"
        self.trees[key] = tree
        self.terms[key] = Term(key, None, (), unit, label, help, source, "calculated")
        return name(key, tree.unit)

    # ------------------------------------------------------------------ forks to the top
    def opened(self, tree: Expr, owner: str) -> Expr:
        """The same value with every fork above every sum, and nothing but polynomials below the forks."""
        if not self.forks(tree):
            return tree
        if tree.op == "name":
            key = tree.args[0]
            return self.opened(self.job.trees[key], key)
        if tree.op in ("max", "min"):
            return _flat(tree.op, [self.opened(child, owner) for child in tree.args])
        if tree.op == "when":
            test, then, otherwise = tree.args
            branches = self.opened(then, owner), self.opened(otherwise, owner)
            return Expr("when", (self.steady(test, owner), *branches), tree.unit)
        if tree.op in ("+", "-"):
            left, right = (self.opened(child, owner) for child in tree.args)
            return self.summed(tree.op, left, right, owner)
        raise self.refuse(owner, f"has a maximum or minimum under {tree.op!r}; only sums can be opened")

    def summed(self, op: str, a: Expr, b: Expr, owner: str) -> Expr:
        """a op b, with the forks of either above the sum; conditions above maxima and minima."""
        b_forks = self.forks(b)
        if b_forks and op == "-":
            raise self.refuse(owner, "subtracts a maximum or minimum; it can only be added")
        if b_forks and (b.op == "when" or not self.forks(a)) and a.op != "when":
            a, b = b, a
        if not self.forks(a):
            return arithmetic(op, a, b)
        if a.op == "when":
            test, then, otherwise = a.args
            branches = (
                self.summed(op, then, _under(test, True, b), owner),
                self.summed(op, otherwise, _under(test, False, b), owner),
            )
            return Expr("when", (test, *branches), a.unit)
        return _flat(a.op, [self.summed(op, part, b, owner) for part in a.args])

    # ------------------------------------------------------------------ polynomials
    def polynomial(self, tree: Expr, owner: str) -> Polynomial:
        """A tree without forks, part by part; hot terms stay names of their own parts."""
        if not self.changes(tree):
            return Polynomial(None if _is_number(tree, 0) else tree)
        if tree.op == "name":
            return self.of_term(tree.args[0])
        if tree.op == "when":
            test, then, otherwise = tree.args
            branches = self.polynomial(then, owner), self.polynomial(otherwise, owner)
            return _chosen(self.steady(test, owner), *branches)
        if tree.op not in ("+", "-", "*", "/"):
            raise self.refuse(owner, f"takes {tree.op!r} of what depends on {self.base}; that has no slope")
        a, b = (self.polynomial(child, owner) for child in tree.args)
        if tree.op == "/":
            if _degree(b) > 0:
                raise self.refuse(owner, f"divides by what depends on {self.base}")
            return Polynomial(*[None if part is None else arithmetic("/", part, tree.args[1]) for part in a])
        if tree.op == "*":
            if _degree(a) + _degree(b) > 2:
                raise self.refuse(owner, f"grows faster than the square of {self.base}")
            return _product(a, b)
        combine = _plus if tree.op == "+" else _minus
        return Polynomial(*[combine(x, y) for x, y in zip(a, b, strict=True)])

    def of_term(self, key: str) -> Polynomial:
        """The polynomial of a hot term; each part that is more than a leaf becomes a term."""
        if key not in self.parts:
            facts, per = self.job.terms[key], self.per_unit()
            words = self.base.replace("_", " ")
            parts = self.polynomial(self.job.trees[key], key)
            self.parts[key] = Polynomial(
                self.part(
                    f"{key}_fixed_{self.base}",
                    parts.fixed,
                    facts.unit,
                    f"{facts.label}: fixed part",
                    f"The part that does not change with {words}.",
                ),
                self.part(
                    f"{key}_per_{self.base}",
                    parts.slope,
                    facts.unit + per,
                    f"{facts.label}: per unit of {words}",
                    f"What it grows by, counted from a {words} of 0.",
                ),
                self.part(
                    f"{key}_curve_{self.base}",
                    parts.curvature,
                    facts.unit + per + per,
                    f"{facts.label}: curvature in {words}",
                    f"What its growth per unit of {words} itself grows by.",
                ),
            )
        return self.parts[key]

    def part(self, key: str, tree: Expr | None, unit: str, label: str, help: str) -> Expr | None:
        """A part by name, or as it is where it is a leaf or nothing."""
        return self.plan(key, tree, unit, label, help) if tree is not None and children(tree) else tree

    def per_unit(self) -> str:
        """ " per row" for an input in rows."""
        unit = self.job.unit_of(self.base)
        one = unit.removesuffix("s")
        return f" per {one if one in COUNTS else unit}"

    # ------------------------------------------------------------------ answers
    def answer(self, tree: Expr, tests: tuple[str, ...]) -> Expr:
        """The largest value for an opened tree; tests: the conditions met on the way, in words."""
        if not self.forks(tree):
            return self.of_piece(tree)
        if tree.op == "when":
            test, then, otherwise = tree.args
            words = in_words(test)
            answers = self.answer(then, (*tests, words)), self.answer(otherwise, (*tests, f"not {words}"))
            return lift(when(test, *answers))
        distinct = {repr(answer): answer for answer in (self.answer(part, tests) for part in tree.args)}
        if len(distinct) == 1:
            return next(iter(distinct.values()))
        if tree.op == "min":
            return lift(maximum(*distinct.values()))
        self.cases += 1
        where = f"Where {' and '.join(tests)}: the" if tests else "The"
        return self.plan(
            f"{self.result}_case_{self.cases}",
            lift(minimum(*distinct.values())),
            self.job.unit_of(self.base),
            f"{self.label}: case {self.cases}",
            f"{where} smallest answer of all pieces that count there.",
        )

    def of_piece(self, tree: Expr) -> Expr:
        """The value of the input at which one polynomial reaches the limit; equal pieces share one answer."""
        key = repr(tree)
        if key not in self.answers:
            self.answers[key] = self.new_piece(tree, len(self.answers) + 1)
        return self.answers[key]

    def new_piece(self, tree: Expr, number: int) -> Expr:
        """Room, slope and curvature of a piece as terms, and its answer."""
        piece, words = self.polynomial(tree, self.keep), in_words(tree)
        left = _minus(self.symbol(self.at_most), piece.fixed)
        unit, per = self.job.unit_of(self.keep), self.per_unit()

        def planned(part: str, value: Expr | None, unit: str, help: str) -> Expr | None:
            key, label = f"{self.result}_{part}_{number}", f"{self.label}: {part} of piece {number}"
            return None if value is None else self.plan(key, value, unit, label, f"{help}: {words}.")

        room = planned("room", left, unit, "The limit less the fixed part of")
        slope = planned("slope", piece.slope, unit + per, "What this grows by from 0 on")
        curve = planned("curve", piece.curvature, unit + per + per, "What the slope grows by of")
        assert room is not None
        reached = _reached(room, slope, curve, self.most)
        answer = planned("answer", reached, self.job.unit_of(self.base), "Where this reaches the limit")
        assert answer is not None
        return answer


def _reached(room: Expr, slope: Expr | None, curvature: Expr | None, limit: Expr) -> Expr:
    """Where a piece reaches the limit. Where nothing grows: no limit, or no room at all.

    A negative answer, of a piece that is beyond the limit from the start, becomes 0 later on.
    """
    flat = when(room >= 0, limit, 0)
    if curvature is None:
        return lift(flat if slope is None else when(slope > 0, room / slope, flat))
    start = lift(0) if slope is None else slope
    root = Expr("root", (room, start, curvature), "count")
    return lift(when(start + curvature > 0, when(room > 0, root, 0), flat))


def _flat(op: str, parts: list[Expr]) -> Expr:
    """A maximum of maxima as one maximum, a minimum likewise."""
    level = [inner for part in parts for inner in (part.args if part.op == op else (part,))]
    return Expr(op, tuple(level), next((part.unit for part in level if part.unit), None))


def _under(test: Expr, truth: bool, tree: Expr) -> Expr:
    """The tree where the condition is known: a fork on the same condition is decided."""
    if tree.op == "when" and repr(tree.args[0]) == repr(test):
        branch: Expr = tree.args[1 if truth else 2]
        return branch
    return tree


# ---------------------------------------------------------------------- from planned to added
def _length(tree: Expr) -> int:
    """About how long the formula is in a sheet."""
    return sum(sum(len(str(arg)) + 1 for arg in node.args) for node in walk(tree) if not children(node))


def _shorter(trees: dict[str, Expr], result: str) -> dict[str, Expr]:
    """The planned terms; one with a single user is written into that user's formula while it stays short."""
    uses: dict[str, int] = {}
    for tree in trees.values():
        for key in names_in(tree):
            uses[key] = uses.get(key, 0) + 1
    out: dict[str, Expr] = {}
    for key, tree in trees.items():
        for used in dict.fromkeys(names_in(tree)):
            if used not in out or uses[used] > 1:
                continue
            if tree.op == "name" or _length(tree) + _length(out[used]) < LONGEST_FORMULA:
                tree = replace(tree, {used: out.pop(used)})
        out[key] = tree
    return {key: tree for key, tree in out.items() if key == result or key in uses}


def _add(job: Job, result: str, terms: dict[str, Term], trees: dict[str, Expr]) -> list[str]:
    """Derive the planned terms; for one whose formula a derived term already has, that term stands in."""
    known = {repr(job.trees[key]): key for key in job.order if job.modules.get(key) == __name__}
    renamed: dict[str, Expr] = {}
    added: list[str] = []
    for key, tree in trees.items():
        tree = replace(tree, renamed)
        twin = known.get(repr(tree))
        if twin is not None and key != result:
            renamed[key] = job.symbol(twin)
            continue
        job.derive(terms[key]._replace(needs=tuple(dict.fromkeys(names_in(tree)))), tree)
        job.modules[key] = __name__
        known[repr(tree)] = key
        added.append(key)
    return added


__all__ = ["largest"]

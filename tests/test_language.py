"""The formula language: every surface gives what the plain functions give, and what is wrong is named."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import xlsxwriter
from engines import Engine, Formualizer, IronCalc, Target
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from strategies import random_inputs

from sizing_xlsx.formula import primitives as p
from sizing_xlsx.formula.declare import Choice, Constant, Input, Number, Whole, overridable, term
from sizing_xlsx.formula.engine import value_of
from sizing_xlsx.formula.expression import Expr, lift, walk
from sizing_xlsx.formula.job import Job
from sizing_xlsx.formula.render import column_name, in_words, public_name, sheet_formula, source_text
from sizing_xlsx.formula.table import Table
from sizing_xlsx.jobs import JOBS, beside, make_job, modules, plain_job
from sizing_xlsx.presets.catalogue import Presets, load_presets

ENGINES = (Formualizer, IronCalc)

# ---------------------------------------------------------------------- random formulas
# A formula is a nested tuple: an operation and its arguments. With numbers it gives the plain value; with
# symbols, the tree. Values are halves and whole numbers, so that sums and products are exact.
VALUES: dict[str, Any] = {
    "alpha": 3,
    "beta": 8.5,
    "gamma": -2,
    "delta": 0,
    "epsilon": 1024,
    "entered": None,
    "other": 7,
}
OPTIONAL = ("entered", "other")
NAMES = tuple(name for name in VALUES if name not in OPTIONAL)
NUMBERS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "max": p.maximum,
    "min": p.minimum,
    "max3": p.maximum,
    "floor": p.floor,
    "when": p.when,
    "given": p.given,
    "choose": p.choose,
}
TESTS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": operator.and_,
    "or": operator.or_,
    "not": p.opposite,
    "equal": p.equal,
}


class NearTieError(ArithmeticError):
    """Rounding may decide otherwise in another engine."""


def random_formula(rng: random.Random, depth: int, kind: str = "number") -> Any:
    if kind == "test":
        if depth > 1 and rng.random() < 0.45:
            op = rng.choice(("and", "or", "not"))
            return (op, *(random_formula(rng, depth - 1, "test") for _ in range(1 if op == "not" else 2)))
        if rng.random() < 0.15:
            left = ("+", rng.choice(NAMES), random_formula(rng, depth - 1))
            return ("equal", ("floor", left), rng.choice((0, 1, 2)))
        op = rng.choice(("<", "<=", ">", ">="))
        # At least one name on the left: two literals are compared by Python, not by the language.
        return (op, ("+", rng.choice(NAMES), random_formula(rng, depth - 1)), random_formula(rng, depth - 1))
    if depth <= 0 or rng.random() < 0.12:
        return rng.choice((*NAMES, *NAMES, 0, 1, 2))
    op = rng.choice(("+", "-", "*", "/", "-", "/", "+", "*", "max", "min", "max3", "floor", "when", "given", "choose"))
    if op == "when":
        return (
            op,
            random_formula(rng, depth - 1, "test"),
            *(random_formula(rng, depth - 1) for _ in range(2)),
        )
    if op == "given":
        return (op, rng.choice(OPTIONAL), random_formula(rng, depth - 1))
    if op == "choose":
        index = rng.choice((1, 2, ("when", random_formula(rng, depth - 1, "test"), 1, 2)))
        return (op, index, *(random_formula(rng, depth - 1) for _ in range(rng.choice((2, 3)))))
    count = {"max3": 3, "floor": 1}.get(op, 2)
    return (op, *(random_formula(rng, depth - 1) for _ in range(count)))


def grow(formula: Any, names: dict[str, Any]) -> Any:
    """The formula called with these names: values or symbols."""
    if not isinstance(formula, tuple):
        return names[formula] if isinstance(formula, str) else formula
    op, *parts = formula
    if op == "not" and isinstance(names["alpha"], Expr):
        return p.opposite(grow(parts[0], names))
    args = [grow(part, names) for part in parts]
    if op in ("<", "<=", ">", ">="):
        _no_near_tie(*args)
    if op == "floor" and isinstance(args[0], int | float):
        _no_near_tie(args[0], round(args[0]))
    return (NUMBERS.get(op) or TESTS[op])(*args)


def _no_near_tie(a: Any, b: Any) -> None:
    if (
        not isinstance(a, Expr)
        and not isinstance(b, Expr)
        and a != b
        and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    ):
        raise NearTieError


SYMBOLS = {name: Expr("name", (name,), "count") for name in VALUES}


def scalar_value(tree: Expr, values: dict[str, Any]) -> Any:
    """The tree through the source text of the scalar engine."""
    job = single(tree)
    return job.scalar(("wanted",))(**values)[0]


def single(tree: Expr) -> Job:
    """A job of inputs and this one formula."""
    inputs = {name: Input("count", Number(-1e12, 1e12), None, name, name) for name in VALUES}
    module = ModuleType("example")
    vars(module).update(inputs)
    job = Job("example", (module,), TABLES)
    job.trees["wanted"], job.order = tree, ["wanted"]
    return job


TABLES = {
    "sizes": Table(
        "sizes",
        ["Small", "Large"],
        {"width": [3.5, 7], "word": ["narrow", "wide"]},
        {"width": "count", "word": "text"},
    )
}


def usable(formula: Any) -> tuple[Any, Expr] | None:
    """The plain value and the tree of a formula; None where plain Python divides by zero or nearly ties."""
    try:
        value = grow(formula, VALUES)
    except (ZeroDivisionError, NearTieError, OverflowError):
        return None
    tree = lift(grow(formula, SYMBOLS))
    if not isinstance(value, int | float) or abs(value) > 1e15:
        return None
    return value, tree


def near(a: Any, b: Any, scale: float = 0.0) -> bool:
    return bool(abs(a - b) <= 1e-12 * max(abs(a), abs(b), scale, 1e-300))


def scale_of(tree: Expr) -> float:
    """The largest number on the way to a result: rounding of a difference is relative to it."""
    found = [1.0]
    for node in walk(tree):
        if node.op in ("range", "words") or node.unit == "bool":
            continue
        try:
            value = value_of(node, VALUES, TABLES)
        except ZeroDivisionError:
            continue
        if isinstance(value, int | float):
            found.append(abs(value))
    return max(found)


@settings(max_examples=300, deadline=None, derandomize=True)
@for_all(st.integers(0, 2**32))
def test_random_formulas_agree_in_python(seed: int) -> None:
    """Plain call = walked tree = compiled scalar, exactly; the vector engine within 1e-12."""
    found = usable(random_formula(random.Random(seed), 5))
    if found is None:
        return
    value, tree = found
    assert value_of(tree, VALUES, TABLES) == value
    assert scalar_value(tree, VALUES) == value, source_text(tree, "scalar")
    columns = {key: np.array([np.nan if v is None else v] * 3, dtype=float) for key, v in VALUES.items()}
    with np.errstate(all="ignore"):
        vector = single(tree).vector(("wanted",))
        many = np.broadcast_to(np.asarray(vector(**columns)[0], dtype=float), 3)
    assert all(near(one, value, scale_of(tree)) for one in many), source_text(tree, "vector")
    with np.errstate(all="ignore"):
        try:
            alone = vector(**VALUES)[0]  # every column one value for all jobs
        except ZeroDivisionError:  # in a branch that is not taken
            return
    assert near(float(alone), value, scale_of(tree)), source_text(tree, "vector")


@settings(max_examples=200, deadline=None, derandomize=True)
@for_all(st.integers(0, 2**32))
def test_the_words_of_a_formula_bind_as_it_does(seed: int) -> None:
    """Read back as arithmetic, the documentation's text gives the same number."""
    rng = random.Random(seed)

    def arithmetic(depth: int) -> Any:
        if depth == 0 or rng.random() < 0.15:
            return rng.choice((*NAMES, 1, 2))
        return (rng.choice("+-*/"), arithmetic(depth - 1), arithmetic(depth - 1))

    found = usable(arithmetic(5))
    if found is None:
        return
    value, tree = found
    text = in_words(tree, lambda name: name).replace("×", "*").replace("÷", "/").replace("−", "-")
    assert eval(text, {"__builtins__": {}}, dict(VALUES)) == value


def write_formulas(path: Path, formulas: list[str], values: dict[str, Any]) -> None:
    """A workbook with the values as named cells and the formulas down column A of Calc."""
    with xlsxwriter.Workbook(path) as book:
        calc, names = book.add_worksheet("Calc"), book.add_worksheet("Names")
        for row, (name, value) in enumerate(values.items()):
            names.write(row, 0, "none" if value is None else value)  # an absent value is a word in a sheet
            book.define_name(public_name(name), f"=Names!$A${row + 1}")
        for key, table in TABLES.items():
            for column, cells in [(None, table.keys), *table.columns.items()]:
                place = len(table.columns) if column is None else list(table.columns).index(column)
                names.write_column(0, 3 + place, cells)
                letter = "DEFGH"[place]
                book.define_name(column_name(key, column), f"=Names!${letter}$1:${letter}${len(table)}")
        for row, formula in enumerate(formulas):
            calc.write_formula(row, 0, formula, None, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_random_formulas_agree_in_a_sheet(engine: type[Engine], tmp_path: Path) -> None:
    rng = random.Random(11)
    found = [pair for pair in (usable(random_formula(rng, rng.choice((2, 3, 4, 5)))) for _ in range(1500)) if pair]
    found = [(value, tree) for value, tree in found if len(sheet_formula(tree)) < 2000]
    assert len(found) > 500
    write_formulas(tmp_path / "book.xlsx", [sheet_formula(tree) for _, tree in found], VALUES)
    book = engine(tmp_path / "book.xlsx")
    got = book.get_many([("Calc", row, 1) for row in range(1, len(found) + 1)])
    for result, (value, tree) in zip(got, found, strict=True):
        assert isinstance(result, int | float), (sheet_formula(tree), result)
        assert near(result, value, scale_of(tree)), (sheet_formula(tree), result, value)


# ---------------------------------------------------------------------- brackets, one by one
A, B, C = (SYMBOLS[name] for name in ("alpha", "beta", "gamma"))
BRACKETS: list[tuple[Any, str, str]] = [
    (A - (B - C), "=Alpha-(Beta-Gamma)", "alpha-(beta-gamma)"),
    (A - B - C, "=Alpha-Beta-Gamma", "alpha-beta-gamma"),
    (A - (B + C), "=Alpha-(Beta+Gamma)", "alpha-(beta+gamma)"),
    (A / (B * C), "=Alpha/(Beta*Gamma)", "alpha/(beta*gamma)"),
    (A / (B / C), "=Alpha/(Beta/Gamma)", "alpha/(beta/gamma)"),
    (A / B / C, "=Alpha/Beta/Gamma", "alpha/beta/gamma"),
    (A * (B / C), "=Alpha*(Beta/Gamma)", "alpha*(beta/gamma)"),
    (A * (B + C), "=Alpha*(Beta+Gamma)", "alpha*(beta+gamma)"),
    ((A + B) * C, "=(Alpha+Beta)*Gamma", "(alpha+beta)*gamma"),
    (A * B + C, "=Alpha*Beta+Gamma", "alpha*beta+gamma"),
    (0 - A * B, "=0-Alpha*Beta", "0-alpha*beta"),
    (p.maximum(A - B, C) / 2, "=MAX(Alpha-Beta,Gamma)/2", "max(alpha-beta, gamma)/2"),
    (p.floor(A + B) * C, "=INT(Alpha+Beta)*Gamma", "floor(alpha+beta)*gamma"),
    (
        p.when((A < B) & (B > 0), 1, 2),
        "=IF(AND(Alpha<Beta,Beta>0),1,2)",
        "(1 if (alpha<beta and beta>0) else 2)",
    ),
    (
        p.when(p.equal(A + B, C), 1, 0) * 2,
        "=IF(Alpha+Beta=Gamma,1,0)*2",
        "(1 if (alpha+beta == gamma) else 0)*2",
    ),
    (
        p.given(A, B + C) * 2,
        "=IF(ISTEXT(Alpha),Beta+Gamma,Alpha)*2",
        "(alpha if is_number(alpha) else beta+gamma)*2",
    ),
]


@pytest.mark.parametrize(("tree", "sheet", "scalar"), BRACKETS)
def test_brackets(tree: Expr, sheet: str, scalar: str) -> None:
    assert sheet_formula(tree) == sheet
    assert source_text(tree, "scalar") == scalar


def test_arrays_join_conditions_with_brackets() -> None:
    """& binds tighter than < in Python: without brackets the vector engine means something else."""
    tree = p.when((A < B) & (C > 0), 1, 0) + p.when((A < B) | (C > 0), 2, 0)
    vector = single(tree).vector(("wanted",))
    alpha, gamma = np.array([1.0, 9, 1, 9]), np.array([1.0, 1, -1, -1])
    got = vector(alpha=alpha, beta=5.0, gamma=gamma)[0]
    assert got.tolist() == [3, 2, 2, 0]


@pytest.mark.parametrize("values", [{"alpha": 1, "beta": 2}, {"alpha": np.array([1.0]), "beta": np.array([2.0])}])
def test_not_of_one_value_and_of_an_array(values: dict[str, Any]) -> None:
    vector = single(p.when(p.opposite(A < B), 1, 0)).vector(("wanted",))
    assert float(np.asarray(vector(**values)[0]).ravel()[0]) == 0


ROOTS = [(6.0, 5.0, 0.5), (1e9, 3e6, 0.0), (7.0, 0.0, 2.0), (1e11, 1.0, 1e-6), (-0.5, 4.0, 1.0)]


@pytest.mark.parametrize("engine", ENGINES)
def test_root_on_every_surface(engine: type[Engine], tmp_path: Path) -> None:
    """x with slope·x + curvature·x²/2 = room, when its arguments are sums too."""
    tree = 1 + 2 / Expr("root", (A + 0, lift(0) + B, C - 0), "count") * 2
    for room, slope, curvature in ROOTS:
        values = VALUES | {"alpha": room, "beta": slope, "gamma": curvature}
        plain = p.PRIMITIVES["root"].compute(room, slope, curvature)
        assert math.isclose(slope * plain + curvature * plain**2 / 2, room, rel_tol=1e-9)
        wanted = 1 + 2 / plain * 2
        assert value_of(tree, values, TABLES) == scalar_value(tree, values) == wanted
        columns = {key: np.array([value], dtype=float) for key, value in values.items()}
        assert near(single(tree).vector(("wanted",))(**columns)[0][0], wanted)
        write_formulas(tmp_path / "root.xlsx", [sheet_formula(tree)], values)
        assert near(engine(tmp_path / "root.xlsx").get(("Calc", 1, 1)), wanted)


DISPLAY: list[tuple[str, Any, Any]] = [
    ("round", lambda x: p.rounded(x, 0), [(2.5, 3), (-2.5, -3), (2.4, 2), (0.5, 1)]),
    ("round_2", lambda x: p.rounded(x, 2), [(2.675, 2.68), (1.005, 1.01), (12.3449, 12.34)]),
    ("up", lambda x: p.round_up(x, 1), [(2.01, 2.1), (-2.01, -2.1), (2, 2)]),
    ("down", lambda x: p.round_down(x, 1), [(2.19, 2.1), (-2.19, -2.1), (2, 2)]),
    (
        "fixed",
        lambda x: p.fixed(x, 1),
        [(1234.567, "1,234.6"), (0.05, "0.1"), (12, "12.0"), (1234567, "1,234,567.0")],
    ),
    ("join", lambda x: p.joined("a ", p.fixed(x, 0), ' "b"'), [(4.5, 'a 5 "b"')]),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "rule", "cases"), DISPLAY, ids=[case[0] for case in DISPLAY])
def test_roundings_and_words(name: str, rule: Any, cases: Any, engine: type[Engine], tmp_path: Path) -> None:
    for value, wanted in cases:
        assert rule(value) == wanted
        tree = rule(A)
        assert value_of(tree, {"alpha": value}, TABLES) == scalar_value(tree, {"alpha": value}) == wanted
        write_formulas(tmp_path / "display.xlsx", [sheet_formula(tree)], VALUES | {"alpha": value})
        got = engine(tmp_path / "display.xlsx").get(("Calc", 1, 1))
        assert got == wanted if isinstance(wanted, str) else near(got, wanted)


@pytest.mark.parametrize("engine", ENGINES)
def test_look_ups_disregard_case_on_every_surface(engine: type[Engine], tmp_path: Path) -> None:
    sizes, key = TABLES["sizes"], Expr("name", ("kind",), "text")
    width, word = sizes.width[sizes.row_of(key)] * 2 - 1, sizes.word[sizes.row_of(key)]
    for text, wanted in (("Small", (6, "narrow")), ("LARGE", (13, "wide"))):
        row = sizes.row_of(text)
        assert (sizes.width[row] * 2 - 1, sizes.word[row]) == wanted
        assert tuple(value_of(tree, {"kind": text}, TABLES) for tree in (width, word)) == wanted
        write_formulas(tmp_path / "look.xlsx", [sheet_formula(width), sheet_formula(word)], {"kind": text})
        assert tuple(engine(tmp_path / "look.xlsx").get_many([("Calc", 1, 1), ("Calc", 2, 1)])) == wanted
    with pytest.raises(KeyError):
        sizes.row_of("Medium")


def test_equal_texts_on_every_surface(tmp_path: Path) -> None:
    sizes, key = TABLES["sizes"], Expr("name", ("kind",), "text")
    tree = p.when(p.equal(sizes.word[sizes.row_of(key)], "wide"), 1, 0)
    for text, wanted in (("Small", 0), ("Large", 1)):
        assert p.when(p.equal(sizes.word[sizes.row_of(text)], "wide"), 1, 0) == wanted
        assert value_of(tree, {"kind": text}, TABLES) == wanted
        write_formulas(tmp_path / "equal.xlsx", [sheet_formula(tree)], {"kind": text})
        for engine in ENGINES:
            assert engine(tmp_path / "equal.xlsx").get(("Calc", 1, 1)) == wanted
    module = ModuleType("example")
    module.kind = Input("text", Choice("sizes"), "Small", "", "")  # type: ignore[attr-defined]
    job = Job("example", (module,), TABLES)
    job.trees["wanted"], job.order = tree, ["wanted"]
    job.terms["wanted"] = _as("wanted", lambda: 0).term
    assert job.size_many({"kind": ["Small", "Large", "small"]}, ("wanted",))["wanted"].tolist() == [0, 1, 0]


def test_words_in_place_of_a_number() -> None:
    tree = p.either(A > 0, A * 2, "none")
    assert (p.either(True, 4, "none"), p.either(False, 4, "none")) == (4, "none")
    assert sheet_formula(tree) == '=IF(Alpha>0,Alpha*2,"none")'
    assert scalar_value(tree, {"alpha": 0}) == "none"
    many = single(tree).vector(("wanted",))(alpha=np.array([2.0, 0.0]))[0]
    assert many[0] == 4 and np.isnan(many[1])


# ---------------------------------------------------------------------- what a formula may not say
def _made(**members: Any) -> Job:
    module = ModuleType("example")
    vars(module).update(members)
    return Job("example", (module,), TABLES)


def _as(name: str, formula: Callable[..., Any], unit: str = "count", doc: str = "An example.") -> Any:
    formula.__name__, formula.__doc__ = name, doc
    return term(unit)(formula)


width = Constant(4, "count", "Width", "made up", "assumed")
BRANCHES: list[Callable[..., Any]] = [
    lambda width: 1 if width > 2 else 0,
    lambda width: max(width, 1),
    lambda width: min(1, width),
    lambda width: p.when((width > 1) and (width < 2), 1, 0),
    lambda width: p.when(not width > 1, 1, 0),
    lambda width: p.when(0 < width < 2, 1, 0),
    lambda width: width or 1,
]


@pytest.mark.parametrize("formula", BRANCHES)
def test_a_formula_that_branches_in_python_is_refused(formula: Callable[..., Any]) -> None:
    with pytest.raises(
        TypeError, match=r"^example: term wanted: a formula branched with Python's if, .*; use when\(\)"
    ):
        _made(wanted=_as("wanted", formula), width=width)


@pytest.mark.parametrize("formula", [lambda width: p.when(width == 1, 1, 0), lambda width: width * (width != 1)])
def test_equality_is_a_function(formula: Callable[..., Any]) -> None:
    """== between symbols would compare the trees, not the values."""
    with pytest.raises(TypeError, match=r"term wanted"):
        _made(wanted=_as("wanted", formula), width=width)


@pytest.mark.parametrize(
    "formula",
    [
        lambda width: 3.5 * width,
        lambda width: width + 14,
        lambda width: width * -1,
        lambda width: width / 1e9,
        lambda width: p.maximum(width, 0.5),
        lambda width: p.when(width > 3, 1, 0),
        lambda width: p.given(width, 7),
    ],
)
def test_a_stray_number_is_refused(formula: Callable[..., Any]) -> None:
    with pytest.raises(
        TypeError, match=r"term wanted: the number \S+ belongs in a named constant with a unit and a source"
    ):
        _made(wanted=_as("wanted", formula), width=width)


def test_the_digits_of_a_rounding_are_no_stray_number() -> None:
    assert _made(wanted=_as("wanted", lambda width: p.rounded(width, 3)), width=width).reference()["wanted"] == 4


def test_a_comparison_is_no_number() -> None:
    for formula in (lambda width: width + (width > 1), lambda width: p.when((width > 1) > 0, 1, 0)):
        with pytest.raises(TypeError, match=r"term wanted: .*bool in arithmetic"):
            _made(wanted=_as("wanted", formula), width=width)
    with pytest.raises(TypeError, match=r"term wanted"):
        _made(wanted=_as("wanted", lambda width: width > 1), width=width)


def test_a_cycle_is_named_with_its_path() -> None:
    members = {
        "first": _as("first", lambda second: second),
        "second": _as("second", lambda third: third),
        "third": _as("third", lambda first: first),
        "start": _as("start", lambda first: first),
    }
    with pytest.raises(ValueError, match=r"example: cycle first -> second -> third -> first$"):
        _made(**{key: members[key] for key in ("start", "first", "second", "third")})
    with pytest.raises(ValueError, match=r"cycle own -> own"):
        _made(own=_as("own", lambda own: own))


def test_a_missing_name_is_named_with_who_needs_it() -> None:
    with pytest.raises(NameError, match=r"example: wanted needs widht, which is no term, input, constant or table"):
        _made(wanted=_as("wanted", lambda widht: widht), width=width)


def test_a_missing_column_names_the_term() -> None:
    with pytest.raises(Exception, match=r"wanted.*sizes has no column 'height'"):
        _made(wanted=_as("wanted", lambda sizes: sizes.height[1]))


def test_a_missing_docstring_is_named() -> None:
    with pytest.raises(ValueError, match=r"term wanted has no docstring"):
        _made(wanted=_as("wanted", lambda width: width, doc=""), width=width)


@pytest.mark.parametrize("first", ["input", "constant", "term", "replaceable"])
@pytest.mark.parametrize("second", ["input", "constant", "term", "table"])
def test_a_double_definition_is_named(first: str, second: str) -> None:
    def made(kind: str, key: str) -> dict[str, Any]:
        if kind == "input":
            return {key: Input("count", Whole(1, 9), 1, key, key)}
        if kind == "constant":
            return {key: Constant(1, "count", key, "made up", "assumed")}
        if kind == "replaceable":
            return {key: Constant(1, "count", key, "made up", "assumed", Number(0, 9))}
        return {key: _as(key, lambda: 1)}

    key = "sizes" if second == "table" else "thing"
    one, two = ModuleType("one"), ModuleType("two")
    vars(one).update(made(first, key))
    vars(two).update({} if second == "table" else made(second, key))
    with pytest.raises(ValueError, match=f"example: {key} is defined twice"):
        Job("example", (one, two), TABLES)


def test_the_name_of_a_replacement_is_taken_too() -> None:
    replaceable = overridable(Number(0, 9))(_as("thing", lambda: 1))
    with pytest.raises(ValueError, match=r"thing_override is defined twice"):
        _made(thing_override=Input("count", Whole(1, 9), 1, "", ""), thing=replaceable)


def test_what_two_modules_share_is_defined_once() -> None:
    one, two = ModuleType("one"), ModuleType("two")
    shared = {
        "width": width,
        "wanted": _as("wanted", lambda width: width * 2),
        "typed": Input("count", Whole(1, 9), 1, "", ""),
    }
    vars(one).update(shared)
    vars(two).update(shared)
    assert Job("example", (one, two), TABLES).reference()["wanted"] == 8


# ---------------------------------------------------------------------- whole jobs in a sheet
def workbook_of(job: Job, path: Path) -> None:
    """Every input, constant, table and term of a job as named cells, without any layout."""
    with xlsxwriter.Workbook(path) as book:
        cells, tables = book.add_worksheet("Cells"), book.add_worksheet("Tables")
        known = job.defaults() | {key: constant.value for key, constant in job.constants.items()}
        for row, key in enumerate([*known, *job.order]):
            book.define_name(public_name(key), f"=Cells!$A${row + 1}")
            if key in job.trees:
                cells.write_formula(row, 0, sheet_formula(job.trees[key]), None, 0)
            else:
                cells.write(row, 0, "none" if known[key] is None else known[key])
        for at, (table, column) in enumerate(looked_up(job)):
            data = job.tables[table]
            tables.write_column(0, at, data.columns[column] if column else data.keys)
            letter = xlsxwriter.utility.xl_col_to_name(at)
            book.define_name(column_name(table, column), f"=Tables!${letter}$1:${letter}${len(data)}")


def looked_up(job: Job) -> list[tuple[str, str | None]]:
    """The table columns that any term looks into; None is the key column."""
    found = {node.args: None for tree in job.trees.values() for node in walk(tree) if node.op == "range"}
    return sorted(found, key=str)


@lru_cache(maxsize=4)
def made_once(name: str) -> Job:
    """The job as it is."""
    return make_job(name, load_presets())


def _families() -> list[dict[str, Any]]:
    """Changes that reach what only some families, formats and stacks have."""
    few = {"vocabulary_size_override": 200, "gpu_capacity_override_gb": 5_000, "batch_size": 64}
    experts = ("Mixtral-8x7B-v0.1", "Qwen3-30B-A3B", "gpt-oss-20b", "Llama-4-Scout-17B-16E-Instruct", "DeepSeek-V3")
    models = [key for key in load_presets().models.keys if key.rpartition("/")[2] in experts]
    found: list[dict[str, Any]] = []
    extras: tuple[dict[str, Any], ...] = ({}, {"activation_checkpointing": "On"}, {"adapter_layers": 5})
    found += [few | extra | {"base_model": model} for model in models for extra in extras]
    nf4 = {"base_storage_format": "nf4 / fp4, block 64, double quant (nested block 256)"}
    found += [{"base_model": "google/gemma-3-4b-it", "images_per_row": 4}]
    found += [nf4 | {"base_model": "google/gemma-3-4b-it"}, nf4 | {"base_model": "mistralai/Mixtral-8x7B-v0.1"}]
    found += [nf4 | {"base_model": "mistralai/Mixtral-8x7B-v0.1", "training_stack": "HF Trainer, transformers 4.48"}]
    found += [{"base_model": "mistralai/Mixtral-8x7B-v0.1", "base_storage_format": "GPTQ int4, no groups"}]
    apart = nf4 | {"uses_autocast": "Off", "kbit_preparation": "On"}
    found += [apart, apart | few, apart | {"attention_implementation": "FlashAttention 2"}]
    found += [{"optimizer_choice": "8-bit Adam", "lora_rank": 1}, {"adapter_storage": "bf16", "lora_rank": 256}]
    attention = few | {"adapter_targets": "All attention", "keeps_model_output": "Off"}
    found += [attention, attention | {"mlp_width_override": 16_384}, attention | {"activation_checkpointing": "On"}]
    narrow = {f"{side}_override": 1 for side in ("attention_heads", "kv_heads")} | {"head_dimension_override": 16}
    alone = {f"target_{slot}": "Off" for slot in ("key", "value", "output", "gate", "up", "down")}
    fused = few | narrow | alone | {"adapter_targets": "Own choice", "mlp_width_override": 64, "lora_rank": 1}
    fused |= {"training_stack": "Fused kernels with fused linear loss", "activation_checkpointing": "On"}
    found += [fused | {"vocabulary_size_override": 32_000}]
    found += [{"base_model": "microsoft/Phi-3-mini-4k-instruct", "activation_checkpointing": "On"} | few]
    found += [{"base_model": "EleutherAI/pythia-1.4b", "training_stack": "litgpt, own loop"}]
    torchtune = few | nf4 | {"training_stack": "torchtune, own recipe", "adapter_storage": "bf16"}
    found += [torchtune, torchtune | {"batch_size": 1, "sequence_length": 16}]
    found += [{"base_model": model} for model in ("google/gemma-2-2b", "openai-community/gpt2")]
    return found


@lru_cache(maxsize=4)
def pool(name: str) -> list[dict[str, Any]]:
    """The worked job, each single choice of it, and random ones."""
    job = made_once(name)
    rng = random.Random(7)
    worked = job.defaults()
    found = [worked]
    for key, declared in job.inputs.items():
        if isinstance(declared.domain, Choice):
            found += [worked | {key: choice} for choice in job.choices(key)[:12]]
    found += [random_inputs(job, rng) for _ in range(80)]
    checkpointed = {"activation_checkpointing": "On"}
    small = {"batch_size": 1, "sequence_length": 16}
    found += [worked | checkpointed, worked | small, worked | small | checkpointed]
    # Moments and limits that random jobs seldom reach.
    large = {"batch_size": 2048}
    found += [worked | checkpointed | large | {"compute_precision": "fp32"}]
    found += [worked | checkpointed | large | {"vocabulary_size_override": 200}]
    found += [worked | {"gpu_capacity_override_gb": 100_000, key: 1} for key in ("batch_size", "sequence_length")]
    found += [worked | {"gpu_choice": card, "verdict_basis": "Published"} for card in job.choices("gpu_choice")[:3]]
    if name == "training":
        long = {"batch_size": 10, "sequence_length": 4077, "gradient_accumulation": 2, "optimizer_choice": "8-bit Adam"}
        found.append(worked | checkpointed | long)
    if name == "lora":
        found += [worked | {"adapter_layers": 3}, worked | {"lora_dropout": "On"} | checkpointed]
        found += [worked | change for change in _families()]
        window = {"base_model": "mistralai/Mistral-7B-v0.1", "sequence_length": 4096}
        found += [worked | window, worked | window | checkpointed]
    if "sharding_stage" in job.inputs:
        shared = {"gpu_count": 8, "base_model": "meta-llama/Llama-3.1-8B"}
        found += [worked | shared | {"sharding_stage": stage} for stage in job.choices("sharding_stage")[1:]]
        found.append(worked | shared | {"gpu_count": 32, "sharding_stage": "FSDP hybrid shard"})
        large_model = {"gpu_count": 8, "base_model": "meta-llama/Llama-3.1-70B"}
        found.append(worked | small | large_model | {"sharding_stage": "FSDP full shard"})
    if name == "lora":
        found.append(worked | large_model | {"lora_rank": 1024, "sharding_stage": "ZeRO-2"})
        fsdp = worked | shared | {"sharding_stage": "FSDP full shard"}
        found += [fsdp | checkpointed | {"training_stack": stack} for stack in job.choices("training_stack")]
    if name == "full":
        experts = {"base_model": "mistralai/Mixtral-8x7B-v0.1", "gpu_count": 8, "expert_parallel": 2}
        found += [worked | {key: change[key] for key in change.keys() & job.inputs.keys()} for change in _families()]
        alone = {"gpu_count": 1, "sharding_stage": "None", "base_model": "TinyLlama/TinyLlama-1.1B-Chat-v1.0"}
        alone |= {"vocabulary_size_override": 262_144}
        kernels = job.choices("loss_kernel")
        found += [worked | alone | {"batch_size": 32, "sequence_length": 2048, "loss_kernel": key} for key in kernels]
        heads = {"base_model": "Qwen/Qwen2.5-1.5B", "vocabulary_size_override": 5_000_000, "layer_count_override": 2}
        heads |= {"batch_size": 64, "sequence_length": 4096, "gpu_capacity_override_gb": 50_000}
        found += [worked | alone | heads | {"loss_kernel": key} for key in kernels]
        update = small | {"gpu_count": 1, "sharding_stage": "None", "base_model": "Qwen/Qwen2.5-1.5B"}
        update |= {"training_recipe": "pure bf16 AdamW"}  # without a master copy, which takes all gradients at once
        found += [worked | update | {"optimizer_step": key} for key in job.choices("optimizer_step")]
        found.append(worked | {"training_recipe": "fp32 AdamW", "compute_precision": "fp32"})
        found += [worked | experts, worked | {"base_model": "mistralai/Mistral-7B-v0.1", "sequence_length": 8192}]
        narrow = {"mlp_width_override": 128, "attention_heads_override": 1, "kv_heads_override": 1}
        narrow |= {"head_dimension_override": 16, "training_recipe": "fp32 AdamW", "optimizer_step": "fused"}
        found.append(worked | narrow | {"sequence_length": 1024, "loss_kernel": "Chunked", "gpu_count": 1} | {
            "sharding_stage": "None", "activation_checkpointing": "Off", "base_model": "meta-llama/Llama-3.1-8B"
        })  # fmt: skip
        offloads = job.choices("state_offload")[1:]
        found += [worked | {"sharding_stage": "ZeRO-3", "state_offload": offload} for offload in offloads]
    rules = job.scalar(job.fault_rules)
    return [inputs for inputs in found if all(rules(**inputs))]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> type[Engine]:
    return request.param  # type: ignore[no-any-return]


def enter(book: Engine, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Type the inputs that change."""
    for key, value in new.items():
        if repr(value) != repr(old[key]):
            book.set(public_name(key), "none" if value is None else value)


def compare(book: Engine, job: Job, values: dict[str, Any]) -> None:
    book.recalculate()
    for key, got in zip(job.order, book.get_many([public_name(key) for key in job.order]), strict=True):
        wanted = values[key]
        if isinstance(wanted, str):
            assert got == wanted, key
        else:
            assert isinstance(got, int | float), (key, got)
            assert near(got, wanted), (key, got, wanted)


@pytest.mark.parametrize("name", JOBS)
def test_every_term_of_random_jobs_in_a_sheet(name: str, engine: type[Engine], tmp_path: Path) -> None:
    job = made_once(name)
    workbook_of(job, tmp_path / "job.xlsx")
    book = engine(tmp_path / "job.xlsx")
    compare(book, job, job.reference())
    rng = random.Random(5)
    typed = job.defaults()
    for _ in range(60):
        inputs = random_inputs(job, rng)
        enter(book, typed, inputs)
        compare(book, job, job.reference(inputs))
        typed = inputs


# ---------------------------------------------------------------------- one change of one coefficient
def constants_of(name: str) -> list[tuple[ModuleType, str]]:
    """Each constant of a job, with the module that it is written in."""
    job = made_once(name)
    found = []
    for module in (*modules(name), *(module for layer in beside(name) for module in layer)):
        for key, value in vars(module).items():
            if isinstance(value, Constant) and (key in job.constants or "preset_" + key in job.constants):
                found.append((module, key))
    return found


# Constants that no figure of these jobs rests on, and why they are there.
UNUSED_CONSTANTS = {
    "bytes_per_gib": "for readers who think in GiB: shown, not calculated with",
    **dict.fromkeys(
        ("least_speed", "least_duration", "least_link", "least_price"), "keeps what is not known from dividing by zero"
    ),
    "tokens_wanted_each": "what is warned of",
    "node_cards": "whether a run stays on one node: told, not calculated with",
    "no_price": "stands for an entry left empty",
    "rounding_guard": "a whole answer that rounding leaves a hair too low; no figure may rest on its size",
}


@lru_cache(maxsize=4)
def before(name: str) -> list[tuple[Any, ...]]:
    """Every value of the job as it is, for each of the pool."""
    job = made_once(name)
    every = job.scalar(tuple(job.order))
    return [every(**inputs) for inputs in pool(name)]


def changed_job(name: str, presets: Presets) -> Job:
    """The job made anew. A coefficient changes no formula, so the inverse questions, made of formulas, are taken over."""
    old, job = made_once(name), plain_job(name, presets)
    for key in old.order:
        if key in job.trees:
            assert repr(job.trees[key]) == repr(old.trees[key]), f"the formula of {key} changes"
        else:
            job.derive(old.terms[key], old.trees[key])
    assert job.order == old.order
    return job


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Engine]:
    """Each job, open in an engine; whoever changes a coefficient changes it back."""
    found: dict[str, Engine] = {}
    for name in JOBS:
        path = tmp_path_factory.mktemp("books") / f"{name}.xlsx"
        workbook_of(made_once(name), path)
        found[name] = Formualizer(path)
    return found


RESULTS = (
    "peak_allocated_gb",
    "total_reserved_gb",
    "headroom_gb",
    "fit_verdict",
    "published_peak_allocated_gb",
    "published_total_reserved_gb",
    "traced_peak_allocated_gb",
    "traced_total_reserved_gb",
    "card_utilisation",
    "largest_batch_size",
    "largest_sequence_length",
    "published_largest_batch_size",
    "published_largest_sequence_length",
    "run_hours",
    "run_hours_slow",
    "run_hours_fast",
    "days_needed",
    "traffic_hours",
    "checkpoints_gb",
    "rent_cost",
    "rent_per_million_tokens",
    "own_cost",
    "break_even_hours",
    "month_at_floor",
    "budget_cost",
)
OF_HOSTS = ("host_memory_gb", "nvme_gb")  # results of jobs that offload


def results_of(job: Job) -> tuple[str, ...]:
    """What a change of a coefficient may reach."""
    return (*RESULTS, *(key for key in OF_HOSTS if key in job.order))


def first_change(name: str, job: Job) -> int | None:
    """The first of the pool for which a result of the changed job differs."""
    every = job.scalar(tuple(job.order))
    places = [job.order.index(key) for key in results_of(job)]
    for at, (inputs, old) in enumerate(zip(pool(name), before(name), strict=True)):
        new = every(**inputs)
        if any(old[place] != new[place] for place in places):
            return at
    return None


def check_change(name: str, job: Job, book: Engine, cells: list[tuple[Target, float, float]]) -> None:
    """A changed coefficient reaches a result, and every engine follows the reference."""
    at = first_change(name, job)
    assert at is not None, "no result changes"
    inputs = pool(name)[at]
    wanted = job.reference(inputs)
    every = tuple(job.order)
    assert dict(zip(every, job.scalar(every)(**inputs), strict=True)) == {key: wanted[key] for key in every}
    numbers = tuple(key for key in results_of(job) if not isinstance(wanted[key], str))
    many = job.size_many(inputs, numbers)
    assert all(near(many[key][0], wanted[key]) for key in numbers)
    worked = job.defaults()
    enter(book, worked, inputs)
    for cell, _, value in cells:
        book.set(cell, value)
    try:
        compare(book, job, wanted)
    finally:
        enter(book, inputs, worked)
        for cell, value, _ in cells:
            book.set(cell, value)


ALL_CONSTANTS = [(name, module, key) for name in JOBS for module, key in constants_of(name)]


@pytest.mark.parametrize(("name", "module", "key"), ALL_CONSTANTS, ids=[f"{n}-{k}" for n, _, k in ALL_CONSTANTS])
def test_one_change_of_a_constant(
    name: str, module: ModuleType, key: str, monkeypatch: pytest.MonkeyPatch, books: dict[str, Engine]
) -> None:
    constant = getattr(module, key)
    changed = constant._replace(value=constant.value * 1.25)
    made_once(name)  # before the change
    monkeypatch.setattr(module, key, changed)
    job = changed_job(name, load_presets())
    if key in UNUSED_CONSTANTS or (name, key) == ("full", "mask_bytes"):  # full has no stored mask of dropout
        assert first_change(name, job) is None
        return
    cell = public_name(key if key in job.constants else "preset_" + key)
    check_change(name, job, books[name], [(cell, constant.value, changed.value)])


def columns_of(name: str) -> list[tuple[str, str]]:
    """Each number column of a job's own tables, whether or not a term looks into it.

    What full fine-tuning shares with adapters is changed there.
    """
    job = made_once(name)
    used = {table for table, _ in looked_up(job)}
    if name == "full":
        used -= {table for table, _ in looked_up(made_once("lora"))}
    return [
        (table, column) for table in sorted(used) for column, unit in job.tables[table].units.items() if unit != "text"
    ]


# Columns that are only shown or kept for later jobs.
UNUSED_COLUMNS = {
    ("gpus", "marketed_gb"),
    ("gpus", "driver_total_bytes"),
    ("gpus", "release_year"),
    *(("gpus", column) for column in ("cuda", "emulates_bf16", "mig_slice")),  # raise warnings; see test_cards.py
    ("training_models", "maximum_positions"),
    *(
        ("gpus", column) for column in ("fp8_dense_tflops", "bandwidth_gb_per_s")
    ),  # speeds of serving; see test_serving.py
}
# What counts for a model whose layers follow no pattern; every one of the catalogue has a pattern.
UNUSED_COLUMNS |= {("models", "moe_layer_count"), ("models", "full_layer_count")}
# Eager attention has no traced formula but where a form has no other.
UNUSED_COLUMNS |= {("layer_forms", f"eager_{width}") for width in ("q", "o", "nh_rope", "nh_S")}
UNUSED_COLUMNS |= {("stacks", "traced_nf4"), ("recipes", "traced")}  # what is warned of
UNUSED_COLUMNS |= {("recipes", "total_bytes"), ("full_forms", "layer_S")}  # shown; a part that no traced form has
UNUSED_COLUMNS |= {("recipes", f"runs_{by}") for by in ("ddp", "fsdp", "zero_1_2", "zero_3")}  # which launcher starts it
# Parts of forms of which the catalogue has no model (shared experts, positions a layer, fp32 between layers); steps do.
UNUSED_COLUMNS |= {("layer_forms", part) for part in ("shared_d", "rope_layer_S_hd", "boundary_d", "lowest_boundary_d")}
ONLY_IN = {
    # columns of shared tables that the other job uses
    ("lora", "optimizers", "published_bf16_state_bytes"),
    # what adapters over a decoder ask of an attention kernel
    *(("training", "attention_kernels", f"{column}") for column in ("takes_fp32", "eager", "extra_query_bytes")),
    ("training", "attention_kernels", "keeps_masks"),
    ("training", "attention_kernels", "score_bytes"),
    ("training", "attention_kernels", "traced"),
    # of latent attention, whose layers never set the peak of the pool
    ("full", "full_forms", "layer_rope"),
    # which 16-bit type is computed in matters for a base that is stored in one
    ("training", "compute_precisions", "half_type"),
}
ALL_COLUMNS = [(name, *place) for name in JOBS for place in columns_of(name)]


# Switches that say what a job has at all: turned round they leave it without a module to train.
# Numbers of rows: where there is one it is taken away, or made the first, for others would point anywhere.
POINTERS = {("layer_forms", "framework_row"): 0, ("full_forms", "fp32_row"): 1}
GATES = {("adapter_methods", "modules"), ("adapter_methods", "low_rank"), ("layer_forms", "slot_shared")}
GATES |= {("currencies", "dollar")}  # a dollar that is none has no rate
# What turned round refuses the worked job or what its pool is made of: whole nodes, copies, what can be offloaded.
GATES |= {("sharding_stages", "hybrid"), ("sharding_stages", "copies"), ("offloads", "parameters")}


@pytest.mark.parametrize(("name", "table", "column"), ALL_COLUMNS, ids=["-".join(place) for place in ALL_COLUMNS])
def test_one_change_of_a_table_column(name: str, table: str, column: str, books: dict[str, Engine]) -> None:
    presets = load_presets()
    old = made_once(name).tables[table]
    # Switches of 0 and 1 change places; shapes stay whole.
    if (table, column) in POINTERS:
        new_values = [POINTERS[table, column] if value else value for value in old.columns[column]]
    elif set(old.columns[column]) <= {0, 1}:
        new_values = [1 - value for value in old.columns[column]]
    else:
        new_values = [value * 2 if old.units[column] == "count" else value * 1.25 for value in old.columns[column]]
    changed = Table(table, old.keys, {**old.columns, column: new_values}, old.units)
    job = changed_job(
        name,
        presets._replace(**{table: changed})
        if table in presets._fields
        else presets._replace(options={**presets.options, table: changed}),
    )
    if (table, column) in GATES:
        assert first_change(name, job) is not None
        return
    if (table, column) in UNUSED_COLUMNS or (name, table, column) in ONLY_IN:
        assert first_change(name, job) is None
        return
    at = looked_up(job).index((table, column)) + 1
    values = zip(old.columns[column], new_values, strict=True)
    cells: list[tuple[Target, float, float]] = [
        (("Tables", row, at), before_value, value) for row, (before_value, value) in enumerate(values, 1)
    ]
    check_change(name, job, books[name], cells)

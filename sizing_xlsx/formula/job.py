"""The graph: a Job collects modules of formulas, orders them, calls each once with symbols, and checks them.

A cycle, a missing name, a unit that does not fit or a number that should be a named constant ends here, when
the job is made, with the names.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Container, Iterable, Mapping
from string import Formatter
from types import ModuleType
from typing import Any

from . import domains
from .declare import Check, Choice, Constant, Input, Override, Term, own_label
from .expression import Expr, children, lift, name, names_in
from .primitives import given
from .table import Table
from .units import kind_of, same

PLAIN_NUMBERS = (0, 1, 2)


class Job:
    """One kind of job: its inputs, constants, tables and terms, and the tree of each term.

    name: what the job is called. modules: where its formulas stand; a name is unique among them.
    tables: the presets that formulas look things up in. defaults: of inputs that differ in this
    job. opened_on: values that replace the defaults; `worked` keeps what they were. beside: layers of further modules;
    a check holds for its own layer and those after it and for nothing before: a wrong price withdraws no hours, and
    a wrong deadline no verdict on memory.
    """

    def __init__(
        self,
        name: str,
        modules: Iterable[ModuleType],
        tables: Mapping[str, Table],
        defaults: Mapping[str, Any] | None = None,
        opened_on: Mapping[str, Any] | None = None,
        beside: Iterable[Iterable[ModuleType]] = (),
    ) -> None:
        self.name = name
        self.tables = dict(tables)
        self.inputs: dict[str, Input] = {}
        self.constants: dict[str, Constant] = {}
        self.terms: dict[str, Term] = {}
        self.overrides: dict[str, Override] = {}
        self.checks: dict[str, Check] = {}
        self.modules: dict[str, str] = {}
        self.trees: dict[str, Expr] = {}
        self.order: list[str] = []
        self.engines: dict[Any, Any] = {}
        for module in modules:
            self._collect(module)
        self.layers = dict.fromkeys((*self.inputs, *self.terms), 0)
        for layer, others in enumerate(beside, 1):
            for module in others:
                self._collect(module)
            self.layers |= dict.fromkeys({*self.inputs, *self.terms} - self.layers.keys(), layer)
        self.beside = frozenset(key for key, layer in self.layers.items() if layer)
        self._set_defaults(defaults or {})
        self.worked = self.defaults()
        self._set_defaults(opened_on or {})
        for key, value in self.inputs.items():
            domain, default = value.domain, value.default
            if isinstance(domain, Choice) and str(default).casefold() not in self.tables[domain.table].index:
                raise ValueError(
                    f"presets: {domain.table} has no {default!r}, which {key} of {name} opens on; put it back"
                )
        for term_name in list(self.terms):
            self._visit(term_name, ())
        self.usual = {key: domains.usual(self, key) for key in self.inputs}

    # ------------------------------------------------------------------ collecting
    def _collect(self, module: ModuleType) -> None:
        for key, value in vars(module).items():
            if isinstance(value, (Input, Constant)):
                if self._known(key) and (self.inputs.get(key) or self.constants.get(key)) is not value:
                    raise ValueError(f"{self.name}: {key} is defined twice")
                self._declare(key, value, module.__name__)
                continue
            facts = getattr(value, "term", None)
            if not isinstance(facts, Term) or facts.name != key:
                continue
            if key in self.terms and self.terms[key].function is value:
                continue
            if self._known(key):
                raise ValueError(f"{self.name}: {key} is defined twice")
            self._add(facts, value.__module__, getattr(value, "override", None))
            if hasattr(value, "check"):
                self.checks[key] = value.check

    def _declare(self, key: str, value: Input | Constant, module: str) -> None:
        try:
            kind_of(value.unit)
        except ValueError as error:
            raise ValueError(f"{self.name}: {key}: {error}") from None
        if isinstance(value, Input):
            self.inputs[key] = value
        elif value.domain is None:
            self.constants[key] = value
        else:
            self.constants["preset_" + key] = value._replace(domain=None)
            facts = Term(key, None, (), value.unit, value.label, value.label + ".", value.source, value.evidence)
            self._replaceable(facts, Override(f"{key}_override", value.domain, False))
            self.modules[key] = module

    def _add(self, facts: Term, module: str, override: Override | None) -> None:
        if not facts.help and not sys.flags.optimize:  # python -OO drops docstrings
            raise ValueError(f"term {facts.name} has no docstring")
        self.modules[facts.name] = module
        if override is None:
            self.terms[facts.name] = facts
            return
        preset = "preset_" + facts.name
        self.terms[preset], self.modules[preset] = (
            facts._replace(name=preset, label=facts.label + ", preset"),
            module,
        )
        self._replaceable(facts, override)

    def _replaceable(self, facts: Term, override: Override) -> None:
        """The term as "what was entered, else the preset", and the input that takes what is entered."""
        entered = override.input_name
        if self._known(entered):
            raise ValueError(f"{self.name}: {entered} is defined twice")
        self.inputs[entered] = Input(
            facts.unit, override.domain, None, own_label(facts.label), facts.help, override.follows_job, optional=True
        )
        self.overrides[facts.name] = override
        self.terms[facts.name] = facts._replace(
            function=given,
            needs=(entered, "preset_" + facts.name),
            source="the value entered, else the preset",
        )

    def _known(self, key: str) -> bool:
        return any(key in names for names in (self.inputs, self.constants, self.terms, self.tables))

    # ------------------------------------------------------------------ tracing
    def unit_of(self, key: str) -> str:
        """The declared unit of a name."""
        for names in (self.terms, self.constants, self.inputs):
            if key in names:
                return str(names[key].unit)
        raise KeyError(key)

    def symbol(self, key: str) -> Any:
        """What a formula is called with when it is traced: a table as it is, a leaf for all else."""
        return self.tables[key] if key in self.tables else name(key, kind_of(self.unit_of(key)))

    def _visit(self, key: str, path: tuple[str, ...]) -> None:
        if key in self.trees or key in self.inputs or key in self.constants or key in self.tables:
            return
        if key in path:
            raise ValueError(f"{self.name}: cycle {' -> '.join((*path[path.index(key) :], key))}")
        if key not in self.terms:
            raise NameError(f"{self.name}: {path[-1]} needs {key}, which is no term, input, constant or table")
        facts = self.terms[key]
        for needed in facts.needs:
            self._visit(needed, (*path, key))
        assert facts.function is not None
        try:
            tree = lift(facts.function(*[self.symbol(needed) for needed in facts.needs]))
            self.derive(facts, tree)
        except (TypeError, ValueError, AttributeError) as error:
            raise type(error)(f"{self.name}: term {key}: {error}") from None

    def derive(self, facts: Term, tree: Expr) -> None:
        """Add a term by its tree; its unit must be the declared one."""
        kind = kind_of(facts.unit)
        if same(tree.unit, kind, f"declared {facts.unit}, but its formula gives {tree.unit}") == "bool":
            raise TypeError("a condition is no value; use when(condition, 1, 0)")
        _no_stray_numbers(tree)
        self.terms.setdefault(facts.name, facts)
        self.trees[facts.name] = tree
        self.order.append(facts.name)

    # ------------------------------------------------------------------ questions about the graph
    def needed(self, results: Iterable[str], given: Collection[str] = ()) -> list[str]:
        """The terms that the results rest on, themselves included, in order of evaluation; not those that are given."""
        wanted: set[str] = set()
        given = frozenset(given)
        stack = list(results)
        while stack:
            key = stack.pop()
            if key in wanted or key in given or key not in self.trees:
                continue
            wanted.add(key)
            stack.extend(names_in(self.trees[key]))
        return [key for key in self.order if key in wanted]

    def depends_on(self, changed: Iterable[str]) -> set[str]:
        """The terms that change when any of these names does, and the names themselves."""
        out = set(changed)
        for key in self.order:
            if not out.isdisjoint(names_in(self.trees[key])):
                out.add(key)
        return out

    def own_values_of(self, key: str) -> list[str]:
        """The inputs that replace what a choice brings with it: of a card its capacity, of a model its shape."""
        if ("own", key) not in self.engines:
            moving = self.depends_on((key,))
            entered = [given.input_name for term, given in self.overrides.items() if f"preset_{term}" in moving]
            self.engines["own", key] = entered
        return list(self.engines["own", key])

    def _set_defaults(self, values: Mapping[str, Any]) -> None:
        for key, value in values.items():
            self.inputs[key] = self.inputs[key]._replace(default=value)

    def defaults(self) -> dict[str, Any]:
        """What each input is where nothing is said: the worked job, or the inputs the job was opened on."""
        return {key: value.default for key, value in self.inputs.items()}

    # ------------------------------------------------------------------ numbers
    def reference(
        self, inputs: Mapping[str, Any] | None = None, results: Iterable[str] | None = None
    ) -> dict[str, Any]:
        """Every value by the plain functions, one after another: slow, and nothing to get wrong.

        inputs: input name -> value, the defaults for those left out; not checked. results: those that are wanted,
        with all that they rest on; every term by default.
        """
        from .engine import value_of

        values = {**self.defaults(), **{key: c.value for key, c in self.constants.items()}, **(inputs or {})}
        for key in self.order if results is None else self.needed(results):
            facts = self.terms[key]
            if facts.function is None:
                values[key] = value_of(self.trees[key], values, self.tables)
            else:
                values[key] = facts.function(*[self.tables.get(n, values.get(n)) for n in facts.needs])
        return values

    def scalar(self, results: tuple[str, ...]) -> Any:
        """A compiled function of the inputs that returns a tuple of the results, for one job."""
        found = self.engines.get(("scalar", results))
        if found is None:
            from .engine import compile_scalar

            self._must_exist(results)
            found = self.engines["scalar", results] = compile_scalar(self, results)
        return found

    def record(self, results: tuple[str, ...]) -> Any:
        """A compiled function of the inputs that returns a dict of the results; None for a job that breaks a rule."""
        found = self.engines.get(("record", results))
        if found is None:
            from .engine import compile_record

            self._must_exist(results)
            found = self.engines["record", results] = compile_record(self, results, self.rules_of(results))
        return found

    def _must_exist(self, results: tuple[str, ...]) -> None:
        unknown = [key for key in results if key not in self.trees]
        if unknown:
            near = domains.nearest(unknown[0], tuple(self.trees))
            raise TypeError(f"{unknown[0]} is no result of {self.name}{near}")

    def vector(self, results: tuple[str, ...]) -> Any:
        """A compiled function of input arrays that returns a tuple of arrays, for many jobs."""
        if ("vector", results) not in self.engines:
            from .vector import compile_vector

            self.engines["vector", results] = compile_vector(self, results)
        return self.engines["vector", results]

    def steps(self, results: tuple[str, ...], given: tuple[str, ...] = ()) -> Any:
        """A compiled generator over input arrays that gives each result, with its name, as soon as it is known."""
        if ("steps", results, given) not in self.engines:
            from .vector import compile_steps

            self.engines["steps", results, given] = compile_steps(self, results, given)
        return self.engines["steps", results, given]

    def accepted(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs as the formulas take them; ValueError names the argument, its value and what is right."""
        out: dict[str, Any] = {}
        for key, value in inputs.items():
            kind, usual = self.usual.get(key, (None, ()))
            out[key] = value if type(value) is kind and value in usual else domains.accept(self, key, value)
        return out

    def size(self, results: Iterable[str] | None = None, /, **inputs: Any) -> dict[str, Any]:
        """The results of one job: name -> value; memory in the unit that the name or the term says.

        results: names of terms; by default every term but the inverse questions, which cost several times as
        much as all else, and what a user should know of the job is then warned of (UserWarning; see warnings()); of
        results that are named, only what is assumed in them for want of an entry. Inputs left out take the worked
        job's value. Raises ValueError (a bad value, or a job that contradicts itself) and TypeError (an argument or a
        result that does not exist).
        """
        if isinstance(results, str) or (results is not None and not hasattr(results, "__iter__")):
            raise TypeError(f"results is {results!r}; it must be a list of names, such as ['fit_verdict']")
        wanted = self.plain_terms if results is None else tuple(results)
        accepted = self.accepted(inputs)
        assumed = self.assumptions_in(wanted)
        found = self._found(wanted + assumed, accepted)
        if found is None:
            rules = self.rules_of(wanted)
            values = self.reference(accepted, rules)
            raise ValueError(self.contradiction(next(key for key in rules if not values[key]), inputs))
        if results is None or not all(found[key] for key in assumed):
            from warnings import warn

            for told in self.warnings(found, **inputs) if results is None else self._told_of(assumed, inputs):
                warn(told, stacklevel=2)
        for key in assumed:
            del found[key]
        return found

    def assumptions_in(self, results: tuple[str, ...]) -> tuple[str, ...]:
        """The checks that tell what is assumed for want of an entry in results, and are not among these themselves."""
        if ("assumed", results) not in self.engines:
            under = {*self.needed(results)}
            self.engines["assumed", results] = tuple(
                key for key, rule in self.checks.items() if rule.assumed in under and key not in results
            )
        return self.engines["assumed", results]  # type: ignore[no-any-return]

    def _told_of(self, rules: tuple[str, ...], inputs: Mapping[str, Any]) -> list[str]:
        """What those of the rules say that do not hold."""
        values = self.reference(self.accepted(inputs), rules)
        return [self.contradiction(key, inputs) for key in rules if not values[key]]

    def hold_beside(self, inputs: Mapping[str, Any]) -> None:
        """Refuse inputs of time and money that contradict themselves, where only memory is asked for.

        inputs: as size() takes them. Raises ValueError and TypeError as size() does.
        """
        accepted = self.accepted(inputs)
        rules = tuple(key for key, rule in self.checks.items() if rule.fault and key in self.beside)
        values = self.reference(accepted, rules)
        broken = next((key for key in rules if not values[key]), None)
        if broken is not None:
            raise ValueError(self.contradiction(broken, inputs))

    def contradiction(self, rule: str, inputs: Mapping[str, Any]) -> str:
        """What is wrong with a job that breaks a rule, and what would be right. inputs: as they were given."""
        values = self.reference(self.accepted(inputs), names_of(self.checks[rule].message))
        return self.told(rule, {**values, **inputs})

    def _found(self, wanted: tuple[str, ...], accepted: dict[str, Any]) -> dict[str, Any] | None:
        """The results of accepted inputs, None for a job that breaks a rule.

        The first time by the plain functions: compiling takes longer than they do for several jobs.
        """
        if ("met", wanted) in self.engines:
            return self.record(wanted)(**accepted)  # type: ignore[no-any-return]
        self._must_exist(wanted)
        self.engines["met", wanted] = True
        rules = self.rules_of(wanted)
        values = self.reference(accepted, wanted + rules)
        return {key: values[key] for key in wanted} if all(values[rule] for rule in rules) else None

    @property
    def plain_terms(self) -> tuple[str, ...]:
        """The terms that are written as functions: all but those that inverse questions add."""
        if "plain" not in self.engines:
            self.engines["plain"] = tuple(key for key in self.order if self.terms[key].function is not None)
        return self.engines["plain"]  # type: ignore[no-any-return]

    @property
    def fault_rules(self) -> tuple[str, ...]:
        """The checks whose failure withdraws the verdict: none of what stands beside the job."""
        if "rules" not in self.engines:
            self.engines["rules"] = tuple(
                key for key, rule in self.checks.items() if rule.fault and key not in self.beside
            )
        return self.engines["rules"]  # type: ignore[no-any-return]

    def rules_of(self, results: tuple[str, ...]) -> tuple[str, ...]:
        """The checks whose failure withdraws these results."""
        if ("rules", results) not in self.engines:
            deepest = max((self.layers.get(key, 0) for key in self.needed(results)), default=0)
            self.engines["rules", results] = tuple(
                key for key, rule in self.checks.items() if rule.fault and self.layers[key] <= deepest
            )
        return self.engines["rules", results]  # type: ignore[no-any-return]

    def told(self, check: str, values: Mapping[str, Any]) -> str:
        """What is wrong, or worth knowing, in the words of a check; days as dates. values: of what it names."""
        message = self.checks[check].message
        dates = {key for key in names_of(message) if self.unit_of(key) == "date"}
        return _Shown(dates).vformat(message, (), values)

    def warnings(self, values: Mapping[str, Any], **inputs: Any) -> list[str]:
        """What a user should know about a job that size() accepted.

        values: results of the job, its checks among them. What stands beside the job is only spoken of where one of its
        own inputs is given, or where a result rests on what is assumed for want of one.
        """
        constants = {key: constant.value for key, constant in self.constants.items()}
        known = {**constants, **self.defaults(), **inputs, **values}
        asked = not self.beside.isdisjoint(inputs)
        under = {*self.needed(values)}
        return [
            self.told(key, known)
            for key, rule in self.checks.items()
            if not rule.fault and (asked or key not in self.beside or rule.assumed in under) and not values[key]
        ]

    def size_many(self, inputs: Mapping[str, Any], results: Iterable[str], block: int = 16_384) -> dict[str, Any]:
        """Results of many jobs: result -> NumPy array. Needs NumPy.

        inputs: input name -> one value for all jobs, or an array, list or pandas column with one a job; a
        DataFrame does. Texts may be lists, arrays or pandas categoricals. Raises ValueError as size() does,
        with the row (from 0).
        """
        try:
            from .vector import run
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"size_many needs NumPy ({error}); install numpy and pandas") from None

        return run(self, inputs, tuple(results), block)

    def choices(self, input_name: str) -> tuple[str, ...]:
        """The keys an input may take; empty when it is a number. TypeError for a name that is no input."""
        if input_name not in self.inputs:
            raise domains.no_input(self, input_name)
        domain = self.inputs[input_name].domain
        return self.tables[domain.table].keys if isinstance(domain, Choice) else ()


class _Shown(Formatter):
    """How a message shows its values: days as dates, whole numbers without decimals, {name:day|days} by the number."""

    def __init__(self, dates: Container[str]) -> None:
        self.dates = dates

    def get_value(self, key: int | str, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """The value of a name."""
        value = kwargs[str(key)]
        if key in self.dates:
            return domains.date_of(value)
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def format_field(self, value: Any, format_spec: str) -> Any:
        """The value in its form."""
        one, bar, many = format_spec.partition("|")
        return (one if f"{value:.0f}" == "1" else many) if bar else super().format_field(value, format_spec)


def names_of(message: str) -> tuple[str, ...]:
    """The names that a message of a check holds in braces."""
    return tuple(dict.fromkeys(name for _, name, _, _ in Formatter().parse(message) if name))


def _no_stray_numbers(tree: Expr) -> None:
    stack = [tree]
    while stack:
        node = stack.pop()
        if node.op == "number" and node.args[0] not in PLAIN_NUMBERS:
            raise TypeError(f"the number {node.args[0]} belongs in a named constant with a unit and a source")
        if node.op in ("fixed", "round", "round_up", "round_down"):
            stack.append(node.args[0])
        else:
            stack.extend(children(node))

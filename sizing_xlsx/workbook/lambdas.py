"""The Excel functions as LAMBDA names of a workbook, made from the registry: what each is, over the sheet Lookups.

A name's text has Excel's own prefixes: _xlfn. of a function newer than the file format, _xlpm. of a parameter, _xlop.
of an optional one where it is declared. No cell calls these names: older Excel has none, and the verdict must stand.

Sheets fill thousands of cells with these functions, and engines differ in what a call costs. IronCalc copies the body
of each name that is called, walks it once for each parameter and each name of a LET, and searches all names of the
workbook for a name that stands for cells. Hence bodies of common calls are small, arguments are resolved in the call
of the next name instead of a LET, what is rare has names of its own, and cells are named by their addresses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formula.declare import Choice, Number, Whole
from ..formula.expression import Expr
from ..formula.partial import literal
from ..formula.primitives import when
from ..functions import kinds, of_jobs, of_models, of_runs, registered
from ..functions.chain import Column, Terms, shared, stages, terms
from ..functions.desk import CATALOGUE, JOB, Desk
from ..functions.signature import Function
from ..functions.vocabulary import Keyword

if TYPE_CHECKING:
    from ..formula.job import Job
    from .book import Book
    from .sheets.lookups import Lookups

LAMBDA, NO_ONE = "lambda", "none"
PROVIDERS = (LAMBDA, "udf", "addin", NO_ONE)  # who answers =GPU_FITS(...): one for each workbook, or nobody
BEGIN = "Functions_"  # of the names that the functions themselves use
FULL, RUN = "Full", "Run"
# What may vary in the short chains, which answer the calls that planners write most; all else is as the job has it.
# There is one of each for every common kind of job, with a fraction of the formulas. The first that takes all that a
# call gives answers it.
_FOUR = ("base_model", "gpu_choice", "batch_size", "sequence_length")
SHORT = {"Plain": _FOUR, "Common": (*_FOUR, "lora_rank", "activation_checkpointing")}
_RUN_INPUTS = (of_runs.TOKENS, *of_runs.RUN)  # what functions of a run alone take
_WRONG = 'VALUE("x")'
_NONE = -1.0  # in place of a figure that the deciding accounting has not
_BROKEN = -2.0  # in place of one that a rule withdraws which others do not rest on


class Plan(NamedTuple):
    """What the functions of a workbook compute. results: trees that a call chooses from, by function and name."""

    desk: Desk
    job: Job
    keywords: tuple[Keyword, ...]
    inputs: tuple[str, ...]  # that arguments are, in their order
    choices: tuple[str, ...]  # those that are names of a table
    results: dict[tuple[str, str], Expr]
    short: dict[str, dict[int, Terms]]  # by what may vary, and the row of the keyword, from 1
    full: Terms
    runs: tuple[str, ...]  # the functions of a run
    run: Terms  # what they choose from
    figures: dict[str, Expr]  # of models: term -> over columns of Lookups
    columns: dict[str, Column]  # of Lookups

    @property
    def chains(self) -> tuple[Terms, ...]:
        """All chains, the short ones first."""
        return *(chain for chains in self.short.values() for chain in chains.values()), self.full, self.run

    def position(self, function: str, name: str = "") -> int:
        """Which result a call chooses, from 1."""
        return list(self.results).index((function, name)) + 1


def plan(book: Book) -> Plan:
    """The chains of a workbook's job."""
    desk, job = Desk(book.presets), book.job
    words = (word for word in desk.vocabulary.jobs.values() if word.job == job.name)
    keywords = tuple(sorted(words, key=lambda word: not word.common))  # short chains are chosen by these rows
    every = [desk.input_of(argument) for argument in (*desk.vocabulary.common, *desk.vocabulary.rest)]
    inputs = tuple(key for key in every if key in job.inputs)
    choices = tuple(key for key in inputs if isinstance(job.inputs[key].domain, Choice))
    results = _results(desk, job)
    trees = list(results.values())
    short = {
        name: {
            at: _chain(
                job, trees[: _short_results(results)], [key for key in inputs if key in varied], choices, "short_part",
                word.inputs,
            )
            for at, word in enumerate(keywords, 1) if word.common
        }
        for name, varied in SHORT.items()
    }  # fmt: skip
    full = _chain(job, trees, inputs, choices, "part")
    shown = dict.fromkeys(
        (*of_models.components_of(desk, job.name).values(), *of_models.model_fields_of(desk, job.name).values())
    )
    models = _chain(job, [job.symbol(term) for term in shown], ["base_model"], choices, "model_part")
    of_run = {
        name: kind for name, function in registered().items() if isinstance(kind := function.formula, kinds.OfRun)
    }
    shallowest = min((job.rules_of(kind.asked) for kind in of_run.values()), key=len)
    known = [_if_known(job, kind, shallowest) for kind in of_run.values()]
    run = _chain(job, known, [*inputs, *_RUN_INPUTS], choices, "run_part", rules=shallowest)
    (models, full, run, *others), columns = shared(
        [models, full, run, *(chain for chains in short.values() for chain in chains.values())]
    )
    rest = iter(others)
    short = {name: {at: next(rest) for at in chains} for name, chains in short.items()}
    figures = dict(zip(shown, models.results, strict=True))
    return Plan(desk, job, keywords, inputs, choices, results, short, full, tuple(of_run), run, figures, columns)


def _if_known(job: Job, kind: kinds.OfRun, held: Sequence[str]) -> Expr:
    """A figure of a run, _NONE where it is not known, _BROKEN where a rule is that is not among those held apart."""
    tree = kind.function(*map(job.symbol, kind.terms))
    known: Expr = when(job.symbol(kind.known) > 0, tree, literal(_NONE, tree.unit))
    for rule in job.rules_of(kind.asked):
        if rule not in held:
            known = when(job.symbol(rule) > 0, known, literal(_BROKEN, tree.unit))
    return known


def _chain(
    job: Job,
    results: Sequence[Expr],
    inputs: Sequence[str],
    choices: Sequence[str],
    part: str,
    made: Mapping[str, Any] | None = None,
    rules: Sequence[str] | None = None,
) -> Terms:
    """made: inputs that are not what the job has them be. rules: as of terms()."""
    fixed = {key: value for key, value in job.worked.items() if job.inputs[key].follows_job and key not in inputs}
    fixed |= made or {}
    return terms(job, results, inputs, [key for key in inputs if key in choices], fixed, part, rules)


def _results(desk: Desk, job: Job) -> dict[tuple[str, str], Expr]:
    """What calls choose from: first what the short chains know too."""
    found: dict[tuple[str, str], Expr] = {("", "verdict_code"): job.symbol("verdict_code")}
    for function in registered().values():
        formula = function.formula
        if isinstance(formula, kinds.OfTerms) and set(formula.terms) <= set(job.trees):
            found[function.name, ""] = formula.function(*map(job.symbol, formula.terms))
    items = of_jobs.items_of(desk, job.name)
    traced = job.symbol("rests_on_traced")
    for name, (one, other) in items.items():
        figure = of_jobs.in_gb(job, one)
        if one != other:
            figure = when(traced > 0, figure, of_jobs.in_gb(job, other) if other else literal(_NONE, figure.unit))
        found["GPU_MEMORY", name] = figure
    return found


def _short_results(results: Mapping[tuple[str, str], Expr]) -> int:
    """How many of the results the short chains give: up to the total and the peak."""
    return list(results).index(("GPU_MEMORY", "peak")) + 1


# ---------------------------------------------------------------------- texts
def local(name: str) -> str:
    """What a parameter is called: the inputs of the workbook have the argument's own name, and may not be hidden."""
    return name[:-1].replace("_", "") + name[-1]


def p(name: str) -> str:
    """A parameter where it is used."""
    return f"_xlpm.{local(name)}"


def function_of(parameters: Iterable[str], body: str, optional: Iterable[str] = ()) -> str:
    """A LAMBDA's text."""
    declared = [*(f"_xlpm.{local(name)}" for name in parameters), *(f"_xlop.{local(name)}" for name in optional)]
    return f"_xlfn.LAMBDA({''.join(f'{name},' for name in declared)}{body})"


def let(pairs: Iterable[tuple[str, str]], body: str) -> str:
    """A LET's text."""
    return f"_xlfn.LET({''.join(f'{p(name)},{text},' for name, text in pairs)}{body})"


def names(plan: Plan, lookups: Lookups) -> list[tuple[str, str]]:
    """Every LAMBDA name of a workbook with its text, helpers first."""
    found = [*_resolvers(plan, lookups)]
    for name, chains in plan.short.items():
        for at, chain in chains.items():
            found += _stages(plan, chain, f"{BEGIN}{name}_{at}_", lookups)
    for name, chain in ((FULL, plan.full), (RUN, plan.run)):
        found += _stages(plan, chain, f"{BEGIN}{name}_", lookups)
    found += _shared_calls(plan, lookups)
    for function in registered().values():
        text = _public(plan, lookups, function)
        if text:
            found.append((function.name, text))
    for name, times in Counter(name.casefold() for name, _ in found).items():
        if times > 1:
            raise ValueError(f"{name} names {times} functions of this workbook; each needs a name of its own")
    return found


def _stages(plan: Plan, chain: Terms, begin: str, lookups: Lookups) -> list[tuple[str, str]]:
    constants = plan.job.constants

    def elsewhere(symbol: str) -> str:
        return f"{constants[symbol].value:.15g}" if symbol in constants else lookups.place(symbol)

    return stages(chain, begin, index_of=lookups.index_of, range_of=lookups.column, elsewhere=elsewhere)


# ---------------------------------------------------------------------- what an argument means
def _resolvers(plan: Plan, lookups: Lookups) -> list[tuple[str, str]]:
    """Functions_Row_…: the row of a name in its list. Functions_Number, Functions_Whole: a number from what is none.

    Each takes what is meant where nothing is given. A name that is not listed as it is written is sought by
    Functions_Loose: with its white space as Functions_Trim leaves it, then by a part of it.
    """
    v, texts, rows, words, default, w, m = (p(name) for name in ("v", "t", "n", "k", "d", "w", "m"))
    pattern = w
    for sign in ("~", "*", "?"):
        pattern = f'SUBSTITUTE({pattern},"{sign}","~{sign}")'
    pattern = f'"*/"&SUBSTITUTE(SUBSTITUTE(LOWER({pattern})," ","/"),"-","/")&"*"'
    part = let([("m", pattern)], f"IF(COUNTIF({words},{m})=1,INDEX({rows},MATCH({m},{words},0)),NA())")
    listed = f"IF(ISNUMBER({m}),INDEX({rows},{m}),{BEGIN}Part({w},{rows},{words}))"
    pairs = [("w", _trimmed(v)), ("m", f"_xlfn.XMATCH({w},{texts})")]
    found = [
        (f"{BEGIN}Trim", function_of(("v",), _without_white_space(v))),
        (f"{BEGIN}Figure", function_of(("v",), _plain_number(v))),
        (f"{BEGIN}Part", function_of(("w", "n", "k"), part)),
        (f"{BEGIN}Loose", function_of(("v", "t", "n", "k", "d"), let(pairs, f'IF({w}="",{default},{listed})'))),
    ]
    for table in lookups.lists:
        text, row, word = (lookups.list_area(table, part) for part in ("text", "row", "words"))
        loose = f"{BEGIN}Loose({v},{text},{row},{word},{default})"
        wrong = "NA()"
        if table not in CATALOGUE:
            loose, wrong = f"IFERROR({loose},{_WRONG})", _WRONG
        known = f"IFERROR(INDEX({row},_xlfn.XMATCH({v},{text})),{loose})"
        sought = f'IF(ISTEXT({v}),IF({v}="",{default},{known}),IF(ISBLANK({v}),{default},{wrong}))'
        found.append((row_of(table), function_of(("v", "d"), sought)))
    blank = f'IF(ISBLANK({v}),TRUE,IF(ISTEXT({v}),{_trimmed(v)}="",FALSE))'
    found.append((f"{BEGIN}Blank", function_of(("v",), blank)))
    low, high = p("l"), p("h")
    for kind in ("Number", "Whole"):
        read = let([("n", f"{BEGIN}Figure({v})")], _bounded(p("n"), kind, low, high))
        given = f'IF(ISTEXT({v}),IF({_trimmed(v)}="",{default},{read}),IF(ISBLANK({v}),{default},{_WRONG}))'
        found.append((BEGIN + kind, function_of(("v", "l", "h", "d"), given)))
    return found


def _trimmed(value: str) -> str:
    return f"{BEGIN}Trim({value})"


def _without_white_space(text: str) -> str:
    """A text without white space around it, and one space for each run within."""
    for sign in ("CHAR(9)", "CHAR(10)", "CHAR(13)", "_xlfn.UNICHAR(160)"):
        text = f'SUBSTITUTE({text},{sign}," ")'
    return f"TRIM({text})"


def _plain_number(text: str) -> str:
    """The number that a text of digits is, with a sign, one point and an exponent where there are; else an error.

    Engines also read money, percentages, dates and groups of digits, each in its own way: such texts are refused by
    what is left of them without sign and digits.
    """
    whole, bare, left = (p(name) for name in ("s", "b", "q"))
    without_digits = bare
    for digit in range(10):
        without_digits = f'SUBSTITUTE({without_digits},"{digit}","")'
    unsigned = f'IF(OR(LEFT({whole})="+",LEFT({whole})="-"),MID({whole},2,LEN({whole})),{whole})'
    pairs = [
        ("s", f"UPPER({_trimmed(text)})"),
        ("b", f'SUBSTITUTE(SUBSTITUTE({unsigned},"E+","E"),"E-","E")'),
        ("q", without_digits),
    ]
    plain = f'OR({left}="",{left}=".",{left}="E",{left}=".E")'
    return let(pairs, f'IF(AND({plain},LEN({left})<LEN({bare})),_xlfn.NUMBERVALUE({whole},".",","),{_WRONG})')


def row_of(table: str) -> str:
    """The helper that finds a name in a list."""
    return f"{BEGIN}Row_{table}"


def _resolved(plan: Plan, lookups: Lookups, key: str, value: str, keyword: str) -> str:
    """An input from what an argument gives: its number, or the row of its name; where it is blank the keyword's own,
    or an error for one that functions require.
    """
    domain = plan.job.inputs[key].domain
    required = {plan.desk.input_of(argument) for argument in _required()}
    default = _WRONG if key in required else lookups.default(key, keyword)
    if isinstance(domain, Choice):
        return f"{row_of(domain.table)}({_truth(plan.job, domain, value)},{default})"
    return _number(domain, value, default)


def _truth(job: Job, domain: Choice, value: str) -> str:
    """TRUE and FALSE as On and Off, where these are the names."""
    if {"Off", "On"} <= set(job.tables[domain.table].keys):
        return f'IF(ISLOGICAL({value}),IF({value},"On","Off"),{value})'
    return value


def _number(domain: Whole | Number, value: str, default: str) -> str:
    kind = "Whole" if isinstance(domain, Whole) else "Number"
    low, high = (f"{bound:.15g}" for bound in (domain.low, 1e15 if isinstance(domain.high, str) else domain.high))
    other = f"{BEGIN}{kind}({value},{low},{high},{default})"
    found = f"IF(ISNUMBER({value}),{_bounded(value, kind, low, high)},{other})"
    if isinstance(domain, Whole) and domain.word:
        found = f'IF(ISTEXT({value}),IF({_trimmed(value)}="{domain.word}","{domain.word}",{found}),{found})'
    return found


def _bounded(value: str, kind: str, low: str, high: str) -> str:
    """A number between its bounds, a whole one where it must be."""
    whole = f",INT({value})={value}" if kind == "Whole" else ""
    return f"IF(AND({value}>={low},{value}<={high}{whole}),{value},{_WRONG})"


# ---------------------------------------------------------------------- the calls that all functions share
def _shared_calls(plan: Plan, lookups: Lookups) -> list[tuple[str, str]]:
    """Functions_Job: any result of a job from all arguments. Those of short chains: the first results, from fewer.
    Functions_Run: any of a run, from its own arguments too.

    Each takes the row of the keyword and then arguments, an empty text for a blank one, and hands them on resolved.
    """
    found = []
    for name, chains in plan.short.items():
        calls = [_chain_call(plan, f"{name}_{at}", chain) for at, chain in chains.items()]
        found += _resolving(plan, lookups, name, _short_arguments(plan, name), f"CHOOSE({p('k')},{','.join(calls)})")
    arguments, foreign = _arguments(plan)
    found += _resolving(plan, lookups, "Job", arguments, _chain_call(plan, FULL, plan.full), foreign)
    return found + _resolving(plan, lookups, RUN, [*arguments, *_RUN_INPUTS], _chain_call(plan, RUN, plan.run), foreign)


def _chain_call(plan: Plan, name: str, chain: Terms) -> str:
    by_input = {plan.desk.input_of(argument): argument for argument in (*_arguments(plan)[0], *_RUN_INPUTS)}
    handed = ("what", *(by_input[key] for key in chain.parameters))
    return f"{BEGIN}{name}_1({','.join(map(p, handed))})"


def _resolving(
    plan: Plan, lookups: Lookups, name: str, arguments: Sequence[str], chain: str, foreign: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """A name that resolves arguments, and the one that it hands them to: that tells the first that is wrong, or calls
    the chain. foreign: arguments that must be blank in this workbook.
    """
    resolved = [_resolved(plan, lookups, plan.desk.input_of(argument), p(argument), p("k")) for argument in arguments]
    blank = [f"IF({BEGIN}Blank({p(argument)}),0,{_WRONG})" for argument in foreign]
    every = f"SUM({','.join(f'N({p(argument)})' for argument in ('k', *arguments, *foreign))})"
    checked = f"IF(0*{every}=0,{chain})"  # the error of the first that is one
    handed = ",".join((p("what"), p("k"), *resolved, *blank))
    parameters = ("what", "k", *arguments, *foreign)
    return [
        (f"{BEGIN}{name}_Checked", function_of(parameters, checked)),
        (f"{BEGIN}{name}", function_of(parameters, f"{BEGIN}{name}_Checked({handed})")),
    ]


def _arguments(plan: Plan) -> tuple[list[str], list[str]]:
    """All arguments of a job but its keyword: those that are inputs of the workbook's job, and those that are not."""
    every = (*plan.desk.vocabulary.common, *plan.desk.vocabulary.rest)
    foreign = [name for name in every if plan.desk.input_of(name) not in plan.inputs]
    return [name for name in every if name not in foreign], foreign


def _short_arguments(plan: Plan, name: str) -> list[str]:
    """Arguments that a short chain takes."""
    return [argument for argument in _arguments(plan)[0] if plan.desk.input_of(argument) in SHORT[name]]


# ---------------------------------------------------------------------- the functions
def _public(plan: Plan, lookups: Lookups, function: Function) -> str:
    """The text of one function; "" where it gives a table, or the job has it not."""
    formula = function.formula
    if isinstance(formula, kinds.OfTerms):
        if (function.name, "") not in plan.results:
            return ""
        what = str(plan.position(function.name))
        return _declared(function, _called(plan, function, what))
    if isinstance(formula, kinds.OfRun):
        return _of_run(plan, function)
    if isinstance(formula, kinds.Picked):
        return _picked(plan, lookups, function, formula)
    if isinstance(formula, kinds.Boundary):
        return _boundary(plan, function, formula)
    if isinstance(formula, kinds.BestCard):
        return _best_card(plan, lookups, function, formula)
    if isinstance(formula, kinds.OfCard):
        return _of_card(plan, lookups, function, formula)
    return ""


def _declared(function: Function, body: str) -> str:
    arguments = function.arguments
    return function_of(arguments[: function.required], body, arguments[function.required :])


def _required() -> set[str]:
    """Arguments that must be given to each function that has them."""
    return {name for function in registered().values() for name in function.arguments[: function.required]}


def _given(plan: Plan, function: Function, argument: str) -> str:
    """An argument as it is handed on; one that is left out, or that the function has not, is an empty text.

    Of those that others require, one that the function has not is what the job has.
    """
    arguments = function.arguments
    if argument not in arguments:
        worked = plan.job.worked[plan.desk.input_of(argument)] if argument in _required() else ""
        return f'"{worked}"'
    if arguments.index(argument) < function.required:
        return p(argument)
    return f'IF(_xlfn.ISOMITTED({p(argument)}),"",{p(argument)})'


def _called(plan: Plan, function: Function, what: str, **given: str) -> str:
    """A result of the job by the first short chain that takes all that the call gives, else by the whole one."""

    def call(name: str, arguments: Iterable[str]) -> str:
        return _handed(plan, function, name, what, arguments, given)

    every = [argument for of in _arguments(plan) for argument in of]
    if not what.isdigit() or int(what) > _short_results(plan.results):
        return call("Job", every)
    text, known = "", list[str]()
    for name, arguments in (*((name, _short_arguments(plan, name)) for name in SHORT), ("Job", every)):
        more = [argument for argument in arguments if argument in function.arguments and argument not in known]
        tests = [f"_xlfn.ISOMITTED({p(argument)})" for argument in more]
        if name == "Job" and JOB in function.arguments:
            tests.append(_is_common(plan))
        if not text:
            text = call(name, arguments)
        elif tests:
            text = f"IF(AND({','.join(tests)}),{text},{call(name, arguments)})"
        known += more
    return text


def _handed(
    plan: Plan, function: Function, name: str, what: str, arguments: Iterable[str], given: Mapping[str, str]
) -> str:
    """The call of a name that all functions share. given: texts in place of what the call gives."""
    keyword = f"IF(_xlfn.ISOMITTED({p(JOB)}),1,{row_of('jobs')}({p(JOB)},1))" if JOB in function.arguments else "1"
    handed = (given.get(argument) or _given(plan, function, argument) for argument in arguments)
    return f"{BEGIN}{name}({','.join((what, keyword, *handed))})"


def _is_common(plan: Plan) -> str:
    """Whether the job that a call names is one that the short chains are for."""
    texts = [word.name for word in plan.keywords if word.common]
    if len(texts) == len(plan.keywords):
        return "TRUE"
    same = ",".join(f'{p(JOB)}="{text}"' for text in texts)
    return f"IF(_xlfn.ISOMITTED({p(JOB)}),TRUE,OR({same}))"


def _of_run(plan: Plan, function: Function) -> str:
    """A figure of the run; #N/A where what it rests on is not known, #VALUE! where a rule for it alone is broken."""
    arguments, foreign = _arguments(plan)
    what = str(plan.runs.index(function.name) + 1)
    call = _handed(plan, function, RUN, what, [*arguments, *_RUN_INPUTS, *foreign], {})
    m = p("m_")
    known = f"IF({m}={_NONE:.15g},NA(),IF({m}={_BROKEN:.15g},{_WRONG},{m}))"
    return _declared(function, let([("m_", call)], f"IF(ISERROR({m}),{m},{known})"))


def _picked(plan: Plan, lookups: Lookups, function: Function, formula: kinds.Picked) -> str:
    names = list(formula.choices(plan.desk, plan.job.name))
    own = next(own for own in function.own if own.name == formula.argument)
    pairs = [("n_", _position(names, own.default, lookups.name_list(function.name), _given(plan, function, own.name)))]
    if function.name == "GPU_MEMORY":
        first = plan.position(function.name, names[0])
        wanted = let(
            [*pairs, ("m_", _called(plan, function, f"{p('n_')}+{first - 1}"))],
            f"IF(ISERROR({p('m_')}),{p('m_')},IF({p('m_')}={_NONE:.15g},{_WRONG},{p('m_')}))",
        )
        total = _called(plan, function, str(first))
        return _declared(function, f"IF(_xlfn.ISOMITTED({p(own.name)}),{total},{wanted})")
    terms_of = formula.choices(plan.desk, plan.job.name)
    columns = ",".join(lookups.figure(plan.figures[term], p("r_")) for term in terms_of.values())
    row = f"{row_of(_table_of(plan.job, 'base_model'))}({p('model')},{_WRONG})"
    pairs = [("k_", f"{row_of('jobs')}({_given(plan, function, JOB)},1)"), ("r_", row), *pairs]
    body = let(
        pairs,
        f"IF(ISERROR({p('k_')}),{p('k_')},IF(ISERROR({p('r_')}),{p('r_')},"
        f"IF(ISERROR({p('n_')}),{p('n_')},CHOOSE({p('n_')},{columns}))))",
    )
    return _declared(function, body)


def _position(names: Sequence[str], default: str, listed: str, value: str) -> str:
    """Which of several names a value means, from 1; the default's where it is blank."""
    return f"{row_of(listed)}({value},{names.index(default) + 1})"


def _table_of(job: Job, key: str) -> str:
    domain = job.inputs[key].domain
    assert isinstance(domain, Choice)
    return domain.table


def _boundary(plan: Plan, function: Function, formula: kinds.Boundary) -> str:
    """The largest value that fits, by halving: the verdict never gets better as it grows."""
    domain = plan.job.inputs[formula.vary].domain
    assert isinstance(domain, Whole) and isinstance(domain.high, int)
    high = domain.high
    steps = high.bit_length()
    tried = f"{p('low')}+2^({steps}-{p('step')})"
    verdict = function_of(("at",), _called(plan, function, "1", **{formula.vary: p("at")}))  # once, for it is long
    fits = f"IFERROR({p('verdict')}({p('here')}),4)=1"
    body = let([("here", tried)], f"IF({p('here')}>{high},{p('low')},IF({fits},{p('here')},{p('low')}))")
    found = f"_xlfn.REDUCE(0,_xlfn.SEQUENCE({steps}),_xlfn.LAMBDA(_xlpm.low,_xlpm.step,{body}))"
    pairs = [("verdict", verdict), ("one", f"{p('verdict')}(1)")]
    return _declared(function, let(pairs, f"IF(ISERROR({p('one')}),{p('one')},IF({p('one')}=1,{found},0))"))


def _best_card(plan: Plan, lookups: Lookups, function: Function, formula: kinds.BestCard) -> str:
    worked = plan.job.worked["gpu_choice"]
    verdict = function_of(("card",), _called(plan, function, "1", gpu=p("card")))  # once, for it is long
    figure = f"{lookups.card(formula.column, p('at'))}"
    here = f"{p('verdict')}({lookups.card('', p('at'))})"
    better = f"IF({p('best')}=0,TRUE,{figure}<{lookups.card(formula.column, p('best'))})"
    known = f"AND(N({figure})>0,{lookups.card('cuda', p('at'))}>0)"
    body = f"IF({known},IF({better},IF(IFERROR({here},4)=1,{p('at')},{p('best')}),{p('best')}),{p('best')})"
    count = len(plan.job.tables["gpus"])
    found = f"_xlfn.REDUCE(0,_xlfn.SEQUENCE({count}),_xlfn.LAMBDA(_xlpm.best,_xlpm.at,{body}))"
    pairs = [
        ("verdict", verdict),
        ("one", f'{p("verdict")}("{worked}")'),
        ("row", f"IF(ISERROR({p('one')}),0,{found})"),
    ]
    chosen = f"IF({p('row')}=0,NA(),{lookups.card('', p('row'))})"
    return _declared(function, let(pairs, f"IF(ISERROR({p('one')}),{p('one')},{chosen})"))


def _of_card(plan: Plan, lookups: Lookups, function: Function, formula: kinds.OfCard) -> str:
    fields = plan.desk.vocabulary.gpu_fields
    own = function.own[0]
    position = _position(list(fields), own.default, lookups.name_list(function.name), _given(plan, function, own.name))
    columns = ",".join(lookups.card(column, p("r_")) for column in fields.values())
    pairs = [
        ("r_", f"{row_of('gpus')}({p('gpu')},{_WRONG})"),
        ("n_", position),
        ("c_", f"IF(ISERROR({p('r_')}),{p('r_')},IF(ISERROR({p('n_')}),{p('n_')},CHOOSE({p('n_')},{columns})))"),
    ]
    unknown = f'IF(ISERROR({p("c_")}),{p("c_")},IF(OR({p("c_")}="",{p("c_")}="unknown",{p("c_")}=0),NA(),{p("c_")}))'
    return _declared(function, let(pairs, unknown))

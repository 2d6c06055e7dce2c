"""The Excel functions as LAMBDA names of a workbook, made from the registry: what each is, over the sheet Lookups.

A name's text has Excel's own prefixes: _xlfn. of a function newer than the file format, _xlpm. of a parameter, _xlop.
of an optional one where it is declared. No cell calls these names: older Excel has none, and the verdict must stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formula.declare import Choice, Number, Whole
from ..formula.expression import Expr
from ..formula.partial import literal
from ..formula.primitives import when
from ..formula.render import column_name
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
QUICK, FULL, TIME = f"{BEGIN}Quick_", f"{BEGIN}Full_", f"{BEGIN}Time_"
# What may vary in the short chains, which answer the calls that planners write most; all else is as the job has it.
# There is one for each common kind of job and each state of checkpointing: that leaves a third of the formulas.
COMMON = ("base_model", "gpu_choice", "batch_size", "sequence_length", "lora_rank")
SWITCH = "activation_checkpointing"
_WRONG = 'VALUE("x")'
_RUN_INPUTS = (of_runs.TOKENS, *of_runs.RUN)
_NONE = -1.0  # in place of a figure that the deciding accounting has not


class Plan(NamedTuple):
    """What the functions of a workbook compute. results: trees that a call chooses from, by function and name."""

    desk: Desk
    job: Job
    keywords: tuple[Keyword, ...]
    inputs: tuple[str, ...]  # that arguments are, in their order
    choices: tuple[str, ...]  # those that are names of a table
    results: dict[tuple[str, str], Expr]
    quick: dict[tuple[int, int], Terms]  # by the rows of the keyword and of checkpointing, from 1
    full: Terms
    runs: tuple[str, ...]  # the functions of a run
    run: Terms  # what they choose from; they alone take the inputs of a run
    figures: dict[str, Expr]  # of models: term -> over columns of Lookups
    columns: dict[str, Column]  # of Lookups

    def position(self, function: str, name: str = "") -> int:
        """Which result a call chooses, from 1."""
        return list(self.results).index((function, name)) + 1


def plan(book: Book) -> Plan:
    """The chains of a workbook's job."""
    desk, job = Desk(book.presets), book.job
    keywords = tuple(word for word in desk.vocabulary.jobs.values() if word.job == job.name)
    every = [desk.input_of(argument) for argument in (*desk.vocabulary.common, *desk.vocabulary.rest)]
    inputs = tuple(key for key in every if key in job.inputs)
    choices = tuple(key for key in inputs if isinstance(job.inputs[key].domain, Choice))
    results = _results(desk, job)
    trees = list(results.values())
    states = job.choices(SWITCH)
    quick = {
        (at, state): _chain(
            job, trees[: _quick_results(results)], [key for key in inputs if key in COMMON], choices, "quick_part",
            {**word.inputs, SWITCH: states[state - 1]},
        )
        for at, word in enumerate(keywords, 1) if word.common
        for state in range(1, len(states) + 1)
    }  # fmt: skip
    full = _chain(job, trees, inputs, choices, "part")
    shown = dict.fromkeys(
        (*of_models.components_of(desk, job.name).values(), *of_models.model_fields_of(desk, job.name).values())
    )
    models = _chain(job, [job.symbol(term) for term in shown], ["base_model"], choices, "model_part")
    of_run = {name: function.formula for name, function in registered().items() if _is_of_run(function)}
    trees = [
        when(job.symbol(formula.known) > 0, tree := formula.function(*map(job.symbol, formula.terms)), _none_of(tree))
        for formula in of_run.values()
    ]
    run = _chain(job, trees, [*inputs, *_RUN_INPUTS], choices, "run_part")
    (models, full, *others, run), columns = shared([models, full, *quick.values(), run])
    quick = dict(zip(quick, others, strict=True))
    figures = dict(zip(shown, models.results, strict=True))
    return Plan(desk, job, keywords, inputs, choices, results, quick, full, tuple(of_run), run, figures, columns)


def _is_of_run(function: Function) -> bool:
    return isinstance(function.formula, kinds.OfRun)


def _none_of(tree: Expr) -> Expr:
    return literal(_NONE, tree.unit)


def _chain(
    job: Job,
    results: Sequence[Expr],
    inputs: Sequence[str],
    choices: Sequence[str],
    part: str,
    made: Mapping[str, Any] | None = None,
) -> Terms:
    """made: inputs that are not what the job has them be."""
    fixed = {key: value for key, value in job.worked.items() if job.inputs[key].follows_job and key not in inputs}
    fixed |= made or {}
    return terms(job, results, inputs, [key for key in inputs if key in choices], fixed, part)


def _results(desk: Desk, job: Job) -> dict[tuple[str, str], Expr]:
    """What calls choose from: first what the short chain knows too."""
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


def _quick_results(results: Mapping[tuple[str, str], Expr]) -> int:
    """How many of the results the short chain gives: up to the total and the peak."""
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
    for (word, state), chain in plan.quick.items():
        found += _stages(plan, chain, _quick_name(word, state), lookups)
    found += _stages(plan, plan.full, FULL, lookups)
    found += _stages(plan, plan.run, TIME, lookups)
    found += [(f"{BEGIN}Job", _job_call(plan, lookups)), (f"{BEGIN}Common", _common_call(plan, lookups))]
    found.append((f"{BEGIN}Run", _job_call(plan, lookups, plan.run, TIME, _RUN_INPUTS)))
    for function in registered().values():
        text = _public(plan, lookups, function)
        if text:
            found.append((function.name, text))
    return found


def _quick_name(word: int, state: int) -> str:
    """How the names of a short chain begin."""
    return f"{QUICK}{word}_{state}_"


def _stages(plan: Plan, chain: Terms, begin: str, lookups: Lookups) -> list[tuple[str, str]]:
    constants = plan.job.constants

    def elsewhere(symbol: str) -> str:
        return f"{constants[symbol].value:.15g}" if symbol in constants else lookups.book.cell_name(symbol)

    return stages(chain, begin, index_of=lookups.index_of, range_of=column_name, elsewhere=elsewhere)


# ---------------------------------------------------------------------- what an argument means
def _resolvers(plan: Plan, lookups: Lookups) -> list[tuple[str, str]]:
    """Functions_Row_…: the row of a name in its list, #N/A where it means none; Functions_Whole and so on."""
    v, texts, rows, tails, words, w, m = (p(name) for name in ("v", "t", "n", "s", "k", "w", "m"))
    escaped = w
    for sign in ("~", "*", "?"):
        escaped = f'SUBSTITUTE({escaped},"{sign}","~{sign}")'
    pattern = f'"*/"&SUBSTITUTE(SUBSTITUTE(LOWER({escaped})," ","/"),"-","/")&"*"'
    exact = f"INDEX({rows},_xlfn.XMATCH({{}},{texts}))"
    part = f"IF(COUNTIF({words},{m})=1,INDEX({rows},MATCH({m},{words},0)),NA())"
    count = f"COUNTIF({tails},{escaped})"
    tail = f"IF({count}=1,INDEX({rows},_xlfn.XMATCH({w},{tails})),IF({count}>1,NA(),{part}))"
    short = f'IF({w}="",NA(),IFERROR({exact.format(w)},{tail}))'
    sought = f"IFERROR({exact.format(v)},{let([('w', f'TRIM({v})'), ('m', pattern)], short)})"
    found = [(f"{BEGIN}Find", function_of(("v", "t", "n", "s", "k"), f"IF(ISTEXT({v}),{sought},NA())"))]
    for table in lookups.lists:
        areas = ",".join(lookups.list_area(table, part) for part in ("text", "row", "tail", "words"))
        found.append((row_of(table), function_of(("v",), f"{BEGIN}Find({p('v')},{areas})")))
    blank = f'IF(ISBLANK({p("v")}),TRUE,IF(ISTEXT({p("v")}),TRIM({p("v")})="",FALSE))'
    found.append((f"{BEGIN}Blank", function_of(("v",), blank)))
    number = f"IF(ISNUMBER({v}),{v},IF(ISTEXT({v}),VALUE({v}),{_WRONG}))"
    for name, right in (("Number", ""), ("Whole", f",INT({p('n')})={p('n')}")):
        body = let([("n", number)], f"IF(AND({p('n')}>={p('l')},{p('n')}<={p('h')}{right}),{p('n')},{_WRONG})")
        found.append((BEGIN + name, function_of(("v", "l", "h"), body)))
    return found


def row_of(table: str) -> str:
    """The helper that finds a name in a list."""
    return f"{BEGIN}Row_{table}"


def _resolved(plan: Plan, lookups: Lookups, key: str, value: str, keyword: str) -> str:
    """An input from what an argument gives: its number, or the row of its name; the keyword's own where it is blank."""
    domain = plan.job.inputs[key].domain
    default = lookups.default(key, keyword)
    if isinstance(domain, Choice):
        found = f"{row_of(domain.table)}({_truth(plan.job, domain, value)})"
        found = found if domain.table in CATALOGUE else f"IFERROR({found},{_WRONG})"
    else:
        found = _number(plan.job, domain, value)
    return f"IF({BEGIN}Blank({value}),{default},{found})"


def _truth(job: Job, domain: Choice, value: str) -> str:
    """TRUE and FALSE as On and Off, where these are the names."""
    if {"Off", "On"} <= set(job.tables[domain.table].keys):
        return f'IF(ISLOGICAL({value}),IF({value},"On","Off"),{value})'
    return value


def _number(job: Job, domain: Whole | Number, value: str) -> str:
    high = 1e15 if isinstance(domain.high, str) else domain.high
    kind = "Whole" if isinstance(domain, Whole) else "Number"
    found = f"{BEGIN}{kind}({value},{domain.low:.15g},{high:.15g})"
    if isinstance(domain, Whole) and domain.word:
        found = f'IF(ISTEXT({value}),IF(TRIM({value})="{domain.word}","{domain.word}",{found}),{found})'
    return found


# ---------------------------------------------------------------------- the calls that all functions share
def _job_call(
    plan: Plan, lookups: Lookups, chain: Terms | None = None, begin: str = FULL, of_run: Sequence[str] = ()
) -> str:
    """Functions_Job: any result of a job from all arguments; blank ones are empty texts.

    chain, begin: what it calls, and how its stages are named. of_run: inputs that the sheet Time and cost gives where
    no argument does.
    """
    vocabulary, chain = plan.desk.vocabulary, chain or plan.full
    names = [*vocabulary.common, JOB, *vocabulary.rest]
    pairs = [("k_", _keyword(plan, lookups, p(JOB)))]
    given = {argument: f"{argument}_" for argument in names if plan.desk.input_of(argument) in plan.inputs}
    for argument, short in given.items():
        pairs.append((short, _resolved(plan, lookups, plan.desk.input_of(argument), p(argument), p("k_"))))
    for key in of_run:
        given[key] = f"{key}_"
        found = _number(plan.job, plan.job.inputs[key].domain, p(key))  # type: ignore[arg-type]
        pairs.append((f"{key}_", f"IF({BEGIN}Blank({p(key)}),{lookups.book.cell_name(key)},{found})"))
    foreign = [argument for argument in vocabulary.rest if argument not in given]
    checked = "".join(f",IF({BEGIN}Blank({p(name)}),0,{_WRONG})" for name in foreign)
    sums = ",".join(f"N({p(name)})" for name in ("k_", *given.values()))
    by_input = {plan.desk.input_of(argument): short for argument, short in given.items()}
    handed = ",".join(p(by_input[key]) for key in chain.parameters)
    pairs.append(("all_", f"SUM({sums}{checked})"))
    body = let(pairs, f"IF(ISERROR({p('all_')}),{p('all_')},{begin}1({p('what')},{handed}))")
    return function_of(("what", *names, *of_run), body)


def _keyword(plan: Plan, lookups: Lookups, value: str) -> str:
    return f"IF({BEGIN}Blank({value}),1,IFERROR({row_of('jobs')}({value}),{_WRONG}))"


def _quick_arguments(plan: Plan) -> list[str]:
    """Arguments that the short chains take beside the first four and the job."""
    return [name for name in plan.desk.vocabulary.rest if name in (*COMMON, SWITCH) and name in plan.inputs]


def _common_call(plan: Plan, lookups: Lookups) -> str:
    """Functions_Common: the first results of a common job from the arguments that most calls give."""
    vocabulary = plan.desk.vocabulary
    names = [*vocabulary.common, JOB, *_quick_arguments(plan)]
    pairs = [("k_", _keyword(plan, lookups, p(JOB)))]
    by_input = {}
    for argument in names:
        if argument != JOB:
            key = plan.desk.input_of(argument)
            by_input[key] = f"{argument}_"
            pairs.append((f"{argument}_", _resolved(plan, lookups, key, p(argument), p("k_"))))
    sums = ",".join(f"N({p(name)})" for name in ("k_", *by_input.values()))
    pairs.append(("all_", f"SUM({sums})"))
    states = len(plan.job.choices(SWITCH))
    calls = []
    for (word, state), chain in plan.quick.items():
        handed = ",".join(p(by_input[key]) for key in chain.parameters)
        calls.append(f"{_quick_name(word, state)}1({p('what')},{handed})")
    place = f"{states}*({p('k_')}-1)+{p(by_input[SWITCH])}"
    body = let(pairs, f"IF(ISERROR({p('all_')}),{p('all_')},CHOOSE({place},{','.join(calls)}))")
    return function_of(("what", *names), body)


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


def _given(function: Function, argument: str) -> str:
    """An argument as it is handed on; one that is left out, or that the function has not, is an empty text."""
    arguments = function.arguments
    if argument not in arguments:
        return '""'
    if arguments.index(argument) < function.required:
        return p(argument)
    return f'IF(_xlfn.ISOMITTED({p(argument)}),"",{p(argument)})'


def _called(plan: Plan, function: Function, what: str, **given: str) -> str:
    """A result of the job by the short chain where the call gives no more than that takes, else by the whole one."""
    vocabulary = plan.desk.vocabulary

    def handed(argument: str) -> str:
        return given.get(argument) or _given(function, argument)

    quick = [*vocabulary.common, JOB, *_quick_arguments(plan)]
    whole = f"{BEGIN}Job({what},{','.join(handed(name) for name in (*vocabulary.common, JOB, *vocabulary.rest))})"
    short = f"{BEGIN}Common({what},{','.join(handed(name) for name in quick)})"
    if not what.isdigit() or int(what) > _quick_results(plan.results):
        return whole
    rare = [name for name in vocabulary.rest if name in function.arguments and name not in quick]
    omitted = [f"_xlfn.ISOMITTED({p(name)})" for name in rare]
    simple = [_is_common(plan, function)] if JOB in function.arguments else []
    return f"IF(AND({','.join([*omitted, *simple])}),{short},{whole})"


def _is_common(plan: Plan, function: Function) -> str:
    """Whether the job that a call names is one that the short chains are for."""
    texts = [word.name for word in plan.keywords if word.common]
    if len(texts) == len(plan.keywords):
        return "TRUE"
    same = ",".join(f'{p(JOB)}="{text}"' for text in texts)
    return f"IF(_xlfn.ISOMITTED({p(JOB)}),TRUE,OR({same}))"


def _of_run(plan: Plan, function: Function) -> str:
    """A figure of the run; #N/A where what it rests on is not known."""
    vocabulary = plan.desk.vocabulary
    names = (*vocabulary.common, JOB, *vocabulary.rest, *_RUN_INPUTS)
    what = plan.runs.index(function.name) + 1
    call = f"{BEGIN}Run({what},{','.join(_given(function, name) for name in names)})"
    m = p("m_")
    return _declared(function, let([("m_", call)], f"IF(ISERROR({m}),{m},IF({m}={_NONE:.15g},NA(),{m}))"))


def _picked(plan: Plan, lookups: Lookups, function: Function, formula: kinds.Picked) -> str:
    names = list(formula.choices(plan.desk, plan.job.name))
    own = next(own for own in function.own if own.name == formula.argument)
    given = _given(function, own.name)
    listed = lookups.name_list(function.name)
    position = (
        f"IF({BEGIN}Blank({p('i_')}),{names.index(own.default) + 1},IFERROR({row_of(listed)}({p('i_')}),{_WRONG}))"
    )
    pairs = [("i_", given), ("n_", position)]
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
    row = f"{row_of(_table_of(plan.job, 'base_model'))}({p('model')})"
    pairs = [("k_", _keyword(plan, lookups, _given(function, JOB))), ("r_", row), *pairs]
    body = let(
        pairs,
        f"IF(ISERROR({p('k_')}),{p('k_')},IF(ISERROR({p('r_')}),{p('r_')},"
        f"IF(ISERROR({p('n_')}),{p('n_')},CHOOSE({p('n_')},{columns}))))",
    )
    return _declared(function, body)


def _position(names: Sequence[str], default: str, listed: str) -> str:
    """Which of several names i_ means, from 1; the default's where it is blank."""
    i = p("i_")
    return f"IF({BEGIN}Blank({i}),{names.index(default) + 1},IFERROR({row_of(listed)}({i}),{_WRONG}))"


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
    fits = _called(plan, function, "1", **{formula.vary: p("here")})
    one = _called(plan, function, "1", **{formula.vary: "1"})
    body = let([("here", tried)], f"IF({p('here')}>{high},{p('low')},IF(IFERROR({fits},4)=1,{p('here')},{p('low')}))")
    found = f"_xlfn.REDUCE(0,_xlfn.SEQUENCE({steps}),_xlfn.LAMBDA(_xlpm.low,_xlpm.step,{body}))"
    return _declared(function, let([("one", one)], f"IF(ISERROR({p('one')}),{p('one')},IF({p('one')}=1,{found},0))"))


def _best_card(plan: Plan, lookups: Lookups, function: Function, formula: kinds.BestCard) -> str:
    worked = plan.job.worked["gpu_choice"]
    first = _called(plan, function, "1", gpu=f'"{worked}"')
    figure = f"{lookups.card(formula.column, p('at'))}"
    here = _called(plan, function, "1", gpu=lookups.card("", p("at")))
    better = f"IF({p('best')}=0,TRUE,{figure}<{lookups.card(formula.column, p('best'))})"
    known = f"AND(N({figure})>0,{lookups.card('cuda', p('at'))}>0)"
    body = f"IF({known},IF({better},IF(IFERROR({here},4)=1,{p('at')},{p('best')}),{p('best')}),{p('best')})"
    count = len(plan.job.tables["gpus"])
    found = f"_xlfn.REDUCE(0,_xlfn.SEQUENCE({count}),_xlfn.LAMBDA(_xlpm.best,_xlpm.at,{body}))"
    pairs = [("one", first), ("card", f"IF(ISERROR({p('one')}),0,{found})")]
    chosen = f"IF({p('card')}=0,NA(),{lookups.card('', p('card'))})"
    return _declared(function, let(pairs, f"IF(ISERROR({p('one')}),{p('one')},{chosen})"))


def _of_card(plan: Plan, lookups: Lookups, function: Function, formula: kinds.OfCard) -> str:
    fields = plan.desk.vocabulary.gpu_fields
    own = function.own[0]
    listed = lookups.name_list(function.name)
    position = _position(list(fields), own.default, listed)
    columns = ",".join(lookups.card(column, p("r_")) for column in fields.values())
    pairs = [
        ("r_", f"{row_of('gpus')}({p('gpu')})"),
        ("i_", _given(function, own.name)),
        ("n_", position),
        ("c_", f"IF(ISERROR({p('r_')}),{p('r_')},IF(ISERROR({p('n_')}),{p('n_')},CHOOSE({p('n_')},{columns})))"),
    ]
    unknown = f'IF(ISERROR({p("c_")}),{p("c_")},IF(OR({p("c_")}="",{p("c_")}="unknown",{p("c_")}=0),NA(),{p("c_")}))'
    return _declared(function, let(pairs, unknown))

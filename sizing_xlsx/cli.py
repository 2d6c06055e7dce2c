"""The command line: `python build.py COMMAND`, `sizing-xlsx COMMAND` or `python -m sizing_xlsx COMMAND`.

Exit status: 0 done, 1 the linter found something or a sweep refused some rows, 2 a value, a file or an argument is
wrong (one sentence on standard error says which and what would be right).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from . import __version__, own_options
from .output import printed
from .presets.names import counted

if TYPE_CHECKING:
    from .formula.job import Job
    from .presets.catalogue import Presets

JOB_COMMANDS = {
    "lora": "size a LoRA or QLoRA-style fine-tuning job",
    "training": "size a training job from scratch",
    "full": "size full fine-tuning over one or more GPUs",
    "serving": "size inference: KV cache, users at one time, bounds of speed, cost",
}
BOUNDARIES = ("largest_batch_size", "largest_sequence_length")


class Parser(argparse.ArgumentParser):
    """An argument parser that refuses in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise SystemExit(_refuse(f"{message}; see {self.prog} --help"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(words[0] if words else "")
    options = parser.parse_args(words)
    if not options.command:
        parser.print_help()
        return 0
    try:
        return int(options.run(options))
    except (ValueError, TypeError, ModuleNotFoundError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        print("sizing-xlsx: stopped.", file=sys.stderr)
        return 130
    except OSError as error:
        return _refuse(f"{error.filename or 'the output'}: {error.strerror}" if error.strerror else str(error))


def _refuse(sentence: str) -> int:
    line = " ".join(sentence.split())
    print(f"sizing-xlsx: {line}{'' if line.endswith(('.', '?')) else '.'}", file=sys.stderr)
    return 2


def _parser(command: str) -> Parser:
    parser = Parser(prog="sizing-xlsx", description="GPU memory for LLM jobs, in Python and in live workbooks.")
    parser.add_argument("--version", action="version", version=f"sizing_xlsx {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    build = commands.add_parser("build", help="write the workbooks")
    build.add_argument("--output", type=Path, default=Path(), metavar="DIR", help="where to; the current folder")
    build.add_argument("--presets", type=Path, metavar="DIR", help="an own copy of the presets folder")
    build.add_argument(
        "--functions", choices=("lambda", "udf", "addin", "none"), default="lambda",
        help="who answers =GPU_FITS(...): names of the workbook, xlwings, the add-in, or nobody",
    )  # fmt: skip
    build.add_argument("--json", action="store_true", help="what was done with workbooks that were there, as JSON")
    own_options.add(build)
    build.set_defaults(run=_build)

    for name, words in JOB_COMMANDS.items():
        sub = commands.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
        sub.add_argument(
            "--json", action="store_true", help="every term as JSON, memory in the unit of its name or bytes"
        )
        sub.add_argument("--cards", action="store_true", help="the job on every card, and the boundaries there")
        if name == "serving":  # it has no levers, and its scenarios are sized in its workbook alone
            sub.add_argument(
                "--models", action="store_true", help="every model on these cards, and the largest that fits"
            )
            sub.set_defaults(levers=False, workbook=None, scenario=None)
        else:
            sub.add_argument("--levers", action="store_true", help="the job with each change that saves memory")
            sub.add_argument("--workbook", type=Path, metavar="XLSX", help="a workbook of build.py, with --scenario")
            sub.add_argument(
                "--scenario", metavar="NAME", help="a row of its sheet Scenarios; options replace its inputs"
            )
        if name == "full":
            sub.add_argument("--stages", action="store_true", help="memory of a card for 1 to 1,024 cards, by stage")
            sub.add_argument(
                "--launch-config", type=Path, metavar="FILE",
                help="write what starts it: DeepSpeed's JSON for ZeRO, accelerate's YAML for FSDP and DDP",
            )  # fmt: skip
            sub.add_argument("--force", action="store_true", help="write it also over a file that is there")
        own_options.add(sub)
        if name == command:  # only the command that runs pays for its job
            _job_options(sub, name)
        sub.set_defaults(run=_size)

    sweep = commands.add_parser("sweep", help="size millions of jobs from a CSV or a Parquet file")
    if command == "sweep":
        from .bulk import command as bulk_command

        bulk_command.add(sweep)

    model = commands.add_parser("model", help="read a config.json: architecture, exact parameters, what jobs need")
    model.add_argument("config", help="a config.json, a folder with one, its text, a model of the catalogue, or -")
    model.add_argument("--json", action="store_true", help="one JSON object")
    own_options.add_forms(model)
    model.set_defaults(run=_model)

    verify = commands.add_parser("verify", help="run or trace real training steps and hold the formulas against them")
    derive = commands.add_parser("derive", help="trace what a layer of a model keeps for backward, tensor by tensor")
    if command in ("verify", "derive"):
        _measuring(verify if command == "verify" else derive, command)

    catalogue = commands.add_parser("catalogue", help="list the models, cards and storage formats that can be chosen")
    if command == "catalogue":
        from . import catalogue_command

        catalogue_command.add(catalogue)

    plan = commands.add_parser("plan", help="plan a list of jobs: cards, hours and money by month; or as a workbook")
    if command == "plan":
        from . import plan_command

        plan_command.add(plan)

    function = commands.add_parser("function", help="list the Excel functions, tell what one is, or compute a call")
    if command == "function":
        from . import function_command

        function_command.add(function)

    report = commands.add_parser("report", help="write a workbook's Summary as PDF and its charts as pictures")
    report.add_argument("workbook", type=Path, help="a workbook that build wrote, with your inputs; it is only read")
    report.add_argument("--output", type=Path, default=Path(), metavar="DIR", help="where to; the current folder")
    report.set_defaults(run=_report)

    excel = commands.add_parser("excel", help="the functions in desktop Excel, and in xlwings Lite")
    if command == "excel":
        from .functions.udf import command as excel_command

        excel_command.add(excel)

    lint = commands.add_parser("lint", help="hold an emitted workbook against the rules")
    lint.add_argument("workbook", type=Path)
    lint.set_defaults(run=_lint)

    diff = commands.add_parser("diff", help="which results moved between two workbooks, by input, preset or formula")
    diff.add_argument("old", type=Path)
    diff.add_argument("new", type=Path)
    diff.add_argument("--json", action="store_true", help="one JSON object")
    diff.set_defaults(run=_diff)

    serve = commands.add_parser("serve", help="serve the Excel add-in and the functions behind it")
    if command == "serve":
        from .server import command as serving

        serving.add(serve)

    benchmark = commands.add_parser("benchmark", help="print ratios of speed, measured in one run (needs a checkout)")
    benchmark.add_argument("arguments", nargs=argparse.REMAINDER)
    benchmark.set_defaults(run=_benchmark)
    return parser


def _model(options: argparse.Namespace) -> int:
    from . import model_report

    presets, model = model_report.read(options.config, options.layer_forms or ())
    presets = own_options.completed(presets, options)
    return model_report.run(presets, model, as_json=options.json)


def _measuring(parser: argparse.ArgumentParser, command: str) -> None:
    from .measure import command as measuring

    if command == "verify":
        measuring.add_verify(parser)
    else:
        measuring.add_derive(parser)
    measuring.add_fields(parser)
    parser.set_defaults(run=measuring.verify if command == "verify" else measuring.derive)


def _job_options(parser: argparse.ArgumentParser, name: str) -> None:
    from .formula.domains import allowed
    from .jobs import plain_job
    from .presets.catalogue import load_presets

    sized = plain_job(name, load_presets())
    parser.set_defaults(sized=sized)
    for key, declared in sized.inputs.items():
        default = "" if declared.default is None else f" Worked job: {declared.default}."
        words = f"{declared.label}: {allowed(sized, key)}.{default}".replace("%", "%%")
        parser.add_argument("--" + key.replace("_", "-"), dest=key, metavar="VALUE", help=words)


def _build(options: argparse.Namespace) -> int:
    from .workbook.carry.rebuild import rebuild

    def completed(found: Presets) -> Presets:
        return own_options.told(own_options.completed(found, options))

    given = own_options.given(options, options.presets)
    reports = rebuild(options.output, given, options.presets, completed, options.functions)
    if options.json:
        import json

        print(json.dumps([report.as_json() for report in reports], indent=2))
        return 0
    for report in reports:
        print("\n".join(report.lines()))
    return 0


def _size(options: argparse.Namespace) -> int:
    from .formula.domains import typed
    from .jobs import ask, plain_job, questions_of

    known = _known(options)
    sized = plain_job(options.command, known) if known else options.sized
    asked = [question for question in BOUNDARIES if question in questions_of(sized.name)]  # those that are told
    ask(sized, asked)
    given = vars(options)
    inputs = {key: typed(given[key]) for key in sized.inputs if given.get(key) is not None}
    if options.workbook is not None or options.scenario is not None:
        inputs = {**_scenario(options, sized), **inputs}
    if getattr(options, "launch_config", None) is not None:
        from .planning.launch import write_launch_config

        sized.size((), **inputs)
        print(write_launch_config(options.launch_config, sized, force=options.force, **inputs), file=sys.stderr)
    if any(getattr(options, table, False) for table in ("cards", "levers", "stages", "models")):
        return _plan(sized, inputs, options)
    results = (*sized.plain_terms, *asked)
    values = sized.size(results, **inputs)
    warnings = sized.warnings(values, **inputs)
    if options.json:
        import json

        accepted = sized.accepted({**sized.defaults(), **inputs})
        printed(json.dumps({"inputs": accepted, "results": values, "warnings": warnings}, indent=2))
        return 0
    text = _serving_report().report if sized.name == "serving" else report
    printed("\n".join((text(sized, inputs, values), *(f"Warning: {warning}." for warning in warnings))))
    return 0


def _known(options: argparse.Namespace) -> Presets | None:
    """The catalogue with what the options and the workbook add to it; None where that is nothing."""
    from .presets.catalogue import load_presets

    plain = not (options.model or options.gpu or options.layer_forms)
    found = load_presets() if plain else own_options.presets(options)
    if options.workbook is not None:
        from .workbook.own_rows import with_rows_of

        longer = with_rows_of(found, options.workbook)
        plain, found = plain and longer is found, longer
    return None if plain else found


def _serving_report() -> Any:
    from . import serving_report

    return serving_report


def _plan(sized: Job, inputs: dict[str, Any], options: argparse.Namespace) -> int:
    from .planning import report

    planned: Any = _serving_report() if sized.name == "serving" else report
    found = {}
    if options.cards:
        found["cards"] = planned.cards(sized, inputs)
    if getattr(options, "models", False):
        found["models"] = planned.models(sized, inputs)
    if options.levers:
        found["levers"] = planned.levers(sized, inputs)
    if getattr(options, "stages", False):
        found["stages"] = planned.stages(sized, inputs)
    if options.json:
        import json

        print(json.dumps(found, indent=2))
        return 0
    print("\n\n".join(getattr(planned, f"{name}_text")(rows) for name, rows in found.items()))
    return 0


def _scenario(options: argparse.Namespace, sized: Job) -> dict[str, Any]:
    """The inputs of a row of a planner's workbook."""
    from .workbook.scenario_file import scenario_of

    if options.workbook is None or options.scenario is None:
        given, lacking = ("workbook", "scenario") if options.scenario is None else ("scenario", "workbook")
        raise ValueError(f"--{given} is given without --{lacking}; name both the workbook and the row of Scenarios")
    return scenario_of(options.workbook, sized, options.scenario).inputs


def report(sized: Job, inputs: dict[str, Any], values: dict[str, Any]) -> str:
    """A sized job in a few lines."""
    known = {**sized.defaults(), **sized.accepted(inputs)}
    basis = "traced list" if values["rests_on_traced"] else "published accounting"

    def gb(key: str) -> str:
        value = values[key]
        return value if isinstance(value, str) else f"{value:,.4f} GB"

    def line(label: str, traced: str, published: str) -> str:
        return f"{label:32}{traced:>16}{published:>16}"

    peak, total = "peak_allocated_gb", "total_reserved_gb"
    capacity, others = gb("gpu_usable_capacity_gb"), gb("others_beside_total_gb")
    batch, sequence = values["largest_batch_size"], values["largest_sequence_length"]
    return "\n".join(
        (
            f"{known['base_model']} on {known['gpu_choice']}: {values['fit_verdict']}, by the {basis}.",
            "",
            line("", "traced", "published"),
            line("Peak allocated", gb(f"traced_{peak}"), gb(f"published_{peak}")),
            line("Total reserved, upper estimate", gb(f"traced_{total}"), gb(f"published_{total}")),
            "",
            f"Usable capacity {capacity}, used by others {others}, headroom {gb('headroom_gb')}.",
            f"Largest batch size {batch:,}, largest sequence length {sequence:,}.",
            "",
            *effort_lines(known, values),
            "",
            "All figures are calculated; 1 GB = 1,000,000,000 bytes.",
        )
    )


def effort_lines(known: dict[str, Any], values: dict[str, Any]) -> tuple[str, ...]:
    """Time and cost of a sized job in a few lines; known: its inputs."""

    def amount(key: str, unit: str, decimals: int) -> str:
        value = values[key]
        return value if isinstance(value, str) else f"{value:,.{decimals}f} {unit}"

    currency, cards = known["currency_choice"], known["gpu_count"]
    slow, usual, fast = (amount(f"run_hours{case}", "hours", 1) for case in ("_slow", "", "_fast"))
    return (
        f"Time and cost of {counted(values['run_tokens'], 'token')} on {counted(cards, 'card')}:",
        f"  Run            {usual} expected, {fast} if fast, {slow} if slow",
        f"  Rented         {amount('rent_cost', currency, 2)}; a million tokens "
        + amount("rent_per_million_tokens", currency, 4),
        f"  Owned          {amount('own_cost', currency, 2)}",
        f"  Checkpoint     {values['checkpoint_gb']:,.2f} GB, "
        f"{counted(values['checkpoint_seconds'], 'second')} to write",
    )


def _report(options: argparse.Namespace) -> int:
    from .report.command import run

    return run(options)


def _lint(options: argparse.Namespace) -> int:
    from .workbook.package import Archive
    from .workbook.rules import lint_workbook

    Archive(options.workbook.read_bytes(), str(options.workbook)).verify()  # refuses what is no workbook
    findings = lint_workbook(options.workbook)
    for finding in findings:
        print(finding)
    print(f"{counted(len(findings), 'finding')} in {options.workbook}")
    return 1 if findings else 0


def _diff(options: argparse.Namespace) -> int:
    from .workbook.diff import words
    from .workbook.diff.compare import compare

    found = compare(options.old, options.new)
    if options.json:
        import json

        print(json.dumps(words.as_json(found), indent=2))
    else:
        print("\n".join(words.lines(found)))
    return 0


def _benchmark(options: argparse.Namespace) -> int:
    try:
        from benchmarks import main as run  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ValueError("benchmark runs in a checkout of the project, which has the folder benchmarks/") from None
    return int(run(options.arguments))

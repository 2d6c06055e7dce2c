"""`sizing-xlsx verify` and `sizing-xlsx derive`: what was asked, as runs; what came out, as lines, rows and cells."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..formula import domains
from . import full_run, models, results, sweep
from .allocator import BLIND_SPOTS
from .backends import BACKENDS, one_sentence
from .checks import CHECKS
from .own_forms import quiet
from .result_file import NAME, ResultFile, columns
from .run import (
    BEYOND_FORMULAS,
    JOBS,
    SETTINGS,
    SWEEPS,
    Run,
    declared,
    input_names,
    make_run,
    model_folder,
    named_sweep,
    read_sweep,
    sizing,
    typed,
    unique,
)

LONGEST = 10_000_000  # seconds that a run may take: 115 days


def add_verify(parser: argparse.ArgumentParser) -> None:
    """The options of verify that do not depend on a job."""
    parser.add_argument("--backend", choices=tuple(BACKENDS), default="trace", help=_list(BACKENDS))
    what = parser.add_argument_group("what to run: a sweep, the runs of a workbook, or one run by its fields")
    what.add_argument(
        "--sweep", metavar="NAME|FILE", help="lora (25 runs) or training (24 runs), or a .toml or .csv file"
    )
    what.add_argument(
        "--workbook", type=Path, metavar="XLSX", help="a workbook of build.py whose runs, or whose scenario, to run"
    )
    what.add_argument(
        "--rows",
        choices=("validation", "scenario", "scenarios"),
        help="which of the workbook's: the runs of Validation (if not given), the job of Sizing, the rows of Scenarios",
    )
    what.add_argument("--only", metavar="ID,ID", help="of the sweep, only these runs")
    what.add_argument("--job", choices=tuple(JOBS), help=f"{_list(JOBS)}; lora if not given")
    where = parser.add_argument_group("where results go")
    where.add_argument("--csv", type=Path, metavar="OUT", help=f"the file of results; {NAME} in the current folder")
    where.add_argument(
        "--write", type=Path, metavar="XLSX", help="a workbook to write the figures into; a backup is kept"
    )
    where.add_argument("--sheet", metavar="NAME", help="a sheet of it with a header row, in place of Validation")
    where.add_argument(
        "--composition", type=Path, metavar="FOLDER", help="what is alive at the peak: a table and a picture a run"
    )
    where.add_argument("--again", action="store_true", help="repeat runs that the file of results has already")
    how = parser.add_argument_group("how to run")
    how.add_argument("--also", metavar="CHECK,CHECK", help=f"on a GPU, after training: {', '.join(CHECKS)}")
    how.add_argument(
        "--ray", metavar="ADDRESS", help="a Ray cluster that runs them, one on each free GPU: auto, HOST:PORT"
    )
    how.add_argument("--workers", type=int, metavar="N", help="processes at a time; every core for trace, else 1")
    how.add_argument("--timeout", type=float, default=sweep.TIMEOUT, metavar="SECONDS", help="a longer run is stopped")
    how.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)


def add_fields(parser: argparse.ArgumentParser) -> None:
    """One option for each field of a run, over all jobs."""
    fields = parser.add_argument_group("fields of a run, as in the workbook")
    known = {key: job for job in JOBS for key in input_names(job)}
    for key, job in known.items():
        formulas = declared("training" if key == "parameter_storage" else job)
        words = f"{formulas.inputs[key].label}: {domains.allowed(formulas, key)}"
        fields.add_argument(
            f"--{key.replace('_', '-')}", dest=f"run_{key}", metavar="VALUE", help=words.replace("%", "%%")
        )
    for key, (_, right) in SETTINGS.items():
        fields.add_argument(f"--{key.replace('_', '-')}", dest=f"run_{key}", metavar="VALUE", help=right)


def _list(words: Mapping[str, str]) -> str:
    return "; ".join(f"{key}: {text}" for key, text in words.items())


def fields_given(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of a run that were given as options; numbers as numbers."""
    given = {key[4:]: value for key, value in vars(options).items() if key.startswith("run_") and value is not None}
    return typed(given)


def runs_asked(options: argparse.Namespace) -> list[Run]:
    """The runs that the options ask for; ValueError when they cannot be."""
    given = fields_given(options)
    if options.sweep is None and options.workbook is None:
        if options.only is not None:
            raise ValueError(f"--only is {options.only!r} without --sweep or --workbook; say what the runs are of")
        return [make_run(options.job or "lora", given)]
    if options.sweep is not None and options.workbook is not None:
        raise ValueError("--sweep and --workbook are both given; runs come from one of them")
    if given or options.job is not None:
        name = next(iter(given), "job").replace("_", "-")
        source = "--workbook" if options.sweep is None else f"--sweep {options.sweep}"
        raise ValueError(f"--{name} is given beside {source}; write it into a sweep file instead")
    if options.workbook is not None:
        runs = runs_of_workbook(options.workbook, options.rows or "validation")
    else:
        runs = named_sweep(options.sweep) if options.sweep in SWEEPS else read_sweep(Path(options.sweep))
    if options.only is None:
        return runs
    wanted = list(dict.fromkeys(name.strip() for name in options.only.split(",") if name.strip()))
    known = {run.id: run for run in runs}
    missing = [name for name in wanted if name not in known]
    if missing or not wanted:
        raise ValueError(f"--only is {options.only!r}; the sweep's runs are {', '.join(known)}")
    return [known[name] for name in wanted]


def runs_of_workbook(path: Path, rows: str) -> list[Run]:
    """The runs on a workbook's Validation sheet, the one that its Sizing sheet sizes, or the rows of Scenarios."""
    from ..workbook.scenario_file import scenarios_of
    from ..workbook.write_back import job_of, run_of_scenario, runs_of_validation

    jobs = {job: sizing(job) for job in JOBS}
    if rows == "scenario":
        job, inputs = run_of_scenario(path, jobs)
        return [make_run(job, _of_a_run(job, inputs, str(path)), where=str(path))]
    if rows == "scenarios":
        job = job_of(path, jobs)
        planned = scenarios_of(path, jobs[job])
        if not planned:
            raise ValueError(f"{path}: the Scenarios sheet holds no job; fill in a row")
        runs = [make_run(job, _of_a_run(job, row.inputs, row.where), id=row.name, where=row.where) for row in planned]
        return unique(runs, str(path))
    found = runs_of_validation(path, jobs)
    if not found:
        raise ValueError(f"{path}: the Validation sheet holds no run; give an id and its inputs in a spare row")
    runs, beyond = [], []
    for name, job, inputs in found:
        where = f"{path}, run {name}"
        try:
            fields = _of_a_run(job, inputs, where)
        except ValueError as error:
            beyond.append(str(error))
            continue
        runs.append(make_run(job, fields, id=name, where=where))
    if not runs:
        raise ValueError(beyond[0])
    if beyond:
        say(f"{len(beyond)} of {len(found)} runs are left out, which verify cannot run; the first: {beyond[0]}")
    return unique(runs, str(path))


def _of_a_run(job: str, inputs: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a run of a sized job. ValueError where no run steps it."""
    if job == "full":
        try:
            return full_run.run_fields(inputs)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    known = input_names(job)
    return {key: value for key, value in inputs.items() if key in known}


def _sized(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """A run, or a row of its results, with the inputs of the job that sizes it; None where none does."""
    return full_run.sized(row) if row["job"] == "full" else dict(row)


def write_back(options: argparse.Namespace, runs: Sequence[Run], rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Put the settled results into the planner's workbook; what was done, in a sentence."""
    from ..workbook import write_back as workbook

    settled = [{**_numbers(rows[run.id]), **run.as_row()} for run in runs if rows[run.id]["outcome"] in sweep.DONE]
    if not settled:
        return f"nothing was written into {options.write}: no run was settled"
    if options.sheet is not None:
        report = workbook.write_columns(options.write, options.sheet, settled, columns())
        return workbook.backup_words(report, options.write)
    rows_sized = _all_sized(settled)
    if len(rows_sized) < len(settled):
        known = {row["id"] for row in rows_sized}
        beyond = ", ".join(row["id"] for row in settled if row["id"] not in known)
        say(f"not written, since no formula knows their settings or model: {beyond}")
    job = workbook.job_of(options.write, {name: sizing(name) for name in JOBS})
    return workbook.backup_words(workbook.write_results(options.write, rows_sized, sizing(job)), options.write)


def _all_sized(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows that formulas know, with the inputs of the job that sizes each."""
    found = (_sized(row) for row in rows if not _beyond(row))
    return [row for row in found if row is not None]


def _beyond(row: Mapping[str, Any]) -> bool:
    """Whether no formula knows the step of a run, so that the Validation sheet could not predict it."""
    model = sizing(row["job"]).accepted
    try:
        model({"base_model": row["base_model"]})
    except ValueError:
        return True
    return any(row[key] != SETTINGS[key][0] for key in BEYOND_FORMULAS)


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of results with its numbers as numbers: one that comes from the file holds only texts."""
    found = {key: value for key, value in row.items() if isinstance(value, str) and key not in results.TEXTS}
    return {**row, **typed(found)}


def writable(options: argparse.Namespace, runs: Sequence[Run]) -> None:
    """ValueError, before any run is begun, when the results could not be written into the workbook afterwards."""
    from ..workbook import write_back as workbook

    rows = [{**run.as_row(), "backend": options.backend} for run in runs]
    if options.sheet is not None:
        workbook.check_columns(options.write, options.sheet, rows, columns())
        return
    job = workbook.job_of(options.write, {name: sizing(name) for name in JOBS})
    other = next((run for run in runs if run.job != job), None)
    if other is not None:
        raise ValueError(f"--write is {options.write}, a workbook of {job} runs; the run {other.id} is of {other.job}")
    if options.backend == "cpu":
        raise ValueError("--write is given with --backend cpu, which has no figures of a GPU; use trace or cuda")
    workbook.check_results(options.write, _all_sized(rows), sizing(job))


def verify(options: argparse.Namespace) -> int:
    """Perform the runs, keep their results, tell of them.

    0: done; 1: a run failed, or not one could be run; 130: stopped.
    """
    runs = runs_asked(options)
    workers = options.workers if options.workers is not None else sweep.default_workers(options.backend)
    if not 1 <= workers <= 64:
        raise ValueError(f"--workers is {workers}; it must be 1 to 64")
    if not 0 < options.timeout <= LONGEST:
        right = f"a number of seconds above 0, at most {LONGEST:,}"
        raise ValueError(f"--timeout is {options.timeout:g}; it must be {right}")
    settings: dict[str, Any] = {"debug": options.debug, "also": _also(options)}
    _check_paths(options)
    weighed = next((run for run in runs if run["weights"] != "random"), None)
    if weighed is not None and options.backend != "cuda":
        raise ValueError(
            f"weights is {weighed['weights']!r} with --backend {options.backend}, which reads none;"
            " leave it out, or measure with --backend cuda"
        )
    if options.ray is not None:
        _fit_for_ray(options)
    else:
        ready(options.backend, runs)
    if options.rows is not None and options.workbook is None:
        raise ValueError(f"--rows is {options.rows} without --workbook; name the workbook too")
    if options.sheet is not None and options.write is None:
        raise ValueError(f"--sheet is {options.sheet!r} without --write; name the workbook too")
    if options.write is not None:
        writable(options, runs)
    if options.composition is not None:
        if options.backend == "cpu":
            raise ValueError("--composition is given with --backend cpu; it needs --backend trace or cuda")
        models.need("matplotlib", "--composition")
        settings["composition"] = str(options.composition)
    file = ResultFile(options.csv or Path(NAME))
    rows: dict[str, Mapping[str, Any]] = {}
    for run in runs:
        kept = None if options.again or options.composition or options.also else file.finished(run, options.backend)
        if kept is not None:
            rows[run.id] = kept
    missing = [run for run in runs if run.id not in rows]
    if rows:
        say(f"{len(rows)} of {len(runs)} runs are in {file.path} already; --again repeats them")
    progress = sweep.Progress(len(missing), say)
    if options.ray is not None:
        from .cluster import perform_on_cluster

        where = {"address": options.ray, "timeout": options.timeout}
        running = perform_on_cluster(missing, options.backend, settings, **where)
    else:
        running = sweep.perform_all(missing, options.backend, settings, workers=workers, timeout=options.timeout)
    try:
        for run, row in running:
            file.put(run, row)
            rows[run.id] = row
            progress.finished(run, row)
    except KeyboardInterrupt:
        running.close()
        say(f"stopped; {len(rows)} of {len(runs)} results are in {file.path}, and the same command goes on from there")
        return 130
    file.sort(runs)
    print(counted(runs, rows) if options.backend == "cpu" else table(runs, rows))
    if options.backend == "trace":
        print(f"A trace does not see {'; '.join(BLIND_SPOTS)}.")
    print(f"Results: {file.path}")
    if options.write is not None:
        print(write_back(options, runs, rows))
    outcomes = [row["outcome"] for row in rows.values()]
    return 1 if "failed" in outcomes or not set(outcomes) & set(sweep.DONE) else 0


def _check_paths(options: argparse.Namespace) -> None:
    """ValueError for a path that is of the wrong kind, before any run is begun."""
    if options.composition is not None and options.composition.exists() and not options.composition.is_dir():
        raise ValueError(f"--composition is {str(options.composition)!r}, a file; it must be a folder, there or not")
    if options.csv is not None and options.csv.is_dir():
        raise ValueError(f"--csv is {str(options.csv)!r}, a folder; it must be a file such as {NAME}")


def _fit_for_ray(options: argparse.Namespace) -> None:
    """ValueError for what a cluster cannot be told."""
    for name, why in (
        ("workers", "the cluster decides how many run at a time"),
        ("composition", "its files would be written on the nodes"),
    ):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name} is given with --ray {options.ray}: {why}; leave it out")


def _also(options: argparse.Namespace) -> list[str]:
    """The checks to run after training, in their own order."""
    wanted = [name.strip() for name in (options.also or "").split(",") if name.strip()]
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown:
        raise ValueError(f"--also is {options.also!r}; it must name some of {', '.join(CHECKS)}")
    if wanted and options.backend != "cuda":
        raise ValueError(f"--also is given with --backend {options.backend}; it needs --backend cuda")
    return [name for name in CHECKS if name in wanted]


def ready(backend: str, runs: Sequence[Run]) -> None:
    """ValueError when a backend cannot run anything here, before any run is begun."""
    from . import fake_gpu

    torch = models.need("torch", f"--backend {backend}")
    models.need("transformers", f"--backend {backend}")
    if any(run.job == "lora" for run in runs):
        models.need("peft", "LoRA")
    if backend == "cpu":
        models.need("psutil", "--backend cpu")
    if backend == "trace":
        fake_gpu.possible()
    if backend == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"--backend is cuda, and torch {torch.__version__} finds no CUDA GPU here; run it on a machine with one,"
            " or trace the same runs with --backend trace"
        )


def say(line: str) -> None:
    """A line for the person at the screen, beside the results."""
    print(line, file=sys.stderr, flush=True)


def counted(runs: Sequence[Run], rows: Mapping[str, Mapping[str, Any]]) -> str:
    """What runs on the CPU counted, as lines: exact bytes of what stays, and of what autograd keeps for backward."""
    keys = ("frozen_parameter", "trainable_parameter", "gradient", "optimizer_state", "saved_tensor")
    width = min(40, max((len(run.id) for run in runs), default=2))
    titles = ("frozen", "trained", "gradients", "optimizer", "saved")
    lines = [f"{'id':{width}}  {'outcome':8}" + "".join(f"{title:>16}" for title in titles)]
    for run in runs:
        row = rows[run.id]
        found = [row.get(f"{key}_bytes") for key in keys]
        shown = "".join(f"{'-' if size in (None, '') else f'{int(size):,}':>16}" for size in found)
        lines.append(f"{run.id[:width]:{width}}  {row['outcome']:8}{shown}")
    return "\n".join(
        [*lines, "Bytes. Saved: what autograd keeps for backward after a forward pass, without parameters."]
    )


def table(runs: Sequence[Run], rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The results as lines: id, outcome, allocated, reserved, and what the formulas predict."""
    width = min(40, max((len(run.id) for run in runs), default=2))
    titles = (("allocated GB", 14), ("predicted", 12), ("error", 9), ("reserved GB", 14), ("at most", 10))
    lines = [f"{'id':{width}}  {'outcome':8}" + "".join(f"{title:>{wide}}" for title, wide in titles)]
    for run in runs:
        row = rows[run.id]
        peak, reserved = _gb(row, "peak_allocated_bytes"), _gb(row, "peak_reserved_bytes")
        said = predicted(run)
        error = f"{said[0] / peak - 1:+.2%}" if said and peak and row["outcome"] == "ok" else ""
        lines.append(
            f"{run.id[:width]:{width}}  {row['outcome']:8}{_shown(peak):>14}{_shown(said and said[0]):>12}{error:>9}"
            f"{_shown(reserved):>14}{_shown(said and said[1], 1):>10}"
        )
    lines.append(
        "1 GB = 1,000,000,000 bytes; predicted: the traced list; at most: the upper estimate of reserved memory."
        " An oom row of a trace shows what the run would need."
    )
    return "\n".join(lines)


def _gb(row: Mapping[str, Any], key: str) -> float | None:
    value = row.get(key)
    return float(value) / 1e9 if value not in (None, "") else None


def _shown(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def predicted(run: Run) -> tuple[float, float] | None:
    """Allocated peak and upper estimate of reserved in GB by the formulas; None where they have none for the run."""
    known = None if any(run[key] != SETTINGS[key][0] for key in BEYOND_FORMULAS) else _sized(run.as_row())
    if known is None:
        return None
    formulas = sizing(run.job)
    inputs = {key: value for key, value in known.items() if key in formulas.inputs}
    try:
        values = formulas.size(("traced_peak_allocated_gb", "traced_total_reserved_gb"), **inputs)
    except ValueError:  # a model that is not sized yet
        return None
    peak, total = values["traced_peak_allocated_gb"], values["traced_total_reserved_gb"]
    return None if isinstance(peak, str) else (peak, total)


# ------------------------------------------------------------------------------------------------ derive
def add_derive(parser: argparse.ArgumentParser) -> None:
    """The options of derive."""
    parser.add_argument("model", metavar="CONFIG", help="a config.json, its folder, or a model of the presets")
    parser.add_argument("--job", choices=("lora", "full"), default="lora", help="LoRA or full fine-tuning")
    parser.add_argument("--json", action="store_true", help="the lists as JSON")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="the family's layer form into a new TOML file, for --layer-forms"
    )
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)


def derive(options: argparse.Namespace) -> int:
    """Print the per-layer list of a model."""
    from . import derive as solving

    path = Path(options.model)
    if path.exists():
        if not (path / "config.json" if path.is_dir() else path).is_file():
            raise ValueError(f"{options.model} is a folder without a config.json; give a config.json or its folder")
        options.run_config = str(path)
    else:
        options.run_base_model = options.model
    run = make_run(options.job, fields_given(options))
    form = None if options.write is None else _new_form(options, run)
    ready("trace", [run])
    try:
        with quiet():
            if form is not None:
                return _write_form(options, run, form)
            lists = solving.derive(run)
    except (RuntimeError, TypeError, AttributeError, KeyError, IndexError, NotImplementedError) as error:
        if options.debug:
            raise
        said = one_sentence(f"{type(error).__name__}: {error}")
        raise ValueError(f"{options.model} cannot be traced at a small shape of its family ({said})") from None
    if options.json:
        import json

        print(json.dumps([solving.as_json(found) for found in lists], indent=2))
    else:
        print(solving.report(run, lists))
    return 1 if any(found.unsolved for found in lists) else 0


def _new_form(options: argparse.Namespace, run: Run) -> str:
    """The name of the layer form to write; ValueError, before anything is traced, where it could not be used."""
    from ..presets.catalogue import load_presets
    from ..presets.config import read_config

    if options.job != "lora" or options.json:
        other = "--json" if options.json else f"--job {options.job}"
        raise ValueError(f"--write is given with {other}; a layer form is of LoRA, and a TOML file")
    if options.write.exists():
        raise ValueError(f"--write is {str(options.write)!r}, which is there already; name a new file")
    if not options.write.absolute().parent.is_dir():
        raise ValueError(f"--write is {str(options.write)!r}, whose folder is not there; make it first")
    model = read_config(run["config"] or model_folder(run["base_model"]))
    if model.why_not or not model.layer_form:
        why = model.why_not or "its family is not described"
        raise ValueError(f"{options.model} cannot be sized with a layer form either: {why}")
    if model.layer_form in load_presets().forms:
        raise ValueError(f"{options.model} is of layer form {model.layer_form}, which the catalogue has already")
    return model.layer_form


def _write_form(options: argparse.Namespace, run: Run, name: str) -> int:
    """Derive the layer form and write it; what was done, in a line."""
    from .layer_form import as_toml, form_of

    text = as_toml(name, form_of(run))
    try:
        options.write.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"--write is {str(options.write)!r}, which cannot be written: {error.strerror}") from None
    print(f"{options.write}: the layer form {name}, traced. Use it with --layer-forms {options.write}.")
    return 0

"""Speed, as ratios that one run measures side by side: `python -m benchmarks` or `python build.py benchmark`.

measure        timing: repeated, alternating, medians
workbooks      the workbooks against bare openpyxl writing the same cells
many_jobs      a million jobs against the same arithmetic written by hand in NumPy
bulk           a table of a million jobs by the command sweep, CSV to CSV
one_job        jobs a second, one at a time
start_up       the import and the first answer on a command line
scenarios      a workbook with every row of Scenarios in use, recalculated
lambda_names   functions of the workbook itself, in an engine that runs them
desktop_excel  functions through the conversion of xlwings
service        the add-in's service, a batch of distinct jobs against one of look-ups
proof          a training step traced without a GPU, a sweep's figures written into a workbook

Needs a checkout with the extras "vector" (NumPy) and "bulk". Processor time is what counts within this process, so that
other programs on the machine disturb little; starts of other processes are timed by the clock.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from .measure import Line, table


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and return 0; with --strict 1 when a target is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Ratios of speed, measured in one run.")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument("--jobs", type=int, default=1_000_000, metavar="N", help="jobs in the vectorised call")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="how often each pair is measured")
    parser.add_argument("--only", choices=list(_parts(1, 1)), help="measure one part alone")
    options = parser.parse_args(arguments)
    if options.jobs < 1 or options.repeats < 1:
        parser.error("--jobs and --repeats must be 1 or more")
    parts = _parts(options.jobs, options.repeats)
    lines: list[Line] = []
    for name in [options.only] if options.only else parts:
        print(f"measuring {name.replace('_', ' ')} ...", flush=True)
        lines += parts[name]()
    print(table(lines))
    return 1 if options.strict and not all(line.met for line in lines) else 0


def _parts(jobs: int, repeats: int) -> dict[str, Callable[[], list[Line]]]:
    from . import bulk, desktop_excel, lambda_names, many_jobs, one_job, proof, scenarios, service, start_up, workbooks

    return {
        "start_up": lambda: start_up.lines(repeats),
        "one_job": lambda: one_job.lines(repeats),
        "many_jobs": lambda: many_jobs.lines(jobs, repeats),
        "bulk": lambda: bulk.lines(jobs),
        "workbooks": lambda: workbooks.lines(repeats),
        "scenarios": lambda: scenarios.lines(repeats),
        "lambda_names": lambda: lambda_names.lines(repeats),
        "desktop_excel": lambda: desktop_excel.lines(repeats),
        "service": lambda: service.lines(repeats),
        "proof": lambda: proof.lines(repeats),
    }

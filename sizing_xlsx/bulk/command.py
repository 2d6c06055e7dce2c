"""`sizing-xlsx sweep`: a CSV or Parquet file of jobs -> a file of their results."""

from __future__ import annotations

import argparse
import pickle
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import own_options
from ..presets.catalogue import Presets
from ..presets.names import counted, one_line

TOLD = 10  # arguments that the summary tells of
HELP = """\
A row of the table is a job. Its columns are inputs, called as in Python (base_model, gpu_choice, batch_size, ...); an
empty cell takes the worked job's value. Two more columns may be there: job (lora, training or full) and id, which is
handed on. The result has the row's number from 1, its id and job, the results, and in its column error what is wrong
with a row that is refused. Exit status: 0 every row is sized, 1 some rows are refused, 2 nothing is written.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.description = "Size millions of jobs from a CSV or a Parquet file."
    parser.epilog = HELP
    parser.add_argument("table", type=Path, metavar="JOBS", help="a .csv in UTF-8, or a .parquet")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="RESULT",
        help="where to, .csv or .parquet; beside JOBS, as JOBS-sized, without it",
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument("--job", default="lora", metavar="NAME", help="of rows that name none: lora, training or full")
    parser.add_argument(
        "--results", metavar="NAME,...", help="which terms; by default verdict, peak, total, headroom, hours and rent"
    )
    parser.add_argument("--workers", type=_count, metavar="N", help="processes; by default one a processor")
    places = parser.add_mutually_exclusive_group()
    places.add_argument("--ray", metavar="ADDRESS", help="size on this Ray cluster: auto, HOST:6379, ray://HOST:10001")
    places.add_argument("--dask", metavar="ADDRESS", help="size on this Dask cluster: HOST:8786")
    own_options.add(parser)
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 1024):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes; it must be 1 to 1,024")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Size the table; 1 where rows were refused."""
    from .answer import need

    for package in ("numpy", "pandas", "msgspec"):
        need(package, "sweep")
    with ended_by_signals():
        return _sweep(options)


def _sweep(options: argparse.Namespace) -> int:
    from . import answer
    from .blocks import kind_of, open_table
    from .layout import Layout
    from .work import Refused, Work, add

    source: Path = options.table
    kind_of(source)
    if source.is_dir():
        raise ValueError(f"{one_line(str(source))} is a folder; name a .csv or .parquet file")
    output = options.output or source.with_name(f"{source.stem}-sized{source.suffix}")
    results = None if options.results is None else [name.strip() for name in options.results.split(",") if name.strip()]
    with source.open("rb") as file:
        to_parquet = kind_of(output) == ".parquet"
        answer.refuse_output(output, source, options.force)
        header, blocks, read = open_table(source, file)
        layout = Layout.of(header, one_line(str(source)), options.job, results)
        schema = answer.schema_of(layout, read) if to_parquet else None
        work = pickle.dumps(Work(layout, _own(options), schema))
        rows, refused = 0, dict[str, Refused]()
        with answer.draft_of(output) as draft, answer.writer(draft, layout, schema) as write:
            for part in _parts(options, work, blocks):
                write(part.data)
                rows += part.rows
                for argument, more in part.refused.items():
                    add(refused, argument, more)
    print("\n".join(_summary(rows, refused, output)), file=sys.stderr)
    return 1 if refused else 0


def _own(options: argparse.Namespace) -> Presets | None:
    return own_options.presets(options) if options.model or options.gpu or options.layer_forms else None


def _parts(options: argparse.Namespace, work: bytes, blocks: Any) -> Iterator[Any]:
    from . import places

    if options.ray is None and options.dask is None:
        yield from places.here(work, blocks, options.workers or places.processors())
        return
    cluster = places.ray_cluster(work, options.ray) if options.dask is None else places.dask_cluster(work, options.dask)
    with cluster as place:
        yield from places.in_order(place, blocks)


def _summary(rows: int, refused: Any, output: Path) -> Iterator[str]:
    count = sum(one.rows for one in refused.values())
    yield (f"{counted(rows, 'job')}: {rows - count:,} sized, {count:,} refused; the result is {one_line(str(output))}")
    most = sorted(refused.values(), key=lambda one: -one.rows)
    for one in most[:TOLD]:
        rest = f" ({one.rows - 1:,} more for the same argument)" if one.rows > 1 else ""
        yield f"  row {one.first:,}: {one_line(one.why)}{rest}"
    if len(most) > TOLD:
        others = sum(one.rows for one in most[TOLD:])
        yield f"  and {others:,} more for {len(most) - TOLD} other arguments; the column error tells of each"


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM end the command as Ctrl-C does, so that no draft and no process stays behind."""

    def end(*_: Any) -> None:
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

"""`sizing-xlsx catalogue`: what can be chosen, as a table to read, as CSV or as JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import own_options
from .output import printed

if TYPE_CHECKING:
    from .presets.catalogue import Presets
    from .presets.config import Architecture

Rows = list[dict[str, Any]]
LISTS = ("models", "gpus", "formats")
# What the table to read shows: heading, then the column or a function of the row. Numbers stand to the right.
COLUMNS: dict[str, tuple[tuple[str, str | Callable[[Mapping[str, Any]], Any]], ...]] = {
    "models": (
        ("Model", "name"),
        ("Family", "family"),
        ("Parameters", "parameters_total"),
        ("Layers", "layer_count"),
        ("Hidden size", "hidden_size"),
        ("Offered", lambda row: "yes" if row["offered"] else f"no: {row['why_not']}"),
        ("Own", "own"),
    ),
    "gpus": (
        ("Card", "name"),
        ("Label GB", "marketed_gb"),
        ("Usable GB", lambda row: None if row["usable_bytes"] is None else round(row["usable_bytes"] / 10**9, 2)),
        ("Usable MiB", lambda row: None if row["usable_bytes"] is None else row["usable_bytes"] // 2**20),
        ("GB/s", "bandwidth_gb_per_s"),
        ("16-bit TFLOP/s", "bf16_dense_tflops"),
        ("USD/hour", "price_usd_per_hour"),
    ),
    "formats": (
        ("Storage format", "name"),
        ("Bytes/parameter", "bytes_per_parameter"),
        ("Offered", lambda row: "yes" if row["offered"] else f"no: {row['why_not']}"),
    ),
}
CSV_WITHOUT_A_LIST = "--csv writes one list; name it: models, gpus or formats"


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.description = "List the models, cards and storage formats that can be chosen, with what is known of them."
    parser.add_argument("list", nargs="?", choices=LISTS, help="only this one")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--csv", action="store_true", help="one list as CSV (RFC 4180) with every column")
    shape.add_argument("--json", action="store_true", help="an object with a list of rows for each list")
    parser.add_argument("--presets", type=Path, metavar="DIR", help="an own copy of the presets folder")
    own_options.add(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the lists; ValueError where CSV is asked for and no list is named."""
    if options.csv and not options.list:
        raise ValueError(CSV_WITHOUT_A_LIST)
    lists = rows_of(own_options.presets(options, options.presets))
    chosen = {name: rows for name, rows in lists.items() if options.list in (None, name)}
    if options.csv:
        text = csv_text(chosen[options.list])
    elif options.json:
        import json

        text = json.dumps(chosen, indent=2, ensure_ascii=False) + "\n"
    else:
        text = "\n".join(table_text(rows, COLUMNS[name]) for name, rows in chosen.items())
    _print(text)
    return 0


def rows_of(presets: Presets) -> dict[str, Rows]:
    """Every row of each list, with the columns that its data file or its architecture has; unknown is None or ""."""
    from .presets.catalogue import GPUS, STORAGE_FORMATS
    from .presets.config import UNITS

    own = {row.name: row.file for row in presets.own if row.table == "models"}
    sources = {row["model"]: row["shape_source"] for row in presets.model_sources}
    models = [
        {
            "name": model.name,
            "offered": model.name.casefold() in presets.models.index,
            "own": own.get(model.name, ""),
            "family": model.family,
            "layer_form": model.layer_form,
            "why_not": model.why_not,
            **_parameters(model),
            **{field: getattr(model, field) for field in UNITS if field != "layer_form"},
            "assumed": list(model.assumed),
            "source": f"own: {own[model.name]}, as entered" if model.name in own else sources.get(model.name, ""),
        }
        for model in (*presets.sized_models, *presets.unsized_models)
    ]
    formats = [{column: row[column] for column in STORAGE_FORMATS} for row in presets.storage_rows]
    return {
        "models": models,
        "gpus": [{column: row[column] for column in GPUS} for row in presets.gpu_rows],
        "formats": [row | {"offered": bool(row["offered"])} for row in formats],
    }


def _parameters(model: Architecture) -> dict[str, int | None]:
    """Parameters in all and at work for a token; None where the family is not described."""
    from .memory.decoder.counts import counts

    try:
        found = counts(model, ("base_parameter_count", "active_parameters"))
    except ValueError:
        found = {}
    keys = {"parameters_total": "base_parameter_count", "parameters_active": "active_parameters"}
    return {key: int(found[term]) if term in found else None for key, term in keys.items()}


def csv_text(rows: Rows) -> str:
    """Rows as RFC 4180 says: a line of headers, CRLF line ends, quotes where needed; what is unknown is empty."""
    import csv
    import io

    with io.StringIO(newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(rows[0])
        writer.writerows([_cell(value) for value in row.values()] for row in rows)
        return file.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(value) if isinstance(value, list) else value


def table_text(rows: Rows, columns: Sequence[tuple[str, str | Callable[[Mapping[str, Any]], Any]]]) -> str:
    """Rows as a table to read; unknown is a dash, and a column that no row fills is left out."""
    shown = []
    for heading, of in columns:
        values = [row[of] if isinstance(of, str) else of(row) for row in rows]
        if any(value not in (None, "") for value in values):
            number = all(value is None or isinstance(value, int | float) for value in values)
            texts = [
                heading,
                *("–" if value in (None, "") else f"{value:,}" if number else str(value) for value in values),
            ]
            width = max(map(len, texts))
            shown.append([text.rjust(width) if number else text.ljust(width) for text in texts])
    lines = ["  ".join(cells).rstrip() for cells in zip(*shown, strict=True)]
    return "\n".join((lines[0], "-" * max(map(len, lines[:1])), *lines[1:])) + "\n"


def _print(text: str) -> None:
    """To standard output as it is: CSV keeps its line ends on Windows."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(newline="", encoding="utf-8")
    printed(text, end="")

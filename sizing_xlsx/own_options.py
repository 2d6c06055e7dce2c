"""--model, --gpu, --layer-forms: a planner's own rows, for every command that reads the catalogue."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .presets.catalogue import Presets


def add(parser: argparse.ArgumentParser) -> None:
    """The three options, each of which may be repeated."""
    parser.add_argument(
        "--model",
        type=Path,
        nargs="+",
        action="extend",
        metavar="PATH",
        help="models of your own: config.json files, folders with one, or folders of such",
    )
    parser.add_argument(
        "--gpu",
        type=Path,
        action="append",
        metavar="FILE",
        help="cards of your own: a CSV with the headers name and usable_gib (or usable_gb), or a TOML",
    )
    parser.add_argument(
        "--layer-forms",
        type=Path,
        action="append",
        metavar="FILE",
        help="layer forms of your own, for models of a family that has none: what derive --write makes",
    )


def presets(options: argparse.Namespace, folder: Path | None = None) -> Presets:
    """The catalogue with them; a model that cannot be sized, or is quantised, is told in a line on standard error."""
    from .presets.catalogue import load_presets, published_format

    found = load_presets(
        folder, models=options.model or (), gpus=options.gpu or (), layer_forms=options.layer_forms or ()
    )
    for row in found.own:
        if row.why_not:
            print(f"sizing-xlsx: {row.name} ({row.file}) is not offered: {row.why_not}.", file=sys.stderr)
    own = {row.name: row.file for row in found.own if row.table == "models"}
    for model in found.sized_models:
        if model.name in own and model.quantisation:
            stored = published_format(model, found.storage_formats)
            which = f"its storage format is {stored}" if stored else "no storage format here is that of these weights"
            words = f"{model.name} ({own[model.name]}) is published quantised ({model.quantisation.words}): {which}"
            print(f"sizing-xlsx: {words}.", file=sys.stderr)
    return found

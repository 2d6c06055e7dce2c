"""--model and --gpu: a planner's own models and cards, for every command that reads the catalogue."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .presets.catalogue import Presets


def add(parser: argparse.ArgumentParser) -> None:
    """The two options, each of which may be repeated."""
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


def presets(options: argparse.Namespace, folder: Path | None = None) -> Presets:
    """The catalogue with them; each model that cannot be sized is told in a line on standard error."""
    from .presets.catalogue import load_presets

    found = load_presets(folder, models=options.model or (), gpus=options.gpu or ())
    for row in found.own:
        if row.why_not:
            print(f"sizing-xlsx: {row.name} ({row.file}) is not offered: {row.why_not}.", file=sys.stderr)
    return found

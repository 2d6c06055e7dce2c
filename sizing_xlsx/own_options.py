"""--model, --gpu, --layer-forms: a planner's own rows, for every command that reads the catalogue."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .presets.catalogue import Presets


def add(parser: argparse.ArgumentParser) -> None:
    """The options: three that may be repeated, and one that holds tracing back."""
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
    add_forms(parser)


def add_forms(parser: argparse.ArgumentParser) -> None:
    """The options about models of a family that has no layer form."""
    parser.add_argument(
        "--layer-forms",
        type=Path,
        action="append",
        metavar="FILE",
        help="layer forms of your own, for models of a family that has none: what derive --write makes",
    )
    parser.add_argument(
        "--no-derive",
        action="store_true",
        help="leave models of a family that has no layer form unsized; else it is traced, in about a minute",
    )


def presets(options: argparse.Namespace, folder: Path | None = None) -> Presets:
    """The catalogue with them, and with layer forms for models that lack one; see told()."""
    return told(completed(given(options, folder), options))


def given(options: argparse.Namespace, folder: Path | None = None) -> Presets:
    """The catalogue with the files that are named."""
    from .presets.catalogue import load_presets

    return load_presets(
        folder, models=options.model or (), gpus=options.gpu or (), layer_forms=options.layer_forms or ()
    )


def completed(found: Presets, options: argparse.Namespace) -> Presets:
    """The same with derived layer forms for own models that lack one, where that is wanted and possible here."""
    lacking = {row.name for row in found.own if row.why_not}
    if options.no_derive or not any(model.layer_form and model.name in lacking for model in found.unsized_models):
        return found
    from .measure.own_forms import can_derive, with_derived

    return with_derived(found, partial(print, file=sys.stderr, flush=True)) if can_derive() else found


def told(found: Presets) -> Presets:
    """The same; a model that cannot be sized, or is quantised, is told in a line on standard error."""
    from .presets.catalogue import published_format

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

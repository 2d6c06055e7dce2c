"""Models, cards and layer forms that were added at an earlier build, read again out of the workbook."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...presets.own import with_own
from .record import LAYER_FORMS, OwnFile

if TYPE_CHECKING:
    from ...presets.catalogue import Presets


def with_kept(presets: Presets, files: Iterable[OwnFile]) -> tuple[Presets, list[str], list[str]]:
    """The presets with files that were given at an earlier build; what gave way; and what can no longer be read.

    A file that is given now, and a row of the catalogue, win over a kept row of the same name.
    """
    given = {(own.table, own.file): own.content for own in presets.own}
    gave_way: list[str] = []
    refused: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sizing-xlsx-") as folder:
        for at, kept in enumerate(sorted(dict.fromkeys(files), key=_forms_first)):
            known = given.get((kept.kind, kept.file))
            if known is not None:
                if known != kept.text:
                    gave_way.append(f"{kept.file}: the file that was given now is used, not the one in the workbook")
                continue
            path = Path(folder, str(at), *_safe(kept.file))
            path.parent.mkdir(parents=True)
            path.write_text(kept.text, encoding="utf-8", newline="")
            source = path.parent if path.name == "config.json" else path
            skipped: list[str] = []
            try:
                presets = with_own(presets, **{kept.kind: [source]}, skipped=skipped, unknown="build")
            except ValueError as error:
                refused.append(f"{kept.file}: {str(error).replace(str(path.parent), '').lstrip('/: ')}")
            gave_way += [
                f"{name} of {kept.file}: the one of the same name that is known now is used" for name in skipped
            ]
    return presets, gave_way, refused


def _forms_first(file: OwnFile) -> bool:
    """Layer forms before the models that are sized with them."""
    return file.kind != LAYER_FORMS


def _safe(file: str) -> list[str]:
    """The folders and the name of a file, none of which leads anywhere else."""
    parts = [part for part in file.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return parts[-2:] or ["file"]

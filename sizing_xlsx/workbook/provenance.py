"""What a workbook was made from: the version, the date of the data, hashes of formulas and presets, own files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import __version__
from ..formula.render import sheet_formula
from .template import read_toml
from .words import filled

if TYPE_CHECKING:
    from ..formula.job import Job
    from ..presets.catalogue import Presets

SHOWN_FILES = 5  # of a planner's own, by name


class Provenance(NamedTuple):
    """What a workbook was made from, in the words of its template. own: files of own models and cards, "" for none."""

    program: str
    data: str
    formulas: str
    presets: str
    own: str = ""

    def lines(self, words: Mapping[str, str]) -> dict[str, str]:
        """What Notes and the document's properties say. words: the table provenance of book.toml."""
        found = {
            words["version"]: self.program,
            words["data"]: self.data,
            words["formulas"]: filled(words["formulas_of"], hash=self.formulas),
            words["presets"]: filled(words["presets_of"], hash=self.presets),
        }
        return {**found, words["own"]: self.own} if self.own else found


def provenance_of(job: Job, presets: Presets, folder: Path, data_date: str, words: Mapping[str, str]) -> Provenance:
    """The provenance of a job's workbook. folder: of the presets. words: the table provenance of book.toml."""
    return Provenance(
        program=f"sizing_xlsx {__version__}",  # read again by later versions: no words
        data=filled(words["data_of"], date=data_date),
        formulas=filled(words["hash"], digest=formula_hash(job)),
        presets=filled(words["hash"], digest=data_hash(folder)),
        own=own_files(presets, words) if presets.own else "",
    )


def data_date(folder: Path) -> date:
    """The date of the presets in a folder. Raises ValueError where its release.toml has none."""
    path = folder / "release.toml"
    found = read_toml(path).get("data_date")
    if not isinstance(found, date):
        raise ValueError(f"{path}: data_date is {found!r}; it must be a date such as 2026-08-17")
    return found


def spoken(day: date, words: Mapping[str, Any]) -> str:
    """A date in words. words: book.toml."""
    return filled(words["date"], day=str(day.day), month=words["months"][day.month - 1], year=str(day.year))


def formula_hash(job: Job) -> str:
    """A short hash of every formula and constant of a job."""
    digest = hashlib.sha256()
    for key in job.order:
        digest.update(f"{key}{sheet_formula(job.trees[key])}\n".encode())
    for key, constant in job.constants.items():
        digest.update(f"{key}={constant.value!r}\n".encode())
    return digest.hexdigest()[:12]


def data_hash(folder: Path) -> str:
    """A short hash of the names and contents of every preset file."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix in (".csv", ".toml", ".json"):
            digest.update(str(file.relative_to(folder)).replace(os.sep, "/").encode())
            digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:12]


def own_files(presets: Presets, words: Mapping[str, str]) -> str:
    """The files that a planner's own models and cards come from, each with a hash of its content."""
    rows: dict[tuple[str, str], list[str]] = {}
    for row in presets.own:
        rows.setdefault((row.file, row.digest), []).append(row.name)
    files = [
        filled(
            words["own_file"],
            file=file,
            digest=digest,
            what=names[0] if len(names) == 1 else filled(words["own_rows"], count=str(len(names))),
        )
        for (file, digest), names in rows.items()
    ]
    shown = files[:SHOWN_FILES]
    if more := len(files) - len(shown):
        shown.append(filled(words["more_files"], count=str(more)))
    return "; ".join(shown)

"""The CSV of results: one row per run and backend, kept whole at every moment."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..presets.names import one_line
from ..workbook.own_runs import RESULTS_FILE
from . import results
from .run import SETTINGS, Run, input_names

NAME = RESULTS_FILE  # what build.py looks for beside the workbooks
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


def columns() -> tuple[str, ...]:
    """The columns of the file: a run's name, what came out, then every field of every job."""
    inputs = dict.fromkeys(name for job in ("lora", "full", "training") for name in input_names(job))
    return ("id", "job", *results.COLUMNS, *inputs, *SETTINGS)


class ResultFile:
    """Results on disk. Each new row replaces the file at one stroke; rows that others wrote stay."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[tuple[str, str, str], dict[str, str]] = {}
        if path.exists():
            self._read()
        elif not path.parent.is_dir():
            raise ValueError(f"{one_line(str(path))} is in a folder that does not exist; make it, or name another")
        if not os.access(path.parent, os.W_OK):
            raise ValueError(f"{one_line(str(path))} is in a folder that may not be written to; name another")

    def _read(self) -> None:
        where = one_line(str(self.path))
        try:
            text = self.path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(f"{where} is not UTF-8 text; name another file for the results") from None
        reader = csv.DictReader(io.StringIO(text, newline=""))
        try:
            self._take(reader, where)
        except csv.Error as error:
            raise ValueError(f"{where} is not CSV: {error}; name another file for the results") from None

    def _take(self, reader: csv.DictReader[str], where: str) -> None:
        header = list(reader.fieldnames or ())
        if header and not {"id", "backend", "outcome"} <= set(header):
            raise ValueError(
                f"{where} is no file of results: it has no columns id, backend and outcome; name another file"
            )
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(f"{where}, line {reader.line_num} has not one cell for each column; name another file")
            self.rows[_name(row["id"]), row.get("job", ""), row["backend"]] = dict(row)

    def finished(self, run: Run, backend: str) -> dict[str, str] | None:
        """The row of the same run, if it is there and finished: same name, same fields."""
        row = self.rows.get((_name(run.id), run.job, backend))
        if row is None or row.get("outcome") not in ("ok", "oom"):
            return None
        same = all((row.get(key) or "") == text(value) for key, value in run.as_row().items())
        return row if same else None

    def put(self, run: Run, row: Mapping[str, Any]) -> None:
        """Add a row, in place of an older one of the same job, id and backend, and write the file."""
        full = {**run.as_row(), **row}
        if self.path.exists():  # another command may have written since
            self._read()
        self.rows.pop((_name(run.id), "", row["backend"]), None)  # one that others wrote, without a job
        self.rows[_name(run.id), run.job, row["backend"]] = {key: text(full.get(key)) for key in columns()}
        self.write()

    def sort(self, runs: Sequence[Run]) -> None:
        """Put the rows of these runs in their order, after all others, and write the file."""
        order = {(_name(run.id), run.job): at for at, run in enumerate(runs, 1)}
        self.rows = dict(sorted(self.rows.items(), key=lambda item: order.get(item[0][:2], 0)))
        self.write()

    def write(self) -> None:
        """Write the file beside itself, then put it in its place."""
        header = list(dict.fromkeys([*columns(), *(key for row in self.rows.values() for key in row)]))
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.new")
        try:
            with draft.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, header, restval="", lineterminator="\n")
                writer.writeheader()
                writer.writerows(self.rows.values())
            os.replace(draft, self.path)
        finally:
            draft.unlink(missing_ok=True)


def _name(id: str) -> str:
    """What a row is known by: its id as the file holds it, without regard to case."""
    return text(id).casefold()


def text(value: Any) -> str:
    """A value as the file holds it: nothing for None; a text never begins as a formula does."""
    if value is None:
        return ""
    if isinstance(value, str):
        line = " ".join(value.split())
        return f"'{line}" if line.startswith(FORMULA_SIGNS) else line
    return str(value)

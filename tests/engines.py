"""Three independent spreadsheet engines behind one small interface, so that tests run a workbook in each.

Formualizer and IronCalc run in this process and take about a millisecond per input set. LibreOffice runs
headless as one long-lived process, driven over a named pipe by tests/libreoffice_server.py under the system's
own Python.

A target is a defined name ("Batch_Size") or a cell as (sheet, row, column), both counted from 1. A value is a
float, a text, a bool, None for a blank cell, or an ErrorValue. Sets take effect with recalculate().
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import openpyxl
from openpyxl.utils.cell import coordinate_to_tuple

Target = str | tuple[str, int, int]
Cell = tuple[str, int, int]


class ErrorValue(str):
    """An error in a cell, such as "#N/A"; a text cell that reads "#N/A" is a plain str."""

    __slots__ = ()


Value = float | str | bool | None


class Engine(Protocol):
    """A workbook, open in one engine."""

    def __init__(self, path: str | Path) -> None: ...

    def set(self, target: Target, value: float | str | bool | None) -> None:
        """Put a value into a cell; None makes it truly blank, and a text stays text even if it reads "12"."""

    def recalculate(self) -> None: ...

    def get(self, target: Target) -> Value: ...

    def get_many(self, targets: Sequence[Target]) -> list[Value]: ...

    def get_sheet(self, sheet: str) -> dict[tuple[int, int], Value]:
        """Every cell of a sheet that is not blank, as (row, column) -> value."""

    def close(self) -> None: ...


def close(a: object, b: object, relative: float = 1e-12) -> bool:
    """Whether two values of cells agree: numbers within a relative error, all else exactly.

    Below 0.01 the error is that of 0.01: LibreOffice calls 0 what is left of a difference of like numbers. A bool agrees with 1.0 or 0.0 too: LibreOffice has no booleans, only numbers that are shown as TRUE.
    """
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b or abs(a - b) <= relative * max(abs(a), abs(b), 0.01)
    if isinstance(a, str) and isinstance(b, str):
        return str(a) == str(b) and (isinstance(a, ErrorValue) == isinstance(b, ErrorValue))
    return a is None and b is None


# -- what is in the file, read once


class Contents(NamedTuple):
    """names: folded defined name -> cell. extents: sheet -> (last row, last column), in the book's order."""

    names: dict[str, Cell]
    extents: dict[str, tuple[int, int]]


def contents(path: str | Path) -> Contents:
    """The defined names and used areas of a workbook."""
    path = Path(path).resolve()
    return _contents(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _contents(path: Path, _modified: int) -> Contents:
    book = openpyxl.load_workbook(path, read_only=True)
    try:
        extents: dict[str, tuple[int, int]] = {}
        for sheet in book.worksheets:
            if sheet.max_row is None or sheet.max_column is None:  # no <dimension> in the file
                sheet.calculate_dimension(force=True)
            extents[sheet.title] = (sheet.max_row or 1, sheet.max_column or 1)
        names: dict[str, Cell] = {}
        for name, defined in book.defined_names.items():
            try:
                places = list(defined.destinations)
            except (TypeError, ValueError):
                continue  # a formula, not a reference
            if len(places) == 1 and ":" not in places[0][1]:
                sheet_name, reference = places[0]
                row, column = coordinate_to_tuple(reference.replace("$", ""))
                names[name.casefold()] = (sheet_name, row, column)
        return Contents(names, extents)
    finally:
        book.close()


class _Book:
    """What the three engines share: the path, the resolver of targets, and the context manager."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()
        self.names, extents = contents(self.path)
        self.extents = dict(extents)

    def cell(self, target: Target) -> Cell:
        """The cell that a target means; KeyError where the workbook has no such name or sheet."""
        if isinstance(target, str):
            try:
                return self.names[target.casefold()]
            except KeyError:
                raise KeyError(f"{target!r} is not a name for one cell in {self.path.name}") from None
        if target[0] not in self.extents:
            raise KeyError(f"{target[0]!r} is not a sheet of {self.path.name}; it has {', '.join(self.extents)}")
        return target

    def grow(self, cell: Cell) -> None:
        """Count a cell that is set as part of its sheet's used area."""
        rows, columns = self.extents[cell[0]]
        self.extents[cell[0]] = (max(rows, cell[1]), max(columns, cell[2]))

    def set_row(self, cell: Cell, values: Sequence[Value]) -> None:
        """Put values into cells side by side, the first into the given cell."""
        sheet, row, column = cell
        for at, value in enumerate(values):
            self.set((sheet, row, column + at), value)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Nothing to free."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# -- Formualizer


_FORMUALIZER_ERRORS = {
    "Na": "#N/A", "Div": "#DIV/0!", "Value": "#VALUE!", "Ref": "#REF!", "Name": "#NAME?", "Num": "#NUM!",
    "Null": "#NULL!",
}  # fmt: skip


def _from_formualizer(value: Any) -> Value:
    if isinstance(value, dict):
        kind = str(value.get("kind"))
        return ErrorValue(_FORMUALIZER_ERRORS.get(kind, f"#{kind.upper()}!"))
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value  # type: ignore[no-any-return]


class Formualizer(_Book):
    """The workbook in Formualizer."""

    def __init__(self, path: str | Path) -> None:
        import formualizer

        super().__init__(path)
        self._range = formualizer.RangeAddress
        self._book = formualizer.load_workbook(str(self.path))
        self.recalculate()

    def set(self, target: Target, value: float | str | bool | None) -> None:
        cell = self.cell(target)
        self.grow(cell)
        self._book.set_value(*cell, value)

    def set_row(self, cell: Cell, values: Sequence[Value]) -> None:
        self.grow((cell[0], cell[1], cell[2] + len(values) - 1))
        self._book.set_values_batch(*cell, [list(values)])  # one walk along the dependents, not one a cell

    def recalculate(self) -> None:
        self._book.evaluate_all()

    def get(self, target: Target) -> Value:
        return _from_formualizer(self._book.get_value(*self.cell(target)))

    def get_many(self, targets: Sequence[Target]) -> list[Value]:
        read = self._book.get_value
        return [_from_formualizer(read(*self.cell(target))) for target in targets]

    def get_sheet(self, sheet: str) -> dict[tuple[int, int], Value]:
        rows, columns = self.extents[self.cell((sheet, 1, 1))[0]]
        read = self._book.get_value
        found: dict[tuple[int, int], Value] = {}
        for row in range(1, rows + 1):
            for column in range(1, columns + 1):
                value = _from_formualizer(read(sheet, row, column))
                if value is not None:
                    found[row, column] = value
        return found


# -- IronCalc


class IronCalc(_Book):
    """The workbook in IronCalc."""

    def __init__(self, path: str | Path) -> None:
        import ironcalc

        super().__init__(path)
        self._error = ironcalc.CellType.ErrorValue
        self._model = ironcalc.load_from_xlsx(str(self.path), "en", "UTC", "en")
        self._sheets = {s["name"]: i for i, s in enumerate(self._model.get_worksheets_properties())}
        self.recalculate()

    def set(self, target: Target, value: float | str | bool | None) -> None:
        cell = self.cell(target)
        self.grow(cell)
        place = (self._sheets[cell[0]], cell[1], cell[2])
        # set_user_input() would read "007" as a number and "=1+1" as a formula, as if it were typed.
        if value is None:
            self._model.clear_cell_contents(*place)
        elif isinstance(value, bool):
            self._model.update_cell_with_bool(*place, value)
        elif isinstance(value, str):
            self._model.update_cell_with_text(*place, value)
        else:
            self._model.update_cell_with_number(*place, float(value))

    def recalculate(self) -> None:
        self._model.evaluate()

    def _read(self, sheet: int, row: int, column: int) -> Value:
        value: Value = self._model.get_cell_value(sheet, row, column)
        if isinstance(value, str) and value[:1] == "#" and self._model.get_cell_type(sheet, row, column) == self._error:
            return ErrorValue(value)
        return value

    def get(self, target: Target) -> Value:
        sheet, row, column = self.cell(target)
        return self._read(self._sheets[sheet], row, column)

    def get_many(self, targets: Sequence[Target]) -> list[Value]:
        return [self.get(target) for target in targets]

    def get_sheet(self, sheet: str) -> dict[tuple[int, int], Value]:
        self.cell((sheet, 1, 1))
        index = self._sheets[sheet]
        top, bottom, left, right = self._model.get_sheet_dimensions(index)
        found: dict[tuple[int, int], Value] = {}
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                value = self._read(index, row, column)
                if value is not None:
                    found[row, column] = value
        return found


# -- LibreOffice


LOOSE = 12  # cells of a box that are read for each that is wanted: a call costs more than some more cells
_SERVER = Path(__file__).with_name("libreoffice_server.py")


@lru_cache(maxsize=1)
def _programs() -> tuple[str, str]:
    """soffice.bin and a Python that has `uno`; RuntimeError with a reason where one is missing."""
    launcher = shutil.which("soffice") or shutil.which("libreoffice")
    if launcher is None:
        raise RuntimeError("LibreOffice is not installed (no soffice on the path)")
    folder = Path(launcher).resolve().parent
    office = folder / "soffice.bin"
    if not office.exists():
        raise RuntimeError(f"{folder} has no soffice.bin")
    for python in (folder / "python", Path("/usr/bin/python3"), Path(sys.executable)):
        if python.exists():
            answer = subprocess.run([python, "-c", "import uno"], capture_output=True, timeout=30, check=False)
            if answer.returncode == 0:
                return str(office), str(python)
    raise RuntimeError("no Python with LibreOffice's uno module (on Debian: the package python3-uno)")


def libreoffice_available() -> tuple[bool, str]:
    """Whether LibreOffice can be driven here, and why not where it cannot."""
    try:
        _programs()
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    return True, ""


class Server:
    """The client's end of one libreoffice_server.py; every question has a time limit, then all is killed."""

    def __init__(self) -> None:
        office, python = _programs()
        self._folder = tempfile.mkdtemp(prefix="sizing-office-")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        self._process = subprocess.Popen(
            [python, str(_SERVER), office, self._folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, encoding="utf-8",
            start_new_session=True,  # so that one signal to the group ends the server and its office
            env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON") and k != "VIRTUAL_ENV"},
        )  # fmt: skip
        self._answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._last = 0
        self._receive(0, 90)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, do: str, timeout: float = 60, **arguments: Any) -> Any:
        """Send one request and wait for its answer; RuntimeError where it fails or takes too long."""
        assert self._process.stdin is not None
        self._last += 1
        try:
            self._process.stdin.write(json.dumps({"id": self._last, "do": do, **arguments}) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            self.kill()
            raise RuntimeError(f"LibreOffice's server is gone: {self._tail() or error}") from error
        return self._receive(self._last, timeout)

    def _receive(self, number: int, timeout: float) -> Any:
        try:
            line = self._answers.get(timeout=timeout)
        except queue.Empty:
            self.kill()
            raise RuntimeError(f"LibreOffice did not answer within {timeout:g} seconds and was ended") from None
        if line is None:
            self.kill()
            raise RuntimeError(f"LibreOffice's server ended: {self._tail()}")
        message = json.loads(line)
        if message["id"] != number:
            self.kill()
            raise RuntimeError(f"LibreOffice's server answered {message['id']} to request {number}")
        if "error" in message:
            raise RuntimeError(f"LibreOffice: {message['error']}")
        return message["ok"]

    def _tail(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-600:]

    def stop(self) -> None:
        """End the server and its office; both are gone when this returns."""
        if self.alive:
            try:
                assert self._process.stdin is not None
                self._process.stdin.close()  # the server reads the end of its input and shuts down
                self._process.wait(12)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self.kill()

    def kill(self) -> None:
        """End the whole process group at once, and remove the profile."""
        if self.alive:  # the group's number is ours for as long as its leader has not been waited for
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


_shared: list[Server] = []  # at most one


def server() -> Server:
    """The one LibreOffice of this test run, started at its first use and ended with this process."""
    if not (_shared and _shared[0].alive):
        atexit.register(stop_libreoffice)
        _shared[:] = [Server()]
    return _shared[0]


def stop_libreoffice() -> None:
    """End the shared LibreOffice, if one runs; a later use starts a new one."""
    for running in _shared:
        running.stop()
    _shared.clear()


def _from_office(value: Any) -> Value:
    if isinstance(value, dict):
        return ErrorValue(value["error"])
    return value  # type: ignore[no-any-return]


class LibreOffice(_Book):
    """The workbook in LibreOffice. Booleans come back as 1.0 and 0.0: it has no other."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._server = server()
        self._document: int | None = self._server.ask("open", path=str(self.path))["document"]
        self._waiting: list[list[Any]] = []

    def set(self, target: Target, value: float | str | bool | None) -> None:
        cell = self.cell(target)
        self.grow(cell)
        self._waiting.append([*cell, value])  # sent with recalculate(): one message per input set

    def recalculate(self) -> None:
        self._server.ask("calculate", document=self._document, cells=self._waiting)
        self._waiting = []

    def get(self, target: Target) -> Value:
        return self.get_many([target])[0]

    def get_many(self, targets: Sequence[Target]) -> list[Value]:
        cells = [self.cell(target) for target in targets]
        areas = _areas(cells)
        found: dict[Cell, Value] = {}
        for area, rows in zip(areas, self._server.ask("read", document=self._document, areas=areas), strict=True):
            sheet, top, left, _, _ = area
            for r, row in enumerate(rows):
                for c, value in enumerate(row):
                    found[sheet, top + r, left + c] = _from_office(value)
        return [found[cell] for cell in cells]

    def get_sheet(self, sheet: str) -> dict[tuple[int, int], Value]:
        self.cell((sheet, 1, 1))
        rows = self._server.ask("sheet", document=self._document, name=sheet)["values"]
        return {
            (r, c): _from_office(value)
            for r, row in enumerate(rows, 1)
            for c, value in enumerate(row, 1)
            if value is not None
        }

    def close(self) -> None:
        if self._document is not None and self._server.alive:
            self._server.ask("close", document=self._document)
        self._document = None


def _areas(cells: Iterable[Cell], gap: int = 40) -> list[tuple[str, int, int, int, int]]:
    """Few boxes (sheet, top, left, bottom, right) that cover the cells.

    One box for the cells of a sheet that lie close; runs down columns, with gaps filled, for scattered ones.
    """
    sheets: dict[str, list[tuple[int, int]]] = {}
    for sheet, row, column in cells:
        sheets.setdefault(sheet, []).append((column, row))
    areas: list[tuple[str, int, int, int, int]] = []
    for sheet, places in sheets.items():
        columns, rows = zip(*places, strict=True)
        top, left, bottom, right = min(rows), min(columns), max(rows), max(columns)
        if (bottom - top + 1) * (right - left + 1) <= LOOSE * len(places):
            areas.append((sheet, top, left, bottom, right))
            continue
        for column, row in sorted(places):
            last = areas[-1] if areas else None
            if last and last[0] == sheet and last[2] == column and row - last[3] <= gap:
                areas[-1] = (sheet, last[1], column, row, column)
            else:
                areas.append((sheet, row, column, row, column))
    return areas


ENGINES: dict[str, type[Formualizer] | type[IronCalc] | type[LibreOffice]] = {
    "formualizer": Formualizer,
    "ironcalc": IronCalc,
    "libreoffice": LibreOffice,
}


def engine_parameters(*names: str) -> list[Any]:
    """The engine classes, or those named, as pytest parameters; LibreOffice is skipped with the reason if missing."""
    import pytest

    ready, reason = libreoffice_available()
    skip = [] if ready else [pytest.mark.skip(reason=reason)]
    chosen = names or tuple(ENGINES)
    return [pytest.param(ENGINES[n], id=n, marks=skip if n == "libreoffice" else []) for n in chosen]


# -- pictures


def to_pdf(workbook: str | Path, folder: str | Path) -> Path:
    """Print a workbook with LibreOffice, everything calculated first; the PDF is named as the workbook."""
    workbook, target = Path(workbook).resolve(), Path(folder).resolve() / (Path(workbook).stem + ".pdf")
    target.parent.mkdir(parents=True, exist_ok=True)
    server().ask("pdf", timeout=120, path=str(workbook), target=str(target))
    return target


def saved_by_libreoffice(
    workbook: str | Path, target: str | Path, inserted: Sequence[tuple[str, int, int]] = ()
) -> Path:
    """A workbook as LibreOffice saves it: every part is its own.

    inserted: rows that are put in first: sheet, the row before which, how many.
    """
    target = Path(target).resolve()
    rows = [list(place) for place in inserted]
    server().ask("save", timeout=240, path=str(Path(workbook).resolve()), target=str(target), inserted=rows)
    return target


def to_png(pdf: str | Path, folder: str | Path, dpi: int = 80) -> list[Path]:
    """One picture per page of a PDF, in page order, made by pdftoppm."""
    pdf, folder = Path(pdf), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    prefix = folder / pdf.stem
    for old in folder.glob(f"{pdf.stem}-*.png"):
        old.unlink()  # pictures of an earlier, longer print would look like pages of this one
    subprocess.run(["pdftoppm", "-r", str(dpi), "-png", str(pdf), str(prefix)], check=True, timeout=120)
    return sorted(folder.glob(f"{pdf.stem}-*.png"))

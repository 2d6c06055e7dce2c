"""Values into cells of a planner's own workbook, so that nothing else in the file changes.

    package = open_package("plan.xlsx")
    place = package.find_columns("Jobs", ["Model", "Batch"])["Batch"]
    package.write({("Jobs", place[0] + 1, place[1]): 32})

Rows and columns count from 0, as in XlsxWriter: ("Jobs", 4, 1) is B5 of sheet Jobs. What is wrong with a file or a
value raises ValueError, one sentence, and leaves the file as it was.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..presets.names import one_line
from . import live_excel
from .package import check_writable, find_workbook, open_elsewhere, owner_file, read_workbook
from .planner_file import Area, Place, PlannerFile
from .sheet_edit import SheetEdit, checked_value, spliced, with_attribute
from .sheet_part import CellValue, Value, read_tag, same

__all__ = [
    "Area", "CellValue", "Package", "Place", "Value", "WriteReport", "open_package", "write_into_open_excel",
]  # fmt: skip


class WriteReport(NamedTuple):
    """What a write did.

    backup_path: the copy of the file as it was, None where none was made. cells: how many cells hold another value
    than before. sheets: where they are. recalculated: whether the values that depend on them are up to date, as far
    as this program had a part in it; else they are once Excel opens the file. in_excel: the values went into the
    open workbook in Excel, unsaved, and not into the file.
    """

    backup_path: Path | None
    cells: int
    sheets: tuple[str, ...]
    recalculated: bool
    in_excel: bool = False


def open_package(path: str | os.PathLike[str], *, read_only: bool = False) -> Package:
    """Read a planner's .xlsx or .xlsm, and check first that it can be written later.

    read_only: do without the checks that only a write needs. Raises ValueError, one sentence that names the file,
    what it is and what would be right, for: nothing there, a folder, .xls, .xlsb, an encrypted or signed file, Strict
    Open XML, a file that is damaged, too large or no workbook; and unless read_only for a file or folder that is
    read-only, and for a workbook that another program has open and that cannot be reached in Excel.
    """
    given = Path(path)
    where = one_line(str(given))
    target = find_workbook(given, where)
    if not read_only:
        owner = _owner(given, target)
        check_writable(target, where, held=owner is not None)
        if owner and not live_excel.is_open(target):
            raise ValueError(open_elsewhere(where, owner))
    before = target.stat()
    return Package(given, target, before, read_workbook(target, where))


def write_into_open_excel(path: str | os.PathLike[str], cells: Mapping[Place, Value]) -> bool:
    """Put values into the workbook where Excel has it open; False where Excel, xlwings or the workbook is not there.

    One call for each block of neighbouring cells; a text stays text. Nothing is saved. Raises ValueError for what
    Package.write() refuses, for a workbook with changes that are not saved (the cells may have moved), and where Excel
    does not take the values.
    """
    target = Path(path).resolve()
    if not live_excel.is_open(target):
        return False
    package = open_package(path, read_only=True)
    return live_excel.put(target, package.checked(cells))


class Package(PlannerFile):
    """A workbook as it was when open_package() read it. Values of sheets are read when they are asked for."""

    def __init__(self, given: Path, path: Path, stat: os.stat_result, data: bytes) -> None:
        super().__init__(data, one_line(str(given)))
        self.path = path
        self._given, self._stat, self._data = given, stat, data

    def checked(self, cells: Mapping[Place, Value]) -> dict[Place, Value]:
        """The cells with their sheets' own names and values as a cell holds them.

        Raises ValueError for what may not be written: a formula or a member of an array, a hidden cell of a merge, a
        table's header or totals, a cell of a pivot table, a number that is not finite, a text that is too long or
        holds characters that a file cannot.
        """
        found: dict[Place, Value] = {}
        for (sheet, row, column), value in cells.items():
            name = self._known(sheet)
            self._check_place((name, row, column))
            what = f"{self._where}: cell {self._shown((name, row, column))}"
            if (name, row, column) in found:
                raise ValueError(f"{what} is named twice; it should get one value")
            reason = self._part(name).refusal(row, column) or self._claimed(name, row, column)
            if reason:
                raise ValueError(f"{what} {reason}")
            found[name, row, column] = checked_value(value, f"the value for {what}")
        return found

    def write(
        self,
        cells: Mapping[Place, Value],
        backup: bool = True,
        *,
        stale: Mapping[Place, Value] | None = None,
    ) -> WriteReport:
        """Put values into cells of the file; None empties a cell and keeps its style. All are written, or none.

        In the file only those cells change, the part's dimension where it must grow, and one calculation setting, so
        that Excel calculates everything when it opens the file. A new cell takes the style of its row or column, as in
        Excel; a text in several formats becomes plain. Programs that trust stored results show what stale
        gives for formula cells of the same sheets (None takes the stored result away), and for all other formula
        cells the results stored before. Cells that hold their value already are left as they are; where all do,
        nothing is written.

        The file is written beside the old one, read back and compared, and put in its place; backup keeps the old one
        as name.backup-YYYYMMDD-HHMMSS.xlsx. Of a link, the file it leads to is written. Where Excel has the workbook
        open, the values go into Excel instead, unsaved.

        Raises ValueError, with the file untouched, for what checked() refuses, a stale cell without a formula or on
        another sheet, a workbook that another program has open, one that has changed since it was read, and where the
        file cannot be written. After a write, open the package anew.
        """
        wanted = self.checked(cells)
        fresh = self._checked_stale(stale or {}, {sheet for sheet, _, _ in wanted})
        self._check_unchanged()
        if owner := _owner(self._given, self.path):
            if wanted and live_excel.put(self.path, wanted):
                sheets = tuple(dict.fromkeys(sheet for sheet, _, _ in wanted))
                return WriteReport(None, len(wanted), sheets, True, True)
            raise ValueError(open_elsewhere(self._where, owner))
        changed = {at: value for at, value in wanted.items() if not same(self.cell(*at).value, value)}
        fresh = {at: value for at, value in fresh.items() if not same(self.cell(*at).value, value)}
        if not changed and not fresh:
            return WriteReport(None, 0, (), bool(stale))
        check_writable(self.path, self._where)
        data = self._archive.replaced(self._changed_parts(changed, fresh))
        saved = self._put_in_place(data, {**changed, **fresh}, backup)
        sheets = tuple(name for name in self._parts if any(sheet == name for sheet, _, _ in {**changed, **fresh}))
        return WriteReport(saved, len(changed), sheets, bool(stale))

    def _checked_stale(self, stale: Mapping[Place, Value], sheets: set[str]) -> dict[Place, Value]:
        found: dict[Place, Value] = {}
        for (sheet, row, column), value in stale.items():
            name = self._known(sheet)
            self._check_place((name, row, column))
            what = f"{self._where}: the stale cell {self._shown((name, row, column))}"
            if name not in sheets:
                raise ValueError(f"{what} is on a sheet that gets no value; it should be on one that does")
            if not self.cell(name, row, column).formula:
                raise ValueError(f"{what} holds no formula; it should be a formula cell")
            found[name, row, column] = checked_value(value, f"the value for {what}")
        return found

    def _changed_parts(self, cells: Mapping[Place, Value], stale: Mapping[Place, Value]) -> dict[str, bytes]:
        parts: dict[str, bytes] = {}
        for name in dict.fromkeys(sheet for sheet, _, _ in [*cells, *stale]):
            parts[self._parts[name]] = SheetEdit(self._part(name)).patched(
                {(row, column): value for (sheet, row, column), value in cells.items() if sheet == name},
                {(row, column): value for (sheet, row, column), value in stale.items() if sheet == name},
            )
        data = self._archive.read(self._main)
        if (calculated := self._calculated_on_load(data)) != data:
            parts[self._main] = calculated
        return parts

    def _calculated_on_load(self, data: bytes) -> bytes:
        """The workbook part with the setting that makes Excel calculate everything when it opens the file."""
        if self._calc_pr >= 0:
            return spliced(data, with_attribute(read_tag(data, self._calc_pr), b"fullCalcOnLoad", b"1"))
        at = self._before_settings
        # The element before may be prefixed, and then this one must be too.
        name = read_tag(data, self._sheets_tag)[1]
        prefix = name[: name.rfind(b":") + 1]
        return spliced(data, [(at, at, b'<%scalcPr fullCalcOnLoad="1"/>' % prefix)])

    def _put_in_place(self, data: bytes, expected: Mapping[Place, Value], backup: bool) -> Path | None:
        """Write, compare, keep the old file and replace it; the backup's path, if there is one."""
        temporary: Path | None = None
        saved: Path | None = None
        done = False
        try:
            handle, name = tempfile.mkstemp(prefix=f".{self.path.stem[:40]}-", suffix=".tmp", dir=self.path.parent)
            temporary = Path(name)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                _to_disk(file)
            self._check_written(temporary, expected)
            _like(temporary, self._stat)
            if owner := _owner(self._given, self.path):
                raise ValueError(open_elsewhere(self._where, owner))
            if backup:
                saved = self._back_up()
            self._check_unchanged()
            os.replace(temporary, self.path)
            done = True
        except OSError as error:
            raise ValueError(
                f"{self._where} could not be written ({error.strerror or error}) and is as it was; "
                "close it in other programs and see that its folder has room"
            ) from error
        finally:
            if not done:
                for left in (temporary, saved):
                    if left is not None:
                        with contextlib.suppress(OSError):
                            left.unlink()
        with contextlib.suppress(OSError):
            _folder_to_disk(self.path.parent)
        return saved

    def _check_written(self, written: Path, expected: Mapping[Place, Value]) -> None:
        """Read the new file as any program would, and compare what it should hold."""
        data = written.read_bytes()
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                whole = archive.testzip() is None and archive.namelist() == self._archive.names()
        except (zipfile.BadZipFile, RuntimeError):
            whole = False
        again = Package(written, written, written.stat(), data)
        wrong = [at for at, value in expected.items() if not same(again.cell(*at).value, value)]
        if wrong or not whole:
            place = self._shown(wrong[0]) if wrong else "one of its parts"
            raise ValueError(
                f"{self._where} was not written: {place} would not read back as it should; please report this file"
            )

    def _check_unchanged(self) -> None:
        try:
            now = self.path.stat()
            unchanged = (now.st_size, now.st_mtime_ns) == (self._stat.st_size, self._stat.st_mtime_ns)
            unchanged = unchanged and self.path.read_bytes() == self._data
        except OSError:
            unchanged = False
        if not unchanged:
            raise ValueError(f"{self._where} has changed since it was read; open it anew and write again")

    def _back_up(self) -> Path:
        """A copy of the file as it was, under a name that was free."""
        stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        for number in range(1, 1000):
            tail = f"-{number}" if number > 1 else ""
            backup = self.path.with_name(f"{self.path.stem}.backup-{stamp}{tail}{self.path.suffix}")
            try:
                file = backup.open("xb")
            except FileExistsError:
                continue
            try:
                with file:
                    file.write(self._data)
                    _to_disk(file)
                _like(backup, self._stat)
            except BaseException:
                with contextlib.suppress(OSError):
                    backup.unlink()
                raise
            return backup
        raise ValueError(f"{self._where} has 999 backups of this second; move some away")


def _owner(given: Path, target: Path) -> Path | None:
    return owner_file(target) or owner_file(given.absolute())


def _to_disk(file: io.BufferedWriter) -> None:
    file.flush()
    os.fsync(file.fileno())


def _folder_to_disk(folder: Path) -> None:
    """Make a new name in a folder last through a loss of power, where the system can."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _like(path: Path, stat: os.stat_result) -> None:
    """Give a new file the mode bits and, where allowed, the owner of the old one."""
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(path, stat.st_uid, stat.st_gid)
    os.chmod(path, stat.st_mode & 0o7777)

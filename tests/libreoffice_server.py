"""One headless LibreOffice, driven by JSON lines on stdin and stdout.

Runs under the system's Python, the one that has LibreOffice's `uno` module; tests/engines.py starts it. It
imports nothing of this project. Arguments: the path of soffice.bin, an empty folder for the private profile.

A request is {"id": n, "do": name, ...}; the answer is {"id": n, "ok": value} or {"id": n, "error": sentence}.
Rows and columns are 1-based here, as in a sheet. A cell travels as null (blank), true or false, a number, a
text, or {"error": "#N/A"}.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import uno  # type: ignore[import-not-found]
from com.sun.star.beans import PropertyValue  # type: ignore[import-not-found]
from com.sun.star.connection import NoConnectException  # type: ignore[import-not-found]

START_SECONDS = 60
CONTENTS = 1 | 2 | 4 | 16  # com.sun.star.sheet.CellFlags: values, dates, texts, formulas
ERROR_RESULT = 4  # com.sun.star.sheet.FormulaResult.ERROR
RESTART_CODES = (79, 81)  # soffice.bin asks its wrapper to start it again, as it does on a new profile

# LibreOffice's error numbers and the names that a sheet shows for them.
ERRORS = {
    32767: "#N/A", 532: "#DIV/0!", 519: "#VALUE!", 524: "#REF!", 525: "#NAME?", 503: "#NUM!", 521: "#NULL!",
    # LibreOffice says "invalid argument" (502) where Excel says #NUM! or #VALUE!; its own name is kept.
}  # fmt: skip


def die_with_parent() -> None:
    """Ask Linux to end this process when its parent ends, so that a killed server leaves no office behind."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux: the server's own shutdown has to do
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def properties(**values):
    """The named values as UNO's property list."""
    return tuple(PropertyValue(Name=name, Value=value) for name, value in values.items())


class Office:
    """One soffice process and the documents open in it."""

    def __init__(self, program: str, folder: str) -> None:
        self.folder = Path(folder)
        self.pipe = f"sizing_{os.getpid()}"
        self.command = [
            program, "--headless", "--norestore", "--nologo", "--nodefault", "--nofirststartwizard",
            "--nolockcheck",
            f"-env:UserInstallation={(self.folder / 'profile').as_uri()}",
            f"--accept=pipe,name={self.pipe};urp;StarOffice.ComponentContext",
        ]  # fmt: skip
        self.documents = {}
        self.last = 0
        self.process = self.start()
        self.desktop = self.connect()

    def start(self) -> subprocess.Popen:
        return subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,  # noqa: PLW1509 (the other thread only reads lines)
        )  # fmt: skip

    def connect(self):
        """The office's desktop, as soon as it listens on its pipe."""
        local = uno.getComponentContext()
        resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            code = self.process.poll()
            if code in RESTART_CODES:
                self.process = self.start()
            elif code is not None:
                raise RuntimeError(f"LibreOffice ended with code {code} while it started")
            try:
                context = resolver.resolve(f"uno:pipe,name={self.pipe};urp;StarOffice.ComponentContext")
                return context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
            except NoConnectException:
                time.sleep(0.05)
        raise RuntimeError(f"LibreOffice did not listen on its pipe within {START_SECONDS} seconds")

    def stop(self) -> None:
        """Close every document and the office, gently and then firmly."""
        if self.process.poll() is None:
            with contextlib.suppress(Exception):  # the bridge is often gone before the answer comes back
                self.desktop.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- what a client can ask for

    def open(self, path: str) -> dict:
        """Open a workbook and calculate it; answers its number and the names of its sheets."""
        document = self.desktop.loadComponentFromURL(
            Path(path).resolve().as_uri(), "_blank", 0, properties(Hidden=True, MacroExecutionMode=0)
        )
        if document is None or not hasattr(document, "Sheets"):
            raise RuntimeError(f"LibreOffice cannot open {path} as a workbook")
        document.enableAutomaticCalculation(False)  # a set of inputs is calculated once, not after each input
        for sheet in document.Sheets:
            if sheet.isProtected():
                sheet.unprotect("")
        document.calculateAll()
        self.last += 1
        self.documents[self.last] = document
        return {"document": self.last, "sheets": [sheet.Name for sheet in document.Sheets]}

    def close(self, document: int) -> None:
        self.documents.pop(document).close(True)

    def calculate(self, document: int, cells: list) -> None:
        """Set cells, each [sheet, row, column, value], then calculate everything."""
        doc = self.documents[document]
        for name, row, column, value in cells:
            cell = doc.Sheets.getByName(name).getCellByPosition(column - 1, row - 1)
            if value is None:
                cell.clearContents(CONTENTS)
            elif isinstance(value, bool):
                cell.setFormula("TRUE" if value else "FALSE")
            elif isinstance(value, str):
                cell.setString(value)  # never parsed: "=1+1" stays text
            else:
                cell.setValue(value)
        doc.calculate()

    def read(self, document: int, areas: list) -> list:
        """Values of areas, each [sheet, first row, first column, last row, last column], as lists of rows."""
        return [self.area(self.documents[document], *area) for area in areas]

    def sheet(self, document: int, name: str) -> dict:
        """The values of one sheet from A1 to the end of its used area, as a list of rows."""
        doc = self.documents[document]
        cursor = doc.Sheets.getByName(name).createCursor()
        cursor.gotoEndOfUsedArea(False)
        end = cursor.RangeAddress
        return {"values": self.area(doc, name, 1, 1, end.EndRow + 1, end.EndColumn + 1)}

    def area(self, doc, name: str, top: int, left: int, bottom: int, right: int) -> list:
        """One range in three bulk reads: values, blank cells (a formula may give "") and error cells."""
        sheet = doc.Sheets.getByName(name)
        cells = sheet.getCellRangeByPosition(left - 1, top - 1, right - 1, bottom - 1)
        rows = [list(row) for row in cells.getDataArray()]
        if any("" in row for row in rows):
            for address in cells.queryEmptyCells().RangeAddresses:
                blank = [None] * (address.EndColumn - address.StartColumn + 1)
                for r in range(address.StartRow, address.EndRow + 1):
                    rows[r - top + 1][address.StartColumn - left + 1 : address.EndColumn - left + 2] = blank
        for address in cells.queryFormulaCells(ERROR_RESULT).RangeAddresses:
            for r in range(address.StartRow, address.EndRow + 1):
                for c in range(address.StartColumn, address.EndColumn + 1):
                    code = sheet.getCellByPosition(c, r).getError()
                    rows[r - top + 1][c - left + 1] = {"error": ERRORS.get(code, f"Err:{code}")}
        return rows

    def save(self, path: str, target: str, inserted: list) -> None:
        """Open a workbook, calculate it and save it as .xlsx, as a planner does who works in LibreOffice.

        inserted: rows to put in first, each [sheet, row before which, how many].
        """
        document = self.desktop.loadComponentFromURL(
            Path(path).resolve().as_uri(), "_blank", 0, properties(Hidden=True, MacroExecutionMode=0)
        )
        if document is None:
            raise RuntimeError(f"LibreOffice cannot open {path} as a workbook")
        try:
            for name, row, count in inserted:
                sheet = document.Sheets.getByName(name)
                sheet.unprotect("")
                sheet.Rows.insertByIndex(row - 1, count)
            document.calculateAll()
            document.storeToURL(Path(target).resolve().as_uri(), properties(FilterName="Calc MS Excel 2007 XML"))
        finally:
            document.close(True)

    def pdf(self, path: str, target: str) -> None:
        """Print a workbook to a PDF file, with everything calculated first."""
        document = self.open(path)["document"]
        try:
            self.documents[document].storeToURL(
                Path(target).resolve().as_uri(), properties(FilterName="calc_pdf_Export", Overwrite=True)
            )
        finally:
            self.close(document)


def main() -> None:
    lines: queue.Queue = queue.Queue()
    office = None

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)
        # The client is gone. If LibreOffice hangs in a call, the main thread never gets here: end both.
        time.sleep(15)
        if office is not None and office.process.poll() is None:
            office.process.kill()
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else prints to stdout must not look like an answer

    def answer(**message) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        office = Office(sys.argv[1], sys.argv[2])
        answer(id=0, ok="ready")
    except Exception as error:
        answer(id=0, error=f"{type(error).__name__}: {error}")
        return
    try:
        while (line := lines.get()) is not None:
            request = json.loads(line)
            number, do = request.pop("id"), request.pop("do")
            if do == "stop":
                break
            try:
                answer(id=number, ok=getattr(office, do)(**request))
            except Exception as error:
                answer(id=number, error=f"{type(error).__name__}: {str(error) or do}")
    finally:
        office.stop()


if __name__ == "__main__":
    main()

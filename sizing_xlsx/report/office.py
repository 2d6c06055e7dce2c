"""LibreOffice, where it is installed: one conversion at a time, with a private profile, everything calculated first."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

TIMEOUT_S = 300
_PLACES = (
    "/Applications/LibreOffice.app/Contents/MacOS/soffice",
    "C:/Program Files/LibreOffice/program/soffice.exe",
    "C:/Program Files (x86)/LibreOffice/program/soffice.exe",
)
# 0: always. LibreOffice else shows the values that a file brings along, whatever its inputs are by now.
_ALWAYS_CALCULATE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""


def find_office() -> Path | None:
    """The program of LibreOffice; None where there is none."""
    found = shutil.which("soffice") or shutil.which("libreoffice")
    return Path(found) if found else next((Path(place) for place in _PLACES if Path(place).is_file()), None)


class Office:
    """LibreOffice with a profile of its own, for as long as the block lasts. where: the workbook, for sentences."""

    def __init__(self, program: Path, where: str) -> None:
        self.program, self.where = program, where

    def __enter__(self) -> Office:
        self._folder = tempfile.TemporaryDirectory(prefix="sizing-xlsx-", ignore_cleanup_errors=True)
        self.folder = Path(self._folder.name)
        user = self.folder / "profile" / "user"
        user.mkdir(parents=True)
        (user / "registrymodifications.xcu").write_text(_ALWAYS_CALCULATE, encoding="utf-8")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._folder.cleanup()

    def convert(self, workbook: bytes, name: str, to: str) -> bytes:
        """A workbook as "pdf" or "xlsx", calculated. name: that of its file, which footers show.

        Raises ValueError, one sentence, where LibreOffice does not start, takes too long, or writes nothing.
        """
        source = self.folder / name
        target = (self.folder / "made" / name).with_suffix(f".{to}")
        source.write_bytes(workbook)
        words = [
            str(self.program), f"-env:UserInstallation={(self.folder / 'profile').as_uri()}", "--headless",
            "--norestore", "--nologo", "--nofirststartwizard", "--convert-to", to, "--outdir", str(target.parent),
            str(source),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                words, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise ValueError(
                f"LibreOffice ({self.program}) needed more than {TIMEOUT_S} seconds for {self.where}; try again"
            ) from None
        except OSError as error:
            raise ValueError(f"LibreOffice ({self.program}) does not start: {error.strerror or error}") from None
        if not target.is_file():
            said = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace").splitlines()
            raise ValueError(
                f"LibreOffice ({self.program}) made no {to} of {self.where}; it says: {said[-1] if said else 'nothing'}"
            )
        return target.read_bytes()

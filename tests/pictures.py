"""Pictures of every page of every workbook, to be looked at: `python tests/pictures.py FOLDER`.

Needs LibreOffice and pdftoppm. The workbooks are converted as they are, with the values they were written with.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from sizing_xlsx.workbook.build import build


def pictures(folder: Path, dpi: int = 80) -> list[Path]:
    """Build, convert to PDF, and cut into one PNG a page; returns the pictures."""
    made: list[Path] = []
    with tempfile.TemporaryDirectory() as profile:
        for workbook in build(folder):
            convert = ["soffice", f"-env:UserInstallation={Path(profile).as_uri()}", "--headless"]
            convert += ["--convert-to", "pdf", "--outdir", str(folder), str(workbook)]
            subprocess.run(convert, check=True, capture_output=True, timeout=300)
            stem = str(workbook.with_suffix(""))
            subprocess.run(["pdftoppm", "-r", str(dpi), "-png", stem + ".pdf", stem], check=True, timeout=300)
            made += sorted(folder.glob(workbook.stem + "-*.png"))
    return made


if __name__ == "__main__":
    for picture in pictures(Path(sys.argv[1])):
        print(picture)

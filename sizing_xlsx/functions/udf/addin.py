"""The .xlam: the template of an add-in that lies in the installed xlwings, with a sheet that configures it.

The product ships no binary of its own: the VBA in the file is xlwings' own, of the version that is pinned.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import Any

from lxml import etree

from . import MODULE, VBA_MODULE, XLWINGS

TEMPLATE = "quickstart_addin.xlam"
TEMPLATE_SHEET, SHEET = "_myaddin.conf", "myaddin.conf"  # the template's VBA looks for the second
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_DAY = (1980, 1, 1, 0, 0, 0)


def configuration(interpreter: Path, package_folder: Path) -> dict[str, str]:
    """The add-in's settings by their names in xlwings: every one that its VBA asks for on Windows.

    What a sheet of the add-in does not state, the VBA looks up in a file beside the workbook that is open, and some of
    it becomes part of a command: so nothing is left unstated. Nor may code beside a workbook be importable.
    """
    return {
        "Interpreter_Win": str(interpreter),
        "PYTHONPATH": str(package_folder),
        "UDF Modules": MODULE,
        "ADD_WORKBOOK_TO_PYTHONPATH": "False",
        **dict.fromkeys(("Use UDF Server", "Debug UDFs", "Show Console"), "False"),
        "SHOW_ERROR_POPUPS": "True",
        **dict.fromkeys(("LICENSE_KEY", "Conda Path", "Conda Env"), ""),
        **dict.fromkeys(("ONEDRIVE_CONSUMER_WIN", "ONEDRIVE_COMMERCIAL_WIN", "SHAREPOINT_WIN"), ""),
    }


def addin_bytes(settings: Mapping[str, str]) -> bytes:
    """The add-in with these settings; the same bytes for the same settings. ValueError where xlwings is another."""
    template = xlwings_folder() / TEMPLATE
    try:
        with zipfile.ZipFile(template) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
            sheet = _sheet_part(parts, TEMPLATE_SHEET)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{template} cannot be used: {error}; install xlwings {XLWINGS} again") from None
    parts["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(f'"{TEMPLATE_SHEET}"'.encode(), f'"{SHEET}"'.encode())
    parts[sheet] = _with_settings(parts[sheet], settings)
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name, _DAY), content, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def xlwings_folder() -> Path:
    """Where xlwings is installed, in the version that the add-in needs; ValueError with what to do otherwise."""
    right = f'pip install "sizing-xlsx[excel]" installs xlwings {XLWINGS}'
    spec = importlib.util.find_spec("xlwings")
    try:
        found = version("xlwings")
    except PackageNotFoundError:
        found = ""
    if spec is None or spec.origin is None or not found:
        raise ValueError(f"xlwings is not installed; {right}")
    if found != XLWINGS:
        raise ValueError(f"xlwings is {found}; the add-in is that of {XLWINGS}: {right}")
    return Path(spec.origin).parent


def is_ours(file: Path) -> bool:
    """Whether a file is an add-in or a module of these functions, as written or as Excel has saved it since."""
    if file.suffix == ".xlam":
        return read_configuration(file).get("UDF Modules") == MODULE
    try:
        return MODULE.encode() in file.read_bytes()
    except OSError:
        return False


def read_configuration(file: Path) -> dict[str, str]:
    """The settings of an add-in, as written or as Excel has saved it since; none where it has no such sheet."""
    try:
        with zipfile.ZipFile(file) as archive:
            parts = {name: archive.read(name) for name in archive.namelist() if name.endswith((".xml", ".rels"))}
        sheet = etree.fromstring(parts[_sheet_part(parts, SHEET)])
        shared = etree.fromstring(parts["xl/sharedStrings.xml"]) if "xl/sharedStrings.xml" in parts else ()
    except (OSError, KeyError, zipfile.BadZipFile, etree.XMLSyntaxError):
        return {}
    texts = ["".join(map(str, text.itertext())) for text in shared]
    found = {}
    for row in sheet.iter(f"{_MAIN}row"):
        name, value = ([*(_text(cell, texts) for cell in row), "", ""])[:2]
        found[name] = value
    return found


def holds_functions(file: Path) -> bool:
    """Whether the functions have been imported into an add-in: its VBA project then names their module."""
    try:
        with zipfile.ZipFile(file) as archive:
            project = archive.read("xl/vbaProject.bin")
    except (OSError, KeyError, zipfile.BadZipFile):
        return False
    listed, mapped = f"Module={VBA_MODULE}".encode(), f"{VBA_MODULE}\0".encode() + VBA_MODULE.encode("utf-16-le")
    return listed in project or mapped in project


def _text(cell: Any, shared: list[str]) -> str:
    text = "".join(map(str, cell.itertext()))
    return shared[int(text)] if cell.get("t") == "s" else text


def _sheet_part(parts: Mapping[str, bytes], name: str) -> str:
    """The part of the configuration sheet."""
    book, links = (etree.fromstring(parts[part]) for part in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels"))
    for sheet in book.iter(f"{_MAIN}sheet"):
        if sheet.get("name") == name:
            target = next(str(link.get("Target")) for link in links if link.get("Id") == sheet.get(_REL))
            return target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    raise KeyError(f"it has no sheet {name}")


def _with_settings(part: bytes, settings: Mapping[str, str]) -> bytes:
    """A sheet that holds these names and values, from A1 down without a gap, and nothing else."""
    sheet = etree.fromstring(part)
    rows = sheet.find(f"{_MAIN}sheetData")
    size = sheet.find(f"{_MAIN}dimension")
    if rows is None or size is None:
        raise KeyError(f"its sheet {TEMPLATE_SHEET} has no rows")
    rows.clear()
    size.set("ref", f"A1:B{len(settings)}")
    for at, pair in enumerate(settings.items(), 1):
        row = etree.SubElement(rows, f"{_MAIN}row", r=str(at))
        for column, text in zip("AB", pair, strict=True):
            if not text:
                continue
            cell = etree.SubElement(row, f"{_MAIN}c", r=f"{column}{at}", t="inlineStr")
            etree.SubElement(etree.SubElement(cell, f"{_MAIN}is"), f"{_MAIN}t").text = text
    return etree.tostring(sheet, xml_declaration=True, encoding="UTF-8", standalone=True)

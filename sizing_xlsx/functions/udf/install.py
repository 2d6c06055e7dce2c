"""Putting the add-in, its module and a file of settings in place for one user, and taking away just that."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ... import __version__
from .. import registered
from . import XLWINGS
from .addin import addin_bytes, configuration, holds_functions, is_ours
from .places import Machine, Places, package_folder
from .settings import template
from .vba import module_text, unsafe_names, wizard_help

BY_HAND = (
    "One step is left, in Excel: start it, press Alt+F11, choose {addin} in the list on the left, then File > Import "
    "File… > {module}, and save with Ctrl+S. (Where Excel trusts access to the VBA project, install does it.)"
)


class Record(NamedTuple):
    """What install wrote. files: path -> digest as written. folders: those it made, the outermost first."""

    files: dict[str, str]
    folders: list[str]


def install(machine: Machine, places: Places, imported: Callable[[Path, Path], None] | None = None) -> list[str]:
    """Set everything up; what was done, a line each. A second time it changes what has changed and nothing else.

    imported: brings the module into the add-in through Excel; None where Excel does not trust that. Raises
    ValueError before anything is written: for a file of someone else in a place that is needed, another xlwings.
    """
    wrong = unsafe_names(registered())
    if wrong:
        raise ValueError(wrong[0])
    wanted = {
        places.addin: addin_bytes(configuration(machine.interpreter, package_folder())),
        places.module: module_text(places.addin.name).replace("\n", "\r\n").encode("ascii", "replace"),
    }
    for file in wanted:
        if os.path.lexists(file) and not is_ours(file):
            raise ValueError(f"{file} is there and is none of sizing-xlsx; move it away, or name another --folder")
    if not places.settings.exists():
        wanted[places.settings] = template().encode()
    before = read_record(places.record)
    # a module that has changed is imported into a fresh add-in: Excel would put it beside the old one
    stale = [file for file, content in wanted.items() if not _stands(file, content, before)]
    if places.module in stale and places.addin not in stale:
        stale.append(places.addin)
    folders = list(dict.fromkeys([*before.folders, *_missing_folders([*wanted, places.record])]))
    for folder in folders:
        Path(folder).mkdir(parents=True, exist_ok=True)
    written = before._replace(files={**{str(file): "" for file in wanted}, **before.files}, folders=folders)
    _write(places.record, _record_text(written))  # first: whatever happens, uninstall must know all
    for file in stale:
        _write(file, wanted[file])
    written.files.update({str(file): _digest(content) for file, content in wanted.items()})
    _write(places.record, _record_text(written))
    lines = [f"{'Wrote' if file in stale else 'Unchanged:'} {file}" for file in wanted]
    if places.settings not in wanted:
        lines.append(f"Left as it is: {places.settings}")
    if not holds_functions(places.addin):
        lines.append(_imported(places, imported))
    return lines


def _imported(places: Places, imported: Callable[[Path, Path], None] | None) -> str:
    """The functions brought into the add-in, or what is left to do by hand."""
    by_hand = BY_HAND.format(addin=places.addin.name, module=places.module)
    if imported is None:
        return by_hand
    try:
        imported(places.addin, places.module)
    except Exception as error:  # whatever Excel says: the other way is open
        return f"Excel did not take the functions ({type(error).__name__}: {error}). {by_hand}"
    return f"Imported {len(registered())} functions into {places.addin.name}; they are there when Excel starts next."


def import_through_excel(addin: Path, module: Path) -> None:
    """Bring the functions, with the help of each argument, into the add-in, through an Excel of its own."""
    import xlwings

    nothing = dict.fromkeys(("MenuText", "ShortcutKey", "StatusBar", "HelpContextID", "HelpFile"))
    with xlwings.App(visible=False, add_book=False) as app:
        book = app.books.open(str(addin))
        book.api.IsAddin = False  # Excel describes no functions of a hidden workbook
        book.api.VBProject.VBComponents.Import(str(module))
        for name, help in wizard_help().items():
            book.api.Application.MacroOptions(
                f"'{addin.name}'!{name}",
                Description=help.words,
                HasMenu=False,
                HasShortcutKey=False,
                Category=help.category,
                ArgumentDescriptions=help.arguments,
                **nothing,
            )
        book.api.IsAddin = True
        book.save()
        book.close()


def uninstall(places: Places) -> list[str]:
    """Take away what install wrote and nothing else; what was done, a line each."""
    record = read_record(places.record)
    if not record.files:
        return [f"Nothing is installed: there is no {places.record}."]
    lines = []
    for text, digest in record.files.items():
        file = Path(text)
        if not file.exists():
            continue
        # Excel saves the add-in anew; settings that were edited are the user's own
        if _digest(file.read_bytes()) == digest or (file.suffix in (".xlam", ".bas") and is_ours(file)):
            file.unlink()
            lines.append(f"Removed {file}")
        else:
            lines.append(f"Kept, for it has been changed: {file}")
    places.record.unlink()
    for text in reversed(record.folders):
        folder = Path(text)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            lines.append(f"Removed {folder}")
    return lines


def read_record(file: Path) -> Record:
    """The record; an empty one where there is none. ValueError for one that is damaged."""
    try:
        content: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return Record(dict(content["files"]), list(content["folders"]))
    except FileNotFoundError:
        return Record({}, [])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{file} is no record of an installation; remove it and install again") from None


def _record_text(record: Record) -> bytes:
    content = {"version": __version__, "xlwings": XLWINGS, **record._asdict()}
    return (json.dumps(content, indent=2) + "\n").encode()


def _stands(file: Path, content: bytes, before: Record) -> bool:
    """Whether a file is in place: made from the same content, even where Excel has saved it since."""
    return file.exists() and before.files.get(str(file)) == _digest(content)


def _missing_folders(files: list[Path]) -> list[str]:
    """The folders of files that are not there, the outermost first."""
    found: list[str] = []
    for file in files:
        missing = [str(folder) for folder in file.parents if not folder.exists()]
        found += [folder for folder in reversed(missing) if folder not in found]
    return found


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(file: Path, content: bytes) -> None:
    """A file in one stroke: whole, or as it was. ValueError where Excel holds it."""
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(draft, file)
    except PermissionError:
        raise ValueError(f"{file} cannot be replaced; close Excel and run this again") from None
    finally:
        Path(draft).unlink(missing_ok=True)

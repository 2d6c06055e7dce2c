"""The presets of each tenant: the service's own, and what the tenant's administrator uploaded.

An upload is a set of files that takes the place of the one before. It is checked whole before it counts, is kept under
a number, and comes into force in one stroke, for all workers. A tenant without an upload has the service's catalogue.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from ..functions.desk import Desk
from ..jobs import JOBS
from ..presets.catalogue import Presets
from ..presets.own import with_own
from .files import Watched, write_whole
from .keys import TENANT
from .wire import Refused

KINDS = {"models": (".json",), "gpus": (".csv", ".toml"), "layer_forms": (".toml",)}
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,78}[A-Za-z0-9]")
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
MOST_FILES = 200
KEPT_VERSIONS = 20
MOST_DESKS = 8  # tenants whose formulas are ready at a time
CURRENT = "current.json"


class Upload(NamedTuple):
    """One file. kind: models, gpus or layer_forms."""

    kind: str
    name: str
    text: str


class Tenants:
    """The catalogue of each tenant, and its desk. folder: one folder a tenant, below it one a version.

    most_entries: models, cards and layer forms of an upload.
    """

    def __init__(self, folder: Path, base: Presets, most_entries: int) -> None:
        self.folder, self.base, self.most_entries = folder, base, most_entries
        self.common = Desk(base)
        self._current: dict[str, Watched[int]] = {}
        self._desks: OrderedDict[tuple[str, int], Desk] = OrderedDict()
        self._lock = Lock()

    # ------------------------------------------------------------------ asking
    def desk(self, tenant: str) -> Desk:
        """Where the functions of a tenant are computed."""
        version = self.version(tenant)
        if not version:
            return self.common
        with self._lock:
            key = (tenant, version)
            if key not in self._desks:
                self._desks[key] = Desk(_with_files(self.base, self._folder(tenant) / str(version)))
                while len(self._desks) > MOST_DESKS:
                    self._desks.popitem(last=False)
            self._desks.move_to_end(key)
            return self._desks[key]

    def version(self, tenant: str) -> int:
        """The number of the upload in force; 0 for the service's own catalogue."""
        if tenant not in self._current:
            self._current[tenant] = Watched(self._folder(tenant) / CURRENT, _number, 0)
        return self._current[tenant].value()

    def versions(self, tenant: str) -> list[dict[str, Any]]:
        """What was uploaded, the latest first: number, date, files by kind."""
        found = []
        for number in sorted(self._numbers(tenant), reverse=True):
            folder = self._folder(tenant) / str(number)
            files = {kind: sorted(file.name for file in (folder / kind).glob("*")) for kind in KINDS}
            date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(folder.stat().st_mtime))
            found.append({"version": number, "uploaded": date, "files": {k: v for k, v in files.items() if v}})
        return found

    # ------------------------------------------------------------------ changing
    def upload(self, tenant: str, files: list[Upload]) -> int:
        """Check a set of files and put it into force; its number. Refused, and nothing changed, for a wrong one."""
        _check(files)
        home = self._folder(tenant)
        home.mkdir(parents=True, exist_ok=True)
        number = max(self._numbers(tenant), default=0) + 1
        made = home / f".new-{number}-{time.monotonic_ns()}"
        try:
            for file in files:
                (made / file.kind).mkdir(parents=True, exist_ok=True)
                (made / file.kind / file.name).write_text(file.text, encoding="utf-8", newline="")
            presets = _checked(self.base, made)
            self._check_entries(len(presets.own) - len(self.base.own))
            desk = Desk(presets)
            for job in JOBS:
                desk.job(job)
            made.rename(home / str(number))
        except OSError as error:
            raise Refused(409, f"the upload could not be kept ({error.strerror}); send it again") from None
        finally:
            shutil.rmtree(made, ignore_errors=True)
        self.choose(tenant, number)
        for old in sorted(self._numbers(tenant))[:-KEPT_VERSIONS]:
            if old != number:
                shutil.rmtree(home / str(old), ignore_errors=True)
        return number

    def choose(self, tenant: str, number: int) -> None:
        """Put an earlier upload into force, or with 0 the service's own catalogue; Refused for one that is not kept."""
        if number and number not in self._numbers(tenant):
            raise Refused(404, f"version is {number}; no upload of that number is kept")
        write_whole(self._folder(tenant) / CURRENT, json.dumps({"version": number}).encode())

    def _check_entries(self, number: int) -> None:
        if number > self.most_entries:
            words = f"it may hold {self.most_entries:,} (the setting upload_entries)"
            raise Refused(422, f"the upload holds {number:,} models, cards and layer forms; {words}")

    def _folder(self, tenant: str) -> Path:
        if not TENANT.fullmatch(tenant):
            raise Refused(403, "the key's tenant has a name that is none")
        return self.folder / tenant

    def _numbers(self, tenant: str) -> list[int]:
        return [int(path.name) for path in self._folder(tenant).glob("*") if path.name.isdecimal()]


def _number(path: Path) -> int:
    return int(json.loads(path.read_bytes())["version"])


def _check(files: list[Upload]) -> None:
    if not 1 <= len(files) <= MOST_FILES:
        raise Refused(422, f"files has {len(files)} entries; it must have from 1 to {MOST_FILES}")
    seen: set[str] = set()
    for file in files:
        ends = KINDS.get(file.kind)
        if ends is None:
            raise Refused(422, f"a file's kind must be one of {', '.join(KINDS)}")
        plain = FILE_NAME.fullmatch(file.name) and ".." not in file.name and not RESERVED.fullmatch(file.name)
        if not plain or not file.name.casefold().endswith(ends):
            words = "letters, digits, spaces, dots, hyphens and _, at most 80"
            raise Refused(422, f"a file of kind {file.kind} needs a plain name: {words}, ending in {' or '.join(ends)}")
        place = f"{file.kind}/{file.name.casefold()}"
        if place in seen:
            raise Refused(422, f"two files of kind {file.kind} have the same name without regard to case")
        seen.add(place)


def _checked(base: Presets, folder: Path) -> Presets:
    """The catalogue with the files of a folder; Refused, in the words of the readers, for what they refuse."""
    try:
        found = _with_files(base, folder)
    except (ValueError, OSError) as error:
        raise Refused(422, str(error).replace(f"{folder}/", "")) from None
    return found


def _with_files(base: Presets, folder: Path) -> Presets:
    files = {kind: sorted((folder / kind).glob("*")) for kind in KINDS}
    return with_own(base, files["models"], files["gpus"], files["layer_forms"], unknown="list")

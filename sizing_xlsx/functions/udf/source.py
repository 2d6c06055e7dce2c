"""The catalogue that the functions are asked of, under the user's settings, read anew when a file changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic

from ...paths import presets_folder
from ...presets.catalogue import load_presets
from ...presets.families import forget
from ...presets.own import config_files
from ..desk import Desk
from ..faults import WRONG, Fault
from .settings import Settings, read_settings, settings_file

EVERY_S = 2.0  # how often files are looked at, at most
Stamp = tuple[tuple[str, int, int], ...]  # path, time of the last change in ns, bytes; (path, 0, -1): not there


class Source:
    """A desk that follows its files. clock: seconds; files are looked at when a call comes, not in between."""

    def __init__(self, environ: Mapping[str, str] = os.environ, clock: Callable[[], float] = monotonic) -> None:
        self._environ, self._clock = environ, clock
        self._looked = float("-inf")
        self._stamp: Stamp | None = None
        self._settings = Settings()
        self._desk: Desk | None = None
        self._fault = ""

    @property
    def file(self) -> Path:
        """The file of settings."""
        return settings_file(self._environ)

    @property
    def log(self) -> Path:
        """The log beside it."""
        return self.file.with_suffix(".log")

    def desk(self) -> Desk:
        """The desk over the files as they are. Fault, with the file, while one cannot be used: no stale figures."""
        now = self._clock()
        if now - self._looked >= EVERY_S:
            self._looked = now
            if self._stamp is None or _stamp(self.file, self._settings) != self._stamp:
                self._read()
        if self._desk is None:
            raise Fault(WRONG, self._fault)
        return self._desk

    def _read(self) -> None:
        self._desk, self._settings = None, Settings()
        try:
            self._settings = read_settings(self._environ)
            self._stamp = _stamp(self.file, self._settings)  # before reading: what changes meanwhile is read again
            self._desk = _desk(self._settings)
        except Exception as error:  # a file may be wrong in ways that nobody thought of; cells must say so
            self._stamp = _stamp(self.file, self._settings)
            told = isinstance(error, (ValueError, OSError))
            self._fault = f"presets: {error}" if told else f"presets: {type(error).__name__} {error}"


def _desk(settings: Settings) -> Desk:
    forget()
    presets = load_presets(
        settings.presets or presets_folder(),
        models=settings.models,
        gpus=settings.gpus,
        layer_forms=settings.layer_forms,
    )
    return Desk(presets, settings.folders)


def _stamp(file: Path, settings: Settings) -> Stamp:
    """What can be told of the files without reading them."""
    return tuple(sorted(_facts(path) for path in _files(file, settings)))


def _facts(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, -1
    return str(path), found.st_mtime_ns, found.st_size


def _files(file: Path, settings: Settings) -> Iterator[Path]:
    yield file
    for folder, _, names in os.walk(settings.presets or presets_folder()):
        for name in names:
            yield Path(folder, name)
    for path in settings.models:
        yield path
        try:
            for found in config_files(path):
                yield from (found, found / "config.json")
        except ValueError:  # told when it is read
            continue
    yield from settings.gpus
    yield from settings.layer_forms

"""A config.json, wherever it is -> its content as a checked dict. Nothing in it is ever executed."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path
from typing import NamedTuple

from .names import checked_name, one_line, shown

MAXIMUM_BYTES = 1_000_000
MAXIMUM_DEPTH = 100

Content = Mapping[str, object]


class ConfigFile(NamedTuple):
    """The content of a config.json. where: how an error names it. name: the model's, as far as the place tells it."""

    content: Content
    where: str
    name: str


def load_config(source: str | Path | Content) -> ConfigFile:
    """Reads and checks a config.json.

    source: the path of a config.json, the path of a folder that holds one, its JSON text, or its content as a
    dict. The name is the folder's ("org--name" reads "org/name"), else the file's, else _name_or_path, else
    model_type. Raises ValueError, one sentence with the file, the field, its value and what would be right.
    """
    found = _found(source)
    _check_depth(found.content, found.where)
    family = _checked_texts(found.content, found.where)
    known_as = found.content.get("_name_or_path")
    name = found.name or (known_as if isinstance(known_as, str) else "") or family
    return found._replace(name=checked_name(name, found.where, "the model's name"))


def _found(source: object) -> ConfigFile:
    if isinstance(source, Mapping):
        return ConfigFile(source, "the config", "")
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        if len(source) > MAXIMUM_BYTES:
            raise ValueError(
                f"the JSON text has {len(source):,} characters; a config.json has at most {MAXIMUM_BYTES:,}"
            )
        return ConfigFile(_parsed(source.lstrip("\ufeff"), "the JSON text"), "the JSON text", "")
    if isinstance(source, str | Path) and str(source).strip():
        path = _file(Path(source))
        where = one_line(str(path))
        return ConfigFile(_parsed(_text(path, where), where), where, _name_of(path))
    raise ValueError(
        f"the source of a config is {shown(source)}; it should be a path, JSON text or a dict of its content"
    )


def _checked_texts(raw: Mapping[str, object], where: str) -> str:
    """Checks all name-like text of a config.json and returns model_type."""
    for field in ("_name_or_path", "architectures"):
        value = raw.get(field)
        entries = value if field == "architectures" and isinstance(value, list) else [value]
        for entry in entries:
            if entry is None or entry == "":
                continue
            if not isinstance(entry, str):
                right = "a list of names" if field == "architectures" else "a name"
                raise ValueError(f"{where}: {field} is {shown(entry)}; it should be {right}")
            checked_name(entry, where, field)
    if "model_type" not in raw:
        raise ValueError(f'{where}: model_type is missing; it should name the family, such as "llama"')
    family = raw["model_type"]
    if not isinstance(family, str):
        raise ValueError(f'{where}: model_type is {shown(family)}; it should name the family, such as "llama"')
    return checked_name(family, where, "model_type")


def check_finite(raw: Content, where: str, read: Set[str]) -> None:
    """ValueError for a NaN or infinity in a field that is read, or in a part of one. Others may hold what they like:
    a limit that is none is written as Infinity. read: names of fields, at any depth."""
    for path, value in _leaves(raw, where):
        if isinstance(value, float) and not math.isfinite(value) and not read.isdisjoint(path.split(".")):
            raise ValueError(f"{where}: {one_line(path)} is {shown(value)}; it should be a finite number")


def _check_depth(raw: Content, where: str) -> None:
    """ValueError for nesting that no config.json has."""
    for _ in _leaves(raw, where):
        pass


def _leaves(raw: Content, where: str) -> Iterator[tuple[str, object]]:
    """Every value that is neither an object nor a list, with the names of fields that lead to it."""
    level: list[tuple[str, object]] = [("", raw)]
    for _ in range(MAXIMUM_DEPTH):
        deeper: list[tuple[str, object]] = []
        for field, value in level:
            if isinstance(value, Mapping):
                # The cut keeps a hostile file's long keys from multiplying.
                deeper += [(f"{field}.{key}".lstrip(".")[:100], item) for key, item in value.items()]
            elif isinstance(value, list | tuple):
                deeper += [(field, item) for item in value]
            else:
                yield field, value
        if not deeper:
            return
        level = deeper
    raise ValueError(f"{where} is nested more than {MAXIMUM_DEPTH} deep; a config.json has a few levels")


def _parsed(text: str, where: str) -> Mapping[str, object]:
    """The JSON object that a text holds."""
    try:
        content = json.loads(text, object_pairs_hook=_unique_keys(where), parse_int=_whole_number(where))
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError(f"{where} is nested too deeply; a config.json has a few levels") from None
    if not isinstance(content, dict):
        raise ValueError(f"{where} holds {shown(content)}; a config.json is one object of fields and their values")
    return content


def _unique_keys(where: str) -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        built = dict(pairs)
        if len(built) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice = next(key for key in counts if counts[key] > 1)
            raise ValueError(f"{where}: {shown(twice)} stands there twice; it should stand there once")
        return built

    return build


def _whole_number(where: str) -> Callable[[str], int]:
    def build(digits: str) -> int:
        if len(digits) > 100:
            raise ValueError(f"{where} holds a number of {len(digits):,} digits; no field needs more than 20")
        return int(digits)

    return build


def _file(path: Path) -> Path:
    """The config.json that a path means: itself, or the one in the folder."""
    try:
        is_folder = path.is_dir()
        file = path / "config.json" if is_folder else path
        if file.is_file() or file.is_fifo():  # what a shell makes of <(...)
            return file
    except OSError:  # a name too long to be one, a folder that may not be entered
        is_folder = False
    if is_folder:
        raise ValueError(f"{one_line(str(path))} holds no config.json; a model's folder should hold one")
    raise ValueError(
        f"there is no file {shown(str(path))}; "
        "it should be a config.json, a folder that holds one, or the JSON text of one"
    )


def _text(path: Path, where: str) -> str:
    """The text of a file, UTF-8 with or without its mark, of at most a megabyte."""
    try:
        with path.open("rb") as file:
            content = file.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}") from None
    if len(content) > MAXIMUM_BYTES:
        raise ValueError(f"{where} is larger than {MAXIMUM_BYTES:,} bytes; a config.json has a few thousand")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is not UTF-8 text at byte {error.start}; save it as UTF-8") from None


def _name_of(path: Path) -> str:
    """A model's name by its file: that of the folder of a config.json, else the file's own."""
    # abspath, not resolve: download caches link config.json to a file of another name elsewhere.
    name = Path(os.path.abspath(path)).parent.name if path.name == "config.json" else path.stem
    return "" if path.is_fifo() else name.replace("--", "/", 1)

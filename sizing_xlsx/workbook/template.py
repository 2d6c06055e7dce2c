"""Reading templates: what a workbook says, checked before anything is written.

Every refusal is a ValueError of one sentence that names the file and the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..formula.domains import nearest
from ..paths import templates_folder

TEXT, TABLE, LIST = str, dict, list
SECTIONS: Mapping[str, type] = {
    "file": TEXT, "title": TEXT, "subject": TEXT, "sentences": TABLE, "steps": LIST, "items": LIST, "moments": LIST,
    "boundary": TABLE, "chart_parts": TABLE, "validation": TABLE, "start": TABLE, "notes": TABLE,
}  # fmt: skip
OPTIONAL: Mapping[str, type] = {"public_runs": TABLE}  # a workbook without it has no such block
ENTRIES: Mapping[str, tuple[str, ...]] = {
    "steps": ("name", "note", "rows"),
    "items": ("name", "traced", "published", "drives", "reduces"),
    "moments": ("name", "term", "alive"),
    "boundary": ("note",),
    "chart_parts": ("base",),
    "validation": ("rows", "title", "card", "stamp", "limits", "note", "own_note", "workings", "levers"),
    "start": ("sentence", "evidence"),
    "public_runs": ("name", "near", "limits", "note", "not_predicted", "workings", "notes"),
}
ROW_KEYS = ("input", "term", "label", "help", "sentence", "tall", "own")
LONGEST_TEXT = 255  # what a formula may hold as one text
_KINDS: Mapping[Any, str] = {str: "a text", dict: "a table", list: "a list"}


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file; ValueError with the file when it cannot be read as one."""
    import tomllib

    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; put it back") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None


def load_template(name: str) -> dict[str, Any]:
    """The template of a job's workbook, with everything that the sheets read."""
    path = templates_folder() / f"{name}.toml"
    template = read_toml(path)
    check_template(template, str(path))
    return template


def check_template(template: Mapping[str, Any], where: str) -> None:
    """Refuse a template that lacks an entry, has one too many, or holds another kind of value."""
    for key in template:
        if key not in SECTIONS and key not in OPTIONAL:
            raise ValueError(f"{where}: {key} is no entry of a template{nearest(key, (*SECTIONS, *OPTIONAL))}")
    sections = {**SECTIONS, **{key: kind for key, kind in OPTIONAL.items() if key in template}}
    for key, kind in sections.items():
        if not isinstance(template.get(key), kind):
            found = "missing" if key not in template else repr(template[key])[:60]
            raise ValueError(f"{where}: {key} is {found}; it must be {_KINDS[kind]}")
    file = template["file"]
    if not file.endswith(".xlsx") or file != Path(file).name or file.startswith("."):
        raise ValueError(f"{where}: file is {file!r}; it must be a plain name that ends in .xlsx")
    for section, keys in ENTRIES.items():
        if section not in sections:
            continue
        entries = template[section] if sections[section] is list else [template[section]]
        for at, entry in enumerate(entries, 1):
            for key in keys:
                if not isinstance(entry, dict) or key not in entry:
                    raise ValueError(f"{where}: {section} {at} lacks {key}")
    if "public_runs" in sections:
        _check_share(template["public_runs"]["near"], f"{where}: near of public_runs")
    for step in template["steps"]:
        for at, row in enumerate(step["rows"], 1):
            _check_row(row, f"{where}: row {at} of step {step['name']!r}")
    for text in _texts(template):
        if len(text) > LONGEST_TEXT * 2:
            raise ValueError(f"{where}: a text of {len(text):,} characters is too long to show: {text[:40]!r}…")


def _check_share(value: Any, where: str) -> None:
    if not isinstance(value, float) or not 0 < value < 1:
        raise ValueError(f"{where} is {value!r}; it must be a share between 0 and 1, such as 0.05")


def _check_row(row: Any, where: str) -> None:
    if not isinstance(row, dict) or ("input" in row) == ("term" in row):
        raise ValueError(f"{where} must name either an input or a term")
    for key in row:
        if key not in ROW_KEYS:
            raise ValueError(f"{where} has {key}, which no row has{nearest(key, ROW_KEYS)}")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in inner for text in _texts(part)]

"""Reading the template of the capacity plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ...paths import templates_folder
from ..template import check_file, read_toml
from ..vocabulary import check_words
from .vocabulary import check_plan

NAME = "plan"
SHARED = ("book", "record")  # sections with words of every workbook


class Opening(NamedTuple):
    """What a plan opens on, in Python as in its workbook."""

    inputs_of_plan: Mapping[str, Any]
    cards: Sequence[Mapping[str, Any]]
    offers: Sequence[Mapping[str, Any]]
    inputs: Mapping[str, Mapping[str, Any]]  # of each kind of job
    states: Mapping[str, str]


def load_plan_template() -> dict[str, Any]:
    """The template of the plan's workbook, with the words that all workbooks share.

    Raises ValueError, one sentence with the file and the entry, where it is not what the sheets read.
    """
    path = templates_folder() / f"{NAME}.toml"
    template = read_toml(path)
    check_plan(template, str(path))
    check_file(template["file"], str(path))
    for section in SHARED:
        template[section] = read_toml(path.with_name(f"{section}.toml"))
        check_words(section, template[section], f"{path.with_name(section)}.toml")
    return template


@cache
def opening() -> Opening:
    """What a plan opens on."""
    template = read_toml(templates_folder() / f"{NAME}.toml")
    inputs = {kind: words["inputs"] for kind, words in template["kinds"].items()}
    return Opening(template["opens"], template["cards"], template["offers"], inputs, template["states"])

"""Reading the template of the capacity plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ...paths import templates_folder
from ..template import read_toml

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
    """The template of the plan's workbook, with the words that all workbooks share."""
    path = templates_folder() / f"{NAME}.toml"
    shared = {section: read_toml(path.with_name(f"{section}.toml")) for section in SHARED}
    return {**read_toml(path), **shared}


@cache
def opening() -> Opening:
    """What a plan opens on."""
    template = read_toml(templates_folder() / f"{NAME}.toml")
    inputs = {kind: words["inputs"] for kind, words in template["kinds"].items()}
    return Opening(template["opens"], template["cards"], template["offers"], inputs, template["states"])

"""presets/functions.toml: job keywords, the order of arguments, further words, names of items and fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..paths import presets_folder
from ..presets.toml_file import read_toml


class Keyword(NamedTuple):
    """A kind of job by its name: whose formulas size it, and the inputs that differ from that job's worked ones.

    common: whether workbooks have short formulas of their own for it.
    """

    name: str
    job: str
    help: str
    inputs: Mapping[str, Any]
    common: bool


class Vocabulary(NamedTuple):
    """What the functions understand beside the catalogue's own names.

    jobs: by name. common: arguments that most functions begin with. inputs: argument -> the input that it is, where
    the names differ. rest: the other arguments of a job. words: table -> word -> name in the table. totals, and by job
    components and model_fields: name -> term. gpu_fields: name -> column.
    """

    jobs: Mapping[str, Keyword]
    common: tuple[str, ...]
    inputs: Mapping[str, str]
    rest: tuple[str, ...]
    words: Mapping[str, Mapping[str, str]]
    totals: Mapping[str, str]
    components: Mapping[str, Mapping[str, str]]
    model_fields: Mapping[str, Mapping[str, str]]
    gpu_fields: Mapping[str, str]


@lru_cache(maxsize=4)
def vocabulary(path: Path | None = None) -> Vocabulary:
    """The file, read once; ValueError with the place where it is wrong."""
    content = read_toml(path or presets_folder() / "functions.toml")
    jobs = {
        name: Keyword(name, facts["job"], facts["help"], facts.get("inputs", {}), facts.get("common", False))
        for name, facts in content["jobs"].items()
    }
    arguments = content["arguments"]
    return Vocabulary(
        jobs=jobs,
        common=tuple(arguments["common"]),
        inputs=arguments["inputs"],
        rest=tuple(arguments["rest"]),
        words=content["words"],
        totals=content["totals"],
        components=_of_jobs(content["components"]),
        model_fields=_of_jobs(content["model_fields"]),
        gpu_fields=content["gpu_fields"],
    )


def _of_jobs(given: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    """Names by job, where a job may have those of another."""
    return {job: given[names] if isinstance(names, str) else names for job, names in given.items()}

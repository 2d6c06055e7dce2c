"""Functions of the catalogue's models, and of a config.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .config_paths import config_within
from .desk import JOB, Desk, Values
from .faults import UNKNOWN, WRONG, Fault
from .kinds import Picked
from .names import Names
from .question import Asked, Question, alone
from .registry import CONTAINS, LLAMA, contained, register
from .signature import NUMBER, TABLE, Function, Own, Result


def _of_model(desk: Desk, values: Values, argument: str, choices: Mapping[str, str], default: str) -> Question:
    asked = Names(tuple(choices), argument).resolve(argument, values.get(argument, default), WRONG)
    return desk.asked(values, (choices[asked],), alone, (argument,))


def components_of(desk: Desk, job_name: str) -> dict[str, str]:
    """What MODEL_PARAMETERS can name, for the models of a job: component -> term."""
    return dict(desk.vocabulary.components[job_name])


def model_fields_of(desk: Desk, job_name: str) -> dict[str, str]:
    """What MODEL_INFO can name, for the models of a job: field -> term."""
    return dict(desk.vocabulary.model_fields[job_name])


def _model_function(name: str, words: str, own: Own, unit: str, *examples: Mapping[str, Any]) -> None:
    assert own.choices is not None
    choices = own.choices

    def ask(desk: Desk, values: Values) -> Question:
        return _of_model(desk, values, own.name, choices(desk, desk.keyword(values).job), own.default)

    register(
        Function(
            name,
            words,
            ("model",),
            (own,),
            (JOB,),
            1,
            Result(NUMBER, unit),
            Asked(ask),
            Picked(own.name, choices),
            examples,
        )
    )


_model_function(
    "MODEL_PARAMETERS",
    "The exact parameters of a model, in all or of one component.",
    Own("component", "total", "Which parameters.", components_of),
    "parameters",
    {"model": LLAMA},
    {"model": "Mixtral-8x7B-v0.1", "component": "active"},
)
_model_function(
    "MODEL_INFO",
    "A figure of a model's architecture.",
    Own("field", "parameters", "Which figure of the model.", model_fields_of),
    "by the field's name",
    {"model": LLAMA, "field": "layers"},
    {"model": LLAMA, "field": "kv_values_per_token_per_layer"},
)


def _models(desk: Desk, values: Values) -> list[list[Any]]:
    keep = contained(values)
    keyword = desk.keyword(values)
    job = desk.job(keyword.job)
    term = components_of(desk, keyword.job)["total"]
    names = [name for name in job.choices("base_model") if keep(name)]
    if not names:
        raise Fault(UNKNOWN, f"contains is {values['contains']!r}; no model has that in its name")
    size = job.scalar((term,))
    return [["Model", "Parameters"], *([name, size(base_model=name)[0]] for name in names)]


register(
    Function(
        "MODEL_LIST",
        "The models of the catalogue with their exact parameters.",
        (), (CONTAINS,), (JOB,), 0, Result(TABLE), _models, None, ({"contains": "Qwen3"},),
    )
)  # fmt: skip


_CONFIG = Own("config", "", "The text of the model's config.json; where folders are allowed, also a path in one.")


def _from_config(desk: Desk, values: Values) -> list[list[Any]]:
    from ..model_report import figures_of
    from ..presets.config import read_config

    try:
        found = figures_of(read_config(_source(desk, values["config"]), unknown="list"), desk.presets)
    except Fault:
        raise
    except ValueError as error:
        raise Fault(WRONG, f"config: {error}") from None
    rows = [
        [key, _flat(value)] for key, value in found.items() if not isinstance(value, (dict, list)) or key == "assumed"
    ]
    return [["Field", "Value"], *rows]


def _source(desk: Desk, text: Any) -> str | Path:
    """What `config` says: JSON text, or a file of a folder that the desk allows."""
    if isinstance(text, str) and text[:1] in ("{", "["):
        return text
    if not isinstance(text, str) or not desk.folders:
        raise Fault(WRONG, "config is no JSON object; it must be the text of a config.json")
    return config_within(desk.folders, text)


def _flat(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


register(
    Function(
        "MODEL_FROM_CONFIG",
        "The architecture and exact parameters of a model from its config.json, as a table; what was assumed is named.",
        (), (_CONFIG,), (), 1, Result(TABLE), _from_config, None,
        (
            {
                "config": '{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,'
                ' "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256,'
                ' "tie_word_embeddings": true}'
            },
        ),
    )
)  # fmt: skip

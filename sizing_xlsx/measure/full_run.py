"""A run of full fine-tuning in the words of the inputs that size it, and the other way round.

A run says how its weights are stored and which optimizer trains them; the job names both by a recipe, whose columns
run_storage and run_optimizer of presets/recipes.csv say the same. A run takes one card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..presets.catalogue import load_presets
from .run import SETTINGS, declared, input_names

_OF_A_RUN = ("parameter_storage", "optimizer_choice")  # what a recipe stands for
_ONE_CARD = {"sharding_stage": "None", "gpu_count": 1}
_ALONE = {  # what a run cannot say, and the value that it has
    "optimizer_step": "foreach",
    "paged_optimizer": "Off",
    "loss_kernel": "Stock",
    "state_offload": "None",
    "sequence_parallel": 1,
}


def sized(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """A run, or a row of a results file, with the inputs of the job that sizes it; None where no recipe is the run's.

    fields: those of a run of the job "full", empty ones as its default; others go through as they are.
    """
    storage, optimizer, autocast, compute = (
        str(fields[key] or _default(key)).strip().casefold()
        for key in (*_OF_A_RUN, "uses_autocast", "compute_precision")
    )
    rows = [row for row in load_presets().recipe_rows if _stepped(row) == (storage, optimizer)]
    if not rows:
        return None
    row = rows[-1 if autocast == "on" and compute != "fp32" else 0]  # of two with the same tensors, autocast's is later
    found = {key: value for key, value in fields.items() if key not in (*_OF_A_RUN, *SETTINGS)}
    found |= {**_ONE_CARD, **_ALONE, "training_recipe": row["name"]}
    return found | ({"embedding_in_fp32": "Off"} if row["narrow_state"] else {})


def run_fields(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the run that steps a sized job. ValueError where no run does: the input, its value, what would."""
    recipes = {row["name"]: row for row in load_presets().recipe_rows}
    recipe = recipes[inputs["training_recipe"]]
    if not recipe["run_storage"]:
        known = ", ".join(name for name, row in recipes.items() if row["run_storage"])
        raise ValueError(
            f"training_recipe is {inputs['training_recipe']!r}, which verify cannot run; it must be one of {known}"
        )
    if inputs["gpu_count"] != 1:
        raise ValueError(f"gpu_count is {inputs['gpu_count']}; it must be 1, for verify runs one card")
    alone = {**_ALONE, **({"embedding_in_fp32": "Off"} if recipe["narrow_state"] else {})}
    for key, value in alone.items():
        if inputs[key] != value:
            raise ValueError(f"{key} is {inputs[key]!r}; it must be {value!r} where verify runs the job")
    return {
        **{key: value for key, value in inputs.items() if key in input_names("full")},
        **dict(zip(_OF_A_RUN, (recipe["run_storage"], recipe["run_optimizer"]), strict=True)),
    }


def same_step(recipe: Any, other: Any) -> bool:
    """Whether two recipes are stepped by the same run: they differ in name alone."""
    steps = {_stepped(row) for row in load_presets().recipe_rows if row["name"] in (recipe, other)}
    return len(steps) == 1 and ("", "") not in steps


def _stepped(row: Mapping[str, Any]) -> tuple[str, str]:
    """How a run of a recipe stores its weights and which optimizer trains them; empty where no run has the recipe."""
    return row["run_storage"].casefold(), row["run_optimizer"].casefold()


def _default(key: str) -> Any:
    return declared("training" if key == "parameter_storage" else "full").inputs[key].default

"""A run in stages, each with limits and a rule for stopping: nothing long begins before something short has worked."""

from typing import Any

from ..formula.declare import Input, Number, Whole, term
from ..formula.primitives import maximum

_STAGE = "Hours on the cards at most, as a share of the long run's; never less than a start-up."
_KEPT = "Checkpoints of the stage that may be on disk at once."
correctness_share = Input("share", Number(0, 10), 0.005, "Correctness, hours", _STAGE, follows_job=False)
feasibility_share = Input("share", Number(0, 10), 0.02, "Feasibility, hours", _STAGE, follows_job=False)
quality_share = Input("share", Number(0, 10), 0.2, "Quality, hours", _STAGE, follows_job=False)
correctness_checkpoints = Input("count", Whole(0, 10_000), 0, "Correctness, checkpoints", _KEPT, follows_job=False)
feasibility_checkpoints = Input("count", Whole(0, 10_000), 1, "Feasibility, checkpoints", _KEPT, follows_job=False)
quality_checkpoints = Input("count", Whole(0, 10_000), 2, "Quality, checkpoints", _KEPT, follows_job=False)


@term("hours")
def correctness_hours(occupied_hours: Any, correctness_share: Any, first_startup_hours: Any) -> Any:
    """Limit of the first stage: one batch is learnt by heart, a checkpoint is read back."""
    return maximum(occupied_hours * correctness_share, first_startup_hours)


@term("hours")
def feasibility_hours(occupied_hours: Any, feasibility_share: Any, first_startup_hours: Any) -> Any:
    """Limit of the second stage: memory and speed are as planned over some hundred steps."""
    return maximum(occupied_hours * feasibility_share, first_startup_hours)


@term("hours")
def quality_hours(occupied_hours: Any, quality_share: Any, first_startup_hours: Any) -> Any:
    """Limit of the third stage: a part of the data makes the model better by the evaluation that counts."""
    return maximum(occupied_hours * quality_share, first_startup_hours)


@term("hours")
def long_run_hours(occupied_hours: Any, billed_share: Any) -> Any:
    """Limit of the last stage: the run, with failed ones and idling."""
    return occupied_hours * billed_share


@term("GB")
def correctness_gb(dataset_gb: Any, checkpoint_gb: Any, correctness_checkpoints: Any) -> Any:
    """Disk of the first stage."""
    return dataset_gb + checkpoint_gb * correctness_checkpoints


@term("GB")
def feasibility_gb(dataset_gb: Any, checkpoint_gb: Any, feasibility_checkpoints: Any) -> Any:
    """Disk of the second stage."""
    return dataset_gb + checkpoint_gb * feasibility_checkpoints


@term("GB")
def quality_gb(dataset_gb: Any, checkpoint_gb: Any, quality_checkpoints: Any) -> Any:
    """Disk of the third stage."""
    return dataset_gb + checkpoint_gb * quality_checkpoints


@term("GB")
def long_run_gb(dataset_gb: Any, checkpoints_gb: Any) -> Any:
    """Disk of the last stage."""
    return dataset_gb + checkpoints_gb


@term("hours")
def debugging_hours(correctness_hours: Any, feasibility_hours: Any) -> Any:
    """Hours before anything is learnt: correctness and feasibility."""
    return correctness_hours + feasibility_hours


@term("hours")
def budget_hours(debugging_hours: Any, quality_hours: Any, long_run_hours: Any) -> Any:
    """Hours of all stages together."""
    return debugging_hours + quality_hours + long_run_hours


@term("share")
def debugging_share(debugging_hours: Any, budget_hours: Any, least_duration: Any) -> Any:
    """Share of debugging in all hours."""
    return debugging_hours / maximum(budget_hours, least_duration)

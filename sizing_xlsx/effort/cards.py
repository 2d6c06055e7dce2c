"""Cards of a run whose memory does not depend on how many there are: each holds the whole job."""

from typing import Any

from ..formula.declare import Input, Whole, check, term
from ..memory.shared.card import APART, may_share

gpu_count = Input(
    "count",
    Whole(1, 1024),
    1,
    "Cards",
    "Cards that share the run: each holds the whole job and takes a part of every batch.",
    follows_job=False,
)
gpus_per_node = Input(
    "count",
    Whole(1, 1024),
    8,
    "GPUs per node",
    "Cards of one machine; beyond them, traffic goes over the network.",
    follows_job=False,
)


@check(APART, fault=False)
@term("switch", source="NVIDIA MIG User Guide, Deployment Considerations")
def slices_work_alone(gpus: Any, gpu_row: Any, gpu_count: Any) -> Any:
    """0 when cards that share a step are MIG slices."""
    return may_share(gpus, gpu_row, gpu_count)


@term("bytes")
def model_traffic_within() -> Any:
    """What cards send each other because they share the model: nothing, as each holds it whole."""
    return 0


@term("bytes")
def model_traffic_between() -> Any:
    """The same between nodes: nothing."""
    return 0

"""Cards of a run whose memory does not depend on how many there are: each holds the whole job."""

from ..formula.declare import Input, Whole

gpu_count = Input(
    "count",
    Whole(1, 1024),
    1,
    "Cards",
    "Cards that share the run: each holds the whole job and takes a part of every batch.",
    follows_job=False,
)

"""How many deployments a rate of requests takes: a queueing estimate.

Assumed: requests come at random (Poisson) at the rate of the busiest hour; each takes the mean time with all places
taken; a deployment has as many places as it holds requests of mean length; replicas share one queue. The safety is
that of square-root staffing (Halfin and Whitt 1981): places for the mean load and `queue_safety` roots of it.
"""

from typing import Any

from ..formula.declare import Constant, Input, Number, Whole, term
from ..formula.primitives import either, floor, maximum, minimum, square_root, when

request_rate = Input(
    "count per second",
    Number(0.000001, 1_000_000),
    1,
    "Requests a second",
    "In the busiest hour, of all users together.",
    follows_job=False,
)
load_share = Input(
    "share",
    Number(0.01, 1),
    0.7,
    "Load of a deployment",
    "Share of its speed that is planned for; the rest is headroom for peaks and failures. 0.7 is an assumption.",
    follows_job=False,
)
queue_safety = Input(
    "count",
    Number(0, 10),
    1,
    "Safety of the queue",
    "Roots of the mean load beside it: by Halfin and Whitt 1 lets some 22% of requests wait, 2 some 4%.",
    follows_job=False,
)
user_count = Input(
    "count", Whole(1, 10**10), 1000, "Users", "All who use the service, at whatever time; cost is told of each.",
    follows_job=False,
)  # fmt: skip
mean_load_share = Input(
    "share",
    Number(0.001, 1),
    0.3,
    "Mean over peak",
    "Requests of a month's mean hour over those of its busiest. 0.3 is an assumption.",
    follows_job=False,
)
least_load = Constant(1e-12, "count", "Least load", "keeps a load that is none from dividing by zero", "definition")


@term("count", label="Places of a deployment")
def deployment_places(requests_at_mean: Any, data_parallel: Any) -> Any:
    """Requests of mean length that all engines of a deployment hold at once."""
    return requests_at_mean * data_parallel


@term("bytes")
def stages_weights_read(step_weights_read: Any, pipeline_parallel: Any) -> Any:
    """Weights that the cards of all stages read one after the other for a token."""
    return step_weights_read * pipeline_parallel


@term("seconds", label="A step with all places taken")
def full_step_seconds(
    step_seconds: Any, decode_batch: Any, requests_at_mean: Any, stages_weights_read: Any, live_request_held: Any
) -> Any:
    """A step of an engine with all its places taken, by the bytes that it reads against a step of its users now."""
    now = stages_weights_read + decode_batch * live_request_held
    return step_seconds * maximum(1, (stages_weights_read + requests_at_mean * live_request_held) / now)


@term("seconds", label="Time of a request")
def request_seconds(prompt_seconds: Any, mean_output_tokens: Any, full_step_seconds: Any) -> Any:
    """A mean request from prompt to end, with all places taken, without waiting for one."""
    return prompt_seconds + mean_output_tokens * full_step_seconds


@term("seconds", label="Work of a request")
def request_work_seconds(
    prompt_seconds: Any, mean_output_tokens: Any, full_step_seconds: Any, requests_at_mean: Any, data_parallel: Any
) -> Any:
    """Time for which a mean request keeps a whole deployment busy: its prompt, and its part of the steps."""
    part = mean_output_tokens * full_step_seconds / maximum(1, requests_at_mean)
    return (prompt_seconds + part) / data_parallel


@term("count", label="Requests in progress")
def offered_load(request_rate: Any, request_seconds: Any) -> Any:
    """Requests in progress at once in the busiest hour, on average (Little's law)."""
    return request_rate * request_seconds


@term("count", label="Places with safety")
def wanted_places(offered_load: Any, queue_safety: Any, least_load: Any) -> Any:
    """Places for the mean load and the safety of the queue."""
    return offered_load + queue_safety * square_root(maximum(offered_load, least_load))


@term("count", label="Deployments by places")
def replicas_by_places(wanted_places: Any, deployment_places: Any) -> Any:
    """Deployments that have so many places."""
    return 0 - floor(0 - wanted_places / maximum(1, deployment_places))


@term("count", label="Deployments by speed")
def replicas_by_speed(request_rate: Any, request_work_seconds: Any, load_share: Any) -> Any:
    """Deployments that are fast enough at the load that is planned for."""
    return 0 - floor(0 - request_rate * request_work_seconds / load_share)


@term("switch")
def replicas_known(peaks_known: Any, deployment_places: Any, capacity_known: Any, kv_room: Any,
                   maximum_request_held: Any) -> Any:  # fmt: skip
    """1 when a deployment starts, holds at least one request, and its speed is known."""
    starts = when((kv_room > 0) & (kv_room >= maximum_request_held) & (deployment_places > 0), 1, 0)
    return peaks_known * capacity_known * starts


@term("count")
def replica_count(replicas_by_places: Any, replicas_by_speed: Any) -> Any:
    """Deployments that the busiest hour takes."""
    return maximum(1, replicas_by_places, replicas_by_speed)


@term("count", label="Deployments")
def replicas(replicas_known: Any, replica_count: Any) -> Any:
    """Deployments that the rate of requests takes, with headroom; "not known" where one does not start."""
    return either(replicas_known > 0, replica_count, "not known")


@term("count", label="Cards of all deployments")
def replica_gpus(replicas_known: Any, replica_count: Any, gpu_count: Any) -> Any:
    """Cards of all deployments together."""
    return either(replicas_known > 0, replica_count * gpu_count, "not known")


@term("share", label="Load in the busiest hour")
def busiest_load(replicas_known: Any, request_rate: Any, request_work_seconds: Any, replica_count: Any) -> Any:
    """Share of their speed at which all deployments work in the busiest hour."""
    return either(replicas_known > 0, minimum(1, request_rate * request_work_seconds / replica_count), "not known")

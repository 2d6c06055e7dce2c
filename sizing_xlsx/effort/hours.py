"""The hours of a run: training at three speeds, and what comes on top."""

from typing import Any

from ..formula.declare import DAY, Constant, Input, Number, check, term
from ..formula.primitives import either, given, maximum, when

_META = "Llama Team 2024, The Llama 3 herd of models: 419 unexpected interruptions in 54 days on 16,384 H100"
seconds_per_hour = Constant(3600, "seconds per hour", "Seconds of an hour", "definition", "definition")
hours_per_day = Constant(24, "hours per day", "Hours of a day", "definition", "definition")
least_speed = Constant(
    1e-9, "tokens per second", "Least speed", "keeps a speed that is not known from dividing by zero", "definition"
)
least_duration = Constant(
    1e-9, "hours", "Least duration", "keeps hours that are none from dividing by zero", "definition"
)
startup_hours = Input(
    "hours",
    Number(0, 1000),
    0.25,
    "Start-up",
    "Machine, environment, loading and compiling, before the first step; once more after each interruption.",
    follows_job=False,
)
data_hours = Input(
    "hours",
    Number(0, 100_000),
    0,
    "Data processing",
    "Cleaning and tokenising before the run, on other machines: it takes time and no card.",
    follows_job=False,
)
evaluation_share = Input(
    "share",
    Number(0, 10),
    0.05,
    "Evaluation",
    "Time of evaluations during the run, as a share of training.",
    follows_job=False,
)
gpu_hours_between_interruptions = Input(
    "hours",
    Number(0.1, 1e9),
    50_000,
    "Between interruptions",
    "Card hours from one interruption to the next: some 50,000 in a large cluster, far fewer on spot machines.",
    follows_job=False,
)
idle_share = Input(
    "share",
    Number(0, 10),
    0.1,
    "Idle",
    "Hours that cards are rented and do nothing, as a share of those of the run.",
    follows_job=False,
)
failed_share = Input(
    "share",
    Number(0, 10),
    0.1,
    "Failed runs",
    "Hours of runs that are thrown away, as a share of those of the run.",
    follows_job=False,
)
today_date = Input(
    "date",
    DAY,
    None,
    "Today",
    "The day on which the plan is made; no formula reads the clock.",
    follows_job=False,
    optional=True,
)
deadline_date = Input(
    "date",
    DAY,
    None,
    "Deadline",
    "The day by which the run must be done; empty: none.",
    follows_job=False,
    optional=True,
)


@term("hours")
def training_hours_slow(
    speed_known: Any,
    processed_tokens: Any,
    slow_computed_per_second: Any,
    least_speed: Any,
    seconds_per_hour: Any,
    binding_traffic_hours: Any,
) -> Any:
    """Training alone at the low share: its work or its traffic, whichever takes longer; 0 where no speed is known."""
    work = processed_tokens / maximum(slow_computed_per_second, least_speed) / seconds_per_hour
    return speed_known * maximum(work, binding_traffic_hours)


@term("hours")
def training_hours(
    speed_known: Any,
    processed_tokens: Any,
    computed_per_second: Any,
    least_speed: Any,
    seconds_per_hour: Any,
    binding_traffic_hours: Any,
) -> Any:
    """Training alone as expected: its work or its traffic, whichever takes longer; 0 where no speed is known."""
    work = processed_tokens / maximum(computed_per_second, least_speed) / seconds_per_hour
    return speed_known * maximum(work, binding_traffic_hours)


@term("hours")
def training_hours_fast(
    speed_known: Any,
    processed_tokens: Any,
    fast_computed_per_second: Any,
    least_speed: Any,
    seconds_per_hour: Any,
    binding_traffic_hours: Any,
) -> Any:
    """Training alone at the high share: its work or its traffic, whichever takes longer; 0 where no speed is known."""
    work = processed_tokens / maximum(fast_computed_per_second, least_speed) / seconds_per_hour
    return speed_known * maximum(work, binding_traffic_hours)


@term("tokens per second")
def slow_tokens_per_second(
    speed_known: Any, processed_tokens: Any, training_hours_slow: Any, seconds_per_hour: Any, least_duration: Any
) -> Any:
    """Tokens a second of all cards at the low share, waiting for traffic counted; 0 where no speed is known."""
    return speed_known * processed_tokens / (maximum(training_hours_slow, least_duration) * seconds_per_hour)


@term("tokens per second")
def tokens_per_second(
    speed_known: Any, processed_tokens: Any, training_hours: Any, seconds_per_hour: Any, least_duration: Any
) -> Any:
    """Tokens a second of all cards as expected, waiting for traffic counted; 0 where no speed is known."""
    return speed_known * processed_tokens / (maximum(training_hours, least_duration) * seconds_per_hour)


@term("tokens per second")
def fast_tokens_per_second(
    speed_known: Any, processed_tokens: Any, training_hours_fast: Any, seconds_per_hour: Any, least_duration: Any
) -> Any:
    """Tokens a second of all cards at the high share, waiting for traffic counted; 0 where no speed is known."""
    return speed_known * processed_tokens / (maximum(training_hours_fast, least_duration) * seconds_per_hour)


@term("share")
def stall_share(stall_seconds: Any, checkpoint_interval_hours: Any, seconds_per_hour: Any) -> Any:
    """Time that training waits for checkpoints, as a share of training."""
    return stall_seconds / seconds_per_hour / checkpoint_interval_hours


@term("share", source=_META)
def interruption_share(
    gpu_count: Any, gpu_hours_between_interruptions: Any, checkpoint_interval_hours: Any, startup_hours: Any
) -> Any:
    """Time lost to interruptions, as a share of training: half an interval's work and a start-up for each."""
    return gpu_count / gpu_hours_between_interruptions * (checkpoint_interval_hours / 2 + startup_hours)


@term("share")
def overhead_share(evaluation_share: Any, stall_share: Any, interruption_share: Any) -> Any:
    """Evaluation, stalls and interruptions, as a share of training."""
    return evaluation_share + stall_share + interruption_share


@term("hours")
def occupied_hours_slow(training_hours_slow: Any, overhead_share: Any, first_startup_hours: Any) -> Any:
    """Hours on the cards at the low share: start-up, training and what comes on top; 0 where no speed is known."""
    return training_hours_slow * (1 + overhead_share) + first_startup_hours


@term("hours")
def occupied_hours(training_hours: Any, overhead_share: Any, first_startup_hours: Any) -> Any:
    """Hours on the cards as expected: start-up, training and what comes on top; 0 where no speed is known."""
    return training_hours * (1 + overhead_share) + first_startup_hours


@term("hours")
def occupied_hours_fast(training_hours_fast: Any, overhead_share: Any, first_startup_hours: Any) -> Any:
    """Hours on the cards at the high share: start-up, training and what comes on top; 0 where no speed is known."""
    return training_hours_fast * (1 + overhead_share) + first_startup_hours


@term("hours")
def evaluation_hours(training_hours: Any, evaluation_share: Any) -> Any:
    """Evaluations of the run as expected."""
    return training_hours * evaluation_share


@term("hours")
def stall_hours(training_hours: Any, stall_share: Any) -> Any:
    """Waiting for checkpoints, as expected."""
    return training_hours * stall_share


@term("hours")
def interruption_hours(training_hours: Any, interruption_share: Any) -> Any:
    """Lost to interruptions, as expected."""
    return training_hours * interruption_share


@term("hours")
def first_startup_hours(startup_hours: Any, speed_known: Any) -> Any:
    """Start-up of the run, those after interruptions apart."""
    return startup_hours * speed_known


@term("share")
def training_part(training_hours: Any, occupied_hours: Any, least_duration: Any) -> Any:
    """Training in the hours on the cards."""
    return training_hours / maximum(occupied_hours, least_duration)


@term("share")
def evaluation_part(evaluation_hours: Any, occupied_hours: Any, least_duration: Any) -> Any:
    """Evaluation in the hours on the cards."""
    return evaluation_hours / maximum(occupied_hours, least_duration)


@term("share")
def stall_part(stall_hours: Any, occupied_hours: Any, least_duration: Any) -> Any:
    """Waiting for checkpoints in the hours on the cards."""
    return stall_hours / maximum(occupied_hours, least_duration)


@term("share")
def interruption_part(interruption_hours: Any, occupied_hours: Any, least_duration: Any) -> Any:
    """Interruptions in the hours on the cards."""
    return interruption_hours / maximum(occupied_hours, least_duration)


@term("share")
def startup_part(first_startup_hours: Any, occupied_hours: Any, least_duration: Any) -> Any:
    """Start-up in the hours on the cards."""
    return first_startup_hours / maximum(occupied_hours, least_duration)


@term("hours", label="Run, slow")
def run_hours_slow(speed_known: Any, data_hours: Any, occupied_hours_slow: Any) -> Any:
    """From the first hour of data to the last checkpoint at the low share; "not known" where no speed is."""
    return either(speed_known > 0, data_hours + occupied_hours_slow, "not known")


@term("hours")
def elapsed_hours(data_hours: Any, occupied_hours: Any) -> Any:
    """From the first hour of data to the last checkpoint as expected, where a speed is known."""
    return data_hours + occupied_hours


@term("hours", label="Run, expected")
def run_hours(speed_known: Any, elapsed_hours: Any) -> Any:
    """From the first hour of data to the last checkpoint as expected; "not known" where no speed is."""
    return either(speed_known > 0, elapsed_hours, "not known")


@term("hours", label="Run, fast")
def run_hours_fast(speed_known: Any, data_hours: Any, occupied_hours_fast: Any) -> Any:
    """From the first hour of data to the last checkpoint at the high share; "not known" where no speed is."""
    return either(speed_known > 0, data_hours + occupied_hours_fast, "not known")


@term("hours", label="Card hours")
def gpu_hours(speed_known: Any, gpu_count: Any, occupied_hours: Any) -> Any:
    """Hours of all cards together as expected; "not known" where no speed is."""
    return either(speed_known > 0, gpu_count * occupied_hours, "not known")


@term("share")
def billed_share(idle_share: Any, failed_share: Any) -> Any:
    """Hours billed for each hour of the run: with those of failed runs and those of idling."""
    return 1 + idle_share + failed_share


@term("hours")
def billed_gpu_hours(gpu_count: Any, occupied_hours: Any, billed_share: Any) -> Any:
    """Card hours that are paid for, as expected."""
    return gpu_count * occupied_hours * billed_share


@term("date")
def deadline_day(deadline_date: Any) -> Any:
    """The deadline, as sheets count days; 0 where none is entered."""
    return given(deadline_date, 0)


@term("date")
def plan_day(today_date: Any) -> Any:
    """The day of the plan, as sheets count days; 0 where none is entered."""
    return given(today_date, 0)


@term("switch")
def dates_entered(deadline_day: Any, plan_day: Any) -> Any:
    """1 when both the deadline and the day of the plan are entered."""
    return when((deadline_day > 0) & (plan_day > 0), 1, 0)


@term("days")
def days_left(deadline_day: Any, plan_day: Any, dates_entered: Any) -> Any:
    """From the day of the plan to the deadline; 0 where one of them is not entered."""
    return (deadline_day - plan_day) * dates_entered


@term("days")
def days_needed(elapsed_hours: Any, hours_per_day: Any) -> Any:
    """Days that the run takes as expected, day and night."""
    return elapsed_hours / hours_per_day


@term("days")
def days_late(days_left: Any) -> Any:
    """From a deadline that is over to the day of the plan; 0 where it is not over."""
    return maximum(0, 0 - days_left)


@check(
    "deadline_date is {deadline_day}, {days_late} {days_late:day|days} before today_date {plan_day}; it must"
    " not be before it, so enter a later day, or the day on which the plan is made"
)
@term("switch")
def deadline_ahead(days_left: Any) -> Any:
    """1 when the deadline is not before today."""
    return when(days_left < 0, 0, 1)


@check("deadline_date is {deadline_day} without today_date; enter the day of the plan, as no formula reads the clock")
@term("switch")
def today_entered(deadline_day: Any, dates_entered: Any) -> Any:
    """1 when the deadline has a day that it is counted from."""
    return when(deadline_day > 0, dates_entered, 1)


@check(
    "deadline_date {deadline_day} leaves {days_left} {days_left:day|days} from today_date {plan_day} and the run"
    " takes {days_needed:.1f}; more or faster cards would help",
    fault=False,
)
@term("switch")
def run_in_time(dates_entered: Any, days_left: Any, days_needed: Any) -> Any:
    """1 when the run as expected ends by the deadline, or none is entered."""
    return when((dates_entered > 0) & (days_needed > days_left), 0, 1)

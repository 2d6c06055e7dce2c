"""The graphs of a capacity plan: one for each kind of job, and those of what is added to them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from ..formula.job import Job
from ..jobs import plain_job
from ..presets.catalogue import Presets

KINDS = ("lora", "training", "full", "sized")  # in the order of the table job_kinds
# What the rest of the plan takes of a job, under the names of its terms.
TAKEN = (
    "verdict_code", "total_reserved_gb", "occupied_hours", "billed_gpu_hours", "card_rent", "transfer_cost",
    "storage_cost", "engineering_cost", "price_known", "speed_known",
)  # fmt: skip
OFFERED = ("verdict_code", "card_rent", "price_known", "speed_known")  # of a job on an offered card
ON_CARD = ("gpu_choice", "gpu_count", "own_price_per_hour", "own_price_date")  # inputs that an offer sets
_SIZE = ("batch_size", "sequence_length", "activation_checkpointing")
_DATA = ("training_tokens", "training_examples", "epoch_count")
# Column of the plan -> the input of the job that it is, where it is called otherwise.
CALLED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "lora": {"recipe": "base_storage_format"},
        "training": {"recipe": "parameter_storage"},
        "full": {"recipe": "training_recipe"},
        "sized": {},
    }
)
# Columns that a row of each kind reads; what a kind does not read may hold anything.
COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "lora": ("base_model", "recipe", "lora_rank", "sharding_stage", *_SIZE, *_DATA),
        "training": ("base_model", "recipe", *_SIZE, *_DATA),
        "full": ("base_model", "recipe", "sharding_stage", *_SIZE, *_DATA),
        "sized": ("sized_peak_gb", "sized_total_gb", "sized_hours"),
    }
)
_OF_DATES = ("deadline_ahead", "today_entered", "use_in_order")  # and the use of a fleet
# Disks of a row are paid by the month, and once for all of its runs.
FIXED: Mapping[str, Any] = MappingProxyType({"storage_months": 1})


def input_of(kind: str, column: str) -> str:
    """The input of a kind of job that a column of the plan is."""
    return CALLED[kind].get(column, column)


def column_inputs(kind: str) -> tuple[str, ...]:
    """The inputs of a kind of job that its columns and the cards of its row set."""
    return (*(input_of(kind, column) for column in COLUMNS[kind]), *ON_CARD)


def kind_job(kind: str, presets: Presets) -> Job:
    """The graph of one kind of job: that of its sizing workbook, or of a job that was sized elsewhere."""
    if kind != "sized":
        return plain_job(kind, presets)
    from ..effort import price
    from ..memory.shared import units
    from . import sized

    return Job("sized", (units, sized), presets.tables, beside=((price,),))


def rules_of(job: Job) -> tuple[str, ...]:
    """The checks of a kind of job that withdraw what the plan takes of it; dates are checked by the row itself."""
    return tuple(key for key in job.rules_of(TAKEN) if key not in _OF_DATES)


def offer_rules(job: Job) -> tuple[str, ...]:
    """Those of them that depend on the card or on how many there are."""
    moving = job.depends_on(ON_CARD)
    return tuple(key for key in rules_of(job) if key in moving)


def row_job(presets: Presets) -> Job:
    """What a row takes, over the whole plan and in a month."""
    from . import demand, month, window

    return Job("plan row", (window, demand, month), presets.tables)


def offer_job(presets: Presets) -> Job:
    """What an offer would cost a row."""
    from . import offer

    return Job("plan offer", (offer,), presets.tables)


def load_job(presets: Presets) -> Job:
    """Cards needed at once, of one kind in one month."""
    from . import load

    return Job("plan load", (load,), presets.tables)


def fleet_job(presets: Presets) -> Job:
    """What to buy and what to rent, of one kind of card."""
    from ..effort import price
    from . import fleet

    return Job("plan fleet", (fleet,), presets.tables, beside=((price,),))


class Graphs:
    """All graphs of a plan over one set of presets."""

    def __init__(self, presets: Presets) -> None:
        self.presets = presets
        self.kinds = {kind: kind_job(kind, presets) for kind in KINDS}
        self.row, self.offer = row_job(presets), offer_job(presets)
        self.load, self.fleet = load_job(presets), fleet_job(presets)


@lru_cache(maxsize=2)
def graphs() -> Graphs:
    """The graphs over the presets that travel with the package."""
    from ..presets.catalogue import load_presets

    return Graphs(load_presets())

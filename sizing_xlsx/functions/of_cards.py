"""Functions of the catalogue's cards."""

from __future__ import annotations

from typing import Any

from .desk import Desk, Values
from .faults import UNKNOWN, WRONG, Fault
from .kinds import OfCard
from .names import Names
from .registry import CONTAINS, H100, contained, register
from .signature import NUMBER, TABLE, Function, Own, Result


def _card_fields(desk: Desk, job_name: str) -> dict[str, str]:
    return dict(desk.vocabulary.gpu_fields)


def _card(desk: Desk, values: Values) -> Any:
    name = desk.names("gpus").resolve("gpu", values["gpu"], UNKNOWN)
    row = next(row for row in desk.presets.gpu_rows if row["name"] == name)
    field = Names(tuple(desk.vocabulary.gpu_fields), "field").resolve("field", values.get("field", "usable_gb"), WRONG)
    column = desk.vocabulary.gpu_fields[field]
    if column == "usable_gb":
        value = row["usable_bytes"] and row["usable_bytes"] / float(desk.job("lora").constants["bytes_per_gb"].value)
    else:
        value = row[column]
    if value in (None, ""):
        raise Fault(UNKNOWN, f"{field} of {name} is not known")
    return value


register(
    Function(
        "GPU_INFO",
        "A figure of a card; its usable memory in decimal GB where no field is named.",
        ("gpu",),
        (Own("field", "usable_gb", "Which figure of the card.", _card_fields),),
        (),
        1,
        Result(NUMBER, "by the field's name"),
        _card,
        OfCard("field"),
        ({"gpu": H100}, {"gpu": H100, "field": "bandwidth_gb_per_s"}),
    )
)


def _cards(desk: Desk, values: Values) -> list[list[Any]]:
    keep = contained(values)
    gb = float(desk.job("lora").constants["bytes_per_gb"].value)
    rows = [
        [row["name"], row["usable_bytes"] / gb if row["usable_bytes"] else None, row["price_usd_per_hour"]]
        for row in desk.presets.gpu_rows
        if keep(row["name"])
    ]
    if not rows:
        raise Fault(UNKNOWN, f"contains is {values['contains']!r}; no card has that in its name")
    return [["Card", "Usable GB", "USD per hour"], *rows]


register(
    Function(
        "GPU_LIST",
        "The cards of the catalogue: name, usable memory in decimal GB, listed price in USD per hour.",
        (), (CONTAINS,), (), 0, Result(TABLE), _cards, None, ({"contains": "H100"},),
    )
)  # fmt: skip

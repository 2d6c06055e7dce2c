"""The plan's workbook in the making: its graphs, its settings, its cards and offers, and the grid of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ...capacity import kinds
from ...formula.declare import Choice, Constant, Input
from ...formula.domains import day_of
from ...formula.engine import value_of
from ...formula.render import public_name, ranges_in
from ...planning.row_states import States
from ..book import Book, Raw, told
from ..jobtable import NOT_GIVEN, JobTable
from .grid import FIRST, Grid, Values

if TYPE_CHECKING:
    from ...presets.catalogue import Presets
    from ..provenance import Provenance

JOBS, CARDS, MONTHS, FLEET, SUMMARY, SETTINGS = "Jobs", "Cards", "Months", "Fleet", "Summary", "Settings"
OFFERS, ROWS, MONTH_ROWS, LIST = "Offers", "Row workings", "Month workings", "Plan workings"
KIND_SHEETS = {"lora": "LoRA workings", "training": "Training workings", "full": "Full workings",
               "sized": "Sized workings"}  # fmt: skip
ROW_COUNT, CARD_COUNT, OFFER_COUNT, TEAM_COUNT, MONTH_COUNT = 60, 10, 12, 6, 12
WEIGHTS = 6  # row of Row workings, from 0, that counts columns from the last
DAYS = ("first_month", "last_month", "deadline_date")  # columns of rows that are dates


class Slot(NamedTuple):
    """One offer as the workbook opens: card and cards, and the terms of each kind that follow from it alone."""

    card: str
    cards: int
    values: Mapping[str, Mapping[str, Any]]


class PlanBook(Book):
    """See write_plan() in build.py for the order in which its sheets are made."""

    row_results: list[Values]
    totals: dict[str, Any]
    teams: list[str]
    left_out_told: str
    loads: list[list[dict[str, Any]]]  # card by card, month by month
    floors: list[dict[str, Any]]
    fleet: JobTable
    fleet_values: list[dict[str, Any]]
    fleet_sums: dict[str, float]
    spend_by_month: list[float]

    def __init__(
        self,
        path: Path | BinaryIO,
        template: Mapping[str, Any],
        presets: Presets,
        version: str,
        data_date: str,
        provenance: Provenance,
        graphs: kinds.Graphs,
        rows: int = ROW_COUNT,
    ) -> None:
        from .kind import Kind

        super().__init__(path, graphs.row, template, presets, version, data_date, provenance)
        self.graphs = graphs
        cards = [card["name"] for card in template["cards"]]
        self.states = States(graphs, template["states"], cards)
        self.shared: dict[str, Input] = {}
        self.opened: dict[str, Any] = {}
        owners = (graphs.row, graphs.fleet, *graphs.kinds.values())
        for section in template["settings"]:
            for key in section["rows"]:
                declared = next(job.inputs[key] for job in owners if key in job.inputs)
                self.shared[key] = declared
                opened = template["opens"].get(key, None if key == "today_date" else declared.default)
                self.opened[key] = day_of(opened) if isinstance(opened, date) else opened
        self.constants: dict[str, Constant] = {}
        self.row_steady: list[str] = []
        self.row_values: dict[str, Any] = {}
        self.plan_days = self._calendar()
        self.grid = Grid(rows)
        self.card_rows = self._cards()
        self.kinds = {kind: Kind(self, kind, sheet) for kind, sheet in KIND_SHEETS.items()}
        used = {found for kind in self.kinds.values() for found in kind.used_columns()}
        for job in (graphs.fleet, graphs.row, graphs.load, graphs.offer):
            used |= {found for tree in job.trees.values() for found in ranges_in(tree)}
        self.used_columns = {*used, ("verdicts", "shown"), ("gpus", "usable_bytes"), ("gpus", "price_usd_per_hour")}
        names = {table for table, _ in self.used_columns} | {"job_kinds"}
        declared_inputs = [*self.shared.values()]
        for kind in self.kinds.values():
            declared_inputs += [kind.job.inputs[key] for key in (*kind.settings, *kind.row_inputs)]
        names |= {each.domain.table for each in declared_inputs if isinstance(each.domain, Choice)}
        self.used_tables = {name: table for name, table in presets.tables.items() if name in names}
        self.offers = self._offers()

    # ------------------------------------------------------------------ what it opens on
    def settings_value(self, kind: str, key: str) -> Any:
        """What a setting opens on, as cells hold it in force; "" of kind: one that all kinds share."""
        value = self.opened[key] if key in self.shared else self.kinds_opened(kind)[key]
        return NOT_GIVEN if value is None else value

    def kinds_opened(self, kind: str) -> Mapping[str, Any]:
        """What the inputs of a kind open on."""
        job = self.graphs.kinds[kind]
        return {**job.defaults(), **self.template["kinds"][kind]["inputs"], **kinds.FIXED}

    def _cards(self) -> list[dict[str, Any]]:
        found = []
        for card in self.template["cards"]:
            day = card.get("price_date")
            found.append(
                {
                    "name": card["name"],
                    "price": card.get("price", NOT_GIVEN),
                    "date": NOT_GIVEN if day is None else day_of(day),
                    "purchase": card.get("purchase_price", self.opened["purchase_price"]),
                    "typed": card,
                }
            )
        return found

    def _calendar(self) -> dict[str, Any]:
        """Days of the plan, as the row's graph calls them, and its months."""
        job, start = self.graphs.row, self.opened["plan_start"]
        first = int(job.scalar(("first_asked",))(first_month=start, plan_start=start)[0])
        self.months = [first]
        for _ in range(MONTH_COUNT):
            self.months.append(int(job.scalar(("next_month_day",))(month_day=self.months[-1])[0]))
        today = self.opened["today_date"]
        return {
            "today_date": NOT_GIVEN if today is None else today, "plan_start": first, "plan_end": self.months[-1],
        }  # fmt: skip

    def rank_area(self) -> str:
        """The money of all rows, as formulas of Row workings have it."""
        from ..scenarios import letters

        column = letters(self.grid.places["spend"][1])
        return f"${column}${FIRST + 1}:${column}${self.grid.last + 1}"

    def bound_cell(self, column: str, which: str) -> str:
        """The cell with the lowest or the highest number that a column of Jobs may hold."""
        from .lists import bound_cell

        return bound_cell(column, which)

    def weights(self, keys: Sequence[str]) -> str:
        """Cells above some columns of Row workings that count them from the last."""
        from ..scenarios import letters

        first, last = (letters(self.grid.places[key][1]) for key in (keys[0], keys[-1]))
        return f"${first}${WEIGHTS + 1}:${last}${WEIGHTS + 1}"

    def card_of(self, name: str) -> dict[str, Any]:
        """A card of the plan by its name."""
        return next(card for card in self.card_rows if card["name"].casefold() == name.casefold())

    def _offers(self) -> list[Slot]:
        found = []
        for offer in self.template["offers"]:
            card, values = self.card_of(offer["card"]), {}
            for name, kind in self.kinds.items():
                known = kind.steady_values()
                known |= {
                    "gpu_choice": card["name"], "own_price_per_hour": card["price"], "own_price_date": card["date"],
                }  # fmt: skip
                for key in kind.of_offer:
                    known[key] = value_of(kind.trees[key], known, kind.job.tables)
                values[name] = known
            found.append(Slot(card["name"], offer["cards"], values))
        return found

    # ------------------------------------------------------------------ names
    def constant(self, key: str, facts: Constant, kind: str = "") -> str:
        """The name of a constant; it gets a row of the list of workings. kind: whose own it is where kinds differ."""
        if self.constants.setdefault(key, facts).value != facts.value:
            key = f"{kind}_{key}"
            self.constants[key] = facts
        return public_name(key)

    def offer_cell(self, kind: str, key: str, at: int) -> str:
        """The cell of the sheet Offers with what follows from an offer alone."""
        from .offers import cell_of

        return cell_of(self, kind, key, at)

    def chart_title(self, key: str) -> Raw:
        """The finding of a chart, which its title is linked to."""
        from ...formula.primitives import fixed

        words, totals = self.template["months_sheet"]["charts"][key], self.totals
        name, value = {
            "spend": ("Plan_Total_Spend", totals["spend"]), "hours": ("Plan_Total_Hours", totals["hours"]),
            "peak": ("Plan_Peak_Cards", totals["peak"]),
        }[key]  # fmt: skip
        return told(words["title"], number=Raw(f"=FIXED({name},0)", fixed(value, 0)),
                    currency=Raw("=Currency_Choice_In_Force", self.opened["currency_choice"]))  # fmt: skip

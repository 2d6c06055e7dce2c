"""The plan's workbook in the making: its graphs, its settings, its cards and offers, and the grid of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeGuard

from ...capacity import kinds
from ...formula.declare import Choice, Constant, Input
from ...formula.domains import accept, allowed, day_of
from ...formula.engine import value_of
from ...formula.render import public_name, ranges_in
from ...planning.row_states import States, empty
from ..book import Book, Raw, told
from ..carry.record import area_of
from ..jobtable import NOT_GIVEN, JobTable
from .grid import FIRST, Grid, Values
from .template import NAME, load_plan_template

if TYPE_CHECKING:
    from ...formula.job import Job
    from ...presets.catalogue import Presets
    from ..provenance import Provenance

JOBS, CARDS, MONTHS, FLEET, SUMMARY, SETTINGS = "Jobs", "Cards", "Months", "Fleet", "Summary", "Settings"
OFFERS, ROWS, MONTH_ROWS, LIST = "Offers", "Row workings", "Month workings", "Plan workings"
KIND_SHEETS = {"lora": "LoRA workings", "training": "Training workings", "full": "Full workings",
               "sized": "Sized workings"}  # fmt: skip
ROW_COUNT, CARD_COUNT, OFFER_COUNT, TEAM_COUNT, MONTH_COUNT = 60, 10, 12, 6, 12
WEIGHTS = 6  # row of Row workings, from 0, that counts columns from the last
CARD_NUMBERS = ("price", "price_date", "purchase_price", "purchase_usd")  # of a card, beside its name
DAYS = ("first_month", "last_month", "deadline_date")  # columns of rows that are dates


def in_force(job: Job, key: str, typed: Any) -> Any:
    """What counts of the cell of a setting: what is typed where it is right, else what the input opens on."""
    return job.inputs[key].default if is_wrong(job, key, typed) else accept(job, key, typed)


def is_wrong(job: Job, key: str, typed: Any) -> bool:
    """Whether a cell holds what its input may not be: a text that reads like a number among it."""
    if isinstance(typed, str) and not isinstance(job.inputs[key].domain, Choice):
        return True
    try:
        accept(job, key, typed)
    except ValueError:
        return True
    return False


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Slot(NamedTuple):
    """One offer as the workbook opens: card and cards, and the terms of each kind that follow from it alone.

    right: whether it is one; else it stands for a card of the catalogue that nothing is offered on. typed: its cells.
    """

    card: str
    cards: int
    right: bool
    typed: Mapping[str, Any]
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
        self.shared: dict[str, Input] = {}
        self.opened: dict[str, Any] = {}
        for section in template["settings"]:
            for key in section["rows"]:
                job = self.owner(key)
                self.shared[key] = job.inputs[key]
                self.opened[key] = in_force(job, key, self.typed("", key))
        self.constants: dict[str, Constant] = {}
        self.row_steady: list[str] = []
        self.row_values: dict[str, Any] = {}
        self.plan_days = self._calendar()
        self.grid = Grid(rows)
        self.card_rows = self._cards()
        self.states = States(graphs, template["states"], [card["name"] for card in self.card_rows if card["name"]])
        self.kinds = {kind: Kind(self, kind, sheet) for kind, sheet in KIND_SHEETS.items()}
        faults = [
            is_wrong(kind.job, key, self.typed(name, key)) for name, kind in self.kinds.items() for key in kind.settings
        ]
        self.faults = sum(faults) + sum(is_wrong(self.owner(key), key, self.typed("", key)) for key in self.shared)
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
    def owner(self, key: str) -> Job:
        """The graph whose input a setting is that all kinds share."""
        graphs = (self.graphs.row, self.graphs.fleet, *self.graphs.kinds.values())
        return next(job for job in graphs if key in job.inputs)

    def settings_value(self, kind: str, key: str) -> Any:
        """What a setting opens on, as cells hold it in force; "" of kind: one that all kinds share."""
        value = self.opened[key] if key in self.shared else self.kinds_opened(kind)[key]
        return NOT_GIVEN if value is None else value

    def typed(self, kind: str, key: str, template: Mapping[str, Any] | None = None) -> Any:
        """What stands in the cell of a setting, right or wrong; "" of kind: one that all kinds share."""
        template = template or self.template
        typed = template["kinds"][kind]["inputs"] if kind else template["opens"]
        declared = self.graphs.kinds[kind].inputs[key] if kind else self.shared[key]
        return day_of(typed.get(key, None if key == "today_date" else declared.default))

    def kinds_opened(self, kind: str) -> Mapping[str, Any]:
        """What the inputs of a kind open on."""
        job, typed = self.graphs.kinds[kind], self.template["kinds"][kind]["inputs"]
        return {**job.defaults(), **{key: in_force(job, key, value) for key, value in typed.items()}, **kinds.FIXED}

    def _cards(self) -> list[dict[str, Any]]:
        """Every row of the table of cards: as typed, and as the plan has it; a card that is wrong has no name."""
        rows = [*self.template["cards"], *[{}] * CARD_COUNT][:CARD_COUNT]
        names = [str(card.get("name", "")).casefold() for card in rows]
        found = []
        for card in rows:
            name = str(card.get("name", "")).casefold()
            typed = {key: day_of(value) for key, value in card.items()}
            amounts = [typed.get(key) for key in ("price", "purchase_price", "purchase_usd")]
            right = name in self.job.tables["gpus"].index and names.count(name) == 1
            right = right and all(empty(amount) or (_is_number(amount) and amount >= 0) for amount in amounts)
            numbers = {key: value if _is_number(value := typed.get(key)) else NOT_GIVEN for key in CARD_NUMBERS}
            found.append({**numbers, "name": card["name"] if right else "", "typed": typed})
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

    def card_of(self, name: Any) -> dict[str, Any]:
        """A card of the plan by its name; the first of the catalogue, without a price, where it is none."""
        none = {"name": "", **dict.fromkeys(CARD_NUMBERS, NOT_GIVEN)}
        named = [card for card in self.card_rows if card["name"] and card["name"].casefold() == str(name).casefold()]
        return named[0] if named else none

    def _offers(self) -> list[Slot]:
        found = []
        for offer in [*self.template["offers"], *[{}] * OFFER_COUNT][:OFFER_COUNT]:
            card, count, values = self.card_of(offer.get("card", "")), day_of(offer.get("cards")), {}
            right = bool(card["name"]) and not is_wrong(self.graphs.kinds["sized"], "gpu_count", count)
            card = card if right else self.card_of("")
            on = card["name"] or self.job.tables["gpus"].keys[0]
            for name, kind in self.kinds.items():
                known = kind.steady_values()
                known |= {
                    "gpu_choice": on, "own_price_per_hour": card["price"], "own_price_date": card["price_date"],
                }  # fmt: skip
                for key in kind.of_offer:
                    known[key] = value_of(kind.trees[key], known, kind.job.tables)
                values[name] = known
            found.append(Slot(on, count if right else 1, right, offer, values))
        return found

    # ------------------------------------------------------------------ what its record says
    @property
    def called(self) -> str:
        """Which of the workbooks it is."""
        return NAME

    def standards(self) -> Mapping[str, Sequence[Any]]:
        """What typed cells hold in the plan that opens on the template's own jobs, whatever this one opens on."""
        from .typed import TABLES, setting_names

        template = load_plan_template()
        found = {name: [self.typed(kind, key, template)] for name, (kind, key) in setting_names(template).items()}
        for table, columns in TABLES.items():
            for key, name in columns.items():
                area = area_of(self.defined[name])
                values = [day_of(row[key]) if key in row else None for row in template[table]]
                count = area.last_row - area.first_row + 1
                found[name] = [*values, *[None] * count][:count]
        return found

    def may_be(self, name: str) -> str:
        """What may be typed into the cell of a setting, in words."""
        from .typed import setting_names

        kind, key = setting_names(self.template)[name]
        return allowed(self.graphs.kinds[kind] if kind else self.owner(key), key)

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

"""A capacity plan: a list of jobs becomes cards, hours and money, month by month and team by team.

Every row is sized, timed and priced by the terms of its own job; what is added are the terms of capacity/. A row that
is incomplete, contradicts itself or fits no card is told of in one sentence and left out of every sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from ..capacity import kinds
from ..formula.domains import accept, date_of, day_of
from .row_states import COLUMNS, States, empty

if TYPE_CHECKING:
    from ..capacity.kinds import Graphs
    from ..formula.job import Job

Day = date | str | int | None
LONGEST = 60  # months


class PlanCard(NamedTuple):
    """A card of the plan, with amounts in the plan's currency; where none is given, what is listed or assumed counts.

    price: for an hour, with its date. purchase_price: of one card. purchase_usd: what is assumed of it, in US dollars.
    """

    name: str
    price: float | None = None
    price_date: Day = None
    purchase_price: float | None = None
    purchase_usd: float | None = None


class Offer(NamedTuple):
    """So many of one card, for jobs that name none."""

    card: str
    cards: int


class PlanRow(NamedTuple):
    """What the plan says of one row.

    state: why it is not counted, or what to know of it; "" where there is nothing. verdict: fits, tight, does not fit,
    or "" where the row cannot be sized. offers: rent of a run on each offer, None where it does not fit or is not
    known. by_month: card hours, cards held at once and money of each month. Figures are 0 where the row is not counted.
    """

    name: str
    team: str
    counted: bool
    priced: bool
    state: str
    verdict: str
    gpu_choice: str | None
    gpu_count: int
    hours: float
    run_cost: float
    cards_needed: int
    offers: Sequence[float | None]
    by_month: Sequence[tuple[float, float, float]]

    @property
    def spend(self) -> float:
        """Money over the whole plan."""
        return sum(money for _, _, money in self.by_month)


class CardPlan(NamedTuple):
    """One kind of card: its hours and the cards needed at once by month, and the terms of fleet.py over the plan."""

    name: str
    card_hours: Sequence[float]
    cards_at_once: Sequence[int]
    fleet: Mapping[str, Any]


class CapacityPlan(NamedTuple):
    """The whole plan. months: their first days. Money is in the plan's currency."""

    months: Sequence[date]
    rows: Sequence[PlanRow]
    cards: Sequence[CardPlan]
    spend_by_team: Mapping[str, Sequence[float]]

    @property
    def spend_by_month(self) -> list[float]:
        """Money of all rows in each month."""
        return [sum(row.by_month[at][2] for row in self.rows) for at in range(len(self.months))]

    @property
    def spend(self) -> float:
        """Money of all rows over the whole plan."""
        return sum(self.spend_by_month)

    @property
    def not_counted(self) -> list[PlanRow]:
        """Rows that no sum holds; each says why."""
        return [row for row in self.rows if not row.counted]


def capacity_plan(
    rows: Iterable[Mapping[str, Any]],
    *,
    today: Day = None,
    first_month: Day = None,
    months: int = 12,
    cards: Sequence[PlanCard] | None = None,
    offers: Sequence[Offer] | None = None,
    settings: Mapping[str, Any] | None = None,
    of_kinds: Mapping[str, Mapping[str, Any]] | None = None,
    graphs: Graphs | None = None,
) -> CapacityPlan:
    """Plan a list of jobs.

    rows: each a mapping of columns (COLUMNS of row_states.py: name, team, job_kind, base_model, recipe, …); what
    is left out or None is empty. A wrong row is told of, never raised. today, first_month: dates; the first month is
    that of today, or the one that the workbook opens on. cards, offers: those of the workbook where not given.
    settings: inputs that all kinds share, such as currency_choice or idle_share, by their names in `lora.inputs`.
    of_kinds: kind (lora, training, full, sized) -> inputs of that kind alone.
    Raises ValueError for cards, offers and settings that cannot be used, as Job.size() does.
    """
    return _Planner(today, first_month, months, cards, offers, settings or {}, of_kinds or {}, graphs).plan(rows)


class _Planner:
    """The parts of a plan that no row changes."""

    def __init__(
        self,
        today: Day,
        first_month: Day,
        months: int,
        cards: Sequence[PlanCard] | None,
        offers: Sequence[Offer] | None,
        settings: Mapping[str, Any],
        of_kinds: Mapping[str, Mapping[str, Any]],
        graphs: Graphs | None,
    ) -> None:
        from ..workbook.plan.template import opening

        opens = opening()
        self.opens = opens.inputs_of_plan
        if not isinstance(months, int) or not 1 <= months <= LONGEST:
            raise ValueError(f"months is {months!r}; it must be a whole number from 1 to {LONGEST}")
        self.graphs = graphs or kinds.graphs()
        self.cards = list(cards) if cards is not None else [PlanCard(**card) for card in opens.cards]
        self.offers = list(offers) if offers is not None else [Offer(**offer) for offer in opens.offers]
        row = self.graphs.row
        self.today = accept(row, "today_date", today)
        start = accept(row, "plan_start", first_month or today or day_of(opens.inputs_of_plan["plan_start"]))
        self.days = [_calendar(row, "first_asked", first_month=start, plan_start=start)]
        for _ in range(months):
            self.days.append(_calendar(row, "next_month_day", month_day=self.days[-1]))
        self.inputs = {kind: self._of_kind(kind, settings, of_kinds, opens.inputs) for kind in kinds.KINDS}
        self._check()
        self.states = States(self.graphs, opens.states, [card.name for card in self.cards])
        self.settings = settings

    def _of_kind(
        self,
        kind: str,
        settings: Mapping[str, Any],
        of_kinds: Mapping[str, Mapping[str, Any]],
        opened: Mapping[str, Mapping[str, Any]],
    ) -> dict[str, Any]:
        job = self.graphs.kinds[kind]
        shared = {key: value for key, value in settings.items() if key in job.inputs}
        given = {**opened[kind], **of_kinds.get(kind, {}), **shared}
        return {**job.defaults(), **job.accepted({**given, **kinds.FIXED})}

    def _check(self) -> None:
        """Cards and offers that the catalogue has; a card once; offers of cards of the plan."""
        job, known = self.graphs.kinds["sized"], [card.name.casefold() for card in self.cards]
        for card in self.cards:
            accept(job, "gpu_choice", card.name)
            if known.count(card.name.casefold()) > 1:
                raise ValueError(f"cards has {card.name!r} twice; each card must be there once")
            price = {"own_price_per_hour": card.price, "own_price_date": card.price_date}
            job.size(("price_known",), **price)
        for offer in self.offers:
            accept(job, "gpu_count", offer.cards)
            if offer.card.casefold() not in known:
                raise ValueError(f"offers has {offer.card!r}; it must be one of cards: {', '.join(known)}")

    # ------------------------------------------------------------------ rows
    def plan(self, rows: Iterable[Mapping[str, Any]]) -> CapacityPlan:
        found = [self._row(row) for row in rows]
        teams = {row.team.casefold(): row.team for row in reversed(found) if row.counted}
        by_team = {
            teams[key]: [
                sum(row.by_month[at][2] for row in found if row.team.casefold() == key)
                for at in range(len(self.days) - 1)
            ]
            for key in dict.fromkeys(row.team.casefold() for row in found if row.counted)
        }
        return CapacityPlan(
            [date_of(int(day)) for day in self.days[:-1]],
            found,
            [self._card(card, found) for card in self.cards],
            by_team,
        )

    def _row(self, row: Mapping[str, Any]) -> PlanRow:
        for key in row:
            if key not in COLUMNS:
                raise TypeError(f"{key} is no column of a plan; its columns are {', '.join(COLUMNS)}")
        typed = {key: None if empty(row.get(key)) else row.get(key) for key in COLUMNS}
        for key in ("first_month", "last_month", "deadline_date"):
            typed[key] = day_of(typed[key])
        name, team = (str(typed[key] or "") for key in ("name", "team"))
        nothing = PlanRow(
            name, team or self.states.words["no_team"], False, False, "", "", None, 0, 0.0, 0.0, 0,
            [None] * len(self.offers), [(0.0, 0.0, 0.0)] * (len(self.days) - 1),
        )  # fmt: skip
        if fault := self.states.of_columns(typed):
            return nothing._replace(state=fault)
        kind = self.states.kind(typed)
        when = {
            key: typed[key] for key in ("runs_per_month", "runs_at_once", "first_month", "last_month", "deadline_date")
        }
        when |= {"today_date": self.today, "plan_start": self.days[0], "plan_end": self.days[-1]}
        job = self.graphs.kinds[kind]
        inputs = {**self.inputs[kind], **self.states.inputs(kind, typed)}
        offers = self._offers(job, inputs, typed)
        nothing = nothing._replace(offers=offers)
        if fault := self.states.of_dates(when):
            return nothing._replace(state=fault)
        card, count = self._chosen(typed, offers)
        inputs |= self._on(card, count)
        taken = dict(zip(kinds.TAKEN, job.scalar(kinds.TAKEN)(**inputs), strict=True))
        no_offer = typed["gpu_choice"] is None and all(offer is None for offer in offers)
        verdict = job.tables["verdicts"].columns["word"][taken["verdict_code"] - 1]
        if fault := self.states.of_job(kind, inputs, no_offer=no_offer):
            return nothing._replace(state=fault)
        sized = nothing._replace(verdict=verdict, gpu_choice=card, gpu_count=count)
        if fault := self.states.of_results(taken):
            return sized._replace(state=fault)
        asked = {
            **when,
            **{key: taken[key] for key in kinds.TAKEN if key in self.graphs.row.inputs},
            "gpu_count": count,
        }
        values = self.graphs.row.reference(asked)
        monthly = self.graphs.row.scalar(("month_card_hours", "month_cards", "month_spend"))
        return sized._replace(
            counted=True,
            priced=bool(taken["price_known"]),
            state=self.states.of_note(values, taken),
            hours=taken["occupied_hours"],
            run_cost=values["run_cost"],
            cards_needed=values["cards_needed"],
            by_month=[monthly(**asked, month_day=day) for day in self.days[:-1]],
        )

    def _on(self, card: str, count: int) -> dict[str, Any]:
        """The inputs that put a job on so many of one card, at its price in the plan."""
        at = {each.name.casefold(): each for each in self.cards}.get(card.casefold(), PlanCard(card))
        return {
            "gpu_choice": at.name, "gpu_count": count, "own_price_per_hour": at.price,
            "own_price_date": day_of(at.price_date),
        }  # fmt: skip

    def _offers(self, job: Job, inputs: Mapping[str, Any], typed: Mapping[str, Any]) -> list[float | None]:
        """Rent of a run on each offer that the row leaves open, None where it does not fit or cost is not known."""
        rules = kinds.offer_rules(job)
        sized, cost = job.scalar((*kinds.OFFERED, *rules)), self.graphs.offer.scalar(("offer_cost",))
        found: list[float | None] = []
        for offer in self.offers:
            if typed["gpu_choice"] is not None and offer.card.casefold() != str(typed["gpu_choice"]).casefold():
                found.append(None)
                continue
            count = offer.cards if typed["gpu_count"] is None else typed["gpu_count"]
            values = sized(**{**inputs, **self._on(offer.card, count)})
            results = dict(zip(kinds.OFFERED, values, strict=False))
            kept = min((1, *values[len(kinds.OFFERED) :]))
            told = cost(**results, rules_kept=kept)[0]
            found.append(None if isinstance(told, str) else told)
        return found

    def _chosen(self, typed: Mapping[str, Any], offers: Sequence[float | None]) -> tuple[str, int]:
        """The card and the count in force: those typed, else those of the cheapest offer, else the first to try."""
        costs = [cost for cost in offers if cost is not None]
        cheapest = self.offers[list(offers).index(min(costs))] if costs else None
        first = self.offers[0].card if self.offers else self.graphs.presets.tables["gpus"].keys[0]
        at = cheapest or Offer(first if typed["gpu_choice"] is None else typed["gpu_choice"], 1)
        card = next((each.name for each in self.cards if each.name.casefold() == at.card.casefold()), at.card)
        return card, at.cards if typed["gpu_count"] is None else int(typed["gpu_count"])

    # ------------------------------------------------------------------ cards
    def _card(self, card: PlanCard, rows: Sequence[PlanRow]) -> CardPlan:
        mine = [row for row in rows if row.counted and row.gpu_choice == card.name]
        results = ("month_hours", "whole_month_cards", "cards_at_once")
        hours, load = [], []
        for at, day in enumerate(self.days[:-1]):
            hours.append(sum(row.by_month[at][0] for row in mine))
            largest = max((row.by_month[at][1] for row in mine), default=0)
            load.append(
                self.graphs.load.scalar(results)(
                    card_hours=hours[-1], largest_need=largest, month_day=day, today_date=self.today
                )
            )
        average = min((cards for _, cards, _ in load if not isinstance(cards, str)), default=0)
        fleet = self.graphs.fleet
        shared = {key: value for key, value in self.settings.items() if key in fleet.inputs}
        on = self._on(card.name, 1)
        inputs = fleet.accepted(
            {
                "spare_cards": self.opens["spare_cards"],
                **shared,
                "gpu_choice": card.name,
                "own_price_per_hour": on["own_price_per_hour"],
                "own_price_date": on["own_price_date"],
                **({} if card.purchase_price is None else {"purchase_price": card.purchase_price}),
                "card_purchase_usd": card.purchase_usd,
            }
        )
        inputs |= {"least_average": average, "most_at_once": max((most for _, _, most in load), default=0)}
        inputs |= {"plan_hours": sum(month for month, _, _ in load)}
        floor = fleet.scalar(("floor_cards",))(**inputs)[0]
        inputs["floor_card_hours"] = sum(
            self.graphs.load.scalar(("floor_month_hours",))(card_hours=mine_hours, floor_cards=floor, month_day=day)[0]
            for mine_hours, day in zip(hours, self.days, strict=False)
        )
        values = fleet.reference(inputs)
        return CardPlan(card.name, hours, [most for _, _, most in load], {key: values[key] for key in fleet.order})


def _calendar(job: Job, result: str, **days: Any) -> int:
    return int(job.scalar((result,))(**days)[0])

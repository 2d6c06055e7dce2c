"""`sizing-xlsx plan`: a list of jobs as cards, hours and money, in text or JSON; or as a workbook to plan in."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .output import printed
from .presets.names import counted

if TYPE_CHECKING:
    from .planning import CapacityPlan

_DAYS = ("today_date", "plan_start")
_TEXTS = (
    "name",
    "team",
    "job_kind",
    "base_model",
    "recipe",
    "activation_checkpointing",
    "sharding_stage",
    "gpu_choice",
)


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.description = (
        "Plan a list of jobs: cards, hours and money by month and team. The columns of a CSV are those of the sheet "
        "Jobs: name, team, job_kind, base_model, recipe, batch_size, sequence_length, training_examples, epoch_count, "
        "gpu_choice, gpu_count, runs_per_month, first_month, last_month, deadline_date and others."
    )
    parser.add_argument(
        "jobs",
        nargs="?",
        type=Path,
        metavar="JOBS",
        help="a CSV with one job a row, or a plan that was written before, with all that was typed in it",
    )
    parser.add_argument(
        "--today", metavar="DATE", help="the day of the plan, such as 2026-08-17; no formula reads the clock"
    )
    parser.add_argument("--first-month", metavar="DATE", help="any day of the first of the twelve months")
    parser.add_argument("--json", action="store_true", help="the plan as one JSON object")
    parser.add_argument(
        "--workbook",
        type=Path,
        metavar="FILE",
        help="write the plan as a workbook that opens on these jobs; a file that is there stays",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the plan, or write its workbook."""
    from .planning import Offer, PlanCard, capacity_plan
    from .workbook.plan.template import load_plan_template

    template = load_plan_template()
    if options.jobs and options.jobs.suffix.casefold() == ".xlsx":
        from .workbook.plan.typed import template_of

        template = template_of(options.jobs, template)
    elif options.jobs:
        opens = {key: value for key, value in template["opens"].items() if key != "today_date"}
        template = {**template, "jobs": read_jobs(options.jobs), "opens": opens}
    opens = template["opens"]
    today = options.today or opens.get("today_date")
    start = options.first_month or options.today or opens["plan_start"]
    if options.workbook:
        return _write(options.workbook, template, today, start)
    shown = [key for section in template["settings"] for key in section["rows"]]
    plan = capacity_plan(
        template["jobs"],
        today=today,
        first_month=start,
        cards=[PlanCard(**card) for card in template["cards"] if "name" in card],
        offers=[Offer(**offer) for offer in template["offers"] if len(offer) == len(Offer._fields)],
        settings={key: opens[key] for key in shown if key in opens and key not in _DAYS},
        of_kinds={kind: words["inputs"] for kind, words in template["kinds"].items()},
    )
    printed(json.dumps(as_data(plan), indent=2) if options.json else told(plan))
    return 0


def read_jobs(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV as columns of a plan; ValueError names the file and the column that no plan has."""
    from .planning.row_states import COLUMNS

    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        for column in reader.fieldnames or ():
            if column not in COLUMNS:
                raise ValueError(f"{path}: {column!r} is no column of a plan; its columns are {', '.join(COLUMNS)}")
        return [{key: _value(key, text) for key, text in row.items() if key} for row in reader]


def _value(column: str, text: str | None) -> Any:
    if not text or column in _TEXTS:
        return text or None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _write(path: Path, template: dict[str, Any], today: Any, start: Any) -> int:
    from .planning import capacity_plan
    from .workbook.plan.build import dated, write_plan
    from .workbook.plan.carried import row_count

    if path.exists():
        raise ValueError(f"{path} is there already; a plan is written to a new file, so name another one")
    if path.suffix != ".xlsx":
        raise ValueError(f"--workbook is {str(path)!r}; it must end in .xlsx")
    capacity_plan([], today=today, first_month=start)  # refuses days that are none
    days = {"plan_start": dated(start)} | ({} if today is None else {"today_date": dated(today)})
    opens = {**{key: value for key, value in template["opens"].items() if key != "today_date"}, **days}
    jobs = template["jobs"]
    write_plan(path, {**template, "opens": opens}, rows=row_count(len(jobs)))
    printed(f"{path}: {counted(len(jobs), 'job')}")
    return 0


def as_data(plan: CapacityPlan) -> dict[str, Any]:
    """The plan as what JSON holds."""
    return {
        "months": [month.isoformat() for month in plan.months],
        "spend": plan.spend,
        "spend_by_month": plan.spend_by_month,
        "spend_by_team": {team: list(months) for team, months in plan.spend_by_team.items()},
        "not_counted": len(plan.not_counted),
        "jobs": [
            {key: value for key, value in row._asdict().items() if key not in ("offers", "by_month")}
            | {"spend": row.spend, "spend_by_month": [money for _, _, money in row.by_month]}
            for row in plan.rows
        ],
        "cards": [
            {
                "name": card.name,
                "card_hours": list(card.card_hours),
                "cards_at_once": list(card.cards_at_once),
                **card.fleet,
            }
            for card in plan.cards
        ],
    }


def told(plan: CapacityPlan) -> str:
    """The plan in text: jobs, cards, teams, months."""
    name = max([len(row.name) for row in plan.rows] + [4])
    lines = [f"{'Job':<{name}}  {'Verdict':<13} {'Cards':<28} {'Hours':>9} {'Cost a run':>12} {'Spend':>12}"]
    for row in plan.rows:
        cards = f"{row.gpu_count} x {row.gpu_choice}" if row.gpu_choice else ""
        figures = f"{row.hours:>9,.1f} {row.run_cost:>12,.2f} {row.spend:>12,.0f}" if row.counted else f"{'':>35}"
        lines.append(f"{row.name:<{name}}  {row.verdict or 'check':<13} {cards:<28} {figures}  {row.state}".rstrip())
    lines += ["", f"{'Card':<28} {'Hours':>10} {'At once':>8} {'Buy':>5} {'Spare':>6} {'Rent':>5}  Pays from a use of"]
    for card in plan.cards:
        fleet, use = card.fleet, card.fleet["break_even_utilisation"]
        if any(card.card_hours):
            bought = f"{fleet['cards_bought']:>5} {fleet['spares_bought']:>6} {fleet['cards_rented']:>5}"
            pays = use if isinstance(use, str) else f"{use:.1%}"
            hours = f"{sum(card.card_hours):>10,.0f} {max(card.cards_at_once):>8}"
            lines.append(f"{card.name:<28} {hours} {bought}  {pays}")
    lines += ["", *(f"{team:<28} {sum(months):>12,.0f}" for team, months in plan.spend_by_team.items())]
    lines += [
        "",
        *(
            f"{f'{month:%b %Y}':<28} {money:>12,.0f}"
            for month, money in zip(plan.months, plan.spend_by_month, strict=True)
        ),
    ]
    left = len(plan.not_counted)
    lines += [
        f"{'Total':<28} {plan.spend:>12,.0f}",
        "",
        f"{left} of {counted(len(plan.rows), 'job')} not counted{'; each says why' if left else ''}.",
    ]
    return "\n".join(lines)

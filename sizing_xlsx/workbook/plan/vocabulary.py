"""Which words the sheets of the plan want of its template, and what its tables of data may name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...formula.domains import nearest
from ...planning.row_states import COLUMNS
from ..vocabulary import check_words, parsed_words

if TYPE_CHECKING:
    from ...capacity.kinds import Graphs
    from ...formula.job import Job

# As in ../vocabulary.py, of the sections of plan.toml.
VOCABULARY: Mapping[str, str] = {
    "kinds": """
        lora.name lora.note lora.blank* lora.common* lora.inputs*
        training.name training.note training.blank* training.common* training.inputs*
        full.name full.note full.blank* full.common* full.inputs*
        sized.name sized.note sized.blank* sized.common* sized.inputs*
    """,
    "states": """
        name_label name_right team_label job_kind_label recipe_label base_model_label gpu_count_label
        empty{label,right} wrong{label,value,right} as_text error model_right recipe_right card_right
        or_empty{right} examples_right{right} no_offer too_large no_speed no_capacity tight counted others no_team
    """,
    "settings_sheet": "title sentence wrong{label,value,right} faults",
    "cards_sheet": """
        title sentence cards card_columns* offers offers_note offer_columns* wrong_card no_date no_capacity no_price
        listed wrong_offer card_help offer_help offer_right terms offer term_columns[5]
    """,
    "offers_sheet": "title sentence notes[3] job offer{count,card}",
    "jobs_sheet": """
        title printed* longest* needed below told left_out{count} none_left settings_wrong checks_failed team_right
        results* columns* tiles.spend tiles.counted tiles.counted_note tiles.left tiles.left_note tiles.hours
        tiles.hours_note tiles.peak tiles.peak_note tiles.unpriced tiles.unpriced_note
        help.name help.team help.job_kind help.base_model help.recipe
    """,
    "months_sheet": """
        title sentence spend spend_note team other_teams other_cards data_note all hours hours_note hours_unit card
        peak rule peak_unit floor floor_note average average_note least
        charts.spend.title{number,currency} charts.spend.y charts.spend.alt
        charts.hours.title{number,currency} charts.hours.y charts.hours.data charts.hours.alt
        charts.peak.title{number,currency} charts.peak.y charts.peak.data charts.peak.alt
    """,
    "fleet_sheet": "title sentence notes[2] card all steady",
    "summary_sheet": """
        title sentence{jobs,hours,spend,currency} bought{bought,spares,price,saves,currency} none_bought wrong
        cards cards_note card_columns[6] top top_columns[6] left_out none_left_out assumptions assumption_lines[5]
        rate tiles.spend tiles.purchase tiles.peak tiles.peak_note tiles.left tiles.left_note
    """,
    "checks_sheet": """
        title sentence totals checks failed lines.spend lines.hours lines.used lines.counted lines.not_counted
        lines.unpriced lines.peak lines.told lines.months lines.teams
    """,
    "presets_sheet": "title sentence name models recipes",
    "lists": "title sentence columns[4] months[5] figures[3] figure{kind}",
    "workings": "sentence",
}
_TEXT, _TABLE, _LIST = str, dict, list
SECTIONS: Mapping[str, type] = {
    "file": _TEXT, "title": _TEXT, "subject": _TEXT, "opens": _TABLE, "cards": _LIST, "offers": _LIST,
    "settings": _LIST, "notes": _TABLE, "jobs": _LIST, **dict.fromkeys(VOCABULARY, _TABLE),
}  # fmt: skip
# Lists of several texts each: how many, and the kinds of what each holds. Widths of columns are whole numbers.
_PAIRS = (("cards_sheet", "card_columns", 13), ("cards_sheet", "offer_columns", 9), ("jobs_sheet", "results", 8))
_COLUMN = (str, int, str)
ROWS: Mapping[str, Sequence[str]] = {
    "cards": ("name", "price", "price_date", "purchase_price", "purchase_usd"),
    "offers": ("card", "cards"),
    "settings": ("name", "note", "rows"),
    "jobs": COLUMNS,
}


def check_plan(template: Mapping[str, Any], where: str) -> None:
    """Refuse a template that lacks an entry, has one too many, or another kind of value: ValueError, one sentence."""
    for key in template:
        if key not in SECTIONS:
            raise ValueError(f"{where}: {key} is no entry of a plan's template{nearest(key, tuple(SECTIONS))}")
    words: Mapping[Any, str] = {_TEXT: "a text", _TABLE: "a table", _LIST: "a list"}
    for key, kind in SECTIONS.items():
        if not isinstance(template.get(key), kind):
            found = "missing" if key not in template else repr(template[key])[:60]
            raise ValueError(f"{where}: {key} is {found}; it must be {words[kind]}")
    for section, spec in VOCABULARY.items():
        check_words(section, template[section], f"{where}: {section}", parsed_words(spec))
    for section, key, count in _PAIRS:
        lines = template[section][key]
        if not isinstance(lines, list) or [_kinds(line) for line in lines] != [(str, str)] * count:
            raise ValueError(f"{where}: {section}: {key} must be a list of {count} pairs of texts")
    columns = template["jobs_sheet"]["columns"]
    for column in (*COLUMNS[2:], *columns):
        if column not in COLUMNS[2:]:
            raise ValueError(f"{where}: jobs_sheet: columns.{column} is no column of a plan{nearest(column, COLUMNS)}")
        if _kinds(columns.get(column)) != _COLUMN:
            raise ValueError(f"{where}: jobs_sheet: columns.{column} must be a head, a width and the line below it")
    for table, keys in ROWS.items():
        for at, row in enumerate(template[table], 1):
            for key in row:
                if key not in keys:
                    raise ValueError(f"{where}: {table} {at} has {key}, which none has{nearest(key, tuple(keys))}")
    for at, section in enumerate(template["settings"], 1):
        for key in ROWS["settings"]:
            if key not in section:
                raise ValueError(f"{where}: settings {at} lacks {key}")


def _kinds(line: Any) -> tuple[type, ...]:
    return tuple(type(each) for each in line) if isinstance(line, list) else ()


def check_terms(template: Mapping[str, Any], graphs: Graphs, where: str) -> None:
    """Refuse a template that names an input which no graph of the plan has: ValueError that names it."""
    shared: list[Job] = [graphs.row, graphs.fleet, *graphs.kinds.values()]
    rows = [key for section in template["settings"] for key in section["rows"]]
    _check_inputs(rows, shared, f"{where}: settings")
    for key in template["opens"]:
        if key not in rows:
            raise ValueError(f"{where}: opens has {key}, which is no row of settings{nearest(key, tuple(rows))}")
    for kind, job in graphs.kinds.items():
        spec = template["kinds"][kind]
        for part in ("blank", "common", "inputs"):
            _check_inputs(spec[part], [job], f"{where}: {part} of kinds.{kind}")


def _check_inputs(keys: Any, jobs: Sequence[Job], where: str) -> None:
    known = {key for job in jobs for key in job.inputs}
    for key in keys:
        if key not in known:
            raise ValueError(f"{where} names {key}, which is no input{nearest(key, tuple(sorted(known)))}")

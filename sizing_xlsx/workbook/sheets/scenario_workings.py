"""Scenario workings: the rows of Scenarios as a job table, what is wrong with each, and which cards are in use.

A row's formulas read the same row of Scenarios; down each column they are the same. Beside the table stand two
lists: what a row may hold, input by input, and the cards with the number of jobs on each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...formula.declare import Choice
from ...formula.domains import allowed
from ...formula.expression import Expr
from ...formula.render import column_name, public_name, sheet_formula
from .. import page
from ..book import Raw
from ..inputs import row_fault
from ..jobtable import ROW, write_job_table
from ..scenarios import (
    AS_TYPED,
    CARD_IN_FORCE,
    CHECKS,
    CHOICES,
    FIRST,
    HEADS,
    JOBS_ON_CARD,
    KEYS,
    LABELS,
    LAYERS,
    NAMED,
    ORDER,
    RIGHT,
    TITLE,
    WORKINGS,
    Place,
    Scenario,
    Scenarios,
    area,
    letters,
)
from ..words import filled, quoted, sentence, spelled
from . import checks

if TYPE_CHECKING:
    from ..book import Book

_COUNTS = 3  # row of the first figure of all rows, from 0


def write(book: Book) -> None:
    """The sheet, and the names of what others read from it."""
    scenarios = book.scenarios
    ws, place = book.sheet(WORKINGS), Place(scenarios)
    page.plain_sheet(
        book,
        WORKINGS,
        kind="wide",
        last_column=place.end,
        stamp=False,
        sentence=scenarios.spec["workings"],
        rows_repeated=(0, FIRST - 1),
        freeze=(FIRST, 2),
    )
    rows = [(*_inputs(scenarios, place, at, row),) for at, row in enumerate(scenarios.all)]
    write_job_table(book, WORKINGS, scenarios.table, rows, heading=scenarios.spec["workings_heading"], first_row=FIRST)
    # The unit row above the names is the first of the choices on Sizing: none of the rows.
    book.put(ws, FIRST - 1, 1, scenarios.spec["as_typed"], book.styles["th_ul"])
    book.define(AS_TYPED, WORKINGS, FIRST - 1, 1)
    book.define(CHOICES, WORKINGS, FIRST - 1, 1, scenarios.last)
    book.define(KEYS, WORKINGS, FIRST, 1, scenarios.last)
    for key, defined in NAMED.items():
        book.define(defined, WORKINGS, FIRST, place[key], scenarios.last)
    if "layer_count" in scenarios.table.columns:
        book.define(LAYERS, WORKINGS, FIRST, place["layer_count"], scenarios.last)
    book.define(CARD_IN_FORCE, WORKINGS, FIRST, place["gpu_choice"], scenarios.last)
    _write_extras(book, place)
    _write_listed(book, place)
    _write_cards(book, place)
    _write_counts(book)
    page.print_area(ws, scenarios.last, 1 + len(scenarios.table.results))


def _typed(scenarios: Scenarios, key: str) -> str:
    return f"'{TITLE}'!${letters(scenarios.column(key))}{ROW}"


def _name(scenarios: Scenarios) -> str:
    return f"'{TITLE}'!${letters(scenarios.name)}{ROW}"


def _inputs(scenarios: Scenarios, place: Place, at: int, row: Scenario) -> tuple[Raw, Mapping[str, Any], Any]:
    """A row's label, its inputs, and the formulas that take them from Scenarios.

    A row that is not used has the worked job's values, so that its terms are numbers.
    """
    number = str(FIRST + at + 1)
    name = _name(scenarios)
    label = f'=IF(ISNUMBER({name})+ISTEXT({name})>0,{name},"")'
    cells: dict[str, Any] = {}
    for key in scenarios.inputs:
        typed, blank = _typed(scenarios, key), _standard(scenarios, place, key)
        if key in scenarios.main:
            empty = quoted(scenarios.spec["faults"]["empty"])
            formula = f'=IF({place.cell("used")}=0,{blank},IF({typed}="",{empty},{typed}))'
        else:
            formula = f'=IF({typed}="",{blank},{typed})'
        cells[key] = Raw(formula.replace(ROW, number), scenarios.held(row, key))
    return Raw(label.replace(ROW, number), row.name), row.inputs, cells


def _standard(scenarios: Scenarios, place: Place, key: str) -> str:
    return f"${letters(place.listed + 4)}${FIRST + 1 + scenarios.inputs.index(key)}"


def standard_cell(scenarios: Scenarios, key: str) -> str:
    """The cell with what an empty cell of an input stands for."""
    return f"'{WORKINGS}'!{_standard(scenarios, Place(scenarios), key)}"


def _formulas(book: Book, place: Place) -> dict[str, str]:
    """The columns beside the job table, with ROW for a row's number."""
    scenarios = book.scenarios
    cell, across, words = place.cell, place.across, scenarios.spec["faults"]
    error, name = quoted(words["error"]), f'IF($B{ROW}="",{quoted(words["empty"])},$B{ROW})'
    first, last = scenarios.inputs[0], scenarios.inputs[-1]
    rules = ["name", *scenarios.rules]
    main = f"'{TITLE}'!{_span(scenarios, scenarios.main)}"
    other = f"'{TITLE}'!{_span(scenarios, [*scenarios.further, *scenarios.own])}"
    in_rules = across(f"{rules[0]}!", f"{rules[-1]}!")
    found: dict[str, str] = {
        "number": f"=N(${letters(place['number'])}{{above}})+1",
        "filled": f'=SUMPRODUCT(({main}<>"")*1)+SUMPRODUCT(({other}<>"")*1)+({_name(scenarios)}<>"")',
        "used": f"=IF(ISNUMBER({cell('filled')}),MIN(1,{cell('filled')}),1)",
        "own_values": f"=COUNT({across(scenarios.own[0], scenarios.own[-1])})",
    }
    for key in scenarios.inputs:
        lowest, highest = checks.bounds(book.job, key)
        if isinstance(getattr(book.job.inputs[key].domain, "high", None), str):
            highest = ""
        found[f"{key}!"] = row_fault(book, key, cell(key), (lowest, highest))
    twice = f"SUMPRODUCT(({CHOICES}=$B{ROW})*1)"
    found["name!"] = f'=IF({cell("used")}=0,0,1-($B{ROW}<>"")*({twice}<=1))'
    for rule in scenarios.rules:
        kept = cell(rule)
        found[f"{rule}!"] = f"=IF({cell('faults')}>0,0,IF(ISNUMBER({kept}),1-{kept},1))"
    found |= {
        "faults": f"=SUM({across(f'{first}!', f'{last}!')})",
        "all_faults": f"=SUM({across(f'{first}!', f'{rules[-1]}!')})",
        "position": f"=IF({cell('all_faults')}>0,MATCH(1,{across(f'{first}!', f'{rules[-1]}!')},0),0)",
        "counted": f"={cell('used')}*({cell('all_faults')}=0)",
        "left_out": f"={cell('used')}-{cell('counted')}",
        "value": f'=IF({cell("faults")}>0,IFERROR(INDEX({across(first, last)},1,{cell("position")}),{error}),"")',
        "check": f'=IF({cell("position")}>0,INDEX({CHECKS},{cell("position")}),"")',
        "where": f'=IF({cell("position")}>0,INDEX({HEADS},{cell("position")}),"")',
        "name?": f'=IF({cell("name!")}=0,"",{spelled(words["of_name"], value=name)})',
    }
    for rule in scenarios.rules:
        found[f"{rule}?"] = f'=IF({cell(f"{rule}!")}=0,"",{_rule_words(book, place, rule)})'
    value = cell("value")
    text = f'IF(ISTEXT({value}),IF(ISNUMBER(1*{value}),{quoted(words["text"])},""),"")'
    label, right = (f"INDEX({names},{cell('position')})" for names in (LABELS, RIGHT))
    told = spelled(words["of_input"], label=label, value=value, text=text, right=right)
    found["message"] = (
        f"=IF({cell('faults')}>0,{told},IF({cell('position')}>0,"
        f'INDEX({across(f"{rules[0]}?", f"{rules[-1]}?")},1,MATCH(1,{in_rules},0)),""))'
    )
    return found


def _span(scenarios: Scenarios, keys: list[str]) -> str:
    return f"${letters(scenarios.column(keys[0]))}{ROW}:${letters(scenarios.column(keys[-1]))}{ROW}"


def _rule_words(book: Book, place: Place, rule: str) -> str:
    """What a broken rule says of its own row."""
    tree = sentence(checks.shown_message(book, book.job.checks[rule].message), book.sym)
    known = set(place.table.columns)
    if not isinstance(tree, Expr):
        return f'"{tree}"'
    return sheet_formula(tree, lambda key: place.cell(key) if key in known else book.cell_name(key), column_name)[1:]


def _write_extras(book: Book, place: Place) -> None:
    ws, styles, scenarios = book.sheet(WORKINGS), book.styles, book.scenarios
    put, formulas = book.putter(ws), _formulas(book, place)
    beside = scenarios.spec["beside"]
    for key, column in place.extra.items():
        if key[-1] in "!?":
            words, unit = beside["fault" if key[-1] == "!" else "message"]
            label = filled(words, label=beside["name"] if key[:-1] == "name" else book.label_of(key[:-1]))
        else:
            label, unit = beside["told" if key == "message" else key]
        put(FIRST - 2, column, label, styles["th_r"])
        put(FIRST - 1, column, unit, styles["th_u"])
    number, text = styles["r_calc0"], styles["r_text_r"]
    for at, row in enumerate(scenarios.all):
        used = int(row.used)
        held = {
            "number": at + 1, "filled": len(row.typed) + bool(row.name), "used": used, "counted": used,
            "own_values": sum(row.inputs[key] is not None for key in scenarios.own),
        }  # fmt: skip
        texts = ("value", "check", "where", "message")
        for key, column in place.extra.items():
            value = "" if key in texts or key.endswith("?") else held.get(key, 0)
            formula = formulas[key].replace(ROW, str(FIRST + at + 1)).replace("{above}", str(FIRST + at))
            put(FIRST + at, column, Raw(formula, value), text if value == "" else number)


def _write_listed(book: Book, place: Place) -> None:
    """What the faults of a row are called, what is right, and what an empty cell stands for."""
    ws, styles, scenarios, job = book.sheet(WORKINGS), book.styles, book.scenarios, book.job
    put, faults, beside = book.putter(ws), scenarios.spec["faults"], scenarios.spec["beside"]
    rows: list[tuple[str, str, str, str, Any]] = []
    for key in scenarios.inputs:
        right = allowed(job, key) + (faults["or_empty"] if job.inputs[key].optional else "")
        rows.append(
            (scenarios.heads[key], said_of(scenarios, key), job.inputs[key].label, right, scenarios.standard[key])
        )
    name = scenarios.spec["heads"]["name"][0]
    rows.append((name, faults["job"], name, "", None))
    pointed = [_input_of_rule(book, rule) for rule in scenarios.rules]
    rows += [(scenarios.heads[key], said_of(scenarios, key), "", "", None) for key in pointed]
    for at, words in enumerate(beside["listed"]):
        put(FIRST - 2, place.listed + at, words, styles["th"])
        put(FIRST - 1, place.listed + at, "", styles["th_ul"])
        ws.set_column(place.listed + at, place.listed + at, (26, 32, 26, 80, 38)[at])
    for at, (*content, blank) in enumerate(rows):
        for column, words in enumerate(content, place.listed):
            put(FIRST + at, column, words, styles["r_text"])
        if at < len(scenarios.inputs):
            held = "none" if blank is None else blank
            style = styles["r_text_r"] if isinstance(held, str) else styles.variant("r_calc0", format="general")
            put(FIRST + at, place.listed + 4, held, style)
    for at, defined in enumerate((HEADS, CHECKS, LABELS, RIGHT)):
        book.define(defined, WORKINGS, FIRST, place.listed + at, FIRST + len(rows) - 1)


def said_of(scenarios: Scenarios, key: str) -> str:
    """What the verdict says of a row whose input is wrong; the cell at fault is named in full further right."""
    faults = scenarios.spec["faults"]
    if key not in scenarios.main:
        return str(faults["own" if key in scenarios.own else "further"])
    head = scenarios.heads[key]
    return filled(faults["main"], head=head if head[1:2].isupper() else head[0].lower() + head[1:])


def _input_of_rule(book: Book, rule: str) -> str:
    """The input that a broken rule points at: the first that its message names."""
    for key in re.findall(r"[a-z]+(?:_[a-z0-9]+)+", book.job.checks[rule].message):
        own = book.job.overrides[key].input_name if key in book.job.overrides else key
        if own in book.scenarios.heads:
            return own
    raise ValueError(f"{book.job.name}: the message of {rule} names no input that a row of Scenarios has")


def _write_cards(book: Book, place: Place) -> None:
    """Every card with its counted jobs, and its place when cards are ordered by them."""
    ws, styles, first = book.sheet(WORKINGS), book.styles, place.cards
    put, known = book.putter(ws), book.job.tables[_card_table(book)].keys
    counts = jobs_on_cards(book)
    numbers, cards, jobs = (f"${letters(first + at)}{ROW}" for at in range(3))
    named = column_name(_card_table(book), None)
    last = FIRST + len(known) - 1
    ends = f"${letters(first)}${last + 1}"
    formulas = (
        f"=N(${letters(first)}{{above}})+1",
        f"=INDEX({named},{numbers})",
        f"=COUNTIFS({CARD_IN_FORCE},{cards},{NAMED['counted']},1)",
        f"=IF({jobs}>0,{jobs}*({ends}+1)-{numbers},0)",
        f"=IF(LARGE({ORDER},{numbers})>0,MATCH(LARGE({ORDER},{numbers}),{ORDER},0),0)",
    )
    orders = [count and count * (len(known) + 1) - at for at, count in enumerate(counts, 1)]
    ranked = ranked_cards(book)
    for at, words in enumerate(book.scenarios.spec["beside"]["cards"]):
        put(FIRST - 2, first + at, words, styles["th" if at == 1 else "th_r"])
        put(FIRST - 1, first + at, "", styles["th_ul"])
    ws.set_column(first + 1, first + 1, 42)
    for at, key in enumerate(known):
        values = (at + 1, key, counts[at], orders[at], ranked[at] if at < len(ranked) else 0)
        for column, (formula, value) in enumerate(zip(formulas, values, strict=True), first):
            text = formula.replace(ROW, str(FIRST + at + 1)).replace("{above}", str(FIRST + at))
            put(FIRST + at, column, Raw(text, value), styles["r_text" if column == first + 1 else "r_calc0"])
    book.define(JOBS_ON_CARD, WORKINGS, FIRST, first + 2, last)
    book.define(ORDER, WORKINGS, FIRST, first + 3, last)


def ranked_cell(book: Book, at: int) -> str:
    """Which row of the table of cards comes at a place, from 0, when they are ordered by jobs; 0: no more in use."""
    return f"'{WORKINGS}'!${letters(Place(book.scenarios).cards + 4)}${FIRST + at + 1}"


def _card_table(book: Book) -> str:
    domain = book.job.inputs["gpu_choice"].domain
    assert isinstance(domain, Choice)
    return domain.table


def jobs_on_cards(book: Book) -> list[int]:
    """The jobs that the workbook opens on, by card."""
    on = [row.inputs["gpu_choice"] for row in book.scenarios.all if row.used]
    return [on.count(key) for key in book.job.tables[_card_table(book)].keys]


def ranked_cards(book: Book) -> list[int]:
    """Row numbers of the cards in use, most jobs first, then in the order of their table."""
    counts = jobs_on_cards(book)
    return sorted((at for at, count in enumerate(counts, 1) if count), key=lambda at: -counts[at - 1])


def beyond_print(scenarios: Scenarios) -> str:
    """How many rows in use stand below the print area of Scenarios, as a formula."""
    first = FIRST + scenarios.printed
    return f"SUM({area(Place(scenarios)['used'], first, scenarios.last)})" if first <= scenarios.last else "0"


def _write_counts(book: Book) -> None:
    """Figures of all rows together, which sentences use."""
    put, styles, words = book.putter(book.sheet(WORKINGS)), book.styles, book.scenarios.spec["beside"]
    number = "INDEX(Scenario_Numbers_List,MATCH(1,Scenario_Left_Out_List,0))"
    told = "INDEX(Scenarios_Message_List,MATCH(1,Scenario_Left_Out_List,0))"
    left_out = public_name("scenarios_left_out_count")
    first_fault = spelled(words["first_fault"], number=number, message=told)
    for at, (key, formula) in enumerate(
        (
            ("scenarios_used_count", f"SUM({NAMED['used']})"),
            ("scenarios_counted_count", f"SUM({NAMED['counted']})"),
            ("scenarios_left_out_count", f"SUM({NAMED['left_out']})"),
            ("scenarios_first_fault", f"IF({left_out}>0,{first_fault},{quoted(words['no_fault'])})"),
        )
    ):
        put(_COUNTS + at, 1, words["counts"][at], styles["r_label"])
        value = book.values[key]
        put(_COUNTS + at, 2, Raw(f"={formula}", value), styles["r_text_r" if isinstance(value, str) else "r_calc0"])
        book.define(public_name(key), WORKINGS, _COUNTS + at, 2)

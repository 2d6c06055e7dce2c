"""Scenarios: a planner's jobs, one a row: verdict first, then every input; and how many fit which card.

All that can be typed stands here; the rows are sized on "Scenario workings". A row may be sent to Sizing by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.declare import Choice
from ...formula.render import column_name, public_name
from .. import page
from ..book import Raw
from ..inputs import validation
from ..jobtable import ROW, typed_style
from ..page import Tile
from ..scenarios import (
    CARD_IN_FORCE,
    CHOICE,
    CHOICES,
    FIRST,
    JOBS_ON_CARD,
    LAYERS,
    LONGEST_NAME,
    LONGEST_NOTE,
    TITLE,
    Place,
    Scenario,
    Scenarios,
    list_name,
    sheet_day,
)
from ..words import filled, quoted, sentence
from . import scenario_workings as workings

if TYPE_CHECKING:
    from ..book import Book

_GROUP, _HEAD, _UNIT, _BLANK = FIRST - 4, FIRST - 3, FIRST - 2, FIRST - 1  # rows of the header, from 0
_NUMBER_WIDTH = 6.6  # characters of "1,000%" with its padding
_STATES = ("fit", "tight", "no_fit")  # in the order of the verdict's code
_FIRST_DAY, _LAST_DAY = 36526, 73050  # 1 January 2000 to 31 December 2099
_PANEL = ("th", "th_r", "th_r", "th_r", "th_r")  # styles of the heads of its columns


def plan(book: Book) -> None:
    """Lay the table out, and register the figures that sentences use."""
    book.scenarios = Scenarios(book)
    used = [row for row in book.scenarios.all if row.used]
    codes = [row.values["verdict_code"] for row in used]
    counts = {f"scenarios_{state}_count": codes.count(code) for code, state in enumerate(_STATES, 1)}
    counts |= {"scenarios_used_count": len(used), "scenarios_counted_count": len(used)}
    counts |= {"scenarios_left_out_count": 0, "scenarios_cards_count": len(workings.ranked_cards(book))}
    for key, count in counts.items():
        book.external(key, "count", count)
    book.external("scenarios_first_fault", "text", book.template["scenarios"]["beside"]["no_fault"])
    book.external("scenario_row", "count", 0)
    book.external("scenario_choice", "text", book.template["scenarios"]["as_typed"])


def write(book: Book) -> None:
    """The sheet, its names, and its workings."""
    scenarios, ws, rows = book.scenarios, book.sheet(TITLE), book.look["rows"]
    page.set_page(
        ws, book.look, kind=TITLE, file_and_version=book.footer, widths=_widths(book), freeze=(FIRST, 2),
        rows_repeated=(0, FIRST - 1),
    )  # fmt: skip
    _strip(book)
    _header(book)
    number = book.styles["r_no"]
    for at, row in enumerate(scenarios.all):
        ws.set_row(FIRST + at, rows["table"])
        _row(book, FIRST + at, row, number)
    _marks(book)
    _validations(book)
    _names(book)
    _panel(book)
    page.print_areas(ws, ((0, 0, FIRST + scenarios.printed - 1, scenarios.note), _panel_area(book)))
    workings.write(book)


def _width(book: Book, key: str) -> float:
    """The width of an input's column."""
    for column in book.scenarios.spec["columns"]:
        if column["input"] == key:
            return float(column["width"])
    return float(book.look["sheets"][TITLE]["choice" if book.job.choices(key) else "column"])


def _widths(book: Book) -> list[float]:
    scenarios, grid = book.scenarios, book.look["sheets"][TITLE]
    main, rest = (
        [_width(book, key) for key in keys] for keys in (scenarios.main, [*scenarios.further, *scenarios.own])
    )
    return [*grid["job"], *main, *grid["about"], *grid["fault"], grid["gap"], *grid["cards"], grid["gap"], *rest, 2]


def _strip(book: Book) -> None:
    scenarios, spec, sym, put = book.scenarios, book.scenarios.spec, book.sym, book.putter(book.sheet(TITLE))
    main = scenarios.first_main
    shown = f"'{TITLE}'!{page.cell(FIRST, scenarios.cards, row_fixed=True, column_fixed=True)}"
    ranked = workings.ranked_cards(book)
    first = book.job.choices("gpu_choice")[ranked[0] - 1] if ranked else ""
    known, reason = public_name("scenarios_cards_count"), public_name("scenarios_left_out_count")
    tiles = {key: words[0] for key, words in spec["tiles"].items()}
    notes = {key: words[1] for key, words in spec["tiles"].items()}
    spans = zip(_STATES, (1, 2, main), (1, main - 1, main), strict=True)
    row = quoted(spec["tiles"]["left_out"][2])
    left_out = (
        f'=IF({reason}>0,{row}&INDEX(Scenario_Numbers_List,MATCH(1,Scenario_Left_Out_List,0))&": "'
        f"&INDEX({list_name('verdict')},MATCH(1,Scenario_Left_Out_List,0)),{quoted(notes['left_out'])})"
    )
    page.strip(
        book.sheet(TITLE),
        book.styles,
        last_column=scenarios.end,
        title=spec["title"],
        sentence=sentence(spec["sentence"], sym),
        stamp=book.stamp,
        stamp_column=scenarios.note,
        put=put,
        tiles=[
            *(
                Tile(start, end, tiles[state], _count(book, code), notes[state], "tile_count")
                for code, (state, start, end) in enumerate(spans, 1)
            ),
            Tile(main + 1, scenarios.owner - 2, tiles["left_out"], sym("scenarios_left_out_count"),
                 Raw(left_out, notes["left_out"]), "tile_count"),
            Tile(scenarios.owner - 1, scenarios.note, tiles["cards"],
                 Raw(f'=COUNTIF({JOBS_ON_CARD},">0")', len(ranked)),
                 Raw(f'=IF({known}>0,{quoted(notes["cards"])}&{shown},"–")',
                     f"{notes['cards']}{first}" if ranked else "–"),
                 "tile_count"),
        ],
    )  # fmt: skip
    for key, column in (
        *((f"scenarios_{state}_count", at) for state, at in zip(_STATES, (1, 2, main), strict=True)),
        ("scenarios_cards_count", scenarios.owner - 1),
    ):
        book.define(public_name(key), TITLE, 4, column)


def _count(book: Book, code: int) -> Raw:
    """How many rows have a verdict, by its code."""
    formula = f"=COUNTIF({list_name('verdict')},{_word(book, code)})"
    return Raw(formula, book.values[f"scenarios_{_STATES[code - 1]}_count"])


def _word(book: Book, code: int) -> str:
    """The cell with a verdict's word, by its code."""
    return f"INDEX({column_name('verdicts', 'shown')},{'2+1' if code > 2 else code})"


def _header(book: Book) -> None:
    scenarios, ws, styles, rows = book.scenarios, book.sheet(TITLE), book.styles, book.look["rows"]
    put, spec = book.putter(ws), scenarios.spec
    end = scenarios.end
    for row, height in ((_GROUP, "space"), (_HEAD, "header_two_lines"), (_UNIT, "unit"), (_BLANK, "unit")):
        ws.set_row(row, rows[height])
    ws.set_row(_GROUP, rows["unit"])
    for keys, words in ((scenarios.further, spec["further"]), (scenarios.own, spec["own"])):
        for at, key in enumerate(keys):
            put(_GROUP, scenarios.column(key), "" if at else words, styles.variant("th_group", horizontal="left"))
    page.fill_row(ws, _BLANK, 0, scenarios.fault + 1, styles["th_ul"])
    page.fill_row(ws, _BLANK, scenarios.first_further, end - 1, styles["th_ul"])
    fixed = (
        (scenarios.name, "name", "th_open"), (scenarios.verdict, "verdict", "th_open_i"),
        (scenarios.total, "total", "th_open_r"), (scenarios.utilisation, "utilisation", "th_open_r"),
        (scenarios.owner, "owner", "th_open_i"), (scenarios.owner + 1, "date", "th_open_r"),
        (scenarios.note, "note", "th_open_i"), (scenarios.fault, "fault", "th_open_i"),
        (scenarios.fault + 1, "message", "th_open"),
    )  # fmt: skip
    for column, key, style in fixed:
        head, unit = spec["heads"][key]
        put(_HEAD, column, head, styles[style])
        put(_UNIT, column, unit, styles.variant("th_u", bottom=None))
    for key in scenarios.inputs:
        declared, column = book.job.inputs[key], scenarios.column(key)
        left = isinstance(declared.domain, Choice)
        put(_HEAD, column, scenarios.heads[key], styles["th_open_i" if left else "th_open_r"])
        unit = {"text": "", "count": ""}.get(declared.unit, declared.unit)
        put(_UNIT, column, unit, styles.variant("th_ui" if left else "th_u", bottom=None))
        quiet = styles.variant("th_ui" if left else "th_u", shrink=True)
        if key in scenarios.main:
            put(_BLANK, column, spec["needed"], quiet)
        else:
            blank = scenarios.standard[key]
            held = Raw(f"={workings.standard_cell(scenarios, key)}", "none" if blank is None else blank)
            put(_BLANK, column, held, quiet)
    put(_BLANK, scenarios.name, spec["blank_means"], styles["th_ul"])


def _row(book: Book, at: int, row: Scenario, number: Any) -> None:
    ws, styles, scenarios = book.sheet(TITLE), book.styles, book.scenarios
    put, place = book.putter(ws), _place(book)

    def live(formula: str, value: Any) -> Raw:
        return Raw(formula.replace(ROW, str(at + 1)), value)

    used, counted = place.from_outside("used"), place.from_outside("counted")
    code, word = row.values["verdict_code"], column_name("verdicts", "shown")
    shown = book.job.tables["verdicts"].columns["shown"][code - 1]
    verdict = f"INDEX({word},{place.from_outside('verdict_code')})"
    put(at, scenarios.number, live(f"={place.from_outside('number')}", at - FIRST + 1), number)
    put(at, scenarios.name, row.name or None, styles["g_text"])
    for column, formula, value, style in (
        (scenarios.verdict, f'=IF({used}=0,"",IF({counted}>0,{verdict},{place.from_outside("check")}))', shown,
         styles.variant("r_text_i", shrink=True)),
        (scenarios.total, f'=IF({counted}>0,{place.from_outside("total_reserved_gb")},"")',
         row.values["total_reserved_gb"], styles.variant("r_calc1", shrink=True)),
        (scenarios.utilisation, f'=IF({counted}>0,{place.from_outside("card_utilisation")},"")',
         row.values["card_utilisation"], styles.variant("r_share", format="p0")),
    ):  # fmt: skip
        put(at, column, live(formula, value if row.used else ""), style)
    for key in scenarios.inputs:
        put(at, scenarios.column(key), row.typed.get(key), _typed_style(book, key))
    put(at, scenarios.owner, row.owner or None, styles.variant("g_text_i", shrink=True))
    put(at, scenarios.owner + 1, sheet_day(row.day) if row.day else None, styles["g_date"])
    put(at, scenarios.note, row.note or None, styles["g_note"])
    put(at, scenarios.fault, live(f"={place.from_outside('where')}", ""), styles["r_text_i"])
    put(at, scenarios.fault + 1, live(f"={place.from_outside('message')}", ""), styles.variant("r_help", wrap=False))


def _place(book: Book) -> Place:
    if book.scenario_place is None:
        book.scenario_place = Place(book.scenarios)
    return book.scenario_place


def _typed_style(book: Book, key: str) -> Any:
    """Choices read as texts, from the left; numbers stand on the right. Both are smaller where they must be."""
    style = "g_text_i" if book.job.choices(key) else typed_style(book.job, key)
    return book.styles.variant(style, shrink=True)


def _marks(book: Book) -> None:
    """Exceptions: tight, does not fit, and the cell that is wrong."""
    scenarios, ws, styles = book.scenarios, book.sheet(TITLE), book.styles
    column, last = scenarios.verdict, scenarios.last
    here = page.cell(FIRST, column, column_fixed=True)
    for state in ("tight", "does_not_fit", "check"):
        word = book.look["states"][state]["word"]
        begins = f'=LEFT({here},LEN("{word}"))="{word}"'
        mark = {"type": "formula", "criteria": begins, "format": styles.state(state, where="mark")}
        ws.conditional_format(FIRST, column, last, column, mark)
    where = page.cell(FIRST, scenarios.fault, column_fixed=True)
    spans = ((1, 1), (scenarios.first_main, scenarios.owner - 1), (scenarios.first_further, scenarios.end - 1))
    for first, stop in spans:
        same = f'=AND({where}<>"",{where}={page.cell(_HEAD, first, row_fixed=True)})'
        page.formula_marks(ws, styles, (FIRST, first, last, stop), same, "check")
    wide = book.look["sheets"][TITLE]["job"][scenarios.utilisation]
    area = (FIRST, scenarios.utilisation, last, scenarios.utilisation)
    page.data_bar(ws, styles, area, maximum=page.bar_maximum(1, _NUMBER_WIDTH, wide))


def _validations(book: Book) -> None:
    """What may be typed: dropdowns and bounds as everywhere, and texts of a length that a cell shows."""
    scenarios, ws, last = book.scenarios, book.sheet(TITLE), book.scenarios.last
    for key in scenarios.inputs:
        column = scenarios.column(key)
        cell = page.cell(FIRST, column, column_fixed=True)
        highest = ""
        if isinstance(getattr(book.job.inputs[key].domain, "high", None), str):
            known = f"INDEX({LAYERS},{page.cell(FIRST, scenarios.number, column_fixed=True)})"
            highest = f"IF(ISNUMBER({known}),{known},{cell})"  # before a model is chosen there is no highest
        rule = validation(book, key, cell, highest)
        ws.data_validation(FIRST, column, last, column, {**rule, "ignore_blank": key not in scenarios.main})
    top = page.cell(FIRST, scenarios.name, column_fixed=True)
    once = f"=(SUMPRODUCT(({list_name('name')}={top})*1)=1)*(LEN({top})<={LONGEST_NAME})=1"
    spec, days = scenarios.spec, {"minimum": _FIRST_DAY, "maximum": _LAST_DAY}
    for column, key, longest, rule in (
        (scenarios.name, "name", LONGEST_NAME, {"validate": "custom", "value": once}),
        (scenarios.owner, "owner", LONGEST_NAME, _text(LONGEST_NAME)),
        (scenarios.owner + 1, "date", 0, {"validate": "integer", "criteria": "between", **days}),
        (scenarios.note, "note", LONGEST_NOTE, _text(LONGEST_NOTE)),
    ):
        label, (what, right) = spec["heads"][key][0], spec["typed"][key]
        told = filled(spec["typed"]["enter"], right=filled(right, longest=str(longest)))
        words = {"input_title": label, "input_message": f"{what} {told}", "error_title": label}
        ws.data_validation(FIRST, column, last, column, {**words, "error_message": told, "error_type": "stop", **rule})


def _text(longest: int) -> dict[str, Any]:
    return {"validate": "length", "criteria": "between", "minimum": 0, "maximum": longest}


def _names(book: Book) -> None:
    """The columns by name, from the first row to the last prepared one."""
    scenarios = book.scenarios
    columns = {
        "name": scenarios.name, "owner": scenarios.owner, "date": scenarios.owner + 1, "note": scenarios.note,
        "verdict": scenarios.verdict, "total_reserved_gb": scenarios.total, "message": scenarios.fault + 1,
        **{key: scenarios.column(key) for key in scenarios.inputs},
    }  # fmt: skip
    for key, column in columns.items():
        book.define(list_name(key), TITLE, FIRST, column, scenarios.last)


def _panel_area(book: Book) -> page.Area:
    spec = book.scenarios.spec
    first = book.scenarios.cards
    return 0, first, FIRST + spec["cards"] + 2, first + len(_PANEL) - 1


def _panel(book: Book) -> None:
    """How many jobs fit which card: the cards with most jobs, then all others together."""
    scenarios, ws, styles = book.scenarios, book.sheet(TITLE), book.styles
    put, first, cards = book.putter(ws), scenarios.cards, scenarios.spec["cards"]
    put(0, first, scenarios.spec["cards_title"], styles["title"])
    words = scenarios.spec["panel"]
    for at, (head, style) in enumerate(zip(words["columns"], _PANEL, strict=True)):
        put(_BLANK, first + at, head, styles[style])
    names, ranked = book.job.choices("gpu_choice"), workings.ranked_cards(book)
    table = column_name(book.job.inputs["gpu_choice"].domain.table, None)  # type: ignore[union-attr]
    used = [row for row in scenarios.all if row.used]
    for at in range(cards):
        row, place = FIRST + at, workings.ranked_cell(book, at)
        card = names[ranked[at] - 1] if at < len(ranked) else ""
        here = page.cell(row, first, column_fixed=True)
        put(row, first, Raw(f'=IF({place}>0,INDEX({table},{place}),"")', card), styles.variant("r_text", shrink=True))
        codes = [job.values["verdict_code"] for job in used if job.inputs["gpu_choice"] == card]
        on_card = f'=IF({here}="","",INDEX({JOBS_ON_CARD},{place}))'
        put(row, first + 1, Raw(on_card, len(codes) if card else ""), styles["r_calc0"])
        for code in (1, 2, 3):
            fitting = f"COUNTIFS({CARD_IN_FORCE},{here},{list_name('verdict')},{_word(book, code)})"
            put(row, first + 1 + code, Raw(f'=IF({here}="","",{fitting})', codes.count(code) if card else ""),
                styles["r_calc0"])  # fmt: skip
    end, total = FIRST + cards, FIRST + cards + 1
    put(end, first, words["others"], styles["r_text"])
    put(total, first, words["all"], styles["t_label"])
    shown = set(ranked[:cards])
    counts = ["scenarios_counted_count", *(f"scenarios_{state}_count" for state in _STATES)]
    for at, key in enumerate(counts, first + 1):
        column = f"{page.cell(FIRST, at)}:{page.cell(end - 1, at)}"
        name = public_name(key)
        others = [
            job.values["verdict_code"] for job in used
            if names.index(job.inputs["gpu_choice"]) + 1 not in shown
        ]  # fmt: skip
        rest = len(others) if at == first + 1 else others.count(at - first - 1)
        put(end, at, Raw(f"={name}-SUM({column})", rest), styles["r_calc0"])
        put(total, at, Raw(f"={name}", book.values[key]), styles.variant("t_calc1", format="n0"))
    put(total + 1, first, _printed(book), styles["help"])
    for at, line in enumerate(scenarios.spec["notes"], total + 2):
        put(at, first, filled(line, rows=str(len(scenarios.all))), styles["help"])


def _printed(book: Book) -> Raw:
    """Whether the print area, which is as it was set, holds every row in use."""
    scenarios, spec = book.scenarios, book.scenarios.spec
    whole, part = (filled(spec[f"printed_{key}"], rows=str(scenarios.printed)) for key in ("all", "part"))
    return Raw(f"=IF({workings.beyond_print(scenarios)}>0,{quoted(part)},{quoted(whole)})", whole)


def write_choice(book: Book, sheet: str, row: int, column: int) -> None:
    """The input of Sizing that says which job is sized: what is typed there, or a row of Scenarios."""
    ws, styles, spec = book.sheet(sheet), book.styles, book.scenarios.spec
    put, column = book.putter(ws), column + 1
    put(row, column - 1, spec["choice"], styles.variant("stamp", indent=1))
    put(row, column, spec["as_typed"], styles.variant("in_text", wrap=False, shrink=True))
    book.define(CHOICE, sheet, row, column)
    right = filled(spec["choice_right"], as_typed=spec["as_typed"])
    told = filled(spec["typed"]["enter"], right=right)
    rule = {
        "validate": "list",
        "source": f"={CHOICES}",
        "ignore_blank": False,
        "input_title": spec["choice"],
        "input_message": f"{spec['choice_help']} {told}",
        "error_title": spec["choice"],
        "error_message": told,
        "error_type": "stop",
    }
    ws.data_validation(row, column, row, column, rule)
    page.formula_marks(ws, styles, (row, column, row, column), f"={CHOICE}_Fault=1", "check")


def idle_note(book: Book, note: Raw | str) -> Raw:
    """The live line of a step, which says so while the inputs below it are not in force."""
    words = book.scenarios.spec["idle"]
    otherwise = note.formula[1:] if isinstance(note, Raw) else quoted(note)
    return Raw(f"=IF(Scenario_Row>0,{quoted(words)},{otherwise})", note.value if isinstance(note, Raw) else note)

"""Crossover: every model of the catalogue in three formats of its base, and the card at which each begins to fit.

"Crossover workings" is a job table: the job of Sizing with another model and format in each row, format by format.
Below it stand the cards with the room they offer. A job fits a card when what it needs is at most that room: a
traced job brings no matrix workspace of its own, and the card's is taken off.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...formula.render import column_name, public_name
from ...planning.crossover import RESULTS, Need, Room, model_inputs, need_of, rooms, starts_at
from .. import charts, page
from ..book import Raw
from ..inputs import validation
from ..jobtable import JobTable, write_job_table
from ..page import Tile
from ..words import filled, quoted
from . import compare

if TYPE_CHECKING:
    from ..book import Book

TITLE, WORKINGS = "Crossover", "Crossover workings"
CARDS = 4  # chosen on the sheet; the card of Sizing is counted as one more on the workings
FIRST = 9  # row of the first model, from 0, on both sheets
_HEAD = 7  # row of the chosen cards
_CHART_ROWS = 22
# Columns of the visible sheet: model, parameters, weights and first card by format, chosen cards.
_MODEL, _PARAMETERS, _WEIGHTS = 1, 2, 3


class Crossover:
    """The jobs of the table, the rooms of the cards, and what follows as the workbook opens."""

    def __init__(self, book: Book) -> None:
        job, self.words = book.job, book.template["crossover"]
        self.names: list[str] = [name for name, _ in self.words["formats"]]
        formats: list[str] = [form for _, form in self.words["formats"]]
        varied = list(model_inputs(job, "", ""))
        moving = job.depends_on(varied)
        self.rules = [rule for rule in job.fault_rules if rule in moving]
        self.table = JobTable(job, RESULTS, self.rules, varied=varied, elsewhere=book.cell_name)
        worked = {key: book.values[key] for key in job.inputs}
        workspace = book.values["matrix_workspaces"]
        self.jobs, self.rows, self.needs = [], [], list[Need]()
        sized = job.scalar(("base_parameter_count",))
        models = self.words.get("models") or job.tables["models"]  # all of them, unless the template names some
        counts = {name: sized(**model_inputs(job, name, formats[0]))[0] for name in models}
        self.models = sorted(counts, key=lambda name: (counts[name], name))
        for form in formats:
            for model in self.models:
                inputs = {**worked, **model_inputs(job, model, form)}
                values = self.table.values(inputs)
                self.jobs.append(inputs)
                self.rows.append(values)
                held = dict.fromkeys(job.fault_rules, 1) | {rule: values[rule] for rule in self.rules}
                self.needs.append(need_of(job, model, form, {**values, **held, "matrix_workspaces": workspace}))
        self.rooms = rooms(job)
        self.room_of = {room.name: room for room in self.rooms}
        self.chosen: list[str] = [*self.words["cards"], book.values["gpu_choice"]]
        here = book.values["gpu_usable_capacity_gb"]
        self.here = Room(self.chosen[-1], here - workspace / book.values["bytes_per_gb"], here)

    def of_format(self, key: str, name: str, at: int | None = None) -> str:
        """A text of the template, the at-th of several, with the format that it is said of."""
        what = self.words[key] if at is None else self.words[key][at]
        return filled(self.words["each_format"], what=what, format=name)

    def at(self, form: int, model: int) -> int:
        """The row of a model in a format."""
        return form * len(self.models) + model

    def fits(self, row: int, card: int) -> bool:
        """Whether a job fits one of the chosen cards, the last of which is that of Sizing."""
        need, room = self.needs[row], self.here if card == CARDS else self.room_of.get(self.chosen[card])
        if need.need_gb is None or room is None:
            return False
        return need.need_gb <= (room.traced_gb if need.traced else room.published_gb)

    def place(self, need: Need) -> int:
        """One more than the cards whose room is too small."""
        if need.need_gb is None:
            return 1 + len(self.rooms)
        return 1 + sum(need.need_gb > (room.traced_gb if need.traced else room.published_gb) for room in self.rooms)

    def extra(self, name: str) -> int:
        """A column beside the job table."""
        return 2 + len(self.table.columns) + list(self.extras).index(name)

    @cached_property
    def extras(self) -> dict[str, tuple[str, str]]:
        """What stands beside the job table: heading and unit."""
        words = dict(self.words["beside"])
        (card, unit), here, largest = (words.pop(key) for key in ("card", "card_here", "largest"))
        cards = {f"card_{at}": (filled(card, number=str(at)), unit) for at in range(1, CARDS + 1)}
        return {**words, **cards, f"card_{CARDS + 1}": here, "largest": largest}

    @property
    def end(self) -> int:
        """The last row of the job table."""
        return FIRST + len(self.rows) - 1

    @property
    def cards_row(self) -> int:
        """The first row of the cards below it."""
        return self.end + 5


def plan(book: Book) -> None:
    """Size every model in every format, and register the largest that fits the card of Sizing."""
    if "crossover" not in book.template:
        return
    book.crossover = crossover = Crossover(book)
    for form, name in enumerate(crossover.names):
        fitting = [model for at, model in enumerate(crossover.models) if crossover.fits(crossover.at(form, at), CARDS)]
        book.external(f"largest_model_{name.lower()}", "text", fitting[-1] if fitting else crossover.words["no_model"])


def write(book: Book) -> None:
    """Both sheets."""
    if "crossover" not in book.template:
        return
    crossover, words = book.crossover, book.crossover.words
    _write_workings(book, crossover)
    ws, styles, rows = book.sheet(TITLE), book.styles, book.look["rows"]
    put = book.putter(ws)
    last = page.set_page(
        ws, book.look, kind=TITLE, file_and_version=book.footer, freeze=(FIRST, 2), rows_repeated=(0, FIRST - 1)
    )
    _strip(book, crossover, last)
    _heads(book, crossover)
    for at, model in enumerate(crossover.models):
        _row(book, crossover, at, model)
    end = FIRST + len(crossover.models)
    put(end, 1, words["note"], styles["help"])
    row = _nominal(book, crossover, end + 1, last)
    row = page.section(ws, styles, row, last_column=last, name=words["chart"], put=put)
    _chart(book, crossover, row)
    for at in range(_CHART_ROWS):
        ws.set_row(row + at, rows["chart"])
    page.print_area(ws, row + _CHART_ROWS, last, [end + 1])


# ---------------------------------------------------------------------- the workings
def _write_workings(book: Book, crossover: Crossover) -> None:
    table, words = crossover.table, crossover.words
    ws, styles = book.sheet(WORKINGS), book.styles
    put = book.putter(ws)
    page.plain_sheet(
        book, WORKINGS, kind="wide", last_column=crossover.extra("largest") + 1, stamp=False,
        sentence=words["workings"], rows_repeated=(0, FIRST - 1), freeze=(FIRST, 2),
    )  # fmt: skip
    rows: list[tuple[str, Any, dict[str, Any]]] = []
    for form, name in enumerate(crossover.names):
        for at, model in enumerate(crossover.models):
            rows.append((filled(words["job"], model=model, format=name), crossover.jobs[crossover.at(form, at)], {}))
    write_job_table(book, WORKINGS, table, rows, heading=words["heading"], first_row=FIRST)
    for key, (label, unit) in crossover.extras.items():
        put(FIRST - 2, crossover.extra(key), label, styles["th_r"])
        put(FIRST - 1, crossover.extra(key), unit, styles["th_u"])
    for row in range(len(crossover.rows)):
        _write_extras(book, crossover, row)
    _write_rooms(book, crossover)


def _chosen(crossover: Crossover, card: int, column: int) -> str:
    """The room of a chosen card, on the workings: column 2 for a traced job, 3 for a published one."""
    return page.cell(crossover.cards_row + card, column, row_fixed=True, column_fixed=True)


def _room_area(crossover: Crossover, column: int) -> str:
    first = crossover.cards_row + CARDS + 4
    end = first + len(crossover.rooms) - (column not in (6, 7))  # the names by order end with that of no card
    return ":".join(page.cell(row, column, row_fixed=True, column_fixed=True) for row in (first, end))


def _write_extras(book: Book, crossover: Crossover, row: int) -> None:
    table, need = crossover.table, crossover.needs[row]
    put, styles, sheet_row = book.putter(book.sheet(WORKINGS)), book.styles, FIRST + row

    def here(name: str) -> str:
        column = crossover.extra(name) if name in crossover.extras else 2 + table.column(name)
        return page.cell(sheet_row, column, column_fixed=True)

    gb, traced = "Bytes_Per_GB", here("rests_on_traced")
    broken = "+".join(f"(1-{here(rule)})" for rule in crossover.rules) or "0"
    workspace = f"{traced}*Matrix_Workspaces/{gb}"
    needed = f"{here('total_to_size_against')}/{gb}+{here('others_beside_total_gb')}-{workspace}"
    short = [f"SUMPRODUCT(({_room_area(crossover, side)}<{here('need')})*1)" for side in (2, 3)]
    names = [f"INDEX({_room_area(crossover, side)},{here('place')})" for side in (6, 7)]
    first = f"IF({traced}>0,{names[0]},{names[1]})"
    starts = starts_at(need, crossover.rooms)
    none_fits = f"COUNT({_room_area(crossover, 2)})"
    place = f"1+IF(ISNUMBER({here('need')}),IF({traced}>0,{short[0]},{short[1]}),{none_fits})"
    cells: dict[str, tuple[str, Any]] = {
        "place": (place, crossover.place(need)),
        "need": (
            f"IF({broken}>0,{quoted(crossover.words['none'])},{needed})",
            crossover.words["none"] if need.need_gb is None else need.need_gb,
        ),
        "base": (f"{here('frozen_base_weights')}/{gb}", need.base_gb),
        "total": (f"IF(ISNUMBER({here('need')}),{here('total_to_size_against')}/{gb},NA())",
                  "#N/A" if need.need_gb is None else need.total_gb),
        "starts": (f"IF(ISNUMBER({here('need')}),{first},{quoted(crossover.words['no_card'])})",
                   starts or crossover.words["no_card"]),
    }  # fmt: skip
    for card in range(CARDS + 1):
        room = f"IF({traced}>0,{_chosen(crossover, card, 2)},{_chosen(crossover, card, 3)})"
        fits = f"IF(ISNUMBER({here('need')}),IF({here('need')}<={room},1,0),0)"
        cells[f"card_{card + 1}"] = (fits, int(crossover.fits(row, card)))
    fits_here = crossover.fits(row, CARDS)
    cells["largest"] = (
        f"{here(f'card_{CARDS + 1}')}*{here('base_parameter_count')}",
        need.parameters if fits_here else 0,
    )
    for key, (formula, value) in cells.items():
        number = not isinstance(value, str) or value == "#N/A"
        style = styles["r_calc3" if key in ("need", "base", "total") else "r_calc0"] if number else styles["r_text_r"]
        content = Raw("=" + formula, value)
        put(sheet_row, crossover.extra(key), book.guarded(content, "NA()") if key == "total" else content, style)


def _write_rooms(book: Book, crossover: Crossover) -> None:
    """The rooms of the chosen cards, then of every CUDA card of known capacity, in order of the room they offer."""
    ws, styles, words = book.sheet(WORKINGS), book.styles, crossover.words
    put, job = book.putter(ws), book.job
    row = crossover.cards_row
    for column, text in enumerate(words["room_columns"], 1):
        put(row - 1, column, text, styles["th" if column == 1 else "th_r"])
    names, usable, workspace = (
        compare.area("card"),
        compare.area("gpu_usable_capacity_gb"),
        compare.area("matrix_workspaces"),
    )
    for card, name in enumerate(crossover.chosen):
        here = row + card
        room = crossover.here if card == CARDS else crossover.room_of.get(name)
        if card < CARDS:
            label: Any = Raw(f"=Crossover_Card_{card + 1}", name)
            number = f"MATCH({page.cell(here, 1, column_fixed=True)},{names},0)"
            full = f"IF(ISNUMBER({number}),INDEX({usable},{number}),0)"
            taken = f"IF(ISNUMBER({number}),INDEX({workspace},{number})/Bytes_Per_GB,0)"
        else:
            label = Raw(f"={book.cell_name('gpu_choice')}", name)
            full, taken = "GPU_Usable_Capacity_GB", "Matrix_Workspaces/Bytes_Per_GB"
        put(here, 1, label, styles["r_label"])
        published = page.cell(here, 3, column_fixed=True)
        put(here, 2, Raw(f"={published}-{taken}", room.traced_gb if room else 0), styles["r_calc3"])
        put(here, 3, Raw(f"={full}", room.published_gb if room else 0), styles["r_calc3"])
    first = row + CARDS + 4
    for column, text in enumerate(words["rooms_columns"], 1):
        put(first - 1, column, text, styles["th" if column == 1 else "th_r"])
    numbers = {name: at for at, name in enumerate(job.tables["gpus"], 1)}
    sides = [[room.traced_gb for room in crossover.rooms], [room.published_gb for room in crossover.rooms]]
    orders = [sorted(range(len(side)), key=side.__getitem__) for side in sides]
    for at, room in enumerate(crossover.rooms):
        here = first + at
        put(here, 0, numbers[room.name], styles["r_no"])
        index = page.cell(here, 0, column_fixed=True)
        put(here, 1, Raw(f"=INDEX({names},{index})", room.name), styles["r_label"])
        published = page.cell(here, 3, column_fixed=True)
        put(here, 2, Raw(f"={published}-INDEX({workspace},{index})/Bytes_Per_GB", room.traced_gb), styles["r_calc3"])
        put(here, 3, Raw(f"=INDEX({usable},{index})", room.published_gb), styles["r_calc3"])
        for column, side in ((4, 2), (5, 3)):
            area, cell = _room_area(crossover, side), page.cell(here, side, column_fixed=True)
            rows = _room_area(crossover, 0)
            rank = f'=1+COUNTIF({area},"<"&{cell})+COUNTIFS({area},{cell},{rows},"<"&{index})'
            put(here, column, Raw(rank, orders[side - 2].index(at) + 1), styles["r_calc0"])
    for place in range(len(crossover.rooms) + 1):
        here = first + place
        for column, side in ((6, 0), (7, 1)):
            if place == len(crossover.rooms):
                put(here, column, words["no_card"], styles["r_text_r"])
                continue
            rank = f"MATCH({page.cell(here, 8, column_fixed=True)},{_room_area(crossover, 4 + side)},0)"
            name = crossover.rooms[orders[side][place]].name
            put(here, column, Raw(f"=INDEX({_room_area(crossover, 1)},{rank})", name), styles["r_text_r"])
        put(here, 8, place + 1, styles["r_no"])
    page.print_area(ws, first + len(crossover.rooms), 1 + len(crossover.table.results))


# ---------------------------------------------------------------------- what the planner sees
def _heads(book: Book, crossover: Crossover) -> None:
    ws, styles, words = book.sheet(TITLE), book.styles, crossover.words
    put, count = book.putter(ws), len(crossover.names)
    width = book.look["sheets"][TITLE]["widths"][_WEIGHTS + 2 * count]
    height = page.wrapped_height(*((card, width) for card in book.job.choices("gpu_choice")))
    page.fill_row(ws, _HEAD, 0, 2 + 2 * count + CARDS + 1, styles["body"], height)
    ws.set_row(FIRST - 1, book.look["rows"]["header_two_lines"])
    put(_HEAD, _WEIGHTS + 2 * count - 1, words["choose"], styles.variant("help", horizontal="right", indent=1))
    put(FIRST - 1, _MODEL, words["columns"][0], styles["th"])
    put(FIRST - 1, _PARAMETERS, words["columns"][1], styles["th_r"])
    for at, name in enumerate(crossover.names):
        put(FIRST - 1, _WEIGHTS + at, crossover.of_format("columns", name, 2), styles["th_r"])
        put(FIRST - 1, _WEIGHTS + count + at, crossover.of_format("columns", name, 3), styles["th_i"])
    rule = validation(book, "gpu_choice")
    for card in range(CARDS):
        column = _WEIGHTS + 2 * count + card
        put(_HEAD, column, crossover.chosen[card], styles.variant("in_text", size=10, horizontal="left", indent=0))
        put(FIRST - 1, column, words["columns"][4], styles["th_i"])
        book.define(f"Crossover_Card_{card + 1}", TITLE, _HEAD, column)
        ws.data_validation(_HEAD, column, _HEAD, column, rule)
        wrong = f"=COUNTIF({column_name('gpus', None)},Crossover_Card_{card + 1})=0"
        page.formula_marks(ws, styles, (_HEAD, column, _HEAD, column), wrong, "check")


def _row(book: Book, crossover: Crossover, at: int, model: str) -> None:
    ws, styles, row = book.sheet(TITLE), book.styles, FIRST + at
    put, count = book.putter(ws), len(crossover.names)
    ws.set_row(row, book.look["rows"]["table"])
    jobs = [crossover.at(form, at) for form in range(count)]

    def cell(job: int, name: str) -> str:
        column = crossover.extra(name) if name in crossover.extras else 2 + crossover.table.column(name)
        return f"'{WORKINGS}'!{page.cell(FIRST + job, column, row_fixed=True, column_fixed=True)}"

    put(row, _MODEL, Raw(f"={cell(jobs[0], 'base_model')}", model), styles["r_label"])
    billions = Raw(f"={cell(jobs[0], 'base_parameter_count')}/One_Billion", crossover.needs[jobs[0]].parameters / 1e9)
    put(row, _PARAMETERS, book.shown(billions), styles["r_calc2"])
    for form, job in enumerate(jobs):
        need = crossover.needs[job]
        put(row, _WEIGHTS + form, book.shown(Raw(f"={cell(job, 'base')}", need.base_gb)), styles["r_calc1"])
        starts = starts_at(need, crossover.rooms) or crossover.words["no_card"]
        told = book.shown(Raw(f"={cell(job, 'starts')}", starts))
        put(row, _WEIGHTS + count + form, told, styles.variant("r_text_i", size=10, shrink=True))
    for card in range(CARDS):
        formula, value = quoted(crossover.words["none"]), crossover.words["none"]
        for name, job in reversed(list(zip(crossover.names, jobs, strict=True))):
            formula = f"IF({cell(job, f'card_{card + 1}')}>0,{quoted(name)},{formula})"
            value = name if crossover.fits(job, card) else value
        column = _WEIGHTS + 2 * count + card
        put(row, column, book.shown(Raw(f"={formula}", value)), styles["r_text_i"])
        mark = f"={page.cell(row, column)}={quoted(crossover.words['none'])}"
        page.formula_marks(ws, styles, (row, column, row, column), mark, "quiet")


def _nominal(book: Book, crossover: Crossover, row: int, last: int) -> int:
    """A nominal size: what its weights take, idealised, with scales, and as a model of that size is really loaded."""
    ws, styles, words = book.sheet(TITLE), book.styles, crossover.words
    put, nominal = book.putter(ws), crossover.words["nominal"]
    row = page.section(ws, styles, row, last_column=last, name=nominal["title"], put=put, note=None)
    put(row, 1, nominal["label"], styles["label"])
    put(row, 2, nominal["billions"], styles["in_num"])
    ws.set_row(row, book.look["rows"]["input"])
    book.define("Nominal_Parameters_Billion", TITLE, row, 2)
    ws.data_validation(
        row, 2, row, 2,
        {"validate": "decimal", "criteria": "between", "minimum": 0.001, "maximum": 100_000,
         "input_title": nominal["label"][:32], "input_message": nominal["allowed"],
         "error_title": nominal["label"][:32], "error_message": nominal["allowed"], "error_type": "stop"},
    )  # fmt: skip
    formats, rows = book.job.tables["storage_formats"], column_name("storage_formats", None)
    per = column_name("storage_formats", "bytes_per_parameter")
    plain, scaled = crossover.words["formats"][0][1], crossover.words["formats"][-1][1]
    for at, (name, form) in enumerate(zip(nominal["rows"], (plain, "", scaled), strict=True), 1):
        ws.set_row(row + at, book.look["rows"]["table"])
        each = formats.columns["bytes_per_parameter"][formats.row_of(form or plain) - 1] / (1 if form else 4)
        above = page.cell(row + at - 1, 5, column_fixed=True)
        found = f'=INDEX({per},MATCH("{form}",{rows},0))' if form else f"={above}/2^2"
        stored = f"=Nominal_Parameters_Billion*{page.cell(row + at, 5, column_fixed=True)}"
        put(row + at, 1, name, styles["r_label"])
        put(row + at, 2, Raw(stored, nominal["billions"] * each), styles["r_calc1"])
        put(row + at, 3, "GB", styles["r_unit"])
        put(row + at, 4, "", styles["r_unit"])
        put(row + at, 5, Raw(found, each), styles["r_calc3"])
        put(row + at, 6, nominal["each"], styles["r_unit"])
    row += 4
    loaded = ((0, nominal["loaded"][0]), (len(crossover.names) - 1, nominal["loaded"][1]))
    for form_at, name in loaded if nominal["model"] in crossover.models else ():
        job = crossover.at(form_at, crossover.models.index(nominal["model"]))
        cell = f"'{WORKINGS}'!{page.cell(FIRST + job, crossover.extra('base'), row_fixed=True, column_fixed=True)}"
        ws.set_row(row, book.look["rows"]["table"])
        put(row, 1, name, styles["r_label"])
        put(row, 2, book.shown(Raw(f"={cell}", crossover.needs[job].base_gb)), styles["r_calc1"])
        put(row, 3, "GB", styles["r_unit"])
        row += 1
    put(row, 1, words["nominal"]["note"], styles["help"])
    return row + 1


def _chart(book: Book, crossover: Crossover, row: int) -> None:
    """Total against parameters, a series a format, with the capacities of the chosen cards."""
    ws, styles, words = book.sheet(WORKINGS), book.styles, crossover.words
    put, count = book.putter(ws), len(crossover.models)
    top = crossover.cards_row
    column = 10
    put(top - 1, column, words["chart_title_head"], styles["th"])
    title = book.sym("crossover_title")
    put(top, column, book.shown(title, words["check"]), styles["label"])
    for at, text in enumerate(
        (words["columns"][1], *(crossover.of_format("total", name) for name in crossover.names), words["capacity"])
    ):
        put(top + 2, column + at, text, styles["th_r"])
    for at in range(count):
        job = crossover.at(0, at)
        parameters = page.cell(FIRST + job, 2 + crossover.table.column("base_parameter_count"))
        put(
            top + 3 + at,
            column,
            Raw(f"={parameters}/One_Billion", crossover.needs[job].parameters / 1e9),
            styles["r_calc2"],
        )
        for form in range(len(crossover.names)):
            job = crossover.at(form, at)
            total = page.cell(FIRST + job, crossover.extra("total"))
            value = "#N/A" if crossover.needs[job].need_gb is None else crossover.needs[job].total_gb
            put(top + 3 + at, column + 1 + form, Raw(f"={total}", value), styles["r_calc1"])
    lines = top + 3 + count
    ends = (0, count - 1)
    for card in range(CARDS):
        for side, at in enumerate(ends):
            here = lines + 3 * card + side
            parameters = page.cell(top + 3 + at, column)
            put(here, column, Raw(f"={parameters}", crossover.needs[at].parameters / 1e9), styles["r_calc2"])
            room = crossover.room_of.get(crossover.chosen[card])
            cell = _chosen(crossover, card, 3)
            known = Raw(f"=IF({cell}>0,{cell},NA())", room.published_gb if room else "#N/A")
            put(here, column + 4, known, styles["r_calc1"])
        put(lines + 3 * card + 2, column + 4, Raw("=NA()", "#N/A"), styles["r_calc1"])

    def points(name: str, first: int, end: int, at: int) -> charts.Points:
        return charts.Points(
            name, [WORKINGS, first, column, end, column], [WORKINGS, first, column + at, end, column + at]
        )

    chart = charts.totals_by_size(
        book.workbook, book.look, title=[WORKINGS, top, column], x_title=words["columns"][1],
        formats=[points(name, top + 3, lines - 1, 1 + at) for at, name in enumerate(crossover.names)],
        capacity=points(words["capacity"], lines, lines + 3 * CARDS - 1, 4),
    )  # fmt: skip
    size = book.look["charts"]["totals_by_size"]["size"]
    charts.place(book.sheet(TITLE), row, 1, chart, size=size, alt=words["alt"])


def _strip(book: Book, crossover: Crossover, last: int) -> None:
    words, shown, count = crossover.words, book.shown, len(crossover.models)
    tiles = []
    for form, (name, span) in enumerate(zip(crossover.names, ((1, 1), (2, 5), (6, 7)), strict=True)):
        first, end = (
            page.cell(FIRST + crossover.at(form, at), crossover.extra("largest"), row_fixed=True, column_fixed=True)
            for at in (0, count - 1)
        )
        area = f"'{WORKINGS}'!{first}:{end}"
        models = ":".join(
            page.cell(FIRST + at, 2 + crossover.table.column("base_model"), row_fixed=True, column_fixed=True)
            for at in (0, count - 1)
        )
        symbol = f"largest_model_{name.lower()}"
        found = f"INDEX('{WORKINGS}'!{models},MATCH(MAX({area}),{area},0))"
        told = Raw(f"=IF(MAX({area})>0,{found},{quoted(words['no_model'])})", book.values[symbol])
        book.put(
            book.sheet(WORKINGS), crossover.cards_row - 3, 2 + form, book.shown(told), book.styles["r_text_r"]
        )  # fmt: skip
        book.define(public_name(symbol), WORKINGS, crossover.cards_row - 3, 2 + form)
        tiles.append(
            Tile(
                *span, crossover.of_format("largest", name), shown(book.sym(symbol)), words["largest_note"], "tile_text"
            )
        )
    tiles.append(compare.here(book, 8, last - 1))
    told = book.value(book.sym("crossover_told"))
    page.strip(
        book.sheet(TITLE), book.styles, last_column=last, title=words["title"],
        sentence=Raw("=IF(Checks_Failed>0,First_Fault,Crossover_Told_Sentence)", told),
        stamp=book.stamp, put=book.putter(book.sheet(TITLE)), tiles=tiles,
    )  # fmt: skip

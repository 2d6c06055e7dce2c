"""Sensitivity: two inputs on two axes, and what the job of Sizing would be at each crossing.

Which inputs stand on the axes, and their values, is the planner's to choose. "Sensitivity workings" checks each
value as its input is checked, and brings each crossing's verdict and total from What-if; a value that is wrong or
missing is replaced there by what is in force, so that the row stays a job, and is marked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.domains import allowed
from .. import page
from ..book import Raw
from ..inputs import row_fault
from ..page import Tile
from ..words import filled, quoted, spelled
from . import checks, compare

if TYPE_CHECKING:
    from ..book import Book

TITLE, WORKINGS = "Sensitivity", "Sensitivity workings"
MOST = 8  # values on each axis
_LONGEST = 120  # characters of a value
ROWS, COLUMNS = "Sensitivity_Rows", "Sensitivity_Columns"
INPUTS, RIGHT = "Axis_Inputs_List", "Axis_Inputs_Right_List"
TOLD, MESSAGES = "Axis_Values_Told_List", "Axis_Values_Message_List"
_CHOICE = 7  # row of the two choices on the visible sheet, from 0
_GRID = 10  # row of the first grid's header
_FIRST = 5  # row of the first axis value on the workings


class Sensitivity:
    """The axes as the workbook opens, and the rows of What-if that hold the crossings."""

    def __init__(self, book: Book) -> None:
        job, axes = book.job, book.template["axes"]
        self.words = book.template["sensitivity"]
        self.keys: list[str] = axes["inputs"]
        self.labels = [job.inputs[key].label for key in self.keys]
        self.axes = (axes["rows"], axes["columns"])
        self.values: tuple[list[Any], list[Any]] = (axes["row_values"], axes["column_values"])
        self.figure: str = axes.get("figure", "total_shown_gb")  # what the second grid shows
        self.size = len(self.values[0])
        if not 1 <= self.size <= MOST or len(self.values[1]) != self.size:
            raise ValueError(
                f"templates/{job.name}.toml: axes has {self.size} row values and {len(self.values[1])} column values; "
                f"it must have as many of the one as of the other, from 1 to {MOST}"
            )
        # What is entered in place of a preset counts for the preset it replaces, not for another.
        self.own = {own: key for key in self.keys for own in job.own_values_of(key)}
        self.jobs = [
            book.what_if.add(self._called(row, column), self._cells(book, row, column))
            for row in range(self.size)
            for column in range(self.size)
        ]

    @property
    def totals(self) -> int:
        """The row of the second grid's header."""
        return _GRID + self.size + 3

    @property
    def crossings(self) -> int:
        """The row of the first crossing on the workings."""
        return _FIRST + 2 * self.size + 4

    def _called(self, row: int, column: int) -> str:
        return filled(self.words["beside"]["crossing"], row=str(row + 1), column=str(column + 1))

    def _cells(self, book: Book, row: int, column: int) -> dict[str, Any]:
        """The inputs of a crossing: those of the axes, and what is entered for a preset that an axis replaces."""
        found: dict[str, Any] = {}
        at, across = (f"'{WORKINGS}'!${_letter(self, 'used')}${_FIRST + 1 + n}" for n in (row, self.size + column))
        entered = (self.values[0][row], self.values[1][column])
        for key in book.what_if.table.inputs:
            name, value = book.cell_name(key), book.values[key]
            if key in self.keys:
                label = self.labels[self.keys.index(key)]
                if key in self.axes:
                    value = entered[self.axes.index(key)]
                formula = f'=IF({ROWS}="{label}",{at},IF({COLUMNS}="{label}",{across},{name}))'
                found[key] = Raw(formula, value)
            elif key in self.own:
                label = self.labels[self.keys.index(self.own[key])]
                if self.own[key] in self.axes:
                    value = None
                formula = f'=IF(({ROWS}="{label}")+({COLUMNS}="{label}")>0,"none",{name})'
                found[key] = Raw(formula, value)
        return found


def _letter(sensitivity: Sensitivity, column: str) -> str:
    return page.cell(0, _columns(sensitivity)[column]).rstrip("1")


def _columns(sensitivity: Sensitivity) -> dict[str, int]:
    """Where the figures of an axis value stand on the workings."""
    count = len(sensitivity.keys)
    first = ("typed", "axis", "fault", "used", "told", "message")
    return {name: at for at, name in enumerate(first, 2)} | {"faults": 8, "forced": 8 + count}


def number_form(unit: str) -> str:
    """The style of the second grid's figures: GB with a decimal, counts whole."""
    return "r_calc1" if unit == "GB" else "r_calc0"


def plan(book: Book) -> None:
    """Add the crossings to What-if and count their verdicts."""
    book.sensitivity = Sensitivity(book)


def write(book: Book) -> None:
    """Both sheets."""
    sensitivity = book.sensitivity
    _write_workings(book, sensitivity)
    ws, styles, words = book.sheet(TITLE), book.styles, sensitivity.words
    put = book.putter(ws)
    last = page.set_page(ws, book.look, kind=TITLE, file_and_version=book.footer, freeze=(7, 2))
    _strip(book, sensitivity, last)
    _choices(book, sensitivity)
    _typed(book, sensitivity)
    number = number_form(book.job.unit_of(sensitivity.figure))
    for top, what, form in ((_GRID, "verdict", "r_text_r"), (sensitivity.totals, "total", number)):
        head = words["verdicts"] if what == "verdict" else words["totals"]
        page.fill_row(ws, top - 1, 1, last - 1, styles["th_open"], book.look["rows"]["header"])
        put(top - 1, 1, head, styles["th_open"])
        for row in range(sensitivity.size):
            ws.set_row(top + 1 + row, book.look["rows"]["table"])
            if what == "total":
                echo = styles.variant("r_text_r", format="n0", indent=0, shrink=True)
                put(top + 1 + row, 1, _echo(sensitivity, 0, row), echo)
            for column in range(sensitivity.size):
                cell = _crossing(book, sensitivity, row, column, what)
                put(top + 1 + row, 2 + column, book.shown(cell), styles[form])
    ws.set_row(sensitivity.totals, _header_height(book, sensitivity))
    put(sensitivity.totals, 1, "", styles["th"])
    for column in range(sensitivity.size):
        put(
            sensitivity.totals, 2 + column, _echo(sensitivity, 1, column), styles.variant("th_r", format="n0", indent=0)
        )
    area = (_GRID + 1, 2, _GRID + sensitivity.size, 1 + sensitivity.size)
    page.state_marks(ws, styles, area)
    page.print_area(ws, sensitivity.totals + sensitivity.size + 1, last)
    put(sensitivity.totals + sensitivity.size + 1, 1, words["note"], styles["help"])


def _place(axis: int, at: int) -> tuple[int, int]:
    """The cell of an axis value on the visible sheet: down the first column, or across the header."""
    return (_GRID + 1 + at, 1) if axis == 0 else (_GRID, 2 + at)


def _echo(sensitivity: Sensitivity, axis: int, at: int) -> Raw:
    """An axis value again, at the second grid."""
    typed = page.cell(*_place(axis, at), row_fixed=True, column_fixed=True)
    value = sensitivity.values[axis][at]
    return Raw(f'=IF({typed}="","",{typed})', value)


def _choices(book: Book, sensitivity: Sensitivity) -> None:
    """The two inputs of the axes."""
    ws, styles, words = book.sheet(TITLE), book.styles, sensitivity.words
    put = book.putter(ws)
    for at, (name, label) in enumerate(((ROWS, words["rows"]), (COLUMNS, words["columns"]))):
        row = _CHOICE + at
        ws.set_row(row, book.look["rows"]["input"])
        put(row, 1, label, styles["label"])
        put(row, 2, sensitivity.labels[sensitivity.keys.index(sensitivity.axes[at])], styles["in_left"])
        book.define(name, TITLE, row, 2)
        ws.data_validation(
            row, 2, row, 2,
            {"validate": "list", "source": f"={INPUTS}", "input_title": label[:32], "input_message": words["choice"],
             "error_title": label[:32], "error_message": words["choice"], "error_type": "stop"},
        )  # fmt: skip
        same = f"=(COUNTIF({INPUTS},{name})=0)+({ROWS}={COLUMNS})>0"
        page.formula_marks(ws, styles, (row, 2, row, 2), same, "check")
    put(_CHOICE, 4, words["choice"], styles["help"])


def _header_height(book: Book, sensitivity: Sensitivity) -> float:
    """The height of a header that shows every choice which an axis may hold whole."""
    width = book.look["sheets"][TITLE]["widths"][2]
    choices = [choice for key in sensitivity.keys for choice in book.job.choices(key)]
    return page.wrapped_height(*((choice, width) for choice in choices))


def _typed(book: Book, sensitivity: Sensitivity) -> None:
    """The values on the axes: typed by the planner, marked where they are wrong."""
    ws, styles, words = book.sheet(TITLE), book.styles, sensitivity.words
    columns = _columns(sensitivity)
    ws.set_row(_GRID, _header_height(book, sensitivity))
    book.put(ws, _GRID, 1, words["corner"], styles["th"])
    for axis, name in enumerate(("row", "column")):
        for at in range(sensitivity.size):
            row, column = _place(axis, at)
            style = styles.variant("g_text_r", format="n0", wrap=axis == 1, shrink=axis == 0)
            book.put(ws, row, column, sensitivity.values[axis][at], style)
            book.define(f"Sensitivity_{name.capitalize()}_{at + 1}", TITLE, row, column)
            ws.data_validation(
                row, column, row, column,
                {"validate": "length", "criteria": "between", "minimum": 0, "maximum": _LONGEST,
                 "input_title": words["corner"], "input_message": words["choice"], "error_title": words["corner"],
                 "error_message": words["choice"], "error_type": "stop"},
            )  # fmt: skip
            fault = page.cell(
                _FIRST + axis * sensitivity.size + at, columns["fault"], row_fixed=True, column_fixed=True
            )
            typed = page.cell(row, column, row_fixed=True, column_fixed=True)
            wrong = f"=IF({typed}=\"\",0,'{WORKINGS}'!{fault})>0"
            page.formula_marks(ws, styles, (row, column, row, column), wrong, "check")


def _crossing(book: Book, sensitivity: Sensitivity, row: int, column: int, what: str) -> Raw:
    """Verdict or total at a crossing: nothing where an axis has no value, a word where something is wrong."""
    job = row * sensitivity.size + column
    at = page.cell(sensitivity.crossings + job, 2 if what == "verdict" else 3, row_fixed=True, column_fixed=True)
    blank = "+".join(
        f'({page.cell(*_place(axis, n), row_fixed=True, column_fixed=True)}="")' for axis, n in ((0, row), (1, column))
    )
    return Raw(f"=IF({blank}>0,\"\",'{WORKINGS}'!{at})", _value(book, sensitivity, job, what))


def _value(book: Book, sensitivity: Sensitivity, job: int, what: str) -> Any:
    row, jobs = sensitivity.jobs[job], book.what_if
    return jobs.results(row)[sensitivity.figure] if what == "total" and not jobs.breaks(row) else jobs.word(row)


# ---------------------------------------------------------------------- the workings
def _write_workings(book: Book, sensitivity: Sensitivity) -> None:
    ws, styles, columns = book.sheet(WORKINGS), book.styles, _columns(sensitivity)
    put, count = book.putter(ws), len(sensitivity.keys)
    page.plain_sheet(
        book, WORKINGS, kind="wide", last_column=columns["forced"] + count, stamp=False,
        sentence=sensitivity.words["workings"], rows_repeated=(0, 1), freeze=(2, 2),
    )  # fmt: skip
    beside = sensitivity.words["beside"]
    heads = [
        *beside["columns"],
        *(filled(beside[key], label=label) for key in ("wrong", "in_force") for label in sensitivity.labels),
    ]
    put(_FIRST - 1, 1, beside["name"], styles["th"])
    for at, text in enumerate(heads, 2):
        put(_FIRST - 1, at, text, styles["th_r"])
    for axis, name in enumerate((ROWS, COLUMNS)):
        for at in range(sensitivity.size):
            _axis_value(book, sensitivity, axis, at, name)
    book.define(TOLD, WORKINGS, _FIRST, columns["told"], _FIRST + 2 * sensitivity.size - 1)
    book.define(MESSAGES, WORKINGS, _FIRST, columns["message"], _FIRST + 2 * sensitivity.size - 1)
    for at, text in enumerate(beside["crossings"], 1):
        put(sensitivity.crossings - 1, at, text, styles["th" if at == 1 else "th_r"])
    for job in range(sensitivity.size * sensitivity.size):
        _job_row(book, sensitivity, job)
    end = sensitivity.crossings + sensitivity.size * sensitivity.size
    for at, text in enumerate(beside["inputs"], 1):
        put(end + 1, at, text, styles["th" if at == 1 else "th_i"])
    for at, (key, label) in enumerate(zip(sensitivity.keys, sensitivity.labels, strict=True), end + 2):
        put(at, 1, label, styles["r_label"])
        put(at, 2, allowed(book.job, key), styles["r_text_i"])
    for column, defined in enumerate((INPUTS, RIGHT), 1):
        book.define(defined, WORKINGS, end + 2, column, end + 1 + count)
    page.print_area(ws, end + 1 + count, 5)


def _axis_value(book: Book, sensitivity: Sensitivity, axis: int, at: int, name: str) -> None:
    """One value: how each input would judge it, how the input of its axis does, and what is used."""
    put, styles, columns = book.putter(book.sheet(WORKINGS)), book.styles, _columns(sensitivity)
    row, count, value = _FIRST + axis * sensitivity.size + at, len(sensitivity.keys), sensitivity.values[axis][at]
    plain = styles.variant("r_calc0", format="general")

    def here(column: str, more: int = 0) -> str:
        return page.cell(row, columns[column] + more, column_fixed=True)

    visible = page.cell(*_place(axis, at), row_fixed=True, column_fixed=True)
    key = sensitivity.axes[axis]
    words, which = sensitivity.words, str(at + 1)
    put(row, 1, filled(words["beside"]["axes"][axis], at=which), styles["r_label"])
    cell = f"{TITLE}!{visible}"
    typed = Raw(f'=IF(ISNUMBER({cell}),{cell},IF(ISTEXT({cell}),{cell},""))', value)
    put(row, columns["typed"], typed, styles["r_text_r"])
    known = f"({ROWS}={COLUMNS})+(SUMPRODUCT(({INPUTS}={name})*1)=0)"
    axis_row = f"=IF({known}>0,0,MATCH({name},{INPUTS},0))"
    put(row, columns["axis"], Raw(axis_row, sensitivity.keys.index(key) + 1), plain)
    for more, each in enumerate(sensitivity.keys):
        bounds = checks.bounds(book.job, each)
        put(
            row,
            columns["faults"] + more,
            Raw(row_fault(book, each, here("typed"), bounds), _fault(book, each, value)),
            plain,
        )
        in_force = Raw(f"={book.cell_name(each)}", book.values[each])
        put(row, columns["forced"] + more, in_force, styles["r_text_r"])
    faults, forced = (f"{here(column)}:{here(column, count - 1)}" for column in ("faults", "forced"))
    found = f"INDEX({faults},{here('axis')})"
    put(row, columns["fault"], Raw(f"=IF({here('axis')}>0,{found},1)", 0), plain)
    used = f"=IF({here('fault')}=0,{here('typed')},INDEX({forced},MAX(1,{here('axis')})))"
    put(row, columns["used"], Raw(used, value), styles["r_text_r"])
    told = f"=IF({here('axis')}>0,{here('fault')}*(1-ISBLANK({cell})),0)"
    put(row, columns["told"], Raw(told, 0), plain)
    typed_here = here("typed")
    message = spelled(
        words["wrong"],
        axis=quoted(words["rows" if axis == 0 else "columns"]), at=quoted(which), label=name,
        value=f'IF({typed_here}="",{quoted(words["error"])},{typed_here})',
        text=f'IF(ISTEXT({typed_here}),IF(ISNUMBER(1*{typed_here}),{quoted(words["text"])},""),"")',
        right=f"INDEX({RIGHT},{here('axis')})",
    )  # fmt: skip
    put(row, columns["message"], Raw(f'=IF({here("told")}>0,{message},"")', ""), styles["r_text_r"])


def _fault(book: Book, key: str, value: Any) -> int:
    """1 where a value is none that the input takes."""
    from ...formula.domains import accept

    if isinstance(getattr(book.job.inputs[key].domain, "high", 0), str) and not isinstance(value, str):
        return int(not 1 <= value <= book.values[getattr(book.job.inputs[key].domain, "high")])  # noqa: B009
    try:
        accept(book.job, key, value)
    except ValueError:
        return 1
    return 0


def _job_row(book: Book, sensitivity: Sensitivity, job: int) -> None:
    put, styles, columns, jobs = book.putter(book.sheet(WORKINGS)), book.styles, _columns(sensitivity), book.what_if
    row, at = sensitivity.crossings + job, sensitivity.jobs[job]
    down, across = (
        page.cell(_FIRST + n, columns["fault"], row_fixed=True, column_fixed=True)
        for n in (job // sensitivity.size, sensitivity.size + job % sensitivity.size)
    )
    put(row, 1, jobs.rows[at][0], styles["r_label"])
    put(row, 2, jobs.verdict(at, f"{down}+{across}+"), styles["r_text_r"])
    verdict, total = page.cell(row, 2, column_fixed=True), jobs.address(at, sensitivity.figure)
    shown = f'=IF({verdict}="{jobs.check}","{jobs.check}",{total})'
    number = number_form(book.job.unit_of(sensitivity.figure))
    put(row, 3, Raw(shown, _value(book, sensitivity, job, "total")), styles[number])


def _strip(book: Book, sensitivity: Sensitivity, last: int) -> None:
    words, shown = sensitivity.words, book.shown
    area = ":".join(
        page.cell(row, column, row_fixed=True, column_fixed=True)
        for row, column in ((_GRID + 1, 2), (_GRID + sensitivity.size, 1 + sensitivity.size))
    )
    found = [_value(book, sensitivity, job, "verdict") for job in range(sensitivity.size * sensitivity.size)]
    states = book.job.tables["verdicts"].columns["shown"]
    tiles = [
        Tile(first, end, words["tiles"][at], shown(Raw(f'=COUNTIF({area},"{state}")', found.count(state))),
             words["tile_notes"][at], "tile_count")
        for at, ((first, end), state) in enumerate(zip(((1, 1), (2, 3), (4, 5)), states, strict=True))
    ]  # fmt: skip
    tiles.append(compare.here(book, 6, last - 1))
    labels = [sensitivity.labels[sensitivity.keys.index(key)] for key in sensitivity.axes]
    known = "*".join(f"SUMPRODUCT(({INPUTS}={name})*1)" for name in (ROWS, COLUMNS))
    down, across = words["told"]
    check = book.what_if.check
    more = f'IF(SUM({TOLD})>1,{spelled(words["more"], count=f"(SUM({TOLD})-1)")},"")'
    wrong = f"INDEX({MESSAGES},MATCH(1,{TOLD},0))&{more}"
    contradict, crossed = filled(words["contradict"], check=check), f"{labels[0]}{down}{labels[1]}{across}"
    plain = f"{ROWS}&{quoted(down)}&{COLUMNS}&{quoted(across)}"
    said = f'IF(SUM({TOLD})>0,{wrong},IF(COUNTIF({area},"{check}")>0,{quoted(contradict)},{plain}))'
    told = Raw(
        f"=IF(({ROWS}<>{COLUMNS})*{known}>0,{said},{quoted(words['choice'])})",
        contradict if check in found else crossed,
    )
    page.strip(
        book.sheet(TITLE), book.styles, last_column=last, title=words["title"],
        sentence=Raw(f"=IF(Checks_Failed>0,First_Fault,{told.formula[1:]})", told.value),
        stamp=book.stamp, put=book.putter(book.sheet(TITLE)), tiles=tiles,
    )  # fmt: skip

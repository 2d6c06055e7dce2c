"""Levers: the job as it is and with each change alone; how far it can grow with and without checkpointing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.expression import Expr
from ...formula.primitives import fixed
from ...formula.render import public_name
from ...planning.levers import hindrance, none_applies, together, why_not
from .. import page
from ..book import Raw
from ..page import Tile
from ..words import filled, quoted, spelled
from . import compare, search

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Levers"
_LABEL, _CHANGE, _TOTAL, _SAVING, _SHARE, _VERDICT, _TIME, _QUALITY = range(1, 9)
_GROWN: tuple[tuple[str, ...], ...] = (
    (),
    ("batch_size",),
    ("sequence_length",),
    ("batch_size", "sequence_length"),
)  # inputs doubled
_STATES = ("Off", "On")  # of checkpointing
_DASH, _NOTHING = Raw('="–"', "–"), Raw('=""', "")
CHECKPOINTED = "checkpointed_reason"  # why no job of this kind is checkpointed; empty where it can be


class Levers:
    """Which rows of What-if hold the levers, all of them together, and the doubled jobs."""

    def __init__(self, book: Book) -> None:
        self.levers = book.template["levers"]
        self.words = book.template["levers_sheet"]
        self.names = [lever["name"] for lever in self.levers] + [self.words["all"]]
        self.changes = [lever["change"] for lever in self.levers]
        self.rows = [
            book.what_if.add(
                filled(self.words["lever"], name=name), {key: _cell(book, value) for key, value in change.items()}
            )
            for name, change in zip(self.names, self.changes, strict=False)
        ]
        self.reasons = [self._reason(book, at) for at in range(len(self.levers))]
        book.say("levers_reason", none_applies(map(book.sym, self.reasons), self.words["none_applies"]))
        self.reasons.append("levers_reason")
        self.changes.append(together(self.levers))
        book.what_if.part()
        self.rows.append(book.what_if.add(filled(self.words["lever"], name=self.words["all"]), self._all(book)))
        self.grown = {
            (doubled, state): book.what_if.add(
                filled(self.words["grown_job"], state=state.lower(), doubled=_doubled(book, doubled).lower()),
                {"activation_checkpointing": state, **{key: _twice(book, key) for key in doubled}},
            )
            for doubled in _GROWN
            for state in _STATES
        }
        checkpoints = next(lever for lever in self.levers if "activation_checkpointing" in lever["change"])
        book.say(CHECKPOINTED, hindrance(checkpoints.get("unless", ()), book.sym, book.sym))
        for question, conditions in self.words["unless"].items():
            if question in book.values:
                book.say(f"{question}_reason", hindrance(conditions, book.sym, book.sym))

    def _reason(self, book: Book, at: int) -> str:
        """The sentence that says why a lever does not apply, empty where it does."""
        key = f"lever_{at + 1}_reason"
        book.say(key, why_not(self.levers[at], book.sym, lambda symbol: _pulled(book, self.rows[at], symbol)))
        return key

    def _all(self, book: Book) -> dict[str, Any]:
        """The inputs of all levers that apply; the others leave theirs as it is entered."""
        found: dict[str, Any] = {}
        jobs = book.what_if
        for reason, row, change in zip(self.reasons, self.rows, self.changes, strict=False):
            for key in change:
                entered, applies = book.cell_name(key), book.values[reason] == ""
                formula = f'=IF({book.cell_name(reason)}="",{jobs.address(row, key)},{entered})'
                found[key] = Raw(formula, jobs.results(row)[key] if applies else book.values[key])
        return found

    def applies(self, book: Book, at: int) -> bool:
        """Whether a lever applies to the job as entered."""
        return bool(book.values[self.reasons[at]] == "")


def _pulled(book: Book, row: int, symbol: str) -> Expr:
    """An input or a term of a job of What-if, as a symbol that sentences may use."""
    key = f"what_if_{row}_{symbol}"
    book.external(key, book.job.unit_of(symbol), book.what_if.results(row)[symbol])
    book.aliases[key] = book.what_if.address(row, symbol)
    return book.sym(key)


def _unless(book: Book, reason: str, content: Raw, instead: Raw = _DASH) -> Raw:
    """A formula that gives way to another while a reason is given; and to a dash while an input is faulty."""
    value = content.value if book.values[reason] == "" else instead.value
    formula = f'=IF({book.cell_name(reason)}<>"",{instead.formula[1:]},{content.formula[1:]})'
    return book.shown(Raw(formula, value))


def _text(text: str) -> Raw:
    """A text, as a formula that may give way to another."""
    return Raw(f"={quoted(text)}", text)


def _does_not_apply(book: Book, reason: str, words: str) -> Raw:
    """That something does not apply, and why; words: how that begins."""
    return Raw(f"={quoted(words)}&{book.cell_name(reason)}", f"{words}{book.values[reason]}")


def plan(book: Book) -> None:
    """Add the jobs to What-if, and the figure that a bigger batch must beat."""
    book.levers = Levers(book)
    book.derive("optimizer_floor_gb", "GB", book.sym("optimizer_moment") / book.sym("bytes_per_gb"))


def _cell(book: Book, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return Raw(f"=MAX(1,INT({book.cell_name(value['half'])}/2))", max(1, int(book.values[value["half"]] // 2)))


def _twice(book: Book, key: str) -> Raw:
    return Raw(
        f"=MIN({public_name(key)}_Limit,2*{book.cell_name(key)})",
        min(book.values[f"{key}_limit"], 2 * book.values[key]),
    )


def _doubled(book: Book, keys: tuple[str, ...]) -> str:
    words = book.template["levers_sheet"]["doubled"]
    return str(words[" and ".join(keys) or "none"])


def write(book: Book) -> None:
    """The sheet."""
    levers, words = book.levers, book.levers.words
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    last = page.set_page(ws, book.look, kind=TITLE, file_and_version=book.footer, freeze=(7, 2))
    row = page.section(ws, styles, 7, last_column=last, name=words["table"], put=put, space_below=False)
    _head(book, row, words["columns"])
    row = first = row + 1
    _lever_row(book, row, words["as_entered"], None)
    for at in range(len(levers.rows)):
        _lever_row(book, row + 1 + at, levers.names[at], at)
    row += len(levers.rows)
    grid = book.look["sheets"][TITLE]["widths"]
    page.data_bar(ws, styles, (first, _SHARE, row, _SHARE), maximum=page.bar_maximum(1, 6.8, grid[_SHARE]))
    page.state_marks(ws, styles, (first, _VERDICT, row, _VERDICT))
    _strip(book, first, row, last)
    put(row + 1, _LABEL, words["note"], styles["help"])
    row = _grown(book, row + 2, last)
    row = _boundaries(book, row, last)
    page.print_area(ws, row, last)


def _head(book: Book, row: int, texts: list[str]) -> None:
    ws, styles = book.sheet(TITLE), book.styles
    ws.set_row(row, book.look["rows"]["header"])
    for column, text in enumerate(texts, 1):
        numeric = column in (_TOTAL, _SAVING, _SHARE)
        form = "th" if column == _LABEL else "th_r" if numeric else "th_i"
        book.put(ws, row, column, text, styles[form])


def _lever_row(book: Book, row: int, name: str, at: int | None) -> None:
    """One lever; at: its number, None for the job as entered."""
    ws, styles, levers, jobs = book.sheet(TITLE), book.styles, book.levers, book.what_if
    put, words = book.putter(ws), book.levers.words
    every = at == len(levers.levers)
    form = "t" if every else "r"
    ws.set_row(row, _height(book, at))
    here = 0 if at is None else levers.rows[at]
    total, before = jobs.address(here, "total_shown_gb"), jobs.address(0, "total_shown_gb")
    now, then = jobs.results(here)["total_shown_gb"], jobs.results(0)["total_shown_gb"]

    def style(name: str, **changes: Any) -> Any:
        found = f"{form}_{name}" if f"{form}_{name}" in book.look["styles"] else f"r_{name}"
        return styles.variant(found, **changes) if changes else styles[found]

    put(row, _LABEL, name, style("label"))
    figure, verdict = Raw(f"={total}", now), book.what_if.verdict(here)
    verdict_style = styles.variant("t_label", indent=1) if every else style("text_i")
    if at is None:
        put(row, _TOTAL, book.shown(figure), style("calc1", shrink=True))
        put(row, _VERDICT, book.shown(verdict), verdict_style)
        for column in (_CHANGE, _SAVING, _SHARE, _TIME, _QUALITY):
            put(row, column, "", style("label"))
        return
    reason = levers.reasons[at]
    told = _text(words["everything"]) if every else _told(book, at)
    idle = _does_not_apply(book, reason, words["not_so"])
    put(row, _CHANGE, _unless(book, reason, told, idle), styles.variant(f"{form}_help", indent=1))
    put(row, _TOTAL, _unless(book, reason, figure), style("calc1", shrink=True))
    put(row, _VERDICT, _unless(book, reason, verdict), verdict_style)
    basis, first = (jobs.address(at, "rests_on_traced") for at in (here, 0))
    alike = jobs.results(here)["rests_on_traced"] == jobs.results(0)["rests_on_traced"]
    saved = Raw(
        f"=IF({basis}={first},ROUND({before}-{total},1)+0,{quoted(words['other'])})",
        round(then - now, 1) + 0 if alike else words["other"],
    )
    put(row, _SAVING, _unless(book, reason, saved), style("calc1", shrink=True))
    share = page.cell(row, _SAVING, column_fixed=True)
    part = 1 - now / then if alike and levers.applies(book, at) else "–"
    put(row, _SHARE, book.shown(Raw(f'=IF(ISNUMBER({share}),1-{total}/{before},"–")', part)), style("share"))
    for column, key in ((_TIME, "time"), (_QUALITY, "quality")):
        text = "" if every else levers.levers[at][key]
        put(row, column, _unless(book, reason, _text(text)), styles.variant(f"{form}_help", indent=1))


def _height(book: Book, at: int | None) -> float:
    """The height of a lever's row, whatever it says."""
    levers, widths = book.levers, book.look["sheets"][TITLE]["widths"]
    least = float(book.look["rows"]["input"])
    if at is None or at == len(levers.levers):
        return least
    lever, words = levers.levers[at], levers.words
    reasons = [lever.get("already", ""), *(each["why"] for each in lever.get("unless", ()))]
    costs = ((lever["time"], widths[_TIME]), (lever["quality"], widths[_QUALITY]))
    idle = ((f"{words['not_so']}{reason}", widths[_CHANGE]) for reason in reasons if reason)
    return max(least, page.wrapped_height(*costs, *idle))


def _told(book: Book, at: int) -> Raw:
    """What a lever changes, in words: from what is in force to what it makes of it."""
    lever, jobs = book.levers.levers[at], book.what_if
    if "told" in lever:
        return _text(lever["told"])
    key, here = next(iter(lever["change"])), book.levers.rows[at]
    before, after = jobs.address(0, key), jobs.address(here, key)
    words = f"{jobs.rows[0][1][key]} → {jobs.rows[here][1][key]}"
    return Raw(f'={before}&" → "&{after}', words)


def _strip(book: Book, first: int, end: int, last: int) -> None:
    """The job as it is, the lever that saves most, and all together."""
    levers, words, jobs, shown = book.levers, book.levers.words, book.what_if, book.shown
    saved = [jobs.results(0)["total_shown_gb"] - jobs.results(row)["total_shown_gb"] for row in levers.rows[:-1]]
    basis = [jobs.results(row)["rests_on_traced"] for row in (0, *levers.rows[:-1])]
    comparable = [levers.applies(book, at) and basis[at + 1] == basis[0] for at in range(len(saved))]
    real = [round(saving, 1) + 0 for at, saving in enumerate(saved) if comparable[at]]
    names, savings = (
        f"{page.cell(first + 1, column, row_fixed=True, column_fixed=True)}:"
        f"{page.cell(end - 1, column, row_fixed=True, column_fixed=True)}"
        for column in (_LABEL, _SAVING)
    )
    most = max(real, default=0)
    helps = f"IF(COUNT({savings})>0,MAX({savings}),0)"
    best = (at for at in range(len(saved)) if most > 0 and comparable[at] and round(saved[at], 1) + 0 == most)
    name = next((levers.names[at] for at in best), words["nothing"])
    nothing = quoted(words["nothing"])
    every, less = levers.rows[-1], filled(words["less"], figure=fixed(most, 1)) if most > 0 else ""

    def total(row: int) -> Any:
        return shown(Raw(f"={jobs.address(row, 'total_shown_gb')}", jobs.results(row)["total_shown_gb"]))

    page.strip(
        book.sheet(TITLE), book.styles, last_column=last, title=words["title"],
        sentence=Raw("=IF(Checks_Failed>0,First_Fault,Floor_Told_Sentence)", book.value(book.sym("floor_told"))),
        stamp=book.stamp, put=book.putter(book.sheet(TITLE)),
        tiles=[
            Tile(1, 1, words["as_entered"], total(0), shown(book.what_if.verdict(0))),
            Tile(2, 4, words["most"],
                 shown(Raw(f"=IF({helps}>0,INDEX({names},MATCH({helps},{savings},0)),{nothing})", name)),
                 shown(Raw(f'=IF({helps}>0,{spelled(words["less"], figure=f"FIXED({helps},1)")},"")', less)),
                 "tile_text"),
            Tile(5, 6, words["all"], total(every), shown(book.what_if.verdict(every))),
            compare.here(book, 7, last - 1),
        ],
    )  # fmt: skip


def _grown(book: Book, row: int, last: int) -> int:
    """Twice the batch, twice the sequence and both, with and without checkpointing."""
    ws, styles, levers, jobs = book.sheet(TITLE), book.styles, book.levers, book.what_if
    put, words = book.putter(ws), book.levers.words
    row = page.section(ws, styles, row, last_column=last, name=words["grown"], put=put, space_below=False)
    ws.set_row(row, book.look["rows"]["header"])
    for column, text in enumerate(words["grown_columns"], 1):
        form = "th" if column == _LABEL else "th_i" if column in (_SAVING, _SHARE, _TIME) else "th_r"
        put(row, column, text, styles[form])
    first = row + 1
    checked, idle = styles.variant("r_calc1", shrink=True), _does_not_apply(book, CHECKPOINTED, words["not_so"])
    for at, doubled in enumerate(_GROWN):
        here = first + at
        ws.set_row(here, book.look["rows"]["table"])
        put(here, _LABEL, _doubled(book, doubled), styles["r_label"])
        plain, checkpointed = (levers.grown[doubled, state] for state in _STATES)
        size = tuple(jobs.rows[plain][1][key] for key in ("batch_size", "sequence_length"))
        cells = tuple(jobs.address(plain, key) for key in ("batch_size", "sequence_length"))
        told = Raw(f'=FIXED({cells[0]},0)&" × "&FIXED({cells[1]},0)', f"{size[0]:,} × {size[1]:,}")
        put(here, _CHANGE, book.shown(told), styles["r_text_r"])
        put(here, _TOTAL, book.shown(_sized(book, plain)), checked)
        put(here, _SAVING, book.shown(jobs.verdict(plain)), styles["r_text_i"])
        put(here, _SHARE, "", styles["r_label"])
        put(here, _SHARE + 1, _unless(book, CHECKPOINTED, _sized(book, checkpointed)), checked)
        put(here, _TIME, _unless(book, CHECKPOINTED, jobs.verdict(checkpointed), idle), styles["r_text_i"])
    end = first + len(_GROWN) - 1
    for column in (_SAVING, _TIME):
        page.state_marks(ws, styles, (first, column, end, column))
    return end + 1


def _sized(book: Book, row: int) -> Raw:
    """The total of a row of What-if; a dash where the row breaks a rule."""
    jobs = book.what_if
    total = "–" if jobs.breaks(row) else jobs.results(row)["total_shown_gb"]
    return Raw(f'=IF({jobs.broken(row)}>0,"–",{jobs.address(row, "total_shown_gb")})', total)


def _boundaries(book: Book, row: int, last: int) -> int:
    """The largest batch and the longest sequence both ways, and what search answers for the job as entered."""
    ws, styles = book.sheet(TITLE), book.styles
    put, words = book.putter(ws), book.levers.words
    row = page.section(ws, styles, row, last_column=last, name=words["boundaries"], put=put, space_below=False)
    ws.set_row(row, book.look["rows"]["header"])
    for column, text in enumerate(words["boundary_columns"], 1):
        put(row, column, text, styles["th" if column == _LABEL else "th_r"])
    asked = [(key, key.removeprefix("largest_"), f"plain_{key}", f"checkpointed_{key}") for key in search.BOUNDARIES]
    asked += [
        (block.question.name, block.question.vary, block.question.name, "")
        for block in book.search.blocks
        if block.question.at_most == "capacity_available"
    ]
    for name, entered, *answers in asked:
        row += 1
        ws.set_row(row, book.look["rows"]["table"])
        put(row, _LABEL, words["names"][name], styles["r_label"])
        idle = f"{name}_reason" if name in words["unless"] else ""
        for column, symbol in zip((_CHANGE, _TOTAL, _SAVING), (entered, *answers), strict=True):
            reason = CHECKPOINTED if symbol.startswith("checkpointed") else idle
            style = "r_calc0" if symbol else "r_label"
            content: Any = ""
            if symbol:
                figure = Raw(f"={book.cell_name(symbol)}", book.values[symbol])
                content = _unless(book, reason, figure) if reason else book.shown(figure)
            put(row, column, content, styles[style])
        if idle:
            told = _unless(book, idle, _NOTHING, _does_not_apply(book, idle, words["not_so"]))
        else:
            told = _unless(
                book, CHECKPOINTED, _NOTHING, _does_not_apply(book, CHECKPOINTED, words["checkpointed_not_so"])
            )
        put(row, _SHARE, told, styles.variant("help", indent=1))
    put(row + 1, _LABEL, words["boundary_note"], styles["help"])
    return row + 2

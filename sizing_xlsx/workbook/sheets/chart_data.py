"""Chart data: what the charts draw, on a sheet that anyone can read.

It comes from What-if: the job as entered, with checkpointing on and off, at its average sequence, and along the
sequence and the batch axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formula.primitives import round_up, when
from ...formula.render import public_name
from .. import charts, page
from ..book import Raw
from ..words import filled, sentence
from . import what_if

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

    from ..book import Book

TITLE = "Chart data"
POINTS = 10
_AXES = (("sequence_length", "largest_sequence_length", 20), ("batch_size", "largest_batch_size", 36))


def plan(book: Book) -> None:
    """Add the jobs of the charts to What-if and register the figures that sentences use."""
    jobs, words = book.what_if, book.template["chart_data"]["jobs"]
    jobs.add(words["entered"], {})
    jobs.add(words["checkpointed"], {"activation_checkpointing": "On"})
    jobs.add(words["plain"], {"activation_checkpointing": "Off"})
    jobs.add(words["average"], {"sequence_length": Raw("=Average_Tokens", book.values["average_tokens"])})
    for key, largest, first in _AXES:
        reach = axis_end(book.values[key], book.values[largest])
        for name, change in (("point", {}), ("point_checkpointed", {"activation_checkpointing": "On"})):
            for point in range(1, POINTS + 1):
                cell = Raw(f"='{TITLE}'!$B${first + point + 1}", axis_point(reach, point))
                label = filled(words[name], input=book.job.inputs[key].label, number=str(point))
                jobs.add(label, {key: cell, **change})
    for symbol, row, result, unit in (
        ("checkpointed_total_gb", 1, "total_reserved_gb", "GB"),
        ("checkpointed_verdict", 1, "verdict_code", "count"),
        ("plain_total_gb", 2, "total_reserved_gb", "GB"),
        ("average_total_gb", 3, "total_reserved_gb", "GB"),
    ):
        book.external(symbol, unit, jobs.results(row)[result])
        book.define(public_name(symbol), what_if.TITLE, what_if.FIRST + row, 2 + jobs.table.column(result))
    sym = book.sym
    on = sym("checkpointing_on") > 0
    for kind in ("checkpointed", "plain", "average"):
        book.derive(f"{kind}_shown_gb", "GB", round_up(sym(f"{kind}_total_gb"), 1))
    book.derive("other_shown_gb", "GB", when(on, sym("plain_shown_gb"), sym("checkpointed_shown_gb")))
    helps = (sym("checkpointing_on") <= 0) & (sym("checkpointed_verdict") <= 1)
    shorter = when(sym("largest_sequence_length") > 0, sym("way_out_sequence"), sym("way_out_card"))
    book.derive("way_out_case", "count", when(helps, 1, when(sym("largest_batch_size") > 0, 2, shorter)))


def axis_end(entered: float, largest: float) -> float:
    """Where an axis ends: twice what is entered, or past the boundary when that is not far beyond."""
    return max(2 * entered, min(largest + int(largest / 4), 16 * entered))


def axis_point(end: float, point: int) -> float:
    """The value at one of the points of an axis: whole, at least 1."""
    return max(1, int(end * point / POINTS))


def write(book: Book) -> None:
    """The figures the charts draw."""
    ws, styles, sym, jobs = book.sheet(TITLE), book.styles, book.sym, book.what_if
    put, words = book.putter(ws), book.template["chart_data"]
    last = 10
    page.plain_sheet(book, TITLE, title=words["title"], last_column=last, sentence=words["sentence"], freeze=(2, 1))

    # titles: linked to by the charts
    for row, key in ((3, "memory_title"), (4, "sequence_title"), (5, "batch_title")):
        put(row, 1, book.shown(sym(key), words["check"]), styles["label"])

    # memory by part
    for column, text in enumerate((words["unit"], book.template["chart_parts"]["base"], *words["parts"]), 1):
        put(8, column, text, styles["th" if column == 1 else "th_r"])
    usable = sym("usable_shown_gb")
    bars = (
        (sentence(words["bars"]["usable"], sym), [None] * 4 + [usable]),
        (_other_label(book), _what_if_parts(book)),
        (sentence(words["bars"]["entered"], sym), _entered_parts(book)),
    )
    for row, (label, cells) in enumerate(bars, 9):
        put(row, 1, label if isinstance(label, str) else book.shown(label), styles["r_label"])
        for column, cell in enumerate(cells, 2):
            if cell is None:
                put(row, column, Raw("=NA()", "#N/A"), styles["r_calc3"])
            else:
                put(row, column, book.guarded(cell, "NA()"), styles["r_calc3"])

    # the two axes
    axis = words["axis"]
    headers = [axis[key] for key in ("total", "peak", "checkpointed", "capacity", "job", "largest")]
    for at, (key, largest, first) in enumerate(_AXES):
        label = book.job.inputs[key].label
        end = axis_end(book.values[key], book.values[largest])
        name, biggest = book.cell_name(key), public_name(largest)
        put(first - 1, 1, filled(axis["ends"], input=label.lower()), styles["label"])
        reach = f"=MAX(2*{name},MIN({biggest}+INT({biggest}/(2*2)),2^4*{name}))"
        put(first - 1, 2, Raw(reach, end), styles["calc0"])
        for column, text in enumerate((label, *headers), 1):
            put(first, column, text, styles["th_r"])
        base = 4 + at * 2 * POINTS
        for point in range(1, POINTS + 1):
            row = first + point
            share = Raw(f"=MAX(1,INT($C${first}*$I{row + 1}/$I${first + POINTS + 1}))", axis_point(end, point))
            put(row, 1, share, styles["r_calc0"])
            plain, checkpointed = base + point - 1, base + POINTS + point - 1
            for column, what, result in (
                (2, plain, "total_reserved_gb"),
                (3, plain, "peak_allocated_gb"),
                (4, checkpointed, "total_reserved_gb"),
            ):
                put(row, column, book.guarded(jobs.cell(what, result), "NA()"), styles["r_calc1"])
            put(row, 5, book.guarded(sym("available_gb"), "NA()"), styles["r_calc1"])
            put(row, 8, point, styles["r_no"])
        put(first + 11, 1, sym(key), styles["r_calc0"])
        put(first + 11, 6, sym("total_reserved_gb"), styles["r_calc1"])
        found = book.values[largest]
        for column, formula, value in (
            (
                1,
                f"=IF(AND({biggest}>0,{biggest}<=$C${first}),{biggest},NA())",
                found if 0 < found <= end else "#N/A",
            ),
            (
                7,
                f"=IF(AND({biggest}>0,{biggest}<=$C${first}),Available_GB,NA())",
                book.values["available_gb"] if 0 < found <= end else "#N/A",
            ),
        ):
            put(first + 12, column, Raw(formula, value), styles["r_calc0" if column == 1 else "r_calc1"])
    page.print_area(ws, book.chart_data_end, last, [book.chart_data_runs])


def _other_label(book: Book) -> Any:
    sym, words = book.sym, book.template["chart_data"]["bars"]
    return when(sym("checkpointing_on") > 0, sentence(words["without"], sym), sentence(words["with"], sym))


def _entered_parts(book: Book) -> list[Any]:
    return [
        book.sym(key) for key in ("base_item_gb", "activation_item_gb", "other_items_gb", "allocator_reserve_gb")
    ] + [None]


def _what_if_parts(book: Book) -> list[Any]:
    jobs = book.what_if
    on = book.values["checkpointing_on"] > 0
    values = jobs.results(2 if on else 1)

    def pick(result: str) -> str:
        return f"IF(Checkpointing_On>0,{jobs.address(2, result)},{jobs.address(1, result)})"

    gb = book.values["bytes_per_gb"]
    base, active = values["base_item"] / gb, values["activation_item"] / gb
    peak, total = values["peak_allocated_gb"], values["total_reserved_gb"]
    return [
        Raw(f"={pick('base_item')}/Bytes_Per_GB", base),
        Raw(f"={pick('activation_item')}/Bytes_Per_GB", active),
        Raw(f"={pick('peak_allocated_gb')}-$C$11-$D$11", peak - base - active),
        Raw(f"={pick('total_reserved_gb')}-{pick('peak_allocated_gb')}", total - peak),
        None,
    ]


def place_parts_and_sequence(book: Book, ws: Worksheet, row: int) -> None:
    """Memory by part on the left, total against sequence length on the right."""
    place_parts(book, ws, row, book.template["chart_data"]["parts_alt"])
    _place_axis(book, ws, row, 5, 0)


def place_parts(book: Book, ws: Worksheet, row: int, alt: str, layout: str = "memory_by_part") -> None:
    """Memory by part, in one of its layouts in look.toml. alt: what it shows, in words."""
    parts = [charts.Bars([TITLE, 8, column], [TITLE, 9, column, 11, column]) for column in range(2, 7)]
    chart = charts.memory_by_part(
        book.workbook, book.look, title=[TITLE, 3, 1], categories=[TITLE, 9, 1, 11, 1], parts=parts, layout=layout
    )
    charts.place(ws, row, 1, chart, size=book.look["charts"][layout]["size"], alt=alt)


def place_batch(book: Book, ws: Worksheet, row: int) -> None:
    """Total against batch size."""
    _place_axis(book, ws, row, 1, 1)


def _place_axis(book: Book, ws: Worksheet, row: int, column: int, at: int) -> None:
    key, _, first = _AXES[at]
    facts, words = book.job.inputs[key], book.template["chart_data"]["axis"]
    x = [TITLE, first + 1, 1, first + POINTS, 1]

    def line(position: int, name: str) -> charts.Points:
        return charts.Points(name, x, [TITLE, first + 1, position, first + POINTS, position])

    chart = charts.total_by(
        book.workbook,
        book.look,
        title=[TITLE, 4 + at, 1],
        x_title=filled(words["title"], input=facts.label, unit=facts.unit),
        total=line(2, words["total"]),
        peak=line(3, words["peak"]),
        checkpointed=line(4, words["checkpointed"]),
        capacity=line(5, words["capacity"]),
        job=charts.Points(words["job"], [TITLE, first + 11, 1, first + 11, 1], [TITLE, first + 11, 6, first + 11, 6]),
        boundary=charts.Points(
            words["largest"], [TITLE, first + 12, 1, first + 12, 1], [TITLE, first + 12, 7, first + 12, 7]
        ),
    )
    size = book.look["charts"]["total_by"]["size"]
    charts.place(
        ws,
        row,
        column,
        chart,
        size=size,
        alt=filled(words["alt"], input=facts.label.lower()),
    )

"""Page furniture: widths, print set-up and protection, the answer strip, section headers, bars and marks.

Rows and columns count from 0, as in XlsxWriter. Nothing here writes content itself: each text, number or
formula goes to the caller's `put(row, column, content, format)`, which can write a formula with its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .styles import Look, Styles, colour
from .words import filled

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

    from .book import Book

Put = Callable[[int, int, Any, Any], Any]
Paper = Literal["A4", "Letter", "screen"]
Area = tuple[int, int, int, int]  # first row, first column, last row, last column

PAPER_CODES: dict[str, int] = {"Letter": 1, "screen": 8, "A4": 9}  # ECMA-376 part 1, 18.3.1.63; 8 is A3
STRIP_ROWS = (0, 6)
STRIP_HEIGHTS = ("title", "sentence", "space", "tile_label", "tile_value", "tile_note", "strip_edge")


class Tile(NamedTuple):
    """One tile of the answer strip, over the columns first to last.

    label, value, note: content for `put`, or None for nothing. style: of the value.
    kind: "figure"; "verdict", which takes its colours from its own word; "gauge", whose note is a number
    from 0 to 1 (or a formula) drawn as a bar.
    """

    first: int
    last: int
    label: Any
    value: Any
    note: Any = None
    style: str = "tile_value"
    kind: Literal["figure", "verdict", "gauge"] = "figure"


def cell(row: int, column: int, *, row_fixed: bool = False, column_fixed: bool = False) -> str:
    """The address of a cell: cell(4, 1) is B5."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    return str(xl_rowcol_to_cell(row, column, row_abs=row_fixed, col_abs=column_fixed))


def area(first_row: int, column: int, last_row: int) -> str:
    """Cells of one column, absolutely: area(4, 1, 8) is $B$5:$B$9."""
    ends = (cell(row, column, row_fixed=True, column_fixed=True) for row in (first_row, last_row))
    return ":".join(ends)


def column_widths(look: Look, kind: str, last_column: int | None = None) -> list[float]:
    """Widths from column A to the right gutter, in characters.

    kind: a sheet kind of look.toml; "wide" is for any table of many columns. last_column: the right gutter,
    needed for kinds without a fixed grid. Raises ValueError when it is missing or the kind is unknown.
    """
    if kind not in look["sheets"]:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(look['sheets'])}")
    sheet = look["sheets"][kind]
    if "widths" in sheet:
        return list(sheet["widths"])
    if last_column is None or last_column < 2:
        raise ValueError(f"last_column is {last_column!r}; a {kind} sheet needs the right gutter's, 2 or more")
    first = sheet.get("first", ())
    columns = [*first, *[sheet["column"]] * (last_column - 2 - len(first))]
    return [sheet["gutter"], sheet["name"], *columns, sheet["end"]]


def set_page(
    ws: Worksheet,
    look: Look,
    *,
    kind: str,
    file_and_version: str,
    last_column: int | None = None,
    widths: Sequence[float] | None = None,
    rows_repeated: tuple[int, int] | None = STRIP_ROWS,
    freeze: tuple[int, int] | None = None,
    paper: Paper = "A4",
) -> int:
    """Set up view, widths, print and protection of a sheet; returns the column of the right gutter.

    widths: in place of those of the kind. rows_repeated: first and last row on every printed page, or None.
    freeze: first row and column that scroll. file_and_version: left footer, "&F" stands for the file's name.
    paper: "screen" is unscaled and without margins, for pictures.
    """
    if paper not in PAPER_CODES:
        raise ValueError(f"paper is {paper!r}; it must be A4, Letter or screen")
    grid = list(widths) if widths is not None else column_widths(look, kind, last_column)
    sheet, margins = look["sheets"][kind], look["print"]
    ws.hide_gridlines(2)
    ws.set_zoom(100)
    ws.set_tab_color(colour(look, sheet["tab"]))
    # XlsxWriter itself adds the 5 pixels (0.71 characters) of padding that a stored width includes.
    for column, width in enumerate(grid):
        ws.set_column(column, column, width)
    if freeze:
        ws.freeze_panes(*freeze)
    ws.set_paper(PAPER_CODES[paper])
    if not sheet.get("portrait"):
        ws.set_landscape()
    if rows_repeated:
        ws.repeat_rows(*rows_repeated)
    if paper == "screen":
        ws.set_margins(left=0.05, right=0.05, top=0.05, bottom=0.05)
    else:
        ws.fit_to_pages(1, 1 if sheet.get("one_page") else 0)
        ws.center_horizontally()
        ws.set_margins(margins["left"], margins["right"], margins["top"], margins["bottom"])
        ws.set_header("", {"margin": margins["header"]})
        ws.set_footer(footer(look, file_and_version), {"margin": margins["footer"]})
    ws.protect("", {"format_columns": True, "format_rows": True})
    # What would earn a green corner is meant: neighbours that differ, and #N/A where a chart has no point.
    everywhere = "A1:XFD1048576"
    ws.ignore_errors({"formula_differs": everywhere, "formula_range": everywhere, "eval_error": everywhere})
    return len(grid) - 1


def footer(look: Look, file_and_version: str) -> str:
    """The footer: file and version, sheet, page of pages."""
    font = f'&"{look["font"]},Regular"&{look["print"]["footer_size"]}'
    number = filled(look["print"]["page_number"], page="&P", pages="&N")
    # A figure right after the size would be read as part of it.
    gap = " " if file_and_version[:1].isdigit() else ""
    return f"&L{font}{gap}{file_and_version}&C{font}&A&R{font}{number}"


def print_area(ws: Worksheet, last_row: int, last_column: int, breaks: Sequence[int] = ()) -> None:
    """Print from A1 to the given corner; breaks: rows that begin a page."""
    ws.print_area(0, 0, last_row, last_column)
    if breaks:
        ws.set_h_pagebreaks(list(breaks))


def print_areas(ws: Worksheet, areas: Sequence[Area]) -> None:
    """Print several areas, each on pages of its own."""
    from xlsxwriter.utility import quote_sheetname, xl_range_abs

    sheet = quote_sheetname(ws.get_name())
    # XlsxWriter takes one area a sheet and keeps it as the text of its defined name.
    ws.print_area_range = ",".join(f"{sheet}!{xl_range_abs(*area)}" for area in areas)


def fill_row(ws: Worksheet, row: int, first: int, last: int, style: Any, height: float | None = None) -> None:
    """Give the empty cells of a row a style, and the row a height in points."""
    if height is not None:
        ws.set_row(row, height)
    for column in range(first, last + 1):
        ws.write_blank(row, column, None, style)


def strip(
    ws: Worksheet,
    styles: Styles,
    *,
    last_column: int,
    title: Any,
    sentence: Any,
    stamp: Any,
    tiles: Sequence[Tile],
    put: Put,
    stamp_column: int | None = None,
) -> int:
    """The answer strip in rows 0 to 6 over the whole width; returns the first row below it."""
    for row, height in enumerate(STRIP_HEIGHTS):
        style = styles["strip_edge" if height == "strip_edge" else "strip"]
        fill_row(ws, row, 0, last_column, style, styles.look["rows"][height])
    put(0, 1, title, styles["title"])
    put(0, last_column - 1 if stamp_column is None else stamp_column, stamp, styles["stamp"])
    put(1, 1, sentence, styles["sentence"])
    tile_row(ws, styles, 3, tiles, put)
    return 7


def plain_sheet(
    book: Book,
    sheet: str,
    *,
    sentence: Any,
    title: str = "",
    kind: str = "",
    last_column: int | None = None,
    stamp: bool = True,
    rows_repeated: tuple[int, int] | None = (0, 1),
    freeze: tuple[int, int] = (2, 2),
) -> int:
    """Set up a sheet without tiles: title, stamp and a sentence in rows 0 and 1; returns the right gutter's column.

    title and kind: the sheet's own name where not given. The rest as in set_page().
    """
    ws, styles = book.sheet(sheet), book.styles
    put = book.putter(ws)
    last = set_page(
        ws,
        book.look,
        kind=kind or sheet,
        file_and_version=book.footer,
        last_column=last_column,
        rows_repeated=rows_repeated,
        freeze=freeze,
    )
    fill_row(ws, 0, 0, last, styles["strip"], book.look["rows"]["title"])
    fill_row(ws, 1, 0, last, styles["strip_edge"], book.look["rows"]["sentence"])
    put(0, 1, title or sheet, styles["title"])
    put(0, last - 1, book.stamp if stamp else "", styles["stamp"])
    put(1, 1, sentence, styles.variant("sentence", bottom="edge"))
    return last


def lines_needed(text: str, width: float) -> int:
    """Lines that a text of 10 points needs in a column of that many characters; words break a little early."""
    return max(1, -(-len(text) // int(width * 1.05)))


def wrapped_height(*texts: tuple[str, float]) -> float:
    """The height of a row that shows every (text, column width) whole."""
    return 13.5 * max(lines_needed(text, width) for text, width in texts) + 5


def tile_row(ws: Worksheet, styles: Styles, row: int, tiles: Sequence[Tile], put: Put, *, notes: bool = True) -> None:
    """Tiles in three rows from `row` on: label, value and, with notes, a note or gauge."""
    for tile in tiles:
        verdict = tile.kind == "verdict"
        names = ("verdict_label", "verdict", "verdict_note") if verdict else ("tile_label", tile.style, "tile_note")
        contents = (tile.label, tile.value, tile.note)
        last_row = row + (2 if notes else 1)
        for at, (name, content) in enumerate(zip(names, contents, strict=True)):
            if row + at > last_row:
                break
            here = styles["tile_bar" if tile.kind == "gauge" and at == 2 else name]
            if content is None:
                ws.write_blank(row + at, tile.first, None, here)
            else:
                put(row + at, tile.first, content, here)
            # Cells to the right lend their ground, so that a long figure may run over them.
            fill_row(ws, row + at, tile.first + 1, tile.last, styles["strip"])
        if verdict:
            verdict_marks(ws, styles, (row, tile.first, last_row, tile.last), (row + 1, tile.first))
        elif tile.kind == "gauge" and notes:
            at_gauge = (row + 2, tile.first, row + 2, tile.first)
            data_bar(ws, styles, at_gauge, maximum=1, token="gauge", only=True)


def section(
    ws: Worksheet,
    styles: Styles,
    row: int,
    *,
    last_column: int,
    name: Any,
    put: Put,
    number: Any = None,
    note: Any = None,
    note_column: int = 4,
    space_below: bool = True,
    height: str = "section",
) -> int:
    """A section header with a rule from gutter to gutter; returns the next free row.

    number: of a step, None for results. note: the live line at note_column. space_below: a narrow row under
    the rule; False before a table header. height: the row's, by its name in look.toml.
    """
    rows = styles.look["rows"]
    fill_row(ws, row, 0, last_column, styles["section"], rows[height])
    if number is not None:
        put(row, 0, number, styles["section_no"])
    put(row, 1, name, styles["section"])
    if note is not None:
        put(row, note_column, note, styles["section_note"])
    if not space_below:
        return row + 1
    ws.set_row(row + 1, rows["under_section"])
    return row + 2


def data_bar(
    ws: Worksheet,
    styles: Styles,
    area: Area,
    *,
    maximum: float,
    token: str = "bar",
    only: bool = False,
) -> None:
    """Solid bars behind numbers, from 0 to a fixed maximum; only: without the number."""
    ws.conditional_format(
        *area,
        {
            "type": "data_bar",
            "data_bar_2010": True,
            "bar_solid": True,
            "bar_no_border": True,
            "bar_axis_position": "none",
            "bar_negative_color_same": True,
            "bar_color": styles.colour(token),
            "bar_only": only,
            "min_type": "num",
            "min_value": 0,
            "max_type": "num",
            "max_value": maximum,
            # The basic bar of programs that do not read the 2010 form would else run from 10 to 90%.
            "min_length": 0,
            "max_length": 100,
        },
    )


def bar_maximum(full: float, number_width: float, column_width: float) -> float:
    """The maximum that keeps a bar of `full` clear of its number; widths in characters of the same size."""
    return full / (1 - number_width / column_width)


def verdict_marks(ws: Worksheet, styles: Styles, area: Area, word: tuple[int, int]) -> None:
    """Colour a verdict tile by its word. A size cannot follow a condition: CHECK INPUT keeps the size."""
    address = cell(*word, row_fixed=True, column_fixed=True)
    states = styles.look["states"]
    for name, state in states.items():
        if name == "check":
            continue
        rule = f'={address}="{state["word"]}"'
        ws.conditional_format(*area, {"type": "formula", "criteria": rule, "format": styles.state(name, where="tile")})
    begins = f'=LEFT({address},LEN("{states["check"]["word"]}"))="{states["check"]["word"]}"'
    check = styles.state("check", where="tile")
    ws.conditional_format(*area, {"type": "formula", "criteria": begins, "format": check})


def state_marks(ws: Worksheet, styles: Styles, area: Area) -> None:
    """Colour the exceptions among a column of verdicts, by the word that each begins with."""
    first = cell(area[0], area[1])
    for name, state in styles.look["states"].items():
        if "mark_text" in state:
            rule = f'=LEFT({first},LEN("{state["word"]}"))="{state["word"]}"'
            mark = styles.state(name, where="mark")
            ws.conditional_format(*area, {"type": "formula", "criteria": rule, "format": mark})


def formula_marks(ws: Worksheet, styles: Styles, area: Area, formula: str, mark: str, *, alone: bool = False) -> None:
    """Give cells a mark of look.toml while a formula, written for the first cell of the area, holds.

    alone: marks that are set later do not show while this one does.
    """
    rule = formula if formula.startswith("=") else "=" + formula
    kind = {"type": "formula", "criteria": rule, "format": styles.mark(mark), "stop_if_true": alone}
    ws.conditional_format(*area, kind)


def own_marks(ws: Worksheet, styles: Styles, area: Area, formula: str) -> None:
    """Show values in style own while an override is in force, as the formula for the first cell says."""
    formula_marks(ws, styles, area, formula, "own")

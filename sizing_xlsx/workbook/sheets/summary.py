"""Summary: one page for a decision paper, all of it live. Words come from templates/, summary.toml and the job's own.

While an input is at fault the page says CHECK INPUT, names the fault and shows no figure of the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...formula.primitives import either, when
from .. import page
from ..page import Tile
from ..words import filled, quoted, sentence
from . import chart_data, checks, overrides
from .sizing import item_in_force

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Summary"
DATE, BY = "Prepared_On", "Prepared_By"
_LABEL, _VALUE, _UNIT, _SHARE, _WORDS = 1, 2, 3, 4, 5
_CHART_ROWS = 11
_LINE = 2**7 - 2**4  # characters of a line that surely fit; a formula may hold no other numbers


def write(book: Book) -> None:
    """The sheet, which reads figures of Checks, Overrides and Validation: these are written before."""
    Summary(book).write()


class Summary:
    """The sheet in the making; row is the next free one."""

    def __init__(self, book: Book) -> None:
        self.book, self.words = book, book.template["summary"]
        self.ws, self.styles, self.rows = book.sheet(TITLE), book.styles, book.look["rows"]
        self.put = book.putter(self.ws)
        self.last = page.set_page(
            self.ws, book.look, kind=TITLE, file_and_version=book.footer, rows_repeated=None, freeze=(4, 0)
        )
        self.row = 0
        self._tell_state()

    def write(self) -> None:
        self._head()
        self._job()
        self.items()
        self.chart()
        self.moments()
        words = self.words["assumptions"]
        self.lines(words["name"], (self.live(line) for line in words["lines"]))
        words = self.words["evidence"]
        known = [sentence(line, self.book.sym) for line in words["lines"]]
        self.lines(words["name"], [*known, self.words["limits"]])
        self.lines(self.words["provenance"]["name"], self._provenance())
        self._signed()
        page.print_area(self.ws, self.row - 1, self.last)

    # ------------------------------------------------------------------ furniture
    def _tell_state(self) -> None:
        """Figures of other sheets that sentences may use."""
        book, warning = self.book, checks.first_warning(self.book)
        book.external("own_values_count", "count", overrides.own_values(book))
        book.external("warnings_raised", "count", len(checks.open_warnings(book)))
        book.external("first_warning_line", "text", warning if len(warning) <= _LINE else warning[:_LINE] + "…")
        book.aliases["first_warning_line"] = (
            'IF(LEN(First_Warning)>2^7-2^4,LEFT(First_Warning,2^7-2^4)&"…",First_Warning)'
        )

    def live(self, text: Any, instead: str = "–") -> Any:
        """A sentence of the template, withdrawn while an input is faulty; a plain text stays."""
        tree = sentence(text, self.book.sym)
        return tree if isinstance(tree, str) else self.book.shown(tree, instead)

    def line(self, cells: Mapping[int, tuple[Any, Any]], height: str = "summary", ground: str = "") -> int:
        """A row of cells, column -> content and style; ground: the style of those between them. Returns the row."""
        row, self.row = self.row, self.row + 1
        self.ws.set_row(row, self.rows[height])
        if ground:
            page.fill_row(self.ws, row, 1, self.last - 1, self.styles[ground], self.rows[height])
        for column, (content, style) in cells.items():
            self.put(row, column, content, self.styles[style] if isinstance(style, str) else style)
        return row

    def section(self, name: str, note: Any = None, *, space_below: bool = False) -> None:
        self.row = page.section(
            self.ws, self.styles, self.row, last_column=self.last, name=name, put=self.put, note=note,
            note_column=_SHARE, space_below=space_below, height="summary_section",
        )  # fmt: skip

    def lines(self, name: str, lines: Iterable[Any]) -> None:
        """A section of sentences."""
        self.section(name)
        for line in lines:
            self.line({_LABEL: (line, "small")})

    # ------------------------------------------------------------------ the decision
    def _head(self) -> None:
        book, sym = self.book, self.book.sym
        told = book.guarded(sentence(self.words["verdict"], sym), "First_Fault")
        contents = (
            (filled(self.words["title"], title=book.template["title"]), "title"),
            (told, "sentence"),
            (self.live(self.words["way_on"], ""), "sentence"),
            ("", "strip_edge"),
        )
        for row, (content, style) in enumerate(contents):
            height = self.rows[style]
            page.fill_row(self.ws, row, 0, self.last, self.styles["strip" if content else style], height)
            self.put(row, 1, content, self.styles[style])
        self.ws.set_row(4, self.rows["space"])
        page.tile_row(self.ws, self.styles, 5, self.tiles(), self.put, notes=False)
        for row, height in ((5, "tile_label"), (6, "tile_value")):
            self.ws.set_row(row, self.rows[height])
        self.row = 7

    def tiles(self) -> list[Tile]:
        """What the decision rests on."""
        sym, tiles, shown = self.book.sym, self.words["tiles"], self.book.shown
        return [
            Tile(1, 1, tiles["verdict"], shown(sym("verdict_shown"), self.book.words["check_input"]), kind="verdict"),
            Tile(2, 3, tiles["total"], shown(sym("total_shown_gb"))),
            Tile(4, 4, tiles["usable"], shown(sym("usable_shown_gb"))),
            Tile(5, 5, tiles["headroom"], shown(sym("headroom_shown_gb"))),
        ]

    def _job(self) -> None:
        self.section(self.words["job_name"], space_below=True)
        wide = [entry for entry in self.words["job"] if entry.get("wide")]
        short = [entry for entry in self.words["job"] if not entry.get("wide")]
        for entry in wide:
            self.line({_LABEL: (entry["label"], "help"), _VALUE: (self.live(entry["text"]), "small")})
        for at in range(0, len(short), 2):
            cells: dict[int, tuple[Any, Any]] = {}
            for entry, (label, value) in zip(short[at : at + 2], ((_LABEL, _VALUE), (_SHARE, _WORDS)), strict=False):
                cells |= {label: (entry["label"], "help"), value: (self.live(entry["text"]), "small")}
            self.line(cells)

    # ------------------------------------------------------------------ the figures
    def items(self) -> None:
        """Line items, largest moment, reserve and total."""
        book, words = self.book, self.words["items_table"]
        sym, shown = book.sym, book.shown
        self.section(words["name"], self.live("{items_note}"))
        self.header(words["headers"])
        small = {key: self.styles.variant(key, size=10) for key in ("r_label", "r_calc3", "r_share")}
        reduces = self.styles.variant("r_help", indent=1, wrap=False)
        first = self.row
        for item in book.template["items"]:
            size = item_in_force(book, item)
            self.line(
                {
                    _LABEL: (item["name"], small["r_label"]),
                    _VALUE: (shown(size / sym("bytes_per_gb")), small["r_calc3"]),
                    _UNIT: ("GB", "r_unit"),
                    _SHARE: (shown(size / sym("peak_allocated")), small["r_share"]),
                    _WORDS: (item["reduces"], reduces),
                }
            )
        self.bars(first)
        for key, figure, form in (
            ("peak", "peak_allocated_gb", "t"),
            ("reserve", "allocator_reserve_gb", "r"),
            ("total", "total_reserved_gb", "t"),
        ):
            label, value = (self.styles.variant(f"{form}_{kind}", size=10) for kind in ("label", "calc3"))
            cells = {_LABEL: (words[key], label), _VALUE: (shown(sym(figure)), value), _UNIT: ("GB", f"{form}_unit")}
            self.line(cells, ground=f"{form}_label")

    def header(self, names: Mapping[str, str]) -> None:
        """The head of the table of line items."""
        header = {_LABEL: "name", _VALUE: "memory", _UNIT: "unit", _SHARE: "share", _WORDS: "reduces"}
        forms = {_VALUE: "th_r", _UNIT: "th_i", _SHARE: "th_r", _WORDS: "th_i"}
        self.line({at: (names[key], forms.get(at, "th")) for at, key in header.items()}, "unit")

    def bars(self, first: int) -> None:
        """Bars behind the shares from a row on."""
        width = self.book.look["sheets"][TITLE]["widths"][_SHARE]
        area = (first, _SHARE, self.row - 1, _SHARE)
        page.data_bar(self.ws, self.styles, area, maximum=page.bar_maximum(1, 6.8, width))

    def chart(self) -> None:
        """Memory by part."""
        alt = self.words["items_table"]["chart"]
        chart_data.place_parts(self.book, self.ws, self.chart_rows(), alt, "memory_by_part_summary")

    def chart_rows(self) -> int:
        """Make room for a chart; returns its first row."""
        self.ws.set_row(self.row, self.rows["space"])
        first = self.row + 1
        for at in range(_CHART_ROWS):
            self.ws.set_row(first + at, self.rows["summary_chart"])
        self.row += _CHART_ROWS + 1
        return first

    def moments(self) -> None:
        """Which moment sets the peak."""
        book, words = self.book, self.words["moments_table"]
        sym, shown = book.sym, book.shown
        self.section(words["name"], words["note"])
        traced = sym("traced_available") > 0
        small = {key: self.styles.variant(key, size=10) for key in ("r_label", "r_calc3", "r_share", "r_text_i")}
        first = self.row
        for moment in book.template["moments"]:
            term, peak = sym(moment["term"]), sym("traced_allocated")
            state = when(traced, when(term >= peak, words["sets"], words["below"]), words["missing"])
            row = self.line(
                {
                    _LABEL: (moment["name"], small["r_label"]),
                    _VALUE: (shown(either(traced, term / sym("bytes_per_gb"), words["missing"])), small["r_calc3"]),
                    _UNIT: ("GB", "r_unit"),
                    _SHARE: (shown(either(traced, term / peak, words["missing"])), small["r_share"]),
                    _WORDS: (shown(state), small["r_text_i"]),
                }
            )
            for column in (_LABEL, _VALUE, _WORDS):
                sets = f"={page.cell(row, _WORDS, row_fixed=True, column_fixed=True)}={quoted(words['sets'])}"
                page.formula_marks(self.ws, self.styles, (row, column, row, column), sets, "decides")
        self.bars(first)

    # ------------------------------------------------------------------ where it comes from, and whose it is
    def _provenance(self) -> list[str]:
        made, words = self.book.provenance, self.words["provenance"]
        line = filled(words["line"], version=made.program, data=made.data, formulas=made.formulas, presets=made.presets)
        return [line, words["own"]] if made.own else [line]

    def _signed(self) -> None:
        """Two cells to fill in, which nothing reads."""
        words = self.words["signed"]
        self.ws.set_row(self.row, self.rows["space"])
        self.row += 1
        typed = self.styles.variant("in_text", horizontal="left", wrap=False, shrink=True)
        labels = {_LABEL: (words["date"], "help"), _SHARE: (words["by"], self.styles.variant("help", indent=1))}
        row = self.line({**labels, _VALUE: (None, typed), _WORDS: (None, typed)}, "summary_signed")
        for key, name, column in (("date", DATE, _VALUE), ("by", BY, _WORDS)):
            self.book.define(name, TITLE, row, column)
            self.ws.data_validation(
                row, column, row, column,
                {
                    "validate": "length", "criteria": "between", "minimum": 0, "maximum": words["longest"],
                    "input_title": words[key], "input_message": f"{words[key + '_help']} {words['allowed']}",
                    "error_title": words[key], "error_message": words["allowed"], "error_type": "stop",
                },
            )  # fmt: skip

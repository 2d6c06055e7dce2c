"""Named cell styles: templates/look.toml as XlsxWriter formats.

A style is a row of data in the look (size, weight, colour token, fill token, borders, number format token,
alignment, lock). `Styles` makes the XlsxWriter format on first use and keeps it: equal cells share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..paths import templates_folder
from .template import read_toml

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook

Look = Mapping[str, Any]

HIDDEN = "hidden"  # the mark of what stands in a cell for formulas alone
TEXTS = (  # of look.toml: what a reader sees
    "print.page_number", "charts.memory_by_part.axis_title", "charts.memory_by_part_summary.axis_title",
    "charts.total_by.y_title", "charts.predicted_against_measured.x_title",
    "charts.predicted_against_measured.y_title", "charts.error_by_run.x_title", "charts.error_by_run.y_title",
    "charts.totals_by_size.y_title", "charts.users_by_context.y_title", "charts.pool_against_logged.x_title",
    "charts.pool_against_logged.y_title", "states.fits.word", "states.tight.word", "states.does_not_fit.word",
    "states.check.word",
)  # fmt: skip
BLANK_STYLE: Mapping[str, Any] = {
    "size": None,  # the look's own size
    "bold": False,
    "underline": False,
    "colour": "ink",
    "fill": None,
    "left": None,
    "right": None,
    "top": None,
    "bottom": None,
    "box": None,  # all four sides
    "format": "general",
    "horizontal": "left",
    "vertical": "centre",
    "indent": 0,
    "wrap": False,
    "shrink": False,
    "locked": True,
    "quoted": False,
}
HORIZONTAL = {
    "left": "left",
    "right": "right",
    "centre": "center",
    "centre across": "center_across",
    "general": None,
}
VERTICAL = {"top": "top", "centre": "vcenter", "bottom": "bottom"}


def load_look() -> dict[str, Any]:
    """templates/look.toml as nested dictionaries, its colours and sizes checked.

    Raises ValueError that names the file and the entry.
    """
    path = templates_folder() / "look.toml"
    look = read_toml(path)
    for section in ("palette", "formats", "styles", "states", "marks", "rows", "print", "sheets", "charts"):
        if not isinstance(look.get(section), dict):
            raise ValueError(f"{path}: the section {section} is missing; put it back")
    for token, code in look["palette"].items():
        if not isinstance(code, str) or len(code) != 6 or set(code.upper()) - set("0123456789ABCDEF"):
            raise ValueError(f"{path}: palette.{token} is {code!r}; it must be six hex digits, such as 1F2A37")
    sizes = {"size": look.get("size"), **{f"rows.{name}": height for name, height in look["rows"].items()}}
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, (int, float)) or not 0 < size < 410:
            raise ValueError(f"{path}: {name} is {size!r}; it must be a number of points, more than 0 and below 410")
    for place in TEXTS:
        value: Any = look
        for key in place.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, str) or not value:
            raise ValueError(f"{path}: {place} is {value!r}; it must be a text")
    return look


def colour(look: Look, token: str) -> str:
    """The RGB colour of a palette token as "#RRGGBB"; ValueError when the palette has no such token."""
    try:
        return f"#{look['palette'][token]}"
    except KeyError:
        raise ValueError(f"colour is {token!r}; it must be a token of the palette in look.toml, such as ink") from None


def number_format(look: Look, token: str) -> str:
    """The number format of a token; ValueError when look.toml has none of that name."""
    try:
        return str(look["formats"][token])
    except KeyError:
        raise ValueError(f"format is {token!r}; it must be one of {', '.join(look['formats'])} in look.toml") from None


def workbook_options(look: Look) -> dict[str, Any]:
    """Options for xlsxwriter.Workbook that give cells without a style the look's font and ink."""
    return {
        "default_format_properties": {
            "font_name": look["font"],
            "font_size": look["size"],
            "font_color": colour(look, "ink"),
        }
    }


def style_of(look: Look, name: str, **changes: Any) -> dict[str, Any]:
    """The full description of a named style, with every key of BLANK_STYLE filled in and changes applied.

    Raises KeyError for an unknown style and ValueError for an unknown key.
    """
    try:
        row = look["styles"][name]
    except KeyError:
        raise KeyError(f"style {name!r} is not among the styles of look.toml") from None
    for key in (*row, *changes):
        if key not in BLANK_STYLE:
            raise ValueError(f"style {name} has the key {key!r}; it must be one of {', '.join(BLANK_STYLE)}")
    return {**BLANK_STYLE, "size": look["size"], **row, **changes}


def properties_of(look: Look, style: Mapping[str, Any]) -> dict[str, Any]:
    """A style as the properties XlsxWriter's add_format takes."""
    properties: dict[str, Any] = {
        "font_name": look["font"],
        "font_size": style["size"],
        "font_color": colour(look, style["colour"]),
        "bold": style["bold"],
        "underline": 1 if style["underline"] else 0,
        "num_format": number_format(look, style["format"]),
        "valign": VERTICAL[style["vertical"]],
        "text_wrap": style["wrap"],
        "shrink": style["shrink"],
        "locked": style["locked"],
        "quote_prefix": style["quoted"],
    }
    if HORIZONTAL[style["horizontal"]]:
        properties["align"] = HORIZONTAL[style["horizontal"]]
    if style["indent"]:
        properties["indent"] = style["indent"]
    if style["fill"]:
        properties["bg_color"] = colour(look, style["fill"])
    for side in ("left", "right", "top", "bottom"):
        token = style[side] or style["box"]
        if token:
            properties[side] = 1
            properties[side + "_color"] = colour(look, token)
    return properties


class Styles:
    """The named styles of one workbook.

    `styles["in_num"]` is the format of a style, `styles.variant("r_help", indent=2)` the same with changes,
    `styles.mark("own")` what a conditional format puts on top. Formats are made on first use.
    """

    def __init__(self, workbook: Workbook, look: Look) -> None:
        self.workbook, self.look = workbook, look
        self._formats: dict[Any, Format] = {}
        self._styles: dict[int, dict[str, Any]] = {}

    def __getitem__(self, name: str) -> Format:
        return self.variant(name)

    def variant(self, name: str, **changes: Any) -> Format:
        """The format of a style with some keys changed, for instance indent=2 or colour="quiet"."""
        style = style_of(self.look, name, **changes)
        key = tuple(style.items())
        if key not in self._formats:
            self._formats[key] = self.workbook.add_format(properties_of(self.look, style))
            self._styles[id(self._formats[key])] = style
        return self._formats[key]

    def quoted(self, made: Format) -> Format:
        """The same format for a text that begins like a formula: programs keep it a text when it is edited."""
        style = {**self._styles[id(made)], "quoted": True}
        key = tuple(style.items())
        if key not in self._formats:
            self._formats[key] = self.workbook.add_format(properties_of(self.look, style))
        return self._formats[key]

    def mark(self, name: str) -> Format:
        """The format of a conditional mark: colour, fill, weight (a size cannot depend on a value)."""
        try:
            row = self.look["marks"][name]
        except KeyError:
            raise KeyError(f"mark {name!r} is not among the marks of look.toml") from None
        return self._on_top(row["colour"], row.get("fill"), row.get("bold", False))

    def state(self, name: str, *, where: str) -> Format:
        """What a verdict's state puts on a cell; where is "tile" or "mark" (a table cell)."""
        row = self.look["states"][name]
        return self._on_top(row[f"{where}_text"], row[f"{where}_fill"], where == "mark")

    def colour(self, token: str) -> str:
        """The RGB colour of a palette token as "#RRGGBB"."""
        return colour(self.look, token)

    def _on_top(self, text: str, fill: str | None, bold: bool) -> Format:
        key = ("on top", text, fill, bold)
        if key not in self._formats:
            properties: dict[str, Any] = {"font_color": colour(self.look, text)}
            if fill:
                properties["bg_color"] = colour(self.look, fill)
            if bold:
                properties["bold"] = True
            self._formats[key] = self.workbook.add_format(properties)
        return self._formats[key]


def _channel(part: str) -> float:
    value = int(part, 16) / 255
    return float(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)


def luminance(look: Look, token: str) -> float:
    """Relative luminance of a palette token, 0 for black to 1 for white (WCAG 2.2)."""
    code = colour(look, token)[1:]
    red, green, blue = (_channel(code[at : at + 2]) for at in (0, 2, 4))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(look: Look, first: str, second: str) -> float:
    """Contrast ratio of two palette tokens, 1 to 21 (WCAG 2.2); text needs 4.5, lines and shapes 3."""
    low, high = sorted((luminance(look, first), luminance(look, second)))
    return (high + 0.05) / (low + 0.05)


def text_pairs(look: Look) -> Iterable[tuple[str, str, str]]:
    """Every text on fill that a cell can show: (where, text token, fill token)."""
    for name in look["styles"]:
        style = style_of(look, name)
        yield name, style["colour"], style["fill"] or "white"
    for name, mark in look["marks"].items():
        if name == HIDDEN:  # not to be read
            continue
        yield f"mark {name}", mark["colour"], mark.get("fill", "white")
    for name, state in look["states"].items():
        yield f"tile {name}", state["tile_text"], state["tile_fill"]
        if "mark_text" in state:
            yield f"state {name}", state["mark_text"], state["mark_fill"]

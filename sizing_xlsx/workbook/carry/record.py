"""The record of a workbook: what stands where, what its cells opened on, and the planner's own files.

It lies on the sheet Record, in cells, for cells survive every program. A later build compares the workbook with it
and so tells what the planner has changed, whichever program saved the file and whatever its stored results say.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import __version__
from .. import page
from ..planner_file import Area
from ..sheet_part import Value, box
from ..words import filled
from .shapes import digest, drawing_digest

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Record"
FORMAT = 1  # of the map; a program refuses those that it does not know
INPUTS, OPENED_ON, ALLOWED = "Record_Inputs_List", "Record_Opened_On_List", "Record_Allowed_List"
LAYER_FORMS = "layer_forms"  # a kind of own file
KINDS, FILES, CONTENTS = "Record_Kinds_List", "Record_Files_List", "Record_Contents_List"
MAP = "Record_Map_List"
_FACTS = ("Record_Format", "Record_Version", "Record_Job")
_CHUNK = 30_000  # characters; a cell holds 32,767
_AREA = re.compile(r"=?(?:'((?:[^']|'')+)'|([^'!]+))!(.+)")

Grid = dict[tuple[int, int], int]  # row and column from 0 -> digest


class OwnFile(NamedTuple):
    """A file of a planner's own models, cards or layer forms; those that were derived for his models count as his.

    kind: models, gpus or layer_forms. file: its name, with the folder of a config.
    """

    kind: str
    file: str
    text: str


class Record(NamedTuple):
    """What a workbook was when it was made.

    names: defined name -> its cells. typed: name of a cell or column that may be typed in -> rows before the first
    one that may. grids: sheet -> digests of its cells. charts: sheet -> digests of its charts. opened, allowed: of
    each single cell that may be typed in.
    """

    version: str
    job: str
    names: Mapping[str, Area]
    typed: Mapping[str, int]
    grids: Mapping[str, Grid]
    charts: Mapping[str, Sequence[int]]
    opened: Mapping[str, Value]
    allowed: Mapping[str, str]
    files: Sequence[OwnFile]


# -- writing


def write(book: Book) -> None:
    """The sheet Record, last of all: it describes every other one."""
    ws, styles = book.sheet(TITLE), book.styles
    put, words = book.putter(ws), book.template["record"]
    last = page.plain_sheet(
        book, TITLE, title=words["title"], sentence=words["sentence"], rows_repeated=None, freeze=(2, 0)
    )
    row = page.section(ws, styles, 2, last_column=last, name=words["workbook"], put=put)
    for name, label, fact in zip(_FACTS, words["facts"], (FORMAT, __version__, book.called), strict=True):
        put(row, 1, label, styles["r_label"])
        put(row, 2, fact, styles["r_text_r"])
        book.define(name, TITLE, row, 2)
        row += 1
    typed = _typed(book)
    row = page.section(ws, styles, row, last_column=last, name=words["opened"], put=put)
    row = _inputs(book, row, [name for name in typed if _is_cell(book.defined[name])])
    row = page.section(ws, styles, row, last_column=last, name=words["own"], put=put)
    files = [(own.kind, own.file, chunk) for own in own_files(book.presets) for chunk in _chunks(json.dumps(own.text))]
    row = _table(book, row, (KINDS, FILES, CONTENTS), files or [("none", "", "")])
    page.print_area(ws, row, last)
    row = page.section(ws, styles, row, last_column=last, name=words["packed"], put=put)
    packed = pack(_described(book, typed))
    lines = [(filled(words["part"], number=str(at)), f"{at}:{text}", "") for at, text in enumerate(_chunks(packed), 1)]
    _table(book, row, ("", MAP, ""), lines)


def _inputs(book: Book, row: int, names: Sequence[str]) -> int:
    standards = book.standards()
    lines = [
        (name, standards[name][0] if name in standards else _opened(book, name), book.may_be(name)) for name in names
    ]
    return _table(book, row, (INPUTS, OPENED_ON, ALLOWED), lines)


def _opened(book: Book, name: str) -> Value:
    area = area_of(book.defined[name])
    return _content(book, book.sheets[area.sheet].table[area.first_row][area.first_column])[0]


def _table(book: Book, row: int, names: Sequence[str], lines: Sequence[tuple[Any, ...]]) -> int:
    """Lines of three cells, with a name for each column that has one; returns the row behind them."""
    ws, styles = book.sheet(TITLE), book.styles
    for at, line in enumerate(lines, row):
        for column, value in enumerate(line, 1):
            book.put(ws, at, column, None if value == "" else value, styles["r_label" if column == 1 else "r_text_i"])
    for column, name in enumerate(names, 1):
        if name:
            book.define(name, TITLE, row, column, row + len(lines) - 1)
    return row + len(lines)


def own_files(presets: Any) -> list[OwnFile]:
    """The planner's own files behind a catalogue, each once; two of one name, from two folders, are told apart."""
    found: dict[tuple[str, str], str] = {}
    for own in presets.own:
        file, number = own.file, 1
        while found.get((own.table, file), own.content) != own.content:
            number += 1
            stem, dot, suffix = own.file.rpartition(".")
            file = f"{stem} ({number}){dot}{suffix}"
        if own.content:
            found[own.table, file] = own.content
    return [OwnFile(kind, file, text) for (kind, file), text in found.items()]


def _chunks(text: str) -> list[str]:
    return [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]


def _is_cell(reference: str) -> bool:
    return ":" not in reference


def area_of(reference: str) -> Area:
    """The cells that a reference such as 'My Sheet'!$B$2:$B$9 names. Raises ValueError where it names none."""
    found = _AREA.fullmatch(reference.strip())
    cells = box(found[3]) if found else None
    if found is None or cells is None:
        raise ValueError(f"{reference} names no area of cells")
    sheet = found[1].replace("''", "'") if found[1] else found[2]
    return Area(sheet, cells[0], cells[2], cells[1], cells[3])


def _typed(book: Book) -> dict[str, int]:
    """The names of cells and columns that may be typed in, with the rows before the first that may."""
    found: dict[str, int] = {}
    for name, reference in book.defined.items():
        area = area_of(reference)
        if area.first_column != area.last_column:
            continue
        cells = book.sheets[area.sheet].table
        for row in range(area.first_row, area.last_row + 1):
            cell = cells.get(row, {}).get(area.first_column)
            if cell is not None and cell.format is not None and not cell.format.locked:
                found[name] = row - area.first_row
                break
    return found


def _content(book: Book, cell: Any) -> tuple[Value, str | None]:
    """Value and formula of a cell that XlsxWriter holds."""
    kind = type(cell).__name__
    if kind == "String":
        return _texts(book)[cell.string], None
    if kind == "Number":
        return float(cell.number), None
    if kind == "Formula":
        return None, str(cell.formula).removeprefix("=")
    if kind == "Blank":
        return None, None
    raise TypeError(f"a cell of kind {kind}; the record knows texts, numbers, formulas and blank cells")


def _texts(book: Book) -> list[str]:
    table = book.workbook.str_table.string_table
    if len(getattr(book, "_texts", ())) != len(table):
        book._texts = list(table)  # type: ignore[attr-defined]
    return book._texts  # type: ignore[attr-defined,no-any-return]


def _described(book: Book, typed: Mapping[str, int]) -> dict[str, Any]:
    """The map: names, cells that may be typed in, digests of cells and charts."""
    baseline = {
        (area.sheet, area.first_row + at, area.first_column): value
        for name, values in book.standards().items()
        for area in [area_of(book.defined[name])]
        for at, value in enumerate(values)
    }
    grids: dict[str, list[list[int]]] = {}
    charts: dict[str, list[int]] = {}
    for title, ws in book.sheets.items():
        cells: Grid = {}
        for row, line in ws.table.items():
            for column, cell in line.items():
                value, formula = _content(book, cell)
                value = baseline.get((title, row, column), value)
                if code := digest(value, formula):
                    cells[row, column] = code
        grids[title] = _runs(cells)
        charts[title] = [drawing_digest(str(s["values"]) for s in chart[2].series) for chart in ws.charts]
    return {
        "names": {name: reference.replace("$", "") for name, reference in book.defined.items()},
        "typed": dict(typed),
        "grids": grids,
        "charts": charts,
    }


def _runs(cells: Grid) -> list[list[int]]:
    """Digests down the columns: column, first row, rows, digest. Most columns say one thing many times."""
    runs: list[list[int]] = []
    for column, row in sorted((column, row) for row, column in cells):
        code = cells[row, column]
        last = runs[-1] if runs else [-1, 0, 0, 0]
        if last[0] == column and last[1] + last[2] == row and last[3] == code:
            last[2] += 1
        else:
            runs.append([column, row, 1, code])
    return runs


# -- packing, and reading again


def pack(described: Mapping[str, Any]) -> str:
    """The map as text of plain characters, with a check sum in front."""
    raw = json.dumps(described, separators=(",", ":"), sort_keys=True).encode()
    return f"{zlib.crc32(raw):08x}." + base64.b64encode(zlib.compress(raw, 9)).decode()


def unpack(text: str) -> dict[str, Any]:
    """The map that pack() made. Raises ValueError where a character of it is gone or changed."""
    check, _, body = text.partition(".")
    try:
        raw = zlib.decompress(base64.b64decode(body, validate=True))
        if f"{zlib.crc32(raw):08x}" != check:
            raise ValueError
        found = json.loads(raw)
    except (ValueError, zlib.error):
        raise ValueError("the map on the sheet Record was changed") from None
    return dict(found)


def joined_chunks(cells: Iterable[Value]) -> str:
    """The text that was cut into numbered chunks; the order of the cells does not count."""
    parts = [str(cell).partition(":") for cell in cells if cell is not None]
    return "".join(text for _, _, text in sorted(parts, key=lambda part: int(part[0]) if part[0].isdigit() else 0))


def read(facts: Mapping[str, Value], columns: Mapping[str, Sequence[Value]]) -> Record:
    """The record, from the cells of the sheet by their names. Raises ValueError where it was changed."""
    found = unpack(joined_chunks(columns[MAP]))
    names = [str(name) for name in columns[INPUTS]]
    return Record(
        version=str(facts["Record_Version"]),
        job=str(facts["Record_Job"]),
        names={name: area_of(reference) for name, reference in found["names"].items()},
        typed=found["typed"],
        grids={sheet: _grid(runs) for sheet, runs in found["grids"].items()},
        charts=found["charts"],
        opened=dict(zip(names, columns[OPENED_ON], strict=True)),
        allowed={name: str(text or "") for name, text in zip(names, columns[ALLOWED], strict=True)},
        files=files_of(columns),
    )


def files_of(columns: Mapping[str, Sequence[Value]]) -> list[OwnFile]:
    """The planner's own files, from the three columns that hold them in pieces."""
    texts: dict[tuple[str, str], list[str]] = {}
    for kind, file, content in zip(columns[KINDS], columns[FILES], columns[CONTENTS], strict=True):
        if file and content:
            texts.setdefault((str(kind), str(file)), []).append(str(content))
    return [OwnFile(kind, file, json.loads("".join(parts))) for (kind, file), parts in texts.items()]


def _grid(runs: Iterable[Sequence[int]]) -> Grid:
    return {(row + at, column): code for column, row, count, code in runs for at in range(count)}

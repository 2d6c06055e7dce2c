"""Rules that a generated workbook must keep, checked on the file itself.

lint() reads the parts inside the .xlsx directly: openpyxl would hide what several rules are about (typed
blank cells, chart axes, cached values, the dates of the zip). Formulas are cut up by openpyxl's Tokenizer.
The answer is a list of sentences that say where and what, empty for a clean workbook.
"""

from __future__ import annotations

import datetime
import io
import math
import posixpath
import re
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token, TokenizerError
from openpyxl.formula.translate import Translator

MAX_LENGTH = 160
MAX_NESTING = 3
MAX_TEXT = 255
MAX_FORMULA = 8192
MAX_NAME = 64
MAX_UNPACKED = 200 * 2**20
MAX_PARTS = 2000

# They give the same values in Excel 2010 and later, LibreOffice, Google Sheets and the test engines.
ALLOWED_FUNCTIONS = frozenset(
    ("IF", "AND", "OR", "NOT", "MIN", "MAX", "SUM", "SUMPRODUCT", "SUMIF", "ABS", "ROUND", "ROUNDUP",
     "ROUNDDOWN", "INT", "INDEX", "CHOOSE", "MATCH", "COUNT", "COUNTIF", "COUNTIFS", "AVERAGE", "MEDIAN",
     "LARGE", "SMALL", "RANK", "ISNUMBER", "ISBLANK", "ISTEXT", "N", "NA", "IFERROR", "FIXED", "LEFT",
      "MID", "LEN", "FIND", "LOWER", "SUBSTITUTE", "DATE", "YEAR", "MONTH", "DAY")
)  # fmt: skip
_BANNED = {
    **dict.fromkeys(("NOW", "TODAY", "RAND", "RANDBETWEEN", "CELL", "INFO"), "is volatile"),
    **dict.fromkeys(("OFFSET", "INDIRECT"), "hides what the formula depends on"),
    **dict.fromkeys(("LET", "LAMBDA"), "does not work in older Excel, LibreOffice or Google Sheets"),
    "TEXT": "depends on the reader's locale; use FIXED",
}
_DECIMALS = frozenset({"ROUND", "ROUNDUP", "ROUNDDOWN", "FIXED"})  # their second argument may be a literal 0 to 4
SHEET_RULES = ("protection", "gridlines", "print area", "one page wide", "footer", "freeze panes")

Exempt = Callable[[str, str, str], bool]

_NUMBER_FREE = re.compile(r"""\"(?:[^"]|"")*\"|'(?:[^']|'')*'|(?<![\w.])(\$?[A-Z]{1,3}\$?)\d+(?![\w.(!])""")
_REFERENCE = re.compile(
    r'"(?:[^"]|"")*"'
    r"|'(?:[^']|'')*'!"
    r"|(?<![\w.$])(?P<ca>\$?)(?P<c>[A-Za-z]{1,3})(?P<ra>\$?)(?P<r>\d{1,7})(?![\w.(!])"
)
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")
_CELL_OR_RANGE = re.compile(r"\$?[A-Za-z]{1,3}\$?\d{1,7}(:\$?[A-Za-z]{1,3}\$?\d{1,7})?")
_WHOLE = re.compile(r"\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3}|\$?\d+:\$?\d+")
_TARGET = re.compile(r"(?P<sheet>'(?:[^']|'')+'|[\w.]+)!\$(?P<c1>[A-Z]{1,3})\$\d+(:\$(?P<c2>[A-Z]{1,3})\$\d+)?")
_R1C1_NAME = re.compile(r"(?i)R\d*(C\d*)?|C\d*")
_DASHES = frozenset({"-", "–", "−"})

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DRAW = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"
_X14 = "{http://schemas.microsoft.com/office/spreadsheetml/2009/9/main}"
_XM = "{http://schemas.microsoft.com/office/excel/2006/main}"
_DCTERMS = "{http://purl.org/dc/terms/}"

Box = tuple[int, int, int, int]  # first row, first column, last row, last column


def lint(
    path: str | Path,
    *,
    exempt: Exempt | None = None,
    exempt_numbers: Exempt | None = None,
    generated_names: Collection[str] = (),
    plain_names: Collection[str] = (),
    functions: Collection[str] = ALLOWED_FUNCTIONS,
    tables: Mapping[str, Sequence[str]] | None = None,
    without: Mapping[str, Collection[str]] | None = None,
    today: datetime.date | None = None,
) -> list[str]:
    """What is wrong with a workbook, as sentences; an empty list for a clean one.

    exempt(sheet, cell, formula): True where a formula may exceed 160 characters and 3 levels of nesting.
    exempt_numbers(sheet, cell, formula): True where a formula may hold any number.
    generated_names: defined names that need not refer to cells (LAMBDA functions).
    plain_names: defined names that may do without an underscore: long words, which no program takes for a cell.
    functions: the functions that cells may use.
    tables: sheet -> ranges whose columns must each hold one formula; no ranges: the whole sheet.
    without: a rule of SHEET_RULES -> sheets that need not keep it; "*" means every sheet.
    today: the date that nothing in the file may bear; the present date unless given.
    Raises ValueError where the file is no workbook, is too large, or declares a document type.
    """
    unknown = sorted(set(without or ()) - set(SHEET_RULES))
    if unknown:
        raise ValueError(f"without names the rule {unknown[0]!r}; the rules are {', '.join(SHEET_RULES)}")
    book = _Book(path)
    today = today or datetime.datetime.now().date()
    found = [*_parts(book, today), *_names(book, {name.casefold() for name in generated_names}, plain_names)]
    allowed = frozenset(functions)
    for sheet, part, state in book.sheets:
        root = book.xml(part)
        if state != "visible":
            found.append(f"{sheet}: the sheet is {state}; every sheet must be visible")
        found += _layout(book, sheet, root, without or {})
        checks, boxes = _validations(book, sheet, root, allowed)
        found += checks
        found += _conditions(book, sheet, root, allowed)
        found += _cells(book, sheet, root, boxes, allowed, exempt, exempt_numbers, tables or {})
    for sheet in sorted(set(tables or ()) - {name for name, _, _ in book.sheets}):
        found.append(f"{sheet}: no sheet of this name, though it is said to hold a table")
    for part in book.matching("xl/drawings/drawing"):
        found += _alt_texts(part, book.xml(part))
    for part in book.matching("xl/charts/chart"):
        found += _chart(part, book.xml(part))
    return found


class _Book:
    """The parts of one file and what several rules need of them."""

    __slots__ = (
        "infos", "known_names", "known_sheets", "names", "parts", "quoted", "sheets", "strings",
        "unlocked", "workbook",
    )  # fmt: skip

    def __init__(self, path: str | Path) -> None:
        try:
            with zipfile.ZipFile(io.BytesIO(Path(path).read_bytes())) as archive:
                self.infos = archive.infolist()
                if len(self.infos) > MAX_PARTS or sum(info.file_size for info in self.infos) > MAX_UNPACKED:
                    raise ValueError(f"{path} holds more than {MAX_PARTS} parts or {MAX_UNPACKED} bytes unpacked")
                self.parts = {info.filename: archive.read(info) for info in self.infos}
        except zipfile.BadZipFile:
            raise ValueError(f"{path} is not an .xlsx workbook: it is no zip file") from None
        if "xl/workbook.xml" not in self.parts:
            raise ValueError(f"{path} is not an .xlsx workbook: it has no xl/workbook.xml")
        self.workbook = self.xml("xl/workbook.xml")
        targets = self.targets("xl/workbook.xml")
        self.sheets = [
            (e.get("name", ""), targets.get(e.get(_REL + "id", ""), ""), e.get("state", "visible"))
            for e in self.workbook.iter(_MAIN + "sheet")
        ]
        self.sheets = [s for s in self.sheets if s[1].startswith("xl/worksheets/")]
        self.names = [
            (e.get("name", ""), e.get("localSheetId"), e.text or "") for e in self.workbook.iter(_MAIN + "definedName")
        ]
        self.known_sheets = frozenset(name.casefold() for name, _, _ in self.sheets)
        self.known_names = frozenset(name.casefold() for name, _, _ in self.names)
        self.strings: list[str] = []
        if "xl/sharedStrings.xml" in self.parts:
            for item in self.xml("xl/sharedStrings.xml").iter(_MAIN + "si"):
                self.strings.append(_text(item))
        self.unlocked, self.quoted = set[str](), set[str]()
        formats = self.xml("xl/styles.xml").find(_MAIN + "cellXfs") if "xl/styles.xml" in self.parts else None
        for number, form in enumerate(formats if formats is not None else ()):
            protection = form.find(_MAIN + "protection")
            if protection is not None and protection.get("locked") in ("0", "false"):
                self.unlocked.add(str(number))
            if form.get("quotePrefix") in ("1", "true"):
                self.quoted.add(str(number))

    def xml(self, part: str) -> ET.Element:
        """The root of a part. A document type is refused: entities in it can grow without bound."""
        data = self.parts[part]
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
            raise ValueError(f"{part} declares a document type; no workbook needs one")
        try:
            return ET.fromstring(data)
        except ET.ParseError as error:
            raise ValueError(f"{part} is not well-formed XML: {error}") from None

    def targets(self, part: str) -> dict[str, str]:
        """Relationship id -> part, for the relationships of a part that stay inside the file."""
        folder, name = posixpath.split(part)
        relations = f"{folder}/_rels/{name}.rels"
        if relations not in self.parts:
            return {}
        found = {}
        for relation in self.xml(relations):
            if relation.get("TargetMode") != "External":
                target = relation.get("Target", "")
                full = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
                found[relation.get("Id", "")] = posixpath.normpath(full)
        return found

    def matching(self, start: str) -> list[str]:
        return [part for part in self.parts if part.startswith(start) and part.endswith(".xml")]


def _text(item: ET.Element) -> str:
    """The text of a shared or inline string, its runs joined, its phonetic hints left out."""
    own = item.findtext(_MAIN + "t")
    return (own or "") + "".join(run.findtext(_MAIN + "t") or "" for run in item.findall(_MAIN + "r"))


# -- the document


def _parts(book: _Book, today: datetime.date) -> Iterator[str]:
    """Rules for the document as a whole: recalculation, dates, links."""
    calc = book.workbook.find(_MAIN + "calcPr")
    if calc is None or calc.get("fullCalcOnLoad") not in ("1", "true"):
        yield "Document: fullCalcOnLoad is not set, so Excel may show stale values"
    core = book.xml("docProps/core.xml") if "docProps/core.xml" in book.parts else None
    for what in ("created", "modified"):
        stamp = core.findtext(_DCTERMS + what) if core is not None else None
        if not stamp:
            yield f"Document: the date {what} is missing from docProps/core.xml"
        elif stamp[:10] == today.isoformat():
            yield f"Document: the date {what} is today, {stamp}; two builds must be identical"
    dates = {info.date_time for info in book.infos}
    if len(dates) > 1 or any(d[:3] == (today.year, today.month, today.day) for d in dates):
        yield "Document: the dates inside the zip are not fixed; give every part the same past date"
    for part in book.matching("xl/externalLinks/"):
        yield f"Document: {part} links to another workbook"


def _names(book: _Book, generated: set[str], plain: Collection[str]) -> Iterator[str]:
    """Rules for defined names."""
    seen: dict[str, str] = {}
    for name, _scope, target in book.names:
        if name.startswith("_xlnm."):
            continue
        where = f"Name {name}"
        if name.casefold() in seen:
            first = seen[name.casefold()]
            yield (f"{where}: defined twice" if first == name else f"{where}: differs from {first} only by case")
        seen.setdefault(name.casefold(), name)
        if not name.isascii() or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name):
            yield f"{where}: only ASCII letters, digits and underscores are safe in a name"
        if "_" not in name and name not in plain:
            yield f"{where}: has no underscore, which keeps names apart from cells and functions"
        if _is_cell(name) or _R1C1_NAME.fullmatch(name):
            yield f"{where}: reads as the address of a cell"
        if len(name) > MAX_NAME:
            yield f"{where}: has {len(name)} characters; at most {MAX_NAME} are allowed"
        if name.casefold() in generated:
            continue
        place = _TARGET.fullmatch(target)
        if place is None:
            yield f"{where}: refers to {target[:80]!r}; it must be one cell or one column, absolutely"
        elif _unquote(place["sheet"]).casefold() not in book.known_sheets:
            yield f"{where}: refers to the sheet {_unquote(place['sheet'])!r}, which is not in this workbook"
        elif place["c2"] not in (None, place["c1"]):
            yield f"{where}: refers to {target}, which is more than one column"


def _is_cell(name: str) -> bool:
    """Whether Excel reads a name as a cell: up to XFD1048576."""
    match = _CELL.fullmatch(name)
    return match is not None and _column(match[1]) <= 16384 and 1 <= int(match[2]) <= 1048576


def _unquote(sheet: str) -> str:
    return sheet[1:-1].replace("''", "'") if sheet.startswith("'") else sheet


# -- one sheet


def _layout(book: _Book, sheet: str, root: ET.Element, without: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Rules for how a sheet is protected, shown and printed."""

    def needs(rule: str) -> bool:
        return not {sheet, "*"} & set(without.get(rule, ()))

    protection = root.find(_MAIN + "sheetProtection")
    if protection is None or protection.get("sheet") not in ("1", "true"):
        if needs("protection"):
            yield f"{sheet}: is not protected"
    elif protection.get("password") or protection.get("hashValue"):
        yield f"{sheet}: is protected with a password; protection is there against slips, not against people"
    view = root.find(f"{_MAIN}sheetViews/{_MAIN}sheetView")
    if needs("gridlines") and (view is None or view.get("showGridLines") not in ("0", "false")):
        yield f"{sheet}: gridlines are on"
    pane = view.find(_MAIN + "pane") if view is not None else None
    if needs("freeze panes") and (pane is None or pane.get("state") not in ("frozen", "frozenSplit")):
        yield f"{sheet}: no rows or columns are frozen"
    index = next(i for i, e in enumerate(book.workbook.iter(_MAIN + "sheet")) if e.get("name") == sheet)
    areas = {scope for name, scope, _ in book.names if name == "_xlnm.Print_Area"}
    if needs("print area") and str(index) not in areas:
        yield f"{sheet}: has no print area"
    if needs("one page wide"):
        fit = root.find(f"{_MAIN}sheetPr/{_MAIN}pageSetUpPr")
        setup = root.find(_MAIN + "pageSetup")
        wide = setup.get("fitToWidth", "1") if setup is not None else "1"
        if fit is None or fit.get("fitToPage") not in ("1", "true") or wide != "1":
            yield f"{sheet}: does not print one page wide"
    if needs("footer") and not root.findtext(f"{_MAIN}headerFooter/{_MAIN}oddFooter"):
        yield f"{sheet}: has no footer"
    for merged in root.iter(_MAIN + "mergeCell"):
        yield f"{sheet}!{merged.get('ref')}: cells are merged; centre across the selection instead"


def _validations(book: _Book, sheet: str, root: ET.Element, functions: frozenset[str]) -> tuple[list[str], list[Box]]:
    """Rules for data validations, and the boxes that they cover."""
    found: list[str] = []
    boxes: list[Box] = []
    for rule in (*root.iter(_MAIN + "dataValidation"), *root.iter(_X14 + "dataValidation")):
        area = rule.get("sqref") or rule.findtext(_XM + "sqref") or ""
        first = rule.find(_MAIN + "formula1")
        if first is None:
            first = rule.find(f"{_X14}formula1/{_XM}f")
        source = (first.text or "") if first is not None else ""
        where = f"{sheet}!{area}"
        kind = rule.get("type", "none")
        try:
            boxes += [_box(part) for part in area.split()]
        except ValueError:
            found.append(f"{where}: the data validation covers whole columns or rows")
        if kind == "none":
            found.append(f"{where}: the data validation accepts anything")
        elif not source:
            found.append(f"{where}: the data validation has nothing to check against")
        if kind == "list" and source.startswith('"'):
            extra = " and longer than 255 characters, which corrupts the file" if len(source) - 2 > 255 else ""
            found.append(f"{where}: the list is typed into the data validation{extra}; refer to a range or a name")
        elif source:
            found += [f"{where}: data validation {p}" for p in _problems("=" + source, functions, book) if p.hard]
        if rule.get("showErrorMessage") not in ("1", "true"):
            found.append(f"{where}: the data validation shows no error message, so it accepts anything")
        if rule.get("errorStyle", "stop") != "stop":
            found.append(f"{where}: the data validation only warns; its style must be stop")
        if not rule.get("prompt") or rule.get("showInputMessage") not in ("1", "true"):
            found.append(f"{where}: the data validation shows no prompt")
    return found, boxes


def _conditions(book: _Book, sheet: str, root: ET.Element, functions: frozenset[str]) -> Iterator[str]:
    """The rule that conditional formats, too, use nothing that breaks elsewhere."""
    for block in root.iter(_MAIN + "conditionalFormatting"):
        for formula in block.iter(_MAIN + "formula"):
            for problem in _problems("=" + (formula.text or ""), functions, book):
                if problem.hard:
                    yield f"{sheet}!{block.get('sqref')}: conditional format {problem}"


def _cells(
    book: _Book,
    sheet: str,
    root: ET.Element,
    validated: list[Box],
    functions: frozenset[str],
    exempt: Exempt | None,
    exempt_numbers: Exempt | None,
    tables: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """Rules for the cells of one sheet."""
    shared: dict[str, tuple[str, str]] = {}
    formulas: dict[tuple[int, int], str] = {}
    data = root.find(_MAIN + "sheetData")
    used: set[tuple[int, int]] = set()
    for cell in data.iter(_MAIN + "c") if data is not None else ():
        address, kind, style = cell.get("r", ""), cell.get("t"), cell.get("s", "0")
        where = f"{sheet}!{address}"
        formula, value = cell.find(_MAIN + "f"), cell.find(_MAIN + "v")
        match = _CELL.fullmatch(address)
        place = (int(match[2]), _column(match[1])) if match else (0, 0)
        if formula is not None:
            used.add(place)
            text = "=" + (formula.text or "")
            if formula.get("t") == "shared":
                group = formula.get("si", "")
                if formula.text:
                    shared[group] = (text, address)
                elif group in shared:
                    origin, start = shared[group]
                    text = Translator(origin, start).translate_formula(address)
            if formula.get("t") == "array":
                yield f"{where}: is an array formula"
            elif formula.get("t") == "dataTable":
                yield f"{where}: is part of a what-if data table"
            formulas[place] = text
            yield from _formula(book, sheet, address, text, functions, exempt, exempt_numbers)
            yield from _cached(where, kind, value)
        elif kind == "n" and value is None:
            yield f'{where}: a blank cell has the type t="n", which some readers take for a number'
        elif value is not None or kind == "inlineStr":
            used.add(place)
            string = _string(book, cell, kind, value)
            if string and string[0] in "=+-@\t" and string not in _DASHES and style not in book.quoted:
                yield f"{where}: the text {string[:40]!r} begins like a formula; set its quote prefix"
        if style in book.unlocked and not _inside(place, validated):
            yield f"{where}: is unlocked but has no data validation"
    if sheet in tables:
        yield from _columns(sheet, formulas, used, tables[sheet])


def _string(book: _Book, cell: ET.Element, kind: str | None, value: ET.Element | None) -> str:
    """The text of a cell that holds text, else ""."""
    if kind == "s" and value is not None and (value.text or "").isdigit():
        number = int(value.text or "0")
        return book.strings[number] if number < len(book.strings) else ""
    if kind == "inlineStr":
        inline = cell.find(_MAIN + "is")
        return _text(inline) if inline is not None else ""
    return (value.text or "") if kind == "str" and value is not None else ""


def _cached(where: str, kind: str | None, value: ET.Element | None) -> Iterator[str]:
    """The rule that a formula has a cached value of the type that it claims."""
    text = value.text if value is not None else None
    if value is None or (text is None and kind != "str"):
        yield f"{where}: the formula has no cached value"
    elif kind in (None, "n"):
        try:
            good = math.isfinite(float(text or ""))
        except ValueError:
            good = False
        if not good:
            yield f"{where}: the cached value {text!r} is no number, but the cell says number"
    elif kind == "b":
        if text not in ("0", "1"):
            yield f"{where}: the cached value {text!r} is not 0 or 1, but the cell says boolean"
    elif kind == "e":
        if not (text or "").startswith("#"):
            yield f"{where}: the cached value {text!r} is no error, but the cell says error"
    elif kind != "str":
        yield f'{where}: the cached value has the type {kind!r}; a formula\'s text has the type "str"'


def _columns(
    sheet: str,
    formulas: Mapping[tuple[int, int], str],
    used: Collection[tuple[int, int]],
    ranges: Sequence[str],
) -> Iterator[str]:
    """The rule that one column of a table has one formula, in R1C1 form."""
    boxes = [_box(area) for area in ranges] or [(1, 1, 1048576, 16384)]
    for top, left, bottom, right in boxes:
        columns: dict[int, list[int]] = {}
        for row, column in sorted(formulas):
            if top <= row <= bottom and left <= column <= right:
                columns.setdefault(column, []).append(row)
        for column, rows in sorted(columns.items()):
            first = f"{_letters(column)}{rows[0]}"
            pattern = r1c1(formulas[rows[0], column], rows[0], column)
            last = rows[0]
            for row in rows[1:]:
                here = f"{sheet}!{_letters(column)}{row}"
                form = r1c1(formulas[row, column], row, column)
                if not ranges and row != last + 1:  # a gap starts another table
                    first, pattern = f"{_letters(column)}{row}", form
                elif form != pattern:
                    yield f"{here}: its formula differs from the one in {first}; a column has one formula"
                last = row
            if ranges:
                for row in range(top, bottom + 1):
                    if (row, column) in used and (row, column) not in formulas:
                        yield f"{sheet}!{_letters(column)}{row}: is a value in a column of formulas"


# -- formulas


class _Problem(str):
    """A complaint about a formula. hard: it holds outside cells too. number: it is about a literal."""

    __slots__ = ("hard", "number")

    hard: bool
    number: bool


def _problem(text: str, *, hard: bool = False, number: bool = False) -> _Problem:
    problem = _Problem(text)
    problem.hard, problem.number = hard, number
    return problem


def _formula(
    book: _Book,
    sheet: str,
    cell: str,
    formula: str,
    functions: frozenset[str],
    exempt: Exempt | None,
    exempt_numbers: Exempt | None,
) -> Iterator[str]:
    """Rules for the formula of one cell."""
    where = f"{sheet}!{cell}"
    if len(formula) > MAX_FORMULA:
        yield f"{where}: formula has {len(formula)} characters; Excel reads at most {MAX_FORMULA}"
    problems, depth = _analysed(_row_free(formula), functions, book)
    large = len(formula) > MAX_LENGTH or depth > MAX_NESTING
    if large and not (exempt is not None and exempt(sheet, cell, formula)):
        if len(formula) > MAX_LENGTH:
            yield f"{where}: formula has {len(formula)} characters; at most {MAX_LENGTH} are readable"
        if depth > MAX_NESTING:
            yield f"{where}: formula nests functions {depth} deep; at most {MAX_NESTING} are readable"
    for problem in problems:
        if problem.number and exempt_numbers is not None and exempt_numbers(sheet, cell, formula):
            continue
        yield f"{where}: formula {problem}"


def _row_free(formula: str) -> str:
    """The formula with every row number as 9: the rows of a table are then analysed once."""
    return _NUMBER_FREE.sub(lambda m: m[1] + "9" if m[1] else m[0], formula)


def _problems(formula: str, functions: frozenset[str], book: _Book) -> tuple[_Problem, ...]:
    return _analysed(formula, functions, book)[0]


def _analysed(formula: str, functions: frozenset[str], book: _Book) -> tuple[tuple[_Problem, ...], int]:
    """Complaints about a formula, and how deep its functions nest."""
    return _analyse(formula, functions, book.known_sheets, book.known_names)


class _Level:
    """One pair of brackets while a formula is walked through."""

    __slots__ = ("argument", "exponent", "function", "minus", "power", "tokens")

    def __init__(self, function: str, exponent: bool) -> None:
        self.function, self.exponent = function, exponent  # exponent: the whole bracket follows a ^
        self.argument, self.tokens = 1, list[str]()  # tokens: of the present argument
        self.minus, self.power = (
            False,
            False,
        )  # minus: one stands before the present operand; power: so does a ^


@lru_cache(maxsize=65536)
def _analyse(
    formula: str, functions: frozenset[str], sheets: frozenset[str], names: frozenset[str]
) -> tuple[tuple[_Problem, ...], int]:
    found: list[_Problem] = []
    try:
        tokens = Tokenizer(formula).items
    except TokenizerError as error:
        return (_problem(f"cannot be read: {error}", hard=True),), 0
    for left, space, right in zip(tokens, tokens[1:], tokens[2:], strict=False):
        ends = left.type == Token.OPERAND or left.subtype == Token.CLOSE
        if space.type == Token.WSPACE and ends and (right.type == Token.OPERAND or right.subtype == Token.OPEN):
            found.append(_problem("intersects ranges", hard=True))
    levels = [_Level("", False)]
    deepest = 0
    before = ""  # the operator just before the present token, "" after an operand
    power = False  # the present operand is an exponent
    for token in tokens:
        level, kind, value = levels[-1], token.type, token.value
        if kind == Token.WSPACE:
            continue
        if kind in (Token.FUNC, Token.PAREN) and token.subtype == Token.OPEN:
            function = value[:-1].upper() if kind == Token.FUNC else ""
            if function:
                found += _function(function, functions)
            level.tokens.append(value)
            levels.append(_Level(function, level.exponent or power))
            deepest = max(deepest, sum(bool(x.function) for x in levels))
            before, power = "", False
            continue
        if kind in (Token.FUNC, Token.PAREN):
            if level.function == "MATCH" and not (level.argument == 3 and level.tokens == ["0"]):
                found.append(_problem("uses MATCH without 0 as its third argument", hard=True))
            if len(levels) > 1:
                levels.pop()
            before, power = "", False
            continue
        if kind == Token.SEP:
            level.argument += 1
            level.tokens, level.minus, level.power = [], False, False
            before, power = "", False
            continue
        level.tokens.append(value)
        if kind == Token.OP_IN:
            if value == "^":
                if level.minus:
                    found.append(_problem("has a minus before a power; -2^2 is 4 in a sheet, so use parentheses"))
                if level.power:
                    found.append(_problem("has a power of a power; 2^3^2 is 64 in a sheet, so use parentheses"))
                level.power = power = True
            else:
                level.minus = level.power = power = False
                if value == ",":
                    found.append(_problem("unites ranges", hard=True))
            before = value
            continue
        if kind == Token.OP_PRE:
            if before != "^" and value == "-":
                level.minus = True
            continue  # 10^-9: what follows the sign is still the exponent
        if kind == Token.OP_POST:
            found.append(_problem("has a percent sign; a share belongs in a named cell", number=True))
        elif kind == Token.ARRAY:
            found.append(_problem("holds an array constant", hard=True))
        elif kind == Token.OPERAND:
            found += _operand(token, level, level.exponent or power, sheets, names)
            before, power = "", False
    return tuple(dict.fromkeys(found)), deepest


def _function(name: str, functions: frozenset[str]) -> Iterator[_Problem]:
    plain = name.removeprefix("_XLFN.").removeprefix("_XLWS.")
    if name in functions:
        return
    if plain in _BANNED:
        yield _problem(f"uses {plain}, which {_BANNED[plain]}", hard=True)
    else:
        yield _problem(f"uses {plain}, which is not among the functions that work everywhere", hard=plain != name)


def _operand(
    token: Token, level: _Level, exponent: bool, sheets: frozenset[str], names: frozenset[str]
) -> Iterator[_Problem]:
    value = token.value
    if token.subtype == Token.NUMBER:
        decimals = level.function in _DECIMALS and level.argument == 2 and value in ("0", "1", "2", "3", "4")
        if not (exponent or decimals or value in ("0", "1", "2")):
            yield _problem(f"has the number {value}; every constant belongs in a named cell", number=True)
    elif token.subtype == Token.TEXT:
        length = len(value[1:-1].replace('""', '"'))
        if length > MAX_TEXT:
            yield _problem(f"has a text of {length} characters; Excel reads at most {MAX_TEXT}", hard=True)
    elif token.subtype == Token.LOGICAL:
        if not (level.function == "FIXED" and level.argument == 3):
            yield _problem(f"has the literal {value}; compare something instead")
    elif token.subtype == Token.ERROR:
        yield _problem(f"holds the error {value}", hard=True)
    elif token.subtype == Token.RANGE:
        yield from _range(value, sheets, names)


def _range(value: str, sheets: frozenset[str], names: frozenset[str]) -> Iterator[_Problem]:
    sheet, _, place = value.rpartition("!")
    if "[" in value or "]" in value:
        kind = "another workbook" if sheet else "a table by structured reference"
        yield _problem(f"refers to {kind} ({value})", hard=True)
    elif _WHOLE.fullmatch(place):
        yield _problem(f"refers to whole columns or rows ({value})", hard=True)
    elif "#" in place:
        yield _problem(f"refers to {value}, which is an error or a spilled range", hard=True)
    elif sheet and _unquote(sheet).casefold() not in sheets:
        yield _problem(f"refers to the sheet {_unquote(sheet)!r}, which this workbook does not have", hard=True)
    elif not _CELL_OR_RANGE.fullmatch(place) and place.casefold() not in names:
        yield _problem(f"refers to {value!r}, which is neither a cell nor a defined name", hard=True)


def r1c1(formula: str, row: int, column: int) -> str:
    """A formula in R1C1 form, as seen from its cell (counted from 1): "=A1*$B$2" in C1 is "=RC[-2]*R2C2".

    Two cells of one column hold the same formula if and only if these forms are equal.
    """

    def reference(match: re.Match[str]) -> str:
        if match["c"] is None:
            return match[0]  # a text or the name of a sheet
        down, right = int(match["r"]), _column(match["c"])
        return "R" + _step(down, row, match["ra"]) + "C" + _step(right, column, match["ca"])

    return _REFERENCE.sub(reference, formula)


def _step(target: int, here: int, absolute: str) -> str:
    if absolute:
        return str(target)
    return "" if target == here else f"[{target - here}]"


# -- charts


def _alt_texts(part: str, root: ET.Element) -> Iterator[str]:
    """The rule that every chart, picture and shape is described in words."""
    for properties in root.iter(_DRAW + "cNvPr"):
        if not (properties.get("descr") or "").strip():
            yield f"{part}: {properties.get('name') or 'a drawing'!r} has no alt text"


def _chart(part: str, root: ET.Element) -> Iterator[str]:
    """Rules for one chart."""
    chart = root.find(_CHART + "chart")
    if chart is None:
        yield f"{part}: holds no chart"
        return
    corners = root.find(_CHART + "roundedCorners")
    if corners is None or corners.get("val") not in ("0", "false"):
        yield f"{part}: rounded corners are not off"
    if chart.find(_CHART + "title") is None:
        yield f"{part}: has no title"
    for kind in ("catAx", "valAx", "dateAx", "serAx"):
        for axis in chart.iter(_CHART + kind):
            delete = axis.find(_CHART + "delete")
            if delete is None or delete.get("val") not in ("0", "false"):
                yield f'{part}: an axis ({kind}) lacks <c:delete val="0"/>, so that Excel may hide it'
    for kind, cache in (("numRef", "numCache"), ("strRef", "strCache")):
        for source in chart.iter(_CHART + kind):
            points = source.find(_CHART + cache)
            if points is None or points.find(_CHART + "pt") is None:
                yield f"{part}: {source.findtext(_CHART + 'f')} has no cached points"


# -- addresses


@lru_cache(maxsize=1024)
def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def _letters(column: int) -> str:
    text = ""
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


def _box(area: str) -> Box:
    """The rows and columns of "B2" or "B2:C9"; ValueError for anything else."""
    first, _, last = area.replace("$", "").partition(":")
    start, end = _CELL.fullmatch(first), _CELL.fullmatch(last or first)
    if start is None or end is None:
        raise ValueError(f"{area!r} is not a range of cells such as 'B2:C9'")
    return int(start[2]), _column(start[1]), int(end[2]), _column(end[1])


def _inside(place: tuple[int, int], boxes: Sequence[Box]) -> bool:
    row, column = place
    return any(top <= row <= bottom and left <= column <= right for top, left, bottom, right in boxes)

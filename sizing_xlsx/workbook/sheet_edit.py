"""Other values in the cells of one worksheet's XML, cut in at the bytes of their tags."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping

from ..presets.names import shown
from .package import Events
from .sheet_part import COLUMNS, SheetPart, Value, address, behind, box, read_tag

Edit = tuple[int, int, bytes]  # first byte, byte behind the last, what takes their place

LONGEST_TEXT = 32_767
LARGEST_WHOLE = 2**53
ERRORS = frozenset(
    ("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!", "#CALC!",
     "#FIELD!", "#BLOCKED!", "#CONNECT!", "#UNKNOWN!", "#BUSY!", "#PYTHON!")
)  # fmt: skip

_ATTRIBUTE = re.compile(rb"\s+([^\s=]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_LOOKS_ESCAPED = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def checked_value(value: object, where: str) -> Value:
    """The value, when a cell can hold it exactly; else ValueError. Negative zero becomes zero, as in Excel."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if bad := _FORBIDDEN.search(value):
            raise ValueError(
                f"{where} is {shown(value)}, with U+{ord(bad[0]):04X} at character {bad.start() + 1}; "
                "a cell's text may hold tabs, line ends and characters that print"
            )
        if (length := len(value.encode("utf-16-le")) // 2) > LONGEST_TEXT:
            raise ValueError(f"{where} is a text of {length:,} characters; a cell holds at most {LONGEST_TEXT:,}")
        return str.__str__(value)  # of an enumeration's member the value, not the name
    if isinstance(value, int):
        if abs(value) > LARGEST_WHOLE:
            raise ValueError(
                f"{where} is {shown(value)}; a cell holds whole numbers up to {LARGEST_WHOLE:,} exactly, "
                "so give it as a float or a text"
            )
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {float(value)}; it should be a finite number, or None for an empty cell")
        return float(value) + 0.0
    raise ValueError(f"{where} is {shown(value)}; it should be a str, an int, a float, a bool or None")


class SheetEdit:
    """Puts values into one part: the part itself stays as it was read."""

    def __init__(self, part: SheetPart) -> None:
        self.part = part

    def patched(
        self, values: Mapping[tuple[int, int], Value], cached: Mapping[tuple[int, int], Value] | None = None
    ) -> bytes:
        """The part with other values in these cells, checked before, and other cached values in formula cells."""
        edits: list[Edit] = []
        targets: dict[int, list[int]] = {}
        for row, column in sorted(values):
            at = self.part.find(row, column)
            if at is not None:
                edits.append(self._replaced(at, values[row, column]))
            elif values[row, column] is not None:
                targets.setdefault(row, []).append(column)
        for (row, column), value in (cached or {}).items():
            at = self.part.find(row, column)
            if at is None:
                raise ValueError(f"{self.part.where} has no cell {address(row, column)} whose value could be refreshed")
            edits.append(self._refreshed(at, value))
        new_rows: list[tuple[int, bytes]] = []
        for row, columns in targets.items():
            new = {column: values[row, column] for column in columns}
            at = bisect_left(self.part.row_numbers, row)
            if at < len(self.part.row_numbers) and self.part.row_numbers[at] == row:
                edits += self._into_row(at, new)
            else:
                new_rows.append((at, self._row_bytes(row, new)))
        edits += self._into_sheet(new_rows)
        if targets and self.part.dimension >= 0:
            corners = [(row, column) for row, columns in targets.items() for column in columns]
            edits += self._dimension_edit(corners)
        return spliced(self.part.data, edits)

    def _replaced(self, at: int, value: Value) -> Edit:
        start, stop = self.part.span(at)
        fragment = self.part.data[start:stop]
        tag = read_tag(fragment, 0)
        kept = _attributes_but(tag, b"t", b"vm", b"cm")
        rest = b"".join(fragment[first:last] for name, first, last in _children(fragment) if name not in ("v", "is"))
        return start, stop, _cell_bytes(tag[1], kept, value, rest)

    def _refreshed(self, at: int, value: Value) -> Edit:
        start, stop = self.part.span(at)
        fragment = self.part.data[start:stop]
        tag = read_tag(fragment, 0)
        name, prefix = tag[1], _prefix(tag[1])
        kind, text = _stored(value)
        opening = tag[0] if not tag[3] else tag[0][: tag.start(3)] + b">"
        if (_attribute(tag, b"t") or b"n") != (kind or b"n"):
            opening = b"<" + name + _attributes_but(tag, b"t") + (b' t="' + kind + b'"' if kind else b"") + b">"
        if tag[3]:
            inner, closing = b"", b"</" + name + b">"
        else:
            inner, closing = fragment[tag.end() : fragment.rindex(b"<")], fragment[fragment.rindex(b"<") :]
        element = b"" if value is None else b"<%sv>%s</%sv>" % (prefix, text, prefix)
        behind_formula = 0
        edits: list[Edit] = []
        for child, first, last in _children(fragment):
            first, last = first - tag.end(), last - tag.end()
            if child == "f":
                behind_formula = last
            elif child in ("v", "is"):
                edits.append((first, last, b"" if edits else element))
        if not edits:
            edits = [(behind_formula, behind_formula, element)]
        return start, stop, opening + spliced(inner, edits) + closing

    def _into_row(self, at: int, new: Mapping[int, Value]) -> list[Edit]:
        row, start = self.part.row_numbers[at], self.part.row_starts[at]
        tag = read_tag(self.part.data, start)
        prefix = _prefix(tag[1])
        styled = _attribute(tag, b"customFormat") in (b"1", b"true")
        own = style if styled and (style := _attribute(tag, b"s")) and style.isdigit() else None
        cells = {
            column: _new_cell(prefix, row, column, own or self._column_style(column), value)
            for column, value in new.items()
        }
        edits = _spans_edit(tag, min(new), max(new))
        if tag[3]:
            closing = b">" + b"".join(cells[column] for column in sorted(cells)) + b"</" + tag[1] + b">"
            return [*edits, (tag.start(3), tag.end(), closing)]
        for column in sorted(cells):
            later = bisect_left(self.part.keys, row * COLUMNS + column)
            in_row = later < len(self.part.keys) and self.part.keys[later] < (row + 1) * COLUMNS
            where = self.part.starts[later] if in_row else self.part.row_stops[at]
            edits.append((where, where, cells[column]))
        return edits

    def _row_bytes(self, row: int, new: Mapping[int, Value]) -> bytes:
        prefix = _prefix(read_tag(self.part.data, self.part.data_start)[1])
        cells = b"".join(
            _new_cell(prefix, row, column, self._column_style(column), new[column]) for column in sorted(new)
        )
        return b'<%srow r="%d">%s</%srow>' % (prefix, row + 1, cells, prefix)

    def _into_sheet(self, new_rows: list[tuple[int, bytes]]) -> list[Edit]:
        """Edits that put rows before the row of that number in the part."""
        if not new_rows:
            return []
        tag = read_tag(self.part.data, self.part.data_start)
        if tag[3]:
            rows = b"".join(content for _, content in new_rows)
            return [(tag.start(3), tag.end(), b">" + rows + b"</" + tag[1] + b">")]
        edits = []
        for at, content in new_rows:
            where = self.part.row_starts[at] if at < len(self.part.row_starts) else self.part.data_stop
            edits.append((where, where, content))
        return edits

    def _dimension_edit(self, cells: list[tuple[int, int]]) -> list[Edit]:
        tag = read_tag(self.part.data, self.part.dimension)
        area = box((_attribute(tag, b"ref") or b"").decode())
        if area is None:
            return []
        rows, columns = [row for row, _ in cells], [column for _, column in cells]
        grown = (
            min(area[0], *rows), min(area[1], *columns), max(area[2], *rows), max(area[3], *columns),
        )  # fmt: skip
        if grown == area:
            return []
        return [(*_attribute_bytes(tag, b"ref"), f"{address(*grown[:2])}:{address(*grown[2:])}".encode())]

    def _column_style(self, column: int) -> bytes | None:
        """The style that Excel gives a new cell of a column."""
        for first, last, style in self.part.column_styles:
            if first <= column <= last:
                return style if style != b"0" else None
        return None


# -- bytes of tags


def spliced(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The bytes with each edit in place; edits at one byte stay in their order."""
    pieces: list[bytes] = []
    copied = 0
    for start, stop, content in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [data[copied:start], content]
        copied = stop
    return b"".join([*pieces, data[copied:]])


def with_attribute(tag: re.Match[bytes], name: bytes, value: bytes) -> list[Edit]:
    """The edits that give a tag an attribute's value, none where it has it."""
    present = _attribute(tag, name)
    if present is None:
        return [(tag.end(2), tag.end(2), b" " + name + b'="' + value + b'"')]
    return [] if present == value else [(*_attribute_bytes(tag, name), value)]


def _attribute(tag: re.Match[bytes], name: bytes) -> bytes | None:
    return next((found[2][1:-1] for found in _ATTRIBUTE.finditer(tag[2]) if found[1] == name), None)


def _attributes_but(tag: re.Match[bytes], *names: bytes) -> bytes:
    """A tag's attributes as they are written, without some of them."""
    return b"".join(found[0] for found in _ATTRIBUTE.finditer(tag[2]) if found[1] not in names)


def _attribute_bytes(tag: re.Match[bytes], name: bytes) -> tuple[int, int]:
    found = next(found for found in _ATTRIBUTE.finditer(tag[2]) if found[1] == name)
    return tag.start(2) + found.start(2) + 1, tag.start(2) + found.end(2) - 1


def _prefix(name: bytes) -> bytes:
    return name[: name.rfind(b":") + 1]


def _children(fragment: bytes) -> list[tuple[str, int, int]]:
    """The elements right inside a cell: local name, first byte and the byte behind the last."""
    found: list[tuple[str, int, int]] = []
    depth = 0
    events = Events(fragment, "a cell", spaced=False)

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth == 2:
            found.append((name.rpartition(":")[2], events.at, -1))

    def end(_: str) -> None:
        nonlocal depth
        if depth == 2:
            name, first, _unknown = found[-1]
            found[-1] = (name, first, behind(fragment, first, events.at))
        depth -= 1

    events.run(start, end)
    return found


def _stored(value: Value) -> tuple[bytes, bytes]:
    """Type and text of a formula's value as `<v>` holds it."""
    if value is None:
        return b"", b""
    if isinstance(value, bool):
        return b"b", b"1" if value else b"0"
    if isinstance(value, str):
        return (b"e" if value in ERRORS else b"str"), _escaped(value)
    return b"", repr(value).encode()


def _escaped(text: str) -> bytes:
    # A line feed stays; a carriage return would be read as one, so it takes the form that Excel gives it.
    text = _LOOKS_ESCAPED.sub("_x005F_", text).replace("\r", "_x000D_")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").encode()


def _cell_bytes(name: bytes, attributes: bytes, value: Value, rest: bytes = b"") -> bytes:
    prefix = _prefix(name)
    if isinstance(value, str):
        space = b"" if value == " ".join(value.split()) else b' xml:space="preserve"'
        content = b"<%sis><%st%s>%s</%st></%sis>" % (prefix, prefix, space, _escaped(value), prefix, prefix)
        return b'<%s%s t="inlineStr">%s%s</%s>' % (name, attributes, content, rest, name)
    if value is None:
        return b"<%s%s>%s</%s>" % (name, attributes, rest, name) if rest else b"<%s%s/>" % (name, attributes)
    kind, text = _stored(value)
    typed = b' t="' + kind + b'"' if kind else b""
    return b"<%s%s%s><%sv>%s</%sv>%s</%s>" % (name, attributes, typed, prefix, text, prefix, rest, name)


def _new_cell(prefix: bytes, row: int, column: int, style: bytes | None, value: Value) -> bytes:
    attributes = b' r="' + address(row, column).encode() + b'"'
    if style:
        attributes += b' s="' + style + b'"'
    return _cell_bytes(prefix + b"c", attributes, value)


def _spans_edit(tag: re.Match[bytes], first: int, last: int) -> list[Edit]:
    """Widen a row's spans, the columns in which a reader looks for its cells, where a new one lies outside."""
    spans = _attribute(tag, b"spans")
    if spans is None:
        return []
    start, end = re.match(rb"\s*([0-9]{1,7}):", spans), re.search(rb":([0-9]{1,7})\s*$", spans)
    if not start or not end:
        return []
    low, high = min(int(start[1]), first + 1), max(int(end[1]), last + 1)
    if (low, high) == (int(start[1]), int(end[1])):
        return []
    return [(*_attribute_bytes(tag, b"spans"), b"%d%s%d" % (low, spans[start.end(1) : end.start(1)], high))]

"""A planner's file of cards -> rows like those of gpus.csv.

A card is a line of a CSV file, or a [[gpu]] of a TOML file. Its columns are those of presets/gpus.csv; memory may
be in bytes, MB, MiB, GB or GiB, as the column's name says: "Usable GiB", "Label GB", "usable_bytes".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .catalogue import CUDA_VENDOR, GPUS
from .csv_file import Row, read_cell, read_lines
from .names import one_line, shown
from .toml_file import read_toml

# Words for a column of gpus.csv, beside its own name. Case, spaces and signs do not count.
WORDS = {
    "gpu": "name",
    "card": "name",
    "manufacturer": "vendor",
    "label": "marketed_gb",
    "year": "release_year",
    "tdp_w": "power_w",
    "usd_per_hour": "price_usd_per_hour",
    "price": "price_usd_per_hour",
    "price_as_of_date": "price_as_of",
    "bandwidth": "bandwidth_gb_per_s",
    "memory_bandwidth": "bandwidth_gb_per_s",
    "memory_bandwidth_gb_per_s": "bandwidth_gb_per_s",
    "gb_per_s": "bandwidth_gb_per_s",
    "bf16_tflops": "bf16_dense_tflops",
    "fp8_tflops": "fp8_dense_tflops",
    "source": "memory_source",
    "notes": "note",
}
# Words for memory; its column says the unit after them.
MEMORY = {
    "usable": "usable_bytes",
    "usable_memory": "usable_bytes",
    "framework_total": "usable_bytes",
    "driver_total": "driver_total_bytes",
    "matmul_workspace": "matmul_workspace_bytes",
    "matrix_workspace": "matmul_workspace_bytes",
}
UNITS = {"bytes": 1, "mb": 10**6, "mib": 2**20, "gb": 10**9, "gib": 2**30}
SOURCES = {  # column with the source -> the columns that it speaks of
    "ecc_source": ("ecc", "ecc_memory_share"),
    "bandwidth_source": ("bandwidth_gb_per_s",),
    "flops_source": ("bf16_dense_tflops", "fp8_dense_tflops"),
    "precision_source": ("fp32_tflops", "tf32_dense_tflops", "int8_dense_tops"),
    "power_source": ("power_w",),
    "interconnect_source": ("interconnect", "interconnect_gb_per_s"),
    "price_source": ("price_usd_per_hour",),
}
UNCLEAR = re.compile(r"(total_|gpu_|card_)?(memory|vram|capacity|size)(_(bytes|[mg]i?b))?")
SMALLEST, LARGEST = 10**8, 2 * 10**12  # usable bytes of a card; a count of MiB among GB is above that
LARGEST_WORKSPACE = 2**33
ASSUMED_WORKSPACE = 2**25
FORMULA_SIGNS = tuple("=+-@")
LONGEST_TEXT = 1_000


class _Found(NamedTuple):
    """A card as a file has it: where it stands, where its headers do, and its cells by those headers."""

    where: str
    headers: str
    cells: Mapping[str, str]


def read_cards(path: Path, catalogue: Sequence[Row]) -> list[tuple[str, Row]]:
    """The cards of a CSV or TOML file: where each stands, and its row as gpus.csv would have it.

    catalogue: rows of gpus.csv, for the workspace of an architecture. Raises ValueError, one sentence with the file,
    the line, the column, the value and what is right, and for a file without any card.
    """
    read = _toml_cards if path.suffix.casefold() == ".toml" else _csv_cards
    rows = [(found.where, _card(found, path.name, catalogue)) for found in read(path)]
    if not rows:
        raise ValueError(
            f"{one_line(str(path))} holds no card; it should have a line of headers, such as name,usable_gib, "
            "and a line for each card, or in TOML a [[gpu]] for each"
        )
    return rows


def _csv_cards(path: Path) -> Iterator[_Found]:
    where = one_line(str(path))
    for number, cells in read_lines(path, ()):
        header = next(iter(cells))
        if len(cells) == 1 and re.search("[;\t]", header):
            raise ValueError(f"{where}, line 1 is {shown(header)}; a comma should stand between cells, nothing else")
        yield _Found(f"{where}, line {number}", f"{where}, line 1", cells)


def _toml_cards(path: Path) -> Iterator[_Found]:
    where = one_line(str(path))
    content = read_toml(path)
    for key in content:
        if key != "gpu":
            raise ValueError(f"{where} holds {shown(key)}; it should hold a [[gpu]] for each card, and nothing else")
    cards = content.get("gpu", [])
    if not isinstance(cards, list) or not all(isinstance(card, dict) for card in cards):
        raise ValueError(f"{where}: gpu is {shown(cards)}; it should be written as [[gpu]], once for each card")
    for number, card in enumerate(cards, 1):
        place = f"{where}, [[gpu]] {number}"
        for key, value in card.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise ValueError(f"{place}, column {one_line(key)} is {shown(value)}; it should be a text or a number")
        yield _Found(
            place, place, {key: value if isinstance(value, str) else repr(value) for key, value in card.items()}
        )


def _card(found: _Found, file: str, catalogue: Sequence[Row]) -> Row:
    """A card's line as a row like those of gpus.csv."""
    headers = _headers(found.cells, found.headers)
    row: Row = {column: "" if kind.startswith("text") else None for column, kind in GPUS.items()}
    for header, (column, factor) in headers.items():
        text = found.cells[header].strip() if column != "name" else found.cells[header]
        kind = "number" if factor else GPUS[column].rstrip("?")
        needed = column == "name" or (column == "usable_bytes" and not _of_unknown_capacity(found, headers, catalogue))
        value = read_cell(text, kind if needed else f"{kind}?", found.where, one_line(header))
        if isinstance(value, str) and (value.startswith(FORMULA_SIGNS) or len(value) > LONGEST_TEXT):
            raise ValueError(
                f"{found.where}, column {one_line(header)} is {shown(value)}; a text may not begin with = + - @ or be "
                f"longer than {LONGEST_TEXT:,} characters"
            )
        row[column] = round(value * factor) if factor and value is not None else value
    usable = next(header for header, (column, _) in headers.items() if column == "usable_bytes")
    if row["usable_bytes"] is not None:
        _sensible(row, found, one_line(usable))
    source = f"own: {one_line(file)}, as entered"
    row["vendor"] = row["vendor"] or _vendor(row["name"], catalogue)
    row["architecture"] = row["architecture"] or "not stated"
    row["usable_basis"] = row["usable_basis"] or "as entered"
    row["memory_source"] = f"{source}; {row['memory_source']}" if row["memory_source"] else source
    row["note"] = f"Own: {row['note']}" if row["note"] else "Own"
    if row["matmul_workspace_bytes"] is None:
        row["matmul_workspace_bytes"], row["matmul_workspace_source"] = _workspace(row, catalogue)
    row["matmul_workspace_source"] = row["matmul_workspace_source"] or source
    for column, of in SOURCES.items():
        if not row[column] and any(row[spoken] not in (None, "") for spoken in of):
            row[column] = source
    return row


def _of_unknown_capacity(found: _Found, headers: Mapping[str, tuple[str, int]], catalogue: Sequence[Row]) -> bool:
    """Whether a line is a card of the catalogue whose usable memory is not known there either."""
    named = next(found.cells[header] for header, (column, _) in headers.items() if column == "name")
    return any(card["name"] == named and card["usable_bytes"] is None for card in catalogue)


def _headers(names: Iterable[str], at: str) -> dict[str, tuple[str, int]]:
    """Header -> column of gpus.csv, and for memory the bytes of its unit, else 0."""
    found: dict[str, tuple[str, int]] = {}
    first: dict[str, str] = {}
    for name in names:
        found[name] = _column(name, at)
        column = found[name][0]
        if column in first:
            told = f"{shown(first[column])} and {shown(name)}"
            raise ValueError(f"{at} has the columns {told}, which are the same; one of them should go")
        first[column] = name
    for column, right in (("name", "the name"), ("usable_bytes", "usable memory, such as usable_gib")):
        if column not in first:
            raise ValueError(f"{at} has no column for {right}; a card needs a name and its usable memory")
    return found


def _column(header: str, at: str) -> tuple[str, int]:
    """The column of gpus.csv that a header means, and the bytes of its unit, 0 where it is no memory in bytes."""
    plain = re.sub(r"[^a-z0-9]+", "_", header.casefold()).strip("_")
    words, _, unit = plain.rpartition("_")
    if unit in UNITS and words in MEMORY:
        return MEMORY[words], UNITS[unit]
    if plain in MEMORY:
        raise ValueError(
            f"{at} has the column {shown(header)}, which says no unit; it should end in GB, GiB, MB, MiB or bytes"
        )
    column = WORDS.get(plain, plain)
    if column == "marketed_gb" or plain == "label_gb":
        return "marketed_gb", 0
    if column in GPUS:
        return column, 0
    if UNCLEAR.fullmatch(plain):
        raise ValueError(
            f"{at} has the column {shown(header)}, which may be the label or what a framework can use; "
            "it should be called Label GB, or Usable GB or Usable GiB"
        )
    near = _nearest(plain)
    raise ValueError(f"{at} has the column {shown(header)}, which no card has{near}")


def _nearest(plain: str) -> str:
    import difflib

    known = [*GPUS, *WORDS, *(f"{word}_{unit}" for word in MEMORY for unit in UNITS)]
    close = difflib.get_close_matches(plain, known, 1)
    return f"; did you mean {close[0]}?" if close else "; the columns are those of presets/gpus.csv"


def _sensible(row: Row, found: _Found, header: str) -> None:
    """ValueError for memory that no card has, or that contradicts the rest of its line."""
    usable, text = row["usable_bytes"], shown(found.cells.get(header, ""))
    told = f"{found.where}, column {header} is {text}"
    if not SMALLEST <= usable <= LARGEST:
        raise ValueError(
            f"{told}, which is {usable / 10**9:,.3f} GB; it should be from 0.1 to 2,000 GB, in the unit that the "
            "column's name says"
        )
    driver, label = row["driver_total_bytes"], row["marketed_gb"]
    if driver is not None and usable > driver:
        raise ValueError(f"{told}, more than the driver's total of {driver:,} bytes; usable memory is at most that")
    if label is not None and usable > label * 2**30:
        raise ValueError(
            f"{told}, more than the label of {label:g} GB even when that counts in GiB; "
            "check the unit that the column's name says"
        )
    workspace = row["matmul_workspace_bytes"]
    if workspace is not None and workspace > LARGEST_WORKSPACE:
        raise ValueError(
            f"{found.where}: the matrix workspace is {workspace:,} bytes; it should be at most {LARGEST_WORKSPACE:,}"
        )
    if row["ecc"] not in ("", "on", "off"):
        raise ValueError(f"{found.where}, column ecc is {shown(row['ecc'])}; it should be on, off or empty")
    if (row["ecc_memory_share"] or 0) >= 1:
        share = f"{row['ecc_memory_share']:g}"
        raise ValueError(f"{found.where}, column ecc_memory_share is {share}; it should be below 1, such as 0.0625")


def _vendor(name: str, catalogue: Sequence[Row]) -> str:
    """The vendor whose name the card's begins with."""
    first = name.split()[0].casefold()
    return next((card["vendor"] for card in catalogue if card["vendor"].casefold() == first), "not stated")


def _workspace(row: Row, catalogue: Sequence[Row]) -> tuple[int, str]:
    """Bytes of the matrix library's workspace, and why: that of the catalogue's cards of the same architecture."""
    for card in catalogue:
        if (card["vendor"], card["architecture"].casefold()) == (row["vendor"], row["architecture"].casefold()):
            return card["matmul_workspace_bytes"], f"as {card['name']}: {card['matmul_workspace_source']}"
    words = (
        f"assumed: {ASSUMED_WORKSPACE // 2**20} MiB per thread, the larger of PyTorch's defaults on {CUDA_VENDOR} cards"
    )
    return ASSUMED_WORKSPACE, words

"""MIG slices as cards of their own: rows of the table of cards, made from the card that each is cut from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .csv_file import Row, read_cell, read_lines
from .names import one_line, shown

COLUMNS = {
    "parent": "name",  # a card of gpus.csv
    "profile": "name",  # NVIDIA's name of it, such as 1g.10gb
    "label_gib": "count",
    "compute_slices": "count",
    "memory_slices": "count",
    "listed_gib": "number?",  # what nvidia-smi lists for the profile
    "source": "text",
}
COMPUTE_SLICES, MEMORY_SLICES = 7, 8  # of a whole card
BY_COMPUTE = ("bf16_dense_tflops", "fp8_dense_tflops", "fp32_tflops", "tf32_dense_tflops", "int8_dense_tops")
SAME = ("vendor", "architecture", "ecc", "ecc_memory_share", "ecc_source", "matmul_workspace_bytes", "release_year")

PROFILE = re.compile(r"\bMIG \d+g\.\d+gb")  # in the name of a slice, as drivers and frameworks print it


def is_slice(card: Mapping[str, Any]) -> bool:
    """Whether a row of the table of cards is a slice of one, by its name; a planner's own slice is one too."""
    return PROFILE.search(card["name"]) is not None


def read_slices(path: Path, cards: Iterable[Row]) -> list[Row]:
    """The slices that a file names, as rows like those of the cards, in the order of the file.

    cards: rows of gpus.csv. Raises ValueError, one sentence with the file, the line, the column and the value.
    """
    parents = {card["name"]: card for card in cards}
    rows = []
    for number, cells in read_lines(path, COLUMNS):
        line = f"{one_line(str(path))}, line {number}"
        facts = {name: read_cell(cells[name], kind, line, name) for name, kind in COLUMNS.items()}
        if facts["parent"] not in parents:
            raise ValueError(f"{line}, column parent is {shown(facts['parent'])}; it should be a card of gpus.csv")
        for column, most in (("compute_slices", COMPUTE_SLICES), ("memory_slices", MEMORY_SLICES)):
            if facts[column] > most:
                raise ValueError(f"{line}, column {column} is {facts[column]}; a whole card has {most}")
        rows.append(slice_row(parents[facts["parent"]], facts))
    return rows


def slice_row(parent: Mapping[str, Any], facts: Mapping[str, Any]) -> Row:
    """The row of a slice: a share of its parent's memory, bandwidth and speed, and its architecture's workspace.

    What PyTorch can address of a slice is rarely on file, so it is assumed: what nvidia-smi lists for the
    profile, else the slice's share of what PyTorch can address of the parent; never more than that of the parent.
    """
    compute, memory = facts["compute_slices"], facts["memory_slices"]
    of_memory, of_compute = f"{memory}/{MEMORY_SLICES} of the card's", f"{compute}/{COMPUTE_SLICES} of the card's"
    usable, basis = _usable(parent["usable_bytes"], memory, facts["listed_gib"])
    row: Row = dict.fromkeys(parent)
    row |= {column: parent[column] for column in SAME}
    row |= {column: _share(parent[column], compute, COMPUTE_SLICES) for column in BY_COMPUTE}
    return row | {
        "name": f"{parent['name']} MIG {facts['profile']}",
        "marketed_gb": facts["label_gib"],
        "usable_bytes": usable,
        "usable_basis": basis,
        "memory_source": facts["source"],
        "matmul_workspace_source": f"{parent['matmul_workspace_source']}; a slice takes it as the whole card does",
        "bandwidth_gb_per_s": _share(parent["bandwidth_gb_per_s"], memory, MEMORY_SLICES),
        "bandwidth_source": f"derived: {of_memory} bandwidth",
        "flops_source": f"derived: {of_compute} speed",
        "precision_source": f"derived: {of_compute} speed" if parent["precision_source"] else "",
        "interconnect": "none between slices",
        "interconnect_gb_per_s": 0,
        "interconnect_source": "NVIDIA MIG User Guide: no peer-to-peer traffic between GPUs",
        "power_source": "",
        "price_as_of": "",
        "price_source": "",
        "confidence": "memory assumed",
        "note": f"A slice: {compute} of {COMPUTE_SLICES} compute and {memory} of {MEMORY_SLICES} memory slices",
    }


def _usable(parent: int | None, memory: int, listed: float | None) -> tuple[int | None, str]:
    """Bytes that the framework can address of a slice, and on what that rests."""
    if listed is not None:
        found, words = int(listed * 2**30), f"assumed: what nvidia-smi lists for the profile, {listed:g} GiB"
        if parent is not None and found > parent:
            return parent, f"{words}, but no more than the whole card's usable memory"
        return found, words
    if parent is None:
        return None, "unknown"
    share = f"{memory}/{MEMORY_SLICES} of the card's usable memory"
    return parent * memory // MEMORY_SLICES, f"assumed: {share}; what nvidia-smi lists is not on file"


def _share(whole: float | None, part: int, parts: int) -> float | None:
    return None if whole is None else round(whole * part / parts, 1)

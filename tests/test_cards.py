"""Cards: what the table holds of each, the MIG slices made from whole cards, and the warning for other vendors."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import Book, Opened
from engines import Formualizer, close

from sizing_xlsx.formula.job import names_of
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.jobs import job
from sizing_xlsx.paths import presets_folder
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.presets.mig import COLUMNS, read_slices, slice_row
from sizing_xlsx.workbook.sheets.reference import GPUS

PRESETS = load_presets()
ROWS = {row["name"]: row for row in PRESETS.gpu_rows}
WHOLE = [name for name in ROWS if " MIG " not in name]
SLICES = [name for name in ROWS if " MIG " in name]
GDDR_WITH_ECC = ("NVIDIA T4", "NVIDIA A10", "NVIDIA A10G", "NVIDIA L4", "NVIDIA L40S", "NVIDIA A40")
PRECISIONS = ("fp32_tflops", "tf32_dense_tflops", "int8_dense_tops")

pytestmark = pytest.mark.filterwarnings("ignore:.*xtension is not supported:UserWarning")


# -- whole cards


def test_whole_cards_come_first_and_slices_last() -> None:
    assert list(ROWS) == WHOLE + SLICES and (len(WHOLE), len(SLICES)) == (36, 30)
    assert {name.partition(" MIG ")[0] for name in SLICES} == {
        "NVIDIA A100 SXM4 40GB", "NVIDIA A100 SXM4 80GB", "NVIDIA H100 SXM5 80GB", "NVIDIA H200 SXM", "NVIDIA B200",
    }  # fmt: skip


def test_ecc_is_in_the_totals_where_it_takes_memory() -> None:
    for name in GDDR_WITH_ECC:
        row = ROWS[name]
        assert (row["ecc"], row["ecc_memory_share"]) == ("on", 0.0625), name
        sold = row["marketed_gb"] * 2**30
        # a driver keeps a few MiB for itself besides
        assert 0 <= sold * 15 / 16 - row["driver_total_bytes"] < 16 * 2**20, name
        assert row["usable_bytes"] <= row["driver_total_bytes"] < sold * 15 / 16 + 1
    for name in ("NVIDIA RTX 6000 Ada", "NVIDIA GeForce RTX 4090"):
        row = ROWS[name]
        assert (row["ecc"], row["ecc_memory_share"]) == ("off", 0.0625)
        assert row["driver_total_bytes"] > row["marketed_gb"] * 2**30 * 15 / 16
    assert ROWS["NVIDIA H100 SXM5 80GB"]["ecc_memory_share"] == 0


@pytest.mark.parametrize("name", list(ROWS))
def test_no_figure_stands_without_its_source(name: str) -> None:
    row = ROWS[name]
    assert row["usable_basis"] and row["memory_source"] and row["matmul_workspace_source"]
    pairs: list[tuple[tuple[str, ...], str]] = [
        (("ecc", "ecc_memory_share"), "ecc_source"), (("bandwidth_gb_per_s",), "bandwidth_source"),
        (("bf16_dense_tflops", "fp8_dense_tflops"), "flops_source"), (PRECISIONS, "precision_source"),
        (("power_w",), "power_source"), (("interconnect",), "interconnect_source"),
        (("price_usd_per_hour",), "price_source"), (("price_usd_per_hour",), "price_as_of"),
    ]  # fmt: skip
    for columns, source in pairs:
        known = any(row[column] not in (None, "") for column in columns)
        assert bool(row[source]) == known, (source, row[source])


@pytest.mark.parametrize("name", list(ROWS))
def test_speeds_are_in_the_order_that_hardware_has(name: str) -> None:
    """A figure that slipped into a neighbour's column, or a sparse one, breaks the order or the ratio."""
    row = ROWS[name]
    fp32, tf32, half, fp8, int8 = (
        row[column]
        for column in ("fp32_tflops", "tf32_dense_tflops", "bf16_dense_tflops", "fp8_dense_tflops", "int8_dense_tops")
    )
    for slow, fast in ((fp32, tf32), (tf32, half), (half, fp8), (half, int8)):
        assert slow is None or fast is None or slow <= fast
    if tf32 is not None:
        assert half / tf32 == pytest.approx(2, rel=0.02)
    if int8 is not None and "A" not in row["vendor"][:1]:
        assert int8 / half in (pytest.approx(2, rel=0.02), pytest.approx(4, rel=0.02))


# -- slices


def facts(**changes: Any) -> dict[str, Any]:
    return {
        "parent": "X", "profile": "1g.10gb", "label_gib": 10, "compute_slices": 1, "memory_slices": 2,
        "listed_gib": 9.5, "source": "a guide", **changes,
    }  # fmt: skip


PARENT = {
    **dict.fromkeys(PRESETS.gpu_rows[0]), "name": "X", "vendor": "NVIDIA", "architecture": "Hopper",
    "usable_bytes": 80 * 2**30, "matmul_workspace_bytes": 2**25, "matmul_workspace_source": "docs",
    "bandwidth_gb_per_s": 3200, "bf16_dense_tflops": 700, "power_w": 700, "price_usd_per_hour": 3,
    "driver_total_bytes": 81 * 2**30, "precision_source": "",
}  # fmt: skip


def test_a_slice_is_its_share_of_the_card() -> None:
    row = slice_row(PARENT, facts())
    assert set(row) == set(PARENT)
    assert (row["name"], row["vendor"], row["architecture"]) == ("X MIG 1g.10gb", "NVIDIA", "Hopper")
    assert (row["marketed_gb"], row["usable_bytes"]) == (10, 9.5 * 2**30)
    assert row["usable_basis"] == "assumed: what nvidia-smi lists for the profile, 9.5 GiB"
    assert (row["bandwidth_gb_per_s"], row["bf16_dense_tflops"]) == (800, 100)
    assert row["matmul_workspace_bytes"] == 2**25, "a process takes it whole"
    assert [row[column] for column in ("price_usd_per_hour", "power_w", "driver_total_bytes")] == [None] * 3
    assert row["fp8_dense_tflops"] is None, "unknown stays unknown"


def test_what_is_not_listed_follows_from_the_card_and_no_slice_has_more_than_it() -> None:
    unlisted = slice_row(PARENT, facts(listed_gib=None))
    assert unlisted["usable_bytes"] == 20 * 2**30 and unlisted["usable_basis"].startswith("assumed: 2/8 of the card's")
    whole = slice_row(PARENT, facts(memory_slices=8, listed_gib=80.25))
    assert whole["usable_bytes"] == 80 * 2**30 and "no more than the whole card's" in whole["usable_basis"]
    unknown = slice_row({**PARENT, "usable_bytes": None}, facts(listed_gib=None))
    assert (unknown["usable_bytes"], unknown["usable_basis"]) == (None, "unknown")


@pytest.mark.parametrize("name", SLICES)
def test_every_slice_is_less_than_its_card_and_says_that_its_memory_is_assumed(name: str) -> None:
    parent, row = ROWS[name.partition(" MIG ")[0]], ROWS[name]
    compute, _, label = name.rpartition(" ")[2].partition("g.")
    assert row["marketed_gb"] == int(label.removesuffix("gb"))
    assert row["bf16_dense_tflops"] == pytest.approx(parent["bf16_dense_tflops"] * int(compute) / 7, abs=0.1)
    assert row["usable_bytes"] <= min(parent["usable_bytes"], row["marketed_gb"] * 2**30)
    assert row["usable_bytes"] > 0.85 * row["marketed_gb"] * 2**30
    assert row["usable_basis"].startswith("assumed: ") and "MIG User Guide" in row["memory_source"]
    assert row["matmul_workspace_bytes"] == parent["matmul_workspace_bytes"]


def test_slices_of_one_size_fit_their_card_together() -> None:
    with (presets_folder() / "mig_slices.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            share = int(line["memory_slices"]) / 8
            usable = ROWS[f"{line['parent']} MIG {line['profile']}"]["usable_bytes"]
            assert usable <= ROWS[line["parent"]]["usable_bytes"] * share, line


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("parent", "NVIDIA H100", 'line 2, column parent is "NVIDIA H100"; it should be a card of gpus.csv'),
        ("compute_slices", "8", "column compute_slices is 8; a whole card has 7"),
        ("memory_slices", "9", "column memory_slices is 9; a whole card has 8"),
        ("memory_slices", "0", 'column memory_slices is "0"; it should be a whole number of at least 1'),
        ("listed_gib", "-1", 'column listed_gib is "-1"; it should be a number'),
        ("profile", "1g*", 'column profile is "1g*"; a name may not'),
    ],
)
def test_a_wrong_slice_is_named(tmp_path: Path, column: str, value: str, said: str) -> None:
    line = {name: str(fact) for name, fact in facts(**{column: value}).items()}
    file = tmp_path / "mig_slices.csv"
    file.write_text(f"{','.join(COLUMNS)}\n{','.join(line[name] for name in COLUMNS)}\n")
    with pytest.raises(ValueError) as caught:
        read_slices(file, [PARENT])
    assert said in str(caught.value) and len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["lora", "training"])
def test_a_slice_has_the_verdict_of_its_memory(name: str) -> None:
    """The 40 GB half of an H100 against a whole card that is entered with the same capacity."""
    sized, half = job(name), "NVIDIA H100 SXM5 80GB MIG 3g.40gb"
    on_slice = sized.size(gpu_choice=half)
    entered = sized.size(
        gpu_choice="NVIDIA H100 SXM5 80GB", gpu_capacity_override_gb=ROWS[half]["usable_bytes"] / 10**9
    )
    assert on_slice["gpu_usable_capacity_gb"] == pytest.approx(42.412802048)
    for key in ("fit_verdict", "headroom_gb", "peak_allocated_gb"):
        assert on_slice[key] == entered[key]


# -- other vendors


@pytest.mark.parametrize("name", ["lora", "training"])
def test_a_card_of_another_vendor_raises_a_warning(name: str) -> None:
    sized = job(name)
    for card, row in ROWS.items():
        if row["usable_bytes"]:
            told = [
                line
                for line in sized.warnings(sized.size(gpu_choice=card), gpu_choice=card)
                if "the measured stack was CUDA" in line
            ]
            assert len(told) == (row["vendor"] != "NVIDIA"), card
            assert all(card in line for line in told)


def test_the_workbook_shows_that_warning_and_keeps_its_verdict(opened: Opened) -> None:
    opened.type({"gpu_choice": "AMD Instinct MI300X"})
    assert (opened["Card_Runs_CUDA"], opened["Card_Runs_CUDA_Fault"], opened["Checks_Failed"]) == (0, 1, 0)
    assert "AMD Instinct MI300X, which is not listed as an NVIDIA card" in str(opened["First_Warning"])
    assert opened["Fit_Verdict"] == opened.book.job.reference({"gpu_choice": "AMD Instinct MI300X"})["fit_verdict"]
    opened.type()
    assert opened["Card_Runs_CUDA_Fault"] == 0


# -- cards without bf16, and slices that share a step

EMULATED, SHARED = "no bf16 of its own", "MIG slices have no peer-to-peer"


def warned(name: str, about: str, **inputs: Any) -> list[str]:
    sized = job(name)
    rules = {key: rule.message for key, rule in sized.checks.items() if not rule.fault}
    wanted = {*rules, *(key for message in rules.values() for key in names_of(message) if key in sized.terms)}
    found = sized.size(sorted(wanted), **inputs)
    return [line for line in sized.warnings(found, **inputs) if about in line]


@pytest.mark.parametrize("name", ["lora", "training", "full"])
def test_bf16_on_a_card_that_emulates_it_raises_a_warning(name: str) -> None:
    old = {"Volta", "Turing"}
    assert old < {row["architecture"] for row in ROWS.values()}
    for card, row in ROWS.items():
        if row["usable_bytes"]:
            told = warned(name, EMULATED, gpu_choice=card)
            assert len(told) == (row["architecture"] in old), card
            assert all(card in line for line in told)
    assert not warned(name, EMULATED, gpu_choice="NVIDIA T4", compute_precision="fp16 autocast")


def test_what_computes_in_bf16_is_asked_and_not_what_is_chosen() -> None:
    on = {"gpu_choice": "NVIDIA V100 SXM2 32GB"}
    assert not warned("training", EMULATED, **on, compute_precision="fp32")
    as_stored = {"uses_autocast": "Off", "base_storage_format": "bf16"}
    for chosen in ("bf16 autocast", "fp16 autocast"):
        assert warned("lora", EMULATED, **on, **as_stored, compute_precision=chosen)
    assert not warned("lora", EMULATED, **on, uses_autocast="Off", base_storage_format="fp16")
    alone = {"gpu_count": 1, "sharding_stage": "None"}
    fp32 = {"training_recipe": "fp32 AdamW", **alone}
    assert warned("full", EMULATED, **on, **fp32)
    assert not warned("full", EMULATED, **on, **fp32, uses_autocast="Off")
    assert warned("full", EMULATED, **on, **alone, training_recipe="pure bf16 AdamW", uses_autocast="Off")


def test_own_cards_are_told_by_their_architecture_and_slices_by_their_name(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text(
        "name,architecture,usable_gib\nNVIDIA P100,Pascal,15.9\nNVIDIA Next,Rubin,200\nAMD Old,Volta,15\n"
        "NVIDIA A30 MIG 1g.6gb,Ampere,5.8\nNVIDIA A30,Ampere,23.6\n"
    )
    gpus = load_presets(gpus=[file]).gpus
    found = {name: [gpus.columns[key][at] for key in ("emulates_bf16", "mig_slice")] for at, name in enumerate(gpus)}
    assert [found[own] for own in ("NVIDIA P100", "NVIDIA Next", "AMD Old", "NVIDIA A30")] == [[1, 0], *[[0, 0]] * 3]
    assert found["NVIDIA A30 MIG 1g.6gb"] == [0, 1]
    assert {name for name, (_, cut) in found.items() if cut} == {*SLICES, "NVIDIA A30 MIG 1g.6gb"}


@pytest.mark.parametrize("name", ["lora", "training", "full"])
def test_slices_that_share_a_step_raise_a_warning(name: str) -> None:
    half = "NVIDIA H100 SXM5 80GB MIG 3g.40gb"
    assert [half in line and "is 2" in line for line in warned(name, SHARED, gpu_choice=half, gpu_count=2)] == [True]
    assert not warned(name, SHARED, gpu_choice="NVIDIA H100 SXM5 80GB", gpu_count=2)
    alone = {} if name == "training" else {"sharding_stage": "None"}
    assert not warned(name, SHARED, gpu_choice=half, gpu_count=1, **alone)


def test_engines_on_slices_of_their_own_share_nothing() -> None:
    half = "NVIDIA H100 SXM5 80GB MIG 3g.40gb"
    assert not warned("serving", SHARED, gpu_choice=half, data_parallel=2)
    assert warned("serving", SHARED, gpu_choice=half, tensor_parallel=2)
    assert warned("serving", SHARED, gpu_choice=half, pipeline_parallel=2)


def test_the_workbook_warns_of_both_and_keeps_its_verdict(opened: Opened) -> None:
    opened.type({"gpu_choice": "NVIDIA T4"})
    assert (opened["Card_Computes_BF16"], opened["Card_Computes_BF16_Fault"], opened["Checks_Failed"]) == (0, 1, 0)
    assert "NVIDIA T4, which has no bf16 of its own" in str(opened["First_Warning"])
    assert opened["Fit_Verdict"] == opened.book.job.reference({"gpu_choice": "NVIDIA T4"})["fit_verdict"]
    opened.type({"gpu_choice": "NVIDIA H100 SXM5 80GB MIG 3g.40gb", "gpu_count": 2})
    assert (opened["Slices_Work_Alone"], opened["Checks_Failed"]) == (0, 0)
    effort = [place for place in opened.book.formulas if place[0] == "Time and cost"]
    told = [value for value in opened.engine.get_many(effort) if "MIG slices have no peer-to-peer" in str(value)]
    assert told
    if "gpu_count" not in opened.book.job.beside:  # else the cards are of the run's time, and its sheet says it
        assert "MIG slices have no peer-to-peer traffic" in str(opened["First_Warning"])
    opened.type()
    assert opened["Card_Computes_BF16_Fault"] == 0


def test_a_slice_in_the_workbook_is_as_in_python(book: Book) -> None:
    engine = Formualizer(book.path)
    inputs = {"gpu_choice": "NVIDIA B200 MIG 2g.45gb", "batch_size": 3}
    for key, value in inputs.items():
        engine.set(public_name(key), value)
    engine.recalculate()
    values = book.job.reference(inputs)
    assert [key for key in book.job.order if not close(engine.get(public_name(key)), values[key])] == []
    assert values["gpu_usable_capacity_gb"] == pytest.approx(44.25 * 2**30 / 10**9)


# -- the sheet


def test_the_sheet_shows_each_card_with_label_and_usable_memory_in_their_units(book: Book) -> None:
    rows = list(openpyxl.load_workbook(book.path, data_only=True)[GPUS].iter_rows(values_only=True))
    top = next(at for at, row in enumerate(rows) if "GPU" in row)
    heads = list(zip(rows[top], rows[top + 1], strict=True))
    shown = {row[1]: row for row in rows[top + 2 : top + 2 + len(ROWS)]}
    assert list(shown) == list(ROWS)
    gb, mib, of_bytes = (
        heads.index(("Usable", "GB")),
        heads.index(("Usable", "MiB")),
        heads.index(("Usable by the framework", "bytes")),
    )
    for name, cells in shown.items():
        usable = ROWS[name]["usable_bytes"]
        assert cells[heads.index(("Label, as sold", "GB"))] == ROWS[name]["marketed_gb"]
        assert cells[of_bytes] == (usable or 0)
        if usable is None:
            assert (cells[gb], cells[mib]) == ("unknown", "unknown")
        else:
            assert (cells[gb], cells[mib]) == (pytest.approx(usable / 10**9), pytest.approx(usable / 2**20))
        price = heads.index(("Price, illustrative", "USD per hour"))
        assert cells[price] == ROWS[name]["price_usd_per_hour"]
    text = " ".join(str(cell) for row in rows for cell in row if cell)
    assert "Totals are those of the card as shipped" in text and "Prices are illustrative" in text
    assert all(ROWS[name]["usable_basis"] in text for name in SLICES)


def test_what_others_hold_is_an_input_that_says_desktop_and_tenant() -> None:
    declared = job("lora").inputs["other_tenants_gb"]
    assert "desktop" in declared.help and "tenant" in declared.help
    free, shared = (job("lora").size(["headroom_gb"], other_tenants_gb=gb)["headroom_gb"] for gb in (0, 3.5))
    assert free - shared == pytest.approx(3.5)

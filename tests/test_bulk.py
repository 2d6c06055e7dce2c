"""`sweep` and size_table: the same figures and the same sentences as Job.size(), from any table, in any place."""

from __future__ import annotations

import csv
import io
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import random_inputs

pytest.importorskip("msgspec", reason="msgspec is not installed: pip install 'sizing-xlsx[bulk]'")

from sizing_xlsx import bulk
from sizing_xlsx.bulk import blocks
from sizing_xlsx.bulk.layout import RESULTS, Layout
from sizing_xlsx.bulk.rows import Packed
from sizing_xlsx.cli import main
from sizing_xlsx.formula.declare import Choice
from sizing_xlsx.formula.domains import typed
from sizing_xlsx.jobs import JOBS, job

MORE = (*RESULTS, "largest_batch_size", "capacity_available", "traced_total_reserved_gb", "per_gpu_peak_allocated_gb")
WRONG = ("abc", "-1", "1e999", "nan", "12%", "4.5", "TRUE", "0", "Adam ", " 8 ", "4.0", "1E+02", "1_000", "9" * 30, "é")


def table_of(count: int, seed: int) -> pd.DataFrame:
    """Jobs of all kinds as texts: some inputs of each given, some of them wrong, some of another job's."""
    rng = random.Random(seed)
    rows = []
    for at in range(count):
        name = rng.choice(JOBS)
        inputs = random_inputs(job(name), rng)
        kept = {key: str(value) for key, value in inputs.items() if value is not None}
        if rng.random() < 0.5:
            kept = {key: kept[key] for key in rng.sample(sorted(kept), rng.randint(0, len(kept)))}
        if rng.random() < 0.3:
            kept[rng.choice(sorted(inputs))] = rng.choice(WRONG)
        if rng.random() < 0.03:
            kept["lora_rank" if name != "lora" else "parameter_storage"] = "8"
        said = rng.choice((name, name.upper())) if rng.random() < 0.97 else rng.choice(("lorra", "7"))
        rows.append({"id": f"j{at}", "job": "" if name == "lora" and rng.random() < 0.3 else said, **kept})
    return pd.DataFrame(rows, dtype=object).fillna("")


def alone(row: dict[str, Any], results: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    """What Job.size() gives for a row of texts, and the sentence that it refuses the row with."""
    name = row["job"].casefold() or "lora"
    if name not in JOBS:
        return {}, f"job is {row['job']!r}; it must be one of lora, training, full"
    sizing = job(name)
    inputs = {}
    for key, cell in row.items():
        if key not in ("id", "job") and cell.strip():
            is_text = key in sizing.inputs and isinstance(sizing.inputs[key].domain, Choice)
            inputs[key] = cell if is_text else typed(cell)
    try:
        return sizing.size([key for key in results if key in sizing.trees], **inputs), ""
    except (ValueError, TypeError) as error:
        return {}, str(error)


def same_as_alone(table: pd.DataFrame, answer: pd.DataFrame, results: tuple[str, ...]) -> int:
    """Hold each row against Job.size(); how many were refused."""
    assert answer["row"].tolist() == list(range(1, len(table) + 1))
    refused = 0
    for row, got in zip(table.to_dict("records"), answer.to_dict("records"), strict=True):
        wanted, sentence = alone(row, results)
        assert got["id"] == row["id"]
        assert got["error"].startswith(sentence) if "job is" in sentence else got["error"] == sentence, row
        refused += bool(sentence)
        for key in results:
            value = wanted.get(key, math.nan)
            if isinstance(value, str):
                assert got[key] == value or (isinstance(got[key], float) and math.isnan(got[key])), (key, row)
            elif value != value:
                assert got[key] == "" or math.isnan(got[key]), (key, row)
            else:
                assert abs(got[key] - value) <= 1e-12 * abs(value), (key, value, got[key], row)
    return refused


def read_back(path: Path) -> pd.DataFrame:
    """A result as size_table() gives it."""
    texts = {"id": str, "job": str, "fit_verdict": str, "error": str}
    return pd.read_csv(
        path, dtype=texts, keep_default_na=False, na_values={key: [""] for key in MORE if "verdict" not in key}
    )


def sweep(folder: Path, text: str | bytes, *options: str, name: str = "jobs.csv") -> int:
    """Write a table and size it; the exit status."""
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return main(["sweep", str(folder / name), "--workers", "1", *options])


# ------------------------------------------------------------------------------------------------ figures
@pytest.mark.parametrize("seed", range(3))
def test_every_row_is_what_size_gives_for_it_alone(seed: int) -> None:
    table = table_of(250, seed)
    refused = same_as_alone(table, bulk.size_table(table, MORE), MORE)
    assert 40 < refused < 220  # both kinds are among them


def test_the_command_gives_the_same_table(tmp_path: Path) -> None:
    table = table_of(400, 7)
    table.to_csv(tmp_path / "jobs.csv", index=False)
    status = main(["sweep", str(tmp_path / "jobs.csv"), "--results", ",".join(MORE)])
    assert status == 1
    written = read_back(tmp_path / "jobs-sized.csv")
    same_as_alone(table, written, MORE)
    expected = bulk.size_table(table, MORE)
    pd.testing.assert_frame_equal(written, expected, check_exact=True, check_dtype=False)


def test_values_of_python_are_taken_as_size_takes_them() -> None:
    cells = [8, 8.0, np.int32(8), True, None, math.nan, "8", "x", [8], 8.5, pd.NA, 2**60]
    answer = bulk.size_table(pd.DataFrame({"batch_size": pd.Series(cells, dtype=object)}), ["peak_allocated_gb"])
    for cell, got in zip(cells, answer.to_dict("records"), strict=True):
        inputs = {} if cell is None or cell is pd.NA or cell != cell else {"batch_size": 8 if cell == "8" else cell}
        try:
            assert got["peak_allocated_gb"] == job("lora").size(["peak_allocated_gb"], **inputs)["peak_allocated_gb"]
            assert got["error"] == ""
        except ValueError as error:
            assert got["error"] == str(error)


@pytest.mark.parametrize("kind", ["int64", "float32", "Int64", "category", "string", "uint8"])
def test_columns_of_any_type(kind: str) -> None:
    frame = pd.DataFrame({"batch_size": pd.Series([4, 16, 4], index=[5, 6, 7]).astype(kind)})
    answer = bulk.size_table(frame, ["peak_allocated_gb"])
    assert answer.index.tolist() == [5, 6, 7]
    wanted = [job("lora").size(["peak_allocated_gb"], batch_size=n)["peak_allocated_gb"] for n in (4, 16, 4)]
    assert answer["peak_allocated_gb"].tolist() == pytest.approx(wanted, rel=1e-12)


def test_dates_of_a_frame() -> None:
    days = pd.Series(pd.to_datetime(["2030-01-31", None]))
    answer = bulk.size_table(pd.DataFrame({"deadline_date": days, "today_date": "2029-01-31"}), ["run_hours"])
    assert answer["error"].tolist() == ["", ""]


def test_a_table_without_rows_has_a_result_without_rows() -> None:
    assert bulk.size_table(pd.DataFrame({"batch_size": []})).shape == (0, 8)


@given(st.lists(st.integers(0, 10**8 - 1).map(str) | st.text("0123456789.-eE+ ab/:", max_size=8), min_size=1))
@settings(max_examples=200, deadline=None)
def test_digits_are_read_as_python_reads_them(texts: list[str]) -> None:
    packed = np.array([int.from_bytes(text.encode(), "little") for text in texts], dtype=np.uint64)
    column = Packed(np.arange(len(texts)), packed)
    assert column.cells == texts
    for text, number, empty in zip(texts, column.numbers.tolist(), column.empty.tolist(), strict=True):
        assert empty == (not text.strip())
        try:
            assert number == float(text) or (math.isnan(number) and math.isnan(float(text)))
        except ValueError:
            assert math.isnan(number)


# ------------------------------------------------------------------------------------------------ CSV
LINES = "id,batch_size\na,4\nb,8\n"


@pytest.mark.parametrize(
    "text",
    [
        LINES.encode(),
        LINES.encode("utf-8-sig"),
        LINES.replace("\n", "\r\n").encode(),
        LINES.replace("\n", "\r").encode(),
        LINES.rstrip().encode(),
        LINES.replace("\n", "\n\n").encode(),
        b'"id","batch_size"\n"a","4"\n"b","8"',
        b" ID ,Batch_Size\na,4.0\nb, 8 \n",
    ],
)  # fmt: skip
def test_ways_to_write_the_same_table(tmp_path: Path, text: bytes) -> None:
    assert sweep(tmp_path, text) == 0
    found = read_back(tmp_path / "jobs-sized.csv")
    assert found["id"].tolist() == ["a", "b"]
    wanted = [job("lora").size(["peak_allocated_gb"], batch_size=n)["peak_allocated_gb"] for n in (4, 8)]
    assert found["peak_allocated_gb"].tolist() == wanted


@pytest.mark.parametrize("quoted", ["", '"'])
def test_rows_of_another_length_are_refused_and_the_rest_is_sized(
    tmp_path: Path, quoted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"id,batch_size,gpu_choice\na,4,\nb\n\nc,8,,{quoted}9{quoted}\nd,0,NVIDIA L4\n,,\n"
    assert sweep(tmp_path, text) == 1
    found = read_back(tmp_path / "jobs-sized.csv")
    assert found["row"].tolist() == [1, 2, 4, 5, 6]
    assert found["error"].tolist() == [
        "",
        "the row has 1 cell; it must have 3, one for each column",
        "the row has 4 cells; it must have 3, one for each column",
        "batch_size is 0; it must be a whole number from 1 to 65,536",
        "",
    ]
    assert found["id"].tolist() == ["a", "b", "c", "d", ""]
    assert (found["fit_verdict"] != "").tolist() == [True, False, False, False, True]
    said = capsys.readouterr().err
    assert said.startswith("5 jobs: 2 sized, 3 refused; the result is ")
    assert "row 2: the row has 1 cell; it must have 3, one for each column (1 more for the same argument)" in said
    assert "row 5: batch_size is 0; it must be a whole number" in said


@pytest.mark.parametrize("quoted", ["", '"'])
def test_a_row_of_another_length_keeps_what_it_is_found_by(tmp_path: Path, quoted: str) -> None:
    """Its id and its job where it has them, wherever they stand; of its other cells nothing is taken."""
    text = f"batch_size,job,id,gpu_choice\n4,lora,a,\n8,full,b\n8,full\n8\n2,training,{quoted}e{quoted},,,\n"
    assert sweep(tmp_path, text) == 1
    found = read_back(tmp_path / "jobs-sized.csv")
    assert found["id"].tolist() == ["a", "b", "", "", "e"]
    assert found["job"].tolist() == ["lora", "full", "full", "lora", "training"]
    assert [said.partition(";")[0] for said in found["error"]] == [
        "", "the row has 3 cells", "the row has 2 cells", "the row has 1 cell", "the row has 6 cells",
    ]  # fmt: skip
    assert (found["fit_verdict"] != "").tolist() == [True, False, False, False, False]


def test_what_stands_in_an_id_comes_back(tmp_path: Path) -> None:
    ids = [
        "plain",
        "a,b",
        'a "quoted" one',
        "two\nlines",
        "[x],[y]",
        "x,null",
        "back\\slash",
        "é",
        " spaces ",
        "1,5",
        "",
        "null",
    ]
    pd.DataFrame({"id": ids, "batch_size": "8"}).to_csv(tmp_path / "jobs.csv", index=False)
    assert main(["sweep", str(tmp_path / "jobs.csv")]) == 0
    with (tmp_path / "jobs-sized.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ids
    assert len({row["peak_allocated_gb"] for row in rows}) == 1


LONG = "x" * 200


@pytest.mark.parametrize("cell", [LONG, 'a "b', "é" * 9, "NVIDIA H100 SXM5 80GB\\"])
def test_odd_texts_where_a_name_belongs(tmp_path: Path, cell: str) -> None:
    assert sweep(tmp_path, f"gpu_choice\n{cell}\n") == 1
    with pytest.raises(ValueError) as refused:
        job("lora").size(["fit_verdict"], gpu_choice=cell)
    assert read_back(tmp_path / "jobs-sized.csv")["error"].tolist() == [str(refused.value)]


_FIELD = st.text('ab",\n \r', max_size=4)


@given(st.lists(st.lists(_FIELD, min_size=2, max_size=2), min_size=1, max_size=12), st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_a_file_is_cut_between_rows_alone(rows: list[list[str]], size: int) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([["id", "batch_size"], *rows])
    text = out.getvalue().replace("\r", "").encode()
    whole = list(csv.reader(io.StringIO(text.decode(), newline="")))
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(blocks, "BLOCK", size)
        changed.setattr(blocks, "FIRST_BLOCK", size)
        table = blocks.open_table(Path("jobs.csv"), io.BytesIO(text))
        found = list(table.blocks)
    assert table.header == whole[0]
    again, number = [], 1
    for block in found:
        assert block.first == number
        lines = list(csv.reader(io.StringIO(block.data.decode(), newline="")))
        again += lines
        number += len(lines)
    assert again == whole[1:]


def test_many_blocks_over_processes_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.concat([table_of(300, 3)] * 4, ignore_index=True)
    table["id"] = [f"j{at}" if at % 50 else f'quoted, "{at}"' for at in range(len(table))]
    table.to_csv(tmp_path / "jobs.csv", index=False)
    whole, cut = tmp_path / "whole.csv", tmp_path / "cut.csv"
    assert main(["sweep", str(tmp_path / "jobs.csv"), "--output", str(whole), "--workers", "1"]) == 1
    monkeypatch.setattr(blocks, "FIRST_BLOCK", 20_000)
    monkeypatch.setattr(blocks, "BLOCK", 30_000)
    assert main(["sweep", str(tmp_path / "jobs.csv"), "--output", str(cut), "--workers", "2"]) == 1
    assert cut.read_bytes() == whole.read_bytes()
    assert (tmp_path / "jobs.csv").stat().st_size > 5 * 30_000


# ------------------------------------------------------------------------------------------------ refusals
REFUSED = [
    (b"", "jobs.csv is empty; its first line must name an input above each column"),
    (b"\n\n", "jobs.csv is empty; its first line"),
    (b"a\0b,c\n1,2\n", "jobs.csv, the header holds a NUL byte; the file must be CSV text in UTF-8"),
    (b"PK\x03\x04rest", "jobs.csv is a workbook or a zip file; it must be CSV in UTF-8"),
    (LINES.encode("utf-16"), "jobs.csv is UTF-16 text; it must be CSV in UTF-8"),
    ("id,batch_size\nb,4\né,4\n".encode("latin-1"), "jobs.csv, row 2 is not UTF-8 text; save the file as CSV in UTF-8"),
    (b"8,NVIDIA L4\n9,NVIDIA L4\n", 'jobs.csv: column 1 is called "8", which is no input of lora; the first line must'),
    (b"batch_sise\n8\n", 'column 1 is called "batch_sise", which is no input of lora; did you mean batch_size?; the'),
    (b"parameter_storage\nfp32\n", 'is called "parameter_storage", which is no input of lora'),
    (b"job,rank_of_lora\nlora,8\n", '"rank_of_lora", which is no input of lora or training or full'),
    (b"batch_size;gpu_choice\n8;NVIDIA L4\n", 'column 1 is called "batch_size;gpu_choice", which is no input of lora'),
    (b"batch_size,\n8,\n", "jobs.csv: column 2 has no name; the first line must name an input above each column"),
    (b"batch_size,id,Batch_Size\n8,a,9\n", "columns 1 and 3 are both called batch_size; it must stand there once"),
    (b'id,batch_size\na,4\n"b,8\nc,9\n', "jobs.csv, row 2 opens a quote that is not closed; close it"),
    (b'"id,batch_size\na,4\n', "jobs.csv, the header opens a quote that is not closed; close it"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_what_is_no_table_is_refused_and_nothing_is_written(
    tmp_path: Path, text: bytes, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jobs-sized.csv").write_text("mine")
    assert sweep(tmp_path, text, "--force") == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs-sized.csv", "jobs.csv"]
    assert (tmp_path / "jobs-sized.csv").read_text() == "mine"


def test_a_quote_that_swallows_the_file_is_found_early(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(tmp_path, 'id,batch_size\n"a,4\n' + "b,8\n" * 1_000_000) == 2
    assert "row 1 opens a quote that is not closed within 1,048,576 bytes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--output", "jobs.csv", "--force"], "--output is jobs.csv, the file of the jobs itself; name another"),
        (["--output", "there.csv"], "there.csv, which is there already; name another, or give --force to replace it"),
        (["--output", "folder"], "folder ends in nothing; it must end in .csv or .parquet"),
        (["--output", "folder.csv"], "--output is folder.csv, a folder; it must be a file"),
        (["--output", "nowhere/out.csv"], "--output is nowhere/out.csv, in a folder that does not exist"),
        (["--output", "out.xlsx"], "out.xlsx ends in .xlsx; it must end in .csv or .parquet"),
        (["--job", "lorra"], "job is 'lorra'; it must be one of lora, training, full; did you mean lora?"),
        (["--results", "verdict"], "results has 'verdict', which is no result of lora; did you mean fit_verdict?"),
        (["--results", ","], "results is empty; it must name at least one result"),
        (["--results", "run_hours,run_hours"], "results has 'run_hours' twice"),
        (["--workers", "0"], "'0' is no number of processes; it must be 1 to 1,024"),
        (["--ray", "nowhere"], "--ray is 'nowhere'; it must be"),
        (["--dask", "127.0.0.1:1"], "--dask is '127.0.0.1:1', where no Dask cluster answers"),
    ],
)
def test_wrong_options(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    sentence: str,
) -> None:
    if "--dask" in options or "--ray" in options:
        pytest.importorskip({"--ray": "ray", "--dask": "distributed"}[options[0]])
        monkeypatch.setattr("sizing_xlsx.bulk.places.ANSWER_WITHIN", 1.0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "there.csv").write_text("mine")
    try:
        status = sweep(Path(), LINES, *options)
    except SystemExit as ended:  # of argparse
        status = int(str(ended.code))
    assert status == 2
    assert sentence in capsys.readouterr().err
    assert (tmp_path / "jobs.csv").read_text() == LINES
    assert (tmp_path / "there.csv").read_text() == "mine"
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".new"]


@pytest.mark.parametrize(
    ("name", "sentence"), [("folder.csv", "is a folder"), ("gone.csv", "No such file"), ("a.tsv", "ends in .tsv")]
)
def test_what_is_no_file_is_refused(
    tmp_path: Path, name: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert main(["sweep", str(tmp_path / name)]) == 2
    assert sentence in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ ends from outside
def _processes_below(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder) in entry.read_bytes().decode(errors="replace"):
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc, to look for processes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_an_end_from_outside_leaves_no_half_result(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "jobs.csv").write_text("batch_size,sequence_length\n" + "8,512\n" * 4_000_000)
    (tmp_path / "out.csv").write_text("mine")
    command = [sys.executable, "-m", "sizing_xlsx", "sweep", str(tmp_path / "jobs.csv"), "--force", "--workers", "2"]
    running = subprocess.Popen([*command, "--output", str(tmp_path / "out.csv")], stderr=subprocess.PIPE, text=True)
    draft = tmp_path / f".out.csv.{running.pid}.new"
    until = time.monotonic() + 40
    while not (draft.exists() and draft.stat().st_size > 5_000_000) and time.monotonic() < until:
        time.sleep(0.01)
    assert running.poll() is None
    running.send_signal(how)
    said = running.communicate(timeout=30)[1]
    assert running.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[how]
    assert (tmp_path / "out.csv").read_text() == "mine"
    assert draft.exists() == (how == signal.SIGKILL)
    assert "Traceback" not in said
    while _processes_below(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _processes_below(tmp_path)


# ------------------------------------------------------------------------------------------------ Parquet
def test_parquet_in_and_out(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'sizing-xlsx[parquet]'")
    frame = pd.DataFrame(
        {
            "id": [11, 12, 13, 14],
            "job": ["lora", "full", None, "training"],
            "batch_size": pd.array([4, None, 0, 16], dtype="Int64"),
            "gpu_choice": pd.Categorical(["NVIDIA L4", None, "NVIDIA L4", "nvidia l4"]),
        }
    )
    frame.to_parquet(tmp_path / "jobs.parquet")
    assert main(["sweep", str(tmp_path / "jobs.parquet")]) == 1
    assert main(["sweep", str(tmp_path / "jobs.parquet"), "--output", str(tmp_path / "jobs.csv")]) == 1
    found = pd.read_parquet(tmp_path / "jobs-sized.parquet")
    assert found["id"].tolist() == [11, 12, 13, 14]
    assert found["job"].tolist() == ["lora", "full", "lora", "training"]
    expected = bulk.size_table(frame)
    for key in ("peak_allocated_gb", "run_hours", "rent_cost"):
        np.testing.assert_array_equal(found[key], expected[key])
        np.testing.assert_array_equal(read_back(tmp_path / "jobs.csv")[key], expected[key])
    assert found["error"].fillna("").tolist() == expected["error"].tolist()
    assert expected["error"][2] == "batch_size is 0; it must be a whole number from 1 to 65,536"
    assert (
        main(["sweep", str(tmp_path / "jobs.csv"), "--output", str(tmp_path / "x.parquet")]) == 2
    )  # a result, no jobs


def test_what_is_no_parquet_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'sizing-xlsx[parquet]'")
    assert sweep(tmp_path, LINES, name="jobs.parquet") == 2
    said = capsys.readouterr().err
    assert "jobs.parquet is not Parquet (" in said
    assert len(said.splitlines()) == 1


# ------------------------------------------------------------------------------------------------ own cards, extras
def test_own_cards(tmp_path: Path) -> None:
    (tmp_path / "cards.csv").write_text("name,usable_gib\nRack 7,40\n")
    assert sweep(tmp_path, "gpu_choice\nRack 7\n", "--gpu", str(tmp_path / "cards.csv")) == 0
    assert read_back(tmp_path / "jobs-sized.csv")["fit_verdict"].tolist() == ["fits"]


def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "msgspec", None)
    assert sweep(tmp_path, LINES) == 2
    assert "sweep needs it: pip install 'sizing-xlsx[bulk]'" in capsys.readouterr().err


def test_no_other_command_imports_it() -> None:
    code = (
        "import sys; from sizing_xlsx.cli import main; main(['lora']); print('pandas' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "False"


# ------------------------------------------------------------------------------------------------ clusters
def same_on_a_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    """The bytes that a cluster gives are those of this process alone."""
    table = table_of(200, 5)
    table.to_csv(folder / "jobs.csv", index=False)
    here, there = folder / "here.csv", folder / "there.csv"
    assert main(["sweep", str(folder / "jobs.csv"), "--output", str(here), "--workers", "1"]) == 1
    monkeypatch.setattr(blocks, "FIRST_BLOCK", 20_000)
    monkeypatch.setattr(blocks, "BLOCK", 20_000)
    assert main(["sweep", str(folder / "jobs.csv"), "--output", str(there), *options]) == 1
    assert there.read_bytes() == here.read_bytes()


RAY = """
import sys
from pathlib import Path
import pytest
from ray.cluster_utils import Cluster
import test_bulk

head = {"num_cpus": 2, "node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 80_000_000}
made = Cluster(initialize_head=True, head_node_args=head)
try:
    with pytest.MonkeyPatch.context() as changed:
        test_bulk.same_on_a_cluster(Path(sys.argv[1]), changed, "--ray", made.address)
finally:
    made.shutdown()
"""


def test_a_ray_cluster_gives_the_same_bytes(tmp_path: Path) -> None:
    """A cluster on this machine's loopback, in a process of its own: Ray reads its environment when it is imported."""
    if find_spec("ray") is None:
        pytest.skip("ray is not installed: pip install 'sizing-xlsx[ray]'")
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # short, as the paths of sockets have to be
    os.mkdir(os.path.join(folder, "ray"))
    loopback = {"RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    paths = os.pathsep.join((str(Path(__file__).parent), str(Path(__file__).parent.parent)))
    try:
        done = subprocess.run(
            [sys.executable, "-c", RAY, str(tmp_path)],
            env={**os.environ, **loopback, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_dask_cluster_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dask = pytest.importorskip("distributed", reason="distributed is not installed: pip install 'sizing-xlsx[dask]'")
    with dask.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, processes=True
    ) as cluster:
        same_on_a_cluster(tmp_path, monkeypatch, "--dask", cluster.scheduler_address)


def test_a_dask_cluster_without_workers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dask = pytest.importorskip("distributed", reason="distributed is not installed: pip install 'sizing-xlsx[dask]'")
    monkeypatch.setattr("sizing_xlsx.bulk.places.ANSWER_WITHIN", 1.0)
    with dask.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as cluster:
        assert sweep(tmp_path, LINES, "--dask", cluster.scheduler_address) == 2
    assert "a cluster that has no worker; start one: dask worker tcp://127.0.0.1:" in capsys.readouterr().err


def test_layouts_say_what_columns_mean() -> None:
    layout = Layout.of([" Job", "ID", "GPU_Choice"], "jobs.csv", "full", None)
    assert (layout.job, layout.id, layout.places) == ("full", 1, {"job": 0, "gpu_choice": 2})
    assert layout.texts == {"fit_verdict"}

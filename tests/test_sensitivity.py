"""Sensitivity: every crossing is the job with these two values; a wrong value is marked and disturbs no other."""

from __future__ import annotations

from typing import Any

from conftest import Book, Opened
from engines import Formualizer, Value, close
from test_workbook_engines import seed

SHOWN = ("Fits", "Tight", "Does not fit")


def grids(opened: Opened) -> tuple[dict[tuple[int, int], Value], dict[tuple[int, int], Value]]:
    """The verdicts and the totals, by place from 0."""
    cells = opened.engine.get_sheet("Sensitivity")
    tops = [row for (row, column), value in cells.items() if column == 2 and value == "Values"]
    second = next(row for (row, column), value in cells.items() if column == 2 and str(value).startswith("Total")) + 1
    size = range(len(opened.book.template["axes"]["row_values"]))
    return tuple(  # type: ignore[return-value]
        {(row, column): cells.get((top + 1 + row, 3 + column)) for row in size for column in size}
        for top in (tops[0], second)
    )


def choose(opened: Opened, rows: str, columns: str, row_values: list[Any], column_values: list[Any]) -> None:
    """Type the axes; values that are left out are cleared."""
    opened.engine.set(
        "Sensitivity_Rows", opened.book.job.inputs[rows].label if rows in opened.book.job.inputs else rows
    )
    opened.engine.set(
        "Sensitivity_Columns", opened.book.job.inputs[columns].label if columns in opened.book.job.inputs else columns
    )
    for name, values in (("Row", row_values), ("Column", column_values)):
        for at in range(len(opened.book.template["axes"]["row_values"])):
            value = values[at] if at < len(values) else None
            opened.engine.set(f"Sensitivity_{name}_{at + 1}", float(value) if isinstance(value, int) else value)
    opened.engine.recalculate()


def as_opened(opened: Opened) -> None:
    axes = opened.book.template["axes"]
    choose(opened, axes["rows"], axes["columns"], axes["row_values"], axes["column_values"])


AXES: dict[str, list[tuple[str, str, list[Any], list[Any]]]] = {
    "lora": [
        ("base_model", "gpu_choice",
         ["Qwen/Qwen2.5-0.5B", "meta-llama/Llama-3.1-8B", "openai-community/gpt2", "mistralai/Mixtral-8x7B-v0.1"],
         ["NVIDIA L4", "NVIDIA H200 SXM", "NVIDIA GeForce RTX 4090"]),
        ("adapter_layers", "lora_rank", ["all", 1, 7], [1, 8, 64, 512]),
        ("base_storage_format", "optimizer_choice", ["bf16", "fp32"], ["Adam", "8-bit Adam", "SGD"]),
        ("training_stack", "activation_checkpointing", ["Plain loop, transformers 5"], ["On", "Off"]),
    ],
    "training": [
        ("gpu_choice", "batch_size", ["NVIDIA L4", "NVIDIA B200"], [1, 64, 4096]),
        ("compute_precision", "optimizer_choice", ["fp32", "bf16 autocast"], ["Adam", "8-bit Adam"]),
    ],
    "full": [
        ("gpu_count", "sharding_stage", [2, 8, 64], ["DDP", "ZeRO-2", "FSDP full shard"]),
        ("base_model", "training_recipe", ["Qwen/Qwen2.5-1.5B", "meta-llama/Llama-3.1-70B"],
         ["pure bf16 AdamW", "bf16 + bnb AdamW8bit / PagedAdamW8bit"]),
    ],
}  # fmt: skip


def test_every_crossing_is_the_job_with_both_values(opened: Opened) -> None:
    job, rng = opened.book.job, seed(opened.book.name, "crossings")
    cases = AXES[opened.book.name]
    for rows, columns, down, across in cases if isinstance(opened.engine, Formualizer) else cases[:1]:
        inputs = {"batch_size": rng.randint(1, 30), "gpu_capacity_override_gb": 33}
        opened.type(inputs)
        choose(opened, rows, columns, down, across)
        verdicts, totals = grids(opened)
        for (row, column), verdict in verdicts.items():
            if row >= len(down) or column >= len(across):
                assert verdict in ("", None) and totals[row, column] in ("", None)
                continue
            crossing = {**inputs, rows: down[row], columns: across[column]}
            for key in (rows, columns):
                crossing.update(dict.fromkeys(job.own_values_of(key)))
            sized = job.size(["verdict_code", "total_shown_gb"], **crossing)
            assert verdict == SHOWN[sized["verdict_code"] - 1], crossing
            assert close(totals[row, column], sized["total_shown_gb"]), crossing
    as_opened(opened)


WRONG = (0, 2.5, -1, 65_537, 1e9, "8", "eight", "*", "#N/A", "=1+1")


def with_numbers(opened: Opened) -> None:
    """Sequence against batch: the workbook of full fine-tuning opens on cards against stages."""
    if opened.book.name == "full":
        choose(opened, "sequence_length", "batch_size", [512, 1024, 2048, 4096], [1, 2, 4, 8])


def sentence(opened: Opened) -> str:
    return str(opened["Sensitivity", 2, 2])


def test_a_wrong_value_is_marked_and_nothing_else(opened: Opened) -> None:
    with_numbers(opened)
    good = grids(opened)[0]
    for wrong in WRONG if isinstance(opened.engine, Formualizer) else WRONG[4:5]:
        opened.engine.set("Sensitivity_Column_3", wrong)
        opened.engine.recalculate()
        for (row, column), verdict in grids(opened)[0].items():
            assert verdict == ("Check" if column == 2 else good[row, column]), wrong
        assert opened["Checks_Failed"] == 0
        shown = f"{wrong:.15g}" if isinstance(wrong, int | float) else f"{wrong} (text)" if wrong == "8" else wrong
        right = "enter a whole number from 1 to 65,536."
        assert sentence(opened) == f"Across the columns, value 3: Batch size is {shown}; {right}", wrong
    as_opened(opened)


def test_an_empty_value_is_no_fault_and_further_faults_are_counted(opened: Opened) -> None:
    opens_on = sentence(opened)
    with_numbers(opened)
    whole = sentence(opened)
    opened.engine.set("Sensitivity_Row_2", None)
    opened.engine.recalculate()
    assert sentence(opened) == whole
    for name, value in (("Row_1", "many"), ("Row_3", -1), ("Column_1", 2.5)):
        opened.engine.set(f"Sensitivity_{name}", value)
    opened.engine.recalculate()
    right = "enter a whole number from 1 to 1,048,576. 2 more wrong."
    assert sentence(opened) == f"Down the rows, value 1: Sequence length is many; {right}"
    as_opened(opened)
    assert sentence(opened) == opens_on


def test_axes_that_are_none_are_marked(opened: Opened) -> None:
    axes, wrong = opened.book.template["axes"], (("batch_size",) * 2, ("*", "batch_size"), ("Colour", "batch_size"))
    for rows, columns in wrong if isinstance(opened.engine, Formualizer) else wrong[:1]:
        choose(opened, rows, columns, axes["row_values"], axes["column_values"])
        assert set(grids(opened)[0].values()) == {"Check"}
        assert sentence(opened).startswith("Choose two different inputs")
    as_opened(opened)


def test_more_layers_than_the_model_has_are_a_broken_rule(short_books: dict[str, Book]) -> None:
    opened = Opened(short_books["lora"], Formualizer)
    choose(opened, "base_model", "adapter_layers", ["openai-community/gpt2", "meta-llama/Llama-3.1-8B"], [12, 20])
    verdicts = grids(opened)[0]
    assert verdicts[0, 0] == "Fits" and verdicts[0, 1] == "Check"
    assert sentence(opened).startswith("Where it says Check, the two values do not go together")
    opened.engine.close()

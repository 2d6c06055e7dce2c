"""Many jobs at once: the same figures as the reference, from any kind of column, and faults by their row."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from strategies import random_inputs

from sizing_xlsx.formula.declare import Choice
from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import job

LORA, TRAINING = job("lora"), job("training")
BOTH = [LORA, TRAINING]
NAMES = ["lora", "training"]  # the machinery is the same for all; one test of full fine-tuning stands at the end
RESULT = ("peak_allocated_gb", "total_reserved_gb", "fit_verdict")


def near(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= 1e-12 * max(abs(a), abs(b)))


def same_as_reference(sizing: Job, rows: list[dict[str, Any]], answer: dict[str, Any]) -> None:
    """Every result of every row is what the plain functions give."""
    for at, row in enumerate(rows):
        reference = sizing.reference(row)
        for key, column in answer.items():
            assert len(column) == len(rows), key
            if isinstance(reference[key], str):
                wanted_words = sizing.terms[key].unit != "text"  # words in place of a number: NaN in a column
                assert math.isnan(column[at]) if wanted_words else column[at] == reference[key], (key, at)
            else:
                assert near(column[at], reference[key]), (key, at, column[at], reference[key], row)


def columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {key: [row[key] for row in rows] for key in rows[0]}


def as_frame(columns: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame({key: pd.Series(values, dtype=object) for key, values in columns.items()})


def mixed(sizing: Job, columns: dict[str, list[Any]]) -> dict[str, Any]:
    """Each column as another kind of container."""
    out: dict[str, Any] = {}
    for at, (key, values) in enumerate(columns.items()):
        if isinstance(sizing.inputs[key].domain, Choice):
            kinds = [
                list,
                np.array,
                pd.Series,
                lambda v: pd.Series(pd.Categorical(v)),
                lambda v: pd.array(v, dtype="string"),
                pd.Categorical,
            ]
        elif None in values or any(isinstance(value, str) for value in values):
            kinds = [list, lambda v: np.array(v, dtype=object), lambda v: pd.Series(v, dtype=object)]
            if not any(isinstance(value, str) for value in values):
                kinds += [
                    lambda v: np.array([np.nan if x is None else x for x in v], dtype=float),
                    lambda v: pd.array(v, dtype="Float64"),
                ]
        else:
            kinds = [list, np.array, pd.Series, tuple, lambda v: pd.Series(v, index=range(len(v), 0, -1))]
        out[key] = kinds[at % len(kinds)](values)
    return out


@pytest.mark.parametrize("sizing", BOTH, ids=NAMES)
@pytest.mark.parametrize("form", ["lists", "frame", "mixed", "accepted frame"])
def test_every_term_of_random_jobs(sizing: Job, form: str) -> None:
    rng = random.Random(31)
    rows = [random_inputs(sizing, rng) for _ in range(300)]
    columns = columns_of(rows)
    inputs: Any = columns
    if form == "frame":
        inputs = as_frame(columns)
    elif form == "accepted frame":
        inputs = pd.DataFrame(columns)
    elif form == "mixed":
        inputs = mixed(sizing, columns)
    same_as_reference(sizing, rows, sizing.size_many(inputs, sizing.order))


@pytest.mark.parametrize("sizing", BOTH, ids=NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_single_values_stand_for_all_rows(sizing: Job, seed: int) -> None:
    """About half of the inputs are one value; the others are columns."""
    rng = random.Random(seed)
    fixed = random_inputs(sizing, rng) | {"average_sequence_length": None}  # not above any of the sequences
    moving = [
        "batch_size",
        "sequence_length",
        "optimizer_choice",
        "activation_checkpointing",
        "gpu_capacity_override_gb",
    ]
    rows = [
        fixed
        | {key: random_inputs(sizing, rng)[key] for key in moving}
        | {"gpu_capacity_override_gb": rng.uniform(8, 200)}
        for _ in range(40)
    ]
    inputs = fixed | {key: [row[key] for row in rows] for key in moving}
    same_as_reference(sizing, rows, sizing.size_many(inputs, sizing.order))


@pytest.mark.parametrize("sizing", BOTH, ids=NAMES)
def test_few_texts_among_many_jobs(sizing: Job) -> None:
    """What rests on texts alone is evaluated for each of their combinations, those that no job has among them."""
    rng = random.Random(41)
    texts = [key for key, declared in sizing.inputs.items() if isinstance(declared.domain, Choice)]
    few = [random_inputs(sizing, rng) for _ in range(3)]
    rows = []
    for at in range(2_000):
        row = dict(few[at % 3])
        for key in rng.sample([key for key in texts if not key.startswith(("adapter_", "target_", "base_model"))], 2):
            row[key] = rng.choice(few)[key]
        rows.append(row | {"batch_size": rng.randint(1, 256)})
    agreed = {"gpu_capacity_override_gb": 80, "compute_precision": few[0]["compute_precision"], "currency_per_usd": 0.9}
    agreed["currency_choice"] = "EUR"  # a dollar is worth one
    rows = [row | agreed for row in rows]
    if "parameter_storage" in texts:
        rows = [row | {"parameter_storage": "fp32"} for row in rows]
    if sizing.name == "lora":
        rows = [row | {"gpu_count": 8, "gpus_per_node": 4} for row in rows]  # whole nodes, whatever the stage
    columns = columns_of(rows)
    answer = sizing.size_many(columns, sizing.order)
    for at in range(0, len(rows), 50):
        same_as_reference(sizing, [rows[at]], {key: column[at : at + 1] for key, column in answer.items()})


@pytest.mark.parametrize("sizing", BOTH, ids=NAMES)
def test_one_value_for_everything_is_one_job(sizing: Job) -> None:
    rng = random.Random(37)
    for _ in range(40):
        inputs = random_inputs(sizing, rng)
        same_as_reference(sizing, [inputs], sizing.size_many(inputs, sizing.order))
    same_as_reference(sizing, [sizing.defaults()], sizing.size_many({}, sizing.order))


@pytest.mark.parametrize("sizing", BOTH, ids=NAMES)
def test_one_column_and_defaults(sizing: Job) -> None:
    """Each input alone as a column, all else by default."""
    for key in sizing.inputs:
        choices = sizing.choices(key)
        domain = sizing.inputs[key].domain
        if choices:
            values = [choice for choice in choices if _valid(sizing, key, choice)]
        else:
            values = [v for v in (domain.low, 4, None) if _valid(sizing, key, v)]  # type: ignore[union-attr]
        rows = [sizing.defaults() | {key: value} for value in values]
        same_as_reference(sizing, rows, sizing.size_many({key: values}, sizing.order))


def _valid(sizing: Job, key: str, value: Any) -> bool:
    try:
        sizing.size(**{key: value})
    except ValueError:
        return False
    return True


def test_blocks_do_not_show() -> None:
    rng = random.Random(41)
    rows = [random_inputs(LORA, rng) for _ in range(50)]
    columns = columns_of(rows)
    whole = LORA.size_many(columns, LORA.order)
    for block in (1, 7, 49, 50, 51):
        parts = LORA.size_many(columns, LORA.order, block)
        for key in LORA.order:
            assert np.array_equal(whole[key], parts[key], equal_nan=whole[key].dtype != object), (key, block)


def test_codes_and_categories() -> None:
    names = ["Off", "On", "off"]
    codes = np.array([0, 1, 2, 1], dtype=np.int8)
    answer = LORA.size_many({"activation_checkpointing": (names, codes)}, RESULT)
    wanted = [LORA.size(activation_checkpointing=names[code]) for code in codes]
    assert answer["fit_verdict"].tolist() == [row["fit_verdict"] for row in wanted]
    series = pd.Series(pd.Categorical.from_codes([0, 1, 0], ["On", "Off"]))
    answer = LORA.size_many({"activation_checkpointing": series}, RESULT)
    assert near(answer["peak_allocated_gb"][0], LORA.size(activation_checkpointing="On")["peak_allocated_gb"])


def test_an_unused_category_is_not_looked_up() -> None:
    series = pd.Series(pd.Categorical(["Adam", "SGD"], categories=["Adam", "no such", "SGD"]))
    assert len(LORA.size_many({"optimizer_choice": series}, RESULT)["peak_allocated_gb"]) == 2


def test_truth_values_in_a_column_of_switches() -> None:
    for column in ([True, False], np.array([True, False]), pd.Series([True, False])):
        answer = LORA.size_many({"activation_checkpointing": column}, RESULT)["peak_allocated_gb"]
        assert near(answer[0], LORA.size(activation_checkpointing=True)["peak_allocated_gb"])
        assert near(answer[1], LORA.size()["peak_allocated_gb"])


def test_words_and_numbers_in_one_column() -> None:
    layers = ["all", 3, "ALL", 22, np.int64(11)]
    answer = LORA.size_many({"adapter_layers": layers}, RESULT)["peak_allocated_gb"]
    for got, value in zip(answer, layers, strict=True):
        assert near(got, LORA.size(adapter_layers=value)["peak_allocated_gb"])


@pytest.mark.parametrize("empty", [None, math.nan, pd.NA, pd.NaT], ids=repr)
def test_empty_cells_of_an_optional_column(empty: Any) -> None:
    for column in ([empty, 40.0], pd.Series([empty, 40.0], dtype=object)):
        answer = LORA.size_many({"gpu_capacity_override_gb": column}, ("gpu_usable_capacity_gb",))
        assert answer["gpu_usable_capacity_gb"].tolist() == [LORA.size()["gpu_usable_capacity_gb"], 40]


def test_nullable_and_arrow_like_columns() -> None:
    whole = pd.array([None, 1024], dtype="Int64")
    answer = LORA.size_many({"hidden_size_override": whole, "batch_size": pd.array([8, 8], dtype="Int64")}, RESULT)
    wanted = [LORA.size()["peak_allocated_gb"], LORA.size(hidden_size_override=1024)["peak_allocated_gb"]]
    assert all(near(a, b) for a, b in zip(answer["peak_allocated_gb"], wanted, strict=True))


@pytest.mark.parametrize("value", [np.int64(16), np.int32(16), np.float32(16), np.array(16)], ids=repr)
def test_a_numpy_number_is_one_value_for_all(value: Any) -> None:
    answer = LORA.size_many({"batch_size": value, "sequence_length": [512, 1024]}, RESULT)
    assert near(answer["peak_allocated_gb"][1], LORA.size(batch_size=16, sequence_length=1024)["peak_allocated_gb"])


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8, np.int32])
def test_narrow_columns_do_not_overflow(kind: Any) -> None:
    answer = LORA.size_many({"batch_size": np.array([100, 101], dtype=kind), "sequence_length": [4096, 4096]}, RESULT)
    assert near(answer["peak_allocated_gb"][1], LORA.size(batch_size=101, sequence_length=4096)["peak_allocated_gb"])


@pytest.mark.parametrize("columns", [{"batch_size": []}, pd.DataFrame({"batch_size": [], "gpu_choice": []})])
def test_no_rows_give_no_rows(columns: Any) -> None:
    answer = LORA.size_many(columns, RESULT)
    assert [len(answer[key]) for key in RESULT] == [0, 0, 0]


# ---------------------------------------------------------------------- faults
RIGHT = "it must be a whole number from 1 to 65,536"
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"batch_size": [8, 0, 8]}, f"row 1: batch_size is 0(\\.0)?; {RIGHT}"),
    ({"batch_size": [8, 8, -1]}, f"row 2: batch_size is -1(\\.0)?; {RIGHT}"),
    ({"batch_size": [2.5, 8]}, f"row 0: batch_size is 2.5; {RIGHT}"),
    ({"batch_size": [8, math.nan]}, f"row 1: batch_size is nan; {RIGHT}"),
    ({"batch_size": [8, math.inf]}, f"row 1: batch_size is inf; {RIGHT}"),
    ({"batch_size": [8, None]}, f"row 1: batch_size is (nan|None); {RIGHT}"),
    ({"batch_size": [8, "16"]}, f"row 1: batch_size is '16'; {RIGHT}"),
    ({"batch_size": np.array([8, 65_537])}, f"row 1: batch_size is 65537(\\.0)?; {RIGHT}"),
    ({"batch_size": [8, True]}, f"row 1: batch_size is True; {RIGHT}"),
    ({"batch_size": np.array([True, False])}, f"row 0: batch_size is (np.)?True_?; {RIGHT}"),
    ({"lora_rank": [8, 8, 0]}, "row 2: lora_rank is 0(\\.0)?; it must be a whole number from 1 to 8,192"),
    ({"optimizer_choice": ["Adam", "AdamX"]}, "row 1: optimizer_choice is 'AdamX'; .*; did you mean Adam\\?"),
    (
        {"gpu_choice": np.array(["NVIDIA H100 SXM5 80GB", "H200"])},
        "row 1: gpu_choice is .*'H200'.*; did you mean ",
    ),
    ({"optimizer_choice": ["Adam", None]}, "row 1: optimizer_choice is None; it must be one of "),
    (
        {"optimizer_choice": pd.Series(pd.Categorical(["Adam", None]))},
        "row 1: optimizer_choice is empty; it must be one of",
    ),
    (
        {"adapter_layers": ["all", 3, "some"]},
        "row 2: adapter_layers is 'some'; it must be a whole number from 1 to the layer",
    ),
    (
        {"adapter_layers": [3, 23, 24]},
        'row 1: adapter_layers is 23(\\.0)?; the model has 22(\\.0)? layers: enter 1 to 22(\\.0)? or "all"',
    ),
    (
        {"kv_heads_override": [4, None, 5]},
        "row 2: attention_heads is 32(\\.0)?; it must be a multiple of kv_heads, which is 5",
    ),
    (
        {"gpu_capacity_override_gb": [80, 0]},
        "row 1: gpu_capacity_override_gb is 0(\\.0)?; it must be a number from 0.001 to 100,000 GB",
    ),
]


@pytest.mark.parametrize(("inputs", "message"), FAULTS)
def test_a_faulty_row_is_reported_with_its_number(inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        LORA.size_many(inputs, RESULT)


@pytest.mark.parametrize("block", [1, 2, 16_384])
def test_a_contradiction_is_found_in_any_block(block: int) -> None:
    with pytest.raises(ValueError, match=r"^row 4: adapter_layers is 23"):
        LORA.size_many({"adapter_layers": ["all", 1, 2, 3, 23, 1]}, RESULT, block)


def test_whole_numbers_are_written_as_whole_numbers() -> None:
    """A user who entered 23 reads 23, not 23.0."""
    with pytest.raises(ValueError, match=r"adapter_layers is 23; the model has 22 layers"):
        LORA.size_many({"adapter_layers": [3, 23]}, RESULT)
    with pytest.raises(ValueError, match=r"batch_size is 0; "):
        LORA.size_many({"batch_size": [8, 0]}, RESULT)


def test_a_card_without_a_known_capacity() -> None:
    gpus = LORA.tables["gpus"]
    unknown = next(key for key in gpus if not gpus.usable_bytes[gpus.row_of(key)])
    with pytest.raises(ValueError, match=r"^row 1: gpu_choice is .*its usable capacity is not known"):
        LORA.size_many({"gpu_choice": ["NVIDIA H100 SXM5 80GB", unknown]}, RESULT)


def test_all_targets_off() -> None:
    off = {f"target_{slot}": "Off" for slot in ("query", "key", "value", "output", "gate", "up", "down")}
    with pytest.raises(ValueError, match=r"^row 1: adapter_targets is 'Own choice', which reaches no module of"):
        LORA.size_many(off | {"adapter_targets": ["All seven", "Own choice"]}, RESULT)


def test_what_fails_for_one_value_fails_alike_for_all() -> None:
    with pytest.raises(ValueError, match=r"^batch_size is 0; "):
        LORA.size_many({"batch_size": 0, "sequence_length": [512, 1024]}, RESULT)
    with pytest.raises(TypeError, match=r"^batch is no input of lora; did you mean batch_size\?"):
        LORA.size_many({"batch": [1, 2]}, RESULT)
    with pytest.raises(TypeError, match=r"^peak_gb is no result of lora"):
        LORA.size_many({}, ("peak_gb",))
    with pytest.raises(ValueError, match=r"columns must be of one length; batch_size has 2, sequence_length has 3"):
        LORA.size_many({"batch_size": [1, 2], "sequence_length": [1, 2, 3]}, RESULT)


def test_full_fine_tuning_is_sized_in_columns_as_one_by_one() -> None:
    full, rng = job("full"), random.Random(5)
    rows = [random_inputs(full, rng) for _ in range(40)]
    answer = full.size_many(columns_of(rows), ("traced_allocated", "published_reserved", "model_state", "fit_verdict"))
    same_as_reference(full, rows, answer)

"""What a run is: fields by the workbook's names, from flags, names, TOML and CSV; what is wrong is one sentence."""

from __future__ import annotations

import csv
import io
import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import random_inputs

from sizing_xlsx import paths
from sizing_xlsx.formula.declare import Choice
from sizing_xlsx.formula.job import Job
from sizing_xlsx.jobs import job as sized_job
from sizing_xlsx.measure import run as runs_module
from sizing_xlsx.measure.run import (
    JOBS,
    LONGEST_FILE,
    SETTINGS,
    Run,
    declared,
    from_rows,
    input_names,
    make_run,
    named_sweep,
    read_sweep,
    unique,
)

TINY_LLAMA = "TinyLlama/TinyLlama-1.1B-Chat-v1.0"
H100 = "NVIDIA H100 SXM5 80GB"
SWITCH = "it must be one of Off, On"


def refused(call: Callable[[], Any]) -> str:
    """The sentence of the ValueError that a call raises."""
    with pytest.raises(ValueError) as caught:
        call()
    sentence = str(caught.value)
    assert len(sentence.splitlines()) == 1 and sentence.isprintable() and len(sentence) < 1000
    return sentence


def sweep(tmp_path: Path, content: str | bytes, name: str = "sweep.toml") -> list[Run]:
    """The runs of a file that holds this."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_sweep(path)


def fault(tmp_path: Path, content: str | bytes, name: str = "sweep.toml") -> str:
    """The sentence that read_sweep refuses a file with; it begins with the file."""
    sentence = refused(lambda: sweep(tmp_path, content, name))
    assert sentence.startswith(str(tmp_path / name))
    return sentence.removeprefix(str(tmp_path / name))


# -- fields


def test_a_run_that_says_nothing_is_the_worked_job() -> None:
    for name in ("lora", "training"):
        run, workbook = make_run(name, {}), sized_job(name)
        assert run.inputs == {key: workbook.inputs[key].default for key in input_names(name)}
        assert run.settings == {key: default for key, (default, _) in SETTINGS.items()}


def test_every_input_that_a_step_depends_on_is_a_field() -> None:
    judging = {"verdict_basis", "average_sequence_length", "other_tenants_gb", "outside_pytorch_gb_override"}
    judging |= {"images_per_row", "image_tokens_override"}
    for name in ("lora", "training"):
        about_the_job = {key for key, facts in sized_job(name).inputs.items() if facts.follows_job}
        of_a_stack = {key for key in about_the_job if key.startswith(("loss_", "stack_", "fused_loss"))}
        assert set(input_names(name)) == about_the_job - judging - of_a_stack


def test_full_fine_tuning_has_the_fields_of_a_decoder_and_its_storage_and_none_of_adapters() -> None:
    full, lora = set(input_names("full")), set(input_names("lora"))
    assert full - lora == {"parameter_storage"}
    assert lora - full == {
        "base_storage_format", "lora_rank", "lora_dropout", "adapter_targets", "adapter_layers",
        "adapter_method", "adapter_storage", "head_outputs", "kbit_preparation", "quantised_head", "virtual_tokens",
        "target_query", "target_key", "target_value", "target_output", "target_gate", "target_up", "target_down",
    }  # fmt: skip
    assert make_run("full", {})["parameter_storage"] == "fp32"
    assert make_run("full", {"parameter_storage": "BF16"})["parameter_storage"] == "bf16"


def test_a_field_is_read_by_its_name_wherever_it_stands() -> None:
    run = make_run("lora", {"batch_size": 3, "loss_kernel": "Liger", "activation_checkpointing": "on"})
    assert (run["batch_size"], run["loss_kernel"], run["activation_checkpointing"]) == (3, "Liger", "On")
    assert run.on("activation_checkpointing") and not run.on("lora_dropout")
    with pytest.raises(KeyError):
        run["no_such_field"]


def test_choices_are_taken_in_any_case_and_truth_as_a_switch() -> None:
    run = make_run("lora", {"optimizer_choice": "8-BIT ADAM", "lora_dropout": True, "adapter_layers": "ALL"})
    assert (run["optimizer_choice"], run["lora_dropout"], run["adapter_layers"]) == ("8-bit Adam", "On", "all")


def test_a_whole_number_written_with_a_point_is_a_whole_number() -> None:
    """A spreadsheet or pandas writes 8.0 for 8; a batch of 8.0 has no shape."""
    run = make_run("lora", {"batch_size": 8.0, "sequence_length": 16.0, "layer_count_override": 2.0, "lora_rank": 4})
    for key in ("batch_size", "sequence_length", "layer_count_override", "lora_rank"):
        assert type(run[key]) is int, f"{key} is {run[key]!r}"
    assert run.inputs == make_run("lora", {**run.inputs}).inputs


def test_a_model_that_is_not_sized_yet_can_be_run() -> None:
    assert make_run("lora", {"base_model": "google/gemma-2-9b"})["base_model"] == "google/gemma-2-9b"


def test_an_own_config_names_the_model(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text('{"model_type": "llama"}')
    assert make_run("lora", {"config": str(tmp_path / "mine")})["base_model"] == "mine"
    assert make_run("lora", {"config": str(tmp_path / "mine" / "config.json")})["base_model"] == "mine"
    assert make_run("lora", {"config": str(tmp_path / "mine"), "base_model": "A"})["base_model"] == "A"


@pytest.mark.parametrize(
    ("job", "field", "value", "said"),
    [
        ("lora", "batch_size", 0, "batch_size is 0; it must be a whole number from 1 to 65,536"),
        ("lora", "batch_size", -1, "batch_size is -1; it must be"),
        ("lora", "batch_size", 8.5, "batch_size is 8.5; it must be a whole number"),
        ("lora", "batch_size", "eight", "batch_size is 'eight'; it must be a whole number"),
        ("lora", "batch_size", True, "batch_size is True; it must be a whole number"),
        ("lora", "batch_size", None, "batch_size is None; it must be a whole number"),
        ("lora", "batch_size", [8], "batch_size is [8]; it must be a whole number"),
        ("lora", "batch_size", float("nan"), "batch_size is nan; it must be a whole number"),
        pytest.param("lora", "batch_size", 10**5000, "batch_size is an integer of thousands", id="thousands of digits"),
        ("lora", "optimizer_choice", "Adm", "optimizer_choice is 'Adm'; it must be one of Adam, 8-bit Adam, SGD"),
        ("lora", "activation_checkpointing", "yes", f"activation_checkpointing is 'yes'; {SWITCH}"),
        ("lora", "lora_dropout", 0.1, f"lora_dropout is 0.1; {SWITCH}"),
        ("lora", "gpu_choice", "NVIDIA H100 SXM5", f"did you mean {H100}?"),
        ("lora", "base_model", "TinyLlama-1.1B-Chat", f"it must be a model of the presets; did you mean {TINY_LLAMA}?"),
        ("lora", "base_model", 7, "base_model is 7; it must be a model of the presets"),
        ("lora", "base_model", "../../../etc", "base_model is '../../../etc'; it must be a model of the presets"),
        ("lora", "adapter_layers", "most", "adapter_layers is 'most'; it must be a whole number from 1 to the layer"),
        ("lora", "gpu_capacity_override_gb", -1, "gpu_capacity_override_gb is -1; it must be a number from 0.001"),
        ("full", "parameter_storage", "fp16", "parameter_storage is 'fp16'; it must be one of fp32, bf16"),
        ("training", "base_model", TINY_LLAMA, f"base_model is '{TINY_LLAMA}'; it must be"),
        ("lora", "steps", 0, "steps is 0; it must be a whole number from 1 to 1,000: updates to run"),
        ("lora", "steps", 1001, "steps is 1001; it must be"),
        ("lora", "steps", True, "steps is True; it must be"),
        ("lora", "steps", "3", "steps is '3'; it must be a whole number"),
        ("lora", "loss_kernel", "liger", 'loss_kernel is \'liger\'; it must be "stock" or "Liger"'),
        ("lora", "kbit_preparation", "maybe", "kbit_preparation is 'maybe'; it must be one of Off, On, Norms only"),
        ("lora", "reentrant_checkpointing", [], 'reentrant_checkpointing is []; it must be "Off" or "On"'),
        ("lora", "config", 5, "config is 5; it must be a config.json or a folder that holds one"),
        ("lora", "weights", 5, 'weights is 5; it must be "random", or a folder or hub name'),
    ],
)
def test_a_wrong_value_is_named_with_its_field_and_what_is_right(job: str, field: str, value: Any, said: str) -> None:
    assert said in refused(lambda: make_run(job, {field: value}))
    assert refused(lambda: make_run(job, {field: value}, where="here, line 3")).startswith("here, line 3: ")


@pytest.mark.parametrize(
    ("job", "field", "said"),
    [
        ("lora", "batchsize", "batchsize is no field of a lora run; did you mean batch_size?"),
        ("lora", "Batch_Size", "Batch_Size is no field of a lora run; did you mean batch_size?"),
        ("lora", "rank", "rank is no field of a lora run; did you mean lora_rank?"),
        ("lora", "zzz", "zzz is no field of a lora run"),
        ("lora", "verdict_basis", "verdict_basis is no field of a lora run"),
        ("full", "lora_rank", "lora_rank is no field of a full run"),
        ("training", "kv_heads_override", "kv_heads_override is no field of a training run"),
        ("lora", "parameter_storage", "parameter_storage is no field of a lora run"),
    ],
)
def test_an_unknown_field_is_named_and_the_nearest_known(job: str, field: str, said: str) -> None:
    assert refused(lambda: make_run(job, {field: 1})).startswith(said)


def test_an_unknown_job_is_named() -> None:
    assert refused(lambda: make_run("qlora", {})) == "job is 'qlora'; it must be one of lora, full, training"
    assert refused(lambda: make_run("qlora", {}, where="a.toml, run 2")).startswith("a.toml, run 2: job is 'qlora'")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "config is "),
        ("", "which is not JSON"),
        ("{'model_type': 'llama'}", "which is not JSON"),
        ("[1, 2]", "which has no model_type"),
        ('{"hidden_size": 64}', "which has no model_type"),
        ('{"model_type": 5}', "which has no model_type"),
    ],
)
def test_a_config_that_no_model_can_be_made_of_is_refused_before_anything_runs(
    tmp_path: Path, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    sentence = refused(lambda: make_run("lora", {"config": str(tmp_path)}))
    assert said in sentence and str(tmp_path / "config.json") in sentence


# -- ids


def test_an_id_is_kept_as_given() -> None:
    assert make_run("lora", {}, id="=1+1, my run").id == "=1+1, my run"


def test_a_made_id_says_what_sets_the_run_apart() -> None:
    assert make_run("lora", {}).id.startswith("lora") and "=" not in make_run("lora", {}).id
    made = make_run("lora", {"batch_size": 4, "hidden_size_override": 64, "kbit_preparation": "On"}).id
    for part in ("lora", "TinyLlama-1.1B-Chat-v1.0", "batch-size=4", "hidden-size=64", "kbit-preparation=On"):
        assert part in made


@pytest.mark.parametrize(
    ("job", "field", "values"),
    [
        ("lora", "gpu_choice", ["NVIDIA L4", H100]),
        ("lora", "base_model", [TINY_LLAMA, "meta-llama/Llama-3.1-8B"]),
        ("full", "parameter_storage", ["fp32", "bf16"]),
        ("training", "parameter_storage", ["fp32", "bf16"]),
        ("lora", "attention_implementation", ["Flash or memory-efficient", "Eager, scores stored"]),
        ("lora", "weights", ["random", "acme/weights"]),
    ],
)
def test_runs_that_differ_in_one_field_have_ids_of_their_own(job: str, field: str, values: list[Any]) -> None:
    made = [make_run(job, {field: value}) for value in values]
    assert [run[field] for run in unique(made, "")] == values


def test_runs_that_differ_in_the_last_of_many_fields_have_ids_of_their_own() -> None:
    """A name that is cut at some length must not lose what it names."""
    tiny = {
        "hidden_size_override": 32, "layer_count_override": 2, "attention_heads_override": 2, "kv_heads_override": 1,
        "head_dimension_override": 16, "mlp_width_override": 64, "vocabulary_size_override": 64, "batch_size": 1,
        "sequence_length": 16, "activation_checkpointing": "On",
    }  # fmt: skip
    made = [make_run("lora", {**tiny, "lora_rank": rank, "target_down": down}) for rank in (4, 8) for down in ("On", "Off")]  # fmt: skip
    assert len(unique(made, "")) == 4
    assert all(len(run.id) <= 200 for run in made)


def test_two_runs_of_one_id_are_refused(tmp_path: Path) -> None:
    twice = '[[run]]\nid = "a"\n[[run]]\nid = "A"\nbatch_size = 4\n'
    assert fault(tmp_path, twice) == ": the id 'A' is there twice; give each run an id of its own"
    assert fault(tmp_path, "id,batch_size\na,1\nb,1\na,2\n", "s.csv").startswith(": the id 'a' is there twice")


@pytest.mark.parametrize("id", ["two\nlines", "a tab\tinside", "\x1b[31mred", "a\u202eb"])
def test_an_id_that_is_no_printable_line_is_refused(tmp_path: Path, id: str) -> None:
    """It stands in progress lines, in a CSV and in file names."""
    assert "id is " in fault(tmp_path, f"[[run]]\nid = {json.dumps(id)}\n")


# -- named sweeps


def measured(name: str) -> list[dict[str, str]]:
    path = paths.presets_folder() / "measured" / f"h100_{name}_sweep.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


SAME = {
    "compute_precision": {"bf16_autocast": "bf16 autocast", "fp32": "fp32"},
    "optimizer_choice": {"adam": "Adam", "adam8bit": "8-bit Adam"},
    "activation_checkpointing": {"true": "On", "false": "Off"},
}


def test_the_lora_sweep_is_the_25_measured_runs() -> None:
    runs, rows = named_sweep("lora"), measured("lora")
    assert [run.id for run in runs] == [row["id"] for row in rows] == [f"ft{at:02}" for at in range(1, 26)]
    for run, row in zip(runs, rows, strict=True):
        layers = row["adapter_layers"]
        said = {
            "batch_size": int(row["batch_size"]),
            "sequence_length": int(row["sequence_length"]),
            "lora_rank": int(row["lora_rank"]),
            "base_storage_format": row["base_storage"],
            "adapter_layers": layers if layers == "all" else int(layers.removeprefix("upper-")),
            "compute_precision": SAME["compute_precision"][row["compute"]],
            "optimizer_choice": SAME["optimizer_choice"][row["optimizer"]],
            "activation_checkpointing": SAME["activation_checkpointing"][row["checkpointing"]],
            "gpu_choice": H100,
            "base_model": TINY_LLAMA,
        }
        assert run.job == "lora" and {key: run[key] for key in said} == said
        others = {key: value for key, value in run.inputs.items() if key not in said}
        assert others == {key: declared("lora").inputs[key].default for key in others}


def test_the_training_sweep_is_the_24_measured_runs() -> None:
    runs, rows = named_sweep("training"), measured("training")
    assert [run.id for run in runs] == [row["id"] for row in rows] == [f"tr{at:02}" for at in range(1, 25)]
    for run, row in zip(runs, rows, strict=True):
        said = {
            "batch_size": int(row["batch_size"]),
            "sequence_length": int(row["sequence_length"]),
            "hidden_size_override": int(row["hidden_size"]),
            "layer_count_override": int(row["layers"]),
            "attention_heads_override": int(row["attention_heads"]),
            "mlp_width_override": int(row["ff_multiplier"]) * int(row["hidden_size"]),
            "vocabulary_size_override": int(row["output_width"]),
            "parameter_count_override": int(row["parameters"]),
            "compute_precision": SAME["compute_precision"][row["compute"]],
            "optimizer_choice": SAME["optimizer_choice"][row["optimizer"]],
            "activation_checkpointing": SAME["activation_checkpointing"][row["checkpointing"]],
            "parameter_storage": "fp32",
            "gpu_choice": H100,
        }
        assert run.job == "training" and {key: run[key] for key in said} == said


# -- TOML


def test_toml_runs_stand_over_defaults(tmp_path: Path) -> None:
    runs = sweep(
        tmp_path,
        """
        [defaults]
        base_model = "meta-llama/Llama-3.1-8B"
        batch_size = 2

        [[run]]
        id = "small"

        [[run]]
        id = "large"
        batch_size = 16
        steps = 5

        [[run]]
        id = "other"
        job = "training"
        base_model = "Article worked model (1.01B)"
        """,
    )
    assert [(run.id, run.job, run["batch_size"], run["steps"]) for run in runs] == [
        ("small", "lora", 2, 3),
        ("large", "lora", 16, 5),
        ("other", "training", 2, 3),
    ]
    assert runs[1]["base_model"] == "meta-llama/Llama-3.1-8B"


def test_toml_several_lists_are_all_their_combinations(tmp_path: Path) -> None:
    runs = sweep(tmp_path, '[[run]]\nid = "r"\nbatch_size = [1, 2]\noptimizer_choice = ["Adam", "8-bit Adam", "SGD"]\n')
    assert [(run["batch_size"], run["optimizer_choice"]) for run in runs] == [
        (batch, optimizer) for batch in (1, 2) for optimizer in ("Adam", "8-bit Adam", "SGD")
    ]
    assert len({run.id for run in runs}) == 6 and all(run.id.startswith("r") for run in runs)
    assert "batch_size=2" in runs[-1].id and "optimizer_choice=SGD" in runs[-1].id


def test_toml_lists_of_defaults_count_too_and_a_run_may_replace_them(tmp_path: Path) -> None:
    runs = sweep(
        tmp_path,
        "[defaults]\nbatch_size = [1, 2]\n[[run]]\nlora_rank = [4, 8]\n[[run]]\nbatch_size = 3\nlora_rank = 5\n",
    )
    assert [(run["batch_size"], run["lora_rank"]) for run in runs] == [(1, 4), (1, 8), (2, 4), (2, 8), (3, 5)]


def test_toml_a_list_of_jobs(tmp_path: Path) -> None:
    assert [run.job for run in sweep(tmp_path, '[[run]]\njob = ["lora", "full"]\n')] == ["lora", "full"]


def test_toml_ids_of_combinations_are_made_where_none_is_given(tmp_path: Path) -> None:
    runs = sweep(tmp_path, "[[run]]\nbatch_size = [1, 2, 3]\nlora_dropout = ['Off', 'On']\n")
    assert len({run.id for run in runs}) == 6


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", " holds no run; write at least one"),
        ("# nothing\n", " holds no run"),
        ("[defaults]\nbatch_size = 2\n", " holds no run"),
        ("run = []\n", " holds no run"),
        ("batch_size = \n", " is not TOML: "),
        ("[[run]\n", " is not TOML: "),
        ('[[run]]\nid = "a"\nid = "b"\n', " is not TOML: "),
        pytest.param("[[run]]\nbatch_size = " + "1" * 5000, " is not TOML: ", id="5,000 digits"),
        pytest.param("a = " + "[" * 100_000, " is not TOML: ", id="100,000 brackets"),
        ("[run]\nbatch_size = 2\n", ": write [defaults] once and [[run]], with two brackets, for each run"),
        ("[[defaults]]\nbatch_size = 2\n", ": write [defaults] once and [[run]]"),
        ("run = 5\n", ": write [defaults] once and [[run]]"),
        ("run = [5]\n", ", run 1 is 5; it must be a [[run]] table"),
        ("batch_size = 2\n[[run]]\n", ": batch_size is not known here; write [defaults] and [[run]] tables"),
        ("[[runs]]\nbatch_size = 2\n", ": runs is not known here; write [defaults] and [[run]] tables"),
        ("[[run]]\n[[run]]\nbatchsize = 2\n", ", run 2: batchsize is no field of a lora run; did you mean batch_size?"),
        ("[[run]]\nbatch_size = 0\n", ", run 1: batch_size is 0; it must be a whole number from 1 to 65,536"),
        ("[[run]]\nbatch_size = [1, 0]\n", ", run 1: batch_size is 0; it must be"),
        ("[[run]]\nbatch_size = []\n", ", run 1: a list is empty; give at least one value"),
        ("[[run]]\nbatch_size = [[1, 2]]\n", ", run 1: batch_size is [1, 2]; it must be"),
        ("[[run]]\nbatch_size = 2026-08-17\n", ", run 1: batch_size is datetime.date(2026, 8, 17); it must be"),
        ("[[run]]\nbatch_size = {a = 1}\n", ", run 1: batch_size is {'a': 1}; it must be"),
        ("[[run]]\nbatch_size = inf\n", ", run 1: batch_size is inf; it must be"),
        ('[[run]]\njob = "qlora"\n', ", run 1: job is 'qlora'; it must be one of lora, full, training"),
        ("[[run]]\nconfig = 5\n", ", run 1: config is 5; it must be a config.json"),
        ("[[run]]\nsteps = 2.5\n", ", run 1: steps is 2.5; it must be a whole number from 1 to 1,000"),
        ("[defaults]\nbatch_size = 0\n[[run]]\n", ", run 1: batch_size is 0; it must be"),
        ("[[run]]\nbatch_size = [1, 1]\n", ": the id "),
        (b'\xef\xbb\xbf[[run]]\nid = "\xff"\n', " is not UTF-8 text; save it as UTF-8"),
        ('[[run]]\nid = "a"\n'.encode("utf-16"), " is not UTF-8 text"),
    ],
)
def test_toml_what_is_wrong_is_named_with_file_run_field_and_value(
    tmp_path: Path, content: str | bytes, said: str
) -> None:
    assert fault(tmp_path, content).startswith(said)


def test_toml_with_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    (run,) = sweep(tmp_path, b'\xef\xbb\xbf[[run]]\r\nid = "\xc3\xa9"\r\nbatch_size = 3\r\n', "SWEEP.TOML")
    assert (run.id, run["batch_size"]) == ("é", 3)


def test_toml_more_combinations_than_a_sweep_may_have_are_refused_before_they_are_made(tmp_path: Path) -> None:
    lists = f"batch_size = {list(range(1, 2001))}\nsequence_length = {list(range(1, 1001))}\n"
    tracemalloc.start()
    sentence = fault(tmp_path, f"[[run]]\n{lists}")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sentence == " makes more than 10,000 runs; split it into smaller sweeps"
    assert peak < 30e6, f"two lists of thousands took {peak / 1e6:,.0f} MB; a third would fill the machine"


def test_toml_the_limit_counts_over_all_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "MOST_RUNS", 5)
    assert len(sweep(tmp_path, "[[run]]\nbatch_size = [1, 2, 3]\n[[run]]\nbatch_size = [4, 5]\n")) == 5
    assert "makes more than 5 runs" in fault(tmp_path, "[[run]]\nbatch_size=[1,2,3]\n[[run]]\nbatch_size=[4,5,6]\n")


# -- CSV


def test_csv_a_row_is_a_run_and_an_empty_cell_the_worked_job(tmp_path: Path) -> None:
    runs = sweep(
        tmp_path,
        "id,job,base_model,batch_size,optimizer_choice,gpu_capacity_override_gb\n"
        'a,,,4,"8-bit Adam",79.5\n'
        "\n"
        "b,training,,,,\n"
        " c , lora , , 16 , SGD , \n",
        "runs.csv",
    )
    assert [(run.id, run.job, run["batch_size"], run["optimizer_choice"]) for run in runs] == [
        ("a", "lora", 4, "8-bit Adam"),
        ("b", "training", 256, "Adam"),
        ("c", "lora", 16, "SGD"),
    ]
    assert runs[0]["gpu_capacity_override_gb"] == 79.5 and runs[1]["gpu_capacity_override_gb"] is None
    assert runs[0]["base_model"] == TINY_LLAMA


def test_csv_an_id_of_digits_stays_a_text_and_a_missing_one_is_made(tmp_path: Path) -> None:
    runs = sweep(tmp_path, "id,batch_size\n007,1\n,2\n", "s.csv")
    assert runs[0].id == "007" and "batch-size=2" in runs[1].id


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_csv_any_line_end_and_a_byte_order_mark(tmp_path: Path, end: str) -> None:
    runs = sweep(tmp_path, b"\xef\xbb\xbf" + end.join(["id,batch_size", "é,1", "b,2", ""]).encode(), "s.CSV")
    assert [(run.id, run["batch_size"]) for run in runs] == [("é", 1), ("b", 2)]


def test_csv_as_a_spreadsheet_writes_whole_numbers(tmp_path: Path) -> None:
    (run,) = sweep(tmp_path, "id,batch_size,steps\na,8.0,5.0\n", "s.csv")
    assert type(run["batch_size"]) is int and run["batch_size"] == 8
    assert type(run["steps"]) is int and run["steps"] == 5


def test_csv_a_folder_whose_name_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "123").mkdir()
    (tmp_path / "123" / "config.json").write_text('{"model_type": "llama"}')
    monkeypatch.chdir(tmp_path)
    (run,) = sweep(tmp_path, "id,config\na,123\n", "s.csv")
    assert run["config"] == "123" and run["base_model"] == "123"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", " holds no run; write at least one"),
        ("id,batch_size\n", " holds no run"),
        ("id,batch_size\n\n,\n", " holds no run"),
        ("id,batch_size,batch_size\na,1,2\n", ": a column is there twice; each field has one column"),
        ("id,batch_size\na,1\nb,1,2\n", ", line 3 has 3 cells; it should have 2, one for each column"),
        ("id,batch_size\n\na\n", ", line 3 has 1 cell; it should have 2"),
        ("id,batchsize\na,1\n", ", line 2: batchsize is no field of a lora run; did you mean batch_size?"),
        ("id;batch_size\na;1\n", ", line 2: id;batch_size is no field of a lora run"),
        ("id,batch_size\na,1\nb,many\n", ", line 3: batch_size is 'many'; it must be a whole number from 1 to 65,536"),
        ("id,batch_size\na,0\n", ", line 2: batch_size is 0; it must be"),
        ("id,batch_size\na,nan\n", ", line 2: batch_size is "),
        ("id,batch_size\na,1e999\n", ", line 2: batch_size is "),
        ("id,batch_size\na,1_000\n", ", line 2: batch_size is '1_000'; it must be"),
        ("id,job\na,qlora\n", ", line 2: job is 'qlora'; it must be one of lora, full, training"),
        ('id,batch_size\n"a,1\n', " is not CSV: "),
        ('id,batch_size\n"a"b,1\n', " is not CSV: "),
        pytest.param('id,batch_size\n"' + "a" * 200_000 + '",1\n', " is not CSV: ", id="a long cell"),
        ("id,batch_size\nä,1\n".encode("latin-1"), " is not UTF-8 text; save it as UTF-8"),
        ("id,batch_size\na,1\n".encode("utf-16"), " is not UTF-8 text"),
        (b"PK\x03\x04\xff\xfe\x00\x00", " is not UTF-8 text"),
    ],
)
def test_csv_what_is_wrong_is_named_with_file_line_field_and_value(
    tmp_path: Path, content: str | bytes, said: str
) -> None:
    assert fault(tmp_path, content, "runs.csv").startswith(said)


def test_csv_a_cell_below_no_name_is_named_by_its_column(tmp_path: Path) -> None:
    assert [run.id for run in sweep(tmp_path, "id,batch_size,\na,1,\n", "s.csv")] == ["a"]
    sentence = fault(tmp_path, "id,batch_size,\na,1,4\n", "s.csv")
    assert ":  is no field" not in sentence and "3" in sentence, "the third column has no name"


def test_csv_too_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "MOST_RUNS", 2)
    assert len(sweep(tmp_path, "id\na\nb\n", "s.csv")) == 2
    assert fault(tmp_path, "id\na\nb\nc\n", "s.csv") == " holds more than 2 runs; split it into smaller sweeps"


# -- what is no sweep at all


def test_a_sweep_that_is_not_there(tmp_path: Path) -> None:
    sentence = refused(lambda: read_sweep(tmp_path / "lorra"))
    assert sentence == (
        f"{tmp_path / 'lorra'} is neither a file nor a named sweep; it must be lora or training, or a .toml or .csv file"
    )
    assert "is neither a file nor a named sweep" in refused(lambda: read_sweep(tmp_path / "a\nb.toml"))


def test_a_sweep_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").mkdir()
    assert refused(lambda: read_sweep(tmp_path / "runs.csv")).endswith(" is a folder; a sweep is a .toml or .csv file")


def test_a_sweep_below_a_file_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n")
    assert refused(lambda: read_sweep(tmp_path / "a.csv" / "b.csv")).startswith(str(tmp_path / "a.csv" / "b.csv"))


@pytest.mark.parametrize("name", ["runs.json", "runs.xlsx", "runs", "runs.toml.txt"])
def test_a_sweep_of_another_kind(tmp_path: Path, name: str) -> None:
    sentence = fault(tmp_path, "[[run]]\n", name)
    assert sentence == f" ends in {Path(name).suffix!r}; a sweep is a .toml or .csv file"


def test_a_sweep_that_is_too_large(tmp_path: Path) -> None:
    comment = b"#" * LONGEST_FILE
    assert fault(tmp_path, comment) == " holds no run; write at least one"
    assert fault(tmp_path, comment + b"\n") == " is larger than 10,000,000 bytes; split it into smaller sweeps"


# -- there and back


def _fields(job: str) -> st.SearchStrategy[dict[str, Any]]:
    """Valid fields of a run of a job; now and then one is left out."""
    formulas: Job = declared(job)
    storage = declared("training").inputs["parameter_storage"].domain
    assert isinstance(storage, Choice)

    def build(seed: int) -> dict[str, Any]:
        rng = random.Random(seed)
        drawn = {key: value for key, value in random_inputs(formulas, rng).items() if key in input_names(job)}
        if job == "full":
            drawn["parameter_storage"] = rng.choice(declared("training").tables[storage.table].keys)
        more = {
            "steps": rng.randint(1, 1000),
            "loss_kernel": rng.choice(("stock", "Liger")),
            "weights": rng.choice(("random", "acme/one, two", "=x")),
        }
        return {key: value for key, value in {**drawn, **more}.items() if value is not None and rng.random() < 0.8}

    return st.integers(0, 2**32 - 1).map(build)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(JOBS)), st.data())
def test_a_run_goes_through_a_row_and_back(job: str, data: st.DataObject) -> None:
    fields = data.draw(_fields(job))
    run = make_run(job, fields, id=data.draw(st.sampled_from(["", "a", "=1+1"])))
    for key, value in fields.items():
        assert run[key] == value
    row = run.as_row()
    assert list(row) == ["id", "job", *input_names(job), *SETTINGS]
    assert from_rows([row]) == [run]
    assert from_rows([json.loads(json.dumps(row))]) == [run], "through the pipe to a worker"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sweeps")


@settings(max_examples=30, deadline=None)
@given(job=st.sampled_from(list(JOBS)), data=st.data())
def test_a_run_goes_through_a_csv_and_back(job: str, data: st.DataObject, folder: Path) -> None:
    run = make_run(job, data.draw(_fields(job)))
    text = io.StringIO()
    writer = csv.DictWriter(text, list(run.as_row()))
    writer.writeheader()
    writer.writerow(run.as_row())
    assert sweep(folder, text.getvalue(), "again.csv") == [run]


def test_two_rows_come_back_in_their_order() -> None:
    runs = [*named_sweep("training")[:2], *named_sweep("lora")[:2]]
    assert from_rows(run.as_row() for run in runs) == runs

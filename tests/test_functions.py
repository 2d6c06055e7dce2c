"""The Excel functions in Python: golden vectors, names, refusals, the reference page and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engines import close
from function_vectors import FILE, read, vectors

from sizing_xlsx import functions
from sizing_xlsx.cli import main
from sizing_xlsx.functions import Fault, call, page, registered
from sizing_xlsx.functions.desk import Desk
from sizing_xlsx.functions.names import Names
from sizing_xlsx.functions.signature import TABLE, described
from sizing_xlsx.jobs import JOBS, job
from sizing_xlsx.presets.catalogue import load_presets

ROOT = Path(__file__).parents[1]
LLAMA, H100 = "Llama-3.1-8B", "H100 SXM5 80GB"
CONFIG = json.dumps(
    {
        "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": True,
    }
)  # fmt: skip


def test_the_vectors_are_those_that_the_plain_functions_give() -> None:
    assert read() == json.loads(json.dumps(vectors())), f"{FILE.name}: write it anew, and see what moved"


@pytest.mark.parametrize("vector", read(), ids=lambda vector: f"{vector['id']}-{vector['function']}")
def test_a_golden_vector(vector: dict[str, Any]) -> None:
    try:
        found = call(vector["function"], **vector["arguments"])
    except Fault as fault:
        assert fault.code == vector.get("error"), fault
        return
    assert "error" not in vector
    right = vector["value"]
    assert found is right if isinstance(right, bool) else close(found, right)


def test_there_are_enough_of_them() -> None:
    cases = read()
    assert len(cases) >= 300
    assert sum("error" in case for case in cases) >= 50
    scalar = {name for name, function in registered().items() if function.result.kind != TABLE}
    assert {case["function"] for case in cases} == scalar


@pytest.mark.parametrize("function", registered().values(), ids=lambda function: function.name)
def test_examples_and_facts(function: functions.signature.Function) -> None:
    desk = functions.default_desk()
    assert function.examples and function.help
    for example in function.examples:
        value = call(function.name, **example)
        assert isinstance(value, list) == (function.result.kind == TABLE)
        if isinstance(value, list):
            assert len({len(row) for row in value}) == 1 and len(value) > 1
            assert all(cell is None or isinstance(cell, (str, int, float)) for row in value for cell in row)
        given = [example.get(name) for name in function.arguments]
        assert call(function.name.lower(), *given) == value
    for argument in described(function, desk):
        assert argument.help and argument.allowed and argument.name in function.arguments


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("LLAMA-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("gpt2", "openai-community/gpt2"),
        ("gpt2 large", "openai-community/gpt2-large"),
        ("tinyllama", "TinyLlama/TinyLlama-1.1B-Chat-v1.0"),
        ("  falcon-7b ", "tiiuae/falcon-7b"),
    ],
)
def test_a_model_by_a_short_name(text: str, name: str) -> None:
    assert functions.default_desk().names("models").resolve("model", text, "#N/A") == name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Lama-3.1-8B", "did you mean meta-llama/Llama-3.1-8B?"),
        ("Llama", "it may mean "),
        ("lama", "it is none of the"),
        ("x" * 5000, "it is none of the"),
        ("Mistral", "and "),
    ],
)
def test_a_name_that_means_none_or_several(text: str, told: str) -> None:
    with pytest.raises(Fault, match="model is") as refused:
        functions.default_desk().names("models").resolve("model", text, "#N/A")
    assert told in str(refused.value) and refused.value.code == "#N/A" and len(str(refused.value)) < 600


def test_a_name_that_is_a_part_of_others_is_itself() -> None:
    names = Names(["a/one", "b/one-two", "c/two", "c/two two"], "thing", {"uno": "a/one", "none": "nothing"})
    assert names.find("one") == "a/one"
    assert names.find("UNO") == "a/one"
    assert names.find("two") == "c/two"
    for text in ("none", "on", "wo", "", "/"):
        with pytest.raises(ValueError):
            names.find(text)


@pytest.mark.parametrize(
    ("name", "given", "named", "told"),
    [
        ("GPU_FITZ", (), {}, "function is 'GPU_FITZ'; there is none of that name; did you mean GPU_FITS?"),
        ("GPU_FITS", (), {}, "model is empty; GPU_FITS needs it"),
        ("GPU_FITS", (LLAMA, "  "), {}, "gpu is empty; GPU_FITS needs it"),
        ("GPU_FITS", (LLAMA, H100), {"batch": 8}, "batch is no argument of GPU_FITS; did you mean batch_size?"),
        ("GPU_FITS", (LLAMA, H100), {"gpu": H100}, "gpu was given to GPU_FITS twice"),
        ("GPU_LIST", (1, 2, 3), {}, "GPU_LIST was called with 3 arguments; it takes at most 1"),
        ("GPU_FITS", (LLAMA, H100, [[1, 2]]), {}, "batch_size is a range of"),
        ("GPU_FITS", (LLAMA, H100, "#DIV/0!"), {}, "batch_size is the error #DIV/0!"),
        ("GPU_FITS", ("#N/A", H100), {}, "model is the error #N/A"),
        ("GPU_FITS", (LLAMA, H100, 8, "y" * 40_000), {}, "sequence_length has 40,000 characters"),
        ("MODEL_FROM_CONFIG", ("config.json",), {}, "config is no JSON object"),
        ("MODEL_FROM_CONFIG", ('{"hidden_size": -1}',), {}, "config: "),
        ("GPU_LIST", ("Cray",), {}, "contains is 'Cray'; no card has that in its name"),
        ("MODEL_LIST", ("nothing like it",), {}, "no model has that in its name"),
    ],
)
def test_a_call_that_is_refused(name: str, given: tuple[Any, ...], named: dict[str, Any], told: str) -> None:
    with pytest.raises(Fault) as refused:
        call(name, *given, **named)
    assert told in str(refused.value)


def test_a_range_of_one_cell_is_its_cell() -> None:
    assert call("GPU_HEADROOM", [[LLAMA]], [H100], ((8,),), 512) == call("GPU_HEADROOM", LLAMA, H100, 8, 512)


def test_a_model_from_its_config() -> None:
    found = dict(call("MODEL_FROM_CONFIG", CONFIG)[1:])
    assert found["parameters_total"] == 1_235_814_400
    assert found["kv_values_per_token_per_layer"] == 1024
    assert "max_position_embeddings" in found["assumed"]


def test_a_breakdown_adds_up() -> None:
    rows = dict(call("GPU_BREAKDOWN", LLAMA, H100, 2, 1024, job="QLoRA")[1:])
    items = list(rows)[: list(rows).index("Peak")]
    assert abs(sum(rows[item] for item in items) - rows["Peak"]) < 1e-9
    assert abs(rows["Peak"] + rows["Reserve, at most"] - rows["Total to size against"]) < 1e-9
    assert rows["Total to size against"] == call("GPU_MEMORY", LLAMA, H100, 2, 1024, job="QLoRA")


def test_a_desk_over_other_presets(tmp_path: Path) -> None:
    """Own models and cards are there by their names, and the desk of the package is none the wiser."""
    (tmp_path / "config.json").write_text(CONFIG)
    cards = tmp_path / "cards.csv"
    cards.write_text("name,usable_gib\nRack 7,40\n")
    desk = Desk(load_presets(models=[tmp_path / "config.json"], gpus=[cards]))
    own = next(row.name for row in desk.presets.own if row.table == "models")
    assert call("GPU_FITS", own, "rack 7", 1, 512, at=desk) is True
    assert call("GPU_INFO", "Rack 7", at=desk) == 40 * 2**30 / 1e9
    with pytest.raises(Fault, match="gpu is 'Rack 7'"):
        call("GPU_FITS", LLAMA, "Rack 7")


def test_the_reference_page_is_made_from_the_registry() -> None:
    assert (ROOT / "docs" / "functions.md").read_text(encoding="utf-8") == page.markdown()


def test_every_keyword_sizes_a_job() -> None:
    for keyword in functions.default_desk().vocabulary.jobs.values():
        model = job(keyword.job).choices("base_model")[0]
        assert call("GPU_MEMORY", model, H100, 1, 64, job=keyword.name) > 0
        wanted = {**keyword.inputs, "base_model": model, "batch_size": 1, "sequence_length": 64}
        wanted["gpu_choice"] = f"NVIDIA {H100}"
        size = job(keyword.job).size(["total_reserved_gb"], **wanted)
        assert call("GPU_MEMORY", model, H100, 1, 64, job=keyword.name) == size["total_reserved_gb"]


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["function"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in registered())
    assert main(["function", "gpu_fits"]) == 0
    assert '=GPU_FITS("Llama-3.1-8B", "H100 SXM5 80GB", 8, 2048)' in capsys.readouterr().out
    assert main(["function", "GPU_FITS", LLAMA, H100, "2", "1024"]) == 0
    assert capsys.readouterr().out == "TRUE\n"
    assert main(["function", "GPU_MEMORY", LLAMA, H100, "2", "1024", "job=qlora", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == call("GPU_MEMORY", LLAMA, H100, 2, 1024, job="QLoRA")
    assert main(["function", "GPU_FITS", "Lama", H100]) == 1
    assert "#N/A model is 'Lama'" in capsys.readouterr().err
    assert main(["function", "GPU_FITZ"]) == 2
    assert "did you mean GPU_FITS?" in capsys.readouterr().err
    assert main(["function", "GPU_LIST", "H100"]) == 0
    assert capsys.readouterr().out.startswith("Card\tUsable GB\tUSD per hour\n")


def test_importing_functions_is_light() -> None:
    heavy = ("numpy", "pandas", "torch", "transformers", "openpyxl", "xlsxwriter", "xlwings", "lxml")
    program = (
        "import sys; from sizing_xlsx import functions; "
        f"assert functions.call('GPU_FITS', {LLAMA!r}, {H100!r}, 2, 1024); "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------------- the command, and the sheet
@pytest.mark.parametrize(("typed", "said"), [
    (["GPU_FITS", "tinyllama", "l4", "lora_rnk=5"], "lora_rnk is no argument of GPU_FITS; did you mean lora_rank?"),
    (["GPU_FITS", "tinyllama", "l4", "batch_size=2", "BATCH_SIZE=4"], "batch_size is given twice, as '2' and '4'"),
    (["GPU_FITS", "tinyllama", "l4", "activation_checkpointing=1"], "it must be one of Off; On"),
    (["GPU_FITS", "tinyllama", "l4", "job=Training"], "it must be one of Article worked model (1.01B); "),
    (["GPU_INFO", "l4", "colour"], "it must be one of usable_gb; "),
])  # fmt: skip
def test_a_wrong_call_on_the_command_line_says_what_is_right(
    typed: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["function", *typed]) != 0
    assert said in capsys.readouterr().err


def test_names_of_arguments_count_without_regard_to_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["function", "GPU_FITS", "gpu=l4", "model=tinyllama", "BATCH_SIZE=2", "Activation_Checkpointing=true"])
        == 0
    )
    assert capsys.readouterr().out == "TRUE\n"


def test_arguments_that_only_another_job_has_are_left_out() -> None:
    desk = functions.default_desk()
    of = {job: {one.name: one for one in described(registered()["GPU_FITS"], desk, job)} for job in JOBS}
    assert "lora_rank" in of["lora"] and "lora_rank" not in of["training"]
    assert [of[job]["job"].default for job in JOBS] == ["LoRA", "Training", "Full fine-tuning"]
    assert [of[job]["batch_size"].default for job in JOBS] == ["8", "256", "1"]
    assert of["training"]["model"].allowed == "one of the 9 training models listed"

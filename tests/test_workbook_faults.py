"""What a planner may type wrongly: no verdict, no figure, and a sentence that says which input, what it is and what
would be right; as it was before when it is mended. And what is only a warning, or rests on the published figures."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from conftest import RESULTS, Book, Opened
from engines import ErrorValue, Formualizer, LibreOffice
from strategies import random_inputs

from sizing_xlsx.formula.domains import allowed
from sizing_xlsx.formula.job import names_of
from sizing_xlsx.formula.render import public_name
from sizing_xlsx.jobs import job as declared_job

EVERY = {"Formualizer": 1, "LibreOffice": 4}  # the slower engine tries a part of the wrong values
FIGURES = ("Total to size against", "Usable capacity", "Headroom", "Utilisation of the card")
OFF = {f"target_{name}": "Off" for name in ("query", "key", "value", "output", "gate", "up", "down")}

# What is typed into one input, and how the sentence shows it.
NUMBERS = [
    (0, "0"),
    (-1, "-1"),
    (2.5, "2.5"),
    ("eight", "eight"),
    (None, "empty"),
    ("8", "8 (text)"),
    (70_000, "70000"),
]
BOTH = [
    *(("batch_size", typed, shown) for typed, shown in NUMBERS),
    ("sequence_length", 0, "0"),
    ("sequence_length", 2_000_000, "2000000"),
    ("gradient_accumulation", 0, "0"),
    ("average_sequence_length", 0, "0"),
    *(
        ("base_model", typed, shown)
        for typed, shown in (("nobody/none", "nobody/none"), ("*", "*"), ("?", "?"), (5, "5"))
    ),
    *(("base_model", typed, shown) for typed, shown in (("~", "~"), ("*a*", "*a*"), (None, "empty"))),
    *(("gpu_choice", typed, typed) for typed in ("H100", "*", "NVIDIA H100 SXM5 80G?")),
    *(("compute_precision", typed, typed) for typed in ("int3", "*", "fp3?")),
    ("optimizer_choice", "AdamW", "AdamW"),
    ("activation_checkpointing", "Yes", "Yes"),
    ("activation_checkpointing", 1, "1"),
    ("verdict_basis", "Both", "Both"),
    *(("gpu_capacity_override_gb", typed, shown) for typed, shown in ((-1, "-1"), (0, "0"), ("eighty", "eighty"))),
    *(("hidden_size_override", typed, shown) for typed, shown in (("abc", "abc"), (0, "0"), (-5, "-5"), (2.5, "2.5"))),
    ("matrix_workspace_bytes_override", -1, "-1"),
    ("other_tenants_gb", -1, "-1"),
    ("other_tenants_gb", None, "empty"),
    ("outside_pytorch_gb_override", "a", "a"),
    ("published_context_gb_override", -1, "-1"),
]
FAULTS: dict[str, list[tuple[str, Any, str]]] = {
    "lora": [
        *BOTH,
        *(("lora_rank", typed, shown) for typed, shown in ((0, "0"), (1.5, "1.5"), (None, "empty"), (9_000, "9000"))),
        *(("adapter_layers", typed, shown) for typed, shown in ((23, "23"), ("most", "most"), ("a*", "a*"), (0, "0"), (None, "empty"))),
        ("adapter_targets", "*", "*"),
        ("base_storage_format", "nf4", "nf4"),
        ("target_down", "off?", "off?"),
    ],
    "training": [*BOTH, ("parameter_storage", "fp16", "fp16"), ("parameter_count_override", 0, "0")],
    "full": [
        *(fault for fault in BOTH if fault[0] in declared_job("full").inputs),
        ("gpu_count", 0, "0"),
        ("training_recipe", "soap", "soap"),
    ],
}  # fmt: skip
# Inputs that are right one by one and wrong together, and what the sentence then says.
CONTRADICTIONS: dict[str, list[tuple[dict[str, Any], tuple[str, ...]]]] = {
    "lora": [
        ({"attention_heads_override": 33}, ("Attention heads is 33", "multiple of", "which is 4")),
        ({"kv_heads_override": 5}, ("Attention heads is 32", "multiple of", "which is 5")),
        ({"adapter_targets": "Own choice", **OFF}, ("Adapter targets is Own choice", "reaches no module", "On")),
        ({"gpu_choice": "NVIDIA H100 NVL"}, ("NVIDIA H100 NVL", "capacity is not known", "GB")),
        ({"layer_count_override": 10, "adapter_layers": 11}, ("Adapter layers is 11", "all")),
    ],
    "training": [
        ({"attention_heads_override": 15}, ("Attention heads is 15", "divide", "2,048")),
        ({"parameter_storage": "bf16", "compute_precision": "fp32"}, ("Parameter storage is bf16", "fp32", "bf16 autocast")),
        ({"gpu_choice": "NVIDIA H100 NVL"}, ("NVIDIA H100 NVL", "capacity is not known", "GB")),
    ],
    "full": [
        ({"gpu_count": 3, "tensor_parallel": 2}, ("GPUs is 3", "multiple")),
        ({"gpu_choice": "NVIDIA H100 NVL"}, ("NVIDIA H100 NVL", "capacity is not known", "GB")),
    ],
}  # fmt: skip


def assert_withdrawn(opened: Opened, count: int | None = None) -> None:
    """No verdict and no number in the strip, and the words that say so."""
    assert opened["Fit_Verdict"] == "CHECK INPUT"
    failed = opened["Checks_Failed"]
    assert failed == count if count else isinstance(failed, float) and failed > 0
    strip = opened.strip()
    assert [strip[label] for label in FIGURES] == [["–", "–"]] * len(FIGURES)
    assert strip["Verdict"] == ["CHECK INPUT", "No verdict until corrected"]
    assert "fail" in str(strip["Checks"][0])
    assert all(
        isinstance(value, str) and not isinstance(value, ErrorValue) for pair in strip.values() for value in pair
    )
    assert "_" not in opened.sentence, f"a name of the code: {opened.sentence}"


def assert_as_built(opened: Opened) -> None:
    """Every formula has its first value again."""
    opened.type()
    assert opened.differences(opened.book.cached) == []


def test_a_wrong_input_withdraws_the_verdict_and_is_named(opened: Opened) -> None:
    job = opened.book.job
    for key, typed, shown in FAULTS[opened.book.name][:: EVERY[type(opened.engine).__name__]]:
        opened.type({key: typed})
        declared = job.inputs[key]
        right = allowed(job, key) + (", or empty" if declared.optional else "")
        right = right.replace("the layer count", "22")  # a bound that is a term is said as the number it is
        assert opened.sentence == f"{declared.label} is {shown}; enter {right}.", (key, typed)
        assert_withdrawn(opened, 1)
    assert_as_built(opened)


def test_inputs_that_contradict_each_other_withdraw_the_verdict(opened: Opened) -> None:
    for inputs, words in CONTRADICTIONS[opened.book.name]:
        opened.type(inputs)
        assert [word for word in words if word not in opened.sentence] == [], opened.sentence
        assert_withdrawn(opened)
    assert_as_built(opened)


def test_any_mixture_of_faults_over_any_job_is_caught(opened: Opened) -> None:
    """A fault must not spoil the check of another input: a bound that hangs on the model, a sum over the checks."""
    job, rng = opened.book.job, random.Random(7)
    for _ in range({"Formualizer": 40, "LibreOffice": 6}[type(opened.engine).__name__]):
        inputs = random_inputs(job, rng)
        wrong = rng.sample(list(inputs), rng.randint(1, 3))
        for key in wrong:
            odd = (-1, "nothing", "*", 1e30) if job.inputs[key].optional else (-1, "nothing", "*", 1e30, None)
            inputs[key] = rng.choice(odd)
        opened.type(inputs)
        if job.beside.issuperset(wrong):
            assert opened["Checks_Failed"] == 0, wrong
        else:
            assert_withdrawn(opened)
            assert opened["First_Time_And_Cost_Fault"] == opened.sentence
        for key in wrong:  # what bounds the adapter layers may itself be unknown
            assert key == "adapter_layers" or opened[public_name(key) + "_Fault"] == 1, (key, inputs)
        said = str(opened["First_Time_And_Cost_Fault"])
        assert re.match(r".+ is .+; enter .+\.$", said), said


# A wrong input, what contradicts itself beside it, and the rule that says so: none of them rests on the wrong one.
BESIDE = {
    "lora": ({"batch_size": 0}, {"attention_heads_override": 33}, "heads_divide"),
    "training": ({"batch_size": 0}, {"attention_heads_override": 15}, "heads_divide"),
    "full": ({"batch_size": 0}, {"gpu_count": 3, "tensor_parallel": 2}, "degrees_divide_cards"),
}
NOT_JUDGED = "Not judged: an input that it rests on is wrong."


def told_of_rules(opened: Opened) -> dict[str, tuple[Any, Any]]:
    """Each rule and warning of the job, with its fault and its words on Checks."""
    job, found = opened.book.job, {}
    for key in job.checks:
        if key not in job.beside:
            sheet, row, column = opened.engine.cell(f"{public_name(key)}_Fault")
            found[key] = (opened[sheet, row, column], opened[sheet, row, column + 2])
    return found


def test_a_rule_is_judged_where_its_own_inputs_are_right_and_says_so_where_not(opened: Opened) -> None:
    job = opened.book.job
    wrong, contradiction, broken = BESIDE[opened.book.name]
    moved = job.depends_on(wrong)
    opened.type(wrong)
    alone = told_of_rules(opened)
    assert_withdrawn(opened, 1)
    opened.type({**wrong, **contradiction})
    both = told_of_rules(opened)
    for key, (fault, words) in (*alone.items(), *both.items()):
        if words == NOT_JUDGED:
            assert fault == 0 and not moved.isdisjoint({key, *names_of(job.checks[key].message)}), key
        else:
            assert isinstance(words, str) and not isinstance(words, ErrorValue) and words, key
            assert (fault == 1) == (words != "–"), (key, words)
    assert NOT_JUDGED in {words for _, words in alone.values()} != {NOT_JUDGED}
    failing = [key for key, (fault, _) in both.items() if fault and job.checks[key].fault]
    assert broken in failing
    assert_withdrawn(opened, 1 + len(failing))
    assert opened.sentence.startswith(job_label(opened, next(iter(wrong))))
    opened.type()
    assert NOT_JUDGED not in {words for _, words in told_of_rules(opened).values()}


def test_a_number_of_adapter_layers_does_not_hide_an_unknown_model(opened: Opened) -> None:
    if opened.book.name != "lora":
        pytest.skip("this workbook has no adapters")
    for inputs in (
        {"base_model": "*"},
        {"base_model": None},
        {"layer_count_override": "x"},
        {"layer_count_override": 0},
    ):
        opened.type(inputs, adapter_layers=3)
        assert_withdrawn(opened, 1)
        assert opened.sentence.startswith(job_label(opened, next(iter(inputs))))


def job_label(opened: Opened, key: str) -> str:
    """What a reader calls an input."""
    return opened.book.job.inputs[key].label


def test_several_faults_are_counted_and_the_first_is_named(opened: Opened) -> None:
    wrong = {"batch_size": 0, "sequence_length": "x", "gpu_choice": "none"}
    opened.type(wrong)
    first = next(key for key in opened.book.job.inputs if key in wrong)
    assert opened.sentence.startswith(f"{job_label(opened, first)} is {wrong[first]};")
    assert_withdrawn(opened, 3)


def test_no_number_or_error_is_shown_on_sizing_and_start_while_an_input_is_wrong(opened: Opened) -> None:
    """All that may still show a number: inputs, fixed cells, and figures that are no result of the job."""
    for inputs in (
        {"batch_size": "eight"},
        {"gpu_choice": "H100"},
        {"base_model": "*"},
        {"gpu_capacity_override_gb": -1},
    ):
        opened.type(inputs)
        for sheet in ("Start", "Sizing"):
            places = [place for place in opened.book.formulas if place[0] == sheet]
            shown = dict(zip(places, opened.engine.get_many(places), strict=True))
            assert [place for place, value in shown.items() if type(value) is not str] == [], inputs


def test_a_formula_that_fails_in_an_input_is_a_fault_in_words(opened: Opened) -> None:
    """Inputs are unlocked: someone links one to another workbook, and the link breaks."""
    if not isinstance(opened.engine, Formualizer):
        pytest.skip("one engine is enough: only this one types formulas here")
    for key in ("batch_size", "base_model", "gpu_capacity_override_gb", "hidden_size_override"):
        for formula in ("=1/0", "=NA()", '=""'):
            opened.engine._book.set_formula(*opened.engine.cell(public_name(key)), formula)
            opened.engine.recalculate()
            opened.typed[key] = formula  # so that type() sets the cell again
            assert re.match(rf"{opened.book.job.inputs[key].label} is [^;]*\w[^;]*; enter ", opened.sentence), (
                key,
                formula,
            )
            assert_withdrawn(opened, 1)
            opened.type()


def test_true_is_no_number(opened: Opened) -> None:
    if isinstance(opened.engine, LibreOffice):
        pytest.skip("LibreOffice knows no truth values, only the numbers 1 and 0")
    for key in ("batch_size", "gpu_capacity_override_gb", "activation_checkpointing", "base_model"):
        opened.type({key: True})
        assert opened.sentence.startswith(f"{opened.book.job.inputs[key].label} is TRUE; enter ")
        assert_withdrawn(opened, 1)


def test_choices_and_all_are_taken_without_regard_to_case(opened: Opened) -> None:
    job = opened.book.job
    typed = {
        "activation_checkpointing": "oN",
        "gpu_choice": "nvidia h100 sxm5 80gb",
        "compute_precision": "BF16 Autocast",
    }
    same: dict[str, Any] = {"activation_checkpointing": "On", "gpu_choice": "NVIDIA H100 SXM5 80GB"}
    if opened.book.name == "lora":
        typed |= {"adapter_layers": "ALL", "base_model": str(job.worked["base_model"]).upper()}
    opened.type(typed)
    values = job.reference(same)
    assert opened["Checks_Failed"] == 0
    assert opened["Total_Reserved_GB"] == pytest.approx(values["total_reserved_gb"], rel=1e-12)


@pytest.mark.parametrize("kind", ["required", "optional", "together"])
def test_results_hold_no_number_while_an_input_is_wrong(opened: Opened, kind: str) -> None:
    """What other sheets and programs read by name must not be taken for an answer."""
    cases: dict[str, list[dict[str, Any]]] = {
        "required": [{"batch_size": 0, "sequence_length": 0, "gpu_choice": "none"}],
        "optional": [{"hidden_size_override": -5}, {"hidden_size_override": "abc"}, {"gpu_capacity_override_gb": 0}],
        "together": [inputs for inputs, _ in CONTRADICTIONS[opened.book.name]],
    }
    if opened.book.name == "lora":
        cases["required"] = [*cases["required"], {"adapter_layers": 23}, {"adapter_layers": "most"}]
    for inputs in cases[kind]:
        opened.type(inputs)
        left = {name: opened[name] for name in RESULTS if isinstance(opened[name], float)}
        if "gpu_capacity_override_gb" not in inputs and inputs.get("gpu_choice") != "none":
            left.pop("GPU_Usable_Capacity_GB", None)  # a fact of the card, not of the job; 0 where it is not known
        assert left == {}, inputs


def test_a_faulty_value_draws_no_chart(opened: Opened) -> None:
    """The memory chart's activations and the totals on the axes are #N/A or a dash, whatever kind of input is wrong."""
    read = ("Activation_Item_GB", "Total_Reserved_GB")
    cells = [p for p, f in opened.book.formulas.items() if p[0] == "Chart data" and any(name in f for name in read)]
    assert len(cells) >= 2
    for inputs in ({"batch_size": 0}, {"hidden_size_override": -5}):
        opened.type(inputs)
        assert [place for place in cells if isinstance(opened[place], float)] == [], inputs


def test_a_sequence_beyond_the_model_is_a_warning_and_still_sized(opened: Opened) -> None:
    job = opened.book.job
    table = job.tables[job.inputs["base_model"].domain.table]  # type: ignore[union-attr]
    limited = next((key for key in table.keys if table.maximum_positions[table.row_of(key)] == 2048), None)
    if limited is None:
        pytest.skip("no model of this workbook has a longest sequence")
    opened.type({"base_model": limited, "sequence_length": 2048})
    before = opened["Warnings_Raised"], opened["First_Warning"]  # sharding that nobody traced is one already
    assert (before[0] == 0) == (before[1] == "none") and "2,048 tokens" not in str(before[1])
    opened.type({"base_model": limited, "sequence_length": 2049})
    assert opened["Warnings_Raised"] == before[0] + 1
    assert opened["Checks_Failed"] == 0
    assert opened["Fit_Verdict"] in ("fits", "tight", "does not fit")
    assert all(isinstance(opened[name], float) for name in RESULTS)
    assert str(opened["First_Warning"]).startswith("Sequence length is 2,049;")
    assert "2,048 tokens" in str(opened["First_Warning"])
    assert "warning" in str(opened.strip()["Checks"][1])
    opened.type({"base_model": limited, "sequence_length": 2048})
    assert (opened["Warnings_Raised"], opened["First_Warning"]) == before


# What is wrong with inputs of time, and what its sentence says: no verdict rests on them.
OF_TIME: list[tuple[dict[str, Any], str]] = [
    ({"epoch_count": 0}, "Epochs is 0; enter a number from 0.001 to 10,000."),
    ({"training_tokens": "many"}, "Own tokens is many; enter a whole number from 1 to"),
    ({"deadline_date": 5}, "Deadline is no such day; enter a date from 2000-01-01 to 2099-12-31, or empty."),
    ({"deadline_date": "soon"}, "Deadline is soon; enter a date"),
    ({"today_date": 46_000, "deadline_date": 45_999}, "Deadline is 2025-12-08, 1 day before Today 2025-12-09; it"),
    ({"deadline_date": 46_030}, "Deadline is 2026-01-08 without Today; enter the day of the plan"),
    (
        {"own_mfu_low": 0.5, "own_mfu_expected": 0.4},
        "Own share, low is 0.500, Own share, expected 0.400 and Own share, high 0.",
    ),
    ({"average_sequence_length": 5_000}, "Average sequence is 5,000, by which the tokens of a run are counted; it"),
]
# The same of money: no hours rest on them either.
OF_COST: list[tuple[dict[str, Any], str]] = [
    ({"own_utilisation": 1.2}, "Use of own cards is 1.2; enter a number from 0.001 to 1."),
    ({"own_price_per_hour": 2}, "Own price is 2.00 without Date of own price; enter the day"),
    ({"storage_price": -1}, "Storage price is -1; enter a number from 0 to 1,000, or empty."),
    ({"currency_per_usd": 1.2}, "Currency per USD is 1.2000 with Currency USD; it must be 1 there, or empty."),
    ({"own_price_date": 46_001, "today_date": 46_000}, "Date of own price is 2025-12-10, after Today 2025-12-09; a"),
    ({"currency_choice": "EUR"}, "Currency is EUR without Currency per USD; enter what one US dollar is worth"),
]


def test_a_fault_of_time_and_cost_withdraws_these_alone(opened: Opened) -> None:
    """As in Python, where a wrong price leaves the verdict on memory as it is."""
    memory, time, money = (
        ["Fit_Verdict", *RESULTS],
        ["Run_Hours", "GPU_Hours", "Checkpoint_GB"],
        ["Rent_Cost", "Own_Cost"],
    )
    opened.type()
    assert all(isinstance(opened[name], float) for name in (*time, *money))
    for faults, kept, gone in ((OF_TIME, memory, (*time, *money)), (OF_COST, (*memory, *time), money)):
        opened.type()
        right = {name: opened[name] for name in kept} | {"Checks_Failed": 0, "Time_And_Cost_Checks_Failed": 1}
        right["Time_Checks_Failed"] = int(faults is OF_TIME)
        for inputs, said in faults:
            assert opened.book.job.beside.issuperset(inputs) or [*inputs] == ["average_sequence_length"]  # only told
            opened.type(inputs)
            assert opened.differences(right) == [], inputs
            assert str(opened["First_Time_And_Cost_Fault"]).startswith(said), opened["First_Time_And_Cost_Fault"]
            assert opened["Time and cost", 2, 2] == opened["Checks", 2, 2] == opened["First_Time_And_Cost_Fault"]
            assert [name for name in gone if not isinstance(opened[name], ErrorValue)] == [], inputs
    opened.type({"batch_size": 0})
    assert opened["First_Time_And_Cost_Fault"] == opened["First_Fault"] == opened["Time and cost", 2, 2]
    assert_as_built(opened)


def test_checks_shows_dates_as_dates(book: Book) -> None:
    from openpyxl import load_workbook
    from openpyxl.styles.numbers import is_date_format

    sheet = load_workbook(book.path)["Checks"]
    (row,) = [row for row in sheet.iter_rows() if row[1].value == "Deadline"]
    assert all(is_date_format(row[at].number_format) for at in (2, 4, 5, 8))


NOT_TRACED: dict[str, list[dict[str, Any]]] = {
    "lora": [
        {"attention_implementation": "Eager, scores stored"},
        {"optimizer_choice": "SGD"},
        {"optimizer_choice": "SGD with momentum"},
        {"compute_precision": "fp32"},
    ],
    "training": [
        {"attention_implementation": "Eager, scores stored"},
        {"optimizer_choice": "SGD"},
        {"parameter_storage": "bf16"},
    ],
    "full": [
        {"attention_implementation": "Eager, scores stored"},
        {"tensor_parallel": 2},
        {"pipeline_parallel": 2},
    ],
}


def test_options_without_a_traced_formula_rest_on_the_published_one_and_say_so(opened: Opened) -> None:
    for inputs in NOT_TRACED[opened.book.name]:
        opened.type(inputs)
        assert opened["Checks_Failed"] == 0
        assert opened["Traced_Peak_Allocated_GB"] == opened["Traced_Total_Reserved_GB"] == "not traced"
        assert opened["Peak_Allocated_GB"] == opened["Published_Peak_Allocated_GB"]
        assert opened["Total_Reserved_GB"] == opened["Published_Total_Reserved_GB"]
        assert opened["Fit_Verdict"] in ("fits", "does not fit")
        assert "by the published accounting" in opened.sentence
        assert "No traced formula exists for these options." in opened.sentence
        assert opened.strip()["Verdict"][1] == "By the published accounting"
        column = traced_column(opened)
        assert len(column) >= 10
        assert {*column.values()} == {"not traced"}, inputs
    opened.type({"verdict_basis": "Published"})
    assert "by the published accounting" in opened.sentence
    assert "No traced formula" not in opened.sentence
    assert all(isinstance(value, float) for value in traced_column(opened).values())


def traced_column(opened: Opened) -> dict[str, Any]:
    """The line items of Sizing from its first to the total: item -> what the traced column says."""
    cells = opened.engine.get_sheet("Sizing")
    (top, label), right = next((at, at[1]) for at, value in sorted(cells.items()) if value == "Line item")
    column = next(c for (r, c), value in cells.items() if r == top and value == "Traced")
    end = next(
        r for (r, c), value in sorted(cells.items()) if r > top and c == right and value == "Total to size against"
    )
    return {str(cells[row, label]): cells.get((row, column)) for row in range(top + 1, end + 1)}


def test_a_card_without_a_known_capacity_takes_an_entered_one(opened: Opened) -> None:
    gpus = opened.book.job.tables["gpus"]
    unknown = [key for key in gpus.keys if not gpus.usable_bytes[gpus.row_of(key)]]
    assert unknown
    for card in random.Random(1).sample(unknown, min(3, len(unknown))):
        opened.type({"gpu_choice": card})
        assert_withdrawn(opened, 1)
        assert card in opened.sentence
        opened.type({"gpu_choice": card, "gpu_capacity_override_gb": 94})
        assert (opened["Checks_Failed"], opened["GPU_Usable_Capacity_GB"]) == (0, 94)
        cards = opened["GPU_Count"]
        assert (f"{cards:.0f} × a card of 94.0 GB" if cards != 1 else "one card of 94.0 GB") in opened.sentence


def test_every_required_input_left_empty_is_a_fault(opened: Opened) -> None:
    job = opened.book.job
    required = [key for key, declared in job.inputs.items() if not (declared.optional or key.startswith("target_"))]
    for key in required[:: EVERY[type(opened.engine).__name__]]:
        declared = job.inputs[key]
        opened.type({key: None})
        assert str(opened["First_Time_And_Cost_Fault"]).startswith(f"{declared.label} is empty; enter "), key
        assert opened[public_name(key) + "_Fault"] == 1
        assert (opened["Fit_Verdict"] == "CHECK INPUT") == (key not in job.beside), key

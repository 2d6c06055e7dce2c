"""The functions as LAMBDA names of the workbooks: every golden vector in an engine that runs them, and their rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import Book
from engines import ErrorValue, close
from function_vectors import read
from lambda_books import cut_down

from sizing_xlsx.formula.render import public_name
from sizing_xlsx.functions import registered
from sizing_xlsx.functions.desk import CATALOGUE, Desk
from sizing_xlsx.functions.names import tail
from sizing_xlsx.functions.signature import TABLE
from sizing_xlsx.jobs import JOBS
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook import lambdas
from sizing_xlsx.workbook.build import write_book
from sizing_xlsx.workbook.lambda_rules import LONGEST, lambda_names, lint_lambdas
from sizing_xlsx.workbook.template import load_template

ironcalc = pytest.importorskip(
    "ironcalc", reason="ironcalc is not installed; it is the one engine that runs LAMBDA names"
)
CARD_ONLY = ("GPU_INFO",)


def written(value: Any) -> str:
    """An argument as a formula has it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else repr(value)


def formula(function: str, arguments: dict[str, Any]) -> str:
    """A call as a planner types it."""
    known = registered()[function].arguments
    cells = [written(arguments[name]) if name in arguments else "" for name in known]
    while cells and not cells[-1]:
        cells.pop()
    return f"={function}({','.join(cells)})"


class Typed:
    """A workbook with a sheet of a planner's own, on which formulas are typed."""

    def __init__(self, path: Path) -> None:
        self.model = ironcalc.load_from_xlsx(str(path), "en", "UTC", "en")
        self.model.new_sheet()
        self.sheet = len(self.model.get_worksheets_properties()) - 1

    def type(self, key: str, book: Book, text: str) -> None:
        """Enter an input of the job where it stands."""
        sheet, _, cell = book.names[public_name(key)].replace("'", "").replace("$", "").partition("!")
        row = int("".join(filter(str.isdigit, cell)))
        index = [entry["name"] for entry in self.model.get_worksheets_properties()].index(sheet)
        self.model.set_user_input(index, row, ord(cell[0]) - 64, text)

    def values(self, formulas: list[str]) -> list[Any]:
        """What each gives."""
        for row, text in enumerate(formulas, 1):
            self.model.set_user_input(self.sheet, row, 1, text)
        self.model.evaluate()
        found = []
        for row in range(1, len(formulas) + 1):
            value = self.model.get_cell_value(self.sheet, row, 1)
            error = self.model.get_cell_type(self.sheet, row, 1) == ironcalc.CellType.ErrorValue
            found.append(ErrorValue(value) if error else value)
        return found


@pytest.fixture(params=JOBS)
def book(request: pytest.FixtureRequest, short_books: dict[str, Book]) -> Book:
    """Each workbook, with fewer rows of jobs."""
    return short_books[request.param]


@pytest.fixture(params=JOBS)
def whole_book(request: pytest.FixtureRequest, books: dict[str, Book]) -> Book:
    """Each workbook, as it is shipped."""
    return books[request.param]


@pytest.fixture(scope="module")
def typed(books: dict[str, Book], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Typed]:
    """Each of these workbooks, cut down to what its functions read, with such a sheet."""
    folder = tmp_path_factory.mktemp("functions")
    return cache(lambda name: Typed(cut_down(books[name], folder / books[name].path.name)))


def of_job(name: str) -> list[dict[str, Any]]:
    """The vectors that a workbook answers: about its own job, or about models and cards; all faults in fine-tuning."""
    others = {"Training": "training", "Full fine-tuning": "full"}
    return [vector for vector in read() if others.get(str(vector["arguments"].get("job")), "lora") == name]


def test_every_golden_vector(whole_book: Book, typed: Callable[[str], Typed]) -> None:
    vectors = of_job(whole_book.name)
    found = typed(whole_book.name).values([formula(case["function"], case["arguments"]) for case in vectors])
    wrong = []
    for case, value in zip(vectors, found, strict=True):
        right = ErrorValue(case["error"]) if "error" in case else case["value"]
        if not (value is right if isinstance(right, bool) else close(value, right)):
            wrong.append(f"{case['id']} {formula(case['function'], case['arguments'])}: {value!r}, not {right!r}")
    assert not wrong, wrong
    assert len(vectors) > {"lora": 300, "training": 40, "full": 60}[whole_book.name]


def test_a_name_is_found_as_python_finds_it(whole_book: Book, typed: Callable[[str], Typed]) -> None:
    """Each name, its short form and its words, in other letters and with spaces around; what is empty, and numbers."""
    desk = Desk()
    formulas, right = [], []
    tables = {"training": ("training_models", "gpus", "optimizers"), "full": ("models", "gpus", "recipes")}
    for table in tables.get(whole_book.name, ("models", "gpus", "optimizers")):
        names, wrong = desk.names(table), ErrorValue("#N/A" if table in CATALOGUE else "#VALUE!")
        texts = [text for name in names.names for text in (name, tail(name), name[2:], name.partition(" ")[0])]
        for text in dict.fromkeys((*texts, *desk.vocabulary.words.get(table, {}), "no such name", "*", "?", "~")):
            if text:
                try:
                    row: Any = names.names.index(names.find(text.strip())) + 1
                except ValueError:
                    row = wrong
                for way in (text, text.upper(), f"  {text} "):
                    formulas.append(f"=Functions_Row_{table}({written(way)},-1)")
                    right.append(row)
        formulas += [f"=Functions_Row_{table}({blank},-1)" for blank in ('""', '"  "', "$Z$1", "5")]
        right += [-1, -1, -1, wrong]
    found = typed(whole_book.name).values(formulas)
    assert [case for case in zip(formulas, found, right, strict=True) if not close(case[1], case[2])] == []
    assert {type(row) for row in right} == {int, ErrorValue}


def test_an_empty_cell_is_no_name(whole_book: Book, typed: Callable[[str], Typed]) -> None:
    """An argument that must be given is wrong where its cell is empty; one that may be left out is as if it were."""
    model, card = whole_book.job.choices("base_model")[0], "NVIDIA L4"
    job = {"lora": "", "training": ',,,"Training"', "full": ',,,"Full"'}[whole_book.name]
    of_model = job[1:]
    wrong = [f'=GPU_FITS($Z$1,"{card}"{job})', f'=GPU_FITS("{model}",$Z$1{job})', f"=MODEL_INFO($Z$1{of_model})",
             f"=MODEL_PARAMETERS($Z$1{of_model})", "=GPU_INFO($Z$1)", "=GPU_SMALLEST($Z$1)"]  # fmt: skip
    right = [f'=GPU_HEADROOM("{model}","{card}",$Z$1,$Z$1,$Z$1)', f'=GPU_HEADROOM("{model}","{card}")']
    found = typed(whole_book.name).values([*wrong, *right])
    assert found[:-2] == [ErrorValue("#VALUE!")] * len(wrong)
    assert found[-2] == found[-1] and isinstance(found[-1], float)


def test_functions_name_cells_by_their_addresses(whole_book: Book) -> None:
    """Engines that search all names of a workbook for each use of one would take ten times as long."""
    functions = lambda_names(whole_book.path)
    cells = "|".join(map(re.escape, whole_book.names.keys() - functions.keys()))
    used = {name: re.search(rf"(?<![\w.])({cells})(?![\w.(])", text) for name, text in functions.items()}
    assert {name: match[1] for name, match in used.items() if match} == {}


def test_names_keep_the_rules_of_excel(whole_book: Book) -> None:
    assert lint_lambdas(whole_book.path) == []


def test_every_scalar_function_is_a_name(whole_book: Book) -> None:
    names = lambda_names(whole_book.path)
    scalar = {name for name, function in registered().items() if function.result.kind != TABLE}
    missing = scalar - set(names)
    assert missing == (set() if whole_book.name == "lora" else {"LORA_PARAMETERS"})
    assert all(len(text) <= LONGEST for text in names.values())


def test_a_name_that_breaks_a_rule_is_told(book: Book, tmp_path: Path) -> None:
    import zipfile

    faults = {
        "_xlfn.LAMBDA(_xlpm.r,_xlpm.r+1)": "reads as a cell",
        "_xlfn.LAMBDA(_xlpm.x,_xlpm.y+1)": "nothing declares",
        "_xlfn.LAMBDA(_xlpm.x,_xlpm.y(_xlpm.x))": "calls _xlpm.y, which nothing declares",
        "_xlfn.LAMBDA(_xlpm.x,LET(_xlpm.y,1,_xlpm.y))": "calls LET",
        "_xlfn.LAMBDA(_xlop.x,_xlop.x+1)": "written _xlpm.x",
        "_xlfn.LAMBDA(_xlpm.x,NO_SUCH(_xlpm.x))": "calls NO_SUCH",
        "_xlfn.LAMBDA(_xlpm.x," + "+".join(["_xlpm.x"] * 2000) + ")": "at most 8,192",
        "_xlfn.LAMBDA(_xlpm.x," + "(" * 70 + "_xlpm.x" + ")" * 70 + ")": "at most 64",
    }
    whole = lambda_names(book.path)["Functions_Blank"]
    for text, told in faults.items():
        path = tmp_path / "broken.xlsx"
        with zipfile.ZipFile(book.path) as old, zipfile.ZipFile(path, "w") as new:
            for part in old.namelist():
                content = old.read(part)
                if part == "xl/workbook.xml":
                    escaped = whole.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
                    assert escaped.encode() in content or whole.encode() in content
                    content = content.replace(escaped.encode(), text.encode())
                new.writestr(part, content)
        assert any(told in line for line in lint_lambdas(path)), (text[:60], lint_lambdas(path))


def test_an_allowance_of_the_workbook_is_taken_over(short_books: dict[str, Book]) -> None:
    """What is entered on Overrides for the installation counts in the functions too, as in every table of jobs."""
    book = short_books["training"]
    opened = Typed(book.path)
    model = book.job.choices("base_model")[0]
    call = f'=GPU_HEADROOM("{model}","NVIDIA H100 SXM5 80GB",1,16)'
    (before,) = opened.values([call])
    opened.type("outside_pytorch_gb_override", book, "3")
    (after,) = opened.values([call])
    preset = book.job.reference()["preset_outside_pytorch_gb"]
    assert abs((before - after) - (3 - preset)) < 1e-9


def test_a_price_without_its_date_withdraws_the_cost_alone(short_books: dict[str, Book]) -> None:
    """Inputs of the sheet Time and cost count in the functions of a run, and so do the rules for them."""
    opened = Typed(short_books["training"].path)
    model, card = short_books["training"].job.choices("base_model")[0], "NVIDIA H100 SXM5 80GB"
    calls = [f'=TRAIN_COST("{model}","{card}",1000000000)', f'=GPU_HEADROOM("{model}","{card}")']
    calls += [f'=TRAIN_HOURS("{model}","{card}",1000000000)']
    before = opened.values(calls)
    opened.type("own_price_per_hour", short_books["training"], "4")
    broken = opened.values(calls)
    opened.type("own_price_date", short_books["training"], "45000")
    after = opened.values(calls)
    assert broken == [ErrorValue("#VALUE!"), *before[1:]]
    assert after[1:] == before[1:] and isinstance(after[0], float) and after[0] != before[0]


def test_two_functions_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(lambdas.SHORT, "job", lambdas.SHORT["Plain"])
    with pytest.raises(ValueError, match="functions_job_checked names 2 functions"):
        write_book(tmp_path / "twice.xlsx", "training", load_template("training"), load_presets())

"""The Start sheet: the guide decides in the cells as it does in Python, and the map has a line for each sheet there is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import MAIN, Book, Opened
from engines import Formualizer

from sizing_xlsx.workbook.guide import ANSWERS, read_guide
from sizing_xlsx.workbook.sheets.start import REASON, RECOMMENDED, answer_name
from sizing_xlsx.workbook.template import load_template

TEMPLATE = load_template("lora")
START, CHECK = TEMPLATE["start"], TEMPLATE["book"]["check_input"]
GUIDE = read_guide(START["guide"], "guide")
NAMES = {option["id"]: option["name"] for option in START["guide"]["options"]}
WORKED = {"lora": "fine_tuned", "training": "custom", "full": "fully_tuned"}


def given(answers: Any) -> dict[str, str]:
    """The words of answers, question by question."""
    return {question.id: GUIDE.words[answer] for question, answer in zip(GUIDE.questions, answers, strict=True)}


def every_answer() -> Iterator[dict[str, str]]:
    for answers in itertools.product(ANSWERS, repeat=len(GUIDE.questions)):
        yield given(answers)


@pytest.fixture
def start(opened: Opened) -> Iterator[Opened]:
    """A workbook whose answers are put back afterwards."""
    yield opened
    for question, answer in opened.book.template["start"]["answers"].items():
        opened.engine.set(answer_name(question), GUIDE.words[answer])
    opened.engine.recalculate()


def answer(opened: Opened, answers: dict[str, Any]) -> tuple[Any, Any]:
    for question, word in answers.items():
        opened.engine.set(answer_name(question), word)
    opened.engine.recalculate()
    return opened[RECOMMENDED], opened[REASON]


def test_every_set_of_answers_is_decided_alike_in_the_cells_and_in_python(start: Opened) -> None:
    step = 53 if isinstance(start.engine, Formualizer) else 2_111  # coprime to 3: each answer of each question comes
    for answers in itertools.islice(every_answer(), 0, None, step):
        rule = GUIDE.decide(answers)
        assert answer(start, answers) == (NAMES[rule.option], rule.reason), answers


def test_each_rule_and_each_way_is_reached() -> None:
    reached = [GUIDE.decide(answers) for answers in every_answer()]
    assert {id(rule) for rule in reached} == {id(rule) for rule in GUIDE.rules}
    assert {rule.option for rule in reached} == {*NAMES}


@pytest.mark.parametrize(
    ("answers", "option"),
    [
        # may leave, general does, steady, examples, adapters enough, unseen kind, enough, people
        (("yes", "yes", "no", "no", "yes", "no", "no", "no"), "frontier"),
        (("yes", "yes", "yes", "yes", "no", "no", "no", "yes"), "self_hosted"),
        (("yes", "yes", "yes", "yes", "yes", "no", "no", "no"), "frontier"),
        (("no", "yes", "no", "no", "yes", "no", "no", "yes"), "self_hosted"),
        (("yes", "no", "no", "yes", "yes", "no", "no", "yes"), "fine_tuned"),
        (("yes", "no", "no", "yes", "unsure", "no", "no", "yes"), "fine_tuned"),
        (("yes", "no", "no", "yes", "no", "no", "no", "yes"), "fully_tuned"),
        (("yes", "no", "no", "no", "no", "no", "no", "yes"), "frontier"),
        (("yes", "no", "no", "yes", "no", "no", "no", "no"), "frontier"),
        (("no", "no", "yes", "no", "no", "yes", "yes", "yes"), "custom"),
        (("unsure",) * 8, "self_hosted"),
        (("yes", *("unsure",) * 7), "frontier"),
    ],
)
def test_the_ways_that_the_answers_lead_to(answers: tuple[str, ...], option: str) -> None:
    assert GUIDE.decide(given(answers)).option == option


def test_an_unsure_answer_decides_as_the_one_that_it_counts_as() -> None:
    counts = {question.id: GUIDE.words[question.unsure] for question in GUIDE.questions}
    for answers in every_answer():
        settled = {key: counts[key] if word == GUIDE.words["unsure"] else word for key, word in answers.items()}
        assert GUIDE.decide(answers) is GUIDE.decide(settled)


def test_the_workbook_opens_on_the_way_that_it_sizes(book: Book) -> None:
    sheet, row, column = place(book, RECOMMENDED)
    assert book.cached[sheet, row, column] == NAMES[WORKED[book.name]]
    others = {file for job, file in book.template["start"]["files"].items() if job != book.name}
    shown = {text_of(book, cell) for _, cell in book.sheets["Start"].cells()}
    assert len(others) == 3 and others <= shown
    assert book.template["file"] not in shown


def test_an_answer_that_is_none_gets_no_recommendation(start: Opened) -> None:
    key = GUIDE.questions[0].id
    before = start["Checks_Failed"], start["Fit_Verdict"]
    for wrong in ("Perhaps", None, 1.0, "*")[:: 1 if isinstance(start.engine, Formualizer) else 3]:
        assert answer(start, {key: wrong}) == (CHECK, "–"), wrong
        assert (start["Checks_Failed"], start["Fit_Verdict"]) == before
    assert answer(start, {key: GUIDE.words["no"]})[0] != CHECK


def test_answers_move_nothing_but_start(start: Opened) -> None:
    answer(start, given(["yes", "yes", "yes", "no", "no", "yes", "no", "no"]))
    moved = start.differences({p: v for p, v in start.book.cached.items() if p[0] != "Start"})
    assert moved == []


def test_no_formula_outside_start_reads_an_answer(book: Book) -> None:
    names = [answer_name(question.id) for question in GUIDE.questions]
    readers = {place[0] for place, formula in book.formulas.items() if any(name in formula for name in names)}
    assert readers == {"Start"}


def test_the_map_has_a_line_for_each_sheet_there_is_and_no_other(book: Book) -> None:
    rows = [entry["sheet"] for entry in book.template["start"]["sheets"]["rows"]]
    shown = [link.get("location") for link in book.sheets["Start"].tree.iter(MAIN + "hyperlink")]
    mapped = [link.rpartition("!")[0].strip("'") for link in shown]
    assert [title for title in mapped if title not in book.sheets] == []
    assert {*mapped} == {title for title in rows if title in book.sheets}


def test_the_answers_are_typed_in_the_order_of_the_questions(book: Book) -> None:
    places = [place(book, answer_name(question.id)) for question in GUIDE.questions]
    assert places == sorted(places)
    assert len({column for _, _, column in places}) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rules": [{"option": "frontier", "when": {"steady_use": "yes"}, "reason": "x"}]}, "the last of the rules"),
        ({"rules": [{"option": "fronteer", "when": {}, "reason": "x"}]}, "did you mean frontier"),
        ({"rules": [{"option": "frontier", "when": {"steady": "yes"}, "reason": "x"}]}, "steady, which is no question"),
        ({"rules": [{"option": "frontier", "when": {"steady_use": "maybe"}, "reason": "x"}]}, "'maybe'; it must be"),
        ({"rules": [{"option": "frontier", "when": {}}]}, "rules 1 lacks reason"),
        ({"rules": []}, "the last of the rules"),
        ({"answers": {"yes": "Yes", "no": "No"}}, "answers lacks unsure"),
        ({"questions": [dict(START["guide"]["questions"][0], unsure="so")]}, "unsure of data_may_leave is 'so'"),
        ({"questions": START["guide"]["questions"] * 2}, "questions has an id twice"),
    ],
)
def test_a_guide_that_does_not_hold_together_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_guide({**START["guide"], **change}, "start.toml: guide")


def test_python_refuses_a_word_that_is_no_answer() -> None:
    with pytest.raises(ValueError, match="steady_use is 'often'; it must be one of Yes, No, Unsure"):
        GUIDE.decide({**given(["no"] * 8), "steady_use": "often"})


def place(book: Book, name: str) -> tuple[str, int, int]:
    from engines import contents

    return contents(book.path).names[name.casefold()]


def text_of(book: Book, cell: Any) -> str:
    """The text of a cell that holds one, else ""."""
    if cell.get("t") != "s":
        return ""
    return strings(book)[int(cell.findtext(MAIN + "v"))]


def strings(book: Book) -> list[str]:
    from lxml import etree

    return ["".join(item.itertext()) for item in etree.fromstring(book.parts["xl/sharedStrings.xml"])]

"""Every word that a workbook's reader sees stands in a template: a workbook is built with all of them changed.

Each letter of each text of the templates is replaced by one that nothing here is written in. What is then still in
plain letters was not taken from a template: it is a fact (a name, a label, a unit, a source), or a fault.
"""

from __future__ import annotations

import ast
import html
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sizing_xlsx.formula.declare import label_of
from sizing_xlsx.formula.domains import allowed
from sizing_xlsx.formula.render import in_words, sheet_formula
from sizing_xlsx.functions import registered
from sizing_xlsx.functions.desk import Desk
from sizing_xlsx.functions.page import allowed_of, brief
from sizing_xlsx.functions.signature import described
from sizing_xlsx.jobs import WORKBOOKS
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook import book as book_module
from sizing_xlsx.workbook.book import Book
from sizing_xlsx.workbook.build import write_book
from sizing_xlsx.workbook.forms import FORMS
from sizing_xlsx.workbook.inputs import LONGEST_TITLE
from sizing_xlsx.workbook.jobtable import NOT_GIVEN
from sizing_xlsx.workbook.own_runs import COMPLETED, OUT_OF_MEMORY
from sizing_xlsx.workbook.sheets import checks, functions_list, lookups, public_runs, reference, scenario_workings
from sizing_xlsx.workbook.styles import TEXTS, load_look
from sizing_xlsx.workbook.template import load_template
from sizing_xlsx.workbook.vocabulary import VOCABULARY, words_of

SHEETS = {title for form in FORMS.values() for title in form.sheets}
_WRITERS = ("book", "build", "charts", "inputs", "jobtable", "page", "provenance", "public_runs", "runs", "words")
_SERVED = ("cards", "chart_data", "models", "runs", "sizing", "summary")  # the others of served/ are formulas
WORKBOOK = Path(book_module.__file__).parent
# Modules whose words still stand in them, and the sheets that they write. Delete a line, and the tests hold it too.
NOT_YET: Mapping[str, tuple[str, ...]] = {}
# What writes cells; the others read files, or say something on the command line alone.
MODULES = [
    path
    for path in (
        *WORKBOOK.glob("sheets/*.py"),
        *(WORKBOOK / f"served/{name}.py" for name in _SERVED),
        *(WORKBOOK / f"{name}.py" for name in _WRITERS),
    )
    if path.relative_to(WORKBOOK).with_suffix("").as_posix() not in NOT_YET
]
_SENTENCE = re.compile(r"[A-Za-z]{2},? [a-z]{2}|\b[A-Z][a-z]+\b")  # words in a row, or one that begins a text
_NO_WORDS = {*SHEETS, "On", "Off", OUT_OF_MEMORY, COMPLETED, "General", "Letter", "Chart", ',Regular"&'}
_MARKS = {code: code + 0xFEE0 for code in (*range(ord("A"), ord("Z") + 1), *range(ord("a"), ord("z") + 1))}
_BRACES = re.compile(r"(\{[^}]*\})")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_DEFINED = re.compile(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+")  # a defined name, or a symbol
_PACKED = re.compile(r"\d+:\S{200,}", re.ASCII)  # data, on Record
_WORD = re.compile(r"[A-Za-z]{2,}")


def marked(text: str) -> str:
    """The text with every letter changed, but for what stands in braces."""
    return "".join(part if part.startswith("{") else part.translate(_MARKS) for part in _BRACES.split(text))


def mark(table: dict[str, Any], place: str) -> None:
    """Change the text, or the texts, at a place of a template."""
    *above, last = place.split(".")
    for key in above:
        table = table[key]
    value = table[last]
    table[last] = [marked(text) for text in value] if isinstance(value, list) else marked(value)


def strings(value: Any) -> Iterator[str]:
    """Every text in nested data, pieces between braces one by one; keys are none."""
    if isinstance(value, str):
        for part in _BRACES.split(value):
            _, bar, words = part.strip("{}").rpartition(":") if "|" in part else ("", "", "")  # {rows:row|rows}
            yield from words.split("|") if bar else () if part.startswith("{") else (part,)
    elif isinstance(value, Mapping):
        yield from strings(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from strings(inner)


@pytest.fixture(scope="module", params=WORKBOOKS)
def made(request: pytest.FixtureRequest) -> Iterator[tuple[Book, zipfile.ZipFile]]:
    """A workbook whose words are all changed: as it was made, and its file."""
    template, look = load_template(request.param), load_look()
    for section in VOCABULARY:
        for place, word in words_of(section).items():
            if section in template and not word.free and place not in ("rows", "card"):  # names of data
                mark(template[section], place)
    for place in TEXTS:
        mark(look, place)
    books: list[Book] = []

    class Kept(Book):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            books.append(self)

    with pytest.MonkeyPatch.context() as patch, io.BytesIO() as file:
        patch.setattr(book_module, "load_look", lambda: look)
        patch.setattr("sizing_xlsx.workbook.build.Book", Kept)
        patch.setattr(reference, "_SOURCE_LINE", 10**6)  # a source in one cell, not in pieces
        write_book(file, request.param, template, load_presets())
        with zipfile.ZipFile(file) as parts:
            yield books[0], parts


def of_cards(book: Book) -> Iterable[str]:
    """Whose prices of cards they are."""
    cards = book.cards if book.job.name == "serving" else book.compare
    return cards.sources.values()


def facts_of(book: Book) -> set[str]:
    """What a workbook shows beside words: facts of the formulas and of the presets, and templates' other texts."""
    job, presets, template = book.job, book.presets, book.template
    found = {NOT_GIVEN, COMPLETED, OUT_OF_MEMORY, *SHEETS, book.provenance.program, *template["notes"]}
    found |= set(strings(template))
    for facts in (*job.inputs.values(), *job.constants.values(), *job.terms.values()):
        found |= {text for text in facts if isinstance(text, str)} | {facts.label[:LONGEST_TITLE], facts.label.lower()}
    for key, rule in job.checks.items():
        found |= {checks.rule_shown(job, key), *strings(checks.shown_message(book, rule.message))}
    found |= {checks.rule_shown(job, key) for key in checks.sums_of(job)}
    for key, declared in job.inputs.items():
        bound = str(getattr(declared.domain, "high", "")).replace("_", " ")
        found |= {allowed(job, key), *allowed(job, key).partition(f"the {bound}")}
    for tree in (*job.trees.values(), *(tree for _, _, tree in book.derived)):
        found |= {in_words(tree, book.label_of), *_QUOTED.findall(sheet_formula(tree))}
    for table in (*job.tables.values(), presets.counted_models):
        found |= set(strings([table.keys, table.columns, table.units]))
        found |= {table.name.replace("_", " ").capitalize(), *map(label_of, table.columns)}
    rows = [value for value in presets if isinstance(value, (list, dict))]
    found |= set(strings(rows))
    for run in presets.public_runs:
        found |= {public_runs.model_shown(run["model"]), run["base_storage_format"].partition(" (")[0]}
    found |= {run["model"].rpartition("/")[2] for run in presets.speeds}
    for model in presets.unsized_models:
        found |= {model.name, model.family, model.why_not}
    found |= set(re.findall("[0-9a-f]{12}", " ".join(book.provenance)))  # hashes
    doubled = template.get("levers_sheet", {}).get("doubled", "")
    found |= {text.lower() for text in strings(doubled)}  # as sheets/levers says them
    found |= {template["compare"]["no_price"].lower(), *of_cards(book)}
    found |= {scenario_workings.said_of(book.scenarios, key) for key in book.scenarios.heads}
    desk = Desk(presets)
    for function in registered().values() if "functions" in template else ():  # what they are is said with them
        found |= {function.name, function.help, brief(function, ""), *functions_list.texts_of(book, function, desk)}
        for argument in described(function, desk, book.job.name):
            found |= {argument.name, argument.help, allowed_of(argument)}
    for symbol in (*(symbol for symbol, _, _ in book.derived), *book.sentences):
        found |= {symbol.replace("_", " ").capitalize(), book.label_of(symbol)}
    for path in (WORKBOOK / "sheets" / "sharding.py", WORKBOOK.parent / "planning" / "launch.py"):
        found |= {text for text in literals(path) if not re.search(r"\s", text)}  # what launchers call their settings
    found |= {name for name in book.defined if "_" not in name}  # the others are known by it
    found |= {"true", "false"}  # as their files say them
    for module in NOT_YET:
        found |= {text for text in literals(WORKBOOK / f"{module}.py") if re.search("[A-Z ]", text)}
    return {fact for fact in found if _WORD.search(fact)}


def texts_of(parts: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Every text that a reader sees, with the sheet or the part: cells, pieces of formulas, prompts, footers, charts."""

    def pieces(form: str, text: str) -> Iterator[str]:
        return (html.unescape(found) for found in re.findall(form, text, re.DOTALL))

    shared = list(pieces("<si><t[^>]*>([^<]*)</t></si>", _text(parts, "xl/sharedStrings.xml")))
    names = list(pieces('<sheet name="([^"]*)"', _text(parts, "xl/workbook.xml")))
    for number, name in enumerate(names, 1):
        xml = _text(parts, f"xl/worksheets/sheet{number}.xml")
        yield from ((name, shared[int(at)]) for at in re.findall(r't="s"><v>(\d+)</v>', xml))
        for formula in pieces("<f>([^<]*)</f>", xml):
            yield from ((name, text.replace('""', '"')) for text in _QUOTED.findall(formula))
        yield from ((name, text) for text in pieces('t="str"><f>[^<]*</f><v>([^<]*)</v>', xml))
        yield from ((name, text) for text in pieces(' (?:prompt|error)(?:Title)?="([^"]*)"', xml))
        yield from ((name, text.rpartition('"')[2]) for text in pieces("<oddFooter>([^<]*)<", xml))
    for part in parts.namelist():
        xml = _text(parts, part)
        if "/charts/" in part:
            yield from ((part, text) for text in pieces("<(?:c:v|a:t)>([^<]*)<", xml))
        elif "/drawings/" in part:
            yield from ((part, text) for text in pieces(' descr="([^"]*)"', xml))
        elif part == "docProps/core.xml":
            yield from ((part, text) for text in pieces("<(?:dc:title|dc:subject|dc:description)>([^<]*)<", xml))


def _text(parts: zipfile.ZipFile, part: str) -> str:
    return parts.read(part).decode()


def literals(module: Path) -> Iterator[str]:
    """The texts in a module's code, but for its docstrings and what it raises."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    told = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Raise) for inner in ast.walk(node)}
    told |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def _whole(fact: str) -> re.Pattern[str]:
    """The fact where it is not a part of a longer word."""
    before, after = (r"(?<!\w)" if re.match(r"\w", fact) else "", r"(?!\w)" if re.search(r"\w$", fact) else "")
    return re.compile(before + re.escape(fact) + after)


def test_no_word_stands_outside_the_templates(made: tuple[Book, zipfile.ZipFile]) -> None:
    book, parts = made
    facts = facts_of(book)
    whole = [(fact, _whole(fact)) for fact in sorted(facts, key=len, reverse=True)]
    later = {sheet for sheets in NOT_YET.values() for sheet in sheets} | {lookups.TITLE}  # names, and parts of them
    seen: dict[str, str] = {}
    for where, text in texts_of(parts):
        if where not in later and text not in facts and _WORD.search(text) and not _PACKED.fullmatch(text):
            seen.setdefault(text, where)
    assert seen
    found = []
    for text, where in seen.items():
        left = text
        for fact, pattern in whole:
            if fact in left:
                left = pattern.sub(" ", left)
        if _WORD.search(_DEFINED.sub(" ", left)):
            found.append((where, text, left))
    assert not found, found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_a_sheet_module_has_no_sentence_in_it(module: Path) -> None:
    """What the built workbooks do not show is held too: own runs, own models, warnings."""
    assert [text for text in literals(module) if _SENTENCE.search(text) and text not in _NO_WORDS] == []

"""Start: which way to a model, which sheet answers which question, what the figures mean, where evidence ends.

All words come from templates/start.toml and the workbook's own template. The answers are inputs of this sheet alone:
nothing else reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from ...formula.expression import Expr, name
from ...formula.primitives import equal, when
from ...formula.render import public_name
from .. import page
from ..book import Raw
from ..guide import ANSWERS, Guide, read_guide
from ..words import filled, quoted, sentence

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Start"
LIST = "Start_Answers_List"
RECOMMENDED, REASON = "Recommended_Way", "Recommended_Way_Reason"
UNSURE = "unsure_answers"
NOTHING = "–"
_HEAD = ("title", "sentence", "strip_edge")
_LAST = 7  # the column of answers' states, links and samples
_ANSWER = 4


def answer_name(question: str) -> str:
    """The defined name of an answer's cell."""
    return "Answer_" + public_name(question)


def write(book: Book) -> None:
    """The first sheet: the guide on its first page, the map of the workbook on its second."""
    Start(book).write()


class Start:
    """The sheet in the making; row is the next free one."""

    def __init__(self, book: Book) -> None:
        self.book, self.words, self.check = book, book.template["start"], book.words["check_input"]
        self.spec = self.words["guide"]
        self.guide: Guide = read_guide(self.spec, "guide")
        self.given = {key: self.guide.words[self.words["answers"][key]] for key in self._questions()}
        self.ws, self.styles = book.sheet(TITLE), book.styles
        self.put = book.putter(self.ws)
        self.rows = book.look["rows"]
        self.last = page.set_page(
            self.ws, book.look, kind=TITLE, file_and_version=book.footer, rows_repeated=None, freeze=(3, 0)
        )
        self.row = 3

    def _questions(self) -> list[str]:
        return [question.id for question in self.guide.questions]

    def write(self) -> None:
        self._head()
        self._guide()
        second_page = self.row
        self._sheets()
        self._figures()
        self._legend()
        self._section(self.words["evidence_name"], space_below=True)
        for text in self.words["evidence"]:
            self._line({1: (text, "label")}, "start")
        page.print_area(self.ws, self.row - 1, self.last, [second_page])

    # ------------------------------------------------------------------ furniture
    def _head(self) -> None:
        for row, (style, height) in enumerate(zip(("strip", "strip", "strip_edge"), _HEAD, strict=True)):
            page.fill_row(self.ws, row, 0, self.last, self.styles[style], self.rows[height])
        self.put(0, 1, filled(self.words["title"], title=self.book.template["title"]), self.styles["title"])
        self.put(0, self.last - 1, self.book.stamp, self.styles["stamp"])
        self.put(1, 1, self.words["sentence"], self.styles["sentence"])

    def _section(self, title: str, note: Any = None, note_column: int = _ANSWER, space_below: bool = False) -> None:
        self.row = page.section(
            self.ws, self.styles, self.row, last_column=self.last, name=title, put=self.put, note=note,
            note_column=note_column, space_below=space_below,
        )  # fmt: skip

    def _line(self, cells: dict[int, tuple[Any, Any]], height: str, ground: str = "") -> int:
        """A row of cells, column -> content and style; ground: the style of those between them. Returns the row."""
        row, self.row = self.row, self.row + 1
        self.ws.set_row(row, self.rows[height])
        if ground:
            page.fill_row(self.ws, row, 1, self.last - 1, self.styles[ground], self.rows[height])
        for column, (content, style) in cells.items():
            self.put(row, column, content, self.styles[style] if isinstance(style, str) else style)
        return row

    def _header(self, texts: dict[int, str], styles: Mapping[int, str] | None = None) -> None:
        """A table's header; styles: of columns that are not th: th_i over indented text, th_r over numbers."""
        forms = styles or {}
        self._line({at: (text, forms.get(at, "th")) for at, text in texts.items()}, "header", "th")

    # ------------------------------------------------------------------ the guide
    def _guide(self) -> None:
        spec, words = self.spec, self.spec["headers"]
        section = self.row
        self._section(spec["name"])
        texts = {1: words["question"], _ANSWER: words["answer"], 5: words["help"], _LAST: words["state"]}
        self._header(texts, {5: "th_i"})
        first = self.row
        for question in self.guide.questions:
            self._question(question)
        answers, states = (page.area(first, column, self.row - 1) for column in (_ANSWER, _LAST))
        unsure = self.guide.words["unsure"]
        page.formula_marks(self.ws, self.styles, (first, _LAST, self.row - 1, _LAST),
                           f'={page.cell(first, _LAST)}={quoted(self.check)}', "check")  # fmt: skip
        outcome = self.row
        self.row += 2
        rules = self._rules(states)
        options = self._options()
        self._outcome(outcome, rules, options)
        # The note of the section, now that the answers have their places.
        count = sum(word == unsure for word in self.given.values())
        self.book.external(UNSURE, "count", count)
        self.book.aliases[UNSURE] = f"COUNTIF({answers},{quoted(unsure)})"
        self.put(section, _ANSWER, sentence(spec["note"], self.book.sym), self.styles["section_note"])

    def _question(self, question: Any) -> None:
        book, key = self.book, answer_name(question.id)
        row = self._line(
            {
                1: (question.text, "r_label"),
                _ANSWER: (self.given[question.id], self.styles.variant("in_text", horizontal="left")),
                5: (question.help, self.styles.variant("r_help", indent=1, wrap=False)),
            },
            "start",
            "r_label",
        )
        book.define(key, TITLE, row, _ANSWER)
        told = " / ".join(self.guide.words.values())
        self.ws.data_validation(
            row, _ANSWER, row, _ANSWER,
            {
                "validate": "list", "source": f"={LIST}", "ignore_blank": False, "error_type": "stop",
                "input_title": self.spec["answer_label"], "input_message": f"{told}. {self.spec['answer_help']}",
                "error_title": self.spec["answer_label"], "error_message": f"{told}.",
            },
        )  # fmt: skip
        given = self._symbol(question.id)
        yes, no, unsure = (self.guide.words[word] for word in ANSWERS)
        fine = when(equal(given, yes) | equal(given, no), NOTHING, self.check)
        state = when(equal(given, unsure), self.spec["counts_as"][question.unsure], fine)
        self.put(row, _LAST, state, self.styles.variant("r_help", wrap=False))

    def _symbol(self, question: str) -> Expr:
        """The answer of a question, for trees."""
        symbol = f"answer_{question}"
        if symbol not in self.book.units:
            self.book.external(symbol, "text", self.given[question])
            self.book.aliases[symbol] = answer_name(question)
        return name(symbol, "text")

    def _rules(self, states: str) -> tuple[int, int]:
        """The rules, each with whether it holds; returns the first and the last row."""
        spec, words = self.spec["rules_table"], self.spec["rules_table"]["headers"]
        self._section(spec["name"])
        self._header({1: words["reason"], 5: words["option"], 6: words["holds"], _LAST: words["state"]})
        first, holds, decides = self.row, self.spec["holds"], self.spec["decides"]
        names = {option["id"]: option["name"] for option in self.spec["options"]}
        symbols = {key: self._symbol(key) for key in self._questions()}
        chosen = self.guide.decide(self.given)
        for rule in self.guide.rules:
            met = self.guide.holds(rule, symbols)
            word = when(met > 0, holds, NOTHING) if isinstance(met, Expr) else holds
            here, above = page.cell(self.row, 6), page.cell(self.row - 1, _LAST)
            top = page.cell(first - 1, _LAST, row_fixed=True)
            formula = (
                f"=IF((COUNTIF({states},{quoted(self.check)})=0)*({here}={quoted(holds)})"
                f'*(COUNTIF({top}:{above},{quoted(decides)})=0)>0,{quoted(decides)},"{NOTHING}")'
            )
            self._line(
                {
                    1: (rule.reason, "r_label"),
                    5: (names[rule.option], "r_label"),
                    6: (word, "r_text"),
                    _LAST: (Raw(formula, decides if rule is chosen else NOTHING), "r_text"),
                },
                "start_rule",
                "r_label",
            )
        last = self.row - 1
        this = f"=${page.cell(first, _LAST)}={quoted(decides)}"
        page.formula_marks(self.ws, self.styles, (first, 1, last, _LAST), this, "decides")
        return first, last

    def _options(self) -> tuple[int, int]:
        """What each way asks for, the recommended one marked; returns the first and the last row."""
        spec, names = self.spec["options_table"], list(self.spec["options_table"]["headers"])
        self._section(spec["name"])
        self._header(dict(enumerate(spec["headers"].values(), 1)), dict.fromkeys(range(2, _LAST + 1), "th_i"))
        first, chosen = self.row, self.guide.decide(self.given).option
        text = self.styles.variant("r_help", indent=1)
        for option in self.spec["options"]:
            mark = Raw(f'=IF({page.cell(self.row, 1)}={RECOMMENDED},{quoted(self.spec["current"])},"")',
                       self.spec["current"] if option["id"] == chosen else "")  # fmt: skip
            cells: dict[int, tuple[Any, Any]] = {0: (mark, "mark"), 1: (option["name"], "r_label")}
            cells |= {at: (option[key], text) for at, key in enumerate(names, 1) if key not in ("name", "open")}
            cells[_LAST] = (self._target(option), text)
            row = self._line(cells, "start_option", "r_label")
            if option.get("job") == self.book.job.name:
                self.ws.write_url(
                    row, _LAST, f"internal:'{spec['sheet']}'!A1", self.styles.variant("r_link", indent=1), spec["sheet"]
                )
        last = self.row - 1
        this = f"=${page.cell(first, 1)}={RECOMMENDED}"
        page.formula_marks(self.ws, self.styles, (first, 1, last, 1), this, "decides")
        return first, last

    def _target(self, option: Any) -> str:
        """Where an option is sized: a sheet of this workbook, the file of another, or words."""
        job = option.get("job")
        if job == self.book.job.name:
            return str(self.spec["options_table"]["sheet"])
        return str(self.words["files"][job] if job else option["open"])

    def _outcome(self, row: int, rules: tuple[int, int], options: tuple[int, int]) -> None:
        """The recommended way and why, and where it is sized: in the two rows that were kept for them."""
        chosen = self.guide.decide(self.given)
        option = next(option for option in self.spec["options"] if option["id"] == chosen.option)
        states = page.area(rules[0], _LAST, rules[1])
        deciding = f"MATCH({quoted(self.spec['decides'])},{states},0)"
        known = f"COUNTIF({states},{quoted(self.spec['decides'])})=0"
        names, targets = (page.area(options[0], column, options[1]) for column in (1, _LAST))
        way = f"=IF({known},{quoted(self.check)},INDEX({page.area(rules[0], 5, rules[1])},{deciding}))"
        why = f'=IF({known},"{NOTHING}",INDEX({page.area(rules[0], 1, rules[1])},{deciding}))'
        where = f'=IF({known},"{NOTHING}",INDEX({targets},MATCH({RECOMMENDED},{names},0)))'
        self.row, after = row, self.row
        self._line(
            {
                1: (self.spec["recommended"], "t_label"),
                2: (Raw(way, option["name"]), "t_label"),
                _ANSWER: (Raw(why, chosen.reason), self.styles.variant("t_label", bold=False)),
            },
            "start",
            "t_label",
        )
        self._line({1: (self.spec["sized_in"], "label"), 2: (Raw(where, self._target(option)), "label")}, "start")
        self.row = after
        self.book.define(RECOMMENDED, TITLE, row, 2)
        self.book.define(REASON, TITLE, row, _ANSWER)
        page.formula_marks(self.ws, self.styles, (row, 2, row, 2), f"={RECOMMENDED}={quoted(self.check)}", "check")

    # ------------------------------------------------------------------ the map of the workbook
    def _sheets(self) -> None:
        spec, words = self.words["sheets"], self.words["sheets"]["headers"]
        self._section(spec["name"])
        self._header({1: words["question"], 3: words["get"], 5: words["enter"], _LAST: words["sheet"]})
        for entry in spec["rows"]:
            if entry["sheet"] not in self.book.sheets:
                continue
            cells = {1: (entry["question"], "r_label"), 3: (entry["get"], "r_text"), 5: (entry["enter"], "r_text")}
            row = self._line(cells, "start", "r_label")
            self.ws.write_url(row, _LAST, f"internal:'{entry['sheet']}'!A1", self.styles["r_link"], entry["sheet"])

    def _figures(self) -> None:
        spec, words = self.words["figures"], self.words["figures"]["headers"]
        self._section(spec["name"])
        texts = {1: words["term"], 2: words["meaning"], _ANSWER: words["why"], _LAST: words["value"]}
        self._header(texts, {_LAST: "th_r"})
        for entry in spec["rows"]:
            figure = reduce(add, (self.book.sym(key) for key in entry["term"]))
            self._line(
                {
                    1: (entry["name"], "r_label"),
                    2: (entry["meaning"], "r_text"),
                    _ANSWER: (entry["why"], "r_text"),
                    _LAST: (self.book.shown(figure), "r_gb"),
                },
                "start",
                "r_label",
            )

    def _legend(self) -> None:
        """Samples of the cells on the left, what the answers mean on the right: the answers' list stands there."""
        spec, styles = self.words["legend"], self.styles
        self._section(spec["name"], space_below=True)
        self.put(self.row - 2, 5, spec["answers_name"], styles["section"])
        first, answers = self.row, list(spec["answers"].items())
        for at, entry in enumerate(spec["rows"]):
            sample, style = entry["sample"], entry["style"]
            known = isinstance(sample, str) and sample in self.book.job.terms
            shown: Any = self.book.shown(self.book.sym(sample)) if known else sample
            cells: dict[int, tuple[Any, Any]] = {
                1: (shown, styles.variant(style, locked=True)),
                2: (entry["name"], styles.variant("label", indent=1)),
                3: (entry["words"], "help"),
            }
            if at < len(answers):
                cells |= {5: (self.guide.words[answers[at][0]], "label"), 6: (answers[at][1], "help")}
            self._line(cells, "start")
        self.book.define(LIST, TITLE, first, 5, first + len(answers) - 1)

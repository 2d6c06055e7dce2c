"""Time and cost: what is entered beside memory, how long the run takes, what it costs, and a budget in stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...formula.declare import Whole
from ...formula.expression import Expr, names_in
from ...formula.primitives import joined
from ...formula.render import column_name
from .. import page
from ..book import COST_FAILED, TIME_FAILED, Raw
from ..inputs import typed_style, write_input
from ..page import Tile
from ..words import filled, quoted, sentence
from .checks import LAYERS, shown_message

if TYPE_CHECKING:
    from ...formula.table import Table
    from ..book import Book

TITLE = "Time and cost"
_LABEL, _VALUE, _UNIT, _HELP, _FIFTH, _WORDS = 1, 2, 3, 4, 5, 6
_WARNINGS = {  # sentence -> the check whose words it is
    "few_tokens": "tokens_suffice",
    "late_run": "run_in_time",
    "traffic_binds": "work_binds",
    "network_assumed": "network_entered",
    "link_missing": "link_entered",
    "slices_apart": "slices_work_alone",
}
_TILES = (  # words, figure, words of its unit; none: it is money
    ("run", "run_hours", "run_note"),
    ("cards", "gpu_hours", "cards_note"),
    ("rent", "rent_cost", ""),
    ("own", "own_cost", ""),
    ("file", "checkpoint_gb", "file_note"),
    ("tokens", "rent_per_million_tokens", ""),
)


def say(book: Book) -> None:
    """The sheet's live sentences; they get rows on Workings."""
    for key, check in _WARNINGS.items():
        book.say(key, sentence(shown_message(book, book.job.checks[check].message), book.sym))
    for key, text in book.template["effort"]["sentences"].items():
        book.say(key, sentence(text, book.sym))
    for _, key, _ in _TILES:
        failed = _failed(book, book.sym(key))
        book.guards[key] = lambda content, failed=failed: book.guarded(content, "NA()", failed)


def write(book: Book) -> None:
    """Steps of inputs, tables of what follows, the stages."""
    ws, words = book.sheet(TITLE), book.template["effort"]
    last = page.set_page(ws, book.look, kind=TITLE, file_and_version=book.footer, freeze=(7, 0))
    _strip(book, last)
    row, breaks = 7, []
    for number, step in enumerate(words["steps"], 1):
        if step.get("new_page"):
            breaks.append(row)
        row = _section(book, row, last, step, number)
        for entry in _of_job(book, step["rows"]):
            _entry(book, row, entry if isinstance(entry, str) else entry["row"])
            row += 1
    for table in words["tables"]:
        if table.get("new_page"):
            breaks.append(row)
        row = _table(book, row, last, table)
    row = _budget(book, row, last)
    breaks.append(row)
    row = _speeds(book, row, last)
    page.print_area(ws, row, last, breaks)


def _strip(book: Book, last: int) -> None:
    sym, words = book.sym, book.template["effort"]["tiles"]
    money = _live(book, sym("currency_choice"))
    page.strip(
        book.sheet(TITLE),
        book.styles,
        last_column=last,
        title=filled(book.template["effort"]["title"], title=book.template["title"]),
        sentence=book.guarded(sym("effort_told"), "First_Time_And_Cost_Fault", COST_FAILED),
        stamp=book.stamp,
        put=book.putter(book.sheet(TITLE)),
        tiles=[
            Tile(at, at, words[label], _live(book, sym(key)), words[note] if note else money, "tile_amount")
            for at, (label, key, note) in enumerate(_TILES, 1)
        ],
    )


def _failed(book: Book, tree: Expr) -> str:
    """The checks that a figure or a sentence rests on: those of money count where money is in it."""
    pending, seen = list(names_in(tree)), set[str]()
    while pending:
        if (key := pending.pop()) not in seen:
            seen.add(key)
            told = book.sentences.get(key)
            pending.extend(names_in(told) if isinstance(told, Expr) else ())
    money = LAYERS.index("cost")
    return COST_FAILED if any(book.job.layers.get(key) == money for key in seen) else TIME_FAILED


def _live(book: Book, tree: Expr) -> Raw:
    """A figure or a sentence, withdrawn while an input of memory or time is faulty; where money is in it, of that."""
    return book.shown(tree, failed=_failed(book, tree))


def _said(book: Book, text: str) -> Any:
    """A template's text, live where it names a figure."""
    tree = sentence(text, book.sym)
    return _live(book, joined(tree, "")) if isinstance(tree, Expr) else tree


def _of_job(book: Book, rows: Sequence[Any]) -> list[Any]:
    """The rows of a step or a table, without those that are of other jobs alone."""
    return [row for row in rows if isinstance(row, str) or book.job.name in row.get("jobs", (book.job.name,))]


def _section(book: Book, row: int, last: int, entry: Mapping[str, Any], number: Any = None) -> int:
    note = _live(book, book.sym(entry["note"]))
    return _plain_section(book, row, last, {**entry, "note": note}, number)


def _plain_section(book: Book, row: int, last: int, entry: Mapping[str, Any], number: Any = None) -> int:
    return page.section(
        book.sheet(TITLE),
        book.styles,
        row,
        last_column=last,
        name=entry["name"],
        put=book.putter(book.sheet(TITLE)),
        number=number,
        note=entry["note"],
        note_column=_HELP if number else _UNIT,
        space_below=number is not None,
    )


def _unit(book: Book, unit: str) -> Any:
    """A unit as it is shown: none of a text or a switch, the currency's own name."""
    named = book.template["effort"]["units"].get(unit)
    if named is not None:
        return _said(book, named)
    return "" if unit in ("text", "date") else unit


def _shown(book: Book, unit: str) -> str:
    """The format of figures of a unit."""
    return str(book.template["effort"]["formats"]["shown"].get(unit, "n0"))


def _entry(book: Book, row: int, key: str) -> None:
    ws, styles, job = book.sheet(TITLE), book.styles, book.job
    put = book.putter(ws)
    ws.set_row(row, book.look["rows"]["input"])
    facts: Any = job.inputs.get(key) or job.terms[key]
    if key in job.inputs and key in job.beside:
        write_input(book, ws, TITLE, row, _VALUE, key, styles.variant(typed_style(facts), **_typed_format(book, facts)))
    else:
        put(row, _VALUE, _live(book, book.sym(key)), styles.variant("calc0", format=_shown(book, facts.unit)))
    put(row, _LABEL, facts.label, styles["label"])
    put(row, _UNIT, _unit(book, facts.unit), styles["unit"])
    put(row, _HELP, facts.help, styles["help"])


def _typed_format(book: Book, facts: Any) -> dict[str, Any]:
    if isinstance(facts.domain, Whole):
        return {"format": "date"} if facts.domain.day else {}
    return (
        {"format": book.template["effort"]["formats"]["typed"].get(facts.unit, "n2")}
        if typed_style(facts) == "in_dec"
        else {}
    )


def _head(book: Book, row: int, names: Sequence[str]) -> int:
    ws, styles = book.sheet(TITLE), book.styles
    ws.set_row(row, book.look["rows"]["header"])
    for column, text in enumerate(names, 1):
        book.put(
            ws, row, column, _said(book, text), styles["th" if column == 1 else "th_i" if column >= _FIFTH else "th_r"]
        )
    return row + 1


def _table(book: Book, row: int, last: int, table: Mapping[str, Any]) -> int:
    """Rows of figures, each with its unit; a cell whose unit is another says so by its format."""
    ws, styles, job = book.sheet(TITLE), book.styles, book.job
    put = book.putter(ws)
    row = _head(book, _section(book, row, last, table), table["columns"])
    for entry in _of_job(book, table["rows"]):
        form = "t" if entry.get("total") else "r"
        ws.set_row(row, book.look["rows"]["total" if form == "t" else "table"])
        put(row, _LABEL, entry["label"], styles[f"{form}_label"])
        units = []
        for column, key in enumerate(entry["cells"], _VALUE):
            if not key:
                put(row, column, "", styles[f"{form}_label"])
                continue
            units.append(unit := job.unit_of(key))
            style = styles.variant(f"{form}_calc3", format=_shown(book, unit))
            put(row, column, _live(book, book.sym(key)), style)
        put(row, _FIFTH, _unit(book, units[0]), styles[f"{form}_unit"])
        row += 1
    return row


def _budget(book: Book, row: int, last: int) -> int:
    ws, styles, words = book.sheet(TITLE), book.styles, book.template["effort"]["budget"]
    put, stages = book.putter(ws), book.job.tables["budget_stages"]
    row = _head(book, _section(book, row, last, words), words["columns"])
    put(row - 1, _FIFTH, _said(book, words["columns"][4]), styles["th_r"])
    rows = [(stages.keys[entry["stage"] - 1], entry["cells"], entry["stage"]) for entry in words["rows"]]
    for label, cells, stage in (*rows, (words["total"], words["all"]["cells"], 0)):
        form = "r" if stage else "t"
        ws.set_row(row, book.look["rows"]["table" if stage else "total"])
        put(row, _LABEL, label, styles.variant(f"{form}_label", shrink=not stage))
        for column, key in enumerate(cells, _VALUE):
            content = _live(book, book.sym(key)) if key else ""
            unit = book.job.unit_of(key) if key else ""
            put(row, column, content, styles.variant(f"{form}_calc3", format=_shown(book, unit)))
        rule = stages.columns["stop_rule"][stage - 1] if stage else ""
        put(row, _WORDS, rule, styles.variant(f"{form}_help", indent=1, wrap=False))
        page.fill_row(ws, row, _WORDS + 1, last - 1, styles[f"{form}_help"])
        row += 1
    return row


def _speeds(book: Book, row: int, last: int) -> int:
    """Published speeds of this job's methods, each beside what its reached share gives, computed in the row."""
    ws, styles, words = book.sheet(TITLE), book.styles, book.template["effort"]["speeds"]
    put, shares = book.putter(ws), book.job.tables["reached_shares"]
    rows = [run for run in book.presets.speeds if run["method"] in book.template["effort"]["speed_methods"]]
    if not rows:
        return row
    peaks, cards = column_name("gpus", "bf16_dense_tflops"), column_name("gpus", None)
    row = _head(book, _plain_section(book, row, last, words), words["columns"])
    for column in range(_FIFTH, last):
        put(row - 1, column, words["columns"][column - 1], styles["th_r"])
    for run in rows:
        ws.set_row(row, book.look["rows"]["table"])
        at = row + 1
        measured = run["tokens_per_second_per_card"]
        attention = run["layers"] * run["query_width"] * run["sequence_length"]
        share, formula = _share(shares, run)
        passes, form = (4, "(2+2)") if run["method"] == shares.keys[0] else (3, "(2+1)")
        gpus = book.job.tables["gpus"]
        peak = gpus.bf16_dense_tflops[gpus.row_of(run["card"])] * book.values["one_tflops"]
        expected = share * peak / (book.values["multiply_add"] * (passes * run["working_parameters"] + 4 * attention))
        of_card = f"INDEX({peaks},MATCH({quoted(run['card'])},{cards},0))*{book.cell_name('one_tflops')}"
        flop = f"Multiply_Add*({form}*$F{at}+2*Attention_Products*$G{at})"
        model = run["model"].rpartition("/")[2]
        name = words["several" if run["cards"] > 1 else "one"]
        slots = {"run": run["id"], "model": model} | ({"cards": str(run["cards"])} if run["cards"] > 1 else {})
        put(row, _LABEL, filled(name, **slots), styles.variant("r_label", shrink=True))
        put(row, _VALUE, measured, styles["r_calc0"])
        put(row, _UNIT, Raw(f"=$H{at}*{of_card}/({flop})", expected), styles["r_calc0"])
        put(row, _HELP, Raw(f"=$D{at}/$C{at}-1", expected / measured - 1), styles["r_err"])
        put(row, _FIFTH, run["working_parameters"], styles["r_calc0"])
        put(row, _WORDS, attention, styles["r_calc0"])
        put(row, last - 1, Raw(formula, share), styles["r_share"])
        row += 1
    for source in dict.fromkeys(filled(words["source"], source=run["source"]) for run in rows):
        put(row, _LABEL, source, styles["help"])
        row += 1
    return row


def _share(shares: Table, run: Mapping[str, Any]) -> tuple[float, str]:
    """The reached share of a run's method, and the formula that gives it."""
    at = shares.row_of(run["method"])
    place = "1+2" if at > 2 else str(at)
    formula = f"=INDEX({column_name('reached_shares', 'expected')},{place})"
    if run["cards"] == 1:
        return shares.expected[at], formula
    return (
        shares.expected[at] * shares.kept_by_several[at],
        f"{formula}*INDEX({column_name('reached_shares', 'kept_by_several')},{place})",
    )

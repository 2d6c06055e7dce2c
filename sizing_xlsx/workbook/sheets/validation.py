"""Validation: every measured run beside both predictions, computed by formulas in the row.

The visible sheet holds the runs and their measured figures; "Validation workings" is a job table whose rows have
those runs' inputs. Both move when an allowance on Overrides is changed, and with nothing else on Sizing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import page
from ..book import Raw
from ..jobtable import write_job_table
from ..runs import Run, Runs
from . import evidence
from .evidence import FIRST, TITLE, WORKINGS

if TYPE_CHECKING:
    from ..book import Book

_GROUPS = ((1, 6, "Run"), (7, 11, "Peak allocated, GB"), (12, 14, "Reserved, GB"), (15, 17, "Did it run?"))
_HEADERS = (
    ("Run", "th"), ("Lever", "th"), ("Setting", "th_r"), ("Batch", "th_r"), ("Sequence", "th_r"),
    ("Checkpointing", "th_i"), ("Measured", "th_r"), ("Traced", "th_r"), ("Error", "th_r"), ("Published", "th_r"),
    ("Error", "th_r"), ("Measured", "th_r"), ("Upper estimate", "th_r"), ("Published", "th_r"), ("Outcome", "th_i"),
    ("Called", "th"), ("Call", "th"),
)  # fmt: skip
_LEVERS = {
    "baseline": "Baseline", "batch_size": "Batch", "seq_len": "Sequence", "lora_rank": "Rank",
    "checkpointing": "Checkpointing", "adapter_placement": "Adapter layers", "base_precision": "Base format",
    "combined": "Combined", "optimizer": "Optimizer", "checkpointing_batch": "Batch, checkpt.",
    "checkpointing_seq": "Sequence, checkpt.", "precision": "Precision",
}  # fmt: skip
_SETTINGS = {
    "baseline": "as worked", "False": "off", "True": "on", "adam": "Adam", "adam8bit": "8-bit Adam",
    "checkpointing": "checkpointed", "both": "both",
}  # fmt: skip


def write(book: Book) -> None:
    """The visible sheet with its strip and charts, and its workings."""
    runs = Runs(book)
    ws, styles, rows = book.sheet(TITLE), book.styles, book.look["rows"]
    put = book.putter(ws)
    last = page.set_page(ws, book.look, kind=TITLE, file_and_version=book.footer, freeze=(FIRST, 3))
    page.fill_row(ws, FIRST - 2, 0, last, styles["body"], rows["header"])
    for first, end, text in _GROUPS:
        for column in range(first, end + 1):
            put(FIRST - 2, column, text if column == first else "", styles["th_group"])
    ws.set_row(FIRST - 1, rows["header_two_lines"])
    for column, (text, form) in enumerate(_HEADERS, 1):
        put(FIRST - 1, column, text, styles[form])
    for at, run in enumerate(runs.all):
        _row(book, runs, at, run)
    end = FIRST + len(runs.all) - 1
    for column in (9, 11):
        here = page.cell(FIRST, column)
        large = f"=AND(ISNUMBER({here}),ABS({here})>Large_Error)"
        page.formula_marks(ws, styles, (FIRST, column, end, column), large, "large")
    page.formula_marks(ws, styles, (FIRST, 17, end, 17), f'={page.cell(FIRST, 17)}="Wrong"', "wrong")
    put(end + 1, 1, book.template["validation"]["note"], styles["help"])
    ws.set_row(end + 1, rows["note"])
    evidence.write_strip(book, runs, last)
    row = page.section(ws, styles, end + 2, last_column=last, name="What the runs show", put=put)
    evidence.write_charts(book, runs, row)
    for at in range(21):
        ws.set_row(row + at, rows["chart"])
    page.print_area(ws, row + 21, last, [end + 2])
    _workings(book, runs)


def _row(book: Book, runs: Runs, at: int, run: Run) -> None:
    ws, styles, measured = book.sheet(TITLE), book.styles, run.measured
    put = book.putter(ws)
    row, number = FIRST + at, FIRST + at + 1
    ws.set_row(row, book.look["rows"]["table"])
    setting = str(measured["lever_value"])
    words: Any = int(setting) if setting.isdigit() else _SETTINGS.get(setting, setting.replace("upper-", "top "))
    put(row, 1, measured["id"], styles.variant("r_no", horizontal="left"))
    put(row, 2, _LEVERS[measured["lever"]], styles["r_label"])
    put(row, 3, words, styles["r_calc0" if isinstance(words, int) else "r_text_r"])
    put(row, 4, measured["batch_size"], styles["r_calc0"])
    put(row, 5, measured["sequence_length"], styles["r_calc0"])
    put(row, 6, run.inputs["activation_checkpointing"], styles["r_text_i"])
    put(row, 7, "none" if run.failed else run.peak, styles["r_none" if run.failed else "r_calc3"])
    for column, result in ((8, "traced_allocated"), (10, "published_allocated")):
        put(row, column, _in_gb(runs, at, run, result), styles["r_calc3"])
        predicted = page.cell(row, column, column_fixed=True)
        error = Raw(
            f'=IF(ISNUMBER($H{number}),ROUND({predicted}/$H{number}-1,4),"none")',
            "none" if run.failed else run.error(result),
        )
        put(row, column + 1, error, styles["r_none" if run.failed else "r_err"])
    put(row, 12, "none" if run.failed else run.reserved, styles["r_none" if run.failed else "r_calc1"])
    put(row, 13, _in_gb(runs, at, run, "traced_reserved"), styles["r_calc1"])
    put(row, 14, _in_gb(runs, at, run, "published_reserved"), styles["r_calc1"])
    put(row, 15, "Out of memory" if run.failed else "Completed", styles["r_text_i"])
    code = evidence.workings_cell(runs, at, "verdict_code")
    put(row, 16, Raw(f"=INDEX(Verdicts_Shown_List,{code})", runs.verdict(run)), styles["r_text"])
    agree = f'AND($P{number}="Completed",{code}<2),AND($P{number}="Out of memory",{code}>2)'
    call = f'=IF({code}=2,"Undecided",IF(OR({agree}),"Right","Wrong"))'
    put(row, 17, Raw(call, runs.calls[at]), styles["r_help"])


def _in_gb(runs: Runs, at: int, run: Run, result: str) -> Raw:
    return Raw(f"={evidence.workings_cell(runs, at, result)}/Bytes_Per_GB", run.predicted(result))


def _workings(book: Book, runs: Runs) -> None:
    ws, styles = book.sheet(WORKINGS), book.styles
    put = book.putter(ws)
    after = 2 + len(runs.table.columns)
    page.plain_sheet(
        book,
        WORKINGS,
        kind="wide",
        last_column=after + len(evidence.EXTRA),
        stamp=False,
        sentence="The measured runs as jobs: results, inputs, then every term between. No input of Sizing is read.",
        rows_repeated=(0, FIRST - 1),
        freeze=(FIRST, 2),
    )
    rows = []
    for at, run in enumerate(runs.all):
        shown = {"batch_size": "E", "sequence_length": "F", "activation_checkpointing": "G"}
        cells = {key: Raw(f"='{TITLE}'!${column}{FIRST + at + 1}", run.inputs[key]) for key, column in shown.items()}
        rows.append((run.measured["id"], run.inputs, cells))
    write_job_table(book, WORKINGS, runs.table, rows, heading="Run", first_row=FIRST)
    for offset, label in enumerate(evidence.EXTRA.values()):
        put(FIRST - 2, after + offset, label, styles["th_r"])
        put(FIRST - 1, after + offset, "share", styles["th_u"])
    for at, run in enumerate(runs.all):
        number, style = FIRST + at + 1, styles["r_none" if run.failed else "r_err"]
        shares = (
            (f"ABS('{TITLE}'!$J{number})", None if run.failed else abs(run.error("traced_allocated"))),
            (f"ABS('{TITLE}'!$L{number})", None if run.failed else abs(run.error("published_allocated"))),
            (f"'{TITLE}'!$N{number}/'{TITLE}'!$M{number}-1", None if run.failed else run.above()),
        )
        for offset, (formula, value) in enumerate(shares):
            shown_value = "none" if value is None else value
            formula = f"=IF(ISNUMBER('{TITLE}'!$H{number}),{formula},\"none\")"
            put(FIRST + at, after + offset, Raw(formula, shown_value), style)

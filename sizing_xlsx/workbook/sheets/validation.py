"""Validation: every measured run beside both predictions, computed by formulas in the row.

The visible sheet holds the runs and their measured figures; "Validation workings" is a job table whose rows have
those runs' inputs. Both move when an allowance on Overrides is changed, and with nothing else on Sizing.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from .. import charts, page
from ..book import Raw
from ..jobtable import JobTable, write_job_table
from ..page import Tile

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Validation"
WORKINGS = "Validation workings"
RESULTS = (
    "traced_allocated", "published_allocated", "traced_reserved", "published_reserved", "verdict_code", "fit_verdict"
)  # fmt: skip
_FIRST = 9
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
_OPTIMIZERS = {"adam": "Adam", "adam8bit": "8-bit Adam"}
_PRECISIONS = {"bf16_autocast": "bf16 autocast", "fp16_autocast": "fp16 autocast", "fp32": "fp32"}
WIDTHS = (3, 7, 18, 13, 8, 9, 14, 12, 11, 9, 12, 9, 12, 12, 12, 15, 13, 12, 2)


def run_inputs(kind: str, run: dict[str, Any], card: str) -> dict[str, Any]:
    """A measured run as the inputs of its job."""
    inputs = {
        "batch_size": run["batch_size"],
        "sequence_length": run["sequence_length"],
        "compute_precision": _PRECISIONS[run["compute"]],
        "optimizer_choice": _OPTIMIZERS[run["optimizer"]],
        "activation_checkpointing": "On" if run["checkpointing"] else "Off",
        "gpu_choice": card,
    }
    if kind == "training":
        return {
            **inputs,
            "hidden_size_override": run["hidden_size"],
            "layer_count_override": run["layers"],
            "attention_heads_override": run["attention_heads"],
            "mlp_width_override": run["ff_multiplier"] * run["hidden_size"],
            "vocabulary_size_override": run["output_width"],
            "parameter_count_override": run["parameters"],
        }
    layers = run["adapter_layers"]
    return {
        **inputs,
        "base_storage_format": run["base_storage"],
        "lora_rank": run["lora_rank"],
        "adapter_layers": layers if layers == "all" else int(layers.partition("-")[2]),
    }


class Runs:
    """The measured runs with their predictions on this workbook's allowances."""

    def __init__(self, book: Book) -> None:
        spec = book.template["validation"]
        presets = book.presets
        self.kind = spec["rows"]
        self.runs = presets.lora_sweep if self.kind == "lora" else presets.training_sweep
        self.table = JobTable(book.job, RESULTS)
        self.inputs = [
            {**book.job.defaults(), **run_inputs(self.kind, run, spec["card"])} for run in self.runs
        ]
        self.values = [self.table.values(inputs) for inputs in self.inputs]


def write(book: Book) -> None:
    """The visible sheet, its workings and its charts."""
    runs = Runs(book)
    book.runs = runs
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    last = page.set_page(ws, book.look, kind=TITLE, widths=WIDTHS, file_and_version=book.footer, freeze=(_FIRST, 3))
    page.fill_row(ws, 7, 0, last, styles["body"], book.look["rows"]["header"])
    for first, end, text in ((1, 6, "Run"), (7, 11, "Peak allocated, GB"), (12, 14, "Reserved, GB"), (15, 17, "Did it run?")):
        for column in range(first, end + 1):
            put(7, column, text if column == first else "", styles["th_group"])
    ws.set_row(8, book.look["rows"]["header_two_lines"])
    headers = (
        ("Run", "th"), ("Lever", "th"), ("Setting", "th_r"), ("Batch", "th_r"), ("Sequence", "th_r"), ("Check-pointing", "th_i"),
        ("Measured", "th_r"), ("Traced", "th_r"), ("Error", "th_r"), ("Published", "th_r"), ("Error", "th_r"),
        ("Measured", "th_r"), ("Upper estimate", "th_r"), ("Published", "th_r"),
        ("Outcome", "th_i"), ("Called", "th"), ("Call", "th"),
    )  # fmt: skip
    for column, (text, form) in enumerate(headers, 1):
        put(8, column, text, styles[form])
    for at, run in enumerate(runs.runs):
        _run_row(book, runs, at, run)
    end = _FIRST + len(runs.runs) - 1
    for column in (9, 11):
        page.formula_marks(
            ws, styles, (_FIRST, column, end, column),
            f"=AND(ISNUMBER({page.cell(_FIRST, column)}),ABS({page.cell(_FIRST, column)})>Large_Error)", "large",
        )  # fmt: skip
    page.formula_marks(ws, styles, (_FIRST, 17, end, 17), f'={page.cell(_FIRST, 17)}="Wrong"', "wrong")
    put(end + 1, 1, book.template["validation"]["note"], styles["help"])
    ws.set_row(end + 1, book.look["rows"]["note"])
    _tiles(book, runs, end, last)
    row = page.section(ws, styles, end + 2, last_column=last, name="What the runs show", put=put)
    _charts(book, runs, row, end)
    for at in range(21):
        ws.set_row(row + at, book.look["rows"]["chart"])
    page.print_area(ws, row + 21, last, [end + 2])
    _workings(book, runs)


def _run_row(book: Book, runs: Runs, at: int, run: dict[str, Any]) -> None:
    ws, styles = book.sheet(TITLE), book.styles
    put = book.putter(ws)
    row, values = _FIRST + at, runs.values[at]
    number = row + 1
    ws.set_row(row, book.look["rows"]["table_dense"])
    setting = str(run["lever_value"])
    words: Any = int(setting) if setting.isdigit() else _SETTINGS.get(setting, setting.replace("upper-", "top "))
    measured, reserved, failed = run["measured_peak_allocated_gb"], run["measured_peak_reserved_gb"], run["measured_oom"]
    put(row, 1, run["id"], styles.variant("r_no", horizontal="left"))
    put(row, 2, _LEVERS[run["lever"]], styles["r_label"])
    put(row, 3, words, styles["r_calc0" if isinstance(words, int) else "r_text_r"])
    put(row, 4, run["batch_size"], styles["r_calc0"])
    put(row, 5, run["sequence_length"], styles["r_calc0"])
    put(row, 6, "On" if run["checkpointing"] else "Off", styles["r_text_i"])
    put(row, 7, "none" if failed else measured, styles["r_none" if failed else "r_calc3"])
    gb = book.values["bytes_per_gb"]
    for column, result in ((8, "traced_allocated"), (10, "published_allocated")):
        predicted = values[result] / gb
        put(row, column, Raw(f"={_address(runs, at, result)}/Bytes_Per_GB", predicted), styles["r_calc3"])
        here = page.cell(row, column, column_fixed=True)
        error = round(predicted / measured - 1, 4) + 0.0 if not failed else "none"
        formula = f'=IF(ISNUMBER($H{number}),ROUND({here}/$H{number}-1,4),"none")'
        put(row, column + 1, Raw(formula, error), styles["r_none" if failed else "r_err"])
    put(row, 12, "none" if failed else reserved, styles["r_none" if failed else "r_calc1"])
    put(row, 13, Raw(f"={_address(runs, at, 'traced_reserved')}/Bytes_Per_GB", values["traced_reserved"] / gb), styles["r_calc1"])
    put(row, 14, Raw(f"={_address(runs, at, 'published_reserved')}/Bytes_Per_GB", values["published_reserved"] / gb), styles["r_calc1"])
    put(row, 15, "Out of memory" if failed else "Completed", styles["r_text_i"])
    shown = book.job.tables["verdicts"].columns["shown"][values["verdict_code"] - 1]
    put(row, 16, Raw(f"=INDEX(Verdicts_Shown_List,{_address(runs, at, 'verdict_code')})", shown), styles["r_text"])
    agree = f'AND($P{number}="Completed",$Q{number}="Fits"),AND($P{number}="Out of memory",$Q{number}="Does not fit")'
    put(row, 17, Raw(
        f'=IF($Q{number}="Tight","Undecided",IF(OR({agree}),"Right","Wrong"))', _call(failed, shown)
    ), styles["r_help"])  # fmt: skip


def _call(failed: bool, shown: str) -> str:
    return "Undecided" if shown == "Tight" else "Right" if failed != (shown == "Fits") else "Wrong"


def _address(runs: Runs, at: int, result: str) -> str:
    from xlsxwriter.utility import xl_rowcol_to_cell

    return f"'{WORKINGS}'!" + str(xl_rowcol_to_cell(_FIRST + at, 2 + runs.table.column(result), col_abs=True))


def _tiles(book: Book, runs: Runs, end: int, last: int) -> None:
    gb = book.values["bytes_per_gb"]
    done = [(run, values) for run, values in zip(runs.runs, runs.values, strict=True) if not run["measured_oom"]]

    def errors(result: str) -> list[float]:
        return [abs(round(v[result] / gb / r["measured_peak_allocated_gb"] - 1, 4)) for r, v in done]

    traced, published = errors("traced_allocated"), errors("published_allocated")
    first, stop = _FIRST + 1, end + 1
    calls = [_call(r["measured_oom"], ("Fits", "Tight", "Does not fit")[v["verdict_code"] - 1]) for r, v in zip(runs.runs, runs.values, strict=True)]
    right, count = calls.count("Right"), len(calls)
    failed = sum(1 for run in runs.runs if run["measured_oom"])
    above = [v["traced_reserved"] / gb / r["measured_peak_reserved_gb"] - 1 for r, v in done]
    never = sum(1 for share in above if share >= 0)

    def percent(value: float, digits: int = 2) -> str:
        from ...formula.primitives import fixed

        return f"{fixed(value * 100, digits)}%"

    def worst(column: str, values: list[float]) -> Raw:
        area = f"'{WORKINGS}'!${column}${first}:${column}${stop}"
        return Raw(f'=FIXED(MAX({area})*Percent_Count,2)&"%"', percent(max(values)))

    def middle(column: str, values: list[float]) -> Raw:
        area = f"'{WORKINGS}'!${column}${first}:${column}${stop}"
        return Raw(f'="median "&FIXED(MEDIAN({area})*Percent_Count,2)&"%"', f"median {percent(median(values))}")

    columns = _extra_columns(runs)
    calls_area, outcome = f"$R${first}:$R${stop}", f"$P${first}:$P${stop}"
    wrong = calls.count("Wrong")
    sentence = Raw(
        f'=IF(COUNTIF({calls_area},"Wrong")=0,"No fit call was wrong: ","Fit calls that were wrong: "&COUNTIF({calls_area},"Wrong")&"; ")'
        f'&COUNTIF({outcome},"Completed")&" runs completed, "&COUNTIF({outcome},"Out of memory")&" ran out of memory."',
        ("No fit call was wrong: " if not wrong else f"Fit calls that were wrong: {wrong}; ")
        + f"{len(done)} runs completed, {failed} ran out of memory.",
    )
    limits = book.template["validation"]["limits"]
    band = f"'{WORKINGS}'!${columns['above']}${first}:${columns['above']}${stop}"
    page.strip(
        book.sheet(TITLE),
        book.styles,
        last_column=last,
        title=book.template["validation"]["title"],
        sentence=sentence,
        stamp=book.template["validation"]["stamp"],
        put=book.putter(book.sheet(TITLE)),
        tiles=[
            Tile(1, 2, "Worst error, traced", worst(columns["traced"], traced), middle(columns["traced"], traced), "tile_text"),
            Tile(3, 5, "Worst error, published", worst(columns["published"], published), middle(columns["published"], published), "tile_text"),
            Tile(6, 8, "Fit calls that were right",
                 Raw(f'=COUNTIF({calls_area},"Right")&" of "&COUNT($E${first}:$E${stop})', f"{right} of {count}"),
                 Raw(f'=COUNTIF({calls_area},"Undecided")&" undecided, "&COUNTIF({calls_area},"Wrong")&" wrong"', f"{calls.count('Undecided')} undecided, {wrong} wrong"),
                 "tile_text"),
            Tile(9, 12, "Upper estimate never too low",
                 Raw(f'=COUNTIF({band},">=0")&" of "&COUNT({band})', f"{never} of {len(above)}"),
                 Raw(f'=FIXED(MIN({band})*Percent_Count,0)&" to "&FIXED(MAX({band})*Percent_Count,0)&"% above measured reserved"',
                     f"{percent(min(above), 0)[:-1]} to {percent(max(above), 0)} above measured reserved"),
                 "tile_text"),
            Tile(13, 17, "What this does not show", limits[0], limits[1], "tile_text"),
        ],
    )  # fmt: skip


def _extra_columns(runs: Runs) -> dict[str, str]:
    from xlsxwriter.utility import xl_col_to_name

    start = 2 + len(runs.table.columns)
    return {name: xl_col_to_name(start + at) for at, name in enumerate(("traced", "published", "above"))}


def _workings(book: Book, runs: Runs) -> None:
    ws, styles, table = book.sheet(WORKINGS), book.styles, runs.table
    put = book.putter(ws)
    last = 2 + len(table.columns) + 3
    page.set_page(ws, book.look, kind="wide", last_column=last, file_and_version=book.footer, rows_repeated=(0, 8), freeze=(9, 2))
    page.plain_head(
        ws, styles, last_column=last, title=WORKINGS, stamp="", put=put,
        sentence="The measured runs as jobs: results, inputs, then every term between. No input of Sizing is read.",
    )  # fmt: skip
    rows = []
    for at, (run, inputs) in enumerate(zip(runs.runs, runs.inputs, strict=True)):
        number = _FIRST + at + 1
        cells = {
            "batch_size": Raw(f"='{TITLE}'!$E{number}", run["batch_size"]),
            "sequence_length": Raw(f"='{TITLE}'!$F{number}", run["sequence_length"]),
            "activation_checkpointing": Raw(f"='{TITLE}'!$G{number}", inputs["activation_checkpointing"]),
        }
        rows.append((run["id"], inputs, cells))
    write_job_table(book, WORKINGS, table, rows, heading="Run", first_row=_FIRST)
    extra = 2 + len(table.columns)
    for offset, (label, source) in enumerate((("Traced error, absolute", "J"), ("Published error, absolute", "L"), ("Upper estimate above measured", "N"))):
        put(_FIRST - 2, extra + offset, label, styles["th_r"])
        put(_FIRST - 1, extra + offset, "share", styles["th_u"])
        for at, (run, values) in enumerate(zip(runs.runs, runs.values, strict=True)):
            number, failed = _FIRST + at + 1, run["measured_oom"]
            gb = book.values["bytes_per_gb"]
            if source == "N":
                formula = f"=IF(ISNUMBER('{TITLE}'!$M{number}),'{TITLE}'!$N{number}/'{TITLE}'!$M{number}-1,\"none\")"
                value: Any = "none" if failed else values["traced_reserved"] / gb / run["measured_peak_reserved_gb"] - 1
            else:
                formula = f"=IF(ISNUMBER('{TITLE}'!${source}{number}),ABS('{TITLE}'!${source}{number}),\"none\")"
                result = "traced_allocated" if source == "J" else "published_allocated"
                value = "none" if failed else abs(round(values[result] / gb / run["measured_peak_allocated_gb"] - 1, 4))
            put(_FIRST + at, extra + offset, Raw(formula, value), styles["r_none" if failed else "r_err"])


def _charts(book: Book, runs: Runs, row: int, end: int) -> None:
    ws, spec = book.sheet(TITLE), book.template["validation"]
    data = "Chart data"
    cd, styles = book.sheet(data), book.styles
    put = book.putter(cd)
    head = 55
    gb = book.values["bytes_per_gb"]
    levers = spec["levers"]
    for column, text in enumerate(("Measured", *(lever["name"] for lever in levers), "Traced error", "Published error"), 1):
        put(head, column, text, styles["th_r"])
    count = len(runs.runs)
    for at, run in enumerate(runs.runs):
        here, source = head + 1 + at, _FIRST + at + 1
        measured = run["measured_peak_allocated_gb"]
        failed = run["measured_oom"]
        put(here, 1, Raw(f"=IF(ISNUMBER('{TITLE}'!$H{source}),'{TITLE}'!$H{source},NA())", "#N/A" if failed else measured), styles["r_calc3"])
        traced, published = (runs.values[at][key] / gb for key in ("traced_allocated", "published_allocated"))
        for column, lever in enumerate(levers, 2):
            mine = run["lever"] in lever["keys"] and not failed
            content = Raw(f"='{TITLE}'!$I{source}", traced) if mine else Raw("=NA()", "#N/A")
            put(here, column, content, styles["r_calc3"])
        for column, (sheet_column, value) in enumerate((("J", traced), ("L", published)), 2 + len(levers)):
            error = "#N/A" if failed else round(value / measured - 1, 4) + 0.0
            put(here, column, Raw(f"=IF(ISNUMBER('{TITLE}'!${sheet_column}{source}),'{TITLE}'!${sheet_column}{source},NA())", error), styles["r_err"])
    lines = head + count + 3
    done = [run["measured_peak_allocated_gb"] for run in runs.runs if not run["measured_oom"]]
    for column, text in enumerate(("Line", "Exact", "10% above", "10% below"), 1):
        put(lines, column, text, styles["th_r"])
    for at, value in enumerate((min(done) * 0.9, max(done) * 1.1), 1):
        put(lines + at, 1, round(value, 3), styles["r_calc3"])
        for column, factor in ((2, 1.0), (3, 1.1), (4, 0.9)):
            put(lines + at, column, round(round(value, 3) * factor, 6), styles["r_calc3"])
    titles = lines + 4
    traced_words = Raw(
        f"=\"Traced is within \"&FIXED(MAX('{WORKINGS}'!${_extra_columns(runs)['traced']}${_FIRST + 1}:${_extra_columns(runs)['traced']}${end + 1})*Percent_Count,2)"
        f"&\"%; published is up to \"&FIXED(MAX('{WORKINGS}'!${_extra_columns(runs)['published']}${_FIRST + 1}:${_extra_columns(runs)['published']}${end + 1})*Percent_Count,1)&\"% off\"",
        _error_title(runs, gb),
    )
    put(titles, 1, "Traced estimates lie on the line of measured peaks", styles["label"])
    put(titles + 1, 1, traced_words, styles["label"])
    x = [data, head + 1, 1, head + count, 1]

    def line(column: int, name: str) -> charts.Points:
        return charts.Points(name, [data, lines + 1, 1, lines + 2, 1], [data, lines + 1, column, lines + 2, column])

    chart = charts.predicted_against_measured(
        book.workbook, book.look, title=[data, titles, 1], exact=line(2, "Exact"),
        above=line(3, "10% above or below"), below=line(4, "10% below"),
        levers=[charts.Points(lever["name"], x, [data, head + 1, 2 + at, head + count, 2 + at]) for at, lever in enumerate(levers)],
    )  # fmt: skip
    size = book.look["charts"]["predicted_against_measured"]["size"]
    charts.place(ws, row, 1, chart, size=size, alt="Traced peak against measured peak of every completed run, with lines 10% above and below")
    first_error = 2 + len(levers)
    chart = charts.error_by_run(
        book.workbook, book.look, title=[data, titles + 1, 1],
        traced=charts.Points("Traced", x, [data, head + 1, first_error, head + count, first_error]),
        published=charts.Points("Published", x, [data, head + 1, first_error + 1, head + count, first_error + 1]),
    )  # fmt: skip
    charts.place(ws, row, 10, chart, size=size, alt="Error of the traced and the published prediction, run by run")


def _error_title(runs: Runs, gb: float) -> str:
    from ...formula.primitives import fixed

    done = [(r, v) for r, v in zip(runs.runs, runs.values, strict=True) if not r["measured_oom"]]
    worst = [max(abs(round(v[key] / gb / r["measured_peak_allocated_gb"] - 1, 4)) for r, v in done) for key in ("traced_allocated", "published_allocated")]
    return f"Traced is within {fixed(worst[0] * 100, 2)}%; published is up to {fixed(worst[1] * 100, 1)}% off"

"""Sharding: the job of Sizing over 1 to 1,024 cards and in each way of sharing it, and the first way that fits.

Each crossing is a row of What-if. Below stand the state of models by size, and what starts the chosen stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...formula.render import column_name
from ...planning.launch import config_of
from ...planning.sharding import COUNTS, STAGES
from .. import charts, page
from ..book import Raw
from ..words import filled, quoted

if TYPE_CHECKING:
    from ..book import Book

TITLE = "Sharding"
_TOP = 4  # row of the first grid's header
_PARTS = (("weight", "weight"), ("gradient", "gradient"), ("master", "optimizer"), ("moment", "optimizer"))
_BILLIONS = (0.25, 0.5, 1, 1.5, 3, 4, 7, 8, 13)  # sizes of models that are shown
_CARDS = (24, 80)  # GB of the cards that lines show


class Sharding:
    """The rows of What-if that hold the crossings, by count and stage."""

    def __init__(self, book: Book) -> None:
        self.words = book.template["sharding"]
        self.rows = {
            (cards, stage): book.what_if.add(
                _named(self.words, cards, stage),
                {"gpu_count": cards, "sharding_stage": stage},
            )
            for cards in COUNTS
            for stage in STAGES
        }


def _named(words: Mapping[str, Any], cards: int, stage: str) -> str:
    """What a crossing is called."""
    if cards == 1:
        return filled(words["alone"], stage=stage)
    return filled(words["crossing"], cards=str(cards), stage=stage)


def plan(book: Book) -> None:
    """Add the crossings to What-if."""
    if "sharding" in book.template:
        book.sharding = Sharding(book)


def write(book: Book) -> None:
    """The sheet, where the workbook has one."""
    if "sharding" not in book.template:
        return
    words = book.sharding.words
    end = _TOP + len(COUNTS)
    totals, states = end + 3, end + 3 + len(COUNTS) + 3
    column = 2 + len(STAGES)

    told = _told(book, column)
    last = page.plain_sheet(book, TITLE, title=words["title"], sentence=told, freeze=(2, 2))
    for top, name in ((_TOP, "verdicts"), (totals, "totals"), (states, "states")):
        _grid(book, top, name)
    _firsts(book, column)
    row = _by_size(book, states + len(COUNTS) + 3, last)
    row = _launch(book, row, last)
    page.state_marks(book.sheet(TITLE), book.styles, (_TOP + 1, 2, end, 1 + len(STAGES)))
    page.print_area(book.sheet(TITLE), row, last)


def _fits(book: Book) -> str:
    return str(book.job.tables["verdicts"].columns["shown"][0])


def _first(book: Book, cards: int) -> str:
    """The stage that divides least of those that fit that many cards; "" where none does."""
    rows = book.sharding.rows
    return next((stage for stage in STAGES if book.what_if.word(rows[cards, stage]) == _fits(book)), "")


def _grid(book: Book, top: int, name: str) -> None:
    """One figure at each crossing: cards down, stages across."""
    ws, styles, sharding = book.sheet(TITLE), book.styles, book.sharding
    put = book.putter(ws)
    page.fill_row(ws, top - 1, 1, 1 + len(STAGES), styles["th_open"], book.look["rows"]["header"])
    put(top - 1, 1, sharding.words[name], styles["th_open"])
    put(top, 1, sharding.words["cards"], styles["th"])
    for at, stage in enumerate(STAGES):
        put(top, 2 + at, stage, styles["th_r"])
    for row, cards in enumerate(COUNTS, top + 1):
        put(row, 1, cards, styles["r_calc0"])
        for at, stage in enumerate(STAGES):
            job = sharding.rows[cards, stage]
            put(
                row,
                2 + at,
                book.shown(_crossing(book, job, name)),
                styles["r_text_r" if name == "verdicts" else "r_calc1"],
            )


def _crossing(book: Book, job: int, name: str) -> Raw:
    jobs = book.what_if
    if name == "verdicts":
        return jobs.verdict(job)
    key = "total_reserved_gb" if name == "totals" else "model_state_per_gpu_gb"
    value = jobs.check if jobs.breaks(job) else jobs.results(job)[key]
    return Raw(f'=IF({jobs.broken(job)}>0,"{jobs.check}",{jobs.address(job, key)})', value)


def _firsts(book: Book, column: int) -> None:
    """Beside the verdicts: the stage that divides least of those that fit, at each count."""
    ws, styles, words = book.sheet(TITLE), book.styles, book.sharding.words
    book.put(ws, _TOP, column, words["lowest"], styles["th_r"])
    for row, cards in enumerate(COUNTS, _TOP + 1):
        across = f"{page.cell(row, 2)}:{page.cell(row, 1 + len(STAGES))}"
        heads = f"{page.cell(_TOP, 2, row_fixed=True)}:{page.cell(_TOP, 1 + len(STAGES), row_fixed=True)}"
        found = f'=IF(COUNTIF({across},"{_fits(book)}")>0,INDEX({heads},MATCH("{_fits(book)}",{across},0)),"–")'
        book.put(ws, row, column, Raw(found, _first(book, cards) or "–"), styles["r_text_r"])


def _told(book: Book, column: int) -> Raw:
    """The smallest count that fits, the stage that divides least at it, and whether it stays on one node."""
    words = book.sharding.words
    lowest, counts = (page.area(_TOP + 1, at, _TOP + len(COUNTS)) for at in (column, 1))
    first = next((cards for cards in COUNTS if _first(book, cards)), 0)
    at = f'MATCH(1,INDEX(({lowest}<>"–")*1,0),0)'
    cards, stage = f"INDEX({counts},{at})", f"INDEX({lowest},{at})"
    node = f'IF({cards}>{book.cell_name("node_cards")},"{words["nodes"]}","{words["node"]}")'
    told = f'"{words["first"]}"&{cards}&" × "&{stage}&{node}'
    formula = f'=IF(Checks_Failed>0,First_Fault,IF(SUMPRODUCT(({lowest}<>"–")*1)>0,{told},"{words["none"]}"))'
    place = words["nodes" if first > book.values["node_cards"] else "node"]
    value = f"{words['first']}{first} × {_first(book, first)}{place}" if first else words["none"]
    return Raw(formula, value)


def _by_size(book: Book, row: int, last: int) -> int:
    """State of models by size with the recipe and stage of Sizing, as a chart with two cards' labels as lines."""
    ws, styles, words = book.sheet(TITLE), book.styles, book.sharding.words
    put, values = book.putter(ws), book.values
    row = page.section(ws, styles, row, last_column=last, name=words["by_size"], put=put)
    put(row, 1, words["chart_title"], styles["label"])
    head, top = row + 1, row + 2
    labels = [words["size"], *words["parts"], *(filled(words["card"], gb=str(gb)) for gb in _CARDS)]
    for at, text in enumerate(labels, 1):
        put(head, at, text, styles["th" if at == 1 else "th_r"])
    for at, billions in enumerate(_BILLIONS, top):
        put(at, 1, billions, styles.variant("r_calc0", format="general"))
        for column, (part, shards) in enumerate(_PARTS, 2):
            state = billions * values[f"{part}_bytes"] / values[f"{shards}_shards"]
            names = (book.cell_name(f"{part}_bytes"), book.cell_name(f"{shards}_shards"))
            put(
                at,
                column,
                book.shown(Raw(f"={page.cell(at, 1, column_fixed=True)}*{names[0]}/{names[1]}", state)),
                styles["r_calc1"],
            )
        for column, gb in enumerate(_CARDS, 2 + len(_PARTS)):
            put(at, column, gb, styles["r_calc0"])
    end = top + len(_BILLIONS) - 1

    def bars(column: int) -> charts.Bars:
        return charts.Bars([TITLE, head, column], [TITLE, top, column, end, column])

    chart = charts.state_by_size(
        book.workbook, book.look, title=[TITLE, row, 1], x_title=words["size"], categories=[TITLE, top, 1, end, 1],
        parts=[bars(column) for column in range(2, 2 + len(_PARTS))],
        cards=[bars(column) for column in range(2 + len(_PARTS), 2 + len(_PARTS) + len(_CARDS))],
    )  # fmt: skip
    size, below = book.look["charts"]["state_by_size"]["size"], end + 2
    charts.place(ws, below, 1, chart, size=size, alt=words["alt"])
    return below + 25


def _launch(book: Book, row: int, last: int) -> int:
    """What starts the chosen stage: the lines of its file that the stage decides."""
    ws, styles, words = book.sheet(TITLE), book.styles, book.sharding.words
    put = book.putter(ws)
    row = page.section(ws, styles, row, last_column=last, name=words["launch"], put=put)
    put(row, 1, words["launch_note"], styles["help"])
    row += 1
    for at, text in enumerate(words["launch_columns"], 1):
        put(row, at, text, styles["th" if at == 1 else "th_r"])
    for setting, formula, value in _settings(book):
        row += 1
        put(row, 1, setting, styles["r_label"])
        put(row, 2, book.shown(Raw(f"={formula}", value)), styles.variant("r_text_r", shrink=True))
    return row + 1


def _settings(book: Book) -> list[tuple[str, str, Any]]:
    """Setting, formula and value of the lines that a stage decides, in either launcher's words; "–" in the other's."""
    config = config_of(book.job, book.values, book.values)
    zero, fsdp = config.get("zero_optimization", {}), config.get("fsdp_config", {})

    def of(table: str, column: str, row: str) -> str:
        return f"INDEX({column_name(table, column)},{book.cell_name(row)})"

    stage = {name: of("sharding_stages", name, "stage_row") for name in ("zero", "fsdp", "hybrid")}
    off = {name: of("offloads", name, "offload_row") for name in ("optimizer", "parameters", "nvme")}
    parts = ("optimizer", "gradients", "weights")
    number = "+".join(of("sharding_stages", f"shards_{part}", "stage_row") for part in parts)
    cards = book.cell_name("gpu_count")
    device = f'IF({off["nvme"]}>0,"nvme","cpu")'

    def only(which: str, then: str) -> str:
        return f'IF({stage[which]}>0,{then},"–")'

    kind = "DEEPSPEED" if zero else config["distributed_type"]
    launcher = f'IF({stage["fsdp"]}>0,"FSDP",IF({cards}>1,"MULTI_GPU","NO"))'
    half = f'IF({book.cell_name("compute_precision")}="fp16 autocast","fp16","bf16")'
    cast = f"IF({stage['zero']}>0,{book.cell_name('autocast_on')},{book.cell_name('autocast_active')})"
    precision = str(book.values["compute_precision"])[:4]
    casts = book.values["autocast_on" if zero else "autocast_active"]
    words, started = book.sharding.words["launch_recipe"], book.cell_name("launcher_starts_recipe")
    starts = book.values["launcher_starts_recipe"]
    return [
        (words["name"], f"IF({started}>0,{quoted(words['starts'])},{quoted(words['not'])})",
         words["starts" if starts else "not"]),
        ("distributed_type", f'IF({stage["zero"]}>0,"DEEPSPEED",{launcher})', kind),
        ("mixed_precision", f'IF({cast}>0,{half},"no")',
         precision if casts else "no"),
        ("num_processes", cards, book.values["gpu_count"]),
        ("zero_optimization.stage", only("zero", number), zero.get("stage", "–")),
        ("zero_optimization.reduce_bucket_size", only("zero", book.cell_name("bucket_elements")),
         zero.get("reduce_bucket_size", "–")),
        ("offload_optimizer.device", only("zero", f'IF({off["optimizer"]}>0,{device},"none")'),
         zero.get("offload_optimizer", {"device": "none"})["device"] if zero else "–"),
        ("offload_param.device", only("zero", f'IF({off["parameters"]}>0,{device},"none")'),
         zero.get("offload_param", {"device": "none"})["device"] if zero else "–"),
        ("fsdp_sharding_strategy", only("fsdp", f'IF({stage["hybrid"]}>0,"HYBRID_SHARD","FULL_SHARD")'),
         fsdp.get("fsdp_sharding_strategy", "–")),
        ("fsdp_offload_params", only("fsdp", f'IF({off["parameters"]}>0,"true","false")'),
         str(fsdp["fsdp_offload_params"]).lower() if fsdp else "–"),
    ]  # fmt: skip

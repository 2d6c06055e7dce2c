"""Presets of a plan: the tables that its formulas look into, each with the columns that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formula.declare import label_of
from ...formula.render import column_name
from .. import page

if TYPE_CHECKING:
    from .book import PlanBook

_PRINTED = 8  # columns of a page; the sheet is looked up, not read

TITLE = "Presets"
RECIPES = "Plan_Recipes_List"
MODELS = "Plan_Models_List"


def write(book: PlanBook) -> None:
    """One table below the other, then the two lists that Jobs offers."""
    ws, styles, words = book.sheet(TITLE), book.styles, book.template["presets_sheet"]
    put = book.putter(ws)
    used: dict[str, list[str]] = {name: [] for name in book.used_tables}
    for table, column in sorted(book.used_columns, key=str):
        if column and table in used:
            used[table].append(column)
    widest = max(len(columns) for columns in used.values())
    last = page.plain_sheet(
        book,
        TITLE,
        kind="wide",
        last_column=3 + widest,
        title=words["title"],
        sentence=words["sentence"],
        freeze=(2, 2),
    )
    plain = styles.variant("r_calc0", format="general", shrink=True)
    row = 2
    for name, columns in used.items():
        looked_up = book.job.tables[name]
        source = book.presets.option_sources.get(name, "")
        row = page.section(
            ws,
            styles,
            row,
            last_column=last,
            name=label_of(name),
            put=put,
            note=source or None,
            note_column=2,
            space_below=False,
        )
        put(row, 1, words["name"], styles["th"])
        for at, column in enumerate(columns, 2):
            put(row, at, label_of(column), styles["th_r"])
        row += 1
        end = row + len(looked_up.keys) - 1
        for number, key in enumerate(looked_up.keys):
            put(row + number, 1, key, styles["r_label"])
            for at, column in enumerate(columns, 2):
                value = looked_up.columns[column][number]
                put(row + number, at, value, styles["r_text_r"] if isinstance(value, str) else plain)
        book.define(column_name(name, None), TITLE, row, 1, end)
        for at, column in enumerate(columns, 2):
            book.define(column_name(name, column), TITLE, row, at, end)
        row = end + 1
    tables = book.job.tables
    for name, title, of in (
        (MODELS, "models", ("models", "training_models")),
        (RECIPES, "recipes", ("storage_formats", "parameter_storage_options", "recipes")),
    ):
        row = page.section(ws, styles, row, last_column=last, name=words[title], put=put, space_below=False)
        keys = list(dict.fromkeys(key for each in of for key in tables[each].keys))
        for at, key in enumerate(keys):
            put(row + at, 1, key, styles["r_label"])
        book.define(name, TITLE, row, 1, row + len(keys) - 1)
        row += len(keys)
    page.print_area(ws, row - 1, min(last, _PRINTED))

"""10,000 cells with GPU_FITS, a LAMBDA name of the workbook, recalculated by an engine that runs such names."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.workbook.build import write_book
from sizing_xlsx.workbook.template import load_template

from .measure import Line, printed_seconds

CELLS, LIMIT_S = 10_000, 4.0
# The workbook is cut down to what its names read, as its other sheets are recalculated too. In a process of its own,
# as the cutting is a part of the tests.
PROGRAM = """
import sys
from pathlib import Path
from time import process_time
import ironcalc
from conftest import File
from lambda_books import cut_down

whole = Path(sys.argv[1])
small = str(cut_down(File(whole), whole.with_name("small.xlsx")))
for repeat in range({repeats}):
    model = ironcalc.load_from_xlsx(small, "en", "UTC", "en")
    model.new_sheet()
    sheet = len(model.get_worksheets_properties()) - 1
    for at in range({cells}):
        call = f'=GPU_FITS("Llama-3.1-8B","H100 SXM5 80GB",{{1 + at % 64}},{{512 + at // 64}})'
        model.set_user_input(sheet, at + 1, 1, call)
    began = process_time()
    model.evaluate()
    print(process_time() - began)
    assert model.get_formatted_cell_value(sheet, 1, 1) == "TRUE"
    del model
"""


def lines(repeats: int) -> list[Line]:
    """Processor seconds of the fine-tuning workbook in IronCalc, where that is installed; no call is like another."""
    if not find_spec("ironcalc"):
        return []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "lora.xlsx"
        write_book(path, "lora", load_template("lora"), load_presets())
        taken = printed_seconds(PROGRAM.format(repeats=repeats, cells=CELLS), str(path))
    return [
        Line(
            f"{CELLS:,} GPU_FITS by LAMBDA in IronCalc",
            f"{median(taken):.1f} s",
            f"<= {LIMIT_S:.0f} s",
            median(taken) <= LIMIT_S,
            f"least {min(taken):.1f} s; {1e6 * median(taken) / CELLS:.0f} microseconds a cell, names written short",
        )
    ]

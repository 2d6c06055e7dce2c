"""1,000 calls of GPU_FITS through the conversion of xlwings, as Excel makes them for 1,000 rows of a sheet."""

from __future__ import annotations

from importlib.util import find_spec
from statistics import median

from .measure import Line, printed_seconds

CALLS, LIMIT_S = 1_000, 0.5
# xlwings runs as on Windows, with pywin32 stood in for: in a process of its own, so that nothing leaks.
PROGRAM = """
import desktop_excel
desktop_excel.as_on_windows()
from time import process_time
from sizing_xlsx.functions.udf import MODULE
from xlwings import udfs

cells, rest = desktop_excel.Cells, (desktop_excel.MISSING,) * (len(udfs.get_udf_module(MODULE, None)
    .GPU_FITS.__xlfunc__["args"]) - 4)

def call(batch_size):
    model, gpu = cells(("Llama-3.1-8B",)), cells(("H100 SXM5 80GB",))
    return udfs.call_udf(MODULE, "GPU_FITS", (model, gpu, cells((float(batch_size),)), 2048.0, *rest))

call(1)
for repeat in range({repeats}):
    began = process_time()
    for batch_size in range(1, {calls} + 1):
        call(batch_size)
    print(process_time() - began)
"""


def lines(repeats: int) -> list[Line]:
    """The calls, where xlwings is installed; one-cell ranges for model, card and batch size, a number besides."""
    if not find_spec("xlwings"):
        return []
    taken = printed_seconds(PROGRAM.format(repeats=repeats, calls=CALLS))
    return [
        Line(
            f"{CALLS:,} GPU_FITS through xlwings",
            f"{median(taken):.2f} s",
            f"<= {LIMIT_S} s",
            median(taken) <= LIMIT_S,
            f"least {min(taken):.2f} s; without COM and Excel",
        )
    ]

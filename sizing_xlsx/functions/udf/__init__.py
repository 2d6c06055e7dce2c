"""The functions through xlwings: in desktop Excel on Windows (its core, which is BSD; nothing of it is paid), and Lite.

facade      what both need of xlwings
lite        what main.py of xlwings Lite calls
lite_text   that main.py
excel       what xlwings imports: every function of the registry, with its help
answer      a call from a cell: ranges, values and sentences; it never raises
cells       values as xlwings hands them over, and as Excel takes them
wizard      texts of the function wizard
vba         names that VBA can take, and the module of functions that it calls
settings    sizing-xlsx-excel.toml: own models and cards, presets, folders that may be read
source      the catalogue under those settings, read anew when a file changes
failures    what went wrong unforeseen, counted in a log without what cells held
places      where things lie on a Windows machine, and what that machine says of its Excel
addin       the .xlam, made from the template in xlwings
install     putting all that in place, and taking it away
status      what is missing or in the way, a line each

Only facade, excel, lite, vba and install import xlwings, the last two inside functions.
"""

from __future__ import annotations

MODULE = "sizing_xlsx.functions.udf.excel"  # the name that VBA calls
VBA_MODULE = "xlwings_udfs"  # what xlwings calls the module that it generates, and looks for when it imports anew
XLWINGS = "0.37.8"  # its .xlam names a library of this very version

"""What lite.mjs runs: main.py is imported as Lite imports it, and called. asked: the calls, as JSON."""

import inspect
import json
import sys
import time

start = time.perf_counter()
import main  # noqa: E402, F401
import xlwings  # noqa: E402

loaded = time.perf_counter()
answers = [xlwings.called(name, given) for name, given in json.loads(asked)]  # noqa: F821
ours = {"__main__", "main", "sizing_xlsx", "xlwings"}
json.dumps(
    {
        "python": sys.version.split()[0],
        "platform": sys.platform,
        "import_s": loaded - start,
        "calls_s": time.perf_counter() - loaded,
        "functions": {
            name: {
                "help": function.__doc__,
                "arguments": function.options,
                "required": [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty],
            }
            for name, function in xlwings.FUNCTIONS.items()
        },
        "answers": answers,
        "packages": sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - ours),
    }
)

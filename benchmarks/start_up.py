"""What a Python process needs to import the package, and to print its first answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from .measure import Line

CHECKOUT = Path(__file__).resolve().parent.parent
IMPORT_MS, ANSWER_MS = 60, 250
HEAVY = ("numpy", "pandas", "torch", "transformers")
BARE, IMPORT = ("-c", "pass"), ("-c", "import sizing_xlsx")
ANSWER = ("-m", "sizing_xlsx", "lora")
SIZE = "import sizing_xlsx; sizing_xlsx.lora.size()"


def lines(repeats: int) -> list[Line]:
    """The import, the modules it loads, and the first answer of the command line."""
    with TemporaryDirectory() as compiled:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = compiled  # compiled once, as an installed package is
        taken = _milliseconds((BARE, IMPORT, ANSWER), 5 * repeats, environment)
        loaded = {
            code: _run(("-c", f"{code}; import sys; print(*sys.modules)"), environment).split()
            for code in (IMPORT[1], SIZE)
        }
    bare, imported, answer = (taken[command] for command in (BARE, IMPORT, ANSWER))
    extra = median(imported) - median(bare)
    heavy = sorted({name for names in loaded.values() for name in HEAVY if name in names})
    return [
        Line(
            "import sizing_xlsx, beyond a bare Python",
            f"{extra:.0f} ms",
            f"<= {IMPORT_MS} ms",
            extra <= IMPORT_MS,
            f"{median(imported):.0f} against {median(bare):.0f} ms, least {min(imported):.0f} against {min(bare):.0f}",
        ),
        Line(
            "heavy packages loaded by import and size()",
            ", ".join(heavy) or "none",
            "none",
            not heavy,
            "looked for: " + ", ".join(HEAVY),
        ),
        Line(
            "first answer, python -m sizing_xlsx lora",
            f"{median(answer):.0f} ms",
            f"<= {ANSWER_MS} ms",
            median(answer) <= ANSWER_MS,
            f"least {min(answer):.0f} ms; {median(answer) / median(bare):.1f} times a bare Python",
        ),
    ]


def _milliseconds(
    commands: tuple[tuple[str, ...], ...], repeats: int, environment: dict[str, str]
) -> dict[tuple[str, ...], list[float]]:
    """Milliseconds by the clock of each command, taking turns, after one start that compiles."""
    taken: dict[tuple[str, ...], list[float]] = {command: [] for command in commands}
    for turn in range(repeats + 1):
        for command in commands:
            start = perf_counter()
            _run(command, environment)
            if turn:
                taken[command].append(1_000 * (perf_counter() - start))
    return taken


def _run(command: tuple[str, ...], environment: dict[str, str]) -> str:
    return subprocess.run(
        (sys.executable, *command), cwd=CHECKOUT, env=environment, check=True, capture_output=True, text=True
    ).stdout

"""A process that performs runs: one JSON object a line in, one a line out. Started by sweep.py.

What libraries print goes to standard error, so that standard output holds nothing but the answers.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import warnings

from .run import from_rows


def main() -> int:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C here too; sweep.py ends this process
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    from .backends import perform

    for line in sys.stdin:
        asked = json.loads(line)
        run = from_rows([asked["run"]])[0]
        row = perform(run, asked["backend"], asked["options"])
        answers.write(json.dumps(row) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

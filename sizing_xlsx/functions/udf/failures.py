"""What went wrong unforeseen: counted, and logged now and then. Never what cells held, nor the error's own words."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

LOGGER = logging.getLogger("sizing_xlsx.excel")
COUNTS: Counter[tuple[str, str, str]] = Counter()


def count(function: str, error: BaseException) -> None:
    """Count a failure by function, kind and line; the 1st, 10th, 100th… of each is a line of the log."""
    key = (function, type(error).__name__, _where(error))
    COUNTS[key] += 1
    if str(COUNTS[key]).strip("0") == "1":
        LOGGER.warning("%s: %s at %s, %d so far", *key, COUNTS[key])


def _where(error: BaseException) -> str:
    """File and line where it was raised."""
    trace = error.__traceback__
    if trace is None:
        return "?"
    while trace.tb_next:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def log_to(file: Path) -> None:
    """Write the log to a file beside the settings, from the first failure on; its folder may be missing."""
    from logging.handlers import RotatingFileHandler

    if file.parent.is_dir() and not LOGGER.handlers:
        handler = RotatingFileHandler(file, maxBytes=100_000, backupCount=1, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        LOGGER.addHandler(handler)
        LOGGER.propagate = False

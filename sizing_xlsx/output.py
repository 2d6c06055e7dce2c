"""Text to standard output, whoever reads it."""

from __future__ import annotations

import os
import sys


def printed(text: str, end: str = "\n") -> None:
    """Writes a text to standard output; a reader that stops early, such as head, is no error."""
    try:
        sys.stdout.write(text + end)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

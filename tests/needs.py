"""What some tests need beside Python: Node, the packages of tests/browser, a Chromium. Why a test is skipped without."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

NODE_FOLDER = Path(__file__).parent / "browser"
OLDEST_NODE = 20  # of playwright-core
NODE = shutil.which("node")
CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@cache
def without_node() -> str:
    """Why Node cannot be used here; "" where it can."""
    if NODE is None:
        return f"needs node {OLDEST_NODE}, which is not here"
    told = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    number = told.removeprefix("v").partition(".")[0]
    return "" if number.isdecimal() and int(number) >= OLDEST_NODE else f"needs node {OLDEST_NODE}; here is {told}"


def without_node_packages(*names: str) -> str:
    """Why packages of Node cannot be used here; "" where they can."""
    if lacking_node := without_node():
        return lacking_node
    lacking = [name for name in names if not (NODE_FOLDER / "node_modules" / name).exists()]
    return f"needs {lacking[0]} of node_modules: `npm ci` in tests/browser" if lacking else ""


def without_browser() -> str:
    """Why no page can be opened here; "" where it can."""
    if CHROMIUM is None:
        return "needs chromium, which is not here"
    return without_node_packages("playwright-core", "@microsoft/office-js")

"""The rule of CI for skipped tests: each says why, and none is skipped for want of what this machine has.

SIZING_XLSX_HERE names, with spaces between, what .ci/run has seen to be there; the packages of the extra "test" count as
there too. Without the variable nothing is asked: on other machines a test may be skipped for what is missing.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

VARIABLE = "SIZING_XLSX_HERE"
_WANT = re.compile(r"\b(needs|not here|not installed|could not import|has no|no python)\b", re.IGNORECASE)
_NO_REASON = ("", "unconditional skip", "Skipped")


def objection(reason: str, here: Iterable[str]) -> str:
    """What is wrong with the reason of a skip; "" where nothing is. here: what this machine has."""
    if reason in _NO_REASON:
        return "says no reason"
    if _WANT.search(reason):
        for name in here:
            if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", reason, re.IGNORECASE):
                return f"is skipped for want of {name}, which is here"
    return ""


def packages() -> list[str]:
    """What the extra "test" installs, by name."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in project["optional-dependencies"]["test"]]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that skipped what it should not have."""
    named, reporter = os.environ.get(VARIABLE), session.config.pluginmanager.get_plugin("terminalreporter")
    if named is None or reporter is None or hasattr(session.config, "workerinput"):
        return
    here = [*named.split(), *packages()]
    found = []
    for report in reporter.stats.get("skipped", ()):
        path, line, words = report.longrepr
        reason = words.removeprefix("Skipped:").strip()
        if wrong := objection(reason, here):
            found.append(f"skipped, but should not be: {path}:{line} {wrong} ({reason})")
    if found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line("\n" + "\n".join(found), red=True)

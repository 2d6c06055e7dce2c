"""The rule of CI for skipped tests, on reasons, and on a run of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from skips import VARIABLE, objection, packages

HERE = ["node", "chromium", "torch", "libreoffice"]


@pytest.mark.parametrize("reason", ["", "unconditional skip", "Skipped"])
def test_a_skip_without_a_reason_is_told(reason: str) -> None:
    assert objection(reason, HERE) == "says no reason"


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("needs chromium, which is not here", "chromium"),
        ("torch is not installed; the extra 'test' brings it", "torch"),
        ("could not import 'torch': No module named 'torch'", "torch"),
        ("LibreOffice is not here", "libreoffice"),
    ],
)
def test_a_skip_for_want_of_what_is_here_is_told(reason: str, name: str) -> None:
    assert objection(reason, HERE) == f"is skipped for want of {name}, which is here"
    assert objection(reason, ["ray"]) == ""


@pytest.mark.parametrize(
    "reason",
    [
        "torchtune is not installed; its recorded steps are tested in its place",
        "LibreOffice knows no truth values, only the numbers 1 and 0",
        "links need rights on Windows",
        "needs node_modules",
    ],
)
def test_other_reasons_stand(reason: str) -> None:
    assert objection(reason, HERE) == ""


def test_packages_of_the_tests_count_as_here() -> None:
    assert {"pytest", "torch", "xlwings", "pytest-xdist"} <= set(packages())


SUITE = """
import pytest
{module}
def test_a(): pass
@pytest.mark.skip(reason="{reason}")
def test_b(): pass
"""
NOWHERE = 'pytest.importorskip("no_such_module", reason="node is not here")'


@pytest.mark.parametrize(
    ("reason", "module", "here", "status"),
    [
        ("needs node", "", None, 0),
        ("needs node", "", "chromium", 0),
        ("needs node", "", "node", 1),
        ("", "", "", 1),
    ],
)
def test_a_run_fails(reason: str, module: str, here: str | None, status: int, tmp_path: Path) -> None:
    done = run(tmp_path, reason, module, here)
    assert done.returncode == status, done.stdout
    assert ("skipped, but should not be: " in done.stdout) == bool(status)


def test_a_run_side_by_side_fails_for_a_file_that_is_skipped_whole(tmp_path: Path) -> None:
    done = run(tmp_path, "of no use", NOWHERE, "node", "-p", "xdist", "-n", "2")
    assert done.returncode == 1, done.stdout
    assert "test_one.py:3 is skipped for want of node, which is here" in done.stdout


def run(folder: Path, reason: str, module: str, here: str | None, *options: str) -> subprocess.CompletedProcess[str]:
    """pytest with the rule over two files, the first of which skips a test or is skipped itself."""
    (folder / "test_one.py").write_text(SUITE.format(reason=reason, module=module))
    (folder / "test_two.py").write_text("def test_c(): pass\n")
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    environment |= {"PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment |= {} if here is None else {VARIABLE: here}
    command = [sys.executable, "-m", "pytest", "-p", "skips", "-p", "no:cacheprovider", *options, str(folder)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

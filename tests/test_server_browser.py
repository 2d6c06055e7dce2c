"""The add-in's scripts: functions.js under Node, and the whole add-in in a browser with the vendor's own runtime.

Excel's side is a stand-in (tests/browser/excel_stand_in.js). `npm ci` in tests/browser and a Chromium make these run.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason='needs the extra "server"')

import function_vectors
from needs import CHROMIUM, NODE, NODE_FOLDER, without_browser, without_node
from server_tools import Served, running

from sizing_xlsx import functions
from sizing_xlsx.functions.batch import call_many
from sizing_xlsx.functions.signature import TABLE
from sizing_xlsx.server.metadata import identity_of

needs_node = pytest.mark.skipif(bool(without_node()), reason=without_node())
CELLS = 10_000
REGISTRY = functions.registered()
VECTORS = function_vectors.read()
TABLES = [
    {"function": name, "arguments": example}
    for name, function in REGISTRY.items()
    if function.result.kind == TABLE
    for example in function.examples
]
CODES = {1: "#N/A", 7: "#VALUE!"}  # of errors in the vendor's runtime


@needs_node
def test_the_batcher_under_node() -> None:
    done = subprocess.run(
        [str(NODE), "--test", "functions.test.mjs"],
        check=False,
        cwd=NODE_FOLDER,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "# fail 0" in done.stdout
    assert "# pass 0" not in done.stdout


@needs_node
@pytest.mark.parametrize("name", ["functions.js", "taskpane.js", "api.js"])
def test_the_scripts_are_read_by_node(name: str) -> None:
    script = Path(__file__).parent.parent / "sizing_xlsx" / "server" / "assets" / name
    subprocess.run([str(NODE), "--check", str(script)], check=True, timeout=60)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a browser saw of the add-in."""
    if lacking := without_browser():
        pytest.skip(lacking)
    served = Served(tmp_path_factory.mktemp("browser"))
    with running(served.folder, "--dev", scheme="https") as (url, log, _):
        key = next(word for word in log.read_text().split() if word.startswith("sx_"))
        command = [NODE, "add_in.mjs", url, key, CHROMIUM, str(CELLS)]
        asked = [
            [identity_of(REGISTRY[case["function"]]), function_vectors.given(case)] for case in (*VECTORS, *TABLES)
        ]
        done = subprocess.run(
            command, check=False, cwd=NODE_FOLDER, input=json.dumps(asked), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
    assert found["stored"] == {"sizing-xlsx.key": key}
    return found


def test_cells_ask_to_sign_in_first(seen: Any) -> None:
    (cell,) = seen["before"]
    assert (cell["failed"], cell["errorCode"]) == (True, 1)  # #N/A
    assert cell["value"].startswith("Sign in")


def test_the_task_pane_signs_in_and_shows_every_function(seen: Any) -> None:
    assert seen["who"].startswith("Signed in for dev, as administrator")
    assert sorted(seen["functions"]) == sorted(REGISTRY)
    assert seen["searched"] == ["GPU_BREAKDOWN"]
    assert seen["examples"] == ['=SIZING.GPU_BREAKDOWN("Llama-3.1-8B", "H100 SXM5 80GB", 8, 2048)']
    assert seen["administration"]


def test_values_errors_and_tables_reach_the_cells(seen: Any) -> None:
    fits, unknown, wrong, headroom, table = seen["few"]
    assert fits["value"] is True
    assert (unknown["failed"], unknown["errorCode"]) == (True, 1)
    assert "no such model" in unknown["value"]
    assert (wrong["failed"], wrong["errorCode"]) == (True, 7)  # #VALUE!
    assert wrong["value"].startswith("batch_size is -1; ")
    assert headroom["value"] == pytest.approx(functions.call("GPU_HEADROOM", "Llama-3.1-8B", "H100 SXM5 80GB", 1, 2048))
    assert table["value"] == [
        ["" if cell is None else cell for cell in row] for row in functions.call("GPU_LIST", "L40")
    ]


def test_golden_vectors_reach_the_cells(seen: Any) -> None:
    for case, cell in zip(VECTORS, seen["asked"], strict=False):
        error = CODES[cell["errorCode"]] if cell["failed"] else None
        assert function_vectors.is_met(case, cell["value"], error), (case, cell)


def test_examples_of_tables_reach_the_cells(seen: Any) -> None:
    found = seen["asked"][len(VECTORS) :]
    assert len(found) == len(TABLES) > 0
    for case, cell in zip(TABLES, found, strict=True):
        table = functions.call(case["function"], **case["arguments"])
        assert cell["value"] == [["" if value is None else value for value in row] for row in table], case


def test_ten_thousand_cells_take_twenty_requests_and_none_again(seen: Any) -> None:
    sheet = seen["sheet"]
    assert sheet["failed"] == 0
    assert len(sheet["requests"]) <= 20
    assert max(sheet["requests"]) <= 500
    calls = [("GPU_FITS", ["Llama-3.1-8B", "H100 SXM5 80GB", batch, 2048]) for batch in range(1, CELLS + 1)]
    assert seen["values"] == call_many(calls, answers=None)
    assert seen["again"]["requests"] == []


def test_nothing_but_the_vendors_telemetry_is_blocked(seen: Any) -> None:
    """The runtime wants a hidden frame of its own; the policy of the pages allows none."""
    allowed = (
        "Applying inline style violates",
        "Framing 'https://telemetryservice.firstpartyapps.oaspapps.com/' violates",
    )
    assert [line for line in seen["told"] if not line.startswith(allowed)] == []
    assert seen["elsewhere"] == []

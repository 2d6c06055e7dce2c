"""The functions in xlwings Lite: main.py as it is pasted, in real Pyodide under Node, with a stand-in for Lite's xlwings."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import function_vectors
import pytest
from needs import NODE, NODE_FOLDER, without_node_packages

from sizing_xlsx import cli, functions
from sizing_xlsx.functions.signature import TABLE
from sizing_xlsx.functions.udf.lite_text import REQUIREMENT, WHEEL, main_py

CHECKOUT = Path(__file__).resolve().parent.parent
REGISTRY = functions.registered()
VECTORS = function_vectors.read()
EXAMPLES = [
    {"function": name, "arguments": example} for name, function in REGISTRY.items() for example in function.examples
]


def packed(file: Path) -> None:
    """The package's files where the wheel has them."""
    folders = {
        "sizing_xlsx": "sizing_xlsx",
        "presets": "sizing_xlsx/_data/presets",
        "templates": "sizing_xlsx/_data/templates",
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder, name in folders.items():
            for path in sorted((CHECKOUT / folder).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, f"{name}/{path.relative_to(CHECKOUT / folder).as_posix()}")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What Pyodide answered."""
    if lacking := without_node_packages("pyodide"):
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("lite")
    packed(folder / "wheel.zip")
    (folder / "main.py").write_text(main_py(), encoding="utf-8")
    asked = [(case["function"], function_vectors.given(case)) for case in (*VECTORS, *EXAMPLES)]
    done = subprocess.run(
        [str(NODE), "lite.mjs", folder / "wheel.zip", folder / "main.py"],
        check=False,
        cwd=NODE_FOLDER,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def test_it_is_pyodide_and_needs_no_other_package(seen: Any) -> None:
    assert seen["platform"] == "emscripten"
    assert [name for name in seen["packages"] if not name.lstrip("_").startswith("pyodide")] == []


def test_golden_vectors_are_met(seen: Any) -> None:
    for case, cell in zip(VECTORS, seen["answers"], strict=False):
        error = str(cell).partition(" ")[0] if str(cell).startswith("#") else None
        assert function_vectors.is_met(case, cell, error), (case, cell)


def test_examples_are_answered_as_in_python(seen: Any) -> None:
    found = seen["answers"][len(VECTORS) :]
    for case, cell in zip(EXAMPLES, found, strict=True):
        assert cell == functions.call(case["function"], **case["arguments"]), case
    assert any(REGISTRY[case["function"]].result.kind == TABLE for case in EXAMPLES)


def test_functions_come_with_their_help(seen: Any) -> None:
    assert set(seen["functions"]) == set(REGISTRY)
    for name, function in REGISTRY.items():
        facts = seen["functions"][name]
        assert function.help[:100] in facts["help"]
        assert facts["required"] == list(function.arguments[: function.required])
        assert set(facts["arguments"]) == set(function.arguments)
        for options in facts["arguments"].values():
            assert (options["ndim"], options["err_to_str"]) == (2, True)
            assert 0 < len(options["doc"]) <= 255


def test_the_command_prints_what_is_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["excel", "lite"]) == 0
    printed = capsys.readouterr().out
    assert printed == main_py()
    assert f"\nxlwings\n{REQUIREMENT}\n" in printed
    assert printed.isascii()
    assert max(map(len, printed.splitlines())) <= 120
    compile(printed, "main.py", "exec")


def test_the_wheel_may_lie_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    address = f"https://files.example.com/{WHEEL}"
    assert cli.main(["excel", "lite", "--wheel", address]) == 0
    assert f"\nxlwings\n{address}\n" in capsys.readouterr().out
    for wrong in (f"http://files.example.com/{WHEEL}", "https://files.example.com/sizing.whl", WHEEL):
        assert cli.main(["excel", "lite", "--wheel", wrong]) == 2
        assert f"wheel is '{wrong}'; it must be an https address that ends with /{WHEEL}" in capsys.readouterr().err


def test_the_page_names_this_version() -> None:
    page = (CHECKOUT / "docs" / "xlwings-lite.md").read_text(encoding="utf-8")
    assert f"\n       {REQUIREMENT}\n" in page
    assert f"/{WHEEL} > main.py\n" in page


def test_main_py_of_another_version_is_told() -> None:
    lite = pytest.importorskip("sizing_xlsx.functions.udf.lite", reason="xlwings is not installed")

    def gpu_list(text: Any = None) -> None: ...

    for name in ("GPU_LIST", "GPU_SOUL"):
        gpu_list.__name__ = name
        with pytest.raises(ValueError, match=f"^{name} of main.py is of another version; `sizing-xlsx excel lite`"):
            lite.with_help(gpu_list)

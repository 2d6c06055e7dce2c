"""functions.json against the vendor's own generator, which reads the functions as JavaScript with comments."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

pytest.importorskip("fastapi", reason='needs the extra "server"')

from needs import NODE, NODE_FOLDER, without_node_packages

from sizing_xlsx import functions
from sizing_xlsx.functions.signature import NUMBER, TABLE, TEXT, TRUTH, Function
from sizing_xlsx.server.metadata import functions_json, identity_of

lacking = without_node_packages("custom-functions-metadata", "typescript")
pytestmark = pytest.mark.skipif(bool(lacking), reason=lacking)

REGISTRY = functions.registered()
RESULTS = {TRUTH: "boolean", NUMBER: "number", TEXT: "string", TABLE: "any[][]"}


def as_javascript(function: Function, identity: str) -> str:
    """A function as an author of an add-in would write it for the generator."""
    parameters = [
        f" * @param {{any}} {name if at < function.required else f'[{name}]'} of any type"
        for at, name in enumerate(function.arguments)
    ]
    lines = [
        f"/** {function.help}",
        f" * @customfunction {identity} {function.name}",
        *parameters,
        f" * @returns {{{RESULTS[function.result.kind]}}} the result",
        " */",
        f"function of_{function.name}({', '.join(function.arguments)}) {{}}",
    ]
    return "\n".join(lines)


def generated(*sources: str) -> dict[str, Any]:
    """What the generator makes of sources."""
    done = subprocess.run(
        [str(NODE), "metadata.mjs"],
        check=True,
        cwd=NODE_FOLDER,
        input="\n".join(sources),
        capture_output=True,
        text=True,
        timeout=120,
    )
    return dict(json.loads(done.stdout))


def facts(function: dict[str, Any]) -> dict[str, Any]:
    """What Excel calls and converts by; what is left out has the value that the vendor's schema gives it."""
    return {
        "id": function["id"],
        "name": function["name"],
        "result": (function["result"].get("type", "any"), function["result"].get("dimensionality", "scalar")),
        "parameters": [
            (each["name"], each.get("type", "any"), each.get("dimensionality", "scalar"), each.get("optional", False))
            for each in function["parameters"]
        ],
    }


def test_the_generator_agrees() -> None:
    found = generated(*(as_javascript(each, identity_of(each)) for each in REGISTRY.values()))
    served = functions_json(functions.default_desk(), "https://sizing.example.com")["functions"]
    assert found["errors"] == []
    assert [facts(each) for each in served] == [facts(each) for each in found["functions"]]
    assert {kind.result.kind for kind in REGISTRY.values()} == set(RESULTS)


def test_what_excel_cannot_call_is_refused() -> None:
    fits = REGISTRY["GPU_FITS"]
    for function, identity in ((fits, "GPU:FITS"), (fits._replace(name="2FITS"), "GPU.FITS")):
        assert len(generated(as_javascript(function, identity))["errors"]) == 1

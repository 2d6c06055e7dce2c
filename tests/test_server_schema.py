"""Requests that schemathesis makes from the OpenAPI description: none ends in a failure of the service.

`SCHEMA_EXAMPLES=2000 pytest tests/test_server_schema.py` makes a long run of it.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
pytest.importorskip("fastapi", reason='needs the extra "server"')

from hypothesis import HealthCheck, given, settings  # noqa: E402
from server_tools import Served, signed  # noqa: E402

from sizing_xlsx.server.app import create  # noqa: E402

EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "15"))
OPERATIONS = (
    ("post", "/v1/calls"), ("get", "/v1/me"), ("get", "/v1/functions"), ("get", "/v1/presets"), ("put", "/v1/presets"),
    ("post", "/v1/presets/version"), ("get", "/health"), ("get", "/metrics"),
)  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served(tmp_path_factory.mktemp("schema"))


@pytest.fixture(scope="module")
def schema(served: Served) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", create(served.settings()))


def test_every_operation_is_tried(schema: Any) -> None:
    found = {(each.ok().method, each.ok().path) for each in schema.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_request_makes_the_service_fail(schema: Any, served: Served, method: str, path: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=schema[path][method].as_strategy())
    def tried(case: Any) -> None:
        for key in (served.admin, ""):
            reply = case.call(headers=signed(key) if key else {})
            assert reply.status_code < 500, reply.text
            assert key or reply.status_code == 401 or not path.startswith("/v1/")

    tried()

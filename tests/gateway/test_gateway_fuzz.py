"""Whatever is sent to it, the gateway answers as its OpenAPI says and never fails.

schemathesis makes the requests, from the schema and against it. Its own pytest plugin does not know
this pytest, so its strategies are given to hypothesis directly.
"""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode, checks
from schemathesis.specs.openapi.checks import (
    response_schema_conformance,
    status_code_conformance,
)
from scripted import ScriptedBackend

from memograd.gateway.admission import GatewayLimits
from memograd.gateway.app import create_app
from memograd.gateway.store import TraceStore

CHECKS = [checks.not_a_server_error, status_code_conformance, response_schema_conformance]
PATHS = [
    ("GET", "/health"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{name}"),
    ("POST", "/v1/responses"),
    ("GET", "/v1/responses/{response_id}"),
    ("DELETE", "/v1/responses/{response_id}"),
    ("GET", "/v1/responses/{response_id}/input_items"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/embeddings"),
    ("POST", "/rollout"),
    ("GET", "/rollout/{rollout_id}"),
    ("POST", "/rollout/{rollout_id}/reward"),
    ("POST", "/rollout/{rollout_id}/failure"),
    ("GET", "/rollout/{rollout_id}/v1/models"),
    ("GET", "/rollout/{rollout_id}/v1/models/{name}"),
    ("POST", "/rollout/{rollout_id}/v1/responses"),
    ("GET", "/rollout/{rollout_id}/v1/responses/{response_id}"),
    ("DELETE", "/rollout/{rollout_id}/v1/responses/{response_id}"),
    ("GET", "/rollout/{rollout_id}/v1/responses/{response_id}/input_items"),
    ("POST", "/rollout/{rollout_id}/v1/completions"),
    ("POST", "/rollout/{rollout_id}/v1/chat/completions"),
    ("POST", "/rollout/{rollout_id}/v1/embeddings"),
]

TRIED = [(*one, mode) for mode in GenerationMode for one in PATHS]
# What breaks the schema breaks it in a body, wherever it is sent: without one, and in a rollout
# where the same is taken outside of them, that is slow.
FAST = [
    place
    for place, (method, path, mode) in enumerate(TRIED)
    if mode is GenerationMode.POSITIVE
    or (method == "POST" and not path.startswith("/rollout/{rollout_id}/v1"))
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    opened = TraceStore(f"sqlite:///{tmp_path_factory.mktemp('fuzz')}/traces.db")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def schema(store: TraceStore):
    backend = ScriptedBackend(lambda messages: "好")
    limits = GatewayLimits(max_body=100_000)
    app = create_app(backend, store, limits=limits, hosts=["testserver"])
    return schemathesis.openapi.from_asgi("/openapi.json", app)


def test_every_path_is_tried(schema) -> None:
    known = [operation.ok() for operation in schema.get_all_operations()]
    assert {(one.method.upper(), one.path) for one in known} == set(PATHS)


@pytest.mark.parametrize(("method", "path", "mode"), TRIED)
def test_it_keeps_to_its_openapi(schema, store, method: str, path: str, mode) -> None:
    operation = schema[path][method]
    try:
        cases = operation.as_strategy(generation_mode=mode)
    except Exception as error:
        pytest.fail(f"no cases could be made: {error}")

    @settings(
        max_examples=5,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, known=st.booleans())
    def check(case, known: bool) -> None:
        if known and "{rollout_id}" in path:  # the key fits, and the rollout lives
            made = store.create()
            case.path_parameters = {**case.path_parameters, "rollout_id": made.record.id}
            case.headers = {**(case.headers or {}), "authorization": f"Bearer {made.api_key}"}
        case.call_and_validate(checks=CHECKS)

    try:
        check()
    except Exception as error:
        # Nothing about a path without parameters can be wrong.
        if type(error).__name__ != "Unsatisfiable":
            raise
        assert mode is GenerationMode.NEGATIVE


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[" * 50_000,
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"messages": [{"role": "user", "content": "\\u0000"}], "seed": 1e999}',
        b'{"messages": [{"role": "assistant", "tool_calls": [{"id": "", "function": 3}]}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "n": 99999999999999999999}',
        b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
        b'{"input": [{"type": "function_call", "call_id": "", "name": "\\ud800"}]}',
        b'{"input": [{"role": "user", "content": [{"type": "input_text", "text": 3}]}]}',
        b'{"input": "\\u0000", "text": {"format": []}, "tools": [{}]}',
        b'{"prompt": "\\ud800\\u0000", "logprobs": 20}',
        b"\xff\xfe",
    ],
)
def test_bodies_that_break_parsers_are_refused_or_answered(schema, store, body: bytes) -> None:
    from starlette.testclient import TestClient

    made = store.create()
    client = TestClient(schema.app, raise_server_exceptions=False)
    headers = {"Authorization": f"Bearer {made.api_key}", "Content-Type": "application/json"}
    for path in ("chat/completions", "responses", "completions", "embeddings"):
        answer = client.post(f"/rollout/{made.record.id}/v1/{path}", content=body, headers=headers)
        assert answer.status_code in (200, 400, 404)
        assert "error" in answer.json() or answer.status_code == 200

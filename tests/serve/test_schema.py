"""The whole OpenAPI description, tried by schemathesis: what is documented is what is answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from asked import ADMIN, Serving
from hypothesis import HealthCheck, given, settings

from memograd.serve.served import ServeLimits

schemathesis = pytest.importorskip("schemathesis")
from schemathesis.core.failures import FailureGroup  # noqa: E402
from schemathesis.specs.openapi import checks  # noqa: E402

NOT_OFFERED = 501  # with the name of what is not offered: described, and no failure


def not_a_failure(ctx: Any, response: Any, case: Any) -> None:
    """`not_a_server_error`, which takes any 5xx for a crash, but for what is not offered."""
    if response.status_code != NOT_OFFERED:
        schemathesis.checks.not_a_server_error(ctx, response, case)


@schemathesis.serializer("application/x-ndjson")
def as_it_is(_: Any, value: Any) -> Any:
    """Lines of JSON are described as bytes: what is drawn goes out as it is."""
    return {"content": value if isinstance(value, bytes) else str(value).encode()}


CHECKS = [
    not_a_failure,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
ENDLESS = "/operations/feed"
LIMITS = ServeLimits(calls_per_minute=10**9)


@pytest.fixture
def schema(make_serving: Callable[..., Serving]) -> Any:
    serving = make_serving(limits=LIMITS)
    headers = {"X-API-Key": ADMIN, "Host": "localhost"}
    loaded = schemathesis.openapi.from_asgi("/openapi.json", serving.app, headers=headers)
    return loaded.exclude(path=ENDLESS)


def failures(schema: Any, examples: int) -> list[str]:
    """What each route answers otherwise than it is described."""
    headers = {"X-API-Key": ADMIN, "Host": "localhost"}
    found_wrong = []
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def answers_as_described(case: Any) -> None:
            case.call_and_validate(headers=headers, checks=CHECKS)

        try:
            answers_as_described()
        except FailureGroup as group:
            found_wrong += [f"{operation.label}: {one}" for one in group.exceptions]
        tried += 1
    assert tried > 30
    return found_wrong


@pytest.mark.slow
def test_every_route_answers_as_it_is_described(schema: Any) -> None:
    assert failures(schema, 100) == []


def test_every_route_wants_a_key(served_empty: Serving) -> None:
    described = json.loads(served_empty.ask("GET", "/openapi.json").text)
    tried_paths = 0
    for path, methods in described["paths"].items():
        if path == "/healthz":
            continue
        for method in methods:
            place = path.replace("{entity_type}", "user").replace("{", "").replace("}", "")
            answer = served_empty.ask(method.upper(), place, None, content=b"{}")
            assert answer.status_code == 401, (method, path, answer.text)
            tried_paths += 1
    assert tried_paths > 30

"""What is no JSON for everybody is none for us; what is nested without end is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient

from memograd.errors import BadInput
from memograd.memory.journal.rows import to_json
from memograd.web.json_text import DEEPEST, MOST_VALUES, too_deep
from memograd.web.strict_json import StrictRoute

KIND = {"Content-Type": "application/json"}


def nested(depth: int, opening: str = "[", closing: str = "]") -> Any:
    return json.loads(opening * depth + closing * depth)


@pytest.fixture(scope="module")
def web() -> TestClient:
    routes = APIRouter(route_class=StrictRoute)

    @routes.post("/")
    def back(told: dict[str, Any]) -> Any:
        return told

    app = FastAPI()
    app.include_router(routes)
    return TestClient(app)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": 1e999}', "1e999"),
        ('{"a": [{"b": -1e400}]}', "-1e400"),
        ('{"a": ' + "9" * 5_000 + "}", "9… is no number of a computer"),
        ('{"user_id": "alice", "user_id": "bob"}', "'user_id' is there twice"),
        ('{"a": {"b": 1, "b": 1}}', "'b' is there twice"),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", "nested too deep"),
        ('{"a": ' + '{"a": ' * 150 + "1" + "}" * 151, "nested too deep"),
        ('{"a": ' + "[" * 100_000, "nested too deep"),
    ],
)
def test_what_others_would_read_in_another_way_is_refused(
    web: TestClient, body: str, said: str
) -> None:
    answer = web.post("/", content=body, headers=KIND)
    assert answer.status_code == 422
    assert said in answer.json()["detail"][0]["ctx"]["error"]


@pytest.mark.parametrize(
    "body",
    [
        '{"a": 1.5e300, "b": [1, 2], "": null, "\\u4e2d": "\\u4e2d"}',
        '{"a": [' + "{}, " * 500 + "{}]}",
        '{"a": ' + "[" * 99 + "]" * 99 + "}",
    ],
)
def test_everything_else_comes_through(web: TestClient, body: str) -> None:
    answer = web.post("/", content=body, headers=KIND)
    assert answer.json() == json.loads(body)


def test_depth_is_that_of_the_deepest_part() -> None:
    assert not too_deep("[[[")
    assert not too_deep(nested(DEEPEST))
    assert too_deep(nested(DEEPEST + 1))
    assert too_deep([1, {"a": {"b": nested(DEEPEST - 1)}}])


def test_a_journal_keeps_nothing_that_cannot_be_told() -> None:
    assert to_json(nested(DEEPEST), "metadata")[1] == nested(DEEPEST)
    with pytest.raises(BadInput, match="metadata is nested more than 100 levels deep"):
        to_json(nested(DEEPEST + 1), "metadata")


@pytest.mark.parametrize(
    "told",
    [
        {"a": [1] * MOST_VALUES},
        {"a": [[]] * MOST_VALUES},
        {"a": [{"b": 1}] * (MOST_VALUES // 2)},
        {str(n): 1 for n in range(MOST_VALUES + 1)},
    ],
)
def test_a_body_of_too_many_values_is_refused(web: TestClient, told: Any) -> None:
    refused = web.post("/", json=told)
    assert refused.status_code == 413
    assert refused.json() == {"detail": f"The body holds more than {MOST_VALUES} values."}


def test_a_body_of_as_many_values_as_may_be_is_taken(web: TestClient) -> None:
    told = {"a": [1] * (MOST_VALUES - 2), "b": ",[{" * MOST_VALUES}
    assert web.post("/", json=told).json() == told

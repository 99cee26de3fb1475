"""What each route refuses, in one sentence, having changed nothing."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from asked import Serving


@pytest.mark.parametrize(
    ("method", "path", "given", "status", "said"),
    [
        ("POST", "/memories", {"content": b"{"}, 422, "JSON"),
        ("POST", "/memories", {"content": b'{"messages": NaN}'}, 422, "JSON"),
        ("POST", "/memories", {"content": b"[" * 200_000}, 422, "JSON"),
        ("POST", "/memories", {"content": b'{"messages": "\xff"}'}, 422, "JSON"),
        ("POST", "/memories", {"content": b'{"messages": "\xed\xa0\x80"}'}, 422, "not UTF-8"),
        ("POST", "/memories", {"content": '{"messages": "a"}'.encode("utf-16")}, 422, "not UTF-8"),
        ("POST", "/memories", {"content": b'\xef\xbb\xbf{"messages": "a"}'}, 400, "needs an owner"),
        ("POST", "/memories", {"json": {"messages": "Hi"}}, 400, "needs an owner"),
        ("POST", "/memories", {"json": {"messages": "Hi", "user_id": " "}}, 400, "not be empty"),
        ("POST", "/memories", {"json": {"messages": "Hi", "usr_id": "a"}}, 422, "usr_id"),
        ("POST", "/memories", {"json": {"messages": 5, "user_id": "a"}}, 422, "messages"),
        ("POST", "/memories", {"json": {"messages": "Hi", "user_id": "a\0"}}, 400, "NUL"),
        (
            "POST",
            "/memories",
            {"content": b'{"messages": "\\ud800", "user_id": "a"}'},
            400,
            "not valid Unicode",
        ),
        (
            "POST",
            "/memories",
            {"json": {"messages": "Hi", "user_id": "a", "filters": {"user_id": "b"}}},
            400,
            "give one",
        ),
        (
            "POST",
            "/memories",
            {"json": {"messages": "Hi", "user_id": "a", "filters": {"kind": "core"}}},
            400,
            "nothing else",
        ),
        (
            "POST",
            "/memories",
            {"json": {"messages": [{"role": "user", "content": "x"}] * 10_000, "user_id": "a"}},
            400,
            "1000 is the most",
        ),
        ("POST", "/search", {"json": {"query": "x"}}, 400, "Say whose memory"),
        ("POST", "/search", {"json": {"query": " ", "user_id": "a"}}, 400, "query is empty"),
        ("POST", "/search", {"json": {"query": "x", "user_id": "a", "top_k": 0}}, 422, "top_k"),
        (
            "POST",
            "/search",
            {"json": {"query": "x", "user_id": "a", "filters": {"kind": {"like": "x"}}}},
            400,
            "operator",
        ),
        (
            "POST",
            "/search",
            {"json": {"query": "x", "user_id": "a", "as_of": "soon"}},
            400,
            "as_of",
        ),
        (
            "POST",
            "/search",
            {"json": {"query": "x", "user_id": "a", "rerank": True}},
            400,
            "reranker",
        ),
        ("GET", "/memories?user_id=a&cursor=zzz", {}, 400, "cursor"),
        *(
            (method, path, {}, 422, "The address is not UTF-8")
            for method, path in (
                ("GET", "/memories?user_id=%ff%fe"),
                ("DELETE", "/memories?user_id=a&%ed%a0%80=b"),
                ("DELETE", "/v1/memories/?user_id=%C3"),
                ("DELETE", "/entities/user/%ff"),
                ("DELETE", "/v2/entities/user/a%C3%28b/"),
                ("GET", "/memories/%80"),
            )
        ),
        ("GET", "/memories/unknown", {}, 404, "no memory"),
        ("GET", "/memories/%00", {}, 404, "no memory"),
        ("GET", "/memories/unknown/history", {}, 404, "no memory"),
        ("PUT", "/memories/unknown", {"json": {"text": "x"}}, 404, "no memory"),
        ("PUT", "/memories/unknown", {"json": {"text": "x", "data": "y"}}, 400, "same"),
        ("DELETE", "/memories/unknown", {}, 404, "no memory"),
        ("DELETE", "/memories", {}, 400, "Say whose memory"),
        ("DELETE", "/v1/memories/?user=a", {}, 422, "no parameter 'user'"),
        *(
            ("DELETE", f"/v1/memories/?user_id=a&{urlencode({'filters': said})}", {}, 422, "a JSON")
            for said in (
                *("", "a", "{", "[]", "None", "{'kind': {'core'}}", "{'kind': b'core'}", "{1: 2}"),
                *("{'kind': 'a', 'kind': 'b'}", '{"kind": "a", "kind": "b"}', "{'n': 1e999}"),
                *('{"n": NaN}', "__import__('os')", "{'a': " * 101 + "1" + "}" * 101, "[" * 9000),
            )
        ),
        ("DELETE", "/v1/memories/?filters={}", {}, 422, "filters must be a JSON object"),
        ("POST", "/purge", {"json": {"memory_id": "unknown"}}, 404, "no memory"),
        ("POST", "/purge", {"json": {}}, 400, "needs an owner"),
        ("POST", "/compact/unknown/undo", {}, 404, "no compaction"),
        ("POST", "/answers/unknown/feedback", {"json": {"verdict": "good"}}, 404, "no answer"),
        ("POST", "/configure", {"json": {}}, 501, "not offer configure"),
        ("GET", "/nowhere", {}, 404, "There is no route GET /nowhere: /openapi.json"),
        ("GET", "/memories/", {}, 404, "There is no route GET /memories/:"),
        ("PATCH", "/memories", {}, 405, "There is no route PATCH /memories:"),
        ("POST", "/sweep", {}, 422, "The body is missing: send a JSON object"),
        ("POST", "/search", {"json": []}, 422, "body must be a JSON object."),
        ("POST", "/search", {"json": {"user_id": "a"}}, 422, "body.query is missing."),
        (
            "POST",
            "/search",
            {"json": {"q": "x", "user_id": "a"}},
            422,
            "There is no field 'body.q': /openapi.json lists",
        ),
        (
            "POST",
            "/search",
            {"data": {"query": "x"}},
            422,
            "not said to be JSON: send it with Content-Type: application/json.",
        ),
        (
            "POST",
            "/import",
            {"json": {}},
            422,
            "taken as it is: send it with Content-Type: application/x-ndjson.",
        ),
        (
            "POST",
            "/import",
            {"content": "no export", "headers": {"Content-Type": "application/x-ndjson"}},
            400,
            "The upload was not made by memograd's export",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    served_empty: Serving, method: str, path: str, given: dict[str, Any], status: int, said: str
) -> None:
    serving = served_empty
    before = serving.memory.store.journal.last_seq()
    if "content" in given:
        given = {"headers": {"Content-Type": "application/json"}} | given
    answer = serving.ask(method, path, **given)
    assert (answer.status_code, answer.json().keys()) == (status, {"detail"}), answer.text
    assert said in answer.json()["detail"]
    assert serving.memory.store.journal.last_seq() == before


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/search", {"top_k": True}),
        ("/search", {"limit": True}),
        ("/search", {"turns": False}),
        ("/search", {"threshold": True}),
        ("/search", {"half_life_days": True}),
        ("/context", {"top_k": True}),
        ("/context", {"token_budget": False}),
        ("/v3/memories/search/", {"top_k": True}),
    ],
)
def test_a_truth_value_is_no_number(
    served_empty: Serving, path: str, part: dict[str, bool]
) -> None:
    body = {"query": "tea", "user_id": "a", **part}
    answer = served_empty.ask("POST", path, json=body)
    [name] = part
    said = f"body.{name}: Input should be a number, not true or false."
    assert (answer.status_code, answer.json()["detail"]) == (422, said)
    number = served_empty.ask("POST", path, json=body | {name: 5.0})
    assert number.status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PATCH", "/memories", "DELETE, GET, HEAD, POST"),
        ("PATCH", "/memories/x", "DELETE, GET, HEAD, PUT"),
        ("PATCH", "/memories/batch", "DELETE, GET, HEAD, POST, PUT"),
        ("PUT", "/v1/memories/", "DELETE"),
        ("POST", "/v1/batch/", "DELETE, PUT"),
        ("PUT", "/keys", "GET, HEAD, POST"),
        ("GET", "/search", "POST"),
        ("POST", "/page/memory", "GET, HEAD"),
        ("DELETE", "/page/keys", "GET, HEAD, POST"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_told_those_that_it_takes(
    served_empty: Serving, method: str, path: str, allow: str
) -> None:
    answer = served_empty.ask(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allow)

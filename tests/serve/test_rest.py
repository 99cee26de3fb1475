"""The routes: what they answer, and what each refuses in one sentence."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from asked import ADMIN, Serving

from memograd.serve.keys import Right
from memograd.web.running import running


def added(serving: Serving, text: Any, secret: str = ADMIN, **body: Any) -> str:
    body = {"messages": text, "infer": False, **body}
    answer = serving.ask("POST", "/memories", secret, json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["results"][0]["id"])


def test_the_routes_of_mem0s_server(serving: Serving) -> None:
    one = added(serving, "我喜欢喝红茶。", user_id="小红")
    assert serving.ask("GET", f"/memories/{one}").json()["memory"] == "我喜欢喝红茶。"
    listed = serving.ask("GET", "/memories", params={"user_id": "小红"}).json()
    assert [item["id"] for item in listed["results"]] == [one]
    body = {"query": "红茶", "user_id": "小红", "explain": True}
    found = serving.ask("POST", "/search", json=body).json()["results"]
    assert found[0]["id"] == one
    assert found[0]["explain"]["sentence"]
    changed = serving.ask("PUT", f"/memories/{one}", json={"text": "我喜欢喝绿茶。"}).json()
    assert (changed["memory"], changed["message"]) == (
        "我喜欢喝绿茶。",
        "Memory updated successfully!",
    )
    events = [line["event"] for line in serving.ask("GET", f"/memories/{one}/history").json()]
    assert events == ["ADD", "UPDATE"]
    assert serving.ask("GET", "/entities").json()[0]["id"] == "小红"
    assert serving.ask("DELETE", f"/memories/{one}").status_code == 200
    assert serving.ask("GET", f"/memories/{one}").status_code == 404
    added(serving, "I like tea.", user_id="小红")
    assert serving.ask("DELETE", "/memories", params={"user_id": "小红"}).json()["deleted"] == 1
    added(serving, "I like tea.", user_id="小红")
    assert serving.ask("DELETE", "/entities/user/小红").status_code == 200
    assert serving.ask("GET", "/entities").json() == []
    assert serving.ask("POST", "/reset").status_code == 200
    assert serving.memory.stats()["events"] == serving.memory.stats()["erased"] + 1


EMPTY: list[Any] = [
    "",
    " \n\u3000",
    [],
    {"role": "user", "content": ""},
    [{"role": "user", "content": ""}, {"role": "assistant", "content": None}],
    [{"role": "user", "content": [{"type": "text", "text": " "}]}, {"role": "user"}],
    [{"role": "assistant", "content": "", "tool_calls": []}],
]


@pytest.mark.parametrize("messages", EMPTY)
def test_nothing_is_no_memory(serving: Serving, messages: Any) -> None:
    for path in ("/memories", "/v3/memories/add/"):
        answer = serving.ask("POST", path, json={"messages": messages, "user_id": "alice"})
        assert answer.status_code == 400
        assert answer.json()["detail"] == "What was sent to be remembered is empty: send a text."
    batch = {"memories": [{"messages": messages}, {"messages": ""}], "user_id": "alice"}
    assert serving.ask("POST", "/memories/batch", json=batch).status_code == 400
    assert serving.memory.stats()["events"] == 0


@pytest.mark.parametrize("messages", EMPTY)
def test_nothing_among_others_is_passed_over(serving: Serving, messages: Any) -> None:
    batch = {
        "memories": [{"messages": messages}, {"messages": "I like tea.", "infer": False}],
        "user_id": "alice",
    }
    made = serving.ask("POST", "/memories/batch", json=batch).json()["results"]
    assert [len(one["results"]) for one in made] == [0, 1]
    among = [{"role": "user", "content": "I like milk."}, {"role": "assistant", "content": ""}]
    assert added(serving, among, user_id="bob")


TIME = "body.timestamp must be a time, a text or a number."


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"messages": 5}, "body.messages must be a text, an object or a list of objects."),
        ({"messages": ["a"]}, "body.messages must be a text, an object or a list of objects."),
        ({"messages": "a", "timestamp": []}, TIME),
        ({"messages": "a", "timestamp": True}, TIME),
        ({"messages": "a", "kind": 5}, "body.kind: Input should be a valid string."),
        ({"metadata": 5, "messages": "a"}, "body.metadata must be a JSON object."),
    ],
)
def test_what_a_field_may_be_is_said_in_words(
    serving: Serving, body: dict[str, Any], said: str
) -> None:
    answer = serving.ask("POST", "/memories", json={"user_id": "alice", **body})
    assert (answer.status_code, answer.json()["detail"]) == (422, said)
    batch = {"user_id": "alice", "memories": [body]}
    told = serving.ask("POST", "/memories/batch", json=batch).json()["detail"]
    assert told == said.replace("body.", "body.memories.0.")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {}}]},
        {"role": "system", "content": "Be kind."},
    ],
)
def test_what_is_not_to_be_remembered_is_no_mistake(serving: Serving, message: Any) -> None:
    answer = serving.ask("POST", "/memories", json={"messages": [message], "user_id": "alice"})
    assert (answer.status_code, answer.json()) == (200, {"results": []})


def test_a_picture_is_not_nothing(serving: Serving) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    assert added(serving, {"role": "user", "content": [picture]}, user_id="alice")


def test_the_same_change_again_is_no_operation(serving: Serving) -> None:
    one = added(serving, "I live in Boston.", user_id="alice")
    for path in (f"/memories/{one}", f"/v1/memories/{one}/"):
        body = {"text": f"I live in {path[:4]}."}
        first, second = (serving.ask("PUT", path, json=body) for _ in range(2))
        assert (second.status_code, second.json()) == (200, first.json())
    feedback = {"memory_id": one, "feedback": "POSITIVE"}
    answers = [serving.ask("POST", "/v1/feedback/", json=feedback).json() for _ in range(2)]
    assert answers[0] == answers[1]
    events = [line["event"] for line in serving.ask("GET", f"/memories/{one}/history").json()]
    assert events == ["ADD", "UPDATE", "UPDATE", "UPDATE"]


@pytest.mark.parametrize(
    "body",
    [
        {"user_id": "alice"},
        {"filters": {"user_id": "alice"}},
        {"filters": {"AND": [{"user_id": {"eq": "alice"}}]}},
        {"user_id": "alice", "filters": {}},
        {"user_id": "alice", "filters": {"user_id": "alice"}},
        {"user_id": "alice", "filters": None},
    ],
)
def test_ids_stand_at_the_top_or_in_filters(serving: Serving, body: dict[str, Any]) -> None:
    one = added(serving, "I like tea.", **body)
    found = serving.ask("POST", "/search", json={"query": "tea", **body}).json()
    assert [item["id"] for item in found["results"]] == [one]


def test_the_past_is_asked_by_as_of(serving: Serving) -> None:
    one = added(serving, "I live in Boston.", user_id="alice")
    before = serving.memory.store.now().isoformat()
    serving.ask("PUT", f"/memories/{one}", json={"text": "I live in Denver."})
    asked = {"user_id": "alice", "as_of": before}
    [past] = serving.ask("GET", "/memories", params=asked).json()["results"]
    [found] = serving.ask("POST", "/search", json={"query": "live", **asked}).json()["results"]
    assert past["memory"] == found["memory"] == "I live in Boston."


def test_pages_show_everything_once_while_others_write(serving: Serving) -> None:
    ids = [added(serving, f"Fact {n}.", user_id="alice") for n in range(25)]
    seen: list[str] = []
    cursor = None
    while True:
        params = {"user_id": "alice", "limit": 4} | ({"cursor": cursor} if cursor else {})
        page = serving.ask("GET", "/memories", params=params).json()
        seen += [item["id"] for item in page["results"]]
        if len(seen) == 8:  # the item that the cursor names goes, and another is learnt
            serving.ask("DELETE", f"/memories/{seen[-1]}")
            ids.append(added(serving, "Fact 25.", user_id="alice"))
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ids
    assert page["total"] == 25


def test_a_page_of_the_past_stays_as_it_was(serving: Serving) -> None:
    for n in range(6):
        added(serving, f"Fact {n}.", user_id="alice")
    params = {"user_id": "alice", "limit": 3, "as_of": serving.memory.store.now().isoformat()}
    first = serving.ask("GET", "/memories", params=params).json()
    serving.ask("DELETE", "/memories", params={"user_id": "alice"})
    second = serving.ask("GET", "/memories", params=params | {"cursor": first["next_cursor"]})
    assert [item["memory"] for item in second.json()["results"]] == [
        "Fact 3.",
        "Fact 4.",
        "Fact 5.",
    ]


def test_a_named_call_is_written_once(serving: Serving) -> None:
    for path in ("/memories", "/v3/memories/add/"):
        headers = {"Idempotency-Key": f"call of {path}"}
        body = {"messages": "I like tea.", "user_id": "alice", "infer": False}
        answers = [serving.ask("POST", path, json=body, headers=headers).json() for _ in range(3)]
        assert answers[0] == answers[1] == answers[2]
        other = serving.ask("POST", path, json=body | {"messages": "No."}, headers=headers)
        assert other.status_code == 400
        elsewhere = serving.ask("POST", path, json=body | {"run_id": "7"}, headers=headers)
        assert "under other ids" in elsewhere.json()["detail"]
        for part in ({"metadata": {"a": 1}}, {"infer": True}, {"prompt": "No."}, {"kind": "core"}):
            refused = serving.ask("POST", path, json=body | part, headers=headers)
            assert (refused.status_code, "other parts" in refused.text) == (400, True)
        nameless = serving.ask("POST", path, json=body, headers={"Idempotency-Key": ""})
        assert "Idempotency-Key is empty" in nameless.json()["detail"]
    assert serving.ask("GET", "/memories", params={"user_id": "alice"}).json()["total"] == 2


NAMES = ["a/b", "/a", "a/", "a\nb", "a\n", "a?b#c", "a%2Fb", "a/../b", " 小红\t", "*", "user:a"]


@pytest.mark.parametrize("field", ["user_id", "agent_id", "run_id"])
def test_an_owner_may_have_any_name(serving: Serving, field: str) -> None:
    """Over a real port: in the process the client takes percent signs of a path apart twice."""
    kind = field.removesuffix("_id")
    with running(serving.app) as address:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        with httpx.Client(base_url=address, headers=headers, trust_env=False) as client:
            for name in NAMES:
                part = quote(name, safe="")
                for way, params in (
                    (f"/entities/{kind}/{part}", {}),
                    (f"/v2/entities/{kind}/{part}/", {}),
                    ("/memories", {field: name}),
                    ("/v1/memories/", {field: name}),
                ):
                    added(serving, "I like tea.", **{field: name})
                    assert [one["id"] for one in client.get("/entities").json()] == [name]
                    assert client.get("/memories", params={field: name}).json()["total"] == 1
                    answer = client.delete(way, params=params)
                    assert (answer.status_code, answer.json()["deleted"]) == (200, 1), way
                secret = serving.key(f"{kind}:{name}")
                one = added(serving, "I like tea.", secret)
                assert serving.ask("GET", f"/memories/{one}", secret).json()[field] == name
                client.post("/reset")


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_no_address_can_hold_is_refused(serving: Serving, name: str) -> None:
    body = {"messages": "I like tea.", "user_id": name}
    answer = serving.ask("POST", "/memories", json=body)
    assert answer.status_code == 400 and "no address can name" in answer.json()["detail"]


def test_context_purge_compact_answers(serving: Serving) -> None:
    one = added(serving, "I like red tea.", user_id="alice")
    added(serving, "I work as a baker.", user_id="alice")
    context = serving.ask("POST", "/context", json={"query": "tea", "user_id": "alice"}).json()
    assert "I like red tea." in context["text"]
    body = {"question": "What?", "answer": "Red tea.", "shown": [one], "user_id": "alice"}
    answer_id = serving.ask("POST", "/answers", json=body).json()["answer_id"]
    path = f"/answers/{answer_id}/feedback"
    assert serving.ask("POST", path, json={"verdict": "good"}).json()["verdict"] == "good"
    report = serving.ask("POST", "/compact", json={"budget": 1, "user_id": "alice"}).json()
    assert report["retired"] > 0
    undone = serving.ask("POST", f"/compact/{report['batch_id']}/undo")
    assert undone.status_code == 200
    assert serving.ask("POST", "/purge", json={"memory_id": one}).json()["items"] == 1
    history = serving.ask("GET", f"/memories/{one}/history").json()
    assert "red tea" not in json.dumps(history)
    assert serving.ask("POST", "/purge", json={"user_id": "alice"}).json()["items"] == 1
    assert serving.ask("GET", "/users").json() == {"results": []}


def test_an_export_imports_again(
    serving: Serving,
    make_serving: Callable[..., Serving],
    open_memory: Callable[..., Any],
    tmp_path: Any,
) -> None:
    added(serving, "我喜欢喝红茶。", user_id="小红")
    added(serving, "I like tea.", user_id="alice")
    exported = serving.ask("GET", "/export")
    assert len(exported.text.splitlines()) == 5
    other = make_serving(open_memory(tmp_path / "other"))
    headers = {"Content-Type": "application/x-ndjson"}
    for count in (4, 0):
        answer = other.ask("POST", "/import", content=exported.content, headers=headers)
        assert answer.json() == {"imported": count}
    listed = other.ask("GET", "/memories", params={"user_id": "小红"}).json()["results"]
    assert listed == serving.ask("GET", "/memories", params={"user_id": "小红"}).json()["results"]
    broken = other.ask("POST", "/import", content=exported.content[:-20], headers=headers)
    assert broken.status_code == 400
    assert "Line 5 of the upload is not an event" in broken.json()["detail"]


def test_the_feed_tells_what_happens_and_goes_on_where_it_was(serving: Serving) -> None:
    with running(serving.app) as address:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        with httpx.Client(base_url=address, headers=headers, trust_env=False) as client:
            one = added(serving, "I like tea.", user_id="alice")
            heard: list[tuple[str, dict[str, Any]]] = []
            with client.stream("GET", "/operations/feed?after=0") as stream:
                lines = stream.iter_lines()
                threading.Timer(0.3, lambda: added(serving, "I like milk.", user_id="bob")).start()
                place = ""
                for line in lines:
                    if line.startswith("id: "):
                        place = line.removeprefix("id: ")
                    if line.startswith("data: "):
                        heard.append((place, json.loads(line.removeprefix("data: "))))
                    if len(heard) == 2:
                        break
            assert [data["new_memory"] for _, data in heard] == ["I like tea.", "I like milk."]
            with client.stream(
                "GET", "/operations/feed", headers={"Last-Event-ID": heard[0][0]}
            ) as stream:
                told = next(line for line in stream.iter_lines() if line.startswith("data: "))
            assert "milk" in told
    page = serving.ask("GET", "/operations", params={"limit": 1}).json()
    assert page["results"][0]["memory_id"] == one
    params = {"after": page["next_after"]}
    assert serving.ask("GET", "/operations", params=params).json()["results"][0]["user_id"] == "bob"


def test_a_server_that_ends_ends_its_feeds(serving: Serving) -> None:
    with running(serving.app) as address:
        client = httpx.Client(base_url=address, trust_env=False)
        headers = {"X-API-Key": ADMIN}
        stream = client.stream("GET", "/operations/feed", headers=headers)
        lines = stream.__enter__().iter_lines()
        assert next(lines) == ": listening"
    assert list(lines) == [""]  # it ended in order
    stream.__exit__(None, None, None)


def test_who_read_what_is_told_to_the_owner(serving: Serving) -> None:
    one = added(serving, "I like tea.", user_id="alice")
    added(serving, "I like milk.", user_id="bob")
    serving.ask("POST", "/search", json={"query": "tea", "user_id": "alice"})
    serving.ask("GET", f"/memories/{one}")
    alice = serving.key("user:alice", "read")
    lines = serving.ask("GET", "/access", alice).json()["results"]
    assert [(line["action"], line["items"]) for line in lines] == [
        ("get", [one]),
        ("search", [one]),
        ("add", [one]),
    ]
    everything = serving.ask("GET", "/access").json()["results"]
    assert {line["owner"] for line in everything} == {"user:alice", "user:bob"}
    older = serving.ask("GET", "/access", params={"before": everything[-1]["seq"]}).json()
    assert older == {"results": []}
    assert serving.ask("GET", "/access", serving.key()).status_code == 403
    assert "tea" not in json.dumps(everything)


def test_keys_are_made_and_revoked_by_an_admin(serving: Serving) -> None:
    made = serving.ask("POST", "/keys", json={"name": "phone", "owner": "user:alice"})
    assert made.status_code == 201
    secret, key_id = made.json()["secret"], made.json()["id"]
    assert serving.ask("GET", "/memories", secret).json()["results"] == []
    assert secret not in serving.ask("GET", "/keys").text
    assert serving.ask("GET", "/keys", secret).status_code == 403
    assert serving.ask("DELETE", f"/keys/{key_id}").json()["revoked_at"]
    assert serving.ask("GET", "/memories", secret).status_code == 401
    assert serving.ask("DELETE", "/keys/unknown").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "given", "status", "said"),
    [
        ("POST", "/memories", {"content": b"{"}, 422, "JSON"),
        ("POST", "/memories", {"content": b'{"messages": NaN}'}, 422, "JSON"),
        ("POST", "/memories", {"content": b"[" * 200_000}, 422, "JSON"),
        ("POST", "/memories", {"content": b'{"messages": "\xff"}'}, 422, "JSON"),
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
        ("GET", "/memories/unknown", {}, 404, "no memory"),
        ("GET", "/memories/%00", {}, 404, "no memory"),
        ("GET", "/memories/unknown/history", {}, 404, "no memory"),
        ("PUT", "/memories/unknown", {"json": {"text": "x"}}, 404, "no memory"),
        ("PUT", "/memories/unknown", {"json": {"text": "x", "data": "y"}}, 400, "same"),
        ("DELETE", "/memories/unknown", {}, 404, "no memory"),
        ("DELETE", "/memories", {}, 400, "Say whose memory"),
        ("DELETE", "/v1/memories/?user=a", {}, 422, "no parameter 'user'"),
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


def test_health_needs_no_key(served_empty: Serving) -> None:
    assert served_empty.ask("GET", "/healthz", None).json()["status"] == "ok"


@pytest.mark.parametrize(
    "path",
    ["/healthz", "/memories?user_id=a", "/memories/none", "/users", "/v1/ping/", "/openapi.json",
     "/nowhere", "/search", "/", "/page/memory", "/page/nowhere"],
)  # fmt: skip
def test_head_is_answered_as_get_without_a_body(served_empty: Serving, path: str) -> None:
    """As some that watch servers ask."""
    for secret in (ADMIN, None):
        get, head = (
            served_empty.ask(method, path, secret, follow_redirects=False)
            for method in ("GET", "HEAD")
        )
        assert (head.status_code, head.headers, head.content) == (
            get.status_code, get.headers, b""
        )  # fmt: skip


def test_head_ends_where_get_would_go_on(serving: Serving) -> None:
    added(serving, "I like tea.", user_id="alice")
    with running(serving.app) as address:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        with httpx.Client(base_url=address, headers=headers, trust_env=False) as client:
            for path in ("/operations/feed?after=0", "/export", "/healthz"):
                for _ in range(2):  # by the same connection
                    head = client.head(path)
                    assert (head.status_code, head.content) == (200, b"")
        assert serving.served.streams.free == serving.served.settings.limits.max_streams


def test_head_uses_no_address_up_that_opens_the_page_once(serving: Serving) -> None:
    token = serving.served.keys.login_token(name="page", owner=None, rights=[Right.admin])
    assert serving.web.head(f"/login?token={token}", follow_redirects=False).status_code == 405
    assert serving.web.get(f"/login?token={token}", follow_redirects=False).status_code == 303

"""The routes: what they answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from asked import ADMIN, Serving, added

from memograd.web.running import running


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

"""What is added: what counts as something, what a field may be, a call that is made again."""

from __future__ import annotations

from typing import Any

import pytest
from asked import Serving, added

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

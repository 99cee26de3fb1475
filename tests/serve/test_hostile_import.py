"""A file that somebody hostile made imports nothing, or what every reader can tell afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asked import Serving
from browsing import Browser

HEAD = json.dumps({"format": "memograd-journal", "version": 1})
MOMENT = "2024-05-07T10:00:00+00:00"


def line(**changed: Any) -> str:
    """An event that adds an item of alice; `after__NAME` changes a field of the item."""
    after = {
        "id": "a1",
        "text": "I like tea.",
        "user_id": "alice",
        "created_at": MOMENT,
        "updated_at": MOMENT,
        "kind": "semantic",
    }
    event = {
        "uid": "u1",
        "recorded_at": MOMENT,
        "kind": "ADD",
        "user_id": "alice",
        "subject": "a1",
        "before": None,
        "after": after,
        "actor": "user",
        "reason": "",
        "erased": False,
    }
    for name, value in changed.items():
        (after if name.startswith("after__") else event)[name.removeprefix("after__")] = value
    return json.dumps(event)


def turn(**changed: Any) -> str:
    told = {"id": "t1", "speaker": "alice", "text": "hello", "session": 1, "time": MOMENT}
    contents = {"turn": {**told, **changed}, "verbatim": False}
    return line(kind="TURN", subject="t1", uid="u2", after=contents)


def imported(serving: Serving, *lines: str) -> Any:
    return serving.ask(
        "POST",
        "/import",
        content="\n".join([HEAD, *lines]).encode("utf-8", "surrogatepass"),
        headers={"Content-Type": "application/x-ndjson"},
    )


def check_everything_can_be_told(serving: Serving) -> None:
    for path in ("/memories?user_id=alice", "/operations", "/export", "/users", "/stats"):
        assert serving.ask("GET", path).status_code == 200, path
    past = {"query": "tea", "user_id": "alice", "as_of": "2026-01-01T00:00:00Z", "explain": True}
    for body in (
        {"query": "tea", "user_id": "alice", "explain": True, "turns": 5},
        {"query": "What did she like last week?", "user_id": "alice", "half_life_days": 3},
        past,
    ):
        assert serving.ask("POST", "/search", json=body).status_code == 200, body
    body = {"query": "tea", "user_id": "alice"}
    assert serving.ask("POST", "/context", json=body).status_code == 200
    assert (
        serving.ask("POST", "/compact", json={"budget": 1, "user_id": "alice"}).status_code == 200
    )
    assert serving.ask("POST", "/sweep", json={"user_id": "alice"}).status_code == 200
    browser = Browser(serving)
    assert browser.get("/memory?owner=user:alice").status_code == 200
    assert browser.get("/memory?owner=user:alice&at=1").status_code == 200
    assert browser.get("/memory/item/a1").status_code in (200, 404)


@pytest.mark.parametrize(
    "bad",
    [
        "[" * 100_000,
        '{"a":' * 50_000,
        line(after__metadata={"k": json.loads("[" * 200 + "]" * 200)}),
        line().replace('"semantic"', '"semantic", "metadata": {"n": 1e999}'),
        line().replace('"semantic"', '"semantic", "metadata": {"n": ' + "9" * 5000 + "}"),
        line(after__expires_at="2024-05-07T10:00:00"),
        line(after__valid_from="2024-05-07T10:00:00", after__metadata=[]),
        line(recorded_at="0001-01-01T00:00:00+14:00"),
        line(recorded_at="9999-12-31T23:59:59-14:00", after__created_at="soon"),
        line(user_id="bob"),
        line(user_id=["alice"]),
        line(user_id="a\0b", after__user_id="a\0b"),
        line(subject="a\ud800", after__id="a\ud800"),
        line(subject=7, after__id=7),
        *(
            line(subject=odd, after__id=odd)
            for odd in ("", ".", "..", "a/b", "x/../../item/a2", "../../login?token=x#", "a\0b")
        ),
        line(uid=None),
        line(uid=""),
        line(kind="odd"),
        line(kind="PURGE"),
        line(erased="no"),
        line(after__text=None),
        line(after__text=" "),
        line(after__kind="odd"),
        line(after__categories=[{"a": 1}]),
        line(after__categories="food"),
        line(after__sources="food"),
        line(after__role={"a": 1}),
        line(after__actor_id=5),
        turn(expires_at="2024-05-07T10:00:00"),
        turn(speaker=None),
        turn(images=[{"a": 1}]),
        turn(images="abc"),
        turn(role=5),
        turn(metadata=[1]),
        turn(session=10**30),
        line(after__created_at="0001-01-01T00:00:00+14:00", after__updated_at=MOMENT),
        line(after__valid_from="9999-12-31T23:59:59-14:00"),
        line(after__expires_at="9999-12-31T23:59:59-14:00"),
        turn(time="9999-12-31T23:59:59-14:00"),
        "null",
        "[]",
        "\x00",
    ],
)
def test_an_import_that_is_none_takes_over_nothing(served_empty: Serving, bad: str) -> None:
    serving = served_empty
    answer = imported(serving, line(uid="first", subject="a0", after__id="a0"), bad)
    told = serving.ask("GET", "/memories?user_id=alice").json()
    if answer.status_code == 200:
        pytest.fail(f"was taken over: {answer.text}")
    assert answer.status_code == 400, answer.text
    assert len(answer.json()["detail"]) < 700
    assert told["total"] == 0


@pytest.mark.parametrize(
    "good",
    [
        line(recorded_at="9999-12-31T23:59:59+00:00"),
        line(recorded_at="0001-01-01T00:00:00+00:00"),
        line(after__valid_from="2024-05-07T10:00:00"),
        line(after__text="x" * 1_000_000),
        line(after__text="\u202e<img src=x onerror=alert(1)>\u0000\ufffe"),
        line(after__metadata={"constructor": {"__proto__": "x"}, "may_change": {"a": 1}}),
        line(subject="..\\..\\login?token=x#", after__id="..\\..\\login?token=x#"),
        turn(time="2024-05-07T10:00:00"),
        turn(text="\u202e" * 1000, caption="<b>", images=["javascript:alert(1)"]),
        turn(session=True),
        turn(time="2024-05-07"),
        "\n".join([line()] * 3),
    ],
)
def test_what_an_import_takes_over_stands_in_nobodys_way(serving: Serving, good: str) -> None:
    answer = imported(serving, good)
    assert answer.status_code == 200, answer.text
    check_everything_can_be_told(serving)

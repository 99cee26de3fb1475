"""Batches over REST, what expires, and sweeping it."""

from __future__ import annotations

from typing import Any

from asked import Serving


def test_what_expires_batches_and_sweeping(serving: Serving) -> None:
    entries = [
        {"messages": "old news", "infer": False, "expiration_date": "2020-01-01"},
        {"messages": "我喜欢喝红茶。", "infer": False},
    ]
    body = {"user_id": "小红", "memories": entries}
    made = serving.ask("POST", "/memories/batch", json=body).json()["results"]
    assert [one["results"][0]["memory"] for one in made] == ["old news", "我喜欢喝红茶。"]

    def texts(**params: Any) -> list[str]:
        found = serving.ask("GET", "/memories", params={"user_id": "小红", **params}).json()
        return [item["memory"] for item in found["results"]]

    assert texts() == ["我喜欢喝红茶。"]
    assert texts(show_expired=True) == ["old news", "我喜欢喝红茶。"]
    search = {"query": "news", "user_id": "小红", "show_expired": True}
    found = serving.ask("POST", "/search", json=search).json()["results"]
    assert {item["expiration_date"] for item in found} == {"2020-01-01", None}
    two = made[1]["results"][0]["id"]
    serving.ask("PUT", f"/memories/{two}", json={"expiration_date": "2020-01-02"})
    assert texts() == []
    serving.ask("PUT", f"/memories/{two}", json={"expiration_date": None})
    assert serving.ask("POST", "/sweep", json={"user_id": "小红"}).json() == {"swept": 1}
    assert texts(show_expired=True) == ["我喜欢喝红茶。"]
    whose = {"user_id": "小红", "memories": [{"messages": "x", "user_id": "bob"}]}
    assert serving.ask("POST", "/memories/batch", json=whose).status_code == 400


def test_a_named_batch_made_again_writes_nothing(serving: Serving) -> None:
    batch = {
        "memories": [{"messages": f"I have a cat called {name}."} for name in ("Kimi", "咪咪")],
        "user_id": "alice",
    }
    named = {"headers": {"Idempotency-Key": "visit " * 42}}
    first = serving.ask("POST", "/memories/batch", json=batch, **named)
    again = serving.ask("POST", "/memories/batch", json=batch, **named)
    assert first.status_code == 200 and first.json() == again.json()
    kept = serving.ask("GET", "/memories", params={"user_id": "alice"}).json()["results"]
    assert len(kept) == 2
    three = [*batch["memories"], {"messages": "I have a bird called Bo."}]
    for memories in (three, three[:1], [{**one, "infer": False} for one in three[:2]]):
        changed = {**batch, "memories": memories}
        other = serving.ask("POST", "/memories/batch", json=changed, **named)
        assert other.status_code == 400 and "other parts" in other.json()["detail"]
    batch["memories"] = [{"messages": "I have a dog called Rex."}]
    other = serving.ask("POST", "/memories/batch", json=batch, **named)
    assert other.status_code == 400 and "other messages" in other.json()["detail"]
    nameless = serving.ask("POST", "/memories/batch", json=batch, headers={"Idempotency-Key": ""})
    assert nameless.status_code == 400 and "Idempotency-Key is empty" in nameless.json()["detail"]

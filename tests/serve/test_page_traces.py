"""Traces of the gateway on the page: rollouts, calls, what was said; and nothing is changed."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser

from memograd.errors import BadInput
from memograd.gateway.records import CallRecord, Choice
from memograd.gateway.store import TraceReader, TraceStore
from memograd.serve.keys import Right

HOSTILE = "<script>alert(1)</script>"
MESSAGES = (
    {"role": "system", "content": HOSTILE},
    {"role": "user", "content": [{"type": "text", "text": "苹果 \ud83d"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"name": "查找"}]},
)


def asked(rollout_id: str, number: int, **given: Any) -> CallRecord:
    answer = Choice(f"answer {number} {HOSTILE}", "stop")
    fields: dict[str, Any] = {"agent": HOSTILE, "model": "tiny", "policy_version": 3}
    fields |= {"messages": MESSAGES, "choices": (answer,), **given}
    return CallRecord(rollout_id=rollout_id, number=number, **fields)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """60 rollouts: one with 25 calls, one of which the deadline is over."""
    now = iter(range(1_000_000, 2_000_000))
    url = f"sqlite:///{tmp_path}/traces.db"
    store = TraceStore(url, clock=lambda: float(next(now)))
    for _ in range(58):
        store.create()
    store.create(seconds=100)  # over for `TraceStore`, which would say so in the store
    rollout = store.create(metadata={"task": HOSTILE, "n": 1}).record.id
    for number in range(25):
        store.begin_call(rollout)
        store.record(asked(rollout, number, prompt_tokens=7, completion_tokens=2))
    store.reward(rollout, 0.625)
    store.close()
    return url


def contents(url: str) -> str:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        return hashlib.sha256("\n".join(database.iterdump()).encode()).hexdigest()


def ids(page: str) -> list[str]:
    return re.findall(r'href="/page/traces/([0-9a-f]+)"', page)


def test_rollouts_are_paged_and_chosen(make_serving: Any, url: str) -> None:
    browser = Browser(make_serving(traces=url))
    first = browser.get("/traces").text
    assert len(ids(first)) == 50
    assert "0.625" in first
    [older] = re.findall(r'href="([^"]*after=[^"]*)"', first)
    rest = browser.web.get(older).text
    assert len(ids(rest)) == 10
    assert not set(ids(rest)) & set(ids(first))
    assert "Older" not in rest
    chosen = browser.get("/traces", state="rewarded").text
    assert ids(chosen) == ids(first)[:1]
    assert browser.get("/traces", state=HOSTILE).status_code == 400
    assert "已给奖励" in browser.get("/traces", lang="zh").text


def test_calls_are_shown_as_they_were_said(make_serving: Any, url: str) -> None:
    browser = Browser(make_serving(traces=url))
    [rollout] = ids(browser.get("/traces", state="rewarded").text)
    page = browser.get(f"/traces/{rollout}").text
    assert page.count("7 + 2 tokens") == 20
    assert "answer 19 &lt;script&gt;" in page
    assert HOSTILE not in page
    assert "苹果 ?" in page
    assert "查找" in page
    rest = browser.get(f"/traces/{rollout}", first=20).text
    assert re.findall(r"answer (\d+)", rest) == ["20", "21", "22", "23", "24"]
    assert browser.get("/traces/nobody").status_code == 404
    assert browser.get(f"/traces/{rollout}", first=-1).status_code == 422


def test_looking_changes_nothing(make_serving: Any, url: str) -> None:
    with closing(TraceReader(url)) as reader:
        before = contents(url)
        browser = Browser(make_serving(traces=url))
        for one in ids(browser.get("/traces").text)[:5]:
            assert browser.get(f"/traces/{one}").status_code == 200
        assert reader.place in browser.get("/traces").text
    assert contents(url) == before


def test_only_an_operator_sees_traces(make_serving: Any, url: str) -> None:
    serving = make_serving(traces=url)
    for owner, right in (("user:alice", Right.admin), (None, Right.read)):
        browser = Browser(serving, owner, [right])
        assert browser.get("/traces").status_code == 403
        assert browser.get("/traces/x").status_code == 403
    assert "--traces sqlite:///traces.db" in Browser(make_serving()).get("/traces").text


def test_a_place_without_traces_is_refused(tmp_path: Path, make_serving: Any) -> None:
    for place in ("missing.db", "empty.db", "other.db"):
        if place == "empty.db":
            (tmp_path / place).touch()
        if place == "other.db":
            with sqlite3.connect(tmp_path / place) as other:
                other.execute("CREATE TABLE other (x)")
        with pytest.raises(BadInput, match="There are no traces in"):
            TraceReader(f"sqlite:///{tmp_path}/{place}")
    assert not (tmp_path / "missing.db").exists()
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_another_format_is_refused(url: str) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE trace_meta SET value = '2'")
    with pytest.raises(BadInput, match="have the format 2"):
        TraceReader(url)

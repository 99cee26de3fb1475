"""The prompt speaks the user's language and shows the notes as they are."""

from __future__ import annotations

from datetime import date

import pytest

from memograd.assistant.conversation import answer_messages
from memograd.memory.chat.chat_model import ChatMessage

TODAY = date(2024, 5, 7)


@pytest.mark.parametrize(
    ("said", "today", "word"),
    [
        ("Where do I live?", "7 May 2024", "language of the user"),
        ("我住在哪里?", "2024年5月7日", "请用中文"),
        ("我的 iPhone 在哪里?", "2024年5月7日", "请用中文"),
    ],
)
def test_instructions_follow_the_language(said: str, today: str, word: str) -> None:
    system, user = answer_messages(said, "- {a note} 100% 笔记", today=TODAY)
    assert (system["role"], user["role"]) == ("system", "user")
    assert today in system["content"]
    assert word in system["content"]
    assert user["content"].endswith(f"\n- {{a note}} 100% 笔记\n\n{said}")


def test_without_notes_there_is_only_what_was_said() -> None:
    assert answer_messages("hello", "", today=TODAY)[1]["content"] == "hello"
    assert answer_messages("你好", "", today=TODAY)[1]["content"] == "你好"


def test_the_running_conversation_stands_between() -> None:
    earlier = [
        ChatMessage(role="user", content="one"),
        ChatMessage(role="assistant", content="two"),
    ]
    messages = answer_messages("three", "", today=TODAY, earlier=earlier)
    assert [message["content"] for message in messages[1:]] == ["one", "two", "three"]

from __future__ import annotations

import pytest

from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory.configured import (
    configured_chat_model,
    configured_manager,
    configured_reader,
)
from memograd.memory.manager import ChatManager, RuleManager
from memograd.memory.reader import ChatReader, RuleReader

ENDPOINT = MemorySettings(
    reader="chat", manager="chat", openai_base_url="http://localhost:1/v1", openai_model="m"
)


def test_rules_need_nothing() -> None:
    assert isinstance(configured_reader(MemorySettings()), RuleReader)
    assert isinstance(configured_manager(MemorySettings()), RuleManager)
    assert configured_chat_model(MemorySettings()) is None


def test_a_chat_model_reads_and_decides_when_asked_to() -> None:
    assert isinstance(configured_reader(ENDPOINT), ChatReader)
    manager = configured_manager(ENDPOINT)
    assert isinstance(manager, ChatManager)
    assert manager.actor == "llm:m"


def test_an_endpoint_alone_changes_neither() -> None:
    settings = MemorySettings(openai_base_url="http://localhost:1/v1", openai_model="m")
    assert isinstance(configured_reader(settings), RuleReader)
    assert isinstance(configured_manager(settings), RuleManager)


def test_what_is_asked_for_and_missing_is_refused() -> None:
    with pytest.raises(BadInput, match=r"reader is 'chat'.*OPENAI_MODEL"):
        configured_reader(MemorySettings(reader="chat"))
    with pytest.raises(BadInput, match="no chat model is named"):
        configured_manager(MemorySettings(manager="chat", openai_base_url="http://localhost:1/v1"))

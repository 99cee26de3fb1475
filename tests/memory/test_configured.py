from __future__ import annotations

from pathlib import Path

import pytest

from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory.configured import (
    configured_chat_model,
    configured_manager,
    configured_reader,
)
from memograd.memory.manager import ChatManager, RelationManager, RuleManager
from memograd.memory.reader import ChatReader, RuleReader, TrainedReader
from memograd.memory.relations.model import SHIPPED

ENDPOINT = MemorySettings(
    reader="chat", manager="chat", openai_base_url="http://localhost:1/v1", openai_model="m"
)


def test_rules_need_nothing() -> None:
    settings = MemorySettings(manager="rules")
    assert isinstance(configured_reader(settings), RuleReader)
    assert isinstance(configured_manager(settings), RuleManager)
    assert configured_chat_model(settings) is None


def test_the_trained_parts_are_used_where_their_model_is() -> None:
    trained = SHIPPED.is_file()
    assert isinstance(configured_reader(MemorySettings()), TrainedReader if trained else RuleReader)
    manager = configured_manager(MemorySettings())
    assert isinstance(manager, RelationManager if trained else RuleManager)


def test_a_relation_model_that_is_asked_for_and_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no relation model"):
        configured_manager(MemorySettings(relations=tmp_path / "none.npz"))


def test_a_chat_model_reads_and_decides_when_asked_to() -> None:
    assert isinstance(configured_reader(ENDPOINT), ChatReader)
    manager = configured_manager(ENDPOINT)
    assert isinstance(manager, ChatManager)
    assert manager.actor == "llm:m"


def test_an_endpoint_alone_changes_neither() -> None:
    settings = MemorySettings(openai_base_url="http://localhost:1/v1", openai_model="m")
    assert not isinstance(configured_reader(settings), ChatReader)
    assert not isinstance(configured_manager(settings), ChatManager)


def test_what_is_asked_for_and_missing_is_refused() -> None:
    with pytest.raises(BadInput, match=r"reader is 'chat'.*OPENAI_MODEL"):
        configured_reader(MemorySettings(reader="chat"))
    with pytest.raises(BadInput, match="no chat model is named"):
        configured_manager(MemorySettings(manager="chat", openai_base_url="http://localhost:1/v1"))

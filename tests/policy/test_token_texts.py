"""Single tokens have texts whose sum is the whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memograd.config import LoraConfig
from memograd.policy.language_model import LanguageModel
from memograd.policy.model_tokens import token_texts


def decode(ids: list[int]) -> str:
    """A byte a token."""
    return bytes(ids).decode("utf-8", errors="replace")


def test_a_character_of_several_tokens_is_shown_at_its_last_one() -> None:
    assert token_texts(decode, list("a记!".encode())) == ["a", "", "", "记", "!"]
    assert token_texts(decode, []) == []


@given(st.text() | st.binary().map(lambda b: b.decode("utf-8", errors="ignore")))
def test_the_texts_are_the_whole(text: str) -> None:
    shown = token_texts(decode, list(text.encode("utf-8", errors="ignore")))
    assert "".join(shown) == text.encode("utf-8", errors="ignore").decode()


@given(st.binary(max_size=30))
def test_every_token_has_a_text_whatever_the_bytes_are(ids: bytes) -> None:
    shown = token_texts(decode, list(ids))
    assert len(shown) == len(ids)
    assert "".join(shown) == decode(list(ids))


def test_special_tokens_are_visible(tiny_model_folder) -> None:
    policy = LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=2), device="cpu")
    ids = policy.encode([{"role": "user", "content": "你好 hi"}])
    shown = policy.token_texts(ids)
    assert shown[0] == "<|start|>" and "你" in shown
    assert "".join(shown) == "<|start|>user\n你好 hi<|end|><|start|>assistant\n"

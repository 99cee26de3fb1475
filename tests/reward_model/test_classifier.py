"""What may score and what may not: heads, padding, number types."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

from memograd.errors import BadInput
from memograd.reward_model.model import (
    RewardModel,
    open_backbone,
    open_tokenizer,
    open_trained,
    set_padding,
)

CPU = torch.device("cpu")


def test_a_language_model_is_no_reward_model(tiny_model_folder) -> None:
    with pytest.raises(BadInput, match="no trained score head"):
        open_trained(str(tiny_model_folder), CPU)
    with pytest.raises(BadInput, match="no trained score head"):
        RewardModel.open(tiny_model_folder, device="cpu")


def test_a_fresh_head_is_drawn_from_the_seed(tiny_model_folder) -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    heads = [open_backbone(str(tiny_model_folder), CPU, seed).score.weight for seed in (0, 0, 1)]
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])
    assert torch.equal(torch.get_rng_state(), state)


def test_padding_is_a_token_that_no_row_ends_with(tiny_model_folder) -> None:
    tokenizer = open_tokenizer(str(tiny_model_folder))
    assert tokenizer.pad_token == tokenizer.eos_token
    model = open_backbone(str(tiny_model_folder), CPU, 0)
    set_padding(tokenizer, model)
    assert tokenizer.pad_token == "<|start|>"
    assert model.config.pad_token_id == tokenizer.pad_token_id != tokenizer.eos_token_id


def test_with_one_special_token_the_end_pads(tiny_model_folder) -> None:
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=open_tokenizer(str(tiny_model_folder)).backend_tokenizer,
        eos_token="<|end|>",
    )
    assert tokenizer.all_special_ids == [tokenizer.eos_token_id]
    model = open_backbone(str(tiny_model_folder), CPU, 0)
    set_padding(tokenizer, model)
    assert model.config.pad_token_id == tokenizer.eos_token_id


def test_another_number_of_outputs_is_refused(tiny_model_folder, tmp_path) -> None:
    two = AutoModelForSequenceClassification.from_pretrained(tiny_model_folder, num_labels=2)
    folder = tmp_path / "two"
    shutil.copytree(tiny_model_folder, folder)
    two.save_pretrained(folder)
    with pytest.raises(BadInput, match="cannot be opened as a classifier with one output"):
        open_trained(str(folder), CPU)


def test_a_bf16_model_has_a_head_that_can_tell_close_answers_apart(
    tiny_model_folder, monkeypatch
) -> None:
    monkeypatch.setattr("memograd.reward_model.model.choose_dtype", lambda device: torch.bfloat16)
    model = open_backbone(str(tiny_model_folder), CPU, 0)
    assert model.model.embed_tokens.weight.dtype == torch.bfloat16
    assert model.score.weight.dtype == torch.float32
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[5, 6, 7]])).logits
    assert logits.dtype == torch.float32
    assert float(logits) != float(logits.bfloat16())


@pytest.mark.parametrize("name", ["./nowhere", "a/b/c"])
def test_a_folder_that_is_not_there_is_bad_input(name) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        RewardModel.open(name, device="cpu")


def test_a_run_of_another_task_is_no_reward_model(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"task": "memory-qa"}')
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BadInput, match="a run of memory-qa, not of a reward model"):
        RewardModel.open(tmp_path, device="cpu")

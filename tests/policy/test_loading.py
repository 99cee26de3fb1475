"""What cannot be loaded is refused in one sentence, before any work is done."""

from __future__ import annotations

import shutil

import pytest
import torch

from memograd.config import LoraConfig
from memograd.errors import BadInput
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import choose_device, choose_dtype, load_tokenizer, resolve_model
from memograd.rollout.chat_ids import ChatIds


@pytest.mark.parametrize("name", ["./no/such/folder", "/no/such/folder", "~/no-such-folder"])
def test_a_folder_that_does_not_exist(name: str) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        resolve_model(name)


def test_a_folder_without_a_model(tmp_path) -> None:
    with pytest.raises(BadInput, match=r"config\.json"):
        resolve_model(str(tmp_path))


def test_a_hub_id_that_cannot_be_reached() -> None:
    with pytest.raises(BadInput, match="model=nobody/nothing-like-this"):
        load_tokenizer("nobody/nothing-like-this")


def test_a_model_without_a_chat_template_continues_texts(tiny_model_folder, tmp_path) -> None:
    shutil.copytree(tiny_model_folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "chat_template.jinja").unlink()
    base = LanguageModel.load(str(tmp_path), lora=LoraConfig(r=2), device="cpu")
    assert base.encode("ab") == base.tokenizer.encode("ab")
    with pytest.raises(BadInput, match="no chat template, so a conversation cannot be put to it"):
        base.encode([{"role": "user", "content": "a"}])
    with pytest.raises(BadInput, match="no chat template, so a conversation cannot be put to it"):
        ChatIds(base.tokenizer, end_ids=base.end_ids)


def test_damaged_weights(tiny_model_folder, tmp_path) -> None:
    shutil.copytree(tiny_model_folder, tmp_path, dirs_exist_ok=True)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(BadInput, match="cannot be loaded"):
        LanguageModel.load(str(tmp_path), lora=LoraConfig(r=2), device="cpu")


def test_target_modules_that_the_model_does_not_have(tiny_model_folder) -> None:
    lora = LoraConfig(r=2, target_modules=["no_such_layer"])
    with pytest.raises(BadInput, match=r"lora\.target_modules=no_such_layer"):
        LanguageModel.load(str(tiny_model_folder), lora=lora, device="cpu")


def test_an_absent_device() -> None:
    absent = "mps" if not torch.backends.mps.is_available() else "cuda"
    with pytest.raises(BadInput, match=f"device={absent}"):
        choose_device(absent)


def test_the_number_type_follows_the_device() -> None:
    assert choose_dtype(torch.device("cpu")) == torch.float32
    assert choose_dtype(torch.device("cuda")) == torch.bfloat16

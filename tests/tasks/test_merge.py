"""Merged weights say what model plus adapter say, and half of them are never there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from memograd.config import LoraConfig, TrainConfig
from memograd.errors import BadInput, MemogradError
from memograd.grpo import RunFolder
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import PACKAGED_MODEL
from memograd.warm_start.merge import merge


def trained_run(path: Path, model: str, scale: float) -> tuple[Path, LanguageModel]:
    """A run folder whose adapter does something, and the policy in it."""
    policy = LanguageModel.load(model, lora=LoraConfig(r=4), device="cpu")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
    config = TrainConfig(model=model, device="cpu", lora=LoraConfig(r=4))
    run = RunFolder.create(path, config.model_dump_json())
    run.save_checkpoint("final", policy.save, step=1)
    return path, policy


@pytest.fixture
def run(tmp_path, tiny_model_folder) -> tuple[Path, LanguageModel]:
    return trained_run(tmp_path / "run", str(tiny_model_folder), 0.2)


def logits(model, ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model(ids).logits


def test_the_merged_model_is_model_plus_adapter(tmp_path, run) -> None:
    folder, policy = run
    out = merge(folder, tmp_path / "merged")
    ids = torch.tensor([policy.encode([{"role": "user", "content": "猫叫什么?"}])])
    expected = logits(policy.peft_model, ids)
    merged = AutoModelForCausalLM.from_pretrained(out).eval()
    assert merged.dtype == torch.float32
    assert not [name for name, _ in merged.named_parameters() if "lora" in name]
    torch.testing.assert_close(logits(merged, ids), expected, atol=1e-4, rtol=0)
    with policy.untrained():
        assert (logits(policy.peft_model, ids) - expected).abs().max() > 0.1
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert tokenizer.chat_template == policy.tokenizer.chat_template
    assert merged.generation_config.eos_token_id == 0
    assert (out / "model.safetensors").is_file() and (out / "generation_config.json").is_file()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
def test_it_loads_without_peft(tmp_path, run) -> None:
    out = merge(run[0], tmp_path / "merged")
    script = (
        "import sys; sys.modules['peft'] = None\n"
        "from transformers import AutoModelForCausalLM\n"
        f"model = AutoModelForCausalLM.from_pretrained({str(out)!r})\n"
        "assert not [name for name, _ in model.named_parameters() if 'lora' in name]"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_weights_in_half_precision(tmp_path, run) -> None:
    out = merge(run[0], tmp_path / "merged", "bfloat16")
    assert json.loads((out / "config.json").read_text())["dtype"] == "bfloat16"
    assert AutoModelForCausalLM.from_pretrained(out, dtype="auto").dtype == torch.bfloat16


def test_an_empty_folder_and_a_checkpoint_will_do(tmp_path, run) -> None:
    (tmp_path / "merged").mkdir()
    assert (merge(run[0] / "final", tmp_path / "merged") / "config.json").is_file()


def test_a_folder_that_holds_something_is_refused_and_untouched(tmp_path, run) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    for taken in (tmp_path / "mine", tmp_path / "mine" / "notes.txt"):
        with pytest.raises(BadInput, match="not an empty folder"):
            merge(run[0], taken)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_what_cannot_be_merged(tmp_path, run) -> None:
    with pytest.raises(BadInput, match="no run folder"):
        merge(tmp_path / "nothing", tmp_path / "merged")
    empty = RunFolder.create(tmp_path / "empty", TrainConfig().model_dump_json())
    with pytest.raises(BadInput, match="no complete checkpoint"):
        merge(empty.path, tmp_path / "merged")
    (run[0] / "final" / "adapter_model.safetensors").write_bytes(b"half")
    with pytest.raises(BadInput, match="not a complete checkpoint"):
        merge(run[0] / "final", tmp_path / "merged")


def test_half_a_model_is_never_there(tmp_path, run, monkeypatch) -> None:
    """The disk is full after the weights, before the tokenizer."""
    from transformers import PreTrainedTokenizerFast

    def full(self, folder, *arguments, **named):
        assert (Path(folder) / "model.safetensors").is_file()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PreTrainedTokenizerFast, "save_pretrained", full)
    with pytest.raises(MemogradError, match=r"No space left on device\); nothing is left"):
        merge(run[0], tmp_path / "merged")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_weights_that_are_not_finite_are_refused(tmp_path, tiny_model_folder) -> None:
    run, _ = trained_run(tmp_path / "run", str(tiny_model_folder), float("nan"))
    with pytest.raises(MemogradError, match="cannot be merged"):
        merge(run, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


@pytest.mark.slow
def test_smollm2_whose_embeddings_are_its_output_layer(tmp_path) -> None:
    run, policy = trained_run(tmp_path / "run", PACKAGED_MODEL, 0.02)
    ids = torch.tensor([policy.encode([{"role": "user", "content": "Where is Oslo?"}])])
    expected = logits(policy.peft_model, ids)
    merged = AutoModelForCausalLM.from_pretrained(merge(run, tmp_path / "merged")).eval()
    # Two libraries of matrix products round apart: 2e-4 was measured.
    torch.testing.assert_close(logits(merged, ids), expected, atol=1e-3, rtol=0)

"""A disk that is full while a checkpoint is written stops the run, which goes on to the bit."""

from __future__ import annotations

import errno

import pytest
import torch

from memograd.errors import MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.trainer import Stage, Trainer
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward


def test_a_full_disk_loses_nothing_that_was_saved(
    tmp_path, tiny_config, scenarios, monkeypatch
) -> None:
    rewards = [WeightedReward("low", lambda completions: [sum(map(ord, c)) for c in completions])]

    def trainer(folder: RunFolder) -> Trainer:
        checkpoint = folder.latest_checkpoint()
        if checkpoint is None:
            policy = LanguageModel.load(tiny_config.model, lora=tiny_config.lora, device="cpu")
            return Trainer(policy, scenarios, rewards, tiny_config, Stage(folder))
        policy = LanguageModel.load_adapter(tiny_config.model, checkpoint, device="cpu")
        made = Trainer(policy, scenarios, rewards, tiny_config, Stage(folder))
        made.restore(checkpoint)
        folder.truncate_metrics(made.step)
        return made

    whole = RunFolder.create(tmp_path / "whole", tiny_config.model_dump_json())
    trainer(whole).train()

    full = RunFolder.create(tmp_path / "full", tiny_config.model_dump_json())
    save, saved = torch.save, []

    def fills_up(state, path) -> None:
        saved.append(path)
        if len(saved) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(state, path)

    monkeypatch.setattr(torch, "save", fills_up)
    with pytest.raises(MemogradError, match=r"checkpoint-4 could not be written \(No space left"):
        trainer(full).train()
    latest = full.latest_checkpoint()
    assert latest is not None and latest.name == "checkpoint-2"
    trainer(full).train()
    rows = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in run.read_metrics()]
        for run in (whole, full)
    ]
    assert rows[0] == rows[1]
    name = "final/adapter_model.safetensors"
    assert (whole.path / name).read_bytes() == (full.path / name).read_bytes()

"""A disk that is full while a checkpoint is written stops the run, which goes on to the bit."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch
from small_runs import begun

from memograd.errors import MemogradError
from memograd.grpo import RunFolder
from memograd.rewards import WeightedReward


def test_a_full_disk_loses_nothing_that_was_saved(
    tmp_path, tiny_config, scenarios, monkeypatch
) -> None:
    rewards = [WeightedReward("low", lambda completions: [sum(map(ord, c)) for c in completions])]

    def train(folder: Path) -> RunFolder:
        start = begun(folder, tiny_config)
        start.trainer(scenarios, rewards).train()
        return start.run

    whole = train(tmp_path / "whole")

    save, saved = torch.save, []

    def fills_up(state, path) -> None:
        saved.append(path)
        if len(saved) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(state, path)

    monkeypatch.setattr(torch, "save", fills_up)
    with pytest.raises(MemogradError, match=r"checkpoint-4 could not be written \(No space left"):
        train(tmp_path / "full")
    latest = RunFolder.open(tmp_path / "full").latest_checkpoint()
    assert latest is not None and latest.name == "checkpoint-2"
    full = train(tmp_path / "full")
    rows = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in run.read_metrics()]
        for run in (whole, full)
    ]
    assert rows[0] == rows[1]
    name = "final/adapter_model.safetensors"
    assert (whole.path / name).read_bytes() == (full.path / name).read_bytes()

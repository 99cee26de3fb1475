"""Whole runs on the servers' own GPU: they sleep while the learner learns."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import begun
from tests.policy.scripted_vllm import ScriptedVllm

from memograd.config import SamplerConfig, TrainConfig
from memograd.grpo import RunFolder
from memograd.rewards import WeightedReward
from memograd.tasks.base.policy import sampling_of

DRAW, LOAD, SLEEP, WAKE = "/v1/completions", "/v1/load_lora_adapter", "/sleep", "/wake_up"


def served(config: TrainConfig, server: ScriptedVllm, **settings) -> TrainConfig:
    sampler = SamplerConfig(engine="vllm", url=[server.url], patience=0.5, **settings)
    return config.model_copy(update={"sampler": sampler, "steps": 3})


def low_share(completions):
    return [sum(c < "@" for c in text) / max(1, len(text)) for text in completions]


def trained(folder: Path, config: TrainConfig, scenarios) -> list[tuple]:
    """What the run gave: rewards, losses, and the norms of gradients."""
    start = begun(folder, config)
    with sampling_of(start.policy, config.sampler, folder, probed=False):
        start.trainer(scenarios, [WeightedReward("low", low_share)]).train()
    rows = RunFolder.open(folder).read_metrics()
    return [(row["reward_mean"], row["loss"], row["grad_norm"]) for row in rows]


@pytest.mark.slow
def test_a_server_sleeps_while_the_learner_learns(tiny_config, server, scenarios, tmp_path) -> None:
    awake = trained(tmp_path / "awake", served(tiny_config, server), scenarios)
    assert not {SLEEP, WAKE} & {path for path, _ in server.asked}
    server.asked.clear()
    # The server refuses all work while it sleeps, so a run that forgot to wake it would end.
    slept = trained(tmp_path / "slept", served(tiny_config, server, sleep=True), scenarios)
    assert slept == awake
    told = [path for path, _ in server.asked if path in (DRAW, LOAD, SLEEP, WAKE)]
    assert told.count(SLEEP) == 3 and told.count(WAKE) == 3
    for step, place in enumerate([n for n, path in enumerate(told) if path == SLEEP]):
        # Two prompts a step are drawn before it rests, and the next version comes after it wakes.
        assert told[:place].count(DRAW) == 2 * (step + 1)
        assert told[place + 1] == WAKE
    assert not server.asleep and server.loaded == []  # left as it was found

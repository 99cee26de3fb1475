"""A number that is not finite stops the run before the weights move, and its group is shown."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from memograd.errors import MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.experience import NotFinite, check_sampled
from memograd.grpo.trainer import Stage, Trainer
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward
from memograd.rollout import Group, Rollout, Scenario, Turn


def lengths(completions):
    return [float(place) for place in range(len(completions))]


@pytest.fixture
def trainer(tmp_path, tiny_config, tiny_policy, scenarios):
    def make(reward=lengths) -> Trainer:
        run = RunFolder.create(tmp_path / "run", tiny_config.model_dump_json())
        rewards = [WeightedReward("reward", reward)]
        return Trainer(tiny_policy, scenarios, rewards, tiny_config, Stage(run))

    return make


def weights(policy: LanguageModel) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in policy.parameters()]


def dumped(folder) -> list[dict]:
    lines = (folder / "failures" / "step-0001.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line, parse_constant=pytest.fail) for line in lines]


def test_a_reward_names_its_group_and_the_file(trainer, tmp_path, tiny_policy) -> None:
    before = weights(tiny_policy)

    def broken(completions):
        return [float("nan") if place == 6 else 0.0 for place in range(len(completions))]

    with pytest.raises(MemogradError, match=r"returned nan for rollout .*: see .*step-0001.txt$"):
        trainer(broken).train()
    # Two groups of four: the seventh rollout is in the second group, which alone is shown.
    [group] = dumped(tmp_path / "run")
    assert group["group"] == 1
    assert len(group["rollouts"]) == 4
    assert all(len(row["ids"]) == 4 for r in group["rollouts"] for row in r["rows"])
    text = (tmp_path / "run" / "failures" / "step-0001.txt").read_text(encoding="utf-8")
    assert f"=== {group['id']} ===" in text
    assert all(map(torch.equal, before, weights(tiny_policy)))


def test_a_gradient_names_the_groups_it_came_from(
    trainer, tmp_path, tiny_policy, monkeypatch
) -> None:
    """The loss of one group is made infinite by the log-probabilities that the sampler reports."""
    before = weights(tiny_policy)
    ready = trainer()
    real = ready.policy.logprobs
    spoilt: list[tuple[int, ...]] = []

    def logprobs(trees, **options):
        scores = real(trees, **options)
        spoilt.append(spoilt[0] if spoilt else trees[0].prompt)
        for row, tree in enumerate(one for one in trees for _ in one.branches):
            if tree.prompt == spoilt[0]:
                scores.logprobs_RT[row] = scores.logprobs_RT[row] * float("nan")
        return scores

    monkeypatch.setattr(ready.policy, "logprobs", logprobs)
    monkeypatch.setattr(ready.policy, "verify", lambda trees, temperature: None)
    with pytest.raises(MemogradError, match=r"the loss or its gradient is not a finite number \("):
        ready.train()
    [group] = dumped(tmp_path / "run")
    assert tuple(group["prompt_ids"]) == spoilt[0]
    assert {rollout["advantage"] is None for rollout in group["rollouts"]} == {False}
    assert all(map(torch.equal, before, weights(tiny_policy)))
    assert RunFolder.open(tmp_path / "run").read_metrics() == []


def test_the_samplers_log_probabilities_are_looked_at() -> None:
    def group(*values: float) -> Group:
        turns = (Turn((1,), tuple(range(len(values))), np.array(values), "end"),)
        return Group(Scenario("q", ()), (Rollout("r", turns, ""),))

    check_sampled([group(-1.0), group(-0.5, -20.0)])
    with pytest.raises(NotFinite) as raised:
        check_sampled([group(-1.0), group(-0.5, -np.inf), group(np.nan)])
    assert raised.value.groups == (1, 2)

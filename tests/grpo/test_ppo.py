"""PPO over the same learner: values beside log-probabilities, and advantages by token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from ranks import on_ranks
from small_runs import begun
from tests.quick import quick

from memograd.config import LoraConfig, TrainConfig
from memograd.errors import MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.batch import score_rows
from memograd.grpo.distributed import ALONE, World
from memograd.grpo.experience import Experience, NotFinite
from memograd.grpo.learner import Update, learn
from memograd.grpo.loss import Objective
from memograd.grpo.trainer import Trainer
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward
from memograd.rollout import Group, Message, Rollout, Scenario, TokenTree, Turn
from memograd.rollout.token_tree import grow_trees

OBJECTIVE = Objective.from_config(
    TrainConfig.model_validate(
        {"algorithm": "ppo", "beta": 0.1, "max_grad_norm": 1e9, "value_coef": 0.5, "gamma": 0.9}
    )
)


def ppo_policy(model: str) -> LanguageModel:
    """The tiny model with adapter and value head as after some training."""
    policy = LanguageModel.load(model, lora=LoraConfig(r=4), device="cpu")
    policy.add_value_head(None)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    return policy


@pytest.fixture
def policy(tiny_model_folder: Path) -> LanguageModel:
    return ppo_policy(str(tiny_model_folder))


def by_index(completions: list[str]) -> list[float]:
    return [float(index % 3) for index in range(len(completions))]


def played(policy: LanguageModel, *, cut: bool = False) -> Experience:
    """Two groups of two rollouts of three turns, with log-probabilities a little off.

    With `cut`, the last turn of some rollouts is a row of its own: the same tokens before it.
    """
    generator = torch.Generator().manual_seed(0)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(2, 250, (count,), generator=generator).tolist())

    groups = []
    for group in range(2):
        opening, rollouts = ids(6 + group), []
        for number in range(2):
            turns, row = [], opening
            for place in range(3):
                seen = () if place == 0 else ids(2)
                action = ids(1 + (place + number) % 3)
                starts = place == 0 or (cut and place == 2 and number != group)
                row = (*row, *seen)
                turns.append(
                    Turn(
                        observation_ids=row if starts else seen,
                        action_ids=action,
                        logprobs=np.linspace(-5.6, -5.4, len(action), dtype=np.float32),
                        stop_reason="end",
                        starts_row=starts,
                    )
                )
                row = (*row, *action)
            rollouts.append(Rollout(f"{group}/{number}", tuple(turns), "", opening_length=0))
        groups.append(Group(Scenario(f"q{group}", ()), tuple(rollouts)))
    rows = grow_trees([group.rollouts for group in groups])
    return score_rows(
        groups,
        [WeightedReward("index", by_index)],
        OBJECTIVE,
        trees=rows.trees,
        rollouts_of_tree=rows.rollouts_of_tree,
        old_logprobs=rows.old_logprobs,
    )


def gradient(
    policy: LanguageModel,
    batch: Experience,
    objective: Objective = OBJECTIVE,
    world: World = ALONE,
) -> tuple[torch.Tensor, Update]:
    seen: list[torch.Tensor] = []

    class Spy(torch.optim.SGD):
        def step(self, closure=None):
            seen.append(torch.cat([p.grad.flatten() for p in policy.parameters()]).clone())

    update = learn(policy, Spy(policy.parameters(), lr=0.0), batch, objective, world)
    return seen[0], update


def check_equal(found: tuple[torch.Tensor, Update], whole: tuple[torch.Tensor, Update]) -> None:
    # fp32: an element is as exact as the whole gradient is large.
    atol = 2e-6 * float(whole[0].norm())
    torch.testing.assert_close(found[0], whole[0], atol=atol, rtol=1e-3)
    for name in ("loss", "value_loss", "kl"):
        assert getattr(found[1], name) == pytest.approx(getattr(whole[1], name), rel=1e-4)
    np.testing.assert_allclose(
        found[1].advantages.advantages_K, whole[1].advantages.advantages_K, atol=1e-5
    )


def test_the_gradient_is_that_of_the_formulas(policy) -> None:
    """Against the loss written out over rows of one rollout each, by autograd."""
    batch = played(policy)
    scores = policy.logprobs(batch.trees, temperature=OBJECTIVE.temperature)
    reference_RT = policy.reference_logprobs(
        batch.trees, temperature=OBJECTIVE.temperature
    ).logprobs_RT
    rows = [row for rows in batch.old_logprobs for row in rows]
    chosen, advantages = [], []
    for row, old in enumerate(rows):
        mask = scores.mask_RT[row]
        logprobs, values = scores.logprobs_RT[row][mask], scores.values_RT[row][mask]
        before = torch.from_numpy(old)[mask[: len(old)]]
        earned = -0.1 * (before - reference_RT[row][mask]).detach()
        earned[-1] += float(batch.compared_K[row])
        found, following = [], [*values.detach().tolist()[1:], 0.0]
        for t in range(len(values)):
            found.append(
                sum(
                    (0.9 * 0.95) ** (k - t)
                    * (float(earned[k]) + 0.9 * following[k] - float(values[k].detach()))
                    for k in range(t, len(values))
                )
            )
        targets = torch.tensor(found) + values.detach()
        chosen.append((logprobs - before, values, targets))
        advantages.append(torch.tensor(found))
    everything = torch.cat(advantages)
    loss = torch.zeros(())
    for (log_ratio, values, targets), raw in zip(chosen, advantages, strict=True):
        a, r = (raw - everything.mean()) / (everything.std() + 1e-4), log_ratio.exp()
        loss = loss - torch.minimum(r * a, r.clamp(0.8, 1.2) * a).sum() / len(everything)
        # The values are those before the step: nothing is clipped.
        loss = loss + 0.5 * (values - targets).square().sum() / 2 / len(everything)
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, policy.parameters())])
    found_gradient, update = gradient(policy, batch)
    assert update.loss == pytest.approx(float(loss.detach()), rel=1e-4)
    atol = 2e-6 * float(expected.norm())
    torch.testing.assert_close(found_gradient, expected, atol=atol, rtol=1e-3)
    assert expected[-33:].norm() > 1e-3 and expected[:-33].norm() > 1e-3  # head and adapter


def test_rows_pieces_and_forward_change_nothing_but_rounding(policy, monkeypatch) -> None:
    whole = gradient(policy, played(policy))
    cut = played(policy, cut=True)
    assert len(cut.trees) == 2 and max(map(len, cut.rollouts_of_tree)) == 3
    check_equal(gradient(policy, cut), whole)
    trees = _apart(cut)
    assert len(trees.trees) == 6
    for pieces in ([[5], [2, 0], [4], [1, 3]], [[0, 1, 2, 3, 4, 5]]):
        monkeypatch.setattr(policy, "microbatches", lambda trees, pieces=pieces: pieces)
        check_equal(gradient(policy, trees), whole)
    policy.forward = "rows"
    check_equal(gradient(policy, trees), whole)


def _apart(batch: Experience) -> Experience:
    """Every row a tree of its own."""
    rows = [
        (TokenTree.from_branches(tree.prompt, [tree.branch(row)], [tree.scored[row]]), rollout, old)
        for tree, rollouts, olds in zip(
            batch.trees, batch.rollouts_of_tree, batch.old_logprobs, strict=True
        )
        for row, (rollout, old) in enumerate(zip(rollouts, olds, strict=True))
    ]
    return replace(
        batch,
        trees=tuple(tree for tree, _, _ in rows),
        rollouts_of_tree=tuple((rollout,) for _, rollout, _ in rows),
        old_logprobs=tuple((old,) for _, _, old in rows),
    )


@pytest.mark.slow
def test_values_move_no_further_than_the_bound_over_passes(policy) -> None:
    """Many passes at a high rate towards far targets: the second update does not see the first."""
    batch = played(policy)
    objective = replace(OBJECTIVE, num_iterations=30, beta=0.0, value_coef=10.0)
    with torch.no_grad():
        before = policy.logprobs(batch.trees, temperature=1.0)
    only_head = torch.optim.SGD(policy.value_head.parameters(), lr=0.01)
    learn(policy, only_head, batch, replace(objective, value_epsilon=0.05))
    with torch.no_grad():
        near = policy.logprobs(batch.trees, temperature=1.0)
    learn(policy, only_head, batch, replace(objective, value_epsilon=100.0))
    with torch.no_grad():
        far = policy.logprobs(batch.trees, temperature=1.0)
    assert (near.values_RT - before.values_RT).abs().max() < (
        far.values_RT - near.values_RT
    ).abs().max()


def learned(world: World, model: str, batch: Experience) -> tuple[np.ndarray, Update]:
    found, update = gradient(ppo_policy(model), batch, OBJECTIVE, world)
    return found.numpy(), update


@pytest.mark.slow
def test_two_ranks_have_the_gradient_of_one(policy, tiny_model_folder) -> None:
    batch = played(policy, cut=True)
    whole = gradient(policy, batch)
    for found, update in on_ranks(2, learned, str(tiny_model_folder), batch):
        check_equal((torch.from_numpy(found), update), whole)


def test_a_policy_without_a_value_head_is_refused(policy) -> None:
    policy.value_head = None
    with pytest.raises(MemogradError, match="needs a policy with a value head"):
        gradient(policy, played(policy))


def test_values_that_are_not_finite_name_their_group(policy) -> None:
    batch = played(policy)
    batch.compared_K[3] = np.nan
    with pytest.raises(NotFinite) as error:
        gradient(policy, batch)
    assert error.value.groups == (1,)


# Whole runs

SCENARIOS = [
    Scenario(f"q{n}", (Message(role="user", content="say " + "x" * n),), {"answer": "x"})
    for n in range(5)
]


def low_bytes(completions: list[str]) -> list[float]:
    return [sum(c < "@" for c in text) / max(1, len(text)) for text in completions]


def config_of(tiny_config: TrainConfig, **changes: object) -> TrainConfig:
    given = tiny_config.model_dump(exclude_defaults=True)
    return TrainConfig.model_validate(given | {"algorithm": "ppo", **changes})


def trainer_in(folder: Path, config: TrainConfig, **heard: object) -> Trainer:
    """A trainer in a new folder, or one that goes on with the run in it."""
    rewards = [WeightedReward("low", low_bytes)]
    return begun(folder, config).trainer(SCENARIOS, rewards, **heard)


def rows_of_run(folder: Path) -> list[dict]:
    found = RunFolder.open(folder).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]


@pytest.mark.parametrize("replayed", quick([{}, {"replay_groups": 2, "replay_max_uses": 2}], (1,)))
def test_a_resumed_run_equals_the_one_that_never_stopped(
    tmp_path, tiny_config, replayed: dict[str, int]
) -> None:
    config = config_of(tiny_config, num_iterations=2, schedules=replayed)
    whole = trainer_in(tmp_path / "whole", config)
    whole.train()

    def stop(metrics: dict) -> None:
        if metrics["step"] == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer_in(tmp_path / "cut", config, on_step=stop).train()
    resumed = trainer_in(tmp_path / "cut", config)
    resumed.train()
    if replayed:
        assert sum(row["groups_replayed"] for row in rows_of_run(tmp_path / "cut")[-2:]) > 0
    assert rows_of_run(tmp_path / "cut") == rows_of_run(tmp_path / "whole")
    for one, other in zip(whole.policy.parameters(), resumed.policy.parameters(), strict=True):
        assert torch.equal(one, other)
    name = "final/value_head.safetensors"
    assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_it_learns_from_one_rollout_a_prompt(tmp_path, tiny_config) -> None:
    config = config_of(
        tiny_config, num_generations=1, prompts_per_step=16, steps=30, save_steps=30, beta=0.0
    )
    trainer_in(tmp_path / "run", config).train()
    rows = rows_of_run(tmp_path / "run")
    rewards = [row["reward_mean"] for row in rows]
    assert sum(rewards[-5:]) / 5 > sum(rewards[:5]) / 5 + 0.2
    assert all(np.isfinite(row["value_loss"]) for row in rows)
    assert abs(rows[0]["reward_normalised_mean"]) < 0.5

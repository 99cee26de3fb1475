"""The gradient step on a real (tiny) model."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from single_turn import score_groups

from memograd.config import LoraConfig, TrainConfig
from memograd.config.algorithms import ALGORITHMS
from memograd.grpo.batch import Draw, sample_groups
from memograd.grpo.experience import Experience, NotFinite, join
from memograd.grpo.learner import Update, learn
from memograd.grpo.loss import Objective
from memograd.policy.forward_choice import cut_branches
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward
from memograd.rollout.token_tree import TokenTree

OBJECTIVE = Objective(beta=0.1, entropy_coef=0.01, max_grad_norm=1e9, max_completion_length=5)
PLAIN = replace(OBJECTIVE, beta=0.0, entropy_coef=0.0)


def experience(policy, scenarios, reward, objective=OBJECTIVE) -> Experience:
    groups, sampled = sample_groups(
        policy,
        scenarios,
        [4] * len(scenarios),
        Draw(1, generator=torch.Generator().manual_seed(0)),
        max_completion_length=5,
    )
    return score_groups(groups, sampled, [WeightedReward("reward", reward)], objective)


def by_index(prompts, completions, **columns):
    return [float(index % 4) for index in range(len(completions))]


def all_equal(prompts, completions, **columns):
    return [1.0] * len(completions)


def move_away(policy) -> None:
    """Let the policy differ from its reference, as after some training."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)


def gradient(policy, batch, objective=OBJECTIVE) -> torch.Tensor:
    """The accumulated gradient, seen by an optimiser that moves nothing."""
    return gradient_and_update(policy, batch, objective)[0]


def gradient_and_update(policy, batch, objective=OBJECTIVE) -> tuple[torch.Tensor, Update]:
    """And what `learn` measured with it."""
    seen: list[torch.Tensor] = []

    class Spy(torch.optim.SGD):
        def step(self, closure=None):
            seen.append(torch.cat([p.grad.flatten() for p in policy.parameters()]).clone())

    update = learn(policy, Spy(policy.parameters(), lr=0.0), batch, objective)
    return seen[0], update


def measure(policy, batch, objective=OBJECTIVE):
    return learn(policy, torch.optim.SGD(policy.parameters(), lr=0.0), batch, objective)


def cut_in_rows(batch: Experience) -> Experience:
    """Every answer of more than two tokens as two rows, the second in a tree of its own.

    The first row ends with tokens that are not scored, for which the sampler reports nonsense.
    """
    trees, rollouts_of_tree, old_logprobs = [], [], []
    for tree, rollouts, old in zip(
        batch.trees, batch.rollouts_of_tree, batch.old_logprobs, strict=True
    ):
        scored = []
        first_old = []
        for row, rollout in enumerate(rollouts):
            answer = tree.branch(row)
            split = len(answer) > 2
            scored.append([not split or place < 2 for place in range(len(answer))])
            first_old.append(np.where(scored[-1], old[row], np.nan).astype(np.float32))
            if split:
                trees.append(TokenTree.from_branches((*tree.prompt, *answer[:2]), [answer[2:]]))
                rollouts_of_tree.append((rollout,))
                old_logprobs.append((old[row][2:],))
        answers = [tree.branch(row) for row in range(len(rollouts))]
        trees.append(TokenTree.from_branches(tree.prompt, answers, scored))
        rollouts_of_tree.append(rollouts)
        old_logprobs.append(tuple(first_old))
    return replace(
        batch,
        trees=tuple(trees),
        rollouts_of_tree=tuple(rollouts_of_tree),
        old_logprobs=tuple(old_logprobs),
    )


# House contract 3


def test_micro_batches_change_nothing_but_rounding(tiny_policy, scenarios, monkeypatch) -> None:
    batch = experience(tiny_policy, scenarios[:4], by_index)
    gradients = []
    for pieces in ([[0, 1, 2, 3]], [[2], [0, 3], [1]], [[3], [2], [1], [0]]):
        monkeypatch.setattr(tiny_policy, "microbatches", lambda trees, pieces=pieces: pieces)
        gradients.append(gradient(tiny_policy, batch))
    assert gradients[0].norm() > 1e-3
    for other in gradients[1:]:
        torch.testing.assert_close(other, gradients[0], atol=5e-6, rtol=1e-4)


def test_tree_and_rows_give_the_same_gradient(tiny_policy, scenarios) -> None:
    batch = experience(tiny_policy, scenarios[:4], by_index)
    tree = gradient(tiny_policy, batch)
    for forward in ("packed", "tree", "rows"):
        tiny_policy.forward = forward
        torch.testing.assert_close(gradient(tiny_policy, batch), tree, atol=5e-6, rtol=1e-4)


@pytest.mark.parametrize("ratio", ["token", "product"])
@pytest.mark.parametrize("aggregation", ["rollout", "token", "constant"])
def test_trees_that_are_cut_give_the_same_gradient(
    tiny_policy, scenarios, monkeypatch, ratio, aggregation
) -> None:
    """Every tree in parts of one or two branches, each a micro-batch of its own."""
    batch = experience(tiny_policy, scenarios[:3], by_index)
    move_away(tiny_policy)
    objective = replace(OBJECTIVE, ratio=ratio, aggregation=aggregation)
    whole, update = gradient_and_update(tiny_policy, batch, objective)
    scored: list[int] = []
    reference = tiny_policy.reference_logprobs

    def seen(trees, **settings):
        scored.extend(len(tree.branches) for tree in trees)
        return reference(trees, **settings)

    monkeypatch.setattr(tiny_policy, "reference_logprobs", seen)
    monkeypatch.setattr(tiny_policy, "microbatches", lambda trees: [[t] for t in range(len(trees))])
    limit = min(tree.tree_tokens for tree in batch.trees) * 3 // 4
    monkeypatch.setattr(tiny_policy, "cut", lambda tree: cut_branches(tree, limit))
    atol = 1e-6 * float(whole.norm())
    again, cut_update = gradient_and_update(tiny_policy, batch, objective)
    torch.testing.assert_close(again, whole, atol=atol, rtol=1e-3)
    assert len(scored) >= 2 * len(batch.trees)
    assert cut_update.loss == pytest.approx(update.loss, rel=1e-4)


@pytest.mark.parametrize("ratio", ["token", "sequence", "product", "weight"])
@pytest.mark.parametrize("aggregation", ["rollout", "token", "constant"])
def test_rollouts_cut_into_rows_of_several_trees_give_the_same_gradient(
    tiny_policy, scenarios, monkeypatch, ratio, aggregation
) -> None:
    """Off policy, one tree a micro-batch, some tokens unscored: all of contract 3 at once."""
    batch = experience(tiny_policy, scenarios[:2], by_index)
    rows = cut_in_rows(batch)
    assert len(rows.trees) > 5
    move_away(tiny_policy)
    objective = replace(OBJECTIVE, ratio=ratio, aggregation=aggregation)
    whole, update = gradient_and_update(tiny_policy, batch, objective)
    monkeypatch.setattr(tiny_policy, "microbatches", lambda trees: [[t] for t in range(len(trees))])
    assert whole.norm() > 1e-3
    # fp32: an element is as exact as the whole gradient is large.
    atol = 1e-6 * float(whole.norm())
    of_rows, update_of_rows = gradient_and_update(tiny_policy, rows, objective)
    torch.testing.assert_close(of_rows, whole, atol=atol, rtol=1e-3)
    assert update.loss == pytest.approx(update_of_rows.loss, rel=1e-4)
    assert update.kl == pytest.approx(update_of_rows.kl, rel=1e-4)


def test_the_gradient_equals_finite_differences(tiny_policy, scenarios) -> None:
    batch = experience(tiny_policy, scenarios[:2], by_index)
    move_away(tiny_policy)
    exact = gradient(tiny_policy, batch)
    start = torch.nn.utils.parameters_to_vector(tiny_policy.parameters()).detach()
    direction = exact / exact.norm()
    losses = []
    for sign in (1, -1):
        torch.nn.utils.vector_to_parameters(
            start + sign * 1e-3 * direction, tiny_policy.parameters()
        )
        losses.append(measure(tiny_policy, batch).loss)
    assert (losses[0] - losses[1]) / 2e-3 == pytest.approx(float(exact.norm()), rel=0.02)


# Groups without differences


def test_a_group_without_differences_adds_nothing_where_nothing_pulls_at_it(
    tiny_policy, scenarios, monkeypatch
) -> None:
    """Without KL and entropy terms it is not even computed; the other keeps its share."""

    def first_group_equal(prompts, completions, **columns):
        return [0.3] * 4 + [0.0, 1.0, 2.0, 3.0]

    batch = experience(tiny_policy, scenarios[:2], first_group_equal)
    scored: Counter[str] = Counter()
    for name in ("logprobs", "reference_logprobs"):
        plain = getattr(tiny_policy, name)

        def counted(trees, *, plain=plain, name=name, **options):
            scored[name] += len(trees)
            return plain(trees, **options)

        monkeypatch.setattr(tiny_policy, name, counted)
    skipped = gradient(tiny_policy, batch, PLAIN)
    assert scored == {"logprobs": 1, "reference_logprobs": 1}
    # The least entropy bonus has both groups computed.
    computed = gradient(tiny_policy, batch, replace(PLAIN, entropy_coef=1e-12))
    assert scored == {"logprobs": 3, "reference_logprobs": 3}
    torch.testing.assert_close(skipped, computed, atol=5e-6, rtol=1e-4)


def test_a_group_without_differences_is_still_held_by_the_kl_term(tiny_policy, scenarios) -> None:
    batch = experience(tiny_policy, scenarios[:1], all_equal)
    move_away(tiny_policy)
    held = gradient(tiny_policy, batch, replace(PLAIN, beta=0.5))
    assert held.norm() > 1e-3
    # The same pull as in a group whose rewards differ, once the policy gradient is taken away.
    varied = experience_with_rewards(batch, [0.0, 1.0, 2.0, 3.0])
    difference = gradient(tiny_policy, varied, replace(PLAIN, beta=0.5)) - gradient(
        tiny_policy, varied, PLAIN
    )
    # fp32: an element is as exact as the whole gradient is large.
    atol = 1e-6 * float(difference.norm())
    torch.testing.assert_close(held, difference, atol=atol, rtol=1e-3)


def experience_with_rewards(batch: Experience, totals: list[float]) -> Experience:
    from memograd.grpo.advantage import group_advantages

    compared_K = np.array(totals)
    advantages = group_advantages(compared_K, batch.sizes_B)
    return replace(batch, compared_K=compared_K, advantages=advantages)


def test_only_equal_rewards_and_no_other_pull_move_nothing(tiny_policy, scenarios) -> None:
    batch = experience(tiny_policy, scenarios[:2], all_equal)
    before = [p.detach().clone() for p in tiny_policy.parameters()]
    optimizer = torch.optim.AdamW(tiny_policy.parameters(), lr=1.0)
    update = learn(tiny_policy, optimizer, batch, PLAIN)
    assert (update.loss, update.grad_norm, update.kl) == (0.0, 0.0, None)
    assert all(torch.equal(a, b) for a, b in zip(before, tiny_policy.parameters(), strict=True))


# Old log-probabilities, KL in the reward


def test_old_log_probabilities_are_the_samplers(tiny_policy, scenarios) -> None:
    """On the first pass nothing is clipped; after a large step on the same batch something is."""
    batch = experience(tiny_policy, scenarios[:4], by_index)
    optimizer = torch.optim.SGD(tiny_policy.parameters(), lr=5.0)
    assert learn(tiny_policy, optimizer, batch, OBJECTIVE).clip_fraction == 0.0
    assert learn(tiny_policy, optimizer, batch, OBJECTIVE).clip_fraction > 0.0


def rounded(batch: Experience) -> Experience:
    """The sampler's log-probabilities as far off as bf16 makes them (0.06 nats a token)."""
    noise = np.random.default_rng(0)
    return replace(
        batch,
        old_logprobs=tuple(
            tuple(row + noise.normal(0, 0.06, len(row)).astype(np.float32) for row in rows)
            for rows in batch.old_logprobs
        ),
    )


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {"ppo"}))
def test_rounding_in_the_sampler_clips_nothing_of_what_these_weights_sampled(
    tiny_policy, scenarios, name
) -> None:
    config = TrainConfig(algorithm=name, beta=0.0, max_completion_length=5, temperature=1.0)
    objective = replace(Objective.from_config(config), max_grad_norm=1e9)
    batch = experience(tiny_policy, scenarios[:4], by_index, objective)
    exact = gradient(tiny_policy, batch, objective)
    noisy = rounded(replace(batch, on_policy=True))
    assert measure(tiny_policy, noisy, objective).clip_fraction == 0.0
    assert measure(tiny_policy, noisy, objective).sampler_gap > 0.05
    torch.testing.assert_close(gradient(tiny_policy, noisy, objective), exact, atol=1e-5, rtol=1e-3)
    if objective.ratio in ("sequence", "product"):
        assert measure(tiny_policy, replace(noisy, on_policy=False), objective).clip_fraction > 0.1


def test_later_passes_are_against_the_policy_before_the_first(tiny_policy, scenarios) -> None:
    """What the first pass computes anyway is what every later one is measured against."""
    objective = replace(PLAIN, num_iterations=3, epsilon=0.01)
    batch = experience(tiny_policy, scenarios[:4], by_index, objective)
    start = [p.detach().clone() for p in tiny_policy.parameters()]
    ends = []
    for one in (batch, rounded(replace(batch, on_policy=True))):
        with torch.no_grad():
            for parameter, value in zip(tiny_policy.parameters(), start, strict=True):
                parameter.copy_(value)
        optimizer = torch.optim.SGD(tiny_policy.parameters(), lr=1.0)
        assert learn(tiny_policy, optimizer, one, objective).clip_fraction > 0
        ends.append(torch.nn.utils.parameters_to_vector(tiny_policy.parameters()).detach())
    way = ends[0] - torch.nn.utils.parameters_to_vector(start)
    assert (ends[1] - ends[0]).norm() < 1e-2 * way.norm()


def test_replayed_groups_keep_the_ratio_to_the_policy_that_sampled_them(
    tiny_policy, scenarios
) -> None:
    batch = experience(tiny_policy, scenarios[:4], by_index)
    move_away(tiny_policy)
    old = replace(batch, on_policy=True, replayed=4)
    assert measure(tiny_policy, old).clip_fraction > 0.0
    torch.testing.assert_close(gradient(tiny_policy, old), gradient(tiny_policy, batch))


def test_dropout_clips_nothing_and_stays_out_of_what_has_no_gradient(
    tiny_model_folder, scenarios
) -> None:
    policy = LanguageModel.load(
        str(tiny_model_folder), lora=LoraConfig(r=4, dropout=0.5), device="cpu"
    )
    move_away(policy)
    objective = replace(PLAIN, ratio="sequence", epsilon=3e-4)
    batch = replace(experience(policy, scenarios[:4], by_index), on_policy=True)
    update = measure(policy, batch, objective)
    assert update.clip_fraction == 0.0 and update.sampler_gap > 1e-3  # dropout is on
    with torch.no_grad():
        scores = policy.logprobs(batch.trees, temperature=1.0).logprobs_RT
    drawn = np.concatenate([row for rows in batch.old_logprobs for row in rows])
    assert np.abs(scores[scores != 0].numpy() - drawn).max() < 1e-4


def test_another_engines_probabilities_weigh_tokens_up_to_the_cap(tiny_policy, scenarios) -> None:
    batch = experience(tiny_policy, scenarios[:2], by_index)
    right = gradient(tiny_policy, batch, PLAIN)
    shifted = replace(
        batch,
        old_logprobs=tuple(tuple(row - 0.5 for row in rows) for rows in batch.old_logprobs),
    )
    capped = replace(PLAIN, importance_cap=1.25)
    torch.testing.assert_close(
        gradient(tiny_policy, shifted, capped), 1.25 * right, atol=1e-6, rtol=1e-4
    )
    free = replace(PLAIN, importance_cap=10.0)
    torch.testing.assert_close(
        gradient(tiny_policy, shifted, free), np.exp(0.5) * right, atol=1e-6, rtol=1e-4
    )
    update = measure(tiny_policy, shifted, capped)
    assert update.clip_fraction == 0.0  # the old policy is the learner's own
    assert update.sampler_gap == pytest.approx(0.5, abs=1e-4)


def test_a_kl_in_the_reward_is_taken_off_before_rollouts_are_compared(
    tiny_policy, scenarios
) -> None:
    move_away(tiny_policy)
    objective = replace(PLAIN, beta=0.2, kl="k1", kl_in="reward", advantage="centred")
    batch = experience(tiny_policy, scenarios[:2], all_equal, objective)
    assert (batch.advantages.advantages_K == 0).all()
    reference = tiny_policy.reference_logprobs(batch.trees, temperature=1.0)
    penalties = [
        float(sum(old) - logprobs.sum())
        for old, logprobs in zip(
            (row for rows in batch.old_logprobs for row in rows),
            reference.logprobs_RT,
            strict=True,
        )
    ]
    expected_BG = -0.2 * np.reshape(penalties, (2, 4))
    expected_BG -= expected_BG.mean(axis=1, keepdims=True)
    update = measure(tiny_policy, batch, objective)
    np.testing.assert_allclose(update.advantages.advantages_K, expected_BG.flatten(), atol=1e-5)
    assert update.kl is not None and update.grad_norm > 1e-3
    # As rows of several trees, a rollout pays for all of them.
    rows = measure(tiny_policy, cut_in_rows(batch), objective)
    np.testing.assert_allclose(rows.advantages.advantages_K, expected_BG.flatten(), atol=1e-5)


# Numbers that are none


def test_a_gradient_that_is_not_finite_stops_before_the_weights_move(
    tiny_policy, scenarios
) -> None:
    batch = experience(tiny_policy, scenarios[:2], by_index)
    batch.advantages.advantages_K[4 + 2] = np.nan
    before = [p.detach().clone() for p in tiny_policy.parameters()]
    with pytest.raises(NotFinite) as error:
        learn(tiny_policy, torch.optim.AdamW(tiny_policy.parameters()), batch, OBJECTIVE)
    assert error.value.groups == (1,)
    assert all(torch.equal(a, b) for a, b in zip(before, tiny_policy.parameters(), strict=True))
    assert all(p.grad is None for p in tiny_policy.parameters())


# Mini-batches


@pytest.mark.parametrize("aggregation", ["rollout", "token", "constant"])
def test_a_minibatch_is_a_batch_of_its_own(tiny_policy, scenarios, aggregation) -> None:
    """Two mini-batches move the weights as two batches do that were sampled before both."""
    objective = replace(OBJECTIVE, aggregation=aggregation)
    batch = replace(experience(tiny_policy, scenarios[:4], by_index), on_policy=True)
    halves = [
        join([batch.single(group, "group") for group in groups], "group")
        for groups in ((0, 1), (2, 3))
    ]
    began = [parameter.detach().clone() for parameter in tiny_policy.parameters()]

    def weights_after(*steps) -> list[torch.Tensor]:
        with torch.no_grad():
            for parameter, value in zip(tiny_policy.parameters(), began, strict=True):
                parameter.copy_(value)
        optimizer = torch.optim.SGD(tiny_policy.parameters(), lr=0.05)
        for learned, chosen in steps:
            learn(tiny_policy, optimizer, learned, chosen)
        return [parameter.detach().clone() for parameter in tiny_policy.parameters()]

    in_parts = weights_after((batch, replace(objective, minibatches=2)))
    one_by_one = weights_after(*((half, objective) for half in halves))
    together = weights_after((batch, objective))
    moved = torch.cat([(a - b).flatten() for a, b in zip(in_parts, together, strict=True)])
    assert moved.norm() > 1e-3
    for ours, theirs in zip(in_parts, one_by_one, strict=True):
        torch.testing.assert_close(ours, theirs, atol=5e-5, rtol=1e-3)


def test_later_minibatches_are_clipped_by_how_far_earlier_ones_moved(
    tiny_policy, scenarios
) -> None:
    batch = replace(experience(tiny_policy, scenarios[:4], by_index), on_policy=True)
    far = torch.optim.SGD(tiny_policy.parameters(), lr=3.0)
    objective = replace(PLAIN, minibatches=4)
    assert learn(tiny_policy, far, batch, objective).clip_fraction > 0.05


def test_a_part_without_a_gradient_is_no_step(tiny_policy, scenarios) -> None:
    def first_two_equal(prompts, completions, **columns):
        return [float(index % 4) * (index >= 8) for index in range(len(completions))]

    batch = experience(tiny_policy, scenarios[:4], first_two_equal)
    steps = []

    class Counting(torch.optim.SGD):
        def step(self, closure=None):
            steps.append(1)

    counting = Counting(tiny_policy.parameters(), lr=0.0)
    learn(tiny_policy, counting, batch, replace(PLAIN, minibatches=2, num_iterations=3))
    assert len(steps) == 3

"""The gradient step: from experience to moved weights.

    pieces      trees that are too large cut by branches, all of them put together as micro-batches
                that fit the device
    before      reference (and, if asked for, old) log-probabilities and values, then KL penalties,
                advantages
    passes      for each pass: loss and gradient of every piece, one optimiser step; or, with
                minibatches, one for each part of the groups

A group without advantages has no policy gradient. It is computed all the same while a KL or entropy
term pulls at it; with neither it is skipped, and the others keep the share of the loss that they
would have had beside it.

A mini-batch is a batch of its own: its rollouts' shares of the loss sum to what those of a whole
batch do. Old log-probabilities and advantages are those before its first optimiser step, so the
ratio of a later mini-batch says how far the earlier ones have moved the policy.

Ratios that are taken over all tokens of a rollout need it whole in one micro-batch:
`keep_rollouts_whole` merges those that share one.

Invariant (house contract 3): how trees are cut and put into micro-batches changes nothing but
rounding, because every rollout's share of the batch is fixed whatever they are cut into. Nor does
it matter how many ranks share the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from memograd.grpo.advantage import GroupAdvantages, group_advantages, judge_tokens
from memograd.grpo.distributed import ALONE, World
from memograd.grpo.experience import Experience, NotFinite
from memograd.grpo.loss import Objective, rollout_shares
from memograd.grpo.optimizer import Optimizer, clip_gradients
from memograd.grpo.piece import Piece
from memograd.grpo.sampler_gap import GapLimits, SamplerGaps, SamplerGapTooWide, joined_gaps
from memograd.policy.protocol import Policy


def keep_rollouts_whole(
    pieces: Sequence[Sequence[int]], rollouts_of_tree: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Merge `pieces` (indices of trees) until no rollout has rows in two of them."""
    merged: list[tuple[list[int], set[int]]] = []
    for piece in pieces:
        trees = list(piece)
        rollouts = {rollout for tree in piece for rollout in rollouts_of_tree[tree]}
        apart = []
        for other_trees, other_rollouts in merged:
            if rollouts.isdisjoint(other_rollouts):
                apart.append((other_trees, other_rollouts))
            else:
                trees = other_trees + trees
                rollouts |= other_rollouts
        merged = [*apart, (trees, rollouts)]
    return [trees for trees, _ in merged]


@dataclass(frozen=True)
class Update:
    """What one call of `learn` measured: means over its optimiser steps, over the groups computed.

    `advantages` are those that were learned from, KL penalties in them where the KL is part of the
    reward. `gaps` are |learner - sampler| log-probabilities (nats) before the first pass: rounding
    only, unless the sampler is another engine. What was not computed is None.
    """

    loss: float
    kl: float | None
    entropy: float | None
    clip_fraction: float
    value_loss: float | None
    grad_norm: float
    gaps: SamplerGaps | None
    advantages: GroupAdvantages

    @property
    def sampler_gap(self) -> float | None:
        """The largest of the gaps."""
        return None if self.gaps is None else self.gaps.largest


def learn(
    policy: Policy,
    optimizer: Optimizer,
    experience: Experience,
    objective: Objective,
    world: World = ALONE,
) -> Update:
    """Move the policy by `num_iterations` optimiser steps on `experience`, or by as many for each
    of `minibatches` parts of its groups.

    Every rank of `world` has the same experience and computes its share of the groups in it.

    Raises `NotFinite` with the groups at fault if loss or gradient are not finite; this pass has
    then not moved the weights. Raises `SamplerGapTooWide` before the first pass moves them.
    """
    # Shares of the loss belong to rollouts, so what is cut weighs what it did.
    experience = experience.cut(policy.cut)
    advantages = experience.advantages
    trees = [
        tree
        for tree, rollouts in enumerate(experience.rollouts_of_tree)
        if objective.needs_every_group or (advantages.advantages_K[list(rollouts)] != 0).any()
    ]
    if not trees:
        return Update(0.0, None, None, 0.0, None, 0.0, None, advantages)
    shares_K = np.zeros(len(experience.compared_K))
    parts: list[list[Piece]] = []
    for groups in np.array_split(np.arange(len(experience.groups)), objective.minibatches):
        rollouts = np.flatnonzero(np.isin(experience.group_K, groups))
        if not len(rollouts):
            continue
        shares_K[rollouts] = rollout_shares(
            objective.aggregation,
            experience.tokens_K[rollouts],
            max_completion_length=objective.max_completion_length,
        )
        inside = set(groups.tolist())
        chosen = [tree for tree in trees if experience.group_of_tree(tree) in inside]
        if chosen:
            own = _share_of_rank(world, experience, chosen)
            parts.append(
                world.guarded(partial(_pieces, policy, experience, own, shares_K, objective))
            )
    pieces = [piece for part in parts for piece in part]
    advantages = _advantages(pieces, experience, objective, world)
    passes = []
    gaps: SamplerGaps | None = None
    for place, part in enumerate(parts * objective.num_iterations):
        measured = world.sum(world.guarded(partial(_backward, part)))
        if place < len(parts):
            gaps = _gaps(world, pieces)
            if objective.gap is not None:
                _check_gap(gaps, optimizer, objective.gap)
        world.sum_gradients(policy.parameters())
        norm = clip_gradients(policy.parameters(), objective.max_grad_norm, world)
        if not np.isfinite([*measured, norm]).all():
            at_fault = _at_fault(
                policy, optimizer, experience, trees, shares_K, objective, advantages, world
            )
            raise NotFinite("the loss or its gradient", at_fault)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        passes.append([*measured, norm])
    loss, kl, entropy, clipped, value_loss, weight, grad_norm = np.mean(passes, axis=0).tolist()
    return Update(
        loss=loss,
        kl=kl / weight if weight and policy.has_reference else None,
        entropy=entropy / weight if weight else None,
        clip_fraction=clipped / weight if weight else 0.0,
        value_loss=value_loss / weight if weight and objective.has_values else None,
        grad_norm=grad_norm,
        gaps=gaps,
        advantages=advantages,
    )


def _share_of_rank(world: World, experience: Experience, trees: Sequence[int]) -> list[int]:
    """Those of `trees` that this rank computes: groups whole on a rank, about as many on each."""
    groups_of_tree = [experience.group_of_tree(tree) for tree in trees]
    groups = sorted(set(groups_of_tree))
    share = world.share(len(groups))
    own = set(groups[share.start : share.stop])
    return [tree for tree, group in zip(trees, groups_of_tree, strict=True) if group in own]


def _pieces(
    policy: Policy,
    experience: Experience,
    trees: Sequence[int],
    shares_K: np.ndarray,
    objective: Objective,
) -> list[Piece]:
    return [
        Piece(policy, experience, piece, shares_K, objective)
        for piece in _microbatches(policy, experience, trees, objective)
    ]


def _advantages(
    pieces: Sequence[Piece], experience: Experience, objective: Objective, world: World
) -> GroupAdvantages:
    """Give the pieces their advantages, KL penalties in them; returns those of the rollouts."""
    advantages = experience.advantages
    if objective.has_values:
        means_K = judge_tokens(pieces, experience.compared_K, objective, world)
        return replace(advantages, advantages_K=means_K)
    if objective.reward_beta > 0:
        penalties_K = np.zeros(len(experience.compared_K))
        for piece in pieces:
            penalties_K += piece.kl_penalties()
        penalties_K = world.sum(penalties_K)
        penalised_K = experience.compared_K - objective.reward_beta * penalties_K
        advantages = group_advantages(penalised_K, experience.sizes_B, objective.advantage)
    for piece in pieces:
        piece.compare(advantages.advantages_K)
    return advantages


def _backward(pieces: Sequence[Piece]) -> np.ndarray:
    """Add the gradients of all `pieces`; returns the sum of what they measured, six numbers."""
    measured = np.zeros(6)
    for piece in pieces:
        measured += piece.backward()
    return measured


def _check_gap(gaps: SamplerGaps, optimizer: Optimizer, limits: GapLimits) -> None:
    """Raises `SamplerGapTooWide` before the weights move, and leaves no gradient behind."""
    try:
        gaps.check(limits)
    except SamplerGapTooWide:
        optimizer.zero_grad(set_to_none=True)
        raise


def _gaps(world: World, pieces: Sequence[Piece]) -> SamplerGaps:
    """Those of all pieces on all ranks that were scored once."""
    return joined_gaps(
        world.together(
            lambda: joined_gaps([piece.gaps for piece in pieces if piece.gaps is not None])
        )
    )


def _microbatches(
    policy: Policy, experience: Experience, trees: Sequence[int], objective: Objective
) -> list[list[int]]:
    """`trees` in pieces that fit; rollouts whole where their ratio is taken over all tokens."""
    places = policy.microbatches([experience.trees[tree] for tree in trees])
    pieces = [[trees[place] for place in piece] for piece in places]
    if objective.ratio in ("sequence", "product"):
        return keep_rollouts_whole(pieces, experience.rollouts_of_tree)
    return pieces


def _at_fault(
    policy: Policy,
    optimizer: Optimizer,
    experience: Experience,
    trees: Sequence[int],
    shares_K: np.ndarray,
    objective: Objective,
    advantages: GroupAdvantages,
    world: World,
) -> list[int]:
    """The groups whose own loss or gradient is not finite; all of them if it is only the sum."""
    groups_of_tree = {tree: experience.group_of_tree(tree) for tree in trees}
    everyone = sorted(set(groups_of_tree.values()))
    # Passes before this one may have moved the policy away from what sampled the batch.
    moved = replace(experience, on_policy=False)
    found = []
    for group in everyone:
        own = [tree for tree in trees if groups_of_tree[tree] == group]
        optimizer.zero_grad(set_to_none=True)
        piece = Piece(policy, moved, own, shares_K, objective)
        if objective.has_values:
            judge_tokens([piece], experience.compared_K, objective, ALONE)
        else:
            piece.compare(advantages.advantages_K)
        measured = piece.backward()
        norm = clip_gradients(policy.parameters(), objective.max_grad_norm, world)
        if not np.isfinite([*measured, norm]).all():
            found.append(group)
    optimizer.zero_grad(set_to_none=True)
    return found or everyone

"""Advantages by token: generalised advantage estimation (arXiv:1506.02438, arXiv:1707.06347).

A value head says before every token what the rollout will still earn. With V_t that value, r_t what
the token itself earned, and V = 0 after a rollout's last token:

    delta_t  = r_t + gamma V_(t+1) - V_t                        one token better than expected
    A_t      = delta_t + gamma lambda A_(t+1)                   and the tokens after it, discounted
    target_t = A_t + V_t                                        what the value head should have said
    loss_t   = max((v - target)^2, (clip(v) - target)^2) / 2    clip(v) within epsilon of V_t

with v the value while it is being trained. Tokens are the policy's own, in the order in which it
chose them: what the environment says between two actions belongs to the step from one to the other.
The reward is earned at a rollout's last token and, where the KL is part of the reward, each token
pays its own. Advantages are then normalised over the tokens of the whole batch, of all ranks: (A -
mean) / (std + 1e-4).

`judge_tokens` puts a rollout's tokens in order, whatever rows, trees and micro-batches they lie in;
it needs every token to be scored in one row only, and the rows of a rollout in their order
(`memograd.rollout.branches`).

Invariants: how a rollout is cut into rows and a batch into micro-batches changes nothing; with
lambda 1, an advantage is the discounted sum of what follows minus the value; with exact values
advantages are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from memograd.grpo.advantage import STD_FLOOR
from memograd.grpo.distributed import World
from memograd.grpo.objective import Objective


def advantages_by_gae(
    rewards_N: np.ndarray,
    values_N: np.ndarray,
    last_N: np.ndarray,
    *,
    gamma: float,
    gae_lambda: float,
) -> np.ndarray:
    """A_t [N] float64 of tokens that stand rollout after rollout; `last_N` marks where one ends."""
    advantages_N = np.zeros(len(rewards_N))
    advantage = next_value = 0.0
    for token in reversed(range(len(rewards_N))):
        if last_N[token]:
            advantage = next_value = 0.0
        delta = rewards_N[token] + gamma * next_value - values_N[token]
        advantage = delta + gamma * gae_lambda * advantage
        next_value = values_N[token]
        advantages_N[token] = advantage
    return advantages_N


def value_losses(
    values_RT: torch.Tensor,
    old_values_RT: torch.Tensor,
    targets_RT: torch.Tensor,
    *,
    epsilon: float,
) -> torch.Tensor:
    """loss_t of every token [R, T]; the gradient reaches `values_RT` only."""
    moved_RT = (values_RT - old_values_RT).clamp(-epsilon, epsilon)
    plain_RT = (values_RT - targets_RT).square()
    clipped_RT = (old_values_RT + moved_RT - targets_RT).square()
    return torch.maximum(plain_RT, clipped_RT) / 2


@dataclass(frozen=True)
class Tokens:
    """N scored tokens, row by row: each one's rollout, tree, branch in it, value (before the step)
    and KL to the reference (nats)."""

    rollouts_N: np.ndarray
    trees_N: np.ndarray
    branches_N: np.ndarray
    values_N: np.ndarray
    kl_N: np.ndarray


class JudgedPiece(Protocol):
    """The part of `memograd.grpo.piece.Piece` that is needed here."""

    def tokens(self) -> Tokens:
        """What is to be judged."""
        ...

    def judge(self, advantages_N: np.ndarray, targets_N: np.ndarray) -> None:
        """Take over the advantage, and the value's target, of each of `tokens`."""
        ...


def judge_tokens(
    pieces: Sequence[JudgedPiece], rewards_K: np.ndarray, objective: Objective, world: World
) -> np.ndarray:
    """Give the tokens of `pieces`, this rank's share of a batch of K rollouts, their advantages.

    Returns the mean advantage of each rollout's tokens [K]. Every rank must call it.
    """
    parts = [piece.tokens() for piece in pieces]
    rollouts_N = _joined([part.rollouts_N for part in parts]).astype(np.int64)
    trees_N = _joined([part.trees_N for part in parts])
    branches_N = _joined([part.branches_N for part in parts])
    # Stable: the tokens of a row stay in their order.
    order_N = np.lexsort((branches_N, trees_N, rollouts_N))
    rollouts_N = rollouts_N[order_N]
    values_N = _joined([part.values_N for part in parts])[order_N]
    rewards_N = -objective.reward_beta * _joined([part.kl_N for part in parts])[order_N]
    last_N = np.append(rollouts_N[1:] != rollouts_N[:-1], True)[: len(rollouts_N)]
    rewards_N[last_N] += rewards_K[rollouts_N[last_N]]
    raw_N = advantages_by_gae(
        rewards_N, values_N, last_N, gamma=objective.gamma, gae_lambda=objective.gae_lambda
    )
    targets_N = raw_N + values_N
    advantages_N = _normalised(raw_N, world)
    back_N = np.argsort(order_N)
    ends = np.cumsum([len(part.values_N) for part in parts])[:-1]
    advantages = np.split(advantages_N[back_N], ends)
    targets = np.split(targets_N[back_N], ends)
    # Without pieces there is one empty part.
    for place, piece in enumerate(pieces):
        piece.judge(advantages[place], targets[place])
    totals_K = np.bincount(rollouts_N, weights=advantages_N, minlength=len(rewards_K))
    counts_K = np.bincount(rollouts_N, minlength=len(rewards_K)).astype(np.float64)
    return np.asarray(world.sum(totals_K) / np.maximum(world.sum(counts_K), 1))


def _normalised(numbers_N: np.ndarray, world: World) -> np.ndarray:
    """Numbers of all ranks on one scale: mean 0, sample standard deviation about 1."""
    count, total = world.sum(np.array([len(numbers_N), numbers_N.sum()]))
    centred_N = numbers_N - total / max(count, 1)
    squares = world.sum(np.array([np.square(centred_N).sum()]))[0]
    return np.asarray(centred_N / (np.sqrt(squares / max(count - 1, 1)) + STD_FLOOR))


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0)

"""Advantages: a reward is good or bad only beside others, and here is beside which.

**One a rollout.** For B groups of rewards r, with the mean and the sample standard deviation
(n - 1) of the group or of the whole batch, and s = 1e-4, the floor of TRL's trainers, so that
numbers compare:

    group          (r - mean_group) / (std_group + s)      GRPO, arXiv:2402.03300
    centred         r - mean_group                         Dr.GRPO, arXiv:2503.20783
    leave_one_out   r - mean of the group's others         RLOO, arXiv:2402.14740
    batch          (r - mean_batch) / (std_batch + s)      REINFORCE++, arXiv:2501.03262
    group_batch    (r - mean_group) / (std_batch + s)      its variant with a group baseline; the
                    std is that of r - mean_group, all rewards of the batch together
    gae             r as it is: advantages are made of it token by token, once the value head has
                    said what it expected

`normalise_each` puts several rewards on one scale before they are added up (GDPO,
arXiv:2601.05242): sum over rewards of weight * (r - mean_group) / (std_group + s).

Groups may be of different sizes: K rewards stand group after group, and `sizes_B` says where groups
end. Invariants, of all but `gae`: advantages with a group baseline sum to zero in each group;
adding a constant to all rewards changes nothing; equal rewards give advantages of exactly zero; the
first three take nothing from other groups, whatever their sizes.

**One a token** (`gae`): generalised advantage estimation (arXiv:1506.02438, arXiv:1707.06347). A
value head says before every token what the rollout will still earn. With V_t that value, r_t what
the token itself earned, and V = 0 after a rollout's last token:

    delta_t  = r_t + gamma V_(t+1) - V_t                        one token better than expected
    A_t      = delta_t + gamma lambda A_(t+1)                   and the tokens after it, discounted
    target_t = A_t + V_t                                        what the value head should have said
    loss_t   = max((v - target)^2, (clip(v) - target)^2) / 2    clip(v) within epsilon of V_t

with v the value while it is being trained. Tokens are the policy's own, in the order in which it
chose them: what the environment says between two actions belongs to the step from one to the other.
The reward is earned at a rollout's last token and, where the KL is part of the reward, each token
pays its own. Advantages are then normalised over the tokens of the whole batch, of all ranks: (A -
mean) / (std + s).

`judge_tokens` puts a rollout's tokens in order, whatever rows, trees and micro-batches they lie in;
it needs every token to be scored in one row only, and the rows of a rollout in their order
(`memograd.rollout.token_tree`). Invariants: how a rollout is cut into rows and a batch into
micro-batches changes nothing; with lambda 1, an advantage is the discounted sum of what follows
minus the value; with exact values advantages are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from memograd.grpo.distributed import World
from memograd.grpo.loss import Objective

STD_FLOOR = 1e-4


@dataclass(frozen=True)
class GroupAdvantages:
    """`advantages_K`, one a rollout, group after group; `varied_B`: False where all rewards of a
    group are equal."""

    advantages_K: np.ndarray
    varied_B: np.ndarray


def _centred(groups: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([_centred_group(rewards_G) for rewards_G in groups])


def _group(groups: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([_normalised(rewards_G) for rewards_G in groups])


def _leave_one_out(groups: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(
        [
            _centred_group(rewards_G) * (len(rewards_G) / (len(rewards_G) - 1))
            for rewards_G in groups
        ]
    )


def _batch(groups: Sequence[np.ndarray]) -> np.ndarray:
    # The batch as one large group.
    return _normalised(np.concatenate(groups))


def _group_batch(groups: Sequence[np.ndarray]) -> np.ndarray:
    centred_K = _centred(groups)
    return np.asarray(centred_K / (centred_K.std(ddof=1) + STD_FLOOR))


def _centred_group(rewards_G: np.ndarray) -> np.ndarray:
    # Equality is asked of the rewards: the difference to their rounded mean may be a tiny non-zero.
    return rewards_G - rewards_G.mean() if _varied(rewards_G) else np.zeros(len(rewards_G))


def _normalised(rewards_G: np.ndarray) -> np.ndarray:
    return np.asarray(_centred_group(rewards_G) / (rewards_G.std(ddof=1) + STD_FLOOR))


def _varied(rewards_G: np.ndarray) -> bool:
    return bool(np.ptp(rewards_G) > 0)


_ADVANTAGES: Mapping[str, Callable[[Sequence[np.ndarray]], np.ndarray]] = {
    "group": _group,
    "centred": _centred,
    "leave_one_out": _leave_one_out,
    "batch": _batch,
    "group_batch": _group_batch,
    "gae": np.concatenate,  # as they are
}


def group_advantages(
    rewards_K: np.ndarray, sizes_B: Sequence[int], advantage: str = "group"
) -> GroupAdvantages:
    """Compare K rewards, of groups of `sizes_B` rollouts, as `advantage` says.

    Raises `ValueError` where there is nothing to compare with: a group of one with a group
    baseline, or a batch of one; and for sizes that are not those of the rewards.
    """
    if len(rewards_K) != sum(sizes_B):
        raise ValueError(f"{len(rewards_K)} rewards are not groups of {list(sizes_B)}")
    compared = len(rewards_K) if advantage == "batch" else min(sizes_B, default=0)
    if compared < 2 and advantage != "gae":
        raise ValueError(
            f"advantage={advantage} needs two rollouts to compare; groups have {list(sizes_B)}"
        )
    groups = by_group(rewards_K, sizes_B)
    return GroupAdvantages(
        _ADVANTAGES[advantage](groups), np.array([_varied(rewards_G) for rewards_G in groups])
    )


def by_group(values_K: np.ndarray, sizes_B: Sequence[int]) -> list[np.ndarray]:
    """One number a rollout, cut into one array a group."""
    return np.split(values_K, np.cumsum(sizes_B)[:-1])


def normalise_each(
    rewards_NK: Sequence[np.ndarray], sizes_B: Sequence[int], weights_N: Sequence[float]
) -> np.ndarray:
    """The weighted sum [K] of N rewards [K], each normalised within its group first.

    NaN is where a reward does not apply: it counts neither for the mean nor in the sum.
    """
    total_K = np.zeros(sum(sizes_B))
    for rewards_K, weight in zip(rewards_NK, weights_N, strict=True):
        # The parts of the total are views: adding to them adds to it.
        for total_G, rewards_G in zip(
            by_group(total_K, sizes_B), by_group(rewards_K, sizes_B), strict=True
        ):
            applies_G = ~np.isnan(rewards_G)
            if applies_G.sum() > 1:
                total_G[applies_G] += weight * _normalised(rewards_G[applies_G])
    return total_K


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
    advantages_N = _over_ranks(raw_N, world)
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


def _over_ranks(numbers_N: np.ndarray, world: World) -> np.ndarray:
    """Numbers of all ranks on one scale: mean 0, sample standard deviation about 1."""
    count, total = world.sum(np.array([len(numbers_N), numbers_N.sum()]))
    centred_N = numbers_N - total / max(count, 1)
    squares = world.sum(np.array([np.square(centred_N).sum()]))[0]
    return np.asarray(centred_N / (np.sqrt(squares / max(count - 1, 1)) + STD_FLOOR))


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0)

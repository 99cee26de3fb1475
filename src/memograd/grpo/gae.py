"""Generalised advantage estimation and the value loss (arXiv:1506.02438, arXiv:1707.06347).

A value head says before every token what the rollout will still earn. With V_t that value, r_t what
the token itself earned, and V = 0 after a rollout's last token:

    delta_t  = r_t + gamma V_(t+1) - V_t                        one token better than expected
    A_t      = delta_t + gamma lambda A_(t+1)                   and the tokens after it, discounted
    target_t = A_t + V_t                                        what the value head should have said
    loss_t   = max((v - target)^2, (clip(v) - target)^2) / 2    clip(v) within epsilon of V_t

with v the value while it is being trained. Tokens are the policy's own, in the order in which it
chose them: what the environment says between two actions belongs to the step from one to the other.

Invariants: with lambda 1, an advantage is the discounted sum of what follows minus the value; with
exact values advantages are zero. Proved in `tests/grpo/test_gae.py`, with a plain implementation
and finite differences. May import numpy and torch only.
"""

from __future__ import annotations

import numpy as np
import torch


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

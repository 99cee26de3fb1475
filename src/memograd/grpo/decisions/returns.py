"""Returns and advantages of walks whose decisions have one action each. Pure numpy.

    discounted return    R_t = r_t + gamma R_{t+1}
    GAE                  A_t = d_t + gamma lambda A_{t+1},  d_t = r_t + gamma V_{t+1} - V_t
                         (arXiv:1506.02438)

Invariants: with lambda 1, GAE is the return minus the value; nothing flows from one walk into
another (`tests/grpo/test_decisions_returns.py`).
"""

from __future__ import annotations

import numpy as np


def discounted_returns(rewards_N: np.ndarray, following_N: np.ndarray, gamma: float) -> np.ndarray:
    """The return of every decision [N]; a decision's follower stands behind it."""
    returns_N = rewards_N.astype(np.float64).copy()
    for row in range(len(returns_N) - 1, -1, -1):
        if following_N[row] >= 0:
            returns_N[row] += gamma * returns_N[following_N[row]]
    return returns_N


def gae(
    rewards_N: np.ndarray,
    values_N: np.ndarray,
    following_N: np.ndarray,
    *,
    gamma: float,
    lambda_: float,
) -> np.ndarray:
    """Generalised advantage estimates [N]; the value behind the end of a walk is 0."""
    advantages_N = np.zeros(len(rewards_N))
    for row in range(len(rewards_N) - 1, -1, -1):
        after = following_N[row]
        value, later = (values_N[after], advantages_N[after]) if after >= 0 else (0.0, 0.0)
        surprise = rewards_N[row] + gamma * value - values_N[row]
        advantages_N[row] = surprise + gamma * lambda_ * later
    return advantages_N

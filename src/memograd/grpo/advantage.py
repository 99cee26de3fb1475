"""Group-relative advantages: a reward is good or bad only beside its group's.

    A_g = (r_g - mean(r)) / (std(r) + 1e-4)        (GRPO, arXiv:2402.03300, eq. for outcome rewards)

with the sample standard deviation (n - 1) and the 1e-4 of TRL's trainer, so that numbers compare.

Invariants: advantages of a group sum to zero; adding a constant to all its rewards changes
nothing; a group whose rewards are all equal has advantages of exactly zero. Proved in
`tests/grpo/test_advantage.py`. May import numpy only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STD_FLOOR = 1e-4


@dataclass(frozen=True)
class GroupAdvantages:
    """`advantages_BG`, and `informative_B`: False where all rewards of a group are equal."""

    advantages_BG: np.ndarray
    informative_B: np.ndarray


def group_advantages(rewards_BG: np.ndarray) -> GroupAdvantages:
    """Normalise rewards [B, G] within each group (row). G must be at least 2."""
    if rewards_BG.ndim != 2 or rewards_BG.shape[1] < 2:
        raise ValueError(f"a group needs two rollouts to be compared; rewards {rewards_BG.shape}")
    centred_BG = rewards_BG - rewards_BG.mean(axis=1, keepdims=True)
    spread_B1 = rewards_BG.std(axis=1, ddof=1, keepdims=True)
    # Equality is asked of the rewards: their rounded standard deviation may be a tiny non-zero.
    informative_B = np.ptp(rewards_BG, axis=1) > 0
    advantages_BG = np.where(informative_B[:, None], centred_BG / (spread_B1 + STD_FLOOR), 0.0)
    return GroupAdvantages(advantages_BG, informative_B)

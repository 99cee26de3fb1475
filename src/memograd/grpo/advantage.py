"""Advantages: a reward is good or bad only beside others, and here is beside which.

For B groups of G rewards r, with the mean and the sample standard deviation (n - 1) of the group
or of the whole batch, and s = 1e-4, the floor of TRL's trainers, so that numbers compare:

    group          (r - mean_group) / (std_group + s)      GRPO, arXiv:2402.03300
    centred         r - mean_group                         Dr.GRPO, arXiv:2503.20783
    leave_one_out   r - mean of the group's others         RLOO, arXiv:2402.14740
    batch          (r - mean_batch) / (std_batch + s)      REINFORCE++, arXiv:2501.03262
    group_batch    (r - mean_group) / (std_batch + s)      its variant with a group baseline; the
                    std is that of r - mean_group, all rewards of the batch together

`normalise_each` puts several rewards on one scale before they are added up (GDPO,
arXiv:2601.05242): sum over rewards of weight * (r - mean_group) / (std_group + s).

Invariants: advantages with a group baseline sum to zero in each group; adding a constant to all
rewards changes nothing; equal rewards give advantages of exactly zero. Proved in
`tests/grpo/test_advantage.py`. May import numpy only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

STD_FLOOR = 1e-4


@dataclass(frozen=True)
class GroupAdvantages:
    """`advantages_BG`, and `varied_B`: False where all rewards of a group are equal."""

    advantages_BG: np.ndarray
    varied_B: np.ndarray

    @property
    def advantages_K(self) -> np.ndarray:
        """One advantage a rollout, group after group."""
        return self.advantages_BG.flatten()


def _centred(rewards_BG: np.ndarray) -> np.ndarray:
    centred_BG: np.ndarray = rewards_BG - rewards_BG.mean(axis=1, keepdims=True)
    # Equality is asked of the rewards: the difference to their rounded mean may be a tiny non-zero.
    centred_BG[~_varied(rewards_BG)] = 0.0
    return centred_BG


def _group(rewards_BG: np.ndarray) -> np.ndarray:
    std_B1: np.ndarray = rewards_BG.std(axis=1, ddof=1, keepdims=True)
    return np.asarray(_centred(rewards_BG) / (std_B1 + STD_FLOOR))


def _leave_one_out(rewards_BG: np.ndarray) -> np.ndarray:
    size = rewards_BG.shape[1]
    return np.asarray(_centred(rewards_BG) * (size / (size - 1)))


def _batch(rewards_BG: np.ndarray) -> np.ndarray:
    # The batch as one large group.
    return _group(rewards_BG.reshape(1, -1)).reshape(rewards_BG.shape)


def _group_batch(rewards_BG: np.ndarray) -> np.ndarray:
    centred_BG = _centred(rewards_BG)
    return np.asarray(centred_BG / (centred_BG.std(ddof=1) + STD_FLOOR))


def _varied(rewards_BG: np.ndarray) -> np.ndarray:
    return np.asarray(np.ptp(rewards_BG, axis=1) > 0)


_ADVANTAGES: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "group": _group,
    "centred": _centred,
    "leave_one_out": _leave_one_out,
    "batch": _batch,
    "group_batch": _group_batch,
}


def group_advantages(rewards_BG: np.ndarray, advantage: str = "group") -> GroupAdvantages:
    """Compare rewards [B, G] as `advantage` says.

    Raises `ValueError` where there is nothing to compare with: groups of one with a group baseline,
    or a batch of one.
    """
    alone = rewards_BG.size if advantage == "batch" else rewards_BG.shape[-1]
    if rewards_BG.ndim != 2 or alone < 2:
        raise ValueError(
            f"advantage={advantage} needs two rollouts to compare; rewards {rewards_BG.shape}"
        )
    return GroupAdvantages(_ADVANTAGES[advantage](rewards_BG), _varied(rewards_BG))


def normalise_each(rewards_NBG: Sequence[np.ndarray], weights_N: Sequence[float]) -> np.ndarray:
    """The weighted sum [B, G] of N rewards [B, G], each normalised within its group first.

    NaN is where a reward does not apply: it counts neither for the mean nor in the sum.
    """
    total_BG = np.zeros_like(rewards_NBG[0])
    for rewards_BG, weight in zip(rewards_NBG, weights_N, strict=True):
        for row, rewards_G in enumerate(rewards_BG):
            applies_G = ~np.isnan(rewards_G)
            if applies_G.sum() > 1:
                total_BG[row, applies_G] += weight * _group(rewards_G[None, applies_G])[0]
    return total_BG

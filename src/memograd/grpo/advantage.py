"""Advantages: a reward is good or bad only beside others, and here is beside which.

For B groups of rewards r, with the mean and the sample standard deviation (n - 1) of the group or
of the whole batch, and s = 1e-4, the floor of TRL's trainers, so that numbers compare:

    group          (r - mean_group) / (std_group + s)      GRPO, arXiv:2402.03300
    centred         r - mean_group                         Dr.GRPO, arXiv:2503.20783
    leave_one_out   r - mean of the group's others         RLOO, arXiv:2402.14740
    batch          (r - mean_batch) / (std_batch + s)      REINFORCE++, arXiv:2501.03262
    group_batch    (r - mean_group) / (std_batch + s)      its variant with a group baseline; the
                    std is that of r - mean_group, all rewards of the batch together
    gae             r as it is: `token_advantages` makes advantages of it, token by token, once
                    the value head has said what it expected

`normalise_each` puts several rewards on one scale before they are added up (GDPO,
arXiv:2601.05242): sum over rewards of weight * (r - mean_group) / (std_group + s).

Groups may be of different sizes: K rewards stand group after group, and `sizes_B` says where groups
end. Invariants, of all but `gae`: advantages with a group baseline sum to zero in each group;
adding a constant to all rewards changes nothing; equal rewards give advantages of exactly zero; the
first three take nothing from other groups, whatever their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

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

"""What walking through decision processes gives: states, the actions tried there, their rewards.

Any task whose episodes are decisions with a fixed set of actions fits `DecisionProcess`. Invariant:
`collect` writes down the probabilities that the policy had when it acted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from memograd.memory.manager.trained.network import Batch
from memograd.memory.manager.trained.observation import Observation


class DecisionProcess(Protocol):
    """An episode of decisions."""

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide."""
        ...

    def observe(self) -> Observation:
        """What is to be decided now."""
        ...

    def rewards(self) -> np.ndarray:
        """The reward of every action here [A]."""
        ...

    def outcome(self) -> float:
        """One reward for the whole episode, once it is over."""
        ...

    def take(self, action: int) -> None:
        """Decide, and go on."""
        ...

    def gold_action(self) -> int | None:
        """The action that a teacher would take here; None where there is no teacher."""
        ...


class Chooser(Protocol):
    """Something that tries actions in a batch of states."""

    @property
    def explored(self) -> int:
        """How many actions of a group, the last ones, are not drawn from the policy."""
        ...

    def choose_group(self, states: Batch) -> tuple[np.ndarray, np.ndarray]:
        """`actions_BG` and the log-probability of each under the policy; the first is taken."""
        ...


@dataclass(frozen=True)
class Decisions:
    """N decisions of several walks, walk after walk in time.

    states: what was seen. actions_NG, logprobs_NG, rewards_NG: the G actions tried in each state;
    the first one was taken. following_N: number of the walk's next decision, -1 at its end. walk_N:
    number of the walk. gold_N: the teacher's action, -1 where there is none. outcomes_W: one reward
    for each walk, where that is what is compared; else empty. explored: how many of the G actions,
    the last ones, were not drawn from the policy.
    """

    states: Batch
    actions_NG: np.ndarray
    logprobs_NG: np.ndarray
    rewards_NG: np.ndarray
    following_N: np.ndarray
    walk_N: np.ndarray
    gold_N: np.ndarray
    outcomes_W: np.ndarray
    explored: int = 0

    def __len__(self) -> int:
        return len(self.states)


def collect(
    chooser: Chooser, walks: Sequence[DecisionProcess], *, by_outcome: bool = False
) -> Decisions:
    """Walk all processes to their ends side by side.

    by_outcome: actions have no rewards of their own (they are 0), each walk has one.
    """
    rows: list[tuple[int, Observation, np.ndarray, np.ndarray, np.ndarray, int]] = []
    live = [number for number, walk in enumerate(walks) if not walk.over]
    while live:
        observations = [walks[number].observe() for number in live]
        actions_BG, logprobs_BG = chooser.choose_group(Batch.of(observations))
        for place, number in enumerate(live):
            walk, actions_G = walks[number], actions_BG[place]
            rewards_G = np.zeros(len(actions_G)) if by_outcome else walk.rewards()[actions_G]
            gold = walk.gold_action()
            rows.append(
                (
                    number,
                    observations[place],
                    actions_G,
                    logprobs_BG[place],
                    rewards_G,
                    -1 if gold is None else gold,
                )
            )
            walk.take(int(actions_G[0]))
        live = [number for number in live if not walks[number].over]
    rows.sort(key=lambda row: row[0])  # stable: in time within a walk
    walk_N = np.array([row[0] for row in rows])
    following_N = np.arange(1, len(rows) + 1)
    following_N[np.append(walk_N[1:] != walk_N[:-1], True)] = -1
    return Decisions(
        states=Batch.of([row[1] for row in rows]),
        actions_NG=np.stack([row[2] for row in rows]),
        logprobs_NG=np.stack([row[3] for row in rows]),
        rewards_NG=np.stack([row[4] for row in rows]),
        following_N=following_N,
        walk_N=walk_N,
        gold_N=np.array([row[5] for row in rows]),
        outcomes_W=np.array([walk.outcome() for walk in walks] if by_outcome else []),
        explored=chooser.explored,
    )

"""Decision processes small enough to know what is best, for the tests of decision trainers."""

from __future__ import annotations

import numpy as np

from memograd.memory.manager.trained.observation import (
    ACTIONS,
    FACT_FEATURES,
    PAIR_FEATURES,
    SLOTS,
    Observation,
)

DIMENSION = 8


def observation(sign: float, time: int, items: int = 2) -> Observation:
    """Whether UPDATE of item 0 (sign 1) or NONE (sign -1) is right stands in the fact's vector."""
    allowed = np.zeros(ACTIONS, bool)
    allowed[[0, 1, *range(2, 2 + items), *range(2 + SLOTS, 2 + SLOTS + items)]] = True
    fact = np.zeros(DIMENSION, np.float32)
    fact[0], fact[1] = sign, time / 4
    vectors = np.zeros((SLOTS, DIMENSION), np.float32)
    pairs = np.zeros((SLOTS, len(PAIR_FEATURES)), np.float32)
    for place in range(items):
        vectors[place, 2 + place] = 1.0
        pairs[place, place] = 1.0
    return Observation(fact, np.zeros(len(FACT_FEATURES), np.float32), vectors, pairs, allowed)


class Game:
    """`length` decisions; the right action earns 1, any other allowed one 0."""

    def __init__(self, seed: int, length: int = 6) -> None:
        self._signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=length)
        self._time = 0
        self.right = 0

    @property
    def over(self) -> bool:
        return self._time == len(self._signs)

    @property
    def best(self) -> int:
        return 2 if self._signs[self._time] > 0 else 1

    def observe(self) -> Observation:
        return observation(float(self._signs[self._time]), self._time)

    def rewards(self) -> np.ndarray:
        rewards = np.zeros(ACTIONS)
        rewards[self.best] = 1.0
        return rewards

    def take(self, action: int) -> None:
        assert self.observe().allowed_A[action]
        self.right += action == self.best
        self._time += 1

    def outcome(self) -> float:
        return self.right / len(self._signs)

    def gold_action(self) -> int | None:
        return self.best

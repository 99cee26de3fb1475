"""What scores answers: a model in this process, or a server somewhere.

Invariant: one finite number per item, in the order of the items; what cannot be scored raises. Held
by `RewardModel` and by `RemoteRewardModel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from memograd.rollout.types import Message

Prompt = str | Sequence[Message]
"""A prompt: a text, or chat messages."""


class Item(NamedTuple):
    """An answer and what it answers."""

    prompt: Prompt
    answer: str


class Scorer(Protocol):
    """Gives every answer a number; only differences between answers to one prompt mean anything."""

    def score(self, items: Sequence[Item]) -> list[float]:
        """One finite score per item, in their order."""
        ...

    def length_slope(self) -> float:
        """What one character of an answer was found to earn by itself; `BadInput` if unknown."""
        ...

"""Keys and values of token sequences that later prompts begin with, so that only the rest is run.

A turn of an episode goes on from the turn before it, an agent's next call from its last one, and G
attempts at one scenario begin alike. What a sequence's tokens left behind in the layers can stand
in for the beginning of any prompt that it shares them with.

Invariants: what is found for a prompt are the keys and values of the very tokens that it begins
with, and never of its last one, whose state predicts what follows; no more than `limit` tokens are
held. Whoever changes the weights must `clear`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memograd.policy.slot_cache import KeysValues

LEAST_SHARED = 8
"""Tokens that a prompt must share with a kept sequence before copying is worth it."""


@dataclass(frozen=True)
class Beginning:
    """Keys and values of a prompt's first `length` tokens, a layer each; of none if that is 0."""

    length: int
    keys_values: Sequence[KeysValues]


NOTHING = Beginning(0, ())


class KeptPrefixes:
    """Sequences with their keys and values, at most `limit` tokens in all; the oldest make room."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[int, ...], tuple[np.ndarray, Sequence[KeysValues]]]
        self._kept = OrderedDict()

    @property
    def tokens(self) -> int:
        """How many tokens are held."""
        return sum(map(len, self._kept))

    def keep(self, ids: Sequence[int], keys_values: Sequence[KeysValues]) -> None:
        """Remember a sequence, unless it alone is over the limit or another one begins with it."""
        key, array = tuple(ids), np.asarray(ids)
        if len(key) > self._limit:
            return
        shared = {kept: common(own, array) for kept, (own, _) in self._kept.items()}
        if len(key) in shared.values():
            return
        for kept, length in shared.items():
            if length == len(kept):
                del self._kept[kept]  # the new one begins with it
        self._kept[key] = (array, keys_values)
        while self.tokens > self._limit:
            self._kept.popitem(last=False)

    def longest(self, prompt: Sequence[int]) -> Beginning:
        """The longest beginning of `prompt` that is kept, without its last token."""
        array = np.asarray(prompt)
        best, source = 0, None
        for kept, (own, _) in self._kept.items():
            length = common(own, array)
            if length > best:
                best, source = length, kept
        length = min(best, len(prompt) - 1)
        if source is None or length < LEAST_SHARED:
            return NOTHING
        self._kept.move_to_end(source)
        return Beginning(
            length,
            [(keys[:, :length], values[:, :length]) for keys, values in self._kept[source][1]],
        )

    def clear(self) -> None:
        """Forget all sequences."""
        self._kept.clear()


def common(one: np.ndarray, other: np.ndarray) -> int:
    """How many tokens two sequences begin with in common."""
    length = min(len(one), len(other))
    differ = one[:length] != other[:length]
    return int(differ.argmax()) if differ.any() else length

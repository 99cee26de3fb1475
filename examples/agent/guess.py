"""A game of several turns for `memograd train agent`: find a number by asking higher or lower.

    memograd train agent --environment examples/agent/guess.py:GuessNumber \
        --data examples/agent/rows.jsonl --config examples/agent/small.toml

The class is written as TRL's `environment_factory` takes it, so it works there too.
"""

from __future__ import annotations


class GuessNumber:
    """The policy calls `guess` until it has found the number or the turns are used up."""

    def reset(self, number: int, highest: int, **row: object) -> None:
        """Begin a new game; a returned text would be added to the row's prompt."""
        self._number, self._low, self._high = number, 1, highest
        self._highest = self._nearest = highest

    def guess(self, number: int) -> str:
        """Guess the number and hear where it is.

        Args:
            number: The guess.
        """
        guessed = int(number)
        self._nearest = min(self._nearest, abs(guessed - self._number))
        if guessed == self._number:
            return "That is it."
        if guessed < self._number:
            self._low = max(self._low, guessed + 1)
        else:
            self._high = min(self._high, guessed - 1)
        return f"Find the number that I think of. It is between {self._low} and {self._high}."

    def get_reward(self) -> float:
        """1 for the number, otherwise up to one half for how near the nearest guess was."""
        if self._nearest == 0:
            return 1.0
        return 0.5 * (1 - self._nearest / self._highest)

"""A reward model's server in a thread, and a scorer that needs no model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from memograd.errors import BadInput, MemogradError
from memograd.reward_model.api import Item
from memograd.web.running import running


class Lengths:
    """Scores an answer by its length; "broken" cannot be scored. Remembers what it was asked."""

    def __init__(self, slope: float | None = 0.5) -> None:
        self.slope = slope
        self.asked: list[Item] = []

    def score(self, items: Sequence[Item]) -> list[float]:
        self.asked += items
        if any(item.answer == "broken" for item in items):
            raise MemogradError("It is broken.")
        return [float(len(item.answer)) for item in items]

    def length_slope(self) -> float:
        if self.slope is None:
            raise BadInput("No price of length.")
        return self.slope


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The address of `app` on a free port of this machine, while the block runs."""
    with running(app) as address:
        yield address

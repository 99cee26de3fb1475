"""Joining requests: who waits is scored together, and everyone gets what is theirs."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence

import pytest

from memograd.errors import MemogradError
from memograd.reward_model.api import Item
from memograd.reward_model.server import Busy, JoiningScorer


class Gated:
    """Scores an answer by its number; the first forward waits until the gate is opened."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.gate = threading.Event()
        self.forwards: list[int] = []

    def score(self, items: Sequence[Item]) -> list[float]:
        self.forwards.append(len(items))
        self.begun.set()
        assert self.gate.wait(30)
        if any(item.answer == "poison" for item in items):
            raise MemogradError("poison")
        return [float(item.answer) for item in items]

    def length_slope(self) -> float:
        return 0.0


def items(*numbers: int) -> list[Item]:
    return [Item("q", str(number)) for number in numbers]


async def queued(joining: JoiningScorer, count: int) -> None:
    while len(joining._waiting) < count:
        await asyncio.sleep(0.001)


async def begun(scorer: Gated) -> None:
    while not scorer.begun.is_set():
        await asyncio.sleep(0.001)


def run(test: Callable[[JoiningScorer, Gated], object], **limits: int) -> Gated:
    scorer = Gated()

    async def main() -> None:
        joining = JoiningScorer(scorer, **limits)
        async with joining.running():
            await test(joining, scorer)

    asyncio.run(main())
    return scorer


def test_requests_that_wait_are_one_forward() -> None:
    async def test(joining: JoiningScorer, scorer: Gated) -> None:
        first = asyncio.create_task(joining.score(items(0)))
        await begun(scorer)
        others = [asyncio.create_task(joining.score(items(n, n + 100))) for n in range(1, 17)]
        await queued(joining, 16)
        scorer.gate.set()
        assert await first == [0.0]
        assert await asyncio.gather(*others) == [[float(n), n + 100.0] for n in range(1, 17)]

    assert run(test).forwards == [1, 32]


def test_a_batch_has_a_limit_that_cuts_no_request() -> None:
    async def test(joining: JoiningScorer, scorer: Gated) -> None:
        first = asyncio.create_task(joining.score(items(0)))
        await begun(scorer)
        sizes = (3, 2, 9, 1)
        others = [asyncio.create_task(joining.score(items(*range(size)))) for size in sizes]
        await queued(joining, 4)
        scorer.gate.set()
        await asyncio.gather(first, *others)

    assert run(test, max_batch=5).forwards == [1, 5, 9, 1]


def test_a_failing_request_fails_nobody_else() -> None:
    async def test(joining: JoiningScorer, scorer: Gated) -> None:
        first = asyncio.create_task(joining.score(items(0)))
        await begun(scorer)
        good = asyncio.create_task(joining.score(items(7)))
        bad = asyncio.create_task(joining.score([Item("q", "poison")]))
        await queued(joining, 2)
        scorer.gate.set()
        with pytest.raises(MemogradError, match="poison"):
            await bad
        assert await good == [7.0] and await first == [0.0]
        assert await joining.score(items(8)) == [8.0]

    assert run(test).forwards == [1, 2, 1, 1, 1]


def test_who_goes_away_is_not_scored() -> None:
    async def test(joining: JoiningScorer, scorer: Gated) -> None:
        first = asyncio.create_task(joining.score(items(0)))
        await begun(scorer)
        gone = asyncio.create_task(joining.score(items(1)))
        stays = asyncio.create_task(joining.score(items(2)))
        await queued(joining, 2)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        scorer.gate.set()
        assert (await stays, await first) == ([2.0], [0.0])

    assert run(test).forwards == [1, 1]


def test_too_many_are_turned_away() -> None:
    async def test(joining: JoiningScorer, scorer: Gated) -> None:
        first = asyncio.create_task(joining.score(items(0)))
        await begun(scorer)
        waiting = asyncio.create_task(joining.score(items(1, 2)))
        await queued(joining, 1)
        with pytest.raises(Busy):
            await joining.score(items(3, 4))
        scorer.gate.set()
        assert (await waiting, await first) == ([1.0, 2.0], [0.0])

    run(test, max_waiting=3)


def test_no_score_is_crossed_among_many() -> None:
    draw = random.Random(0)
    asked = [[draw.randrange(10_000) for _ in range(draw.randint(1, 5))] for _ in range(200)]

    async def test(joining: JoiningScorer, scorer: Gated) -> None:
        scorer.gate.set()
        found = await asyncio.gather(*(joining.score(items(*numbers)) for numbers in asked))
        assert found == [[float(number) for number in numbers] for numbers in asked]

    scorer = run(test, max_batch=32)
    assert sum(scorer.forwards) == sum(map(len, asked)) and len(scorer.forwards) < 50

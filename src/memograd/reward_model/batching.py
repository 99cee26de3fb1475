"""Joining concurrent requests into one forward.

Requests wait in a queue; one worker takes all that wait (up to `max_batch` answers), scores them
together in a thread of its own, and gives every request its scores. Whoever arrives meanwhile makes
the next batch, so nobody waits for a timer, and the batches grow with the load.

Invariant: every request gets exactly its own scores or the error of its own batch; a failing
request is scored again alone, so it fails nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from memograd.errors import MemogradError
from memograd.reward_model.scorer import Item, Scorer


class Busy(MemogradError):
    """More answers wait than the server takes; try again later."""


@dataclass(frozen=True)
class _Waiting:
    items: Sequence[Item]
    scores: asyncio.Future[list[float]]


class JoiningScorer:
    """An asynchronous front of a scorer; use it within `running()`.

    max_batch: answers of one forward, at most (one request is never cut). max_waiting: answers that
    may wait; a request beyond them raises `Busy`. batches: sizes of the batches scored so far.
    """

    def __init__(self, scorer: Scorer, *, max_batch: int = 64, max_waiting: int = 4096) -> None:
        self._scorer = scorer
        self._max_batch = max_batch
        self._max_waiting = max_waiting
        self._waiting: list[_Waiting] = []
        self._arrived = asyncio.Event()
        self.batches: list[int] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Scores requests within this block; those that still wait at its end are cancelled."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="reward-model") as thread:
            worker = asyncio.create_task(self._work(thread))
            try:
                yield
            finally:
                worker.cancel()
                with suppress(asyncio.CancelledError):
                    await worker
                for one in self._waiting:
                    one.scores.cancel()

    async def score(self, items: Sequence[Item]) -> list[float]:
        """One score per item; raises what the scorer raises, or `Busy`."""
        if sum(len(one.items) for one in self._waiting) + len(items) > self._max_waiting:
            raise Busy("Too many answers are waiting to be scored; try again later.")
        one = _Waiting(items, asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        self._arrived.set()
        try:
            return await one.scores
        finally:
            if one in self._waiting:  # whoever asked went away
                self._waiting.remove(one)

    async def _work(self, thread: ThreadPoolExecutor) -> None:
        while True:
            await self._arrived.wait()
            batch = self._next_batch()
            if not self._waiting:
                self._arrived.clear()
            if batch:
                await self._score_batch(batch, thread)

    def _next_batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and (
            not batch or size + len(self._waiting[0].items) <= self._max_batch
        ):
            one = self._waiting.pop(0)
            batch.append(one)
            size += len(one.items)
        return batch

    async def _score_batch(self, batch: list[_Waiting], thread: ThreadPoolExecutor) -> None:
        items = [item for one in batch for item in one.items]
        self.batches.append(len(items))
        loop = asyncio.get_running_loop()
        try:
            scores = await loop.run_in_executor(thread, self._scorer.score, items)
        except asyncio.CancelledError:
            for one in batch:
                one.scores.cancel()
            raise
        except Exception as error:
            if len(batch) == 1:
                if not batch[0].scores.done():
                    batch[0].scores.set_exception(error)
                return
            for one in batch:
                await self._score_batch([one], thread)
            return
        start = 0
        for one in batch:
            end = start + len(one.items)
            if not one.scores.done():
                one.scores.set_result(scores[start:end])
            start = end

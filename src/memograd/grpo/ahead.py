"""Drawing ahead: later steps' scenarios are attempted while this one is learnt from.

A thread draws, one step after the other, from the weights that are newest when it begins a step; so
what is learnt from at step k was drawn by the weights of step k - 1, or of up to `steps` steps
before. The learner corrects for that (`memograd.grpo.sampler_gap`: every token is scored under the
version that drew it, and its ratio is clipped against that).

Invariants: nothing is learnt from that is more than `steps` versions old; steps are drawn in their
order, each once; a failure in the thread is raised where its step is taken; the thread touches no
weights, and collective calls of several processes are made by whoever takes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class DrawnAhead(Generic[T]):
    """Up to `steps` steps drawn before they are taken. Close it in the end."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="memograd-draws-ahead")
        self._drawn: dict[int, Future[T]] = {}

    def take(self, step: int, last: int, prepare: Callable[[int], Callable[[], T]]) -> T:
        """What was drawn for `step`; later ones, up to `last`, are on their way from here on.

        `prepare` is called here for each step that is not on its way yet, in their order, and gives
        what the thread does. Raises what that raised.
        """
        for ahead in range(step, min(step + self._steps, last) + 1):
            if ahead not in self._drawn:
                self._drawn[ahead] = self._threads.submit(prepare(ahead))
        return self._drawn.pop(step).result()

    def close(self) -> None:
        """Give up what is on its way; what a server is still asked for ends by itself."""
        self._drawn.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

"""Group size by difficulty: a step's rollouts go where they can teach most.

A scenario that is always or never passed earns equal rewards in a small group as well as in a large
one; one that is passed now and then needs a large group for its rewards to differ, and for a good
baseline. So the rollouts of a step are shared out in proportion to the groups' promise (see
`memograd.grpo.pass_rates`), between a smallest and a largest size, one after the other: each goes
to the group that has most promise for a rollout it already has (D'Hondt's rule). CurES
(arXiv:2510.01037) derives from the gradient how many rollouts a prompt deserves; this is the plain
form of that idea.

Invariants: the sizes sum to the budget exactly and keep their limits; more promise never means a
smaller group; equal promise and a budget that divides give equal groups. Proved in
`tests/grpo/test_group_sizes.py`. Imports nothing of memograd.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def sizes_by_promise(
    promise_B: Sequence[float], *, budget: int, smallest: int, largest: int
) -> list[int]:
    """How many of `budget` rollouts each of B groups gets.

    Raises `ValueError` if no sizes from `smallest` to `largest` make up the budget.
    """
    groups = len(promise_B)
    if not groups * smallest <= budget <= groups * largest:
        raise ValueError(
            f"{budget} rollouts cannot be shared out to {groups} groups of {smallest} to {largest}"
        )
    sizes_B = [smallest] * groups
    waiting = [(-promise / smallest, place) for place, promise in enumerate(promise_B)]
    heapq.heapify(waiting)
    for _ in range(budget - groups * smallest):
        _, place = heapq.heappop(waiting)
        sizes_B[place] += 1
        if sizes_B[place] < largest:
            heapq.heappush(waiting, (-promise_B[place] / sizes_B[place], place))
    return sizes_B

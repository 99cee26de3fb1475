"""Sampling by several ranks: each attempts its share of a step's scenarios, and all get all of it.

Invariant: the batch is in the order of the scenarios, rollouts numbered and named as if one process
had drawn it, whatever the number of ranks and also if some have no share; for a given number of
ranks it is the same every time. Proved in `tests/grpo/test_distributed.py` and
`tests/grpo/test_draw_by_ranks.py`. May import drawing, distributed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from memograd.grpo.distributed import World
from memograd.grpo.drawing import Attempts, Drawing
from memograd.rollout.types import Scenario


def draw_by_ranks(
    world: World,
    drawing: Drawing,
    scenarios: Sequence[Scenario],
    *,
    step: int,
    attempt: int,
    temperature: float,
    generator: torch.Generator | None,
    sizes: Sequence[int] | None = None,
) -> Attempts:
    """What `drawing` makes of all `scenarios`, in groups of `sizes` rollouts (None: of one size),
    groups whole on a rank."""
    share = world.share(len(scenarios))

    def draw() -> Attempts | None:
        if not share:
            return None
        return drawing(
            scenarios[share.start : share.stop],
            step=step,
            attempt=attempt,
            temperature=temperature,
            generator=generator,
            first=share.start,
            sizes=None if sizes is None else sizes[share.start : share.stop],
        )

    return join_attempts([part for part in world.together(draw) if part is not None])


def join_attempts(parts: Sequence[Attempts]) -> Attempts:
    """The attempts of all `parts` as one, rollouts numbered through."""
    rollouts_of_tree: list[tuple[int, ...]] = []
    before = 0
    for part in parts:
        rollouts_of_tree += [
            tuple(before + rollout for rollout in rollouts) for rollouts in part.rollouts_of_tree
        ]
        before += sum(len(group.rollouts) for group in part.groups)
    return Attempts(
        groups=tuple(group for part in parts for group in part.groups),
        trees=tuple(tree for part in parts for tree in part.trees),
        rollouts_of_tree=tuple(rollouts_of_tree),
        old_logprobs=tuple(rows for part in parts for rows in part.old_logprobs),
    )

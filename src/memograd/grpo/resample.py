"""Dynamic sampling: a group whose rollouts all earned the same is replaced by a fresh one.

Such a group has no advantages, so it takes a place in the batch without teaching anything. DAPO
(arXiv:2503.14476) samples on until the batch is full of groups that do teach; here there is a limit
of rounds, after which the dull groups that are left stay where they are.

Invariant: the batch has as many groups as were asked for, and as many rollouts; a group that taught
something keeps its place; nothing is drawn when every group does. Proved in
`tests/grpo/test_resample.py`. May import `memograd.grpo.experience` only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memograd.grpo.experience import Experience, join


@dataclass(frozen=True)
class Drawn:
    """The batch, how many groups were drawn for it in all, and how many of those were dull."""

    experience: Experience
    groups: int
    dull: int


def draw_informative(
    draw: Callable[[int, Sequence[int]], Experience],
    *,
    sizes: Sequence[int],
    rounds: int,
    advantage: str,
) -> Drawn:
    """A group for each of `sizes` from `draw(attempt, sizes)`, the dull ones replaced in up to
    `rounds` rounds.

    Attempt 0 draws the whole batch. `draw` may share out the sum of the sizes that it is given in
    another way. The result is compared as `advantage` says. Where there are rounds, a draw has as
    many groups as sizes; without, it may have more.
    """
    experience = draw(0, sizes)
    count = len(experience.groups)
    empty = _dull(experience)
    groups, dull = count, len(empty)
    for attempt in range(1, rounds + 1):
        if not empty:
            break
        fresh = draw(attempt, [experience.sizes_B[group] for group in empty])
        still_dull = _dull(fresh)
        groups += len(empty)
        dull += len(still_dull)
        parts = [experience.single(group, advantage) for group in range(count)]
        for index, group in enumerate(empty):
            if index not in still_dull:
                parts[group] = fresh.single(index, advantage)
        experience = join(parts, advantage)
        empty = _dull(experience)
    return Drawn(experience, groups, dull)


def _dull(experience: Experience) -> list[int]:
    return [group for group, varied in enumerate(experience.advantages.varied_B) if not varied]

"""Replay: groups that taught something are learned from again, while they are young.

Sampling costs most of a step, and a group is thrown away after it was learned from once. Here those
whose rewards differed go into a bounded buffer, from which every later step takes a few and adds
them to its fresh groups, which stay the main part of it. They come back with the log-probabilities
of the policy that sampled them as old ones, so their ratios are not 1 and are clipped as usual;
because the policy moves away, what is older than some steps is dropped. (Replay with an age limit
beside fresh rollouts: Yoo et al. 2026, arXiv:2606.04560, who choose rollouts by their advantage;
here a group stays whole, since its rollouts are each other's baseline, and the draw is uniform.)

The buffer holds whole batches of all ranks, like everything that a batch is computed from; each
rank then does its share of the groups, fresh and replayed.

Invariants: never more groups than the capacity, none older than the age limit, none more often than
allowed, none whose rewards were all equal; what is drawn is a pure function of (seed, step,
buffer); a drawn group's tokens, log-probabilities and rewards are those it had. Proved in
`tests/grpo/test_replay.py`. May import experience.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memograd.grpo.experience import Experience, join


@dataclass(frozen=True)
class Kept:
    """One group as an experience of its own, the step that sampled it, and how often it was
    replayed."""

    experience: Experience
    step: int
    uses: int = 0


class Replay:
    """The buffer. `capacity` is in groups, `max_age` in steps, `max_uses` for each group."""

    def __init__(self, *, capacity: int, max_age: int, max_uses: int) -> None:
        self._capacity = capacity
        self._max_age = max_age
        self._max_uses = max_uses
        self._kept: tuple[Kept, ...] = ()

    def draw(self, count: int, *, step: int, seed: int) -> list[Kept]:
        """Up to `count` different groups of earlier steps, as they are now, oldest first."""
        self._kept = tuple(kept for kept in self._kept if step - kept.step <= self._max_age)
        places = range(len(self._kept))
        generator = random.Random(f"{seed}/{step}/replay")
        drawn = sorted(generator.sample(places, min(count, len(places))))
        found = [self._kept[place] for place in drawn]
        used = [
            replace(kept, uses=kept.uses + (place in drawn))
            for place, kept in enumerate(self._kept)
        ]
        self._kept = tuple(kept for kept in used if kept.uses < self._max_uses)
        return found

    def add(self, experience: Experience, *, step: int, advantage: str) -> None:
        """Keep the groups of a step whose rewards differ; the oldest make room for them."""
        fresh = [
            Kept(experience.single(group, advantage), step)
            for group, varied in enumerate(experience.advantages.varied_B)
            if varied
        ]
        self._kept = (*self._kept, *fresh)[-self._capacity :]

    def state(self) -> tuple[Kept, ...]:
        """The whole buffer, oldest first; immutable."""
        return self._kept

    def restore(self, state: Sequence[Kept]) -> None:
        """Hold what `state` holds, and nothing else."""
        self._kept = tuple(state)


def with_replayed(fresh: Experience, replayed: Sequence[Kept], advantage: str) -> Experience:
    """What a step learns from: its own groups, and replayed ones after them."""
    if not replayed:
        return fresh
    joined = join([fresh, *(kept.experience for kept in replayed)], advantage)
    return replace(joined, replayed=len(replayed))

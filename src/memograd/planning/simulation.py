"""Stragglers and staleness: a run played through, event by event.

The formulae of `costs` speak of means. Answers differ in length, so a synchronous step waits for
the longest one, and a sampler that may run ahead does not. Here every rollout has a drawn length
(log-normal, with the workload's mean and spread), a fixed number of them runs at once on every
replica, and the learner takes a step's groups as soon as they are complete. A colocated sampler
sleeps while the learner works, so it never runs ahead. Invariant: no group is learnt from that is
more than `max_staleness` versions old, and the same seed plays the same run.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass

from memograd.planning.costs import Workload
from memograd.planning.placement import Placement

PLAYED = 200_000
"""Answers that are played unless somebody asks for more."""


@dataclass(frozen=True)
class Played:
    """What came out. idle: share of time that the learner, or the sampler's slots, waited."""

    seconds_a_step: float
    learner_idle: float
    sampler_idle: float
    staleness_mean: float
    staleness_max: int


def play(
    placement: Placement,
    work: Workload,
    *,
    steps: int | None = None,
    max_staleness: int = 0,
    seed: int = 0,
) -> Played:
    """Play `steps` steps; None: 20, or as many as a few seconds are enough for.

    A token's seconds are those of the placement's mean decoding step, and its share of the prefill.
    """
    steps = steps or max(2, min(20, PLAYED // work.rollouts))
    max_staleness = 0 if placement.colocated else max_staleness
    lengths = _Lengths(work, seed)
    replicas = max(1, placement.sampling // placement.tensor_parallel)
    slots = placement.at_once * replicas
    sampling = placement.step.prefill + placement.step.decode
    token = sampling / max(work.longest * max(1.0, work.rollouts / slots), 1.0)
    learn, between = placement.step.learn, placement.step.sync + placement.step.sleep

    running: list[tuple[float, int]] = []  # (end, group)
    missing: list[int] = []  # rollouts of each group that have not ended
    begun_at: list[int] = []  # the version of the weights that a group began with
    complete = [0] * (steps + max_staleness + 2)  # complete groups of each step
    ages: list[int] = []
    now = free = sampled = 0.0
    version = started = 0
    while version < steps:
        # A step takes its groups in the order in which they began, so a group that may begin now
        # is at most `max_staleness` versions old when its turn comes.
        allowed = (version + 1 + max_staleness) * work.rollouts
        while len(running) < slots and started < allowed:
            if started % work.group == 0:
                missing.append(work.group)
                begun_at.append(version)
            seconds = lengths.draw() * token
            heapq.heappush(running, (now + seconds, started // work.group))
            sampled += seconds
            started += 1
        if complete[version] == work.prompts and free <= now:
            groups = range(version * work.prompts, (version + 1) * work.prompts)
            ages += [version - begun_at[group] for group in groups]
            free = now + learn + between
            version += 1
            if not placement.step.overlapped:
                now = free
        elif complete[version] == work.prompts and (not running or free <= running[0][0]):
            now = free
        else:
            now, group = heapq.heappop(running)
            missing[group] -= 1
            if missing[group] == 0:
                complete[group // work.prompts] += 1
    total = max(now, free)
    return Played(
        seconds_a_step=total / steps,
        learner_idle=1 - steps * learn / total,
        sampler_idle=1 - sampled / (slots * total),
        staleness_mean=sum(ages) / len(ages),
        staleness_max=max(ages),
    )


class _Lengths:
    """Answer lengths: log-normal with the mean and coefficient of variation of the workload."""

    def __init__(self, work: Workload, seed: int) -> None:
        self._random = random.Random(seed)
        self._sigma = math.sqrt(math.log(1 + work.spread**2))
        self._mu = math.log(work.answer) - self._sigma**2 / 2

    def draw(self) -> float:
        return max(1.0, self._random.lognormvariate(self._mu, self._sigma))

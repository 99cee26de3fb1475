"""A plan as rows of text: what it needs, where the time goes, what was tried beside it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from memograd.planning.costs import room
from memograd.planning.hardware import GIB
from memograd.planning.placement import Placement, RankedPlacements
from memograd.planning.simulation import Played


def headline(plan: RankedPlacements) -> str:
    """One sentence: does it fit, and how long does a step take?"""
    best = plan.best
    needs, has = best.memory.total / GIB, room(plan.cluster) / GIB
    return (
        f"{plan.shape.name} ({plan.shape.weights / 1e9:.2f}B weights), {plan.work.train}, on "
        f"{plan.cluster.count} x {plan.cluster.device.name}: a learner's device needs about "
        f"{needs:.0f} GiB of the {has:.0f} that can be filled; a step of {plan.work.rollouts} "
        f"answers takes about {best.step.seconds:.0f} s."
    )


def memory_rows(placement: Placement) -> list[list[str]]:
    """What fills a learner's device, in GiB."""
    rows = [[name, f"{size / GIB:.2f}"] for name, size in placement.memory.parts().items()]
    return [*rows, ["sampler's cache (a replica)", f"{placement.cache / GIB:.2f}"]]


def time_rows(placement: Placement) -> list[list[str]]:
    """Where the seconds of a step go."""
    step = placement.step
    parts = {
        "prefill": step.prefill,
        "decoding": step.decode,
        "learning": step.learn,
        "new weights to the sampler": step.sync,
        "sleeping and waking": step.sleep,
    }
    return [[name, f"{seconds:.2f}"] for name, seconds in parts.items()]


def placement_rows(plan: RankedPlacements) -> list[list[str]]:
    """The eight fastest placements, the fastest first."""
    return [
        [
            placement.name,
            f"{placement.step.seconds:.1f}",
            f"{plan.work.answer_tokens / placement.step.seconds:.0f}",
            str(placement.micro_batch),
            f"{placement.memory.total / GIB:.0f}",
        ]
        for placement in plan.placements[:8]
    ]


def played_row(staleness: int, played: Played) -> list[str]:
    """One simulated run."""
    return [
        str(staleness),
        f"{played.seconds_a_step:.1f}",
        f"{played.learner_idle:.0%}",
        f"{played.sampler_idle:.0%}",
        f"{played.staleness_mean:.2f}",
        str(played.staleness_max),
    ]


def as_data(plan: RankedPlacements, played: dict[int, Played]) -> dict[str, Any]:
    """The whole plan as plain data, for `--json`."""
    return {
        "model": {**asdict(plan.shape), "weights": plan.shape.weights},
        "cluster": asdict(plan.cluster),
        "workload": asdict(plan.work),
        "placements": [
            {
                "name": placement.name,
                "seconds_a_step": placement.step.seconds,
                "sampled_tokens_a_second": plan.work.answer_tokens / placement.step.seconds,
                "seconds": asdict(placement.step),
                "learner_bytes": {**placement.memory.parts(), "total": placement.memory.total},
                "micro_batch_tokens": placement.micro_batch,
                "rollouts_at_once": placement.at_once,
            }
            for placement in plan.placements
        ],
        "refused": list(plan.refused),
        "simulated": {str(staleness): asdict(one) for staleness, one in played.items()},
    }

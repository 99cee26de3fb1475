"""One line of `metrics.jsonl`: what a step learnt from, what came of it, and the seconds it took.

Keys are explained in `docs/architecture.md`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from memograd.grpo.advantage import GroupAdvantages
from memograd.grpo.experience import Experience
from memograd.grpo.learner import Update
from memograd.rollout.types import UNSAID


def step_metrics(step: int, experience: Experience, update: Update) -> dict[str, Any]:
    """What is measured of every step, of the groups that were drawn for it."""
    rewards_K = experience.rewards_K
    advantages_K = experience.advantages.advantages_K
    rollouts = experience.rollouts
    trees = experience.trees
    cut = [rollout.turns[-1].stop_reason == "length" for rollout in rollouts]
    return {
        "step": step,
        "reward_mean": float(rewards_K.mean()),
        "reward_std": float(rewards_K.std()),
        "reward_normalised_mean": float(advantages_K.mean()),
        "reward_normalised_std": float(advantages_K.std()),
        "rewards": experience.rewards.means(),
        "loss": update.loss,
        "kl": update.kl,
        "entropy": update.entropy,
        "grad_norm": update.grad_norm,
        "clip_fraction": update.clip_fraction,
        "sampler_gap": update.sampler_gap,
        "tokens": sum(rollout.tokens for rollout in rollouts),
        "tokens_as_rows": sum(tree.rows_tokens for tree in trees),
        "tokens_as_tree": sum(tree.tree_tokens for tree in trees),
        "cut_fraction": float(np.mean(cut)),
        **({} if update.value_loss is None else {"value_loss": update.value_loss}),
    }


def own_advantages(update: Update, experience: Experience) -> GroupAdvantages:
    """Those of the experience's own groups, which come before replayed ones."""
    return GroupAdvantages(
        update.advantages.advantages_K[: len(experience.compared_K)],
        update.advantages.varied_B[: len(experience.groups)],
    )


def oldest_version(experience: Experience) -> int:
    """The oldest version that drew one of its rollouts; `UNSAID` if none says."""
    return min(
        (
            span.version
            for rollout in experience.rollouts
            for turn in rollout.turns
            for span in turn.versions
        ),
        default=UNSAID,
    )


class Clock:
    """Seconds by phase of one step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds of this block to those of `name`."""
        start = time.perf_counter()
        yield
        seconds = self.seconds.get(name, 0.0) + time.perf_counter() - start
        self.seconds[name] = round(seconds, 4)

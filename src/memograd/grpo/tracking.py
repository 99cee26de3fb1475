"""What a step measured, and where it goes besides `metrics.jsonl`, which is always written.

`step_metrics` makes the line of a step: what it learnt from, what came of it; a `Clock` has the
seconds. Keys are explained in `docs/architecture.md`.

A tracker is any object with the three methods of `Tracker`; an experiment service needs about ten
lines, and those named in the setting `track` are in `memograd.grpo.trackers`. The trainer calls it
with plain numbers under flat names. What a tracker raises stops the run, which can be resumed:
metrics that were promised are not dropped in silence. (The trackers of `track` raise nothing after
`start`: they warn.) After a resume a tracker may hear steps again that were measured before the
kill but after the checkpoint.

Invariant: a tracker hears the numbers of `metrics.jsonl`, step by step, and `finish` however the
run ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import numpy as np

from memograd.grpo.advantage import GroupAdvantages
from memograd.grpo.experience import Experience
from memograd.grpo.learner import Update
from memograd.rollout.types import UNSAID


class Tracker(Protocol):
    """Takes a run's metrics as they arise."""

    def start(self, name: str, config: Mapping[str, Any]) -> None:
        """The run of that name begins or goes on; `config` are its settings as plain JSON."""
        ...

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """What `step` (from 1) measured, by flat names such as `rewards/locomo_f1`."""
        ...

    def finish(self) -> None:
        """The run ends, well or not."""
        ...


@contextmanager
def tracked(trackers: Sequence[Tracker], name: str, config: Mapping[str, Any]) -> Iterator[None]:
    """Starts the trackers, and finishes those that were started."""
    with ExitStack() as started:
        for tracker in trackers:
            tracker.start(name, config)
            started.callback(tracker.finish)
        yield


def flat_metrics(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers of a line of metrics, those of inner mappings as `outer/inner`; no nulls."""
    flat: dict[str, float] = {}
    for key, value in metrics.items():
        if isinstance(value, Mapping):
            flat |= flat_metrics(value, f"{prefix}{key}/")
        elif isinstance(value, int | float):
            flat[prefix + key] = float(value)
    return flat


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

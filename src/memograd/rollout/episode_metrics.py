"""What a step's rollouts of several turns were like, in numbers.

Invariant: every rollout is counted under exactly one stop reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from memograd.rollout.limits import STOP_REASONS
from memograd.rollout.types import Rollout


def episode_metrics(rollouts: Sequence[Rollout]) -> dict[str, Any]:
    """What a step's rollouts of several turns were like, for one line of `metrics.jsonl`.

    `stop_reasons`: how many rollouts ended for each reason. `turns_mean`, `rows_mean`: a rollout's
    turns and token rows. `observation_tokens`: tokens between actions. `failed_calls`,
    `mismatches`: counts by kind.
    """
    between = [
        len(turn.observation_ids)
        for rollout in rollouts
        for turn in rollout.turns
        if not turn.starts_row
    ]
    rows = [sum(turn.starts_row for turn in rollout.turns) for rollout in rollouts]
    reasons = Counter(rollout.stop_reason for rollout in rollouts)
    return {
        "stop_reasons": {reason: reasons[reason] for reason in STOP_REASONS},
        "turns_mean": fmean(len(rollout.turns) for rollout in rollouts),
        "rows_mean": fmean(rows),
        "observation_tokens": sum(between),
        "failed_calls": _total([rollout.failed_calls for rollout in rollouts]),
        "mismatches": _total([rollout.mismatches for rollout in rollouts]),
    }


def _total(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))

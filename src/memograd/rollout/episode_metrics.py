"""What a step's rollouts of several turns were like, in numbers: how they ended, and what their
prompts cost and would have cost without what earlier turns left in the layers.

Invariants: every rollout is counted under exactly one stop reason; no prompt token is counted
twice, so `prefilled_tokens` is the number of those that the model ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from memograd.rollout.episode import STOP_REASONS
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


def prefill_metrics(rollouts: Sequence[Rollout]) -> dict[str, int]:
    """Three counts for one line of `metrics.jsonl`.

    `prefilled_tokens`: prompt tokens that were run. `prefilled_tokens_anew`: as many as it would
    have been, had each turn's prompt been run whole (the first one of a group once).
    `turns_prefilled_anew`: turns that went on from the turn before, of which less was at hand than
    there had been, for want of room.
    """
    run = anew = turns_anew = 0
    for rollout in rollouts:
        length = 0
        for place, turn in enumerate(rollout.turns):
            length = len(turn.observation_ids) + (0 if turn.starts_row else length)
            run += length - turn.reused_tokens
            anew += length if place else length - turn.reused_tokens
            # All but the observation and the last action token, which was drawn and never run.
            at_hand = length - len(turn.observation_ids) - 1
            turns_anew += not turn.starts_row and turn.reused_tokens < at_hand
            length += len(turn.action_ids)
    return {
        "prefilled_tokens": run,
        "prefilled_tokens_anew": anew,
        "turns_prefilled_anew": turns_anew,
    }


def _total(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))

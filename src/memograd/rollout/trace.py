"""A rollout as a person reads it: who wrote which tokens, and which of them are scored.

The segments are derived from token ids and nothing else, so what is shown as scored is what
training scores. Invariant: the ids of the segments, put together, are the rollout's rows. Proved in
`tests/rollout/test_trace.py`. May import `memograd.rollout`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from memograd.rollout.limits import STOP_REASONS
from memograd.rollout.types import Rollout


@dataclass(frozen=True)
class Segment:
    """A stretch of tokens of one kind; only actions are scored. A prompt begins a new row."""

    kind: Literal["prompt", "observation", "action"]
    ids: tuple[int, ...]
    text: str

    @property
    def scored(self) -> bool:
        """Whether these tokens are in the loss."""
        return self.kind == "action"


def segments(rollout: Rollout, decode: Callable[[Sequence[int]], str]) -> list[Segment]:
    """The rollout from its first prompt to its last action; `decode` keeps special tokens."""
    found: list[Segment] = []
    for turn in rollout.turns:
        kind: Literal["prompt", "observation"] = "prompt" if turn.starts_row else "observation"
        found.append(Segment(kind, turn.observation_ids, decode(turn.observation_ids)))
        found.append(Segment("action", turn.action_ids, decode(turn.action_ids)))
    return found


def render_rollout(rollout: Rollout, decode: Callable[[Sequence[int]], str]) -> str:
    """Plain text: each segment under a line that says what it is, scored text marked with `|`."""
    reward = "none of its own" if rollout.reward is None else f"{rollout.reward:g}"
    lines = [f"{rollout.id}: {len(rollout.turns)} turns, {rollout.stop_reason}, reward {reward}"]
    for segment in segments(rollout, decode):
        scored = "scored" if segment.scored else "not scored"
        lines.append(f"--- {segment.kind}, {len(segment.ids)} tokens, {scored}")
        mark = "| " if segment.scored else "  "
        lines.extend(mark + line for line in segment.text.split("\n"))
    return "\n".join(lines)


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

"""What prompts cost is told from the turns alone, by hand-made rollouts."""

from __future__ import annotations

import numpy as np

from memograd.rollout import Rollout, Turn
from memograd.rollout.episode import prefill_metrics


def turn(observation: int, action: int, *, reused: int, starts: bool = False) -> Turn:
    ids = (7,) * action
    return Turn((5,) * observation, ids, np.zeros(action), "end", starts, reused_tokens=reused)


def test_counts_by_hand() -> None:
    rollouts = [
        # 10 run; then 12 are at hand of 16; then a row of 20 begins, sharing 9 with the old one.
        Rollout(
            "a",
            (
                turn(10, 3, reused=0, starts=True),
                turn(3, 2, reused=12),
                turn(20, 1, reused=9, starts=True),
            ),
            "",
        ),
        # Its prompt was run for the first one; then there was no room, and then for a part.
        Rollout(
            "b",
            (
                turn(10, 3, reused=10, starts=True),
                turn(4, 1, reused=0),
                turn(2, 1, reused=10),
            ),
            "",
        ),
    ]
    assert prefill_metrics(rollouts) == {
        "prefilled_tokens": 10 + 4 + 11 + 0 + 17 + 10,
        "prefilled_tokens_anew": 10 + 16 + 20 + 0 + 17 + 20,
        "turns_prefilled_anew": 2,
    }
    assert prefill_metrics([]) == dict.fromkeys(prefill_metrics(rollouts), 0)

"""The metrics of episodes count what happened, by kind."""

from __future__ import annotations

import numpy as np

from memograd.rollout import Rollout, Turn
from memograd.rollout.episode import episode_metrics


def turn(observation: str, action: str, *, starts_row: bool) -> Turn:
    ids = tuple(map(ord, action))
    return Turn(tuple(map(ord, observation)), ids, np.zeros(len(ids)), "end", starts_row)


ROLLOUT = Rollout(
    id="rollout 3",
    turns=(
        turn("ask:", "look", starts_row=True),
        turn("seen\n", "no", starts_row=False),
        turn("ask again:", "yes\nsir", starts_row=True),
    ),
    completion="yes\nsir",
    reward=0.5,
    stopped_by="max_turns",
    failed_calls={"malformed": 2},
    mismatches={"history": 1},
)


def test_metrics_count_by_kind() -> None:
    plain = Rollout("rollout 4", (turn("ask:", "no", starts_row=True),), "no")
    assert episode_metrics([ROLLOUT, plain]) == {
        "stop_reasons": {
            **{"end": 1, "length": 0, "max_turns": 1, "max_tokens": 0, "time": 0, "error": 0}
        },
        "turns_mean": 2.0,
        "rows_mean": 1.5,
        "observation_tokens": 5,
        "failed_calls": {"malformed": 2},
        "mismatches": {"history": 1},
    }

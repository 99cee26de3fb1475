"""Limits say why, and none can be set so that nothing happens; what happened is counted by kind."""

from __future__ import annotations

import numpy as np
import pytest

from memograd.errors import BadInput
from memograd.rollout import Rollout, Turn
from memograd.rollout.episode import STOP_REASONS, Limits, episode_metrics, prefill_metrics


def test_a_turn_begins_only_where_a_whole_action_fits() -> None:
    limits = Limits(max_tokens=100)
    assert limits.before_turn(seconds=0, row_tokens=90, action_tokens=10) is None
    assert limits.before_turn(seconds=0, row_tokens=91, action_tokens=10) == "max_tokens"


def test_without_limits_only_turns_are_bounded() -> None:
    limits = Limits()
    assert limits.before_turn(seconds=1e9, row_tokens=10**9, action_tokens=1) is None
    assert limits.after_turn(turns=7, failed_turns=7) is None
    assert limits.after_turn(turns=8, failed_turns=0) == "max_turns"


def test_failures_in_a_row_stop() -> None:
    assert Limits(max_failed_turns=2).after_turn(turns=3, failed_turns=1) is None
    assert Limits(max_failed_turns=2).after_turn(turns=3, failed_turns=2) == "error"
    assert "error" in STOP_REASONS


@pytest.mark.parametrize("name", ["max_turns", "max_tokens", "max_seconds", "max_failed_turns"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name}=0 would stop every rollout"):
        Limits(**{name: 0})


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


def asked(observation: int, action: int, *, reused: int, starts: bool = False) -> Turn:
    ids = (7,) * action
    return Turn((5,) * observation, ids, np.zeros(action), "end", starts, reused_tokens=reused)


def test_counts_by_hand() -> None:
    rollouts = [
        # 10 run; then 12 are at hand of 16; then a row of 20 begins, sharing 9 with the old one.
        Rollout(
            "a",
            (
                asked(10, 3, reused=0, starts=True),
                asked(3, 2, reused=12),
                asked(20, 1, reused=9, starts=True),
            ),
            "",
        ),
        # Its prompt was run for the first one; then there was no room, and then for a part.
        Rollout(
            "b",
            (
                asked(10, 3, reused=10, starts=True),
                asked(4, 1, reused=0),
                asked(2, 1, reused=10),
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

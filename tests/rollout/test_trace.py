"""A trace shows the tokens that training sees, and counts what happened."""

from __future__ import annotations

import numpy as np

from memograd.rollout import Rollout, Turn
from memograd.rollout.branches import rows_of
from memograd.rollout.trace import episode_metrics, render_rollout, segments


def turn(observation: str, action: str, *, starts_row: bool) -> Turn:
    ids = tuple(map(ord, action))
    return Turn(tuple(map(ord, observation)), ids, np.zeros(len(ids)), "end", starts_row)


def decode(ids) -> str:
    return "".join(map(chr, ids))


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


def test_segments_are_the_rows() -> None:
    shown = segments(ROLLOUT, decode)
    assert [segment.kind for segment in shown] == [
        *("prompt", "action", "observation", "action", "prompt", "action")
    ]
    ids = [token for row in rows_of(ROLLOUT) for token in (*row.prompt, *row.ids)]
    assert [token for segment in shown for token in segment.ids] == ids
    scored = [segment.scored for segment in shown for _ in segment.ids]
    assert scored == [
        value
        for row in rows_of(ROLLOUT)
        for value in [False] * len(row.prompt) + row.scored.tolist()
    ]


def test_a_rollout_reads_as_what_was_said_with_scored_text_marked() -> None:
    assert render_rollout(ROLLOUT, decode).split("\n") == [
        "rollout 3: 3 turns, max_turns, reward 0.5",
        "--- prompt, 4 tokens, not scored",
        "  ask:",
        "--- action, 4 tokens, scored",
        "| look",
        "--- observation, 5 tokens, not scored",
        "  seen",
        "  ",
        "--- action, 2 tokens, scored",
        "| no",
        "--- prompt, 10 tokens, not scored",
        "  ask again:",
        "--- action, 7 tokens, scored",
        "| yes",
        "| sir",
    ]


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
